"""A stored answer's JSON in, what the page shows of it out: sentences, receipts, links.

The page shows answers as they were given, from the bytes that were stored, never from a
second run. The form is the Answer JSON of CONTRACTS.md; ``layout`` is the reading order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from gateway.ask.answer import GENERAL
from gateway.ask.causes import hypothesis
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.model import RecordRef, Vertex
from gateway.ontology.wordings import WORDED, wordings

__all__ = ["CLASS_WORDS", "GENERAL_LABEL", "AnswerView", "Receipt", "Sentence", "read_answer"]

CLASS_WORDS: Mapping[EvidenceClass, str] = {
    EvidenceClass.MEASURED: "measured by your devices",
    EvidenceClass.RECORDED: "on record",
    EvidenceClass.REFERENCE: "from a reference",
    EvidenceClass.CONNECTION: "put together by the hub",
    EvidenceClass.GENERAL: "general knowledge",
}

GENERAL_LABEL = "General knowledge, not from your pet's records:"
"""Mandatory before a claim without a source; shown by the page where the words do not carry it."""


_PHONE = re.compile(r"(?<![\d-])\+?\d(?:[ -]?\d)+")
_LEAST_DIGITS = 7
"""Fewer digits are an amount, a time or a short code that a link would dial wrongly."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One notice or claim in reading order.

    ``kind`` is a notice's kind, or ``claim``; ``claim`` is the claim's id or None; ``cite``
    the words inside the brackets; ``refs`` what they open.
    """

    kind: str
    text: str
    claim: str | None = None
    evidence_class: EvidenceClass | None = None
    cite: str = ""
    refs: tuple[RecordRef, ...] = ()
    label: str = ""

    @property
    def body(self) -> str:
        """The text without its last stop: a citation stands before the stop."""
        return self.text.rstrip().rstrip(".?!") if self.cite else self.text.rstrip()

    @property
    def pieces(self) -> tuple[tuple[str, str], ...]:
        """The body as (text, number to dial or "") pieces: under alarm a phone number is one tap.

        Only triage is searched; elsewhere digits are figures and dates.
        """
        if self.kind != NoticeKind.TRIAGE:
            return ((self.body, ""),)
        pieces, at = [], 0
        for found in _PHONE.finditer(self.body):
            number = re.sub(r"\D", "", found[0])
            if len(number) >= _LEAST_DIGITS:
                pieces += [(self.body[at : found.start()], ""), (found[0], number)]
                at = found.end()
        return (*pieces, (self.body[at:], ""))

    @property
    def stop(self) -> str:
        """What ends the sentence: its own last stop, else a full stop."""
        bare = self.text.rstrip()
        if not self.cite:
            return "" if bare.endswith((".", "?", "!", ":")) else "."
        return bare[-1] if bare.endswith((".", "?", "!")) else "."


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one claim stands on: its class in words, its records, or the claims it joins."""

    claim: str
    text: str
    standing: str
    refs: tuple[RecordRef, ...]
    joins: tuple[str, ...]
    about: tuple[str, ...]
    window: tuple[str, str] | None
    """First and last local day the claim speaks of, where it speaks of days."""

    def hypotheses(self) -> tuple[tuple[str, str], ...]:
        """(cause, name of "this cause makes this sign in this pet") that the owner may mark wrong.

        A connection says what it is about as vertex names: one pet, one sign, its causes.
        """
        pets = [name for name in self.about if name.startswith("pet:")]
        signs = [name for name in self.about if name.startswith("sign:")]
        if not self.joins or len(pets) != 1 or len(signs) != 1:
            return ()
        causes = [name for name in self.about if name not in {pets[0], signs[0]}]
        return tuple((cause, hypothesis(Vertex(cause), Vertex(pets[0]), Vertex(signs[0]))) for cause in causes)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A stored answer, ready to show. ``paragraphs`` hold sentences in reading order, worded in ``language``.

    ``asks_whose`` where the answer asks back which pet is meant.
    """

    number: int
    question: str
    asked_ms: int
    as_of_ms: int
    zone: str
    paragraphs: tuple[tuple[Sentence, ...], ...]
    receipts: tuple[Receipt, ...]
    chain: tuple[RecordRef, ...]
    near_misses: tuple[tuple[str, str, tuple[RecordRef, ...]], ...]
    cut: int
    language: str = "en"
    asks_whose: bool = False

    def meant(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the pets' names that the answer asks back by; none where it asks nothing back."""
        text = " ".join(sentence.text for paragraph in self.paragraphs for sentence in paragraph)
        return tuple(name for name in names if self.asks_whose and name in text)


