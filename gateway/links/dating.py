"""Dates records: a device's uptime in, an instant with its reason out. Pure.

A device says how long it has been running, sometimes also what its own clock shows; the hub
says when a message arrived. From these three a boot's clock is learned:

* **wall**: ``w - (u - uptime)``, where the device's own clock is plausible;
* **offset**: ``uptime + f(uptime)``, where f is the least of ``o_a + rate * |uptime - u_a|``
  over what was heard (``o_a = received - u_a``). A message never arrives before it was sent,
  so every ``o_a`` is an upper bound of the true offset; a crystal drifts by less than
  1 ms in ``DRIFT_PER_MS``, so each bound carries over to other uptimes. What waited at the broker bounds
  loosely and loses to what arrived at once. The bound itself is the date: it is late by 0.36 s
  at most for each hour between record and message, and keeps records in the order they were
  made, which a jump from one message's offset to the next one's would not;
* **bracket**: a boot nobody heard live lies between the last thing known before it and the
  first thing known after it.

What was heard while the hub did not know the time itself (before 2020: it has no battery)
dates nothing; once its clock was set, that instant is known after all (`BootClock.moved`).

Nothing here reads a clock or keeps a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

__all__ = ["CLOCK_KNOWN_MS", "UPTIME_MAX_MS", "BootClock", "Dated", "Heard", "clock_set_by_ms", "is_plausible_wall"]

CLOCK_KNOWN_MS = 1_577_836_800_000
"""2020-01-01: a clock that shows less was never set (a Pi without a battery boots in 1970)."""
_FAR_FUTURE_MS = 4_102_444_800_000  # 2100-01-01
_AHEAD_MS = 86_400_000  # a simulated device runs up to six hours ahead of the hub's clock
UPTIME_MAX_MS = 20 * 366 * 86_400_000
"""No device of a home runs for 20 years without a restart; more is nonsense, and instants
made from it would leave the calendar."""
DRIFT_PER_MS = 10_000
"""A crystal errs by at most 1 ms in so many: 100 ppm, a watch crystal with its temperature error (8.6 s a day)."""
_ANCHOR_EVERY_MS = 6 * 3_600_000  # one bound is kept for each six hours of uptime
_STEP_MS = 60_000
"""A wall clock that moved more than this against a clock nobody sets was set, not drifting."""


class Heard(NamedTuple):
    """One live message of a boot: uptime when sent, instant received, its wall clock or None."""

    sent_ms: int
    received_ms: int
    wall_ms: int | None


class Dated(NamedTuple):
    """An instant with where it comes from: ``wall``, ``offset`` or ``bracket``. A bracketed
    instant lies anywhere in ``[earliest_ms, latest_ms]``; ``earliest_ms`` None = no bound.
    """

    at_ms: int
    dating: str
    earliest_ms: int | None = None
    latest_ms: int | None = None


def is_plausible_wall(wall_ms: int, *, now_ms: int) -> bool:
    """Whether a device's own clock may be believed, given the hub's.

    Not before 2020, not more than a day ahead of the hub; behind it is what late delivery
    looks like. A hub whose own clock was never set cannot object.
    """
    if now_ms < CLOCK_KNOWN_MS:
        return CLOCK_KNOWN_MS <= wall_ms < _FAR_FUTURE_MS
    return CLOCK_KNOWN_MS <= wall_ms <= now_ms + _AHEAD_MS


def _is_known(received_ms: int) -> bool:
    return received_ms >= CLOCK_KNOWN_MS


def _least_known(bound: tuple[int, int]) -> tuple[bool, int, int]:
    """Orders (offset, uptime) bounds: the least one first, of those heard by a hub that knew the time."""
    offset, uptime = bound
    return not _is_known(uptime + offset), offset, uptime


def _most_telling(anchors: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Without those heard before the hub knew the time, where there are others: they would
    bound everything to 1970.
    """
    known = tuple((uptime, offset) for uptime, offset in anchors if _is_known(uptime + offset))
    return known or anchors


def clock_set_by_ms(*, before_ms: int, now_ms: int) -> int:
    """By how much a clock was set between two readings of (it - a clock that nobody sets), in ms.

    0 below a minute: what a time service slews away, and what one reading takes.
    """
    moved = now_ms - before_ms
    return moved if abs(moved) > _STEP_MS else 0


