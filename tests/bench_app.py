"""Whole processes: what one question costs, and what a running hub holds in memory.

Plays the article's story once into a temporary database, then measures `scentwalk ask` from
start to exit (wall, CPU, peak memory) and the demo's gateway after the story. The peer of
the first table is a Python process that only imports numpy and scipy and opens the file; a run of
it stands beside every run of ours, and the last column is the median of their ratios of CPU time.
Every process reads compiled modules, as an installed one does, also where the environment
forbids to write them. `SCENTWALK_PY` names the Python of the product's own environment: beside the
peers' packages sqlite-utils loads pandas too, which no owner has.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.stories import free_port, play

RUNS = 10
PYTHON = os.environ.get("SCENTWALK_PY") or sys.executable
PEER = (
    "import sqlite3, numpy, scipy.sparse, scipy.special; sqlite3.connect({path!r}).execute('SELECT count(*) FROM day')"
)
QUESTIONS = (
    "Why is Max scratching more this week?",
    "How much did Max eat yesterday?",
    "Max just ate two squares of dark chocolate, what do I do?",
)


def _compiled(folder: Path) -> dict[str, str]:
    """The environment of processes that read compiled modules."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder)}


def _run(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """(wall s, CPU s, peak MiB) of one child process."""
    began = time.monotonic()
    child = subprocess.Popen([PYTHON, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, arguments
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _row(name: str, arguments: list[str], peer: list[str], environment: dict[str, str]) -> None:
    _run(arguments, environment)  # compiles
    runs, ratios = [], []
    for _ in range(RUNS):
        beside = _run(peer, environment)
        runs.append(_run(arguments, environment))
        ratios.append(runs[-1][1] / beside[1])
    wall, cpu, memory = (sorted(column) for column in zip(*runs, strict=True))
    print(
        f"{name:58} {statistics.median(wall):7.2f} {wall[-1]:7.2f} {statistics.median(cpu):7.2f} {memory[-1]:8.0f}"
        f" {statistics.median(ratios):7.2f}",
        flush=True,
    )


def _ask_table(database: Path) -> None:
    head = "whole process, " + str(RUNS) + " runs each"
    print(f"{head:58} {'p50 s':>7} {'max s':>7} {'CPU s':>7} {'peak MiB':>8} {'x peer':>7}")
    peer = ["-c", PEER.format(path=str(database))]
    folder = Path(tempfile.mkdtemp())
    try:
        environment = _compiled(folder)
        _row("peer: numpy, scipy and sqlite3 imported, one SELECT", peer, peer, environment)
        for question in QUESTIONS:
            ask = ["-m", "gateway", "ask", question, "--db", str(database)]
            _row(f"scentwalk ask {question!r}", ask, peer, environment)
    finally:
        shutil.rmtree(folder)


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def _gateway_table() -> None:
    """A live demo after its 75 days: memory of the gateway's own process, before and after questions."""
    arguments = ["-m", "gateway", "demo", "--mqtt-port", str(free_port()), "--web-port", str(free_port())]
    demo = subprocess.Popen([PYTHON, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        began = time.monotonic()
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("The page is at"):
                break
        print(f"\n75 days played, answered and served after {time.monotonic() - began:.1f} s")
        print(f"gateway resident memory: {_resident_mib(demo.pid):.0f} MiB")
    finally:
        demo.terminate()
        demo.wait(30)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        played = play("food_switch", 0, Path(folder))
        print(
            f"played food_switch (75 days) in {time.monotonic() - began:.1f} s, {played.database.stat().st_size / 2**20:.1f} MiB"
        )
        _ask_table(played.database)
    _gateway_table()
    print(f"largest child: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
