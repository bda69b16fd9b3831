"""Frames: parts of a phrase that stand in order with other words between them.

"hasn't really touched any of her food" is no fixed phrase: a negation, a verb and a meal, in
that order, few words apart and within one clause. In: tokens. Out: spans with what they mean,
as a table lists them. Linear in the tokens times the frames whose first part was found; the
earliest parts win, nothing is weighed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.ontology.recognise import Recogniser, Token

__all__ = ["Frame", "FrameHit", "Frames"]


@dataclass(frozen=True, slots=True)
class Frame:
    """An order of parts and what it means: ``kind`` is cue, metric or dir, ``target`` as in those tables.

    ``gap`` is how many words may stand between two neighbouring parts.
    """

    kind: str
    target: str
    parts: tuple[str, ...]
    gap: int


@dataclass(frozen=True, slots=True)
class FrameHit:
    """A frame found at tokens ``[first, last)``."""

    first: int
    last: int
    kind: str
    target: str


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """A language's frames.

    ``parts`` finds readings of kind "part" whose target is a part's id; ``by_first`` holds the
    frames by the id of their first part; no frame reaches across one of ``stops``.
    """

    parts: Recogniser
    by_first: Mapping[str, tuple[Frame, ...]]
    stops: frozenset[str]

    def find(self, text: str, tokens: Sequence[Token]) -> tuple[FrameHit, ...]:
        """Every frame's occurrences that do not overlap each other, in text order."""
        if not self.by_first:
            return ()
        where: dict[str, list[tuple[int, int]]] = {}
        for match in self.parts.every_in(text, tokens):
            for reading in match.readings:
                where.setdefault(reading.target, []).append((match.first, match.last))
        barred = [not token.text[0].isalnum() or token.text in self.stops for token in tokens]
        found = [
            hit for part in where for frame in self.by_first.get(part, ()) for hit in self._hits(frame, where, barred)
        ]
        return tuple(sorted(found, key=lambda hit: (hit.first, -hit.last, hit.kind, hit.target)))

    def _hits(
        self, frame: Frame, where: Mapping[str, Sequence[tuple[int, int]]], barred: Sequence[bool]
    ) -> Iterator[FrameHit]:
        free = 0
        for first, end in where[frame.parts[0]]:
            if first < free:
                continue
            last = _reached(end, frame.parts[1:], frame.gap, where, barred)
            if last is not None:
                yield FrameHit(first, last, frame.kind, frame.target)
                free = last


def _reached(
    end: int, parts: Sequence[str], gap: int, where: Mapping[str, Sequence[tuple[int, int]]], barred: Sequence[bool]
) -> int | None:
    """Where the last of the parts ends, each at most ``gap`` words after the one before; None where one is missing."""
    if not parts:
        return end
    for first, last in where.get(parts[0], ()):
        if end <= first <= end + gap and not any(barred[end:first]):
            found = _reached(last, parts[1:], gap, where, barred)
            if found is not None:
                return found
    return None
