"""Edges from measurements: unrelated series stay unrelated, real links are found and dated."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gateway.errors import MeasureError
from gateway.measure.correlate import (
    Pass,
    SeriesDays,
    Standing,
    associations,
    belief_of,
    benjamini_hochberg,
    standing,
)
from gateway.measure.followed import DatedEvent, event_belief, followed_by
from gateway.measure.prewhiten import detrend, normal_scores, remove_common_mode, remove_weekdays, whiten
from tests.measure_worlds import NUISANCES, ar1, daily, grid_of_days, nuisance, planted


def series_of(values, *, pets=None, properties=None) -> SeriesDays:
    names = tuple(f"max.{n:02d}" for n in range(len(values)))
    return SeriesDays(names, pets or ("max",) * len(values), properties or names, values, 0)


@pytest.mark.parametrize("kind", NUISANCES)
def test_unrelated_series_are_not_linked_by_what_popular_methods_fall_for(kind: str) -> None:
    rng = np.random.default_rng(NUISANCES.index(kind))
    false = [one for _ in range(4) for one in associations(series_of(nuisance(rng, 50, 180, kind))) if one.found]
    assert len(false) <= 1, f"plain correlation writes hundreds; found {false}"


def test_planted_links_are_found_with_their_lag_and_direction_through_gaps_week_and_trend() -> None:
    rng = np.random.default_rng(4)
    values, lags = planted(rng, 50, 365, pairs=12, r=0.5)
    found = [one for one in associations(series_of(values)) if one.found]
    true = {(f"max.{2 * j:02d}", f"max.{2 * j + 1:02d}"): lags[j] for j in range(12)}
    hits = [one for one in found if (one.tail, one.head) in true or (one.lag == 0 and (one.head, one.tail) in true)]
    assert len(hits) >= 11
    assert len(found) - len(hits) <= 1
    for one in hits:
        assert abs(one.lag - true[one.tail, one.head]) <= 1
        assert one.interval[0] < one.r < one.interval[1]
        assert one.n >= 300


def test_the_best_of_29_lags_has_paid_for_having_been_chosen() -> None:
    found = associations(series_of(np.random.default_rng(8).standard_normal((40, 365))))
    p = np.array([one.p for one in found])
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.01, "smaller than chance gives"
    assert np.median(p) == pytest.approx(0.5, abs=0.12)


def test_order_of_series_changes_no_finding() -> None:
    values, _ = planted(np.random.default_rng(9), 12, 200, pairs=4, r=0.6)
    plain = {(one.tail, one.head, one.lag, round(one.r, 9)) for one in associations(series_of(values)) if one.found}
    order = np.random.default_rng(0).permutation(12)
    names = tuple(f"max.{n:02d}" for n in order)
    turned = associations(SeriesDays(names, ("max",) * 12, names, values[order], 0))
    assert {(one.tail, one.head, one.lag, round(one.r, 9)) for one in turned if one.found and one.lag} == {
        one for one in plain if one[2]
    }


def test_fewer_than_45_common_days_support_nothing() -> None:
    x = np.random.default_rng(0).standard_normal(90)
    both = np.vstack((x, x))
    both[0, :48] = np.nan
    assert associations(series_of(both)) == ()
    assert associations(series_of(both[:, 60:])) == ()


def test_what_moves_every_pet_of_the_house_is_not_a_link() -> None:
    rng = np.random.default_rng(3)
    guests = 3.0 * ar1(rng, (200,), 0.2)
    values = guests + rng.standard_normal((4, 200))
    pets = ("max", "luna", "bella", "peanut")
    house = series_of(values, pets=pets, properties=("activity",) * 4)
    assert [one for one in associations(house) if one.found] == []
    strangers = series_of(values, pets=pets, properties=("a", "b", "c", "d"))
    assert any(one.found for one in associations(strangers))


def test_what_moves_the_house_does_not_link_two_series_of_one_pet() -> None:
    rng = np.random.default_rng(6)
    guests = 2.0 * ar1(rng, (250,), 0.2)
    values = guests + rng.standard_normal((6, 250))
    pets = ("max", "max", "luna", "luna", "bella", "bella")
    house = series_of(values, pets=pets, properties=("activity", "rest") * 3)
    assert max(abs(one.r) for one in associations(house)) < 0.55, "plain r is .8"


def test_not_significant_refutes_nothing_and_only_a_small_bound_does() -> None:
    rng = np.random.default_rng(1)
    short = associations(series_of(rng.standard_normal((2, 90))))[0]
    assert not short.found
    assert not short.negligible
    long = [associations(series_of(rng.standard_normal((2, 1200))))[0] for _ in range(5)]
    assert all(one.negligible for one in long)


@pytest.mark.parametrize("value", [0.0, 7.0, np.nan, np.inf])
def test_constant_missing_and_infinite_series_correlate_with_nothing(value: float) -> None:
    values = np.random.default_rng(0).standard_normal((3, 120))
    values[0] = value
    with np.errstate(all="raise", under="ignore"):
        found = associations(series_of(values))
    assert all(np.isfinite([one.r, one.p, one.q]).all() for one in found)
    assert not any(one.found for one in found)


def test_series_of_another_shape_are_a_callers_mistake() -> None:
    with pytest.raises(MeasureError, match=r"must have shape \(1 series"):
        SeriesDays(("a",), ("max",), ("a",), np.zeros((2, 9)), 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_q_values_are_those_of_benjamini_and_hochberg(p: list[float]) -> None:
    assert benjamini_hochberg(np.array(p)) == pytest.approx(stats.false_discovery_control(p), abs=1e-12)


# --- cleaning -----------------------------------------------------------------------------


def test_the_trend_is_the_running_median_of_57_days() -> None:
    x = np.random.default_rng(0).standard_normal((1, 200)) + np.linspace(0, 10, 200)
    level = x - detrend(x)
    for knot in (56, 105, 154):
        assert level[0, knot] == pytest.approx(np.median(x[0, knot - 28 : knot + 29]))


def test_weekday_medians_are_taken_out_of_their_own_weekday() -> None:
    x = np.tile([1.0, 2, 3, 4, 5, 60, 70], 10)[None, :]
    x[0, 12] = np.nan
    cleaned = remove_weekdays(x[:, 2:], first_weekday=2)
    assert np.nanmax(np.abs(cleaned)) == 0.0
    assert np.isnan(cleaned[0, 10])


@given(st.lists(st.integers(0, 9), min_size=3, max_size=30).filter(lambda x: len(set(x)) > 1))
def test_normal_scores_are_those_of_mean_ranks(values: list[int]) -> None:
    ranks = (stats.rankdata(values) - 0.5) / len(values)
    expected = stats.norm.ppf(ranks)
    assert normal_scores(np.array([values], dtype=float))[0] == pytest.approx(expected / expected.std(), abs=1e-9)


def test_whitening_finds_the_order_and_leaves_no_memory() -> None:
    rng = np.random.default_rng(2)
    white = whiten(np.vstack((ar1(rng, (20, 600), 0.6), rng.standard_normal((20, 600)))))
    assert (white.order[:20] >= 1).all()
    assert (white.order[20:] == 0).sum() >= 17
    left = [np.corrcoef(row[1:-1], row[2:])[0, 1] for row in white.innovations]
    assert np.abs(left).max() < 0.15


def test_common_mode_of_a_property_of_one_pet_only_stays() -> None:
    x = np.random.default_rng(0).standard_normal((2, 50))
    assert (remove_common_mode(x, ("max", "luna"), ("rest", "intake")) == x).all()


# --- passes -------------------------------------------------------------------------------


def passes(qs: str, lag: int = 2) -> tuple[Pass, ...]:
    """y = speaks for it, n = q above .10, - = in between."""
    return tuple(Pass(f"w{n}", {"y": 0.001, "n": 0.6, "-": 0.07}[q], lag, 0.5) for n, q in enumerate(qs))


@pytest.mark.parametrize(
    ("history", "written", "in_a_row"),
    [
        ("", False, 0),
        ("yy", False, 2),
        ("yyy", True, 3),
        ("yyny", False, 1),
        ("yyyn", True, 0),
        ("yyynn", False, 0),
        ("yyyn-n", True, 0),
        ("yyynnyy", False, 2),
        ("yyynnyyy", True, 3),
        ("yyyyyyyyyyyy", True, 12),
    ],
)
def test_three_passes_in_a_row_write_and_two_failures_drop(history, written, in_a_row) -> None:
    assert standing(passes(history)) == Standing(written, in_a_row)


def test_passes_that_disagree_on_sign_or_lag_are_not_in_a_row() -> None:
    one = passes("yyy")
    assert not standing((one[0], Pass("w1", 0.001, 9, 0.5), one[2])).written
    assert not standing((one[0], Pass("w1", 0.001, 2, -0.5), one[2])).written


def test_belief_is_capped_and_knows_only_how_long_a_link_stood() -> None:
    assert [belief_of(n) for n in (0, 2, 3, 6, 12, 500)] == [0.0, 0.0, 0.3, 0.4, 0.5, 0.5]


# --- events -------------------------------------------------------------------------------


def switched(seed: int, *, factor: float, cv: float = 0.2, delay: int = 4):
    values = daily(np.random.default_rng(seed), 110, cv=cv, phi=0.3)
    values[65 + delay :] *= factor
    grid = grid_of_days(values)
    return grid, DatedEvent("edge:pet:max|ate|food:acme_chicken|1", grid.dates[65])


def test_a_rise_after_a_food_switch_follows_it_and_a_calm_series_does_not() -> None:
    rose = [followed_by(*switched(seed, factor=1.5)) for seed in range(30)]
    assert sum(one.found for one in rose) >= 28
    assert all(one.change > 0 for one in rose if one.found)
    calm = [followed_by(*switched(seed, factor=1.0)) for seed in range(60)]
    assert sum(one.found for one in calm) <= 8


def test_a_series_with_a_long_memory_does_not_follow_every_event() -> None:
    found = 0
    for seed in range(100):
        grid = grid_of_days(daily(np.random.default_rng(seed), 110, cv=0.3, phi=0.7))
        found += followed_by(grid, DatedEvent("e", grid.dates[65])).found
    assert found <= 14


def test_other_events_within_21_days_are_listed_as_rivals() -> None:
    grid, switch = switched(1, factor=1.5)
    flea = DatedEvent("log:flea", grid.dates[60])
    long_ago = DatedEvent("log:bath", grid.dates[20])
    assert followed_by(grid, switch, others=(switch, flea, long_ago)).rivals == (flea,)


def test_an_event_with_three_weeks_before_it_missing_is_not_judged() -> None:
    grid, _ = switched(1, factor=1.5)
    assert followed_by(grid, DatedEvent("e", grid.dates[20])) is None
    assert followed_by(grid, DatedEvent("e", grid.dates[-3])) is None


def test_one_switch_is_one_witness_and_switching_back_a_second() -> None:
    rose = followed_by(*switched(1, factor=1.6))
    fell = followed_by(*switched(2, factor=0.6))
    calm = followed_by(*switched(3, factor=1.0, cv=0.1))
    assert event_belief(()) == event_belief((calm,)) == 0.0
    assert event_belief((rose,)) == event_belief((rose, rose)) == 0.30
    assert {event_belief(order) for order in permutations((rose, fell))} == {0.45}


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_associations_are_the_same_bytes_for_the_same_data(seed: int) -> None:
    values = nuisance(np.random.default_rng(seed), 6, 100, "outages")
    assert associations(series_of(values)) == associations(series_of(values.copy()))
