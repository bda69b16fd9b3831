"""The graph the walk crosses: read-only arrays, built from links.

In go `Link`s and a household-view predicate; out comes a frozen `Graph`. An edge that is
refuted, unknown (belief 0), marked wrong by the owner or not walkable is absent from the
matrix, so no walk can put mass across it. Parallel edges between two vertices (two periods,
two relations) count once, with the highest belief. Nothing here reads a file or a clock.

Layout. Vertices are numbered by stable name. The walk eliminates an independent set exactly
(red-black), so the arrays are laid out for it: `Graph.order` lists the red vertices first,
those of most neighbours leading, then the black ones, of which no two are adjacent, those of
fewest neighbours leading and those of none, where no walk passes, at the end. Every pair of
adjacent vertices is one entry of one CSR matrix C of shape (vertices, reds): row = the later
place in `order`, column = the earlier one. A pair costs 12 bytes. (Rows of equal length in a
row, and hubs in the first columns, make a product with C a quarter faster than rows by name:
measured on a million edges.)

Beliefs are kept in steps of 1 / 65535 (a belief above 0 never rounds to 0): a graph that was
packed and unpacked is the graph that was built, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gateway.errors import BeliefError, GraphError
from gateway.graph.belief import edge_order
from gateway.graph.names import Names
from gateway.graph.refs import FiledRefs, Layout
from gateway.graph.splice import Move, Permuted
from gateway.model import Edge, Interval, Link, RecordRef, Vertex

__all__ = [
    "BELIEF_STEPS",
    "NO_REFS",
    "Graph",
    "Names",
    "Pairs",
    "build",
    "canonical_dump",
    "carried",
    "from_arrays",
    "in_view",
    "inverse",
    "is_live",
    "relaid",
]

BELIEF_STEPS = 65535
"""Resolution of a kept belief: one step is 1.5e-5, far below what any source claims."""

NO_REFS: Mapping[RecordRef, int] = MappingProxyType({})
"""No parallel edge."""

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
_Array = TypeVar("_Array", bound=NDArray[Any])


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array


class Pairs(NamedTuple):
    """Adjacent vertices, each pair once: vertex ids, belief, and the entry in the matrix."""

    tails: Ints
    heads: Ints
    belief: Floats
    entries: Ints


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Graph:
    """The household view as read-only arrays (see the module's layout).

    Attributes
    ----------
    names : Names
        Vertex id -> stable name, ascending; an id is the position of its name.
    order : int32 (vertices,)
        The vertex ids in red-black order.
    place : int32 (vertices,)
        Its inverse: where in `order` a vertex stands.
    reds : int
        How many vertices of `order` are red.
    indptr : int32 (vertices + 1,)
    columns : int32 (pairs,)
    belief : float64 (pairs,)
        In (0, 1], in steps of 1 / 65535.
    edges : sequence of RecordRef (pairs,)
        The most believed edge of each pair; empty where the maker kept none. `FiledRefs` of a
        graph from a file.
    parallels : mapping of RecordRef to int
        The entry of every other live edge; empty where `edges` are `FiledRefs`, which know.
    """

    names: Names
    order: Ints
    reds: int
    indptr: Ints
    columns: Ints
    belief: Floats
    edges: Sequence[RecordRef] = ()
    parallels: Mapping[RecordRef, int] = field(default_factory=lambda: NO_REFS)
    place: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", inverse(self.order))
        for array in (self.order, self.place, self.indptr, self.columns, self.belief):
            array.setflags(write=False)

    @property
    def vertex_count(self) -> int:
        return len(self.order)

    @property
    def pair_count(self) -> int:
        return len(self.columns)

    def id_of(self, vertex: Vertex | str) -> int | None:
        """The id of a vertex, or None where the view does not hold it."""
        return self.names.find(str(vertex))

    def vertex(self, vertex_id: int) -> Vertex:
        """The vertex of an id."""
        return Vertex(self.names[vertex_id])

    def lonely(self) -> Ints:
        """The ids of vertices without a pair, ascending."""
        pairs = np.diff(self.indptr)
        pairs[: self.reds] += np.bincount(self.columns, minlength=self.reds).astype(np.int32)
        return np.sort(self.order[pairs == 0])

    def entry_between(self, one: int, other: int) -> int | None:
        """The matrix entry of a pair of vertex ids, or None where they are not adjacent."""
        column, row = sorted((int(self.place[one]), int(self.place[other])))
        if column >= self.reds:
            return None
        start, stop = int(self.indptr[row]), int(self.indptr[row + 1])
        at = start + int(np.searchsorted(self.columns[start:stop], column))
        return at if at < stop and int(self.columns[at]) == column else None

    def entry_of(self, ref: RecordRef) -> int | None:
        """The matrix entry of an edge, or None where that very edge is not live here."""
        parts = ref.key.split("|")
        if ref.kind != "edge" or len(parts) != 4:
            raise GraphError(f"an edge must be named edge:tail|relation|head|from, is {ref}")
        tail, head = self.names.find(parts[0]), self.names.find(parts[2])
        entry = None if tail is None or head is None else self.entry_between(tail, head)
        if entry is None or not len(self.edges):
            return entry
        if isinstance(self.edges, FiledRefs):
            return entry if ref in self.edges.between([entry])[0] else None
        return entry if self.edges[entry] == ref or self.parallels.get(ref) == entry else None

    def refs_of(self, entries: Sequence[int]) -> tuple[RecordRef, ...]:
        """The most believed edge of each of some entries, in one reading; none where the maker kept none."""
        if not len(self.edges):
            return ()
        return tuple(
            self.edges.best(entries) if isinstance(self.edges, FiledRefs) else map(self.edges.__getitem__, entries)
        )

    def pairs_within(self, vertex_ids: Iterable[int]) -> Pairs:
        """The pairs of which both ends are among the vertices, in matrix order."""
        wanted = np.array(sorted(set(vertex_ids)), dtype=np.int64)  # np.unique would load numpy.ma, 7 ms
        if wanted.size and not 0 <= wanted[0] <= wanted[-1] < self.vertex_count:
            raise GraphError(f"a vertex id must lie in [0, {self.vertex_count}), is {wanted[0]} .. {wanted[-1]}")
        inside = np.zeros(self.reds, dtype=bool)
        rows = np.sort(self.place[wanted])
        inside[rows[rows < self.reds]] = True
        starts, counts = self.indptr[rows], self.indptr[rows + 1] - self.indptr[rows]
        # positions of all entries of those rows, without a Python loop over them
        firsts = np.repeat(starts - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        entries = (firsts + np.arange(int(counts.sum()))).astype(np.int32)
        keep = inside[self.columns[entries]]
        entries, tails = entries[keep], np.repeat(rows, counts)[keep]
        return Pairs(self.order[tails], self.order[self.columns[entries]], self.belief[entries], entries)

    def pairs(self) -> Pairs:
        """Every pair of the graph, in matrix order."""
        rows = np.repeat(np.arange(self.vertex_count), np.diff(self.indptr))
        entries = np.arange(self.pair_count, dtype=np.int32)
        return Pairs(self.order[rows], self.order[self.columns], self.belief, entries)


def in_view(edge: Edge, interval: Interval) -> bool:
    """Whether the edge was valid at any time of the interval (an empty one is an instant)."""
    end_ms = max(interval.end_ms, interval.start_ms + 1)
    begun = edge.valid_from_ms is None or edge.valid_from_ms < end_ms
    return begun and (edge.valid_to_ms is None or edge.valid_to_ms > interval.start_ms)


def is_live(link: Link) -> bool:
    """Whether a link may carry mass: believed at all, not refuted, not marked wrong.

    Raises
    ------
    BeliefError
        A belief that is not a number in [0, 1].
    """
    if not 0.0 <= link.belief <= 1.0:
        raise BeliefError(f"a belief must lie in [0, 1], is {link.belief!r} on {link.edge.ref}")
    return link.belief > 0.0 and not link.refuted and not link.marked_wrong


def build(
    links: Iterable[Link],
    walkable: Callable[[Edge], bool],
    *,
    vertices: Iterable[Vertex] | None = None,
) -> Graph:
    """Lay out the household view of some links.

    Parameters
    ----------
    links : iterable of Link
        In any order; the arrays depend on the set alone.
    walkable : callable
        The household view: whether the walk may cross an edge of this relation and these
        kinds (a table of the ontology). It reads the edge, never the belief.
    vertices : iterable of Vertex, optional
        Every vertex there is. Where it is given, an edge to any other is an error, and
        vertices without a live edge are kept; else the ends of all links are the vertices.

    Raises
    ------
    BeliefError
        A belief outside [0, 1] or not a number, naming the edge.
    GraphError
        An edge to a vertex that is not there, or from a vertex to itself.
    """
    ordered = sorted(links, key=lambda link: edge_order(link.edge))
    ends = {end.name for link in ordered for end in (link.edge.tail, link.edge.head)}
    if vertices is not None:
        known = {vertex.name for vertex in vertices}
        for link in ordered:
            for end in (link.edge.tail, link.edge.head):
                if end.name not in known:
                    raise GraphError(f"an edge must join vertices that exist, {link.edge.ref} needs {end}")
        ends = known
    names = sorted(ends)
    number = {name: index for index, name in enumerate(names)}
    live = [link for link in ordered if is_live(link) and walkable(link.edge)]
    return from_arrays(
        Names.of(names),
        np.array([number[link.edge.tail.name] for link in live], dtype=np.int32),
        np.array([number[link.edge.head.name] for link in live], dtype=np.int32),
        np.array([link.belief for link in live], dtype=np.float64),
        edges=[link.edge.ref for link in live],
    )


def from_arrays(
    names: Names,
    tails: NDArray[np.integer[Any]],
    heads: NDArray[np.integer[Any]],
    belief: Floats,
    *,
    edges: Sequence[RecordRef] = (),
) -> Graph:
    """Lay out live edges given as arrays.

    Parameters
    ----------
    names : Names
    tails, heads : int (edges,)
        Vertex ids, undirected; parallel edges keep the highest belief (the first of equals).
    belief : float64 (edges,)
        In [0, 1]; 0 is a wall and leaves no entry.
    edges : sequence of RecordRef (edges,), optional

    Raises
    ------
    BeliefError, GraphError
        As `build`; without ``edges`` the message names vertices and the edge's position.
    """
    _check_arrays(names, tails, heads, belief, edges)
    alive = np.flatnonzero(belief > 0.0)
    low = np.minimum(tails, heads).astype(np.int64)[alive]
    high = np.maximum(tails, heads).astype(np.int64)[alive]
    # by pair, most believed first, then as given: the first of each pair is kept
    ranked = np.lexsort((alive, -belief[alive], high, low))
    low, high, alive = low[ranked], high[ranked], alive[ranked]
    first = np.ones(len(alive), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    pair = np.cumsum(first) - 1
    kept, others, of_pair = alive[first], alive[~first], pair[~first]
    low, high = low[first], high[first]
    steps = np.maximum(1.0, np.rint(belief[kept] * BELIEF_STEPS)) / BELIEF_STEPS
    laid = _laid_out(names, low, high, steps, _independent_set(len(names), low, high))
    if not len(edges):
        return laid.graph((), NO_REFS)
    entries = laid.entry_of_pair()[of_pair]
    beside = {edges[other]: entry for other, entry in zip(others.tolist(), entries.tolist(), strict=True)}
    return laid.graph(tuple(edges[at] for at in kept[laid.pair].tolist()), MappingProxyType(beside))


class _Layout(NamedTuple):
    """A matrix without references, and which of the given pairs each entry is."""

    names: Names
    order: Ints
    reds: int
    indptr: Ints
    columns: Ints
    belief: Floats
    pair: NDArray[np.int64]

    def entry_of_pair(self) -> NDArray[np.int64]:
        """The inverse of ``pair``."""
        entries = np.empty(len(self.pair), dtype=np.int64)
        entries[self.pair] = np.arange(len(self.pair))
        return entries

    def graph(self, edges: Sequence[RecordRef], parallels: Mapping[RecordRef, int]) -> Graph:
        """The graph with these references, one an entry."""
        return Graph(self.names, self.order, self.reds, self.indptr, self.columns, self.belief, edges, parallels)


def inverse(order: Ints) -> Ints:
    """Where each number stands in a permutation."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def _laid_out(
    names: Names, low: NDArray[np.int64], high: NDArray[np.int64], belief: Floats, black: NDArray[np.bool_]
) -> _Layout:
    """The matrix of pairs, given which vertices are black (an independent set)."""
    n = len(names)
    degree = np.bincount(low, minlength=n) + np.bincount(high, minlength=n)
    reds = int(n - black.sum())
    by_degree = np.where(black, np.where(degree > 0, degree, n), -degree)
    order = np.lexsort((by_degree, black)).astype(np.int32)
    place = inverse(order)
    rows, columns = np.maximum(place[low], place[high]), np.minimum(place[low], place[high])
    entry = np.argsort(rows.astype(np.int64) * max(1, reds) + columns, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n)))).astype(np.int32)
    return _Layout(names, order, reds, indptr, columns[entry].astype(np.int32), belief[entry], entry)


