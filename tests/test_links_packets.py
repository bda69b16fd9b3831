"""MQTT as the hub speaks it: the packets by themselves, and the link against a broker that says what it is told.

What real brokers do stands in test_links_mqtt; here is what they do seldom: bytes in any pieces,
bytes that are no MQTT, silence, a small receive maximum.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Self

import paho.mqtt.client as paho
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion

from firmware_bridge import wire
from gateway.links import mqtt_packets as packets
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.mqtt import MqttLink, MqttSettings
from tests.brokers import Mosquitto, free_port, settled

GUARD_S = 20
TOPIC = wire.up_topic("bowl-max")
protocols = st.sampled_from([5, 311])
sent = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.binary(max_size=300),
    st.integers(1, 65_535),
    st.booleans(),
)


def split(data: bytes) -> list[bytes]:
    """The bytes of each whole packet, and of what is not whole where something is left."""
    return [data[at:ends] for at, body, ends in packets.packets(data) if body or at < len(data)]


def frame(first: int, body: bytes) -> bytes:
    """A packet of fewer than 16,384 bytes, its length always in two digits: as valid as in one."""
    return bytes((first, 0x80 | len(body) & 0x7F, len(body) >> 7)) + body


# --- the packets ----------------------------------------------------------------------------------


@given(st.lists(sent, max_size=6), protocols)
def test_what_is_published_is_read_back_packet_by_packet(messages, protocol):
    data = b"".join(
        packets.publish(topic, payload, packet_id=number, retain=retain, protocol=protocol)
        for topic, payload, number, retain in messages
    )
    found = [
        packets.read_publish(data, at, body, ends, protocol=protocol)
        for at, body, ends in packets.packets(data)
        if body
    ]
    assert found == [(topic.encode(), payload, 1, number, retain) for topic, payload, number, retain in messages]


@given(st.binary(max_size=200), protocols)
def test_any_bytes_at_all_are_packets_or_refused(data, protocol):
    with contextlib.suppress(packets.PacketError):
        last = -1
        for at, body, ends in packets.packets(data):
            assert at > last
            assert ends > at
            assert (body == 0) == (ends > len(data) or at == len(data))
            last = at
            if body:
                with contextlib.suppress(packets.PacketError):
                    assert len(packets.read_publish(data, at, body, ends, protocol=protocol).payload) <= ends - body
    for read in (packets.read_connack, packets.read_suback, packets.read_disconnect):
        with contextlib.suppress(packets.PacketError):
            read(data, protocol=protocol)
    with contextlib.suppress(packets.PacketError):
        packets.read_puback(data, protocol=protocol)


def test_a_length_of_five_digits_is_no_packet():
    with pytest.raises(packets.PacketError, match="at most 4 digits"):
        list(packets.packets(b"\x30\xff\xff\xff\xff\x01"))
    assert list(packets.packets(b"\x30\xff\xff\xff")) == [(0, 0, 5)]


def test_acknowledgements_stand_one_behind_the_other():
    assert packets.acknowledgements([1, 0x1234]) == b"\x40\x02\x00\x01\x40\x02\x12\x34"


def test_a_connack_tells_how_much_the_broker_takes_and_how_often_it_wants_to_be_pinged():
    told = b"\x00\x00\x09\x21\x00\x02\x13\x00\x07\x24\x01"
    assert packets.read_connack(told[:2] + b"\x08" + told[3:], protocol=5) == (0, 2, 7)
    assert packets.read_connack(b"\x01\x05", protocol=311) == (5, 65_535, None)
    with pytest.raises(packets.PacketError):
        packets.read_connack(b"\x00\x00\x03\x21\x00", protocol=5)


# --- a broker that says what it is told ------------------------------------------------------------


class Spoken:
    """A listener that answers CONNECT and SUBSCRIBE and keeps what else it hears; the test says the rest."""

    def __init__(self, *, connack: bytes = b"\x20\x03\x00\x00\x00") -> None:
        self.port = free_port()
        self._connack = connack
        self.connects = 0
        self.published: list[packets.Published] = []
        self.acknowledged: list[int] = []
        self.pings = 0
        self.answers_pings = True
        self.writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await settled(self._server)
        if self.writer is not None:
            self.writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        while more := await reader.read(65_536):
            data += more
            done = 0
            for at, body, ends in packets.packets(data):
                if body:
                    self._hears(data, at, body, ends, writer)
                    done = ends
            data = data[done:]
        writer.close()

    def _hears(self, data: bytes, at: int, body: int, ends: int, writer: asyncio.StreamWriter) -> None:
        kind = data[at] & 0xF0
        if kind == 0x10:
            self.connects += 1
            self.writer = writer
            writer.write(self._connack)
        elif kind == 0x80:
            writer.write(b"\x90\x04" + data[body : body + 2] + b"\x00\x01")
        elif kind == packets.PUBLISH:
            self.published.append(packets.read_publish(data, at, body, ends, protocol=5))
        elif kind == packets.PUBACK:
            self.acknowledged.append(packets.read_puback(data[body:ends], protocol=5)[0])
        elif kind == 0xC0:
            self.pings += 1
            if self.answers_pings:
                writer.write(b"\xd0\x00")


@contextlib.asynccontextmanager
async def linked(port: int, *, capacity: int = 1_000, keepalive_s: int = 30):
    inbox = Inbox(capacity=capacity)
    link = MqttLink(MqttSettings("127.0.0.1", port, keepalive_s=keepalive_s), inbox=inbox, clock=SystemClock())
    task = asyncio.create_task(link.run())
    try:
        await until(lambda: link.state.connected or task.done())
        yield link, inbox
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds) -> None:
    async with asyncio.timeout(GUARD_S):
        while not holds():  # noqa: ASYNC110  # a state to look at, no event
            await asyncio.sleep(0.01)


async def taken(inbox: Inbox, count: int) -> list:
    found: list = []
    async with asyncio.timeout(GUARD_S):
        while len(found) < count:
            found += await inbox.take(timeout_s=GUARD_S)
    return found


async def test_messages_in_any_pieces_are_the_messages_and_all_are_acknowledged_when_told():
    rng = random.Random(11)
    payloads = [rng.randbytes(rng.choice([0, 1, 90, 127, 128, 20_000])) for _ in range(60)]
    data = b"".join(
        packets.publish(TOPIC, payload, packet_id=number, retain=False, protocol=5)
        for number, payload in enumerate(payloads, start=1)
    )
    async with Spoken() as broker, linked(broker.port) as (link, inbox):
        assert broker.writer is not None
        at = 0
        while at < len(data):
            step = rng.choice([1, 2, 3, 50, 3_000, 60_000])
            broker.writer.write(data[at : at + step])
            await asyncio.sleep(0)
            at += step
        heard = await taken(inbox, len(payloads))
        assert [delivery.raw.payload for delivery in heard] == payloads
        assert {delivery.raw.device for delivery in heard} == {"bowl-max"}
        link.acknowledge(heard)
        await until(lambda: broker.acknowledged == list(range(1, len(payloads) + 1)))


async def test_a_full_inbox_stops_the_reading_and_nothing_is_lost_or_out_of_order():
    """Also what came in the same piece as the message that found no room."""
    payloads = [str(number).encode() for number in range(500)]
    data = b"".join(packets.publish(TOPIC, each, packet_id=1, retain=False, protocol=5) for each in payloads)
    async with Spoken() as broker, linked(broker.port, capacity=7) as (_, inbox):
        assert broker.writer is not None
        broker.writer.write(data)
        await until(lambda: inbox.room == 0)
        await asyncio.sleep(0.05)
        assert inbox.room == 0
        heard = []
        while len(heard) < len(payloads):
            more = await inbox.take(timeout_s=GUARD_S)
            assert 1 <= len(more) <= 7
            heard += more
        assert [delivery.raw.payload for delivery in heard] == payloads


async def test_a_flood_of_qos_0_waits_in_the_socket_and_comes_in_order(tmp_path):
    with Mosquitto(tmp_path / "broker") as broker:
        async with linked(broker.port, capacity=5) as (_, inbox):
            client = paho.Client(CallbackAPIVersion.VERSION2, client_id="flood")
            client.connect("127.0.0.1", broker.port)
            client.loop_start()
            for number in range(300):
                client.publish(TOPIC, str(number), qos=0)
            client.publish(TOPIC, "last", qos=1).wait_for_publish(GUARD_S)
            client.disconnect()
            client.loop_stop()
            heard = await taken(inbox, 301)
    assert [delivery.raw.payload.decode() for delivery in heard] == [*map(str, range(300)), "last"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\x30\xff\xff\xff\xff\x01", "no MQTT"),  # a length without end
        (frame(0x32, b"\x00\xff"), "no MQTT"),  # a topic longer than its message
        (frame(0x34, b"\x00\x01a\x00\x01\x00"), "no MQTT"),  # QoS 2, which nobody asked for
        (frame(0x32, b"\x00\x01a\x00\x01\x09"), "no MQTT"),  # properties that end behind the packet
        (b"\xf0\x00", "no MQTT"),  # AUTH
        (b"\xe0\x01\x8b", "server shutting down"),
        (b"\xe0\x07\x97\x05\x1f\x00\x02no", "quota exceeded: no"),
    ],
)
async def test_a_broker_that_speaks_nonsense_or_says_goodbye_is_left_and_tried_again(said, why, caplog):
    async with Spoken() as broker, linked(broker.port) as (link, inbox):
        assert broker.writer is not None
        broker.writer.write(packets.publish(TOPIC, b"x", packet_id=1, retain=False, protocol=5) + said)
        await until(lambda: link.state.lost == 1 and broker.connects == 2 and link.state.connected)
        assert why in caplog.text  # the state itself is clean again once the link stands
        assert [delivery.raw.payload for delivery in await taken(inbox, 1)] == [b"x"]


async def test_a_broker_that_falls_silent_is_left_within_two_keepalives():
    async with Spoken() as broker:
        broker.answers_pings = False
        async with linked(broker.port, keepalive_s=1) as (link, _):
            await until(lambda: link.state.lost == 1)
            assert broker.pings >= 2
            broker.answers_pings = True
            await until(lambda: broker.connects == 2 and link.state.connected)


async def test_a_broker_that_answers_pings_is_kept():
    async with Spoken() as broker, linked(broker.port, keepalive_s=1) as (link, _):
        await until(lambda: broker.pings >= 5)
        assert link.state.connected
        assert broker.connects == 1


async def test_no_more_is_published_than_the_broker_takes_and_of_each_mark_the_newest():
    connack = b"\x20\x06\x00\x00\x03\x21\x00\x02"
    async with Spoken(connack=connack) as broker, linked(broker.port) as (link, _):
        await until(lambda: len(broker.published) == 1)  # online
        for seq in range(1, 5):
            link.publish_marks({f"bowl-{n}": {1: seq} for n in range(6)})
        await asyncio.sleep(0.1)
        assert len(broker.published) == 2
        assert broker.writer is not None
        while True:
            waiting = broker.published[-2:]
            broker.writer.write(packets.acknowledgements([message.packet_id for message in waiting]))
            before = len(broker.published)
            await asyncio.sleep(0.1)
            assert len(broker.published) <= before + 2
            if len(broker.published) == before:
                break
        told = [(message.topic.decode(), wire.unpack_mark(message.payload)) for message in broker.published[1:]]
    assert told[0] == (wire.mark_topic("bowl-0"), {1: 1})
    assert sorted(told[1:]) == [(wire.mark_topic(f"bowl-{n}"), {1: 4}) for n in range(6)]


async def test_where_leave_cannot_be_taken_the_will_tells_it():
    """The broker has as much unacknowledged as it takes, so "offline" cannot be published: no DISCONNECT."""
    connack = b"\x20\x06\x00\x00\x03\x21\x00\x01"
    async with Spoken(connack=connack) as broker:
        async with linked(broker.port):
            await until(lambda: len(broker.published) == 1)
            assert broker.writer is not None
        await until(lambda: broker.writer is not None and broker.writer.is_closing())
    assert [message.payload for message in broker.published] == [wire.LINK_ONLINE]


async def test_a_refusal_is_said_in_words():
    async with Spoken(connack=b"\x20\x03\x00\x87\x00") as broker:
        link = MqttLink(MqttSettings("127.0.0.1", broker.port), inbox=Inbox(capacity=1), clock=SystemClock())
        task = asyncio.create_task(link.run())
        await until(lambda: link.state.lost >= 1)
        assert "must accept the connection, answered: not authorised" in link.state.trouble
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
