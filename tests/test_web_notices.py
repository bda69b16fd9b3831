"""What the hub says unasked, on the front page: red and amber first, with the answers, never green."""

from __future__ import annotations

import re

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from gateway.measure.days import add_days
from gateway.model import Household, Person, PetStatus, Series
from gateway.store import Database, Snapshot
from gateway.stored import FloorNotice, SourceRow
from gateway.web.headline import headline
from gateway.web.notices import notice_cards, said_of
from tests.test_web_page import CHROMIUM, FLAGS, hrefs
from tests.web_home import FOOD_SET_REF, NOW_MS, TODAY, ZONES, Home, at, fill, served

YESTERDAY = add_days(TODAY, -1)


def floor(pet: str, kind: str, urgency: str, hour: int) -> FloorNotice:
    since = at(TODAY, hour)
    return FloorNotice(
        id=f"{pet}.{kind}@{since}",
        pet=pet,
        kind=kind,
        urgency=urgency,
        basis=f"from@{since}",
        since_ms=since,
        raised_ms=since,
        text=f"The {urgency} sentence about {pet}: {kind}.",
        refs=(FOOD_SET_REF,),
        device="bowl-max" if kind == "unwatched" else None,
    )


SLOWLY = (
    "Weight: slowly down since about April (9 %, likely 7 to 11 %). No earlier year is on record, so it may be the "
    "season."
)
AMBER, RED, BLIND = (
    floor("max", "no_meal", "amber", 9),
    floor("luna", "no_meal", "red", 12),
    floor("max", "unwatched", "amber", 8),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A home with floors, a notice and a slow change."""
    path = tmp_path_factory.mktemp("notices") / "home.db"
    fill(path)
    with Database(path) as database, database.transaction() as tx:
        people = (Person("vet", "Dr. Hill", "vet", "555-0100"), Person("mom", "Ann", "owner", "555-0111"))
        tx.save_household(Household(zones=ZONES, people=people), valid_from_ms=0)
        for notice in (AMBER, RED, BLIND):
            tx.save_floor(notice)
        found = {"began": "2026-07-08", "change": 0.38}
        tx.save_finding("max.scratching", as_of=add_days(TODAY, -3), window="NOTICE", verdict="down", facts=found)
        tx.save_finding("max.scratching", as_of=YESTERDAY, window="NOTICE", verdict="up", facts=found)
        tx.save_finding("max.activity", as_of=add_days(TODAY, -9), window="NOTICE", verdict="up", facts=found)
        tx.save_series(Series("max.weight", "max", "weight", "mg"))
        slow = {"since": "2026-04-03", "change": -0.09, "interval": [-0.11, -0.07], "season_known": False, "unit": "mg"}
        tx.save_finding("max.weight", as_of=YESTERDAY, window="P180D", verdict="down", facts=slow)
    return path


@pytest.fixture
def home(told, tmp_path):
    path = tmp_path / "home.db"
    with Snapshot(told) as whole:
        whole._db.execute("COMMIT")
        whole._db.execute("PRAGMA query_only = OFF")
        whole._db.execute("VACUUM INTO ?", (str(path),))
    return Home(path)


def front(home: Home) -> str:
    with served(home.services()) as address:
        return httpx2.get(f"{address}/").text


def test_red_comes_first_then_amber_and_both_before_the_question(home):
    page = front(home)
    places = [page.index(text) for text in (RED.text, BLIND.text, AMBER.text, 'id="q"', ">Pets<")]
    assert places == sorted(places)


def test_a_floor_names_whom_to_call_and_opens_its_records(home):
    page = front(home)
    with Snapshot(home.path) as reader:
        red, blind, _ = notice_cards(reader, reader.household())
    assert red.phones == (("Dr. Hill", "555-0100", "5550100"),)
    assert blind.phones == ()  # nobody need be called because a bowl is silent
    assert 'href="tel:5550100"' in page
    with served(home.services()) as address:
        for place in hrefs(page):
            if place.startswith("/record/"):
                assert httpx2.get(f"{address}{place}").status_code == 200


@pytest.mark.parametrize("word", ["ate_elsewhere", "not_at_home", "seen"])
def test_an_answer_is_one_press_and_quiets_the_notice(home, word):
    with served(home.services()) as address:
        answer = {"notice": AMBER.id, "answer": word}
        done = httpx2.post(f"{address}/notice", data=answer)
        assert (done.status_code, done.headers["location"]) == (303, "/?saved=1")
        again = httpx2.post(f"{address}/notice", data=answer)
        assert (again.status_code, again.headers["location"]) == (303, "/")  # a second click changes nothing
        page = httpx2.get(f"{address}/").text
    assert home.heard.count(("answer_notice", answer)) == 2
    assert (AMBER.text in page) is (word == "seen")
    assert f'value="{AMBER.id}"' not in page
    if word == "seen":
        assert "You saw this" in page
        assert page.index(RED.text) < page.index(AMBER.text)


@pytest.mark.parametrize("answer", [{"old": "tracker-max"}, {"pets": "luna"}])
def test_whether_a_device_was_replaced_is_answered_on_the_page(home, answer):
    new = SourceRow("cbb8334c8850", "ruuvitag", "tracker", "cbb8334c8850", NOW_MS, NOW_MS, replaces="tracker-max")
    with Database(home.path) as database, database.transaction() as tx:
        tx.save_source(new)
    with served(home.services()) as address:
        before = httpx2.get(f"{address}/").text
        for name, value in answer.items():
            assert f'name="{name}" value="{value}"' in before
        done = httpx2.post(f"{address}/replacement", data={"device": new.id, **answer})
        assert (done.status_code, done.headers["location"]) == (303, "/?saved=1")
        again = httpx2.post(f"{address}/replacement", data={"device": "nobody", "old": "tracker-max"})
        assert (again.status_code, again.headers["location"]) == (303, "/")
        assert "Is it a replacement of it?" not in httpx2.get(f"{address}/").text
    with Snapshot(home.path) as reader:
        (source,) = [one for one in reader.sources() if one.id == new.id]
        served_by = {device.id for device in reader.household().devices}
    assert (source.device == "tracker-max") is ("old" in answer)
    assert (new.id in served_by) is ("pets" in answer)


def test_only_answers_that_make_sense_are_offered(home):
    with Snapshot(home.path) as reader:
        cards = {card.id: [word for word, _ in card.answers] for card in notice_cards(reader, reader.household())}
    assert cards[BLIND.id] == ["not_at_home", "seen"]
    assert cards[AMBER.id] == ["ate_elsewhere", "not_at_home", "seen"]


def test_no_summary_of_the_week_stands_beside_a_floor(home):
    with Snapshot(home.path) as reader:
        house = reader.household()
        texts = [headline(reader, house, house.pet(pet), now_ms=NOW_MS).text for pet in ("luna", "max")]
    assert texts == [
        f"{name}: read the notice above first. The week is not summed up beside it." for name in ("Luna", "Max")
    ]


def test_a_statistical_notice_is_a_plain_sentence_with_its_series(home):
    with Snapshot(home.path) as reader:
        house = reader.household()
        said = said_of(reader, house, house.pet("max"), now_ms=NOW_MS)
        assert said_of(reader, house, house.pet("luna"), now_ms=NOW_MS) == ()
    assert [(one.text, one.href) for one in said] == [
        ("Scratching has been above his usual since about Jul 8 (up 38 %).", "/series/max.scratching"),
        (SLOWLY, None),
    ]
    assert '<p class="said"><a href="/series/max.scratching">Scratching has been above' in front(home)


def test_of_a_pet_that_is_gone_nothing_is_noticed(home):
    with Database(home.path) as database, database.transaction() as tx:
        tx.set_status("max", PetStatus.DIED, valid_from_ms=NOW_MS)
    with Snapshot(home.path) as reader:
        house = reader.household()
        assert said_of(reader, house, house.pet("max"), now_ms=NOW_MS) == ()


def test_nothing_on_the_front_page_is_green_or_a_tick(home):
    page = front(home)
    assert not re.search("✓|✔|☑|green|healthy|all (is )?well|all clear", page, re.IGNORECASE)


def test_a_weight_has_no_drawing_to_lead_to(home):
    assert "/series/max.weight" not in front(home)


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (360, "dark"), (1100, "light")])
def test_nobody_is_shut_out_of_a_notice(home, width, scheme):
    with served(home.services()) as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        httpx2.post(f"{address}/notice", data={"notice": AMBER.id, "answer": "seen"})
        page.goto(address)
        found = [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in Axe().run(page).response["violations"]]
        wide = page.evaluate("document.documentElement.scrollWidth")
        page.get_by_role("button", name="Luna ate elsewhere").click()
        left = page.get_by_text(RED.text).count()
        chromium.close()
    assert found == []
    assert wide <= width
    assert left == 0
