"""The tracker's own entry point on a board of fakes: plays a file of samples, delivers over MQTT, ends.

Usage: micropython -m tracker_device FOLDER SAMPLES FIRST_MS DEADLINE_MS. FOLDER holds device.json.
"""

import gc
import sys

import machine

from firmware_bridge import board
from firmware_bridge.node import read_settings
from firmware_bridge.steady import SteadyClock
from firmware_bridge.tracker import OVER_WIFI, SETTINGS, Tracker, by_wifi

gc.threshold(4_096)
folder, samples, first_ms, deadline_ms = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
settings = read_settings(folder + "device.json", SETTINGS)
read_settings(folder + "device.json", OVER_WIFI)
steady = SteadyClock()
sensor = machine.sensor


def uptime_ms() -> int:
    return sensor.at_ms


sensor.play(samples)
tracker = Tracker(settings, folder, uptime_ms=uptime_ms, feed=board.watchdog())
uplink = by_wifi(tracker, settings, uptime_ms=uptime_ms, steady_ms=steady, wall_ms=lambda: first_ms + sensor.at_ms)
uplink.say_hello()
gc.collect()
while sensor.left:
    tracker.step()
    uplink.step(0)
uplink.request_mark()
while not uplink.drained and steady() < deadline_ms:
    uplink.step(20)
uplink.stop()
print("drained" if uplink.drained else "late", tracker.node.outbox.boot, machine.converter.fed, uplink.trouble)
tracker.node.close()
