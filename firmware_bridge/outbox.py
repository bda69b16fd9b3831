"""Store and forward: what a device measured stays here until the hub says it has it.

Records go in with the next sequence number of this boot; runs of packed records come out to
be sent; only the hub's own mark releases them (an acknowledgement by the broker does not:
a ring released on PUBACK lost 196 of 633 samples when the broker died, released by the mark
none). The ring has a fixed number of slots; when it is full the oldest record makes room and
is counted in ``dropped``, which the next hello tells the hub.

Pure: the clock is an argument, where the slots live is the caller's choice (``RamSlots``
here, ``flash.FileSlots`` for a ring that outlives a power cut). Runs on CPython and
MicroPython.
"""

import struct
from collections import namedtuple

from firmware_bridge.kinds import FIRST_SEQ, HEADER_BYTES, HELLO, MAX_MESSAGE_BYTES, MAX_RECORDS
from firmware_bridge.msgpack import U32_MAX, WireError, token
from firmware_bridge.pack import Marks, pack_record

GO_BACK_MS = 3_000
"""So long without progress of the mark, and everything above it is sent again."""

Run = namedtuple("Run", ("boot", "first_seq", "count", "body"))
"""Packed records of one boot, numbered from ``first_seq``: what ``pack_head`` goes before.
One piece of bytes: 64 small ones, alive at once, leave a small heap no room for the whole."""

HELLO_BYTES = 99
"""The longest hello."""

LOST = b"\xc0"
"""Stands for a record whose slot cannot be read any more. The hub sets it aside as a dead
letter, which counts in the mark; without it the mark would wait for that number for ever."""


_HEAD = ">IIH"  # boot, seq, bytes of the record
_HEAD_BYTES = 10
RECORD_BYTES = 256
"""Room for the longest record Wire 1 knows (a food_set: 246)."""


class RamSlots:
    """Slots in memory, all of it taken at the start: a heap of 64 kB never splinters.

    A power cut empties them.

    Parameters
    ----------
    size : int
        How many records they hold.
    record_bytes : int
        The longest record they take; a tracker, which never sends a long text, gets along
        with 64.
    """

    def __init__(self, size: int, record_bytes: int = RECORD_BYTES) -> None:
        if size < 1:
            raise ValueError(f"a ring must have at least 1 slot, has {size}")
        self.size = size
        self.record_bytes = record_bytes
        self._arena = bytearray(size * (_HEAD_BYTES + record_bytes))

    def held(self) -> tuple[int, int]:
        """Positions ``[first, last)`` that survived the last power cut: none do."""
        return 0, 0

    def write(self, position: int, boot: int, seq: int, record: bytes) -> None:
        at = position % self.size * (_HEAD_BYTES + self.record_bytes)
        struct.pack_into(_HEAD, self._arena, at, boot, seq, len(record))
        at += _HEAD_BYTES
        self._arena[at : at + len(record)] = record

    def read(self, position: int) -> tuple[int, int, bytes] | None:
        """(boot, seq, record), or None where the slot is damaged."""
        at = position % self.size * (_HEAD_BYTES + self.record_bytes)
        boot, seq, length = struct.unpack_from(_HEAD, self._arena, at)
        at += _HEAD_BYTES
        return boot, seq, bytes(self._arena[at : at + length])


