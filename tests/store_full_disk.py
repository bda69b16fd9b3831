"""A hub's store on a file system of 2 MB, as a process of its own. Not a test itself.

Usage, inside its own mount namespace: ``python -m tests.store_full_disk FOLDER``. Mounts a
tmpfs on FOLDER, records until long after it is full, lets another program fill the rest, ends
that program, and prints as JSON what happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from gateway.errors import StoreError
from gateway.links.ingest import store_readings
from gateway.store import Database
from gateway.store.room import BALLAST_BYTES
from gateway.store.verify import verify
from gateway.store.writer import Writer
from tests.store_world import HOME, ROLLUPS, T0, bowl_day, day_values, tracker_day, write_facts

_TRIES = 20
DAYS = 25


async def record(writer: Writer, readings) -> int:
    """Store one batch as ingest does, trying again; the attempts it took, 0 = given up."""
    for attempt in range(1, _TRIES + 1):
        try:
            await writer.run(partial(store_readings, readings=tuple(readings), rollups=ROLLUPS))
        except StoreError:
            continue
        return attempt
    return 0


async def play(folder: Path) -> dict[str, object]:
    path = folder / "hub.db"
    database = Database(path, ballast_bytes=BALLAST_BYTES)
    writer = Writer(database)
    found: dict[str, object] = {"ballast_at_start": (folder / "hub.db.ballast").stat().st_size}
    await writer.run(lambda tx: tx.save_household(HOME, valid_from_ms=0))
    attempts, acknowledged = [], 0
    for day in range(DAYS):
        for batch in ([*tracker_day(day)[:12]], [*tracker_day(day)[12:], *bowl_day(day)]):
            attempts.append(await record(writer, batch))
            acknowledged += sum(len(reading.frames) for reading in batch) if attempts[-1] else 0
        if day == 1:
            await writer.run(write_facts)
    found["attempts"] = attempts
    found["alarms"] = database.alarms()
    found["ballast_held"] = (folder / "hub.db.ballast").exists()

    filler = folder / "somebody-elses"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    found["attempt_beside_another"] = await record(writer, tracker_day(DAYS)[:4])
    acknowledged += 4 * 12 if found["attempt_beside_another"] else 0
    filler.unlink(missing_ok=True)
    found["attempt_afterwards"] = await record(writer, tracker_day(DAYS)[4:])
    acknowledged += 20 * 12 if found["attempt_afterwards"] else 0

    with database.snapshot() as reader:
        stored = sum(len(reader.frames((name,), start_ms=0, end_ms=2**60)) for name in ("bowl-max", "tracker-max"))
        counters = dict(reader.counters())
        found["cited_kept"] = reader.restated(1) == () and reader.answer(1) is not None
        found["oldest_ms"] = [reader.span_of_device("tracker-max")[0], T0]
        found["marks"] = reader.all_marks()
    found |= {"acknowledged": acknowledged, "stored": stored, "purged": counters.get("purged_for_room", 0)}
    found["days"] = [(series, date, n, sum(sums)) for series, date, n, sums, _, _ in day_values(database)]
    found["rebuilt"] = await writer.run(lambda tx: ROLLUPS.rebuild(tx, tx.household()))
    writer.close()
    database.close()
    found["sound"] = verify(path).is_sound
    with Database(path, ballast_bytes=BALLAST_BYTES) as again:  # a start on a full disk
        found["opens_again"] = again.salvage is None
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "scentwalk-test", str(folder)], check=True)
    print(json.dumps(asyncio.run(play(folder))))


if __name__ == "__main__":
    main()
