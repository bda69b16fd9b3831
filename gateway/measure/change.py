"""Compare a window with the pet's own past: a day grid in, one typed Comparison out.

The order of rules is the contract's: coverage and history first, then a two-sided
AR(1)-adjusted test (a rank test from 40 own past windows on), then equivalence within the
relevance bound, else "cannot tell" with its reason. Bad data is a typed result; a number is
never guessed and no numpy warning escapes. Reads no clock: today is the row whose hours
exist only up to now.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from gateway.measure.baseline import (
    BASELINE_DAYS,
    LAG_DAYS,
    LEAST_HISTORY,
    Exposure,
    Memory,
    ar1_weights,
    expose,
    memory_of,
)
from gateway.measure.counts import compare_counts
from gateway.measure.days import add_days, dates_between
from gateway.measure.grid import LEAST_COVERAGE, DayGrid, fault_of
from gateway.measure.past import PastWindows, past_windows
from gateway.measure.tails import student_quantile
from gateway.model import Comparison, Unclear, Verdict

__all__ = ["BASELINE_DAYS", "LEAST_HISTORY", "RANK_WINDOWS", "RELEVANCE", "SegmentStart", "compare"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

RELEVANCE = 0.25
FIRM_HISTORY = 28
RANK_WINDOWS = 40
"""Below 40 own past windows even the most extreme rank has p > 5 %."""
_FEW_COUNTS = 10.0
_LEAST_LEVELS = 8
_UNATTRIBUTED = 0.1
_TEST, _SIDE, _POWER = 0.975, 0.95, 0.80
_ONE_DAY_SPREADS = 4.0
_BLIND = 1.5
"""Standard error of a log ratio beyond which a range would span a factor of a hundred."""


@dataclass(frozen=True, slots=True)
class SegmentStart:
    """A local day on which the measuring changed: detector, firmware, collar, bowl, food.

    ``breaks`` holds where numbers before and after are not comparable at all (another
    detector version, grams of another food); else it is named as a rival explanation.
    """

    date: str
    label: str
    breaks: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Row masks of a sliced grid: days heard enough, the window's days, those used, and the baseline's."""

    usable: BoolArray
    window: BoolArray
    used: BoolArray
    base: BoolArray
    needed: int


@dataclass(frozen=True, slots=True)
class _Estimate:
    ratio: float
    error: float
    freedom: float
    usual: float


def compare(
    grid: DayGrid,
    first: str,
    last: str,
    *,
    relevance: float = RELEVANCE,
    segments: tuple[SegmentStart, ...] = (),
    unattributed: float = 0.0,
) -> Comparison:
    """The days ``first`` .. ``last`` (ISO, both included) against the days before them.

    Parameters
    ----------
    grid : DayGrid
        The series, with as much history as there is; rows after ``last`` are not read.
    relevance : float
        Fraction of usual below which a change does not matter to an owner (0.25 = 25 %).
    segments : tuple of SegmentStart
        Changes of the measuring, in any order.
    unattributed : float
        Amount in the window whose eater is unknown, in the series' unit.

    Returns
    -------
    Comparison
        ``now`` and ``usual`` are per day of compared hours, ``change`` = now / usual - 1 and
        its 90 % interval are fractions. With all hours heard, ``now`` is the plain mean.

    Notes
    -----
    R = sum O / sum E over the window's used days; log R is tested with Student's t against
    spread^2 a'Ca, C_ij = phi^|i-j|, a the weights of window and baseline days. An open day
    counts with the share of a usual day it holds.
    """
    grid = _slice(grid, last, len(dates_between(first, last)))
    rows = _rows(grid, first, last, segments)
    blank = _blank(grid, rows, first, last, segments)
    refused = _refusal(grid, rows, blank, first, segments)
    if refused is not None:
        return refused
    exposure = expose(grid, rows.base)
    if exposure is None or exposure.share[rows.used].sum() <= 0.0:
        return replace(blank, reason=Unclear.NOT_HEARD, detail="no local hour was heard on both sides")
    usual = exposure.per_day
    if unattributed > _UNATTRIBUTED * max(usual * exposure.share[rows.used].sum(), 1e-9):
        return replace(
            blank,
            reason=Unclear.WHOSE_UNKNOWN,
            detail=f"{unattributed:.0f} {grid.unit} in the window cannot be attributed to one pet",
        )
    past = past_windows(grid, exposure, rows.usable, first, last) if grid.kind != "level" else None
    blank = _with_rank(blank, past, exposure, rows)
    if grid.kind == "count" and usual * exposure.share[rows.used].sum() < _FEW_COUNTS:
        return compare_counts(
            blank,
            count=float(exposure.observed[rows.used].sum()),
            days=float(exposure.share[rows.used].sum()),
            base_count=float(exposure.observed[rows.base].sum()),
            base_days=float(exposure.share[rows.base].sum()),
            relevance=relevance,
        )
    return _tested(grid, exposure, rows, blank, relevance=relevance, past=past)


