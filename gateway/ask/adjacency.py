"""The graph of a large home: its stored snapshot with what changed, instead of every row.

In goes a snapshot of the database and the time a question looks at; out comes the `Graph` that
building from all links would give, or None where the home is small and building is as quick.

The rule: a home of `LEAST_EDGES` timeless edges and more (imported products, guides) gets a
snapshot, and where there is one it is used. It holds no fact that depends on the time asked
about: pairs with a dated edge, with a mark of the owner or with a logged change are folded
from their rows for each question. So an as-of view is as exact as today's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gateway.graph.adjacency import Graph, from_arrays, in_view, is_live, relaid
from gateway.graph.belief import edge_order, fold
from gateway.graph.changes import updated
from gateway.graph.names import Names
from gateway.graph.packed import Packed, pack, unpack
from gateway.stored import AdjacencySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateway.model import Edge, Interval, RecordRef
    from gateway.ontology.vocabulary import Ontology
    from gateway.store.reads import Reader

__all__ = [
    "CHANGES_BOUND",
    "LARGE_ERROR",
    "LARGE_PAIRS",
    "LEAST_EDGES",
    "is_due",
    "kept_graph",
    "rewritten",
    "walkable_in",
]

LEAST_EDGES = 2_000
"""Building from 2,000 links takes a tenth of a second and grows with them, a snapshot opens in 1
to 5 ms; an ordinary home has a few hundred edges, built in 10 to 30 ms (tests/bench_large_home.py)."""

LARGE_PAIRS = 20_000
"""A graph of so many pairs is walked to `LARGE_ERROR`."""

CHANGES_BOUND = 1_000
"""Changed pairs beside a snapshot before it is written again: folding them costs each question
some 50 ms by then."""

LARGE_ERROR = 1e-6
"""Certified L1 error of a large home's walk: a fourth of its passes less than at 1e-9, which a
small home gets for a tenth of a millisecond."""


def walkable_in(ontology: Ontology) -> Callable[[Edge], bool]:
    """The household view: walkable relations between crossable things."""

    def walkable(edge: Edge) -> bool:
        return ontology.walkable(edge.relation) and ontology.crossable(edge.tail) and ontology.crossable(edge.head)

    return walkable


@dataclass(frozen=True, slots=True)
class _Filed:
    """The edges' rows of a snapshot of the database, as a graph asks for them."""

    reader: Reader
    ontology: Ontology

    def live_between(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[RecordRef, ...]]:
        """The live edges between the things of each pair, the most believed first: as `build` counts them.

        A graph asks for pairs that it holds and nothing changed since, so an edge that is alone is live.
        """
        found = self.reader.edges_between(pairs)
        return [refs if len(refs) < 2 else self._ranked(*pair) for pair, refs in zip(pairs, found, strict=True)]

    def _ranked(self, one: str, other: str) -> tuple[RecordRef, ...]:
        walkable = walkable_in(self.ontology)
        links = [fold(row.edge, row.evidence) for row in self.reader.rows_between(one, other)]
        live = [link for link in links if is_live(link) and walkable(link.edge)]
        live.sort(key=lambda link: (-link.belief, edge_order(link.edge)))
        return tuple(link.edge.ref for link in live)


def _view(ontology: Ontology) -> str:
    """A name of the household view: another one where its tables say something else."""
    tables = (
        sorted((name, relation.walkable) for name, relation in ontology.relations.items()),
        sorted((name, kind.walk) for name, kind in ontology.vertex_kinds.items()),
    )
    return hashlib.sha256(repr(tables).encode()).hexdigest()[:16]


def is_due(reader: Reader, ontology: Ontology, *, least: int = LEAST_EDGES, bound: int = CHANGES_BOUND) -> bool:
    """Whether the snapshot must be written (again): none where one pays, one of another view or
    damaged, or more changes beside it than the bound.
    """
    if not reader.has_timeless_edges(least=least):
        return False
    kept = reader.adjacency()
    return kept is None or kept.view != _view(ontology) or reader.adjacency_changes() > bound


def kept_graph(
    reader: Reader,
    ontology: Ontology,
    view: Interval,
    *,
    now_ms: int,
    chained: frozenset[RecordRef] = frozenset(),
) -> Graph | None:
    """The household graph from its snapshot; None where there is none for this view.

    Parameters
    ----------
    view : Interval
        Dated edges count where they are valid at any time in it.
    now_ms : int
        Edges that begin later, and marks made later, do not exist yet.
    chained : frozenset of RecordRef
        Edges that count whenever they were valid.
    """
    kept = reader.adjacency()
    if kept is None or kept.view != _view(ontology):
        return None
    walls = {edge for _, edge, _, _, _ in reader.walls(at_ms=now_ms) if edge is not None}
    links = []
    for row in reader.edges_beside():
        edge, ref = row.edge, row.edge.ref
        begun = edge.valid_from_ms is None or edge.valid_from_ms <= now_ms
        if begun and (in_view(edge, view) or ref in chained):
            links.append(fold(edge, row.evidence, marked_wrong=ref.text in walls))
    graph = unpack(Packed(kept.arrays, kept.names), book=_Filed(reader, ontology))
    pairs = reader.pairs_beside()
    return updated(graph, links, walkable_in(ontology), pairs=pairs) if pairs else graph


def rewritten(reader: Reader, ontology: Ontology) -> AdjacencySnapshot:
    """A snapshot of all timeless edges as they stand; the owner's marks are not in it.

    From the last snapshot and its changes where it is of this view, else from every row (half
    a minute a million edges): the same bytes either way.
    """
    kept = reader.adjacency()
    if kept is None or kept.view != _view(ontology):
        packed = pack(_from_rows(reader, ontology))
    else:
        packed = _packed_again(reader, ontology, kept)
    return AdjacencySnapshot(_view(ontology), *packed)


def _packed_again(reader: Reader, ontology: Ontology, kept: AdjacencySnapshot) -> Packed:
    """The kept graph with the timeless edges of the changed pairs, laid out anew."""
    timeless = [row for row in reader.edges_beside() if row.edge.valid_from_ms is None and row.edge.valid_to_ms is None]
    graph = updated(
        unpack(Packed(kept.arrays, kept.names)),
        [fold(row.edge, row.evidence) for row in timeless],
        walkable_in(ontology),
        pairs=reader.pairs_beside(),
    )
    lonely = graph.lonely().tolist()
    needed = reader.in_timeless_edges(tuple(graph.names[vertex] for vertex in lonely))
    dropped = frozenset(vertex for vertex in lonely if graph.names[vertex] not in needed)
    return pack(relaid(graph, without=dropped))


def _from_rows(reader: Reader, ontology: Ontology) -> Graph:
    """The graph of every timeless edge: arrays are gathered row by row, no link is kept."""
    walkable = walkable_in(ontology)
    number: dict[str, int] = {}
    tails, heads, belief = [], [], []
    for row in reader.timeless_edges():
        tail, head = (number.setdefault(end.name, len(number)) for end in (row.edge.tail, row.edge.head))
        link = fold(row.edge, row.evidence)
        if is_live(link) and walkable(row.edge):
            tails.append(tail)
            heads.append(head)
            belief.append(link.belief)
    names = sorted(number)
    place = np.empty(len(names), dtype=np.int32)
    place[[number[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return from_arrays(
        Names.of(names),
        place[np.array(tails, dtype=np.int64)],
        place[np.array(heads, dtype=np.int64)],
        np.array(belief, dtype=np.float64),
    )
