"""A graph as blobs and back, bit for bit: what the store keeps as a snapshot.

The blobs hold the arrays (a belief as uint16) and the vertices' names; which edges a pair has,
the store's rows say. Numbers are little-endian. No file is touched here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from gateway.errors import GraphError
from gateway.graph.adjacency import BELIEF_STEPS, NO_REFS, Graph
from gateway.graph.names import Names
from gateway.graph.refs import FiledRefs, Layout, PairBook
from gateway.model import RecordRef

__all__ = ["Packed", "pack", "unpack"]

_MAGIC = b"SWG1"
_HEADER = struct.Struct("<4sIIIB15x")
"""Magic, vertices, reds, pairs, bytes of one column; 32 bytes, so that the arrays behind it
are aligned and are used where they lie."""


class Packed(NamedTuple):
    """A graph as blobs: the arrays and the vertices' names."""

    arrays: bytes
    names: bytes


def pack(graph: Graph) -> Packed:
    """The graph as blobs: 2 bytes of belief and 2 or 4 of column a pair, 8 and its name a vertex.

    References are not packed: whoever packs them keeps the rows.
    """
    wide = graph.reds > 0xFFFF
    header = _HEADER.pack(_MAGIC, graph.vertex_count, graph.reds, graph.pair_count, 4 if wide else 2)
    arrays = (
        graph.order.astype("<u4"),
        graph.indptr.astype("<u4"),
        graph.columns.astype("<u4" if wide else "<u2"),
        np.rint(graph.belief * BELIEF_STEPS).astype("<u2"),
    )
    return Packed(
        header + b"".join(array.tobytes() for array in arrays),
        graph.names.offsets.astype("<u4").tobytes() + graph.names.blob,
    )


def unpack(
    packed: Packed,
    *,
    book: PairBook | None = None,
    edges: Sequence[RecordRef] = (),
    parallels: Mapping[RecordRef, int] = NO_REFS,
) -> Graph:
    """The graph of its blobs, bit for bit the one that was packed.

    ``book`` keeps the rows of its edges; without, ``edges`` and ``parallels`` are its references.

    Raises
    ------
    GraphError
        Blobs of another layout, cut short, or naming a vertex that is not there.
    """
    if len(packed.arrays) < _HEADER.size or packed.arrays[:4] != _MAGIC:
        raise GraphError(f"a packed graph must begin with {_MAGIC!r}, begins with {packed.arrays[:4]!r}")
    _, n, reds, pairs, width = _HEADER.unpack_from(packed.arrays)
    if width not in {2, 4}:
        raise GraphError(f"a packed graph's columns must take 2 or 4 bytes each, take {width}")
    sizes = (4 * n, 4 * (n + 1), width * pairs, 2 * pairs)
    if len(packed.arrays) != _HEADER.size + sum(sizes) or len(packed.names) < 4 * (n + 1):
        raise GraphError(
            f"a packed graph of {n} vertices and {pairs} pairs must have {_HEADER.size + sum(sizes)} bytes "
            f"and {4 * (n + 1)} of name offsets, has {len(packed.arrays)} and {len(packed.names)}"
        )
    at = tuple(accumulate(sizes, initial=_HEADER.size))
    order = np.frombuffer(packed.arrays, "<i4", n, at[0]).astype(np.int32, copy=False)
    indptr = np.frombuffer(packed.arrays, "<i4", n + 1, at[1]).astype(np.int32, copy=False)
    columns = np.frombuffer(packed.arrays, "<i4" if width == 4 else "<u2", pairs, at[2]).astype(np.int32, copy=False)
    steps = np.frombuffer(packed.arrays, "<u2", pairs, at[3])
    offsets = np.frombuffer(packed.names, "<i4", n + 1).astype(np.int32, copy=False)
    # the walk's kernels check no bounds: what is wrong here must not reach them
    rising = int(indptr[0]) == 0 and int(indptr[-1]) == pairs and bool((indptr[1:] >= indptr[:-1]).all())
    if not rising or (pairs and not 0 <= int(columns.min()) <= int(columns.max()) < reds):
        raise GraphError(f"a packed graph's columns must name its {reds} red vertices, and its rows {pairs} pairs")
    if (pairs and int(steps.min()) == 0) or int(offsets[-1]) != len(packed.names) - 4 * (n + 1):
        raise GraphError("a packed graph's beliefs must be above 0 and its names complete")
    if reds > n or not _is_permutation(order):
        raise GraphError(f"a packed graph's order must hold each of its {n} vertices once, {reds} of them red")
    names = Names(packed.names[4 * (n + 1) :], offsets)
    if book is not None:
        edges = FiledRefs(Layout(names, order, indptr, columns), book)
    return Graph(
        names=names,
        order=order,
        reds=reds,
        indptr=indptr,
        columns=columns,
        belief=steps / BELIEF_STEPS,
        edges=edges,
        parallels=parallels,
    )


def _is_permutation(order: np.ndarray[tuple[int], np.dtype[np.int32]]) -> bool:
    """Whether every number below the length occurs once."""
    n = len(order)
    if n and not 0 <= int(order.min()) <= int(order.max()) < n:
        return False
    seen = np.zeros(n, dtype=bool)
    seen[order] = True
    return bool(seen.all())
