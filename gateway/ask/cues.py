"""Cue classes by place: where the words of a class stand, and what takes them away.

In: matches of a language's tables, names and measured words found. Out: class -> token spans.
A longer phrase, a household's own name for a food, and what is measured each hide the cue
words inside them. Never decides what is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.ask.linking import MetricHit
    from gateway.ontology.frames import FrameHit
    from gateway.ontology.recognise import Match, Reading, Token

__all__ = ["Spans", "blamed", "by_cue", "outside_measured", "outside_names"]

Spans = Mapping[str, tuple[tuple[int, int], ...]]
"""Cue class -> token spans ``[first, last)``, in text order."""


_FOOD_CUES = ("current_food", "food_noun")
_NAMING_CUES = frozenset({*_FOOD_CUES, "new_food", "old_food"})
"""Cue classes that a household's own name for a food may hold and mean."""


def by_cue(matches: Iterable[Match], frames: Sequence[FrameHit]) -> Spans:
    """Cue classes with their places; a longer phrase in which the words mean something else takes them away."""
    found: dict[str, set[tuple[int, int]]] = {}
    unless: dict[str, list[tuple[int, int]]] = {}
    for match in matches:
        for reading in match.readings:
            if reading.kind == "unless":
                unless.setdefault(reading.target, []).append((match.first, match.last))
            else:
                found.setdefault(reading.target, set()).add((match.first, match.last))
    for hit in frames:
        if hit.kind == "cue":
            found.setdefault(hit.target, set()).add((hit.first, hit.last))
    for name, longer in unless.items():
        spans = found.get(name, set())
        found[name] = {(a, b) for a, b in spans if not any(first <= a and b <= last for first, last in longer)}
    return {name: tuple(sorted(s, key=lambda span: (span[0], -span[1]))) for name, s in found.items() if s}


def outside_names(cues: Spans, chosen: Sequence[tuple[Match, Reading]]) -> Spans:
    """Cues without those inside the name of a food or medicine ("Country Recipe", "Grain Free")."""
    names = [(match.first, match.last) for match, reading in chosen if reading.kind in {"own_food", "own_med"}]

    def free(span: tuple[int, int]) -> bool:
        return not any(first <= span[0] and span[1] <= last for first, last in names)

    kept = {name: spans if name in _NAMING_CUES else tuple(filter(free, spans)) for name, spans in cues.items()}
    return {name: spans for name, spans in kept.items() if spans}


def outside_measured(cues: Spans, metrics: Sequence[MetricHit]) -> Spans:
    """Cues without "her food" where it is part of what is measured ("off her food")."""
    longer = [hit for hit in metrics if hit.direction is not None and hit.last - hit.first > 1]

    def free(span: tuple[int, int]) -> bool:
        return not any(hit.first <= span[0] and span[1] <= hit.last for hit in longer)

    kept = {name: tuple(filter(free, cues[name])) for name in _FOOD_CUES if name in cues}
    return {name: spans for name, spans in {**cues, **kept}.items() if spans}


_BLAMED = frozenset({"own_food", "own_med", "med", "place", "ing"})


def blamed(
    tokens: Sequence[Token], chosen: Sequence[tuple[Match, Reading]], leads: frozenset[str]
) -> tuple[tuple[int, int], ...]:
    """Where a cause is said by one word right before what is blamed: "se rasca más por Acme", "wegen Acme"."""
    firsts = (match.first for match, reading in chosen if reading.kind in _BLAMED)
    return tuple((first - 1, first) for first in firsts if first and tokens[first - 1].text in leads)
