"""Prize-collecting Steiner trees: what to connect, at which cost, and how far from optimal.

In goes an `Instance` (a graph with edge costs and vertex prizes, perhaps a root and vertices
that must be in), out comes a `Tree` with its cost, a lower bound that was proven on the same
instance, and hence its gap. The objective is the cost of chosen edges plus the prizes left
out. No random choice and no clock: ties go to the lower index, so the same instance gives
the same tree.

Work is done on integers (costs and prizes in quanta of 2^-40 of their sum), so that "proven
optimal" is an equality and not a tolerance.

Methods: growth and strong pruning (Goemans and Williamson 1995; Johnson, Minkoff, Phillips
2000), dual ascent on the directed formulation for the bound (Wong 1984; Leitner, Ljubic,
Luipersbeck, Sinnl 2018), reduced-cost fixing, local search by vertex insertion and removal.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.errors import GraphError
from gateway.graph.reductions import certain, worthwhile

__all__ = ["Instance", "Tree", "parse_stp", "solve"]

_WALL = 1 << 100  # an arc that no better solution uses; above any sum of quanta
_QUANTA = 1 << 40  # resolution of costs: far below a belief's own step
_ROUNDS = 12  # dual ascent and fixing, repeated while they still remove something
_BRANCHES = 60  # vertices to branch on before the gap is reported instead of closed


@dataclass(frozen=True, slots=True)
class Instance:
    """A graph to connect.

    ``edges`` are (tail, head, cost) with ids below ``count``, undirected; ``prizes`` one a
    vertex. With a ``root`` the tree contains it and every ``required`` vertex that can be
    reached from it; without, it is the best tree anywhere.
    """

    count: int
    edges: tuple[tuple[int, int, float], ...]
    prizes: tuple[float, ...]
    root: int | None = None
    required: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if len(self.prizes) != self.count:
            raise GraphError(f"prizes must be one a vertex, {self.count}, are {len(self.prizes)}")
        for index, prize in enumerate(self.prizes):
            if not 0.0 <= prize < math.inf:
                raise GraphError(f"a prize must be finite and at least 0, is {prize!r} at vertex {index}")
        for tail, head, cost in self.edges:
            if not (0 <= tail < self.count and 0 <= head < self.count and tail != head):
                raise GraphError(f"an edge must join two of {self.count} vertices, is {tail} to {head}")
            if not 0.0 <= cost < math.inf:
                raise GraphError(f"a cost must be finite and at least 0, is {cost!r} on {tail} to {head}")
        for vertex in (*self.required, *(() if self.root is None else (self.root,))):
            if not 0 <= vertex < self.count:
                raise GraphError(f"root and required must be vertices below {self.count}, found {vertex}")
        if self.required and self.root is None:
            raise GraphError(f"required vertices need a root to hang from; found {len(self.required)} and no root")


@dataclass(frozen=True, slots=True)
class Tree:
    """A connected choice: sorted vertices, sorted edge indices, cost and proven bound.

    ``unreached`` are required vertices in another component than the root; their prizes
    count as left out.
    """

    vertices: tuple[int, ...]
    edges: tuple[int, ...]
    cost: float
    bound: float
    unreached: tuple[int, ...] = ()

    @property
    def gap(self) -> float:
        """(cost - bound) / cost; 0 where the tree is proven optimal."""
        return 0.0 if self.cost <= self.bound else (self.cost - self.bound) / self.cost


def parse_stp(text: str) -> Instance:
    """Read a SteinLib .stp instance: lines ``E tail head cost`` and ``TP vertex prize``."""
    count, edges, prizes = 0, [], {}
    for line in text.splitlines():
        match line.split():
            case ["Nodes", number]:
                count = int(number)
            case ["E", tail, head, cost]:
                edges.append((int(tail) - 1, int(head) - 1, float(cost)))
            case ["TP", vertex, prize]:
                prizes[int(vertex) - 1] = float(prize)
            case _:
                continue
    return Instance(count, tuple(edges), tuple(prizes.get(vertex, 0.0) for vertex in range(count)))


class _Net:
    """An instance in quanta, with adjacency; arcs 2e and 2e + 1 are edge e out and back."""

    def __init__(self, edges: Sequence[tuple[int, int, int]], prizes: Sequence[int]) -> None:
        self.count = len(prizes)
        self.ends = [(tail, head) for tail, head, _ in edges]
        self.cost = [cost for _, _, cost in edges]
        self.prize = list(prizes)
        self.total = sum(prizes)
        self.cheapest = min(self.cost, default=0)
        self.near: list[list[tuple[int, int]]] = [[] for _ in prizes]
        for edge, (tail, head) in enumerate(self.ends):
            self.near[tail].append((head, edge))
            self.near[head].append((tail, edge))

    def reach(self, root: int, banned: frozenset[int] = frozenset()) -> set[int]:
        """The vertices of the root's component, without the banned ones."""
        seen, stack = {root}, [root]
        while stack:
            for other, _ in self.near[stack.pop()]:
                if other not in seen and other not in banned:
                    seen.add(other)
                    stack.append(other)
        return seen

    def span(self, edges: Iterable[int]) -> list[int]:
        """Kruskal: a minimum spanning forest of those edges, by cost then index."""
        parent = list(range(self.count))
        chosen = []
        ends = self.ends
        for edge in sorted(sorted(edges), key=self.cost.__getitem__):
            one, other = ends[edge]
            while one != parent[one]:
                parent[one] = one = parent[parent[one]]
            while other != parent[other]:
                parent[other] = other = parent[parent[other]]
            if one != other:
                parent[one] = other
                chosen.append(edge)
        return chosen

    def within(self, vertices: set[int]) -> list[int]:
        """Edges with both ends among the vertices."""
        return [e for v in vertices for u, e in self.near[v] if u in vertices and self.ends[e][0] == v]


