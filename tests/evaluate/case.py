"""One claim with the records it cites, as every rule of the checker sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from tests.evaluate.book import Book
from tests.evaluate.refigure import local_date, local_time

__all__ = ["Case", "iso_ms", "range_words", "shown"]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MEASURED_BY_NIGHT = ("intake", "water", "weight")


def iso_ms(iso: str) -> int:
    """Milliseconds UTC of an instant as an answer writes it."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def shown(day: str, today: str) -> str:
    """An ISO date as an answer says it: "Jul 8", with its year where that is another than today's."""
    when = date.fromisoformat(day)
    text = f"{_MONTHS[when.month - 1]} {when.day}"
    return text if day[:4] == today[:4] else f"{text} {when.year}"


def range_words(first: str, last: str, today: str) -> str:
    """Two ISO dates as an answer says them: "Jul 8-14" in one month of this year, else both whole; one where equal."""
    if first == last:
        return shown(first, today)
    if first[:7] == last[:7] and first[:4] == today[:4]:
        return f"{shown(first, today)}\N{EN DASH}{int(last[8:])}"
    return f"{shown(first, today)}\N{EN DASH}{shown(last, today)}"


@dataclass
class Case:
    """One claim of an answer, asked at ``as_of_ms``; ``frame`` is how the question was read.

    Only English words are read back; of an answer in another language the figures alone.
    """

    book: Book
    claim: dict
    as_of_ms: int
    frame: dict
    language: str = "en"

    def __post_init__(self) -> None:
        refs = self.claim["refs"]
        self.days = [day for ref in refs if ref.startswith("day:") and (day := self.book.day(ref)) is not None]
        self.events = [e for ref in refs if ref.startswith("event:") and (e := self.book.event(ref)) is not None]
        texts = [ref for ref in refs if ref.partition(":")[0] in ("log", "note", "label", "passage")]
        self.texts = [text for ref in texts if (text := self.book.text(ref)) is not None]

    @property
    def kind(self) -> str:
        return self.claim["kind"]

    @property
    def text(self) -> str:
        return self.claim["text"]

    @cached_property
    def values(self) -> dict[str, float | str]:
        return {name: value["v"] for name, value in self.claim["values"].items()}

    def unit(self, name: str) -> str:
        """The unit of a value, without "/day"; nothing where there is no such value."""
        return self.claim["values"].get(name, {}).get("unit", "").removesuffix("/day")

    def about(self, kind: str) -> list[str]:
        """The names of a kind that the claim is about: ``series``, ``pet``, ``food``, ``device``."""
        return [name.partition(":")[2] for name in self.claim["about"] if name.startswith(f"{kind}:")]

    @property
    def pets(self) -> list[str]:
        return self.about("pet")

    @property
    def series(self) -> list[str]:
        return self.about("series")

    @property
    def window(self) -> dict | None:
        return self.claim["window"]

    @property
    def label(self) -> str:
        return "" if self.window is None else str(self.window["label"])

    @property
    def until_ms(self) -> int:
        return self.as_of_ms if self.window is None else iso_ms(self.window["to"])

    @property
    def today(self) -> str:
        return local_date(self.as_of_ms, self.book.zone)

    def date_of(self, at_ms: int) -> str:
        return local_date(at_ms, self.book.zone)

    def clock(self, at_ms: int) -> str:
        return local_time(at_ms, self.book.zone)

    def day_of(self, at_ms: int) -> str:
        """An instant's local day as an answer writes it, with the year where it is another."""
        return shown(self.date_of(at_ms), self.today)

    def food_name(self, food: str) -> str:
        return self.book.foods.get(food, ("", None))[0]

    def told_by_night(self, prop: str) -> bool:
        """Whether a mean is said of nights: by its words; in another language by what was asked about."""
        if self.language == "en":
            return " a night" in self.text
        return prop == "restless" or self.label in ("LAST_NIGHT", "NIGHT") or self.label.startswith("NIGHT:P")

    def of_nights(self, prop: str) -> bool:
        """Whether a figure is of nights: night restlessness, or any duration or count asked of nights."""
        nights = self.label in ("LAST_NIGHT", "TONIGHT", "NIGHT") or self.label.startswith("NIGHT:")
        return prop == "restless" or (nights and prop not in _MEASURED_BY_NIGHT)
