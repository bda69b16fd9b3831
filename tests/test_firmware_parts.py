"""The small parts of a device: converter, accelerometer, settings, kept state, and a bridge's half of a handover."""

from __future__ import annotations

import json
import subprocess
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge import wire
from firmware_bridge.flash import keep, kept
from firmware_bridge.gatt import GattUplink
from firmware_bridge.hx711 import Hx711
from firmware_bridge.lis3dh import Lis3dh
from firmware_bridge.node import Node, read_settings, trust_of
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.relay import ASK, DONE, MARK, READ, Relay, named_in

# --- the converter --------------------------------------------------------------------------


class Wires:
    """An HX711's two lines: what it counts, shifted out pulse by pulse."""

    def __init__(self, counts: int) -> None:
        self.bits = [counts >> at & 1 for at in range(23, -1, -1)]
        self.pulses = 0
        self.level = 0

    def data(self) -> int:
        return self.bits[self.pulses - 1] if 0 < self.pulses <= 24 else int(self.pulses > 24)

    def clock(self, level: int) -> None:
        self.pulses += level and not self.level
        self.level = level


class Line:
    def __init__(self, value) -> None:
        self.value = value


def converter(counts: int, **options) -> tuple[Hx711, Wires]:
    wires = Wires(counts & 0xFFFFFF)
    options = {"zero_counts": 0, "mg_per_1000_counts": 1_000} | options
    return Hx711(Line(wires.data), Line(wires.clock), **options), wires


@given(st.integers(-0x800000 + 1, 0x7FFFFF - 1).filter(lambda counts: counts != -1))
def test_every_reading_comes_through_its_24_bits_and_a_25th_pulse_asks_for_the_next(counts):
    cell, wires = converter(counts)
    assert cell.ready()
    assert cell.read() == counts
    assert (wires.pulses, cell.spoilt) == (25, 0)


@pytest.mark.parametrize("counts", [0x7FFFFF, -0x800000, -1])
def test_the_ends_and_a_line_that_hangs_are_no_reading(counts):
    cell, _ = converter(counts)
    assert cell.read() is None
    assert cell.spoilt == 1


def test_counts_become_mg_by_zero_and_slope_also_upside_down():
    assert converter(184_000, zero_counts=84_000, mg_per_1000_counts=2_400)[0].read() == 240_000
    assert converter(-16_000, zero_counts=84_000, mg_per_1000_counts=-2_400)[0].read() == 240_000
    with pytest.raises(ValueError, match="must not be 0"):
        converter(1, mg_per_1000_counts=0)


def test_interrupts_are_stopped_for_the_pulses_and_let_go_after_them():
    said = []
    cell, wires = converter(
        5,
        quiet=lambda: said.append(("quiet", wires.pulses)) or 7,
        loud=lambda state: said.append((state, wires.pulses)),
    )
    cell.read()
    assert said == [("quiet", 0), (7, 25)]


# --- the accelerometer ----------------------------------------------------------------------


class Bus:
    """A LIS3DH's registers."""

    def __init__(self, who: int = 0x33) -> None:
        self.registers = {0x0F: who, 0x2F: 0x40 | 31}
        self.six = bytes((0x00, 0x3E, 0xF0, 0xC1, 0x10, 0x00))

    def writeto_mem(self, address, register, value) -> None:
        self.registers[register] = value[0]

    def readfrom_mem_into(self, address, register, into) -> None:
        into[:] = self.six if register == 0xA8 else bytes((self.registers[register],))


def test_readings_are_milli_g_of_twelve_signed_bits_and_a_full_queue_is_counted():
    bus = Bus()
    sensor = Lis3dh(bus)
    assert (bus.registers[0x20], bus.registers[0x23]) == (0x37, 0xA8)
    assert sensor.read() == (3_968, -3_972, 4)
    assert sensor.waiting() == 31
    assert sensor.overruns == 1


def test_another_chip_at_the_address_is_refused():
    with pytest.raises(OSError, match="must answer 0x33"):
        Lis3dh(Bus(0x44))


# --- settings and state ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ("{", "must be JSON"),
        ("[]", "must be one object"),
        ("{}", "device must be str, is None"),
        ('{"device": "a", "port": "1883"}', "port must be int, is '1883'"),
    ],
)
def test_a_wrong_settings_file_is_refused_naming_file_and_key(tmp_path, told, what):
    path = tmp_path / "device.json"
    path.write_text(told)
    with pytest.raises(ValueError, match=what) as refused:
        read_settings(str(path), {"device": str, "port": int})
    assert "device.json" in str(refused.value)


def test_settings_keep_what_else_they_hold(tmp_path):
    path = tmp_path / "device.json"
    path.write_text(json.dumps({"device": "a", "noise_mg": 3}))
    assert read_settings(str(path), {"device": str}) == {"device": "a", "noise_mg": 3}


