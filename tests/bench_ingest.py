"""Durable rows per second beside a bare subscriber, on the same broker in the same run.

Run ``python tests/bench_ingest.py [MESSAGES]``: a mosquitto with its default settings, one
publisher process at QoS 1 paced by the other side, by turns into a bare paho subscriber that
acknowledges by itself, and into link, ingest and a database with ``synchronous=FULL``. Each ratio
is to the bare runs just before and after, since a shared machine changes from minute to minute.
With ``SCENTWALK_THINGSBOARD_PY`` (``make bench`` sets it) thingsboard-gateway takes the same rows
from the same publisher in the same run: with its SQLite storage, and with its default, memory.
Ratios travel between machines, figures do not. Not a test.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from firmware_bridge import wire
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest
from gateway.links.mqtt import MqttLink, MqttSettings
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer
from tests import thingsboard_peer as peer

PACE = "pace"
MOTION = (300_000, 4_000, 200, 60_000, 20_000, 5_000, 200_000, 0, 300_000)
START_MS = 1_767_243_600_000  # 2026-01-01, midnight in New York


def home(device: str) -> Household:
    """One dog with one tracker; every run has a device, and so a retained mark, of its own."""
    return Household(
        zones=(ZonePeriod("America/New_York", 0),),
        pets=(Pet("max", "Max", "dog"),),
        devices=(Device(device, "tracker", "collar"),),
        bindings=(Binding(device, frozenset({"max"}), 0),),
    )


def payload(seq: int, records: int) -> bytes:
    """A tracker's message: five minutes of motion a record."""
    packed = [wire.pack_record(wire.MOTION, (seq + n) * 300_000, MOTION) for n in range(records)]
    sent_ms = (seq + records) * 300_000
    return wire.pack_message(1, seq, packed, sent_ms, START_MS + sent_ms)


def publish_peer(port: int, messages: int) -> None:
    """Publish the same rows, one a message, as the JSON that the peer reads; at most 500 ahead of its platform."""
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="publisher")
    client.max_inflight_messages_set(100)
    moved = threading.Condition()
    confirmed = 0

    def on_message(_client: object, _data: object, message: paho.MQTTMessage) -> None:
        nonlocal confirmed
        with moved:
            confirmed = max(confirmed, int(message.payload))
            moved.notify()

    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.subscribe(PACE)
    for n in range(messages):
        with moved:
            moved.wait_for(lambda at=n: at - confirmed < 500)
        # Its own instant for each: rows of one millisecond would be merged into one.
        row = dict(zip(peer.FIELDS, MOTION, strict=True), ts=START_MS + n * 300_000)
        last = client.publish(peer.TOPIC, json.dumps(row), qos=1)
    last.wait_for_publish()
    client.disconnect()
    client.loop_stop()


def publish(port: int, messages: int, records: int, device: str) -> None:
    """Publish at QoS 1, at most 500 messages ahead of what the other side has confirmed: the
    bare subscriber on ``pace``, the hub by its mark. mosquitto drops silently above 1,000.
    """
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="publisher")
    client.max_inflight_messages_set(100)
    moved = threading.Condition()
    confirmed = 0

    def on_message(_client: object, _data: object, message: paho.MQTTMessage) -> None:
        nonlocal confirmed
        told = int(message.payload) if message.topic == PACE else wire.unpack_mark(message.payload).get(1, 0) // records
        with moved:
            confirmed = max(confirmed, told)
            moved.notify()

    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.subscribe([(PACE, 0), (wire.mark_topic(device), 1)])
    for n in range(messages):
        with moved:
            moved.wait_for(lambda at=n: at - confirmed < 500)
        client.publish(wire.up_topic(device), payload(1 + n * records, records), qos=1)
    # A device that will say no more asks for its mark; a bare subscriber has counted to its end by then.
    last_seq, sent_ms = messages * records + 1, (messages * records + 2) * 300_000
    ask = wire.pack_record(wire.MARK_REQUEST, sent_ms, ())
    last = client.publish(wire.up_topic(device), wire.pack_message(1, last_seq, [ask], sent_ms, START_MS + sent_ms), 1)
    last.wait_for_publish()
    client.disconnect()
    client.loop_stop()


def publisher(port: int, messages: int, records: int, device: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, __file__, "publish", str(port), str(messages), str(records), device])


def written_bytes() -> int:
    """What this process has sent to the file system's devices so far (Linux)."""
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["write_bytes"])


def bare(port: int, messages: int, records: int) -> tuple[float, float]:
    """(messages per second, CPU us a message) of a subscriber that does nothing with them."""
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="bare")
    heard, begun = 0, 0.0
    done = threading.Event()

    def on_message(*_: object) -> None:
        nonlocal heard, begun
        begun = begun or time.perf_counter()
        heard += 1
        if heard % 50 == 0:
            client.publish(PACE, str(heard))
        if heard == messages:
            done.set()

    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.subscribe(wire.UP_FILTER, 1)
    client.loop_start()
    cpu = time.process_time()
    with publisher(port, messages, records, f"bare{records}"):
        done.wait(300)
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    client.disconnect()
    client.loop_stop()
    return messages / took, cpu / messages * 1e6


