"""Delivery over real brokers: mosquitto with MQTT 5, the embedded iotcore with 3.1.1.

The device side is the firmware's own uplink. Waits are bounded; none is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Self

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from firmware_bridge import wire
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink
from gateway.errors import PortBusy
from gateway.links.broker import EmbeddedBroker
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest
from gateway.links.mqtt import MqttLink, MqttSettings
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer
from tests.brokers import Mosquitto, free_port, with_me

WAIT_S = 20
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("bowl-max", "food_bowl", "Max's bowl"),),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0),),
)
PROCESS = Path(__file__).with_name("links_process.py")


@pytest.fixture
def mosquitto(tmp_path):
    with Mosquitto(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture(params=["mosquitto", "iotcore"])
def address(request):
    """(port, protocol) of a running broker, each kind once."""
    if request.param == "mosquitto":
        yield request.getfixturevalue("mosquitto").port, 5
    else:
        with EmbeddedBroker(free_port()) as broker:
            yield broker.port, 311


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "hub.db") as opened:
        with opened.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        yield opened


@contextlib.asynccontextmanager
async def gateway(database: Database, port: int, protocol: int):
    """Link and ingest in this process; yields the link and the ingest."""
    clock, writer = SystemClock(), Writer(database)
    settings = MqttSettings("127.0.0.1", port, protocol=protocol)
    inbox = Inbox(capacity=80)
    link = MqttLink(settings, inbox=inbox, clock=clock)
    ingest = Ingest(
        inbox=inbox, link=link, writer=writer, rollups=Rollups(load()), clock=clock, rule=CommitRule(window=20)
    )
    tasks = [asyncio.create_task(link.run(), name="link"), asyncio.create_task(ingest.run(), name="ingest")]
    try:
        await until(lambda: link.state.connected or any(task.done() for task in tasks))
        yield link, ingest
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()
    assert all(isinstance(end, asyncio.CancelledError) for end in ended), ended


async def until(holds, timeout_s: float = WAIT_S) -> None:
    """Return once it holds; fail after a bounded wait."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "the awaited did not happen"
        await asyncio.sleep(0.01)


def uplink(
    port: int,
    *,
    boot: int = 1,
    slots: int = 4000,
    device: str = "bowl-max",
    message_bytes: int = wire.MAX_MESSAGE_BYTES,
) -> Uplink:
    """A device of the firmware: its ring, its client, its clock."""
    steady = SteadyClock()
    return Uplink(
        device,
        Outbox(RamSlots(slots, 64), boot, message_bytes),
        "127.0.0.1",
        port,
        steady_ms=steady,
        stamp=lambda: (10_000_000_000 + steady(), None),
        getrandbits=random.Random(1).getrandbits,
        hello=("bowl", "test", 1),
    )


def drain(device: Uplink, timeout_s: float = WAIT_S) -> None:
    """Step the device until the hub has confirmed everything."""
    deadline = time.monotonic() + timeout_s
    while not device.drained:
        assert time.monotonic() < deadline, f"not drained, {device.outbox.held} held, trouble: {device.trouble}"
        device.step(20)
    device.stop()


class Observer:
    """Somebody else at the broker: publishes plainly, remembers what it hears."""

    def __init__(self, port: int) -> None:
        self.heard: list[tuple[str, bytes, bool]] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"observer{random.randrange(10**9)}")
        self._client.on_message = lambda _c, _u, m: self.heard.append((m.topic, bytes(m.payload), m.retain))
        self._subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def subscribe(self, topic: str) -> None:
        self._client.subscribe(topic, 1)
        assert self._subscribed.wait(WAIT_S)

    def publish(self, payload: bytes, *, device: str = "bowl-max", retain: bool = False, qos: int = 1) -> None:
        self._client.publish(wire.up_topic(device), payload, qos=qos, retain=retain).wait_for_publish(WAIT_S)

    def last(self, topic: str) -> bytes | None:
        return next((payload for name, payload, _ in reversed(self.heard) if name == topic), None)


def meal_message(boot: int = 1, first: int = 1) -> bytes:
    return wire.pack_message(
        boot, first, [wire.pack_record(wire.MEAL, 100_000, (40_000, 60_000, 32_000, 0))], 200_000, None
    )


