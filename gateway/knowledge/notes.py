"""Vet notes and the owner's log: verbatim text in, dated and scoped findings out.

A note is kept word for word; abbreviations are expanded only to read it. Each finding is
read within its clause: denied, ruled out, only suspected, past, or of another animal. What
another animal has makes no edge of this pet; a suspicion is weak by table; a ruling out or a
trial without a flare is an edge of its own kind, which is never walked. Medicine schedules
are quoted, never computed with. An instruction inside a note is text like the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from gateway.errors import ImportRefused
from gateway.knowledge.concepts import concepts, label_of
from gateway.knowledge.labels import sha8
from gateway.knowledge.tables import table
from gateway.model import Edge, Evidence, Mass, Pet, RecordRef, Vertex
from gateway.ontology.load import load, things
from gateway.ontology.recognise import Alias, Lexicon, Match, Reading, Token, tokens_of
from gateway.stored import Document, Learned, TextRecord

__all__ = ["Finding", "find_in_note", "log_kind_of", "read_note"]

MOST_CHARACTERS = 200_000
"""A pet's whole clinical history, some hundred pages; a longer text is not one note."""

_DAY_MS = 86_400_000
_LONGEST_CLAUSE = 80
"""Words after which a clause ends anyhow: a page without a full stop stays linear to read."""
_LONGEST_MEMBER = 3
"""Words of one member of a list under one "no": "no fleas, ear mites or ticks"."""
_JOINERS = frozenset({"or", "nor", "and"})
_SENTENCE_END = re.compile(r"[.!?](?=\s)")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|dr|vs|approx|ca|no|st|mr|mrs))\.\Z", re.IGNORECASE)
_ORDER = ("other", "ruled_out", "negated", "suspected", "past", "diagnosed")
"""Which stance holds where several reach a finding: what would claim least comes first."""

_FINDINGS = frozenset({"condition", "sign"})
_FOODS = frozenset({"species", "group"})


