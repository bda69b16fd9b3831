"""What a device's arithmetic makes of a file of samples. Usage: check_scale.py FOLDER SAMPLES.

Prints every record, the state as hex, and how many bytes 1,000 samples of rest and of a meal
allocate; saves and restores the state on the way.
"""

import gc
import sys

sys.path.insert(0, sys.argv[1])

from binascii import hexlify

from firmware_bridge.scale import Scale

scale = Scale(plateaus=True)
count = 0
with open(sys.argv[2]) as lines:  # noqa: PTH123 - MicroPython has no pathlib
    for line in lines:
        at_ms, mg = line.split()
        for event in scale.feed(int(at_ms), int(mg)):
            print(repr(event))
        count += 1
        if count % 1_000 == 0:
            again = Scale(plateaus=True)
            again.restore(scale.save())
            scale = again
print(str(hexlify(scale.save()), "utf-8"))
at_ms = 10_000_000
for wide in (300, 90_000):
    for _ in range(100):
        scale.feed(at_ms, 100_000)
        at_ms += 100
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for at in range(1_000):
        scale.feed(at_ms, 100_000 + at * 7_919 % wide)
        at_ms += 100
    print("bytes", gc.mem_alloc() - before)
    gc.enable()
