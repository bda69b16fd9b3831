"""The only SQLite of the gateway: one writer, read-only snapshots; citations resolve here."""

from gateway.store.database import Database
from gateway.store.files import check_readable, initialise
from gateway.store.snapshot import Snapshot
from gateway.store.transaction import Transaction

__all__ = ["Database", "Snapshot", "Transaction", "check_readable", "initialise"]
