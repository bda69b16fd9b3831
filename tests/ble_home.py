"""A hub's Bluetooth from radio to database, with the real bleak on a private bus. Not a test."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from gateway.links.advertisement import Advertisement
from gateway.links.ble import BleLink
from gateway.links.ble_identity import RadioKey
from gateway.links.ble_radio import Radio
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest, Links
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer
from tests.fake_bluez import FakeBluez
from tests.radio_world import HandClock, TrackerPeer

HANG_GUARD_S = 60.0
ADDRESS = "C0:FF:EE:00:00:01"
PATH = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01"
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("max", "Max", "dog"),),
    devices=(Device("tracker-max", "tracker", "collar"),),
    bindings=(Binding("tracker-max", frozenset({"max"}), 0),),
)


@dataclass(slots=True)
class Home:
    """What a test looks at. ``heard`` is where advertisements arrive."""

    clock: HandClock
    bluez: FakeBluez
    database: Database
    writer: Writer
    link: BleLink
    heard: Inbox
    patience_s: float = HANG_GUARD_S

    def stored(self, device: str = "tracker-max", kind: str = "beat") -> list[tuple[int | None, int | None]]:
        """(boot, seq) of every stored record of a kind, as often as it is stored."""
        with self.database.snapshot() as reader:
            rows = reader.frames((device,), start_ms=-(2**60), end_ms=2**60, kinds=(kind,))
        return sorted((row.boot, row.seq) for row in rows)

    def counted(self, name: str) -> int:
        return self.link.state.counters[name]

    async def until(self, holds, what: str, *, step_s: float = 0.25) -> None:
        """Let simulated time pass until it holds."""
        end = time.monotonic() + self.patience_s
        while not holds():
            assert time.monotonic() < end, f"{what}: {self.link.state}"
            self.bluez.pump()
            await self.clock.advance(step_s, pause_s=0.003)

    async def called(self, tracker: TrackerPeer, *, adapter: str = "hci0") -> None:
        """Let a tracker be heard once."""

        def heard() -> bool:
            return self.bluez.advertise(ADDRESS, service=tracker.service_data(), peer=tracker, adapter=adapter)

        await self.until(heard, "somebody must listen")

    async def hand_over(self, tracker: TrackerPeer, *, address: str = ADDRESS) -> None:
        """Let a tracker be heard until the hub has marked everything it holds."""

        def drained() -> bool:
            self.bluez.advertise(address, service=tracker.service_data(), peer=tracker)
            return tracker.outbox.held == 0 and self.bluez.connected == 0

        await self.until(drained, "the tracker must be rid of all it holds")


@contextlib.asynccontextmanager
async def home(
    bluez: FakeBluez | None,
    folder: Path,
    *,
    adapter: str = "hci0",
    keys: tuple[RadioKey, ...] = (),
    admits=lambda _device: True,
    wanted=lambda _advertisement: True,
    clock: HandClock | SystemClock | None = None,
    radio: Radio | None = None,
) -> AsyncIterator[Home]:
    """A hub without MQTT: radio, handover, ingest, database."""
    clock = clock or HandClock()
    fresh = not (folder / "hub.db").exists()
    with Database(folder / "hub.db") as database:
        if fresh:
            with database.transaction() as tx:
                tx.save_household(HOME, valid_from_ms=0)
        writer = Writer(database)
        inbox, heard = Inbox(capacity=80), Inbox(capacity=80)
        with database.snapshot() as reader:
            counters = reader.radio_counters()

        def reads(told: Advertisement) -> bool:
            return wanted(told)

        link = BleLink(
            adapter,
            radio=radio or Radio(connect_s=2.0, answer_s=2.0),
            clock=clock,
            inbox=inbox,
            heard=heard,
            admits=admits,
            wanted=reads,
            keys=lambda: keys,
            counters=counters,
        )
        ingest = Ingest(
            inbox=inbox,
            link=Links(link),
            writer=writer,
            rollups=Rollups(load()),
            clock=clock,
            rule=CommitRule(window=20, longest_s=0.02),
        )
        tasks = [asyncio.create_task(link.run()), asyncio.create_task(ingest.run())]
        try:
            yield Home(clock, bluez, database, writer, link, heard)
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            writer.close()
