"""Walk and assemble: the one ranker and the one assembly, called for one question.

Seeds are ids, chains are ids: no figure of the question can reach the ranking. The account
of what happened (mass, certificate, cost, bound, near-misses) is kept for ``--explain``.

Rivals are listed by how far the chain of each is believed as a whole. The mass of a walk that starts
at the rivals themselves does not tell them apart: it grows with whatever else a cause is joined to,
so that it put the longest leaflet first (DECISIONS 96).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.adjacency import LARGE_ERROR, LARGE_PAIRS, walkable_in
from gateway.graph.adjacency import Graph, build, in_view
from gateway.graph.assemble import ChainTree, Subgraph, assemble
from gateway.graph.communities import communities_within
from gateway.graph.walk import Ranking, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.ask.onfile import Known
    from gateway.ask.scene import Scene
    from gateway.model import Chain, Interval, Link, NearMiss, RecordRef, Vertex

__all__ = ["Connected", "connect", "household_view"]

_SHOWN = 12
_STEP = LARGE_ERROR
"""What two walks must differ by to be told apart: no walk is further from the exact one."""


@dataclass(frozen=True, slots=True)
class Connected:
    """The connected answer: chains, the best believed first, their trees' edges, and how it came about.

    One cause may reach the sign by several ingredients; those chains stand together.
    """

    chains: tuple[Chain, ...]
    edges: tuple[RecordRef, ...]
    links: dict[RecordRef, Link]
    near_misses: tuple[NearMiss, ...]
    account: tuple[str, ...]

    def by_cause(self) -> tuple[tuple[Chain, ...], ...]:
        """The chains of each cause, causes in the order of their best chains."""
        grouped: dict[str, list[Chain]] = {}
        for chain in self.chains:
            grouped.setdefault(chain.cause.name, []).append(chain)
        return tuple(tuple(chains) for chains in grouped.values())


def household_view(scene: Scene, known: Known, view: Interval, *, chained: frozenset[RecordRef] = frozenset()) -> Graph:
    """The graph the walk crosses: walkable relations between crossable things, valid in ``view``.

    Edges of a candidate's chain belong to it too: a treatment may have ended within the slack
    that its onset is given, a day before the view begins. A large home has a stored snapshot, and where
    there is one the graph comes from it; else it is built from every link.
    """
    kept = known.compact(scene.ontology, view, chained)
    if kept is not None:
        return kept
    counted = (link for link in known.everything() if in_view(link.edge, view) or link.edge.ref in chained)
    return build(counted, walkable_in(scene.ontology))


def connect(
    scene: Scene, known: Known, chains: tuple[Chain, ...], *, pet: Vertex, sign: Vertex, view: Interval
) -> Connected:
    """Rank the candidates by one walk and connect each by its own tree.

    Without a candidate there is nothing to connect: no tree, and no account but that.
    """
    chained = frozenset(ref for chain in chains for ref in chain.links)
    by_ref = _by_ref(known, chained)
    graph = household_view(scene, known, view, chained=chained)
    anchors = [graph.id_of(vertex) for vertex in (pet, sign)]
    causes = {graph.id_of(chain.cause) for chain in chains}
    seeds = frozenset(vertex for vertex in (*anchors, *causes) if vertex is not None)
    if not chains or not seeds:
        nothing = f"household view: {graph.vertex_count} vertices, {graph.pair_count} pairs; no candidate, no tree"
        return Connected((), (), by_ref, (), (nothing,))
    ranking = _walked(graph, seeds)
    required = frozenset(vertex for vertex in anchors if vertex is not None)
    if len(required) < 2:
        return Connected((), (), by_ref, (), ("the pet or the sign is not in the household view; no tree",))
    subgraph = assemble(graph, ranking, required, chains)
    trees = _listed(graph, subgraph.trees, sign)
    edges = tuple(dict.fromkeys(ref for tree in trees for ref in tree.edges))
    account = tuple(_account(graph, ranking, subgraph, trees))
    return Connected(tuple(tree.chain for tree in trees), edges, by_ref, subgraph.near_misses, account)


def _walked(graph: Graph, seeds: frozenset[int]) -> Ranking:
    return walk(graph, seeds, tol=LARGE_ERROR) if graph.pair_count >= LARGE_PAIRS else walk(graph, seeds)


def _listed(graph: Graph, trees: tuple[ChainTree, ...], sign: Vertex) -> tuple[ChainTree, ...]:
    """The trees cause by cause: the cause first whose best chain is believed furthest, its best chain first.

    Causes that are believed alike stand by how much of a walk from each ends at the sign: what is
    said to do everything says less of each. Equals of that, too, stand by name.
    """
    best: dict[Vertex, float] = {}
    for tree in trees:
        best[tree.chain.cause] = max(best.get(tree.chain.cause, 0.0), tree.belief)
    alike = Counter(best.values())
    reach = {cause: _reach(graph, cause, sign) if alike[belief] > 1 else 0 for cause, belief in best.items()}

    def place(tree: ChainTree) -> tuple[float, int, str, float, tuple[RecordRef, ...]]:
        cause = tree.chain.cause
        return (-best[cause], -reach[cause], cause.name, -tree.belief, tree.chain.links)

    return tuple(sorted(trees, key=place))


def _reach(graph: Graph, cause: Vertex, sign: Vertex) -> int:
    """How much of a walk from the cause ends at the sign, in steps that every walk is exact to."""
    start, end = graph.id_of(cause), graph.id_of(sign)
    if start is None or end is None:
        return 0
    ranking = _walked(graph, frozenset({start}))
    return round(float(ranking.mass[end]) / _STEP)


def _by_ref(known: Known, refs: frozenset[RecordRef]) -> dict[RecordRef, Link]:
    """The links of some references."""
    tails = sorted({ref.key.partition("|")[0] for ref in refs})
    return {link.edge.ref: link for tail in tails for link in known.leaving(tail) if link.edge.ref in refs}


def _account(graph: Graph, ranking: Ranking, subgraph: Subgraph, trees: tuple[ChainTree, ...]) -> Iterable[str]:
    yield f"household view: {graph.vertex_count} vertices, {graph.pair_count} pairs"
    yield f"seeds: {', '.join(sorted(graph.names[seed] for seed in ranking.seeds))}"
    yield (
        f"walk: restart {ranking.restart}, hub exponent {ranking.hub_exponent}, {ranking.iterations} iterations, "
        f"L1 error at most {ranking.error:.2g}"
    )
    for place, vertex in enumerate(ranking.top(_SHOWN), start=1):
        yield f"  {place:2d}. {ranking.mass[vertex]:.5f}  {graph.names[vertex]}"
    yield f"tree: cost {subgraph.cost:.6g}, lower bound {subgraph.bound:.6g}, gap {100 * subgraph.gap:.2f} %"
    for ref in subgraph.edges:
        yield f"  {ref.key}"
    for tree in trees:
        yield f"chain: {tree.chain.cause.name} believed {tree.belief:.3g}, {len(tree.edges)} links"
    connected = [found for name in subgraph.vertices if (found := graph.id_of(name)) is not None]
    for group in communities_within(graph, connected):
        yield f"belong together: {', '.join(graph.names[found] for found in sorted(group))}"
    for miss in subgraph.near_misses:
        yield f"near miss: {miss.what}: {miss.reason}"
