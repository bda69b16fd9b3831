"""Saves what can be read of a damaged database into a fresh one.

Rows are read page by page, past what is broken, and are kept where they fit their table, match
their CRC and refer to rows that were kept. What a lost row can be rebuilt from is used: a
reference from its index or from the row it names, the household from its copy, marks from
the frames. Day rows that outlived their frames are sealed, so that nothing that was summed up
is lost with its raw rows; day rows that are gone are named, to be computed again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from gateway.store.checksums import CHECKED
from gateway.store.files import initialise
from gateway.store.household import restore_household
from gateway.store.intact import Intact, Wanted
from gateway.store.pages import PageFile, Row, Value
from gateway.store.retention import CITING
from gateway.store.transaction import Transaction
from gateway.store.verify import rotten_rows

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["COPIED", "Salvage", "salvage"]

_CACHE_KIB = 32_768
"""Of pages while it is built: with SQLite's 2 MB the pages of the indexes are written again and again."""
_CITABLE = {"event": "frame", "day": "day", "label": "text_record", "passage": "text_record"}
_CITABLE |= {"note": "text_record", "log": "text_record", "edge": "edge"}
COPIED = frozenset(CHECKED) | {"record"}
"""Large tables whose rows are checked one by one afterwards; what is small is read page by page."""
_NAMES_BY_INDEX = {"record": "sqlite_autoindex_record_1", "vertex": "sqlite_autoindex_vertex_1"}
"""Tables of named rows: the index of the names holds every (name, row id) a second time."""
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,), "BLOB": (bytes,)}

_FRAMES_BY_NUMBER = (
    "INSERT OR IGNORE INTO record (id, ref, kind) SELECT f.record, 'event:' || f.device || '/' || f.boot || '/' "
    "|| f.seq, 'event' FROM frame f WHERE f.boot IS NOT NULL AND f.record NOT IN (SELECT id FROM record)"
)
_DAYS_BY_DATE = (
    "INSERT OR IGNORE INTO record (id, ref, kind) SELECT d.record, 'day:' || d.series || '/' || d.date, 'day' "
    "FROM day d WHERE d.record NOT IN (SELECT id FROM record)"
)
_EDGES_BY_ENDS = (
    "INSERT OR IGNORE INTO record (id, ref, kind) SELECT e.record, 'edge:' || t.name || '|' || e.relation || '|' || "
    "h.name || '|' || coalesce(e.valid_from_ms, '-'), 'edge' FROM edge e JOIN vertex t ON t.id = e.tail "
    "JOIN vertex h ON h.id = e.head WHERE e.record NOT IN (SELECT id FROM record)"
)
_LOST_RECORDS = (
    "SELECT id, ref, kind FROM record WHERE id NOT IN (SELECT record FROM frame UNION ALL SELECT record FROM day "
    "UNION ALL SELECT record FROM text_record UNION ALL SELECT record FROM edge UNION ALL SELECT record FROM tombstone)"
)
# The device let go of what our mark covered, so a mark set too low waits for ever; the end of
# the first run of numbers is the highest that is certain.
_MARKS_FROM_FRAMES = (
    "INSERT OR IGNORE INTO mark (device, boot, seq, purged) "
    "SELECT device, boot, min(seq) + count(*) - 1, min(seq) - 1 FROM ("
    "SELECT device, boot, seq, seq - row_number() OVER (PARTITION BY device, boot ORDER BY seq) AS run, "
    "min(seq) OVER (PARTITION BY device, boot) - 1 AS first_run FROM ("
    "SELECT device, boot, seq FROM frame WHERE boot IS NOT NULL UNION "
    "SELECT device, boot, seq FROM dead_letter WHERE boot IS NOT NULL)) "
    "WHERE run = first_run GROUP BY device, boot"
)


