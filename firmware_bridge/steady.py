"""The one clock of a device: milliseconds that only go forward, from an arbitrary start.

MicroPython's ``ticks_ms`` wraps after some 12 days (2**30 ms); summing its differences does
not, as long as somebody asks at least once in six days.
"""

from time import sleep

try:
    from time import ticks_diff, ticks_ms  # type: ignore[attr-defined]
except ImportError:  # CPython
    from time import monotonic_ns

    def ticks_ms() -> int:
        """Milliseconds since an arbitrary start."""
        return monotonic_ns() // 1_000_000

    def ticks_diff(later: int, earlier: int) -> int:
        """How many ms lie between two readings."""
        return later - earlier


class SteadyClock:
    """Call it for the milliseconds since it was made."""

    def __init__(self) -> None:
        self._last = ticks_ms()
        self._sum_ms = 0

    def __call__(self) -> int:
        now = ticks_ms()
        self._sum_ms += ticks_diff(now, self._last)
        self._last = now
        return self._sum_ms


def pause_ms(wait_ms: int) -> None:
    """Do nothing for ``wait_ms``."""
    if wait_ms > 0:
        sleep(wait_ms / 1000)
