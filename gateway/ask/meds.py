"""What is asked about a medicine: when it was given, whether it helped, what it may do.

In: the facts of a question. Out: yes or no, for the decision list. Never decides alone: the
list's order does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.direction import spoken_direction
from gateway.ontology import load as tables

if TYPE_CHECKING:
    from gateway.ask.facts_said import Facts

__all__ = [
    "asks_last_given",
    "asks_next",
    "give_now",
    "given",
    "helps",
    "is_med_safety",
    "med_in_general",
    "since_given",
]


def given(f: Facts) -> bool:
    """Whether it is "did anybody give Max his pill": a medicine of somebody named, or one that was given."""
    modal = any(token.text in f.linked.language.words["modal"] for token in f.linked.tokens[:2])
    words = f.linked.language.words
    happened = any(token.text in words["past_aux"] | words["lasting"] for token in f.linked.tokens[:2])
    general = not f.who.pets and not happened
    return f.subject_med and f.has("given") and f.yes_no and not modal and not general


def since_given(f: Facts) -> bool:
    """Whether it is "how long has it been since she got ...": the day it was given, not since when it is."""
    opens = [last - first for first, last in f.linked.cues.get("when", ()) if first == f.linked.opens_at]
    return max(opens, default=0) > 1 and not f.has("start")


def asks_last_given(f: Facts) -> bool:
    """Whether it is when a medicine was given: "when did ...", "the last flea treatment on record"."""
    verbless = not any(token.text in f.linked.language.words["aux"] for token in f.linked.tokens)
    last = f.has("last") and (f.has("record", "when") or verbless) and not (f.yes_no and not verbless)
    return f.subject_med and (f.starts("when", within=3) or last) and f.metric is None


def helps(f: Facts) -> bool:
    """Whether a medicine is asked about for its good: "has it helped", "does it make him itch less"."""
    blamed = {i for span in f.linked.cues.get("cause", ()) for i in range(*span)}
    since = any(not blamed.intersection(range(*span)) for span in f.linked.cues.get("since", ()))
    way = None if f.metric is None else spoken_direction(f.linked, f.metric)
    better = {"up": "down", "down": "up"}.get(tables.load().properties[f.metric.property].worse) if f.metric else None
    bad = f.has("cause") and way in {"up", "down"} and way != better
    if f.has("helped") or (since and not bad):  # the "on" of "on account of" is no "since he is on it"
        return True
    if f.metric is None or not f.has("cause"):
        return False
    return (spoken_direction(f.linked, f.metric), tables.load().properties[f.metric.property].worse) == ("down", "up")


def asks_next(f: Facts) -> bool:
    """Whether it is "when does she need her pill": not when she had it."""
    past = any(token.text in f.linked.language.words["past_aux"] for token in f.linked.tokens)
    given = past or f.has("last") or since_given(f)
    return f.subject_med and f.starts("when", within=1) and not given and f.measured is None


def give_now(f: Facts) -> bool:
    """Whether it is "should I give it now?": what the log and the schedule say, never a yes."""
    asked, effects = f.linked.cues.get("give_now", ()), f.linked.cues.get("side_effect", ())
    more = any(all(not (first <= a and b <= last) for first, last in asked) for a, b in effects)
    return f.subject_med and bool(asked) and not more and f.measured is None and not f.starts("when", within=1)


def is_med_safety(f: Facts) -> bool:
    """Whether a medicine's own effects, or what it goes together with, are asked about."""
    return f.subject_med and f.has("side_effect", "can", "most_of")


def med_in_general(f: Facts) -> bool:
    """Whether it is "does Apoquel make dogs tired": what a medicine does to animals, no one of the home named."""
    return f.subject_med and f.yes_no and bool(f.who.hosts) and not f.who.pets and f.has("side_effect", "cause")
