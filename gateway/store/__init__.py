"""The only SQLite of the gateway: one writer, read-only snapshots; citations resolve here.

The names are fetched when they are first used: a question reads one snapshot, and need not
wait for what writes, migrates and mends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.store.database import Database
    from gateway.store.files import check_readable, initialise
    from gateway.store.snapshot import Snapshot
    from gateway.store.transaction import Transaction

__all__ = ["Database", "Snapshot", "Transaction", "check_readable", "initialise"]


def __getattr__(name: str) -> object:
    if name in {"check_readable", "initialise"}:
        from gateway.store import files as home  # noqa: PLC0415
    elif name == "Snapshot":
        from gateway.store import snapshot as home  # type: ignore[no-redef]  # noqa: PLC0415
    elif name == "Transaction":
        from gateway.store import transaction as home  # type: ignore[no-redef]  # noqa: PLC0415
    elif name == "Database":
        from gateway.store import database as home  # type: ignore[no-redef]  # noqa: PLC0415
    else:
        raise AttributeError(f"{name!r} must be one of {', '.join(__all__)}")
    return getattr(home, name)
