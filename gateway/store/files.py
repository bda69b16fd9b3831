"""What a database file is: whose, how old, how it begins, and how it gets to the disk.

Whose it is is read from its first bytes, before SQLite may touch it: a file of another
program or of a later release is refused with an error that says which, and stays byte for
byte as it was.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from gateway.errors import DatabaseTooNew, DatabaseUnreadable, StoreError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "beside",
    "check_readable",
    "initialise",
    "is_empty",
    "is_ours_damaged",
    "must_be_ours",
    "read_only",
    "sync",
]

APPLICATION_ID = 0x5363_656E  # "Scen": PRAGMA application_id, so that another program's file is refused
SCHEMA_VERSION = 1  # PRAGMA user_version, equals the number of released steps

_MAGIC = b"SQLite format 3\0"
_SECTOR_BYTES = 512
_CARRIED = b"CREATE TABLE record ("
"""A piece of the schema's text; a database whose first sector is gone still holds it."""


def beside(path: Path, suffix: str) -> Path:
    """The file of that suffix beside a database: ``hub.db`` and ``-wal`` give ``hub.db-wal``."""
    return path.with_name(path.name + suffix)


def is_empty(path: Path) -> bool:
    """Whether there is no database yet. A file that was cut off at its birth has no bytes: its
    application id is its first write.
    """
    return not path.exists() or path.stat().st_size == 0


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def is_ours_damaged(path: Path) -> bool:
    """Whether a file that SQLite cannot read was a database of this program."""
    header = _first_bytes(path, 100)
    if header[:16] == _MAGIC:
        return header[68:72] == APPLICATION_ID.to_bytes(4, "big")
    # Only a lost first sector explains a database without its head; anything else is somebody's file.
    return _first_bytes(path, _SECTOR_BYTES) == bytes(_SECTOR_BYTES) and _holds(path, _CARRIED)


def must_be_ours(path: Path) -> None:
    """Raise unless an existing file is a database of this program that this release can read.

    Raises
    ------
    DatabaseUnreadable
        Not SQLite, damaged, or another program's.
    DatabaseTooNew
        Written by a later release.
    """
    header = _first_bytes(path, 100)
    if header[:16] != _MAGIC:
        raise DatabaseUnreadable(f"{path} must be a scentwalk database, but is no SQLite file; nothing was written")
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise DatabaseUnreadable(
            f"{path} must be a scentwalk database (application id {APPLICATION_ID:#x}), has {application:#x}; "
            "nothing was written"
        )
    try:
        connection = read_only(path)
        try:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError as problem:
        raise DatabaseUnreadable(f"{path} must be a readable scentwalk database, but SQLite says: {problem}") from None
    if version > SCHEMA_VERSION:
        raise DatabaseTooNew(
            f"{path} must have schema version {SCHEMA_VERSION} or older, has {version}: it was written by a "
            "later release of scentwalk; nothing was written"
        )


def check_readable(path: Path) -> None:
    """Raise unless ``path`` is an existing scentwalk database this release can read."""
    if not path.exists():
        raise DatabaseUnreadable(f"a database must exist at {path}, found none")
    must_be_ours(path)


def initialise(path: Path, *, clock_source: str) -> None:
    """Create the database file if it is absent, else bring its schema up to date.

    Parameters
    ----------
    path : Path
        The file; its folder must exist.
    clock_source : str
        Where its instants come from, kept for good: ``system``, ``simulation`` or ``import``.

    Raises
    ------
    DatabaseUnreadable, DatabaseTooNew
        The existing file is not ours to write.
    """
    from gateway.store.schema import apply_steps  # noqa: PLC0415  # a question reads, and need not wait for it

    fresh = is_empty(path)
    if not fresh:
        must_be_ours(path)
    elif not path.parent.is_dir():
        raise StoreError(f"the folder of the database must exist, found none at {path.parent}")
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        if fresh:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")  # also where a backup was moved here by hand
        apply_steps(connection)
        if connection.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):  # on a full disk, write nothing
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(
            "INSERT INTO meta (key, value) VALUES ('clock_source', :source) ON CONFLICT (key) DO NOTHING",
            {"source": clock_source},
        )
    finally:
        connection.close()


def sync(path: Path) -> None:
    """Return when a file's content, and its name in its folder, are on the disk."""
    for target in (path, path.resolve().parent):
        descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _first_bytes(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as problem:
        raise DatabaseUnreadable(f"{path} must be a readable file, but: {problem.strerror}") from None


def _holds(path: Path, words: bytes) -> bool:
    """Whether these bytes stand anywhere in a file."""
    kept = b""
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            if words in kept + chunk:
                return True
            kept = chunk[-len(words) :]
    return False
