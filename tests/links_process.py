"""A gateway's ingest as a process of its own, so that a test can kill it. Not a test itself.

Usage: python links_process.py DB PORT PROTOCOL
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest
from gateway.links.mqtt import MqttLink, MqttSettings
from gateway.links.rollups import Rollups
from gateway.ontology.load import load
from gateway.store.database import Database
from gateway.store.writer import Writer


async def listen(database: Database, settings: MqttSettings) -> None:
    """Run link and ingest until the process ends."""
    clock = SystemClock()
    writer = Writer(database)
    inbox = Inbox(capacity=4 * settings.inflight)
    link = MqttLink(settings, inbox=inbox, clock=clock)
    ingest = Ingest(
        inbox=inbox,
        link=link,
        writer=writer,
        rollups=Rollups(load()),
        clock=clock,
        rule=CommitRule(window=settings.inflight),
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(link.run(), name="link")
        tasks.create_task(ingest.run(), name="ingest")


if __name__ == "__main__":
    path, port, protocol = sys.argv[1:]
    with Database(Path(path)) as database:
        asyncio.run(listen(database, MqttSettings("127.0.0.1", int(port), protocol=int(protocol))))
