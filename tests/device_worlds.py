"""Simulated bowls and collars, what the firmware says of them, and how far that is from the truth. Not a test.

The truth is what ``device_sim.physics`` was told to play. Beside our own detector each world runs
a peer as it is commonly built: for the bowl a moving median with a threshold, for the collar the
power of a band.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from statistics import median

from device_sim.physics import Bowl, Coat, Stretch, Visit, accelerometer, day_of_acts, day_of_stretches, load_cell, wait
from firmware_bridge import wire
from firmware_bridge.motion import HOP_MS, Motion
from firmware_bridge.scale import Scale

# --- bowls ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Meal:
    """Something that left the bowl."""

    began_ms: int
    end_ms: int
    removed_mg: int


@dataclass(slots=True)
class BowlScore:
    """Meals played, found, and claimed where there was none; errors in mg of those found."""

    played: int = 0
    found: int = 0
    false: int = 0
    days: float = 0.0
    errors_mg: list[int] = field(default_factory=list)

    def add(self, truth: list[Meal], said: list[Meal], *, days: float) -> None:
        """Pair each played meal with what was said while it lasted, the sum where it was said in parts."""
        self.played += len(truth)
        self.days += days
        free = list(said)
        for meal in truth:
            parts = [one for one in free if one.began_ms < meal.end_ms + 5_000 and one.end_ms > meal.began_ms - 5_000]
            free = [one for one in free if one not in parts]
            removed = sum(one.removed_mg for one in parts)
            if parts and removed > meal.removed_mg / 2:
                self.found += 1
                self.errors_mg.append(abs(removed - meal.removed_mg))
        self.false += len(free)

    def quantile_mg(self, share: float) -> float:
        """A quantile of the absolute errors."""
        ordered = sorted(self.errors_mg)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def by_scale(samples: Iterable[tuple[int, int]], **options: int) -> list[Meal]:
    """What our firmware says; what it marks as too fast to be eating is not counted, as at the hub."""
    scale = Scale(**options)
    said = []
    for at_ms, mg in samples:
        for kind, _, values in scale.feed(at_ms, mg):
            if kind == wire.MEAL and not values[3] & wire.TOO_FAST:
                said.append(Meal(values[0], values[0] + values[1], values[2]))
    return said


def by_moving_median(
    samples: Iterable[tuple[int, int]], *, window: int = 30, threshold_mg: int = 2_000, gap_ms: int = 30_000
) -> list[Meal]:
    """The peer: the median of the last 3 s; a fall beyond a threshold that holds for 30 s is a meal.

    What a home-automation recipe does with a filtered load cell.
    """
    recent: deque[int] = deque(maxlen=window)
    said: list[Meal] = []
    reference: float | None = None
    moved_ms: tuple[int, int] | None = None
    last_level: float | None = None
    for count, (at_ms, mg) in enumerate(samples):
        recent.append(mg)
        if count % 10 or len(recent) < window:
            continue
        level = median(recent)
        if reference is None:
            reference = last_level = level
        assert last_level is not None
        if abs(level - last_level) > threshold_mg:
            moved_ms = (at_ms if moved_ms is None else moved_ms[0], at_ms)
        last_level = level
        if moved_ms is not None and at_ms - moved_ms[1] >= gap_ms:
            if reference - level > threshold_mg:
                said.append(Meal(moved_ms[0], moved_ms[1], round(reference - level)))
            reference, moved_ms = level, None
    return said


def bowl_samples(species: str, seed: int, *, visits: int, hours: float) -> tuple[list[Meal], list[tuple[int, int]]]:
    """(meals played, samples) of a crowded stretch at a bowl."""
    rng = Random(f"{species}/{seed}")
    acts = day_of_acts(rng, species=species, visits=visits, food_mg=80_000, day_ms=round(hours * 3_600_000))
    bowl = Bowl(food_mg=80_000, mass_mg=rng.randint(120_000, 500_000), drift_mg_day=rng.uniform(5_000, 10_000))
    truth = [
        Meal(act.began_ms, act.end_ms, act.removed_mg) for act in acts if isinstance(act, Visit) and act.removed_mg
    ]
    return truth, list(load_cell(bowl, acts, rng, to_ms=wait(acts, 90_000)))


# --- collars --------------------------------------------------------------------------------

SIGNS = ("scratch", "shake")


@dataclass(slots=True)
class SignScore:
    """Seconds and bouts of one sign: played, said rightly, said wrongly."""

    bouts: int = 0
    bouts_found: int = 0
    seconds: int = 0
    seconds_found: int = 0
    other_seconds: int = 0
    false_seconds: int = 0
    played_ms: int = 0
    said_ms: int = 0

    def add(self, truth: list[tuple[int, int]], said: list[tuple[int, int]], *, total_ms: int) -> None:
        """Intervals (from, to) in ms, played and said."""
        self.played_ms += sum(to - start for start, to in truth)
        self.said_ms += sum(to - start for start, to in said)
        self.bouts += len(truth)
        self.bouts_found += sum(any(a < to and b > start for a, b in said) for start, to in truth)
        for second in range(0, total_ms, 1_000):
            played = _share(truth, second)
            heard = _share(said, second) >= 500
            if played >= 500:
                self.seconds += 1
                self.seconds_found += heard
            elif not _share(truth, second - 1_000) and not _share(truth, second + 1_000):
                self.other_seconds += 1  # a second beside a bout is neither
                self.false_seconds += heard


def _share(intervals: list[tuple[int, int]], second: int) -> int:
    return sum(max(0, min(to, second + 1_000) - max(start, second)) for start, to in intervals)


def collar_samples(
    seed: int, *, minutes: int, stretches: list[Stretch] | None = None
) -> tuple[list[tuple[str, int, int]], Iterator[tuple[int, int, int, int]]]:
    """(what was played from when to when, samples) of one animal's collar."""
    rng = Random(f"collar/{seed}")
    coat = Coat.draw(rng)
    lived = day_of_stretches(rng, minutes=minutes) if stretches is None else stretches
    played, at_ms = [], 0
    for stretch in lived:
        played.append((stretch.what, at_ms, at_ms + stretch.lasted_ms))
        at_ms += stretch.lasted_ms
    return played, accelerometer(coat, lived, rng)


