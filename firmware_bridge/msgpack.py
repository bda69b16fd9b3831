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

# First bytes from 0xC0: (type, how its integer or length is packed, bytes that follow it untold).
_HEADS = {
    0xC0: (OTHER, None, 0),  # nil
    0xC2: (OTHER, None, 0),  # false
    0xC3: (OTHER, None, 0),  # true
    0xC4: (BIN, ">B", 0),
    0xC5: (BIN, ">H", 0),
    0xC6: (BIN, ">I", 0),
    0xC7: (BIN, ">B", 1),  # ext: one type byte before its content
    0xC8: (BIN, ">H", 1),
    0xC9: (BIN, ">I", 1),
    0xCA: (OTHER, None, 4),  # float 32
    0xCB: (OTHER, None, 8),  # float 64
    0xCC: (INT, ">B", 0),
    0xCD: (INT, ">H", 0),
    0xCE: (INT, ">I", 0),
    0xCF: (INT, ">Q", 0),
    0xD0: (INT, ">b", 0),
    0xD1: (INT, ">h", 0),
    0xD2: (INT, ">i", 0),
    0xD3: (INT, ">q", 0),
    0xD4: (OTHER, None, 2),  # fixext
    0xD5: (OTHER, None, 3),
    0xD6: (OTHER, None, 5),
    0xD7: (OTHER, None, 9),
    0xD8: (OTHER, None, 17),
    0xD9: (TEXT, ">B", 0),
    0xDA: (TEXT, ">H", 0),
    0xDB: (TEXT, ">I", 0),
    0xDC: (ARRAY, ">H", 0),
    0xDD: (ARRAY, ">I", 0),
    0xDE: (MAP, ">H", 0),
    0xDF: (MAP, ">I", 0),
}
_WIDTHS = {">B": 1, ">b": 1, ">H": 2, ">h": 2, ">I": 4, ">i": 4, ">Q": 8, ">q": 8}


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
    value = first & 0x1F
    shape = TEXT
    untold = 0
    if first >= 0xC0:
        if first not in _HEADS:
            raise WireError("not_msgpack", f"byte {at - 1} must open a MessagePack value, is 0x{first:02X}")
        shape, width, untold = _HEADS[first]
        value = 0
        if width is not None:
            if at + _WIDTHS[width] > len(data):
                raise _cut(len(data))
            value = struct.unpack_from(width, data, at)[0]
            at += _WIDTHS[width]
        at += untold
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
