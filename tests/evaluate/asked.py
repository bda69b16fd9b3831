"""Asks the product every question of a household, and hands the answers on as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gateway.ask.answer import answer_json
from gateway.ask.ask import ask
from gateway.store import Snapshot
from tests.evaluate.cases import BUDGET, Question, World

__all__ = ["answers"]


def answers(world: World, *, budget: int = BUDGET) -> Iterator[tuple[Question, dict]]:
    """Each question with its answer; the budget is that both sides have, unless another one is asked for."""
    with Snapshot(Path(world.db_path)) as reader:
        for question in world.questions:
            yield question, answer_json(ask(question.text, reader, now_ms=question.now_ms, budget=budget))
