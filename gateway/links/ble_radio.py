"""The radio: bleak and BlueZ, and nobody else speaks to either.

Out comes what was heard as values of ours, and connections that always end. Whatever bleak, the
system bus or BlueZ raise comes out as `RadioError`. An adapter is always named: bleak takes any
powered one where none is. In tests bleak itself runs; only its two backend classes and the
adapters can be handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from bleak import BleakClient, BleakScanner
from bleak.backends.client import BaseBleakClient
from bleak.backends.device import BLEDevice
from bleak.backends.scanner import AdvertisementData, BaseBleakScanner
from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from firmware_bridge import parts
from gateway.errors import PayloadError, RadioError
from gateway.links.advertisement import Advertisement, advertisement

__all__ = ["Adapters", "BlueZ", "Caller", "Connection", "Radio"]

_log = logging.getLogger(__name__)
_BLUEZ = "org.bluez"
_ADAPTER = "org.bluez.Adapter1"
ONLY = "only"


@contextlib.contextmanager
def _told_as(what: str) -> Iterator[None]:
    """Whatever goes wrong below, as a `RadioError` that says what must hold."""
    try:
        yield
    except RadioError:
        raise
    except asyncio.CancelledError as gone:
        # A stack that cancels its own answer when the link goes would else end our task without a word.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RadioError(f"{what}, but the radio gave up") from gone
    except Exception as problem:  # bleak hands through what its bus, its parser and its asserts raise
        raise RadioError(f"{what}, but: {type(problem).__name__}: {str(problem)[:200]}") from problem


class Adapters(Protocol):
    """The machine's Bluetooth adapters."""

    async def names(self) -> tuple[str, ...]:
        """``hci0`` and so on, in order."""

    async def set_powered(self, adapter: str, on: bool) -> None:  # noqa: FBT001 (a switch)
        """Switch one on or off, and return when it is."""


class BlueZ:
    """Adapters by the system bus, for what bleak has no call for.

    Parameters
    ----------
    answer_s : float
        The longest wait for an answer, in seconds.
    """

    def __init__(self, *, answer_s: float = 10.0) -> None:
        self._answer_s = answer_s

    async def names(self) -> tuple[str, ...]:
        """Every adapter that BlueZ has.

        Raises
        ------
        RadioError
            Nobody answers at the system bus.
        """
        found = await self._call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
        return tuple(sorted(path.rpartition("/")[2] for path, held in found[0].items() if _ADAPTER in held))

    async def set_powered(self, adapter: str, on: bool) -> None:  # noqa: FBT001 (a switch)
        """Switch an adapter on or off.

        Raises
        ------
        RadioError
            BlueZ refuses, or the adapter is gone.
        """
        await self._call(
            f"/org/bluez/{adapter}",
            "org.freedesktop.DBus.Properties",
            "Set",
            "ssv",
            [_ADAPTER, "Powered", Variant("b", on)],
        )

    async def _call(
        self, path: str, interface: str, member: str, signature: str = "", body: list[Any] | None = None
    ) -> list[Any]:
        """One call on a connection of its own: a bus that died once must not stay dead."""
        with _told_as(f"BlueZ must answer {member} on the system bus"):
            bus = MessageBus(bus_type=BusType.SYSTEM)
            try:
                async with asyncio.timeout(self._answer_s):
                    await bus.connect()
                    told = await bus.call(
                        Message(
                            destination=_BLUEZ,
                            path=path,
                            interface=interface,
                            member=member,
                            signature=signature,
                            body=body or [],
                        )
                    )
            finally:
                bus.disconnect()
        assert told is not None
        if told.message_type is MessageType.ERROR:
            raise RadioError(f"BlueZ must do {member} on {path}, it answers {told.error_name}: {told.body}")
        return list(told.body)


@dataclass(frozen=True, slots=True)
class Caller:
    """A device of our own service that was heard: what connects to it, and what it says of itself.

    ``said`` is the service data: whether it holds records that no hub has marked, its boot, and its
    next number. BlueZ shows it again with every other change of the device, also after a
    handover, so only a change of it is news.
    """

    address: str
    said: bytes
    handle: BLEDevice

    @property
    def waiting(self) -> bool:
        return self.said[:1] == b"\x01"


class Connection:
    """A connected device. Made by `Radio.connected` only.

    Attributes
    ----------
    lost : asyncio.Event
        Set when the link is gone.
    """

    def __init__(self, client: BleakClient, lost: asyncio.Event, *, answer_s: float) -> None:
        self._client = client
        self.lost = lost
        self._answer_s = answer_s

    async def read(self, uuid: str) -> bytes:
        """The value of a characteristic.

        Raises
        ------
        RadioError
            The link is gone, the characteristic is absent, or no answer came.
        """
        with _told_as(f"the device must answer a read of {uuid}"):
            async with asyncio.timeout(self._answer_s):
                return bytes(await self._client.read_gatt_char(uuid))

    async def write(self, uuid: str, value: bytes) -> None:
        """Write a characteristic and wait for the device's answer.

        Raises
        ------
        RadioError
            As `read`.
        """
        with _told_as(f"the device must take a write of {uuid}"):
            async with asyncio.timeout(self._answer_s):
                await self._client.write_gatt_char(uuid, value, response=True)

    async def notify(self, uuid: str, heard: Callable[[bytes], None]) -> None:
        """Have ``heard`` called with every notification, on the loop.

        Raises
        ------
        RadioError
            As `read`.
        """
        with _told_as(f"the device must notify {uuid}"):
            async with asyncio.timeout(self._answer_s):
                await self._client.start_notify(uuid, lambda _characteristic, value: heard(bytes(value)))

    def part_bytes(self, uuid: str) -> int:
        """How many bytes one written packet of a characteristic holds on this link.

        Raises
        ------
        RadioError
            The link is gone.
        """
        with _told_as("the link must stand"):
            found = self._client.services.get_characteristic(uuid)
        size = parts.PART_BYTES if found is None else found.max_write_without_response_size
        return max(parts.PART_BYTES, min(size, parts.ATTRIBUTE_BYTES))


