"""Messages over a GATT link: cut to what one packet holds, put together again, asked for piece by piece.

What our Bluetooth service exchanges, shared by device and hub. A value that goes out unasked (a
notification, a written mark) is cut into parts with one byte before each: bit 7 the first part,
bit 6 the last, the rest counts modulo 64, so that a missing part is noticed. A message that is
asked for is read by offset, so that nothing depends on what was read before. Pure, and the same
file runs on CPython and MicroPython.
"""

import struct

SERVICE_UUID = "5ce27a1c-0001-4d0e-8f3b-6b1d6d0d9a10"
DEVICE_UUID = "5ce27a1c-0002-4d0e-8f3b-6b1d6d0d9a10"
"""Read: a byte with the version of Wire, then the device id."""
MARK_UUID = "5ce27a1c-0003-4d0e-8f3b-6b1d6d0d9a10"
"""Written in parts: the mark, boot -> last stored seq."""
ASK_UUID = "5ce27a1c-0004-4d0e-8f3b-6b1d6d0d9a10"
"""Written: which piece of history the next read is about."""
HISTORY_UUID = "5ce27a1c-0005-4d0e-8f3b-6b1d6d0d9a10"
"""Read: that piece."""
FRAMES_UUID = "5ce27a1c-0006-4d0e-8f3b-6b1d6d0d9a10"
"""Notified in parts: messages as they come, once history was read to its end."""

ATTRIBUTE_BYTES = 512
"""The longest value an attribute may have."""
PART_BYTES = 20
"""What fits a packet of any link: an ATT MTU of 23, less three."""

_FIRST, _LAST, _COUNT = 0x80, 0x40, 0x3F

ASK = "<HH"
ASK_BYTES = 4
PIECE = "<HHHI"
PIECE_HEAD_BYTES = 10
PIECE_BYTES = ATTRIBUTE_BYTES - PIECE_HEAD_BYTES


def part_count(length: int, size: int) -> int:
    """How many parts of at most ``size`` bytes a value of ``length`` bytes makes."""
    return max(1, (length + size - 2) // (size - 1))


def cut_part(value: bytes, index: int, size: int) -> bytes:
    """Part ``index`` of a value, its byte before it, at most ``size`` bytes long."""
    step = size - 1
    count = part_count(len(value), size)
    head = index & _COUNT
    if index == 0:
        head |= _FIRST
    if index == count - 1:
        head |= _LAST
    return bytes((head,)) + value[index * step : (index + 1) * step]


class Joiner:
    """Puts parts together again.

    Parameters
    ----------
    longest : int
        Bytes; what grows longer is let go of.

    Attributes
    ----------
    broken : int
        Values of which a part was missing, or that were too long.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._value = bytearray()
        self._next = -1
        self.broken = 0

    def feed(self, part: bytes) -> bytes | None:
        """The whole value with its last part, else None."""
        head = part[0] if part else 0
        if head & _FIRST:
            if self._next >= 0:
                self.broken += 1
            self._value = bytearray()
            self._next = 0
        if self._next < 0 or not part or head & _COUNT != self._next & _COUNT:
            self._let_go()
            return None
        self._value += part[1:]
        self._next += 1
        if len(self._value) > self._longest:
            self._let_go()
            return None
        if not head & _LAST:
            return None
        self._next = -1
        return bytes(self._value)

    def _let_go(self) -> None:
        """What was begun cannot be finished; a lone late part is no second loss."""
        if self._next >= 0:
            self.broken += 1
        self._next = -1
        self._value = bytearray()


def pack_ask(message: int, offset: int) -> bytes:
    """Which piece is wanted: of message ``message`` of this reading (0 begins anew), from ``offset`` on."""
    return struct.pack(ASK, message, offset)


def pack_piece(message: int, offset: int, total: int, held: int, piece: bytes) -> bytes:
    """The answer: ``total`` is the message's length, 0 where there is none; ``held`` all records not marked."""
    return struct.pack(PIECE, message, offset, total, held) + piece


def unpack_piece(value: bytes) -> tuple[int, int, int, int, bytes] | None:
    """(message, offset, total, held, piece), or None where the value is no answer."""
    if len(value) < PIECE_HEAD_BYTES:
        return None
    message, offset, total, held = struct.unpack(PIECE, value[:PIECE_HEAD_BYTES])
    return message, offset, total, held, value[PIECE_HEAD_BYTES:]
