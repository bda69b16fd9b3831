"""Lists whose items moved: the same move for arrays, references and positions.

A move is told once, as stretches of an old list with fresh items between them (`Splice`) or
as a permutation of it (`Permuted`), and then done to every array that lies along the list.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Move", "Permuted", "Splice"]

_Array = TypeVar("_Array", bound=NDArray[Any])
Int32s = NDArray[np.int32]


class Move(Protocol):
    """How a list became another one."""

    def take(self, held: _Array, joined: _Array) -> _Array:
        """The new list: ``held`` is the old one, ``joined`` the fresh items."""

    def positions(self, items: Int32s) -> Int32s:
        """Where old items stand in the new list; -1 where they are gone."""

    def fresh_positions(self, count: int) -> Int32s:
        """Where the fresh items stand in the new list."""


class Splice:
    """Stretches ``[start, stop)`` of the old list, in their new order; from ``length`` on they
    name fresh items.
    """

    def __init__(self, length: int, runs: list[tuple[int, int]]) -> None:
        self.length = length
        self._runs = runs
        ends = np.array(runs, dtype=np.int64).reshape(-1, 2)
        sizes = ends[:, 1] - ends[:, 0]
        by_start = np.argsort(ends[:, 0], kind="stable")
        self._starts, self._stops = ends[by_start, 0], ends[by_start, 1]
        self._news = (np.cumsum(sizes) - sizes)[by_start]

    def take(self, held: _Array, joined: _Array) -> _Array:
        """The new list, copied stretch by stretch."""
        n = self.length
        pieces = [held[a:b] if b <= n else joined[a - n : b - n] for a, b in self._runs]
        return np.concatenate(pieces) if pieces else held[:0]  # type: ignore[return-value]  # of held's type

    def positions(self, items: Int32s) -> Int32s:
        """Where old items stand in the new list; -1 where they are gone."""
        if not len(self._starts):
            return np.full(len(items), -1, dtype=np.int32)
        run = np.maximum(0, np.searchsorted(self._starts, items, side="right") - 1)
        inside = (items >= self._starts[run]) & (items < self._stops[run])
        return np.where(inside, self._news[run] + items - self._starts[run], -1).astype(np.int32)

    def fresh_positions(self, count: int) -> Int32s:
        """Where the fresh items stand in the new list."""
        return self.positions(np.arange(self.length, self.length + count, dtype=np.int32))


class Permuted:
    """Every item once, ``source[i]`` being the old place of the one at ``i``; none is fresh."""

    def __init__(self, source: NDArray[np.integer[Any]]) -> None:
        self._source = source

    def take(self, held: _Array, joined: _Array) -> _Array:  # noqa: ARG002  # nothing joins
        """The new list."""
        taken: _Array = held[self._source]
        return taken

    def positions(self, items: Int32s) -> Int32s:
        """Where old items stand in the new list."""
        place = np.empty(len(self._source), dtype=np.int32)
        place[self._source] = np.arange(len(self._source), dtype=np.int32)
        return place[items]

    def fresh_positions(self, count: int) -> Int32s:
        """None: nothing is fresh."""
        return np.full(count, -1, dtype=np.int32)
