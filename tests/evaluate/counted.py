"""The checker's rules for figures: each is computed again from day rows, and exactly its days must be cited.

In goes a claim with its records; out comes everything that is not so: a figure the days do not
give, a day that belongs to it and is not cited, a day cited that does not belong to it. Which days
belong is read from the database by the contract, never from the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import median

import numpy as np

from tests.evaluate.book import Event
from tests.evaluate.case import Case, iso_ms
from tests.evaluate.refigure import (
    BACK,
    LEAST,
    Day,
    Redone,
    compare_again,
    days_compared,
    days_of,
    hours_of,
    midnight,
    nights_of,
    onset_again,
    past_rank,
    plus,
    ranked_verdict,
    rests_on_one_day,
)

__all__ = [
    "RELEVANCE",
    "Found",
    "as_usual",
    "comparison",
    "days_told",
    "last_slot",
    "near",
    "of_device",
    "of_pet",
    "onset",
    "per_day",
    "shared_total",
    "so_far",
    "today_so_far",
    "total",
    "visits",
    "with_and_without",
]

Found = Iterator[tuple[str, str]]

SLOT, HOUR = 900_000, 3_600_000
RELEVANCE = {"intake": 0.15, "weight": 0.05}
_HISTORY = 441
"""Days of past that a rank may reach back: 56 + 7 before a week, and 54 weeks."""
_HALF_YEAR = 180
"""Days looked back for days with a thing and days without it."""


def near(value: object, other: float, *, slack: float = 2e-6) -> bool:
    """Whether two figures are the same but for the rounding of the one in the answer."""
    return isinstance(value, (int, float)) and abs(value - other) <= slack * max(1.0, abs(other)) + 1e-3 * (
        abs(other) > 50
    )


def _figures(case: Case, wanted: dict[str, float], values: dict | None = None, *, of: str = "") -> Found:
    """Each of these figures, where the claim has it."""
    said = case.values if values is None else values
    for name, value in wanted.items():
        if name in said and not near(said[name], value):
            yield "unsupported", f"{of}{name} is {said[name]}, the records give {value:.6g}"


def _cited(case: Case, series: str, wanted: Iterable[str]) -> Found:
    """Exactly these days of a series are cited."""
    cited, wanted = {day.date for day in case.days if day.series == series}, set(wanted)
    for day in sorted(wanted - cited):
        yield "unsupported", f"{series} on {day} belongs to it and is not cited"
    for day in sorted(cited - wanted):
        yield "misattributed", f"{series} on {day} does not belong to it"


def _about_days(case: Case, series: set[str]) -> Found:
    """Every cited day belongs to a series the claim is about, and every series to a pet it is about."""
    for day in case.days:
        if day.series not in series:
            yield "misattributed", f"a day of {day.series} for {sorted(series)}"
    for name in series:
        if case.pets and not set(name.partition(".")[0].split("+")) <= set(case.pets):
            yield "misattributed", f"{name} is not of {case.pets}"


def _one_series(case: Case) -> str | None:
    """The one series of the cited days, where the claim is about no other; None else."""
    found = {day.series for day in case.days}
    name = next(iter(found)) if len(found) == 1 else None
    return name if name in case.book.series and case.series in ([], [name]) else None


def of_device(case: Case) -> Found:
    """Every event is of a device the claim is about."""
    devices = set(case.about("device"))
    for event in case.events:
        if devices and event.device not in devices:
            yield "misattributed", f"{event.ref} is not of {sorted(devices)}"


# --- a window against the days before it ---------------------------------------------------------------


def _factors(fed: list[Event], rows: dict[str, Day], energy: dict[str, float]) -> dict[str, float]:
    """kcal per mg of the food each day was fed from, by food records and what labels give; no day of a change."""
    found = {}
    for date_, row in rows.items():
        before = [event for event in fed if event.start_ms <= row.start_ms]
        inside = [event for event in fed if row.start_ms < event.start_ms < row.end_ms]
        if not before and inside:
            before, inside = inside[:1], inside[1:]
        if before and not inside and before[-1].fields[0] in energy:
            found[date_] = energy[str(before[-1].fields[0])] / 1e6
    return found


def _energy(case: Case) -> dict[str, float]:
    return {text.code: float(text.facts["kcal_per_kg"]) for text in case.texts if text.facts.get("kcal_per_kg")}


class _Compared:
    """A series' window and the days before it, as stored: which days belong, and what makes energy of grams."""

    def __init__(self, case: Case, series: str) -> None:
        book, window = case.book, case.window
        assert window is not None
        _, self.prop, self.unit = book.series[series]
        self.first, self.last = window["first_date"], window["last_date"]
        self.night = case.of_nights(self.prop)
        self.fed = [event for event in book.fed(series.partition(".")[0]) if event.start_ms <= case.as_of_ms]
        self.kcal = self.prop == "intake" and any(event.kind == "food_set" for event in case.events)
        began = min(book.rows(series, "", "9"), default=self.first)
        history = min(max(began, plus(self.first, -_HISTORY)), self.first)
        through = max(self.last, case.date_of(max(case.until_ms - 1, midnight(self.last, book.zone))))
        self.stored = book.rows(series, history, through if self.night else self.last)
        self.options = {
            "zone": book.zone, "until_ms": case.until_ms, "night": self.night,
            "factors": _factors(self.fed, self.stored, _energy(case)) if self.kcal else None,
        }  # fmt: skip
        self.used, self.base = days_compared(
            self.stored, self.first, self.last, since=self._broken(case), **self.options
        )
        self.length = len(days_of(self.first, self.last))
        self.cited = {day.date: day for day in case.days if day.series == series}

    def _broken(self, case: Case) -> str:
        """The last day up to the window's first on which grams of another food began, where energy is not told."""
        if self.prop != "intake" or self.kcal:
            return ""
        changes = [b for a, b in pairwise(self.fed) if a.fields[0] != b.fields[0]]
        return max((day for event in changes if (day := case.date_of(event.start_ms)) <= self.first), default="")

    def again(self, case: Case) -> Redone | None:
        """The comparison, from the cited days alone."""
        relevance = RELEVANCE.get(self.prop, 0.25)
        return compare_again(self.cited, self.first, self.last, base=self.base, relevance=relevance, **self.options)

    def verdict(self, again: Redone) -> str:
        """Up, down, as usual or not to be told: by rank where there are 40 past windows, never by one wild day."""
        relevance, options = RELEVANCE.get(self.prop, 0.25), self.options | {"base": self.base}
        found = ranked_verdict(self.stored, self.first, self.last, again, relevance=relevance, **options)
        if found in ("up", "down") and rests_on_one_day(self.cited, self.first, self.last, **options):
            return "cannot_tell"
        return found

    def mornings(self, days: set[str]) -> set[str]:
        """These days; of nights also the mornings after them."""
        return days | {plus(day, 1) for day in days} & self.stored.keys() if self.night else days

    @property
    def needed(self) -> int:
        return min(max(self.length, LEAST), BACK)


