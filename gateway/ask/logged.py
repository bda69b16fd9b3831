"""What people wrote down, found by what it is or by its own words: a visitor, a bath, "plumber in the kitchen".

In goes a question; out come log entries with their day, or that none is on file. A word is looked
up as it stands: nothing is ranked, and no word that is only alike counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.ask.said import Said, is_or_are, own_words, said, say, verbatim
from gateway.ask.settle import log_day
from gateway.ask.sources import mentions, say_logged
from gateway.ask.wording import clock_time, count_word, day, joined
from gateway.dialogue import NoticeKind
from gateway.measure.days import local_day
from gateway.ontology.load import languages
from gateway.ontology.recognise import tokens_of

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.stored import TextRecord

__all__ = ["LOGGED_EVENTS", "by_log_words", "logged_event", "said_in_log"]

LOGGED_EVENTS = frozenset({"event:visitor", "event:fireworks", "event:bath", "event:surgery"})
"""Events that only people write down, each an entry of its own kind."""
_SHOWN = 3
_SHORTEST_WORD = 4
_HOW_LONG, _HAPPENED = "how_long_there", "happened"


def logged_event(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "when did the visitor come?", "how long was it here?", "has he had a bath?" from the log."""
    kinds = [scene.ontology.log_kinds[s.partition(":")[2]] for s in question.subjects if s in LOGGED_EVENTS]
    found = [
        entry
        for entry in _logs(scene, question)
        if any(
            entry.object == kind.id or any(mentions(entry.title, tuple(word.split())) for word in kind.words)
            for kind in kinds
        )
    ]
    what = joined([said(kind.words[0]) for kind in kinds], last="or")
    if not found:
        none = say("No {what} {be} on file{when}", what=what, be=is_or_are([what]), when=_in_that_time(question))
        draft.say(NoticeKind.SHORT, none, slot="log", device="people")
        draft.say(NoticeKind.ABSENCE, "What nobody wrote down leaves no trace here", slot="log")
        log_day(draft, "log")
        return
    if question.rule == _HOW_LONG and found[-1].until_ms is None:
        text = say("How long is not on file, only when the {what} was written down", what=what)
        draft.say(NoticeKind.SHORT, text, slot="until")
        draft.say(NoticeKind.NEXT, "Write its end down as an entry of its own; then this can be told", slot="until")
    elif question.rule == _HAPPENED:
        draft.say(NoticeKind.SHORT, "Yes, as logged")
    _say(scene, draft, found[-1:] if question.rule == _HOW_LONG else found)


def _in_that_time(question: Question) -> str:
    return " for that time" if question.window is not None else ""


def _logs(scene: Scene, question: Question) -> tuple[TextRecord, ...]:
    """The dated log entries of the pets asked about (of everybody, where none is named) in the time asked about."""
    inside = None if question.window is None else question.window.interval
    pets = set(question.pets) - {"?"}
    return tuple(
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms)
        if entry.at_ms is not None
        and (not pets or entry.pet is None or entry.pet in pets)
        and (inside is None or inside.start_ms <= entry.at_ms < inside.end_ms)
    )


def _say(scene: Scene, draft: Draft, found: list[TextRecord]) -> None:
    """The latest entries, latest first, each in its own words with its day and whose it is."""
    names = {pet.id: pet.name for pet in scene.home.pets}
    shown = found[-_SHOWN:]
    for entry in reversed(shown):
        date, clock = local_day(entry.at_ms or 0, scene.zones), clock_time(scene.local(entry.at_ms or 0))
        whose: Said | str = ""
        if len(names) > 1 and entry.pet in names:
            whose = say(", written down for {name}", name=verbatim(names[entry.pet]))
        last = None if entry.until_ms is None else day(local_day(entry.until_ms, scene.zones))
        words = say(
            "{text!u} on {when}, {clock}{until}{whose}",
            text=own_words(" ".join(entry.title.split())),
            when=day(date, year_of=scene.today),
            clock=clock,
            until="" if last is None else say(" until {day}", day=last),
            whose=whose,
        )
        say_logged(draft, entry, words, pet=entry.pet)
    if len(found) > len(shown):
        more = say("Earlier ones on file: {count}", count=count_word(len(found) - len(shown)))
        draft.say(NoticeKind.ABSENCE, more, slot="record")


# --- by an entry's own words ----------------------------------------------------------------------------


def by_log_words(scene: Scene, question: Question) -> Question:
    """The question as a look-up in the log, where an entry has a word of it and nothing else was linked.

    A word that was taken for a slip ("plumber" for "plumper") is none where an entry has it.
    """
    unread = question.rule == "nothing_linked" or bool(question.corrections)
    if not unread or question.safety is not None or not _with_its_words(scene, question):
        return question
    named = {mention.target for mention in question.mentions if mention.kind == "pet"}
    pets = tuple(pet.id for pet in scene.home.pets if pet.id in named)
    return replace(
        question,
        intent="record_lookup",
        rule="log_words",
        answer_class="RECORDED",
        pets=pets,
        metric=None,
        direction=None,
        corrections=(),
    )


def said_in_log(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer from the entries that have a word of the question."""
    _say(scene, draft, _with_its_words(scene, question))


def _with_its_words(scene: Scene, question: Question) -> list[TextRecord]:
    slips = " ".join(said for said, _ in question.corrections)
    asked = _own_words(question.text if not slips or question.rule == "log_words" else slips)
    named = {mention.target for mention in question.mentions if mention.kind == "pet"}
    return [
        entry
        for entry in _logs(scene, question)
        if asked & _own_words(entry.title) and (not named or entry.pet is None or entry.pet in named)
    ]


def _own_words(text: str) -> set[str]:
    """The words that say what it is about: no function word, no verb that only helps, no number; plural s aside."""
    common = frozenset[str]().union(
        *(language.markers | language.words["aux"] | language.words["openers"] for language in languages())
    )
    words = (token.text for token in tokens_of(text))
    return {word.rstrip("s") for word in words if len(word) >= _SHORTEST_WORD and word.isalpha() and word not in common}