def _slice(grid: DayGrid, last: str, window_days: int) -> DayGrid:
    """The rows up to ``last``, at most what baselines and 53 past windows can reach back."""
    stop = bisect_right(grid.dates, last)
    oldest = add_days(last, -(BASELINE_DAYS + LAG_DAYS + 54 * window_days))
    start = bisect_left(grid.dates, oldest)
    return replace(
        grid,
        dates=grid.dates[start:stop],
        total=grid.total[start:stop],
        covered_ms=grid.covered_ms[start:stop],
        span_ms=grid.span_ms[start:stop],
    )


def _needed(kind: str, window_days: int) -> int:
    """Covered days a baseline must have: 21 before a week, as many as a longer window has."""
    return _LEAST_LEVELS if kind == "level" else min(max(window_days, LEAST_HISTORY), BASELINE_DAYS)


def _rows(grid: DayGrid, first: str, last: str, segments: tuple[SegmentStart, ...]) -> _Rows:
    """Which rows are window and which are baseline.

    The baseline is the covered days among the 56 that end 7 days before the window, or right
    before it while fewer than 28 would be left; it never reaches back over a break.
    """
    ordinals = grid.ordinals
    begins, ends = date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal()
    length = ends - begins + 1
    window = (ordinals >= begins) & (ordinals <= ends) & (grid.span_ms.sum(axis=1) > 0)
    good = grid.usable()
    reach = max(BASELINE_DAYS, length)
    floor = max((start.date for start in segments if start.breaks and start.date <= first), default="0001-01-01")
    unbroken = good & (ordinals >= date.fromisoformat(floor).toordinal())
    firm = _LEAST_LEVELS if grid.kind == "level" else max(FIRM_HISTORY, _needed(grid.kind, length))

    def between(lag: int) -> BoolArray:
        return np.asarray(unbroken & (ordinals >= begins - lag - reach) & (ordinals < begins - lag))

    base = between(LAG_DAYS)
    if base.sum() < firm:
        base = between(0)
    return _Rows(good, window, window & good, base, _needed(grid.kind, length))


def _blank(grid: DayGrid, rows: _Rows, first: str, last: str, segments: tuple[SegmentStart, ...]) -> Comparison:
    """A comparison that says which days it looked at, and nothing about them yet."""
    dates = np.array(grid.dates, dtype=object)
    span = grid.span_ms[rows.window].sum()
    heard = np.minimum(grid.covered_ms, grid.span_ms)[rows.window].sum()
    near = add_days(first, -LAG_DAYS)
    return Comparison(
        verdict=Verdict.CANNOT_TELL,
        reason=Unclear.BAD_DATA,
        now=None,
        usual=None,
        change=None,
        interval=None,
        smallest_visible=None,
        rank=None,
        rank_of=None,
        days_used=tuple(dates[rows.used].tolist()),
        days_expected=len(dates_between(first, last)),
        baseline_days=tuple(dates[rows.base].tolist()),
        baseline_needed=rows.needed,
        coverage=float(heard / span) if span > 0 else 0.0,
        set_aside_days=tuple(dates[rows.window & ~rows.used].tolist()),
        rivals=tuple(start.label for start in segments if near <= start.date <= last),
    )


