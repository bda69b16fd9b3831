"""What belongs to the answer: a connected subgraph, decided by topology.

In go a `Graph`, a `Ranking`, the anchors, and the typed, dated chains of the question
(references only: a number has no way in). Out comes a `Subgraph`, which only `assemble` can
make: one rooted tree a chain over that chain's own edges, their union, and the context that
connects to the union for less than it brings. What has mass but no cheap connection comes
back as a near-miss with its reason. Nothing is admitted because it scored high.

Prize of a vertex = its walk mass. Cost of an edge = unit / belief. The unit is the walk mass
at rank 40 of the same walk: a sure edge costs what the 40th vertex is worth, so a tree can
take in about as many vertices as a reader can follow, on graphs of any size (raw mass
against 1 / belief leaves one vertex). In a walk that reaches fewer than 40 vertices it is
the mass of the last one reached. There is no other knob.

`admit` spends the token budget at the very end: whole units in order, skipping what does
not fit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.errors import GraphError
from gateway.graph.adjacency import Graph, Pairs
from gateway.graph.steiner import Instance, solve
from gateway.graph.walk import Ranking
from gateway.model import Chain, NearMiss, RecordRef, Vertex

__all__ = ["Admission", "ChainTree", "Subgraph", "admit", "assemble"]

UNIT_RANK = 40
"""Rank whose mass is the exchange rate between prizes and costs."""

CANDIDATES = 200
"""How far down the ranking context may come from; rank 200 holds about 1e-4 of the mass."""

_NEAR_MISSES = 10  # more would be a list again, and nobody reads it

_ASSEMBLE = object()  # whoever holds it may make a Subgraph: `assemble`, alone


@dataclass(frozen=True, slots=True)
class ChainTree:
    """One candidate's tree: its chain, and the vertices and edges that connect it.

    ``belief`` is the product of its edges' beliefs: how far the chain is believed as a whole.
    """

    chain: Chain
    vertices: tuple[Vertex, ...]
    edges: tuple[RecordRef, ...]
    belief: float


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A connected answer, or none.

    Attributes
    ----------
    vertices : tuple of Vertex
        By walk rank. Empty where no chain and no anchor could be connected.
    edges : tuple of RecordRef
        The chains' edges, in the order of `trees`, then the context's.
    trees : tuple of ChainTree
        One a connected chain, by the walk rank of its cause, which says nothing about likelihood.
    context : tuple of RecordRef
        The edges that joined beyond the chains, by rank of the vertex they bring.
    unconnected : tuple of Vertex
        Anchors that no path joins to the first one.
    near_misses : tuple of NearMiss
    unit : float
        Cost of an edge of belief 1.
    cost, bound : float
        Edges taken plus prizes of candidates left out, and its proven lower bound.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[RecordRef, ...]
    trees: tuple[ChainTree, ...]
    context: tuple[RecordRef, ...]
    unconnected: tuple[Vertex, ...]
    near_misses: tuple[NearMiss, ...]
    unit: float
    cost: float
    bound: float
    token: InitVar[object] = None

    def __post_init__(self, token: object) -> None:
        if token is not _ASSEMBLE:
            raise GraphError("a Subgraph must come from assemble(); nothing else may decide membership")

    @property
    def gap(self) -> float:
        """(cost - bound) / cost; 0 where the tree is proven optimal."""
        return 0.0 if self.cost <= self.bound else (self.cost - self.bound) / self.cost


class _Region(NamedTuple):
    """The candidates' ids, ascending, and the adjacent pairs among them."""

    ids: NDArray[np.int32]
    pairs: Pairs
    costs: NDArray[np.float64]

    def contracted(self, core: set[int]) -> tuple[list[int], list[int], list[int], list[float]]:
        """With the core as vertex 0 and the others numbered from 1 on: the cheapest pair between
        each two (of equals the first entry), as positions, ends and costs, by its ends.
        """
        inside = np.isin(self.ids, list(core))
        number = np.where(inside, 0, np.cumsum(~inside))
        tails, heads = (number[np.searchsorted(self.ids, ends)] for ends in self.pairs[:2])
        one, other = np.minimum(tails, heads), np.maximum(tails, heads)
        order = np.lexsort((self.pairs.entries, self.costs, other, one))
        order = order[one[order] != other[order]]
        between = one[order] * (len(self.ids) + 1) + other[order]
        kept = order[np.append(True, between[1:] != between[:-1])[: len(order)]]
        return kept.tolist(), one[kept].tolist(), other[kept].tolist(), self.costs[kept].tolist()


class _Offered(NamedTuple):
    """The first of the walk, most mass first, and what an edge of belief 1 costs."""

    top: tuple[int, ...]
    unit: float


class _Union(NamedTuple):
    """What the chains came to: their trees, all their entries by reference, and misses."""

    trees: tuple[ChainTree, ...]
    entries: dict[int, RecordRef]
    misses: tuple[NearMiss, ...]


