"""Hard floors: what must be said from the first hour, whatever any statistics say.

The rules are measure's; here they meet the records. In: the stored meals, weighings and what
the devices were last heard of, the owner's answers, and an instant. Out: stored notices that
stand until the floor no longer holds, each with the records it stands on. Evaluating twice at
one instant changes nothing. A pet that is away, gone or dead has no floor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from gateway.learn.words import day_words, kilograms, urgent, when_words
from gateway.measure.alarms import (
    BoxVisit,
    Floor,
    FloorKind,
    Urgency,
    box_floor,
    meal_floor,
    meal_limit_ms,
    silence_floor,
    unused_run,
    weight_floor,
)
from gateway.measure.battery import LOW_PERMILLE, BatteryReading, Discharge, low_battery
from gateway.measure.days import HOUR_MS, SLOT_MS, add_days, day_interval, instant_of, local_clock, local_day
from gateway.measure.rollup import mass_mg, merge_intervals
from gateway.model import Interval, PetStatus, RecordRef, stable_id
from gateway.ontology.load import toy_breeds
from gateway.stored import FloorNotice

if TYPE_CHECKING:
    from gateway.model import Device, Household, Pet
    from gateway.ontology.vocabulary import Ontology
    from gateway.store import Transaction
    from gateway.stored import DatedFrame

__all__ = ["HALF_WINDOW", "floors_at", "meal_watch", "usual_meal_ends", "watch_floors", "weighings"]

HALF_WINDOW = "P2D"
"""The finding of a cat that took less than half of its usual on two whole days."""
_DAY_MS = 24 * HOUR_MS
_LOOKBACK_DAYS = 40
"""A fast that began longer ago is told from here on: the notice keeps when it was first said."""
_DATED_WITHIN_MS = 10_000
_QUIET = frozenset({PetStatus.AWAY, PetStatus.SECOND_HOME, PetStatus.GONE, PetStatus.DIED})
_HARDY = frozenset({"dog", "cat"})
"""Others (rabbit, guinea pig, ferret, bird) can't wait for tomorrow: half of an adult's time."""
_WEIGHED_DAYS = 400
_BATTERY_DAYS = 14
_USUAL_DAYS = 14
_USUAL_SHARE = 0.7
_BOX_DAYS = 7
"""A run of unused visits stands until one is used or the owner answers, a week at most."""
_USE: dict[object, bool] = {0: False, 1: True}
"""What a litter box says of a visit; any other value means that it can't tell."""
_SAME_MEAL_MIN = 60
"""A meal within an hour of its usual time is that meal; an hour after the latest it is missed."""
_WEIGHT = re.compile(r"(\d{1,3}(?:[.,]\d{1,3})?)\s*(kg|kilos?|lbs?|pounds?|oz|g)\b", re.IGNORECASE)
_UNITS = {"kilo": "kg", "kilos": "kg", "lbs": "lb", "pound": "lb", "pounds": "lb"}


@dataclass(frozen=True, slots=True)
class _Reached:
    """A floor that holds: what it is counted from (``basis``), since when that stands
    (``origin_ms``), and what is said of it.
    """

    pet: str
    floor: Floor
    basis: str
    origin_ms: int
    text: str
    refs: tuple[RecordRef, ...]
    device: str | None = None

    def notice(self, now_ms: int) -> FloorNotice:
        floor, about = self.floor, self.pet if self.device is None else f"{self.pet}.{self.device}"
        return FloorNotice(
            id=f"{about}.{floor.kind}@{floor.reached_ms}",
            pet=self.pet,
            kind=floor.kind,
            urgency=floor.urgency,
            basis=self.basis,
            since_ms=floor.reached_ms,
            raised_ms=now_ms,
            text=self.text,
            refs=self.refs,
            device=self.device,
        )


def watch_floors(tx: Transaction, ontology: Ontology, *, now_ms: int) -> tuple[FloorNotice, ...]:
    """Make the stored notices those of the floors that hold at ``now_ms``; returns the new ones.

    A floor that still holds keeps its notice and its answer; one that no longer does ends.
    """
    standing = {
        (notice.pet, notice.kind, notice.device, notice.basis): notice for notice in tx.floor_notices(open_only=True)
    }
    raised = []
    for found in floors_at(tx, ontology, now_ms=now_ms):
        key = (found.pet, found.kind, found.device, found.basis)
        if standing.pop(key, None) is None:
            tx.save_floor(found)
            raised.append(found)
    for notice in standing.values():
        tx.end_floor(notice.id, at_ms=now_ms)
    return tuple(raised)


