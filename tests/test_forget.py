"""Forgetting a device, a document or a pet leaves what a home without it would hold."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from firmware_bridge import wire
from gateway.__main__ import main
from gateway.ask.adjacency import rewritten
from gateway.ask.records import heading, open_record
from gateway.commands import run_command
from gateway.errors import ImportRefused
from gateway.forget import would_forget
from gateway.graph.adjacency import canonical_dump
from gateway.graph.belief import fold_all
from gateway.knowledge.products import KnownFoods
from gateway.learn import catch_up, refresh_facts
from gateway.links.ingest import store_readings
from gateway.measure.days import add_days, day_interval
from gateway.model import Binding, Device, Food, Household, Pet, RecordRef, ZonePeriod
from gateway.ontology.load import load
from gateway.store import Database, Snapshot
from gateway.store.verify import verify
from gateway.stored import DeadLetter
from gateway.web.notices import forgotten_words
from tests.learn_home import ZONES, save_days, series_of
from tests.profiled import PETKIT, PETKIT_WEIGHT, T3, hear, home_at, letters, mqtt, rows
from tests.store_world import DAY, HOUR, MINUTE, ROLLUPS, T0, beat, meal, message, motion

ONTOLOGY = load()
NOW_MS = T0 + 3 * DAY  # Monday, Tuesday and Wednesday have closed
LABEL = "Chicken meal 26 %, rice, salmon oil, poultry fat, peas. 3,750 kcal/kg"
GUIDE = "# Skin\n\n## Itch\n\nChicken may cause a food allergy in dogs. A food allergy causes itching in dogs.\n"
OLD_COLLAR, BOWL, PRODUCT, BOOK, MAX = range(5)
SOURCES = (
    ("device", "tracker-old"),
    ("device", "bowl-max"),
    ("document", "label:1111@"),
    ("document", None),
    ("pet", "max"),
)


def household(without):
    devices = {
        "bowl-luna": ("food_bowl", "luna"),
        "bowl-max": ("food_bowl", "max"),
        "tracker-max": ("tracker", "max"),
        "tracker-old": ("tracker", "max"),
    }
    gone = {"max"} if MAX in without else set()
    left = {name: one for name, one in devices.items() if ("device", name) not in {SOURCES[at] for at in without}}
    pets = (Pet("luna", "Luna", "cat"), Pet("max", "Max", "dog", breed="beagle"))
    return Household(
        zones=(ZonePeriod("America/New_York", 0),),
        pets=tuple(pet for pet in pets if pet.id not in gone),
        devices=tuple(Device(name, kind, f"{name} at home") for name, (kind, _) in left.items()),
        bindings=tuple(Binding(name, frozenset({pet}), 0) for name, (_, pet) in left.items() if pet not in gone),
        foods=(Food("harbor", "Harbor Fish", code="2222"),),
    )


def messages():
    """Two days of four devices; both collars of Max are worn at the same hours."""
    said = []
    for device, scratch in (("tracker-max", 900), ("tracker-old", 4000)):
        for day in range(2):
            uptimes = [day * DAY + 8 * HOUR + at * 5 * MINUTE for at in range(1, 9)]
            records = [motion(uptime, scratch + day) for uptime in uptimes]
            said.append(message(device, records, first=1 + 8 * day, sent_ms=uptimes[-1] + 1000))
    for device, code, grams in (("bowl-max", "1111", 150), ("bowl-luna", "2222", 40)):
        chosen = wire.pack_record(wire.FOOD_SET, 7 * HOUR, (code, ""))
        records = [chosen, *(beat(7 * HOUR + at * 30 * MINUTE) for at in range(1, 6)), meal(11 * HOUR, grams)]
        said.append(message(device, records, first=1, sent_ms=11 * HOUR + 1000))
    return said


def settle(database):
    with database.transaction() as tx:
        refresh_facts(tx, ONTOLOGY)
    with database.transaction() as tx:
        catch_up(tx, ONTOLOGY, now_ms=NOW_MS)


def build(path, without=()):
    """The home as it is where these sources never were."""
    with Database(path, clock_source="import") as database:
        with database.transaction() as tx:
            tx.save_household(household(without), valid_from_ms=0)
            gone = {SOURCES[at][1] for at in without}
            told = tuple(one for one in messages() if one.raw.device not in gone)
            store_readings(tx, told, rollups=ROLLUPS)
            for code, name, text, left in (
                ("1111", "Acme", LABEL, PRODUCT not in without),
                ("2222", "Harbor", "Chicken, rice", True),
            ):
                if left:
                    run(tx, "product", text=f'{{"code":"{code}","product_name":"{name}","ingredients_text":"{text}"}}')
            if BOOK not in without:
                run(tx, "passages", text=GUIDE, source="skin.md")
            if MAX not in without:
                run(tx, "log", pet="max", what="flea treatment", at="2026-06-02")
                run(tx, "note", pet="max", at="2026-06-03", text="Started Apoquel. No fleas. Suspect food allergy.")
            run(tx, "log", pet="luna", what="bath", at="2026-06-02")
        settle(database)
    return path


def run(tx, name, **args):
    return run_command(tx, name, args, now_ms=NOW_MS)


def name_of(reader, at):
    kind, name = SOURCES[at]
    if kind != "document":
        return name
    return next(one.id for one in reader.documents() if (one.id.startswith(name) if name else one.source == "skin.md"))


def forget(database, sources):
    for at in sources:
        with database.transaction() as tx:
            run(tx, "forget", kind=SOURCES[at][0], id=name_of(tx, at))
    settle(database)


def graph_bytes(reader):
    edges = reader.edges(from_ms=-(2**62), to_ms=2**62)
    walls = frozenset(RecordRef(wall[1]) for wall in reader.walls(at_ms=2**62) if wall[1] is not None)
    return canonical_dump(fold_all(edges, {edge.ref: reader.evidence_about(edge.ref) for edge in edges}, walls))


def everything(path):
    """All that a home is judged by, without the numbers of rows."""
    with Snapshot(path) as reader:
        snapshot = rewritten(reader, ONTOLOGY)
        home = reader.household()
        days = [
            (day.series, day.date, day.n, day.sums, day.covered, day.set_aside, day.late) for day in reader.every_day()
        ]
        db = reader._db
        tables = {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in (
                ("series", "*"),
                ("finding", "*"),
                ("correlation", "*"),
                ("followed", "*"),
                ("learned", "as_of"),
                ("document", "id, kind, title, source, code, facts"),
                ("vertex", "name, iif(name GLOB 'food:*', label, '')"),
                ("food", "*"),
                ("wall", "*"),
                ("pet_status", "*"),
                ("record", "ref"),
                ("text_record", "text, pet, document, at_ms, until_ms, object, title, facts"),
            )
        }
        tables["frame"] = [frame.ref.text for frame in reader.every_frame()]
        packed = (snapshot.view, snapshot.arrays, snapshot.names)
        return graph_bytes(reader), packed, home, days, tables


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    return build(tmp_path_factory.mktemp("full") / "hub.db")


def copied(full, tmp_path, name="hub.db"):
    return Path(shutil.copyfile(full, tmp_path / name))


def must_leave_what_never_had(full, tmp_path, sizes):
    chosen_ones = [chosen for size in sizes for chosen in combinations(range(5), size)]
    for number, chosen in enumerate(chosen_ones):
        path = copied(full, tmp_path)
        with Database(path) as database:
            forget(database, chosen[:: 1 if number % 2 else -1])
        left, right = everything(path), everything(build(tmp_path / f"{number}.db", chosen))
        for mine, theirs in zip(left[:-1], right[:-1], strict=True):
            assert mine == theirs, chosen
        for table, kept in right[-1].items():
            assert left[-1][table] == kept, (chosen, table)
        assert verify(path).is_sound, chosen


def test_sources_forgotten_leave_the_bytes_of_a_home_that_never_had_them(full, tmp_path):
    must_leave_what_never_had(full, tmp_path, (1, 4, 5))


@pytest.mark.soak
def test_every_other_subset_of_sources_leaves_them_too(full, tmp_path):
    must_leave_what_never_had(full, tmp_path, (2, 3))


def test_links_between_series_are_made_anew_from_the_pets_that_are_left(tmp_path):
    rng = np.random.default_rng(7)
    moved = 60_000 * (100 + 30 * rng.standard_normal(80))
    told = {
        ("max", "activity"): (0, moved),
        ("max", "scratch"): (0, moved / 20 + 3000 * rng.standard_normal(80)),
        ("luna", "rest"): (50, 6 * moved[50:]),
    }

    def made(name, pets):
        path = tmp_path / name
        with Database(path, clock_source="import") as database:
            with database.transaction() as tx:
                home = Household((ZONES), pets=tuple(Pet(pet, pet, "dog") for pet in pets))
                tx.save_household(home, valid_from_ms=0)
            for (pet, noun), (first, totals) in told.items():
                if pet in pets:
                    save_days(database, series_of(Pet(pet, pet, "dog"), noun), add_days("2026-03-02", first), totals)
            with database.transaction() as tx:
                tx.set_learned("2026-04-19", done_ms=0)
            learned(database)
        return path

    def learned(database):
        with database.transaction() as tx:
            refresh_facts(tx, ONTOLOGY)
            catch_up(tx, ONTOLOGY, now_ms=day_interval("2026-05-21", ZONES).start_ms)

    both = made("both.db", ("luna", "max"))
    with Database(both) as database:
        with database.snapshot() as reader:
            before = graph_bytes(reader)
        with database.transaction() as tx:
            run(tx, "forget", kind="pet", id="Luna")
        with database.snapshot() as reader:
            assert b"correlates_with" not in graph_bytes(reader)  # until learn ran again
        learned(database)
    left, right = everything(both), everything(made("max.db", ("max",)))
    assert left[:-1] == right[:-1]
    for table in ("finding", "correlation", "followed", "learned", "series", "vertex"):
        assert left[-1][table] == right[-1][table], table
    assert b"correlates_with" in left[0] != before


# --- citations -----------------------------------------------------------------------------------


def answered(database):
    """An answer that cites an event, a day, a label, a passage and a link."""
    with database.transaction() as tx:
        book = tx.texts_of(name_of(tx, BOOK))[0].ref
        label = tx.texts_of(name_of(tx, PRODUCT))[0].ref
        edge = next(edge.ref for edge in tx.edges(from_ms=0, to_ms=NOW_MS) if edge.relation == "ate")
        cited = (RecordRef("event:bowl-max/1/7"), label, book, edge)
        days = [RecordRef(f"day:{series.id}/2026-06-01") for series in tx.all_series() if series.pet == "max"]
        return tx.save_answer(asked_ms=NOW_MS, question="why?", body='{"said": 1}', cites=(*cited, *days)), book


def test_an_answer_stays_as_it_was_said_and_what_it_cites_says_what_was_forgotten_when(full, tmp_path):
    path = copied(full, tmp_path)
    with Database(path) as database:
        number, book = answered(database)
        forget(database, (BOWL, BOOK))
        with database.snapshot() as reader:
            event = RecordRef("event:bowl-max/1/7")
            opened = open_record(reader, event)
            assert (
                opened.title
                == "Forgotten on Jun 4 2026: the device bowl-max at home (bowl-max)"
                == heading(reader, event)
            )
            assert "You had the device bowl-max at home (bowl-max) forgotten on Jun 4 2026." in opened.lines
            assert reader.answer(number)[:3] == (NOW_MS, "why?", '{"said": 1}')
            by_device, by_book = forgotten_words(reader, number)
            assert by_device.startswith("On Jun 4 you had the device bowl-max at home (bowl-max) forgotten. ")
            assert "1 of the records this answer stands on is gone with it" in by_book
            cited = [
                ref for (ref,) in reader._db.execute("SELECT ref FROM record r JOIN answer_cites c ON c.record = r.id")
            ]
            assert all(open_record(reader, RecordRef(ref)).title for ref in cited)
        with database.transaction() as tx:
            run(tx, "passages", text=GUIDE, source="skin.md")
            assert open_record(tx, book).title == "Skin, ch. 1: Itch"
            assert len(forgotten_words(tx, number)) == 1
    assert verify(path).is_sound


@pytest.mark.parametrize("at", [OLD_COLLAR, BOWL, PRODUCT, BOOK, MAX])
def test_what_would_go_is_what_goes(full, tmp_path, at):
    with Database(copied(full, tmp_path)) as database:
        answered(database)
        with database.transaction() as tx:
            tx.add_dead_letters([DeadLetter("mqtt", "bowl-max", None, None, T0, "cut_short", "3 of 9 bytes", b"abc")])
            before, name = counted(tx), name_of(tx, at)
            told = would_forget(tx, SOURCES[at][0], name)
            assert counted(tx) == before
            done = run(tx, "forget", kind=SOURCES[at][0], id=name).text
            after = counted(tx)
        assert done.splitlines()[1:5] == list(told[1:5])
        events, texts, letters = map(int, re.findall(r"\d+", told[1]))
        evidence, edges = map(int, re.findall(r"\d+", told[3]))
        gone = {table: before[table] - after[table] for table in before}
        assert (gone["frame"], gone["dead_letter"]) == (events, letters)
        assert gone["text_record"] >= texts  # and what passes had written, which they write again
        assert gone["evidence"] >= evidence > 0
        assert gone["edge"] >= edges


def counted(tx):
    tables = ("frame", "dead_letter", "text_record", "evidence", "edge")
    return {table: tx._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def test_nothing_of_a_forgotten_text_is_left_in_the_file(full, tmp_path):
    path = copied(full, tmp_path)
    assert b"Started Apoquel" in path.read_bytes()
    with Database(path) as database:
        forget(database, (MAX,))
    assert b"Started Apoquel" not in path.read_bytes()


# --- devices -------------------------------------------------------------------------------------


def test_a_forgotten_device_delivers_nothing_again_and_what_it_sends_is_kept_apart(full, tmp_path):
    again = next(one for one in messages() if one.raw.device == "tracker-old")
    later = message(
        "tracker-old", [motion(3 * DAY, 5), motion(3 * DAY + 5 * MINUTE, 5)], first=17, sent_ms=3 * DAY + HOUR
    )
    last = message("tracker-old", [motion(3 * DAY + HOUR, 5)], first=19, sent_ms=3 * DAY + 2 * HOUR)

    def send(database, *readings):
        with database.transaction() as tx:
            outcome = store_readings(tx, readings, rollups=ROLLUPS)
        with database.snapshot() as reader:
            return len(reader.frames(("tracker-old",), start_ms=0, end_ms=2**62)), outcome

    with Database(copied(full, tmp_path)) as database:
        forget(database, (OLD_COLLAR,))
        stored, outcome = send(database, again, later)
        assert (stored, outcome.marks) == (0, {"tracker-old": {1: 18}})  # the ring lets go of them
        with database.snapshot() as reader:
            letters = reader.dead_letters(limit=99)
        assert {letter.reason for letter in letters} == {"device_forgotten"}
        assert {letter.seq for letter in letters} == {*range(1, 9), 17, 18}
        with database.transaction() as tx:
            assert "tracker-old" in run(tx, "forget", kind="device", id="tracker-old").text  # its dead letters too
            assert tx.dead_letters(limit=1) == ()
            run(tx, "bind", device="tracker-old", pets="max", kind="tracker")
        stored, outcome = send(database, again, last)
        assert (stored, outcome.counted["records_known"]) == (1, 8)
        assert outcome.marks == {"tracker-old": {1: 19}}


def test_another_makers_sender_is_forgotten_with_its_bytes_and_kept_apart_after(tmp_path):
    with home_at(tmp_path / "hub.db") as database:
        hear(database, mqtt(PETKIT, PETKIT_WEIGHT, T3))
        (row,) = rows(database)
        with database.transaction() as tx:
            run_command(tx, "forget", {"kind": "device", "id": row.device}, now_ms=T3 + HOUR)
            assert tx._db.execute("SELECT count(*) FROM heard").fetchone() == (0,)
        hear(database, mqtt(PETKIT, PETKIT_WEIGHT, T3 + DAY))
        assert rows(database) == []
        assert [letter.reason for letter in letters(database)] == ["device_forgotten"]
        with database.snapshot() as reader:
            assert reader.sources() == ()


def test_a_bowl_two_pets_shared_is_never_the_own_bowl_of_the_one_that_is_left(tmp_path):
    two = household((MAX,))
    shared = replace(
        two,
        pets=(*two.pets, Pet("max", "Max", "dog")),
        bindings=(Binding("bowl-max", frozenset({"luna", "max"}), 0),),
    )
    with Database(tmp_path / "hub.db", clock_source="import") as database:
        with database.transaction() as tx:
            tx.save_household(shared, valid_from_ms=0)
            store_readings(tx, tuple(messages()), rollups=ROLLUPS)
            assert {series.pet for series in tx.all_series()} == {"luna+max"}
            said = run(tx, "forget", kind="pet", id="max").text
        with database.snapshot() as reader:
            assert reader.all_series() == ()
            assert reader.household().bindings == ()
    assert "scentwalk device bind bowl-max --pets luna" in said


def test_daily_sums_that_cannot_be_told_apart_go_whole_and_the_days_after_are_summed_anew(full, tmp_path):
    path = copied(full, tmp_path)
    with Database(path) as database:
        with database.transaction() as tx:
            tx.seal(until_ms=T0 + DAY)
            said = run(tx, "forget", kind="device", id="tracker-old").text
        with database.snapshot() as reader:
            worn = [day for day in reader.every_day() if day.series == "max.scratching"]
    assert [(day.date, day.late, sum(day.sums)) for day in worn] == [("2026-06-02", None, 8 * 901)]
    assert "cannot be told apart, and go whole" in said
    assert verify(path).is_sound


# --- all or nothing ------------------------------------------------------------------------------


def test_a_hub_that_dies_while_it_forgets_has_forgotten_nothing(full, tmp_path):
    path, before = copied(full, tmp_path), everything(full)
    dead = tmp_path / "dead"
    dead.mkdir()

    class PowerCut(Exception):
        """The lights go out."""

    def dies(database):
        with database.transaction() as tx:
            for at in (MAX, BOWL, BOOK):
                run(tx, "forget", kind=SOURCES[at][0], id=name_of(tx, at))
            for file in tmp_path.glob("hub.db*"):
                shutil.copyfile(file, dead / file.name)
            raise PowerCut

    with Database(path) as database, pytest.raises(PowerCut):
        dies(database)
    for left in (path, dead / "hub.db"):
        with Database(left):
            pass
        assert everything(left) == before
        assert verify(left).is_sound


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("device", "bowl", r"device: must be a device on file \(bowl-luna \(bowl-luna at home\), .*\), is 'bowl'"),
        ("document", "guide", r"document: must be a document on file \(.*label:1111@.*\), is 'guide'"),
        ("pet", "rex", r"pet: must be a pet on file \(luna \(Luna, cat\), max \(Max, dog\)\), is 'rex'"),
        ("person", "vet", "kind: must be one of device, document, pet, is 'person'"),
    ],
)
def test_what_is_not_on_file_is_refused_naming_what_is(full, kind, name, said):
    with Snapshot(full) as reader, pytest.raises(ImportRefused, match=said):
        would_forget(reader, kind, name)


def test_the_command_lists_shows_and_does_and_does_nothing_unasked(full, tmp_path, capsys):
    path = copied(full, tmp_path)
    before = path.read_bytes()
    where = ["--db", str(path)]
    assert main(["forget", "device", *where]) == 0
    assert "tracker-old: tracker-old at home" in capsys.readouterr().out
    for options in ([], ["--show"]):
        assert main(["forget", "device", "tracker-old", *options, *where]) == 0
        shown = capsys.readouterr().out
        assert "  16 events, 1 texts, 0 messages that could not be read\n" in shown
        assert "Nothing was changed. To do it, add --yes" in shown
    assert path.read_bytes() == before
    assert main(["forget", "device", "tracker-old", "--yes", "--show", *where]) == 2
    assert main(["forget", "device", "tracker-old", "--yes", *where]) == 0
    assert "Forgot the device tracker-old at home (tracker-old)." in capsys.readouterr().out
    assert everything(path)[:-1] == everything(build(tmp_path / "never.db", (OLD_COLLAR,)))[:-1]


# --- a catalogue ---------------------------------------------------------------------------------


def test_a_catalogue_is_taken_in_with_one_look_at_the_household(tmp_path):
    def read(count):
        lines = [
            f'{{"code":"{at:04}","product_name":"Food {at % 9}","ingredients_text":"rice"}}' for at in range(count)
        ]
        asked = []
        with Database(tmp_path / f"{count}.db") as database, database.transaction() as tx:
            tx.save_household(household(()), valid_from_ms=0)
            tx._db.set_trace_callback(lambda sql: asked.append(sql) if " FROM food" in sql else None)
            run(tx, "product", text="\n".join(lines))
            tx._db.set_trace_callback(None)
            assert len(tx.foods("food")) == 1 + min(count, 9)
        return len(asked)

    assert read(3) == read(30)


def test_a_catalogues_foods_are_those_the_household_would_have_found():
    foods = (Food("a", "Acme", code="1"), Food("b", "Acme"), Food("c", "Other", code="2"))
    home, known = Household((), foods=foods), KnownFoods(foods)
    for code, name in product(("", "1", "2", "3"), ("Acme", "b", "Other", "x")):
        assert known.of(code, name) == home.food_of(code, name)
    known.add(replace(foods[0], code="3"))
    assert (known.of("1", "x"), known.of("3", "x").id) == (None, "a")
