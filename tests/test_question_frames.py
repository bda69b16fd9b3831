"""Questions become frames: the cases, a second set, names that are words, and bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ask.intents import RULES
from gateway.ask.question import CAP, frame_json, read_question
from gateway.dialogue import Question
from gateway.model import Binding, Device, Food, Household, Pet, ZonePeriod
from gateway.ontology.recognise import Alias, Reading
from tests.question_home import DATA, FIELDS, HOME, NOW_MS, differences, home_of, rows

LEAST_RIGHT = 0.95


def ask(text: str, home: Household = HOME, **more: object) -> Question:
    return read_question(text, household=home, now_ms=NOW_MS, **more)


def test_at_least_95_percent_of_the_cases_have_every_field_right(shared_dir):
    cases = rows(shared_dir / "cases" / "questions.jsonl")
    wrong = differences(cases, home_of(shared_dir / "cases" / "household.toml"))
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(cases), "\n".join(wrong)


def test_at_least_95_percent_of_the_second_set_have_every_field_right():
    cases = rows(DATA / "questions_own.jsonl")
    assert len(cases) >= 300
    wrong = differences(cases, HOME)
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(cases), "\n".join(wrong)


@pytest.mark.parametrize(
    "name", ["en", "de", "es", "en2", "de2", "es2", "en3", "en4", "en5", "en6", "de3", "es3", "de4", "es4"]
)
def test_questions_written_before_any_rule_saw_them_are_read_and_no_danger_is_missed(name):
    # First sight, before the rules were mended: en 92 of 122, de 27 of 40, es 28 of 40; after a first
    # round of mending, a second set of each: en2 35 of 60, de2 24 of 25, es2 22 of 25; after the next, by another
    # hand: en3 111 of 140, then en4 127 and en5 134 of 140, en6 144 of 150 (DECISIONS).
    # Later sets of both other languages, first sight: de3 80 of 100, es3 77; after mending, de4 80 of 100, es4 75.
    cases = rows(DATA / f"questions_unseen_{name}.jsonl")
    wrong = differences(cases, HOME)
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(cases), "\n".join(wrong)
    dangerous = [case for case in cases if case["answer_class"] == "conservative"]
    assert [case["text"] for case in dangerous if ask(case["text"]).answer_class != "conservative"] == []


@pytest.mark.parametrize(
    ("then", "pets", "window"),
    [
        ("and today?", ["peanut"], "TODAY"),
        ("And Luna?", ["luna"], "YESTERDAY"),
        ("what about Max today", ["max"], "TODAY"),
    ],
)
def test_a_day_or_a_pet_alone_asks_the_same_of_it(then, pets, window):
    before = ask("How much did Peanut eat yesterday?")
    read = frame_json(ask(then, earlier=before))
    assert (read["intent"], read["metric"], read["pets"]) == ("quantity", "intake", pets)
    assert read["window"] in {window, None} if then == "And Luna?" else read["window"] == window


def test_which_day_stands_highest_is_declined_and_a_month_is_that_month():
    assert frame_json(ask("On which day did Max scratch the most?"))["intent"] == "out_of_scope"
    assert frame_json(ask("When did Max last scratch?"))["intent"] == "event_when"
    assert frame_json(ask("How much did Max eat in June?"))["window"] == "2026-06-01/2026-06-30"
    assert frame_json(ask("Max may eat less in the evening"))["window"] != "2026-05-01/2026-05-31"
    assert frame_json(ask("What happened last weekend?"))["window"] == "2026-07-11/2026-07-12"


def test_what_the_owner_did_and_what_is_held_against_date_no_question():
    assert frame_json(ask("Max is itching again and I gave him flea drops last month. Why?"))["window"] is None
    assert frame_json(ask("Why is Max scratching more than he did a few weeks ago?"))["window"] is None
    assert frame_json(ask("Why was Max scratching more than usual this week?"))["window"] == "P7D"
    assert frame_json(ask("Why does Max scratch all day long now?"))["window"] == "NOW"


def test_a_follow_up_of_another_day_carries_on_what_was_asked():
    before = ask("How much did Peanut eat today?")
    read = frame_json(ask("and how much yesterday?", earlier=before))
    assert (read["intent"], read["metric"], read["pets"]) == ("quantity", "intake", ["peanut"])
    assert read["window"] == "YESTERDAY"


def test_a_coffee_table_is_furniture_and_the_coffee_on_it_is_not():
    assert ask("Peanut ate the raisins on the coffee table").subjects == ("tox:grape",)
    assert ask("Max drank the coffee on the coffee table").subjects == ("tox:caffeine",)


def test_one_food_against_another_is_before_and_after_in_no_direction():
    read = ask("Did Max scratch less on Harbor than on Acme?")
    assert (read.intent, read.metric, read.direction) == ("compare_periods", "scratch", None)
    assert read.window_label == "AROUND:food_change"


def test_every_way_to_ask_of_a_kind_is_read_as_that_kind():
    wrong, kind, read = [], ("", "", ""), 0
    for line in (DATA / "questions_kinds_en.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            intent, metric, direction = line.removeprefix("= ").split()
            kind = (intent, metric, direction)
        elif not line.startswith("#"):
            found = ask(line)
            read += 1
            if (found.intent, str(found.metric), str(found.direction)) != kind:
                wrong.append(f"{line!r}: {found.intent} {found.metric} {found.direction}, not {' '.join(kind)}")
    assert read >= 1000
    assert len(wrong) <= (1 - LEAST_RIGHT) * read, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "before", "intent", "metric"),
    [
        ("when did that start?", "Why is Max scratching more this week?", "onset", "scratch"),
        ("why?", "Is Luna eating less?", "explain_change", "intake"),
        ("why is that", "Is Luna eating less?", "explain_change", "intake"),
        ("is that normal?", "How long did Luna sleep yesterday?", "normal_check", "rest"),
    ],
)
def test_what_a_follow_up_leaves_unsaid_is_what_was_measured_before(text, before, intent, metric):
    read = ask(text, earlier=ask(before))
    assert (read.intent, read.metric, read.pets) == (intent, metric, ask(before).pets)


def test_a_follow_up_with_a_subject_of_its_own_stands_alone():
    read = ask("Is that chicken in Acme?", earlier=ask("Why is Max scratching more this week?"))
    assert (read.intent, read.metric) == ("ingredient_lookup", None)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("wieso schuettelt max den kopf", "wieso schüttelt Max den Kopf"),
        ("duerfen hunde kaese", "Dürfen Hunde Käse"),
        ("when'd max start scratching", "when did max start scratching"),
        ("woran liegts dass luna weniger frisst", "woran liegt es dass Luna weniger frisst"),
    ],
)
def test_two_spellings_of_one_word_are_read_alike(text, same):
    one, other = (frame_json(ask(words)) for words in (text, same))
    assert {**one, "text": ""} == {**other, "text": ""}


def test_no_rule_of_the_list_is_dead_or_named_twice():
    assert len({rule.name for rule in RULES}) == len(RULES)
    texts = [row["text"] for row in rows(DATA / "questions_own.jsonl")] + [
        "Can you order more food?", "How did the scratching begin after the new kibble?", "Does Apoquel make dogs tired?",
        "Is Max scratching less since he takes Apoquel?", "When did we switch Max to Acme?", "Is Luna eating well?",
        "How much sleep is normal for a cat?", "Luna isn't drinking", "Is Max ok?", "Max", "When did Max last get a shot?",
        "Can Max swim?", "When does Bella need her thyroid pill?", "Did Luna get any treats today?", "Compare Luna and Max",
        "Is Acme upsetting Max's stomach?", "What's the average weight of a chihuahua?", "Has Max improved?",
        "Did the scratching begin after the new kibble?", "What about Max's Apoquel?", "Is chicken in Harbor Whitefish?", "Harbor Whitefish, what?", "Harbor Whitefish chicken?", "Do you have Max's weight?",
        "Should I give Bella her thyroid pill now?", "When did we last buy Acme?", "Did we buy anything new in June?",
        "Is Luna still normal?", "Peanut's weight?", "Who is our vet?", "What's the number of the emergency clinic?",
        "When is Max's birthday?", "How old is Max?", "What breed is Max?", "Is Luna spayed?", "Is Luna a boy or a girl?",
        "Which devices does Max wear?", "Which devices does Max have?", "Does Max get dry or wet food?",
        "Which food does Max get?", "How long was the visitor here?", "Did we have a visitor last week?",
        "How many pets do I have?", "Is Max in pain?", "Is Max happy?", "Does Luna get any grain?",
        "Luna isn't eating", "What about Max's increased scratching?", "Tell me about Max",
        "Max has been sleeping",
        "When did we change food?", "Is Luna hungry?", "How much should Max eat?", "What's the matter with Max?",
        "Compare this week with last week", "On which day did Max scratch the most?",
    ]  # fmt: skip
    fired = {ask(text).rule for text in texts}
    assert {rule.name for rule in RULES} - fired <= RARE


RARE = {"normal_host", "contents_of", "begun_after", "med_record"}
"""Lines that catch what the lines before let pass; each is met in use, none in these texts."""


def test_the_frame_has_the_fields_of_the_cases_and_no_other():
    assert list(frame_json(ask("Is Max eating less?"))) == ["text", *FIELDS]


# --- two real cats --------------------------------------------------------------------------

CATS = Household(
    zones=(ZonePeriod("America/Los_Angeles", 0),),
    country="US",
    pets=(Pet("joule", "Joule", "cat"), Pet("pascal", "Pascal", "cat")),
    devices=(
        Device("feeder-joule", "food_bowl", "feeder-joule"),
        Device("feeder-pascal", "food_bowl", "feeder-pascal"),
    ),
    bindings=(
        Binding("feeder-joule", frozenset({"joule"}), 0),
        Binding("feeder-pascal", frozenset({"pascal"}), 0),
    ),
)


@pytest.mark.parametrize(
    ("text", "intent", "pets", "direction", "window"),
    [
        ("How much did Joule eat on July 3?", "quantity", ("joule",), None, "2026-07-03"),
        ("How much did Pascal eat on July 2?", "quantity", ("pascal",), None, "2026-07-02"),
        ("Is Pascal eating more than usual this week?", "trend", ("pascal",), "up", "P7D"),
        ("Who ate more last week?", "compare_pets", ("joule", "pascal"), None, "PREV_WEEK"),
    ],
)
def test_questions_about_the_two_cats(text, intent, pets, direction, window):
    read = ask(text, CATS)
    assert (read.intent, read.pets, read.metric, read.direction, read.window_label) == (
        intent, pets, "intake", direction, window,
    )  # fmt: skip
    assert read.answer_class == "MEASURED"


# --- names ----------------------------------------------------------------------------------

WORDY = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=tuple(
        Pet(name.lower(), name, species)
        for name, species in (
            ("Abby", "cat"), ("Biscuit", "dog"), ("Coco", "dog"), ("Gabby", "cat"), ("Ginger", "cat"), ("Happy", "dog"),
            ("Honey", "cat"), ("June", "dog"), ("Lily", "dog"), ("Lucky", "dog"), ("Max", "dog"), ("May", "dog"),
            ("Olive", "cat"), ("Peanut", "dog"), ("Spot", "dog"),
        )
    ),
)  # fmt: skip


@pytest.mark.parametrize("pet", WORDY.pets, ids=lambda pet: pet.name)
def test_a_name_that_is_a_word_is_the_pet_in_a_pets_place(pet):
    for text in (f"Did {pet.name} eat?", f"did {pet.name.lower()} eat", f"Is {pet.name} eating less this week?"):
        read = ask(text, WORDY)
        assert (read.pets, read.metric, read.safety) == ((pet.id,), "intake", None), text


@pytest.mark.parametrize(
    ("text", "pets", "subjects", "conservative"),
    [
        ("Did Max eat the lily?", ("max",), ("tox:lily",), True),
        ("Did Max eat lily?", ("max",), ("tox:lily",), True),
        ("Lily ate a lily", ("lily",), ("tox:lily",), True),
        ("Is lily toxic to Max?", ("max",), ("tox:lily",), True),
        ("Did Lilly eat?", ("lily",), (), False),
        ("Can Max have ginger?", ("max",), ("food:ginger",), False),
        ("Can Ginger have honey?", ("ginger",), ("food:honey",), False),
        ("Is coco ok for Max?", ("max",), ("food:coconut",), False),
        ("Can Olive have an olive?", ("olive",), ("food:olive",), False),
        ("Can Peanut have peanut butter?", ("peanut",), ("food:peanut_butter",), False),
        ("Peanut got into the raisins", ("peanut",), ("tox:grape",), True),
    ],
)
def test_a_name_that_is_a_word_is_the_thing_in_a_things_place(text, pets, subjects, conservative):
    read = ask(text, WORDY)
    assert (read.pets, read.subjects, read.answer_class == "conservative") == (pets, subjects, conservative)


def test_max_before_a_number_is_a_limit_and_no_pet():
    assert ask("food, max 10 kg", WORDY).pets != ("max",)
    assert ask("Did Max eat 10 g?", WORDY).pets == ("max",)


@pytest.mark.parametrize("written", ["Bella's", "Bella\u2019s", "BELLA'S", "bellas"])
def test_the_kennel_is_a_place_after_at_and_the_dog_an_owner_otherwise(written):
    at_kennel = ask(f"What did Max eat at {written}?")
    assert (at_kennel.pets, at_kennel.subjects) == (("max",), ("place:bellas",))
    assert ask(f"How much did {written} weight change?").pets == ("bella",)
    assert "place:bellas" not in ask(f"Did anybody look at {written} bowl?").subjects


def test_the_passed_over_reading_is_kept_with_its_reason():
    place = next(m for m in ask("What did Max eat at Bella's?").mentions if m.kind == "place")
    assert [target for target, _ in place.rejected] == ["bella"]


def test_a_word_is_never_corrected_between_two_names():
    assert ask("Did Abby eat?", WORDY).pets == ("abby",)
    assert ask("Did Gabby eat?", WORDY).pets == ("gabby",)
    assert ask("Did Abby eat?", WORDY).corrections == ()


def test_a_correction_is_said():
    read = ask("How much did Maxx eat yesterdy?")
    assert (read.pets, read.window_label) == (("max",), "YESTERDAY")
    assert read.corrections == (("maxx", "max"), ("yesterdy", "yesterday"))


@pytest.mark.parametrize("word", ["beef", "beet", "rape", "vine", "walter", "nick", "barley", "oily", "coco"])
def test_everyday_words_one_edit_from_another_are_left_alone(word):
    assert ask(f"Is {word} ok?").corrections == ()


def test_a_pronoun_takes_the_last_pet_else_the_owner_is_asked():
    assert ask("Did he eat today?", last_pet="max").pets == ("max",)
    asked = ask("Did he eat today?")
    assert (asked.pets, asked.answer_class) == (("?",), "clarify")
    assert asked.candidates == ("bella", "luna", "max", "peanut")


def test_a_home_with_one_pet_needs_no_name():
    home = Household(zones=CATS.zones, pets=CATS.pets[:1], devices=CATS.devices[:1], bindings=CATS.bindings[:1])
    assert ask("Why the drop in appetite?", home).pets == ("joule",)


def test_names_from_the_knowledge_room_are_read():
    extra = (Alias("quagga protein", Reading("ing", "ing:quagga")),)
    assert ask("Does Acme contain quagga protein?", extra=extra).subjects == ("food:acme_chicken", "ing:quagga")


def test_the_device_that_would_know_is_named():
    assert ask("How much did Luna drink today?").answer_class == "no_data:water_bowl"
    assert ask("Is Bella scratching more?").answer_class == "no_data:tracker"
    assert ask("Which pets scratched more than usual this week?").answer_class == "partial:tracker"


# --- bad input ------------------------------------------------------------------------------

STRANGE = (
    "", "   ", "\n\t", "?", "😀😀😀", "مرحبا كيف حال الكلب", "שלום", "猫はどこですか", "\u200b\u200d\ufeff", "\x00\x01\x02",
    "(" * 1000, "x" * 100_000, "Max " * 25_000, "🐶" * 100_000, "\u202eMax\u202c?", "e\u0301" * 300, "1" * 499, "." * 400,
)  # fmt: skip


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_what_cannot_be_read_is_out_of_scope_and_never_an_error(text):
    read = ask(text)
    assert (read.intent, read.answer_class) in {("out_of_scope", "refuse"), ("overview", "MEASURED")}
    assert len(read.text) <= CAP


def test_a_text_over_the_cap_still_shows_its_danger():
    read = ask("Max ate chocolate. " + "He was at the park before. " * 60)
    assert (read.intent, read.answer_class, read.subjects) == ("exposure", "conservative", ("tox:chocolate",))


VOCABULARY = [
    "why",
    "did",
    "max",
    "luna",
    "bella's",
    "eat",
    "more",
    "less",
    "lily",
    "since",
    "july",
    "3",
    "5",
    "-",
    "?",
    "at",
]


@pytest.mark.parametrize(
    ("text", "intent", "metric", "subjects"),
    [
        ("The groomer asks when Max had his last flea treatment. What do I tell her?", "event_when", None,
         ("med:flea_treatment",)),
        ("I can't remember when I last treated Max against fleas, can you?", "event_when", None, ("med:flea_treatment",)),
        ("Please look up the last deworming on record for Max.", "event_when", None, ("med:wormer",)),
        ("How long has it been since Max got something for fleas?", "event_when", None, ("med:flea_treatment",)),
        ("The people at the kennel ask when Max was last treated against worms. When was it?", "event_when", None,
         ("med:wormer",)),
        ("The vet wants to know when Max's itching got worse. Which day was that?", "onset", "scratch", ()),
        ("The vet's receptionist asks for Max's body weight. What do I say?", "quantity", "weight", ()),
        ("Last time on the scales, what did Max come to?", "quantity", "weight", ()),
        ("When did Max move to Harbor?", "onset", None, ("food:harbor_fish",)),
        ("Hey, what's in the vet report for Max?", "record_lookup", None, ("src:vet",)),
        ("Max has been itching like mad this week. Where does that come from?", "explain_change", "scratch", ()),
        ("Do they use salmon to make Harbor?", "ingredient_lookup", None, ("food:harbor_fish", "ing:salmon")),
        ("Is there beef in Max's bowl these days?", "ingredient_lookup", None, ("ing:beef",)),
        ("My partner did the feeding yesterday, so what did Max actually eat?", "quantity", "intake", ()),
        ("Could the rabies booster have slowed Max down?", "cause_check", "activity", ("med:vaccine",)),
    ],
)  # fmt: skip
def test_what_others_ask_and_what_is_told_before_the_question_are_read(text, intent, metric, subjects):
    read = ask(text)
    assert (read.intent, read.metric, read.subjects) == (intent, metric, subjects)
    assert "max" in read.pets or "Max" not in text


def test_the_last_day_of_the_calendar_is_read():
    assert ask("How much did Max eat on 9999-12-31?").window is None


@settings(max_examples=150)
@given(st.text(max_size=200))
def test_any_text_gives_a_question(text):
    read = ask(text)
    assert read.intent
    assert read.answer_class
    for mention in read.mentions:
        assert read.text[mention.start : mention.end] == mention.text


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from(VOCABULARY),
        max_size=14,
    )
)
def test_any_order_of_known_words_gives_a_question(words):
    read = ask(" ".join(words))
    assert read.intent
    if read.window is not None:
        assert read.window.interval.start_ms < read.window.interval.end_ms <= NOW_MS


PRINT_FRAMES = """
import json, sys
sys.path.insert(0, {folder!r})
from tests.question_home import DATA, HOME, NOW_MS, rows
from gateway.ask.question import frame_json, read_question
from gateway.dialogue import Question
for row in rows(DATA / "questions_own.jsonl")[::4]:
    read = read_question(row["text"], household=HOME, now_ms=NOW_MS)
    print(json.dumps(frame_json(read)), read.rule, read.mentions, read.unmatched, read.corrections)
