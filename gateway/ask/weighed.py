"""What a device weighed, and what people logged of a level: each with its record.

A weighing is of a pet where the device served that pet alone then, or told it apart; one that may
be of two pets says nothing of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.figures import cite_of
from gateway.ask.said import Said, say, verbatim
from gateway.ask.sources import say_logged
from gateway.ask.wording import amount, clock_time, day
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet
    from gateway.ontology.vocabulary import Property
    from gateway.stored import DatedFrame, TextRecord

__all__ = ["last_weighing", "logged_level", "say_weighings"]

_REACH_MS = 400 * 86_400_000
_APART_MS = 7 * 86_400_000
"""An earlier weight is named where it is a week older: a litter box weighs several times a day."""


def _weighings(scene: Scene, pet: Pet) -> tuple[DatedFrame, ...]:
    """What counts as this pet's own weights up to now, by time."""
    rows = scene.reader.frames_of_kinds(("weight",), start_ms=scene.now_ms - _REACH_MS, end_ms=scene.now_ms + 1)
    alone = frozenset({pet.id})
    return tuple(
        row for row in rows if row.set_aside is None and scene.home.bindings_at(row.device, row.start_ms) == alone
    )


def last_weighing(scene: Scene, pet: Pet) -> DatedFrame | None:
    """The pet's last weight by a device, or None."""
    return max(_weighings(scene, pet), key=lambda row: (row.start_ms, row.ref), default=None)


def say_weighings(scene: Scene, draft: Draft, pet: Pet) -> bool:
    """Say the last weight by a device, with one at least a week older; whether there was any."""
    rows = _weighings(scene, pet)
    if not rows:
        return False
    last = rows[-1]
    earlier = [row for row in rows if row.start_ms <= last.start_ms - _APART_MS]
    for opening, row in (("last", last), *(("before", row) for row in earlier[-1:])):
        device = scene.home.device(row.device)
        at = clock_time(scene.local(row.start_ms))
        parts = {"weight": amount(int(row.fields[0]), "mg"), "when": _when(scene, row), "clock": at}
        draft.claim(
            f"weighed_{opening}",
            EvidenceClass.MEASURED,
            say("{pet} weighed {weight} on {when}, {clock}", pet=pet, **parts)
            if opening == "last"
            else say("Before that {weight} on {when}, {clock}", **parts),
            cite=cite_of(scene, (device,)),
            refs=(row.ref,),
            values=(Quantity("weight", int(row.fields[0]), "mg"),),
            about=(f"pet:{pet.id}", f"device:{device.id}"),
        )
    return True


def _when(scene: Scene, row: DatedFrame) -> Said:
    return day(local_day(row.start_ms, scene.zones), year_of=scene.today)


def logged_level(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> None:
    """What people logged last of a property, or what a device weighed since."""
    entries = [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.pet == pet.id and _logs(scene, entry, observed)
    ]
    weighed = last_weighing(scene, pet) if observed.id == "weight" else None
    if weighed is not None and (not entries or weighed.start_ms > (entries[-1].at_ms or 0)):
        say_weighings(scene, draft, pet)
        return
    if not entries:
        kind = scene.ontology.device_kinds[observed.captured_by[0]]
        draft.say(
            NoticeKind.SHORT,
            say("{pet}'s {series.is} not on file", pet=pet, series=observed),
            slot=observed.id,
            device=kind.id,
        )
        would = say("{device.a!u} would record it", device=kind) if kind.id != "people" else "Your log would record it"
        draft.say(NoticeKind.ABSENCE, would, slot=observed.id, device=kind.id)
        return
    last = entries[-1]
    assert last.at_ms is not None
    when = day(local_day(last.at_ms, scene.zones), year_of=scene.today)
    words = say("{text!u} on {when}, the last on file", text=verbatim(last.text), when=when)
    say_logged(draft, last, words, pet=pet.id)


def _logs(scene: Scene, entry: TextRecord, observed: Property) -> bool:
    kind = scene.ontology.log_kinds.get(entry.object or "")
    return kind is not None and kind.property == observed.id
