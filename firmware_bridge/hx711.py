"""The load cell's converter, by two pins: a reading in mg, or None.

An HX711 pulls its data line low when a reading is there; 24 clock pulses shift it out, one more
chooses the gain for the next. What its ends and a broken line look like (all bits the same, or
all but the first) is no reading and never becomes one. Pins are handed in: nothing of a board
is imported here.
"""

_ENDS = (0x7FFFFF, 0x800000, 0xFFFFFF)


class Hx711:
    """One converter at gain 128, ten readings a second.

    Parameters
    ----------
    data, clock : machine.Pin or another with its ``value``
    zero_counts : int
        What it counts with nothing on the cell; only the origin of the scale, no tare.
    mg_per_1000_counts : int
        From a weighing with a known mass; below zero where the cell hangs upside down.
    quiet, loud : callable, optional
        Stop interrupts and let them go on: a clock line high for 60 us puts the chip to sleep.

    Attributes
    ----------
    spoilt : int
        Readings that were none.
    """

    def __init__(self, data, clock, *, zero_counts: int, mg_per_1000_counts: int, quiet=None, loud=None) -> None:  # type: ignore[no-untyped-def]  # pins, callables
        if not mg_per_1000_counts:
            raise ValueError("mg_per_1000_counts must not be 0")
        self._data = data
        self._clock = clock
        self._zero = zero_counts
        self._mg = mg_per_1000_counts
        self._quiet = quiet
        self._loud = loud
        self.spoilt = 0

    def ready(self) -> bool:
        """Whether a reading waits."""
        return not self._data.value()

    def read(self) -> int | None:
        """The reading that waits, in mg; None where it was none."""
        data, clock = self._data.value, self._clock.value
        state = self._quiet() if self._quiet else None
        counts = 0
        for _ in range(24):
            clock(1)
            counts = counts << 1 | data()
            clock(0)
        clock(1)
        clock(0)
        if self._loud:
            self._loud(state)
        if counts in _ENDS:
            self.spoilt += 1
            return None
        if counts & 0x800000:
            counts -= 1 << 24
        return (counts - self._zero) * self._mg // 1000