@dataclass(frozen=True, slots=True)
class _Found:
    """A feasible tree in quanta: cost of edges plus prizes left out."""

    cost: int
    vertices: frozenset[int]
    edges: tuple[int, ...]


def _pruned(net: _Net, root: int, required: frozenset[int], tree: Iterable[int]) -> _Found | None:
    """Strong pruning: the best subtree at the root of a tree, by one pass from the leaves.

    A branch stays if what it nets, its prizes minus its edges, exceeds the edge that joins
    it. None where the tree misses the root or a required vertex.
    """
    near: dict[int, list[tuple[int, int]]] = {root: []}
    for edge in tree:
        tail, head = net.ends[edge]
        near.setdefault(tail, []).append((head, edge))
        near.setdefault(head, []).append((tail, edge))
    order, above = [root], {root: (-1, -1)}
    for vertex in order:
        for other, edge in near[vertex]:
            if other not in above:
                above[other] = (vertex, edge)
                order.append(other)
    if not required <= above.keys():
        return None
    nets = {vertex: _WALL if vertex in required else net.prize[vertex] for vertex in order}
    for vertex in reversed(order[1:]):
        parent, edge = above[vertex]
        if nets[vertex] > net.cost[edge]:
            nets[parent] += nets[vertex] - net.cost[edge]
    kept = {root}
    edges = []
    for vertex in order[1:]:
        parent, edge = above[vertex]
        if parent in kept and nets[vertex] > net.cost[edge]:
            kept.add(vertex)
            edges.append(edge)
    left_out = net.total - sum(net.prize[vertex] for vertex in kept)
    return _Found(left_out + sum(net.cost[edge] for edge in edges), frozenset(kept), tuple(sorted(edges)))


