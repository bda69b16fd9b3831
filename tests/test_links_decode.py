"""The fast reader says of every message what the device's own reader says."""

from __future__ import annotations

import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import wire
from gateway.links import decode
from tests.frames import mutated, whole_messages

EDGES = (2**32, 2**53, 2**64 - 1, -(2**63))
numbers = st.integers(0, 300) | st.integers(-(2**63), 2**64 - 1) | st.sampled_from(EDGES)
values = numbers | st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.binary(max_size=3)
records = st.lists(values, max_size=14) | st.builds(
    lambda code, uptime, rest: [code, uptime, *rest],
    st.integers(0, 12),
    st.integers(0, 2**54),
    st.lists(st.integers(-5, 90_000_000), max_size=10),
)
heads = st.lists(st.tuples(st.sampled_from("vbsnuwrx"), values | st.lists(records | values, max_size=4)), max_size=8)


def both(data: bytes) -> tuple[object, object]:
    said: list[object] = []
    for read in (wire.unpack_message, decode.unpack_message):
        try:
            said.append(read(data))
        except wire.WireError as problem:
            said.append((problem.reason, str(problem)))
    return said[0], said[1]


def packed(pairs: list[tuple[str, object]]) -> bytes:
    """A map with these pairs in this order, a key perhaps twice."""
    return bytes((0x80 | len(pairs),)) + b"".join(msgpack.packb(part) for pair in pairs for part in pair)


@given(
    boot=numbers, first=numbers, told=st.lists(records, max_size=4), more=st.integers(-1, 1), sent=values, wall=values
)
def test_it_says_what_the_devices_own_reader_says_of_nearly_right_messages(*, boot, first, told, more, sent, wall):
    pairs = [("v", 1), ("b", boot), ("s", first), ("n", len(told) + more)]
    pairs += [(name, value) for name, value in (("u", sent), ("w", wall)) if value is not None]
    ours, theirs = both(packed([*pairs, ("r", told)]))
    assert ours == theirs


@given(heads)
def test_it_says_the_same_of_any_keys_in_any_order(pairs):
    ours, theirs = both(packed(pairs))
    assert ours == theirs


@given(st.binary(max_size=60))
def test_it_says_the_same_of_any_bytes(data):
    ours, theirs = both(data)
    assert ours == theirs


def test_it_says_the_same_of_5000_mutated_messages_and_types_are_kept():
    rng = random.Random(5)
    told = whole_messages()
    for _ in range(5000):
        ours, theirs = both(mutated(rng, rng.choice(told)))
        assert ours == theirs
        assert repr(ours) == repr(theirs)  # True is 1 and 1.0 is 1 to ==


@pytest.mark.parametrize(
    "record",
    [
        *([2, 1000, True, 2, 0], [2, 1000, 900.0, 2, 0], [2, True, 900, 2, 0], [True, 1000, 900, 2, 0]),
        [6, 900_000, 300_000, True, 0, 0, 0, 0, 0, 0, 0],
        [6, 900_000, 300_000, 0, 0, 0, 0, 0, 0, 0, 0.0],
    ],
)
def test_a_truth_value_or_a_float_is_no_integer(record):
    head = [("v", 1), ("b", 1), ("s", 1), ("n", 1), ("r", [record])]
    _, said = both(packed(head))
    assert [fault.reason for fault in said.faults] == ["not_integer"]
    for name in "vbsn":
        ours, theirs = both(packed([(key, True if key == name else value) for key, value in head]))
        assert ours == theirs
        assert theirs[0] == "not_integer"


def test_plain_messages_are_read_without_the_slow_reader_and_others_are_not():
    plain = wire.pack_message(1, 1, [wire.pack_record(wire.BEAT, 5, (900, 2, 0))], 9, None)
    hello = wire.pack_message(1, 1, [wire.pack_record(wire.HELLO, 5, ("bowl", "1", 1, 64, 1, 0))], 9, None)
    assert decode._plain_message(plain) == wire.unpack_message(plain)
    assert decode._plain_message(hello) is None
