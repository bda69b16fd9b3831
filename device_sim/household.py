"""A household at work: a story in, the records its devices take and the true answer out.

Everything is a function of the story, seed included: the same story gives the same records,
on any machine, under any hash seed. Devices know the wall time and run from the first local
midnight of the story in one boot. A tracker sums its motion every five minutes; both kinds
send a beat every 15 minutes, which is what coverage is read from.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time
from itertools import accumulate
from random import Random

from device_sim.faults import overwritten, records_nothing
from device_sim.series import DAY_SHAPES, HABITS, daily_totals
from device_sim.story import Feeding, Pet, Story
from firmware_bridge import wire

__all__ = ["BEAT_MS", "MOTION_MS", "RING_SLOTS", "SimDevice", "Taken", "World", "build_world"]

MOTION_MS = 300_000
BEAT_MS = 900_000
_SLOT_MS = 900_000  # truth is kept by quarters of an hour
RING_SLOTS = 4_096
"""What a simulated ring holds where a story does not say: over ten days of a tracker."""
_RECORDS_AN_HOUR = {"tracker": 16, "food_bowl": 5}
_DAYS_AFTER = 7
"""So many days are played live after the question."""
_CHARGE_EVERY_DAYS = 5
_CHARGE_HOUR = 10


@dataclass(frozen=True, slots=True)
class Taken:
    """A record at the instant a device takes it; ``at_ms`` is UTC."""

    at_ms: int
    kind: int
    values: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class SimDevice:
    """A device with everything it will ever record, in order of time.

    ``pets`` are the keys of those it serves, ``since`` the story day from which on it does
    (None = always); ``slots`` is what its ring holds.
    """

    id: str
    kind: str
    name: str
    pets: tuple[str, ...]
    model: str
    taken: tuple[Taken, ...]
    since: int | None = None
    slots: int = RING_SLOTS


@dataclass(frozen=True, slots=True)
class World:
    """A played story.

    ``slots`` holds, per (pet key, series), sums by (day index, quarter hour) of what reached
    the hub; ``lost`` the quarters that fell out of a ring, per (pet key, device kind).
    """

    story: Story
    devices: tuple[SimDevice, ...]
    slots: dict[tuple[str, str], dict[tuple[int, int], float]]
    lost: dict[tuple[str, str], frozenset[tuple[int, int]]]


def build_world(story: Story) -> World:
    """Play a story: what every device takes, and the sums the truth is computed from."""
    devices: list[SimDevice] = []
    if story.shared_bowl:
        sharing = tuple(pet for pet in story.pets if pet.bowl)
        meals = sorted((one for pet in sharing for one in _bowl(story, pet, beats=pet is sharing[0])), key=_when)
        keys = tuple(pet.key for pet in sharing)
        devices.append(_device(story, "bowl-shared", "the shared bowl", keys, tuple(meals)))
    for pet in story.pets:
        if pet.bowl and not story.shared_bowl:
            taken = tuple(_bowl(story, pet, beats=True))
            devices.append(_device(story, f"bowl-{pet.id}", f"{pet.name}'s bowl", (pet.key,), taken))
        if pet.tracker:
            devices += _trackers(story, pet)
    slots: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    lost: dict[tuple[str, str], frozenset[tuple[int, int]]] = {}
    for device in devices:
        gone = overwritten(story, device.taken, device.slots)
        for key in device.pets if len(device.pets) == 1 else ():
            for series, sums in _sums(story, story.pet(key), device, gone).items():
                slots[key, series] = {**slots.get((key, series), {}), **sums}
            lost[key, device.kind] = frozenset(_slot_of(story, one.at_ms) for one in gone)
    return World(story, tuple(devices), slots, lost)


def _device(story: Story, device_id: str, name: str, pets: tuple[str, ...], taken: tuple[Taken, ...]) -> SimDevice:
    kind, model = ("tracker", "scenttag-1") if device_id.startswith("tracker") else ("food_bowl", "scentbowl-1")
    slots = RING_SLOTS if story.outage is None else story.outage.ring_hours * _RECORDS_AN_HOUR[kind]
    return SimDevice(device_id, kind, name, pets, model, taken, slots=slots)


def _trackers(story: Story, pet: Pet) -> list[SimDevice]:
    """A pet's tracker; two, one after the other, where it is swapped."""
    taken = tuple(_tracker(story, pet))
    name = f"{pet.name}'s tracker"
    first = _device(story, f"tracker-{pet.id}", name, (pet.key,), taken)
    swap = next((one for one in story.swaps if one.pet == pet.key), None)
    if swap is None:
        return [first]
    at_ms = story.instant(swap.day, time())
    second = _device(story, f"tracker-{pet.id}-2", f"{pet.name}'s new tracker", (pet.key,), taken)
    return [
        replace(first, taken=tuple(one for one in taken if one.at_ms <= at_ms)),
        replace(second, taken=tuple(one for one in taken if one.at_ms > at_ms), since=swap.day),
    ]


