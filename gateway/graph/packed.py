"""A graph as blobs and back, bit for bit: what the store keeps as a snapshot.

The blobs hold the arrays (a belief as uint16) and the vertices' names; the rows of the edges
are the store's own. Numbers are little-endian. No file is touched here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gateway.errors import GraphError
from gateway.graph.adjacency import BELIEF_STEPS, NO_REFS, Graph, Names
from gateway.model import RecordRef

__all__ = ["Packed", "pack", "unpack"]

_MAGIC = b"SWG1"
_HEADER = struct.Struct("<4sIIIB")  # magic, vertices, reds, pairs, bytes of one column


class Packed(NamedTuple):
    """A graph as two blobs: the arrays, and the vertices' names."""

    arrays: bytes
    names: bytes


def pack(graph: Graph) -> Packed:
    """The graph as blobs: 2 bytes of belief and 2 or 4 of column a pair, 8 a vertex.

    ``graph.edges`` is not in them: the store keeps the edges' own rows, in that order.
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
    edges: Sequence[RecordRef] = (),
    parallels: Mapping[RecordRef, int] = NO_REFS,
) -> Graph:
    """The graph of two blobs, bit for bit the one that was packed.

    ``edges`` may be any sequence, also one that looks a reference up only when asked.

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
    at = np.cumsum((_HEADER.size, *sizes)).tolist()
    cut = [packed.arrays[start:stop] for start, stop in pairwise(at)]
    order = np.frombuffer(cut[0], dtype="<u4").astype(np.int32)
    indptr = np.frombuffer(cut[1], dtype="<u4").astype(np.int32)
    columns = np.frombuffer(cut[2], dtype="<u4" if width == 4 else "<u2").astype(np.int32)
    steps = np.frombuffer(cut[3], dtype="<u2")
    offsets = np.frombuffer(packed.names[: 4 * (n + 1)], dtype="<u4").astype(np.int32)
    # the walk's kernels check no bounds: what is wrong here must not reach them
    rising = int(indptr[0]) == 0 and int(indptr[-1]) == pairs and bool((np.diff(indptr) >= 0).all())
    if not rising or (pairs and not 0 <= int(columns.min()) <= int(columns.max()) < reds):
        raise GraphError(f"a packed graph's columns must name its {reds} red vertices, and its rows {pairs} pairs")
    if (pairs and int(steps.min()) == 0) or int(offsets[-1]) != len(packed.names) - 4 * (n + 1):
        raise GraphError("a packed graph's beliefs must be above 0 and its names complete")
    if reds > n or not np.array_equal(np.sort(order), np.arange(n)):
        raise GraphError(f"a packed graph's order must hold each of its {n} vertices once, {reds} of them red")
    return Graph(
        names=Names(packed.names[4 * (n + 1) :], offsets),
        order=order,
        reds=reds,
        indptr=indptr,
        columns=columns,
        belief=steps / BELIEF_STEPS,
        edges=edges,
        parallels=parallels,
    )
