"""Opens the database file: as the one writer, or for a read-only snapshot.

The writer holds ``flock`` on ``FILE.lock`` for as long as it is open, so two gateways can
never write one file. A file that belongs to another program or was written by a later release
is refused with an error that says which, and nothing is written to it. A damaged one is kept
aside and what can be read of it serves on.

Nothing grows for ever here: the WAL is cut back by the writer, and where the disk is full the
ballast goes first, then the oldest raw rows that nobody cites.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from gateway.errors import DatabaseBusy, StoreError
from gateway.store.files import beside, initialise
from gateway.store.mend import mend
from gateway.store.pages import PAGE_BYTES
from gateway.store.room import Ballast, free_bytes
from gateway.store.snapshot import LEASE_S, Snapshot
from gateway.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from gateway.model import Household

__all__ = ["WAL_LIMIT_BYTES", "Database"]

_BUSY_MS = 5_000
WAL_LIMIT_BYTES = 8 * 2**20
"""Beyond this the writer insists on a new WAL; a reader may hold it off for as long as a
snapshot may live, never for good."""
_WAL_ENOUGH = 4
"""At so many times the limit every snapshot of this process has to give up, whatever its lease."""
_WAL_TOLD = 8
"""At so many times the limit, which only another program's reader can bring about, it is said."""
_INSIST_MS = 250  # how long it then waits for readers; ingest waits with it
_CHECKPOINT_PAGES = 1000
"""Pages of WAL before a checkpoint, SQLite's own default; fewer where the ballast is small, since
it must hold what a checkpoint adds to the file (a quarter, so that one large commit fits too)."""
_UNLIMITED_PAGES = 1_073_741_823  # SQLite's own default
_PURGED_AT_ONCE = 300  # more rows free more pages than sealing their day takes, in a WAL of some 400 KB
_ROOM_BYTES = 2**20
"""What a full disk must have given before recording goes on: some 3,000 events."""