def assemble(
    graph: Graph,
    ranking: Ranking,
    anchors: frozenset[int],
    chains: tuple[Chain, ...] = (),
) -> Subgraph:
    """Connect the chains, or without chains the anchors, and what joins them cheaply.

    Parameters
    ----------
    graph : Graph
    ranking : Ranking
        Of a walk over the same graph.
    anchors : frozenset of int
        Vertex ids that must be in: the pet and the sign; each chain adds its cause.
    chains : tuple of Chain
        Candidates. Where some are given and none connects, the result holds no vertex: the
        anchors alone explain nothing.

    Raises
    ------
    GraphError
        A ranking of another graph, an anchor out of range, or no anchor at all.
    """
    if len(ranking.mass) != graph.vertex_count:
        raise GraphError(f"a ranking must be of this graph's {graph.vertex_count} vertices, is of {len(ranking.mass)}")
    if not anchors:
        raise GraphError("an assembly must have at least one anchor, has none")
    for anchor in sorted(anchors):
        if not 0 <= anchor < graph.vertex_count:
            raise GraphError(f"an anchor must be a vertex id in [0, {graph.vertex_count}), is {anchor}")
    top = ranking.top(CANDIDATES)
    # where no vertex has mass there is nothing to weigh against: any unit gives the same tree
    unit = float(ranking.mass[top[:UNIT_RANK][-1]]) if top else 1.0
    union = _chain_trees(graph, ranking, anchors, chains, unit)
    if chains and not union.trees:
        return Subgraph((), (), (), (), (), union.misses, unit, 0.0, 0.0, _ASSEMBLE)
    return _with_context(graph, ranking, anchors, union, _Offered(top, unit))


def _region(graph: Graph, ids: set[int], unit: float) -> _Region:
    found = graph.pairs_within(ids)
    return _Region(np.array(sorted(ids), dtype=np.int32), found, unit / found.belief)


def _chain_trees(
    graph: Graph, ranking: Ranking, anchors: frozenset[int], chains: tuple[Chain, ...], unit: float
) -> _Union:
    """One tree a chain over that chain's edges."""
    trees: list[tuple[tuple[float, str], ChainTree]] = []
    core: dict[int, RecordRef] = {}
    misses: list[NearMiss] = []
    for chain in chains:
        entries = {ref: graph.entry_of(ref) for ref in chain.links}
        walls = tuple(ref for ref, entry in entries.items() if entry is None)
        cause = graph.id_of(chain.cause)
        if walls or cause is None:
            reason = "an edge of its chain is refuted, marked wrong, unknown or outside the household view"
            misses.append(NearMiss(chain.cause.name, reason, walls or chain.links))
            continue
        refs = {entry: ref for ref, entry in entries.items() if entry is not None}
        ends = {entry: _ends(graph, ref) for entry, ref in refs.items()}
        ids = sorted({*anchors, cause, *(v for pair in ends.values() for v in pair)})
        number = {vertex: index for index, vertex in enumerate(ids)}
        instance = Instance(
            len(ids),
            tuple((number[a], number[b], unit / float(graph.belief[entry])) for entry, (a, b) in ends.items()),
            tuple(float(ranking.mass[vertex]) for vertex in ids),
            root=number[min(anchors)],
            required=frozenset(number[vertex] for vertex in (*anchors, cause)),
        )
        tree = solve(instance)
        if tree.unreached:
            apart = ", ".join(graph.names[ids[index]] for index in tree.unreached)
            misses.append(NearMiss(chain.cause.name, f"its chain does not connect {apart}", chain.links))
            continue
        order = list(refs)
        taken = {order[index] for index in tree.edges}
        core.update((entry, refs[entry]) for entry in order if entry in taken)
        edges = tuple(refs[entry] for entry in order if entry in taken)
        # in order of size, so that equal beliefs give the same product in whatever order they stand
        belief = math.prod(sorted(float(graph.belief[entry]) for entry in order if entry in taken))
        made = ChainTree(chain, tuple(graph.vertex(ids[index]) for index in tree.vertices), edges, belief)
        trees.append(((-float(ranking.mass[cause]), chain.cause.name), made))
    listed = tuple(tree for _, tree in sorted(trees, key=lambda pair: pair[0]))
    return _Union(listed, core, tuple(misses))


def _ends(graph: Graph, ref: RecordRef) -> tuple[int, int]:
    """The ids of a live edge's ends."""
    tail, _, head, _ = ref.key.split("|")
    one, other = graph.id_of(tail), graph.id_of(head)
    if one is None or other is None:
        raise GraphError(f"an edge must join vertices that exist, {ref} does not")
    return one, other


