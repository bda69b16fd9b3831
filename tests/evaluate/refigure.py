"""Figures computed again from day records alone, by code that shares nothing with the product.

It follows CONTRACTS (Verdict, Time) and the statistics named there: hourly profile, winsorised
levels, AR(1) with the small-sample correction, Student's t on the log ratio. Only numpy and
scipy are used; a record is what SQLite holds.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from scipy.special import stdtrit

__all__ = [
    "Day",
    "Redone",
    "Step",
    "at_hour",
    "compare_again",
    "days_compared",
    "days_of",
    "hours_of",
    "local_date",
    "local_time",
    "midnight",
    "nights_of",
    "onset_again",
    "past_rank",
    "ranked_verdict",
    "rests_on_one_day",
]

HOUR, SLOT = 3_600_000, 900_000


def local_date(at_ms: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).date().isoformat()


def local_time(at_ms: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).strftime("%H:%M")


def midnight(day: str, zone: ZoneInfo) -> int:
    """The instant a local day begins."""
    return at_hour(day, 0, zone)


def at_hour(day: str, hour: int, zone: ZoneInfo) -> int:
    """The instant of a whole hour on a local day's wall clock."""
    return round(datetime.fromisoformat(f"{day}T{hour:02d}:00:00").replace(tzinfo=zone).timestamp() * 1000)