def stored_seqs(database_path: Path, device: str = "bowl-max") -> list[int]:
    with Database(database_path) as database, database.snapshot() as reader:
        return [frame.seq for frame in reader.frames((device,), start_ms=-(2**60), end_ms=2**60)]


def count(database: Database, name: str) -> int:
    with database.snapshot() as reader:
        return dict(reader.counters()).get(name, 0)


def database_marks(database: Database) -> dict[int, int]:
    with database.snapshot() as reader:
        return reader.marks("bowl-max")


# --- the whole way ---------------------------------------------------------------------------


async def test_a_devices_meal_is_stored_acknowledged_and_marked(address, database):
    port, protocol = address
    device = uplink(port)
    device.say_hello()
    device.outbox.put(wire.MEAL, 9_000_000_000, (8_999_000_000, 60_000, 32_000, 0))
    device.request_mark()
    async with gateway(database, port, protocol):
        await asyncio.to_thread(drain, device)
    with database.snapshot() as reader:
        assert [frame.kind for frame in reader.frames(("bowl-max",), start_ms=0, end_ms=2**60)] == [
            "meal",
            "hello",
            "mark_request",
        ]
        assert reader.marks("bowl-max") == {1: 3}
        (day,) = reader.days("max.intake", "2000-01-01", "2100-01-01")
        assert day.total == 32_000


async def test_what_was_queued_while_the_hub_was_away_is_delivered_when_it_is_back(address, database):
    """The session is persistent: the broker holds what the hub has not acknowledged."""
    port, protocol = address
    async with gateway(database, port, protocol):
        pass
    with Observer(port) as observer:
        for seq in range(1, 31):
            observer.publish(wire.pack_message(1, seq, [wire.pack_record(wire.BEAT, seq, (900, 2, 0))], 500, None))
        async with gateway(database, port, protocol):
            observer.publish(meal_message(first=31))
            await until(lambda: count(database, "records_stored") == 31)
    with database.snapshot() as reader:
        assert reader.marks("bowl-max") == {1: 31}


async def test_a_retained_event_and_three_restarts_are_one_meal(address, database):
    """Field report 3. mosquitto sends it at every subscription, iotcore once a session."""
    port, protocol = address
    with Observer(port) as observer:
        observer.subscribe(wire.mark_topic("bowl-max"))
        observer.publish(meal_message(), retain=True)
        for restart in range(1, 4):
            async with gateway(database, port, protocol):
                observer.publish(wire.pack_message(2, restart, [wire.pack_record(wire.MARK_REQUEST, 1, ())], 1, None))
                # The mark goes out behind the acknowledgement: no message of this run is delivered again.
                wanted = wire.pack_mark({1: 1, 2: restart})
                await until(lambda mark=wanted: observer.last(wire.mark_topic("bowl-max")) == mark)
    assert count(database, "retained_events") == (3 if protocol == 5 else 1)
    with database.snapshot() as reader:
        assert len(reader.frames(("bowl-max",), start_ms=0, end_ms=2**60, kinds=("meal",))) == 1


async def test_a_poisoned_message_does_not_come_again_and_holds_up_nobody(mosquitto, database):
    deep = b"\x86\xa1v\x01\xa1b\x01\xa1s\x01\xa1n\x01\xa1u\x05\xa1r" + b"\x91" * 100_000 + b"\xc0"
    with Observer(mosquitto.port) as observer:
        async with gateway(database, mosquitto.port, 5):
            for payload in (deep, b"\x91" * 100_000, b"\xc1", b"", b"\xff" * 30_000):
                observer.publish(payload)
            observer.subscribe(wire.mark_topic("bowl-max"))
            observer.publish(meal_message(first=2))
            await until(lambda: observer.last(wire.mark_topic("bowl-max")) == wire.pack_mark({1: 2}))
        before = count(database, "messages")
        async with gateway(database, mosquitto.port, 5):
            observer.publish(meal_message(first=3))
            await until(lambda: count(database, "records_stored") == 2)
    assert count(database, "messages") == before + 1
    assert count(database, "dead_letters") == 5
    with database.snapshot() as reader:
        assert reader.marks("bowl-max") == {1: 3}


# --- connections -----------------------------------------------------------------------------


