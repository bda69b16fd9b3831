"""A gateway's Bluetooth and ingest as a process of its own, so that a test can kill it. Not a test itself.

Usage: python ble_process.py DB, with the bus in ``DBUS_SYSTEM_BUS_ADDRESS``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.links.ble import BleLink
from gateway.links.ble_radio import Radio
from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest, Links
from gateway.links.rollups import Rollups
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer


async def listen(database: Database) -> None:
    """Run radio and ingest until the process ends."""
    clock, inbox = SystemClock(), Inbox(capacity=80)
    link = BleLink(
        "hci0",
        radio=Radio(connect_s=5.0, answer_s=5.0),
        clock=clock,
        inbox=inbox,
        heard=Inbox(capacity=80),
        admits=lambda _device: True,
        wanted=lambda _heard: False,
        keys=tuple,
        counters={},
    )
    ingest = Ingest(
        inbox=inbox,
        link=Links(link),
        writer=Writer(database),
        rollups=Rollups(load()),
        clock=clock,
        rule=CommitRule(window=20),
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(link.run(), name="ble")
        tasks.create_task(ingest.run(), name="ingest")


if __name__ == "__main__":
    with Database(Path(sys.argv[1])) as opened:
        asyncio.run(listen(opened))
