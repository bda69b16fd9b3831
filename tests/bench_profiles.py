"""What it costs to store a message of another maker's device, beside one of Wire 1.

    python tests/bench_profiles.py [messages]

Each family's messages and Wire 1's go through the same `store_readings`, a hundred a transaction,
into a durable file. Printed is CPU time, which a busy machine changes least, and the ratio to Wire 1
with one record a message.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from firmware_bridge import wire
from gateway.links.ingest import store_readings
from gateway.links.payloads import Reading, read_payload
from gateway.model import RawFrame
from tests.profiled import (
    ALL,
    AQARA,
    AQARA_STATE,
    ESPHOME,
    GRAIN_END,
    PETKIT,
    PETKIT_VISIT,
    PETLIBRO,
    ROLLUPS,
    RUUVI,
    SUREPET,
    SUREPET_LINE,
    T1,
    T2,
    T3,
    THEENGS,
    advert,
    changed,
    home_at,
    mqtt,
    radio,
    rows,
)

_BATCH = 100


def _readings(count: int) -> dict[str, list[Reading]]:
    """As many messages of each kind, each of them new."""
    beats = [wire.pack_record(wire.BEAT, n * 60_000, (900, 2, 0)) for n in range(count)]
    own = [
        read_payload(
            RawFrame("mqtt", "bowl-max", T1 + n * 60_000, wire.pack_message(1, n + 1, [one], n * 60_000, None))
        )
        for n, one in enumerate(beats)
    ]
    raws = {
        "PetLibro, keyed JSON": [
            mqtt(PETLIBRO, changed(GRAIN_END, msgId=f"m{n}", ts=T1 + n * 60_000), T1 + n * 60_000) for n in range(count)
        ],
        "SurePet, hex, by tag": [
            mqtt(SUREPET, SUREPET_LINE.replace(b"ca 00", f"{n % 256:02x} {n // 256:02x}".encode()), T2 + n * 60_000)
            for n in range(count)
        ],
        "PetKit, by weight": [
            mqtt(PETKIT, changed(PETKIT_VISIT, event_id=f"v{n}"), T3 + n * 60_000) for n in range(count)
        ],
        "Aqara, nothing new": [mqtt(AQARA, AQARA_STATE, T1 + n * 60_000) for n in range(count)],
        "ESPHome, a sample": [
            mqtt(ESPHOME, f"{300 + n % 3 / 10:.1f}".encode(), T1 + n * 1_000) for n in range(count)
        ],
        "BTHome, two values": [
            radio(advert(f"40 00 {n % 256:02x} 01 5d 02 5d 09"), T1 + n * 5_000) for n in range(count)
        ],
        "RuuviTag, two values": [
            mqtt(THEENGS, changed(RUUVI, seq=n, mov=n % 255), T1 + n * 1_000) for n in range(count)
        ],
    }  # fmt: skip
    return {"Wire 1, one record": own} | {name: [ALL.read(raw) for raw in told] for name, told in raws.items()}


def main() -> None:
    """Print one line a family."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    base_us = 0.0
    print(f"{'family':22} {'us of CPU':>10} {'of Wire 1':>10} {'rows':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, readings) in enumerate(_readings(count).items()):
            with home_at(Path(folder) / f"{number}.db") as database:
                began_s = time.process_time()
                for start in range(0, count, _BATCH):
                    with database.transaction() as tx:
                        store_readings(tx, tuple(readings[start : start + _BATCH]), rollups=ROLLUPS)
                took_us = (time.process_time() - began_s) / count * 1e6
                base_us = base_us or took_us
                print(f"{name:22} {took_us:10.0f} {took_us / base_us:9.1f}x {len(rows(database)):7}", flush=True)


if __name__ == "__main__":
    main()
