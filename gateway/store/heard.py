"""The SQL behind other people's devices: messages byte for byte, and what is known of their senders.

Two bases, one for readers and one for the writer. Never made on their own.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from gateway.model import RecordRef
from gateway.store.blobs import pack_list
from gateway.store.checksums import row_crc
from gateway.store.deliveries import FRAME_SQL, frame_of, frame_row
from gateway.stored import HeardRow, Origin, SourceRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gateway.stored import DatedFrame

__all__ = ["HeardReads", "HeardWrites"]

_HEARD = (
    "SELECT h.id, h.profile, h.version, h.transport, h.via, h.source, h.key, h.first_ms, h.received_ms, h.signal, "
    "h.within, h.raw FROM heard h "
)
_STRANGER = "NOT EXISTS (SELECT 1 FROM device d WHERE d.id = s.id OR d.id = s.device)"
_SOURCE = "SELECT id, profile, kind, device, first_ms, last_ms, replaces, answered_ms FROM source "


def _heard_row(row: HeardRow) -> dict[str, object]:
    """A message's columns by name, its CRC-32 among them; in the order that `CHECKED` reads them."""
    values: dict[str, object] = {
        "profile": row.profile,
        "version": row.version,
        "transport": row.transport,
        "via": row.via,
        "source": row.source,
        "key": row.key,
        "first_ms": row.first_ms,
        "received_ms": row.received_ms,
        "signal": row.signal,
        "raw": row.raw,
    }
    values["crc"] = row_crc(tuple(values.values()))
    values["within"] = row.within
    return values


