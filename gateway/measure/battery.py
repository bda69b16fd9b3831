"""What a device's battery readings say: levels in, a belief about the battery out. Pure.

Many devices say 0 where they do not know (a fresh cell, a gauge that was never read), so 0 is
believed only at the end of a fall. A level that falls to the end is told; when it will be
empty only where the steps down kept one pace.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

__all__ = ["LOW_PERMILLE", "BatteryReading", "Discharge", "believed_level", "low_battery"]

LOW_PERMILLE = 50
"""5 %: where the common cells' voltage begins to drop away, and radios begin to fail in the cold."""
_NEARLY_EMPTY_PERMILLE = 100
"""A 0 that follows a higher level than this fell from nowhere: it says "unknown"."""
_CHARGED_PERMILLE = 100
"""A rise by more is a charge or a new cell; by less it is warmth."""
_LEAST_STEPS = 3
_LEAST_FALL_MS = 6 * 3_600_000
_SAME_PACE = 3.0
"""The slowest and the quickest step down may differ by this factor; beyond it no day is named."""


@dataclass(frozen=True, slots=True)
class BatteryReading:
    """One reading: instant (ms UTC), charge (permille), whether it was being charged."""

    at_ms: int
    permille: int
    charging: bool


@dataclass(frozen=True, slots=True)
class Discharge:
    """A battery at its end: readings are named by their places in what was handed in.

    ``low_ms`` is when it first stood at `LOW_PERMILLE` or below, ``since_ms`` when the fall
    began (as far as it was seen). ``empty_ms`` is the interval in which it will be empty by its
    slowest and quickest step down, None where the steps kept no one pace.
    """

    permille: int
    from_permille: int
    since_ms: int
    low_ms: int
    empty_ms: tuple[int, int] | None


def _last_run(readings: tuple[BatteryReading, ...]) -> list[BatteryReading]:
    """The readings since the battery was last charged, without the zeros that nobody can believe."""
    run: list[BatteryReading] = []
    lowest = 1_001
    for reading in readings:
        if reading.charging or (run and reading.permille > lowest + _CHARGED_PERMILLE):
            run, lowest = [], 1_001
            if reading.charging:
                continue
        if reading.permille == 0 and not (run and lowest <= _NEARLY_EMPTY_PERMILLE):
            continue
        run.append(reading)
        lowest = min(lowest, reading.permille)
    return run


def believed_level(readings: tuple[BatteryReading, ...]) -> int | None:
    """The charge the last reading tells (permille), or None where it says 0 and did not fall to it.

    Parameters
    ----------
    readings : tuple of BatteryReading
        In time order, some weeks back from the last one.
    """
    if not readings:
        return None
    last = readings[-1]
    if last.permille > 0 or last.charging:
        return last.permille
    run = _last_run(readings)
    return 0 if run and run[-1] is last else None


def low_battery(readings: tuple[BatteryReading, ...], *, again_below: int | None = None) -> Discharge | None:
    """The battery at its end, or None: not low, charging, or not known.

    Parameters
    ----------
    readings : tuple of BatteryReading
        In time order, some weeks back from the last one.
    again_below : int, optional
        Told of at this level (permille) already: only at half of it or less, or at 0, is it told again.
    """
    if not readings or readings[-1].charging or believed_level(readings) is None:
        return None
    run = _last_run(readings)
    low = [reading for reading in run if reading.permille <= LOW_PERMILLE]
    # One low reading between higher ones is noise; the level now is the last one.
    if len(low) < 2 or run[-1].permille > LOW_PERMILLE:
        return None
    if again_below is not None and not (run[-1].permille < again_below and run[-1].permille * 2 <= again_below):
        return None
    steps: list[BatteryReading] = []
    for reading in run:
        if not steps or reading.permille < steps[-1].permille:
            steps.append(reading)
    return Discharge(
        permille=run[-1].permille,
        from_permille=run[0].permille,
        since_ms=run[0].at_ms,
        low_ms=low[0].at_ms,
        empty_ms=_empty_between(steps, run[-1]),
    )


def _empty_between(steps: list[BatteryReading], last: BatteryReading) -> tuple[int, int] | None:
    """When the charge reaches 0, by the slowest and the quickest step down and the last level."""
    recent = steps[-6:]
    if last.permille == 0 or len(recent) < _LEAST_STEPS or recent[-1].at_ms - recent[0].at_ms < _LEAST_FALL_MS:
        return None
    paces = [(b.at_ms - a.at_ms) / (a.permille - b.permille) for a, b in pairwise(recent)]  # ms a permille
    if min(paces) <= 0 or max(paces) > _SAME_PACE * min(paces):
        return None
    reached = recent[-1]
    sooner, later = (round(reached.at_ms + reached.permille * pace) for pace in (min(paces), max(paces)))
    if later <= last.at_ms:  # it should have been empty by now: the pace no longer holds
        return None
    return max(sooner, last.at_ms), later
