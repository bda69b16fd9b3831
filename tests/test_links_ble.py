"""The Bluetooth link with the real bleak, its BlueZ backend talking to a small org.bluez of ours."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from firmware_bridge import wire
from gateway.ask.answer import answer_json
from gateway.ask.ask import ask
from gateway.links import advertisement, bthome
from gateway.links.ble_identity import RadioKey
from gateway.links.inbox import Delivery
from gateway.links.ingest import store_readings
from gateway.links.payloads import Reading
from gateway.links.rollups import Rollups
from gateway.model import RawFrame
from gateway.ontology.load import load
from tests.ble_home import ADDRESS, PATH, home
from tests.fake_bluez import FakeBluez, PrivateBus
from tests.radio_world import KEY, SENSOR, TrackerPeer, sealed


@pytest.fixture
def bus(tmp_path, monkeypatch):
    folder = tmp_path / "bus"
    folder.mkdir()
    with PrivateBus(folder) as private:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", private.address)
        yield private


@pytest.fixture
async def bluez(bus):
    fake = await FakeBluez(bus.address, "hci0").start()
    yield fake
    await fake.stop()


async def test_a_tracker_back_from_a_walk_hands_over_what_it_kept_and_is_marked(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(150)
        await hub.hand_over(tracker)
        assert hub.stored() == sorted((1, seq) for seq in tracker.taken)
        await hub.until(lambda: hub.counted("handovers") == 1, "one connection must have been enough")
        assert tracker.uplink.connects == 1


async def test_a_device_that_answers_late_and_a_second_walk_lose_nothing(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock, late=2)
        for walk in range(2):
            tracker.measure(70)
            await hub.hand_over(tracker)
            assert hub.stored() == sorted((1, seq) for seq in tracker.taken), walk


async def test_each_single_record_after_a_handover_calls_the_hub_again(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(3)
        await hub.hand_over(tracker)
        said = {tracker.uplink.advertised()}
        for _ in range(4):
            tracker.measure(1)
            assert tracker.uplink.advertised() not in said
            said.add(tracker.uplink.advertised())
            await hub.hand_over(tracker)
            said.add(tracker.uplink.advertised())
        assert len(hub.stored()) == 7


async def test_what_is_measured_while_connected_is_notified_and_marked(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(3)
        await hub.called(tracker)
        await hub.until(lambda: bool(hub.stored()), "the history must be stored")
        assert bluez.connected == 1
        tracker.measure(2)
        await hub.until(lambda: len(hub.stored()) == 5, "what is notified must be stored")
        assert tracker.uplink.connects == 1
        await hub.until(lambda: tracker.outbox.held == 0, "it must be marked over the same link")
        await hub.until(lambda: bluez.connected == 0, "a device with nothing left must be let go")


async def test_a_link_that_breaks_anywhere_is_taken_up_again_from_the_mark(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(600)
        for reads in (1, 2, 4, 7):
            at = bluez.calls["ReadValue"] + reads

            def in_the_middle(at: int = at) -> bool:
                if tracker.outbox.held == 0:
                    tracker.measure(300)
                bluez.advertise(ADDRESS, service=tracker.service_data(), peer=tracker)
                return bluez.connected == 1 and bluez.calls["ReadValue"] >= at

            await hub.until(in_the_middle, "it must read")
            bluez.drop(PATH)
            tracker.measure(5)
            await hub.until(lambda: bluez.connected == 0, "the slot must be free")
        await hub.hand_over(tracker)
        assert hub.stored() == sorted((1, seq) for seq in tracker.taken)
        assert tracker.uplink.connects > 4


async def test_a_connection_that_fails_at_any_call_frees_its_slot_and_its_bus(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(10)
        await hub.called(tracker)
        await hub.until(lambda: bluez.calls["Connect"] == 1 and bluez.connected == 0, "a first handover must end")
        tracker.measure(1)
        for member in ("Connect", "ReadValue", "StartNotify", "WriteValue", "Disconnect"):
            bluez.fail(member, "Failed", "no")
            await hub.called(tracker)
            await hub.until(lambda member=member: not bluez.errors[member], f"{member} must be tried")
            tracker.measure(1)
        await hub.hand_over(tracker)
        assert hub.stored() == sorted((1, seq) for seq in tracker.taken)
        assert (bluez.connected, bluez.most_connected) == (0, 1)
        async with asyncio.timeout(60):
            while await bluez.clients() > 2:  # BlueZ and bleak's manager; a connection has a bus of its own
                await hub.clock.advance(1)


async def test_a_connection_that_bluez_aborts_is_tried_again_once_it_is_gone(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(4)
        bluez.fail("Connect", "Failed", "le-connection-abort-by-local")
        await hub.hand_over(tracker)
        assert len(hub.stored()) == 4
        assert hub.counted("handovers_broken") == 0


async def test_a_hub_that_ends_in_the_middle_of_a_handover_lets_go_of_the_device(bluez, tmp_path):
    tracker = None
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        tracker.measure(300)
        await hub.called(tracker)
        await hub.until(lambda: bluez.calls["ReadValue"] > 3, "it must read")
        clock = hub.clock
    assert bluez.connected == 0
    async with home(bluez, tmp_path, clock=clock) as hub:
        await hub.hand_over(tracker)
        assert hub.stored() == sorted((1, seq) for seq in tracker.taken)


# --- the adapter ----------------------------------------------------------------------------------


@pytest.fixture
async def two(bus):
    fake = await FakeBluez(bus.address, "hci0", "hci1").start()
    yield fake
    await fake.stop()


async def test_between_two_adapters_only_refuses_to_choose_and_names_both(two, tmp_path):
    async with home(two, tmp_path, adapter="only") as hub:
        await hub.until(lambda: hub.link.state.trouble != "", "it must say what is wrong")
        assert "hci0, hci1" in hub.link.state.trouble
        assert two.calls["StartDiscovery"] == 0
        await hub.until(lambda: hub.link.state.standing == "degraded", "and be degraded in the end")
        assert "hci0, hci1" in (hub.link.state.banner or "")


async def test_the_named_adapter_is_used_and_never_the_other(two, tmp_path):
    async with home(two, tmp_path, adapter="hci1") as hub:
        await hub.until(lambda: bool(two.adapters["hci1"].scanning), "it must scan")
        tracker = TrackerPeer(hub.clock)
        tracker.measure(4)
        await hub.called(tracker, adapter="hci1")
        await hub.until(lambda: len(hub.stored()) == 4, "it must hand over on the same adapter")
        assert not two.adapters["hci0"].scanning


async def test_an_adapter_that_is_not_there_is_named_and_found_when_it_is_plugged_in(bluez, tmp_path):
    async with home(bluez, tmp_path, adapter="hci7") as hub:
        await hub.until(lambda: "is hci7; found hci0" in hub.link.state.trouble, "it must say what it found")
        bluez.adapters["hci7"] = bluez.adapters.pop("hci0")
        await hub.until(lambda: bool(bluez.adapters["hci7"].scanning), "it must be used once it is there", step_s=5.0)


# --- quiet ----------------------------------------------------------------------------------------


async def test_field_report_7_a_quiet_radio_is_noticed_in_90_s_and_escalated_until_it_hears(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        phone = {"manufacturer": {0x004C: b"\x10"}}
        await hub.until(lambda: bluez.advertise("11:22:33:44:55:66", **phone), "it must listen")
        await hub.until(lambda: hub.link.state.standing == "listening", "and hear")
        radio = bluez.adapters["hci0"]
        radio.deaf, radio.cured_by_power = True, False
        bluez.fail("StopDiscovery", "InProgress", "Operation already in progress", times=8)
        bluez.fail("StartDiscovery", "Failed", "no", times=6)
        began_s = hub.clock.steady_s()
        await hub.until(lambda: hub.link.state.standing == "quiet", "it must be noticed", step_s=1.0)
        assert hub.clock.steady_s() - began_s <= 90
        await hub.until(lambda: hub.link.state.standing == "degraded", "and given up in the end", step_s=1.0)
        assert hub.clock.steady_s() - began_s <= 180
        assert hub.counted("radio_restarts") == 3
        assert hub.counted("radio_power_cycles") == 1
        assert hub.counted("radio_failures") >= 3
        assert "not recorded" in (hub.link.state.banner or "")
        radio.cured_by_power = True
        bluez.errors.clear()
        await hub.until(
            lambda: bluez.advertise("11:22:33:44:55:66", manufacturer={0x004C: b"\x11"}),
            "it must go on trying",
            step_s=10.0,
        )
        await hub.until(lambda: hub.link.state.standing == "listening", "and stand again")
        assert hub.link.state.banner is None


# --- advertisements -------------------------------------------------------------------------------


async def heard(hub, *, count: int) -> list:
    """The next advertisements in the inbox."""
    found: list = []
    while len(found) < count:
        more = await hub.heard.take(timeout_s=5)
        assert more, f"{count} must be heard, {len(found)} were: {hub.link.state}"
        found += [(one.raw.device, advertisement.unpack(one.raw.payload)) for one in more]
    return found


async def test_only_what_something_reads_reaches_the_inbox_and_the_rest_is_counted(bluez, tmp_path):
    def wanted(told) -> bool:
        return told.service_data(bthome.SERVICE_UUID) is not None or dict(told.manufacturer).get(0x0499) is not None

    async with home(bluez, tmp_path, wanted=wanted) as hub:
        await hub.until(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen")
        bluez.advertise("CB:B8:33:4C:88:4F", manufacturer={0x0499: b"\x05\x12\xfc"}, rssi=-61)
        bluez.advertise("11:22:33:44:55:66", manufacturer={0x004C: b"\x10"})
        bluez.advertise(SENSOR, service={bthome.SERVICE_UUID: bytes.fromhex("400009015d025d09")}, rssi=-70)
        (_, ruuvi), (device, button) = await heard(hub, count=2)
        assert (ruuvi.manufacturer, ruuvi.rssi) == (((0x0499, b"\x05\x12\xfc"),), -61)
        assert device == "5448e68f80a5"
        said = bthome.parse(button.service_data(bthome.SERVICE_UUID), address=SENSOR)
        assert [(one.name, one.value) for one in said.measured][1:] == [("battery", 93), ("temperature", 23.97)]
        assert hub.counted("advertisements_ignored") == 1


async def test_a_recording_played_back_is_refused_also_after_the_hub_was_restarted(bluez, tmp_path):
    keys = (RadioKey("beacon-luna", bthome=KEY),)
    first, second = (sealed(b"\x01\x5d", counter, key=KEY) for counter in (7, 8))
    async with home(bluez, tmp_path, keys=keys) as hub:
        await hub.until(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen")
        for data in (first, second, first):
            bluez.advertise(SENSOR, service={bthome.SERVICE_UUID: data})
            await hub.clock.advance(1)
        told = await heard(hub, count=2)
        assert [(device, one.counter) for device, one in told] == [("beacon-luna", 7), ("beacon-luna", 8)]
        await hub.until(lambda: hub.counted("advertisements_replayed") == 1, "the first again must be refused")
        readings = tuple(
            Reading(RawFrame(advertisement.TRANSPORT, device, 0, advertisement.pack(one)), None, (), ())
            for device, one in told
        )
        await hub.writer.run(lambda tx: store_readings(tx, readings, rollups=Rollups(load())))
    async with home(bluez, tmp_path, keys=keys) as hub:
        await hub.until(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen again")
        bluez.advertise(SENSOR, service={bthome.SERVICE_UUID: first})
        await hub.until(lambda: hub.counted("advertisements_replayed") == 1, "it must still be refused")
        assert hub.counted("advertisements") == 1


async def test_a_rotated_address_with_a_key_is_the_same_device_in_the_inbox(bluez, tmp_path):
    async with home(bluez, tmp_path, keys=(RadioKey("beacon-luna", bthome=KEY),)) as hub:
        await hub.until(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen")
        for counter, address in enumerate((SENSOR, "5A:00:00:00:00:01", "5A:00:00:00:00:02")):
            bluez.advertise(
                address, service={bthome.SERVICE_UUID: sealed(b"\x01\x5d", counter, address=address, key=KEY)}
            )
        assert {device for device, _ in await heard(hub, count=3)} == {"beacon-luna"}


async def test_a_flood_of_advertisements_drops_its_own_and_never_stops_the_broker_links_thread(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        await hub.until(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen")
        for number in range(200):
            bluez.advertise(f"C2:00:00:00:00:{number:02X}", manufacturer={0xFFFF: bytes((number,))})
        await hub.until(lambda: hub.counted("advertisements") == 200, "all must be heard")
        assert hub.counted("advertisements_dropped") == 200 - 64
        raw = RawFrame("mqtt", "bowl-max", 0, b"")
        for number in range(80):  # as many as the broker's own place holds
            await asyncio.wait_for(asyncio.to_thread(hub.heard.put, Delivery(raw, 1, number, 1)), 10)
        assert len(await hub.heard.take(timeout_s=1)) == 144


# --- loss -----------------------------------------------------------------------------------------


async def radio_hour(bluez, folder, *, seconds: int, drops: int, loss: float, seed: int) -> None:
    """A tracker that comes and goes, on a radio that loses: everything arrives, once."""
    rng = random.Random(seed)
    async with home(bluez, folder) as hub:
        tracker = TrackerPeer(hub.clock)
        bluez.losing = lambda: rng.random() < loss
        near = [second for second in range(seconds // 20, seconds) if second // 60 % 5 != 3]
        cuts = sorted(rng.sample(near, drops))
        dropped = 0
        for second in range(seconds):
            if second % 5 == 0:
                tracker.measure(rng.choice((1, 1, 1, 90)))
            away = second // 60 % 5 == 3
            if not away:
                bluez.advertise(ADDRESS, service=tracker.service_data(), peer=tracker)
            bluez.pump()
            await hub.clock.advance(1, pause_s=0.01 if bluez.connected else 0.001)
            while cuts and second == cuts[0]:
                cuts.pop(0)
                at = bluez.calls["ReadValue"] + rng.randrange(6)

                def in_the_middle(at: int = at) -> bool:
                    if tracker.outbox.held == 0:
                        tracker.measure(20)
                    bluez.advertise(ADDRESS, service=tracker.service_data(), peer=tracker)
                    return bluez.connected == 1 and bluez.calls["ReadValue"] >= at

                await hub.until(in_the_middle, "it must hand over")
                bluez.drop(PATH)
                dropped += 1
        bluez.losing = lambda: False
        await hub.hand_over(tracker)
        stored = hub.stored()
        assert dropped == drops
        assert stored == sorted((1, seq) for seq in tracker.taken)
        assert tracker.uplink.connects > drops
        assert (bluez.connected, bluez.most_connected) == (0, 1)


async def test_minutes_of_lossy_radio_with_link_drops_lose_nothing_and_double_nothing(bluez, tmp_path):
    await radio_hour(bluez, tmp_path, seconds=240, drops=4, loss=0.02, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
async def test_an_hour_of_lossy_radio_with_twenty_link_drops_loses_nothing_and_doubles_nothing(bluez, tmp_path, seed):
    await radio_hour(bluez, tmp_path, seconds=3_600, drops=20, loss=0.02, seed=seed)


async def test_field_report_7_what_a_silent_tracker_did_is_not_recorded_and_never_inactive(bluez, tmp_path):
    async with home(bluez, tmp_path) as hub:
        tracker = TrackerPeer(hub.clock)
        for _ in range(24):  # two hours of moderate walking, in reach
            await hub.clock.advance(300, pause_s=0)
            motion = (300_000, 4_000, 200, 60_000, 120_000, 40_000, 70_000, 0, 300_000)
            tracker.outbox.put(wire.MOTION, tracker.uptime_ms(), motion)
        await hub.hand_over(tracker)
        bluez.adapters["hci0"].deaf = True
        bluez.adapters["hci0"].cured_by_power = False
        for _ in range(36):
            await hub.clock.advance(300, pause_s=0)
        await hub.until(lambda: hub.link.state.standing == "degraded", "the radio's silence must be said", step_s=20.0)
        assert "not recorded" in (hub.link.state.banner or "")
        with hub.database.snapshot() as reader:
            days = [day for series in reader.all_series() for day in reader.days(series.id, "2026-01-01", "2027-01-01")]
            answer = ask("Is Max less active today?", reader, now_ms=hub.clock.now_ms())
        assert days
        assert all(day.covered_ms <= 2 * 3_600_000 + 300_000 for day in days), "silence is covered by nothing"
        assert all(
            not count for day in days for count, covered in zip(day.sums, day.covered, strict=True) if not covered
        )
        said = json.dumps(answer_json(answer)).lower()
        assert "inactive" not in said
        assert all(claim.values.get("verdict") != "down" for claim in answer.claims)
