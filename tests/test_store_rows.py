"""What the store keeps and gives back: household, frames, marks, days, edges, answers, one writer."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import DatabaseBusy, HouseholdError, StoreError
from gateway.model import Binding, Edge, Evidence, Mass, PetStatus, RecordRef, Series, Vertex, ZonePeriod
from gateway.store import Database, Snapshot
from gateway.store.blobs import pack_covered, pack_sums, unpack_covered, unpack_sums
from gateway.store.checksums import row_crc
from gateway.store.verify import verify
from gateway.stored import BootRow, DatedFrame, DayRow, DeadLetter, TextRecord
from tests.store_world import DAY, HOME, MAY_CAUSE, NOTE, PASSAGE, T0, learned, made

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "hub.db") as opened:
        yield opened


def frame(seq: int, *, boot: int = 1, device: str = "bowl-max", **changes) -> DatedFrame:
    plain = DatedFrame(
        ref=RecordRef(f"event:{device}/{boot}/{seq}"),
        device=device,
        boot=boot,
        seq=seq,
        kind="meal",
        uptime_ms=seq * 1000,
        received_ms=T0 + seq * 1000 + 50,
        start_ms=T0 + seq * 1000,
        end_ms=T0 + seq * 1000 + 400,
        dating="offset",
        fields=(seq, "Müsli 🐈", -(2**40)),
        amount=32_000,
        unit="mg",
    )
    return replace(plain, **changes)


def write(database: Database, change):
    with database.transaction() as tx:
        return change(tx)


def read(database: Database, question):
    with database.snapshot() as reader:
        return question(reader)


# --- household ------------------------------------------------------------------------------


def test_a_household_comes_back_as_it_was_given(database):
    write(database, lambda tx: tx.save_household(HOME, valid_from_ms=0))
    assert read(database, lambda reader: reader.household()) == HOME
    write(database, lambda tx: tx.save_household(HOME, valid_from_ms=0))
    assert read(database, lambda reader: reader.household()) == HOME


def test_a_status_holds_from_its_instant_on(database):
    write(database, lambda tx: tx.save_household(HOME, valid_from_ms=0))
    write(database, lambda tx: tx.set_status("luna", PetStatus.AWAY, valid_from_ms=T0))
    assert read(database, lambda reader: reader.household(T0 - 1).pet("luna").status) is PetStatus.HOME
    assert read(database, lambda reader: reader.household(T0).pet("luna").status) is PetStatus.AWAY


def test_a_new_binding_ends_the_open_one(database):
    write(database, lambda tx: tx.save_household(HOME, valid_from_ms=0))
    write(database, lambda tx: tx.bind("bowl-max", frozenset({"luna", "max"}), valid_from_ms=T0))
    home = read(database, lambda reader: reader.household())
    assert [binding for binding in home.bindings if binding.device == "bowl-max"] == [
        Binding("bowl-max", frozenset({"max"}), 0, T0),
        Binding("bowl-max", frozenset({"luna", "max"}), T0),
    ]


def test_a_binding_to_an_unknown_pet_changes_nothing(database):
    write(database, lambda tx: tx.save_household(HOME, valid_from_ms=0))
    with pytest.raises(HouseholdError, match="known pets"):
        write(database, lambda tx: tx.bind("bowl-max", frozenset({"rex"}), valid_from_ms=T0))
    assert read(database, lambda reader: reader.household()) == HOME


def test_zones_are_given_in_the_order_they_began(database):
    zones = (ZonePeriod("America/New_York", 0), ZonePeriod("Europe/Berlin", T0))
    write(database, lambda tx: tx.save_household(replace(HOME, zones=zones[::-1]), valid_from_ms=0))
    assert read(database, lambda reader: reader.zones()) == zones


# --- frames and marks -----------------------------------------------------------------------


def test_a_frame_is_stored_once_whatever_comes_again(database):
    first, second = frame(1), frame(2)
    assert write(database, lambda tx: tx.add_frames([first, second, first])) == (first, second)
    assert write(database, lambda tx: tx.add_frames([replace(first, amount=1), frame(3)])) == (frame(3),)
    assert read(database, lambda reader: reader.frame(first.ref)) == first


def test_a_redated_frame_keeps_everything_but_its_time(database):
    moved = replace(frame(1), start_ms=T0 - 5, end_ms=T0 - 4, dating="bracket", earliest_ms=T0 - 9, latest_ms=T0)
    write(database, lambda tx: tx.add_frames([frame(1)]))
    write(database, lambda tx: tx.redate_frames([moved]))
    assert read(database, lambda reader: reader.frame(moved.ref)) == moved
    assert verify(database.path).is_sound


def test_the_mark_stops_at_a_gap_and_runs_on_when_it_is_filled(database):
    def advance(tx):
        return tx.advance_mark("bowl-max", 1, first_seq=1)

    write(database, lambda tx: tx.add_frames([frame(2), frame(3)]))
    assert write(database, advance) is None
    write(database, lambda tx: tx.add_frames([frame(1), frame(5)]))
    assert write(database, advance) == 3
    write(database, lambda tx: tx.add_frames([frame(4)]))
    assert write(database, advance) == 5


def test_a_dead_letter_with_a_number_counts_in_the_mark_and_stands_once(database):
    letter = DeadLetter("mqtt", "bowl-max", 1, 2, T0, "cut_short", "3 of 9 bytes", b"\x00\xff")
    write(database, lambda tx: tx.add_frames([frame(1), frame(3)]))
    assert write(database, lambda tx: tx.add_dead_letters([letter, letter])) == 1
    assert write(database, lambda tx: tx.add_dead_letters([letter])) == 0
    assert write(database, lambda tx: tx.advance_mark("bowl-max", 1, first_seq=1)) == 3
    assert read(database, lambda reader: reader.dead_letters(limit=9)) == (letter,)


def test_a_mark_never_moves_back(database):
    write(database, lambda tx: tx.set_mark("bowl-max", 1, 7))
    write(database, lambda tx: tx.set_mark("bowl-max", 1, 4))
    assert read(database, lambda reader: reader.marks("bowl-max")) == {1: 7}


@settings(max_examples=30)
@given(st.permutations(range(1, 13)), st.sets(st.integers(1, 12)))
def test_the_mark_is_the_end_of_the_first_run_in_any_order(tmp_path_factory, order, dead):
    with Database(tmp_path_factory.mktemp("marks") / "hub.db") as database:
        for at, seq in enumerate(order):
            with database.transaction() as tx:
                if seq in dead:
                    tx.add_dead_letters([DeadLetter("mqtt", "bowl-max", 1, seq, T0, "x", "", bytes([seq]))])
                else:
                    tx.add_frames([frame(seq)])
                mark = tx.advance_mark("bowl-max", 1, first_seq=1)
            came = set(order[: at + 1])
            run = next(number for number in range(1, 14) if number not in came) - 1
            assert mark == (run or None)


def test_what_a_device_dropped_moves_the_mark_and_is_counted(database):
    write(database, lambda tx: tx.add_frames([frame(1), frame(4)]))
    write(database, lambda tx: tx.advance_mark("bowl-max", 1, first_seq=1))
    assert write(database, lambda tx: tx.skip_dropped("bowl-max", 1, mark=1, lowest_held=6)) == 3
    assert read(database, lambda reader: reader.marks("bowl-max")) == {1: 5}


def test_what_is_known_of_a_clock_comes_back(database):
    known = BootRow("bowl-max", 3, ((0, T0), (21_600_000, T0 + 2)), (500, T0 - 1))
    write(database, lambda tx: tx.save_boot(known))
    assert read(database, lambda reader: reader.boots("bowl-max")) == (known,)


# --- days and answers -----------------------------------------------------------------------


def day(total: int = 5, *, start_ms: int = T0) -> DayRow:
    return DayRow("max.scratching", "2026-06-01", start_ms, start_ms + DAY, 1, (total, *[0] * 95), (900_000,) * 96)


def test_a_day_gets_a_revision_only_where_it_changes(database):
    write(database, lambda tx: tx.save_series(Series("max.scratching", "max", "scratch", "ms")))
    assert write(database, lambda tx: tx.save_day(day()))
    assert not write(database, lambda tx: tx.save_day(day()))
    assert write(database, lambda tx: tx.save_day(day(6)))
    assert read(database, lambda reader: reader.day("max.scratching", "2026-06-01")) == replace(day(6), revision=1)


def test_a_restated_day_is_told_to_the_answers_that_cite_it(database):
    write(database, lambda tx: tx.save_series(Series("max.scratching", "max", "scratch", "ms")))
    write(database, lambda tx: tx.save_day(day()))

    def answered(asked_ms: int) -> int:
        return write(
            database, lambda tx: tx.save_answer(asked_ms=asked_ms, question="?", body="{}", cites=(day().ref,))
        )

    during, after = answered(T0 + DAY - 1), answered(T0 + DAY)
    write(database, lambda tx: tx.save_day(day(9)))
    assert read(database, lambda reader: reader.restated(during)) == ()  # the day was not over: it was bound to grow
    assert read(database, lambda reader: reader.restated(after)) == (day().ref,)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=92, max_size=108),
    st.lists(st.integers(0, 900_000), min_size=92, max_size=108),
)
def test_slots_come_back_from_their_blobs(sums, covered):
    assert unpack_sums(pack_sums(tuple(sums))) == tuple(sums)
    assert unpack_covered(pack_covered(tuple(covered))) == tuple(covered)


# --- documents, edges, marks of the owner ---------------------------------------------------


def test_what_a_document_taught_is_stored_once(database):
    assert write(database, lambda tx: tx.save_learned(learned(), added_ms=T0)) == 2
    assert write(database, lambda tx: tx.save_learned(learned(), added_ms=T0)) == 0
    assert read(database, lambda reader: reader.evidence_about(MAY_CAUSE.ref)) == learned().evidence
    assert read(database, lambda reader: reader.texts_of("9f8e7d6c")) == learned().records


def test_replacing_edges_twice_is_replacing_them_once(database):
    write(database, lambda tx: tx.save_learned(learned(), added_ms=T0))
    ate = [Edge(Vertex("pet:max"), "ate", Vertex(f"food:{name}"), T0, None) for name in ("acme", "harbor", "old")]
    facts = [Evidence(edge.ref, PASSAGE, Mass(0.9), "bowl", 0.95) for edge in ate]
    write(database, lambda tx: tx.replace_edges(("ate",), ate, facts))

    def graph(reader):
        return reader.edges(from_ms=0, to_ms=2**60), reader.evidence()

    ended = [replace(ate[0], valid_to_ms=T0 + DAY), ate[1]]
    for _ in range(2):
        write(database, lambda tx: tx.replace_edges(("ate",), ended, facts[:2]))
        edges, evidence = read(database, graph)
        assert set(edges) == {*ended, MAY_CAUSE}
        assert set(evidence) == {*facts[:2], *learned().evidence}
    assert not read(database, lambda reader: reader.is_stored(ate[2].ref))


def test_an_owner_mark_stands_until_it_is_taken_back(database):
    edge = write(database, lambda tx: tx.add_wall(edge=MAY_CAUSE.ref, hypothesis=None, reason="no", marked_ms=T0))
    write(database, lambda tx: tx.add_wall(edge=None, hypothesis="food:acme|max|itch", reason="no", marked_ms=T0))
    assert write(database, lambda tx: tx.undo_wall(edge, undone_ms=T0 + 5))
    assert not write(database, lambda tx: tx.undo_wall(edge, undone_ms=T0 + 6))
    assert [wall[0] for wall in read(database, lambda reader: reader.walls(at_ms=T0 + 4))] == [edge, edge + 1]
    assert [wall[0] for wall in read(database, lambda reader: reader.walls(at_ms=T0 + 5))] == [edge + 1]


@pytest.mark.parametrize(
    "dangling",
    [
        lambda tx: tx.save_evidence(Evidence(MAY_CAUSE.ref, NOTE, Mass(0.5), "guide", 0.6)),
        lambda tx: tx.save_text(TextRecord(NOTE, "note", "t", "t", document="none")),
        lambda tx: tx.save_day(day()),
        lambda tx: tx._db.execute("INSERT INTO answer_cites (answer, record) VALUES (1, 1)"),
    ],
)
def test_a_reference_to_nothing_cannot_be_stored(database, dangling):
    with pytest.raises(sqlite3.IntegrityError):
        write(database, dangling)
    assert verify(database.path).is_sound


# --- one writer, many readers ---------------------------------------------------------------


def test_a_snapshot_cannot_write_by_any_statement(database):
    with database.snapshot() as reader:
        for statement in ("DELETE FROM meta", "CREATE TABLE t (a)", "PRAGMA user_version = 7", "DROP TABLE frame"):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader._db.execute(statement)
        reader._db.execute("PRAGMA query_only = OFF")  # the file itself is opened for reading
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._db.execute("DELETE FROM meta")


def test_a_snapshot_stays_as_it_was_while_the_writer_goes_on(database):
    write(database, lambda tx: tx.add_frames([frame(1)]))
    with database.snapshot() as reader:
        write(database, lambda tx: tx.add_frames([frame(2)]))
        write(database, lambda tx: tx.set_mark("bowl-max", 1, 2))
        assert reader.frame(frame(2).ref) is None
        assert reader.marks("bowl-max") == {}
    assert read(database, lambda reader: reader.frame(frame(2).ref)) == frame(2)


def test_a_transaction_that_raises_leaves_nothing(database):
    def half(tx):
        tx.add_frames([frame(1)])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(database, half)
    assert read(database, lambda reader: reader.frame(frame(1).ref)) is None


def test_a_snapshot_that_outlives_its_lease_gives_its_state_up(tmp_path):
    path = made(tmp_path / "hub.db", days=1)
    with Database(path) as database, Snapshot(path, lease_s=0.05) as reader:
        reader._lease.join()
        with pytest.raises(StoreError, match=r"within 0\.05 s"):
            reader.marks("bowl-max")
        write(database, lambda tx: tx.set_meta("a", "b"))
        (busy, *_) = database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0  # nobody holds the log


def test_only_one_process_writes_a_file(tmp_path):
    path = tmp_path / "hub.db"
    script = (
        "import sys, pathlib; from gateway.store import Database\n"
        "with Database(pathlib.Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(DatabaseBusy, match="one writer"):
            Database(path)
        with Snapshot(path) as reader:
            assert reader.meta("clock_source") == "system"
        other.stdin.close()
        assert other.wait() == 0
    Database(path).close()


_WRITES = """
import pathlib, sys
from gateway.store import Database
with Database(pathlib.Path(sys.argv[1])) as database:
    at = 0
    while True:
        with database.transaction() as tx:
            for part in range(40):
                tx.bump(f"part{part}")
        at += 1
        print(at, flush=True)
