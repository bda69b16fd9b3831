"""One recogniser for documents and questions: text and aliases in, linked spans out.

Text is folded (NFKD, case, accents, apostrophes, zero-width signs; offsets into the original
kept), cut into tokens, and matched against a table of aliases: at each place the longest
alias wins and *all* its readings are kept; choosing among them is the reader's task, by
relation, never by a score. Linear in the text's length. Never: spelling correction, a
threshold, a guess.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Alias", "Lexicon", "Match", "Reading", "Recogniser", "Token", "fold", "fold_alias", "inflect", "tokens_of"]

_APOSTROPHES = frozenset("'\u2018\u2019\u201b\u02bc\u02b9\u00b4\u0060\u2032\uff07")
_TOKEN = re.compile(r"[^\W\d_][^\W_]*(?:'[^\W_]+)*|\d+(?:[.,:/-]\d+)*|[&%]|[.?!,;:\n|()]")
"""Words (with inner apostrophes), numbers and dates, "&" and "%", and sentence marks, which
no alias contains, so that a phrase never matches across them."""


@dataclass(frozen=True, slots=True)
class Token:
    """A folded word and where it stood: characters ``[start, end)`` of the original text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Reading:
    """One meaning of a span: a kind (``pet``, ``food``, ``tox``...) and what it points at."""

    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Alias:
    """A name to be recognised. ``form`` says how it is inflected when the lexicon is built:
    "name" (Max, Max's, Maxs), "noun" (grape, grapes, grape's) or "exact".
    """

    text: str
    reading: Reading
    form: str = "exact"


@dataclass(frozen=True, slots=True)
class Match:
    """A recognised span: characters ``[start, end)``, tokens ``[first, last)``, all readings."""

    start: int
    end: int
    text: str
    first: int
    last: int
    readings: tuple[Reading, ...]


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    if character in _APOSTROPHES:
        return "'"
    if unicodedata.category(character) in {"Cf", "Mn", "Me"}:
        return ""
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    kept = "".join(part for part in parts if unicodedata.category(part) not in {"Mn", "Me", "Cf"})
    return "".join("'" if part in _APOSTROPHES else part for part in kept)


def fold(text: str) -> tuple[str, Sequence[int]]:
    """The folded text and, for each of its characters, the index in the original.

    NFC and NFD, straight and curly apostrophes, full-width and zero-width forms fold alike.
    ``offsets[len(folded)]`` is ``len(text)``.
    """
    if text.isascii():
        return text.lower().replace("`", "'"), range(len(text) + 1)
    pieces: list[str] = []
    offsets: list[int] = []
    for index, character in enumerate(text):
        folded = _fold_character(character)
        pieces.append(folded)
        offsets.extend([index] * len(folded))
    offsets.append(len(text))
    return "".join(pieces), offsets


def tokens_of(text: str) -> tuple[Token, ...]:
    """The text's tokens in order; "&" reads as "and"."""
    folded, offsets = fold(text)
    found = []
    for match in _TOKEN.finditer(folded):
        word = match.group()
        last = offsets[match.end() - 1] + 1
        found.append(Token("and" if word == "&" else word, offsets[match.start()], last))
    return tuple(found)


@lru_cache(maxsize=65536)
def fold_alias(text: str) -> tuple[str, ...]:
    """An alias as the token texts it must match."""
    return tuple(token.text for token in tokens_of(text))


