"""The checker: an answer's JSON and the database in, everything that its citations do not bear out.

Each claim is recomputed from the records it cites, by rules of its kind: figures from day rows,
visits from events, words from texts, dates from instants. A claim of a kind without a rule is a
problem, not a pass. Nothing of the three packages is imported; SQLite is read by `Book`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from tests.evaluate.book import Book, Event, Text
from tests.evaluate.case import Case, iso_ms
from tests.evaluate.counted import (
    Found,
    as_usual,
    comparison,
    last_slot,
    near,
    of_device,
    of_pet,
    onset,
    per_day,
    shared_total,
    so_far,
    today_so_far,
    total,
    visits,
    with_and_without,
)
from tests.evaluate.refigure import days_of, local_date, local_time, plus
from tests.evaluate.words import TEMPLATES, misread

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


def replay(answer: dict, book: Book) -> list[Problem]:
    """Every problem of every claim, and of the chain that rides along."""
    as_of = iso_ms(answer["as_of"])
    problems: list[Problem] = []
    known = {claim["id"] for claim in answer["claims"]}
    for claim in answer["claims"]:
        found = list(
            _claim_problems(Case(book, claim, as_of, answer["frame"], answer.get("language", "en")), answer, known)
        )
        problems += [Problem(claim["id"], what, detail) for what, detail in found]
    for ref in answer["chain"]:
        if book.edge(ref) is None or not book.supported(ref):
            problems.append(Problem("chain", "link", f"{ref} is no stored, believed link"))
    return problems


def _claim_problems(case: Case, answer: dict, known: set[str]) -> Found:
    claim, book = case.claim, case.book
    kinds = {ref.partition(":")[0] for ref in claim["refs"]}
    classes = {_CLASS.get(kind, kind) for kind in kinds}
    expected = "MEASURED" if "MEASURED" in classes and classes <= {"MEASURED", "REFERENCE"} else (
        next(iter(classes)) if len(classes) == 1 else "CONNECTION" if claim["joins"] else "GENERAL" if not classes else "mixed"
    )  # fmt: skip
    if claim["class"] != expected:
        yield "class", f"{claim['class']}, its records make it {expected}"
    yield from _label_problems(case)
    yield from _window_problems(case)
    for ref in claim["refs"]:
        if not book.stored(ref):
            yield "unresolved", ref
    if expected == "CONNECTION":
        yield from _connection(case, answer, known)
    elif expected == "GENERAL":
        asked = {name for pet, name in book.pets.items() if pet in case.frame["pets"]}
        for name in _names_in(case.text, book) - asked:
            yield "misattributed", f"{name} was not asked about"
    else:
        rule = _RULES.get(claim["kind"])
        if rule is None:
            yield "unsupported", f"no rule for a claim of kind {claim['kind']}"
        elif all(book.stored(ref) for ref in claim["refs"]):
            yield from rule(case)
            yield from misread(case) if case.language == "en" and claim["kind"] in TEMPLATES else _numerals(case)


def _window_problems(case: Case) -> Found:
    """A window's dates are the local days its instants lie on; a night is dated by its evening."""
    window = case.window
    if window is None:
        return
    from_ms, to_ms = iso_ms(window["from"]), iso_ms(window["to"])
    ends = {case.date_of(max(to_ms - 1, from_ms))}
    if case.label in ("LAST_NIGHT", "TONIGHT", "NIGHT") or case.label.startswith("NIGHT:"):
        ends |= {plus(day, -1) for day in ends}
    if to_ms <= from_ms and to_ms != case.as_of_ms:
        yield "unsupported", "the window ends before it begins"
    if case.date_of(from_ms) != window["first_date"] or window["last_date"] not in ends:
        yield "unsupported", f"the window {window['from']} to {window['to']} is not that of its dates"
    counted = re.fullmatch(r"P(\d+)D", case.label)
    if counted and len(days_of(window["first_date"], window["last_date"])) != int(counted[1]):
        yield "unsupported", f"{case.label} is not so many days"


def _label_problems(case: Case) -> Found:
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
        named = _names_in(plain, case.book)
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


def _names_in(text: str, book: Book) -> set[str]:
    """The pets that a text names."""
    return {name for name in book.pets.values() if re.search(rf"\b{re.escape(name)}\b", text)}


