"""Proves the scorer: answers are spoiled on purpose, one place at a time, and each must be caught.

Swapped and dropped citations, shifted values and words, swapped names, flipped classes, dropped labels,
false edges, deleted sources. A spoiled answer that the checker passes is counted and named.
"""

from __future__ import annotations

import copy
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from tests.evaluate.book import Book
from tests.evaluate.replay import replay

__all__ = ["MUTATIONS", "Caught", "spoiled"]

Mutation = Callable[[dict, Book, random.Random], bool]
_CITED = ("MEASURED", "RECORDED", "REFERENCE")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FIGURE = re.compile(r"\d+")
_CLASSES = (*_CITED, "CONNECTION", "GENERAL")


@dataclass
class Caught:
    """How many spoiled answers of a kind were made, how many were caught, and those that were not."""

    made: int
    caught: int
    passed: list[str]


def _pick(answer: dict, rng: random.Random, *classes: str) -> dict | None:
    chosen = [claim for claim in answer["claims"] if claim["class"] in classes]
    return rng.choice(chosen) if chosen else None


def _swapped_citation(answer: dict, book: Book, rng: random.Random) -> bool:
    """One citation opens another record of the same kind."""
    claim = _pick(answer, rng, *_CITED)
    if claim is None:
        return False
    at = rng.randrange(len(claim["refs"]))
    kind = claim["refs"][at].partition(":")[0]
    others = [row[0] for row in book.all("SELECT ref FROM record WHERE kind = ? ORDER BY ref", kind)]
    others = [
        ref
        for ref in others
        if ref not in claim["refs"] and book.stored(ref) and _differs(book, ref, claim["refs"][at])
    ]
    if not others:
        return False
    claim["refs"][at] = rng.choice(others)
    return True


def _dropped_citation(answer: dict, book: Book, rng: random.Random) -> bool:
    """One of a claim's citations is left out, or its only one."""
    del book
    claim = _pick(answer, rng, *_CITED)
    if claim is None:
        return False
    claim["refs"].pop(rng.randrange(len(claim["refs"])))
    return True


def _differs(book: Book, one: str, other: str) -> bool:
    """Whether two records say different things; a twin under another reference is no false citation."""
    if one.startswith(("day:", "event:")):
        return True
    first, second = book.text(one), book.text(other)
    return first is None or second is None or first.text not in second.text


def _shifted_value(answer: dict, book: Book, rng: random.Random) -> bool:
    """One figure is off by a few percent, or a word or date by one."""
    del book
    claims = [claim for claim in answer["claims"] if claim["values"]]
    if not claims:
        return False
    claim = rng.choice(claims)
    name = rng.choice(sorted(claim["values"]))
    value = claim["values"][name]
    if isinstance(value["v"], str):
        if _ISO_DATE.fullmatch(value["v"]):
            moved = date.fromisoformat(value["v"]) + timedelta(days=rng.choice((1, -1)))
            value["v"] = moved.isoformat()
            return True
        value["v"] = {"up": "down", "down": "up", "usual": "up"}.get(value["v"], "up")
    elif value["unit"] in ("count", "days"):
        value["v"] += rng.choice((1, -1))
    else:
        value["v"] = value["v"] * rng.choice((0.93, 1.07)) + (1e-3 if value["v"] == 0 else 0)
    return True


def _shifted_words(answer: dict, book: Book, rng: random.Random) -> bool:
    """A figure, a date or an hour in the words alone is another."""
    del book
    told = [claim for claim in answer["claims"] if claim["class"] in _CITED and _FIGURE.search(claim["text"])]
    if not told:
        return False
    claim = rng.choice(told)
    found = rng.choice(list(_FIGURE.finditer(claim["text"])))
    other = f"{(int(found[0]) + rng.choice((3, 7))) % 10 ** len(found[0]):0{len(found[0])}d}"
    claim["text"] = f"{claim['text'][: found.start()]}{other}{claim['text'][found.end() :]}"
    return True


def _swapped_name(answer: dict, book: Book, rng: random.Random) -> bool:
    """A pet or a food in the words alone is another of the household's."""
    names = [*book.pets.values(), *(name for name, _ in book.foods.values())]
    told = [
        (claim, name)
        for claim in answer["claims"]
        if claim["class"] in _CITED
        for name in names
        if re.search(rf"\b{re.escape(name)}\b", claim["text"])
    ]
    if not told:
        return False
    claim, name = rng.choice(told)
    among = sorted(book.pets.values()) if name in book.pets.values() else sorted(n for n, _ in book.foods.values())
    others = [other for other in among if other not in claim["text"]]
    if not others:
        return False
    claim["text"] = claim["text"].replace(name, rng.choice(others))
    return True


