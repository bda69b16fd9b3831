"""The tracker's own entry point by Bluetooth on a board of fakes: plays samples, then hands over.

Usage: micropython -m collar_device FOLDER SAMPLES. Prints ``waits 0 or 1`` as a bridge reads its
advertisement, each message as hex, and at the end ``held N``.
"""

import gc
import sys
from binascii import hexlify

import machine

from firmware_bridge import board
from firmware_bridge.bridge import waits
from firmware_bridge.msgpack import pack_int
from firmware_bridge.node import read_settings
from firmware_bridge.parts import ASK_UUID, DEVICE_UUID, HISTORY_UUID, MARK_UUID
from firmware_bridge.relay import ASK, DONE, MARK, READ, Relay, named_in
from firmware_bridge.steady import SteadyClock
from firmware_bridge.tracker import SETTINGS, Tracker, by_bluetooth

gc.threshold(4_096)
folder, samples = sys.argv[1], sys.argv[2]
settings = read_settings(folder + "device.json", SETTINGS)
sensor = machine.sensor


def uptime_ms() -> int:
    return sensor.at_ms


sensor.play(samples)
tracker = Tracker(settings, folder, uptime_ms=uptime_ms, feed=board.watchdog())
peripheral = by_bluetooth(tracker, settings, uptime_ms=uptime_ms, steady_ms=SteadyClock(), wall_ms=lambda: None)
ble = peripheral._ble
while sensor.left:
    tracker.step()
    peripheral.step()
print("waits", int(waits(ble.advertised)))
ble.connect()
peripheral.step()
assert named_in(ble.read(DEVICE_UUID)) == settings["device"]
relay = Relay(b"")
what = ""
while what != DONE:
    what, raw = relay.step()
    if what == ASK:
        ble.write(ASK_UUID, raw)
    elif what == MARK:
        ble.write(MARK_UUID, raw)
    elif what == READ:
        relay.came(ble.read(HISTORY_UUID))
    peripheral.step()
    while relay.messages:
        print(str(hexlify(relay.messages.pop(0)), "utf-8"))
        # What a hub that has stored it all would mark: {boot: last seq}.
        relay.marked(b"\x81" + pack_int(1) + pack_int(tracker.node.outbox.next_seq - 1))
ble.gap_disconnect(0)
peripheral.step()
print("waits", int(waits(ble.advertised)), "held", tracker.node.outbox.held)
tracker.node.close()
