"""Whose medicine a sentence speaks of: a person's, another animal's, or the pet's own.

In: a ``Linked`` question, who is asked about, the word lists ``whose`` of the safety tables.
Out: ``med:human``, ``med:other_pet``, or None where it is the pet's own or nobody's. A rule, no
list of drugs: a word for medicine, and who owns it. Says nothing of what a medicine does.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from gateway.ask.linking import Linked
from gateway.ask.poisons import is_the_askers
from gateway.ask.subjects import Who
from gateway.ontology.hazards import Hazards

__all__ = ["medicine_of_another"]

HUMAN, OTHER_PET = "med:human", "med:other_pet"

_OWNER_WITHIN = 3
"""Words from the owner to the medicine: "our old dog's little heart" tablets."""

_AFTER_WITHIN = 6
"""Words from the medicine to its owner: "the tablets that were meant for his" brother."""

_PARTED_BY = frozenset({"for", "with", "to", "and", "of", "the", "a", "an", "his", "her", "its", "this", "that"})
"""Words that no owner reaches over: "my husband blames the" prednisone."""

Words = Mapping[str, frozenset[str]]


def medicine_of_another(linked: Linked, who: Who, hazards: Hazards) -> str | None:
    """Whose medicine a pet has, or is to have, where it is not its own."""
    words = hazards.words["whose"]
    if not (who.pets or who.hosts or who.pronoun) or not any(token.text in words["fetch"] for token in linked.tokens):
        return None
    places = [at for at in _medicines(linked, words) if not is_the_askers(linked, (at - 1, at + 1), hazards)]
    if not places:
        return None
    if any(_is_persons(linked, at, words) for at in places) or _for_a_persons_illness(linked, words):
        return HUMAN
    return OTHER_PET if any(_is_another_animals(linked, at, words) for at in places) else None


def _medicines(linked: Linked, words: Words) -> list[int]:
    """Places of words for medicine, and of medicines that have a name."""
    named = [
        span[0]
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
        if mention.kind in {"med", "own_med"} and mention.target != "med:vaccine"
    ]
    said = [index for index, token in enumerate(linked.tokens) if token.text in words["medicine"]]
    vague = [index for index, token in enumerate(linked.tokens) if token.text in words["substitutes"]]
    ill = _for_a_persons_illness(linked, words)
    return sorted({*named, *said, *(vague if ill or _given_to_me(linked, words) else ())})


def _given_to_me(linked: Linked, words: Words) -> bool:
    """Whether a doctor, or anybody but a vet, gave it to the asker."""
    said = [token.text for token in linked.tokens]
    if bool(set(said) & words["given_me"]) and "me" in said:
        return True
    handed = any(a in words["handed"] and b == "me" for a, b in pairwise(said))
    return handed and not set(said) & words["vets"]


def _is_persons(linked: Linked, at: int, words: Words) -> bool:
    """Whether "my", "mum's", "a human" owns it: not "my dog's", nor "my vet's"."""
    if _given_to_me(linked, words):
        return True
    for index in range(at - 1, max(-1, at - 2 - _OWNER_WITHIN), -1):
        word = linked.word(index)
        if not word[:1].isalpha():
            return False
        if word in words["people"]:
            return True
        if word in words["mine"]:
            return not any(_is_animal(linked, i, words) for i in range(index + 1, at))
        if word in _PARTED_BY:
            break
    after = [linked.word(i) for i in range(at + 1, at + 1 + _AFTER_WITHIN)]
    left = [i for i, word in enumerate(after[:-1]) if word in words["meant_for"]]
    for i in left:
        owner = [word for word in after[i + 1 : i + 3] if word]
        mine = bool(owner) and owner[0] in words["mine"]
        animal = any(_is_animal(linked, at + 1 + i + step, words) for step in (1, 2, 3))
        persons = words["people"] | words["relatives"]
        if not animal and ((mine and after[i] == "from") or not persons.isdisjoint(owner)):
            return True
    return False


def _for_a_persons_illness(linked: Linked, words: Words) -> bool:
    """Whether what it is for is a person's: "something for gout", "for my knee", "left from my tooth"."""
    said = f" {' '.join(token.text for token in linked.tokens)} "
    return any(f" {link} {ill} " in said for ill in words["people_ills"] for link in ("for", "from", "off"))


def _is_animal(linked: Linked, index: int, words: Words) -> bool:
    word = linked.word(index)
    if word in words["animals"] or word.removesuffix("'s") in {"vet", "tierarzt", "veterinario"}:
        return True
    kinds = {"pet", "species", "species_plural", "breed"}
    return any(
        span[0] <= index < span[1] and mention.kind in kinds
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
    )


def _is_another_animals(linked: Linked, at: int, words: Words) -> bool:
    """Whether it belongs to an animal that is not the one who has it."""
    lead = [linked.word(i) for i in range(max(0, at - 2 - _OWNER_WITHIN), at)]
    if any(word in words["kindred"] for word in lead):
        return True
    animals = [i for i in range(max(0, at - 1 - _OWNER_WITHIN), at) if linked.word(i) in words["animals"]]
    after = range(at + 1, at + 1 + _AFTER_WITHIN)
    joined = any(linked.word(i) in words["meant_for"] for i in after)
    if joined and any(linked.word(i) in words["kinsfolk"] for i in after):
        return True
    animals += [i for i in after if joined and linked.word(i) in words["animals"]]
    if any(_is_others(linked, i, words) for i in animals):
        return True
    return _another_pets(linked, at)


def _is_others(linked: Linked, index: int, words: Words) -> bool:
    """Whether "the dog's" is not the pet that is asked about, who has a name: nobody calls one animal both."""
    qualified = any(linked.word(i) in words["others"] for i in range(max(0, index - 3), index))
    return qualified or bool(linked.targets("pet"))


def _another_pets(linked: Linked, at: int) -> bool:
    """Whether another pet of the household owns it: "Can Max have Bella's Apoquel?"."""
    pets = [
        (span, mention) for span, mention in zip(linked.spans, linked.mentions, strict=True) if mention.kind == "pet"
    ]
    owned = [(span, mention.target) for span, mention in pets if linked.word(span[1] - 1).endswith("'s")]
    owners = {target for span, target in owned if 0 <= at - span[1] <= _OWNER_WITHIN}
    others = {mention.target for span, mention in pets if span[1] <= at and (span, mention.target) not in owned}
    return bool(owners) and bool(others - owners) and not linked.has("who", "compare")
