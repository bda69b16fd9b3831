"""A table's phrase is every form it stands for; a frame is its parts in order, near each other, in one clause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ontology.frames import Frame, Frames
from gateway.ontology.load import languages, load
from gateway.ontology.phrases import Grammar, expand, inflected, with_optional
from gateway.ontology.recognise import Alias, Lexicon, Reading, tokens_of

GRAMMAR = Grammar(
    sets={"his": ("his", "her"), "him": ("him", "her"), "meal": ("food", "{his} dinner")},
    verbs={"keep": ("keeps", "kept", "keeping"), "eat": ("eats", "ate", "eaten", "eating")},
    spelling={"dont": "don't", "wk": "week"},
)


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("itch", "itch itches itched itching"),
        ("nap", "nap naps napped napping"),
        ("limp", "limp limps limped limping"),
        ("refuse", "refuse refuses refused refusing"),
        ("worry", "worry worries worried worrying"),
        ("play", "play plays played playing"),
        ("lie", "lie lies lied lying"),
        ("agree", "agree agrees agreed agreeing"),
        ("vomit", "vomit vomits vomited vomiting"),
        ("keep", "keep keeps kept keeping"),
    ],
)
def test_a_verb_has_its_forms_by_rule_or_by_table(verb, forms):
    assert inflected(verb, GRAMMAR) == tuple(forms.split())


def test_marks_stand_for_every_combination():
    assert expand("~keep (on|) itching", GRAMMAR) == tuple(
        f"{verb}{on} itching" for on in (" on", "") for verb in ("keep", "keeps", "kept", "keeping")
    )
    assert set(expand("off {meal}", GRAMMAR)) == {"off food", "off his dinner", "off her dinner"}


def test_is_has_and_not_are_also_run_together():
    assert set(expand("what is it", GRAMMAR)) == {"what is it", "what's it"}
    assert set(expand("has not eaten", GRAMMAR)) == {"has not eaten", "hasn't eaten"}
    assert set(expand("it will not do", GRAMMAR)) == {"it will not do", "it won't do", "it'll not do"}


def test_hurried_spellings_in_a_table_are_the_word_that_is_meant():
    assert expand("dont know this wk", GRAMMAR) == ("don't know this week",)


def test_a_phrase_that_names_no_set_or_stands_for_too_much_is_refused():
    with pytest.raises(ValueError, match="names the set 'their'; known: him, his, meal"):
        expand("off {their} food", GRAMMAR)
    many = "(a|b|c|d|e|f|g|h|i|j)" * 4
    with pytest.raises(ValueError, match="at most 4000 forms"):
        expand(many, GRAMMAR)


@given(st.text("abc ~(){}|'", max_size=30))
def test_any_phrase_is_expanded_or_refused_in_words(phrase):
    try:
        forms = expand(phrase, GRAMMAR)
    except ValueError:
        return
    assert len(set(forms)) == len(forms)
    assert all(form == " ".join(form.split()) for form in forms)


def test_a_part_that_may_be_empty_makes_two_orders():
    assert with_optional(["~get", "(on|)", "weight"]) == (("~get", "(on|)", "weight"), ("~get", "weight"))


# --- frames ---------------------------------------------------------------------------------


def frames(*parts: str, gap: int = 2) -> Frames:
    aliases = [Alias(word, Reading("part", str(i))) for i, part in enumerate(parts) for word in part.split("|")]
    numbered = tuple(str(i) for i in range(len(parts)))
    return Frames(Lexicon(aliases), {"0": (Frame("metric", "intake:down", numbered, gap),)}, frozenset({"and", "but"}))


NOT_EATEN = frames("hasn't|not", "touched|finished", "food|dinner")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Luna hasn't touched her food today", "hasn't touched her food"),
        ("she hasn't really touched any of her food", None),
        ("she hasn't really touched much dinner", "hasn't really touched much dinner"),
        ("she hasn't slept, touched her food", None),
        ("she has not slept and touched her food", None),
        ("her food, not touched", None),
        ("not touched food. not finished dinner", "not touched food|not finished dinner"),
    ],
)
def test_a_frame_is_its_parts_in_order_and_near_and_in_one_clause(text, found):
    tokens = tokens_of(text)
    hits = NOT_EATEN.find(text, tokens)
    assert [text[tokens[hit.first].start : tokens[hit.last - 1].end] for hit in hits] == (found or "").split("|")[
        : len(hits) or 0
    ]
    assert bool(hits) == (found is not None)


def test_an_earlier_word_that_leads_nowhere_does_not_hide_a_later_one():
    text = "not touched not touched the food"
    (hit,) = frames("not", "touched", "food", gap=1).find(text, tokens_of(text))
    assert (hit.first, hit.last) == (2, 6)


def test_every_frame_of_every_language_means_a_cue_class_a_property_or_a_direction():
    measured = set(load().properties)
    for language in languages():
        cues = set(language.phrases)
        for frame in (frame for many in language.frames.by_first.values() for frame in many):
            assert frame.kind in {"cue", "metric", "dir"}
            known = {"cue": cues, "metric": measured, "dir": {"up", "down", "same", "worse", "better", "ignore"}}
            assert frame.target.removeprefix("?").partition(":")[0] in known[frame.kind], frame


SPANISH = Grammar(
    verbs={"rascar": ("rasqu-",), "dar": ("da", "dio")},
    endings={"ar": ("a", "e", "ando", "arse"), "er": ("e", "io")},
)


def test_a_verb_takes_the_endings_of_its_kind_on_every_stem_and_keeps_its_own_forms():
    assert expand("~comer mas", SPANISH) == ("comer mas", "come mas", "comio mas")
    rascar = expand("~rascar", SPANISH)
    assert {"rascar", "rasca", "rasque", "rascando", "rascarse"} <= set(rascar)
    assert not any("-" in form for form in rascar)


def test_a_verb_of_one_letter_and_an_ending_has_only_the_forms_listed():
    assert expand("~dar", SPANISH) == ("dar", "da", "dio")
