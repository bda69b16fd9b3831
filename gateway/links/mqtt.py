"""The MQTT link: keeps one subscription alive, hands messages over, acknowledges when told.

A message is acknowledged only by `acknowledge`, which ingest calls after its commit. Every
connection has an object and a number of its own, so that a packet id of one connection
can never be acknowledged on another. Sessions are persistent: what was not acknowledged
comes again. The protocol version is configuration, never probed: the embedded broker closes
a version 5 CONNECT without a word.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from firmware_bridge import wire
from gateway.errors import BrokerError
from gateway.links.clock import Clock
from gateway.links.inbox import Delivery, Inbox
from gateway.links.mqtt_packets import (
    CONNACK,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBLISH,
    SUBACK,
    Granted,
    PacketError,
    Will,
    acknowledgements,
    connect,
    disconnect,
    is_refused,
    packets,
    publish,
    read_connack,
    read_disconnect,
    read_puback,
    read_publish,
    read_suback,
    reason,
    shortened,
    subscribe,
)
from gateway.links.profiled import ReplyMessage
from gateway.model import RawFrame

__all__ = ["LinkState", "MqttLink", "MqttSettings"]

_log = logging.getLogger(__name__)
_PROTOCOLS = (5, 311)
_SESSION_EXPIRY_S = 7 * 86_400  # a hub that was off for a week still gets what waited
_BACKOFF_FIRST_S = 0.2
_BACKOFF_MOST_S = 30.0
_SHORT_ONES = 3  # of them: MQTT 3.1.1 does not say that it was another client of the same id
_LEAVE_S = 1.0  # Ctrl-C ends everything within 3 s
_SECOND_ADDRESS_S = 0.25  # RFC 8305: a name's IPv6 address that nobody answers at must not use up the time
_MOST_UNACKNOWLEDGED = 20
"""Publishes of ours under way; fewer where the broker asks for it. Marks wait by device, the newest alone."""
_REPLIES_WAITING = 1_000
_MOST_PACKET = 2 * 2**20
_KEPT_OF_LONGER = 2**19
"""Bytes: a longer message (MQTT allows 256 MiB) would fill the hub's memory before anybody judged it. Its
beginning is kept, more than a dead letter holds; the rest is dropped as it comes. Refusing it instead
would end every connection: a broker sends again what was not acknowledged."""
_UNSAID_TOLD = 5  # topics named on the page
_ACKNOWLEDGE_AT_ONCE: int | None = getattr(socket, "TCP_QUICKACK", None)
"""mosquitto holds the rest of a burst back until what it sent is acknowledged (Nagle), and Linux would
acknowledge up to 40 ms later, since nothing is sent in between (4,700 messages a second, 7,400 so).
"""


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """How to reach the broker.

    Attributes
    ----------
    host, port
        TCP address.
    protocol : int
        5, or 311 (the embedded broker).
    client_id : str
        Names the persistent session, and the hub on its own link topic.
    inflight : int
        Messages the broker may send ahead of their acknowledgement (v5: ``receive_maximum``).
    keepalive_s : int
        Idle seconds before a ping; a silent peer is dropped after one and a half of them.
    tls_ca : Path or None
        The certificate authority that signed the broker's certificate; None speaks in the clear.
    connect_s : float
        The longest wait for each of TCP, CONNACK and SUBACK.
    stood_s : float
        A connection that ends sooner is a failed try: two hubs of one id would else put each other out
        several times a second for ever. Longer than the longest wait, which a rival keeps too.
    filters : tuple of str
        What is subscribed to: Wire 1, or the topics of other makers' devices.
    """

    host: str
    port: int
    protocol: int = 5
    client_id: str = "hub"
    inflight: int = 20
    keepalive_s: int = 30
    connect_s: float = 5.0
    stood_s: float = 60.0
    username: str | None = None
    password: str | None = None
    tls_ca: Path | None = None
    filters: tuple[str, ...] = (wire.UP_FILTER,)

    def __post_init__(self) -> None:
        if self.protocol not in _PROTOCOLS:
            raise ValueError(f"mqtt.protocol must be 5 or 311, is {self.protocol}")
        if not 1 <= self.inflight <= 65_535:
            raise ValueError(f"mqtt.inflight must be 1 to 65535 messages, is {self.inflight}")
        if not self.filters:
            raise ValueError("an MQTT link must subscribe to at least one topic, is given none")
        for name, text in (("username", self.username or ""), ("password", self.password or "")):
            if len(text.encode()) > 0xFFFF:
                raise ValueError(f"mqtt.{name} must be at most 65535 bytes, has {len(text.encode())}")
        if not wire.is_device_id(self.client_id):
            raise ValueError(f"mqtt.client_id must be 1 to 32 of a-z 0-9 _ -, is {self.client_id!r}")


@dataclass(frozen=True, slots=True)
class LinkState:
    """For the page: whether the link stands, since when, how often it was lost, and why last; and what
    the broker would not let it hear, or say (MQTT 5 tells; 3.1.1 has no words for it).
    """

    connected: bool = False
    since_ms: int | None = None
    lost: int = 0
    trouble: str = ""
    ungranted: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[str, ...]:
        """Sentences for the top of every page; none while all is well, or before the first try has ended."""
        if not self.connected:
            return (f"The hub has no link to its broker, and tries again: {self.trouble}.",) if self.lost else ()
        return (
            *(f"The broker does not let the hub hear {name}." for name in self.ungranted),
            *(f"The broker does not let the hub say {name}." for name in self.unsaid),
        )


@lru_cache(maxsize=1024)  # a home's devices say a lot; checking a name takes 3 us
def _device_of(topic: bytes) -> str:
    """Whose topic it is: the device's id, else the topic itself, else nothing (a topic must be UTF-8)."""
    try:
        named = topic.decode()
    except UnicodeDecodeError:  # a broker should not have let it pass
        return ""
    return wire.device_of(named) or named[:1000]