def _compared(case: Case, series: str, values: dict[str, float | str], *, past: bool = False) -> Found:
    """What is said of one series' window, and the days cited for it; with ``past``, all there are before it."""
    if series not in case.book.series or case.window is None:
        yield "misattributed", f"{series} is no series, or no window is given"
        return
    of = _Compared(case, series)
    wanted = of.mornings(of.used | of.base)
    if past or "rank" in values:
        wanted |= {day for day in of.stored if day < of.first}
    yield from _cited(case, series, wanted)
    if of.kcal:
        yield from _foods_cited(case, of.fed)
    yield from _figures(case, {"days": len(of.used), "usual_days": len(of.base)}, values, of=f"{series} ")
    again = of.again(case)
    if again is None or "now" not in values:
        if "now" in values:
            yield "unsupported", f"{series} cannot be compared from the days cited"
        elif values and len(of.used) >= 0.6 * of.length and len(of.base) >= of.needed:
            yield "unsupported", f"{series} can be compared, and is not"
        if values.get("verdict", "cannot_tell") != "cannot_tell" or set(values) - {"usual_days", "days", "verdict"}:
            yield "unsupported", f"{series}: {sorted(values)} of what cannot be compared"
        return
    yield from _recomputed(case, series, of, again, values)


def _recomputed(case: Case, series: str, of: _Compared, again: Redone, values: dict[str, float | str]) -> Found:
    if (case.unit("now") or case.unit(f"{series}.now")) != ("kcal" if of.kcal else of.unit):
        yield "unsupported", f"{series} is told in another unit than {of.unit}"
    figures = {
        "now": again.now, "usual": again.usual, "change": again.change, "low": again.low, "high": again.high,
        "smallest_visible": again.smallest, "gap": abs(again.now - again.usual),
    }  # fmt: skip
    yield from _figures(case, figures, values, of=f"{series} ")
    if values.get("verdict") not in (None, verdict := of.verdict(again)):
        yield "unsupported", f"{series} is said to be {values['verdict']}, the days say {verdict}"
    if "rank" in values:
        ranked = past_rank(of.cited, of.first, of.last, base=of.base, **of.options)
        if ranked is None or values["rank"] not in ranked[0] or values.get("rank_of") != ranked[1]:
            said = f"{values['rank']} of {values.get('rank_of')}"
            yield "unsupported", f"{series} rank {said}, the days cited give {ranked}"
    for name in values.keys() - {*figures, "days", "usual_days", "verdict", "rank", "rank_of"}:
        yield "unsupported", f"{series} {name} is a value no rule knows"


