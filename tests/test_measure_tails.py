"""Tails and quantiles against scipy's, over the whole range a household reaches and far beyond."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special

from gateway.errors import MeasureError
from gateway.kernels import sparse_kernels
from gateway.measure.tails import (
    beta_below,
    beta_quantile,
    normal_quantile,
    poisson_mean,
    student_below,
    student_quantile,
)

SHAPES = st.floats(-0.31, 3.5).map(lambda power: 10.0**power)  # 0.5 to 3,000
FREEDOMS = st.floats(0.0, 4.0).map(lambda power: 10.0**power)
CHANCES = st.floats(0.001, 0.999)


def near(expected: float) -> object:
    return pytest.approx(float(expected), rel=2e-11, abs=1e-13)


@given(SHAPES, SHAPES, st.floats(0.0, 1.0))
def test_a_beta_tail_is_scipys(a, b, x):
    assert beta_below(a, b, x) == near(special.betainc(a, b, x))


@given(SHAPES, SHAPES, st.floats(-6.0, 6.0))
def test_a_beta_tail_is_scipys_around_its_mean_too(a, b, spreads):
    mean = a / (a + b)
    x = min(max(mean + spreads * math.sqrt(mean * (1.0 - mean) / (a + b)), 0.0), 1.0)
    assert beta_below(a, b, x) == near(special.betainc(a, b, x))


@given(SHAPES, SHAPES, CHANCES)
def test_a_beta_quantile_is_scipys(a, b, p):
    assert beta_quantile(a, b, p) == near(special.betaincinv(a, b, p))


@given(FREEDOMS, st.floats(0.01, 50.0), st.sampled_from([-1.0, 1.0]))
def test_students_tail_is_scipys(freedom, size, sign):
    assert student_below(freedom, sign * size) == near(special.stdtr(freedom, sign * size))


@given(st.floats(-1e6, 1e6))
def test_students_tail_at_one_and_two_degrees_is_what_the_book_says(t):
    # Scipy 1.17 is off by 2e-4 of the distance from 1/2 close to 0 (t = 2e-7).
    assert student_below(1.0, t) == pytest.approx(0.5 + math.atan(t) / math.pi, rel=1e-14, abs=1e-13)
    assert student_below(2.0, t) == pytest.approx(0.5 + 0.5 * t / math.sqrt(2.0 + t * t), rel=1e-14, abs=1e-13)


@given(FREEDOMS, CHANCES)
def test_students_quantile_is_scipys_and_its_own_inverse(freedom, p):
    t = student_quantile(freedom, p)
    assert t == pytest.approx(float(special.stdtrit(freedom, p)), rel=2e-11, abs=1e-11)
    assert student_below(freedom, t) == pytest.approx(p, rel=1e-11)


@given(st.integers(1, 500), CHANCES)
def test_the_mean_at_which_so_many_events_come_is_scipys(least, p):
    assert poisson_mean(least, p) == near(special.gammaincinv(least, p))


@given(CHANCES)
def test_the_normal_quantile_is_scipys(p):
    assert normal_quantile(p) == pytest.approx(float(special.ndtri(p)), rel=1e-13, abs=1e-15)


def test_the_ends_are_the_ends():
    assert (beta_below(2.0, 3.0, 0.0), beta_below(2.0, 3.0, 1.0)) == (0.0, 1.0)
    assert (student_below(5.0, -math.inf), student_below(5.0, math.inf)) == (0.0, 1.0)
    assert student_quantile(3.0, 0.5) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: beta_below(0.0, 1.0, 0.5),
        lambda: beta_below(1.0, 1.0, 1.5),
        lambda: beta_below(math.nan, 1.0, 0.5),
        lambda: beta_quantile(1.0, 1.0, 0.0),
        lambda: student_below(0.0, 1.0),
        lambda: student_quantile(4.0, 1.0),
        lambda: poisson_mean(0, 0.5),
    ],
)
def test_what_has_no_answer_is_refused_in_words(wrong):
    with pytest.raises(MeasureError, match=r"must be|needs|are needed"):
        wrong()


def test_the_sparse_kernels_are_scipys_own():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    matrix, x, out = sparse.csr_array(dense), np.array([1.0, 10.0, 100.0]), np.zeros(2)
    sparse_kernels().csr_matvec(2, 3, matrix.indptr, matrix.indices, matrix.data, x, out)
    assert out.tolist() == (dense @ x).tolist()


def test_no_package_of_scipy_is_imported_to_answer_measure_or_walk():
    code = (
        "import sys, gateway.app, gateway.demo, gateway.learn.passes, gateway.graph.communities, gateway.ask.explain;"
        "from gateway.kernels import sparse_kernels; sparse_kernels();"
        "print([name for name in sys.modules if name.partition('.')[0] == 'scipy'])"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "[]"