def floors_at(tx: Transaction, ontology: Ontology, *, now_ms: int) -> tuple[FloorNotice, ...]:
    """Every floor that holds at an instant, answered or not, in the order of the pets."""
    home = tx.household(now_ms)
    if not home.zones:
        return ()
    found: list[_Reached | None] = []
    for pet in home.pets:
        if pet.status in _QUIET:
            continue
        watched = _Watched(tx, home, ontology, pet, now_ms)
        found.append(_answered(watched, FloorKind.NO_MEAL, watched.no_meal))
        found.append(_answered(watched, FloorKind.HALF_USUAL, watched.half_usual))
        found.append(_answered(watched, FloorKind.WEIGHT_LOSS, watched.weight_loss))
        found.append(_answered(watched, FloorKind.BOX_UNUSED, watched.box_unused))
        found.extend(watched.unheard())
        found.extend(
            _answered(watched, FloorKind.BATTERY, partial(watched.battery, device), device=device.id)
            for device in watched.answers_for()
        )
    return tuple(reached.notice(now_ms) for reached in found if reached is not None)


def _answered(
    watched: _Watched,
    kind: FloorKind,
    reach: Callable[[int | None], _Reached | None],
    *,
    device: str | None = None,
) -> _Reached | None:
    """The floor in the light of the owner's last answer: counted anew from it.

    "Ate elsewhere" counts as a meal; "not at home" holds until the pet's records go on; after
    "seen" the notice stays as it was answered until the floor is reached once more.
    """
    plain = reach(None)
    last = (
        None if plain is None else watched.tx.last_answer(watched.pet.id, kind, before_ms=watched.now_ms, device=device)
    )
    if plain is None or last is None or last.answered_ms is None or plain.origin_ms > last.answered_ms:
        return plain
    if last.answer == "not_at_home":
        return None
    again = reach(last.answered_ms)
    if again is not None:
        return again
    return replace(plain, basis=last.basis) if last.answer == "seen" and last.ended_ms is None else None


