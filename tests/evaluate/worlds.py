"""Draws the households of a half and hands them out with their documents and questions.

``python -m tests.evaluate.worlds --half development -n 20 --out cases.jsonl`` writes them for
the stack of chunks, which reads nothing else.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.evaluate.cases import Fact, Question, World, write_cases
from tests.evaluate.home import Home
from tests.evaluate.questions import questions_of
from tests.evaluate.stories import KINDS, RIVALS, Story, whole

__all__ = ["HALVES", "PAIR_EVERY", "RIVAL_EVERY", "worlds"]

HALVES = ("development", "published")
PAIR_EVERY = 5
"""One household in so many is a pair: with its gold facts, and as a twin without them."""
RIVAL_EVERY = 6
"""One household in so many has rivals of unequal evidence; the others are drawn as if there were none."""


def worlds(
    half: str, n: int, seed: int, folder: Path, *, part: tuple[int, int] = (0, 1), rival_every: int = RIVAL_EVERY
) -> Iterator[World]:
    """The first ``n`` households of a half, twins counted, each written into ``folder``.

    Parameters
    ----------
    half : str
        ``development`` or ``published``: no draw and no sentence of one is in the other.
    n : int
        How many.
    seed : int
        Redraws everything.
    part : tuple of int
        ``(i, k)``: only every k-th draw from the i-th on, so that k processes share the work.
    rival_every : int
        One household in so many has rivals.
    """
    kinds, rivals = sorted(KINDS), sorted(RIVALS)
    number = made = rival = 0
    while made < n:
        if made >= rival_every * (rival + 1) - 1:
            kind = rivals[rival % len(rivals)]
            if rival % part[1] == part[0]:
                drawn = random.Random(f"{half} {seed} rival {rival} {kind}")
                yield _finished(RIVALS[kind](Home(drawn, folder, f"{kind}-{half[:3]}-{seed}-{number}")), half, kind)
            made, rival = made + 1, rival + 1
            continue
        key, mine = f"{half} {seed} {number}", number % part[1] == part[0]
        if number % PAIR_EVERY == PAIR_EVERY - 1:
            for removed in (False, True)[: n - made]:
                name = f"pair_{'without' if removed else 'with'}-{half[:3]}-{seed}-{number}"
                if mine:
                    yield _finished(whole(Home(random.Random(key), folder, name), removed=removed), half, "pair")
                made += 1
        else:
            kind = kinds[(number - number // PAIR_EVERY) % len(kinds)]
            if mine:
                home = Home(random.Random(f"{key} {kind}"), folder, f"{kind}-{half[:3]}-{seed}-{number}")
                yield _finished(KINDS[kind](home), half, kind)
            made += 1
        number += 1


def _finished(story: Story, half: str, kind: str) -> World:
    path = story.home.write()
    questions = questions_of(story, half)
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as stored:
        questions = tuple(_with_records(question, stored) for question in questions)
    stored.close()
    return World(story.home.name, kind, str(path), tuple(story.home.documents), questions)


def _with_records(question: Question, stored: sqlite3.Connection) -> Question:
    """The question with, for each fact, every stored record that holds it."""
    return replace(question, facts=tuple(_records_of(fact, stored) for fact in question.facts))


def _records_of(fact: Fact, stored: sqlite3.Connection) -> Fact:
    """Records whose text says it (a label's words, a guide's sentence) or that stand behind its link."""
    found = list(fact.records)
    if fact.edge:
        found += [
            row[0]
            for row in stored.execute(
                "SELECT r.ref FROM evidence v JOIN record e ON e.id = v.edge JOIN record r ON r.id = v.record "
                "WHERE e.ref = ? AND v.true_mass > 0 ORDER BY r.ref",
                (fact.edge,),
            )
        ]
    if fact.spans and fact.spans[0].document.startswith("guide"):
        found += [
            row[0]
            for row in stored.execute(
                "SELECT r.ref FROM text_record t JOIN record r ON r.id = t.record "
                "WHERE r.kind = 'passage' AND instr(t.text, ?) > 0 ORDER BY r.ref",
                (fact.id,),
            )
        ]
    if fact.spans and fact.spans[0].document.startswith("label-"):
        code = fact.spans[0].document.removeprefix("label-")
        words = fact.id.partition(" lists ")[2]
        found += [
            row[0]
            for row in stored.execute(
                "SELECT r.ref FROM text_record t JOIN record r ON r.id = t.record "
                "WHERE r.kind = 'label' AND r.ref LIKE ? AND instr(lower(t.text), ?) > 0 ORDER BY r.ref",
                (f"label:{code}@%", words),
            )
        ]
    return replace(fact, records=tuple(dict.fromkeys(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="development")
    parser.add_argument("-n", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        count = write_cases(options.out, worlds(options.half, options.n, options.seed, Path(folder)))
    print(f"{options.n} households, {count} questions, {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