def _refusal(
    grid: DayGrid, rows: _Rows, blank: Comparison, first: str, segments: tuple[SegmentStart, ...]
) -> Comparison | None:
    """The first rule: what coverage, history and units forbid to compare; None if nothing."""
    fault = fault_of(grid)
    if fault is not None:
        return replace(blank, reason=Unclear.BAD_DATA, detail=fault)
    inside = [start for start in segments if start.breaks and first < start.date and start.label in blank.rivals]
    if inside:
        label = inside[0].label
        return replace(blank, reason=Unclear.NOT_COMPARABLE, detail=f"{label} on {inside[0].date}, inside the window")
    used, expected = len(blank.days_used), blank.days_expected
    least = 1 if grid.kind == "level" else LEAST_COVERAGE * expected
    if used < least:
        return replace(blank, reason=Unclear.NOT_HEARD, detail=f"{used} of {expected} days were heard enough to count")
    if rows.base.sum() < rows.needed:
        cut = [start for start in segments if start.breaks and add_days(first, -BASELINE_DAYS) < start.date <= first]
        reason = Unclear.NOT_COMPARABLE if cut else Unclear.TOO_FEW_DAYS
        since = f" since {cut[-1].label} on {cut[-1].date}" if cut else ""
        return replace(
            blank,
            reason=reason,
            detail=f"{int(rows.base.sum())} days recorded before the window{since}, {rows.needed} needed",
        )
    return None


def _estimate(grid: DayGrid, exposure: Exposure, rows: _Rows, used: BoolArray) -> tuple[_Estimate, Memory] | None:
    """Ratio of the rows ``used`` to their expectation, its standard error on the log scale."""
    base = rows.base & (exposure.expected > 0.0)
    if not base.any() or exposure.per_day <= 0.0:
        return None
    ordinals = grid.ordinals
    weekend = (ordinals + 6) % 7 >= 5  # day number 1 is a Monday
    index = exposure.observed[base] / exposure.expected[base]
    memory = memory_of(index, ordinals[base], weekend[base], grid.kind)
    level = np.where(weekend, memory.levels[1], memory.levels[0])
    expected = exposure.expected * level
    total = float(expected[used].sum())
    if total <= 0.0:
        return None
    weights = np.zeros(len(grid.dates))
    weights[used] = expected[used] / total
    split = memory.levels[0] != memory.levels[1]
    for group in (~weekend, weekend) if split else (np.ones_like(weekend),):
        members = base & group
        weights[members] = -weights[used & group].sum() / max(int(members.sum()), 1)
    taking = used | base
    part = np.clip(exposure.share[used], 1e-6, 1.0)
    open_extra = float((weights[used] ** 2 * (1.0 / part - 1.0)).sum())
    factor = ar1_weights(weights[taking], ordinals[taking], memory.phi) + open_extra
    usual = exposure.per_day * float(level[used].mean())
    ratio = float(exposure.observed[used].sum()) / total
    return _Estimate(ratio, memory.spread * float(np.sqrt(factor)), memory.freedom, usual), memory


