"""Two real cats: the figures of the shared cases come out of the real file, by every way in."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import HouseholdError, ImportRefused
from gateway.links.rollups import Rollups
from gateway.links.surefeed import read_surefeed, store_surefeed
from gateway.measure.days import local_day
from gateway.ontology.load import load
from gateway.store.database import Database

ZONE = "America/Los_Angeles"


@pytest.fixture(scope="session")
def demo_csv(shared_dir) -> bytes:
    return (shared_dir / "data" / "surefeed" / "demo_events.csv").read_bytes()


def imported(path: Path, content: bytes) -> Database:
    database = Database(path / "cats.db", clock_source="import")
    with database.transaction() as tx:
        store_surefeed(tx, read_surefeed(content, source="demo_events.csv", zone=ZONE), rollups=Rollups(load()))
    return database


@pytest.fixture(scope="module")
def cats(tmp_path_factory, demo_csv):
    """The whole file, imported once: no test changes a row of it."""
    with imported(tmp_path_factory.mktemp("cats"), demo_csv) as database:
        yield database


def amounts(database: Database, device: str, kind: str) -> int:
    with database.snapshot() as reader:
        return sum(frame.amount or 0 for frame in reader.frames((device,), start_ms=0, end_ms=2**60, kinds=(kind,)))


@pytest.mark.parametrize(
    ("device", "eaten_g", "added_g", "system_g", "imbalance"),
    [("feeder-joule", 2093, 2115, 4, 0.0085), ("feeder-pascal", 2569, 2605, 4, 0.0123)],
)
def test_the_bowls_balance_as_counted_by_hand(cats, device, *, eaten_g, added_g, system_g, imbalance):
    eaten, added, system = (amounts(cats, device, kind) for kind in ("meal", "refill", "tare"))
    assert (eaten, added, system) == (1000 * eaten_g, 1000 * added_g, 1000 * system_g)
    assert (added - eaten - system) / added == pytest.approx(imbalance, abs=5e-5)


def test_water_rows_are_left_out_and_counted(cats, demo_csv):
    assert read_surefeed(demo_csv, source="x", zone=ZONE).left_out == (("access", 2), ("ambient", 1), ("hydration", 2))
    with cats.snapshot() as reader:
        assert dict(reader.counters())["import_left_out_hydration"] == 2


def test_a_fall_too_fast_for_a_cat_is_set_aside_in_the_stated_words(cats):
    with cats.snapshot() as reader:
        zones = reader.household().zones
        meals = reader.frames(("feeder-joule", "feeder-pascal"), start_ms=0, end_ms=2**60, kinds=("meal",))
        aside = [meal for meal in meals if meal.set_aside]
    assert {meal.device for meal in aside} == {"feeder-pascal"}
    dates = [local_day(meal.start_ms, zones) for meal in aside]
    assert dates == [
        f"2026-{d}" for d in ("06-24", "06-29", "07-02", "07-02", "07-02", "07-02", "07-03", "07-04", "07-06", "07-07")
    ]
    assert "48 g left the bowl in 70 s; not counted as eaten" in {meal.set_aside for meal in aside}


def test_a_set_aside_fall_is_not_in_the_days_sum_and_the_day_says_why(cats):
    with cats.snapshot() as reader:
        day = reader.day("pascal.intake", "2026-07-02")
        total = sum(row.total for row in reader.days("pascal.intake", "2026-01-01", "2026-12-31"))
    assert day is not None
    assert day.set_aside is not None
    assert day.set_aside.count("not counted as eaten") == 4
    assert total == 2_569_000 - 1000 * sum((40, 43, 48, 50, 48, 48, 45, 47, 43, 48))


def test_days_add_up_to_the_cat(cats):
    with cats.snapshot() as reader:
        days = reader.days("joule.intake", "2026-01-01", "2026-12-31")
        refills = reader.days("joule.refill", "2026-01-01", "2026-12-31")
    assert sum(day.total for day in days) == 2_093_000
    assert sum(day.total for day in refills) == 2_115_000
    assert (days[0].date, days[-1].date, len(days)) == ("2026-06-18", "2026-07-30", 43)


def test_the_first_and_the_last_day_are_partial_and_those_between_are_covered(cats):
    with cats.snapshot() as reader:
        days = reader.days("joule.intake", "2026-01-01", "2026-12-31")
    whole = 24 * 3_600_000
    assert 0 < days[0].covered_ms < whole / 2
    assert 0 < days[-1].covered_ms < whole
    assert {day.covered_ms for day in days[1:-1]} == {whole}


def test_importing_twice_changes_nothing(cats, demo_csv):
    def dump() -> list[str]:
        return list(cats._connection.iterdump())

    before = dump()
    with cats.transaction() as tx:
        again = store_surefeed(tx, read_surefeed(demo_csv, source="x", zone=ZONE), rollups=Rollups(load()))
    assert (again.new, again.known, again.days_changed) == (0, 900, 0)
    assert dump() == before


def test_importing_two_halves_gives_the_same_days_as_the_whole(tmp_path, demo_csv, cats):
    lines = demo_csv.splitlines(keepends=True)
    (tmp_path / "halves").mkdir()
    with imported(tmp_path / "halves", lines[0] + b"".join(lines[500:])) as late:
        with late.transaction() as tx:
            early = read_surefeed(lines[0] + b"".join(lines[1:520]), source="x", zone=ZONE)
            store_surefeed(tx, early, rollups=Rollups(load()))
        assert day_values(late) == day_values(cats)


def day_values(database: Database) -> list[tuple]:
    with database.snapshot() as reader:
        return [
            (day.series, day.date, day.n, day.sums, day.covered, day.set_aside)
            for series in reader.all_series()
            for day in reader.days(series.id, "2000-01-01", "2100-01-01")
        ]


def test_another_zone_than_the_homes_is_refused(cats, demo_csv):
    with pytest.raises(HouseholdError, match="America/Los_Angeles"), cats.transaction() as tx:
        store_surefeed(tx, read_surefeed(demo_csv, source="x", zone="Europe/Berlin"), rollups=Rollups(load()))


def test_a_zone_that_is_none_is_refused(demo_csv):
    with pytest.raises(HouseholdError, match="IANA"):
        read_surefeed(demo_csv, source="x", zone="Mars/Base")


HEAD = (
    "recordedAt,subjectId,subjectName,category,action,quantity,unit,occurredAt,durationSeconds,deviceId,deviceName,"
    "context,sourceEndpoint,attribution\n"
)
GOOD = "2026-06-19T01:51:21Z,cat-joule,Joule,feeding,food_change,7.0,g,2026-06-19T01:51:21Z,117,feeder-joule,F,1,/demo,pet\n"


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        (",7.0,", ",seven,", "quantity", "a number of g"),
        (",7.0,", ",nan,", "quantity", "a number of g"),
        (",7.0,", ",-7,", "quantity", "0 to 10000"),
        (",g,", ",oz,", "unit", "one of g"),
        (",1,/demo", ",4,/demo", "context", "one of 1, 5, 6"),
        (",feeding,", ",flying,", "category", "one of feeding"),
        ("Z,117", ",117", "occurredAt", "an instant with its offset"),
        (",117,", ",-1,", "durationSeconds", "0 to 86400"),
        ("feeder-joule", "Feeder Joule!", "deviceId", "a-z"),
        ("cat-joule", "fish-joule", "subjectId", "cat-<name>"),
        (",Joule,", ",,", "subjectName", "a name"),
    ],
)
def test_a_wrong_value_refuses_the_whole_file_naming_line_and_field(old, new, field, words):
    with pytest.raises(ImportRefused, match="line 3") as refused:
        read_surefeed((HEAD + GOOD + GOOD.replace(old, new)).encode(), source="cats.csv", zone=ZONE)
    assert refused.value.line == 3
    assert refused.value.field == field
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "columns must be"),
        (b"a,b\n1,2\n", "columns must be"),
        (b"\xff\xfe\x00", "UTF-8"),
        ((HEAD + "1,2\n").encode(), "14 values, has 2"),
        (HEAD.encode(), "at least one feeding row"),
        ((HEAD + '"').encode(), "CSV"),
        (b"PK\x03\x04" + b"\x00" * 100, "columns must be"),
    ],
)
def test_a_file_that_is_something_else_is_refused(content, words):
    with pytest.raises(ImportRefused, match=words):
        read_surefeed(content, source="cats.csv", zone=ZONE)
