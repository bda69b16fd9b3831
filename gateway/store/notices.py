"""The SQL behind what the hub says unasked: hard floors, what they are counted from, and passes.

Two bases, one for readers and one for the writer, so that `Reader` and `Transaction` stay
one class each for their callers. Never made on their own.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from gateway.model import PetStatus, RecordRef
from gateway.store.blobs import pack_list
from gateway.store.deliveries import FRAME_SQL, frame_of
from gateway.stored import FloorNotice, FollowedRow, ToldVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.stored import DatedFrame, TextRecord

__all__ = ["NoticeReads", "NoticeWrites"]

_COLUMNS = (
    "id",
    "pet",
    "kind",
    "urgency",
    "basis",
    "since_ms",
    "raised_ms",
    "text",
    "device",
    "answer",
    "answered_ms",
    "ended_ms",
)
_NOTICE = f"SELECT {', '.join(_COLUMNS)} FROM floor_notice "
_TOLD = (
    "SELECT claim, series, since_date, first_date, last_date, until_ms, told_ms, word, answer, now_word, late, "
    "changed_ms FROM answer_verdict "
)
_RESTATED = "restated_from"


def _compact(facts: dict[str, object]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


class NoticeReads:
    """Reads behind floors, statistical notices and edges from events to series."""

    _db: sqlite3.Connection

    # -- hard floors -------------------------------------------------------------------------------

    def floor_notices(self, *, open_only: bool) -> tuple[FloorNotice, ...]:
        """Every floor that was reached; ``open_only`` keeps those that still hold. Red first,
        then by the instant they were reached.
        """
        rows = self._db.execute(
            f"{_NOTICE} WHERE (NOT :open_only OR ended_ms IS NULL) ORDER BY urgency = 'amber', since_ms, id",
            {"open_only": open_only},
        ).fetchall()
        return tuple(self._notice(row) for row in rows)

    def floor_notice(self, notice: str) -> FloorNotice | None:
        """The notice of that id, or None."""
        row = self._db.execute(f"{_NOTICE} WHERE id = :id", {"id": notice}).fetchone()
        return None if row is None else self._notice(row)

    def last_answer(self, pet: str, kind: str, *, before_ms: int, device: str | None = None) -> FloorNotice | None:
        """The notice of that kind (about that device) that was answered last, up to an instant, or None."""
        row = self._db.execute(
            f"{_NOTICE} WHERE pet = :pet AND kind = :kind AND device IS :device AND answered_ms <= :before "
            "ORDER BY answered_ms DESC LIMIT 1",
            {"pet": pet, "kind": kind, "device": device, "before": before_ms},
        ).fetchone()
        return None if row is None else self._notice(row)

    def _notice(self, row: tuple[object, ...]) -> FloorNotice:
        refs = self._db.execute(
            "SELECT r.ref FROM floor_cites c JOIN record r ON r.id = c.record WHERE c.notice = :id ORDER BY c.place",
            {"id": row[0]},
        )
        values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
        return FloorNotice(**values, refs=tuple(RecordRef(ref) for (ref,) in refs))

    def last_counted(self, device: str, kind: str, *, before_ms: int) -> DatedFrame | None:
        """The latest frame of a rare kind before an instant that was not set aside, or None."""
        row = self._db.execute(
            f"{FRAME_SQL} WHERE f.device = :device AND f.kind = :kind AND f.kind NOT IN ('motion', 'beat') "
            "AND f.start_ms < :before AND f.set_aside IS NULL ORDER BY f.start_ms DESC LIMIT 1",
            {"device": device, "kind": kind, "before": before_ms},
        ).fetchone()
        return None if row is None else frame_of(row)

    def first_heard(self, device: str) -> int | None:
        """When a device first said anything, or None. One aggregate: two would read every row."""
        row = self._db.execute("SELECT min(start_ms) FROM frame WHERE device = :device", {"device": device}).fetchone()
        return None if row[0] is None else int(row[0])

    def last_heard(self, device: str, *, until_ms: int) -> tuple[int, RecordRef] | None:
        """(end, reference) of the last thing a device said that ended by an instant, or None."""
        row = self._db.execute(
            "SELECT f.end_ms, r.ref FROM frame f JOIN record r ON r.id = f.record WHERE f.device = :device "
            "AND f.end_ms <= :until ORDER BY f.end_ms DESC, r.ref LIMIT 1",
            {"device": device, "until": until_ms},
        ).fetchone()
        return None if row is None else (int(row[0]), RecordRef(row[1]))

    def battery_levels(
        self, device: str, *, until_ms: int, reach_ms: int
    ) -> tuple[tuple[int, int, bool, RecordRef], ...]:
        """(at_ms, permille, charging, reference) of what a device told of its battery within ``reach_ms``
        of the last time, up to an instant: each level of an hour once, where it first stood, oldest first.
        """
        rows = self._db.execute(
            "WITH told AS (SELECT record, start_ms, amount, json_extract(fields, '$[2]') AS charging FROM frame "
            "WHERE device = :device AND kind = 'beat' AND amount IS NOT NULL AND start_ms <= :until AND start_ms >= "
            "(SELECT max(start_ms) FROM frame WHERE device = :device AND start_ms <= :until) - :reach) "
            "SELECT min(t.start_ms) AS at, t.amount, t.charging, r.ref FROM told t JOIN record r ON r.id = t.record "
            "GROUP BY t.start_ms / 3600000, t.amount, t.charging ORDER BY at, t.amount DESC",
            {"device": device, "until": until_ms, "reach": reach_ms},
        )
        return tuple((int(at), int(level), charging == 1, RecordRef(ref)) for at, level, charging, ref in rows)

    def statuses(self, pet: str, *, until_ms: int) -> tuple[tuple[int, PetStatus], ...]:
        """(since, status) of a pet up to an instant, oldest first."""
        rows = self._db.execute(
            "SELECT valid_from_ms, status FROM pet_status WHERE pet = :pet AND valid_from_ms <= :until "
            "ORDER BY valid_from_ms",
            {"pet": pet, "until": until_ms},
        )
        return tuple((int(since), PetStatus(status)) for since, status in rows)

    def logged(self, pet: str, about: str, *, from_ms: int, until_ms: int) -> tuple[tuple[int, str, RecordRef], ...]:
        """(at_ms, words, reference) of what people wrote down of one kind in that time, oldest first."""
        rows = self._db.execute(
            "SELECT t.at_ms, t.text, r.ref FROM text_record t JOIN record r ON r.id = t.record WHERE t.kind = 'log' "
            "AND t.at_ms BETWEEN :from AND :until AND t.object = :about AND t.pet = :pet ORDER BY t.at_ms, r.ref",
            {"pet": pet, "about": about, "from": from_ms, "until": until_ms},
        )
        return tuple((int(at), text, RecordRef(ref)) for at, text, ref in rows)

    def medicines_at(self, pet: str, *, at_ms: int) -> tuple[tuple[str, RecordRef], ...]:
        """(medicine's vertex, edge) of what the pet takes at an instant, by name."""
        rows = self._db.execute(
            "SELECT h.name, r.ref FROM edge e JOIN vertex t ON t.id = e.tail JOIN vertex h ON h.id = e.head "
            "JOIN record r ON r.id = e.record WHERE t.name = 'pet:' || :pet AND e.relation = 'takes' "
            "AND coalesce(e.valid_from_ms, :at) <= :at AND coalesce(e.valid_to_ms, :at + 1) > :at "
            "ORDER BY h.name, r.ref",
            {"pet": pet, "at": at_ms},
        )
        return tuple((name, RecordRef(ref)) for name, ref in rows)

    def revisions(self, refs: Iterable[RecordRef]) -> dict[str, int]:
        """Reference to revision of those of these records that are days."""
        wanted = pack_list(tuple(ref.text for ref in refs))
        return dict(
            self._db.execute(
                "SELECT r.ref, d.revision FROM record r JOIN day d ON d.record = r.id "
                "WHERE r.ref IN (SELECT value FROM json_each(:refs))",
                {"refs": wanted},
            )
        )

    # -- verdicts told -----------------------------------------------------------------------------

    def due_verdicts(self, *, most: int) -> tuple[ToldVerdict, ...]:
        """Verdicts told in answers behind which a day changed and that were not compared again, newest first."""
        rows = self._db.execute(
            f"{_TOLD} WHERE due = 1 ORDER BY answer DESC, claim, series LIMIT :most", {"most": most}
        )
        return tuple(ToldVerdict(*row) for row in rows)

    def changed_verdicts(self, *, answer: int | None = None, since_ms: int = 0) -> tuple[ToldVerdict, ...]:
        """Verdicts that are another word now (of one answer, or found since an instant), newest first."""
        rows = self._db.execute(
            f"{_TOLD} WHERE now_word IS NOT NULL AND (:answer IS NULL OR answer = :answer) AND changed_ms >= :since "
            "ORDER BY answer DESC, claim, series",
            {"answer": answer, "since": since_ms},
        )
        return tuple(ToldVerdict(*row) for row in rows)

    def count_late(self, devices: tuple[str, ...], *, start_ms: int, end_ms: int, received_after_ms: int) -> int:
        """How many records of these devices that started in ``[start_ms, end_ms)`` arrived after an instant."""
        marks = ", ".join("?" for _ in devices)
        row = self._db.execute(
            f"SELECT count(*) FROM frame WHERE device IN ({marks}) AND start_ms >= ? AND start_ms < ? "
            "AND received_ms > ?",
            (*devices, start_ms, end_ms, received_after_ms),
        ).fetchone()
        return int(row[0])

    # -- passes ------------------------------------------------------------------------------------

    def findings_between(
        self, windows: tuple[str, ...], first: str, last: str
    ) -> tuple[tuple[str, str, str, str, dict[str, object]], ...]:
        """(series, as_of, window, verdict, facts) of the passes of these days, by series and day."""
        marks = ", ".join(f":w{at}" for at in range(len(windows)))
        rows = self._db.execute(
            "SELECT f.series, f.as_of, f.window, f.verdict, f.facts FROM series s JOIN finding f ON f.series = s.id "
            f"WHERE f.as_of BETWEEN :first AND :last AND f.window IN ({marks}) ORDER BY f.series, f.as_of, f.window",
            {"first": first, "last": last} | {f"w{at}": window for at, window in enumerate(windows)},
        )
        return tuple((*row[:4], json.loads(row[4])) for row in rows)

    def followed(self, *, until: str) -> tuple[FollowedRow, ...]:
        """Every event that was held beside a series in a pass up to that day, by event and series."""
        rows = self._db.execute(
            "SELECT event, series, as_of, facts FROM followed WHERE as_of <= :until ORDER BY event, series",
            {"until": until},
        )
        return tuple(FollowedRow(event, series, as_of, json.loads(facts)) for event, series, as_of, facts in rows)

    def restated_from(self) -> str | None:
        """The first learned day whose rows have changed since it was learned, or None."""
        row = self._db.execute("SELECT value FROM meta WHERE key = :key", {"key": _RESTATED}).fetchone()
        return None if row is None else str(row[0])


class NoticeWrites(NoticeReads):
    """Writes behind them."""

    def save_floor(self, notice: FloorNotice) -> None:
        """A floor that was reached; one of that id that had ended holds again, its answer kept."""
        self._db.execute(
            "INSERT INTO floor_notice (id, pet, kind, device, urgency, basis, since_ms, raised_ms, text) VALUES "
            "(:id, :pet, :kind, :device, :urgency, :basis, :since_ms, :raised_ms, :text) ON CONFLICT (id) DO UPDATE "
            "SET urgency = excluded.urgency, basis = excluded.basis, text = excluded.text, ended_ms = NULL",
            {
                "id": notice.id,
                "pet": notice.pet,
                "kind": notice.kind,
                "device": notice.device,
                "urgency": notice.urgency,
                "basis": notice.basis,
                "since_ms": notice.since_ms,
                "raised_ms": notice.raised_ms,
                "text": notice.text,
            },
        )
        self._db.execute("DELETE FROM floor_cites WHERE notice = :id", {"id": notice.id})
        self._db.executemany(
            "INSERT INTO floor_cites (notice, place, record) SELECT :id, :place, id FROM record WHERE ref = :ref",
            [{"id": notice.id, "place": place, "ref": ref.text} for place, ref in enumerate(notice.refs)],
        )

    def end_floor(self, notice: str, *, at_ms: int) -> None:
        """The floor no longer holds: a meal was seen, the device is heard again."""
        self._db.execute(
            "UPDATE floor_notice SET ended_ms = :at WHERE id = :id AND ended_ms IS NULL", {"id": notice, "at": at_ms}
        )

    def answer_floor(self, notice: str, *, answer: str, at_ms: int) -> bool:
        """Keep the owner's answer; False where there is no such notice or it has one already."""
        return (
            self._db.execute(
                "UPDATE floor_notice SET answer = :answer, answered_ms = :at WHERE id = :id AND answer IS NULL",
                {"id": notice, "answer": answer, "at": at_ms},
            ).rowcount
            == 1
        )

    def save_told_verdicts(self, answer: int, told: tuple[ToldVerdict, ...]) -> None:
        """The verdicts of a new answer, each a row of its own."""
        self._db.executemany(
            "INSERT INTO answer_verdict (answer, claim, series, since_date, first_date, last_date, until_ms, told_ms, "
            "word) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (answer, v.claim, v.series, v.since_date, v.first_date, v.last_date, v.until_ms, v.told_ms, v.word)
                for v in told
            ],
        )

    def note_verdicts_due(self, days: Iterable[tuple[str, str, int]]) -> None:
        """Days changed, each a (series, date, instant it was over): verdicts read from one that were told
        once it was over are to be compared again.
        """
        self._db.executemany(
            "UPDATE answer_verdict SET due = 1 WHERE series = :series AND last_date >= :date AND since_date <= :date "
            "AND told_ms >= :from",
            [{"series": series, "date": date, "from": told_from_ms} for series, date, told_from_ms in days],
        )

    def settle_verdict(self, told: ToldVerdict, word: str | None, *, late: int, at_ms: int) -> None:
        """What comparing again gave (None: it could not be made); a word that stands as told is no news."""
        changed = word is not None and word != told.word
        self._db.execute(
            "UPDATE answer_verdict SET due = 0, late = :late, now_word = :now, "
            "changed_ms = iif(:now IS NULL, NULL, iif(now_word IS :now, changed_ms, :at)) "
            "WHERE answer = :answer AND claim = :claim AND series = :series",
            {
                "now": word if changed else None,
                "late": late if changed else 0,
                "at": at_ms,
                "answer": told.answer,
                "claim": told.claim,
                "series": told.series,
            },
        )

    def save_followed(self, row: FollowedRow) -> None:
        """One event beside one series."""
        self._db.execute(
            "INSERT INTO followed (event, series, as_of, facts) VALUES (:event, :series, :as_of, :facts) "
            "ON CONFLICT (event, series) DO UPDATE SET as_of = excluded.as_of, facts = excluded.facts",
            {"event": row.event, "series": row.series, "as_of": row.as_of, "facts": _compact(row.facts)},
        )

    def note_restated(self, date: str) -> None:
        """A day's row changed: where that day was learned, it is to be learned again."""
        self._db.execute(
            "INSERT INTO meta (key, value) SELECT :key, :date WHERE EXISTS (SELECT 1 FROM learned "
            "WHERE as_of >= :date) ON CONFLICT (key) DO UPDATE SET value = min(value, excluded.value)",
            {"key": _RESTATED, "date": date},
        )

    def forget_learned(self, first: str) -> None:
        """Forget every pass from that day on, so that it runs again on the rows as they are now."""
        for table in ("learned", "finding", "correlation", "followed"):
            self._db.execute(f"DELETE FROM {table} WHERE as_of >= :first", {"first": first})
        self._db.execute("DELETE FROM meta WHERE key = :key", {"key": _RESTATED})

    def drop_outdated(self, record: TextRecord) -> None:
        """Where the hub computed this record's text before and now says it otherwise, let the old
        wording go, and mark the answers that cite it. What people wrote is never changed.
        """
        row = self._db.execute(
            "SELECT t.record, t.text FROM text_record t JOIN record r ON r.id = t.record WHERE r.ref = :ref",
            {"ref": record.ref.text},
        ).fetchone()
        if row is not None and row[1] != record.text:
            self._db.execute("DELETE FROM text_record WHERE record = :record", {"record": row[0]})
            self._db.execute("UPDATE answer_cites SET restated = 1 WHERE record = :record", {"record": row[0]})
