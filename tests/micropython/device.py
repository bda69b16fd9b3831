"""A device for the tests: takes records, brings them to the hub, ends when all are marked.

Usage: micropython -m device PORT DEVICE COUNT SLOTS DEADLINE_MS [AUTHORITY NAME]. Prints
``drained N connects C dropped D`` or ``late N ...``.
"""

import gc
import random
import sys

from firmware_bridge.kinds import REFILL
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink

port, count, slots, deadline_ms = int(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
device = sys.argv[2]
trust = None
if len(sys.argv) > 6:
    from firmware_bridge.tls import Trust, authority

    with open(sys.argv[6], "rb") as file:  # noqa: PTH123 (no pathlib there)
        trust = Trust(authority(file.read()), sys.argv[7])
clock = SteadyClock()
gc.collect()
gc.threshold(4_096)  # early and often keeps 64 kB from splintering
uplink = Uplink(
    device,
    Outbox(RamSlots(slots, 64), 1, 1_024),
    "127.0.0.1",
    port,
    steady_ms=clock,
    stamp=lambda: (clock(), None),
    getrandbits=random.getrandbits,
    hello=("tests", "1", 0),
    keepalive_s=4,
    wait_ms=2_000,
)
if trust is not None:
    trust.secure(uplink)
uplink.say_hello()
taken = 1
while clock() < deadline_ms and not (taken > count and uplink.drained):
    while taken < count and uplink.outbox.held < slots:
        uplink.outbox.put(REFILL, clock(), (taken,))
        taken += 1
    if taken == count and uplink.outbox.held < slots:
        uplink.request_mark()
        taken += 1
    uplink.step(50)
uplink.stop()
print(
    "drained" if uplink.drained else "late", taken, "connects", uplink.connects, "dropped", uplink.outbox.dropped,
    uplink.trouble,
)  # fmt: skip
