"""The SQL behind forgetting: what a source reaches, and taking it out of every table.

What an answer cites keeps its row in ``record`` and gets a tombstone, so that no citation
dangles: it opens to what it was and when it was forgotten, and to nothing of its content. All
else goes. The free pages are overwritten with zeros (``secure_delete``).

Two bases, one for readers and one for the writer, so that `Reader` and `Transaction` stay
one class each for their callers. Never made on their own.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from gateway.model import RecordRef
from gateway.store.blobs import pack_list
from gateway.stored import Reach, Tombstone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.stored import Doomed

__all__ = ["ForgetReads", "ForgetWrites"]

_DOOMED = (
    "SELECT record FROM frame WHERE device IN (SELECT value FROM json_each(:devices)) UNION "
    "SELECT record FROM text_record WHERE document IN (SELECT value FROM json_each(:documents)) "
    "OR pet IN (SELECT value FROM json_each(:pets)) UNION "
    "SELECT record FROM day WHERE series IN (SELECT value FROM json_each(:series)) UNION "
    "SELECT value FROM json_each(:sealed) UNION "
    "SELECT t.record FROM text_record t JOIN record r ON r.id = t.record "
    "WHERE r.ref IN (SELECT value FROM json_each(:texts))"
)
"""Record rows of which nothing stays."""
_BARED = (
    "SELECT e.record FROM edge e WHERE e.tail IN (SELECT id FROM vertex WHERE name IN (SELECT value FROM "
    "json_each(:vertices))) UNION SELECT e.record FROM edge e WHERE e.head IN (SELECT id FROM vertex WHERE name IN "
    "(SELECT value FROM json_each(:vertices)))"
)
"""Edges with an end of which nothing stays."""
_PIECES = (
    f"SELECT edge, record, witness FROM evidence WHERE record IN ({_DOOMED}) "
    "UNION SELECT edge, record, witness FROM evidence WHERE witness IN (SELECT value FROM json_each(:witnesses)) "
    f"UNION SELECT edge, record, witness FROM evidence WHERE edge IN ({_BARED})"
)
"""Evidence that goes: of a record that goes, of a device that goes, or for an edge that does."""
_EDGES = (
    f"WITH piece AS ({_PIECES}), counted AS (SELECT edge, count(*) AS n FROM piece GROUP BY edge) "
    "SELECT c.edge FROM counted c WHERE c.n = (SELECT count(*) FROM evidence v WHERE v.edge = c.edge) "
    f"UNION {_BARED}"
)
"""Edges that are left without evidence, and those with an end of which nothing stays."""
_NAMED_BY_FACTS = "substr(name, 1, instr(name, ':')) IN ('breed:', 'food:', 'place:', 'visitor:')"
"""Things whose words are what a device, the household or the log called them: they are named anew."""
_STORED = " OR ".join(
    f"EXISTS (SELECT 1 FROM {table} s WHERE s.record = c.id)" for table in ("frame", "day", "text_record", "edge")
)
"""Whether what the record row ``c`` names is stored."""


def _values(doomed: Doomed) -> dict[str, str]:
    lists: dict[str, tuple[str | int, ...]] = {
        "devices": doomed.devices,
        "letters": (*doomed.devices, *doomed.senders),
        "documents": doomed.documents,
        "pets": doomed.pets,
        "series": doomed.series,
        "texts": doomed.texts,
        "days": doomed.days,
        "sealed": doomed.sealed,
        "witnesses": tuple(f"device:{device}" for device in doomed.devices),
        "vertices": (
            *(f"device:{device}" for device in doomed.devices),
            *(f"pet:{pet}" for pet in doomed.pets),
            *(f"series:{series}" for series in doomed.series),
        ),
    }
    return {name: pack_list(values) for name, values in lists.items()}


class ForgetReads:
    """What was forgotten, and what forgetting a source would reach."""

    _db: sqlite3.Connection

    def forgotten(self) -> dict[str, int]:
        """Every sender whose messages are not taken any more, with the instant since when."""
        return dict(self._db.execute("SELECT sender, forgotten_ms FROM forgotten ORDER BY sender"))

    def tombstone(self, ref: RecordRef) -> Tombstone | None:
        """What a record that is cited and not stored any more belonged to, or None."""
        row = self._db.execute(
            "SELECT t.what, t.forgotten_ms FROM tombstone t JOIN record r ON r.id = t.record WHERE r.ref = ?",
            (ref.text,),
        ).fetchone()
        return None if row is None else Tombstone(ref, row[0], row[1])

    def knows(self, ref: RecordRef) -> bool:
        """Whether what a reference names is stored, not its tombstone alone."""
        row = self._db.execute(f"SELECT 1 FROM record c WHERE c.ref = ? AND ({_STORED})", (ref.text,)).fetchone()
        return row is not None

    def forgotten_of(self, answer: int) -> tuple[Tombstone, ...]:
        """What an answer cites of sources that were forgotten since, by reference.

        What came again (a guide that was imported again) is not among it.
        """
        rows = self._db.execute(
            "SELECT c.ref, t.what, t.forgotten_ms FROM answer_cites a JOIN tombstone t ON t.record = a.record "
            f"JOIN record c ON c.id = a.record WHERE a.answer = :answer AND NOT ({_STORED}) ORDER BY c.ref",
            {"answer": answer},
        )
        return tuple(Tombstone(RecordRef(ref), what, at_ms) for ref, what, at_ms in rows)

    def senders_of(self, devices: tuple[str, ...]) -> tuple[str, ...]:
        """The senders whose rows are these devices'."""
        rows = self._db.execute(
            "SELECT id FROM source WHERE device IN (SELECT value FROM json_each(?)) ORDER BY id", (pack_list(devices),)
        )
        return tuple(name for (name,) in rows)

    def unread_devices(self) -> tuple[str, ...]:
        """Every name under which something came that could not be read."""
        return tuple(name for (name,) in self._db.execute("SELECT DISTINCT device FROM dead_letter ORDER BY device"))

    def days_within(self, series: str, start_ms: int, end_ms: int) -> tuple[tuple[int, str, bool], ...]:
        """(record row, date, sealed) of a series' days that overlap ``[start_ms, end_ms)``, by date."""
        rows = self._db.execute(
            "SELECT record, date, late IS NOT NULL FROM day WHERE series = :series AND end_ms > :start "
            "AND start_ms < :end ORDER BY date",
            {"series": series, "start": start_ms, "end": end_ms},
        )
        return tuple((record, date, bool(sealed)) for record, date, sealed in rows)

    def notes_of(self, pet: str) -> tuple[str, ...]:
        """The documents of which every text is this pet's."""
        rows = self._db.execute(
            "SELECT document FROM text_record WHERE document IS NOT NULL GROUP BY document "
            "HAVING count(*) = count(*) FILTER (WHERE pet = ?) ORDER BY document",
            (pet,),
        )
        return tuple(name for (name,) in rows)

    def dated_links_of(self, document: str) -> tuple[int, ...]:
        """The instants at which links begin or end that a document speaks of."""
        rows = self._db.execute(
            "SELECT e.valid_from_ms FROM text_record t JOIN evidence v ON v.record = t.record "
            "JOIN edge e ON e.record = v.edge WHERE t.document = :document AND e.valid_from_ms IS NOT NULL UNION "
            "SELECT e.valid_to_ms FROM text_record t JOIN evidence v ON v.record = t.record "
            "JOIN edge e ON e.record = v.edge WHERE t.document = :document AND e.valid_to_ms IS NOT NULL ORDER BY 1",
            {"document": document},
        )
        return tuple(at_ms for (at_ms,) in rows)

    def learned_since(self, first: str) -> tuple[str, ...]:
        """The learned days from a date on."""
        rows = self._db.execute("SELECT as_of FROM learned WHERE as_of >= ? ORDER BY as_of", (first,))
        return tuple(as_of for (as_of,) in rows)

    def lonely_vertices(self) -> frozenset[int]:
        """Vertex rows no edge ends at."""
        rows = self._db.execute(
            "SELECT v.id FROM vertex v WHERE NOT EXISTS (SELECT 1 FROM edge e WHERE e.tail = v.id) "
            "AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.head = v.id)"
        )
        return frozenset(row for (row,) in rows)

    def reach(self, doomed: Doomed) -> Reach:
        """What forgetting would take, counted. A reader can ask it: nothing is changed."""
        values = _values(doomed)

        def count(sql: str) -> int:
            return int(self._db.execute(f"SELECT count(*) FROM ({sql})", values).fetchone()[0])

        return Reach(
            events=count("SELECT 1 FROM frame WHERE device IN (SELECT value FROM json_each(:devices))"),
            dead_letters=count("SELECT 1 FROM dead_letter WHERE device IN (SELECT value FROM json_each(:letters))"),
            days=count(
                "SELECT record FROM day WHERE series IN (SELECT value FROM json_each(:series)) "
                "UNION SELECT value FROM json_each(:days)"
            ),
            texts=count(f"SELECT record FROM text_record WHERE record IN ({_DOOMED})"),
            evidence=count(_PIECES),
            edges=count(_EDGES),
            answers=count(
                f"SELECT DISTINCT answer FROM answer_cites WHERE record IN ({_DOOMED} "
                f"UNION SELECT value FROM json_each(:days) UNION SELECT edge FROM ({_EDGES}))"
            ),
        )


