"""Print what measuring costs, beside a pandas and statsmodels loop in the same process.

    python tests/bench_measure.py [--repeat N]

Times are CPU time of this thread, one thread, the median of the repetitions. Run it with a
Python that also has pandas and statsmodels (``make bench`` makes one); without them the
ratio is left out, and that is said.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.measure.baseline import memory_of
from gateway.measure.change import compare
from gateway.measure.correlate import SeriesDays, associations
from gateway.measure.days import add_days, dates_between, day_interval, hours_from_slots
from gateway.measure.grid import DayGrid
from gateway.measure.rollup import Sample, roll_day, with_sample
from gateway.model import Interval, ZonePeriod
from tests.measure_worlds import LAST, nuisance

NEW_YORK = (ZonePeriod("America/New_York", 0),)
LAGS = 14


def cpu_ms(run: Callable[[], object], repeat: int) -> float:
    """Median CPU milliseconds of ``run``, called once before to warm it."""
    run()
    took = []
    for _ in range(repeat):
        began = time.thread_time_ns()
        run()
        took.append((time.thread_time_ns() - began) / 1e6)
    return statistics.median(took)


def line(what: str, took: float, goal: float | None) -> None:
    goal_text = "" if goal is None else f"  goal <= {goal:g} ms"
    print(f"  {what:<62} {took:10.4f} ms{goal_text}", flush=True)


def year_of_minutes(rng: np.random.Generator) -> DayGrid:
    """A year of one sample a minute, rolled into local days by local hours."""
    dates = dates_between(add_days(LAST, -364), LAST)
    total = np.zeros((365, 24))
    covered = np.zeros((365, 24), dtype=np.int64)
    for row, day in enumerate(dates):
        whole = day_interval(day, NEW_YORK)
        slots = rng.poisson(60.0, whole.length_ms // 900_000 * 15).reshape(-1, 15).sum(axis=1)
        total[row] = hours_from_slots(slots, day, NEW_YORK)
        covered[row] = hours_from_slots(np.full(slots.size, 900_000), day, NEW_YORK)
    return DayGrid(dates, total, covered, covered, "ms", "duration")


def pandas_loop(values: np.ndarray) -> int:
    """The same cleaning and the same lags, series by series and pair by pair."""
    import pandas as pd  # noqa: PLC0415  # a peer, absent from the product's environment
    from statsmodels.tsa.ar_model import AutoReg, ar_select_order  # noqa: PLC0415  # likewise

    index = pd.date_range("2025-07-15", periods=values.shape[1], freq="D")
    clean = []
    for row in values:
        one = pd.Series(row, index=index)
        one = one - one.rolling(57, center=True, min_periods=1).median()
        one = one - one.groupby(one.index.day_of_week).transform("median")
        one = one.rank()
        one = (one - one.mean()) / one.std()
        order = ar_select_order(one.fillna(0.0), 3, ic="bic").ar_lags or []
        clean.append(AutoReg(one.fillna(0.0), order).fit().resid.where(one.notna()) if order else one)
    found = 0
    for i, first in enumerate(clean):
        for second in clean[i + 1 :]:
            best = max(abs(first.corr(second.shift(lag))) for lag in range(-LAGS, LAGS + 1))
            found += best > 0.3
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=25)
    repeat = parser.parse_args().repeat
    rng = np.random.default_rng(0)
    print("Measuring (one thread, CPU time, medians)")
    grid = year_of_minutes(rng)
    first = add_days(LAST, -6)
    line("a week against a year of minute data", cpu_ms(lambda: compare(grid, first, LAST), 4 * repeat), 1.0)

    whole = day_interval(LAST, NEW_YORK)
    day = [
        Sample(f"tracker/1/{n}", at, at + 300_000, int(rng.integers(0, 9000)))
        for n, at in enumerate(range(whole.start_ms, whole.end_ms, 300_000))
    ]
    heard = (Interval(whole.start_ms, whole.end_ms),)
    meals = [Sample(f"bowl/1/{n}", whole.start_ms + n * 5_000_000, 0, 40_000) for n in range(12)]
    late = Sample("bowl/1/99", whole.start_ms + 70_000_000, whole.start_ms + 70_000_000, 40_000)
    line(
        "one late meal: its day from raw (12 meals)",
        cpu_ms(lambda: roll_day([*meals, late], heard, LAST, NEW_YORK), repeat),
        0.5,
    )
    line(
        "one late motion record: its day from raw (288 records)",
        cpu_ms(lambda: roll_day(day, heard, LAST, NEW_YORK), repeat),
        0.5,
    )
    rolled = roll_day(meals, heard, LAST, NEW_YORK)
    line("one event into its day's roll-up", cpu_ms(lambda: with_sample(rolled, late, whole), 40 * repeat), None)
    index = grid.day_totals()[-56:] / grid.day_totals()[-56:].mean()
    ordinals, weekend = grid.ordinals[-56:], (grid.ordinals[-56:] + 6) % 7 >= 5

    def event_and_baseline() -> None:
        with_sample(rolled, late, whole)
        memory_of(index, ordinals, weekend, "duration")

    line("one event's roll-up and baseline (56 days)", cpu_ms(event_and_baseline, 40 * repeat), 0.05)

    values = nuisance(rng, 50, 365, "outages")
    names = tuple(f"max.{n:02d}" for n in range(50))
    series = SeriesDays(names, ("max",) * 50, names, values, 0)
    ours = cpu_ms(lambda: associations(series), repeat)
    line("all edges of 50 series x 365 days x 29 lags", ours, 50.0)
    if importlib.util.find_spec("statsmodels") and importlib.util.find_spec("pandas"):
        began = time.thread_time_ns()
        pandas_loop(values)
        peer = (time.thread_time_ns() - began) / 1e6
        line("the same in a pandas and statsmodels loop", peer, None)
        print(f"  {'ratio':<62} {peer / ours:10.0f} times")
    else:
        print("  pandas and statsmodels are not installed here: no ratio (make bench installs them)")


if __name__ == "__main__":
    main()
