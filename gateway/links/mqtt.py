"""The MQTT link: keeps one subscription alive, hands messages over, acknowledges when told.

A message is acknowledged only by `acknowledge`, which ingest calls after its commit. Every
connection has a client object and a number of its own, so that a packet id of one connection
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
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from firmware_bridge import wire
from gateway.errors import BrokerError
from gateway.links.clock import Clock
from gateway.links.inbox import Delivery, Inbox
from gateway.links.profiled import ReplyMessage
from gateway.model import RawFrame

__all__ = ["LinkState", "MqttLink", "MqttSettings"]

_log = logging.getLogger(__name__)
_PROTOCOLS = {5: MQTTProtocolVersion.MQTTv5, 311: MQTTProtocolVersion.MQTTv311}
_SESSION_EXPIRY_S = 7 * 86_400  # a hub that was off for a week still gets what waited
_BACKOFF_FIRST_S = 0.2
_BACKOFF_MOST_S = 30.0
_LEAVE_S = 1.0  # Ctrl-C ends everything within 3 s
_MARKS_WAITING = 1_000  # paho's own queue is unbounded unless it is told


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
        if not wire.is_device_id(self.client_id):
            raise ValueError(f"mqtt.client_id must be 1 to 32 of a-z 0-9 _ -, is {self.client_id!r}")


@dataclass(frozen=True, slots=True)
class LinkState:
    """For the page: whether the link stands, since when, how often it was lost, and why last; and what
    the broker would not let it hear.
    """

    connected: bool = False
    since_ms: int | None = None
    lost: int = 0
    trouble: str = ""
    ungranted: tuple[str, ...] = ()


_device_of = lru_cache(maxsize=1024)(wire.device_of)  # a home's devices say a lot; checking a name takes 3 us


def _send_at_once(_client: Client, _data: object, opened: Any) -> None:
    """No waiting for a fuller packet (Nagle): acknowledgements and marks are small, and waited for."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _Connection:
    """One paho client for one connection. Callbacks run on paho's thread and only pass on."""

    def __init__(self, settings: MqttSettings, *, generation: int, inbox: Inbox, clock: Clock) -> None:
        self._settings = settings
        self.generation = generation
        self._inbox = inbox
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self.accepted: asyncio.Future[None] = self._loop.create_future()
        self.subscribed: asyncio.Future[None] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self._started = False
        self.ungranted: tuple[str, ...] = ()
        clean: dict[str, Any] = {} if settings.protocol == 5 else {"clean_session": False}
        self.client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            protocol=_PROTOCOLS[settings.protocol],
            manual_ack=True,
            reconnect_on_failure=False,
            **clean,
        )
        self.client.max_queued_messages_set(_MARKS_WAITING)
        self.client.will_set(wire.link_topic(settings.client_id), wire.LINK_OFFLINE, qos=1, retain=True)
        if settings.tls_ca is not None:
            self.client.tls_set(ca_certs=str(settings.tls_ca))
        if settings.username is not None:
            self.client.username_pw_set(settings.username, settings.password)
        self.client.on_connect = self._on_connect
        self.client.on_subscribe = self._on_subscribe
        self.client.on_disconnect = self._on_disconnect
        self.client.on_message = self._on_message
        self.client.on_socket_open = _send_at_once

    def _tell(self, future: asyncio.Future[Any], result: object) -> None:
        """Settle a future of the event loop from paho's thread; an error is raised to its waiter."""

        def settle() -> None:
            if future.done():
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
                future.exception()  # counts as seen: whoever waits for it gets it all the same
            else:
                future.set_result(result)

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle)

    def _on_connect(
        self, _client: Client, _data: object, _flags: ConnectFlags, code: ReasonCode, _properties: Properties | None
    ) -> None:
        refused = BrokerError(f"the broker must accept the connection, answered: {code}") if code.is_failure else None
        self._tell(self.accepted, refused)

    def _on_subscribe(
        self, _client: Client, _data: object, _mid: int, codes: list[ReasonCode], _properties: Properties | None
    ) -> None:
        bad = [f"{name} ({code})" for name, code in zip(self._settings.filters, codes, strict=False) if code.is_failure]
        self.ungranted = tuple(bad)
        if len(bad) == len(self._settings.filters):
            self._tell(self.subscribed, BrokerError(f"the broker must grant what is subscribed to, refused {bad[0]}"))
        else:  # the devices it grants are heard, of the others the page tells
            self._tell(self.subscribed, None)

    def _on_disconnect(
        self, _client: Client, _data: object, _flags: DisconnectFlags, code: ReasonCode, _properties: Properties | None
    ) -> None:
        gone = BrokerError(
            f"the broker must keep the connection (mqtt.protocol is {self._settings.protocol}), closed it: {code}"
        )
        self._tell(self.accepted, gone)
        self._tell(self.subscribed, gone)
        self._tell(self.lost, str(code))

    def _on_message(self, _client: Client, _data: object, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:  # paho decodes on access; a broker should not have let it pass
            topic = ""
        device = _device_of(topic)
        raw = RawFrame(
            transport="mqtt",
            device=topic[:1000] if device is None else device,
            received_ms=self._clock.now_ms(),
            payload=bytes(message.payload),
        )
        self._inbox.put(Delivery(raw, self.generation, message.mid, message.qos, retained=message.retain))

    async def open(self) -> None:
        """TCP, CONNECT, SUBSCRIBE; each bounded by ``connect_s``."""
        where = f"{self._settings.host}:{self._settings.port}"
        options: dict[str, Any] = {}
        if self._settings.protocol == 5:
            options["properties"] = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho has none
            options["properties"].ReceiveMaximum = self._settings.inflight
            options["properties"].SessionExpiryInterval = _SESSION_EXPIRY_S
            options["clean_start"] = False
        self.client.connect_timeout = self._settings.connect_s
        try:
            await asyncio.to_thread(
                self.client.connect, self._settings.host, self._settings.port, self._settings.keepalive_s, **options
            )
        except OSError as problem:
            raise BrokerError(f"an MQTT broker must listen at {where}: {problem}") from problem
        self.client.loop_start()
        self._started = True
        await self._within(self.accepted, f"{where} must answer CONNECT (mqtt.protocol {self._settings.protocol})")
        # QoS 2 lost messages over client restarts.
        self.client.subscribe([(name, 1) for name in self._settings.filters])
        await self._within(self.subscribed, f"{where} must answer SUBSCRIBE")

    async def _within(self, future: asyncio.Future[None], what: str) -> None:
        try:
            await asyncio.wait_for(asyncio.shield(future), self._settings.connect_s)
        except TimeoutError:
            raise BrokerError(f"{what} within {self._settings.connect_s:g} s, it did not") from None

    async def close(self) -> None:
        """Take leave and end paho's thread; nothing of this connection is acknowledged after."""
        self._inbox.end_generation(self.generation)
        if not self._started:
            return
        self.client.disconnect()
        try:
            await asyncio.wait_for(asyncio.shield(self.lost), _LEAVE_S)
        except TimeoutError:  # a half-open peer takes no DISCONNECT: pull the plug
            plug = self.client.socket()
            if isinstance(plug, socket.socket):
                with contextlib.suppress(OSError):  # paho's thread may have closed it meanwhile
                    plug.shutdown(socket.SHUT_RDWR)
        await asyncio.to_thread(self.client.loop_stop)


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

    async def run(self) -> None:
        """Stay connected until cancelled: full-jitter back-off, capped at 30 s."""
        failures = 0
        while True:
            try:
                async with self._connected() as connection:
                    failures = 0
                    reason = await asyncio.shield(connection.lost)  # a cancelled wait must not end it
            except BrokerError as problem:
                reason = str(problem)
            failures += 1
            self.state = LinkState(lost=self.state.lost + 1, since_ms=self._clock.now_ms(), trouble=reason)
            _log.warning("no link to the broker, trying again: %s", reason)
            longest_s = min(_BACKOFF_MOST_S, _BACKOFF_FIRST_S * 2 ** min(failures, 16))
            await asyncio.sleep(random.uniform(0, longest_s))  # noqa: S311 (spreads reconnects, keeps no secret)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Connection]:
        self._generation += 1
        connection = _Connection(self.settings, generation=self._generation, inbox=self._inbox, clock=self._clock)
        # From here on: a session that waited sends its messages before it answers SUBSCRIBE.
        self._connection = connection
        try:
            await connection.open()
            self.state = LinkState(
                connected=True, since_ms=self._clock.now_ms(), lost=self.state.lost, ungranted=connection.ungranted
            )
            _log.info("connected to the broker at %s:%d", self.settings.host, self.settings.port)
            self._say(wire.LINK_ONLINE)
            self.publish_marks(self._marks)  # a broker that lost its files knows none of them
            yield connection
        finally:
            if self.state.connected and not connection.lost.done():
                self._say(wire.LINK_OFFLINE)
            self.state = LinkState(since_ms=self._clock.now_ms(), lost=self.state.lost)
            self._connection = None
            await connection.close()

    def _say(self, state: bytes) -> None:
        assert self._connection is not None
        self._connection.client.publish(wire.link_topic(self.settings.client_id), state, qos=1, retain=True)

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        """PUBACK what has been stored. Those of an earlier connection are passed over: the
        broker sends them again, and storing them again is a counted duplicate.
        """
        connection = self._connection
        if connection is None:
            return
        for delivery in deliveries:
            if delivery.generation == connection.generation and delivery.qos > 0:
                connection.client.ack(delivery.packet_id, delivery.qos)

    def publish_replies(self, replies: Sequence[ReplyMessage]) -> None:
        """Answer devices that wait for it, as JSON. Without a connection nothing is kept: a device that
        was not answered asks again.
        """
        if self._connection is None or not self.state.connected:
            return
        for reply in replies:
            self._connection.client.publish(
                reply.topic, json.dumps(dict(reply.fields), ensure_ascii=False).encode(), qos=1
            )

    def marks(self, device: str) -> dict[int, int]:
        """The marks (boot to seq) this device was last told, or will be once the broker is back."""
        return dict(self._marks.get(device, {}))

    def publish_marks(self, marks: dict[str, dict[int, int]]) -> None:
        """Retain these devices' marks (boot to seq) at the broker, now or when it is back."""
        for device, boots in marks.items():
            self._marks[device] = boots
        self._unpublished.update(marks)
        if self._connection is None or not self.state.connected:
            return
        for device in sorted(self._unpublished):
            sent = self._connection.client.publish(
                wire.mark_topic(device), wire.pack_mark(self._marks[device]), qos=1, retain=True
            )
            if sent.rc == MQTTErrorCode.MQTT_ERR_SUCCESS:
                self._unpublished.discard(device)
