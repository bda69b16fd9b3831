"""Whether a thing is the object of eating, chewing or touching ("ate a load of raw bread dough").

In: the cue classes of a sentence, its tokens, the thing's place. Out: yes or no. Everyday words
(a battery, a string, dough) are poisons only as what was eaten. Never a guess across a clause.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.ask.cues import Spans
from gateway.ontology.language import Language
from gateway.ontology.recognise import Token

__all__ = ["is_object_of"]

_REACH = 6
"""Words between "ate" and what was eaten: "a load of that horrible raw bread" dough."""

_LINKED_REACH = 5
"""Words between where all of them are articles, amounts and the like."""


def is_object_of(
    cues: Spans,
    verbs: Sequence[str],
    tokens: Sequence[Token],
    thing: tuple[int, int],
    *,
    language: Language,
    links: frozenset[str],
) -> bool:
    """Whether a verb of the cue classes ``verbs`` has the thing at token places ``thing`` as its object.

    ``links`` are articles, amounts and the like. What was done with the mouth (class
    "swallow") reaches over any word of its clause: in doubt it was eaten.
    """
    first, last = thing
    spans = [span for name in verbs for span in cues.get(name, ())]
    if any(_linked(tokens, end, first, links) or _before(last, begin, language) for begin, end in spans):
        return True
    return any(_in_clause(tokens, end, first, language) for _, end in cues.get("swallow", ()))


def _before(end: int, verb: int, language: Language) -> bool:
    """Whether the verb follows its object, as a German participle does ("einen Faden verschluckt")."""
    return language.id != "en" and 0 <= verb - end <= 2


def _linked(tokens: Sequence[Token], verb_end: int, first: int, links: frozenset[str]) -> bool:
    """Whether only articles, amounts and the like stand between a verb and a thing."""
    between = range(verb_end, first)
    return verb_end <= first and len(between) <= _LINKED_REACH and all(tokens[i].text in links for i in between)


def _in_clause(tokens: Sequence[Token], verb_end: int, first: int, language: Language) -> bool:
    """Whether a thing follows the verb in one clause, whatever words describe it."""
    between = tokens[verb_end:first] if verb_end <= first else ()
    parts = language.words["object_parts"]
    return 0 < len(between) <= _REACH and not any(
        token.text in parts or not token.text[0].isalnum() for token in between
    )
