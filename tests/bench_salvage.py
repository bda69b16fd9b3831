"""How long a hub with a damaged database takes until it serves again, beside SQLite's own ways.

Run ``python tests/bench_salvage.py [DAYS]``: a home's file of so many days (336 records each), one
sector zeroed in a leaf of the frames, of their references and of an index. Timed is what a start
does: the check, the salvage, opening, the rebuild that is due. Peers in the same run: the
``sqlite3`` command's ``.recover`` of the damaged file, and a plain ``iterdump`` of the sound one
(it stops at damage). Times are of this machine, ratios travel. Not a test.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.store import Database
from gateway.store.pages import PageFile
from tests.store_world import ROLLUPS, made

SECTOR_BYTES, PAGE_BYTES = 512, 4096
TREES = ("frame", "record", "frame_by_device_time")


def leaf_of(path: Path, tree: str) -> int:
    """The number of a leaf page in the middle of a tree."""
    pages = PageFile(path)
    number = pages.trees()[tree]
    while True:
        _, _, children = pages._open(number)
        if not children:
            pages.close()
            return number
        number = children[len(children) // 2]


def damaged(sound: Path, path: Path, tree: str) -> Path:
    """A copy with one sector of the tree's middle leaf zeroed."""
    shutil.copyfile(sound, path)
    with path.open("r+b") as file:
        file.seek((leaf_of(sound, tree) - 1) * PAGE_BYTES + 2 * SECTOR_BYTES)
        file.write(bytes(SECTOR_BYTES))
    return path


def timed(what) -> tuple[float, float]:
    """(seconds, CPU seconds of this process) of a call."""
    begun, cpu = time.perf_counter(), time.process_time()
    what()
    return time.perf_counter() - begun, time.process_time() - cpu


def start(path: Path) -> Database:
    """What a hub does before it listens again."""
    return Database(path)


def recover(path: Path, into: Path) -> str:
    """The command's own recovery, into a new file; returns what it objects to (Debian builds it
    without the table it needs for that).
    """
    with (
        subprocess.Popen(["sqlite3", str(path), ".recover"], stdout=subprocess.PIPE) as told,
        subprocess.Popen(
            ["sqlite3", str(into)], stdin=told.stdout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as made_anew,
    ):
        said, _ = made_anew.communicate()
    with sqlite3.connect(into) as made:
        found = made.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'frame'").fetchone()[0]
    return "" if found else (said.strip().splitlines() or ["nothing was recovered"])[-1]


def iterdump(path: Path, into: Path) -> None:
    """Python's plain dump of the sound file, into a new file."""
    source, target = sqlite3.connect(path), sqlite3.connect(into)
    target.executescript("".join(source.iterdump()))
    source.close()
    target.close()


def main() -> None:
    """Print one line a damaged tree and one a peer."""
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 360
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound = made(folder / "sound.db", days=days)
        rows = sqlite3.connect(sound).execute("SELECT count(*) FROM frame").fetchone()[0]
        print(f"{rows} frames, {sound.stat().st_size / 1e6:.0f} MB", flush=True)
        base, _ = timed(lambda: start(sound).close())
        print(f"a sound file is opened in {base:.2f} s", flush=True)
        for tree in TREES:
            path = damaged(sound, folder / f"{tree}.db", tree)
            took, cpu = timed(lambda at=path: start(at).close())
            with Database(path) as database, database.snapshot() as reader:
                due = reader.meta("rebuild_due")
            made_again, _ = timed(lambda at=path: rebuild(at))
            print(
                f"{tree:22}: serves in {took:5.2f} s ({rows / took:8.0f} rows/s, {cpu:5.2f} s of CPU), "
                f"day rows made again in {made_again:5.2f} s (due: {due})",
                flush=True,
            )
        path = damaged(sound, folder / "peer.db", "frame")
        begun = time.perf_counter()
        fault = recover(path, folder / "recovered.db")
        took = time.perf_counter() - begun
        said = f"no, it says: {fault}" if fault else f"{took:5.2f} s ({rows / took:8.0f} rows/s)"
        print(f"sqlite3 .recover      : {said}", flush=True)
        took, cpu = timed(lambda: iterdump(sound, folder / "dumped.db"))
        print(
            f"iterdump, sound file  : copied in {took:5.2f} s ({rows / took:8.0f} rows/s, {cpu:5.2f} s of CPU)",
            flush=True,
        )


def rebuild(path: Path) -> None:
    """What is made again once a salvaged file serves."""
    with Database(path) as database, database.transaction() as tx:
        ROLLUPS.rebuild(tx, tx.household())


if __name__ == "__main__":
    main()
