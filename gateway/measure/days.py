"""Local days: instants in, dates, hours and 15-minute slots of the home's zones out.

A day is cut at local midnight of the zone in force, so it lasts 23, 24 or 25 hours, 27
where the home moved west, and days follow each other without gap or overlap. Slots count
elapsed time from local midnight; a slot belongs to the local hour it starts in. Never
reads a clock: ``now`` is passed in.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gateway.errors import MeasureError
from gateway.model import Interval, ZonePeriod

__all__ = [
    "HOUR_MS",
    "NIGHT_END_HOUR",
    "NIGHT_START_HOUR",
    "SLOT_MS",
    "WallTime",
    "add_days",
    "dates_between",
    "day_interval",
    "hour_spans",
    "hours_from_slots",
    "instant_of",
    "is_weekend",
    "local_clock",
    "local_day",
    "night_interval",
    "night_of",
    "slot_hours",
    "slot_of",
    "trailing_days",
    "zone_at",
]

HOUR_MS = 3_600_000
SLOT_MS = 900_000
NIGHT_START_HOUR = 21
NIGHT_END_HOUR = 7
_MINUTE_MS = 60_000

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WallTime:
    """What a wall clock's reading means as an instant.

    ``suspect`` holds where that reading never was on the wall (the spring gap): the device's
    clock is wrong. ``ambiguous`` holds where it was there twice (autumn); ``at_ms`` is then
    the first.
    """

    at_ms: int
    suspect: bool
    ambiguous: bool


def add_days(day: str, count: int) -> str:
    """The ISO date ``count`` calendar days after ``day`` (before it, where negative)."""
    return (date.fromisoformat(day) + timedelta(days=count)).isoformat()


def dates_between(first: str, last: str) -> tuple[str, ...]:
    """Every ISO date from ``first`` to ``last``, both included; empty where last < first."""
    start, end = date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal()
    return tuple(date.fromordinal(n).isoformat() for n in range(start, end + 1))


def trailing_days(last: str, count: int) -> tuple[str, ...]:
    """The ``count`` local days that end with ``last``: ``trailing_days(today, 7)`` is P7D."""
    return dates_between(add_days(last, 1 - count), last)


def is_weekend(day: str) -> bool:
    """Whether the ISO date is a Saturday or a Sunday."""
    return date.fromisoformat(day).weekday() >= 5


def _must_have_zone(zones: tuple[ZonePeriod, ...]) -> None:
    if not zones:
        raise MeasureError("a home must have at least one zone period, has none")


def zone_at(at_ms: int, zones: tuple[ZonePeriod, ...]) -> ZoneInfo:
    """The zone in force at an instant; before the first period, the first period's."""
    _must_have_zone(zones)
    index = bisect_right([period.valid_from_ms for period in zones], at_ms) - 1
    return ZoneInfo(zones[max(index, 0)].zone)


def _local(at_ms: int, zone: ZoneInfo) -> datetime:
    seconds, ms = divmod(at_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).astimezone(zone) + timedelta(milliseconds=ms)


def _utc_ms(local: datetime) -> int:
    delta = local.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def _midnight_in(day: date, zone: ZoneInfo) -> int:
    """First instant at which the zone's clock shows ``day`` or later.

    Some zones skip midnight itself (Santiago, Beirut) or a whole day (Apia 2011-12-30); the
    first instant is then the jump, found by bisection between both readings of midnight.
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    late, early = _utc_ms(midnight), _utc_ms(midnight.replace(fold=1))
    if early >= late:  # no gap: equal, or midnight shown twice, of which fold=0 is the first
        return late
    while late - early > 1:
        middle = (early + late) // 2
        if _local(middle, zone).date() >= day:
            late = middle
        else:
            early = middle
    return late


@lru_cache(maxsize=8192)
def _starts_ms(day: str, zones: tuple[ZonePeriod, ...]) -> int:
    """First instant of the local day: the first at which the home's clock shows it or later."""
    _must_have_zone(zones)
    wanted = date.fromisoformat(day)
    for index, period in enumerate(zones):
        midnight = _midnight_in(wanted, ZoneInfo(period.zone))
        begun = midnight if index == 0 else max(midnight, period.valid_from_ms)
        if index + 1 == len(zones) or begun < zones[index + 1].valid_from_ms:
            return begun
    raise AssertionError("the last period is open, so the loop returns")


def day_interval(day: str, zones: tuple[ZonePeriod, ...]) -> Interval:
    """``[local midnight, next local midnight)`` of an ISO date, in ms UTC."""
    return Interval(_starts_ms(day, zones), _starts_ms(add_days(day, 1), zones))


def local_day(at_ms: int, zones: tuple[ZonePeriod, ...]) -> str:
    """The ISO date of the day that holds the instant (see :func:`day_interval`)."""
    day = _local(at_ms, zone_at(at_ms, zones)).date().isoformat()
    while at_ms < _starts_ms(day, zones):
        day = add_days(day, -1)
    while at_ms >= _starts_ms(add_days(day, 1), zones):  # moved west across midnight
        day = add_days(day, 1)
    return day


def local_clock(at_ms: int, zones: tuple[ZonePeriod, ...]) -> datetime:
    """What the home's wall clock showed, as an aware datetime."""
    return _local(at_ms, zone_at(at_ms, zones))


