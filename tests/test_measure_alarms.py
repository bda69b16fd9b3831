"""Notices that seldom cry wolf, floors that never wait for statistics, sums in any order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gateway.measure.alarms import (
    BoxVisit,
    FloorKind,
    Urgency,
    box_floor,
    cusum_threshold,
    half_usual_floor,
    meal_floor,
    notice_on,
    silence_floor,
    weight_floor,
)
from gateway.measure.days import HOUR_MS, SLOT_MS, add_days, day_interval
from gateway.measure.rollup import Sample, counter_increase, merge_intervals, roll_day, with_sample
from gateway.measure.slow import reference_level, slow_change, theil_sen
from gateway.model import Interval, ZonePeriod
from tests.measure_worlds import LAST, daily, grid_of_days

DAY_MS = 24 * HOUR_MS
NEW_YORK = (ZonePeriod("America/New_York", 0),)
DAY = "2026-07-14"
WHOLE = day_interval(DAY, NEW_YORK)

# --- statistical notices ------------------------------------------------------------------


def test_the_threshold_gives_the_run_length_asked_for() -> None:
    rng = np.random.default_rng(0)
    h = cusum_threshold(2.0)  # one false in 182.6 days, both sides
    lengths = []
    for _ in range(300):
        up = down = days = 0
        while up <= h and down <= h:
            z = rng.standard_normal()
            up, down, days = max(0.0, up + z - 0.5), max(0.0, down - z - 0.5), days + 1
        lengths.append(days)
    assert np.mean(lengths) == pytest.approx(182.6, rel=0.2)


def test_a_steady_rise_is_noticed_within_a_fortnight_and_dated() -> None:
    noticed = 0
    for seed in range(30):
        values = daily(np.random.default_rng(seed), 90, cv=0.2)
        values[-14:] *= 1.4
        found = notice_on(grid_of_days(values), LAST)
        noticed += found is not None and found.direction == 1 and found.began >= add_days(LAST, -16)
    assert noticed >= 28


def test_an_unchanged_series_is_left_alone_on_most_days() -> None:
    grids = [grid_of_days(daily(np.random.default_rng(seed), 90, cv=0.3)) for seed in range(200)]
    assert sum(notice_on(grid, LAST) is not None for grid in grids) <= 8


def test_one_wild_day_is_no_new_level() -> None:
    values = daily(np.random.default_rng(1), 90, cv=0.2)
    values[-2] *= 20.0
    assert notice_on(grid_of_days(values), LAST) is None


def test_an_unheard_day_raises_no_notice() -> None:
    values = daily(np.random.default_rng(1), 90, cv=0.2)
    values[-14:] *= 2.0
    grid = grid_of_days(values)
    covered = grid.covered_ms.copy()
    covered[-1] = 0
    assert notice_on(grid, LAST) is not None
    assert notice_on(replace(grid, covered_ms=covered), LAST) is None


# --- hard floors --------------------------------------------------------------------------


def floor_at(hours: float, **options):
    settings_ = {"age_days": 2000, "toy_breed": False, "heard": (Interval(0, 100 * DAY_MS),), **options}
    return meal_floor(now_ms=int(hours * HOUR_MS), last_meal_ms=0, watched_since_ms=0, **settings_)


@pytest.mark.parametrize(
    ("options", "hours", "urgency"),
    [
        ({}, 24, Urgency.AMBER),
        ({"age_days": None}, 24, Urgency.AMBER),
        ({"toy_breed": True}, 12, Urgency.RED),
        ({"age_days": 150}, 12, Urgency.RED),
        ({"age_days": 60}, 6, Urgency.RED),
        ({"missed_meal_due_ms": 9 * HOUR_MS}, 9, Urgency.RED),
    ],
)
def test_a_floor_speaks_at_its_hour_and_not_a_moment_before(options, hours, urgency) -> None:
    assert floor_at(hours - 0.001, **options) is None
    found = floor_at(hours, **options)
    assert (found.kind, found.urgency, found.reached_ms) == (FloorKind.NO_MEAL, urgency, hours * HOUR_MS)
    assert floor_at(hours + 30, **options) == found  # it repeats until somebody answers


def test_a_bowl_that_was_not_heard_throughout_proves_no_fast() -> None:
    gap = (Interval(0, 10 * HOUR_MS), Interval(12 * HOUR_MS, 100 * DAY_MS))
    assert floor_at(30, heard=gap) is None
    blink = (Interval(0, 10 * HOUR_MS), Interval(10 * HOUR_MS + 300_000, 100 * DAY_MS))
    assert floor_at(30, heard=blink) is not None


def test_a_pet_without_any_meal_yet_is_watched_from_the_first_hour_of_its_bowl() -> None:
    found = meal_floor(
        now_ms=25 * HOUR_MS,
        last_meal_ms=None,
        watched_since_ms=HOUR_MS,
        heard=(Interval(0, DAY_MS * 2),),
        age_days=900,
        toy_breed=False,
    )
    assert found is not None
    assert (found.reached_ms, found.last_seen_ms) == (25 * HOUR_MS, None)


def test_a_silent_device_is_said_after_six_hours() -> None:
    assert silence_floor(now_ms=6 * HOUR_MS - 1, last_heard_ms=0) is None
    assert silence_floor(now_ms=6 * HOUR_MS, last_heard_ms=0).kind is FloorKind.UNWATCHED


@pytest.mark.parametrize(
    ("visits", "red"),
    [
        ([(0, False), (60, False), (119, False)], True),
        ([(0, False), (60, False), (121, False)], False),
        ([(0, False), (60, True), (90, False), (100, False)], False),
        ([(0, False), (10, False), (20, False), (30, True)], False),
        ([(0, True), (10, False), (70, False), (125, False)], True),
    ],
)
def test_three_unused_visits_within_two_hours_are_red(visits, red) -> None:
    found = box_floor(tuple(BoxVisit(minute * 60_000, used) for minute, used in visits))
    assert (found is not None) is red
    assert found is None or found.urgency is Urgency.RED


@pytest.mark.parametrize(
    ("visits", "red"),
    [
        ([(0, False, False), (9, False, False), (20, False, False)], True),  # some cat strains: each is told
        ([(0, False, True), (9, False, True), (15, True, False), (20, False, True)], True),  # that was the other cat
        ([(0, False, False), (9, False, False), (15, True, False), (20, False, False)], False),
        ([(0, False, False), (9, False, True), (15, True, True), (20, False, True)], False),
        ([(0, None, True), (9, None, True), (20, None, True)], False),  # a box that can't tell
        ([(0, False, True), (9, None, True), (15, False, True), (20, False, True)], True),
    ],
)
def test_an_unsure_visit_worries_and_soothes_only_as_far_as_it_may_be_this_cats(visits, red) -> None:
    found = box_floor(tuple(BoxVisit(minute * 60_000, used, sure) for minute, used, sure in visits))
    assert (found is not None) is red


def test_half_of_usual_on_two_heard_days_is_amber() -> None:
    assert half_usual_floor((1.0, 0.4, 0.45), (1, 2, 3)).kind is FloorKind.HALF_USUAL
    assert half_usual_floor((0.4, 0.6, 0.4), (1, 2, 3)) is None
    assert half_usual_floor((0.4, None), (1, 2)) is None
    assert half_usual_floor((0.4,), (1,)) is None


@pytest.mark.parametrize(
    ("weighings", "amber"),
    [
        ([(0, 30.0), (28, 28.4)], True),
        ([(0, 30.0), (28, 28.6)], False),
        ([(0, 30.0), (90, 28.4)], False),
        ([(0, 30.0), (90, 28.4), (200, 26.9)], True),
        ([(0, 30.0), (27, 30.1), (28, 24.0), (28, 30.0)], False),
        ([(0, 30.0)], False),
        ([], False),
    ],
)
def test_five_percent_in_a_month_or_ten_in_all_is_amber(weighings, amber) -> None:
    found = weight_floor(tuple((day * DAY_MS, int(kg * 1e6)) for day, kg in weighings))
    assert (found is not None) is amber


# --- slow change --------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_robust_slope_is_that_of_theil_and_sen(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times, values = np.sort(rng.choice(200, 20, replace=False)).astype(float), rng.standard_normal(20)
    assert theil_sen(times, values)[0] == pytest.approx(stats.theilslopes(values, times).slope, abs=1e-12)


def test_a_year_of_unchanged_activity_is_seldom_called_slow_change() -> None:
    years = [grid_of_days(daily(np.random.default_rng(seed), 365, cv=0.3, phi=0.3)) for seed in range(60)]
    assert sum(slow_change(grid, LAST, least_change=0.05) is not None for grid in years) <= 4


def test_weeks_that_hang_together_are_not_slow_change() -> None:
    rng = np.random.default_rng(0)
    years = [grid_of_days(daily(rng, 365, cv=0.2, phi=0.93)) for _ in range(40)]
    assert sum(slow_change(grid, LAST, least_change=0.02) is not None for grid in years) <= 5


def test_a_slow_fall_is_dated_to_about_its_month_and_names_the_season() -> None:
    values = daily(np.random.default_rng(3), 365, cv=0.15)
    values[200:] *= np.exp(np.linspace(0.0, -0.4, 165))
    found = slow_change(grid_of_days(values), LAST, least_change=0.05)
    assert found is not None
    assert found.interval[0] < found.change < found.interval[1] < 0.0
    assert abs(np.datetime64(found.since) - np.datetime64(add_days(LAST, -164))) <= np.timedelta64(45, "D")
    assert not found.season_known


def test_the_reference_is_the_best_recorded_90_adult_days() -> None:
    grid = grid_of_days(np.concatenate((np.full(100, 50.0), np.full(200, 80.0))))
    covered = grid.covered_ms.copy()
    covered[100:][::2] = 0
    found = reference_level(replace(grid, covered_ms=covered), adult_from=grid.dates[5])
    assert (found.first, found.level, found.days) == (grid.dates[5], 50.0, 90)
    assert reference_level(grid, adult_from=LAST) is None


# --- roll-ups -----------------------------------------------------------------------------

samples = st.lists(
    st.builds(
        lambda key, start, length, value: Sample(key, start, start + length, value),
        key=st.uuids().map(str),
        start=st.integers(WHOLE.start_ms - 3 * HOUR_MS, WHOLE.end_ms + 3 * HOUR_MS),
        length=st.sampled_from([0, 1, 300_000, 2 * HOUR_MS]),
        value=st.integers(0, 10**9),
    ),
    max_size=25,
)


@given(samples=samples, seed=st.randoms(use_true_random=False))
def test_any_order_and_any_duplication_of_samples_gives_the_same_bytes(samples, seed) -> None:
    heard = [Interval(sample.start_ms, sample.end_ms) for sample in samples]
    plain = roll_day(samples, heard, DAY, NEW_YORK)
    again = samples + seed.choices(samples, k=5) if samples else samples
    seed.shuffle(again)
    seed.shuffle(heard)
    assert roll_day(again, heard, DAY, NEW_YORK) == plain


def test_two_readings_under_one_key_give_the_same_bytes_in_either_order() -> None:
    at = WHOLE.start_ms
    one, other = Sample("bowl/1/1", at, at, 40), Sample("bowl/1/1", at, at, 41)
    assert roll_day([one, other], (), DAY, NEW_YORK) == roll_day([other, one], (), DAY, NEW_YORK)


@given(samples=samples)
def test_no_part_of_a_sample_is_lost_or_counted_in_two_days(samples) -> None:
    around = [add_days(DAY, shift) for shift in (-1, 0, 1)]
    total = sum(roll_day(samples, (), day, NEW_YORK).total for day in around)
    assert total == sum(sample.value for sample in samples)


@given(samples=samples)
def test_a_day_extended_by_one_sample_equals_a_day_rolled_again(samples) -> None:
    inside = [sample for sample in samples if WHOLE.start_ms <= sample.start_ms < WHOLE.end_ms]
    for taken in range(len(inside)):
        extended = with_sample(roll_day(inside[:taken], (), DAY, NEW_YORK), inside[taken], WHOLE)
        assert extended == roll_day(inside[: taken + 1], (), DAY, NEW_YORK)


@given(samples=samples)
def test_covered_time_is_the_union_and_never_longer_than_a_slot(samples) -> None:
    heard = [Interval(sample.start_ms, sample.end_ms) for sample in samples]
    rolled = roll_day((), heard, DAY, NEW_YORK)
    union = sum(
        max(0, min(part.end_ms, WHOLE.end_ms) - max(part.start_ms, WHOLE.start_ms)) for part in merge_intervals(heard)
    )
    assert sum(rolled.covered_ms) == union
    assert all(0 <= part <= SLOT_MS for part in rolled.covered_ms)


def test_a_roll_keeps_the_sums_that_make_a_mean_and_a_spread() -> None:
    at = WHOLE.start_ms
    rolled = roll_day([Sample(str(n), at + n, at + n, value) for n, value in enumerate((3, 4, 5))], (), DAY, NEW_YORK)
    assert (rolled.n, rolled.total, rolled.squares, rolled.least, rolled.most) == (3, 12, 50, 3, 5)
    assert rolled.counts[0] == 3


@given(st.lists(st.integers(0, 500), min_size=1, max_size=20))
def test_a_counter_that_only_rises_ran_from_first_to_last(steps: list[int]) -> None:
    readings = [float(reading) for reading in np.cumsum(steps)]
    assert counter_increase(readings, jitter=1.0) == readings[-1] - readings[0]
