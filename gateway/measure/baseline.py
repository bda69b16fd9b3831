"""What is usual: the days before a window in, their level, spread and memory out.

A day enters as an index r = observed / expected, where expected comes from the baseline's
own hourly profile and only local hours covered on both sides take part. Levels are robust
(winsorised on the log scale), spreads have a floor, and the day-to-day memory is an AR(1)
with the small-sample bias taken out. Pure; decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.measure.days import HOUR_MS
from gateway.measure.grid import DayGrid

__all__ = [
    "BASELINE_DAYS",
    "LAG_DAYS",
    "LEAST_HISTORY",
    "Exposure",
    "Memory",
    "ar1_weights",
    "expose",
    "memory_of",
    "winsorise",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BASELINE_DAYS = 56
LAG_DAYS = 7
"""Days between baseline and window once the history is firm: a level that began last week
must not count as usual this week."""
LEAST_HISTORY = 21

_FEW_FOR_A_PROFILE = 30
"""Fewer events than hours have no time of day: four vomits at night do not make noon safe."""
_LEAST_AMOUNT = 1e-9
"""Stored amounts are whole mg, ms or counts; less in an hour (of kcal, too) is rounding."""
_WINSOR_SPREADS = 3.0
"""Days beyond 3 robust spreads count as if at 3: 0.3 % of unremarkable days, all wild ones."""

_LEAST_LOG_BOUND = 0.5
"""Winsor bounds are never tighter than a factor 1.65: counts such as 4, 4, 4, 5 are no outliers."""

_SPREAD_FLOOR = {"level": 0.02}
_SPREAD_FLOOR_ELSE = 0.05
"""Relative day-to-day spread below which no home device resolves; keeps zero spread from
turning any difference into infinite surprise. A drink, a meal or a full
bladder moves a body's weight by 2 %."""

_RHYTHM_ERRORS = 2.0
_LARGEST_PHI = 0.9
_WEEKEND_LEAST = 6
"""Weekend days a baseline must hold before weekends get a level of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """Days as observed against expected; all arrays have shape [D].

    ``observed`` sums the compared hours, ``expected`` what the baseline's profile gives for
    the same covered time, ``share`` is how much of a whole compared day that is (1 = all).
    ``per_day`` is the profile's sum over one day of compared hours, in the series' unit.
    """

    observed: FloatArray
    expected: FloatArray
    share: FloatArray
    per_day: float
    hours: BoolArray


def expose(grid: DayGrid, base: BoolArray) -> Exposure | None:
    r"""Observed and expected of every day of ``grid`` under the profile of rows ``base``.

    .. math:: p_h = \\sum_{d \\in B} x_{dh} / \\sum_{d \\in B} c_{dh}, \\quad
              E_d = \\sum_{h \\in H_d} p_h c_{dh}

    x in the series' unit, c in covered ms. H_d holds the hours at least half covered on day
    d and on at least half of the baseline's days. None where no hour is left.
    """
    if grid.kind == "level":
        level, ones = grid.day_totals(), np.ones(len(grid.dates))
        return Exposure(level, ones, ones, 1.0, np.ones(24, dtype=bool))
    half = (grid.covered_ms * 2 >= grid.span_ms) & (grid.span_ms > 0)
    hours = half[base].sum(axis=0) * 2 >= base.sum()
    if not hours.any():
        return None
    used = half & hours
    amount = np.where(used & (grid.total >= _LEAST_AMOUNT), grid.total, 0.0)
    covered = np.where(used, grid.covered_ms, 0)
    base_covered = covered[base].sum(axis=0)
    profile = np.divide(amount[base].sum(axis=0), base_covered, out=np.zeros(24), where=base_covered > 0)
    if grid.kind == "count" and amount[base].sum() < _FEW_FOR_A_PROFILE:
        profile = np.where(hours, amount[base].sum() / max(float(base_covered.sum()), 1.0), 0.0)
    per_day = float(profile[hours].sum() * HOUR_MS)
    expected = covered @ profile
    share = expected / per_day if per_day > 0.0 else covered.sum(axis=1) / (hours.sum() * HOUR_MS)
    return Exposure(amount.sum(axis=1), expected, share, per_day, np.asarray(hours))


def winsorise(values: FloatArray) -> FloatArray:
    """Values, shape [n], each drawn in to 3 robust spreads of the median on the log scale.

    The spread is the larger of 1.4826 MAD and IQR / 1.349 of the positive values' logs. A
    median of zero leaves them as they are: more than half zeros have no outliers to name.
    """
    ordered = np.sort(values)
    middle = _median(ordered) if values.size else 0.0
    if middle <= 0.0:
        return values
    logs = np.log(ordered[np.searchsorted(ordered, 0.0, side="right") :])
    quarters = float(logs[(3 * logs.size) // 4] - logs[logs.size // 4])
    spread = max(1.4826 * _median(np.sort(np.abs(logs - _median(logs)))), quarters / 1.349)
    reach = float(np.exp(max(_WINSOR_SPREADS * spread, _LEAST_LOG_BOUND)))
    return np.minimum(np.maximum(values, middle / reach), middle * reach)


def _median(ordered: FloatArray) -> float:
    """Median of sorted values; ``numpy.median`` costs ten times as much on sixty days."""
    n = ordered.size
    return float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Day-to-day behaviour of a baseline.

    ``levels`` are the usual index of (weekdays, weekends); ``spread`` is the standard
    deviation of a day's index about it; ``phi`` the lag-1 correlation of neighbouring days;
    ``freedom`` the effective degrees of freedom of the spread; ``spread_correction`` the factor
    by which a fitted level made the raw spread too small.
    """

    levels: tuple[float, float]
    spread: float
    phi: float
    freedom: float
    spread_correction: float


