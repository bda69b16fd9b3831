"""An answer is in one language: the asker's, or English with a line that says so; a table lacks nothing and holds no rest."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

import gateway
from gateway.ask.answer import ENGLISH_ONLY, EXPLAINED_WORDS, PLAIN_WORDS, answer_json, answer_lines, words_in
from gateway.ask.question import read_question
from gateway.ask.safety import triage
from gateway.ask.said import worded
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.ontology.ingredients import load_ingredients
from gateway.ontology.load import hazards, load, read_table
from gateway.ontology.wordings import WORDED, wordings
from tests.ask_home import household as home_of
from tests.ask_home import made
from tests.ask_situations import SITUATIONS
from tests.question_home import DATA, HOME, NOW_MS, rows

ROOT = Path(gateway.__file__).parent
TABLES = {code: wordings(code) for code in WORDED}
ENGLISH = re.compile(
    r"\b(the|and|or|is|are|was|were|has|have|with|without|from|for|to|of|not|no|it|his|her|he|she|your|you|that|this|"
    r"call|don't|can|may|on|by|at|as|usual|days?|nothing|which|what|who|last|than|against|between|likely)\b",
    re.IGNORECASE,
)
"""Words every English sentence has one of. "in", "so", "an", "am", "war", "die", "me" are words of the others too."""
SHARED = {"de": frozenset({"was", "her", "an", "so", "in"}), "es": frozenset({"no", "he", "a"})}
NEVER_SAID = {
    "de": re.compile(
        r"\b(harmlos genug|ungefährlich|unbedenklich|kein notfall|keine sorge|kein grund zur sorge|gesund|sicher ist|"
        r"nicht nötig|mg\b|ml\b|dosis|pro kg|pro kilo)",
        re.IGNORECASE,
    ),
    "es": re.compile(
        r"\b(segur[oa]s?\b|no es una urgencia|no se preocupe|nada de qué preocuparse|san[oa]\b|no hace falta|"
        r"mg\b|ml\b|dosis|por kg|por kilo)",
        re.IGNORECASE,
    ),
}
NEVER_REASSURED = {
    "de": re.compile(
        r"\b(ungefährlich|unbedenklich|kein notfall|keine sorge|kein grund zur sorge|kerngesund)\b", re.IGNORECASE
    ),
    "es": re.compile(
        r"\b(no es una urgencia|no se preocupe|nada de qué preocuparse|está sano|está sana)\b", re.IGNORECASE
    ),
}
EXPLAINED = frozenset({"explain_change", "cause_check", "before_change", "vet_summary", "provenance"})
FOREIGN = tuple(
    text
    for text in (DATA / "questions_dangerous.txt").read_text("utf-8").splitlines()
    if read_question(text, household=HOME, now_ms=NOW_MS).language != "en"
)


def english_in(text: str, language: str) -> list[str]:
    """English words of a text, quotes of records not counted."""
    own = re.sub(r"„[^“]*“|«[^»]*»|\[[^\]]*\]", "", text)
    return [word for word in ENGLISH.findall(own) if word.lower() not in SHARED[language]]


# --- the tables -------------------------------------------------------------------------------


def _literals() -> set[str]:
    """Every text that stands in the code of answers or in the vocabulary."""
    found = set()
    for path in [*ROOT.glob("ask/*.py"), ROOT / "__main__.py"]:
        tree = ast.parse(path.read_text("utf-8"))
        found |= {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    for path in [*ROOT.glob("ontology/data/*.toml"), *ROOT.glob("knowledge/data/*.toml")]:
        if not path.name.startswith("words_"):
            found |= set(_strings(tomllib.loads(path.read_text("utf-8"))))
    return found | {name.replace("_", " ") for name in found} | {"care guide"}


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _templates() -> set[str]:
    """The templates that code says: the first argument of every ``say`` that is a text of its own."""
    found = set()
    for path in ROOT.glob("ask/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say" and node.args:
                first = node.args[0]
                assert isinstance(first, ast.Constant), f"{path.name}:{node.lineno}: a template must stand in the call"
                found.add(first.value)
    return found


def _plain_lines() -> set[str]:
    """The texts that code hands to a draft as they stand."""
    found = set()
    for path in ROOT.glob("ask/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("say", "claim")
            ):
                text = (node.args[1:2] if node.func.attr == "say" else node.args[2:3]) or [ast.Constant("")]
                ends = [text[0].body, text[0].orelse] if isinstance(text[0], ast.IfExp) else text
                found |= {end.value for end in ends if isinstance(end, ast.Constant) and end.value}
    return found


def places(template: str) -> set[str]:
    return {name.partition(".")[0] for _, name, _, _ in Formatter().parse(template) if name is not None}


def test_every_language_words_the_same_lines():
    lines = [set(table.lines) for table in TABLES.values()]
    assert all(one == lines[0] for one in lines)
    for kind in ("series", "devices", "pets", "dates", "joins"):
        keys = [set(getattr(table, kind)) for table in TABLES.values()]
        assert all(one == keys[0] for one in keys), kind


@pytest.mark.parametrize("code", WORDED)
def test_a_line_fills_the_places_of_its_english_and_no_others(code):
    wrong = {
        english: line
        for english, line in TABLES[code].lines.items()
        if not places(line) <= places(english) or (places(english) - places(line)) & {"figure", "when", "phones"}
    }
    assert wrong == {}


@pytest.mark.parametrize("code", WORDED)
def test_every_template_is_worded(code):
    assert sorted((_templates() | _plain_lines()) - set(TABLES[code].lines)) == []


@pytest.mark.parametrize("code", WORDED)
def test_a_table_words_nothing_that_nobody_says(code):
    assert sorted(set(TABLES[code].lines) - _literals()) == []


@pytest.mark.parametrize("code", WORDED)
def test_every_thing_of_the_vocabulary_that_a_sentence_may_name_has_a_word(code):
    table = TABLES[code].lines
    things = read_table("things.toml")
    names = {
        name.replace("_", " ") for kind in ("ing", "food", "med", "body", "cond", "topic") for name in things[kind]
    }
    food = load_ingredients()
    names |= {name.replace("_", " ") for name in (*food.sources, *food.groups)}
    names |= {kind.words[0] for kind in load().log_kinds.values() if kind.words}
    names |= {rival.short for sign in load().signs.values() for rival in sign.rivals}
    names |= {toxin.name for toxin in hazards().toxins.values()} | {sign.word for sign in hazards().signs.values()}
    names |= {*hazards().first_aid.values(), hazards().reviewed_by}
    names |= {kind.cite for kind in load().device_kinds.values()} | {p.caveat for p in load().properties.values()} - {
        ""
    }
    assert sorted(name for name in names if name not in table) == []
    assert set(TABLES[code].series) == set(load().properties)
    assert set(TABLES[code].devices) == set(load().device_kinds)


@pytest.mark.parametrize("code", WORDED)
def test_a_line_is_in_its_own_language(code):
    same = {"{pet.his}", "{pet.he}", "{by}, {when}", "{number} ({notes})"}
    rest = {e: t for e, t in TABLES[code].lines.items() if e not in same and english_in(t.replace("{", " {"), code)}
    assert {english: line for english, line in rest.items() if english_in(re.sub(r"\{[^}]*\}", "", line), code)} == {}


# --- in an emergency --------------------------------------------------------------------------


def test_an_emergency_is_answered_in_the_askers_language_down_to_the_last_word():
    assert len(FOREIGN) >= 60
    for text in FOREIGN:
        read = read_question(text, household=HOME, now_ms=NOW_MS)
        table = TABLES[read.language]
        told = triage(read, hazards(), HOME)
        for line in (*told.first, *told.phones, *told.first_aid, *told.instructions, *told.asks, told.review):
            said = worded(line, table)
            assert english_in(said, read.language) == [], (text, said)
            assert NEVER_SAID[read.language].search(said) is None, (text, said)


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ("Max hat Schokolade gefressen, was soll ich tun?", "Rufen Sie jetzt an. Warten Sie nicht auf Anzeichen."),
        ("Max ha comido chocolate, ¿qué hago?", "Llame ahora. No espere a que haya síntomas."),
    ],
)
def test_a_poison_is_answered_whole_in_the_askers_language(tmp_path, text, opening):
    with made(tmp_path, home_of("max", devices=("bowl-max",))) as home:
        home.eats("max", 340)
        home.log("max", "weight 31.2 kg", "2026-06-30")
        answer = home.ask(text)
    told = "\n".join(answer_lines(answer))
    assert told.startswith(opening)
    assert answer_json(answer)["language"] == answer.language == answer.question.language != "en"
    assert english_in(told, answer.language) == []
    assert "31.2 kg" in told, "a record keeps its own words"


# --- any answer -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """(question, answer) for every German and Spanish question of the cases, in a home where something changed."""
    with SITUATIONS[1](tmp_path_factory.mktemp("asked")) as (home, _):
        found = []
        for name in ("de", "de2", "de3", "de4", "es", "es2", "es3", "es4"):
            for case in rows(DATA / f"questions_unseen_{name}.jsonl"):
                answer = home.ask(case["text"])
                if answer.question.language != "en":
                    found.append((case["text"], answer))
        yield tuple(found)


def test_every_answer_is_in_one_language_and_nearly_all_in_the_askers(asked):
    english = [text for text, answer in asked if answer.language == "en"]
    assert len(asked) >= 440
    assert len(english) <= len(asked) // 50, english
    for text, answer in asked:
        told = "\n".join(answer_lines(answer))
        if answer.language != "en":
            assert english_in(told, answer.language) == [], (text, told)
        else:
            first, rest = told.split("\n", 1)
            assert first.rstrip(".") == worded(ENGLISH_ONLY, TABLES[answer.question.language])
            assert not re.search(r"[äöüßñ¿„«]", rest), (text, told)


def test_an_answer_opens_briefly_and_stays_short_in_every_language(asked):
    for text, answer in asked:
        if answer.question.safety is not None or not answer.layout:
            continue
        first = answer_lines(answer)[0]
        limit = (EXPLAINED_WORDS if answer.question.intent in EXPLAINED else PLAIN_WORDS) * max(
            1, len(answer.question.pets)
        )
        read = sum(words_in(claim.text) for claim in answer.claims) + sum(words_in(n.text) for n in answer.notices)
        short = [notice.text for notice in answer.notices if notice.kind is NoticeKind.SHORT][:1]
        assert all(len(notice.split()) <= 25 for notice in short), (text, first)
        assert read <= limit, (text, read, limit)


def test_no_answer_is_empty(asked):
    assert [text for text, answer in asked if not answer.layout] == []


def test_no_answer_in_any_language_reassures(asked):
    for text, answer in asked:
        if answer.language != "en":
            told = " ".join(notice.text for notice in answer.notices)
            assert NEVER_REASSURED[answer.language].search(told) is None, (text, told)


@pytest.mark.parametrize(
    ("first", "then", "language"),
    [
        ("Warum kratzt sich Max diese Woche mehr?", "Woher weißt du das?", "de"),
        ("¿Por qué se rasca más Max esta semana?", "¿Cómo lo sabes?", "es"),
    ],
)
def test_what_an_answer_stands_on_is_told_in_its_own_language(tmp_path, first, then, language):
    with SITUATIONS[1](tmp_path) as (home, _):
        before = home.ask(first)
        answer = home.ask(then, after=before)
        assert (before.language, answer.language) == (language, language)
        assert english_in("\n".join(answer_lines(answer)), language) == []
        other = home.ask("How do you know?", after=before)
        assert other.language == "en"
        unquoted = re.sub(r'"[^"]*"|\[[^\]]*\]', "", "\n".join(answer_lines(other)))
        assert not re.search(r"[äöüßñáéíóú¿„«]", unquoted), unquoted


def test_a_general_answer_is_labelled_in_the_askers_language(tmp_path):
    with SITUATIONS[1](tmp_path) as (home, _):
        for text, label in (
            ("Soll ich mir einen zweiten Hund holen?", "Allgemeinwissen"),
            ("¿Debería tener otro perro?", "Conocimiento general"),
        ):
            general = [claim for claim in home.ask(text).claims if claim.evidence_class is EvidenceClass.GENERAL]
            assert [claim.text.split(",")[0] for claim in general] == [label]


def test_what_has_no_wording_yet_is_all_english_behind_one_line_that_says_so(tmp_path):
    with SITUATIONS[1](tmp_path) as (home, _):
        answer = home.ask("Was soll ich dem Tierarzt über Max sagen?")
    first, *rest = answer_lines(answer)
    if answer.language == "en":
        assert first == "Diese Antwort gibt es bisher nur auf Englisch."
        assert not re.search(r"[äöüß„]", " ".join(rest))
    else:
        assert english_in("\n".join((first, *rest)), "de") == []
