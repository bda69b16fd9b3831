"""What an answer names in a scenario, by the product's own path and with one rule at a time taken away.

No switch stands in the product for this. A rule is taken away by telling the product something
else (links that are relabelled, dated or unmarked differently; an onset as wide as the records)
or, where the step itself is what is tried, by taking the product's walk and assembly another
way. Each variant says which.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gateway.ask.causes import LAG_MS, find_candidates
from gateway.ask.connect import connect, household_view
from gateway.ask.onfile import Given
from gateway.ask.scene import Scene
from gateway.graph.adjacency import Graph
from gateway.graph.assemble import assemble
from gateway.graph.walk import HUB_EXPONENT, Ranking, walk
from gateway.model import Chain, Household, Interval, Link, RecordRef, Vertex
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.snapshot import Snapshot
from tests.scenario_homes import DAY, World

_COURSE = re.compile(r"@\d+")  # one course of a medicine, where each counts as the first

EXPOSURES = ("ate", "takes", "treated_with", "was_at", "visited_by", "uses_device")


@dataclass(frozen=True)
class Named:
    """What an answer names: causes in their order, and the edges it shows."""

    causes: tuple[str, ...]
    edges: frozenset[RecordRef]


@cache
def scene() -> Scene:
    """A home's ontology; nothing is read from its (empty) database."""
    path = Path(tempfile.mkdtemp(prefix="scentwalk-scenarios-")) / "empty.db"
    Database(path).close()
    with Snapshot(path) as reader:
        return Scene(reader, load(), Household(zones=()), 0, "2026-01-01")


def candidates(world: World):
    """The product's typed, dated candidates."""
    return find_candidates(
        Given(world.links),
        pet=world.pet,
        sign=world.sign,
        host=world.host,
        onset=world.onset,
        now_ms=world.now_ms,
        names={},
        wrong_hypotheses=world.wrong,
    )


def view_of(world: World) -> Interval:
    return Interval(world.onset.start_ms - LAG_MS, world.now_ms)


def answered(world: World) -> Named:
    """The product's answer: candidates, one walk, a tree each."""
    chains = candidates(world).chains
    connected = connect(scene(), Given(world.links), chains, pet=world.pet, sign=world.sign, view=view_of(world))
    causes = tuple(group[0].cause.name for group in connected.by_cause())
    return Named(causes, frozenset(connected.edges))


# --- another input, the product's own answer ----------------------------------------------------------


def _relinked(world: World, change: Callable[[Link], Link | None]) -> World:
    links = (change(link) for link in world.links)
    return replace(world, links=tuple(link for link in links if link is not None))


def _moved(link: Link, **fields) -> Link:
    return replace(link, edge=replace(link.edge, **fields))


def without_time(world: World) -> Named:
    """The onset is given as all of recorded time, so that every date fits."""
    return answered(replace(world, onset=Interval(world.now_ms - 3000 * DAY, world.now_ms)))


def without_polarity(world: World) -> Named:
    """Negative relations as their positive twins: a hydrolysate or a fat is contained, what is
    tolerated was eaten on the day of the note, what was ruled out no longer stands in the way.
    """
    heads = {(link.edge.tail.name, link.edge.relation): [] for link in world.links}
    for link in world.links:
        heads[link.edge.tail.name, link.edge.relation].append(link)
    extra = []
    for link in world.links:
        edge = link.edge
        if edge.relation == "labelled_as":
            for listed in heads.get((edge.head.name, "lists"), ()):
                for form in ("hydrolysed_from", "fat_of"):
                    extra += [
                        _moved(source, tail=edge.tail, relation="contains")
                        for source in heads.get((listed.edge.head.name, form), ())
                    ]
        elif edge.relation == "tolerates":
            tolerated = Vertex(f"food:tolerated_{edge.head.name.partition(':')[2]}")
            at_ms = world.onset.start_ms - 5 * DAY
            extra.append(_moved(link, relation="ate", head=tolerated, valid_from_ms=at_ms))
            held = _moved(link, tail=tolerated, relation="contains", valid_from_ms=None, valid_to_ms=None)
            extra.append(held)
    kept = [link for link in world.links if link.edge.relation not in ("tolerates", "ruled_out")]
    return answered(replace(world, links=(*kept, *extra)))


