"""A home whose records are made by hand and written by the real writer. Not a test itself."""

from __future__ import annotations

import numpy as np

from firmware_bridge import wire
from gateway.links.ingest import store_readings
from gateway.links.payloads import Reading, read_payload
from gateway.links.rollups import Rollups
from gateway.measure.days import SLOT_MS, add_days, day_interval, instant_of
from gateway.model import Binding, Device, Food, Household, Person, Pet, RawFrame, RecordRef, Series, ZonePeriod
from gateway.ontology.load import load
from gateway.store import Database
from gateway.stored import DatedFrame, DayRow, TextRecord

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ZONES = (ZonePeriod("America/New_York", 0),)
ONTOLOGY = load()
ROLLUPS = Rollups(ONTOLOGY)
LUNA = Pet("luna", "Luna", "cat", born="2020-05-20", sex="female")
MAX = Pet("max", "Max", "dog", "golden retriever", "2021-03-02", "male")


def at(day: str, hour: int, minute: int = 0) -> int:
    """The instant of a wall-clock reading of this home."""
    return instant_of(day, hour * 60 + minute, ZONES).at_ms


def home(*pets: Pet, shared: bool = False) -> Household:
    """These pets, each with a bowl and a tracker; ``shared`` = one bowl for all."""
    names = frozenset(pet.id for pet in pets)
    bowls = [("bowl", names)] if shared else [(f"bowl-{pet.id}", frozenset({pet.id})) for pet in pets]
    return Household(
        zones=ZONES,
        pets=tuple(sorted(pets, key=lambda pet: pet.id)),
        devices=(
            *(Device(name, "food_bowl", "the kitchen bowl" if shared else f"the bowl {name}") for name, _ in bowls),
            *(Device(f"tracker-{pet.id}", "tracker", f"{pet.name}'s tracker") for pet in pets),
        ),
        bindings=(
            *(Binding(name, whose, 0) for name, whose in bowls),
            *(Binding(f"tracker-{pet.id}", frozenset({pet.id}), 0) for pet in pets),
        ),
        people=(Person("vet", "Dr. Hill", "vet", "555-0100"),),
        foods=(Food("acme", "Acme Chicken", code="1111"), Food("harbor", "Harbor Fish", code="2222")),
    )


def opened(path, *pets: Pet, shared: bool = False) -> Database:
    """A database that holds the home and nothing else."""
    database = Database(path)
    with database.transaction() as tx:
        tx.save_household(home(*pets, shared=shared), valid_from_ms=0)
    return database


# --- a bowl that speaks over the wire ---------------------------------------------------------


def bowl_says(
    device: str,
    first_ms: int,
    last_ms: int,
    *,
    meals: tuple[int, ...] = (),
    silent: tuple[tuple[int, int], ...] = (),
    boot: int = 1,
    grams: int = 40,
) -> list[Reading]:
    """A beat each quarter of an hour from ``first_ms`` to ``last_ms`` and meals that begin at their
    instants; what falls into a ``silent`` stretch is lost on the way, its numbers with it.
    """
    moments = sorted([(at_ms, 0) for at_ms in range(first_ms, last_ms + 1, 15 * MINUTE)] + [(m, 1) for m in meals])
    readings = []
    for seq, (at_ms, is_meal) in enumerate(moments, start=1):
        if any(start <= at_ms < end for start, end in silent):
            continue
        uptime = at_ms - first_ms + HOUR
        record = (
            wire.pack_record(wire.MEAL, uptime + MINUTE, (uptime, MINUTE, grams * 1000, 0))
            if is_meal
            else wire.pack_record(wire.BEAT, uptime, (900, 2, 0))
        )
        sent = uptime + (MINUTE if is_meal else 0)
        payload = wire.pack_message(boot, seq, [record], sent, None)
        readings.append(read_payload(RawFrame("mqtt", device, at_ms + (MINUTE if is_meal else 0), payload)))
    return readings


def store(database: Database, readings: list[Reading]) -> None:
    """Through the gateway's own ingest."""
    with database.transaction() as tx:
        store_readings(tx, tuple(readings), rollups=ROLLUPS)


# --- days as they would have been summed ------------------------------------------------------


def day_row(series: str, date: str, total: float, *, share: float = 1.0) -> DayRow:
    """A day's total spread over its heard quarter hours."""
    whole = day_interval(date, ZONES)
    slots = whole.length_ms // SLOT_MS
    heard = round(slots * share)
    sums = [0] * slots
    for number in range(heard):
        sums[number] = round(total * (number + 1) / heard) - round(total * number / heard)
    covered = tuple(SLOT_MS if number < heard else 0 for number in range(slots))
    return DayRow(series, date, whole.start_ms, whole.end_ms, 4, tuple(sums), covered)


def save_days(database: Database, series: Series, first: str, totals, *, share: float = 1.0) -> None:
    """Totals of consecutive days from ``first`` on; nan is a day nobody heard."""
    with database.transaction() as tx:
        tx.save_series(series)
        for number, total in enumerate(totals):
            if not np.isnan(total):
                tx.save_day(day_row(series.id, add_days(first, number), float(total), share=share))


def series_of(pet: Pet, property_id: str) -> Series:
    observed = ONTOLOGY.properties[property_id]
    return Series(ONTOLOGY.series_id(pet.id, property_id), pet.id, property_id, observed.unit)


def noisy(seed: int, days: int, *, level: float, cv: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.maximum(level * (1 + cv * rng.standard_normal(days)), 0.0)


def food_set(device: str, seq: int, at_ms: int, code: str, name: str) -> DatedFrame:
    return DatedFrame(
        RecordRef(f"event:{device}/9/{seq}"), device, 9, seq, "food_set", 0, at_ms, at_ms, at_ms, "wall", (code, name)
    )


def log(pet: Pet, at_ms: int, what: str, kind: str, *, until_ms: int | None = None) -> TextRecord:
    ref = RecordRef(f"log:{pet.id}-{at_ms}-{kind}")
    return TextRecord(ref, "log", what, what, pet=pet.id, at_ms=at_ms, until_ms=until_ms, object=kind)
