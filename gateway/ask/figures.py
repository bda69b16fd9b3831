"""Send the arithmetic to the numbers: comparisons and totals of one pet's series.

A figure knows the day records it was computed from; whatever is said of it cites exactly
these. No figure is ever used to rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.ask.said import Said, elsewhere, say, verbatim
from gateway.ask.wording import amount, day_range, listed, percent, percent_range, usual_of
from gateway.dialogue import Quantity
from gateway.measure.days import add_days, local_day, night_interval
from gateway.measure.grid import aggregate
from gateway.measure.series import Measured, compare_rows, grid_of
from gateway.model import Interval, RecordRef, Unclear, Verdict

if TYPE_CHECKING:
    from gateway.ask.scene import Scene
    from gateway.measure.grid import Aggregate
    from gateway.model import Device, Pet, Window
    from gateway.ontology.vocabulary import Property
    from gateway.stored import DayRow, Feeding

__all__ = [
    "Figure",
    "Total",
    "also_text",
    "by_night",
    "change_text",
    "cite_of",
    "compare_window",
    "coverage_text",
    "days_of",
    "is_night_label",
    "likely_text",
    "rate_of",
    "span_of",
    "total_of",
]

_HISTORY_DAYS = 441
"""56 + 7 days of baseline and 54 past weeks for the rank among the pet's own windows."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One series' window against its past, with the day records on both sides."""

    pet: Pet
    observed: Property
    series: str
    window: Window
    measured: Measured
    devices: tuple[Device, ...]
    now_refs: tuple[RecordRef, ...]
    usual_refs: tuple[RecordRef, ...]
    food_refs: tuple[RecordRef, ...] = ()
    past_refs: tuple[RecordRef, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return self.measured.comparison.verdict

    @property
    def refs(self) -> tuple[RecordRef, ...]:
        """Whatever the figures are computed from; `past_refs` only carry the rank."""
        return (*self.now_refs, *self.usual_refs, *self.food_refs)

    def rank(self) -> tuple[Quantity, ...]:
        """How many of the pet's own past windows lie below this one; its records are `past_refs`."""
        comparison = self.measured.comparison
        if comparison.rank is None or comparison.rank_of is None:
            return ()
        return (Quantity("rank", comparison.rank, "count"), Quantity("rank_of", comparison.rank_of, "count"))

    def values(self) -> tuple[Quantity, ...]:
        """The figures a claim about this comparison carries, in stored units."""
        comparison, unit = self.measured.comparison, self.measured.unit
        found = []
        for name, value, of in (
            ("now", comparison.now, f"{unit}/day"),
            ("usual", comparison.usual, f"{unit}/day"),
            ("change", comparison.change, "fraction"),
            ("smallest_visible", comparison.smallest_visible, "fraction"),
        ):
            if value is not None:
                found.append(Quantity(name, round(value, 6), of))
        if comparison.interval is not None:
            found.append(Quantity("low", round(comparison.interval[0], 6), "fraction"))
            found.append(Quantity("high", round(comparison.interval[1], 6), "fraction"))
        found.append(Quantity("verdict", comparison.verdict.value, "word"))
        found.append(Quantity("days", len(comparison.days_used), "days"))
        found.append(Quantity("usual_days", len(comparison.baseline_days), "days"))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Total:
    """Plain totals of a window and the day rows behind them."""

    pet: Pet
    observed: Property
    window: Window
    aggregate: Aggregate
    rows: tuple[DayRow, ...]
    devices: tuple[Device, ...]

    @property
    def refs(self) -> tuple[RecordRef, ...]:
        return tuple(row.ref for row in self.rows)

    @property
    def full_refs(self) -> tuple[RecordRef, ...]:
        """The rows behind the full days; a night also stands on the row of the morning after."""
        dates = set(self.aggregate.full_days)
        if self.observed.night_only:
            dates |= {add_days(date, 1) for date in dates}
        return tuple(row.ref for row in self.rows if row.date in dates)


def cite_of(scene: Scene, devices: tuple[Device, ...], *figures: Figure) -> str:
    """The words inside the brackets: "tracker", "bowl"; "bowl; product data" where figures are energy."""
    words = dict.fromkeys(scene.ontology.device_kinds[device.kind].cite for device in devices)
    if any(figure.food_refs for figure in figures):
        words["product data"] = None
    return listed(tuple(words))


_DAWN_HOUR = 7


def is_night_label(label: str) -> bool:
    """Whether a window's label means nights: ``LAST_NIGHT``, ``NIGHT``, ``NIGHT:P7D``, ``NIGHT:2026-07-10``."""
    return label in ("LAST_NIGHT", "TONIGHT", "NIGHT") or label.startswith("NIGHT:")


