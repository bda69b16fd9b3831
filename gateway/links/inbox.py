"""The bounded hand-over from the links to the one task that stores.

A full inbox makes the broker's link stop reading its socket, which slows the broker down:
back-pressure instead of a growing queue or a dropped message. The radio has a bounded place of
its own beside the broker's: neither can fill the other's. Everything here runs on one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gateway.model import RawFrame

__all__ = ["Delivery", "Inbox"]

_MOST_BYTES = 8 * 2**20
"""Of the broker's link, beside the number of messages: a few long ones fill a hub's memory as well."""
_TOGETHER_S = 0.002
"""What follows within so long is handed over with the first: waking a task for each of
a thousand messages a second takes as long as storing them. A commit takes two to three times
as long on an SD card or a small SSD, so nobody waits noticeably longer."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message with what its acknowledgement needs.

    ``generation`` numbers the connection it came over: a packet id means nothing on another.
    """

    raw: RawFrame
    generation: int
    packet_id: int
    qos: int
    retained: bool = False


class Inbox:
    """Filled by a link and by the radio, emptied by one task. Made inside a running event loop.

    Parameters
    ----------
    capacity : int
        Messages of the broker's link held before it stops reading.
    radio_capacity : int
        Messages of the radio held beside them.
    """

    def __init__(self, *, capacity: int, radio_capacity: int = 64) -> None:
        if capacity < 1 or radio_capacity < 1:
            raise ValueError(f"an inbox must hold at least 1 message, is told {capacity} and {radio_capacity}")
        self._capacity = capacity
        self._radio_capacity = radio_capacity
        self._of_radio = 0
        self._bytes = 0
        self._radio_room = asyncio.Event()
        self._waiting: deque[Delivery] = deque()
        self._enough = 1
        self._filled = asyncio.Event()
        self._when_room: Callable[[], None] | None = None

    @property
    def room(self) -> int:
        """How many more messages of the broker's link it takes; none while those that wait are 8 MiB."""
        return 0 if self._bytes >= _MOST_BYTES else self._capacity - (len(self._waiting) - self._of_radio)

    def put(self, delivery: Delivery) -> int:
        """Hand a message of the broker's link over; the `room` that is left.

        Raises
        ------
        asyncio.QueueFull
            There is no `room`; the link should have stopped reading.
        """
        if self.room < 1:
            raise asyncio.QueueFull(f"an inbox must hold at most {self._capacity} messages")
        self._bytes += len(delivery.raw.payload)
        self._append(delivery)
        return self.room

    def _append(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        if len(self._waiting) >= self._enough:
            self._filled.set()

    def when_room(self, call: Callable[[], None] | None) -> None:
        """Call this once, as soon as there is room again; None forgets who waits."""
        self._when_room = call

    def offer(self, delivery: Delivery) -> bool:
        """Hand over a message of the radio if there is room; whether there was."""
        if self._of_radio >= self._radio_capacity:
            return False
        self._of_radio += 1
        self._append(delivery)
        return True

    async def offer_patiently(self, delivery: Delivery) -> None:
        """Hand over a message of the radio, once there is room."""
        while not self.offer(delivery):
            self._radio_room.clear()
            await self._radio_room.wait()

    async def _until(self, enough: int, timeout_s: float | None) -> bool:
        """Whether so many wait; returns when they do, or when the time is over."""
        self._enough = enough
        if len(self._waiting) < enough:
            self._filled.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._filled.wait()
            except TimeoutError:
                return False
        return True

    async def take(self, *, timeout_s: float | None, enough: int = 1_000_000) -> tuple[Delivery, ...]:
        """All that waits: some 2 ms after the first, or as soon as ``enough`` do; none when the time is over.

        ``timeout_s`` None waits without end.
        """
        if not await self._until(1, timeout_s):
            return ()
        # A full inbox brings no more: its link has stopped reading.
        await self._until(max(1, min(enough, len(self._waiting) + self.room)), _TOGETHER_S)
        taken = tuple(self._waiting)
        self._waiting.clear()
        self._of_radio = self._bytes = 0
        self._radio_room.set()
        if self._when_room is not None:
            call, self._when_room = self._when_room, None
            call()
        return taken
