"""Everyday questions: the first sentence answers what was asked, and every claim is borne out by its records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from gateway.ask.answer import answer_json, answer_lines
from gateway.dialogue import Answer, NoticeKind
from gateway.model import Food
from tests.ask_home import ACME, HARBOR, SWITCHED, Home, household, made, text_of
from tests.ask_situations import clear_change, since
from tests.evaluate.book import Book
from tests.evaluate.replay import replay

BROOK = "4006381333962"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Iterator[Home]:
    """Max with bowl and tracker, a new food and a visitor; Luna with a bowl and a food without a label."""
    foods = (*SWITCHED, Food("brook_wet", "Brook Wet", ("Brook",), code=BROOK))
    devices = ("bowl-max", "tracker-max", "bowl-luna")
    with made(tmp_path_factory.mktemp("everyday"), household("max", "luna", devices=devices, foods=foods)) as one:
        one.product(ACME, "Acme Chicken & Rice")
        one.product(HARBOR, "Harbor Whitefish")
        one.feed("bowl-max", "2026-05-06", HARBOR, "Harbor Whitefish")
        one.feed("bowl-max", "2026-07-05", ACME, "Acme Chicken & Rice", hour=17)
        one.feed("bowl-luna", "2026-05-06", BROOK, "Brook Wet")
        one.worn("max", "scratch", 99_000, factor=since("2026-07-08", 1.4))
        one.worn("max", "restless", 900_000, factor=since("2026-07-08", 1.5))
        one.worn("max", "activity", 5_400_000)
        one.worn("max", "rest", 44_000_000, cv=0.05)
        one.eats("max", 340)
        one.eats("luna", 62)
        one.log("max", "visitor", "2026-07-06T15:00")
        one.log("max", "bath", "2026-07-07T11:00")
        one.log("max", "weight 31.4 kg", "2026-06-30")
        one.log("luna", "plumber in the kitchen", "2026-07-02T09:30")
        one.learn()
        yield one


def first(answer: Answer) -> str:
    """The first sentence an owner reads."""
    return answer.notices[0].text if answer.layout[0][0] == "n" else answer.claims[0].text


def borne_out(home: Home, answer: Answer) -> list[str]:
    book = Book(home.path)
    try:
        return [str(problem) for problem in replay(json.loads(json.dumps(answer_json(answer))), book)]
    finally:
        book.close()


def asked(home: Home, question: str) -> Answer:
    answer = home.ask(question)
    assert not borne_out(home, answer), text_of(answer)
    return answer


# --- what the household entered ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("how old is Max", "Max is 5 years old, born on Mar 2 2021"),
        ("when is Max's birthday?", "Max was born on Mar 2 2021 and is 5 years old"),
        ("what breed is Luna", "Luna is a domestic shorthair, a cat"),
        ("is Luna spayed", "Luna is neutered (female)"),
        ("Is Luna a boy or a girl?", "Luna is female"),
        ("what does Max weigh", "Weight 31.4 kg on Jun 30, the last on file"),
        ("who is our vet", "Dr. Wu, 555-0100 (vet)"),
        ("what's the vet's number", "Dr. Wu, 555-0100 (vet)"),
        ("number of the emergency clinic?", "Night clinic, 555-0199 (vet clinic)"),
        ("which food does Max get", "Acme Chicken & Rice since Jul 5"),
        ("what food did Max get in June?", "Harbor Whitefish from May 6 to Jul 5"),
        ("which devices does Max wear", "Max wears Max's collar"),
        ("how many pets do I have", "Two pets live here, as entered"),
    ],
)
def test_what_the_household_entered_is_answered_from_its_own_record(home, question, says):
    answer = asked(home, question)
    assert first(answer) == says
    assert answer.claims
    assert all(claim.refs and claim.cite for claim in answer.claims)


def test_a_fact_nobody_entered_is_not_on_file_and_where_to_enter_it_is_said(tmp_path):
    with made(tmp_path, household("peanut", devices=("bowl-peanut",))) as one:
        one.learn()
        answer = asked(one, "Is Peanut neutered?")
        assert first(answer) == "Peanut's neutering is not on file"
        assert any(notice.kind is NoticeKind.NEXT and "household" in notice.text for notice in answer.notices)
        assert first(asked(one, "What food does Peanut get?")) == "What Peanut gets now is not on file"


def test_whether_food_is_dry_or_wet_no_record_says(home):
    answer = asked(home, "does max get dry or wet food")
    assert first(answer).startswith("Whether he gets dry or wet food no record says")
    assert "Acme Chicken & Rice since Jul 5 [bowl]" in text_of(answer)


# --- what a pet's food of now holds -----------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "says", "food"),
    [
        ("is there any fish in Max's food", "No, by its label", "Acme Chicken & Rice: its label lists no fish"),
        ("is Max still getting chicken?", "Yes, by its label", 'Acme Chicken & Rice: its label lists "chicken meal"'),
        ("Is there grain in Max's food?", "Yes, by its label", "Acme Chicken & Rice"),
        ("Is Max's food grain free?", "Not free from grain, by its label", "Acme Chicken & Rice"),
        ("Does Max get fish?", "No, by its label", "Acme Chicken & Rice"),
        ("Does Max's food contain beet pulp?", "Yes, by its label", '"beet pulp"'),
        ("is there chicken in Max's old food?", "No, by its label", "Harbor Whitefish: its label lists no chicken"),
        ("does Luna get any grain?", "The label of Brook Wet is not on file", "Brook Wet"),
    ],
)
def test_what_is_in_a_pets_food_is_answered_for_the_food_it_gets(home, question, says, food):
    answer = asked(home, question)
    assert first(answer).startswith(says)
    assert food in text_of(answer)
    named = {name for claim in answer.claims for name in claim.about if name.startswith("food:")}
    assert len(named) == 1, f"the answer is about one food, names {named}"


def test_which_foods_hold_something_is_a_list_of_the_homes_foods(home):
    for question in ("what foods have fish", "which of our foods contain fish"):
        assert first(asked(home, question)) == "By their labels: Harbor Whitefish"


def test_what_the_tables_do_not_know_is_never_denied(home):
    answer = asked(home, "Does Max's food have gluten?")
    assert first(answer) == "Not by that word: its label names no gluten, which is no proof"


def test_a_food_nobody_entered_is_not_answered_from_other_foods(tmp_path):
    with made(tmp_path, household("max", "luna", devices=("bowl-max",), foods=SWITCHED)) as one:
        one.product(HARBOR, "Harbor Whitefish")
        one.learn()
        assert first(asked(one, "Is there fish in Max's food?")) == "What Max gets now is not on file"


# --- said once --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question", ["how much did Max eat on Jul 12", "how much did Max scratch this week", "when did Max last scratch?"]
)
def test_a_figure_is_said_once_and_opens_its_record(home, question):
    answer = asked(home, question)
    assert answer.layout[0] == "c1"
    figures = re.findall(r"\d[\d.,]* (?:g|kg|s|min|h)\b", " ".join(answer_lines(answer)))
    assert len(figures) == len(set(figures)), figures


# --- could it be this one? --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (
            "Could the visitor be why Max is restless at night?",
            "The visitor came on Jul 6, in time, but nothing in your sources links it to his night restlessness",
        ),
        (
            "Could the bath be why Max itches?",
            "The bath was on Jul 7, in time, but nothing in your sources links it to his scratching",
        ),
        (
            "Is the new food why Max is restless at night?",
            "Acme Chicken & Rice began on Jul 5, in time, but nothing new",
        ),
        ("Could the new food be why Max is itchy?", "It may: the food on Jul 5 came before his scratching rose"),
        ("Could Harbor Whitefish be why Max scratches?", "Harbor Whitefish doesn't fit: it began on May 6, more than"),
        ("Could the fireworks be why Max is restless?", "I can't tell: no fireworks are on file for Max"),
        ("Could the flea treatment be why Max scratches?", "I can't tell: nothing on file says when Max had flea"),
        ("Could the visitor be why Max is less active?", "No drop shows in Max's activity, so there is nothing here"),
    ],
)
def test_what_is_blamed_opens_the_answer(home, question, says):
    answer = asked(home, question)
    assert first(answer).startswith(says)
    assert not first(answer).startswith("Yes")


def test_what_the_owner_marked_wrong_opens_the_answer_too(tmp_path):
    with clear_change(tmp_path) as (one, _):
        one.command("wrong", hypothesis="food:acme_chicken>sign:itch@pet:max", reason="he had it before")
        answer = one.ask("Could the new chicken kibble be what makes Max itch?")
        assert first(answer).startswith("You marked the link to Acme Chicken & Rice wrong, so it is left out")


def test_how_long_something_was_entered_for_is_the_records_own_end(tmp_path):
    with made(tmp_path, household("max", devices=("tracker-max",))) as one:
        one.log("max", "visitor", "2026-06-20T12:00", every="3d")
        one.learn()
        answer = asked(one, "when did the visitor come?")
        assert "Visitor on Jun 20, 12:00 until Jun 23" in text_of(answer)
        spoiled = json.loads(json.dumps(answer_json(answer)).replace("until Jun 23", "until Jun 24"))
        book = Book(one.path)
        try:
            assert any("ends on" in str(problem) for problem in replay(spoiled, book))
        finally:
            book.close()


def test_what_changed_before_is_everything_dated_on_file_and_the_count_agrees(home):
    answer = asked(home, "What changed before Max started scratching?")
    text = text_of(answer)
    assert first(answer) == (
        "Four things are on file, weight 31.4 kg on Jun 30, the food on Jul 5, visitor on Jul 6 "
        "and bath on Jul 7, in the three weeks before it"
    )
    for part in ("Acme Chicken & Rice since Jul 5", "Visitor on Jul 6", "Bath on Jul 7", "Weight 31.4 kg on Jun 30"):
        assert part in text


# --- what people wrote down -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("when did the visitor come", "Visitor on Jul 6, 15:00, written down for Max"),
        ("how long was the visitor here", "How long is not on file, only when the visitor was written down"),
        ("Did we have a visitor last week?", "Yes, as logged"),
        ("has Max had a bath this week?", "No bath is on file for that time"),
        ("When was Max's last bath?", "Bath on Jul 7, 11:00, written down for Max"),
        ("when did the plumber come?", "Plumber in the kitchen on Jul 2, 09:30, written down for Luna"),
    ],
)
def test_what_was_written_down_is_found_by_what_it_is_or_by_its_own_words(home, question, says):
    assert first(asked(home, question)) == says


def test_a_question_no_entry_has_a_word_of_is_still_refused(home):
    assert first(asked(home, "what is the capital of France")).startswith("That is not something the records")


def test_a_question_that_is_about_this_home_but_not_understood_says_whom_it_is_about(home):
    answer = asked(home, "Max quibbles the snark, doesn't he, and Luna too")
    assert first(answer) == "This is about Max and Luna, but I can't read what is asked"
    assert answer.notices[0].kind is NoticeKind.CLARIFY
    assert (
        "If a pet is hurt, unwell or swallowed something, call a vet or an emergency clinic now"
        in answer.notices[1].text
    )


# --- nights, and two days side by side --------------------------------------------------------


def test_last_night_is_last_nights_hours_against_usual_nights(home):
    answer = asked(home, "Did Max sleep well last night?")
    assert first(answer).startswith("Max's rest last night was ")
    figure = next(claim for claim in answer.claims if claim.kind == "comparison")
    assert figure.window is not None
    assert (figure.window.first_date, figure.window.last_date) == ("2026-07-13", "2026-07-13")
    assert "a night against his usual" in figure.text
    assert "night of Jul 13" in figure.text
    assert any("Night restlessness" in claim.text for claim in answer.claims)


def test_one_night_of_what_is_measured_at_night_is_one_night_of_one(home):
    text = text_of(asked(home, "Was Max more restless than usual last night?"))
    assert "worn 1 of 1 nights" in text
    assert "1 of 2" not in text


def test_how_long_at_night_is_one_nights_mean_and_never_whole_days(home):
    answer = asked(home, "How long does Max rest at night?")
    assert re.match(r"Max rested [\d.]+ h a night on 6 nights", first(answer)), first(answer)
    assert float(first(answer).split(" ")[2]) < 10


def test_an_amount_of_nights_says_which_nights(home):
    answer = asked(home, "How long does Max rest at night?")
    assert first(answer).endswith(", Jul 8\N{EN DASH}13")
    assert borne_out(home, answer) == []


def test_more_or_less_names_what_is_more_and_a_night_is_no_day(home):
    answer = asked(home, "Was Max calmer at night this week than last week?")
    assert re.match(r"Night restlessness is \d+ % more than in the days before$", first(answer)), first(answer)
    rates = [claim.text for claim in answer.claims if claim.kind == "per_day"]
    assert len(rates) == 2
    assert all(re.search(r": \d+ min a night on [67] nights", text) for text in rates), rates
    assert borne_out(home, answer) == []


@pytest.mark.parametrize(
    "question", ["When did Max eat today?", "When was Max fed this morning?", "Wann hat Max heute gefressen?"]
)
def test_when_within_a_day_is_every_visit_of_it(home, question):
    whole = next(claim for claim in asked(home, "Has Max eaten today?").claims if claim.kind == "meals")
    answer = asked(home, question)
    told = next(claim for claim in answer.claims if claim.kind == "meals")
    assert set(told.refs) <= set(whole.refs)
    assert not first(answer).startswith(("Yes", "Ja"))
    if "morning" not in question:
        assert told.refs == whole.refs
    assert borne_out(home, answer) == []


def test_what_one_of_two_named_foods_holds_is_no_bare_yes(home):
    answer = asked(home, "Do Acme and Harbor contain chicken?")
    assert first(answer) == "By their labels: Acme Chicken & Rice"
    assert "Harbor Whitefish: its label lists no chicken" in text_of(answer)


def test_one_visit_is_no_sum_and_hours_of_one_day_name_it_once(home):
    text = text_of(asked(home, "When was Max fed this morning?"))
    assert re.match(r"1 visit to the bowl on Jul 14, 00:00 to 12:00\. At [\d:]+, [\d.]+ g \[bowl\]", text), text


def test_whether_of_several_pets_says_whose_visits_they_are(home):
    text = text_of(asked(home, "Did Max and Luna eat today?"))
    assert text.index("Max: Yes") < text.index("Luna: Yes") or text.index("Luna: Yes") < text.index("Max: Yes")


def test_of_a_time_long_past_no_first_comparison_is_awaited(home):
    text = text_of(asked(home, "Did Max scratch more than usual last month?"))
    assert "Too early" in text
    assert "First comparison" not in text


def test_what_moved_beside_something_that_did_not_is_not_up_too(home):
    text = text_of(asked(home, "Why is Max eating less?"))
    assert text.startswith("No drop shows in what leaves Max's bowl")
    assert "Night restlessness is up, " in text
    assert "up too" not in text
    assert "Night restlessness is up too, " in text_of(asked(home, "Why is Max scratching more?"))


def test_one_day_that_shows_nothing_is_not_too_early(home):
    text = text_of(asked(home, "What happened with Max on July 6?"))
    assert "Too early" not in text


def test_a_sign_that_is_told_or_counted_says_when_to_call(home):
    for question in ("Luna threw up twice this morning", "How often did Luna vomit?", "Max coughs at night"):
        assert "Call your vet (555-0100) today if it keeps coming" in text_of(asked(home, question)), question
    assert "Call" not in text_of(asked(home, "When did Luna last vomit?"))


def test_since_when_a_food_is_given_is_said_once(home):
    answer = asked(home, "Since when does Max get Acme?")
    assert text_of(answer).count("Jul 5") == 1
    assert first(answer) == "Acme Chicken & Rice since Jul 5"


@pytest.mark.parametrize(
    "question",
    ["how much did Luna eat yesterday compared to the day before", "did luna eat more yesterday than the day before?"],
)
def test_two_days_are_told_with_both_figures_and_their_difference(home, question):
    answer = asked(home, question)
    assert re.match(r"(About the same: )?[\d.]+ g (more|less) on Jul 13 than on Jul 12$", first(answer)), first(answer)
    totals = [next(q.value for q in claim.values if q.name == "total") for claim in answer.claims]
    assert len(totals) == 2
    said = re.search(r"[\d.]+(?= g)", first(answer))
    assert said is not None
    assert abs(float(said[0]) - abs(totals[0] - totals[1]) / 1000) <= 0.5


def test_a_day_that_is_not_over_is_held_against_the_same_hours(home):
    answer = asked(home, "Did Max eat more today than yesterday?")
    assert "by 18:00" in first(answer)
    assert "not recorded" not in text_of(answer)
    ends = {claim.window.interval.end_ms - claim.window.interval.start_ms for claim in answer.claims if claim.window}
    assert len(ends) == 1


# --- what no record can say -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("will Max be fine?", "No record can say whether Max is well or will be"),
        ("Is Max ok?", "No record can say whether Max is well or will be"),
        ("is Max in pain?", "No device here sees pain, so no record can say whether Max is in any"),
        ("is Max happy?", "How Max feels no record can say"),
        ("is Luna stressed?", "How Luna feels no record can say"),
        ("does Max have allergies?", "No record here says yes or no. No note or log entry about allergy is on file"),
        ("does Max have fleas?", "No record here says yes or no"),
    ],
)
def test_what_no_record_can_say_is_said_first_and_nothing_reassures(home, question, says):
    answer = asked(home, question)
    text = text_of(answer)
    assert first(answer).startswith(says)
    assert not re.search(r"healthy|no need|don't worry|\bis fine\b|nothing wrong", text, re.IGNORECASE)


def test_is_it_serious_is_left_to_the_vet(tmp_path):
    with made(tmp_path, household("peanut", devices=("bowl-peanut",))) as one:
        one.eats("peanut", 59)
        one.learn()
        answer = asked(one, "is it serious?")
        assert first(answer).startswith("I can't decide that")
        assert "555-0100" in text_of(answer)


# --- what only people see ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def cat(tmp_path_factory) -> Iterator[Home]:
    """Luna alone, with vomits, weights, a treat and fireworks written down."""
    devices = ("bowl-luna", "tracker-luna")
    with made(tmp_path_factory.mktemp("cat"), household("luna", devices=devices)) as one:
        one.eats("luna", 62)
        one.worn("luna", "rest", 54_000_000, cv=0.05)
        one.log("luna", "weight 4.3 kg", "2026-06-21")
        one.log("luna", "weight 4.2 kg", "2026-07-10")
        one.log("luna", "vomit", "2026-07-09T08:00")
        one.log("luna", "vomit", "2026-07-12T08:00")
        one.log("luna", "treat", "2026-07-11T19:00")
        one.log("luna", "fireworks", "2026-07-04T21:00")
        one.note("luna", "2026-05-04", "Start Metacam. Recheck in 3 weeks.")
        one.learn()
        yield one


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("how often did luna throw up this month", "Vomiting is logged twice Jun 15\N{EN DASH}Jul 14"),
        ("when did luna last vomit", "Vomit on Jul 12, 08:00, the last on file"),
        ("did luna vomit today?", "No vomiting is logged today (Jul 14)"),
        ("is luna vomiting more", "Vomiting is logged twice Jul 8\N{EN DASH}14, not once in the 7 days before"),
        ("why is luna vomiting", "I can't tell why: no device here sees vomiting; it is logged twice"),
        ("what changed before luna started vomiting", "Two things are on file, weight 4.3 kg on Jun 21 and fireworks"),
        ("when did luna limp last", "No limping is logged for Luna"),
        ("has luna lost weight", "0.1 kg less on Jul 10 than on Jun 21, as logged"),
        ("does luna need a vet", "That is for a vet to say; what is logged of late is a reason to call this week"),
        ("did the fireworks upset luna's sleep", "The night of fireworks: rest "),
        ("what medicine does luna take", "On file: 1 entry"),
        ("does luna need her medicine tonight", "Nothing of it is on file for that time; the latest entry follows"),
    ],
)
def test_what_is_written_down_is_never_said_not_to_be_recorded(cat, question, says):
    assert first(asked(cat, question)).startswith(says)


@pytest.mark.parametrize(
    "question", ["How is Luna?", "Does Luna need a vet?", "What should I tell the vet about Luna?"]
)
def test_logged_signs_stand_beside_what_devices_measured(cat, question):
    text = text_of(asked(cat, question))
    assert "Vomit on Jul 12, 08:00 [owner's log]" in text
    assert "Vomit on Jul 9, 08:00 [owner's log]" in text


def test_a_treat_that_was_logged_is_counted_as_one(cat):
    assert "1 treat logged, last on Jul 11 [owner's log]" in text_of(asked(cat, "Is Luna eating less than usual?"))


def test_whether_to_give_a_pill_is_never_opened_with_yes(tmp_path):
    with made(tmp_path, household("bella", devices=("bowl-bella",))) as one:
        one.note("bella", "2026-02-03", "Hypothyroid. Thyroid pill once daily, morning.")
        one.log("bella", "thyroid pill", "2026-07-14T08:10")
        one.learn()
        answer = asked(one, "Should I give Bella her thyroid pill now?")
        assert first(answer) == "It is logged as given already"
        assert "Don't give a second one" in text_of(answer)
        assert first(asked(one, "Did Bella get her pill today?")) == "Yes, as logged"


@pytest.mark.parametrize("question", ["who filled the bowl", "how do you know", "why do you think it's the food"])
def test_no_question_is_left_without_a_word(home, question):
    answer = home.ask(question)
    assert first(answer)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("does Luna eat at night", "I can't tell: no visit to the bowl was recorded at night"),
        ("what happened on Jul 6", "Max:"),
        ("did Max scratch more after the food change", None),
    ],
)
def test_only_the_time_asked_about_is_told(home, question, says):
    answer = asked(home, question)
    if says is not None:
        assert any(notice.text.startswith(says) for notice in answer.notices), text_of(answer)
    assert "not on file" not in text_of(answer)
    if "happened" in question:
        assert "One thing is on file, visitor on Jul 6" in text_of(answer)
