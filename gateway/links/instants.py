"""Dates a row by what its device told: fields in, an instant with its reason out. Pure.

A device's clock may be unset, ahead, without a zone, or show a time that never was; the hub
then says so beside the row, and where nothing else is known takes the arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from gateway.errors import PayloadError
from gateway.links.codecs import field_at, plain_text
from gateway.links.dating import CLOCK_KNOWN_MS, Dated
from gateway.links.profile import Clock
from gateway.links.quantities import number_of
from gateway.measure.days import instant_of, local_clock
from gateway.model import ZonePeriod

__all__ = ["AHEAD_MS", "date_row"]

AHEAD_MS = 120_000
"""Nothing arrives before it happened: a device's clock two minutes ahead of the hub's is wrong."""
_FAR_FUTURE_MS = 4_102_444_800_000  # 2100-01-01
_AGAIN_MS = (3_600_000, 1_800_000, 7_200_000)  # by how much clocks go back in autumn


def date_row(
    clocks: tuple[Clock, ...],
    fields: Any,
    *,
    received_ms: int,
    zones: tuple[ZonePeriod, ...],
    occurrence: int = 0,
    live: bool = True,
) -> Dated:
    """When it was: the first clock that can be believed, else the arrival.

    Parameters
    ----------
    clocks : tuple of Clock
        In the order of preference.
    fields : tree
        The message's fields.
    received_ms : int
        When it arrived, ms UTC.
    zones : tuple of ZonePeriod
        The home's, for clocks without a zone.
    occurrence : int
        The how manieth of the same wall time in one message: in autumn a wall shows an hour twice.
    live : bool
        Whether it happened shortly before it arrived; a history is not dated by its arrival.

    Raises
    ------
    PayloadError
        ``no_time``: a history's row has no clock that can be believed.
    """
    for clock in clocks:
        found = field_at(fields, clock.path)
        if clock.kind == "epoch":
            dated = _epoch(found, clock)
        else:
            wall = _from_parts(found) if clock.kind == "parts" else _from_text(found)
            shown = None if wall is None else _Wall(wall, zones, occurrence if not live else None)
            dated = None if shown is None else _local(shown, received_ms=received_ms)
        if dated is not None and _believed(dated.at_ms, received_ms):
            return dated
    if clocks and not live:
        told = plain_text(field_at(fields, clocks[0].path))
        raise PayloadError(
            "no_time", f"{clocks[0].path} must be a time this row can be dated by, is {str(told)[:60]!r}"
        )
    return Dated(received_ms, "received")


def _believed(at_ms: int, received_ms: int) -> bool:
    latest = _FAR_FUTURE_MS if received_ms < CLOCK_KNOWN_MS else received_ms + AHEAD_MS
    return CLOCK_KNOWN_MS <= at_ms <= latest


def _epoch(found: Any, clock: Clock) -> Dated | None:
    try:
        number = number_of(found, clock.path)
    except PayloadError:
        return None
    at_ms = int(number * (1000 if clock.unit == "s" else 1))
    return Dated(at_ms, "wall")


@dataclass(frozen=True, slots=True)
class _Wall:
    """A wall clock's reading; ``occurrence`` is None for one that was live."""

    shown: datetime
    zones: tuple[ZonePeriod, ...]
    occurrence: int | None


def _local(told: _Wall, *, received_ms: int) -> Dated | None:
    wall, zones = told.shown, told.zones
    if not 2000 < wall.year < 2100:
        return None
    if wall.tzinfo is not None:
        return Dated(round(wall.timestamp() * 1000), "wall")
    if not zones:
        return None
    minute = instant_of(wall.date().isoformat(), wall.hour * 60 + wall.minute, zones)
    within_ms = wall.second * 1000 + wall.microsecond // 1000
    first_ms = minute.at_ms + within_ms
    if minute.suspect:
        return Dated(first_ms, "doubtful")
    if not minute.ambiguous:
        return Dated(first_ms, "wall")
    second_ms = next(
        (
            first_ms + later
            for later in _AGAIN_MS
            if local_clock(first_ms + later, zones).replace(tzinfo=None) == wall.replace(tzinfo=None)
        ),
        first_ms,
    )
    if told.occurrence is None:
        return Dated(second_ms if second_ms <= received_ms + AHEAD_MS else first_ms, "wall")
    return Dated(second_ms if told.occurrence else first_ms, "bracket", first_ms, second_ms)


def _from_text(found: Any) -> datetime | None:
    text = plain_text(found) if isinstance(found, str) else None
    try:
        return None if text is None or len(text) > 40 else datetime.fromisoformat(text)
    except ValueError:
        return None


def _from_parts(found: Any) -> datetime | None:
    if not isinstance(found, dict):
        return None
    parts = [found.get(name, 0) for name in ("year", "month", "day", "hour", "minute", "second")]
    if not all(isinstance(part, int) for part in parts):
        return None
    year = parts[0] + 2000 if 0 <= parts[0] < 100 else parts[0]
    try:
        whole = date(year, parts[1], parts[2])
        return datetime(whole.year, whole.month, whole.day, *parts[3:])  # noqa: DTZ001  # the home's wall: zone added by instant_of
    except (ValueError, OverflowError):  # an integer that no C int holds is no ValueError
        return None
