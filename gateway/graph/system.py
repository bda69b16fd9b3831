"""The walk's equation of one graph, scaled and eliminated, ready to be solved for any seeds.

In go a `Graph`, a hub exponent and a restart; out comes a `System` that holds no state of a
walk and is made once. Notation as in ``gateway.graph.walk``: c = 1 - r, R red, B black,
M = W between and among them, K = c S_B^2. With y = S z the reds' Schur complement reads

    A y = g,   A = 1 / (c S_R^2) - M_RR - M_RB K M_BR.

On large graphs the black vertices of up to three neighbours (events, meals: a quarter of all
pairs) are folded into a matrix among the reds once, where their many equal pairs become one.
The certificate does not stand on that: `residual` uses the graph's own arrays.

(Deflating the balance D^-h, A's slow direction, saves one and a half of sixteen products, but
hands mass to what no seed reaches unless the components are known: not done.)

Source: Saad, Iterative Methods for Sparse Linear Systems (2003), 14.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.graph.adjacency import Graph
from gateway.kernels import sparse_kernels

__all__ = ["System", "kernels", "make_system"]

_STEPS = 16  # operations on an entry besides its row's sum: scaling, carrying, subtracting
_FOLDED = 3  # neighbours: a vertex of k has k (k - 1) / 2 pairs among the reds, from 4 on more than k
_SMOOTH_LEAST = 20_000  # pairs: with fewer, calls cost what iterations would save
_SMOOTH_SHARE = 4  # with more than a fourth of the pairs among the reds a third fewer iterations pay for nothing
_FOLD_LEAST = 8192  # fewer such vertices are not worth two more calls a product

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def kernels() -> Any:
    """Scipy's own kernels: the public product makes and zeroes a vector at every call, a quarter
    of a walk's time on a million edges. The tests compare each walk with a dense solve.
    """
    return sparse_kernels()


_Rows = tuple[Ints, Ints, Floats]
"""Rows of a CSR matrix: where each begins and ends, columns, values."""


class _Fold(NamedTuple):
    """Folded black vertices: how many (the first ones), and pairs of reds (a row is the later one)."""

    vertices: int
    pairs: _Rows


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """The equation in red-black places, reds first.

    ``whole`` is where every row of the graph's matrix begins, ``among`` are the reds' rows,
    ``unfolded`` those of the blacks that are not folded. ``lift`` is d^1/2 / S: it turns z into pi
    (S z on the blacks). On the reds, ``own`` is the diagonal of -A as far as no row holds it, ``near``
    is 1 over A's whole diagonal (with what a red hands itself through blacks taken off: a step in
    sixteen less than 1 over c S^2 takes) and ``to_mass`` turns a residual of A into one of pi; on the
    blacks, ``carry`` is K. A vertex without edges is black, its ``carry`` and ``lift`` are 0; those at
    the end of the ``vertices`` are left out of all arrays.

    ``l1_most`` is the most that the L1 norm of a residual in pi's space can be where its energy
    is 1 (Cauchy-Schwarz). ``rounding`` bounds the L1 error of evaluating a residual in float64: a
    sum of k terms is off by at most k half-ulps of its size (Higham, Accuracy and Stability of
    Numerical Algorithms, 2002, 3.1); the longest row sets k, and all of pi together is 1.
    """

    whole: Ints
    among: _Rows
    unfolded: _Rows
    vertices: int
    reds: int
    lift: Floats
    own: Floats
    near: Floats
    to_mass: Floats
    carry: Floats
    fold: _Fold
    smoothed: bool
    restart: float
    l1_most: float
    rounding: float

    def nearer(self, residual: Floats, out: Floats) -> Callable[[], None]:
        """What to call for out = a guess at what ``residual`` (reds,) is off by: A's inverse applied to it
        as far as that is cheap.

        With N = ``near`` and B what the reds hand each other without an unfolded black between them it
        is N + N B N, the first two terms of the inverse of N^-1 - B. N^-1 - B is A with some entries
        beside the diagonal taken out, all of them negative, so it is positive definite as A is; then
        no eigenvalue of N B reaches 1, by Perron and Frobenius none -1 either, and N + N B N is positive
        definite. Where `smoothed` is False it is N alone.

        Source: Dubois, Greenbaum, Rodrigue, Computing 22 (1979).
        """
        reds, near, multiply, add = self.reds, self.near, np.multiply, np.add
        if not self.smoothed:
            return partial(multiply, near, residual, out)
        handed = np.empty(reds)
        ways = []
        for rows in (self.among, *([self.fold.pairs] if self.fold.vertices else [])):
            ways.append(partial(kernels().csr_matvec, reds, reds, *rows, out, handed))
            ways.append(partial(kernels().csc_matvec, reds, reds, *rows, out, handed))

        def guess() -> None:
            multiply(near, residual, out)
            handed.fill(0.0)
            for way in ways:
                way()
            multiply(near, handed, handed)
            add(out, handed, out)

        return guess

    def product(self, x: Floats, out: Floats) -> Callable[[], None]:
        """What to call for out[:reds] = -A y, where x (vertices,) begins with the red vector y; the
        rest of both is scratch. Views and arguments are made here once, since on a small graph they
        cost as much as the sums.
        """
        reds, folded, multiply = self.reds, self.fold.vertices, np.multiply
        y, red, carry = x[:reds], out[:reds], self.carry[folded:]

        def onto(count: int, rows: _Rows, to: Floats) -> Callable[[], None]:
            """Rows times y, added to what stands there."""
            return partial(kernels().csr_matvec, count, reds, *rows, y, to)

        def back(count: int, rows: _Rows, source: Floats) -> Callable[[], None]:
            """The rows' transpose times a vector, added to the reds."""
            return partial(kernels().csc_matvec, reds, count, *rows, source, red)

        rows: _Rows = (self.whole, *self.among[1:])
        ways: list[Callable[[], object]]
        if not folded:  # one list of rows: half the calls
            left = out[reds:]
            ways = [onto(len(x), rows, out), partial(multiply, left, carry, x[reds:]), back(len(x), rows, x)]
        else:
            left, rows = x[reds + folded :], self.unfolded
            ways = [onto(len(left), rows, left), partial(multiply, left, carry, left), back(len(left), rows, left)]
            for rows in (self.among, self.fold.pairs):
                ways += [onto(reds, rows, red), back(reds, rows, y)]

        def product() -> None:
            multiply(self.own, y, red)
            left.fill(0.0)
            for way in ways:
                way()

        return product

    def residual(self, right: Floats, x: Floats, out: Floats) -> Floats:
        """``right`` - A y, by the graph's own arrays, as the first ``reds`` of ``out``.

        x (vertices,) begins with the red vector y; K M_BR y is left behind it. Whatever ``out``
        held is lost.
        """
        reds, matrix, n = self.reds, (self.whole, *self.among[1:]), len(x)
        out.fill(0.0)
        kernels().csr_matvec(n, reds, *matrix, x[:reds], out)
        np.multiply(out[reds:], self.carry, out=x[reds:])
        kernels().csc_matvec(reds, n, *matrix, x, out)
        left = out[:reds]
        left += right
        left -= self.lift[:reds] / self.to_mass * x[:reds]  # 1 / (c S^2) is d^1/2 / S over c d^1/2 S
        return left

    def right(self, seeds: NDArray[np.int32], start: float) -> Floats:
        """The right side g for seeds (places), each with ``start`` of the restart.

        S f = r s S d^-1/2 = r s / lift is what a black seed hands to its neighbours.
        """
        reds, share = self.reds, self.restart * start
        indptr, (_, columns, belief) = self.whole, self.among
        out = np.zeros(reds)
        for seed in seeds.tolist():
            if seed < reds:
                out[seed] += share / self.to_mass[seed]
            elif not self.alone(np.array([seed]))[0]:
                row = slice(int(indptr[seed]), int(indptr[seed + 1]))
                out[columns[row]] += belief[row] * (share / self.lift[seed])
        return out

    def alone(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of some places hold a vertex without edges."""
        within = places < len(self.lift)
        without = ~within
        without[within] = self.lift[places[within]] == 0.0
        return without

    def mass(self, x: Floats, seeds: NDArray[np.int32], start: float) -> Floats:
        """Stationary mass in places, from what `residual` left in x.

        A black vertex has what it is handed, and where it is a seed r s besides, with s =
        ``start``; a seed without edges (always black) keeps all of s.
        """
        out = np.zeros(self.vertices)
        np.multiply(self.lift, x, out=out[: len(x)])
        black_seeds = seeds[seeds >= self.reds]
        out[black_seeds] += np.where(self.alone(black_seeds), start, self.restart * start)
        return out


def make_system(
    graph: Graph,
    hub_exponent: float,
    restart: float,
    *,
    fold_least: int = _FOLD_LEAST,
    smooth_least: int = _SMOOTH_LEAST,
    smooth_share: int = _SMOOTH_SHARE,
) -> System:
    """Scale a graph's matrix for a hub exponent and a restart.

    ``fold_least`` is the number of vertices of few neighbours from which on they are folded,
    ``smooth_least`` the number of pairs from which on a residual is divided by more than the diagonal,
    where no more than one pair in ``smooth_share`` lies among the reds.
    """
    # behind the last row that holds a pair every vertex is black and without edges
    last = int(np.searchsorted(graph.indptr, np.int32(graph.pair_count)))
    reds, live = graph.reds, max(graph.reds, last)
    arrays = (graph.indptr[: live + 1], graph.columns, graph.belief)
    shape = (live, reds)

    def row_sums(weight: Floats) -> Floats:
        """W times a vector: each pair acts from both its ends."""
        total = np.zeros(len(weight))
        kernels().csr_matvec(*shape, *arrays, weight[:reds], total)
        kernels().csc_matvec(*shape[::-1], *arrays, weight, total[:reds])
        return total

    strength = row_sums(np.ones(live))
    joined = strength > 0.0
    # the square root is exact to the last bit everywhere, a power is not
    root = np.sqrt(strength) if hub_exponent == 0.5 else np.power(strength, hub_exponent)
    damping = np.divide(1.0, root, where=joined, out=np.zeros(len(strength)))
    root_d = np.sqrt(damping * row_sums(damping))
    scale = np.divide(damping, root_d, where=joined, out=np.zeros(len(strength)))
    lift = np.divide(root_d, scale, where=joined, out=np.zeros(len(strength)))
    follow = 1.0 - restart
    carry = follow * scale[reds:] ** 2
    squared = np.square(graph.belief)
    fold, itself = _folded(graph, carry, squared, fold_least)
    diagonal = 1.0 / (follow * scale[:reds] ** 2)
    handed = itself.copy()  # what each red hands itself through all blacks
    rest = carry[fold.vertices :]
    unfolded = arrays[0][reds + fold.vertices :]
    steady = int(graph.indptr[reds]) + len(fold.pairs[1])  # pairs of reds
    kernels().csc_matvec(reds, len(rest), unfolded, graph.columns, squared, rest, handed)
    near = 1.0 / (diagonal - handed)
    to_mass = follow * root_d[:reds] * scale[:reds]
    longest = int(np.diff(graph.indptr).max() + np.bincount(graph.columns, minlength=1).max())
    return System(
        whole=arrays[0],
        among=(graph.indptr[: reds + 1], *arrays[1:]),
        unfolded=(unfolded, *arrays[1:]),
        vertices=graph.vertex_count,
        reds=reds,
        lift=lift,
        own=itself - diagonal,
        near=near,
        to_mass=to_mass,
        carry=carry,
        fold=fold,
        smoothed=graph.pair_count >= smooth_least and steady * smooth_share <= graph.pair_count,
        restart=restart,
        l1_most=float(np.sqrt(np.add.reduce(to_mass**2 / near))),
        rounding=2.0 * float(np.finfo(np.float64).eps) * (longest + _STEPS) / restart,
    )


def _folded(graph: Graph, carry: Floats, squared: Floats, least: int) -> tuple[_Fold, Floats]:
    """Fold the first black vertices, those of few neighbours, into pairs of reds; and what each
    red hands itself through them.

    A black vertex v between reds i and j adds K_v w_iv w_jv to the pair and K_v w_iv^2 to i
    itself (``squared`` are the squares of all beliefs). Entries are sorted by counting, once by
    each end, then equal pairs are summed.
    """
    reds = graph.reds
    degree = np.diff(graph.indptr[reds : reds + len(carry) + 1])
    count = int(np.argmax(np.append(degree, _FOLDED + 1) > _FOLDED))
    nothing = np.zeros(0, dtype=np.int32)
    if count < least or not count:
        return _Fold(0, (nothing, nothing, np.zeros(0))), np.zeros(reds)
    itself = np.zeros(reds)
    kernels().csc_matvec(
        reds, count, graph.indptr[reds : reds + count + 1], graph.columns, squared, carry[:count], itself
    )
    later, earlier, values = [nothing], [nothing], [np.zeros(0)]
    for neighbours in range(1, _FOLDED + 1):
        rows = np.flatnonzero(degree[:count] == neighbours)
        if not len(rows):
            continue
        starts = graph.indptr[reds + rows]
        if len(rows) == rows[-1] - rows[0] + 1:  # together, as they are laid out until one changes
            entries: slice | Ints = slice(int(starts[0]), int(starts[0]) + neighbours * len(rows))
        else:
            entries = (starts[:, None] + np.arange(neighbours)).ravel().astype(np.int32)
        ends = graph.columns[entries].reshape(-1, neighbours).T.copy()
        weight = graph.belief[entries].reshape(-1, neighbours).T.copy()
        for i in range(1, neighbours):
            handed = carry[rows] * weight[i]
            for j in range(i):
                later.append(ends[i])
                earlier.append(ends[j])
                values.append(handed * weight[j])
    pairs = np.concatenate(later), np.concatenate(earlier), np.concatenate(values)
    return _Fold(count, _summed(reds, *pairs)), itself


def _summed(size: int, rows: Ints, columns: Ints, values: Floats) -> _Rows:
    """The square CSR matrix of some entries, equal pairs added up in a fixed order."""
    count = len(values)
    by_column = np.empty(size + 1, dtype=np.int32), np.empty(count, dtype=np.int32), np.empty(count)
    kernels().coo_tocsr(size, size, count, columns, rows, values, *by_column)
    indptr, inner, summed = np.empty(size + 1, dtype=np.int32), np.empty(count, dtype=np.int32), np.empty(count)
    kernels().csr_tocsc(size, size, *by_column, indptr, inner, summed)
    kernels().csr_sum_duplicates(size, size, indptr, inner, summed)
    left = int(indptr[-1])
    return indptr, inner[:left].copy(), summed[:left].copy()
