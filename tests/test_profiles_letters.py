"""Dead letters of other makers' devices: read again once their profile is mended, and tried beforehand."""

from __future__ import annotations

import json
import random

import pytest

from gateway.__main__ import main
from gateway.links.profileread import read_profile
from gateway.links.profileset import ProfileSet, shipped
from gateway.links.reprocess import due_families, reprocess
from gateway.store.verify import verify
from gateway.web.views import dead_letter_lines
from tests.profiled import (
    ALL,
    AQARA,
    AQARA_STATE,
    HOUR,
    LITTER_ROBOT,
    MINUTE,
    PETKIT,
    PETKIT_VISIT,
    PETKIT_WEIGHT,
    ROLLUPS,
    T1,
    as_json,
    changed,
    counters,
    hear,
    home_at,
    letters,
    mqtt,
    rows,
)
from tests.test_profiles_hub import edited
from tests.test_profiles_wire import scale_samples

BROKEN_PETKIT = edited(
    "petkit-litter", ('from = "content.is_shit", unit = "state"', 'from = "content.is_shot", unit = "state"')
)
BROKEN_ROBOT = edited(
    "litter-robot",
    ('clock = "local", from = "timestamp" }]\n\n[[event]]', 'clock = "local", from = "stamp" }]\n\n[[event]]'),
)


@pytest.fixture
def database(tmp_path):
    with home_at(tmp_path / "hub.db") as opened:
        yield opened


def again(database, profiles: ProfileSet = ALL, *, everything: bool = False):
    with database.transaction() as tx:
        return [
            reprocess(tx, profiles, family, rollups=ROLLUPS)
            for family in due_families(tx, profiles, everything=everything)
        ]


def unread(database):
    return [letter for letter in letters(database) if letter.read_by is None]


def everything_stored(database):
    return {row.ref.text: row for row in rows(database)}


def visit(number: int) -> bytes:
    told = json.loads(PETKIT_VISIT)
    told["event_id"] = f"4_{number}"
    told["content"] |= {"time_in": 1784736141 + 600 * number, "time_out": 1784736158 + 600 * number}
    return as_json(told)


def robot(*lines: tuple[str, str, object]) -> bytes:
    return as_json({"history": [{"timestamp": at, "action": what, "weight": weight} for at, what, weight in lines]})


def test_a_message_that_was_a_dead_letter_is_read_once_its_profile_is_mended(database):
    hear(database, mqtt(PETKIT, PETKIT_WEIGHT, T1), mqtt(PETKIT, visit(1), T1 + MINUTE), profiles=BROKEN_PETKIT)
    assert [letter.reason for letter in unread(database)] == ["missing_field"]
    assert len(rows(database)) == 1
    (done,) = again(database)
    assert (done.messages, done.new, done.changed, done.gone, done.letters) == (2, 1, 0, 0, 1)
    assert "1 that could not be read before could be now" in done.words("petkit-litter")
    assert unread(database) == []
    (kept,) = letters(database)
    assert kept.read_by == "petkit-litter, version 1"
    assert kept.raw == visit(1)
    assert counters(database)["dead_letters_read"] == 1
    assert sorted(row.kind for row in rows(database)) == ["litter", "weight"]
    before = everything_stored(database)
    assert again(database) == []
    assert [each.letters for each in again(database, everything=True)] == [0]
    assert everything_stored(database) == before
    assert verify(database.path).is_sound


def test_what_was_read_late_comes_again_and_is_known(database):
    hear(database, mqtt(PETKIT, visit(1), T1), profiles=BROKEN_PETKIT)
    again(database)
    before = everything_stored(database)
    assert len(before) == 1
    hear(database, mqtt(PETKIT, visit(1), T1 + HOUR))
    assert everything_stored(database) == before


def test_what_came_again_before_it_was_read_is_one_event(database):
    hear(database, mqtt(PETKIT, visit(1), T1), profiles=BROKEN_PETKIT)
    hear(database, mqtt(PETKIT, visit(1), T1 + HOUR))
    assert len(rows(database)) == 1
    again(database)
    assert len(rows(database)) == 1
    assert unread(database) == []


def test_what_the_mended_profile_cannot_read_either_stays_a_dead_letter(database):
    bad = changed(visit(2), content={"time_in": "noon"})
    hear(
        database,
        mqtt(PETKIT, visit(1), T1),
        mqtt(PETKIT, bad, T1 + 1),
        mqtt(PETKIT, b"{", T1 + 2),
        profiles=BROKEN_PETKIT,
    )
    (done,) = again(database)
    assert done.letters == 1
    assert {letter.raw for letter in unread(database)} == {bad, b"{"}
    assert again(database) == []


