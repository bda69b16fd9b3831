"""Roll samples up into the 15-minute slots of a local day; whole-number arithmetic only.

Samples come in any order and any number of times; equal sets give equal bytes, so a bucket
recomputed after a late event equals one of a rebuild. Also here: what cumulative counters
and bowl plateaus mean, and weights in the units people log. Never fills a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gateway.measure.days import SLOT_MS, day_interval
from gateway.model import Interval, ZonePeriod

__all__ = [
    "BowlBalance",
    "DayRoll",
    "Sample",
    "bowl_balance",
    "counter_increase",
    "mass_mg",
    "merge_intervals",
    "roll_day",
    "split_over_slots",
    "with_sample",
]

_MG_PER_UNIT = {"mg": 1.0, "g": 1e3, "kg": 1e6, "lb": 453_592.37, "oz": 28_349.523125}


@dataclass(frozen=True, slots=True, order=True)
class Sample:
    """One counted thing: ``key`` names it once for ever (device, boot, seq).

    A sample with ``end_ms`` after ``start_ms`` is spread evenly over that time (five minutes
    of motion); an instant (a meal) belongs whole to the slot it begins in.
    """

    key: str
    start_ms: int
    end_ms: int
    value: int


@dataclass(frozen=True, slots=True)
class DayRoll:
    """A day of one series. ``counts``, ``sums`` and ``covered_ms`` have one entry a slot.

    ``squares``, ``least`` and ``most`` are of the samples' whole values that begin in the
    day; None where there is none.
    """

    n: int
    total: int
    squares: int
    least: int | None
    most: int | None
    counts: tuple[int, ...]
    sums: tuple[int, ...]
    covered_ms: tuple[int, ...]


def split_over_slots(sample: Sample, whole: Interval) -> Iterable[tuple[int, int]]:
    """(slot, part) of a spread sample inside the day; parts over all days sum to its value.

    The part up to time t is floor(value (t - start) / length): no remainder is lost and no
    order of slots matters.
    """
    length = sample.end_ms - sample.start_ms
    first = max(sample.start_ms, whole.start_ms)
    last = min(sample.end_ms, whole.end_ms)
    at = first
    if first == sample.start_ms and last == sample.end_ms:
        slot = (first - whole.start_ms) // SLOT_MS
        if last <= whole.start_ms + (slot + 1) * SLOT_MS:  # most records are shorter than a slot
            yield slot, sample.value
            return
    while at < last:
        slot = (at - whole.start_ms) // SLOT_MS
        after = min(whole.start_ms + (slot + 1) * SLOT_MS, last)
        before_part = sample.value * (at - sample.start_ms) // length
        yield slot, sample.value * (after - sample.start_ms) // length - before_part
        at = after


def merge_intervals(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The union of intervals, in order and without overlap; touching ones become one."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        if merged and interval.start_ms <= merged[-1].end_ms:
            merged[-1] = Interval(merged[-1].start_ms, max(merged[-1].end_ms, interval.end_ms))
        else:
            merged.append(interval)
    return tuple(merged)


def roll_day(
    samples: Iterable[Sample], covered: Iterable[Interval], day: str, zones: tuple[ZonePeriod, ...]
) -> DayRoll:
    """One local day of a series from its samples and the times its device was heard.

    Samples outside the day are passed over; a key that comes twice counts once (the copies
    are equal, else the least one by value order stands, so that order cannot matter).
    """
    whole = day_interval(day, zones)
    slots = -(-whole.length_ms // SLOT_MS)
    counts, sums, heard = [0] * slots, [0] * slots, [0] * slots
    unique: dict[str, Sample] = {}
    for sample in samples:
        unique[sample.key] = min(sample, unique.get(sample.key, sample))
    values: list[int] = []
    for sample in unique.values():
        if whole.start_ms <= sample.start_ms < whole.end_ms:
            values.append(sample.value)
            counts[(sample.start_ms - whole.start_ms) // SLOT_MS] += 1
            if sample.end_ms <= sample.start_ms:
                sums[(sample.start_ms - whole.start_ms) // SLOT_MS] += sample.value
        if sample.end_ms > sample.start_ms:
            for slot, part in split_over_slots(sample, whole):
                sums[slot] += part
    for interval in merge_intervals(covered):
        for slot, part in split_over_slots(Sample("", interval.start_ms, interval.end_ms, interval.length_ms), whole):
            heard[slot] += part
    return DayRoll(
        n=len(values),
        total=sum(sums),
        squares=sum(value * value for value in values),
        least=min(values, default=None),
        most=max(values, default=None),
        counts=tuple(counts),
        sums=tuple(sums),
        covered_ms=tuple(heard),
    )


def with_sample(roll: DayRoll, sample: Sample, whole: Interval) -> DayRoll:
    """A day's roll with one more sample that begins in it and whose key is new.

    Equal, byte for byte, to rolling all samples again; sums are whole numbers, so nothing
    drifts. ``whole`` is the day's interval.
    """
    counts, sums = list(roll.counts), list(roll.sums)
    slot = (sample.start_ms - whole.start_ms) // SLOT_MS
    counts[slot] += 1
    parts: Iterable[tuple[int, int]] = ((slot, sample.value),)
    if sample.end_ms > sample.start_ms:
        parts = tuple(split_over_slots(sample, whole))
    added = 0
    for at, part in parts:
        sums[at] += part
        added += part
    return DayRoll(
        n=roll.n + 1,
        total=roll.total + added,
        squares=roll.squares + sample.value**2,
        least=sample.value if roll.least is None else min(roll.least, sample.value),
        most=sample.value if roll.most is None else max(roll.most, sample.value),
        counts=tuple(counts),
        sums=tuple(sums),
        covered_ms=roll.covered_ms,
    )


def counter_increase(readings: Sequence[float | None], *, jitter: float) -> float:
    """How far a cumulative counter ran over its readings; None is a missing one.

    A fall of at most ``jitter`` is noise (the high mark stands). A larger fall whose next
    reading is back at the high mark was a misread; any other is a reset, and the counter has
    run from zero to what it now shows.
    """
    seen = [reading for reading in readings if reading is not None]
    total = 0.0
    mark = seen[0] if seen else 0.0
    for reading, following in pairwise([*seen, None]):
        assert reading is not None
        if reading >= mark:
            total += reading - mark
            mark = reading
        elif reading < mark - jitter and not (following is not None and following >= mark - jitter):
            total += reading
            mark = reading
    return total


@dataclass(frozen=True, slots=True)
class BowlBalance:
    """What left a bowl and what was put in, in the readings' unit, one entry a step."""

    removed: tuple[int, ...]
    refilled: tuple[int, ...]


def bowl_balance(plateaus: Sequence[int], *, threshold: int) -> BowlBalance:
    """Steps between settled weights of a bowl; a step within ``threshold`` is scale noise."""
    steps = [after - before for before, after in pairwise(plateaus)]
    return BowlBalance(
        removed=tuple(-step for step in steps if step < -threshold),
        refilled=tuple(step for step in steps if step > threshold),
    )


def mass_mg(value: float, unit: str | None) -> int | None:
    """A logged weight in mg (avoirdupois pound: 453.59237 g exactly); None without a known unit."""
    factor = _MG_PER_UNIT.get(unit or "")
    return None if factor is None else round(value * factor)
