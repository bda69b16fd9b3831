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

from firmware_bridge.msgpack import (
    ARRAY,
    INT,
    MAP,
    SHAPES,
    TEXT,
    U32_MAX,
    WireError,
    pack_array,
    pack_int,
    pack_map,
    pack_text,
    skip,
    token,
)

VERSION = 1
MAX_MESSAGE_BYTES = 16_384  # the embedded broker drops a publisher above 20,480
MAX_RECORDS = 64
MAX_DEPTH = 4
MAX_MARK_BOOTS = 64
I32_MAX = 0x7FFF_FFFF
MS_MAX = (1 << 53) - 1  # every instant stays exact in a double, wherever it is read again
DAY_MS = 86_400_000
FIRST_SEQ = 1  # a boot's first record; so a mark of 0 would mean nothing, and is never sent

HELLO, BEAT, MEAL, REFILL, FOOD_SET, MOTION = 1, 2, 3, 4, 5, 6
WEIGHT, TEMPERATURE, TARE, MARK_REQUEST, PLATEAU = 7, 8, 9, 10, 11

BATTERY_UNKNOWN = 65_535
NOT_WORN, WORN, WORN_UNKNOWN = 0, 1, 2  # a bowl says 2: it is not a thing one wears

# Quality of a weighing: 0 is clean, else the sum of what spoils it.
UNSETTLED, TEMPERATURE_MOVED, ZERO_DOUBTFUL, TOO_FAST = 1, 2, 4, 8

LINK_ONLINE = b"online"
LINK_OFFLINE = b"offline"

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

Field = namedtuple("Field", ("name", "unit", "low", "high", "unknown"))
"""One value of a kind. ``low`` and ``high`` are inclusive; for unit ``text`` they bound
the UTF-8 length in bytes. ``unknown`` is the one value outside them that is allowed."""

Kind = namedtuple("Kind", ("code", "name", "fields"))
Record = namedtuple("Record", ("seq", "kind", "uptime_ms", "values"))
Fault = namedtuple("Fault", ("seq", "reason", "raw"))
"""A record that counts in the mark and is stored as a dead letter. ``raw`` is the record's
own bytes where they can be told apart; else the first fault of the message carries the
whole payload and the following ones carry ``b""``: their bytes stand in the first."""

Message = namedtuple("Message", ("boot", "first_seq", "count", "sent_uptime_ms", "wall_ms", "records", "faults"))
"""A read message: ``len(records) + len(faults) == count``, both ordered by ``seq``."""


def _ms(name: str) -> Field:
    return Field(name, "ms", 0, DAY_MS, None)


def _mg(name: str) -> Field:
    # Signed: a bowl that stands at -11.59 g before a meal and -18.09 g after it is not clamped.
    return Field(name, "mg", -I32_MAX, I32_MAX, None)


_QUALITY = Field("quality", "flags", 0, 15, None)

KINDS = {
    kind.code: kind
    for kind in (
        Kind(
            HELLO,
            "hello",
            (
                Field("model", "text", 1, 32, None),
                Field("firmware", "text", 1, 32, None),
                Field("detector", "version", 0, U32_MAX, None),
                Field("slots", "count", 1, U32_MAX, None),
                Field("lowest_seq", "seq", 0, U32_MAX, None),
                Field("dropped", "count", 0, U32_MAX, None),
            ),
        ),
        Kind(
            BEAT,
            "beat",
            (
                Field("battery", "permille", 0, 1000, BATTERY_UNKNOWN),
                Field("worn", "state", 0, 2, None),
                Field("charging", "state", 0, 1, None),
            ),
        ),
        Kind(
            MEAL,
            "meal",
            (Field("began_ms", "uptime_ms", 0, MS_MAX, None), _ms("lasted"), _mg("removed"), _QUALITY),
        ),
        Kind(REFILL, "refill", (_mg("added"),)),
        Kind(FOOD_SET, "food_set", (Field("code", "text", 0, 32, None), Field("text", "text", 0, 200, None))),
        Kind(
            MOTION,
            "motion",
            tuple(
                _ms(name) for name in ("lasted", "scratch", "shake", "low", "mid", "high", "rest", "restless", "worn")
            ),
        ),
        Kind(WEIGHT, "weight", (_mg("weight"),)),
        Kind(TEMPERATURE, "temperature", (Field("temperature", "mK", 0, 1_000_000, None),)),
        Kind(TARE, "tare", ()),
        Kind(MARK_REQUEST, "mark_request", ()),
        Kind(PLATEAU, "plateau", (_mg("weight"), _QUALITY)),
    )
}
"""Every kind by its code; what a record holds, in which unit and within which bounds."""