def _foods_cited(case: Case, fed: list[Event]) -> Found:
    """Energy stands on every record of what the bowl held, and on the label of each of these foods."""
    cited = {event.ref for event in case.events}
    for event in fed:
        if event.ref not in cited:
            yield "unsupported", f"{event.ref} says what was fed and is not cited"
        if not any(text.code == event.fields[0] for text in case.texts):
            yield "unsupported", f"the label of {event.fields[1]} is not cited"
    for event in case.events:
        if event not in fed:
            yield "misattributed", f"{event.ref} is no record of what was fed"
    for text in case.texts:
        if text.code not in {event.fields[0] for event in fed}:
            yield "misattributed", f"{text.ref} is the label of what was not fed"


def comparison(case: Case) -> Found:
    """One series' window against its past."""
    if len(case.series) != 1:
        yield "misattributed", "a comparison is of one series"
        return
    yield from _about_days(case, set(case.series))
    yield from _compared(case, case.series[0], case.values)


def as_usual(case: Case) -> Found:
    """Several series, each as its usual."""
    yield from _about_days(case, set(case.series))
    told = {name.rpartition(".")[0] for name in case.values}
    if told - set(case.series):
        yield "misattributed", f"figures of {sorted(told - set(case.series))}"
    for series in case.series:
        values = {n.removeprefix(f"{series}."): v for n, v in case.values.items() if n.startswith(f"{series}.")}
        if values.get("verdict", "usual") != "usual":
            yield "unsupported", f"{series} is said to be as usual, its verdict is {values['verdict']}"
        yield from _compared(case, series, values)
        if not values and case.window is not None and series in case.book.series:
            of = _Compared(case, series)
            again = of.again(case)
            if again is None or of.verdict(again) != "usual":
                yield "unsupported", f"{series} is not as usual"


# --- plain means and sums -------------------------------------------------------------------------------


def _full(case: Case, rows: Iterable[Day], *, share: float = 0.6) -> dict[str, Day]:
    """Days over and heard for at least this share of them."""
    return {
        day.date: day
        for day in rows
        if day.date < case.today and sum(day.covered) >= share * (day.end_ms - day.start_ms)
    }


def _nights(
    case: Case, rows: dict[str, Day], *, share: float = 0.6, since: str = "", until_ms: int | None = None
) -> dict[str, float]:
    """What each of these nights held, where it was heard for this share of what there was of it.

    ``since`` is the first night, where nothing may be stored of its evening.
    """
    hours = {day: hours_of(row, case.book.zone, until_ms or case.until_ms) for day, row in rows.items()}
    if since and hours and since < min(hours):
        before = plus(min(hours), -1)
        hours[before] = np.zeros((3, 24))
        hours[before][2] = HOUR
    return {
        day: float(of[0].sum())
        for day, of in nights_of(hours).items()
        if of[2].sum() > 0 and of[1].sum() >= share * of[2].sum()
    }


def _rows_of(case: Case, series: str, *, nights: bool) -> dict[str, Day]:
    """The stored days of the window; of nights as far as the morning after the last one."""
    window = case.window
    assert window is not None
    through = case.date_of(max(case.until_ms - 1, iso_ms(window["from"]))) if nights else window["last_date"]
    return case.book.rows(series, window["first_date"], max(window["last_date"], through))


