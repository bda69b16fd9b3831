"""Reads a list of purchases (CSV): what came into the house, and from which day on.

One line is one purchase. A line that is not what the columns say refuses the whole file,
naming line and field. What comes out is each line word for word with its named values; that
a pet was given anything is said nowhere here, nor what kind of thing it is where the list does not say.
The same line read again has the same reference, whatever the file is called, so an export that
holds last month's lines too adds only the new.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from gateway.errors import ImportRefused
from gateway.model import RecordRef
from gateway.ontology.wares import KINDS, kind_words
from gateway.stored import TextRecord

__all__ = ["COLUMNS", "Purchase", "checked_purchase", "purchase_records", "read_purchases"]

COLUMNS = ("date", "product", "code", "quantity", "unit", "shop", "price", "kind")
"""Columns with a meaning, in any order; others are kept as part of the line."""

_REQUIRED = ("date", "quantity")
_LONGEST = {"product": 200, "unit": 20, "shop": 80, "price": 40}
_MOST = 10_000  # nobody carries home more
_MOST_LINES = 20_000
_CODE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class Purchase:
    """One purchase as written. ``text`` is the line word for word; ``line`` is 0 outside a file."""

    date: str
    product: str
    code: str
    quantity: str
    unit: str = ""
    shop: str = ""
    price: str = ""
    kind: str = ""
    text: str = ""
    line: int = 0

    @property
    def named(self) -> str:
        """What was bought, by its name, else by its code."""
        return self.product or f"product {self.code}"

    def words(self) -> str:
        """The purchase as a sentence without an end: "2 bags of Salmon Feast on 2026-07-03"."""
        many = (
            f"{self.quantity} {self.unit} of " if self.unit else "" if self.quantity == "1" else f"{self.quantity} x "
        )
        return f"{many}{self.named} on {self.date}"


def read_purchases(text: str, *, source: str) -> tuple[Purchase, ...]:
    """Read and check a whole file.

    Parameters
    ----------
    text : str
        CSV with a line of column names: ``date`` (2026-07-03), ``product`` or ``code`` or both,
        ``quantity``, and if wanted ``unit``, ``shop``, ``price``, ``kind`` (a usual word for one of
        `gateway.ontology.wares.KINDS`). Commas or semicolons separate;
        where semicolons do, a quantity may have a decimal comma.
    source : str
        The file's name, for errors.

    Raises
    ------
    ImportRefused
        The file is not such a list; nothing of it may be kept.
    """
    first = text.partition("\n")[0]
    mark = ";" if first.count(";") > first.count(",") else ","
    lines = text.splitlines()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    found: list[Purchase] = []
    try:
        columns = _columns(next(reader, []), source)
        begun = reader.line_num
        for values in reader:
            if any(value.strip() for value in values):
                written = "\n".join(lines[begun : reader.line_num])
                found.append(_purchase(values, columns, source=source, line=begun + 1, written=written, mark=mark))
            begun = reader.line_num
            if len(found) > _MOST_LINES:
                raise ImportRefused(source, f"must have at most {_MOST_LINES:,} purchases; split it", line=begun)
    except csv.Error as problem:
        raise ImportRefused(source, f"must be CSV: {problem}", line=reader.line_num) from None
    if not found:
        raise ImportRefused(source, "must hold at least one purchase below its column names, holds none")
    return tuple(found)


def _columns(header: list[str], source: str) -> tuple[str, ...]:
    columns = tuple(name.strip().casefold() for name in header)
    told = ", ".join(COLUMNS)
    for name in _REQUIRED:
        if name not in columns:
            raise ImportRefused(
                source, f"must be a column; the first line must name columns of {told}, is {header!r:.200}",
                line=1, field=name,
            )  # fmt: skip
    if "product" not in columns and "code" not in columns:
        raise ImportRefused(source, "must be a column, or code must be", line=1, field="product")
    twice = [name for name, count in Counter(columns).items() if count > 1 and name in COLUMNS]
    if twice:
        raise ImportRefused(source, "must be one column, stands there twice", line=1, field=twice[0])
    return columns


def _purchase(
    values: list[str], columns: tuple[str, ...], *, source: str, line: int, written: str, mark: str
) -> Purchase:
    if len(values) != len(columns):
        raise ImportRefused(source, f"a line must have {len(columns)} values, has {len(values)}", line=line)
    told = {name: " ".join(value.split()) for name, value in zip(columns, values, strict=True) if name in COLUMNS}
    read = checked_purchase(told, source=source, line=line, decimal_comma=mark == ";")
    return replace(read, text=written, line=line)


def checked_purchase(
    told: dict[str, str], *, source: str, line: int | None = None, decimal_comma: bool = False
) -> Purchase:
    """One purchase of its named values, each checked; raises `ImportRefused` naming the field."""

    def refuse(field: str, expected: str) -> ImportRefused:
        return ImportRefused(source, f"must be {expected}, is {told.get(field, '')!r:.100}", line=line, field=field)

    values = {name: told.get(name, "") for name in COLUMNS}
    try:
        bought = date.fromisoformat(values["date"])
    except ValueError:
        raise refuse("date", "a date such as 2026-07-03") from None
    if values["date"] != bought.isoformat() or not 1990 <= bought.year <= 2100:
        raise refuse("date", "a date such as 2026-07-03, 1990 to 2100")
    if not values["product"] and not values["code"]:
        raise ImportRefused(source, "must be given, or code must be; both are empty", line=line, field="product")
    if values["code"] and not _CODE.match(values["code"]):
        raise refuse("code", "1 to 64 of A-Z a-z 0-9 . _ -")
    for name, longest in _LONGEST.items():
        if len(values[name]) > longest:
            raise refuse(name, f"at most {longest} characters")
    quantity = values["quantity"].replace(",", ".") if decimal_comma else values["quantity"]
    expected = f"a number above 0, at most {_MOST:,}"
    try:
        number = float(quantity)
    except ValueError:
        raise refuse("quantity", expected) from None
    if not math.isfinite(number) or not 0 < number <= _MOST:
        raise refuse("quantity", expected)
    if values["kind"]:
        kind = kind_words(values["kind"])
        if kind is None:
            raise refuse("kind", f"one of {', '.join(one.replace('_', ' ') for one in KINDS)}, or empty")
        values["kind"] = kind
    return Purchase(**values | {"quantity": f"{number:g}"})  # type: ignore[arg-type]  # text values alone


def purchase_records(purchases: tuple[Purchase, ...], *, file: str, days: dict[str, int]) -> tuple[TextRecord, ...]:
    """What is kept of each purchase: the line word for word, and its named values.

    Parameters
    ----------
    purchases : tuple of Purchase
        As read.
    file : str
        The file's name, shown with the record; empty where one purchase was written down.
    days : dict of str to int
        The instant at which each date begins, ms UTC.
    """
    seen: Counter[str] = Counter()
    records = []
    for one in purchases:
        named = [(name, getattr(one, name)) for name in COLUMNS if getattr(one, name)]
        known = hashlib.sha256("\0".join(chain.from_iterable(named)).encode()).hexdigest()[:12]
        seen[known] += 1
        again = "" if seen[known] == 1 else f"-{seen[known]}"
        place = [("file", file), ("line", str(one.line))] if one.line else []
        records.append(
            TextRecord(
                ref=RecordRef(f"log:purchase-{one.date}-{known}{again}"),
                kind="purchase",
                title=f"Purchase: {one.named}",
                text=one.text or f"Bought {one.words()}",
                at_ms=days[one.date],
                facts=(*named, *place),
            )
        )
    return tuple(records)
