"""What a label's words come from: sources, groups, forms and parts, found by exact tables.

In: any text (a label, a note). Out: ``Term`` values with character spans into that text, in
reading order. The tables are ``data/ingredients.toml``; every alias is matched as whole words,
the longest first, after folding case and accents. Three readings beyond the literal one are
exact too, never a distance: a German compound taken apart by table (Huhn + fett), a word whose
letters a scanner confuses (ch1cken, rneal) where it maps to one word only, and a word broken
in two (chick en). Never turns a word into a poison's name. Reads no file itself: the
packaged table comes through ``gateway.ontology.load``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from gateway.errors import ConfigError
from gateway.ontology.load import read_table
from gateway.ontology.recognise import fold

__all__ = [
    "Form",
    "Group",
    "Ingredients",
    "Role",
    "Source",
    "Term",
    "fold_words",
    "load_ingredients",
    "parse_ingredients",
]

_LANGUAGES = ("names", "latin", "en", "de", "es", "fr")
# English, Spanish and French plurals are built; German ones stand in the table.
_PLURALS = frozenset({"en", "es", "fr"})
# Letters that scanners confuse, each class written as one letter. Two-letter ones first.
_CONFUSED_PAIRS = (("rn", "m"), ("vv", "w"))
_CONFUSED = str.maketrans({"1": "i", "l": "i", "!": "i", "|": "i", "0": "o", "5": "s", "8": "b"})
_WORD = re.compile(r"[^\W_](?:[^\W_]|[!|](?=[^\W_])|-\n[ ]{0,40}(?=[^\W_]))*")
_LINE_BREAK = re.compile(r"-\n[ ]{0,40}")
# What German puts between the parts of a compound (Hering-s-mehl), none first.
_LINKING = ("", "s", "n", "en", "es")
# Shorter words have too many look-alikes (1s, 0n) to be read through the scanner's classes.
_SHORTEST_SLIP = 3


# Letters from which a scanner's c for e ("turkcy") leaves one word possible.
_SHORTEST_OPEN_LETTER = 5


class Form(StrEnum):
    """How a source is present; decides the relation of its join."""

    PLAIN = "plain"
    MEAL = "meal"
    FAT = "fat"
    OIL = "oil"
    HYDROLYSED = "hydrolysed"

    @property
    def relation(self) -> str:
        """The relation from the ingredient to its species."""
        if self is Form.HYDROLYSED:
            return "hydrolysed_from"
        return "fat_of" if self in {Form.FAT, Form.OIL} else "derived_from"


class Role(StrEnum):
    """What a word does on a label."""

    SOURCE = "source"
    GROUP = "group"
    FORM = "form"
    PART = "part"
    NEUTRAL_PART = "neutral_part"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Source:
    """One animal, plant or fungus. ``taxon`` is an NCBI Taxonomy number, ``is_a`` its groups."""

    id: str
    kind: str
    is_a: tuple[str, ...]
    taxon: int | None = None
    foodon: str | None = None
    eu: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Words that name no species. ``named``: the group itself is what the label says."""

    id: str
    kind: str
    members: tuple[str, ...]
    is_a: tuple[str, ...]
    named: bool
    taxon: int | None = None
    foodon: str | None = None
    eu: str | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase with its meaning. ``bare`` holds for one-word group names (meat);
    ``slip`` for a word read through the scanner's letter classes.
    """

    start: int
    end: int
    role: Role
    id: str
    bare: bool = True
    slip: bool = False


_Meaning = tuple[Role, str]
_Alias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The tables, indexed. Made by ``parse_ingredients``."""

    version: str
    reviewed_by: str
    attribution: str
    sources: Mapping[str, Source]
    groups: Mapping[str, Group]
    aliases: Mapping[_Alias, _Meaning]
    longest: Mapping[str, int]
    suffixes: tuple[tuple[str, _Meaning | None], ...]
    prefixes: tuple[str, ...]
    slips: Mapping[str, str]
    plants: frozenset[str]
    owned_plants: frozenset[str]
    accented: frozenset[str]

    def find(self, text: str) -> tuple[Term, ...]:
        """Every term of the text, longest reading first, left to right, never overlapping
        (a compound's parts share its span).
        """
        words = tuple(fold_words(text))
        found: list[Term] = []
        at = 0
        while at < len(words):
            at, terms = self._read(words, at)
            found.extend(term for term in terms if not self._is_another_word(text[term.start : term.end]))
        return tuple(found)

    def _is_another_word(self, written: str) -> bool:
        """French "légumes" are vegetables; only the accent tells them from legumes."""
        return not written.isascii() and unicodedata.normalize("NFC", written).casefold() in self.accented

    def ancestors(self, name: str) -> tuple[str, ...]:
        """The groups above a source or group, nearest first, each once."""
        seen: list[str] = []
        waiting = list(self.parents(name))
        while waiting:
            group = waiting.pop(0)
            if group not in seen:
                seen.append(group)
                waiting.extend(self.parents(group))
        return tuple(seen)

    def kind_of(self, name: str) -> str:
        """``animal`` or ``plant``, of a source or group."""
        return self.sources[name].kind if name in self.sources else self.groups[name].kind

    def parents(self, name: str) -> tuple[str, ...]:
        """The groups directly above a source or group."""
        if name in self.sources:
            return self.sources[name].is_a
        return self.groups[name].is_a if name in self.groups else ()

    def _read(self, words: tuple[tuple[str, int, int], ...], at: int) -> tuple[int, tuple[Term, ...]]:
        word, start, end = words[at]
        plant = self._plant_of_an_animal(words, at)
        if plant:
            return at + plant, (Term(start, words[at + plant - 1][2], Role.NOTHING, "false_friend"),)
        for length in range(min(self.longest.get(word, 0), len(words) - at), 0, -1):
            alias = tuple(w for w, _, _ in words[at : at + length])
            meaning = self.aliases.get(alias)
            if meaning is not None:
                stop = words[at + length - 1][2]
                return at + length, (Term(start, stop, *meaning, bare=length == 1),)
        parts = self._compound(word)
        if parts:
            return at + 1, tuple(Term(start, end, *meaning) for meaning in parts)
        repaired = self.slips.get(_skeleton(word)) if len(word) >= _SHORTEST_SLIP else None
        if repaired is not None:
            return at + 1, (Term(start, end, *self.aliases[(repaired,)], slip=True),)
        if at + 1 < len(words):
            joined = self.aliases.get((word + words[at + 1][0],))
            if joined is not None and not self.longest.get(words[at + 1][0]):
                return at + 2, (Term(start, words[at + 1][2], *joined, slip=True),)
        return at + 1, ()

    def _plant_of_an_animal(self, words: tuple[tuple[str, int, int], ...], at: int) -> int:
        """How many words name a plant by an animal: "buffalo grass" two, "hog's fennel" three; else 0."""
        role, name = self.aliases.get((words[at][0],), (Role.NOTHING, ""))
        if role not in {Role.SOURCE, Role.GROUP} or self.kind_of(name) != "animal":
            return 0
        after = [word for word, _, _ in words[at + 1 : at + 3]]
        if after and after[0] in self.plants:
            return 2
        return 3 if after[:1] == ["s"] and after[1:] and after[1] in self.plants | self.owned_plants else 0

    def _compound(self, word: str) -> tuple[_Meaning, ...]:
        """Source and forms of a compound, or nothing. Each turn shortens the word."""
        tail: list[_Meaning] = []
        rest = word
        for prefix in self.prefixes:
            head = self.aliases.get((word.removeprefix(prefix),))
            if word.startswith(prefix) and head is not None and head[0] in {Role.SOURCE, Role.GROUP}:
                return (head,)
        while True:
            for suffix, meaning in self.suffixes:
                if rest.endswith(suffix) and len(rest) > len(suffix):
                    rest = rest[: -len(suffix)]
                    if meaning is not None:
                        tail.insert(0, meaning)
                    break
            else:
                return ()
            for linking in _LINKING:
                head = self.aliases.get((rest.removesuffix(linking),)) if rest.endswith(linking) else None
                if head is not None and head[0] in {Role.SOURCE, Role.GROUP}:
                    return (head, *tail)


