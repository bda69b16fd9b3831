"""Load-cell samples to what happened at a bowl: meals, refills, tare, plateaus.

In go samples (ms, mg), ten a second or one when it changes; out come Wire 1 records as
``(kind, at_ms, values)``, the arguments of ``Outbox.put``. A visit is a run of movements with
less than ``gap_ms`` of quiet between them. What left the bowl is the plateau before minus the
plateau after, never a difference to zero: drift between visits moves no amount, negative
levels are not clamped. A rise within a visit is a refill and begins a new one.

- A bowl lifted, washed and put back is one refill of what it then holds more, or less.
- Zero is set by the button, or where a meal ends within the band in which meals end: never at
  a start, and no amount depends on it.
- Too little to tell from noise (below ``least_mg``) is nothing, and what goes between visits
  (drying, drift) is followed and not counted.

Pure, integers only; the same samples and options give the same records, also where the state
is saved and restored between any two samples. Runs on CPython and MicroPython.
"""

from firmware_bridge.kinds import (
    DAY_MS,
    MEAL,
    PLATEAU,
    REFILL,
    TARE,
    TEMPERATURE_MOVED,
    TOO_FAST,
    UNSETTLED,
    ZERO_DOUBTFUL,
)
from firmware_bridge.settle import BUSY, MOVED, NOTHING, SETTLED, TIMES, Settle, pack_state, unpack_state

MOVED_MK = 2_000
"""A load cell of a few kg changes by a few tenths of a gram over so much."""
HAND_MG = 25_000
"""Less than this a quick tongue may take; more, faster than ``fastest_mg_s``, was a hand."""
LIFTED_MG = 60_000
"""So far below its empty level, or below what it shows before and after, no bowl stands on the cell."""
LIFTED_UNKNOWN_MG = 100_000
BAND_MG = 3_000
DRIFT_MG_DAY = 10_000
BAND_MOST_MG = 15_000
"""Meals end on an empty bowl within the band around the empty level: 3 g, and the cell's drift since."""
LEARNED = 3
FORGET_AFTER = 12
"""So many meals above the band, and the lowest of their ends is the empty level."""
RETARE_MG = 500
PLATEAU_MS = 900_000
RESTART_MG = 3_000
"""What a few hours of drift look like: less than that over a restart is no meal."""

_FIELDS = (
    "base", "visiting", "began_ms", "sign", "turn", "lowest", "end_ms", "after_ms", "flags", "base_mk", "mk",
    "restarted", "away", "away_base", "away_began_ms", "away_end_ms", "empty", "empties", "empty_ms", "at_empty",
    "floor", "floors", "zero", "wanted", "told_ms",
)  # fmt: skip
_TIMES = ("began_ms", "end_ms", "after_ms", "away_began_ms", "away_end_ms", "empty_ms", "told_ms")


