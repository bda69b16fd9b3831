"""A real mosquitto for tests: on a free loopback port, and never left behind. Not a test.

The broker ends with the process that started it, however that ends: a test run that is
killed runs no fixture to the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

START_S = 20.0


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def settled(server: asyncio.Server) -> None:
    """Close a server of this loop once every connection the kernel took has been told to it.

    asyncio drops one that is accepted in the turn in which its server closes: nobody could close it then.
    """
    await asyncio.sleep(0.05)
    server.close()


def with_me(*command: str) -> list[str]:
    """The command, killed by the kernel when the thread that starts it ends (util-linux)."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *command]


class Mosquitto:
    """A mosquitto that can be killed and started again on its port.

    Parameters
    ----------
    folder : Path
        For its configuration and what it persists; made where absent.
    extra : str
        Further lines of its configuration. It persists unless they say otherwise; without ``allow_anonymous``
        anybody may connect.
    """

    def __init__(self, folder: Path, *extra: str) -> None:
        self._binary = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
        assert self._binary, "the tests need Debian's mosquitto: apt-get install mosquitto"
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        self._config = folder / f"mosquitto-{self.port}.conf"
        access = () if any(line.startswith("allow_anonymous") for line in extra) else ("allow_anonymous true",)
        # As root it would become a user who cannot write here, and forget that it must end with us.
        mine = f"user {Path('/proc/self').owner()}"
        lines = (f"listener {self.port} 127.0.0.1", mine, "log_dest none", *access)
        kept = any(line.startswith("persistence") for line in extra)
        keep = () if kept else ("persistence true", f"persistence_location {folder}/")
        self._config.write_text("\n".join((*lines, *keep, *extra, "")))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it and return once it listens."""
        self._process = subprocess.Popen(
            with_me(self._binary or "", "-c", str(self._config)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"},
        )
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.2):
                return self
            time.sleep(0.01)
        self.stop(signal.SIGKILL)
        raise AssertionError(f"mosquitto must listen within {START_S:g} s")

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End it and wait for that. Safe to call twice."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
