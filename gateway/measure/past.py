"""The pet's own past windows: non-overlapping weeks before the one asked about.

They give the frequency an owner understands ("3 of his last 26 weeks were as high") and,
from 40 on, a test that assumes nothing about distributions. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from gateway.measure.baseline import BASELINE_DAYS, LAG_DAYS, LEAST_HISTORY, Exposure
from gateway.measure.grid import LEAST_COVERAGE, DayGrid

__all__ = ["PastWindows", "past_windows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PastWindows:
    """Past windows, nearest first. ``rate`` is each one's observed over expected, shape [K];
    ``ratio`` the same over its own past, shape [M], for those that have one.
    """

    rate: FloatArray
    ratio: FloatArray

    @property
    def comparable(self) -> int:
        """How many past windows have a past of their own."""
        return int(self.ratio.size)

    def tail(self, ratio: float) -> float:
        """Smaller one-sided p of ``ratio`` by rank, (1 + beyond) / (1 + M).

        Ratios to their own past are ranked, not levels: a year's slow drift would otherwise
        make every last week the highest of all.
        """
        beyond = min(int((self.ratio >= ratio).sum()), int((self.ratio <= ratio).sum()))
        return (1 + beyond) / (1 + self.ratio.size)


def past_windows(grid: DayGrid, exposure: Exposure, usable: NDArray[np.bool_], first: str, last: str) -> PastWindows:
    """Windows as long as ``first`` .. ``last`` that end right before it, one after another.

    A past window needs 60 % of its days; its own past is the 56 days that end 7 before it,
    of which 21 must count.
    """
    begins = date.fromisoformat(first).toordinal()
    length = date.fromisoformat(last).toordinal() - begins + 1
    ordinals = grid.ordinals
    stop = int(np.searchsorted(ordinals, begins))
    if stop == 0:
        return PastWindows(np.zeros(0), np.zeros(0))
    oldest = int(ordinals[0])
    span = begins - oldest
    good = np.flatnonzero(usable[:stop] & (exposure.expected[:stop] > 0.0))
    at = ordinals[good] - oldest + 1
    sums = np.zeros((3, span + 1))
    sums[0, at], sums[1, at], sums[2, at] = exposure.observed[good], exposure.expected[good], 1.0
    sums = np.cumsum(sums, axis=1)
    ends = np.arange(span, length - 1, -length)

    def over(first_day: IntArray, after: IntArray) -> FloatArray:
        return np.asarray(sums[:, np.maximum(after, 0)] - sums[:, np.maximum(first_day, 0)])

    here = over(ends - length, ends)
    before = over(ends - length - LAG_DAYS - BASELINE_DAYS, ends - length - LAG_DAYS)
    whole = here[2] >= LEAST_COVERAGE * length
    rate = here[0, whole] / here[1, whole]
    based = (before[2] >= LEAST_HISTORY)[whole] & (before[0, whole] > 0.0)
    usual = before[0, whole][based] / before[1, whole][based]
    return PastWindows(rate, rate[based] / usual)
