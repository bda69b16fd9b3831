"""Which pets and things a question is about: names, hosts, pronouns, "the bowl", "the new food".

In: a ``Linked`` question and the household. Out: ids, or "?" with the candidates where the
owner must be asked. Ties are broken by a stated order, never between two names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.ask.linking import Linked
from gateway.dialogue import Mention
from gateway.model import Food, Household

__all__ = ["Who", "devices_in", "new_or_old_food", "own_foods_in", "treated_for", "who_is_asked"]

_DEVICE_CUES = {
    "device_water_bowl": "water_bowl",
    "device_tracker": "tracker",
    "device_food_bowl": "food_bowl",
    "device_scale": "scale",
    "device_litter_box": "litter_box",
    "device_hub": "hub",
}


@dataclass(frozen=True, slots=True)
class Who:
    """The pets asked about. ``pets`` is () for nobody in particular, ("?",) for "ask which".

    ``named`` holds where names or hosts said so; ``hosts`` are species or breeds spoken of in
    general; ``miscounted`` where "both dogs" meets three.
    """

    pets: tuple[str, ...]
    named: bool
    hosts: tuple[str, ...]
    candidates: tuple[str, ...]
    miscounted: bool = False
    pronoun: bool = False


def _lead(linked: Linked, first: int) -> tuple[str, str]:
    return linked.word(first - 2), linked.word(first - 1)


def _cue_words(linked: Linked, name: str) -> frozenset[str]:
    return frozenset(linked.word(i) for a, b in linked.cues.get(name, ()) for i in range(a, b))


def _pets_of(household: Household, species: str) -> tuple[str, ...]:
    return tuple(sorted(pet.id for pet in household.pets if pet.species == species))


def _breed_id(breed: str | None) -> str:
    return "breed:" + (breed or "").casefold().replace(" ", "_").replace("-", "_")


def _host_mentions(linked: Linked) -> list[tuple[int, int, Mention]]:
    kinds = {"species", "species_plural", "breed"}
    return [
        (*span, mention) for span, mention in zip(linked.spans, linked.mentions, strict=True) if mention.kind in kinds
    ]


def who_is_asked(linked: Linked, household: Household, last_pet: str | None) -> Who:
    """Names first, then "the cat", "my dogs", "all pets", then a pronoun, then the only pet.

    A pronoun takes the last pet of the conversation, else the only pet of its sex, else the
    only pet that is given the food in question, else "?".
    """
    named = {mention.target for mention in linked.mentions if mention.kind == "pet"} | _in_device_names(
        linked, household
    )
    hosts: set[str] = set()
    meant: set[str] = set()
    asked: set[str] = set()
    miscounted = False
    definite = _cue_words(linked, "definite") | _cue_words(linked, "both")
    plural = _cue_words(linked, "definite_plural") | _cue_words(linked, "both")
    several = {i for a, b in linked.cues.get("both", ()) for i in range(a, b)}
    for first, _last, mention in _host_mentions(linked):
        two_before, before = _lead(linked, first)
        pointing = plural if mention.kind == "species_plural" else definite
        pointed = before in pointing or two_before in pointing or before in _cue_words(linked, "which")
        mine = () if _not_here_yet(linked, first) else _of_host(household, mention)
        if not pointed or not mine or linked.word(first - 1) in _cue_words(linked, "kind_of") - definite:
            hosts.add(mention.target)
        elif mention.kind == "species_plural":
            meant.update(mine)
            count = {"both": 2, "two": 2, "three": 3, "four": 4}.get(before if first - 1 in several else "", len(mine))
            miscounted |= count != len(mine)
        elif len(mine) == 1:
            meant.update(mine)
        else:
            asked.update(mine)
    if named or meant:
        return Who(tuple(sorted(named | meant)), True, () if named else tuple(sorted(hosts)), (), miscounted)
    everyone = tuple(sorted(pet.id for pet in household.pets))
    if linked.has("all_pets"):
        return Who(everyone, True, (), ())
    if asked:
        return Who(("?",), True, (), tuple(sorted(asked)))
    return _by_pronoun(linked, household, last_pet, tuple(sorted(hosts)))


def _not_here_yet(linked: Linked, index: int) -> bool:
    """Whether it is "our new kitten", "a second dog": an animal that is asked about and does not live here."""
    return any(a < index < b for a, b in linked.cues.get("pet_advice", ()))


def _in_device_names(linked: Linked, household: Household) -> set[str]:
    """The pet whose name is part of a device's name that was said ("Misty's bowl")."""
    said = [
        {word.removesuffix("'s") for i in range(*span) if (word := linked.word(i))}
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
        if mention.kind == "device"
    ]
    return {pet.id for pet in household.pets for words in said if pet.name.casefold() in words}


def _of_host(household: Household, mention: Mention) -> tuple[str, ...]:
    if mention.kind == "breed":
        return tuple(sorted(pet.id for pet in household.pets if _breed_id(pet.breed) == mention.target))
    return _pets_of(household, mention.target.partition(":")[2])