def plus(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def days_of(first: str, last: str) -> list[str]:
    """Every local date from ``first`` to ``last``."""
    return [plus(first, n) for n in range((date.fromisoformat(last) - date.fromisoformat(first)).days + 1)]


@dataclass(frozen=True, eq=False)
class Day:
    """A stored day row: quarter hours from ``start_ms`` on, amounts and milliseconds heard.

    Two are one only if they are the same object, so that looking one up costs nothing.
    """

    series: str
    date: str
    start_ms: int
    end_ms: int
    sums: tuple[int, ...]
    covered: tuple[int, ...]

    @classmethod
    def unpacked(cls, series: str, day: str, row: tuple[int, int, bytes, bytes]) -> Day:
        """From the columns start_ms, end_ms, sums, covered."""
        start_ms, end_ms, sums, covered = row
        return cls(
            series, day, start_ms, end_ms,
            struct.unpack(f"<{len(sums) // 8}q", sums), struct.unpack(f"<{len(covered) // 4}i", covered),
        )  # fmt: skip

    @property
    def total(self) -> int:
        return sum(self.sums)


@lru_cache(maxsize=4096)
def _slot_hours(start_ms: int, count: int, zone: ZoneInfo) -> np.ndarray:
    """The local hour each quarter hour of a day lies in."""
    starts = (datetime.fromtimestamp((start_ms + slot * SLOT) / 1000, UTC) for slot in range(count))
    return np.array([start.astimezone(zone).hour for start in starts])


@lru_cache(maxsize=8192)
def hours_of(row: Day, zone: ZoneInfo, until_ms: int) -> np.ndarray:
    """[3, 24]: amount, heard ms and existing ms of each local hour of a day up to ``until_ms``."""
    starts = row.start_ms + SLOT * np.arange(len(row.sums), dtype=np.int64)
    exists = np.maximum(np.minimum(np.minimum(starts + SLOT, row.end_ms), until_ms) - starts, 0)
    heard = np.minimum(np.array(row.covered), exists)
    hours = _slot_hours(row.start_ms, len(row.sums), zone)
    return np.stack([np.bincount(hours, weights=of, minlength=24) for of in (np.array(row.sums), heard, exists)])


@dataclass(frozen=True)
class Redone:
    """A comparison computed again. ``verdict`` is up, down, usual or cannot_tell."""

    now: float
    usual: float
    low: float
    high: float
    smallest: float
    verdict: str
    days: int
    usual_days: int

    @property
    def change(self) -> float:
        return self.now / self.usual - 1.0


def nights_of(days: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Nights 21:00-07:00 dated by their evening, of every date from the first stored to the last.

    An evening or a morning without a row was there, and nothing of it was heard; after the last row nothing was.
    """
    found, newest = {}, max(days, default="")
    unheard = np.zeros((3, 24))
    unheard[2] = HOUR
    for day in days_of(min(days), newest) if days else ():
        night = np.zeros((3, 24))
        night[:, 21:] = days.get(day, unheard)[:, 21:]
        if day < newest:
            night[:, :7] = days.get(plus(day, 1), unheard)[:, :7]
        found[day] = night
    return found


def _levels(index: np.ndarray, weekend: np.ndarray) -> tuple[float, float, np.ndarray]:
    drawn = _drawn_in(index)
    n, ends = index.size, int(weekend.sum())
    level = float(drawn.mean())
    if min(ends, n - ends) >= 6:
        on, off = drawn[weekend], drawn[~weekend]
        error = on.var() / (ends - 1) + off.var() / (n - ends - 1)
        if (on.mean() - off.mean()) ** 2 > max(4.0 * error, 1e-18 * level**2):
            return float(off.mean()), float(on.mean()), drawn
    return level, level, drawn


def _drawn_in(values: np.ndarray) -> np.ndarray:
    ordered = np.sort(values)
    middle = float(np.median(ordered))
    if middle <= 0:
        return values
    logs = np.log(ordered[ordered > 0])
    quarters = logs[(3 * logs.size) // 4] - logs[logs.size // 4]
    spread = max(1.4826 * float(np.median(np.abs(logs - np.median(logs)))), float(quarters) / 1.349)
    reach = math.exp(max(3 * spread, 0.5))
    return np.clip(values, middle / reach, middle * reach)


def _memory(index: np.ndarray, ordinals: np.ndarray, weekend: np.ndarray) -> tuple[float, float, float, float, float]:
    """(weekday level, weekend level, spread, phi, degrees of freedom)."""
    weekday, at_weekends, drawn = _levels(index, weekend)
    level = np.where(weekend, at_weekends, weekday)
    relative = np.divide(drawn, level, out=np.ones(index.size), where=level > 0) - 1.0
    n, fitted = index.size, 1 + (weekday != at_weekends)
    follows = np.diff(ordinals) == 1
    pairs, square, phi = int(follows.sum()), float(relative @ relative) / max(n, 1), 0.0
    if pairs >= 8 and square > 0:
        raw = float((relative[1:] * follows) @ relative[:-1]) / pairs / square
        phi = min(max((pairs * raw + 1) / (pairs - 3), 0.0), 0.9)
    absorbed = min(((1 + phi) / (1 - phi) + fitted - 1) / n, 0.75)
    spread = max(math.sqrt(square) / math.sqrt(1 - absorbed), 0.05)
    of_spread = 2 * (1 + phi**2) / (n * (1 - phi**2))
    freedom = max(2 / (of_spread + (3 / n if phi > 0 else 0.0)) - fitted, 3.0)
    return weekday, at_weekends, spread, phi, freedom


@dataclass(frozen=True)
class _Laid:
    """Days laid out: window and baseline dates, and what each day held of what it should."""

    dates: list[str]
    observed: np.ndarray
    expected: np.ndarray
    share: np.ndarray
    per_day: float
    used: np.ndarray
    base: np.ndarray
    begins: str

    @property
    def ordinals(self) -> np.ndarray:
        return np.array([date.fromisoformat(day).toordinal() for day in self.dates])

    @property
    def weekend(self) -> np.ndarray:
        return (self.ordinals + 6) % 7 >= 5


def _lay(
    rows: dict[str, Day], first: str, last: str, *, zone: ZoneInfo, until_ms: int, night: bool,
    factors: dict[str, float] | None, base: set[str],
) -> _Laid | None:  # fmt: skip
    whole = _whole(rows, zone=zone, until_ms=until_ms, night=night, factors=factors)
    dates = sorted(whole)
    is_base = np.array([day < first and day in base for day in dates], dtype=bool)
    used = np.array([first <= day <= last for day in dates], dtype=bool)
    if not is_base.any() or not used.any():
        return None
    observed, expected, per_day = _exposed(np.stack([whole[day] for day in dates]), is_base)
    if per_day <= 0:
        return None
    return _Laid(dates, observed, expected, expected / per_day, per_day, used, is_base, min(rows))


def _exposed(cube: np.ndarray, is_base: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """(observed, expected by the baseline's hourly profile, the profile's day) of days laid out by local hours."""
    amount, heard, exists = cube[:, 0], cube[:, 1], cube[:, 2]
    half = (heard * 2 >= exists) & (exists > 0)
    hours = half[is_base].sum(axis=0) * 2 >= is_base.sum()
    taken = half & hours
    amount, heard = np.where(taken & (amount >= 1e-9), amount, 0.0), np.where(taken, heard, 0)
    base_heard = heard[is_base].sum(axis=0)
    profile = np.divide(amount[is_base].sum(axis=0), base_heard, out=np.zeros(24), where=base_heard > 0)
    return amount.sum(axis=1), heard @ profile, float(profile[hours].sum() * HOUR)


LAG, BACK, LEAST, FIRM = 7, 56, 21, 28
"""The contract's numbers: 56 days that end 7 before a window, right before it while fewer than 28 would be left."""


def days_compared(
    rows: dict[str, Day], first: str, last: str, *, zone: ZoneInfo, until_ms: int,
    night: bool = False, factors: dict[str, float] | None = None, since: str = "",
) -> tuple[set[str], set[str]]:  # fmt: skip
    """(the window's days, the baseline's) of everything stored: heard for at least 60 %, none before ``since``.

    ``since`` is the last day on which the measuring broke off: grams of another food before it are no baseline.
    """
    length = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    heard = _whole(rows, zone=zone, until_ms=until_ms, night=night, factors=factors)
    used = {day for day in heard if first <= day <= last}
    reach, needed = max(BACK, length), min(max(length, LEAST), BACK)

    def between(lag: int) -> set[str]:
        return {day for day in heard if day >= since and plus(first, -lag - reach) <= day < plus(first, -lag)}

    base = between(LAG)
    return used, base if len(base) >= max(FIRM, needed) else between(0)


def _whole(
    rows: dict[str, Day], *, zone: ZoneInfo, until_ms: int, night: bool, factors: dict[str, float] | None
) -> dict[str, np.ndarray]:  # fmt: skip
    """The days, or nights, that were heard for at least 60 % of what exists of them."""
    days = {day: hours_of(row, zone, until_ms) for day, row in rows.items()}
    if factors is not None:
        days = {day: hours * np.array([[factors[day]], [1], [1]]) for day, hours in days.items() if day in factors}
    if night:
        days = nights_of(days)
    sums = np.stack(list(days.values()))[:, 1:].sum(axis=2) if days else np.zeros((0, 2))
    return {
        day: hours
        for (day, hours), (heard, exists) in zip(days.items(), sums.tolist(), strict=True)
        if exists > 0 and heard >= 0.6 * exists
    }


def compare_again(
    rows: dict[str, Day], first: str, last: str, *, base: set[str], zone: ZoneInfo, until_ms: int,
    night: bool = False, factors: dict[str, float] | None = None, relevance: float = 0.25,
) -> Redone | None:  # fmt: skip
    """The comparison of ``first`` .. ``last`` with the days of ``base``; None where it cannot be made of them."""
    laid = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base)
    if laid is None:
        return None
    found = _estimated(laid, laid.used)
    if found is None or found.ratio <= 0.0:
        return None
    ratio, error, freedom = found.ratio, found.error, found.freedom
    reach, critical = float(stdtrit(freedom, 0.95)) * error, float(stdtrit(freedom, 0.975)) * error
    low, high = ratio * math.exp(-reach) - 1, ratio * math.exp(reach) - 1
    verdict = "cannot_tell"
    if abs(math.log(ratio)) > critical:
        verdict = "up" if ratio > 1 else "down"
    elif low >= -relevance and high <= relevance:
        verdict = "usual"
    smallest = math.expm1(critical + float(stdtrit(freedom, 0.8)) * error)
    return Redone(
        ratio * found.usual, found.usual, low, high, smallest, verdict, int(laid.used.sum()), int(laid.base.sum())
    )


@dataclass(frozen=True)
class _Estimated:
    """Observed over expected of some days, its standard error on the log scale, and what they stand on."""

    ratio: float
    error: float
    freedom: float
    usual: float
    spread: float


def _estimated(laid: _Laid, used: np.ndarray) -> _Estimated | None:
    base_rows = laid.base & (laid.expected > 0)
    index = laid.observed[base_rows] / laid.expected[base_rows]
    weekday, at_weekends, spread, phi, freedom = _memory(index, laid.ordinals[base_rows], laid.weekend[base_rows])
    level = np.where(laid.weekend, at_weekends, weekday)
    expected = laid.expected * level
    total = float(expected[used].sum())
    if total <= 0.0:
        return None
    error = spread * math.sqrt(_factor(laid, base_rows, used, expected, phi, split=weekday != at_weekends))
    usual = laid.per_day * float(level[used].mean())
    return _Estimated(float(laid.observed[used].sum()) / total, error, freedom, usual, spread)


def rests_on_one_day(
    rows: dict[str, Day], first: str, last: str, *, base: set[str], zone: ZoneInfo, until_ms: int,
    night: bool = False, factors: dict[str, float] | None = None,
) -> bool:  # fmt: skip
    """Whether a difference hangs on one wild day: 4 spreads beyond the others' median, not the last, nothing without."""
    laid = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base)
    found = None if laid is None else _estimated(laid, laid.used)
    if laid is None or found is None:
        return False
    used = np.flatnonzero(laid.used & (laid.expected > 0))
    if used.size < 4:
        return False
    index, rising = laid.observed[used] / laid.expected[used], found.ratio > 1
    extreme = int(np.argmax(index) if rising else np.argmin(index))
    rest, reach = float(np.median(np.delete(index, extreme))), math.exp(4 * found.spread)
    wild = index[extreme] > rest * reach if rising else index[extreme] < rest / reach
    if extreme == used.size - 1 or not wild:
        return False
    without = laid.used.copy()
    without[used[extreme]] = False
    left = _estimated(laid, without)
    if left is None:
        return False
    critical = float(stdtrit(left.freedom, 0.975)) * left.error
    away = math.log(left.ratio) if left.ratio > 0 else -math.inf
    return not (away > critical if rising else away < -critical)


