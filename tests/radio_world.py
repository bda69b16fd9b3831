"""A clock that is moved by hand, and a tracker of ours behind the fake BlueZ. Not a test."""

from __future__ import annotations

import asyncio
import heapq
import itertools

from cryptography.hazmat.primitives.ciphers.aead import AESCCM

from firmware_bridge import parts, wire
from firmware_bridge.gatt import GattUplink
from firmware_bridge.outbox import Outbox, RamSlots

START_MS = 1_780_286_400_000
SENSOR = "54:48:E6:8F:80:A5"
KEY = bytes.fromhex("231d39c1d7cc1ab1aee224cd096db932")


def sealed(plain: bytes, counter: int, *, address: str = SENSOR, key: bytes = KEY) -> bytes:
    count = counter.to_bytes(4, "little")
    nonce = bytes.fromhex(address.replace(":", "")) + b"\xd2\xfc\x41" + count
    secret = AESCCM(key, tag_length=4).encrypt(nonce, plain, None)
    return b"\x41" + secret[:-4] + count + secret[-4:]


class HandClock:
    """The gateway's clock, moved by a test: dates and waits go the same way."""

    source = "simulation"

    def __init__(self, now_ms: int = START_MS) -> None:
        self._began_ms = now_ms
        self._s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def now_ms(self) -> int:
        return self._began_ms + round(self._s * 1000)

    def steady_s(self) -> float:
        return self._s

    async def sleep_s(self, seconds: float) -> None:
        until = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._s + seconds, next(self._numbers), until))
        await until

    async def sleep_until(self, at_ms: int) -> None:
        await self.sleep_s(max(0.0, (at_ms - self.now_ms()) / 1000))

    async def advance(self, seconds: float, *, pause_s: float = 0.002) -> None:
        """Move on, waking each sleeper at its moment; after each the world gets time to act."""
        until = self._s + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            at_s, _, sleeper = heapq.heappop(self._sleepers)
            if sleeper.done():
                continue
            self._s = max(self._s, at_s)
            sleeper.set_result(None)
            await asyncio.sleep(pause_s)
        self._s = until
        await asyncio.sleep(pause_s)


class TrackerPeer:
    """The firmware's own half of a handover as a `fake_bluez.Peer`.

    ``late``: it answers an ask only after that many reads, as a device does whose main loop is slow.
    """

    service = parts.SERVICE_UUID
    flags = {  # noqa: RUF012 - a table
        parts.DEVICE_UUID: ["read"],
        parts.MARK_UUID: ["write"],
        parts.ASK_UUID: ["write"],
        parts.HISTORY_UUID: ["read"],
        parts.FRAMES_UUID: ["notify"],
    }

    def __init__(
        self, clock: HandClock, *, device: str = "tracker-max", slots: int = 4_000, boot: int = 1, late: int = 0
    ) -> None:
        self._clock = clock
        self._late = late
        self._asked: tuple[int, bytes] | None = None
        self._history = b""
        self.outbox = Outbox(RamSlots(slots, 128), boot, 1_024)
        self.uplink = GattUplink(
            device,
            self.outbox,
            steady_ms=lambda: round(clock.steady_s() * 1000),
            stamp=lambda: (self.uptime_ms(), None),
            hello=("scenttag-1", "0.1.0", 1),
        )
        self.uplink.say_hello()
        self.taken: set[int] = set()

    def uptime_ms(self) -> int:
        return round(self._clock.steady_s() * 1000) + 1_000

    def measure(self, count: int = 1) -> None:
        """Put beats into the ring."""
        for _ in range(count):
            self.taken.add(self.outbox.put(wire.BEAT, self.uptime_ms(), (900, 1, 0)))

    def service_data(self) -> dict[str, bytes]:
        return {parts.SERVICE_UUID: self.uplink.advertised()}

    def opened(self) -> None:
        self.uplink.opened()
        self.uplink.set_mtu(185)

    def closed(self) -> None:
        self._asked = None
        self.uplink.closed()

    def read(self, uuid: str) -> bytes:
        if uuid == parts.DEVICE_UUID:
            return self.uplink.identity
        if self._asked is not None:
            left, value = self._asked
            self._asked = (left - 1, value) if left > 0 else None
            if left == 0:
                self._history = self.uplink.asked(value)
        return self._history

    def write(self, uuid: str, value: bytes) -> None:
        if uuid == parts.MARK_UUID:
            self.uplink.wrote_mark(value)
        elif value == parts.pack_ask(0, 0):
            self.uplink.asked(value)
        else:
            self._asked = (self._late, value)

    def notifications(self) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        while len(found) < 40 and (part := self.uplink.to_notify()) is not None:  # what a radio's buffers hold
            found.append((parts.FRAMES_UUID, part))
            self.uplink.notified()
        return found
