"""The proof in small: a few households, the checker, the scorer, and answers spoiled on purpose."""

from __future__ import annotations

import ast
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.evaluate.asked import answers
from tests.evaluate.book import Book
from tests.evaluate.cases import Cover, Fact, Span, covered, read_cases, write_cases
from tests.evaluate.mutate import MUTATIONS, spoiled
from tests.evaluate.phrases import DEVELOPMENT, PUBLISHED
from tests.evaluate.refigure import Day, compare_again
from tests.evaluate.replay import replay
from tests.evaluate.score import Score, wilson
from tests.evaluate.worlds import worlds

FOLDER = Path(__file__).parent / "evaluate"
CHECKER = ("book", "cases", "mutate", "refigure", "replay", "score")
HOUSEHOLDS = 8


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Some development households with every answer, asked once for all tests."""
    folder = tmp_path_factory.mktemp("evaluate")
    return [(world, list(answers(world))) for world in worlds("development", HOUSEHOLDS, 7, folder)]


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_the_checker_imports_nothing_of_the_product():
    allowed = {f"tests.evaluate.{name}" for name in CHECKER}
    for name in CHECKER:
        for module in imported(FOLDER / f"{name}.py"):
            root = module.partition(".")[0]
            assert root not in ("gateway", "device_sim", "firmware_bridge"), f"{name} imports {module}"
            assert root != "tests" or module in allowed, f"{name} imports {module}, which may import the product"


def test_the_halves_ask_the_same_kinds_and_share_no_sentence():
    assert DEVELOPMENT.keys() == PUBLISHED.keys()
    assert not {s for texts in DEVELOPMENT.values() for s in texts} & {s for texts in PUBLISHED.values() for s in texts}


def test_everything_an_answer_says_is_recomputed_from_the_records_it_cites(homes):
    problems = []
    for world, asked in homes:
        book = Book(Path(world.db_path))
        problems += [(question.text, found) for question, answer in asked for found in replay(answer, book)]
        book.close()
    assert problems == []


def test_a_weekend_on_which_nothing_is_usual_gives_no_comparison():
    """What a spoiled citation may name: a sign of every second Monday, asked about a Saturday and a Sunday."""
    began, rows = datetime(2026, 5, 1, tzinfo=UTC), {}
    for number in range(66):
        start = began + timedelta(days=number)
        sums = tuple(60_000 if number % 14 == 3 and quarter == 40 else 0 for quarter in range(96))
        start_ms, day = int(start.timestamp() * 1000), start.date().isoformat()
        rows[day] = Day("max.shake", day, start_ms, start_ms + 86_400_000, sums, (900_000,) * 96)
    until_ms = int((began + timedelta(days=66)).timestamp() * 1000)
    again = compare_again(rows, "2026-07-04", "2026-07-05", zone=ZoneInfo("UTC"), until_ms=until_ms, usual_days=56)
    assert again is None


def test_every_kind_of_spoiled_answer_is_caught(homes):
    made, passed = Counter(), []
    for world, asked in homes:
        book, rng = Book(Path(world.db_path)), random.Random(world.id)
        for _, answer in asked:
            for kind, caught, what in spoiled(answer, book, world.db_path, rng):
                made[kind] += 1
                if not caught:
                    passed.append((kind, what))
        book.close()
    assert made.keys() == {*MUTATIONS, "deleted source"}
    assert passed == []


def test_nothing_is_invented_and_no_refuted_cause_is_used(homes):
    score = Score()
    for world, asked in homes:
        book = Book(Path(world.db_path))
        for question, answer in asked:
            score.add(question, answer, book)
        book.close()
    held = (
        "b recall",
        "c class",
        "c label kept",
        "d links",
        "d numbers",
        "e recall",
        "f none named",
        "f refuted unused",
    )
    for figure in (*held, "h conservative", "h no reassurance", "i cannot tell complete"):
        share = score.shares[figure]
        assert share.of > 0, figure
        assert share.right == share.of, [miss for miss in score.misses if miss[0] == figure]


def test_every_fact_of_a_true_chain_has_its_records_and_its_place_in_a_document(homes):
    facts = [(world, fact) for world, asked in homes for question, _ in asked for fact in question.facts]
    assert len(facts) > 50
    for world, fact in facts:
        texts = {document.id: document.text for document in world.documents}
        assert fact.records, fact.id
        assert fact.spans, fact.id
        for span in fact.spans:
            assert 0 <= span.start < span.end <= len(texts[span.document])


def test_a_pairs_twin_is_asked_the_same_and_lacks_what_is_asked_for(tmp_path):
    two = [world for world in worlds("development", 6, 3, tmp_path) if world.kind == "pair"]
    assert [question.kind for question in two[0].questions] == [question.kind for question in two[1].questions]
    assert all(question.facts and not question.truth.absent for question in two[0].questions)
    assert all(question.truth.absent and not question.facts for question in two[1].questions)


def test_the_same_seed_draws_the_same_household(tmp_path):
    (one,), (other,) = (list(worlds("published", 1, 5, tmp_path)) for _ in range(2))
    assert one == other


def test_a_fact_is_covered_only_by_chunks_that_hold_it_from_end_to_end():
    fact = Fact("f", (), "", (Span("a", 10, 30), Span("b", 0, 5)))
    assert covered(fact, [Cover("a", 0, 20), Cover("a", 18, 40)])
    assert covered(fact, [Cover("b", 0, 5)])
    assert not covered(fact, [Cover("a", 0, 20), Cover("a", 21, 40)])
    assert not covered(fact, [Cover("a", 11, 40), Cover("b", 1, 9)])


def test_cases_come_back_from_their_file_without_the_truth(tmp_path, homes):
    world = homes[0][0]
    count = write_cases(tmp_path / "cases.jsonl", [world])
    (again,) = read_cases(tmp_path / "cases.jsonl")
    assert count == len(world.questions)
    assert (again.documents, [q.facts for q in again.questions]) == (
        world.documents,
        [q.facts for q in world.questions],
    )
    assert "truth" not in (tmp_path / "cases.jsonl").read_text()


def test_an_interval_by_wilson_holds_the_share_and_stays_between_nothing_and_all():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(432, 440)
    assert low < 432 / 440 < high
    assert wilson(10, 10)[1] == pytest.approx(1.0)
    assert round(wilson(8, 10)[0], 3) == 0.490  # Newcombe 1998, Stat Med 17:857: 8 of 10 gives .490 to .943
    assert round(wilson(8, 10)[1], 3) == 0.943
