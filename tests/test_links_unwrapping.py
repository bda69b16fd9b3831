"""An uptime of 32 bits that begins again at 0 within its boot gives the rows of one that was carried on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge import wire
from gateway.links.ingest import store_readings
from gateway.links.payloads import read_payload
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, RawFrame, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_783_555_200_000
TURN = 1 << 32
ROLLUPS = Rollups(load())
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("bowl-max", "food_bowl", "Max's bowl"),),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0),),
)


def life(rng: random.Random, *, days: int, wall: bool, turn: int | None) -> Iterator[tuple[int, bytes]]:
    """(received, message) of one boot: beats and meals, held back now and then for hours or a day."""

    def counted(true_ms: int) -> int:
        return true_ms if turn is None else true_ms % turn

    true_ms, seq, held, first = 30 * MINUTE, 1, [], 1
    while true_ms < days * DAY:
        if rng.random() < 0.3:
            lasted_ms = rng.randrange(MINUTE, 20 * MINUTE)
            values = (counted(true_ms - lasted_ms), lasted_ms, rng.randrange(1_000, 24_000), 0)
            held.append(wire.pack_record(wire.MEAL, counted(true_ms), values))
        else:
            held.append(wire.pack_record(wire.BEAT, counted(true_ms), (900, 2, 0)))
        seq += 1
        if rng.random() < 0.5 or len(held) > 20:
            sent_ms = true_ms + rng.choice([0, 500, 90 * MINUTE, DAY])
            told = T0 + sent_ms if wall else None
            yield T0 + sent_ms + 40, wire.pack_message(1, first, held, counted(sent_ms), told)
            held, first, true_ms = [], seq, sent_ms
        true_ms += rng.randrange(5 * MINUTE, 4 * HOUR)


def lived(path: Path, messages: list[tuple[int, bytes]], *, batch: int):
    """(rows, day rows, marks, dead letters, records known) after these messages, so many a batch."""
    with Database(path) as database:
        with database.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        for at in range(0, len(messages), batch):
            readings = tuple(
                read_payload(RawFrame("mqtt", "bowl-max", ms, raw)) for ms, raw in messages[at : at + batch]
            )
            with database.transaction() as tx:
                store_readings(tx, readings, rollups=ROLLUPS)
        with database.snapshot() as reader:
            rows = reader.frames(("bowl-max",), start_ms=-(2**60), end_ms=2**60)
            days = [(day.date, day.n, day.sums, day.covered) for day in reader.days("max.intake", "0", "9")]
            letters = [(letter.seq, letter.detail) for letter in reader.dead_letters(limit=9)]
            return rows, days, reader.marks("bowl-max"), letters, dict(reader.counters()).get("records_known", 0)


@pytest.mark.parametrize("wall", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_two_turns_within_a_boot_give_the_rows_of_a_device_that_carried_on(tmp_path, seed, wall):
    whole = list(life(random.Random(seed), days=110, wall=wall, turn=None))
    turned = list(life(random.Random(seed), days=110, wall=wall, turn=TURN))
    assert [raw for _, raw in whole] != [raw for _, raw in turned]
    assert sum(len(wire.unpack_message(raw).faults) for _, raw in turned) == 0
    expected = lived(tmp_path / "whole.db", whole, batch=3)
    assert lived(tmp_path / "turned.db", turned, batch=3) == expected
    assert expected[3] == []
    assert max(row.uptime_ms or 0 for row in expected[0]) > 2 * TURN


def test_messages_that_come_again_after_a_turn_are_known(tmp_path):
    rng = random.Random(4)
    turned = list(life(rng, days=70, wall=False, turn=TURN))
    once = lived(tmp_path / "once.db", turned, batch=5)
    last_ms = turned[-1][0]
    again = [(last_ms + 1_000, raw) for _, raw in rng.sample(turned, len(turned) // 2)]
    rows, days, marks, letters, known = lived(tmp_path / "again.db", turned + again, batch=5)
    assert (rows, days, marks, letters) == (*once[:3], [])
    assert known == sum(wire.unpack_message(raw).count for _, raw in again)


def test_a_device_that_carries_on_is_never_turned_by_what_comes_late(tmp_path):
    """A ring's oldest records, sent when the boot is 80 days old; and messages that waited at the broker."""
    rng = random.Random(5)
    whole = list(life(rng, days=80, wall=False, turn=None))
    late = [*whole[:40], *whole[60:]]
    once = lived(tmp_path / "once.db", late, batch=5)
    held = [(whole[-1][0] + 5_000, raw) for _, raw in whole[40:60]]
    rows, _, marks, letters, _ = lived(tmp_path / "late.db", late + held, batch=5)
    true_ms = {row.seq: row.end_ms - T0 for row in lived(tmp_path / "all.db", whole, batch=5)[0]}
    assert letters == []
    assert len(rows) == len(true_ms) > len(once[0])
    assert max(marks.values()) == len(rows)
    for row in rows:  # dated by the bound of what was heard: late by what 100 ppm allow, never by a turn
        assert abs(row.end_ms - T0 - true_ms[row.seq]) < 30 * MINUTE


def test_a_record_after_its_own_message_is_a_dead_letter_where_no_turn_can_have_been(tmp_path):
    record = wire.pack_record(wire.BEAT, TURN - HOUR, (900, 2, 0))
    message = wire.pack_message(1, 1, [record], HOUR, None)
    rows, _, marks, letters, _ = lived(tmp_path / "hub.db", [(T0, message), (T0 + 1, message)], batch=1)
    assert rows == ()
    assert marks == {1: 1}
    assert [seq for seq, _ in letters] == [1]


def test_a_meal_that_cannot_be_stays_a_dead_letter_also_where_a_turn_may_have_been(tmp_path):
    """Found by the fuzzing soak: its beginning, carried on, lay before the boot's."""
    early, late = (wire.pack_record(wire.BEAT, at_ms, (900, 2, 0)) for at_ms in (30 * MINUTE, 30 * DAY))
    meal = wire.pack_record(wire.MEAL, HOUR, (TURN - HOUR, MINUTE, 20_000, 0))
    told = [
        (T0 + HOUR, wire.pack_message(1, 1, [early], HOUR, None)),
        (T0 + 30 * DAY, wire.pack_message(1, 3, [late], 30 * DAY, None)),
        (T0 + 30 * DAY + 1, wire.pack_message(1, 2, [meal], HOUR, None)),
    ]
    rows, _, marks, letters, _ = lived(tmp_path / "hub.db", [*told, told[2]], batch=1)
    assert [row.seq for row in rows] == [1, 3]
    assert marks == {1: 3}
    assert [seq for seq, _ in letters] == [2]


def test_nonsense_after_its_own_message_moves_no_clock_by_a_turn(tmp_path):
    """An old message that comes late with an uptime no record of it can have: a turn would put it days ahead."""

    def message(seq: int, sent_ms: int, uptime_ms: int) -> bytes:
        return wire.pack_message(1, seq, [wire.pack_record(wire.BEAT, uptime_ms, (900, 2, 0))], sent_ms, None)

    plain = [(T0 + day * DAY, message(day, day * DAY, day * DAY)) for day in range(1, 41)]
    late = (T0 + 40 * DAY + 1, message(41, 2 * DAY, 39 * DAY))
    rows, *_ = lived(tmp_path / "plain.db", plain, batch=4)
    again, _, marks, letters, _ = lived(tmp_path / "late.db", [*plain, late], batch=4)
    assert again == rows
    assert marks == {1: 41}
    assert [seq for seq, _ in letters] == [41]
