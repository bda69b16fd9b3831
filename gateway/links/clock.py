"""The one clock. Made by the composition root, handed down; nothing else reads time.

``now_ms`` dates things (UTC, may be stepped or simulated); ``steady_s`` only measures waits
(real seconds that go forward, in a simulation too). Never: a default clock somebody forgot
to pass.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["Clock", "SteppedClock", "SystemClock"]


class Clock(Protocol):
    """What every room may ask of time."""

    @property
    def source(self) -> str:
        """Where the instants come from, as a database records it: ``system``, ``simulation``."""

    def now_ms(self) -> int:
        """The instant, integer ms UTC."""

    def steady_s(self) -> float:
        """Real seconds since an unnamed start, sleep of the machine included; for waits, and to
        notice that ``now_ms`` was set, never for dating.
        """

    async def sleep_until(self, at_ms: int) -> None:
        """Return once ``now_ms() >= at_ms``."""

    async def sleep_s(self, seconds: float) -> None:
        """Return once ``steady_s`` went on by ``seconds``, whatever happened to ``now_ms``."""


def _event() -> asyncio.Event:
    import asyncio  # noqa: PLC0415  # who asks the time once and ends, as a question does, never waits

    return asyncio.Event()


async def _sleep_s(seconds: float) -> None:
    import asyncio  # noqa: PLC0415  # as above

    await asyncio.sleep(seconds)


class SystemClock:
    """The machine's own clock."""

    source = "system"
    _LONGEST_WAIT_S = 30.0  # a wall clock may be set meanwhile: look again this often

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        # Linux stops CLOCK_MONOTONIC while it sleeps, which would look like a clock set forward.
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep_until(self, at_ms: int) -> None:
        while (left_ms := at_ms - self.now_ms()) > 0:
            await _sleep_s(min(left_ms / 1000, self._LONGEST_WAIT_S))

    async def sleep_s(self, seconds: float) -> None:
        await _sleep_s(seconds)


class SteppedClock:
    """A simulated clock: it stands still until it is advanced, and runs at 1x once released.

    Belongs to one event loop; ``advance`` and ``release`` are called on its thread.

    Parameters
    ----------
    now_ms : int
        The story's first instant, ms UTC.
    """

    source = "simulation"

    def __init__(self, now_ms: int) -> None:
        self._at_ms = now_ms
        self._released_s: float | None = None
        self._moved = _event()

    def now_ms(self) -> int:
        if self._released_s is None:
            return self._at_ms
        return self._at_ms + int((self.steady_s() - self._released_s) * 1000)

    def steady_s(self) -> float:
        return time.monotonic()

    def advance(self, by_ms: int) -> None:
        """Move on by ``by_ms`` and wake whoever waited for that.

        Raises
        ------
        ValueError
            ``by_ms`` is negative: simulated time never goes back.
        """
        if by_ms < 0:
            raise ValueError(f"a clock must advance by 0 ms or more, was told {by_ms}")
        self._at_ms += by_ms
        self._wake()

    def release(self) -> None:
        """From here on run at the speed of real time. Safe to call twice."""
        if self._released_s is None:
            self._released_s = self.steady_s()
            self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = _event()  # the next waiters wait for the next move

    async def sleep_until(self, at_ms: int) -> None:
        while (left_ms := at_ms - self.now_ms()) > 0:
            if self._released_s is None:
                await self._moved.wait()
            else:
                await _sleep_s(left_ms / 1000)

    async def sleep_s(self, seconds: float) -> None:
        await _sleep_s(seconds)
