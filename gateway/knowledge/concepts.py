"""What words of prose stand for: hosts, conditions, agents, medicines, signs, foods, breeds.

One lexicon for guides and notes, built once from the ontology's tables and this room's own.
All readings of a span are kept; which one holds is decided by the relation that asks. Never
a household's names, never a correction of spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from gateway.knowledge.tables import table
from gateway.ontology.load import load, read_table
from gateway.ontology.recognise import Alias, Lexicon, Reading

__all__ = ["HOSTS", "breed_host", "concepts", "label_of"]

HOSTS = ("cat", "dog")

# Words of the ingredient table that mean something else in prose.
_NOT_FOODS = frozenset(
    {"bird", "game", "cow", "cattle", "horse", "cricket", "larvae", "insect", "calf", "hog", "malt", "pasta"}
)


@cache
def concepts() -> Lexicon:
    """The lexicon of prose. Kinds: host, other_host, condition, agent, med, sign, species, group,
    breed, place, visitor.
    """
    own = table("passages.toml")
    return Lexicon([*_own(own), *_signs(), *_foods(), *_things(own)])


def breed_host(breed: str) -> str:
    """``dog`` or ``cat``: whose breed an id is."""
    return "cat" if breed in table("passages.toml")["breeds"]["cat"] else "dog"


def label_of(name: str) -> str:
    """A vertex's id as words: ``condition:food_allergy`` -> food allergy."""
    return name.partition(":")[2].replace("_", " ")


def _own(own: Mapping[str, Any]) -> Iterator[Alias]:
    for kind in ("condition", "agent", "place", "visitor", "sign", "med"):
        for name, words in own[kind].items():
            yield from _aliases(words, Reading(kind, f"{kind}:{name}"))
    for host in HOSTS:
        yield from _aliases(own["host"][host], Reading("host", host))
    yield from _aliases(own["host"]["other"], Reading("other_host", "other"))
    for name, words in own["breeds"]["more"].items():
        yield from _aliases(words, Reading("breed", f"breed:{name}"))


def _signs() -> Iterator[Alias]:
    for sign in load().signs.values():
        yield from _aliases(sign.words, Reading("sign", f"sign:{sign.id}"))


def _foods() -> Iterator[Alias]:
    ingredients = read_table("ingredients.toml")
    for section in ("animals", "plants"):
        for name, row in ingredients[section].items():
            words = [word for word in row.get("en", ()) if word not in _NOT_FOODS]
            yield from _aliases(words, Reading("species", f"species:{name}"), form="noun")
    for name, row in ingredients["groups"].items():
        if row.get("named"):
            words = [word for word in row["en"] if word not in _NOT_FOODS]
            yield from _aliases(words, Reading("group", f"group:{name}"), form="noun")


def _things(own: Mapping[str, Any]) -> Iterator[Alias]:
    known = read_table("things.toml")
    for name, row in known["med"].items():
        yield from _aliases(row.get("en", ()), Reading("med", f"med:{name}"))
    taken = own["breeds"]["more"]
    for name, words in known["breed"].items():
        # "golden", "lab", "boxer": one common word names no breed in prose.
        plain = [word for word in words if " " in word or word == name] if name not in taken else words[:1]
        yield from _aliases(plain, Reading("breed", f"breed:{name}"), form="noun")


def _aliases(words: Iterable[str], reading: Reading, *, form: str = "exact") -> Iterator[Alias]:
    return (Alias(word, reading, form) for word in words)
