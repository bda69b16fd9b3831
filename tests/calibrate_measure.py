"""How often the measuring is right, counted on simulated pets; each line beside its goal.

    python tests/calibrate_measure.py             the goals' own numbers of runs (minutes)
    python tests/calibrate_measure.py --scale .2  a fifth of them
    python tests/calibrate_measure.py --seed 7    other pets

Every share carries its own counting error; a goal counts as missed only where the figure is
beyond it by more than that error (two standard errors).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gateway.measure.alarms import QUIET_DAYS, notice_on
from gateway.measure.change import compare
from gateway.measure.correlate import Pass, SeriesDays, associations, standing
from gateway.measure.days import add_days
from gateway.measure.followed import DatedEvent, followed_by
from gateway.measure.grid import DayGrid
from gateway.model import Comparison, Verdict
from tests.measure_worlds import LAST, NUISANCES, daily, grid_of_days, nuisance, planted

HISTORY = 63


@dataclass(frozen=True, slots=True)
class Line:
    """A measured share of ``runs`` (or a rate a year), and the goal it is held against."""

    what: str
    share: float
    runs: int
    least: float | None = None
    most: float | None = None
    is_rate: bool = False

    @property
    def missed(self) -> bool:
        variance = self.share if self.is_rate else self.share * (1.0 - self.share)
        error = 2.0 * np.sqrt(variance / max(self.runs, 1))
        low = self.least is not None and self.share < self.least - error
        return bool(low or (self.most is not None and self.share > self.most + error))

    def __str__(self) -> str:
        goal = " and ".join(
            part
            for part in (
                "" if self.least is None else f">= {self.least:g}",
                "" if self.most is None else f"<= {self.most:g}",
            )
            if part
        )
        return f"  {self.what:<66} {self.share:6.3f}  {goal:<18}{'MISSED' if self.missed else ''}"


@dataclass(frozen=True, slots=True)
class World:
    """A kind of pet: day-to-day variation, memory, drift, days of history with the week."""

    cv: float
    phi: float = 0.0
    drift: str | None = None
    days: int = HISTORY

    def __str__(self) -> str:
        memory = f", AR {self.phi:g}" if self.phi else ""
        drift = f", {self.drift} drift" if self.drift else ""
        return f"CV {self.cv:g}{memory}{drift}, {self.days - 7} days before"


def weeks(rng: np.random.Generator, world: World, runs: int, factor: float = 1.0) -> list[Comparison]:
    """Verdicts of ``runs`` last weeks that are ``factor`` times their usual level."""
    found = []
    for _ in range(runs):
        values = daily(rng, world.days, cv=world.cv, phi=world.phi, drift=world.drift)
        values[-7:] *= factor
        grid = grid_of_days(values)
        found.append(compare(grid, add_days(LAST, -6), LAST))
    return found


def share(found: list[Comparison], *verdicts: Verdict) -> float:
    return sum(one.verdict in verdicts for one in found) / len(found)


def verdicts(rng: np.random.Generator, scale: float) -> Iterator[Line]:
    runs = int(2400 * scale)
    worlds = [
        World(0.15),
        World(0.3),
        World(0.15, 0.3),
        World(0.3, 0.3),
        World(0.15, 0.5),
        World(0.3, 0.5),
        World(0.3, 0.0, "linear"),
        World(0.3, 0.3, "walk"),
        World(0.15, 0.0, "walk"),
        World(0.15, days=35),
        World(0.3, days=400),
    ]
    for world in worlds:
        found = weeks(rng, world, runs)
        yield Line(
            f"unchanged week called up or down: {world}", share(found, Verdict.UP, Verdict.DOWN), runs, most=0.06
        )
        inside = sum(one.interval is not None and one.interval[0] <= 0.0 <= one.interval[1] for one in found) / runs
        yield Line(f"90 % interval holds the truth: {world}", inside, runs, least=0.88, most=0.95)
        if world == World(0.15):
            yield Line(f"unchanged week called usual: {world}", share(found, Verdict.USUAL), runs, least=0.90)
        if world == World(0.15, 0.3):
            yield Line(f"unchanged week called usual: {world}", share(found, Verdict.USUAL), runs, least=0.75)
    for world, least in ((World(0.15), 0.95), (World(0.3), 0.70)):
        yield Line(f"+40 % called up: {world}", share(weeks(rng, world, runs, 1.4), Verdict.UP), runs, least=least)
    for world in (World(0.15), World(0.15, 0.3), World(0.3)):
        for factor in (1.25, 0.75):
            usual = share(weeks(rng, world, runs, factor), Verdict.USUAL)
            yield Line(f"{factor - 1:+.0%} (the bound) called usual: {world}", usual, runs, most=0.06)


def named(values: np.ndarray) -> SeriesDays:
    names = tuple(f"max.{n:02d}" for n in range(len(values)))
    return SeriesDays(names, ("max",) * len(values), names, values, 0)


def null_edges(rng: np.random.Generator, scale: float) -> Iterator[Line]:
    runs = max(int(40 * scale), 8)
    for days in (90, 180, 365):
        wrong = {
            kind: sum(any(one.found for one in associations(named(nuisance(rng, 50, days, kind)))) for _ in range(runs))
            for kind in NUISANCES
        }
        every = runs * len(NUISANCES)
        worst = max(wrong, key=lambda kind: wrong[kind])
        yield Line(f"any false edge, 50 series, {days} days, 8 worlds", sum(wrong.values()) / every, every, most=0.05)
        yield Line(f"  the worst of them: {worst}", wrong[worst] / runs, runs, most=0.05)


def planted_edges(rng: np.random.Generator, scale: float) -> Iterator[Line]:
    runs = max(int(40 * scale), 8)
    for r, days, least in ((0.4, 365, 0.80), (0.6, 180, 0.90)):
        hits = near = 0
        false_share = 0.0
        for _ in range(runs):
            values, lags = planted(rng, 50, days, pairs=12, r=r)
            found = [one for one in associations(named(values)) if one.found]
            true = 0
            for one in found:
                tail, head = int(one.tail[4:]), int(one.head[4:])
                if tail // 2 == head // 2 and tail < 24:
                    true += 1
                    lag = one.lag if tail < head else -one.lag
                    near += abs(lag - int(lags[tail // 2])) <= 1
            hits += true
            false_share += (len(found) - true) / max(len(found), 1)
        what = f"r = {r:g}, {days} days, week, trend, gaps"
        yield Line(f"12 planted edges found: {what}", hits / (12 * runs), 12 * runs, least=least)
        yield Line(f"false among those written: {what}", false_share / runs, 12 * runs, most=0.05)
        yield Line(f"lag within 1 day: {what}", near / max(hits, 1), hits, least=0.98)


def retested_years(rng: np.random.Generator, scale: float) -> Iterator[Line]:
    runs = max(int(40 * scale), 8)
    wrong = 0
    for _ in range(runs):
        values = nuisance(rng, 20, 365 + 90, "ar")
        history: dict[tuple[str, str], list[Pass]] = {}
        for week in range(52):
            stop = 90 + 7 * week
            for one in associations(named(values[:, max(0, stop - 365) : stop])):
                pair = (one.tail, one.head) if one.tail < one.head else (one.head, one.tail)
                lag = one.lag if one.tail < one.head else -one.lag
                history.setdefault(pair, []).append(Pass(f"{week:02d}", one.q, lag, one.r))
        wrong += any(
            standing(tuple(passes[:last])).written for passes in history.values() for last in range(3, len(passes) + 1)
        )
    yield Line("a year of Mondays on unrelated series writes an edge", wrong / runs, runs, most=0.05)


def events(rng: np.random.Generator, scale: float) -> Iterator[Line]:
    runs = int(1000 * scale)

    def found(world: World, factor: float) -> float:
        hits = 0
        for _ in range(runs):
            values = daily(rng, 110, cv=world.cv, phi=world.phi, drift=world.drift)
            values[65 + int(rng.integers(0, 15)) :] *= factor
            grid = grid_of_days(values)
            one = followed_by(grid, DatedEvent("event", grid.dates[65]))
            hits += one is not None and one.found
        return hits / runs

    for world in (World(0.3), World(0.3, 0.3), World(0.3, 0.5), World(0.3, 0.7), World(0.3, 0.3, "linear")):
        yield Line(f"event followed by nothing called a change: {world}", found(world, 1.0), runs, most=0.07)
    for factor, least in ((1.4, 0.60), (1.6, 0.88)):
        what = f"event followed by {factor - 1:+.0%} after 0-14 days: CV .3, AR .3"
        yield Line(what, found(World(0.3, 0.3), factor), runs, least=least)


def upto(grid: DayGrid, stop: int) -> DayGrid:
    rows = slice(max(0, stop - 84), stop)
    return replace(
        grid,
        dates=grid.dates[rows],
        total=grid.total[rows],
        covered_ms=grid.covered_ms[rows],
        span_ms=grid.span_ms[rows],
    )


def alarms(rng: np.random.Generator, scale: float) -> Iterator[Line]:
    years = max(int(60 * scale), 8)
    for world in (World(0.2), World(0.3), World(0.3, 0.3)):
        notices = 0
        for _ in range(years):
            grid = grid_of_days(daily(rng, 70 + 365, cv=world.cv, phi=world.phi))
            last = -QUIET_DAYS - 1
            for day in range(70, 435):
                if notice_on(upto(grid, day + 1), grid.dates[day]) is not None:
                    notices += day - last > QUIET_DAYS
                    last = day
        what = f"false notices a series-year: CV {world.cv:g}, AR {world.phi:g}"
        goal = None if world.phi else 1.0  # the goal speaks of independent days; AR .3 stands beside it
        yield Line(what, notices / years, years, most=goal, is_rate=True)
    runs = int(600 * scale)
    for cv, factor, within, least in ((0.2, 1.4, 7, 0.85), (0.3, 1.4, 14, 0.80), (0.3, 0.7, 14, 0.85)):
        hits = 0
        for _ in range(runs):
            values = daily(rng, 90 + within, cv=cv)
            values[90:] *= factor
            grid = grid_of_days(values)
            hits += any(
                (one := notice_on(upto(grid, day + 1), grid.dates[day])) is not None
                and (one.direction > 0) is (factor > 1)
                for day in range(90, 90 + within)
            )
        yield Line(f"{factor - 1:+.0%} noticed within {within} days: CV {cv:g}", hits / runs, runs, least=least)


PARTS: dict[str, Callable[[np.random.Generator, float], Iterator[Line]]] = {
    "The verdict on a week": verdicts,
    "Edges that are not there": null_edges,
    "Edges that are there": planted_edges,
    "Re-testing every Monday": retested_years,
    "Event to series": events,
    "Notices": alarms,
}


def main() -> int:
    """Print the table; 1 where a goal is missed beyond counting error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the goals' numbers of runs")
    parser.add_argument("--seed", type=int, default=20260714)
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS.values()])
    chosen = parser.parse_args()
    scale = chosen.scale
    missed = 0
    for number, (title, part) in enumerate(PARTS.items()):
        if chosen.only in {None, part.__name__}:
            print(title, flush=True)
            for line in part(np.random.default_rng((chosen.seed, number)), scale):
                print(line, flush=True)
                missed += line.missed
    print(f"{missed} goals missed (seed {chosen.seed}, scale {scale:g})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
