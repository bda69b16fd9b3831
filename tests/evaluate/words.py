"""What a claim's sentence says, read back: each figure, date, hour and name must be that of its values and records.

In goes a claim; out comes every word of it that its values, its window and the stored names do not
bear out. A sentence is read by the templates of its kind, written down here by hand; one that none
of them reads is a problem, as a claim without a rule is. Quotations have rules of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise

from tests.evaluate.book import Event
from tests.evaluate.case import Case, iso_ms, range_words, shown
from tests.evaluate.counted import days_told
from tests.evaluate.refigure import at_hour, days_of

__all__ = ["TEMPLATES", "misread"]

Found = Iterator[tuple[str, str]]

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_AMOUNT = rf"-?{_NUMBER}(?: (?:s|min|h|g|kg|kcal))?"
_DATE = r"[A-Z][a-z]{2} \d{1,2}(?: \d{4})?"
_RANGE = rf"{_DATE}(?:\N{{EN DASH}}(?:{_DATE}|\d{{1,2}}))?"
_CLOCK = r"\d{2}:\d{2}"
_SCALE = {"s": 1e3, "min": 6e4, "h": 3.6e6, "g": 1e3, "kg": 1e6, "kcal": 1.0}
_OF_UNIT = {"ms": ("s", "min", "h"), "mg": ("g", "kg"), "kcal": ("kcal",), "count": ("",)}

SERIES = {
    "scratch": ("scratching",), "shake": ("head shaking",), "intake": ("food taken from the bowl", "food eaten"),
    "water": ("drinking", "water"), "activity": ("activity",), "rest": ("rest",), "restless": ("night restlessness",),
    "meals": ("meals",), "meal_time": ("time at the bowl",), "litter": ("litter box visits",),
    "refill": ("food put into the bowl",), "portions": ("portions from the feeder",), "lick": ("licking",),
    "weight": ("weight",),
}  # fmt: skip
"""What an answer calls a measured series, by its property: its name, and where that is another its word in a list."""
DID = {
    "scratch": "scratched", "shake": "shook the head", "water": "drank", "activity": "was active", "rest": "rested",
    "restless": "was restless at night", "meal_time": "stood at the bowl", "lick": "licked",
}  # fmt: skip


# --- slots -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slot:
    """A place in a template: what may stand in it, and whether what does is so."""

    pattern: str
    holds: Callable[[Case, str, dict[str, str]], bool]


def _plain(said: str) -> float:
    return float(said.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def _step(said: str) -> float:
    """What one in the last digit of a figure is."""
    return 10.0 ** -len(said.partition(".")[2])


def is_amount(said: str, value: float, unit: str, *, like: str = "") -> bool:
    """Whether a figure in an owner's unit is a stored one, rounded to the digits it has.

    ``like`` is the neighbour whose unit it borrows where it has none.
    """
    figure, _, word = said.partition(" ")
    word = word or like.partition(" ")[2]
    if word not in _OF_UNIT.get(unit, ("",)):
        return False
    scale = _SCALE.get(word, 1.0)
    return abs(_plain(figure) * scale - value) <= 0.5 * _step(figure) * scale * (1 + 1e-6) + 1e-6 * abs(value)


def _amount_of(name: str, like: str = "") -> _Slot:
    def holds(case: Case, said: str, beside: dict[str, str]) -> bool:
        value = case.values.get(name)
        return isinstance(value, (int, float)) and is_amount(said, value, case.unit(name), like=beside.get(like, ""))

    return _Slot(_AMOUNT, holds)


def _percent_of(name: str) -> _Slot:
    """A fraction as whole percent without its sign."""

    def holds(case: Case, said: str, beside: dict[str, str]) -> bool:
        del beside
        value = case.values.get(name)
        return isinstance(value, (int, float)) and _is_percent(said, abs(value))

    return _Slot(_NUMBER, holds)


def _is_percent(said: str, value: float) -> bool:
    return abs(_plain(said) - 100 * value) <= 0.5 + 1e-4


def _end_of_range(which: int) -> _Slot:
    """An end of the likely change: both up, both down (the smaller drop first, without a sign), or with signs."""

    def holds(case: Case, said: str, beside: dict[str, str]) -> bool:
        low, high = case.values.get("low"), case.values.get("high")
        if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
            return False
        signed = any(mark in beside.get(end, "") for end in ("low", "high") for mark in "+\N{MINUS SIGN}")
        ends = (low, high) if signed or low + high >= 0 else (-high, -low)
        one_way = max(low, high) <= 0.005 or min(low, high) >= -0.005
        return _is_percent(said, ends[which]) and (one_way or signed)

    return _Slot(rf"[+\N{{MINUS SIGN}}]?{_NUMBER}", holds)


def _either(up: str, down: str, is_up: Callable[[Case], bool | None]) -> _Slot:
    """One of two words, by what holds; neither where nothing is known of it."""

    def holds(case: Case, said: str, beside: dict[str, str]) -> bool:
        del beside
        found = is_up(case)
        return found is not None and said == (up if found else down)

    return _Slot(f"{re.escape(up)}|{re.escape(down)}", holds)


def _count_of(name: str) -> _Slot:
    return _Slot(_NUMBER, lambda case, said, _: case.values.get(name) == _plain(said))


def _one_of(pattern: str, wanted: Callable[[Case], object]) -> _Slot:
    """A word, date or hour that is one of those ``wanted`` gives (a string, or a collection of them)."""

    def holds(case: Case, said: str, beside: dict[str, str]) -> bool:
        del beside
        found = wanted(case)
        return said == found if isinstance(found, str) else said in found  # type: ignore[operator]

    return _Slot(pattern, holds)


# --- what a claim's names, dates and hours must be ------------------------------------------------------------


def _pet(case: Case) -> set[str]:
    return {case.book.pets[pet] for pet in case.pets if pet in case.book.pets}


def _his(case: Case) -> set[str]:
    """The pet's pronoun by the sex on file, else its name."""
    found = set()
    for pet in case.pets:
        name, sex = case.book.pets.get(pet, ""), case.book.sex.get(pet) or ""
        own = f"{name}'" if name.endswith("s") else f"{name}'s"
        found.add({"m": "his", "f": "her"}.get(sex[:1], own))
    return found


