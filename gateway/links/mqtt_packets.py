"""The packets of MQTT 3.1.1 and 5 that a hub sends and reads: values to bytes, bytes to values. Pure.

What a hub needs and no more: it publishes and subscribes at QoS 0 and 1, and acknowledges when it
is told. Clauses in brackets are those of OASIS MQTT 5 (2019); 3.1.1 (2014) has the same ones
without the properties. Bytes that break a clause raise `PacketError`; nothing is guessed. Only what a
topic says is not judged here: a message under a strange one is kept apart, not asked for again for ever.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = [
    "CONNACK",
    "DISCONNECT",
    "PINGREQ",
    "PINGRESP",
    "PUBACK",
    "PUBLISH",
    "SUBACK",
    "Granted",
    "PacketError",
    "Published",
    "Will",
    "acknowledgements",
    "connect",
    "disconnect",
    "is_refused",
    "packets",
    "publish",
    "read_connack",
    "read_disconnect",
    "read_puback",
    "read_publish",
    "read_suback",
    "reason",
    "shortened",
    "subscribe",
]

CONNACK, PUBLISH, PUBACK, SUBACK, PINGRESP, DISCONNECT = 0x20, 0x30, 0x40, 0x90, 0xD0, 0xE0
"""What a broker sends, by the upper four bits of a packet's first byte [2.1.2]."""
PINGREQ = b"\xc0\x00"
_REFUSED = 0x80  # a reason code from here on is a failure [2.4]
_LONGEST_REASON = 200
"""Characters of what a broker says of itself in words: 65,535 bytes would be allowed it."""
_SESSION_EXPIRY, _SERVER_KEEPALIVE, _REASON_TEXT, _RECEIVE_MAXIMUM = 0x11, 0x13, 0x1F, 0x21
_WIDTHS = {1: 1, 2: 4, 17: 4, 19: 2, 23: 1, 24: 4, 25: 1, 33: 2, 34: 2, 35: 2, 36: 1, 37: 1, 39: 4, 40: 1, 41: 1, 42: 1}
_LENGTHED = {3: 1, 8: 1, 9: 1, 18: 1, 21: 1, 22: 1, 26: 1, 28: 1, 31: 1, 38: 2}
"""Properties by their number: bytes of a whole number, or how many texts follow [2.2.2.2]."""
_REASONS_3 = {
    1: "unacceptable protocol version",
    2: "client id rejected",
    3: "server unavailable",
    4: "bad user name or password",
    5: "not authorised",
    0x80: "refused",
}
_REASONS_5 = {
    0x00: "normal disconnection",
    0x01: "unacceptable protocol version (a broker of MQTT 3 says so)",
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "implementation specific error",
    0x84: "unsupported protocol version",
    0x85: "client identifier not valid",
    0x86: "bad user name or password",
    0x87: "not authorised",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8A: "banned",
    0x8B: "server shutting down",
    0x8C: "bad authentication method",
    0x8D: "keep alive timeout",
    0x8E: "session taken over by another client of the same id",
    0x8F: "topic filter invalid",
    0x90: "topic name invalid",
    0x93: "receive maximum exceeded",
    0x94: "topic alias invalid",
    0x95: "packet too large",
    0x96: "message rate too high",
    0x97: "quota exceeded",
    0x98: "administrative action",
    0x99: "payload format invalid",
    0x9A: "retain not supported",
    0x9B: "QoS not supported",
    0x9C: "use another server",
    0x9D: "server moved",
    0x9E: "shared subscriptions not supported",
    0x9F: "connection rate exceeded",
    0xA0: "maximum connect time",
    0xA1: "subscription identifiers not supported",
    0xA2: "wildcard subscriptions not supported",
}


class PacketError(ValueError):
    """The broker sent bytes that are no MQTT."""


class Will(NamedTuple):
    """What the broker publishes, retained at QoS 1, when this client vanishes."""

    topic: str
    payload: bytes


class Granted(NamedTuple):
    """What a broker answers CONNECT with: ``code`` 0 = accepted, else see `reason`.

    ``receive_maximum`` is how many publishes it takes unacknowledged, ``keepalive_s`` what it
    wants in place of what it was told (None: as told).
    """

    code: int
    receive_maximum: int = 65_535
    keepalive_s: int | None = None


class Published(NamedTuple):
    """A message as it came. ``topic`` stays bytes; ``packet_id`` is 0 at QoS 0."""

    topic: bytes
    payload: bytes
    qos: int
    packet_id: int
    retained: bool


def reason(code: int, protocol: int) -> str:
    """A reason code in words, of MQTT ``protocol`` 5 or 311."""
    named = (_REASONS_5 if protocol == 5 else _REASONS_3).get(code)
    return f"reason code {code}" if named is None else named


# --- written --------------------------------------------------------------------------------------


