"""Real ATT and GATT bytes over bumble's virtual link: a MicroPython peripheral, a bleak central. Not a test.

bleak runs whole but for its two backend classes, which speak to bumble's host instead of BlueZ.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from pathlib import Path
from typing import Any

from bleak.backends.characteristic import BleakGATTCharacteristic
from bleak.backends.client import BaseBleakClient
from bleak.backends.device import BLEDevice
from bleak.backends.scanner import AdvertisementData, BaseBleakScanner
from bleak.backends.service import BleakGATTService, BleakGATTServiceCollection
from bleak.exc import BleakError
from bumble.controller import Controller
from bumble.core import AdvertisingData
from bumble.device import Device, Peer
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.hci import Address
from bumble.host import Host
from bumble.link import LocalLink
from bumble.transport.common import AsyncPipeSink

from tests.brokers import settled, with_me

_PROPERTIES = ("broadcast", "read", "write-without-response", "write", "notify", "indicate")


class Air:
    """Two controllers on one virtual link: the hub's adapter and a device's radio."""

    def __init__(self) -> None:
        link = LocalLink()
        self.central, self.peripheral = (self._device(link, f"F0:F1:F2:F3:F4:F{n}") for n in (0, 1))

    @staticmethod
    def _device(link: LocalLink, address: str) -> Device:
        controller = Controller(address, link=link, public_address=address)
        return Device(address=Address(address), host=Host(controller, AsyncPipeSink(controller)))

    async def drop(self) -> None:
        """The link is lost: from the adapter's side, bumble tells both ends."""
        for connection in tuple(self.central.connections.values()):
            await connection.disconnect()

    def backends(self) -> tuple[type[BaseBleakScanner], type[BaseBleakClient]]:
        """The scanner and the client backend for bleak, bound to this air."""
        scanner = type("Scanner", (BumbleScanner,), {"central": self.central})
        return scanner, type("Client", (BumbleClient,), {"central": self.central})


class OneAdapter:
    """The adapters of a machine that has one, bumble's."""

    async def names(self) -> tuple[str, ...]:
        return ("hci0",)

    async def set_powered(self, adapter: str, on: bool) -> None:
        """There is no power to switch."""