def _prop(case: Case) -> str:
    series = case.series or sorted({day.series for day in case.days})
    return case.book.series.get(series[0], ("", "", ""))[1] if series else ""


def _series_words(case: Case) -> set[str]:
    names = SERIES.get(_prop(case), ())
    return {*names, *(f"{name[:1].upper()}{name[1:]}" for name in names)}


def _series_is(case: Case) -> set[str]:
    """A series with its verb: "Scratching is", "Meals are"."""
    many = {"meals", "litter box visits", "portions from the feeder"}
    return {f"{name} {'are' if name.lower() in many else 'is'}" for name in _series_words(case)}


def _span(case: Case) -> str:
    window = case.window
    return "" if window is None else range_words(window["first_date"], window["last_date"], case.today)


def _cited_span(case: Case) -> str:
    """From the first to the last day, or night, that the figures are of."""
    days = days_told(case)
    return range_words(days[0], days[-1], case.today) if days else ""


def _word(case: Case) -> str:
    return str(case.values.get("verdict", ""))


def _verdict_words(case: Case) -> set[str]:
    """The verdict as a phrase; "slightly" where all of its interval lies within what matters."""
    verdict = _word(case)
    if verdict == "cannot_tell":
        return {"not clear"}
    if verdict == "usual":
        return {"as usual"}
    bound = {"intake": 0.15, "weight": 0.05}.get(_prop(case), 0.25)
    low, high = case.values.get("low"), case.values.get("high")
    small = isinstance(low, float) and isinstance(high, float) and -bound <= low and high <= bound
    return {f"{'slightly' if small else 'clearly'} {verdict}"}


def _rises(case: Case) -> bool | None:
    change = case.values.get("change")
    return None if not isinstance(change, (int, float)) or change == 0 else change > 0


def _by_night(case: Case) -> bool:
    return case.of_nights(_prop(case))


def _expected(case: Case) -> set[str]:
    """How many days the window has; of nights, how many have begun."""
    window = case.window
    if window is None:
        return set()
    dates = days_of(window["first_date"], window["last_date"])
    if _by_night(case):
        dates = [day for day in dates if at_hour(day, 21, case.book.zone) < case.until_ms]
    return {str(len(dates))}


def _instant(case: Case, name: str) -> str:
    """A value that is an instant, as weekday, date and hour."""
    at_ms = case.values.get(name)
    return "" if not isinstance(at_ms, int) else _weekday_day_clock(case, at_ms)


