"""A read-only view of the database, fixed at the instant it is opened.

The connection cannot write (``mode=ro``, ``query_only``) and holds one read transaction,
so that an answer and the records it cites come from the same state.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Self

from gateway.errors import DatabaseUnreadable
from gateway.store.reads import Reader

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["Snapshot"]


class Snapshot(Reader):
    """Open with ``with``; usable from the thread that opened it.

    Raises
    ------
    DatabaseUnreadable
        The file cannot be read as a database.
    """

    def __init__(self, path: Path) -> None:
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
        except sqlite3.Error as problem:
            raise DatabaseUnreadable(f"{path} must be a readable database, but SQLite says: {problem}") from None
        super().__init__(connection)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM meta").fetchone()
        except sqlite3.DatabaseError as problem:
            connection.close()
            raise DatabaseUnreadable(
                f"{path} must be a readable scentwalk database, but SQLite says: {problem}"
            ) from None

    def close(self) -> None:
        """End the read transaction. Safe to call twice."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
