"""Devices under faults, the firmware's own outbox in them, and a hub's real store behind them.

What a device took is known to the record and to the millisecond; whatever is lost, doubled,
overtaken or restarted on the way, the store must hold exactly that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from pathlib import Path
from random import Random

import pytest

from device_sim.faults import (
    Air,
    Battery,
    FaultyDevice,
    Radio,
    WallClock,
    hub_down,
    in_step,
    overwritten,
    records_nothing,
)
from device_sim.household import SimDevice, Taken, build_world
from device_sim.story import Gap, Outage, load_story
from firmware_bridge import wire
from firmware_bridge.flash import FileSlots
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.pack import Marks
from gateway.links.ingest import store_readings
from gateway.links.payloads import read_payload
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, RawFrame, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = 1_783_555_200_000
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("tracker-max", "tracker", "collar"),),
    bindings=(Binding("tracker-max", frozenset({"max"}), 0),),
)
ROLLUPS = Rollups(load())
MOTION = (300_000, 4_000, 0, 100_000, 0, 0, 200_000, 0, 300_000)


def taken(hours: int) -> tuple[Taken, ...]:
    """A motion record every five minutes and a beat every fifteen."""
    found = []
    for at in range(1, hours * 12 + 1):
        at_ms = T0 + at * 5 * MINUTE
        found.append(Taken(at_ms, wire.MOTION, MOTION))
        if at % 3 == 0:
            found.append(Taken(at_ms, wire.BEAT, (900, 1, 0)))
    return tuple(found)


class Flash:
    """A ring in a file: each boot opens it anew."""

    def __init__(self, path: Path) -> None:
        self._path, self._slots = str(path), None

    def __call__(self, boot: int) -> Outbox:
        self.close()
        self._slots = FileSlots(self._path, 300, 99)
        return Outbox(self._slots, boot)

    def close(self) -> None:
        if self._slots is not None:
            self._slots.close()


class Hub:
    """The real store behind two ways through the air; its marks may get lost as well."""

    def __init__(self, database: Database, device: FaultyDevice, down: Air) -> None:
        self.database, self.device, self.down = database, device, down
        self.counted: dict[str, int] = {}

    def hear(self, at_ms: int, payload: bytes) -> None:
        reading = read_payload(RawFrame("mqtt", "tracker-max", at_ms, payload))
        with self.database.transaction() as tx:
            outcome = store_readings(tx, (reading,), rollups=ROLLUPS)
        for name, count in outcome.counted.items():
            self.counted[name] = self.counted.get(name, 0) + count
        self.down.send(wire.pack_mark(outcome.marks["tracker-max"]), at_ms)

    def answer(self, at_ms: int) -> None:
        for arrived_ms, payload in self.down.arrived(at_ms):
            self.device.hear(Marks(payload), arrived_ms)


def lived(folder: Path, device: FaultyDevice, radio: Radio, *, seed: int, hours: int) -> Hub:
    """The device's hours through bad air, then good air until it is drained."""
    database = Database(folder / "hub.db")
    with database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    hub = Hub(database, device, Air(radio, Random(f"{seed}/down")))
    up = Air(radio, Random(f"{seed}/up"))
    end_ms = T0 + hours * HOUR
    for at_ms in range(T0 + MINUTE, end_ms + 1, MINUTE):
        in_step(device, [at_ms], up, hub.hear)
        hub.answer(at_ms)
    clear, hub.down = Air(Radio(), Random(0)), Air(Radio(), Random(0))
    for at_ms in range(end_ms + 10_000, end_ms + 40 * 10_000, 10_000):
        in_step(device, [at_ms], clear, hub.hear)
        hub.answer(at_ms)
        for arrived_ms, payload in up.arrived(at_ms):
            hub.hear(arrived_ms, payload)
    return hub


def stored(hub: Hub) -> dict[tuple[int, int], tuple[int, int]]:
    """(boot, seq) -> (instant it was made, latest - earliest)."""
    with hub.database.snapshot() as reader:
        rows = reader.frames(("tracker-max",), start_ms=-(2**60), end_ms=2**60)
    assert len({(row.boot, row.seq) for row in rows}) == len(rows)
    return {
        (row.boot, row.seq): (row.end_ms, 0 if row.latest_ms is None else row.latest_ms - (row.earliest_ms or 0))
        for row in rows
    }


RADIO = Radio(lost=0.2, doubled=0.2, late=0.4, late_ms=10 * MINUTE)


@pytest.mark.parametrize("skew_ppm", [-60.0, 60.0])
def test_loss_copies_reordering_restarts_and_skew_lose_nothing_and_double_nothing(tmp_path, skew_ppm):
    ring = Flash(tmp_path / "ring")
    device = FaultyDevice(
        taken(4),
        T0,
        ring,
        restarts_ms=(T0 + HOUR + 1, T0 + HOUR + 20_000, T0 + 3 * HOUR + 70_000),
        skew_ppm=skew_ppm,
    )
    hub = lived(tmp_path, device, RADIO, seed=1, hours=4)
    ring.close()
    assert device.ring.held == 0
    found = stored(hub)
    assert set(found) == set(device.truth)
    assert device.boot == 4
    assert hub.counted["records_known"] > 0, "copies came"
    for key, (at_ms, width_ms) in found.items():
        if not width_ms:
            assert abs(at_ms - device.truth[key]) < 12_000, key  # the least delayed message of six hours dates them
    hub.database.close()


