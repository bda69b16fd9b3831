"""Opens the database file: as the one writer, or for a read-only snapshot.

The writer holds ``flock`` on ``FILE.lock`` for as long as it is open, so two gateways can
never write one file. A file that is damaged, belongs to another program or was written by
a later release is refused with an error that says which, and nothing is written to it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import sqlite_utils

from gateway.errors import DatabaseBusy, DatabaseTooNew, DatabaseUnreadable, StoreError
from gateway.store.schema import APPLICATION_ID, SCHEMA_VERSION, migrations
from gateway.store.snapshot import Snapshot
from gateway.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_BUSY_MS = 5_000
_WAL_LIMIT_BYTES = 8 * 2**20
"""A WAL is cut back to this size at a checkpoint; a reader may hold it longer, never for good."""


def _header(path: Path) -> tuple[int, int]:
    """(application id, schema version) of an existing file, opened read-only.

    Raises
    ------
    DatabaseUnreadable
        The file cannot be opened as SQLite.
    """
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            application = int(connection.execute("PRAGMA application_id").fetchone()[0])
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError as problem:
        raise DatabaseUnreadable(f"{path} must be a readable scentwalk database, but SQLite says: {problem}") from None
    return application, version


def _must_be_ours(path: Path) -> None:
    application, version = _header(path)
    if application != APPLICATION_ID:
        raise DatabaseUnreadable(
            f"{path} must be a scentwalk database (application id {APPLICATION_ID:#x}), has {application:#x}; "
            "nothing was written"
        )
    if version > SCHEMA_VERSION:
        raise DatabaseTooNew(
            f"{path} must have schema version {SCHEMA_VERSION} or older, has {version}: it was written by a "
            "later release of scentwalk; nothing was written"
        )


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
    fresh = not path.exists() or path.stat().st_size == 0
    if not fresh:
        _must_be_ours(path)
    elif not path.parent.is_dir():
        raise StoreError(f"the folder of the database must exist, found none at {path.parent}")
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        if fresh:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        migrations.apply(sqlite_utils.Database(connection))
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(
            "INSERT INTO meta (key, value) VALUES ('clock_source', :source) ON CONFLICT (key) DO NOTHING",
            {"source": clock_source},
        )
        connection.commit()
    finally:
        connection.close()


class Database:
    """The one writer of a database file. Not thread-safe: one thread owns it.

    Parameters
    ----------
    path : Path
        The file, created if it is absent.
    clock_source : str
        Recorded in a new file: ``system``, ``simulation`` or ``import``.

    Raises
    ------
    DatabaseBusy
        Another process writes this file.
    DatabaseUnreadable, DatabaseTooNew
        The file is not ours to write.
    """

    def __init__(self, path: Path, *, clock_source: str = "system") -> None:
        self.path = path
        self._lock_fd = self._lock()
        try:
            initialise(path, clock_source=clock_source)
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in (
                "foreign_keys = ON",
                "synchronous = FULL",
                f"busy_timeout = {_BUSY_MS}",
                f"journal_size_limit = {_WAL_LIMIT_BYTES}",
                "trusted_schema = OFF",
            ):
                self._connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            os.close(self._lock_fd)
            raise

    def _lock(self) -> int:
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise StoreError(f"the writer's lock must be creatable, but {lock}: {problem.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise DatabaseBusy(f"{self.path} must have one writer, but another process holds {lock.name}") from None
        return descriptor

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All or nothing: durable when the block ends, untouched where it raises."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield Transaction(self._connection)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def snapshot(self) -> Snapshot:
        """A read-only view of this file as it is now."""
        return Snapshot(self.path)

    def close(self) -> None:
        """Close the file and give up the writer's lock. Safe to call twice."""
        if self._lock_fd < 0:
            return
        self._connection.close()
        os.close(self._lock_fd)
        self._lock_fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_readable(path: Path) -> None:
    """Raise unless ``path`` is an existing scentwalk database this release can read."""
    if not path.exists():
        raise DatabaseUnreadable(f"a database must exist at {path}, found none")
    _must_be_ours(path)
