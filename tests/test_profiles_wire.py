"""Every payload of the eight families of the shared wire cases, decoded exactly and stored once."""

from __future__ import annotations

import unicodedata

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.links.profile import Counter
from gateway.links.profileread import read_profile
from gateway.links.profileset import ProfileSet
from gateway.links.quantities import advance
from gateway.model import Binding, Device, Household, RecordRef
from tests.profiled import (
    ALL,
    AQARA,
    AQARA_STATE,
    DAY,
    ESPHOME,
    GRAIN_END,
    GRAIN_START,
    HOUR,
    LITTER_ROBOT,
    MINUTE,
    PETKIT,
    PETKIT_VISIT,
    PETKIT_WEIGHT,
    PETLIBRO,
    PETS,
    RUUVI,
    SUREPET,
    SUREPET_LINE,
    T1,
    T2,
    T3,
    THEENGS,
    advert,
    as_json,
    changed,
    counters,
    day,
    hear,
    home_at,
    letters,
    mqtt,
    radio,
    rows,
)


@pytest.fixture
def database(tmp_path):
    with home_at(tmp_path / "hub.db") as opened:
        yield opened


# --- 1 PetLibro ----------------------------------------------------------------------------------


def test_a_petlibro_feeding_is_a_start_and_an_end_of_one_message_id_in_portions(database):
    heard = (mqtt(PETLIBRO, GRAIN_START, T1 + 500), mqtt(PETLIBRO, GRAIN_END, T1 + 4500))
    assert hear(database, *heard).counted["records_stored"] == 2
    start, end = rows(database, "plaf203-af01")
    assert (start.kind, start.fields, start.amount, start.start_ms) == ("dispensing", (1,), None, T1)
    assert (end.kind, end.fields, end.amount, end.unit, end.start_ms) == ("dispensed", (1,), 1, "count", T1 + 4000)
    assert end.ref == RecordRef("event:plaf203-af01/petlibro-plaf203/manual-feed-1.GRAIN_END.end")
    assert hear(database, *heard).counted["records_known"] == 2
    assert len(rows(database)) == 2
    assert (day(database, "max.portions", "2026-08-10")).total == 1


def test_a_petlibro_feeding_is_answered_once_it_is_stored_and_again_when_it_comes_again(database):
    for _ in range(2):
        (reply,) = hear(database, mqtt(PETLIBRO, GRAIN_END, T1 + 4500)).replies
        assert reply.topic == "dl/PLAF203/AF01/device/event/sub"
        assert dict(reply.fields) == {"cmd": "GRAIN_OUTPUT_EVENT", "msgId": "manual-feed-1", "code": 0}


def test_a_sparse_state_changes_what_it_names_and_a_null_changes_nothing(database):
    said = (
        {"electricQuantity": 80, "powerMode": 1, "surplusGrain": True},
        {"surplusGrain": False},
        {"powerMode": None, "electricQuantity": 80},
    )
    for n, state in enumerate(said):
        hear(database, mqtt(PETLIBRO, as_json({"cmd": "ATTR_PUSH_EVENT", "ts": T1 + n * MINUTE} | state), T1 + DAY))
    states = [row.fields for row in rows(database) if row.kind == "state"]
    assert states == [
        ("powerMode=1", "surplusGrain=true", "electricQuantity=80"),
        ("powerMode=1", "surplusGrain=false", "electricQuantity=80"),
    ]
    assert counters(database)["profile_unchanged"] == 1


def test_a_battery_of_0_means_not_known(database):
    """Field report 13: 0 with signal and events for days is no empty battery."""
    for n, level in enumerate((0, 4, 0)):
        state = {"cmd": "ATTR_PUSH_EVENT", "ts": T1 + n * MINUTE, "electricQuantity": level}
        hear(database, mqtt(PETLIBRO, as_json(state), T1 + n * MINUTE))
    beats = [row for row in rows(database) if row.kind == "beat"]
    assert [(row.fields[0], row.amount) for row in beats] == [(65_535, None), (40, 40), (65_535, None)]


