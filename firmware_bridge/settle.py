"""Where a load cell stands still: samples in, plateaus out, in constant memory.

A plateau is a level that holds within ``half`` for ``settle_ms``: food at rest does, an animal
that touches the bowl does not. While it holds, the level follows the cell's drift (5 to 10 g a
day) and a single sample far from it is nonsense (2^n - 1, 0, a flipped sign), not a movement.
Where a stream may send on change only (``hold_ms`` above 0), a value that stood clearly longer
than values follow each other is a plateau of its own.

Pure, integers (mg, ms), no allocation a sample. Runs on CPython and MicroPython. The whole
state is the fields named in ``FIELDS``.
"""

import struct

NOTHING = ()
"""What almost every sample gives; one object, so that a sample allocates nothing."""

STILL, MOVED, BUSY, SETTLED = 0, 1, 2, 3
"""What a sample was: on the plateau, the first of a movement, within one, the end of one."""

FOLLOW_MG_S = 10
"""How fast a level follows what drifts: 80 times the cell's 10 g a day, a tenth of the slowest eater."""
_STEP_MS = 100
_MEAN_OF = 64
_WIDER_MS = 120_000
"""So long without a plateau (a washing machine), and it may be half as wide again, up to eightfold."""
_HEAVIER_MS = 1_800_000
"""So long a wide plateau must lie no higher than the last: a head laid on the bowl is no refill."""
_CALM_MS = 60_000
_CONFIRM_MS = 600_000
"""A lone value that stands so long is believed, whatever it looks like."""
_STEPS = 3
_POLL_MS = 300_000
"""The slowest stream that is polled; a longer silence means that nothing changed."""

FIELDS = (
    "last_ms", "last_mg", "level", "before", "known", "quiet", "half", "odd_ms", "odd_mg", "left_ms", "from_ms",
    "first", "sum", "n", "follow_ms", "wider_ms", "widest", "calm_ms", "step_ms", "rejected",
)  # fmt: skip
TIMES = ("last_ms", "odd_ms", "left_ms", "from_ms", "follow_ms", "wider_ms", "calm_ms")

I32 = 1 << 31
_VERSION = 1


def pack_state(settle, owner, names) -> bytes:  # type: ignore[no-untyped-def]
    """A state to keep: a version byte and every field, those of the detector first."""
    raw = bytearray((_VERSION,))
    for holder, fields in ((settle, FIELDS), (owner, names)):
        for name in fields:
            raw += struct.pack("<q" if name.endswith("_ms") else "<i", getattr(holder, name))
    return bytes(raw)


def unpack_state(raw: bytes, settle, owner, names) -> None:  # type: ignore[no-untyped-def]
    """Set every field from a kept state; ValueError where it is none of this version."""
    total = sum(8 if name.endswith("_ms") else 4 for fields in (FIELDS, names) for name in fields)
    if len(raw) != 1 + total or raw[0] != _VERSION:
        found = raw[0] if raw else "none"
        raise ValueError(f"a state must be version {_VERSION} of {1 + total} bytes, is {found} of {len(raw)}")
    at = 1
    for holder, fields in ((settle, FIELDS), (owner, names)):
        for name in fields:
            form = "<q" if name.endswith("_ms") else "<i"
            setattr(holder, name, struct.unpack_from(form, raw, at)[0])
            at += struct.calcsize(form)


