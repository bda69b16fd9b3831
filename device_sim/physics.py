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
    "Coat",
    "Lean",
    "Lift",
    "Pour",
    "Shake",
    "Stretch",
    "Visit",
    "Warm",
    "accelerometer",
    "day_of_acts",
    "day_of_stretches",
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


# --- the collar -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a collar does for a while.

    ``what`` is one of ``stand``, ``rest``, ``turn`` (over, while lying), ``walk``, ``trot``, ``play``, ``eat``,
    ``lick``, ``tug`` (it shakes a toy), ``scratch``, ``shake``, ``off`` (it lies on a table).
    """

    what: str
    lasted_ms: int


@dataclass(frozen=True, slots=True)
class Coat:
    """One animal as its collar feels it; draws of a litter differ in all of these.

    Hz of scratching, of shaking, of the stride; mg of amplitude; mg of breathing.
    """

    scratch_hz: float = 4.5
    shake_hz: float = 4.2
    stride_hz: float = 2.2
    scratch_mg: float = 420.0
    shake_mg: float = 2_300.0
    trot_mg: float = 380.0
    breath_mg: float = 5.0
    noise_mg: float = 4.0

    @classmethod
    def draw(cls, rng: Random) -> Coat:
        """An animal by chance; small ones step faster (up to a stride of 3.2 Hz)."""
        return cls(
            scratch_hz=rng.gauss(4.5, 0.35),
            shake_hz=rng.gauss(4.3, 0.4),
            stride_hz=rng.uniform(1.7, 3.2),
            scratch_mg=math.exp(rng.gauss(6.0, 0.35)),
            shake_mg=rng.uniform(1_500.0, 3_200.0),
            trot_mg=rng.uniform(200.0, 550.0),
            breath_mg=rng.uniform(3.0, 9.0),
        )


_Vector = tuple[float, float, float]


def _unit(rng: Random) -> _Vector:
    while True:
        x, y, z = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)
        length = math.sqrt(x * x + y * y + z * z)
        if length > 0.1:
            return x / length, y / length, z / length


def _across(rng: Random, up: _Vector) -> _Vector:
    """A direction at a right angle to ``up``."""
    while True:
        x, y, z = _unit(rng)
        along = x * up[0] + y * up[1] + z * up[2]
        x, y, z = x - along * up[0], y - along * up[1], z - along * up[2]
        length = math.sqrt(x * x + y * y + z * z)
        if length > 0.2:
            return x / length, y / length, z / length


class _Collar:
    """One stretch: the forces beside gravity, along it (``up``) and across it."""

    def __init__(self, rng: Random, coat: Coat, what: str, up: _Vector) -> None:
        self._rng, self._coat, self._what = rng, coat, what
        self._up, self._side = up, _across(rng, up)
        self._phase = rng.uniform(0.0, 2 * math.pi)
        self._loud = {
            "scratch": coat.scratch_mg * rng.uniform(0.7, 1.4),
            "shake": coat.shake_mg * rng.uniform(0.8, 1.2),
            "trot": coat.trot_mg * rng.uniform(0.8, 1.2),
            "walk": coat.trot_mg * rng.uniform(0.2, 0.45),
            "play": coat.trot_mg * rng.uniform(0.8, 2.0),
            "eat": rng.uniform(40.0, 110.0),
            "lick": rng.uniform(30.0, 110.0),
            "turn": rng.uniform(60.0, 220.0),
            "tug": coat.shake_mg * rng.uniform(0.2, 0.6),
        }.get(what, 0.0)
        self._hz = {
            "scratch": coat.scratch_hz * rng.uniform(0.94, 1.06),
            "shake": coat.shake_hz,
            "trot": coat.stride_hz * rng.uniform(0.92, 1.08),
            "walk": coat.stride_hz * rng.uniform(0.55, 0.75),
            "eat": rng.uniform(1.8, 3.0),
            "lick": rng.uniform(2.6, 4.2),
            "tug": rng.uniform(2.5, 4.5),
        }.get(what, 0.0)
        # A loose collar swings: steps then move it across as much as along.
        self._loose = rng.uniform(0.2, 1.1)
        # How much of a scratch shakes the collar up and down; a sitting animal sways it sideways.
        self._tilt = rng.uniform(0.1, 0.75)
        self._jitter: list[float] = [0.0, 0.0, 0.0]
        self._power = 1.0

    def forces(self, seconds: float, left_s: float) -> tuple[float, float]:
        """(along up, across) in mg, ``seconds`` after the stretch began."""
        loud, rng = self._loud, self._rng
        angle = 2 * math.pi * self._hz * seconds + self._phase
        self._power = _sway(rng, self._power - 1.0, 0.25, 0.95) + 1.0
        a = loud * max(0.2, self._power)
        if self._what == "scratch":
            self._phase += rng.gauss(0.0, 0.06)
            wave = math.sin(angle) + 0.35 * math.sin(2 * angle)
            return a * self._tilt * wave, a * wave
        if self._what == "shake":  # grows and dies away; the head's turning presses outwards twice a cycle
            swell = min(1.0, seconds / 0.15, left_s / 0.3)
            return a * swell * 0.25 * math.cos(2 * angle), a * swell * math.sin(angle)
        if self._what in {"trot", "walk"}:  # two steps a stride: the body bounces twice, and rolls once
            self._phase += rng.gauss(0.0, 0.05)
            return a * (math.sin(2 * angle) + 0.3 * math.sin(angle)), a * self._loose * math.sin(angle + 1.0)
        if self._what == "tug":
            return a * 0.4 * math.cos(2 * angle), a * math.sin(angle) * (1.0 if math.sin(seconds) > -0.3 else 0.1)
        if self._what == "eat":
            return a * math.sin(angle), a * 0.3 * math.sin(angle + 0.5)
        if self._what == "lick":
            return a * 0.4 * math.sin(angle), a * math.sin(angle)
        return 0.0, 0.0

    def at(self, seconds: float, left_s: float) -> _Vector:
        """Milli-g on the three axes, gravity included."""
        rng, coat, up, side = self._rng, self._coat, self._up, self._side
        along, across = self.forces(seconds, left_s)
        broad = {
            "play": 0.9,
            "turn": 0.8,
            "walk": 0.35,
            "trot": 0.3,
            "scratch": 0.3,
            "eat": 0.4,
            "lick": 0.3,
            "tug": 0.5,
        }
        rms = self._loud * broad.get(self._what, 0.0)
        for axis in range(3):
            self._jitter[axis] = _sway(rng, self._jitter[axis], rms, 0.55) if rms else 0.0
        breath = 0.0 if self._what == "off" else coat.breath_mg * math.sin(2 * math.pi * 0.32 * seconds + self._phase)
        x, y, z = (
            up[axis] * (1_000.0 + along) + side[axis] * (across + breath) + self._jitter[axis] for axis in range(3)
        )
        noise = coat.noise_mg
        return x + rng.gauss(0.0, noise), y + rng.gauss(0.0, noise), z + rng.gauss(0.0, noise)


_POSTURE_MOVES = frozenset({"turn", "walk", "trot", "play", "tug", "scratch", "off"})


def accelerometer(
    coat: Coat, stretches: Sequence[Stretch], rng: Random, *, every_ms: int = 40, from_ms: int = 0
) -> Iterator[tuple[int, int, int, int]]:
    """Samples (ms, x, y, z) in milli-g, clipped at 8 g; 40 ms apart is 25 a second.

    The posture, and with it gravity's direction, changes with every stretch that moves the body.
    """
    at_ms = from_ms
    up = _unit(rng)
    for stretch in stretches:
        if stretch.what in _POSTURE_MOVES:
            up = _unit(rng)
        collar = _Collar(rng, coat, stretch.what, up)
        began_ms = at_ms
        while at_ms < began_ms + stretch.lasted_ms:
            seconds = (at_ms - began_ms) / 1000
            x, y, z = collar.at(seconds, stretch.lasted_ms / 1000 - seconds)
            yield at_ms, _clip(x), _clip(y), _clip(z)
            at_ms += every_ms


def _clip(mg: float) -> int:
    return max(-8_000, min(8_000, round(mg)))


def day_of_stretches(rng: Random, *, minutes: int) -> list[Stretch]:
    """A stretch of life on a collar: rests with turns, meals, walks, play, licking, scratching, shaking.

    Scratching and shaking are many times as frequent as in life, so that a short run can be counted.
    """
    stretches: list[Stretch] = []
    left_ms = minutes * 60_000
    while left_ms > 0:
        what = rng.choices(
            ("rest", "walk", "trot", "play", "tug", "eat", "lick", "scratch", "shake"), (6, 5, 3, 2, 1, 3, 4, 6, 3)
        )[0]
        low, high = {
            "rest": (30_000, 240_000),
            "walk": (8_000, 60_000),
            "trot": (6_000, 40_000),
            "play": (5_000, 30_000),
            "tug": (3_000, 15_000),
            "eat": (20_000, 90_000),
            "lick": (5_000, 40_000),
            "scratch": (1_600, 14_000),
            "shake": (700, 1_900),
        }[what]
        stretch = Stretch(what, rng.randint(low, high) // 40 * 40)
        stretches.append(stretch)
        left_ms -= stretch.lasted_ms
        if rng.random() < 0.7:  # else one runs into the next, as scratching into shaking
            stretches.append(Stretch("stand", rng.randint(800, 3_000) // 40 * 40))
            left_ms -= stretches[-1].lasted_ms
        if what == "rest" and rng.random() < 0.5:
            stretches += [Stretch("turn", rng.randint(2_000, 7_000) // 40 * 40), Stretch("rest", 60_000)]
            left_ms -= 65_000
    return stretches
