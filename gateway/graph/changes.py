"""A graph after some of its pairs changed, by splicing and not by building.

In go a `Graph` and all links there are now between the pairs that changed; out comes another
`Graph` in a few passes over the arrays. The given graph is untouched.

The red-black order stays as it is but for what must move, and everything that moves stands
at the end of the reds or of the blacks: a black vertex that met a black one turns red, a red
one that lost its last pair turns black, and a new vertex is black where it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.graph.adjacency import Graph, build, carried, inverse
from gateway.graph.refs import Layout
from gateway.graph.splice import Splice
from gateway.model import Edge, Link

__all__ = ["updated"]

Ints = NDArray[np.integer[Any]]
Int32s = NDArray[np.int32]


class _Places(NamedTuple):
    """Where every vertex goes.

    ``order`` holds new vertex ids, reds first; ``promoted`` the old places of blacks that turn
    red, in their new order; ``of_old`` the new place of each old one; ``shifted`` says whether
    an old red that stays red has another place.
    """

    order: Int32s
    reds: int
    promoted: Ints
    of_old: Int32s
    shifted: bool


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
    places = _placed(graph, gone, joined.moved, len(joined.names), (tails, heads))
    place = inverse(places.order)
    rows, columns = np.maximum(place[tails], place[heads]), np.minimum(place[tails], place[heads])
    splice = _spliced(graph, gone, places, rows, columns)
    counts = np.bincount(rows, minlength=len(place))
    counts[places.of_old] += np.diff(graph.indptr)
    np.subtract.at(counts, places.of_old[_rows_of(graph, gone)], 1)
    held_columns = places.of_old[graph.columns] if places.shifted else graph.columns
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    layout = Layout(joined.names, places.order, indptr, splice.take(held_columns, columns))
    edges, others = carried(graph, splice, tuple(patch.edges), patch.parallels, layout)
    return Graph(
        names=layout.names,
        order=layout.order,
        reds=places.reds,
        indptr=layout.indptr,
        columns=layout.columns,
        belief=splice.take(graph.belief, fresh.belief),
        edges=edges,
        parallels=others,
    )


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
    at = entries.astype(np.int32)  # of indptr's type: of another one all of it would be copied
    return np.searchsorted(graph.indptr, at, side="right").astype(np.int64) - 1


def _placed(graph: Graph, gone: NDArray[np.int64], moved: Ints, count: int, fresh: tuple[Ints, Ints]) -> _Places:
    """Who is red now, and where everybody stands.

    Of two black vertices that meet, the one of fewer pairs turns red; of equals the later one.
    """
    tails, heads = fresh
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
    stay = red[was_red]
    first = np.concatenate((was_red[stay], promoted, new[red[new]]))
    last = np.concatenate((was_black[~red[was_black]], was_red[~stay], new[~red[new]]))
    order = np.concatenate((first, last)).astype(np.int32)
    return _Places(order, len(first), old_place[promoted], inverse(order)[of_order], not stay.all())


def _spliced(graph: Graph, gone: NDArray[np.int64], places: _Places, rows: Ints, columns: Ints) -> Splice:
    """The new list of entries as stretches of the old one, with the fresh ones put in.

    ``rows`` and ``columns`` are the new places of the fresh entries. Rows that nothing happens
    to stay together; a touched row is written out alone.
    """
    fresh: dict[int, list[tuple[int, int]]] = {}
    for position, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        fresh.setdefault(row, []).append((column, graph.pair_count + position))
    lost: dict[int, list[int]] = {}
    for entry, row in zip(gone.tolist(), _rows_of(graph, gone).tolist(), strict=True):
        lost.setdefault(row, []).append(entry)
    old_place = np.full(len(places.order), -1, dtype=np.int32)
    old_place[places.of_old] = np.arange(graph.vertex_count, dtype=np.int32)
    touched = {int(old_place[row]) for row in fresh if old_place[row] >= 0} | lost.keys()
    runs: list[tuple[int, int]] = []

    def write(place: int) -> None:
        runs.extend(_row(graph, place, places.of_old, fresh.pop(int(places.of_old[place]), []), lost.get(place, [])))

    def stretch(start: int, stop: int, alone: Iterable[int]) -> None:
        """The rows of old places from start to stop, of which some are written alone or elsewhere."""
        at = start
        for place in sorted(alone):
            runs.append((int(graph.indptr[at]), int(graph.indptr[place])))
            if place not in promoted:
                write(place)
            at = place + 1
        runs.append((int(graph.indptr[at]), int(graph.indptr[stop])))

    promoted = set(places.promoted.tolist())
    stretch(0, graph.reds, (place for place in touched if place < graph.reds))
    for place in places.promoted.tolist():
        write(place)
    for row in sorted(row for row in fresh if row < places.reds):  # rows of new reds
        runs += [(entry, entry + 1) for _, entry in sorted(fresh.pop(row))]
    stretch(graph.reds, graph.vertex_count, {place for place in touched if place >= graph.reds} | promoted)
    for row in sorted(fresh):  # rows of new blacks
        runs += [(entry, entry + 1) for _, entry in sorted(fresh[row])]
    return Splice(graph.pair_count, [run for run in runs if run[0] < run[1]])


def _row(
    graph: Graph, place: int, of_old: Int32s, fresh: list[tuple[int, int]], lost: list[int]
) -> Iterable[tuple[int, int]]:
    """The stretches of one old row without what is lost and with what is fresh, by column."""
    start, stop = int(graph.indptr[place]), int(graph.indptr[place + 1])
    columns = of_old[graph.columns[start:stop]]
    cuts = [(entry, 1, entry + 1) for entry in lost]  # where, kind and order, go on from
    cuts += [(start + int(np.searchsorted(columns, column)), 0, -entry) for column, entry in sorted(fresh)]
    at = start
    for where, is_lost, entry in sorted(cuts, key=lambda cut: cut[:2]):
        yield at, where
        if is_lost:
            at = entry
        else:
            at = where
            yield -entry, 1 - entry
    yield at, stop