def _factor(laid: _Laid, base: np.ndarray, used: np.ndarray, expected: np.ndarray, phi: float, *, split: bool) -> float:
    """Variance of window mean minus baseline mean in units of a day's, with AR(1) memory."""
    weights = np.zeros(len(laid.dates))
    weights[used] = expected[used] / expected[used].sum()
    for group in (~laid.weekend, laid.weekend) if split else (np.ones_like(laid.weekend),):
        members = base & group
        weights[members] = -weights[used & group].sum() / max(int(members.sum()), 1)
    part = np.clip(laid.share[used], 1e-6, 1.0)
    extra = float((weights[used] ** 2 * (1 / part - 1)).sum())
    taking = used | base
    a, t = weights[taking], laid.ordinals[taking]
    kernel = phi ** np.abs(t[:, None] - t[None, :]) if phi > 0 else np.eye(a.size)
    return float(a @ kernel @ a) + extra


def past_rank(
    rows: dict[str, Day], first: str, last: str, *, base: set[str], zone: ZoneInfo, until_ms: int,
    night: bool = False, factors: dict[str, float] | None = None,
) -> tuple[set[int], int] | None:  # fmt: skip
    """(how many of the pet's own past windows lie below this one, of how many), from the cited days.

    Windows that differ from this one by rounding alone may be counted or not.
    """
    laid = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base)
    if laid is None:
        return None
    now = float(laid.observed[laid.used].sum() / laid.expected[laid.used].sum())
    rates = [rate for rate, _ in _past_windows(laid, first, last)]
    ties = (sum(rate < now * (1 + side) for rate in rates) for side in (-1e-12, 1e-12))
    return set(range(next(ties), next(ties) + 1)), len(rates)


