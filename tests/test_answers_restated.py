"""A verdict word that late records changed is told to whoever asked."""

from __future__ import annotations

import asyncio
from html import unescape

import httpx2
import numpy as np
import pytest

from gateway.app import Gateway
from gateway.ask.figures import compare_window
from gateway.ask.restated import told_verdicts, verdict_now
from gateway.ask.scene import Scene
from gateway.config import Config
from gateway.links.clock import SteppedClock
from gateway.links.ingest import store_readings
from gateway.model import Interval, Window
from gateway.web import LOOPBACK_HOSTS
from gateway.web.notices import changed_words, said_of
from gateway.web.services import Services
from tests.learn_home import DAY, HOUR, LUNA, ROLLUPS, at, bowl_says, home, noisy, opened, save_days, series_of, store
from tests.web_home import served

FIRST, ASKED = "2026-07-07", at("2026-07-14", 0, 30)
MEAL_HOURS = (7, 12, 18, 22)
LATER = ASKED + 6 * HOUR


def meals() -> tuple[int, ...]:
    return tuple(at(f"2026-07-{day:02d}", hour) for day in range(7, 14) for hour in MEAL_HOURS)


def heard(*, all_of_it: bool):
    """What the bowl said in the window; the evening meals' messages are late, unless all of it is asked for."""
    said = bowl_says("bowl-luna", at(FIRST, 0), ASKED - 20 * 60_000, meals=meals())
    evening = {at(f"2026-07-{day:02d}", hour) for day in range(7, 14) for hour in MEAL_HOURS[2:]}
    is_late = [reading.raw.received_ms - 60_000 in evening for reading in said]
    return [reading for reading, late in zip(said, is_late, strict=True) if late == all_of_it]