_QUOTED = frozenset({"note_for", "note_against", "record", "schedule"})


# --- connections ---------------------------------------------------------------------------------------


_CHANGES = {
    "food": "the food", "parasite": "the lapsed treatment", "medicine": "the medicine", "place": "the stay",
    "visitor": "the visitor", "device": "the change of device",
}  # fmt: skip
"""What a change is called where it is the only one offered, by its kind."""


def _offered(kinds: list[str]) -> str:
    """What a connection calls the changes it joins."""
    if len(set(kinds)) == 1 and (len(kinds) == 1 or kinds[0] == "device"):
        return _CHANGES[kinds[0]]
    return "either change" if len(kinds) == 2 else "any of these changes"


def _connection(case: Case, answer: dict, known: set[str]) -> Found:
    claim, book = case.claim, case.book
    if len(claim["joins"]) < 2 or not set(claim["joins"]) <= known:
        yield "link", "joins claims that are not there"
    pet, sign, *causes = claim["about"]
    changes = {
        joined["about"][1]: joined["kind"].removesuffix("_change")
        for joined in answer["claims"]
        if joined["id"] in claim["joins"] and joined["kind"].endswith("_change")
    }
    if not set(changes) <= set(causes):
        yield "link", f"joins the changes of {sorted(changes)}, offers {sorted(causes)}"
    elif set(changes) == set(causes) and _offered(list(changes.values())) not in claim["text"]:
        yield "link", f"{claim['text']!r} offers another change than {sorted(changes)}"
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


# --- events -------------------------------------------------------------------------------------------


def _last_event(case: Case) -> Found:
    yield from of_pet(case)
    yield from of_device(case)
    for event in case.events:
        if event.kind != case.kind.removeprefix("last_"):
            yield "misattributed", f"{event.ref} is a {event.kind}"
        if case.values.get("amount", event.amount) != event.amount:
            yield "unsupported", f"{event.ref} is of {event.amount} {event.kind}"
        if case.book.later_event(event, case.as_of_ms - 1):
            yield "stale", f"{event.ref} is not the latest"
        if f"{case.day_of(event.start_ms)}, {local_time(event.start_ms, case.book.zone)}" not in case.text:
            yield "unsupported", f"{event.ref} is of another time"


def _weighed(case: Case) -> Found:
    """A weight by a device that then served this pet alone; the last one is the latest of any such device."""
    yield from of_device(case)
    for event in case.events:
        if event.kind != "weight" or event.fields[0] != case.values.get("weight") or event.set_aside is not None:
            yield "unsupported", f"{event.ref} is {event.kind} {event.fields[:1]}"
        if case.book.bound(event.device, event.start_ms) != set(case.pets):
            yield "misattributed", f"{event.ref} is not of {case.pets} alone"
        if case.day_of(event.start_ms) not in case.text:
            yield "unsupported", f"{event.ref} is of {case.day_of(event.start_ms)}"
        if case.kind == "weighed_last" and case.book.later_event(event, case.as_of_ms):
            yield "stale", f"{event.ref} is not the latest"


def _silence(case: Case) -> Found:
    """A gap of the device's covered slots, from the last record before it to the first after it.

    The two records and the rows of the days they lie on are what must be cited.
    """
    yield from of_device(case)
    devices, series = case.about("device"), {day.series for day in case.days}
    start, end = case.values.get("from"), case.values.get("to")
    if len(devices) != 1 or len(series) != 1 or not isinstance(start, int) or not isinstance(end, int):
        yield "misattributed", "a silence is of one device, told by one series, from one instant to another"
        return
    book, device, name = case.book, devices[0], next(iter(series))
    if not set(name.partition(".")[0].split("+")) & set(case.pets) & book.bound(device, start):
        yield "misattributed", f"{device} does not serve {case.pets}, or {name} is not of them"
    slots = [
        day.start_ms + n * SLOT for day in book.rows(name, "", "9").values() for n, of in enumerate(day.covered) if of
    ]
    before = max((slot + SLOT for slot in slots if slot < start), default=0)
    after = min((slot for slot in slots if before <= slot < case.as_of_ms), default=case.as_of_ms)
    last, first = book.heard_by(device, before + SLOT), book.heard_from(device, max(before, after - SLOT), after + SLOT)
    from_ms = last.end_ms if last is not None and abs(last.end_ms - before) <= SLOT else before
    lasting = after >= case.as_of_ms
    to_ms = case.as_of_ms if lasting else after if first is None else first.start_ms
    if after - before < _WORTH_SAYING or (start, end) != (from_ms, to_ms):
        yield "unsupported", f"{device} was silent from {from_ms} to {to_ms}, the claim says {start} to {end}"
    wanted = {event.ref for event in (last, first) if event is not None}
    wanted |= {
        f"day:{name}/{day}" for day in (case.date_of(before - 1), case.date_of(after)) if book.rows(name, day, day)
    }
    for ref in sorted(wanted ^ set(case.claim["refs"])):
        yield "unsupported" if ref in wanted else "misattributed", f"{ref} is {'not ' * (ref in wanted)}cited"


