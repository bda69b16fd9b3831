"""The checker: an answer's JSON and the database in, everything that its citations do not bear out.

Each claim is recomputed from the records it cites, by rules of its kind: figures from day rows,
visits from events, words from texts, dates from instants. A claim of a kind without a rule is a
problem, not a pass. Nothing of the three packages is imported; SQLite is read by `Book`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime

from tests.evaluate.book import Book, Event, Text
from tests.evaluate.refigure import (
    Day,
    compare_again,
    hours_of,
    local_date,
    local_time,
    onset_matches,
    past_rank,
    plus,
    ranked_verdict,
)

__all__ = ["Problem", "replay"]

SLOT, HOUR = 900_000, 3_600_000
_CLASS = {
    "event": "MEASURED",
    "day": "MEASURED",
    "log": "RECORDED",
    "note": "RECORDED",
    "label": "REFERENCE",
    "passage": "REFERENCE",
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NUMERAL = re.compile(r"\d+(?:[.,]\d+)*")
_DAY = re.compile(rf"({'|'.join(_MONTHS)}) (\d{{1,2}})(?: (\d{{4}}))?")
_CLOCK = re.compile(r"\b(\d{2}:\d{2})\b")
_RELEVANCE = {"intake": 0.15, "weight": 0.05}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one claim.

    ``what``: unresolved (a citation opens nothing), misattributed (it is about something else),
    stale (a newer record says otherwise), unsupported (the records do not give it), number (a
    figure in the words that no cited record gives), class, label, link (a connection no chain bears).
    """

    claim: str
    what: str
    detail: str


@dataclass
class _Case:
    """One claim with the records it cites."""

    book: Book
    claim: dict
    as_of_ms: int

    def __post_init__(self) -> None:
        refs = self.claim["refs"]
        self.days = [day for ref in refs if ref.startswith("day:") and (day := self.book.day(ref)) is not None]
        self.events = [e for ref in refs if ref.startswith("event:") and (e := self.book.event(ref)) is not None]
        texts = [ref for ref in refs if ref.partition(":")[0] in ("log", "note", "label", "passage")]
        self.texts = [text for ref in texts if (text := self.book.text(ref)) is not None]

    @property
    def text(self) -> str:
        return self.claim["text"]

    @property
    def values(self) -> dict[str, float | str]:
        return {name: value["v"] for name, value in self.claim["values"].items()}

    @property
    def pets(self) -> list[str]:
        return [name[4:] for name in self.claim["about"] if name.startswith("pet:")]

    @property
    def series(self) -> list[str]:
        return [name[7:] for name in self.claim["about"] if name.startswith("series:")]

    @property
    def until_ms(self) -> int:
        window = self.claim["window"]
        return self.as_of_ms if window is None else _ms(window["to"])

    def day_of(self, at_ms: int) -> str:
        """An instant's local day as an answer writes it, with the year where it is another."""
        today, day = local_date(self.as_of_ms, self.book.zone), local_date(at_ms, self.book.zone)
        return _shown(day, today)

    def food_name(self, food: str) -> str:
        return self.book.foods.get(food, ("", None))[0]


def _ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def _shown(day: str, today: str) -> str:
    when = date.fromisoformat(day)
    text = f"{_MONTHS[when.month - 1]} {when.day}"
    return text if day[:4] == today[:4] else f"{text} {when.year}"


def replay(answer: dict, book: Book) -> list[Problem]:
    """Every problem of every claim, and of the chain that rides along."""
    as_of = _ms(answer["as_of"])
    problems: list[Problem] = []
    known = {claim["id"] for claim in answer["claims"]}
    for claim in answer["claims"]:
        found = list(_claim_problems(_Case(book, claim, as_of), answer, known))
        problems += [Problem(claim["id"], what, detail) for what, detail in found]
    for ref in answer["chain"]:
        if book.edge(ref) is None or not book.supported(ref):
            problems.append(Problem("chain", "link", f"{ref} is no stored, believed link"))
    return problems


Found = Iterator[tuple[str, str]]


def _claim_problems(case: _Case, answer: dict, known: set[str]) -> Found:
    claim, book = case.claim, case.book
    kinds = {ref.partition(":")[0] for ref in claim["refs"]}
    classes = {_CLASS.get(kind, kind) for kind in kinds}
    expected = "MEASURED" if "MEASURED" in classes and classes <= {"MEASURED", "REFERENCE"} else (
        next(iter(classes)) if len(classes) == 1 else "CONNECTION" if claim["joins"] else "GENERAL" if not classes else "mixed"
    )  # fmt: skip
    if claim["class"] != expected:
        yield "class", f"{claim['class']}, its records make it {expected}"
    yield from _label_problems(case)
    for ref in claim["refs"]:
        if not book.stored(ref):
            yield "unresolved", ref
    if expected == "CONNECTION":
        yield from _connection(case, answer, known)
    elif expected != "GENERAL":
        rule = _RULES.get(claim["kind"])
        if rule is None:
            yield "unsupported", f"no rule for a claim of kind {claim['kind']}"
        elif all(book.stored(ref) for ref in claim["refs"]):
            yield from rule(case)
            yield from _numerals(case)


