"""Damaged, foreign, older and cut-off files: found at start, kept aside, salvaged or refused."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.app import Gateway
from gateway.config import Config
from gateway.errors import DatabaseTooNew, DatabaseUnreadable, StoreError
from gateway.links.clock import SteppedClock
from gateway.model import RecordRef
from gateway.store import Database, Snapshot, check_readable, initialise
from gateway.store.files import APPLICATION_ID, SCHEMA_VERSION
from gateway.store.mend import damage
from gateway.store.pages import PAGE_BYTES, PageFile
from gateway.store.retention import CITING
from gateway.store.salvage import salvage
from gateway.store.verify import verify
from gateway.stored import TextRecord
from tests.soak_store import cut_logs
from tests.store_world import (
    DAY,
    HOME,
    NOTE,
    ROLLUPS,
    T0,
    bowl_day,
    copied,
    day_values,
    dump,
    fill,
    made,
    store,
    tracker_day,
)

SECTOR_BYTES = 512
DAYS = 4
DUMPS = sorted(Path(__file__).with_name("data").joinpath("schema").glob("*.sql"), key=lambda path: int(path.stem))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A closed file of four days: every kind of page, tables of several levels."""
    return made(tmp_path_factory.mktemp("sound") / "hub.db", days=DAYS)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return made(tmp_path_factory.mktemp("small") / "hub.db", days=1)


@pytest.fixture
def path(sound, tmp_path):
    return copied(sound, tmp_path / "hub.db")


def zero_sector(path: Path, number: int) -> bytes:
    """Overwrite one sector, as a dying card does; the file's content after that."""
    with path.open("r+b") as file:
        file.seek(number * SECTOR_BYTES)
        file.write(bytes(SECTOR_BYTES))
    return path.read_bytes()


def page_of(path: Path, tree: str, *, leaf: bool) -> int:
    """The number of a tree's root, or of a page below it."""
    root = int(
        sqlite3.connect(path).execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (tree,)).fetchone()[0]
    )
    if not leaf:
        return root
    pages = PageFile(path)
    _, _, children = pages._open(root)
    pages.close()
    return children[len(children) // 2]


def rebuilt(database: Database) -> list[tuple[object, ...]]:
    """The day rows after what the hub does at its next start."""
    with database.transaction() as tx:
        ROLLUPS.rebuild(tx, tx.household())
    return day_values(database)


# --- the page reader ------------------------------------------------------------------------


def rows_by_sqlite(path: Path) -> dict[str, set[tuple[object, ...]]]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {}
    for name in names:
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        stored = [row[1] for row in columns]
        if not next(row[4] for row in connection.execute("PRAGMA table_list") if row[1] == name):
            found[name] = set(connection.execute(f"SELECT rowid, {', '.join(stored)} FROM {name}"))
        else:
            stored = [row[1] for row in sorted(columns, key=lambda row: row[5] or 99)]
            found[name] = set(connection.execute(f"SELECT NULL, {', '.join(stored)} FROM {name}"))
    connection.close()
    return found


def rows_by_pages(path: Path, names) -> dict[str, set[tuple[object, ...]]]:
    pages = PageFile(path)
    trees = pages.trees()
    found = {name: {(row.rowid, *row.values) for row in pages.rows(trees[name])} for name in names}
    for name in set(trees) - set(names):
        assert all(row.rowid is None for row in pages.rows(trees[name]))
    assert pages.unreadable == 0
    assert list(pages.orphans()) == []
    pages.close()
    return found


def same_rows(by_pages: dict[str, set], by_sqlite: dict[str, set]) -> bool:
    """A row id's alias is stored as NULL, a whole REAL as an integer: both are read as SQLite shows them."""
    for name, rows in by_sqlite.items():
        plain = {tuple(row[0] if value is None and at else value for at, value in enumerate(row)) for row in rows}
        other = {
            tuple(row[0] if value is None and at else value for at, value in enumerate(row)) for row in by_pages[name]
        }
        if plain != other:
            return False
    return True


def test_the_page_reader_reads_what_sqlite_reads_from_file_and_log(tmp_path):
    with Database(tmp_path / "hub.db") as database:
        fill(database, days=2)
        with database.transaction() as tx:
            tx.save_text(TextRecord(RecordRef("note:long"), "note", "Long", "w" * 30_000, pet="max"))
            tx._db.execute("PRAGMA secure_delete = OFF")  # as most SQLites are built: freed pages keep their rows
            tx._db.execute("DELETE FROM frame WHERE seq % 3 = 0 OR seq BETWEEN 100 AND 400")  # holes, and free pages
        assert (tmp_path / "hub.db-wal").stat().st_size > 0
        expected = rows_by_sqlite(database.path)
        assert same_rows(rows_by_pages(database.path, expected), expected)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 2**30), junk=st.binary(min_size=1, max_size=600))