def by_night(
    scene: Scene, observed: Property, window: Window, *, kinds: tuple[str, ...] = ("duration", "count")
) -> tuple[Property, Window]:
    """What is compared where nights are asked about: the hours from 21:00 to 07:00, each night dated by its evening.

    Of one night (``LAST_NIGHT``) that night; of several those that are over. Durations and counts
    alone, unless ``kinds`` says more: what left a bowl is compared by whole days. What is measured at
    night only keeps its week.
    """
    if observed.kind not in kinds or not is_night_label(window.label):
        return observed, window
    at_night = replace(observed, night_only=True)
    if window.label != "NIGHT" and not window.label.startswith("NIGHT:P"):
        return at_night, replace(window, last_date=window.first_date)
    over = add_days(scene.today, -1 if scene.local(scene.now_ms).hour >= _DAWN_HOUR else -2)
    last = min(window.last_date, over)
    if observed.night_only or last < window.first_date:
        return observed, window
    end_ms = min(night_interval(last, scene.zones).end_ms, scene.now_ms)
    return at_night, replace(window, interval=Interval(window.interval.start_ms, end_ms), last_date=last)


def _read_to(scene: Scene, observed: Property, window: Window) -> str:
    """The last local day a window's figures stand on: the morning after its last night, where nights are asked of."""
    over = local_day(max(window.interval.end_ms - 1, window.interval.start_ms), scene.zones)
    return max(window.last_date, over) if observed.night_only else window.last_date


def compare_window(scene: Scene, pet: Pet, observed: Property, window: Window) -> Figure | None:
    """Compare a window of whole days with the pet's own past.

    None where no day of the series is stored at all; a window that was not heard is a
    `Figure` whose verdict says so.
    """
    observed, window = by_night(scene, observed, window)
    series = scene.ontology.series_id(pet.id, observed.id)
    began = scene.reader.first_date(series)
    if began is None or observed.kind not in ("duration", "mass", "count"):
        return None
    history_from = min(max(began, add_days(window.first_date, -_HISTORY_DAYS)), window.first_date)
    read_to = _read_to(scene, observed, window)
    rows = scene.reader.days(series, history_from, read_to)
    feedings = scene.reader.feedings(scene.home, pet.id) if observed.id == "intake" else ()
    measured = compare_rows(
        rows,
        window.first_date,
        window.last_date,
        history_from=history_from,
        zones=scene.zones,
        now_ms=window.interval.end_ms,
        unit=observed.unit,
        kind=observed.kind,
        night_only=observed.night_only,
        relevance=observed.relevance,
        feedings=feedings,
        read_to=read_to,
    )
    comparison = measured.comparison
    stored = {row.date for row in rows}

    def days(dates: tuple[str, ...]) -> tuple[RecordRef, ...]:
        """The rows behind these days; a night also stands on the row of the morning after."""
        mornings = {after for date in dates if (after := add_days(date, 1)) in stored} if observed.night_only else set()
        return tuple(RecordRef(f"day:{series}/{date}") for date in sorted({*dates, *mornings}))

    return Figure(
        pet=pet,
        observed=observed,
        series=series,
        window=window,
        measured=measured,
        devices=scene.devices_of(pet.id, observed),
        now_refs=days(comparison.days_used),
        usual_refs=days(comparison.baseline_days),
        food_refs=_energy_refs(scene, feedings) if measured.unit == "kcal" else (),
        past_refs=tuple(row.ref for row in rows if row.date < window.first_date),
    )


def _energy_refs(scene: Scene, feedings: tuple[Feeding, ...]) -> tuple[RecordRef, ...]:
    """What makes energy of grams: the records that say which food was in the bowl, and its label."""
    labels = (scene.reader.label_of(period.code) for period in feedings)
    return (*(period.ref for period in feedings), *(label for label in labels if label is not None))


def total_of(scene: Scene, pet: Pet, observed: Property, window: Window) -> Total | None:
    """Totals of the window's local days; None where the series has no row in it."""
    series = scene.ontology.series_id(pet.id, observed.id)
    read_to = _read_to(scene, observed, window)
    rows = scene.reader.days(series, window.first_date, read_to)
    if not rows:
        return None
    grid = grid_of(
        rows,
        window.first_date,
        read_to,
        zones=scene.zones,
        now_ms=window.interval.end_ms,
        unit=observed.unit,
        kind=observed.kind,
        night_only=observed.night_only,
    )
    found = aggregate(
        grid,
        window.first_date,
        window.last_date,
        open_day=scene.today if window.last_date >= scene.today else None,
    )
    return Total(pet, observed, window, found, rows, scene.devices_of(pet.id, observed))


