"""How figures, dates and names read to an owner. Stored units in, words out.

Grams, kilograms, seconds, minutes and hours exist only here. Nothing here knows what a
question was; no function looks anything up.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.model import Pet

__all__ = [
    "amount",
    "being",
    "clock_time",
    "count_word",
    "counted",
    "day",
    "day_range",
    "done",
    "first_upper",
    "is_or_are",
    "joined",
    "per_day",
    "percent",
    "percent_range",
    "possessive",
    "pronoun",
    "usual_of",
    "weekday",
]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECOND_MS, _MINUTE_MS, _HOUR_MS = 1000, 60_000, 3_600_000
_SECONDS_BELOW_MS = 10 * _MINUTE_MS
"""Up to ten minutes read in seconds: "139 s a day" can be checked against the rows."""
_MINUTES_BELOW_MS = 3 * _HOUR_MS
_KG_FROM_MG = 1_000_000
_SMALL_MG = 10_000
"""Below 10 g one decimal is shown: bowls weigh to 0.1 g."""


def _trim(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: float, unit: str) -> str:
    """A stored figure in an owner's unit: mg as g or kg, ms as s, min or h.

    Parameters
    ----------
    value : float
        In ``unit``.
    unit : str
        ``mg``, ``ms``, ``count``, ``permille``, ``mK``, ``mg/min`` or ``kcal``.
    """
    if unit == "mg":
        if abs(value) >= _KG_FROM_MG:
            return f"{_trim(value / 1e6, 2 if abs(value) < 10 * _KG_FROM_MG else 1)} kg"
        return f"{_trim(value / 1e3, 1 if abs(value) < _SMALL_MG else 0)} g"
    if unit == "ms":
        return _duration(value)
    if unit == "permille":
        return f"{value / 10:.0f} %"
    if unit == "mK":
        return f"{value / 1000 - 273.15:.1f} °C"
    if unit == "mg/min":
        return f"{_trim(value / 1e3, 1)} g a minute"
    if unit == "count":
        return _trim(value, 1)
    return f"{_trim(value, 1 if abs(value) < 10 else 0)} {unit}"


def _duration(value_ms: float) -> str:
    size = abs(value_ms)
    if size < _SECONDS_BELOW_MS:
        return f"{_trim(value_ms / _SECOND_MS, 0)} s"
    if size < _MINUTES_BELOW_MS:
        return f"{_trim(value_ms / _MINUTE_MS, 0)} min"
    return f"{_trim(value_ms / _HOUR_MS, 1)} h"


def _unit_step(value: float, unit: str) -> float:
    """The step the owner's unit of ``value`` counts in, in stored units."""
    if unit != "ms":
        return 0.0
    if abs(value) < _SECONDS_BELOW_MS:
        return _SECOND_MS
    return _MINUTE_MS if abs(value) < _MINUTES_BELOW_MS else _HOUR_MS


def usual_of(value: float, like: float, unit: str) -> str:
    """A figure in the unit its neighbour ``like`` was shown in, without repeating the unit."""
    step = _unit_step(like, unit)
    if step == 0.0:
        shown, other = amount(value, unit), amount(like, unit)
        number, _, word = shown.partition(" ")
        return number if other.endswith(f" {word}") else shown
    return _trim(value / step, 1 if step == _HOUR_MS else 0)


def per_day(value: float, unit: str) -> str:
    """A daily rate: "139 s a day", "212 g a day"; a level (weight, battery) has no "a day"."""
    return f"{amount(value, unit)} a day"


def percent(change: float) -> str:
    """A fraction as whole percent without sign: 0.402 -> "40 %"."""
    return f"{abs(round(change * 100)):d} %"


def percent_range(interval: tuple[float, float]) -> str:
    """An interval of change in words: both up "29 to 52 %", mixed "-7 to +11 %"."""
    low, high = (round(edge * 100) for edge in interval)
    if low >= 0 and high >= 0:
        return f"{low} to {high} %"
    if low <= 0 and high <= 0:
        return f"{-high} to {-low} %"
    return f"{low:+d} to {high:+d} %".replace("-", "\N{MINUS SIGN}")


def day(iso: str, *, year_of: str | None = None) -> str:
    """An ISO date as "Jul 8"; with the year where it differs from ``year_of``'s."""
    when = date.fromisoformat(iso)
    text = f"{_MONTHS[when.month - 1]} {when.day}"
    return text if year_of is None or year_of[:4] == iso[:4] else f"{text} {when.year}"


def weekday(iso: str) -> str:
    """The day of the week of an ISO date: "Sat"."""
    return ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[date.fromisoformat(iso).weekday()]


def day_range(first: str, last: str, *, year_of: str | None = None) -> str:
    """Two ISO dates as "Jul 8-14" or "Jun 28-Jul 4"; one date where they are equal."""
    if first == last:
        return day(first, year_of=year_of)
    one, other = date.fromisoformat(first), date.fromisoformat(last)
    if (one.year, one.month) == (other.year, other.month) and (year_of is None or year_of[:4] == first[:4]):
        return f"{_MONTHS[one.month - 1]} {one.day}\N{EN DASH}{other.day}"
    return f"{day(first, year_of=year_of)}\N{EN DASH}{day(last, year_of=year_of)}"


def clock_time(local: datetime) -> str:
    """Hours and minutes on the home's wall: "18:05"."""
    return f"{local.hour:02d}:{local.minute:02d}"


def possessive(pet: Pet) -> str:
    """Say "his" or "her" where the sex is on file, else "Max's"."""
    if pet.sex in ("male", "m"):
        return "his"
    if pet.sex in ("female", "f"):
        return "her"
    return f"{pet.name}'s" if not pet.name.endswith("s") else f"{pet.name}'"


def pronoun(pet: Pet) -> str:
    """Say "he" or "she" where the sex is on file, else the name."""
    return {"male": "he", "m": "he", "female": "she", "f": "she"}.get(pet.sex or "", pet.name)


def joined(words: Sequence[str], *, last: str = "and") -> str:
    """Enumerate: "a", "a and b", "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def is_or_are(names: Sequence[str]) -> str:
    """The verb behind these names: "rest is", "meals are", "breaths a minute asleep are"."""
    if len(names) != 1:
        return "are"
    words = names[0].split()
    return "are" if any(word.endswith("s") and not word.endswith("ss") for word in (words[0], words[-1])) else "is"


def being(name: str) -> str:
    """The name with its verb: "rest is", "meals are"."""
    return f"{name} {is_or_are([name])}"


def count_word(number: int) -> str:
    """Small counts as words: "two", "three"."""
    words = ("no", "one", "two", "three", "four", "five", "six")
    return words[number] if 0 <= number < len(words) else str(number)


def counted(names: str, number: float) -> str:
    """A number of what ``names`` says in the plural: "3 litter box visits", "1 meal"."""
    return f"{_trim(number, 1)} {names.removesuffix('s') if number == 1 else names}"


def done(verb: str, names: str, number: float) -> str:
    """What was done so often: "had 3 meals" where the verb names what is counted, else "used the litter box twice"."""
    if verb.endswith(f" {names}"):
        return f"{verb.removesuffix(names)}{counted(names, number)}"
    times = {1: "once", 2: "twice"}.get(int(number)) if number == int(number) else None
    return f"{verb} {times or f'{_trim(number, 1)} times'}"


def first_upper(text: str) -> str:
    """The text with its first letter raised, the rest untouched."""
    return text[:1].upper() + text[1:]
