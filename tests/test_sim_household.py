"""The simulated household: same seed same frames, premises that hold, no truth where it must not be."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import tomllib
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_sim import __main__ as command
from device_sim.cast import ean13, redraw
from device_sim.faults import outage_ms
from device_sim.household import MOTION_MS, build_world
from device_sim.owner import household_toml, log_lines, product_json, write_owner_files
from device_sim.play import digest
from device_sim.series import HABITS, SETTLED, daily_totals
from device_sim.story import Gap, StoryError, load_story, story_names
from device_sim.truth import change_of, truth_json, usual_of
from firmware_bridge import wire
from firmware_bridge.outbox import Outbox, RamSlots

ROOT = Path(__file__).resolve().parents[1]
SEEDS = (0, 1, 2, 3, 4, 5)


@lru_cache(maxsize=64)
def world_of(name: str = "food_switch", seed: int = 0):
    return build_world(redraw(load_story(name), seed))


@pytest.fixture(scope="module")
def article():
    return world_of()


# --- the same seed ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_frames_under_any_hash_seed():
    def frames(seed: int, hash_seed: str) -> str:
        words = [sys.executable, "-m", "device_sim", "--seed", str(seed), "--days", "20", "--digest"]
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT, env=env).stdout

    assert frames(3, "0") == frames(3, "1") == frames(3, "77")
    assert frames(3, "0") != frames(4, "0")


def test_another_seed_redraws_who_what_and_when():
    casts = [redraw(load_story("food_switch"), seed) for seed in SEEDS]
    assert len({cast.pet("subject").name for cast in casts}) >= 4
    assert len({cast.food("after").code for cast in casts}) == len(casts)
    assert len({cast.ends for cast in casts}) >= 5
    assert len({cast.effects[0].day for cast in casts}) >= 2
    assert {cast.food("after").ingredient for cast in casts} - {"chicken", "beef", "lamb"}, "one nobody reacts to"
    assert [cast.variant for cast in casts] == ["reactive"] * 5 + ["inert"]


def test_seed_0_is_the_article():
    cast = redraw(load_story("food_switch"), 0)
    assert cast == load_story("food_switch")
    assert (cast.pet("subject").name, cast.food("after").name) == ("Max", "Acme Chicken & Rice")
    assert cast.date_of(cast.feedings[1].day).isoformat() == "2026-07-05"
    assert cast.date_of(cast.effects[0].day).isoformat() == "2026-07-08"
    assert "chicken" in cast.food("after").ingredients
    assert "chicken" not in cast.food("before").ingredients.lower()


@pytest.mark.parametrize("seed", range(1, 31))
def test_what_is_new_in_a_redrawn_food_is_new(seed):
    cast = redraw(load_story("food_switch"), seed)
    before, after, others = cast.food("before"), cast.food("after"), cast.food("other_after")
    assert after.ingredient in after.ingredients.lower()
    assert after.ingredient not in before.ingredients.lower()
    assert others.ingredient != after.ingredient
    assert (after.ingredient in ("chicken", "beef", "lamb")) == (cast.variant == "reactive")
    switch = next(one for one in cast.feedings if one.pet == "subject" and one.food == "after")
    assert 2 <= cast.effects[0].day - switch.day <= 6
    assert len({pet.name for pet in cast.pets}) == len(cast.pets)


@given(st.integers(0, 10**12 - 1))
def test_product_codes_carry_the_check_digit(twelve):
    digits = [int(digit) for digit in ean13(twelve)]
    assert len(digits) == 13
    assert (sum(digits[::2]) + 3 * sum(digits[1::2])) % 10 == 0


# --- premises -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_the_story_is_true_in_every_world(seed):
    world = world_of(seed=seed)
    assert change_of(world, "subject", "scratch") == pytest.approx(0.40, abs=0.09)
    assert change_of(world, "subject", "restless") == pytest.approx(0.50, abs=0.12)
    for pet, series in world.slots:
        if (pet, series) not in {("subject", "scratch"), ("subject", "restless")}:
            assert change_of(world, pet, series) == pytest.approx(0.0, abs=0.07), (pet, series)


@pytest.mark.parametrize("seed", SEEDS)
def test_in_nothing_changed_nothing_changes(seed):
    world = world_of("nothing_changed", seed)
    for pet, series in world.slots:
        assert change_of(world, pet, series) == pytest.approx(0.0, abs=0.07), (pet, series)
    assert json.loads(truth_json(world))["cause"] is None


def test_scratching_varies_from_day_to_day_as_the_story_says(article):
    days = defaultdict(float)
    for (day, _), value in article.slots["subject", "scratch"].items():
        days[day] += value
    before = [days[day] for day in range(67)]
    assert statistics.mean(before) == pytest.approx(100_000, rel=0.08)
    assert statistics.stdev(before) / statistics.mean(before) == pytest.approx(0.15, abs=0.05)
    assert usual_of(article, "subject", "scratch") == pytest.approx(100_000, rel=0.12)


@given(st.integers(0, 10_000), st.sampled_from(sorted(HABITS)))
def test_a_drawn_week_differs_from_before_by_no_more_than_it_may(seed, series):
    drawn = daily_totals(f"t/{seed}", HABITS[series], days=75, end_hour=24.0, first_weekday=3, shape=(1,) * 24)
    week, before = drawn[68:75], drawn[40:68]
    assert abs(sum(week) / 7 / (sum(before) / 28) - 1) <= SETTLED + 1e-12


# --- what devices record ------------------------------------------------------------------


@pytest.mark.parametrize("name", story_names())
def test_every_record_can_be_packed_and_comes_in_order(name):
    world = world_of(name, 2)
    for device in world.devices:
        assert wire.is_device_id(device.id)
        last_ms = world.story.start_ms
        for one in device.taken[:4_000]:
            assert one.at_ms >= last_ms
            last_ms = one.at_ms
            wire.pack_record(one.kind, one.at_ms - world.story.start_ms, one.values)


def test_a_motion_record_accounts_for_every_moment_worn(article):
    tracker = next(device for device in article.devices if device.kind == "tracker")
    worn_ms = 0
    for one in tracker.taken:
        if one.kind == wire.MOTION:
            lasted, scratch, shake, low, mid, high, rest, restless, worn = one.values
            assert lasted == MOTION_MS
            assert low + mid + high + rest == worn <= lasted
            assert max(scratch, shake, restless) <= lasted
            assert worn or not (scratch or shake or restless)
            worn_ms += worn
    assert 0.95 < worn_ms / (MOTION_MS * sum(one.kind == wire.MOTION for one in tracker.taken)) < 1.0


def test_what_a_pet_eats_is_the_same_energy_from_either_food(article):
    story = article.story
    bowl = next(device for device in article.devices if device.id == "bowl-max")
    switch_ms = story.instant(-9, story.feedings[1].at)
    grams = {"before": [], "after": []}
    for one in bowl.taken:
        if one.kind == wire.MEAL and one.at_ms <= story.end_ms:
            began_ms, lasted_ms, removed_mg, quality = one.values
            assert one.at_ms == story.start_ms + began_ms + lasted_ms
            assert quality == 0
            grams["before" if story.start_ms + began_ms < switch_ms else "after"].append(removed_mg / 1000)
    energy = {key: statistics.mean(found) * story.food(key).kcal_per_kg / 1000 for key, found in grams.items()}
    assert energy["after"] == pytest.approx(energy["before"], rel=0.05)


def test_days_are_cut_at_local_midnight_on_the_day_the_clocks_change():
    story = replace(load_story("nothing_changed"), days=30, ends=datetime.fromisoformat("2026-11-08T18:00"))
    feedings = tuple(replace(one, day=-29) for one in story.feedings if one.day < -20)
    world = build_world(replace(story, feedings=feedings, log=()))
    tracker = next(device for device in world.devices if device.kind == "tracker")
    motions = [one.at_ms for one in tracker.taken if one.kind == wire.MOTION]
    assert {later - earlier for earlier, later in pairwise(motions)} == {MOTION_MS}
    fall_day = 22  # 2026-11-01 has 25 hours
    assert sum(1 for day, _ in world.slots["subject", "activity"] if day == fall_day) == 100


def test_a_gap_is_silence_not_zeros():
    story = load_story("food_switch")
    gap = Gap("subject", "tracker", -20, -18)
    world = build_world(replace(story, gaps=(gap,)))
    tracker = next(device for device in world.devices if device.kind == "tracker")
    start_ms, end_ms = story.instant(-20, datetime.min.time()), story.instant(-17, datetime.min.time())
    assert not [one for one in tracker.taken if start_ms < one.at_ms <= end_ms]


# --- the stories' own twists --------------------------------------------------------------


def test_the_hub_coming_back_to_long_rings_is_the_world_of_food_switch(article):
    back = world_of("hub_back")
    assert back.slots == article.slots
    assert not any(back.lost.values())
    assert [device.taken for device in back.devices] == [device.taken for device in article.devices]


def test_what_short_rings_drop_is_what_the_truth_leaves_out():
    world = world_of("offline_week")
    from_ms, to_ms = outage_ms(world.story)
    assert to_ms - from_ms == 3 * 86_400_000
    for device in world.devices:
        outbox = Outbox(RamSlots(device.slots), 1)
        for one in device.taken:
            if from_ms < one.at_ms <= to_ms:
                outbox.put(one.kind, one.at_ms - world.story.start_ms, one.values)
        outbox.put(wire.MARK_REQUEST, 0, ())
        outbox.put_hello(0, device.model, "sim 1", 1)
        run = outbox.take(0)
        first = wire.unpack_message(wire.pack_head(1, run.first_seq, run.count) + run.body).records[0]
        kept_from_ms = first.uptime_ms + world.story.start_ms
        days = {day for day, _ in world.lost[device.pets[0], device.kind]}
        assert days == {69, 70, 71}
        hours = (to_ms - kept_from_ms) / 3_600_000
        assert 11 < hours < 14, device.id
        last_lost = max(world.lost[device.pets[0], device.kind])
        assert last_lost == (71, pytest.approx((kept_from_ms - to_ms + 86_400_000) // 900_000 - 1, abs=1))


def test_a_swapped_tracker_hands_over_at_midnight():
    world = world_of("device_swap")
    old, new = (device for device in world.devices if device.kind == "tracker")
    swap_ms = world.story.instant(-6, datetime.min.time())
    assert old.taken[-1].at_ms == swap_ms
    assert new.taken[0].at_ms == swap_ms + MOTION_MS
    devices = {device["id"]: device for device in tomllib.loads(household_toml(world))["device"]}
    assert devices["tracker-max-2"]["since"].isoformat() == "2026-07-08"
    assert "since" not in devices["tracker-max"]


def test_a_shared_bowl_serves_both_and_tells_one_food():
    world = world_of("shared_bowl")
    bowl = next(device for device in world.devices if device.kind == "food_bowl")
    assert (bowl.id, bowl.pets) == ("bowl-shared", ("subject", "other"))
    assert sum(one.kind == wire.FOOD_SET for one in bowl.taken) == 1
    meals = sum(one.kind == wire.MEAL and one.at_ms <= world.story.end_ms for one in bowl.taken)
    assert meals == pytest.approx(5 * world.story.days, abs=3)
    assert ("subject", "intake") not in world.slots, "a set is nobody's"


def test_a_fasting_cat_leaves_a_bowl_that_is_heard():
    world = world_of("hard_floor")
    bowl = next(device for device in world.devices if device.kind == "food_bowl")
    last = max(one.at_ms for one in bowl.taken if one.kind == wire.MEAL and one.at_ms <= world.story.end_ms)
    assert world.story.end_ms - last > 24 * 3_600_000
    beats = [one.at_ms for one in bowl.taken if one.kind == wire.BEAT and last < one.at_ms <= world.story.end_ms]
    assert {later - earlier for earlier, later in pairwise(beats)} == {900_000}


def test_the_owners_marks_are_a_file_of_their_own(tmp_path):
    write_owner_files(world_of("refuted"), tmp_path)
    mark = json.loads((tmp_path / "marks.jsonl").read_text())
    assert mark["hypothesis"] == "food:acme_chicken>sign:itch@pet:max"
    assert datetime.fromisoformat(mark["at"]).isoformat() == "2026-07-14T12:00:00-04:00"
    write_owner_files(world_of("nothing_changed"), tmp_path / "none")
    assert not (tmp_path / "none" / "marks.jsonl").exists()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_in_both_foods_is_no_cause(seed):
    world = world_of("same_allergen_before", seed)
    after, before = world.story.food("after"), world.story.food("before")
    assert after.ingredient in before.ingredients.lower()
    assert json.loads(truth_json(world))["cause"] is None


# --- the owner's files and the truth ------------------------------------------------------


def test_the_owners_files_hold_the_household_and_no_truth(article, tmp_path):
    write_owner_files(article, tmp_path)
    home = tomllib.loads((tmp_path / "household.toml").read_text())
    assert [pet["name"] for pet in home["pet"]] == ["Max", "Luna"]
    assert {device["id"]: device["pets"] for device in home["device"]} == {
        "bowl-max": ["max"],
        "tracker-max": ["max"],
        "bowl-luna": ["luna"],
    }
    assert home["person"][0]["phone"] == "555-0100"
    products = {file.stem: json.loads(file.read_text()) for file in (tmp_path / "products").iterdir()}
    assert {food["code"] for food in home["food"]} == set(products)
    assert products["4006381333931"]["product_name"] == "Acme Chicken & Rice"
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [datetime.fromisoformat(entry["at"]).tzinfo is not None for entry in entries] == [True] * len(entries)
    assert sorted(file.stem for file in (tmp_path / "passages").iterdir()) == ["cats-only", "other-breed"]
    everything = "".join(file.read_text() for file in tmp_path.rglob("*") if file.is_file())
    assert "factor" not in everything
    assert "truth" not in everything


@pytest.mark.parametrize("seed", SEEDS)
def test_names_with_odd_letters_stay_toml_and_json(seed):
    world = world_of("no_tracker", seed)
    pet = replace(world.story.pets[0], name='Müsli "the 🐈" O\'Malley\\')
    odd = replace(world, story=replace(world.story, pets=(pet, *world.story.pets[1:])))
    assert tomllib.loads(household_toml(odd))["pet"][0]["name"] == pet.name
    for food in world.story.foods:
        assert json.loads(product_json(food))["ingredients_text"] == food.ingredients
    assert all(json.loads(line)["pet"] for line in log_lines(world.story).splitlines())


@pytest.mark.parametrize("name", story_names())
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_truth_is_filled_in_and_names_this_world(name, seed):
    world = world_of(name, seed)
    text = truth_json(world)
    assert "truth +-" not in text
    assert "{" not in json.loads(text)["question"]
    truth = json.loads(text)
    assert truth["now_ms"] == world.story.end_ms
    firsts = {"up", "not_up", "not_down", "not_recorded", "not_eating", "too_early", "cannot_tell", "whose_unknown"}
    assert truth["expect"]["first"] in firsts
    for claim in truth["expect"]["claims"]:
        assert claim.get("class") in {None, "MEASURED", "RECORDED", "REFERENCE", "CONNECTION", "GENERAL"}
        assert not [value for value in claim.values() if isinstance(value, str) and "{" in value]
    if truth["variant"] == "inert":
        assert truth["cause"] is None
        assert {"kind": "connection"} in truth["expect"]["never"]


def test_the_truth_of_the_article_is_the_articles():
    truth = json.loads(truth_json(world_of()))
    assert truth["question"] == "Why is Max scratching more this week?"
    assert truth["cause"]["date"] == "2026-07-05"
    assert truth["cause"]["onset"] == "2026-07-08"
    assert truth["changes"]["subject.scratch"] == pytest.approx(0.40, abs=0.09)


# --- bad scenarios ------------------------------------------------------------------------


def test_an_unknown_scenario_names_those_that_exist():
    with pytest.raises(StoryError, match=r"device_swap, food_switch, .*wet_to_dry, is 'nonsense'"):
        load_story("nonsense")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('key = "subject"', 'key = "someone"', "must name pets|must have a pet"),
        ('food = "after"', 'food = "nothing"', "must name foods"),
        ("0.46", "0.60", "share 1.0"),
        ("days = 75", "", "must give days"),
        ("days = 75", "days = [", "must be a story"),
        ("tracker = true", "trackers = true", "must be a story"),
        ("day = -74\nat = 00:05:00", "day = -3\nat = 00:05:00", "from the first day"),
    ],
)
def test_a_broken_scenario_says_what_must_hold(tmp_path, old, new, said):
    text = (ROOT / "device_sim" / "scenarios" / "food_switch.toml").read_text()
    assert old in text
    (tmp_path / "broken.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(StoryError, match=said):
        load_story("broken", folder=tmp_path)


# --- played to a real broker --------------------------------------------------------------


@pytest.fixture
def broker(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n")
    env = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}
    process = subprocess.Popen(["mosquitto", "-c", str(config)], stderr=subprocess.DEVNULL, env=env)
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.01)
    yield port
    process.terminate()
    process.wait(10)


@contextlib.contextmanager
def hub(port: int, stored: dict):
    """Stores what it hears; marks at a mark request, as a hub does."""
    tops = defaultdict(int)
    lock = threading.Lock()

    def take(client, _, incoming) -> None:
        device = wire.device_of(incoming.topic)
        message = wire.unpack_message(incoming.payload)
        with lock:
            for record in message.records:
                stored[device, record.seq] = (record, message.wall_ms - message.sent_uptime_ms + record.uptime_ms)
            while (device, tops[device] + 1) in stored:
                tops[device] += 1
            if message.records[-1].kind == wire.MARK_REQUEST:
                client.publish(
                    wire.mark_topic(device), wire.pack_mark({message.boot: tops[device]}), qos=1, retain=True
                )

    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.on_connect = lambda client, *_: client.subscribe(wire.UP_FILTER, 1)
    client.on_message = take
    client.connect("127.0.0.1", port)
    client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.loop_start()
    try:
        yield
    finally:
        client.disconnect()
        client.loop_stop()


def run_sim(port: int, *more: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "device_sim", "--broker-port", str(port), *more]
    return subprocess.run(words, check=False, capture_output=True, text=True, cwd=ROOT, timeout=120)


def test_a_story_is_played_by_steps_and_every_record_arrives(broker, tmp_path):
    stored: dict = {}
    with hub(broker, stored):
        played = run_sim(
            broker, "--days", "20", "--owner-dir", str(tmp_path / "owner"), "--truth", str(tmp_path / "truth.json")
        )
    assert played.returncode == 0, played.stderr
    lines = [line.split(" ", 1) for line in played.stdout.splitlines()]
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert [word for word, _ in lines] == ["start", "ask", *["advance"] * 78, "end"]
    assert lines[1][1] == truth["question"]
    instants = [int(rest) for word, rest in lines if word in ("start", "advance", "end")]
    assert instants == sorted(instants)
    assert {later - earlier for earlier, later in pairwise(instants)} == {21_600_000}
    assert instants[-1] == truth["now_ms"]

    world = build_world(replace_days(redraw(load_story("food_switch"), 0), 20))
    for device in world.devices:
        expected = [one for one in device.taken if one.at_ms <= world.story.end_ms]
        heard = [stored[key] for key in sorted(stored) if key[0] == device.id]
        assert heard[0][0].kind == wire.HELLO
        told = [(at_ms, r.kind, r.values) for r, at_ms in heard if r.kind not in (wire.HELLO, wire.MARK_REQUEST)]
        assert told == [(one.at_ms, one.kind, one.values) for one in expected]


def replace_days(story, days: int):
    feedings = tuple(replace(one, day=max(one.day, 1 - days)) for one in story.feedings)
    return replace(story, days=days, feedings=feedings)


def test_with_live_the_devices_stay_connected_until_ended(broker):
    stored: dict = {}
    words = [sys.executable, "-m", "device_sim", "--broker-port", str(broker), "--days", "14", "--live"]
    with hub(broker, stored):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("end "):
                break
        assert process.poll() is None
        process.terminate()
        _, complaint = process.communicate(timeout=10)
    assert (process.returncode, complaint) == (0, "")


def test_without_a_hub_it_says_which_devices_wait(broker, capsys):
    assert command.main(["--broker-port", str(broker), "--days", "14", "--patience-ms", "300"]) == 2
    said = capsys.readouterr().err
    assert "the hub must mark every record within 300 ms" in said
    assert "bowl-max" in said


def test_a_refused_option_is_one_line(capsys):
    assert command.main(["--scenario", "nonsense"]) == 2
    assert command.main(["--days", "3"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.startswith("device_sim: ") for line in said] == [True, True]


def test_the_digest_is_that_of_the_messages_sent(article):
    fewer = replace(article, devices=article.devices[:1])
    assert digest(fewer) == digest(fewer)
    bowl = fewer.devices[0]
    at = next(at for at, one in enumerate(bowl.taken) if at > 1_000 and one.kind == wire.BEAT)
    taken = (*bowl.taken[:at], replace(bowl.taken[at], values=(1, 2, 0)), *bowl.taken[at + 1 :])
    other = replace(bowl, taken=taken)
    assert digest(replace(fewer, devices=(other,))) != digest(fewer)