class ForgetWrites(ForgetReads):
    """Takes a source out, table by table, in the caller's transaction."""

    _household_changed: bool

    def forget_rows(self, doomed: Doomed, *, what: str, at_ms: int) -> None:
        """Take a source's rows, texts, days, evidence and the edges that stand on nothing else.

        What follows from what is left (days of other devices, derived edges, passes) is the
        caller's to make anew.

        Parameters
        ----------
        doomed : Doomed
        what : str
            What a tombstone says it was: "the device tracker-max".
        at_ms : int
            When the owner asked for it.
        """
        self._household_changed = True
        self._db.execute("PRAGMA secure_delete = ON")
        values = _values(doomed)
        self._raise_marks(values)
        records = [row for (row,) in self._db.execute(_DOOMED, values)]
        edges = [row for (row,) in self._db.execute(_EDGES, values)]
        pieces = self._db.execute(_PIECES, values).fetchall()
        self._db.executemany("DELETE FROM evidence WHERE edge = ? AND record = ? AND witness = ?", pieces)
        self._db.executemany(
            f"UPDATE vertex SET label = NULL WHERE {_NAMED_BY_FACTS} "
            "AND id IN (SELECT tail FROM edge WHERE record = :edge UNION SELECT head FROM edge WHERE record = :edge)",
            [{"edge": edge} for edge in edges],
        )
        self.bury(edges, what=what, at_ms=at_ms)
        self.bury(records, what=what, at_ms=at_ms)
        self._forget_devices(values, doomed, at_ms)
        self._forget_pets(values, doomed)
        self._db.execute("DELETE FROM document WHERE id IN (SELECT value FROM json_each(:documents))", values)

    def bury(self, records: Iterable[int], *, what: str, at_ms: int) -> None:
        """Take record rows with what stands under them; those an answer cites stay, with a tombstone."""
        rows = [{"id": record, "what": what, "at": at_ms} for record in records]
        for sql in (
            (
                "INSERT INTO tombstone (record, what, forgotten_ms) SELECT :id, :what, :at WHERE EXISTS "
                "(SELECT 1 FROM answer_cites WHERE record = :id) ON CONFLICT (record) DO UPDATE SET "
                "what = excluded.what, forgotten_ms = excluded.forgotten_ms"
            ),
            "DELETE FROM floor_notice WHERE id IN (SELECT notice FROM floor_cites WHERE record = :id)",
            "DELETE FROM evidence WHERE record = :id",
            "DELETE FROM wall WHERE edge = (SELECT ref FROM record WHERE id = :id)",
            *(
                f"DELETE FROM {table} WHERE record = :id"
                for table in ("derived", "frame", "text_record", "sealed_day", "day", "edge")
            ),
            "DELETE FROM record WHERE id = :id AND NOT EXISTS (SELECT 1 FROM tombstone WHERE record = :id)",
        ):
            self._db.executemany(sql, rows)

    def _raise_marks(self, values: dict[str, str]) -> None:
        """What a device's ring still holds of what is taken is known when it comes again."""
        self._db.execute(
            "INSERT INTO mark (device, boot, seq, purged) SELECT device, boot, max(seq), max(seq) FROM ("
            "SELECT device, boot, seq FROM frame UNION ALL SELECT device, boot, seq FROM dead_letter "
            "UNION ALL SELECT device, boot, seq FROM mark) "
            "WHERE boot IS NOT NULL AND device IN (SELECT value FROM json_each(:devices)) GROUP BY device, boot "
            "ON CONFLICT (device, boot) DO UPDATE SET seq = max(seq, excluded.seq), "
            "purged = max(purged, excluded.purged)",
            values,
        )

    def _forget_devices(self, values: dict[str, str], doomed: Doomed, at_ms: int) -> None:
        device, sender = "(SELECT value FROM json_each(:devices))", "(SELECT value FROM json_each(:letters))"
        for sql in (
            f"DELETE FROM dead_letter WHERE device IN {sender}",
            f"DELETE FROM boot WHERE device IN {device}",
            f"DELETE FROM device_key WHERE device IN {device}",
            f"DELETE FROM radio_counter WHERE device IN {sender}",
            f"DELETE FROM profile_state WHERE source IN {sender}",
            f"DELETE FROM part WHERE device IN {device} OR whole IN {device}",
            f"DELETE FROM floor_notice WHERE device IN {device}",
            f"UPDATE source SET replaces = NULL WHERE replaces IN {device}",
            f"DELETE FROM source WHERE id IN {sender}",
            f"DELETE FROM binding WHERE device IN {device}",
            f"DELETE FROM device WHERE id IN {device}",
            *(  # the items within a message first; bytes that hold another sender's rows too stay
                f"DELETE FROM heard WHERE source IN {sender} AND {which} "
                "AND NOT EXISTS (SELECT 1 FROM derived d WHERE d.heard = heard.id) "
                "AND NOT EXISTS (SELECT 1 FROM heard w WHERE w.within = heard.id)"
                for which in ("within IS NOT NULL", "within IS NULL")
            ),
        ):
            self._db.execute(sql, values)
        for name in (*doomed.devices, *doomed.senders):
            prefix = f"event:{name}/"
            self._db.execute(
                "DELETE FROM purged_import WHERE substr(ref, 1, :length) = :prefix",
                {"length": len(prefix), "prefix": prefix},
            )
            self._db.execute(
                "INSERT INTO forgotten (sender, device, forgotten_ms) VALUES (:sender, :device, :at) "
                "ON CONFLICT (sender) DO UPDATE SET device = excluded.device, forgotten_ms = excluded.forgotten_ms",
                {"sender": name, "device": doomed.devices[0], "at": at_ms},
            )

    def _forget_pets(self, values: dict[str, str], doomed: Doomed) -> None:
        pet, series = "(SELECT value FROM json_each(:pets))", "(SELECT value FROM json_each(:series))"
        for sql in (
            # A device they shared served these pets together: what it weighed is no other pet's own.
            (
                "DELETE FROM binding WHERE (device, valid_from_ms) IN "
                f"(SELECT device, valid_from_ms FROM binding WHERE pet IN {pet})"
            ),
            f"DELETE FROM floor_notice WHERE pet IN {pet}",
            f"DELETE FROM pet_status WHERE pet IN {pet}",
            f"DELETE FROM pet WHERE id IN {pet}",
            f"DELETE FROM correlation WHERE a IN {series} OR b IN {series}",
        ):
            self._db.execute(sql, values)
        for name in doomed.pets:
            self._db.execute(
                "DELETE FROM wall WHERE substr(hypothesis, -length(:end)) = :end "
                "OR substr(hypothesis, 1, length(:begin)) = :begin",
                {"end": f"@pet:{name}", "begin": f"pet:{name}>"},
            )
        self.drop_series(doomed.series)

    def drop_series(self, series: Iterable[str]) -> None:
        """Take series without days, with all that was found in them."""
        for name in series:
            empty = "AND NOT EXISTS (SELECT 1 FROM day WHERE series = :name)"
            for table in ("finding", "followed", "answer_verdict"):
                self._db.execute(f"DELETE FROM {table} WHERE series = :name {empty}", {"name": name})
            self._db.execute(f"DELETE FROM series WHERE id = :name {empty}", {"name": name})

    def drop_empty_days(self, records: Iterable[int], *, what: str, at_ms: int) -> None:
        """Take those of these day rows that say nothing any more: nobody was heard, nothing counted."""
        empty = []
        for record in records:
            row = self._db.execute(
                "SELECT n, total, covered_ms, set_aside, sums FROM day WHERE record = ?", (record,)
            ).fetchone()
            if row is not None and row[:4] == (0, 0, 0, None) and not any(row[4]):
                empty.append(record)
        self.bury(empty, what=what, at_ms=at_ms)

    def forget_product(self, code: str) -> None:
        """A product of which no document is left: a food only it named goes, another loses its code."""
        self._household_changed = True
        values = {"code": code, "vertex": f"product:{code}"}
        if self._db.execute("SELECT 1 FROM document WHERE code = :code", values).fetchone() is None:
            self._db.execute("DELETE FROM food WHERE product = :code AND owned = 0", values)
            self._db.execute("UPDATE food SET product = NULL WHERE product = :code", values)
            self._db.execute(
                "DELETE FROM vertex WHERE name = :vertex AND NOT EXISTS (SELECT 1 FROM edge WHERE tail = vertex.id) "
                "AND NOT EXISTS (SELECT 1 FROM edge WHERE head = vertex.id)",
                values,
            )

    def drop_passes(self, *, first_ms: int, what: str, at_ms: int) -> None:
        """Take what the passes from an instant on made of the graph; they run again on what is left."""
        made = "(SELECT record FROM edge WHERE relation IN ('correlates_with', 'followed_by'))"
        told = "(SELECT record FROM text_record WHERE kind = 'followed' OR (kind = 'correlation' AND at_ms > :from))"
        rows = self._db.execute(f"SELECT record FROM {made} UNION SELECT record FROM {told}", {"from": first_ms})
        self.bury([row for (row,) in rows.fetchall()], what=what, at_ms=at_ms)

    def sweep(self, lonely: frozenset[int], *, what: str, at_ms: int) -> None:
        """Last of all: vertices that lost their last edge go, and the compact graph, which holds their
        names; cited edges that went get their tombstone.

        ``lonely`` are the vertices that had none before.
        """
        gone = self.lonely_vertices() - lonely
        self._db.executemany("DELETE FROM vertex WHERE id = ?", [(row,) for row in gone])
        rows = self._db.execute(
            "SELECT DISTINCT c.record FROM answer_cites c JOIN record r ON r.id = c.record WHERE r.kind = 'edge' "
            "AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.record = c.record) "
            "AND NOT EXISTS (SELECT 1 FROM tombstone t WHERE t.record = c.record)"
        )
        self.bury([row for (row,) in rows.fetchall()], what=what, at_ms=at_ms)
        for table in ("adjacency", "adjacency_epoch", "adjacency_change"):
            self._db.execute(f"DELETE FROM {table}")
        self._db.execute("PRAGMA secure_delete = OFF")

    def remember(self, device: str) -> None:
        """A device that is entered again is heard again."""
        self._db.execute("DELETE FROM forgotten WHERE sender = :device OR device = :device", {"device": device})
