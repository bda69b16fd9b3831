"""The one ranker: a personalized random walk over belief-weighted edges.

In go a `Graph` and a frozenset of seed vertices, nothing else: a number has no way in.
Out comes a `Ranking`, which only `walk` can make, with a proof of its error. A walk that
cannot prove it raises `NotConverged`; it never returns its last guess.

The equation (W_ij = belief, D = row sums of W, h = hub exponent, r = restart):

    H = D^-h W D^-h,  d = H 1,  P = H diag(d)^-1,  pi = r s + (1 - r) P pi,

s uniform on the seeds. With S = D^-h d^-1/2 and pi = d^1/2 z it is the symmetric system
(I - (1 - r) S W S) z = r d^-1/2 s, positive definite. The black vertices (no two adjacent)
are eliminated exactly and conjugate gradient solves the Schur complement on the reds.
P is column-stochastic, so |pi - exact|_1 <= |residual|_1 / r with the residual measured in
pi's space; that bound, from a residual computed afresh and widened by what float64 may have
rounded in computing it, is the certificate.

A vertex without edges keeps the mass that starts there (P_vv = 1): `Ranking.walled_in`.
What no seed reaches has mass exactly 0.0.

Sources: Page, Brin, Motwani, Winograd (1999); Hestenes and Stiefel (1952); Saad, Iterative
Methods for Sparse Linear Systems (2003), 14.2 for the elimination.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

# scipy's own kernels: the public product makes and zeroes a vector at every call, a quarter
# of a walk's time on a million edges. The tests compare each walk with a dense solve.
from scipy.sparse._sparsetools import csc_matvec, csr_matvec

from gateway.errors import GraphError, NotConverged
from gateway.graph.adjacency import Graph

__all__ = ["HUB_EXPONENT", "RESTART", "Ranking", "walk"]

RESTART = 0.15
"""Chance to return to the seeds at every step; mean walk 5.7 steps, our chains have 3 to 5."""

HUB_EXPONENT = 0.5
"""How much a vertex of many edges is damped: 0 is plain PageRank, 1 ranks chains last
(tests/bench_walk_choices.py prints both, and restart)."""

_MAX_ITERATIONS = 1000
_STEPS = 16  # operations on an entry besides its row's sum: scaling, carrying, subtracting
_LOOK = 8.0  # a top set is looked at each time the error bound has fallen by this factor

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

_WALK = object()  # whoever holds it may make a Ranking: `walk`, alone


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The stationary mass of one walk, per vertex id, and how exact it is.

    Attributes
    ----------
    mass : float64 (vertices,)
        Sums to 1; exactly 0.0 where no seed reaches. Read-only.
    seeds : frozenset of int
    walled_in : frozenset of int
        Seeds without a live edge: their mass stays with them.
    restart, hub_exponent : float
    error : float
        Certified bound on the L1 distance to the exact mass.
    certified_top : int
        Size of the top set that the bound proves, where one was asked for; else 0.
    iterations : int
    """

    mass: Floats
    seeds: frozenset[int]
    walled_in: frozenset[int]
    restart: float
    hub_exponent: float
    error: float
    certified_top: int
    iterations: int
    token: InitVar[object] = None

    def __post_init__(self, token: object) -> None:
        if token is not _WALK:
            raise GraphError("a Ranking must come from walk(); nothing else may rank")
        self.mass.setflags(write=False)

    def top(self, count: int) -> tuple[int, ...]:
        """The ids of most mass, most first, equals by id; never a vertex without mass."""
        count = min(count, len(self.mass))
        if count <= 0:
            return ()
        ids = _first(self.mass, count)  # with every id that ties with the last place: ties go by id
        ids = ids[self.mass[ids] > 0.0]
        return tuple(ids[np.argsort(-self.mass[ids], kind="stable")][:count].tolist())

    def mass_at(self, rank: int) -> float:
        """The mass at a 1-based rank; with fewer vertices of any mass, that of the last."""
        best = self.top(rank)
        return float(self.mass[best[-1]]) if best else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _System:
    """The equation of one graph, hub exponent and restart, in red-black places (reds first).

    ``shape`` and ``arrays`` are C, lent by the graph. On the reds, ``root_d`` is d^1/2 and
    ``scale`` is S; on the blacks, ``carry`` is c S^2 and ``lift`` is d^1/2 / S, with
    c = 1 - restart. A vertex without edges is black, its ``carry`` and ``lift`` are 0.
    ``rounding`` bounds the L1 error of evaluating a residual in float64: a sum of k terms is
    off by at most k half-ulps of its size (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, 3.1); the longest row sets k, and all of pi together is 1.
    """

    shape: tuple[int, int]
    arrays: tuple[Ints, Ints, Floats]
    root_d: Floats
    scale: Floats
    carry: Floats
    lift: Floats
    restart: float
    rounding: float

    @property
    def follow(self) -> float:
        return 1.0 - self.restart

    def schur(self, z: Floats, pushed: Floats, out: Floats) -> None:
        """Out = (I - c M_RR - c^2 M_RB M_BR) z for a red vector, by two half-products with C.

        ``pushed`` (vertices,) is left with c S^2 W S z on its black places.
        """
        reds = len(z)
        scaled = self.scale * z
        pushed.fill(0.0)
        csr_matvec(*self.shape, *self.arrays, scaled, pushed)
        out[:] = pushed[:reds]
        pushed[:reds] = scaled
        pushed[reds:] *= self.carry
        csc_matvec(*self.shape[::-1], *self.arrays, pushed, out)  # out += C^T pushed
        out *= self.scale
        out *= -self.follow
        out += z

    def mass(self, z: Floats, pushed: Floats, black_seeds: NDArray[np.int32], start: float) -> Floats:
        """Stationary mass in places, from a red vector and what `schur` left in ``pushed``.

        A black vertex has what it is handed, and where it is a seed r s besides, with s =
        ``start``; a seed without edges (always black) keeps all of s.
        """
        reds = len(z)
        out = pushed.copy()
        np.multiply(z, self.root_d, out=out[:reds])
        out[reds:] *= self.lift
        alone = self.lift[black_seeds] == 0.0
        out[reds + black_seeds] += np.where(alone, start, self.restart * start)
        return out


