"""The SQL behind names: one table of aliases, inflected when written, with every reading kept.

A process that answers one question reads the few rows that begin with its words instead of
building the vocabulary. The rows are made again whenever the vocabulary changes; their key,
in ``meta``, says of which vocabulary they are.

Two bases, one for readers and one for the writer, so that `Reader` and `Transaction` stay
one class each for their callers. Never made on their own.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AliasReads", "AliasWrites"]

_KEY = "alias_key"

_Row = tuple[str, str, str, str, str]


class AliasReads:
    """Reads of the alias table."""

    _db: sqlite3.Connection

    def aliases_key(self) -> str | None:
        """Which vocabulary the kept aliases are of; None where none are kept."""
        row = self._db.execute("SELECT value FROM meta WHERE key = :key", {"key": _KEY}).fetchone()
        return None if row is None else str(row[0])

    def aliases_beginning(self, word: str) -> list[_Row]:
        """Rows (first word, form, lexicon, kind, target) of the aliases that begin with a word."""
        return self._db.execute(
            "SELECT first, form, lexicon, kind, target FROM alias WHERE first = :word "
            "ORDER BY form, lexicon, kind, target",
            {"word": word},
        ).fetchall()

    def aliases_in(self, lexicon: str) -> list[_Row]:
        """Every row of one lexicon, by form."""
        return self._db.execute(
            "SELECT first, form, lexicon, kind, target FROM alias WHERE lexicon = :lexicon ORDER BY form, kind, target",
            {"lexicon": lexicon},
        ).fetchall()


class AliasWrites:
    """Writes of the alias table."""

    _db: sqlite3.Connection

    def save_aliases(self, rows: Iterable[_Row], *, key: str) -> None:
        """Keep these aliases and no others; ``key`` says of which vocabulary they are."""
        self._db.execute("DELETE FROM alias")
        self._db.executemany(
            "INSERT INTO alias (first, form, lexicon, kind, target) VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        self._db.execute(
            "INSERT INTO meta (key, value) VALUES (:key, :value) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            {"key": _KEY, "value": key},
        )
