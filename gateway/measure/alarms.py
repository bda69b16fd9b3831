"""Notices nobody asked for: a statistical one that is never red, and hard floors.

CUSUM of the daily index says that a series has left its usual level; how often it may be
wrong is its argument. Hard floors are no statistics: they speak from the first hour and
repeat until somebody answers. Pure: instants and days in, values out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gateway.measure.baseline import BASELINE_DAYS, expose, memory_of
from gateway.measure.days import HOUR_MS, add_days
from gateway.measure.grid import DayGrid, fault_of
from gateway.model import Interval

__all__ = [
    "QUIET_DAYS",
    "BoxVisit",
    "Floor",
    "FloorKind",
    "Notice",
    "Urgency",
    "box_floor",
    "cusum_threshold",
    "half_usual_floor",
    "meal_floor",
    "meal_limit_ms",
    "notice_on",
    "silence_floor",
    "unused_run",
    "weight_floor",
]

FloatArray = NDArray[np.float64]

QUIET_DAYS = 7
"""A notice that stands again within 7 days of the last is the same notice."""
_RUN_DAYS = 14
_ALLOWANCE = 0.5
_LEAST_INDEX = 0.05
"""A day at a twentieth of usual and a day of nothing are the same surprise."""
_LEAST_SPREAD = 0.05
_UNCERTAIN_LEVEL = 1.115
_UNCERTAIN_MEMORY = 2.0
_SLIGHT_MEMORY = 0.15
"""The threshold is enlarged by 1.115, and by 2 for each unit of phi above .15 (what 56 days
without memory show by chance): a level and a memory estimated from 56 days double the false
rate of known ones (Jones, Champ & Rigdon 2004, J. Qual. Tech. 36:361; factors by simulation,
``tests/calibrate_measure.py`` prints what they give)."""
_LEAST_HISTORY = 28
_DAY_MS = 24 * HOUR_MS
_HEARD_GAP_MS = 15 * 60_000
"""Gaps of one missed beat interval in all do not make a bowl unheard."""


# --- statistical notices ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """A series left its usual level: direction +1 or -1, since about ``began``."""

    direction: int
    began: str
    change: float


def cusum_threshold(false_per_year: float) -> float:
    r"""Decision interval h of a two-sided CUSUM with allowance 1/2, in standard deviations.

    One-sided average run length (e^{2kb} - 2kb - 1) / (2 k^2), b = h + 1.166 (Siegmund
    1985, Sequential Analysis, eq. 2.57); both sides together halve it. Solved by bisection
    to 1e-9.
    """
    wanted = 2.0 * 365.25 / false_per_year
    low, high = 0.0, 60.0
    while high - low > 1e-9:
        h = (low + high) / 2.0
        reach = 2.0 * _ALLOWANCE * (h + 1.166)
        run = (np.expm1(reach) - reach) / (2.0 * _ALLOWANCE**2)
        low, high = (h, high) if run < wanted else (low, h)
    return high


def notice_on(grid: DayGrid, last: str, *, false_per_year: float = 1.0) -> Notice | None:
    """Whether the CUSUM of the last 14 days stands above its threshold on ``last``.

    The 56 days before those 14 give level, spread and memory (28 covered ones at least), so
    a new level never enters its own baseline. Days are prewhitened by phi; an unheard day
    leaves the sum as it is.
    """
    first = add_days(last, 1 - _RUN_DAYS)
    if fault_of(grid) is not None:
        return None
    dates = np.array(grid.dates, dtype="U10")
    good = grid.usable()
    base = good & (dates >= add_days(first, -BASELINE_DAYS)) & (dates < first)
    if int(base.sum()) < _LEAST_HISTORY:
        return None
    exposure = expose(grid, base)
    if exposure is None or exposure.per_day <= 0.0:
        return None
    heard = good & (exposure.expected > 0.0)
    index = np.divide(exposure.observed, exposure.expected, out=np.ones(len(dates)), where=heard)
    weekend = (grid.ordinals + 6) % 7 >= 5
    base &= heard
    memory = memory_of(index[base], grid.ordinals[base], weekend[base], grid.kind)
    level = np.where(weekend, memory.levels[1], memory.levels[0])
    if (level <= 0.0).any():
        return None
    recent = np.flatnonzero(heard & (dates >= first) & (dates <= last))
    if recent.size == 0 or grid.dates[recent[-1]] != last:
        return None
    away = np.log(np.maximum(index / level, _LEAST_INDEX))
    before = away[base]
    spread = max(float(before.std()) * memory.spread_correction, _LEAST_SPREAD)
    innovations = (away[recent] - before.mean()) / spread
    innovations[1:] -= memory.phi * innovations[:-1] * (np.diff(grid.ordinals[recent]) == 1)
    innovations /= np.sqrt(1.0 - memory.phi**2)
    enlarged = _UNCERTAIN_LEVEL * (1.0 + _UNCERTAIN_MEMORY * max(memory.phi - _SLIGHT_MEMORY, 0.0))
    threshold = cusum_threshold(false_per_year) * enlarged
    for direction in (1, -1):
        total, start = _cusum(direction * innovations)
        if total > threshold:
            since = recent[start:]
            change = float(exposure.observed[since].sum() / (exposure.expected * level)[since].sum()) - 1.0
            return Notice(direction, grid.dates[since[0]], change)
    return None


def _cusum(innovations: FloatArray) -> tuple[float, int]:
    """Final value of the one-sided CUSUM and the index where its last rise began."""
    total, start = 0.0, 0
    for position, value in enumerate(np.minimum(innovations, 4.0)):  # one wild day is no level
        total += float(value) - _ALLOWANCE
        if total <= 0.0:
            total, start = 0.0, position + 1
    return total, min(start, innovations.size - 1)


# --- hard floors --------------------------------------------------------------------------


class FloorKind(StrEnum):
    """What a hard floor watches."""

    NO_MEAL = "no_meal"
    HALF_USUAL = "half_usual"
    BOX_UNUSED = "box_unused"
    UNWATCHED = "unwatched"
    BATTERY = "battery"
    WEIGHT_LOSS = "weight_loss"


class Urgency(StrEnum):
    """How a floor speaks (cases/safety.md)."""

    RED = "red"
    AMBER = "amber"


@dataclass(frozen=True, slots=True)
class BoxVisit:
    """A visit to a litter box: used or not (None: the box can't tell), and whether it was surely
    this animal's or may have been another's.
    """

    at_ms: int
    used: bool | None
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor that was reached: since when it is true, and what it stands on (ms UTC)."""

    kind: FloorKind
    urgency: Urgency
    reached_ms: int
    last_seen_ms: int | None


def meal_limit_ms(*, age_days: int | None, toy_breed: bool) -> tuple[int, Urgency]:
    """How long a pet may go without a meal, and how urgent the end of it is.

    Under 12 weeks 6 h, under 6 months or a toy breed 12 h, all red; an adult 24 h, amber.
    """
    if age_days is not None and age_days < 84:
        return 6 * HOUR_MS, Urgency.RED
    if toy_breed or (age_days is not None and age_days < 183):
        return 12 * HOUR_MS, Urgency.RED
    return _DAY_MS, Urgency.AMBER


def _heard_throughout(heard: tuple[Interval, ...], span: Interval) -> bool:
    covered = sum(max(0, min(part.end_ms, span.end_ms) - max(part.start_ms, span.start_ms)) for part in heard)
    return span.length_ms - covered <= _HEARD_GAP_MS


def meal_floor(
    *,
    now_ms: int,
    last_meal_ms: int | None,
    watched_since_ms: int,
    heard: tuple[Interval, ...],
    age_days: int | None,
    toy_breed: bool,
    missed_meal_due_ms: int | None = None,
) -> Floor | None:
    """No meal from the pet's own bowl for as long as it may go without, the bowl heard all along.

    Parameters
    ----------
    last_meal_ms : int | None
        None where none was ever seen; then the watch begins with the bowl.
    heard : tuple of Interval
        Disjoint times the bowl was heard.
    missed_meal_due_ms : int | None
        On insulin: the end of the first usual meal since the last one; passing it is red.
    """
    since = watched_since_ms if last_meal_ms is None else last_meal_ms
    limit, urgency = meal_limit_ms(age_days=age_days, toy_breed=toy_breed)
    reached = since + limit
    if missed_meal_due_ms is not None and since < missed_meal_due_ms < reached:
        reached, urgency = missed_meal_due_ms, Urgency.RED
    if now_ms < reached or not _heard_throughout(heard, Interval(since, reached)):
        return None
    return Floor(FloorKind.NO_MEAL, urgency, reached, last_meal_ms)


def silence_floor(*, now_ms: int, last_heard_ms: int) -> Floor | None:
    """A device that carries a floor was not heard for 6 h: nobody is watching."""
    reached = last_heard_ms + 6 * HOUR_MS
    return Floor(FloorKind.UNWATCHED, Urgency.AMBER, reached, last_heard_ms) if now_ms >= reached else None


def unused_run(visits: tuple[BoxVisit, ...]) -> tuple[int, ...]:
    """Places of the visits, given in time order, that belong to the run of unused ones that ends now.

    A used visit ends the worry about this animal where it was surely this one's, else only about
    visits as unsure as itself. Of a box that cannot tell use (``used`` None) nothing follows.
    """
    unused: list[int] = []
    for place, visit in enumerate(visits):
        if visit.used is False:
            unused.append(place)
        elif visit.used:
            unused = [] if visit.sure else [one for one in unused if visits[one].sure]
    return tuple(unused)


def box_floor(visits: tuple[BoxVisit, ...]) -> Floor | None:
    """Three litter-box visits within 2 h in the run of unused ones; the visits in time order."""
    unused = [visits[place].at_ms for place in unused_run(visits)]
    for first, third in zip(unused, unused[2:], strict=False):
        if third - first <= 2 * HOUR_MS:
            return Floor(FloorKind.BOX_UNUSED, Urgency.RED, third, unused[-1])
    return None


def half_usual_floor(day_ratios: tuple[float | None, ...], day_ends_ms: tuple[int, ...]) -> Floor | None:
    """A cat below half of its usual on the last two whole days; None is an unheard day."""
    recent = day_ratios[-2:]
    if len(recent) < 2 or any(ratio is None or ratio >= 0.5 for ratio in recent):
        return None
    return Floor(FloorKind.HALF_USUAL, Urgency.AMBER, day_ends_ms[-1], None)


def weight_floor(weighings: tuple[tuple[int, int], ...]) -> Floor | None:
    """Weight down 5 % within 31 days or 10 % in all: (at_ms, mg), in time order.

    Weighings are taken by weeks back from the latest, each week as its median, so one bad
    reading among several decides nothing.
    """
    if not weighings:
        return None
    at_ms = weighings[-1][0]
    weeks: dict[int, list[int]] = {}
    for when, mg in weighings:
        weeks.setdefault((at_ms - when) // (7 * _DAY_MS), []).append(mg)
    medians = {week: float(np.median(found)) for week, found in weeks.items()}
    latest = medians.pop(0)
    month = [mg for week, mg in medians.items() if week * 7 <= 31]
    if (month and latest <= 0.95 * max(month)) or (medians and latest <= 0.90 * max(medians.values())):
        return Floor(FloorKind.WEIGHT_LOSS, Urgency.AMBER, at_ms, at_ms)
    return None
