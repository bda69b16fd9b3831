"""What a device weighed: a pet's last weights by a scale or a litter box that knew it, each with its record.

A weighing is of a pet where the device served that pet alone then, or told it apart; one that may
be of two pets says nothing of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.figures import cite_of
from gateway.ask.said import Said, say
from gateway.ask.wording import amount, clock_time, day
from gateway.dialogue import EvidenceClass, Quantity
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet
    from gateway.stored import DatedFrame

__all__ = ["last_weighing", "say_weighings"]

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
