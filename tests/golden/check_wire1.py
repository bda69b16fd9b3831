"""Checks the golden vectors of Wire 1; run by CPython and by a real MicroPython alike.

Usage: INTERPRETER check_wire1.py REPOSITORY VECTORS FIRST STEP. Checks every STEP-th vector from
FIRST on (a 64 kB heap splinters under a hundred JSON lines) and prints ``N vectors hold``.
"""

import gc
import json
import sys

if sys.implementation.name == "micropython":
    gc.threshold(4_096)  # early and often keeps 64 kB from splintering, as on a device
sys.path.insert(0, sys.argv[1])

from firmware_bridge import wire


def expected(case, at):
    """The record at ``at``; a case of ``tares`` holds so many, one each 5 ms, instead of a list."""
    return [wire.TARE, at * 5] if "tares" in case else case["records"][at]


def check_good(case):
    count = case.get("tares") or len(case["records"])
    records = []
    for at in range(count):
        record = expected(case, at)
        records.append(wire.pack_record(record[0], record[1], tuple(record[2:])))
    packed = wire.pack_message(
        case["boot"], case["first_seq"], records, sent_uptime_ms=case["sent_uptime_ms"], wall_ms=case["wall_ms"]
    )
    del records
    assert packed == bytes.fromhex(case["hex"]), case["name"]
    message = wire.unpack_message(packed)
    assert message[:5] == (
        case["boot"],
        case["first_seq"],
        count,
        case["sent_uptime_ms"],
        case["wall_ms"],
    ), case["name"]
    assert len(message.records) == count, case["name"]
    for read in message.records:
        record = expected(case, read.seq - case["first_seq"])
        assert (read.kind, read.uptime_ms, read.values) == (record[0], record[1], tuple(record[2:])), case["name"]


def check_bad(case):
    raw = bytes.fromhex(case["hex"])
    reason = None
    try:
        message = wire.unpack_message(raw)
    except wire.WireError as refused:
        reason = refused.reason
    assert reason == case["raises"], (case["name"], reason)
    if reason is not None:
        return
    assert [r.seq for r in message.records] == case["good"], case["name"]
    assert [[f.seq, f.reason] for f in message.faults] == case["faults"], (case["name"], message.faults)
    assert len(message.records) + len(message.faults) == message.count, case["name"]
    assert b"".join(f.raw for f in message.faults) in raw, case["name"]


first, step = int(sys.argv[3]), int(sys.argv[4])
count = 0
with open(sys.argv[2]) as lines:  # noqa: PTH123 - MicroPython has no pathlib
    for number, line in enumerate(lines):
        if number % step != first:
            continue
        gc.collect()
        case = json.loads(line)
        if case.get("bad"):
            check_bad(case)
        else:
            check_good(case)
        count += 1

head = bytes.fromhex("85a17601a16203a1730aa16e01a17291")
levels = 1_000 if sys.implementation.name == "micropython" else 16_000
deep = wire.unpack_message(head + b"\x91" * levels)
assert [(f.seq, f.reason) for f in deep.faults] == [(10, "cut_short")]
deep = wire.unpack_message(head + b"\x91" * levels + b"\x00")
assert [(f.seq, f.reason) for f in deep.faults] == [(10, "too_deep")]
print(count, "vectors hold")
