"""The replaced stack's retrieval: BM25 and embeddings, fused, reranked, admitted under the budget.

`Index` is one household under one way of cutting chunks; `Asked` keeps what a question's ranking
needs whatever the settings are, so that a grid of hundreds of rows costs one embedding. It runs in
the stack's own environment (numpy, bm25s, PyStemmer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import bm25s
import numpy as np
import Stemmer

from tests.evaluate.cases import BUDGET, Cover, Question, World, covered
from tests.evaluate.stack_text import Chunk, Query, Spent, asked_days, chunks_of, fused, in_turns, kind_of, rewritten

RERANKS = ("none", "query", "question", "mmr 0.8", "mmr 0.5")
"""No reranker; by the embedding's likeness to each query, before their lists are joined; to the
question, after; the same less what an earlier chunk said (maximal marginal relevance, Carbonell
and Goldstein 1998)."""

_OWN = 2
"""Chunks of the question's own list that go first where lists are joined in turns."""

_NEAR = 10
"""How far down a ranking a chunk may stand to be lifted for being recent."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One row of the grid. A weight of 0 leaves that ranker out."""

    chunk: int = 60
    overlap: int = 0
    expand: str = "dates"
    k: int = 50
    rrf: float = 20
    weight_bm25: float = 1.0
    weight_embedding: float = 1.0
    weight_recent: float = 0.0
    rerank: str = "question"
    depth: int = 40
    join: str = "turns"

    @property
    def shown(self) -> dict:
        return asdict(self)


@dataclass(slots=True)
class Asked:
    """A question's rankings of the chunks: for each query its weight, BM25 and cosine, best first."""

    question: Question
    weights: list[float]
    bm25: list[list[int]]
    cosine: list[list[int]]
    likeness: list[np.ndarray]


def name_of(pet: str) -> str:
    return pet.rpartition(":")[2].replace("-", " ").title()


def queries_of(world: World, question: Question, expand: str) -> tuple[Query, ...]:
    pet = name_of(question.pet)
    kind, days = kind_of(world.documents, pet), asked_days(world.documents, pet)
    return rewritten(question.text, pet=pet, kind=kind, days=days, expand=expand)


