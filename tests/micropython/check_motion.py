"""What a collar's arithmetic makes of a file of samples. Usage: check_motion.py FOLDER SAMPLES."""

import sys

sys.path.insert(0, sys.argv[1])

from firmware_bridge.motion import Motion

motion = Motion(span_ms=30_000)
with open(sys.argv[2]) as lines:  # noqa: PTH123 - MicroPython has no pathlib
    for line in lines:
        at_ms, x, y, z = line.split()
        for event in motion.feed(int(at_ms), int(x), int(y), int(z)):
            print(repr(event))
