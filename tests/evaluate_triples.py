"""Your own triples: our walk and assembly on any graph with questions, beside nothing but the gold.

    PYTHONPATH=. .venv/bin/python tests/evaluate_triples.py [TRIPLES.tsv QUESTIONS.jsonl]

Without files: the handmade example of tests/data/triples, then 100,000 drawn triples for the time.
The format is docs/evaluation.md, "Your own triples". Names are looked up, never compared: no
text similarity decides anything here.

Printed: recall@5 and all-gold@5 of the walk's own order and of the assembled answer (its chains'
ends first, then what joined, both by walk rank), and the time a question took.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.graph.adjacency import Graph, Names, from_arrays
from gateway.graph.assemble import assemble
from gateway.graph.walk import walk
from gateway.model import Chain, Edge, Vertex

DATA = Path(__file__).resolve().parent / "data" / "triples"
FIRST = 5
"""How many names a figure looks at: the 5 of recall@5."""

CHAINS = 200
"""Ways along a relation path that are weighed for one question; what is cut is counted."""

_KEYS = {"id": str, "seeds": list, "gold": list, "path": list, "among": str}
_NEEDED = ("id", "seeds", "gold")


class TriplesRefused(Exception):
    """A file that is not what the format says; names file, line, expectation and finding."""

    def __init__(self, file: Path | str, line: int, expected: str, found: str):
        super().__init__(f"{file}, line {line}: expected {expected}, found {found}")
        self.file, self.line, self.expected, self.found = file, line, expected, found


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: where the walk starts, what it should come to, and (optional) by which relations.

    ``path`` holds relations from a seed outwards, ``^name`` against its direction. ``among`` is a
    prefix: only names that begin so are counted (passages, say).
    """

    id: str
    seeds: tuple[str, ...]
    gold: frozenset[str]
    path: tuple[str, ...] = ()
    among: str = ""


@dataclass(slots=True)
class Triples:
    """A triple file as a graph. Names are numbered: a vertex is called ``e:0000017`` inside."""

    names: list[str]
    number: Mapping[str, int]
    graph: Graph
    along: Mapping[tuple[str, int], list[tuple[int, Edge]]] = field(repr=False)
    count: int
    refuted: int
    to_itself: int

    def vertex(self, name: str) -> int:
        return self.number[name]

    def name(self, vertex: Vertex) -> str:
        return self.names[int(vertex.name.partition(":")[2])]


