"""The part of MessagePack that Wire 1 speaks: values to bytes, and a walk over bytes.

Writes integers, text and the heads of arrays and maps, each in its shortest form, so the
bytes equal those of any MessagePack library. Reads one head at a time; what stands inside
is the caller's to know. Everything MessagePack defines can be passed over, but floats,
extensions, nil and truth values carry no value here.

Pure, no recursion, and the same file runs on CPython and MicroPython. It stands apart from
``wire`` because MicroPython parses a source file whole: either half fits a 64 kB heap.
"""

import struct

U32_MAX = 0xFFFF_FFFF


class WireError(ValueError):
    """Bytes or values that break the wire.

    Attributes
    ----------
    reason : str
        One stable word of ``wire.REASONS``, for counting; from here only ``not_msgpack``
        and ``cut_short``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def pack_int(value: int) -> bytes:
    """An integer in its shortest form, as every MessagePack library writes it."""
    if value >= 0:
        if value < 0x80:
            return bytes((value,))
        if value < 0x100:
            return bytes((0xCC, value))
        if value < 0x1_0000:
            return struct.pack(">BH", 0xCD, value)
        if value <= U32_MAX:
            return struct.pack(">BI", 0xCE, value)
        return struct.pack(">BQ", 0xCF, value)
    if value >= -0x20:
        return bytes((0x100 + value,))
    if value >= -0x80:
        return struct.pack(">Bb", 0xD0, value)
    if value >= -0x8000:
        return struct.pack(">Bh", 0xD1, value)
    if value >= -0x8000_0000:
        return struct.pack(">Bi", 0xD2, value)
    return struct.pack(">Bq", 0xD3, value)


def pack_text(raw: bytes) -> bytes:
    """A text of at most 255 bytes of UTF-8."""
    if len(raw) < 32:
        return bytes((0xA0 | len(raw),)) + raw
    return bytes((0xD9, len(raw))) + raw


def pack_array(length: int) -> bytes:
    """The head of an array of ``length`` values (u16), which follow."""
    return bytes((0x90 | length,)) if length < 16 else struct.pack(">BH", 0xDC, length)


def pack_map(length: int) -> bytes:
    """The head of a map of ``length`` pairs (u16), which follow."""
    return bytes((0x80 | length,)) if length < 16 else struct.pack(">BH", 0xDE, length)


INT, TEXT, BIN, ARRAY, MAP, OTHER = 0, 1, 2, 3, 4, 5
SHAPES = {INT: "an integer", TEXT: "text", BIN: "bytes", ARRAY: "an array", MAP: "a map", OTHER: "no integer"}

# What a first byte from 0xC0 on opens, indexed by that byte - 0xC0. _WIDTH: bytes of the
# integer or length that follows; _REST: bytes of fixed size behind it that carry no value
# here (a float, an extension's type and content). Byte strings: 96 bytes instead of 3 kB.
_BAD = 6
_SHAPE = bytes(
    (OTHER, _BAD, OTHER, OTHER)  # nil, never used, false, true
    + (BIN,) * 6  # bin, and ext, whose content is passed over alike
    + (OTHER,) * 2  # floats
    + (INT,) * 8
    + (OTHER,) * 5  # fixext
    + (TEXT,) * 3
    + (ARRAY,) * 2
    + (MAP,) * 2
)
_WIDTH = bytes((0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 1, 2, 4, 8, 1, 2, 4, 8, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4))
_REST = bytes((0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0, 0))


def _cut(at: int) -> WireError:
    return WireError("cut_short", f"a value must end within the bytes, they end at {at}")


def token(data: bytes, at: int) -> tuple[int, int, int]:
    """Read one value's head: (type, number or length, where it goes on).

    For text and bytes ``length`` has been checked against the end of ``data``; a container
    goes on with its first element; everything else goes on behind the value.
    """
    if at >= len(data):
        raise _cut(len(data))
    first = data[at]
    at += 1
    if first < 0x80:
        return INT, first, at
    if first >= 0xE0:
        return INT, first - 0x100, at
    if first < 0x90:
        return MAP, first & 0x0F, at
    if first < 0xA0:
        return ARRAY, first & 0x0F, at
    shape = TEXT
    value = first & 0x1F
    if first >= 0xC0:
        shape = _SHAPE[first - 0xC0]
        if shape == _BAD:
            raise WireError("not_msgpack", f"byte {at - 1} must open a MessagePack value, is 0x{first:02X}")
        width = _WIDTH[first - 0xC0]
        if at + width > len(data):
            raise _cut(len(data))
        value = int.from_bytes(data[at : at + width], "big")
        if 0xD0 <= first <= 0xD3 and value >> (8 * width - 1):
            value -= 1 << (8 * width)
        at += width + _REST[first - 0xC0]
    if at + (value if shape in (TEXT, BIN) else 0) > len(data):
        raise _cut(len(data))
    return shape, value, at


def skip(data: bytes, at: int, levels: int) -> tuple[int, bool]:
    """Pass over one value: (its end, whether it nests more than ``levels`` containers).

    Iterative: ``left`` holds, per open container, how many values are still to come. Below
    the permitted depth it grows no further: the innermost level permitted counts for all.
    """
    left = [1]
    deep = False
    while left:
        if left[-1] == 0:
            left.pop()
            continue
        left[-1] -= 1
        shape, value, at = token(data, at)
        if shape in (TEXT, BIN):
            at += value
        elif shape in (ARRAY, MAP):
            inside = value * 2 if shape == MAP else value
            if len(left) > levels:
                deep = True
                left[-1] += inside
            else:
                left.append(inside)
    return at, deep
