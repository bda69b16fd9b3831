"""Aliases kept somewhere else: rows in, the same recognisers out, without building them.

A process that answers one question and ends must not inflect twenty thousand aliases first.
Whoever keeps the rows (the store does, in one table) hands in two functions; a look-up asks
for the aliases that begin with one word, all recognisers at once, and remembers them. Rows are
made by ``rows_of``; the key says of which vocabulary. Never: reading a file or a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from gateway.ontology.recognise import Reading, Recogniser, Token

__all__ = ["AliasRow", "KeptAliases", "KeptLexicon", "KeptWords", "rows_of"]

AliasRow = tuple[str, str, str, str, str]
"""(first word, form, lexicon, kind, target)."""

_Forms = Mapping[str, tuple[Reading, ...]]
_NOTHING: _Forms = {}


class KeptAliases:
    """One table of aliases, read by first word.

    Parameters
    ----------
    beginning : callable
        First word -> its rows, sorted.
    within : callable
        Lexicon -> all its rows, sorted by form.
    """

    __slots__ = ("_beginning", "_read", "_within")

    def __init__(
        self, beginning: Callable[[str], Iterable[AliasRow]], within: Callable[[str], Iterable[AliasRow]]
    ) -> None:
        self._beginning = beginning
        self._within = within
        self._read: dict[str, dict[str, _Forms]] = {}

    def beginning(self, word: str, lexicon: str) -> _Forms:
        """The forms of a lexicon that begin with a word, each with all its readings."""
        found = self._read.get(word)
        if found is None:
            found = self._read[word] = _by_lexicon(self._beginning(word))
        return found.get(lexicon, _NOTHING)

    def forms(self, lexicon: str) -> Iterator[tuple[str, tuple[Reading, ...]]]:
        """Every form of a lexicon with its readings, sorted by form."""
        for form, rows in groupby(self._within(lexicon), key=lambda row: row[1]):
            yield form, tuple(Reading(kind, target) for _, _, _, kind, target in rows)


def _by_lexicon(rows: Iterable[AliasRow]) -> dict[str, _Forms]:
    found: dict[str, dict[str, list[Reading]]] = {}
    for _, form, lexicon, kind, target in rows:
        found.setdefault(lexicon, {}).setdefault(form, []).append(Reading(kind, target))
    return {
        lexicon: {form: tuple(sorted(readings)) for form, readings in forms.items()} for lexicon, forms in found.items()
    }


class KeptLexicon(Recogniser):
    """A recogniser whose aliases are rows: finds what ``Lexicon`` finds."""

    __slots__ = ("_name", "_rows")

    def __init__(self, name: str, rows: KeptAliases) -> None:
        self._name = name
        self._rows = rows

    def __contains__(self, phrase: str) -> bool:
        return phrase in self._rows.beginning(phrase.split(" ", maxsplit=1)[0], self._name)

    def forms(self) -> Iterator[tuple[str, tuple[Reading, ...]]]:
        """Every form with its readings, sorted by form."""
        return self._rows.forms(self._name)

    def at(self, tokens: Sequence[Token], index: int) -> Iterator[tuple[int, tuple[Reading, ...]]]:
        """Every alias that begins at a token, longest first, as (token count, readings)."""
        forms = self._rows.beginning(tokens[index].text, self._name)
        if not forms:
            return
        most = min(max(form.count(" ") for form in forms) + 1, len(tokens) - index)
        for count in range(most, 0, -1):
            readings = forms.get(" ".join(token.text for token in tokens[index : index + count]))
            if readings is not None:
                yield count, readings


class KeptWords:
    """Membership in several lists of words, kept or not."""

    __slots__ = ("_lists", "_names", "_rows")

    def __init__(self, rows: KeptAliases, names: Iterable[str], *lists: frozenset[str]) -> None:
        self._rows = rows
        self._names = tuple(names)
        self._lists = lists

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str):
            return False
        return any(word in words for words in self._lists) or any(
            word in self._rows.beginning(word, name) for name in self._names
        )


def rows_of(lexicons: Mapping[str, Recogniser], words: Mapping[str, Iterable[str]]) -> tuple[AliasRow, ...]:
    """Every alias and known word as rows, sorted."""
    rows = [
        (form.split(" ")[0], form, name, reading.kind, reading.target)
        for name, lexicon in lexicons.items()
        for form, readings in lexicon.forms()
        for reading in readings
    ]
    rows += [(word, word, name, "word", "") for name, known in words.items() for word in known]
    return tuple(sorted(set(rows)))