def _label_problems(case: _Case) -> Found:
    claim, text = case.claim, case.text
    if claim["class"] == "GENERAL" and not text.startswith("General knowledge, not from"):
        yield "label", "general knowledge without its label"
    if claim["class"] == "CONNECTION" and not (
        "may" in text and ("not a diagnosis" in text or "not a change in the pet" in text)
    ):
        yield "label", "a connection that is not said as one"
    if claim["class"] in ("MEASURED", "RECORDED", "REFERENCE") and not claim["cite"]:
        yield "label", "no citation in words"
    if claim["class"] == "REFERENCE":
        plain = text
        for name, _ in case.book.foods.values():
            plain = plain.replace(name, "")
        named = [name for name in case.book.pets.values() if re.search(rf"\b{re.escape(name)}\b", plain)]
        quoted = " ".join(t.text for t in case.texts)
        if any(not re.search(rf"\b{re.escape(name)}\b", quoted) for name in named):
            yield "label", "a reference that speaks of a pet"
    if (
        claim["class"] == "RECORDED"
        and any(ref.startswith("note:") for ref in claim["refs"])
        and claim["kind"] in _QUOTED
        and '"' not in text
    ):
        yield "label", "a vet's words without quotation marks"


_QUOTED = frozenset({"note_for", "note_against", "record", "schedule"})


# --- connections ---------------------------------------------------------------------------------------


def _connection(case: _Case, answer: dict, known: set[str]) -> Found:
    claim, book = case.claim, case.book
    if len(claim["joins"]) < 2 or not set(claim["joins"]) <= known:
        yield "link", "joins claims that are not there"
    pet, sign, *causes = claim["about"]
    edges = [edge for ref in answer["chain"] if (edge := book.edge(ref)) is not None and book.supported(ref)]
    joined = (other for other in answer["claims"] if other["id"] in claim["joins"])
    told = {name for other in joined if other["kind"] != "label_lists_none" for name in other["about"]}
    for cause in causes:
        if cause not in told:
            yield "link", f"no claim it joins is about {cause}"
        if not any({pet, cause} == {tail, head} for tail, _, head in edges):
            yield "link", f"no link of the chain joins {pet} and {cause}"
        elif not _reached(edges, cause, sign, without=pet):
            yield "link", f"no path of the chain leads from {cause} to {sign}"
        if f"{cause}>{sign}@{pet}" in book.walled_hypotheses():
            yield "link", f"the owner marked {cause} wrong"