async def test_an_acknowledgement_of_an_earlier_connection_is_not_sent(mosquitto):
    """The packet ids of a new connection mean other messages."""
    inbox = Inbox(capacity=10)
    link = MqttLink(MqttSettings("127.0.0.1", mosquitto.port), inbox=inbox, clock=SystemClock())
    task = asyncio.create_task(link.run())

    async def restart() -> None:
        mosquitto.stop()  # SIGTERM: the session is saved
        await until(lambda: not link.state.connected)
        mosquitto.start()
        await until(lambda: link.state.connected)

    await until(lambda: link.state.connected)
    with Observer(mosquitto.port) as observer:
        observer.publish(meal_message())
    (first,) = await inbox.take(timeout_s=WAIT_S)
    await restart()
    (second,) = await inbox.take(timeout_s=WAIT_S)
    assert second.raw.payload == first.raw.payload
    assert second.generation > first.generation
    link.acknowledge([first])
    await restart()
    (third,) = await inbox.take(timeout_s=WAIT_S)
    link.acknowledge([third])
    await restart()
    assert await inbox.take(timeout_s=0.5) == ()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_broker_that_lost_everything_gets_subscription_link_state_and_marks_again(
    mosquitto, database, tmp_path
):
    """Field report 2."""
    async with gateway(database, mosquitto.port, 5) as (link, _):
        with Observer(mosquitto.port) as observer:
            observer.publish(meal_message())
            await until(lambda: count(database, "records_stored") == 1)
        mosquitto.stop(signal.SIGKILL)
        (tmp_path / "broker" / "mosquitto.db").unlink(missing_ok=True)
        await until(lambda: not link.state.connected)
        assert link.state.trouble
        mosquitto.start()
        await until(lambda: link.state.connected)
        with Observer(mosquitto.port) as observer:
            observer.subscribe("scentwalk/1/#")
            await until(lambda: observer.last(wire.mark_topic("bowl-max")) is not None)
            assert wire.unpack_mark(observer.last(wire.mark_topic("bowl-max")) or b"") == {1: 1}
            assert observer.last(wire.link_topic("hub")) == wire.LINK_ONLINE
            observer.publish(meal_message(first=2))
            await until(lambda: count(database, "records_stored") == 2)


async def test_the_marks_of_the_database_are_published_at_the_start(address, database):
    port, protocol = address
    with database.transaction() as tx:
        tx.set_mark("bowl-max", 3, 77)
    async with gateway(database, port, protocol):
        with Observer(port) as observer:
            observer.subscribe(wire.mark_topic("bowl-max"))
            await until(lambda: observer.last(wire.mark_topic("bowl-max")) is not None)
            assert wire.unpack_mark(observer.last(wire.mark_topic("bowl-max")) or b"") == {3: 77}


async def test_a_hub_that_leaves_says_so(address, database):
    port, protocol = address
    async with gateway(database, port, protocol):
        pass
    with Observer(port) as observer:
        observer.subscribe(wire.link_topic("hub"))
        await until(lambda: observer.last(wire.link_topic("hub")) == wire.LINK_OFFLINE)


async def test_an_absent_broker_is_named_and_tried_again(database):
    clock, inbox = SystemClock(), Inbox(capacity=1)
    link = MqttLink(MqttSettings("127.0.0.1", free_port()), inbox=inbox, clock=clock)
    task = asyncio.create_task(link.run())
    await until(lambda: link.state.lost >= 2)
    assert "an MQTT broker must listen at 127.0.0.1" in link.state.trouble
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_wrong_protocol_version_is_a_trouble_that_says_what_is_configured(database):
    """iotcore closes a version 5 CONNECT on its plain listener without a word."""
    with EmbeddedBroker(free_port()) as broker:
        link = MqttLink(
            MqttSettings("127.0.0.1", broker.port, protocol=5, connect_s=2.0),
            inbox=Inbox(capacity=1),
            clock=SystemClock(),
        )
        task = asyncio.create_task(link.run())
        await until(lambda: link.state.lost >= 1)
        assert "mqtt.protocol is 5" in link.state.trouble
        assert not link.state.connected
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# --- the embedded broker ---------------------------------------------------------------------


