"""Wire 1: the frame that devices and the gateway share. Bytes in, checked records out.

A message is one MessagePack map of at most 16,384 bytes, keys in this order: ``v`` 1,
``b`` boot, ``s`` first sequence number, ``n`` record count, ``u`` uptime when sent (absent
in a message of an earlier boot), ``w`` wall clock (where the device knows it), ``r``
records. A record is ``[kind, uptime_ms, values...]``: integers, and text in two kinds.

Pure, and the same file runs on CPython and MicroPython: no I/O, no clock, no recursion
(a frame nested 100,000 deep costs no stack), no floats. Nothing is guessed: a record that
breaks a rule is handed back as a :class:`Fault` with its bytes, its neighbours stay good;
only where the header itself cannot be read does :func:`unpack_message` raise.
"""

from collections import namedtuple

from firmware_bridge.kinds import (
    BATTERY_UNKNOWN,
    BEAT,
    CODES,
    DAY_MS,
    FIRST_SEQ,
    FOOD_SET,
    HELLO,
    LINK_OFFLINE,
    LINK_ONLINE,
    MARK_REQUEST,
    MAX_DEPTH,
    MAX_MARK_BOOTS,
    MAX_MESSAGE_BYTES,
    MAX_RECORDS,
    MEAL,
    MOTION,
    MS_MAX,
    NOT_WORN,
    PLATEAU,
    REFILL,
    TARE,
    TEMPERATURE,
    TEMPERATURE_MOVED,
    TOO_FAST,
    UNSETTLED,
    UP_FILTER,
    VERSION,
    WEIGHT,
    WORN,
    WORN_UNKNOWN,
    ZERO_DOUBTFUL,
    Field,
    Kind,
    device_of,
    is_device_id,
    link_topic,
    mark_topic,
    up_topic,
)
from firmware_bridge.msgpack import ARRAY, MAP, SHAPES, TEXT, U32_MAX, WireError, skip, token
from firmware_bridge.pack import (
    check_int,
    known_kind,
    pack_head,
    pack_mark,
    pack_message,
    pack_record,
    read_int,
    unpack_mark,
)

__all__ = [
    "BATTERY_UNKNOWN",
    "BEAT",
    "DAY_MS",
    "FIRST_SEQ",
    "FOOD_SET",
    "HELLO",
    "KINDS",
    "LINK_OFFLINE",
    "LINK_ONLINE",
    "MARK_REQUEST",
    "MAX_DEPTH",
    "MAX_MARK_BOOTS",
    "MAX_MESSAGE_BYTES",
    "MAX_RECORDS",
    "MEAL",
    "MOTION",
    "MS_MAX",
    "NOT_WORN",
    "PLATEAU",
    "REASONS",
    "REFILL",
    "TARE",
    "TEMPERATURE",
    "TEMPERATURE_MOVED",
    "TOO_FAST",
    "U32_MAX",
    "UNSETTLED",
    "UP_FILTER",
    "VERSION",
    "WEIGHT",
    "WORN",
    "WORN_UNKNOWN",
    "ZERO_DOUBTFUL",
    "Fault",
    "Field",
    "Kind",
    "Message",
    "Record",
    "WireError",
    "device_of",
    "is_device_id",
    "link_topic",
    "mark_topic",
    "pack_head",
    "pack_mark",
    "pack_message",
    "pack_record",
    "unpack_mark",
    "unpack_message",
    "up_topic",
]

REASONS = (
    "not_msgpack",  # the bytes are no MessagePack map, or hold the byte 0xC1
    "cut_short",  # the bytes end inside a value
    "trailing_bytes",  # bytes stand behind the map
    "too_large",  # more than MAX_MESSAGE_BYTES
    "too_deep",  # containers nested deeper than MAX_DEPTH
    "bad_header",  # a key missing, unknown, doubled or out of order
    "unknown_version",  # v is not 1
    "count_mismatch",  # n is not the length of r
    "bad_record",  # not an array, or not as many values as its kind has
    "unknown_kind",
    "not_integer",  # a float (NaN too), nil, a truth value, text or a container
    "not_text",  # no text where text belongs, or not UTF-8
    "out_of_range",
)

KINDS = {code: known_kind(code) for code in CODES}
"""Every kind by its code; what a record holds, in which unit and within which bounds."""

Record = namedtuple("Record", ("seq", "kind", "uptime_ms", "values"))
Fault = namedtuple("Fault", ("seq", "reason", "raw"))
"""A record that counts in the mark and is stored as a dead letter. ``raw`` is the record's
own bytes where they can be told apart; else the first fault of the message carries the
whole payload and the following ones carry ``b""``: their bytes stand in the first."""

Message = namedtuple("Message", ("boot", "first_seq", "count", "sent_uptime_ms", "wall_ms", "records", "faults"))
"""A read message: ``len(records) + len(faults) == count``, both ordered by ``seq``."""


def _read_text(data: bytes, at: int, field: Field) -> tuple[str, int]:
    shape, length, at = token(data, at)
    if shape != TEXT:
        raise WireError("not_text", f"{field.name} must be text, is {SHAPES[shape]}")
    if not field.low <= length <= field.high:
        raise WireError("out_of_range", f"{field.name} must be {field.low} to {field.high} bytes, is {length}")
    try:
        return str(data[at : at + length], "utf-8"), at + length
    except UnicodeError:  # MicroPython raises the plain class
        raise WireError("not_text", f"{field.name} must be UTF-8") from None