def _tested(
    grid: DayGrid, exposure: Exposure, rows: _Rows, blank: Comparison, *, relevance: float, past: PastWindows | None
) -> Comparison:
    """The second to fourth rule: test, equivalence, else cannot tell."""
    found = _estimate(grid, exposure, rows, rows.used)
    if found is None:
        now = float(exposure.observed[rows.used].sum() / max(exposure.share[rows.used].sum(), 1e-9))
        if now == 0.0:
            return replace(
                blank, verdict=Verdict.USUAL, reason=None, now=0.0, usual=0.0, detail="none now and none before"
            )
        return replace(
            blank, reason=Unclear.TOO_VARIABLE, now=now, usual=0.0, detail="none was recorded before the window"
        )
    estimate, memory = found
    if estimate.error > _BLIND:
        now, usual = estimate.ratio * estimate.usual, estimate.usual
        return replace(
            blank, reason=Unclear.TOO_VARIABLE, now=now, usual=usual, detail="the days before vary too much for a range"
        )
    reach = student_quantile(estimate.freedom, _SIDE) * estimate.error
    at_power = student_quantile(estimate.freedom, _POWER) * estimate.error
    critical = student_quantile(estimate.freedom, _TEST) * estimate.error
    shown = replace(
        blank,
        now=estimate.ratio * estimate.usual,
        usual=estimate.usual,
        change=estimate.ratio - 1.0,
        interval=_interval(estimate.ratio, reach),
        smallest_visible=float(np.expm1(critical + at_power)),
    )
    away = float(np.log(estimate.ratio)) if estimate.ratio > 0.0 else -np.inf
    rejects = abs(away) > critical
    if past is not None and past.comparable >= RANK_WINDOWS:
        rejects = past.tail(estimate.ratio) <= 1.0 - _TEST
    if rejects:
        lone = _rests_on_one_day(grid, exposure, rows, memory, away > 0)
        if lone is not None:
            return replace(shown, reason=Unclear.TOO_VARIABLE, detail=f"the difference rests on one day, {lone}")
        return replace(shown, verdict=Verdict.UP if away > 0 else Verdict.DOWN, reason=None)
    low, high = shown.interval if shown.interval is not None else (-1.0, np.inf)
    if low >= -relevance and high <= relevance:
        return replace(shown, verdict=Verdict.USUAL, reason=None)
    return replace(
        shown,
        reason=Unclear.TOO_VARIABLE,
        detail=f"this window would have shown a change of {100 * (shown.smallest_visible or 0.0):.0f} % or more",
    )


def _interval(ratio: float, reach: float) -> tuple[float, float]:
    """90 % interval of the change; for a ratio of zero the upper end is what one would miss."""
    if ratio <= 0.0:
        return (-1.0, min(reach - 1.0, 0.0))
    return (float(ratio * np.exp(-reach)) - 1.0, float(ratio * np.exp(reach)) - 1.0)


def _rests_on_one_day(
    grid: DayGrid,
    exposure: Exposure,
    rows: _Rows,
    memory: Memory,
    rising: bool,  # noqa: FBT001  # a direction, not an option
) -> str | None:
    """The one wild day a difference hangs on: without it the test would not reject.

    Only a day beyond 3 spreads of the median of the window's other days is tried, so an even
    rise keeps its full power; the last day is never excused, it may be a beginning.
    """
    used = np.flatnonzero(rows.used & (exposure.expected > 0.0))
    if used.size < 4:
        return None
    index = exposure.observed[used] / exposure.expected[used]
    extreme = int(np.argmax(index)) if rising else int(np.argmin(index))
    rest = float(np.median(np.delete(index, extreme)))
    reach = float(np.exp(_ONE_DAY_SPREADS * memory.spread))  # spreads scale with the level
    wild = index[extreme] > rest * reach if rising else index[extreme] < rest / reach
    if extreme == used.size - 1 or not wild:
        return None
    without = rows.used.copy()
    without[used[extreme]] = False
    found = _estimate(grid, exposure, rows, without)
    if found is None:
        return None
    estimate = found[0]
    critical = student_quantile(estimate.freedom, _TEST) * estimate.error
    away = float(np.log(estimate.ratio)) if estimate.ratio > 0.0 else -np.inf
    return None if (away > critical if rising else away < -critical) else grid.dates[used[extreme]]


def _with_rank(blank: Comparison, past: PastWindows | None, exposure: Exposure, rows: _Rows) -> Comparison:
    """``blank`` with how many of the pet's own comparable windows lay below this one."""
    expected = float(exposure.expected[rows.used].sum())
    if past is None or past.rate.size == 0 or expected <= 0.0:
        return blank
    now = float(exposure.observed[rows.used].sum()) / expected
    return replace(blank, rank=int((past.rate < now).sum()), rank_of=int(past.rate.size))
