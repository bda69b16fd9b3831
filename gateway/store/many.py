"""Stores many rows by few statements: rows in, one step of SQLite for up to 64 of them.

A row a statement costs half as long again, and at each the thread gives up Python's lock and has to
wait for it, which under load takes longer than the row.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

__all__ = ["insert_rows"]

_MOST = 64
"""Rows of one statement: 64 of a frame's 18 columns are 1,152 values, SQLite takes 32,766; more is no faster."""


@lru_cache(maxsize=64)
def _sql(table: str, columns: tuple[str, ...], rows: int) -> str:
    places = ", ".join(["(" + ", ".join("?" * len(columns)) + ")"] * rows)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {places}"


def insert_rows(
    db: sqlite3.Connection,
    table: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str | int | None, ...]],
) -> None:
    """Insert rows in the order given, inside the caller's transaction.

    Statements are of 64, 32, 16... rows, so that few different ones are ever prepared.

    Raises
    ------
    sqlite3.IntegrityError
        A row breaks a rule of the table.
    """
    at, size = 0, _MOST
    while at < len(rows):
        while size > len(rows) - at:
            size //= 2
        db.execute(_sql(table, columns, size), tuple(chain.from_iterable(rows[at : at + size])))
        at += size