class HeardReads:
    """Reads of heard messages, sources, parts and keys."""

    _db: sqlite3.Connection

    def heard_again(self, source: str, profiles: tuple[str, ...], key: str, *, since_ms: int) -> HeardRow | None:
        """The message of these profiles stored under a key and first heard at or after ``since_ms``, the latest."""
        row = self._db.execute(
            f"{_HEARD} WHERE h.source = :source AND h.profile IN (SELECT value FROM json_each(:profiles)) "
            "AND h.key = :key AND h.first_ms >= :since ORDER BY h.first_ms DESC LIMIT 1",
            {"source": source, "profiles": pack_list(profiles), "key": key, "since": since_ms},
        ).fetchone()
        return None if row is None else HeardRow(*row)

    def heard_messages(self, profile: str) -> Iterator[HeardRow]:
        """The stored messages of a profile with their bytes, in the order they came."""
        for row in self._db.execute(
            f"{_HEARD} WHERE h.profile = ? AND h.raw IS NOT NULL ORDER BY h.first_ms, h.id", (profile,)
        ):
            yield HeardRow(*row)

    def heard_at(self, profiles: Iterable[str], at_ms: int) -> tuple[HeardRow, ...]:
        """The stored messages of some profiles, with their bytes, that were first heard at an instant."""
        rows = self._db.execute(
            f"{_HEARD} WHERE h.profile IN (SELECT value FROM json_each(:profiles)) AND h.first_ms = :at "
            "AND h.raw IS NOT NULL ORDER BY h.id",
            {"profiles": json.dumps(sorted(profiles)), "at": at_ms},
        )
        return tuple(HeardRow(*row) for row in rows)

    def heard_between(self, from_ms: int, to_ms: int, *, since_record: int) -> tuple[HeardRow, ...]:
        """Messages received in ``[from_ms, to_ms]`` whose rows were all written after a `last_record`."""
        rows = self._db.execute(
            f"{_HEARD} WHERE h.received_ms BETWEEN :from AND :to AND NOT EXISTS "
            "(SELECT 1 FROM derived d WHERE d.heard = h.id AND d.record <= :since) ORDER BY h.id",
            {"from": from_ms, "to": to_ms, "since": since_record},
        ).fetchall()
        return tuple(HeardRow(*row) for row in rows)

    def frames_from(self, heard: int) -> tuple[DatedFrame, ...]:
        """The rows made from one message, by reference."""
        rows = self._db.execute(
            f"{FRAME_SQL} JOIN derived d ON d.record = f.record WHERE d.heard = ? ORDER BY r.ref", (heard,)
        )
        return tuple(frame_of(row) for row in rows)

    def heard_items(self, profile: str) -> tuple[HeardRow, ...]:
        """Every stored message of a profile and every item within one, without bytes, by number."""
        rows = self._db.execute(f"{_HEARD} WHERE h.profile = ? ORDER BY h.id", (profile,))
        return tuple(HeardRow(*(*row[:11], None)) for row in rows)

    def links_of(self, profile: str) -> dict[str, int]:
        """Reference of every row made from a profile's messages, with the number of its message."""
        return dict(
            self._db.execute(
                "SELECT r.ref, d.heard FROM derived d JOIN record r ON r.id = d.record JOIN heard h ON h.id = d.heard "
                "WHERE h.profile = ?",
                (profile,),
            )
        )

    def heard_purged_ms(self, profiles: tuple[str, ...]) -> int:
        """Up to when messages of these profiles may be gone; 0 where all are there."""
        row = self._db.execute(
            "SELECT max(CAST(value AS INTEGER)) FROM meta WHERE key IN "
            "(SELECT 'heard_purged.' || value FROM json_each(:profiles))",
            {"profiles": pack_list(("", *profiles))},
        ).fetchone()
        return 0 if row[0] is None else int(row[0])

    def heard_versions(self) -> tuple[tuple[str, int, int], ...]:
        """(profile, version, messages) of everything heard, by profile and version."""
        return tuple(
            self._db.execute(
                "SELECT profile, version, count(*) FROM heard WHERE raw IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"
            )
        )

    def origin(self, ref: RecordRef) -> Origin | None:
        """From which message a row was made, or None for a row of Wire 1 or an import."""
        row = self._db.execute(
            "SELECT h.profile, h.version, h.transport, h.via, h.source, h.signal, coalesce(h.raw, w.raw) "
            "FROM record r JOIN derived d ON d.record = r.id JOIN heard h ON h.id = d.heard "
            "LEFT JOIN heard w ON w.id = h.within WHERE r.ref = ?",
            (ref.text,),
        ).fetchone()
        return None if row is None else Origin(*row)

    def derived_frames(self, profile: str) -> dict[str, DatedFrame]:
        """The rows made from a profile's messages, by reference."""
        rows = self._db.execute(
            f"{FRAME_SQL} JOIN derived d ON d.record = f.record JOIN heard h ON h.id = d.heard WHERE h.profile = ?",
            (profile,),
        )
        return {frame.ref.text: frame for frame in map(frame_of, rows)}

    def profile_state(self, source: str, profile: str) -> dict[str, object]:
        """What a profile remembers of a sender; empty before its first message."""
        row = self._db.execute(
            "SELECT state FROM profile_state WHERE source = ? AND profile = ?", (source, profile)
        ).fetchone()
        return {} if row is None else dict(json.loads(row[0]))

    def source(self, source: str) -> SourceRow | None:
        """What is known of a sender, or None for one never heard."""
        row = self._db.execute(f"{_SOURCE} WHERE id = ?", (source,)).fetchone()
        return None if row is None else SourceRow(*row)

    def count_strangers(self) -> int:
        """How many senders are of no device of the household."""
        return int(self._db.execute(f"SELECT count(*) FROM source s WHERE {_STRANGER}").fetchone()[0])

    def sources(self) -> tuple[SourceRow, ...]:
        """Every sender ever heard, by id."""
        return tuple(SourceRow(*row) for row in self._db.execute(f"{_SOURCE} ORDER BY id"))

    def parts(self, whole: str) -> tuple[tuple[str, str], ...]:
        """(device, mark) of the parts of a shared device, by device."""
        return tuple(self._db.execute("SELECT device, mark FROM part WHERE whole = ? ORDER BY device", (whole,)))

    def parts_marked(self, mark: str) -> tuple[str, ...]:
        """The parts of any device that are told apart by this mark."""
        return tuple(
            row[0] for row in self._db.execute("SELECT device FROM part WHERE mark = ? ORDER BY device", (mark,))
        )

    def whole_of(self, device: str) -> str | None:
        """The shared device a part belongs to, or None."""
        row = self._db.execute("SELECT whole FROM part WHERE device = ?", (device,)).fetchone()
        return None if row is None else str(row[0])

    def radio_keys(self) -> tuple[tuple[str, bytes | None, bytes | None], ...]:
        """(device, identity resolving key, BTHome key) of the devices that have one, by device."""
        return tuple(self._db.execute("SELECT device, irk, bthome FROM device_key ORDER BY device"))

    def last_end_before(self, devices: tuple[str, ...], *, before_ms: int) -> int | None:
        """When the latest event of these devices that ended before an instant ended."""
        row = self._db.execute(
            "SELECT max(e) FROM (SELECT (SELECT max(end_ms) FROM frame WHERE device = d.value AND end_ms < :before) "
            "AS e FROM json_each(:devices) d)",
            {"devices": pack_list(devices), "before": before_ms},
        ).fetchone()
        return None if row[0] is None else int(row[0])


