"""One question, end to end: the five steps on one screen.

1. Read the question, deterministically (`read_question`). Danger is seen first.
2. Send the arithmetic to the numbers (`figures`): windows against the pet's own past.
3. Walk: personalized PageRank from the pet, the sign and the dated candidates (`connect`).
4. Assemble: one rooted tree a candidate; topology decides what is in the answer.
5. Answer with receipts (`Draft`): classes, citations, what is missing; the budget last.

Reads one snapshot and writes nothing. The same snapshot, instant and question give the same
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gateway.ask.answer import DEFAULT_BUDGET, Draft
from gateway.ask.logged import by_log_words
from gateway.ask.question import read_question
from gateway.ask.replies import reply
from gateway.ask.scene import Scene
from gateway.ask.triage import is_urgent, triage
from gateway.measure.days import zone_at

if TYPE_CHECKING:
    from gateway.dialogue import Answer, Question
    from gateway.store.reads import Reader

__all__ = ["Conversation", "ask"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a follow-up may refer to: the pet spoken of last, and the answer before."""

    last_pet: str | None
    answer: Answer

    @classmethod
    def after(cls, answer: Answer) -> Self:
        """The conversation as it stands after an answer."""
        pets = [pet for pet in answer.question.pets if pet != "?"]
        return cls(pets[0] if len(pets) == 1 else None, answer)


def ask(
    text: str,
    reader: Reader,
    *,
    now_ms: int,
    budget: int = DEFAULT_BUDGET,
    conversation: Conversation | None = None,
) -> Answer:
    """Answer a question from what is stored.

    Parameters
    ----------
    text : str
        The question as typed; anything at all.
    reader : Reader
        A snapshot; nothing later than ``now_ms`` is used.
    now_ms : int
        The asker's now, ms UTC; it is printed with the answer.
    budget : int
        Token budget, in ceil(UTF-8 bytes / 4).
    conversation : Conversation, optional
        The answer this question follows.

    Raises
    ------
    HouseholdError
        No time zone is stored, so no day can be cut.
    """
    scene = Scene.at(reader, now_ms)
    last_pet = None if conversation is None else conversation.last_pet
    earlier = None if conversation is None else conversation.answer.question
    question = read_question(
        text, household=scene.home, now_ms=now_ms, last_pet=last_pet, earlier=earlier, extra=scene.ingredients()
    )
    question = by_log_words(scene, question)
    draft = Draft()
    draft.explain.extend(_reading(question))
    if is_urgent(question):
        triage(scene, question, draft)
    else:
        reply(scene, question, draft, earlier=None if conversation is None else conversation.answer)
    zone = zone_at(now_ms, scene.zones).key
    return draft.finish(question, as_of_ms=now_ms, zone=zone, budget=budget)


def _reading(question: Question) -> list[str]:
    """How the question was read, for ``--explain``."""
    frame = (
        f"rule {question.rule}: intent {question.intent}, pets {', '.join(question.pets) or '-'}, "
        f"metric {question.metric or '-'} {question.direction or ''}, window {question.window_label or '-'}"
    )
    lines = [frame]
    for mention in question.mentions:
        passed = "; ".join(f"not {target}: {why}" for target, why in mention.rejected)
        lines.append(f"  {mention.text!r} is {mention.target}{f' ({passed})' if passed else ''}")
    if question.unmatched:
        lines.append(f"  not understood: {', '.join(question.unmatched)}")
    return lines
