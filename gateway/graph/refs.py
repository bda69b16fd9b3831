"""References of edges by the rows that keep them, read only when somebody asks.

A graph from a file holds neither a reference (200 bytes) nor a row number (4) for each of its
pairs: two names and the rows say which edges stand between them. Where the rows are is handed
in (`PairBook`); nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gateway.errors import GraphError
from gateway.graph.names import Names
from gateway.graph.splice import Move
from gateway.model import RecordRef

__all__ = ["FiledRefs", "Layout", "PairBook"]

Ints = NDArray[np.int32]


class PairBook(Protocol):
    """Who keeps the edges' rows."""

    def live_between(self, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[RecordRef, ...]]:
        """The live edges between the two things of each pair, in either direction, the most believed first."""


class Layout(NamedTuple):
    """What tells the names of an entry's ends: see `gateway.graph.adjacency.Graph`."""

    names: Names
    order: Ints
    indptr: Ints
    columns: Ints


class FiledRefs(Sequence[RecordRef]):
    """The most believed edge of each entry of a matrix.

    Parameters
    ----------
    layout : Layout
    book : PairBook
    fresh : mapping of int to tuple of RecordRef
        Entries of which the edges are at hand, the most believed first.
    """

    __slots__ = ("book", "fresh", "layout")

    def __init__(
        self, layout: Layout, book: PairBook, fresh: Mapping[int, tuple[RecordRef, ...]] | None = None
    ) -> None:
        self.layout, self.book, self.fresh = layout, book, dict(fresh or {})

    def __len__(self) -> int:
        return len(self.layout.columns)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.best(range(*index.indices(len(self))))
        return self.between([index])[0][0]

    def best(self, entries: Iterable[int]) -> list[RecordRef]:
        """The most believed edge of each of some entries."""
        return [refs[0] for refs in self.between(entries)]

    def between(self, entries: Iterable[int]) -> list[tuple[RecordRef, ...]]:
        """All live edges of each of some entries, the most believed first.

        Raises
        ------
        IndexError
            No such entry.
        GraphError
            The rows hold no live edge there: they are not those the graph was made of.
        """
        entries = [int(entry) for entry in entries]
        asked = [entry for entry in dict.fromkeys(entries) if entry not in self.fresh]
        pairs = self._ends(asked)
        found = dict(zip(asked, self.book.live_between(pairs), strict=True)) if asked else {}
        for (one, other), live in zip(pairs, found.values(), strict=True):
            if not live:
                raise GraphError(f"a pair of the graph must have a live edge in the rows, {one} and {other} have none")
        return [found[entry] if entry in found else self.fresh[entry] for entry in entries]

    def _ends(self, entries: list[int]) -> list[tuple[str, str]]:
        """The names of the ends of some entries."""
        for entry in entries:
            if not 0 <= entry < len(self):
                raise IndexError(entry)
        names, order, indptr, columns = self.layout
        at = np.array(entries, dtype=np.int32)  # of indptr's type: of another one all of it would be copied
        rows = np.searchsorted(indptr, at, side="right") - 1
        ends = zip(order[rows].tolist(), order[columns[at]].tolist(), strict=True)
        return [(names[one], names[other]) for one, other in ends]

    def moved(self, move: Move, joined: Sequence[tuple[RecordRef, ...]], layout: Layout) -> FiledRefs:
        """The references after that move to another layout, in which pairs of these edges joined."""
        stand = move.positions(np.array(list(self.fresh), dtype=np.int32)).tolist()
        fresh = {entry: refs for entry, refs in zip(stand, self.fresh.values(), strict=True) if entry >= 0}
        fresh.update(zip(move.fresh_positions(len(joined)).tolist(), joined, strict=True))
        return FiledRefs(layout, self.book, fresh)