def instant_of(day: str, minute: int, zones: tuple[ZonePeriod, ...]) -> WallTime:
    """The instant of a wall-clock reading, ``minute`` counted from 00:00 on the clock's face.

    A reading inside the spring gap is taken with the offset before it (02:30 becomes 03:30)
    and flagged ``suspect``; one shown twice is the first and flagged ``ambiguous``.
    """
    _must_have_zone(zones)
    carry, minute = divmod(minute, 24 * 60)
    naive = datetime.fromisoformat(add_days(day, carry)) + timedelta(minutes=minute)
    found = None
    for index, period in enumerate(zones):
        first = naive.replace(tzinfo=ZoneInfo(period.zone))
        at_ms, again_ms = _utc_ms(first), _utc_ms(first.replace(fold=1))
        skipped = index > 0 and at_ms < period.valid_from_ms  # moved east over this reading
        found = WallTime(at_ms, suspect=again_ms < at_ms or skipped, ambiguous=again_ms > at_ms)
        if index + 1 == len(zones) or at_ms < zones[index + 1].valid_from_ms:
            break
    assert found is not None
    return found


def night_interval(day: str, zones: tuple[ZonePeriod, ...]) -> Interval:
    """The night dated ``day``: from 21:00 that evening to 07:00 the next morning."""
    start = instant_of(day, NIGHT_START_HOUR * 60, zones).at_ms
    return Interval(start, instant_of(add_days(day, 1), NIGHT_END_HOUR * 60, zones).at_ms)


def night_of(at_ms: int, zones: tuple[ZonePeriod, ...]) -> str | None:
    """The date of the night that holds the instant, or None by day."""
    day = local_day(at_ms, zones)
    for candidate in (day, add_days(day, -1)):
        night = night_interval(candidate, zones)
        if night.start_ms <= at_ms < night.end_ms:
            return candidate
    return None


def slot_of(at_ms: int, zones: tuple[ZonePeriod, ...]) -> tuple[str, int]:
    """(date, index) of the 15-minute slot that holds the instant."""
    day = local_day(at_ms, zones)
    return day, (at_ms - _starts_ms(day, zones)) // SLOT_MS


@lru_cache(maxsize=4096)
def _hour_sums(day: str, zones: tuple[ZonePeriod, ...]) -> IntArray:
    """0/1 matrix [n, 24] that sums the day's slots into local hours; equal days share one."""
    return _one_hot(_slot_hours(day, zones))


@lru_cache(maxsize=64)
def _one_hot(hours: tuple[int, ...]) -> IntArray:
    matrix = np.zeros((len(hours), 24), dtype=np.int64)
    matrix[np.arange(len(hours)), np.array(hours)] = 1
    matrix.setflags(write=False)
    return matrix


@lru_cache(maxsize=4096)
def _slot_hours(day: str, zones: tuple[ZonePeriod, ...]) -> tuple[int, ...]:
    whole = day_interval(day, zones)
    return tuple(local_clock(at, zones).hour for at in range(whole.start_ms, whole.end_ms, SLOT_MS))


def slot_hours(day: str, zones: tuple[ZonePeriod, ...]) -> IntArray:
    """Local hour (0..23) each of the day's slots starts in; shape [n], n = 92..100, 108 ..."""
    return np.array(_slot_hours(day, zones), dtype=np.int64)


def hours_from_slots(slots: IntArray, day: str, zones: tuple[ZonePeriod, ...]) -> IntArray:
    """Sum a day's slot values, shape [..., n], into its 24 local hours, shape [..., 24].

    The repeated hour of autumn collects both passes, the skipped hour of spring none.
    """
    matrix = _hour_sums(day, zones)
    if slots.shape[-1:] != matrix.shape[:1]:
        raise MeasureError(f"{day} must have {matrix.shape[0]} slots of 15 minutes, has shape {slots.shape}")
    return np.asarray(slots @ matrix)


@lru_cache(maxsize=4096)
def _whole_spans(day: str, zones: tuple[ZonePeriod, ...]) -> IntArray:
    spans = hours_from_slots(np.diff(_slot_edges(day, zones)), day, zones)
    spans.setflags(write=False)
    return spans


def _slot_edges(day: str, zones: tuple[ZonePeriod, ...]) -> IntArray:
    """Where the day's slots begin, and its end: the last slot may be shorter than 15 minutes."""
    whole = day_interval(day, zones)
    return np.append(np.arange(whole.start_ms, whole.end_ms, SLOT_MS, dtype=np.int64), whole.end_ms)


def hour_spans(day: str, zones: tuple[ZonePeriod, ...], until_ms: int | None = None) -> IntArray:
    """How long each local hour of the day existed, in ms, shape [24].

    0 for the hour spring skips, 7,200,000 for the one autumn repeats; time from ``until_ms``
    on (the open day's now) does not exist yet.
    """
    if until_ms is None or until_ms >= day_interval(day, zones).end_ms:
        return _whole_spans(day, zones)
    edges = np.minimum(_slot_edges(day, zones), until_ms)
    return hours_from_slots(np.diff(np.maximum(edges, day_interval(day, zones).start_ms)), day, zones)
