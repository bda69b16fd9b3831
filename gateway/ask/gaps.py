"""When a device was silent: from when until when, what it said around the gap, what helps.

A gap is never a zero. Its bounds are the last record before it and the first one after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gateway.ask.battery import battery_at
from gateway.ask.figures import compare_window
from gateway.ask.said import Part, Said, say
from gateway.ask.settle import look_at
from gateway.ask.wording import amount, clock_time, day, day_range, per_day, percent, weekday
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import SLOT_MS, add_days, local_day
from gateway.model import Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.model import Device, RecordRef

__all__ = ["Gap", "gap_in", "say_gap"]

_AROUND_DAYS = 7
_WORTH_MS = 6 * 3_600_000
"""A shorter silence is no event of its own; the days it spoiled are counted instead."""
_LOW_BATTERY = 100
"""Permille at which a flat battery is worth naming beside a gap."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A silence ``[start_ms, end_ms)`` of a device; ``end_ms`` is None while it lasts."""

    device: Device
    start_ms: int
    end_ms: int | None
    refs: tuple[RecordRef, ...]


def gap_in(scene: Scene, figure: Figure) -> Gap | None:
    """The longest silence that touches the figure's window, or None where none is worth naming."""
    if len(figure.devices) != 1:
        return None
    window, device = figure.window, figure.devices[0]
    first, last = add_days(window.first_date, -_AROUND_DAYS), add_days(window.last_date, _AROUND_DAYS)
    rows = scene.reader.days(figure.series, first, min(last, scene.today))
    heard = [
        row.start_ms + slot * SLOT_MS
        for row in rows
        for slot, covered in enumerate(row.covered)
        if covered > 0 and row.start_ms + slot * SLOT_MS < scene.now_ms
    ]
    if not heard:
        return None
    edges = [(before + SLOT_MS, after) for before, after in pairwise(heard)]
    edges.append((heard[-1] + SLOT_MS, scene.now_ms))
    touching = [(s, e) for s, e in edges if s < window.interval.end_ms and e > window.interval.start_ms]
    start, end = max(touching, key=lambda edge: (edge[1] - edge[0], -edge[0]), default=(0, 0))
    if end - start < _WORTH_MS:
        return None
    before = scene.reader.last_frame(device.id, before_ms=start + SLOT_MS)
    after = scene.reader.frames((device.id,), start_ms=max(start, end - SLOT_MS), end_ms=end + SLOT_MS)
    heard_on = {local_day(start - 1, scene.zones), local_day(end, scene.zones)}  # their rows say what was heard
    refs = (
        *(frame.ref for frame in (before, *after[:1]) if frame is not None),
        *(row.ref for row in rows if row.date in heard_on),
    )
    if before is not None and start - SLOT_MS <= before.end_ms <= start + SLOT_MS:
        start = before.end_ms
    lasting = end >= scene.now_ms
    return Gap(device, start, None if lasting else (after[0].start_ms if after else end), refs)


def say_gap(scene: Scene, draft: Draft, figure: Figure, *, asked: str | None) -> None:
    """Say that too little was heard to tell, from when until when, and what stands around it."""
    comparison, pet = figure.measured.comparison, figure.pet
    gap = gap_in(scene, figure)
    if gap is None:
        draft.say(
            NoticeKind.SHORT,
            say(
                "I can't tell: {pet}'s {series} was recorded on only {used} of {expected} days. What was not heard "
                "isn't zero",
                pet=pet,
                series=figure.observed,
                used=len(comparison.days_used),
                expected=comparison.days_expected,
            ),
            slot=figure.observed.id,
            device=figure.observed.captured_by[0],
        )
        look_at(scene, draft, figure.observed.captured_by[0])
        return
    kind = scene.ontology.device_kinds[gap.device.kind]
    lead = "I can't tell" if asked is None else say("I can't tell that {pet.he} did", pet=pet)
    parts: dict[str, Part] = {"lead": lead, "pet": pet, "device": kind, "begin": _when(scene, gap.start_ms)}
    draft.say(
        NoticeKind.SHORT,
        say("{lead}: {pet.his} {device} wasn't heard from {begin}. That gap isn't zero", **parts)
        if gap.end_ms is None
        else say(
            "{lead}: {pet.his} {device} wasn't heard from {begin} to {end}. That gap isn't zero",
            end=_when(scene, gap.end_ms),
            **parts,
        ),
        slot=figure.observed.id,
        device=gap.device.kind,
    )
    draft.paragraph()
    _around(scene, draft, figure, gap)
    draft.paragraph()
    look_at(scene, draft, gap.device.kind)
    if figure.observed.id == "intake":
        draft.say(
            NoticeKind.CAUTION,
            say(
                "If you saw {pet} refuse food for a day yourself, that counts, whatever the bowl says: call your vet "
                "today",
                pet=pet,
            ),
            slot="gap",
        )
    else:
        own = say("What you saw of {pet} yourself counts, whatever the {device} says", pet=pet, device=kind)
        draft.say(NoticeKind.CAUTION, own, slot="gap")


