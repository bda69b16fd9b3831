"""What the household's own record says: age, breed, sex, the vet, the food of now, what serves a pet.

In goes a question whose rule names the fact; out come claims that cite the record an owner
entered, or that it is not on file and where to enter it. Nothing is guessed from a breed or
a measurement.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from gateway.ask.blame import say_exposures
from gateway.ask.said import Said, known, say, verbatim
from gateway.ask.settle import pick_bag
from gateway.ask.sources import dated_by
from gateway.ask.wording import count_word, day, joined, listed
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.graph.adjacency import is_live

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Link, Person, Pet
    from gateway.stored import TextRecord

__all__ = ["ADD", "age_months", "fed_between", "fed_now", "household_fact"]

_CITE = "household record"
_YEARS_FROM_MONTHS = 24
_FIRST_MS = -(2**62)
ADD = "To add it: write it into the household file, then scentwalk household import FILE.toml"
"""How what the household says of itself comes in."""


def age_months(pet: Pet, today: str) -> int | None:
    """Whole months from the pet's birth to the local ISO date ``today``; None without a birth date."""
    if pet.born is None:
        return None
    born, now = date.fromisoformat(pet.born), date.fromisoformat(today)
    return max(0, (now.year - born.year) * 12 + now.month - born.month - (now.day < born.day))


def household_fact(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...]) -> None:
    """Answer "how old is he?", "who is our vet?", "which food does he get?" from what is on file."""
    name = question.rule.removeprefix("fact_")
    if name in ("vet", "clinic"):
        _people(scene, draft, name)
    elif name == "pets":
        _everybody(scene, draft)
    else:
        for pet in pets or scene.home.pets:
            if name in _OF_PET:
                _of_pet(scene, draft, pet, name)
            elif name in ("devices", "wears"):
                _devices(scene, draft, pet, worn_only=name == "wears")
            else:
                _food(scene, question, draft, pet, kind_asked=name == "wet_dry")


# --- a pet's own record -------------------------------------------------------------------------------


def _record_of(scene: Scene, key: str, *, pet: str | None = None, says: str = "") -> TextRecord | None:
    """The household's record of this key that holds these words; None where none is kept."""
    found = [
        entry
        for entry in scene.reader.texts(("household",), until_ms=scene.now_ms, pet=pet)
        if entry.ref.key.startswith(f"{key}@") and says in entry.text
    ]
    return found[-1] if found else None


def _stated(scene: Scene, pet: Pet) -> TextRecord | None:
    """The record of the pet as it is entered now: the evidence of its own species."""
    for link in scene.links_of(pet.id):
        if link.edge.relation == "of_species" and is_live(link):
            return scene.reader.text_record(link.evidence[0].record)
    return None


def _of_pet(scene: Scene, draft: Draft, pet: Pet, name: str) -> None:
    found, record = _OF_PET[name](pet, scene.today), _stated(scene, pet)
    if found is None or record is None:
        none = say("{pet}'s {fact} is not on file", pet=pet, fact=_NAMES[name])
        draft.say(NoticeKind.SHORT, none, slot=name, device="people")
        draft.say(NoticeKind.NEXT, ADD, slot=name)
        return
    text, values = found
    draft.claim(
        "fact",
        EvidenceClass.RECORDED,
        say("{pet} {fact}", pet=pet, fact=text),
        cite=_CITE,
        refs=(record.ref,),
        values=values,
        about=(f"pet:{pet.id}",),
    )


