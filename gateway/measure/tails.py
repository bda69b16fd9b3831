r"""Tails and quantiles of the few distributions that verdicts stand on: numbers in, numbers out.

Student's t, the beta and the Poisson distribution, one value at a time, in double precision.
Scipy has them all, but importing :mod:`scipy.special` takes longer than answering a question
and 22 MiB that a hub keeps for good; the tests compare each function with it.

.. math::
    I_x(a, b) = \frac{x^a (1 - x)^b}{a B(a, b)} \frac{1}{1 + \frac{d_1}{1 + \frac{d_2}{1 + \dots}}}

Sources: DLMF 8.17.22 (the continued fraction of I_x), 8.17.4 (its symmetry), 8.4.10 (Poisson
sums); Lentz, Applied Optics 15:668 (1976), in the form of Thompson and Barnett, J. Comput. Phys.
64:490 (1986); Hill, CACM 13:619 (1970), for where a quantile is first looked for. No iteration
returns its last guess: it ends where doubles end, or in `NotConverged`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from gateway.errors import MeasureError, NotConverged

__all__ = ["beta_below", "beta_quantile", "normal_quantile", "poisson_mean", "student_below", "student_quantile"]

_ULP = 2.0**-52
_TINY = 1e-300
_STIRLING = 10.0
_STIRLING_TERMS = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)  # B_2k / 2k (2k - 1)
_MOST_TERMS = 20_000  # the fraction takes O(sqrt(max(a, b))) terms: enough for 10^7 events
_NEWTON_STEPS = 12  # from then on rounding decides a step: halving ends in 60 more
_MOST_STEPS = 120
_normal = NormalDist()


def normal_quantile(p: float) -> float:
    """The standard normal quantile of ``p`` in (0, 1) (Wichura, AS 241, 1988: to 1 in 10^16)."""
    return _normal.inv_cdf(p)


def beta_below(a: float, b: float, x: float) -> float:
    """I_x(a, b) = P(X <= x) of a Beta(a, b); a, b > 0.

    Raises
    ------
    MeasureError
        A shape is not above 0, or ``x`` lies outside [0, 1].
    """
    if not (a > 0.0 and b > 0.0 and 0.0 <= x <= 1.0):
        raise MeasureError(f"a beta tail needs shapes above 0 and x in [0, 1], has {a!r}, {b!r} and {x!r}")
    return _beta_below(a, b, x, 1.0 - x)


def _beta_below(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b) with ``rest`` = 1 - x, which a caller may know better than a subtraction does."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    size = math.exp(_log_of_power(a, b, x, rest))
    if x <= (a + 1.0) / (a + b + 2.0):
        return size * _fraction(a, b, x) / a
    return 1.0 - size * _fraction(b, a, rest) / b


def _log_of_power(a: float, b: float, x: float, rest: float) -> float:
    """Log of x^a (1 - x)^b / B(a, b), without taking large numbers from each other.

    Gamma(z) is Stirling's formula times e^r(z) from z = 10 on (DLMF 5.11.1); what is large cancels by hand.
    """
    if a < b:
        a, b, x, rest = b, a, rest, x
    of_x = math.log1p(-rest) if rest < 0.5 else math.log(x)
    of_rest = math.log1p(-x) if x < 0.5 else math.log(rest)
    if a < _STIRLING:
        return a * of_x + b * of_rest + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    if b < _STIRLING:
        ratio = (a - 0.5) * math.log1p(b / a) + b * (math.log(a + b) - 1.0) + _stirling(a + b) - _stirling(a)
        return a * of_x + b * of_rest + ratio - math.lgamma(b)
    # How far x and 1 - x are from their means, in parts of them; far from a mean the quotient is exact enough.
    off = (b * x - a * rest) / a
    rest_off = (a * rest - b * x) / b
    of_x = math.log1p(off) if off > -0.5 else math.log(x * (a + b) / a)
    of_rest = math.log1p(rest_off) if rest_off > -0.5 else math.log(rest * (a + b) / b)
    rounding = _stirling(a + b) - _stirling(a) - _stirling(b)
    return a * of_x + b * of_rest + 0.5 * math.log(a * (b / (a + b)) / math.tau) + rounding


def _stirling(z: float) -> float:
    """r(z) = log Gamma(z) - (z - 1/2) log z + z - 1/2 log 2 pi, to 1 in 10^15 of it from z = 10 on."""
    value = 0.0
    for term in _STIRLING_TERMS:
        value = term + value / (z * z)
    return value / z


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 1 / (1 + d1 / (1 + ...)), to the last bit that changes it."""
    above, below = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    below = 1.0 / (below if abs(below) > _TINY else _TINY)
    value = below
    change = math.inf
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for d in (even, odd):
            below = 1.0 + d * below
            above = 1.0 + d / above
            below = 1.0 / (below if abs(below) > _TINY else _TINY)
            above = above if abs(above) > _TINY else _TINY
            change = above * below
            value *= change
        if abs(change - 1.0) <= _ULP:
            return value
    raise NotConverged("the fraction of an incomplete beta", iterations=_MOST_TERMS, residual=change - 1.0, tol=_ULP)


