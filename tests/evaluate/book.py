"""What SQLite holds, read with ``sqlite3`` alone: the checker's own view of a database."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.evaluate.refigure import Day

__all__ = ["Book", "Event", "Text", "Witnessed"]


@dataclass(frozen=True)
class Event:
    """A stored device record."""

    ref: str
    device: str
    kind: str
    start_ms: int
    end_ms: int
    amount: int | None
    fields: tuple[int | str, ...]
    set_aside: str | None


@dataclass(frozen=True)
class Text:
    """A stored text: passage, label span, note or log entry, with its document."""

    ref: str
    kind: str
    title: str
    text: str
    pet: str | None
    at_ms: int | None
    until_ms: int | None
    object: str | None
    document: str | None
    code: str | None
    facts: dict[str, str]


@dataclass(frozen=True)
class Witnessed:
    """A link a record is evidence for, and the words of the record that say it."""

    tail: str
    relation: str
    head: str
    words: str | None


class Book:
    """One database, read-only."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)

    def close(self) -> None:
        self._db.close()

    def all(self, sql: str, *values: object) -> list[tuple]:
        return self._db.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> tuple | None:
        return self._db.execute(sql, values).fetchone()

    @cached_property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.all("SELECT zone FROM zone ORDER BY valid_from_ms DESC LIMIT 1")[0][0])

    @cached_property
    def pets(self) -> dict[str, str]:
        return dict(self.all("SELECT id, name FROM pet"))

    @cached_property
    def sex(self) -> dict[str, str | None]:
        return dict(self.all("SELECT id, sex FROM pet"))

    @cached_property
    def foods(self) -> dict[str, tuple[str, str | None]]:
        return {row[0]: (row[1], row[2]) for row in self.all("SELECT id, name, code FROM food")}

    @cached_property
    def devices(self) -> dict[str, tuple[str, str]]:
        return {row[0]: (row[1], row[2]) for row in self.all("SELECT id, kind, name FROM device")}

    @cached_property
    def labels(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self.all("SELECT name, label FROM vertex WHERE label IS NOT NULL")}

    @cached_property
    def names(self) -> str:
        """Everything the household calls something, for numerals that stand in a name."""
        called = [*self.pets.values(), *(name for name, _ in self.foods.values()), *self.labels.values()]
        return " ".join(
            [*called, *(name for _, name in self.devices.values()), *(r[0] for r in self.all("SELECT name FROM place"))]
        )

    @cached_property
    def series(self) -> dict[str, tuple[str, str, str]]:
        """Series id -> (pets, property, unit)."""
        return {row[0]: (row[1], row[2], row[3]) for row in self.all("SELECT id, pet, property, unit FROM series")}

    def bound(self, device: str, at_ms: int) -> set[str]:
        return {
            row[0]
            for row in self.all(
                "SELECT pet FROM binding WHERE device = ? AND valid_from_ms <= ? AND (valid_to_ms IS NULL OR valid_to_ms > ?)",
                device, at_ms, at_ms,
            )
        }  # fmt: skip

    def records(self, kind: str) -> list[str]:
        """Every reference of a kind, ordered."""
        known: dict[str, list[str]] = self.__dict__.setdefault("_records", {})
        if kind not in known:
            known[kind] = [ref for (ref,) in self.all("SELECT ref FROM record WHERE kind = ? ORDER BY ref", kind)]
        return known[kind]

    def event(self, ref: str) -> Event | None:
        row = self.one(
            "SELECT r.ref, f.device, f.kind, f.start_ms, f.end_ms, f.amount, f.fields, f.set_aside "
            "FROM frame f JOIN record r ON r.id = f.record WHERE r.ref = ?",
            ref,
        )
        return None if row is None else Event(*row[:6], tuple(json.loads(row[6])), row[7])

    def later_event(self, event: Event, as_of_ms: int) -> bool:
        """Whether a later record of the same kind at the same device was stored by then."""
        row = self.one(
            "SELECT count(*) FROM frame WHERE device = ? AND kind = ? AND start_ms > ? AND start_ms <= ?",
            event.device, event.kind, event.start_ms, as_of_ms,
        )  # fmt: skip
        return bool(row and row[0])

    def feedings(self, device: str) -> list[Event]:
        refs = self.all(
            "SELECT r.ref FROM frame f JOIN record r ON r.id = f.record WHERE f.device = ? AND f.kind = 'food_set' "
            "ORDER BY f.start_ms",
            device,
        )
        return [event for (ref,) in refs if (event := self.event(ref)) is not None]

    def rows(self, series: str, first: str, last: str) -> dict[str, Day]:
        """Every stored day of a series from ``first`` to ``last``, by its date."""
        return {day: row for day, row in self._series_rows(series).items() if first <= day <= last}

    def _series_rows(self, series: str) -> dict[str, Day]:
        known: dict[str, dict[str, Day]] = self.__dict__.setdefault("_rows", {})
        if series not in known:
            found = self.all(
                "SELECT date, start_ms, end_ms, sums, covered FROM day WHERE series = ? ORDER BY date", series
            )
            known[series] = {row[0]: Day.unpacked(series, row[0], row[1:]) for row in found}
        return known[series]

    def fed(self, pet: str) -> list[Event]:
        """Every record of a food set at a device that served this pet alone then, by time."""
        refs = self.all(
            "SELECT r.ref FROM frame f JOIN record r ON r.id = f.record WHERE f.kind = 'food_set' ORDER BY f.start_ms"
        )
        events = [event for (ref,) in refs if (event := self.event(ref)) is not None]
        return [event for event in events if self.bound(event.device, event.start_ms) == {pet}]

    def spans(self, tail: str, head: str) -> list[tuple[int | None, int | None]]:
        """From when to when a pet had, took or met a thing: its dated links with evidence, by their beginning."""
        return self.all(
            "SELECT e.valid_from_ms, e.valid_to_ms FROM edge e JOIN vertex a ON a.id = e.tail JOIN vertex b ON "
            "b.id = e.head WHERE a.name = ? AND b.name = ? AND e.relation IN ('ate', 'takes', 'treated_with', "
            "'was_at', 'visited_by', 'uses_device') AND EXISTS (SELECT 1 FROM evidence v WHERE v.edge = e.record) "
            "ORDER BY e.valid_from_ms",
            tail, head,
        )  # fmt: skip

    def relations(self, tail: str, head: str) -> set[str]:
        """How two vertices are joined."""
        found = self.all(
            "SELECT DISTINCT e.relation FROM edge e JOIN vertex a ON a.id = e.tail JOIN vertex b ON b.id = e.head "
            "WHERE a.name = ? AND b.name = ?",
            tail, head,
        )  # fmt: skip
        return {relation for (relation,) in found}

    def day(self, ref: str) -> Day | None:
        series, _, date = ref.removeprefix("day:").rpartition("/")
        return self._series_rows(series).get(date)

    def text(self, ref: str) -> Text | None:
        row = self.one(
            "SELECT r.ref, t.kind, t.title, t.text, t.pet, t.at_ms, t.until_ms, t.object, t.document, d.code, d.facts "
            "FROM text_record t JOIN record r ON r.id = t.record LEFT JOIN document d ON d.id = t.document WHERE r.ref = ?",
            ref,
        )
        if row is None:
            return None
        facts = {} if row[10] is None else {str(name): str(value) for name, value in json.loads(row[10])}
        return Text(*row[:10], facts)

    def whole_label(self, text: Text) -> bool:
        """Whether a label's text is the longest of its document: the list itself, not a cited part."""
        row = self.one("SELECT max(length(text)) FROM text_record WHERE document = ?", text.document)
        return row is not None and row[0] == len(text.text)

    def later_text(self, text: Text, as_of_ms: int) -> bool:
        """Whether a later log entry of the same kind and pet was stored by then."""
        row = self.one(
            "SELECT count(*) FROM text_record WHERE kind = 'log' AND object = ? AND pet IS ? AND at_ms > ? AND at_ms <= ?",
            text.object, text.pet, text.at_ms, as_of_ms,
        )  # fmt: skip
        return bool(row and row[0])

    def stored(self, ref: str) -> bool:
        """Whether a reference opens: its record and what the record holds are both there."""
        kind = ref.partition(":")[0]
        if kind == "event":
            return self.event(ref) is not None
        if kind == "day":
            return self.day(ref) is not None
        if kind == "edge":
            return self.edge(ref) is not None
        return self.text(ref) is not None

    def edge(self, ref: str) -> tuple[str, str, str] | None:
        """(tail, relation, head) of a stored link."""
        return self.one(
            "SELECT a.name, e.relation, b.name FROM edge e JOIN record r ON r.id = e.record "
            "JOIN vertex a ON a.id = e.tail JOIN vertex b ON b.id = e.head WHERE r.ref = ?",
            ref,
        )

    def supported(self, ref: str) -> bool:
        """Whether a link has evidence that says so, and no mark of the owner stands against it."""
        row = self.one(
            "SELECT count(*) FROM evidence v JOIN record r ON r.id = v.edge WHERE r.ref = ? AND v.true_mass > 0", ref
        )
        walled = self.one("SELECT count(*) FROM wall WHERE edge = ? AND undone_ms IS NULL", ref)
        return bool(row and row[0]) and not (walled and walled[0])

    def walled_hypotheses(self) -> set[str]:
        return {
            row[0] for row in self.all("SELECT hypothesis FROM wall WHERE undone_ms IS NULL AND hypothesis IS NOT NULL")
        }

    def says(self, record: str, tail: str, head: str) -> bool:
        """Whether a record is evidence for a link from ``tail`` to ``head``."""
        return any((tail, head) == (one.tail, one.head) for one in self.witnessed(record))

    def witnessed(self, record: str) -> list[Witnessed]:
        """Every link that a record is evidence for, with the words of it that say so."""
        return [
            Witnessed(tail, relation, head, text if start is None or text is None else text[start:end])
            for tail, relation, head, start, end, text in self.all(
                "SELECT a.name, e.relation, b.name, v.span_start, v.span_end, t.text FROM evidence v "
                "JOIN record c ON c.id = v.record JOIN edge e ON e.record = v.edge JOIN vertex a ON a.id = e.tail "
                "JOIN vertex b ON b.id = e.head LEFT JOIN text_record t ON t.record = c.id "
                "WHERE c.ref = ? AND v.true_mass > 0",
                record,
            )
        ]

    def running(self, pet: str, at_ms: int) -> set[str]:
        """The medicines and treatments a pet is on at an instant, by their vertices."""
        found = self.all(
            "SELECT DISTINCT b.name FROM edge e JOIN vertex a ON a.id = e.tail JOIN vertex b ON b.id = e.head "
            "WHERE a.name = ? AND e.relation IN ('takes', 'treated_with') AND (e.valid_to_ms IS NULL OR "
            "e.valid_to_ms > ?) AND EXISTS (SELECT 1 FROM evidence v WHERE v.edge = e.record)",
            f"pet:{pet}", at_ms,
        )  # fmt: skip
        return {name for (name,) in found}

    def thing_name(self, vertex: str) -> str:
        """What a vertex is called: its label, else its bare name."""
        return self.labels.get(vertex, vertex.partition(":")[2].replace("_", " "))

    def heard_by(self, device: str, at_ms: int) -> Event | None:
        """The last record of a device that began before an instant."""
        return self._frame("f.device = ? AND f.start_ms < ? ORDER BY f.start_ms DESC, r.ref DESC", device, at_ms)

    def heard_from(self, device: str, start_ms: int, end_ms: int) -> Event | None:
        """The first record of a device that began in ``[start_ms, end_ms)``."""
        where = "f.device = ? AND f.start_ms >= ? AND f.start_ms < ? ORDER BY f.start_ms, r.ref"
        return self._frame(where, device, start_ms, end_ms)

    def _frame(self, where: str, *values: object) -> Event | None:
        row = self.one(f"SELECT r.ref FROM frame f JOIN record r ON r.id = f.record WHERE {where} LIMIT 1", *values)
        return None if row is None else self.event(row[0])
