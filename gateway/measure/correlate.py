"""Edges between measured series: all pairs, lags of -14 to 14 days, false ones held to 5 %.

Cleaned series (:mod:`prewhiten`) are correlated by matrix products over the days both were
recorded; Sidak over lags, Benjamini and Hochberg over pairs. What is found in one pass is no
edge yet: :func:`standing` wants three in a row. "Not significant" refutes nothing; only an
upper bound of |r| below .2 does. Belief never comes from |r|. Pure.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.errors import MeasureError
from gateway.measure.prewhiten import detrend, normal_scores, remove_common_mode, remove_weekdays, whiten
from gateway.measure.tails import normal_quantile

__all__ = [
    "LARGEST_LAG",
    "LEAST_COMMON_DAYS",
    "METHOD",
    "Association",
    "Pass",
    "SeriesDays",
    "Standing",
    "associations",
    "belief_of",
    "benjamini_hochberg",
    "standing",
]

FloatArray = NDArray[np.float64]

METHOD = "lagged-rank-2"
LARGEST_LAG = 14
LEAST_COMMON_DAYS = 45
_Q_WRITE, _Q_DROP = 0.005, 0.10
"""One of two hundred: a year has 52 Mondays, and passes a week apart share most of their
days, so three in a row forgive little. Unrelated series wrote an edge in 14 of 100 years at
.05, 9 at .03, 2 at .01, 1 at .005; links of r = .4 are still found in 365 days
(``tests/calibrate_measure.py``)."""
_PASSES_TO_WRITE, _FAILURES_TO_DROP = 3, 2
_NEGLIGIBLE = 0.2

_BELIEF = ((3, 0.30), (6, 0.40), (12, 0.50))
"""(passes in a row, belief): how long a link has stood, capped at one half. Two series of
one household that move together for a year are still one household's coincidence."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesDays:
    """Daily values of S series on D consecutive local days: ``values`` [S, D], nan = missing.

    ``first_weekday`` is that of the first day, 0 for Monday.
    """

    ids: tuple[str, ...]
    pets: tuple[str, ...]
    properties: tuple[str, ...]
    values: FloatArray
    first_weekday: int

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or not len(self.ids) == len(self.pets) == len(self.properties) == len(self.values):
            raise MeasureError(f"values must have shape ({len(self.ids)} series, days), has {self.values.shape}")


