"""The bounded hand-over from a link's own thread to the event loop.

A full inbox makes the link's thread wait, which stops it from reading its socket, which
slows the broker down: back-pressure instead of a growing queue or a dropped message.
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
    """Filled by a link's thread, emptied by one task. Made inside a running event loop.

    Parameters
    ----------
    capacity : int
        Messages held before the filling thread waits.
    """

    def __init__(self, *, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"an inbox must hold at least 1 message, is told {capacity}")
        self._capacity = capacity
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
            self._room.wait_for(lambda: len(self._waiting) < self._capacity or self._ended(delivery))
            if self._ended(delivery):
                return
            self._waiting.append(delivery)
            first = len(self._waiting) == 1
        if first and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)

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
            self._room.notify_all()
        return taken
