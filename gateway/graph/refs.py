"""References of edges by the row that keeps them, read only when somebody asks.

A graph of a million edges holds a row number an edge, 4 bytes, instead of a reference, 200.
How a row becomes a reference and back is handed in (`RowBook`); nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gateway.errors import GraphError
from gateway.graph.splice import Move
from gateway.model import RecordRef

__all__ = ["ParallelRefs", "RowBook", "RowRefs"]

Rows = NDArray[np.int32]


class RowBook(Protocol):
    """Who keeps the edges' rows."""

    def edge_ref(self, row: int) -> RecordRef:
        """The reference that a row keeps."""

    def edge_row(self, ref: RecordRef) -> int | None:
        """The row of a reference, or None where none keeps it."""


class RowRefs(Sequence[RecordRef]):
    """The reference of each of a list of edges.

    Parameters
    ----------
    rows : int32 (edges,)
        The row that keeps each edge; ``~i`` (negative) stands for ``fresh[i]``.
    book : RowBook
    fresh : sequence of RecordRef
        References that are at hand already.
    """

    __slots__ = ("book", "fresh", "rows")

    def __init__(self, rows: Rows, book: RowBook, fresh: Sequence[RecordRef] = ()) -> None:
        self.rows, self.book, self.fresh = rows, book, tuple(fresh)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = int(self.rows[index])
        return self.fresh[~row] if row < 0 else self.book.edge_ref(row)

    def moved(self, move: Move, joined: Sequence[RecordRef]) -> RowRefs:
        """The references after that move, in which these joined."""
        late = ~np.arange(len(self.fresh), len(self.fresh) + len(joined), dtype=np.int32)
        return RowRefs(move.take(self.rows, late), self.book, (*self.fresh, *joined))

    def settled(self, rows: Mapping[RecordRef, int]) -> Rows:
        """A row for each: those at hand have the rows given.

        Raises
        ------
        GraphError
            One at hand has none.
        """
        missing = [ref for ref in self.fresh if ref not in rows]
        if missing:
            raise GraphError(f"an edge must have a row to be packed, {missing[0]} has none")
        fresh = np.array([rows[ref] for ref in self.fresh], dtype=np.int32)
        return np.where(self.rows < 0, fresh[~np.minimum(self.rows, -1)], self.rows) if len(fresh) else self.rows


class ParallelRefs(Mapping[RecordRef, int]):
    """The entry of every live edge that is not the most believed of its pair.

    Parameters
    ----------
    rows, entries : int32 (edges,)
        Rows that keep such edges, ascending, and their entries; an entry of -1 is gone.
    book : RowBook
    fresh : mapping of RecordRef to int
        Such edges with a reference at hand; they go before the rows.
    """

    __slots__ = ("book", "entries", "fresh", "rows")

    def __init__(self, rows: Rows, entries: Rows, book: RowBook, fresh: Mapping[RecordRef, int] | None = None) -> None:
        self.rows, self.entries, self.book, self.fresh = rows, entries, book, dict(fresh or {})

    def __len__(self) -> int:
        return int((self.entries >= 0).sum()) + len(self.fresh)

    def __iter__(self) -> Iterator[RecordRef]:
        yield from self.fresh
        for row in self.rows[self.entries >= 0].tolist():
            yield self.book.edge_ref(row)

    def __getitem__(self, ref: RecordRef) -> int:
        if ref in self.fresh:
            return self.fresh[ref]
        row = self.book.edge_row(ref)
        at = len(self.rows) if row is None else int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or int(self.rows[at]) != row or self.entries[at] < 0:
            raise KeyError(ref)
        return int(self.entries[at])

    def moved(self, move: Move, joined: Mapping[RecordRef, int]) -> ParallelRefs:
        """The same edges after their entries moved, and those that joined."""
        held = np.flatnonzero(self.entries >= 0)
        entries = np.full(len(self.entries), -1, dtype=np.int32)
        entries[held] = move.positions(self.entries[held])
        moved = move.positions(np.array(list(self.fresh.values()), dtype=np.int32)).tolist()
        fresh = {ref: entry for ref, entry in zip(self.fresh, moved, strict=True) if entry >= 0}
        return ParallelRefs(self.rows, entries, self.book, {**fresh, **joined})

    def settled(self, rows: Mapping[RecordRef, int]) -> tuple[Rows, Rows]:
        """Rows, ascending, and entries of all of them; those at hand have the rows given."""
        held = self.entries >= 0
        late = np.array([[rows[ref], entry] for ref, entry in self.fresh.items()], dtype=np.int32).reshape(-1, 2)
        numbers = np.concatenate((self.rows[held], late[:, 0]))
        ascending = np.argsort(numbers, kind="stable")
        return numbers[ascending], np.concatenate((self.entries[held], late[:, 1]))[ascending]
