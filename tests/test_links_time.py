"""A hub whose own clock is wrong or is set, and what that does to rows, days and answers given."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import wire
from gateway.links.dating import BootClock, Heard, clock_set_by_ms
from gateway.links.hubclock import HubClock
from gateway.links.inbox import Delivery, Inbox
from gateway.links.ingest import CommitRule, Ingest
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, RawFrame, RecordRef, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOON = 1_783_526_400_000  # 2026-07-08 12:00 in New York
IN_1970 = 40_000
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("bowl-max", "food_bowl", "Max's bowl"),),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0),),
)
ROLLUPS = Rollups(load())


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "hub.db") as opened:
        with opened.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        yield opened


class SettableClock:
    """A system clock that a test sets; its steady half goes on."""

    source = "system"

    def __init__(self, now_ms: int) -> None:
        self.set_at_ms = now_ms
        self.passed_ms = 0

    def now_ms(self) -> int:
        return self.set_at_ms + self.passed_ms

    def steady_s(self) -> float:
        return self.passed_ms / 1000

    async def sleep_until(self, at_ms: int) -> None:
        raise AssertionError("nobody sleeps here")


class Hub:
    """A running ingest with a clock that can be set; messages are stored one by one."""

    def __init__(self, database: Database, now_ms: int) -> None:
        self.clock = SettableClock(now_ms)
        self.acknowledged = asyncio.Semaphore(0)
        self._inbox = Inbox(capacity=10)
        self._writer = Writer(database)
        rule = CommitRule(window=1)  # every message is a batch
        ingest = Ingest(inbox=self._inbox, link=self, writer=self._writer, rollups=ROLLUPS, clock=self.clock, rule=rule)
        self._task = asyncio.create_task(ingest.run())

    def acknowledge(self, deliveries) -> None:
        for _ in deliveries:
            self.acknowledged.release()

    def publish_marks(self, marks) -> None:
        pass

    def set_clock(self, now_ms: int) -> None:
        self.clock.set_at_ms += now_ms - self.clock.now_ms()

    async def hears(self, records: list[bytes], *, boot: int, first: int, sent: int, after_ms: int = MINUTE) -> None:
        self.clock.passed_ms += after_ms
        payload = wire.pack_message(boot, first, records, sent, None)
        self._inbox.put(Delivery(RawFrame("mqtt", "bowl-max", self.clock.now_ms(), payload), 1, first, 1))
        await asyncio.wait_for(self.acknowledged.acquire(), 10)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._writer.close()


def beat(uptime_ms: int) -> bytes:
    return wire.pack_record(wire.BEAT, uptime_ms, (900, 2, 0))


def meal(uptime_ms: int, grams: int = 20) -> bytes:
    return wire.pack_record(wire.MEAL, uptime_ms, (uptime_ms - MINUTE, MINUTE, grams * 1000, 0))


def rows(database: Database):
    with database.snapshot() as reader:
        return reader.frames(("bowl-max",), start_ms=-(2**60), end_ms=2**60)


def meals(database: Database) -> list[tuple[str, int]]:
    """(date, how many) of every day that counts a meal."""
    with database.snapshot() as reader:
        return [(day.date, day.total) for day in reader.days("max.meals", "1900-01-01", "2100-01-01") if day.total]


def near(at_ms: int, expected_ms: int) -> bool:
    return abs(at_ms - expected_ms) <= 2_000


async def test_what_a_hub_heard_in_1970_counts_once_its_clock_is_set(database):
    hub = Hub(database, IN_1970)
    await hub.hears([beat(HOUR), meal(HOUR + MINUTE)], boot=1, first=1, sent=HOUR + 2 * MINUTE)
    assert [row.dating for row in rows(database)] == ["bracket", "bracket"]
    assert meals(database) == []
    await hub.hears([beat(HOUR + 3 * MINUTE)], boot=1, first=3, sent=HOUR + 3 * MINUTE)
    hub.set_clock(NOON)
    await hub.hears([beat(HOUR + 4 * MINUTE)], boot=1, first=4, sent=HOUR + 4 * MINUTE)
    await hub.stop()
    stored = rows(database)
    assert {row.dating for row in stored} == {"offset"}
    # The last one came a minute after noon; the hub had said so of the others all along, but for the year.
    assert all(
        near(row.end_ms, NOON + MINUTE - (HOUR + 4 * MINUTE - (row.uptime_ms or 0)))
        for row in stored
        if row.kind == "beat"
    )
    assert all(row.received_ms > NOON - HOUR for row in stored)
    assert meals(database) == [("2026-07-08", 1)]


async def test_a_hub_that_stopped_in_1970_dates_its_rows_when_the_boot_is_heard_again(database):
    hub = Hub(database, IN_1970)
    await hub.hears([meal(HOUR)], boot=1, first=1, sent=HOUR)
    await hub.stop()
    assert meals(database) == []
    later = Hub(database, NOON)
    await later.hears([beat(2 * HOUR)], boot=1, first=2, sent=2 * HOUR)
    await later.stop()
    (first, _) = rows(database)
    assert first.dating == "offset"
    assert near(first.end_ms, NOON + MINUTE - HOUR)
    assert meals(database) == [("2026-07-08", 1)]


async def test_a_boot_that_only_a_hub_in_1970_heard_lies_between_its_neighbours(database):
    before = Hub(database, NOON)
    await before.hears([beat(HOUR)], boot=1, first=1, sent=HOUR)
    await before.stop()
    lost = Hub(database, IN_1970)
    await lost.hears([meal(10 * MINUTE)], boot=2, first=1, sent=10 * MINUTE)
    await lost.stop()
    after = Hub(database, NOON + 3 * HOUR)
    await after.hears([beat(MINUTE)], boot=3, first=1, sent=MINUTE)
    await after.stop()
    (found,) = (row for row in rows(database) if row.kind == "meal")
    assert found.dating == "bracket"
    assert found.earliest_ms is not None
    assert NOON < found.earliest_ms <= (found.latest_ms or 0) <= NOON + 3 * HOUR
    assert meals(database) == [("2026-07-08", 1)]  # the whole bracket is of that day


@pytest.mark.parametrize("wrong_by", [-14 * DAY, 14 * DAY])
async def test_a_clock_that_was_two_weeks_wrong_and_is_set_moves_what_it_had_dated(database, wrong_by):
    hub = Hub(database, NOON + wrong_by)
    await hub.hears([meal(HOUR)], boot=1, first=1, sent=HOUR)
    assert meals(database) != [("2026-07-08", 1)]
    hub.set_clock(NOON + MINUTE)
    await hub.hears([meal(HOUR + 5 * MINUTE)], boot=1, first=2, sent=HOUR + 5 * MINUTE, after_ms=5 * MINUTE)
    await hub.stop()
    assert meals(database) == [("2026-07-08", 2)]
    assert all(near(row.received_ms, NOON + (MINUTE, 6 * MINUTE)[at]) for at, row in enumerate(rows(database)))


@pytest.mark.parametrize("by", [-14 * DAY, 14 * DAY])
async def test_a_clock_that_was_right_is_set_wrong_and_right_again_ends_where_it_was(database, by):
    hub = Hub(database, NOON)
    await hub.hears([meal(HOUR)], boot=1, first=1, sent=HOUR)
    right = rows(database)
    hub.set_clock(NOON + MINUTE + by)
    await hub.hears([meal(HOUR + MINUTE)], boot=1, first=2, sent=HOUR + MINUTE)
    hub.set_clock(NOON + 2 * MINUTE)
    await hub.hears([meal(HOUR + 2 * MINUTE)], boot=1, first=3, sent=HOUR + 2 * MINUTE)
    await hub.stop()
    stored = rows(database)
    assert (stored[0].start_ms, stored[0].received_ms) == (right[0].start_ms, right[0].received_ms)
    assert meals(database) == [("2026-07-08", 3)]
    with database.transaction() as tx:
        assert ROLLUPS.rebuild(tx, tx.household()) == 0


async def test_rows_of_an_earlier_start_of_the_hub_keep_their_time(database):
    earlier = Hub(database, NOON)
    await earlier.hears([meal(HOUR)], boot=1, first=1, sent=HOUR)
    await earlier.stop()
    (before,) = rows(database)
    hub = Hub(database, NOON + 5 * MINUTE - 14 * DAY)
    await hub.hears([meal(5 * MINUTE)], boot=2, first=1, sent=5 * MINUTE)
    hub.set_clock(NOON + 6 * MINUTE)
    await hub.hears([beat(6 * MINUTE)], boot=2, first=2, sent=6 * MINUTE)
    await hub.stop()
    assert rows(database)[0] == before
    assert meals(database) == [("2026-07-08", 2)]


async def test_a_late_meal_restates_its_day_and_the_answer_that_cited_it_says_so(database):
    hub = Hub(database, NOON)
    await hub.hears([meal(2 * HOUR)], boot=1, first=1, sent=2 * HOUR)
    day = RecordRef("day:max.intake/2026-07-08")
    with database.transaction() as tx:
        number = tx.save_answer(asked_ms=NOON + DAY, question="how much did Max eat", body="{}", cites=(day,))
    hub.clock.passed_ms += 2 * DAY
    await hub.hears([meal(2 * HOUR - 30 * MINUTE, 40)], boot=1, first=2, sent=2 * HOUR + 2 * DAY)
    await hub.stop()
    with database.snapshot() as reader:
        assert reader.restated(number) == (day,)
        assert (found := reader.day("max.intake", "2026-07-08")) is not None
        assert (found.total, found.revision) == (60_000, 1)


def test_a_simulated_clock_is_never_taken_as_set():
    clock = SettableClock(NOON)
    clock.source = "simulation"
    hub_clock = HubClock(clock)
    clock.set_at_ms += DAY
    assert hub_clock.look() is None


def test_a_set_clock_is_told_once():
    clock = SettableClock(NOON)
    hub_clock = HubClock(clock)
    clock.passed_ms += DAY
    assert hub_clock.look() is None
    clock.set_at_ms += 14 * DAY
    found = hub_clock.look()
    assert found is not None
    assert (found.by_ms, found.from_ms, found.to_ms) == (14 * DAY, NOON, NOON + DAY)
    assert hub_clock.look() is None


@given(st.integers(-(2**45), 2**45), st.integers(-(2**45), 2**45))
def test_a_clock_is_set_where_it_moved_by_more_than_a_minute(before, now):
    by_ms = clock_set_by_ms(before_ms=before, now_ms=now)
    assert by_ms == (now - before if abs(now - before) > MINUTE else 0)


@given(
    heard=st.lists(st.tuples(st.integers(0, 30 * DAY), st.integers(0, DAY)), min_size=1, max_size=12),
    by=st.integers(20 * 366 * DAY, 60 * 366 * DAY),
)
def test_a_boot_heard_in_1970_is_as_well_known_after_the_clock_is_set_as_if_it_had_been_right(heard, by):
    told = [Heard(sent, received, None) for sent, received in heard]
    unset = BootClock().learn(told)
    assert not unset.known
    assert unset.date(0, wall_offset_ms=None) is None
    if by >= 1_577_836_800_000:
        moved = unset.moved(by, from_ms=0, to_ms=DAY)
        right = BootClock().learn(Heard(sent, received + by, None) for sent, received in heard)
        assert moved == right
