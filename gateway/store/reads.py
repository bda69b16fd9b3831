"""Every question asked of the tables.

`Reader` is what a read-only snapshot and the writer's own transaction share, so that both
see a row the same way. Results are tuples in a stated, stable order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.model import (
    Binding,
    Device,
    Edge,
    Event,
    Evidence,
    Food,
    Household,
    Mass,
    Person,
    Pet,
    PetStatus,
    Place,
    RecordRef,
    Series,
    Vertex,
    ZonePeriod,
    stable_id,
)
from gateway.store.adjacency import AdjacencyReads
from gateway.store.aliases import AliasReads
from gateway.store.blobs import unpack_covered, unpack_pairs, unpack_sums, unpack_texts
from gateway.store.deliveries import FRAME_SQL, DeliveryReads, frame_of, rare
from gateway.store.forget import ForgetReads
from gateway.store.heard import HeardReads
from gateway.store.notices import NoticeReads
from gateway.stored import DatedFrame, DayRow, DeadLetter, Document, Feeding, TextRecord

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_DAY = "SELECT series, date, start_ms, end_ms, n, sums, covered, set_aside, revision, late FROM day "
_TEXT = (
    "SELECT r.ref, t.kind, t.title, t.text, t.document, t.pet, t.at_ms, t.until_ms, t.object, t.facts "
    "FROM text_record t JOIN record r ON r.id = t.record "
)
_EVIDENCE = (
    "SELECT e.ref, r.ref, v.true_mass, v.false_mass, v.witness, v.reliability, v.span_start, v.span_end "
    "FROM evidence v JOIN record e ON e.id = v.edge JOIN record r ON r.id = v.record "
)


def _day(row: tuple[object, ...]) -> DayRow:
    values = list(row)
    values[5], values[6] = unpack_sums(row[5]), unpack_covered(row[6])
    return DayRow(*values)  # type: ignore[arg-type]  # columns stand in the order of the fields


def _text(row: tuple[object, ...]) -> TextRecord:
    values = list(row)
    values[0] = RecordRef(str(row[0]))
    values[9] = unpack_pairs(str(row[9]))
    return TextRecord(*values)  # type: ignore[arg-type]  # columns stand in the order of the fields


def _evidence(row: tuple[str, str, float, float, str, float, int | None, int | None]) -> Evidence:
    edge, record, true, false, witness, reliability, start, end = row
    return Evidence(
        edge=RecordRef(edge),
        record=RecordRef(record),
        mass=Mass(true, false),
        witness=witness,
        reliability=reliability,
        span=None if start is None or end is None else (start, end),
    )


def _document(row: tuple[str, str, str, str, str | None, str]) -> Document:
    document_id, kind, title, source, code, facts = row
    return Document(id=document_id, kind=kind, title=title, source=source, code=code, facts=unpack_pairs(facts))


class _Labels(Mapping[str, str]):
    """Vertex name -> the words it is called by. A large home has a hundred thousand of them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __getitem__(self, name: str) -> str:
        label = self._reader.vertex_label(name)
        if label is None:
            raise KeyError(name)
        return label

    def __iter__(self) -> Iterator[str]:
        return iter(self._reader.labelled_vertices())

    def __len__(self) -> int:
        return len(self._reader.labelled_vertices())


