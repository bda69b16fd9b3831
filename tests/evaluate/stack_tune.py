"""The replaced stack tuned on the development half to do as well as it can: a grid in three rounds.

First how chunks are cut, with how questions are rewritten, how lists are joined, whether the
newest is preferred and what the reranker looks at. Then, for the best plain and the best planned
rewriting, everything else at once: k, the fusion's constant, the rankers' weights, reranker and
its depth. Then the finalists on more households. Every row is kept. What decides is `Row.aim`:
the hit rate of questions of one fact, of two, and of three and more, on average, so that the
many easy questions do not buy the hard ones out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tests.evaluate.cases import Question, World
from tests.evaluate.stack_model import Embedder
from tests.evaluate.stack_rank import Asked, Index, Settings, cut, queries_of, share_found
from tests.evaluate.stack_text import EXPANSIONS, PLAIN, PLANNED

CUTS = ((35, 0), (50, 0), (90, 25), (200, 50))
"""Size and overlap of chunks in budget units (four bytes): one sentence to the model's full window."""

KS = (10, 40)
CONSTANTS = (2.0, 60.0)
WEIGHTS = ((1.0, 0.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 1.0))
RECENT = (0.0, 0.5, 1.0)
JOINED = (
    ("turns", "none", 0),
    ("turns", "query", 20),
    ("rrf", "none", 0),
    ("rrf", "question", 40),
    ("turns", "mmr 0.8", 40),
    ("rrf", "mmr 0.5", 40),
)
"""How the lists of several queries are joined, what is reranked, and how deep."""

ALONE = (
    ("rrf", "none", 0),
    ("rrf", "question", 40),
    ("rrf", "question", 15),
    ("rrf", "mmr 0.8", 40),
    ("rrf", "mmr 0.5", 40),
)
"""The same where a question is one query, so that there is nothing to join."""
_FINALISTS = 4

Held = Sequence[tuple[Index, dict[str, list[Asked]]]]


@dataclass(frozen=True, slots=True)
class Row:
    """Settings and how they did: shares of questions all of whose facts were found, over all and by facts."""

    settings: Settings
    hit: float
    by_facts: dict[str, float]
    facts: float
    questions: int

    @property
    def aim(self) -> float:
        return sum(self.by_facts.values()) / len(self.by_facts)

    @property
    def shown(self) -> dict:
        return {
            "settings": self.settings.shown,
            "hit": self.hit,
            "by_facts": self.by_facts,
            "aim": self.aim,
            "facts": self.facts,
            "questions": self.questions,
        }


def row_of(settings: Settings, shares: Sequence[tuple[int, float]]) -> Row:
    """A row from each question's number of facts and the share of them that was found."""
    if not shares:
        raise ValueError("a row must be measured on at least one question with facts, found none")
    groups: dict[str, list[bool]] = {}
    for count, share in shares:
        groups.setdefault(str(count) if count < 3 else "3+", []).append(share == 1.0)
    return Row(
        settings,
        sum(share == 1.0 for _, share in shares) / len(shares),
        {group: sum(hits) / len(hits) for group, hits in sorted(groups.items())},
        sum(share for _, share in shares) / len(shares),
        len(shares),
    )


def say(text: str) -> None:
    sys.stderr.write(f"stack: {text}\n")
    sys.stderr.flush()


def indexed(
    worlds: Iterable[World], settings: Settings, embedder: Embedder, expansions: Sequence[str]
) -> Iterator[tuple[Index, dict[str, list[Asked]]]]:
    """Each household's index with its questions ranked, by expansion; some households at a time."""
    worlds = list(worlds)
    for start in range(0, len(worlds), 40):
        some = [(world, cut(world, settings)) for world in worlds[start : start + 40]]
        texts = [chunk.indexed for _, chunks in some for chunk in chunks]
        asked = [query.text for w, _ in some for q in w.questions for e in expansions for query in queries_of(w, q, e)]
        vectors = embedder.known([*texts, *asked])
        for world, chunks in some:
            index = Index(chunks, vectors)
            yield (
                index,
                {e: [index.asked(q, queries_of(world, q, e), vectors) for q in world.questions] for e in expansions},
            )


def rows_of(held: Held, every: Iterable[Settings], known: dict[str, Question]) -> list[Row]:
    """Each of the settings on the questions whose facts are known."""
    return [
        row_of(
            settings,
            [
                (asked.question.hops, share_found(known[asked.question.id], index.retrieved(asked, settings)[0]))
                for index, questions in held
                for asked in questions[settings.expand]
                if asked.question.id in known
            ],
        )
        for settings in every
    ]


def joined_for(expand: str) -> tuple[tuple[str, str, int], ...]:
    return ALONE if expand in ("none", "dates") else JOINED


def best_of(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-row.aim, -row.hit, -row.facts, str(row.settings)))


def tuned(worlds: Sequence[World], embedder: Embedder, *, first: int, final: int) -> tuple[list[Row], Row, Row]:
    """Every row tried, and the best with plain and with planned queries on `final` households.

    Rounds one and two look at `first` of them.
    """
    known = {q.id: q for w in worlds for q in w.questions if q.facts}
    began = time.perf_counter()

    def told(what: str, found: Sequence[Row]) -> None:
        say(f"{what}: best of {len(found)} {found[0].aim:.3f} ({time.perf_counter() - began:.0f} s)")

    rows: list[Row] = []
    for size, overlap in CUTS:
        base = Settings(chunk=size, overlap=overlap)
        held = list(indexed(worlds[:first], base, embedder, EXPANSIONS))
        tried = [
            replace(base, expand=e, weight_recent=n, join=j, rerank=r, depth=d)
            for e, n in product(EXPANSIONS, RECENT[:2])
            for j, r, d in joined_for(e)[:4]
        ]
        rows += (found := best_of(rows_of(held, tried, known)))
        told(f"chunks of {size}/{overlap}", found)
    best = []
    for family in (PLAIN, PLANNED):
        way = best_of(row for row in rows if row.settings.expand in family)[0].settings
        held = list(indexed(worlds[:first], way, embedder, [way.expand]))
        tried = [
            replace(
                way, k=k, rrf=c, weight_bm25=w[0], weight_embedding=w[1], weight_recent=n, join=j, rerank=r, depth=d
            )
            for k, c, w, n, (j, r, d) in product(KS, CONSTANTS, WEIGHTS, RECENT, joined_for(way.expand))
        ]
        rows += (found := best_of(rows_of(held, tried, known)))
        told(f"{way.expand}, {way.chunk}/{way.overlap}", found)
        finalists = [row.settings for row in found[:_FINALISTS]]
        held = list(indexed(worlds[:final], way, embedder, [way.expand]))
        rows += (last := best_of(rows_of(held, finalists, known)))
        best.append(last[0])
    return rows, best[0], best[1]


def threshold_of(have: Sequence[float], lack: Sequence[float]) -> tuple[float, float, float]:
    """The similarity below which "nothing on file" is said: largest recall less false abstention.

    Parameters
    ----------
    have, lack : sequence of float
        Best similarity of questions whose facts are on file, and of those whose facts were removed.

    Returns
    -------
    tuple
        The threshold, the share of `lack` below it (recall), the share of `have` below it (false abstention).
    """
    if not have or not lack:
        raise ValueError(f"both kinds of question must be there, are {len(have)} with facts and {len(lack)} without")

    def below(at: float, values: Sequence[float]) -> float:
        return sum(value < at for value in values) / len(values)

    at = max(sorted({*have, *lack, 2.0}), key=lambda value: below(value, lack) - below(value, have))
    return at, below(at, lack), below(at, have)