_systems: WeakKeyDictionary[Graph, dict[tuple[float, float], _System]] = WeakKeyDictionary()


def _system(graph: Graph, hub_exponent: float, restart: float) -> _System:
    """The scaled system, made once for a graph: it holds no state of a walk."""
    made = _systems.setdefault(graph, {})
    if (hub_exponent, restart) not in made:
        reds, arrays = graph.reds, (graph.indptr, graph.columns, graph.belief)
        shape = (graph.vertex_count, reds)

        def row_sums(weight: Floats) -> Floats:
            """W times a vector: each pair acts from both its ends."""
            total = np.zeros(len(weight))
            csr_matvec(*shape, *arrays, weight[:reds], total)
            csc_matvec(*shape[::-1], *arrays, weight, total[:reds])
            return total

        strength = row_sums(np.ones(graph.vertex_count))
        joined = strength > 0.0
        damping = np.power(strength, -hub_exponent, where=joined, out=np.zeros(len(strength)))
        root_d = np.sqrt(damping * row_sums(damping))
        scale = np.divide(damping, root_d, where=joined, out=np.zeros(len(strength)))
        follow, black_scale = 1.0 - restart, scale[reds:]
        longest = int(np.diff(graph.indptr).max() + np.bincount(graph.columns, minlength=1).max())
        made[hub_exponent, restart] = _System(
            shape=shape,
            arrays=arrays,
            root_d=root_d[:reds],
            scale=scale[:reds],
            carry=follow * black_scale**2,
            lift=np.divide(root_d[reds:], black_scale, where=joined[reds:], out=np.zeros(len(black_scale))),
            restart=restart,
            rounding=2.0 * float(np.finfo(np.float64).eps) * (longest + _STEPS) / restart,
        )
    return made[hub_exponent, restart]


def _check(graph: Graph, seeds: frozenset[int], restart: float, hub_exponent: float, tol: float) -> None:
    if not isinstance(seeds, frozenset):
        raise GraphError(f"seeds must be a frozenset of vertex ids, are a {type(seeds).__name__}")
    if not 0.0 < restart < 1.0:
        raise GraphError(f"restart must lie in (0, 1), is {restart!r}")
    if not 0.0 <= hub_exponent <= 1.0:
        raise GraphError(f"the hub exponent must lie in [0, 1], is {hub_exponent!r}")
    if not 0.0 < tol < 1.0:
        raise GraphError(f"tol must lie in (0, 1), is {tol!r}")
    if not seeds and graph.vertex_count:
        raise GraphError(f"seeds must name at least one of the {graph.vertex_count} vertices, name none")
    for seed in sorted(seeds):
        if not 0 <= seed < graph.vertex_count:
            raise GraphError(f"a seed must be a vertex id in [0, {graph.vertex_count}), is {seed}")


def walk(
    graph: Graph,
    seeds: frozenset[int],
    *,
    restart: float = RESTART,
    hub_exponent: float = HUB_EXPONENT,
    tol: float = 1e-9,
    top: int | None = None,
) -> Ranking:
    """Spread one unit of mass from the seeds over the graph, to a certificate.

    Parameters
    ----------
    graph : Graph
    seeds : frozenset of int
        Vertex ids; the walk restarts at each with the same chance.
    restart : float
        In (0, 1).
    hub_exponent : float
        In [0, 1]; see the module's equation.
    tol : float
        Largest certified L1 error of the mass.
    top : int, optional
        Stop as soon as the set of this many first vertices is proven, even if the error is
        still above ``tol``. The order within the set is not part of that proof.

    Returns
    -------
    Ranking
        Of an empty graph: an empty one.

    Raises
    ------
    GraphError
        Seeds, restart, exponent or tol out of range, naming the value.
    NotConverged
        No certificate within the iterations, or ``tol`` is below what float64 can prove.
    """
    _check(graph, seeds, restart, hub_exponent, tol)
    ids = np.fromiter(sorted(seeds), dtype=np.int64, count=len(seeds))
    if not graph.vertex_count:
        return Ranking(np.zeros(0), seeds, frozenset(), restart, hub_exponent, 0.0, 0, 0, _WALK)
    system = _system(graph, hub_exponent, restart)
    places = graph.place[ids]
    solved = _solve(system, np.sort(places), tol=tol, top=top)
    mass = np.empty(graph.vertex_count)
    mass[graph.order] = solved.mass
    alone = np.append(system.root_d, system.lift)[places] == 0.0
    return Ranking(
        mass=mass,
        seeds=seeds,
        walled_in=frozenset(ids[alone].tolist()),
        restart=restart,
        hub_exponent=hub_exponent,
        error=solved.error,
        certified_top=top or 0 if _top_is_certain(mass, top, solved.error) else 0,
        iterations=solved.iterations,
        token=_WALK,
    )


