"""When last, and how often: answered from the rows of devices, in words a person would use."""

from __future__ import annotations

import json

import pytest

from gateway.ask.ask import ask
from gateway.ask.wording import counted, done
from gateway.links.profileread import read_profile
from gateway.links.profileset import ProfileSet
from gateway.measure.days import instant_of
from gateway.model import Binding, Device, Household, Pet, Series, ZonePeriod
from gateway.store.database import Database
from tests.learn_home import save_days
from tests.profiled import ALL, hear, mqtt

ZONES = (ZonePeriod("America/New_York", 0),)
MINUTE, HOUR = 60_000, 3_600_000
EVENING = instant_of("2026-07-22", 19 * 60, ZONES).at_ms
FOUNTAIN = """
id = "fountain"
version = 1
name = "Fountain"
device_kind = "water_bowl"
transport = "mqtt"
codec = "json"
replay = "live"
match = { topics = ["tele/{node}/SENSOR"] }
source = { id = "{topic.node}" }

[[event]]
kind = "meal"
values = { removed = { from = "Drunk.Today", unit = "g", counter = "day" } }
"""
PROFILES = ProfileSet([read_profile(FOUNTAIN, source="fountain.toml"), *ALL.profiles])


@pytest.fixture
def home(tmp_path):
    with Database(tmp_path / "home.db") as database:
        with database.transaction() as tx:
            tx.save_household(
                Household(
                    zones=ZONES,
                    pets=(Pet("luna", "Luna", "cat"), Pet("milo", "Milo", "cat"), Pet("max", "Max", "dog")),
                    devices=(
                        Device("petkit-hall", "litter_box", "hall box"),
                        Device("petkit-attic", "litter_box", "attic"),
                        Device("fountain", "water_bowl", "fountain"),
                    ),
                    bindings=(
                        Binding("petkit-hall", frozenset({"luna"}), 0, EVENING + HOUR),
                        Binding("petkit-hall", frozenset({"milo"}), EVENING + HOUR),
                        Binding("petkit-attic", frozenset({"luna", "milo"}), 0),
                        Binding("fountain", frozenset({"max"}), 0),
                    ),
                ),
                valid_from_ms=0,
            )
        yield database


def visit(minute: int, *, used: bool = True, box: str = "hall"):
    at_s = EVENING // 1000 + minute * 60
    content = {"time_in": at_s, "time_out": at_s + 40, "is_shit": int(used)}
    told = {"event_type": "10", "event_id": f"4_1_{at_s}", "content": content}
    return mqtt(f"petkit/{box}/event", json.dumps(told).encode(), at_s * 1000 + MINUTE)


def drunk(today_ml: int, minute: int):
    return mqtt("tele/fountain/SENSOR", json.dumps({"Drunk": {"Today": today_ml}}).encode(), EVENING + minute * MINUTE)


def answer(database, question: str, minute: int = 50):
    with database.snapshot() as reader:
        return ask(question, reader, now_ms=EVENING + minute * MINUTE)


def said(found) -> list[str]:
    """Every sentence of an answer without sources, in its order."""
    return [notice.text for notice in found.notices]


@pytest.mark.parametrize(
    "question",
    [
        "When was Luna last in the litter box?",
        "When did Luna last use the litter box?",
        "When did Luna last pee?",
    ],
)
def test_when_a_cat_was_last_in_its_litter_box_is_told_from_the_row(home, question):
    hear(home, visit(0), visit(20, used=False))
    found = answer(home, question)
    (claim,) = found.claims
    assert claim.text == "The last visit to the litter box was on Jul 22, 19:20, 40 s, not used"
    assert [ref.kind for ref in claim.refs] == ["event"]
    assert "A visit is recorded, not what was left there" in said(found)


def test_a_visit_to_a_shared_box_is_said_to_be_of_either(home):
    hear(home, visit(0, box="attic"))
    assert "That litter box is shared, so whose visit it was is not known" in said(
        answer(home, "When did Milo last use the litter box?")
    )


def test_a_box_that_changed_hands_answers_for_whom_it_served_then(home):
    hear(home, visit(0), visit(90))
    (claim,) = answer(home, "When did Luna last use the litter box?", minute=120).claims
    assert claim.text == "The last visit to the litter box was on Jul 22, 19:00, 40 s"


def test_a_pet_without_such_a_device_is_told_which_would_know(home):
    texts = said(answer(home, "When did Max last use the litter box?"))
    assert texts == ["No visit to the litter box is recorded", "A litter box sensor would record it"]


def test_nothing_at_a_device_that_was_heard_is_no_proof(home):
    texts = said(answer(home, "When did Max last drink?"))
    assert texts == [
        "No visit to the water bowl is recorded",
        "That doesn't prove there was none",
        "Next: check the water bowl's battery and place",
    ]


def test_when_a_pet_last_drank_is_told_from_a_fountains_day_counter(home):
    hear(home, drunk(100, 0), drunk(145, 10), profiles=PROFILES)
    (claim,) = answer(home, "When did Max last drink?").claims
    assert claim.text == "The last visit to the water bowl was on Jul 22, 19:10, 45 g"


def test_when_a_pet_was_last_weighed_is_told_from_the_box_that_weighed_it(home):
    content = {"pet_weight": 4210, "mark": EVENING // 1000}
    told = {"event_type": "9", "event_id": "w", "content": content}
    hear(home, mqtt("petkit/hall/event", json.dumps(told).encode(), EVENING + MINUTE))
    (claim,) = answer(home, "When was Luna last weighed?").claims
    assert claim.text == "Luna weighed 4.21 kg on Jul 22, 19:00"


@pytest.mark.parametrize(("visits", "words"), [(1, "once"), (2, "twice"), (3, "3 times")])
def test_how_often_is_said_in_times_and_once(home, visits, words):
    hear(home, *(visit(10 * n) for n in range(visits)))
    found = answer(home, "How often did Luna use the litter box today?")
    assert [claim.text for claim in found.claims] == [f"Luna used the litter box {words} today (Jul 22) by 19:50"]


def test_a_verb_that_names_what_is_counted_says_it_once():
    assert done("had meals", "meals", 3) == "had 3 meals"
    assert done("was given portions", "portions", 1) == "was given 1 portion"
    assert counted("meals", 0) == "0 meals"


def test_a_day_that_was_not_heard_is_named_once(home):
    hear(home, visit(0))
    texts = " ".join(said(answer(home, "How often was Luna in the litter box this week?")))
    assert "Not heard enough on Jul 16, Jul 17, Jul 18 and Jul 19 and 2 more" in texts


def test_what_is_kept_as_sums_is_told_by_the_quarter_of_an_hour(home):
    with home.transaction() as tx:
        tx.save_household(
            Household(
                zones=ZONES,
                devices=(Device("tracker-max", "tracker", "collar"),),
                bindings=(Binding("tracker-max", frozenset({"max"}), 0),),
            ),
            valid_from_ms=0,
        )
    save_days(home, Series("max.scratching", "max", "scratch", "ms"), "2026-07-22", [96_000.0])
    found = answer(home, "When did Max last scratch?", minute=50)
    assert [claim.text for claim in found.claims] == ["Scratching is last recorded Jul 22, 19:45 to 19:50: 1 s"]
    assert [ref.text for claim in found.claims for ref in claim.refs] == ["day:max.scratching/2026-07-22"]
