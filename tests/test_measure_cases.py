"""The nineteen cases of cases/days.md, each with its exact right value."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from gateway.measure.alarms import FloorKind, Urgency, meal_floor
from gateway.measure.change import compare
from gateway.measure.correlate import SeriesDays, associations
from gateway.measure.counts import count_tails
from gateway.measure.days import (
    HOUR_MS,
    add_days,
    dates_between,
    day_interval,
    hour_spans,
    instant_of,
    local_clock,
    local_day,
    night_interval,
)
from gateway.measure.grid import DayGrid, aggregate, night_grid, rescale
from gateway.measure.rollup import Sample, bowl_balance, counter_increase, mass_mg, roll_day
from gateway.measure.slow import slow_change
from gateway.model import Interval, Unclear, Verdict, ZonePeriod
from tests.measure_worlds import LAST, ar1, grid_of_days

NEW_YORK = (ZonePeriod("America/New_York", 0),)


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


def minutes_of(day: str) -> tuple[Sample, ...]:
    whole = day_interval(day, NEW_YORK)
    return tuple(Sample(str(at), at, at, 1) for at in range(whole.start_ms, whole.end_ms, 60_000))


def hourly_grid(day: str, rolled_total: float) -> DayGrid:
    span = hour_spans(day, NEW_YORK)[None, :]
    return DayGrid((day,), rolled_total * span / span.sum(), span, span, "count", "count")


def test_case_01_a_fall_day_has_25_hours() -> None:
    assert day_interval("2026-11-01", NEW_YORK) == Interval(ms(2026, 11, 1, 4), ms(2026, 11, 2, 5))
    rolled = roll_day(minutes_of("2026-11-01"), (), "2026-11-01", NEW_YORK)
    assert rolled.total == 1500
    per_24_h = rolled.total / (day_interval("2026-11-01", NEW_YORK).length_ms / (24 * HOUR_MS))
    assert per_24_h == 1440


def test_case_02_a_spring_day_has_23_hours_and_its_week_167() -> None:
    assert roll_day(minutes_of("2026-03-08"), (), "2026-03-08", NEW_YORK).total == 1380
    week = [day_interval(day, NEW_YORK).length_ms for day in dates_between("2026-03-02", "2026-03-08")]
    assert sum(week) == 167 * HOUR_MS


def test_case_03_two_meals_at_the_same_wall_time_stay_two() -> None:
    meals = tuple(Sample(f"bowl/1/{n}", at, at, 40) for n, at in enumerate((1793511000_000, 1793514600_000)))
    assert {local_day(meal.start_ms, NEW_YORK) for meal in meals} == {"2026-11-01"}
    assert {local_clock(meal.start_ms, NEW_YORK).strftime("%H:%M") for meal in meals} == {"01:30"}
    rolled = roll_day(meals, (), "2026-11-01", NEW_YORK)
    assert (rolled.n, rolled.total) == (2, 80)
    filled = [slot for slot, total in enumerate(rolled.sums) if total]
    assert filled[1] - filled[0] == 4  # an hour of elapsed time apart


def test_case_04_a_stamp_that_never_was_is_flagged() -> None:
    found = instant_of("2026-03-08", 2 * 60 + 30, NEW_YORK)
    assert (found.at_ms, found.suspect) == (ms(2026, 3, 8, 7, 30), True)
    assert local_clock(found.at_ms, NEW_YORK).strftime("%H:%M") == "03:30"


def test_case_05_a_partial_week_is_held_against_the_same_part_of_a_week() -> None:
    dates = dates_between("2026-06-01", "2026-07-15")  # Jul 15 is a Wednesday
    shape = np.zeros(24)
    shape[6:10], shape[10], shape[11:22] = 0.055, 0.04, (0.76 - 0.02) / 11  # 24 % by 10:30
    totals = np.array([160.0 if day_is_weekend(day) else 100.0 for day in dates])[:, None] * shape
    span = np.full((len(dates), 24), HOUR_MS, dtype=np.int64)
    totals[-3:] = np.array([130.0, 135.0, 0.0])[:, None] * shape
    totals[-1, 6:11] = 6.0  # 30 by 10:30
    span[-1] = np.where(np.arange(24) < 10, HOUR_MS, np.where(np.arange(24) == 10, HOUR_MS // 2, 0))
    totals[-1, 11:] = 0.0
    grid = DayGrid(dates, totals, span, span, "ms", "duration")
    found = compare(grid, "2026-07-13", "2026-07-15")
    assert found.change == pytest.approx(295 / 224 - 1, abs=1e-9)
    assert found.verdict is Verdict.UP


def day_is_weekend(day: str) -> bool:
    return datetime.fromisoformat(day).weekday() >= 5


def test_case_06_missing_is_not_zero() -> None:
    values = np.concatenate((np.full(63, 50.0), [50, 52, 48, 0, 0, 51, 49]))
    grid = grid_of_days(values)
    covered = grid.covered_ms.copy()
    covered[[-4, -3]] = 0
    grid = replace(grid, covered_ms=covered)
    first = grid.dates[-7]
    plain = aggregate(grid, first, LAST)
    assert (plain.per_day, len(plain.full_days), plain.days_expected) == (50.0, 5, 7)
    found = compare(grid, first, LAST)
    assert (found.verdict, len(found.days_used), found.days_expected) == (Verdict.USUAL, 5, 7)
    assert found.change == pytest.approx(0.0, abs=1e-12)
    assert found.set_aside_days == (grid.dates[-4], grid.dates[-3])


def test_case_07_a_quarter_of_a_day_is_left_out_not_multiplied() -> None:
    grid = grid_of_days(np.full(30, 120.0))
    covered, total = grid.covered_ms.copy(), grid.total.copy()
    covered[-1, 6:], total[-1] = 0, np.where(np.arange(24) < 6, 40 / 6, 0.0)
    grid = replace(grid, covered_ms=covered, total=total)
    assert grid.coverage()[-1] == 0.25
    plain = aggregate(grid, LAST, LAST)
    assert (plain.per_day, plain.set_aside_days) == (None, (LAST,))
    found = compare(grid, LAST, LAST)
    assert (found.verdict, found.reason, found.change) == (Verdict.CANNOT_TELL, Unclear.NOT_HEARD, None)


@pytest.mark.parametrize(
    ("readings", "jitter", "ran"),
    [
        ([1200, 1240, 1275, 5, 30], 1, 105),
        ([1200, 1240, 1239, 1275], 1, 75),
        ([3.737, None, 0.000, 3.746], 0.001, 0.009),
    ],
)
def test_case_08_a_counter_may_reset_and_may_jitter(readings, jitter, ran) -> None:
    assert counter_increase(readings, jitter=jitter) == pytest.approx(ran, abs=1e-12)


def test_case_09_bowl_weights_become_meals_and_refills() -> None:
    balance = bowl_balance([300, 260, 258, 420, 395, 440, 431], threshold=5)
    assert balance.removed == (40, 25, 9)
    assert sum(balance.removed) == 74
    assert balance.refilled == (162, 45)


def test_case_10_a_late_meal_changes_its_own_day_alone_and_once() -> None:
    at = instant_of("2026-07-04", 23 * 60 + 50, NEW_YORK).at_ms
    late = Sample("bowl-max/3/9", at, at, 40)
    known = (Sample("bowl-max/3/1", at - 8 * HOUR_MS, at - 8 * HOUR_MS, 60),)
    assert roll_day(known, (), "2026-07-04", NEW_YORK).total == 60
    once = roll_day((*known, late), (), "2026-07-04", NEW_YORK)
    assert once.total == 100
    assert roll_day((late, *known, late), (), "2026-07-04", NEW_YORK) == once
    assert roll_day((*known, late), (), "2026-07-06", NEW_YORK) == roll_day((), (), "2026-07-06", NEW_YORK)


def test_case_11_pounds_and_kilograms_are_the_same_dog() -> None:
    logged = [(62.1, "lb"), (61.8, "lb"), (62.4, "lb"), (28.2, "kg"), (28.1, "kg")]
    in_kg = [round(mass_mg(value, unit) / 1e6, 2) for value, unit in logged]
    assert in_kg == [28.17, 28.03, 28.30, 28.2, 28.1]
    assert mass_mg(28.1, None) is None
    assert mass_mg(28.1, "stone?") is None
    unitless = replace(grid_of_days(np.full(40, 28.0)), unit="")
    found = compare(unitless, unitless.dates[-7], LAST)
    assert (found.verdict, found.reason, found.change) == (Verdict.CANNOT_TELL, Unclear.BAD_DATA, None)


def test_case_12_three_in_a_week_after_four_in_a_month_is_not_unusual() -> None:
    assert round(count_tails(3, 7, 4, 28)[0], 3) == 0.123
    days = np.zeros(35)
    days[[2, 9, 16, 23]] = 1.0
    days[[29, 31, 33]] = 1.0
    grid = grid_of_days(days, kind="count", unit="count")
    found = compare(grid, grid.dates[-7], LAST)
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.detail.startswith("not unusual")
    assert "12 of 100" in found.detail


def test_case_13_the_day_of_a_move_west_lasts_27_hours_and_is_no_restless_night() -> None:
    zones = (*NEW_YORK, ZonePeriod("America/Los_Angeles", ms(2026, 7, 10, 16)))
    assert day_interval("2026-07-10", zones).length_ms == 27 * HOUR_MS
    dates = dates_between("2026-05-20", "2026-07-11")
    span = np.array([hour_spans(day, zones) for day in dates])
    grid = DayGrid(dates, span * (5000.0 / HOUR_MS), span, span, "ms", "duration")
    night = compare(night_grid(grid), "2026-07-10", "2026-07-10")
    assert (night.verdict, night.change) == (Verdict.USUAL, pytest.approx(0.0, abs=1e-12))
    assert night_interval("2026-07-10", zones).length_ms == 10 * HOUR_MS


def test_case_14_eating_under_an_unknown_tag_is_no_appetite_claim() -> None:
    values = np.concatenate((np.full(63, 200_000.0), np.full(7, 90_000.0)))
    grid = grid_of_days(values, kind="mass", unit="mg")
    found = compare(grid, grid.dates[-7], LAST, unattributed=700_000.0)
    assert (found.verdict, found.reason, found.change) == (Verdict.CANNOT_TELL, Unclear.WHOSE_UNKNOWN, None)
    assert "700000 mg" in found.detail


def test_case_15_an_outage_of_the_whole_home_writes_no_edge() -> None:
    rng = np.random.default_rng(15)
    x = ar1(rng, (12, 180), 0.3) + 10.0
    names = tuple(f"max.{n}" for n in range(12))
    for start in (20, 55, 90, 130, 160):
        x[:, start : start + 5] = np.nan
    missing = associations(SeriesDays(names, ("max",) * 12, names, x, 0))
    assert [one for one in missing if one.found] == []
    as_zero = associations(SeriesDays(names, ("max",) * 12, names, np.nan_to_num(x), 0))
    assert any(one.found for one in as_zero), "an outage stored as zeros would have linked them"


def test_case_16_an_adult_cat_without_a_meal_for_24_hours_is_told_at_once() -> None:
    last_meal = instant_of("2026-07-10", 19 * 60, NEW_YORK).at_ms
    due = instant_of("2026-07-11", 19 * 60, NEW_YORK).at_ms
    heard = (Interval(ms(2026, 7, 9), due + HOUR_MS),)

    def at(now_ms: int):
        return meal_floor(
            now_ms=now_ms,
            last_meal_ms=last_meal,
            watched_since_ms=ms(2026, 7, 8),
            heard=heard,
            age_days=2000,
            toy_breed=False,
        )

    assert at(due - 1) is None
    reached = at(due)
    assert reached is not None
    assert (reached.kind, reached.urgency, reached.reached_ms) == (FloorKind.NO_MEAL, Urgency.AMBER, due)


def weekly_weights(weeks: int, seed: int) -> DayGrid:
    rng = np.random.default_rng(seed)
    dates = dates_between(add_days(LAST, 1 - 7 * weeks - 28), LAST)
    span = np.full((len(dates), 24), HOUR_MS, dtype=np.int64)
    covered, total = np.zeros_like(span), np.zeros(span.shape)
    for index in range(len(dates) - 1, -1, -7):
        lost = 0.089 * max(index - 28, 0) / 365
        covered[index, 8] = HOUR_MS
        total[index, 8] = 4_500_000 * (1 - lost) * (1 + 0.01 * rng.standard_normal())
    return DayGrid(dates, total, covered, span, "mg", "level")


def test_case_17_a_slow_loss_is_seen_by_day_150_and_never_by_a_week() -> None:
    seen = 0
    for seed in range(20):
        grid = weekly_weights(52, seed)
        weekly = {compare(grid, add_days(day, -6), day).verdict for day in grid.dates[-1:90:-7]}
        assert weekly == {Verdict.USUAL}
        early = weekly_weights(150 // 7 + 1, seed)
        slow = slow_change(early, LAST, least_change=0.02)
        seen += slow is not None and slow.change < 0.0
        late = slow_change(grid, LAST, least_change=0.02)
        assert late is not None
        assert late.interval[0] < -0.06
        assert late.change == pytest.approx(-0.089, abs=0.03)
    assert seen >= 18


def test_case_18_energy_of_two_foods_is_comparable_and_grams_are_not() -> None:
    grams = np.concatenate((np.full(56, 240_000.0), np.full(7, 55_000.0)))
    grid = grid_of_days(grams, kind="mass", unit="mg")
    factors = {day: (0.85 if n < 56 else 3.7) / 1000 for n, day in enumerate(grid.dates)}
    found = compare(rescale(grid, factors, "kcal"), grid.dates[-7], LAST)
    assert found.verdict is Verdict.USUAL
    assert found.change == pytest.approx(55 * 3.7 / (240 * 0.85) - 1, abs=1e-12)
    assert round(100 * found.change, 1) == -0.2


def test_case_19_only_hours_worn_on_both_sides_are_compared() -> None:
    grid = grid_of_days(np.full(35, 120_000.0))
    covered, total = grid.covered_ms.copy(), grid.total.copy()
    covered[:28, 16:], total[:28, 16:] = 0, 0.0
    found = compare(replace(grid, covered_ms=covered, total=total), grid.dates[-7], LAST)
    assert (found.verdict, found.change) == (Verdict.USUAL, pytest.approx(0.0, abs=1e-12))
    assert found.now == pytest.approx(16 * 5000.0)
