"""The SQL behind deliveries: boots and their clocks, marks, frames to be dated again, day counts.

Two bases, one for readers and one for the writer, so that `Reader` and `Transaction` stay
one class each for their callers. Never made on their own.
"""

from __future__ import annotations

import json
import sqlite3
from operator import attrgetter
from typing import TYPE_CHECKING

from gateway.model import RecordRef
from gateway.store.blobs import pack_list, unpack_fields
from gateway.store.checksums import row_crc
from gateway.store.many import insert_rows
from gateway.stored import BootRow, DatedFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["FRAME_SQL", "DeliveryReads", "DeliveryWrites", "frame_of", "frame_row", "rare"]

FRAME_SQL = (
    "SELECT r.ref, f.device, f.boot, f.seq, f.kind, f.uptime_ms, f.received_ms, f.start_ms, f.end_ms, f.dating, "
    "f.fields, f.earliest_ms, f.latest_ms, f.amount, f.unit, f.object, f.set_aside, f.sealed "
    "FROM frame f JOIN record r ON r.id = f.record "
)


_OFTEN = frozenset({"motion", "beat"})


def rare(kinds: tuple[str, ...]) -> str:
    """The partial indexes' own condition, for kinds they hold: only then may SQLite use them."""
    return "" if _OFTEN & set(kinds) else "AND f.kind NOT IN ('motion', 'beat')"


def frame_of(row: tuple[object, ...]) -> DatedFrame:
    """A row of ``FRAME_SQL`` as a value."""
    values = list(row)
    values[0] = RecordRef(str(row[0]))
    values[10] = unpack_fields(str(row[10]))
    values[17] = bool(row[17])
    return DatedFrame(*values)  # type: ignore[arg-type]  # columns stand in the order of the fields


_CHECKED_COLUMNS = (
    *("ref", "device", "boot", "seq", "kind", "uptime_ms", "received_ms", "start_ms", "end_ms", "dating"),
    *("earliest_ms", "latest_ms", "amount", "unit", "object", "fields", "set_aside"),
)
"""A frame's columns in the order that `CHECKED` reads them."""
_COLUMNS = (*_CHECKED_COLUMNS, "crc")
_STORED_COLUMNS = ("record", *_COLUMNS[1:])
_checked = attrgetter("ref.text", *_CHECKED_COLUMNS[1:])
_FIELDS = _CHECKED_COLUMNS.index("fields")


def _values(frame: DatedFrame) -> tuple[str | int | None, ...]:
    """A frame's ``_COLUMNS``."""
    values = list(_checked(frame))
    values[_FIELDS] = pack_list(frame.fields)
    return (*values, row_crc(tuple(values)))


def frame_row(frame: DatedFrame) -> dict[str, str | int | None]:
    """A frame's columns by name, its CRC-32 among them; in the order that `CHECKED` reads them."""
    return dict(zip(_COLUMNS, _values(frame), strict=True))


