"""Mutates the payloads of every family and stores them among good ones. Used by a test and a soak."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from gateway.model import RawFrame
from tests.frames import mutated
from tests.profiled import (
    AQARA,
    AQARA_STATE,
    ESPHOME,
    GRAIN_END,
    LITTER_ROBOT,
    PETKIT,
    PETKIT_VISIT,
    PETLIBRO,
    PETS,
    RUUVI,
    SUREPET,
    SUREPET_LINE,
    T1,
    THEENGS,
    advert,
    as_json,
    changed,
    counters,
    hear,
    home_at,
    letters,
    mqtt,
    radio,
    rows,
)

_HISTORY = [
    {"timestamp": "2026-07-04 23:50:00", "action": "Pet Weight Recorded", "weight": 8.5},
    {"timestamp": "2026-07-04 23:50:00", "action": "Cat Detected"},
]
FAMILIES: tuple[tuple[str, bytes], ...] = (
    (PETLIBRO, GRAIN_END),
    (SUREPET, SUREPET_LINE),
    (PETKIT, PETKIT_VISIT),
    (AQARA, AQARA_STATE),
    (ESPHOME, b"300.50"),
    ("radio", advert("40 00 09 01 5d 02 5d 09")),
    (THEENGS, RUUVI),
    (LITTER_ROBOT, as_json({"history": _HISTORY})),
    (PETS, as_json({"data": [{"name": "Müsli 🐈 O'Malley", "weight": "3600", "updated_at": "2026-07-04 23:50"}]})),
)
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What became of so many mutated messages; ``unexplained`` ones left no trace at all."""

    messages: int
    letters: int
    lost_neighbours: int
    unexplained: int


def _raw(topic: str, payload: bytes, at_ms: int) -> RawFrame:
    return radio(payload, at_ms) if topic == "radio" else mqtt(topic, payload, at_ms)


def fuzz_profiles(count: int, *, seed: int, folder: Path) -> Fuzzed:
    """Store ``count`` mutated messages in batches, one good one among each hundred."""
    rng = random.Random(seed)
    good = unexplained = 0
    with home_at(folder / "fuzz.db") as database:
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            batch = [
                _raw(topic, mutated(rng, payload), T1 + (start + n) * 1000)
                for n in range(size)
                for topic, payload in (rng.choice(FAMILIES),)
            ]
            neighbour = changed(GRAIN_END, msgId=f"neighbour-{start}")
            batch.insert(rng.randrange(size), mqtt(PETLIBRO, neighbour, T1 + start * 1000))
            counted = hear(database, *batch).counted
            good += 1
            traces = sum(
                counted[name]
                for name in ("records_stored", "records_known", "dead_letters", "profile_ignored", "profile_unchanged")
            )
            unexplained += traces == 0
        neighbours = {row.ref.text for row in rows(database) if "neighbour-" in row.ref.text}
        stored = [ref for ref in neighbours if ref.rpartition("/")[2].startswith("neighbour-")]
        told = counters(database).get("dead_letters", 0)
        assert letters(database)
    return Fuzzed(count, told, max(0, good - len(stored)), unexplained)
