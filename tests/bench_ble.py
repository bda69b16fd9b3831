"""Notifications per second through bleak to durable rows, beside bleak alone in the same run.

Run ``python tests/bench_ble.py [NOTIFICATIONS]``: a private bus with our small org.bluez in a
process of its own, a device that notifies one record at a time, at most 200 ahead of what the
other side has confirmed. First into a bare `BleakClient` that counts, then into the hub's
link, ingest and a database with ``synchronous=FULL``. There is no radio in it: a real one gives a
few hundred notifications a second. Ratios travel between machines, figures do not. Not a test.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bleak import BleakClient, BleakScanner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from firmware_bridge import parts, wire
from gateway.links.ble import BleLink
from gateway.links.ble_radio import Radio
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest, Links
from gateway.links.rollups import Rollups
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer
from tests.ble_home import HOME
from tests.fake_bluez import FakeBluez, PrivateBus
from tests.radio_world import TrackerPeer

AHEAD, CONFIRMED = 200, 50
BARE, HUB = "C0:FF:EE:00:00:0A", "C0:FF:EE:00:00:0B"


class Stream:
    """A peer that notifies ``count`` messages of one record, as fast as they are confirmed."""

    service, flags = TrackerPeer.service, TrackerPeer.flags

    def __init__(self, count: int) -> None:
        self._count = count
        self._sent = self._marked = 0
        self._joiner = parts.Joiner(1_000)
        self._began_s = time.monotonic()
        self._live = False
        self._answer = b""

    def opened(self) -> None:
        self._sent = self._marked

    def closed(self) -> None:
        self._live = False

    def service_data(self) -> dict[str, bytes]:
        return {parts.SERVICE_UUID: bytes((int(self._marked < self._count), self._marked & 0xFF))}

    def read(self, uuid: str) -> bytes:
        return b"\x01tracker-max" if uuid == parts.DEVICE_UUID else self._answer

    def write(self, uuid: str, value: bytes) -> None:
        if uuid == parts.MARK_UUID:
            mark = self._joiner.feed(value)
            self._marked = self._marked if mark is None else wire.unpack_mark(mark).get(1, 0)
        else:
            message, offset = (int.from_bytes(value[at : at + 2], "little") for at in (0, 2))
            self._live = self._live or message > 0
            self._answer = parts.pack_piece(message, offset, 0, self._count - self._marked, b"")

    def notifications(self) -> list[tuple[str, bytes]]:
        found = []
        while self._live and len(found) < 100 and self._sent < min(self._count, self._marked + AHEAD):
            self._sent += 1
            uptime_ms = round((time.monotonic() - self._began_s) * 1_000)
            record = wire.pack_record(wire.BEAT, uptime_ms, (900, 1, 0))
            message = wire.pack_message(1, self._sent, [record], uptime_ms, None)
            found.append((parts.FRAMES_UUID, parts.cut_part(message, 0, 185)))
        return found


async def world(address: str, count: int) -> None:
    """The device's side, until it is killed."""
    bluez = await FakeBluez(address, "hci0").start()
    peers = {BARE: Stream(count), HUB: Stream(count)}
    print("ready", flush=True)
    while True:
        for _ in range(200):
            bluez.pump()
            await asyncio.sleep(0.0005)
        for where, peer in peers.items():
            bluez.advertise(where, service=peer.service_data(), peer=peer)


async def bare(count: int) -> float:
    """Notifications a second into a client that counts them and confirms every 50."""
    device = await BleakScanner.find_device_by_address(BARE, bluez={"adapter": "hci0"})
    assert device is not None
    heard, begun, all_heard, due = 0, 0.0, asyncio.Event(), asyncio.Event()

    def on_value(_characteristic: object, _value: bytearray) -> None:
        nonlocal heard, begun
        begun = begun or time.perf_counter()
        heard += 1
        if heard % CONFIRMED == 0 or heard == count:
            due.set()
        if heard == count:
            all_heard.set()

    async def confirm(client: BleakClient) -> None:
        while True:
            await due.wait()
            due.clear()
            await client.write_gatt_char(
                parts.MARK_UUID, parts.cut_part(wire.pack_mark({1: heard}), 0, 182), response=True
            )

    async with BleakClient(device, bluez={"adapter": "hci0"}) as client:
        await client.start_notify(parts.FRAMES_UUID, on_value)
        confirming = asyncio.create_task(confirm(client))
        await client.write_gatt_char(parts.ASK_UUID, parts.pack_ask(1, 0), response=True)
        await all_heard.wait()
        took = time.perf_counter() - begun
        confirming.cancel()
    return count / took


async def durable(count: int, folder: Path) -> tuple[float, float]:
    """(notifications per second until all are on the disk, CPU us each)."""
    database = Database(folder / "bench.db")
    with database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    clock, writer, inbox = SystemClock(), Writer(database), Inbox(capacity=80)
    link = BleLink(
        "hci0",
        radio=Radio(),
        clock=clock,
        inbox=inbox,
        heard=Inbox(capacity=80),
        admits=lambda _device: True,
        wanted=lambda _heard: False,
        keys=tuple,
        counters={},
    )
    rule = CommitRule(window=20)
    ingest = Ingest(inbox=inbox, link=Links(link), writer=writer, rollups=Rollups(load()), clock=clock, rule=rule)
    tasks = [asyncio.create_task(link.run()), asyncio.create_task(ingest.run())]
    mark, first, begun, cpu = 0, 0, 0.0, 0.0
    while mark < count - rule.window:  # the last batch waits for more, and nobody hurries it
        await asyncio.sleep(0.01)
        mark = await asyncio.to_thread(lambda: _mark(database))
        if mark and not begun:
            begun, first, cpu = time.perf_counter(), mark, time.process_time()
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    writer.close()
    database.close()
    return (mark - first) / took, cpu / (mark - first) * 1e6


def _mark(database: Database) -> int:
    with database.snapshot() as reader:
        return reader.marks("tracker-max").get(1, 0)


def main() -> None:
    """Print the two rates and their ratio."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    with tempfile.TemporaryDirectory() as name, PrivateBus(Path(name)) as bus:
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = bus.address
        command = [sys.executable, __file__, "world", bus.address, str(count)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as device:
            assert device.stdout is not None
            device.stdout.readline()
            alone = asyncio.run(bare(count))
            print(f"bleak alone: {alone:8.0f} notifications/s", flush=True)
            rate, cpu_us = asyncio.run(durable(count, Path(name)))
            print(
                f"durable:     {rate:8.0f} notifications/s = rows/s, {rate / alone:.2f} of bleak alone, "
                f"{cpu_us:.0f} us of CPU a row"
            )
            device.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["world"]:
        asyncio.run(world(sys.argv[2], int(sys.argv[3])))
    else:
        main()