class Scale:
    """A bowl on a load cell.

    Parameters
    ----------
    noise_mg : int
        Peak to peak of the quiet bowl in its place; about 1 g for an HX711 in the field.
    least_mg : int
        The smallest change that is told.
    gap_ms : int
        So much quiet ends a visit.
    settle_ms : int
        So much quiet is a plateau.
    hold_ms : int
        Above 0 where the stream may send on change only: a value that stood for so long, and
        clearly longer than values follow each other, is a plateau.
    low_mg, high_mg : int
        Samples outside are set aside.
    fastest_mg_s : int
        25 g or more that left faster carry ``TOO_FAST``. Dogs eat up to about 7 g a second; where only
        cats eat, 250 is right.
    plateaus : bool
        Whether ``PLATEAU`` records come too: the raw level after each visit and every 15 min.

    Attributes
    ----------
    rejected : int
        Samples set aside.
    level_mg : int or None
        The last settled level, as the cell shows it.
    zero : int
        The level that was tared, mg.
    """

    base: int  # the plateau before the visit
    visiting: int  # 1 while a visit lasts
    began_ms: int
    sign: int  # -1 the visit takes away, 1 it adds, 0 neither yet
    turn: int  # its lowest plateau, or its highest where it adds
    lowest: int  # what two samples in a row did not pass since the last plateau
    end_ms: int  # when that plateau began
    after_ms: int  # when it was left again; -1 not
    flags: int
    base_mk: int
    mk: int  # the temperature, 0 not known
    restarted: int  # 1 while the visit holds a restart
    away: int  # 1 while the bowl is lifted off, or somebody took out very much
    away_base: int
    away_began_ms: int
    away_end_ms: int
    empty: int  # the level on which meals end
    empties: int  # how many did, up to LEARNED
    empty_ms: int  # when the last one did
    at_empty: int  # 1 while it stands there
    floor: int  # the lowest end of the last meals
    floors: int  # how many those are
    zero: int
    wanted: int  # 1 after the button, until it is still
    told_ms: int  # when the last PLATEAU was told

    def __init__(
        self,
        *,
        noise_mg: int = 1_000,
        least_mg: int = 1_000,
        gap_ms: int = 30_000,
        settle_ms: int = 3_000,
        hold_ms: int = 0,
        low_mg: int = -2_000_000,
        high_mg: int = 20_000_000,
        fastest_mg_s: int = 8_000,
        plateaus: bool = False,
    ) -> None:
        if least_mg < 1 or gap_ms < 1 or fastest_mg_s < 1:
            raise ValueError(
                f"least_mg, gap_ms and fastest_mg_s must be 1 or more, are {least_mg}, {gap_ms}, {fastest_mg_s}"
            )
        self._settle = Settle(noise_mg, settle_ms, hold_ms, low_mg, high_mg)
        self._noise = noise_mg
        self._least = least_mg
        self._gap_ms = gap_ms
        self._fastest = fastest_mg_s
        self._plateaus = plateaus
        for name in _FIELDS:
            setattr(self, name, -1 if name.endswith("_ms") else 0)

    @property
    def rejected(self) -> int:
        return self._settle.rejected

    @property
    def level_mg(self) -> int | None:
        return self._settle.level if self._settle.known else None

    # --- in -----------------------------------------------------------------------------

    def feed(self, at_ms: int, mg: int) -> tuple:  # type: ignore[type-arg]
        """One sample; the records it completes, almost always none.

        Parameters
        ----------
        at_ms : int
            Milliseconds that do not go back: uptime on a device, UTC at the hub.
        mg : int
            What the cell shows.
        """
        settle = self._settle
        if settle.refuse(at_ms, mg):
            return NOTHING
        told = self._slow(at_ms, mg) if settle.holds else NOTHING
        higher = max(mg, settle.last_mg)
        what = settle.take(at_ms, mg)
        if what == BUSY:
            self.lowest = min(self.lowest, higher)
        elif what == MOVED:
            self._moved(settle.left_ms)
        elif what == SETTLED:
            told += self._settled(at_ms)
        elif settle.resting:
            told += self._rest(at_ms)
        return told

    def tick(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        """Time passes without a sample: what is due. A steady stream needs no ticks."""
        settle = self._settle
        return self._slow(at_ms, None) if settle.holds and at_ms >= settle.last_ms else NOTHING

    def temperature(self, mk: int) -> None:
        """What the sensor beside the cell shows, mK."""
        self.mk = mk

    def tare(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        """The button: what stands there now is zero, as soon as it stands still."""
        self.wanted = 1
        return self._rest(at_ms) if self._settle.resting else NOTHING

    # --- state --------------------------------------------------------------------------

    def save(self) -> bytes:
        """The whole state, 241 bytes."""
        return pack_state(self._settle, self, _FIELDS)

    def restore(self, raw: bytes) -> None:
        """Go on where ``save`` was; on a scale made with the same options.

        Raises
        ------
        ValueError
            The bytes are no state of this version.
        """
        unpack_state(raw, self._settle, self, _FIELDS)

    def reboot(self, at_ms: int) -> None:
        """After ``restore``, where uptime began anew: what changed meanwhile is one visit.

        Nothing is tared. The visit carries ``UNSETTLED``, begins now at the earliest, and
        counts only beyond what a few hours of drift look like.
        """
        settle = self._settle
        if settle.last_ms < 0:
            return
        shift_ms = at_ms - settle.last_ms
        for holder, names in ((settle, TIMES), (self, _TIMES)):
            for name in names:
                if getattr(holder, name) >= 0:
                    setattr(holder, name, max(0, getattr(holder, name) + shift_ms))
        if settle.known:
            settle.interrupt()
            if not self.visiting:
                self._moved(at_ms)
            self.restarted = 1

    # --- what happens -------------------------------------------------------------------

    def _slow(self, at_ms: int, mg: int | None) -> tuple:  # type: ignore[type-arg]
        """Before the next value of a slow stream: what the last one was while it stood."""
        settle = self._settle
        told: tuple = NOTHING  # type: ignore[type-arg]
        was_quiet = settle.quiet
        if settle.stood(at_ms, mg):
            if was_quiet:
                self._moved(settle.left_ms)
            told = self._settled(at_ms)
        return told + self._rest(at_ms) if settle.resting else told

    def _moved(self, at_ms: int) -> None:
        """The plateau is left: a visit begins, or goes on."""
        if self.visiting:
            if self.after_ms < 0:
                self.after_ms = at_ms
            return
        if self.at_empty:
            self.empty, self.empty_ms = self._settle.before, at_ms
        self.visiting = 1
        self._begin(self._settle.before, at_ms)

    def _begin(self, base: int, began_ms: int) -> None:
        self.base = self.turn = self.lowest = base
        self.began_ms = self.end_ms = began_ms
        self.after_ms = -1
        self.sign = self.restarted = 0
        self.base_mk = self.mk
        self.flags = UNSETTLED if self._settle.half > self._noise else 0

    def _settled(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        """A new plateau: further the same way, back, or back so far that it is another event."""
        settle = self._settle
        if not self.visiting:
            return NOTHING  # the first plateau of all
        if settle.half > self._noise:
            self.flags |= UNSETTLED
        level = settle.level
        told: tuple = NOTHING  # type: ignore[type-arg]
        was_lifted = self.lowest < min(self.turn, level) - LIFTED_MG
        self.lowest = level
        if was_lifted and not self.away:
            told = self._tell(at_ms, self.turn) if self.sign else NOTHING
            self.base = self.turn
            return told + self._put_back(at_ms, level)
        if self.away and level - self.base >= (self.away_base - self.base) >> 1:
            # The lifted bowl is back, however long it was away.
            self.away, self.base = 0, self.away_base
            return self._put_back(at_ms, level)
        if self.sign and (self.turn - level) * self.sign >= self._least:
            if not self.away and self._lifted(self.turn):
                return self._put_back(at_ms, level)
            after_ms = self.began_ms if self.after_ms < 0 else self.after_ms
            told = self._tell(at_ms, self.turn)
            self._begin(self.turn, after_ms)
        moved = level - self.base
        if not self.sign and abs(moved) >= self._least:
            self.sign = 1 if moved > 0 else -1
        if not self.sign or (level - self.turn) * self.sign >= 0:
            self.turn, self.end_ms, self.after_ms = level, settle.from_ms, -1
        return told

    def _rest(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        """Quiet goes on: a visit may be over, a tare be due, a plateau be told."""
        settle = self._settle
        told: tuple = NOTHING  # type: ignore[type-arg]
        if self.visiting:
            if at_ms - settle.from_ms < self._gap_ms:
                return told
            told = self._close(at_ms)
        if self.wanted:
            self.wanted = 0
            self.empty, self.empties, self.empty_ms = settle.level, LEARNED, at_ms
            self.at_empty, self.floors = 1, 0
            self.zero = settle.level
            told += ((TARE, at_ms, ()),)
        if self._plateaus and (told or self.told_ms < 0 or at_ms - self.told_ms >= PLATEAU_MS):
            self.told_ms = at_ms
            quality = UNSETTLED if settle.half > self._noise else 0
            if self.empties < LEARNED:
                quality |= ZERO_DOUBTFUL
            told += ((PLATEAU, at_ms, (settle.level, quality)),)
        return told

    def _close(self, at_ms: int) -> tuple:  # type: ignore[type-arg]
        level = self._settle.level
        self.visiting = 0
        if not self.away and self._lifted(level):
            self.away = 1
            self.away_base, self.away_began_ms, self.away_end_ms = self.base, self.began_ms, self.end_ms
            return NOTHING
        told = self._tell(at_ms, level)
        if told and told[-1][0] == MEAL and not told[-1][2][3] & TOO_FAST:
            told += self._learn(at_ms, level)
        elif told:
            self.at_empty = 0
        return told

    def _tell(self, at_ms: int, level: int) -> tuple:  # type: ignore[type-arg]
        """The record of what went from ``base`` to ``level``; nothing where that is too little."""
        moved = level - self.base
        if abs(moved) < self._least + (RESTART_MG if self.restarted else 0):
            return NOTHING
        told: tuple = NOTHING  # type: ignore[type-arg]
        if self.away:
            # It was not lifted after all: somebody took out so much.
            self.away = 0
            removed_mg = self.away_base - self.base
            lasted_ms = min(DAY_MS, self.away_end_ms - self.away_began_ms)
            told = ((MEAL, at_ms, (self.away_began_ms, lasted_ms, removed_mg, TOO_FAST)),)
        if moved > 0:
            return told + ((REFILL, at_ms, (moved,)),)
        quality = self.flags | (UNSETTLED if self.restarted else 0)
        if abs(self.mk - self.base_mk) >= MOVED_MK and self.base_mk:
            quality |= TEMPERATURE_MOVED
        if self._fast():
            quality |= TOO_FAST
        if self.empties >= LEARNED and level < self.empty - self._band(at_ms):
            quality |= ZERO_DOUBTFUL
        lasted_ms = min(DAY_MS, self.end_ms - self.began_ms)
        return told + ((MEAL, at_ms, (self.began_ms, lasted_ms, -moved, quality)),)

    def _put_back(self, at_ms: int, level: int) -> tuple:  # type: ignore[type-arg]
        """A bowl was lifted and stands again: what it holds more, or less."""
        self.at_empty = 0
        moved = level - self.base
        self._begin(level, self._settle.from_ms)
        return ((REFILL, at_ms, (moved,)),) if abs(moved) >= self._least else NOTHING

    def _fast(self) -> bool:
        removed_mg = self.base - self.turn
        return removed_mg >= HAND_MG and removed_mg * 1000 > self._fastest * (self.end_ms - self.began_ms)

    def _lifted(self, level: int) -> bool:
        """Whether a level lies so low that no bowl stands there."""
        if self.sign >= 0:
            return False
        if self.empties >= LEARNED:
            return level < self.empty - BAND_MOST_MG - LIFTED_MG
        return self.base - level >= LIFTED_UNKNOWN_MG and self._fast()

    # --- the empty bowl -----------------------------------------------------------------

    def _band(self, at_ms: int) -> int:
        hours = max(0, at_ms - self.empty_ms) // 3_600_000
        return min(BAND_MOST_MG, BAND_MG + hours * DRIFT_MG_DAY // 24)

    def _learn(self, at_ms: int, level: int) -> tuple:  # type: ignore[type-arg]
        """A meal ended here: if this is the empty bowl, zero may follow it."""
        band = self._band(at_ms)
        self.floor = min(self.floor, level) if self.floors else level
        self.floors += 1
        if not self.empties or level < self.empty - band:
            self.empties = 0
        elif level > self.empty + band:
            self.at_empty = 0
            if self.floors < FORGET_AFTER:
                return NOTHING
            self.empties, level = 0, self.floor
        self.empty, self.empty_ms, self.floors = level, at_ms, 0
        self.empties = min(LEARNED, self.empties + 1)
        self.at_empty = 1 if level == self._settle.level else 0
        if self.empties < LEARNED or not self.at_empty or abs(level - self.zero) < RETARE_MG:
            return NOTHING
        self.zero = level
        return ((TARE, at_ms, ()),)