def _nights_held(case: Case, series: str) -> dict[str, float]:
    """What each night of the window held that is over."""
    window = case.window
    assert window is not None
    held = _nights(case, _rows_of(case, series, nights=True), since=window["first_date"])
    return {day: amount for day, amount in held.items() if day <= window["last_date"] and day < case.today}


def per_day(case: Case) -> Found:
    """A plain mean of full days, or of nights, with exactly the rows behind it."""
    series, values, window = _one_series(case), case.values, case.window
    if series is None or window is None:
        yield "misattributed", "a daily mean is of one series and one window"
        return
    pets = set(series.partition(".")[0].split("+"))
    if case.pets and pets != set(case.pets):
        yield "misattributed", f"days of {pets} for {case.pets}"
    nights = case.told_by_night(case.book.series[series][1])
    stored = _rows_of(case, series, nights=nights)
    if nights:
        held = _nights_held(case, series)
        wanted = (held.keys() | {plus(day, 1) for day in held}) & stored.keys()
        whole = sum(
            of
            for day, of in _nights(case, stored, share=0.0, since=window["first_date"]).items()
            if day <= window["last_date"]
        )
    else:
        held = {day: float(row.total) for day, row in _full(case, stored.values()).items()}
        wanted, whole = held.keys(), float(sum(row.total for row in stored.values()))
    if "total" in values:
        wanted = stored.keys()
    if not held:
        yield "unsupported", "no full day is stored"
        return
    yield from _cited(case, series, wanted)
    yield from _figures(
        case,
        {
            "per_day": sum(held.values()) / len(held), "least": min(held.values()), "most": max(held.values()),
            "days": len(held), "total": whole,
        },
    )  # fmt: skip
    for food in case.about("food"):
        code = case.book.foods.get(food, ("", ""))[1]
        if not any(event.kind == "food_set" and event.fields[0] == code for event in case.events):
            yield "misattributed", f"no cited record sets {food}"
    if case.events and not case.about("food"):
        yield "misattributed", "events are cited for a mean of days"


def _in_window(case: Case, rows: Iterable[Day]) -> tuple[int, int, set[str]]:
    """(amount, heard, days) of the slots inside the window."""
    window = case.window
    start, end = (0, 2**62) if window is None else (iso_ms(window["from"]), iso_ms(window["to"]))
    amount = heard = 0
    days = set()
    for day in rows:
        for slot, (held, covered) in enumerate(zip(day.sums, day.covered, strict=True)):
            if start <= day.start_ms + slot * SLOT < end:
                amount, heard = amount + held, heard + covered
                days.add(day.date)
    return amount, heard, days


def total(case: Case) -> Found:
    """What a series held inside a window that need not be whole days, with its visits where it has any."""
    series, window, values = _one_series(case), case.window, case.values
    if series is None or window is None:
        yield "misattributed", "a sum is of one series and one window"
        return
    yield from _about_days(case, {series})
    stored = case.book.rows(series, window["first_date"], window["last_date"])
    amount, heard, days = _in_window(case, stored.values())
    yield from _cited(case, series, days)
    span = iso_ms(window["to"]) - iso_ms(window["from"])
    share = round(100 * heard / span) if span else 0
    yield from _figures(case, {"total": amount, "covered": heard, "share": share})
    if "visits" in values:
        found = [e for e in case.events if e.kind == "meal" and e.set_aside is None]
        if len(found) != values["visits"] or len(case.events) != len(found):
            yield "unsupported", f"{values['visits']} visits said, {len(found)} cited"
        if any(not iso_ms(window["from"]) <= event.start_ms < iso_ms(window["to"]) for event in found):
            yield "misattributed", "a visit outside the window"
        if sum(e.amount or 0 for e in found) != amount:
            yield "unsupported", "the visits cited do not add up to the total"
    elif case.events:
        yield "misattributed", "events are cited for a sum of days"