def test_two_events_of_a_clock_30_minutes_behind_move_once_it_is_set_and_the_third_does_not(database):
    """Field report 6, for a device that tells when its clock is set."""
    behind = 30 * MINUTE
    for n in range(2):
        told = changed(GRAIN_END, msgId=f"m{n}", ts=T1 + n * HOUR - behind)
        hear(database, mqtt(PETLIBRO, told, T1 + n * HOUR + 300))
    hear(
        database,
        mqtt(PETLIBRO.replace("event", "ntp"), as_json({"cmd": "NTP", "ts": T1 + 90 * MINUTE}), T1 + 91 * MINUTE),
    )
    hear(database, mqtt(PETLIBRO, changed(GRAIN_END, msgId="m2", ts=T1 + 2 * HOUR), T1 + 2 * HOUR + 300))
    found = [(row.start_ms - T1, row.dating) for row in rows(database)]
    assert found == [(0, "corrected"), (HOUR, "corrected"), (2 * HOUR, "wall")]


# --- 2 SurePet -----------------------------------------------------------------------------------


def test_a_surepet_line_is_a_visit_with_its_tag_and_both_bowls(database):
    hear(database, mqtt(SUREPET, SUREPET_LINE, T2))
    (row,) = rows(database)
    assert row.kind == "meal"
    assert row.end_ms == 1_609_522_496_000  # 2021-01-01 12:34:56 in New York
    assert row.end_ms - row.start_ms == 11_000
    assert row.fields == (0, 11_000, -200, 0, "left_from=-1159", "left_to=-1140", "right_from=208", "right_to=209")
    assert row.object == "900.000123456788"
    assert row.set_aside == "the bowl gained 0.2 g during a visit; not counted as eaten"
    assert row.ref == RecordRef("event:surefeed-0013a2/surepet-hub/202.1413662904.meal")


def test_negative_levels_are_not_clamped(database):
    """Field report 9: -11.59 before, -18.09 after: 6.50 g were taken."""
    line = SUREPET_LINE.replace(b"8c fb ff ff", b"ef f8 ff ff").replace(b"d1 00 00 00", b"d0 00 00 00")
    hear(database, mqtt(SUREPET, line, T2))
    (row,) = rows(database)
    assert (row.amount, row.set_aside) == (6_500, None)


def test_an_unset_feeder_clock_gives_way_to_the_hubs_time_in_the_line(database):
    line = SUREPET_LINE.replace(b"b8 c8 42 54", b"00 00 00 00")
    hear(database, mqtt(SUREPET, line, T2))
    (row,) = rows(database)
    assert (row.end_ms, row.dating) == (1_609_524_000_000, "wall")


def test_a_surepet_tare_is_a_tare(database):
    hear(database, mqtt(SUREPET, SUREPET_LINE.replace(b"e1 01 01 0b", b"e1 01 06 0b"), T2))
    assert [row.kind for row in rows(database)] == ["tare"]


# --- 3 PetKit ------------------------------------------------------------------------------------


def test_the_two_reports_of_a_petkit_visit_are_a_weight_and_a_visit(database):
    heard = (mqtt(PETKIT, PETKIT_WEIGHT, T3), mqtt(PETKIT, PETKIT_VISIT, T3))
    assert hear(database, *heard, *heard).counted["records_stored"] == 2
    weight, visit = rows(database)
    assert (weight.kind, weight.amount, weight.start_ms) == ("weight", 2_128_000, 1_784_736_135_000)
    assert (visit.kind, visit.fields) == ("litter", (17_000, 1))
    assert (visit.start_ms, visit.end_ms) == (1_784_736_141_000, 1_784_736_158_000)
    assert {row.ref.text.rpartition("/")[2] for row in (weight, visit)} == {
        "4_10000001_1784736135.9.weight",
        "4_10000001_1784736135.10.litter",
    }