@dataclass(frozen=True, slots=True)
class Run:
    """Messages per second until all are on the disk, CPU us and bytes written a record."""

    rate: float
    cpu_us: float
    written: float


async def durable(port: int, messages: int, records: int, inflight: int, folder: Path) -> Run:
    """The same messages through link, ingest and a database with ``synchronous=FULL``."""
    device = f"tracker-{folder.name}"
    database = Database(folder.with_suffix(".db"))
    with database.transaction() as tx:
        tx.save_household(home(device), valid_from_ms=0)
    clock, writer = SystemClock(), Writer(database)
    inbox = Inbox(capacity=4 * inflight)
    link = MqttLink(
        MqttSettings("127.0.0.1", port, client_id=f"hub{inflight}", inflight=inflight), inbox=inbox, clock=clock
    )
    ingest = Ingest(
        inbox=inbox, link=link, writer=writer, rollups=Rollups(load()), clock=clock, rule=CommitRule(window=inflight)
    )
    tasks = [asyncio.create_task(link.run()), asyncio.create_task(ingest.run())]
    while not link.state.connected:  # noqa: ASYNC110 (a state to look at, no event)
        await asyncio.sleep(0.01)
    with publisher(port, messages, records, device):
        cpu, written, begun = time.process_time(), written_bytes(), 0.0
        mark = 0
        while mark < messages * records:
            await asyncio.sleep(0.02)
            mark = link.marks(device).get(1, 0)
            if mark and not begun:
                begun, first = time.perf_counter(), mark
        took = time.perf_counter() - begun
        cpu, written = time.process_time() - cpu, written_bytes() - written
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    writer.close()
    database.close()
    rows = messages * records
    return Run((mark - first) / records / took, cpu / rows * 1e6, written / rows)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def beside_peer(python: Path, port: int, messages: int, folder: Path) -> None:
    """Print thingsboard-gateway's rows a second beside ours, one record a message, taken by turns."""
    own = free_port()
    (folder / "mosquitto.conf").write_text(peer.broker(own, folder))
    command = ["/usr/sbin/mosquitto", "-c", str(folder / "mosquitto.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as broker:
        for storage in ("sqlite", "memory"):
            before = asyncio.run(durable(port, messages, 1, 20, folder / f"before-{storage}"))
            theirs = peer.measure(
                python,
                own,
                folder / f"peer-{storage}",
                storage=storage,
                messages=messages,
                publisher=lambda: subprocess.Popen([sys.executable, __file__, "publish_peer", str(own), str(messages)]),
            )
            after = asyncio.run(durable(port, messages, 1, 20, folder / f"after-{storage}"))
            print(
                f"thingsboard-gateway, {storage:6} storage: {theirs.rows:6.0f} rows/s, {theirs.cpu_us:.0f} us of CPU a "
                f"row; ours before and after {before.rate:.0f} and {after.rate:.0f} rows/s = "
                f"{before.rate / theirs.rows:.1f} and {after.rate / theirs.rows:.1f} times",
                flush=True,
            )
        broker.terminate()


def main() -> None:
    """Print one line a setting."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        with subprocess.Popen(["/usr/sbin/mosquitto", "-p", str(port)], stderr=subprocess.DEVNULL) as broker:
            time.sleep(1)
            for records in (1, 12):
                base, base_us = bare(port, messages, records)
                for inflight in (20, 200, 1000):
                    run = asyncio.run(durable(port, messages, records, inflight, folder / f"{records}-{inflight}"))
                    before, (base, base_us) = base, bare(port, messages, records)
                    print(
                        f"{records:2} records a message, in flight {inflight:4}: {run.rate:6.0f} messages/s = "
                        f"{run.rate * records:6.0f} rows/s durable, {run.rate / before:.2f} and {run.rate / base:.2f} "
                        f"of a bare subscriber before and after ({before:.0f} and {base:.0f}); {run.cpu_us:.0f} us of "
                        f"CPU a row (bare {base_us / records:.0f}), {run.written / 1e3:.1f} kB written a row",
                        flush=True,
                    )
            if named := os.environ.get("SCENTWALK_THINGSBOARD_PY"):
                beside_peer(Path(named), port, messages, folder)
            broker.terminate()
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of this process {peak_mib:.0f} MiB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["publish_peer"]:
        publish_peer(*(int(value) for value in sys.argv[2:4]))
    elif sys.argv[1:2] == ["publish"]:
        publish(*(int(value) for value in sys.argv[2:5]), sys.argv[5])
    else:
        main()