def _when(scene: Scene, at_ms: int) -> Said:
    date = local_day(at_ms, scene.zones)
    return say(
        "{weekday} {day} {clock}",
        weekday=weekday(date),
        day=day(date, year_of=scene.today),
        clock=clock_time(scene.local(at_ms)),
    )


def _around(scene: Scene, draft: Draft, figure: Figure, gap: Gap) -> None:
    """The last battery before the gap, and the days after it against the pet's usual."""
    cite = scene.ontology.device_kinds[gap.device.kind].cite
    about = (f"pet:{figure.pet.id}", f"device:{gap.device.id}")
    if gap.refs:
        began = _when(scene, gap.start_ms)
        draft.claim(
            "silence",
            EvidenceClass.MEASURED,
            say("Last heard {begin}, and not again yet", begin=began)
            if gap.end_ms is None
            else say("Last heard {begin}, and again {end}", begin=began, end=_when(scene, gap.end_ms)),
            cite=cite,
            refs=gap.refs,
            values=(Quantity("from", gap.start_ms, "ms"), Quantity("to", gap.end_ms or scene.now_ms, "ms")),
            about=about,
        )
    battery = battery_at(scene.reader, gap.device.id, at_ms=gap.start_ms)
    if battery is not None and battery.permille is not None and battery.permille <= _LOW_BATTERY:
        draft.claim(
            "battery",
            EvidenceClass.MEASURED,
            say(
                "Battery was {level} on {when}",
                level=amount(battery.permille, "permille"),
                when=_when(scene, battery.at_ms),
            ),
            cite=cite,
            refs=(battery.ref,),
            values=(Quantity("battery", battery.permille, "permille"),),
            about=about,
        )
    if gap.end_ms is not None:
        _since(scene, draft, figure, add_days(local_day(gap.end_ms, scene.zones), 1))


def _since(scene: Scene, draft: Draft, figure: Figure, first: str) -> None:
    """The days since the gap, compared like any others."""
    if first > scene.today:
        return
    window = scene.window("SINCE_GAP", first, scene.today)
    later = compare_window(scene, figure.pet, figure.observed, window)
    if later is None or later.verdict is Verdict.CANNOT_TELL or not later.refs:
        return
    found = later.measured.comparison
    dates = day_range(window.first_date, window.last_date, year_of=scene.today)
    size = percent(found.change or 0.0)
    against = {
        Verdict.UP: say("{rate} above {pet.his} usual", rate=size, pet=figure.pet),
        Verdict.DOWN: say("{rate} below {pet.his} usual", rate=size, pet=figure.pet),
    }.get(later.verdict, say("within {pet.his} usual", pet=figure.pet))
    draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        say(
            "Since then {rate}, {against}, {dates}",
            rate=per_day(found.now or 0.0, later.measured.unit),
            against=against,
            dates=dates,
        ),
        cite=scene.ontology.device_kinds[figure.devices[0].kind].cite,
        refs=later.refs,
        values=tuple(value for value in later.values() if value.name != "verdict"),  # seen, not judged
        window=window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
    )