def _with_context(
    graph: Graph,
    ranking: Ranking,
    anchors: frozenset[int],
    union: _Union,
    offered: _Offered,
) -> Subgraph:
    """Grow the answer from the chains' union, contracted to one root (or from an anchor)."""
    top, unit = offered
    core = {vertex for ref in union.entries.values() for vertex in _ends(graph, ref)} or {min(anchors)}
    region = _region(graph, {*top, *anchors, *core}, unit)
    positions, *joined = region.contracted(core)
    outside = [vertex for vertex in region.ids.tolist() if vertex not in core]
    number = {vertex: index for index, vertex in enumerate(outside, start=1)}
    instance = Instance(
        len(outside) + 1,
        tuple(zip(*joined, strict=True)),
        (0.0, *ranking.mass[outside].tolist()),
        root=0,
        required=frozenset(number[anchor] for anchor in anchors if anchor not in core),
    )
    tree = solve(instance)
    inside = core | {outside[index - 1] for index in tree.vertices if index}
    rank = {vertex: place for place, vertex in enumerate(top, start=1)}
    behind = len(top) + 1
    context = _by_rank(graph, region.pairs, [positions[edge] for edge in tree.edges], rank, behind)
    spent = sum(unit / float(graph.belief[entry]) for entry in union.entries)
    return Subgraph(
        vertices=tuple(graph.vertex(v) for v in sorted(inside, key=lambda v: (rank.get(v, behind), v))),
        edges=(*union.entries.values(), *context),
        trees=union.trees,
        context=context,
        unconnected=tuple(graph.vertex(outside[index - 1]) for index in tree.unreached),
        near_misses=(*union.misses, *_left_behind(graph, ranking, region, inside, top)),
        unit=unit,
        cost=spent + tree.cost,
        bound=spent + tree.bound,
        token=_ASSEMBLE,
    )


def _by_rank(
    graph: Graph, pairs: Pairs, positions: list[int], rank: Mapping[int, int], behind: int
) -> tuple[RecordRef, ...]:
    """References of some pairs by the rank of the later of their ends."""
    chosen = zip(*(column[positions].tolist() for column in (pairs.tails, pairs.heads, pairs.entries)), strict=True)
    order = sorted((max(rank.get(tail, behind), rank.get(head, behind)), entry) for tail, head, entry in chosen)
    return graph.refs_of([entry for _, entry in order])


def _left_behind(
    graph: Graph, ranking: Ranking, region: _Region, inside: set[int], top: tuple[int, ...]
) -> list[NearMiss]:
    """The best ranked vertices that stayed out, each with what joining it would cost."""
    left = [(place, vertex) for place, vertex in enumerate(top[:UNIT_RANK], start=1) if vertex not in inside]
    left = left[:_NEAR_MISSES]
    away = _away(region, inside, {vertex for _, vertex in left})
    misses: list[NearMiss] = []
    for place, vertex in left:
        worth = f"rank {place}, walk mass {ranking.mass[vertex]:.3g}"
        if vertex in away:
            reason = f"{worth}, but its cheapest connection costs {away[vertex]:.3g}"
        else:
            reason = f"{worth}, but nothing among the {len(top)} first connects it"
        misses.append(NearMiss(graph.names[vertex], reason))
    return misses


def _away(region: _Region, inside: set[int], wanted: set[int]) -> dict[int, float]:
    """The cost of the cheapest way from the inside to each wanted vertex that can be reached: a
    Dijkstra that ends with the last of them.
    """
    if not wanted:
        return {}
    near: dict[int, list[tuple[int, float]]] = {}
    for tail, head, cost in zip(*(c.tolist() for c in region.pairs[:2]), region.costs.tolist(), strict=True):
        near.setdefault(tail, []).append((head, cost))
        near.setdefault(head, []).append((tail, cost))
    away = dict.fromkeys(inside, 0.0)
    heap = [(0.0, vertex) for vertex in sorted(inside)]
    missing = len(wanted)
    while heap and missing:
        distance, vertex = heapq.heappop(heap)
        if distance > away[vertex]:
            continue
        missing -= vertex in wanted
        for other, cost in near.get(vertex, ()):
            if distance + cost < away.get(other, float("inf")):
                away[other] = distance + cost
                heapq.heappush(heap, (distance + cost, other))
    return away


@dataclass(frozen=True, slots=True)
class Admission:
    """What the budget admitted: unit indices kept and cut, and the tokens used."""

    kept: tuple[int, ...]
    cut: tuple[int, ...]
    used: int


def admit(units: Sequence[frozenset[str]], tokens: Mapping[str, int], budget: int) -> Admission:
    """Spend a token budget on units in their given order, skipping what does not fit.

    A unit (the claims of one whole chain, or one claim of context) is admitted whole or not
    at all. A claim that an earlier unit already brought costs nothing again.

    Parameters
    ----------
    units : sequence of frozenset of str
        Claim ids; whole chains first, then context by rank.
    tokens : mapping of str to int
        Size of each claim, at least 0.
    budget : int

    Raises
    ------
    GraphError
        A negative budget or size.
    """
    if budget < 0 or any(size < 0 for size in tokens.values()):
        raise GraphError(
            f"a budget and all sizes must be at least 0, are {budget} and {min(tokens.values(), default=0)}"
        )
    have: set[str] = set()
    kept, cut, used = [], [], 0
    for index, unit in enumerate(units):
        size = sum(tokens[claim] for claim in unit - have)
        if used + size > budget:
            cut.append(index)
            continue
        kept.append(index)
        have |= unit
        used += size
    return Admission(tuple(kept), tuple(cut), used)
