"""What each rule of "explaining a change" is worth, counted on homes whose true cause is known: printed.

    python tests/bench_scenarios.py [SEEDS]

Every kind of tests/scenarios.py in so many homes (default 4). Printed: the goals, the ablation
(how each rule is taken away stands with its variant in tests/scenario_answers.py), what the
tree buys beside a plain top-k of the same walk, how rivals keep their order, and what the
slack after an onset lets in.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.model import Vertex
from gateway.ontology.load import load
from tests.scenario_answers import VARIANTS, Tally, answered, candidates, ranked
from tests.scenario_homes import DAY, Home
from tests.scenario_kinds import KINDS
from tests.scenarios import drawn

SEEDS = 4
BUDGET = 600
"""Tokens of an answer: ceil(UTF-8 bytes / 4), the product's own default."""


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


# --- goals and ablation ---------------------------------------------------------------------------------


def ablation(worlds):
    tallies = {name: Tally() for name in VARIANTS}
    for world in worlds:
        for name, variant in VARIANTS.items():
            tallies[name].add(world, variant(world))
    built = tallies["as built"]
    print(f"{len(KINDS)} kinds, {sum(not kind.has_cause for kind in KINDS.values())} of them without a cause")
    print(f"{built.with_cause} worlds with a cause ({built.chains} true chains), {built.quiet} without\n")
    print(f"{'':>27} {'whole chains':>14} {'all rivals':>11} {'false beside true':>18} {'named where none':>17}")
    for name, tally in tallies.items():
        whole = f"{tally.whole}/{tally.chains}"
        rivals = f"{tally.all_named}/{tally.rivals}"
        beside = percent(tally.false, tally.with_cause)
        print(f"{name:>27} {whole:>14} {rivals:>11} {beside:>18} {percent(tally.invented, tally.quiet):>17}")


def ranks(worlds):
    """Where the chains' vertices stand in the walk itself, before any tree."""
    settings = {
        "as built": {},
        "candidates not seeds": {"with_causes": False},
        "hub exponent 0": {"hub_exponent": 0.0},
        "hub exponent 1": {"hub_exponent": 1.0},
    }
    print(f"\n{'the walk alone':>27} {'chain in first 40':>18} {'worst rank, median':>19} {'90 %':>5}")
    for name, options in settings.items():
        worst = []
        for world in worlds:
            chains = candidates(world).chains
            if world.truth:
                graph, ranking = ranked(world, chains, **options)
                place = {vertex: rank for rank, vertex in enumerate(ranking.top(graph.vertex_count), start=1)}
                last = graph.vertex_count
                worst += [max(place.get(graph.id_of(v), last) for v in ends(links)) for _, links in world.truth]
        inside = percent(sum(rank <= 40 for rank in worst), len(worst))
        ninth = statistics.quantiles(worst, n=10)[-1]
        print(f"{name:>27} {inside:>18} {statistics.median(worst):>19.0f} {ninth:>5.0f}")


# --- the tree beside a plain top-k ----------------------------------------------------------------------


def ends(refs):
    """The vertex names some edges join."""
    return {part for ref in refs for part in (ref.key.split("|")[0], ref.key.split("|")[2])}


