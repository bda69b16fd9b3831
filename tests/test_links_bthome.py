"""BTHome v2, held against golden bytes and against bthome-ble, which reads the same bytes."""

from __future__ import annotations

import logging
import math
import random
import time
from datetime import UTC, datetime

import pytest
from bthome_ble.const import MEAS_TYPES
from bthome_ble.parser import BTHomeBluetoothDeviceData
from habluetooth import BluetoothServiceInfoBleak
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import PayloadError
from gateway.links import advertisement, bthome
from gateway.links.ble_identity import RadioKey, identify, resolves
from tests.frames import mutated
from tests.radio_world import KEY, SENSOR, sealed

ADDRESS = SENSOR


def said(service_data: bytes, **kwargs) -> list[tuple[str, object]]:
    return [(one.name, one.value) for one in bthome.parse(service_data, address=ADDRESS, **kwargs).measured]


@pytest.mark.parametrize(
    ("data", "measured"),
    [
        ("40 00 09 01 5d 02 5d 09", [("packet_id", 9), ("battery", 93), ("temperature", 23.97)]),
        ("40 06 5e 1f", [("mass", 80.3)]),
        ("40 5a fb ff", [("count", -5)]),
        ("40 5b fe ff ff ff", [("count", -2)]),
        ("44 57 ea", [("temperature", -22)]),
        ("40 58 ea", [("temperature", -7.7)]),
        ("40 53 0c 48656c6c6f20576f726c6421", [("text", "Hello World!")]),
        ("40 f1 00 01 02 04", [("firmware", "4.2.1.0")]),
        ("40 01 5d fe 01 02", [("battery", 93)]),
        ("40 01 5d 02 5d", [("battery", 93)]),
        ("40 0f 02", [("generic", 1)]),
    ],
)
def test_golden_bytes_say_what_the_format_says(data, measured):
    assert said(bytes.fromhex(data)) == measured


def test_a_count_keeps_its_sign_and_its_integer():
    (one,) = bthome.parse(bytes.fromhex("405afbff"), address=ADDRESS).measured
    assert (one.raw, one.value, one.unit) == (-5, -5, "")


def test_a_sleepy_device_is_told_from_one_that_beats():
    assert bthome.parse(b"\x44\x01\x5d", address=ADDRESS).sleepy
    assert not bthome.parse(b"\x40\x01\x5d", address=ADDRESS).sleepy


def test_the_packet_rule_gives_nine_ten_ten():
    rule = bthome.PacketRule()
    heard = [(9, 0), (9, 500), (10, 1_000), (8, 1_500), (255, 2_000), (10, 7_000)]
    assert [packet for packet, at_ms in heard if rule.accept(packet, at_ms)] == [9, 10, 10]


def test_the_packet_rule_counts_on_over_255_and_lets_pass_what_has_no_id():
    rule = bthome.PacketRule()
    assert [rule.accept(packet, at_ms) for at_ms, packet in enumerate((255, 0, None, None, 254))] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_the_formats_own_encrypted_example_opens_and_only_under_its_key():
    data = bytes.fromhex("41a47266c95f730011223378237214")
    read = bthome.parse(data, address=ADDRESS, key=KEY)
    assert [(one.name, one.value) for one in read.measured] == [("temperature", 25.06), ("humidity", 50.55)]
    assert read.counter == 0x33221100
    for key, reason in ((bytes(16), "wrong_key"), (None, "no_key")):
        with pytest.raises(PayloadError) as refused:
            bthome.parse(data, address=ADDRESS, key=key)
        assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [("", "cut_short"), ("20", "unknown_version"), ("42aabb", "cut_short"), ("410102", "cut_short"), ("4001", None)],
)
def test_what_cannot_be_read_is_refused_with_a_reason(data, reason):
    if reason is None:
        assert said(bytes.fromhex(data)) == []
        return
    with pytest.raises(PayloadError) as refused:
        bthome.parse(bytes.fromhex(data), address=ADDRESS, key=KEY if data.startswith("41") else None)
    assert refused.value.reason == reason


