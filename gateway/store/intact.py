"""Copies what is intact of a damaged database by SQLite itself; names the leaves it could not.

Reading pages in Python takes forty times as long as SQLite does, and nearly all of a damaged
file is sound. So the leaves of a table are found by their headers, runs of them are counted by
SQLite, and what counts right is copied. A run that counts wrong, or that SQLite objects to,
is halved; a single leaf that stays wrong is handed back, to be read cell by cell.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gateway.store.files import read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gateway.store.pages import Leaf

__all__ = ["Intact", "Wanted"]

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TYPEOF = {"INTEGER": "'integer'", "REAL": "'real', 'integer'", "TEXT": "'text'", "BLOB": "'blob'"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table with row ids and what its rows must be: (column, declared type, whether it must be
    there), without the row id itself, whose column is ``alias``. ``also`` is a further condition.
    """

    table: str
    columns: tuple[tuple[str, str, bool], ...]
    alias: str | None
    also: str = ""

    def condition(self) -> str:
        """SQL that holds for every row that can be one of this table's."""
        found = [
            f"typeof({name}) IN ({_TYPEOF[declared]}{'' if required else ', ' + chr(39) + 'null' + chr(39)})"
            for name, declared, required in self.columns
        ]
        return " AND ".join([*found, *([self.also] if self.also else [])])

    def names(self) -> str:
        """The columns, the row id first."""
        return ", ".join([*([self.alias] if self.alias else []), *(name for name, _, _ in self.columns)])


class Intact:
    """The damaged file as SQLite sees it. Nothing is written to it.

    A connection of its own: after SQLite has met damage in an attached file, it refuses every
    write of that connection.

    Parameters
    ----------
    damaged : Path
    tables : frozenset of str
        Those to copy; none where SQLite does not even get at the schema.
    is_reference : callable
        Whether a (reference, kind) can be one: the SQL function ``is_reference``.
    """

    def __init__(self, damaged: Path, *, tables: frozenset[str], is_reference: Callable[..., bool]) -> None:
        self._tables: frozenset[str] = frozenset()
        self._source = read_only(damaged)
        try:
            self._source.create_function("is_reference", 2, is_reference, deterministic=True)
            self._source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            self._source.execute("PRAGMA cell_size_check = ON")
        except sqlite3.Error:  # its first pages are gone: everything is read page by page
            return
        self._tables = tables

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def holds(self, wanted: Wanted) -> bool:
        """Whether the table is one to copy, and has the columns of today in the damaged file."""
        if wanted.table not in self._tables:
            return False
        try:
            rows = self._source.execute(f"PRAGMA table_info({wanted.table})").fetchall()
        except sqlite3.Error:
            return False
        return {row[1] for row in rows} == set(wanted.names().split(", "))

    def copy(self, db: sqlite3.Connection, wanted: Wanted, leaves: list[Leaf]) -> Iterator[Leaf]:
        """Copy what these leaves hold into ``db``, in their order; yields each leaf that is not wholly
        sound, in its place. The first of two rows with one key stays.
        """
        if not leaves or (self._counts_right(wanted, leaves) and self._copied(db, wanted, leaves)):
            return
        if len(leaves) == 1:
            yield leaves[0]
            return
        half = len(leaves) // 2
        yield from self.copy(db, wanted, leaves[:half])
        yield from self.copy(db, wanted, leaves[half:])

    def _copied(self, db: sqlite3.Connection, wanted: Wanted, leaves: list[Leaf]) -> bool:
        """Whether SQLite could read them all; what was copied before it could not is copied again
        without a trace.
        """
        places = ", ".join("?" for _ in wanted.names().split(", "))
        try:
            rows = self._source.execute(
                f"SELECT {wanted.names()} FROM {wanted.table} NOT INDEXED WHERE rowid > :above AND rowid <= :last "
                "ORDER BY rowid",
                {"above": leaves[0].above, "last": leaves[-1].last},
            )
            db.executemany(f"INSERT OR IGNORE INTO {wanted.table} ({wanted.names()}) VALUES ({places})", rows)
        except sqlite3.OperationalError as problem:  # text that is no text any more
            if problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:  # of the fresh file
                raise
            return False
        except sqlite3.DatabaseError as problem:
            if problem.sqlite_errorcode & 0xFF in _DAMAGE:
                return False
            raise
        return True

    def _counts_right(self, wanted: Wanted, leaves: list[Leaf]) -> bool:
        """Whether SQLite finds as many fitting rows there as the leaves say they hold."""
        if any(before.last != after.above for before, after in pairwise(leaves)):
            return False  # a page between them is lost
        try:
            (count,) = self._source.execute(
                f"SELECT count(*) FROM {wanted.table} NOT INDEXED WHERE rowid > :above AND rowid <= :last "
                f"AND {wanted.condition()}",
                {"above": leaves[0].above, "last": leaves[-1].last},
            ).fetchone()
        except sqlite3.Error:
            return False
        return bool(count == sum(leaf.count for leaf in leaves))
