"""The proof: drawn households, questions with known truth, ours beside the stack it replaced.

``make evaluate`` prints the table and writes it into docs/evaluation.md and README.md. Every
household is drawn from its hidden causes; the half whose table is published was never used to
find a fault. Options: ``--households 384 --seed 2026 --dry`` (write nothing).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from tests.evaluate.ablate import VARIANTS, without
from tests.evaluate.asked import answers
from tests.evaluate.book import Book
from tests.evaluate.cases import BUDGET, TIGHT, World, write_cases
from tests.evaluate.mutate import Caught, spoiled
from tests.evaluate.score import Score, retrieved
from tests.evaluate.stories import RIVALS
from tests.evaluate.table import (
    Stack,
    ablation_table,
    grid_lines,
    main_table,
    mutation_table,
    order_table,
    read_stack,
    readme_lines,
    stack_lines,
    with_rows,
    written,
)
from tests.evaluate.worlds import HALVES, worlds

ROOT = Path(__file__).resolve().parents[1]
HOUSEHOLDS, SEED = 384, 2026
STACK_HOURS = 4


def say(text: str) -> None:
    print(text, flush=True)


@dataclass
class Part:
    """What one process found: its households, tallies, spoiled answers, hits by question, the ablation."""

    drawn: list[World] = field(default_factory=list)
    score: Score = field(default_factory=Score)
    caught: dict[str, Caught] = field(default_factory=dict)
    hits: dict[str, bool] = field(default_factory=dict)
    ablation: dict[str, Score] = field(default_factory=lambda: {name: Score() for name in VARIANTS})

    def join(self, other: Part) -> None:
        """Take over what another process found."""
        self.drawn += other.drawn
        self.score.join(other.score)
        self.hits |= other.hits
        for kind, one in other.caught.items():
            mine = self.caught.setdefault(kind, Caught(0, 0, []))
            mine.made, mine.caught = mine.made + one.made, mine.caught + one.caught
            mine.passed += one.passed
        for name, score in other.ablation.items():
            self.ablation[name].join(score)


def part_of(half: str, households: int, seed: int, folder: Path, part: tuple[int, int], *, ablate: bool) -> Part:
    """A process's share of a half: drawn, asked, checked, every other answer spoiled, parts taken away."""
    place, found = folder / f"{half}-{part[0]}", Part()
    place.mkdir()
    for world in worlds(half, households, seed, place, part=part):
        found.drawn.append(world)
        _ask(world, found)
        if ablate:
            _ablate(world, found)
        Path(world.db_path).unlink()
    return found


def _ask(world: World, found: Part) -> None:
    book, rng = Book(Path(world.db_path)), random.Random(f"{world.id} spoiled")
    for number, (question, answer) in enumerate(answers(world)):
        found.score.add(question, answer, book)
        if question.facts:
            found.hits[question.id] = retrieved(question, answer)
        for kind, caught, what in spoiled(answer, book, world.db_path, rng) if number % 2 == 0 else ():
            one = found.caught.setdefault(kind, Caught(0, 0, []))
            one.made, one.caught = one.made + 1, one.caught + caught
            if not caught:
                one.passed.append(what)
    book.close()


def _ablate(world: World, found: Part) -> None:
    asking = replace(world, questions=tuple(q for q in world.questions if q.truth.asks_cause))
    for name, score in found.ablation.items():
        with without(name):
            for question, answer in answers(asking):
                score.add_causes(question, answer)
            for question, answer in answers(asking, budget=TIGHT):
                score.add_tight(question, answer)


def asked_of(half: str, options: argparse.Namespace, folder: Path, *, ablate: bool) -> Part:
    """A half asked in so many processes; its households in the order drawn."""
    began, whole = time.perf_counter(), Part()
    count = options.workers
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        runs = [
            pool.submit(part_of, half, options.households, options.seed, folder, (i, count), ablate=ablate)
            for i in range(count)
        ]
        for run in runs:
            whole.join(run.result())
    whole.drawn.sort(key=_place)
    took = time.perf_counter() - began
    say(f"{half}: {len(whole.drawn)} households, {whole.score.answers} questions asked and checked in {took:.0f} s")
    return whole


def _place(world: World) -> tuple[int, int]:
    """Where a household stands in the order drawn: rivals come before the draw of their number, a pair's twin last."""
    kind = world.id.partition("-")[0]
    return int(world.id.rpartition("-")[2]), 0 if kind in RIVALS else 2 if kind == "pair_without" else 1


