"""The collar's accelerometer, by I2C: readings in milli-g, 25 a second, from its own queue.

An ST LIS3DH at 25 Hz, +-8 g, high resolution, its 32 readings deep FIFO as a stream: a tracker
may sleep for a second between two looks. The bus is handed in: nothing of a board is imported
here.
"""

ADDRESS = 0x18
_WHO_AM_I, _IS_LIS3DH = 0x0F, 0x33
_CTRL_1, _CTRL_4, _CTRL_5, _FIFO_CTRL, _FIFO_SRC, _OUT = 0x20, 0x23, 0x24, 0x2E, 0x2F, 0x28
_25_HZ_ALL_AXES, _8_G_HIGH, _FIFO_ON, _STREAM = 0x37, 0xA8, 0x40, 0x80
_NEXT = 0x80
"""Set in a register's number: read on with the ones behind it."""


class Lis3dh:
    """One sensor.

    Parameters
    ----------
    bus : machine.I2C or another with its ``readfrom_mem_into`` and ``writeto_mem``
    address : int

    Attributes
    ----------
    overruns : int
        Times its queue was full: older readings are lost.
    """

    def __init__(self, bus, address: int = ADDRESS) -> None:  # type: ignore[no-untyped-def]  # the board's own type
        self._bus = bus
        self._address = address
        self._byte = bytearray(1)
        self._six = bytearray(6)
        self.overruns = 0
        found = self._register(_WHO_AM_I)
        if found != _IS_LIS3DH:
            raise OSError(f"a LIS3DH must answer {_IS_LIS3DH:#x} at address {address:#x}, answered {found:#x}")
        for register, value in (
            (_CTRL_1, _25_HZ_ALL_AXES),
            (_CTRL_4, _8_G_HIGH),
            (_CTRL_5, _FIFO_ON),
            (_FIFO_CTRL, _STREAM),
        ):
            bus.writeto_mem(address, register, bytes((value,)))

    def _register(self, number: int) -> int:
        self._bus.readfrom_mem_into(self._address, number, self._byte)
        return self._byte[0]

    def waiting(self) -> int:
        """How many readings its queue holds."""
        source = self._register(_FIFO_SRC)
        if source & 0x40:
            self.overruns += 1
        return source & 0x1F

    def read(self) -> tuple[int, int, int]:
        """The oldest reading, milli-g on three axes."""
        six = self._six
        self._bus.readfrom_mem_into(self._address, _OUT | _NEXT, six)
        return _milli_g(six[0], six[1]), _milli_g(six[2], six[3]), _milli_g(six[4], six[5])


def _milli_g(low: int, high: int) -> int:
    """12 bits, left in 16, 4 milli-g each."""
    value = (high << 8 | low) >> 4
    return 4 * (value - 4096 if value & 0x800 else value)
