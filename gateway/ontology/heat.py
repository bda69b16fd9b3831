"""A body temperature said as a number: "Max's temperature is 41.6", "I took her temp, it's 107".

In: tokens and the table ``temperature`` of the safety tables, with its limits and their source.
Out: the places of the word and the number where a body is far too hot or too cold. Never a
room, an oven or a forecast, and never a diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.ontology.figures import word_lists
from gateway.ontology.recognise import Token

__all__ = ["BodyHeat", "body_heat"]

_NUMBER = re.compile(r"\d{2,3}(?:[.,]\d{1,2})?")
_ENDS = frozenset(".?!;\n")
_REACH = 8
"""Words between the temperature and its number."""


@dataclass(frozen=True, slots=True)
class BodyHeat:
    """Limits of a body's temperature, in degrees Celsius and Fahrenheit, and the words around it.

    ``low`` and ``high``: at or above ``high`` or below ``low`` a vet is called at once. ``body``:
    the numbers a living body can have at all; the two scales do not meet, so that a number says
    which of them it is on.
    """

    high_c: float
    low_c: float
    high_f: float
    low_f: float
    body_c: tuple[float, float]
    body_f: tuple[float, float]
    words: Mapping[str, frozenset[str]]

    def __post_init__(self) -> None:
        if not self.body_c[0] < self.low_c < self.high_c < self.body_c[1] <= self.body_f[0] < self.low_f < self.high_f:
            raise ValueError(f"limits must ascend, Celsius below Fahrenheit, are {self.body_c}, {self.body_f}")

    def alarming(self, tokens: Sequence[Token]) -> tuple[int, int] | None:
        """The places of a temperature word and of its number that is far from normal, or None."""
        for at, token in enumerate(tokens):
            if token.text not in self.words["words"]:
                continue
            first, last = _sentence(tokens, at)
            for index in range(max(first, at - _REACH), min(last, at + _REACH + 1)):
                way = self._judged(tokens, index)
                if way and self._of_a_body(tokens, at, way, range(first, last)):
                    return at, index
        return None

    def _judged(self, tokens: Sequence[Token], index: int) -> str:
        """Whether the number at a place is "high" or "low"; "" where it is neither, or no temperature."""
        if not _NUMBER.fullmatch(tokens[index].text):
            return ""
        value = float(tokens[index].text.replace(",", "."))
        unit = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if unit in self.words["units"] or (index and tokens[index - 1].text in self.words["not_after"]):
            return ""  # "since 30 June", "for 34 days"
        celsius = self.body_c[0] <= value <= self.body_c[1]
        if not celsius and not self.body_f[0] <= value <= self.body_f[1]:
            return ""
        high, low = (self.high_c, self.low_c) if celsius else (self.high_f, self.low_f)
        return "high" if value >= high else "low" if value < low else ""

    def _of_a_body(self, tokens: Sequence[Token], at: int, way: str, sentence: range) -> bool:
        """Whether it is an animal's: "his temperature", "took her temp"; not "the temperature in the hall"."""
        lead = tokens[at - 1].text if at > sentence.start else ""
        if lead in {"body", "rectal", "core"}:
            lead = tokens[at - 2].text if at - 2 >= sentence.start else lead
        owner = lead.removesuffix("'s")
        if (lead.endswith("'s") or lead in {"his", "her", "its", "body"}) and owner not in self.words["ambient"]:
            return True
        said = {tokens[index].text.removesuffix("'s") for index in sentence}
        if said & self.words["ambient"]:
            return False
        return way == "high" or bool(said & self.words["owners"])


def _sentence(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    first = next((i + 1 for i in range(at, -1, -1) if tokens[i].text in _ENDS), 0)
    last = next((i for i in range(at, len(tokens)) if tokens[i].text in _ENDS), len(tokens))
    return first, last


def body_heat(row: Mapping[str, Any]) -> BodyHeat:
    """The limits as the table ``temperature`` states them."""
    return BodyHeat(
        high_c=float(row["high_c"]),
        low_c=float(row["low_c"]),
        high_f=float(row["high_f"]),
        low_f=float(row["low_f"]),
        body_c=(float(row["body_c"][0]), float(row["body_c"][1])),
        body_f=(float(row["body_f"][0]), float(row["body_f"][1])),
        words=word_lists({name: row[name] for name in ("words", "ambient", "owners", "units", "not_after")}),
    )