# --- one pet ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Watched:
    """One pet at one instant, with the records its floors are read from."""

    tx: Transaction
    home: Household
    ontology: Ontology
    pet: Pet
    now_ms: int

    def devices(self, kinds: frozenset[str]) -> tuple[Device, ...]:
        """Devices of these kinds that serve the pet, alone or with others."""
        return tuple(
            device
            for device in self.home.devices
            if device.kind in kinds and self.pet.id in self.home.bindings_at(device.id, self.now_ms)
        )

    def when(self, at_ms: int) -> str:
        return when_words(at_ms, self.home.zones)

    # -- no meal -----------------------------------------------------------------------------------

    def no_meal(self, from_ms: int | None) -> _Reached | None:
        """No meal from the pet's bowls, all of them heard throughout; counted from the last meal,
        from ``from_ms`` (an answer), or from when the bowls were heard again.
        """
        first_ms = {
            bowl: heard_ms
            for bowl in self.devices(frozenset({"food_bowl"}))
            if (heard_ms := self.tx.first_heard(bowl.id)) is not None  # one never heard has fed nobody yet
        }
        bowls = tuple(first_ms)
        if not bowls:
            return None
        meal = self._last_meal(bowls)
        home_ms = self._home_since_ms()
        watched_ms = max(home_ms, *first_ms.values(), *(self._bound_since_ms(bowl) for bowl in bowls))
        meal_ms = watched_ms if meal is None else max(watched_ms, _minute(meal.start_ms))
        origin_ms = meal_ms if from_ms is None else from_ms
        age_days, small = _age_and_size(self.pet, self._today())
        limit_ms, _ = meal_limit_ms(age_days=age_days, toy_breed=small)
        due_ms = self._missed_meal_ms(bowls, origin_ms)
        if self.now_ms < min(origin_ms + limit_ms, due_ms or 2**62):
            return None  # the usual case, told without reading what was heard
        heard = self._heard(bowls, origin_ms)
        for start_ms in (origin_ms, *(part.start_ms for part in heard if part.start_ms > origin_ms)):
            floor = meal_floor(
                now_ms=self.now_ms,
                last_meal_ms=None,
                watched_since_ms=start_ms,
                heard=heard,
                age_days=age_days,
                toy_breed=small,
                missed_meal_due_ms=due_ms,
            )
            if floor is not None:
                last_ms = None if meal is None else _minute(meal.start_ms)
                break
        else:
            return None
        since = self._since_words(start_ms, origin_ms, last_ms, home_ms=home_ms, answered=from_ms is not None)
        missed = due_ms is not None and floor.reached_ms == due_ms
        long = "a usual meal missed, on insulin" if missed else f"{(floor.reached_ms - start_ms) // HOUR_MS} hours"
        sign = f"No meal from {self._bowl_words(bowls)} {since} ({long}, the bowl heard throughout)"
        said = [heard_at[1] for bowl in bowls if (heard_at := self.tx.last_heard(bowl.id, until_ms=self.now_ms))]
        return _Reached(
            pet=self.pet.id,
            floor=replace(floor, last_seen_ms=last_ms),
            basis=f"from@{origin_ms}",
            origin_ms=meal_ms,
            text=urgent(floor.urgency, sign, self.pet),
            refs=(*(() if meal is None else (meal.ref,)), *said),
        )

    def _last_meal(self, bowls: tuple[Device, ...]) -> DatedFrame | None:
        """The last counted meal at one of the bowls while it served the pet."""
        meals = [self.tx.last_counted(bowl.id, "meal", before_ms=self.now_ms + 1) for bowl in bowls]
        counted = [meal for meal in meals if meal and self.pet.id in self.home.bindings_at(meal.device, meal.start_ms)]
        return max(counted, key=lambda meal: meal.start_ms, default=None)

    def _home_since_ms(self) -> int:
        """Since when the pet is here: the first status after it was last away."""
        since_ms = 0
        for at_ms, status in reversed(self.tx.statuses(self.pet.id, until_ms=self.now_ms)):
            if status in _QUIET:
                break
            since_ms = at_ms
        else:
            since_ms = 0
        return since_ms

    def _bound_since_ms(self, bowl: Device) -> int:
        return max(
            binding.valid_from_ms
            for binding in self.home.bindings
            if binding.device == bowl.id and self.pet.id in binding.pets and binding.valid_from_ms <= self.now_ms
        )

    def _heard(self, bowls: tuple[Device, ...], from_ms: int) -> tuple[Interval, ...]:
        """When all of the bowls were heard, as stretches of time from the stored coverage.

        A quarter of an hour heard in part counts from its start: it is known how much, not when.
        """
        zones = self.home.zones
        first = max(local_day(from_ms, zones), add_days(self._today(), -_LOOKBACK_DAYS))
        covered: dict[int, int] = {}
        owners = {"+".join(sorted(self.home.bindings_at(bowl.id, self.now_ms))) for bowl in bowls}
        for number, owner in enumerate(sorted(owners)):
            of_slot = {
                row.start_ms + at * SLOT_MS: heard_ms
                for row in self.tx.days(self.ontology.series_id(owner, "intake"), first, self._today())
                for at, heard_ms in enumerate(row.covered)
                if heard_ms
            }
            covered = (
                of_slot
                if number == 0
                else {at: min(covered[at], heard_ms) for at, heard_ms in of_slot.items() if at in covered}
            )
        return merge_intervals(Interval(at, at + heard_ms) for at, heard_ms in covered.items())

    def _since_words(self, start_ms: int, origin_ms: int, meal_ms: int | None, *, home_ms: int, answered: bool) -> str:
        if start_ms != origin_ms:
            return f"since it was heard again {self.when(start_ms)}"
        if answered:
            return f"since your answer of {self.when(start_ms)}"
        if start_ms == meal_ms:
            return f"since {self.when(start_ms)}"
        if start_ms == home_ms:
            return f"since {self.pet.name} came home {self.when(start_ms)}"
        return f"since {self.when(start_ms)}, when the bowl was first heard"

    def _bowl_words(self, bowls: tuple[Device, ...]) -> str:
        others = {pet for bowl in bowls for pet in self.home.bindings_at(bowl.id, self.now_ms)} - {self.pet.id}
        if not others:
            return f"{self.pet.name}'s bowl{'s' if len(bowls) > 1 else ''}"
        named = " and ".join(self.home.pet(pet).name for pet in sorted(others))
        return f"the bowl that {self.pet.name} shares with {named}"

    def _missed_meal_ms(self, bowls: tuple[Device, ...], since_ms: int) -> int | None:
        """On insulin: when the first usual meal after ``since_ms`` was missed, or None."""
        if not any("insulin" in name for name, _ in self.tx.medicines_at(self.pet.id, at_ms=self.now_ms)):
            return None
        zones = self.home.zones
        first = add_days(local_day(since_ms, zones), -_USUAL_DAYS)
        meals = self.tx.frames(
            tuple(bowl.id for bowl in bowls),
            start_ms=day_interval(first, zones).start_ms,
            end_ms=since_ms + 1,
            kinds=("meal",),
        )
        local = [local_clock(meal.start_ms, zones) for meal in meals if meal.set_aside is None]
        ends = usual_meal_ends(tuple((at.date().isoformat(), at.hour * 60 + at.minute) for at in local))
        due = (
            instant_of(add_days(local_day(since_ms, zones), later), minute, zones).at_ms
            for later in (0, 1)
            for minute in ends
        )
        missed = [at_ms for at_ms in due if at_ms > since_ms + 2 * _SAME_MEAL_MIN * 60_000]
        return min(missed, default=None)

    # -- half of usual -----------------------------------------------------------------------------

    def half_usual(self, from_ms: int | None) -> _Reached | None:
        """A cat below half of its usual on the last two whole days, as the daily pass found it."""
        if stable_id(self.pet.species) != "cat":
            return None
        learned = self.tx.learned_until()
        yesterday = add_days(self._today(), -1)
        if learned is None or learned < add_days(yesterday, -1):
            return None
        closed = min(learned, yesterday)  # just after midnight yesterday is not learned yet
        series = self.ontology.series_id(self.pet.id, "intake")
        rows = [row for row in self.tx.findings_between((HALF_WINDOW,), closed, closed) if row[0] == series]
        if not rows:
            return None
        facts = rows[0][4]
        first, before = str(facts["first"]), add_days(closed, -1)
        start_ms = day_interval(before, self.home.zones).start_ms
        if from_ms is not None and start_ms < from_ms:
            return None
        run = day_interval(first, self.home.zones)
        basis = f"run@{first}" if from_ms is None else f"from@{from_ms}"
        reached = day_interval(add_days(first, 1) if from_ms is None else closed, self.home.zones).end_ms
        share = max(float(str(facts["before"])), float(str(facts["last"]))) * 100
        sign = (
            f"{self.pet.name} took less than half of the usual from the bowl on {day_words(before)} and "
            f"{day_words(closed)} (at most {share:.0f} % of it): that"
        )
        return _Reached(
            pet=self.pet.id,
            floor=Floor(FloorKind.HALF_USUAL, Urgency.AMBER, reached, None),
            basis=basis,
            origin_ms=run.start_ms,
            text=urgent(Urgency.AMBER, sign, self.pet),
            refs=(RecordRef(f"day:{series}/{before}"), RecordRef(f"day:{series}/{closed}")),
        )

    # -- weight ------------------------------------------------------------------------------------

    def weight_loss(self, from_ms: int | None) -> _Reached | None:
        """Down 5 % in a month or 10 % in all; after an answer only from the weight it was given at."""
        readings = weighings(self.tx, self.home, self.pet, until_ms=self.now_ms)
        if from_ms is not None:
            before = [number for number, (at_ms, _, _) in enumerate(readings) if at_ms <= from_ms]
            readings = readings[before[-1] if before else 0 :]
        floor = weight_floor(tuple((at_ms, mg) for at_ms, mg, _ in readings))
        if floor is None:
            return None
        at_ms, mg, ref = readings[-1]
        top_ms, top_mg, top_ref = max(readings, key=lambda reading: reading[1])
        sign = (
            f"Weight down from {kilograms(top_mg)} on {day_words(local_day(top_ms, self.home.zones))} to "
            f"{kilograms(mg)} on {day_words(local_day(at_ms, self.home.zones))}, if it was not planned,"
        )
        return _Reached(
            pet=self.pet.id,
            floor=floor,
            basis="loss" if from_ms is None else f"from@{from_ms}",
            origin_ms=0,
            text=urgent(floor.urgency, sign, self.pet),
            refs=(top_ref, ref),
        )

    # -- litter box --------------------------------------------------------------------------------

    def box_unused(self, from_ms: int | None) -> _Reached | None:
        """Three visits within 2 h and none used, of this pet or of one it shares the box with;
        after an answer only visits since then.
        """
        if not self.devices(frozenset({"litter_box"})):
            return None
        since_ms = self.now_ms - _BOX_DAYS * _DAY_MS if from_ms is None else from_ms + 1
        told = [
            (visit, whose)
            for visit in self.tx.frames_of_kinds(("litter",), start_ms=since_ms, end_ms=self.now_ms + 1)
            if visit.set_aside is None
            if self.pet.id in (whose := self.home.bindings_at(visit.device, visit.start_ms))
        ]
        visits = tuple(BoxVisit(visit.start_ms, _USE.get(visit.fields[1]), len(whose) == 1) for visit, whose in told)
        floor = box_floor(visits)
        if floor is None:
            return None
        run = [told[place] for place in unused_run(visits) if visits[place].at_ms >= floor.reached_ms - 2 * HOUR_MS]
        others = sorted({name for _, whose in run for name in whose} - {self.pet.id})
        may = f", which may have been {' or '.join(self.home.pet(name).name for name in others)}," if others else ""
        first, last = run[0][0], run[-1][0]
        sign = (
            f"{self.pet.name}: {len(run)} visits to the litter box from {self.when(first.start_ms)} to "
            f"{self.when(last.start_ms)}{may} and none of them used"
        )
        return _Reached(
            pet=self.pet.id,
            floor=floor,
            basis=f"box@{floor.reached_ms}" if from_ms is None else f"from@{from_ms}",
            origin_ms=floor.reached_ms,
            text=urgent(floor.urgency, sign, self.pet),
            refs=tuple(visit.ref for visit, _ in run),
        )

    # -- nobody watches ----------------------------------------------------------------------------

    def unheard(self) -> tuple[_Reached, ...]:
        """Devices that carry a floor and were not heard for 6 h."""
        kinds = frozenset(kind.id for kind in self.ontology.device_kinds.values() if kind.floor)
        found = []
        for device in self.devices(kinds):
            if self.tx.last_frame(device.id, before_ms=self.now_ms + 1, kind="beat") is None:
                continue  # it speaks only when something happens: its silence says nothing
            heard = self.tx.last_heard(device.id, until_ms=self.now_ms)
            floor = None if heard is None else silence_floor(now_ms=self.now_ms, last_heard_ms=_minute(heard[0]))
            if heard is not None and floor is not None:
                name = device.name or device.id
                text = f"I can't watch {self.pet.name} at the moment: {name} was last heard {self.when(heard[0])}."
                basis = f"heard@{heard[0]}"
                found.append(_Reached(self.pet.id, floor, basis, heard[0], text, (heard[1],), device=device.id))
        return tuple(found)

    # -- batteries ---------------------------------------------------------------------------------

    def answers_for(self) -> tuple[Device, ...]:
        """Devices whose state is told with this pet: of those that share one, the first that is here."""
        here = {pet.id for pet in self.home.pets if pet.status not in _QUIET}
        served = ((device, self.home.bindings_at(device.id, self.now_ms)) for device in self.home.devices)
        return tuple(device for device, pets in served if min(pets & here, default=None) == self.pet.id)

    def battery(self, device: Device, from_ms: int | None) -> _Reached | None:
        """The device's battery fell to its end; after an answer again at half of what it was then."""
        last = self.tx.last_frame(device.id, before_ms=self.now_ms + 1, kind="beat")
        if last is None or last.amount is None or last.amount > LOW_PERMILLE:
            return None  # the usual case, told by one row
        told = self.tx.battery_levels(device.id, until_ms=self.now_ms, reach_ms=_BATTERY_DAYS * _DAY_MS)
        readings = tuple(BatteryReading(at_ms, level, charging) for at_ms, level, charging, _ in told)
        then = None if from_ms is None else [reading.permille for reading in readings if reading.at_ms <= from_ms]
        found = low_battery(readings, again_below=None if then is None else (then or [LOW_PERMILLE])[-1])
        if found is None:
            return None
        began = next(ref for at_ms, level, _, ref in told if (at_ms, level) == (found.since_ms, found.from_permille))
        floor = Floor(FloorKind.BATTERY, Urgency.AMBER, found.low_ms if from_ms is None else told[-1][0], None)
        basis = f"low@{found.low_ms}" if from_ms is None else f"from@{from_ms}"
        text = self._battery_words(device, found)
        refs = tuple(dict.fromkeys((began, told[-1][3])))
        return _Reached(self.pet.id, floor, basis, found.low_ms, text, refs, device=device.id)

    def _battery_words(self, device: Device, found: Discharge) -> str:
        name, now = device.name or device.id, f"{found.permille / 10:g} %"
        fell = f", from {found.from_permille / 10:g} % on {day_words(local_day(found.since_ms, self.home.zones))}"
        left = f"The battery of {name} is down to {now}{fell if found.from_permille > found.permille else ''}."
        empty = ""
        if found.empty_ms is not None:
            first, last = (day_words(local_day(at_ms, self.home.zones)) for at_ms in found.empty_ms)
            pace = f"about {first}" if first == last else f"between {first} and {last}"
            empty = f" At the pace it fell it will be empty {pace}."
        return f"{left}{empty} Charge it or change it: when it stops, nothing of {self.pet.name} is recorded there."

    def _today(self) -> str:
        return local_day(self.now_ms, self.home.zones)