def visits(case: Case) -> Found:
    """Events of a window with their sum; where the visits of a sum are told, the sum too."""
    yield from of_pet(case)
    if "visits" in case.values:
        yield from total(case)
        return
    window = case.window
    if window is None:
        yield "misattributed", "no window is given"
        return
    kind = case.kind.removesuffix("s")
    for event in case.events:
        if event.kind != kind or not iso_ms(window["from"]) <= event.start_ms < iso_ms(window["to"]):
            yield "misattributed", f"{event.ref} is a {event.kind}, or outside the window"
    yield from _figures(case, {"count": len(case.events), "total": sum(event.amount or 0 for event in case.events)})


def of_pet(case: Case) -> Found:
    for event in case.events:
        if case.pets and not set(case.pets) & case.book.bound(event.device, event.start_ms):
            yield "misattributed", f"{event.ref} is not of a device of {case.pets}"


def shared_total(case: Case) -> Found:
    """The mean of what all at a shared device took, on days heard for at least 90 %."""
    series, window = _one_series(case), case.window
    if series is None or window is None or series.partition(".")[0] != "+".join(sorted(case.pets)):
        yield "misattributed", "not the series of all of them"
        return
    stored = case.book.rows(series, window["first_date"], window["last_date"])
    full = _full(case, stored.values(), share=0.9)
    yield from _cited(case, series, full.keys())
    mean = sum(day.total for day in full.values()) / max(len(full), 1)
    yield from _figures(case, {"per_day": mean, "days": len(full)})


def so_far(case: Case) -> Found:
    """Range and middle of the full days there are."""
    series, window = _one_series(case), case.window
    if series is None or window is None:
        yield "unsupported", "no day is cited"
        return
    yield from _about_days(case, {series})
    if " nights, middle" in case.text:
        held = _nights_held(case, series)
        wanted = (held.keys() | {plus(day, 1) for day in held}) & _rows_of(case, series, nights=True).keys()
    else:
        full = _full(case, case.book.rows(series, window["first_date"], window["last_date"]).values())
        held = {day: float(row.total) for day, row in full.items()}
        wanted = held.keys()
    yield from _cited(case, series, wanted)
    if not held:
        yield "unsupported", "no full day is stored"
        return
    yield from _figures(
        case,
        {
            "least": min(held.values()), "most": max(held.values()), "middle": median(held.values()),
            "days": len(held),
        },
    )  # fmt: skip


def today_so_far(case: Case) -> Found:
    """Today up to now beside the same hours of the full days."""
    series, window, today = _one_series(case), case.window, case.today
    rows = [day for day in case.days if day.date == today]
    if series is None or window is None or len(rows) != 1:
        yield "unsupported", "today's record is not cited"
        return
    yield from _about_days(case, {series})
    yield from of_pet(case)
    full = _full(case, case.book.rows(series, window["first_date"], window["last_date"]).values())
    yield from _cited(case, series, full.keys() | {today})
    until = (case.as_of_ms - rows[0].start_ms) // SLOT
    before = [sum(day.sums[:until]) for day in full.values()]
    if before:
        yield from _figures(case, {"now": sum(rows[0].sums[:until]), "least": min(before), "most": max(before)})
    for event in case.events:
        if event.kind != "meal" or case.book.later_event(event, case.as_of_ms - 1):
            yield "stale", f"{event.ref} is not the last meal"
    if case.book.series[series][1] == "intake" and not case.events and "last meal" in case.text:
        yield "unsupported", "the last meal is not cited"


def onset(case: Case) -> Found:
    """The day a level began, with the days between which it did."""
    if len(case.series) != 1 or case.series[0] not in case.book.series or case.window is None:
        yield "misattributed", "one series has one beginning"
        return
    series, values = case.series[0], case.values
    yield from _about_days(case, {series})
    yield from _compared(case, series, {}, past=True)
    of, change = _Compared(case, series), values.get("change")
    compared = of.again(case)
    verdict = "" if compared is None else of.verdict(compared)
    again = onset_again(of.cited, of.first, of.last, verdict=verdict, **of.options)
    if again is None or (values.get("onset"), values.get("earliest"), values.get("latest")) != (
        again.best, again.earliest, again.latest,
    ):  # fmt: skip
        yield "unsupported", f"the days cited step on {again}, the claim says {values}"
    elif not near(change, again.change):
        yield "unsupported", f"the days cited step by {again.change:.6g}, the claim says {change}"


