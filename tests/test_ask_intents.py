"""Every intent the reader knows is answered: what it opens with, what it cites, what it never says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.ask.answer import EXPLAINED_WORDS
from gateway.dialogue import Answer, EvidenceClass, NoticeKind
from tests.ask_home import Home, household, made, spoken_words, text_of
from tests.ask_situations import clear_change, since

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Iterator[Home]:
    """Max's home with a lapsed flea treatment, weights, notes, a third food and a quiet Luna."""
    with clear_change(tmp_path_factory.mktemp("intents")) as (one, _):
        one.log("max", "flea treatment", "2026-06-03")
        one.log("max", "weight 30.9 kg", "2026-04-30")
        one.log("max", "weight 31.4 kg", "2026-06-30")
        one.note("max", "2026-03-11", "Ears clean. Weight 31 kg.")
        one.product("4006381333955", "Poultry Mix", label="Poultry meal, rice, whey powder, beef fat.")
        one.command(
            "passages",
            source="treats.md",
            title="Treat guide",
            text="# Treat guide\n\n## 1. Spreads\n\nPeanut butter is given to many dogs; "
            "check the jar for xylitol (birch sugar, E967) first, which is poisonous to dogs.\n\n"
            "Cats find little in peanut butter.\n",
        )
        one.learn()
        yield one


def opening(answer: Answer) -> str:
    return answer.notices[0].text if answer.notices else answer.claims[0].text


def slots(answer: Answer) -> set[str]:
    return {part for notice in answer.notices for part in (notice.slot or "").split("+")} - {""}


# --- could it be this one? --------------------------------------------------------------------


def test_a_blamed_food_is_judged_with_what_speaks_for_it_and_against_it(home):
    answer = home.ask("Could the new chicken kibble be what makes Max itch?")
    text = text_of(answer)
    assert opening(answer) == "It may: the food on Jul 5 came before his scratching rose. That is no proof"
    assert "Against it alone, in the same weeks: flea treatment ran out on Jul 3" in text
    assert "One change is one observation" in text
    assert any(claim.evidence_class is EvidenceClass.CONNECTION for claim in answer.claims)
    assert spoken_words(answer) <= EXPLAINED_WORDS


def test_where_the_change_is_not_there_nothing_is_blamed(home):
    answer = home.ask("Did Max's sleep get worse because of the new kibble?")
    assert opening(answer).startswith("No drop shows in Max's rest, so there is nothing here to blame on")
    assert not any(claim.evidence_class is EvidenceClass.CONNECTION for claim in answer.claims)


def test_a_food_of_the_past_that_cannot_fit_is_said_not_to(home):
    answer = home.ask("Could Harbor Whitefish be what makes Max itch?")
    assert "Harbor Whitefish doesn't fit" in opening(answer)
    assert "Harbor Whitefish from May 6 to Jul 5 [bowl]" in text_of(answer)


def test_a_thing_that_is_not_on_file_is_not_blamed(home):
    answer = home.ask("Could his stay at Bella's be what makes Max itch?")
    assert "nothing on file says when Max was at Bella's" in opening(answer)
    assert not any(claim.evidence_class is EvidenceClass.CONNECTION for claim in answer.claims)


def test_nights_with_a_food_are_held_against_nights_without_it(home):
    answer = home.ask("Do Max's scratching nights line up with days he got Harbor Whitefish?")
    claim = next(claim for claim in answer.claims if claim.kind == "with_and_without")
    values = {quantity.name: quantity.value for quantity in claim.values}
    # the nights stand in a row, and the last of them also on the row of the morning after
    assert values["days_with"] + values["days_without"] == len(claim.refs) - 1
    assert claim.about[2:] == ("food:harbor_fish",)
    assert values["with"] < values["without"]
    assert "one change, so one observation" in text_of(answer)


def test_the_other_pets_on_a_food_are_named_with_what_is_missing(home):
    answer = home.ask("Have the other pets that eat the same food got itchy too?")
    assert opening(answer) == "As far as is on file, no two pets eat the same food"
    assert "What Luna eats is not on file" in text_of(answer)


def test_what_changed_before_is_listed_with_its_dates_and_no_cause(home):
    text = text_of(home.ask("What changed before Max started scratching?"))
    assert "Acme Chicken & Rice since Jul 5 [bowl]" in text
    assert "Flea treatment from Jun 3 to Jul 3 [owner's log, Jun 3]" in text
    assert "What came before is not thereby the cause" in text


