"""Take out of daily series what makes unrelated ones look alike, before they are correlated.

A slow trend (57-day running median), the week's rhythm (weekday medians), the distribution
(normal scores of ranks) and each series' own memory (AR up to 3, chosen by BIC). Arrays of
shape [S, D] in and out; a missing day is nan and stays nan. Pure numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.measure.tails import normal_quantile

__all__ = ["Whitened", "detrend", "normal_scores", "remove_common_mode", "remove_weekdays", "whiten"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TREND_DAYS = 57
_KNOT_DAYS = 7
_LARGEST_ORDER = 3


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """Innovations, shape [S, D] with nan where missing; ``order`` [S] is each AR order;
    ``spent`` [S] are the degrees of freedom the cleaning ate.
    """

    innovations: FloatArray
    order: IntArray
    spent: FloatArray


def _medians(sorted_last: FloatArray) -> FloatArray:
    """Medians over the last axis of sorted values whose nans stand at the end; nan of none."""
    count = np.isfinite(sorted_last).sum(axis=-1)
    low = np.maximum((count - 1) // 2, 0)[..., None]
    high = np.maximum(count // 2, 0)[..., None]
    high = np.minimum(high, sorted_last.shape[-1] - 1)
    middle = np.take_along_axis(sorted_last, low, -1) + np.take_along_axis(sorted_last, high, -1)
    return np.asarray(middle[..., 0] / 2.0)


def detrend(values: FloatArray) -> FloatArray:
    """Less the running median of 57 days, taken every 7th day and joined by straight lines.

    A knot without data takes its neighbours' line; a series without any stays nan.
    """
    series, days = values.shape
    half = TREND_DAYS // 2
    knots = np.unique(np.append(np.arange(0, days, _KNOT_DAYS), days - 1))
    padded = np.full((series, days + 2 * half), np.nan)
    padded[:, half : half + days] = values
    windows = padded[:, knots[:, None] + np.arange(TREND_DAYS)]
    windows.sort(axis=-1)
    level = _medians(windows)
    out = values.copy()
    at = np.arange(days)
    for row in range(series):
        known = np.isfinite(level[row])
        if known.any():
            out[row] -= np.interp(at, knots[known], level[row, known])
    return out


def remove_weekdays(values: FloatArray, first_weekday: int) -> FloatArray:
    """Less the median of each weekday, shape [S, D]; ``first_weekday`` is 0 for Monday."""
    series, days = values.shape
    weeks = -(-(days + first_weekday) // 7)
    padded = np.full((series, weeks * 7), np.nan)
    padded[:, first_weekday : first_weekday + days] = values
    by_day = padded.reshape(series, weeks, 7).transpose(0, 2, 1)
    medians = _medians(np.sort(by_day, axis=-1))
    return np.asarray(values - medians[:, (np.arange(days) + first_weekday) % 7])


def normal_scores(values: FloatArray) -> FloatArray:
    """Ranks as normal quantiles, ndtri((rank - 1/2) / n), ties at their mean rank (Blom-like).

    Tied runs are averaged because counts of zero are most days of a small series.
    """
    out = np.full_like(values, np.nan)
    order = np.argsort(values, axis=1, kind="stable")
    for row, indices in enumerate(order):
        n = int(np.isfinite(values[row]).sum())
        if n < 2:
            continue
        taken = indices[:n]
        ordered = values[row, taken]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        lengths = np.diff(np.append(starts, n))
        ranks = np.repeat(starts + (lengths - 1) / 2.0, lengths)
        scores = np.array([normal_quantile(p) for p in ((ranks + 0.5) / n).tolist()])
        spread = float(scores.std())
        if spread > 0.0:
            out[row, taken] = scores / spread
    return out


def remove_common_mode(values: FloatArray, pets: tuple[str, ...], properties: tuple[str, ...]) -> FloatArray:
    """Less what the household's other pets did that day in the same property, by regression.

    Guests, heat and outages move all pets at once; that is the house, not a link between two
    of its series. A property recorded of one pet only stays as it is.
    """
    out = values.copy()
    for row, (pet, what) in enumerate(zip(pets, properties, strict=True)):
        others = [i for i, (p, w) in enumerate(zip(pets, properties, strict=True)) if w == what and p != pet]
        if not others:
            continue
        seen = np.isfinite(values[others])
        count = seen.sum(axis=0)
        mode = np.divide(
            np.where(seen, values[others], 0.0).sum(axis=0),
            count,
            out=np.zeros(values.shape[1]),
            where=count > 0,
        )
        both = np.isfinite(values[row]) & (count > 0)
        square = float(mode[both] @ mode[both])
        if square > 0.0:
            out[row] -= mode * (float(mode[both] @ values[row, both]) / square)
    return out


def _autocovariances(values: FloatArray) -> FloatArray:
    """Lag 0..3 products over pairs present, each divided by its pairs; shape [S, 4]."""
    present = np.isfinite(values)
    filled = np.where(present, values, 0.0)
    out = np.zeros((values.shape[0], _LARGEST_ORDER + 1))
    for lag in range(_LARGEST_ORDER + 1):
        stop = values.shape[1] - lag
        pairs = (present[:, :stop] & present[:, lag:]).sum(axis=1)
        out[:, lag] = (filled[:, :stop] * filled[:, lag:]).sum(axis=1) / np.maximum(pairs, 1)
    return out


def _levinson(covariances: FloatArray) -> tuple[list[FloatArray], FloatArray]:
    """Yule-Walker coefficients of orders 0..3 and their error variances (Durbin 1960).

    Returns coefficients, each [S, 3] padded with zeros, and variances [S, 4].
    """
    series = covariances.shape[0]
    error = np.maximum(covariances[:, 0], 1e-12)
    phi = np.zeros((series, _LARGEST_ORDER))
    coefficients, variances = [phi.copy()], [error.copy()]
    for order in range(1, _LARGEST_ORDER + 1):
        carried = (phi[:, : order - 1] * covariances[:, order - 1 : 0 : -1]).sum(axis=1)
        reflection = np.clip((covariances[:, order] - carried) / error, -0.98, 0.98)
        longer = phi.copy()
        longer[:, : order - 1] -= reflection[:, None] * phi[:, : order - 1][:, ::-1]
        longer[:, order - 1] = reflection
        phi = longer
        error = error * (1.0 - reflection**2)
        coefficients.append(phi.copy())
        variances.append(error.copy())
    return coefficients, np.stack(variances, axis=1)


def whiten(values: FloatArray) -> Whitened:
    """Innovations of AR(p), p <= 3 by BIC = n log(variance) + p log n (Schwarz 1978).

    A day whose predecessors are missing is predicted from those present (their expectation
    is zero), so a gap costs no further days.
    """
    series, days = values.shape
    n = np.maximum(np.isfinite(values).sum(axis=1), 1)
    coefficients, variances = _levinson(_autocovariances(values))
    penalty = np.arange(_LARGEST_ORDER + 1)[None, :] * np.log(n)[:, None]
    order = np.argmin(n[:, None] * np.log(variances) + penalty, axis=1)
    chosen = np.stack(coefficients, axis=0)[order, np.arange(series)]
    filled = np.where(np.isfinite(values), values, 0.0)
    out = values.copy()
    for lag in range(1, _LARGEST_ORDER + 1):
        out[:, lag:] -= chosen[:, lag - 1 : lag] * filled[:, : days - lag]
    trend = 2.0 * days / TREND_DAYS
    return Whitened(out, order, order + trend + 6.0)