@dataclass(frozen=True, slots=True)
class Salvage:
    """What became of a damaged file.

    ``kept`` counts the rows saved, by table; ``lost`` counts, by kind of record, those known
    to have been stored and not saved; ``rotten`` rows were read but did not match their CRC;
    ``lost_dates`` are the local days whose rows must be computed again.
    """

    kept: tuple[tuple[str, int], ...]
    lost: tuple[tuple[str, int], ...]
    rotten: int
    lost_dates: frozenset[str]

    @property
    def text(self) -> str:
        """What was saved and lost, in a sentence or two for the owner."""
        kept = dict(self.kept)
        words = {"event": "device records", "day": "daily rows", "edge": "links", "note": "notes", "log": "log entries"}
        named = [f"{count} {words.get(kind, f'{kind} texts')}" for kind, count in self.lost]
        gone = f"Lost: {', '.join(named)}." if named else "No record that could be named is lost."
        return (
            f"The database was damaged and has been repaired. Saved: {kept.get('frame', 0)} device records, "
            f"{kept.get('day', 0)} daily rows, {kept.get('text_record', 0)} texts, {kept.get('edge', 0)} links. {gone}"
        )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table's stored columns in stored order: name, declared type, whether NULL is refused.

    ``alias`` is the place of the column that is the row id itself, stored as NULL.
    """

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    has_rowid: bool
    alias: int | None

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(declared for _, declared, _ in self.columns)

    def wanted(self) -> Wanted:
        """The table as SQLite is asked for its rows."""
        columns = tuple(column for at, column in enumerate(self.columns) if at != self.alias)
        alias = None if self.alias is None else self.columns[self.alias][0]
        return Wanted(self.name, columns, alias, also="is_reference(ref, kind)" if self.name == "record" else "")

    def fits(self, row: Row) -> bool:
        """Whether a row can be one of this table's."""
        if self.has_rowid != (row.rowid is not None) or not 0 < len(row.values) <= len(self.columns):
            return False
        for at, (value, (_, declared, required)) in enumerate(zip(row.values, self.columns, strict=False)):
            if at == self.alias:
                if value is not None:
                    return False
            elif value is None:
                if required:
                    return False
            elif not isinstance(value, _TYPES[declared]):
                return False
        return self.name != "record" or _is_reference(*row.values[1:])

    def stored(self, row: Row) -> tuple[Value, ...]:
        """The row's values, the row id last where a column is its alias; columns added after the row was
        written keep their default.
        """
        if self.alias is None:
            return row.values
        return (*row.values[: self.alias], *row.values[self.alias + 1 :], row.rowid)


def _is_reference(ref: Value = None, kind: Value = None) -> bool:
    return isinstance(ref, str) and kind in _CITABLE and ref.startswith(f"{kind}:") and ref.isprintable()


def _tables(db: sqlite3.Connection) -> dict[str, _Table]:
    """The tables of a fresh database, in the order they were created."""
    found = {}
    names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid").fetchall()
    has_rowid = {row[1]: not row[4] for row in db.execute("PRAGMA table_list")}
    for (name,) in names:
        if name.startswith(("sqlite_", "_sqlite")):
            continue
        columns = db.execute(f"PRAGMA table_info({name})").fetchall()
        alias = None
        if has_rowid[name]:
            keys = [row for row in columns if row[5]]
            alias = keys[0][0] if len(keys) == 1 and keys[0][2] == "INTEGER" else None
        else:
            columns = sorted((row for row in columns if row[5]), key=lambda row: row[5]) + [
                row for row in columns if not row[5]
            ]
        found[name] = _Table(
            name, tuple((row[1], row[2], bool(row[3]) or bool(row[5])) for row in columns), has_rowid[name], alias
        )
    return found


