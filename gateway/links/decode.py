"""Reads Wire 1 messages fast: bytes in, what `firmware_bridge.wire` says of them out. Pure.

The device's own reader walks the bytes in Python, one value at a time. Nearly every message
a home hears is plain (integers only, nothing wrong), and those are read here by msgpack's C
extension and checked by the same table of kinds. Whatever is not plain (text, a fault of any
kind, an unusual head) goes to `wire.unpack_message`, which alone decides what is wrong with a
message and why: here nothing is ever refused.
"""

from __future__ import annotations

import msgpack

from firmware_bridge import wire

__all__ = ["unpack_message"]

_HEADS = frozenset({tuple(f"vbsn{told}r") for told in ("", "u", "w", "uw")})
_PLAIN = {
    code: tuple((field.low, field.high, field.unknown) for field in kind.fields)
    for code, kind in wire.KINDS.items()
    if all(field.unit != "text" for field in kind.fields)
}
"""Bounds of the kinds that hold integers only, by code."""


def _is_whole(value: object, high: int) -> bool:
    return type(value) is int and 0 <= value <= high


def _plain_record(seq: int, found: object) -> wire.Record | None:
    """The record where it keeps every rule and holds no text, else None."""
    if type(found) is not tuple or len(found) < 2 or type(found[0]) is not int:
        return None
    bounds = _PLAIN.get(found[0])
    if bounds is None or len(found) != 2 + len(bounds) or not _is_whole(found[1], wire.MS_MAX):
        return None
    values = found[2:]
    for value, (low, high, unknown) in zip(values, bounds, strict=True):
        if type(value) is not int or not (low <= value <= high or value == unknown):
            return None
    return wire.Record(seq, found[0], found[1], values)


def _plain_message(data: bytes) -> wire.Message | None:
    """The message where all of it keeps every rule and holds no text, else None."""
    if len(data) > wire.MAX_MESSAGE_BYTES:
        return None
    try:
        found = msgpack.unpackb(data, use_list=False)
    except ValueError:  # every error of msgpack's own is one
        return None
    # A key that stood twice is one in the dict: the first byte says how many there were.
    if type(found) is not dict or tuple(found) not in _HEADS or data[0] != 0x80 | len(found):
        return None
    boot, first_seq, count, told = found["b"], found["s"], found["n"], found["r"]
    if type(found["v"]) is not int or found["v"] != wire.VERSION or type(told) is not tuple:
        return None
    if not (_is_whole(boot, wire.U32_MAX) and _is_whole(first_seq, wire.U32_MAX) and _is_whole(count, len(told))):
        return None
    if count != len(told) or not 1 <= count <= wire.MAX_RECORDS or first_seq + count - 1 > wire.U32_MAX:
        return None
    sent_ms, wall_ms = found.get("u"), found.get("w")
    if not all(_is_whole(found[name], wire.MS_MAX) for name in ("u", "w") if name in found):
        return None
    records = []
    for seq, each in enumerate(told, start=first_seq):
        record = _plain_record(seq, each)
        if record is None:
            return None
        records.append(record)
    return wire.Message(boot, first_seq, count, sent_ms, wall_ms, tuple(records), ())


def unpack_message(data: bytes) -> wire.Message:
    """What `wire.unpack_message` says of these bytes, in every case, only sooner in most.

    Raises
    ------
    wire.WireError
        As there: the header cannot be read.
    """
    plain = _plain_message(data)
    return wire.unpack_message(data) if plain is None else plain
