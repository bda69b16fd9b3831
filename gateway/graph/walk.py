"""The one ranker: a personalized random walk over belief-weighted edges.

In go a `Graph` and a frozenset of seed vertices, nothing else: a number has no way in.
Out comes a `Ranking`, which only `walk` can make, with a proof of its error. A walk that
cannot prove it raises `NotConverged`; it never returns its last guess.

The equation (W_ij = belief, D = row sums of W, h = hub exponent, r = restart):

    H = D^-h W D^-h,  d = H 1,  P = H diag(d)^-1,  pi = r s + (1 - r) P pi,

s uniform on the seeds. With S = D^-h d^-1/2 and pi = d^1/2 z it is the symmetric system
(I - (1 - r) S W S) z = r d^-1/2 s, positive definite. The black vertices (no two adjacent)
are eliminated exactly and conjugate gradient solves the Schur complement on the reds
(``gateway.graph.system``).
P is column-stochastic, so |pi - exact|_1 <= |residual|_1 / r with the residual measured in
pi's space; that bound, from a residual computed afresh and widened by what float64 may have
rounded in computing it, is the certificate.

A vertex without edges keeps the mass that starts there (P_vv = 1): `Ranking.walled_in`.
What no seed reaches has mass exactly 0.0.

Sources: Page, Brin, Motwani, Winograd (1999); Hestenes and Stiefel (1952); Saad, Iterative
Methods for Sparse Linear Systems (2003), 14.2 for the elimination.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gateway.errors import GraphError, NotConverged
from gateway.graph.adjacency import Graph
from gateway.graph.system import System, kernels, make_system

__all__ = ["HUB_EXPONENT", "RESTART", "Ranking", "walk"]

RESTART = 0.15
"""Chance to return to the seeds at every step; mean walk 5.7 steps, our chains have 3 to 5."""

HUB_EXPONENT = 0.5
"""How much a vertex of many edges is damped: 0 is plain PageRank, 1 ranks chains last
(tests/bench_walk_choices.py prints both, and restart)."""

_MAX_ITERATIONS = 1000
_NEAR = 50.0  # the L1 norm is seldom less than a twentieth of its bound by the energy
_ONE_THREAD = 8192  # OpenBLAS adds up to 10,000 numbers in one thread whatever it was given
_NOTHING = 1e-290  # an energy of which nothing can be taken: its inverse is still a number
_LOOK = 8.0  # a top set is looked at each time the error bound has fallen by this factor

Floats = NDArray[np.float64]

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


_systems: WeakKeyDictionary[Graph, dict[tuple[float, float], System]] = WeakKeyDictionary()


def _system(graph: Graph, hub_exponent: float, restart: float) -> System:
    """The scaled system, made once for a graph."""
    made = _systems.setdefault(graph, {})
    if (hub_exponent, restart) not in made:
        made[hub_exponent, restart] = make_system(graph, hub_exponent, restart)
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
    mass = solved.mass.take(graph.place)
    return Ranking(
        mass=mass,
        seeds=seeds,
        walled_in=frozenset(ids[system.alone(places)].tolist()),
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


class _Solved(NamedTuple):
    """The mass in places, its certified L1 error, and how many iterations it took."""

    mass: Floats
    error: float
    iterations: int


def _solve(system: System, seeds: NDArray[np.int32], *, tol: float, top: int | None) -> _Solved:
    """Conjugate gradient on the reds; blacks follow exactly.

    Everything in places. The black rows' residual is 0, so the residual of pi is that of the
    reds times ``to_mass``.
    """
    start = 1.0 / len(seeds)
    right = system.right(seeds, start)
    reds, count = system.reds, len(system.lift)
    vectors = _Vectors(reds, count)
    residual, near, size, proof = vectors.residual, np.empty(reds), np.empty(reds), np.empty(count)
    apply, guess = system.product(vectors.ahead, vectors.behind), system.nearer(residual, near)
    energy_of, norm_of = _inner(residual, near), _inner(system.to_mass, size)
    curvature_of = _inner(vectors.ahead[:reds], vectors.behind[:reds])
    residual[:] = right
    guess()
    energy = before = scale = energy_of()
    look = _Look(tol if top is None else 1.0)
    for iteration in range(_MAX_ITERATIONS + 1):
        bound = math.sqrt(energy) * system.l1_most / system.restart + system.rounding
        if look.pays(bound):
            np.abs(residual, size)
            bound = look.sharpened(bound, norm_of() / system.restart + system.rounding)
        if bound <= look.target:
            # the recurrence drifts from the truth by rounding: prove it on a fresh residual
            proof[:reds] = vectors.y
            residual[:] = system.residual(right, proof, vectors.behind)
            np.abs(residual, size)
            bound = norm_of() / system.restart + system.rounding
            mass = system.mass(proof, seeds, start)
            if bound <= tol or _top_is_certain(mass, top, bound):
                return _Solved(mass, bound, iteration)
            guess()
            energy = energy_of()
            look = _Look(tol if top is None else max(tol, bound / _LOOK))
        if iteration == _MAX_ITERATIONS or energy < _NOTHING:
            break
        # conjugate gradient's direction is `scale` times `ahead`, so that turning only ever adds to it
        scale *= energy / before
        vectors.turn(near, 1.0 / scale)
        apply()
        curvature = -curvature_of()
        if curvature == 0.0:  # underflow: more steps prove no more
            break
        vectors.descend(energy / scale / curvature)
        guess()
        before, energy = energy, energy_of()
    raise NotConverged("personalized walk, L1 error", iterations=iteration, residual=bound, tol=tol)


class _Vectors:
    """The vectors of one descent, laid out so that a single kernel call moves two of them.

    ``ahead`` (vertices,) begins with the direction, ``behind`` (vertices,) with -A times it; what
    follows in both is scratch. Beginning with 0: ``y`` and its ``residual`` (reds,).
    """

    def __init__(self, reds: int, count: int) -> None:
        behind = -(-count // max(1, reds))  # a multiple of reds on, so that it is a row of `held` as the kernel sees it
        held, moved = np.zeros(behind * reds + count), np.zeros(2 * reds)
        self.ahead, self.behind = held[:count], held[behind * reds :]
        self.y, self.residual = moved[:reds], moved[reds:]
        self._step, self._turn = np.zeros(2), np.zeros(1)
        sources, ends = np.array([0, behind], dtype=np.int32), np.arange(3, dtype=np.int32)
        self._descend = partial(kernels().csr_matvecs, 2, behind + 1, reds, ends, sources, self._step, held, moved)
        self._turned = partial(kernels().csr_matvecs, 1, 1, reds, ends[:2], sources[:1], self._turn)

    def descend(self, step: float) -> None:
        """Go ``step`` times ahead: y and its residual."""
        self._step.fill(step)
        self._descend()

    def turn(self, near: Floats, share: float) -> None:
        """Add ``share`` of a red vector to the direction."""
        self._turn[0] = share
        self._turned(near, self.ahead)


class _Look:
    """When the L1 norm of a residual is worth summing: its bound by the energy falls as it does."""

    def __init__(self, target: float) -> None:
        self.target = target
        self._factor = 1.0 / _NEAR  # of the bound, what the norm itself may be

    def pays(self, bound: float) -> bool:
        """Whether the norm may have reached the target."""
        return bound * self._factor <= self.target

    def sharpened(self, bound: float, norm: float) -> float:
        """The norm; the next is summed when it may have reached the target at half this factor."""
        if norm > self.target:
            self._factor = max(self._factor, 0.7 * norm / bound)
        return norm


def _inner(one: Floats, other: Floats) -> Callable[[], float]:
    """What to call for the inner product of two vectors, always added in the same order: BLAS takes
    threads from 10,000 numbers on only, so it gets fewer at a time.
    """
    if len(one) <= _ONE_THREAD:
        return lambda: float(one.dot(other))
    starts = range(0, len(one), _ONE_THREAD)
    pieces = [(one[at : at + _ONE_THREAD], other[at : at + _ONE_THREAD]) for at in starts]
    return lambda: float(sum(piece.dot(beside) for piece, beside in pieces))