def test_nothing_unencrypted_is_read_where_a_key_is_known():
    with pytest.raises(PayloadError) as refused:
        bthome.parse(b"\x40\x01\x5d", address=ADDRESS, key=KEY)
    assert refused.value.reason == "plain_under_key"


@given(st.binary(max_size=20), st.integers(0, 2**32 - 1))
def test_an_opened_advertisement_is_the_plain_one(plain, counter):
    opened, told = bthome.opened(sealed(plain, counter), address=ADDRESS, key=KEY)
    assert (opened, told) == (b"\x40" + plain, counter)


# --- the oracle -----------------------------------------------------------------------------------


def oracle(service_data: bytes, key: bytes | None = None) -> list[object]:
    """The values bthome-ble gives, in its order, events left out."""
    logging.getLogger("bthome_ble").setLevel(logging.CRITICAL)
    info = BluetoothServiceInfoBleak(
        name="x",
        address=ADDRESS,
        rssi=-60,
        manufacturer_data={},
        service_data={bthome.SERVICE_UUID: service_data},
        service_uuids=[],
        source="",
        device=None,
        advertisement=None,
        connectable=False,
        time=time.monotonic(),
        tx_power=None,
    )
    told = BTHomeBluetoothDeviceData(bindkey=key).update(info)
    sensors = [value.native_value for name, value in told.entity_values.items() if name.key != "signal_strength"]
    return [*sensors, *(value.native_value for value in told.binary_entity_values.values())]


def plainly(one: bthome.Measured) -> object:
    """Our value as bthome-ble shows it: truth values, times as such, bytes in hex."""
    if bthome._TABLE[one.object_id].shape == "binary":
        return bool(one.value)
    if one.object_id == 0x50:
        return datetime.fromtimestamp(one.value, tz=UTC)
    if one.object_id == 0x58:
        return round(one.raw * 0.35, 1)  # it rounds a factor of 0.35 to one decimal
    return one.value.hex() if isinstance(one.value, bytes) else one.value


def same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return ours == theirs


def test_the_table_has_every_object_that_the_oracle_knows_with_its_length():
    lengths = {
        code: 0 if made.data_format in ("raw", "string", "command") else made.data_length
        for code, made in MEAS_TYPES.items()
    }
    assert {code: made.size for code, made in bthome._TABLE.items()} == lengths


SILENT = {0x3A, 0x3B, 0x3C, 0xF0, 0xF1, 0xF2}
"""Events and device information: bthome-ble keeps them elsewhere."""


@given(st.sampled_from(sorted(set(bthome._TABLE) - SILENT)), st.data())
def test_one_object_of_any_bytes_has_the_value_that_the_oracle_gives(object_id, data):
    size = bthome._TABLE[object_id].size
    if size:
        body = data.draw(st.binary(min_size=size, max_size=size))
    else:
        text = data.draw(st.binary(min_size=1, max_size=20))
        body = bytes((len(text),)) + text
    service_data = bytes((0x40, object_id)) + body
    ours = [plainly(one) for one in bthome.parse(service_data, address=ADDRESS).measured]
    assert len(ours) == len(oracle(service_data))
    assert all(same(one, other) for one, other in zip(ours, oracle(service_data), strict=True))


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(set(bthome._TABLE) - SILENT - {0})), st.binary(min_size=4, max_size=4)),
        max_size=5,
    )
)
def test_what_the_oracle_reads_of_any_objects_in_a_row_is_read_here_too(objects):
    parts = [bytes((code,)) + body[: bthome._TABLE[code].size or 2] for code, body in objects]
    service_data = b"\x40" + b"".join(parts)
    ours = [plainly(one) for one in bthome.parse(service_data, address=ADDRESS).measured if one.object_id not in SILENT]
    for value in oracle(service_data):
        assert any(same(one, value) for one in ours), value


@given(st.binary(max_size=12), st.integers(0, 2**32 - 1))
def test_what_the_oracle_decrypts_is_decrypted_here_to_the_same_values(plain, counter):
    data = sealed(plain, counter)
    ours = [
        plainly(one) for one in bthome.parse(data, address=ADDRESS, key=KEY).measured if one.object_id not in SILENT
    ]
    for value in oracle(data, KEY):
        assert any(same(one, value) for one in ours), value


