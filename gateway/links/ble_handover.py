"""One connected tracker hands over what it kept: history first, then what it measures meanwhile.

The hub writes its mark, reads message after message above it, and stores them by the same way
as what comes over MQTT. When they are stored the new mark is written to the device, which
frees what it covers. A link that breaks anywhere costs nothing: the next time begins at the
mark. At most a window of messages is on its way to the store, so a full ring fills no memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from firmware_bridge import parts, wire
from gateway.errors import RadioError
from gateway.links.ble_radio import Connection
from gateway.links.clock import Clock
from gateway.links.inbox import Delivery, Inbox
from gateway.model import RawFrame

__all__ = ["TRANSPORT", "Handover"]

Result = TypeVar("Result")
TRANSPORT = "ble"
WINDOW = 20
"""Messages on their way to the store: as many as close a batch (`CommitRule`)."""
SETTLE_S = 15.0
"""So long the last mark may take: a batch that nothing hurries is closed after 5 s."""
LINGER_S = 2.0
"""So long a device that has nothing left is listened to."""
LONGEST_S = 180.0
"""So long one device may hold the connection; what it still has comes the next time."""
_READS = 12
"""Reads of one piece before the device counts as one that does not answer: about a second and a half."""
_TRIES = 3
"""Of each exchange: in a house full of other radios some answers do not come."""
_NOTIFIED = 256
"""Notified messages that may wait; a device that is not marked sends them again."""


class Handover:
    """One connection's worth of records.

    Parameters
    ----------
    link : Connection
    number : int
        Tells this handover's messages from those of an earlier one.
    inbox : Inbox
    clock : Clock
    admits : callable
        Whether a device of this id may hand over.
    marks : callable
        The marks (boot to seq) of a device, as far as they are stored.
    count : Counter
        Where ``messages_handed_over``, ``parts_broken`` and ``notifications_dropped`` are counted.
    """

    def __init__(
        self,
        link: Connection,
        *,
        number: int,
        inbox: Inbox,
        clock: Clock,
        admits: Callable[[str], bool],
        marks: Callable[[str], dict[int, int]],
        count: Counter[str],
    ) -> None:
        self._link = link
        self.number = number
        self._inbox = inbox
        self._clock = clock
        self._admits = admits
        self._marks = marks
        self._count = count
        self.device = ""
        self.taken = 0
        self.refused = False
        self._under_way = 0
        self._mark_due = False
        self._something = asyncio.Event()
        self._joiner = parts.Joiner(wire.MAX_MESSAGE_BYTES)
        self._notified: deque[bytes] = deque()

    def acknowledged(self, count: int) -> None:
        """So many messages of this handover are stored."""
        self._under_way = max(0, self._under_way - count)
        self._something.set()

    def mark_moved(self) -> None:
        """The device's mark is a new one."""
        self._mark_due = True
        self._something.set()

    async def run(self) -> None:
        """Take what the device holds, mark it, and return when there is nothing left; of one that may
        not hand over nothing but its name is read (``refused``).

        Raises
        ------
        RadioError
            The link broke, or the device does not speak as it must.
        """
        self.device = _device_of(await self._patiently(lambda: self._link.read(parts.DEVICE_UUID)))
        if not self._admits(self.device):
            self.refused = True
            return
        await self._link.notify(parts.FRAMES_UUID, self._on_part)
        self._mark_due = bool(self._marks(self.device))
        await self._patiently(lambda: self._link.write(parts.ASK_UUID, parts.pack_ask(0, 0)))
        message, until_s = 1, self._clock.steady_s() + LONGEST_S
        settled_s = None
        while self._clock.steady_s() < until_s:
            await self._write_mark_if_due()
            found, held = await self._read_message(message)
            if found:
                await self._take(found)
                message = message % 0xFFFF + 1
                settled_s = None
                continue
            if await self._take_notified() or self._mark_due:
                settled_s = None
                continue
            now_s = self._clock.steady_s()
            settled_s = now_s if settled_s is None else settled_s
            # A device whose answer is an old one still holds what it has just been freed of: it is asked again.
            if now_s - settled_s >= (LINGER_S if held == 0 and not self._under_way else SETTLE_S):
                break
            await self._wait(LINGER_S)
        await self._write_mark_if_due()

    async def _wait(self, wait_s: float) -> bool:
        """Whether something happened before the time was over."""
        self._something.clear()
        happened = asyncio.ensure_future(self._something.wait())
        lost = asyncio.ensure_future(self._link.lost.wait())
        over = asyncio.ensure_future(self._clock.sleep_s(wait_s))
        try:
            await asyncio.wait((happened, lost, over), return_when=asyncio.FIRST_COMPLETED)
            return happened.done() or lost.done()  # a lost link shows at the next read
        finally:
            for waiting in (happened, lost, over):
                waiting.cancel()

    async def _write_mark_if_due(self) -> None:
        """Write the newest mark, in parts as long as the link takes."""
        if not self._mark_due:
            return
        self._mark_due = False
        await self._patiently(self._write_mark)

    async def _write_mark(self) -> None:
        mark = wire.pack_mark(self._marks(self.device))
        size = self._link.part_bytes(parts.MARK_UUID)
        for index in range(parts.part_count(len(mark), size)):
            await self._link.write(parts.MARK_UUID, parts.cut_part(mark, index, size))

    async def _patiently(self, exchange: Callable[[], Awaitable[Result]]) -> Result:
        """The result of an exchange that may be done twice, tried again while the link stands."""
        for _ in range(_TRIES - 1):
            try:
                return await exchange()
            except RadioError:
                if self._link.lost.is_set():
                    raise
        return await exchange()

    async def _read_message(self, message: int) -> tuple[bytes, int]:
        """(message, records the device still holds); the message is empty where there is none."""
        found = b""
        while True:
            total, held, piece = await self._patiently(partial(self._read_piece, message, len(found)))
            if total == 0:
                return b"", held
            if not piece or total > wire.MAX_MESSAGE_BYTES or len(found) + len(piece) > total:
                raise RadioError(
                    f"a message must be 1 to {wire.MAX_MESSAGE_BYTES} bytes in pieces that fit it, "
                    f"{self.device} offers {len(piece)} of {total} at {len(found)}"
                )
            found += piece
            if len(found) == total:
                return found, held

    async def _read_piece(self, message: int, offset: int) -> tuple[int, int, bytes]:
        """(total, held, piece). A device prepares it after it was asked: an earlier answer is read again."""
        await self._link.write(parts.ASK_UUID, parts.pack_ask(message, offset))
        for attempt in range(_READS):
            told = parts.unpack_piece(await self._link.read(parts.HISTORY_UUID))
            if told is not None and told[:2] == (message, offset):
                return told[2:]
            await asyncio.sleep(0.005 * 2 ** min(attempt, 5))
        raise RadioError(f"{self.device} must answer for message {message} from byte {offset}, it does not")

    async def _take(self, message: bytes) -> None:
        """Hand a message on, once the window has room."""
        while self._under_way >= WINDOW:
            if self._mark_due:
                await self._write_mark_if_due()
            if not await self._wait(SETTLE_S):
                raise RadioError(
                    f"the hub must store {WINDOW} messages of {self.device} in {SETTLE_S:g} s, it does not"
                )
            if self._link.lost.is_set():
                raise RadioError(f"the link to {self.device} must stand, it is lost")
        self._under_way += 1
        self.taken += 1
        self._count["messages_handed_over"] += 1
        raw = RawFrame(TRANSPORT, self.device, self._clock.now_ms(), message)
        await self._inbox.offer_patiently(Delivery(raw, self.number, 0, 0))

    async def _take_notified(self) -> bool:
        """Hand on what was notified; whether there was any."""
        any_came = bool(self._notified)
        while self._notified:
            await self._take(self._notified.popleft())
        return any_came

    def _on_part(self, part: bytes) -> None:
        broken = self._joiner.broken
        message = self._joiner.feed(part)
        self._count["parts_broken"] += self._joiner.broken - broken
        if message is None:
            return
        if len(self._notified) < _NOTIFIED:
            self._notified.append(message)
        else:
            self._count["notifications_dropped"] += 1
        self._something.set()


def _device_of(value: bytes) -> str:
    """The device id behind the device characteristic."""
    device = value[1:].decode("ascii", "replace")
    if not value or value[0] != wire.VERSION or not wire.is_device_id(device):
        raise RadioError(
            f"a device must say Wire {wire.VERSION} and an id of 1 to 32 of a-z 0-9 _ -, says {value[:40]!r}"
        )
    return device
