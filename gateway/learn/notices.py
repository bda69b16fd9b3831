"""What the hub says unasked, beside the hard floors: a series that left its usual level.

In: a series' days up to the day that closed. Out: a finding of that day where the notice
stands, nothing where it does not; so a replay gives the same notices. Never red: how often it
may be wrong is fixed beforehand. Also the owner's answer to a floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gateway.errors import ImportRefused
from gateway.learn.floors import HALF_WINDOW
from gateway.measure.alarms import QUIET_DAYS, FloorKind, half_usual_floor, notice_on
from gateway.measure.days import add_days, day_interval

if TYPE_CHECKING:
    from gateway.measure.series import Measured
    from gateway.model import ZonePeriod
    from gateway.ontology.vocabulary import Property
    from gateway.store import Transaction

__all__ = [
    "ANSWERS",
    "NOTICE_WINDOW",
    "QUIET_DAYS",
    "answer_notice",
    "answers_to",
    "false_per_year",
    "half_usual_finding",
    "says_something",
    "shift_finding",
]

NOTICE_WINDOW = "NOTICE"
"""The finding of a day on which a statistical notice stands."""
ANSWERS = {"ate_elsewhere": "ate elsewhere", "not_at_home": "not at home", "seen": "seen"}
"""What an owner can answer to a floor, and its words."""
_FALSE_A_SERIES_YEAR, _FALSE_A_HOUSEHOLD_YEAR = 1.0, 4.0
_RUN_DAYS = 14 + 56
_USUAL_DAYS = 28
_LEAST_USUAL_DAYS = 7
_WHOLE_DAY = 0.95
"""Heard for less of it, a day may hold a meal nobody heard: it is neither below nor above half."""
_MEALS_KINDS = frozenset({FloorKind.NO_MEAL.value, FloorKind.HALF_USUAL.value})


def answer_notice(tx: Transaction, notice: str, answer: str, *, now_ms: int) -> str:
    """Keep the owner's answer to a hard floor; returns what that does, in a sentence.

    Parameters
    ----------
    notice : str
        The notice's id, as the page shows it.
    answer : str
        ``ate_elsewhere`` (counts as a meal now), ``not_at_home`` (no alarm until the pet's bowl
        records a meal again) or ``seen`` (said once more when the time is up again).

    Raises
    ------
    ImportRefused
        No such notice, no such answer to it, or answered already.
    """
    found = tx.floor_notice(notice)
    if found is None:
        raise ImportRefused("command", f"must be the id of a notice, is {notice!r}", field="notice")
    known = answers_to(found.kind)
    if answer not in known:
        raise ImportRefused("command", f"must be one of {', '.join(known)}, is {answer!r}", field="answer")
    if not tx.answer_floor(notice, answer=answer, at_ms=now_ms):
        raise ImportRefused("command", f"must be open, was answered: {ANSWERS[str(found.answer)]}", field="notice")
    name = tx.household().pet(found.pet).name
    return f"Kept for {name}: {ANSWERS[answer]}."


def answers_to(kind: str) -> tuple[str, ...]:
    """The answers that make sense of a floor of this kind, in the order they are offered."""
    return (
        tuple(ANSWERS)
        if kind in _MEALS_KINDS
        else ("not_at_home", "seen")
        if kind == FloorKind.UNWATCHED
        else ("seen",)
    )


# --- statistical notices ------------------------------------------------------------------------


def says_something(observed: Property) -> bool:
    """Whether a series says something about the pet: refills and batteries do not."""
    return observed.sign_up is not None or observed.sign_down is not None


def false_per_year(series: int) -> float:
    """False notices a series may give in a year so that the household gets at most four."""
    return min(_FALSE_A_SERIES_YEAR, _FALSE_A_HOUSEHOLD_YEAR / max(series, 1))


def shift_finding(
    tx: Transaction, series: str, measured: Measured, as_of: str, *, rate: float, relevance: float
) -> None:
    """Keep a notice where the series stands away from its usual level on ``as_of``.

    ``rate`` is the number of false notices allowed a year; a change below ``relevance`` (a
    fraction) is nothing to call an owner for. Grams of two foods are no level.
    """
    oldest = add_days(as_of, 1 - _RUN_DAYS)
    if any(start.date > oldest for start in measured.breaks):
        return
    found = notice_on(measured.grid, as_of, false_per_year=rate)
    if found is None or abs(found.change) < relevance:
        return
    tx.save_finding(
        series,
        as_of=as_of,
        window=NOTICE_WINDOW,
        verdict="up" if found.direction > 0 else "down",
        facts={"began": found.began, "change": found.change},
    )


# --- half of usual ------------------------------------------------------------------------------


def half_usual_finding(
    tx: Transaction, series: str, measured: Measured, as_of: str, *, zones: tuple[ZonePeriod, ...]
) -> None:
    """Keep that the last two whole days were below half of the usual, and since when they run.

    Usual is the median of up to 28 whole days before the run, at least 7, all of the same food
    or in energy: no test, a floor.
    """
    grid = measured.grid
    floor = max((start.date for start in measured.breaks), default="")
    whole = (grid.coverage() >= _WHOLE_DAY) & np.array([date > floor for date in grid.dates], dtype=bool)
    totals = grid.day_totals()
    place = len(grid.dates) - 1
    if not grid.dates or grid.dates[-1] != as_of:
        return
    base = np.flatnonzero(whole[: max(place - 1, 0)])[-_USUAL_DAYS:]
    if base.size < _LEAST_USUAL_DAYS:
        return
    usual = float(np.median(totals[base]))
    if usual <= 0.0:
        return
    ratios = [float(totals[at]) / usual if whole[at] else None for at in range(len(grid.dates))]
    ends = tuple(day_interval(date, zones).end_ms for date in grid.dates[-2:])
    if half_usual_floor(tuple(ratios[-2:]), ends) is None:
        return
    first = place
    while first > 0 and (ratio := ratios[first - 1]) is not None and ratio < 0.5:
        first -= 1
    tx.save_finding(
        series,
        as_of=as_of,
        window=HALF_WINDOW,
        verdict="down",
        facts={"first": grid.dates[first], "before": ratios[-2], "last": ratios[-1], "usual": usual, "unit": grid.unit},
    )
