"""The window grammar: time words of a question in, half-open local windows out.

Own, because the known date parsers read "since Friday" as next Friday. Prefers the past: a
weekday or a date without a year is the last one that has begun. A bare month name is never a
date. Every window is cut at local midnight of the home's zones and ends at ``now`` at the
latest; what cannot have begun yet has a label and no window. Never reads a clock.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from gateway.measure.days import (
    HOUR_MS,
    add_days,
    day_interval,
    instant_of,
    local_day,
    night_interval,
)
from gateway.model import Interval, Window, ZonePeriod
from gateway.ontology.language import TimeWords
from gateway.ontology.recognise import Token

__all__ = ["Calendar", "TimeSpan", "read_times", "whole_month", "window_of"]

_STATES = frozenset({"NOW", "NEXT", "NIGHT"})
"""Labels that name no stretch of time of their own."""

_HABITUAL = {"ALL_DAY": "TODAY", "IN_THE_NIGHT": "LAST_NIGHT"}
"""Expressions that mean the last such stretch, or every one of a habit ("he paces in the night")."""

_DAYS_OF = {"day": 1, "week": 7, "month": 30, "year": 365}
_LONGEST_DAYS = 3650
"""Ten years: the longest "last N days" a question may name; nobody's hub is older."""

_LENGTH = re.compile(r"P(?:(?P<days>[0-9]{1,6})D|T(?P<hours>[0-9]{1,6})H)")

_ALSO_WORDS = frozenset({"sat", "sun", "wed"})
_DAY_LEADS = frozenset(
    {"on", "last", "since", "this", "until", "till", "before", "after", "from", "to", "and", "by", "or"}
)
_DAY_PARTS = frozenset({"morning", "afternoon", "evening", "am", "pm", "lunchtime"})
_NO_DAY_AFTER = frozenset({"on", "down", "there", "in", "by", "next", "with", "at", "beside", "up"})
"""Around "sat", "sun", "wed": what makes them a day, and what makes them a verb or the sun."""

_SATURDAY = 5
"""On a weekend "last weekend" is the one before; on a weekday it is the one just over."""

