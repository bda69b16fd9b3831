"""What each part of the answer's machinery buys: one part at a time taken away, everything else as built.

No switch stands in the product for this: its functions are replaced in this process, and put
back. What is taken away is said with each variant; the questions are those that ask for a cause.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from gateway.ask import connect as connecting
from gateway.ask import explain as explaining
from gateway.ask.causes import LAG_MS, Candidates, find_candidates
from gateway.ask.connect import Connected, household_view
from gateway.ask.onfile import Known, OnFile
from gateway.ask.scene import Scene
from gateway.graph.adjacency import is_live
from gateway.graph.walk import walk
from gateway.model import Chain, Interval, Link, Vertex

__all__ = ["VARIANTS", "without"]

_EVER_MS = 3000 * 86_400_000
_TOP = 40
"""Vertices that plain top-k takes where the tree is off: the rank the tree's exchange rate is set at."""
_REACH = 4
_SLOTS = {"ate": "food", "takes": "medicine", "treated_with": "parasite", "was_at": "place", "visited_by": "visitor"}
_NEGATIVE = ("tolerates", "ruled_out")


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """Another function in the place of one of the product's, and the product's own back afterwards."""
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


# --- relation reading: any path counts, whatever its links say -------------------------------------------


def _untyped(known: Known, **asked: object) -> Candidates:
    """Candidates by connectivity and date alone: the shortest path of at most four links from what
    the pet was exposed to in time to the sign, whatever the links mean and of whichever species.
    """
    typed, links = find_candidates(known, **asked), known.everything()  # type: ignore[arg-type]
    pet, sign, onset = asked["pet"], asked["sign"], asked["onset"]
    around: dict[Vertex, list[tuple[Vertex, Link]]] = defaultdict(list)
    for link in links:
        if is_live(link):
            around[link.edge.tail].append((link.edge.head, link))
            around[link.edge.head].append((link.edge.tail, link))
    chains = []
    for link in links:
        if link.edge.tail != pet or link.edge.relation not in _SLOTS or not is_live(link):
            continue
        for at_ms, change in ((link.edge.valid_from_ms, "started"), (link.edge.valid_to_ms, "ended")):
            if at_ms is None or not onset.start_ms - LAG_MS <= at_ms <= onset.end_ms:  # type: ignore[attr-defined]
                continue
            path = _shortest(around, link.edge.head, sign, pet)  # type: ignore[arg-type]
            if path is not None:
                refs = (link.edge.ref, *(step.edge.ref for step in path))
                chains.append(Chain(link.edge.head, _SLOTS[link.edge.relation], refs, at_ms, change))
    unique = {chain.cause: chain for chain in chains}
    return replace(typed, chains=tuple(unique.values()), walled=())


def _shortest(
    around: dict[Vertex, list[tuple[Vertex, Link]]], start: Vertex, goal: Vertex, avoid: Vertex
) -> tuple[Link, ...] | None:
    seen, todo = {start, avoid}, deque([(start, ())])
    while todo:
        here, path = todo.popleft()
        if here == goal:
            return path
        for there, link in sorted(around[here], key=lambda pair: pair[1].edge.ref) if len(path) < _REACH else ():
            if there not in seen:
                seen.add(there)
                todo.append((there, (*path, link)))
    return None


@contextmanager
def _without_relations() -> Iterator[None]:
    with _replaced(explaining, "find_candidates", _untyped):
        yield


# --- belief, walls ----------------------------------------------------------------------------------------


@contextmanager
def _with_links(change: Callable[[Link], Link | None], *, hypotheses: bool = True) -> Iterator[None]:
    near, every, wrong = OnFile._folded, OnFile.everything, Scene.wrong_hypotheses

    def changed(links: tuple[Link, ...]) -> tuple[Link, ...]:
        return tuple(link for link in map(change, links) if link is not None)

    with (
        _replaced(OnFile, "_folded", lambda self, rows: changed(near(self, rows))),
        _replaced(OnFile, "everything", lambda self: changed(every(self))),
        _replaced(Scene, "wrong_hypotheses", wrong if hypotheses else lambda _scene: frozenset()),
    ):
        yield


def _equal(link: Link) -> Link:
    """What anybody says for a link is believed fully and what speaks against it is not weighed: one hearsay
    counts like three agreeing witnesses, and like one whom two others deny.
    """
    said = any(piece.mass.true > 0.0 for piece in link.evidence)
    return replace(link, belief=1.0, conflict=0.0, refuted=False) if said else link


def _open(link: Link) -> Link | None:
    """Refuted, unknown and marked links are believed by half; what is tolerated or ruled out is not read."""
    if link.edge.relation in _NEGATIVE:
        return None
    if link.refuted or link.marked_wrong or link.belief <= 0.0:
        return replace(link, belief=max(link.belief, 0.5), refuted=False, marked_wrong=False)
    return link


# --- hub damping, tree, time -------------------------------------------------------------------------------


@contextmanager
def _without_damping() -> Iterator[None]:
    with _replaced(connecting, "walk", partial(walk, hub_exponent=0.0)):
        yield


def _top_of_walk(
    scene: Scene, known: Known, chains: tuple[Chain, ...], *, pet: Vertex, sign: Vertex, view: Interval
) -> Connected:
    """No tree: the forty vertices of most mass and every link between them; a chain is told if it is whole."""
    links = known.everything()
    by_ref = {link.edge.ref: link for link in links if is_live(link) or link.refuted or link.marked_wrong}
    chained = frozenset(ref for chain in chains for ref in chain.links)
    graph = household_view(scene, known, view, chained=chained)
    seeds = {graph.id_of(vertex) for vertex in (pet, sign, *(chain.cause for chain in chains))} - {None}
    if not chains or not seeds:
        return Connected((), (), by_ref, (), ())
    ranking = walk(graph, frozenset(seeds))  # type: ignore[arg-type]
    top = {graph.names[vertex] for vertex in ranking.top(_TOP)}
    inside = [link.edge.ref for link in links if link.edge.tail.name in top and link.edge.head.name in top]
    kept = {ref for ref in inside if ref in by_ref}
    whole = tuple(chain for chain in chains if kept.issuperset(chain.links))
    return Connected(whole, tuple(sorted(kept)), by_ref, (), ())


@contextmanager
def _without_tree() -> Iterator[None]:
    with _replaced(explaining, "connect", _top_of_walk):
        yield


def _any_time(known: Known, **asked: object) -> Candidates:
    """Every change of recorded time is in time."""
    now_ms = int(asked["now_ms"])  # type: ignore[call-overload]
    return find_candidates(known, **(asked | {"onset": Interval(now_ms - _EVER_MS, now_ms)}))  # type: ignore[arg-type]


@contextmanager
def _without_time() -> Iterator[None]:
    with _replaced(explaining, "find_candidates", _any_time):
        yield


@contextmanager
def _as_built() -> Iterator[None]:
    yield


VARIANTS = {
    "as built": _as_built,
    "relation reading off": _without_relations,
    "belief off": partial(_with_links, _equal),
    "hub damping off": _without_damping,
    "tree off": _without_tree,
    "walls off": partial(_with_links, _open, hypotheses=False),
    "validity in time off": _without_time,
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """The product with one part taken away, by its name in `VARIANTS`."""
    with VARIANTS[name]():
        yield