# --- whose it is ----------------------------------------------------------------------------------


IRK = bytes.fromhex("ec0234a357c8ad05341010a60a397d9b")  # the Core Specification's sample data, D.7


def test_a_resolvable_address_fits_its_identity_key_alone():
    assert resolves("70:81:94:0D:FB:AA", IRK)
    assert not resolves("70:81:94:0D:FB:AB", IRK)
    assert not resolves("70:81:94:0D:FB:AA", bytes(16))
    assert not resolves("F0:81:94:0D:FB:AA", IRK)


def test_field_report_12_a_rotated_address_with_a_key_is_the_same_wearable_and_without_one_a_new_one():
    keys = (RadioKey("collar-luna", bthome=KEY), RadioKey("collar-max", irk=IRK))
    assert identify("70:81:94:0D:FB:AA", None, keys) is keys[1]
    for address in (ADDRESS, "5A:00:00:00:00:01"):
        assert identify(address, sealed(b"\x01\x5d", 7, address=address), keys) is keys[0]
    assert identify("5A:00:00:00:00:02", b"\x40\x01\x5d", keys) is None
    assert identify("5A:00:00:00:00:02", sealed(b"\x01\x5d", 7, key=bytes(16)), keys) is None


# --- the advertisement as bytes -------------------------------------------------------------------


def test_an_advertisement_and_its_bytes_are_one_to_one_whatever_the_order():
    services = {bthome.SERVICE_UUID: b"\x40\x01\x5d", "0000180f-0000-1000-8000-00805f9b34fb": b"\x5d"}
    companies = {0x0499: b"\x05" * 24, 0x004C: b""}
    one = advertisement.advertisement(ADDRESS, rssi=-61, name="Ruuvi", manufacturer=companies, service=services)
    other = advertisement.advertisement(
        ADDRESS,
        rssi=-61,
        name="Ruuvi",
        manufacturer=dict(reversed(companies.items())),
        service=dict(reversed(services.items())),
    )
    assert advertisement.pack(one) == advertisement.pack(other)
    assert advertisement.unpack(advertisement.pack(one)) == one
    assert one.device == "5448e68f80a5"


@pytest.mark.parametrize(
    ("address", "manufacturer", "service"),
    [
        ("54:48", {}, {}),
        (ADDRESS.lower(), {}, {}),
        (ADDRESS, {70_000: b""}, {}),
        (ADDRESS, {}, {"fcd2": b""}),
        (ADDRESS, {1: bytes(1_651)}, {}),
    ],
)
def test_what_no_advertisement_can_be_is_refused(address, manufacturer, service):
    with pytest.raises(PayloadError):
        advertisement.advertisement(address, rssi=None, name=None, manufacturer=manufacturer, service=service)


def hostile(times: int) -> None:
    rng = random.Random(20261130)
    plain = bytes.fromhex("400009015d025d09")
    packed = advertisement.pack(
        advertisement.advertisement(
            ADDRESS, rssi=-61, name="n", manufacturer={1: b"x"}, service={bthome.SERVICE_UUID: plain}
        )
    )
    wholes = (plain, sealed(plain[1:], 9), packed, bytes.fromhex("4053024869"), b"")
    keys = (RadioKey("collar", irk=IRK, bthome=KEY),)
    for number in range(times):
        data = mutated(rng, wholes[number % len(wholes)])
        for read in (
            lambda: bthome.parse(data, address=ADDRESS),  # noqa: B023 - called at once
            lambda: bthome.parse(data, address=ADDRESS, key=KEY),  # noqa: B023
            lambda: advertisement.unpack(data),  # noqa: B023
            lambda: identify(ADDRESS, data, keys),  # noqa: B023
        ):
            try:
                read()
            except PayloadError as refused:
                assert refused.reason  # noqa: PT017 - any other error ends the test


def test_five_thousand_hostile_advertisements_are_read_or_refused():
    hostile(5_000)


@pytest.mark.soak
def test_a_hundred_thousand_hostile_advertisements_are_read_or_refused():
    hostile(100_000)
