"""The device's half of Wire 1: values to records, records to messages, and marks to read.

A record is packed when it is taken, so a ring holds bytes; a message is a head and those
bytes. Nothing that the gateway would refuse can be packed. Pure, and the same file runs on
CPython and MicroPython; a device that only sends never loads the reader in ``wire``.
"""

from firmware_bridge.kinds import CODES, MAX_MARK_BOOTS, MAX_MESSAGE_BYTES, MAX_RECORDS, MS_MAX, Field, Kind, find_kind
from firmware_bridge.msgpack import (
    INT,
    MAP,
    SHAPES,
    U32_MAX,
    WireError,
    pack_array,
    pack_int,
    pack_map,
    pack_text,
    token,
)


def check_int(name: str, value: object, low: int, high: int, unknown: int | None = None) -> int:
    """``value`` where it is an integer of ``low`` to ``high``, or the one ``unknown`` beside them."""
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


def known_kind(code: int) -> Kind:
    """The kind of that code; an error of reason ``unknown_kind`` where there is none."""
    kind = find_kind(code)
    if kind is None:
        raise WireError("unknown_kind", f"a record's kind must be 1 to {CODES[-1]}, is {code}")
    return kind


def pack_record(code: int, uptime_ms: int, values: tuple[int | str, ...]) -> bytes:
    """One record as bytes: ``[kind, uptime_ms, values...]``.

    Parameters
    ----------
    code : int
        One of ``kinds.CODES``.
    uptime_ms : int
        When it happened, ms since this boot.
    values : tuple
        The kind's fields in order, in their units.

    Raises
    ------
    WireError
        A value outside its field's bounds; nothing the gateway would refuse is ever sent.
    """
    kind = known_kind(code)
    fields = kind.fields
    if len(values) != len(fields):
        raise WireError("bad_record", f"{kind.name} must have {len(fields)} values, has {len(values)}")
    check_int("uptime_ms", uptime_ms, 0, MS_MAX)
    parts = [pack_array(2 + len(values)), pack_int(code), pack_int(uptime_ms)]
    for index, field in enumerate(fields):
        value = values[index]
        if field.unit == "text":
            parts.append(pack_text(_check_text(field, value)))
        else:
            parts.append(pack_int(check_int(field.name, value, field.low, field.high, field.unknown)))
    return b"".join(parts)


def pack_head(
    boot: int,
    first_seq: int,
    count: int,
    sent_uptime_ms: int | None = None,
    wall_ms: int | None = None,
) -> bytes:
    """What stands before the records of a message: ``v b s n [u] [w]`` and the head of ``r``.

    Parameters
    ----------
    boot, first_seq : int
        u32. ``boot`` is the one the records were taken in.
    count : int
        1 to 64 records follow, numbered ``first_seq``, ``first_seq + 1``...
    sent_uptime_ms : int, optional
        Uptime of that same boot at sending; None where the boot is over.
    wall_ms : int, optional
        UTC ms at sending, where the device knows it.

    Raises
    ------
    WireError
        ``out_of_range``.
    """
    check_int("n", count, 1, MAX_RECORDS)
    parts = [
        bytes((0x80 | (5 + (sent_uptime_ms is not None) + (wall_ms is not None)),)),
        b"\xa1v\x01\xa1b",
        pack_int(check_int("b", boot, 0, U32_MAX)),
        b"\xa1s",
        pack_int(check_int("s", first_seq, 0, U32_MAX - count + 1)),
        b"\xa1n",
        pack_int(count),
    ]
    if sent_uptime_ms is not None:
        parts += (b"\xa1u", pack_int(check_int("u", sent_uptime_ms, 0, MS_MAX)))
    if wall_ms is not None:
        parts += (b"\xa1w", pack_int(check_int("w", wall_ms, 0, MS_MAX)))
    parts += (b"\xa1r", pack_array(count))
    return b"".join(parts)


def pack_message(
    boot: int,
    first_seq: int,
    records: list[bytes],
    sent_uptime_ms: int | None = None,
    wall_ms: int | None = None,
) -> bytes:
    """A whole message of records already packed; parameters and errors as :func:`pack_head`.

    Raises
    ------
    WireError
        Also ``too_large``.
    """
    packed = pack_head(boot, first_seq, len(records), sent_uptime_ms, wall_ms) + b"".join(records)
    if len(packed) > MAX_MESSAGE_BYTES:
        raise WireError("too_large", f"a message must be at most {MAX_MESSAGE_BYTES} bytes, is {len(packed)}")
    return packed


def pack_mark(marks: dict[int, int]) -> bytes:
    """The retained mark: boot -> last seq up to which everything is stored, newest 64 boots."""
    boots = sorted(marks)[-MAX_MARK_BOOTS:]
    parts = [pack_map(len(boots))]
    for boot in boots:
        parts.append(pack_int(check_int("boot", boot, 0, U32_MAX)))
        parts.append(pack_int(check_int("mark", marks[boot], 0, U32_MAX)))
    return b"".join(parts)


def read_int(data: bytes, at: int, name: str, low: int, high: int, unknown: int | None = None) -> tuple[int, int]:
    """Read an integer of ``low`` to ``high``: (it, where it goes on)."""
    first = data[at] if at < len(data) else 0xFF
    width = 1 << (first - 0xCC) if 0xCC <= first <= 0xCE else 0
    if first < 0x80 or (width and at + width < len(data)):
        # Most integers of a frame have one of these four forms: a third of the time.
        at += 1 + width
        value = int.from_bytes(data[at - width : at], "big") if width else first
        if low <= value <= high:
            return value, at
        return check_int(name, value, low, high, unknown), at
    shape, value, at = token(data, at)
    if shape != INT:
        raise WireError("not_integer", f"{name} must be an integer, is {SHAPES[shape]}")
    return check_int(name, value, low, high, unknown), at


def _read_marks(data: bytes):  # type: ignore[no-untyped-def]  # a generator: no typing there
    """(boot, seq) of a retained mark, one after the other; an error where it is none."""
    shape, pairs, at = token(data, 0)
    if shape != MAP or pairs > MAX_MARK_BOOTS:
        raise WireError("not_msgpack", f"a mark must be a map of at most {MAX_MARK_BOOTS}, is {SHAPES[shape]}")
    for _ in range(pairs):
        boot, at = read_int(data, at, "boot", 0, U32_MAX)
        seq, at = read_int(data, at, "mark", 0, U32_MAX)
        yield boot, seq
    if at != len(data):
        raise WireError("trailing_bytes", f"the mark must end at byte {at}, has {len(data)}")


def unpack_mark(data: bytes) -> dict[int, int]:
    """Read a retained mark: boot -> last contiguous stored seq.

    Raises
    ------
    WireError
        Not one map of u32 to u32, or more than 64 boots.
    """
    return dict(_read_marks(data))


class Marks:
    """A retained mark that is looked up where it lies: a dict of 64 boots wants a piece of
    memory that a heap of 64 kB, once in use, no longer has.

    Raises
    ------
    WireError
        As :func:`unpack_mark`.
    """

    def __init__(self, data: bytes) -> None:
        for _ in _read_marks(data):
            pass
        self._data = data

    def get(self, boot: int, default: int) -> int:
        """The last stored seq of a boot; ``default`` where the mark does not name it."""
        for told, seq in _read_marks(self._data):
            if told == boot:
                return int(seq)
        return default