# --- 4 Aqara -------------------------------------------------------------------------------------


def test_day_counters_of_an_aqara_feeder_count_what_they_rose_by_and_start_anew_at_its_midnight(database):
    told = [(2, 20), (4, 40), (4, 40), (1, 10), (3, 30)]
    for n, (portions, grams) in enumerate(told):
        state = changed(AQARA_STATE, portions_per_day=portions, weight_per_day=grams)
        hear(database, mqtt(AQARA, state, T1 + n * HOUR))
    found = [(row.kind, row.amount, row.start_ms - T1) for row in rows(database, "aqara-feeder")]
    assert [each for each in found if each[0] == "dispensed"] == [
        ("dispensed", 2, HOUR),
        ("dispensed", 1, 3 * HOUR),
        ("dispensed", 2, 4 * HOUR),
    ]
    assert [amount for kind, amount, _ in found if kind == "refill"] == [20_000, 10_000, 20_000]
    assert day(database, "max.portions", "2026-08-10").total == 5
    # Its grams are portions times a setting: kept as told, never a weight of food that was measured.
    assert [day(database, f"max.{noun}", "2026-08-10") for noun in ("refill", "intake", "meals")] == [None] * 3


def test_a_lamp_on_the_same_topics_is_counted_and_nothing_else(database):
    hear(database, mqtt("zigbee2mqtt/Lamp", b'{"state":"ON","brightness":254}', T1))
    assert (rows(database), letters(database), counters(database)["profile_ignored"]) == ([], (), 1)


# --- 5 ESPHome -----------------------------------------------------------------------------------