def last_slot(case: Case) -> Found:
    """The last quarter of an hour, up to the asking, in which the series held anything."""
    yield from _about_days(case, set(case.series))
    if len(case.days) != 1:
        yield "unsupported", "one day holds the last quarter of an hour"
        return
    day, values = case.days[0], case.values
    held = [n for n, amount in enumerate(day.sums) if amount and day.start_ms + n * SLOT < case.as_of_ms]
    if not held or values.get("amount") != day.sums[held[-1]]:
        yield "unsupported", f"amount is {values.get('amount')}, the day's last quarter of an hour holds another"
        return
    from_ms = day.start_ms + held[-1] * SLOT
    if (values.get("from"), values.get("to")) != (from_ms, min(from_ms + SLOT, case.as_of_ms)):
        yield "unsupported", f"the last quarter of an hour is from {from_ms} on"
    later = case.book.rows(day.series, plus(day.date, 1), "9").values()
    if any(amount and row.start_ms + n * SLOT < case.as_of_ms for row in later for n, amount in enumerate(row.sums)):
        yield "stale", f"{day.series} has a later day"


# --- with it and without it -----------------------------------------------------------------------------


def with_and_without(case: Case) -> Found:
    """Days wholly with the things the claim is about, days wholly without, and both means."""
    if len(case.series) != 1 or case.series[0] not in case.book.series:
        yield "misattributed", "one series has two sides"
        return
    series = case.series[0]
    yield from _about_days(case, {series})
    things = [name for name in case.claim["about"] if not name.startswith(("pet:", "series:"))]
    if not things or any(not case.book.spans(f"pet:{pet}", thing) for pet in case.pets for thing in things):
        yield "misattributed", f"{case.pets} never had {things}"
        return
    sides, rows = _sides(case, series)
    cited = {day for side in sides.values() for day in side}
    mornings = {plus(day, 1) for day in cited} if _BY_NIGHT in case.text else set()
    yield from _cited(case, series, (cited | mornings) & rows.keys())
    if not all(sides.values()):
        yield "unsupported", "one of the sides has no day"
        return
    means = {side: sum(held.values()) / len(held) for side, held in sides.items()}
    wanted = {f"days_{side}": float(len(held)) for side, held in sides.items()} | means
    if means["without"] > 0:
        wanted["change"] = means["with"] / means["without"] - 1
    yield from _figures(case, wanted)


_BY_NIGHT = " nights with it"


def _sides(case: Case, series: str) -> tuple[dict[str, dict[str, float]], dict[str, Day]]:
    """What each day, or night, with the things and each without them held; and the rows that were read."""
    things = [name for name in case.claim["about"] if not name.startswith(("pet:", "series:"))]
    spans = [span for pet in case.pets for thing in things for span in case.book.spans(f"pet:{pet}", thing)]
    rows = case.book.rows(series, plus(case.today, -_HALF_YEAR), plus(case.today, -1))
    full = _full(case, rows.values())
    held = (
        _nights(case, rows, until_ms=case.as_of_ms)
        if _BY_NIGHT in case.text
        else {day: float(row.total) for day, row in full.items()}
    )
    sides: dict[str, dict[str, float]] = {"with": {}, "without": {}}
    for day, amount in held.items():
        side = _side(case, spans, day)
        if side:
            sides[side][day] = amount
    return sides, rows


def days_told(case: Case) -> list[str]:
    """The days, or nights, that a claim's figures are of, where its words name the first and the last of them."""
    if case.kind == "with_and_without" and case.series:
        return sorted(day for side in _sides(case, case.series[0])[0].values() for day in side)
    if case.kind == "so_far" and " nights, middle" in case.text and case.window is not None:
        series = _one_series(case)
        return [] if series is None else sorted(_nights_held(case, series))
    return sorted(day.date for day in case.days)


def _side(case: Case, spans: list[tuple[int | None, int | None]], day: str) -> str:
    """``with`` or ``without``; nothing on the day of a change."""
    for start_ms, end_ms in spans:
        start = None if start_ms is None else case.date_of(start_ms)
        end = None if end_ms is None else case.date_of(end_ms)
        if day in (start, end):
            return ""
        if (start is None or start < day) and (end is None or day < end):
            return "with"
    return "without"