def test_what_was_eaten_before_is_the_food_before(home):
    first = home.ask("Why is Max scratching more this week?")
    text = text_of(home.ask("What did he eat before that?", after=first))
    assert text.startswith("Harbor Whitefish")
    assert "from May 6 to Jul 5 [bowl]" in text


# --- what only people can judge ---------------------------------------------------------------


@pytest.mark.parametrize(
    "question", ["Does Max need a vet?", "Does Luna need a vet?", "Is Max eating enough?", "Is Max too heavy?"]
)
def test_a_judgement_is_left_to_people_and_never_a_reassurance(home, question):
    answer = home.ask(question)
    text = text_of(answer)
    assert re.search(r"your vet|for a vet|call today", text, re.IGNORECASE)
    assert not re.search(r"\bfine\b|\bhealthy\b|no need|don't worry|\bok\b", text, re.IGNORECASE)
    assert re.search(r"vet to say|can't decide|no record says|can't say", opening(answer))


def test_a_pet_with_a_clear_change_is_a_reason_to_call(home):
    text = text_of(home.ask("Does Max need a vet?"))
    assert "a clear change is a reason to call this week" in text
    assert "Scratching: 136 s a day" in text
    assert "555-0100" in text


def test_enough_water_without_a_water_bowl_names_the_device(home):
    answer = home.ask("Is Max drinking enough?")
    assert {notice.device for notice in answer.notices} == {"water_bowl"}
    assert "water" in slots(answer)


def test_a_weight_question_shows_the_weights_on_file_latest_first(home):
    answer = home.ask("Is Max too heavy?")
    weights = [claim.text for claim in answer.claims if claim.kind == "logged"]
    assert weights == ["Weight 31.4 kg on Jun 30", "Weight 30.9 kg on Apr 30"]
    assert "body_condition" in slots(answer)


def test_the_summary_for_the_vet_holds_changes_dates_and_what_nobody_saw(home):
    text = text_of(home.ask("What should I tell the vet about Max?"))
    for part in (
        "For the vet: Max, golden retriever, dog, 5 years, neutered male", "Scratching: 136 s a day",
        "Acme Chicken & Rice since Jul 5 [bowl]", "Flea treatment from Jun 3 to Jul 3", "31.4 kg on Jun 30",
        "Not seen by any device",
    ):  # fmt: skip
        assert part in text


def test_switching_back_is_the_vets_to_plan_and_a_second_observation(home):
    text = text_of(home.ask("What happens if I switch Max back to Harbor Whitefish?"))
    assert text.startswith("No record can say what would happen")
    assert "Harbor Whitefish from May 6 to Jul 5 [bowl]" in text
    assert "plan it with your vet" in text


def test_an_emptied_bowl_that_left_no_record_is_not_denied(home):
    answer = home.ask("Has anybody emptied Max's bowl today?")
    assert opening(answer).startswith("I can't tell: no refill or emptying was recorded today")
    assert "refill" in slots(answer)


def test_whether_a_treatment_helped_is_before_against_after_and_no_cause(home):
    text = text_of(home.ask("Has the flea treatment helped with Max's scratching?"))
    assert text.startswith("No drop shows")
    assert "Before and after are not cause and effect" in text


# --- labels and books -------------------------------------------------------------------------


def test_foods_free_from_something_open_the_answer_and_may_contain_is_not_free(home):
    answer = home.ask("Which of our foods is free from beef and dairy?")
    assert opening(answer) == "By their labels: Acme Chicken & Rice and Harbor Whitefish"
    text = text_of(answer)
    assert 'Poultry Mix: its label lists "beef fat"' in text
    assert 'Poultry Mix: its label lists "whey"' in text
    free = home.ask("Which of our foods is free from chicken?")
    assert opening(free) == "By their labels: Harbor Whitefish"
    assert 'Poultry Mix: its label lists "Poultry meal", which may contain chicken' in text_of(free)


def test_peanut_butter_asked_ahead_is_a_sentence_of_a_guide_that_says_check_for_xylitol(home):
    answer = home.ask("Can Max have peanut butter?")
    told = [claim for claim in answer.claims if claim.evidence_class is EvidenceClass.REFERENCE]
    assert any("xylitol" in claim.text and claim.refs for claim in told)
    assert "Cats find little" not in text_of(answer)
    assert opening(answer).startswith("No yes or no from here")