class Database:
    """The one writer of a database file. Not thread-safe: one thread owns it.

    Parameters
    ----------
    path : Path
        The file, created if it is absent.
    clock_source : str
        Recorded in a new file: ``system``, ``simulation`` or ``import``.
    ballast_bytes : int
        Size of the file given up on a full disk (`room.BALLAST_BYTES` for a hub); 0 keeps none.
    wal_limit_bytes : int
        Beyond this size the writer insists on a new WAL.

    Attributes
    ----------
    salvage : Salvage or None
        What was saved and lost, where the file was found damaged.

    Raises
    ------
    DatabaseBusy
        Another process writes this file.
    DatabaseUnreadable, DatabaseTooNew
        The file is not ours to write.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock_source: str = "system",
        ballast_bytes: int = 0,
        wal_limit_bytes: int = WAL_LIMIT_BYTES,
    ) -> None:
        self.path = path
        self._wal_limit_bytes = wal_limit_bytes
        self._insisted_bytes = wal_limit_bytes
        self._full = False
        self._home: Household | None = None  # nine statements, and every batch asks for it
        self._snapshots: WeakSet[Snapshot] = WeakSet()
        self._opening = threading.Lock()
        self._lock_fd = self._lock()
        try:
            self._ballast = Ballast(path, ballast_bytes)
            self.salvage = mend(path, clock_source=clock_source)
            self._connection = self._opened(clock_source)
        except BaseException:
            os.close(self._lock_fd)
            raise
        self._ballast.take()
        self._limit_growth()

    def _opened(self, clock_source: str) -> sqlite3.Connection:
        try:
            initialise(self.path, clock_source=clock_source)
            return self._connect()
        except sqlite3.OperationalError as problem:
            if not self._is_full(problem):
                raise StoreError(f"{self.path} must be writable, SQLite says: {problem}") from problem
            self._full = True
            self._ballast.release()
        try:  # again, without the ballast
            initialise(self.path, clock_source=clock_source)
            return self._connect()
        except sqlite3.OperationalError as problem:
            raise StoreError(f"{self.path} must have room to be opened, SQLite says: {problem}") from problem

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        for pragma in (
            "foreign_keys = ON",
            "synchronous = FULL",
            f"busy_timeout = {_BUSY_MS}",
            f"journal_size_limit = {self._wal_limit_bytes}",
            f"wal_autocheckpoint = {self._checkpoint_pages()}",
            "trusted_schema = OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _lock(self) -> int:
        lock = beside(self.path, ".lock")
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
    def _all_or_nothing(self) -> Iterator[Transaction]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            transaction = Transaction(self._connection, home=self._home)
            yield transaction
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite ends a transaction itself where the disk is full
                self._connection.execute("ROLLBACK")
            raise
        self._home = transaction.home

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All or nothing: durable when the block ends, untouched where it raises.

        Where the disk is full room is made before the error reaches the caller: who tries
        again may succeed.
        """
        try:
            with self._all_or_nothing() as transaction:
                yield transaction
                transaction.finish()
        except sqlite3.OperationalError as problem:
            if self._is_full(problem):
                self._make_room()
            raise
        self._bound_wal()
        if not self._ballast.is_held:
            if self._ballast.take():
                self._full = False
            self._limit_growth()

    def snapshot(self, *, lease_s: float = LEASE_S) -> Snapshot:
        """A read-only view of this file as it is now. Any thread may ask."""
        opened = Snapshot(self.path, lease_s=lease_s)
        with self._opening:
            self._snapshots.add(opened)
        return opened

    def become(self, other: Path) -> None:
        """Take over the whole content of another database file, in one transaction. Marks stay
        where they are farther on here.

        Raises
        ------
        StoreError
            It could not be written; nothing was changed.
        """
        source = sqlite3.connect(other, isolation_level=None)
        self._home = None
        try:
            source.executemany(
                "INSERT INTO mark (device, boot, seq, purged) VALUES (?, ?, ?, ?) ON CONFLICT (device, boot) "
                "DO UPDATE SET seq = max(seq, excluded.seq), purged = max(purged, excluded.purged)",
                self._connection.execute("SELECT device, boot, seq, purged FROM mark").fetchall(),
            )
            source.backup(self._connection)  # all pages at once: one write transaction of the target
        except sqlite3.Error as problem:
            raise StoreError(f"{self.path} must be writable, SQLite says: {problem}") from problem
        finally:
            source.close()
        self._checkpoint("TRUNCATE", wait_ms=_INSIST_MS)

    # -- the WAL -----------------------------------------------------------------------------------

    def _checkpoint_pages(self) -> int:
        if self._ballast.size_bytes == 0:
            return _CHECKPOINT_PAGES
        return min(_CHECKPOINT_PAGES, max(1, self._ballast.size_bytes // 4 // PAGE_BYTES))

    def _wal_bytes(self) -> int:
        try:
            return beside(self.path, "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def _bound_wal(self) -> None:
        """Insist on a new WAL where it has grown; readers that overlap would keep SQLite from it."""
        size = self._wal_bytes()
        if size <= self._insisted_bytes:
            return
        self._checkpoint("TRUNCATE", wait_ms=_INSIST_MS)
        if self._wal_bytes() > _WAL_ENOUGH * self._wal_limit_bytes:  # one long reader after the other
            with self._opening:
                for reader in tuple(self._snapshots):
                    reader.expire()
            self._checkpoint("TRUNCATE", wait_ms=_INSIST_MS)
        # Where that was in vain, not at every commit: each attempt may cost ingest its whole wait.
        self._insisted_bytes = max(self._wal_limit_bytes, self._wal_bytes() * 5 // 4)

    def _checkpoint(self, mode: str, *, wait_ms: int) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
        try:
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")

    # -- a full disk -------------------------------------------------------------------------------

    def _is_full(self, problem: sqlite3.OperationalError) -> bool:
        if problem.sqlite_errorcode == sqlite3.SQLITE_FULL:
            return True
        # The WAL's index and a write cut short say "input/output error" where the disk is full.
        return problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR and free_bytes(self.path) < _ROOM_BYTES

    def _limit_growth(self) -> None:
        """Without ballast the file may grow only into what the ballast does not ask for.

        A commit that needs more is refused by SQLite before it is written. Were it let into
        the WAL, no checkpoint could bring it into the file, and the WAL would stay full for good.
        """
        limit = _UNLIMITED_PAGES
        if not self._ballast.is_held:
            spare = free_bytes(self.path) - self._ballast.size_bytes
            limit = self._pragma("page_count") + max(0, spare // PAGE_BYTES)
        self._connection.execute(f"PRAGMA max_page_count = {limit}")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _room(self) -> int:
        """Bytes the file can take without touching what the ballast asks for."""
        spare = free_bytes(self.path) - self._ballast.size_bytes
        return max(0, spare) + self._pragma("freelist_count") * PAGE_BYTES

    def _make_room(self) -> None:
        """Give up the ballast, empty the WAL, and purge the oldest rows until there is room."""
        if not self._ballast.is_held and self._ballast.take():
            self._full = False  # somebody else made room meanwhile
            self._limit_growth()
            return
        self._full = True
        self._ballast.release()
        self._connection.execute(f"PRAGMA max_page_count = {_UNLIMITED_PAGES}")  # a purge may use what was released
        try:
            self._checkpoint("RESTART", wait_ms=_INSIST_MS)
            while self._room() < min(_ROOM_BYTES, self._ballast.size_bytes) and self._purge_oldest():
                self._checkpoint("RESTART", wait_ms=_INSIST_MS)
        except sqlite3.OperationalError as problem:
            if not self._is_full(problem):
                raise
            # Not even room for this: who writes tries again, and the next attempt begins here.
        self._limit_growth()

    def _purge_oldest(self) -> int:
        """Purge some of the oldest raw rows, few enough for a small WAL; returns how many."""
        with self._all_or_nothing() as tx:
            rows = tx.purge_oldest_day(most=_PURGED_AT_ONCE).rows
            if rows:
                tx.bump("purged_for_room", rows)
        return rows

    def alarms(self) -> tuple[str, ...]:
        """What is wrong with the file or its disk now, for the top of every page. Any thread may ask."""
        with self.snapshot() as reader:
            found = reader.alarms()
            purged = dict(reader.counters()).get("purged_for_room", 0)
        log_bytes = self._wal_bytes()
        if log_bytes > _WAL_TOLD * self._wal_limit_bytes:
            held = f"Another program has been reading {self.path.name} for long; its log has grown"
            found += (f"{held} to {log_bytes / 1e6:.0f} MB. End that program to give the room back.",)
        if self._ballast.is_held:
            return found
        free = f"{free_bytes(self.path) / 1e6:.0f} MB are free"
        if not self._full:
            return (*found, f"The disk is almost full: {free}. Make room, or old device records will be removed.")
        removed = (
            f"{purged} old device records were removed to go on recording; daily sums and cited records are kept. "
        )
        return (*found, f"The disk is full: {free}. {removed if purged else ''}Make room.")

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
