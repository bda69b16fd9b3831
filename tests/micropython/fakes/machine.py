"""A board whose pins are wired to files of samples: an HX711 on pins 4 and 5, a LIS3DH on the bus.

What the drivers do on the wire is answered as the chips answer it, bit by bit and register by
register. Time is that of the samples.
"""

ZERO_COUNTS, MG_PER_1000_COUNTS = 84_000, 2_400
DATA, CLOCK, BUTTON = 4, 5, 7


class Converter:
    """An HX711 that plays a file of lines ``ms mg``."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.left = False
        self.fed = 0
        self._lines = None
        self._counts = 0
        self._pulses = 0
        self._bit = 0

    def play(self, path: str) -> None:
        self._lines = open(path)  # noqa: PTH123, SIM115
        self.left = True
        self._next()

    def _next(self) -> None:
        line = self._lines.readline()
        if not line:
            self.left = False
            return
        at_ms, mg = line.split()
        self.at_ms = int(at_ms)
        counts = int(mg) * 1_000 // MG_PER_1000_COUNTS + ZERO_COUNTS
        self._counts = max(-0x800000, min(0x7FFFFF, counts)) & 0xFFFFFF

    def data(self) -> int:
        """Low while a reading waits; while it is shifted out, its bits."""
        return self._bit if self._pulses else 0 if self.left else 1

    def pulse(self) -> None:
        if self._pulses == 24:  # the gain's pulse: the next reading comes
            self._pulses = self._bit = 0
            self._next()
            return
        self._bit = self._counts >> (23 - self._pulses) & 1
        self._pulses += 1


class Pin:
    """A pin by its number."""

    IN, OUT, PULL_UP = 0, 1, 2

    def __init__(self, number: int, mode: int = 0, pull: int = 0, value: int = 0) -> None:
        self._number = number

    def value(self, level: int | None = None) -> int:
        if self._number == DATA:
            return converter.data()
        if self._number == CLOCK and level:
            converter.pulse()
        if self._number == BUTTON:
            return 0 if 5_000 <= converter.at_ms < 6_500 else 1  # held for a second and a half
        return 1


class I2C:
    """A bus with one LIS3DH, which plays a file of lines ``ms x y z``."""

    def __init__(self, number: int, *, sda: Pin, scl: Pin, freq: int) -> None:
        pass

    def writeto_mem(self, address: int, register: int, value: bytes) -> None:
        sensor.registers[register] = value[0]

    def readfrom_mem_into(self, address: int, register: int, into: bytearray) -> None:
        if register == 0x28 | 0x80:
            sensor.take(into)
        else:
            into[0] = sensor.register(register)


class Sensor:
    """What the LIS3DH holds."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.left = False
        self.registers = {0x0F: 0x33}
        self._lines = None

    def play(self, path: str) -> None:
        self._lines = open(path)  # noqa: PTH123, SIM115
        self.left = True

    def register(self, number: int) -> int:
        if number == 0x2F:
            return 8 if self.left else 0
        return self.registers[number]

    def take(self, into: bytearray) -> None:
        line = self._lines.readline()
        if not line:
            self.left = False
            return
        at_ms, *axes = line.split()
        self.at_ms = int(at_ms)
        for index, mg in enumerate(axes):
            raw = int(mg) // 4 << 4 & 0xFFFF
            into[2 * index] = raw & 0xFF
            into[2 * index + 1] = raw >> 8


class ADC:
    """A battery at 3.9 V behind a divider by two."""

    def __init__(self, pin: Pin) -> None:
        pass

    def read_uv(self) -> int:
        return 1_950_000


class WDT:
    """A watchdog that counts how often it was fed."""

    def __init__(self, timeout: int) -> None:
        pass

    def feed(self) -> None:
        converter.fed += 1


def disable_irq() -> int:
    return 1


def enable_irq(state: int) -> None:
    assert state == 1


converter = Converter()
sensor = Sensor()
