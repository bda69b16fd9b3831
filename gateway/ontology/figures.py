"""Of whom a word that alarms is said: figures of speech, devices, askers, numbers and toys.

In: tokens and the word lists ``said_of`` of the safety tables. Out: the places of words that
are said of no animal ("the hub is not responding", "I'm dying to know", "attacked his squeaky
duck"). Decided by what stands beside the word; in doubt it is said of the animal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from gateway.ontology.recognise import Token, fold_alias

__all__ = ["said_of_no_animal", "word_lists"]

Words = Mapping[str, frozenset[str]]

_FIGURE = 4
"""Words of the longest figure ("gasping for a walk")."""

_TOY_WITHIN = 5
"""Words from "attacked" to the toy: "attacked his poor old squeaky" duck."""

_GAVE_WITHIN = 7
"""Words from "gave" to "heart attack": "gave the poor man next door a heart attack"."""

_LED = 4
"""Words before a noun that belong to it: "my mother in" law, "the new kitchen" feeder."""


def word_lists(rows: Mapping[str, Iterable[str]]) -> Words:
    """Word lists of a table, folded as the tokens they are compared with."""
    return MappingProxyType({name: frozenset(" ".join(fold_alias(word)) for word in row) for name, row in rows.items()})


def said_of_no_animal(text: str, tokens: Sequence[Token], words: Words) -> frozenset[int]:
    """Places of alarming words that are said of a device, a person, a number or a toy.

    Parameters
    ----------
    text : str
        As typed: a capital after the word is a name, and a name is who it happened to.
    tokens : sequence of Token
    words : mapping
        The lists of ``[said_of]``; each word stands in one place of one structure.
    """
    alarming = words["alarming"] | words["falls"] | words["assaults"] | words["wakes"] | words["replies"]
    return frozenset(
        index for index, token in enumerate(tokens) if token.text in alarming and _of_none(text, tokens, index, words)
    )


def _of_none(text: str, tokens: Sequence[Token], index: int, words: Words) -> bool:
    word = tokens[index].text
    if any(_phrase(tokens, index, count) in words["figures"] for count in range(2, _FIGURE + 1)):
        return True
    if word == "dead" and _is_very(tokens, index, words):
        return True
    if word in words["assaults"] and _on_a_toy(tokens, index, words):
        return True
    if word in words["replies"] and _to_a_treatment(tokens, index, words):
        return True
    if word in words["own"] and _given_somebody(tokens, index, words):
        return True
    at = _subject(tokens, index, words)
    if at is None or _has_object(text, tokens, index, words):
        return False
    subject = tokens[at].text
    if subject in words["askers"]:
        return word in words["own"]
    if not _is_subject(tokens, at, words):
        return False
    if subject in words["persons"]:
        return word in words["own"]
    if subject in words["numbers"]:
        return word in words["falls"]
    if subject in words["inert"]:
        return word in words["falls"]
    eaten = any(token.text in words["mouth"] for token in tokens[:index])
    moved = words["assaults"] - words["alarming"] - words["falls"]
    return subject in words["gadgets"] and not eaten and word not in moved


def _is_very(tokens: Sequence[Token], index: int, words: Words) -> bool:
    """Whether "dead" only means very: "is dead jealous"; not "is dead", "is dead on the floor"."""
    after = tokens[index + 1].text if index + 1 < len(tokens) else "."
    return after[0].isalpha() and after not in words["dead_ends"]


def _phrase(tokens: Sequence[Token], index: int, count: int) -> str:
    return " ".join(token.text for token in tokens[index : index + count])


def _subject(tokens: Sequence[Token], index: int, words: Words) -> int | None:
    """The noun before a verb, over auxiliaries and adverbs: "the hub" of "the hub is still not responding"."""
    at = index - 1
    while at >= 0 and tokens[at].text in words["between"]:
        at -= 1
    return at if at >= 0 and tokens[at].text[0].isalpha() else None


def _is_subject(tokens: Sequence[Token], at: int, words: Words) -> bool:
    """Whether a noun is what it is about: no preposition leads it ("on the scale"), no "was" ("was scratching")."""
    before = at - 1
    while before >= 0 and at - before <= _LED and _leads(tokens, before, words):
        before -= 1
    if before < 0:
        return True
    lead = tokens[before].text
    return lead not in words["at"] and lead not in words["verbal"]


def _leads(tokens: Sequence[Token], index: int, words: Words) -> bool:
    word = tokens[index].text
    in_law = word == "in" and index + 1 < len(tokens) and tokens[index + 1].text == "law"
    return in_law or (word != "in" and (word in words["led"] or word.endswith("'s")))


def _has_object(text: str, tokens: Sequence[Token], index: int, words: Words) -> bool:
    """Whether it was done to somebody: "choked him", "woke Max", "burned Luna's paw"."""
    after = index + 1
    while after < len(tokens) and tokens[after].text in {"up", "down", "out", "on"}:
        after += 1
    if after >= len(tokens):
        return False
    token = tokens[after]
    return token.text in words["objects"] or token.text.endswith("'s") or text[token.start].isupper()


def _on_a_toy(tokens: Sequence[Token], index: int, words: Words) -> bool:
    """Whether it was done to a toy: "attacked his squeaky duck"; not "was attacked by", nor "shook Max like a toy"."""
    if index and tokens[index - 1].text in words["passive"]:
        return False
    reach = tokens[index + 1 : index + 1 + _TOY_WITHIN]
    if not reach or not (reach[0].text in words["led"] or reach[0].text.endswith("'s") or reach[0].text == "another"):
        return False
    for token in reach:
        if token.text in words["stops"] or not token.text[0].isalpha():
            return False
        if token.text in words["toys"]:
            return True
    return False


def _to_a_treatment(tokens: Sequence[Token], index: int, words: Words) -> bool:
    """Whether it is a food, a drug or a command that gets no response."""
    reach = tokens[index + 1 : index + 1 + _TOY_WITHIN]
    return bool(reach) and reach[0].text == "to" and any(token.text in words["treatments"] for token in reach)


def _given_somebody(tokens: Sequence[Token], index: int, words: Words) -> bool:
    """Whether a person was only startled: "gave the postman a heart attack"."""
    reach = [token.text for token in tokens[max(0, index - _GAVE_WITHIN) : index]]
    gave = [at for at, word in enumerate(reach) if word in words["gave"]]
    return bool(gave) and any(word in words["persons"] | words["astonished"] for word in reach[gave[-1] :])