def salvage(damaged: Path, fresh: Path, *, clock_source: str, copied: frozenset[str] = COPIED) -> Salvage:
    """Build a sound database at ``fresh`` from what can be read of ``damaged``.

    Parameters
    ----------
    damaged : Path
        The damaged file; its WAL beside it is read too. Neither is changed.
    fresh : Path
        Must not exist yet.
    clock_source : str
        Recorded where the damaged file no longer tells its own.
    copied : frozenset of str
        Tables whose sound pages SQLite copies; the rows are the same either way.
    """
    initialise(fresh, clock_source=clock_source)
    db = sqlite3.connect(fresh, isolation_level=None)
    pages = PageFile(damaged)
    intact = Intact(damaged, tables=copied, is_reference=_is_reference)
    try:
        # One commit at the end; a fresh file that was cut off is thrown away and built again. So it needs
        # no log, through which every page would be written twice; a card takes longer for that than for all else.
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("BEGIN IMMEDIATE")
        tables = _tables(db)
        shapes = _shapes(db, tables)
        db.execute("DELETE FROM meta")
        indexes = _without_indexes(db)
        trees = pages.trees()
        unreadable = _read_trees(db, pages, trees, tables, intact)
        _read_orphans(db, pages, tables, shapes)
        for statement in indexes:
            db.execute(statement)
        found = _make_whole(db, unreadable=unreadable, clock_source=clock_source)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")
        return found
    finally:
        intact.close()
        pages.close()
        db.close()


def _read_trees(
    db: sqlite3.Connection,
    pages: PageFile,
    trees: dict[str, int],
    tables: dict[str, _Table],
    intact: Intact,
) -> dict[str, int]:
    """Insert what the trees still lead to; returns the pages and cells passed over, by table."""
    unreadable = {}
    for name, table in tables.items():
        before = pages.unreadable
        wanted = table.wanted()
        # Whatever else is wrong with a row shows in its CRC (in a reference, in its form).
        if name in trees and intact.holds(wanted):
            for leaf in intact.copy(db, wanted, list(pages.leaves(trees[name]))):
                _insert(db, table, pages.leaf_rows(leaf))
        elif name in trees:
            _insert(db, table, pages.rows(trees[name]))
        unreadable[name] = pages.unreadable - before + (name not in trees)
    for name, index in _NAMES_BY_INDEX.items():
        if index in trees and unreadable[name]:
            _insert(db, tables[name], _named_rows(name, pages.rows(trees.pop(index))))
    for name, root in trees.items():
        if name not in tables:
            pages.skip(root)
    return unreadable


def _named_rows(table: str, entries: Iterable[Row]) -> Iterator[Row]:
    """Rows of ``record`` or ``vertex`` from the entries (name, row id) of its index."""
    for entry in entries:
        if len(entry.values) == 2 and isinstance(entry.values[0], str) and isinstance(entry.values[1], int):
            name = entry.values[0]
            yield Row(entry.values[1], (None, name, name.partition(":")[0] if table == "record" else None))


def _without_indexes(db: sqlite3.Connection) -> list[str]:
    """Drop the indexes that keep no rule; returns what makes them again. Built at once from all rows an
    index takes a third of what it takes row by row.
    """
    found = db.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql LIKE 'CREATE INDEX%' ORDER BY rowid"
    ).fetchall()
    for name, _ in found:
        db.execute(f"DROP INDEX {name}")
    return [statement for _, statement in found]


def _shapes(db: sqlite3.Connection, tables: dict[str, _Table]) -> Counter[tuple[str, ...]]:
    """How many tables without row ids and indexes have entries of these declared types."""
    shapes = Counter(table.types for table in tables.values() if not table.has_rowid)
    shapes.update(_index_shapes(db, tables))
    return shapes


def _read_orphans(
    db: sqlite3.Connection, pages: PageFile, tables: dict[str, _Table], shapes: Counter[tuple[str, ...]]
) -> None:
    """Insert the rows of leaf pages whose way is broken, into the first table all of them fit.

    A table without row ids whose rows look like those of an index, or of another such table, is
    left out: the household has its copy, marks are counted from frames, the rest is learned again.
    """
    for page in pages.orphans():
        for table in tables.values():
            if table.has_rowid != page.is_table or (not table.has_rowid and shapes[table.types] > 1):
                continue
            if all(len(row.values) == len(table.columns) and table.fits(row) for row in page.rows):
                _insert(db, table, page.rows)
                break


