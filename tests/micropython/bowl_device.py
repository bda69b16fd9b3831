"""The bowl's own entry point on a board of fakes: plays a file of samples, delivers, ends.

Usage: micropython -m bowl_device FOLDER SAMPLES FIRST_MS DEADLINE_MS. FOLDER holds device.json.
Prints ``drained`` or ``late``, the boot, how often the watchdog was fed, and the last trouble.
"""

import gc
import sys

import machine

from firmware_bridge import board
from firmware_bridge.bowl import SETTINGS, Bowl
from firmware_bridge.node import read_settings
from firmware_bridge.steady import SteadyClock

gc.threshold(4_096)
folder, samples, first_ms, deadline_ms = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
settings = read_settings(folder + "device.json", SETTINGS)
board.join(settings)
assert not board.WallClock().ask()
steady = SteadyClock()
converter = machine.converter
bowl = Bowl(
    settings,
    folder,
    uptime_ms=lambda: converter.at_ms,
    steady_ms=steady,
    wall_ms=lambda: first_ms + converter.at_ms,
    feed=board.watchdog(),
)
converter.play(samples)
gc.collect()
while converter.left:
    bowl.step()
bowl.uplink.request_mark()
while not bowl.uplink.drained and steady() < deadline_ms:
    bowl.node.step()
    bowl.uplink.step(20)
bowl.uplink.stop()
print(
    "drained" if bowl.uplink.drained else "late",
    bowl.node.outbox.boot,
    converter.fed,
    bowl.cell.spoilt,
    bowl.uplink.trouble,
)
bowl.node.close()
