"""What may be forgotten: old raw rows go, what they summed up to and what is cited stays.

A day whose raw rows are purged is sealed first, in the same transaction: its sums are kept
apart in ``sealed_day``, and from then on the day is its sealed sums plus the records that
came later. So a late record adds instead of replacing, and a rebuild from what raw rows are
left gives the same day.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.store.blobs import pack_covered, pack_sums, unpack_covered, unpack_sums
from gateway.store.checksums import row_crc
from gateway.stored import DayRow

if TYPE_CHECKING:
    from gateway.stored import DatedFrame

__all__ = ["CITING", "KEPT_KINDS", "Purged", "Retention", "day_row"]

_DAY_MS = 86_400_000
_REACH_MS = _DAY_MS
"""Raw rows are kept a day longer than their sealed day: coverage of the day after begins at
the last record before it (an imported feeder may pause for a day)."""
_FRESH_MS = 2 * _DAY_MS
"""The last two days are never purged for want of room: today is not closed, and what a device
has queued belongs to it or to yesterday."""
KEPT_KINDS = ("food_set", "weight")
"""Never purged: what was fed when follows from the one, a weight adds up to nothing. Both are
a few rows a week."""
CITING = ("answer_cites", "evidence", "floor_cites", "tombstone")
"""The tables that cite a record in their column ``record``; whatever they cite stays."""

_PURGEABLE = (
    "FROM frame f WHERE f.end_ms < :before AND f.kind NOT IN ('" + "', '".join(KEPT_KINDS) + "') "
    # A number above the mark is still waited for; only what the mark covers is known to be known.
    "AND (f.boot IS NULL OR f.seq <= (SELECT m.seq FROM mark m WHERE m.device = f.device AND m.boot = f.boot)) "
) + " ".join(f"AND NOT EXISTS (SELECT 1 FROM {table} c WHERE c.record = f.record)" for table in CITING)


@dataclass(frozen=True, slots=True)
class Purged:
    """What one purge did: everything before ``until_ms`` is sealed; counts of day rows sealed
    and of raw rows deleted.
    """

    until_ms: int
    days: int
    rows: int


def day_row(day: DayRow) -> dict[str, str | int | bytes | None]:
    """A day's columns by name, its CRC-32 among them; in the order that `CHECKED` reads them."""
    row: dict[str, str | int | bytes | None] = {
        "series": day.series,
        "date": day.date,
        "start_ms": day.start_ms,
        "end_ms": day.end_ms,
        "n": day.n,
        "total": day.total,
        "covered_ms": day.covered_ms,
        "sums": pack_sums(day.sums),
        "covered": pack_covered(day.covered),
        "set_aside": day.set_aside,
        "late": day.late,
    }
    row["crc"] = row_crc(tuple(row.values()))
    return row


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The fewest stretches that cover these spans."""
    joined: list[tuple[int, int]] = []
    for start_ms, end_ms in sorted(set(spans)):
        if joined and start_ms <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end_ms))
        else:
            joined.append((start_ms, end_ms))
    return joined


class Retention:
    """Sealing and purging. A base of `Transaction`, never made on its own."""

    _db: sqlite3.Connection

    def sealed_day(self, day: DayRow) -> DayRow | None:
        """The part of a day whose raw rows were purged, or None where the day is not sealed."""
        row = self._db.execute(
            "SELECT s.n, s.sums, s.covered, s.set_aside, s.late FROM sealed_day s JOIN record r ON r.id = s.record "
            "WHERE r.ref = ?",
            (day.ref.text,),
        ).fetchone()
        if row is None:
            return None
        n, sums, covered, set_aside, late = row
        return replace(
            day, n=n, sums=unpack_sums(sums), covered=unpack_covered(covered), set_aside=set_aside, late=late
        )

    def purge(self, *, before_ms: int, most: int | None = None) -> Purged:
        """Seal every day that ended by ``before_ms`` and delete its raw rows.

        Kept are rows that an answer, an edge or a notice cites, `KEPT_KINDS`, rows the mark does not
        cover yet, and the last day before the boundary. The boundary is drawn back where it
        would cut a day in two.

        Parameters
        ----------
        before_ms : int
            Instant, ms UTC.
        most : int, optional
            At most so many raw rows are deleted, the oldest first; None = all.
        """
        until_ms = self._whole_days(before_ms)
        doomed = self._db.execute(
            "SELECT f.record, f.device, f.boot, f.seq, (SELECT r.ref FROM record r WHERE r.id = f.record) "
            f"{_PURGEABLE} ORDER BY f.end_ms LIMIT :most",
            {"before": until_ms - _REACH_MS, "most": -1 if most is None else most},
        ).fetchall()
        purged: dict[tuple[str, int], int] = {}
        for record, device, boot, seq, ref in doomed:
            self._db.execute("DELETE FROM derived WHERE record = ?", (record,))
            self._db.execute("DELETE FROM frame WHERE record = ?", (record,))
            self._db.execute("DELETE FROM record WHERE id = ?", (record,))
            if boot is None:  # an imported row has no number to know a second copy by
                self._db.execute("INSERT OR IGNORE INTO purged_import (ref) VALUES (?)", (ref,))
            else:
                purged[device, boot] = max(seq, purged.get((device, boot), 0))
        for (device, boot), seq in purged.items():
            self._db.execute(
                "UPDATE mark SET purged = max(purged, :seq) WHERE device = :device AND boot = :boot",
                {"device": device, "boot": boot, "seq": seq},
            )
        # Sealed last: on a full disk it is the deleted rows that give its pages.
        return Purged(until_ms, self.seal(until_ms=until_ms), len(doomed))

    def purge_oldest_day(self, *, most: int) -> Purged:
        """Purge at most so many rows of the oldest local day that has any to give; the last two
        days have none.
        """
        (newest_ms,) = self._db.execute("SELECT max(end_ms) FROM frame").fetchone()
        limit_ms = 0 if newest_ms is None else newest_ms - _FRESH_MS
        (oldest_ms,) = self._db.execute(f"SELECT min(f.end_ms) {_PURGEABLE}", {"before": limit_ms}).fetchone()
        if oldest_ms is None:
            return Purged(0, 0, 0)
        # Drawn back to a midnight, two days beyond the row's reach still lie beyond it.
        return self.purge(before_ms=min(oldest_ms + _REACH_MS + 2 * _DAY_MS, limit_ms + _REACH_MS), most=most)

    def purge_dead_letters(self, *, before_ms: int) -> int:
        """Delete unreadable messages received before an instant, and say how many.

        One that a mark still waits to pass over stays.
        """
        return self._db.execute(
            "DELETE FROM dead_letter WHERE received_ms < :before AND (seq IS NULL OR seq <= "
            "(SELECT m.seq FROM mark m WHERE m.device = dead_letter.device AND m.boot = dead_letter.boot))",
            {"before": before_ms},
        ).rowcount

    def seal(self, *, until_ms: int, but_dates: frozenset[str] = frozenset()) -> int:
        """Seal the days that ended by ``until_ms``, with the late records of those sealed before;
        returns how many. Days of ``but_dates`` stay open, with their raw rows.
        """
        spans = []
        for record, *values in self._db.execute(
            "SELECT d.record, d.series, d.date, d.start_ms, d.end_ms, d.n, d.sums, d.covered, d.set_aside, d.revision, "
            "d.late FROM day d LEFT JOIN sealed_day s ON s.record = d.record WHERE d.end_ms <= :until "
            "AND (d.n, d.sums, d.covered, d.set_aside, d.late) IS NOT (s.n, s.sums, s.covered, s.set_aside, s.late)",
            {"until": until_ms},
        ).fetchall():
            values[5], values[6] = unpack_sums(values[5]), unpack_covered(values[6])
            day = DayRow(*values)
            if day.date not in but_dates:
                self._seal(record, replace(day, late=day.late or 0))
                spans.append((day.start_ms, day.end_ms))
        for start_ms, end_ms in _joined(spans):
            self._db.execute(
                "UPDATE frame SET sealed = 1 WHERE sealed = 0 AND start_ms >= :start AND start_ms < :end",
                {"start": start_ms, "end": end_ms},
            )
        return len(spans)

    def _seal(self, record: int, day: DayRow) -> None:
        row = day_row(day)
        self._db.execute(
            "UPDATE day SET late = :late, crc = :crc WHERE record = :record",
            {"record": record, "late": day.late, "crc": row["crc"]},
        )
        sums = {key: row[key] for key in ("n", "sums", "covered", "set_aside", "late")}
        self._db.execute(
            "INSERT INTO sealed_day (record, n, sums, covered, set_aside, late, crc) "
            "VALUES (:record, :n, :sums, :covered, :set_aside, :late, :crc) ON CONFLICT (record) DO UPDATE SET "
            "n = excluded.n, sums = excluded.sums, covered = excluded.covered, set_aside = excluded.set_aside, "
            "late = excluded.late, crc = excluded.crc",
            {"record": record, **sums, "crc": row_crc((day.ref.text, *sums.values()))},
        )

    def _whole_days(self, at_ms: int) -> int:
        """The latest instant up to ``at_ms`` that lies inside no day row (zones may have changed)."""
        while True:
            (start_ms,) = self._db.execute(
                "SELECT min(start_ms) FROM day WHERE start_ms < :at AND end_ms > :at", {"at": at_ms}
            ).fetchone()
            if start_ms is None:
                return at_ms
            at_ms = start_ms

    def _was_purged(self, frame: DatedFrame, purged: dict[tuple[str, int], int]) -> bool:
        """Whether a frame that is not stored was stored once; ``purged`` remembers what was looked up."""
        if frame.boot is None or frame.seq is None:
            sql = "SELECT 1 FROM purged_import WHERE ref = ?"
            return self._db.execute(sql, (frame.ref.text,)).fetchone() is not None
        key = (frame.device, frame.boot)
        if key not in purged:
            row = self._db.execute("SELECT purged FROM mark WHERE device = ? AND boot = ?", key).fetchone()
            purged[key] = 0 if row is None else int(row[0])
        return frame.seq <= purged[key]