def test_a_topic_that_nobody_took_is_read_once_a_profile_takes_it(database):
    nobody = ProfileSet([one for one in ALL.profiles if one.id != "petkit-litter"])
    hear(database, mqtt(PETKIT, visit(1), T1), profiles=nobody)
    assert [letter.reason for letter in unread(database)] == ["no_profile"]
    (done,) = again(database)
    assert (done.new, done.letters) == (1, 1)


def test_bad_items_of_a_list_are_read_with_their_message_whether_or_not_others_of_it_were(database):
    some = robot(("2026-07-08T07:00:00", "Pet Weight Recorded", "8.2"), ("2026-07-08T07:01:00", "Cat Detected", None))
    none = robot(
        ("2026-07-08T09:00:00", "Pet Weight Recorded", "8.3"), ("2026-07-08T10:00:00", "Pet Weight Recorded", "8.1")
    )
    hear(database, mqtt(LITTER_ROBOT, some, T1), profiles=BROKEN_ROBOT)
    hear(database, mqtt(LITTER_ROBOT, none, T1 + HOUR), profiles=BROKEN_ROBOT)
    assert [row.kind for row in rows(database)] == ["litter"]
    assert [letter.whole for letter in reversed(unread(database))] == [None, none, None]
    (done,) = again(database)
    assert (done.new, done.letters) == (3, 3)
    assert sorted(row.kind for row in rows(database)) == ["litter", "weight", "weight", "weight"]
    assert unread(database) == []
    assert again(database) == []


def test_counters_go_on_as_if_every_message_had_been_read(database, tmp_path):
    states = [changed(AQARA_STATE, portions_per_day=n, weight_per_day=10 * n) for n in range(1, 8)]
    broken = edited("aqara-c1", ('from = "weight_per_day"', 'from = "grams_per_day"'))
    told = [mqtt(AQARA, state, T1 + n * HOUR) for n, state in enumerate(states)]
    for n, raw in enumerate(told):
        hear(database, raw, profiles=broken if n % 3 else ALL)
    again(database)
    with home_at(tmp_path / "other.db") as straight:
        for raw in told:
            hear(straight, raw)
        want = {(row.kind, row.start_ms, row.amount) for row in rows(straight)}
    assert {(row.kind, row.start_ms, row.amount) for row in rows(database)} == want


@pytest.mark.parametrize("seed", range(6))
def test_a_hub_whose_profile_was_mended_ends_with_the_rows_of_one_whose_profile_was_right(database, tmp_path, seed):
    draw = random.Random(seed)
    told = [
        mqtt(PETKIT, draw.choice([PETKIT_WEIGHT, b"{", *(visit(n) for n in range(6))]), T1 + n * MINUTE)
        for n in range(40)
    ]
    for raw in told:
        hear(database, raw, profiles=draw.choice([ALL, BROKEN_PETKIT]))
    again(database)
    again(database)
    with home_at(tmp_path / "other.db") as straight:
        for raw in told:
            hear(straight, raw)
        want = {ref: (row.kind, row.start_ms, row.fields) for ref, row in everything_stored(straight).items()}
    assert {ref: (row.kind, row.start_ms, row.fields) for ref, row in everything_stored(database).items()} == want
    assert {letter.raw for letter in unread(database)} <= {b"{"}
    assert verify(database.path).is_sound


def test_bare_samples_of_a_scale_are_not_read_again_for_equal_ones_were_kept_once(database):
    nobody = ProfileSet([one for one in ALL.profiles if one.stream is None])
    for raw in scale_samples((300, 30), *((300 - 0.4 * n, 2) for n in range(60)), (276, 60)):
        hear(database, raw, profiles=nobody)
    kept = len(unread(database))
    assert kept > 10
    assert again(database) == []
    assert (rows(database), len(unread(database))) == ([], kept)


def test_a_forgotten_devices_dead_letters_stay_dead(database):
    hear(database, mqtt(PETKIT, visit(1), T1), profiles=BROKEN_PETKIT)
    with database.transaction() as tx:
        source = f"petkit-{PETKIT.split('/')[1]}"
        tx._db.execute("INSERT INTO forgotten (sender, device, forgotten_ms) VALUES (?, ?, ?)", (source, source, T1))
    again(database)
    assert rows(database) == []
    assert len(unread(database)) >= 1


def test_the_page_shows_what_was_read_since_last_and_with_its_profile(database):
    hear(database, mqtt(PETKIT, visit(1), T1), mqtt(PETKIT, b"{", T1 + 1), profiles=BROKEN_PETKIT)
    again(database)
    with database.snapshot() as reader:
        lines = dead_letter_lines(reader, limit=10)
    assert [line[4] for line in lines] == ["", "petkit-litter, version 1"]


