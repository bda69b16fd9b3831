"""A pet on a scale: load-cell samples in, one weight a stand out.

A platform in front of the bowl, or a litter box on load cells. Pure, integers only (mg, ms);
the same samples and options give the same records, also where the state is saved and restored
between any two samples. Runs on CPython and MicroPython.
"""

from firmware_bridge.kinds import WEIGHT
from firmware_bridge.settle import NOTHING, SETTLED, Settle, pack_state, unpack_state


class Platform:
    """An animal on a scale: one ``WEIGHT`` a stand, the settled load above the empty platform.

    Parameters
    ----------
    least_mg : int
        What weighs less is no pet; the empty platform follows it.
    noise_mg, settle_ms, hold_ms, low_mg, high_mg
        As for :class:`Scale`. A plateau may also sway by a 64th of its load.
    """

    def __init__(
        self,
        *,
        noise_mg: int = 20_000,
        least_mg: int = 500_000,
        settle_ms: int = 2_000,
        hold_ms: int = 0,
        low_mg: int = -2_000_000,
        high_mg: int = 200_000_000,
    ) -> None:
        self._settle = Settle(noise_mg, settle_ms, hold_ms, low_mg, high_mg, sway_bits=6)
        self._least = least_mg
        self.zero = 0
        self.loaded = 0

    @property
    def rejected(self) -> int:
        return self._settle.rejected

    def feed(self, at_ms: int, mg: int) -> tuple:  # type: ignore[type-arg]
        """One sample; the ``WEIGHT`` it settles, almost always nothing."""
        settle = self._settle
        if settle.refuse(at_ms, mg):
            return NOTHING
        told = self._settled(at_ms) if settle.stood(at_ms, mg) else NOTHING
        return told + self._settled(at_ms) if settle.take(at_ms, mg) == SETTLED else told

    def tick(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        """Time passes without a sample."""
        settle = self._settle
        return self._settled(at_ms) if at_ms >= settle.last_ms and settle.stood(at_ms, None) else NOTHING

    def save(self) -> bytes:
        """The whole state."""
        return pack_state(self._settle, self, ("zero", "loaded"))

    def restore(self, raw: bytes) -> None:
        """Go on where ``save`` was; ValueError where the bytes are no state of this version."""
        unpack_state(raw, self._settle, self, ("zero", "loaded"))

    def _settled(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        load_mg = self._settle.level - self.zero
        if load_mg < self._least:
            self.zero, self.loaded = self._settle.level, 0
            return NOTHING
        if self.loaded:
            return NOTHING
        self.loaded = 1
        return ((WEIGHT, at_ms, (load_mg,)),)
