"""Print what one question costs in homes of 1,000 to a million edges, end to end in one process.

    python tests/bench_large_home.py [--sizes 1000 100000 1000000] [--foods]

The home is the one of the first story (Max on a new kibble, scratching more), beside a catalogue
of imported products that nobody here was given. Each question is answered by `ask` from a fresh
snapshot; times are CPU ms of the process: the first of a process, then the median of seven. The
peer is the same question in the same run at the smallest size: the ratio says what the catalogue
costs. ``--foods`` also puts every product into the household's list of foods, as the command
``import product`` does.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.ask.adjacency import is_due, rewritten
from gateway.model import RecordRef
from gateway.ontology.load import load
from gateway.store import Snapshot
from gateway.stored import TextRecord
from tests.ask_situations import clear_change

QUESTIONS = (
    "Why is Max scratching more this week?",
    "Could the chicken be what makes Max scratch?",
    "Which foods have no chicken?",
    "What do your sources say about chicken?",
    "Is Max scratching more this week?",
    "How long has Max been on the new kibble?",
    "Max ate chocolate",
)
LISTED = 12  # ingredients of a product; with as many sources and the label itself 25 edges a product


def catalogue(home, edges, *, foods):
    """Products as rows: each food is labelled as a product that lists ingredients, and contains sources."""
    rng = np.random.default_rng(7)
    products = max(1, edges // (2 * LISTED + 1))
    label = RecordRef("label:catalogue@00000000#0-7")
    with home.writing() as tx:
        tx.save_text(TextRecord(label, "label", "catalogue", "Chicken", None, object="catalogue"))
        db = tx._db
        record, vertex = (
            db.execute(f"SELECT max(id) FROM {table}").fetchone()[0] + 1 for table in ("record", "vertex")
        )
        cited = db.execute("SELECT id FROM record WHERE ref = ?", (label.text,)).fetchone()[0]
        known = dict(db.execute("SELECT name, id FROM vertex"))
        sources = [name for name in known if name.startswith("species:")]
        new = [f"food:catalogue_{i:06d}" for i in range(products)]
        new += [f"product:catalogue_{i:06d}" for i in range(products)] + [f"ing:catalogue_{i:04d}" for i in range(3000)]
        known |= {name: vertex + i for i, name in enumerate(new)}
        db.executemany(
            "INSERT INTO vertex (id, name, label) VALUES (?, ?, ?)", ((known[n], n, n.partition(":")[2]) for n in new)
        )
        rows = []
        for i in range(products):
            food, product = f"food:catalogue_{i:06d}", f"product:catalogue_{i:06d}"
            rows.append((food, "labelled_as", product))
            listed = np.unique((3000 * rng.random(LISTED) ** 2.5).astype(int))
            rows += [(product, "lists", f"ing:catalogue_{j:04d}") for j in listed]
            held = np.unique((len(sources) * rng.random(LISTED) ** 2).astype(int))
            rows += [(food, "contains", sources[j]) for j in held]
        numbered = list(enumerate(rows, record))
        db.executemany(
            "INSERT INTO record (id, ref, kind) VALUES (?, ?, 'edge')",
            ((k, f"edge:{t}|{r}|{h}|-") for k, (t, r, h) in numbered),
        )
        db.executemany(
            "INSERT INTO edge (record, tail, relation, head) VALUES (?, ?, ?, ?)",
            ((k, known[t], r, known[h]) for k, (t, r, h) in numbered),
        )
        db.executemany(
            "INSERT INTO evidence (edge, record, true_mass, false_mass, witness, reliability) VALUES (?, ?, 1, 0, 'label:catalogue', .9)",
            ((k, cited) for k, _ in numbered),
        )
        if foods:
            db.executemany(
                "INSERT INTO food (id, name, code) VALUES (?, ?, ?)",
                ((f"catalogue_{i:06d}", f"Catalogue {i:06d}", f"c{i:06d}") for i in range(products)),
            )
    return len(rows)


def kept(home):
    """The compact graph, as the hub writes it."""
    with Snapshot(home.path, lease_s=3600) as reader:
        if not is_due(reader, load()):
            return
    with home.writing() as tx:
        epoch = tx.begin_adjacency()
    with Snapshot(home.path, lease_s=3600) as reader:
        made = rewritten(reader, load())
    with home.writing() as tx:
        tx.save_adjacency(made, epoch=epoch)


def clocked(work):
    begun = time.process_time()
    result = work()
    return (time.process_time() - begun) * 1e3, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--foods", action="store_true")
    options = parser.parse_args()
    least = {}
    print(f"{'edges':>9} {'first':>9} {'median':>9} {'ratio':>7}  question (CPU ms)")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder, clear_change(Path(folder)) as (home, _):
            edges = catalogue(home, size, foods=options.foods)
            kept(home)
            for question in QUESTIONS:
                first, answer = clocked(lambda question=question: home.ask(question))
                again = statistics.median(clocked(lambda question=question: home.ask(question))[0] for _ in range(7))
                least.setdefault(question, again)
                print(
                    f"{edges:>9} {first:9.1f} {again:9.1f} {again / least[question]:7.2f}  {question} ({len(answer.claims)} claims)"
                )


if __name__ == "__main__":
    main()