@pytest.fixture
def database(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as ready:
        usual = np.maximum(noisy(3, 56, level=160_000), 1.0)
        save_days(ready, series_of(LUNA, "intake"), "2026-05-12", usual)
        store(ready, heard(all_of_it=False))
        yield ready


def arrives_late(tx):
    """The evening meals reach the hub hours after the question, from the same ring."""
    late = [
        type(reading)(
            type(reading.raw)("mqtt", "bowl-luna", LATER - HOUR, reading.raw.payload),
            reading.header,
            reading.frames,
            reading.letters,
        )
        for reading in heard(all_of_it=True)
    ]
    store_readings(tx, tuple(late), rollups=ROLLUPS)


@pytest.fixture
async def hub(database):
    clock = SteppedClock(ASKED)
    gateway = Gateway(Config(), clock, database)
    yield gateway, clock
    gateway.writer.close()


async def asked_and_told_down(gateway):
    number, answer = await asyncio.to_thread(gateway.ask, "Did Luna eat less this week than usual?")
    (told,) = [verdict for verdict in told_verdicts(answer) if verdict.series == "luna.intake"]
    assert told.word == "down"
    return number, told


async def test_whoever_asked_is_told_the_word_that_late_records_changed(hub, database):
    gateway, clock = hub
    number, _ = await asked_and_told_down(gateway)
    await gateway.learn_now()
    with database.snapshot() as reader:
        assert reader.changed_verdicts() == ()
    clock.advance(LATER - ASKED)
    await gateway.writer.run(arrives_late)
    await gateway.learn_now()
    with database.snapshot() as reader:
        (changed,) = reader.changed_verdicts(answer=number)
        assert (changed.word, changed.now_word, changed.late, changed.changed_ms) == ("down", "usual", 14, LATER)
        (sentence,) = changed_words(reader, number)
        assert sentence.endswith('on Jul 14 you were told "down"; with 14 late records it is "as usual".')
        said = said_of(reader, home(LUNA), LUNA, now_ms=LATER)
        assert (sentence, f"/answer/{number}") in {(one.text, one.href) for one in said}
        assert said_of(reader, home(LUNA), LUNA, now_ms=LATER + 8 * DAY) == ()
    services = Services(
        snapshot=database.snapshot,
        ask=gateway.ask,
        now_ms=clock.now_ms,
        command=gateway.command,
        banner=lambda: None,
        version="0",
        token_file=None,
        hosts=LOOPBACK_HOSTS,
    )
    with served(services) as address:
        shown = unescape((await asyncio.to_thread(httpx2.get, f"{address}/answer/{number}")).text)
    assert sentence in shown


async def test_a_word_that_stands_as_told_is_no_news_and_neither_is_one_that_came_back(hub, database):
    gateway, clock = hub
    number, told = await asked_and_told_down(gateway)
    clock.advance(LATER - ASKED)
    await gateway.writer.run(arrives_late)
    with database.transaction() as tx:
        (due,) = [verdict for verdict in tx.due_verdicts(most=99) if verdict.series == told.series]
        assert verdict_now(tx, due) == "usual"
        tx.settle_verdict(due, "usual", late=14, at_ms=LATER)
        assert len(tx.changed_verdicts(answer=number)) == 1
        tx.settle_verdict(due, "down", late=14, at_ms=LATER)
        assert tx.changed_verdicts(answer=number) == ()
        assert due not in tx.due_verdicts(most=99)


async def test_a_record_of_today_or_of_another_pet_asks_for_no_new_comparison(hub, database):
    gateway, clock = hub
    await asked_and_told_down(gateway)
    clock.advance(8 * HOUR)
    now = bowl_says("bowl-luna", ASKED, ASKED + 7 * HOUR, boot=2, meals=(ASKED + HOUR,))
    await gateway.writer.run(lambda tx: store_readings(tx, tuple(now), rollups=ROLLUPS))
    with database.transaction() as tx:
        assert tx.due_verdicts(most=9) == ()
        tx.note_verdicts_due([("max.intake", "2026-07-10", 0)])
        assert tx.due_verdicts(most=9) == ()


async def test_the_same_rows_say_again_what_was_told(hub, database):
    """The comparison made again is the one that was made, the open day included."""
    gateway, clock = hub
    clock.advance(13 * HOUR)
    today = bowl_says("bowl-luna", ASKED, ASKED + 24 * HOUR, boot=2, meals=(ASKED + HOUR, ASKED + 20 * HOUR))
    until_now = tuple(reading for reading in today if reading.raw.received_ms <= clock.now_ms())
    await gateway.writer.run(lambda tx: store_readings(tx, until_now, rollups=ROLLUPS))
    number, told = await asked_and_told_down(gateway)
    with database.snapshot() as reader:
        scene = Scene.at(reader, told.told_ms)
        window = Window("P7D", Interval(at(told.first_date, 0), told.until_ms), told.first_date, told.last_date)
        before = compare_window(scene, LUNA, scene.ontology.properties["intake"], window)
    await gateway.writer.run(lambda tx: store_readings(tx, tuple(today), rollups=ROLLUPS))
    with database.snapshot() as reader:
        after = compare_window(Scene.at(reader, told.told_ms), LUNA, scene.ontology.properties["intake"], window)
    assert before is not None
    assert after is not None
    assert after.measured.comparison == before.measured.comparison
    assert number == 1


async def test_a_record_that_comes_between_the_reading_and_the_keeping_of_an_answer_is_a_late_one(hub, database):
    """The answer was read, the late records were stored, the answer was kept: nobody was told of them."""
    gateway, clock = hub
    clock.advance(LATER - ASKED)
    save = gateway._in_writer

    def after_a_late_batch(write):
        save(arrives_late)
        return save(write)

    gateway._in_writer = after_a_late_batch
    number, told = await asked_and_told_down(gateway)
    with database.transaction() as tx:
        (due,) = [verdict for verdict in tx.due_verdicts(most=99) if verdict.series == told.series]
    assert verdict_now_in(database, due) == "usual"
    await gateway.learn_now()
    with database.snapshot() as reader:
        assert [changed.now_word for changed in reader.changed_verdicts(answer=number)] == ["usual"]


def verdict_now_in(database, told):
    with database.snapshot() as reader:
        return verdict_now(reader, told)