def _weekday_day_clock(case: Case, at_ms: int) -> str:
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[date.fromisoformat(case.date_of(at_ms)).weekday()]
    return f"{weekday} {case.day_of(at_ms)} {case.clock(at_ms)}"


def _day_clock(case: Case, at_ms: int) -> str:
    return f"{case.day_of(at_ms)}, {case.clock(at_ms)}"


def _dates_of_window(case: Case) -> set[str]:
    """A window in words, by what it is: today up to now, a night, hours of a day, a day, a stretch."""
    window = case.window
    if window is None:
        return set()
    first, last = window["first_date"], window["last_date"]
    begin, end = case.clock(iso_ms(window["from"])), case.clock(iso_ms(window["to"]))
    day = shown(first, case.today)
    if case.label == "TODAY":
        return {f"today ({day}) by {end}"}
    until = case.date_of(iso_ms(window["to"]))
    if case.label in ("LAST_NIGHT", "THIS_MORNING") or case.label.startswith("NIGHT:2"):
        return {
            f"on {day}, {begin} to {end}" if first == until else f"from {day} {begin} to {shown(until, until)} {end}"
        }
    if case.label in ("TONIGHT", "NIGHT") or case.label.startswith("NIGHT:"):
        return {f"at night, {_span(case)}"} if first < last else {f"on {day}"}
    return {f"on {day}"} if first == last else {_span(case)}


def _each(case: Case, said: str, beside: dict[str, str]) -> bool:
    del beside
    whole, visits = case.values.get("total"), case.values.get("visits")
    return isinstance(whole, int) and isinstance(visits, int) and is_amount(said, whole / max(visits, 1), "mg")


def _foods_set(case: Case) -> set[str]:
    """Names of the foods the claim is about."""
    return {case.food_name(food) for food in case.about("food")}


def _list(words: list[str], last: str = "and") -> str:
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _times(case: Case) -> str:
    """The hours of the latest four events cited, as a list."""
    return _list([case.clock(event.start_ms) for event in case.events[-4:]])


def _all_usual(case: Case) -> str:
    names = []
    for series in case.series:
        words = SERIES.get(case.book.series.get(series, ("", "", ""))[1], ("?",))
        names.append(words[-1] if words[0] in ("food taken from the bowl", "drinking") else words[0])
    told = _list(names)
    return f"{told[:1].upper()}{told[1:]}"


# --- dated things ------------------------------------------------------------------------------------------


def _spans_in_words(case: Case) -> set[str]:
    """When the pet had the thing the claim is about, by each of its stored links: "since Jul 5", "from .. to .."."""
    found = set()
    for pet in case.pets:
        for thing in (name for name in case.claim["about"] if not name.startswith("pet:")):
            relations = case.book.relations(f"pet:{pet}", thing)
            for start, end in case.book.spans(f"pet:{pet}", thing):
                found |= _one_span(case, start, end, relations)
    return found


def _one_span(case: Case, start: int | None, end: int | None, relations: set[str]) -> set[str]:
    if start is None:
        return {""} if end is None else {f"until {case.day_of(end)}"}
    day = case.day_of(start)
    if end is None and "was_at" in relations:
        return {f"from {day}"}
    if (end is None or end > case.as_of_ms) and "visited_by" not in relations:
        return {f"since {day}"}
    if end is None or end - start <= 86_400_000:
        return {f"on {day}", f"since {day}"} if end is None else {f"on {day}"}
    return {f"from {day} to {case.day_of(end)}"}


def _thing(case: Case) -> set[str]:
    """What the claim is about, but for the pet, as the database calls it; its first letter raised."""
    names = [case.book.thing_name(name) for name in case.claim["about"] if not name.startswith("pet:")]
    foods = [case.food_name(food) for food in case.about("food")]
    return {f"{name[:1].upper()}{name[1:]}" for name in (*names, *foods) if name}


def _changed(case: Case, which: int) -> set[str]:
    """The day a link of the claim began (0) or ended (1)."""
    found = set()
    for pet in case.pets:
        for thing in (name for name in case.claim["about"] if not name.startswith("pet:")):
            for span in case.book.spans(f"pet:{pet}", thing):
                if span[which] is not None:
                    found.add(case.day_of(span[which]))
    return found


def _text_at(case: Case) -> set[str]:
    return {case.day_of(text.at_ms) for text in case.texts if text.at_ms is not None}


