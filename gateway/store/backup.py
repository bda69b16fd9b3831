"""Backs a database up and restores it, while the hub runs as well.

A backup is one state of the whole file, checked before it takes its name. A restore is one
transaction: whoever reads meanwhile sees the old state to its end, and a power cut leaves
either the old or the new one.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from gateway.errors import DatabaseUnreadable, StoreError
from gateway.store.files import beside, check_readable, initialise, read_only, sync
from gateway.store.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.store.database import Database

__all__ = ["backup", "restore"]


def backup(source: Path, target: Path) -> None:
    """Write one state of a database to a file of its own; an older backup there is replaced.

    Reads under one snapshot (``VACUUM INTO``), so a steady writer cannot hold it up, unlike
    SQLite's stepwise copy, which begins again at each foreign write.

    Parameters
    ----------
    source : Path
        The database, written by a running hub or not.
    target : Path
        Absent, or an older backup. Its folder needs room for the whole.

    Raises
    ------
    DatabaseUnreadable, DatabaseTooNew
        The source is not a database this release can read, or is damaged.
    StoreError
        The target cannot be written or is something else than a backup.
    """
    check_readable(source)
    if beside(target, ".lock").exists():
        raise StoreError(f"a backup must go to a file of its own, but {target} is a hub's database")
    if target.exists():
        check_readable(target)
    part = beside(target, ".part")
    _copy(source, part)
    _must_be_sound(part, f"{source} must be sound to be backed up")
    sync(part)
    for suffix in ("-wal", "-shm"):  # of a backup that somebody opened: they belong to the old content
        beside(target, suffix).unlink(missing_ok=True)
    part.replace(target)
    sync(target)


def restore(source: Path, database: Database) -> None:
    """Make the open database what a backup says, in one transaction.

    Marks do not go back: devices have let go of what was acknowledged, and a mark that fell
    behind them would wait for records that never come.

    Parameters
    ----------
    source : Path
        A backup of this or an earlier release; it is not changed.
    database : Database
        Open for writing, used by this thread alone. Its folder needs room for the whole twice.

    Raises
    ------
    DatabaseUnreadable, DatabaseTooNew
        The backup is no database this release can read, or is damaged; nothing was changed.
    StoreError
        It could not be written; nothing was changed.
    """
    check_readable(source)
    if source.resolve() == database.path.resolve():
        raise StoreError(f"a restore must come from a backup, but {source} is the database itself")
    part = beside(database.path, ".restoring")
    try:
        _copy(source, part)
        initialise(part, clock_source="system")
        _must_be_sound(part, f"{source} must be sound to be restored; nothing was changed")
        database.become(part)
    finally:
        _forget(part)


def _copy(source: Path, part: Path) -> None:
    """One state of a database, packed, in a file that must not keep its name."""
    _forget(part)
    try:
        connection = read_only(source)
        try:
            connection.execute("PRAGMA query_only = OFF")  # of the source; the connection cannot write it anyway
            connection.execute("VACUUM INTO :part", {"part": str(part)})
        finally:
            connection.close()
    except sqlite3.Error as problem:
        _forget(part)
        if problem.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise DatabaseUnreadable(f"{source} must be sound to be copied, but SQLite says: {problem}") from problem
        raise StoreError(f"{part} must be writable, but SQLite says: {problem}") from problem


def _must_be_sound(part: Path, expectation: str) -> None:
    report = verify(part)
    if not report.is_sound:
        _forget(part)
        raise DatabaseUnreadable(f"{expectation}, but: {'; '.join(report.lines())}")


def _forget(part: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        beside(part, suffix).unlink(missing_ok=True)
