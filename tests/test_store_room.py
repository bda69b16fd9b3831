"""Room on the disk: a full one, its ballast, and a log that readers sit on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.store import Database, Snapshot
from gateway.store.room import Ballast, free_bytes
from gateway.stored import DeadLetter
from tests.store_world import HOME, T0, bowl_day, day_values, store, tracker_day

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = ["unshare", "--map-root-user", "--mount"]


# --- a full disk ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    """What a process told that recorded 25 days on a disk that holds about ten."""
    if shutil.which(NAMESPACE[0]) is None or subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0:
        pytest.skip("a file system of 2 MB needs a mount namespace of one's own (unshare), which is not permitted here")
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-m", "tests.store_full_disk", str(tmp_path_factory.mktemp("disk"))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_recording_goes_on_over_a_full_disk_at_the_second_attempt(full_disk):
    assert set(full_disk["attempts"]) == {1, 2}  # no batch was given up
    assert full_disk["attempts"].count(2) >= 2  # the disk was full more than once
    assert full_disk["opens_again"]


def test_on_a_full_disk_all_that_was_acknowledged_is_stored_or_was_purged_by_rule(full_disk):
    assert full_disk["acknowledged"] == full_disk["stored"] + full_disk["purged"]
    assert full_disk["acknowledged"] == 26 * 288 + 25 * 48
    assert full_disk["marks"] == {"bowl-max": {"1": 25 * 48}, "tracker-max": {"1": 26 * 288}}
    assert full_disk["sound"]


def test_a_full_disk_takes_the_oldest_rows_and_no_sum_and_no_source(full_disk, tmp_path):
    oldest_ms, first_ms = full_disk["oldest_ms"]
    assert oldest_ms > first_ms + 10 * 86_400_000
    assert full_disk["cited_kept"]
    assert full_disk["rebuilt"] == 0
    with Database(tmp_path / "roomy.db") as roomy:
        with roomy.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        for day in range(25):
            store(roomy, tracker_day(day) + bowl_day(day))
        store(roomy, tracker_day(25))
        assert full_disk["days"] == [[name, date, n, sum(sums)] for name, date, n, sums, _, _ in day_values(roomy)]


def test_a_full_disk_is_said_and_has_cost_its_ballast(full_disk):
    assert full_disk["ballast_at_start"] == 2 * 2**20 // 4  # a quarter of a small disk
    assert not full_disk["ballast_held"]
    (alarm,) = full_disk["alarms"]
    assert alarm.startswith("The disk is full: ")
    assert "old device records were removed to go on recording; daily sums and cited records are kept." in alarm


def test_another_program_that_takes_the_last_byte_does_not_stop_recording(full_disk):
    assert full_disk["attempt_beside_another"] in {1, 2}
    assert full_disk["attempt_afterwards"] in {1, 2}


def test_the_ballast_is_real_bytes_and_comes_back_after_it_was_given_up(tmp_path):
    ballast = Ballast(tmp_path / "hub.db", 2**20)
    assert ballast.take()
    file = tmp_path / "hub.db.ballast"
    assert file.stat().st_blocks * 512 >= file.stat().st_size == 2**20
    ballast.release()
    assert not file.exists()
    assert not ballast.is_held
    assert ballast.take()


def test_a_ballast_that_would_fill_the_disk_is_not_taken(tmp_path):
    ballast = Ballast(tmp_path / "hub.db", 2**62)
    ballast.size_bytes = free_bytes(tmp_path / "hub.db")
    assert not ballast.take()
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_ballast_has_no_alarm(tmp_path):
    with Database(tmp_path / "hub.db") as database:
        assert database.alarms() == ()


# --- the log --------------------------------------------------------------------------------

LIMIT_BYTES = 2**19


@pytest.fixture
def database(tmp_path):
    """With a log limit that a test reaches in a second (8 MiB in a hub)."""
    with Database(tmp_path / "hub.db", wal_limit_bytes=LIMIT_BYTES) as opened:
        yield opened


def log_bytes(database: Database) -> int:
    return Path(f"{database.path}-wal").stat().st_size


def write_until(database: Database, enough: Callable[[], bool]) -> None:
    """Commits of a few pages each."""
    for number in range(2000):
        if enough():
            return
        with database.transaction() as tx:
            tx.add_dead_letters([DeadLetter("mqtt", "bowl", None, None, T0 + number, "noise", "", os.urandom(4000))])
    raise AssertionError("2,000 commits were not enough")


def test_the_log_is_cut_back_once_a_reader_outlived_its_lease(database):
    with Snapshot(database.path, lease_s=3600) as reader:
        write_until(database, lambda: log_bytes(database) > 2 * LIMIT_BYTES)  # as long as it reads, nobody can
        reader.expire()
        write_until(database, lambda: log_bytes(database) <= LIMIT_BYTES)


def test_long_readers_one_after_the_other_have_to_give_up_when_the_log_has_grown(database):
    with database.snapshot(lease_s=3600) as first:
        write_until(database, lambda: log_bytes(database) > 3 * LIMIT_BYTES)
        with database.snapshot(lease_s=3600) as second:  # before the first one ends
            first.close()
            write_until(database, lambda: log_bytes(database) <= LIMIT_BYTES)
            with pytest.raises(StoreError, match="this one was ended"):
                second.counters()


def test_readers_that_overlap_for_ever_do_not_make_the_log_grow(database):
    stop = threading.Event()

    def read(wait_s: float) -> None:
        while not stop.is_set():
            with database.snapshot() as reader:
                reader.counters()
                stop.wait(wait_s)

    readers = [threading.Thread(target=read, args=(wait_s,)) for wait_s in (0.011, 0.013, 0.017)]
    for reader in readers:
        reader.start()
    try:
        highest = 0
        for _ in range(500):
            with database.transaction() as tx:
                tx.add_dead_letters([DeadLetter("mqtt", "b", None, None, T0, "noise", "", os.urandom(4000))])
            highest = max(highest, log_bytes(database))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert database.path.stat().st_size > 3 * LIMIT_BYTES
    assert highest < 3 * LIMIT_BYTES


_READS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
print(connection.execute("SELECT count(*) FROM meta").fetchone(), flush=True)
sys.stdin.read()
"""


def test_a_reader_of_another_program_is_said_when_the_log_has_grown(database):
    other = subprocess.Popen(
        [sys.executable, "-c", _READS, str(database.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        other.stdout.readline()
        write_until(database, lambda: log_bytes(database) > 8 * LIMIT_BYTES)
        assert database.alarms()[0].startswith("Another program has been reading hub.db for long")
        other.stdin.close()
    write_until(database, lambda: log_bytes(database) <= LIMIT_BYTES)
    assert database.alarms() == ()
