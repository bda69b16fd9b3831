"""Up, down or as usual: which way a question says that something went.

In: the facts of a question, its intent and what is measured. Out: a direction or None. The
measured word's own direction first, turned round by a "less" or "not" before it; then a
comparison ("less than"), then any other direction word, nearest first; then the intent's: a
change is asked about in its bad direction. Never a score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gateway.ontology import load as tables

if TYPE_CHECKING:
    from gateway.ask.facts_said import Facts
    from gateway.ask.linking import Linked, MetricHit

__all__ = ["against_past", "direction_of", "is_part_of", "spoken_direction"]

_NO_DIRECTION = frozenset({
    "quantity", "event_check", "event_when", "normal_check", "compare_pets", "record_lookup", "device_status",
    "food_ok", "ingredient_lookup", "med_timing", "med_safety", "reference", "provenance", "correction", "enough",
    "too_heavy", "overview", "out_of_scope", "need_vet", "vet_summary", "switch_back", "why_notice", "purchases",
})  # fmt: skip
"""Intents that ask in no direction."""

_NEAR = 3
"""Words between a "not as" and the "as ..." that it denies."""

_OPPOSITE = {"up": "down", "down": "up", "same": "same"}


def direction_of(facts: Facts, intent: str, metric: str | None) -> str | None:
    """up, down or same: as spoken, else the bad direction of what is measured, where the intent asks in one."""
    if metric is None or intent in _NO_DIRECTION or facts.metric is None:
        return None
    observed = tables.load().properties[metric]
    if facts.against_food:  # "less on Harbor than on Acme": either may be the later one
        return None
    spoken = spoken_direction(facts.linked, facts.metric)
    if intent == "compare_periods" and facts.has("helped"):
        aloud = spoken is not None and not facts.subject_med  # "did he scratch more after the food change"
        return spoken if aloud else "down" if observed.worse != "down" else "up"
    if intent == "compare_periods":
        return spoken if facts.windows < 2 else None
    if spoken == "same" and intent == "explain_change":  # "why isn't he running about as he used to"
        spoken = spoken_direction(facts.linked, facts.metric, same=False) or spoken
    if spoken is not None and not (intent == "cause_check" and facts.has("line_up")):
        return spoken
    expected = observed.worse if observed.worse in {"up", "down"} else None
    if intent == "cause_check" and (facts.has("line_up") or expected != "up"):
        return spoken
    if intent in {"explain_change", "onset", "cause_check", "select_pets", "before_change"}:
        return expected
    told = not facts.yes_no and not facts.has("how_much")
    return expected if intent == "trend" and (told or facts.has("still")) and not facts.has("changed") else None


def spoken_direction(linked: Linked, metric: MetricHit, *, same: bool = True) -> str | None:
    """The direction a text itself gives a measured word; None where it gives none.

    Without ``same``, "as he used to" says nothing: what stands beside it does.
    """
    worse = tables.load().properties[metric.property].worse
    meaning = {"worse": worse, "better": _OPPOSITE.get(worse)}
    said = [row for row in linked.directions if not is_part_of(metric, *row)]
    if metric.direction is not None:
        return _OPPOSITE[metric.direction] if _turned(metric, said) else metric.direction
    if same and any(way == "same" and not _denied(first, said) for first, _, way in said):
        return "same"
    compared = linked.language.words["comparatives"]
    firm = [row for row in said if not row[2].startswith("weak_")]
    by_rank = (
        [row for row in firm if any(linked.word(i) in compared for i in range(row[0], row[1]))],
        firm,
        said,
    )
    found = (_nearest(metric, rows, meaning) for rows in by_rank)
    return next((way for way in found if way is not None), None)


def is_part_of(metric: MetricHit, first: int, last: int, way: str) -> bool:
    """Whether a direction word is only part of what is measured.

    "Better nights" says both, and so does what reaches around it ("isn't eating like before").
    """
    around = first <= metric.first and metric.last <= last and last - first > metric.last - metric.first
    return metric.first < last and first < metric.last and not around and way not in {"better", "worse"}


def _denied(first: int, said: Iterable[tuple[int, int, str]]) -> bool:
    """Whether a "not" stands before ("not as playful as he used to be", "isn't eating like before")."""
    downs = (row for row in said if row[2].removeprefix("weak_") == "down")
    return any(start < first and first - last <= _NEAR for start, last, _ in downs)


def _turned(metric: MetricHit, said: Iterable[tuple[int, int, str]]) -> bool:
    """Whether "less" or "not" stands right before a word with a direction of its own ("less lively")."""
    return any(last == metric.first and way.removeprefix("weak_") == "down" for _, last, way in said)


def _nearest(metric: MetricHit, rows: Iterable[tuple[int, int, str]], meaning: dict[str, str | None]) -> str | None:
    near = sorted((max(first - metric.last, metric.first - last, 0), first, way) for first, last, way in rows)
    for _, _, way in near:
        word = way.removeprefix("weak_")
        found = meaning.get(word, word)
        if found in {"up", "down"}:
            return found
    return None


def against_past(linked: Linked) -> bool:
    """Whether one past window stands after "than" or "from": "less than last week"."""
    than = linked.language.words["than"]
    usual = {i for name in ("usual", "normal") for a, b in linked.cues.get(name, ()) for i in range(a, b)}
    named = zip(linked.spans, linked.mentions, strict=True)
    usual |= {i for span, mention in named if mention.kind == "pet" for i in range(*span)}  # "than Max yesterday"
    return any(
        span.label in {"PREV_WEEK", "PREV_MONTH", "YESTERDAY"}
        and any(
            linked.word(i) in than and not usual & set(range(i, span.first)) for i in range(span.first - 4, span.first)
        )
        for span in linked.times
    )
