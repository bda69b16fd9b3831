"""The replaced stack's arithmetic on texts: chunks, questions rewritten, rank fusion, the budget.

Plain Python, nothing of the three packages: it runs in the stack's own environment and is
tested in the product's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.evaluate.cases import Document, tokens

__all__ = [
    "EXPANSIONS",
    "Chunk",
    "Query",
    "Spent",
    "asked_days",
    "chunks_of",
    "fused",
    "in_turns",
    "kind_of",
    "rewritten",
]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PIECE = re.compile(r".+?(?:[.!?]\s+|\n+|\Z)", re.DOTALL)
_DAY = re.compile(rf"\b({'|'.join(_MONTHS)}) (\d{{1,2}}),? (\d{{4}})")
_WORD = re.compile(r"\S+\s*")

PLAIN, PLANNED = ("none", "dates", "feedback"), ("parts", "plan")
EXPANSIONS = (*PLAIN, *PLANNED)
"""How a question is rewritten before retrieval; `rewritten` says what each does. The plain ones are
what a stack of chunks does with any question, the planned ones know what our chains look like."""

_PARTS = (
    ("was put into {pet}'s bowl", "log", None),
    ("Ingredients", "label", 1),
    ("commonly reported trigger in {kind}s", "guide", 2),
    ("can cause food allergy in {kind}s", "guide", 2),
    ("Food allergy in {kind}s shows as {sign}", "guide", None),
    ("{pet}: flea treatment, tablet, vaccination or another medicine", "log", None),
    ("can have the side effect of {sign} in {kind}s", "guide", 6),
    ("Flea allergy in {kind}s shows as {sign}", "guide", None),
    ("Fleas may cause flea allergy in {kind}s", "guide", None),
    ("{pet}: boarded, was visited, met other animals", "log", None),
    ("collar that serves {pet}", "", None),
    ("Boarding kennels can carry fleas", "guide", None),
    ("Flea treatment prevents flea allergy in {kind}s while it lasts", "guide", None),
)
"""What an engineer of pet questions knows a chain is made of, one query for each kind of record:
its words, the kind of document it is looked for in, and the query (1 is the first of these) whose
best chunk is asked with beside the words."""

_SIGNS = (
    ("scratch", "itching"),
    ("shak", "head shaking, ear disease"),
    ("eat", "poor appetite, eating less"),
    ("drink", "drinking more, thirst"),
    ("move", "less active days"),
    ("activ", "less active days"),
    ("restless", "restlessness"),
    ("rest", "less active days, restlessness"),
    ("weigh", "weight loss"),
)
"""What a guide calls a sign that an owner names otherwise."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Characters ``[start, end)`` of a document; ``head`` is its title, put before it in the indexes alone."""

    document: str
    start: int
    end: int
    text: str
    head: str = ""
    kind: str = ""
    day: str = ""

    @property
    def indexed(self) -> str:
        return f"{self.head}: {self.text}" if self.head else self.text


def chunks_of(document: Document, *, size: int, overlap: int = 0) -> tuple[Chunk, ...]:
    """Whole sentences packed to at most `size` budget units, the last `overlap` units said again.

    A sentence longer than `size` is cut between words. The chunks leave no character out, so
    whatever a document states is in some chunk or in two neighbours.
    """
    if size < 1 or not 0 <= overlap < size:
        raise ValueError(f"a chunk must hold at least 1 unit and more than its overlap, has {size} and {overlap}")
    pieces = _pieces(document.text, size)
    chunks: list[Chunk] = []
    day = day_of(document)
    first = 0
    while first < len(pieces):
        last = first + 1
        while last < len(pieces) and tokens(document.text[pieces[first][0] : pieces[last][1]]) <= size:
            last += 1
        start, end = pieces[first][0], pieces[last - 1][1]
        chunks.append(Chunk(document.id, start, end, document.text[start:end], document.title, document.kind, day))
        if last == len(pieces):
            break
        again = last
        while again - 1 > first and tokens(document.text[pieces[again - 1][0] : end]) <= overlap:
            again -= 1
        first = again
    return tuple(chunks)


def _pieces(text: str, size: int) -> list[tuple[int, int]]:
    spans = []
    for sentence in _PIECE.finditer(text):
        if tokens(sentence.group()) <= size:
            spans.append(sentence.span())
            continue
        start = sentence.start()
        for word in _WORD.finditer(text, sentence.start(), sentence.end()):
            if word.start() > start and tokens(text[start : word.end()]) > size:
                spans.append((start, word.start()))
                start = word.start()
        spans.append((start, sentence.end()))
    return spans


