"""The hub's own clock was set: notices it, and puts right what it had dated.

A hub without a battery starts in 1970, or where it stopped, and learns the time later; a
clock can be set wrong and then right. All that was received since the hub started follows
the newest reading of its clock: when a clock is set, it is right from then on. What came
before this start keeps its time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.links.clock import Clock
from gateway.links.dating import clock_set_by_ms
from gateway.links.payloads import Reading
from gateway.links.placing import move_received
from gateway.links.rollups import Rollups
from gateway.store.transaction import Transaction

__all__ = ["ClockSet", "HubClock", "put_right", "received_anew"]


@dataclass(frozen=True, slots=True)
class ClockSet:
    """The hub's clock was set by ``by_ms``. Since it started it received, by its clock as it was
    before, from ``from_ms`` to ``to_ms``.
    """

    by_ms: int
    from_ms: int
    to_ms: int


class HubClock:
    """Notices that the hub's clock was set. Made when the hub starts, before anything is heard.

    Parameters
    ----------
    clock : Clock
        A simulated one is moved on purpose: it is never taken as set.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ms = clock.now_ms()
        self._ahead_ms = self._ahead()

    def _ahead(self) -> int:
        """The clock, less one that nobody sets."""
        return self._clock.now_ms() - int(self._clock.steady_s() * 1000)

    def look(self) -> ClockSet | None:
        """What is to be put right, once: None where the clock was not set since the last look."""
        before_ms, self._ahead_ms = self._ahead_ms, self._ahead()
        by_ms = clock_set_by_ms(before_ms=before_ms, now_ms=self._ahead_ms)
        if by_ms == 0 or self._clock.source != "system":
            return None
        was_set = ClockSet(by_ms, self._began_ms, self._clock.now_ms() - by_ms)
        self._began_ms += by_ms
        return was_set


def put_right(tx: Transaction, *, was_set: ClockSet, since_record: int, rollups: Rollups) -> int:
    """Move what a wrong clock of the hub dated, and restate its days; returns how many rows.

    ``since_record`` is the last record row written before the hub started.
    """
    placed = move_received(
        tx, by_ms=was_set.by_ms, since_record=since_record, from_ms=was_set.from_ms, to_ms=was_set.to_ms
    )
    rollups.refresh(tx, tx.household(), placed.touched)
    if placed.redated:
        tx.bump("records_redated", placed.redated)
    return placed.redated


def received_anew(reading: Reading, was_set: ClockSet) -> Reading:
    """A reading that waits to be stored, with its arrival by the clock as it is now."""
    received_ms = reading.raw.received_ms
    if not was_set.from_ms <= received_ms <= was_set.to_ms:  # it came after the clock was set
        return reading
    return replace(reading, raw=replace(reading.raw, received_ms=received_ms + was_set.by_ms))
