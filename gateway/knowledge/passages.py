"""Guides and books in, relations with the sentence they were read from out.

Each sentence is read by itself: cue phrases of a table name the relation, the concepts
around the cue are its ends, and the words of the sentence say for which host it holds, how
sure it sounds and whether it denies. What is said of cats gives ``[cat]`` edges alone; a
sentence about a breed gives that breed's edges alone. All passages of a document are one
witness. A sentence with a cue whose ends are not known is kept unlinked, with its span. Text
is data: an instruction in a book is a sentence like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gateway.errors import ImportRefused
from gateway.knowledge.chapters import Book, Passage, read_book
from gateway.knowledge.concepts import HOSTS, breed_host, concepts, label_of
from gateway.knowledge.labels import sha8
from gateway.knowledge.tables import packaged_text, table
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.ontology.load import load
from gateway.ontology.recognise import Alias, Lexicon, Match, Reading, Token, tokens_of
from gateway.stored import Document, Learned, TextRecord

__all__ = ["Context", "Statement", "read_passages", "sentences", "starter_guide", "statements"]

_SENTENCE_END = re.compile(r"[.!?][\"'\u201d)\]]{0,3}(?=\s+[\"'\u201c(\[]?[A-Z0-9\u00c4-\u00dc])")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|dr|vs|approx|no|fig|ch|al|st|mr|mrs|ca))\.\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One relation a sentence states. ``start``/``end`` is the sentence's span in its passage."""

    tail: str
    relation: str
    head: str
    mass: Mass
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Context:
    """What holds before a sentence: the hosts and the breed its paragraph speaks of."""

    hosts: tuple[str, ...] = HOSTS
    breed: str | None = None


