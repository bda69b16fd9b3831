"""Tokens as their owner would have written them with time: hurried spellings, slips, letters left out.

In: tokens, a household's reader, a language. Out: tokens to read, tokens to look for danger in,
and what was corrected. A word any vocabulary knows stays as it is; one near a poison is never
corrected for reading, it only counts for safety. Never a guess between two words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from gateway.ontology import load as tables
from gateway.ontology.recognise import Reading, Token
from gateway.ontology.spelling import Neighbours

if TYPE_CHECKING:
    from gateway.ask.linking import Reader
    from gateway.ontology.language import Language

__all__ = ["respelled", "spelled_out"]

_CLITICS = ("'s", "'d", "'re", "'ve", "'ll", "s", "d")
"""What is run together with a question word or verb: "when'd", "whys", "juckts"."""

_DRAWN_OUT = re.compile(r"(\w)\1{2,}")
"""A letter held down: "sooo", "whyyy"."""

_SHORT = range(3, 6)
"""Letters of a word whose two swapped letters are put right where that makes a function word."""

_JOINTS = ("en", "n", "er", "s", "e")
"""What may stand between the words of a German compound."""

_SHORTEST_PART = 5
"""Letters from which a part makes a compound dangerous: "Bier" would take in too many words."""


@cache
def _near_hazards(language: Language) -> Neighbours:
    """Toxins, medicines and one-word signs a word of this language could be a slip of."""
    near = tables.hazards().near
    return Neighbours((word for word, codes in near.items() if codes & {language.id, "en"}), two=True)


def _compound_hazards(word: str, language: Language) -> tuple[str, ...]:
    """The poison a German compound begins or ends with ("Knoblauchbrot", "Milchschokolade")."""
    if language.id != "de":
        return ()
    near = tables.hazards().near
    lengths = range(len(word) - 2, _SHORTEST_PART - 1, -1)
    parts = (part for length in lengths for part in (word[:length], word[-length:]))
    return next(((part,) for part in parts if language.id in near.get(part, ())), ())


@cache
def _near_words(language: Language) -> Neighbours:
    """Measured words, words for time and function words of this language."""
    phrases = (*language.metrics.phrases(), *language.times.fixed.phrases(), *language.markers)
    return Neighbours((phrase for phrase in phrases if " " not in phrase), two=False)


def spelled_out(tokens: tuple[Token, ...], reader: Reader) -> tuple[Token, ...]:
    """Tokens as their owner would write them with time: "schuettelt" with its umlaut, "dont" as "don't".

    No correction and no guess: another spelling of the same word, by a table of the language
    or by a rule that counts only where it makes a known word of an unknown one.
    """
    full = (Token(_full_word(token.text, reader), token.start, token.end) for token in tokens)
    return tuple(part for token in full for part in _parted(token, reader))


def _parted(token: Token, reader: Reader) -> tuple[Token, ...]:
    """A German compound of a thing and a condition as its two words: "Entenallergie", "Rinderunverträglichkeit"."""
    heads = (word for one in reader.languages for word in sorted(one.words["compound_heads"]))
    for head in heads if token.text not in reader.known else ():
        first = token.text.removesuffix(head)
        if first == token.text or len(first) < _SHORT.start:
            continue
        for thing in (first, *(first.removesuffix(joint) for joint in _JOINTS)):
            found = reader.things.lexicon.at((Token(thing, 0, 0),), 0)
            if any(reading.kind in {"ing", "food"} for _, readings in found for reading in readings):
                cut = token.start + min(len(first), token.end - token.start)
                return Token(thing, token.start, cut), Token(head, cut, token.end)
    return (token,)


def _full_word(word: str, reader: Reader) -> str:
    if word in reader.spelling:
        return word if word in reader.names else reader.spelling[word]
    if word in reader.known or len(word) < _SHORT.start or not word[0].isalpha():
        return word
    return next((full for full in _fuller(word, reader)), word)


def _fuller(word: str, reader: Reader) -> Iterator[str]:
    """Known words that an unknown one is another spelling of, the plainest first."""
    if len(word) >= 4:
        noun = word.removesuffix("'s")
        if noun != word and noun in reader.measured:  # "Max's itching's got worse"
            yield noun
        umlaut = word.replace("ae", "a").replace("oe", "o").replace("ue", "u")
        stems = (word.removesuffix(ending) for ending in _CLITICS if word.endswith(ending))
        if umlaut != word and umlaut in reader.known:
            yield umlaut
        yield from (stem for stem in stems if stem in reader.words["takes_clitic"])
        if word.endswith("in") and word + "g" in reader.known:  # "scratchin"
            yield word + "g"
        if word.endswith("ao") and word[:-1] + "do" in reader.known:  # "cansao"
            yield word[:-1] + "do"
        yield from (word for word in _german_ends(word) if word in reader.known)
    for kept in (r"\1", r"\1\1"):
        short = _DRAWN_OUT.sub(kept, word)
        if short != word and (short in reader.known or short in reader.names):
            yield short
    if len(word) in _SHORT:
        swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)} & reader.markers
        if len(swapped) == 1:
            yield from swapped


def _german_ends(word: str) -> Iterator[str]:
    """A German verb without its weak vowels: "sagn", "gfressn"."""
    ending = word[:-1] + "en" if word.endswith("n") else word
    for full in (ending, "ge" + ending[1:] if word.startswith("g") else ending):
        if full != word:
            yield full


def respelled(
    tokens: tuple[Token, ...], reader: Reader, language: Language
) -> tuple[tuple[Token, ...], tuple[Token, ...], tuple[tuple[str, str], ...]]:
    """(tokens read towards safety, tokens corrected for reading, the corrections).

    A word in any vocabulary stays. One near a toxin, medicine or sign is never corrected for
    reading: it only counts for safety. Where no pet is named, one near exactly one pet's name, or whose neighbours
    all mean the same measured word or time, is read as that.
    """
    near, read, corrections = [], [], []
    poisons = reader.hazards.near
    named = any(r.kind == "pet" for t in tokens for _, readings in reader.names.at((t,), 0) for r in readings)
    for token in tokens:
        word, careful, replaced = token.text, token.text, token.text
        twin = reader.near_names.near(word) if word in poisons and word not in reader.names else ()
        if len(twin) == 1 and twin[0] in poisons:  # "Lilly", where a Lily lives: her place decides
            careful = replaced = twin[0]
        elif word not in reader.known and word[0].isalpha() and len(word) >= 3:
            hazards = _near_hazards(language).near(word) if len(word) >= 5 else ()
            hazards = hazards or _compound_hazards(word, language)
            names = reader.near_names.near(word)
            words = _near_words(language).near(word) if len(word) >= 5 else ()
            if hazards:
                careful = hazards[0]
            elif len(names) == 1 and not named and len(word) >= 4:
                replaced = names[0]
            elif words and len({_meaning(language, w) for w in words}) == 1:
                replaced = words[0]
        near.append(Token(careful, token.start, token.end))
        read.append(Token(replaced, token.start, token.end))
        if replaced != word:
            corrections.append((word, replaced))
    return tuple(near), tuple(read), tuple(corrections)


def _meaning(language: Language, word: str) -> tuple[Reading, ...]:
    token = (Token(word, 0, 0),)
    return next((readings for _, readings in (*language.metrics.at(token, 0), *language.times.fixed.at(token, 0))), ())