_WORTH_SAYING = 6 * HOUR
"""A shorter silence is no event of its own."""


def _battery(case: Case) -> Found:
    yield from of_device(case)
    for event in case.events:
        if event.kind != "beat" or event.fields[0] != case.values.get("battery"):
            yield "unsupported", f"{event.ref} says {event.fields[:1]}"
        if "Battery was" not in case.text and case.book.later_event(event, case.as_of_ms):
            yield "stale", f"{event.ref} is not the latest"


def _last_heard(case: Case) -> Found:
    yield from of_device(case)
    for event in case.events:
        if local_time(event.end_ms, case.book.zone) not in case.text or case.day_of(event.end_ms) not in case.text:
            yield "unsupported", f"{event.ref} is of another time"
        newest = case.book.one(
            "SELECT max(start_ms) FROM frame WHERE device = ? AND start_ms <= ?", event.device, case.as_of_ms
        )
        if newest is not None and newest[0] > event.start_ms:
            yield "stale", f"{event.ref} is not the latest"


def _set_aside(case: Case) -> Found:
    for event in case.events:
        if event.set_aside is None or event.set_aside not in case.text:
            yield "unsupported", f"{event.ref} was not set aside so"
    if case.values.get("set_aside") != sum(event.amount or 0 for event in case.events):
        yield "unsupported", "another amount was set aside"


# --- what was fed, given, visited ---------------------------------------------------------------------------


def _fed(case: Case, event: Event, food: str, when_ms: int | None = None) -> Found:
    """A cited event must be the record that set this food at this pet's bowl."""
    if event.kind != "food_set":
        yield "misattributed", f"{event.ref} is a {event.kind}, it sets no food"
    elif event.fields[0] != case.book.foods.get(food, ("", None))[1]:
        yield "misattributed", f"{event.ref} sets {event.fields[1]}, not {food}"
    if case.pets and not set(case.pets) & case.book.bound(event.device, event.start_ms):
        yield "misattributed", f"{event.ref} is not of {case.pets}"
    if event.kind == "food_set" and case.day_of(when_ms or event.start_ms) not in case.text:
        yield "unsupported", f"{event.ref} is of {case.day_of(event.start_ms)}"


def _food_change(case: Case) -> Found:
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


def _exposure(case: Case) -> Found:
    """A dated exposure: the food's record and that of the food that took its place, else the entry behind the link."""
    head = next((name for name in case.claim["about"] if not name.startswith("pet:")), "")
    if head.startswith("food:") and case.events:
        yield from _fed(case, case.events[0], head[5:])
        began = case.events[0].start_ms
        if case.values.get("since", case.date_of(began)) != case.date_of(began):
            yield "unsupported", "the record is of another day"
        spans = [span for pet in case.pets for span in case.book.spans(f"pet:{pet}", head) if span[0] == began]
        ends = {end for _, end in spans if end is not None and end <= case.as_of_ms}
        after = [event.ref for pet in case.pets for event in case.book.fed(pet) if event.start_ms in ends]
        if not spans or sorted(after) != sorted(event.ref for event in case.events[1:]):
            yield "misattributed", f"{after} is what ended it"
        return
    yield from _logged_link(case)


