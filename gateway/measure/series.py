"""From stored day rows to a comparison: what learn and ask both do, done once.

Rows become a grid; grams of two foods become energy, or are refused as not comparable;
nights stand apart. Values in, values out: nothing here reads a file or a clock.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from gateway.measure.change import RELEVANCE, SegmentStart, compare
from gateway.measure.days import (
    SLOT_MS,
    dates_between,
    day_interval,
    hour_spans,
    hours_from_slots,
    local_clock,
    local_day,
)
from gateway.measure.grid import DayGrid, Kind, night_grid, rescale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.model import Comparison, ZonePeriod
    from gateway.stored import DayRow, Feeding

__all__ = ["Measured", "comparable", "compare_rows", "energy_factors", "food_segments", "grid_of", "level_grid"]

IntArray = NDArray[np.int64]
_MG_PER_KG = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """A comparison and how it was made: ``unit`` is ``kcal`` where foods were made comparable,
    ``breaks`` are the changes of food over which grams are not.
    """

    comparison: Comparison
    unit: str
    grid: DayGrid
    breaks: tuple[SegmentStart, ...] = ()


def grid_of(
    rows: Sequence[DayRow],
    first: str,
    last: str,
    *,
    zones: tuple[ZonePeriod, ...],
    now_ms: int,
    unit: str,
    kind: str,
    night_only: bool = False,
) -> DayGrid:
    """Lay day rows out as local days by local hours, every date of ``first`` .. ``last``.

    A date without a row is an uncovered day, never a day of zeros; hours after ``now_ms`` do
    not exist yet. With ``night_only`` a row is the night 21:00-07:00 that begins on its date.
    """
    dates = dates_between(first, last)
    place = {date: index for index, date in enumerate(dates)}
    total = np.zeros((len(dates), 24))
    covered = np.zeros((len(dates), 24), dtype=np.int64)
    span = np.stack([hour_spans(date, zones, now_ms) for date in dates])
    for row in rows:
        index = place.get(row.date)
        if index is not None:
            sums, heard = (row.sums, row.covered) if row.end_ms <= now_ms else _until(row, now_ms)
            total[index], covered[index] = _row_hours(sums, heard, row.date, zones)
    grid = DayGrid(dates, total, np.minimum(covered, span), span, unit, cast("Kind", kind))
    return night_grid(grid) if night_only else grid


def _until(row: DayRow, now_ms: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A row's sums and coverage in the slots that had begun by ``now_ms``, zeros after them."""
    begun = max(0, min(len(row.sums), -(-(now_ms - row.start_ms) // SLOT_MS)))
    rest = (0,) * (len(row.sums) - begun)
    return row.sums[:begun] + rest, row.covered[:begun] + rest


@lru_cache(maxsize=4096)
def _row_hours(sums: tuple[int, ...], covered: tuple[int, ...], date: str, zones: tuple[ZonePeriod, ...]) -> IntArray:
    """A row's sums and coverage by local hour, [2, 24]; kept, because every pass reads the same past."""
    hours = hours_from_slots(np.array((sums, covered), dtype=np.int64), date, zones)
    hours.setflags(write=False)
    return hours


def energy_factors(
    dates: Sequence[str], feedings: Sequence[Feeding], zones: tuple[ZonePeriod, ...]
) -> dict[str, float]:
    """Energy (kcal) per mg of the food each whole day was fed from.

    A day on which the food was changed held two foods and has no factor; neither has a day
    whose food's label gives no energy. factor = kcal per kg / 1e6 mg per kg.
    """
    ordered = sorted(feedings, key=lambda feeding: feeding.start_ms)
    starts = [feeding.start_ms for feeding in ordered]
    factors: dict[str, float] = {}
    for date in dates:
        whole = day_interval(date, zones)
        index = bisect_right(starts, whole.start_ms) - 1
        if index < 0 and starts:
            index = 0 if starts[0] < whole.end_ms else -1
        if index < 0:
            continue
        feeding = ordered[index]
        changed = index + 1 < len(starts) and starts[index + 1] < whole.end_ms
        if feeding.kcal_per_kg is not None and not changed:
            factors[date] = feeding.kcal_per_kg / _MG_PER_KG
    return factors


def food_segments(feedings: Sequence[Feeding], zones: tuple[ZonePeriod, ...]) -> tuple[SegmentStart, ...]:
    """Every change of food as a break: grams before and after are not comparable."""
    ordered = sorted(feedings, key=lambda feeding: feeding.start_ms)
    return tuple(
        SegmentStart(local_day(later.start_ms, zones), f"the food changed to {later.name}")
        for earlier, later in pairwise(ordered)
        if later.food != earlier.food
    )


def compare_rows(
    rows: Sequence[DayRow],
    first: str,
    last: str,
    *,
    history_from: str,
    zones: tuple[ZonePeriod, ...],
    now_ms: int,
    unit: str,
    kind: str,
    night_only: bool = False,
    relevance: float = RELEVANCE,
    feedings: Sequence[Feeding] = (),
    segments: tuple[SegmentStart, ...] = (),
    unattributed: float = 0.0,
    read_to: str | None = None,
) -> Measured:
    """Compare the days ``first`` .. ``last`` with the days from ``history_from`` on.

    Parameters
    ----------
    rows : sequence of DayRow
        One series, any dates.
    feedings : sequence of Feeding
        For grams of food: what the bowl held when. Where two foods are involved and both
        labels give energy, kcal are compared; else the change of food is a break.
    segments : tuple of SegmentStart
        Changes of the measuring itself (collar refitted, detector updated).
    read_to : str, optional
        The last local day laid out, ``last`` unless a night's morning lies after it.

    Returns
    -------
    Measured
    """
    until = last if read_to is None else max(last, read_to)
    grid = grid_of(rows, history_from, until, zones=zones, now_ms=now_ms, unit=unit, kind=kind, night_only=night_only)
    grid, breaks = comparable(grid, feedings, zones)
    comparison = compare(
        grid, first, last, relevance=relevance, segments=(*segments, *breaks), unattributed=unattributed
    )
    return Measured(comparison, grid.unit, grid, breaks)


def comparable(
    grid: DayGrid, feedings: Sequence[Feeding], zones: tuple[ZonePeriod, ...]
) -> tuple[DayGrid, tuple[SegmentStart, ...]]:
    """Grams of several foods as energy where every label gives it, else with each change as a break.

    A grid of one food, or of anything but grams, comes back as it is.
    """
    first = grid.dates[0] if grid.dates else "9999-12-31"
    foods = {feeding.food for feeding in feedings if feeding.end_ms is None or _reaches(feeding, first, zones)}
    if grid.unit != "mg" or grid.kind != "mass" or len(foods) < 2:
        return grid, ()
    fed = [feeding for feeding in feedings if feeding.food in foods]
    if all(feeding.kcal_per_kg is not None for feeding in fed):
        return rescale(grid, energy_factors(grid.dates, fed, zones), "kcal"), ()
    return grid, food_segments(fed, zones)


def level_grid(
    readings: Sequence[tuple[int, int]], first: str, last: str, *, zones: tuple[ZonePeriod, ...], unit: str
) -> DayGrid:
    """Readings of a level, (at_ms, value), as local days: each hour's mean, covered where there is one."""
    dates = dates_between(first, last)
    place = {date: index for index, date in enumerate(dates)}
    sums, counts = np.zeros((len(dates), 24)), np.zeros((len(dates), 24), dtype=np.int64)
    span = np.stack([hour_spans(date, zones) for date in dates])
    for at_ms, value in readings:
        index = place.get(local_day(at_ms, zones))
        if index is not None:
            hour = local_clock(at_ms, zones).hour
            sums[index, hour] += value
            counts[index, hour] += 1
    total = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return DayGrid(dates, total, np.where(counts > 0, span, 0), span, unit, "level")


def _reaches(feeding: Feeding, date: str, zones: tuple[ZonePeriod, ...]) -> bool:
    return feeding.end_ms is not None and feeding.end_ms > day_interval(date, zones).start_ms
