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
    "compare_again",
    "hours_of",
    "local_date",
    "local_time",
    "midnight",
    "onset_matches",
    "past_rank",
    "ranked_verdict",
]

HOUR, SLOT = 3_600_000, 900_000


def local_date(at_ms: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).date().isoformat()


def local_time(at_ms: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).strftime("%H:%M")


def midnight(day: str, zone: ZoneInfo) -> int:
    """The instant a local day begins."""
    return round(datetime.fromisoformat(f"{day}T00:00:00").replace(tzinfo=zone).timestamp() * 1000)


def plus(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


@dataclass(frozen=True)
class Day:
    """A stored day row: quarter hours from ``start_ms`` on, amounts and milliseconds heard."""

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


def _nights(days: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Nights 21:00-07:00 dated by their evening; a night whose next day is not known has no morning."""
    found = {}
    for day, hours in days.items():
        night = np.zeros((3, 24))
        night[:, 21:] = hours[:, 21:]
        after = days.get(plus(day, 1))
        if after is not None:
            night[:, :7] = after[:, :7]
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

    @property
    def ordinals(self) -> np.ndarray:
        return np.array([date.fromisoformat(day).toordinal() for day in self.dates])

    @property
    def weekend(self) -> np.ndarray:
        return (self.ordinals + 6) % 7 >= 5


def _lay(
    rows: dict[str, Day], first: str, last: str, *, zone: ZoneInfo, until_ms: int, night: bool,
    factors: dict[str, float] | None, base: set[str] | None = None,
) -> _Laid | None:  # fmt: skip
    days = {day: hours_of(row, zone, until_ms) for day, row in rows.items()}
    if factors is not None:
        days = {day: hours * np.array([[factors[day]], [1], [1]]) for day, hours in days.items() if day in factors}
    if night:
        days = _nights(days)
    whole = {day: hours for day, hours in days.items() if hours[2].sum() > 0 and hours[1].sum() >= 0.6 * hours[2].sum()}
    dates = sorted(whole)
    is_base = np.array([day < first and (base is None or day in base) for day in dates], dtype=bool)
    used = np.array([first <= day <= last for day in dates], dtype=bool)
    if not is_base.any() or not used.any():
        return None
    cube = np.stack([whole[day] for day in dates])
    amount, heard, exists = cube[:, 0], cube[:, 1], cube[:, 2]
    half = (heard * 2 >= exists) & (exists > 0)
    hours = half[is_base].sum(axis=0) * 2 >= is_base.sum()
    taken = half & hours
    amount, heard = np.where(taken & (amount >= 1e-9), amount, 0.0), np.where(taken, heard, 0)
    base_heard = heard[is_base].sum(axis=0)
    profile = np.divide(amount[is_base].sum(axis=0), base_heard, out=np.zeros(24), where=base_heard > 0)
    per_day = float(profile[hours].sum() * HOUR)
    expected = heard @ profile
    if per_day <= 0:
        return None
    return _Laid(dates, amount.sum(axis=1), expected, expected / per_day, per_day, used, is_base)


def _baseline(dates: list[str], first: str, length: int, count: int) -> set[str] | None:
    """The baseline's dates by the contract: 56 days that end 7 before the window, else right before it."""
    for lag in (7, 0):
        start, stop = plus(first, -(lag + max(56, length))), plus(first, -lag)
        found = {day for day in dates if start <= day < stop}
        if len(found) == count:
            return found
    return None


def compare_again(
    rows: dict[str, Day], first: str, last: str, *, zone: ZoneInfo, until_ms: int, usual_days: int,
    night: bool = False, factors: dict[str, float] | None = None, relevance: float = 0.25,
) -> Redone | None:  # fmt: skip
    """The comparison of ``first`` .. ``last`` with the cited days before; None where it cannot be made of them."""
    length = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    known = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors)
    if known is None:
        return None
    candidates = [day for day, is_base in zip(known.dates, known.base, strict=True) if is_base]
    base = _baseline(candidates, first, length, usual_days)
    if base is None and not night and len(candidates) == usual_days:
        base = set(candidates)
    laid = None if base is None else _lay(
        rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base
    )  # fmt: skip
    if laid is None:
        return None
    base_rows = laid.base & (laid.expected > 0)
    index = laid.observed[base_rows] / laid.expected[base_rows]
    weekday, at_weekends, spread, phi, freedom = _memory(index, laid.ordinals[base_rows], laid.weekend[base_rows])
    level = np.where(laid.weekend, at_weekends, weekday)
    expected = laid.expected * level
    total = float(expected[laid.used].sum())
    if total <= 0.0:
        return None
    ratio = float(laid.observed[laid.used].sum()) / total
    if ratio <= 0.0:
        return None
    error = spread * math.sqrt(_factor(laid, base_rows, expected, phi, split=weekday != at_weekends))
    usual = laid.per_day * float(level[laid.used].mean())
    reach, critical = float(stdtrit(freedom, 0.95)) * error, float(stdtrit(freedom, 0.975)) * error
    low, high = ratio * math.exp(-reach) - 1, ratio * math.exp(reach) - 1
    verdict = "cannot_tell"
    if abs(math.log(ratio)) > critical:
        verdict = "up" if ratio > 1 else "down"
    elif low >= -relevance and high <= relevance:
        verdict = "usual"
    smallest = math.expm1(critical + float(stdtrit(freedom, 0.8)) * error)
    return Redone(ratio * usual, usual, low, high, smallest, verdict, int(laid.used.sum()), int(laid.base.sum()))


def _factor(laid: _Laid, base: np.ndarray, expected: np.ndarray, phi: float, *, split: bool) -> float:
    """Variance of window mean minus baseline mean in units of a day's, with AR(1) memory."""
    weights = np.zeros(len(laid.dates))
    weights[laid.used] = expected[laid.used] / expected[laid.used].sum()
    for group in (~laid.weekend, laid.weekend) if split else (np.ones_like(laid.weekend),):
        members = base & group
        weights[members] = -weights[laid.used & group].sum() / max(int(members.sum()), 1)
    part = np.clip(laid.share[laid.used], 1e-6, 1.0)
    extra = float((weights[laid.used] ** 2 * (1 / part - 1)).sum())
    taking = laid.used | base
    a, t = weights[taking], laid.ordinals[taking]
    kernel = phi ** np.abs(t[:, None] - t[None, :]) if phi > 0 else np.eye(a.size)
    return float(a @ kernel @ a) + extra


def past_rank(
    rows: dict[str, Day], first: str, last: str, *, zone: ZoneInfo, until_ms: int, usual_days: int,
    night: bool = False, factors: dict[str, float] | None = None,
) -> tuple[int, int] | None:  # fmt: skip
    """(how many of the pet's own past windows lie below this one, of how many), from the cited days."""
    length = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    everything = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors)
    if everything is None:
        return None
    base = _baseline(
        [d for d, b in zip(everything.dates, everything.base, strict=True) if b], first, length, usual_days
    )
    laid = None if base is None else _lay(
        rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base
    )  # fmt: skip
    if laid is None:
        return None
    now = float(laid.observed[laid.used].sum() / laid.expected[laid.used].sum())
    rates = [rate for rate, _ in _past_windows(laid, first, length)]
    return sum(rate < now for rate in rates), len(rates)


