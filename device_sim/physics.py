"""What sensors show: a bowl on a load cell, a collar with an accelerometer; with noise, drift, nonsense.

Acts go in (a visit, a pour, a bowl that is lifted), samples come out: (ms, mg) ten times a
second, (ms, x, y, z) in milli-g. Every source of error is of the size that was measured on
such parts: HX711 0.06 g rms by itself and about 1 g peak to peak in a kitchen, 5 to 10 g of
drift a day, one reading in some thousands nonsense. The same seed gives the same samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

__all__ = [
    "Act",
    "Bowl",
    "Lean",
    "Lift",
    "Pour",
    "Shake",
    "Visit",
    "Warm",
    "day_of_acts",
    "load_cell",
    "wait",
]

DAY_MS = 86_400_000
SAMPLE_MS = 100
_NONSENSE = (8_388_607, 0, -1, 16_777_215)
"""What an HX711 says when a line is disturbed: the ends of its 24 bits, zero, all ones."""


@dataclass(frozen=True, slots=True)
class Bowl:
    """A bowl, its cell and the place it stands in; mg.

    ``wander_mg`` is the slow part of the noise (rms), ``drift_mg_day`` what the zero moves in a
    day, ``swing_mg`` what the day's temperature adds to it, ``nonsense`` the share of readings
    that are none. ``mg_per_count`` turns the nonsense of the chip into mg.
    """

    mass_mg: int = 350_000
    food_mg: int = 0
    zero_mg: int = 0
    noise_mg: float = 60.0
    wander_mg: float = 130.0
    drift_mg_day: float = 7_500.0
    swing_mg: float = 2_000.0
    nonsense: float = 1 / 4_000
    mg_per_count: float = 2.4


@dataclass(frozen=True, slots=True)
class Act:
    """Something happens at the bowl for a while."""

    began_ms: int
    lasted_ms: int

    @property
    def end_ms(self) -> int:
        return self.began_ms + self.lasted_ms


@dataclass(frozen=True, slots=True)
class Visit(Act):
    """An animal takes ``removed_mg`` bite by bite, pressing with up to ``force_mg``; 0 removed: it only sniffs."""

    removed_mg: int
    force_mg: int = 60_000


@dataclass(frozen=True, slots=True)
class Pour(Act):
    """Food falls into the bowl."""

    added_mg: int


@dataclass(frozen=True, slots=True)
class Lift(Act):
    """The bowl is taken off the cell, and put back holding ``food_mg``."""

    food_mg: int


@dataclass(frozen=True, slots=True)
class Lean(Act):
    """An animal rests a part of its weight on the bowl and takes nothing."""

    force_mg: int


@dataclass(frozen=True, slots=True)
class Shake(Act):
    """A machine runs near by: the cell shakes by ``peak_mg`` to both sides."""

    peak_mg: int


@dataclass(frozen=True, slots=True)
class Warm(Act):
    """The cell is warmed (or cooled, below zero) so that its zero moves by ``moved_mg``; it stays so."""

    moved_mg: int


def _sway(rng: Random, state: float, rms: float, share: float) -> float:
    """One step of an AR(1) of standard deviation ``rms``; ``share`` is what stays of the last."""
    return state * share + rng.gauss(0.0, rms * math.sqrt(1.0 - share * share))


class _Contact:
    """The force of an animal that eats: down for seconds, up to chew for seconds."""

    def __init__(self, rng: Random, visit: Visit) -> None:
        self._rng = rng
        self._force = visit.force_mg
        self._until = visit.began_ms
        self._down = False
        self._press = 0.0
        self._sway = 0.0

    def force(self, at_ms: int) -> float:
        """The force in mg; 0 while the head is up."""
        rng = self._rng
        if at_ms >= self._until:
            self._down = not self._down
            self._until = at_ms + int(rng.uniform(1_500, 7_000) if self._down else rng.uniform(400, 4_000))
            self._press = self._force * rng.uniform(0.1, 1.0)
        if not self._down:
            return 0.0
        self._sway = _sway(rng, self._sway, self._press * 0.4, 0.6)
        lick = math.sin(at_ms * 2 * math.pi * 3.3 / 1000) * self._press * 0.5
        # It presses; what pulls is only the bowl that swings back.
        return max(-0.1 * self._press, self._press * rng.uniform(0.2, 1.0) + lick + self._sway)


class _Sensor:
    """Noise, drift and warmth of one cell; knows nothing of what stands on it."""

    def __init__(self, rng: Random, bowl: Bowl, slow: Sequence[Act]) -> None:
        self._rng, self._bowl, self._slow = rng, bowl, slow
        self._wander = 0.0
        self._drift_sign = rng.choice((-1.0, 1.0))
        self._phase = rng.uniform(0.0, 2 * math.pi)

    def error(self, at_ms: int) -> float:
        bowl, rng = self._bowl, self._rng
        self._wander = _sway(rng, self._wander, bowl.wander_mg, 0.9)
        turn = 2 * math.pi * at_ms / DAY_MS + self._phase
        mg = bowl.zero_mg + self._drift_sign * bowl.drift_mg_day * at_ms / DAY_MS
        mg += bowl.swing_mg * (math.sin(turn) - math.sin(self._phase))
        mg += self._wander + rng.gauss(0.0, bowl.noise_mg)
        for act in self._slow:
            if isinstance(act, Shake) and act.began_ms <= at_ms < act.end_ms:
                mg += rng.uniform(-act.peak_mg, act.peak_mg)
            elif isinstance(act, Warm) and at_ms >= act.began_ms:
                mg += act.moved_mg * (1.0 - math.exp(-3.0 * (at_ms - act.began_ms) / act.lasted_ms))
        return mg

    def nonsense(self, shown_mg: float) -> int | None:
        """A reading that is none, or None."""
        rng = self._rng
        if rng.random() >= self._bowl.nonsense:
            return None
        counts = rng.choice((*_NONSENSE, None))
        return -round(shown_mg) if counts is None else round(counts * self._bowl.mg_per_count)


def load_cell(
    bowl: Bowl, acts: Sequence[Act], rng: Random, *, to_ms: int, from_ms: int = 0, every_ms: int = SAMPLE_MS
) -> Iterator[tuple[int, int]]:
    """Samples (ms, mg) of a bowl on which ``acts`` happen; zero is the empty bowl on the first day.

    Parameters
    ----------
    acts : sequence of Act
        In order of time. Only ``Shake`` and ``Warm`` may overlap the others.
    every_ms : int
        Time between samples; other than 100, the animal's bites come in coarser steps.
    """
    sensor = _Sensor(rng, bowl, [act for act in acts if isinstance(act, Shake | Warm)])
    todo = [act for act in acts if not isinstance(act, Shake | Warm)]
    todo.reverse()
    food = float(bowl.food_mg)
    playing: _Playing | None = None
    for at_ms in range(from_ms, to_ms, every_ms):
        if playing is not None and at_ms >= playing.act.end_ms:
            food, playing = playing.food_after(), None
        if playing is None and todo and at_ms >= todo[-1].began_ms:
            playing = _Playing(rng, bowl, todo.pop(), food, every_ms)
        yield _shown(sensor, at_ms, food if playing is None else playing.load(at_ms))


def _shown(sensor: _Sensor, at_ms: int, load_mg: float) -> tuple[int, int]:
    shown = load_mg + sensor.error(at_ms)
    nonsense = sensor.nonsense(shown)
    return at_ms, round(shown) if nonsense is None else nonsense


class _Playing:
    """What stands on the cell while an act lasts."""

    def __init__(self, rng: Random, bowl: Bowl, act: Act, food: float, every_ms: int) -> None:
        self.act = act
        self._rng, self._bowl, self._food, self._every_ms = rng, bowl, food, every_ms
        self._contact = _Contact(rng, act) if isinstance(act, Visit) else None
        self._sway = 0.0

    def load(self, at_ms: int) -> float:
        """The load in mg at an instant; instants come in order."""
        act, food, rng = self.act, self._food, self._rng
        done = min(1.0, (at_ms - act.began_ms + self._every_ms) / act.lasted_ms)
        if isinstance(act, Visit):
            assert self._contact is not None
            return food - act.removed_mg * done + self._contact.force(at_ms)
        if isinstance(act, Pour):
            return food + act.added_mg * done + abs(rng.gauss(0.0, 25_000.0))
        if isinstance(act, Lift):
            edge = min(at_ms - act.began_ms, act.end_ms - at_ms) < 1_000
            return rng.uniform(-self._bowl.mass_mg, food + 100_000) if edge else -float(self._bowl.mass_mg)
        force = float(act.force_mg) if isinstance(act, Lean) else 0.0
        self._sway = _sway(rng, self._sway, force * 0.04, 0.8)
        return food + force + self._sway

    def food_after(self) -> float:
        """What the bowl holds, mg, once it is over."""
        act = self.act
        if isinstance(act, Visit):
            return self._food - act.removed_mg
        if isinstance(act, Pour):
            return self._food + act.added_mg
        return float(act.food_mg) if isinstance(act, Lift) else self._food


def wait(acts: Sequence[Act], quiet_ms: int) -> int:
    """When the last act is over and ``quiet_ms`` have passed."""
    return max((act.end_ms for act in acts), default=0) + quiet_ms


def day_of_acts(rng: Random, *, species: str, visits: int, food_mg: int, day_ms: int = DAY_MS) -> list[Act]:
    """A day at a bowl: meals with their pours, sniffs, leanings, a washing, a machine, a warm spell.

    The bowl holds what was poured; nobody eats more than is there.

    Parameters
    ----------
    species : {"cat", "dog"}
        Cats take 1.5 to 18 g a visit, dogs 30 to 220 g.
    visits : int
        How many meals.
    food_mg : int
        What the bowl holds at the start.
    """
    low, high, pace = (1_500, 18_000, 150) if species == "cat" else (30_000, 220_000, 1_100)
    acts: list[Act] = []
    held = food_mg
    slot = day_ms // (visits + 1)
    for index in range(visits):
        at_ms = index * slot + rng.randrange(60_000, max(60_001, slot // 4))
        if held < high:
            added = rng.randint(high, 3 * high)
            acts.append(Pour(at_ms, rng.randint(1_200, 5_000), added))
            held += added
            at_ms = acts[-1].end_ms + rng.choice((4_000, 15_000, 90_000, 600_000))
        removed = min(held, rng.randint(low, high))
        lasted = round(1_000 * removed / pace * rng.uniform(0.7, 1.6)) + 2_000
        force = rng.randint(10_000, 60_000) if species == "cat" else rng.randint(40_000, 300_000)
        acts.append(Visit(at_ms, lasted, removed, force))
        held -= removed
        at_ms = acts[-1].end_ms + rng.randrange(120_000, 400_000)
        extra = rng.random()
        if extra < 0.2:
            acts.append(Visit(at_ms, rng.randint(1_000, 9_000), 0, 15_000))
        elif extra < 0.35:
            acts.append(Lean(at_ms, rng.randint(3_000, 40_000), rng.randint(50_000, 400_000)))
        elif extra < 0.45:
            held = rng.choice((held, 0, held + high))
            acts.append(Lift(at_ms, rng.randint(5_000, 400_000), held))
        elif extra < 0.55:
            acts.append(Shake(at_ms, rng.randint(60_000, 500_000), rng.randint(1_500, 4_000)))
        elif extra < 0.65:
            acts.append(Warm(at_ms, 1_200_000, rng.choice((-1, 1)) * rng.randint(1_000, 4_000)))
    return acts
