"""How owners ask, per language: cue phrases, measured words, directions, known words.

In: the tables that ``gateway.ontology.load`` reads. Out: frozen values with every phrase
folded. Cue class ids are the same in all languages, so the decision list knows none of them.
Never: a household's names.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from gateway.ontology.frames import Frames
from gateway.ontology.recognise import Recogniser

__all__ = ["Language", "Things", "TimeWords"]


@dataclass(frozen=True, slots=True)
class TimeWords:
    """A language's words for time.

    ``fixed`` finds kind "fixed" (targets are window labels), ``events`` kind "event" (targets
    are stored events a window can start at), ``joints`` kind "joint" (since, after, before,
    between, and, last, ago, ago_before). A time expression begins with a number or one of
    ``starts``. Months count from 1, weekdays from Monday 0.
    """

    fixed: Recogniser
    events: Recogniser
    joints: Recogniser
    weekdays: Mapping[str, int]
    months: Mapping[str, int]
    units: Mapping[str, str]
    numbers: Mapping[str, int]
    fillers: frozenset[str]
    ordinals: frozenset[str]
    nights: frozenset[str]
    starts: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """One language's phrases; read once, so equal only to itself.

    ``markers`` are function words that tell the language; ``cues`` finds readings of kind
    "cue"; ``metrics`` finds readings of kind "metric" whose target is ``property`` or
    ``property:up``/``property:down`` where the phrase itself says a direction;
    ``directions`` finds kind "dir"; ``frames`` finds all three where words stand between;
    ``known`` are words that are no misspelling; ``spelling`` maps a hurried spelling to its word;
    ``words`` are small closed classes (articles, auxiliaries...) by name.
    """

    id: str
    markers: frozenset[str]
    cues: Recogniser
    metrics: Recogniser
    directions: Recogniser
    frames: Frames
    known: Container[str]
    times: TimeWords
    phrases: Mapping[str, tuple[str, ...]]
    spelling: Mapping[str, str]
    words: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Things:
    """Named things outside any household, for all languages together.

    ``lexicon`` kinds: species, species_plural, breed, ing, food, med, body, cond, topic, src,
    harmless. ``words`` is every word in it.
    """

    lexicon: Recogniser
    words: Container[str]
