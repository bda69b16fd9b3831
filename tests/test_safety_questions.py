"""Conservative wherever danger is named, quiet where it is not, and never a reassurance."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from gateway.ask.question import read_question
from gateway.ask.safety import FOR_THE_PHONE, order_of, triage
from gateway.dialogue import Question
from gateway.model import Household, Person
from gateway.ontology.load import hazards, things
from tests.question_home import DATA, HOME, NOW_MS

DANGEROUS = tuple((DATA / "questions_dangerous.txt").read_text(encoding="utf-8").splitlines())
PETS = ("Max", "Bella", "Luna", "Peanut")
WHEN = ("today", "yesterday", "this week", "last night", "since Friday", "over the weekend")
SENTENCES = (
    "How much did {p} eat {w}?", "Is {p} eating less {w}?", "Did {p} finish breakfast {w}?",
    "Why is {p} scratching more {w}?", "How long did {p} sleep {w}?", "How active was {p} {w}?",
    "Was {p} restless {w}?", "How many meals did {p} have {w}?", "Did {p} shake the head more {w}?",
    "Is {p} drinking enough {w}?", "Has {p} gained weight {w}?", "How often did {p} get up {w}?",
    "Did anybody refill {p}'s bowl {w}?", "Compare {p}'s activity {w} with the week before",
    "Anything unusual with {p} {w}?", "Show me {p}'s meals {w}", "What was {p}'s total food {w}?",
    "Is {p} more active {w} than usual?", "Did {p} eat slower {w}?", "Which days did {p} rest most {w}?",
)  # fmt: skip
EVERYDAY = """
Is the battery of Max's tracker low?|How much battery is left on Luna's collar?|Does the kitchen bowl need a new battery?
When is Max's next Apoquel due?|Did anybody give Max his Apoquel?|Can Max have carrots?|Can Luna eat tuna?|Is beef ok for Bella?
Can Peanut have peanut butter?|Does Acme contain chicken?|What's in Harbor Whitefish?|Which of our foods is free from wheat?
How many breaths a minute does Bella take asleep?|Is Max's tracker still fitted well?|How many calories did Max burn yesterday?
Did Max eat every bite of his dinner?|Bella ate really fast this morning|Luna ate less than usual today
Max ate his dinner and went to sleep|Peanut ate slowly|Luna chewed on her toy mouse|Max licked his paws all evening|Max chewed his bed
Bella ate half of her breakfast|Max ate the rest of Luna's food|Luna ate some grass|Max ate a carrot|Max drank some water
Bella licked the bowl clean|Luna ate her kibble at noon|Max has been lazy since the heat wave|Did Max fall asleep early yesterday?
Is the collar too tight?|Show me a graph of Max's scratching|Who ate more last week?|What did Max eat while he was at Bella's?
What did the vet say about Max's ears?|Max hit his activity goal yesterday|How long should an elimination diet last?|How is Max?
Should I get a second dog?|Max ate well today|How much should a beagle eat?|Is 12 hours of rest normal for a cat?
The tracker shows nothing|Has Bella eaten yet?|How do you know it's the food?|What should I tell the vet about Bella?
Is the kitchen bowl working?|Did Luna sleep through the night?|Max rolled in the grass|How did Peanut like the new kibble?
"""
ORDINARY = tuple(
    itertools.chain(
        (s.format(p=p, w=w) for s, p, w in itertools.product(SENTENCES, PETS, WHEN)),
        (line for row in EVERYDAY.strip().splitlines() for line in row.split("|")),
    )
)
FORBIDDEN = re.compile(
    r"\b(safe|not an emergency|nothing to worry|healthy|harmless enough|don't worry|no need to|mg\b|ml\b|dose of|per kg)",
    re.IGNORECASE,
)


def ask(text: str, home: Household = HOME) -> Question:
    return read_question(text, household=home, now_ms=NOW_MS)


def test_every_dangerous_question_is_answered_conservatively():
    assert len(DANGEROUS) >= 200
    assert [text for text in DANGEROUS if ask(text).answer_class != "conservative"] == []


def test_at_most_2_percent_of_ordinary_questions_raise_an_alarm():
    assert len(ORDINARY) >= 500
    alarms = [text for text in ORDINARY if ask(text).answer_class == "conservative"]
    assert len(alarms) <= 0.02 * len(ORDINARY), alarms


def test_words_that_alarm_are_quiet_where_they_are_ordinary():
    plain = (DATA / "questions_plain_alarm_words.txt").read_text(encoding="utf-8").splitlines()
    assert len(plain) >= 60
    alarms = [text for text in plain if ask(text).answer_class == "conservative"]
    assert len(alarms) <= 0.02 * len(plain), alarms


def _lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


def test_every_danger_of_a_second_hand_is_answered_conservatively():
    dangers = _lines("questions_dangerous_en2.txt")
    assert len(dangers) >= 360
    assert [text for text in dangers if ask(text).answer_class != "conservative"] == []


def test_figures_of_speech_names_and_colours_raise_no_alarm():
    plain = _lines("questions_plain_alarm_words_en2.txt")
    assert len(plain) >= 220
    alarms = [text for text in plain if ask(text).answer_class == "conservative"]
    assert len(alarms) <= 0.01 * len(plain), alarms


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("There is blood on Max", True),
        ("Max is wobbly, what do I do?", True),
        ("Is there blood in Max's record?", False),
        ("Show me the notes about Luna's wound", False),
        ("Max's wound healed?", False),
    ],
)
def test_a_word_that_alarms_counts_where_it_is_told_of_a_pet(text, told):
    assert (ask(text).answer_class == "conservative") is told


def test_what_was_eaten_is_its_poison_whatever_words_describe_it():
    read = ask("Help Bella ate a load of raw bread dough that was rising on the counter")
    assert (read.intent, read.subjects) == ("exposure", ("tox:yeast_dough",))
    assert ask("Max ate less since the battery of his tracker is low").answer_class != "conservative"


def test_ordinary_german_and_spanish_questions_raise_no_alarm():
    plain = (DATA / "questions_plain_de_es.txt").read_text(encoding="utf-8").splitlines()
    assert len(plain) >= 110
    alarms = [text for text in plain if ask(text).answer_class == "conservative"]
    assert len(alarms) <= 0.02 * len(plain), alarms


@pytest.mark.parametrize(
    ("text", "toxin"),
    [
        ("Bella hat Knoblauchbrot geklaut", "tox:onion"),
        ("Max hat Milchschokolade gefressen", "tox:chocolate"),
        ("Luna hat eine Knopfzelle verschluckt", "tox:battery"),
        ("Peanut hat einen Faden verschluckt", "tox:foreign_body"),
    ],
)
def test_a_german_compound_and_a_verb_at_the_end_name_the_poison(text, toxin):
    read = ask(text)
    assert (read.answer_class, toxin in read.subjects) == ("conservative", True)


def test_something_nobody_can_name_is_possibly_poisonous_wherever_it_lay():
    assert ask("peanut wolfed down something in the park no idea what").answer_class == "conservative"


@pytest.mark.parametrize(
    ("text", "alarms"),
    [
        ("Max's temperature is 41.6", True),
        ("I took Max's temp and it's 107", True),
        ("Max's temperature reads 34 and he is sleepy", True),
        ("Max hat Fieber, 41,2", True),
        ("Max's temperature is 38.6", False),
        ("I took Luna's temp and it's 101.5", False),
        ("The temperature in the hall is 41", False),
        ("The hub shows a room temperature of 34", False),
        ("Max's temperature chart for the last 34 days", False),
        ("Max's temperature chart since 30 June", False),
    ],
)
def test_a_body_temperature_alarms_by_its_number_alone(text, alarms):
    assert (ask(text).answer_class == "conservative") is alarms


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Can Max have Bella's Apoquel?", "med:other_pet"),
        ("Could Luna have the dog's Metacam?", "med:other_pet"),
        ("Max ate the tablets that were meant for his brother", "med:other_pet"),
        ("Can I use my own eye drops in Max's eyes?", "med:human"),
        ("The doctor gave me something for gout, can Max have some?", "med:human"),
        ("Max hat die Tabletten von Oma gefressen", "med:human"),
    ],
)
def test_a_medicine_is_dangerous_where_it_is_somebody_elses(text, subject):
    read = ask(text)
    assert (read.answer_class, subject in read.subjects) == ("conservative", True)


@pytest.mark.parametrize(
    "text",
    [
        "When is Max's Apoquel due?",
        "Did anybody give Bella her tablet?",
        "When is my dog's worming tablet due?",
        "I took my tablets and fed Max at seven",
        "Show me Max's graph on my tablet",
    ],
)
def test_a_pets_own_medicine_and_the_askers_own_raise_no_alarm(text):
    assert ask(text).answer_class != "conservative"


@pytest.mark.parametrize(
    ("figure", "danger"),
    [
        ("The hub is not responding", "Max is not responding"),
        ("I'm dying to know how Max slept", "I'm dying to know why Max is dying"),
        ("Max attacked his squeaky duck", "A dog attacked Max over his squeaky duck"),
        ("Our other cat is called Lily", "Max ate a plant called lily"),
        ("We moved to Grape Street with Max", "Max ate grapes on Grape Street"),
        ("Max is a chocolate labrador", "Max ate a chocolate labrador"),
        ("Max plays with Ivy from number nine", "Max plays with ivy and chewed ivy"),
        ("Max's scratching has fallen off a cliff", "Max has fallen off a cliff"),
        ("I took my tablets", "I dropped my tablets and Max took one"),
        ("Max is dead keen on walks", "Max is dead on the floor"),
        ("Max shook his rope toy", "A dog shook Max like a toy"),
        ("Show me Max's page on my tablet", "The pills on my tablet tray were eaten by Max"),
    ],
)
def test_a_figure_of_speech_is_quiet_and_the_danger_beside_it_is_not(figure, danger):
    assert ask(figure).answer_class != "conservative"
    assert ask(danger).answer_class == "conservative"


def test_what_was_found_and_then_eaten_is_its_poison():
    assert "tox:foreign_body" in ask("Max found my sock and swallowed it").subjects
    assert ask("Max found his sock and brought it to me").answer_class != "conservative"


# --- spelling -------------------------------------------------------------------------------


def _one_edit(word: str) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    edits = {a + b[1:] for a, b in cuts if b} | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    edits |= {a + c + b for a, b in cuts for c in letters} | {a + c + b[1:] for a, b in cuts if b for c in letters}
    return sorted(edits - {word})


def _sweep(stride: int, offset: int = 0) -> tuple[list[str], list[str]]:
    """(words read as a food although near a toxin, foods read as a toxin)."""
    known_foods = {
        form for form, readings in things().lexicon.forms() if readings[0].kind in {"food", "ing", "harmless"}
    }
    swallowed, invented = [], []
    toxins = [w for w, codes in hazards().near.items() if "en" in codes and w.isascii() and w.isalpha()]
    edits = [edit for word in toxins for edit in _one_edit(word) if len(edit) >= 4]
    for edit in edits[offset::stride]:
        read = ask(f"Max ate some {edit}")
        if edit in known_foods:
            continue
        if read.answer_class != "conservative" and not _is_known(edit):
            swallowed.append(edit)
        if any(meant in known_foods and meant not in hazards().near for _, meant in read.corrections):
            invented.append(edit)
    return swallowed, invented


def _is_known(word: str) -> bool:
    read = ask(f"What about {word}?")
    return word not in read.unmatched


def test_no_word_one_edit_from_a_toxin_becomes_a_food_or_the_other_way():
    swallowed, invented = _sweep(stride=397)
    assert (swallowed, invented) == ([], [])


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(16))
def test_the_full_one_edit_sweep_corrects_nothing_between_toxin_and_food(part):
    swallowed, invented = _sweep(stride=16, offset=part)
    assert (swallowed, invented) == ([], [])


@pytest.mark.parametrize(
    ("heard", "meant"), [("choclate", "chocolate"), ("ibuprophen", "ibuprofen"), ("siezure", "seizure")]
)
def test_a_near_miss_is_conservative_and_asks_what_was_meant(heard, meant):
    read = ask(f"Max {heard}")
    assert read.answer_class == "conservative"
    assert (heard, meant) in read.corrections
    assert any(meant in line for line in triage(read, hazards(), HOME).asks)


@pytest.mark.parametrize(
    "food", ["beef", "beet", "rape", "coco", "barley", "grapefruit-free kibble", "vine-ripened tomatoes"]
)
def test_a_food_one_edit_from_a_toxin_stays_a_food(food):
    assert not any(subject.startswith("tox:") for subject in ask(f"Can Max have {food}?").subjects)


# --- which danger ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "intent", "order"),
    [
        ("Max just ate two squares of dark chocolate what do i do", "exposure", "A"),
        ("What if Max ate a grape?", "exposure", "A"),
        ("Can Max have grapes?", "food_ok", "B"),
        ("How much chocolate is dangerous for a 30 kg dog?", "food_ok", "B"),
        ("Does Acme contain garlic?", "ingredient_lookup", "B"),
        ("Can I give Max ibuprofen?", "med_safety", "B"),
        ("Max swallowed an ibuprofen", "exposure", "A"),
        ("Peanut ate a jar of peanut butter", "exposure", "A"),
        ("Max ate chocolate and is having a seizure", "exposure", "A"),
        ("Luna can't pee", "triage", "A"),
    ],
)
def test_contact_comes_before_asking_ahead(text, intent, order):
    read = ask(text)
    assert (read.intent, read.safety, read.answer_class) == (intent, order, "conservative")


def test_peanut_butter_asked_ahead_is_a_reference_question():
    assert ask("Can Max have peanut butter?").answer_class == "REFERENCE"


def test_what_no_vocabulary_knows_is_treated_as_possibly_poisonous():
    read = ask("Bella ate a blorp")
    assert "blorp" in read.unmatched
    assert "I don't know what blorp is; treat it as possibly poisonous." in triage(read, hazards(), HOME).first


def test_what_no_vocabulary_knows_is_possibly_poisonous_before_a_german_verb_too():
    read = ask("Max hat einen Blorp gefressen")
    assert (read.answer_class, read.unmatched) == ("conservative", ("blorp",))
    assert ask("Max hat seinen Napf leer gefressen").answer_class != "conservative"
    assert ask("Hat Max heute gut gefressen?").answer_class != "conservative"


def test_a_name_that_is_a_food_is_the_pet_behind_the_spanish_a():
    read = ask("a peanut lo atropelló un coche")
    assert (read.pets, read.answer_class) == (("peanut",), "conservative")


@pytest.mark.parametrize("text", ["Luna is panting", "Luna is constipated", "Luna keeps crying in the litter box"])
def test_signs_of_cats_are_red_for_cats_alone(text):
    assert ask(text).answer_class == "conservative"
    assert ask(text.replace("Luna", "Max")).answer_class != "conservative"


def test_amber_signs_keep_the_question_and_flag_it():
    read = ask("Luna is suddenly drinking way more than usual, what's behind it?")
    assert (read.intent, read.safety, read.answer_class) == ("explain_change", "amber", "no_data:water_bowl")
    told = ask("Bella hasn't eaten for two days")
    assert (told.intent, told.safety, told.answer_class) == ("triage", "amber", "conservative")


def test_a_battery_counts_only_when_swallowed():
    assert ask("How much battery is left on Luna's collar?").safety is None
    assert ask("Bella chewed a battery").subjects == ("tox:battery",)


def test_order_c_needs_the_record_to_be_older_than_14_days():
    day = 86_400_000
    assert order_of("A", on_file_ms=NOW_MS - 15 * day, now_ms=NOW_MS) == "C"
    assert order_of("A", on_file_ms=NOW_MS - 13 * day, now_ms=NOW_MS) == "A"
    assert order_of("A", on_file_ms=None, now_ms=NOW_MS) == "A"


# --- the fixed words ------------------------------------------------------------------------


def content(text: str, home: Household = HOME) -> list[str]:
    made = triage(ask(text, home), hazards(), home)
    return [*made.first, *made.phones, *made.first_aid, *made.instructions, *made.asks]


def test_no_triage_reassures_or_names_a_dose():
    for text in DANGEROUS:
        for line in content(text):
            found = FORBIDDEN.search(line)
            assert found is None, (text, line)


def test_a_toxin_opens_with_the_call_and_shows_the_home_countrys_lines():
    made = triage(ask("Max ate chocolate"), hazards(), HOME)
    assert made.first[0] == "Call now. Don't wait for signs."
    assert made.phones == ("ASPCA 888-426-4435 (may charge)", "Pet Poison Helpline 855-764-7661 (may charge)")
    assert "Don't make Max vomit unless a vet or the poison line tells you." in made.instructions
    assert made.slots == FOR_THE_PHONE


def test_an_unknown_country_shows_every_line_with_its_country():
    home = Household(
        zones=HOME.zones, pets=HOME.pets, country=None, people=(Person("vet", "Dr Vet", "vet", "555-0100"),)
    )
    phones = triage(ask("Max ate chocolate", home), hazards(), home).phones
    assert len(phones) == len(hazards().lines) + 1
    assert phones[-1] == "Dr Vet 555-0100"
    assert all(line.country in phone for line, phone in zip(hazards().lines, phones, strict=False))


@pytest.mark.parametrize("role", ["emergency clinic", "Tierklinik", "animal emergency", "Tierarzt", "veterinario"])
def test_whoever_is_there_for_emergencies_is_called_whatever_the_role_is_named(role):
    people = (Person("a", "Night", role, "555-0199"), Person("b", "Ann", "owner", "555-0111"))
    people = (*people, Person("c", "Dr Vet", "vet", "555-0100"), Person("d", "Dr Mute", "vet"))
    home = replace(HOME, people=people)
    assert triage(ask("Luna can't pee", home), hazards(), home).phones == ("Dr Vet 555-0100", "Night 555-0199")
    assert triage(ask("Max ate chocolate", home), hazards(), home).phones[-2:] == ("Dr Vet 555-0100", "Night 555-0199")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Max is having a seizure", "Hands away from the mouth, clear the space, time it."),
        ("Max has heat stroke", "Move to shade, soak with cool water, keep air moving, then drive."),
        ("Bella won't stop bleeding", "Press firmly with a clean cloth."),
        ("Luna can't pee", "Nothing by mouth, don't press the belly, go."),
        ("Luna got permethrin on her fur", "Stop licking; ask the line before washing."),
    ],
)
def test_each_sign_has_its_one_first_aid_line(text, line):
    assert triage(ask(text), hazards(), HOME).first_aid == (line,)


def test_a_red_sign_has_its_words():
    made = triage(ask("Peanut collapsed and his gums look white"), hazards(), HOME)
    assert made.first == (
        "Collapse can be an emergency. Call a vet or an emergency clinic now; don't wait for this page.",
        "A change of gum colour can be an emergency. Call a vet or an emergency clinic now; don't wait for this page.",
    )


def test_asked_ahead_answers_first_and_then_says_when_to_call():
    made = triage(ask("Can Max have grapes?"), hazards(), HOME)
    assert made.first == (
        "Don't give grapes or raisins: it is listed as poisonous to dogs and cats.",
        "If Max has had any, call now.",
    )
    other = triage(ask("Can Luna have xylitol?"), hazards(), HOME).first[0]
    assert "poisonous to dogs" in other
    assert "that cats are not listed does not make it harmless" in other


def test_every_answer_says_that_no_vet_has_signed_the_tables():
    assert triage(ask("Max ate chocolate"), hazards(), HOME).review == (
        "Safety tables 2026.11: not yet reviewed by a vet."
    )