def test_a_ring_in_memory_loses_with_a_restart_only_what_was_not_marked_and_the_mark_goes_on(tmp_path):
    device = FaultyDevice(taken(3), T0, lambda boot: Outbox(RamSlots(300, 99), boot), restarts_ms=(T0 + 2 * HOUR + 1,))
    hub = lived(tmp_path, device, RADIO, seed=2, hours=3)
    found = stored(hub)
    gone = set(device.truth) - set(found)
    assert set(found) <= set(device.truth)
    assert all(boot == 1 for boot, _ in gone)
    assert len(gone) < 20
    assert {key for key in device.truth if key[0] == 2} <= set(found)
    hub.database.close()


def test_a_clock_30_minutes_behind_that_is_set_right_is_put_right_in_the_store(tmp_path):
    """Field report 6, by a device and not by hand."""
    wall = WallClock(((T0, -30 * MINUTE), (T0 + 42 * MINUTE, 0)))
    device = FaultyDevice(taken(2), T0, lambda boot: Outbox(RamSlots(300, 99), boot), wall=wall)
    hub = lived(tmp_path, device, Radio(), seed=3, hours=2)
    found = stored(hub)
    assert set(found) == set(device.truth)
    assert max(abs(at_ms - device.truth[key]) for key, (at_ms, _) in found.items()) <= 1_000
    assert hub.counted["records_redated"] > 0
    hub.database.close()


def test_a_flat_battery_is_silence_and_the_charge_is_told_until_then(tmp_path):
    battery = Battery(T0, 2 * HOUR, charged_ms=(T0 + 3 * HOUR,))
    device = FaultyDevice(taken(4), T0, lambda boot: Outbox(RamSlots(300, 99), boot), battery=battery)
    hub = lived(tmp_path, device, Radio(), seed=4, hours=4)
    assert set(stored(hub)) == set(device.truth)
    with hub.database.snapshot() as reader:
        rows = reader.frames(("tracker-max",), start_ms=-(2**60), end_ms=2**60)
    assert not [row for row in rows if T0 + 2 * HOUR <= row.start_ms < T0 + 3 * HOUR - 5 * MINUTE]
    assert device.missed == 12 + 4
    assert device.boot == 2
    told = [row.amount for row in rows if row.kind == "beat"]
    assert told == [875, 750, 625, 500, 375, 250, 125, 1000, 875, 750, 625, 500]
    hub.database.close()


def test_the_same_seed_gives_the_same_faults_and_another_other_ones():
    def flown(seed: int) -> list[tuple[int, bytes]]:
        air = Air(RADIO, Random(seed))
        for at in range(200):
            air.send(bytes((at,)), at * 1_000)
        return list(air.arrived(10**9))

    assert flown(1) == flown(1) != flown(2)
    arrived = [payload[0] for _, payload in flown(1)]
    assert arrived != sorted(arrived), "some are overtaken"
    assert 120 < len(set(arrived)) < 190
    assert len(arrived) > len(set(arrived))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match="shares must lie in 0 to 1"):
        Radio(lost=share)


def test_a_meal_begun_before_a_restart_begins_with_the_boot():
    meal = Taken(T0 + 10 * MINUTE, wire.MEAL, (5 * MINUTE, 4 * MINUTE, 30_000, 0))
    device = FaultyDevice((meal,), T0, lambda boot: Outbox(RamSlots(8, 99), boot), restarts_ms=(T0 + 7 * MINUTE,))
    device.take_until(T0 + HOUR)
    run = device.ring.take(0)
    message = wire.unpack_message(wire.pack_head(run.boot, run.first_seq, run.count) + run.body)
    assert message.records[-1].values == (0, 3 * MINUTE, 30_000, 0)


# --- of a story -----------------------------------------------------------------------------


def test_an_outage_leaves_a_ring_its_newest_records():
    story = replace(load_story("hard_floor"), outage=Outage(-2, -1, 4))
    from_ms = story.instant(-2, time())
    records = tuple(Taken(from_ms + at * HOUR, wire.BEAT, (900, 2, 0)) for at in range(1, 30))
    gone = overwritten(story, records, 10)
    assert len(gone) == 24 - 8
    assert gone == records[:16]
    assert hub_down(story, from_ms + 1)
    assert not hub_down(story, from_ms)


def test_a_gap_silences_the_device_it_names():
    story = load_story("food_switch")
    gaps = (Gap("subject", "food_bowl", -5, -4), Gap("subject", "tracker", -5, -4))
    quiet = replace(story, gaps=gaps)
    world = build_world(quiet)
    for device, kind in (("food_bowl", wire.MEAL), ("tracker", wire.MOTION)):
        assert records_nothing(quiet, quiet.pet("subject"), device, -5)
        named: SimDevice = next(one for one in world.devices if one.kind == device and "subject" in one.pets)
        days = [(-7, -5), (-5, -3), (-3, -1)]
        counts = []
        for first, last in days:
            from_ms, to_ms = story.instant(first, time()), story.instant(last, time())
            counts.append(sum(one.kind == kind and from_ms < one.at_ms <= to_ms for one in named.taken))
        assert counts[0] > 0
        assert counts[1] == 0
        assert counts[2] > 0