def _text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    if len(raw) > 0xFFFF:
        raise ValueError(f"an MQTT text must be at most 65535 bytes, is {len(raw)}")
    return struct.pack(">H", len(raw)) + raw


def _varied(value: int) -> bytes:
    """A length in base 128, the low digits first [1.5.5]."""
    found = bytearray()
    while value > 0x7F:
        found.append(0x80 | value & 0x7F)
        value >>= 7
    found.append(value)
    return bytes(found)


def _packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + _varied(len(body)) + body


def connect(
    client_id: str,
    *,
    protocol: int,
    keepalive_s: int,
    session_expiry_s: int,
    receive_maximum: int,
    will: Will,
    username: str | None,
    password: str | None,
) -> bytes:
    """CONNECT to a session that stays [3.1].

    Parameters
    ----------
    protocol : int
        5 or 311.
    session_expiry_s, receive_maximum : int
        Said in MQTT 5 only: seconds the session outlives its connection, messages the broker may
        send unacknowledged.
    """
    flags = 0x04 | 0x08 | 0x20  # a will, at QoS 1, retained
    flags |= 0x80 if username is not None else 0
    flags |= 0x40 if password is not None else 0
    newest = protocol == 5
    body = _text("MQTT") + struct.pack(">BBH", 5 if newest else 4, flags, keepalive_s)
    if newest:
        told = struct.pack(">BIBH", _SESSION_EXPIRY, session_expiry_s, _RECEIVE_MAXIMUM, receive_maximum)
        body += _varied(len(told)) + told
    body += _text(client_id) + (b"\x00" if newest else b"") + _text(will.topic) + _text(will.payload)
    body += b"".join(_text(value) for value in (username, password) if value is not None)
    return _packet(0x10, body)


def subscribe(packet_id: int, filters: Iterable[str], *, protocol: int) -> bytes:
    """SUBSCRIBE to these filters at QoS 1 [3.8]."""
    body = struct.pack(">H", packet_id) + (b"\x00" if protocol == 5 else b"")
    return _packet(0x82, body + b"".join(_text(name) + b"\x01" for name in filters))


def publish(topic: str, payload: bytes, *, packet_id: int, retain: bool, protocol: int) -> bytes:
    """PUBLISH at QoS 1 [3.3]."""
    body = _text(topic) + struct.pack(">H", packet_id) + (b"\x00" if protocol == 5 else b"")
    return _packet(PUBLISH | 0x02 | (0x01 if retain else 0), body + payload)


def acknowledgements(packet_ids: Iterable[int]) -> bytes:
    """PUBACK for each of these, one behind the other: success in both versions [3.4.2.1]."""
    return b"".join([b"\x40\x02" + packet_id.to_bytes(2, "big") for packet_id in packet_ids])


def disconnect() -> bytes:
    """DISCONNECT without a will, in both versions [3.14.2.1]."""
    return b"\xe0\x00"


# --- read -----------------------------------------------------------------------------------------