class Radio:
    """Scans and connects on one adapter.

    Parameters
    ----------
    adapters : Adapters, optional
        BlueZ's unless a test has its own.
    scanner, client : backend classes of bleak, optional
        bleak's own for this system unless a test has its own.
    connect_s, answer_s : float
        The longest wait for a connection, and for each answer, in seconds.

    Attributes
    ----------
    unreadable : int
        Advertisements that no device can have sent.
    unclosed : int
        Connections whose end BlueZ did not confirm.
    """

    def __init__(
        self,
        *,
        adapters: Adapters | None = None,
        scanner: type[BaseBleakScanner] | None = None,
        client: type[BaseBleakClient] | None = None,
        connect_s: float = 20.0,
        answer_s: float = 10.0,
    ) -> None:
        self._adapters: Adapters = BlueZ(answer_s=answer_s) if adapters is None else adapters
        self._scanner_backend = scanner
        self._client_backend = client
        self._connect_s = connect_s
        self._answer_s = answer_s
        self._scanner: BleakScanner | None = None
        self.unreadable = 0
        self.unclosed = 0

    async def choose(self, wanted: str) -> str:
        """The name of the adapter to use: the one that is wanted, or the only one.

        Raises
        ------
        RadioError
            It is absent, or ``only`` finds none or several: nobody guesses.
        """
        names = await self._adapters.names()
        found = ", ".join(names) or "none"
        if wanted == ONLY and len(names) != 1:
            raise RadioError(f"ble.adapter must name one where there is not exactly one adapter; found {found}")
        if wanted != ONLY and wanted not in names:
            raise RadioError(f"ble.adapter must be an adapter of this machine, is {wanted}; found {found}")
        return names[0] if wanted == ONLY else wanted

    async def listen(self, adapter: str, heard: Callable[[Advertisement, Caller | None], None]) -> None:
        """Start to scan; ``heard`` is called on the loop with every advertisement.

        Raises
        ------
        RadioError
            The scan does not start.
        """

        def tell(device: BLEDevice, data: AdvertisementData) -> None:
            try:
                told = advertisement(
                    device.address.upper(),
                    rssi=data.rssi,
                    name=data.local_name,
                    manufacturer=data.manufacturer_data,
                    service={uuid.lower(): value for uuid, value in data.service_data.items()},
                )
            except PayloadError:
                self.unreadable += 1
                return
            own = told.service_data(parts.SERVICE_UUID)
            heard(told, None if own is None else Caller(told.address, own, device))

        with _told_as(f"the adapter {adapter} must start to scan"):
            async with asyncio.timeout(self._answer_s):
                scanner = BleakScanner(tell, bluez={"adapter": adapter}, backend=self._scanner_backend)
                await scanner.start()
        self._scanner = scanner

    async def hush(self) -> None:
        """Stop to scan. Safe to call twice; whatever happens, a new scan may be started.

        Raises
        ------
        RadioError
            BlueZ does not confirm it (InProgress is the commonest).
        """
        scanner, self._scanner = self._scanner, None
        if scanner is None:
            return
        with _told_as("the scan must stop"):
            async with asyncio.timeout(self._answer_s):
                await scanner.stop()

    async def set_powered(self, adapter: str, on: bool) -> None:  # noqa: FBT001 (a switch)
        """Switch the adapter on or off.

        Raises
        ------
        RadioError
            BlueZ refuses.
        """
        with _told_as(f"the adapter {adapter} must be switched {'on' if on else 'off'}"):
            await self._adapters.set_powered(adapter, on)

    @contextlib.asynccontextmanager
    async def connected(self, adapter: str, caller: Caller) -> AsyncIterator[Connection]:
        """A connection for the time of the block; its slot is free again after it, whatever happens.

        Raises
        ------
        RadioError
            The device does not let itself be connected to.
        """
        lost = asyncio.Event()
        client = BleakClient(
            caller.handle,
            lambda _client: lost.set(),
            timeout=self._connect_s,
            bluez={"adapter": adapter},
            backend=self._client_backend,
        )
        try:
            with _told_as(f"{caller.address} must let itself be connected to"):
                # bleak waits by itself, but for ever where BlueZ connects and never says that it failed.
                async with asyncio.timeout(self._connect_s + self._answer_s):
                    await client.connect()
            yield Connection(client, lost, answer_s=self._answer_s)
        finally:
            await self._leave(client)

    async def _leave(self, client: BleakClient) -> None:
        """End a connection, also one that is gone: bleak keeps a bus connection open until it is told."""
        try:
            with _told_as("the device must let go"):
                async with asyncio.timeout(self._answer_s):
                    await client.disconnect()
        except RadioError as problem:
            self.unclosed += 1
            _log.warning("a connection did not end as it should: %s", problem)
