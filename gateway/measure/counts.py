"""Small counts: vomits, refills, bouts; a handful a month, where a normal test lies.

Gamma-Poisson: with K events in T days before and a prior Gamma(1/2, 0) (Jeffreys), the
number in the next t days is negative binomial. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.measure.tails import beta_below, beta_quantile, poisson_mean
from gateway.model import Comparison, Unclear, Verdict

__all__ = ["compare_counts", "count_tails"]

_SHAPE = 0.5
_TAIL = 0.025
_POWER = 0.80


def count_tails(count: float, days: float, base_count: float, base_days: float) -> tuple[float, float]:
    r"""P(X >= count) and P(X <= count) for the next ``days``, given the past.

    X is negative binomial with r = K + 1/2 and q = t / (T + t), so
    P(X >= k) = I_q(k, r), the regularised incomplete beta function (Gelman et al., BDA3, 2.6).
    """
    q = days / (base_days + days)
    shape = base_count + _SHAPE
    high = 1.0 if count <= 0 else beta_below(count, shape, q)
    low = 1.0 - beta_below(count + 1.0, shape, q)
    return high, low


def _smallest_visible(days: float, base_count: float, base_days: float) -> float | None:
    """Relative rise whose count would be called up in 80 % of windows; None with no past."""
    if base_count <= 0:
        return None
    least = 1
    while count_tails(least, days, base_count, base_days)[0] > _TAIL:
        least += 1
    mean_needed = poisson_mean(least, _POWER)
    return mean_needed / (base_count / base_days * days) - 1.0


def compare_counts(
    blank: Comparison, *, count: float, days: float, base_count: float, base_days: float, relevance: float
) -> Comparison:
    """Finish ``blank`` for a small count by the same order of rules.

    The 90 % interval of the ratio of rates comes from Beta(k + 1/2, K + 1/2); with no event
    before, the ratio does not exist and only the verdict is given.
    """
    high, low = count_tails(count, days, base_count, base_days)
    change = interval = None
    if base_count > 0:
        change = (count / days) / (base_count / base_days) - 1.0
        scale = base_days / days
        ends = [beta_quantile(count + _SHAPE, base_count + _SHAPE, side) for side in (0.05, 0.95)]
        least, most = (scale * end / (1.0 - end) - 1.0 for end in ends)
        interval = (min(least, change), max(most, change))  # of no event at all, zero is the low end
    shown = replace(
        blank,
        now=count / days,
        usual=base_count / base_days,
        change=change,
        interval=interval,
        smallest_visible=_smallest_visible(days, base_count, base_days),
    )
    if high <= _TAIL:
        return replace(shown, verdict=Verdict.UP, reason=None)
    if low <= _TAIL:
        return replace(shown, verdict=Verdict.DOWN, reason=None)
    if interval is not None and -relevance <= interval[0] and interval[1] <= relevance:
        return replace(shown, verdict=Verdict.USUAL, reason=None)
    chance = 100.0 * high
    return replace(
        shown,
        reason=Unclear.TOO_VARIABLE,
        detail=f"not unusual: {count:.0f} or more would come up in {chance:.0f} of 100 such windows",
    )
