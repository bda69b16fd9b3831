"""The radio of a device: MicroPython's ``bluetooth`` around ``gatt.GattUplink``. Device only.

Registers the service, advertises, queues what the radio reports and does the work in ``step``,
which the device's main loop calls: nothing is computed in an interrupt.
"""

from bluetooth import UUID  # type: ignore[import-not-found]  # MicroPython's own

from firmware_bridge.gatt import GattUplink
from firmware_bridge.parts import (
    ASK_UUID,
    ATTRIBUTE_BYTES,
    DEVICE_UUID,
    FRAMES_UUID,
    HISTORY_UUID,
    MARK_UUID,
    SERVICE_UUID,
)

_IRQ_CENTRAL_CONNECT = 1
_IRQ_CENTRAL_DISCONNECT = 2
_IRQ_GATTS_WRITE = 3
_IRQ_MTU_EXCHANGED = 21
_READ, _WRITE, _NOTIFY = 0x02, 0x08, 0x10
_QUEUED = 64
"""What waits for ``step``; a hub that writes faster is cut off, and takes it up from the mark."""
ADVERTISE_US = 500_000
_PREFERRED_MTU = 247


def _field(kind: int, data: bytes) -> bytes:
    return bytes((len(data) + 1, kind)) + data


class Peripheral:
    """One device's Bluetooth side.

    Parameters
    ----------
    ble : bluetooth.BLE
    uplink : GattUplink
    """

    def __init__(self, ble, uplink: GattUplink) -> None:  # type: ignore[no-untyped-def]  # the port's own type
        self.uplink = uplink
        self._ble = ble
        self._connection = -1
        self._queue: list[tuple[int, int, bytes]] = []
        self._overrun = False
        self._told = b""
        ble.active(True)
        ble.config(mtu=_PREFERRED_MTU)
        ble.irq(self._irq)
        service = (
            UUID(SERVICE_UUID),
            (
                (UUID(DEVICE_UUID), _READ),
                (UUID(MARK_UUID), _WRITE),
                (UUID(ASK_UUID), _WRITE),
                (UUID(HISTORY_UUID), _READ),
                (UUID(FRAMES_UUID), _NOTIFY),
            ),
        )
        ((device, self._mark, self._ask, self._history, self._frames),) = ble.gatts_register_services((service,))
        ble.gatts_set_buffer(self._mark, ATTRIBUTE_BYTES)
        ble.gatts_set_buffer(self._history, ATTRIBUTE_BYTES)
        ble.gatts_write(device, uplink.identity)
        self._advertise()

    @property
    def connected(self) -> bool:
        """Whether a hub is there."""
        return self._connection >= 0

    def _irq(self, event: int, data) -> None:  # type: ignore[no-untyped-def]  # a tuple whose shape hangs on the event
        if event == _IRQ_GATTS_WRITE:
            self._push((event, data[1], bytes(self._ble.gatts_read(data[1]))))
        elif event == _IRQ_MTU_EXCHANGED:
            self._push((event, data[1], b""))
        elif event in (_IRQ_CENTRAL_CONNECT, _IRQ_CENTRAL_DISCONNECT):
            self._queue.append((event, data[0], b""))

    def _push(self, entry: tuple[int, int, bytes]) -> None:
        if len(self._queue) < _QUEUED:
            self._queue.append(entry)
        else:
            self._overrun = True

    def step(self) -> bool:
        """Do what is due; whether anything was."""
        moved = False
        while self._queue:
            moved = True
            self._take(*self._queue.pop(0))
        if self._overrun and self.connected:
            self._overrun = False
            self._ble.gap_disconnect(self._connection)
        if self.connected:
            return self._notify() or moved
        if self.uplink.advertised() != self._told:
            self._advertise()
        return moved

    def _take(self, event: int, handle: int, value: bytes) -> None:
        if event == _IRQ_CENTRAL_CONNECT:
            self._connection = handle
            self.uplink.opened()
        elif event == _IRQ_CENTRAL_DISCONNECT:
            self._connection = -1
            self.uplink.closed()
            self._advertise()
        elif event == _IRQ_MTU_EXCHANGED:
            self.uplink.set_mtu(handle)
        elif handle == self._mark:
            self.uplink.wrote_mark(value)
        elif handle == self._ask:
            self._ble.gatts_write(self._history, self.uplink.asked(value))

    def _notify(self) -> bool:
        part = self.uplink.to_notify()
        if part is None:
            return False
        try:
            self._ble.gatts_notify(self._connection, self._frames, part)
        except OSError:  # the radio's buffers are full: the same part at the next step
            return False
        self.uplink.notified()
        return True

    def _advertise(self) -> None:
        """Say who is there and whether anything waits: flags, then the service's data (25 of 31 bytes)."""
        self._told = self.uplink.advertised()
        uuid = bytes(reversed(bytes.fromhex(SERVICE_UUID.replace("-", ""))))
        self._ble.gap_advertise(ADVERTISE_US, adv_data=_field(0x01, b"\x06") + _field(0x21, uuid + self._told))