_Cues = list[tuple[str, tuple[Match, ...], tuple[Match, ...]]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a note says. ``stance`` is a key of the mass table or ``other``; the span is
    that of its sentence in the note.
    """

    target: str
    stance: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Clause:
    """A stretch of a sentence that one stance may cover, read with abbreviations expanded."""

    text: str
    tokens: tuple[Token, ...]
    matches: tuple[Match, ...]
    start: int
    end: int

    def has(self, words: Lexicon) -> bool:
        return bool(words.find_in(self.text, self.tokens))

    def targets(self, kinds: frozenset[str]) -> list[tuple[Match, str]]:
        found = [(m, r.target) for m in self.matches for r in m.readings if r.kind in kinds]
        return list(dict.fromkeys(found))


def log_kind_of(what: str, *, medicines: tuple[str, ...] = ()) -> str | None:
    """The log kind of an entry's words (``flea treatment`` -> flea_treatment), or None.

    The longest phrase wins, then the earlier one. An entry that says a thing was not done
    ("forgot the flea treatment") is a plain note. ``medicines`` are the home's own names of
    medicines: one of them, where no other word tells the kind, is a medicine given.
    """
    tokens = tokens_of(what)
    if _words("log", "undone").find_in(what, tokens):
        return None
    found = _log_words().find_in(what, tokens)
    if not found:
        folded = f" {' '.join(token.text for token in tokens)} "
        own = any(f" {' '.join(token.text for token in tokens_of(name))} " in folded for name in medicines)
        return "medicine" if own else None
    best = max(found, key=lambda match: (match.last - match.first, -match.first))
    order = list(load().log_kinds)
    return min((reading.target for reading in best.readings), key=order.index)


def read_note(text: str, *, pet: Pet, at_ms: int, author: str = "vet", other_pets: Sequence[str] = ()) -> Learned:
    """Read one note about a pet.

    Parameters
    ----------
    text : str
        The note as written.
    pet : Pet
        Whom it is about.
    at_ms : int
        When it was written (UTC ms); findings hold from then on.
    author : str
        Who wrote it: ``owner`` or a vet's name. One note is one witness.
    other_pets : sequence of str
        Names of the household's other pets: their clauses make no edge of this one.

    Raises
    ------
    ImportRefused
        If there is no text, or more than a note can hold.
    """
    if not text.strip():
        raise ImportRefused("note", "a note must have text, has none")
    if len(text) > MOST_CHARACTERS:
        raise ImportRefused("note", f"a note must have at most {MOST_CHARACTERS} characters, has {len(text)}")
    key = f"{pet.id}-{at_ms}-{sha8(text)}"
    owner = author == "owner"
    document = Document(f"note:{key}", "note", "Owner's note" if owner else "Vet note", author)
    ref = RecordRef(f"note:{key}")
    findings = find_in_note(text, other_pets=other_pets)
    whole = TextRecord(ref, "note", document.title, text, document.id, pet=pet.id, at_ms=at_ms, facts=_facts(findings))
    reliability = load().reliability["owner_log" if owner else "vet_note"]
    evidence: dict[RecordRef, Evidence] = {}
    edges: list[Edge] = []
    for edge, mass, span in _edges(pet, at_ms, findings):
        if edge.ref not in evidence:
            edges.append(edge)
            evidence[edge.ref] = Evidence(edge.ref, ref, Mass(mass), document.id, reliability, span)
    records = (whole, *_schedules(text, key, pet, at_ms, document.id))
    names = sorted({edge.head.name for edge in edges})
    return Learned(
        document, records, tuple(edges), tuple(evidence.values()), tuple((name, label_of(name)) for name in names)
    )


def find_in_note(text: str, *, other_pets: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Every finding of a note with its stance, in reading order. Linear in the note's length."""
    others = Lexicon(Alias(name, Reading("cue", "other"), "name") for name in other_pets)
    found: list[Finding] = []
    for line_start, line in _lines(text):
        for start, end in _sentences(line):
            elsewhere = False
            for clause in _clauses(line[start:end], line_start + start):
                elsewhere = elsewhere or clause.has(_words("stance", "other", "before")) or clause.has(others)
                found.extend(_read_clause(clause, line_start + start, line_start + end, elsewhere=elsewhere))
    return tuple(found)


# --- reading --------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    """Spans of a line's sentences; a note's sentence may begin in lower case."""
    start = 0
    for mark in _SENTENCE_END.finditer(line):
        if not _ABBREVIATED.search(line[max(0, mark.start() - 8) : mark.end()]):
            yield start, mark.end()
            start = mark.end()
            while start < len(line) and line[start].isspace():
                start += 1
    if start < len(line):
        yield start, len(line)


def _read_clause(clause: _Clause, start: int, end: int, *, elsewhere: bool) -> Iterator[Finding]:
    """Findings of one clause: trials first, then conditions and signs, then medicines."""
    if not clause.matches:
        return
    cues = _cues_of(clause)
    foods = [target for _, target in clause.targets(_FOODS)]
    tolerated = clause.has(_words("trial", "tolerated"))
    reacted = not tolerated and clause.has(_words("trial", "reacted"))
    for food in foods:
        stance = "tolerated" if tolerated else "reacted" if reacted else "mentioned"
        if reacted:
            stance = _stance_of_clause(clause, stance)
        yield Finding(food, "other" if elsewhere else stance, start, end)
    if reacted and foods:
        stance = _stance_of_clause(clause, "reacted")
        yield Finding("condition:food_allergy", "other" if elsewhere else stance, start, end)
    for match, target in clause.targets(_FINDINGS):
        if tolerated and foods:
            continue
        stance = "other" if elsewhere else _stance(clause, cues, match)
        yield Finding(target, stance, start, end)
    for match, target in clause.targets(frozenset({"med"})):
        if elsewhere or _stance(clause, cues, match) in {"negated", "ruled_out", "suspected"}:
            yield Finding(target, "other" if elsewhere else "mentioned", start, end)
        elif clause.has(_words("medicine", "stop")):
            yield Finding(target, "stopped", start, end)
        elif clause.has(_words("medicine", "start")) or clause.has(_words("medicine", "schedule")):
            yield Finding(target, "takes", start, end)
        else:
            yield Finding(target, "mentioned", start, end)


def _stance(clause: _Clause, cues: _Cues, match: Match) -> str:
    """The stance that reaches a finding: a word before it, or one right after it."""
    for stance, before, after in cues:
        if any(cue.last <= match.first and _reaches(clause, cue, match, stance) for cue in before):
            return stance
        if any(cue.first >= match.last and not _commas(clause, match.last, cue.first) for cue in after):
            return stance
    return "stated"


def _cues_of(clause: _Clause) -> _Cues:
    """The stance words of a clause, found once: (stance, those that act on, those that act back)."""
    return [
        (
            stance,
            _words("stance", stance, "before").find_in(clause.text, clause.tokens),
            _words("stance", stance, "after").find_in(clause.text, clause.tokens),
        )
        for stance in _ORDER[1:]
    ]


def _commas(clause: _Clause, first: int, past: int) -> list[int]:
    return [index for index in range(first, past) if clause.tokens[index].text == ","]


def _reaches(clause: _Clause, cue: Match, match: Match, stance: str) -> bool:
    """Whether a word before a finding still covers it behind a comma.

    A suspicion does; anything stronger only along a list of short members that ends in "or":
    "no fleas, ticks or mites" denies three things, "no fleas, otitis externa" one.
    """
    commas = _commas(clause, cue.last, match.first)
    if not commas or stance == "suspected":
        return True
    join = next((i for i in range(commas[-1], len(clause.tokens)) if clause.tokens[i].text in _JOINERS), None)
    if join is None or match.first > join + _LONGEST_MEMBER:
        return False
    places = [cue.last - 1, *_commas(clause, cue.last, join), join]
    return all(later - earlier - 1 <= _LONGEST_MEMBER for earlier, later in pairwise(places))


def _stance_of_clause(clause: _Clause, plain: str) -> str:
    """``suspected`` or ``negated`` where the clause says so anywhere, else ``plain``."""
    for stance in ("suspected", "negated"):
        if clause.has(_words("stance", stance, "before")) or clause.has(_words("stance", stance, "after")):
            return stance
    return plain


def _clauses(sentence: str, start: int) -> Iterator[_Clause]:
    """The clauses of a sentence: split at semicolons and at words that turn the sense."""
    expanded, offsets = _expand(sentence)
    tokens = tokens_of(expanded)
    ends = {cue.first for cue in _words("clause", "ends").find_in(expanded, tokens)}
    ends |= {index for index, token in enumerate(tokens) if token.text in {";", "|"}}
    ends |= set(range(_LONGEST_CLAUSE, len(tokens), _LONGEST_CLAUSE))
    first = 0
    for stop in (*sorted(ends), len(tokens)):
        part = tokens[first:stop]
        if part:
            matches = concepts().find_in(expanded, part)
            begin, end = offsets[part[0].start], offsets[part[-1].end - 1] + 1
            yield _Clause(expanded, part, matches, start + begin, start + end)
        first = stop + 1 if stop < len(tokens) and tokens[stop].text in {";", "|"} else stop


def _expand(text: str) -> tuple[str, list[int]]:
    """The text with abbreviations written out, and each character's place in the original."""
    pieces: list[str] = []
    offsets: list[int] = []
    at = 0
    for found in _abbreviations().finditer(text):
        pieces.append(text[at : found.start()])
        offsets.extend(range(at, found.start()))
        words = table("notes.toml")["abbreviation"][found[0]]
        pieces.append(words)
        offsets.extend([found.start()] * (len(words) - 1) + [found.end() - 1])
        at = found.end()
    pieces.append(text[at:])
    offsets.extend(range(at, len(text)))
    return "".join(pieces), offsets


# --- tables ---------------------------------------------------------------------------------


@cache
def _abbreviations() -> re.Pattern[str]:
    words = sorted(table("notes.toml")["abbreviation"], key=len, reverse=True)
    return re.compile(r"(?<![\w/+-])(?:" + "|".join(re.escape(word) for word in words) + r")(?![\w/+])")


@cache
def _words(*path: str) -> Lexicon:
    """A list of the notes' table as a lexicon of cues."""
    found: Any = table("notes.toml")
    for step in path:
        found = found.get(step, ())
    phrases: Sequence[str] = found
    spelled = [phrase.replace("n t", "n't").replace("owner s", "owner's") for phrase in phrases]
    return Lexicon(Alias(phrase, Reading("cue", path[-1])) for phrase in spelled)


@cache
def _log_words() -> Lexicon:
    """Words of log entries: the ontology's, and the medicines it knows by name."""
    aliases = [
        Alias(word, Reading("log", kind.id), "noun") for kind in load().log_kinds.values() for word in kind.words
    ]
    by_medicine = {kind.med: kind.id for kind in load().log_kinds.values() if kind.med is not None}
    by_medicine["med:vaccine"] = "vaccine"
    for form, readings in things().lexicon.forms():
        aliases += [
            Alias(form, Reading("log", by_medicine.get(reading.target, "medicine")))
            for reading in readings
            if reading.kind == "med"
        ]
    return Lexicon(aliases)


# --- edges ----------------------------------------------------------------------------------


def _edges(pet: Pet, at_ms: int, findings: Sequence[Finding]) -> Iterator[tuple[Edge, float, tuple[int, int]]]:
    """The edges of a note, each with its mass before the writer's reliability."""
    masses = table("notes.toml")["mass"]
    me = Vertex(f"pet:{pet.id}")
    for finding in findings:
        head, span = Vertex(finding.target), (finding.start, finding.end)
        if head.type == "condition":
            if finding.stance in {"ruled_out", "negated"}:
                yield Edge(me, "ruled_out", head, at_ms), masses[finding.stance], span
            elif finding.stance == "past":
                yield Edge(me, "diagnosed_with", head, None, at_ms), masses["past"], span
            elif finding.stance in masses:
                yield Edge(me, "diagnosed_with", head, at_ms), masses[finding.stance], span
        elif head.type == "sign" and finding.stance in {"stated", "diagnosed"}:
            yield Edge(me, "exhibits", head, at_ms, at_ms + _DAY_MS), masses["exhibits"], span
        elif finding.stance == "tolerated" and head.type == "species":
            yield Edge(me, "tolerates", head, at_ms), masses["tolerated"], span
        elif finding.stance == "takes":
            yield Edge(me, "takes", head, at_ms), masses["takes"], span


def _facts(findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    """What was read, for the reader of the record: stance and thing, each once."""
    told = {"tolerated", "reacted", "suspected", "ruled_out", "negated", "past", "stopped", "other"}
    facts = [(f.stance, label_of(f.target)) for f in findings if f.stance in told]
    return tuple(dict.fromkeys(facts))


def _schedules(text: str, key: str, pet: Pet, at_ms: int, document: str) -> Iterator[TextRecord]:
    """Sentences that say when a medicine is to be given, verbatim."""
    for line_start, line in _lines(text):
        for start, end in _sentences(line):
            expanded, _ = _expand(line[start:end])
            tokens = tokens_of(expanded)
            meds = [r.target for m in concepts().find_in(expanded, tokens) for r in m.readings if r.kind == "med"]
            if meds and _words("medicine", "schedule").find_in(expanded, tokens):
                first, past = line_start + start, line_start + end
                yield TextRecord(
                    RecordRef(f"note:{key}#{first}-{past}"),
                    "schedule",
                    f"Schedule: {label_of(meds[0])}",
                    text[first:past],
                    document,
                    pet=pet.id,
                    at_ms=at_ms,
                    object=meds[0],
                )
