"""The bounded hand-over from the links to the one task that stores.

A full inbox makes the broker link's thread wait, which stops it from reading its socket, which
slows the broker down: back-pressure instead of a growing queue or a dropped message. The radio
has a bounded place of its own beside the broker's: neither can fill the other's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from threading import Condition

from gateway.model import RawFrame

__all__ = ["Delivery", "Inbox"]

_TOGETHER_S = 0.002
"""What follows within so long is handed over with the first: waking the event loop for each of
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
    """Filled by a link's thread and by the radio, emptied by one task. Made inside a running event loop.

    Parameters
    ----------
    capacity : int
        Messages held before the filling thread waits.
    radio_capacity : int
        Messages of the radio held beside them.
    """

    def __init__(self, *, capacity: int, radio_capacity: int = 64) -> None:
        if capacity < 1 or radio_capacity < 1:
            raise ValueError(f"an inbox must hold at least 1 message, is told {capacity} and {radio_capacity}")
        self._capacity = capacity
        self._radio_capacity = radio_capacity
        self._of_radio = 0
        self._radio_room = asyncio.Event()
        self._waiting: deque[Delivery] = deque()
        self._room = Condition()
        self._closed_generation = 0
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()

    def put(self, delivery: Delivery) -> None:
        """Hand a message over; waits for room. Called on the link's thread.

        A message of a connection that has ended is left out: the broker still holds it,
        unacknowledged, and sends it again.
        """
        with self._room:
            self._room.wait_for(lambda: len(self._waiting) - self._of_radio < self._capacity or self._ended(delivery))
            if self._ended(delivery):
                return
            self._waiting.append(delivery)
            first = len(self._waiting) == 1
        if first and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)

    def offer(self, delivery: Delivery) -> bool:
        """Hand over a message of the radio if there is room; whether there was. Called on the loop."""
        with self._room:
            if self._of_radio >= self._radio_capacity:
                return False
            self._of_radio += 1
            self._waiting.append(delivery)
        self._filled.set()
        return True

    async def offer_patiently(self, delivery: Delivery) -> None:
        """Hand over a message of the radio, once there is room."""
        while not self.offer(delivery):
            self._radio_room.clear()
            await self._radio_room.wait()

    def _ended(self, delivery: Delivery) -> bool:
        return delivery.generation <= self._closed_generation

    def end_generation(self, generation: int) -> None:
        """A connection is over: a thread that still waits for room gives up."""
        with self._room:
            self._closed_generation = max(self._closed_generation, generation)
            self._room.notify_all()

    async def take(self, *, timeout_s: float | None) -> tuple[Delivery, ...]:
        """All that waits, as soon as there is one; none when the time is over.

        ``timeout_s`` None waits without end.
        """
        if not self._waiting:
            self._filled.clear()
            if not self._waiting:  # put() appends first and signals then: nothing falls between
                try:
                    async with asyncio.timeout(timeout_s):
                        await self._filled.wait()
                except TimeoutError:
                    return ()
        await asyncio.sleep(_TOGETHER_S)
        with self._room:
            taken = tuple(self._waiting)
            self._waiting.clear()
            self._of_radio = 0
            self._room.notify_all()
        self._radio_room.set()
        return taken
