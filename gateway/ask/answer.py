"""Puts an answer together: sentences in reading order, a budget at the very end, JSON out.

A `Draft` collects notices and claims as they are to be read. `Draft.finish` spends two budgets
in order of rank, the words an owner reads and the tokens: what does not fit is skipped and
listed, the next may still fit; notices (triage, absence, cautions) are never cut. An answer is
in one language: the question's, or English where a single sentence has no wording there. Nothing
here finds or ranks anything.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gateway.ask.question import frame_json
from gateway.ask.said import worded
from gateway.dialogue import Answer, Claim, EvidenceClass, Notice, NoticeKind, Quantity, Question
from gateway.graph.assemble import admit
from gateway.ontology.wordings import Unworded, Wordings, wordings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.model import NearMiss, RecordRef, Window

__all__ = [
    "DEFAULT_BUDGET",
    "ENGLISH_ONLY",
    "EXPLAINED_WORDS",
    "GENERAL",
    "PLAIN_WORDS",
    "Draft",
    "answer_json",
    "answer_lines",
    "tokens",
    "words_in",
]

DEFAULT_BUDGET = 600
"""Token budget of an answer, in units of ceil(UTF-8 bytes / 4)."""
PLAIN_WORDS, EXPLAINED_WORDS = 120, 160
"""Words an owner reads of one answer, citations not counted; more where a change is explained."""
BREAK = "-"
GENERAL = "General knowledge"
"""What a claim that no record holds begins with."""
ENGLISH_ONLY = "This answer exists in English only so far"
_WORD = re.compile(r"\w[\w'.,&\N{EN DASH}-]*")


def tokens(text: str) -> int:
    """Budget units of a text: ceil(UTF-8 bytes / 4)."""
    return math.ceil(len(text.encode()) / 4)


def words_in(text: str) -> int:
    """Words and figures as they are read: "up 38 % (likely 21 to 57 %)" has six."""
    return len(_WORD.findall(text))


@dataclass(slots=True)
class Draft:
    """An answer being written. Ids are ``c1``, ``c2``... for claims and ``n1``... for notices."""

    claims: list[Claim] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    layout: list[str] = field(default_factory=list)
    near_misses: list[NearMiss] = field(default_factory=list)
    chain: list[RecordRef] = field(default_factory=list)
    explain: list[str] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    words: int = PLAIN_WORDS

    def say(self, kind: NoticeKind, text: str, *, slot: str | None = None, device: str | None = None) -> None:
        """Add a notice at the end."""
        self.notices.append(Notice(kind, text, slot, device))
        self.layout.append(f"n{len(self.notices)}")

    def claim(
        self,
        kind: str,
        evidence_class: EvidenceClass,
        text: str,
        *,
        cite: str = "",
        refs: Iterable[RecordRef] = (),
        values: tuple[Quantity, ...] = (),
        window: Window | None = None,
        about: tuple[str, ...] = (),
        joins: tuple[str, ...] = (),
        rank: int = 0,
    ) -> str:
        """Add a claim at the end and return its id.

        ``rank`` orders admission under the budgets (0 first): a claim of rank 0 stands by
        itself, those of one higher rank (a chain) are admitted together or not at all.
        """
        number = f"c{len(self.claims) + 1}"
        self.claims.append(
            Claim(
                id=number,
                kind=kind,
                evidence_class=evidence_class,
                text=text,
                cite=cite,
                values=values,
                window=window,
                refs=tuple(dict.fromkeys(refs)),
                about=about,
                joins=joins,
            )
        )
        self.ranks[number] = rank
        self.layout.append(number)
        return number

    def paragraph(self) -> None:
        """Begin a new paragraph, unless one has just begun."""
        if self.layout and self.layout[-1] != BREAK:
            self.layout.append(BREAK)

    def finish(self, question: Question, *, as_of_ms: int, zone: str, budget: int = DEFAULT_BUDGET) -> Answer:
        """Word it, spend the budgets and freeze it; a connection whose parts were cut is cut with them."""
        language = self._word(wordings(question.language))
        read = sum(words_in(notice.text) for notice in self.notices)
        spoken = sum(tokens(notice.text) for notice in self.notices)
        units = [frozenset({claim.id}) for claim in self.claims if self.ranks[claim.id] == 0]
        units += [
            frozenset(claim.id for claim in self.claims if self.ranks[claim.id] == rank)
            for rank in sorted(set(self.ranks.values()) - {0})
        ]
        lengths = {claim.id: words_in(claim.text) for claim in self.claims}
        short = admit(units, lengths, max(0, self.words - read))
        units = [units[index] for index in short.kept]
        sizes = {claim.id: tokens(f"{claim.text} [{claim.cite}]") for claim in self.claims}
        admission = admit(units, sizes, max(0, budget - spoken))
        admitted = {claim for index in admission.kept for claim in units[index]}
        kept = [claim for claim in self.claims if claim.id in admitted and set(claim.joins) <= admitted]
        ids = {claim.id for claim in kept}
        layout = [part for part in self.layout if part[0] != "c" or part in ids]
        cut = tuple(claim.id for claim in self.claims if claim.id not in ids)
        return Answer(
            as_of_ms=as_of_ms,
            zone=zone,
            question=question,
            claims=tuple(kept),
            notices=tuple(self.notices),
            chain=tuple(dict.fromkeys(self.chain)),
            near_misses=tuple(self.near_misses),
            budget=(spoken + admission.used, budget, cut),
            layout=_tidy(layout),
            explain=tuple(self.explain),
            language=language,
        )

    def _word(self, table: Wordings | None) -> str:
        """Word every sentence in the table's language, or all in English with a line that says so; the language."""
        try:
            self.notices, self.claims = _notices_in(self.notices, table), _claims_in(self.claims, table)
        except Unworded as lacking:
            self.explain.append(f"worded in English: {lacking}")
            self.notices, self.claims = _notices_in(self.notices, None), _claims_in(self.claims, None)
            self.notices.append(Notice(NoticeKind.CAUTION, worded(ENGLISH_ONLY, table)))
            self.layout[:0] = [f"n{len(self.notices)}", BREAK]
            table = None
        self.near_misses = [_miss_in(miss, table) for miss in self.near_misses]
        return "en" if table is None else table.id