def _when(one: Taken) -> int:
    return one.at_ms


def _slot_of(story: Story, at_ms: int) -> tuple[int, int]:
    """(day index, quarter hour) that a record ending at ``at_ms`` belongs to."""
    local = datetime.fromtimestamp((at_ms - 1) / 1000, story.tz)
    day = (local.date() - story.date_of(1 - story.days)).days
    return day, (at_ms - 1 - story.instant(day + 1 - story.days, time())) // _SLOT_MS


def _sums(
    story: Story, pet: Pet, device: SimDevice, gone: tuple[Taken, ...]
) -> dict[str, dict[tuple[int, int], float]]:
    """What of a device's records counts in which quarter of an hour; intake in kcal."""
    dropped = {one.at_ms for one in gone}
    sums: dict[str, dict[tuple[int, int], float]] = {}
    starts = [day.start_ms for day in _days(story)]
    feedings = _feedings(story, pet)

    def add(series: str, at_ms: int, value: float) -> None:
        index = bisect(starts, at_ms) - 1
        slot = (index, (at_ms - starts[index]) // _SLOT_MS)
        of_series = sums.setdefault(series, {})
        of_series[slot] = of_series.get(slot, 0.0) + value

    for one in device.taken:
        if one.at_ms in dropped:
            continue
        if one.kind == wire.MOTION:
            for series, columns in (("scratch", (1,)), ("shake", (2,)), ("activity", (3, 4, 5)), ("restless", (7,))):
                add(series, one.at_ms - MOTION_MS, sum(float(one.values[column]) for column in columns))
        elif one.kind == wire.MEAL:
            began_ms = story.start_ms + int(one.values[0])
            add("intake", began_ms, float(one.values[2]) / 1e6 * _kcal_per_kg(story, feedings, began_ms))
    return sums


# --- time -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Day:
    """One local day: story index (0 = the first), its start, and how many 5-minute steps it has."""

    index: int
    day: int
    start_ms: int
    steps: int


def _days(story: Story) -> Iterator[_Day]:
    for index in range(story.days + _DAYS_AFTER):
        day = index + 1 - story.days
        start_ms = story.instant(day, time())
        yield _Day(index, day, start_ms, (story.instant(day + 1, time()) - start_ms) // MOTION_MS)


def _hours(story: Story, day: _Day) -> list[int]:
    """The local hour at each step; DST days have steps of an hour twice, or not at all."""
    quarters = [
        datetime.fromtimestamp((day.start_ms + at * MOTION_MS) / 1000, story.tz).hour for at in range(0, day.steps, 3)
    ]
    return [quarters[at // 3] for at in range(day.steps)]


def _totals(story: Story, pet: Pet, series: str) -> list[float]:
    """Multiples of the usual per day, effects included."""
    habit = HABITS[series]
    drawn = daily_totals(
        f"{story.draws}/{story.seed}/{pet.key}/{series}",
        habit,
        days=story.days,
        end_hour=story.ends.hour + story.ends.minute / 60,
        first_weekday=story.date_of(1 - story.days).weekday(),
        shape=DAY_SHAPES.get(series),
    )
    for effect in story.effects:
        if effect.pet == pet.key and effect.series == series:
            for index in range(effect.day + story.days - 1, len(drawn)):
                drawn[index] *= effect.factor
    return drawn


# --- tracker --------------------------------------------------------------------------------


def _tracker(story: Story, pet: Pet) -> Iterator[Taken]:
    totals = {series: _totals(story, pet, series) for series in ("scratch", "shake", "activity", "restless")}
    # One factor keeps the pets of redrawn worlds apart.
    own = Random(f"{story.draws}/{story.seed}/{pet.key}/self").uniform(0.85, 1.25) if story.seed else 1.0
    for day in _days(story):
        if records_nothing(story, pet, "tracker", day.day):
            continue
        rng = Random(f"{story.draws}/{story.seed}/{pet.key}/day/{day.index}")
        hours = _hours(story, day)
        charging = day.index % _CHARGE_EVERY_DAYS == 2 and not -8 <= day.day <= 0
        worn = [0 if charging and hour == _CHARGE_HOUR else MOTION_MS for hour in hours]
        usual = {series: HABITS[series].usual * totals[series][day.index] * own for series in totals}
        scratch = _bouts(rng, usual["scratch"], DAY_SHAPES["scratch"], hours, worn, bout_ms=4_500)
        shake = _bouts(rng, usual["shake"], DAY_SHAPES["shake"], hours, worn, bout_ms=1_500)
        active = _spread(rng, usual["activity"], DAY_SHAPES["activity"], hours, worn, spread=0.6)
        restless = _spread(rng, usual["restless"], DAY_SHAPES["restless"], hours, worn, spread=0.8)
        for at in range(day.steps):
            end_ms = day.start_ms + (at + 1) * MOTION_MS
            motion = _motion(
                rng, worn=worn[at], scratch=scratch[at], shake=shake[at], active=active[at], restless=restless[at]
            )
            yield Taken(end_ms, wire.MOTION, motion)
            if end_ms % BEAT_MS == 0:
                yield Taken(end_ms, wire.BEAT, _tracker_beat(day, at, worn=worn[at] > 0))


def _motion(rng: Random, *, worn: int, scratch: int, shake: int, active: int, restless: int) -> tuple[int, ...]:
    """The nine values of a motion record; low + mid + high + rest = worn."""
    high = int(active * rng.uniform(0.02, 0.12))
    mid = int(active * rng.uniform(0.15, 0.3))
    rest = worn - active
    return (MOTION_MS, scratch, shake, active - mid - high, mid, high, rest, min(restless, rest), worn)


def _tracker_beat(day: _Day, at: int, *, worn: bool) -> tuple[int, ...]:
    since = day.index % _CHARGE_EVERY_DAYS - 2 + (_CHARGE_EVERY_DAYS if day.index % _CHARGE_EVERY_DAYS < 2 else 0)
    left = 1000 - int(160 * (since + at / day.steps)) if worn else 900
    return (max(60, min(1000, left)), wire.WORN if worn else wire.NOT_WORN, 0 if worn else 1)


def _bouts(
    rng: Random, total_ms: float, shape: tuple[int, ...], hours: list[int], worn: list[int], *, bout_ms: int
) -> list[int]:
    """A day's total as separate bouts: exponential lengths, placed by the hour's weight."""
    reach = list(accumulate(shape[hour] if on else 0 for hour, on in zip(hours, worn, strict=True)))
    count = max(3, round(total_ms / bout_ms))
    lengths = [-math.log(1.0 - rng.random()) for _ in range(count)]
    scale = total_ms / sum(lengths)
    steps = [0] * len(hours)
    for length in lengths:
        at = bisect(reach, rng.random() * reach[-1])
        steps[at] = min(MOTION_MS, steps[at] + round(length * scale))
    return steps


def _spread(
    rng: Random, total_ms: float, shape: tuple[int, ...], hours: list[int], worn: list[int], *, spread: float
) -> list[int]:
    """A day's total over its steps by the hour's weight, each quarter of an hour with its own luck.

    No step holds more than 95 % of itself; what is cut is spread over the others, twice.
    """
    most = MOTION_MS * 95 // 100
    luck = [math.exp(rng.gauss(0.0, spread)) for _ in range((len(hours) + 2) // 3)]
    weights = [shape[hour] * luck[at // 3] if worn[at] else 0.0 for at, hour in enumerate(hours)]
    scale = total_ms / sum(weights)
    for _ in range(2):
        full = sum(most for weight in weights if weight * scale >= most)
        open_weight = sum(weight for weight in weights if weight * scale < most)
        scale = max(scale, (total_ms - full) / open_weight)
    return [min(most, int(weight * scale)) for weight in weights]


# --- bowl -----------------------------------------------------------------------------------


def _feedings(story: Story, pet: Pet) -> list[tuple[int, Feeding]]:
    """When which food went into the pet's bowl, in order."""
    return sorted(
        ((story.instant(one.day, one.at), one) for one in story.feedings if one.pet == pet.key), key=lambda row: row[0]
    )


def _bowl(story: Story, pet: Pet, *, beats: bool) -> list[Taken]:
    """Refills and meals in order; with ``beats`` also what the bowl says of itself and its food.

    Of two pets at one bowl only the first one's call has them.
    """
    totals = _totals(story, pet, "intake")
    feedings = _feedings(story, pet)
    taken = [_food_set(story, at_ms, feeding) for at_ms, feeding in feedings] if beats else []
    fast_ms = min([story.instant(one.day, one.at) for one in story.fasts if one.pet == pet.key], default=1 << 60)
    for day in _days(story):
        if records_nothing(story, pet, "food_bowl", day.day):
            continue
        rng = Random(f"{story.draws}/{story.seed}/{pet.key}/bowl/{day.index}")
        for at in range(2, day.steps, 3) if beats else ():
            battery = max(80, 985 - 6 * day.index - at * 6 // day.steps)
            taken.append(Taken(day.start_ms + (at + 1) * MOTION_MS, wire.BEAT, (battery, wire.WORN_UNKNOWN, 0)))
        for eaten in _meals(story, pet, day, rng, totals[day.index]):
            grams = eaten.kcal / _kcal_per_kg(story, feedings, eaten.began_ms) * 1000
            removed_mg = round(grams * 1000)
            refill_mg = removed_mg + rng.randint(-900, 2_400)
            if eaten.began_ms >= fast_ms:
                continue
            taken.append(Taken(eaten.began_ms - 300_000, wire.REFILL, (refill_mg,)))
            began = eaten.began_ms - story.start_ms
            lasted_ms = round(grams / eaten.grams_a_minute * 60_000)
            taken.append(Taken(eaten.began_ms + lasted_ms, wire.MEAL, (began, lasted_ms, removed_mg, 0)))
    taken.sort(key=_when)  # stable: what falls on one instant keeps its order
    return taken


@dataclass(frozen=True, slots=True)
class _Eaten:
    began_ms: int
    kcal: float
    grams_a_minute: float


def _meals(story: Story, pet: Pet, day: _Day, rng: Random, total: float) -> Iterator[_Eaten]:
    """The day's meals: shares and times wander a little, the day's energy is given."""
    shares = [share * math.exp(rng.gauss(0.0, 0.05)) for _, share in pet.meals]
    pace = (45.0 if pet.species == "dog" else 9.0) * math.exp(rng.gauss(0.0, 0.08))
    for (at, _), share in zip(pet.meals, shares, strict=True):
        began_ms = story.instant(day.day, at) + round(rng.gauss(0.0, 4 * 60_000))
        yield _Eaten(began_ms, pet.kcal * total * share / sum(shares), pace)


def _kcal_per_kg(story: Story, feedings: list[tuple[int, Feeding]], at_ms: int) -> int:
    now = [feeding for from_ms, feeding in feedings if from_ms <= at_ms] or [feedings[0][1]]
    return story.food(now[-1].food).kcal_per_kg


def _food_set(story: Story, at_ms: int, feeding: Feeding) -> Taken:
    food = story.food(feeding.food)
    return Taken(at_ms, wire.FOOD_SET, (food.code, food.name))