def test_a_food_no_source_speaks_of_is_neither_harmless_nor_harmful(home):
    text = text_of(home.ask("Are carrots ok for dogs?"))
    assert "no source on file says anything about carrots" in text
    assert "That does not make it harmless" in text
    assert not re.search(r"\b(safe|fine|harmful)\b", text)


def test_general_knowledge_carries_its_label_and_no_number(home):
    answer = home.ask("Should I get a second dog?")
    general = [claim for claim in answer.claims if claim.evidence_class is EvidenceClass.GENERAL]
    assert len(general) == 1
    assert general[0].text.startswith("General knowledge, not from your pets' records")
    assert not re.search(r"\d", general[0].text)
    assert general[0].refs == ()


def test_what_is_normal_for_a_breed_is_not_made_up(home):
    answer = home.ask("Is 14 hours of sleep normal for a beagle?")
    assert opening(answer) == "No source on file says what is normal for a beagle"


# --- marks ------------------------------------------------------------------------------------


def test_a_correction_names_the_supposition_a_mark_would_take_out(home):
    first = home.ask("Why is Max scratching more this week?")
    text = text_of(home.ask("That's wrong, it isn't the food", after=first))
    assert "food:acme_chicken>sign:itch@pet:max" in text
    assert "never touches measured values" in text


# --- cannot tell ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def restless_home(tmp_path_factory) -> Iterator[Home]:
    """A dog whose scratching varies so much that a week cannot show a rise of a third."""
    with made(tmp_path_factory.mktemp("varied"), household("max", devices=("bowl-max", "tracker-max"))) as one:
        one.worn("max", "scratch", 99_000, days=170, cv=0.62, factor=since("2026-07-08", 1.22))
        one.learn()
        yield one


def test_not_clear_says_what_was_seen_how_often_and_what_would_have_shown(restless_home):
    answer = restless_home.ask("Why is Max scratching more this week?")
    text = text_of(answer)
    assert opening(answer).startswith("Not clear, but ")
    assert re.search(r"\d+ of his last \d+ comparable weeks were as (high|low)", text), text
    assert "one week would show a change above about" in text
    assert re.search(r"Over the last (14|28|90) days it is|If this goes on, it can be told about", text), text
    values = {q.name for claim in answer.claims for q in claim.values}
    assert {"rank", "rank_of", "smallest_visible"} <= values


def test_every_answer_that_cannot_tell_names_the_slot_that_is_empty(home, restless_home):
    for one, question in (
        (restless_home, "Is Max scratching more?"),
        (home, "Why is Luna scratching?"),
        (home, "What is Max's heart rate right now?"),
        (home, "Is Max vomiting more?"),
        (home, "Did anyone give Max his Apoquel?"),
        (home, "When was Luna's last flea treatment?"),
    ):
        assert slots(one.ask(question)), question


# --- bad input and the same bytes -------------------------------------------------------------

HOSTILE = (
    "", "   ", "x" * 100_000, "why " * 25_000, "\U0001f436" * 50, "لماذا يحك ماكس", "\u202e?gnihctarcs xaM si yhW",
    "\u200b\u200d\ufeff", "\x00\x07\x1b[31mWhy is Max\x00", "((((" * 200, "12345", "?", "💥Max💥 scratching 💥",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_gets_a_polite_sentence(home, text):
    answer = home.ask(text)
    assert text_of(answer).strip()
    assert len(answer.question.text) <= 500
    assert len(opening(answer).split()) <= 25
    assert answer.claims or answer.notices[0].kind in NoticeKind


def test_the_answer_is_the_same_bytes_under_any_hash_seed_locale_and_zone(home):
    seen = set()
    for number in range(8):
        env = os.environ | {
            "PYTHONHASHSEED": ("0", "1", "random")[number % 3],
            "LC_ALL": ("C", "C.UTF-8", "POSIX")[number % 3],
            "TZ": ("UTC", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Chatham")[number % 4],
            "PYTHONUTF8": str(number % 2),
        }
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "ask", "Why is Max scratching more this week?", "--json",
             "--now", "2026-07-14T18:00:00-04:00", "--db", str(home.path)],
            capture_output=True, env=env, timeout=120, check=False, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        seen.add(done.stdout)
    assert len(seen) == 1
    assert json.loads(seen.pop())["schema"] == 1
