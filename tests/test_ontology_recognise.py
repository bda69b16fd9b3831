"""The one recogniser: folding keeps offsets, the longest alias wins, every reading is kept."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.question import read_question
from gateway.ask.scene import alias_rows, ingredient_aliases
from gateway.ontology.kept import KeptAliases, KeptLexicon, rows_of
from gateway.ontology.load import hazards, keeping, kept, languages, things, vocabulary_key
from gateway.ontology.recognise import Alias, Lexicon, Reading, fold, inflect, tokens_of
from gateway.ontology.spelling import Neighbours, within_edits
from gateway.store import Database, Snapshot, initialise
from tests.question_home import DATA, HOME, NOW_MS, rows


def lexicon(*names: tuple[str, str], form: str = "exact") -> Lexicon:
    return Lexicon(Alias(name, Reading(kind, f"{kind}:{name}"), form) for name, kind in names)


@pytest.mark.parametrize(
    "written", ["Bella's", "Bella\u2019s", "BELLA\u02bcS", "bella\uff07s", "Bel\u200bla's", "Bella`s"]
)
def test_apostrophes_case_and_zero_width_signs_fold_alike(written):
    found = lexicon(("Bella's", "place")).find(f"at {written} today")
    assert [match.text for match in found] == [written]


def test_composed_and_decomposed_accents_fold_alike():
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, "pregunta por Plátano aquí")
        (match,) = lexicon(("plátano", "food")).find(text)
        assert unicodedata.normalize("NFC", match.text) == "Plátano"


@given(st.text(max_size=80))
def test_every_token_is_the_text_it_points_at(text):
    for token in tokens_of(text):
        assert 0 <= token.start < token.end <= len(text)
        folded = fold(text[token.start : token.end])[0]
        assert token.text == "and" or token.text in folded


@given(st.text(max_size=60))
def test_offsets_never_run_backwards_and_end_with_the_text(text):
    folded, offsets = fold(text)
    assert len(offsets) == len(folded) + 1
    assert list(offsets) == sorted(offsets)
    assert offsets[len(folded)] == len(text)


def test_the_longest_alias_wins_and_shorter_ones_inside_it_are_silent():
    words = lexicon(("peanut", "pet"), ("peanut butter", "food"))
    assert [m.readings[0].kind for m in words.find("Can Peanut have peanut butter?")] == ["pet", "food"]


def test_all_readings_of_a_span_are_kept():
    (match,) = lexicon(("lily", "pet"), ("lily", "tox")).find("lily")
    assert [reading.kind for reading in match.readings] == ["pet", "tox"]


def test_an_alias_never_matches_across_a_sentence_mark():
    assert lexicon(("acme chicken", "food")).find("Acme. Chicken!") == ()


def test_forms_are_made_when_the_lexicon_is_built():
    assert ("max's",) in inflect(("max",), "name")
    assert ("berries",) in inflect(("berry",), "noun")
    assert ("itching",) in inflect(("itch",), "verb")
    assert "grape's" in Lexicon([Alias("grape", Reading("tox", "tox:grape"), "noun")])


def test_the_order_of_aliases_does_not_matter():
    rows = [("salmon", "ing"), ("salmon oil", "ing"), ("salmon", "pet")]
    text = "salmon oil and salmon"
    assert lexicon(*rows).find(text) == lexicon(*reversed(rows)).find(text)


def test_a_text_of_100_kb_is_read_whole():
    assert len(lexicon(("grape", "tox")).find("grape, " * 15_000)) == 15_000


def _edits_by_definition(one: str, other: str) -> int:
    """Optimal string alignment, straight from the recurrence."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (one[i - 1] != other[j - 1])
            )
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 3))
def test_edits_are_those_of_the_definition(one, other, limit):
    assert within_edits(one, other, limit) == (_edits_by_definition(one, other) <= limit)


@given(st.lists(st.text("abcd", min_size=1, max_size=10), max_size=12), st.text("abcd", min_size=1, max_size=10))
def test_the_index_finds_what_reading_the_whole_list_would(words, asked):
    def limit(word: str) -> int:
        return 2 if len(word) >= 8 else 1

    by_hand = {word for word in words if word != asked and within_edits(asked, word, limit(word))}
    assert set(Neighbours(words, two=True).near(asked)) == by_hand


def test_every_cue_class_exists_in_every_language():
    first, *others = languages()
    for other in others:
        missing = set(first.phrases) - set(other.phrases)
        assert missing <= OPTIONAL_CUES, f"{other.id} lacks {sorted(missing)}"
        assert set(other.words) == set(first.words)


OPTIONAL_CUES = {"most_of"}


def test_hazards_and_things_are_read_once_with_their_review():
    assert hazards() is hazards()
    assert things() is things()
    assert hazards().reviewed_by == "not yet reviewed by a vet"
    assert hazards().date == "2026-11-30"


# --- aliases kept as rows -------------------------------------------------------------------


def test_kept_rows_give_every_reading_a_built_lexicon_gives(tmp_path):
    initialise(tmp_path / "hub.db", clock_source="system")
    built = Lexicon(
        (
            Alias("grape", Reading("food", "food:grape"), "noun"),
            Alias("grape", Reading("tox", "tox:grape"), "noun"),
            Alias("grape juice", Reading("tox", "tox:juice")),
        )
    )
    with Database(tmp_path / "hub.db") as database, database.transaction() as tx:
        tx.save_aliases([("stale", "stale", "x", "k", "t")], key="before")
        tx.save_aliases(rows_of({"x": built}, {"known": ["vine"]}), key=vocabulary_key())
    text = "Grapes, grape's vine and GRAPE JUICE"
    with Snapshot(tmp_path / "hub.db") as reader:
        from_rows = KeptLexicon("x", KeptAliases(reader.aliases_beginning, reader.aliases_in))
        assert reader.aliases_key() == vocabulary_key()
        assert from_rows.find(text) == built.find(text)
        assert from_rows.phrases() == built.phrases()
        assert "stale" not in from_rows


def test_a_question_read_from_kept_rows_is_the_question_read_from_the_tables():
    stored = alias_rows()
    cases = [row["text"] for row in rows(DATA / "questions_own.jsonl")[::3] + rows(DATA / "questions_unseen_de.jsonl")]
    cases += ["Max ate choclate", "how much did maxx eat yesterdy", "Bella hat Knoblauchbrot geklaut"]
    extra = ingredient_aliases()
    built = [read_question(text, household=HOME, now_ms=NOW_MS, extra=extra) for text in cases]
    first, within = {}, {}
    for row in stored:
        first.setdefault(row[0], []).append(row)
        within.setdefault(row[2], []).append(row)
    for table in (languages, hazards, things):
        table.cache_clear()
    with keeping(KeptAliases(lambda word: first.get(word, []), lambda name: within.get(name, []))):
        assert kept() is not None
        assert [read_question(text, household=HOME, now_ms=NOW_MS) for text in cases] == built
    assert kept() is None


def test_a_vocabulary_that_is_built_already_is_used_as_it_is():
    languages()
    with keeping(KeptAliases(lambda _: [], lambda _: [])):
        assert kept() is None
