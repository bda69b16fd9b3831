"""What is evaluated: simulated households, their documents, and questions whose truth is known.

Values only. A `World` is a real database and the same facts as texts; its questions know the
true chain of facts, each with the records that hold it (ours) and the spans of the documents
that state it (the stack of chunks). Nothing of the three packages is imported here, so the
stack's own environment can read what `write_cases` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = [
    "BUDGET",
    "TIGHT",
    "Cover",
    "Document",
    "Fact",
    "Number",
    "Question",
    "Span",
    "Truth",
    "World",
    "covered",
    "read_cases",
    "tokens",
    "write_cases",
]

BUDGET = 600
"""Units of ceil(UTF-8 bytes / 4) that either side may spend on a question."""

TIGHT = 200
"""A third of it: room for the sources of one cause and not of two, so that their order decides what is told."""


def tokens(text: str) -> int:
    """Budget units of a text: ceil(UTF-8 bytes / 4)."""
    return -(-len(text.encode()) // 4)


@dataclass(frozen=True, slots=True)
class Document:
    """A text the household has: ``kind`` is label, guide, note, log or figures.

    ``figures`` is a pet's measured week written out, one sentence a series.
    """

    id: str
    kind: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters ``[start, end)`` of a document's text."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One link of a true chain.

    ``records`` are stored records any one of which holds it, ``edge`` the link of the graph it
    is (empty where it is no link), ``spans`` the places of the documents any one of which states it.
    """

    id: str
    records: tuple[str, ...]
    edge: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A figure a right answer gives, in stored units, and how far it may be off."""

    name: str
    value: float
    slack: float


@dataclass(frozen=True, slots=True)
class Truth:
    """What a right answer says, known from the hidden causes.

    Empty fields are not asked of this question. ``causes`` are the vertices of the true causes,
    ``also`` links that are true beside those of the facts, ``never`` those that must not be named (refuted, another pet's, ...); ``asks_cause`` marks a
    question that a cause may be named to, so that an empty ``causes`` means "none". ``slot`` and
    ``device`` are what must be named as missing: acceptable slots, and the device kind that would
    have known. ``premise`` is the direction the records show against the one asked.
    """

    causes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    asks_cause: bool = False
    verdict: str = ""
    absent: bool = False
    slots: tuple[str, ...] = ()
    device: str = ""
    premise: bool = False
    conservative: bool = False
    numbers: tuple[Number, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question. ``hops`` is the number of facts that must be joined, 0 where no chain is asked."""

    id: str
    kind: str
    text: str
    pet: str
    now_ms: int
    facts: tuple[Fact, ...] = ()
    truth: Truth = Truth()

    @property
    def hops(self) -> int:
        return len(self.facts)


@dataclass(frozen=True, slots=True)
class World:
    """One household: its database file, its texts and its questions."""

    id: str
    kind: str
    db_path: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, order=True)
class Cover:
    """A retrieved chunk: characters ``[start, end)`` of a document's text."""

    document: str
    start: int
    end: int


def covered(fact: Fact, chunks: Iterable[Cover]) -> bool:
    """Whether the chunks together hold one of the fact's spans from end to end."""
    held = sorted(chunks)
    return any(_holds(held, span) for span in fact.spans)


def _holds(held: list[Cover], span: Span) -> bool:
    reached = span.start
    for chunk in held:
        if chunk.document == span.document and chunk.start <= reached < chunk.end:
            reached = chunk.end
    return reached >= span.end


def write_cases(path: Path, worlds: Iterable[World]) -> int:
    """One JSON object a line, without what only our side uses; the number of questions."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for world in worlds:
            row = asdict(world)
            for question in row["questions"]:
                del question["truth"]
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += len(world.questions)
    return count


def read_cases(path: Path) -> Iterator[World]:
    """The worlds of a file that `write_cases` wrote."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        questions = tuple(
            Question(
                id=q["id"],
                kind=q["kind"],
                text=q["text"],
                pet=q["pet"],
                now_ms=q["now_ms"],
                facts=tuple(
                    Fact(f["id"], tuple(f["records"]), f["edge"], tuple(Span(**span) for span in f["spans"]))
                    for f in q["facts"]
                ),
            )
            for q in row["questions"]
        )
        documents = tuple(Document(**document) for document in row["documents"])
        yield World(row["id"], row["kind"], row["db_path"], documents, questions)
