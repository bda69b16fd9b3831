"""Too early to know a usual: how much is recorded, what is there so far, and when it can be told."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from gateway.ask.figures import Total, cite_of, total_of
from gateway.ask.said import Part, Said, say, verbatim
from gateway.ask.settle import told_from
from gateway.ask.wording import amount, clock_time, day, day_range, usual_of
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import SLOT_MS, add_days, local_day
from gateway.measure.outlook import outlook
from gateway.model import RecordRef

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.stored import DayRow

__all__ = ["say_thin"]

_SHOWN_DAYS = 14
_LEAST_DAYS = 3


def say_thin(scene: Scene, draft: Draft, figure: Figure) -> None:
    """Days recorded, the dates of a first and a firm comparison, and the figures so far."""
    grid, window = figure.measured.grid, figure.window
    told = outlook(grid, figure.measured.comparison, window.first_date, window.last_date)
    recorded = int(grid.usable().sum())
    ahead = told.tell_on is not None and told.tell_on > scene.today  # of a time long past there is nothing to wait for
    dates = say(" First comparison {day}", day=day(told.tell_on or "", year_of=scene.today)) if ahead else ""
    later = ahead and told.firm_on is not None and told.firm_on != told.tell_on
    firm = say(", a firm one {day}", day=day(told.firm_on or "", year_of=scene.today)) if later else ""
    draft.say(
        NoticeKind.SHORT,
        say(
            "Too early to know {pet.his} usual: {recorded} recorded.{dates}{firm}",
            pet=figure.pet,
            recorded=_recorded(recorded, night=figure.observed.night_only),
            dates=dates,
            firm=firm,
        ),
        slot=figure.observed.id,
    )
    if not ahead:
        needed = figure.measured.comparison.baseline_needed
        told_from(scene, draft, figure.observed.id, tell_on=told.tell_on, needed=needed)
    draft.paragraph()
    whole = scene.window("SO_FAR", add_days(scene.today, 1 - _SHOWN_DAYS), scene.today)
    total = total_of(scene, figure.pet, figure.observed, whole)
    if total is not None:
        _so_far(scene, draft, total)
        if not figure.observed.night_only:
            _today(scene, draft, total)
    if figure.observed.id == "intake":
        draft.paragraph()
        draft.say(NoticeKind.NEXT, say("It helps to log {pet.his} weight today", pet=figure.pet))
        draft.say(NoticeKind.CAUTION, say("Call your vet if {pet} is weak or refuses food", pet=figure.pet))


def _recorded(count: int, *, night: bool) -> Said:
    if night:
        return say("{count} night", count=count) if count == 1 else say("{count} nights", count=count)
    return say("{count} day", count=count) if count == 1 else say("{count} days", count=count)


def _so_far(scene: Scene, draft: Draft, total: Total) -> None:
    """The range and middle of the full days, or nights."""
    found, unit = total.aggregate, total.observed.unit
    if len(found.full_days) < _LEAST_DAYS or found.least is None or found.most is None:
        return
    middle = median(found.held)
    parts: dict[str, Part] = {
        "least": usual_of(found.least, found.most, unit),
        "most": amount(found.most, unit),
        "pet": total.pet,
        "count": len(found.full_days),
        "middle": amount(middle, unit),
        "dates": day_range(found.full_days[0], found.full_days[-1], year_of=scene.today),
    }
    draft.claim(
        "so_far",
        EvidenceClass.MEASURED,
        say("{least} to {most} on {pet.his} {count} nights, middle {middle}, {dates}", **parts)
        if total.observed.night_only
        else say("{least} to {most} on {pet.his} {count} full days, middle {middle}, {dates}", **parts),
        cite=cite_of(scene, total.devices),
        refs=total.full_refs,
        values=(
            Quantity("least", found.least, unit),
            Quantity("most", found.most, unit),
            Quantity("middle", middle, unit),
            Quantity("days", len(found.full_days), "days"),
        ),
        window=total.window,
        about=(f"pet:{total.pet.id}",),
    )


def _today(scene: Scene, draft: Draft, total: Total) -> None:
    """Today up to now beside the same hours of the full days."""
    today = [row for row in total.rows if row.date == scene.today]
    full = [row for row in total.rows if row.date in total.aggregate.full_days]
    if not today or len(full) < _LEAST_DAYS:
        return
    until = max(0, (scene.now_ms - today[0].start_ms) // SLOT_MS)
    before = [_by(row, until) for row in full]
    unit, now = total.observed.unit, _by(today[0], until)
    draft.claim(
        "today_so_far",
        EvidenceClass.MEASURED,
        say(
            "Today {now} by {clock}; by that hour it was {least} to {most} before{meal}",
            now=amount(now, unit),
            clock=clock_time(scene.local(scene.now_ms)),
            least=usual_of(min(before), max(before), unit),
            most=amount(max(before), unit),
            meal=_last_meal(scene, total),
        ),
        cite=cite_of(scene, total.devices),
        refs=(today[0].ref, *(row.ref for row in full), *_last_meal_refs(scene, total)),
        values=(
            Quantity("now", now, unit),
            Quantity("least", min(before), unit),
            Quantity("most", max(before), unit),
        ),
        window=total.window,
        about=(f"pet:{total.pet.id}",),
    )


def _by(row: DayRow, slots: int) -> int:
    return sum(row.sums[:slots])


def _last_meal_refs(scene: Scene, total: Total) -> tuple[RecordRef, ...]:
    if total.observed.id != "intake" or len(total.devices) != 1:
        return ()
    last = scene.reader.last_frame(total.devices[0].id, before_ms=scene.now_ms, kind="meal")
    return () if last is None else (last.ref,)


def _last_meal(scene: Scene, total: Total) -> Said:
    for ref in _last_meal_refs(scene, total):
        frame = scene.reader.frame(ref)
        if frame is not None:
            date = local_day(frame.start_ms, scene.zones)
            clock = clock_time(scene.local(frame.start_ms))
            if date == scene.today:
                return say("; last meal {clock}", clock=clock)
            return say("; last meal {day}, {clock}", day=day(date, year_of=scene.today), clock=clock)
    return verbatim("")