def _refs(values: Any) -> tuple[RecordRef, ...]:
    return tuple(RecordRef(str(value)) for value in values)


def _instant_ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def _window(told: Mapping[str, Any] | None) -> tuple[str, str] | None:
    return None if told is None else (str(told["first_date"]), str(told["last_date"]))


def _notice(row: Mapping[str, Any]) -> Sentence:
    return Sentence(kind=str(row["kind"]), text=str(row["text"]))


@cache
def _labels() -> tuple[str, ...]:
    """How a claim without a source begins, in every language answers are worded in."""
    return (GENERAL, *(table.line(GENERAL) for code in WORDED if (table := wordings(code)) is not None))


def _claim(row: Mapping[str, Any]) -> Sentence:
    evidence_class = EvidenceClass(row["class"])
    text = str(row["text"])
    unlabelled = evidence_class is EvidenceClass.GENERAL and not text.startswith(_labels())
    return Sentence(
        kind="claim",
        text=text,
        claim=str(row["id"]),
        evidence_class=evidence_class,
        cite=str(row["cite"]),
        refs=_refs(row["refs"]),
        label=GENERAL_LABEL if unlabelled else "",
    )


def _paragraphs(
    layout: tuple[str, ...], notices: list[Sentence], claims: list[Sentence]
) -> tuple[tuple[Sentence, ...], ...]:
    named = {f"n{i}": notice for i, notice in enumerate(notices, start=1)} | {
        str(claim.claim): claim for claim in claims
    }
    found: list[list[Sentence]] = [[]]
    for item in layout:
        if item == "-":
            found.append([])
        else:
            found[-1].append(named[item])
    return tuple(tuple(paragraph) for paragraph in found if paragraph)


def read_answer(number: int, stored: tuple[int, str, str, int]) -> AnswerView:
    """A stored answer row, (asked_ms, question, body JSON, restated), as the page shows it."""
    asked_ms, question, body, _ = stored
    told: Mapping[str, Any] = json.loads(body)
    notices = [_notice(row) for row in told["notices"]]
    claims = [_claim(row) for row in told["claims"]]
    layout = tuple(str(item) for item in told["layout"])
    return AnswerView(
        number=number,
        question=question,
        asked_ms=asked_ms,
        as_of_ms=_instant_ms(told["as_of"]),
        zone=str(told["zone"]),
        paragraphs=_paragraphs(layout, notices, claims),
        receipts=tuple(
            Receipt(
                claim=str(row["id"]),
                text=str(row["text"]),
                standing=CLASS_WORDS[EvidenceClass(row["class"])],
                refs=_refs(row["refs"]),
                joins=tuple(str(item) for item in row["joins"]),
                about=tuple(str(item) for item in row["about"]),
                window=_window(row["window"]),
            )
            for row in told["claims"]
        ),
        chain=_refs(told["chain"]),
        near_misses=tuple((str(row["what"]), str(row["reason"]), _refs(row["refs"])) for row in told["near_misses"]),
        cut=len(told["budget"]["cut"]),
        language=str(told.get("language", "en")),  # answers of before were all in English
        asks_whose=told.get("frame", {}).get("pets") == ["?"],
    )
