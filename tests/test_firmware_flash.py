"""The ring in a file: cut at every byte, rotten, read again by the next boot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import wire
from firmware_bridge.flash import FileSlots, next_boot
from firmware_bridge.outbox import LOST, Outbox

ROOT = Path(__file__).resolve().parents[1]
SIZE, RECORD_BYTES = 4, 16


def opened(path: Path, size: int = SIZE) -> FileSlots:
    return FileSlots(str(path), size, RECORD_BYTES)


def content(slots: FileSlots) -> list[tuple[int, int, bytes] | None]:
    return [slots.read(position) for position in range(*slots.held())]


def record(number: int) -> bytes:
    return wire.pack_record(wire.REFILL, 0, (number,))


def filled(path: Path, count: int) -> None:
    slots = opened(path)
    for position in range(count):
        slots.write(position, 1, position + 1, record(position + 1))
    slots.close()


def test_a_new_file_holds_nothing_and_a_used_one_its_last_records(tmp_path):
    path = tmp_path / "ring"
    slots = opened(path)
    assert (slots.held(), slots.newest_boot, slots.damaged) == ((0, 0), 0, 0)
    slots.close()
    filled(path, 7)
    slots = opened(path)
    assert slots.held() == (3, 7)
    assert content(slots) == [(1, seq, record(seq)) for seq in (4, 5, 6, 7)]
    assert (slots.newest_boot, slots.damaged) == (1, 0)
    slots.close()


@pytest.mark.parametrize("before", [0, 1, 3, 4, 5, 8, 9])
def test_a_write_cut_at_any_byte_loses_at_most_that_record_and_the_one_it_replaces(tmp_path, before):
    path = tmp_path / "ring"
    filled(path, before)
    if before == 0:
        opened(path).close()
    old = path.read_bytes()
    slots = opened(path)
    slots.write(before, 1, before + 1, record(before + 1))
    slots.close()
    new = path.read_bytes()
    slot_bytes = len(old) // SIZE
    at = before % SIZE * slot_bytes
    for cut in range(slot_bytes + 1):
        path.write_bytes(old[:at] + new[at : at + cut] + old[at + cut :])
        slots = opened(path)
        found = content(slots)
        slots.close()
        kept = [(1, seq, record(seq)) for seq in range(max(1, before - SIZE + 1), before + 1)]
        survivors = kept[1:] if before >= SIZE else kept
        allowed = (kept, survivors, [*survivors, (1, before + 1, record(before + 1))])
        assert found in allowed, cut


@given(
    st.integers(0, 12),
    st.lists(st.tuples(st.integers(0, SIZE * (14 + RECORD_BYTES + 4) - 1), st.integers(1, 255)), max_size=6),
)
def test_rot_is_never_read_as_a_record(tmp_path_factory, count, rot):
    path = tmp_path_factory.mktemp("rot") / "ring"
    filled(path, count)
    raw = bytearray(path.read_bytes()) if path.exists() else bytearray(SIZE * (14 + RECORD_BYTES + 4))
    for at, bits in rot:
        raw[at] ^= bits
    path.write_bytes(raw)
    slots = opened(path)
    for found in content(slots):
        assert found is None or found == (1, found[1], record(found[1]))
    first, last = slots.held()
    assert 0 <= last - first <= SIZE
    slots.close()


def drain(outbox: Outbox) -> list[wire.Message]:
    messages = []
    while (run := outbox.take(0)) is not None:
        messages.append(wire.unpack_message(wire.pack_head(run.boot, run.first_seq, run.count) + run.body))
    return messages


def ring(path: Path, boot: int, size: int = 8) -> tuple[FileSlots, Outbox]:
    slots = FileSlots(str(path), size, 64)
    outbox = Outbox(slots, boot)
    outbox.put_hello(0, "m", "1", 0)
    return slots, outbox


def test_the_next_boot_sends_what_the_last_one_held(tmp_path):
    slots, outbox = ring(tmp_path / "ring", 1)
    for i in range(3):
        outbox.put(wire.REFILL, i, (i,))
    outbox.release({1: 2}, 0)
    slots.close()
    slots, outbox = ring(tmp_path / "ring", 2)
    outbox.release({1: 2}, 0)  # the retained mark
    assert [(m.boot, [r.seq for r in m.records]) for m in drain(outbox)] == [(1, [3, 4]), (2, [1])]
    outbox.release({1: 4, 2: 1}, 0)
    assert outbox.held == 0
    slots.close()


def test_an_earlier_boots_lost_beginning_is_told_in_its_own_numbers(tmp_path):
    slots, outbox = ring(tmp_path / "ring", 1)
    for i in range(20):
        outbox.put(wire.REFILL, 1_000 + i, (i,))
    slots.close()
    slots, outbox = ring(tmp_path / "ring", 2)  # its hello takes one more slot
    outbox.release({1: 5}, 0)
    old = drain(outbox)[0]
    assert old.boot == 1
    hello, *rest = old.records
    lowest = rest[0].seq
    assert (hello.kind, hello.seq, hello.values[4]) == (wire.HELLO, lowest - 1, lowest)
    assert hello.values[5] == lowest - 1 - 5, "what was lost between the mark and the ring"
    assert hello.uptime_ms == rest[0].uptime_ms
    outbox.rewind()
    outbox.release({1: lowest - 1}, 0)
    assert drain(outbox)[0].first_seq == lowest, "once the mark is there it is not said again"
    slots.close()


def test_a_rotten_slot_is_sent_as_lost(tmp_path):
    slots, outbox = ring(tmp_path / "ring", 1)
    for i in range(5):
        outbox.put(wire.REFILL, i, (i,))
    slots.close()
    raw = bytearray((tmp_path / "ring").read_bytes())
    slot_bytes = len(raw) // 8
    raw[2 * slot_bytes + 20] ^= 1
    (tmp_path / "ring").write_bytes(raw)
    slots, outbox = ring(tmp_path / "ring", 2)
    old = drain(outbox)[0]
    assert slots.damaged == 1
    assert [record.seq for record in old.records] == [1, 2, 4, 5, 6]
    assert [(fault.seq, fault.raw) for fault in old.faults] == [(3, LOST)]
    slots.close()


def test_boots_are_counted_over_cuts_and_never_twice(tmp_path):
    path = tmp_path / "boot"
    assert [next_boot(str(path)) for _ in range(5)] == [1, 2, 3, 4, 5]
    old = path.read_bytes()
    next_boot(str(path))
    new = path.read_bytes()
    for cut in range(17):
        path.write_bytes(new[:cut] + old[cut:])
        assert next_boot(str(path)) in (6, 7), cut
    path.write_bytes(b"\x00" * 16)
    assert next_boot(str(path), at_least=41) == 41, "a lost counter goes on from the ring"
    path.write_bytes(b"")
    assert next_boot(str(path)) == 1


def test_the_file_ring_works_on_micropython(tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from firmware_bridge.flash import FileSlots, next_boot\n"
        "from firmware_bridge.outbox import Outbox\n"
        "for boot in (1, 2):\n"
        "    slots = FileSlots('ring', 8, 64)\n"
        "    assert next_boot('boot', at_least=slots.newest_boot + 1) == boot\n"
        "    outbox = Outbox(slots, boot, 256)\n"
        "    outbox.put_hello(0, 'm', '1', 0)\n"
        "    outbox.put(4, 5, (boot,))\n"
        "    run = outbox.take(0)\n"
        "    slots.close()\n"
        "print(run.boot, run.first_seq, run.count, slots.damaged)\n"
    )
    command = [str(Path(sys.executable).parent / "micropython"), "-X", "heapsize=64k", "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert said.stdout.split() == ["1", "1", "2", "0"], said.stderr
    slots = FileSlots(str(tmp_path / "ring"), 8, 64)
    assert [slots.read(position)[:2] for position in range(*slots.held())] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    slots.close()
