"""Field report 13: a battery that falls to its end is told, one that only says 0 is not."""

from __future__ import annotations

import pytest

from firmware_bridge import wire
from gateway.ask.battery import battery_at
from gateway.commands import run_command
from gateway.learn import watch_floors
from gateway.links.payloads import read_payload
from gateway.measure.battery import BatteryReading, believed_level, low_battery
from gateway.model import RawFrame
from gateway.web.notices import notice_cards
from gateway.web.views import device_page
from tests.learn_home import DAY, HOUR, LUNA, MAX, MINUTE, ONTOLOGY, at, home, opened, store

FIRST = at("2026-07-06", 8)


def beats(device: str, levels, *, every_ms: int = 15 * MINUTE, each: int = 1, charging=(), first_ms: int = FIRST):
    """Each of these levels (permille) told ``each`` times."""
    told = [level for level in levels for _ in range(each)]
    readings = []
    for seq, level in enumerate(told, start=1):
        uptime = HOUR + (seq - 1) * every_ms
        record = wire.pack_record(wire.BEAT, uptime, (level, 2, int(level in charging)))
        payload = wire.pack_message(1, seq, [record], uptime, first_ms + uptime - HOUR)
        readings.append(read_payload(RawFrame("mqtt", device, first_ms + uptime - HOUR, payload)))
    return readings, first_ms + (len(told) - 1) * every_ms


def told_of(tmp_path, *said, pets=(LUNA,), shared=False):
    """The battery notices at the last beat, and the open database."""
    database = opened(tmp_path / "home.db", *pets, shared=shared)
    now_ms = 0
    for readings, last_ms in said:
        store(database, readings)
        now_ms = max(now_ms, last_ms)
    with database.transaction() as tx:
        watch_floors(tx, ONTOLOGY, now_ms=now_ms)
    return database, now_ms


def standing(database):
    with database.snapshot() as reader:
        return [notice for notice in reader.floor_notices(open_only=True) if notice.kind == "battery"]


def test_zero_with_live_signal_for_three_days_is_unknown_and_no_alarm(tmp_path):
    database, now_ms = told_of(tmp_path, beats("tracker-luna", [0], each=3 * 96))
    with database:
        assert standing(database) == []
        with database.snapshot() as reader:
            battery = battery_at(reader, "tracker-luna", at_ms=now_ms)
            assert battery is not None
            assert battery.permille is None
            page = device_page(reader, "tracker-luna", now_ms=now_ms)
            assert page is not None
            assert page.line.battery == "battery not known"


def test_a_fall_from_four_to_zero_is_told_with_the_device_and_the_day_it_will_be_empty(tmp_path):
    database, _ = told_of(tmp_path, beats("tracker-luna", [40, 30, 20], each=96))
    with database:
        (notice,) = standing(database)
        assert (notice.device, notice.urgency, notice.since_ms) == ("tracker-luna", "amber", FIRST)
        assert notice.text == (
            "The battery of Luna's tracker is down to 2 %, from 4 % on Jul 6. At the pace it fell it will be empty "
            "about Jul 10. Charge it or change it: when it stops, nothing of Luna is recorded there."
        )
        assert [ref.kind for ref in notice.refs] == ["event", "event"]
        readings, last_ms = beats("tracker-luna", [40, 30, 20, 10, 0], each=96)
        store(database, readings)
        with database.transaction() as tx:
            watch_floors(tx, ONTOLOGY, now_ms=last_ms)
        (again,) = standing(database)
        assert (again.id, again.answer) == (notice.id, None)  # unanswered it is one notice, and it stands
        with database.snapshot() as reader:
            battery = battery_at(reader, "tracker-luna", at_ms=last_ms)
        assert battery is not None
        assert battery.permille == 0


def test_a_low_battery_that_was_seen_is_told_again_at_half_of_it_and_ends_with_a_charge(tmp_path):
    database, now_ms = told_of(tmp_path, beats("tracker-luna", [40, 30], each=8))
    with database:

        def later(levels, **said):
            readings, last_ms = beats("tracker-luna", levels, each=8, **said)
            store(database, readings)
            with database.transaction() as tx:
                watch_floors(tx, ONTOLOGY, now_ms=last_ms)
            return standing(database), last_ms

        (notice,) = standing(database)
        with database.transaction() as tx:
            run_command(tx, "answer_notice", {"notice": notice.id, "answer": "seen"}, now_ms=now_ms)
        with database.snapshot() as reader:
            (card,) = notice_cards(reader, home(LUNA))
        assert (card.phones, card.answers, card.answered is not None) == ((), (), True)
        ((same,), _) = later([40, 30, 20])
        assert (same.id, same.answer) == (notice.id, "seen")
        ((again,), _) = later([40, 30, 20, 10])
        assert again.answer is None
        assert again.text.startswith("The battery of Luna's tracker is down to 1 %")
        (none, _) = later([40, 30, 20, 10, 120], charging=(120,))
        assert none == []


def test_an_answer_about_one_device_quiets_no_other(tmp_path):
    database, now_ms = told_of(tmp_path, beats("tracker-luna", [40, 30], each=8), beats("bowl-luna", [50, 45], each=8))
    with database:
        about = {notice.device: notice for notice in standing(database)}
        assert set(about) == {"tracker-luna", "bowl-luna"}
        with database.transaction() as tx:
            run_command(tx, "answer_notice", {"notice": about["bowl-luna"].id, "answer": "seen"}, now_ms=now_ms)
            watch_floors(tx, ONTOLOGY, now_ms=now_ms)
        assert {notice.device: notice.answer for notice in standing(database)} == {
            "tracker-luna": None,
            "bowl-luna": "seen",
        }


def test_a_shared_device_is_told_of_once(tmp_path):
    database, _ = told_of(tmp_path, beats("bowl", [40, 30], each=8), pets=(LUNA, MAX), shared=True)
    with database:
        assert [(notice.pet, notice.device) for notice in standing(database)] == [("luna", "bowl")]


def run(*levels, every_ms=DAY, charging=()):
    return tuple(BatteryReading(n * every_ms, level, n in charging) for n, level in enumerate(levels))


@pytest.mark.parametrize(
    ("levels", "believed"),
    [((930, 0), None), ((0, 0, 0), None), ((60, 0), 0), ((0, 930), 930), ((930, 0, 920, 0), None), ((20, 10, 0), 0)],
)
def test_a_zero_is_believed_only_at_the_end_of_a_fall(levels, believed):
    assert believed_level(run(*levels)) == believed


@pytest.mark.parametrize(
    "readings",
    [
        run(930, 30, 920, 910),  # one wild reading
        run(30, 20, 0, 900, 890),  # a new cell
        run(40, 30, 20, charging=(2,)),  # on its charger
        run(300, 200, 100),  # falling, not low
        (),
    ],
)
def test_what_is_no_battery_at_its_end_is_not_told(readings):
    assert low_battery(readings) is None


def test_no_day_is_named_where_the_steps_kept_no_one_pace():
    even = low_battery(run(50, 40, 30, 20))
    assert even is not None
    assert even.empty_ms == (5 * DAY, 5 * DAY)
    uneven = (*run(50, 40, 30), BatteryReading(9 * DAY, 20, False))
    assert (told := low_battery(uneven)) is not None
    assert told.empty_ms is None
    stuck = (*run(50, 40, 30), BatteryReading(30 * DAY, 30, False))  # by its pace it was empty weeks ago
    assert (told := low_battery(stuck)) is not None
    assert told.empty_ms is None