def day_of(document: Document) -> str:
    """The day a document is of, ``2026-07-14``: the last its title names, else the first of its text; empty for a guide."""
    if document.kind not in ("log", "note", "figures"):
        return ""
    found = _DAY.findall(document.title)[-1:] or _DAY.findall(document.text)[:1]
    return next((f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}" for month, day, year in found), "")


def asked_days(documents: Iterable[Document], pet: str) -> str:
    """The days of the pet's newest figures as their title says them, ``Jul 8 to Jul 14 2026``; empty without any."""
    own = [d for d in documents if d.kind == "figures" and d.title.startswith(f"{pet}, ")]
    return max(own, key=day_of).title.partition(", ")[2] if own else ""


@dataclass(frozen=True, slots=True)
class Query:
    """One text to look for and its say in the fusion.

    ``kind`` keeps to documents of that kind; ``after`` is the number of an earlier query whose
    best chunk is asked with beside the text.
    """

    text: str
    weight: float = 1.0
    kind: str = ""
    after: int | None = None


def kind_of(documents: Iterable[Document], pet: str) -> str:
    """dog or cat, as the household's own sheet says it; "pet" where it does not."""
    for document in documents:
        found = re.search(rf"^{re.escape(pet)}: (dog|cat)\b", document.text, re.MULTILINE)
        if found:
            return found.group(1)
    return "pet"


def rewritten(text: str, *, pet: str, kind: str, days: str, expand: str) -> tuple[Query, ...]:
    """The queries of one question, the question itself first.

    ``none`` asks as it stands; ``dates`` adds the pet's name and the days of the asked week;
    ``feedback`` asks beside that with the best chunk, and with the best chunk of that; ``parts``
    asks for each kind of record a chain is made of, in the guide's words; ``plan`` asks the same
    parts, each only in documents of its kind, and some with what an earlier one found.
    """
    if expand not in EXPANSIONS:
        raise ValueError(f"expand must be one of {', '.join(EXPANSIONS)}, is {expand!r}")
    if expand == "none":
        return (Query(text),)
    question = Query(f"{text} {days}" if pet in text else f"{text} {pet}, {days}")
    if expand == "dates":
        return (question,)
    if expand == "feedback":
        return (question, Query("", 0.5, after=0), Query("", 0.25, after=1))
    sign = next((guide for word, guide in _SIGNS if word in text.lower()), "")
    planned = expand == "plan"
    return (
        question,
        *(
            Query(
                words.format(pet=pet, kind=kind, sign=sign, days=days),
                0.5,
                where if planned else "",
                after if planned else None,
            )
            for words, where, after in _PARTS
        ),
    )


def in_turns(lists: Sequence[Sequence[int]], *, own: int) -> list[int]:
    """One item of each list in turn, the first list `own` at its first turn; no item twice."""
    taken: dict[int, None] = {}
    places = [0] * len(lists)
    while any(place < len(items) for place, items in zip(places, lists, strict=True)):
        for number, items in enumerate(lists):
            wanted = own if number == 0 and places[0] == 0 else 1
            while wanted and places[number] < len(items):
                item = items[places[number]]
                places[number] += 1
                if item not in taken:
                    taken[item] = None
                    wanted -= 1
    return list(taken)


def fused(rankings: Iterable[tuple[float, Sequence[int]]], *, constant: float) -> list[int]:
    """Reciprocal rank fusion: sum of weight / (constant + rank), rank from 1, best first.

    Cormack, Clarke, Buettcher (2009), doi:10.1145/1571941.1572114. Ties by index.
    """
    held: dict[int, float] = {}
    for weight, ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            held[item] = held.get(item, 0.0) + weight / (constant + rank)
    return sorted(held, key=lambda item: (-held[item], item))


@dataclass(slots=True)
class Spent:
    """Chunks admitted in rank order until the budget is spent, whole, skipping what does not fit.

    Text that two chunks share is paid for once: `covers` are the chunks joined.
    """

    budget: int
    used: int = 0
    _held: dict[str, tuple[int, list[tuple[int, int, str]]]] = field(default_factory=dict)

    def admit(self, chunk: Chunk) -> bool:
        cost, held = self._held.get(chunk.document, (0, []))
        joined = _joined([*held, (chunk.start, chunk.end, chunk.text)])
        price = sum(tokens(text) for _, _, text in joined)
        if self.used - cost + price > self.budget:
            return False
        self._held[chunk.document] = (price, joined)
        self.used += price - cost
        return True

    @property
    def covers(self) -> list[tuple[str, int, int]]:
        return [(document, start, end) for document, (_, held) in self._held.items() for start, end, _ in held]


def _joined(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    joined: list[tuple[int, int, str]] = []
    for start, end, text in sorted(spans):
        if joined and start <= joined[-1][1]:
            first, last, before = joined[-1]
            joined[-1] = (first, max(last, end), before + text[max(0, last - start) :])
        else:
            joined.append((start, end, text))
    return joined
