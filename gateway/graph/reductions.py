"""Edges that no optimal rooted tree holds: what can be left out before the search begins.

In go edges with whole costs, prizes and what must be in; out come the indices of the edges
that stay. The optimum and its cost are those of the whole instance. Three tests, each of which
shows that a tree with the edge can be made cheaper (or, at equal cost, smaller):

- of parallel edges only the cheapest (the first of equals) stays;
- an edge (u, v) that costs more than both (u, w) and (w, v), and more than the two together
  minus w's prize, can be exchanged for one of them or for both;
- a leaf that need not be in and whose prize does not exceed its only edge is not worth it.

Source: Leitner, Ljubic, Luipersbeck, Sinnl, INFORMS Journal on Computing 30 (2018), special
distance and degree tests.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["worthwhile"]


def worthwhile(
    edges: Sequence[tuple[int, int, int]], prizes: Sequence[int], root: int, required: frozenset[int]
) -> list[int]:
    """The indices, ascending, of the edges that an optimal tree with this root may hold."""
    near: list[dict[int, int]] = [{} for _ in prizes]  # neighbour -> index of the cheapest edge
    for index, (tail, head, cost) in enumerate(edges):
        if head not in near[tail] or cost < edges[near[tail][head]][2]:
            near[tail][head] = near[head][tail] = index
    fixed = required | {root}
    worse = [
        (tail, head)
        for tail, nearby in enumerate(near)
        for head, index in nearby.items()
        if tail < head and _has_detour(edges, prizes, near, fixed, index)
    ]
    for tail, head in worse:
        del near[tail][head], near[head][tail]
    leaves = [vertex for vertex, nearby in enumerate(near) if len(nearby) == 1]
    while leaves:
        leaf = leaves.pop()
        if leaf in fixed or len(near[leaf]) != 1:
            continue
        ((other, index),) = near[leaf].items()
        if prizes[leaf] <= edges[index][2]:
            del near[leaf][other], near[other][leaf]
            leaves.append(other)
    return sorted({index for nearby in near for index in nearby.values()})


def _has_detour(
    edges: Sequence[tuple[int, int, int]],
    prizes: Sequence[int],
    near: list[dict[int, int]],
    fixed: frozenset[int],
    index: int,
) -> bool:
    """Whether a third vertex joins the edge's ends for strictly less, whoever is in the tree."""
    tail, head, cost = edges[index]
    few, many = sorted((near[tail], near[head]), key=len)
    for third, one in few.items():
        if third in many:
            first, second = edges[one][2], edges[many[third]][2]
            if cost > max(first, second) and (third in fixed or cost > first + second - prizes[third]):
                return True
    return False