def fold_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Words of the text, folded as everywhere (``recognise.fold``), with their span in it.

    Apostrophes part words; a hyphen at a line's end joins them; the two signs a scanner takes
    for letters stay inside a word; a run of digits alone is no word.
    """
    folded, offsets = fold(text)
    for match in _WORD.finditer(folded):
        word = _LINE_BREAK.sub("", match.group())
        if not word.isdigit():
            yield word, offsets[match.start()], offsets[match.end() - 1] + 1


def _skeleton(word: str) -> str:
    for pair, single in _CONFUSED_PAIRS:
        word = word.replace(pair, single)
    word = word.translate(_CONFUSED)
    return word.replace("e", "c") if len(word) >= _SHORTEST_OPEN_LETTER else word


def parse_ingredients(table: Mapping[str, Any]) -> Ingredients:
    """Index the table.

    Raises
    ------
    ConfigError
        If one alias has two meanings, or a group has a member that is no source.
    """
    sources = {
        name: _source(name, kind, row) for kind in ("animal", "plant") for name, row in table[f"{kind}s"].items()
    }
    groups = {name: _group(name, row) for name, row in table["groups"].items()}
    aliases: dict[_Alias, _Meaning] = {}
    for alias, meaning in _all_aliases(table):
        if aliases.setdefault(alias, meaning) != meaning:
            raise ConfigError(
                f"ingredients.toml: {' '.join(alias)!r} must mean one thing, means {aliases[alias]} and {meaning}"
            )
    for group in groups.values():
        for name in group.members:
            if name not in sources:
                raise ConfigError(f"ingredients.toml: the members of {group.id} must be sources, {name!r} is none")
    for source in sources.values():
        for name in source.is_a:
            if name not in groups:
                raise ConfigError(f"ingredients.toml: what {source.id} is must be a group, {name!r} is none")
    longest: dict[str, int] = {}
    for alias in aliases:
        longest[alias[0]] = max(longest.get(alias[0], 0), len(alias))
    compound = table["forms"]["compound"]
    return Ingredients(
        version=table["version"],
        reviewed_by=table["reviewed_by"],
        attribution=table["attribution"],
        sources=MappingProxyType(sources),
        groups=MappingProxyType(groups),
        aliases=MappingProxyType(aliases),
        longest=MappingProxyType(longest),
        suffixes=_suffixes(aliases, compound["plain"]),
        prefixes=tuple(compound["prefixes"]),
        slips=MappingProxyType(_slips(aliases, frozenset(table["ocr"]["never"]))),
        plants=frozenset(table["false_friends"]["plants"]),
        owned_plants=frozenset(table["false_friends"]["owned_plants"]),
        accented=frozenset(table["false_friends"]["accented"]),
    )


@cache
def load_ingredients() -> Ingredients:
    """The packaged table, indexed once."""
    return parse_ingredients(read_table("ingredients.toml"))


def _source(name: str, kind: str, row: Mapping[str, Any]) -> Source:
    return Source(name, kind, tuple(row.get("is_a", ())), row.get("taxon"), row.get("foodon"), row.get("eu"))


def _group(name: str, row: Mapping[str, Any]) -> Group:
    return Group(
        name,
        row.get("kind", "animal"),
        tuple(row["members"]),
        tuple(row.get("is_a", ())),
        bool(row.get("named", False)),
        row.get("taxon"),
        row.get("foodon"),
        row.get("eu"),
    )


def _all_aliases(table: Mapping[str, Any]) -> Iterator[tuple[_Alias, _Meaning]]:
    for kind in ("animals", "plants"):
        for name, row in table[kind].items():
            yield from _spellings(row, (Role.SOURCE, name))
    for name, row in table["groups"].items():
        yield from _spellings(row, (Role.GROUP, name))
    for name, words in table["misspelt"].items():
        yield from _spellings({"names": words}, (Role.SOURCE, name))
    yield from _spellings(table["false_friends"], (Role.NOTHING, "false_friend"), plural=True)
    forms = table["forms"]
    yield from _spellings({"names": forms["not_fat"]}, (Role.NOTHING, "not_fat"))
    for name in ("hydrolysed", "fat", "oil", "meal"):
        yield from _spellings({"names": forms[name]}, (Role.FORM, name))
    for name, words in forms["parts"].items():
        yield from _spellings({"names": words}, (Role.PART, name))
    for name, words in forms["neutral_parts"].items():
        yield from _spellings({"names": words}, (Role.NEUTRAL_PART, name))


def _spellings(row: Mapping[str, Any], meaning: _Meaning, *, plural: bool = False) -> Iterator[tuple[_Alias, _Meaning]]:
    for language in _LANGUAGES:
        for phrase in row.get(language, ()):
            words = tuple(word for word, _, _ in fold_words(phrase))
            yield words, meaning
            if language in _PLURALS or plural:
                yield from (((*words[:-1], form), meaning) for form in _plurals(words[-1], language))


def _plurals(word: str, language: str) -> Iterable[str]:
    """The plurals of a word; only Spanish adds -es to any consonant ("grain" is no "graines", which are seeds)."""
    if word.endswith(("s", "x", "ch", "sh")):
        return (word + "es",)
    if word.endswith("y"):
        return (word[:-1] + "ies", word + "s")
    return (word + "s", word + "es") if word[-1] not in "aeiou" and language in {"es", "names"} else (word + "s",)


def _suffixes(aliases: Mapping[_Alias, _Meaning], plain: Iterable[str]) -> tuple[tuple[str, _Meaning | None], ...]:
    """Compound endings, longest first: forms and parts with their meaning, and plain ones."""
    endings: dict[str, _Meaning | None] = dict.fromkeys(plain)
    for alias, meaning in aliases.items():
        if len(alias) == 1 and meaning[0] in {Role.FORM, Role.PART, Role.NEUTRAL_PART}:
            endings[alias[0]] = meaning
    return tuple(sorted(endings.items(), key=lambda item: (-len(item[0]), item[0])))


def _slips(aliases: Mapping[_Alias, _Meaning], never: frozenset[str]) -> dict[str, str]:
    """Letter class -> the one word it can be. A class of two meanings, or of a poison, is out."""
    words: dict[str, dict[_Meaning, str]] = {}
    for alias, meaning in sorted(aliases.items()):
        if len(alias) == 1 and len(alias[0]) >= _SHORTEST_SLIP:
            words.setdefault(_skeleton(alias[0]), {}).setdefault(meaning, alias[0])
    return {
        skeleton: next(iter(found.values()))
        for skeleton, found in words.items()
        if len(found) == 1 and next(iter(found))[1] not in never
    }