class BumbleScanner(BaseBleakScanner):
    central: Device

    def __init__(self, detection_callback: Any, service_uuids: Any, scanning_mode: str, **_: Any) -> None:
        super().__init__(detection_callback, service_uuids)

    async def start(self) -> None:
        self.seen_devices = {}
        self.central.on("advertisement", self._heard)
        await self.central.start_scanning(filter_duplicates=False)

    async def stop(self) -> None:
        self.central.remove_listener("advertisement", self._heard)
        await self.central.stop_scanning()

    def _heard(self, told: Any) -> None:
        service = {}
        for value in told.data.get_all(AdvertisingData.SERVICE_DATA_128_BIT_UUID, raw=True):
            text = value[:16][::-1].hex()
            service["-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))] = value[16:]
        data = AdvertisementData(None, {}, service, [], None, told.rssi, ())
        address = told.address.to_string(with_type_qualifier=False)
        device = self.create_or_update_device(address, address, None, told.address, data)
        self.call_detection_callbacks(device, data)


class BumbleClient(BaseBleakClient):
    central: Device

    def __init__(self, device: BLEDevice | str, services: Any = None, **options: Any) -> None:
        super().__init__(device, disconnected_callback=options["disconnected_callback"], timeout=options["timeout"])
        assert isinstance(device, BLEDevice)
        self._to = device.details
        self._connection: Any = None
        self._proxies: dict[int, Any] = {}

    @property
    def mtu_size(self) -> int:
        return self._connection.att_mtu

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    async def connect(self, pair: bool, **_: Any) -> None:
        self._connection = await self.central.connect(self._to, timeout=self._timeout)
        self._connection.on("disconnection", self._lost)
        peer = Peer(self._connection)
        await peer.request_mtu(185)
        found = BleakGATTServiceCollection()
        for service in await peer.discover_services():
            made = BleakGATTService(service, service.handle, _uuid(service))
            found.add_service(made)
            for proxy in await service.discover_characteristics():
                flags = [name for bit, name in enumerate(_PROPERTIES) if proxy.properties & 1 << bit]
                self._proxies[proxy.handle] = proxy
                found.add_characteristic(
                    BleakGATTCharacteristic(proxy, proxy.handle, _uuid(proxy), flags, lambda: self.mtu_size - 3, made)
                )
        self.services = found

    def _lost(self, *_: Any) -> None:
        self._connection = self.services = None
        if self._disconnected_callback is not None:
            self._disconnected_callback()

    async def disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.disconnect()

    def _proxy(self, characteristic: BleakGATTCharacteristic) -> Any:
        if self._connection is None:
            raise BleakError("Not connected")
        return self._proxies[characteristic.handle]

    async def read_gatt_char(self, characteristic: BleakGATTCharacteristic, **_: Any) -> bytearray:
        return bytearray(await self._proxy(characteristic).read_value())

    async def write_gatt_char(self, characteristic: BleakGATTCharacteristic, data: Any, response: bool) -> None:
        await self._proxy(characteristic).write_value(bytes(data), with_response=response)

    async def start_notify(self, characteristic: BleakGATTCharacteristic, callback: Any, **_: Any) -> None:
        await self._proxy(characteristic).subscribe(lambda value: callback(bytearray(value)))

    async def stop_notify(self, characteristic: BleakGATTCharacteristic) -> None:
        await self._proxy(characteristic).unsubscribe()

    async def pair(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    async def unpair(self) -> None:
        raise NotImplementedError

    async def read_gatt_descriptor(self, descriptor: Any, **_: Any) -> bytearray:
        raise NotImplementedError

    async def write_gatt_descriptor(self, descriptor: Any, data: Any) -> None:
        raise NotImplementedError


def _uuid(proxy: Any) -> str:
    text = bytes(proxy.uuid)[::-1].hex().rjust(32, "0")
    if len(bytes(proxy.uuid)) == 2:
        return f"0000{text[-4:]}-0000-1000-8000-00805f9b34fb"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class MicroPythonTracker:
    """A real MicroPython whose ``bluetooth`` is a socket, its radio bumble's peripheral."""

    def __init__(self, air: Air, micropython: Path, flash: Path) -> None:
        self._radio = air.peripheral
        self._micropython = micropython
        self._flash = flash
        self._handles: dict[int, Characteristic] = {}
        self._values: dict[int, bytes] = {}
        self._connection: Any = None
        self.taken: set[tuple[int, int]] = set()
        self.held = -1
        self.strange: list[str] = []
        self.connects = 0

    async def start(self, records: int, device: str = "tracker-max") -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        words = ("-X", "heapsize=64k", "-m", "ble_device", device, str(self._flash), str(records))
        self._process = await asyncio.create_subprocess_exec(
            *with_me(str(self._micropython), *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._flash,
            env={**os.environ, "RADIO_PORT": str(port)},
        )
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._reading
        await settled(self._server)
        await self._server.wait_closed()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            match line.decode().split():
                case ["p", boot, seq]:
                    self.taken.add((int(boot), int(seq)))
                case ["held", held]:
                    self.held = int(held)
                case _:
                    self.strange.append(line.decode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._radio.on("connection", self._connected)
        with contextlib.suppress(asyncio.IncompleteReadError):  # the device was ended
            while True:
                what, handle, length = struct.unpack("<BBH", await reader.readexactly(4))
                await self._do(chr(what), handle, await reader.readexactly(length))
        writer.close()

    async def _do(self, what: str, handle: int, value: bytes) -> None:
        if what == "R":
            self._register(*value.decode().split(","))
            await self._radio.power_on()
        elif what == "W":
            self._values[handle] = value
        elif what == "N" and self._connection is not None:
            await self._radio.notify_subscriber(self._connection, self._handles[handle], value)
        elif what == "A" and self._connection is None:
            await self._radio.stop_advertising()
            await self._radio.start_advertising(
                advertising_data=value, advertising_interval_min=20, advertising_interval_max=20
            )
        elif what == "D" and self._connection is not None:
            await self._connection.disconnect()

    def _report(self, event: int, handle: int, value: bytes = b"") -> None:
        self._writer.write(struct.pack("<BBH", event, handle, len(value)) + value)

    def _register(self, uuid: str, *characteristics: str) -> None:
        made = []
        for told in characteristics:
            number, name, flags = told.split(" ")
            handle = int(number)
            value = CharacteristicValue(
                read=lambda _connection, handle=handle: self._values.get(handle, b""),
                write=lambda _connection, value, handle=handle: self._report(3, handle, bytes(value)),
            )
            permissions = Characteristic.Permissions.READABLE | Characteristic.Permissions.WRITEABLE
            self._handles[handle] = Characteristic(name, Characteristic.Properties(int(flags)), permissions, value)
            made.append(self._handles[handle])
        self._radio.add_service(Service(uuid, made))

    def _connected(self, connection: Any) -> None:
        self._connection = connection
        self.connects += 1
        connection.on("disconnection", self._disconnected)
        connection.on("connection_att_mtu_update", lambda: self._report(21, connection.att_mtu))
        self._report(1, 0)

    def _disconnected(self, *_: Any) -> None:
        self._connection = None
        self._report(2, 0)
