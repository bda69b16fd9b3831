"""A radio within whose reach one tracker lies: the firmware's own ``gatt.GattUplink``, without the air.

``tracker`` is set by the test's script; every ``drop_every``-th exchange finds the link gone.
"""

from bluetooth import UUID

from firmware_bridge.parts import ASK_UUID, DEVICE_UUID, HISTORY_UUID, MARK_UUID, SERVICE_UUID


class GattError(Exception):
    pass


class DeviceDisconnectedError(Exception):
    pass


class _Air:
    def __init__(self) -> None:
        self.tracker = None
        self.answer = b""
        self.connected = False
        self.exchanges = self.drop_every = self.drops = self.connections = 0

    def exchange(self) -> None:
        assert self.connected
        self.exchanges += 1
        if self.drop_every and self.exchanges % self.drop_every == 0:
            self.drops += 1
            self.leave()
            raise DeviceDisconnectedError

    def leave(self) -> None:
        if self.connected:
            self.connected = False
            self.tracker.closed()


air = _Air()


class _Characteristic:
    def __init__(self, uuid: UUID) -> None:
        self._uuid = uuid.text

    async def read(self) -> bytes:
        air.exchange()
        return air.tracker.identity if self._uuid == DEVICE_UUID else air.answer

    async def write(self, value: bytes, response: bool) -> None:
        assert response
        air.exchange()
        if self._uuid == MARK_UUID:
            air.tracker.wrote_mark(value)
        elif self._uuid == ASK_UUID:
            air.answer = air.tracker.asked(value)


class _Service:
    async def characteristic(self, uuid: UUID) -> _Characteristic:
        assert uuid.text in (DEVICE_UUID, MARK_UUID, ASK_UUID, HISTORY_UUID)
        return _Characteristic(uuid)


class _Connection:
    async def exchange_mtu(self, mtu: int) -> int:
        return mtu

    async def service(self, uuid: UUID) -> _Service:
        assert uuid.text == SERVICE_UUID
        return _Service()

    async def disconnect(self) -> None:
        air.leave()


class _Device:
    async def connect(self, timeout_ms: int) -> _Connection:
        air.connected = True
        air.connections += 1
        air.tracker.opened()
        return _Connection()


class _Result:
    def __init__(self) -> None:
        self.device = _Device()
        uuid = bytes(reversed(bytes.fromhex(SERVICE_UUID.replace("-", ""))))
        self.adv_data = b"\x02\x01\x06\x13\x21" + uuid + air.tracker.advertised()  # as ``peripheral`` does it


class scan:  # noqa: N801 - as the library calls it
    def __init__(self, duration_ms: int, interval_us: int, window_us: int) -> None:
        self._left = 1

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __aiter__(self):
        return self

    async def __anext__(self) -> _Result:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return _Result()