# --- readings -----------------------------------------------------------------------------------


def _minute(at_ms: int) -> int:
    """The full minute within ten seconds: a device without a wall clock of its own is dated by an
    offset that is good to some seconds (its crystal drifts by up to 8.6 s a day).
    """
    nearest_ms = (at_ms + 30_000) // 60_000 * 60_000
    return nearest_ms if abs(at_ms - nearest_ms) <= _DATED_WITHIN_MS else at_ms


def meal_watch(pet: Pet, today: str) -> int:
    """How long this pet may go without a meal before it is told, ms. ``today`` is an ISO date."""
    age_days, small = _age_and_size(pet, today)
    limit_ms, _ = meal_limit_ms(age_days=age_days, toy_breed=small)
    return limit_ms


def _age_and_size(pet: Pet, today: str) -> tuple[int | None, bool]:
    """Days since birth, where known, and whether it lacks a grown dog's or cat's reserves."""
    age_days = None if pet.born is None else (date.fromisoformat(today) - date.fromisoformat(pet.born)).days
    return age_days, _is_toy(pet.breed) or stable_id(pet.species) not in _HARDY


def _is_toy(breed: str | None) -> bool:
    words = f"_{stable_id(breed)}_" if breed else ""
    return any(f"_{toy}_" in words for toy in toy_breeds())