def stack_of(folder: Path, drawn: list[World], hits: dict[str, bool], told: Path | None) -> Stack:
    """The stack's answer from its own environment, or the reason why there is none.

    ``told`` is what an earlier run of the stack on the same households wrote.
    """
    if told is not None:
        return read_stack(told, drawn, hits, "" if told.exists() else f"{told.name} is not there")
    python, script = os.environ.get("SCENTWALK_STACK_PY", ""), ROOT / "tests" / "evaluate" / "stack.py"
    if not python or not script.exists():
        what = "its script is not there" if python else "its environment was not made (SCENTWALK_STACK_PY is empty)"
        return read_stack(folder, (), hits, what)
    out = folder / "stack.json"
    say("the stack: tuning on the development half, then the published half (some minutes)")
    done = subprocess.run(
        [python, str(script), *(str(folder / f"{half}.jsonl") for half in HALVES), str(out)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=STACK_HOURS * 3600,
        check=False,
    )
    if done.returncode or not out.exists():
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return read_stack(folder, (), hits, f"it ended with {done.returncode}: {last}")
    return read_stack(out, drawn, hits)


def not_caught(caught: dict[str, Caught]) -> None:
    """Name every spoiled answer that passed."""
    for kind, one in caught.items():
        for what in one.passed:
            say(f"not caught, {kind}: {what}")


def report(
    score: Score, caught: dict[str, Caught], ablation: dict[str, Score], stack: Stack, *, households: int
) -> list[str]:
    """The lines between the markers of docs/evaluation.md."""
    lines = [
        (
            f"{households} households of the published half, {score.answers} questions; 95 % intervals by Wilson in brackets. "
            "Printed by `make evaluate`."
        ),
        "",
        *main_table(score, stack),
        "",
        *stack_lines(stack),
        "",
        "### The checker, checked",
        "",
        *mutation_table(caught),
        "",
        *_taken_away(ablation),
    ]
    grid = grid_lines(stack)
    head = "### The stack's grid on the development half: the best row of each way to cut and to rewrite"
    return [*lines, "", head, "", *grid] if grid else lines


def _taken_away(ablation: dict[str, Score]) -> list[str]:
    """Both tables of what each part buys."""
    return [
        "### One part taken away",
        "",
        "Only questions that ask for a cause; everything else as built.",
        "",
        *ablation_table(ablation),
        "",
        (
            "What stands first and what is told, of the questions why something changed whose cause is on file, "
            f"at {BUDGET} tokens and at {TIGHT}:"
        ),
        "",
        *order_table(ablation),
    ]


def publish(lines: list[str], readme: list[str]) -> None:
    """Write the table into docs/evaluation.md and three lines of it into README.md."""
    document = ROOT / "docs" / "evaluation.md"
    document.write_text(written(document.read_text("utf-8"), "results", lines), "utf-8")
    page = ROOT / "README.md"
    page.write_text(with_rows(page.read_text("utf-8"), readme), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--households", type=int, default=HOUSEHOLDS)
    parser.add_argument("--workers", type=int, default=2, help="processes that share the households")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--dry", action="store_true", help="print the table and write nothing")
    parser.add_argument(
        "--development", action="store_true", help="score the development half instead, with every miss"
    )
    parser.add_argument("--ablate", action="store_true", help="with --development: take each part away, too")
    parser.add_argument("--stack-json", type=Path, help="what an earlier run of the stack wrote, instead of running it")
    parser.add_argument("--stack-households", type=int, help="compare with the stack on the first so many only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scentwalk-evaluate-") as name:
        folder = Path(name)
        if options.development:
            whole = asked_of("development", options, folder, ablate=options.ablate)
            score, caught = whole.score, whole.caught
            for figure, asked, what in score.misses:
                say(f"{figure}: {asked}: {what}")
            say("\n".join([*main_table(score, read_stack(folder, (), {}, "not asked")), "", *mutation_table(caught)]))
            not_caught(caught)
            if options.ablate:
                say("\n".join(_taken_away(whole.ablation)))
            return
        whole = asked_of("published", options, folder, ablate=True)
        score, caught, ablation = whole.score, whole.caught, whole.ablation
        beside = whole.drawn[: options.stack_households]
        if options.stack_json is None:
            write_cases(folder / "published.jsonl", beside)
            write_cases(folder / "development.jsonl", worlds("development", options.households, options.seed, folder))
        stack = stack_of(folder, beside, whole.hits, options.stack_json)
    lines = report(score, caught, ablation, stack, households=options.households)
    say("\n".join(lines))
    not_caught(caught)
    if not options.dry:
        publish(lines, readme_lines(score, stack, options.households, caught))
        say("written: docs/evaluation.md, README.md")


if __name__ == "__main__":
    sys.exit(main())
