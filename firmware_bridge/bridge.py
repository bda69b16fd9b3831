"""An ESP32 that carries trackers' records from Bluetooth to the broker. Device only; the logic is in ``relay``.

It listens for trackers that say that something waits, connects to one at a time, hands over, and
leaves. Its settings are one JSON file, ``device.json``: see docs/maker.md. It keeps no record.
"""

import asyncio

import aioble  # type: ignore[import-not-found]  # micropython-lib, by the manifest
from bluetooth import UUID  # type: ignore[import-not-found]  # MicroPython's own

from firmware_bridge.board import good_boot, join, watchdog
from firmware_bridge.kinds import LINK_OFFLINE, LINK_ONLINE, link_topic, mark_topic, up_topic
from firmware_bridge.mqtt import Client, MQTTError, Will
from firmware_bridge.node import read_settings, trust_of
from firmware_bridge.parts import ASK_UUID, DEVICE_UUID, HISTORY_UUID, MARK_UUID, SERVICE_UUID
from firmware_bridge.relay import ASK, DONE, MARK, READ, WAIT, Relay, named_in
from firmware_bridge.steady import SteadyClock

SETTINGS = {"device": str, "ssid": str, "password": str, "broker": str, "port": int}
SCAN_MS = 5_000
HANDOVER_MS = 60_000
MARK_MS = 300
"""So long a retained mark may take; without it a full ring would be sent once more for nothing."""
PATIENCE_MS = 5_000
"""So long all is sent and no mark comes: the hub did not hear it. The next round sends it again."""
REST_MS = 10_000
MTU = 247
_SERVICE = bytes(reversed(bytes.fromhex(SERVICE_UUID.replace("-", ""))))
"""As it is on the air."""


class Bridge:
    """The MQTT side, and one handover at a time.

    Parameters
    ----------
    settings : dict
        As ``SETTINGS``; ``user`` and ``secret`` may be there too.
    steady_ms : callable
    feed : callable
        Feeds the watchdog.
    trust : tls.Trust, optional
        What the broker is checked against.

    Attributes
    ----------
    handed : int
        Messages published.
    failed : int
        Handovers that broke off.
    """

    def __init__(self, settings, *, steady_ms, feed, trust=None) -> None:  # type: ignore[no-untyped-def]
        self._now = steady_ms
        self._feed = feed
        self._link = link_topic(settings["device"])
        made = Client if trust is None else trust.client
        self.client = made(
            settings["broker"],
            settings["port"],
            settings["device"],
            steady_ms,
            user=settings.get("user"),
            password=settings.get("secret"),
            will=Will(self._link, LINK_OFFLINE, True),
        )
        self._relay: Relay | None = None
        self._mark_topic = ""
        self.handed = self.failed = 0
        self._good = good_boot

    def connect(self) -> bool:
        """Be connected to the broker, or say that it cannot be had now."""
        if self.client.connected:
            return True
        try:
            self.client.connect()
            self.client.publish(self._link, LINK_ONLINE, retain=True)
        except MQTTError:
            self.client.close()
            return False
        return True

    def pump(self) -> None:
        """Hear the broker; a mark of the tracker at hand goes to its relay."""
        incoming = self.client.step(0)
        while incoming is not None:
            if incoming.topic == self._mark_topic and self._relay is not None:
                self._relay.marked(incoming.payload)
                self._good()
            incoming = self.client.step(0)

    async def hand_over(self, connection) -> bool:  # type: ignore[no-untyped-def]  # aioble's own type
        """All that one tracker holds, to the broker; whether nothing is left."""
        mtu = await connection.exchange_mtu(MTU)
        service = await connection.service(UUID(SERVICE_UUID))
        if service is None:
            return False
        found = {}
        for uuid in (DEVICE_UUID, MARK_UUID, ASK_UUID, HISTORY_UUID):
            found[uuid] = await service.characteristic(UUID(uuid))  # no await in a comprehension there
        device = named_in(await found[DEVICE_UUID].read())
        if device is None:
            return False
        self._relay = relay = Relay(b"", max(20, (mtu or 23) - 3))
        self._mark_topic = mark_topic(device)
        self.client.subscribe(self._mark_topic)
        until_ms = self._now() + MARK_MS
        while self._now() < until_ms:
            await asyncio.sleep_ms(20)  # type: ignore[attr-defined]  # MicroPython's
            self.pump()
        until_ms = self._now() + HANDOVER_MS
        moved_ms = self._now()
        while self._now() < until_ms:
            what, raw = relay.step()
            if what == DONE:
                return True
            if what != WAIT:
                moved_ms = self._now()
            elif self._now() - moved_ms > PATIENCE_MS:
                return False
            if what == READ:
                relay.came(await found[HISTORY_UUID].read())
            elif what == ASK:
                await found[ASK_UUID].write(raw, response=True)
            elif what == MARK:
                await found[MARK_UUID].write(raw, response=True)
            else:
                await asyncio.sleep_ms(20)  # type: ignore[attr-defined]
            while relay.messages:
                self.client.publish(up_topic(device), relay.messages.pop(0))
                self.handed += 1
            self.pump()
            self._feed()
        return False

    async def find(self):  # type: ignore[no-untyped-def]
        """A tracker that says that something waits, or None."""
        async with aioble.scan(SCAN_MS, 30_000, 30_000) as scanner:
            async for result in scanner:
                if waits(result.adv_data or b""):
                    return result.device
        return None

    async def round(self) -> bool:
        """Look for one tracker and serve it; whether one was served."""
        self._feed()
        if not self.connect():
            await asyncio.sleep_ms(1_000)  # type: ignore[attr-defined]
            return False
        try:
            self.pump()
            device = await self.find()  # type: ignore[no-untyped-call]
            if device is None:
                return False
            connection = await device.connect(timeout_ms=5_000)
            try:
                return await self.hand_over(connection)
            finally:
                self._relay = None
                await connection.disconnect()
        except (MQTTError, OSError, asyncio.TimeoutError, aioble.GattError, aioble.DeviceDisconnectedError):
            self.failed += 1  # the tracker keeps what it has; the next round begins at the mark
            return False


def waits(advertised: bytes) -> bool:
    """Whether an advertisement is a tracker's that says that records wait: the service's data, 1 first."""
    at = 0
    while at + 1 < len(advertised):
        length = advertised[at]
        if length >= 18 and advertised[at + 1] == 0x21 and advertised[at + 2 : at + 18] == _SERVICE:
            return advertised[at + 18 : at + 19] == b"\x01"
        at += 1 + length
    return False


async def serve(bridge: Bridge) -> None:
    """Round after round, for ever."""
    while True:
        if not await bridge.round():
            await asyncio.sleep_ms(REST_MS)  # type: ignore[attr-defined]


def main(folder: str = "") -> None:
    """Run for ever."""
    settings = read_settings(folder + "device.json", SETTINGS)
    feed = watchdog()
    join(settings)
    trust = trust_of(settings, folder)
    asyncio.run(serve(Bridge(settings, steady_ms=SteadyClock(), feed=feed, trust=trust)))