def _logged_link(case: Case) -> Found:
    """A log entry or note that is evidence for pet -> thing, dated as the claim says."""
    pet = next((name for name in case.claim["about"] if name.startswith("pet:")), "")
    head = next((name for name in case.claim["about"] if not name.startswith("pet:")), "")
    for text in case.texts:
        if not case.book.says(text.ref, pet, head):
            yield "misattributed", f"{text.ref} does not say {pet} - {head}"
        if text.at_ms is not None and case.kind != "device_change":
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


def _passage(case: Case) -> Found:
    """Sentences of a source, word for word."""
    for text in case.texts:
        if _plain(case.text) not in _plain(text.text):
            yield "unsupported", f"{text.ref} does not say so"
    if len(case.texts) != 1:
        yield "unsupported", "one source a sentence"
    if case.kind == "passage" and not set(case.claim["about"]) <= set(case.frame["subj"]):
        yield "misattributed", f"{case.claim['about']} were not asked about"
    if case.kind in _LINKED and case.texts:
        link = tuple((*case.claim["about"], "", "")[:2])
        said = [one for one in case.book.witnessed(case.texts[0].ref) if (one.tail, one.head) == link]
        if not any(one.words is None or _plain(_unquoted(case.text)) in _plain(one.words) for one in said):
            yield "misattributed", f"{case.texts[0].ref} does not say it of {link[0]} and {link[1]}"


_LINKED = frozenset(
    {"may_cause", "has_sign", "base_rate", "treats", "prevents", "side_effect", "prone_to", "has_agent"}
)


def _unquoted(text: str) -> str:
    return text.removeprefix('"').removesuffix('"')


def _note_side(case: Case) -> Found:
    """A note for or against something: its own words, and evidence of that side for it or for its condition."""
    yield from _words_of_text(case)
    relations = {"note_for": {"diagnosed_with"}, "note_against": {"tolerates", "ruled_out"}}[case.kind]
    things = [name for name in case.claim["about"] if not name.startswith("pet:")]
    bare = {
        kind: {name.partition(":")[2] for name in things if name.startswith(f"{kind}:")}
        for kind in ("species", "group")
    }
    if bare["species"] != bare["group"]:
        yield "misattributed", f"{things} are not the same things"
    wanted = {*things, "condition:food_allergy"}
    for text in case.texts:
        said = [one for one in case.book.witnessed(text.ref) if one.tail in {f"pet:{pet}" for pet in case.pets}]
        if not any(one.relation in relations and one.head in wanted for one in said):
            yield "misattributed", f"{text.ref} does not say so of {things}"
        named = set(re.findall(r"\w+", text.text.casefold()))
        others = {one.head.partition(":")[2] for one in said if one.head.startswith(("species:", "group:"))}
        if bare["species"] and others and not (others | named) & bare["species"]:
            yield "misattributed", f"{text.ref} is about {sorted(others)}"


def _words_of_text(case: Case) -> Found:
    """The record's own words, with its own date."""
    for text in case.texts:
        own = {_plain(text.text), _plain(text.title)}
        said = _plain(_bare(case.text))
        quoted = [_plain(part.removesuffix(" ...")) for part in _quoted_parts(case.text)]
        word_for_word = all(part and part in _plain(text.text) for part in quoted)
        if not word_for_word and ('"' in case.text or not any(word and word in said for word in own)):
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
        if case.kind == "logged" and "at" in case.values and case.values["at"] != text.at_ms:
            yield "unsupported", f"{text.ref} is of another instant"
        if case.text.startswith("Last logged") and case.book.later_text(text, case.as_of_ms):
            yield "stale", f"{text.ref} is not the latest"
        if case.kind == "last_weight" and case.book.later_text(text, case.as_of_ms):
            yield "stale", f"{text.ref} is not the latest"


def _bare(text: str) -> str:
    return text.removeprefix("Last logged: ").removeprefix("On file: ")


