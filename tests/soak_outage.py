"""How long a day's backlog takes to reach the hub.

Run ``python tests/soak_outage.py [HOURS]`` (24 by default): the hub was off, a bowl took two
records a second all the while, every ten minutes a meal among them. Ring, publishing loop and
client are the firmware's own, the broker is a mosquitto with its default settings, the hub a
process with ``synchronous=FULL``. Prints the time from the hub's start until the ring is
empty; exits with 1 where a record is missing.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from firmware_bridge import wire
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.store.database import Database
from gateway.store.snapshot import Snapshot
from tests.brokers import Mosquitto
from tests.soak_kill import Gateway

EVERY_MS = 500
MEAL_EVERY = 1_200
PATIENCE_S = 600.0
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("bowl-max", "food_bowl", "Max's bowl"),),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0),),
)


def filled(records: int) -> Outbox:
    """A ring after that outage."""
    outbox = Outbox(RamSlots(records, 64), 1)
    for n in range(1, records + 1):
        if n % MEAL_EVERY:
            outbox.put(wire.BEAT, n * EVERY_MS, (900, 2, 0))
        else:
            outbox.put(wire.MEAL, n * EVERY_MS, ((n - 200) * EVERY_MS, 60_000, 20_000, 0))
    return outbox


def drained_s(folder: Path, records: int) -> float:
    """Seconds from the hub's start until it has marked everything."""
    path = folder / "hub.db"
    with Database(path) as database, database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    clock, outbox = SteadyClock(), filled(records)
    with Mosquitto(folder / "broker") as broker:
        device = Uplink(
            "bowl-max",
            outbox,
            "127.0.0.1",
            broker.port,
            steady_ms=clock,
            stamp=lambda: (records * EVERY_MS + clock(), None),
            getrandbits=random.getrandbits,
            hello=("bowl", "soak", 1),
        )
        hub = Gateway(path, broker.port)
        hub.start()
        began_s = time.monotonic()
        try:
            while not device.drained:
                assert time.monotonic() < began_s + PATIENCE_S, f"{outbox.held} held, {device.trouble}"
                device.step(20)
            took_s = time.monotonic() - began_s
        finally:
            hub.kill()
            device.client.close()
    return took_s


def main() -> int:
    """Print the time; 1 where anything is missing."""
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 24.0
    records = int(hours * 3_600_000 / EVERY_MS)
    with tempfile.TemporaryDirectory() as name:
        took_s = drained_s(Path(name), records)
        with Snapshot(Path(name) / "hub.db") as reader:
            stored = dict(reader.counters())["records_stored"]
            meals = sum(day.total for day in reader.days("max.meals", "2000-01-01", "2100-01-01"))
    print(f"an outage of {hours:g} h, {records} records: {stored} stored {took_s:.1f} s after the hub's start")
    return 0 if (stored, meals) == (records, records // MEAL_EVERY) else 1


if __name__ == "__main__":
    sys.exit(main())
