"""Kills the hub in the middle of Bluetooth handovers and counts what is lost.

Run ``python tests/kill_ble.py [KILLS] [SEED]`` (200 kills by default, some ten minutes); `tests/soak_kill.py`
ends with it. The hub is a process with the real bleak and a database with ``synchronous=FULL``;
bus, our org.bluez and the device's half of a handover are here, so they outlive it. A killed hub
leaves the device connected, as BlueZ would. In the end whatever the device ever took must be
stored once. Exits with 1 where anything was lost.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gateway.links.clock import SystemClock
from gateway.store.database import Database
from gateway.store.snapshot import Snapshot
from gateway.store.verify import verify
from tests.ble_home import ADDRESS, HOME
from tests.brokers import with_me
from tests.fake_bluez import FakeBluez, PrivateBus
from tests.radio_world import TrackerPeer

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 120.0
PAUSE_S = 1.5
"""After it began to read, a hub is killed up to so long later, evenly spread."""


@dataclass(slots=True)
class Report:
    """What happened. ``under_way`` counts kills that found a device connected."""

    kills: int = 0
    under_way: int = 0
    drops: int = 0
    taken: int = 0
    stored: int = 0
    lost: int = 0
    doubled: int = 0
    unexplained: int = 0
    most_connected: int = 0
    integrity: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failures(self) -> tuple[str, ...]:
        """What must not be."""
        counts = {
            "lost": self.lost,
            "doubled": self.doubled,
            "stored but never taken": self.unexplained,
            "connections beyond the first": self.most_connected - 1,
        }
        return (*(f"{count} {name}" for name, count in counts.items() if count > 0), *self.integrity)

    def line(self) -> str:
        """The report for a reader."""
        return (
            f"bluetooth    {self.kills:6} kills of the hub, {self.under_way} while a device was connected, "
            f"{self.drops} link drops; {self.taken} records taken, {self.stored} stored; {self.lost} lost, "
            f"{self.doubled} doubled, {len(self.integrity)} integrity failures, {self.seconds:.0f} s"
        )


class Hub:
    """Radio and ingest as a process."""

    def __init__(self, path: Path, bus: str) -> None:
        self._bus = bus
        self._command = with_me(sys.executable, str(ROOT / "tests" / "ble_process.py"), str(path))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "DBUS_SYSTEM_BUS_ADDRESS": self._bus},
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        if self._process is not None:
            assert self._process.poll() is None, "the hub must run until it is killed"
            self._process.kill()
            self._process.wait()
            self._process = None


async def _handing_over(bluez: FakeBluez, tracker: TrackerPeer, holds: Callable[[], bool], what: str) -> None:
    """Let the world go on until it holds; a collar goes on measuring, so there is always something to read."""
    end, advertised_s, measured_s = time.monotonic() + PATIENCE_S, 0.0, time.monotonic()
    while not holds():
        assert time.monotonic() < end, what
        bluez.pump()
        if time.monotonic() - measured_s > 1.0:
            measured_s = time.monotonic()
            tracker.measure(50)
        if time.monotonic() - advertised_s > 0.1:
            advertised_s = time.monotonic()
            bluez.advertise(ADDRESS, service=tracker.service_data(), peer=tracker)
        await asyncio.sleep(0.005)


async def soak(folder: Path, *, kills: int, seed: int, longest_s: float = float("inf")) -> Report:
    """Kill the hub that often, or for that long, and report.

    Raises
    ------
    AssertionError
        The hub ended by itself, or nothing moved for two minutes.
    """
    rng, report, began_s = random.Random(seed), Report(), time.monotonic()
    path = folder / "hub.db"
    with Database(path) as database, database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    (folder / "bus").mkdir()
    with PrivateBus(folder / "bus") as bus:
        bluez = await FakeBluez(bus.address, "hci0").start()
        tracker, hub = TrackerPeer(SystemClock(), slots=20_000), Hub(path, bus.address)
        hub.start()
        try:
            while report.kills < kills and time.monotonic() - began_s < longest_s:
                tracker.measure(rng.randrange(100, 600))
                at = bluez.calls["ReadValue"] + rng.randrange(1, 12)
                await _handing_over(
                    bluez, tracker, lambda at=at: bluez.calls["ReadValue"] >= at, "the hub must read from the device"
                )
                until_s = time.monotonic() + rng.uniform(0, PAUSE_S)
                await _handing_over(bluez, tracker, lambda until_s=until_s: time.monotonic() >= until_s, "a pause ends")
                report.kills += 1
                report.under_way += bluez.connected
                hub.kill()
                bluez.forget_clients()
                if rng.random() < 0.5:  # as often the device goes out of reach meanwhile
                    report.drops += bluez.connected
                    for device in tuple(bluez.devices):
                        bluez.drop(device)
                hub.start()
            await _handing_over(
                bluez, tracker, lambda: tracker.outbox.held == 0, "the device must get rid of all it holds"
            )
        finally:
            hub.kill()
            await bluez.stop()
    _count(report, path, tracker)
    report.most_connected = bluez.most_connected
    report.seconds = time.monotonic() - began_s
    return report


def _count(report: Report, path: Path, tracker: TrackerPeer) -> None:
    """Hold the database against what the device took."""
    with Snapshot(path) as reader:
        rows = reader.frames(("tracker-max",), start_ms=-(2**60), end_ms=2**60, kinds=("beat",))
    report.integrity = () if (sound := verify(path)).is_sound else tuple(sound.lines())
    stored = Counter(row.seq for row in rows)
    report.taken, report.stored = len(tracker.taken), len(stored)
    report.lost = len(tracker.taken - set(stored))
    report.doubled = sum(count - 1 for count in stored.values())
    report.unexplained = len(set(stored) - tracker.taken)


def main() -> int:
    """Print the line; 1 where anything must not be."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20260714
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(soak(Path(folder), kills=kills, seed=seed))
    print(report.line(), *report.failures, sep="\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
