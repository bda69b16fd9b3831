"""A graph after some of its pairs changed, by splicing and not by building.

In go a `Graph` and all links there are now between the pairs that changed; out comes another
`Graph` in a few passes over the arrays. The given graph is untouched.

The red-black order stays as it is but for what must move, and everything that moves stands
at the end of the reds or of the blacks: a black vertex that met a black one turns red, a red
one that lost its last pair turns black, and a new vertex is black where it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.graph.adjacency import Graph, build, carried
from gateway.model import Edge, Link

__all__ = ["updated"]

Ints = NDArray[np.integer[Any]]


class _Places(NamedTuple):
    """Where every vertex goes.

    ``order`` holds new vertex ids, reds first; ``promoted`` the old places of blacks that turn
    red, in their new order; ``of_old`` the new place of each old one.
    """

    order: NDArray[np.int32]
    reds: int
    promoted: Ints
    of_old: Ints


def updated(
    graph: Graph,
    links: Iterable[Link],
    walkable: Callable[[Edge], bool],
    *,
    pairs: Iterable[tuple[str, str]] = (),
) -> Graph:
    """The graph after some links changed.

    Parameters
    ----------
    graph : Graph
    links : iterable of Link
        For every pair of vertices that changed, all links there are between the two now:
        they replace whatever the graph holds between them. New vertices join by name.
    walkable : callable
        The household view, as for `build`.
    pairs : iterable of (str, str)
        Names of pairs that changed, also those between which nothing is left.

    Returns
    -------
    Graph
        The same pairs, beliefs and references as a rebuild. Its red-black order may be another
        one, so walks agree to their certificates and not to the bit; `relaid` restores the
        order. A vertex whose last link is gone stays, without a pair.
    """
    links = tuple(links)
    patch = build(links, walkable)
    joined = graph.names.joined(patch.names)
    gone = _entries_between(graph, patch, joined.held, links, pairs)
    fresh = patch.pairs()
    tails, heads = joined.added[fresh.tails], joined.added[fresh.heads]

    places = _placed(graph, gone, joined.moved, joined.names, (tails, heads))
    place = _inverse(places.order)
    kept = _kept_entries(graph, gone, places.promoted)
    counts = np.zeros(len(places.order), dtype=np.int64)
    counts[places.of_old] = np.diff(graph.indptr) - np.bincount(_rows_of(graph, gone), minlength=graph.vertex_count)
    columns = places.of_old[graph.columns[kept]]
    row, column = np.maximum(place[tails], place[heads]), np.minimum(place[tails], place[heads])
    by_place = np.lexsort((column, row))
    row, column = row[by_place], column[by_place]
    starts = np.concatenate(([0], np.cumsum(counts)))
    at = [
        int(starts[r] + np.searchsorted(columns[starts[r] : starts[r + 1]], c))
        for r, c in zip(row.tolist(), column, strict=True)
    ]
    source = np.insert(kept, at, graph.pair_count + by_place)
    position = np.full(graph.pair_count + len(row), -1, dtype=np.int32)
    position[source] = np.arange(len(source), dtype=np.int32)
    parallels = {ref: int(position[graph.pair_count + entry]) for ref, entry in patch.parallels.items()}
    edges, others = carried(graph, source, position, tuple(patch.edges), parallels)
    counts += np.bincount(row, minlength=len(counts))
    return Graph(
        names=joined.names,
        order=places.order,
        reds=places.reds,
        indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        columns=np.insert(columns, at, column),
        belief=np.concatenate((graph.belief, fresh.belief))[source],
        edges=edges,
        parallels=others,
    )


def _inverse(order: Ints) -> NDArray[np.int32]:
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def _entries_between(
    graph: Graph, patch: Graph, held: Ints, links: tuple[Link, ...], pairs: Iterable[tuple[str, str]]
) -> NDArray[np.int64]:
    """The entries of the pairs that changed, ascending; ``held`` are the graph's ids of the patch's."""
    ids = dict(zip(patch.names, held.tolist(), strict=True))
    changed = {(link.edge.tail.name, link.edge.head.name) for link in links} | set(pairs)
    for name in {name for pair in changed for name in pair} - ids.keys():
        found = graph.names.find(name)
        ids[name] = -1 if found is None else found
    entries = {graph.entry_between(ids[tail], ids[head]) for tail, head in changed if ids[tail] >= 0 and ids[head] >= 0}
    return np.array(sorted(entry for entry in entries if entry is not None), dtype=np.int64)


def _rows_of(graph: Graph, entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places whose rows hold those entries."""
    return np.searchsorted(graph.indptr, entries, side="right").astype(np.int64) - 1


def _kept_entries(graph: Graph, gone: NDArray[np.int64], promoted: Ints) -> NDArray[np.int32]:
    """The entries that stay, in their new order: reds' rows, those of the promoted, blacks'."""
    entries = np.arange(graph.pair_count, dtype=np.int32)
    split = int(graph.indptr[graph.reds])
    keep = np.ones(graph.pair_count, dtype=bool)
    keep[gone] = False
    slices = []
    for place in promoted.tolist():
        row = slice(int(graph.indptr[place]), int(graph.indptr[place + 1]))
        slices.append(entries[row][keep[row]])
        keep[row] = False
    if keep.all():
        return entries
    return np.concatenate((entries[:split][keep[:split]], *slices, entries[split:][keep[split:]]))


def _placed(graph: Graph, gone: NDArray[np.int64], moved: Ints, names: Sized, fresh: tuple[Ints, Ints]) -> _Places:
    """Who is red now, and where everybody stands.

    Of two black vertices that meet, the one of fewer pairs turns red; of equals the later one.
    """
    count, (tails, heads) = len(names), fresh
    of_order = moved[graph.order]
    old_place = np.full(count, -1, dtype=np.int32)
    old_place[of_order] = np.arange(graph.vertex_count, dtype=np.int32)
    red = (old_place >= 0) & (old_place < graph.reds)
    row_length = np.diff(graph.indptr)
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        if not red[tail] and not red[head]:
            pairs = [int(row_length[old_place[v]]) if old_place[v] >= 0 else 0 for v in (tail, head)]
            red[max(tail, head) if pairs[0] == pairs[1] else (tail, head)[pairs.index(min(pairs))]] = True
    was_red, was_black = of_order[: graph.reds], of_order[graph.reds :]
    if len(gone):
        rows = _rows_of(graph, gone)
        left = np.bincount(graph.columns, minlength=graph.reds) + row_length[: graph.reds]
        left -= np.bincount(graph.columns[gone], minlength=graph.reds)
        left -= np.bincount(rows[rows < graph.reds], minlength=graph.reds)
        left += np.isin(was_red, np.concatenate((tails, heads)))
        red[was_red[left == 0]] = False
    new = np.flatnonzero(old_place < 0).astype(np.int32)
    promoted = was_black[red[was_black]]
    first = np.concatenate((was_red[red[was_red]], promoted, new[red[new]]))
    last = np.concatenate((was_black[~red[was_black]], was_red[~red[was_red]], new[~red[new]]))
    order = np.concatenate((first, last)).astype(np.int32)
    return _Places(order, len(first), old_place[promoted], _inverse(order)[of_order])