def by_motion(samples: Iterable[tuple[int, int, int, int]]) -> dict[str, list[tuple[int, int]]]:
    """When our firmware says so: read from its sums as they grow, which a bout does when it is over."""
    motion = Motion(span_ms=1 << 40)
    said: dict[str, list[tuple[int, int]]] = {sign: [] for sign in SIGNS}
    before = [0, 0]
    for at_ms, x, y, z in samples:
        motion.feed(at_ms, x, y, z)
        for index, sign in enumerate(SIGNS):
            grown = motion._sums[index] - before[index]
            if grown:
                end_ms = at_ms - 3 * HOP_MS
                said[sign].append((end_ms - grown, end_ms))
                before[index] += grown
    return said


def by_band_power(
    samples: Iterable[tuple[int, int, int, int]], *, threshold: float = 90.0
) -> dict[str, list[tuple[int, int]]]:
    """The peer: the amplitude between 4 and 5 Hz of |a| and its axes by Goertzel, a second at a time."""
    said: dict[str, list[tuple[int, int]]] = {sign: [] for sign in SIGNS}
    window: list[tuple[int, int, int]] = []
    start_ms = 0
    for at_ms, x, y, z in samples:
        if not window:
            start_ms = at_ms
        window.append((x, y, z))
        if len(window) < 25:
            continue
        amplitude = math.sqrt(
            sum(max(_goertzel([w[axis] for w in window], hz) for hz in (4.0, 4.5, 5.0)) ** 2 for axis in range(3))
        )
        if amplitude >= 5 * threshold * 2:
            said["shake"].append((start_ms, start_ms + 1_000))
        elif amplitude >= threshold:
            said["scratch"].append((start_ms, start_ms + 1_000))
        window = []
    return said


def _goertzel(values: list[int], hz: float, *, rate: float = 25.0) -> float:
    """The amplitude of one frequency, mg (Goertzel 1958)."""
    mean = sum(values) / len(values)
    factor = 2 * math.cos(2 * math.pi * hz / rate)
    one = two = 0.0
    for value in values:
        one, two = value - mean + factor * one - two, one
    return 2 * math.sqrt(max(0.0, one * one + two * two - factor * one * two)) / len(values)
