"""Mutates the payloads of every family and stores them among good ones. Used by a test and a soak."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import PayloadError
from gateway.links.profiled import Message, open_message
from gateway.model import RawFrame
from tests.frames import mutated
from tests.profiled import (
    ALL,
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


def _is_unread(device: str, payload: bytes) -> bool:
    """Whether nobody can read the message as a whole: then it must be a dead letter."""
    raw = _raw("radio" if device == "cbb8334c884f" else device, payload, T1)
    try:
        claim = ALL.claim(raw)
    except PayloadError:
        return True
    if claim is None:
        return True
    opened = open_message(claim.profile, Message(raw.transport, raw.device, T1, T1, payload))
    return bool(opened.troubles) and not opened.items and claim.profile.items is None


def fuzz_profiles(count: int, *, seed: int, folder: Path) -> Fuzzed:
    """Store ``count`` mutated messages in batches, one good one among each hundred."""
    rng = random.Random(seed)
    good = unexplained = 0
    seen: set[tuple[str, bytes]] = set()
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
            seen |= {(raw.device, raw.payload) for raw in batch}
            unexplained += counted["messages"] != len(batch)
        neighbours = {row.ref.text for row in rows(database) if "neighbour-" in row.ref.text}
        stored = [ref for ref in neighbours if ref.rpartition("/")[2].startswith("neighbour-")]
        told = counters(database).get("dead_letters", 0)
        kept = {(letter.device, letter.raw) for letter in letters(database, limit=10**9)}
        unexplained += sum(_is_unread(device, payload) and (device, payload) not in kept for device, payload in seen)
    return Fuzzed(count, told, max(0, good - len(stored)), unexplained)
