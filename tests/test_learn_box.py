"""The litter box's floor, from a real box's messages to the notice an owner reads."""

from __future__ import annotations

import json

import pytest

from gateway.learn import watch_floors
from gateway.measure.days import instant_of
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.ontology.load import load
from gateway.store import Database
from tests.profiled import hear, mqtt

ZONES = (ZonePeriod("America/New_York", 0),)
MINUTE = 60_000
EVENING = instant_of("2026-07-22", 19 * 60, ZONES).at_ms


@pytest.fixture
def home(tmp_path):
    with Database(tmp_path / "home.db") as database:
        with database.transaction() as tx:
            tx.save_household(
                Household(
                    zones=ZONES,
                    pets=(Pet("luna", "Luna", "cat"), Pet("milo", "Milo", "cat")),
                    devices=(
                        Device("petkit-hall", "litter_box", "hall box"),
                        Device("petkit-attic", "litter_box", "attic"),
                        Device("plaf203-af01", "feeder", "feeder"),
                    ),
                    bindings=(
                        Binding("plaf203-af01", frozenset({"luna"}), 0),
                        Binding("petkit-hall", frozenset({"luna"}), 0),
                        Binding("petkit-attic", frozenset({"luna", "milo"}), 0),
                    ),
                ),
                valid_from_ms=0,
            )
        yield database


def visit(minute: int, *, used: bool, box: str = "hall"):
    at_s = (EVENING + minute * MINUTE) // 1000
    told = {
        "event_type": "10",
        "event_id": f"4_1_{at_s}",
        "content": {"time_in": at_s, "time_out": at_s + 40, "is_shit": int(used)},
    }
    return mqtt(f"petkit/{box}/event", json.dumps(told).encode(), at_s * 1000 + 60_000)


def told(database, minute: int):
    with database.transaction() as tx:
        watch_floors(tx, load(), now_ms=EVENING + minute * MINUTE)
        return tx.floor_notices(open_only=True)


def test_three_unused_visits_call_for_a_vet_with_each_visit_as_a_source(home):
    hear(home, visit(0, used=True), visit(10, used=False), visit(40, used=False))
    assert told(home, 60) == ()
    hear(home, visit(70, used=False))
    (notice,) = told(home, 72)
    assert (notice.pet, notice.kind, notice.urgency) == ("luna", "box_unused", "red")
    assert notice.text == (
        "Luna: 3 visits to the litter box from Jul 22, 19:10 to Jul 22, 20:10 and none of them used can be an "
        "emergency. Call a vet or an emergency clinic now; don't wait for this page."
    )
    with home.snapshot() as reader:
        assert [reader.frame(ref).kind for ref in notice.refs] == ["litter"] * 3


def test_a_used_visit_ends_it_and_hours_between_visits_never_begin_it(home):
    hear(home, *(visit(minute, used=False) for minute in (0, 10, 20)))
    assert len(told(home, 30)) == 1
    hear(home, visit(40, used=True))
    assert told(home, 41) == ()
    hear(home, *(visit(minute, used=False) for minute in (100, 200, 300, 400)))
    assert told(home, 401) == ()


def test_of_a_shared_box_each_cat_is_told_with_the_other_named(home):
    hear(home, *(visit(minute, used=False, box="attic") for minute in (0, 10, 20)))
    luna, milo = told(home, 30)
    assert "which may have been Milo, and none of them used" in luna.text
    assert "which may have been Luna, and none of them used" in milo.text
    hear(home, visit(40, used=True, box="attic"))
    assert told(home, 41) == ()


def test_what_was_seen_is_said_again_after_three_more(home):
    hear(home, *(visit(minute, used=False) for minute in (0, 10, 20)))
    (notice,) = told(home, 30)
    with home.transaction() as tx:
        tx.answer_floor(notice.id, answer="seen", at_ms=EVENING + 31 * MINUTE)
    hear(home, visit(40, used=False), visit(50, used=False))
    assert [one.answer for one in told(home, 51)] == ["seen"]
    hear(home, visit(60, used=False))
    assert [one.answer for one in told(home, 61)] == [None]


def test_the_silence_of_a_box_that_speaks_at_visits_alone_says_nothing(home):
    hear(home, visit(0, used=True))
    assert told(home, 26 * 60) == ()


def test_a_feeder_of_portions_is_no_bowl_that_nobody_ate_from(home):
    told_ms = EVENING + MINUTE
    end = {"cmd": "GRAIN_OUTPUT_EVENT", "msgId": "a", "finished": True, "type": 2, "actualGrainNum": 1}
    end |= {"expectGrainNum": 1, "execTime": told_ms, "execStep": "GRAIN_END", "ts": told_ms}
    hear(home, mqtt("dl/PLAF203/AF01/device/event/post", json.dumps(end).encode(), told_ms))
    assert told(home, 48 * 60) == ()
    with home.snapshot() as reader:
        assert {series.property for series in reader.all_series()} == {"portions"}
