"""What the page is handed: a few callables and values, and nothing that writes by itself.

The application gives them; a test gives its own. Every callable is synchronous and is
called from a worker thread, one request at a time per thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from gateway.dialogue import Answer
from gateway.knowledge.apart import read_apart
from gateway.model import RecordRef
from gateway.store.reads import Reader

if TYPE_CHECKING:
    from gateway.links.ble import RadioState  # bleak is loaded only where it is used

__all__ = ["LOOPBACK_HOSTS", "Asker", "Done", "Services", "is_number"]

_MOST_DIGITS = 18

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names a browser on this machine uses. Any other Host header is another site's page
that pointed its name at us (DNS rebinding)."""


def is_number(text: str) -> bool:
    """Whether a text is the number of a stored answer or mark: digits, within 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


class Asker(Protocol):
    """Answer a question, keep the answer, and say under which number.

    ``after`` is the number of the answer this question follows, so that "how do you know
    it's the food?" has something to follow; None starts a new conversation.
    """

    def __call__(self, text: str, *, after: int | None) -> tuple[int, Answer]: ...


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did, in one sentence, and the record to look at, where there is one."""

    text: str
    opens: RecordRef | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """Everything the page needs of the rest of the house.

    Attributes
    ----------
    snapshot : callable
        Gives a context manager around a read-only view, opened in the calling thread.
    ask : Asker
    now_ms : callable
        The home's clock, ms UTC.
    command : callable
        Runs a write by name with named texts; raises `ScentwalkError` where it refuses.
    banner : callable
        A sentence for the top of every page ("simulated data"), or None.
    version : str
    token_file : Path or None
        The file (mode 0600) with this start's token, which ``/api/command`` asks for; None
        closes that door.
    read_guide : callable
        A guide's file, as its name and the open file, to its text; raises `ImportRefused`.
    radio : callable
        How the Bluetooth radio stands, or None where it is off.
    hosts : frozenset of str
        Host names the page answers to, without port.
    """

    snapshot: Callable[[], AbstractContextManager[Reader]]
    ask: Asker
    now_ms: Callable[[], int]
    command: Callable[[str, Mapping[str, str]], Done]
    banner: Callable[[], str | None]
    version: str
    token_file: Path | None = None
    read_guide: Callable[[str, BinaryIO], str] = read_apart
    radio: Callable[[], RadioState | None] = lambda: None
    hosts: frozenset[str] = LOOPBACK_HOSTS
