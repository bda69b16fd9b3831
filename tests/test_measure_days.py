"""Local days: cut at the home's midnight, whole and without gaps, whatever clocks do."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import MeasureError
from gateway.measure.days import (
    HOUR_MS,
    add_days,
    day_interval,
    hour_spans,
    hours_from_slots,
    instant_of,
    local_clock,
    local_day,
    night_interval,
    night_of,
    slot_hours,
    slot_of,
    trailing_days,
)
from gateway.model import ZonePeriod

NEW_YORK = (ZonePeriod("America/New_York", 0),)
MOVED_WEST = (ZonePeriod("America/New_York", 0), ZonePeriod("America/Los_Angeles", 1783699200000))  # Jul 10 16:00Z

ODD_ZONES = (
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "America/Santiago",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/Havana",
    "UTC",
)


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


@given(
    zone=st.sampled_from(ODD_ZONES),
    at=st.integers(ms(2010, 1, 1), ms(2030, 1, 1)),
)
def test_every_instant_lies_in_exactly_the_day_it_is_given(zone: str, at: int) -> None:
    zones = (ZonePeriod(zone, 0),)
    day = local_day(at, zones)
    whole = day_interval(day, zones)
    assert whole.start_ms <= at < whole.end_ms
    assert day_interval(add_days(day, 1), zones).start_ms == whole.end_ms
    assert day == datetime.fromtimestamp(at / 1000, UTC).astimezone(ZoneInfo(zone)).date().isoformat()


@given(
    zones=st.lists(st.sampled_from(ODD_ZONES), min_size=2, max_size=4),
    moves=st.lists(st.integers(ms(2024, 3, 1), ms(2024, 3, 20)), min_size=3, max_size=3, unique=True),
    at=st.integers(ms(2024, 2, 25), ms(2024, 3, 25)),
)
def test_days_follow_each_other_without_gap_or_overlap_through_any_moves(zones, moves, at) -> None:
    begins = [0, *sorted(moves)]
    periods = tuple(ZonePeriod(zone, start) for zone, start in zip(zones, begins, strict=False))
    day = local_day(at, periods)
    whole = day_interval(day, periods)
    assert whole.start_ms <= at < whole.end_ms
    assert local_day(whole.start_ms - 1, periods) < day <= local_day(whole.end_ms, periods)


def test_a_zone_that_skips_midnight_begins_its_day_at_the_jump() -> None:
    santiago = (ZonePeriod("America/Santiago", 0),)  # 2024-09-08 00:00 became 01:00
    whole = day_interval("2024-09-08", santiago)
    assert local_clock(whole.start_ms, santiago).hour == 1
    assert whole.length_ms == 23 * HOUR_MS


def test_a_day_that_never_was_is_empty() -> None:
    assert day_interval("2011-12-30", (ZonePeriod("Pacific/Apia", 0),)).length_ms == 0


@pytest.mark.parametrize(
    ("zones", "day", "hours"),
    [
        (NEW_YORK, "2026-03-08", 23),
        (NEW_YORK, "2026-11-01", 25),
        (NEW_YORK, "2026-07-10", 24),
        (MOVED_WEST, "2026-07-10", 27),
        ((ZonePeriod("Australia/Lord_Howe", 0),), "2026-04-05", 24.5),
    ],
)
def test_slots_count_the_elapsed_quarter_hours_of_a_day(zones, day, hours) -> None:
    assert slot_hours(day, zones).size == hours * 4
    assert hour_spans(day, zones).sum() == hours * HOUR_MS
    start = day_interval(day, zones).start_ms
    assert slot_of(start, zones) == (day, 0)
    assert slot_of(start + int(hours * HOUR_MS) - 1, zones) == (day, hours * 4 - 1)


def test_spring_has_no_hour_two_and_autumn_has_two_hours_one() -> None:
    assert hour_spans("2026-03-08", NEW_YORK)[2] == 0
    assert hour_spans("2026-11-01", NEW_YORK)[1] == 2 * HOUR_MS


def test_hours_of_the_open_day_end_at_now() -> None:
    now = ms(2026, 7, 14, 22, 20)  # 18:20 in New York
    spans = hour_spans("2026-07-14", NEW_YORK, now)
    assert spans[17] == HOUR_MS
    assert spans[18] == 20 * 60_000
    assert spans[19:].sum() == 0


@given(seed=st.integers(0, 2**32 - 1), day=st.sampled_from(["2026-03-08", "2026-07-01", "2026-11-01"]))
def test_hours_keep_the_sum_of_their_slots(seed: int, day: str) -> None:
    slots = np.random.default_rng(seed).integers(0, 10**9, slot_hours(day, NEW_YORK).size)
    assert hours_from_slots(slots, day, NEW_YORK).sum() == slots.sum()


def test_slots_of_another_days_length_are_refused() -> None:
    with pytest.raises(MeasureError, match="2026-03-08 must have 92 slots"):
        hours_from_slots(np.zeros(96, dtype=np.int64), "2026-03-08", NEW_YORK)


def test_a_night_belongs_to_the_evening_it_begins_on() -> None:
    assert night_of(ms(2026, 7, 14, 3, 0), NEW_YORK) == "2026-07-13"  # 23:00
    assert night_of(ms(2026, 7, 14, 10, 59), NEW_YORK) == "2026-07-13"  # 06:59
    assert night_of(ms(2026, 7, 14, 11, 0), NEW_YORK) is None  # 07:00
    assert night_of(ms(2026, 7, 15, 1, 0), NEW_YORK) == "2026-07-14"  # 21:00


def test_the_night_clocks_change_lasts_an_hour_more_or_less() -> None:
    assert night_interval("2026-03-07", NEW_YORK).length_ms == 9 * HOUR_MS
    assert night_interval("2026-10-31", NEW_YORK).length_ms == 11 * HOUR_MS


def test_a_week_is_seven_local_days_up_to_today() -> None:
    days = trailing_days("2026-07-14", 7)
    assert (days[0], days[-1], len(days)) == ("2026-07-08", "2026-07-14", 7)


@given(
    day=st.dates(date(2015, 1, 1), date(2030, 1, 1)),
    minute=st.integers(0, 1439),
    zone=st.sampled_from(ODD_ZONES),
)
def test_a_wall_reading_that_was_on_the_wall_is_read_back_from_its_instant(day, minute, zone) -> None:
    zones = (ZonePeriod(zone, 0),)
    found = instant_of(day.isoformat(), minute, zones)
    shown = local_clock(found.at_ms, zones)
    wanted = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)  # noqa: DTZ001  # a clock's face
    assert (shown.replace(tzinfo=None) == wanted) is not found.suspect