def test_a_busy_port_is_named_with_the_option_that_changes_it():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortBusy, match="--mqtt-port") as busy:
            EmbeddedBroker(port).start()
        assert busy.value.port == port


def test_the_embedded_broker_stops_and_starts_again_on_its_port():
    broker = EmbeddedBroker(free_port())
    for _ in range(2):
        with broker:
            assert broker.alive
            with Observer(broker.port) as observer:
                observer.publish(b"x")
        assert not broker.alive


def test_the_embedded_broker_listens_on_this_machine_only():
    with EmbeddedBroker(free_port()) as broker:
        own = socket.gethostbyname(socket.gethostname())
        outside = own if not own.startswith("127.") else "127.0.0.2"
        with pytest.raises(OSError, match=r"refused|unreachable"), socket.create_connection((outside, broker.port), 1):
            pass


# --- kill -9 ---------------------------------------------------------------------------------


class Hub:
    """The gateway's ingest as a process that can be killed."""

    def __init__(self, path: Path, port: int, protocol: int) -> None:
        self._command = with_me(sys.executable, str(PROCESS), str(path), str(port), str(protocol))
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, cwd=PROCESS.parents[1], env={"PYTHONPATH": str(PROCESS.parents[1])}
        )

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, "the hub ended by itself"
        self._process.kill()
        self._process.wait(WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(WAIT_S)


RECORDS = 10_000


def test_nothing_is_lost_or_doubled_when_the_hub_is_killed_again_and_again(address, tmp_path):
    """Five kills at moments drawn at random while a device sends 10,000 records."""
    port, protocol = address
    path = tmp_path / "hub.db"
    with Database(path) as database, database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    rng = random.Random(7)
    device = uplink(port, slots=RECORDS + 10, message_bytes=256)  # some 600 messages, so that kills fall between
    made = iter(range(RECORDS - 1))

    def measure(count: int) -> None:
        for n in islice(made, count):
            device.outbox.put(wire.BEAT, 1_000_000 + n * 60_000, (900, 2, 0))

    in_flight = 0
    with Hub(path, port, protocol) as hub:
        for _ in range(5):
            hub.start()
            measure(RECORDS // 6)
            enough = device.outbox.held - rng.randint(1, 1000)
            deadline = time.monotonic() + WAIT_S
            while device.outbox.held > enough:
                assert time.monotonic() < deadline, f"{device.outbox.held} held, trouble: {device.trouble}"
                device.step(5)
            in_flight += device.outbox.held > device.outbox.unsent
            hub.kill()
        assert in_flight > 0, "some kill must find messages under way"
        measure(RECORDS)
        device.request_mark()
        hub.start()
        drain(device, 3 * WAIT_S)
    device.client.close()
    assert stored_seqs(path) == list(range(1, RECORDS + 1))
    with Database(path) as database, database.snapshot() as reader:
        assert reader.marks("bowl-max") == {1: RECORDS}
        assert not reader.dead_letters(limit=1)
    assert device.outbox.dropped == 0


async def test_a_hub_whose_database_is_gone_is_told_where_a_running_device_stands(mosquitto, tmp_path):
    """Its mark cannot begin at 1: those records were marked by the hub before it, and let go."""
    device = uplink(mosquitto.port)
    device.say_hello()
    for wiped in ("first.db", "second.db"):
        for n in range(30):
            device.outbox.put(wire.BEAT, 1_000_000 + n, (900, 2, 0))
        device.request_mark()
        with Database(tmp_path / wiped) as database:
            async with gateway(database, mosquitto.port, 5):
                await asyncio.to_thread(drain, device)
            (top,) = database_marks(database).values()
            assert top == device.outbox.next_seq - 1
    assert device.outbox.dropped == 0


async def test_a_hub_that_is_killed_is_declared_offline_by_its_will(mosquitto, tmp_path):
    with Hub(tmp_path / "hub.db", mosquitto.port, 5) as hub, Observer(mosquitto.port) as observer:
        observer.subscribe(wire.link_topic("hub"))
        hub.start()
        await until(lambda: observer.last(wire.link_topic("hub")) == wire.LINK_ONLINE)
        hub.kill()
        await until(lambda: observer.last(wire.link_topic("hub")) == wire.LINK_OFFLINE)