class HeardWrites(HeardReads):
    """Writes of heard messages, sources, parts and keys."""

    def add_heard(self, row: HeardRow) -> int:
        """Keep a message (or an item within one); returns its number."""
        added = self._db.execute(
            "INSERT INTO heard (profile, version, transport, via, source, key, first_ms, received_ms, signal, within, "
            "raw, crc) VALUES (:profile, :version, :transport, :via, :source, :key, :first_ms, :received_ms, :signal, "
            ":within, :raw, :crc)",
            _heard_row(row),
        )
        return int(added.lastrowid or 0)

    def set_heard(self, row: HeardRow) -> None:
        """Give a stored message the best signal, the way it came by, and the arrival it has here."""
        self._db.execute(
            "UPDATE heard SET version = :version, via = :via, signal = :signal, received_ms = :received_ms, crc = :crc "
            "WHERE id = :id",
            {**_heard_row(row), "id": row.id},
        )

    def add_derived(self, frames: Iterable[tuple[DatedFrame, int]]) -> None:
        """Say from which message stored rows were made."""
        self._db.executemany(
            "INSERT INTO derived (record, heard) SELECT id, :heard FROM record WHERE ref = :ref "
            "ON CONFLICT (record) DO UPDATE SET heard = excluded.heard",
            [{"ref": frame.ref.text, "heard": heard} for frame, heard in frames],
        )

    def rewrite_frames(self, frames: Iterable[DatedFrame]) -> None:
        """Give stored rows the content they have here; their references stay, and so do citations,
        which are marked restated.
        """
        rows = [frame_row(frame) for frame in frames]
        self._db.executemany(
            "UPDATE frame SET device = :device, kind = :kind, received_ms = :received_ms, start_ms = :start_ms, "
            "end_ms = :end_ms, dating = :dating, earliest_ms = :earliest_ms, latest_ms = :latest_ms, "
            "amount = :amount, unit = :unit, object = :object, fields = :fields, set_aside = :set_aside, crc = :crc "
            "WHERE record = (SELECT id FROM record WHERE ref = :ref)",
            rows,
        )
        self._db.executemany(
            "UPDATE answer_cites SET restated = 1 WHERE record = (SELECT id FROM record WHERE ref = :ref)", rows
        )

    def drop_frames(self, refs: Iterable[RecordRef], *, citing: tuple[str, ...]) -> tuple[str, ...]:
        """Delete rows that nobody cites; returns the references of those that are cited and stay."""
        kept = []
        uncited = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} c WHERE c.record = :record)" for table in citing)
        for ref in refs:
            found = self._db.execute("SELECT id FROM record WHERE ref = ?", (ref.text,)).fetchone()
            free = found and self._db.execute(f"SELECT {uncited}", {"record": found[0]}).fetchone()[0]
            if not free:
                kept.append(ref.text)
                continue
            for table, column in (("derived", "record"), ("frame", "record"), ("record", "id")):
                self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (found[0],))
        return tuple(kept)

    def forget_heard(self, profile: str, family: str) -> None:
        """Take a profile's messages and states away, to be derived anew; its rows stay, unlinked."""
        self._db.execute("DELETE FROM derived WHERE heard IN (SELECT id FROM heard WHERE profile = ?)", (profile,))
        self._db.execute("DELETE FROM heard WHERE profile = ? AND within IS NOT NULL", (profile,))
        self._db.execute("DELETE FROM heard WHERE profile = ?", (profile,))
        self._db.execute("DELETE FROM profile_state WHERE profile = ?", (family,))

    def save_profile_state(self, source: str, profile: str, state: dict[str, object]) -> None:
        """What a profile remembers of a sender from now on."""
        self._db.execute(
            "INSERT INTO profile_state (source, profile, state) VALUES (?, ?, ?) "
            "ON CONFLICT (source, profile) DO UPDATE SET state = excluded.state",
            (source, profile, json.dumps(state, sort_keys=True, separators=(",", ":"))),
        )

    def save_source(self, row: SourceRow) -> None:
        """What is now known of a sender."""
        self._db.execute(
            "INSERT INTO source (id, profile, kind, device, first_ms, last_ms, replaces, answered_ms) "
            "VALUES (:id, :profile, :kind, :device, :first_ms, :last_ms, :replaces, :answered_ms) "
            "ON CONFLICT (id) DO UPDATE SET profile = excluded.profile, kind = excluded.kind, "
            "device = excluded.device, first_ms = excluded.first_ms, last_ms = excluded.last_ms, "
            "replaces = excluded.replaces, answered_ms = excluded.answered_ms",
            {name: getattr(row, name) for name in SourceRow.__slots__},
        )

    def forget_strangers(self, *, before_ms: int) -> int:
        """Forget senders of no device that fell silent before an instant, and what profiles remember of
        them; returns how many. What they said stays, and one the owner was asked about stays too.
        """
        gone = [
            (row[0],)
            for row in self._db.execute(
                f"SELECT s.id FROM source s WHERE {_STRANGER} AND s.last_ms < ? AND s.replaces IS NULL "
                "AND s.answered_ms IS NULL AND s.device = s.id",
                (before_ms,),
            )
        ]
        self._db.executemany("DELETE FROM profile_state WHERE source = ?", gone)
        self._db.executemany("DELETE FROM source WHERE id = ?", gone)
        return len(gone)

    def save_part(self, device: str, whole: str, mark: str) -> None:
        """A part of a shared device, told apart by its mark."""
        self._db.execute(
            "INSERT INTO part (device, whole, mark) VALUES (?, ?, ?) ON CONFLICT (device) DO UPDATE SET "
            "whole = excluded.whole, mark = excluded.mark",
            (device, whole, mark),
        )

    def save_radio_key(self, device: str, *, irk: bytes | None, bthome: bytes | None) -> None:
        """A wearable's keys; one that is not given stays as it is."""
        self._db.execute(
            "INSERT INTO device_key (device, irk, bthome) VALUES (?, ?, ?) ON CONFLICT (device) DO UPDATE SET "
            "irk = coalesce(excluded.irk, irk), bthome = coalesce(excluded.bthome, bthome)",
            (device, irk, bthome),
        )

    def rehome(self, source: str, device: str) -> int:
        """Let every row a sender made belong to a device; returns how many did not before."""
        own = "SELECT d.record FROM derived d JOIN heard h ON h.id = d.heard WHERE h.source = :source"
        rows = [frame_of(row) for row in self._db.execute(f"{FRAME_SQL} WHERE f.record IN ({own})", {"source": source})]
        changed = [frame_row(frame) | {"device": device} for frame in rows if frame.device != device]
        for row in changed:
            row.pop("crc")
            row["crc"] = row_crc(tuple(row.values()))
        self._db.executemany(
            "UPDATE frame SET device = :device, crc = :crc WHERE record = (SELECT id FROM record WHERE ref = :ref)",
            changed,
        )
        return len(changed)

    def purge_heard(self, *, before_ms: int, most: int, profile: str | None = None) -> int:
        """Delete messages (of a profile) first heard before an instant that no row was made from; returns
        how many. Rows of that time can then not be derived again, which `heard_purged_ms` tells.
        """
        gone = self._db.execute(
            "DELETE FROM heard WHERE id IN (SELECT h.id FROM heard h WHERE h.first_ms < :before "
            "AND (:profile IS NULL OR h.profile = :profile) "
            "AND NOT EXISTS (SELECT 1 FROM derived d WHERE d.heard = h.id) "
            "AND NOT EXISTS (SELECT 1 FROM heard w WHERE w.within = h.id) LIMIT :most)",
            {"before": before_ms, "most": most, "profile": profile},
        ).rowcount
        if gone:
            self._db.execute(
                "INSERT INTO meta (key, value) VALUES ('heard_purged.' || :profile, :before) ON CONFLICT (key) "
                "DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))",
                {"profile": profile or "", "before": str(before_ms)},
            )
        return gone
