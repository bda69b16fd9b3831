"""From bytes to dated, de-duplicated rows and day rows: every rule without a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware_bridge import wire
from firmware_bridge.flash import FileSlots
from firmware_bridge.outbox import Outbox
from firmware_bridge.pack import Marks
from gateway.errors import RowsRefused
from gateway.links.clock import SteppedClock, SystemClock
from gateway.links.dating import BootClock, Heard, is_plausible_wall
from gateway.links.inbox import Delivery, Inbox
from gateway.links.ingest import COUNTERS, CommitRule, Ingest, store_readings
from gateway.links.payloads import Reading, read_payload
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Frame, Household, Pet, RawFrame, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer
from tests.soak_fuzz import fuzz

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_783_555_200_000  # 2026-07-09T00:00Z, the evening of 07-08 in New York
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("luna", "Luna", "cat"), Pet("max", "Max", "dog")),
    devices=(
        Device("bowl-both", "food_bowl", "hall bowl"),
        Device("bowl-max", "food_bowl", "Max's bowl"),
        Device("bowl-two", "food_bowl", "Max's other bowl"),
        Device("tracker-max", "tracker", "collar"),
    ),
    bindings=(
        Binding("bowl-both", frozenset({"luna", "max"}), 0),
        Binding("bowl-max", frozenset({"max"}), 0),
        Binding("tracker-max", frozenset({"max"}), 0),
    ),
)
ROLLUPS = Rollups(load())


@pytest.fixture
def database(tmp_path):
    with home_at(tmp_path) as opened:
        yield opened


def home_at(folder: Path, name: str = "hub.db") -> Database:
    database = Database(folder / name)
    with database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    return database


def beat(uptime_ms: int) -> bytes:
    return wire.pack_record(wire.BEAT, uptime_ms, (900, 2, 0))


def meal(uptime_ms: int, grams: int, *, lasted_ms: int = MINUTE, quality: int = 0) -> bytes:
    return wire.pack_record(wire.MEAL, uptime_ms, (uptime_ms - lasted_ms, lasted_ms, grams * 1000, quality))


def motion(uptime_ms: int, *, scratch: int, worn: int = 300_000, restless: int = 0) -> bytes:
    return wire.pack_record(wire.MOTION, uptime_ms, (300_000, scratch, 100, 1000, 2000, 3000, 200_000, restless, worn))


def raw(device: str, payload: bytes, received_ms: int) -> RawFrame:
    return RawFrame("mqtt", device, received_ms, payload)


def message(device: str, records: list[bytes], received_ms: int, *, boot=1, first=1, sent=None, wall=None) -> Reading:
    return read_payload(raw(device, wire.pack_message(boot, first, records, sent, wall), received_ms))


def store(database: Database, *readings: Reading):
    with database.transaction() as tx:
        return store_readings(tx, readings, rollups=ROLLUPS)


def frames(database: Database, device: str):
    with database.snapshot() as reader:
        return reader.frames((device,), start_ms=-(2**60), end_ms=2**60)


def counters(database: Database) -> dict[str, int]:
    with database.snapshot() as reader:
        return dict(reader.counters())


def day_values(database: Database) -> list[tuple]:
    """Everything day rows say; a row emptied by a later message equals one that never was."""
    with database.snapshot() as reader:
        return [
            (day.series, day.date, day.n, day.sums, day.covered, day.set_aside)
            for series in reader.all_series()
            for day in reader.days(series.id, "1900-01-01", "2100-01-01")
            if day.n or any(day.covered) or day.set_aside
        ]


def day(database: Database, series: str, date: str):
    with database.snapshot() as reader:
        return reader.day(series, date)


# --- storing once ---------------------------------------------------------------------------


def test_a_message_heard_twice_is_stored_once_and_counted_as_known(database):
    heard = message("bowl-max", [beat(1000), meal(500_000, 32)], T0, sent=600_000, wall=T0)
    first = store(database, heard)
    assert first.marks == {"bowl-max": {1: 2}}
    before = day_values(database)
    assert store(database, heard, heard).counted["records_known"] == 4
    assert len(frames(database, "bowl-max")) == 2
    assert day_values(database) == before


def test_the_same_records_in_other_packets_are_the_same_rows(database):
    store(database, message("bowl-max", [beat(1000), beat(2000)], T0, sent=3000, wall=T0))
    again = message("bowl-max", [beat(2000), meal(400_000, 20)], T0 + DAY, first=2, sent=500_000, wall=T0 + 497_000)
    assert store(database, again).counted["records_stored"] == 1
    assert [frame.seq for frame in frames(database, "bowl-max")] == [1, 2, 3]


def test_a_200_message_redelivery_adds_no_row_and_200_known(database):
    """Field report 1 of the shared cases."""
    sent = [message("bowl-max", [beat(n * MINUTE)], T0 + n * MINUTE, first=n, sent=n * MINUTE) for n in range(1, 201)]
    store(database, *sent)
    assert store(database, *sent).counted == {"messages": 200, "records_known": 200} | dict.fromkeys(
        set(COUNTERS) - {"messages", "records_known"}, 0
    )


def test_the_mark_waits_at_a_gap_and_jumps_when_it_is_filled(database):
    assert store(database, message("bowl-max", [beat(1)], T0, first=1, sent=9)).marks == {"bowl-max": {1: 1}}
    assert store(database, message("bowl-max", [beat(3)], T0, first=3, sent=9)).marks == {"bowl-max": {1: 1}}
    assert store(database, message("bowl-max", [beat(2)], T0, first=2, sent=9)).marks == {"bowl-max": {1: 3}}


def test_a_hello_moves_the_mark_over_what_the_ring_dropped_and_counts_it(database):
    store(database, message("bowl-max", [beat(1)], T0, first=1, sent=9))
    hello = wire.pack_record(wire.HELLO, 20, ("bowl", "1.0", 1, 64, 11, 7))
    outcome = store(
        database,
        message("bowl-max", [beat(15)], T0, first=5, sent=30),
        message("bowl-max", [beat(18), hello], T0, first=11, sent=30),
    )
    assert outcome.marks == {"bowl-max": {1: 12}}
    assert outcome.counted["dropped_by_device"] == 8  # 2, 3, 4 and 6 to 10


def test_a_device_that_restarted_a_hundred_times_while_the_hub_was_away_gets_rid_of_all_of_it(database, tmp_path):
    """A mark has room for 64 boots, and the device lets go of its oldest first."""
    for boot in range(1, 101):
        slots = FileSlots(str(tmp_path / "ring"), 400, 64)
        outbox = Outbox(slots, boot)
        outbox.put_hello(0, "bowl", "1", 1)
        outbox.put(wire.BEAT, 5, (900, 2, 0))
        if boot < 100:
            slots.close()
    for _ in range(3):
        outbox.rewind()
        runs = iter(lambda: outbox.take(0), None)
        told = [wire.pack_head(run.boot, run.first_seq, run.count, None, T0) + run.body for run in runs]
        if told:
            marks = store(database, *(read_payload(raw("bowl-max", each, T0)) for each in told)).marks["bowl-max"]
            outbox.release(Marks(wire.pack_mark(marks)), 0)
    assert outbox.held == 0
    slots.close()


def test_an_unbound_device_is_stored_in_quarantine_and_gets_its_series_when_bound(database):
    heard = message("stranger", [beat(1000), meal(400_000, 20)], T0, sent=500_000, wall=T0)
    assert store(database, heard).counted["records_unbound"] == 2
    assert day_values(database) == []
    with database.transaction() as tx:
        adopted = Household(
            zones=(),
            devices=(Device("stranger", "food_bowl", "s"),),
            bindings=(Binding("stranger", frozenset({"luna"}), 0),),
        )
        tx.save_household(adopted, valid_from_ms=0)
        ROLLUPS.rebuild(tx, tx.household(), ("stranger",))
    intake = day(database, "luna.intake", "2026-07-08")
    assert intake.total == 20_000


def test_a_shared_bowl_moves_the_sets_series_and_no_pets_own(database):
    store(database, message("bowl-both", [beat(1000), meal(400_000, 20)], T0, sent=500_000, wall=T0))
    with database.snapshot() as reader:
        owners = {series.pet for series in reader.all_series()}
        assert owners == {"luna+max"}
        assert reader.day("luna+max.intake", "2026-07-08").total == 20_000


# --- unreadable ------------------------------------------------------------------------------

GOOD = wire.pack_message(1, 1, [beat(1000)], 2000, None)


def header(**changed) -> dict:
    return {"v": 1, "b": 1, "s": 1, "n": 1, "u": 2000, "r": [[2, 1000, 900, 2, 0]]} | changed


BAD = {
    "cut short": (GOOD[:-3], "cut_short"),
    "unknown kind": (msgpack.packb(header(r=[[99, 1000, 1]])), "unknown_kind"),
    "2^63": (msgpack.packb(header(r=[[2, 2**63, 900, 2, 0]])), "out_of_range"),
    "2^64 - 1": (msgpack.packb(header(r=[[2, 2**64 - 1, 900, 2, 0]])), "out_of_range"),
    "boot of 2^63": (msgpack.packb(header(b=2**63)), "out_of_range"),
    "NaN": (msgpack.packb(header(r=[[2, float("nan"), 900, 2, 0]])), "not_integer"),
    "nested 100,000 deep": (b"\x91" * 100_000, "not_msgpack"),
    "nested 100,000 deep in a record": (GOOD[:-7] + b"\x91" * 100_000 + b"\xc0", "too_large"),
    "not MessagePack": (b"\xc1hello", "not_msgpack"),
    "text": (b"meal 32 g", "not_msgpack"),
    "empty": (b"", "cut_short"),
    "uptime of 40 years": (msgpack.packb(header(u=2**50, r=[[2, 2**40, 900, 2, 0]])), "out_of_range"),
    "made after it was sent": (msgpack.packb(header(r=[[2, 3000, 900, 2, 0]])), "out_of_range"),
    "a meal that began after it ended": (msgpack.packb(header(r=[[3, 1000, 1500, 10, 10, 0]])), "out_of_range"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_frame_is_a_dead_letter_with_reason_and_bytes_and_its_neighbours_are_stored(database, name):
    payload, reason = BAD[name]
    neighbour = message("bowl-max", [beat(1500)], T0, boot=7, sent=2000)
    outcome = store(database, neighbour, read_payload(raw("bowl-max", payload, T0)))
    assert outcome.counted["records_stored"] == 1
    with database.snapshot() as reader:
        (letter,) = reader.dead_letters(limit=10)
    assert letter.reason == reason
    assert letter.raw or not payload
    assert letter.raw in payload
    assert store(database, read_payload(raw("bowl-max", payload, T0 + 5))).counted["dead_letters"] == 0
    assert outcome.counted["dead_letters"] == 1


def test_a_bad_record_counts_in_the_mark_and_leaves_the_others_of_its_message(database):
    payload = msgpack.packb(header(n=3, r=[[2, 1000, 900, 2, 0], [99, 1], [2, 1500, 900, 2, 0]]))
    outcome = store(database, read_payload(raw("bowl-max", payload, T0)))
    assert outcome.marks == {"bowl-max": {1: 3}}
    assert (outcome.counted["records_stored"], outcome.counted["dead_letters"]) == (2, 1)


def test_where_only_the_header_reads_all_its_records_count_in_the_mark(database):
    payload = msgpack.packb(header(n=5, r="nothing of the kind"))
    outcome = store(database, read_payload(raw("bowl-max", payload, T0)))
    assert outcome.marks == {"bowl-max": {1: 5}}
    assert outcome.counted["dead_letters"] == 5


def test_where_the_header_does_not_read_the_mark_waits(database):
    outcome = store(database, read_payload(raw("bowl-max", b"\x81\xa1v\x09", T0)))
    assert outcome.marks == {}
    assert outcome.counted["dead_letters"] == 1


def test_a_topic_that_names_no_device_is_a_dead_letter(database):
    store(database, read_payload(raw("Bad Id", GOOD, T0)))
    with database.snapshot() as reader:
        assert reader.dead_letters(limit=1)[0].reason == "bad_device_id"
        assert reader.heard_devices() == ()


def test_a_huge_message_keeps_its_beginning_and_says_so():
    (letter,) = read_payload(raw("bowl-max", b"\xc1" * 1_000_000, T0)).letters
    assert len(letter.raw) == 262_144
    assert "of 1000000 bytes" in letter.detail


def test_of_5000_mutated_frames_none_crashes_and_no_good_neighbour_is_lost(tmp_path):
    """Every record is either stored or a dead letter; `make soak` does it with 100,000."""
    report = fuzz(tmp_path / "fuzz.db", frames=5_000, seed=20260714)
    assert report.passed, report
    assert report.dead_letters > 1_000
    assert set(report.reasons) > {"not_msgpack", "cut_short", "bad_header", "out_of_range", "not_integer"}


# --- time ------------------------------------------------------------------------------------


def test_a_records_wall_time_is_the_devices_where_it_knows_it(database):
    store(database, message("bowl-max", [beat(40_000)], T0 + 5 * HOUR, sent=100_000, wall=T0))
    (frame,) = frames(database, "bowl-max")
    assert (frame.start_ms, frame.dating) == (T0 - 60_000, "wall")


@pytest.mark.parametrize("wall", [T0 + DAY + 1, 946_684_800_000, 0])
def test_a_wall_clock_that_cannot_be_is_not_believed(database, wall):
    store(database, message("bowl-max", [beat(40_000)], T0, sent=100_000, wall=wall))
    (frame,) = frames(database, "bowl-max")
    assert (frame.start_ms, frame.dating) == (T0 - 60_000 + 6, "offset")  # 6 ms: 100 ppm of the minute between


def test_a_simulated_device_six_hours_ahead_of_the_hub_is_believed():
    assert is_plausible_wall(T0 + 6 * HOUR, now_ms=T0)


def test_a_hub_whose_clock_was_never_set_believes_the_device():
    assert is_plausible_wall(T0, now_ms=5_000)


def test_messages_that_waited_at_the_broker_are_dated_by_the_one_that_did_not(database):
    """The hub was off for a night: all messages arrive at once, only the last one is fresh."""
    night = [message("bowl-max", [beat(h * HOUR)], T0 + 8 * HOUR, first=h + 1, sent=h * HOUR + 50) for h in range(9)]
    store(database, *night)
    for hour, frame in enumerate(frames(database, "bowl-max")):
        assert abs(frame.start_ms - (T0 + hour * HOUR)) < 4_000  # 8 h of drift bound at 100 ppm


def test_a_fresh_message_moves_what_was_dated_by_a_late_one(database):
    store(database, message("bowl-max", [meal(HOUR, 20)], T0 + 30 * HOUR, first=1, sent=HOUR))
    outcome = store(database, message("bowl-max", [beat(2 * HOUR)], T0 + 2 * HOUR, first=2, sent=2 * HOUR))
    assert outcome.counted["records_redated"] == 1
    assert abs(frames(database, "bowl-max")[0].end_ms - (T0 + HOUR)) < 1_000
    assert day(database, "max.intake", "2026-07-08").total == 20_000
    assert day(database, "max.intake", "2026-07-10").total == 0


def test_a_device_clock_30_minutes_behind_that_is_set_moves_its_earlier_events(database):
    """Field report 6: the two events before are shifted by 1,800 s and flagged, the third is not."""
    behind = 30 * MINUTE
    store(
        database,
        message("bowl-max", [beat(1000)], T0 + 1000, first=1, sent=1000, wall=T0 + 1000 - behind),
        message("bowl-max", [beat(2000)], T0 + 2000, first=2, sent=2000, wall=T0 + 2000 - behind),
    )
    assert [frame.start_ms for frame in frames(database, "bowl-max")] == [T0 + 1000 - behind, T0 + 2000 - behind]
    store(database, message("bowl-max", [beat(3000)], T0 + 3000, first=3, sent=3000, wall=T0 + 3000))
    assert [(frame.start_ms, frame.dating) for frame in frames(database, "bowl-max")] == [
        (T0 + 1000, "corrected"),
        (T0 + 2000, "corrected"),
        (T0 + 3000, "wall"),
    ]


def test_a_boot_nobody_heard_lies_between_its_neighbours_and_counts_only_inside_one_day(database):
    store(database, message("bowl-max", [beat(HOUR)], T0 + 5 * HOUR, boot=1, sent=HOUR))  # ends T0 + 5 h
    store(
        database,
        message("bowl-max", [meal(10 * MINUTE, 20), beat(20 * MINUTE)], T0 + 9 * HOUR, boot=2, sent=None),
        message("bowl-max", [beat(1000)], T0 + 9 * HOUR, boot=3, sent=HOUR),
    )
    lost = [frame for frame in frames(database, "bowl-max") if frame.boot == 2]
    assert {frame.dating for frame in lost} == {"bracket"}
    assert lost[1].latest_ms == T0 + 8 * HOUR + 360  # boot 3 began then, within 100 ppm of its hour
    assert lost[1].earliest_ms == T0 + 5 * HOUR + 20 * MINUTE
    assert day(database, "max.intake", "2026-07-09").total == 20_000  # 05:10 to 07:50Z is one New York day


def test_a_bracket_across_midnight_counts_in_no_day(database):
    store(database, message("bowl-max", [beat(HOUR)], T0 - 3 * HOUR, boot=1, sent=HOUR))
    store(
        database,
        message("bowl-max", [meal(10 * MINUTE, 20)], T0 + 9 * HOUR, boot=2, sent=None),
        message("bowl-max", [beat(1000)], T0 + 9 * HOUR, boot=3, sent=HOUR),
    )
    with database.snapshot() as reader:
        assert sum(row.total for row in reader.days("max.intake", "2026-07-01", "2026-07-31")) == 0


def test_a_record_dated_days_after_its_arrival_is_kept_and_counts_in_no_day(database):
    """The boot is known, but says of itself what cannot be: a message of it, without an uptime."""
    store(database, message("bowl-max", [beat(HOUR)], T0, first=1, sent=HOUR))
    ahead = message("bowl-max", [meal(9 * DAY, 20), beat(9 * DAY + MINUTE)], T0 + HOUR, first=2, sent=None)
    assert store(database, ahead, ahead).marks == {"bowl-max": {1: 3}}
    kept = frames(database, "bowl-max")
    assert [(frame.dating, frame.earliest_ms) for frame in kept[1:]] == [("bracket", None)] * 2
    assert not [row for row in day_values(database) if row[2]]


def test_what_came_while_the_hubs_clock_stood_days_behind_is_dated_once_it_caught_up(database):
    """The hub starts with last week's time; a device that kept three days hands them over first."""
    store(database, message("bowl-max", [beat(HOUR)], T0, first=1, sent=HOUR, wall=T0))
    kept = [meal(HOUR + DAY, 20), meal(HOUR + 2 * DAY, 30), meal(HOUR + 3 * DAY, 40)]
    late = message("bowl-max", kept, T0 + MINUTE, first=2, sent=HOUR + 3 * DAY, wall=T0 + 3 * DAY)
    store(database, late)
    assert {frame.dating for frame in frames(database, "bowl-max")[1:]} >= {"bracket"}
    store(database, message("bowl-max", [beat(HOUR + 3 * DAY + MINUTE)], T0 + 3 * DAY + MINUTE,
                            first=5, sent=HOUR + 3 * DAY + MINUTE, wall=T0 + 3 * DAY + MINUTE))  # fmt: skip
    rows = [frame for frame in frames(database, "bowl-max") if frame.kind == "meal"]
    assert [(frame.end_ms, frame.dating) for frame in rows] == [(T0 + n * DAY, "wall") for n in (1, 2, 3)]
    assert sum(value[3] and sum(value[3]) for value in day_values(database) if value[0] == "max.intake") == 90_000