class Outbox:
    """A ring of records, in the order they were taken.

    Positions count all records ever put, over all boots; sequence numbers restart with each
    boot. Invariant: ``head <= cursor <= tail`` and ``tail - head <= slots.size``.

    Parameters
    ----------
    slots : RamSlots or another with its methods
    boot : int
        u32, one more than at the last boot.
    message_bytes : int
        The largest message to make; a device with a small heap asks for small ones.

    Attributes
    ----------
    boot : int
    dropped : int
        Records overwritten in this boot before the hub had them.
    """

    def __init__(self, slots: RamSlots, boot: int, message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._slots = slots
        self.boot = boot
        least = HEADER_BYTES + max(slots.record_bytes, HELLO_BYTES)
        if message_bytes < least:
            raise ValueError(f"a message must hold one record: {least} bytes or more, has {message_bytes}")
        self._body = bytearray(message_bytes - HEADER_BYTES)
        self.dropped = 0
        self._told_dropped = 0
        self._told_lowest = FIRST_SEQ
        self._hub_at: int | None = None
        self._head, self._tail = slots.held()
        self._cursor = self._head
        self._next_seq = FIRST_SEQ
        self._progress_ms: int | None = None
        self._identity: tuple[str, str, int] | None = None
        self._marks: dict[int, int] | Marks = {}

    @property
    def held(self) -> int:
        """How many records the hub has not confirmed."""
        return self._tail - self._head

    @property
    def unsent(self) -> int:
        """How many of them have not been handed out since the last :meth:`rewind`."""
        return self._tail - self._cursor

    @property
    def next_seq(self) -> int:
        return self._next_seq

    @property
    def lowest_seq(self) -> int:
        """The lowest sequence number of this boot that is still held; the next one if none is."""
        return max(FIRST_SEQ, self._next_seq - self.held)

    @property
    def hello_due(self) -> bool:
        """Whether the hub waits for records that are gone, and no hello has told it so.

        They were dropped, or the hub lost its database after it had marked them: its mark has
        gone back behind what is still held.
        """
        if self.dropped != self._told_dropped:
            return True
        lowest = self.lowest_seq
        return self._hub_at is not None and self._hub_at < lowest - 1 and self._told_lowest != lowest

    def put(self, code: int, uptime_ms: int, values: tuple[int | str, ...]) -> int:
        """Take a record; returns its sequence number.

        Raises
        ------
        WireError
            Values the hub would refuse, or longer than a slot; nothing was taken.
        """
        return self._append(pack_record(code, uptime_ms, values))

    def put_hello(self, uptime_ms: int, model: str, firmware: str, detector: int) -> int:
        """Take a hello that says what is held once it has itself found room."""
        drops = 1 if self.held == self._slots.size else 0
        lowest = max(FIRST_SEQ, self._next_seq - self.held + drops)
        self._identity = (model, firmware, detector)
        values = (model, firmware, detector, self._slots.size, lowest, self.dropped + drops)
        seq = self._append(pack_record(HELLO, uptime_ms, values))
        self._told_dropped = self.dropped
        self._told_lowest = lowest
        return seq

    def _append(self, record: bytes) -> int:
        if len(record) > self._slots.record_bytes:
            raise WireError(
                "too_large", f"a record must fit a slot of {self._slots.record_bytes} bytes, has {len(record)}"
            )
        if self._next_seq > U32_MAX:
            raise OverflowError(f"a boot must end before its sequence does, {U32_MAX} records are taken")
        if self.held == self._slots.size:
            self._head += 1
            self._cursor = max(self._cursor, self._head)
            self.dropped += 1
        seq = self._next_seq
        self._slots.write(self._tail, self.boot, seq, record)
        self._tail += 1
        self._next_seq = seq + 1
        return seq

    def _read(self, position: int) -> tuple[int, int, bytes] | None:
        """(boot, seq, record) at a position; ``LOST`` with its number where the slot is damaged.

        The number follows from the next readable slot: within a boot, positions and numbers
        run side by side. None where it would lie before that boot's first record.
        """
        slot = self._slots.read(position)
        ahead = position
        while slot is None and ahead + 1 < self._tail:
            ahead += 1
            slot = self._slots.read(ahead)
        if slot is None or ahead == position:
            return slot
        seq = slot[1] - (ahead - position)
        return (slot[0], seq, LOST) if seq >= FIRST_SEQ else None

    def _gap_hello(self, boot: int, seq: int, record: bytes) -> bytes:
        """What tells the hub that an earlier boot's records below ``seq`` are gone; or nothing.

        A hello of that boot, made now, in the place of the record before ``seq``: without it
        the mark would wait for ever for what was overwritten or fell to a power cut. It
        carries the uptime of the record it stands before.
        """
        gone = seq - 1 - self._marks.get(boot, FIRST_SEQ - 1)
        if boot == self.boot or gone <= 0 or self._identity is None or record == LOST:
            return b""
        _, _, at = token(record, 0)
        _, _, at = token(record, at)
        _, uptime_ms, _ = token(record, at)
        return pack_record(HELLO, uptime_ms, self._identity + (self._slots.size, seq, gone))

    def take(self, now_ms: int) -> Run | None:
        """The next run to send, or None where everything held has been handed out.

        At most 64 records and ``message_bytes``, of one boot. ``now_ms`` is any steady clock; the
        same one as for :meth:`release` and :meth:`go_back`.
        """
        boot = first_seq = -1
        count = filled = 0
        while self._cursor < self._tail and count < MAX_RECORDS:
            slot = self._read(self._cursor)
            if slot is None:
                self._cursor += 1
                continue
            if not count:
                boot, first_seq, _ = slot
                hello = b"" if self._follows(self._cursor, boot) else self._gap_hello(*slot)
                if hello:
                    self._body[: len(hello)] = hello
                    filled, count, first_seq = len(hello), 1, first_seq - 1
            if slot[0] != boot or slot[1] != first_seq + count or filled + len(slot[2]) > len(self._body):
                break
            self._body[filled : filled + len(slot[2])] = slot[2]
            filled += len(slot[2])
            count += 1
            self._cursor += 1
        if not count:
            return None
        if self._progress_ms is None:
            self._progress_ms = now_ms
        return Run(boot, first_seq, count, bytes(memoryview(self._body)[:filled]))

    def _follows(self, position: int, boot: int) -> bool:
        """Whether the record before a position is held too and of the same boot."""
        if position <= self._head:
            return False
        before = self._read(position - 1)
        return before is not None and before[0] == boot

    def release(self, marks: dict[int, int] | Marks, now_ms: int) -> int:
        """Free what the hub has stored: all up to the boot's mark. Returns how many that were.

        A mark beyond what this boot has made is of a life before a reset, under the same number:
        it frees nothing of this one.
        """
        self._marks = marks
        self._hub_at = marks.get(self.boot, FIRST_SEQ - 1)
        if self._hub_at >= self._next_seq:
            self._hub_at = FIRST_SEQ - 1
        before = self._head
        boot, top = self.boot, self._hub_at
        while self._head < self._tail:
            slot = self._read(self._head)
            if slot is not None:
                if slot[0] != boot:
                    boot, top = slot[0], marks.get(slot[0], FIRST_SEQ - 1)
                if slot[1] > top:
                    break
            self._head += 1
        self._cursor = max(self._cursor, self._head)
        if self._head > before:
            self._progress_ms = now_ms
        if self._head == self._cursor:
            self._progress_ms = None
        return self._head - before

    def rewind(self) -> None:
        """Send everything held once more: after a reconnect nobody knows what arrived."""
        self._cursor = self._head
        self._progress_ms = None

    def go_back(self, now_ms: int) -> bool:
        """Whether the mark stood still for 3 s with records above it sent; if so, rewind."""
        if self._progress_ms is None or now_ms - self._progress_ms < GO_BACK_MS:
            return False
        self.rewind()
        return True