def _by_pronoun(linked: Linked, household: Household, last_pet: str | None, hosts: tuple[str, ...]) -> Who:
    everyone = tuple(sorted(pet.id for pet in household.pets))
    male, female = linked.has("pronoun_m"), linked.has("pronoun_f")
    if not (male or female or linked.has("pronoun_n")):
        only = everyone if len(everyone) == 1 else ()
        return Who(only, False, hosts, everyone)
    if last_pet is not None and last_pet in everyone:
        return Who((last_pet,), False, hosts, (), pronoun=True)
    candidates = everyone
    if male != female:
        sex = "male" if male else "female"
        candidates = tuple(pet.id for pet in household.pets if pet.sex in {sex, sex[0], None})
    eaters = {pet for food in own_foods_in(linked, household) for pet in food.pets}
    narrowed = tuple(sorted(pet for pet in candidates if not eaters or pet in eaters))
    chosen = narrowed if len(narrowed) == 1 else ("?",) if male or female else ()
    return Who(chosen, False, hosts, narrowed, pronoun=True)


# --- foods and devices ----------------------------------------------------------------------


def own_foods_in(linked: Linked, household: Household) -> tuple[Food, ...]:
    """The household's foods named, in id order."""
    targets = set(linked.targets("own_food"))
    return tuple(sorted((f for f in household.foods if f"food:{f.id}" in targets), key=lambda food: food.id))


def new_or_old_food(linked: Linked, household: Household, pets: tuple[str, ...]) -> tuple[str, ...]:
    """Read "the new food" as the one given last; "the old food" as the one that ended last; else current.

    Where nobody is named and several pets were changed to another food, it is each one's.
    """
    mine = [food for food in household.foods if not food.pets or not pets or food.pets & set(pets)]
    if linked.has("new_food"):
        return _latest_foods([(food.first_date, food) for food in mine], pets) or ("food:current",)
    if linked.has("old_food"):
        return _latest_foods([(food.last_date, food) for food in mine], pets) or ("food:previous",)
    return ("food:current",) if linked.has("current_food") else ()


def _latest_foods(dated: list[tuple[str | None, Food]], pets: tuple[str, ...]) -> tuple[str, ...]:
    """The food dated last; without a named pet that of every pet whose food was changed."""
    order = sorted((date, food.id, food.pets) for date, food in dated if date is not None)
    had: dict[str, list[str]] = {}
    for _, food in dated:
        for pet in food.pets:
            had.setdefault(pet, []).append(food.id)
    changed = {pet for pet, foods in had.items() if len(foods) > 1}
    if pets or len(changed) < 2:
        return tuple(f"food:{name}" for _, name, _ in order[-1:])
    latest = {pet: name for _, name, eaters in order for pet in eaters & changed}
    return tuple(f"food:{name}" for name in sorted(set(latest.values())))


def devices_in(linked: Linked, household: Household, pets: tuple[str, ...], at_ms: int) -> tuple[str, ...]:
    """Devices by name, by their pet ("Luna's collar"), or "the bowl".

    "The bowl" with no pet is, in this order: the one bowl its owner named, the only bowl, the
    first in id order of those named.
    """
    named = linked.targets("device")
    if named:
        return named
    for cue, kind in _DEVICE_CUES.items():
        if not linked.has(cue):
            continue
        of_kind = [device for device in household.devices if device.kind == kind]
        mine = [device for device in of_kind if household.bindings_at(device.id, at_ms) & set(pets)]
        if mine:
            return tuple(f"device:{device.id}" for device in mine)
        if pets:
            continue
        owner_named = [device for device in of_kind if device.name and device.name != device.id]
        for choice in (owner_named, of_kind if len(of_kind) == 1 else []):
            if choice:
                return (f"device:{choice[0].id}",)
    return ()


_TREATED_WITH: Mapping[str, str] = {"cond:fleas": "med:flea_treatment", "cond:worms": "med:wormer"}
"""What is given against a condition."""


def treated_for(linked: Linked) -> Linked:
    """The medicine where its use is said: "treated Max against fleas", "something for fleas"."""
    names = ("treated", "against", "done_for", "treated_after")
    treated, against, done, after = (linked.language.words.get(name, frozenset()) for name in names)
    pets = {last for (_, last), mention in zip(linked.spans, linked.mentions, strict=True) if mention.kind == "pet"}

    def meant(span: tuple[int, int], target: str) -> bool:
        before = {linked.word(i) for i in range(max(0, span[0] - 6), span[0])}
        if target not in _TREATED_WITH or not before:
            return False
        if linked.word(span[0] - 1) in against and any(linked.word(i) in after for i in range(span[1], span[1] + 3)):
            return True  # "wurde gegen Flöhe behandelt"
        if linked.word(span[0] - 1) in against:  # "treated against fleas", "when did we do Max for fleas"
            return bool(treated & before) or (span[0] - 1 in pets and bool(done & before))
        return span[0] in pets and bool(done & before)  # "when did we last do Max's fleas"

    mentions = tuple(
        replace(mention, kind="med", target=_TREATED_WITH[mention.target]) if meant(span, mention.target) else mention
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
    )
    return linked if mentions == linked.mentions else replace(linked, mentions=mentions)