def _medicines(case: Case) -> Found:
    """Each medicine the pet is on is named, with a record of its own that says so, and none that has run out."""
    if len(case.pets) != 1:
        yield "misattributed", "medicines are of one pet"
        return
    pet = case.pets[0]
    running = {case.book.thing_name(head).casefold(): head for head in case.book.running(pet, case.as_of_ms)}
    said = [name.casefold() for name in re.split(r", | and ", case.text.removeprefix("On file: "))]
    if set(said) != set(running):
        yield "unsupported", f"{sorted(said)} said, {sorted(running)} on file"
    cited = [{one.head for one in case.book.witnessed(text.ref) if one.tail == f"pet:{pet}"} for text in case.texts]
    for text, heads in zip(case.texts, cited, strict=True):
        if not heads & set(running.values()):
            yield "misattributed", f"{text.ref} names none of them"
        if text.until_ms is not None and text.until_ms <= case.as_of_ms:
            yield "stale", f"{text.ref} ran out"
    for name, head in running.items():
        if not any(head in heads for heads in cited):
            yield "unsupported", f"no record of {name} is cited"


def _fact(case: Case) -> Found:
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


def _of_food(case: Case, text: Text) -> Found:
    """A label is that of the food the claim is about, and that food's name stands before what is said of it."""
    named = re.match(r"(.+?): (?:its label lists|\"|\d)", case.text)
    if named and named[1] not in {case.food_name(food) for food in case.about("food")}:
        yield "misattributed", f"{named[1]} is not what the claim is about"
    foods = [name[5:] for name in case.claim["about"] if name.startswith("food:")]
    if foods and text.code not in {case.book.foods.get(food, ("", None))[1] for food in foods}:
        yield "misattributed", f"{text.ref} is the label of another food than {foods}"


def _whole_label(case: Case) -> Found:
    """A food's list of ingredients, word for word."""
    yield from _words_of_text(case)
    for text in case.texts:
        yield from _of_food(case, text)
        if not case.book.whole_label(text):
            yield "unsupported", f"{text.ref} is only a part of the label"


def _label_lists(case: Case) -> Found:
    for text in case.texts:
        yield from _of_food(case, text)
        listed = re.search(r'lists "?(.+?)"?(?:, which may contain .*)?$', case.text)
        whole = case.book.whole_label(text) and listed is not None and not _has_a_place(case, text, listed[1])
        if whole and re.search(rf"\b{re.escape(listed[1])}\b", text.text):
            if not any(_is_of(name, listed[1]) for name in _asked_of(case)):
                yield "misattributed", f"{listed[1]!r} is not {_asked_of(case)}"
            continue  # words of the label that the tables make nothing of
        if listed is None or _plain(listed[1]) != _plain(text.text):
            yield "unsupported", f'{text.ref} reads "{text.text}"'
        thing = next(iter(_asked_of(case)), "")
        hedged = "may contain" in case.text
        if thing and not hedged and not _is_of(thing, text.text):
            yield "unsupported", f"{text.text!r} is not {thing}"
        if hedged and not _may_be(case, text, thing):
            yield "misattributed", f"{text.ref} is no evidence that it may be {thing}"


def _asked_of(case: Case) -> list[str]:
    return [n.partition(":")[2] for n in case.claim["about"] if n.startswith(("species:", "ing:", "group:", "tox:"))]


def _has_a_place(case: Case, label: Text, words: str) -> bool:
    """Whether words of a label stand in a record of their own, which is then what must be cited."""
    start = f"{label.ref.partition('#')[0]}#%"
    refs = case.book.all("SELECT ref FROM record WHERE ref LIKE ?", start)
    places = [case.book.text(ref) for (ref,) in refs]
    return any(place is not None and _plain(place.text) == _plain(words) for place in places)


_GROUPS = {
    "fish": ("salmon", "tuna", "herring", "cod", "whitefish"),
    "poultry": ("chicken", "duck", "turkey", "goose"),
    "grain": ("oat", "rice", "wheat", "barley", "maize", "corn", "rye", "sorghum", "millet", "cereal"),
    "corn": ("maize",),
    "milk": ("whey", "cheese", "dairy", "yogurt"),
    "meat": ("beef", "pork", "lamb", "chicken", "turkey", "duck", "venison", "rabbit"),
}


def _is_of(thing: str, words: str) -> bool:
    """Whether a label's words name the thing, or a kind of it by a known group."""
    found = words.casefold()
    return any(word in found for word in (thing.replace("_", " "), *_GROUPS.get(thing, ())))