def _age(pet: Pet, today: str) -> tuple[Said, tuple[Quantity, ...]] | None:
    months = age_months(pet, today)
    if months is None or pet.born is None:
        return None
    long = months >= _YEARS_FROM_MONTHS
    count, unit = (months // 12, "years") if long else (months, "months")
    values = (Quantity("age", count, unit), Quantity("born", pet.born, "date"))
    return say("is {age} old, born on {when}", age=_old(count, unit), when=_born(pet.born)), values


def _birthday(pet: Pet, today: str) -> tuple[Said, tuple[Quantity, ...]] | None:
    found = _age(pet, today)
    if found is None or pet.born is None:
        return None
    age = _old(int(found[1][0].value), found[1][0].unit)
    return say("was born on {when} and is {age} old", when=_born(pet.born), age=age), found[1]


def _born(iso: str) -> Said:
    """A day of birth, always with its year."""
    return day(iso, year_of="0000")


def _old(count: int, unit: str) -> Said:
    if unit == "years":
        return say("{count} year", count=count) if count == 1 else say("{count} years", count=count)
    return say("{count} month", count=count) if count == 1 else say("{count} months", count=count)


def _breed(pet: Pet, _today: str) -> tuple[Said, tuple[Quantity, ...]] | None:
    if pet.breed is None:
        return None
    breed = known(pet.breed)
    values = (Quantity("breed", pet.breed, "word"), Quantity("species", pet.species, "word"))
    if pet.species in pet.breed:
        return say("is a {breed}", breed=breed), values
    return say("is a {breed}, a {species}", breed=breed, species=known(pet.species)), values


_SEX = {"male": "male", "m": "male", "female": "female", "f": "female"}


def _sex(pet: Pet, _today: str) -> tuple[Said, tuple[Quantity, ...]] | None:
    sex = _SEX.get(pet.sex or "")
    if sex is None:
        return None
    return say("is {what}", what=sex), (Quantity("sex", str(pet.sex), "word"),)


def _neutered(pet: Pet, _today: str) -> tuple[Said, tuple[Quantity, ...]] | None:
    if pet.neutered is None:
        return None
    word = "neutered" if pet.neutered else "not neutered"
    sex = _SEX.get(pet.sex or "")
    values = [Quantity("neutered", word, "word"), *(() if sex is None else (Quantity("sex", str(pet.sex), "word"),))]
    if sex is None:
        return say("is {what}", what=word), tuple(values)
    return say("is {what} ({sex})", what=word, sex=sex), tuple(values)


_OF_PET: dict[str, Callable[[Pet, str], tuple[Said, tuple[Quantity, ...]] | None]] = {
    "age": _age,
    "birthday": _birthday,
    "breed": _breed,
    "sex": _sex,
    "neutered": _neutered,
}
_NAMES = {
    "age": "birth date",
    "birthday": "birth date",
    "breed": "breed",
    "sex": "sex",
    "neutered": "neutering",
}


def _everybody(scene: Scene, draft: Draft) -> None:
    """Who lives here, each with the record of it."""
    count = len(scene.home.pets)
    if count > 1:
        draft.say(NoticeKind.SHORT, say("{count!u} pets live here, as entered", count=count_word(count)))
    told = 0
    for pet in scene.home.pets:
        record = _stated(scene, pet)
        if record is not None:
            told += 1
            breed = pet.breed or pet.species
            kind = [known(breed)] if pet.species in breed else [known(breed), known(pet.species)]
            values = tuple(Quantity(n, v, "word") for n, v in (("species", pet.species), ("breed", pet.breed)) if v)
            draft.claim(
                "fact",
                EvidenceClass.RECORDED,
                say("{pet}: {kind}", pet=pet, kind=listed(kind, between=", ")),
                cite=_CITE,
                refs=(record.ref,),
                values=values,
                about=(f"pet:{pet.id}",),
            )
    if not told:
        draft.say(NoticeKind.SHORT, "No pet is on file yet", slot="pet", device="people")
        draft.say(NoticeKind.NEXT, ADD, slot="pet")


# --- people -------------------------------------------------------------------------------------------


def _people(scene: Scene, draft: Draft, asked: str) -> None:
    """The vet, or the emergency clinic, with the number as stored."""
    vets = [person for person in scene.home.people if person.role == "vet"]
    clinics = [person for person in scene.home.people if person not in vets and person.is_called]
    wanted, other = (vets, clinics) if asked == "vet" else (clinics, vets)
    if not wanted:
        word = "vet" if asked == "vet" else "emergency clinic"
        draft.say(NoticeKind.SHORT, say("No {what} is on file", what=word), slot=asked, device="people")
    for person in (*wanted, *other[: 0 if wanted else None]):
        _person(scene, draft, person)
    if not wanted:
        draft.say(NoticeKind.NEXT, ADD, slot=asked)
    for person in wanted:
        if person.phone is None:
            none = say("No number of {name} is on file. {add}", name=verbatim(person.name), add=ADD)
            draft.say(NoticeKind.ABSENCE, none, slot="phone")


def _person(scene: Scene, draft: Draft, person: Person) -> None:
    phone = "" if person.phone is None else f", {person.phone}"
    text = say("{who} ({role})", who=verbatim(f"{person.name}{phone}"), role=known(person.role))
    record = _record_of(scene, f"person-{person.id}", says=f"{person.name}: {person.role}{phone}")
    if record is None:  # entered before the hub kept a record of people: as stored, without one to open
        draft.say(NoticeKind.SHORT, text, slot="person")
        return
    named = (("name", person.name), ("role", person.role), ("phone", person.phone))
    draft.claim(
        "fact",
        EvidenceClass.RECORDED,
        text,
        cite=_CITE,
        refs=(record.ref,),
        values=tuple(Quantity(name, value, "word") for name, value in named if value is not None),
        about=(f"person:{person.id}",),
    )


# --- what serves a pet --------------------------------------------------------------------------------


def _devices(scene: Scene, draft: Draft, pet: Pet, *, worn_only: bool) -> None:
    """The devices bound to the pet now, each with the record of it."""
    kinds = scene.ontology.device_kinds
    mine = [
        link
        for link in scene.links_of(pet.id)
        if link.edge.relation == "uses_device" and is_live(link) and _holds_at(link, scene.now_ms)
    ]
    devices = {device.id: device for device in scene.home.devices}
    found = [
        (devices[name], link)
        for link in mine
        if (name := link.edge.head.name.partition(":")[2]) in devices
        and (not worn_only or kinds[devices[name].kind].wearable)
    ]
    if not found:
        none = (
            say("{pet} wears no device that is on file", pet=pet)
            if worn_only
            else say("{pet} has no device that is on file", pet=pet)
        )
        draft.say(NoticeKind.SHORT, none, slot="device", device="people")
        draft.say(NoticeKind.NEXT, ADD, slot="device")
        return
    names = joined([verbatim(device.name or device.id) for device, _ in found])
    draft.claim(
        "fact",
        EvidenceClass.RECORDED,
        say("{pet} wears {devices}", pet=pet, devices=names)
        if worn_only
        else say("{pet} has {devices}", pet=pet, devices=names),
        cite=_CITE,
        refs=tuple(link.evidence[0].record for _, link in found),
        values=tuple(Quantity(f"device {device.id}", device.id, "word") for device, _ in found),
        about=(f"pet:{pet.id}",),
    )


def _holds_at(link: Link, at_ms: int) -> bool:
    start, end = link.edge.valid_from_ms, link.edge.valid_to_ms
    return (start is None or start <= at_ms) and (end is None or at_ms < end)


# --- the food -----------------------------------------------------------------------------------------


def fed_now(scene: Scene, pet: Pet) -> tuple[Link, ...]:
    """What the pet is given now, oldest first: from its bowls, and as the owner stated it."""
    return fed_between(scene, pet, scene.now_ms, scene.now_ms + 1)


def fed_between(scene: Scene, pet: Pet, start_ms: int, end_ms: int) -> tuple[Link, ...]:
    """What the pet was given at any time in ``[start_ms, end_ms)``, oldest first.

    A food written into the log by hand lasts until anything later is on file: nobody writes
    down an end.
    """
    ate = [link for link in scene.links_of(pet.id) if link.edge.relation == "ate" and is_live(link)]
    ate.sort(key=lambda link: (_start(link), link.edge.head.name))
    held = []
    for at, link in enumerate(ate):
        end = link.edge.valid_to_ms
        if end is None and _by_hand(scene, link) and at + 1 < len(ate):
            end = _start(ate[at + 1])
        if _start(link) < end_ms and (end is None or end > start_ms):
            held.append(link)
    return tuple(held)


def _start(link: Link) -> int:
    return _FIRST_MS if link.edge.valid_from_ms is None else link.edge.valid_from_ms


def _by_hand(scene: Scene, link: Link) -> bool:
    piece = dated_by(scene, link)
    return piece is not None and piece.record.kind == "log" and not piece.record.key.startswith("food-")


def _food(scene: Scene, question: Question, draft: Draft, pet: Pet, *, kind_asked: bool) -> None:
    """What the pet gets now, or got in the time asked about."""
    window = question.window
    span = (scene.now_ms, scene.now_ms + 1) if window is None else (window.interval.start_ms, window.interval.end_ms)
    held = fed_between(scene, pet, *span)
    none = (
        say("What {pet} gets now is not on file", pet=pet)
        if window is None
        else say("What {pet} gets then is not on file", pet=pet)
    )
    if kind_asked:
        draft.say(
            NoticeKind.SHORT,
            say("Whether {pet.he} gets dry or wet food no record says; this is what is on file", pet=pet)
            if held
            else none,
            slot="food",
            device="food_bowl",
        )
    elif not held:
        draft.say(NoticeKind.SHORT, none, slot="food", device="food_bowl")
    if not held:
        pick_bag(draft)
    say_exposures(scene, draft, pet, held)
