"""A tracker for the soak: its ring is a file, its boot a counter in a file, and it may be killed.

Usage: micropython -m ring_device PORT DEVICE FOLDER SLOTS EVERY_MS. Takes a record every
EVERY_MS, five minutes of motion each by its own clock; with 0 it takes none and ends when
the hub has marked all it holds. Prints, each as soon as it is so:

``p BOOT SEQ``   a record is in the ring
``f UNDER_WAY``  so many records were sent that the hub has not marked
``drained``      the end
"""

import gc
import random
import sys

from firmware_bridge.flash import FileSlots, next_boot
from firmware_bridge.kinds import MOTION
from firmware_bridge.outbox import Outbox
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink

STEP_MS = 300_000
FIRST_MS = 1_672_549_200_000  # 2023-01-01 in New York; every boot begins two days after the one before
BOOT_MS = 172_800_000

port, every_ms = int(sys.argv[1]), int(sys.argv[5])
device, folder, size = sys.argv[2], sys.argv[3], int(sys.argv[4])
clock = SteadyClock()
gc.collect()
gc.threshold(4_096)
slots = FileSlots(folder + "/ring", size, 64)
boot = next_boot(folder + "/boot", at_least=slots.newest_boot + 1)
outbox = Outbox(slots, boot, 448)  # of 64 kB, the firmware on a 64-bit machine leaves 15


def stamp():
    uptime_ms = outbox.next_seq * STEP_MS
    return uptime_ms, FIRST_MS + boot * BOOT_MS + uptime_ms


uplink = Uplink(
    device,
    outbox,
    "127.0.0.1",
    port,
    steady_ms=clock,
    stamp=stamp,
    getrandbits=random.getrandbits,
    hello=("soak", "1", 1),
    keepalive_s=4,
    wait_ms=2_000,
)
uplink.say_hello()
told = None
due_ms = clock()
while every_ms or not uplink.drained:
    while every_ms and clock() - due_ms >= 0:
        due_ms += every_ms
        seq = outbox.next_seq
        outbox.put(MOTION, seq * STEP_MS, (STEP_MS, seq % 300_000, 0, 0, 0, 0, STEP_MS, 0, STEP_MS))
        print("p", boot, seq)
    uplink.step(5)
    under_way = outbox.held - outbox.unsent
    if under_way != told:
        told = under_way
        print("f", told)
print("drained")
