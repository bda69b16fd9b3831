"""A read-only view of the database, fixed at the instant it is opened.

The connection cannot write (``mode=ro``, ``query_only``) and holds one read transaction, so
that an answer and the records it cites come from the same state. While it does, the WAL cannot
be cut back, so a snapshot lives on a lease: when that is over it gives its state up and every
further read raises.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from typing import TYPE_CHECKING, NoReturn, Self

from gateway.errors import DatabaseUnreadable, StoreError
from gateway.store.reads import Reader

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["LEASE_S", "Snapshot"]

LEASE_S = 60.0
"""No question takes a tenth of this; at 50 events a second the WAL grows by 12 MB meanwhile
(measured: 4 KB an event in batches of 20)."""


class _Expired:
    """Stands where the connection of an expired snapshot stood."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s

    def execute(self, *_: object) -> NoReturn:
        raise StoreError(
            f"a snapshot must be read within {self._lease_s:g} s, sooner where the WAL has grown; this one was ended"
        )


class Snapshot(Reader):
    """Open with ``with``; read from the thread that opened it.

    Parameters
    ----------
    path : Path
        The database file.
    lease_s : float
        How long the state is held, at most.

    Raises
    ------
    DatabaseUnreadable
        The file cannot be read as a database.
    """

    def __init__(self, path: Path, *, lease_s: float = LEASE_S) -> None:
        try:
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro",
                uri=True,
                isolation_level=None,
                check_same_thread=False,  # the lease ends in a thread of its own
            )
        except sqlite3.Error as problem:
            raise DatabaseUnreadable(f"{path} must be a readable database, but SQLite says: {problem}") from None
        super().__init__(connection)
        self._connection = connection
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM meta").fetchone()
        except sqlite3.DatabaseError as problem:
            connection.close()
            raise DatabaseUnreadable(
                f"{path} must be a readable scentwalk database, but SQLite says: {problem}"
            ) from None
        self._ending = threading.Lock()
        self._lease = threading.Timer(lease_s, self.expire)
        self._lease.name = "snapshot-lease"
        self._lease.daemon = True
        self._lease.start()

    def expire(self) -> None:
        """Give the state up. Any thread may; a read that is under way ends with an error of SQLite."""
        with self._ending:
            self._db = _Expired(self._lease.interval)  # type: ignore[assignment]  # answers `execute` alone
            # Closing it here could pull a statement from under the thread that is reading it.
            with contextlib.suppress(sqlite3.ProgrammingError, sqlite3.OperationalError):  # closed, or no transaction
                self._connection.interrupt()
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """End the read transaction. Safe to call twice."""
        self._lease.cancel()
        with self._ending:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