def test_a_profile_made_anew_under_another_id_reads_the_letters_of_the_old_one(database):
    hear(database, mqtt(PETKIT, visit(1), T1), profiles=BROKEN_PETKIT)
    text = shipped()["petkit-litter"].read_text("utf-8").replace('id = "petkit-litter"', 'id = "my-box"')
    mine = ProfileSet([read_profile(text, source="my-box.toml")])
    (done,) = again(database, mine)
    assert (done.new, done.letters) == (1, 1)
    assert letters(database)[0].read_by == "my-box, version 1"


# --- tried beforehand -----------------------------------------------------------------------------

FEEDER = str(shipped()["aqara-c1"])
BOX = str(shipped()["petkit-litter"])


def check(capsys, *arguments: str) -> tuple[int, str]:
    status = main(["profile", "check", *arguments])
    told = capsys.readouterr()
    return status, told.out + told.err


def test_a_sample_shows_the_rows_it_would_make_and_keeps_nothing(database, capsys):
    at = ("--topic", PETKIT, "--db", str(database.path))
    status, told = check(capsys, BOX, *at, "--payload", PETKIT_VISIT.decode())
    assert status == 0
    assert "Message 1 on petkit/" in told
    assert "Litter, " in told
    assert "lasted: 17 s" in told
    assert "reference: event:petkit-" in told
    assert "No home is entered" not in told
    assert rows(database) == []
    hear(database, mqtt(PETKIT, PETKIT_VISIT, T1))
    (row,) = rows(database)
    assert row.ref.text in told


def test_a_sample_that_cannot_be_read_says_why_and_ends_with_status_1(tmp_path, capsys):
    file = tmp_path / "sample.bin"
    file.write_bytes(b'{"event_id": "x", "event_type": "10", "content": {"time_in": 1784736141}}')
    status, told = check(capsys, BOX, "--topic", PETKIT, "--payload-file", str(file), "--db", str(tmp_path / "no.db"))
    assert status == 1
    assert "Could not be read (missing_field): content.time_out" in told
    assert "taken to be UTC" in told
    status, told = check(capsys, BOX, "--topic", PETKIT, "--payload", '{"lamp": "on"}', "--db", str(tmp_path / "no.db"))
    assert status == 1
    assert "1 of another device: what match.require names is missing (event_id, event_type, content)" in told


def test_samples_come_one_after_another(tmp_path, capsys):
    states = [changed(AQARA_STATE, portions_per_day=n, weight_per_day=10 * n).decode() for n in (4, 6)]
    first = check(capsys, FEEDER, "--topic", AQARA, "--payload", states[0], "--db", str(tmp_path / "no.db"))
    assert first[0] == 0
    assert "a counter needs a message before it" in first[1]
    both = check(
        capsys, FEEDER, "--topic", AQARA, *(f"--payload={one}" for one in states), "--db", str(tmp_path / "no.db")
    )
    assert both[0] == 0
    assert "added: 20 g" in both[1]


def test_a_radio_sample_is_an_advertisement(tmp_path, capsys):
    bthome, no = str(shipped()["bthome"]), str(tmp_path / "no.db")
    heard = {"address": "CB:B8:33:4C:88:4F", "service": {"0000fcd2-0000-1000-8000-00805f9b34fb": "40025d09"}}
    status, told = check(capsys, bthome, "--payload", json.dumps(heard), "--db", no)
    assert status == 0
    assert "temperature: 24" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((BOX, "--payload", "{}"), "must be given --topic, such as petkit/{box}/event"),
        (
            (BOX, "--payload", "{}", "--topic", "a/b"),
            "must be one that the profile takes (petkit/{box}/event), is 'a/b'",
        ),
        ((BOX, "--topic", "petkit/x/event"), "must come with --payload"),
        ((BOX, "--topic", "petkit/x/event", "--payload-file", "/no/such"), "must be readable, but No such file"),
        ((str(shipped()["bthome"]), "--payload", "4000"), "a sample must be JSON such as"),
        ((str(shipped()["bthome"]), "--payload", '{"address": "x"}'), "a sample must be JSON such as"),
        (
            (str(shipped()["bthome"]), "--payload", '{"address": "CB:B8:33:4C:88:4F", "service": 5}'),
            "a sample must be JSON",
        ),
    ],
)
def test_what_is_no_sample_is_refused_in_words(tmp_path, capsys, arguments, words):
    status, told = check(capsys, *arguments, "--db", str(tmp_path / "no.db"))
    assert status == 2
    assert words in told
