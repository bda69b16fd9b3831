"""The proof in small: a few households, the checker, the scorer, and answers spoiled on purpose."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.ask.answer import answer_json
from gateway.ask.ask import ask
from gateway.ask.onfile import OnFile
from gateway.store import Snapshot
from tests.evaluate.ablate import VARIANTS, without
from tests.evaluate.asked import answers
from tests.evaluate.book import Book
from tests.evaluate.cases import TIGHT, Cover, Fact, Question, Span, Truth, covered, read_cases, write_cases
from tests.evaluate.exhaust import spoilings
from tests.evaluate.home import Home
from tests.evaluate.mutate import MUTATIONS, spoiled
from tests.evaluate.phrases import DEVELOPMENT, PUBLISHED
from tests.evaluate.refigure import Day, compare_again, days_compared
from tests.evaluate.replay import replay
from tests.evaluate.score import Score, causes_in_order, first_chain, wilson
from tests.evaluate.stories import RIVALS
from tests.evaluate.table import order_table
from tests.evaluate.worlds import worlds

FOLDER = Path(__file__).parent / "evaluate"
CHECKER = ("book", "case", "cases", "counted", "exhaust", "mutate", "refigure", "replay", "score", "words")
HOUSEHOLDS = 8


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Some development households with every answer, asked once for all tests."""
    folder = tmp_path_factory.mktemp("evaluate")
    return [(world, list(answers(world))) for world in worlds("development", HOUSEHOLDS, 7, folder)]


@pytest.fixture(scope="module")
def rivals(tmp_path_factory):
    """A household of every kind with rivals, and its answers."""
    folder = tmp_path_factory.mktemp("rivals")
    every = worlds("development", 2 * len(RIVALS), 11, folder, rival_every=2)
    drawn = [world for world in every if world.kind in RIVALS]
    assert {world.kind for world in drawn} == RIVALS.keys()
    return [(world, list(answers(world))) for world in drawn]


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


def test_what_is_said_of_rivals_is_recomputed_too(rivals):
    problems = []
    for world, asked in rivals:
        book = Book(Path(world.db_path))
        problems += [(question.text, found) for question, answer in asked for found in replay(answer, book)]
        book.close()
    assert problems == []


def test_a_connection_with_a_cause_of_which_it_joins_nothing_is_a_false_link(rivals):
    """Another thing of the same answer, a rival or the food before, in the place of its causes."""
    seen = 0
    for world, asked in rivals:
        book = Book(Path(world.db_path))
        for _, answer in asked:
            things = {
                name for claim in answer["claims"] for name in claim["about"] if name.startswith(("food:", "med:"))
            }
            for claim in (claim for claim in answer["claims"] if claim["class"] == "CONNECTION"):
                kept = claim["about"]
                for name in things.difference(kept):
                    claim["about"] = [*kept[:2], name]
                    assert any(problem.what == "link" for problem in replay(answer, book)), (answer["question"], name)
                    seen += 1
                claim["about"] = kept
        book.close()
    assert seen > 0


# --- rivals, and parts taken away ------------------------------------------------------------------


def test_households_with_rivals_come_between_the_others_and_change_none_of_them(tmp_path):
    with_rivals = list(worlds("development", 14, 5, tmp_path))
    others = [world for world in with_rivals if world.kind not in RIVALS]
    assert others == list(worlds("development", len(others), 5, tmp_path, rival_every=10**9))
    assert len(with_rivals) - len(others) == 14 // 6


def test_both_sides_of_a_story_of_rivals_come_true_the_better_documented_one_more_often(tmp_path):
    """The hidden cause is drawn first, by what is known of its frequency; records follow from it."""
    true = Counter()
    for seed in range(60):
        home = Home(random.Random(seed), tmp_path, "two_new_foods-x-1-0")
        true[RIVALS["two_new_foods"](home).trigger[0] in ("beef", "chicken", "wheat")] += 1
    assert true[True] > true[False] > 0


def test_belief_taken_away_leaves_only_what_is_said_and_what_is_not(rivals):
    seen = set()
    for world, asked in rivals:
        with Snapshot(Path(world.db_path)) as reader, without("belief off"):
            links = OnFile(reader, asked[0][0].now_ms).everything()
        seen |= {link.belief for link in links}
        for link in links:
            said = any(piece.mass.true > 0.0 for piece in link.evidence)
            assert (link.belief, link.refuted) == ((1.0, False) if said else (0.0, link.refuted))
    assert 1.0 in seen <= {0.0, 1.0}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_part_that_is_taken_away_is_gone_from_the_answers_and_comes_back(name, rivals):
    """What a part decides differs somewhere in the answer or in the account of how it came about."""
    told = [(answer["claims"], answer["chain"], answer["near_misses"]) for _, asked in rivals for _, answer in asked]
    with without(name):
        taken = [list(answers(world)) for world, _ in rivals]
    changed = [(answer["claims"], answer["chain"], answer["near_misses"]) for asked in taken for _, answer in asked]
    assert (changed == told) == (name == "as built")
    again = [answer for world, _ in rivals for _, answer in answers(world)]
    assert [(answer["claims"], answer["chain"], answer["near_misses"]) for answer in again] == told


def asked_why(*named, chain=()):
    """A question whose cause is ``food:a``, and an answer that names these in this order."""
    fact = Fact("f", ("log:x",), "edge:food:a|contains|species:beef|-", ())
    question = Question("q", "why scratch up", "Why?", "max", 0, (fact,), Truth(causes=("food:a",), asks_cause=True))
    claims = [
        {"id": f"c{n}", "kind": "food_change", "class": "RECORDED", "about": ["pet:max", cause], "refs": []}
        for n, cause in enumerate(named)
    ]
    return question, {"claims": claims, "chain": list(chain), "notices": []}