"""


def test_a_killed_writer_leaves_whole_commits_and_all_it_told_of(tmp_path):
    path, chance, before = tmp_path / "hub.db", random.Random(4), 0
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", _WRITES, str(path)], stdout=subprocess.PIPE, cwd=ROOT) as writer:
            heard = [writer.stdout.readline() for _ in range(chance.randrange(1, 60))]
            time.sleep(chance.random() / 50)  # anywhere inside a transaction
            writer.kill()
            told = int(b"".join([*heard, writer.stdout.read()]).split()[-1])
        with Database(path) as database:
            values = {value for _, value in read(database, lambda reader: reader.counters())}
        assert len(values) == 1  # forty counters of one transaction, never some of them
        stored = values.pop()
        assert before + told <= stored <= before + told + 1
        before = stored


# --- checksums ------------------------------------------------------------------------------

_cell = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20) | st.binary(max_size=20)


@given(st.lists(_cell, min_size=1, max_size=8).map(tuple), st.data())
def test_a_changed_cell_changes_the_crc(row, data):
    at = data.draw(st.integers(0, len(row) - 1))
    other = data.draw(_cell.filter(lambda value: value != row[at] or type(value) is not type(row[at])))
    assert row_crc(row) != row_crc((*row[:at], other, *row[at + 1 :]))


@pytest.mark.parametrize(
    "rot",
    [
        "UPDATE frame SET amount = amount + 1 WHERE device = 'bowl-max' AND seq = 17",
        "UPDATE frame SET start_ms = start_ms - 1 WHERE device = 'bowl-max' AND seq = 17",
        "UPDATE dead_letter SET raw = x'00ff02'",
        "UPDATE day SET sums = zeroblob(length(sums)) WHERE series = 'max.activity'",
        "UPDATE text_record SET text = 'Weight 81 kg, ears clean.' WHERE kind = 'note'",
        "UPDATE record SET ref = 'event:bowl-max/1/9017' WHERE ref = 'event:bowl-max/1/17'",
    ],
)
def test_a_rotten_row_is_named_by_its_table(tmp_path, rot):
    path = made(tmp_path / "hub.db", days=1)
    assert verify(path).is_sound
    with sqlite3.connect(path) as connection:
        changed = connection.execute(rot).rowcount
    connection.close()
    report = verify(path)
    table = "frame" if "UPDATE record" in rot else rot.split()[1]
    assert changed >= 1
    assert [(name, len(rows)) for name, _, rows in report.rotten if rows] == [(table, changed)]
    assert any(table in line and "damaged" in line for line in report.lines())
