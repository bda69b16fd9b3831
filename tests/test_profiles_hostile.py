"""Messages and profiles that were made to break the hub: refused with a reason, and they cost their neighbours nothing."""

from __future__ import annotations

import os
from pathlib import Path

import msgpack
import pytest

from firmware_bridge import wire
from gateway.config import load as load_config
from gateway.errors import ConfigError, ImportRefused
from gateway.knowledge.household import read_household
from gateway.links.codecs import decode
from gateway.links.ingest import store_readings
from gateway.links.payloads import read_payload
from gateway.links.profiled import Item, Message, derive
from gateway.links.profileread import read_profile
from gateway.links.profileset import ProfileSet, check_file, load_profiles
from gateway.model import RawFrame
from tests.profiled import DAY, ROLLUPS, T1, as_json, counters, hear, home_at, letters, mqtt, one_of, rows

TEXT = """
id = "hostile"
version = 1
name = "A device that lies"
device_kind = "food_bowl"
transport = "mqtt"
codec = "CODEC"
replay = "live"
items = "items"
[match]
topics = ["x/{node}/s"]
[source]
id = "{topic.node}"
[reply]
topic = "x/{n}/ack"
when = { n = "*" }
fields = { n = "{n}" }
[[event]]
kind = "weight"
time = [{ clock = "parts", from = "t" }]
values = { weight = { from = "w", unit = "g" } }
"""


def _profiles(codec: str = "json", *, items: bool = False) -> ProfileSet:
    text = TEXT.replace("CODEC", codec)
    return ProfileSet([read_profile(text if items else text.replace('items = "items"\n', ""), source="hostile")])


@pytest.fixture
def database(tmp_path):
    with home_at(tmp_path / "home.db") as found:
        yield found


# --- numbers, names, lists -----------------------------------------------------------------------


@pytest.mark.parametrize("part", ["year", "month", "hour", "second"])
@pytest.mark.parametrize("number", [2**31, 2**70, -(2**70), 10**4000])
def test_a_part_of_a_date_that_no_clock_can_show_leaves_the_arrival(database, part, number):
    told = {"year": 2026, "month": 8, "day": 1, part: number}
    hear(database, mqtt("x/n1/s", as_json({"w": 5, "t": told}), T1), profiles=_profiles())
    assert [(row.start_ms, row.dating) for row in rows(database)] == [(T1, "received")]


def test_half_a_character_in_a_name_is_a_dead_letter_and_its_neighbour_is_read(database):
    bad = b'{"items":[[{"\\ud800":1}]]}'
    good = b'{"items":[{"w":5}]}'
    hear(database, mqtt("x/n1/s", bad, T1), mqtt("x/n1/s", good, T1 + 1), profiles=_profiles(items=True))
    assert [letter.reason for letter in letters(database)] == ["not_text"]
    assert [row.amount for row in rows(database)] == [5_000]


def test_a_list_of_more_items_than_any_device_keeps_is_one_dead_letter(database):
    payload = b'{"items":[' + b",".join(b'{"w":1}' for _ in range(5_001)) + b"]}"
    hear(database, mqtt("x/n1/s", payload, T1), profiles=_profiles(items=True))
    assert [letter.reason for letter in letters(database)] == ["too_many"]
    assert rows(database) == []


def test_a_messagepack_extension_is_nothing_and_never_a_list():
    packed = msgpack.packb({"a": msgpack.ExtType(5, b"abc"), "b": [msgpack.ExtType(6, b"")]})
    assert decode(_profiles("msgpack").profiles[0], packed) == {"a": None, "b": [None]}


def test_names_that_no_rule_reads_are_not_remembered():
    """A device that makes up a name a message would else grow its memory, and every later message, without end."""
    profile = one_of("petlibro-plaf203")
    state: dict[str, object] = {}
    for number in range(50):
        fields = {"cmd": "ATTR_PUSH_EVENT", f"made_up_{number}": number, "powerMode": 1, "ts": T1, "topic": {}}
        item = Item("plaf203-a", None, fields, None)
        message = Message("mqtt", "dl/PLAF203/A/device/event/post", T1, T1, b"")
        state = derive(profile, item, message, key=str(number), state=state, zones=()).state
    assert set(state["merged"]) == {"powerMode"}


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["a/b", "../../zigbee2mqtt/set", "a/+", "#", "\x01", "\x7f", "\ufffe", "x" * 1_000])
def test_a_field_stands_for_one_level_of_an_answers_topic_and_for_nothing_a_broker_hangs_up_on(database, value):
    """`a/b` reached a topic of another device; U+0001 has mosquitto end the hub's connection."""
    told = hear(database, mqtt("x/n1/s", as_json({"w": 5, "n": value}), T1), profiles=_profiles())
    assert told.replies == ()
    assert [letter.reason for letter in letters(database)] == ["bad_value"]


