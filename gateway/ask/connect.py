"""Walk and assemble: the one ranker and the one assembly, called for one question.

Seeds are ids, chains are ids: no figure of the question can reach the ranking. The account
of what happened (mass, certificate, cost, bound, near-misses) is kept for ``--explain``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.adjacency import LARGE_ERROR, LARGE_PAIRS, walkable_in
from gateway.graph.adjacency import Graph, build, in_view
from gateway.graph.assemble import Subgraph, assemble
from gateway.graph.communities import communities_within
from gateway.graph.walk import Ranking, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.ask.onfile import Known
    from gateway.ask.scene import Scene
    from gateway.model import Chain, Interval, Link, NearMiss, RecordRef, Vertex

__all__ = ["Connected", "connect", "household_view"]

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Connected:
    """The connected answer: chains in walk order, their trees' edges, and how it came about.

    One cause may reach the sign by several ingredients; those chains stand together.
    """

    chains: tuple[Chain, ...]
    edges: tuple[RecordRef, ...]
    links: dict[RecordRef, Link]
    near_misses: tuple[NearMiss, ...]
    account: tuple[str, ...]

    def by_cause(self) -> tuple[tuple[Chain, ...], ...]:
        """The chains of each cause, causes in walk order."""
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
        account = (f"household view: {graph.vertex_count} vertices, {graph.pair_count} pairs; no candidate, no tree",)
        return Connected((), (), by_ref, (), account)
    ranking = walk(graph, seeds, tol=LARGE_ERROR) if graph.pair_count >= LARGE_PAIRS else walk(graph, seeds)
    required = frozenset(vertex for vertex in anchors if vertex is not None)
    if len(required) < 2:
        return Connected((), (), by_ref, (), ("the pet or the sign is not in the household view; no tree",))
    subgraph = assemble(graph, ranking, required, chains)
    chains = tuple(tree.chain for tree in subgraph.trees)
    edges = tuple(dict.fromkeys(ref for tree in subgraph.trees for ref in tree.edges))
    return Connected(chains, edges, by_ref, subgraph.near_misses, tuple(_account(graph, ranking, subgraph)))


def _by_ref(known: Known, refs: frozenset[RecordRef]) -> dict[RecordRef, Link]:
    """The links of some references."""
    tails = sorted({ref.key.partition("|")[0] for ref in refs})
    return {link.edge.ref: link for tail in tails for link in known.leaving(tail) if link.edge.ref in refs}


def _account(graph: Graph, ranking: Ranking, subgraph: Subgraph) -> Iterable[str]:
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
    connected = [found for name in subgraph.vertices if (found := graph.id_of(name)) is not None]
    for group in communities_within(graph, connected):
        yield f"belong together: {', '.join(graph.names[found] for found in sorted(group))}"
    for miss in subgraph.near_misses:
        yield f"near miss: {miss.what}: {miss.reason}"