class Index:
    """The chunks of one household with their two indexes."""

    def __init__(self, chunks: Sequence[Chunk], vectors: Mapping[str, np.ndarray]):
        self.chunks = chunks
        self.vectors = np.stack([vectors[chunk.indexed] for chunk in chunks]).astype(np.float32)
        self._stemmer = Stemmer.Stemmer("english")
        self.words = self._words([chunk.indexed for chunk in chunks])
        self.bm25 = bm25s.BM25()
        self.bm25.index(self.words, show_progress=False)

    @cached_property
    def alike(self) -> np.ndarray:
        return self.vectors @ self.vectors.T

    def _words(self, texts: list[str]) -> list[list[str]]:
        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False)

    def _of_kind(self, kind: str) -> np.ndarray:
        return np.array([kind in ("", chunk.kind) for chunk in self.chunks])

    def asked(self, question: Question, queries: Sequence[Query], vectors: Mapping[str, np.ndarray]) -> Asked:
        """Rank the chunks by every query, those that ask with an earlier one's best chunk in their turn."""
        asked = Asked(question, [query.weight for query in queries], [], [], [])
        best: list[int | None] = []
        for query, words in zip(queries, self._words([query.text for query in queries]), strict=True):
            vector, wanted, allowed = vectors[query.text].astype(np.float32), words, self._of_kind(query.kind)
            found = None if query.after is None else best[query.after]
            if found is not None:
                wanted = words + self.words[found]
                vector = self.vectors[found] + (vector if query.text else 0)
                vector /= np.linalg.norm(vector)
                allowed[found] = False
            scores, likeness = self.bm25.get_scores(wanted), self.vectors @ vector
            asked.bm25.append([i for i in _best(scores) if allowed[i] and scores[i] > 0])
            asked.cosine.append([i for i in _best(likeness) if allowed[i]])
            asked.likeness.append(likeness)
            first = [(1.0, asked.bm25[-1][:_NEAR]), (1.0, asked.cosine[-1][:_NEAR])]
            order = fused([*first, (1.0, self._recent(first))], constant=10)
            best.append(order[0] if order else None)
        return asked

    def ranked(self, asked: Asked, settings: Settings) -> list[int]:
        """Chunks best first: each query's rankings fused, the queries' lists joined, then reranked."""
        weighted, lists = [], []
        for number, weight in enumerate(asked.weights):
            rankings = self._rankings(asked, number, settings)
            if settings.join == "rrf":
                weighted += [(weight * part, ranking) for part, ranking in rankings]
                continue
            order = fused(rankings, constant=settings.rrf)
            if settings.rerank == "query":
                order = _nearest(order, asked.likeness[number], settings.depth)
            lists.append(order)
        order = fused(weighted, constant=settings.rrf) if settings.join == "rrf" else in_turns(lists, own=_OWN)
        if settings.rerank in ("none", "query"):
            return order
        if settings.rerank == "question":
            return _nearest(order, asked.likeness[0], settings.depth)
        head = self._apart(order[: settings.depth], asked.likeness[0], float(settings.rerank.split()[1]))
        return head + order[settings.depth :]

    def _rankings(self, asked: Asked, number: int, settings: Settings) -> list[tuple[float, list[int]]]:
        """A query's rankings with their weights: BM25, embedding, and those near the top by their day."""
        bm25, cosine = asked.bm25[number][: settings.k], asked.cosine[number][: settings.k]
        rankings = [(settings.weight_bm25, bm25), (settings.weight_embedding, cosine)]
        if settings.weight_recent:
            rankings.append((settings.weight_recent, self._recent(rankings)))
        return [(part, ranking) for part, ranking in rankings if part]

    def _recent(self, rankings: Sequence[tuple[float, list[int]]]) -> list[int]:
        """The chunks near the top of any ranking that bear a day, newest first."""
        near = {i for part, ranking in rankings if part for i in ranking[:_NEAR] if self.chunks[i].day}
        return sorted(near, key=lambda i: (self.chunks[i].day, -i), reverse=True)

    def _apart(self, head: list[int], relevance: np.ndarray, keep: float) -> list[int]:
        places = np.array(head)
        worth, alike = keep * relevance[places], (1 - keep) * self.alike[np.ix_(places, places)]
        nearest = np.zeros(len(head), dtype=np.float32)
        left, chosen = np.ones(len(head), dtype=bool), []
        for _ in head:
            best = int(np.argmax(np.where(left, worth - nearest, -np.inf)))
            chosen.append(head[best])
            left[best] = False
            nearest = np.maximum(nearest, alike[best])
        return chosen

    def retrieved(self, asked: Asked, settings: Settings) -> tuple[list[Cover], float]:
        """What the budget admits, and the best similarity to the question among it."""
        spent, best = Spent(BUDGET), -1.0
        for place in self.ranked(asked, settings):
            if spent.admit(self.chunks[place]):
                best = max(best, float(asked.likeness[0][place]))
            if spent.used >= BUDGET - 5:
                break
        return [Cover(*cover) for cover in spent.covers], best


def _nearest(order: list[int], likeness: np.ndarray, depth: int) -> list[int]:
    return sorted(order[:depth], key=lambda i: (-likeness[i], i)) + order[depth:]


def _best(row: np.ndarray) -> list[int]:
    return np.argsort(-row, kind="stable").tolist()


def share_found(question: Question, covers: Sequence[Cover]) -> float:
    """Facts of the question that the chunks state, as a share of all."""
    return sum(covered(fact, covers) for fact in question.facts) / len(question.facts)


def cut(world: World, settings: Settings) -> list[Chunk]:
    return [
        chunk
        for document in world.documents
        for chunk in chunks_of(document, size=settings.chunk, overlap=settings.overlap)
    ]
