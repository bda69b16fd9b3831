"""A small home's database, filled through the gateway's own ingest. Not a test itself."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from firmware_bridge import wire
from gateway.links.ingest import store_readings
from gateway.links.payloads import Reading, read_payload
from gateway.links.rollups import Rollups
from gateway.model import (
    Binding,
    Device,
    Edge,
    Evidence,
    Food,
    Household,
    Mass,
    Person,
    Pet,
    PetStatus,
    Place,
    RawFrame,
    RecordRef,
    Vertex,
    ZonePeriod,
)
from gateway.ontology.load import load
from gateway.store import Database, Transaction
from gateway.stored import DeadLetter, Document, Learned, TextRecord

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_780_286_400_000  # 2026-06-01T04:00Z: midnight in New York
FIRST_DATE = "2026-06-01"
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(
        Pet("luna", "Luna", "cat", aliases=("Лу́на", "lulu")),
        Pet("max", "Max", "dog", breed="golden_retriever", born="2021-03-04", sex="m", neutered=True),
    ),
    devices=(
        Device("bowl-max", "food_bowl", "Max's bowl", ("the bowl",)),
        Device("tracker-max", "tracker", "collar"),
    ),
    bindings=(
        Binding("bowl-max", frozenset({"max"}), 0),
        Binding("tracker-max", frozenset({"max"}), 0),
    ),
    places=(Place("bellas", "Bella's", "kennel"),),
    people=(Person("vet", "Dr. Wu", "vet", "555-0100"),),
    foods=(Food("acme_chicken", "Acme Chicken", code="4006381333931"),),
    medicines=(Food("apoquel", "Apoquel"),),
    country="US",
)
ROLLUPS = Rollups(load())
NOTE = RecordRef("note:vet/2026-06-03")
PASSAGE = RecordRef("passage:9f8e7d6c#7.3")
MAY_CAUSE = Edge(Vertex("species:chicken"), "may_cause[dog]", Vertex("condition:food_allergy"))


def beat(uptime_ms: int) -> bytes:
    return wire.pack_record(wire.BEAT, uptime_ms, (900, 1, 0))


def meal(uptime_ms: int, grams: int) -> bytes:
    return wire.pack_record(wire.MEAL, uptime_ms, (uptime_ms - MINUTE, MINUTE, grams * 1000, 0))


def motion(uptime_ms: int, scratch_ms: int) -> bytes:
    return wire.pack_record(wire.MOTION, uptime_ms, (300_000, scratch_ms, 100, 1000, 2000, 3000, 200_000, 400, 300_000))


def message(device: str, records: list[bytes], *, first: int, sent_ms: int, boot: int = 1) -> Reading:
    """A live message; the boot began at T0, so an uptime is an instant minus T0."""
    payload = wire.pack_message(boot, first, records, sent_ms, None)
    return read_payload(RawFrame("mqtt", device, T0 + sent_ms, payload))


def tracker_day(day: int, *, every: int = 12) -> list[Reading]:
    """A day of motion records, one each five minutes, in messages of ``every``."""
    readings = []
    for start in range(0, 288, every):
        numbers = range(day * 288 + start, day * 288 + start + every)
        records = [motion((number + 1) * 300_000, 1000 + 7 * (number % 50)) for number in numbers]
        readings.append(
            message("tracker-max", records, first=numbers[0] + 1, sent_ms=(numbers[-1] + 1) * 300_000 + 1000)
        )
    return readings


def bowl_day(day: int) -> list[Reading]:
    """A day of a bowl: a beat each half hour, meals at 8:00 and 18:00."""
    records = []
    for half in range(48):
        at_ms = day * DAY + (half + 1) * 30 * MINUTE
        records.append(meal(at_ms, 150 + day % 7) if half in (16, 36) else beat(at_ms))
    return [
        message("bowl-max", records[at : at + 24], first=day * 48 + at + 1, sent_ms=day * DAY + (at + 24) * 30 * MINUTE)
        for at in (0, 24)
    ]


def store(database: Database, readings: list[Reading]):
    with database.transaction() as tx:
        return store_readings(tx, tuple(readings), rollups=ROLLUPS)


def learned() -> Learned:
    document = Document("9f8e7d6c", "guide", "A guide", "guide.md", facts=(("chapter", "7"),))
    passage = TextRecord(PASSAGE, "passage", "Skin", "Chicken may cause a food allergy. " * 30, document="9f8e7d6c")
    evidence = Evidence(MAY_CAUSE.ref, PASSAGE, Mass(0.5), "guide", 0.6, (0, 30))
    return Learned(document, (passage,), (MAY_CAUSE,), (evidence,), (("species:chicken", "chicken"),))


def write_facts(tx: Transaction) -> int:
    """Documents, evidence, an owner's mark, a dead letter and an answer; returns its number."""
    tx.save_learned(learned(), added_ms=T0)
    tx.save_text(TextRecord(NOTE, "note", "Visit", "Weight 31 kg, ears clean.", pet="max", at_ms=T0))
    tx.add_wall(edge=MAY_CAUSE.ref, hypothesis=None, reason="he eats chicken at grandma's", marked_ms=T0)
    tx.set_status("luna", PetStatus.AWAY, valid_from_ms=T0 + DAY)
    tx.add_dead_letters([DeadLetter("mqtt", "bowl-max", None, None, T0, "cut_short", "3 of 9 bytes", b"\x00\xff\x01")])
    tx.bump("messages", 3)
    cited = (RecordRef("event:bowl-max/1/17"), NOTE, PASSAGE, RecordRef(f"day:max.scratching/{FIRST_DATE}"))
    return tx.save_answer(asked_ms=T0 + 30 * DAY, question="why?", body="{}", cites=cited)


def fill(database: Database, *, days: int) -> None:
    """The home, ``days`` days of both devices, and the facts."""
    with database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    for day in range(days):
        store(database, tracker_day(day) + bowl_day(day))
    with database.transaction() as tx:
        write_facts(tx)


def made(path: Path, *, days: int) -> Path:
    """A closed database file of that home."""
    with Database(path) as database:
        fill(database, days=days)
    return path


def day_values(database: Database) -> list[tuple[object, ...]]:
    """What every day row says, revisions left out."""
    with database.snapshot() as reader:
        return [
            (day.series, day.date, day.n, day.sums, day.covered, day.set_aside)
            for series in reader.all_series()
            for day in reader.days(series.id, "1900-01-01", "2100-01-01")
        ]


def copied(source: Path, target: Path) -> Path:
    """A closed database file under another name."""
    target.write_bytes(source.read_bytes())
    return target


def dump(path: Path) -> list[str]:
    """The canonical dump of every table, as SQL in a stable order (VACUUM lists indexes first)."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return sorted(connection.iterdump())
    finally:
        connection.close()


def main() -> None:
    """Print the dump that is kept as ``tests/data/schema/<version>.sql`` at a release."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hub.db"
        with Database(path) as database, database.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
            store_readings(tx, (tracker_day(0)[0], *bowl_day(0)), rollups=ROLLUPS)
            write_facts(tx)
            tx.save_finding("max.scratching", as_of=FIRST_DATE, window="P7D", verdict="up", facts={"ratio": 1.4})
            tx.save_correlation("max.activity", "max.scratching", as_of=FIRST_DATE, passed=True, facts={"r": 0.5})
            tx.set_learned(FIRST_DATE, done_ms=T0 + DAY)
            tx.seal(until_ms=T0 + DAY)
        connection = sqlite3.connect(path)
        print("\n".join(connection.iterdump()))
        connection.close()


if __name__ == "__main__":
    main()