"""


def test_frames_are_the_same_bytes_under_any_hash_seed_locale_and_process_zone():
    def printed(seed: str, zone: str, locale: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "PYTHONIOENCODING": "utf-8"}
        program = PRINT_FRAMES.format(folder=str(Path(__file__).resolve().parents[1]))
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        return run.stdout

    first = printed("0", "UTC", "C")
    assert json.loads(first.splitlines()[0].decode().split("} ")[0] + "}")
    assert printed("1", "Asia/Tokyo", "C.UTF-8") == first
    assert printed("4711", "America/Los_Angeles", "POSIX") == first


def test_the_new_food_of_nobody_named_is_that_of_every_pet_that_was_changed():
    foods = (
        Food("acme", "Acme", pets=frozenset({"max"}), first_date="2026-07-05"),
        Food("coast", "Coast", pets=frozenset({"luna"}), first_date="2026-05-01", last_date="2026-07-06"),
        Food("harbor", "Harbor", pets=frozenset({"max"}), first_date="2026-05-01", last_date="2026-07-05"),
        Food("meadow", "Meadow", pets=frozenset({"luna"}), first_date="2026-07-06"),
    )
    home = replace(HOME, foods=foods)
    assert _foods_of("Is there chicken in the new food?", home) == {"food:acme", "food:meadow"}
    assert _foods_of("Is there chicken in the old food?", home) == {"food:coast", "food:harbor"}
    assert _foods_of("Ist im neuen Futter Huhn drin?", home) == {"food:acme", "food:meadow"}
    assert _foods_of("Is there chicken in Max's new food?", home) == {"food:acme"}
    only_max = replace(HOME, foods=(*foods[:1], foods[2], replace(foods[1], last_date=None)))
    assert _foods_of("Is there chicken in the new food?", only_max) == {"food:acme"}


def _foods_of(text: str, home: Household) -> set[str]:
    read = read_question(text, household=home, now_ms=NOW_MS)
    return {subject for subject in read.subjects if subject.startswith("food:")}
