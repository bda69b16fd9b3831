"""Spoils one claim in every way a reader could see: each value, citation, figure, name and direction by itself.

`mutate` draws one spoiling of a kind; this draws none: each is made, one at a time, so that a value
no rule looks at is found. Left out is what says the same: a figure within the rounding of its words,
another link that the very same sentence bears, another pet of a shared bowl.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from datetime import date, timedelta

from tests.evaluate.book import Book

__all__ = ["Spoiling", "spoilings"]

Spoiling = tuple[str, str, dict]
"""(what was spoiled, how, the claim with it)."""
_VERDICTS = ("up", "down", "usual", "cannot_tell")
_COUNTED = ("count", "days", "years", "months")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_TURNED = (
    ("up", "down"),
    ("higher", "lower"),
    ("above", "below"),
    ("day", "night"),
    ("days", "nights"),
    ("his", "her"),
)
_MINUTE_MS = 60_000
_ENDS = 2


def spoilings(claim: dict, book: Book) -> Iterator[Spoiling]:
    """Every spoiling of one claim that cites a record."""
    if claim["class"] not in ("MEASURED", "RECORDED", "REFERENCE"):
        return
    yield from _values(claim)
    yield from _citations(claim, book)
    yield from _words(claim, book)
    yield from _subjects(claim, book)


def _with(claim: dict, *path: str | int, to: object) -> dict:
    twin = copy.deepcopy(claim)
    place = twin
    for step in path[:-1]:
        place = place[step]  # type: ignore[index]
    place[path[-1]] = to  # type: ignore[index]
    return twin


# --- values ---------------------------------------------------------------------------------------------


def _values(claim: dict) -> Iterator[Spoiling]:
    for name, value in claim["values"].items():
        for other in _others(value["v"], value["unit"]):
            yield f"value {name}", f"{value['v']} -> {other}", _with(claim, "values", name, "v", to=other)


def _others(value: float | str, unit: str) -> list[float | str]:
    if isinstance(value, str):
        if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            return [_moved(value, days) for days in (1, -1)]
        return [word for word in _VERDICTS if word != value] if value in _VERDICTS else [f"{value}x"]
    if unit in _COUNTED:
        return [value + 1, value - 1]
    if unit == "ms" and value > 1e11:  # an instant
        return [value + _MINUTE_MS, value - _MINUTE_MS]
    off = max(0.07 * abs(value), 1e-3)
    return [value + off, value - off]


def _moved(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


# --- citations --------------------------------------------------------------------------------------------


def _citations(claim: dict, book: Book) -> Iterator[Spoiling]:
    """Each citation left out, and each in the place of its neighbours of the same kind and of one of elsewhere."""
    last = len(claim["refs"]) - 1
    for at, ref in enumerate(claim["refs"]):
        kind = ref.partition(":")[0]
        if kind == "day" and _ENDS <= at <= last - _ENDS and at != last // 2:
            continue  # a run of days: its ends and its middle
        yield f"dropped {kind}", ref, _with(claim, "refs", to=claim["refs"][:at] + claim["refs"][at + 1 :])
        for other in _instead(claim, ref, kind, book):
            yield f"swapped {kind}", f"{ref} -> {other}", _with(claim, "refs", at, to=other)


def _instead(claim: dict, ref: str, kind: str, book: Book) -> list[str]:
    stored = book.records(kind)
    stem, at = ref.rpartition("/")[0], stored.index(ref) if ref in stored else 0
    near = [other for other in stored[max(at - 3, 0) : at + 4] if other not in claim["refs"]]
    far = [other for other in stored if other not in claim["refs"] and other.rpartition("/")[0] != stem]
    found = [*near, *far[:1], *far[-1:]]
    return [other for other in dict.fromkeys(found) if book.stored(other) and not _says_too(book, other, ref)]


def _says_too(book: Book, one: str, other: str) -> bool:
    """Whether a text holds all that another says: then it is no false citation."""
    if one.startswith(("day:", "event:")):
        return False
    first, second = book.text(one), book.text(other)
    return first is not None and second is not None and first.text in second.text


# --- words -------------------------------------------------------------------------------------------------


def _words(claim: dict, book: Book) -> Iterator[Spoiling]:
    text = claim["text"]
    for found in _FIGURE.finditer(text):
        head, digits = re.fullmatch(r"(.*?)(\d+)", found[0]).groups()  # type: ignore[union-attr]
        for off in (2, -2):
            new = f"{head}{max(int(digits) + off, 0):0{len(digits)}d}"
            if new != found[0]:
                told = f"{text[: found.start()]}{new}{text[found.end() :]}"
                yield "figure in words", f"{found[0]} -> {new} in {text!r}", _with(claim, "text", to=told)
    for pair in _TURNED:
        for one, other in (pair, pair[::-1]):
            if re.search(rf"\b{one}\b", text):
                told = re.sub(rf"\b{one}\b", other, text)
                yield f"{one} in words", f"{one} -> {other} in {text!r}", _with(claim, "text", to=told)
    for names in (sorted(book.pets.values()), sorted(name for name, _ in book.foods.values())):
        for name in names:
            other = next((one for one in names if one != name and one not in text), None)
            if other is not None and re.search(rf"\b{re.escape(name)}\b", text):
                yield (
                    "name in words",
                    f"{name} -> {other} in {text!r}",
                    _with(claim, "text", to=text.replace(name, other)),
                )


# --- what it is about ------------------------------------------------------------------------------------------


def _subjects(claim: dict, book: Book) -> Iterator[Spoiling]:
    """Each series, food and device it is about in the place of every other; a pet of those its bowl does not serve."""
    shared = any(len(book.bound(event.device, event.start_ms)) > 1 for event in map(book.event, claim["refs"]) if event)
    known = {"series": book.series, "food": book.foods, "device": book.devices, "pet": {} if shared else book.pets}
    for at, name in enumerate(claim["about"]):
        kind = name.partition(":")[0]
        for other in sorted(known.get(kind, ())):
            if f"{kind}:{other}" not in claim["about"] and claim["kind"] != "passage":
                yield f"about {kind}", f"{name} -> {other}", _with(claim, "about", at, to=f"{kind}:{other}")
