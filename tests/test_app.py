"""The demo and the hub as processes: they start, say what they do, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from gateway.links.broker import EmbeddedBroker
from tests.stories import free_port

HANG_GUARD_S = 300
ENDS_WITHIN_S = 3.0 * 10  # three seconds are promised; a loaded machine gets ten times that


def children_of(pid: int) -> set[int]:
    """Every process below one, by /proc."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                stat = (entry / "stat").read_text()
                below.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in below.get(waiting.pop(), []):
            found.add(child)
            waiting.append(child)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start(*arguments) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gateway", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def read_until(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    said = ""
    deadline = time.monotonic() + HANG_GUARD_S
    while word not in said:
        assert time.monotonic() < deadline, said
        line = process.stdout.readline()
        assert line, said + (process.stderr.read() if process.stderr else "")
        said += line
    return said


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait(HANG_GUARD_S)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


@pytest.mark.story
@pytest.mark.timeout(900)
def test_the_demo_serves_its_answer_and_ctrl_c_ends_all_it_started():
    web, mqtt = free_port(), free_port()
    demo = start("demo", "--scenario", "too_little_history", "--web-port", web, "--mqtt-port", mqtt)
    try:
        said = read_until(demo, "Ctrl-C ends")
        assert f"http://127.0.0.1:{web}" in said
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/answer/1", timeout=HANG_GUARD_S) as page:
            assert "Too early" in page.read().decode()
        below = children_of(demo.pid)
        assert len(below) >= 2, "the broker and the simulator are children"
        demo.send_signal(signal.SIGINT)
        demo.wait(ENDS_WITHIN_S)
        assert demo.returncode == 0
        assert not [pid for pid in below if alive(pid)]
    finally:
        end(demo)
    for port in (web, mqtt):
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))


@pytest.mark.story
def test_a_demo_ended_in_the_middle_leaves_nothing_behind():
    demo = start("demo", "--web-port", free_port(), "--mqtt-port", free_port())
    try:
        read_until(demo, "Simulating")
        time.sleep(2)
        below = children_of(demo.pid)
        demo.send_signal(signal.SIGINT)
        demo.wait(ENDS_WITHIN_S)
        assert not [pid for pid in below if alive(pid)]
    finally:
        end(demo)


@pytest.mark.parametrize(("option", "other"), [("--web-port", "--mqtt-port"), ("--mqtt-port", "--web-port")])
def test_a_busy_port_is_named_with_the_option_that_changes_it(option, other):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "demo", option, str(port), other, str(free_port())],
            capture_output=True,
            text=True,
            timeout=HANG_GUARD_S,
            check=False,
        )
    assert done.returncode == 2
    assert str(port) in done.stderr
    assert option in done.stderr
    assert "Traceback" not in done.stderr


def test_a_scenario_nobody_knows_is_said(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "demo", "--scenario", "atlantis", "--once", "--mqtt-port", str(free_port())],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert done.returncode == 2
    assert "atlantis" in done.stderr
    assert "food_switch" in done.stderr
    assert "Traceback" not in done.stderr


# --- the hub on its own clock -----------------------------------------------------------------------

HOME = """
zone = "Europe/Berlin"
[[pet]]
id = "max"
name = "Max"
species = "dog"
[[device]]
id = "bowl-max"
kind = "food_bowl"
pets = ["max"]
"""


@pytest.fixture
def hub(tmp_path):
    """A running hub on a home of one dog, with a broker of its own."""
    (tmp_path / "home.toml").write_text(HOME)
    database, mqtt, web = tmp_path / "home.db", free_port(), free_port()
    (tmp_path / "scentwalk.toml").write_text(
        f'[mqtt]\nport = {mqtt}\nprotocol = 311\n[web]\nport = {web}\n[database]\npath = "home.db"\n'
    )
    entered = start("household", "import", tmp_path / "home.toml", "--db", database)
    assert entered.wait(HANG_GUARD_S) == 0
    end(entered)
    with EmbeddedBroker(mqtt):
        running = start("serve", "--config", tmp_path / "scentwalk.toml")
        try:
            read_until(running, "The page is at")
            yield running, tmp_path / "scentwalk.toml", database, web
        finally:
            end(running)


def test_a_command_reaches_the_hub_that_holds_the_database(hub):
    _, config, database, web = hub
    deadline = time.monotonic() + HANG_GUARD_S
    while not database.with_name("home.db.door").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    logged = start("log", "--pet", "max", "--what", "bath", "--at", "2026-07-01", "--config", config)
    told = logged.communicate(timeout=HANG_GUARD_S)
    assert logged.returncode == 0, told
    assert "Kept" in told[0]
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM text_record WHERE object = 'bath'").fetchone() == (1,)
    refused = start("log", "--pet", "rex", "--what", "bath", "--at", "2026-07-01", "--config", config)
    told = refused.communicate(timeout=HANG_GUARD_S)
    assert refused.returncode == 2
    assert "Max" in told[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{web}/health", timeout=HANG_GUARD_S) as health:
        assert health.status == 200


def test_a_second_hub_on_one_database_is_refused(hub):
    _, config, _, _ = hub
    second = start("serve", "--config", config, "--web-port", free_port())
    _, problem = second.communicate(timeout=HANG_GUARD_S)
    assert second.returncode == 2
    assert "one writer" in problem


def test_sigterm_ends_the_hub_and_takes_its_door_away(hub):
    running, _, database, _ = hub
    time.sleep(1)
    running.terminate()
    assert running.wait(ENDS_WITHIN_S) == 0
    assert not database.with_name("home.db.door").exists()
    assert not database.with_name("home.db.token").exists()


def test_an_answer_asked_over_http_is_stored_with_what_it_cites(hub):
    _, _, database, web = hub
    request = urllib.request.Request(
        f"http://127.0.0.1:{web}/api/ask",
        data=json.dumps({"question": "Has Max been fed yet?"}).encode(),
        headers={"Content-Type": "application/json"},
    )
    deadline = time.monotonic() + HANG_GUARD_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=HANG_GUARD_S) as told:
                answer = json.loads(told.read())
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert answer["schema"] == 1
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        assert db.execute("SELECT question FROM answer").fetchone() == ("Has Max been fed yet?",)


def test_a_hub_without_a_household_refuses_to_start_naming_the_command(tmp_path):
    config = tmp_path / "scentwalk.toml"
    config.write_text(f'[database]\npath = "home.db"\n[web]\nport = {free_port()}\n')
    done = start("serve", "--config", config)
    _, problem = done.communicate(timeout=HANG_GUARD_S)
    assert done.returncode == 2
    assert "household import" in problem


def test_a_backup_is_restored_into_the_hub_that_runs(hub, tmp_path):
    _, config, database, _ = hub
    deadline = time.monotonic() + HANG_GUARD_S
    while not database.with_name("home.db.door").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for arguments in (
        ("backup", tmp_path / "backup.db"),
        ("log", "--pet", "max", "--what", "bath", "--at", "2026-07-01"),
        ("restore", tmp_path / "backup.db"),
    ):
        command = start(*arguments, "--config", config)
        told = command.communicate(timeout=HANG_GUARD_S)
        assert command.returncode == 0, told
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM text_record WHERE object = 'bath'").fetchone() == (0,)
