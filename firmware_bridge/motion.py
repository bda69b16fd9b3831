"""Accelerometer samples to what a pet did in five minutes: scratching, head shaking, levels of activity, rest.

In go samples (ms, x, y, z) in milli-g, 25 or 50 a second; out comes one ``MOTION`` record a
span, as ``(kind, at_ms, values)``. Every 0.32 s the last 1.28 s are looked at:

- how strong the movement beside gravity is (its rms) tells rest and three levels apart;
- whether it swings by itself at 3.6 to 6.3 Hz (autocorrelation at 4 to 7 samples) and across
  gravity more than along it: a hind leg at the collar, or a head that is shaken. Both swing at
  about 4 to 5 Hz, as a trotting dog bounces, so band alone tells nothing: a shake is strong and
  over in three seconds, a scratch is weaker or longer, steps are along gravity;
- movements of seconds between two rests are turning over: ``restless``, and part of the rest.

low + mid + high + rest = worn. A collar that lies still without a breath for 20 min, or 5 where
it has cooled down too, is not worn. Pure, integers only; a sample allocates nothing, a look every 0.32 s some bytes.
"""

from array import array

from firmware_bridge.kinds import MOTION

DETECTOR = 1
"""Release of this algorithm, for the hello: a new number is a change of the instrument."""

SAMPLE_MS = 40
WINDOW = 32
HOP = 8
HOP_MS = HOP * SAMPLE_MS
SPAN_MS = 300_000
GAP_MS = 1_000
"""A longer silence of the sensor was not seen: it is not worn time."""

REST_MG, MID_MG, HIGH_MG = 18, 110, 320
"""Where lying still ends, and the bounds of medium and strong activity: rms beside gravity."""
RHYTHM_MG = 130
SHAKE_MG = 650
LAGS = range(4, 8)
RHYTHM_PERCENT = 40
SWING_PERCENT = -15
ALONG_PERCENT = 58
"""Steps put more than this of their energy along gravity."""
SCRATCH_HOPS = 4
SHAKE_HOPS = 9
SHAKE_EDGE_MS = 440
SCRATCH_EDGE_MS = 320
"""A window sees a strong bout before and after it, a weak one only once it is full of it."""

SETTLE_MS = 20_000
"""So long still after a movement, and the pet lies again."""
TURN_MS = 15_000
"""A longer movement is no turning over."""
BREATH_MG = 6
"""The means of windows lie further apart than this, within ten seconds, on what breathes (simulated: 3 mg
of breath, 40 % of the time; a table: never, with a sensor of 4 mg of noise)."""
OFF_MS, COOL_MS = 1_200_000, 300_000
COOL_MK = 2_000