def without_own_pet(world: World) -> Named:
    """What any pet of the house ate, took or met counts as the asked pet's."""

    def own(link: Link) -> Link:
        exposed = link.edge.tail.type == "pet" and link.edge.relation in EXPOSURES
        return _moved(link, tail=world.pet) if exposed else link

    moved = {link.edge.ref: link for link in _relinked(world, own).links}
    return answered(replace(world, links=tuple(moved.values())))


def without_own_species(world: World) -> Named:
    """What books say of the other species holds for this one."""

    def own(link: Link) -> Link:
        return _moved(link, relation=link.edge.relation.replace(f"[{world.other_host}]", f"[{world.host}]"))

    moved = {link.edge.ref: link for link in sorted(_relinked(world, own).links, key=lambda link: link.belief)}
    return answered(replace(world, links=tuple(moved.values())))


def without_walls(world: World) -> Named:
    """Refuted, unknown and marked edges are believed by half; marked hypotheses stand."""

    def believed(link: Link) -> Link:
        if not (link.refuted or link.marked_wrong or link.belief <= 0.0):
            return link
        return replace(link, belief=max(link.belief, 0.5), refuted=False, marked_wrong=False)

    return answered(replace(_relinked(world, believed), wrong=frozenset()))


def without_up_only(world: World) -> Named:
    """From a group on a label down to its members: turkey is poultry, chicken is poultry."""
    members = defaultdict(list)
    for link in world.links:
        if link.edge.relation == "is_a":
            members[link.edge.head.name].append(link.edge.tail)
    extra = {}
    for link in world.links:
        if link.edge.relation == "contains":
            for member in members.get(link.edge.head.name, ()):
                down = _moved(link, head=member)
                extra[down.edge.ref] = down
    held = {link.edge.ref for link in world.links}
    return answered(replace(world, links=(*world.links, *(link for ref, link in extra.items() if ref not in held))))


def without_novelty(world: World) -> Named:
    """What was eaten before the three weeks is forgotten, and each course of a medicine is its first."""
    since = world.onset.start_ms - LAG_MS - 4 * DAY
    links, known = [], defaultdict(list)
    for link in world.links:
        known[link.edge.tail.name].append(link)
    for link in world.links:
        edge, start = link.edge, link.edge.valid_from_ms
        if edge.tail != world.pet or edge.relation not in ("ate", "takes", "treated_with"):
            links.append(link)
        elif edge.relation != "ate":
            once = Vertex(f"{edge.head}@{start}")
            links.append(_moved(link, head=once))
            links += [_moved(said, tail=once) for said in known[edge.head.name]]
        elif start is not None and start >= since:
            links.append(link)
    named = answered(replace(world, links=tuple(links)))
    causes = (_COURSE.sub("", cause) for cause in named.causes)
    edges = (RecordRef(_COURSE.sub("", ref.text)) for ref in named.edges)
    return Named(tuple(dict.fromkeys(causes)), frozenset(edges))


# --- the product's walk and assembly, taken another way -----------------------------------------------


def graph_of(world: World, chains: tuple[Chain, ...] = ()) -> Graph:
    """The household view a question walks."""
    chained = frozenset(ref for chain in chains for ref in chain.links)
    return household_view(scene(), Given(world.links), view_of(world), chained=chained)


def _exposed(world: World) -> frozenset[str]:
    return frozenset(
        link.edge.head.name for link in world.links if link.edge.tail == world.pet and link.edge.relation in EXPOSURES
    )


