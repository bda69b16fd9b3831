"""The hub's half of a handover over Bluetooth, for a bridge that stands nearer to the bed than the hub.

The other end of ``gatt``. A bridge keeps nothing: it hands a tracker's messages on to the broker
as they are, and the hub's mark back to the tracker, which keeps everything until that mark. A
bridge that loses power loses no record. Pure: what to do next comes out, what came goes in; radio and
broker stand in ``bridge``.
"""

import struct

from firmware_bridge.kinds import MAX_MESSAGE_BYTES, VERSION, is_device_id
from firmware_bridge.parts import PART_BYTES, PIECE, PIECE_HEAD_BYTES, Joiner, cut_part, pack_ask, part_count

READ, ASK, MARK, LISTEN = "read", "ask", "mark", "listen"
"""Read what was asked for; write an ask; write a part of the mark; wait for notifications."""


def device_of(identity: bytes) -> str | None:
    """The device id a tracker's identity names, or None where it is none of this version."""
    if len(identity) < 2 or identity[0] != VERSION:
        return None
    try:
        device = str(identity[1:], "utf-8")
    except UnicodeError:
        return None
    return device if is_device_id(device) else None


class Relay:
    """One connection to one tracker.

    ``step`` says what to do; ``came`` takes what was read; ``notified`` what was notified; ``marked`` the
    hub's mark. Whole messages gather in ``messages``: take them out and publish them.

    Parameters
    ----------
    mark : bytes
        The mark the hub has retained, or b"" where it has none.
    part_bytes : int
        What fits one packet of this link.

    Attributes
    ----------
    messages : list of bytes
    broken : int
        Pieces that did not fit what was asked for: the message is asked for anew.
    """

    def __init__(self, mark: bytes, part_bytes: int = PART_BYTES) -> None:
        self.messages: list[bytes] = []
        self.broken = 0
        self._mark = mark
        self._part = 0
        self._part_bytes = part_bytes
        self._message = 0
        self._whole = bytearray()
        self._asked = False
        self._begun = False
        self._history = True
        self._joiner = Joiner(MAX_MESSAGE_BYTES)

    def step(self) -> tuple[str, bytes]:
        """What to do next: (one of the four, the bytes to write)."""
        if self._mark:
            part = cut_part(self._mark, self._part, self._part_bytes)
            self._part += 1
            if self._part == part_count(len(self._mark), self._part_bytes):
                self._mark, self._part = b"", 0
            return MARK, part
        if self._asked:
            self._asked = False
            return READ, b""
        if not self._history:
            return LISTEN, b""
        self._asked = True
        if not self._begun:
            return ASK, pack_ask(0, 0)
        return ASK, pack_ask(self._message + 1, len(self._whole))

    def marked(self, mark: bytes) -> None:
        """The hub has published a mark: it is written before anything else. One under way is finished first."""
        if not self._part:
            self._mark = mark

    def came(self, value: bytes) -> None:
        """What the last read gave."""
        if not self._begun:
            self._begun = True
            return
        if len(value) < PIECE_HEAD_BYTES:
            self._anew()
            return
        message, offset, total, _ = struct.unpack(PIECE, value[:PIECE_HEAD_BYTES])
        piece = value[PIECE_HEAD_BYTES:]
        if message == self._message + 1 and not total and not self._whole:
            self._history = False
            return
        if message != self._message + 1 or offset != len(self._whole) or not piece or offset + len(piece) > total:
            self._anew()
            return
        self._whole += piece
        if len(self._whole) == total:
            self._message += 1
            self.messages.append(bytes(self._whole))
            self._whole = bytearray()

    def notified(self, part: bytes) -> None:
        """A part of a live message."""
        whole = self._joiner.feed(part)
        if whole is not None:
            self.messages.append(whole)

    def _anew(self) -> None:
        """Begin at the mark again; what comes twice is one row at the hub."""
        self.broken += 1
        self._message = 0
        self._whole = bytearray()
        self._begun = False
