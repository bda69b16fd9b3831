"""A series' last 90 days, ready to draw: day rows in; points, usual range, gaps and events out.

A day heard for less than `LEAST_COVERAGE` of its time is a gap, never a zero; the others are
set out per whole day. What is drawn here decides nothing: verdicts are the measure room's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.ask.records import heading, pets_words
from gateway.ask.wording import first_upper
from gateway.measure.days import add_days, day_interval, local_day
from gateway.measure.grid import LEAST_COVERAGE
from gateway.measure.series import grid_of
from gateway.model import Household, RecordRef
from gateway.ontology.load import load
from gateway.ontology.vocabulary import Property
from gateway.store.reads import Reader
from gateway.stored import DayRow

__all__ = ["TREND_DAYS", "Moment", "Point", "Trend", "read_trend"]

TREND_DAYS = 90
_LEAST_FOR_RANGE = 21
"""Days a usual range is drawn from at least: the least history of a comparison."""
_FAR_SPREADS = 3.0
_BAND_SPREADS = 2.0
_NORMAL_SPREAD_OF_MAD = 1.4826
_CHANGE_KINDS = ("food_set", "tare")
_WRITTEN_KINDS = ("log", "note")


@dataclass(frozen=True, slots=True)
class Point:
    """One local day. ``value`` is per whole day in the series' unit, None where it is a gap;
    ``far`` marks a day beyond three spreads; ``note`` says why a day is not drawn.
    """

    date: str
    value: float | None
    heard: float
    note: str
    far: bool
    ref: RecordRef | None


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened on a day of the drawing, with the record that says so."""

    number: int
    date: str
    text: str
    ref: RecordRef


@dataclass(frozen=True, slots=True)
class Trend:
    """A drawing's content. ``median`` and ``band`` are None while too few days are known."""

    title: str
    pet: str
    noun: str
    unit: str
    level: bool
    points: tuple[Point, ...]
    median: float | None
    band: tuple[float, float] | None
    moments: tuple[Moment, ...]
    caveat: str

    def rows(self) -> tuple[tuple[Point, Point], ...]:
        """The table, newest first: (first, last) day of each row.

        Days without any record and with the same note share a row.
        """
        runs: list[tuple[Point, Point]] = []
        for point in reversed(self.points):
            newer = runs[-1][0] if runs else None
            if newer is not None and point.ref is None and newer.ref is None and newer.note == point.note:
                runs[-1] = (point, runs[-1][1])
            else:
                runs.append((point, point))
        return tuple(runs)


def _range(values: list[float]) -> tuple[float | None, tuple[float, float] | None, float]:
    r"""Median, median -+ 2 spreads and the spread of daily values.

    .. math:: s = 1.4826 \\, \\mathrm{med}_i |x_i - \\mathrm{med}(x)|

    The factor makes s the standard deviation of normal values (Rousseeuw & Croux 1993,
    JASA 88:1273). The band does not go below zero: nothing measured here can.
    """
    if len(values) < _LEAST_FOR_RANGE:
        return None, None, float("inf")
    days = np.array(values)
    middle = float(np.median(days))
    spread = _NORMAL_SPREAD_OF_MAD * float(np.median(np.abs(days - middle)))
    return middle, (max(0.0, middle - _BAND_SPREADS * spread), middle + _BAND_SPREADS * spread), spread


def _moments(reader: Reader, home: Household, pets: frozenset[str], first: str, last: str) -> tuple[Moment, ...]:
    """Food changes, zero presses, log entries and notes of these pets and the home, by time."""
    start_ms, end_ms = day_interval(first, home.zones).start_ms, day_interval(last, home.zones).end_ms
    found = [
        (event.start_ms, event.ref)
        for event in reader.events(home, _CHANGE_KINDS, start_ms=start_ms, end_ms=end_ms)
        if event.pets & pets
    ]
    found += [
        (text.at_ms, text.ref)
        for text in reader.texts(_WRITTEN_KINDS, until_ms=end_ms - 1)
        if text.at_ms is not None and text.at_ms >= start_ms and (text.pet is None or text.pet in pets)
    ]
    return tuple(
        Moment(number=number, date=local_day(at_ms, home.zones), text=heading(reader, ref), ref=ref)
        for number, (at_ms, ref) in enumerate(sorted(found), start=1)
    )


def _note(*, heard: float, today: bool, set_aside: str | None) -> str:
    if set_aside is not None:
        return f"not counted: {set_aside}"
    if today:
        return "not over yet"
    if heard == 0.0:
        return "not recorded"
    return "heard too little of the day" if heard < LEAST_COVERAGE else ""


def _points(
    rows: tuple[DayRow, ...], home: Household, observed: Property, first: str, last: str, *, now_ms: int
) -> tuple[Point, ...]:
    grid = grid_of(
        rows,
        first,
        last,
        zones=home.zones,
        now_ms=now_ms,
        unit=observed.unit,
        kind=observed.kind,
        night_only=observed.night_only,
    )
    stored = {row.date: row for row in rows}
    level = observed.kind == "level"
    points = []
    for date, total, heard in zip(grid.dates, grid.day_totals(), grid.coverage(), strict=True):
        row = stored.get(date)
        today = date == last
        share = 1.0 if level and heard > 0 else float(heard)
        note = _note(heard=share, today=today and not level, set_aside=None if row is None else row.set_aside)
        value = None if note else float(total) / share
        points.append(Point(date, value, float(heard), note, far=False, ref=None if row is None else row.ref))
    return tuple(points)


def read_trend(reader: Reader, series_id: str, *, now_ms: int) -> Trend | None:
    """The 90 local days that end with today's, or None where there is no such series."""
    series = next((known for known in reader.all_series() if known.id == series_id), None)
    ontology = load()
    if series is None or series.property not in ontology.properties:
        return None
    home, observed = reader.household(), ontology.properties[series.property]
    last = local_day(now_ms, home.zones)
    first = add_days(last, 1 - TREND_DAYS)
    points = _points(reader.days(series.id, first, last), home, observed, first, last, now_ms=now_ms)
    middle, band, spread = _range([point.value for point in points if point.value is not None])
    marked = tuple(
        point
        if middle is None or point.value is None or abs(point.value - middle) <= _FAR_SPREADS * spread
        else Point(point.date, point.value, point.heard, point.note, far=True, ref=point.ref)
        for point in points
    )
    pet = pets_words(series.pet, home)
    return Trend(
        title=f"{pet}: {observed.owner}",
        pet=pet,
        noun=first_upper(observed.owner),
        unit=series.unit,
        level=observed.kind == "level",
        points=marked,
        median=middle,
        band=band,
        moments=_moments(reader, home, frozenset(series.pet.split("+")), first, last),
        caveat=observed.caveat,
    )
