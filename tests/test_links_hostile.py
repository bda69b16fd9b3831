"""The link against brokers that break clauses, fall silent, take nothing, send too much or put it out.

Each says what it is told over a real socket; where mosquitto can be brought to do it, it is mosquitto.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Self

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from firmware_bridge import wire
from gateway.links import mqtt_packets as packets
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.mqtt import MqttLink, MqttSettings
from tests.brokers import Mosquitto, free_port, settled
from tests.test_links_packets import TOPIC, taken, until

GUARD_S = 20
CONNACKS = {5: b"\x20\x03\x00\x00\x00", 311: b"\x20\x02\x00\x00"}
SUBACKS = {5: b"\x90\x04\x00\x01\x00\x01", 311: b"\x90\x03\x00\x01\x01"}
PUBLISH_5 = packets.publish(TOPIC, b"x", packet_id=7, retain=False, protocol=5)
PUBLISH_311 = packets.publish(TOPIC, b"x", packet_id=7, retain=False, protocol=311)
AT_QOS_0 = b"\x30\x04\x00\x01ax"


class Said:
    """A listener that answers CONNECT and SUBSCRIBE with these bytes, and then says nothing by itself.

    ``reads`` False: it never reads what it is told after SUBSCRIBE.
    """

    def __init__(
        self,
        *,
        connack: bytes = CONNACKS[5],
        suback: bytes = SUBACKS[5],
        reads: bool = True,
        host: str = "127.0.0.1",
        port: int | None = None,
    ) -> None:
        self.host, self.port = host, free_port() if port is None else port
        self.heard = b""
        self.connects = 0
        self._connack, self._suback, self._reads = connack, suback, reads
        self.writer: asyncio.StreamWriter
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await settled(self._server)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._tasks.values():  # also of a task that ended before it began
            writer.transport.abort()
        await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks[asyncio.create_task(self._serve(reader, writer))] = writer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connects += 1
        self.writer = writer
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await reader.read(4096)
            writer.write(self._connack)
            await reader.read(4096)
            writer.write(self._suback)
            while self._reads and (more := await reader.read(65_536)):
                self.heard += more
            if not self._reads:
                await asyncio.sleep(3600)
        writer.transport.abort()


@contextlib.asynccontextmanager
async def linked(settings: MqttSettings, *, inbox: Inbox | None = None, wait: bool = True):
    """A link that runs; once it is connected, or failed."""
    inbox = Inbox(capacity=1_000) if inbox is None else inbox
    link = MqttLink(settings, inbox=inbox, clock=SystemClock())
    task = asyncio.create_task(link.run())
    try:
        if wait:
            await until(lambda: link.state.connected or link.state.lost or task.done())
        yield link, inbox
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def why_left(caplog: pytest.LogCaptureFixture) -> str:
    """Why the link was first left, as the log keeps it: the state is clean again once the next one stands."""
    return next(str(record.args[0]) for record in caplog.records if record.msg.startswith("no link to the broker"))


def to(port: int, **settings) -> MqttSettings:
    return MqttSettings("127.0.0.1", port, connect_s=2.0, **settings)


# --- clauses --------------------------------------------------------------------------------------


async def test_packets_cut_at_every_byte_are_the_same_packets():
    data = PUBLISH_5 + AT_QOS_0[:-1] + b"\x00" + b"\xd0\x00" + b"\x40\x04\x00\x09\x10\x00" + PUBLISH_5
    async with Said() as broker, linked(to(broker.port)) as (link, inbox):
        for cut in range(1, len(data)):
            broker.writer.write(data[:cut])
            await asyncio.sleep(0.002)
            broker.writer.write(data[cut:])
            await asyncio.sleep(0.002)
        heard = await taken(inbox, 3 * (len(data) - 1))
        assert link.state.lost == 0
    assert [one.packet_id for one in heard] == [7, 0, 7] * (len(data) - 1)


WRONG = {
    "a length of five digits": b"\x30\xff\xff\xff\xff\x01",
    "a message at QoS 3": b"\x36" + PUBLISH_5[1:],
    "a message at QoS 2": b"\x34" + PUBLISH_5[1:],
    "a message that comes again, at QoS 0": b"\x38" + AT_QOS_0[1:],
    "a message of id 0": PUBLISH_5.replace(b"\x00\x07\x00x", b"\x00\x00\x00x"),
    "a message without a topic": b"\x32\x06\x00\x00\x00\x01\x00x",
    "CONNECT": b"\x10\x02\x00\x00",
    "SUBSCRIBE": b"\x82\x05\x00\x01\x00\x00\x00",
    "UNSUBACK": b"\xb0\x02\x00\x01",
    "PUBREC": b"\x50\x02\x00\x01",
    "PINGREQ": b"\xc0\x00",
    "type 0": b"\x00\x00",
    "CONNACK again": CONNACKS[5],
    "SUBACK again": SUBACKS[5],
    "PUBACK with flags": b"\x42\x02\x00\x01",
    "PUBACK of id 0": b"\x40\x02\x00\x00",
    "PUBACK of one byte": b"\x40\x01\x00",
    "PINGRESP with a body": b"\xd0\x01\x00",
    "PINGRESP of 100 MB": b"\xd0\x80\x80\x80\x32",
    "PUBACK of 100 MB": b"\x40\x80\x80\x80\x32",
}


@pytest.mark.parametrize("said", WRONG.values(), ids=WRONG)
async def test_a_broken_clause_ends_the_connection_in_words_and_the_next_one_works(said, caplog):
    async with Said() as broker, linked(to(broker.port)) as (link, inbox):
        broker.writer.write(PUBLISH_5 + said + PUBLISH_5)
        await until(lambda: link.state.lost == 1 and broker.connects == 2 and link.state.connected)
        assert "no MQTT" in why_left(caplog)
        broker.writer.write(PUBLISH_5)
        heard = await taken(inbox, 2)
        assert [one.generation for one in heard] == [1, 2]
        link.acknowledge(heard)  # the first of them is of the connection that ended
        await until(lambda: broker.heard.endswith(b"\x40\x02\x00\x07"))
        assert broker.heard.count(b"\x40\x02\x00\x07") == 1


@pytest.mark.parametrize(
    ("settings", "connack", "suback", "why"),
    [
        ({}, PUBLISH_5 + CONNACKS[5], SUBACKS[5], "first packet must answer CONNECT"),
        ({}, SUBACKS[5], b"", "first packet must answer CONNECT"),
        ({}, b"\xd0\x00", b"", "first packet must answer CONNECT"),
        ({}, b"\x21\x03\x00\x00\x00", b"", "first packet must answer CONNECT"),
        ({}, b"\x20\x03\x02\x00\x00", b"", "flags 0 or 1"),
        ({}, b"\x20\x02\x00\x01", b"", "unacceptable protocol version"),
        ({"protocol": 311}, b"\x20\x03\x00\x00\x00", b"", "flags 0 or 1"),
        *(
            ({"protocol": 311}, bytes((0x20, 2, 0, code)), b"", said)
            for code, said in enumerate(
                [
                    "unacceptable protocol version",
                    "client id rejected",
                    "server unavailable",
                    "bad user name or password",
                    "not authorised",
                    "reason code 6",
                ],
                start=1,
            )
        ),
        ({}, CONNACKS[5], b"\x90\x04\x00\x01\x00\x80", "must grant what is subscribed to"),
        ({}, CONNACKS[5], b"\x90\x03\x00\x01\x00", "filter by filter"),
        ({}, CONNACKS[5], b"\x90\x05\x00\x01\x00\x01\x01", "filter by filter"),
        ({}, CONNACKS[5], b"\x90\x04\x00\x02\x00\x01", "filter by filter"),
        ({}, CONNACKS[5], b"\x90\x04\x00\x01\x00\x02", "granted at 0 or 1"),
        ({"protocol": 311}, CONNACKS[311], b"\x90\x03\x00\x01\x80", "must grant what is subscribed to"),
        ({"protocol": 311}, CONNACKS[311], b"\x90\x02\x00\x01", "filter by filter"),
        ({"protocol": 311}, CONNACKS[311], SUBACKS[311] + b"\xe0\x00", "without a DISCONNECT"),
        ({}, b"", b"", "must answer CONNECT (mqtt.protocol 5) within 2 s"),
        ({}, CONNACKS[5], b"", "must answer SUBSCRIBE within 2 s"),
    ],
)
async def test_a_broker_that_answers_wrongly_or_never_is_said_in_words(settings, connack, suback, why):
    async with Said(connack=connack, suback=suback) as broker:  # noqa: SIM117
        async with linked(to(broker.port, **settings), wait=False) as (link, inbox):
            assert link.state.alarms == ()
            await until(lambda: link.state.lost)  # once or, after a short back-off, twice
            assert why in link.state.trouble
            assert link.state.alarms[0].startswith("The hub has no link to its broker, and tries again: ")
            assert inbox.room == 1_000


@pytest.mark.parametrize("protocol", [5, 311])
async def test_a_session_that_was_kept_is_taken_up(protocol):
    """Session present, and its messages before SUBACK."""
    message = PUBLISH_5 if protocol == 5 else PUBLISH_311
    connack = CONNACKS[protocol].replace(b"\x00", b"\x01", 1)
    async with Said(connack=connack + message, suback=message + SUBACKS[protocol]) as broker:  # noqa: SIM117
        async with linked(to(broker.port, protocol=protocol)) as (link, inbox):
            heard = await taken(inbox, 2)
            link.acknowledge(heard)
            await until(lambda: broker.heard.count(b"\x40\x02\x00\x07") == 2)
            assert link.state.lost == 0


@pytest.mark.parametrize("topic", [b"scentwalk/1/#/up", b"a\x00b", b"\xff\xfe", b"x" * 60_000, "\u202edog".encode()])
async def test_a_topic_that_no_broker_should_let_pass_is_handed_over_once_and_not_asked_for_again(topic):
    async with Said() as broker, linked(to(broker.port)) as (link, inbox):
        broker.writer.write(b"\x32" + packets._varied(len(topic) + 6) + len(topic).to_bytes(2, "big") + topic)
        broker.writer.write(b"\x00\x07\x00x")
        (heard,) = await taken(inbox, 1)
        assert len(heard.raw.device) <= 1_000
        assert link.state.lost == 0


async def test_what_a_broker_says_of_itself_is_shown_short_and_without_signs_that_move_a_line(caplog):
    text = b"a\nb\x1b[31m\xe2\x80\xae" + b"z" * 60_000
    properties = b"\x1f" + len(text).to_bytes(2, "big") + text
    body = b"\x97" + packets._varied(len(properties)) + properties
    async with Said() as broker, linked(to(broker.port)) as (link, _):
        broker.writer.write(b"\xe0" + packets._varied(len(body)) + body)
        await until(lambda: link.state.lost == 1)
        assert why_left(caplog).startswith("quota exceeded: ab[31mzz")
        assert why_left(caplog).isprintable()
        assert len(why_left(caplog)) < 300


# --- too much -------------------------------------------------------------------------------------


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


@pytest.mark.parametrize("step", [4_000, 262_144, 5_000_000])
async def test_a_message_of_a_hundred_megabytes_is_cut_and_acknowledged_and_what_follows_is_read(step):
    size = 100_000_000
    head = b"\x32" + packets._varied(size) + PUBLISH_5[2 : 2 + 2 + len(TOPIC)] + b"\x00\x09\x00"
    left = size - (len(head) - 5)
    async with Said() as broker, linked(to(broker.port)) as (link, inbox):
        before = resident_mib()
        broker.writer.write(PUBLISH_5 + head)
        while left:
            broker.writer.write(b"z" * min(step, left))
            left -= min(step, left)
            await broker.writer.drain()
        broker.writer.write(PUBLISH_5)
        first, long, last = await taken(inbox, 3)
        assert resident_mib() - before < 40
        assert (first.packet_id, long.packet_id, last.packet_id) == (7, 9, 7)
        assert len(first.raw.payload) == len(last.raw.payload) == 1
        assert set(long.raw.payload) == {ord("z")}
        assert wire.MAX_MESSAGE_BYTES < len(long.raw.payload) < 2**20
        link.acknowledge([long])
        await until(lambda: broker.heard.endswith(b"\x40\x02\x00\x09"))
        assert link.state.lost == 0


async def test_long_messages_that_wait_are_bounded_by_their_bytes_too():
    message = packets.publish(TOPIC, b"z" * 1_000_000, packet_id=7, retain=False, protocol=5)
    async with Said() as broker, linked(to(broker.port)) as (_, inbox):
        for _ in range(40):
            broker.writer.write(message)
        await until(lambda: inbox.room == 0)
        heard = await inbox.take(timeout_s=GUARD_S)
        assert 8 <= len(heard) <= 10
        assert len(await taken(inbox, 40 - len(heard))) == 40 - len(heard)


async def test_acknowledgements_nobody_reads_stop_the_reading_and_end_in_words(caplog):
    """Else they would grow without bound: a broker that sends for ever and never reads."""
    async with Said(reads=False) as broker, linked(to(broker.port, keepalive_s=2)) as (link, inbox):
        broker.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sent = heard = 0
        chunk = PUBLISH_5 * 5_000
        waiting: list[int] = []
        while link.state.lost == 0:
            if broker.writer.transport.get_write_buffer_size() < len(chunk):
                with contextlib.suppress(OSError):
                    broker.writer.write(chunk)
                    sent += 5_000
            more = await inbox.take(timeout_s=0.05)
            heard += len(more)
            link.acknowledge(more)
            connection = link._connection
            if connection is not None and connection._transport is not None:
                waiting.append(connection._transport.get_write_buffer_size())
            assert sent < 20_000_000
        assert max(waiting) < 200_000
        assert "took nothing of what was said to it" in why_left(caplog)


async def test_a_hundred_thousand_messages_before_a_slow_writer_stay_in_the_broker(tmp_path):
    """Memory is bounded, nothing is lost, and the order stands."""
    count = 100_000
    with Mosquitto(tmp_path / "broker", "max_queued_messages 0") as broker:
        inbox = Inbox(capacity=80)
        async with linked(to(broker.port), inbox=inbox) as (link, _):

            def flood() -> None:
                client = paho.Client(CallbackAPIVersion.VERSION2, client_id="flood")
                client.max_inflight_messages_set(1000)
                client.connect("127.0.0.1", broker.port)
                client.loop_start()
                for number in range(count):
                    last = client.publish(TOPIC, str(number).rjust(100), qos=1 if number % 10 == 0 else 0)
                client.publish(TOPIC, "end", qos=1).wait_for_publish(120)
                last.wait_for_publish(60)
                client.disconnect()
                client.loop_stop()

            flooding = asyncio.create_task(asyncio.to_thread(flood))
            await until(lambda: inbox.room == 0)
            seen: list[int] = []
            largest = 0
            ended = False
            while not ended:
                more = await inbox.take(timeout_s=60)
                largest = max(largest, len(more))
                await asyncio.sleep(0.001)
                link.acknowledge(more)
                for one in more:
                    ended = ended or one.raw.payload == b"end"
                    if one.raw.payload != b"end":
                        seen.append(int(one.raw.payload))
            await flooding
            assert largest <= 80
            assert len(seen) == len(set(seen))  # what comes at QoS 0 may overtake the rest, at the broker
            for part in ([one for one in seen if one % 10], [one for one in seen if one % 10 == 0]):
                assert part == sorted(part)
            assert set(range(0, count, 10)) <= set(seen)
            assert link.state.lost == 0


# --- put out, refused, unreachable ----------------------------------------------------------------


@pytest.mark.parametrize("protocol", [5, 311])
async def test_two_hubs_of_one_id_put_each_other_out_ever_more_seldom_and_say_why(tmp_path, protocol):
    with Mosquitto(tmp_path / "broker") as broker:
        settings = to(broker.port, protocol=protocol)
        async with linked(settings) as (first, _), linked(settings) as (second, _):
            troubles: list[str] = []

            def told() -> bool:
                troubles.extend(link.state.trouble for link in (first, second))
                return any("does another client call itself 'hub'?" in each for each in troubles)

            await until(told)
            await asyncio.sleep(8)
            assert first.state.lost + second.state.lost < 40  # several a second before


async def test_a_broker_that_says_who_put_the_hub_out_is_quoted(caplog):
    async with Said() as broker, linked(to(broker.port)) as (link, _):
        broker.writer.write(b"\xe0\x01\x8e")
        await until(lambda: link.state.lost == 1)
        assert why_left(caplog) == "session taken over by another client of the same id"


async def test_a_connection_that_stood_is_no_failed_try():
    async with Said() as broker, linked(to(broker.port, stood_s=0.0)) as (link, _):
        for number in range(1, 8):
            await until(lambda: link.state.connected)
            broker.writer.transport.abort()
            await until(lambda wanted=number: link.state.lost == wanted)
            assert "another client" not in link.state.trouble


async def test_what_the_broker_will_not_let_the_hub_say_is_told(tmp_path):
    acl = tmp_path / "acl"
    acl.write_text(f"topic read scentwalk/#\ntopic write {wire.link_topic('hub')}\n")
    with Mosquitto(tmp_path / "broker", f"acl_file {acl}") as broker:
        async with linked(to(broker.port)) as (link, _):
            link.publish_marks({"bowl-max": {1: 5}})
            await until(lambda: bool(link.state.unsaid))
            assert link.state.unsaid == (f"{wire.mark_topic('bowl-max')} (not authorised)",)
            assert link.state.alarms == (f"The broker does not let the hub say {link.state.unsaid[0]}.",)
            link.publish_marks({"bowl-max": {1: 6}})
            await asyncio.sleep(0.2)
            assert len(link.state.unsaid) == 1


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (("max_qos 0",), "QoS not supported"),
        (("retain_available false",), "retain not supported"),
        (("allow_anonymous false",), "not authorised"),
    ],
)
async def test_what_a_real_broker_does_not_allow_is_said_in_its_words(tmp_path, lines, why):
    with Mosquitto(tmp_path / "broker", *lines) as broker:
        async with linked(to(broker.port), wait=False) as (link, _):
            await until(lambda: link.state.lost >= 1)
            assert why in link.state.trouble


@pytest.mark.parametrize("window", [1, 5, 65_535])
async def test_any_window_of_the_broker_brings_everything(tmp_path, window):
    with Mosquitto(tmp_path / "broker", f"max_inflight_messages {window}") as broker:
        async with linked(to(broker.port, inflight=1000)) as (link, inbox):
            client = paho.Client(CallbackAPIVersion.VERSION2, client_id="sender")
            client.max_inflight_messages_set(1)
            client.connect("127.0.0.1", broker.port)
            client.loop_start()
            for number in range(50):
                client.publish(TOPIC, str(number), qos=(1, 2)[number % 2], retain=number == 49)
            heard = []
            while len(heard) < 50:
                more = await inbox.take(timeout_s=GUARD_S)
                assert more
                link.acknowledge(more)
                heard += more
            client.disconnect()
            client.loop_stop()
    assert sorted(int(one.raw.payload) for one in heard) == list(range(50))
    assert {one.qos for one in heard} == {1}  # QoS 2 comes down to what was subscribed to


@pytest.mark.parametrize("protocol", [5, 311])
async def test_a_password_of_any_letters_is_let_in_and_a_wrong_one_is_not(tmp_path, protocol):
    users = tmp_path / "users"
    users.touch()
    password = " pässwörd \u200f\U0001f415 "
    command = ["mosquitto_passwd", "-b", str(users), "hüb", password]
    await asyncio.to_thread(subprocess.run, command, check=True)
    users.chmod(0o644)
    with Mosquitto(tmp_path / "broker", "allow_anonymous false", f"password_file {users}") as broker:
        right = to(broker.port, protocol=protocol, username="hüb", password=password)
        async with linked(right) as (link, _):
            assert link.state.connected
        for wrong in (replace(right, password="x"), replace(right, username="hub"), replace(right, password=None)):
            async with linked(wrong) as (link, _):
                assert not link.state.connected
                assert "not authorised" in link.state.trouble or "user name" in link.state.trouble


async def test_a_name_whose_first_address_nobody_answers_at_is_reached_by_its_second():
    """A home's router names an IPv6 address that leads nowhere: the time for TCP must not go into it."""
    port = free_port()
    with contextlib.ExitStack() as opened:
        deaf = opened.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6, backlog=0))
        for _ in range(4):  # its queue is full: a further SYN is dropped
            filler = opened.enter_context(socket.socket(socket.AF_INET6))
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        async with Said(port=port), linked(replace(to(port), host="localhost")) as (link, _):
            assert link.state.connected, link.state.trouble


async def test_a_broker_that_has_ipv6_alone_is_reached():
    async with Said(host="::1") as broker, linked(replace(to(broker.port), host="::1")) as (link, _):
        assert link.state.connected, link.state.trouble


@pytest.mark.parametrize(
    ("host", "why"), [("no-such-host.invalid", "must listen at no-such-host.invalid"), ("a" * 64 + ".home", "label")]
)
async def test_a_name_that_leads_nowhere_is_said(host, why):
    async with linked(replace(to(free_port()), host=host)) as (link, _):
        assert why in link.state.trouble


async def test_a_hub_that_is_told_to_end_ends_at_any_moment():
    """Before the answer, before the subscription, connected, and with a peer that takes nothing."""
    for connack, suback in ((b"", b""), (CONNACKS[5], b""), (CONNACKS[5], SUBACKS[5])):
        async with Said(connack=connack, suback=suback, reads=False) as broker:
            link = MqttLink(to(broker.port), inbox=Inbox(capacity=1), clock=SystemClock())
            task = asyncio.create_task(link.run())
            await until(lambda broker=broker: broker.connects == 1)
            await asyncio.sleep(0.1)
            task.cancel()
            async with asyncio.timeout(5):
                await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
