"""Values of a profile's rows: fields in, stored integers out, with counters and sentinels. Pure.

A device's number becomes an integer in the stored unit, exactly (decimal arithmetic, rounded
once, half to even). What the device does not know is None; what cannot be is kept with the
reason why it does not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any

from gateway.errors import PayloadError
from gateway.links.codecs import field_at, plain_text
from gateway.links.profile import UNITS, Condition, Counter, Value

__all__ = ["STORED_MAX", "Quantity", "advance", "holds", "number_of", "quantity", "stored"]

STORED_MAX = 2**53
"""Every stored figure stays exact in a double, wherever it is read again."""
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,2})?\Z")
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of a row in its stored unit; None = the device does not know. ``aside`` says why it
    does not count.
    """

    stored: int | None
    aside: str | None = None


def holds(condition: Condition, fields: Any) -> bool:
    """Whether every path of a condition holds one of its texts; numbers are compared as texts."""
    for path, texts in condition.wanted:
        found = field_at(fields, path)
        if found is None or (texts != ("*",) and plain_text(found) not in texts):
            return False
    return True


def number_of(found: Any, path: str, words: tuple[tuple[str, int], ...] = ()) -> Decimal:
    """A field as a number: also a truth value, a number sent as text, or one of ``words``.

    Raises
    ------
    PayloadError
        It is none (reason ``missing_field`` or ``bad_value``).
    """
    if found is None:
        raise PayloadError("missing_field", f"{path} must be there, is absent")
    text = plain_text(found)
    for word, meaning in words:
        if text == word:
            return Decimal(meaning)
    if isinstance(found, bool):
        return Decimal(int(found))
    if isinstance(found, int | Decimal) or (text is not None and _NUMBER.match(text)):
        number = Decimal(str(text))
        if abs(number) <= 10**30:
            return number
    raise PayloadError("bad_value", f"{path} must be a number, is {str(found)[:60]!r}")


def stored(number: Decimal, value: Value, unit: str, path: str) -> int:
    """A number in the device's unit as an integer in the stored one.

    Raises
    ------
    PayloadError
        It is beyond all that is stored (2^53).
    """
    factor, addend = UNITS[unit][value.unit]
    with localcontext(_EXACT):
        exact = number * factor + addend
        if abs(exact) > STORED_MAX:
            raise PayloadError("bad_value", f"{path} must lie within 2^53 {unit}, is {number:g} {value.unit}")
        return int(exact.to_integral_value(ROUND_HALF_EVEN))


def quantity(value: Value, fields: Any, unit: str, *, name: str, counted: dict[str, Any]) -> Quantity:
    """One value of a row.

    Parameters
    ----------
    value : Value
    fields : tree
        The message's fields.
    unit : str
        The stored unit.
    name : str
        What a counter is remembered under.
    counted : dict
        What counters remember; changed in place.

    Raises
    ------
    PayloadError
        A field is missing or is no number.
    """
    total = Decimal(0)
    for sign, path in value.terms:
        found = field_at(fields, path)
        if found is not None and plain_text(found) in value.unknown:
            return Quantity(None)
        total += sign * number_of(found, path, value.words)
    with localcontext(_EXACT):
        total *= value.scale
    path = value.terms[0][1]
    aside = None
    if (value.low is not None and total < value.low) or (value.high is not None and total > value.high):
        low = "" if value.low is None else f"{value.low:f}"
        high = "" if value.high is None else f"{value.high:f}"
        aside = f"{total.normalize():f} {value.unit} lies outside {low}..{high} {value.unit}; not counted"
    if value.counter is None:
        return Quantity(stored(total, value, unit, path), aside)
    if aside is not None:
        return Quantity(None)  # a reading that cannot be moves no counter
    reading = stored(total, value, unit, path)
    before = counted.get(name)
    counted[name], increase = advance(value.counter, before, reading)
    return Quantity(increase)


def advance(counter: Counter, before: list[int] | None, reading: int) -> tuple[list[int], int | None]:
    """What a counter remembers after a reading, and its increase; None for the first reading.

    Remembered are [last, high, counted since it fell, readings since it fell]. A total that
    falls by more than its jitter counts from zero; where the next reading is back at the high
    mark, the fall was a misread and what was counted since is taken off; the second reading in
    a row below makes it a reset.
    """
    if before is None:
        return [reading, reading, 0, 0], None
    last, high, since, low_run = before
    if counter.modulus is not None:
        return [reading, reading, 0, 0], (reading - last) % counter.modulus
    if counter.kind == "day":
        return [reading, reading, 0, 0], reading - last if reading >= last else reading
    if low_run == 0:
        if reading >= high:
            return [reading, reading, 0, 0], reading - high
        if high - reading <= counter.jitter:
            return [reading, high, 0, 0], 0
        return [reading, high, max(reading, 0), 1], max(reading, 0)
    if reading >= high:
        return [reading, reading, 0, 0], max(0, reading - high - since)
    if reading >= last:
        return [reading, reading, 0, 0], reading - last
    return [reading, high, since, 1], 0
