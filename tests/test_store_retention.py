"""Purged rows leave sealed days: sums stay, cited rows stay, late rows add, rebuilds agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware_bridge import wire
from gateway.links.payloads import Reading, read_payload
from gateway.model import RawFrame, RecordRef
from gateway.store import Database
from gateway.store.verify import verify
from gateway.stored import DatedFrame, DeadLetter
from tests.store_world import (
    DAY,
    FIRST_DATE,
    HOME,
    HOUR,
    MINUTE,
    ROLLUPS,
    T0,
    beat,
    bowl_day,
    copied,
    day_values,
    made,
    meal,
    motion,
    store,
    tracker_day,
)


@pytest.fixture(scope="module")
def six_days(tmp_path_factory):
    return made(tmp_path_factory.mktemp("world") / "six.db", days=6)


@pytest.fixture
def database(six_days, tmp_path):
    with Database(copied(six_days, tmp_path / "hub.db")) as opened:
        yield opened


def purge(database: Database, *, days: float, most: int | None = None):
    with database.transaction() as tx:
        return tx.purge(before_ms=T0 + int(days * DAY), most=most)


def rebuild(database: Database) -> int:
    with database.transaction() as tx:
        return ROLLUPS.rebuild(tx, tx.household())


def held(database: Database, device: str) -> tuple[DatedFrame, ...]:
    with database.snapshot() as reader:
        return reader.frames((device,), start_ms=-(2**60), end_ms=2**60)


def day(database: Database, series: str, date: str):
    with database.snapshot() as reader:
        return reader.day(series, date)


def amounts(database: Database) -> list[tuple[object, ...]]:
    """What day rows count and sum up; coverage of late records is a lower bound and left out."""
    return [values[:4] for values in day_values(database)]


# --- what goes and what stays ---------------------------------------------------------------


def test_a_purge_changes_no_day_and_neither_does_a_rebuild_after_it(database):
    before = day_values(database)
    frames = len(held(database, "tracker-max"))
    done = purge(database, days=4)
    assert (done.days, done.until_ms) == (4 * 9, T0 + 4 * DAY)
    assert len(held(database, "tracker-max")) == frames - 3 * 288 + 1  # a day is kept for the coverage after it
    assert day_values(database) == before
    assert rebuild(database) == 0
    assert verify(database.path).is_sound


def test_purging_day_by_day_ends_where_purging_at_once_does(six_days, tmp_path):
    at_once = Database(copied(six_days, tmp_path / "once.db"))
    daily = Database(copied(six_days, tmp_path / "daily.db"))
    with at_once, daily:
        purge(at_once, days=5)
        for days in range(1, 6):
            purge(daily, days=days)
            assert rebuild(daily) == 0
        assert held(at_once, "bowl-max") == held(daily, "bowl-max")
        assert day_values(at_once) == day_values(daily)


def test_a_purge_can_be_taken_in_small_steps(database):
    before = day_values(database)
    while purge(database, days=4, most=100).rows == 100:
        assert rebuild(database) == 0
    assert purge(database, days=4).rows == 0
    assert day_values(database) == before


def test_cited_rows_and_what_nothing_sums_up_stay(database):
    kept = [
        DatedFrame(RecordRef(f"event:bowl-max/9/{seq}"), "bowl-max", 9, seq, kind, 0, T0, T0, T0, "wall", (1,))
        for seq, kind in ((1, "food_set"), (2, "weight"), (3, "temperature"))
    ]
    with database.transaction() as tx:
        tx.add_frames(kept)
        tx.advance_mark("bowl-max", 9, first_seq=1)
    purge(database, days=4)
    with database.snapshot() as reader:
        assert reader.frame(RecordRef("event:bowl-max/1/17")) is not None  # a meal that an answer cites
        assert reader.frame(RecordRef("event:bowl-max/1/37")) is None  # the next one, which none does
        assert [reader.is_stored(frame.ref) for frame in kept] == [True, True, False]


def test_a_row_the_mark_still_waits_to_reach_stays(tmp_path):
    with Database(tmp_path / "hub.db") as database:
        with database.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        messages = tracker_day(0)
        store(database, messages[:3] + messages[4:])  # records 37..48 are missing
        purge(database, days=5)
        assert [frame.seq for frame in held(database, "tracker-max")] == list(range(49, 289))
        store(database, messages[3:4])
        with database.snapshot() as reader:
            assert reader.marks("tracker-max") == {1: 288}


def test_the_boundary_never_cuts_a_day(database):
    assert purge(database, days=2.6).until_ms == T0 + 2 * DAY


def test_dead_letters_go_but_those_a_mark_waits_for(database):
    waited = DeadLetter("mqtt", "bowl-max", 5, 2, T0, "cut_short", "", b"\x01")
    with database.transaction() as tx:
        tx.add_dead_letters([waited])
        assert tx.purge_dead_letters(before_ms=T0) == 0
        assert tx.purge_dead_letters(before_ms=T0 + 1) == 1
        assert tx.dead_letters(limit=9) == (waited,)


# --- what comes later -----------------------------------------------------------------------


def test_a_purged_record_that_comes_again_is_known(database):
    purge(database, days=5)
    before = day_values(database)
    counted = store(database, tracker_day(0) + bowl_day(1)).counted
    assert (counted["records_stored"], counted["records_known"]) == (0, 288 + 48)
    assert day_values(database) == before


def test_a_purged_imported_row_that_comes_again_is_known(database):
    row = DatedFrame(
        RecordRef("event:feeder/surefeed/a.1"), "feeder", None, None, "meal", None, T0, T0, T0, "import", (0, 1, 2, 0)
    )
    with database.transaction() as tx:
        assert tx.add_frames([row]) == (row,)
    assert purge(database, days=5).rows > 0
    with database.transaction() as tx:
        assert not tx.is_stored(row.ref)
        assert tx.add_frames([row]) == ()


def late_message(device: str, records: list[bytes], *, boot: int = 7) -> Reading:
    """Of another boot, told only now: the device knows its own time."""
    payload = wire.pack_message(boot, 1, records, DAY, T0 + DAY)
    return read_payload(RawFrame("mqtt", device, T0 + 6 * DAY, payload))


def test_a_late_record_is_added_to_its_sealed_day_and_flagged(database):
    before = day(database, "max.scratching", FIRST_DATE)
    purge(database, days=5)
    store(database, [late_message("tracker-max", [motion(10 * HOUR, 4_000), motion(10 * HOUR + 300_000, 500)])])
    after = day(database, "max.scratching", FIRST_DATE)
    assert after.total == before.total + 4_500
    assert (after.n, after.late) == (before.n + 2, 2)
    assert after.revision == before.revision + 1
    assert day(database, "max.scratching", "2026-06-02").late == 0
    assert rebuild(database) == 0
    assert verify(database.path).is_sound


def test_a_late_record_restates_the_answers_that_cite_its_sealed_day(database):
    purge(database, days=5)
    store(database, [late_message("tracker-max", [motion(10 * HOUR, 4_000)])])
    with database.snapshot() as reader:
        assert reader.restated(1) == (RecordRef(f"day:max.scratching/{FIRST_DATE}"),)


def test_what_came_late_is_sealed_by_the_next_purge(database):
    purge(database, days=4)
    store(database, [late_message("bowl-max", [beat(9 * HOUR), meal(9 * HOUR + 10 * MINUTE, 40)])])
    before = day_values(database)
    purge(database, days=5)
    assert day_values(database) == before
    assert rebuild(database) == 0
    assert day(database, "max.intake", FIRST_DATE).late == 1
    store(database, [late_message("bowl-max", [meal(11 * HOUR, 7)], boot=8)])
    assert day(database, "max.intake", FIRST_DATE).late == 2


def test_a_sealed_day_never_covers_more_than_there_was(database):
    purge(database, days=5)
    store(database, [late_message("tracker-max", [motion(10 * HOUR + at * 300_000, 1) for at in range(12)])])
    covered = day(database, "max.scratching", FIRST_DATE).covered
    assert max(covered) == 900_000


def test_a_sealed_time_is_final_whatever_is_learned_of_the_clock(database):
    purge(database, days=4)
    before = day_values(database)
    told = wire.pack_message(1, 6 * 288 + 1, [motion(6 * DAY + 300_000, 5)], 6 * DAY + 301_000, T0 + 6 * DAY + HOUR)
    store(database, [read_payload(RawFrame("mqtt", "tracker-max", T0 + 6 * DAY + 301_000, told))])
    sealed = [values for values in day_values(database) if str(values[1]) < "2026-06-05"]
    assert sealed == [values for values in before if str(values[1]) < "2026-06-05"]


MESSAGES = [reading for number in range(3) for reading in bowl_day(number) + tracker_day(number, every=48)]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.integers(0, len(MESSAGES) - 1)), st.integers(1, 3), st.randoms(use_true_random=False))
def test_whenever_a_message_comes_and_whenever_rows_are_purged_the_sums_are_those_of_all(
    tmp_path_factory, late, days, chance
):
    folder = tmp_path_factory.mktemp("any")
    with Database(folder / "hub.db") as database, Database(folder / "twin.db") as twin:
        for one in (database, twin):
            with one.transaction() as tx:
                tx.save_household(HOME, valid_from_ms=0)
        store(twin, MESSAGES)
        store(database, [reading for at, reading in enumerate(MESSAGES) if at not in late])
        purge(database, days=days)
        rest = [MESSAGES[at] for at in late]
        chance.shuffle(rest)
        for reading in rest:
            store(database, [reading])
        assert amounts(database) == amounts(twin)
        rebuild(database)
        assert amounts(database) == amounts(twin)
        for mine, full in zip(day_values(database), day_values(twin), strict=True):
            assert all(own <= whole for own, whole in zip(mine[4], full[4], strict=True))


def test_rebuilding_for_other_bindings_leaves_sealed_days_alone(database):
    purge(database, days=5)
    before = day_values(database)
    with database.transaction() as tx:
        moved = replace(HOME, bindings=HOME.bindings[1:])  # the bowl serves nobody any more
        ROLLUPS.rebuild(tx, moved)
    sealed = [values for values in day_values(database) if str(values[1]) < "2026-06-06"]
    assert sealed == [values for values in before if str(values[1]) < "2026-06-06"]