def test_no_bytes_whatever_stop_the_page_reader(small, tmp_path_factory, at, junk):
    path = copied(small, tmp_path_factory.mktemp("junk") / "hub.db")
    with path.open("r+b") as file:
        file.seek(at % path.stat().st_size)
        file.write(junk)
    pages = PageFile(path)
    for root in pages.trees().values():
        for _ in pages.rows(root):
            pass
    for _ in pages.orphans():
        pass
    pages.close()


# --- salvage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "leaf"),
    [
        ("sqlite_schema", False),
        ("record", False),
        ("record", True),
        ("frame", False),
        ("frame", True),
        ("frame_by_device_end", True),
        ("day", False),
        ("day", True),
        ("zone", False),
        ("pet", False),
        ("binding", False),
        ("mark", False),
        ("meta", False),
        ("evidence", False),
        ("sqlite_autoindex_record_1", True),
    ],
)
def test_a_zeroed_sector_is_found_and_the_hub_serves_on(path, tree, leaf):
    with Database(path) as database:
        days, marks = day_values(database), database.snapshot().all_marks()
    number = 1 if tree == "sqlite_schema" else page_of(path, tree, leaf=leaf)
    damaged = zero_sector(path, (number - 1) * PAGE_BYTES // SECTOR_BYTES)
    assert damage(path) != ()
    with Database(path) as database:
        assert database.salvage is not None
        assert database.alarms()[0].startswith("The database was damaged and has been repaired.")
        assert Path(f"{path}.damaged-1").read_bytes() == damaged
        assert rebuilt(database) == days  # not one sum is lost, even where raw rows are
        with database.snapshot() as reader:
            assert reader.household().pets[1] == HOME.pets[1]
            assert reader.household().zones == HOME.zones
            assert reader.all_marks() == marks
            assert reader.meta("rebuild_due") == "1"
            assert reader.text_record(NOTE) is not None
        assert verify(path).is_sound
        store(database, tracker_day(DAYS) + bowl_day(DAYS))
        with database.snapshot() as reader:
            assert reader.marks("tracker-max") == {1: (DAYS + 1) * 288}
    with Database(path) as database:
        assert database.salvage is None  # no second time


@pytest.mark.parametrize(("tree", "sector"), [("frame", 0), ("frame", 4), ("record", 7)])
def test_what_sqlite_copies_is_what_page_by_page_reading_gives(path, tmp_path, tree, sector):
    number = page_of(path, tree, leaf=True)
    zero_sector(path, (number - 1) * PAGE_BYTES // SECTOR_BYTES + sector)
    quick = salvage(path, tmp_path / "quick.db", clock_source="system")
    slow = salvage(path, tmp_path / "slow.db", clock_source="system", copied=frozenset())
    assert quick == slow
    assert (tmp_path / "quick.db").stat().st_size > 0
    rows = [[line for line in dump(tmp_path / name) if "_migrations" not in line] for name in ("quick.db", "slow.db")]
    assert rows[0] == rows[1]


def test_text_that_is_no_text_any_more_is_lost_alone(path, tmp_path):
    with path.open("r+b") as file:
        at = path.read_bytes().index(b"event:bowl-max/1/60")
        file.seek(at + 6)
        file.write(b"\xff\xfe")
    found = salvage(path, tmp_path / "fresh.db", clock_source="system")
    assert (found.rotten, dict(found.kept)["frame"]) == (0, DAYS * (288 + 48))  # the reference follows from the row
    assert verify(tmp_path / "fresh.db").is_sound


async def test_a_salvaged_home_serves_while_its_days_are_made_again(path):
    number = page_of(path, "day", leaf=True)
    with Database(path) as database:
        days = day_values(database)
    zero_sector(path, (number - 1) * PAGE_BYTES // SECTOR_BYTES)
    with Database(path) as database:
        gateway = Gateway(Config(), SteppedClock(T0 + DAYS * DAY), database)
        assert day_values(database) != days
        with database.transaction() as tx:
            first = ROLLUPS.rebuild_from(tx, tx.household(), first=None, most=2)
            assert first is not None
            tx.set_meta("rebuild_due", first)  # as a hub leaves it that is stopped meanwhile
        await gateway.rebuild_if_due()
        gateway.writer.close()
        assert day_values(database) == days
        with database.snapshot() as reader:
            assert reader.meta("rebuild_due") == "0"


def test_what_is_lost_is_counted_and_can_come_again(path):
    number = page_of(path, "frame", leaf=True)
    zero_sector(path, (number - 1) * PAGE_BYTES // SECTOR_BYTES)
    with Database(path) as database:
        days = day_values(database)
        lost = dict(database.salvage.lost)["event"]
        assert 20 <= lost <= 60  # a page of frames
        assert f"Lost: {lost} device records." in database.salvage.text
        again = [reading for day in range(DAYS) for reading in tracker_day(day) + bowl_day(day)]
        counted = store(database, again).counted
        assert counted["records_stored"] == lost
        with database.snapshot() as reader:
            both = sum(len(reader.frames((name,), start_ms=0, end_ms=2**60)) for name in ("bowl-max", "tracker-max"))
        assert both == DAYS * (288 + 48)
        assert [values[:2] for values in day_values(database)] == [values[:2] for values in days]


def test_the_last_commits_are_salvaged_from_the_log(tmp_path):
    with Database(tmp_path / "live.db") as database:
        fill(database, days=2)
        days = day_values(database)
        for suffix in ("", "-wal"):  # what a power cut leaves
            shutil.copy(f"{database.path}{suffix}", tmp_path / f"hub.db{suffix}")
    path = tmp_path / "hub.db"
    assert (tmp_path / "hub.db-wal").stat().st_size > 100_000
    with path.open("r+b") as file:
        file.truncate(PAGE_BYTES * 3 + 77)
    with Database(path) as database:
        assert rebuilt(database) == days
    assert verify(path).is_sound


def test_a_row_that_rotted_inside_its_page_is_dropped_and_computed_again(path):
    with Database(path) as database:
        days = day_values(database)
    content = path.read_bytes()
    named = [found.start() for found in re.finditer(b"max.scratching2026-06-03", content)]
    at = next(at for at in named if content[at - at % PAGE_BYTES] == 0x0D) + 120  # inside the row's blob of sums
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\x55" * 8)
    assert damage(path)[0].startswith("day: row ")
    with Database(path) as database:
        assert database.salvage.lost_dates == {"2026-06-03"}
        assert database.salvage.rotten == 1
        assert rebuilt(database) == days


def test_only_three_damaged_files_are_kept(small, tmp_path):
    path = copied(small, tmp_path / "hub.db")
    for _ in range(5):
        zero_sector(path, 0)
        Database(path).close()
    kept = sorted(file.name for file in path.parent.glob("hub.db.damaged-*") if not file.name.endswith("-wal"))
    assert kept == ["hub.db.damaged-3", "hub.db.damaged-4", "hub.db.damaged-5"]


@pytest.mark.parametrize("moved", [False, True])
def test_an_exchange_that_was_cut_off_is_finished_at_the_next_start(path, sound, moved):
    with Database(copied(sound, Path(f"{path}.whole"))) as whole:
        days = day_values(whole)
    good = copied(sound, Path(f"{path}.salvaged"))
    Path(f"{path}.salvaging").write_bytes(b"half of an older attempt")
    damaged = zero_sector(path, 0)
    if moved:
        path.replace(f"{path}.damaged-1")
        Path(f"{path}-wal").write_bytes(b"its log")
    with Database(path) as database:
        assert database.salvage is None
        assert day_values(database) == days
    assert not good.exists()
    assert Path(f"{path}.damaged-1").read_bytes() == damaged
    if moved:
        assert Path(f"{path}.damaged-1-wal").read_bytes() == b"its log"


def test_a_file_that_cannot_be_mended_stays_as_it_is(path):
    damaged = zero_sector(path, 0)
    in_the_way = path.parent / "hub.db.salvaging"
    in_the_way.mkdir()
    with pytest.raises(StoreError, match="nothing of it was changed"):
        Database(path)
    assert path.read_bytes() == damaged
    in_the_way.rmdir()
    with Database(path) as database:
        assert database.salvage is not None


# --- other people's files -------------------------------------------------------------------


def foreign(path: Path, kind: str) -> None:
    if kind == "text":
        path.write_text("not a database, but somebody's letter")
    elif kind == "zeros":
        path.write_bytes(bytes(8192))
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE letters (text)")
            connection.execute("INSERT INTO letters VALUES ('CREATE TABLE record (')")
            if kind == "newer":
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        connection.close()
        if kind == "broken":
            zero_sector(path, 8)  # the table's page: damaged, but never ours


@pytest.mark.parametrize("kind", ["text", "zeros", "another", "broken", "newer"])
def test_a_file_that_is_not_ours_is_refused_and_stays_byte_for_byte(tmp_path, kind):
    path = tmp_path / "hub.db"
    foreign(path, kind)
    before = path.read_bytes()
    error = DatabaseTooNew if kind == "newer" else DatabaseUnreadable
    for attempt in (
        lambda: Database(path),
        lambda: initialise(path, clock_source="system"),
        lambda: check_readable(path),
        lambda: verify(path),
    ):
        with pytest.raises(error, match="nothing was written"):
            attempt()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(".lock")] == ["hub.db"]


def test_a_file_that_is_absent_is_named(tmp_path):
    with pytest.raises(DatabaseUnreadable, match="found none"):
        check_readable(tmp_path / "hub.db")
    with pytest.raises(DatabaseUnreadable):
        Snapshot(tmp_path / "hub.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_cut_off_at_its_birth_is_begun_again(tmp_path):
    path = tmp_path / "hub.db"
    path.touch()
    with Database(path) as database:
        assert day_values(database) == []


# --- schemas --------------------------------------------------------------------------------


def loaded(dumped: Path, path: Path) -> Path:
    """A file as that release wrote it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(dumped.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {dumped.stem}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return path


@pytest.mark.parametrize("dumped", DUMPS, ids=lambda path: path.stem)
def test_each_released_schema_is_upgraded_once_and_loses_nothing(tmp_path, dumped):
    path = loaded(dumped, tmp_path / "hub.db")
    rows = {line for line in dump(path) if line.startswith("INSERT INTO")}
    initialise(path, clock_source="system")
    once = dump(path)
    initialise(path, clock_source="import")
    assert dump(path) == once
    assert rows <= set(once) or dumped != DUMPS[-1]
    assert verify(path).is_sound
    with Database(path) as database, database.snapshot() as reader:
        assert reader.household().country == HOME.country
        assert reader.day("max.scratching", "2026-06-01").total > 0
        assert reader.answer(1) is not None
        assert reader.meta("clock_source") == "system"
        assert reader.newest_ms() > T0


def test_every_released_schema_has_its_dump_and_no_released_step_was_edited(tmp_path):
    assert [int(path.stem) for path in DUMPS] == list(range(1, SCHEMA_VERSION + 1))

    def shape(path: Path) -> list[tuple[str, str]]:
        with sqlite3.connect(path) as connection:
            found = connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
            ).fetchall()
        connection.close()
        return [(name, re.sub(r"\s+", " ", text)) for name, text in found]

    initialise(tmp_path / "fresh.db", clock_source="system")
    released = loaded(DUMPS[-1], tmp_path / "released.db")
    assert shape(released) == shape(tmp_path / "fresh.db"), "python -m tests.store_world writes the dump of a release"


def test_whatever_cites_a_record_keeps_it_from_being_purged(tmp_path):
    initialise(tmp_path / "hub.db", clock_source="system")
    connection = sqlite3.connect(tmp_path / "hub.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    pointing = {
        table
        for table in tables
        for row in connection.execute(f"PRAGMA foreign_key_list({table})")
        if row[2] == "record" and row[3] == "record"
    }
    connection.close()
    # Those four are what a record is; the fifth says from which message a row was made, and goes with it.
    assert pointing - {"frame", "day", "text_record", "edge", "derived"} == set(CITING)


# --- a log that was cut -----------------------------------------------------------------------


def test_a_log_cut_or_flipped_anywhere_leaves_exactly_the_commits_before(tmp_path):
    outcome = cut_logs(tmp_path, cuts=25, seed=11)
    assert outcome.wrong == ()
    assert outcome.cuts == 25
    assert len(outcome.commits_seen) > 10  # the cuts fell on many commits


def handed_to_the_system() -> int:
    """Bytes this process has written so far, to whatever file (Linux)."""
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["wchar"])


def test_a_salvage_writes_the_fresh_file_once_and_leaves_no_log_behind(path, tmp_path):
    """Through a log, and with the pages of indexes coming and going, it wrote everything nearly three times."""
    zero_sector(path, 8 * (page_of(path, "frame", leaf=True) - 1) + 2)
    begun = handed_to_the_system()
    initialise(tmp_path / "empty.db", clock_source="system")
    before = handed_to_the_system()
    salvage(path, tmp_path / "fresh.db", clock_source="system")
    size = (tmp_path / "fresh.db").stat().st_size
    assert handed_to_the_system() - before - (before - begun) < 1.5 * size
    assert not list(tmp_path.glob("fresh.db-*"))
    assert sqlite3.connect(tmp_path / "fresh.db").execute("PRAGMA journal_mode").fetchone() == ("wal",)
