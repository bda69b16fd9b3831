"""Says whether a database is sound: its pages, its references and the CRC of its rows.

Reads only, while the hub runs as well. What it finds is a value, `Report`; a damaged database
is a finding, not an error.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.store.checksums import CHECKED, row_crc
from gateway.store.files import check_readable, read_only

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Report", "page_faults", "rotten_rows", "verify"]

_MOST_FAULTS = 20
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)


@dataclass(frozen=True, slots=True)
class Report:
    """What `verify` found.

    ``pages`` are SQLite's own sentences about broken pages (at most 20); ``rotten`` is, per
    table, (rows checked, row ids whose content does not match its CRC); ``dangling`` counts
    rows that refer to nothing, by table.
    """

    pages: tuple[str, ...]
    rotten: tuple[tuple[str, int, tuple[int, ...]], ...]
    dangling: tuple[tuple[str, int], ...]

    @property
    def is_sound(self) -> bool:
        return not self.pages and not self.dangling and not any(rows for _, _, rows in self.rotten)

    def lines(self) -> tuple[str, ...]:
        """The findings as an owner reads them."""
        found = [f"pages: {text}" for text in self.pages] or ["pages: sound"]
        for table, checked, rows in self.rotten:
            spoilt = f", {len(rows)} damaged (row {', '.join(map(str, rows[:5]))})" if rows else ", all as written"
            found.append(f"{table}: {checked} rows{spoilt}")
        found += [f"{table}: {count} rows refer to nothing" for table, count in self.dangling]
        return tuple(found)


def verify(path: Path) -> Report:
    """Check a whole database file: every page, every reference, every CRC.

    Raises
    ------
    DatabaseUnreadable, DatabaseTooNew
        The file is not a database of ours at all.
    """
    check_readable(path)
    connection = read_only(path)
    try:
        connection.execute("BEGIN")
        faults = page_faults(connection, check="integrity_check", most=_MOST_FAULTS)
        if faults:
            return Report(faults, (), ())
        rotten = tuple((table, *rotten_rows(connection, table)) for table in CHECKED)
        counted: dict[str, int] = {}
        for table, *_ in connection.execute("PRAGMA foreign_key_check"):
            counted[table] = counted.get(table, 0) + 1
        return Report((), rotten, tuple(sorted(counted.items())))
    finally:
        connection.close()


def page_faults(connection: sqlite3.Connection, *, check: str, most: int) -> tuple[str, ...]:
    """What SQLite's own check objects to, at most so many sentences; none = sound.

    Parameters
    ----------
    check : str
        ``quick_check``, or ``integrity_check``, which also compares every index with its table.
    most : int

    Raises
    ------
    sqlite3.Error
        The file cannot be read for a reason other than damage.
    """
    try:
        found = tuple(str(text) for (text,) in connection.execute(f"PRAGMA {check}({most})"))
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorcode & 0xFF not in _DAMAGE:
            raise
        return (str(problem),)
    return () if found == ("ok",) else found


def rotten_rows(connection: sqlite3.Connection, table: str) -> tuple[int, tuple[int, ...]]:
    """(rows checked, row ids that do not match their CRC) of one of the `CHECKED` tables."""
    checked, rotten = 0, []
    for *values, crc, row in connection.execute(CHECKED[table]):
        checked += 1
        if row_crc(tuple(values)) != crc:
            rotten.append(int(row))
    return checked, tuple(rotten)
