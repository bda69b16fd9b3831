"""A ring and a boot counter in files: what a device holds outlives a power cut.

A slot is written whole and carries its own position and a CRC-32. A write that power cut
short leaves a slot whose CRC does not hold: at the next start it is refused, and nothing but
the record being written (and the one it overwrote) is lost. Nothing else is kept, so there
is no index that could disagree with the slots. Runs on MicroPython and CPython.
"""

import os
import struct

try:
    from binascii import crc32
except ImportError:  # CPython keeps it there too, MicroPython ports may lack it
    from zlib import crc32

from firmware_bridge.msgpack import U32_MAX
from firmware_bridge.outbox import RECORD_BYTES

_HEAD = ">IIIH"  # position, boot, seq, bytes of the record
_HEAD_BYTES = 14
_CRC_BYTES = 4


def _sync(file) -> None:  # type: ignore[no-untyped-def]  # a file object; no typing there
    file.flush()
    if hasattr(os, "fsync"):
        os.fsync(file.fileno())
    elif hasattr(os, "sync"):
        os.sync()


class FileSlots:
    """Slots in a file of fixed size, for ``outbox.Outbox``.

    Parameters
    ----------
    path : str
        Made, full of empty slots, where it does not exist or has another size.
    size : int
        How many records it holds. 7 days of a tracker are 2,700.
    record_bytes : int
        The longest record it takes.

    Attributes
    ----------
    damaged : int
        Slots between the oldest and the newest record that could not be read at the start.
    newest_boot : int
        The highest boot of any record held; 0 where there is none.
    """

    def __init__(self, path: str, size: int, record_bytes: int = RECORD_BYTES) -> None:
        if size < 1:
            raise ValueError(f"a ring must have at least 1 slot, has {size}")
        self.size = size
        self.record_bytes = record_bytes
        self._slot_bytes = _HEAD_BYTES + record_bytes + _CRC_BYTES
        self._slot = bytearray(self._slot_bytes)
        if _file_size(path) != size * self._slot_bytes:
            with open(path, "wb") as fresh:
                # Zeros make an empty slot, whose CRC does not hold.
                for _ in range(size):  # noqa: FURB122 - MicroPython has no writelines
                    fresh.write(self._slot)
                _sync(fresh)
        self._file = open(path, "r+b")  # noqa: SIM115 - open for the device's life
        self.damaged = 0
        self.newest_boot = 0
        self._held = self._scan()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def held(self) -> tuple[int, int]:
        """Positions ``[first, last)`` found at the start."""
        return self._held

    def _scan(self) -> tuple[int, int]:
        """The run of positions that ends with the newest readable slot and reaches back one ring.

        What is remembered of a slot is one byte, its lap around the ring: as a list of numbers
        a week of slots would take a third of a 64 kB heap.
        """
        newest = -1
        laps = bytearray(self.size)  # 0 = unreadable
        for index in range(self.size):
            found = self._load(index)
            if found is not None and found[0] % self.size == index:
                laps[index] = 1 + found[0] // self.size % 255
                newest = max(newest, found[0])
                self.newest_boot = max(self.newest_boot, found[1])
        first = newest + 1
        readable = 0
        for position in range(max(0, newest + 1 - self.size), newest + 1):
            if laps[position % self.size] == 1 + position // self.size % 255:
                first = min(first, position)
                readable += 1
        if not readable:
            return 0, 0
        self.damaged = newest + 1 - first - readable
        return first, newest + 1

    def _load(self, index: int) -> tuple[int, int, int, bytes] | None:
        """(position, boot, seq, record) of a slot; None where it is empty, torn or rotten."""
        self._file.seek(index * self._slot_bytes)
        slot = self._slot
        if self._file.readinto(slot) != self._slot_bytes:
            return None
        view = memoryview(slot)
        (told,) = struct.unpack_from(">I", slot, self._slot_bytes - _CRC_BYTES)
        if crc32(view[: self._slot_bytes - _CRC_BYTES]) & U32_MAX != told:
            return None
        position, boot, seq, length = struct.unpack_from(_HEAD, slot, 0)
        if not 0 < length <= self.record_bytes:
            return None
        return position, boot, seq, bytes(view[_HEAD_BYTES : _HEAD_BYTES + length])

    def write(self, position: int, boot: int, seq: int, record: bytes) -> None:
        """Write a slot and return when it is on the medium."""
        slot = self._slot
        for at in range(_HEAD_BYTES + len(record), self._slot_bytes):
            slot[at] = 0
        struct.pack_into(_HEAD, slot, 0, position, boot, seq, len(record))
        slot[_HEAD_BYTES : _HEAD_BYTES + len(record)] = record
        crc = crc32(memoryview(slot)[: self._slot_bytes - _CRC_BYTES]) & U32_MAX
        struct.pack_into(">I", slot, self._slot_bytes - _CRC_BYTES, crc)
        self._file.seek(position % self.size * self._slot_bytes)
        self._file.write(slot)
        _sync(self._file)

    def read(self, position: int) -> tuple[int, int, bytes] | None:
        """(boot, seq, record) of a position; None where its slot does not hold it whole."""
        found = self._load(position % self.size)
        if found is None or found[0] != position:
            return None
        return found[1:]


def _file_size(path: str) -> int:
    try:
        return os.stat(path)[6]
    except OSError:
        return -1


def next_boot(path: str, *, at_least: int = 1) -> int:
    """Count this boot, on the medium, and return its number.

    Two entries of number and CRC take turns, so that a power cut while one is written leaves
    the other. ``at_least`` is one more than the highest boot found in the ring: a counter
    that was lost must not hand out a number whose records the hub already has.
    """
    entries = [0, 0]
    try:
        with open(path, "rb") as file:
            raw = file.read(16)
    except OSError:
        raw = b""
    for index in range(len(raw) // 8):
        boot, told = struct.unpack_from(">II", raw, index * 8)
        if crc32(raw[index * 8 : index * 8 + 4]) & U32_MAX == told:
            entries[index] = boot
    boot = max(entries[0] + 1, entries[1] + 1, at_least)
    if boot > U32_MAX:
        raise OverflowError(f"a boot must be at most {U32_MAX}, would be {boot}")
    number = struct.pack(">I", boot)
    entry = number + struct.pack(">I", crc32(number) & U32_MAX)
    if len(raw) != 16:
        with open(path, "wb") as file:
            file.write(bytes(16))
            _sync(file)
    with open(path, "r+b") as file:
        file.seek(0 if entries[0] <= entries[1] else 8)  # over the older one
        file.write(entry)
        _sync(file)
    return boot


def keep(path: str, raw: bytes) -> None:
    """Keep a state in a file: whole, or the one before it, whenever power is cut."""
    with open(path + ".new", "wb") as file:
        file.write(struct.pack(">I", crc32(raw) & U32_MAX))
        file.write(raw)
        _sync(file)
    os.rename(path + ".new", path)


def kept(path: str) -> bytes | None:
    """What :func:`keep` kept; None where there is nothing, or it is rotten."""
    try:
        with open(path, "rb") as file:
            told = file.read(4)
            raw = file.read()
    except OSError:
        return None
    whole = len(told) == 4 and crc32(raw) & U32_MAX == struct.unpack(">I", told)[0]
    return raw if whole else None
