"""How answers are worded in a language that is not English: lines, names, dates and numbers, as data.

In: ``words_<language>.toml``, one file a language, read once. Out: a frozen ``Wordings``, looked up by the
English line. English itself stands in the code, beside what it says. Never: a sentence made by machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from gateway.errors import ConfigError
from gateway.ontology.load import LANGUAGES, read_table

__all__ = ["WORDED", "Unworded", "Wordings", "wordings"]

WORDED = tuple(code for code in LANGUAGES if code != "en")
"""The languages that have a table; English needs none."""


class Unworded(LookupError):
    """A language's table has no wording for a line; ``line`` is the English one."""

    def __init__(self, line: str, language: str) -> None:
        self.line, self.language = line, language
        super().__init__(f"words_{language}.toml must word {line!r}, and has no such line")


@dataclass(frozen=True, slots=True, eq=False)
class Wordings:
    """One language's table; read once, so equal only to itself.

    ``lines`` holds each English line with its ``{places}`` and how it is said; ``series``, ``devices`` and
    ``pets`` the forms a property, a kind of device and a pet's sex take in a sentence, by id and form;
    ``dates`` patterns of a day; ``joins`` what stands before the last of several.
    """

    id: str
    lines: Mapping[str, str]
    series: Mapping[str, Mapping[str, str]]
    devices: Mapping[str, Mapping[str, str]]
    pets: Mapping[str, Mapping[str, str]]
    dates: Mapping[str, str]
    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    counts: tuple[str, ...]
    decimal: str
    thousands: str
    joins: Mapping[str, str]
    joins_before: Mapping[str, Mapping[str, str]]
    nouns_large: bool

    def line(self, english: str) -> str:
        """How a line is said.

        Raises
        ------
        Unworded
            The table has no such line.
        """
        found = self.lines.get(english)
        if found is None:
            raise Unworded(english, self.id)
        return found

    def form(self, kind: str, name: str, form: str) -> str:
        """A form of a thing's name: ``kind`` is "series", "device" or "pet".

        Raises
        ------
        Unworded
            The table has no such form.
        """
        found = {"series": self.series, "device": self.devices, "pet": self.pets}[kind].get(name, {}).get(form)
        if found is None:
            raise Unworded(f"{kind}.{name}.{form}", self.id)
        return found

    def lowered(self, text: str) -> str:
        """A sentence's beginning inside another one; German writes its nouns large, so there it stays."""
        return text if self.nouns_large else f"{text[:1].lower()}{text[1:]}"


def _table(rows: Mapping[str, Any], name: str, file: str) -> Mapping[str, str]:
    for key, value in rows.items():
        if not isinstance(value, str):
            raise ConfigError(f"{file}, {name}.{key}: a wording must be text, is {value!r}")
    return MappingProxyType(dict(rows))


def _tables(rows: Mapping[str, Any], name: str, file: str) -> Mapping[str, Mapping[str, str]]:
    return MappingProxyType({key: _table(row, f"{name}.{key}", file) for key, row in rows.items()})


@cache
def wordings(language: str) -> Wordings | None:
    """The table of a language; None for English and for a language that has none.

    Raises
    ------
    ConfigError
        A packaged table is not of this form.
    """
    if language not in WORDED:
        return None
    file = f"words_{language}.toml"
    table = read_table(file)
    numbers = table["numbers"]
    return Wordings(
        id=language,
        lines=_table({**table["names"], **table["lines"]}, "lines", file),
        series=_tables(table["series"], "series", file),
        devices=_tables(table["device"], "device", file),
        pets=_tables(table["pet"], "pet", file),
        dates=_table(table["dates"], "dates", file),
        months=tuple(str(word) for word in table["months"]),
        weekdays=tuple(str(word) for word in table["weekdays"]),
        counts=tuple(str(word) for word in table["counts"]),
        decimal=str(numbers["decimal"]),
        thousands=str(numbers["thousands"]),
        joins=_table(table["joins"], "joins", file),
        joins_before=_tables(table.get("joins_before", {}), "joins_before", file),
        nouns_large=bool(table["nouns_large"]),
    )
