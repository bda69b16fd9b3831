"""A radio whose other end is in the same script: values of attributes, and the events of a central."""


class UUID:
    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UUID) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class BLE:
    """The peripheral's calls, and for the script: ``connect``, ``write``, ``values``, ``advertised``."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.handles: dict[str, int] = {}
        self.advertised = b""
        self.notified: list[bytes] = []
        self._irq = None

    def active(self, on: bool) -> None:
        pass

    def config(self, *, mtu: int) -> None:
        pass

    def irq(self, handler) -> None:
        self._irq = handler

    def gatts_register_services(self, services):
        ((_, characteristics),) = services
        for handle, (uuid, _) in enumerate(characteristics):
            self.handles[uuid.text] = handle
            self.values[handle] = b""
        return (tuple(range(len(characteristics))),)

    def gatts_set_buffer(self, handle: int, size: int) -> None:
        pass

    def gatts_write(self, handle: int, value: bytes) -> None:
        self.values[handle] = value

    def gatts_read(self, handle: int) -> bytes:
        return self.values[handle]

    def gatts_notify(self, connection: int, handle: int, value: bytes) -> None:
        self.notified.append(value)

    def gap_advertise(self, interval_us: int, *, adv_data: bytes) -> None:
        assert len(adv_data) <= 31
        self.advertised = adv_data

    def gap_disconnect(self, connection: int) -> None:
        self._irq(2, (connection, 0, b""))

    # --- the central's side ---------------------------------------------------------------

    def connect(self) -> None:
        self._irq(1, (0, 0, b""))

    def write(self, uuid: str, value: bytes) -> None:
        self.values[self.handles[uuid]] = value
        self._irq(3, (0, self.handles[uuid]))

    def read(self, uuid: str) -> bytes:
        return self.values[self.handles[uuid]]
