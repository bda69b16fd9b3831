"""Expands the phrases of a language's table: how an owner may say it, from how it is written once.

In: a phrase with marks and a language's grammar. Out: every form of it. ``~keep on`` stands
for keep, keeps, kept and keeping on; ``(a|b|)`` for either or nothing; ``{his}`` for the words
of a named set; and "what is" is also "what's". Made when a table is loaded, so that a table
lists meanings and not endings. Never: a guess about a word that is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from gateway.ontology.recognise import fold_alias

__all__ = ["Grammar", "expand", "inflected", "with_optional"]

MOST_FORMS = 4000
"""Forms one phrase may stand for; more is a slip of whoever wrote it."""

_MARK = re.compile(r"\(([^()]*)\)|\{(\w+)\}")
_VOWELS = frozenset("aeiou")
_LED_BY = frozenset({"what", "who", "how", "where", "when", "why", "that", "there", "here", "it", "he", "she", "which"})
"""Words that "is" and "has" are run together with."""

_PEOPLE = frozenset({"i", "you", "we", "they", "he", "she", "it"})
_SHORTENED = {"are": "re", "am": "m", "have": "ve", "will": "ll", "would": "d", "had": "d"}

_NEGATED = {
    **{word: f"{word}n't" for word in ("is", "are", "was", "were", "has", "have", "had", "does", "do", "did")},
    **{word: f"{word}n't" for word in ("would", "could", "should")},
    "will": "won't",
    "can": "can't",
}


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a language's phrases are expanded by.

    ``sets`` are named lists of words, ``verbs`` maps a verb to its other forms where they are
    irregular (present, past, participle, -ing; any number of them), ``spelling`` maps short
    and hurried spellings to the word that is meant. ``endings`` maps an infinitive's ending to
    those that take its place ("ar": "o", "as", "aba"); with them, ``verbs`` adds to the regular
    forms, and one that ends in "-" is another stem that takes every ending ("rasqu-").
    """

    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spelling: Mapping[str, str] = field(default_factory=dict)
    endings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def inflected(verb: str, grammar: Grammar) -> tuple[str, ...]:
    """Every form of a verb, itself first: "nap" -> nap, naps, napped, napping; else by the language's own endings."""
    irregular = grammar.verbs.get(verb)
    if grammar.endings:
        return _with_endings(verb, irregular or (), grammar)
    if irregular is not None:
        return tuple(dict.fromkeys((verb, *irregular)))
    stem = verb + verb[-1] if _doubles(verb) else verb
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        third = verb + "es"
    elif verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        third = verb[:-1] + "ies"
    else:
        third = verb + "s"
    if verb.endswith("e"):
        past, going = verb + "d", verb[:-1] + "ing" if not verb.endswith(("ee", "oe", "ye")) else verb + "ing"
        going = verb[:-2] + "ying" if verb.endswith("ie") else going
    elif verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        past, going = verb[:-1] + "ied", verb + "ing"
    else:
        past, going = stem + "ed", stem + "ing"
    return tuple(dict.fromkeys((verb, third, past, going)))


def _with_endings(verb: str, more: Sequence[str], grammar: Grammar) -> tuple[str, ...]:
    """The verb's stems with every ending of its kind, and its other forms: "picar", "piqu-" -> pica, picando, pique.

    A stem of one letter takes none: "dar", "ver" and the like have all their forms listed.
    """
    ending = next((end for end in grammar.endings if verb.endswith(end)), "")
    stems = (verb.removesuffix(ending), *(form[:-1] for form in more if form.endswith("-")))
    regular = (stem + last for stem in stems if len(stem) > 1 for last in grammar.endings.get(ending, ()))
    return tuple(dict.fromkeys((verb, *regular, *(form for form in more if not form.endswith("-")))))


def _doubles(verb: str) -> bool:
    """Whether the last letter is doubled: one syllable that ends in vowel and consonant ("nap", "stop")."""
    if len(verb) < 3 or verb[-1] in _VOWELS or verb[-1] in "wxy" or verb[-2] not in _VOWELS:
        return False
    return verb[-3] not in _VOWELS and sum(letter in _VOWELS for letter in verb) == 1


def expand(phrase: str, grammar: Grammar) -> tuple[str, ...]:
    """Every form a phrase of a table stands for, in a fixed order, words parted by spaces.

    Raises
    ------
    ValueError
        If a set has no such name, or the phrase stands for more than ``MOST_FORMS``.
    """
    forms: Sequence[str] = (phrase,)
    if any(mark in phrase for mark in "~({"):
        forms = [form for text in _alternatives(phrase, grammar) for form in _verbs_of(text, grammar)]
    found: dict[str, None] = {}
    for form in forms:
        words = tuple(grammar.spelling.get(word, word) for word in fold_alias(form))
        if words:
            found.update(dict.fromkeys(" ".join(run) for run in _run_together(words)))
    if len(found) > MOST_FORMS:
        raise ValueError(f"a phrase may stand for at most {MOST_FORMS} forms, {phrase!r} stands for {len(found)}")
    return tuple(found)


def with_optional(order: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The orders of parts an order stands for: a part such as ``(really|)`` may be missing."""
    choices = [((part,), ()) if _is_optional(part) else ((part,),) for part in order]
    return tuple(tuple(part for kept in chosen for part in kept) for chosen in product(*choices))


def _is_optional(part: str) -> bool:
    whole = _MARK.fullmatch(part)
    return whole is not None and whole[1] is not None and "" in (text.strip() for text in whole[1].split("|"))


def _alternatives(phrase: str, grammar: Grammar) -> Iterator[str]:
    """The phrase with one alternative chosen at every mark."""
    pieces: list[tuple[str, ...]] = []
    at = 0
    for mark in _MARK.finditer(phrase):
        pieces.append((phrase[at : mark.start()],))
        if mark[2] is not None:
            if mark[2] not in grammar.sets:
                raise ValueError(f"{phrase!r} names the set {mark[2]!r}; known: {', '.join(sorted(grammar.sets))}")
            pieces.append(grammar.sets[mark[2]])
        else:
            pieces.append(tuple(mark[1].split("|")))
        at = mark.end()
    pieces.append((phrase[at:],))
    for chosen in product(*pieces):
        text = " ".join("".join(chosen).split())
        if _MARK.search(text):  # a set may hold alternatives and sets of its own
            yield from _alternatives(text, grammar)
        else:
            yield text


def _verbs_of(text: str, grammar: Grammar) -> tuple[str, ...]:
    choices = [inflected(word[1:], grammar) if word.startswith("~") else (word,) for word in text.split(" ")]
    return tuple(" ".join(words) for words in product(*choices))


def _run_together(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The phrase, and with "is", "have", "not" and the like run together with the word before them."""
    if len(words) < 2:
        return (words,)
    found = [(words[0], *rest) for rest in _run_together(words[1:])]
    short = _shortened(words[0], words[1])
    if short is not None:
        found += [(short, *rest) for rest in _run_together(words[2:])]
    return tuple(found)


def _shortened(word: str, following: str) -> str | None:
    if word in _LED_BY and following in {"is", "has"}:
        return f"{word}'s"
    if word in _PEOPLE and following in _SHORTENED:
        return f"{word}'{_SHORTENED[following]}"
    return _NEGATED.get(word) if following == "not" else None