@dataclass(frozen=True, slots=True)
class _Cue:
    relation: str
    tails: frozenset[str]
    heads: frozenset[str]
    turned: bool
    numbers: bool
    phrases: Lexicon


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    start: int
    tokens: tuple[Token, ...]
    matches: tuple[Match, ...]

    def mentions(self, kinds: frozenset[str], first: int, last: int) -> list[str]:
        """Targets of these kinds whose tokens lie in [first, last), each once, in order."""
        found = [
            reading.target
            for match in self.matches
            if first <= match.first and match.last <= last
            for reading in match.readings
            if reading.kind in kinds
        ]
        return list(dict.fromkeys(found))


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a paragraph."""
    start = 0
    for mark in _SENTENCE_END.finditer(text):
        if _ABBREVIATED.search(text[max(0, mark.start() - 8) : mark.start() + 1]):
            continue
        yield start, mark.end()
        start = mark.end()
        while start < len(text) and text[start].isspace():
            start += 1
    if start < len(text):
        yield start, len(text)


def read_passages(text: str, *, source: str, title: str | None = None, kind: str = "passage") -> Learned:
    """Read a guide or book.

    Parameters
    ----------
    text : str
        Markdown or plain text with chapters; ``chapters.decode_text`` makes it from a file.
    source : str
        Where it comes from: the file's name.
    title : str | None
        Its title; None takes the one it carries, else the source.
    kind : str
        The witness kind whose reliability caps it: ``guide`` or ``passage``.

    Raises
    ------
    ImportRefused
        If there is no paragraph to read.
    """
    book = read_book(source, text)
    if not book.passages:
        raise ImportRefused(source, "a guide must have at least one paragraph of text, has none")
    return _learned(book if title is None else replace(book, title=title), kind, source=source)


@cache
def starter_guide() -> Learned:
    """The guide that ships with the product."""
    book = read_book("guide.md", packaged_text("guide.md"))
    return _learned(book, "guide", source="ships with scentwalk")


def statements(text: str, context: Context | None = None) -> tuple[tuple[Statement, ...], tuple[tuple[int, int], ...]]:
    """What a paragraph states, and the spans of sentences with a cue whose ends are unknown."""
    now = Context() if context is None else context
    found: list[Statement] = []
    unlinked: list[tuple[int, int]] = []
    for start, end in sentences(text):
        sentence = _read(text[start:end], start)
        now, other = _context(sentence, now)
        if other or text[start:end].rstrip("\"')\u201d").endswith("?"):
            continue
        stated, cued = _state(sentence, now)
        found.extend(stated)
        if cued and not stated:
            unlinked.append((start, end))
    return tuple(found), tuple(unlinked)


# --- documents --------------------------------------------------------------------------------


def _learned(book: Book, kind: str, *, source: str) -> Learned:
    key = sha8(book.text)
    document = Document(f"passage:{key}", kind, book.title, source, facts=book.facts)
    reliability = load().reliability[kind]
    records: list[TextRecord] = []
    evidence: list[Evidence] = []
    edges: dict[Edge, None] = {}
    for passage in book.passages:
        ref = RecordRef(f"passage:{key}#{passage.chapter}.{passage.paragraph}")
        stated, unlinked = statements(passage.text, _context_of(book, passage))
        records.append(_record(ref, book, passage, document.id, unlinked))
        for one in stated:
            edge = Edge(Vertex(one.tail), one.relation, Vertex(one.head))
            edges[edge] = None
            evidence.append(Evidence(edge.ref, ref, one.mass, document.id, reliability, (one.start, one.end)))
    names = sorted({v.name for e in edges for v in (e.tail, e.head)})
    labels = tuple((name, label_of(name)) for name in names)
    return Learned(document, tuple(records), tuple(sorted(edges, key=_edge_key)), _once(evidence), labels)


def _record(
    ref: RecordRef, book: Book, passage: Passage, document: str, unlinked: Sequence[tuple[int, int]]
) -> TextRecord:
    facts = [("source", passage.source)] if passage.source else []
    facts += [("unlinked", f"{start}-{end}") for start, end in unlinked]
    words = f": {passage.chapter_title}" if passage.chapter_title else ""
    title = f"{book.title}, ch. {passage.chapter}{words}"
    return TextRecord(ref, "passage", title, passage.text, document, facts=tuple(facts))


def _once(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """One piece an edge and passage: the first sentence that says it, or denies it."""
    kept: dict[tuple[RecordRef, RecordRef], Evidence] = {}
    for piece in evidence:
        kept.setdefault((piece.edge, piece.record), piece)
    return tuple(kept.values())


def _context_of(book: Book, passage: Passage) -> Context:
    """What the headings say before the paragraph does: nearest first, then the document."""
    document = tuple(h for h in HOSTS if h in (book.fact("hosts") or "dog, cat"))
    context = Context(document or HOSTS)
    for words in (book.title, passage.chapter_title, passage.heading):
        context, _ = _context(_read(words, 0), context)
    return context


def _edge_key(edge: Edge) -> tuple[str, str, str]:
    return (edge.tail.name, edge.relation, edge.head.name)


# --- sentences --------------------------------------------------------------------------------


def _read(text: str, start: int) -> _Sentence:
    tokens = tokens_of(text)
    return _Sentence(text, start, tokens, concepts().find_in(text, tokens))


@cache
def _cues() -> tuple[_Cue, ...]:
    return tuple(
        _Cue(
            row["relation"],
            frozenset(row["tail"]),
            frozenset(row["head"]),
            bool(row.get("turned", False)),
            bool(row.get("numbers", False)),
            _lexicon(row["relation"], row["phrases"]),
        )
        for row in table("passages.toml")["cue"]
    )


@cache
def _hedges() -> tuple[tuple[float, Lexicon], ...]:
    """Masses with the words that call for them, the lowest first."""
    rows = table("passages.toml")["hedge"].items()
    return tuple(
        sorted(((row["mass"], _lexicon(name, row["phrases"])) for name, row in rows), key=lambda pair: pair[0])
    )


@cache
def _negations() -> Lexicon:
    return _lexicon("negation", [_apostrophes(p) for p in table("passages.toml")["negation"]["phrases"]])


@cache
def _exclusions() -> Lexicon:
    return _lexicon("excluded", table("passages.toml")["host"]["excluded_after"])


def _apostrophes(phrase: str) -> str:
    """``doesn t`` as the recogniser's tokens write it."""
    return phrase.replace("n t", "n't")


def _lexicon(name: str, words: Sequence[str]) -> Lexicon:
    return Lexicon(Alias(word, Reading("cue", name)) for word in words)


