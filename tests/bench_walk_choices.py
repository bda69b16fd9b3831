"""What restart, hub exponent and candidate seeds change, and what the tree buys: printed.

    python tests/bench_walk_choices.py

Households are drawn (seeded) with what real ones hold: four pets, breeds that are prone to
many conditions, foods with twenty ingredients, a shared place, passages. One hidden chain
pet -> food -> species -> condition -> sign is asked about; the rest is distraction. For each
setting: how often the whole chain is within the first 40 by walk mass, the worst rank of a
chain vertex (median), and the mass that sits on the pet's breed.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.graph.adjacency import build
from gateway.graph.assemble import assemble
from gateway.graph.walk import walk
from gateway.model import Chain, Edge, Link, Vertex

WORLDS = 120
RESTARTS = (0.05, 0.15, 0.3, 0.5)
EXPONENTS = (0.0, 0.25, 0.5, 1.0)


def drawn(seed):
    """One household: its links, the hidden chain, and the pet's breed."""
    rng = random.Random(seed)
    rows = {}

    def join(tail, relation, head, low, high):
        rows.setdefault((tail, relation, head), rng.uniform(low, high))

    conditions, signs, species = rng.randint(30, 80), rng.randint(15, 30), rng.randint(15, 30)
    for c in range(conditions):
        for s in rng.sample(range(signs), rng.randint(2, 5)):
            join(f"condition:c{c}", "has_sign[dog]", f"sign:s{s}", 0.3, 0.9)
    for b in range(12):
        for c in rng.sample(range(conditions), min(conditions, rng.choice((4, 8, 25)))):
            join(f"breed:b{b}", "prone_to[dog]", f"condition:c{c}", 0.3, 0.8)
    for x in range(species):
        for c in rng.sample(range(conditions), 2):
            join(f"species:x{x}", "may_cause[dog]", f"condition:c{c}", 0.3, 0.6)
    for f in range(8):
        for i in rng.sample(range(150), rng.randint(10, 25)):
            join(f"food:f{f}", "lists", f"ing:i{i}", 0.8, 0.97)
            join(f"ing:i{i}", "derived_from", f"species:x{i % species}", 0.6, 0.95)
        for x in rng.sample(range(species), rng.randint(2, 6)):
            join(f"food:f{f}", "contains", f"species:x{x}", 0.7, 0.95)
    for p in range(4):
        join(f"pet:p{p}", "of_breed", f"breed:b{rng.randrange(12)}", 1.0, 1.0)
        join(f"pet:p{p}", "was_at", "place:kennel", 0.8, 0.9)
        for f in rng.sample(range(8), rng.randint(1, 3)):
            join(f"pet:p{p}", "ate", f"food:f{f}", 0.9, 0.99)
        for s in rng.sample(range(signs), 8):
            join(f"pet:p{p}", "has_series", f"series:p{p}.m{s}", 1.0, 1.0)
            join(f"series:p{p}.m{s}", "indicates", f"sign:s{s}", 0.8, 0.95)
    food, kind, condition, sign = (
        rng.randrange(8),
        rng.randrange(species),
        rng.randrange(conditions),
        rng.randrange(signs),
    )
    chain = (
        ("pet:p0", "ate", f"food:f{food}"),
        (f"food:f{food}", "contains", f"species:x{kind}"),
        (f"species:x{kind}", "may_cause[dog]", f"condition:c{condition}"),
        (f"condition:c{condition}", "has_sign[dog]", f"sign:s{sign}"),
    )
    for row in chain:
        rows[row] = rng.uniform(0.5, 0.9)
    links = [
        Link(Edge(Vertex(t), r, Vertex(h)), b, 1.0, 0.0, refuted=False, evidence=()) for (t, r, h), b in rows.items()
    ]
    refs = tuple(Edge(Vertex(t), r, Vertex(h)).ref for t, r, h in chain)
    breed = next(head for tail, relation, head in rows if tail == "pet:p0" and relation == "of_breed")
    return (
        links,
        Chain(Vertex(f"food:f{food}"), "food", refs, 0, "started"),
        (*(t for t, _, _ in chain), f"sign:s{sign}"),
        breed,
    )


def whole_and_rank(graph, ranking, members):
    place = {vertex: rank for rank, vertex in enumerate(ranking.top(graph.vertex_count), start=1)}
    worst = max(place[graph.id_of(member)] for member in members)
    return worst <= 40, worst


def settings_table(worlds):
    print(
        f"{'seeds':>22} {'restart':>7} {'exponent':>8} {'whole chain in 40':>17} {'worst rank':>10} {'breed mass':>10}"
    )
    for with_candidate in (True, False):
        for restart in RESTARTS:
            for exponent in EXPONENTS:
                whole, ranks, breeds = 0, [], []
                for graph, chain, members, breed in worlds:
                    names = {members[0], members[-1], *([chain.cause.name] if with_candidate else [])}
                    seeds = frozenset(graph.id_of(name) for name in names)
                    ranking = walk(graph, seeds, restart=restart, hub_exponent=exponent)
                    inside, worst = whole_and_rank(graph, ranking, members)
                    whole += inside
                    ranks.append(worst)
                    breeds.append(float(ranking.mass[graph.id_of(breed)]))
                label = "pet, sign, candidate" if with_candidate else "pet, sign"
                share = f"{whole}/{len(worlds)}"
                print(
                    f"{label:>22} {restart:7.2f} {exponent:8.2f} {share:>17} {statistics.median(ranks):10.0f} "
                    f"{statistics.median(breeds):10.4f}"
                )


def reached_within(graph, inside, start):
    """The vertices that are connected to the start without leaving the set."""
    pairs = graph.pairs_within(inside)
    near = {vertex: [] for vertex in inside}
    for tail, head in zip(pairs.tails.tolist(), pairs.heads.tolist(), strict=True):
        near[tail].append(head)
        near[head].append(tail)
    seen, stack = {start}, [start]
    while stack:
        for other in near[stack.pop()]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def tree_table(worlds):
    """The tree against as many vertices straight from the ranking."""
    sizes, loose, cut, tree_cut = [], [], 0, 0
    for graph, chain, members, _ in worlds:
        pet, sign = graph.id_of(members[0]), graph.id_of(members[-1])
        ranking = walk(graph, frozenset({pet, sign, graph.id_of(chain.cause)}))
        found = assemble(graph, ranking, frozenset({pet, sign}), (chain,))
        wanted = {graph.id_of(member) for member in members}
        top = set(ranking.top(len(found.vertices)))
        sizes.append(len(found.vertices))
        loose.append(len(top - reached_within(graph, top, pet)) / len(top))
        cut += not wanted <= top
        tree_cut += not wanted <= {graph.id_of(vertex) for vertex in found.vertices}
    print(f"\nwhat the tree buys, {len(worlds)} questions, {statistics.median(sizes):.0f} vertices each (median)")
    print(f"{'':>12} {'chains cut':>10} {'not connected to the pet':>26}")
    print(f"{'top-k':>12} {cut:>10} {100 * statistics.mean(loose):>24.1f} %")
    print(f"{'tree':>12} {tree_cut:>10} {0.0:>24.1f} %")


def main():
    worlds = []
    for seed in range(WORLDS):
        links, chain, members, breed = drawn(seed)
        worlds.append((build(links, lambda _edge: True), chain, members, breed))
    count = statistics.median(graph.vertex_count for graph, *_ in worlds)
    print(f"{WORLDS} households, {count:.0f} vertices (median)\n")
    settings_table(worlds)
    tree_table(worlds)


if __name__ == "__main__":
    main()