def relaid(graph: Graph, *, without: frozenset[int] = frozenset()) -> Graph:
    """The same pairs and beliefs, laid out as `from_arrays` lays them out.

    ``without`` are ids of vertices to drop; they must have no pair.

    Raises
    ------
    GraphError
        One of them has a pair.
    """
    held = graph.pairs()
    stays = np.ones(graph.vertex_count, dtype=bool)
    stays[sorted(without)] = False
    if not (stays[held.tails].all() and stays[held.heads].all()):
        raise GraphError(f"a vertex must have no pair to be dropped, one of {len(without)} has some")
    names = Names.of(graph.names[v] for v in np.flatnonzero(stays).tolist()) if without else graph.names
    number = np.cumsum(stays) - 1
    low, high = number[np.minimum(held.tails, held.heads)], number[np.maximum(held.tails, held.heads)]
    by_ids = np.lexsort((high, low))
    low, high = low[by_ids], high[by_ids]
    laid = _laid_out(names, low, high, held.belief[by_ids], _independent_set(len(names), low, high))
    layout = Layout(names, laid.order, laid.indptr, laid.columns)
    return laid.graph(*carried(graph, Permuted(by_ids[laid.pair]), (), NO_REFS, layout))


def carried(
    graph: Graph, move: Move, joined: Sequence[RecordRef], parallels: Mapping[RecordRef, int], layout: Layout
) -> tuple[Sequence[RecordRef], Mapping[RecordRef, int]]:
    """A graph's references after its entries moved to a layout and others ``joined``; ``parallels``
    are those beside the joined ones, by the position of these.
    """
    if isinstance(graph.edges, FiledRefs):
        pairs = [[ref] for ref in joined]
        for ref, position in parallels.items():
            pairs[position].append(ref)
        return graph.edges.moved(move, [tuple(refs) for refs in pairs], layout), NO_REFS
    if not len(graph.edges) and graph.pair_count:
        return (), NO_REFS
    at = move.fresh_positions(len(joined))
    stand = move.positions(np.array(list(graph.parallels.values()), dtype=np.int32)).tolist()
    others = {ref: entry for ref, entry in zip(graph.parallels, stand, strict=True) if entry >= 0}
    others.update((ref, int(at[position])) for ref, position in parallels.items())
    everything, numbers = (*graph.edges, *joined), np.arange(graph.pair_count + len(joined))
    moved = move.take(numbers[: graph.pair_count], numbers[graph.pair_count :])
    return tuple(everything[i] for i in moved), MappingProxyType(others)