def _ends(case: Case) -> set[str]:
    return {case.date_of(text.until_ms) for text in case.texts if text.until_ms is not None}


def _text_day_clock(case: Case) -> set[str]:
    found = {_day_clock(case, text.at_ms) for text in case.texts if text.at_ms is not None}
    return found | {
        f"today, {case.clock(text.at_ms)}"
        for text in case.texts
        if text.at_ms is not None and case.date_of(text.at_ms) == case.today
    }


def _own_words(case: Case) -> set[str]:
    """A text's own words or title, on one line, the first letter raised or not."""
    found = {" ".join(words.split()) for text in case.texts for words in (text.text, text.title)}
    return found | {f"{words[:1].upper()}{words[1:]}" for words in found}


def _next_food(case: Case) -> list[Event]:
    """The record of the food that came after the one the claim is about."""
    fed = [event for pet in case.pets for event in case.book.fed(pet)]
    mine = {event.ref for event in case.events}
    return [later for food, later in pairwise(fed) if food.ref in mine]


def _last_meal(case: Case) -> set[str]:
    found = set()
    for event in case.events:
        found.add(
            case.clock(event.start_ms)
            if case.date_of(event.start_ms) == case.today
            else _day_clock(case, event.start_ms)
        )
    return found


def _length(case: Case) -> int:
    window = case.window
    return 0 if window is None else len(days_of(window["first_date"], window["last_date"]))


def _stated(case: Case, said: str) -> bool:
    """Whether these are the claim's own values and nothing else but the words that join them."""
    left = said
    for value in sorted((str(v) for v in case.values.values()), key=len, reverse=True):
        name = case.book.devices.get(value, ("", value))[1] or value
        whole = {"m": "male", "f": "female"}.get(name, name)
        if whole not in said:
            return False
        left = left.replace(whole, " ")
    return not re.sub(r"[\s,()]|\b(?:a|an|and)\b", "", left)


def _too_little(case: Case) -> set[str]:
    """Why a window could not be compared, where it is no want of days before it."""
    used = case.values.get("days")
    told = {f"{used} of {_length(case)} days were heard enough to count", "not enough was recorded"}
    told |= {"no local hour was heard on both sides"}
    fed = [event for pet in case.pets for event in case.book.fed(pet)]
    for before, after in pairwise(fed):
        names = {after.fields[1], *(name for name, code in case.book.foods.values() if code == after.fields[0])}
        day, count = case.date_of(after.start_ms), case.values.get("usual_days")
        if before.fields[0] != after.fields[0]:
            for name in names:
                told.add(f"the food changed to {name} on {day}, inside the window")
                told.add(
                    f"{count} days recorded before the window since the food changed to {name} on {day}, "
                    f"{min(max(_length(case), 21), 56)} needed"
                )
    return told


def _alike(case: Case) -> int:
    """How many of the pet's own past windows were as high, or as low, as this one."""
    rank, of, change = (case.values.get(name) for name in ("rank", "rank_of", "change"))
    if not isinstance(rank, int) or not isinstance(of, int) or not isinstance(change, (int, float)):
        return -1
    return of - rank if change > 0 else rank


# --- templates ---------------------------------------------------------------------------------------------