def weighings(
    tx: Transaction, home: Household, pet: Pet, *, until_ms: int, reach_days: int = _WEIGHED_DAYS
) -> tuple[tuple[int, int, RecordRef], ...]:
    """(at_ms, mg, record) of every weight of the last days: from a scale that served this pet alone,
    and as people wrote them down with their unit; a number without a unit is no weight.
    """
    from_ms = until_ms - reach_days * _DAY_MS
    found = [
        (frame.start_ms, int(frame.fields[0]), frame.ref)
        for frame in tx.frames_of_kinds(("weight",), start_ms=from_ms, end_ms=until_ms + 1)
        if frame.set_aside is None and home.bindings_at(frame.device, frame.start_ms) == frozenset({pet.id})
    ]
    for at_ms, text, ref in tx.logged(pet.id, "weight", from_ms=from_ms, until_ms=until_ms):
        read = _WEIGHT.search(text)
        if read is not None:
            unit = read[2].lower()
            mg = mass_mg(float(read[1].replace(",", ".")), _UNITS.get(unit, unit))
            if mg is not None:
                found.append((at_ms, mg, ref))
    return tuple(sorted(found, key=lambda reading: (reading[0], reading[2])))


def usual_meal_ends(meals: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    """Minutes of the day by which each usual meal has begun, an hour's grace included.

    Parameters
    ----------
    meals : tuple of (ISO date, minute of the day)

    Notes
    -----
    A usual meal is a time within an hour of which at least 70 % of the days hold a meal, on at
    least 7 days; times with most days first, the earlier of two alike. A meal serves one time.
    """
    left, ends = list(meals), []
    days = len({day for day, _ in meals})
    while days >= 7:
        best: list[tuple[str, int]] = []
        for _, minute in sorted(left, key=lambda meal: meal[1]):
            near = [meal for meal in left if abs(meal[1] - minute) <= _SAME_MEAL_MIN]
            if len({day for day, _ in near}) > len({day for day, _ in best}):
                best = near
        if len({day for day, _ in best}) < _USUAL_SHARE * days:
            break
        ends.append(max(minute for _, minute in best) + _SAME_MEAL_MIN)
        left = [meal for meal in left if meal not in best]
    return tuple(sorted(ends))
