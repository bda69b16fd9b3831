"""The whole hub with a radio: Bluetooth while the broker is down, and the other way round."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import httpx2
import pytest

from firmware_bridge import parts, wire
from gateway.app import Gateway, listening_socket
from gateway.config import Ble, Config, Mqtt, Profiles
from gateway.links import bthome
from gateway.links.ble import COUNTERS, RadioState, Standing
from gateway.links.clock import SystemClock
from gateway.store.database import Database
from gateway.web.radio import COUNTER_WORDS, radio_json, radio_page
from tests.ble_home import ADDRESS, HOME
from tests.brokers import Mosquitto, free_port
from tests.fake_bluez import FakeBluez, PrivateBus
from tests.radio_world import SENSOR, TrackerPeer
from tests.test_links_ble import bus  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[1]
HANG_GUARD_S = 60


async def eventually(holds, what: str) -> None:
    async with asyncio.timeout(HANG_GUARD_S):
        while not holds():  # noqa: ASYNC110 - a state to look at, no event
            await asyncio.sleep(0.02)


def stored(database: Database, device: str) -> int:
    with database.snapshot() as reader:
        return len(reader.frames((device,), start_ms=-(2**60), end_ms=2**60, kinds=("beat",)))


async def told(port: int) -> dict[str, object]:
    async with httpx2.AsyncClient() as client:
        return (await client.get(f"http://127.0.0.1:{port}/api/radio")).json()


@pytest.fixture
async def database(tmp_path):
    with Database(tmp_path / "hub.db") as opened:
        with opened.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        yield opened


async def test_a_tracker_hands_over_while_the_broker_is_down(bus: PrivateBus, database):  # noqa: F811
    bluez = await FakeBluez(bus.address, "hci0").start()
    config = Config(ble=Ble(adapter="only"), mqtt=Mqtt(port=free_port()))
    gateway = Gateway(config, SystemClock(), database)
    with listening_socket("127.0.0.1", 0, option="--web-port") as listener:
        running = asyncio.create_task(gateway.run(listener=listener))
        await eventually(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen")
        tracker = TrackerPeer(SystemClock())
        tracker.measure(30)
        bluez.advertise(ADDRESS, service=tracker.service_data(), peer=tracker)
        await eventually(lambda: stored(database, "tracker-max") == 30, "it must store what was kept")
        await eventually(lambda: tracker.outbox.held == 0, "and mark it")
        assert not gateway.link.state.connected
        radio = await told(listener.getsockname()[1])
        assert (radio["standing"], radio["adapter"]) == ("listening", "hci0")
        gateway.stop()
        await running
    assert bluez.connected == 0
    await bluez.stop()


async def test_a_radio_that_is_not_there_is_said_and_mqtt_goes_on(bus: PrivateBus, database, tmp_path):  # noqa: F811
    with Mosquitto(tmp_path / "broker") as broker:
        config = Config(ble=Ble(adapter="hci0"), mqtt=Mqtt(port=broker.port))
        gateway = Gateway(config, SystemClock(), database)
        with listening_socket("127.0.0.1", 0, option="--web-port") as listener:
            running = asyncio.create_task(gateway.run(listener=listener))
            await eventually(lambda: gateway.link.state.connected, "MQTT must stand")
            assert gateway.radio is not None
            await eventually(lambda: "ServiceUnknown" in gateway.radio.state.trouble, "the radio must say why not")
            records = [wire.pack_record(wire.BEAT, 5, (900, 1, 0)), wire.pack_record(wire.MARK_REQUEST, 6, ())]
            message = wire.pack_message(1, 1, records, 7, None)
            assert gateway.link._connection.publish(wire.up_topic("tracker-max"), message)
            await eventually(lambda: stored(database, "tracker-max") == 1, "MQTT must go on")
            assert "ServiceUnknown" in str((await told(listener.getsockname()[1]))["trouble"])
            gateway.stop()
            await running


async def test_an_advertisement_that_a_profile_reads_becomes_a_row_and_a_neighbours_phone_nothing(bus, database):  # noqa: F811
    bluez = await FakeBluez(bus.address, "hci0").start()
    config = Config(ble=Ble(adapter="hci0"), mqtt=Mqtt(port=free_port()), profiles=Profiles(enabled=("bthome",)))
    gateway = Gateway(config, SystemClock(), database)
    running = asyncio.create_task(gateway.run(listener=None))
    await eventually(lambda: bool(bluez.adapters["hci0"].scanning), "it must listen")
    bluez.advertise("11:22:33:44:55:66", manufacturer={0x004C: b"\x10"})
    bluez.advertise(SENSOR, service={bthome.SERVICE_UUID: bytes.fromhex("400009015d025d09")})

    def rows():
        with database.snapshot() as reader:
            return reader.frames(("5448e68f80a5",), start_ms=-(2**60), end_ms=2**60)

    await eventually(lambda: len(rows()) > 0, "the sensor's values must be stored")
    assert 297_120 in {row.amount for row in rows()}, "23.97 C in mK"
    assert gateway.radio is not None
    assert gateway.radio.state.counters["advertisements_ignored"] == 1
    gateway.stop()
    await running
    await bluez.stop()


# --- the page and the documents -------------------------------------------------------------------


def test_every_counter_of_the_radio_has_words_and_a_line_for_makers():
    assert tuple(COUNTER_WORDS) == COUNTERS
    maker = (ROOT / "docs" / "maker.md").read_text("utf-8")
    section = maker.split("## Handing over by Bluetooth")[2 if maker.count("## Handing over") > 1 else 1]
    table = section.split("What the hub counts")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == COUNTERS


def test_every_uuid_of_the_service_is_documented_for_makers():
    maker = (ROOT / "docs" / "maker.md").read_text("utf-8")
    uuids = {value for name, value in vars(parts).items() if name.endswith("_UUID")}
    assert len(uuids) == 6
    assert all(f"`{uuid}`" in maker for uuid in uuids)


def test_a_degraded_radio_is_one_sentence_and_a_good_one_none():
    bad = RadioState("hci0", Standing.DEGRADED, 1_780_286_400_000, "no answer", dict.fromkeys(COUNTERS, 0))
    assert "not recorded" in (bad.banner or "")
    assert "hears nothing" in radio_page(bad, HOME).line
    assert RadioState("hci0", Standing.LISTENING).banner is None
    assert json.loads(json.dumps(radio_json(bad)))["standing"] == "degraded"
    assert radio_json(None) == {"standing": "off"}
