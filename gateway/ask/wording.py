"""How figures, dates and names read to an owner. Stored units in, words out.

Grams, kilograms, seconds, minutes and hours exist only here. Nothing here knows what a
question was; no function looks anything up. Every result reads in English and knows how it is
said elsewhere (`gateway.ask.said`).
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from gateway.ask.said import Said, say, verbatim, worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.model import Pet
    from gateway.ontology.vocabulary import Property
    from gateway.ontology.wordings import Wordings

__all__ = [
    "amount",
    "clock_time",
    "count_word",
    "counted",
    "counted_of",
    "day",
    "day_range",
    "did",
    "done",
    "done_of",
    "first_lower",
    "first_upper",
    "fixed",
    "joined",
    "listed",
    "number",
    "per_day",
    "percent",
    "percent_range",
    "possessive",
    "pronoun",
    "usual_of",
    "weekday",
    "whose",
]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECOND_MS, _MINUTE_MS, _HOUR_MS = 1000, 60_000, 3_600_000
_SECONDS_BELOW_MS = 10 * _MINUTE_MS
"""Up to ten minutes read in seconds: "139 s a day" can be checked against the rows."""
_MINUTES_BELOW_MS = 3 * _HOUR_MS
_KG_FROM_MG = 1_000_000
_SMALL_MG = 10_000
"""Below 10 g one decimal is shown: bowls weigh to 0.1 g."""


def _digits(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number(value: float, digits: int = 1) -> Said:
    """A figure with at most so many decimals: "1,234.5", in German "1.234,5"."""
    english = _digits(value, digits)
    return Said(english, lambda table: _marked(english, table))


def _marked(english: str, table: Wordings) -> str:
    """English digits with a language's own marks."""
    return english.translate({ord(","): table.thousands, ord("."): table.decimal})


def amount(value: float, unit: str) -> Said:
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
            return _with_unit(number(value / 1e6, 2 if abs(value) < 10 * _KG_FROM_MG else 1), "kg")
        return _with_unit(number(value / 1e3, 1 if abs(value) < _SMALL_MG else 0), "g")
    if unit == "ms":
        return _duration(value)
    if unit == "permille":
        return _with_unit(_whole(value / 10), "%")
    if unit == "mK":
        return _with_unit(fixed(value / 1000 - 273.15, 1), "°C")
    if unit == "mg/min":
        return say("{grams} g a minute", grams=number(value / 1e3, 1))
    if unit == "count":
        return number(value, 1)
    return _with_unit(number(value, 1 if abs(value) < 10 else 0), unit)


def _with_unit(figure: Said, unit: str) -> Said:
    """Units of measure are the same words in every language."""
    return Said(f"{figure} {unit}", lambda table: f"{worded(figure, table)} {unit}")


def _whole(value: float) -> Said:
    return verbatim(f"{value:.0f}")


def fixed(value: float, digits: int) -> Said:
    """A figure with exactly so many decimals: "3.70", in German "3,70"."""
    english = f"{value:.{digits}f}"
    return Said(english, lambda table: _marked(english, table))


def _duration(value_ms: float) -> Said:
    size = abs(value_ms)
    if size < _SECONDS_BELOW_MS:
        return _with_unit(number(value_ms / _SECOND_MS, 0), "s")
    if size < _MINUTES_BELOW_MS:
        return _with_unit(number(value_ms / _MINUTE_MS, 0), "min")
    return _with_unit(number(value_ms / _HOUR_MS, 1), "h")


def _unit_step(value: float, unit: str) -> float:
    """The step the owner's unit of ``value`` counts in, in stored units."""
    if unit != "ms":
        return 0.0
    if abs(value) < _SECONDS_BELOW_MS:
        return _SECOND_MS
    return _MINUTE_MS if abs(value) < _MINUTES_BELOW_MS else _HOUR_MS


def usual_of(value: float, like: float, unit: str) -> Said:
    """A figure in the unit its neighbour ``like`` was shown in, without repeating the unit."""
    step = _unit_step(like, unit)
    if step == 0.0:
        shown, other = amount(value, unit), amount(like, unit)
        figure, _, word = shown.partition(" ")
        if not other.endswith(f" {word}"):
            return shown
        return Said(figure, lambda table: _marked(figure, table))
    return number(value / step, 1 if step == _HOUR_MS else 0)


def per_day(value: float, unit: str) -> Said:
    """A daily rate: "139 s a day", "212 g a day"; a level (weight, battery) has no "a day"."""
    return say("{figure} a day", figure=amount(value, unit))


def percent(change: float) -> Said:
    """A fraction as whole percent without sign: 0.402 -> "40 %"."""
    return verbatim(f"{abs(round(change * 100)):d} %")


def percent_range(interval: tuple[float, float]) -> Said:
    """An interval of change in words: both up "29 to 52 %", mixed "-7 to +11 %"."""
    low, high = (round(edge * 100) for edge in interval)
    if low >= 0 and high >= 0:
        return say("{low} to {high} %", low=low, high=high)
    if low <= 0 and high <= 0:
        return say("{low} to {high} %", low=-high, high=-low)
    signed = (verbatim(f"{edge:+d}".replace("-", "\N{MINUS SIGN}")) for edge in (low, high))
    return say("{low} to {high} %", low=next(signed), high=next(signed))