def test_a_device_checks_the_broker_where_its_settings_name_an_authority(tmp_path):
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout k -out home.pem -subj /CN=home"
    subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    clear = {"broker": "hub.local"}
    assert trust_of(clear, f"{tmp_path}/") is None
    assert trust_of({**clear, "authority": "home.pem"}, f"{tmp_path}/").name == "hub.local"
    named = trust_of({**clear, "authority": "home.pem", "broker_name": "hub.home"}, f"{tmp_path}/")
    assert named.name == "hub.home"
    with pytest.raises(ValueError, match="must be a PEM text"):
        trust_of({**clear, "authority": "k"}, f"{tmp_path}/")


def test_a_state_is_kept_whole_or_not_at_all(tmp_path):
    path = str(tmp_path / "scale")
    assert kept(path) is None
    keep(path, b"one" * 50)
    keep(path, b"two" * 50)
    assert kept(path) == b"two" * 50
    raw = (tmp_path / "scale").read_bytes()
    for cut in range(len(raw)):
        (tmp_path / "scale").write_bytes(raw[:cut])
        assert kept(path) is None
    (tmp_path / "scale").write_bytes(raw[:20] + b"\x00" + raw[21:])
    assert kept(path) is None


def test_the_watchdog_is_fed_by_readings_and_not_by_time(tmp_path):
    now, fed, good = [0], [], []
    node = Node(
        f"{tmp_path}/", slots=8, record_bytes=64, message_bytes=256,
        uptime_ms=lambda: now[0], feed=lambda: fed.append(now[0]), good=lambda: good.append(now[0]),
    )  # fmt: skip
    for now[0] in range(0, 120_000, 10_000):
        if now[0] <= 50_000:
            node.sensed()
        node.step()
    assert fed == list(range(0, 80_000, 10_000))
    assert good == []
    node.outbox.take(0)
    node.outbox.release({1: 1}, 0)
    node.step()
    node.step()
    assert good == [110_000]
    node.close()


# --- a bridge's half of a handover ----------------------------------------------------------


def tracker(count: int) -> GattUplink:
    outbox = Outbox(RamSlots(300, 99), 1, 1_024)
    uplink = GattUplink("tag-max", outbox, steady_ms=lambda: 0, stamp=lambda: (9_000_000, None), hello=("t", "1", 1))
    for at in range(1, count + 1):
        outbox.put(wire.REFILL, at, (at,))
    return uplink


def handed_over(uplink: GattUplink, relay: Relay, rng: Random, *, spoil: float, top: int = 0) -> dict[int, int]:
    """Play both halves until nothing is left; what a hub whose mark stands at ``top`` stores, seq -> mg."""
    stored: dict[int, int] = {}
    heard: set[int] = set()
    answer = b""
    uplink.opened()
    for _ in range(5_000):
        what, raw = relay.step()
        if what == DONE:
            return stored
        if what == ASK:
            answer = uplink.asked(raw)
        elif what == READ:
            relay.came(rng.randbytes(rng.randint(0, 40)) if rng.random() < spoil else answer)
        elif what == MARK:
            uplink.wrote_mark(raw)
        while relay.messages:
            message = wire.unpack_message(relay.messages.pop(0))
            stored |= {record.seq: record.values[0] for record in message.records if record.kind == wire.REFILL}
            heard |= {record.seq for record in message.records}
            while top + 1 in heard:
                top += 1
            relay.marked(wire.pack_mark({1: top}))
    raise AssertionError(f"{uplink.outbox.held} records are still held, {relay.broken} pieces were broken")


@given(st.integers(0, 250), st.integers(0, 1 << 30), st.sampled_from([0.0, 0.05, 0.3]))
def test_a_handover_brings_every_record_and_the_mark_whatever_pieces_are_spoilt(count, seed, spoil):
    uplink = tracker(count)
    relay = Relay(b"", Random(seed).choice((20, 64, 244)))
    stored = handed_over(uplink, relay, Random(seed), spoil=spoil)
    assert stored == {at: at for at in range(1, count + 1)}
    assert uplink.outbox.held == 0
    assert (relay.broken > 0) <= (spoil > 0)


def test_what_the_hub_has_is_not_read_again():
    uplink = tracker(100)
    relay = Relay(wire.pack_mark({1: 98}))
    stored = handed_over(uplink, relay, Random(1), spoil=0.0, top=98)
    assert sorted(stored) == [99, 100]


@pytest.mark.parametrize(
    ("identity", "device"),
    [
        (b"\x01tag-max", "tag-max"),
        (b"\x02tag-max", None),
        (b"\x01", None),
        (b"", None),
        (b"\x01Tag/+", None),
        (b"\x01\xff\xfe", None),
    ],
)
def test_a_tracker_is_known_by_version_and_id(identity, device):
    assert named_in(identity) == device
