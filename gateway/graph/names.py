"""Stable names of vertices: one ascending blob, found by bisection, joined without a rebuild.

In go names; out come positions. Nothing here knows what a vertex is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.errors import GraphError

__all__ = ["Joined", "Names"]

Ints = NDArray[np.int32]


class Names(Sequence[str]):
    """Stable names in ascending order, kept as one UTF-8 blob and decoded when asked for.

    A tuple of a million-edge graph's names would cost more than its matrix. UTF-8 sorts by
    code point, as `str` does, so a name is found by bisection over the bytes.
    """

    __slots__ = ("blob", "offsets")

    def __init__(self, blob: bytes, offsets: Ints) -> None:
        self.blob = blob
        offsets.setflags(write=False)
        self.offsets = offsets

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Pack names, which must ascend strictly."""
        encoded = [name.encode() for name in names]
        for left, right in pairwise(encoded):
            if left >= right:
                raise GraphError(f"vertex names must ascend, each once; found {left.decode()!r}, {right.decode()!r}")
        lengths = np.fromiter((len(name) for name in encoded), dtype=np.int32, count=len(encoded))
        return cls(b"".join(encoded), np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _bytes_at(self, index: int) -> bytes:
        return self.blob[self.offsets[index] : self.offsets[index + 1]]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._bytes_at(i).decode() for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._bytes_at(int(index)).decode()

    def _below(self, wanted: bytes) -> int:
        """How many names sort before the wanted one."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes_at(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def find(self, name: str) -> int | None:
        """The position of a name, or None."""
        wanted = name.encode()
        low = self._below(wanted)
        return low if low < len(self) and self._bytes_at(low) == wanted else None

    def joined(self, other: Names) -> Joined:
        """All names of both, and where those of each stand in it: a bisection a name of the other."""
        added = [name.encode() for name in other]
        below = np.array([self._below(name) for name in added], dtype=np.int64)
        known = np.array(
            [at < len(self) and self._bytes_at(at) == name for at, name in zip(below.tolist(), added, strict=True)],
            dtype=bool,
        )
        at = below[~known]
        new = [name for name, held in zip(added, known.tolist(), strict=True) if not held]
        pieces, start = [], 0
        for name, position in zip(new, at.tolist(), strict=True):
            stop = int(self.offsets[position])
            pieces += [self.blob[start:stop], name]
            start = stop
        lengths = np.insert(np.diff(self.offsets), at, [len(name) for name in new])
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
        # before an old name stand the new ones that sort below it, and before a new one those new before it
        shift = np.cumsum(np.bincount(at, minlength=len(self) + 1))[: len(self)]
        earlier = np.cumsum(~known) - ~known
        return Joined(
            Names(b"".join((*pieces, self.blob[start:])), offsets),
            (np.arange(len(self)) + shift).astype(np.int32),
            (below + earlier).astype(np.int32),
            np.where(known, below, -1).astype(np.int32),
        )


class Joined(NamedTuple):
    """Two lists of names as one: the names, the new position of each old and of each added one,
    and the old position of each added one (-1: it is new).
    """

    names: Names
    moved: Ints
    added: Ints
    held: Ints
