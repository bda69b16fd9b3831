"""One thread in which everything is written, one transaction at a time.

The event loop hands in a function of a `Transaction` and awaits what it returns; when it
does, the transaction is on the disk. Every writer of the process shares this one object.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gateway.errors import RowsRefused, StoreError
from gateway.store.database import Database
from gateway.store.transaction import Transaction

__all__ = ["Writer"]

Result = TypeVar("Result")


class Writer:
    """Runs writes of an open database in its own thread.

    Parameters
    ----------
    database : Database
        Open; stays the caller's to close, after `close`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")

    async def run(self, write: Callable[[Transaction], Result]) -> Result:
        """The result of ``write``, once its transaction is durable.

        Raises
        ------
        RowsRefused
            A row breaks a rule of the schema; nothing was written.
        StoreError
            SQLite could not write (disk full, input/output error); nothing was written.
        """
        running = asyncio.get_running_loop().run_in_executor(self._thread, self._in_transaction, write)
        return await asyncio.shield(running)  # a cancelled caller does not cancel a commit

    async def run_alone(self, work: Callable[[Database], Result]) -> Result:
        """The result of work on the whole database (a restore), between two transactions.

        Raises
        ------
        StoreError
            What the work raised.
        """
        running = asyncio.get_running_loop().run_in_executor(self._thread, work, self.database)
        return await asyncio.shield(running)

    def _in_transaction(self, write: Callable[[Transaction], Result]) -> Result:
        try:
            with self.database.transaction() as tx:
                return write(tx)
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, OverflowError) as problem:
            raise RowsRefused(f"every row must keep the schema's rules, SQLite refused one: {problem}") from problem
        except sqlite3.Error as problem:
            raise StoreError(f"{self.database.path} must be writable, SQLite says: {problem}") from problem

    def close(self) -> None:
        """Wait for what was handed in, then end the thread. Safe to call twice."""
        self._thread.shutdown(wait=True)