class _Connection(asyncio.Protocol):
    """One connection to the broker, on the event loop: bytes in, deliveries out, and back.

    A client of our own, since messages are read here in runs: one read of the socket holds
    hundreds of them under load, and their acknowledgements leave as one write.
    """

    def __init__(self, settings: MqttSettings, *, generation: int, inbox: Inbox, clock: Clock) -> None:
        self._settings = settings
        self.generation = generation
        self._inbox = inbox
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self.accepted: asyncio.Future[None] = self._loop.create_future()
        self.subscribed: asyncio.Future[None] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self.ungranted: tuple[str, ...] = ()
        self.when_less: Callable[[], None] = lambda: None
        """Called when the broker has acknowledged something: there may be room for more."""
        self.when_refused: Callable[[str], None] = lambda _: None
        """Called with the topic, and why, where it would not take a message."""
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket
        self._pieces: list[bytes] = []
        self._missing = 2
        self._reason = ""
        self._passing_by = 0
        self._paused = False
        self._choked = False
        self._unacknowledged: dict[int, str] = {}
        self._subscription = 0
        self._most_unacknowledged = _MOST_UNACKNOWLEDGED
        self._last_id = 0
        self._keepalive_s = settings.keepalive_s
        self._silent_beats = 0
        self._beat: asyncio.TimerHandle | None = None

    # -- what comes ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._socket = transport.get_extra_info("socket")

    def data_received(self, data: bytes) -> None:
        self._silent_beats = 0
        if _ACKNOWLEDGE_AT_ONCE is not None:  # Linux forgets it after a while
            self._socket.setsockopt(socket.IPPROTO_TCP, _ACKNOWLEDGE_AT_ONCE, 1)
        if self._passing_by:
            gone = min(self._passing_by, len(data))
            self._passing_by -= gone
            data = data[gone:]
            if self._passing_by:
                return
        if self._paused or self._choked or len(data) < self._missing:  # a long packet is not looked at by pieces
            self._pieces.append(data)
            self._missing -= len(data)
            return
        self._read(b"".join((*self._pieces, data)) if self._pieces else data)

    def _read(self, data: bytes) -> None:
        """Take in the packets of ``data`` that are whole, as far as the inbox has room; keep the rest."""
        try:
            at, ends = self._take_in(data)
            rest = data[at:] if at < len(data) else b""
            if ends - at > _MOST_PACKET:
                rest, ends = self._kept_of(rest, ends - at)
                at = 0
        except PacketError as problem:
            rest, at, ends = b"", 0, 2
            self._give_up(f"it sent what is no MQTT: {problem}")
        self._pieces = [rest] if rest else []
        self._missing = ends - at - len(rest)

    def _kept_of(self, begun: bytes, size: int) -> tuple[bytes, int]:
        """What is kept of a packet that is too long to be kept whole, and how many bytes that wants."""
        if begun[0] & 0xF0 != PUBLISH:
            raise PacketError(f"what is no message must be short, has {size} bytes")
        if len(begun) < _KEPT_OF_LONGER:
            return begun, _KEPT_OF_LONGER
        _log.warning("a message of %d bytes is too long, the rest of it is not kept", size)
        self._passing_by = size - len(begun)
        short = shortened(begun, 0, _KEPT_OF_LONGER - 5)  # its own first byte and length
        return short, len(short)

    def _take_in(self, data: bytes) -> tuple[int, int]:
        """Where the first packet that was not taken in begins and ends."""
        protocol, inbox = self._settings.protocol, self._inbox
        received_ms, room = self._clock.now_ms(), inbox.room
        if data and not self.accepted.done() and data[0] != CONNACK:
            raise PacketError(f"the first packet must answer CONNECT, is of type {data[0] >> 4}")
        for at, body, ends in packets(data):
            if body == 0:
                return at, ends
            if data[at] & 0xF0 != PUBLISH:
                self._told(data[at], data[body:ends])
                if self._reason:  # it is left: what else came is not looked at
                    return len(data), len(data) + 2
                continue
            if room < 1:  # what is not read fills the socket, and the broker slows down
                self._paused = True
                self._writing().pause_reading()
                inbox.when_room(self._go_on)
                return at, ends
            topic, payload, qos, packet_id, retained = read_publish(data, at, body, ends, protocol=protocol)
            raw = RawFrame("mqtt", _device_of(topic), received_ms, payload)
            room = inbox.put(Delivery(raw, self.generation, packet_id, qos, retained))
        raise AssertionError("packets must end with what is not whole")

    def _go_on(self) -> None:
        """The inbox has room, or the broker takes what is said again: what was read already comes first."""
        self._paused = False
        if self._choked:
            return
        pieces = b"".join(self._pieces)
        self._writing().resume_reading()
        self._read(pieces)

    def pause_writing(self) -> None:
        """The broker reads nothing: nothing more of it is read either, or acknowledgements would pile up."""
        self._choked = True
        self._writing().pause_reading()

    def resume_writing(self) -> None:
        self._choked = False
        if not self._paused:
            self._go_on()

    def _told(self, kind: int, body: bytes) -> None:
        """A packet that is no message; ``kind`` is its first byte, whose lower bits must be 0 [2.1.3]."""
        protocol = self._settings.protocol
        if kind == PUBACK:
            packet_id, code = read_puback(body, protocol=protocol)
            topic = self._unacknowledged.pop(packet_id, None)
            if topic is not None and is_refused(code):
                self.when_refused(f"{topic} ({reason(code, protocol)})")
            self.when_less()
        elif kind == CONNACK and not self.accepted.done():
            self._answered(read_connack(body, protocol=protocol))
        elif kind == SUBACK:
            packet_id, codes = read_suback(body, protocol=protocol)
            if packet_id != self._subscription or self.subscribed.done() or len(codes) != len(self._settings.filters):
                raise PacketError(f"SUBSCRIBE must be answered once and filter by filter, is by {len(codes)} codes")
            self._granted(codes)
        elif kind == DISCONNECT:
            self._give_up(read_disconnect(body, protocol=protocol))
        elif kind != PINGRESP or body:
            raise PacketError(f"a broker must send what a client may get, sent a packet that begins with 0x{kind:02x}")

    def _answered(self, granted: Granted) -> None:
        """The broker's answer to CONNECT."""
        if granted.code:
            said = reason(granted.code, self._settings.protocol)
            self._settle(self.accepted, BrokerError(f"the broker must accept the connection, answered: {said}"))
            self._give_up(said)
            return
        self._most_unacknowledged = min(_MOST_UNACKNOWLEDGED, granted.receive_maximum)
        # A broker may want to hear of us sooner. It may not have us wait longer for it: that is our own question.
        told_s = granted.keepalive_s or self._keepalive_s
        self._keepalive_s = min(told_s, self._keepalive_s or told_s)
        if self._keepalive_s:
            self._beat = self._loop.call_later(self._keepalive_s / 2, self._on_beat)
        self._settle(self.accepted, None)

    def _granted(self, codes: tuple[int, ...]) -> None:
        named = zip(self._settings.filters, codes, strict=True)
        bad = [f"{name} ({reason(code, self._settings.protocol)})" for name, code in named if is_refused(code)]
        self.ungranted = tuple(bad)
        if len(bad) == len(self._settings.filters):
            self._settle(self.subscribed, BrokerError(f"the broker must grant what is subscribed to, refused {bad[0]}"))
        else:  # the devices it grants are heard, of the others the page tells
            self._settle(self.subscribed, None)

    def connection_lost(self, exc: Exception | None) -> None:
        said = self._reason or ("it closed without a word" if exc is None else str(exc))
        if self._beat is not None:
            self._beat.cancel()
        if self._paused:
            self._inbox.when_room(None)
        gone = BrokerError(
            f"the broker must keep the connection (mqtt.protocol is {self._settings.protocol}), closed it: {said}"
        )
        self._settle(self.accepted, gone)
        self._settle(self.subscribed, gone)
        self._settle(self.lost, said)

    def _settle(self, future: asyncio.Future[Any], result: object) -> None:
        """Settle what somebody may wait for; an error is raised to its waiter."""
        if future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(result)
            future.exception()  # counts as seen: whoever waits for it gets it all the same
        else:
            future.set_result(result)

    def _on_beat(self) -> None:
        """Every half keep-alive: a ping, and a broker that was silent for three of them is dead."""
        if self._choked or not self._paused:  # while the inbox is full, nothing is read and so nothing heard
            self._silent_beats += 1
        if self._silent_beats > 3:
            what = "it took nothing of what was said to it" if self._choked else "nothing was heard of it"
            self._give_up(f"{what} for {1.5 * self._keepalive_s:g} s")
            return
        self._writing().write(PINGREQ)
        self._beat = self._loop.call_later(self._keepalive_s / 2, self._on_beat)

    def _give_up(self, why: str) -> None:
        self._reason = self._reason or why
        self._writing().abort()

    # -- what goes -----------------------------------------------------------------------------------

    def _writing(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def acknowledge(self, packet_ids: Iterable[int]) -> None:
        """PUBACK these, in one write."""
        self._writing().write(acknowledgements(packet_ids))

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Publish at QoS 1; False where the broker has as much unacknowledged as it takes (`when_less`)."""
        if len(self._unacknowledged) >= self._most_unacknowledged:
            return False
        packet_id = self._next_id()
        self._unacknowledged[packet_id] = topic
        protocol = self._settings.protocol
        self._writing().write(publish(topic, payload, packet_id=packet_id, retain=retain, protocol=protocol))
        return True

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % 65_535 + 1
            if self._last_id not in self._unacknowledged:
                return self._last_id

    async def open(self) -> None:
        """TCP, CONNECT, SUBSCRIBE; each bounded by ``connect_s``."""
        settings = self._settings
        where = f"{settings.host}:{settings.port}"
        try:
            secured = None if settings.tls_ca is None else ssl.create_default_context(cafile=settings.tls_ca)
        except OSError as problem:  # ssl.SSLError is one
            raise BrokerError(f"mqtt.tls_ca must hold certificates (PEM), {settings.tls_ca}: {problem}") from problem
        try:
            async with asyncio.timeout(settings.connect_s):
                await self._loop.create_connection(
                    lambda: self,
                    settings.host,
                    settings.port,
                    ssl=secured,
                    happy_eyeballs_delay=_SECOND_ADDRESS_S,
                )
        except (OSError, UnicodeError) as problem:
            said = str(problem) or f"no answer within {settings.connect_s:g} s"
            raise BrokerError(f"an MQTT broker must listen at {where}: {said}") from problem
        hello = connect(
            settings.client_id,
            protocol=settings.protocol,
            keepalive_s=settings.keepalive_s,
            session_expiry_s=_SESSION_EXPIRY_S,
            receive_maximum=settings.inflight,
            will=Will(wire.link_topic(settings.client_id), wire.LINK_OFFLINE),
            username=settings.username,
            password=settings.password,
        )
        self._writing().write(hello)
        await self._within(self.accepted, f"{where} must answer CONNECT (mqtt.protocol {settings.protocol})")
        # QoS 2 lost messages over client restarts.
        self._subscription = self._next_id()
        self._writing().write(subscribe(self._subscription, settings.filters, protocol=settings.protocol))
        await self._within(self.subscribed, f"{where} must answer SUBSCRIBE")

    async def _within(self, future: asyncio.Future[None], what: str) -> None:
        try:
            await asyncio.wait_for(asyncio.shield(future), self._settings.connect_s)
        except TimeoutError:
            raise BrokerError(f"{what} within {self._settings.connect_s:g} s, it did not") from None

    async def close(self, *, politely: bool) -> None:
        """End the connection, with leave taken or by the will; nothing of it is acknowledged after."""
        if self._transport is None:
            return
        if politely:
            self._transport.write(disconnect())
            self._transport.close()
            await asyncio.wait((self.lost,), timeout=_LEAVE_S)  # a half-open peer takes no DISCONNECT
        self._transport.abort()
        await asyncio.wait((self.lost,))  # else its end would come after the next connection's beginning


class MqttLink:
    """The hub's link to its broker. `run` it in a task; everything else from the same loop.

    Parameters
    ----------
    settings : MqttSettings
    inbox : Inbox
        Where messages go.
    clock : Clock
        Stamps the arrival.
    """

    def __init__(self, settings: MqttSettings, *, inbox: Inbox, clock: Clock) -> None:
        self.settings = settings
        self.state = LinkState()
        self._inbox = inbox
        self._clock = clock
        self._connection: _Connection | None = None
        self._generation = 0
        self._marks: dict[str, dict[int, int]] = {}
        self._unpublished: set[str] = set()
        self._replies: deque[ReplyMessage] = deque(maxlen=_REPLIES_WAITING)

    async def run(self) -> None:
        """Stay connected until cancelled: full-jitter back-off, capped at 30 s."""
        failures = short = 0
        while True:
            try:
                async with self._connected() as connection:
                    begun_s = self._clock.steady_s()
                    why = await asyncio.shield(connection.lost)  # a cancelled wait must not end it
                short += 1
                if self._clock.steady_s() - begun_s >= self.settings.stood_s:
                    failures = short = 0
            except BrokerError as problem:
                why = str(problem)
            failures += 1
            if short >= _SHORT_ONES:
                why = (
                    f"{why} ({short} times soon after it was accepted: "
                    f"does another client call itself {self.settings.client_id!r}?)"
                )
            self.state = replace(self.state, lost=self.state.lost + 1, since_ms=self._clock.now_ms(), trouble=why)
            _log.warning("no link to the broker, trying again: %s", why)
            longest_s = min(_BACKOFF_MOST_S, _BACKOFF_FIRST_S * 2 ** min(failures, 16))
            await asyncio.sleep(random.uniform(0, longest_s))  # noqa: S311 (spreads reconnects, keeps no secret)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Connection]:
        self._generation += 1
        connection = _Connection(self.settings, generation=self._generation, inbox=self._inbox, clock=self._clock)
        connection.when_less = self._send_waiting
        connection.when_refused = self._on_refused
        # From here on: a session that waited sends its messages before it answers SUBSCRIBE.
        self._connection = connection
        try:
            await connection.open()
            self._replies.clear()
            now_ms, ungranted = self._clock.now_ms(), connection.ungranted
            self.state = replace(self.state, connected=True, since_ms=now_ms, ungranted=ungranted, unsaid=())
            _log.info("connected to the broker at %s:%d", self.settings.host, self.settings.port)
            self._say(wire.LINK_ONLINE)
            self.publish_marks(self._marks)  # a broker that lost its files knows none of them
            yield connection
        finally:
            stands = self.state.connected and not connection.lost.done()
            told = stands and self._say(wire.LINK_OFFLINE)
            self.state = replace(self.state, connected=False, since_ms=self._clock.now_ms(), ungranted=(), unsaid=())
            self._connection = None
            await connection.close(politely=told)  # where it could not be told, the will tells it

    def _on_refused(self, what: str) -> None:
        """The broker would not take a message of ours: nobody hears it, so the page says it."""
        if what not in self.state.unsaid:
            _log.warning("the broker does not let the hub say %s", what)
            self.state = replace(self.state, unsaid=(*self.state.unsaid, what)[-_UNSAID_TOLD:])

    def _say(self, state: bytes) -> bool:
        """Retain the hub's own state; whether it went out."""
        assert self._connection is not None
        return self._connection.publish(wire.link_topic(self.settings.client_id), state, retain=True)

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        """PUBACK what has been stored. Those of an earlier connection are passed over: the
        broker sends them again, and storing them again is a counted duplicate.
        """
        connection = self._connection
        if connection is None:
            return
        number = connection.generation
        connection.acknowledge([one.packet_id for one in deliveries if one.generation == number and one.qos > 0])

    def publish_replies(self, replies: Sequence[ReplyMessage]) -> None:
        """Answer devices that wait for it, as JSON. Without a connection nothing is kept, and of more than
        a thousand that wait the oldest go: a device that was not answered asks again.
        """
        if self._connection is None or not self.state.connected:
            return
        self._replies.extend(replies)
        self._send_waiting()

    def marks(self, device: str) -> dict[int, int]:
        """The marks (boot to seq) this device was last told, or will be once the broker is back."""
        return dict(self._marks.get(device, {}))

    def publish_marks(self, marks: dict[str, dict[int, int]]) -> None:
        """Retain these devices' marks (boot to seq) at the broker, now or when it is back."""
        for device, boots in marks.items():
            self._marks[device] = boots
        self._unpublished.update(marks)
        self._send_waiting()

    def _send_waiting(self) -> None:
        """Send what waits, as far as the broker takes it: of each device the newest mark, then replies."""
        connection = self._connection
        if connection is None or not self.state.connected:
            return
        for device in sorted(self._unpublished):
            if not connection.publish(wire.mark_topic(device), wire.pack_mark(self._marks[device]), retain=True):
                return
            self._unpublished.discard(device)
        while self._replies:
            reply = self._replies[0]
            if not connection.publish(reply.topic, json.dumps(dict(reply.fields), ensure_ascii=False).encode()):
                return
            self._replies.popleft()
