"""What `make evaluate` sets beside the answers: the replaced stack's arithmetic, and the public check.

The model and BM25 live in an environment of their own and are not needed here: cutting, fusing,
spending, rewriting and the adapter for anyone's triples are.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluate.cases import Cover, Document, Fact, Span, covered, tokens
from tests.evaluate.stack_text import (
    EXPANSIONS,
    Chunk,
    Spent,
    asked_days,
    chunks_of,
    day_of,
    fused,
    in_turns,
    kind_of,
    rewritten,
)
from tests.evaluate_triples import (
    DATA,
    FIRST,
    Asked,
    TriplesRefused,
    ask,
    drawn,
    main,
    read_questions,
    read_triples,
    recall,
    table,
    triples_of,
)

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "docs" / "evaluation.md"
TEXTS = st.text(alphabet="ab c.\n!é7", min_size=1, max_size=200)


def document(text, kind="log", title="Vet note"):
    return Document("d", kind, title, text)


# --- chunks -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, size=st.integers(1, 30), share=st.floats(0, 0.9))
def test_chunks_leave_no_character_out_and_hold_their_own_text(text, size, share):
    chunks = chunks_of(document(text), size=size, overlap=int(size * share))
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    assert all(later.start <= earlier.end for earlier, later in pairwise(chunks))
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    words = [tokens(word) for word in re.findall(r"\S+\s*|\s+", text)]
    assert all(tokens(chunk.text) <= max(size, *words) for chunk in chunks)


def test_a_chunk_ends_with_a_sentence_and_the_next_says_the_last_one_again():
    text = "One cat slept. Two dogs ran. Three birds sang."
    assert [c.text for c in chunks_of(document(text), size=8)] == ["One cat slept. Two dogs ran. ", "Three birds sang."]
    assert [c.text for c in chunks_of(document(text), size=8, overlap=4)] == [
        "One cat slept. Two dogs ran. ",
        "Two dogs ran. Three birds sang.",
    ]


def test_a_chunk_must_hold_more_than_what_it_says_again():
    with pytest.raises(ValueError, match="more than its overlap, has 8 and 8"):
        chunks_of(document("x"), size=8, overlap=8)


def test_a_fact_cut_in_two_is_found_only_with_both_halves():
    text = "The kennel was full of fleas in the first week of June."
    first, second = chunks_of(document(text), size=8)
    fact = Fact("f", (), "", (Span("d", 4, len(text)),))
    covers = [Cover("d", chunk.start, chunk.end) for chunk in (first, second)]
    assert not covered(fact, covers[:1])
    assert not covered(fact, covers[1:])
    assert covered(fact, covers)


# --- the budget and the fusion ------------------------------------------------------------------


def chunk(start, text, name="d"):
    return Chunk(name, start, start + len(text), text)


def test_the_budget_admits_whole_chunks_in_order_and_skips_what_does_not_fit():
    spent = Spent(5)
    assert [spent.admit(chunk(start, text)) for start, text in ((0, "a" * 12), (50, "b" * 12), (90, "c" * 8))] == [
        True,
        False,
        True,
    ]
    assert (spent.used, spent.covers) == (5, [("d", 0, 12), ("d", 90, 98)])


def test_what_two_chunks_share_is_paid_for_once():
    spent = Spent(100)
    spent.admit(chunk(0, "x" * 40))
    spent.admit(chunk(20, "x" * 40))
    assert (spent.used, spent.covers) == (15, [("d", 0, 60)])


@settings(max_examples=60, deadline=None)
@given(starts=st.lists(st.integers(0, 80), max_size=12), budget=st.integers(0, 30))
def test_the_budget_is_never_overspent_in_multibyte_text(starts, budget):
    text = "é€ab" * 30
    spent = Spent(budget)
    for start in starts:
        spent.admit(chunk(start, text[start : start + 20]))
    assert spent.used == sum(tokens(text[start:end]) for _, start, end in spent.covers) <= budget


def test_rank_fusion_is_the_sum_of_weighted_reciprocal_ranks():
    order = fused([(1.0, [7, 8, 9]), (2.0, [9, 7])], constant=1)
    assert order == [9, 7, 8]  # 1/4 + 2/2, 1/2 + 2/3, 1/3
    assert fused([(1.0, [4, 2]), (1.0, [2, 4])], constant=60) == [2, 4]


def test_lists_joined_in_turns_give_the_question_its_own_chunks_first():
    assert in_turns([[1, 2, 3, 4], [2, 9], [8]], own=2) == [1, 2, 9, 8, 3, 4]
    assert in_turns([[], []], own=3) == []


# --- the question rewritten ---------------------------------------------------------------------


def test_a_question_is_asked_with_the_pets_name_and_the_days_of_its_newest_figures():
    sheets = [
        document("x", "figures", "Rex, Dec 26 2025 to Jan 1 2026"),
        document("x", "figures", "Rex, Dec 19 to Dec 25 2025"),
        document("x", "figures", "Mia, Jan 2 to Jan 8 2026"),
    ]
    assert asked_days(sheets, "Rex") == "Dec 26 2025 to Jan 1 2026"
    assert [day_of(sheet) for sheet in sheets] == ["2026-01-01", "2025-12-25", "2026-01-08"]
    assert day_of(document("Dec 5 2025, 6:05: Acorn Gold was put into Rex's bowl.")) == "2025-12-05"
    assert day_of(document("Found in Jan 3 2001.", "guide")) == ""


def test_the_plan_asks_for_each_link_of_a_chain_in_documents_of_its_kind():
    kind = kind_of([document("Mia: cat, siamese, female.\nRex: dog, boxer, male.")], "Rex")
    first, *parts = rewritten("Why does Rex scratch?", pet="Rex", kind=kind, days="Jul 8 to Jul 14 2026", expand="plan")
    assert first.text == "Why does Rex scratch? Jul 8 to Jul 14 2026"
    assert {part.kind for part in parts} == {"log", "label", "guide", ""}
    assert all(part.after is None or 0 < part.after <= number for number, part in enumerate(parts))
    assert any("dogs shows as itching" in part.text for part in parts)


def test_a_rewriting_that_does_not_exist_is_refused():
    assert all(rewritten("q", pet="Rex", kind="dog", days="", expand=each) for each in EXPANSIONS)
    with pytest.raises(ValueError, match=r"must be one of none, dates, .*, is 'magic'"):
        rewritten("q", pet="Rex", kind="dog", days="", expand="magic")


# --- anyone's triples ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home():
    return read_triples(DATA / "home.tsv")


def answers(home):
    return {asked.id: ask(home, asked) for asked in read_questions(DATA / "home.jsonl", home)}


def test_the_handmade_example_comes_out_as_it_was_worked_out_by_hand(home):
    found = answers(home)
    assert found["what links max to scratching"].walked[0] == "food reaction"
    assert set(found["what is in what max ate"].assembled[:2]) == {"chicken", "rice"}
    assert found["what is in what max ate"].chains == 2, "harbor gold is refuted: no way leads through it to salmon"
    assert found["who was where max was"].assembled[0] == "luna"
    assert found["the passage for the chain"].assembled[0] == "passage 1"
    assert set(found["what could bring scratching by food"].assembled[:2]) == {"chicken", "salmon"}


def test_the_example_table_says_what_was_found_and_what_was_left_out(home):
    lines = table(home, read_questions(DATA / "home.jsonl", home))
    assert lines[0].startswith("25 triples, 19 names, 24 adjacent pairs; 1 refuted (belief 0), 0 from a name to itself")
    assert lines[1].startswith("5 questions, 3 with a relation path, 0 of them cut")
    assert lines[4].split()[-2:] == ["1.000", "1.000"]


def test_a_triple_from_a_name_to_itself_is_counted_and_two_alike_are_one():
    triples = triples_of(
        [("a", "r", "b", 0.4), ("a", "r", "b", 0.9), ("b", "same as", "b", 1.0), ("b", "r", "c|d\t", 1.0)]
    )
    assert (triples.graph.pair_count, triples.to_itself) == (2, 1)
    assert triples.graph.pairs().belief.max() == 1.0
    assert ask(triples, Asked("q", ("a",), frozenset({"c|d\t"}), ("r", "r"))).assembled[0] == "c|d\t"


def test_recall_of_more_than_five_gold_names_says_how_many_of_all_were_among_five():
    gold = frozenset("abcdefgh")
    assert recall([*"abcdefgh"], gold) == FIRST / 8


def test_planted_paths_are_found_among_drawn_triples():
    triples, asked = drawn(3_000, 10)
    assert all(recall(ask(triples, one).assembled, one.gold) == 1.0 for one in asked)


@pytest.mark.parametrize(
    ("tsv", "jsonl", "words"),
    [
        ("a\tr\tb\na\tr\n", "", "t.tsv, line 2: expected 3 or 4 columns parted by tabs, found 2 in 'a\\\\tr'"),
        ("a\tr\tb\t1.5\n", "", "t.tsv, line 1: expected a belief in \\[0, 1\\] as fourth column, found '1.5'"),
        ("a\tr\tb\tnan\n", "", "belief in \\[0, 1\\] as fourth column, found 'nan'"),
        ("a\t\tb\n", "", "line 1: expected a head, a relation and a tail that are not empty"),
        ("# none\n\n", "", "line 1: expected at least one triple, found none"),
        ("a\tr\tb\n", "", "q.jsonl, line 1: expected at least one question, found none"),
        ("a\tr\tb\n", "\n{", "q.jsonl, line 2: expected one JSON object, found Expecting property name"),
        ("a\tr\tb\n", "[]", "q.jsonl, line 1: expected one JSON object, found list"),
        ("a\tr\tb\n", '{"id": "1", "seeds": ["a"]}', "expected the key gold, found only id, seeds"),
        ("a\tr\tb\n", '{"id": "1", "seeds": "a", "gold": ["b"]}', "expected seeds as a list, found str"),
        ("a\tr\tb\n", '{"id": "1", "seeds": [], "gold": ["b"]}', "expected at least one name in seeds, found none"),
        ("a\tr\tb\n", '{"id": "1", "seeds": ["x"], "gold": ["b"]}', "expected seeds that the triples name, found 'x'"),
        ("a\tr\tb\n", '{"id": "1", "seeds": ["a"], "gold": ["b"], "path": ["s"]}', "relations that the triples have, found 's'"),
        ("a\tr\tb\n", '{"id": "1", "seeds": ["a"], "gold": ["b"], "among": "p"}', "gold that begins with 'p', as among says"),
        ("a\tr\tb\n", '{"id": "1", "seeds": ["a"], "gold": ["b"], "hops": "2"}', "only the keys id, seeds, gold, path, among, found 'hops'"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_the_format_says_is_refused_with_file_line_and_finding(tmp_path, tsv, jsonl, words):
    (tmp_path / "t.tsv").write_text(tsv, encoding="utf-8")
    (tmp_path / "q.jsonl").write_text(jsonl, encoding="utf-8")
    with pytest.raises(TriplesRefused, match=words):
        read_questions(tmp_path / "q.jsonl", read_triples(tmp_path / "t.tsv"))


def test_text_that_is_not_utf8_and_a_file_that_is_not_there_are_refused(tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"a\tr\t\xff\n")
    with pytest.raises(TriplesRefused, match="expected UTF-8 text, found invalid start byte"):
        read_triples(tmp_path / "t.tsv")
    with pytest.raises(TriplesRefused, match="expected a file that can be read, found No such file"):
        read_triples(tmp_path / "gone.tsv")


def test_the_example_of_the_doc_runs_and_prints_what_the_doc_shows(tmp_path, capsys):
    text = DOC.read_text(encoding="utf-8").partition("## Your own triples")[2]
    blocks = dict(re.findall(r"```(tsv|jsonl|text)\n(.*?)```", text, re.DOTALL))
    (tmp_path / "mine.tsv").write_text(blocks["tsv"], encoding="utf-8")
    (tmp_path / "mine.jsonl").write_text(blocks["jsonl"], encoding="utf-8")
    for line in blocks["jsonl"].splitlines():
        assert set(json.loads(line)) >= {"id", "seeds", "gold"}
    main([str(tmp_path / "mine.tsv"), str(tmp_path / "mine.jsonl")])
    printed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("time a question")]
    assert printed == blocks["text"].splitlines()