def scale_samples(*levels: tuple[float, int]):
    """A sample each two seconds: (grams, seconds) at a level."""
    at = 0
    for grams, seconds in levels:
        for _ in range(seconds // 2):
            yield mqtt(ESPHOME, f"{grams:.2f}".encode(), T1 + at * 1000)
            at += 2


def test_bare_numbers_of_a_scale_become_meals_and_refills(database):
    eaten = [(300 - 2 * n, 2) for n in range(20)]
    again = [(420 - n, 2) for n in range(26)]
    hear(database, *scale_samples((300, 60), *eaten, (262, 90), (420, 90), *again, (395, 90)))
    found = [(row.kind, row.amount) for row in rows(database, "kitchen-bowl")]
    assert [kind for kind, _ in found] == ["meal", "refill", "meal"]
    for (_, amount), right in zip(found, (38_000, 158_000, 25_000), strict=True):
        assert abs(amount - right) <= 1_000  # a load cell's noise: the scale is told that it has 1 g
    eaten_mg = sum(amount for kind, amount in found if kind == "meal")
    assert day(database, "luna.intake", "2026-08-10").total == eaten_mg


@pytest.mark.parametrize("text", [b"36,5", b"nan", b"inf", b"", b"36.5 g", b"1e999", b"\xff"])
def test_what_is_no_number_is_a_dead_letter(database, text):
    hear(database, mqtt(ESPHOME, text, T1))
    (letter,) = letters(database)
    assert (letter.reason, letter.raw) == ("not_a_number", text)


# --- 6 BTHome ------------------------------------------------------------------------------------


def test_bthome_values_are_exact(database):
    hear(database, radio(advert("40 00 09 01 5d 02 5d 09"), T1), radio(advert("40 06 5e 1f"), T1 + MINUTE))
    hear(database, radio(advert("40 5a fb ff"), T1 + 2 * MINUTE))
    found = [(row.kind, row.fields) for row in rows(database)]
    assert found == [
        ("beat", (930, 2, 0)),
        ("temperature", (297_120,)),  # 23.97 C
        ("weight", (80_300_000,)),
        ("plateau", (-5_000, 0)),
    ]


def test_the_packet_rule_of_bthome_gives_9_10_10(database):
    """Ids 9(0 s) 9(.5) 10(1) 8(1.5) 255(2) 10(7)."""
    ids = ((9, 0), (9, 500), (10, 1000), (8, 1500), (255, 2000), (10, 7000))
    for number, at_ms in ids:
        hear(database, radio(advert(f"40 00 {number:02x} 02 5d 09"), T1 + at_ms))
    found = [(row.ref.text.rpartition("/")[2].partition("@")[0], row.start_ms - T1) for row in rows(database)]
    assert found == [("9", 0), ("10", 1000), ("10", 7000)]
    assert counters(database)["records_known"] == 3


# --- 7 Theengs -----------------------------------------------------------------------------------


def test_a_ruuvitag_through_a_gateway_is_read_exactly(database):
    hear(database, mqtt(THEENGS, RUUVI, T1))
    (row,) = rows(database)
    assert (row.device, row.kind, row.amount) == ("cbb8334c884f", "temperature", 297_450)
    assert row.fields[1:] == ("volt=2.977", "accx=0.0039", "accz=1.016")


def test_a_movement_counter_wraps_at_254_and_255_is_not_known(database):
    for n, moves in enumerate((250, 254, 3, 255, 4)):
        hear(database, mqtt(THEENGS, changed(RUUVI, mov=moves, seq=205 + n), T1 + n * MINUTE))
    assert [row.amount for row in rows(database) if row.kind == "movement"] == [4, 4, 1]


def test_an_invalid_reading_is_kept_and_does_not_count_and_numbers_sent_as_text_are_numbers(database):
    hear(database, mqtt(THEENGS, changed(RUUVI, tempc=-163.84), T1))
    hear(database, mqtt(THEENGS, changed(RUUVI, tempc="24.3", seq="206"), T1 + MINUTE))
    first, second = rows(database)
    assert first.set_aside == "-163.84 C lies outside -40..85 C; not counted"
    assert (second.amount, second.set_aside) == (297_450, None)


# --- 8 histories ---------------------------------------------------------------------------------


def test_a_litter_robot_history_is_pounds_and_the_homes_own_wall_time(database):
    history = [
        {"timestamp": "2026-07-04 23:50:00", "action": "Pet Weight Recorded", "weight": 8.5},
        {"timestamp": "2026-07-04 23:50:00", "action": "Cat Detected"},
        {"timestamp": "2026-03-08 02:30:00", "action": "Cat Detected"},
        {"timestamp": "2026-11-01 01:30:00", "action": "Cat Detected"},
        {"timestamp": "2026-11-01 01:30:00", "action": "Cat Detected"},
    ]
    at_ms = 1_793_900_000_000
    for _ in range(2):
        hear(database, mqtt(LITTER_ROBOT, as_json({"history": history}), at_ms))
    found = rows(database)
    assert [(row.kind, row.start_ms, row.dating) for row in found] == [
        ("litter", 1_772_955_000_000, "doubtful"),  # 02:30 that day never was: 03:30
        ("litter", 1_783_223_400_000, "wall"),
        ("weight", 1_783_223_400_000, "wall"),
        ("litter", 1_793_511_000_000, "bracket"),  # twice 01:30, an hour apart
        ("litter", 1_793_514_600_000, "bracket"),
    ]
    assert found[2].amount == 3_855_535  # 8.5 lb


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_weight_as_text_of_a_name_in_any_spelling_is_of_that_pet(database, form):
    name = unicodedata.normalize(form, "Müsli 🐈 O'Malley") + "  "
    hear(
        database,
        mqtt(PETS, as_json({"data": [{"name": name, "weight": "3600", "updated_at": "2026-07-04 23:50"}]}), T1),
    )
    (row,) = rows(database)
    with database.snapshot() as reader:
        assert reader.household().bindings_at(row.device, row.start_ms) == {"musli"}
    assert (row.kind, row.amount, row.object) == ("weight", 3_600_000, "Müsli 🐈 O'Malley")


def test_one_bad_item_of_a_history_costs_its_neighbours_nothing(database):
    history = [
        {"timestamp": "2026-07-04 23:50:00", "action": "Cat Detected"},
        {"timestamp": "yesterday", "action": "Cat Detected"},
        7,
        {"timestamp": "2026-07-05 23:50:00", "action": "Pet Weight Recorded", "weight": "heavy"},
        {"timestamp": "2026-07-06 23:50:00", "action": "Cat Detected"},
    ]
    hear(database, mqtt(LITTER_ROBOT, as_json({"history": history}), 1_793_900_000_000))
    assert len(rows(database)) == 2
    assert sorted(letter.reason for letter in letters(database)) == ["bad_value", "no_time", "not_a_map"]


# --- what the families do not show ----------------------------------------------------------------


def ran(counter: Counter, readings: list[int]) -> int:
    before, total = None, 0
    for reading in readings:
        before, increase = advance(counter, before, reading)
        total += increase or 0
    return total


@pytest.mark.parametrize(
    ("readings", "right"),
    [
        ([1200, 1240, 1275, 5, 30], 105),  # a reset
        ([1200, 1240, 1239, 1275], 75),  # a jitter of 1 is none
        ([3737, 0, 3746], 9),  # a misread in between
        ([100, 40, 60, 110], 110),  # two in a row below: a reset, whatever comes after
    ],
)
def test_a_total_is_told_from_its_resets_jitters_and_misreads(readings, right):
    """days.md, case 8, reading by reading."""
    assert ran(Counter("total", jitter=1), readings) == right


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.integers(2, 9))
def test_a_counter_that_wraps_gives_back_what_it_counted(steps, modulus):
    steps = [step % modulus for step in steps]
    readings, at = [7 % modulus], 7
    for step in steps:
        at += step
        readings.append(at % modulus)
    assert ran(Counter("modulus", modulus), readings) == sum(steps)