def root(square: int) -> int:
    """The integer square root."""
    if square < 2:
        return square
    guess, left = 1, square
    while left:  # MicroPython has no bit_length
        left >>= 2
        guess <<= 1
    while True:
        better = (guess + square // guess) >> 1
        if better >= guess:
            return guess
        guess = better


class Motion:
    """One collar.

    Parameters
    ----------
    every_ms : int
        Time between samples: 40, or 20, of which two are averaged.
    span_ms : int
        How long a record speaks of.

    Attributes
    ----------
    worn : bool
        Whether the collar is on an animal now.
    """

    def __init__(self, *, every_ms: int = SAMPLE_MS, span_ms: int = SPAN_MS) -> None:
        if every_ms not in (SAMPLE_MS, SAMPLE_MS >> 1) or span_ms < 10_000:
            raise ValueError(f"every_ms must be 40 or 20 and span_ms 10000 or more, are {every_ms}, {span_ms}")
        self._pairs = every_ms != SAMPLE_MS
        self._span_ms = span_ms
        self._x = array("h", [0] * WINDOW)
        self._y = array("h", [0] * WINDOW)
        self._z = array("h", [0] * WINDOW)
        self._ax = array("h", [0] * WINDOW)
        self._ay = array("h", [0] * WINDOW)
        self._az = array("h", [0] * WINDOW)
        self._swing = array("i", [0] * 12)
        self._at = self._hop = 0
        self._half = 0
        self._hx = self._hy = self._hz = 0
        self._last_ms = self._span_from_ms = -1
        self._mk = self._warm_mk = 0
        self.worn = True
        self._still_ms = 0  # since the last movement
        self._lifeless_ms = 0  # since the last movement or breath
        self._resting = False
        self._turn_ms = 0  # of a movement out of rest, not judged yet
        self._turn = [0, 0, 0]
        self._sums = [0] * 8  # scratch, shake, low, mid, high, rest, restless, worn
        self._run = self._run_gap = self._run_sum = 0
        self._breath = array("i", [0] * 8)

    def temperature(self, mk: int) -> None:
        """What the collar's sensor shows, mK."""
        self._mk = mk

    def feed(self, at_ms: int, x: int, y: int, z: int) -> tuple:  # type: ignore[type-arg]
        """One sample in milli-g; at the end of a span its record, else nothing."""
        if self._last_ms < 0:
            self._span_from_ms = at_ms
        elif at_ms < self._last_ms:
            return ()
        told = ()
        if at_ms - self._span_from_ms >= self._span_ms:
            told = self._record(self._span_from_ms + self._span_ms)
            if at_ms - self._span_from_ms >= self._span_ms:  # silence: begin anew
                self._span_from_ms = at_ms
        if self._last_ms < 0 or at_ms - self._last_ms > GAP_MS:
            self._begin(x, y, z)
        self._last_ms = at_ms
        if self._pairs:
            self._half ^= 1
            if self._half:
                self._hx, self._hy, self._hz = x, y, z
                return told
            x, y, z = (x + self._hx) >> 1, (y + self._hy) >> 1, (z + self._hz) >> 1
        at = self._at
        self._x[at], self._y[at], self._z[at] = x, y, z
        self._at = (at + 1) % WINDOW
        self._hop += 1
        if self._hop == HOP:
            self._hop = 0
            self._look()
        return told

    def _begin(self, x: int, y: int, z: int) -> None:
        """After a silence: as if it had lain as it lies now."""
        for i in range(WINDOW):
            self._x[i], self._y[i], self._z[i] = x, y, z
        self._hop = self._half = self._breath[6] = 0

    # --- a window -----------------------------------------------------------------------

    def _look(self) -> None:
        """The last 1.28 s, every 0.32 s."""
        energy = self._energy()
        mean = energy * 16 // WINDOW
        if mean < REST_MG * REST_MG:
            level = 0
        elif mean < MID_MG * MID_MG:
            level = 1
        else:
            level = 2 if mean < HIGH_MG * HIGH_MG else 3
        self._judge_worn(level)
        if not self.worn:
            return
        self._count(level)
        loud = 0
        if mean >= RHYTHM_MG * RHYTHM_MG and self._across(energy) and self._rhythmic(energy):
            loud = root(mean)
        self._bout(loud)

    def _energy(self) -> int:
        """Fill the window beside gravity, oldest first, in units of 4 mg; the sum of its squares."""
        xs, ys, zs, ax, ay, az = self._x, self._y, self._z, self._ax, self._ay, self._az
        mx = sum(xs) // WINDOW
        my = sum(ys) // WINDOW
        mz = sum(zs) // WINDOW
        self._hold_breath(mx, my, mz)
        energy = 0
        at = self._at
        for i in range(WINDOW):
            x, y, z = (xs[at] - mx) >> 2, (ys[at] - my) >> 2, (zs[at] - mz) >> 2
            ax[i], ay[i], az[i] = x, y, z
            energy += x * x + y * y + z * z
            at = (at + 1) % WINDOW
        return energy

    def _across(self, energy: int) -> bool:
        """Whether enough of the movement lies across gravity."""
        gx, gy, gz = sum(self._x) >> 8, sum(self._y) >> 8, sum(self._z) >> 8  # eighths of the mean
        length = root(gx * gx + gy * gy + gz * gz)
        if not length:
            return True
        ax, ay, az = self._ax, self._ay, self._az
        along = 0
        for i in range(WINDOW):
            part = (ax[i] * gx + ay[i] * gy + az[i] * gz) // length
            along += part * part
        return along * 100 <= energy * ALONG_PERCENT

    def _rhythmic(self, energy: int) -> bool:
        """Whether the window looks like itself 4 to 7 samples later, and unlike itself half of that later."""
        best = lag = 0
        for candidate in LAGS:
            alike = self._alike(candidate, energy)
            if alike > best:
                best, lag = alike, candidate
        if best < RHYTHM_PERCENT:
            return False
        return self._alike(lag >> 1, energy) <= SWING_PERCENT or self._alike((lag + 1) >> 1, energy) <= SWING_PERCENT

    def _alike(self, lag: int, energy: int) -> int:
        """The autocorrelation at a lag, percent."""
        ax, ay, az = self._ax, self._ay, self._az
        same = 0
        for i in range(lag, WINDOW):
            j = i - lag
            same += ax[i] * ax[j] + ay[i] * ay[j] + az[i] * az[j]
        return same * 100 // (energy * (WINDOW - lag) // WINDOW or 1)

    # --- bouts --------------------------------------------------------------------------

    def _bout(self, loud: int) -> None:
        """A run of rhythmic windows goes on, or is over and judged by its length and strength."""
        if loud:
            mean = self._run_sum // self._run if self._run else loud
            if loud * 2 > mean * 5 or loud * 5 < mean * 2:
                self._judge()  # one ends, another begins: a dog that has scratched shakes itself
            self._run += 1 + self._run_gap
            self._run_sum += loud * (1 + self._run_gap)
            self._run_gap = 0
        elif self._run:
            if self._run_gap:
                self._judge()
            else:
                self._run_gap = 1

    def _judge(self) -> None:
        """A bout is over; its length and strength say what it was."""
        hops = self._run
        if hops:
            if self._run_sum >= SHAKE_MG * hops and hops <= SHAKE_HOPS:
                self._sums[1] += hops * HOP_MS - SHAKE_EDGE_MS if hops > 2 else HOP_MS
            elif hops >= SCRATCH_HOPS:
                self._sums[0] += hops * HOP_MS + SCRATCH_EDGE_MS
        self._run = self._run_gap = self._run_sum = 0

    # --- rest and activity --------------------------------------------------------------

    def _count(self, level: int) -> None:
        """Put 0.32 s to its level; what moves out of a rest waits until it is known to be turning over."""
        self._sums[7] += HOP_MS
        if level == 0:
            self._still_ms += HOP_MS
            self._sums[5] += HOP_MS
            if self._still_ms >= SETTLE_MS:
                self._turned_over()
                self._resting = True
            return
        self._still_ms = 0
        if not self._resting:
            self._sums[1 + level] += HOP_MS
            return
        self._turn_ms += HOP_MS
        self._turn[level - 1] += HOP_MS
        if self._turn_ms > TURN_MS:
            self._resting = False
            self._turn_ms = 0
            for index in range(3):
                self._sums[2 + index] += self._turn[index]
                self._turn[index] = 0

    def _turned_over(self) -> None:
        """The waiting movement was turning over: a part of the rest."""
        self._sums[5] += self._turn_ms
        self._sums[6] += self._turn_ms
        self._turn_ms = 0
        for index in range(3):
            self._turn[index] = 0

    # --- worn ---------------------------------------------------------------------------

    def _hold_breath(self, mx: int, my: int, mz: int) -> None:
        """Least and greatest of the window's mean on each axis, over ten seconds."""
        seen = self._breath
        if not seen[6]:
            seen[0] = seen[1] = mx
            seen[2] = seen[3] = my
            seen[4] = seen[5] = mz
        if mx < seen[0]:
            seen[0] = mx
        elif mx > seen[1]:
            seen[1] = mx
        if my < seen[2]:
            seen[2] = my
        elif my > seen[3]:
            seen[3] = my
        if mz < seen[4]:
            seen[4] = mz
        elif mz > seen[5]:
            seen[5] = mz
        seen[6] += 1

    def _judge_worn(self, level: int) -> None:
        if level:
            self._lifeless_ms = 0
            self.worn = True
            if self._mk:
                self._warm_mk = self._mk if not self._warm_mk else self._warm_mk + ((self._mk - self._warm_mk) >> 4)
            return
        self._lifeless_ms += HOP_MS
        seen = self._breath
        if seen[6] * HOP_MS >= 10_000:
            if max(seen[1] - seen[0], seen[3] - seen[2], seen[5] - seen[4]) >= BREATH_MG:
                self._lifeless_ms = 0
            seen[6] = 0
        cool = self._warm_mk and self._mk and self._mk < self._warm_mk - COOL_MK
        if self._lifeless_ms >= (COOL_MS if cool else OFF_MS):
            self.worn = False
            self._resting = False

    # --- out ----------------------------------------------------------------------------

    def _record(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        """The span's record; what still waits counts as it looks now."""
        self._turned_over()
        span_ms = at_ms - self._span_from_ms
        sums = self._sums
        scratch, shake = min(span_ms, sums[0]), min(span_ms, sums[1])
        over = max(0, sums[7] - span_ms)  # a hop that reaches over the end
        for index in (5, 2, 3, 4):
            cut = min(over, sums[index])
            sums[index] -= cut
            over -= cut
        worn = sums[2] + sums[3] + sums[4] + sums[5]
        values = (span_ms, scratch, shake, sums[2], sums[3], sums[4], sums[5], min(sums[6], sums[5]), worn)
        for index in range(8):
            sums[index] = 0
        self._span_from_ms = at_ms
        return ((MOTION, at_ms, values),)
