"""Plays a household to a broker by the stepped clock, with the firmware's own outbox and uplink.

Six simulated hours are put into the devices' rings and published, with a mark request at the
end of each step; when the hub's marks cover every record, the new instant goes to stdout as
``advance MS`` and the hub moves its clock. The last one reads ``end MS``. Before them come
``start MS`` (the owner's files are written) and ``ask QUESTION``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from random import Random

from device_sim.faults import hub_down
from device_sim.household import SimDevice, World
from firmware_bridge import wire
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink

__all__ = ["NotMarked", "digest", "play"]

STEP_MS = 6 * 3_600_000
_FIRMWARE = "sim 1"
_DETECTOR = 1
_TURN_MS = 5


class NotMarked(RuntimeError):
    """The hub did not mark everything in time; says which device waits and why."""


class _Player:
    """One device: its ring, its uplink, and how far it has got."""

    def __init__(self, world: World, device: SimDevice, port: int, clock: SteadyClock) -> None:
        self.device = device
        self._start_ms = world.story.start_ms
        self._at = 0
        self.now_ms = self._start_ms
        seed = f"{world.story.name}/{world.story.seed}/{device.id}/backoff"
        self.uplink = Uplink(
            device.id,
            Outbox(RamSlots(device.slots), 1),
            "127.0.0.1",
            port,
            steady_ms=clock,
            stamp=lambda: (self.now_ms - self._start_ms, self.now_ms),
            getrandbits=Random(seed).getrandbits,
            hello=(device.model, _FIRMWARE, _DETECTOR),
        )
        self.uplink.say_hello()

    def take_until(self, now_ms: int) -> None:
        """Put what the device takes up to ``now_ms`` into its ring."""
        self.now_ms = now_ms
        taken = self.device.taken
        while self._at < len(taken) and taken[self._at].at_ms <= now_ms:
            one = taken[self._at]
            self.uplink.outbox.put(one.kind, one.at_ms - self._start_ms, one.values)
            self._at += 1


def _instants(world: World) -> Iterator[int]:
    at_ms = world.story.start_ms + STEP_MS
    while at_ms < world.story.end_ms:
        yield at_ms
        at_ms += STEP_MS
    yield world.story.end_ms


def _drain(players: list[_Player], clock: SteadyClock, patience_ms: int) -> None:
    """Publish until the hub has marked everything."""
    for player in players:
        player.uplink.request_mark()
    deadline_ms = clock() + patience_ms
    while waiting := [player for player in players if not player.uplink.drained]:
        if clock() > deadline_ms:
            held = ", ".join(f"{p.device.id} {p.uplink.outbox.held} {p.uplink.trouble}".strip() for p in waiting)
            raise NotMarked(f"the hub must mark every record within {patience_ms} ms; still held: {held}")
        moved = [player.uplink.step(0) for player in waiting]
        if not any(moved):
            waiting[0].uplink.step(_TURN_MS)


def play(world: World, *, port: int, say: Callable[[str], None], live: bool, patience_ms: int) -> None:
    """Play the whole story to the broker on 127.0.0.1; with ``live`` go on at 1x until ended.

    Parameters
    ----------
    say : callable
        Takes ``advance MS`` and ``end MS``.
    patience_ms : int
        How long a step may wait for the hub's marks.

    Raises
    ------
    NotMarked
        The hub is not there, or does not store.
    """
    clock = SteadyClock()
    players = [_Player(world, device, port, clock) for device in world.devices]
    try:
        for at_ms in _instants(world):
            for player in players:
                player.take_until(at_ms)
            if not hub_down(world.story, at_ms):
                _drain(players, clock, patience_ms)
            say(f"{'end' if at_ms == world.story.end_ms else 'advance'} {at_ms}")
        if live:
            _go_on(world, players, clock)
    finally:
        for player in players:
            player.uplink.stop()


def _go_on(world: World, players: list[_Player], clock: SteadyClock) -> None:
    """Real seconds are simulated seconds, from the story's last instant on, until ended."""
    began_ms = clock()
    while True:
        now_ms = world.story.end_ms + clock() - began_ms
        for player in players:
            player.take_until(now_ms)
            player.uplink.step(100)


def digest(world: World) -> str:
    """SHA-256 over every message each device would send, step by step, broker or not."""
    found = hashlib.sha256()
    for device in world.devices:
        start_ms = world.story.start_ms
        outbox = Outbox(RamSlots(device.slots), 1)
        outbox.put_hello(0, device.model, _FIRMWARE, _DETECTOR)
        taken = iter(device.taken)
        one = next(taken, None)
        for at_ms in _instants(world):
            while one is not None and one.at_ms <= at_ms:
                outbox.put(one.kind, one.at_ms - start_ms, one.values)
                one = next(taken, None)
            if hub_down(world.story, at_ms):
                continue
            outbox.put(wire.MARK_REQUEST, at_ms - start_ms, ())
            if outbox.hello_due:
                outbox.put_hello(at_ms - start_ms, device.model, _FIRMWARE, _DETECTOR)
            while (run := outbox.take(0)) is not None:
                head = wire.pack_head(run.boot, run.first_seq, run.count, at_ms - start_ms, at_ms)
                found.update(device.id.encode() + head + run.body)
            outbox.release({1: outbox.next_seq - 1}, 0)
    return found.hexdigest()
