"""Which things of a household belong together: structure for the page, never a rank.

In goes a `Graph`, out comes one community label a vertex, the same for the same graph.
Nothing in the walk or the assembly reads it.

Method: local moving and aggregation (Blondel, Guillaume, Lambiotte, Lefebvre 2008) on
belief-weighted modularity, vertices in id order, ties to the smaller label; then every
community is split into its connected parts, the guarantee for which Traag, Waltman and
van Eck (2019) refine theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.graph.adjacency import Graph, from_arrays
from gateway.graph.names import Names

__all__ = ["Communities", "communities", "communities_within"]

_Weights = list[dict[int, float]]

_LEAST_GAIN = 1e-12  # below it a move is rounding, and could be undone for ever


@dataclass(frozen=True, slots=True, eq=False)
class Communities:
    """One label a vertex, and how good the partition is.

    Attributes
    ----------
    label : int32 (vertices,)
        The smallest vertex id of the vertex's community. Read-only.
    modularity : float
        Q in [-0.5, 1) on belief weights (Newman and Girvan 2004); 0 without an edge.
    """

    label: NDArray[np.int32]
    modularity: float

    def __post_init__(self) -> None:
        self.label.setflags(write=False)

    def members(self, vertex_id: int) -> tuple[int, ...]:
        """All vertices of the vertex's community, by id."""
        return tuple(np.flatnonzero(self.label == self.label[vertex_id]).tolist())


def communities(graph: Graph) -> Communities:
    """Partition the vertices by belief-weighted modularity."""
    pairs = graph.pairs()
    weights: _Weights = [{} for _ in range(graph.vertex_count)]
    for tail, head, belief in zip(pairs.tails.tolist(), pairs.heads.tolist(), pairs.belief.tolist(), strict=True):
        weights[tail][head] = belief
        weights[head][tail] = belief
    label = np.arange(graph.vertex_count)
    while True:
        moved = np.array(_local_moves(weights), dtype=np.int64)
        ascending = np.sort(moved)
        groups = ascending[np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]]
        merged = np.searchsorted(groups, moved)
        label = merged[label] if len(merged) else label
        if len(groups) == len(weights):
            break
        weights = _aggregated(weights, merged.tolist())
    final = _connected_parts(graph, label)
    return Communities(final, _modularity(graph, final))


def communities_within(graph: Graph, vertex_ids: Iterable[int]) -> tuple[frozenset[int], ...]:
    """The communities of the part of a graph that some of its vertices span, by smallest id."""
    ids = sorted(set(vertex_ids))
    number = {vertex: index for index, vertex in enumerate(ids)}
    pairs = graph.pairs_within(ids)
    part = from_arrays(
        Names.of(graph.names[vertex] for vertex in ids),
        np.array([number[vertex] for vertex in pairs.tails.tolist()], dtype=np.int32),
        np.array([number[vertex] for vertex in pairs.heads.tolist()], dtype=np.int32),
        pairs.belief,
    )
    groups: dict[int, set[int]] = {}
    for vertex, label in zip(ids, communities(part).label.tolist(), strict=True):
        groups.setdefault(label, set()).add(vertex)
    return tuple(frozenset(groups[label]) for label in sorted(groups))


def _local_moves(weights: _Weights) -> list[int]:
    """Move each vertex to the neighbouring community of most gain, until none moves.

    A vertex's own entry (``weights[v][v]``, from aggregation) counts in its degree alone.
    """
    degree = [sum(near.values()) for near in weights]
    total = sum(degree)
    label = list(range(len(weights)))
    volume = degree.copy()
    moved = total > 0.0
    while moved:
        moved = False
        for vertex, near in enumerate(weights):
            here = label[vertex]
            volume[here] -= degree[vertex]
            links: dict[int, float] = {here: 0.0}
            for other, weight in near.items():
                if other != vertex:
                    links[label[other]] = links.get(label[other], 0.0) + weight
            gain = {group: link - degree[vertex] * volume[group] / total for group, link in links.items()}
            best = min(gain, key=lambda group: (-gain[group], group))
            if gain[best] > gain[here] + _LEAST_GAIN * total:
                label[vertex] = here = best
                moved = True
            volume[here] += degree[vertex]
    return label


def _aggregated(weights: _Weights, group: list[int]) -> _Weights:
    """The graph of communities; weight within one becomes its own entry."""
    out: _Weights = [{} for _ in range(max(group) + 1)]
    for vertex, near in enumerate(weights):
        row = out[group[vertex]]
        for other, weight in near.items():
            row[group[other]] = row.get(group[other], 0.0) + weight
    return out


def _connected_parts(graph: Graph, label: NDArray[np.int64]) -> NDArray[np.int32]:
    """Split communities into connected parts, each labelled by its smallest vertex id."""
    n, pairs = graph.vertex_count, graph.pairs()
    if not n:
        return np.zeros(0, dtype=np.int32)
    same = label[pairs.tails] == label[pairs.heads]
    tails, heads = pairs.tails[same], pairs.heads[same]
    part: NDArray[np.int32] = np.arange(n, dtype=np.int32)
    while True:
        # A pair's ends, and what they hang on, hang on the smaller; then everything on its own root.
        at_tail, at_head = part[tails], part[heads]
        differ = at_tail != at_head
        if not differ.any():
            return part
        low = np.minimum(at_tail, at_head)[differ]
        np.minimum.at(part, at_tail[differ], low)
        np.minimum.at(part, at_head[differ], low)
        while not np.array_equal(part, part[part]):
            part = part[part]


def _modularity(graph: Graph, label: NDArray[np.int32]) -> float:
    """Q = sum over communities of inner weight / m - (degree / 2m)^2."""
    pairs = graph.pairs()
    total = float(pairs.belief.sum())
    if not total:
        return 0.0
    inner = float(pairs.belief[label[pairs.tails] == label[pairs.heads]].sum())
    volume = np.bincount(label[pairs.tails], pairs.belief) + 0.0
    other = np.bincount(label[pairs.heads], pairs.belief)
    size = max(len(volume), len(other))
    degree = np.pad(volume, (0, size - len(volume))) + np.pad(other, (0, size - len(other)))
    return inner / total - float(((degree / (2.0 * total)) ** 2).sum())