_BEFORE_DAYS = 28
"""How far back "before July 5" looks: the days a comparison needs."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The asker's now, in the home's zones; ``month_first`` reads 7/3 as July 3."""

    now_ms: int
    zones: tuple[ZonePeriod, ...]
    month_first: bool = False

    @property
    def today(self) -> str:
        """The local day that holds the instant before now, so that no window is empty."""
        return local_day(self.now_ms - 1, self.zones)

    def back(self, days: int) -> str:
        """The date ``days`` before today."""
        return add_days(self.today, -days)


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time expression: tokens ``[first, last)``, its label and window.

    ``event`` names the stored event a symbolic window starts at; ``around`` holds for
    "before/after the food change". ``night`` holds where the words also said night, ``habit``
    where they said "all day" or "in the night" and no date: the last one, or each one of a habit.
    """

    first: int
    last: int
    label: str
    window: Window | None = None
    event: str | None = None
    around: bool = False
    night: bool = False
    habit: bool = False


@dataclass(frozen=True, slots=True)
class _Point:
    """Local days ``first_date .. last_date`` named by ``count`` tokens."""

    count: int
    first_date: str
    last_date: str


@dataclass(frozen=True, slots=True)
class _Reader:
    tokens: Sequence[Token]
    words: TimeWords
    calendar: Calendar

    def text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def joint(self, index: int, name: str) -> int:
        """Tokens of the joint word (since, after...) that begins here; 0 if none."""
        if not 0 <= index < len(self.tokens):
            return 0
        for count, readings in self.words.joints.at(self.tokens, index):
            if any(reading.target == name for reading in readings):
                return count
        return 0

    def skip_fillers(self, index: int, most: int = 3) -> int:
        while most and self.text(index) in self.words.fillers:
            index, most = index + 1, most - 1
        return index


# --- windows of labels ----------------------------------------------------------------------


def _window(label: str, calendar: Calendar, first: str, last: str, interval: Interval | None = None) -> Window | None:
    """The window of local days ``first .. last``, ended at now; None where it has not begun."""
    zones = calendar.zones
    if interval is None:
        interval = Interval(day_interval(first, zones).start_ms, day_interval(last, zones).end_ms)
    end = min(interval.end_ms, calendar.now_ms)
    if interval.start_ms >= end:
        return None
    return Window(
        label, Interval(interval.start_ms, end), local_day(interval.start_ms, zones), local_day(end - 1, zones)
    )


def _part_of_day(day: str, first_hour: int, last_hour: int, zones: tuple[ZonePeriod, ...]) -> Interval:
    start = day_interval(day, zones).start_ms if first_hour == 0 else instant_of(day, first_hour * 60, zones).at_ms
    return Interval(start, max(start, instant_of(day, last_hour * 60, zones).at_ms))


_PARTS = {"MORNING": (0, 12), "AFTERNOON": (12, 18), "EVENING": (18, 24)}


def _named_part(label: str, calendar: Calendar) -> Window | None:
    """THIS_MORNING, YESTERDAY_EVENING...: the last such part that has begun."""
    when, _, part = label.rpartition("_")
    day = calendar.today if when == "THIS" else calendar.back(1)
    for candidate in (day, add_days(day, -1)):
        span = _part_of_day(candidate, *_PARTS[part], calendar.zones)
        window = _window(label, calendar, candidate, candidate, span)
        if window is not None:
            return window
    return None


def _night(label: str, calendar: Calendar, day: str) -> Window | None:
    return _window(label, calendar, day, day, night_interval(day, calendar.zones))


def _weekend(calendar: Calendar, weeks_back: int) -> tuple[str, str]:
    today = date.fromisoformat(calendar.today)
    saturday = calendar.back((today.weekday() - 5) % 7)
    saturday = add_days(saturday, -7 * weeks_back)
    return saturday, add_days(saturday, 1)


def window_of(label: str, calendar: Calendar) -> Window | None:
    """The window of a plain label (``P7D``, ``LAST_NIGHT``, ``2026-07-03``, ``SINCE:...``).

    P7D is today and the six local days before; PREV_WEEK the seven before those; RECENT is
    P7D, and so is the stretch whose nights NIGHT means; night is 21:00-07:00, dated by its
    start; mornings end at noon. Symbolic labels (``SINCE:food_change``, NOW, NEXT) have none.
    """
    today = calendar.today
    trailing = {"P7D": (6, 0), "RECENT": (6, 0), "NIGHT": (6, 0), "PREV_WEEK": (13, 7), "PREV_MONTH": (59, 30)}
    trailing |= {"TODAY": (0, 0), "YESTERDAY": (1, 1), "DAY_BEFORE_YESTERDAY": (2, 2)}
    name = label.partition(":")[2] if label.startswith("NIGHT:P") else label
    if name in trailing:
        first, last = trailing[name]
        return _window(label, calendar, calendar.back(first), calendar.back(last))
    length = _LENGTH.fullmatch(name)
    if length is not None:
        count = int(length["days"] or length["hours"])
        if not 0 < count <= _LONGEST_DAYS * (24 if length["hours"] else 1):
            return None
        if length["days"]:
            return _window(label, calendar, calendar.back(count - 1), today)
        start = calendar.now_ms - count * HOUR_MS
        return _window(label, calendar, today, today, Interval(start, calendar.now_ms))
    if name == "LAST_NIGHT":
        return _night(label, calendar, calendar.back(1))
    if name == "TONIGHT":
        return _night(label, calendar, today) or _night(label, calendar, calendar.back(1))
    if name.rpartition("_")[2] in _PARTS:
        return _named_part(label, calendar)
    return _dated_window(name, label, calendar)


def _dated_window(name: str, label: str, calendar: Calendar) -> Window | None:
    prefix, _, rest = name.rpartition(":")
    first, _, last = rest.partition("/")
    if not _is_date(first) or (last and not _is_date(last)):
        return None
    if prefix == "SINCE":
        return _window(label, calendar, first, max(first, calendar.today))
    if prefix == "BEFORE":
        return _window(label, calendar, add_days(first, -_BEFORE_DAYS), add_days(first, -1))
    if prefix == "NIGHT":
        return _night(label, calendar, first)
    if prefix:
        return None
    return _window(label, calendar, first, last or first) if first <= (last or first) else None


def _is_date(text: str) -> bool:
    try:
        day = date.fromisoformat(text)
        return day.isoformat() == text and day < date.max  # a day ends where the next begins
    except ValueError:
        return False


# --- points in time -------------------------------------------------------------------------


def _past_date(calendar: Calendar, month: int, day: int, year: int | None = None) -> str | None:
    """The ISO date, of the last year in which it has begun where none is given."""
    this_year = int(calendar.today[:4])
    # eight years back always hold a February 29
    for candidate in [year] if year is not None else range(this_year, this_year - 9, -1):
        try:
            found = date(candidate, month, day).isoformat()
        except ValueError:
            continue
        if year is not None or found <= calendar.today:
            return found
    return None


def _small_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def _year_at(reader: _Reader, index: int) -> tuple[int, int | None]:
    """(tokens, year) of ", 2025" or "2025" at index; (0, None) where no year stands there."""
    skipped = 1 if reader.text(index) == "," else 0
    number = _small_number(reader.text(index + skipped))
    if number is not None and 1990 <= number <= 2100:
        return skipped + 1, number
    return 0, None


def _month_and_day(reader: _Reader, index: int) -> _Point | None:
    """Read "Jul 3", "July 3rd, 2025", "3 July", "3. Juli", "3 de julio", "July 1-5"."""
    words, months = reader.words, reader.words.months
    if reader.text(index) in months:
        month, at = months[reader.text(index)], index + 1
        at += reader.text(at) == "." or reader.text(at) == "the"
        first, dash, last = reader.text(at).partition("-")
        day, end = _small_number(first), _small_number(last) if dash else None
        at += 1
        at += reader.text(at) in words.ordinals
    else:
        day, end, at = _small_number(reader.text(index)), None, index + 1
        at += reader.text(at) in words.ordinals or reader.text(at) == "."
        at += reader.text(at) in {"of", "de"}
        if day is None or reader.text(at) not in months:
            return None
        month, at = months[reader.text(at)], at + 1
    if day is None or (reader.text(index) in months and reader.text(at) in words.units):
        return None  # "in May 3 meals ...", and never a bare month
    years, year = _year_at(reader, at)
    found = _past_date(reader.calendar, month, day, year)
    if found is None:
        return None
    last_date = _past_date(reader.calendar, month, end, int(found[:4])) if end is not None else found
    if last_date is None or last_date < found:
        return None
    return _Point(at + years - index, found, last_date)


def _numeric_date(reader: _Reader, index: int) -> _Point | None:
    """Read "2026-07-03", "7/3" and "3.7.", month first only where the home writes it so."""
    text = reader.text(index)
    if _is_date(text):
        return _Point(1, text, text)
    mark = "/" if "/" in text else "."
    parts = [_small_number(part) for part in text.split(mark)]
    if len(parts) not in {2, 3} or None in parts:
        return None
    if mark == "." and len(parts) == 2 and reader.text(index + 1) != ".":
        return None  # 3.7 is a number unless written "3.7."
    one, two = int(parts[0] or 0), int(parts[1] or 0)
    month, day = (one, two) if reader.calendar.month_first and mark == "/" else (two, one)
    year = parts[2] if len(parts) == 3 else None
    if year is not None and year < 100:
        year += 2000
    found = _past_date(reader.calendar, month, day, year)
    return _Point(1, found, found) if found is not None else None


def _weekday(reader: _Reader, index: int) -> _Point | None:
    """Read "Friday", "last Friday": the last one before today."""
    at = index + reader.joint(index, "last")
    wanted = reader.words.weekdays.get(reader.text(at))
    if wanted is None or (reader.text(at) in _ALSO_WORDS and not _stands_as_a_day(reader, index, at)):
        return None
    back = (date.fromisoformat(reader.calendar.today).weekday() - wanted) % 7 or 7
    day = reader.calendar.back(back)
    return _Point(at + 1 - index, day, day)


def _stands_as_a_day(reader: _Reader, index: int, at: int) -> bool:
    """Whether a short weekday that is also a word stands where a day does: "sat night", not "sat on the floor"."""
    before, after = reader.text(index - 1), reader.text(at + 1)
    ends = not after or not after[0].isalnum()
    led = at > index or before in _DAY_LEADS or not before or not before[0].isalnum()
    return ends or after in reader.words.nights or after in _DAY_PARTS or (led and after not in _NO_DAY_AFTER)


def _of_month(reader: _Reader, index: int) -> _Point | None:
    """Read "the 3rd": the last 3rd of a month that has begun."""
    day = _small_number(reader.text(index + 1))
    if reader.text(index) != "the" or day is None or reader.text(index + 2) not in reader.words.ordinals:
        return None
    today = reader.calendar.today
    month, year = int(today[5:7]), int(today[:4])
    for _ in range(12):
        try:
            found = date(year, month, day).isoformat()
        except ValueError:
            found = "9999"
        if found <= today:
            return _Point(3, found, found)
        year, month = (year - 1, 12) if month == 1 else (year, month - 1)
    return None


def _number_at(reader: _Reader, index: int) -> tuple[int, int] | None:
    """(tokens, value) of "7", "seven", "a couple of"."""
    for count in (3, 2, 1):
        phrase = " ".join(reader.text(index + offset) for offset in range(count))
        if phrase in reader.words.numbers:
            return count, reader.words.numbers[phrase]
    number = _small_number(reader.text(index))
    return None if number is None else (1, number)


def _ago(reader: _Reader, index: int) -> _Point | None:
    """Read "two days ago", "hace dos dias", "vor zwei Tagen"."""
    lead = reader.joint(index, "ago_before")
    number = _number_at(reader, index + lead)
    if number is None:
        return None
    at = index + lead + number[0]
    unit = reader.words.units.get(reader.text(at))
    tail = 0 if lead else reader.joint(at + 1, "ago")
    if unit is None or unit == "hour" or not (lead or tail) or number[1] * _DAYS_OF[unit] > _LONGEST_DAYS:
        return None
    day = reader.calendar.back(number[1] * _DAYS_OF[unit])
    return _Point(at + 1 + tail - index, day, day)


_DAY_LABELS = frozenset({"TODAY", "YESTERDAY", "DAY_BEFORE_YESTERDAY", "P7D", "PREV_WEEK", "P30D", "PREV_MONTH"})


def _fixed_point(reader: _Reader, index: int) -> _Point | None:
    for count, readings in reader.words.fixed.at(reader.tokens, index) if index < len(reader.tokens) else ():
        label = readings[0].target
        if label in {"WEEKEND", "LAST_WEEKEND"}:
            today = date.fromisoformat(reader.calendar.today).weekday()
            return _Point(count, *_weekend(reader.calendar, label == "LAST_WEEKEND" and today >= _SATURDAY))
        window = window_of(label, reader.calendar) if label in _DAY_LABELS else None
        if window is not None:
            return _Point(count, window.first_date, window.last_date)
    return None


def _point(reader: _Reader, index: int) -> _Point | None:
    for rule in (_month_and_day, _numeric_date, _weekday, _of_month, _ago, _fixed_point):
        found = rule(reader, index)
        if found is not None:
            return found
    return None


# --- expressions ----------------------------------------------------------------------------


def _span(reader: _Reader, first: int, last: int, label: str) -> TimeSpan:
    return TimeSpan(first, last, label, window_of(label, reader.calendar))


def _between(reader: _Reader, index: int) -> TimeSpan | None:
    """Read "between July 1 and July 5", "from Monday to Wednesday"."""
    lead = reader.joint(index, "between")
    if not lead:
        return None
    start_at = reader.skip_fillers(index + lead)
    start = _point(reader, start_at)
    if start is None:
        return None
    joint_at = start_at + start.count
    joint = reader.joint(joint_at, "and")
    end_at = reader.skip_fillers(joint_at + joint)
    end = _point(reader, end_at) if joint else None
    if end is None:
        return None
    if end.last_date < start.first_date and reader.text(start_at) in reader.words.weekdays:
        start = _Point(start.count, add_days(start.first_date, -7), add_days(start.last_date, -7))
    if end.last_date < start.first_date:
        return None
    return _span(reader, index, end_at + end.count, f"{start.first_date}/{end.last_date}")


def _since(reader: _Reader, index: int) -> TimeSpan | None:
    """Read "since Friday", "since July 5", "after the weekend", "before July 5", "since we changed food"."""
    for name in ("since", "after", "before"):
        lead = reader.joint(index, name)
        if not lead:
            continue
        at = reader.skip_fillers(index + lead)
        found = _since_event(reader, index, at, name) or _since_point(reader, index, at, name)
        if found is not None:
            return found
    return None


def _since_point(reader: _Reader, index: int, at: int, name: str) -> TimeSpan | None:
    point, last = _point(reader, at), at
    if point is None:  # the filler may have been part of the phrase: "since the weekend"
        return None
    last += point.count
    if name != "since" and reader.joint(index - 2, "before"):  # "before or after July 5"
        return TimeSpan(index, last, f"AROUND:{point.first_date}", None, around=True)
    if name == "since":
        return _span(reader, index, last, f"SINCE:{point.first_date}")
    if name == "after":
        return _span(reader, index, last, f"SINCE:{add_days(point.last_date, 1)}")
    return _span(reader, index, last, f"BEFORE:{point.first_date}")


def _since_event(reader: _Reader, index: int, at: int, name: str) -> TimeSpan | None:
    for begin in range(min(at, len(reader.tokens)), min(at + 4, len(reader.tokens))):
        for count, readings in reader.words.events.at(reader.tokens, begin):
            event = readings[0].target
            label = f"SINCE:{event}" if name == "since" else f"AROUND:{event}"
            return TimeSpan(index, begin + count, label, None, event, around=name != "since")
        if _point(reader, begin) is not None:
            return None
    return None


def _last_n(reader: _Reader, index: int) -> TimeSpan | None:
    """Read "the last 30 days", "past two weeks", "last 24 hours", "last few days"."""
    lead = reader.joint(index, "last")
    number = _number_at(reader, index + lead) if lead else None
    if lead and number is None and reader.words.units.get(reader.text(index + lead)) == "hour":
        number = (0, 1)
    if number is None:
        return None
    at = index + lead + number[0]
    unit = reader.words.units.get(reader.text(at))
    if unit is None or number[1] == 0:
        return None
    if unit == "hour":
        return _span(reader, index, at + 1, f"PT{number[1]}H")
    days = number[1] * _DAYS_OF[unit]
    return _span(reader, index, at + 1, f"P{days}D") if days <= _LONGEST_DAYS else None


def _dated(reader: _Reader, index: int) -> TimeSpan | None:
    """A point on its own, "Friday night" included."""
    point = _point(reader, index)
    if point is None or _labelled(reader, index, point.count):
        return None
    last = index + point.count
    if reader.text(last) in reader.words.nights and point.first_date == point.last_date:
        return _span(reader, index, last + 1, f"NIGHT:{point.first_date}")
    label = point.first_date if point.first_date == point.last_date else f"{point.first_date}/{point.last_date}"
    return _span(reader, index, last, label)


def _labelled(reader: _Reader, index: int, count: int) -> bool:
    """Whether a fixed phrase with a label of its own covers at least these tokens."""
    longest = next(iter(reader.words.fixed.at(reader.tokens, index)), None)
    return longest is not None and longest[0] >= count and not longest[1][0].target.endswith("WEEKEND")


def whole_month(
    tokens: Sequence[Token], words: TimeWords, calendar: Calendar, *, leads: Container[str] | None = None
) -> Window | None:
    """The month a purchase is asked about ("in June", "im Juni", "in May 2025"): the last one that has begun.

    Only where nothing but dates can be meant, or behind one of ``leads`` ("in June", never "he may"); elsewhere
    a bare month name is never a date.
    """
    reader = _Reader(tokens, words, calendar)
    for index, token in enumerate(tokens):
        month = words.months.get(token.text)
        if month is None or index == 0 or tokens[index - 1].text not in (words.fillers if leads is None else leads):
            continue
        _, year = _year_at(reader, index + 1)
        first = _past_date(calendar, month, 1, year)
        if first is not None:
            last = add_days(f"{int(first[:4]) + month // 12}-{month % 12 + 1:02d}-01", -1)
            return window_of(f"{first}/{last}", calendar)
    return None


def _fixed(reader: _Reader, index: int) -> TimeSpan | None:
    for count, readings in reader.words.fixed.at(reader.tokens, index):
        said = readings[0].target
        label = _HABITUAL.get(said, said)
        window = window_of(label, reader.calendar)
        return TimeSpan(index, index + count, label, window, night=label == "NIGHT", habit=said in _HABITUAL)
    return None


_RULES = (_between, _since, _last_n, _dated, _fixed)


def read_times(tokens: Sequence[Token], words: TimeWords, calendar: Calendar) -> tuple[TimeSpan, ...]:
    """Every time expression of a question, left to right, not overlapping.

    Parameters
    ----------
    tokens : sequence of Token
        The folded question.
    words : TimeWords
        The words of its language.
    calendar : Calendar
        Now, and the home's zones.
    """
    reader = _Reader(tokens, words, calendar)
    found: list[TimeSpan] = []
    index = 0
    while index < len(tokens):
        word = tokens[index].text
        possible = word in words.starts or word[0].isdigit()
        span = next((hit for rule in _RULES if (hit := rule(reader, index)) is not None), None) if possible else None
        if span is None:
            index += 1
            continue
        found.append(span)
        index = span.last
    assert all(one.last <= other.first for one, other in pairwise(found))
    if any(not span.habit and span.label not in _STATES for span in found):  # "all day yesterday"
        found = [span for span in found if not span.habit]
    return tuple(found)