def packets(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(where it begins, where its body begins, where it ends) of each whole packet, in order.

    Last comes, with 0 in the middle, what is not whole: where it begins, and where it will end at
    the soonest.
    """
    at, size = 0, len(data)
    while at + 1 < size:
        body, length = at + 2, data[at + 1]
        if length > 0x7F:
            length, body = _long(data, at + 1)
            if length < 0:
                yield at, 0, size + 1
                return
        ends = body + length
        if ends > size:
            yield at, 0, ends
            return
        yield at, body, ends
        at = ends
    yield at, 0, at + 2


def _long(data: bytes, at: int) -> tuple[int, int]:
    """A packet's length of more than one digit: (it, where it goes on); -1 where its end has not come."""
    length = shift = 0
    for digit in data[at : at + 4]:
        length |= (digit & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if digit <= 0x7F:
            return length, at
    if shift == 28:
        raise PacketError("a packet's length must have at most 4 digits, has more")
    return -1, at


def shortened(data: bytes, at: int, most: int) -> bytes:
    """The packet that begins at ``at`` with only the first ``most`` bytes of its body, its length put right."""
    _, body = _long(data, at + 1)
    return _packet(data[at], data[body : body + most])


def _u16(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise PacketError(f"a packet must hold two bytes from {at} on, ends at {len(data)}")
    return data[at] << 8 | data[at + 1]


def _length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A length in base 128: (it, where it goes on); what it spans must end within ``end``."""
    value, shift = 0, 0
    while at < end and shift < 28:
        digit = data[at]
        at += 1
        value |= (digit & 0x7F) << shift
        shift += 7
        if digit <= 0x7F:
            if at + value > end:
                break
            return value, at
    raise PacketError("properties must end within their packet")


def _properties(data: bytes, at: int) -> dict[int, int | bytes]:
    """Properties by number, from where their length stands [2.2.2]; of several, the last."""
    found: dict[int, int | bytes] = {}
    if at >= len(data):
        return found
    length, at = _length(data, at, len(data))
    end = at + length
    while at < end:
        name = data[at]
        at += 1
        if name in _WIDTHS:
            found[name] = int.from_bytes(data[at : at + _WIDTHS[name]], "big")
            at += _WIDTHS[name]
        elif name in _LENGTHED:
            for _ in range(_LENGTHED[name]):
                size = _u16(data, at)
                found[name] = data[at + 2 : at + 2 + size]
                at += 2 + size
        elif name == 11:  # a subscription identifier
            found[name], at = _length(data, at, end)
        else:
            raise PacketError(f"a property must be one of MQTT 5, is {name}")
    if at != end:
        raise PacketError("properties must end where they say, go on")
    return found


def read_publish(data: bytes, at: int, body: int, ends: int, *, protocol: int) -> Published:
    """The message of a PUBLISH that stands in ``data[at:ends]``, its body from ``body`` on [3.3]."""
    first = data[at]
    qos = (first >> 1) & 3
    topic = body + 2
    topic_ends = topic + (data[body] << 8 | data[body + 1]) if topic <= ends else ends + 1
    payload = topic_ends + 2 if qos else topic_ends
    if payload > ends or qos > 1:  # QoS 2 was not subscribed to
        raise PacketError(f"a message must come whole and at QoS 0 or 1, came at QoS {qos} in {ends - body} bytes")
    packet_id = data[topic_ends] << 8 | data[topic_ends + 1] if qos else 0
    if topic == topic_ends or (packet_id == 0) == (qos == 1) or (qos == 0 and first & 0x08):
        # An empty topic stands for an alias, and we allow none [3.3.2.1, 2.2.1, 3.3.1.1].
        raise PacketError("a message must have a topic, and at QoS 1 an id from 1 on, or it comes again at QoS 0")
    if protocol == 5:
        if payload < ends and data[payload] == 0:
            payload += 1
        else:
            length, payload = _length(data, payload, ends)
            payload += length
    return Published(data[topic:topic_ends], data[payload:ends], qos, packet_id, bool(first & 1))


def read_puback(body: bytes, *, protocol: int) -> tuple[int, int]:
    """Which message the broker has taken, and its reason code (MQTT 5; see `is_refused`) [3.4]."""
    packet_id = _u16(body, 0)
    if packet_id == 0 or (protocol != 5 and len(body) != 2):
        raise PacketError(f"an acknowledgement must name a message, names {packet_id} in {len(body)} bytes")
    return packet_id, body[2] if len(body) > 2 else 0


def read_connack(body: bytes, *, protocol: int) -> Granted:
    """What the broker answers CONNECT with [3.2]."""
    flags_and_code = _u16(body, 0)
    code = flags_and_code & 0xFF
    if flags_and_code > 0x1FF or (protocol != 5 and len(body) != 2):
        raise PacketError(f"an answer to CONNECT must be of flags 0 or 1 and a code, is {body[:8].hex(' ')}")
    if protocol != 5:
        return Granted(code)
    told = _properties(body, 2)
    most, keepalive_s = told.get(_RECEIVE_MAXIMUM, 65_535), told.get(_SERVER_KEEPALIVE)
    return Granted(code, max(1, int(most)), None if keepalive_s is None else int(keepalive_s))


def read_suback(body: bytes, *, protocol: int) -> tuple[int, tuple[int, ...]]:
    """Which SUBSCRIBE is answered, and the reason code of each filter, in order; see `is_refused` [3.9]."""
    packet_id, at = _u16(body, 0), 2
    if protocol == 5:
        length, at = _length(body, at, len(body))
        at += length
    codes = tuple(body[at:])
    if any(code > 1 and not is_refused(code) for code in codes):
        raise PacketError(f"a subscription at QoS 1 must be granted at 0 or 1, is at {max(codes)}")
    return packet_id, codes


def is_refused(code: int) -> bool:
    """Whether a reason code is a failure."""
    return code >= _REFUSED


def read_disconnect(body: bytes, *, protocol: int) -> str:
    """Why the broker ends the connection, in words [3.14]; MQTT 3.1.1 has no such packet."""
    if protocol != 5:
        raise PacketError("a broker of MQTT 3.1.1 must close without a DISCONNECT, sent one")
    code = body[0] if body else 0
    text = _properties(body, 1).get(_REASON_TEXT, b"") if len(body) > 1 else b""
    words = reason(code, protocol)
    said = bytes(text).decode(errors="replace") if isinstance(text, bytes) else ""
    shown = "".join(letter for letter in said[:_LONGEST_REASON] if letter.isprintable())
    return f"{words}: {shown}" if shown else words