def test_what_stands_first_is_counted_and_a_coin_only_where_a_false_cause_is_named_too():
    score = Score()
    for named in (("food:a",), ("food:a", "food:b"), ("food:b", "food:a"), ("food:b",), ()):
        score.add_tight(*asked_why(*named))
    assert (score.shares["t first cause"].right, score.shares["t first cause"].of) == (2, 5)
    assert (score.shares["t first of rivals"].right, score.shares["t first of rivals"].of) == (1, 2)
    assert (score.shares["t named are true"].right, score.shares["t named are true"].of) == (3, 6)
    assert causes_in_order(asked_why("food:b", "food:a")[1]) == ("food:b", "food:a")


def test_the_first_chain_ends_at_the_first_sign_and_is_true_where_all_its_links_are():
    beef = "edge:food:a|contains|species:beef|-"
    pork = ("edge:food:a|contains|species:pork|-", "edge:species:pork|may_cause[dog]|sign:itch|-")
    question, answer = asked_why("food:a", chain=(beef, *pork))
    assert first_chain(answer) == (beef, *pork)
    ends = "edge:condition:x|has_sign[dog]|sign:itch|-"
    question, answer = asked_why("food:a", chain=(beef, ends, *pork))
    assert first_chain(answer) == (beef, ends)
    score = Score()
    score.add_tight(question, answer)
    assert (score.shares["t first chain"].right, score.shares["t first chain"].of) == (0, 1)
    score.add_tight(replace(question, truth=Truth(causes=("food:a",), also=(ends,))), answer)
    assert (score.shares["t first chain"].right, score.shares["t first chain"].of) == (1, 2)


def test_a_tight_budget_is_kept_and_has_its_own_table(rivals):
    world, _ = rivals[0]
    scores = {"as built": Score()}
    for question, answer in answers(world, budget=TIGHT):
        assert answer["budget"]["limit"] == TIGHT
        scores["as built"].add_tight(question, answer)
    lines = order_table(scores)
    assert len(lines) == 3
    assert f"{TIGHT} tokens" in lines[0]


NIGHTS = (
    "Who slept longer last night, {name} or {other}?",
    "How long did {name} sleep on Monday night?",
    "Why can't {name} sleep at night?",
    "How restless was {name} at night last week?",
    "Do {name}'s restless nights line up with {food}?",
    "Why did {name} scratch so much last night?",
)


def test_what_is_asked_of_nights_is_told_of_nights_and_recomputed(homes):
    """A night compared by whole days, or a mean of days that ended at seven, would be told as what it is not."""
    told, problems = [], []
    for world, asked in homes:
        book, question = Book(Path(world.db_path)), asked[0][0]
        pets = sorted(book.pets.values(), key=lambda name: name not in question.text)
        foods = [name for name, _ in book.foods.values()] or ["the new food"]
        with Snapshot(Path(world.db_path)) as reader:
            for asked_so in NIGHTS:
                text = asked_so.format(name=pets[0], other=pets[1], food=foods[-1])
                answer = answer_json(ask(text, reader, now_ms=question.now_ms))
                problems += [(text, found) for found in replay(answer, book)]
                if answer["frame"]["window"] == "LAST_NIGHT" and answer["frame"]["intent"] == "compare_pets":
                    told += [claim["text"] for claim in answer["claims"] if claim["kind"] == "per_day"]
        book.close()
    assert problems == []
    assert told
    assert all(" a night over 1 of 1 nights" in text for text in told)


def test_a_weekend_on_which_nothing_is_usual_gives_no_comparison():
    """What a spoiled citation may name: a sign of every second Monday, asked about a Saturday and a Sunday."""
    began, rows = datetime(2026, 5, 1, tzinfo=UTC), {}
    for number in range(66):
        start = began + timedelta(days=number)
        sums = tuple(60_000 if number % 14 == 3 and quarter == 40 else 0 for quarter in range(96))
        start_ms, day = int(start.timestamp() * 1000), start.date().isoformat()
        rows[day] = Day("max.shake", day, start_ms, start_ms + 86_400_000, sums, (900_000,) * 96)
    until_ms = int((began + timedelta(days=66)).timestamp() * 1000)
    of = {"zone": ZoneInfo("UTC"), "until_ms": until_ms}
    _, base = days_compared(rows, "2026-07-04", "2026-07-05", **of)
    assert len(base) == 56
    assert compare_again(rows, "2026-07-04", "2026-07-05", base=base, **of) is None


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


def test_every_value_citation_and_word_of_a_claim_is_looked_at(homes):
    """Each spoiled by itself: a value or a citation no rule looks at would pass here whatever is drawn elsewhere."""
    made, passed = Counter(), []
    for world, asked in homes:
        book, seen = Book(Path(world.db_path)), Counter()
        for _, answer in asked:
            for claim in answer["claims"]:
                seen[claim["kind"]] += 1
                if seen[claim["kind"]] > 3:  # of a kind and a home
                    continue
                for what, how, twin in spoilings(claim, book):
                    made[what.split()[0]] += 1
                    if not replay({**answer, "claims": [twin]}, book):
                        passed.append((claim["kind"], what, how))
        book.close()
    assert made.keys() >= {"value", "dropped", "swapped", "figure", "name", "about"}
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