# --- topics -------------------------------------------------------------------------------

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_PREFIX = "scentwalk/1/"
UP_FILTER = _PREFIX + "+/up"


def is_device_id(text: str) -> bool:
    """Whether ``text`` may name a device: 1 to 32 of a-z 0-9 _ - (no MQTT wildcard fits)."""
    return 1 <= len(text) <= 32 and all(letter in _ID_LETTERS for letter in text)


def _topic(device: str, leaf: str) -> str:
    if not is_device_id(device):
        raise ValueError(f"a device id must be 1 to 32 of a-z 0-9 _ -, is {device!r}")
    return _PREFIX + device + "/" + leaf


def up_topic(device: str) -> str:
    """Where a device publishes its messages: QoS 1, never retained."""
    return _topic(device, "up")


def mark_topic(device: str) -> str:
    """Where the gateway retains what it has stored: boot -> last contiguous seq."""
    return _topic(device, "mark")


def link_topic(device: str) -> str:
    """Where a device retains ``online``, and its will ``offline``."""
    return _topic(device, "link")


def device_of(topic: str) -> str | None:
    """The device of a Wire 1 topic, or None where it is none."""
    parts = topic.split("/")
    shaped = len(parts) == 4 and parts[0] == "scentwalk" and parts[1] == "1" and parts[3] in ("up", "mark", "link")
    return parts[2] if shaped and is_device_id(parts[2]) else None


# --- writing ------------------------------------------------------------------------------


