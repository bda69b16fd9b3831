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
_ALIKE = {
    code: bounds[0][:2]
    for code, bounds in _PLAIN.items()
    if len(set(bounds)) == 1 and len(bounds) > 1 and bounds[0][2] is None
}
"""Bounds that all fields of a kind share, by code: those of motion, which most records are."""
_INTEGERS = {int}


def _plain_record(seq: int, found: object) -> wire.Record | None:
    """The record where it keeps every rule and holds no text, else None."""
    if type(found) is not tuple or len(found) < 2 or type(found[0]) is not int:
        return None
    bounds = _PLAIN.get(found[0])
    if bounds is None or len(found) != 2 + len(bounds):
        return None
    code, uptime_ms, values = found[0], found[1], found[2:]
    if type(uptime_ms) is not int or not 0 <= uptime_ms <= wire.MS_MAX:
        return None
    alike = _ALIKE.get(code)
    if alike is not None:
        low, high = alike
        whole = set(map(type, values)) == _INTEGERS and low <= min(values) and max(values) <= high
        return wire.Record(seq, code, uptime_ms, values) if whole else None
    for value, (low, high, unknown) in zip(values, bounds, strict=True):
        if type(value) is not int or not (low <= value <= high or value == unknown):
            return None
    return wire.Record(seq, code, uptime_ms, values)


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
    version, boot, first_seq, count, told = found["v"], found["b"], found["s"], found["n"], found["r"]
    sent_ms, wall_ms = found.get("u", 0), found.get("w", 0)
    if type(told) is not tuple or set(map(type, (version, boot, first_seq, count, sent_ms, wall_ms))) != _INTEGERS:
        return None
    if version != wire.VERSION or not 1 <= count <= wire.MAX_RECORDS or count != len(told):
        return None
    if boot < 0 or boot > wire.U32_MAX or first_seq < 0 or first_seq + count - 1 > wire.U32_MAX:
        return None
    if not 0 <= sent_ms <= wire.MS_MAX or not 0 <= wall_ms <= wire.MS_MAX:
        return None
    records = []
    for seq, each in enumerate(told, start=first_seq):
        record = _plain_record(seq, each)
        if record is None:
            return None
        records.append(record)
    return wire.Message(boot, first_seq, count, found.get("u"), found.get("w"), tuple(records), ())


def unpack_message(data: bytes) -> wire.Message:
    """What `wire.unpack_message` says of these bytes, in every case, only sooner in most.

    Raises
    ------
    wire.WireError
        As there: the header cannot be read.
    """
    plain = _plain_message(data)
    return wire.unpack_message(data) if plain is None else plain
