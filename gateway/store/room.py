"""Room on the disk: a ballast that is given up first, and how much there is.

On a full disk even a DELETE and a checkpoint need room, so a file of real blocks is kept to be
thrown overboard. Nothing here knows what the room is for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gateway.store.files import beside

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BALLAST_BYTES", "Ballast", "free_bytes"]

BALLAST_BYTES = 8 * 2**20
"""Twice what SQLite's checkpoint adds to the file at most, so that one huge commit fits as well:
on a full disk a WAL that cannot be copied into the file cannot be emptied either."""


_SHARE = 4
"""On a small disk the ballast is this part of the whole."""


def free_bytes(path: Path) -> int:
    """Bytes that may still be written to the file system a file stands on."""
    found = os.statvfs(path.parent)
    return found.f_bavail * found.f_frsize


class Ballast:
    """``FILE.ballast``: that many bytes, held until they are needed.

    Parameters
    ----------
    path : Path
        The database the ballast is for.
    wanted_bytes : int
        Its size, less on a small disk; 0 = none is kept.

    Attributes
    ----------
    size_bytes : int
        Its size on this disk.
    is_held : bool
        Whether it is there to be released; also where none is wanted.
    """

    def __init__(self, path: Path, wanted_bytes: int) -> None:
        self._file = beside(path, ".ballast")
        found = os.statvfs(path.parent)
        self.size_bytes = min(wanted_bytes, found.f_blocks * found.f_frsize // _SHARE)
        self.is_held = self.size_bytes == 0

    def take(self) -> bool:
        """Hold the ballast where twice its size is free, or it is there from before; whether it is held."""
        if self.is_held:
            return True
        if self._file.exists() and self._file.stat().st_size == self.size_bytes:
            self.is_held = True
        elif free_bytes(self._file) >= 2 * self.size_bytes:
            self.is_held = self._write()
        return self.is_held

    def _write(self) -> bool:
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, self.size_bytes)  # real blocks; a hole would be no ballast
        except OSError:  # somebody else took the room meanwhile: no ballast is better than half of one
            self._file.unlink()
            return False
        finally:
            os.close(descriptor)
        return True

    def release(self) -> None:
        """Give its bytes back to the file system."""
        self._file.unlink(missing_ok=True)
        self.is_held = self.size_bytes == 0
