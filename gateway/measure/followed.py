"""Event to series: whether a series changed after a food switch, a medicine, a visitor.

An AR(1)-adjusted before/after comparison with an onset delay of 0 to 14 days. One switch is
one observation: its belief is capped low and the relation is ``followed_by``, never cause.
Other events near it are rivals and stay listed. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.measure.baseline import BASELINE_DAYS, LEAST_HISTORY, ar1_weights, expose, memory_of
from gateway.measure.days import add_days
from gateway.measure.grid import DayGrid, fault_of
from gateway.measure.tails import student_below

__all__ = ["AFTER_DAYS", "DELAYS", "DatedEvent", "Followed", "event_belief", "followed_by"]

AFTER_DAYS = 28
LEAST_AFTER = 7
DELAYS = range(15)
_INDEPENDENT_DELAYS = 4.0
"""Fifteen overlapping delays err like three to four independent ones (simulated: AR 0 to .7, drift)."""
_RIVAL_DAYS = 21
_BELIEF_ONE, _BELIEF_TWO = 0.30, 0.45
"""One switch, and a switch back that undid it; a third witness adds nothing more."""


@dataclass(frozen=True, slots=True)
class DatedEvent:
    """Something that happened on a local day, by the id of its edge or record."""

    id: str
    date: str


@dataclass(frozen=True, slots=True)
class Followed:
    """A series beside an event. ``change`` is a fraction of the level before; ``delay_days``
    from the event to the day the difference is clearest; ``p`` corrected for the delays.
    """

    event: DatedEvent
    found: bool
    delay_days: int
    change: float
    p: float
    days_before: int
    days_after: int
    rivals: tuple[DatedEvent, ...]


def followed_by(
    grid: DayGrid, event: DatedEvent, *, others: tuple[DatedEvent, ...] = (), alpha: float = 0.05
) -> Followed | None:
    """Compare up to 56 days before the event with up to 28 days from each delay on.

    Student's t of the mean index after against before, variance spread^2 a'Ca with
    C_ij = phi^|i-j| from the days before; Sidak over the delays' effective number. None
    where 21 days before or 7 after are not covered.
    """
    if fault_of(grid) is not None:
        return None
    dates = np.array(grid.dates, dtype="U10")
    good = grid.usable()
    before = good & (dates >= add_days(event.date, -BASELINE_DAYS)) & (dates < event.date)
    if int(before.sum()) < LEAST_HISTORY:
        return None
    exposure = expose(grid, before)
    if exposure is None or exposure.per_day <= 0.0:
        return None
    good &= exposure.expected > 0.0
    before &= good
    index = np.divide(exposure.observed, exposure.expected, out=np.zeros(len(dates)), where=good)
    weekend = (grid.ordinals + 6) % 7 >= 5
    memory = memory_of(index[before], grid.ordinals[before], weekend[before], grid.kind)
    level = np.where(weekend, memory.levels[1], memory.levels[0])
    if (level <= 0.0).any():
        return None
    best: tuple[float, int, float, int] | None = None
    for delay in DELAYS:
        start = add_days(event.date, delay)
        after = good & (dates >= start) & (dates < add_days(start, AFTER_DAYS))
        count = int(after.sum())
        if count < LEAST_AFTER:
            break
        weights = np.zeros(len(dates))
        weights[after], weights[before] = 1.0 / count, -1.0 / before.sum()
        taking = after | before
        error = memory.spread * np.sqrt(ar1_weights(weights[taking], grid.ordinals[taking], memory.phi))
        ratio = float((index / level)[after].mean())
        away = np.log(max(ratio, 0.01)) / error
        p = 2.0 * student_below(memory.freedom, -float(abs(away)))
        if best is None or p < best[0]:
            best = (p, delay, ratio - 1.0, count)
    if best is None:
        return None
    p = float(-np.expm1(_INDEPENDENT_DELAYS * np.log1p(-min(best[0], 1.0 - 1e-16))))
    near, far = add_days(event.date, -_RIVAL_DAYS), add_days(event.date, _RIVAL_DAYS)
    rivals = tuple(other for other in others if other.id != event.id and near <= other.date <= far)
    return Followed(event, p <= alpha, best[1], best[2], p, int(before.sum()), best[3], rivals)


def event_belief(observations: tuple[Followed, ...]) -> float:
    """Belief that the series follows the event: one observation, or a switch and its undoing.

    The second witness must have been found and point the other way; more of the same
    direction is the same story told again.
    """
    found = [one for one in observations if one.found]
    if not found:
        return 0.0
    undone = any(one.change * found[0].change < 0.0 for one in found[1:])
    return _BELIEF_TWO if undone else _BELIEF_ONE
