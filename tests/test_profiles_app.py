"""A whole hub with profiles over a real broker: heard, shown, read again while it runs and after."""

from __future__ import annotations

import asyncio
import urllib.request

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from firmware_bridge import wire
from gateway.__main__ import main
from gateway.app import Gateway, listening_socket
from gateway.config import Config, Database, Mqtt, Profiles
from gateway.links.clock import SystemClock
from gateway.links.profileset import shipped
from tests.brokers import Mosquitto
from tests.profiled import AQARA, AQARA_STATE, RUUVI, THEENGS, changed, home_at, rows

WAITS = 3_000


async def _until(holds) -> None:
    for _ in range(WAITS):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the awaited did not happen within 30 s")


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
        return answer.read().decode()


async def test_a_hub_hears_shows_and_derives_again_while_it_runs_and_without_it(tmp_path, capsys):
    own = tmp_path / "own"
    own.mkdir()
    mine = own / "aqara.toml"
    mine.write_text(shipped()["aqara-c1"].read_text("utf-8"), "utf-8")
    (own / "worse.toml").write_text("id = 7\n", "utf-8")
    path = tmp_path / "hub.db"
    told = f'[profiles]\nenabled = ["theengs-ruuvi"]\npath = "{own}"\n'
    (tmp_path / "hub.toml").write_text(told, "utf-8")
    with Mosquitto(tmp_path / "broker") as broker, home_at(path) as database:
        config = Config(
            database=Database(path),
            mqtt=Mqtt(port=broker.port),
            profiles=Profiles(enabled=("theengs-ruuvi",), path=own),
        )
        gateway = Gateway(config, SystemClock(), database)
        listener = listening_socket("127.0.0.1", 0, option="--web-port")
        port = listener.getsockname()[1]
        running = asyncio.create_task(gateway.run(listener=listener))
        client = paho.Client(CallbackAPIVersion.VERSION2, client_id="others")
        client.connect("127.0.0.1", broker.port)
        client.loop_start()
        try:
            await _until(
                lambda: running.done() or (gateway.link.state.connected and gateway.heard_link.state.connected)
            )
            for portions in (1, 3):
                state = changed(AQARA_STATE, portions_per_day=portions, weight_per_day=10 * portions)
                client.publish(AQARA, state, qos=1)
            client.publish(THEENGS, RUUVI, qos=1)
            await _until(lambda: running.done() or len(rows(database)) == 3)
            page = await asyncio.to_thread(_page, port)
            assert "The profile worse.toml is not used" in page
            assert "cbb8334c884f" in page
            before = {row.ref.text for row in rows(database)}
            assert await asyncio.to_thread(main, ["reprocess", "--db", str(path)]) == 0
            assert "nothing to do" in capsys.readouterr().out
            text = mine.read_text("utf-8").replace("version = 1", "version = 2")
            mine.write_text(text.replace('unit = "g"', 'unit = "oz"'), "utf-8")
            assert await asyncio.to_thread(main, ["reprocess", "--db", str(path)]) == 0
            assert "0 new, 1 changed, 0 gone" in capsys.readouterr().out
            assert {row.amount for row in rows(database) if row.kind == "refill"} == {
                566_991
            }  # 30 oz less 10 oz, each to a mg
            assert {row.ref.text for row in rows(database)} == before
        finally:
            gateway.stop()
            await asyncio.wait_for(running, 30)
            client.disconnect()
            client.loop_stop()
    at_rest = ["--db", str(path), "--config", str(tmp_path / "hub.toml")]
    assert main(["reprocess", *at_rest]) == 0
    assert "nothing to do" in capsys.readouterr().out
    mine.write_text(shipped()["aqara-c1"].read_text("utf-8").replace("version = 1", "version = 3"), "utf-8")
    assert main(["reprocess", *at_rest]) == 0
    assert "0 new, 1 changed, 0 gone" in capsys.readouterr().out
    assert main(["profile", "list", *at_rest]) == 0
    listed = capsys.readouterr().out
    assert "theengs-ruuvi: RuuviTag through a Theengs gateway, used" in listed
    assert "aqara-c1: Aqara C1 feeder (zigbee2mqtt), your own, version 3" in listed
    assert "The profile worse.toml is not used" in listed


@pytest.mark.soak
async def test_a_flood_of_other_makers_messages_does_not_hold_up_a_bowl(tmp_path):
    """20,000 messages of a tag wait before a bowl's meal; the meal is stored long before them all."""
    path = tmp_path / "hub.db"
    with Mosquitto(tmp_path / "broker") as broker, home_at(path) as database:
        config = Config(
            database=Database(path), mqtt=Mqtt(port=broker.port), profiles=Profiles(enabled=("theengs-ruuvi",))
        )
        gateway = Gateway(config, SystemClock(), database)
        running = asyncio.create_task(gateway.run(listener=None))
        client = paho.Client(CallbackAPIVersion.VERSION2, client_id="others")
        client.connect("127.0.0.1", broker.port)
        client.loop_start()
        try:
            await _until(
                lambda: running.done() or (gateway.link.state.connected and gateway.heard_link.state.connected)
            )
            for n in range(20_000):
                client.publish(THEENGS, changed(RUUVI, seq=n), qos=0)
            meal = wire.pack_message(
                1, 1, [wire.pack_record(wire.MEAL, 9_000, (1_000, 5_000, 30_000, 0))], 10_000, None
            )
            client.publish(wire.up_topic("bowl-max"), meal, qos=1)
            await _until(lambda: running.done() or rows(database, "bowl-max"))
            assert len(rows(database)) < 10_000
        finally:
            gateway.stop()
            await asyncio.wait_for(running, 30)
            client.disconnect()
            client.loop_stop()