_SLOTS: dict[str, _Slot] = {
    "now": _amount_of("now"), "usual": _amount_of("usual", "now"), "gap": _amount_of("gap"),
    "change": _percent_of("change"), "low": _end_of_range(0), "high": _end_of_range(1),
    "smallest": _percent_of("smallest_visible"), "days": _count_of("days"), "usual_days": _count_of("usual_days"),
    "rank_of": _count_of("rank_of"), "visits": _count_of("visits"), "treats": _count_of("treats"),
    "share": _count_of("share"), "days_with": _count_of("days_with"), "days_without": _count_of("days_without"),
    "per_day": _amount_of("per_day"), "least": _amount_of("least", "most"), "most": _amount_of("most"),
    "middle": _amount_of("middle"), "total": _amount_of("total"), "with": _amount_of("with"),
    "without": _amount_of("without"), "amount": _amount_of("amount"), "weight": _amount_of("weight"),
    "level": _Slot(_NUMBER, lambda case, said, _: abs(float(case.values.get("battery", -9)) / 10 - _plain(said)) <= 0.5),
    "energy": _Slot(_NUMBER, lambda case, said, _: abs(float(case.values.get("energy", -9)) / 1e3 - _plain(said)) <= 0.005001),
    "each": _Slot(_AMOUNT, _each),
    "alike": _Slot(_NUMBER, lambda case, said, _: _alike(case) == int(said)),
    "expected": _one_of(_NUMBER, _expected),
    "needed": _Slot(_NUMBER, lambda case, said, _: int(said) == min(max(_length(case), 21), 56)),
    "wider": _Slot(_NUMBER, lambda case, said, _: int(said) == _length(case)),
    "pet": _one_of(r"\S.*?", _pet), "his": _one_of(r"\S+", _his),
    "series": _one_of(r"[A-Za-z ]+?", _series_words), "series_is": _one_of(r"[A-Za-z ]+?", _series_is),
    "all_usual": _one_of(r"[A-Za-z, ]+?", _all_usual),
    "did": _one_of(r"[a-z ]+?", lambda case: DID.get(_prop(case), "")),
    "verdict": _one_of(r"[a-z ]+", _verdict_words), "way": _either("up", "down", _rises),
    "higher": _either("higher", "lower", _rises), "high_low": _either("high", "low", _rises),
    "above": _either("above", "below", _rises), "night": _either("night", "day", _by_night),
    "nights": _either("nights", "days", _by_night), "weeks": _either("weeks", "stretches", lambda case: _length(case) == 7),
    "one_week": _either("one week", "that time", lambda case: _length(case) == 7),
    "replaced": _either("replaced", "began", lambda case: len(case.events) > 1),
    "not_yet": _either(", and not again yet", "", lambda case: case.values.get("to") == case.as_of_ms),
    "detail": _one_of(r".+", _too_little),
    "span": _one_of(_RANGE, _span), "cited_span": _one_of(_RANGE, _cited_span),
    "dates": _one_of(r".+?", _dates_of_window), "times": _one_of(rf"{_CLOCK}[\d:, and]*", _times),
    "from": _one_of(rf"[A-Z][a-z]{{2}} {_DATE} {_CLOCK}", lambda case: _instant(case, "from")),
    "to": _one_of(rf"[A-Z][a-z]{{2}} {_DATE} {_CLOCK}", lambda case: _instant(case, "to")),
    "day": _one_of(_DATE, lambda case: "" if case.window is None else shown(case.window["first_date"], case.today)),
    "now_clock": _one_of(_CLOCK, lambda case: case.clock(case.as_of_ms)),
    "end_clock": _one_of(_CLOCK, lambda case: case.clock(case.until_ms)),
    "event_at": _one_of(rf"{_DATE}, {_CLOCK}", lambda case: {_day_clock(case, event.start_ms) for event in case.events[:1]}),
    "event_end": _one_of(rf"{_DATE}, {_CLOCK}", lambda case: {_day_clock(case, event.end_ms) for event in case.events[:1]}),
    "event_day": _one_of(_DATE, lambda case: {case.day_of(event.start_ms) for event in case.events[:1]}),
    "event_full": _one_of(rf"[A-Z][a-z]{{2}} {_DATE} {_CLOCK}", lambda case: {_weekday_day_clock(case, e.start_ms) for e in case.events[:1]}),
    "event_amount": _Slot(_AMOUNT, lambda case, said, _: bool(case.events) and is_amount(said, case.events[0].amount or 0, "mg")),
    "meal_clock": _one_of(rf"(?:{_DATE}, )?{_CLOCK}", _last_meal),
    "slot_from": _one_of(rf"{_DATE}, {_CLOCK}", lambda case: _day_clock(case, int(case.values.get("from", 0)))),
    "slot_to": _one_of(_CLOCK, lambda case: case.clock(int(case.values.get("to", 0)))),
    "food": _one_of(r"\S.*?", _foods_set), "thing": _one_of(r"\S.*?", _thing),
    "old": _one_of(r"\S.*?", lambda case: {str(event.fields[1]) for event in case.events[1:2]} | {
        name for event in case.events[1:2] for name, code in case.book.foods.values() if code == event.fields[0]
    }),
    "began": _one_of(_DATE, lambda case: _changed(case, 0)), "ended": _one_of(_DATE, lambda case: _changed(case, 1)),
    "had": _one_of(rf"(?:since|on|from|until) {_DATE}(?: to {_DATE})?", _spans_in_words),
    "of_days": _Slot(_NUMBER, lambda case, said, _: int(said) == _length(case)),
    "often": _Slot(r"once|twice|\d+ times", lambda case, said, _: said == {1: "once", 2: "twice"}.get(case.values.get("total"), f"{case.values.get('total')} times")),
    "age": _count_of("age"), "born": _one_of(_DATE, lambda case: shown(str(case.values.get("born", "0001-01-01")), "0000")),
    "stated": _Slot(r".+", lambda case, said, _: _stated(case, said)),
    "text_at": _one_of(_DATE, _text_at), "text_day_clock": _one_of(rf"(?:{_DATE}|today), {_CLOCK}", _text_day_clock),
    "text_until": _one_of(_DATE, lambda case: {shown(day, day) for day in _ends(case)}),
    "not_used": _Slot("not used", lambda case, said, _: case.events[0].fields[1] == 0),
    "aside": _one_of(r".+", lambda case: {str(event.set_aside) for event in case.events[:1]}),
    "own": _one_of(r".+?", _own_words),
    "last_text": _one_of(_DATE, lambda case: max(((text.at_ms or 0, case.day_of(text.at_ms or 0)) for text in case.texts), default=(0, ""))[1]),
    "changed_before": _one_of(_DATE, lambda case: {case.day_of(e.start_ms) for e in _next_food(case)}),
}  # fmt: skip


