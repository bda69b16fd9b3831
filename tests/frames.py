"""Whole messages and ways to break them, for the tests of reading and the soak. Not a test."""

from __future__ import annotations

import random

from firmware_bridge import wire

SPECIAL = (
    b"\xcf" + b"\xff" * 8,
    b"\xd3\x80" + b"\0" * 7,
    b"\xcb\x7f\xf8" + b"\0" * 6,
    b"\xc1",
    b"\xdd\xff\xff\xff\xff",
)
"""2^64 - 1, -2^63, NaN, the byte MessagePack never uses, an array of 2^32 - 1."""


def whole_messages() -> list[bytes]:
    """One message of every kind of record, and some of several."""
    beat = wire.pack_record(wire.BEAT, 1000, (900, 2, 0))
    meal = wire.pack_record(wire.MEAL, 400_000, (340_000, 60_000, 30_000, 0))
    motion = wire.pack_record(wire.MOTION, 900_000, (300_000, 5_000, 100, 1_000, 2_000, 3_000, 200_000, 0, 300_000))
    hello = wire.pack_record(wire.HELLO, 5, ("bowl", "1.0", 1, 64, 1, 0))
    food = wire.pack_record(wire.FOOD_SET, 5, ("4006381333931", "Harbor Whitefish"))
    others = [
        wire.pack_record(code, 9, values)
        for code, values in (
            (wire.REFILL, (40_000,)),
            (wire.WEIGHT, (-4_200_000,)),
            (wire.TEMPERATURE, (295_000,)),
            (wire.TARE, ()),
            (wire.MARK_REQUEST, ()),
            (wire.PLATEAU, (-11_590, 3)),
        )
    ]
    return [
        wire.pack_message(1, 1, [beat, meal, motion], 1_000_000, 1_783_555_200_000),
        wire.pack_message(1, 9, [beat] * 64, 1_000_000, None),
        wire.pack_message(2, 4_000_000_000, [hello], 9, None),
        wire.pack_message(3, 7, [food, beat], None, 1_783_555_200_000),
        wire.pack_message(0, 0, others, None, None),
    ]


def mutated(rng: random.Random, payload: bytes) -> bytes:
    """The bytes with one to four things done to them."""
    changed = bytearray(payload)
    for _ in range(rng.randint(1, 4)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randint(0, 6):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                changed[at] ^= 1 << rng.randrange(8)
            case 2:
                del changed[at:]
            case 3:
                changed[at:at] = rng.randbytes(rng.randint(1, 9))
            case 4:
                special = rng.choice(SPECIAL)
                changed[at : at + rng.randint(0, len(special))] = special
            case 5:
                changed *= 2
            case 6:
                till = rng.randrange(at, len(changed))
                changed[at:till] = changed[at:till] * 2
    return bytes(changed)
