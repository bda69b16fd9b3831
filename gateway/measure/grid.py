"""The grid every measure reads: one row a local day, one column a local hour.

``span_ms`` is how long the hour existed, ``covered_ms`` how much of it the device was heard
and worn, ``total`` what was counted in it. Missing is never zero: an hour without coverage
holds no value whatever its total says. Nothing here decides; see :mod:`change`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gateway.errors import MeasureError
from gateway.measure.days import NIGHT_END_HOUR, NIGHT_START_HOUR

__all__ = [
    "LEAST_COVERAGE",
    "Aggregate",
    "DayGrid",
    "Kind",
    "aggregate",
    "fault_of",
    "night_grid",
    "only_hours",
    "rescale",
]

Kind = Literal["duration", "mass", "count", "level"]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST_COVERAGE = 0.6
"""A day with less of it heard is left out (DESIGN, Time; days.md case 7)."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LARGEST = 1e15
"""Above any amount a home can hold in mg or ms (a year is 3e10 ms): absurd, not data."""


@dataclass(frozen=True, slots=True, eq=False)
class DayGrid:
    """A series as local days by local hours.

    ``dates`` ascend without repetition (missing days may be absent or uncovered rows);
    ``total``, ``covered_ms``, ``span_ms`` have shape [D, 24]. ``kind`` is duration (ms),
    mass (mg), count, or level (weight: ``total`` is then the hour's mean, never summed).
    """

    dates: tuple[str, ...]
    total: FloatArray
    covered_ms: IntArray
    span_ms: IntArray
    unit: str
    kind: Kind
    ordinals: IntArray = field(init=False)
    """Proleptic day numbers of ``dates``, shape [D]; day 1 is a Monday."""

    def __post_init__(self) -> None:
        days = np.array(self.dates, dtype="datetime64[D]").astype(np.int64) + _EPOCH_ORDINAL
        object.__setattr__(self, "ordinals", days)
        shape = (len(self.dates), 24)
        for name in ("total", "covered_ms", "span_ms"):
            found = getattr(self, name).shape
            if found != shape:
                raise MeasureError(f"{name} must have shape {shape} (days, local hours), has {found}")
        if (np.diff(days) <= 0).any():
            raise MeasureError("dates must ascend without repetition")

    def coverage(self) -> FloatArray:
        """Heard share of each day's existing hours, shape [D]; 0 where no hour exists."""
        span = self.span_ms.sum(axis=1)
        heard = self.covered_ms.sum(axis=1)
        shares: FloatArray = np.divide(heard, span, out=np.zeros(len(self.dates)), where=span > 0)
        return shares

    def usable(self) -> NDArray[np.bool_]:
        """Days with enough coverage to count, shape [D] (a level needs one reading)."""
        if self.kind == "level":
            return np.asarray((self.covered_ms > 0).any(axis=1))
        return self.coverage() >= LEAST_COVERAGE

    def day_totals(self) -> FloatArray:
        """Sum of each day's hours, shape [D]; a level's mean over its hours with a reading."""
        if self.kind != "level":
            return np.asarray(self.total.sum(axis=1), dtype=np.float64)
        read = self.covered_ms > 0
        count = read.sum(axis=1)
        summed = np.where(read, self.total, 0.0).sum(axis=1)
        means: FloatArray = np.divide(summed, count, out=np.zeros(len(self.dates)), where=count > 0)
        return means


def fault_of(grid: DayGrid) -> str | None:
    """Why the grid's numbers cannot be measured with, in words; None where they can."""
    if not grid.unit:
        return "the series has no unit"
    seen = grid.total[grid.covered_ms > 0]
    if not np.isfinite(seen).all():
        return "a value is not a finite number"
    if (seen < 0).any() or (grid.covered_ms < 0).any() or (grid.span_ms < 0).any():
        return "a value is below zero"
    if (seen > _LARGEST).any():
        return f"a value is above {_LARGEST:g} {grid.unit}"
    if (grid.covered_ms > grid.span_ms).any():
        return "more time was covered than existed in an hour"
    return None


