"""Backups, restores and exports, while the hub runs."""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.errors import DatabaseTooNew, DatabaseUnreadable, StoreError
from gateway.store import Database
from gateway.store.backup import backup, restore
from gateway.store.export import export
from gateway.store.files import SCHEMA_VERSION
from gateway.store.verify import verify
from gateway.store.writer import Writer
from tests.store_world import DAY, T0, bowl_day, copied, day_values, dump, made, store, tracker_day

ROOT = Path(__file__).resolve().parents[1]
HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return made(tmp_path_factory.mktemp("home") / "hub.db", days=2)


@pytest.fixture
def path(home, tmp_path):
    return copied(home, tmp_path / "hub.db")


# --- backup ---------------------------------------------------------------------------------


def test_a_backup_holds_every_row_of_every_table(path, tmp_path):
    target = tmp_path / "copy.db"
    backup(path, target)
    assert dump(target) == dump(path)
    assert verify(target).is_sound
    assert not Path(f"{target}.part").exists()


def test_a_backup_under_steady_writes_ends_and_is_one_state(path, tmp_path):
    target, stop = tmp_path / "copy.db", threading.Event()
    with Database(path) as database:

        def write() -> None:
            while not stop.is_set():
                with database.transaction() as tx:
                    tx.bump("one")
                    tx.bump("other")

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(3):
            backup(path, target)
        stop.set()
        writer.join()
    assert verify(target).is_sound
    with Database(target) as found, found.snapshot() as reader:
        counters = dict(reader.counters())
        assert counters["one"] == counters["other"] > 0


def test_a_backup_replaces_an_older_one_and_nothing_else(path, tmp_path):
    older = copied(path, tmp_path / "copy.db")
    Path(f"{older}-wal").write_bytes(b"of somebody who looked into it")
    letter = tmp_path / "letter.txt"
    letter.write_text("keep me")
    with Database(path) as database:
        store(database, bowl_day(2))
        backup(path, older)
        assert dump(older) == dump(path)
        with pytest.raises(DatabaseUnreadable, match="no SQLite file"):
            backup(path, letter)
        with pytest.raises(StoreError, match="a hub's database"):
            backup(path, path)
    assert letter.read_text() == "keep me"


def test_a_damaged_database_is_not_backed_up(path, tmp_path):
    target = tmp_path / "copy.db"
    backup(path, target)
    before = target.read_bytes()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE frame SET amount = 1 WHERE device = 'bowl-max' AND seq = 17")
    connection.close()
    with pytest.raises(DatabaseUnreadable, match="frame: 672 rows, 1 damaged"):
        backup(path, target)
    assert target.read_bytes() == before
    assert not Path(f"{target}.part").exists()


# --- restore --------------------------------------------------------------------------------


def test_a_restore_brings_every_row_back(path, tmp_path):
    target = tmp_path / "copy.db"
    backup(path, target)
    expected = dump(path)
    with Database(path) as database:
        with database.transaction() as tx:
            tx.set_meta("note", "written after the backup")
            tx._db.execute("DELETE FROM frame WHERE seq > 100")
            tx.save_answer(asked_ms=T0, question="later?", body="{}", cites=())
        restore(target, database)
        assert dump(path) == expected
    assert dump(path) == expected
    assert verify(path).is_sound
    assert not list(tmp_path.glob("*.restoring*"))


def test_a_reader_sees_the_old_state_to_its_end_and_the_writer_goes_on(path, tmp_path):
    target = tmp_path / "copy.db"
    backup(path, target)
    with Database(path) as database:
        store(database, tracker_day(2))
        with database.snapshot() as reader:
            restore(target, database)
            assert reader.newest_ms() == T0 + 3 * DAY
        with database.snapshot() as reader:
            assert reader.newest_ms() == T0 + 2 * DAY
        store(database, bowl_day(2))
        assert verify(path).is_sound


def test_a_restore_goes_through_the_one_writer_while_it_runs(path, tmp_path):
    target = tmp_path / "copy.db"
    backup(path, target)

    async def run(database: Database) -> None:
        writer = Writer(database)
        await writer.run(lambda tx: tx.bump("later"))
        await writer.run_alone(lambda whole: restore(target, whole))
        await writer.run(lambda tx: tx.bump("afterwards"))
        writer.close()

    with Database(path) as database:
        asyncio.run(run(database))
        with database.snapshot() as reader:
            assert {"later", "afterwards"} & set(dict(reader.counters())) == {"afterwards"}


def test_a_restore_leaves_marks_where_the_devices_stand(path, tmp_path):
    target = tmp_path / "copy.db"
    backup(path, target)
    with Database(path) as database:
        store(database, tracker_day(2))
        restore(target, database)
        with database.snapshot() as reader:
            assert reader.marks("tracker-max") == {1: 3 * 288}
        store(database, tracker_day(3))
        with database.snapshot() as reader:
            assert reader.marks("tracker-max") == {1: 4 * 288}


@pytest.mark.parametrize("kind", ["absent", "text", "newer", "rotten", "itself"])
def test_a_restore_that_cannot_be_changes_nothing(path, tmp_path, kind):
    source = tmp_path / "copy.db"
    if kind == "text":
        source.write_text("a letter")
    elif kind in ("newer", "rotten"):
        copied(path, source)
        with sqlite3.connect(source) as connection:
            connection.execute(
                f"PRAGMA user_version = {SCHEMA_VERSION + 1}" if kind == "newer" else "UPDATE day SET n = n + 1"
            )
        connection.close()
    before = dump(path)
    error = {"newer": DatabaseTooNew, "itself": StoreError}.get(kind, DatabaseUnreadable)
    with Database(path) as database, pytest.raises(error):
        restore(path if kind == "itself" else source, database)
    assert dump(path) == before
    assert not Path(f"{path}.restoring").exists()


