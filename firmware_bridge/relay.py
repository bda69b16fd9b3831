"""The hub's half of a handover over Bluetooth, for a bridge that stands nearer to the bed than the hub.

The other end of ``gatt``. A bridge keeps nothing: it hands a tracker's messages on to the broker
as they are, and the hub's mark back to the tracker, which keeps everything until that mark. A
bridge that loses power loses no record. Pure: what to do next comes out, what came goes in;
radio and broker stand in ``bridge``.
"""

from firmware_bridge.kinds import MAX_MESSAGE_BYTES, VERSION, is_device_id
from firmware_bridge.parts import PART_BYTES, cut_part, pack_ask, part_count, unpack_piece

READ, ASK, MARK, WAIT, DONE = "read", "ask", "mark", "wait", "done"
"""Read what was asked for; write an ask; write a part of the mark; wait for the hub's mark; nothing is left."""


def named_in(identity: bytes) -> str | None:
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

    ``step`` says what to do, ``came`` takes what was read, ``marked`` what the hub has stored.
    Whole messages gather in ``messages``: take them out and publish them.

    Parameters
    ----------
    mark : bytes
        The mark the hub has retained, b"" where it has none.
    part_bytes : int
        What fits one packet of this link.

    Attributes
    ----------
    messages : list of bytes
    broken : int
        Pieces that were not what was asked for: it begins anew at the mark.
    """

    def __init__(self, mark: bytes, part_bytes: int = PART_BYTES) -> None:
        self.messages: list[bytes] = []
        self.broken = 0
        self._mark, self._next_mark = mark, b""
        self._part = 0
        self._part_bytes = part_bytes
        self._message = 0
        self._whole = bytearray()
        self._asked = self._begun = self._drained = self._held = False

    def step(self) -> tuple[str, bytes]:
        """What to do next: one of the five, and the bytes to write."""
        if self._asked:
            self._asked = False
            return READ, b""
        if self._mark:
            part = cut_part(self._mark, self._part, self._part_bytes)
            self._part += 1
            if self._part == part_count(len(self._mark), self._part_bytes):
                self._mark, self._next_mark, self._part = self._next_mark, b"", 0
                self._drained = False  # ask once more how much it holds
            return MARK, part
        if self._drained:
            return (WAIT if self._held else DONE), b""
        self._asked = True
        if not self._begun:
            return ASK, pack_ask(0, 0)
        return ASK, pack_ask(self._message + 1, len(self._whole))

    def marked(self, mark: bytes) -> None:
        """The hub has published a mark; one that is being written is finished first."""
        if self._part:
            self._next_mark = mark
        else:
            self._mark = mark

    def came(self, value: bytes) -> None:
        """What the last read gave."""
        if not self._begun:
            self._begun = True
            return
        piece = unpack_piece(value)
        if piece is None:
            self._anew()
            return
        message, offset, total, held, raw = piece
        expected = message == self._message + 1 and offset == len(self._whole)
        if expected and not total and not offset:
            self._drained, self._held = True, held > 0
        elif not expected or not raw or offset + len(raw) > total or total > MAX_MESSAGE_BYTES:
            self._anew()
        else:
            self._whole += raw
            if len(self._whole) == total:
                self._message += 1
                self.messages.append(bytes(self._whole))
                self._whole = bytearray()

    def _anew(self) -> None:
        """Begin at the mark again; what comes twice is one row at the hub."""
        self.broken += 1
        self._message = 0
        self._whole = bytearray()
        self._begun = self._drained = False