class Reader(AdjacencyReads, AliasReads, DeliveryReads, ForgetReads, HeardReads, NoticeReads):
    """Reads over one connection. Made by `Snapshot` and `Transaction` only."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def household(self, at_ms: int | None = None) -> Household:
        """The household as known at ``at_ms`` (None: now, the latest of everything)."""
        at = 2**62 if at_ms is None else at_ms
        status = {
            pet: PetStatus(word)
            for pet, word in self._db.execute(
                "SELECT pet, status FROM pet_status WHERE valid_from_ms <= ? ORDER BY valid_from_ms", (at,)
            )
        }
        pets = tuple(
            Pet(
                id=row[0],
                name=row[1],
                species=row[2],
                breed=row[3],
                born=row[4],
                sex=row[5],
                neutered=None if row[6] is None else bool(row[6]),
                status=status.get(row[0], PetStatus.HOME),
                aliases=unpack_texts(row[7]),
            )
            for row in self._db.execute(
                "SELECT id, name, species, breed, born, sex, neutered, aliases FROM pet ORDER BY id"
            )
        )
        bound: dict[tuple[str, int], tuple[set[str], int | None]] = {}
        for device, pet, start, end in self._db.execute(
            "SELECT device, pet, valid_from_ms, valid_to_ms FROM binding ORDER BY device, valid_from_ms, pet"
        ):
            bound.setdefault((device, start), (set(), end))[0].add(pet)
        country = self._db.execute("SELECT value FROM meta WHERE key = 'country'").fetchone()
        return Household(
            zones=self.zones(),
            pets=pets,
            devices=tuple(
                Device(id=row[0], kind=row[1], name=row[2], aliases=unpack_texts(row[3]))
                for row in self._db.execute("SELECT id, kind, name, aliases FROM device ORDER BY id")
            ),
            bindings=tuple(
                Binding(device=device, pets=frozenset(names), valid_from_ms=start, valid_to_ms=end)
                for (device, start), (names, end) in bound.items()
            ),
            places=tuple(
                Place(id=row[0], name=row[1], kind=row[2], aliases=unpack_texts(row[3]))
                for row in self._db.execute("SELECT id, name, kind, aliases FROM place ORDER BY id")
            ),
            people=tuple(
                Person(id=row[0], name=row[1], role=row[2], phone=row[3])
                for row in self._db.execute("SELECT id, name, role, phone FROM person ORDER BY id")
            ),
            foods=self.foods("food"),
            medicines=self.foods("medicine"),
            country=None if country is None else str(country[0]),
        )

    def zones(self) -> tuple[ZonePeriod, ...]:
        """The home's zones in the order they began."""
        return tuple(
            ZonePeriod(zone=zone, valid_from_ms=start)
            for start, zone in self._db.execute("SELECT valid_from_ms, zone FROM zone ORDER BY valid_from_ms")
        )

    def foods(self, kind: str) -> tuple[Food, ...]:
        """Foods or medicines of the household, by id."""
        return tuple(
            Food(id=row[0], name=row[1], code=row[2], aliases=unpack_texts(row[3]))
            for row in self._db.execute(
                "SELECT id, name, coalesce(product, code), aliases FROM food WHERE kind = ? ORDER BY id", (kind,)
            )
        )

    def meta(self, key: str) -> str | None:
        """A value of the file's own description, or None."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def alarms(self) -> tuple[str, ...]:
        """Sentences every page must show: what went wrong with the database and was not yet taken back."""
        return tuple(
            text for (text,) in self._db.execute("SELECT value FROM meta WHERE key GLOB 'alarm.*' ORDER BY key")
        )

    def frames(
        self,
        devices: tuple[str, ...],
        *,
        start_ms: int,
        end_ms: int,
        kinds: tuple[str, ...] | None = None,
    ) -> tuple[DatedFrame, ...]:
        """Frames of these devices that start in ``[start_ms, end_ms)``, by time, device, boot, seq."""
        marks = ", ".join("?" for _ in devices)
        only = "" if kinds is None else f"AND f.kind IN ({', '.join('?' for _ in kinds)}) {rare(kinds)} "
        rows = self._db.execute(
            f"{FRAME_SQL} WHERE f.device IN ({marks}) AND f.start_ms >= ? AND f.start_ms < ? {only}"
            "ORDER BY f.start_ms, f.device, f.boot, f.seq, r.ref",
            (*devices, start_ms, end_ms, *(kinds or ())),
        )
        return tuple(frame_of(row) for row in rows)

    def frames_of_kinds(self, kinds: tuple[str, ...], *, start_ms: int, end_ms: int) -> tuple[DatedFrame, ...]:
        """Frames of these kinds, whatever the device, that start in ``[start_ms, end_ms)``."""
        marks = ", ".join("?" for _ in kinds)
        rows = self._db.execute(
            f"{FRAME_SQL} WHERE f.kind IN ({marks}) {rare(kinds)} AND f.start_ms >= ? AND f.start_ms < ? "
            "ORDER BY f.start_ms, f.device, f.boot, f.seq, r.ref",
            (*kinds, start_ms, end_ms),
        )
        return tuple(frame_of(row) for row in rows)

    def every_frame(self) -> Iterator[DatedFrame]:
        """All frames, one at a time, by start, device, boot, seq."""
        for row in self._db.execute(f"{FRAME_SQL} ORDER BY f.start_ms, f.device, f.boot, f.seq, r.ref"):
            yield frame_of(row)

    def every_day(self) -> Iterator[DayRow]:
        """All day rows, one at a time, by date and series."""
        for row in self._db.execute(f"{_DAY} ORDER BY date, series"):
            yield _day(row)

    def frame(self, ref: RecordRef) -> DatedFrame | None:
        """The frame stored under a reference, or None."""
        row = self._db.execute(f"{FRAME_SQL} WHERE r.ref = ?", (ref.text,)).fetchone()
        return None if row is None else frame_of(row)

    def first_frame(self, device: str, kind: str, *, from_ms: int, to_ms: int | None) -> DatedFrame | None:
        """The earliest frame of a kind that started in ``[from_ms, to_ms)``."""
        row = self._db.execute(
            f"{FRAME_SQL} WHERE f.device = :device AND f.kind = :kind AND f.start_ms >= :from "
            "AND (:to IS NULL OR f.start_ms < :to) ORDER BY f.start_ms LIMIT 1",
            {"device": device, "kind": kind, "from": from_ms, "to": to_ms},
        ).fetchone()
        return None if row is None else frame_of(row)

    def last_frame(self, device: str, *, before_ms: int, kind: str | None = None) -> DatedFrame | None:
        """The latest frame of a device (and kind) that started before an instant."""
        row = self._db.execute(
            f"{FRAME_SQL} WHERE f.device = :device AND f.start_ms < :before AND (:kind IS NULL OR f.kind = :kind) "
            "ORDER BY f.start_ms DESC LIMIT 1",
            {"device": device, "before": before_ms, "kind": kind},
        ).fetchone()
        return None if row is None else frame_of(row)

    def events(
        self,
        home: Household,
        kinds: tuple[str, ...],
        *,
        start_ms: int,
        end_ms: int,
        pet: str | None = None,
    ) -> tuple[Event, ...]:
        """Device frames of these kinds as events, with the set of pets their device then served.

        ``pet`` keeps the events whose set holds that pet. Ordered by time and reference.
        """
        found = []
        for row in self.frames_of_kinds(kinds, start_ms=start_ms, end_ms=end_ms):
            pets = home.bindings_at(row.device, row.start_ms)
            if pet is None or pet in pets:
                found.append(
                    Event(
                        ref=row.ref,
                        kind=row.kind,
                        device=row.device,
                        pets=pets,
                        start_ms=row.start_ms,
                        end_ms=row.end_ms,
                        amount=row.amount,
                        unit=row.unit,
                        object=row.object,
                        set_aside=row.set_aside,
                    )
                )
        return tuple(found)

    def days(self, series: str, first_date: str, last_date: str) -> tuple[DayRow, ...]:
        """Day rows of a series from ``first_date`` to ``last_date`` inclusive, by date."""
        return tuple(
            _day(row)
            for row in self._db.execute(
                f"{_DAY} WHERE series = ? AND date BETWEEN ? AND ? ORDER BY date", (series, first_date, last_date)
            )
        )

    def day(self, series: str, date: str) -> DayRow | None:
        """One day row, or None where nothing was recorded."""
        found = self.days(series, date, date)
        return found[0] if found else None

    def days_of(self, series: tuple[str, ...], date: str) -> dict[str, DayRow]:
        """The day rows of several series on one date, by series; without a row, without an entry."""
        marks = ", ".join("?" for _ in series)
        rows = self._db.execute(f"{_DAY} WHERE series IN ({marks}) AND date = ?", (*series, date))
        return {day.series: day for day in map(_day, rows)}

    def first_date(self, series: str) -> str | None:
        """The first local day a series has a row for."""
        row = self._db.execute("SELECT min(date) FROM day WHERE series = ?", (series,)).fetchone()
        return None if row[0] is None else str(row[0])

    def first_day(self) -> str | None:
        """The first local day any series has a row for."""
        row = self._db.execute("SELECT min(date) FROM day").fetchone()
        return None if row[0] is None else str(row[0])

    def energy_of(self, code: str) -> float | None:
        """Energy (kcal per kg) by the stored documents of a product code, or None where none says it."""
        for row in self._db.execute("SELECT facts FROM document WHERE code = ? ORDER BY added_ms DESC, id", (code,)):
            energy = dict(unpack_pairs(row[0])).get("kcal_per_kg")
            if energy is not None:
                return float(energy)
        return None

    def label_of(self, code: str) -> RecordRef | None:
        """The record that holds the whole label text of a product code, the latest one stored."""
        row = self._db.execute(
            "SELECT r.ref FROM text_record t JOIN record r ON r.id = t.record JOIN document d ON d.id = t.document "
            "WHERE t.kind = 'label' AND d.code = ? ORDER BY d.added_ms DESC, length(t.text) DESC, r.id LIMIT 1",
            (code,),
        ).fetchone()
        return None if row is None else RecordRef(row[0])

    def label_part(self, label: RecordRef, words: str) -> RecordRef | None:
        """The record of those words of a label, where they stand in one of their own; any case."""
        row = self._db.execute(
            "SELECT r.ref FROM text_record t JOIN record r ON r.id = t.record WHERE lower(t.text) = lower(:words) "
            "AND t.document = (SELECT w.document FROM text_record w JOIN record l ON l.id = w.record "
            "WHERE l.ref = :label) ORDER BY r.id LIMIT 1",
            {"words": words, "label": label.text},
        ).fetchone()
        return None if row is None else RecordRef(row[0])

    def feedings(self, home: Household, pet: str) -> tuple[Feeding, ...]:
        """What the pet's own food bowls held when, oldest first: one period a ``food_set``."""
        held = []
        for device in home.devices:
            changes = self.frames((device.id,), start_ms=-(2**62), end_ms=2**62, kinds=("food_set",))
            for index, change in enumerate(changes):
                if home.bindings_at(device.id, change.start_ms) != frozenset({pet}):
                    continue
                code, text = str(change.fields[0]), str(change.fields[1])
                food = home.food_of(code, text)
                held.append(
                    Feeding(
                        food=stable_id(text or code) if food is None else food.id,
                        name=(text or f"food {code}") if food is None else food.name,
                        code=code,
                        start_ms=change.start_ms,
                        end_ms=changes[index + 1].start_ms if index + 1 < len(changes) else None,
                        kcal_per_kg=self.energy_of(code),
                        ref=change.ref,
                        device=device.id,
                    )
                )
        return tuple(sorted(held, key=lambda period: (period.start_ms, period.device)))

    def all_series(self) -> tuple[Series, ...]:
        """Every series, by id."""
        return tuple(
            Series(id=row[0], pet=row[1], property=row[2], unit=row[3])
            for row in self._db.execute("SELECT id, pet, property, unit FROM series ORDER BY id")
        )

    def text_record(self, ref: RecordRef) -> TextRecord | None:
        """The text stored under a reference, or None."""
        row = self._db.execute(f"{_TEXT} WHERE r.ref = ?", (ref.text,)).fetchone()
        return None if row is None else _text(row)

    def texts_of(self, document_id: str) -> tuple[TextRecord, ...]:
        """The texts of one document, by reference."""
        rows = self._db.execute(f"{_TEXT} WHERE t.document = ? ORDER BY r.ref", (document_id,))
        return tuple(_text(row) for row in rows)

    def texts(self, kinds: tuple[str, ...], *, until_ms: int, pet: str | None = None) -> tuple[TextRecord, ...]:
        """Texts of these kinds dated up to ``until_ms`` (undated ones too), by date and reference.

        ``pet`` keeps that pet's and the household's own.
        """
        marks = ", ".join("?" for _ in kinds)
        rows = self._db.execute(
            f"{_TEXT} WHERE t.kind IN ({marks}) AND coalesce(t.at_ms, 0) <= ? "
            "AND (? IS NULL OR t.pet IS NULL OR t.pet = ?) ORDER BY coalesce(t.at_ms, 0), r.ref",
            (*kinds, until_ms, pet, pet),
        )
        return tuple(_text(row) for row in rows)

    def document(self, document_id: str) -> Document | None:
        """A document's own row, or None."""
        row = self._db.execute(
            "SELECT id, kind, title, source, code, facts FROM document WHERE id = ?", (document_id,)
        ).fetchone()
        return None if row is None else _document(row)

    def documents(self, kind: str | None = None) -> tuple[Document, ...]:
        """Every document (of a kind), by id."""
        rows = self._db.execute(
            "SELECT id, kind, title, source, code, facts FROM document WHERE ? IS NULL OR kind = ? ORDER BY id",
            (kind, kind),
        )
        return tuple(_document(row) for row in rows)

    def edges(self, *, from_ms: int, to_ms: int) -> tuple[Edge, ...]:
        """Edges valid at any time in ``[from_ms, to_ms]``, by reference."""
        rows = self._db.execute(
            "SELECT t.name, e.relation, h.name, e.valid_from_ms, e.valid_to_ms FROM edge e "
            "JOIN vertex t ON t.id = e.tail JOIN vertex h ON h.id = e.head JOIN record r ON r.id = e.record "
            "WHERE coalesce(e.valid_from_ms, :from) <= :to AND coalesce(e.valid_to_ms, :to + 1) > :from ORDER BY r.ref",
            {"from": from_ms, "to": to_ms},
        )
        return tuple(
            Edge(Vertex(tail), relation, Vertex(head), start, end) for tail, relation, head, start, end in rows
        )

    def edge(self, ref: RecordRef) -> Edge | None:
        """The edge stored under a reference, or None."""
        row = self._db.execute(
            "SELECT t.name, e.relation, h.name, e.valid_from_ms, e.valid_to_ms FROM edge e "
            "JOIN vertex t ON t.id = e.tail JOIN vertex h ON h.id = e.head JOIN record r ON r.id = e.record "
            "WHERE r.ref = ?",
            (ref.text,),
        ).fetchone()
        return None if row is None else Edge(Vertex(row[0]), row[1], Vertex(row[2]), row[3], row[4])

    def evidence(self) -> tuple[Evidence, ...]:
        """All evidence, by edge, witness and record."""
        return tuple(_evidence(row) for row in self._db.execute(f"{_EVIDENCE} ORDER BY e.ref, v.witness, r.ref"))

    def evidence_about(self, edge: RecordRef) -> tuple[Evidence, ...]:
        """The evidence of one edge, by witness and record."""
        rows = self._db.execute(f"{_EVIDENCE} WHERE e.ref = ? ORDER BY v.witness, r.ref", (edge.text,))
        return tuple(_evidence(row) for row in rows)

    def vertex_labels(self) -> Mapping[str, str]:
        """The words vertices are called by, for those that have some; each is read when asked for."""
        return _Labels(self)

    def vertex_label(self, name: str) -> str | None:
        """The words a vertex is called by, or None."""
        row = self._db.execute("SELECT label FROM vertex WHERE name = ?", (name,)).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def labelled_vertices(self) -> tuple[str, ...]:
        """The names of all vertices that have words, ascending."""
        return tuple(
            name for (name,) in self._db.execute("SELECT name FROM vertex WHERE label IS NOT NULL ORDER BY name")
        )

    def walls(self, *, at_ms: int) -> tuple[tuple[int, str | None, str | None, str, int], ...]:
        """Open owner's marks at an instant: (number, edge, hypothesis, reason, marked_ms)."""
        return tuple(
            self._db.execute(
                "SELECT id, edge, hypothesis, reason, marked_ms FROM wall "
                "WHERE marked_ms <= :at AND (undone_ms IS NULL OR undone_ms > :at) ORDER BY id",
                {"at": at_ms},
            )
        )

    def counters(self) -> tuple[tuple[str, int], ...]:
        """Every counter with its value, by name."""
        return tuple(self._db.execute("SELECT name, value FROM counter ORDER BY name"))

    def dead_letters(self, *, limit: int) -> tuple[DeadLetter, ...]:
        """The latest unreadable messages, newest first; those that were read since come last."""
        rows = self._db.execute(
            "SELECT transport, device, boot, seq, received_ms, reason, detail, raw, whole, read_by FROM dead_letter "
            "ORDER BY read_by IS NOT NULL, id DESC LIMIT ?",
            (limit,),
        )
        return tuple(DeadLetter(*row) for row in rows)

    def unread_letters(self) -> tuple[tuple[int, DeadLetter], ...]:
        """(number, letter) of the messages of other people's devices that nothing has read, in the order they came."""
        rows = self._db.execute(
            "SELECT id, transport, device, boot, seq, received_ms, reason, detail, raw, whole FROM dead_letter "
            "WHERE boot IS NULL AND read_by IS NULL ORDER BY received_ms, id"
        )
        return tuple((number, DeadLetter(*row)) for number, *row in rows)

    def marks(self, device: str) -> dict[int, int]:
        """Boot to last contiguous committed seq, of one device."""
        return dict(self._db.execute("SELECT boot, seq FROM mark WHERE device = ? ORDER BY boot", (device,)))

    def heard_devices(self) -> tuple[str, ...]:
        """Every device id that ever stored a frame, bound or not."""
        return tuple(row[0] for row in self._db.execute("SELECT DISTINCT device FROM frame ORDER BY device"))

    def newest_ms(self) -> int | None:
        """The newest instant recorded: where a simulated or imported home's "now" stands."""
        row = self._db.execute(
            "SELECT max(at) FROM (SELECT max(end_ms) AS at FROM frame UNION ALL "
            "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clock_ms')"
        ).fetchone()
        return None if row[0] is None else int(row[0])

    def learned_until(self) -> str | None:
        """The last closed local day learned from, or None."""
        row = self._db.execute("SELECT max(as_of) FROM learned").fetchone()
        return None if row[0] is None else str(row[0])

    def findings(self, *, as_of: str) -> tuple[tuple[str, str, str, dict[str, object]], ...]:
        """(series, window, verdict, facts) of the latest pass up to that day, by series."""
        rows = self._db.execute(
            "SELECT series, window, verdict, facts FROM finding f WHERE as_of = "
            "(SELECT max(as_of) FROM finding g WHERE g.series = f.series AND g.window = f.window AND "
            "g.as_of <= :as_of) "
            "ORDER BY series, window",
            {"as_of": as_of},
        )
        return tuple((series, window, verdict, json.loads(facts)) for series, window, verdict, facts in rows)

    def correlations(self, a: str, b: str, *, until: str) -> tuple[tuple[str, bool, dict[str, object]], ...]:
        """(as_of, passed, facts) of the passes over one pair, oldest first."""
        rows = self._db.execute(
            "SELECT as_of, passed, facts FROM correlation WHERE a = ? AND b = ? AND as_of <= ? ORDER BY as_of",
            (a, b, until),
        )
        return tuple((as_of, bool(passed), json.loads(facts)) for as_of, passed, facts in rows)

    def answer(self, number: int) -> tuple[int, str, str, int] | None:
        """(asked_ms, question, body JSON, records restated since) of a stored answer."""
        row = self._db.execute(
            "SELECT asked_ms, question, body, (SELECT count(*) FROM answer_cites c WHERE c.answer = "
            "answer.id AND restated) "
            "FROM answer WHERE id = ?",
            (number,),
        ).fetchone()
        return None if row is None else (int(row[0]), str(row[1]), str(row[2]), int(row[3]))

    def answers(self, *, limit: int) -> tuple[tuple[int, int, str], ...]:
        """(number, asked_ms, question) of the latest stored answers, newest first."""
        return tuple(self._db.execute("SELECT id, asked_ms, question FROM answer ORDER BY id DESC LIMIT ?", (limit,)))

    def restated(self, number: int) -> tuple[RecordRef, ...]:
        """The records a stored answer cites that have changed since it was given."""
        rows = self._db.execute(
            "SELECT r.ref FROM answer_cites c JOIN record r ON r.id = c.record "
            "WHERE c.answer = ? AND c.restated ORDER BY r.ref",
            (number,),
        )
        return tuple(RecordRef(row[0]) for row in rows)

    def is_stored(self, ref: RecordRef) -> bool:
        """Whether a reference resolves."""
        return self._db.execute("SELECT 1 FROM record WHERE ref = ?", (ref.text,)).fetchone() is not None
