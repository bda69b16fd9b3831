"""The ring: what is held, what is released, what is counted as dropped."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from firmware_bridge import wire
from firmware_bridge.outbox import GO_BACK_MS, LOST, Outbox, RamSlots


def message_of(run) -> wire.Message:
    packed = wire.pack_head(run.boot, run.first_seq, run.count) + run.body
    assert len(packed) <= wire.MAX_MESSAGE_BYTES
    return wire.unpack_message(packed)


def numbers(run) -> list[int]:
    return list(range(run.first_seq, run.first_seq + run.count))


def drain(outbox: Outbox, now_ms: int = 0) -> list[int]:
    seqs: list[int] = []
    while (run := outbox.take(now_ms)) is not None:
        seqs += numbers(run)
    return seqs


def test_records_leave_in_order_and_only_the_mark_frees_them():
    outbox = Outbox(RamSlots(8), boot=3)
    assert [outbox.put(wire.REFILL, i, (i,)) for i in range(4)] == [1, 2, 3, 4]
    run = outbox.take(0)
    assert (run.boot, run.first_seq, run.count) == (3, 1, 4)
    assert outbox.take(0) is None
    assert outbox.held == 4
    assert outbox.release({2: 99}, 0) == 0, "another boot's mark frees nothing"
    assert outbox.release({3: 2}, 0) == 2
    assert outbox.release({3: 2}, 0) == 0
    outbox.rewind()
    assert drain(outbox) == [3, 4]


def test_a_mark_of_a_life_before_a_reset_frees_nothing_of_this_one():
    outbox = Outbox(RamSlots(8), boot=1)
    for i in range(4):
        outbox.put(wire.REFILL, i, (i,))
    assert outbox.release({1: 500}, 0) == 0
    assert drain(outbox) == [1, 2, 3, 4]
    assert outbox.held == 4
    assert not outbox.hello_due
    assert outbox.release({1: 4}, 0) == 4


def test_a_full_ring_drops_its_oldest_counts_it_and_tells_in_the_next_hello():
    outbox = Outbox(RamSlots(4), boot=1)
    for i in range(6):
        outbox.put(wire.REFILL, i, (i,))
    assert (outbox.dropped, outbox.lowest_seq, outbox.hello_due) == (2, 3, True)
    outbox.put_hello(9, "m", "1", 0)
    assert not outbox.hello_due
    run = outbox.take(0)
    read = message_of(run)
    hello = read.records[-1].values
    assert hello[3:] == (4, read.first_seq, 3), "the hello's own drop is in it"


def test_the_first_hello_says_that_nothing_is_lost():
    outbox = Outbox(RamSlots(4), boot=1)
    outbox.put_hello(0, "m", "1", 7)
    run = outbox.take(0)
    assert message_of(run).records[0].values == ("m", "1", 7, 4, 1, 0)


def test_a_hub_that_forgot_its_mark_is_told_once_where_the_ring_stands():
    outbox = Outbox(RamSlots(8), boot=1)
    outbox.put_hello(0, "m", "1", 7)
    for i in range(5):
        outbox.put(wire.REFILL, i, (i,))
    assert outbox.release({1: 4}, 0) == 4
    assert not outbox.hello_due
    outbox.release({}, 0)  # the hub's database was wiped
    assert outbox.hello_due
    outbox.put_hello(9, "m", "1", 7)
    assert not outbox.hello_due, "it is on its way, or will be sent again"
    outbox.release({}, 0)
    assert not outbox.hello_due
    outbox.rewind()
    assert message_of(outbox.take(0)).records[-1].values[4] == 5
    outbox.release({1: 6}, 0)
    outbox.release({1: 2}, 0)  # a broker that came back with an old retained mark
    assert outbox.hello_due
    outbox.release({1: 6}, 0)
    assert not outbox.hello_due


def test_it_goes_back_to_the_mark_after_three_seconds_without_progress():
    outbox = Outbox(RamSlots(8), boot=1)
    for i in range(3):
        outbox.put(wire.REFILL, i, (i,))
    assert not outbox.go_back(10_000), "nothing was sent yet"
    assert drain(outbox, 1_000) == [1, 2, 3]
    assert not outbox.go_back(1_000 + GO_BACK_MS - 1)
    outbox.release({1: 1}, 3_000)
    assert not outbox.go_back(3_000 + GO_BACK_MS - 1), "the mark moved at 3,000"
    assert outbox.go_back(3_000 + GO_BACK_MS)
    assert drain(outbox, 7_000) == [2, 3]
    outbox.release({1: 3}, 8_000)
    assert not outbox.go_back(99_000), "nothing is waiting"


def test_a_message_holds_at_most_64_records_and_16384_bytes():
    outbox = Outbox(RamSlots(200), boot=1)
    for _ in range(130):
        outbox.put(wire.FOOD_SET, 2**53 - 1, ("c" * 32, "t" * 200))
    total = 0
    while (run := outbox.take(0)) is not None:
        head = wire.pack_head(run.boot, run.first_seq, run.count, 2**53 - 1, 2**53 - 1)
        assert len(head + run.body) <= wire.MAX_MESSAGE_BYTES
        total += run.count
    assert total == 130
    outbox = Outbox(RamSlots(200), boot=1)
    for _ in range(130):
        outbox.put(wire.TARE, 0, ())
    assert outbox.take(0).count == 64


def test_a_device_with_a_small_heap_asks_for_small_messages_and_slots():
    outbox = Outbox(RamSlots(40, 64), 1, 256)
    for i in range(40):
        outbox.put(wire.REFILL, i, (i,))
    while (run := outbox.take(0)) is not None:
        assert len(wire.pack_head(1, run.first_seq, run.count, 2**53 - 1, 2**53 - 1) + run.body) <= 256
    with pytest.raises(wire.WireError, match="64 bytes, has 8"):
        outbox.put(wire.FOOD_SET, 0, ("4006381333931", "x" * 64))
    with pytest.raises(ValueError, match="hold one record"):
        Outbox(RamSlots(4), 1, 256)


def test_a_refused_record_takes_no_number():
    outbox = Outbox(RamSlots(4), boot=1)
    with pytest.raises(wire.WireError):
        outbox.put(wire.REFILL, 0, (2.5,))
    assert outbox.put(wire.REFILL, 0, (2,)) == 1


class DamagedSlots(RamSlots):
    """Slots of which some cannot be read any more, and which survive a reboot."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.damaged: set[int] = set()
        self.range = (0, 0)

    def held(self):
        return self.range

    def read(self, position):
        return None if position in self.damaged else super().read(position)


