"""Days with it against days without it, and pets that share it against pets that don't.

Plain means of what was recorded on each side, with the days counted and the stretches named.
One stretch with and one without is one change, which is said; nothing here tests or ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.blame import exposures, thing_words
from gateway.ask.change import figure_claim, not_captured, verdict_words
from gateway.ask.dated import entries_of, say_entry
from gateway.ask.figures import cite_of, compare_window
from gateway.ask.said import Part, Said, elsewhere, say, verbatim
from gateway.ask.settle import hear_it, more_days
from gateway.ask.wording import amount, count_word, day_range, joined, percent, whose
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import add_days, local_day, night_interval
from gateway.measure.series import grid_of
from gateway.model import Interval, RecordRef, Window

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Link, Pet
    from gateway.ontology.vocabulary import Property
    from gateway.stored import TextRecord

__all__ = ["lines_up", "others_on_it"]

_BACK_DAYS = 180
_LEAST_DAYS = 7
"""Fewer days on a side are no side."""
_ALIKE = 0.10
_EVENING_HOUR = 17
"""From this hour on what happened belongs to the night after it."""


def lines_up(scene: Scene, question: Question, draft: Draft, pet: Pet) -> None:
    """Answer "do the nights line up with days he got X?" by the days on both sides."""
    observed = scene.ontology.properties[str(question.metric)]
    if not_captured(scene, draft, pet, observed):
        return
    found = exposures(scene, pet, question.subjects)
    thing = thing_words(scene, question.subjects, found)
    entries = entries_of(scene, pet, question.subjects)
    if not found and entries:
        _beside_one_day(scene, draft, pet, observed, entry=entries[-1], thing=thing)
        return
    if not found:
        draft.say(
            NoticeKind.SHORT,
            say("I can't tell: when {pet} had {thing} is not on file", pet=pet, thing=thing),
            slot="exposure",
            device="people",
        )
        draft.say(NoticeKind.NEXT, "A log entry, or picking the bag at the bowl, records the days", slot="exposure")
        return
    night = (question.window_label or "").startswith("NIGHT")
    with_it, without = _sides(scene, pet, observed, found, night=night)
    if len(with_it) < _LEAST_DAYS or len(without) < _LEAST_DAYS:
        _too_few(scene, draft, observed, thing, found=found, sides=(len(with_it), len(without)))
        return
    _say_sides(scene, draft, pet, observed, thing=thing, found=found, sides=(with_it, without), night=night)
    if len(found) == 1 or _stretches(found) < 2:
        draft.say(NoticeKind.CAUTION, "That is one change, so one observation; whatever else changed then fits as well")


def _too_few(
    scene: Scene, draft: Draft, observed: Property, thing: Said, *, found: tuple[Link, ...], sides: tuple[int, int]
) -> None:
    """One side has too few days: how many it has, and what it takes."""
    with_it = sides[0] < _LEAST_DAYS
    count = sides[0] if with_it else sides[1]
    parts: dict[str, Part] = {"count": count, "thing": thing}
    if count == 0:
        opening = (
            say("I can't tell: no recorded day with {thing}", **parts)
            if with_it
            else say("I can't tell: no recorded day without {thing}", **parts)
        )
    elif with_it:
        opening = say("I can't tell: only {count} recorded days with {thing}", **parts)
        opening = say("I can't tell: only 1 recorded day with {thing}", **parts) if count == 1 else opening
    else:
        opening = say("I can't tell: only {count} recorded days without {thing}", **parts)
        opening = say("I can't tell: only 1 recorded day without {thing}", **parts) if count == 1 else opening
    draft.say(NoticeKind.SHORT, opening, slot=observed.id)
    lasting = any(link.edge.valid_to_ms is None or link.edge.valid_to_ms > scene.now_ms for link in found)
    goes_on = lasting if with_it else not lasting
    more_days(scene, draft, observed.id, missing=_LEAST_DAYS - count, needed=_LEAST_DAYS, goes_on=goes_on)


def _beside_one_day(
    scene: Scene, draft: Draft, pet: Pet, observed: Property, *, entry: TextRecord, thing: Said
) -> None:
    """What was measured on the one day (of an evening: the night) of a thing that was written down once."""
    at_ms = entry.at_ms or 0
    date = local_day(at_ms, scene.zones)
    evening = scene.local(at_ms).hour >= _EVENING_HOUR and observed.kind == "duration"
    window = scene.window(date, date, date)
    if evening:
        span = night_interval(date, scene.zones)
        window = Window(f"NIGHT:{date}", Interval(span.start_ms, min(span.end_ms, scene.now_ms)), date, date)
    figure = compare_window(scene, pet, observed, window)
    of = elsewhere(thing.removeprefix("the "), thing)
    when = say("the night of {thing}", thing=of) if evening else say("the day of {thing}", thing=of)
    if figure is None or figure.measured.comparison.now is None:
        draft.say(NoticeKind.SHORT, say("I can't tell: {when} was not recorded", when=when), slot=observed.id)
        hear_it(scene, draft, pet, observed)
    else:
        text = say(
            "{when!u}: {series} {verdict}, which proves no link",
            when=when,
            series=observed,
            verdict=verdict_words(figure),
        )
        draft.say(NoticeKind.SHORT, text)
    draft.paragraph()
    say_entry(scene, draft, entry)
    if figure is not None:
        figure_claim(scene, draft, figure)


def _sides(
    scene: Scene, pet: Pet, observed: Property, found: tuple[Link, ...], *, night: bool
) -> tuple[dict[str, float], dict[str, float]]:
    """Daily totals of the days wholly with it and wholly without it, heard well enough to count."""
    series = scene.ontology.series_id(pet.id, observed.id)
    first, last = add_days(scene.today, -_BACK_DAYS), add_days(scene.today, -1)
    began = scene.reader.first_date(series) or first
    rows = scene.reader.days(series, max(first, began), last)
    grid = grid_of(
        rows,
        max(first, min(began, last)),
        last,
        zones=scene.zones,
        now_ms=scene.now_ms,
        unit=observed.unit,
        kind=observed.kind,
        night_only=night or observed.night_only,
    )
    totals = dict(zip(grid.dates, grid.day_totals().tolist(), strict=True))
    usable = {date for date, good in zip(grid.dates, grid.usable().tolist(), strict=True) if good}
    with_it, without = {}, {}
    for date in sorted(usable):
        state = _state(scene, found, date)
        if state == "with":
            with_it[date] = totals[date]
        elif state == "without":
            without[date] = totals[date]
    return with_it, without


def _state(scene: Scene, found: tuple[Link, ...], date: str) -> str:
    """Whether a local day was wholly with the thing, wholly without, or the day of a change."""
    for link in found:
        start = None if link.edge.valid_from_ms is None else local_day(link.edge.valid_from_ms, scene.zones)
        end = None if link.edge.valid_to_ms is None else local_day(link.edge.valid_to_ms, scene.zones)
        if date in (start, end):
            return "changed"
        if (start is None or start < date) and (end is None or date < end):
            return "with"
    return "without"


def _stretches(found: tuple[Link, ...]) -> int:
    return len({link.edge.valid_from_ms for link in found})


def _say_sides(
    scene: Scene,
    draft: Draft,
    pet: Pet,
    observed: Property,
    *,
    thing: Said,
    found: tuple[Link, ...],
    sides: tuple[dict[str, float], dict[str, float]],
    night: bool,
) -> None:
    means = [sum(side.values()) / len(side) for side in sides]
    change = None if means[1] <= 0.0 else means[0] / means[1] - 1.0
    words = "nights" if night or observed.night_only else "days"
    parts: dict[str, Part] = {"days": words, "thing": thing}
    if change is None or abs(change) < _ALIKE:
        opening = say("No: {days} with {thing} and {days} without it look alike", **parts)
    elif change > 0:
        opening = say("More on {days} with {thing}, {size}, which is no proof of a link", size=percent(change), **parts)
    else:
        opening = say("Less on {days} with {thing}, {size}, which is no proof of a link", size=percent(change), **parts)
    draft.say(NoticeKind.SHORT, opening)
    draft.paragraph()
    series = scene.ontology.series_id(pet.id, observed.id)
    dates = sorted({*sides[0], *sides[1]})
    rows = _rows_behind(scene, series, dates, night=words == "nights")
    draft.claim(
        "with_and_without",
        EvidenceClass.MEASURED,
        say(
            "{series!u}: {much} on {count} {days} with it, {other} on {others} without, {dates}",
            series=observed,
            much=amount(means[0], observed.unit),
            count=len(sides[0]),
            days=words,
            other=amount(means[1], observed.unit),
            others=len(sides[1]),
            dates=day_range(dates[0], dates[-1], year_of=scene.today),
        ),
        cite=cite_of(scene, scene.devices_of(pet.id, observed)),
        refs=tuple(RecordRef(f"day:{series}/{date}") for date in rows),
        values=(
            Quantity("with", round(means[0], 3), f"{observed.unit}/day"),
            Quantity("without", round(means[1], 3), f"{observed.unit}/day"),
            Quantity("days_with", len(sides[0]), "days"),
            Quantity("days_without", len(sides[1]), "days"),
            *(() if change is None else (Quantity("change", round(change, 6), "fraction"),)),
        ),
        about=(f"pet:{pet.id}", f"series:{series}", *dict.fromkeys(link.edge.head.name for link in found)),
    )


def _rows_behind(scene: Scene, series: str, dates: list[str], *, night: bool) -> list[str]:
    """The days whose rows were read: a night also stands on the row of the morning after."""
    mornings = {add_days(date, 1) for date in dates} if night else set()
    over = add_days(scene.today, -1)
    stored = {row.date for row in scene.reader.days(series, dates[0], over)} if mornings else set()
    return sorted({*dates, *(mornings & stored)})


# --- the other pets ----------------------------------------------------------------------------------


def others_on_it(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...], window: Window) -> None:
    """Answer "have the other pets on the same food got it too?" for those that can be told."""
    observed = scene.ontology.properties[str(question.metric)]
    foods = {pet.id: _food_of(scene, pet, question.subjects) for pet in pets}
    shared = [pet for pet in pets if foods[pet.id] and list(foods.values()).count(foods[pet.id]) > 1]
    unknown = [verbatim(pet.name) for pet in pets if foods[pet.id] is None]
    seen = [pet for pet in shared if scene.devices_of(pet.id, observed)]
    blind = [pet for pet in shared if pet not in seen]
    if not shared:
        names = scene.reader.vertex_labels()
        each = [verbatim(f"{pet.name} {names.get(food, food)}") for pet in pets if (food := foods[pet.id])]
        draft.say(NoticeKind.SHORT, "As far as is on file, no two pets eat the same food", slot="food")
        if each:
            draft.say(NoticeKind.ABSENCE, say("In the bowls now: {foods}", foods=joined(each)), slot="food")
    else:
        text = say(
            "Of {count} pets on the same food, {seen} can be told",
            count=count_word(len(shared)),
            seen=count_word(len(seen)),
        )
        draft.say(NoticeKind.SHORT, text, slot=observed.id if blind else None)
    draft.paragraph()
    for pet in seen or [pet for pet in pets if scene.devices_of(pet.id, observed)]:
        figure = compare_window(scene, pet, observed, window)
        if figure is not None:
            opening = say("{pet}, {verdict}", pet=pet, verdict=verdict_words(figure))
            figure_claim(scene, draft, figure, opening=opening)
    kind = scene.ontology.device_kinds[observed.captured_by[0]]
    if blind:
        names_of = joined([whose(pet) for pet in blind])
        draft.say(
            NoticeKind.ABSENCE,
            say(
                "{names} {series.is} not recorded; {device.a} would capture it",
                names=names_of,
                series=observed,
                device=kind,
            ),
            slot=observed.id,
            device=kind.id,
        )
    if unknown:
        draft.say(
            NoticeKind.ABSENCE,
            say("What {names} {eat} is not on file", names=joined(unknown), eat="eats" if len(unknown) == 1 else "eat"),
            slot="food",
            device="food_bowl",
        )


def _food_of(scene: Scene, pet: Pet, subjects: tuple[str, ...]) -> str | None:
    """The food in the pet's bowl now, or the one asked about where it had that."""
    found = [link for link in exposures(scene, pet, subjects or ("food:current",)) if link.edge.relation == "ate"]
    return found[-1].edge.head.name if found else None