class DeliveryReads:
    """Reads that ingest needs beside the reader's own."""

    _db: sqlite3.Connection

    def boots(self, device: str, *, only: tuple[int, ...] | None = None) -> tuple[BootRow, ...]:
        """What is known of the clocks of a device's boots (of these alone), by boot."""
        marks = "" if only is None else f"AND boot IN ({', '.join('?' for _ in only)}) "
        rows = self._db.execute(
            f"SELECT device, boot, anchors, wall_uptime_ms, wall_offset_ms FROM boot WHERE device = ? {marks}"
            "ORDER BY boot",
            (device, *(only or ())),
        )
        return tuple(
            BootRow(
                device=name,
                boot=boot,
                anchors=tuple((int(uptime), int(offset)) for uptime, offset in json.loads(anchors)),
                wall=None if uptime_ms is None else (uptime_ms, offset_ms),
            )
            for name, boot, anchors, uptime_ms, offset_ms in rows
        )

    def all_marks(self) -> dict[str, dict[int, int]]:
        """Device to boot to last contiguous committed seq."""
        found: dict[str, dict[int, int]] = {}
        for device, boot, seq in self._db.execute("SELECT device, boot, seq FROM mark ORDER BY device, boot"):
            found.setdefault(device, {})[boot] = seq
        return found

    def radio_counters(self) -> dict[str, int]:
        """Device to the last counter of its encrypted advertisements that was stored."""
        return dict(self._db.execute("SELECT device, value FROM radio_counter ORDER BY device"))

    def known_frames(self, refs: tuple[str, ...]) -> frozenset[str]:
        """Those of the references under which a frame is stored."""
        return frozenset(ref for ref, (_, is_frame) in self._records(refs).items() if is_frame)

    def _records(self, refs: tuple[str, ...]) -> dict[str, tuple[int, bool]]:
        """(row id of its record, whether a frame is stored under it) of those references that are known."""
        rows = self._db.execute(
            "SELECT r.ref, r.id, f.record IS NOT NULL FROM record r LEFT JOIN frame f ON f.record = r.id "
            "WHERE r.ref IN (SELECT value FROM json_each(:refs))",
            {"refs": pack_list(refs)},
        )
        return {ref: (row, bool(is_frame)) for ref, row, is_frame in rows}

    def frame_contents(self, refs: tuple[str, ...]) -> dict[str, tuple[str, int | None, tuple[int | str, ...]]]:
        """Reference to (kind, uptime_ms, fields) of those of them under which a frame is stored."""
        rows = self._db.execute(
            "SELECT r.ref, f.kind, f.uptime_ms, f.fields FROM record r JOIN frame f ON f.record = r.id "
            "WHERE r.ref IN (SELECT value FROM json_each(:refs))",
            {"refs": pack_list(refs)},
        )
        return {ref: (kind, uptime_ms, unpack_fields(fields)) for ref, kind, uptime_ms, fields in rows}

    def frames_of_boot(self, device: str, boot: int, *, datings: tuple[str, ...]) -> tuple[DatedFrame, ...]:
        """Frames of one boot dated in one of these ways, by seq; a sealed one's time is final."""
        marks = ", ".join("?" for _ in datings)
        rows = self._db.execute(
            f"{FRAME_SQL} WHERE f.device = ? AND f.boot = ? AND f.dating IN ({marks}) AND f.sealed = 0 ORDER BY f.seq",
            (device, boot, *datings),
        )
        return tuple(frame_of(row) for row in rows)

    def has_bracketed(self, device: str, boot: int) -> bool:
        """Whether some record of a boot is only known to lie between two instants."""
        found = self._db.execute(
            "SELECT 1 FROM frame WHERE device = ? AND boot = ? AND dating = 'bracket' LIMIT 1", (device, boot)
        ).fetchone()
        return found is not None

    def uptime_up_to(self, device: str, boot: int, seq: int) -> int | None:
        """The stored uptime (ms) of the record with that number, else of the nearest lower one, or None."""
        row = self._db.execute(
            "SELECT uptime_ms FROM frame WHERE device = ? AND boot = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
            (device, boot, seq),
        ).fetchone()
        return None if row is None else int(row[0])

    def last_record(self) -> int:
        """The row id of the record row written last; whatever is written later has a higher one."""
        return int(self._db.execute("SELECT coalesce(max(id), 0) FROM record").fetchone()[0])

    def frames_after(self, record: int) -> tuple[DatedFrame, ...]:
        """Frames of devices (not imported ones) written after a `last_record`, as they were written."""
        rows = self._db.execute(
            f"{FRAME_SQL} WHERE f.record > :record AND f.boot IS NOT NULL ORDER BY f.record", {"record": record}
        )
        return tuple(frame_of(row) for row in rows)

    def bracketed_frames(self, device: str) -> tuple[DatedFrame, ...]:
        """Frames of a device whose time is only known between two instants, by boot and seq."""
        rows = self._db.execute(
            f"{FRAME_SQL} WHERE f.device = ? AND f.dating = 'bracket' AND f.boot IS NOT NULL AND f.sealed = 0 "
            "ORDER BY f.boot, f.seq",
            (device,),
        )
        return tuple(frame_of(row) for row in rows)

    def newest_before_boot(self, device: str, boot: int) -> int | None:
        """The newest instant known of a device's earlier boots, or None where there is none."""
        row = self._db.execute(
            "SELECT max(end_ms) FROM frame WHERE device = ? AND boot < ? AND dating <> 'bracket'", (device, boot)
        ).fetchone()
        return None if row[0] is None else int(row[0])

    def span_of_device(self, device: str) -> tuple[int, int] | None:
        """(first start, last end) of everything a device ever said, or None."""
        row = self._db.execute("SELECT min(start_ms), max(end_ms) FROM frame WHERE device = ?", (device,)).fetchone()
        return None if row[0] is None else (int(row[0]), int(row[1]))

    def signs_of_life(
        self, device: str, *, from_ms: int, to_ms: int, reach_ms: int, import_reach_ms: int
    ) -> tuple[tuple[int | None, int | None, int, int | None, int | None, bool], ...]:
        """(boot, seq, end_ms, earliest_ms, latest_ms, sealed) of every record that ended within
        ``reach_ms`` of ``[from_ms, to_ms]`` (``import_reach_ms`` for imported ones), by boot,
        seq and time. The bracket is None unless bracketed; an open bracket begins at -1.
        """
        return tuple(
            self._db.execute(
                "SELECT boot, seq, end_ms, iif(dating = 'bracket', coalesce(earliest_ms, -1), NULL), latest_ms, sealed "
                "FROM frame WHERE device = :device AND boot IS NOT NULL "
                "AND end_ms BETWEEN :from - :reach AND :to + :reach UNION ALL "
                "SELECT boot, seq, end_ms, NULL, NULL, sealed FROM frame WHERE boot IS NULL AND device IN "
                # What one pet does at a shared device shows that the device works for all of them.
                "(SELECT :device UNION SELECT whole FROM part WHERE device = :device UNION SELECT o.device "
                "FROM part o WHERE o.whole IN (SELECT :device UNION SELECT whole FROM part WHERE device = :device)) "
                "AND end_ms BETWEEN :from - :import_reach AND :to + :import_reach ORDER BY boot, seq, end_ms",
                {
                    "device": device,
                    "from": from_ms,
                    "to": to_ms,
                    "reach": reach_ms,
                    "import_reach": import_reach_ms,
                },
            )
        )

    def count_frames(
        self, device: str, kind: str, *, start_ms: int, end_ms: int, day_start_ms: int, day_end_ms: int
    ) -> tuple[int, int]:
        """(counting, set aside) frames of a kind that start in ``[start_ms, end_ms)`` and are not
        sealed. Those count in the day around it that are not set aside and not bracketed beyond
        the day.
        """
        row = self._db.execute(
            "SELECT count(*) FILTER (WHERE set_aside IS NULL "
            "AND (dating <> 'bracket' OR (earliest_ms >= :day_start AND latest_ms < :day_end))), count(set_aside) "
            f"FROM frame f WHERE device = :device AND kind = :kind {rare((kind,))} "
            "AND sealed = 0 AND start_ms >= :start AND start_ms < :end",
            {
                "device": device,
                "kind": kind,
                "start": start_ms,
                "end": end_ms,
                "day_start": day_start_ms,
                "day_end": day_end_ms,
            },
        ).fetchone()
        return int(row[0]), int(row[1])

    def counting_frames(
        self, device: str, kind: str, *, start_ms: int, end_ms: int, day_start_ms: int, day_end_ms: int
    ) -> tuple[tuple[int, tuple[int | str, ...]], ...]:
        """(start_ms, fields) of the frames that `count_frames` counts, by time and number."""
        rows = self._db.execute(
            f"SELECT start_ms, fields FROM frame f WHERE device = :device AND kind = :kind {rare((kind,))} "
            "AND set_aside IS NULL AND sealed = 0 AND start_ms >= :start AND start_ms < :end "
            "AND (dating <> 'bracket' OR (earliest_ms >= :day_start AND latest_ms < :day_end)) "
            "ORDER BY start_ms, boot, seq",
            {
                "device": device,
                "kind": kind,
                "start": start_ms,
                "end": end_ms,
                "day_start": day_start_ms,
                "day_end": day_end_ms,
            },
        )
        return tuple((at_ms, unpack_fields(fields)) for at_ms, fields in rows)

    def set_aside_reasons(self, device: str, kind: str, *, start_ms: int, end_ms: int) -> tuple[tuple[int, str], ...]:
        """(start_ms, reason) of frames of a kind set aside in ``[start_ms, end_ms)`` and not sealed, by time."""
        return tuple(
            self._db.execute(
                f"SELECT start_ms, set_aside FROM frame f WHERE device = ? AND kind = ? {rare((kind,))} "
                "AND set_aside IS NOT NULL AND sealed = 0 AND start_ms >= ? AND start_ms < ? ORDER BY start_ms, seq",
                (device, kind, start_ms, end_ms),
            )
        )


