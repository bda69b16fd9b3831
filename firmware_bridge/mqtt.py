"""A small MQTT 3.1.1 client for a device: QoS 0 and 1, will, keep-alive; every wait bounded.

One socket, no thread, one ``send`` per packet (four small writes, as umqtt makes them, cost
a Nagle round trip each: 21 messages a second instead of thousands). Nothing is re-sent here
and nothing is queued: what must survive a lost link lives in the outbox. Built-in modules
only; the same file runs on MicroPython and CPython. Clauses in brackets are those of OASIS
MQTT 3.1.1 (2014).

Not bounded by us is the resolver: ``getaddrinfo`` takes as long as the system lets it (about
10 s with two silent servers); give an address where that matters.
"""

import errno
import select
import socket
import struct
from collections import namedtuple

CONNECT, CONNACK, PUBLISH, PUBACK = 0x10, 0x20, 0x30, 0x40
SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT = 0x82, 0x90, 0xC0, 0xD0, 0xE0
MAX_INCOMING_BYTES = 8_192  # a device only hears marks: at most 64 pairs of u32
READ_BYTES = 256
IPPROTO_TCP, TCP_NODELAY = 6, 1  # not every port names them

REFUSALS = (
    "accepted",
    "unacceptable protocol version",
    "client id rejected",
    "server unavailable",
    "bad user name or password",
    "not authorised",
)

Incoming = namedtuple("Incoming", ("topic", "payload", "retained"))
Will = namedtuple("Will", ("topic", "payload", "retain"))

_AGAIN = (errno.EAGAIN, errno.EINPROGRESS)


