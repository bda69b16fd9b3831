"""What is on file with a date in a stretch of time: foods, medicines, treatments, stays, visits, devices, log, notes.

In goes a pet and an interval; out come dated things, oldest first, each with its record. Whether
one of them has to do with anything is not asked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.said import Said, elsewhere, known, own_words, say, verbatim
from gateway.ask.sources import cite, class_of, quote, say_logged
from gateway.ask.wording import day, first_lower
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Interval, Link, Pet
    from gateway.stored import TextRecord

__all__ = ["EXPOSED", "Dated", "dated_in", "entries_of", "say_entry", "short_words"]

EXPOSED = frozenset({"ate", "takes", "treated_with", "was_at", "visited_by", "uses_device"})
"""What a pet has, takes or meets, with a first and perhaps a last day."""
_FOOD, _DEVICE = "ate", "uses_device"
_LONGEST_WORDS = 4
_PLAIN = {"ate": "the food", "was_at": "a stay", "visited_by": "a visitor", "uses_device": "a device"}


@dataclass(frozen=True, slots=True)
class Dated:
    """One thing that happened at ``at_ms``: links that began or ended then, or a text somebody wrote."""

    at_ms: int
    links: tuple[Link, ...]
    entry: TextRecord | None


def dated_in(scene: Scene, pet: Pet, span: Interval) -> tuple[Dated, ...]:
    """Everything dated in ``span`` (both ends in), oldest first; one food in another's place is one thing.

    The food, or the device, a pet had from the first is no change. Links the owner marked wrong
    are left out. What a device measures is not listed: it is no thing that happened.
    """
    mine = [
        link
        for link in scene.links_of(pet.id)
        if link.edge.relation in EXPOSED and link.evidence and not link.marked_wrong
    ]
    moments: dict[tuple[int, str], list[Link]] = {}
    for link in mine:
        for at_ms in (link.edge.valid_from_ms, link.edge.valid_to_ms):
            if at_ms is not None and span.start_ms <= at_ms <= min(span.end_ms, scene.now_ms):
                first = at_ms == link.edge.valid_from_ms and _is_first(link, mine)
                if not first:
                    key = link.edge.relation if link.edge.relation in (_FOOD, _DEVICE) else link.edge.head.name
                    moments.setdefault((at_ms, key), []).append(link)
    told = {piece.record for links in moments.values() for link in links for piece in link.evidence}
    found = [Dated(at_ms, tuple(_in_order(links)), None) for (at_ms, _), links in moments.items()]
    for entry in scene.reader.texts(("log", "note"), until_ms=scene.now_ms, pet=pet.id):
        inside = entry.at_ms is not None and span.start_ms <= entry.at_ms <= span.end_ms
        if inside and entry.ref not in told and entry.pet in (None, pet.id):
            found.append(Dated(entry.at_ms or 0, (), entry))
    return tuple(sorted(found, key=_by_time))


def _by_time(one: Dated) -> tuple[int, str]:
    name = one.links[0].edge.head.name if one.links else "" if one.entry is None else one.entry.ref.text
    return one.at_ms, name


def _is_first(link: Link, mine: list[Link]) -> bool:
    """Whether a food or device is the first of its kind on file: then nothing is known to have changed."""
    if link.edge.relation not in (_FOOD, _DEVICE):
        return False
    start = link.edge.valid_from_ms or 0
    return not any(
        other.edge.relation == link.edge.relation and (other.edge.valid_from_ms or 0) < start for other in mine
    )


def _in_order(links: list[Link]) -> list[Link]:
    return sorted(dict.fromkeys(links), key=lambda link: (link.edge.valid_from_ms or 0, link.edge.head.name))


def entries_of(scene: Scene, pet: Pet, subjects: tuple[str, ...]) -> tuple[TextRecord, ...]:
    """The log entries of the kinds named as ``event:...`` that no link stands for (a bath, fireworks), oldest first."""
    kinds = {subject.partition(":")[2] for subject in subjects if subject.startswith("event:")}
    bare = {name for name in kinds if (kind := scene.ontology.log_kinds.get(name)) and kind.relation is None}
    return tuple(
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.object in bare and entry.at_ms is not None
    )


def short_words(scene: Scene, one: Dated) -> Said:
    """A dated thing in a few words: "the food on Jul 5", "visitor on Jul 6"."""
    when = day(local_day(one.at_ms, scene.zones), year_of=scene.today)
    if one.entry is not None:
        title = " ".join(one.entry.title.split())
        plain = "a vet's note" if one.entry.ref.kind == "note" else "a log entry"
        few = one.entry.ref.kind == "log" and len(title.split()) <= _LONGEST_WORDS
        return say(
            "{what} on {when}", what=elsewhere(first_lower(title), own_words(title)) if few else plain, when=when
        )
    link = one.links[-1]
    if link.edge.relation in (_FOOD, _DEVICE):
        return say("{what} on {when}", what=_PLAIN[link.edge.relation], when=when)
    head = link.edge.head.name
    name = scene.reader.vertex_labels().get(head, head.partition(":")[2].replace("_", " "))
    if one.at_ms == link.edge.valid_to_ms:
        return say("{what} until {when}", what=first_lower(known(name)), when=when)
    return say("{what} on {when}", what=first_lower(known(name)), when=when)


def say_entry(scene: Scene, draft: Draft, entry: TextRecord) -> None:
    """A log entry or note as a claim: its own words with its day."""
    when = day(local_day(entry.at_ms or 0, scene.zones), year_of=scene.today)
    is_note, words = entry.ref.kind == "note", verbatim(" ".join(entry.text.split()))
    if not is_note:
        say_logged(draft, entry, say("{text!u} on {when}", text=words, when=when), pet=entry.pet)
        return
    draft.claim(
        "record",
        class_of(entry.ref),
        quote(entry.text),
        cite=cite(scene, entry.ref),
        refs=(entry.ref,),
        about=() if entry.pet is None else (f"pet:{entry.pet}",),
    )