def _levels(index: FloatArray, weekend: BoolArray) -> tuple[tuple[float, float], FloatArray]:
    """Robust levels of weekdays and weekends, and the winsorised indices, shape [n].

    One level serves both unless each has 6 days and they differ by two standard errors: a
    rhythm that is not there would only add its noise to every part of a week.
    """
    drawn = winsorise(index)
    n, n_weekend = index.size, int(np.count_nonzero(weekend))
    total = float(drawn.sum())
    level = total / n if n else 0.0
    if min(n_weekend, n - n_weekend) >= _WEEKEND_LEAST:
        at_weekends = drawn[weekend]
        weekend_level = float(at_weekends.sum()) / n_weekend
        weekday_level = (total - weekend_level * n_weekend) / (n - n_weekend)
        squares = float(drawn @ drawn)
        weekend_squares = float(at_weekends @ at_weekends)
        weekend_variance = weekend_squares / n_weekend - weekend_level**2
        weekday_variance = (squares - weekend_squares) / (n - n_weekend) - weekday_level**2
        error = weekend_variance / (n_weekend - 1) + weekday_variance / (n - n_weekend - 1)
        if (weekend_level - weekday_level) ** 2 > max(_RHYTHM_ERRORS**2 * error, 1e-18 * level**2):
            return (weekday_level, weekend_level), drawn
    return (level, level), drawn


def memory_of(index: FloatArray, ordinals: IntArray, weekend: BoolArray, kind: str) -> Memory:
    """Level, spread and AR(1) of baseline indices, each of shape [n].

    phi from pairs of days one apart, corrected for the bias of a fitted mean,
    phi = (n r + 1) / (n - 3) (Marriott & Pope 1954, Biometrika 41:390), held in [0, 0.9].
    The spread is corrected for the part the correlated mean absorbs. Degrees of freedom by
    Satterthwaite from two errors of log variance: 2 (1 + phi^2) / (n (1 - phi^2)) of the
    spread (Bartlett 1946, JRSS Suppl. 8:27) and, where there is memory, 3 / n of phi itself
    (a week's variance factor g has d log g / d phi = 1.75).
    """
    levels, drawn = _levels(index, weekend) if kind != "level" else _levels(index, np.zeros_like(weekend))
    level = np.where(weekend, levels[1], levels[0])
    relative = np.divide(drawn, level, out=np.ones(index.size), where=level > 0.0) - 1.0
    n, fitted = index.size, 1 + (levels[0] != levels[1])
    follows = ordinals[1:] - ordinals[:-1] == 1
    pairs = int(np.count_nonzero(follows))
    square = float(relative @ relative) / max(n, 1)
    phi = 0.0
    if pairs >= 8 and square > 0.0:
        raw = float((relative[1:] * follows) @ relative[:-1]) / pairs / square
        phi = min(max((pairs * raw + 1.0) / (pairs - 3), 0.0), _LARGEST_PHI)
    inflation = (1.0 + phi) / (1.0 - phi)
    absorbed = min((inflation + fitted - 1) / n, 0.75)
    correction = float(1.0 / np.sqrt(1.0 - absorbed))
    spread = max(float(np.sqrt(square)) * correction, _SPREAD_FLOOR.get(kind, _SPREAD_FLOOR_ELSE))
    of_spread = 2.0 * (1.0 + phi**2) / (n * (1.0 - phi**2))
    of_phi = 3.0 / n if phi > 0.0 else 0.0
    freedom = max(2.0 / (of_spread + of_phi) - fitted, 3.0)
    return Memory(levels, spread, phi, freedom, correction)


def ar1_weights(weights: FloatArray, ordinals: IntArray, phi: float) -> float:
    r"""Variance factor of a weighted sum of days with AR(1) memory.

    .. math:: \\sum_{ij} a_i a_j \\phi^{|t_i - t_j|}

    ``weights`` and day numbers ``ordinals`` have shape [n]; phi in [0, 1).
    """
    if phi <= 0.0:
        return float(weights @ weights)
    distance = np.abs(ordinals[:, None] - ordinals[None, :])
    return float(weights @ (phi**distance) @ weights)