def _past_windows(laid: _Laid, first: str, length: int) -> list[tuple[float, float | None]]:
    """(rate, ratio to its own past) of each window as long before ``first``; None where it has no past of 21 days."""
    ordinals, found = laid.ordinals, []
    stop = date.fromisoformat(first).toordinal()
    while stop - length >= int(ordinals[0]):
        inside = (ordinals >= stop - length) & (ordinals < stop) & (laid.expected > 0)
        ends = stop - length - 7
        before = (ordinals >= ends - 56) & (ordinals < ends) & (laid.expected > 0)
        if inside.sum() >= 0.6 * length:
            rate = float(laid.observed[inside].sum() / laid.expected[inside].sum())
            usual = float(laid.observed[before].sum() / laid.expected[before].sum()) if before.sum() >= 21 else 0.0
            found.append((rate, rate / usual if usual > 0 else None))
        stop -= length
    return found


def ranked_verdict(
    rows: dict[str, Day], first: str, last: str, again: Redone, *, zone: ZoneInfo, until_ms: int, usual_days: int,
    night: bool = False, factors: dict[str, float] | None = None, relevance: float = 0.25,
) -> str:  # fmt: skip
    """The verdict where 40 past windows have a past of their own: by rank of the ratios, else as computed again."""
    length = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    everything = _lay(rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors)
    if everything is None:
        return again.verdict
    known = [d for d, b in zip(everything.dates, everything.base, strict=True) if b]
    base = _baseline(known, first, length, usual_days)
    laid = None if base is None else _lay(
        rows, first, last, zone=zone, until_ms=until_ms, night=night, factors=factors, base=base
    )  # fmt: skip
    ratios = [] if laid is None else [r for _, r in _past_windows(laid, first, length) if r is not None]
    if len(ratios) < 40:
        return again.verdict
    ratio = again.now / again.usual
    beyond = min(sum(r >= ratio for r in ratios), sum(r <= ratio for r in ratios))
    if (1 + beyond) / (1 + len(ratios)) <= 0.025:
        return "up" if ratio > 1 else "down"
    return "usual" if again.low >= -relevance and again.high <= relevance else "cannot_tell"


def onset_matches(
    rows: dict[str, Day], best: str, change: float, *, zone: ZoneInfo, until_ms: int, last: str, night: bool = False
) -> bool:
    """Whether the cited days step by that much on that day: mean logs of the rate heard on both sides."""
    days = {day: hours_of(row, zone, until_ms) for day, row in rows.items() if day <= last}
    if night:
        days = _nights(days)
    whole = {day: h for day, h in days.items() if h[2].sum() > 0 and h[1].sum() >= 0.6 * h[2].sum()}
    before = [h[0].sum() / max(h[1].sum(), 1) for day, h in whole.items() if day < best]
    after = [h[0].sum() / max(h[1].sum(), 1) for day, h in whole.items() if day >= best]
    if len(before) < 7 or len(after) < 2:
        return False
    step = float(np.mean(np.log(np.maximum(after, 1e-12))) - np.mean(np.log(np.maximum(before, 1e-12))))
    return abs(math.expm1(step) - change) < 0.15 and (step > 0) == (change > 0)
