"""What every optimal rooted tree may hold, or none: decided before the search begins.

In go edges with whole costs, prizes and what must be in. The optimum and its cost are those of
the whole instance.

`certain` names vertices and edges that some optimal tree holds: around what is held already,
the cheapest way out to a vertex whose prize exceeds it. Such a vertex is in (putting it in
pays), and any other way to it could be exchanged for this one, which is no dearer than the
dearest edge of any path to it.

`worthwhile` names the edges that stay. Four tests, each of which shows that a tree with the
edge can be made cheaper (or, at equal cost, smaller):

- of parallel edges only the cheapest (the first of equals) stays;
- a leaf that need not be in and whose prize does not exceed its only edge is not worth it;
- an edge (u, v) that costs more than both (u, w) and (w, v), and more than the two together
  minus w's prize, can be exchanged for one of them or for both;
- beyond the root, vertices that hang together and of which none has a prize above its
  cheapest edge pay for nothing: each of them in a tree needs an edge of its own.

Source: Leitner, Ljubic, Luipersbeck, Sinnl, INFORMS Journal on Computing 30 (2018), special
distance and degree tests; Duin and Volgenant, Networks 19 (1989), for nearest vertices.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

__all__ = ["certain", "worthwhile"]


def certain(
    edges: Sequence[tuple[int, int, int]], prizes: Sequence[int], root: int, required: frozenset[int]
) -> dict[int, int]:
    """The vertices, each with the edge that joins it, of a tree at the root that some optimal
    tree holds; the root itself has the edge -1.

    Prim's algorithm from the root: each vertex is reached by an edge of a minimum spanning
    tree, which is what makes the exchange hold.
    """
    near: list[list[tuple[int, int, int]]] = [[] for _ in prizes]
    for index, (tail, head, cost) in enumerate(edges):
        near[tail].append((cost, index, head))
        near[head].append((cost, index, tail))
    held, reached = {root: -1}, {root}
    heap: list[tuple[int, int, int, bool]] = []
    hoped: set[int] = set()  # unreached, and beside what is held by an edge that would pay

    def reach(vertex: int) -> None:
        """Put what lies beyond into the heap."""
        holds = vertex in held
        for cost, index, other in near[vertex]:
            if other not in reached:
                hope = holds and (prizes[other] > cost or other in required)
                if hope:
                    hoped.add(other)
                heapq.heappush(heap, (cost, index, other, hope))

    reach(root)
    while hoped:  # without one, nothing that is reached from here on is held
        _, index, vertex, hope = heapq.heappop(heap)
        if vertex not in reached:
            reached.add(vertex)
            hoped.discard(vertex)
            if hope:
                held[vertex] = index
            reach(vertex)
    return held


def worthwhile(
    edges: Sequence[tuple[int, int, int]], prizes: Sequence[int], root: int, required: frozenset[int]
) -> list[int]:
    """The indices, ascending, of the edges that an optimal tree with this root may hold."""
    near: list[dict[int, int]] = [{} for _ in prizes]  # neighbour -> index of the cheapest edge
    for index, (tail, head, cost) in enumerate(edges):
        if tail != head and (head not in near[tail] or cost < edges[near[tail][head]][2]):
            near[tail][head] = near[head][tail] = index
    fixed = required | {root}
    _strip(edges, prizes, near, fixed)
    worse = [
        (tail, head)
        for tail, nearby in enumerate(near)
        for head, index in nearby.items()
        if tail < head and _has_detour(edges, prizes, near, fixed, index)
    ]
    for tail, head in worse:
        del near[tail][head], near[head][tail]
    _strip(edges, prizes, near, fixed)
    paying = [v for v, nearby in enumerate(near) if nearby and (v in fixed or _pays(edges, prizes, nearby, v))]
    stays = _beyond(near, root, paying)
    return sorted({index for vertex in stays for index in near[vertex].values()})


def _strip(
    edges: Sequence[tuple[int, int, int]], prizes: Sequence[int], near: list[dict[int, int]], fixed: frozenset[int]
) -> None:
    """Take off leaves that are not worth their edge, and what become leaves by that."""
    leaves = [vertex for vertex, nearby in enumerate(near) if len(nearby) == 1]
    while leaves:
        leaf = leaves.pop()
        if leaf in fixed or len(near[leaf]) != 1:
            continue
        ((other, index),) = near[leaf].items()
        if prizes[leaf] <= edges[index][2]:
            del near[leaf][other], near[other][leaf]
            leaves.append(other)


def _pays(edges: Sequence[tuple[int, int, int]], prizes: Sequence[int], nearby: dict[int, int], vertex: int) -> bool:
    """Whether a vertex's prize exceeds its cheapest edge."""
    return prizes[vertex] > min(edges[index][2] for index in nearby.values())


def _beyond(near: list[dict[int, int]], root: int, sources: Sequence[int]) -> set[int]:
    """All vertices but the root that hang together with one of the sources without it."""
    seen = {root, *sources}
    stack = [vertex for vertex in sources if vertex != root]
    while stack:
        for other in near[stack.pop()]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen - {root}


def _has_detour(
    edges: Sequence[tuple[int, int, int]],
    prizes: Sequence[int],
    near: list[dict[int, int]],
    fixed: frozenset[int],
    index: int,
) -> bool:
    """Whether a third vertex joins the edge's ends for strictly less, whoever is in the tree."""
    tail, head, cost = edges[index]
    by_tail, by_head = near[tail], near[head]
    for third in by_tail.keys() & by_head.keys():
        first, second = edges[by_tail[third]][2], edges[by_head[third]][2]
        if cost > max(first, second) and (third in fixed or cost > first + second - prizes[third]):
            return True
    return False