def _check_arrays(
    names: Names,
    tails: NDArray[np.integer[Any]],
    heads: NDArray[np.integer[Any]],
    belief: Floats,
    edges: Sequence[RecordRef],
) -> None:
    """Refuse what is not a graph, naming the first offending edge and its value."""
    if not len(tails) == len(heads) == len(belief):
        raise GraphError(
            f"tails, heads and belief must be equally long, are {len(tails)}, {len(heads)} and {len(belief)}"
        )
    if len(edges) and len(edges) != len(tails):
        raise GraphError(f"edge references must be as many as the edges, {len(tails)}, are {len(edges)}")

    def name(position: int) -> str:
        return str(edges[position]) if len(edges) else f"edge {position} ({tails[position]} to {heads[position]})"

    bad = np.flatnonzero(~((belief >= 0.0) & (belief <= 1.0)))
    if bad.size:
        raise BeliefError(f"a belief must lie in [0, 1], is {float(belief[bad[0]])!r} on {name(int(bad[0]))}")
    gone = np.flatnonzero((np.minimum(tails, heads) < 0) | (np.maximum(tails, heads) >= len(names)))
    if gone.size:
        raise GraphError(f"an edge must join two of the {len(names)} vertices, {name(int(gone[0]))} does not")
    loops = np.flatnonzero(tails == heads)
    if loops.size:
        raise GraphError(f"an edge must join two different vertices, {name(int(loops[0]))} does not")


