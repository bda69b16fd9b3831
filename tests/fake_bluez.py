"""A small org.bluez of our own on a private bus, for the real bleak to talk to. Not a test.

Adapters, devices, GATT, notifications, signal strength, link loss and injected errors; what a
device says comes from a `Peer`. It does what BlueZ does where bleak depends on it: a client that
scans already is answered InProgress, an adapter that is switched off forgets its scans and
links, and `le-connection-abort-by-local` is followed by Connected -> False.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from tests.brokers import with_me

OBJECTS, PROPERTIES = "org.freedesktop.DBus.ObjectManager", "org.freedesktop.DBus.Properties"
ADAPTER, DEVICE = "org.bluez.Adapter1", "org.bluez.Device1"
SERVICE, CHARACTERISTIC = "org.bluez.GattService1", "org.bluez.GattCharacteristic1"
_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path={path}</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""


class PrivateBus:
    """A dbus-daemon on a socket of its own, ended with the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"unix:path={folder / 'bus'}"

    def __enter__(self) -> Self:
        binary = shutil.which("dbus-daemon")
        assert binary, "the tests need Debian's dbus-daemon: apt-get install dbus-daemon"
        config = self._folder / "bus.conf"
        config.write_text(_CONFIG.format(path=self._folder / "bus"))
        command = with_me(binary, f"--config-file={config}", "--nofork", "--nopidfile", "--print-address")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "dbus-daemon must say where it listens"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.terminate()
        self._process.wait(10)


class Peer(Protocol):
    """The device behind a link. ``service`` is its UUID, ``flags`` its characteristics by UUID."""

    service: str
    flags: dict[str, list[str]]

    def opened(self) -> None: ...
    def closed(self) -> None: ...
    def read(self, uuid: str) -> bytes: ...
    def write(self, uuid: str, value: bytes) -> None: ...
    def notifications(self) -> list[tuple[str, bytes]]: ...


@dataclass(slots=True)
class Device:
    path: str
    address: str
    adapter: str
    peer: Peer | None = None
    connected: bool = False
    resolved: bool = False
    notifying: set[str] = field(default_factory=set)
    service_data: dict[str, bytes] = field(default_factory=dict)
    manufacturer: dict[int, bytes] = field(default_factory=dict)
    rssi: int = -60


@dataclass(slots=True)
class Adapter:
    powered: bool = True
    scanning: set[str] = field(default_factory=set)
    deaf: bool = False
    """A radio that hangs: everything answers and nothing is heard, until it is switched off."""
    cured_by_power: bool = True