def tokens(ref):
    """What saying one edge costs, in the relation's own words."""
    tail, relation, head, _ = ref.key.split("|")
    words = load().relations[relation.partition("[")[0]].words
    said = " ".join((tail.partition(":")[2], words, head.partition(":")[2])).replace("_", " ")
    return -(-len(f"{said}.".encode()) // 4)


@dataclass
class Handed:
    """What one way of choosing hands over, summed over questions."""

    whole: int = 0
    sizes: list[int] = field(default_factory=list)
    loose: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def add(self, world, names, refs):
        """The vertices chosen, and every live edge among them as a claim."""
        reached, wave = {world.pet.name}, [world.pet.name]
        near = defaultdict(set)
        for ref in refs:
            tail, _, head, _ = ref.key.split("|")
            near[tail].add(head)
            near[head].add(tail)
        while wave:
            new = near[wave.pop()] - reached
            reached |= new
            wave += new
        true = {ref for _, links in world.truth for ref in links}
        self.whole += true <= refs
        self.sizes.append(len(names))
        self.loose.append(len(names - reached) / max(1, len(names)))
        self.beside.append(len(refs - true) / max(1, len(refs)))
        self.tokens.append(sum(tokens(ref) for ref in refs))

    def row(self, name):
        count = len(self.sizes)
        print(
            f"{name:>27} {percent(self.whole, count):>13} {statistics.median(self.sizes):>8.0f} "
            f"{100 * statistics.mean(self.loose):>13.1f} % {100 * statistics.mean(self.beside):>14.1f} % "
            f"{statistics.median(self.tokens):>8.0f}"
        )


def among(graph, ids, world):
    """Every pair of adjacent vertices of a choice, by the true chain's edge or else its best one."""
    claims = {entry: graph.edges[entry] for entry in graph.pairs_within(ids).entries.tolist()}
    for _, links in world.truth:
        claims.update({entry: ref for ref in links if (entry := graph.entry_of(ref)) in claims})
    return set(claims.values())


def chosen_to_budget(graph, order):
    """As many of the first vertices as the budget pays with all that joins them."""
    spent, kept = 0, []
    place = {vertex: rank for rank, vertex in enumerate(order)}
    cost = defaultdict(int)
    found = graph.pairs_within(order)
    for tail, head, entry in zip(found.tails.tolist(), found.heads.tolist(), found.entries.tolist(), strict=True):
        cost[max(tail, head, key=place.__getitem__)] += tokens(graph.edges[entry])
    for vertex in order:
        if spent + cost[vertex] > BUDGET:
            break
        spent += cost[vertex]
        kept.append(vertex)
    return kept


def what_the_tree_buys(worlds):
    asked = [world for world in worlds if world.truth]
    tree, same, enough, paid, quiet = Handed(), Handed(), Handed(), Handed(), Handed()
    for world in asked:
        chains, shown = candidates(world).chains, answered(world).edges
        graph, ranking = ranked(world, chains)
        order = ranking.top(graph.vertex_count)
        tree.add(world, ends(shown), set(shown))
        wanted = {graph.id_of(name) for _, links in world.truth for name in ends(links)}
        needed = max(order.index(vertex) for vertex in wanted) + 1
        for handed, ids in (
            (same, order[: len(ends(shown))]),
            (enough, order[:needed]),
            (paid, chosen_to_budget(graph, order[:200])),
        ):
            handed.add(world, {graph.names[vertex] for vertex in ids}, among(graph, ids, world))
    size = round(statistics.median(tree.sizes))
    for world in worlds:
        if not world.truth:
            graph, ranking = ranked(world, ())
            ids = ranking.top(size)
            quiet.add(world, {graph.names[vertex] for vertex in ids}, among(graph, ids, world))
    print(f"\nwhat the tree buys, {len(asked)} questions with a cause (a claim is an edge said in words)")
    print(f"{'':>27} {'whole answer':>13} {'vertices':>8} {'not connected':>15} {'beside chains':>16} {'tokens':>8}")
    tree.row("trees")
    same.row("top-k, as many vertices")
    enough.row("top-k, until all is in")
    paid.row(f"top-k, {BUDGET} tokens")
    print(
        f"where nothing is the cause ({len(quiet.sizes)} questions): trees hand over 0 claims, top-{size} "
        f"{statistics.median(quiet.tokens):.0f} tokens (median)"
    )


# --- rivals, slack ----------------------------------------------------------------------------------------


def with_vegetables(world, food, count=5):
    """The same home, but one food's label names more vegetables (as new vertices of the walk)."""
    plain = [
        one
        for one in world.links
        if one.edge.tail.name == food and one.edge.relation == "contains" and one.edge.head.type == "species"
    ]
    grown = [
        replace(plain[0], edge=replace(plain[0].edge, head=Vertex(f"species:vegetable_{number}")), refuted=False)
        for number in range(count)
    ]
    product = next(one for one in world.links if one.edge.tail.name == food and one.edge.relation == "labelled_as")
    listed = [
        replace(
            product, edge=replace(product.edge, tail=product.edge.head, relation="lists", head=Vertex(f"ing:{name}"))
        )
        for name in (one.edge.head.name.partition(":")[2] for one in grown)
    ]
    origin = [
        replace(one, edge=replace(one.edge, tail=Vertex(f"ing:vegetable_{n}"), relation="derived_from"))
        for n, one in enumerate(grown)
    ]
    return replace(world, links=(*world.links, *grown, *listed, *origin))


def rivals(worlds):
    flipped = compared = lost = 0
    for world in worlds:
        foods = sorted(cause for cause in world.causes if cause.startswith("food:"))
        if len(world.causes) < 2 or not foods:
            continue
        before, after = answered(world).causes, answered(with_vegetables(world, foods[0])).causes
        compared += 1
        flipped += before != after
        lost += set(before) != set(after)
    print(
        f"\nrivals: when one label grows five vegetables, their order changes in {flipped} of {compared} answers "
        f"({percent(flipped, compared)}), the set of those named in {lost}"
    )


def slack(seeds):
    """A food that changed after the onset's interval ended, by how many days."""
    print("\na food changed after the 90 % interval of the onset (1 to 3 days long): named as a cause")
    for late in (0.25, 0.75, 1.5, 2.5, 3.5):
        named = 0
        for seed in range(seeds * 4):
            home = Home(seed, "slack")
            source = home.allergen()
            home.switch(home.food(source), day=home.onset.length_ms / DAY + late)
            named += bool(answered(home.world("slack", seed, [])).causes)
        print(f"  {late:4.2f} days after: {named} of {seeds * 4}")


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    worlds = [drawn(kind, seed) for kind in KINDS for seed in range(seeds)]
    ablation(worlds)
    ranks(worlds)
    what_the_tree_buys(worlds)
    rivals([drawn(kind, seed) for kind in KINDS if KINDS[kind].has_cause for seed in range(seeds, 3 * seeds)] + worlds)
    slack(seeds)


if __name__ == "__main__":
    main()