def _independent_set(n: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Greedy independent set, vertices of few neighbours first: True = black.

    Equal degrees are ordered by a multiplicative hash of the id, so that a long chain of
    equals (days, passages) is decided in a few rounds and not one vertex a round; the result
    is that of the sequential greedy in that order (Blelloch, Fineman, Shun 2012).
    """
    degree = np.bincount(low, minlength=n) + np.bincount(high, minlength=n)
    scattered = (np.arange(n, dtype=np.uint64) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((scattered, degree))] = np.arange(n)
    black = np.zeros(n, dtype=bool)
    open_ = np.ones(n, dtype=bool)
    while open_.any():
        best = np.full(n, n, dtype=np.int64)
        np.minimum.at(best, low, rank[high])
        np.minimum.at(best, high, rank[low])
        chosen = open_ & (rank < best)
        black |= chosen
        open_ &= ~chosen
        open_[low[chosen[high]]] = False
        open_[high[chosen[low]]] = False
        undecided = open_[low] & open_[high]
        low, high = low[undecided], high[undecided]
    return black


def canonical_dump(links: Iterable[Link]) -> bytes:
    """The graph's bytes: one JSON line an edge by stable name, with evidence and masses.

    This is what "byte for byte the same graph" means: walls, evidence and every number to
    its last bit (JSON writes the shortest decimal that reads back exactly).
    """
    lines = []
    for link in sorted(links, key=lambda link: edge_order(link.edge)):
        edge = link.edge
        row = {
            "edge": edge.ref.text,
            "to": edge.valid_to_ms,
            "belief": link.belief,
            "plausibility": link.plausibility,
            "conflict": link.conflict,
            "refuted": link.refuted,
            "wall": link.marked_wrong,
            "evidence": [
                [e.record.text, e.witness, e.reliability, e.mass.true, e.mass.false, e.span] for e in link.evidence
            ],
        }
        lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    return "".join(line + "\n" for line in lines).encode()