class _Ascent:
    """Dual ascent (Wong) on the directed form: a bound, and reduced costs of arcs.

    Every vertex with a prize asks to be connected and is ready to pay up to its prize (a
    required one anything). In turn, fewest arcs first, each raises the price of entering the
    set from which it can already be reached for nothing, until that set holds the root or
    its readiness is spent. What all of them paid is a lower bound.
    """

    def __init__(self, into: list[list[tuple[int, int]]], arc_cost: list[int], left: list[int], root: int) -> None:
        self.into, self.root = into, root
        self.reduced, self.left = arc_cost.copy(), left.copy()
        self.bound = 0
        self._enter_prizes()
        waiting = [(len(into[v]), v) for v in range(len(into)) if self.left[v] > 0 and v != root]
        heapq.heapify(waiting)
        while waiting:
            _, vertex = heapq.heappop(waiting)
            limit = waiting[0][0] * 5 // 4 + 4 if waiting else _WALL
            if size := self._raise(vertex, limit):
                heapq.heappush(waiting, (size, vertex))

    def _enter_prizes(self) -> None:
        """Take each prize off the arcs into its vertex, as far as the cheapest allows: a
        tree enters a vertex once, so this loses nothing.
        """
        for vertex, arcs in enumerate(self.into):
            if vertex != self.root and self.left[vertex] > 0:
                share = min([self.left[vertex], *(self.reduced[arc] for _, arc in arcs)])
                for _, arc in arcs:
                    self.reduced[arc] -= share
                self.left[vertex] -= share
                self.bound += share

    def _raise(self, vertex: int, limit: int) -> int:
        """Raise one vertex's set: a Dijkstra backwards over reduced costs, whose distance
        is the sum paid. Returns the set's size where it must wait its turn, else 0.
        """
        reduced, into, left, root = self.reduced, self.into, self.left[vertex], self.root
        best = {vertex: 0}
        done: dict[int, int] = {}
        heap = [(0, vertex)]
        size, paid, waits = 0, left, 0
        while heap:
            distance, at = heapq.heappop(heap)
            if distance > best[at]:
                continue
            if at == root:
                paid = distance
                break
            arcs = into[at]
            if distance and size + len(arcs) > limit:
                paid, waits = distance, size + len(arcs)
                break
            done[at] = distance
            size += len(arcs)
            for other, arc in arcs:
                further = distance + reduced[arc]
                if further < best.get(other, left):  # beyond its readiness it pays for nothing
                    best[other] = further
                    heapq.heappush(heap, (further, other))
        if paid:
            for at, distance in done.items():
                for other, arc in into[at]:
                    slack = done.get(other, paid) - distance
                    if slack > 0:
                        reduced[arc] -= slack
            self.left[vertex] -= paid
            self.bound += paid
        return waits

    def saturated(self) -> set[int]:
        """The vertices that the root reaches over arcs whose price is fully paid."""
        outward: dict[int, list[int]] = {}
        for vertex, arcs in enumerate(self.into):
            for other, arc in arcs:
                if self.reduced[arc] == 0:
                    outward.setdefault(other, []).append(vertex)
        seen, stack = {self.root}, [self.root]
        while stack:
            for other in outward.get(stack.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return seen


class _Search:
    """One rooted problem: the best tree found, and the bound that closes in on it."""

    def __init__(self, net: _Net, root: int, best: _Found, inside: set[int]) -> None:
        self.net, self.root, self.best, self.inside = net, root, best, inside
        self.branches = _BRANCHES
        self.grown = False
        self.searched: set[frozenset[int]] = set()

    def run(self, required: frozenset[int]) -> int:
        """Search, and return the bound reached."""
        arc_cost = [_WALL] * (2 * len(self.net.ends))
        for edge, (tail, head) in enumerate(self.net.ends):
            if tail in self.inside and head in self.inside:
                arc_cost[2 * edge] = arc_cost[2 * edge + 1] = self.net.cost[edge]
        return self.prove(arc_cost, required)

    def offer(self, found: _Found | None) -> bool:
        """Keep a tree that is strictly better."""
        if found is None or found.cost >= self.best.cost:
            return False
        self.best = found
        return True

    def prove(self, arc_cost: list[int], required: frozenset[int]) -> int:
        """A lower bound for trees over arcs below the wall; equal to the best tree's cost
        (or above) where none is better. Improves the best tree on its way.
        """
        net, root = self.net, self.root
        bound = 0
        for _ in range(_ROUNDS):
            into = self._into(arc_cost)
            left = [_WALL if v in required else prize for v, prize in enumerate(net.prize)]
            ascent = _Ascent(into, arc_cost, left, root)
            bound = max(bound, ascent.bound)
            if bound >= self.best.cost:
                return bound
            tree = net.span(net.within(ascent.saturated()))
            self._improve(_pruned(net, root, required, tree), required)
            if not self.grown and bound < self.best.cost:
                self.grown = True
                self._improve(_pruned(net, root, required, _grown(net, root, required, self.inside)), required)
            if bound >= self.best.cost:
                return bound
            removed, forced = self._fix(into, arc_cost, ascent)
            if not removed and not forced:
                break
            required |= forced
        if self.branches <= 0:
            return bound
        self.branches -= 1
        vertex = self._branching(arc_cost, required)
        if vertex is None:
            return bound
        without = arc_cost.copy()
        for _, edge in net.near[vertex]:
            without[2 * edge] = without[2 * edge + 1] = _WALL
        with_it = self.prove(arc_cost.copy(), required | {vertex})
        return max(bound, min(with_it, self.prove(without, required)))

    def _into(self, arc_cost: list[int]) -> list[list[tuple[int, int]]]:
        """Per vertex the arcs that may still enter it: (from, arc)."""
        into: list[list[tuple[int, int]]] = [[] for _ in range(self.net.count)]
        for edge, (tail, head) in enumerate(self.net.ends):
            if arc_cost[2 * edge] < _WALL and head != self.root:
                into[head].append((tail, 2 * edge))
            if arc_cost[2 * edge + 1] < _WALL and tail != self.root:
                into[tail].append((head, 2 * edge + 1))
        return into

    def _fix(
        self, into: list[list[tuple[int, int]]], arc_cost: list[int], ascent: _Ascent
    ) -> tuple[int, frozenset[int]]:
        """Wall off arcs no better tree uses; name the vertices every better tree holds.

        A tree through an arc holds a path from the root over it to a leaf that pays for
        itself, and costs at least the bound plus that path's reduced cost.
        """
        net, spare = self.net, self.best.cost - ascent.bound
        outward: list[list[tuple[int, int]]] = [[] for _ in range(net.count)]
        leaves = []
        for vertex, arcs in enumerate(into):
            for other, arc in arcs:
                outward[other].append((vertex, arc))
            if arcs and (ascent.left[vertex] > 0 or net.prize[vertex] > min(arc_cost[arc] for _, arc in arcs)):
                leaves.append(vertex)
        before = _distances([self.root], outward, ascent.reduced, spare)
        after = _distances(leaves, into, ascent.reduced, spare)
        removed = 0
        for vertex, arcs in enumerate(into):
            beyond = after.get(vertex, _WALL)
            for other, arc in arcs:
                if before.get(other, _WALL) + ascent.reduced[arc] + beyond >= spare:
                    arc_cost[arc] = _WALL
                    removed += 1
        forced = (
            v for v, left in enumerate(ascent.left) if spare <= left < _WALL // 2 and v != self.root and net.prize[v]
        )
        return removed, frozenset(forced)

    def _branching(self, arc_cost: list[int], required: frozenset[int]) -> int | None:
        """The undecided vertex with most arcs left: deciding it decides most."""
        arcs = [0] * self.net.count
        for edge, (tail, head) in enumerate(self.net.ends):
            open_ = (arc_cost[2 * edge] < _WALL) + (arc_cost[2 * edge + 1] < _WALL)
            arcs[tail] += open_
            arcs[head] += open_
        undecided = [v for v in range(self.net.count) if arcs[v] and v not in required and v != self.root]
        return max(undecided, key=lambda v: (arcs[v], -v), default=None)

    def _improve(self, start: _Found | None, required: frozenset[int]) -> None:
        """Local search from a tree: put one vertex in, take one out, while it pays.

        A move is tried only where an optimistic estimate of its gain is positive. Every tree
        met here is a minimum spanning tree of its vertices, so taking out a leaf that strong
        pruning left never pays.
        """
        if start is None or start.vertices in self.searched:
            return
        self.searched.add(start.vertices)
        here, moved = start, True
        while moved:
            moved = False
            for step in (self._with_one_more, self._with_one_less):
                other = step(here, required)
                moved = moved or other is not here
                here = other
        self.offer(here)

    def _with_one_more(self, here: _Found, required: frozenset[int]) -> _Found:
        """Put in each vertex beside the tree that pays by its prize, or by the dear tree
        edges it makes needless.
        """
        net = self.net
        rim = {u for v in here.vertices for u, _ in net.near[v]} - here.vertices
        dearest = sorted((net.cost[edge] for edge in here.edges), reverse=True)
        for vertex in sorted(rim):
            joined = sorted((net.cost[e], e) for u, e in net.near[vertex] if u in here.vertices)
            if not joined:
                continue
            saved = sum(dear - cost for dear, (cost, _) in zip(dearest, joined[1:], strict=False) if cost < dear)
            if net.prize[vertex] + saved > joined[0][0]:
                tree = net.span((*here.edges, *(edge for _, edge in joined)))
                other = _pruned(net, self.root, required, tree)
                if other is not None and other.cost < here.cost:
                    here = other
                    dearest = sorted((net.cost[edge] for edge in here.edges), reverse=True)
        return here

    def _with_one_less(self, here: _Found, required: frozenset[int]) -> _Found:
        """Take out each inner vertex whose tree edges cost more than reconnecting could."""
        net = self.net
        for vertex in sorted(here.vertices - required - {self.root}):
            own = [net.cost[e] for e in here.edges if vertex in net.ends[e]]
            if len(own) > 1 and sum(own) > net.prize[vertex] + (len(own) - 1) * net.cheapest:
                tree = net.span(net.within(set(here.vertices) - {vertex}))
                other = _pruned(net, self.root, required, tree)
                if other is not None and other.cost < here.cost:
                    here = other
        return here


def _distances(
    sources: Iterable[int], arcs: list[list[tuple[int, int]]], reduced: list[int], limit: int
) -> dict[int, int]:
    """Dijkstra over reduced costs from several sources, no further than the limit."""
    best = dict.fromkeys(sources, 0)
    heap = [(0, vertex) for vertex in best]
    heapq.heapify(heap)
    while heap:
        distance, at = heapq.heappop(heap)
        if distance > best[at]:
            continue
        for other, arc in arcs[at]:
            further = distance + reduced[arc]
            if further < limit and further < best.get(other, _WALL):
                best[other] = further
                heapq.heappush(heap, (further, other))
    return best


def _grown(net: _Net, root: int, required: frozenset[int], inside: set[int]) -> list[int]:
    """Goemans-Williamson growth: the forest's edges, before pruning.

    Every component with readiness left grows a moat at the same speed; an edge filled from
    its ends joins them; the root's component waits. O(edges) an event by array.
    """
    edges = np.array(sorted(net.within(inside)), dtype=np.int64)
    ends = np.array(net.ends, dtype=np.int64).reshape(-1, 2)[edges]
    cost = np.array(net.cost, dtype=np.float64)[edges]
    moat = np.zeros(net.count)
    component = np.arange(net.count)
    left = np.array([math.inf if v in required else prize for v, prize in enumerate(net.prize)], dtype=np.float64)
    growing = left > 0.0
    growing[root] = False
    tails, heads = ends[:, 0], ends[:, 1]
    chosen = []
    while growing.any():
        apart = component[tails] != component[heads]
        edges, tails, heads, cost = edges[apart], tails[apart], heads[apart], cost[apart]
        speed = growing[component[tails]].astype(np.int64) + growing[component[heads]]
        slack = np.maximum(0.0, cost - moat[tails] - moat[heads])
        wait = np.divide(slack, speed, where=speed > 0, out=np.full(len(cost), math.inf))
        ready = np.where(growing, left, math.inf)
        spent = int(np.argmin(ready))
        full = int(np.argmin(wait)) if len(wait) else -1
        pause = min(float(ready[spent]), float(wait[full]) if full >= 0 else math.inf)
        if not math.isfinite(pause):
            break  # a required vertex in another component: it has nothing to grow into
        moat[growing[component]] += pause
        left[growing] -= pause
        if full >= 0 and wait[full] <= ready[spent]:
            one, other = int(component[tails[full]]), int(component[heads[full]])
            chosen.append(int(edges[full]))
            component[component == other] = one
            left[one] += left[other]
            growing[one] = left[one] > 0.0 and component[root] != one
            growing[other] = False
        else:
            growing[spent] = False
    return chosen


def _begin(net: _Net, root: int, required: frozenset[int], banned: frozenset[int]) -> _Search:
    """A search over the root's component without the banned vertices, from a first tree."""
    inside = net.reach(root, banned)
    first = _pruned(net, root, required, net.span(net.within(inside)))
    if first is None:
        raise GraphError(f"every required vertex must be reachable from the root {root}, {sorted(required)} are not")
    return _Search(net, root, first, inside)


def _solve_anywhere(net: _Net) -> tuple[_Found, int]:
    """The best tree without a root: rooted at each vertex in turn, dearest prize first,
    without the earlier ones, until the prizes of those already cost more than the best tree.
    """
    best: _Found | None = None
    bound, spent = _WALL, 0
    order = sorted(range(net.count), key=lambda v: (-net.prize[v], v))
    for position, root in enumerate(order):
        if best is not None and (spent >= best.cost or not net.prize[root]):
            break
        search = _begin(net, root, frozenset(), frozenset(order[:position]))
        if best is not None and best.cost <= search.best.cost:
            search.best = best
        bound = min(bound, search.run(frozenset()))
        best = search.best
        spent += net.prize[root]
    if best is None:
        raise GraphError("a tree needs at least one vertex, the instance has none")
    return best, min(bound, best.cost)


def solve(instance: Instance) -> Tree:
    """The cheapest tree we find, and a proven bound on how cheap one can be.

    Raises
    ------
    GraphError
        The instance has no vertex.
    """
    everything = math.fsum((*(cost for _, _, cost in instance.edges), *instance.prizes))
    quantum = _quantum(instance, everything)
    edges = [(tail, head, round(cost / quantum)) for tail, head, cost in instance.edges]
    prizes = [round(prize / quantum) for prize in instance.prizes]
    unreached: frozenset[int] = frozenset()
    if instance.root is None:
        found, bound = _solve_anywhere(_Net(edges, prizes))
    else:
        found, bound, unreached = _solve_rooted(edges, prizes, instance.root, instance.required)
    out = (prize for vertex, prize in enumerate(instance.prizes) if vertex not in found.vertices)
    cost = math.fsum((*(instance.edges[edge][2] for edge in found.edges), *out))
    # rounding to quanta moved each number by half a quantum at most
    slack = 0.0 if quantum == 1.0 else quantum * (len(edges) + instance.count)
    proven = cost if bound >= found.cost else min(cost, max(0.0, bound * quantum - slack))
    return Tree(tuple(sorted(found.vertices)), found.edges, cost, proven, tuple(sorted(unreached)))


def _solve_rooted(
    edges: list[tuple[int, int, int]], prizes: list[int], root: int, required: frozenset[int]
) -> tuple[_Found, int, frozenset[int]]:
    """The best tree with that root, its bound, and the required vertices it cannot reach.

    What is certain is drawn together into the root first; the rest is searched.
    """
    held = certain(edges, prizes, root, required)
    drawn = [(root if tail in held else tail, root if head in held else head, cost) for tail, head, cost in edges]
    left = [0 if vertex in held else prize for vertex, prize in enumerate(prizes)]
    wanted = required - held.keys()
    kept = worthwhile(drawn, left, root, wanted)
    # what no edge that stays leads to is left out, whatever the tree: the search need not look at it
    alive = sorted({root, *wanted, *(end for index in kept for end in drawn[index][:2])})
    number = {vertex: place for place, vertex in enumerate(alive)}
    net = _Net(
        [(number[tail], number[head], cost) for tail, head, cost in map(drawn.__getitem__, kept)],
        [left[vertex] for vertex in alive],
    )
    gone = sum(left) - net.total
    to_reach = frozenset(number[vertex] for vertex in wanted)
    unreached = to_reach - net.reach(number[root]) if to_reach else frozenset()
    search = _begin(net, number[root], to_reach - unreached, frozenset())
    bound = search.run(to_reach - unreached)
    inside = [index for index in held.values() if index >= 0]
    spent = gone + sum(edges[index][2] for index in inside)
    chosen = sorted((*inside, *(kept[edge] for edge in search.best.edges)))
    reached = held.keys() | {alive[place] for place in search.best.vertices}
    found = _Found(spent + search.best.cost, frozenset(reached), tuple(chosen))
    return found, spent + bound, frozenset(alive[place] for place in unreached)


def _quantum(instance: Instance, everything: float) -> float:
    """1 where all numbers are whole (the instance is then solved as it stands), else a
    fixed fraction of their sum.
    """
    whole = all(cost.is_integer() for _, _, cost in instance.edges) and all(p.is_integer() for p in instance.prizes)
    return 1.0 if whole or everything == 0.0 else everything / _QUANTA
