"""A tracker with Bluetooth: firmware on a real MicroPython, its radio a socket (``bluetooth``).

Usage: micropython ble_device.py DEVICE FLASH RECORDS. Takes that many records, then one more for
each handover it has been through; prints ``p BOOT SEQ`` for each, and ``held N`` whenever that changes.
"""

import gc
import sys

from bluetooth import BLE

from firmware_bridge.flash import FileSlots, next_boot
from firmware_bridge.gatt import GattUplink
from firmware_bridge.kinds import BEAT
from firmware_bridge.outbox import Outbox
from firmware_bridge.peripheral import Peripheral
from firmware_bridge.steady import SteadyClock

device, folder, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
clock = SteadyClock()
gc.collect()
gc.threshold(4_096)
slots = FileSlots(folder + "/ring", 600, 64)
boot = next_boot(folder + "/boot", at_least=slots.newest_boot + 1)
outbox = Outbox(slots, boot, 512)
uplink = GattUplink(device, outbox, steady_ms=clock, stamp=lambda: (clock(), None), hello=("scenttag-1", "0.1.0", 1))
uplink.say_hello()


def measure():
    print("p", boot, outbox.put(BEAT, clock(), (900, 1, 0)))


for _ in range(records):
    measure()
ble = BLE()
peripheral = Peripheral(ble, uplink)
told = -1
while True:
    ble.poll(0.01)
    connects = uplink.connects
    while peripheral.step():
        pass
    if connects != uplink.connects:
        measure()
    if outbox.held != told:
        told = outbox.held
        print("held", told)
