"""Links on file, read by the end they leave or enter: what a typed slot needs, not every edge.

In goes a snapshot and the instant asked; out come folded links, in the order of stable names.
A large home holds a million edges, of which a question's patterns touch some hundreds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from gateway.ask.adjacency import kept_graph
from gateway.graph.belief import edge_order, fold, fold_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.graph.adjacency import Graph
    from gateway.model import Evidence, Interval, Link, RecordRef
    from gateway.ontology.vocabulary import Ontology
    from gateway.store.reads import Reader
    from gateway.stored import EdgeRow

__all__ = ["Given", "Known", "OnFile"]

_BEGINNING_MS = -(2**62)
"""Before every instant that is stored."""


class Known(Protocol):
    """The links there are, found by where they begin."""

    def leaving(self, tail: str) -> tuple[Link, ...]:
        """Every link with this tail, by stable name."""

    def everything(self) -> tuple[Link, ...]:
        """Every link, by stable name."""

    def compact(self, ontology: Ontology, view: Interval, chained: frozenset[RecordRef]) -> Graph | None:
        """The household graph of ``view`` where one is kept ready, with the ``chained`` edges."""


class Given:
    """Links that are at hand already."""

    def __init__(self, links: Iterable[Link]) -> None:
        self._links = tuple(sorted(links, key=lambda link: edge_order(link.edge)))
        self._leaving: dict[str, list[Link]] = defaultdict(list)
        for link in self._links:
            self._leaving[link.edge.tail.name].append(link)

    def leaving(self, tail: str) -> tuple[Link, ...]:
        """Every link with this tail, by stable name."""
        return tuple(self._leaving.get(tail, ()))

    def everything(self) -> tuple[Link, ...]:
        """Every link, by stable name."""
        return self._links

    def compact(self, ontology: Ontology, view: Interval, chained: frozenset[RecordRef]) -> Graph | None:  # noqa: ARG002  # none is kept
        """None: it is built of them."""
        return None


class OnFile:
    """Links of a snapshot that had begun by an instant, with the owner's marks as they stood then.

    Each vertex is read once; the snapshot does not change meanwhile.
    """

    def __init__(self, reader: Reader, now_ms: int) -> None:
        self._reader, self._now_ms = reader, now_ms
        self._leaving: dict[str, tuple[Link, ...]] = {}
        self._walls: frozenset[str] | None = None

    def leaving(self, tail: str) -> tuple[Link, ...]:
        """Every link with this tail, by stable name."""
        if tail not in self._leaving:
            self._leaving[tail] = self._folded(self._reader.edges_leaving(tail, until_ms=self._now_ms))
        return self._leaving[tail]

    def entering(self, head: str, relations: Iterable[str]) -> tuple[Link, ...]:
        """Every link with this head and one of these relations, of any host, by stable name."""
        return self._folded(self._reader.edges_entering(head, tuple(relations), until_ms=self._now_ms))

    def everything(self) -> tuple[Link, ...]:
        """Every link, by stable name: seconds in a large home."""
        edges = self._reader.edges(from_ms=_BEGINNING_MS, to_ms=self._now_ms)
        evidence: dict[RecordRef, list[Evidence]] = defaultdict(list)
        for item in self._reader.evidence():
            evidence[item.edge].append(item)
        return fold_all(edges, evidence, frozenset(edge.ref for edge in edges if edge.ref.text in self._marked()))

    def compact(self, ontology: Ontology, view: Interval, chained: frozenset[RecordRef]) -> Graph | None:
        """The household graph from its stored snapshot, or None where there is none of this view."""
        return kept_graph(self._reader, ontology, view, now_ms=self._now_ms, chained=chained)

    def _marked(self) -> frozenset[str]:
        if self._walls is None:
            marks = self._reader.walls(at_ms=self._now_ms)
            self._walls = frozenset(edge for _, edge, _, _, _ in marks if edge is not None)
        return self._walls

    def _folded(self, rows: tuple[EdgeRow, ...]) -> tuple[Link, ...]:
        links = (fold(row.edge, row.evidence, marked_wrong=row.edge.ref.text in self._marked()) for row in rows)
        return tuple(sorted(links, key=lambda link: edge_order(link.edge)))