class MQTTError(Exception):
    """The link cannot be had or is gone; the caller waits (``Backoff``) and connects anew.

    Attributes
    ----------
    reason : str
        ``unreachable``, ``refused`` (by the broker), ``timeout``, ``closed``, ``protocol``;
        ``untrusted`` under TLS (``tls``).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Backoff:
    """How long to wait before the next try: 0.2 s to a ceiling that doubles up to 3 s.

    Full jitter above the floor, so that the devices of a home do not come back in step after
    a power cut. The random source is the caller's, ``getrandbits(n) -> int``.
    """

    FLOOR_MS = 200
    CEILING_MS = 3_000

    def __init__(self, getrandbits) -> None:  # type: ignore[no-untyped-def]  # no typing.Callable there
        self._getrandbits = getrandbits
        self._tries = 0

    def next_ms(self) -> int:
        """The next wait in ms."""
        self._tries += 1
        ceiling = min(self.CEILING_MS, self.FLOOR_MS << min(self._tries, 8))
        wait: int = self.FLOOR_MS + (self._getrandbits(16) * (ceiling - self.FLOOR_MS + 1) >> 16)
        return wait

    def reset(self) -> None:
        """It worked: the next trouble starts small again."""
        self._tries = 0


def _text(value: str) -> bytes:
    raw = value.encode()
    if len(raw) > 0xFFFF:
        raise ValueError(f"an MQTT text must be at most 65535 bytes, is {len(raw)}")
    return struct.pack(">H", len(raw)) + raw


def _packet(first: int, *body: bytes) -> bytes:
    """Fixed header with the remaining length in base 128 [2.2.3], and the body; copied once."""
    left = sum(len(part) for part in body)
    head = bytearray((first,))
    while left > 0x7F:
        head.append(0x80 | (left & 0x7F))
        left >>= 7
    head.append(left)
    return b"".join((bytes(head),) + body)


class Client:
    """One connection to a broker, clean session.

    Parameters
    ----------
    host, port : str, int
    client_id : str
    steady_ms : callable
        Milliseconds that only go forward (``steady.SteadyClock``).
    user, password : str, optional
    keepalive_s : int
        A ping is sent after half of it without traffic; a broker not heard for 1.5 of it is
        dead.
    wait_ms : int
        The bound of every single wait: connecting, CONNACK, room to write.
    will : Will, optional
        Published by the broker at QoS 1 when this client vanishes.

    Attributes
    ----------
    unacked : set of int
        Packet ids of QoS 1 publishes and subscriptions not acknowledged yet.
    strays : int
        Acknowledgements of ids that were not waiting.
    """

    def __init__(  # type: ignore[no-untyped-def]  # steady_ms: no typing.Callable there
        self,
        host: str,
        port: int,
        client_id: str,
        steady_ms,
        *,
        user: str | None = None,
        password: str | None = None,
        keepalive_s: int = 30,
        wait_ms: int = 5_000,
        will: Will | None = None,
    ) -> None:
        if not 1 <= keepalive_s <= 0xFFFF:
            raise ValueError(f"keepalive_s must be 1 to 65535, is {keepalive_s}")
        self._host = host
        self._port = port
        self._client_id = client_id
        self._now = steady_ms
        self._user = user
        self._password = password
        self._keepalive_s = keepalive_s
        self._wait_ms = wait_ms
        self._will = will
        self._socket: socket.socket | None = None
        self._poll = select.poll()
        self._inbox = b""
        self._last_id = 0
        self._sent_ms = self._heard_ms = 0
        self._pinging = False
        self.unacked: set[int] = set()
        self.strays = 0

    @property
    def connected(self) -> bool:
        return self._socket is not None

    # --- life ---------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the socket and wait for CONNACK; at most ``wait_ms`` for either.

        Raises
        ------
        MQTTError
            ``unreachable``, ``refused`` with the broker's reason, ``timeout``, ``closed``.
        """
        self.close()
        self._open()
        self._inbox = b""
        self._pinging = False
        self.unacked.clear()
        self._heard_ms = self._now()
        self._write(self._connect_packet())
        deadline = self._now() + self._wait_ms
        packet = self._next_packet(deadline)
        while packet is None:
            if self._now() >= deadline:
                raise self._lost("timeout", f"CONNACK must come within {self._wait_ms} ms, none came")
            packet = self._next_packet(deadline)
        first, body = packet
        if first != CONNACK or len(body) != 2:
            raise self._lost("protocol", f"the first packet must be CONNACK, is 0x{first:02X}")
        if body[1]:
            why = REFUSALS[body[1]] if body[1] < len(REFUSALS) else f"code {body[1]}"
            raise self._lost("refused", f"the broker must accept the connection, says: {why}")

    def disconnect(self) -> None:
        """Say good-bye (no will is published) and close."""
        if self._socket is not None:
            self._write(bytes((DISCONNECT, 0)))
            self.close()

    def close(self) -> None:
        """Drop the socket without a word; the broker publishes the will."""
        if self._socket is not None:
            self._poll.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _lost(self, reason: str, message: str) -> MQTTError:
        self.close()
        return MQTTError(reason, message)

    def _open(self) -> None:
        try:
            found = socket.getaddrinfo(self._host, self._port, 0, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as unknown:
            raise MQTTError("unreachable", f"{self._host} must have an address: {unknown}") from None
        trouble: object = "no address"
        for family, kind, _, _, address in found:
            link = socket.socket(family, kind)
            link.setblocking(False)
            # Two small packets in a row would wait 40 ms for each other (Nagle, delayed ACK).
            link.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            self._poll.register(link, select.POLLOUT)
            self._socket = link
            try:
                try:
                    link.connect(address)
                except OSError as wait:
                    if wait.errno not in _AGAIN:
                        raise
                ready = self._poll.poll(self._wait_ms)
                if ready and not ready[0][1] & (select.POLLERR | select.POLLHUP):
                    return
                trouble = "refused" if ready else f"silent for {self._wait_ms} ms"
            except OSError as refused:
                trouble = refused
            self.close()
        raise MQTTError("unreachable", f"{self._host}:{self._port} must accept a connection: {trouble}")

    def _connect_packet(self) -> bytes:
        flags = 0x02  # clean session [3.1.2.4]
        payload = _text(self._client_id)
        if self._will is not None:
            flags |= 0x0C | (0x20 if self._will.retain else 0)  # will, QoS 1 [3.1.2.6]
            payload += _text(self._will.topic) + struct.pack(">H", len(self._will.payload)) + self._will.payload
        if self._user is not None:
            flags |= 0x80
            payload += _text(self._user)
            if self._password is not None:  # never without a user name [3.1.2.9]
                flags |= 0x40
                payload += _text(self._password)
        return _packet(CONNECT, b"\x00\x04MQTT\x04" + struct.pack(">BH", flags, self._keepalive_s) + payload)

    # --- out ----------------------------------------------------------------------------

    def publish(self, topic: str, *payload: bytes, qos: int = 1, retain: bool = False) -> int:
        """Send a message, given in pieces; returns its packet id (0 at QoS 0), which :attr:`unacked` holds.

        Raises
        ------
        MQTTError
            The link is gone, or has no room for ``wait_ms``.
        """
        if qos not in (0, 1):
            raise ValueError(f"qos must be 0 or 1, is {qos}")
        packet_id = self._next_id() if qos else 0
        first = PUBLISH | qos << 1 | (1 if retain else 0)
        self._write(_packet(first, _text(topic), struct.pack(">H", packet_id) if qos else b"", *payload))
        return packet_id

    def subscribe(self, topic: str) -> int:
        """Ask for a topic at QoS 1; :meth:`step` raises where the broker refuses it."""
        packet_id = self._next_id()
        self._write(_packet(SUBSCRIBE, struct.pack(">H", packet_id), _text(topic), b"\x01"))
        return packet_id

    def _next_id(self) -> int:
        """An id that is not waiting, 1 to 65535 [2.3.1]; 0 is none."""
        if len(self.unacked) >= 0xFFFF:
            raise MQTTError("protocol", "at most 65535 messages may wait for their acknowledgement")
        while True:
            self._last_id = self._last_id % 0xFFFF + 1
            if self._last_id not in self.unacked:
                self.unacked.add(self._last_id)
                return self._last_id

    def _write(self, packet: bytes) -> None:
        link = self._socket
        if link is None:
            raise MQTTError("closed", "a packet needs a connection, there is none")
        deadline = self._now() + self._wait_ms
        sent = 0
        while sent < len(packet):
            try:
                sent += link.send(packet if not sent else packet[sent:])
                continue
            except OSError as full:
                if full.errno not in _AGAIN:
                    raise self._lost("closed", f"the broker must take what is sent: {full}") from None
            left = deadline - self._now()
            self._poll.modify(link, select.POLLOUT)
            if left <= 0 or not self._poll.poll(left):
                raise self._lost("timeout", f"the broker must take a packet within {self._wait_ms} ms")
        self._sent_ms = self._now()

    # --- in -----------------------------------------------------------------------------

    def step(self, wait_ms: int = 0) -> Incoming | None:
        """Do what is due and wait at most ``wait_ms`` for a message; None where none came.

        Reads acknowledgements, answers QoS 1 publishes, keeps the connection alive. Returns
        early, with None, when an acknowledgement came: the caller may have been waiting for
        room in its window.

        Raises
        ------
        MQTTError
            The link is gone, the broker is silent or speaks nonsense, a subscription was
            refused.
        """
        self._keep_alive()
        packet = self._next_packet(self._now() + wait_ms)
        if packet is None:
            return None
        first, body = packet
        if first & 0xF0 == PUBLISH:
            return self._take_publish(first, body)
        if first in (PUBACK, SUBACK) and len(body) >= 2:
            packet_id = body[0] << 8 | body[1]
            if packet_id in self.unacked:
                self.unacked.remove(packet_id)
            else:
                self.strays += 1
            if first == SUBACK and body[2:] != b"\x00" and body[2:] != b"\x01":
                raise self._lost("refused", "the broker must grant the subscription at QoS 0 or 1, it refused")
            return None
        if first == PINGRESP:
            self._pinging = False
            return None
        raise self._lost("protocol", f"a packet must be PUBLISH, PUBACK, SUBACK or PINGRESP, is 0x{first:02X}")

    def _take_publish(self, first: int, body: bytes) -> Incoming:
        qos = first >> 1 & 3
        topic_end = 2 + (body[0] << 8 | body[1]) if len(body) >= 2 else 2
        payload_at = topic_end + (2 if qos else 0)
        if qos > 1 or len(body) < payload_at:
            raise self._lost("protocol", f"a PUBLISH must be whole and of QoS 0 or 1, is QoS {qos}, {len(body)} bytes")
        try:
            topic = str(body[2:topic_end], "utf-8")
        except UnicodeError:
            raise self._lost("protocol", "a topic must be UTF-8") from None
        if qos:
            self._write(bytes((PUBACK, 2)) + body[topic_end:payload_at])
        return Incoming(topic, body[payload_at:], bool(first & 1))

    def _keep_alive(self) -> None:
        now = self._now()
        half_ms = self._keepalive_s * 500
        if now - self._heard_ms >= 3 * half_ms:
            raise self._lost("timeout", f"the broker must be heard within {3 * half_ms} ms, was not")
        quiet_ms = max(now - self._sent_ms, now - self._heard_ms)
        if quiet_ms >= half_ms and not self._pinging:
            self._pinging = True
            self._write(bytes((PINGREQ, 0)))

    def _next_packet(self, deadline: int) -> tuple[int, bytes] | None:
        """One packet from what was read, reading until ``deadline``; None where it is late."""
        while True:
            packet = self._cut_packet()
            if packet is not None:
                return packet
            link = self._socket
            if link is None:
                raise MQTTError("closed", "reading needs a connection, there is none")
            self._poll.modify(link, select.POLLIN)
            if not self._poll.poll(max(0, deadline - self._now())):
                return None
            try:
                more = link.recv(READ_BYTES)
            except OSError as broken:
                if broken.errno in _AGAIN:
                    continue
                raise self._lost("closed", f"the link must hold, it broke: {broken}") from None
            if not more:
                raise self._lost("closed", "the link must hold, the broker closed it")
            self._heard_ms = self._now()
            self._inbox += more

    def _cut_packet(self) -> tuple[int, bytes] | None:
        """The first whole packet of the inbox: (first byte, body)."""
        inbox = self._inbox
        length = 0
        for at in range(1, 5):
            if at >= len(inbox):
                return None
            length |= (inbox[at] & 0x7F) << 7 * (at - 1)
            if inbox[at] < 0x80:
                break
        else:
            raise self._lost("protocol", "a packet's length must take at most 4 bytes")
        if length > MAX_INCOMING_BYTES:
            raise self._lost("protocol", f"a packet must be at most {MAX_INCOMING_BYTES} bytes, is {length}")
        if len(inbox) < at + 1 + length:
            return None
        self._inbox = inbox[at + 1 + length :]
        return inbox[0], inbox[at + 1 : at + 1 + length]
