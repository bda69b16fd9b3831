"""Two days side by side: both figures, each with its records, and what lies between them.

A day that is not over is held against the same hours of the other: half a day is no less than a
whole one. Nothing is compared with a usual here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.ask.amounts import Part, part_of
from gateway.ask.change import not_captured
from gateway.ask.figures import cite_of
from gateway.ask.said import Said, say
from gateway.ask.settle import look_at
from gateway.ask.wording import amount, clock_time, day, joined
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.model import Interval

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet, Window
    from gateway.ontology.vocabulary import Property

__all__ = ["are_two_days", "two_days"]

_ALIKE = 0.10
"""Two figures within a tenth of the larger are not worth calling different."""
_HEARD = 0.6
"""A day heard for less is told as such: the same share from which a day counts as covered."""


def are_two_days(windows: tuple[Window, Window]) -> bool:
    """Whether both windows are single local days, and not the same one."""
    return all(window.first_date == window.last_date for window in windows) and (
        windows[0].first_date != windows[1].first_date
    )


def two_days(scene: Scene, draft: Draft, pet: Pet, observed: Property, windows: tuple[Window, Window]) -> None:
    """Answer "more today than yesterday?": the difference first, then each day's figure with its records."""
    if not_captured(scene, draft, pet, observed):
        return
    open_day = windows[0].last_date == scene.today
    cut = _same_hours(windows) if open_day else windows
    series = scene.ontology.series_id(pet.id, observed.id)
    parts = [part_of(scene, series, window) for window in cut]
    unheard = [window for window, part in zip(cut, parts, strict=True) if part.covered_ms == 0 and part.total == 0]
    until = clock_time(scene.local(cut[0].interval.end_ms)) if open_day else None
    if unheard:
        named = joined([day(window.first_date, year_of=scene.today) for window in unheard])
        draft.say(
            NoticeKind.SHORT,
            say(
                "I can't tell: nothing was recorded of {pet}'s {series} on {days}; that is not zero",
                pet=pet,
                series=observed,
                days=named,
            ),
            slot=observed.id,
            device=observed.captured_by[0],
        )
        look_at(scene, draft, observed.captured_by[0])
    else:
        draft.say(NoticeKind.SHORT, _difference(scene, observed, cut, parts, until))
    draft.paragraph()
    for window, part in zip(cut, parts, strict=True):
        if window not in unheard:
            _figure(scene, draft, pet, observed, (window, part, until))
    if open_day:
        draft.say(NoticeKind.CAUTION, "Today is not over; both are told up to the same hour")


def _same_hours(windows: tuple[Window, Window]) -> tuple[Window, Window]:
    """The earlier day cut to as much of it as there has been of the later one."""
    later, earlier = windows
    end_ms = min(earlier.interval.start_ms + later.interval.length_ms, earlier.interval.end_ms)
    return later, replace(earlier, interval=Interval(earlier.interval.start_ms, end_ms))


def _difference(
    scene: Scene, observed: Property, windows: tuple[Window, Window], parts: list[Part], until: Said | None
) -> Said:
    gap = parts[0].total - parts[1].total
    first, second = (day(window.first_date, year_of=scene.today) for window in windows)
    if gap == 0 and until is None:
        return say("The same on {first} as on {second}", first=first, second=second)
    if gap == 0:
        return say("The same today by {clock} as by then on {second}", clock=until or "", second=second)
    than = (
        say("on {first} than on {second}", first=first, second=second)
        if until is None
        else say("today by {clock} than by then on {second}", clock=until, second=second)
    )
    size = amount(abs(gap), observed.unit)
    told = (
        say("{size} more {than}", size=size, than=than) if gap > 0 else say("{size} less {than}", size=size, than=than)
    )
    alike = abs(gap) <= _ALIKE * max(parts[0].total, parts[1].total)
    return say("About the same: {size}", size=told) if alike else told


def _figure(scene: Scene, draft: Draft, pet: Pet, observed: Property, told: tuple[Window, Part, Said | None]) -> None:
    """One day's figure, and how much of it was heard where that is little."""
    window, part, until = told
    series = scene.ontology.series_id(pet.id, observed.id)
    share = part.covered_ms / window.interval.length_ms if window.interval.length_ms else 0.0
    heard = "" if share >= _HEARD else say(", heard for {share} % of it", share=round(100 * share))
    date = day(window.first_date, year_of=scene.today)
    when = date if until is None else say("{day} by {clock}", day=date, clock=until)
    figure = amount(part.total, observed.unit)
    if observed.of_device:
        figure = say("{figure} {series.from}", figure=figure, series=observed)
    draft.claim(
        "total",
        EvidenceClass.MEASURED,
        say("{when}: {figure}{heard}", when=when, figure=figure, heard=heard),
        cite=cite_of(scene, scene.devices_of(pet.id, observed)),
        refs=part.refs,
        values=(
            Quantity("total", part.total, observed.unit),
            Quantity("covered", part.covered_ms, "ms"),
            Quantity("share", round(100 * share), "percent"),
        ),
        window=window,
        about=(f"pet:{pet.id}", f"series:{series}"),
    )