class Settle:
    """The plateau detector of a bowl or a platform.

    Parameters
    ----------
    noise_mg : int
        Peak to peak of the unloaded, untouched scale in its place.
    settle_ms : int
        How long a level must hold to be a plateau.
    hold_ms : int
        Above 0: a value that was not followed by another for so long, and for three of the
        stream's usual steps, stood all the time. 0: a silence is an interruption.
    low_mg, high_mg : int
        What lies outside is set aside: no such load can stand there.
    sway_bits : int
        A plateau may also be as wide as its level shifted right by so many bits: an animal
        that stands still sways by a part of its weight.

    Attributes
    ----------
    level : int
        mg of the last plateau, drift followed; holds while ``known``.
    before : int
        mg of the plateau before the last movement.
    from_ms : int
        When the plateau began.
    left_ms : int
        When the movement after it began.
    rejected : int
        Samples set aside.
    """

    def __init__(
        self, noise_mg: int, settle_ms: int, hold_ms: int, low_mg: int, high_mg: int, sway_bits: int = 31
    ) -> None:
        if noise_mg < 1 or settle_ms < 1 or hold_ms < 0 or not -I32 <= low_mg < high_mg < I32:
            raise ValueError(
                f"noise_mg and settle_ms must be 1 or more, hold_ms 0 or more, low_mg below high_mg, both i32, "
                f"are {noise_mg}, {settle_ms}, {hold_ms}, {low_mg}, {high_mg}"
            )
        self._noise = noise_mg
        self._settle_ms = settle_ms
        self._hold_ms = hold_ms
        self._low = low_mg
        self._high = high_mg
        self._sway = sway_bits
        self.last_ms = self.odd_ms = self.left_ms = self.from_ms = self.follow_ms = self.wider_ms = self.calm_ms = -1
        self.step_ms = -1
        self.last_mg = self.level = self.before = self.odd_mg = self.first = self.sum = self.n = 0
        self.widest = self.rejected = 0
        self.known = self.quiet = 0
        self.half = noise_mg

    @property
    def resting(self) -> bool:
        """Whether it stands on its plateau, the last sample included."""
        return bool(self.quiet) and self.odd_ms < 0

    @property
    def holds(self) -> bool:
        """Whether values stand until the next one."""
        return self._hold_ms > 0

    def refuse(self, at_ms: int, mg: int) -> bool:
        """Whether a sample is set aside unseen: out of bounds, or older than the last."""
        bad = not self._low <= mg <= self._high or at_ms < self.last_ms
        if bad:
            self.rejected += 1
        return bad

    def stood(self, at_ms: int, mg: int | None) -> bool:
        """Whether the last value stood until ``at_ms`` and so was a plateau, which it now is.

        ``mg`` is the value that comes next; None where only time has passed.
        """
        if not self._hold_ms or self.last_ms < 0 or (self.quiet and self.odd_ms < 0):
            return False
        stood_ms = at_ms - self.last_ms
        if mg is None and self.quiet:
            if stood_ms < _CONFIRM_MS:
                return False  # a lone value: the next one will tell
        elif stood_ms < _CONFIRM_MS and (
            stood_ms < self._hold_ms
            or self.step_ms < 0
            or stood_ms < _STEPS * self.step_ms
            or self._suspicious(self.last_mg)
        ):
            return False
        if mg is not None and self.quiet and -self.half <= mg - self.level <= self.half:
            return False  # it came back: nonsense
        if not self.quiet:
            if not (self.n and -self.half <= self.last_mg - self._mean() <= self.half):
                self._begin(self.last_ms, self.last_mg)
        else:
            self._begin(self.odd_ms, self.odd_mg)
            self.before = self.level
        self._land(self.last_ms)
        return True

    def take(self, at_ms: int, mg: int) -> int:
        """One sample that was not refused: ``STILL``, ``MOVED``, ``BUSY`` or ``SETTLED``."""
        before_ms = self.last_ms
        step_ms = at_ms - before_ms
        if before_ms >= 0 and step_ms:  # the shortest of late; it grows again by an eighth a sample
            grown_ms = self.step_ms + (self.step_ms >> 3) + 1
            self.step_ms = step_ms if self.step_ms < 0 else min(step_ms, grown_ms)
        self.last_ms, self.last_mg = at_ms, mg
        if self.quiet:
            return self._take_quiet(at_ms, mg, before_ms)
        off = mg - self._mean() if self.n else 0
        if not self.n or not -self.half <= off <= self.half:
            if self.left_ms < 0:
                self.left_ms = self.wider_ms = at_ms
            self._begin(at_ms, mg)
        else:
            self.n += 1
            self.sum += mg - self.first
            self.widest = max(self.widest, abs(off))
            if at_ms - self.from_ms >= self._settle_ms and self.n >= 3 and self._may_land(at_ms):
                self._land(at_ms)
                return SETTLED
        if at_ms - self.wider_ms >= _WIDER_MS and self.half < 8 * self._noise:
            self.half += self.half >> 1
            self.wider_ms = at_ms - (_WIDER_MS >> 1)
        return BUSY

    def interrupt(self) -> None:
        """Nobody knows what happened since the last sample: what comes must settle anew."""
        if self.quiet:
            self.before = self.level
        self.quiet = self.n = 0
        self.odd_ms = -1
        self.left_ms = self.wider_ms = self.last_ms

    def _take_quiet(self, at_ms: int, mg: int, before_ms: int) -> int:
        off = mg - self.level
        if -self.half <= off <= self.half:
            if self.odd_ms >= 0:
                if abs(self.odd_mg - self.level) > 4 * self._noise:
                    self.rejected += 1
                self.odd_ms = -1
            self._follow(at_ms, off)
            return STILL
        if self.odd_ms < 0:
            self.odd_ms, self.odd_mg = at_ms, mg
            # It moved at some time since the last value; after a long silence, just now.
            self.left_ms = before_ms if at_ms - before_ms <= _POLL_MS else at_ms - self._hold_ms
            return STILL
        self.quiet = 0
        self.before = self.level
        self.wider_ms = self.odd_ms
        # The plateau may have begun with the odd one.
        self._begin(self.odd_ms, self.odd_mg)
        if -self.half <= mg - self.odd_mg <= self.half:
            self.n = 2
            self.sum = mg - self.first
        else:
            self._begin(at_ms, mg)
        return MOVED

    def _follow(self, at_ms: int, off: int) -> None:
        """The mean of the first samples, then a running median: an outlier moves it by no more than noise."""
        if self._hold_ms and at_ms - self.follow_ms >= self._hold_ms:
            self._begin(at_ms, off + self.level)  # each value of a slow stream is a weighing of its own
            self.level = self.first
            self.follow_ms = at_ms
        elif self.n < _MEAN_OF:
            self.n += 1
            self.sum += off + self.level - self.first
            self.level = self._mean()
            self.follow_ms = at_ms
        elif at_ms - self.follow_ms >= _STEP_MS:
            most = min(self.half, (at_ms - self.follow_ms) * FOLLOW_MG_S // 1000)
            self.level += max(-most, min(most, off))
            self.follow_ms = at_ms
        self.widest = max(self.widest, abs(off))
        if at_ms - self.calm_ms >= _CALM_MS:
            if self.half > self._noise and self.widest <= self._noise:
                self.half = self._noise
            self.widest = 0
            self.calm_ms = at_ms

    def _mean(self) -> int:
        return self.first + self.sum // self.n

    def _begin(self, at_ms: int, mg: int) -> None:
        self.from_ms = at_ms  # one by one: a tuple of five would be allocated for each sample of a meal
        self.first = mg
        self.sum = self.widest = 0
        self.n = 1
        if self._sway < 31:
            self.half = max(self._noise, abs(mg) >> self._sway)

    def _may_land(self, at_ms: int) -> bool:
        if self.widest <= self._noise or self._sway < 31 or not self.known:
            return True
        return self._mean() <= self.level + self.half or at_ms - self.left_ms >= _HEAVIER_MS

    def _land(self, at_ms: int) -> None:
        self.level = self._mean()
        self.known = self.quiet = 1
        self.odd_ms = -1
        if self.widest <= self._noise and self._sway == 31:
            self.half = self._noise
        self.widest = 0
        self.follow_ms = self.calm_ms = at_ms

    def _suspicious(self, mg: int) -> bool:
        """What a disturbed HX711 says: 0, all ones, or the level with its sign flipped."""
        ones = mg if mg >= 0 else -mg - 1
        flipped = self.known and self.level > 4 * self._noise and abs(mg + self.level) <= 2 * self._noise
        return (ones & (ones + 1) == 0 and (mg == 0 or ones > 65_535)) or bool(flipped)
