"""A thousand runs over the same home and question give the same bytes, in whatever order and process.

    python tests/soak_graph.py [--runs 1000] [--processes 40]

Each process has its own PYTHONHASHSEED; each run stores the home's edges in another order in a
new file, builds the graph from all links and, from a snapshot and its changes, once more, walks
both, assembles, and hashes everything that an answer could show. The snapshot's own walk agrees
with the built one to its certificate, so the two are counted apart: one digest each.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.ask.adjacency import kept_graph, rewritten, walkable_in
from gateway.ask.scene import Scene
from gateway.graph.adjacency import build, canonical_dump, in_view
from gateway.graph.assemble import assemble
from gateway.graph.belief import edge_order
from gateway.graph.communities import communities
from gateway.graph.walk import walk
from gateway.model import Edge, Evidence, Household, Interval, Mass, RecordRef, Vertex
from gateway.ontology.load import load
from gateway.store import Database
from gateway.stored import TextRecord

NOTE = RecordRef("note:vet/1")
VIEW = Interval(100, 900)
HANG_GUARD_S = 3600


def home():
    """Three pets, foods and their species, conditions and signs; some dated, some refuted."""
    rng = random.Random(11)
    pieces = []
    for _ in range(400):
        kind = rng.choice(("ate", "contains", "may_cause[dog]", "has_sign[dog]"))
        tail, head = {
            "ate": (f"pet:p{rng.randrange(3)}", f"food:f{rng.randrange(40)}"),
            "contains": (f"food:f{rng.randrange(40)}", f"species:s{rng.randrange(25)}"),
            "may_cause[dog]": (f"species:s{rng.randrange(25)}", f"condition:c{rng.randrange(20)}"),
            "has_sign[dog]": (f"condition:c{rng.randrange(20)}", f"sign:g{rng.randrange(12)}"),
        }[kind]
        start = rng.choice((None, 0, 200, 950)) if kind == "ate" else None
        edge = Edge(Vertex(tail), kind, Vertex(head), start)
        true = round(rng.random(), 3)
        mass = Mass(true, round((1 - true) * rng.random(), 3))
        pieces.append(Evidence(edge.ref, NOTE, mass, rng.choice(("vet", "bowl", "guide")), 0.9))
        pieces.append(edge)
    edges = sorted({one for one in pieces if isinstance(one, Edge)}, key=edge_order)
    evidence = {(one.edge, one.witness): one for one in pieces if isinstance(one, Evidence)}
    return edges, [evidence[key] for key in sorted(evidence)]


def digest_of(graph):
    seeds = frozenset(graph.id_of(name) for name in ("pet:p0", "sign:g0", "sign:g1"))
    ranking = walk(graph, seeds)
    subgraph = assemble(graph, ranking, seeds)
    arrays = (graph.order, graph.indptr, graph.columns, graph.belief, ranking.mass, communities(graph).label)
    texts = (repr(list(graph.names)), repr([str(ref) for ref in graph.edges]), repr(subgraph))
    parts = [array.tobytes() for array in arrays] + [text.encode() for text in texts]
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def one_run(rng, folder, edges, evidence):
    """(digest of dump and built graph, digest of the snapshot's graph)."""
    ontology = load()
    rng.shuffle(edges)
    rng.shuffle(evidence)
    path = Path(folder) / "hub.db"
    with Database(path) as database:
        with database.transaction() as tx:
            tx.save_text(TextRecord(NOTE, "note", "Visit", "All well."))
            for edge in edges:
                tx.save_edge(edge)
            for item in evidence:
                tx.save_evidence(item)
            epoch = tx.begin_adjacency()
        with database.transaction() as tx:
            tx.save_adjacency(rewritten(tx, ontology), epoch=epoch)
            later = Edge(Vertex("food:f0"), "contains", Vertex("species:late"))
            tx.save_edge(later)
            tx.save_evidence(Evidence(later.ref, NOTE, Mass(0.5), "vet", 0.9))
        with database.snapshot() as reader:
            links = Scene(reader, ontology, Household(zones=()), 900, "2026-01-01").on_file.everything()
            built = build([link for link in links if in_view(link.edge, VIEW)], walkable_in(ontology))
            kept = kept_graph(reader, ontology, VIEW, now_ms=900)
            dump = hashlib.sha256(canonical_dump(links)).hexdigest()
            return dump + digest_of(built), digest_of(kept)


def runs_here(count, seed):
    rng = random.Random(seed)
    edges, evidence = home()
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            print(*one_run(rng, folder, edges, evidence))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=40)
    parser.add_argument("--here", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here is not None:
        runs_here(options.runs, options.here)
        return
    seen = []
    for number in range(options.processes):
        share = options.runs // options.processes + (number < options.runs % options.processes)
        done = subprocess.run(
            [sys.executable, __file__, "--runs", str(share), "--here", str(number)],
            capture_output=True, text=True, check=True, timeout=HANG_GUARD_S,
            env={**os.environ, "PYTHONHASHSEED": str(number * 7919)},
        )  # fmt: skip
        seen += [line.split() for line in done.stdout.splitlines()]
    built, kept = ({run[column] for run in seen} for column in (0, 1))
    print(
        f"{len(seen)} runs in {options.processes} processes: {len(built)} graph built from links, {len(kept)} from a snapshot"
    )
    sys.exit(0 if len(seen) == options.runs and len(built) == len(kept) == 1 else 1)


if __name__ == "__main__":
    main()
