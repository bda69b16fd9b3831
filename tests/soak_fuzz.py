"""Mutated frames through reading and storing: nothing crashes, no good neighbour is lost.

Run ``python tests/soak_fuzz.py [FRAMES] [SEED]`` (100,000 by default). Frames of every kind are
broken in one to four places and stored in batches of 50, each with one good frame of another
device. Whatever could not be read must be a dead letter with its bytes. Exits with 1 else.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from firmware_bridge import wire
from gateway.links.ingest import store_readings
from gateway.links.payloads import read_payload
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, RawFrame, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.verify import verify
from tests.frames import mutated, whole_messages

BATCH = 50
RECEIVED_MS = 1_783_555_200_000
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("bowl-max", "food_bowl", "bowl"), Device("tracker-max", "tracker", "collar")),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0), Binding("tracker-max", frozenset({"max"}), 0)),
)


@dataclass(slots=True)
class Report:
    """What became of the frames; the first two must be equal, the last three 0 and sound."""

    batches: int = 0
    neighbours: int = 0
    frames: int = 0
    still_whole: int = 0
    dead_letters: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    unaccounted: int = 0
    missing: int = 0
    is_sound: bool = False

    @property
    def passed(self) -> bool:
        return self.neighbours == self.batches and not self.unaccounted and not self.missing and self.is_sound


def fuzz(path: Path, *, frames: int, seed: int) -> Report:
    """Store that many mutated frames in a new database and say what became of them."""
    rng, report, rollups, told = random.Random(seed), Report(), Rollups(load()), whole_messages()
    expected: set[tuple[str, int | None, int | None, bytes]] = set()
    with Database(path) as database:
        with database.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        while report.frames < frames:
            bad = [
                read_payload(
                    RawFrame(
                        "mqtt", rng.choice(("bowl-max", "tracker-max")), RECEIVED_MS, mutated(rng, rng.choice(told))
                    )
                )
                for _ in range(min(BATCH, frames - report.frames))
            ]
            report.batches += 1
            good = wire.pack_record(wire.BEAT, report.batches, (900, 2, 0))
            payload = wire.pack_message(1, report.batches, [good], report.batches, None)
            neighbour = read_payload(RawFrame("mqtt", "bowl-two", RECEIVED_MS, payload))
            with database.transaction() as tx:
                marks = store_readings(tx, (*bad, neighbour), rollups=rollups).marks
            report.neighbours += marks["bowl-two"] == {1: report.batches}
            for reading in bad:
                report.frames += 1
                report.still_whole += not reading.letters
                count = 1 if reading.header is None else reading.header.count
                report.unaccounted += len(reading.frames) + len(reading.letters) != count
                expected.update((letter.device, letter.boot, letter.seq, letter.raw) for letter in reading.letters)
        with database.snapshot() as reader:
            letters = reader.dead_letters(limit=10**9)
    report.dead_letters = len(letters)
    report.reasons = Counter(letter.reason for letter in letters)
    report.missing = len(expected - {(letter.device, letter.boot, letter.seq, letter.raw) for letter in letters})
    report.is_sound = verify(path).is_sound
    return report


def main() -> int:
    """Print what became of them; 1 where anything was lost."""
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20260714
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = fuzz(Path(folder) / "hub.db", frames=frames, seed=seed)
    print(
        f"{report.frames} mutated frames in {report.batches} batches, {time.monotonic() - began_s:.0f} s: "
        f"{report.still_whole} still whole, {report.dead_letters} dead letters, {report.missing} missing, "
        f"{report.unaccounted} with records unaccounted for; {report.neighbours} good neighbours stored; "
        f"database {'sound' if report.is_sound else 'NOT sound'}"
    )
    print("  " + ", ".join(f"{reason} {count}" for reason, count in report.reasons.most_common()))
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
