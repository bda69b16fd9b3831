"""docs/profiles.md against the code: its example makes the rows it says, every key and reason is told."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

from gateway.links import profileread
from gateway.links.profile import CODECS, REPLAYS, UNITS
from gateway.links.profileset import ProfileSet, check_file, shipped
from gateway.stored import EVENT_FIELDS
from tests.profiled import T1, hear, home_at, mqtt, rows
from tests.test_docs import fences, names, section, text_of
from tests.test_docs import rows as table_rows

TOLD = text_of("profiles")
LINKS = Path(profileread.__file__).parent


def test_the_example_is_a_profile_and_its_message_makes_the_rows_it_says(tmp_path):
    (text,), (payload,) = fences(TOLD, "toml profile"), fences(TOLD, "json payload")
    path = tmp_path / "hall-scale.toml"
    path.write_text(text, "utf-8")
    mine = ProfileSet([check_file(path)])
    with home_at(tmp_path / "hub.db") as database:
        for _ in range(2):
            hear(database, mqtt("hall/scales/left", payload.encode(), T1), profiles=mine)
        made = [
            f"{row.kind} {datetime.fromtimestamp(row.start_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ} {row.amount} "
            + re.sub(r"~[0-9a-f]{12}", "~DIGEST", row.ref.text)
            for row in rows(database)
        ]
    (said,) = fences(TOLD, "text rows")
    assert made == said.splitlines()


def test_the_fountains_counter_makes_one_row_of_what_it_rose_by(tmp_path):
    (text,), (payloads,) = fences(TOLD, "toml fountain"), fences(TOLD, "json fountain")
    path = tmp_path / "fountain.toml"
    path.write_text(text, "utf-8")
    with home_at(tmp_path / "hub.db") as database:
        for payload in payloads.splitlines():
            raw = mqtt("tele/fountain/SENSOR", payload.encode(), T1)
            hear(database, raw, profiles=ProfileSet([check_file(path)]))
        (row,) = rows(database)
    assert (row.kind, row.device, row.amount, row.set_aside) == ("meal", "fountain", 45_000, None)


def test_every_shipped_profile_is_told_with_what_it_listens_to():
    told = {row[0].strip("`"): row[2] for row in table_rows(section(TOLD, "## The ones that come with the hub"))}
    expected = {}
    for name, path in shipped().items():
        topics = check_file(path).match.topics
        expected[name] = ", ".join(f"`{topic}`" for topic in topics) or "radio"
        assert check_file(path).id == name
    assert told == expected


def test_every_key_of_a_profile_is_told():
    """The reader's own lists of keys, against the page."""
    code = (LINKS / "profileread.py").read_text("utf-8")
    asked = set()
    for known in re.findall(r"\.known\(([^)]*)\)", code):
        asked |= set(re.findall(r'"(\w+)"', known))
    asked |= set(profileread._TOP) | {name for each in profileread._STREAM_OPTIONS.values() for name in each}
    keys = section(TOLD, "## Every key") + section(TOLD, "## When it was") + section(TOLD, "## Whose it is")
    assert {key for key in asked if not re.search(rf"\b{key}\b", keys)} == set()
    values = names(section(TOLD, "## Every key").split("A value:")[1])
    assert set(values) == set(re.search(r'table\.known\(("from".*?)\)', code)[1].replace('"', "").split(", "))


def test_every_codec_replay_unit_and_kind_of_row_is_told():
    told = section(TOLD, "## Every key")
    assert all(f"`{word}`" in told for word in (*CODECS, *REPLAYS))
    assert all(re.search(rf"\b{unit}\b", told) for units in UNITS.values() for unit in units if unit != "flags")
    kinds = {row[0].strip("`"): row[1] for row in table_rows(section(TOLD, "## What a row can be"))}
    shown = {
        kind: ", ".join(f"`{field.name}` {field.unit}" for field in fields) for kind, fields in EVENT_FIELDS.items()
    }
    assert kinds == shown


def test_every_reason_of_a_dead_letter_is_told():
    reasons = set()
    for name in ("codecs", "profiled", "quantities", "instants", "streams", "advertised", "profileset", "identity"):
        code = (LINKS / f"{name}.py").read_text("utf-8")
        reasons |= set(re.findall(r'PayloadError\(\s*"(\w+)"', code))
        reasons |= set(re.findall(r'dead_letter\(raw, "(\w+)"', code))
    assert reasons == set(names(section(TOLD, "## What goes wrong")))


def test_the_configuration_shown_can_be_read():
    (shown,) = fences(TOLD, "toml")
    assert tomllib.loads(shown)["profiles"]["enabled"]
