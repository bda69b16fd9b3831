"""Sends a command to the gateway that holds the database's lock, over loopback HTTP.

The running gateway writes the address of its page and this start's token into ``FILE.door``
(mode 0600) beside the database; whoever can read that file could write the database itself.
Same command, same code, same result as without a gateway.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import httpx2

from gateway.errors import DatabaseBusy, ScentwalkError

__all__ = ["TOKEN_HEADER", "Door", "close_door", "door_file", "open_door", "read_door", "send_command"]

_LONGEST_S = 120.0
"""An import of a large guide is one command; hang guard, ten times what it takes."""
TOKEN_HEADER = "X-Scentwalk-Token"  # noqa: S105  # the header's name, not a token


@dataclass(frozen=True, slots=True)
class Door:
    """Where a running gateway takes commands."""

    url: str
    token_file: Path


def door_file(database: Path) -> Path:
    """The file that says where the gateway of a database takes commands."""
    return database.with_name(database.name + ".door")


def open_door(database: Path, *, host: str, port: int, token: str) -> Door:
    """Write the door file and the token file, readable by this user only."""
    token_file = database.with_name(database.name + ".token")
    for path, text in (
        (token_file, token),
        (door_file(database), json.dumps({"url": f"http://{host}:{port}", "token_file": str(token_file)})),
    ):
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(text)
    return Door(f"http://{host}:{port}", token_file)


def close_door(database: Path) -> None:
    """Take both files away. Safe to call twice."""
    door_file(database).unlink(missing_ok=True)
    database.with_name(database.name + ".token").unlink(missing_ok=True)


def read_door(database: Path) -> Door:
    """The door of the gateway that runs on this database.

    Raises
    ------
    DatabaseBusy
        No door file: whoever holds the lock takes no commands.
    """
    path = door_file(database)
    try:
        told = json.loads(path.read_text(encoding="ascii"))
        return Door(str(told["url"]), Path(told["token_file"]))
    except (OSError, ValueError, KeyError):
        raise DatabaseBusy(
            f"{database} is held by another process that takes no commands ({path.name} must say where, found none)"
        ) from None


def send_command(door: Door, command: str, args: dict[str, str]) -> tuple[str, str | None]:
    """Run a command in the gateway; returns its sentence and the record to look at.

    Raises
    ------
    DatabaseBusy
        The gateway cannot be reached.
    ScentwalkError
        The gateway refused; the message is its own.
    """
    try:
        token = door.token_file.read_text(encoding="ascii").strip()
        answer = httpx2.post(
            f"{door.url}/api/command",
            json={"command": command, "args": args},
            headers={TOKEN_HEADER: token},
            timeout=_LONGEST_S,
            trust_env=False,
        )
    except (OSError, httpx2.HTTPError) as problem:
        raise DatabaseBusy(f"the gateway at {door.url} must take the command, but {problem}") from problem
    told = answer.json()
    if answer.status_code != httpx2.codes.OK:
        raise ScentwalkError(str(told.get("error", f"the gateway answered {answer.status_code}")))
    opens = told.get("opens")
    return str(told["done"]), None if opens is None else str(opens)