_BODY = (
    "<now> a <night> against <his> usual <usual>[: <way> <change> %][ (likely <low> to <high> %)], [night of ]<span>, "
    "[worn ]<days> of <expected> <nights>[; counted as energy, because the food changed]"
    "[; {<higher> than all of <his> last <rank_of> comparable <weeks>|"
    "<alike> of <his> last <rank_of> comparable <weeks> {was|were} as <high_low>}]"
    "[; <one_week> would show a change above about <smallest> %]"
)
_EARLY = "<usual_days> <nights> recorded before [night of ]<span>, <needed> are needed for a first comparison"
_LITTLE = "[night of ]<span>: <detail>"
_OPENINGS = (
    "", "<series>: ", "<pet>: ", "<series>, not clear: ", "<pet>, <verdict>: ", "<pet>, <series>: ",
    "Over the last <wider> days it is <verdict>: ",
)  # fmt: skip


def _last(*rows: str) -> tuple[str, ...]:
    """The last row of a kind, by what one of them is called."""
    return (f"{{The last|Last}} {{{'|'.join(rows)}}} [was on ]<event_at>[, <event_amount>][, <not_used>][ (<aside>)]",)


TEMPLATES: dict[str, tuple[str, ...]] = {
    "comparison": (
        *(f"{opening}{text}" for text in (_BODY, _EARLY, _LITTLE) for opening in _OPENINGS),
        "<series_is> <way>[ too], <change> %",
        "As energy <now> a day against <his> usual <usual>[ (likely <low> to <high> %)], <span>",
        "Since then <now> a day, {<change> % <above> <his> usual|within <his> usual}, <span>",
        "Against <his> own past <pet> is {<gap> a day <above> <his> usual|as <his> usual}, <span>",
    ),
    "as_usual": ("<all_usual>[ {is|are}] as usual",),
    "per_day": (
        "<per_day> a {day on <days> full days|night on <days> nights}[, <least> to <most>]",
        "<pet> <did> <per_day> a night on <days> nights[, <least> to <most>][, <span>]",
        "<per_day> from the bowl of <pet> a night on <days> nights[, <least> to <most>][, <span>]",
        "<pet>: <per_day> a {day over <days> of <of_days> days|night over <days> of <of_days> nights}[, <total> in all]",
        "Before <changed_before>: <per_day> of <food> a day",
        "Since then: <per_day> of <food> a day",
        "<span>: <per_day> a day over <days> full {day|days}",
        "<span>: <per_day> a night on <days> {night|nights}",
    ),
    "total": (
        "<pet> <did> <total> <dates>",
        "<pet> had <total> {meal|meals} <dates>",
        "<pet> used the litter box <often> <dates>",
        "<total> from the bowl of <pet> <dates>",
        "<day>[ by <end_clock>]: <total>[ from the bowl][, heard for <share> % of it]",
    ),
    "visits": ("<total> from the bowl of <pet> <dates>, in <visits> {visit|visits}[, <each> each on average]",),
    "meals": ("At <times>, <total>[ in all]",),
    "refills": ("At <times>, <total>[ in all]",),
    "shared_total": ("All together <per_day> a day on <days> full days, <cited_span>",),
    "so_far": ("<least> to <most> on <his> <days> {full days|nights}, middle <middle>, <cited_span>",),
    "today_so_far": (
        "Today <now> by <now_clock>; by that hour it was <least> to <most> before[; last meal <meal_clock>]",
    ),
    "onset": ("<series> went <way> by <change> % then and has stayed there",),
    "last_slot": ("<series_is> last recorded <slot_from> to <slot_to>: <amount>",),
    "weighed_last": ("<pet> weighed <weight> on <event_at>",),
    "weighed_before": ("Before that <weight> on <event_at>",),
    "silence": ("Last heard <from><not_yet>[, and again <to>]",),
    "battery": (
        "Battery was <level> % on <event_full>",
        "Battery <level> %, <event_day>",
        "Battery not known: it says 0 %, <event_day>, and did not fall to it",
    ),
    "last_heard": ("Last record <event_end>",),
    "last_meal": (
        "Last meal seen <event_at>[, <event_amount>]",
        *_last("visit to the bowl", "visit to the water bowl"),
    ),
    "last_refill": _last("refill"),
    "last_litter": _last("visit to the litter box"),
    "last_dispensed": _last("feeding"),
    "food_change": ("<food> <replaced>[ <old>] on <began>",),
    "food_since": ("<thing> <had>",),
    "exposure": ("<thing> <had>",),
    "medicine_change": ("<thing> given <began> ran out on <ended>", "<thing> on <began>"),
    "parasite_change": ("<thing> given <began> ran out on <ended>", "<thing> on <began>"),
    "place_change": ("<thing> on <began>",),
    "visitor_change": ("<thing> on <began>",),
    "device_change": ("<thing> has been in use since <began>", "<thing> on <began>"),
    "logged": (
        "Last logged: <own>, <text_day_clock>",
        "<own> on {<text_at>|<text_day_clock>}[, the last on file]",
        "<own> on <text_day_clock>[ until <text_until>][, written down for <pet>]",
    ),
    "last_weight": ("<own> on <text_at>",),
    "rival_on_file": ("<own> on <text_at>",),
    "treats_logged": ("<treats> {treat|treats} logged, last on <last_text>",),
    "with_and_without": (
        "<series>: <with> on <days_with> {days|nights} with it, <without> on <days_without> without, <cited_span>",
    ),
    "energy": ("<food>: <energy> kcal a gram",),
    "fact": (
        "<pet> is <age> {year|years|month|months} old, born on <born>",
        "<pet> was born on <born> and is <age> {year|years|month|months} old",
        "<pet> {is|has|wears} <stated>",
        "<pet>: <stated>",
        "<stated>",
    ),
}