def student_below(freedom: float, t: float) -> float:
    """P(T <= t) of Student's t; ``freedom`` above 0 and need not be whole."""
    if not freedom > 0.0:
        raise MeasureError(f"degrees of freedom must be above 0, are {freedom!r}")
    square = t * t
    if math.isinf(square):
        return 0.0 if t < 0.0 else 1.0
    x, rest = freedom / (freedom + square), square / (freedom + square)
    tail = 0.5 * _beta_below(0.5 * freedom, 0.5, x, rest)
    return tail if t < 0.0 else 1.0 - tail


def student_quantile(freedom: float, p: float) -> float:
    """The t with P(T <= t) = ``p``, p in (0, 1)."""
    if not 0.0 < p < 1.0:
        raise MeasureError(f"a quantile needs a chance in (0, 1), has {p!r}")
    if p == 0.5:
        return 0.0
    sign, tail = (1.0, 1.0 - p) if p > 0.5 else (-1.0, p)
    z = -normal_quantile(tail)
    third = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    first = z + (z**3 + z) / (4.0 * freedom) + third / freedom**2

    def missing(t: float) -> tuple[float, float]:
        square = t * t
        x, rest = freedom / (freedom + square), square / (freedom + square)
        slope = math.exp(_log_of_power(0.5 * freedom, 0.5, x, rest)) / t if t > 0.0 else 0.0
        return tail - student_below(freedom, -t), slope

    return sign * _root(missing, 0.0, math.inf, first)


def beta_quantile(a: float, b: float, p: float) -> float:
    """The x with I_x(a, b) = ``p``, p in (0, 1)."""
    if not 0.0 < p < 1.0:
        raise MeasureError(f"a quantile needs a chance in (0, 1), has {p!r}")

    def missing(x: float) -> tuple[float, float]:
        if not 0.0 < x < 1.0:
            return beta_below(a, b, x) - p, 0.0
        return beta_below(a, b, x) - p, math.exp(_log_of_power(a, b, x, 1.0 - x)) / (x * (1.0 - x))

    return _root(missing, 0.0, 1.0, a / (a + b))


def poisson_mean(least: int, p: float) -> float:
    """The mean at which ``least`` events or more (at least 1) come with chance ``p`` in (0, 1)."""
    if least < 1 or not 0.0 < p < 1.0:
        raise MeasureError(f"at least one event and a chance in (0, 1) are needed, are {least!r} and {p!r}")

    def missing(mean: float) -> tuple[float, float]:
        if mean <= 0.0:
            return -p, 0.0
        chances = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1.0)) for k in range(least)]
        return 1.0 - p - math.fsum(chances), chances[-1]

    return _root(missing, 0.0, math.inf, float(least))


def _root(missing: Callable[[float], tuple[float, float]], low: float, high: float, first: float) -> float:
    """Where a rising function crosses zero between two places: Newton's steps, halving (or doubling up to
    an infinite place) where they leave.

    Ends where the bracket or a step is two ulps of the place, which is all that doubles tell apart.
    """
    at = first if low < first < high else 1.0 if math.isinf(high) else 0.5 * (low + high)
    for step in range(_MOST_STEPS):
        value, slope = missing(at)
        if value == 0.0:
            return at
        low, high = (at, high) if value < 0.0 else (low, at)
        beyond = at - value / slope if slope > 0.0 and step < _NEWTON_STEPS else math.inf
        if not low < beyond < high:
            beyond = 2.0 * at if math.isinf(high) else 0.5 * (low + high)
        if abs(beyond - at) <= 2.0 * _ULP * abs(at) or (high - low <= 2.0 * _ULP * high < math.inf):
            return beyond
        at = beyond
    raise NotConverged("a quantile", iterations=_MOST_STEPS, residual=high - low, tol=2.0 * _ULP * abs(high))
