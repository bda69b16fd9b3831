"""Owners' sentences by kind (the development half of `make evaluate`): each is read as what it asks.

The sentences were written by many hands that saw neither the tables nor an answer. First sight, each
350 sentences, in the order written: 82 and 84 %, after a first mending 90, 91 and 81 (rare words on
purpose), then 93 and 93, then 95 and 98,
then 96 and 93 (an Antipodean and a Scottish hand), then of 420 each 97, 95 and 95.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.ask.question import read_question
from gateway.dialogue import Question
from gateway.model import Food, Place
from tests.evaluate.phrases import DEVELOPMENT
from tests.question_home import HOME, NOW_MS

LEAST_RIGHT = 0.98
FOOD, PLACE = "Tallgrass Country Recipe", "Hillside Kennels"
THING = {"contains": "venison", "contains now": "salmon", "allergy": "duck"} | dict.fromkeys(
    ("blame restless", "blame water"), "the prednisone"
)
YESTERDAY, SATURDAY = "YESTERDAY", "2026-07-11"

Asks = Callable[[Question], bool]


def why(metric: str, way: str, window: str | None = None) -> Asks:
    return lambda q: (
        (q.intent, q.metric) == ("explain_change", metric)
        and q.direction in ({way, None} if metric == "water" else {way})
        and window in {None, q.window_label}
    )


def blame(metric: str, way: str) -> Asks:
    return lambda q: (q.intent, q.metric) == ("cause_check", metric) and q.direction in {way, None} and bool(q.subjects)


def amount(metric: str, window: str | None = YESTERDAY) -> Asks:
    return lambda q: q.intent in {"quantity", "event_check"} and q.metric == metric and window in {None, q.window_label}


def of(intent: str, *subjects: str) -> Asks:
    return lambda q: q.intent == intent and set(subjects) <= set(q.subjects)


def conservative(question: Question) -> bool:
    return question.answer_class == "conservative"


ASKS: dict[str, Asks] = {
    "why scratch up": why("scratch", "up"),
    "why intake down": why("intake", "down"),
    "why restless up": why("restless", "up"),
    "why water up": why("water", "up"),
    "why activity down": why("activity", "down"),
    "wrong scratch": why("scratch", "down"),
    "wrong intake": why("intake", "up"),
    "why down on day": why("intake", "down", SATURDAY),
    "why less since": lambda q: (
        q.intent in {"explain_change", "cause_check"} and (q.metric, q.direction) == ("intake", "down")
    ),
    "blame scratch": blame("scratch", "up"),
    "blame intake": blame("intake", "down"),
    "blame restless": blame("restless", "up"),
    "blame water": blame("water", "up"),
    "blame activity": blame("activity", "down"),
    "trend scratch": lambda q: q.intent in {"trend", "explain_change"} and q.metric == "scratch",
    "trend intake": lambda q: q.intent in {"trend", "explain_change"} and q.metric == "intake",
    "contains": of("ingredient_lookup", "ing:venison", "food:tall"),
    "contains now": of("ingredient_lookup", "ing:salmon"),
    "amount intake": amount("intake"),
    "amount water": amount("water"),
    "amount rest": amount("rest"),
    "amount scratch": amount("scratch"),
    "weight": amount("weight", None),
    "ate on day": amount("intake", SATURDAY),
    "since scratch": lambda q: (q.intent, q.metric, q.direction) == ("onset", "scratch", "up"),
    "since intake": lambda q: (q.intent, q.metric, q.direction) == ("onset", "intake", "down"),
    "flea date": of("event_when", "med:flea_treatment"),
    "worming date": of("event_when", "med:wormer"),
    "food since": lambda q: q.intent == "onset" and q.metric is None and "food:tall" in q.subjects,
    "vet said": of("record_lookup", "src:vet"),
    "allergy": of("record_lookup", "cond:allergy", "ing:duck"),
    "compare rest": lambda q: (q.intent, q.metric, q.pets) == ("compare_pets", "rest", ("luna", "max")),
    "toxin": conservative,
    "emergency": conservative,
    "human medicine": conservative,
}


def read(kind: str, sentence: str, name: str) -> Question:
    home = replace(
        HOME,
        pets=tuple(replace(pet, name=name) if pet.id == "max" else pet for pet in HOME.pets if pet.name != name),
        foods=(Food("tall", FOOD, (), pets=frozenset({"max"}), first_date="2026-07-05"),),
        places=(Place("lodge", PLACE, "boarding kennel"),),
    )
    thing = THING.get(kind, f"the stay at {PLACE}" if kind == "blame activity" else FOOD)
    words = {"he": "he", "him": "him", "his": "his", "self": "himself", "other": "Luna", "day": "Saturday"}
    text = sentence.format(name=name, food=FOOD, thing=thing, **words)
    return read_question(f"{text[:1].upper()}{text[1:]}", household=home, now_ms=NOW_MS)


@pytest.mark.parametrize("name", ["Otto", "Ivy"])  # a name, and one that is also a plant
def test_owners_sentences_are_read_as_what_they_ask(name):
    assert ASKS.keys() == DEVELOPMENT.keys()
    wrong, asked, dangers = [], 0, []
    for kind, sentences in DEVELOPMENT.items():
        for sentence in sentences:
            question, asked = read(kind, sentence, name), asked + 1
            if not ASKS[kind](question):
                wrong.append(f"[{kind}] {question.text} -> {question.rule}: {question.intent} {question.metric}")
                dangers += [question.text] if ASKS[kind] is conservative else []
    assert len(wrong) <= (1 - LEAST_RIGHT) * asked, "\n".join(wrong)
    assert not dangers
