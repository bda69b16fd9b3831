"""Slow change: what no single week shows. A robust slope over 90, 180 and 365 days.

For weight, energy, water, activity and rest, beside the weekly verdict and never instead of
it. Weekly medians in, "slowly down since about April" or nothing out. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from gateway.measure.grid import DayGrid, fault_of
from gateway.measure.tails import normal_quantile

__all__ = ["SPANS_DAYS", "Reference", "SlowChange", "reference_level", "slow_change", "theil_sen"]

FloatArray = NDArray[np.float64]

SPANS_DAYS = (365, 180, 90)
"""Longest first: the longest span that shows a change names it."""
_SURE = 0.9983
"""One-sided; both sides and three spans together err in 1 % of unchanged series."""
_LEAST_WEEKS = 8
_LEAST_FILLED = 0.6
_REFERENCE_DAYS = 90


@dataclass(frozen=True, slots=True)
class SlowChange:
    """A slow rise or fall. ``change`` is the fraction over the time since ``since``
    (an ISO date, good to about a month); ``interval`` its 90 % interval.

    ``season_known`` holds where the same months of an earlier year were recorded; else the
    season is a rival explanation.
    """

    span_days: int
    since: str
    change: float
    interval: tuple[float, float]
    season_known: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """A fixed level to hold the present against: the best-covered 90 adult days."""

    first: str
    last: str
    level: float
    days: int


def theil_sen(times: FloatArray, values: FloatArray) -> tuple[float, FloatArray]:
    """Median of all pairwise slopes, and the sorted slopes (Sen 1968, JASA 63:1379).

    ``times`` and ``values`` have shape [n]; n (n - 1) / 2 slopes.
    """
    i, j = np.triu_indices(times.size, 1)
    slopes = np.sort((values[j] - values[i]) / (times[j] - times[i]))
    return float(np.median(slopes)), slopes


def _slope_interval(slopes: FloatArray, n: int, inflation: float, sure: float) -> tuple[float, float]:
    """Sen's rank interval with Kendall's variance n (n-1) (2n+5) / 18, enlarged for memory
    (Hamed & Rao 1998, J. Hydrol. 204:182).
    """
    reach = normal_quantile(sure) * np.sqrt(n * (n - 1) * (2 * n + 5) / 18.0 * inflation)
    low = int(np.floor((slopes.size - reach) / 2.0))
    high = int(np.ceil((slopes.size + reach) / 2.0))
    if low < 0 or high >= slopes.size:
        return (-np.inf, np.inf)
    return float(slopes[low]), float(slopes[high])


def _weekly(grid: DayGrid, last_ordinal: int, span_days: int) -> tuple[FloatArray, FloatArray]:
    """Weekly medians of the usable days of the span: mid-week day numbers and values."""
    ordinals = grid.ordinals
    keep = grid.usable() & (ordinals > last_ordinal - span_days) & (ordinals <= last_ordinal)
    totals, days = grid.day_totals()[keep], ordinals[keep]
    weeks = (last_ordinal - days) // 7
    found = [week for week in np.unique(weeks)[::-1] if float(np.median(totals[weeks == week])) > 0.0]
    times = np.array([last_ordinal - 7.0 * week - 3.0 for week in found])
    return times, np.array([float(np.median(totals[weeks == week])) for week in found])


def _inflation(residuals: FloatArray) -> float:
    """(1 + phi) / (1 - phi) of weekly residuals, phi bias-corrected and held in [0, 0.8]."""
    n = residuals.size
    square = float(residuals @ residuals)
    if square == 0.0:
        return 1.0
    raw = float(residuals[1:] @ residuals[:-1]) / square * n / (n - 1)
    phi = min(max((n * raw + 1.0) / (n - 4), 0.0), 0.8)
    return (1.0 + phi) / (1.0 - phi)


def slow_change(grid: DayGrid, last: str, *, least_change: float) -> SlowChange | None:
    """The slow change that has reached ``last`` (ISO date), or None.

    The log of weekly medians is fitted by Theil and Sen over each span; a span counts when
    at least 60 % of its weeks (8 or more) have data, its 99 % slope interval leaves zero out
    and the change over it is at least ``least_change`` (a fraction; 0.02 for weight).
    """
    if fault_of(grid) is not None:
        return None
    last_ordinal = date.fromisoformat(last).toordinal()
    recorded = grid.ordinals[grid.usable()]
    for span_days in SPANS_DAYS:
        times, values = _weekly(grid, last_ordinal, span_days)
        if times.size < max(_LEAST_WEEKS, _LEAST_FILLED * span_days / 7.0):
            continue
        logs = np.log(values)
        slope, slopes = theil_sen(times, logs)
        inflation = _inflation(logs - np.median(logs - slope * times) - slope * times)
        low, high = _slope_interval(slopes, times.size, inflation, _SURE)
        since = _bend(times, logs)
        length = last_ordinal - since
        if low <= 0.0 <= high or abs(np.expm1(slope * (times[-1] - times[0]))) < least_change:
            continue
        later = times >= since
        if later.sum() >= _LEAST_WEEKS:
            slope, slopes = theil_sen(times[later], logs[later])
        near = _slope_interval(slopes, int(later.sum()), inflation, 0.95)
        year_before = (recorded > last_ordinal - 365 - span_days) & (recorded <= last_ordinal - 365)
        return SlowChange(
            span_days=span_days,
            since=date.fromordinal(since).isoformat(),
            change=float(np.expm1(slope * length)),
            interval=(float(np.expm1(near[0] * length)), float(np.expm1(near[1] * length))),
            season_known=int(year_before.sum()) * 7 >= _LEAST_FILLED * span_days,
        )
    return None


def _bend(times: FloatArray, logs: FloatArray) -> int:
    """Day number where a flat level bends into a slope, by least squares over the weeks."""
    best, since = np.inf, times[0]
    centred = logs - logs.mean()
    for knot in times[: -_LEAST_WEEKS // 2]:
        ramp = np.maximum(times - knot, 0.0)
        ramp -= ramp.mean()
        left = float(centred @ centred) - float(ramp @ centred) ** 2 / float(ramp @ ramp)
        if left < best:
            best, since = left, knot
    return int(since)


def reference_level(grid: DayGrid, *, adult_from: str) -> Reference | None:
    """Median of the 90 consecutive days, from ``adult_from`` on, with most days recorded.

    Ties go to the earliest, so the reference stands still while the pet ages. None with
    fewer than 21 recorded days in any 90.
    """
    if fault_of(grid) is not None:
        return None
    keep = grid.usable() & (grid.ordinals >= date.fromisoformat(adult_from).toordinal())
    days, totals = grid.ordinals[keep], grid.day_totals()[keep]
    if days.size < 21:
        return None
    counts = np.searchsorted(days, days + _REFERENCE_DAYS) - np.arange(days.size)
    start = int(np.argmax(counts))
    if counts[start] < 21:
        return None
    inside = slice(start, start + int(counts[start]))
    first = date.fromordinal(int(days[start])).isoformat()
    final = date.fromordinal(int(days[inside][-1])).isoformat()
    return Reference(first, final, float(np.median(totals[inside])), int(counts[start]))
