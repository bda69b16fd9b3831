"""German owners' sentences by kind: each is read as what it asks, by the kinds of the English ones.

Two hands wrote them that saw neither the tables nor an answer. First sight, in the order written:
187 of 280 (67 %), after a first mending 189 of 210 (90 %).
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.ask.question import read_question
from gateway.dialogue import Question
from gateway.model import Food, Place
from tests.question_home import DATA, HOME, NOW_MS
from tests.test_question_owners import ASKS, FOOD, conservative, of

LEAST_RIGHT = 0.96
SENTENCES: dict[str, list[str]] = json.loads((DATA / "owners_de.json").read_text(encoding="utf-8"))
ASKED = ASKS | {"contains": of("ingredient_lookup", "ing:salmon", "food:tall")}


def read(sentence: str, name: str) -> Question:
    home = replace(
        HOME,
        pets=tuple(replace(pet, name=name) if pet.id == "max" else pet for pet in HOME.pets if pet.name != name),
        foods=(Food("tall", FOOD, (), pets=frozenset({"max"}), first_date="2026-07-05"),),
        places=(Place("wald", "Pension Waldhof", "boarding kennel"),),
    )
    text = sentence.format(name=name, other="Luna", food=FOOD, day="Samstag")
    return read_question(f"{text[:1].upper()}{text[1:]}", household=home, now_ms=NOW_MS)


@pytest.mark.parametrize("name", ["Otto", "Frieda"])
def test_german_owners_sentences_are_read_as_what_they_ask(name):
    assert SENTENCES.keys() == ASKED.keys()
    wrong, asked, dangers = [], 0, []
    for kind, sentences in SENTENCES.items():
        for sentence in sentences:
            question, asked = read(sentence, name), asked + 1
            if not ASKED[kind](question):
                wrong.append(f"[{kind}] {question.text} -> {question.rule}: {question.intent} {question.metric}")
                dangers += [question.text] if ASKED[kind] is conservative else []
    assert len(wrong) <= (1 - LEAST_RIGHT) * asked, "\n".join(wrong)
    assert not dangers


@pytest.mark.parametrize(
    "text",
    [
        "Max hat die Tabletten verschluckt",
        "Max hat alle Wurmtabletten aufgefressen",
        "Die ganzen Wurmtabletten hat Max aufgefressen",
        "Max hat die Flohtropfen abgeleckt",
        "Max hat Flohmittel getrunken",
        "Max läuft nur rum und hat vom Rum geschleckt",
        "Wie viel Dafalgan verträgt Max?",
    ],
)
def test_a_medicine_before_its_german_participle_was_swallowed(text):
    assert read_question(text, household=HOME, now_ms=NOW_MS).answer_class == "conservative"


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Max hat seit der Wurmkur weniger gefressen", "compare_periods"),
        ("Hat Max gestern seine Wurmkur bekommen?", "event_check"),
        ("Wann hat Max die letzte Wurmtablette bekommen?", "event_when"),
        ("Hat Max seine Tablette gefressen?", "event_check"),
        ("Läuft Max nachts rum?", "trend"),
        ("Kannst du prüfen, ob Max gestern gefressen hat?", "event_check"),
        ("Wurde das Gewicht von Max schon gemessen?", "quantity"),
    ],
)
def test_ordinary_german_words_beside_medicines_and_poisons_raise_no_alarm(text, intent):
    question = read_question(text, household=HOME, now_ms=NOW_MS)
    assert (question.intent, question.answer_class == "conservative") == (intent, False)


@pytest.mark.parametrize(
    ("text", "intent", "subject"),
    [
        ("Steckt Lachs in dem, was Max gerade bekommt?", "ingredient_lookup", "ing:salmon"),
        ("Könnte Acme der Grund sein, warum Max sich mehr kratzt?", "cause_check", "food:acme_chicken"),
        ("Hat Max eine Rinderallergie?", "record_lookup", "ing:beef"),
        ("Hat Max eine Lachsunverträglichkeit?", "record_lookup", "ing:salmon"),
        ("Wurde Max gegen Flöhe mit etwas behandelt, und wann zuletzt?", "event_when", "med:flea_treatment"),
    ],
)
def test_german_clauses_and_compounds(text, intent, subject):
    question = read_question(text, household=HOME, now_ms=NOW_MS)
    assert question.intent == intent
    assert subject in question.subjects