class FakeBluez:
    """Start it with `start`, end it with `stop`; everything on one loop.

    Attributes
    ----------
    calls : Counter
        Method calls by member.
    errors : dict of member to deque
        (error name, text) to answer the next calls with.
    losing : callable
        Whether this read, write, notification or advertisement is lost.
    """

    def __init__(self, bus_address: str, *adapters: str) -> None:
        self._address = bus_address
        self.adapters = {name: Adapter() for name in adapters or ("hci0",)}
        self.devices: dict[str, Device] = {}
        self.calls: Counter[str] = Counter()
        self.errors: dict[str, deque[tuple[str, str]]] = defaultdict(deque)
        self.losing = lambda: False
        self.most_connected = 0

    async def start(self) -> Self:
        self._bus = await MessageBus(bus_address=self._address).connect()
        self._bus.add_message_handler(self._on_message)
        await self._bus.request_name("org.bluez")
        self._signals: asyncio.Queue[Message] = asyncio.Queue()
        self._sender = asyncio.create_task(self._send())
        return self

    async def stop(self) -> None:
        self._sender.cancel()
        self._bus.disconnect()
        await self._bus.wait_for_disconnect()

    async def _send(self) -> None:
        sent = 0
        while True:  # one after the other, and not ahead of the daemon: else dbus-fast drops its bus
            await self._bus.send(await self._signals.get())
            sent += 1
            if sent % 20 == 0:
                await self.clients()

    def _signal(self, path: str, interface: str, member: str, signature: str, body: list) -> None:
        signal = {"message_type": MessageType.SIGNAL, "path": path, "interface": interface, "member": member}
        self._signals.put_nowait(Message(**signal, signature=signature, body=body))

    def _changed(self, path: str, interface: str, **values: Variant) -> None:
        self._signal(path, PROPERTIES, "PropertiesChanged", "sa{sv}as", [interface, values, []])

    @property
    def connected(self) -> int:
        """Connection slots in use."""
        return sum(device.connected for device in self.devices.values())

    async def clients(self) -> int:
        """Connections to the bus, ours among them."""
        told = await self._bus.call(
            Message(
                destination="org.freedesktop.DBus",
                path="/org/freedesktop/DBus",
                interface="org.freedesktop.DBus",
                member="ListNames",
            )
        )
        assert told is not None
        return sum(name.startswith(":") for name in told.body[0])

    def forget_clients(self) -> None:
        """Who scanned is gone from the bus: BlueZ ends the scans of a client that vanished."""
        for radio in self.adapters.values():
            radio.scanning.clear()

    def fail(self, member: str, error: str, text: str = "", *, times: int = 1) -> None:
        self.errors[member].extend([(f"org.bluez.Error.{error}", text)] * times)

    # -- what is in the air ------------------------------------------------------------------------

    def advertise(
        self,
        address: str,
        *,
        service: dict[str, bytes] | None = None,
        manufacturer: dict[int, bytes] | None = None,
        rssi: int = -60,
        peer: Peer | None = None,
        adapter: str = "hci0",
    ) -> bool:
        """Let a device be heard once; whether anybody listens."""
        path = f"/org/bluez/{adapter}/dev_{address.replace(':', '_')}"
        fresh = path not in self.devices
        device = self.devices.setdefault(path, Device(path, address, adapter))
        device.service_data = device.service_data | (service or {})
        device.manufacturer = device.manufacturer | (manufacturer or {})
        device.rssi, device.peer = rssi, peer or device.peer
        radio = self.adapters[adapter]
        if not radio.powered or not radio.scanning or radio.deaf or self.losing():
            if fresh:
                del self.devices[path]
            return False
        if fresh:
            self._signal("/", OBJECTS, "InterfacesAdded", "oa{sa{sv}}", [path, {DEVICE: self._device_values(device)}])
        else:
            values = self._device_values(device)
            self._changed(path, DEVICE, **{name: values[name] for name in ("RSSI", "ServiceData", "ManufacturerData")})
        return True

    def drop(self, path: str) -> None:
        """The link is lost."""
        device = self.devices[path]
        if not device.connected:
            return
        device.connected = device.resolved = False
        device.notifying.clear()
        for name in self._gatt(device):
            self._signal("/", OBJECTS, "InterfacesRemoved", "oas", [name, [SERVICE, CHARACTERISTIC]])
        self._changed(path, DEVICE, ServicesResolved=Variant("b", False), Connected=Variant("b", False))
        if device.peer is not None:
            device.peer.closed()

    def pump(self) -> None:
        """Send what connected peers notify, once what was sent before is on its way."""
        if not self._signals.empty():
            return
        for device in self.devices.values():
            if device.connected and device.peer is not None:
                for uuid, value in device.peer.notifications():
                    if uuid in device.notifying and not self.losing():
                        self._changed(self._path_of(device, uuid), CHARACTERISTIC, Value=Variant("ay", value))

    # -- objects -----------------------------------------------------------------------------------

    def _device_values(self, device: Device) -> dict[str, Variant]:
        return {
            "Address": Variant("s", device.address),
            "Alias": Variant("s", device.address.replace(":", "-")),
            "Adapter": Variant("o", f"/org/bluez/{device.adapter}"),
            "Connected": Variant("b", device.connected),
            "ServicesResolved": Variant("b", device.resolved),
            "Paired": Variant("b", False),
            "RSSI": Variant("n", device.rssi),
            "UUIDs": Variant("as", [] if device.peer is None else [device.peer.service]),
            "ServiceData": Variant("a{sv}", {u: Variant("ay", v) for u, v in device.service_data.items()}),
            "ManufacturerData": Variant("a{qv}", {c: Variant("ay", v) for c, v in device.manufacturer.items()}),
        }

    def _path_of(self, device: Device, uuid: str) -> str:
        assert device.peer is not None
        return f"{device.path}/service0001/char{list(device.peer.flags).index(uuid) + 2:04x}"

    def _gatt(self, device: Device) -> dict[str, dict[str, dict[str, Variant]]]:
        peer = device.peer
        if peer is None:
            return {}
        service = f"{device.path}/service0001"
        held = {
            service: {
                SERVICE: {
                    "UUID": Variant("s", peer.service),
                    "Primary": Variant("b", True),
                    "Device": Variant("o", device.path),
                }
            }
        }
        for uuid, flags in peer.flags.items():
            values = {"UUID": Variant("s", uuid), "Service": Variant("o", service), "Flags": Variant("as", flags)}
            held[self._path_of(device, uuid)] = {CHARACTERISTIC: values | {"MTU": Variant("q", 185)}}
        return held

    def _objects(self) -> dict[str, dict[str, dict[str, Variant]]]:
        held: dict[str, dict[str, dict[str, Variant]]] = {}
        for name, radio in self.adapters.items():
            values = {"Powered": Variant("b", radio.powered), "Roles": Variant("as", ["central"])}
            held[f"/org/bluez/{name}"] = {ADAPTER: values}
        for device in self.devices.values():
            held[device.path] = {DEVICE: self._device_values(device)}
            if device.resolved:
                held |= self._gatt(device)
        return held

    # -- calls -------------------------------------------------------------------------------------

    def _on_message(self, message: Message) -> Message | bool | None:
        if message.message_type is not MessageType.METHOD_CALL:
            return None
        member = message.member or ""
        self.calls[member] += 1
        if self.errors[member]:
            return self._injected(message, *self.errors[member].popleft())
        if member == "GetManagedObjects":
            return Message.new_method_return(message, "a{oa{sa{sv}}}", [self._objects()])
        path = message.path or ""
        if path.count("/") == 3:
            return self._on_adapter(message, self.adapters.get(path.rpartition("/")[2]))
        device = self.devices.get("/".join(path.split("/")[:5]))
        if device is None:
            return Message.new_error(message, "org.freedesktop.DBus.Error.UnknownObject", path)
        told = self._on_device(message, device)
        if member not in ("Connect", "Disconnect"):
            return told
        self._signals.put_nowait(told)  # BlueZ answers after it has said what changed
        return True

    def _injected(self, message: Message, name: str, text: str) -> Message:
        device = self.devices.get(message.path or "")
        if text == "le-connection-abort-by-local" and device is not None:
            self._changed(device.path, DEVICE, Connected=Variant("b", True))
            self._changed(device.path, DEVICE, Connected=Variant("b", False))
        return Message.new_error(message, name, text)

    def _on_adapter(self, message: Message, radio: Adapter | None) -> Message:
        if radio is None:
            return Message.new_error(message, "org.freedesktop.DBus.Error.UnknownObject", "no such adapter")
        name, sender = (message.path or "").rpartition("/")[2], message.sender or ""
        if message.member == "Set":
            self._power(name, radio, on=message.body[2].value)
        elif not radio.powered and message.member != "SetDiscoveryFilter":
            return Message.new_error(message, "org.bluez.Error.NotReady", "Resource Not Ready")
        elif message.member == "StartDiscovery":
            if sender in radio.scanning:
                return Message.new_error(message, "org.bluez.Error.InProgress", "Operation already in progress")
            radio.scanning.add(sender)
        elif message.member == "StopDiscovery":
            radio.scanning.discard(sender)
        return Message.new_method_return(message)

    def _power(self, name: str, radio: Adapter, *, on: bool) -> None:
        radio.powered = on
        if not on:
            radio.scanning.clear()
            for device in self.devices.values():
                if device.adapter == name:
                    self.drop(device.path)
        elif radio.cured_by_power:
            radio.deaf = False
        self._changed(f"/org/bluez/{name}", ADAPTER, Powered=Variant("b", on))

    def _on_device(self, message: Message, device: Device) -> Message:
        match message.member:
            case "Connect":
                if device.peer is None:
                    return Message.new_error(message, "org.bluez.Error.Failed", "br-connection-page-timeout")
                self._connect(device)
            case "Disconnect":
                self.drop(device.path)
            case _ if not device.connected:
                return Message.new_error(message, "org.bluez.Error.Failed", "Not connected")
            case _:
                return self._on_characteristic(message, device)
        return Message.new_method_return(message)

    def _connect(self, device: Device) -> None:
        assert device.peer is not None
        if device.connected:
            return
        device.connected = device.resolved = True
        self.most_connected = max(self.most_connected, self.connected)
        device.peer.opened()
        self._changed(device.path, DEVICE, Connected=Variant("b", True))
        for name, held in self._gatt(device).items():
            self._signal("/", OBJECTS, "InterfacesAdded", "oa{sa{sv}}", [name, held])
        self._changed(device.path, DEVICE, ServicesResolved=Variant("b", True))

    def _on_characteristic(self, message: Message, device: Device) -> Message:
        assert device.peer is not None
        uuid = list(device.peer.flags)[int((message.path or "")[-4:], 16) - 2]
        if message.member == "StartNotify":
            device.notifying.add(uuid)
            return Message.new_method_return(message)
        lost = self.losing()
        if message.member == "ReadValue":
            value = b"" if lost else device.peer.read(uuid)
            if not lost:
                return Message.new_method_return(message, "ay", [value])
        elif message.member == "WriteValue":
            device.peer.write(uuid, bytes(message.body[0]))  # what is lost is as often the answer
            if not lost:
                return Message.new_method_return(message)
        return Message.new_error(message, "org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e")