def _index_shapes(db: sqlite3.Connection, tables: dict[str, _Table]) -> Iterator[tuple[str, ...]]:
    """The declared types of every index's entries, those that lead to the row included."""
    for table in tables.values():
        declared = {name: kind for name, kind, _ in table.columns}
        for _, index, _, origin, _ in db.execute(f"PRAGMA index_list({table.name})").fetchall():
            if origin != "pk" or table.has_rowid:  # else the key's index is the table
                columns = db.execute(f"PRAGMA index_xinfo({index})").fetchall()
                yield tuple("INTEGER" if row[1] == -1 else declared[row[2]] for row in columns)


def _insert(db: sqlite3.Connection, table: _Table, rows: Iterable[Row]) -> None:
    """Insert the rows that fit; the first of two with one key stays."""
    for width, alike in groupby((row for row in rows if table.fits(row)), key=lambda row: len(row.values)):
        names = [name for name, _, _ in table.columns[:width]]
        if table.alias is not None:
            names[table.alias :] = [*names[table.alias + 1 :], names[table.alias]]
        sql = f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * width)})"
        db.executemany(sql, map(table.stored, alike))


def _make_whole(db: sqlite3.Connection, *, unreadable: dict[str, int], clock_source: str) -> Salvage:
    """Name, check and connect what was read, and say what is lost."""
    for statement in (_FRAMES_BY_NUMBER, _DAYS_BY_DATE, _EDGES_BY_ENDS):
        db.execute(statement)
    rotten = 0
    for name in CHECKED:
        _, spoilt = rotten_rows(db, name)
        key = "id" if name in ("dead_letter", "heard") else "record"
        db.executemany(f"DELETE FROM {name} WHERE {key} = ?", ((row,) for row in spoilt))
        rotten += len(spoilt)
    restore_household(db)
    db.execute(
        "INSERT OR IGNORE INTO meta (key, value) VALUES ('clock_source', :source)",
        {"source": clock_source},
    )
    _drop_dangling(db)
    db.execute("DELETE FROM meta WHERE key = 'alias_key'")
    for table in ("adjacency", "adjacency_epoch", "adjacency_change", "alias"):  # of rows that may be lost: made again
        db.execute(f"DELETE FROM {table}")
    if unreadable["mark"]:
        db.execute(_MARKS_FROM_FRAMES)
    lost: dict[str, int] = defaultdict(int)
    lost_dates = set()
    uncited = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} WHERE record = :record)" for table in CITING)
    for record, ref, kind in db.execute(_LOST_RECORDS).fetchall():
        lost[kind] += 1
        if kind == "day":
            lost_dates.add(ref.rpartition("/")[2])
        # A cited reference stays: the citation says what it stood on, and the row may come again.
        db.execute(f"DELETE FROM record WHERE id = :record AND {uncited}", {"record": record})
    tx = Transaction(db)
    if unreadable["frame"] or lost["event"] or unreadable["sealed_day"]:
        tx.seal(until_ms=2**62, but_dates=frozenset(lost_dates))
    kept = tuple((name, db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in unreadable)
    found = Salvage(kept, tuple(sorted((kind, n) for kind, n in lost.items() if n)), rotten, frozenset(lost_dates))
    tx.set_alarm("damage", found.text)
    tx.set_meta("rebuild_due", "1")
    return found


def _drop_dangling(db: sqlite3.Connection) -> None:
    """Delete rows that refer to rows that were not saved, until none is left."""
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    links = [(name, *row[2:5]) for name in names for row in db.execute(f"PRAGMA foreign_key_list({name})").fetchall()]
    gone = 1
    while gone:
        gone = sum(
            db.execute(
                f"DELETE FROM {table} WHERE {column} IS NOT NULL "
                f"AND {column} NOT IN (SELECT {target or column} FROM {parent})"
            ).rowcount
            for table, parent, column, target in links
        )
