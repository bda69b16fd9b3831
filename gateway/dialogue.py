"""The values of a question and its answer: what ``ask`` makes and everybody shows.

Frozen and checked: a MEASURED claim without a citation, or a GENERAL claim with a number,
cannot be constructed. Field names follow the Frame JSON and Answer JSON of CONTRACTS.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.model import NearMiss, RecordRef, Window

__all__ = [
    "Answer",
    "Claim",
    "EvidenceClass",
    "Mention",
    "Notice",
    "NoticeKind",
    "Quantity",
    "Question",
]


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of the question linked to a thing. ``rejected`` are the readings passed over,
    each with its reason.
    """

    start: int
    end: int
    text: str
    target: str
    kind: str
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question as read, deterministically. Field names follow the Frame JSON.

    ``pets`` holds ids, or ("?",) where the owner must be asked; ``rule`` names the line of
    the decision list that fired; ``unmatched`` are the words nothing was linked to; ``language``
    is the one it was read in, no part of the frame.
    """

    text: str
    intent: str
    pets: tuple[str, ...]
    metric: str | None
    direction: str | None
    window: Window | None
    window_label: str | None
    subjects: tuple[str, ...]
    answer_class: str
    rule: str
    safety: str | None = None
    mentions: tuple[Mention, ...] = ()
    unmatched: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    language: str = "en"


class EvidenceClass(StrEnum):
    """What a claim stands on. One claim, one class."""

    MEASURED = "MEASURED"
    RECORDED = "RECORDED"
    REFERENCE = "REFERENCE"
    CONNECTION = "CONNECTION"
    GENERAL = "GENERAL"


class NoticeKind(StrEnum):
    """Sentences that are not claims and carry no class."""

    SHORT = "short_answer"
    ABSENCE = "absence"
    TRIAGE = "triage"
    PREMISE = "premise"
    CLARIFY = "clarify"
    CAUTION = "caution"
    NEXT = "next_step"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a claim with its unit, in stored units."""

    name: str
    value: int | float | str
    unit: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable sentence. MEASURED, RECORDED and REFERENCE carry refs; CONNECTION
    carries ``joins`` (claim ids) and no refs; GENERAL carries neither and is labelled.
    """

    id: str
    kind: str
    evidence_class: EvidenceClass
    text: str
    cite: str
    values: tuple[Quantity, ...] = ()
    window: Window | None = None
    refs: tuple[RecordRef, ...] = ()
    about: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        cites = self.evidence_class in (EvidenceClass.MEASURED, EvidenceClass.RECORDED, EvidenceClass.REFERENCE)
        if cites and not self.refs:
            raise ValueError(f"a {self.evidence_class} claim must cite a record, {self.id} cites none")
        if not cites and self.refs:
            raise ValueError(f"a {self.evidence_class} claim must cite no record, {self.id} cites {len(self.refs)}")
        if self.evidence_class is EvidenceClass.CONNECTION and len(self.joins) < 2:
            raise ValueError(f"a CONNECTION must join at least two claims, {self.id} joins {len(self.joins)}")
        if self.evidence_class is EvidenceClass.GENERAL and self.values:
            raise ValueError(f"a GENERAL claim must carry no number, {self.id} carries {len(self.values)}")


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence beside the claims: short answer, absence, triage, caution..."""

    kind: NoticeKind
    text: str
    slot: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the owner gets. ``chain`` is the connected subgraph's edges; ``budget`` is
    (used, limit, cut claim ids) in ceil(UTF-8 bytes / 4). ``layout`` is the order in which
    notices and claims are read aloud: ``n0``, ``c1``..., paragraphs split by ``-``.
    """

    as_of_ms: int
    zone: str
    question: Question
    claims: tuple[Claim, ...]
    notices: tuple[Notice, ...]
    chain: tuple[RecordRef, ...]
    near_misses: tuple[NearMiss, ...]
    budget: tuple[int, int, tuple[str, ...]]
    layout: tuple[str, ...]
    explain: tuple[str, ...] = ()
    language: str = "en"
    """What it is worded in: the question's language, or English where that has no wording for it."""