NEAR = """
id = "collar-feeder"
version = 1
name = "A feeder that hears collars"
device_kind = "food_bowl"
transport = "mqtt"
codec = "msgpack"
replay = "events"
[match]
topics = ["feeder/{serial}"]
[source]
id = "{topic.serial}"
[dedupe]
key = "{n}"
[identity]
by = "nearness"
from = "heard"
[[event]]
kind = "meal"
values = { removed = { from = "g", unit = "g" }, lasted = { from = "s", unit = "s" } }
"""


def test_the_wearable_nearest_to_a_feeder_says_who_ate(database):
    profiles = ProfileSet([read_profile(NEAR, source="near"), *ALL.profiles])
    tags = {"cbb8334c884f": "luna", "cbb8334c8850": "max"}
    with database.transaction() as tx:
        tx.save_household(
            Household(
                zones=(),
                devices=(Device("f1", "food_bowl", "feeder"), *(Device(tag, "tracker", tag) for tag in tags)),
                bindings=(
                    Binding("f1", frozenset(tags.values()), 0),
                    *(Binding(tag, frozenset({pet}), 0) for tag, pet in tags.items()),
                ),
            ),
            valid_from_ms=0,
        )
    for n, tag in enumerate(("CB:B8:33:4C:88:4F", "CB:B8:33:4C:88:50")):
        hear(database, mqtt(THEENGS, changed(RUUVI, id=tag, seq=n), T1 - HOUR))
    for n, (one, two) in enumerate(((-45, -60), (-61, -44), (-50, -52))):
        told = {"n": n, "g": 20.5, "s": 120, "heard": {"CB:B8:33:4C:88:4F": one, "CB:B8:33:4C:88:50": two}}
        hear(database, mqtt("feeder/f1", msgpack.packb(told), T1 + n * HOUR), profiles=profiles)
    with database.snapshot() as reader:
        home = reader.household()
    meals = [row for row in rows(database) if row.kind == "meal"]
    assert [sorted(home.bindings_at(row.device, row.start_ms)) for row in meals] == [["luna"], ["max"], ["luna", "max"]]
    assert {row.amount for row in meals} == {20_500}
    assert day(database, "luna.intake", "2026-08-10").total == 20_500