def _past_windows(laid: _Laid, first: str, last: str) -> list[tuple[float, float | None]]:
    """(rate, ratio to its own past) of each window as long before ``first``; None where it has no past of 21 days."""
    length = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    ordinals, found = laid.ordinals, []
    stop = date.fromisoformat(first).toordinal()
    oldest = max(date.fromisoformat(laid.begins).toordinal(), stop + length - 1 - (BACK + LAG + 54 * length))
    while stop - length >= oldest:
        inside = (ordinals >= stop - length) & (ordinals < stop) & (laid.expected > 0)
        ends = stop - length - LAG
        before = (ordinals >= max(ends - BACK, oldest)) & (ordinals < ends) & (laid.expected > 0)
        if inside.sum() >= 0.6 * length:
            rate = float(laid.observed[inside].sum() / laid.expected[inside].sum())
            usual = float(laid.observed[before].sum() / laid.expected[before].sum()) if before.sum() >= LEAST else 0.0
            found.append((rate, rate / usual if usual > 0 else None))
        stop -= length
    return found


def ranked_verdict(
    rows: dict[str, Day], first: str, last: str, again: Redone, *, base: set[str], zone: ZoneInfo, until_ms: int,
    night: bool = False, factors: dict[str, float] | None = None, relevance: float = 0.25,
) -> str:  # fmt: skip
    """The verdict where 40 past windows have a past of their own: by rank of the ratios, else as computed again."""
    laid = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base)
    ratios = [] if laid is None else [r for _, r in _past_windows(laid, first, last) if r is not None]
    if len(ratios) < 40:
        return again.verdict
    ratio = again.now / again.usual
    beyond = min(sum(r >= ratio for r in ratios), sum(r <= ratio for r in ratios))
    if (1 + beyond) / (1 + len(ratios)) <= 0.025:
        return "up" if ratio > 1 else "down"
    return "usual" if again.low >= -relevance and again.high <= relevance else "cannot_tell"