def _notices_in(notices: list[Notice], table: Wordings | None) -> list[Notice]:
    return [replace(notice, text=_sentence_in(notice.text, table)) for notice in notices]


def _claims_in(claims: list[Claim], table: Wordings | None) -> list[Claim]:
    return [replace(claim, text=_sentence_in(claim.text, table), cite=worded(claim.cite, table)) for claim in claims]


def _sentence_in(text: str, table: Wordings | None) -> str:
    """A text in the table's language; there its first letter is raised, whichever word came to stand first."""
    told = worded(text, table)
    return told if table is None else f"{told[:1].upper()}{told[1:]}"


def _miss_in(miss: NearMiss, table: Wordings | None) -> NearMiss:
    """A near-miss in the answer's language; it stands beside the answer, so it may stay in English."""
    try:
        return replace(miss, what=worded(miss.what, table), reason=worded(miss.reason, table))
    except Unworded:
        return replace(miss, what=str(miss.what), reason=str(miss.reason))


def _tidy(layout: list[str]) -> tuple[str, ...]:
    """The layout without empty paragraphs."""
    tidy: list[str] = []
    for part in layout:
        if part != BREAK or (tidy and tidy[-1] != BREAK):
            tidy.append(part)
    while tidy and tidy[-1] == BREAK:
        tidy.pop()
    return tuple(tidy)


def _sentence(text: str, cite: str) -> str:
    bare = text.rstrip()
    if not cite:
        return bare if bare.endswith((".", "?", "!", ":")) else f"{bare}."
    end = bare[-1] if bare.endswith((".", "?", "!")) else "."
    return f"{bare.rstrip('.?!')} [{cite}]{end}"


def answer_lines(answer: Answer) -> list[str]:
    """The answer as paragraphs of plain text, citations in brackets."""
    claims = {claim.id: claim for claim in answer.claims}
    paragraphs: list[list[str]] = [[]]
    for part in answer.layout:
        if part == BREAK:
            paragraphs.append([])
        elif part[0] == "n":
            paragraphs[-1].append(_sentence(answer.notices[int(part[1:]) - 1].text, ""))
        else:
            claim = claims[part]
            paragraphs[-1].append(_sentence(claim.text, claim.cite))
    return [" ".join(sentences) for sentences in paragraphs if sentences]


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _window_json(window: Window | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {
        "label": window.label,
        "from": _iso(window.interval.start_ms),
        "to": _iso(window.interval.end_ms),
        "first_date": window.first_date,
        "last_date": window.last_date,
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The Answer JSON of CONTRACTS, schema 1; keys in a fixed order, the same bytes every time."""
    return {
        "schema": 1,
        "as_of": _iso(answer.as_of_ms),
        "zone": answer.zone,
        "question": answer.question.text,
        "language": answer.language,
        "frame": frame_json(answer.question),
        "claims": [
            {
                "id": claim.id,
                "kind": claim.kind,
                "class": claim.evidence_class.value,
                "text": claim.text,
                "cite": claim.cite,
                "values": {q.name: {"v": q.value, "unit": q.unit} for q in claim.values},
                "window": _window_json(claim.window),
                "refs": [ref.text for ref in claim.refs],
                "about": list(claim.about),
                "joins": list(claim.joins),
            }
            for claim in answer.claims
        ],
        "notices": [
            {"kind": notice.kind.value, "text": notice.text}
            | ({} if notice.slot is None else {"slot": notice.slot})
            | ({} if notice.device is None else {"device": notice.device})
            for notice in answer.notices
        ],
        "chain": [ref.text for ref in answer.chain],
        "near_misses": [
            {"what": miss.what, "reason": miss.reason, "refs": [ref.text for ref in miss.refs]}
            for miss in answer.near_misses
        ],
        "budget": {"used": answer.budget[0], "limit": answer.budget[1], "cut": list(answer.budget[2])},
        "layout": list(answer.layout),
        "text": answer_lines(answer),
    }