def _may_be(case: Case, text: Text, thing: str) -> bool:
    """Whether a label's words are a set that may hold the thing, by the link they are evidence for, and it is said."""
    said = case.text.partition("may contain ")[2].casefold()
    held = {one.head.partition(":")[2] for one in case.book.witnessed(text.ref) if one.relation == "may_contain"}
    members = {thing, *(word.replace(" ", "_") for word in _GROUPS.get(thing, ()))}
    return bool(held & members) and said in {thing.replace("_", " "), *map(str.casefold, _called(case, thing))}


def _called(case: Case, thing: str) -> set[str]:
    """What the database calls a thing of this name, whatever its kind."""
    return {label for name, label in case.book.labels.items() if name.partition(":")[2] == thing}


def _label_lists_none(case: Case) -> Found:
    for text in case.texts:
        yield from _of_food(case, text)
        if not case.book.whole_label(text):
            yield "unsupported", f"{text.ref} is only a part of the label"
        missing = case.text.partition("lists no ")[2]
        told, about = set(re.split(r", | or ", missing)), [n for n in case.claim["about"] if not n.startswith("food:")]
        called = [{n.partition(":")[2].replace("_", " "), case.book.thing_name(n)} for n in about]
        if len(told) != len(about) or not all(told & names for names in called):
            yield "misattributed", f"{sorted(told)} said of {about}"
        for thing in sorted(told):
            if re.search(rf"\b{re.escape(thing.casefold())}\b", text.text.casefold()):
                yield "unsupported", f"{text.ref} lists {thing}"


def _energy(case: Case) -> Found:
    for text in case.texts:
        yield from _of_food(case, text)
        if not near(case.values.get("energy"), float(text.facts.get("kcal_per_kg", "nan"))):
            yield "unsupported", f"{text.ref} gives {text.facts.get('kcal_per_kg')} kcal a kg"


def _treats(case: Case) -> Found:
    if case.values.get("treats") != len(case.texts) or any(text.object != "treat" for text in case.texts):
        yield "unsupported", "not that many treats are cited"


_RULES: dict[str, Callable[[Case], Found]] = {
    "comparison": comparison, "as_usual": as_usual, "per_day": per_day, "total": total, "visits": visits,
    "meals": visits, "refills": visits, "shared_total": shared_total, "so_far": so_far, "today_so_far": today_so_far,
    "onset": onset, "last_meal": _last_event, "last_refill": _last_event, "last_litter": _last_event,
    "last_dispensed": _last_event, "last_slot": last_slot, "weighed_last": _weighed, "weighed_before": _weighed, "silence": _silence, "battery": _battery,
    "last_heard": _last_heard, "set_aside": _set_aside, "food_change": _food_change, "food_since": _exposure,
    "exposure": _exposure, "medicine_change": _logged_link, "parasite_change": _logged_link, "place_change": _logged_link,
    "visitor_change": _logged_link, "device_change": _logged_link, "medicines": _medicines, "logged": _words_of_text,
    "last_weight": _words_of_text, "record": _words_of_text, "rival_on_file": _words_of_text, "schedule": _words_of_text,
    "note_for": _note_side, "note_against": _note_side, "of_kind": _words_of_text, "label": _whole_label, "fact": _fact,
    "label_lists": _label_lists, "label_lists_none": _label_lists_none, "energy": _energy, "treats_logged": _treats,
    "with_and_without": with_and_without, "passage": _passage, "trial": _passage,
} | dict.fromkeys(_LINKED, _passage)  # fmt: skip


# --- numerals in words ------------------------------------------------------------------------------------------


def _numerals(case: Case) -> Found:
    """Every figure in the words must come from a cited record, a value, a date or a name."""
    given = _given(case)
    for numeral in _NUMERAL.findall(case.text):
        if numeral.strip(".,") not in given:
            yield "number", f"{numeral} is in no record cited"


def _given(case: Case) -> set[str]:
    book, claim = case.book, case.claim
    words = [book.names, *(f"{text.title} {text.text}" for text in case.texts), *claim["about"]]
    instants = [case.as_of_ms, *(at for t in case.texts for at in (t.at_ms, t.until_ms) if at is not None)]
    instants += [at for event in case.events for at in (event.start_ms, event.end_ms)]
    days = [day.date for day in case.days]
    if claim["window"] is not None:
        days += [claim["window"]["first_date"], claim["window"]["last_date"]]
        instants += [iso_ms(claim["window"]["from"]), iso_ms(claim["window"]["to"])]
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
