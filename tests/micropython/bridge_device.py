"""The bridge's own entry point on a board of fakes, a tracker with a full ring within its reach.

Usage: micropython -m bridge_device FOLDER DROP_EVERY FIRST_MS DEADLINE_MS. FOLDER holds device.json.
"""

import asyncio
import gc
import sys

import aioble

from firmware_bridge import board
from firmware_bridge.bridge import SETTINGS, Bridge
from firmware_bridge.gatt import GattUplink
from firmware_bridge.kinds import MOTION
from firmware_bridge.node import read_settings
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.steady import SteadyClock

gc.threshold(4_096)
folder, first_ms, deadline_ms = sys.argv[1], int(sys.argv[3]), int(sys.argv[4])
settings = read_settings(folder + "device.json", SETTINGS)
board.join(settings)
steady = SteadyClock()
outbox = Outbox(RamSlots(240, 64), 1, 1_024)
UPTIME_MS = 70_000_000
tracker = GattUplink(
    settings["tracker"],
    outbox,
    steady_ms=steady,
    stamp=lambda: (UPTIME_MS, first_ms + UPTIME_MS),
    hello=("scenttag-1", "1", 1),
)
tracker.say_hello()
for at in range(1, 201):
    outbox.put(MOTION, at * 300_000, (300_000, at * 10, 0, 0, 0, 0, 300_000, 0, 300_000))
aioble.air.tracker, aioble.air.drop_every = tracker, int(sys.argv[2])
bridge = Bridge(settings, steady_ms=steady, feed=board.watchdog())


async def rounds() -> None:
    while outbox.held and steady() < deadline_ms:
        await bridge.round()


asyncio.run(rounds())
assert not aioble.air.connected, "a connection was left open"
print("drained" if not outbox.held else "late", outbox.held, aioble.air.connections, aioble.air.drops, bridge.failed)