class DeliveryWrites(DeliveryReads):
    """Writes that ingest needs beside the transaction's own."""

    def save_boot(self, boot: BootRow) -> None:
        """What is now known of a boot's clock."""
        uptime_ms, offset_ms = (None, None) if boot.wall is None else boot.wall
        self._db.execute(
            "INSERT INTO boot (device, boot, anchors, wall_uptime_ms, wall_offset_ms) "
            "VALUES (:device, :boot, :anchors, :uptime_ms, :offset_ms) ON CONFLICT (device, boot) DO UPDATE SET "
            "anchors = excluded.anchors, wall_uptime_ms = excluded.wall_uptime_ms, "
            "wall_offset_ms = excluded.wall_offset_ms",
            {
                "device": boot.device,
                "boot": boot.boot,
                "anchors": pack_list(boot.anchors),
                "uptime_ms": uptime_ms,
                "offset_ms": offset_ms,
            },
        )

    def save_radio_counters(self, counters: dict[str, int]) -> None:
        """The counters of encrypted advertisements that this transaction stores; none ever goes back."""
        self._db.executemany(
            "INSERT INTO radio_counter (device, value) VALUES (?, ?) ON CONFLICT (device) DO UPDATE SET "
            "value = max(value, excluded.value)",
            sorted(counters.items()),
        )

    def _insert_frames(self, frames: Iterable[DatedFrame], *, kept: Mapping[str, int]) -> None:
        """Store frames that are not stored yet.

        ``kept`` are the row ids of references that outlived their frame, which is stored under
        them again; every other one is new and gets the next id, as SQLite would give it.
        """
        rows = [_values(frame) for frame in frames]
        next_id = self.last_record() + 1
        ids = {row[0]: number for number, row in enumerate((row for row in rows if row[0] not in kept), start=next_id)}
        insert_rows(self._db, "record", ("id", "ref", "kind"), [(row, ref, "event") for ref, row in ids.items()])
        ids.update(kept)
        insert_rows(self._db, "frame", _STORED_COLUMNS, [(ids[row[0]], *row[1:]) for row in rows])

    def redate_frames(self, frames: Iterable[DatedFrame]) -> None:
        """Give stored frames the time they have here; nothing else of them changes."""
        self._db.executemany(
            "UPDATE frame SET start_ms = :start_ms, end_ms = :end_ms, dating = :dating, earliest_ms = :earliest_ms, "
            "latest_ms = :latest_ms, crc = :crc WHERE record = (SELECT id FROM record WHERE ref = :ref)",
            [frame_row(frame) for frame in frames],
        )

    def set_received(self, frames: Iterable[DatedFrame]) -> None:
        """Give stored frames the instant of arrival they have here; nothing else of them changes."""
        self._db.executemany(
            "UPDATE frame SET received_ms = :received_ms, crc = :crc "
            "WHERE record = (SELECT id FROM record WHERE ref = :ref)",
            [frame_row(frame) for frame in frames],
        )

    def skip_dropped(self, device: str, boot: int, *, mark: int, lowest_held: int) -> int:
        """Move the mark over what the device's ring no longer holds.

        Parameters
        ----------
        mark : int
            The mark as it stands; 0 before the first.
        lowest_held : int
            The lowest seq the device still holds, by its own hello.

        Returns
        -------
        int
            How many records below ``lowest_held`` never arrived: the device dropped them.
        """
        if lowest_held - 1 <= mark:
            return 0
        where = {"device": device, "boot": boot, "above": mark, "below": lowest_held}
        (arrived,) = self._db.execute(
            "SELECT count(*) FROM ("
            "SELECT seq FROM frame WHERE device = :device AND boot = :boot AND seq > :above AND seq < :below UNION "
            "SELECT seq FROM dead_letter WHERE device = :device AND boot = :boot AND seq > :above AND seq < :below)",
            where,
        ).fetchone()
        self._db.execute(
            "INSERT INTO mark (device, boot, seq) VALUES (:device, :boot, :below - 1) "
            "ON CONFLICT (device, boot) DO UPDATE SET seq = max(seq, excluded.seq)",
            where,
        )
        return lowest_held - 1 - mark - int(arrived)