@dataclass(frozen=True, slots=True)
class BootClock:
    """What is known of one boot's clock.

    ``anchors`` are (uptime, received - uptime) bounds, ascending, one per six hours of uptime;
    ``wall`` is (uptime, wall - uptime) of the message sent last with a plausible wall clock.
    """

    anchors: tuple[tuple[int, int], ...] = ()
    wall: tuple[int, int] | None = None
    _bounds: tuple[list[int], list[int], list[int]] = field(init=False, repr=False, compare=False)
    """Uptimes, and at each the least bound (ms x ``DRIFT_PER_MS``) from it and those before, and
    from it and those after: a boot of a year has 1,460 anchors, and every record asks for the least.
    """

    def __post_init__(self) -> None:
        uptimes = [uptime for uptime, _ in self.anchors]
        before = [offset * DRIFT_PER_MS for _, offset in self.anchors]
        after = before.copy()
        for at in range(1, len(uptimes)):
            before[at] = min(before[at], before[at - 1] + uptimes[at] - uptimes[at - 1])
        for at in range(len(uptimes) - 2, -1, -1):
            after[at] = min(after[at], after[at + 1] + uptimes[at + 1] - uptimes[at])
        object.__setattr__(self, "_bounds", (uptimes, before, after))

    @property
    def known(self) -> bool:
        """Whether the boot was heard live by a hub that knew the time, or told it."""
        return self.wall is not None or any(_is_known(uptime + offset) for uptime, offset in self.anchors)

    def learn(self, heard: Iterable[Heard]) -> BootClock:
        """The clock with these live messages taken in; order does not matter."""
        bounds = {uptime // _ANCHOR_EVERY_MS: (offset, uptime) for uptime, offset in self.anchors}
        wall = self.wall
        for sent_ms, received_ms, wall_ms in heard:
            bucket = sent_ms // _ANCHOR_EVERY_MS
            bound = (received_ms - sent_ms, sent_ms)
            held = bounds.get(bucket)
            if held is None or _least_known(bound) < _least_known(held):
                bounds[bucket] = bound
            if wall_ms is not None and (wall is None or (sent_ms, wall_ms - sent_ms) > wall):
                wall = (sent_ms, wall_ms - sent_ms) if is_plausible_wall(wall_ms, now_ms=received_ms) else wall
        anchors = tuple(sorted([(uptime, offset) for offset, uptime in bounds.values()]))
        return replace(self, anchors=_most_telling(anchors), wall=wall)

    def moved(self, by_ms: int, *, from_ms: int, to_ms: int) -> BootClock:
        """The clock once the hub's own was set by ``by_ms``: what was heard in ``[from_ms, to_ms]``,
        in the hub's time before, was heard that much later.
        """
        anchors = tuple(
            (uptime, offset + by_ms if from_ms <= uptime + offset <= to_ms else offset)
            for uptime, offset in self.anchors
        )
        return replace(self, anchors=_most_telling(anchors))

    def offset_at(self, uptime_ms: int) -> int | None:
        """What to add to an uptime (ms) by what was heard; None for a boot never heard live, or
        only by a hub that did not know the time.
        """
        if not self.known:
            return None
        uptimes, before, after = self._bounds
        at = bisect_right(uptimes, uptime_ms)
        least = []
        if at > 0:
            least.append(before[at - 1] + uptime_ms - uptimes[at - 1])
        if at < len(uptimes):
            least.append(after[at] + uptimes[at] - uptime_ms)
        return min(least) // DRIFT_PER_MS if least else None

    def started_ms(self) -> int | None:
        """When this boot began, or None where nobody knows."""
        if self.wall is not None:
            return self.wall[1]
        return self.offset_at(0)

    def date(self, uptime_ms: int, *, wall_offset_ms: int | None) -> Dated | None:
        """The instant of a record, or None for a boot never heard.

        Parameters
        ----------
        uptime_ms : int
            The record's own uptime.
        wall_offset_ms : int or None
            ``w - u`` of the message that brought it, where that is plausible. A later message
            of the boot overrules it when the clock was set in between (by more than 60 s).
        """
        if self.wall is not None:
            told = self.wall[1]
            if wall_offset_ms is not None and abs(wall_offset_ms - told) <= _STEP_MS:
                told = wall_offset_ms
            return Dated(uptime_ms + told, "wall")
        offset = self.offset_at(uptime_ms)
        return None if offset is None else Dated(uptime_ms + offset, "offset")

    def set_by_ms(self, later: BootClock) -> int:
        """By how much the device's wall clock was set between this and ``later``; 0 = it was not."""
        if self.wall is None or later.wall is None:
            return 0
        moved = later.wall[1] - self.wall[1]
        return moved if abs(moved) > _STEP_MS else 0
