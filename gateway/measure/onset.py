"""Since when: the day a series took its present level, as an interval of dates, or None.

One step in the daily index, found by the largest likelihood ratio. Pure; reads the same
baseline as :mod:`change`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from gateway.measure.baseline import BASELINE_DAYS, LAG_DAYS, expose, memory_of
from gateway.measure.days import add_days
from gateway.measure.grid import DayGrid, fault_of
from gateway.model import Verdict

__all__ = ["Onset", "onset"]

_LEAST_BEFORE = 14
_LEAST_AFTER = 3
_SUP_WALD = 9.84
"""5 % point of the largest Wald statistic over all days but the outer 5 % (Andrews 1993,
Econometrica 61:821, Table I, one parameter)."""
_INTERVAL = 5.94
"""90 % set of days: the drop from the largest 2 log LR is that of the larger of two
exponentials, (1 - exp(-c/2))^2 = 0.9 (Siegmund 1988, Ann. Stat. 16:487)."""
_FLOOR = 0.05


@dataclass(frozen=True, slots=True)
class Onset:
    """First local day of the new level: best date and 90 % interval, both ends included.

    ``change`` is the step as a fraction of the level before.
    """

    best: str
    earliest: str
    latest: str
    change: float


def onset(grid: DayGrid, first: str, last: str, *, verdict: Verdict | None = None) -> Onset | None:
    r"""The change point of the days that lead to and include the window ``first`` .. ``last``.

    y_d = log of the daily index. For each day k the step s_k = mean(y after) - mean(y
    before) has Wald statistic W_k = s_k^2 / var(s_k) with AR(1) memory; the best k has the
    largest. With ``verdict`` up or down the change is already shown, so only steps in its
    direction are dated, and not tested again; else None where the largest is below 9.84.
    None, too, where fewer than 14 covered days lie before or the data cannot be measured with.
    """
    if fault_of(grid) is not None:
        return None
    oldest = add_days(first, -(BASELINE_DAYS + LAG_DAYS))
    inside = np.array([oldest <= day <= last for day in grid.dates], dtype=bool)
    good = inside & grid.usable()
    if int(good.sum()) < _LEAST_BEFORE + _LEAST_AFTER:
        return None
    exposure = expose(grid, good)
    if exposure is None:
        return None
    days = np.flatnonzero(good & (exposure.expected > 0.0))
    if days.size < _LEAST_BEFORE + _LEAST_AFTER:
        return None
    index = np.maximum(exposure.observed[days] / exposure.expected[days], _FLOOR)
    ordinals = grid.ordinals[days]
    weekend = (ordinals + 6) % 7 >= 5
    rhythm = memory_of(index, ordinals, weekend, grid.kind).levels
    if min(rhythm) <= 0.0:
        return None
    index /= np.where(weekend, rhythm[1], rhythm[0])
    logs = np.log(index)
    cuts = np.arange(_LEAST_BEFORE, days.size - _LEAST_AFTER + 1)
    sums = np.concatenate(([0.0], np.cumsum(logs)))
    steps = (sums[-1] - sums[cuts]) / (days.size - cuts) - sums[cuts] / cuts
    if verdict in {Verdict.UP, Verdict.DOWN}:
        steps = np.maximum(steps, 0.0) if verdict is Verdict.UP else np.minimum(steps, 0.0)
    split = int(cuts[np.argmax(steps**2 * cuts * (days.size - cuts))])
    parts = np.concatenate((index[:split] / index[:split].mean(), index[split:] / index[split:].mean()))
    memory = memory_of(parts, ordinals, np.zeros(parts.size, dtype=bool), grid.kind)
    spread_of_mean = _mean_variance(cuts, memory.phi) + _mean_variance(days.size - cuts, memory.phi)
    wald = steps**2 / (memory.spread**2 * spread_of_mean)
    best = int(np.argmax(wald))
    least = 0.0 if verdict in {Verdict.UP, Verdict.DOWN} else _SUP_WALD
    if wald[best] <= least:
        return None
    within = np.flatnonzero(wald[best] - wald <= _INTERVAL) + _LEAST_BEFORE
    earliest = int(ordinals[within[0] - 1]) + 1  # it may have begun on an unheard day before
    return Onset(
        best=date.fromordinal(int(ordinals[best + _LEAST_BEFORE])).isoformat(),
        earliest=date.fromordinal(earliest).isoformat(),
        latest=date.fromordinal(int(ordinals[within[-1]])).isoformat(),
        change=float(np.expm1(steps[best])),
    )


def _mean_variance(count: NDArray[np.int64], phi: float) -> NDArray[np.float64]:
    r"""Variance of the mean of ``count`` AR(1) days of unit variance, same shape.

    .. math:: \frac{1}{m}\left(\frac{1+\phi}{1-\phi} - \frac{2\phi(1-\phi^m)}{m(1-\phi)^2}\right)
    """
    m = count.astype(np.float64)
    return ((1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi**m) / (m * (1.0 - phi) ** 2)) / m
