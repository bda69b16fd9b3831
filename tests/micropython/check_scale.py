"""What a device's arithmetic makes of a file of samples. Usage: check_scale.py FOLDER SAMPLES.

Prints every record, and at the end the state as hex; saves and restores it on the way.
"""

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