def _read_key(data: bytes, at: int) -> tuple[str, int]:
    shape, length, at = token(data, at)
    if shape != TEXT or length != 1:
        raise WireError("bad_header", f"a key must be one letter, is {SHAPES[shape]} of length {length}")
    return chr(data[at]), at + 1


def _read_record(raw: bytes, at: int, seq: int) -> tuple[Record, int]:
    """Read one record: (it, where the next one begins)."""
    shape, length, at = token(raw, at)
    if shape != ARRAY or length < 2:
        raise WireError("bad_record", f"a record must be an array of 2 or more, is {SHAPES[shape]} of {length}")
    code, at = read_int(raw, at, "kind", 0, U32_MAX)
    kind = known_kind(code)
    if length != 2 + len(kind.fields):
        raise WireError("bad_record", f"{kind.name} must have {len(kind.fields)} values, has {length - 2}")
    uptime_ms, at = read_int(raw, at, "uptime_ms", 0, MS_MAX)
    values: list[int | str] = []
    for field in kind.fields:
        value: int | str
        if field.unit == "text":
            value, at = _read_text(raw, at, field)
        else:
            value, at = read_int(raw, at, field.name, field.low, field.high, field.unknown)
        values.append(value)
    return Record(seq, code, uptime_ms, tuple(values)), at


def _read_records(data: bytes, at: int, first_seq: int, count: int) -> tuple[list[Record], list[Fault], int]:
    """The array ``r``: what reads, what does not, and where it ends."""
    shape, length, at = token(data, at)
    if shape != ARRAY:
        raise WireError("bad_header", f"r must be an array, is {SHAPES[shape]}")
    if length != count:
        raise WireError("count_mismatch", f"r must hold n = {count} records, holds {length}")
    records: list[Record] = []
    faults: list[Fault] = []
    for seq in range(first_seq, first_seq + count):
        try:
            record, at = _read_record(data, at, seq)
            records.append(record)
            continue
        except WireError as broken:
            reason = broken.reason
        start = at
        try:
            at, deep = skip(data, at, MAX_DEPTH - 2)  # the map and r stand around it
        except WireError as lost:
            # From here no later record can be told apart; what was read before stays good.
            rest = [Fault(later, lost.reason, b"") for later in range(seq + 1, first_seq + count)]
            return records, faults + [Fault(seq, lost.reason, data[start:])] + rest, len(data)
        faults.append(Fault(seq, "too_deep" if deep else reason, data[start:at]))
    return records, faults, at


def _read_body(data: bytes, at: int, pairs: int, boot: int, first_seq: int, count: int) -> Message:
    """Everything behind ``n``; raises where it is not ``[u] [w] r`` and the end."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise WireError("too_large", f"a message must be at most {MAX_MESSAGE_BYTES} bytes, is {len(data)}")
    told: dict[str, int] = {}
    order = "uwr"
    for _ in range(pairs):
        key, at = _read_key(data, at)
        if key not in order:
            raise WireError("bad_header", f"after n must come u, w, r in this order, found {key!r}")
        order = order[order.index(key) + 1 :]
        if key == "r":
            break
        told[key], at = read_int(data, at, key, 0, MS_MAX)
    if order:
        raise WireError("bad_header", "the last key must be r")
    if pairs != len(told) + 1:
        raise WireError("bad_header", f"r must be the last key, {pairs - len(told) - 1} more follow")
    records, faults, at = _read_records(data, at, first_seq, count)
    if at != len(data):
        raise WireError("trailing_bytes", f"the message must end at byte {at}, has {len(data)}")
    return Message(boot, first_seq, count, told.get("u"), told.get("w"), tuple(records), tuple(faults))


def unpack_message(data: bytes) -> Message:
    """Read a message; every record comes back as a :class:`Record` or as a :class:`Fault`.

    Where ``v``, ``b``, ``s`` and ``n`` can be read but what follows cannot, all ``n``
    records come back as faults of one reason: they count in the mark and are not sent again.

    Raises
    ------
    WireError
        The header cannot be read: nobody can say which records these were, the mark waits.
    """
    shape, pairs, at = token(data, 0)
    if shape != MAP:
        raise WireError("not_msgpack", f"a message must be one MessagePack map, is {SHAPES[shape]}")
    head: list[int] = []
    for name, low, high in (("v", 0, U32_MAX), ("b", 0, U32_MAX), ("s", 0, U32_MAX), ("n", 1, MAX_RECORDS)):
        key, at = _read_key(data, at)
        if key != name:
            raise WireError("bad_header", f"key {len(head) + 1} must be {name!r}, is {key!r}")
        value, at = read_int(data, at, name, low, high)
        head.append(value)
        if head[0] != VERSION:
            raise WireError("unknown_version", f"v must be {VERSION}, is {head[0]}")
    _, boot, first_seq, count = head
    check_int("s + n - 1", first_seq + count - 1, 0, U32_MAX)
    try:
        return _read_body(data, at, pairs - 4, boot, first_seq, count)
    except WireError as broken:
        faults = tuple(Fault(first_seq + i, broken.reason, b"" if i else bytes(data)) for i in range(count))
        return Message(boot, first_seq, count, None, None, (), faults)
