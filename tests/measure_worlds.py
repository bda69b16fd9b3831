"""Simulated series with a known truth, for the tests, the calibration and the benchmark."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.measure.days import HOUR_MS, add_days, dates_between
from gateway.measure.grid import DayGrid

FloatArray = NDArray[np.float64]
LAST = "2026-07-14"


def grid_of_days(values: FloatArray, *, last: str = LAST, kind: str = "duration", unit: str = "ms") -> DayGrid:
    """Whole covered days ending with ``last``; each value spread evenly over its 24 hours."""
    days = values.size
    span = np.full((days, 24), HOUR_MS, dtype=np.int64)
    total = np.repeat(values[:, None] / 24.0, 24, axis=1)
    return DayGrid(dates_between(add_days(last, 1 - days), last), total, span, span, unit, kind)


def ar1(rng: np.random.Generator, shape: tuple[int, ...], phi: float) -> FloatArray:
    """Unit-variance AR(1) along the last axis, started in its stationary state."""
    noise = rng.standard_normal(shape)
    out = np.empty(shape)
    out[..., 0] = noise[..., 0]
    for t in range(1, shape[-1]):
        out[..., t] = phi * out[..., t - 1] + np.sqrt(1.0 - phi * phi) * noise[..., t]
    return out


def daily(rng: np.random.Generator, days: int, *, cv: float, phi: float = 0.0, drift: str | None = None) -> FloatArray:
    """Log-normal days of coefficient of variation ``cv`` about 100 s.

    Drifts: ``linear`` 20 % a year either way; ``walk`` a random walk of .5 % a day.
    """
    logs = np.sqrt(np.log1p(cv * cv)) * ar1(rng, (days,), phi)
    if drift == "linear":
        logs += np.log(1.2) * np.arange(days) / 365.0 * rng.choice((-1, 1))
    elif drift == "walk":
        logs += np.cumsum(rng.standard_normal(days)) * 0.005
    return 100_000.0 * np.exp(logs)


NUISANCES = ("ar", "week", "season", "steps", "counts", "outliers", "outages", "trend")


def nuisance(rng: np.random.Generator, series: int, days: int, kind: str) -> FloatArray:
    """Independent series that popular methods link: shape [series, days], nan = missing."""
    t = np.arange(days)
    x = ar1(rng, (series, days), 0.6 if kind == "ar" else 0.3)
    if kind == "week":
        x += 1.5 * rng.standard_normal((series, 1)) * (t % 7 >= 5)
    elif kind == "season":
        x += 2.0 * np.sin(2 * np.pi * (t / 365.0 + rng.random((series, 1))))
    elif kind == "steps":
        x += 2.0 * (t >= rng.integers(20, days - 20, (series, 1))) * rng.choice((-1, 1), (series, 1))
    elif kind == "counts":
        x = rng.poisson(0.3, (series, days)).astype(np.float64)
    elif kind == "outliers":
        x += 10.0 * (rng.random((series, days)) < 0.02) * rng.choice((-1, 1), (series, days))
    elif kind == "outages":
        x[rng.random((series, days)) < 0.1] = np.nan
        for start in rng.integers(0, days - 6, 3):
            x[:, start : start + int(rng.integers(2, 6))] = np.nan
    elif kind == "trend":
        x += 3.0 * t / days * rng.choice((-1, 1), (series, 1))
    return x


def planted(
    rng: np.random.Generator, series: int, days: int, *, pairs: int, r: float
) -> tuple[FloatArray, NDArray[np.int64]]:
    """``pairs`` true edges (row 2j leads row 2j + 1 by lags[j] days) among nuisances."""
    x = ar1(rng, (series, days), 0.3)
    lags = rng.integers(0, 15, pairs)
    source = rng.standard_normal((pairs, days + 15))
    for j in range(pairs):
        x[2 * j] = source[j, 15:]
        led = source[j, 15 - lags[j] : days + 15 - lags[j]]
        x[2 * j + 1] = r * led + np.sqrt(1.0 - r * r) * rng.standard_normal(days)
    t = np.arange(days)
    x += 0.8 * (t % 7 >= 5) + 2.0 * t / days
    x[rng.random(x.shape) < 0.05] = np.nan
    start = int(rng.integers(0, days - 5))
    x[:, start : start + 4] = np.nan
    return x, lags