def _belief(text: str, file: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise TriplesRefused(file, line, "a belief in [0, 1] as fourth column", repr(text))
    return value


def read_triples(file: Path) -> Triples:
    """Read ``head <TAB> relation <TAB> tail [<TAB> belief]`` lines; empty lines and # lines are skipped."""
    rows: list[tuple[str, str, str, float]] = []
    for line, text in _lines(file):
        if not text.strip() or text.startswith("#"):
            continue
        parts = text.split("\t")
        if len(parts) not in (3, 4):
            raise TriplesRefused(file, line, "3 or 4 columns parted by tabs", f"{len(parts)} in {text[:60]!r}")
        if not all(part.strip() for part in parts[:3]):
            raise TriplesRefused(file, line, "a head, a relation and a tail that are not empty", repr(text[:60]))
        head, relation, tail = (part.strip() for part in parts[:3])
        rows.append((head, relation, tail, _belief(parts[3], file, line) if len(parts) == 4 else 1.0))
    if not rows:
        raise TriplesRefused(file, 1, "at least one triple", "none")
    return triples_of(rows)


def triples_of(rows: Sequence[tuple[str, str, str, float]]) -> Triples:
    """Head, relation, tail, belief as one graph. Belief 0 is refuted: kept as a name, never crossed."""
    names = sorted({end for head, _, tail, _ in rows for end in (head, tail)})
    number = {name: index for index, name in enumerate(names)}
    relations = {relation: f"r{index}" for index, relation in enumerate(sorted({row[1] for row in rows}))}
    vertices = [Vertex(f"e:{index:09}") for index in range(len(names))]
    along: dict[tuple[str, int], list[tuple[int, Edge]]] = {}
    live: dict[Edge, tuple[int, int, float]] = {}
    to_itself = refuted = 0
    for head, relation, tail, belief in rows:
        one, other = number[head], number[tail]
        if one == other:
            to_itself += 1
        elif belief == 0.0:
            refuted += 1
        else:
            edge = Edge(vertices[one], relations[relation], vertices[other])
            if edge not in live:
                along.setdefault((relation, one), []).append((other, edge))
                along.setdefault((f"^{relation}", other), []).append((one, edge))
            live[edge] = (one, other, max(belief, live.get(edge, (0, 0, 0.0))[2]))
    graph = from_arrays(
        Names.of([vertex.name for vertex in vertices]),
        np.array([one for one, _, _ in live.values()], dtype=np.int32),
        np.array([other for _, other, _ in live.values()], dtype=np.int32),
        np.array([belief for _, _, belief in live.values()], dtype=np.float64),
        edges=[edge.ref for edge in live],
    )
    return Triples(names, number, graph, along, len(rows), refuted, to_itself)


def read_questions(file: Path, triples: Triples) -> list[Asked]:
    """Read one JSON object a line; every seed and every gold name must be in the triples."""
    known = {relation for relation, _ in triples.along}
    questions = []
    for line, text in _lines(file):
        if not text.strip():
            continue
        row = _question_row(file, line, text)
        for key in ("seeds", "gold"):
            for name in row[key]:
                if name not in triples.number:
                    raise TriplesRefused(file, line, f"{key} that the triples name", repr(name))
        for relation in row.get("path", ()):
            if relation not in known:
                raise TriplesRefused(file, line, "a path of relations that the triples have", repr(relation))
        among = row.get("among", "")
        if not all(name.startswith(among) for name in row["gold"]):
            raise TriplesRefused(file, line, f"gold that begins with {among!r}, as among says", repr(row["gold"]))
        questions.append(
            Asked(row["id"], tuple(row["seeds"]), frozenset(row["gold"]), tuple(row.get("path", ())), among)
        )
    if not questions:
        raise TriplesRefused(file, 1, "at least one question", "none")
    return questions


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8") as lines:
            yield from ((number, text.rstrip("\r\n")) for number, text in enumerate(lines, start=1))
    except UnicodeDecodeError as error:
        raise TriplesRefused(file, 1, "UTF-8 text", f"{error.reason} at byte {error.start} of what was read") from error
    except OSError as error:
        raise TriplesRefused(file, 1, "a file that can be read", str(error.strerror)) from error


def _question_row(file: Path, line: int, text: str) -> dict:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise TriplesRefused(file, line, "one JSON object", f"{error.msg} at column {error.colno}") from error
    if not isinstance(row, dict):
        raise TriplesRefused(file, line, "one JSON object", type(row).__name__)
    for key in _NEEDED:
        if key not in row:
            raise TriplesRefused(file, line, f"the key {key}", f"only {', '.join(sorted(row)) or 'none'}")
    for key, value in row.items():
        if key not in _KEYS:
            raise TriplesRefused(file, line, f"only the keys {', '.join(_KEYS)}", repr(key))
        if not isinstance(value, _KEYS[key]):
            raise TriplesRefused(file, line, f"{key} as a {_KEYS[key].__name__}", type(value).__name__)
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise TriplesRefused(file, line, f"strings in {key}", repr(value))
        if key in ("seeds", "gold") and not value:
            raise TriplesRefused(file, line, f"at least one name in {key}", "none")
    return row


# --- asking -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a question: names best first by the walk and by the assembly, and the time."""

    walked: tuple[str, ...]
    assembled: tuple[str, ...]
    chains: int
    cut: bool
    ms: float


def ask(triples: Triples, asked: Asked) -> Found:
    """Walk from the seeds, assemble what connects, both without looking at the gold."""
    began = time.perf_counter()
    seeds = frozenset(triples.vertex(name) for name in asked.seeds)
    ranking = walk(triples.graph, seeds)
    chains, cut = _chains(triples, asked, seeds)
    answer = assemble(triples.graph, ranking, seeds, chains)
    ms = (time.perf_counter() - began) * 1000
    given = set(asked.seeds)

    def listed(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in dict.fromkeys(names) if name not in given and name.startswith(asked.among))

    walked = listed(triples.names[vertex] for vertex in ranking.top(len(triples.names) if asked.among else 50))
    ends = [triples.name(tree.chain.cause) for tree in answer.trees]
    return Found(walked, listed([*ends, *(triples.name(vertex) for vertex in answer.vertices)]), len(chains), cut, ms)


def _chains(triples: Triples, asked: Asked, seeds: frozenset[int]) -> tuple[tuple[Chain, ...], bool]:
    """Each end of the relation path once, by a way that leads there; at most `CHAINS`."""
    if not asked.path:
        return (), False
    reached: dict[int, tuple[Edge, ...]] = {}
    for seed in sorted(seeds):
        ways: dict[int, tuple[Edge, ...]] = {seed: ()}
        for relation in asked.path:
            step: dict[int, tuple[Edge, ...]] = {}
            for vertex, edges in ways.items():
                for other, edge in triples.along.get((relation, vertex), ()):
                    step.setdefault(other, (*edges, edge))
            ways = step
        for end, edges in ways.items():
            reached.setdefault(end, edges)
    ends = sorted(reached.items())
    chains = tuple(
        Chain(Vertex(f"e:{end:09}"), "path", tuple(edge.ref for edge in edges), 0, "") for end, edges in ends[:CHAINS]
    )
    return chains, len(ends) > CHAINS


def recall(names: Sequence[str], gold: frozenset[str]) -> float:
    """Share of the gold among the first five; of more than five gold names, at most five can be there."""
    return len(gold.intersection(names[:FIRST])) / len(gold)


def table(triples: Triples, questions: Sequence[Asked]) -> list[str]:
    """The printed lines for one triple file and its questions."""
    found = [ask(triples, asked) for asked in questions]
    facts = (
        f"{triples.count} triples, {len(triples.names)} names, {triples.graph.pair_count} adjacent pairs; "
        f"{triples.refuted} refuted (belief 0), {triples.to_itself} from a name to itself (left out)"
    )
    asked_for = (
        f"{len(questions)} questions, {sum(bool(asked.path) for asked in questions)} with a relation path, "
        f"{sum(one.cut for one in found)} of them cut at {CHAINS} ends"
    )
    lines = [facts, asked_for, f"{'':12} {'recall@5':>9} {'all-gold@5':>11}"]
    for label, lists in (
        ("walk", [one.walked for one in found]),
        ("walk + tree", [one.assembled for one in found]),
    ):
        recalls = [recall(names, asked.gold) for names, asked in zip(lists, questions, strict=True)]
        whole = sum(value == 1.0 for value in recalls) / len(recalls)
        lines.append(f"{label:12} {statistics.fmean(recalls):9.3f} {whole:11.3f}")
    times = sorted(one.ms for one in found)
    lines.append(f"time a question: median {statistics.median(times):.1f} ms, longest {times[-1]:.1f} ms")
    return lines


# --- the example and the large run --------------------------------------------------------------


def drawn(count: int, questions: int, seed: int = 1) -> tuple[Triples, list[Asked]]:
    """`count` triples among a third as many names, with two-step questions planted among them."""
    rng = random.Random(seed)
    size = max(10, count // 3)
    rows = [
        (f"n{rng.randrange(size)}", f"rel{rng.randrange(40)}", f"n{rng.randrange(size)}", rng.uniform(0.3, 1.0))
        for _ in range(count - 2 * questions)
    ]
    asked = []
    for number in range(questions):
        seed_name, middle, gold = f"n{rng.randrange(size)}", f"middle{number}", f"gold{number}"
        rows += [(seed_name, "planted", middle, 0.9), (middle, "leads_to", gold, 0.9)]
        asked.append(Asked(f"q{number}", (seed_name,), frozenset({gold}), ("planted", "leads_to")))
    return triples_of(rows), asked


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("triples", nargs="?", type=Path)
    parser.add_argument("questions", nargs="?", type=Path)
    parser.add_argument("--drawn", type=int, default=100_000, help="triples of the large run")
    args = parser.parse_args(argv)
    if args.triples is not None and args.questions is None:
        parser.error("a triple file must come with its questions, found only the first")
    triples = read_triples(args.triples or DATA / "home.tsv")
    print("\n".join(table(triples, read_questions(args.questions or DATA / "home.jsonl", triples))))
    if args.triples is None:
        began = time.perf_counter()
        large, asked = drawn(args.drawn, 50)
        print(f"\ndrawn at random, laid out in {time.perf_counter() - began:.1f} s:")
        print("\n".join(table(large, asked)))


if __name__ == "__main__":
    try:
        main()
    except TriplesRefused as refused:
        sys.exit(str(refused))
