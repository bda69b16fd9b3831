"""A device's half of a handover over Bluetooth: the outbox to the hub that connected, its mark back.

The same ring and the same messages as over MQTT (``uplink``); only the way differs. The hub
writes its mark, asks for message after message until there is none, and the device notifies
what is measured from then on. Nothing is let go of but by the hub's mark; a link that breaks
anywhere is taken up again from the mark. Pure: bytes in and out, the clock is an argument. The
radio stands in ``peripheral``.
"""

import struct

from firmware_bridge.kinds import MARK_REQUEST, MAX_MARK_BOOTS, VERSION
from firmware_bridge.msgpack import WireError
from firmware_bridge.outbox import Outbox, Run
from firmware_bridge.pack import Marks, pack_head
from firmware_bridge.parts import (
    ASK,
    ASK_BYTES,
    PART_BYTES,
    PIECE_BYTES,
    Joiner,
    cut_part,
    pack_piece,
    part_count,
)

MARK_BYTES = 5 + 10 * MAX_MARK_BOOTS


class GattUplink:
    """Answers one hub at a time.

    Parameters
    ----------
    device : str
        The device id.
    outbox : Outbox
    steady_ms : callable
        Milliseconds that only go forward; for waits, never for dating.
    stamp : callable
        Returns (uptime_ms, wall_ms or None) for ``u`` and ``w`` at the moment of sending.
    hello : tuple
        (model, firmware, detector version).

    Attributes
    ----------
    identity : bytes
        The value of the device characteristic.
    connects, bad_marks, bad_asks, go_backs : int
        Counters, for the tests and a maker's console.
    """

    def __init__(self, device: str, outbox: Outbox, *, steady_ms, stamp, hello: tuple[str, str, int]) -> None:  # type: ignore[no-untyped-def]  # callables: no typing there
        self.identity = bytes((VERSION,)) + device.encode()
        self.outbox = outbox
        self._now = steady_ms
        self._stamp = stamp
        self._hello = hello
        self._joiner = Joiner(MARK_BYTES)
        self._message = 0
        self._current = b""
        self._live = False
        self._sending = b""
        self._sent_parts = 0
        self._part_bytes = PART_BYTES
        self.connects = 0
        self.bad_marks = 0
        self.bad_asks = 0
        self.go_backs = 0

    def say_hello(self) -> None:
        """Put a hello; the first thing of a boot, and again after records were dropped."""
        model, firmware, detector = self._hello
        self.outbox.put_hello(self._stamp()[0], model, firmware, detector)

    def advertised(self) -> bytes:
        """What stands in the advertisement: whether anything is held, the boot, and the next number.

        A hub hears of an advertisement only when its bytes change, and whatever is measured after
        a handover changes these. (The number plus what is held did not: 10 + 3 before, 12 + 1 after.)
        """
        return struct.pack("<BBH", self.outbox.held > 0, self.outbox.boot & 0xFF, self.outbox.next_seq & 0xFFFF)

    def opened(self) -> None:
        """A hub has connected. Nobody knows what arrived before: all that is held is sent again."""
        self.connects += 1
        self._joiner = Joiner(MARK_BYTES)
        self._part_bytes = PART_BYTES
        self._begin()
        if self.outbox.held:
            self.outbox.put(MARK_REQUEST, self._stamp()[0], ())

    def set_mtu(self, mtu: int) -> None:
        """The link's ATT MTU is known: parts may be that much longer."""
        self._part_bytes = max(PART_BYTES, mtu - 3)

    def closed(self) -> None:
        """The link is gone."""
        self._begin()

    def _begin(self) -> None:
        self.outbox.rewind()
        self._message = 0
        self._current = b""
        self._live = False
        self._sending = b""
        self._sent_parts = 0

    def wrote_mark(self, part: bytes) -> None:
        """The hub wrote a part of its mark; with the last one what it covers is let go of."""
        value = self._joiner.feed(part)
        if value is None:
            return
        try:
            marks = Marks(value)
        except WireError:
            self.bad_marks += 1
            return
        self.outbox.release(marks, self._now())

    def asked(self, value: bytes) -> bytes:
        """The hub asks for a piece; what it reads next.

        Messages count from 1. Asked for twice, a piece is the same; message 0 begins anew at the
        mark. Where no message is left the number is not used up, and what comes is notified.
        """
        if len(value) != ASK_BYTES:
            self.bad_asks += 1
            return pack_piece(0, 0, 0, self.outbox.held, b"")
        message, offset = struct.unpack(ASK, value)
        if message == 0:
            self._begin()
            return pack_piece(0, 0, 0, self.outbox.held, b"")
        if message == self._message + 1 and offset == 0:
            taken = self._next_message()
            if not taken:
                self._live = True
                return pack_piece(message, 0, 0, self.outbox.held, b"")
            self._current = taken
            self._message = message
        if message != self._message or offset > len(self._current):
            self.bad_asks += 1
            return pack_piece(message, offset, 0, self.outbox.held, b"")
        piece = self._current[offset : offset + PIECE_BYTES]
        return pack_piece(message, offset, len(self._current), self.outbox.held, piece)

    def _next_message(self) -> bytes:
        if self.outbox.hello_due:
            self.say_hello()
        run = self.outbox.take(self._now())
        return b"" if run is None else self._packed(run)

    def _packed(self, run: Run) -> bytes:
        uptime_ms, wall_ms = self._stamp()
        sent_ms = uptime_ms if run.boot == self.outbox.boot else None
        packed: bytes = pack_head(run.boot, run.first_seq, run.count, sent_ms, wall_ms) + run.body
        return packed

    def to_notify(self) -> bytes | None:
        """The part to notify next, or None. The same one until :meth:`notified`."""
        if not self._live:
            return None
        if not self._sending:
            if self.outbox.go_back(self._now()):
                self.go_backs += 1
            self._sending = self._next_message()
            self._sent_parts = 0
            if not self._sending:
                return None
        return cut_part(self._sending, self._sent_parts, self._part_bytes)

    def notified(self) -> None:
        """The radio took the part."""
        self._sent_parts += 1
        if self._sent_parts == part_count(len(self._sending), self._part_bytes):
            self._sending = b""
