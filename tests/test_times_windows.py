"""The window grammar: a table of phrases, on DST days and calendar edges, in three zones."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.ask.times import Calendar, read_times, window_of
from gateway.measure.days import day_interval, local_day
from gateway.model import ZonePeriod
from gateway.ontology.load import languages
from gateway.ontology.recognise import tokens_of

EN, ES, DE = languages()
UNITS = ("day", "days", "week", "weeks", "month", "months")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "February", "Mar", "April", "May", "June", "Jul", "August", "Sep", "October", "November", "Dec")
PHRASES = (
    "today", "yesterday", "the day before yesterday", "last night", "tonight", "this morning", "this afternoon",
    "this evening", "yesterday morning", "yesterday afternoon", "yesterday evening", "this week", "last week",
    "this month", "last month", "this year", "lately", "recently", "these days", "at night", "every night",
    "this weekend", "the weekend", "last weekend", "since the weekend", "after the weekend", "since yesterday",
    "the last 24 hours", "in the past 48 hours", "in the last hour", "the past 3 days", "over the last 30 days", "last two weeks",
    "the last couple of weeks", "a few days ago", "a couple of days ago", "the previous 5 days", "past six months",
    *(f"on {name}" for name in WEEKDAYS), *(f"last {name}" for name in WEEKDAYS), *(f"since {name}" for name in WEEKDAYS),
    *(f"{name} night" for name in WEEKDAYS), *(f"since last {name}" for name in WEEKDAYS),
    *(f"{name} {day}" for name in MONTHS for day in (1, 15, 28)), *(f"since {name} 3" for name in MONTHS),
    *(f"the {day}th of {name}" for name in MONTHS for day in (10,)), *(f"before {name} 5" for name in MONTHS),
    *(f"{n} {unit} ago" for n in (1, 2, 5) for unit in UNITS), *(f"last {n} {unit}" for n in (1, 2, 9) for unit in UNITS),
    "between July 1 and July 5", "from Monday to Wednesday", "between March 5 and yesterday", "July 1-5",
    "2026-03-08", "since 2026-03-08", "3/8", "3/8/2026", "the last 12 hours", "five days ago", "ten days ago", "three weeks ago", "past week", "past month", "nightly", "since this morning", "since last night", "this year", "the 3rd", "on the 29th", "Feb 29", "from July 1 until today",
)  # fmt: skip
ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe")
NOWS = (
    "2026-03-08T01:30", "2026-03-08T03:30", "2026-03-09T00:00", "2026-03-29T12:00", "2026-11-01T01:30",
    "2026-11-01T23:59", "2026-10-25T02:30", "2026-10-04T02:15", "2026-04-05T01:45", "2026-01-01T00:00",
    "2026-01-01T00:00:01", "2026-12-31T23:59:59", "2026-02-28T18:00", "2028-02-29T08:00", "2026-07-14T18:00",
    "2026-07-13T00:00", "2026-07-12T22:30", "2026-08-31T06:59",
)  # fmt: skip


def calendar(zone: str, now: str, *, month_first: bool = True) -> Calendar:
    at = datetime.fromisoformat(now).replace(tzinfo=ZoneInfo(zone))
    return Calendar(int(at.timestamp() * 1000), (ZonePeriod(zone, 0),), month_first)


CASES = calendar("America/New_York", "2026-07-14T18:00")


def labels(text: str, words=EN.times, at: Calendar = CASES) -> list[str]:
    return [span.label for span in read_times(tokens_of(text), words, at)]


def test_the_table_holds_200_phrases_and_each_is_read():
    assert len(set(PHRASES)) >= 200
    for phrase in PHRASES:
        assert labels(phrase), phrase


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("now", NOWS)
def test_every_window_is_half_open_and_ends_by_now(zone, now):
    at = calendar(zone, now)
    for phrase in PHRASES:
        for span in read_times(tokens_of(phrase), EN.times, at):
            if span.window is None:
                continue
            window = span.window.interval
            assert window.start_ms < window.end_ms <= at.now_ms, phrase
            assert span.window.first_date == local_day(window.start_ms, at.zones)
            assert span.window.last_date == local_day(window.end_ms - 1, at.zones)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("now", NOWS)
def test_weeks_are_local_days_and_tile_without_gap(zone, now):
    at = calendar(zone, now)
    this, last = window_of("P7D", at), window_of("PREV_WEEK", at)
    assert last.interval.end_ms == this.interval.start_ms
    assert this.interval.start_ms == day_interval(at.back(6), at.zones).start_ms
    assert this.interval.end_ms == at.now_ms


@pytest.mark.parametrize(
    ("phrase", "label", "first", "last"),
    [
        ("this week", "P7D", "2026-07-08", "2026-07-14"),
        ("last week", "PREV_WEEK", "2026-07-01", "2026-07-07"),
        ("this month", "P30D", "2026-06-15", "2026-07-14"),
        ("since Friday", "SINCE:2026-07-10", "2026-07-10", "2026-07-14"),
        ("since Tuesday", "SINCE:2026-07-07", "2026-07-07", "2026-07-14"),
        ("on Saturday", "2026-07-11", "2026-07-11", "2026-07-11"),
        ("after the weekend", "SINCE:2026-07-13", "2026-07-13", "2026-07-14"),
        ("July 3", "2026-07-03", "2026-07-03", "2026-07-03"),
        ("Dec 24", "2025-12-24", "2025-12-24", "2025-12-24"),
        ("Feb 29", "2024-02-29", "2024-02-29", "2024-02-29"),
        ("7/3", "2026-07-03", "2026-07-03", "2026-07-03"),
        ("from Monday to Wednesday", "2026-07-06/2026-07-08", "2026-07-06", "2026-07-08"),
        ("last night", "LAST_NIGHT", "2026-07-13", "2026-07-14"),
        ("the last 24 hours", "PT24H", "2026-07-13", "2026-07-14"),
        ("Friday night", "NIGHT:2026-07-10", "2026-07-10", "2026-07-11"),
    ],
)
def test_phrases_prefer_the_past(phrase, label, first, last):
    (span,) = read_times(tokens_of(phrase), EN.times, CASES)
    assert (span.label, span.window.first_date, span.window.last_date) == (label, first, last)


@pytest.mark.parametrize("text", ["in May", "How was June?", "march on", "may he eat", "August", "in July"])
def test_a_bare_month_name_is_never_a_date(text):
    assert labels(text) == []


def test_numbers_are_read_day_first_outside_the_united_states():
    assert labels("7/3", at=calendar("Europe/Berlin", "2026-07-14T18:00", month_first=False)) == ["2026-03-07"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("since we changed food", "SINCE:food_change"),
        ("since her vet visit", "SINCE:vet_visit"),
        ("since the flea treatment", "SINCE:flea_treatment"),
        ("before and after the food switch", "AROUND:food_change"),
        ("before or after July 5", "AROUND:2026-07-05"),
    ],
)
def test_events_stay_symbolic_for_the_records_to_resolve(text, label):
    assert labels(text) == [label]
    assert window_of(label, CASES) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("esta semana", "P7D"), ("hace dos días", "2026-07-12"), ("desde el viernes", "SINCE:2026-07-10"),
        ("el 3 de julio", "2026-07-03"), ("los últimos 30 días", "P30D"), ("anoche", "LAST_NIGHT"),
        ("la semana pasada", "PREV_WEEK"), ("desde el cambio de pienso", "SINCE:food_change"),
    ],
)  # fmt: skip
def test_spanish_windows(text, label):
    assert labels(text, ES.times) == [label]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("diese Woche", "P7D"), ("vor zwei Tagen", "2026-07-12"), ("seit Freitag", "SINCE:2026-07-10"),
        ("am 3. Juli", "2026-07-03"), ("in den letzten 30 Tagen", "P30D"), ("letzte Nacht", "LAST_NIGHT"),
        ("letzte Woche", "PREV_WEEK"), ("seit dem Futterwechsel", "SINCE:food_change"),
    ],
)  # fmt: skip
def test_german_windows(text, label):
    assert labels(text, DE.times) == [label]


def test_a_spring_day_is_23_hours_and_an_autumn_day_25():
    spring = window_of("2026-03-08", calendar("America/New_York", "2026-03-09T12:00"))
    autumn = window_of("2026-11-01", calendar("America/New_York", "2026-11-02T12:00"))
    assert (spring.interval.length_ms, autumn.interval.length_ms) == (23 * 3_600_000, 25 * 3_600_000)


@pytest.mark.parametrize(
    "label", ["nonsense", "P0D", "P99999999D", "PTH", "SINCE:", "2026-13-40", "2026-07-05/2026-07-01", ""]
)
def test_a_label_that_means_nothing_has_no_window(label):
    assert window_of(label, CASES) is None
