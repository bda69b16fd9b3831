"""Words one or two edits apart, so that an unknown word near one that matters is seen.

In: words. Out: membership ("within one edit of"), never a distance to rank by. Used in two
places only: an unknown word near a toxin makes the answer conservative, and an unknown word
near exactly one name or measured word is read as that, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["TWO_EDITS_FROM", "Neighbours", "within_edits"]

TWO_EDITS_FROM = 8
"""Letters from which two edits are still the same word ("ibuprophen", "choclat e")."""


def within_edits(one: str, other: str, limit: int) -> bool:
    """Whether the optimal string alignment distance is at most ``limit``.

    Insertions, deletions, substitutions and swaps of neighbours count one each (Boytsov 2011,
    ACM JEA 16, 1.1). O(len * limit).
    """
    if abs(len(one) - len(other)) > limit:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        older, before, row = before, row, [i] + [0] * len(other)
        for j, b in enumerate(other, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, older[j - 2] + 1)
            row[j] = best
        if min(row) > limit:
            return False
    return row[-1] <= limit


def _deletions(word: str, count: int) -> Iterator[str]:
    yield word
    if count:
        for index in range(len(word)):
            yield from _deletions(word[:index] + word[index + 1 :], count - 1)


def _edits_for(length: int) -> int:
    return 2 if length >= TWO_EDITS_FROM else 1


class Neighbours:
    """An index of words by their deletions, so that a look-up does not read the whole list.

    Parameters
    ----------
    words : iterable of str
        Folded words.
    two : bool
        Whether words of ``TWO_EDITS_FROM`` letters and more may be two edits away.
    """

    __slots__ = ("_index", "_two")

    def __init__(self, words: Iterable[str], *, two: bool) -> None:
        index: dict[str, set[str]] = {}
        for word in words:
            for variant in set(_deletions(word, self._edits(word, two=two))):
                index.setdefault(variant, set()).add(word)
        self._index = {variant: tuple(sorted(found)) for variant, found in index.items()}
        self._two = two

    @staticmethod
    def _edits(word: str, *, two: bool) -> int:
        return _edits_for(len(word)) if two else 1

    def near(self, word: str) -> tuple[str, ...]:
        """The indexed words within the edits their own length allows, sorted; itself excluded."""
        if len(word) > 40:  # no word that matters is longer; keeps a pathological token cheap
            return ()
        edits = 2 if self._two and len(word) >= TWO_EDITS_FROM - 2 else 1  # a long word may have lost two letters
        found = set()
        for variant in set(_deletions(word, edits)):
            for candidate in self._index.get(variant, ()):
                limit = self._edits(candidate, two=self._two) if self._two else 1
                if candidate != word and within_edits(word, candidate, limit):
                    found.add(candidate)
        return tuple(sorted(found))