@dataclass(frozen=True, slots=True)
class Association:
    """One pair's best lag. ``tail`` leads ``head`` by ``lag`` days (0 = same day).

    ``interval`` is r's 95 % interval; ``p`` after Sidak over the lags, ``q`` after
    Benjamini-Hochberg over the pairs; ``negligible`` holds where |r| is below .2 for sure.
    """

    tail: str
    head: str
    lag: int
    r: float
    interval: tuple[float, float]
    n: int
    p: float
    q: float
    negligible: bool
    method: str
    data_hash: str

    @property
    def found(self) -> bool:
        """Whether this pass speaks for an edge."""
        return self.q <= _Q_WRITE


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """q-values of p-values, shape [n] (Benjamini & Hochberg 1995, JRSS B 57:289)."""
    n = p.size
    order = np.argsort(p, kind="stable")
    raised = p[order] * n / np.arange(1, n + 1)
    q = np.empty(n)
    q[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return q


def _lagged(innovations: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Correlation of row i with row j ``lag`` days later, and its common days; [L, S, S].

    r = sum a b / sqrt(sum a^2 sum b^2) over the days where both are present, as four matrix
    products a lag.
    """
    present = np.isfinite(innovations)
    a = np.where(present, innovations, 0.0)
    squares, mask = a * a, present.astype(np.float64)
    series, days = a.shape
    r = np.zeros((LARGEST_LAG + 1, series, series))
    n = np.zeros((LARGEST_LAG + 1, series, series), dtype=np.int64)
    for lag in range(min(LARGEST_LAG, days - 1) + 1):
        early, late = slice(0, days - lag), slice(lag, days)
        product = a[:, early] @ a[:, late].T
        scale = (squares[:, early] @ mask[:, late].T) * (mask[:, early] @ squares[:, late].T)
        n[lag] = np.rint(mask[:, early] @ mask[:, late].T).astype(np.int64)
        r[lag] = np.divide(product, np.sqrt(scale), out=np.zeros_like(product), where=scale > 0.0)
    return r, n


def associations(series: SeriesDays) -> tuple[Association, ...]:
    """Every pair with at least 45 common days, at its most telling lag, in order of ids.

    z = atanh(r) sqrt(n - 3 - spent), spent the mean degrees of freedom both cleanings ate in
    proportion to the common days (Fisher 1921); p = 1 - (1 - p_lag)^29.
    """
    values = np.where(np.isfinite(series.values), series.values, np.nan)
    rows, days = values.shape
    if rows < 2 or days < LEAST_COMMON_DAYS:
        return ()
    cleaned = normal_scores(remove_weekdays(detrend(values), series.first_weekday))
    cleaned = remove_common_mode(cleaned, series.pets, series.properties)
    white = whiten(cleaned)
    r, n = _lagged(white.innovations)
    spent = (white.spent[:, None] + white.spent[None, :]) / 2.0
    freedom = np.where(n >= LEAST_COMMON_DAYS, n * (1.0 - spent[None] / days) - 3.0, 0.0)
    freedom = np.maximum(freedom, 0.0)
    z = np.arctanh(np.clip(r, -0.999999, 0.999999)) * np.sqrt(freedom)
    return _best_lags(series, r, n, _less_skew(z, white.innovations, n), freedom)


def _less_skew(z: FloatArray, innovations: FloatArray, n: NDArray[np.int64]) -> FloatArray:
    r"""|z| less what skew alone would give it; same shape [L, S, S].

    .. math:: |z| - \gamma_i \gamma_j (z^2 - 1) / (6 \sqrt{n})

    the Cornish-Fisher term (1937) for the sum of products of independent series with skews
    gamma, only where it makes the finding weaker, and by half at most. Small counts keep
    their skew through any ranking; without this a few coincidences of rare days are an edge.
    """
    present = np.isfinite(innovations)
    days = np.maximum(present.sum(axis=1), 1)
    filled = np.where(present, innovations, 0.0)
    centred = np.where(present, filled - (filled.sum(axis=1) / days)[:, None], 0.0)
    spread = np.sqrt((centred**2).sum(axis=1) / days)
    skew = (centred**3).sum(axis=1) / days / np.maximum(spread, 1e-9) ** 3
    product = skew[:, None] * skew[None, :]
    toward = np.maximum(product * np.sign(z), 0.0)
    shrink = toward * np.maximum(z**2 - 1.0, 0.0) / (6.0 * np.sqrt(np.maximum(n, 1)))
    size = np.abs(z)
    return np.asarray(size - np.minimum(shrink, size / 2.0))


def _pairs(series: SeriesDays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of the pairs worth testing, each [P].

    Two pets' series are left out where either property is recorded of both pets or more:
    the house moves them together, and what removes the house's part from one of them writes
    the other's noise into it (four pets under one common mode gave four false links).
    """
    owners: dict[str, set[str]] = {}
    for pet, what in zip(series.pets, series.properties, strict=True):
        owners.setdefault(what, set()).add(pet)
    shared = np.array([len(owners[what]) > 1 for what in series.properties], dtype=bool)
    pets = np.array(series.pets, dtype=object)
    first, second = np.triu_indices(len(series.ids), 1)
    kept = (pets[first] == pets[second]) | ~(shared[first] | shared[second])
    return first[kept], second[kept]


def _best_lags(
    series: SeriesDays, r: FloatArray, n: NDArray[np.int64], z: FloatArray, freedom: FloatArray
) -> tuple[Association, ...]:
    """The largest z of each unordered pair over both directions, corrected twice."""
    first, second = _pairs(series)
    if first.size == 0:
        return ()
    both = np.concatenate((z[:, first, second], z[1:, second, first]), axis=0)
    best = np.argmax(both, axis=0)
    top = both[best, np.arange(first.size)]
    forward = best <= LARGEST_LAG
    lag = np.where(forward, best, best - LARGEST_LAG)
    tail, head = np.where(forward, first, second), np.where(forward, second, first)
    kept = freedom[lag, tail, head] > 0.0
    first, lag, tail, head, top = first[kept], lag[kept], tail[kept], head[kept], top[kept]
    if first.size == 0:
        return ()
    single = np.array([math.erfc(z) for z in (top / math.sqrt(2.0)).tolist()])
    p = -np.expm1((2 * LARGEST_LAG + 1) * np.log1p(-np.minimum(single, 1.0 - 1e-16)))
    q = benjamini_hochberg(p)
    at_r, at_n, at_freedom = r[lag, tail, head], n[lag, tail, head], freedom[lag, tail, head]
    reach = normal_quantile(0.975) / np.sqrt(at_freedom)
    low, high = np.tanh(np.arctanh(at_r) - reach), np.tanh(np.arctanh(at_r) + reach)
    digest = hashlib.sha256(np.ascontiguousarray(series.values).tobytes()).hexdigest()[:16]
    bound = np.maximum(np.abs(low), np.abs(high))
    return tuple(
        Association(
            tail=series.ids[tail[k]],
            head=series.ids[head[k]],
            lag=int(lag[k]),
            r=float(at_r[k]),
            interval=(float(low[k]), float(high[k])),
            n=int(at_n[k]),
            p=float(p[k]),
            q=float(q[k]),
            negligible=bool(bound[k] < _NEGLIGIBLE),
            method=METHOD,
            data_hash=digest,
        )
        for k in range(first.size)
    )


# --- what stands after several passes -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pass:
    """What a stored pass said of one pair, in date order; ``lag`` keeps its direction."""

    as_of: str
    q: float
    lag: int
    r: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the pair is an edge now, and on how many passes in a row it stands."""

    written: bool
    in_a_row: int


def standing(passes: tuple[Pass, ...]) -> Standing:
    """Computed from all stored passes, so that replaying them gives the same answer.

    Written on the third pass in a row with q <= .005, the same sign and lags within 1 day of
    each other; dropped after two passes in a row with q > .10; in between nothing changes.
    """
    written, in_a_row, failures = False, 0, 0
    previous: Pass | None = None
    for one in passes:
        failures = failures + 1 if one.q > _Q_DROP else 0
        if one.q <= _Q_WRITE:
            alike = previous is not None and one.r * previous.r > 0.0 and abs(one.lag - previous.lag) <= 1
            in_a_row = in_a_row + 1 if alike else 1
            previous = one
        else:
            in_a_row, previous = 0, None
        if in_a_row >= _PASSES_TO_WRITE:
            written = True
        if failures >= _FAILURES_TO_DROP:
            written = False
    return Standing(written, in_a_row)


def belief_of(in_a_row: int) -> float:
    """Belief of a written link by how many passes in a row it stands; 0 below three."""
    return max((belief for least, belief in _BELIEF if in_a_row >= least), default=0.0)