def test_a_retained_message_teaches_nothing_about_the_clock(database):
    payload = wire.pack_message(1, 1, [beat(1000)], 2000, None)
    stale = read_payload(raw("bowl-max", payload, T0 + 90 * DAY), retained=True)
    assert store(database, stale).counted["retained_events"] == 1
    (frame,) = frames(database, "bowl-max")
    assert frame.dating == "bracket"


@given(
    truth=st.integers(T0, T0 + DAY),
    drift_ppm=st.integers(-99, 99),
    heard=st.lists(st.tuples(st.integers(0, 30 * DAY), st.integers(0, 10 * HOUR)), min_size=1, max_size=20),
    uptime=st.integers(0, 30 * DAY),
)
def test_the_offset_is_never_early_and_as_good_as_the_freshest_near_message(truth, drift_ppm, heard, uptime):
    """A bound from above for every drift below 100 ppm, within any message's delay and drift."""

    def wall(at: int) -> int:
        return truth + at + at * drift_ppm // 1_000_000

    clock = BootClock().learn(Heard(sent, wall(sent) + delay, None) for sent, delay in heard)
    dated = clock.date(uptime, wall_offset_ms=None)
    assert dated is not None
    assert dated.at_ms >= wall(uptime) - 2
    best = min(delay + 2 * abs(uptime - sent) * 100 // 1_000_000 for sent, delay in heard)
    assert dated.at_ms <= wall(uptime) + best + 2 * 6 * HOUR * 200 // 1_000_000 + 2


@given(
    heard=st.lists(st.tuples(st.integers(0, 30 * DAY), st.integers(T0, T0 + 60 * DAY)), min_size=1, max_size=20),
    uptimes=st.tuples(st.integers(0, 30 * DAY), st.integers(0, 30 * DAY)),
)
def test_records_keep_the_order_they_were_made_in_whatever_was_heard(heard, uptimes):
    clock = BootClock().learn(Heard(sent, received, None) for sent, received in heard)
    first, second = (clock.date(at, wall_offset_ms=None).at_ms for at in sorted(uptimes))
    assert first <= second


def test_fall_back_has_two_half_past_ones_an_hour_apart_on_one_day(database):
    """Case 3 of days.md."""
    for n, at in enumerate((1_793_511_000_000, 1_793_514_600_000), start=1):
        store(database, message("bowl-max", [meal(MINUTE, 10)], at, boot=n, sent=MINUTE, wall=at + MINUTE))
    row = day(database, "max.meals", "2026-11-01")
    assert (row.n, row.total, len(row.sums)) == (2, 2, 100)


def test_a_late_meal_restates_its_own_day_and_a_copy_changes_nothing(database):
    """Case 10: 40 g of Jul 4 23:50 arrives on Jul 6 09:00."""
    jul4 = 1_783_223_400_000  # 2026-07-04 23:50 in New York
    store(database, message("bowl-max", [meal(MINUTE, 60)], jul4 - HOUR, boot=1, sent=MINUTE, wall=jul4 - HOUR))
    late = message(
        "bowl-max", [meal(2 * MINUTE, 40)], jul4 + 33 * HOUR, boot=2, sent=33 * HOUR, wall=jul4 + 33 * HOUR - 2 * MINUTE
    )
    for revision in (1, 1):
        store(database, late)
        row = day(database, "max.intake", "2026-07-04")
        assert (row.total, row.revision) == (100_000, revision)
    assert day(database, "max.intake", "2026-07-06") is None


# --- day rows --------------------------------------------------------------------------------


def test_a_bowl_is_covered_between_numbers_that_follow_each_other(database):
    first = [beat(n * 10 * MINUTE) for n in range(7)]
    store(database, message("bowl-max", first, T0 + HOUR, first=1, sent=HOUR, wall=T0 + HOUR))
    assert day(database, "max.intake", "2026-07-08").covered_ms == HOUR
    gone = message(
        "bowl-max",
        [beat(80 * MINUTE), beat(90 * MINUTE)],
        T0 + 90 * MINUTE,
        first=9,
        sent=90 * MINUTE,
        wall=T0 + 90 * MINUTE,
    )
    store(database, gone)
    assert day(database, "max.intake", "2026-07-08").covered_ms == HOUR + 10 * MINUTE  # number 8 is missing
    late = message("bowl-max", [beat(70 * MINUTE)], T0 + DAY, first=8, sent=DAY, wall=T0 + DAY)
    store(database, late)
    assert day(database, "max.intake", "2026-07-08").covered_ms == 90 * MINUTE


def test_a_bowl_that_was_silent_for_more_than_an_hour_covers_none_of_it(database):
    store(database, message("bowl-max", [beat(0), beat(2 * HOUR)], T0 + 2 * HOUR, sent=2 * HOUR, wall=T0 + 2 * HOUR))
    assert day_values(database) == []


def test_a_tracker_covers_what_it_was_worn_and_restlessness_is_of_the_night(database):
    evening, noon = T0 + 2 * HOUR, T0 + 16 * HOUR  # 22:00 and 12:00 in New York
    for boot, at in enumerate((evening, noon), start=1):
        records = [motion(300_000, scratch=4_000, worn=200_000, restless=7_000)]
        store(database, message("tracker-max", records, at, boot=boot, sent=300_000, wall=at + 300_000))
    night, daytime = (day(database, "max.restless", date) for date in ("2026-07-08", "2026-07-09"))
    assert (night.total, night.covered_ms, night.n) == (7_000, 200_000, 1)
    assert daytime is None
    scratching = day(database, "max.scratching", "2026-07-09")
    assert (scratching.total, scratching.covered_ms) == (4_000, 200_000)
    assert day(database, "max.activity", "2026-07-09").total == 6_000  # low + mid + high


def test_what_fell_too_fast_is_kept_but_not_eaten(database):
    spilled = meal(400_000, 48, lasted_ms=70_000, quality=wire.TOO_FAST)
    store(database, message("bowl-max", [beat(1000), spilled], T0, sent=500_000, wall=T0))
    row = day(database, "max.intake", "2026-07-08")
    assert (row.total, row.n, row.set_aside) == (0, 0, "48 g left the bowl in 70 s; not counted as eaten")
    assert frames(database, "bowl-max")[1].amount == 48_000


def test_a_pet_with_two_bowls_is_covered_where_both_are(database):
    with database.transaction() as tx:
        tx.bind("bowl-two", frozenset({"max"}), valid_from_ms=T0 - DAY)
    for device, minutes in (("bowl-max", 60), ("bowl-two", 30)):
        records = [beat(n * 10 * MINUTE) for n in range(minutes // 10 + 1)] + [meal(minutes * MINUTE, 10)]
        store(database, message(device, records, T0, sent=minutes * MINUTE, wall=T0 + minutes * MINUTE))
    row = day(database, "max.intake", "2026-07-08")
    assert (row.total, row.covered_ms) == (20_000, 30 * MINUTE)


def story() -> list[Reading]:
    """Two days of a bowl and a tracker, with a reboot, a lost number and a spill, one message each."""
    told: list[Reading] = []
    for boot, (start, records) in enumerate(
        (
            (T0, [beat(n * 20 * MINUTE) if n % 5 else meal(n * 20 * MINUTE + MINUTE, 10 + n) for n in range(40)]),
            (T0 + DAY, [meal(n * 30 * MINUTE + MINUTE, 48, quality=8 * (n % 3 == 0)) for n in range(20)]),
        ),
        start=1,
    ):
        for seq, record in enumerate(records, start=1):
            if (boot, seq) != (1, 17):
                told.append(
                    message(
                        "bowl-max", [record], start + 2 * DAY, boot=boot, first=seq, sent=2 * DAY, wall=start + 2 * DAY
                    )
                )
    for n in range(60):
        records = [motion((n + 1) * 300_000, scratch=100 * n, restless=50)]
        told.append(message("tracker-max", records, T0 + DAY, boot=1, first=n + 1, sent=DAY, wall=T0 + DAY))
    return told


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_order_and_any_repetition_gives_the_day_rows_of_a_rebuild(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("order")
    told = story()
    order = data.draw(st.permutations(range(len(told))))
    repeated = data.draw(st.lists(st.integers(0, len(told) - 1), max_size=40))
    cut = data.draw(st.integers(1, 40))
    with home_at(folder) as database, home_at(folder, "rebuilt.db") as rebuilt:
        sequence = [told[index] for index in [*order, *repeated]]
        for at in range(0, len(sequence), cut):
            store(database, *sequence[at : at + cut])
        with rebuilt.transaction() as tx:
            tx.add_frames(frames(database, "bowl-max") + frames(database, "tracker-max"))
            ROLLUPS.rebuild(tx, tx.household())
        assert day_values(database) == day_values(rebuilt)
        with database.transaction() as tx:
            assert ROLLUPS.rebuild(tx, tx.household()) == 0
        with database.snapshot() as reader:
            assert reader.all_marks() == {"bowl-max": {1: 16, 2: 20}, "tracker-max": {1: 60}}


# --- when to commit ---------------------------------------------------------------------------

RULE = CommitRule(window=40)


@pytest.mark.parametrize(
    ("count", "urgent", "first", "last", "now", "wait"),
    [
        (0, False, 0, 0, 9, None),
        (1, True, 0, 0, 0, 0),
        (1, False, 0, 0, 0, 5.0),
        (1, False, 0, 0, 4.5, 0.5),
        (15, False, 0, 1.0, 1.0, 4.0),
        (16, False, 0, 1.0, 1.0, 0.005),
        (16, False, 0, 4.997, 4.997, 0.003),
        (19, False, 0, 1.0, 1.0, 0.005),
        (20, False, 0, 0, 0, 0),
    ],
)
def test_a_batch_closes_as_the_contract_says(count, urgent, *, first, last, now, wait):
    left = RULE.wait_s(count=count, urgent=urgent, first_s=first, last_s=last, now_s=now)
    assert left == (None if wait is None else pytest.approx(wait))


class Told:
    """A link that only remembers what it was told, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []
        self.acknowledged = asyncio.Event()

    def acknowledge(self, deliveries):
        self.calls.append(("ack", [delivery.packet_id for delivery in deliveries]))
        self.acknowledged.set()

    def publish_marks(self, marks):
        self.calls.append(("marks", marks))


async def ingest_of(database: Database, payloads: list[bytes], *, writer: Writer | None = None, rule=RULE) -> Told:
    """Feed messages of bowl-max through a running ingest until something is acknowledged."""
    inbox, told = Inbox(capacity=100), Told()
    for number, payload in enumerate(payloads, start=1):
        inbox.put(Delivery(raw("bowl-max", payload, T0), 1, number, 1))
    own = writer or Writer(database)
    ingest = Ingest(inbox=inbox, link=told, writer=own, rollups=ROLLUPS, clock=SystemClock(), rule=rule)
    task = asyncio.create_task(ingest.run())
    while sum(len(ids) for what, ids in told.calls if what == "ack") < len(payloads):
        told.acknowledged.clear()
        await asyncio.wait_for(told.acknowledged.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    own.close()
    return told


async def test_the_mark_of_the_database_comes_first_and_an_acknowledgement_before_its_mark(database):
    store(database, message("bowl-max", [beat(1)], T0, first=1, sent=9))
    told = await ingest_of(database, [wire.pack_message(1, 2, [meal(400_000, 20)], 500_000, None)])
    assert told.calls == [
        ("marks", {"bowl-max": {1: 1}}),
        ("ack", [1]),
        ("marks", {"bowl-max": {1: 2}}),
    ]


class RefusingFrames(Writer):
    """A real writer that refuses every transaction with frames of boot 13."""

    async def run(self, write):
        def guarded(tx):
            result = write(tx)
            if tx.frames_of_boot("bowl-max", 13, datings=("wall", "offset", "bracket")):
                raise RowsRefused("boot 13")
            return result

        return await super().run(guarded)


async def test_one_message_that_the_store_refuses_becomes_a_dead_letter_and_holds_up_nobody(database):
    payloads = [wire.pack_message(boot, 1, [beat(10)], 20, None) for boot in (12, 13, 14)]
    payloads.append(wire.pack_message(15, 1, [meal(400_000, 20)], 500_000, None))
    told = await ingest_of(database, payloads, writer=RefusingFrames(database))
    acked = [number for what, numbers in told.calls if what == "ack" for number in numbers]
    assert acked == [1, 2, 3, 4]
    with database.snapshot() as reader:
        assert [letter.reason for letter in reader.dead_letters(limit=9)] == ["refused_by_store"]
        assert reader.marks("bowl-max") == {12: 1, 13: 1, 14: 1, 15: 1}


# --- inbox and clock --------------------------------------------------------------------------


async def test_a_full_inbox_takes_no_more_and_says_when_it_does_again():
    inbox, told = Inbox(capacity=2), []
    deliveries = [Delivery(raw("bowl-max", b"", T0), 1, number, 1) for number in range(3)]
    for delivery in deliveries[:2]:
        inbox.put(delivery)
    assert inbox.room == 0
    with pytest.raises(asyncio.QueueFull):
        inbox.put(deliveries[2])
    inbox.when_room(lambda: told.append(inbox.room))
    assert inbox.offer(deliveries[2])  # the radio's place is its own
    assert await inbox.take(timeout_s=1) == tuple(deliveries)
    assert told == [2]
    assert await inbox.take(timeout_s=0.01) == ()
    assert told == [2]  # once
    inbox.put(deliveries[0])
    inbox.when_room(lambda: told.append(inbox.room))
    inbox.when_room(None)
    assert await inbox.take(timeout_s=1, enough=1) == (deliveries[0],)
    assert told == [2]


@pytest.mark.parametrize(("window", "enough"), [(1, 1), (2, 1), (3, 2), (20, 10), (200, 100), (65_535, 100)])
def test_half_the_window_closes_a_batch_so_that_the_broker_sends_the_other_half(window, enough):
    assert CommitRule(window=window).enough == enough


async def test_a_stepped_clock_stands_still_until_it_is_told_and_then_runs():
    clock = SteppedClock(T0)
    assert clock.now_ms() == T0
    waiting = asyncio.create_task(clock.sleep_until(T0 + 6 * HOUR))
    for _ in range(2):
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.advance(3 * HOUR)
    await asyncio.wait_for(waiting, 5)
    assert clock.now_ms() == T0 + 6 * HOUR
    clock.release()
    await asyncio.wait_for(clock.sleep_until(T0 + 6 * HOUR + 20), 5)
    assert clock.now_ms() >= T0 + 6 * HOUR + 20
    with pytest.raises(ValueError, match="0 ms or more"):
        clock.advance(-1)


def test_every_counter_that_ingest_bumps_is_listed(database):
    assert set(store(database, message("bowl-max", [beat(1)], T0, sent=9)).counted) == set(COUNTERS)


def test_a_frame_value_survives_storing_and_reading(database):
    told = message("bowl-max", [wire.pack_record(wire.FOOD_SET, 5, ("40063813", "Harbor Whitefish"))], T0, sent=9)
    store(database, told)
    (frame,) = frames(database, "bowl-max")
    assert (frame.object, frame.fields, frame.kind) == ("40063813", ("40063813", "Harbor Whitefish"), "food_set")
    assert told.frames == (Frame("bowl-max", 1, 1, wire.FOOD_SET, 5, ("40063813", "Harbor Whitefish")),)


# --- numbers that are told twice ----------------------------------------------------------------


def told(database: Database) -> list[tuple[int | None, int | None, str]]:
    with database.snapshot() as reader:
        return sorted((letter.boot, letter.seq, letter.reason) for letter in reader.dead_letters(limit=99))


def test_a_device_that_was_reset_and_counts_from_one_again_loses_nothing_unseen(database):
    before = [meal((n + 1) * HOUR, 20 + n) for n in range(3)]
    after = [meal((n + 1) * HOUR + 7, 50 + n) for n in range(3)]
    store(database, message("bowl-max", before, T0, sent=3 * HOUR))
    rows = frames(database, "bowl-max")
    for _ in range(2):  # it sends again until its mark is told
        store(database, message("bowl-max", after, T0 + DAY, sent=3 * HOUR + 7))
    assert frames(database, "bowl-max") == rows
    assert told(database) == [(1, seq, "number_taken") for seq in (1, 2, 3)]
    assert (counters(database)["dead_letters"], counters(database).get("records_known", 0)) == (3, 0)
    store(database, message("bowl-max", before, T0 + 2 * DAY, sent=3 * HOUR))
    assert counters(database)["records_known"] == 3


def test_two_devices_under_one_name_in_one_batch_leave_nothing_unseen(database):
    one, other = (message("bowl-max", [meal(HOUR + at, 20 + at)], T0, sent=HOUR + at) for at in (0, 5))
    store(database, one, other)
    assert len(frames(database, "bowl-max")) == 1
    assert told(database) == [(1, 1, "number_taken")]


def test_a_hello_made_anew_under_its_number_is_no_other_record(database):
    store(database, message("bowl-max", [beat(HOUR)], T0, first=5, sent=HOUR))
    hello = wire.pack_record(wire.HELLO, HOUR, ("bowl", "1", 0, 40, 6, 4))
    store(database, message("bowl-max", [hello, beat(2 * HOUR)], T0 + HOUR, first=5, sent=2 * HOUR))
    assert told(database) == []


def test_a_hello_that_says_more_than_it_can_hold_frees_nothing_that_was_not_sent(database):
    lie = wire.pack_record(wire.HELLO, HOUR, ("bowl", "1", 0, 40, 4_000_000_000, 0))
    outcome = store(database, message("bowl-max", [lie], T0, first=1, sent=HOUR))
    assert outcome.marks["bowl-max"] == {1: 1}


def test_a_boot_of_a_thousand_days_costs_a_record_no_more_than_a_fresh_one():
    clock = BootClock().learn(Heard(n * 6 * HOUR, T0 + n * 6 * HOUR + 40, None) for n in range(4_000))
    asked = [clock.offset_at(n * 7 * HOUR + 11) for n in range(3_000)]
    plain = [
        min(offset + abs(n * 7 * HOUR + 11 - at) // 10_000 for at, offset in clock.anchors)
        for n in range(0, 3_000, 300)
    ]
    assert asked[::300] == plain