def test_a_damaged_slot_is_sent_as_lost_so_that_the_mark_can_pass_it():
    slots = DamagedSlots(8)
    outbox = Outbox(slots, boot=1)
    for i in range(5):
        outbox.put(wire.REFILL, i, (i,))
    slots.damaged = {0, 2}
    run = outbox.take(0)
    assert (run.first_seq, run.count) == (1, 5)
    read = message_of(run)
    assert [(fault.seq, fault.reason) for fault in read.faults] == [(1, "bad_record"), (3, "bad_record")]
    assert {fault.raw for fault in read.faults} == {LOST}
    assert outbox.release({1: 5}, 0) == 5


def test_records_of_an_earlier_boot_leave_first_and_under_their_own_boot():
    slots = DamagedSlots(8)
    old = Outbox(slots, boot=1)
    for i in range(3):
        old.put(wire.REFILL, i, (i,))
    slots.range = (0, 3)
    new = Outbox(slots, boot=2)
    new.put(wire.REFILL, 0, (7,))
    runs = [new.take(0), new.take(0), new.take(0)]
    assert [(run.boot, numbers(run)) for run in runs[:2]] == [(1, [1, 2, 3]), (2, [1])]
    assert runs[2] is None
    assert new.release({1: 3}, 0) == 3
    assert new.release({1: 3, 2: 1}, 0) == 1


class RingMachine(RuleBasedStateMachine):
    """Any order of putting, sending, marking, losing the link: compared with plain lists."""

    SLOTS = 7

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(RamSlots(self.SLOTS), boot=1)
        self.taken = 0
        self.marked = 0
        self.dropped = 0
        self.heard: set[int] = set()
        self.now_ms = 0

    @rule(count=st.integers(1, 10))
    def put(self, count):
        for _ in range(count):
            self.taken += 1
            assert self.outbox.put(wire.REFILL, 0, (self.taken,)) == self.taken
            if self.taken - self.marked - self.dropped > self.SLOTS:
                self.dropped += 1

    @rule(arrives=st.booleans())
    def send(self, arrives):
        run = self.outbox.take(self.now_ms)
        if run is not None and arrives:
            read = message_of(run)
            assert [record.values[0] for record in read.records] == numbers(run)
            self.heard.update(numbers(run))

    @rule()
    def mark(self):
        low = self.outbox.lowest_seq
        top = low - 1
        while top + 1 in self.heard:
            top += 1
        if top >= low:
            assert self.outbox.release({1: top}, self.now_ms) == top - low + 1
            self.marked += top - low + 1

    @rule()
    def reconnect(self):
        self.outbox.rewind()

    @rule(wait_ms=st.integers(0, 4_000))
    def wait(self, wait_ms):
        self.now_ms += wait_ms
        self.outbox.go_back(self.now_ms)

    @precondition(lambda self: self.outbox.held)
    @rule()
    def everything_held_can_still_be_sent(self):
        self.outbox.rewind()
        assert drain(self.outbox, self.now_ms) == list(range(self.taken - self.outbox.held + 1, self.taken + 1))

    @invariant()
    def every_record_is_held_marked_or_counted_as_dropped(self):
        assert self.outbox.held + self.marked + self.dropped == self.taken
        assert self.outbox.held <= self.SLOTS
        assert self.outbox.dropped == self.dropped
        assert 0 <= self.outbox.unsent <= self.outbox.held


TestRing = RingMachine.TestCase
