"""Hidden daily series: how much a pet does of what, on which day, at which hours.

Totals vary from day to day as published data does (log-normal, a mild weekly rhythm), and a
story's premise holds in every world: what the story says is unchanged is unchanged in the
very numbers drawn, within ``SETTLED``, and an effect has the size it is given. Worlds that
break the premise by chance are drawn again; the attempt is part of the random key, so a seed
always gives the same world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

__all__ = ["DAY_SHAPES", "HABITS", "SETTLED", "Habit", "daily_totals"]

SETTLED = 0.04
"""By how much a week may differ from the four weeks before it by chance alone."""
_BASELINE_DAYS = 28
_WEEK_DAYS = 7
_MOST_ATTEMPTS = 1_000


@dataclass(frozen=True, slots=True)
class Habit:
    """What one series is like: usual per day, spread from day to day, weekend's share on top.

    ``usual`` is in ms for a dog of 30 kg; ``cv`` is the coefficient of variation.
    """

    usual: float
    cv: float
    weekend: float = 0.0


_SECOND, _MINUTE = 1_000.0, 60_000.0
HABITS = {
    # 100 s a day, CV .15: a week can show +40 % (a week at CV .30 could not).
    "scratch": Habit(100 * _SECOND, 0.15, 0.05),
    "shake": Habit(26 * _SECOND, 0.22),
    "activity": Habit(390 * _MINUTE, 0.08, 0.08),
    "restless": Habit(34 * _MINUTE, 0.16),
    "intake": Habit(1.0, 0.06, 0.02),
}

# Weights of the 24 local hours. Scratching follows waking and settling; restless turns the night.
DAY_SHAPES = {
    "scratch": (3, 2, 2, 2, 3, 4, 5, 6, 5, 4, 4, 3, 3, 3, 3, 4, 5, 6, 7, 7, 6, 5, 5, 4),
    "shake": (1, 1, 1, 1, 1, 2, 5, 6, 5, 4, 3, 3, 3, 3, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1),
    "activity": (1, 1, 1, 1, 1, 2, 6, 9, 8, 6, 5, 4, 4, 4, 4, 5, 7, 9, 9, 7, 5, 4, 2, 1),
    "restless": (8, 8, 8, 9, 9, 9, 8, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 7, 8, 8),
}


def _lognormal(rng: Random, cv: float) -> float:
    """A draw of mean 1: exp(N(-s^2/2, s)), s^2 = log(1 + cv^2)."""
    sigma = math.sqrt(math.log1p(cv * cv))
    return math.exp(rng.gauss(-sigma * sigma / 2, sigma))


def _shares_by(shape: tuple[int, ...], hour: float) -> float:
    """The share of a day's total that falls before a local hour."""
    whole = int(hour)
    part = sum(shape[:whole]) + (shape[whole] * (hour - whole) if whole < 24 else 0.0)
    return part / sum(shape)


def daily_totals(
    key: str, habit: Habit, *, days: int, end_hour: float, first_weekday: int, shape: tuple[int, ...] | None
) -> list[float]:
    """Totals for ``days`` days and the week after, each a multiple of the habit's usual.

    The last week up to ``end_hour`` of day ``days - 1`` differs from the 28 days before it
    by at most ``SETTLED``: mean(week) / mean(before) in [1 - SETTLED, 1 + SETTLED], the last
    day counted by the share of the day that has passed.

    Parameters
    ----------
    key : str
        Names the random stream.
    days : int
        Days of the story, the day of the question included.
    end_hour : float
        Local hour of the question.
    first_weekday : int
        Weekday of the first day, Monday 0.
    shape : tuple of int or None
        Weights of the 24 hours; None where only whole days count.

    Raises
    ------
    RuntimeError
        No such world in 1,000 attempts: the bound and the spread do not go together.
    """
    part = 0.0 if shape is None else _shares_by(shape, end_hour)
    for attempt in range(_MOST_ATTEMPTS):
        rng = Random(f"{key}/{attempt}")
        drawn = []
        for at in range(days + _WEEK_DAYS):
            rhythm = habit.weekend if (first_weekday + at) % 7 >= 5 else -habit.weekend * 2 / 5
            drawn.append(_lognormal(rng, habit.cv) * (1 + rhythm))
        if days < 2 * _WEEK_DAYS:
            return drawn  # no history that could be compared with
        week = drawn[days - _WEEK_DAYS : days]
        before = drawn[max(0, days - _WEEK_DAYS - _BASELINE_DAYS) : days - _WEEK_DAYS]
        now = (sum(week[:-1]) + week[-1] * part) / (_WEEK_DAYS - 1 + part)
        if abs(now / (sum(before) / len(before)) - 1) <= SETTLED:
            return drawn
    raise RuntimeError(f"{key}: a week within {SETTLED:.0%} must be drawn in {_MOST_ATTEMPTS} attempts, was not")