def _check_int(name: str, value: object, low: int, high: int, unknown: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError("not_integer", f"{name} must be an integer, is {value!r}")
    if not low <= value <= high and value != unknown:
        raise WireError("out_of_range", f"{name} must be {low} to {high}, is {value}")
    return value


def _check_text(field: Field, value: object) -> bytes:
    if not isinstance(value, str):
        raise WireError("not_text", f"{field.name} must be text, is {value!r}")
    raw = value.encode()
    if not field.low <= len(raw) <= field.high:
        raise WireError("out_of_range", f"{field.name} must be {field.low} to {field.high} bytes, is {len(raw)}")
    return raw


def _kind(code: int) -> Kind:
    kind = KINDS.get(code)
    if kind is None:
        raise WireError("unknown_kind", f"a record's kind must be 1 to {len(KINDS)}, is {code}")
    return kind


def pack_record(code: int, uptime_ms: int, values: tuple[int | str, ...]) -> bytes:
    """One record as bytes: ``[kind, uptime_ms, values...]``.

    Parameters
    ----------
    code : int
        A key of ``KINDS``.
    uptime_ms : int
        When it happened, ms since this boot.
    values : tuple
        The kind's fields in order, in their units.

    Raises
    ------
    WireError
        A value outside its field's bounds; nothing the gateway would refuse is ever sent.
    """
    kind = _kind(code)
    fields = kind.fields
    if len(values) != len(fields):
        raise WireError("bad_record", f"{kind.name} must have {len(fields)} values, has {len(values)}")
    _check_int("uptime_ms", uptime_ms, 0, MS_MAX)
    parts = [pack_array(2 + len(values)), pack_int(code), pack_int(uptime_ms)]
    for index, field in enumerate(fields):
        value = values[index]
        if field.unit == "text":
            parts.append(pack_text(_check_text(field, value)))
        else:
            parts.append(pack_int(_check_int(field.name, value, field.low, field.high, field.unknown)))
    return b"".join(parts)


def pack_message(
    boot: int,
    first_seq: int,
    records: list[bytes],
    sent_uptime_ms: int | None = None,
    wall_ms: int | None = None,
) -> bytes:
    """A message of records already packed, numbered ``first_seq``, ``first_seq + 1``...

    Parameters
    ----------
    boot, first_seq : int
        u32. ``boot`` is the one the records were taken in.
    records : list of bytes
        1 to 64 results of :func:`pack_record`.
    sent_uptime_ms : int, optional
        Uptime of that same boot at sending; None where the boot is over.
    wall_ms : int, optional
        UTC ms at sending, where the device knows it.

    Raises
    ------
    WireError
        ``out_of_range`` or ``too_large``.
    """
    count = _check_int("n", len(records), 1, MAX_RECORDS)
    parts = [
        bytes((0x80 | (5 + (sent_uptime_ms is not None) + (wall_ms is not None)),)),
        b"\xa1v\x01\xa1b",
        pack_int(_check_int("b", boot, 0, U32_MAX)),
        b"\xa1s",
        pack_int(_check_int("s", first_seq, 0, U32_MAX - count + 1)),
        b"\xa1n",
        pack_int(count),
    ]
    if sent_uptime_ms is not None:
        parts += (b"\xa1u", pack_int(_check_int("u", sent_uptime_ms, 0, MS_MAX)))
    if wall_ms is not None:
        parts += (b"\xa1w", pack_int(_check_int("w", wall_ms, 0, MS_MAX)))
    parts += (b"\xa1r", pack_array(count))
    parts += records
    packed = b"".join(parts)
    if len(packed) > MAX_MESSAGE_BYTES:
        raise WireError("too_large", f"a message must be at most {MAX_MESSAGE_BYTES} bytes, is {len(packed)}")
    return packed


HEADER_BYTES = 64  # the longest header (57) and change: what a sender keeps free beside the records


def pack_mark(marks: dict[int, int]) -> bytes:
    """The retained mark: boot -> last seq up to which everything is stored, newest 64 boots."""
    boots = sorted(marks)[-MAX_MARK_BOOTS:]
    parts = [pack_map(len(boots))]
    for boot in boots:
        parts.append(pack_int(_check_int("boot", boot, 0, U32_MAX)))
        parts.append(pack_int(_check_int("mark", marks[boot], 0, U32_MAX)))
    return b"".join(parts)


# --- reading ------------------------------------------------------------------------------


def _read_int(data: bytes, at: int, name: str, low: int, high: int, unknown: int | None = None) -> tuple[int, int]:
    shape, value, at = token(data, at)
    if shape != INT:
        raise WireError("not_integer", f"{name} must be an integer, is {SHAPES[shape]}")
    return _check_int(name, value, low, high, unknown), at


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


def _read_record(raw: bytes, seq: int) -> Record:
    """Read one record's own bytes, whose shape :func:`skip` has already walked."""
    shape, length, at = token(raw, 0)
    if shape != ARRAY or length < 2:
        raise WireError("bad_record", f"a record must be an array of 2 or more, is {SHAPES[shape]} of {length}")
    code, at = _read_int(raw, at, "kind", 0, U32_MAX)
    kind = _kind(code)
    if length != 2 + len(kind.fields):
        raise WireError("bad_record", f"{kind.name} must have {len(kind.fields)} values, has {length - 2}")
    uptime_ms, at = _read_int(raw, at, "uptime_ms", 0, MS_MAX)
    values: list[int | str] = []
    for field in kind.fields:
        value: int | str
        if field.unit == "text":
            value, at = _read_text(raw, at, field)
        else:
            value, at = _read_int(raw, at, field.name, field.low, field.high, field.unknown)
        values.append(value)
    return Record(seq, code, uptime_ms, tuple(values))


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
        start = at
        try:
            at, deep = skip(data, at, MAX_DEPTH - 2)  # the map and r stand around it
        except WireError as lost:
            # From here no later record can be told apart; what was read before stays good.
            rest = [Fault(later, lost.reason, b"") for later in range(seq + 1, first_seq + count)]
            return records, faults + [Fault(seq, lost.reason, data[start:])] + rest, len(data)
        raw = data[start:at]
        if deep:
            faults.append(Fault(seq, "too_deep", raw))
            continue
        try:
            records.append(_read_record(raw, seq))
        except WireError as broken:
            faults.append(Fault(seq, broken.reason, raw))
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
        told[key], at = _read_int(data, at, key, 0, MS_MAX)
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
        value, at = _read_int(data, at, name, low, high)
        head.append(value)
        if head[0] != VERSION:
            raise WireError("unknown_version", f"v must be {VERSION}, is {head[0]}")
    _, boot, first_seq, count = head
    _check_int("s + n - 1", first_seq + count - 1, 0, U32_MAX)
    try:
        return _read_body(data, at, pairs - 4, boot, first_seq, count)
    except WireError as broken:
        faults = tuple(Fault(first_seq + i, broken.reason, b"" if i else bytes(data)) for i in range(count))
        return Message(boot, first_seq, count, None, None, (), faults)


def unpack_mark(data: bytes) -> dict[int, int]:
    """Read a retained mark: boot -> last contiguous stored seq.

    Raises
    ------
    WireError
        Not one map of u32 to u32, or more than 64 boots.
    """
    shape, pairs, at = token(data, 0)
    if shape != MAP or pairs > MAX_MARK_BOOTS:
        raise WireError("not_msgpack", f"a mark must be a map of at most {MAX_MARK_BOOTS}, is {SHAPES[shape]}")
    marks = {}
    for _ in range(pairs):
        boot, at = _read_int(data, at, "boot", 0, U32_MAX)
        marks[boot], at = _read_int(data, at, "mark", 0, U32_MAX)
    if at != len(data):
        raise WireError("trailing_bytes", f"the mark must end at byte {at}, has {len(data)}")
    return marks