def rate_of(total: Total) -> Said:
    """A mean as a rate: "3 h a day", of nights "3 h a night"."""
    figure = amount(total.aggregate.per_day or 0.0, total.observed.unit)
    return say("{figure} a night", figure=figure) if total.observed.night_only else say("{figure} a day", figure=figure)


def days_of(total: Total) -> Said:
    """On how many of how many days, or nights, a mean stands: "6 of 7 nights"."""
    used, expected = len(total.aggregate.full_days), total.aggregate.days_expected
    if total.observed.night_only:
        return say("{used} of {expected} nights", used=used, expected=expected)
    return say("{used} of {expected} days", used=used, expected=expected)


def span_of(observed: Property, window: Window, *, year_of: str) -> Said:
    """A window's dates: "Jul 8-14", of one night "night of Jul 8"."""
    dates = day_range(window.first_date, window.last_date, year_of=year_of)
    return say("night of {day}", day=dates) if observed.night_only and window.first_date == window.last_date else dates


def coverage_text(figure: Figure) -> Said:
    """How much of the window stands behind it: "worn 7 of 7 days", "6 of 7 nights"."""
    comparison = figure.measured.comparison
    worn = any(device.kind == "tracker" for device in figure.devices)
    expected = comparison.days_expected
    if figure.observed.night_only:  # tonight has not begun: it is not a night that was missed
        expected = len(comparison.days_used) + len(comparison.set_aside_days)
    used = len(comparison.days_used)
    if figure.observed.night_only and worn:
        return say("worn {used} of {expected} nights", used=used, expected=expected)
    if figure.observed.night_only:
        return say("{used} of {expected} nights", used=used, expected=expected)
    if worn:
        return say("worn {used} of {expected} days", used=used, expected=expected)
    return say("{used} of {expected} days", used=used, expected=expected)


def change_text(figure: Figure, *, year_of: str) -> Said:
    """The comparison as one sentence with its figures, dates and coverage."""
    comparison, unit = figure.measured.comparison, figure.measured.unit
    dates = span_of(figure.observed, figure.window, year_of=year_of)
    if comparison.now is None or comparison.usual is None:
        return _untold(figure, dates)
    now, usual = amount(comparison.now, unit), usual_of(comparison.usual, comparison.now, unit)
    body = (
        say("{now} a night against {pet.his} usual {usual}", now=now, pet=figure.pet, usual=usual)
        if figure.observed.night_only
        else say("{now} a day against {pet.his} usual {usual}", now=now, pet=figure.pet, usual=usual)
    )
    parts = {"body": body, "likely": likely_text(comparison.interval), "dates": dates, "heard": coverage_text(figure)}
    if comparison.change is None or comparison.verdict is Verdict.USUAL:
        return say("{body}{likely}, {dates}, {heard}", **parts)
    size = percent(comparison.change)
    if comparison.change > 0:
        return say("{body}: up {size}{likely}, {dates}, {heard}", size=size, **parts)
    return say("{body}: down {size}{likely}, {dates}, {heard}", size=size, **parts)


def likely_text(interval: tuple[float, float] | None) -> Said:
    """The interval of a change behind its figure: " (likely 29 to 52 %)"; nothing where there is none."""
    return verbatim("") if interval is None else say(" (likely {range})", range=percent_range(interval))


def also_text(figure: Figure, *, beside: Verdict) -> Said:
    """A changed figure that was not asked about, in short: "Night restlessness is up too, 48 %".

    "Too" stands only where what was asked about moved the same way, as ``beside`` says.
    """
    comparison = figure.measured.comparison
    size = percent(comparison.change or 0.0)
    if beside is not figure.verdict:
        if (comparison.change or 0.0) > 0:
            return say("{series.is} up, {size}", series=figure.observed, size=size)
        return say("{series.is} down, {size}", series=figure.observed, size=size)
    if (comparison.change or 0.0) > 0:
        return say("{series.is} up too, {size}", series=figure.observed, size=size)
    return say("{series.is} down too, {size}", series=figure.observed, size=size)


def _untold(figure: Figure, dates: Said) -> Said:
    comparison = figure.measured.comparison
    if comparison.reason is Unclear.TOO_FEW_DAYS:
        there, needed = len(comparison.baseline_days), comparison.baseline_needed
        if figure.observed.night_only:
            return say(
                "{there} nights recorded before {dates}, {needed} are needed for a first comparison",
                there=there,
                dates=dates,
                needed=needed,
            )
        return say(
            "{there} days recorded before {dates}, {needed} are needed for a first comparison",
            there=there,
            dates=dates,
            needed=needed,
        )
    little = say("not enough was recorded")
    why = elsewhere(comparison.detail, little) if comparison.detail else little
    return say("{dates}: {why}", dates=dates, why=why)