def _top_is_certain(mass: Floats, count: int | None, error: float) -> bool:
    """Whether a top set was asked for and the bound proves which vertices are the first ``count``.

    Two masses can trade places only if their errors add up to the gap between them, and all
    errors together are at most ``error``.
    """
    if count is None:
        return False
    if count >= len(mass):
        return True
    last, next_ = np.sort(mass[_first(mass, count + 1)])[::-1][count - 1 : count + 1]
    return bool(last - next_ > error)


def _first(mass: Floats, count: int) -> NDArray[np.int64]:
    """The ids of the ``count`` largest masses and of all that tie with the last, ascending.

    The vertices are dealt into twice as many hands: ``count`` hands hold a vertex at least as
    heavy as the ``count``-th best hand's best, so nothing below that can belong. (numpy's
    partition took 10 ms on 38,000 masses of a household, this takes 0.1.)
    """
    ids = np.arange(len(mass))
    width = len(mass) // (2 * count)
    if width > 1:
        hands = mass[: width * (len(mass) // width)].reshape(width, -1)
        ids = np.flatnonzero(mass >= np.sort(hands.max(axis=0))[-count])
    kept: NDArray[np.int64] = ids[mass[ids] >= np.sort(mass[ids])[-count]]
    return kept


def _dot(one: Floats, other: Floats) -> float:
    """Inner product by numpy's pairwise sum: a threaded BLAS may add in another order."""
    return float(np.add.reduce(one * other))


class _Solved(NamedTuple):
    """The mass in places, its certified L1 error, and how many iterations it took."""

    mass: Floats
    error: float
    iterations: int


def _solve(system: _System, seeds: NDArray[np.int32], *, tol: float, top: int | None) -> _Solved:
    """Conjugate gradient on the reds; blacks follow exactly. Everything in places.

    With c = 1 - r, f = r d^-1/2 s and R, B for red and black:
    (I - c M_RR - c^2 M_RB M_BR) z_R = f_R + c M_RB f_B, then z_B = f_B + c M_BR z_R.
    The black rows' residual is 0, so the residual of pi is d_R^1/2 times that of the reds.
    """
    n, reds = system.shape
    start = 1.0 / len(seeds)
    share = system.restart * start
    red_seeds, black_seeds = seeds[seeds < reds], seeds[seeds >= reds] - reds
    right, applied, pushed = np.zeros(reds), np.empty(reds), np.zeros(n)
    if len(black_seeds):
        # S f = r s S d^-1/2 = r s / lift: what a black seed hands to its neighbours
        handed = system.lift[black_seeds]
        pushed[reds + black_seeds] = np.divide(share, handed, where=handed > 0.0, out=np.zeros(len(handed)))
        csc_matvec(reds, n, *system.arrays, pushed, right)
        right *= system.follow * system.scale
    right[red_seeds] += share / system.root_d[red_seeds]
    z = np.zeros(reds)
    residual = right.copy()
    direction = residual.copy()
    energy = _dot(residual, residual)
    next_look = 1.0
    for iteration in range(_MAX_ITERATIONS + 1):
        bound = _l1(system.root_d, residual) / system.restart + system.rounding
        if bound <= tol or (top is not None and bound <= next_look):
            # the recurrence drifts from the truth by rounding: prove it on a fresh residual
            system.schur(z, pushed, applied)
            np.subtract(right, applied, out=residual)
            bound = _l1(system.root_d, residual) / system.restart + system.rounding
            mass = system.mass(z, pushed, black_seeds, start)
            if bound <= tol or _top_is_certain(mass, top, bound):
                return _Solved(mass, bound, iteration)
            energy = _dot(residual, residual)
            next_look = bound / _LOOK
        if iteration == _MAX_ITERATIONS:
            break
        system.schur(direction, pushed, applied)
        curvature = _dot(direction, applied)
        if curvature == 0.0:  # nothing left to descend, or underflow: more steps prove no more
            break
        step = energy / curvature
        z += step * direction
        residual -= step * applied
        before, energy = energy, _dot(residual, residual)
        direction *= energy / before
        direction += residual
    raise NotConverged("personalized walk, L1 error", iterations=iteration, residual=bound, tol=tol)


def _l1(weight: Floats, vector: Floats) -> float:
    return float(np.add.reduce(weight * np.abs(vector)))
