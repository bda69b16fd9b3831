"""Cuts a database's log at random places, as power cuts and bad cards do, and opens it again.

A log is truncated anywhere, or one of its bytes is flipped; what opens afterwards must be
exactly the state after the last whole commit before that place, and sound. Prints a table::

    python tests/soak_store.py --cuts 600 --seed 1
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gateway.store import Database
from gateway.store.verify import verify
from tests.store_world import HOME, ROLLUPS, day_values, store, tracker_day

_COMMITS = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round of cuts gave: ``wrong`` names each cut that did not open as it must."""

    cuts: int
    truncated: int
    flipped: int
    commits_seen: frozenset[int]
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Log:
    """A database whose whole content after the first commit stands in its log.

    ``ends`` is the log's length after each commit, ``states`` what the database said then.
    """

    main: bytes
    log: bytes
    ends: tuple[int, ...]
    states: tuple[object, ...]


def _state(database: Database) -> object:
    with database.snapshot() as reader:
        frames = reader.frames(("tracker-max",), start_ms=0, end_ms=2**60)
        return reader.counters(), reader.all_marks(), frames, day_values(database)


def _written(folder: Path) -> _Log:
    """A log of many commits, of one record to half a day each, and the state after each."""
    path = folder / "written.db"
    readings = [reading for day in range(3) for reading in tracker_day(day)]
    with Database(path) as database:
        with database.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database._connection.execute("PRAGMA wal_autocheckpoint = 0")
        ends, states = [0], [_state(database)]
        chance = random.Random(5)
        for commit in range(_COMMITS):
            if readings:
                store(database, [readings.pop(0) for _ in range(min(len(readings), chance.randint(1, 3)))])
            else:
                with database.transaction() as tx:
                    tx.bump("later", commit)
            ends.append(Path(f"{path}-wal").stat().st_size)
            states.append(_state(database))
        return _Log(path.read_bytes(), Path(f"{path}-wal").read_bytes(), tuple(ends), tuple(states))


def cut_logs(folder: Path, *, cuts: int, seed: int) -> Outcome:
    """Cut a log ``cuts`` times and open what is left each time."""
    written = _written(folder)
    chance = random.Random(seed)
    flipped, seen, wrong = 0, set(), []
    for number in range(cuts):
        at = chance.randrange(len(written.log))
        flip = chance.random() < 0.5
        log = bytearray(written.log if flip else written.log[:at])
        if flip:
            log[at] ^= 1 << chance.randrange(8)
            flipped += 1
        expected = max(commit for commit, end in enumerate(written.ends) if end <= at or end == 0)
        home = folder / f"cut-{number}"
        home.mkdir()
        path = home / "hub.db"
        path.write_bytes(written.main)
        Path(f"{path}-wal").write_bytes(log)
        what = f"cut {number}: byte {at} {'flipped' if flip else 'is the end'}"
        with Database(path) as database:
            state = _state(database)
            if database.salvage is not None:
                wrong.append(f"{what}: taken for damaged")
            elif state not in written.states:
                wrong.append(f"{what}: no whole commit")
            elif state != written.states[expected]:
                wrong.append(f"{what}: commit {written.states.index(state)}, must be {expected}")
            with database.transaction() as tx:
                if ROLLUPS.rebuild(tx, tx.household()):
                    wrong.append(f"{what}: day rows differ from their frames")
        if not verify(path).is_sound:
            wrong.append(f"{what}: not sound")
        seen.add(expected)
        shutil.rmtree(home)
    return Outcome(cuts, cuts - flipped, flipped, frozenset(seen), tuple(wrong))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cuts", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = cut_logs(Path(folder), cuts=options.cuts, seed=options.seed)
    print("| log cuts | truncated | a bit flipped | different commits | opened as exactly a whole commit |")
    print("|---:|---:|---:|---:|---:|")
    right = outcome.cuts - len(outcome.wrong)
    print(
        f"| {outcome.cuts} | {outcome.truncated} | {outcome.flipped} | {len(outcome.commits_seen)} of {_COMMITS + 1} "
        f"| {right} |"
    )
    for line in outcome.wrong:
        print(line, file=sys.stderr)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