def night_grid(grid: DayGrid) -> DayGrid:
    """The nights of a grid, 21:00-07:00, each dated by the evening it begins.

    Row d holds the hours 21-23 of day d and 0-6 of the day after; the other hours do not
    exist. The last day's morning half is absent until its row is.
    """
    hours = np.arange(24)
    evening, morning = hours >= NIGHT_START_HOUR, hours < NIGHT_END_HOUR
    follows = np.zeros(len(grid.dates), dtype=bool)
    follows[:-1] = np.diff(grid.ordinals) == 1

    def nights(values: NDArray[np.generic]) -> NDArray[np.generic]:
        night = np.zeros_like(values)
        night[:, evening] = values[:, evening]
        after = np.roll(values, -1, axis=0)
        after[~follows] = 0
        night[:, morning] = after[:, morning]
        return night

    return replace(
        grid,
        total=nights(grid.total),  # type: ignore[arg-type]  # zeros_like keeps the dtype
        covered_ms=nights(grid.covered_ms),  # type: ignore[arg-type]
        span_ms=nights(grid.span_ms),  # type: ignore[arg-type]
    )


def only_hours(grid: DayGrid, hours: frozenset[int]) -> DayGrid:
    """The grid with every local hour outside ``hours`` taken as not existing (mornings)."""
    keep = np.array([hour in hours for hour in range(24)])
    return replace(grid, total=grid.total * keep, covered_ms=grid.covered_ms * keep, span_ms=grid.span_ms * keep)


def rescale(grid: DayGrid, factors: dict[str, float], unit: str) -> DayGrid:
    """The grid in another unit, one factor a date (kcal per mg of the food fed that day).

    A date without a factor is not comparable, so its coverage becomes zero: it is unknown,
    never zero and never carried over from another food.
    """
    known = np.array([day in factors for day in grid.dates], dtype=bool)
    by_day = np.array([factors.get(day, 0.0) for day in grid.dates])
    return replace(grid, total=grid.total * by_day[:, None], covered_ms=grid.covered_ms * known[:, None], unit=unit)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Plain arithmetic over a window: no comparison, no model, no filling in.

    ``total`` sums everything counted in the window; ``per_day`` is the mean over
    ``full_days`` alone, the days heard enough and over; None where there is none.
    ``set_aside_days`` were heard too little to enter the mean, ``open_days`` are not over;
    ``held`` is what each of the full days held, in their order.
    """

    unit: str
    total: float | None
    per_day: float | None
    least: float | None
    most: float | None
    full_days: tuple[str, ...]
    open_days: tuple[str, ...]
    set_aside_days: tuple[str, ...]
    days_expected: int
    coverage: float
    fault: str | None = None
    held: tuple[float, ...] = ()


def aggregate(grid: DayGrid, first: str, last: str, *, open_day: str | None = None) -> Aggregate:
    """Total and daily mean of the days ``first`` .. ``last`` (ISO dates, both included).

    ``open_day`` is today where it is not over: it enters the total, never the daily mean.
    A level (weight) has no total; its ``per_day`` is the mean of its daily means.
    """
    rows = np.array([first <= day <= last for day in grid.dates], dtype=bool)
    span = grid.span_ms[rows].sum()
    fault = fault_of(grid)
    exists = grid.span_ms.sum(axis=1) > 0
    inside = list(np.flatnonzero(rows & exists))
    expected = date.fromisoformat(last).toordinal() - date.fromisoformat(first).toordinal() + 1
    if fault is not None or not inside:
        return Aggregate(grid.unit, None, None, None, None, (), (), (), expected, 0.0, fault)
    heard = grid.usable()
    totals = grid.day_totals()
    full = [index for index in inside if heard[index] and grid.dates[index] != open_day]
    values = totals[full]
    any_heard = bool((grid.covered_ms[rows] > 0).any())
    return Aggregate(
        unit=grid.unit,
        total=float(totals[inside].sum()) if any_heard and grid.kind != "level" else None,
        per_day=float(values.mean()) if full else None,
        least=float(values.min()) if full else None,
        most=float(values.max()) if full else None,
        full_days=tuple(grid.dates[index] for index in full),
        open_days=tuple(grid.dates[index] for index in inside if grid.dates[index] == open_day),
        set_aside_days=tuple(
            grid.dates[index] for index in inside if not heard[index] and grid.dates[index] != open_day
        ),
        days_expected=expected,
        coverage=float(grid.covered_ms[rows].sum() / span) if span else 0.0,
        held=tuple(values.tolist()),
    )
