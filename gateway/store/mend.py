"""At start: is the file sound? If not, it is kept aside and what can be read serves again.

The fresh file is whole and on the disk before the damaged one is moved, and every step can be
cut off and begun again: while ``FILE.salvaged`` exists the exchange is not over.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from gateway.errors import StoreError
from gateway.store.files import beside, is_empty, is_ours_damaged, must_be_ours, read_only, sync
from gateway.store.salvage import Salvage, salvage
from gateway.store.verify import page_faults, rotten_rows

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["damage", "mend"]

_ASIDE_KEPT = 3
"""Damaged files kept; a dying card would otherwise fill itself with them. The oldest goes."""
_CHECKED_AT_START = ("dead_letter", "day", "sealed_day", "text_record")
"""Their CRCs are checked at each start. A frame is shorter than a sector, so broken frames show
in the pages already; all of them are checked by ``scentwalk check``."""


def mend(path: Path, *, clock_source: str) -> Salvage | None:
    """Check an existing database and replace it by what can be salvaged where it is damaged.

    The caller holds the writer's lock.

    Parameters
    ----------
    path : Path
        The file; an absent or empty one is sound.
    clock_source : str
        Recorded where the damaged file no longer tells its own.

    Returns
    -------
    Salvage or None
        What was saved and lost; None where the file is sound.

    Raises
    ------
    DatabaseUnreadable, DatabaseTooNew
        The file is not ours to mend.
    """
    ready = beside(path, ".salvaged")
    if ready.exists():
        _exchange(path, ready)
    if is_empty(path):
        return None
    if not damage(path):
        return None
    fresh = beside(path, ".salvaging")
    try:
        for suffix in ("", "-wal", "-shm", "-journal"):  # of an attempt that was cut off
            beside(fresh, suffix).unlink(missing_ok=True)
        found = salvage(path, fresh, clock_source=clock_source)
    except (OSError, sqlite3.Error) as problem:
        raise StoreError(
            f"{path} is damaged and must be copied to be mended, but {problem}; nothing of it was changed"
        ) from problem
    sync(fresh)
    fresh.replace(ready)
    sync(ready)
    _exchange(path, ready)
    return found


def damage(path: Path) -> tuple[str, ...]:
    """What is broken in a database of ours; nothing where it is sound.

    Raises
    ------
    DatabaseUnreadable, DatabaseTooNew
        The file is another program's, a later release's, or no database.
    StoreError
        It cannot be read for another reason than damage.
    """
    try:
        connection = read_only(path)
    except sqlite3.Error as problem:
        if is_ours_damaged(path):
            return (str(problem),)
        must_be_ours(path)
        raise StoreError(f"{path} must be readable, but SQLite says: {problem}") from problem
    try:
        if _cannot_begin(connection):
            if is_ours_damaged(path):
                return ("the first page cannot be read",)
            must_be_ours(path)
        must_be_ours(path)
        faults = page_faults(connection, check="quick_check", most=1)
        if faults:
            return faults
        return tuple(
            f"{table}: row {rows[0]} does not match its CRC"
            for table in _CHECKED_AT_START
            if (rows := rotten_rows(connection, table)[1])
        )
    except sqlite3.Error as problem:
        raise StoreError(f"{path} must be readable, but SQLite says: {problem}") from problem
    finally:
        connection.close()


def _cannot_begin(connection: sqlite3.Connection) -> bool:
    """Whether SQLite does not even get at the schema."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError:
        return True
    return False


def _exchange(path: Path, ready: Path) -> None:
    """Move the damaged file with its WAL aside and the salvaged one into its place."""
    if path.exists():
        numbers = sorted(_asides(path))
        number = numbers[-1] + 1 if numbers else 1
        for old in numbers[: max(0, len(numbers) + 1 - _ASIDE_KEPT)]:
            for suffix in ("", "-wal"):
                beside(path, f".damaged-{old}{suffix}").unlink(missing_ok=True)
        aside = beside(path, f".damaged-{number}")
        # The database goes first: a WAL without its database is harmless, the other way round is not.
        path.replace(aside)
        sync(aside)
    else:
        aside = beside(path, f".damaged-{max(_asides(path), default=1)}")
    log = beside(path, "-wal")
    if log.exists():
        log.replace(beside(aside, "-wal"))
    beside(path, "-shm").unlink(missing_ok=True)
    ready.replace(path)
    sync(path)


def _asides(path: Path) -> list[int]:
    """Numbers of the damaged files that stand beside a database."""
    head = f"{path.name}.damaged-"
    endings = [file.name[len(head) :] for file in path.parent.iterdir() if file.name.startswith(head)]
    return [int(ending) for ending in endings if ending.isdecimal()]
