"""The SQL behind the compact graph: a snapshot in blobs, and which pairs to read beside it.

The edges' rows are the truth. The snapshot holds, as bytes that only the graph room can read,
every pair of things of which all edges are timeless; which of them changed since is logged by
triggers, so that no way of writing an edge or its evidence can forget it. Two kinds of pairs
never stand in the snapshot alone: those with a dated edge, because what is valid depends on
the question, and those with a mark of the owner, because a mark can be taken back.

Two bases, one for readers and one for the writer, so that `Reader` and `Transaction` stay
one class each for their callers. Never made on their own.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING
from zlib import crc32

from gateway.errors import StoreError
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.stored import AdjacencySnapshot, EdgeRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["AdjacencyReads", "AdjacencyWrites"]

_BESIDE = (
    "WITH pair (tail, head) AS ("
    "SELECT tail, head FROM adjacency_change UNION "
    "SELECT min(tail, head), max(tail, head) FROM edge WHERE valid_from_ms IS NOT NULL OR valid_to_ms IS NOT NULL "
    "UNION SELECT min(e.tail, e.head), max(e.tail, e.head) FROM wall w JOIN record r ON r.ref = w.edge "
    "JOIN edge e ON e.record = r.id), "
    "beside AS (SELECT e.* FROM pair p CROSS JOIN edge e ON e.tail = p.tail AND e.head = p.head "
    "UNION ALL SELECT e.* FROM pair p CROSS JOIN edge e ON e.tail = p.head AND e.head = p.tail) "
)
"""Pairs that a graph takes from the rows, and their edges. (An edge never joins a thing to itself.)"""

_EDGE = "SELECT e.record, t.name, e.relation, h.name, e.valid_from_ms, e.valid_to_ms "
_ENDS = "JOIN vertex t ON t.id = e.tail JOIN vertex h ON h.id = e.head "
_EVIDENCE = (
    "SELECT v.edge, r.ref, v.true_mass, v.false_mass, v.witness, v.reliability, v.span_start, v.span_end "
    "FROM evidence v JOIN record r ON r.id = v.record "
)

_Evidence = tuple[int, str, float, float, str, float, int | None, int | None]


def _edge(row: tuple[int, str, str, str, int | None, int | None]) -> tuple[int, Edge]:
    record, tail, relation, head, start, end = row
    return record, Edge(Vertex(tail), relation, Vertex(head), start, end)


def _evidence(edge: Edge, rows: list[_Evidence]) -> tuple[Evidence, ...]:
    ref = edge.ref
    return tuple(
        Evidence(
            edge=ref,
            record=RecordRef(record),
            mass=Mass(true, false),
            witness=witness,
            reliability=reliability,
            span=None if start is None or end is None else (start, end),
        )
        for _, record, true, false, witness, reliability, start, end in rows
    )


def _crc(snapshot: AdjacencySnapshot) -> int:
    crc = crc32(snapshot.view.encode())
    for blob in (snapshot.arrays, snapshot.names):
        crc = crc32(blob, crc)
    return crc


class AdjacencyReads:
    """Reads behind the compact graph."""

    _db: sqlite3.Connection

    def adjacency(self) -> AdjacencySnapshot | None:
        """The snapshot, or None where there is none, or its bytes do not match their CRC."""
        row = self._db.execute("SELECT view, arrays, names, crc FROM adjacency").fetchone()
        if row is None:
            return None
        snapshot = AdjacencySnapshot(*row[:3])
        return snapshot if _crc(snapshot) == row[3] else None

    def adjacency_epoch(self) -> int:
        """The epoch in which changes are logged; 0 before the first."""
        row = self._db.execute("SELECT epoch FROM adjacency_epoch").fetchone()
        return 0 if row is None else int(row[0])

    def adjacency_changes(self) -> int:
        """How many pairs have changed since the snapshot."""
        return int(self._db.execute("SELECT count(*) FROM adjacency_change").fetchone()[0])

    def pairs_beside(self) -> tuple[tuple[str, str], ...]:
        """Names of the pairs that are not to be taken from the snapshot, each once, by name of the
        end that was stored first.
        """
        return tuple(
            self._db.execute(
                f"{_BESIDE} SELECT t.name, h.name FROM pair e {_ENDS} ORDER BY t.name, h.name",
            )
        )

    def edges_beside(self) -> tuple[EdgeRow, ...]:
        """Every edge of those pairs with its evidence, by row."""
        evidence: dict[int, list[_Evidence]] = {}
        for row in self._db.execute(f"{_BESIDE} {_EVIDENCE} WHERE v.edge IN (SELECT record FROM beside)"):
            evidence.setdefault(row[0], []).append(row)
        rows = self._db.execute(f"{_BESIDE} {_EDGE} FROM beside e {_ENDS} ORDER BY e.record")
        return tuple(
            EdgeRow(record, edge, _evidence(edge, evidence.get(record, []))) for record, edge in map(_edge, rows)
        )

    def edges_leaving(self, tail: str, *, until_ms: int) -> tuple[EdgeRow, ...]:
        """Every edge of a tail that begins by an instant, with its evidence, by row."""
        return self._rows_where(
            "e.tail = (SELECT id FROM vertex WHERE name = :end) AND coalesce(e.valid_from_ms, :until) <= :until",
            {"end": tail, "until": until_ms},
        )

    def edges_entering(self, head: str, relations: tuple[str, ...], *, until_ms: int) -> tuple[EdgeRow, ...]:
        """Every edge of a head with one of these relations, of whatever host, that begins by an
        instant, with its evidence, by relation as given, then row.
        """
        return tuple(
            row
            for relation in relations
            for row in self._rows_where(
                "e.head = (SELECT id FROM vertex WHERE name = :end) "
                "AND (e.relation = :relation OR (e.relation >= :hosts AND e.relation < :beyond)) "
                "AND coalesce(e.valid_from_ms, :until) <= :until",
                {
                    "end": head,
                    "until": until_ms,
                    "relation": relation,
                    "hosts": f"{relation}[",
                    "beyond": f"{relation}\\",  # the character after "["
                },
            )
        )

    def _rows_where(self, condition: str, values: dict[str, str | int]) -> tuple[EdgeRow, ...]:
        """The edges that a condition on ``e`` finds by an index, with their evidence."""
        rows = self._db.execute(f"{_EDGE} FROM edge e {_ENDS} WHERE {condition} ORDER BY e.record", values)
        found = tuple(map(_edge, rows))
        evidence: dict[int, list[_Evidence]] = {}
        pieces = f"{_EVIDENCE} JOIN edge e ON e.record = v.edge WHERE {condition}"
        for row in self._db.execute(pieces, values):
            evidence.setdefault(row[0], []).append(row)
        return tuple(EdgeRow(record, edge, _evidence(edge, evidence.get(record, []))) for record, edge in found)

    def timeless_edges(self) -> Iterator[EdgeRow]:
        """Every edge without a date with its evidence, one at a time, by stable names."""
        rows = self._db.execute(
            f"{_EDGE} FROM edge e {_ENDS} WHERE e.valid_from_ms IS NULL AND e.valid_to_ms IS NULL "
            "ORDER BY t.name, e.relation, h.name"
        )
        for record, edge in map(_edge, rows):
            evidence = self._db.execute(f"{_EVIDENCE} WHERE v.edge = ?", (record,)).fetchall()
            yield EdgeRow(record, edge, _evidence(edge, evidence))

    def has_timeless_edges(self, *, least: int) -> bool:
        """Whether there are so many edges without a date."""
        row = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM edge WHERE valid_from_ms IS NULL AND valid_to_ms IS NULL LIMIT ?)",
            (least,),
        ).fetchone()
        return int(row[0]) >= least

    def in_timeless_edges(self, names: tuple[str, ...]) -> frozenset[str]:
        """Those of the named things that are an end of an edge without a date."""
        undated = "e.valid_from_ms IS NULL AND e.valid_to_ms IS NULL"
        return frozenset(
            name
            for name in names
            if self._db.execute(
                "SELECT 1 FROM vertex v WHERE v.name = :name AND ("
                f"EXISTS (SELECT 1 FROM edge e WHERE e.tail = v.id AND {undated}) OR "
                f"EXISTS (SELECT 1 FROM edge e WHERE e.head = v.id AND {undated}))",
                {"name": name},
            ).fetchone()
        )

    def edges_between(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[RecordRef, ...]]:
        """Every edge between the two things of each pair, in either direction, by row: one statement for all."""
        between: list[list[tuple[int, str]]] = [[] for _ in pairs]
        both_ways = [end for one, other in pairs for end in ((one, other), (other, one))]
        for way, row, ref in self._db.execute(
            "SELECT p.key, e.record, r.ref FROM json_each(:pairs) p "
            "CROSS JOIN vertex t ON t.name = json_extract(p.value, '$[0]') "
            "CROSS JOIN vertex h ON h.name = json_extract(p.value, '$[1]') "
            "CROSS JOIN edge e ON e.tail = t.id AND e.head = h.id CROSS JOIN record r ON r.id = e.record",
            {"pairs": json.dumps(both_ways)},
        ):
            between[way // 2].append((row, ref))
        return [tuple(RecordRef(ref) for _, ref in sorted(found)) for found in between]

    def rows_between(self, one: str, other: str) -> tuple[EdgeRow, ...]:
        """Every edge between two things, in either direction, with its evidence, by row."""
        end, far = ("(SELECT id FROM vertex WHERE name = :one)", "(SELECT id FROM vertex WHERE name = :other)")
        either = f"(e.tail = {end} AND e.head = {far} OR e.tail = {far} AND e.head = {end})"
        return self._rows_where(either, {"one": one, "other": other})


class AdjacencyWrites(AdjacencyReads):
    """Writes behind the compact graph."""

    def begin_adjacency(self) -> int:
        """Begin an epoch: what is read after this and saved under its number misses no change."""
        row = self._db.execute(
            "INSERT INTO adjacency_epoch (id, epoch) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1 "
            "RETURNING epoch"
        ).fetchone()
        return int(row[0])

    def save_adjacency(self, snapshot: AdjacencySnapshot, *, epoch: int) -> None:
        """Replace the snapshot and forget the changes of earlier epochs, which it contains.

        Parameters
        ----------
        epoch : int
            The epoch that was begun before the rows were read.

        Raises
        ------
        StoreError
            Another epoch was begun since, or none.
        """
        if epoch != self.adjacency_epoch():
            raise StoreError(f"a snapshot must be of the epoch that is open, {self.adjacency_epoch()}, is of {epoch}")
        self._db.execute(
            "INSERT OR REPLACE INTO adjacency (id, view, crc, arrays, names) VALUES (1, :view, :crc, :arrays, :names)",
            {
                "view": snapshot.view,
                "crc": _crc(snapshot),
                "arrays": snapshot.arrays,
                "names": snapshot.names,
            },
        )
        self._db.execute("DELETE FROM adjacency_change WHERE epoch < ?", (epoch,))

    def drop_adjacency(self) -> None:
        """Forget snapshot and changes; every graph is then made from the rows."""
        for table in ("adjacency", "adjacency_epoch", "adjacency_change"):
            self._db.execute(f"DELETE FROM {table}")
