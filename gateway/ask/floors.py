"""Hard floors that stand: no meal for a day, too little eaten, a device that cannot watch.

Said before anything else of the pet, in the words they were raised with, until somebody
answers. They are no statistics, and no mark of the owner's touches them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.wording import clock_time, day
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet
    from gateway.stored import FloorNotice

__all__ = ["say_floors", "standing"]

_WORDS = {
    "no_meal": "No meal was seen at {name}'s bowl",
    "half_usual": "{name} took less than half of the usual",
    "box_unused": "{name} went to the box and nothing came",
    "unwatched": "I can't watch {name} at the moment",
    "weight_loss": "{name} lost weight",
}


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
        what = _WORDS.get(notice.kind, "A limit was reached for {name}").format(name=pet.name)
        draft.say(NoticeKind.SHORT, f"{what}; the limit passed {since}, {clock}", slot=notice.kind)
        draft.say(NoticeKind.TRIAGE, notice.text)
        measured = [ref for ref in notice.refs if ref.kind in ("event", "day")]
        if measured:
            draft.claim(
                "floor",
                EvidenceClass.MEASURED,
                f"Limit passed {since}, {clock}",
                cite="bowl" if notice.kind in ("no_meal", "half_usual") else "device",
                refs=measured,
                about=(f"pet:{pet.id}",),
            )
        draft.paragraph()
    return bool(found)
