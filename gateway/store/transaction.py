"""What can be written, inside one transaction of the one writer.

Every method is idempotent by natural key: the same fact written twice is one row. Methods
return what happened, so that the caller can count it.
"""

from __future__ import annotations

import json
import sqlite3
from types import MappingProxyType
from typing import TYPE_CHECKING

from gateway.errors import HouseholdError
from gateway.store.adjacency import AdjacencyWrites
from gateway.store.aliases import AliasWrites
from gateway.store.blobs import pack_list, pack_pairs
from gateway.store.checksums import row_crc
from gateway.store.deliveries import DeliveryWrites
from gateway.store.forget import ForgetWrites
from gateway.store.heard import HeardWrites
from gateway.store.household import copy_household
from gateway.store.notices import NoticeWrites
from gateway.store.reads import Reader
from gateway.store.retention import Retention, day_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway.model import Edge, Evidence, Household, PetStatus, RecordRef, Series
    from gateway.stored import DatedFrame, DayRow, DeadLetter, Document, Learned, TextRecord, ToldVerdict

__all__ = ["Transaction"]


class Transaction(
    AdjacencyWrites, AliasWrites, DeliveryWrites, ForgetWrites, HeardWrites, NoticeWrites, Retention, Reader
):
    """Reads and writes of one transaction. Made by `Database.transaction` only."""

    _household_changed = False

    def __init__(self, connection: sqlite3.Connection, *, home: Household | None = None) -> None:
        super().__init__(connection)
        self._home = home

    @property
    def home(self) -> Household | None:
        """The household as this transaction leaves it, where it was read and is still as it was."""
        return None if self._household_changed else self._home

    def household(self, at_ms: int | None = None) -> Household:
        """The household as known at ``at_ms`` (None: now, the latest of everything)."""
        if at_ms is not None or self._household_changed:
            return super().household(at_ms)
        if self._home is None:
            self._home = super().household()
        return self._home

    def finish(self) -> None:
        """What must be written before the commit: the copy of a household that changed."""
        if self._household_changed:
            copy_household(self._db)

    # -- citations -------------------------------------------------------------------------------

    def _record(self, ref: RecordRef) -> tuple[int, bool]:
        """(row id, whether it is new) of the record row behind a reference."""
        added = self._db.execute(
            "INSERT INTO record (ref, kind) VALUES (?, ?) ON CONFLICT (ref) DO NOTHING", (ref.text, ref.kind)
        )
        if added.rowcount:  # RETURNING would cost half as much again
            return int(added.lastrowid or 0), True
        row = self._db.execute("SELECT id FROM record WHERE ref = ?", (ref.text,)).fetchone()
        return int(row[0]), False

    # -- meta and household ------------------------------------------------------------------------

    def set_meta(self, key: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def set_alarm(self, name: str, text: str | None) -> None:
        """A sentence that every page shows until it is taken back (None)."""
        if text is None:
            self._db.execute("DELETE FROM meta WHERE key = 'alarm.' || :name", {"name": name})
        else:
            self.set_meta(f"alarm.{name}", text)

    def save_household(self, household: Household, *, valid_from_ms: int) -> None:
        """Add or update everything named in ``household``; nothing is removed.

        A binding replaces an open binding of the same device that began before it.

        Raises
        ------
        HouseholdError
            A binding names a pet or device that is not in the household.
        """
        self._household_changed = True
        if household.country is not None:
            self.set_meta("country", household.country)
        for zone in household.zones:
            self._db.execute(
                "INSERT INTO zone (valid_from_ms, zone) VALUES (?, ?) "
                "ON CONFLICT (valid_from_ms) DO UPDATE SET zone = excluded.zone",
                (zone.valid_from_ms, zone.zone),
            )
        for pet in household.pets:
            self._upsert(
                "pet",
                id=pet.id,
                name=pet.name,
                species=pet.species,
                breed=pet.breed,
                born=pet.born,
                sex=pet.sex,
                neutered=None if pet.neutered is None else int(pet.neutered),
                aliases=pack_list(pet.aliases),
            )
            self.set_status(pet.id, pet.status, valid_from_ms=valid_from_ms)
        for device in household.devices:
            self._upsert("device", id=device.id, kind=device.kind, name=device.name, aliases=pack_list(device.aliases))
            self.remember(device.id)
        for place in household.places:
            self._upsert("place", id=place.id, name=place.name, kind=place.kind, aliases=pack_list(place.aliases))
        for person in household.people:
            self._upsert("person", id=person.id, name=person.name, role=person.role, phone=person.phone)
        for kind, things in (("food", household.foods), ("medicine", household.medicines)):
            for thing in things:
                self.save_food(thing.id, thing.name, kind=kind, code=thing.code, aliases=thing.aliases)
        for binding in household.bindings:
            self.bind(
                binding.device, binding.pets, valid_from_ms=binding.valid_from_ms, valid_to_ms=binding.valid_to_ms
            )

    def _upsert(self, table: str, **values: str | int | None) -> None:
        columns = ", ".join(values)
        places = ", ".join(f":{name}" for name in values)
        changes = ", ".join(f"{name} = excluded.{name}" for name in values if name != "id")
        self._db.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT (id) DO UPDATE SET {changes}", values
        )

    def save_food(self, food: str, name: str, *, kind: str, code: str | None, aliases: tuple[str, ...]) -> None:
        """A food or medicine by id, as the owner names it; a known product code is never erased by a later None."""
        self._household_changed = True
        self._db.execute(
            "INSERT INTO food (id, name, kind, code, aliases) VALUES (:id, :name, :kind, :code, :aliases) "
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name, code = coalesce(excluded.code, food.code), "
            "product = iif(excluded.code IS NULL, product, NULL), owned = 1, "
            "aliases = CASE excluded.aliases WHEN '[]' THEN food.aliases ELSE excluded.aliases END",
            {"id": food, "name": name, "kind": kind, "code": code, "aliases": pack_list(aliases)},
        )

    def save_product(self, food: str, name: str, *, code: str) -> None:
        """The food a product is, by id: entered where nobody named it, else known by that code as well."""
        self._household_changed = True
        self._db.execute(
            "INSERT INTO food (id, name, kind, product, owned) VALUES (:id, :name, 'food', :code, 0) "
            "ON CONFLICT (id) DO UPDATE SET product = excluded.product",
            {"id": food, "name": name, "code": code},
        )

    def set_status(self, pet: str, status: PetStatus, *, valid_from_ms: int) -> None:
        """The pet's status from that instant on, unless it already stands so."""
        row = self._db.execute(
            "SELECT status FROM pet_status WHERE pet = ? AND valid_from_ms <= ? ORDER BY valid_from_ms DESC LIMIT 1",
            (pet, valid_from_ms),
        ).fetchone()
        if row is None or row[0] != status:
            self._household_changed = True
            self._db.execute(
                "INSERT INTO pet_status (pet, valid_from_ms, status) VALUES (?, ?, ?) "
                "ON CONFLICT (pet, valid_from_ms) DO UPDATE SET status = excluded.status",
                (pet, valid_from_ms, status),
            )

    def bind(self, device: str, pets: frozenset[str], *, valid_from_ms: int, valid_to_ms: int | None = None) -> None:
        """Let ``device`` serve ``pets`` from that instant; an earlier open binding ends there.

        Raises
        ------
        HouseholdError
            The device or a pet is unknown, or no pet is named.
        """
        if not pets:
            raise HouseholdError(f"a binding of {device!r} must name at least one pet, names none")
        current = self._db.execute(
            "SELECT DISTINCT pet FROM binding WHERE device = ? AND valid_from_ms <= ? "
            "AND (valid_to_ms IS NULL OR valid_to_ms > ?)",
            (device, valid_from_ms, valid_from_ms),
        ).fetchall()
        if frozenset(row[0] for row in current) == pets and valid_to_ms is None:
            return
        self.unbind(device, at_ms=valid_from_ms)
        try:
            for pet in sorted(pets):
                self._db.execute(
                    "INSERT INTO binding (device, pet, valid_from_ms, valid_to_ms) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (device, valid_from_ms, pet) DO UPDATE SET valid_to_ms = excluded.valid_to_ms",
                    (device, pet, valid_from_ms, valid_to_ms),
                )
        except sqlite3.IntegrityError:
            raise HouseholdError(
                f"a binding must name a known device and known pets, names {device!r} for {', '.join(sorted(pets))}"
            ) from None

    def unbind(self, device: str, *, at_ms: int) -> None:
        """From that instant on the device serves nobody; what it measured before stays."""
        self._household_changed = True
        self._db.execute(
            "UPDATE binding SET valid_to_ms = :at WHERE device = :device AND valid_from_ms < :at "
            "AND (valid_to_ms IS NULL OR valid_to_ms > :at)",
            {"device": device, "at": at_ms},
        )

    # -- what devices said -------------------------------------------------------------------------

    def add_frames(self, frames: Iterable[DatedFrame]) -> tuple[DatedFrame, ...]:
        """Store frames; those already stored under their reference are passed over, and so are
        those that were stored once and purged since.

        Returns
        -------
        tuple of DatedFrame
            The new ones, in the order given.
        """
        given: dict[str, DatedFrame] = {}
        for frame in frames:
            given.setdefault(frame.ref.text, frame)
        known = self._records(tuple(given))
        kept = {ref: row for ref, (row, is_frame) in known.items() if not is_frame}
        purged: dict[tuple[str, int], int] = {}
        new = tuple(
            frame
            for ref, frame in given.items()
            if (ref not in known or ref in kept) and not self._was_purged(frame, purged)
        )
        self._insert_frames(new, kept=kept)
        return new

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> int:
        """Keep unreadable bytes with their reason; returns how many rows are new."""
        return sum(
            self._db.execute(
                "INSERT INTO dead_letter (transport, device, boot, seq, received_ms, reason, detail, raw, whole, crc) "
                "SELECT :transport, :device, :boot, :seq, :received_ms, :reason, :detail, :raw, :whole, :crc "
                "WHERE NOT EXISTS (SELECT 1 FROM dead_letter "
                "WHERE device = :device AND boot IS :boot AND seq IS :seq AND raw = :raw AND read_by IS NULL)",
                {
                    "transport": letter.transport,
                    "device": letter.device,
                    "boot": letter.boot,
                    "seq": letter.seq,
                    "received_ms": letter.received_ms,
                    "reason": letter.reason,
                    "detail": letter.detail,
                    "raw": letter.raw,
                    "whole": letter.whole,
                    "crc": row_crc(
                        (
                            letter.transport,
                            letter.device,
                            letter.boot,
                            letter.seq,
                            letter.received_ms,
                            letter.reason,
                            letter.detail,
                            letter.raw,
                            letter.whole,
                        )
                    ),
                },
            ).rowcount
            for letter in letters
        )

    def letters_read(self, numbers: Iterable[int], *, read_by: str) -> None:
        """Mark dead letters as read since, by a profile in a version."""
        self._db.executemany(
            "UPDATE dead_letter SET read_by = :by WHERE id = :id", ({"by": read_by, "id": number} for number in numbers)
        )

    def bump(self, counter: str, by: int = 1) -> None:
        """Add to a named counter; every counter has a line on the page."""
        self._db.execute(
            "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value "
            "= value + excluded.value",
            (counter, by),
        )

    def mark(self, device: str, boot: int) -> int | None:
        """The last contiguous committed seq of that boot, or None before the first."""
        row = self._db.execute("SELECT seq FROM mark WHERE device = ? AND boot = ?", (device, boot)).fetchone()
        return None if row is None else int(row[0])

    def set_mark(self, device: str, boot: int, seq: int) -> None:
        """Move the mark forward; it never moves back."""
        self._db.execute(
            "INSERT INTO mark (device, boot, seq) VALUES (?, ?, ?) "
            "ON CONFLICT (device, boot) DO UPDATE SET seq = max(seq, excluded.seq)",
            (device, boot, seq),
        )

    def advance_mark(self, device: str, boot: int, *, first_seq: int) -> int | None:
        """Move the mark over every stored or dead-lettered seq that follows it without a gap.

        Parameters
        ----------
        first_seq : int
            Where the boot's numbering starts, used while there is no mark.

        Returns
        -------
        int or None
            The mark after the move; None while ``first_seq`` itself is missing.
        """
        at = self.mark(device, boot)
        expected = first_seq if at is None else at + 1
        rows = self._db.execute(
            "SELECT seq FROM frame WHERE device = :device AND boot = :boot AND seq >= :from "
            "UNION SELECT seq FROM dead_letter WHERE device = :device AND boot = :boot AND seq >= :from ORDER BY 1",
            {"device": device, "boot": boot, "from": expected},
        )
        for (seq,) in rows:
            if seq != expected:
                break
            at, expected = seq, seq + 1
        if at is not None:
            self.set_mark(device, boot, at)
        return at

    # -- time series -------------------------------------------------------------------------------

    def save_series(self, series: Series) -> None:
        self._db.execute(
            "INSERT INTO series (id, pet, property, unit) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (series.id, series.pet, series.property, series.unit),
        )

    def save_day(self, day: DayRow) -> bool:
        """`save_days` of one; whether it changed."""
        return self.save_days((day,)) == 1

    def save_days(self, days: Sequence[DayRow]) -> int:
        """Write day rows; one that already says the same is left alone. Returns how many changed.

        A changed row gets the next revision, and the stored answers that cite it are marked
        restated, where the day was already over when they were given.
        """
        self._db.executemany(
            "INSERT INTO record (ref, kind) VALUES (?, 'day') ON CONFLICT (ref) DO NOTHING",
            [(day.ref.text,) for day in days],
        )
        changed = [(day, *row) for day in days if (row := self._upsert_day(day)) is not None]
        self._db.executemany(
            "UPDATE answer_cites SET restated = 1 WHERE record = ? "
            "AND answer IN (SELECT id FROM answer WHERE asked_ms >= ?)",
            [(record, day.end_ms) for day, record, revision in changed if revision > 0],
        )
        if changed:
            self.note_verdicts_due((day.series, day.date, day.end_ms) for day, _, _ in changed)
            self.note_restated(min(day.date for day, _, _ in changed))
        return len(changed)

    def _upsert_day(self, day: DayRow) -> tuple[int, int] | None:
        """(record, revision) of a day row that changed, else None. Its record is stored already."""
        row: tuple[int, int] | None = self._db.execute(
            "INSERT INTO day (record, series, date, start_ms, end_ms, n, total, covered_ms, sums, covered, set_aside, "
            "late, crc) VALUES ((SELECT id FROM record WHERE ref = :ref), :series, :date, :start_ms, :end_ms, :n, "
            ":total, :covered_ms, :sums, :covered, :set_aside, :late, :crc) "
            "ON CONFLICT (record) DO UPDATE SET start_ms = excluded.start_ms, end_ms = excluded.end_ms, "
            "n = excluded.n, total = excluded.total, covered_ms = excluded.covered_ms, sums = excluded.sums, "
            "covered = excluded.covered, set_aside = excluded.set_aside, late = excluded.late, crc = excluded.crc, "
            "revision = revision + 1 WHERE (sums, covered, n, set_aside, late) IS NOT (excluded.sums, "
            "excluded.covered, excluded.n, excluded.set_aside, excluded.late) RETURNING record, revision",
            {"ref": day.ref.text, **day_row(day)},
        ).fetchone()
        return row

    # -- documents, notes, the log -----------------------------------------------------------------

    def save_learned(self, learned: Learned, *, added_ms: int) -> int:
        """Store what reading one document yielded; returns the number of new records."""
        new = 0 if learned.document is None else self.save_document(learned.document, added_ms=added_ms)
        new += sum(self.save_text(record) for record in learned.records)
        for name, label in learned.labels:
            self.name_vertex(name, label)
        self.save_links(learned.edges, learned.evidence)
        return new

    def save_document(self, document: Document, *, added_ms: int) -> int:
        """1 where the document is new, else 0."""
        return self._db.execute(
            "INSERT INTO document (id, kind, title, source, code, added_ms, facts) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO NOTHING",
            (
                document.id,
                document.kind,
                document.title,
                document.source,
                document.code,
                added_ms,
                pack_pairs(document.facts),
            ),
        ).rowcount

    def save_text(self, record: TextRecord) -> int:
        """1 where the text is new, else 0; a stored text is never changed."""
        row, _ = self._record(record.ref)
        content = (
            record.document,
            record.pet,
            record.at_ms,
            record.until_ms,
            record.kind,
            record.object,
            record.title,
            record.text,
            pack_pairs(record.facts),
        )
        return self._db.execute(
            "INSERT INTO text_record (record, document, pet, at_ms, until_ms, kind, object, title, text, facts, crc) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (record) DO NOTHING",
            (row, *content, row_crc((record.ref.text, *content))),
        ).rowcount

    # -- the evidence graph ------------------------------------------------------------------------

    def name_vertex(self, name: str, label: str) -> None:
        """The words a vertex is called by ("chicken meal")."""
        self._db.execute(
            "INSERT INTO vertex (name, label) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET label = excluded.label",
            (name, label),
        )

    def save_edge(self, edge: Edge) -> None:
        """An edge by its natural key; a later end replaces the stored one."""
        self.save_links((edge,), ())

    def save_evidence(self, evidence: Evidence) -> None:
        """One reason for an edge; both the edge and the record must be stored already."""
        self.save_links((), (evidence,))

    def save_links(self, edges: Iterable[Edge], evidence: Iterable[Evidence]) -> None:
        """Edges and reasons for edges, a statement a table: half the time of one at a time.

        An edge is stored by its natural key, a later end replaces the stored one. The edge and the
        record of each reason must be among these or stored already.
        """
        rows = [(edge.ref.text, edge.tail.name, edge.relation, edge.head.name, edge) for edge in edges]
        self._db.executemany(
            "INSERT INTO record (ref, kind) VALUES (?, 'edge') ON CONFLICT (ref) DO NOTHING", [row[:1] for row in rows]
        )
        ends = dict.fromkeys(name for row in rows for name in (row[1], row[3]))
        self._db.executemany(
            "INSERT INTO vertex (name) VALUES (?) ON CONFLICT (name) DO NOTHING", [(name,) for name in ends]
        )
        self._db.executemany(
            "INSERT INTO edge (record, tail, relation, head, valid_from_ms, valid_to_ms) "
            "VALUES ((SELECT id FROM record WHERE ref = ?), (SELECT id FROM vertex WHERE name = ?), ?, "
            "(SELECT id FROM vertex WHERE name = ?), ?, ?) "
            "ON CONFLICT (record) DO UPDATE SET valid_to_ms = excluded.valid_to_ms",
            [(*row[:4], row[4].valid_from_ms, row[4].valid_to_ms) for row in rows],
        )
        self._db.executemany(
            "INSERT INTO evidence (edge, record, true_mass, false_mass, witness, reliability, span_start, span_end) "
            "VALUES ((SELECT id FROM record WHERE ref = ?), (SELECT id FROM record WHERE ref = ?), ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (edge, record, witness) DO UPDATE SET true_mass = excluded.true_mass, "
            "false_mass = excluded.false_mass, reliability = excluded.reliability, "
            "span_start = excluded.span_start, span_end = excluded.span_end",
            [
                (
                    *(piece.edge.text, piece.record.text, piece.mass.true, piece.mass.false),
                    *(piece.witness, piece.reliability, *(piece.span or (None, None))),
                )
                for piece in evidence
            ],
        )

    def replace_edges(self, prefixes: tuple[str, ...], edges: Iterable[Edge], evidence: Iterable[Evidence]) -> None:
        """Make the edges whose relation is in ``prefixes`` exactly these, with this evidence.

        Used by learn, which recomputes what follows from events as a whole: what no longer
        follows disappears, what still does keeps its reference.
        """
        kept = {edge.ref.text for edge in edges}
        marks = ", ".join("?" for _ in prefixes)
        stale = [
            row
            for row in self._db.execute(
                f"SELECT e.record, r.ref FROM edge e JOIN record r ON r.id = e.record WHERE e.relation IN ({marks})",
                prefixes,
            )
            if row[1] not in kept
        ]
        for record, _ in stale:
            self._db.execute("DELETE FROM edge WHERE record = ?", (record,))
            self._db.execute(
                "DELETE FROM record WHERE id = :id AND NOT EXISTS (SELECT 1 FROM answer_cites WHERE record = :id)",
                {"id": record},
            )
        self._db.execute(
            f"DELETE FROM evidence WHERE edge IN (SELECT record FROM edge WHERE relation IN ({marks}))",
            prefixes,
        )
        self.save_links(edges, evidence)

    def add_wall(self, *, edge: RecordRef | None, hypothesis: str | None, reason: str, marked_ms: int) -> int:
        """The owner's "that's wrong", on an edge or on a hypothesis; returns the mark's number."""
        cursor = self._db.execute(
            "INSERT INTO wall (edge, hypothesis, reason, marked_ms) VALUES (?, ?, ?, ?)",
            (None if edge is None else edge.text, hypothesis, reason, marked_ms),
        )
        return int(cursor.lastrowid or 0)

    def undo_wall(self, number: int, *, undone_ms: int) -> bool:
        """Take a mark back; False where there is no such open mark."""
        return (
            self._db.execute(
                "UPDATE wall SET undone_ms = ? WHERE id = ? AND undone_ms IS NULL", (undone_ms, number)
            ).rowcount
            == 1
        )

    # -- learned and answered ----------------------------------------------------------------------

    def save_finding(self, series: str, *, as_of: str, window: str, verdict: str, facts: dict[str, object]) -> None:
        self._db.execute(
            "INSERT INTO finding (series, as_of, window, verdict, facts) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (series, as_of, window) DO UPDATE SET verdict = excluded.verdict, facts = excluded.facts",
            (series, as_of, window, verdict, json.dumps(facts, sort_keys=True, separators=(",", ":"))),
        )

    def save_correlation(self, a: str, b: str, *, as_of: str, passed: bool, facts: dict[str, object]) -> None:
        self._db.execute(
            "INSERT INTO correlation (a, b, as_of, facts, passed) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (a, b, as_of) DO UPDATE SET facts = excluded.facts, passed = excluded.passed",
            (a, b, as_of, json.dumps(facts, sort_keys=True, separators=(",", ":")), int(passed)),
        )

    def set_learned(self, as_of: str, *, done_ms: int) -> None:
        """The closed local day ``as_of`` has been learned from."""
        self._db.execute(
            "INSERT INTO learned (as_of, done_ms) VALUES (?, ?) ON CONFLICT (as_of) DO UPDATE SET "
            "done_ms = excluded.done_ms",
            (as_of, done_ms),
        )

    def save_answer(
        self,
        *,
        asked_ms: int,
        question: str,
        body: str,
        cites: tuple[RecordRef, ...],
        told: tuple[ToldVerdict, ...] = (),
        seen: Mapping[str, int] = MappingProxyType({}),
    ) -> int:
        """Keep an answer with the revision of every record it cites and the verdicts it told; returns its number.

        ``seen`` are the revisions of the cited days in the snapshot that was answered from: a day that was
        restated between the snapshot and this is one that changed after the answer was given.
        """
        cursor = self._db.execute(
            "INSERT INTO answer (asked_ms, question, body) VALUES (?, ?, ?)", (asked_ms, question, body)
        )
        number = int(cursor.lastrowid or 0)
        for ref in dict.fromkeys(cites):
            self._db.execute(
                "INSERT INTO answer_cites (answer, record, revision) SELECT ?, r.id, d.revision FROM record r "
                "LEFT JOIN day d ON d.record = r.id WHERE r.ref = ?",
                (number, ref.text),
            )
        self.save_told_verdicts(number, told)
        for day_ref, revision in seen.items():
            changed = self._db.execute(
                "SELECT d.record, d.series, d.date, d.end_ms FROM day d JOIN record r ON r.id = d.record "
                "WHERE r.ref = :ref AND d.revision <> :seen AND d.end_ms <= :asked",
                {"ref": day_ref, "seen": revision, "asked": asked_ms},
            ).fetchone()
            if changed is not None:
                record, series, date, end_ms = changed
                self._db.execute(
                    "UPDATE answer_cites SET restated = 1, revision = :seen "
                    "WHERE answer = :answer AND record = :record",
                    {"seen": revision, "answer": number, "record": record},
                )
                self.note_verdicts_due([(series, date, end_ms)])
        return number