def _flipped_class(answer: dict, book: Book, rng: random.Random) -> bool:
    del book
    claim = _pick(answer, rng, *_CLASSES)
    if claim is None:
        return False
    claim["class"] = rng.choice([name for name in _CLASSES if name != claim["class"]])
    return True


def _dropped_label(answer: dict, book: Book, rng: random.Random) -> bool:
    """The words that say what a claim stands on are gone."""
    del book
    claim = _pick(answer, rng, *_CLASSES)
    if claim is None:
        return False
    if claim["class"] in _CITED:
        claim["cite"] = ""
    elif claim["class"] == "CONNECTION":
        claim["text"] = claim["text"].replace("may", "does").partition(";")[0]
    else:
        claim["text"] = claim["text"].partition(": ")[2] or claim["text"].replace("General knowledge", "Known")
    return True


def _false_edge(answer: dict, book: Book, rng: random.Random) -> bool:
    """The chain holds a link that nobody stored, or a cause that no link reaches."""
    connections = [claim for claim in answer["claims"] if claim["class"] == "CONNECTION"]
    if connections and rng.random() < 0.5:
        claim = rng.choice(connections)
        foods = [f"food:{food}" for food in book.foods] + ["food:nobody_fed_this"]
        others = [food for food in foods if food not in claim["about"]]
        claim["about"] = [*claim["about"][:2], rng.choice(others)]
        return True
    if not answer["chain"]:
        return False
    at = rng.randrange(len(answer["chain"]))
    tail, relation, head, start = answer["chain"][at].removeprefix("edge:").split("|")
    false = rng.choice(
        (f"{head}|{relation}|{tail}|{start}", f"{tail}|{relation}|{head}x|{start}", f"{tail}|makes|{head}|{start}")
    )
    answer["chain"][at] = f"edge:{false}"
    return True


MUTATIONS: dict[str, Mutation] = {
    "swapped citation": _swapped_citation,
    "dropped citation": _dropped_citation,
    "shifted value": _shifted_value,
    "shifted words": _shifted_words,
    "swapped name": _swapped_name,
    "flipped class": _flipped_class,
    "dropped label": _dropped_label,
    "false edge": _false_edge,
}


def _deleted_source(answer: dict, path: str, rng: random.Random) -> bool | None:
    """Whether the checker sees that a cited source was deleted; None where nothing is cited.

    The source goes inside a transaction that is rolled back, on the checker's own connection.
    """
    refs = sorted({ref for claim in answer["claims"] for ref in claim["refs"]})
    if not refs:
        return None
    ref, book = rng.choice(refs), _Writable(path)
    try:
        book.drop(ref)
        return bool(replay(answer, book))
    finally:
        book.close()


class _Writable(Book):
    """A book in which a record can be torn out; nothing is ever committed."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA foreign_keys = OFF")

    def drop(self, ref: str) -> None:
        table = {"event": "frame", "day": "day"}.get(ref.partition(":")[0], "text_record")
        self._db.execute(f"DELETE FROM {table} WHERE record = (SELECT id FROM record WHERE ref = ?)", (ref,))

    def close(self) -> None:
        self._db.rollback()
        super().close()


def spoiled(answer: dict, book: Book, path: str, rng: random.Random) -> Iterator[tuple[str, bool, str]]:
    """One spoiled answer of each kind that fits: (kind, whether it was caught, what was asked).

    Only a sound answer can be spoiled; one that already has problems yields nothing.
    """
    if replay(answer, book):
        return
    for kind, mutation in MUTATIONS.items():
        twin = copy.deepcopy(answer)
        if mutation(twin, book, rng):
            yield kind, bool(replay(twin, book)), f"{answer['question']} {_difference(answer, twin)}"
    gone = _deleted_source(answer, path, rng)
    if gone is not None:
        yield "deleted source", gone, answer["question"]


def _difference(before: dict, after: dict) -> str:
    for one, other in zip(before["claims"], after["claims"], strict=True):
        for name in one:
            if one[name] != other[name]:
                return f"{one['kind']} {name}: {_unlike(one[name], other[name])}"
    return f"chain: {sorted(set(after['chain']) - set(before['chain']))}"


def _unlike(one: object, other: object) -> str:
    if isinstance(one, list) and isinstance(other, list):
        return f"{[x for x in one if x not in other]} -> {[x for x in other if x not in one]}"
    if isinstance(one, dict) and isinstance(other, dict):
        return f"{[(k, one[k], other[k]) for k in one if one[k] != other[k]]}"
    return f"{one} -> {other}"