@dataclass(frozen=True)
class Step:
    """The day a level began, the days between which it did with 90 %, and the change as a fraction."""

    best: str
    earliest: str
    latest: str
    change: float


def onset_again(
    rows: dict[str, Day], first: str, last: str, *, zone: ZoneInfo, until_ms: int, verdict: str,
    night: bool = False, factors: dict[str, float] | None = None,
) -> Step | None:  # fmt: skip
    """The one step of the days that lead to a window and through it: the largest Wald statistic, AR(1) memory.

    Days of 63 before the window on; at least 14 before the step and 3 after it. With ``verdict`` up or down only a
    step that way is dated; else its statistic must pass 9.84 (Andrews 1993). The set of days: those within 5.94.
    """
    heard = _whole(rows, zone=zone, until_ms=until_ms, night=night, factors=factors)
    inside = {day for day in heard if plus(first, -(BACK + LAG)) <= day <= last}
    laid = _levels_laid(heard, inside)
    if laid is None:
        return None
    index, ordinals = laid
    if index.size < 17:
        return None
    index = np.maximum(index, 0.05)
    weekend = (ordinals + 6) % 7 >= 5
    weekday, at_weekends, *_ = _memory(index, ordinals, weekend)
    if min(weekday, at_weekends) <= 0:
        return None
    index = index / np.where(weekend, at_weekends, weekday)
    logs, cuts = np.log(index), np.arange(14, index.size - 2)
    steps = np.array([logs[cut:].mean() - logs[:cut].mean() for cut in cuts])
    if verdict in ("up", "down"):
        steps = np.maximum(steps, 0.0) if verdict == "up" else np.minimum(steps, 0.0)
    split = int(cuts[np.argmax(steps**2 * cuts * (index.size - cuts))])
    parts = np.concatenate([part / part.mean() for part in (index[:split], index[split:])])
    _, _, spread, phi, _ = _memory(parts, ordinals, np.zeros(parts.size, dtype=bool))
    wald = steps**2 / (spread**2 * (_of_mean(cuts, phi) + _of_mean(index.size - cuts, phi)))
    best = int(np.argmax(wald))
    if wald[best] <= (0.0 if verdict in ("up", "down") else 9.84):
        return None
    near = np.flatnonzero(wald[best] - wald <= 5.94) + 14
    days = [date.fromordinal(int(at)) for at in (ordinals[best + 14], ordinals[near[0] - 1] + 1, ordinals[near[-1]])]
    return Step(*(day.isoformat() for day in days), change=math.expm1(float(steps[best])))


def _of_mean(counts: np.ndarray, phi: float) -> np.ndarray:
    """Variance of the mean of so many AR(1) days of unit variance, as the sum over all pairs of them."""
    return np.array([1 + 2 * sum((1 - k / m) * phi**k for k in range(1, m)) for m in counts]) / counts


def _levels_laid(heard: dict[str, np.ndarray], inside: set[str]) -> tuple[np.ndarray, np.ndarray] | None:
    """(observed over expected, day numbers) of the days ``inside``, all of them their own baseline."""
    dates = sorted(inside)
    if len(dates) < 17:
        return None
    observed, expected, _ = _exposed(np.stack([heard[day] for day in dates]), np.ones(len(dates), dtype=bool))
    taken = expected > 0
    ordinals = np.array([date.fromisoformat(day).toordinal() for day in dates])
    return observed[taken] / expected[taken], ordinals[taken]
