"""Hard floors that stand: no meal for a day, too little eaten, a device that cannot watch.

Said before anything else of the pet, in the words they were raised with, until somebody
answers. They are no statistics, and no mark of the owner's touches them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.said import Said, elsewhere, say
from gateway.ask.wording import clock_time, day
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.alarms import Urgency
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet
    from gateway.stored import FloorNotice

__all__ = ["say_floors", "standing"]


def _words(kind: str, pet: Pet) -> Said:
    return {
        "no_meal": say("No meal was seen at {pet}'s bowl", pet=pet),
        "half_usual": say("{pet} took less than half of the usual", pet=pet),
        "box_unused": say("{pet} went to the box and nothing came", pet=pet),
        "unwatched": say("I can't watch {pet} at the moment", pet=pet),
        "weight_loss": say("{pet} lost weight", pet=pet),
    }.get(kind, say("A limit was reached for {pet}", pet=pet))


def _urgent(urgency: str, pet: Pet) -> Said:
    """What a notice kept in English says to do, in other languages."""
    if urgency == Urgency.RED:
        return say("That can be an emergency. Call a vet or an emergency clinic now; don't wait for this page.")
    return say(
        "That is a reason to call your vet today; now, if {pet} is also weak, vomiting, breathing oddly or getting "
        "worse.",
        pet=pet,
    )


def standing(scene: Scene, pet: Pet, *, kinds: frozenset[str] | None = None) -> tuple[FloorNotice, ...]:
    """The pet's floors that hold at the asker's now and that nobody has answered."""
    return tuple(
        notice
        for notice in scene.reader.floor_notices(open_only=True)
        if notice.pet == pet.id
        and notice.raised_ms <= scene.now_ms
        and notice.answer is None
        and (kinds is None or notice.kind in kinds)
    )


def say_floors(scene: Scene, draft: Draft, pet: Pet, *, kinds: frozenset[str] | None = None) -> bool:
    """Say the floors that stand, with the records behind them. Returns whether there is one."""
    found = standing(scene, pet, kinds=kinds)
    for notice in found:
        since = day(local_day(notice.since_ms, scene.zones), year_of=scene.today)
        clock = clock_time(scene.local(notice.since_ms))
        what = _words(notice.kind, pet)
        text = say("{what}; the limit passed {since}, {clock}", what=what, since=since, clock=clock)
        draft.say(NoticeKind.SHORT, text, slot=notice.kind)
        draft.say(NoticeKind.TRIAGE, elsewhere(notice.text, _urgent(notice.urgency, pet)))
        measured = [ref for ref in notice.refs if ref.kind in ("event", "day")]
        if measured:
            draft.claim(
                "floor",
                EvidenceClass.MEASURED,
                say("Limit passed {since}, {clock}", since=since, clock=clock),
                cite="bowl" if notice.kind in ("no_meal", "half_usual") else "device",
                refs=measured,
                about=(f"pet:{pet.id}",),
            )
        draft.paragraph()
    return bool(found)