def _bare(world: World) -> tuple[Graph, Ranking, frozenset[int]]:
    graph = graph_of(world)
    seeds = frozenset(vertex for vertex in (graph.id_of(world.pet), graph.id_of(world.sign)) if vertex is not None)
    return graph, walk(graph, seeds), seeds


def bare_walk(world: World) -> Named:
    """No candidates: walk from {pet, sign}, one tree over both; what the pet was exposed to is
    named, by rank, where the tree holds it.
    """
    graph, ranking, seeds = _bare(world)
    grown, exposed = assemble(graph, ranking, seeds), _exposed(world)
    return Named(tuple(v.name for v in grown.vertices if v.name in exposed), frozenset(grown.edges))


def bare_rank(world: World) -> Named:
    """No candidates, no tree: walk from {pet, sign}; the exposure of most mass is named."""
    graph, ranking, _ = _bare(world)
    exposed = _exposed(world)
    order = (graph.names[vertex] for vertex in ranking.top(graph.vertex_count))
    return Named(next(((name,) for name in order if name in exposed), ()), frozenset())


def ranked(
    world: World, chains: tuple[Chain, ...], *, with_causes: bool = True, hub_exponent: float = HUB_EXPONENT
) -> tuple[Graph, Ranking]:
    """The walk of a question, with or without its candidates as seeds, at a hub exponent."""
    graph = graph_of(world, chains)
    names = [world.pet.name, world.sign.name, *((chain.cause.name for chain in chains) if with_causes else ())]
    seeds = frozenset(vertex for name in names if (vertex := graph.id_of(name)) is not None)
    return graph, walk(graph, seeds, hub_exponent=hub_exponent)


def _walked(world: World, *, with_causes: bool, hub_exponent: float) -> Named:
    chains = candidates(world).chains
    if not chains:
        return Named((), frozenset())
    graph, ranking = ranked(world, chains, with_causes=with_causes, hub_exponent=hub_exponent)
    anchors = frozenset(v for v in (graph.id_of(world.pet), graph.id_of(world.sign)) if v is not None)
    grown = assemble(graph, ranking, anchors, chains)
    causes = tuple(dict.fromkeys(tree.chain.cause.name for tree in grown.trees))
    return Named(causes, frozenset(ref for tree in grown.trees for ref in tree.edges))


def without_candidate_seeds(world: World) -> Named:
    """Typed candidates and their trees, but the walk starts from {pet, sign} alone."""
    return _walked(world, with_causes=False, hub_exponent=HUB_EXPONENT)


def without_hub_damping(world: World) -> Named:
    """Typed candidates, their trees and seeds; the walk at hub exponent 0."""
    return _walked(world, with_causes=True, hub_exponent=0.0)


VARIANTS: dict[str, Callable[[World], Named]] = {
    "as built": answered,
    "time off": without_time,
    "polarity off": without_polarity,
    "own pet off": without_own_pet,
    "own species off": without_own_species,
    "refuted walls off": without_walls,
    "up-only off": without_up_only,
    "novelty off": without_novelty,
    "candidates off: walk, tree": bare_walk,
    "candidates off: walk alone": bare_rank,
    "candidates not seeds": without_candidate_seeds,
    "hub damping off": without_hub_damping,
}


# --- counting -----------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Counts over worlds: with a cause (whole chains, all rivals, false causes), and without."""

    chains: int = 0
    whole: int = 0
    rivals: int = 0
    all_named: int = 0
    with_cause: int = 0
    false: int = 0
    quiet: int = 0
    invented: int = 0

    def add(self, world: World, named: Named) -> None:
        for cause, links in world.truth:
            self.chains += 1
            self.whole += cause in named.causes and named.edges.issuperset(links)
        false = set(named.causes) - world.causes
        if not world.truth:
            self.quiet += 1
            self.invented += bool(false)
            return
        self.with_cause += 1
        self.false += bool(false)
        if len(world.causes) > 1:
            self.rivals += 1
            self.all_named += world.causes <= set(named.causes)
