"""What kind of thing is bought: as a list may say it, as owners ask for it, as a product's name says it.

In: any text. Out: kinds of `KINDS`, and where a name leaves a doubt, none. The words are
``data/wares.toml`` and the medicines of the vocabulary; matched whole, the longest first. Nobody's
likeness decides: two kinds in one name are no kind.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from gateway.ontology.load import read_table, things
from gateway.ontology.recognise import Alias, Lexicon, Reading, fold_alias

__all__ = ["KINDS", "host_named", "kind_named", "kind_words", "kinds_asked"]

KINDS = (
    *("food", "treat", "medicine", "flea_treatment", "wormer", "supplement"),
    *("litter", "toy", "grooming", "equipment", "other"),
)
"""What a thing can be."""

_LOOSE = frozenset({"med:medicine", "med:vaccine", "med:ear_drops"})
"""Words of these say no kind: "tablets", "drops", "ear cleaner"."""


@cache
def _table() -> dict[str, Any]:
    return read_table("wares.toml")


@cache
def _lexicon(section: str) -> Lexicon:
    return Lexicon(
        Alias(words, Reading(section, kind)) for kind, phrases in _table()[section].items() for words in phrases
    )


def kinds_asked(text: str) -> tuple[str, ...]:
    """The kinds of thing that a text asks for, in its order, each once."""
    found = (reading.target for match in _lexicon("asked").find(text) for reading in match.readings)
    return tuple(dict.fromkeys(found))


def kind_words(text: str) -> str | None:
    """The kind that a text is a word for and nothing else, as in a list's column; None where it is none."""
    words = " ".join(fold_alias(text))
    return next((reading.target for form, of in _lexicon("asked").forms() if form == words for reading in of), None)


def kind_named(product: str) -> str | None:
    """What kind of thing a product's name says it is, where it says one and no other; else None."""
    found = [
        (match.first, -match.last, reading.target)
        for match in _lexicon("named").find(product)
        for reading in match.readings
    ]
    unsure = {" ".join(fold_alias(word)) for word in _table()["unsure"]["words"]}
    for match in things().lexicon.find(product):
        if " ".join(fold_alias(match.text)) not in unsure:
            found += [
                (match.first, -match.last, _of_medicine(reading.target))
                for reading in match.readings
                if reading.kind == "med" and reading.target not in _LOOSE
            ]
    kinds: set[str] = set()
    end = 0
    for first, last, kind in sorted(found):
        if first >= end:
            kinds.add(kind)
            end = -last
    return kinds.pop() if len(kinds) == 1 else None


def host_named(product: str) -> str | None:
    """``dog`` or ``cat``, where a product's name says which of them it is for and not the other."""
    hosts = {reading.target for match in _lexicon("host").find(product) for reading in match.readings}
    return hosts.pop() if len(hosts) == 1 else None


def _of_medicine(target: str) -> str:
    name = target.rpartition(":")[2]
    return name if name in KINDS else "medicine"
