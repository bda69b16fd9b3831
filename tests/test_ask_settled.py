"""An answer that cannot tell names what is missing and says what would settle it, whatever is asked of whatever home."""

from __future__ import annotations

import ast
import json
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.ask.answer import answer_json
from gateway.ask.ask import ask
from gateway.store import Snapshot
from tests.evaluate.cases import Question, Truth
from tests.evaluate.score import Score
from tests.evaluate.worlds import worlds

DATA = Path(__file__).parent / "data"
ASK = Path(__file__).parents[1] / "gateway" / "ask"
HOMES, OF_EACH = 24, 130
CANNOT = re.compile(
    r"can't tell|can't be told|can't be compared|can't be cut|^Too early|^Not clear|^Nothing clear|not recorded|"
    r"\bnot on file\b|not known|\bdisagree\b|^No (?!notice)[^.:;]* (?:is|are) (?:logged|on file|recorded)|silent since|never heard|"
    r"has been recorded|^Nothing (?:was|is) recorded|^None of those that can be told"
)
"""How an opening says that it cannot tell."""
SETTLES = re.compile(r"\bwould (?:capture|record|show|know)\b|First comparison|can be told about|records the")
"""How a notice that is no step says what would settle it: a device, an entry or a date."""


def questions() -> list[str]:
    """Every English question of the shared sets."""
    found = []
    for path in sorted(DATA.glob("questions_*")):
        if re.search(r"_(?:de|es)\d*\.|de_es", path.name):
            continue
        for line in path.read_text("utf-8").splitlines():
            if path.suffix == ".jsonl":
                found.append(json.loads(line)["text"])
            elif line and not line.startswith(("#", "=")):
                found.append(line)
    return sorted(set(found))


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> list[tuple[str, str, dict]]:
    """(home, question, answer) of a draw of all questions in homes of every kind of story."""
    folder, everything, found = tmp_path_factory.mktemp("settled"), questions(), []
    for world in worlds("development", HOMES, 11, folder):
        rng = random.Random(world.id)
        with Snapshot(Path(world.db_path)) as reader:
            pets = [pet.name for pet in reader.household().pets]
            own = [question.text for question in world.questions]
            for drawn in (*own, *rng.sample(everything, OF_EACH)):
                text = re.sub(r"\bMax\b", pets[0], re.sub(r"\b(?:Luna|Bella)\b", pets[1], drawn))
                answer = answer_json(ask(text, reader, now_ms=world.questions[0].now_ms))
                if answer["language"] == "en":
                    found.append((world.id, text, answer))
    return found


def openings(answer: dict) -> list[dict]:
    """The notices that answer: the first of them, and what follows a pet's name where several are answered for."""
    short = [notice for notice in answer["notices"] if notice["kind"] == "short_answer"]
    return [notice for notice in short if CANNOT.search(notice["text"])]


def settled(answer: dict) -> bool:
    return any(n["kind"] == "next_step" or SETTLES.search(n["text"]) for n in answer["notices"])


def test_whatever_cannot_tell_names_its_slot_and_what_would_settle_it(asked):
    seen, bare = Counter(), []
    for home, text, answer in asked:
        for notice in openings(answer):
            seen[CANNOT.search(notice["text"])[0]] += 1
            if not notice.get("slot") or not settled(answer):
                bare.append((home, text, notice))
    assert sum(seen.values()) > 300
    assert len(seen) >= 10  # ways of saying so
    assert bare == []


def test_the_scorer_finds_every_such_answer_complete(asked):
    """By the figure of docs/evaluation.md, whatever it counts as one that cannot tell."""
    score = Score()
    nobody = Question("none", "none", "", "", 0, (), Truth())
    for home, text, answer in asked:
        score._manners(replace(nobody, id=home, text=text), answer)
    share = score.shares["i cannot tell complete"]
    assert share.of > 200
    assert share.right == share.of, [miss for miss in score.misses if miss[0].startswith("i ")][:20]


def shorts(function: ast.FunctionDef) -> list[tuple[ast.Call, str]]:
    """Each opening a function says, with the templates that may stand in it: a name's are those given to it last."""
    nodes = sorted((n for n in ast.walk(function) if hasattr(n, "lineno")), key=lambda n: (n.lineno, n.col_offset))
    lines: dict[str, list[str]] = {}
    found = []
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            lines[node.targets[0].id] = strings(node.value)
        says = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("draft.say") and len(node.args) > 1
        if says and ast.unparse(node.args[0]).startswith("NoticeKind.SHORT"):
            names = [name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)]
            told = [*strings(node.args[1]), *(line for name in names for line in lines.get(name, []))]
            found += [(node, line) for line in told]
    return found


def strings(node: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_no_opening_of_the_code_cannot_tell_without_a_slot():
    """Also where no home of these tests leads."""
    bare = []
    for path in sorted(ASK.glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for call, line in shorts(function):
                if CANNOT.search(line) and not any(keyword.arg == "slot" for keyword in call.keywords):
                    bare.append((path.name, call.lineno, line))
    assert bare == []