def _plural(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and len(word) > 1 and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def inflect(words: tuple[str, ...], form: str) -> tuple[tuple[str, ...], ...]:
    """The forms an alias takes in running text, the alias itself first.

    Only the last word changes. "name": possessive with and without its apostrophe; "noun":
    plural and possessives; "verb": the regular English forms; "exact": none.
    """
    if not words or form == "exact":
        return (words,)
    head, last = words[:-1], words[-1]
    if form == "name":
        endings = [last, last + "'s", last + "s"]
    elif form == "noun":
        endings = [last, _plural(last), last + "'s", _plural(last) + "'s"]
    elif form == "verb":
        stem = last.removesuffix("e")
        endings = [last, _plural(last), stem + "ed", stem + "ing"]
    else:
        raise ValueError(f"an alias form must be exact, name, noun or verb, is {form!r}")
    return tuple((*head, ending) for ending in dict.fromkeys(endings))


class Recogniser(ABC):
    """Finds aliases in tokens; where the aliases are kept is the subclass's matter."""

    __slots__ = ()

    @abstractmethod
    def at(self, tokens: Sequence[Token], index: int) -> Iterator[tuple[int, tuple[Reading, ...]]]:
        """Every alias that begins at a token, longest first, as (token count, readings)."""

    def phrases(self) -> tuple[str, ...]:
        """Every form, sorted."""
        return tuple(form for form, _ in self.forms())

    @abstractmethod
    def forms(self) -> Iterator[tuple[str, tuple[Reading, ...]]]:
        """Every form with its readings, sorted by form."""

    def find_in(self, text: str, tokens: Sequence[Token]) -> tuple[Match, ...]:
        """Longest matches from left to right, not overlapping."""
        found = []
        index = 0
        while index < len(tokens):
            hit = next(self.at(tokens, index), None)
            if hit is None:
                index += 1
                continue
            found.append(_match(text, tokens, index, *hit))
            index += hit[0]
        return tuple(found)

    def every_in(self, text: str, tokens: Sequence[Token]) -> tuple[Match, ...]:
        """All matches, overlapping ones included, in text order, longer before shorter."""
        return tuple(
            _match(text, tokens, index, *hit) for index in range(len(tokens)) for hit in self.at(tokens, index)
        )

    def find(self, text: str) -> tuple[Match, ...]:
        """Longest matches of a text from left to right, with offsets into it.

        Linear in the text: at each token at most as many look-ups as the longest alias that
        begins with it has words.
        """
        return self.find_in(text, tokens_of(text))


class Lexicon(Recogniser):
    """Aliases, inflected when built, with every reading kept. Read-only afterwards.

    Parameters
    ----------
    aliases : iterable of Alias
        Order does not matter: readings of a form are kept sorted.
    """

    __slots__ = ("_forms", "_longest")

    def __init__(self, aliases: Iterable[Alias]) -> None:
        collected: dict[str, set[Reading]] = {}
        longest: dict[str, int] = {}
        for alias in aliases:
            words = fold_alias(alias.text)
            if not words:
                continue
            for form in inflect(words, alias.form):
                collected.setdefault(" ".join(form), set()).add(alias.reading)
                longest[form[0]] = max(longest.get(form[0], 0), len(form))
        self._forms = {form: tuple(sorted(readings)) for form, readings in collected.items()}
        self._longest = longest

    def __len__(self) -> int:
        return len(self._forms)

    def __contains__(self, phrase: str) -> bool:
        return " ".join(fold_alias(phrase)) in self._forms

    def words(self) -> frozenset[str]:
        """Every single word that occurs in some alias."""
        return frozenset(word for form in self._forms for word in form.split(" "))

    def forms(self) -> Iterator[tuple[str, tuple[Reading, ...]]]:
        """Every form with its readings, sorted by form."""
        return iter(sorted(self._forms.items()))

    def at(self, tokens: Sequence[Token], index: int) -> Iterator[tuple[int, tuple[Reading, ...]]]:
        """Every alias that begins at a token, longest first, as (token count, readings)."""
        most = min(self._longest.get(tokens[index].text, 0), len(tokens) - index)
        for count in range(most, 0, -1):
            readings = self._forms.get(" ".join(token.text for token in tokens[index : index + count]))
            if readings is not None:
                yield count, readings


def _match(text: str, tokens: Sequence[Token], index: int, count: int, readings: tuple[Reading, ...]) -> Match:
    start, end = tokens[index].start, tokens[index + count - 1].end
    return Match(start, end, text[start:end], index, index + count, readings)
