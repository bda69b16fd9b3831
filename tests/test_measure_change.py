"""The verdict on a window: honest first, sharp second, never an exception on bad data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from gateway.errors import MeasureError
from gateway.measure.baseline import ar1_weights, memory_of, winsorise
from gateway.measure.change import SegmentStart, compare
from gateway.measure.counts import count_tails
from gateway.measure.days import HOUR_MS, add_days, dates_between
from gateway.measure.grid import DayGrid, aggregate, fault_of, night_grid, only_hours, rescale
from gateway.measure.onset import onset
from gateway.measure.outlook import ids_with, outlook
from gateway.measure.past import PastWindows
from gateway.model import Comparison, Unclear, Verdict
from tests.measure_worlds import LAST, daily, grid_of_days

WEEK = add_days(LAST, -6)


def week_of(grid: DayGrid, **options) -> Comparison:
    return compare(grid, WEEK, LAST, **options)


def shown(seed: int, *, days: int = 63, cv: float = 0.15, factor: float = 1.0, phi: float = 0.0) -> DayGrid:
    values = daily(np.random.default_rng(seed), days, cv=cv, phi=phi)
    values[-7:] *= factor
    return grid_of_days(values)


# --- what a verdict says ------------------------------------------------------------------


def test_forty_percent_more_at_ordinary_variation_is_up_with_an_interval_around_it() -> None:
    found = [week_of(shown(seed, factor=1.4)) for seed in range(100)]
    assert sum(one.verdict is Verdict.UP for one in found) >= 97
    assert sum(one.interval[0] <= 0.4 <= one.interval[1] for one in found) >= 82
    assert 0.08 < np.median([(one.interval[1] - one.interval[0]) / 2 for one in found]) < 0.17


def test_unchanged_weeks_are_usual_and_seldom_anything_else() -> None:
    found = [week_of(shown(seed)).verdict for seed in range(200)]
    assert found.count(Verdict.USUAL) >= 175
    assert found.count(Verdict.UP) + found.count(Verdict.DOWN) <= 16


def test_a_month_of_history_is_enough_for_the_demo_story() -> None:
    found = [week_of(shown(seed, days=42, factor=1.4)).verdict for seed in range(60)]
    assert found.count(Verdict.UP) >= 57


def test_memory_widens_what_a_week_can_show() -> None:
    plain = np.mean([week_of(shown(seed)).smallest_visible for seed in range(40)])
    sticky = np.mean([week_of(shown(seed, phi=0.5)).smallest_visible for seed in range(40)])
    assert sticky > 1.3 * plain


def test_now_is_the_plain_mean_where_every_hour_was_heard() -> None:
    grid = shown(3, factor=1.4)
    found = week_of(grid)
    assert found.now == pytest.approx(grid.day_totals()[-7:].mean(), rel=1e-12)
    assert found.change == pytest.approx(found.now / found.usual - 1, rel=1e-9)
    assert (found.coverage, len(found.days_used), found.days_expected) == (1.0, 7, 7)


def test_a_level_that_began_last_week_does_not_count_as_usual_this_week() -> None:
    values = np.full(70, 100_000.0) * np.exp(0.1 * np.random.default_rng(0).standard_normal(70))
    values[-14:] *= 1.4
    found = week_of(grid_of_days(values))
    assert found.change == pytest.approx(0.4, abs=0.12)
    assert found.baseline_days[-1] < add_days(LAST, -13)


def test_twenty_one_days_before_a_week_are_needed_and_twenty_are_too_few() -> None:
    enough, short = shown(1, days=28), shown(1, days=27)
    assert week_of(enough).reason is not Unclear.TOO_FEW_DAYS
    found = week_of(short)
    assert (found.verdict, found.reason, found.change) == (Verdict.CANNOT_TELL, Unclear.TOO_FEW_DAYS, None)
    assert found.detail == "20 days recorded before the window, 21 needed"


def test_zero_spread_makes_no_infinite_surprise() -> None:
    values = np.full(63, 50.0)
    values[-7:] = 51.0
    found = week_of(grid_of_days(values))
    assert found.verdict is Verdict.USUAL
    assert np.isfinite([*found.interval, found.smallest_visible]).all()


def test_a_difference_that_rests_on_one_day_is_not_called_up() -> None:
    values = daily(np.random.default_rng(5), 63, cv=0.15)
    values[-7:] = [100_000, 90_000, 110_000, 900_000, 105_000, 95_000, 100_000]
    found = week_of(grid_of_days(values))
    assert (found.verdict, found.reason) == (Verdict.CANNOT_TELL, Unclear.TOO_VARIABLE)
    assert add_days(LAST, -3) in found.detail


def test_a_wild_day_today_may_be_a_beginning_and_is_not_excused() -> None:
    values = daily(np.random.default_rng(5), 63, cv=0.15)
    values[-1] *= 8.0
    assert week_of(grid_of_days(values)).verdict is Verdict.UP


def test_one_wild_day_before_does_not_move_what_is_usual() -> None:
    values = daily(np.random.default_rng(6), 63, cv=0.15)
    calm = week_of(grid_of_days(values)).usual
    values[20] *= 30.0
    assert week_of(grid_of_days(values)).usual == pytest.approx(calm, rel=0.04)


def test_weekends_are_held_against_weekends() -> None:
    grid = grid_of_days(np.full(70, 1.0))
    values = np.where(((grid.ordinals + 6) % 7) >= 5, 160_000.0, 100_000.0)
    grid = grid_of_days(values)
    saturday = compare(grid, "2026-07-11", "2026-07-11")
    assert saturday.change == pytest.approx(0.0, abs=1e-9)
    assert compare(grid, "2026-07-13", "2026-07-14").change == pytest.approx(0.0, abs=1e-9)


def test_the_open_day_is_held_against_the_same_hours_of_other_days() -> None:
    grid = grid_of_days(np.full(63, 240_000.0))
    span, total = grid.span_ms.copy(), grid.total.copy()
    span[-1, 18:], total[-1, 18:] = 0, 0.0
    found = compare(replace(grid, span_ms=span, covered_ms=span, total=total), LAST, LAST)
    assert found.change == pytest.approx(0.0, abs=1e-12)


def test_a_whole_past_of_zeros_and_a_window_of_zeros_is_usual() -> None:
    found = week_of(grid_of_days(np.zeros(63)))
    assert (found.verdict, found.now, found.usual, found.change) == (Verdict.USUAL, 0.0, 0.0, None)


def test_something_after_nothing_gives_no_percentage() -> None:
    values = np.zeros(63)
    values[-3:] = 5000.0
    found = week_of(grid_of_days(values))
    assert (found.verdict, found.change, found.usual) == (Verdict.CANNOT_TELL, None, 0.0)


def test_nothing_after_something_is_down_by_everything() -> None:
    values = np.full(63, 90_000.0)
    values[-7:] = 0.0
    found = week_of(grid_of_days(values))
    assert (found.verdict, found.change) == (Verdict.DOWN, -1.0)
    assert found.interval[0] == -1.0


# --- small counts -------------------------------------------------------------------------


@given(count=st.integers(0, 30), base=st.integers(0, 40), days=st.integers(1, 30), base_days=st.integers(21, 90))
def test_count_tails_are_those_of_the_negative_binomial(count, base, days, base_days) -> None:
    oracle = stats.nbinom(base + 0.5, base_days / (base_days + days))
    high, low = count_tails(count, days, base, base_days)
    assert high == pytest.approx(oracle.sf(count - 1), abs=1e-9)
    assert low == pytest.approx(oracle.cdf(count), abs=1e-9)


def test_ten_vomits_in_a_week_after_one_a_week_is_up() -> None:
    days = np.zeros(63)
    days[3:56:7] = 1.0
    days[-7:] = [2, 1, 2, 1, 2, 1, 1]
    found = week_of(grid_of_days(days, kind="count", unit="count"))
    assert found.verdict is Verdict.UP
    assert found.interval[0] > 0.25


def test_a_first_event_ever_has_a_verdict_and_no_percentage() -> None:
    days = np.zeros(63)
    days[-3:] = 2.0
    found = week_of(grid_of_days(days, kind="count", unit="count"))
    assert (found.verdict, found.change, found.usual) == (Verdict.UP, None, 0.0)


# --- the pet's own past windows -----------------------------------------------------------


def test_the_rank_counts_past_weeks_below_this_one() -> None:
    grid = shown(8, days=63, factor=3.0)
    found = week_of(grid)
    assert (found.rank, found.rank_of) == (8, 8)


def test_from_forty_past_weeks_on_the_rank_decides() -> None:
    values = daily(np.random.default_rng(2), 63 + 7 * 44, cv=0.15)
    values[-7:] *= 1.4
    assert week_of(grid_of_days(values)).verdict is Verdict.UP
    values = daily(np.random.default_rng(3), 63 + 7 * 44, cv=0.15)
    values[50:57] *= 4.0  # a wilder week long ago: now this one is not the highest of all
    values[150:157] *= 4.0
    values[-7:] *= 1.4
    assert week_of(grid_of_days(values)).verdict is Verdict.CANNOT_TELL


def test_a_rank_is_among_ratios_to_their_own_past_from_both_ends() -> None:
    past = PastWindows(rate=np.full(60, 5.0), ratio=np.linspace(0.9, 1.1, 49))
    assert past.comparable == 49
    assert past.tail(2.0) == past.tail(0.1) == 1 / 50
    assert past.tail(1.0) == 26 / 50


def test_a_years_drift_does_not_make_every_last_week_up() -> None:
    up = 0
    for seed in range(40):
        values = daily(np.random.default_rng(seed), 400, cv=0.15)
        values *= np.exp(np.linspace(0.0, 0.3, 400))
        up += week_of(grid_of_days(values)).verdict is Verdict.UP
    assert up <= 5


# --- segments, coverage, identity ---------------------------------------------------------


def test_a_break_inside_the_window_is_not_comparable_and_named() -> None:
    change = SegmentStart(add_days(LAST, -2), "detector 2")
    found = week_of(shown(1), segments=(change,))
    assert (found.reason, found.rivals) == (Unclear.NOT_COMPARABLE, ("detector 2",))


def test_a_baseline_never_reaches_back_over_a_break() -> None:
    change = SegmentStart(add_days(LAST, -34), "food Harbor Whitefish")
    found = week_of(shown(1), segments=(change,))
    assert found.baseline_days[0] == change.date
    recent = SegmentStart(add_days(LAST, -16), "food Harbor Whitefish")
    short = week_of(shown(1), segments=(recent,))
    assert (short.reason, short.change) == (Unclear.NOT_COMPARABLE, None)
    assert "since food Harbor Whitefish" in short.detail


def test_a_refitted_collar_is_a_rival_and_the_comparison_stands() -> None:
    refit = SegmentStart(add_days(LAST, -5), "collar refitted", breaks=False)
    found = week_of(shown(1, factor=1.4), segments=(refit,))
    assert (found.verdict, found.rivals) == (Verdict.UP, ("collar refitted",))


def test_four_unheard_days_of_seven_are_not_a_week() -> None:
    grid = shown(1)
    covered = grid.covered_ms.copy()
    covered[-4:] = 0
    found = week_of(replace(grid, covered_ms=covered))
    assert (found.reason, found.set_aside_days) == (Unclear.NOT_HEARD, grid.dates[-4:])
    assert found.detail == "3 of 7 days were heard enough to count"


# --- bad data is a typed result -----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "detail"),
    [(np.nan, "finite"), (np.inf, "finite"), (-5.0, "below zero"), (1e18, "above")],
)
def test_absurd_values_are_refused_in_words(value, detail) -> None:
    grid = shown(1)
    total = grid.total.copy()
    total[30, 4] = value
    found = week_of(replace(grid, total=total))
    assert (found.verdict, found.reason, found.now, found.change) == (
        Verdict.CANNOT_TELL,
        Unclear.BAD_DATA,
        None,
        None,
    )
    assert detail in found.detail


def test_an_empty_grid_and_a_window_outside_it_are_answers() -> None:
    empty = DayGrid((), np.zeros((0, 24)), np.zeros((0, 24), np.int64), np.zeros((0, 24), np.int64), "ms", "duration")
    assert week_of(empty).verdict is Verdict.CANNOT_TELL
    assert compare(shown(1), "2027-01-01", "2027-01-07").reason is Unclear.NOT_HEARD
    assert compare(shown(1), "2020-01-01", "2020-01-07").reason is Unclear.NOT_HEARD
    assert onset(empty, WEEK, LAST) is None
    assert aggregate(empty, WEEK, LAST).per_day is None


def test_wrong_shapes_are_a_callers_mistake() -> None:
    span = np.zeros((2, 24), dtype=np.int64)
    with pytest.raises(MeasureError, match=r"total must have shape \(2, 24\)"):
        DayGrid(("2026-07-13", "2026-07-14"), np.zeros((3, 24)), span, span, "ms", "duration")
    with pytest.raises(MeasureError, match="ascend"):
        DayGrid(("2026-07-14", "2026-07-13"), np.zeros((2, 24)), span, span, "ms", "duration")


amounts = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 75), st.just(24)),
    elements=st.one_of(st.just(0.0), st.floats(0, 1e12), st.sampled_from([np.nan, np.inf, -1.0, 1e300])),
)


@given(
    total=amounts,
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["duration", "mass", "count", "level"]),
    length=st.integers(1, 40),
)
@settings(max_examples=100, deadline=None)
def test_no_data_at_all_makes_numpy_speak_or_a_verdict_lie(total, seed, kind, length) -> None:
    rng = np.random.default_rng(seed)
    days = len(total)
    span = np.where(rng.random((days, 24)) < 0.9, HOUR_MS, 0)
    covered = np.where(rng.random((days, 24)) < rng.random(), span, 0)
    dates = dates_between(add_days(LAST, 1 - days), LAST)
    grid = DayGrid(dates, total, covered, span, "u", kind)
    with np.errstate(all="raise", under="ignore"):
        found = compare(grid, add_days(LAST, 1 - length), LAST)
        outlook(grid, found, add_days(LAST, 1 - length), LAST)
        onset(grid, add_days(LAST, 1 - length), LAST)
    for number in (found.now, found.usual, found.change, found.smallest_visible, *(found.interval or ())):
        assert number is None or np.isfinite(number)
    assert (found.reason is None) is (found.verdict is not Verdict.CANNOT_TELL)
    if found.interval is not None:
        assert found.interval[0] <= found.change <= found.interval[1]
    if fault_of(grid) is not None:
        assert found.reason is Unclear.BAD_DATA


@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(0.01, 1000.0))
@settings(max_examples=50, deadline=None)
def test_the_unit_of_a_series_changes_no_verdict(seed: int, factor: float) -> None:
    grid = shown(seed, factor=1.2)
    scaled = week_of(replace(grid, total=grid.total * factor))
    plain = week_of(grid)
    assert scaled.verdict is plain.verdict
    assert scaled.change == pytest.approx(plain.change, abs=1e-9)


def test_rows_after_the_window_are_never_read() -> None:
    grid = shown(4, days=80)
    before = replace(
        grid,
        dates=grid.dates[:-10],
        total=grid.total[:-10],
        covered_ms=grid.covered_ms[:-10],
        span_ms=grid.span_ms[:-10],
    )
    first, last = grid.dates[-17], grid.dates[-11]
    assert compare(grid, first, last) == compare(before, first, last)


# --- its parts ----------------------------------------------------------------------------


@given(phi=st.floats(0.0, 0.9), seed=st.integers(0, 2**32 - 1))
def test_the_variance_factor_is_that_of_the_ar1_covariance(phi: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, ordinals = rng.standard_normal(12), np.sort(rng.choice(40, 12, replace=False))
    covariance = phi ** np.abs(np.subtract.outer(ordinals, ordinals)) if phi else np.eye(12)
    assert ar1_weights(weights, ordinals, phi) == pytest.approx(float(weights @ covariance @ weights), abs=1e-9)


def test_memory_is_estimated_without_its_small_sample_bias() -> None:
    rng = np.random.default_rng(1)
    ordinals, weekend = np.arange(56), np.zeros(56, dtype=bool)
    found = [memory_of(daily(rng, 56, cv=0.2, phi=0.5), ordinals, weekend, "duration").phi for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)


def test_winsorising_touches_wild_days_only() -> None:
    calm = np.array([90.0, 100.0, 110.0, 105.0, 95.0, 100.0])
    assert (winsorise(calm) == calm).all()
    assert winsorise(np.append(calm, 5000.0))[-1] < 200.0


# --- since when, and what helps -----------------------------------------------------------


def test_the_onset_interval_holds_the_day_it_began() -> None:
    inside = 0
    for seed in range(60):
        found = onset(shown(seed, factor=1.4), WEEK, LAST)
        inside += found is not None and found.earliest <= WEEK <= found.latest
    assert inside >= 53


def test_an_unchanged_series_has_no_onset() -> None:
    assert sum(onset(shown(seed), WEEK, LAST) is not None for seed in range(60)) <= 6


def test_a_shown_rise_is_dated_even_where_the_step_alone_would_not_convince() -> None:
    grid = shown(13, cv=0.3, factor=1.35)
    assert week_of(grid).verdict is Verdict.UP
    assert onset(grid, WEEK, LAST) is None
    dated = onset(grid, WEEK, LAST, verdict=Verdict.UP)
    assert dated is not None
    assert dated.change > 0
    assert dated.earliest <= dated.best <= dated.latest


def test_an_onset_on_an_unheard_day_may_have_been_any_of_them() -> None:
    grid = shown(2, factor=2.0)
    covered = grid.covered_ms.copy()
    covered[-10:-7] = 0
    found = onset(replace(grid, covered_ms=covered), WEEK, LAST)
    assert found is not None
    assert found.earliest <= add_days(WEEK, -3)


def test_nine_recorded_days_can_be_compared_on_the_date_that_is_said() -> None:
    grid = shown(1, days=9)  # Jul 6 .. Jul 14, cases/answers.md 4
    told = outlook(grid, week_of(grid), WEEK, LAST)
    assert (told.tell_on, told.firm_on) == ("2026-08-02", "2026-08-09")


def test_a_noisy_rise_names_a_wider_window_or_a_date() -> None:
    values = daily(np.random.default_rng(3), 140, cv=0.45)
    values[-21:] *= 1.45
    values[-7:] *= 0.85
    grid = grid_of_days(values)
    found = week_of(grid)
    assert found.verdict is Verdict.CANNOT_TELL
    told = outlook(grid, found, WEEK, LAST)
    assert told.wider_days in {14, 28, 90}
    assert told.wider is not None
    assert told.wider.verdict is not Verdict.CANNOT_TELL


def test_a_range_query_hands_over_names_and_no_numbers() -> None:
    verdicts = {"max": week_of(shown(1, factor=0.5)), "luna": week_of(shown(1)), "bella": week_of(shown(2, factor=0.5))}
    assert ids_with(Verdict.DOWN, verdicts) == frozenset({"max", "bella"})


# --- grids --------------------------------------------------------------------------------


def test_a_night_takes_its_evening_and_the_next_morning() -> None:
    grid = grid_of_days(np.arange(1.0, 6.0) * 24)
    night = night_grid(grid)
    assert night.day_totals()[0] == 3 * 1 + 7 * 2
    assert night.day_totals()[-1] == 3 * 5  # its morning has not come
    assert night.span_ms[0].sum() == 10 * HOUR_MS


def test_hours_outside_a_part_of_the_day_do_not_exist() -> None:
    mornings = only_hours(grid_of_days(np.full(3, 24.0)), frozenset(range(12)))
    assert (mornings.day_totals() == 12).all()
    assert mornings.coverage().tolist() == [1.0, 1.0, 1.0]


def test_a_day_without_a_factor_is_unknown_not_zero() -> None:
    grid = grid_of_days(np.full(3, 24.0), kind="mass", unit="mg")
    energy = rescale(grid, {grid.dates[0]: 2.0}, "kcal")
    assert energy.usable().tolist() == [True, False, False]
    assert energy.day_totals()[0] == 48.0


def test_an_aggregate_counts_the_open_day_in_the_total_and_not_in_the_mean() -> None:
    grid = grid_of_days(np.array([10.0, 20.0, 90.0]))
    plain = aggregate(grid, grid.dates[0], LAST, open_day=LAST)
    assert (plain.total, plain.per_day, plain.least, plain.most) == (120.0, 15.0, 10.0, 20.0)
    assert (plain.full_days, plain.open_days) == (grid.dates[:2], (LAST,))