_RESTORES = """
import pathlib, sys
from gateway.store import Database
from gateway.store.backup import restore
hub, one, other = map(pathlib.Path, sys.argv[1:])
with Database(hub) as database:
    while True:
        for source in (one, other):
            restore(source, database)
            print(source.name, flush=True)
"""


def test_a_killed_restore_leaves_the_old_state_or_the_new_one(path, tmp_path):
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    backup(path, one)
    with Database(path) as database:
        store(database, bowl_day(2))
    backup(path, other)
    whole = [values for source in (one, other) for values in [[line for line in dump(source) if '"frame"' in line]]]
    for kills in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", _RESTORES, str(path), str(one), str(other)], stdout=subprocess.PIPE, cwd=ROOT
        ) as process:
            for _ in range(1 + kills):
                process.stdout.readline()
            threading.Event().wait(0.05 * kills)  # somewhere inside the next one
            os.kill(process.pid, signal.SIGKILL)
        with Database(path) as database:
            assert database.salvage is None
        assert [line for line in dump(path) if '"frame"' in line] in whole


# --- export ---------------------------------------------------------------------------------


def written(path: Path, folder: Path, kind: str, hub: str = "attic-1") -> tuple[Path, ...]:
    with Database(path) as database, database.snapshot() as reader:
        return export(reader, folder, kind=kind, hub=hub, date_of=lambda ms: f"2026-06-{(ms - T0) // DAY + 1:02}")


def test_an_export_holds_every_event_and_day_by_hub_and_date(path, tmp_path):
    for hub in ("attic-1", "cellar"):
        files = written(path, tmp_path / "out", "jsonl", hub)
        names = [file.relative_to(tmp_path / "out").as_posix() for file in files]
        assert names[:2] == [f"events/hub={hub}/date=2026-06-0{day}/part-0.jsonl" for day in (1, 2)]
        assert names[-2:] == [f"days/hub={hub}/date=2026-06-0{day}/part-0.jsonl" for day in (1, 2)]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    events = [row for row in rows if "kind" in row]
    days = [row for row in rows if "series" in row]
    with Database(path) as database, database.snapshot() as reader:
        assert {row["ref"] for row in events} == {frame.ref.text for frame in reader.every_frame()}
        meal = next(row for row in events if row["ref"] == "event:bowl-max/1/17")
        assert (meal["kind"], meal["pets"], meal["amount"], meal["unit"]) == ("meal", "max", 150_000, "mg")
    with Database(path) as database:
        expected = {(series, date): list(sums) for series, date, _, sums, _, _ in day_values(database)}
    assert {(row["series"], row["ref"][-10:]): json.loads(row["sums"]) for row in days} == expected


def test_csv_and_json_lines_say_the_same(path, tmp_path):
    as_csv, as_json = (written(path, tmp_path / kind, kind) for kind in ("csv", "jsonl"))
    for table, lines in zip(as_csv, as_json, strict=True):
        with table.open(newline="", encoding="utf-8") as file:
            plain = list(csv.DictReader(file))
        told = [json.loads(line) for line in lines.read_text().splitlines()]
        assert plain == [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in told]


def test_an_evening_lived_twice_is_exported_twice(path, tmp_path):
    """A home that moved west: the same date before and after midnight."""
    with Database(path) as database, database.snapshot() as reader:
        files = export(
            reader,
            tmp_path / "out",
            kind="jsonl",
            hub="h",
            date_of=lambda ms: "2026-06-02" if (ms - T0) // DAY == 1 and ms % DAY < DAY // 4 else "2026-06-01",
        )
        events = [file for file in files if "events" in file.parts]
        count = sum(len(file.read_text().splitlines()) for file in events)
        assert count == len(list(reader.every_frame()))
    assert len({file.parent.name for file in events}) < len(events)


def test_an_export_again_is_the_same_files(path, tmp_path):
    first = {file: file.read_bytes() for file in written(path, tmp_path / "out", "csv")}
    assert {file: file.read_bytes() for file in written(path, tmp_path / "out", "csv")} == first
    assert not list((tmp_path / "out").rglob("*.part"))


@pytest.mark.parametrize(("kind", "hub"), [("xml", "attic"), ("csv", "../attic"), ("csv", ""), ("csv", "a=b")])
def test_an_export_that_cannot_be_named_is_refused(path, tmp_path, kind, hub):
    with pytest.raises(StoreError, match="must be"):
        written(path, tmp_path / "out", kind, hub)
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_named(path, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(StoreError, match="must be writable"):
        written(path, tmp_path / "out", "csv")


@pytest.mark.skipif(HAS_PYARROW, reason="pyarrow (extra `export`) is installed: nothing is missing")
def test_parquet_without_its_extra_says_how_to_get_it(path, tmp_path):
    with pytest.raises(StoreError, match=r"pip install 'scentwalk\[export\]'"):
        written(path, tmp_path / "out", "parquet")


@pytest.mark.skipif(not HAS_PYARROW, reason="pyarrow (extra `export`) is not installed")
def test_the_parquet_files_of_two_hubs_read_as_one_table(path, tmp_path):
    import pyarrow.dataset  # noqa: PLC0415  # the extra

    for hub in ("attic-1", "cellar"):
        written(path, tmp_path / "out", "parquet", hub)
    table = pyarrow.dataset.dataset(tmp_path / "out" / "events", format="parquet", partitioning="hive").to_table()
    assert table.num_rows == 2 * 2 * (288 + 48)
    assert set(table.column("hub").to_pylist()) == {"attic-1", "cellar"}
    shutil.rmtree(tmp_path / "out")
