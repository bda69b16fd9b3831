"""A second copy of the household's rows, kept in one row of ``meta``.

The household is a few dozen rows that an owner typed in, each table on one page of its own: a
single broken sector could take the home's zone or a pet, and nothing measures those again.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from gateway.store.checksums import row_crc

if TYPE_CHECKING:
    from gateway.store.pages import Value

__all__ = ["copy_household", "restore_household"]

_KEY = "household_copy"
_COLUMNS = {
    "zone": ("valid_from_ms", "zone"),
    "pet": ("id", "name", "species", "breed", "born", "sex", "neutered", "aliases"),
    "pet_status": ("pet", "valid_from_ms", "status"),
    "device": ("id", "kind", "name", "aliases"),
    "binding": ("device", "pet", "valid_from_ms", "valid_to_ms"),
    "place": ("id", "name", "kind", "aliases"),
    "person": ("id", "name", "role", "phone"),
    "food": ("id", "name", "kind", "code", "aliases", "product", "owned"),
}


def copy_household(db: sqlite3.Connection) -> None:
    """Write the copy anew, inside the caller's transaction."""
    rows = {
        table: db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2").fetchall()
        for table, columns in _COLUMNS.items()
    }
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    db.execute(
        "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        {"key": _KEY, "value": f"{row_crc((text,)):08x} {text}"},
    )


def restore_household(db: sqlite3.Connection) -> None:
    """Add what the copy holds and its tables lack; a copy that does not match its CRC adds nothing."""
    row = db.execute("SELECT value FROM meta WHERE key = :key", {"key": _KEY}).fetchone()
    crc, _, text = ("", "", "") if row is None else row[0].partition(" ")
    if not text or crc != f"{row_crc((text,)):08x}":
        return
    copied: dict[str, list[list[Value]]] = json.loads(text)
    for table, columns in _COLUMNS.items():
        places = ", ".join(f":{name}" for name in columns)
        db.executemany(
            f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})",
            (dict(zip(columns, values, strict=True)) for values in copied.get(table, ())),
        )