def day(iso: str, *, year_of: str | None = None) -> Said:
    """An ISO date as "Jul 8"; with the year where it differs from ``year_of``'s."""
    when = date.fromisoformat(iso)
    english = f"{_MONTHS[when.month - 1]} {when.day}"
    with_year = year_of is not None and year_of[:4] != iso[:4]
    return Said(
        f"{english} {when.year}" if with_year else english, lambda table: _dated(when, table, with_year=with_year)
    )


def _dated(when: date, table: Wordings, *, with_year: bool) -> str:
    pattern = table.dates["year" if with_year else "day"]
    return pattern.format(day=when.day, month=table.months[when.month - 1], year=when.year)


def weekday(iso: str) -> Said:
    """The day of the week of an ISO date: "Sat"."""
    place = date.fromisoformat(iso).weekday()
    return Said(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[place], lambda table: table.weekdays[place])


def day_range(first: str, last: str, *, year_of: str | None = None) -> Said:
    """Two ISO dates as "Jul 8-14" or "Jun 28-Jul 4"; one date where they are equal."""
    if first == last:
        return day(first, year_of=year_of)
    one, other = date.fromisoformat(first), date.fromisoformat(last)
    if (one.year, one.month) == (other.year, other.month) and (year_of is None or year_of[:4] == first[:4]):
        return Said(
            f"{_MONTHS[one.month - 1]} {one.day}\N{EN DASH}{other.day}",
            lambda table: table.dates["within_month"].format(
                first=one.day, last=other.day, month=table.months[one.month - 1]
            ),
        )
    ends = day(first, year_of=year_of), day(last, year_of=year_of)
    return Said(
        f"{ends[0]}\N{EN DASH}{ends[1]}",
        lambda table: table.dates["range"].format(first=worded(ends[0], table), last=worded(ends[1], table)),
    )


def clock_time(local: datetime) -> Said:
    """Hours and minutes on the home's wall: "18:05"."""
    return verbatim(f"{local.hour:02d}:{local.minute:02d}")


def possessive(pet: Pet) -> Said:
    """Say "his" or "her" where the sex is on file, else "Max's"."""
    return say("{pet.his}", pet=pet)


def pronoun(pet: Pet) -> Said:
    """Say "he" or "she" where the sex is on file, else the name."""
    return say("{pet.he}", pet=pet)


def whose(pet: Pet) -> Said:
    """The pet before what is its own: "Max's"."""
    return say("{pet}'s", pet=pet)


def joined(words: Sequence[str], *, last: str = "and") -> Said:
    """Enumerate: "a", "a and b", "a, b and c"."""
    told = tuple(words)
    return Said(_joined(told, last), lambda table: _joined_in(tuple(worded(word, table) for word in told), last, table))


def listed(words: Sequence[str], *, between: str = "; ") -> Said:
    """Side by side without a last word: "a; b; c"."""
    told = tuple(words)
    return Said(between.join(told), lambda table: between.join(worded(word, table) for word in told))


def _joined(words: tuple[str, ...], last: str) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def _joined_in(words: tuple[str, ...], last: str, table: Wordings) -> str:
    """The list with the language's own word before its last item: Spanish says "e hijos", not "y hijos"."""
    if len(words) < 2:
        return "".join(words)
    before = table.joins_before.get(last, {}).items()
    said = next((word for sound, word in before if words[-1].lower().startswith(sound)), table.joins[last])
    return _joined(words, said)


def count_word(number: int) -> Said:
    """Small counts as words: "two", "three"."""
    words = ("no", "one", "two", "three", "four", "five", "six")
    if not 0 <= number < len(words):
        return verbatim(str(number))
    return Said(words[number], lambda table: table.counts[number])


def counted(names: str, number: float) -> str:
    """A number of what ``names`` says in the plural: "3 litter box visits", "1 meal"."""
    return f"{_digits(number, 1)} {names.removesuffix('s') if number == 1 else names}"


def counted_of(observed: Property, number: float) -> Said:
    """A number of what a counted property counts: "3 litter box visits"; elsewhere by the table's own plural."""
    form = "one" if number == 1 else "many"
    return Said(
        counted(observed.words[0], number),
        lambda table: f"{_marked(_digits(number, 1), table)} {table.form('series', observed.id, form)}",
    )


def done(verb: str, names: str, number: float) -> str:
    """What was done so often: "had 3 meals" where the verb names what is counted, else "used the litter box twice"."""
    if verb.endswith(f" {names}"):
        return f"{verb.removesuffix(names)}{counted(names, number)}"
    times = {1: "once", 2: "twice"}.get(int(number)) if number == int(number) else None
    return f"{verb} {times or f'{_digits(number, 1)} times'}"


def done_of(observed: Property, number: float) -> Said:
    """What was done so often, by the property's own verb."""
    figure = counted_of(observed, number)
    return Said(
        done(observed.verb, observed.words[0], number),
        lambda table: table.form("series", observed.id, "did").format(figure=worded(figure, table)),
    )


def did(observed: Property, figure: Said) -> Said:
    """What was done so much, by the property's own verb: "rested 2 h"."""
    return Said(
        f"{observed.verb} {figure}",
        lambda table: table.form("series", observed.id, "did").format(figure=worded(figure, table)),
    )


def first_lower(text: str) -> Said:
    """The text with its first letter lowered; a language that writes its nouns large leaves it."""
    english = f"{text[:1].lower()}{text[1:]}"
    return Said(english, lambda table: table.lowered(worded(text, table)))


def first_upper(text: str) -> Said:
    """The text with its first letter raised, the rest untouched."""
    return Said(f"{text[:1].upper()}{text[1:]}", lambda table: _raised(worded(text, table)))


def _raised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