@lru_cache(maxsize=256)
def _compiled(template: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A template as an expression, and the slot each of its groups is; a slot may stand in it more than once."""
    slots: list[str] = []

    def piece(found: re.Match[str]) -> str:
        mark = found[0]
        if mark.startswith("<"):
            slots.append(mark[1:-1])
            return f"({_SLOTS[mark[1:-1]].pattern})"
        return {"[": "(?:", "]": ")?", "{": "(?:", "}": ")", "|": "|"}.get(mark) or re.escape(mark)

    return re.compile(re.sub(r"<\w+>|[\[\]{}|]|[^<\[\]{}|]+", piece, template)), tuple(slots)


def misread(case: Case) -> Found:
    """What is not so in the claim's own words; nothing for a kind that quotes."""
    templates = TEMPLATES.get(case.kind)
    if templates is None:
        return
    wrong: list[str] | None = None
    for template in templates:
        expression, slots = _compiled(template)
        found = expression.fullmatch(case.text)
        if found is None:
            continue
        now = _wrong(case, slots, found)
        if not now:
            return
        wrong = now if wrong is None or len(now) < len(wrong) else wrong
    if wrong is None:
        yield "unsupported", f"a sentence the checker cannot read: {case.text}"
    else:
        yield "number", f"{', '.join(wrong)} of {case.text!r} is not what its values and records give"


def _wrong(case: Case, slots: tuple[str, ...], found: re.Match[str]) -> list[str]:
    beside = {slot: said for slot, said in zip(slots, found.groups(), strict=True) if said is not None}
    return [
        f"{slot} {said!r}"
        for slot, said in zip(slots, found.groups(), strict=True)
        if said is not None and not _SLOTS[slot].holds(case, said, beside)
    ]