def _context(sentence: _Sentence, before: Context) -> tuple[Context, bool]:
    """The context after reading a sentence's own hosts and breed, and whether it is about others."""
    everywhere = len(sentence.tokens)
    excluded = {
        reading.target
        for cue in _exclusions().find_in(sentence.text, sentence.tokens)
        for match in sentence.matches
        if match.first == cue.last
        for reading in match.readings
        if reading.kind == "host"
    }
    named = [h for h in sentence.mentions(frozenset({"host"}), 0, everywhere) if h not in excluded]
    breeds = sentence.mentions(frozenset({"breed"}), 0, everywhere)
    other = sentence.mentions(frozenset({"other_host"}), 0, everywhere)
    breed = breeds[0] if breeds else before.breed
    if named:
        return Context(tuple(h for h in HOSTS if h in named), breed), False
    if excluded:
        return Context(tuple(h for h in before.hosts if h not in excluded), breed), False
    return Context(before.hosts, breed), bool(other)


def _state(sentence: _Sentence, context: Context) -> tuple[list[Statement], bool]:
    """The statements of a sentence, and whether any cue stood in it."""
    mass = _mass(sentence)
    cued = False
    for cue in _cues():
        places = cue.phrases.find_in(sentence.text, sentence.tokens)
        if not places:
            continue
        cued = True
        if cue.numbers and not any(token.text[0].isdigit() for token in sentence.tokens):
            continue
        found = _pairs(sentence, cue, places)
        if not found:
            continue
        stated = [
            Statement(tail, relation, head, signed, sentence.start, sentence.start + len(sentence.text))
            for tail, head, signed in ((t, h, _signed(sentence, mass, p)) for t, h, p in found)
            for tail, relation, head in _scoped(tail, cue.relation, head, context)
            if signed is not None
        ]
        return list(dict.fromkeys(stated)), True
    return [], cued


def _pairs(sentence: _Sentence, cue: _Cue, places: Sequence[Match]) -> list[tuple[str, str, Match]]:
    """(tail, head, cue) for each cue place; a cue reaches to its neighbours and no further."""
    everywhere = len(sentence.tokens)
    found: list[tuple[str, str, Match]] = []
    for index, place in enumerate(places):
        before = places[index - 1].last if index else 0
        after = places[index + 1].first if index + 1 < len(places) else everywhere
        tails = sentence.mentions(cue.tails, before, place.first)
        heads = sentence.mentions(cue.heads, place.last, after)
        if cue.numbers:
            tails, heads = sentence.mentions(cue.tails, 0, everywhere), sentence.mentions(cue.heads, 0, everywhere)
        elif cue.turned and not tails:
            tails = sentence.mentions(cue.tails, place.last, after)
            heads = heads or sentence.mentions(cue.heads, before, place.first)
        elif cue.turned and not heads:
            heads = sentence.mentions(cue.heads, before, place.first)
        found.extend((tail, head, place) for tail in tails for head in heads)
    return found


def _scoped(tail: str, relation: str, head: str, context: Context) -> Iterator[tuple[str, str, str]]:
    """The edges a pair stands for: one a host, or the breed's own where a breed is spoken of."""
    if not load().relations[relation].host:
        yield tail, relation, head
    elif context.breed is None:
        for host in context.hosts:
            yield tail, f"{relation}[{host}]", head
    elif head.startswith("condition:"):
        breed = tail if tail.startswith("breed:") else context.breed
        yield breed, f"prone_to[{breed_host(breed.partition(':')[2])}]", head


def _mass(sentence: _Sentence) -> float:
    """The lowest hedge of the sentence: a thing is stated as weakly as its weakest word."""
    for mass, words in _hedges():
        if words.find_in(sentence.text, sentence.tokens):
            return mass
    return max(mass for mass, _ in _hedges())


def _signed(sentence: _Sentence, mass: float, place: Match) -> Mass | None:
    """The mass on the side the sentence takes; None where it only asks or supposes."""
    if mass == 0.0:
        return None
    denied = any(
        cue.last <= place.first or (cue.first >= place.first and cue.last <= place.last)
        for cue in _negations().find_in(sentence.text, sentence.tokens)
    )
    return Mass(0.0, table("passages.toml")["negation"]["mass"]) if denied else Mass(mass)
