"""What would settle a "cannot tell": a wider window, a date, or more covered days. Pure.

Honest is not empty: the comparison has said why it cannot tell; this says when it could.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gateway.measure.baseline import BASELINE_DAYS
from gateway.measure.change import FIRM_HISTORY, RELEVANCE, SegmentStart, compare
from gateway.measure.days import add_days, dates_between
from gateway.measure.grid import DayGrid, fault_of
from gateway.model import Comparison, Unclear, Verdict

__all__ = ["WIDER_DAYS", "Outlook", "ids_with", "outlook"]

WIDER_DAYS = (14, 28, 90)
_CRITICAL, _POWER = 2.0, 0.85
"""Rounded Student quantiles at 97.5 % and 80 % for some 50 degrees of freedom; a date weeks
ahead needs no third digit."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What helps. Each part is None where it does not.

    ``wider_days`` and ``wider`` are the next longer window that can tell, and what it says;
    ``tell_on`` the first date a comparison can be made (with history missing) or would be
    clear if this goes on (with too much variation); ``firm_on`` the date of a firm one.
    """

    wider_days: int | None = None
    wider: Comparison | None = None
    tell_on: str | None = None
    firm_on: str | None = None


def outlook(
    grid: DayGrid,
    comparison: Comparison,
    first: str,
    last: str,
    *,
    relevance: float = RELEVANCE,
    segments: tuple[SegmentStart, ...] = (),
) -> Outlook:
    """What would settle ``comparison``, which :func:`compare` made of the same arguments."""
    length = len(dates_between(first, last))
    if comparison.verdict is not Verdict.CANNOT_TELL or fault_of(grid) is not None:
        return Outlook()
    if comparison.reason in {Unclear.TOO_FEW_DAYS, Unclear.NOT_COMPARABLE}:
        return _when_recorded(grid, comparison, last, length, segments)
    for days in WIDER_DAYS:
        if days <= length:
            continue
        wider = compare(grid, add_days(last, 1 - days), last, relevance=relevance, segments=segments)
        if wider.verdict is not Verdict.CANNOT_TELL:
            return Outlook(days, wider, _when_clear(comparison, last, length))
    return Outlook(tell_on=_when_clear(comparison, last, length))


def _when_recorded(
    grid: DayGrid, comparison: Comparison, last: str, length: int, segments: tuple[SegmentStart, ...]
) -> Outlook:
    """Dates by counting: every day from now on is heard, none before the last break counts."""
    breaks = [start.date for start in segments if start.breaks and start.date <= last]
    since = max(breaks, default="0001-01-01")
    days = np.array([since <= day <= last for day in grid.dates], dtype=bool) & grid.usable()
    have = int(days.sum())
    firm = max(FIRM_HISTORY, comparison.baseline_needed)
    return Outlook(
        tell_on=add_days(last, max(comparison.baseline_needed + length - have, 1)),
        firm_on=add_days(last, max(firm + length - have, 1)),
    )


def _when_clear(comparison: Comparison, last: str, length: int) -> str | None:
    """The date on which a window begun with this one would show the change seen so far.

    A window of n days has the error e_n = e_w sqrt((1/n + 1/56) / (1/w + 1/56)); it shows
    |log(1 + change)| once that is 2 e_n. None within 90 days means a date is no promise.
    """
    if comparison.change is None or comparison.smallest_visible is None or comparison.change <= -1.0:
        return None
    error = np.log1p(comparison.smallest_visible) / (_CRITICAL + _POWER)
    away = abs(np.log1p(comparison.change))
    for days in range(length + 1, 91):
        factor = (1.0 / days + 1.0 / BASELINE_DAYS) / (1.0 / length + 1.0 / BASELINE_DAYS)
        if away >= _CRITICAL * error * np.sqrt(factor):
            return add_days(last, days - length)
    return None


def ids_with(verdict: Verdict, comparisons: Mapping[str, Comparison]) -> frozenset[str]:
    """The ids whose comparison says ``verdict``: "who eats less this week?" seeds a walk with
    names alone. Numbers stay here; a set has nowhere to put them.
    """
    return frozenset(name for name, comparison in comparisons.items() if comparison.verdict is verdict)