def test_a_plain_field_is_answered_at_its_own_topic(database):
    told = hear(database, mqtt("x/n1/s", as_json({"w": 5, "n": "größe 7"}), T1), profiles=_profiles())
    assert [reply.topic for reply in told.replies] == ["x/größe 7/ack"]


# --- files ---------------------------------------------------------------------------------------


def _hostile_file(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.toml"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to(folder / "nowhere")
        case "huge":
            path.write_bytes(b"#" * 10_000_000)
        case "digits":
            path.write_text("version = " + "9" * 6_000)
        case "bits":
            path.write_text("version = 0x" + "f" * 6_000)
        case "exponent":
            path.write_text("version = 1e99999999999999999999")
        case "tiny":
            path.write_text("version = 1e-999999999")
        case _:
            path.write_text("[merge]\n" + ".".join("a" * 3_000) + " = 1")
    return path


@pytest.mark.parametrize(
    "kind", ["pipe", "endless", "folder", "dangling", "huge", "digits", "bits", "exponent", "tiny", "deep"]
)
def test_a_profile_file_that_is_none_is_refused_in_words_and_stops_no_other(tmp_path, kind):
    path = _hostile_file(tmp_path, kind)
    (tmp_path / "good.toml").write_text(TEXT.replace("CODEC", "json"))
    with pytest.raises(ImportRefused):
        check_file(path)
    loaded = load_profiles(enabled=(), folder=tmp_path)
    assert [one.id for one in loaded.profiles] == ["hostile"]
    assert len(loaded.troubles) == 1


@pytest.mark.parametrize("number", ["9" * 6_000, "0x" + "f" * 6_000, "1e999", "-" + "9" * 6_000])
def test_a_number_of_thousands_of_digits_is_refused_in_every_file_an_owner_writes(tmp_path, number):
    path = tmp_path / "hub.toml"
    path.write_text(f"[web]\nport = {number}")
    with pytest.raises(ConfigError):
        load_config(path)
    with pytest.raises(ImportRefused):
        read_household(f'zone = {number}\n[[pet]]\nname = "Max"\nspecies = "dog"', source="home.toml")
    with pytest.raises(ImportRefused):
        read_household(f'zone = "UTC"\n[[pet]]\nname = "Max"\nspecies = "dog"\nneutered = {number}', source="home.toml")


# --- floods and borrowed names -------------------------------------------------------------------


def test_a_flood_of_forged_senders_fills_no_table_and_keeps_no_entered_device_out(database):
    profiles = _profiles()
    flood = [mqtt(f"x/forged-{number}/s", b'{"w":5}', T1 + number) for number in range(300)]
    hear(database, *flood[:200], profiles=profiles)
    hear(database, *flood[200:], mqtt("x/scale/s", b'{"w":7}', T1 + 400), profiles=profiles)
    with database.snapshot() as reader:
        known = {row.id for row in reader.sources()}
    assert len(known) == 257
    assert [row.amount for row in rows(database, "scale")] == [7_000]  # the household has it
    assert counters(database)["strangers_refused"] == 44
    assert letters(database) == ()
    hear(database, mqtt("x/new-one/s", b'{"w":6}', T1 + 2 * DAY), profiles=profiles)  # the flood is over
    assert [row.amount for row in rows(database, "new-one")] == [6_000]
    with database.snapshot() as reader:
        assert {row.id for row in reader.sources()} == {"new-one", "scale"}


def test_a_sender_that_borrows_the_name_of_a_device_of_wire_1_is_a_dead_letter(database):
    beat = wire.pack_message(1, 1, [wire.pack_record(wire.BEAT, 1_000, (900, 2, 0))], 1_000_000, None)
    with database.transaction() as tx:
        store_readings(tx, (read_payload(RawFrame("mqtt", "bowl-max", T1, beat)),), rollups=ROLLUPS)
    before = len(rows(database, "bowl-max"))
    assert before == 1
    hear(database, mqtt("x/bowl-max/s", b'{"w":5}', T1), profiles=_profiles())
    assert len(rows(database, "bowl-max")) == before
    assert [letter.reason for letter in letters(database)] == ["id_taken"]


def test_a_flood_of_forged_tags_makes_no_household_of_thousands(database):
    """A feeder told that a tag was there entered a device for it, with the tag's whole text as its name."""
    text = (
        TEXT.replace("CODEC", "json")
        .replace('items = "items"\n', "")
        .replace("[[event]]", '[identity]\nby = "tag"\nfrom = "tag"\n[[event]]')
    )
    profiles = ProfileSet([read_profile(text, source="hostile")])
    told = [as_json({"w": 5, "tag": f"\x07{number}" + "x" * 900}) for number in range(60)]
    hear(database, *(mqtt("x/n1/s", payload, T1 + at) for at, payload in enumerate(told)), profiles=profiles)
    with database.snapshot() as reader:
        parts = [device for device in reader.household().devices if device.id.startswith("n1-")]
    assert len(parts) == 33
    assert max(len(device.name) for device in parts) < 100
    assert all(device.name.isprintable() for device in parts)
    assert len(rows(database)) == 60