def _reached(edges: list[tuple[str, str, str]], start: str, goal: str, *, without: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        for tail, _, head in edges:
            for there in ((head,) if tail == here else ()) + ((tail,) if head == here else ()):
                if there not in seen and there != without:
                    seen.add(there)
                    todo.append(there)
    return goal in seen


# --- figures from day rows ------------------------------------------------------------------------------


def _near(value: object, other: float, *, slack: float = 2e-6) -> bool:
    return isinstance(value, (int, float)) and abs(value - other) <= slack * max(1.0, abs(other)) + 1e-3 * (
        abs(other) > 50
    )


def _of_series(case: _Case, series: str) -> dict[str, Day]:
    return {day.date: day for day in case.days if day.series == series}


def _factors(case: _Case, rows: dict[str, Day]) -> dict[str, float] | None:
    """kcal per mg of the food each day was fed from, by the cited food records and labels."""
    feedings = sorted((e for e in case.events if e.kind == "food_set"), key=lambda event: event.start_ms)
    energy = {text.code: float(text.facts["kcal_per_kg"]) for text in case.texts if "kcal_per_kg" in text.facts}
    found = {}
    for date_, row in rows.items():
        before = [event for event in feedings if event.start_ms <= row.start_ms]
        inside = [event for event in feedings if row.start_ms < event.start_ms < row.end_ms]
        if not before and inside:
            before, inside = inside[:1], inside[1:]
        if before and not inside and before[-1].fields[0] in energy:
            found[date_] = energy[str(before[-1].fields[0])] / 1e6
    return found


def _comparison(case: _Case, series: str, values: dict[str, float | str]) -> Found:
    rows, window, book = _of_series(case, series), case.claim["window"], case.book
    if series not in book.series or window is None:
        yield "misattributed", f"{series} is no series, or no window is given"
        return
    _, prop, unit = book.series[series]
    kcal = str(
        case.claim["values"].get("now", case.claim["values"].get(f"{series}.now", {})).get("unit", "")
    ).startswith("kcal")
    options = {
        "zone": book.zone, "until_ms": case.until_ms, "usual_days": int(values.get("usual_days", 0)),
        "night": _night_asked(case, prop), "factors": _factors(case, rows) if kcal else None,
    }  # fmt: skip
    first, last = window["first_date"], window["last_date"]
    again = compare_again(rows, first, last, relevance=_RELEVANCE.get(prop, 0.25), **options)
    if again is None:
        if "now" in values:
            yield "unsupported", f"{series} cannot be compared from the days cited"
        else:
            yield from _counted(case, series, rows, values)
        return
    for name, value in (
        ("now", again.now), ("usual", again.usual), ("change", again.change), ("low", again.low), ("high", again.high),
        ("smallest_visible", again.smallest), ("days", again.days), ("usual_days", again.usual_days),
    ):  # fmt: skip
        if name in values and not _near(values[name], value):
            yield "unsupported", f"{series} {name} is {values[name]}, the days give {value:.6g}"
    if "gap" in values and not _near(values["gap"], abs(again.now - again.usual)):
        yield "unsupported", f"{series} gap is {values['gap']}"
    relevance = _RELEVANCE.get(prop, 0.25)
    verdict = (
        ranked_verdict(rows, first, last, again, relevance=relevance, **options) if "rank" in values else again.verdict
    )
    if values.get("verdict") not in (None, verdict, "cannot_tell"):
        yield "unsupported", f"{series} is said to be {values['verdict']}, the days say {verdict}"
    if "rank" in values:
        ranked = past_rank(rows, first, last, **options)
        if ranked != (values["rank"], values.get("rank_of")):
            yield (
                "unsupported",
                f"{series} rank {values['rank']} of {values.get('rank_of')}, the days cited give {ranked}",
            )
    if not kcal:
        yield from _words_of_comparison(case, again.now, again.usual, again.change, unit)


def _night_asked(case: _Case, prop: str) -> bool:
    """Whether the figure is of nights: night restlessness, or any duration or count asked of nights."""
    label = "" if case.claim["window"] is None else str(case.claim["window"]["label"])
    nights = label in ("LAST_NIGHT", "TONIGHT", "NIGHT") or label.startswith("NIGHT:")
    return prop == "restless" or (nights and prop not in ("intake", "water", "weight"))


def _words_of_comparison(case: _Case, now: float, usual: float, change: float, unit: str) -> Found:
    """What the sentence says in words must be what the figures give."""
    found = re.search(r"(?:up|down) (?:too, )?(\d+) %", case.text)
    if found and case.claim["kind"] == "comparison" and abs(abs(change) * 100 - int(found[1])) > 0.51:
        yield "number", f"{found[0]}, the days give {change * 100:.1f} %"
    if (change < 0 and re.search(r"\bup \d", case.text)) or (change > 0 and re.search(r"\bdown \d", case.text)):
        yield "number", "the direction is the other one"
    against = re.search(r"([\d.,]+) (s|min|h|g|kg) a (?:day|night) against \w+(?:'s?)? usual ([\d.,]+)", case.text)
    if against is not None:
        scale = {"s": 1e3, "min": 6e4, "h": 3.6e6, "g": 1e3, "kg": 1e6}[against[2]]
        for said, value in ((against[1], now), (against[3], usual)):
            if abs(float(said.rstrip(".,").replace(",", "")) * scale - value) > 0.051 * scale + 0.5 * scale * (
                "." not in said
            ):
                yield "number", f"{said} {against[2]}, the days give {value / scale:.4g}"


def _counted(case: _Case, series: str, rows: dict[str, Day], values: dict[str, float | str]) -> Found:
    """Too early to compare: only how many days there are."""
    if "days" in values and values["days"] > len(rows):
        yield "unsupported", f"{series}: {values['days']} days said, {len(rows)} cited"


def _comparison_rule(case: _Case) -> Found:
    if len(case.series) != 1:
        yield "misattributed", "a comparison is of one series"
        return
    yield from _about_days(case, set(case.series))
    yield from _comparison(case, case.series[0], case.values)


def _about_days(case: _Case, series: set[str]) -> Found:
    """Every cited day belongs to a series the claim is about, and every series to a pet it is about."""
    for day in case.days:
        if day.series not in series:
            yield "misattributed", f"a day of {day.series} for {sorted(series)}"
    for name in series:
        if case.pets and not set(name.partition(".")[0].split("+")) <= set(case.pets):
            yield "misattributed", f"{name} is not of {case.pets}"


def _as_usual(case: _Case) -> Found:
    yield from _about_days(case, set(case.series))
    for series in case.series:
        values = {n.removeprefix(f"{series}."): v for n, v in case.values.items() if n.startswith(f"{series}.")}
        if values and values.get("verdict") != "usual":
            yield "unsupported", f"{series} is said to be as usual, its verdict is {values.get('verdict')}"
        yield from _comparison(case, series, values)


def _full(case: _Case, rows: list[Day]) -> list[Day]:
    """Days over and heard for at least 60 %."""
    return [d for d in rows if d.end_ms <= case.as_of_ms and sum(d.covered) >= 0.6 * (d.end_ms - d.start_ms)]


def _is_night(case: _Case) -> bool:
    return bool(case.series) and case.book.series.get(case.series[0], ("", "", ""))[1] == "restless"


def _night_mean(case: _Case, rows: dict[str, Day]) -> Found:
    """A mean of nights, each from its evening's row and the morning's after it."""
    hours = {day: hours_of(row, case.book.zone, case.until_ms) for day, row in rows.items()}
    window, count, values = case.claim["window"], case.values.get("days"), case.values
    dates = sorted(day for day in hours if window is None or window["first_date"] <= day <= window["last_date"])
    empty = hours[dates[0]] * 0 if dates else None
    nights = [float(hours[d][0, 21:].sum() + hours.get(plus(d, 1), empty)[0, :7].sum()) for d in dates]
    nights = nights[:count] if isinstance(count, int) else nights  # the last row cited may be a morning alone
    if not nights or len(nights) != count or not _near(values.get("per_day"), sum(nights) / len(nights)):
        yield "unsupported", f"per_day is {values.get('per_day')}, the nights cited give another mean"
        return
    for name, value in (("least", min(nights)), ("most", max(nights))):
        if name in values and not _near(values[name], value):
            yield "unsupported", f"{name} is {values[name]}, the nights give {value}"


def _per_day(case: _Case) -> Found:
    series = {day.series for day in case.days}
    if len(series) != 1 or not case.days:
        yield "misattributed", "a daily mean is of one series"
        return
    yield from _about_days(case, series)
    pets = set(next(iter(series)).partition(".")[0].split("+"))
    if case.pets and pets != set(case.pets):
        yield "misattributed", f"days of {pets} for {case.pets}"
    label = "" if case.claim["window"] is None else str(case.claim["window"]["label"])
    by_night = label in ("LAST_NIGHT", "TONIGHT", "NIGHT") or label.startswith("NIGHT:")
    if by_night or _night_asked(case, case.book.series[next(iter(series))][1]):
        yield from _night_mean(case, {day.date: day for day in case.days})
        return
    full, values = _full(case, case.days), case.values
    window = case.claim["window"]
    if window is not None:
        full = [day for day in full if window["first_date"] <= day.date <= window["last_date"]]
        if any(not window["first_date"] <= day.date <= window["last_date"] for day in case.days):
            yield "misattributed", "a day outside the window"
    if not full:
        yield "unsupported", "no full day is cited"
        return
    mean = sum(day.total for day in full) / len(full)
    if not _near(values.get("per_day"), mean):
        yield "unsupported", f"per_day is {values.get('per_day')}, the days give {mean:.6g}"
    for name, value in (("least", min(d.total for d in full)), ("most", max(d.total for d in full))):
        if name in values and not _near(values[name], value):
            yield "unsupported", f"{name} is {values[name]}, the days give {value}"
    if values.get("days") != len(full):
        yield "unsupported", f"{values.get('days')} days said, {len(full)} full ones cited"
    if "total" in values and not _near(values["total"], sum(d.total for d in case.days)):
        yield "unsupported", f"total is {values['total']}"
    for name in (n[5:] for n in case.claim["about"] if n.startswith("food:")):
        if not any(e.kind == "food_set" and e.fields[0] == case.book.foods.get(name, ("", ""))[1] for e in case.events):
            yield "misattributed", f"no cited record sets {name}"


def _in_window(case: _Case) -> tuple[int, int]:
    """(amount, heard) of the slots inside the window, over the cited days."""
    window = case.claim["window"]
    start, end = (0, 2**62) if window is None else (_ms(window["from"]), _ms(window["to"]))
    total = heard = 0
    for day in case.days:
        for slot, (amount, covered) in enumerate(zip(day.sums, day.covered, strict=True)):
            if start <= day.start_ms + slot * SLOT < end:
                total, heard = total + amount, heard + covered
    return total, heard


def _total(case: _Case) -> Found:
    yield from _about_days(case, set(case.series))
    total, heard = _in_window(case)
    window = case.claim["window"]
    if window is not None and any(not window["first_date"] <= d.date <= window["last_date"] for d in case.days):
        yield "misattributed", "a day outside the window"
    if case.values.get("total") != total:
        yield "unsupported", f"total is {case.values.get('total')}, the days give {total}"
    if "covered" in case.values and case.values["covered"] != heard:
        yield "unsupported", f"covered is {case.values['covered']}, the days give {heard}"
    if "visits" in case.values:
        visits = [e for e in case.events if e.kind == "meal" and e.set_aside is None]
        if len(visits) != case.values["visits"] or len(case.events) != len(visits):
            yield "unsupported", f"{case.values['visits']} visits said, {len(visits)} cited"
        if abs(sum(e.amount or 0 for e in visits) - total) > 0:
            yield "unsupported", "the visits cited do not add up to the total"


def _visits(case: _Case) -> Found:
    yield from _bowl_of_pet(case)
    if "visits" in case.values:
        yield from _total(case)
        return
    window = case.claim["window"]
    if any(not _ms(window["from"]) <= e.start_ms < _ms(window["to"]) for e in case.events):
        yield "misattributed", "an event outside the window"
    if case.values.get("count") != len(case.events) or case.values.get("total") != sum(
        e.amount or 0 for e in case.events
    ):
        yield "unsupported", "count or total is not that of the events cited"


def _bowl_of_pet(case: _Case) -> Found:
    for event in case.events:
        if case.pets and not set(case.pets) & case.book.bound(event.device, event.start_ms):
            yield "misattributed", f"{event.ref} is not of a device of {case.pets}"


def _shared_total(case: _Case) -> Found:
    full = _full(case, case.days)
    if {d.series.partition(".")[0] for d in case.days} != {"+".join(sorted(case.pets))}:
        yield "misattributed", "not the series of all of them"
    if not full or not _near(case.values.get("per_day"), sum(d.total for d in full) / len(full)):
        yield "unsupported", f"per_day is {case.values.get('per_day')}"
    if case.values.get("days") != len(full):
        yield "unsupported", "days said are not the full ones cited"


def _so_far(case: _Case) -> Found:
    totals = sorted(day.total for day in case.days)
    yield from _about_days(case, {day.series for day in case.days})
    if not totals:
        yield "unsupported", "no day is cited"
        return
    half = len(totals) // 2
    middle = totals[half] if len(totals) % 2 else (totals[half - 1] + totals[half]) / 2
    for name, value in (("least", totals[0]), ("most", totals[-1]), ("middle", middle), ("days", len(totals))):
        if not _near(case.values.get(name), value):
            yield "unsupported", f"{name} is {case.values.get(name)}, the days give {value}"


def _today_so_far(case: _Case) -> Found:
    today = local_date(case.as_of_ms, case.book.zone)
    rows = [day for day in case.days if day.date == today]
    others = [day for day in case.days if day.date != today]
    yield from _about_days(case, {day.series for day in case.days})
    yield from _bowl_of_pet(case)
    if len(rows) != 1 or not others:
        yield "unsupported", "today's record or the days before are not cited"
        return
    until = (case.as_of_ms - rows[0].start_ms) // SLOT
    before = [sum(day.sums[:until]) for day in others]
    for name, value in (("now", sum(rows[0].sums[:until])), ("least", min(before)), ("most", max(before))):
        if not _near(case.values.get(name), value):
            yield "unsupported", f"{name} is {case.values.get(name)}, the days give {value}"


def _onset(case: _Case) -> Found:
    yield from _about_days(case, set(case.series))
    values = case.values
    rows = _of_series(case, case.series[0])
    best, change = str(values.get("onset")), values.get("change")
    last = max(rows, default="")
    if not (str(values.get("earliest")) <= best <= str(values.get("latest"))):
        yield "unsupported", "the day is outside its own interval"
    if not isinstance(change, float) or not onset_matches(
        rows, best, change, zone=case.book.zone, until_ms=case.until_ms, last=last, night=_is_night(case)
    ):
        yield "unsupported", f"the days cited do not step by {change} on {best}"


# --- events -------------------------------------------------------------------------------------------


def _last_event(case: _Case) -> Found:
    yield from _bowl_of_pet(case)
    yield from _of_device(case)
    for event in case.events:
        if event.kind != case.claim["kind"].removeprefix("last_"):
            yield "misattributed", f"{event.ref} is a {event.kind}"
        if case.values.get("amount", event.amount) != event.amount:
            yield "unsupported", f"{event.ref} is of {event.amount} {event.kind}"
        if case.book.later_event(event, case.as_of_ms - 1):
            yield "stale", f"{event.ref} is not the latest"
        if f"{case.day_of(event.start_ms)}, {local_time(event.start_ms, case.book.zone)}" not in case.text:
            yield "unsupported", f"{event.ref} is of another time"


def _last_slot(case: _Case) -> Found:
    """The last quarter of an hour, up to the asking, in which the series held anything."""
    yield from _about_days(case, set(case.series))
    if len(case.days) != 1:
        yield "unsupported", "one day holds the last quarter of an hour"
        return
    day = case.days[0]
    held = [n for n, amount in enumerate(day.sums) if amount and day.start_ms + n * SLOT < case.as_of_ms]
    if not held or case.values.get("amount") != day.sums[held[-1]]:
        yield "unsupported", f"amount is {case.values.get('amount')}, the day's last quarter of an hour holds another"
        return
    from_ms = day.start_ms + held[-1] * SLOT
    if (case.values.get("from"), case.values.get("to")) != (from_ms, min(from_ms + SLOT, case.as_of_ms)):
        yield "unsupported", f"the last quarter of an hour is from {from_ms} on"
    if f"{case.day_of(from_ms)}, {local_time(from_ms, case.book.zone)} to" not in case.text:
        yield "unsupported", f"the last quarter of an hour began {local_time(from_ms, case.book.zone)}"
    if case.book.one(
        "SELECT 1 FROM day WHERE series = ? AND date > ? AND start_ms < ? AND n > 0",
        day.series,
        day.date,
        case.as_of_ms,
    ):
        yield "stale", f"{day.series} has a later day"


def _weighed(case: _Case) -> Found:
    """A weight by a device that then served this pet alone; the last one is the latest of any such device."""
    yield from _of_device(case)
    for event in case.events:
        if event.kind != "weight" or event.fields[0] != case.values.get("weight") or event.set_aside is not None:
            yield "unsupported", f"{event.ref} is {event.kind} {event.fields[:1]}"
        if case.book.bound(event.device, event.start_ms) != set(case.pets):
            yield "misattributed", f"{event.ref} is not of {case.pets} alone"
        if case.day_of(event.start_ms) not in case.text:
            yield "unsupported", f"{event.ref} is of {case.day_of(event.start_ms)}"
        if case.claim["kind"] == "weighed_last" and case.book.later_event(event, case.as_of_ms):
            yield "stale", f"{event.ref} is not the latest"


def _silence(case: _Case) -> Found:
    """The last and first record around the gap; where a day row says it, its covered slots."""
    start, end = case.values.get("from"), case.values.get("to")
    edges = {event.end_ms for event in case.events} | {event.start_ms for event in case.events} | {case.as_of_ms}
    for day in case.days:
        for slot, heard in enumerate(day.covered):
            if heard:
                edges |= {day.start_ms + slot * SLOT, day.start_ms + (slot + 1) * SLOT}
    for name, value in (("from", start), ("to", end)):
        if value not in edges:
            yield "unsupported", f"nothing cited was heard at {name} {value}"
    if any(isinstance(start, int) and isinstance(end, int) and start < e.start_ms < end for e in case.events):
        yield "unsupported", "a record cited lies inside the gap"
    yield from _of_device(case)


def _of_device(case: _Case) -> Found:
    devices = {name[7:] for name in case.claim["about"] if name.startswith("device:")}
    for event in case.events:
        if devices and event.device not in devices:
            yield "misattributed", f"{event.ref} is not of {sorted(devices)}"


def _battery(case: _Case) -> Found:
    yield from _of_device(case)
    for event in case.events:
        if event.kind != "beat" or event.fields[0] != case.values.get("battery"):
            yield "unsupported", f"{event.ref} says {event.fields[:1]}"
        if "Battery was" not in case.text and case.book.later_event(event, case.as_of_ms):
            yield "stale", f"{event.ref} is not the latest"


def _last_heard(case: _Case) -> Found:
    yield from _of_device(case)
    for event in case.events:
        if local_time(event.end_ms, case.book.zone) not in case.text or case.day_of(event.end_ms) not in case.text:
            yield "unsupported", f"{event.ref} is of another time"
        newest = case.book.one(
            "SELECT max(start_ms) FROM frame WHERE device = ? AND start_ms <= ?", event.device, case.as_of_ms
        )
        if newest is not None and newest[0] > event.start_ms:
            yield "stale", f"{event.ref} is not the latest"


def _set_aside(case: _Case) -> Found:
    for event in case.events:
        if event.set_aside is None or event.set_aside not in case.text:
            yield "unsupported", f"{event.ref} was not set aside so"
    if case.values.get("set_aside") != sum(event.amount or 0 for event in case.events):
        yield "unsupported", "another amount was set aside"


# --- what was fed, given, visited ---------------------------------------------------------------------------


def _fed(case: _Case, event: Event, food: str, when_ms: int | None = None) -> Found:
    """A cited event must be the record that set this food at this pet's bowl."""
    if event.kind != "food_set":
        yield "misattributed", f"{event.ref} is a {event.kind}, it sets no food"
    elif event.fields[0] != case.book.foods.get(food, ("", None))[1]:
        yield "misattributed", f"{event.ref} sets {event.fields[1]}, not {food}"
    if case.pets and not set(case.pets) & case.book.bound(event.device, event.start_ms):
        yield "misattributed", f"{event.ref} is not of {case.pets}"
    if event.kind == "food_set" and case.day_of(when_ms or event.start_ms) not in case.text:
        yield "unsupported", f"{event.ref} is of {case.day_of(event.start_ms)}"


def _food_change(case: _Case) -> Found:
    food = next((name[5:] for name in case.claim["about"] if name.startswith("food:")), "")
    if not case.events:
        yield from _logged_link(case)
        return
    yield from _fed(case, case.events[0], food)
    if " replaced " in case.text:
        if len(case.events) < 2:
            yield "unsupported", "the food before is not cited"
        elif (
            case.events[1].kind != "food_set"
            or str(case.events[1].fields[1]) not in case.text.partition(" replaced ")[2]
        ):
            yield "misattributed", f"{case.events[1].ref} is not the food before"
        elif any(
            case.events[1].start_ms < e.start_ms < case.events[0].start_ms
            for e in case.book.feedings(case.events[0].device)
        ):
            yield "stale", "another food came between"
    if not case.text.startswith(case.food_name(food)):
        yield "unsupported", f"the claim names another food than {food}"


def _exposure(case: _Case) -> Found:
    """A dated exposure: the food's record, or the log entry or note behind the link."""
    head = next((name for name in case.claim["about"] if not name.startswith("pet:")), "")
    if head.startswith("food:") and case.events:
        yield from _fed(case, case.events[0], head[5:])
        for event in case.events[1:]:
            if event.kind != "food_set" or f" to {case.day_of(event.start_ms)}" not in case.text:
                yield "misattributed", f"{event.ref} does not end it"
        if "since" in case.values and local_date(case.events[0].start_ms, case.book.zone) != case.values["since"]:
            yield "unsupported", "the record is of another day"
        if not case.text.startswith(case.food_name(head[5:])):
            yield "unsupported", "the claim names another food"
        return
    yield from _logged_link(case)


def _logged_link(case: _Case) -> Found:
    """A log entry or note that is evidence for pet -> thing, dated as the claim says."""
    pet = next((name for name in case.claim["about"] if name.startswith("pet:")), "")
    head = next((name for name in case.claim["about"] if not name.startswith("pet:")), "")
    for text in case.texts:
        if not case.book.says(text.ref, pet, head):
            yield "misattributed", f"{text.ref} does not say {pet} - {head}"
        if text.at_ms is not None and case.claim["kind"] != "device_change":
            dates = {case.day_of(text.at_ms)} | ({case.day_of(text.until_ms)} if text.until_ms is not None else set())
            said = {_joined_day(found) for found in _DAY.finditer(case.text)}
            if not said <= dates:
                yield "unsupported", f"{sorted(said - dates)} are not dates of {text.ref}"
    if not case.texts and not case.events:
        yield "unsupported", "nothing that dates it is cited"


def _joined_day(found: re.Match[str]) -> str:
    return f"{found[1]} {found[2]}" + (f" {found[3]}" if found[3] else "")


# --- words -------------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def _quoted_parts(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text) or [text]


def _passage(case: _Case) -> Found:
    """Sentences of a source, word for word."""
    for text in case.texts:
        if _plain(case.text) not in _plain(text.text):
            yield "unsupported", f"{text.ref} does not say so"
    if len(case.texts) != 1:
        yield "unsupported", "one source a sentence"
    tail, head = (*case.claim["about"], "", "")[:2]
    if case.claim["kind"] in _LINKED and not case.book.says(case.claim["refs"][0], tail, head):
        yield "misattributed", f"{case.claim['refs'][0]} is no evidence for {tail} - {head}"


_LINKED = frozenset(
    {"may_cause", "has_sign", "base_rate", "treats", "prevents", "side_effect", "prone_to", "has_agent"}
)


def _words_of_text(case: _Case) -> Found:
    """The record's own words, with its own date."""
    for text in case.texts:
        own = {_plain(text.text), _plain(text.title)}
        said = _plain(_bare(case.text))
        quoted = [_plain(part.removesuffix(" ...")) for part in _quoted_parts(case.text)]
        if not (
            any(word and word in said for word in own) or any(part and part in _plain(text.text) for part in quoted)
        ):
            yield "unsupported", f"{text.ref} does not say so"
        if case.pets and text.pet is not None and text.pet not in case.pets:
            yield "misattributed", f"{text.ref} is of {text.pet}"
        unquoted = re.sub(r'"[^"]*"', "", case.text).replace(text.text, "")
        for found in _DAY.finditer(unquoted):
            ends = unquoted[: found.start()].endswith(" until ")
            of_ms = text.until_ms if ends else text.at_ms
            own = None if of_ms is None else case.day_of(of_ms)
            if own != _joined_day(found) and (ends or own is not None):
                when = "ends on" if ends else "is of"
                yield "unsupported", f"{text.ref} {when} {own}, the claim says {_joined_day(found)}"
        if case.claim["kind"] == "logged" and "at" in case.values and case.values["at"] != text.at_ms:
            yield "unsupported", f"{text.ref} is of another instant"
        if case.text.startswith("Last logged") and case.book.later_text(text, case.as_of_ms):
            yield "stale", f"{text.ref} is not the latest"
        if case.claim["kind"] == "last_weight" and case.book.later_text(text, case.as_of_ms):
            yield "stale", f"{text.ref} is not the latest"


def _bare(text: str) -> str:
    return text.removeprefix("Last logged: ").removeprefix("On file: ")


def _medicines(case: _Case) -> Found:
    """Each named medicine has its own record that says the pet has it, and it has not run out."""
    pet = f"pet:{case.pets[0]}" if case.pets else ""
    for text in case.texts:
        heads = case.book.all(
            "SELECT DISTINCT b.name FROM evidence v JOIN record c ON c.id = v.record JOIN edge e ON e.record = v.edge "
            "JOIN vertex a ON a.id = e.tail JOIN vertex b ON b.id = e.head WHERE c.ref = ? AND a.name = ?",
            text.ref, pet,
        )  # fmt: skip
        names = [case.book.labels.get(head, head.partition(":")[2]) for (head,) in heads]
        if not any(name.casefold() in case.text.casefold() for name in names):
            yield "misattributed", f"{text.ref} names none of them"
        if text.until_ms is not None and text.until_ms <= case.as_of_ms:
            yield "stale", f"{text.ref} ran out"


def _fact(case: _Case) -> Found:
    """What an owner entered: each value stands in a record of the household, an age is counted from the birth."""
    stated = " ".join(text.text for text in case.texts)
    for text in case.texts:
        if text.kind != "household" or (case.pets and text.pet not in case.pets):
            yield "misattributed", f"{text.ref} is no record of {case.pets or 'the household'}"
    for name, value in case.claim["values"].items():
        if name == "age":
            born, today = case.values.get("born"), local_date(case.as_of_ms, case.book.zone)
            months = (int(today[:4]) - int(str(born)[:4])) * 12 + int(today[5:7]) - int(str(born)[5:7])
            months -= today[8:] < str(born)[8:]
            if value["v"] != (months // 12 if value["unit"] == "years" else months):
                yield "unsupported", f"age is {value['v']} {value['unit']}, born {born}"
        elif not re.search(rf"(?<![\w-]){re.escape(str(value['v']))}(?![\w])", stated):
            yield "unsupported", f"{name} is {value['v']}, {stated!r} says otherwise"
    if case.values.get("neutered") == "neutered" and "not neutered" in stated:
        yield "unsupported", "not neutered"


def _of_food(case: _Case, text: Text) -> Found:
    foods = [name[5:] for name in case.claim["about"] if name.startswith("food:")]
    if foods and text.code not in {case.book.foods.get(food, ("", None))[1] for food in foods}:
        yield "misattributed", f"{text.ref} is the label of another food than {foods}"


def _label_lists(case: _Case) -> Found:
    for text in case.texts:
        yield from _of_food(case, text)
        listed = re.search(r'lists "?(.+?)"?(?:, which may contain .*)?$', case.text)
        whole = case.book.whole_label(text) and listed is not None and not _has_a_place(case, text, listed[1])
        if whole and re.search(rf"\b{re.escape(listed[1])}\b", text.text):
            continue  # words of the label that the tables make nothing of
        if listed is None or _plain(listed[1]) != _plain(text.text):
            yield "unsupported", f'{text.ref} reads "{text.text}"'
        thing = next(
            (n.partition(":")[2] for n in case.claim["about"] if n.startswith(("species:", "ing:", "group:"))), ""
        )
        hedged = "may contain" in case.text
        if thing and not hedged and not _is_of(thing, text.text):
            yield "unsupported", f"{text.text!r} is not {thing}"


def _has_a_place(case: _Case, label: Text, words: str) -> bool:
    """Whether words of a label stand in a record of their own, which is then what must be cited."""
    start = f"{label.ref.partition('#')[0]}#%"
    refs = case.book.all("SELECT ref FROM record WHERE ref LIKE ?", start)
    places = [case.book.text(ref) for (ref,) in refs]
    return any(place is not None and _plain(place.text) == _plain(words) for place in places)


def _is_of(thing: str, words: str) -> bool:
    """Whether a label's words name the thing, or a kind of it by a known group."""
    groups = {
        "fish": ("salmon", "tuna", "herring", "cod", "whitefish"),
        "poultry": ("chicken", "duck", "turkey", "goose"),
        "grain": ("oat", "rice", "wheat", "barley", "maize", "corn", "rye", "sorghum", "millet", "cereal"),
        "corn": ("maize",),
        "milk": ("whey", "cheese", "dairy", "yogurt"),
        "meat": ("beef", "pork", "lamb", "chicken", "turkey", "duck", "venison", "rabbit"),
    }
    found = words.casefold()
    return any(word in found for word in (thing.replace("_", " "), *groups.get(thing, ())))


def _label_lists_none(case: _Case) -> Found:
    for text in case.texts:
        yield from _of_food(case, text)
        if not case.book.whole_label(text):
            yield "unsupported", f"{text.ref} is only a part of the label"
        missing = case.text.partition("lists no ")[2]
        for thing in re.split(r", | or ", missing):
            if re.search(rf"\b{re.escape(thing.casefold())}\b", text.text.casefold()):
                yield "unsupported", f"{text.ref} lists {thing}"


def _energy(case: _Case) -> Found:
    for text in case.texts:
        yield from _of_food(case, text)
        if not _near(case.values.get("energy"), float(text.facts.get("kcal_per_kg", "nan"))):
            yield "unsupported", f"{text.ref} gives {text.facts.get('kcal_per_kg')} kcal a kg"


def _treats(case: _Case) -> Found:
    if case.values.get("treats") != len(case.texts) or any(text.object != "treat" for text in case.texts):
        yield "unsupported", "not that many treats are cited"


def _with_and_without(case: _Case) -> Found:
    yield from _about_days(case, set(case.series))
    days = {name: case.values.get(name) for name in ("days_with", "days_without")}
    if not all(isinstance(count, int) for count in days.values()) or sum(days.values()) > len(case.days):  # type: ignore[arg-type]
        yield "unsupported", f"{days} of {len(case.days)} days cited"
    every = sum(day.total for day in case.days) / max(len(case.days), 1)
    both = sum(float(case.values[side]) * float(days[f"days_{side}"]) for side in ("with", "without"))  # type: ignore[arg-type]
    if sum(days.values()) == len(case.days) and not _near(both / len(case.days), every):  # type: ignore[arg-type]
        yield "unsupported", "the two means are not those of the days cited"


_RULES: dict[str, Callable[[_Case], Found]] = {
    "comparison": _comparison_rule, "as_usual": _as_usual, "per_day": _per_day, "total": _total, "visits": _visits,
    "meals": _visits, "refills": _visits, "shared_total": _shared_total, "so_far": _so_far, "today_so_far": _today_so_far,
    "onset": _onset, "last_meal": _last_event, "last_refill": _last_event, "last_litter": _last_event,
    "last_dispensed": _last_event, "last_slot": _last_slot, "weighed_last": _weighed, "weighed_before": _weighed, "silence": _silence, "battery": _battery,
    "last_heard": _last_heard, "set_aside": _set_aside, "food_change": _food_change, "food_since": _exposure,
    "exposure": _exposure, "medicine_change": _logged_link, "parasite_change": _logged_link, "place_change": _logged_link,
    "visitor_change": _logged_link, "device_change": _logged_link, "medicines": _medicines, "logged": _words_of_text,
    "last_weight": _words_of_text, "record": _words_of_text, "rival_on_file": _words_of_text, "schedule": _words_of_text,
    "note_for": _words_of_text, "note_against": _words_of_text, "of_kind": _words_of_text, "label": _words_of_text, "fact": _fact,
    "label_lists": _label_lists, "label_lists_none": _label_lists_none, "energy": _energy, "treats_logged": _treats,
    "with_and_without": _with_and_without, "passage": _passage, "trial": _passage,
} | dict.fromkeys(_LINKED, _passage)  # fmt: skip


# --- numerals in words ------------------------------------------------------------------------------------------


def _numerals(case: _Case) -> Found:
    """Every figure in the words must come from a cited record, a value, a date or a name."""
    given = _given(case)
    for numeral in _NUMERAL.findall(case.text):
        if numeral.strip(".,") not in given:
            yield "number", f"{numeral} is in no record cited"


def _given(case: _Case) -> set[str]:
    book, claim = case.book, case.claim
    words = [book.names, *(f"{text.title} {text.text}" for text in case.texts), *claim["about"]]
    instants = [case.as_of_ms, *(at for t in case.texts for at in (t.at_ms, t.until_ms) if at is not None)]
    instants += [at for event in case.events for at in (event.start_ms, event.end_ms)]
    days = [day.date for day in case.days]
    if claim["window"] is not None:
        days += [claim["window"]["first_date"], claim["window"]["last_date"]]
        instants += [_ms(claim["window"]["from"]), _ms(claim["window"]["to"])]
    for at in instants:
        days.append(local_date(at, book.zone))
        words.append(local_time(at, book.zone))
    for value in claim["values"].values():
        if isinstance(value["v"], str):
            days += re.findall(r"\d{4}-\d{2}-\d{2}", value["v"])
        elif value["unit"] == "ms" and value["v"] > 10**12:
            days.append(local_date(int(value["v"]), book.zone))
            words.append(local_time(int(value["v"]), book.zone))
        else:
            words.extend(_written(float(value["v"]), value["unit"]))
    for event in case.events:
        words += [
            form for number in (event.amount, *event.fields) if isinstance(number, int) for form in _written(number, "")
        ]
    if "total" in claim["values"] and "visits" in claim["values"]:
        words.extend(_written(claim["values"]["total"]["v"] / max(claim["values"]["visits"]["v"], 1), "mg"))
    if claim["window"] is not None:
        first, last = (date.fromisoformat(claim["window"][end]) for end in ("first_date", "last_date"))
        words.append(str((last - first).days + 1))
        words.append(str((last - first).days + 1 - 1))
    words += [str(len(case.days)), str(len(case.events)), str(len(case.texts))]
    words += [f"{date.fromisoformat(day).day} {day[:4]}" for day in days]
    if "rank" in claim["values"]:
        words.append(str(claim["values"]["rank_of"]["v"] - claim["values"]["rank"]["v"]))
    return {numeral.strip(".,") for text in words for numeral in _NUMERAL.findall(text)}


def _written(value: float, unit: str) -> list[str]:
    """The ways a stored figure may be written in an owner's units."""
    scaled = [value, value / 1e3, value / 6e4, value / HOUR, value / 1e6, value / 10]
    if unit == "fraction":
        scaled = [value * 100]
    found = []
    for one in scaled:
        for digits in (0, 1, 2):
            text = f"{abs(one):,.{digits}f}"
            found += [text, text.rstrip("0").rstrip(".") if "." in text else text, str(abs(round(one)))]
    return found
