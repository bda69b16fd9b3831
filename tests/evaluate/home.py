"""A simulated household while it is being lived: rows into a real database, and the same as texts.

Labels, books, notes and log entries go through the product's own commands and readers; what
devices measured is written as the product's own day rows and events, meals and day rows
agreeing. `Home.documents` are the same facts as texts: nothing is told to one side only.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from gateway.commands import run_command
from gateway.knowledge.passages import starter_guide
from gateway.learn import refresh_facts
from gateway.measure.days import SLOT_MS, add_days, dates_between, day_interval, instant_of, local_day
from gateway.model import Binding, Device, Food, Household, Person, Pet, Place, RecordRef, Series, ZonePeriod
from gateway.ontology.load import load
from gateway.store import Database
from gateway.stored import DatedFrame, DayRow
from tests.evaluate.cases import Document, Fact, Span
from tests.evaluate.draws import BRANDS, BREEDS, FILLERS, LINES, NAMES, PLACES, SEX, ZONES

__all__ = ["DAY_MS", "Home", "Made", "Resident", "template"]

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
HISTORY_DAYS = 70
_HOURS = {
    "scratch": (7, 22),
    "shake": (7, 22),
    "activity": (7, 22),
    "rest": (0, 24),
    "restless": (0, 7),
    "water": (6, 22),
}
_USUAL = {  # ms or mg a day, and the spread of a day about it
    "scratch": (95_000, 0.12), "shake": (40_000, 0.14), "activity": (5_200_000, 0.10), "rest": (45_000_000, 0.04),
    "restless": (800_000, 0.13), "intake": (300_000, 0.06), "water": (620_000, 0.09),
}  # fmt: skip
_PREMISE = 0.04
"""A world whose drawn week strays further than this from its hidden level is drawn again."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Resident:
    """A pet and what it is called by."""

    id: str
    name: str
    species: str
    breed: str
    sex: str

    @property
    def he(self) -> str:
        return SEX[self.sex][0]

    @property
    def him(self) -> str:
        return SEX[self.sex][1]

    @property
    def his(self) -> str:
        return SEX[self.sex][2]

    @property
    def himself(self) -> str:
        return SEX[self.sex][3]


@dataclass(frozen=True, slots=True)
class Made:
    """A food of the household: its code, its name, its label, and what it gives."""

    id: str
    name: str
    code: str
    label: str


def template(folder: Path) -> Path:
    """An empty database with the guide that ships, made once and copied for every household."""
    path = folder / "template.db"
    if not path.exists():
        with Database(path, clock_source="simulation") as database, database.transaction() as tx:
            tx.save_learned(starter_guide(), added_ms=0)
    return path


def shown_day(text: str) -> str:
    """An ISO date as a log or a figure sheet shows it: "Jul 8"."""
    when = date.fromisoformat(text)
    return f"{_MONTHS[when.month - 1]} {when.day}"


@dataclass
class Home:
    """One household being written. Everything random comes from ``rng``."""

    rng: random.Random
    folder: Path
    name: str
    documents: list[Document] = field(default_factory=list)
    dates: dict[str, int] = field(default_factory=dict)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = self.rng
        zone, self.country = rng.choice(ZONES)
        self.zones = (ZonePeriod(zone, 0),)
        self.today = add_days("2025-03-20", rng.randint(0, 600))
        self.now_ms = self.at(self.today, rng.randint(11, 21), rng.randint(0, 59))
        names = rng.sample(NAMES, 3)
        species = "dog" if rng.random() < 0.7 else "cat"
        self.pets = [
            Resident(
                id=name.lower(),
                name=name,
                species=species if number == 0 else rng.choice((species, "dog", "cat")),
                breed="",
                sex=rng.choice(("male", "female")),
            )
            for number, name in enumerate(names)
        ]
        self.pets = [Resident(p.id, p.name, p.species, rng.choice(BREEDS[p.species]), p.sex) for p in self.pets]
        self.foods: list[Made] = []
        self.devices: list[tuple[str, str, str, int, int | None]] = []
        self.place = rng.choice(PLACES)
        self.phone = f"555-01{rng.randint(10, 99)}"
        self._seq: dict[str, int] = {}
        self._frames: list[DatedFrame] = []
        self._series: dict[str, Series] = {}
        self._rows: list[DayRow] = []
        self._commands: list[tuple[str, dict[str, str]]] = []
        self._marks: list[tuple[str | None, str | None]] = []
        self._brands = rng.sample([f"{brand} {line}" for brand in BRANDS for line in LINES], 8)

    # -- time ---------------------------------------------------------------------------------------

    def at(self, day: str, hour: int, minute: int = 0) -> int:
        return instant_of(day, hour * 60 + minute, self.zones).at_ms

    def day(self, back: int) -> str:
        """The local day so many days before today."""
        return add_days(self.today, -back)

    @property
    def pet(self) -> Resident:
        return self.pets[0]

    @property
    def other(self) -> Resident:
        return self.pets[1]

    # -- things -------------------------------------------------------------------------------------

    def device(self, kind: str, pets: str, *, name: str = "", from_ms: int = 0, to_ms: int | None = None) -> str:
        """A device of a kind serving pets (ids joined by +); its id."""
        word = {"food_bowl": "bowl", "water_bowl": "water", "tracker": "tracker"}[kind]
        made = name or f"{word}-{pets.replace('+', '-')}"
        self.devices.append((made, kind, pets, from_ms, to_ms))
        return made

    def food(self, *listed: str, kcal: float = 0.0, label: bool = True) -> Made:
        """A food whose label lists these first, among drawn fillers."""
        name = self._brands.pop()
        rng = self.rng
        shares = sorted((rng.randint(14, 32) for _ in listed), reverse=True)
        first = [f"{word} ({share} %)" for word, share in zip(listed, shares, strict=True)]
        fillers = rng.sample(FILLERS, rng.randint(5, 9))
        items = [*first[:1], fillers[0], *first[1:], *fillers[1:], "minerals", "vitamins"]
        text = ", ".join(items)
        text = f"{text[:1].upper()}{text[1:]}."
        code = f"40{rng.randrange(10**11):011d}"
        made = Made(name.lower().replace(" ", "_"), name, code, text)
        self.foods.append(made)
        if label:
            energy = kcal or float(rng.choice((340, 352, 365, 372, 381)))
            product = {
                "code": code,
                "product_name": name,
                "ingredients_text": text,
                "nutriments": {"energy-kcal_100g": energy},
            }
            self._commands.append(("product", {"source": "product.json", "text": json.dumps({"products": [product]})}))
            body = f"{name}. Ingredients: {text} Energy {energy:.0f} kcal per 100 g."
            self.documents.append(Document(f"label-{code}", "label", f"{name} (label)", body))
        return made

    def feed(self, pet: Resident, made: Made, back: int, *, bowl: str = "", hour: int = 0) -> int:
        """The bag picked at the pet's bowl that day; the instant."""
        device = bowl or f"bowl-{pet.id}"
        hour = hour or self.rng.randint(6, 9)
        at_ms = self.at(self.day(back), hour, 5)
        ref = self._frame(device, "food_set", at_ms, (made.code, made.name), object=made.code)
        text = (
            f"{shown_day(self.day(back))} {self.day(back)[:4]}, {hour}:05: {made.name} was put into {pet.name}'s bowl."
        )
        self.documents.append(Document(f"food-{device}-{at_ms}", "log", "Food log", text))
        self.events[f"ate|{pet.id}|{made.id}"] = ref
        self.dates[f"ate|{pet.id}|{made.id}"] = at_ms
        return at_ms

    # -- what devices record ------------------------------------------------------------------------

    def _frame(self, device: str, kind: str, start_ms: int, fields: tuple[int | str, ...], **more: object) -> str:
        number = self._seq[device] = self._seq.get(device, 0) + 1
        values: dict[str, object] = {
            "ref": RecordRef(f"event:{device}/1/{number}"), "device": device, "boot": 1, "seq": number,
            "kind": kind, "uptime_ms": number, "received_ms": start_ms, "start_ms": start_ms, "end_ms": start_ms,
            "dating": "offset", "fields": fields,
        }  # fmt: skip
        self._frames.append(DatedFrame(**(values | more)))  # type: ignore[arg-type]
        return f"event:{device}/1/{number}"

    def beats(self, device: str, *, until_back: int = 0, permille: int = 700) -> None:
        for back in (until_back + 1, until_back):
            at_ms = min(self.at(self.day(back), 9), self.now_ms - HOUR_MS)
            self._frame(device, "beat", at_ms, (permille, 1, 0))

    def levels(self, prop: str, days: int, factor: Callable[[int], float]) -> dict[int, float]:
        """Daily totals by days back, drawn until the last week keeps its hidden level."""
        usual, cv = _USUAL[prop]
        usual *= self.rng.uniform(0.75, 1.3)
        while True:
            drawn = {back: usual * factor(back) * max(self.rng.gauss(1.0, cv), 0.05) for back in range(days)}
            week = [drawn[back] / (usual * factor(back)) for back in range(1, min(7, days))]
            past = [drawn[back] / (usual * factor(back)) for back in range(7, days)]
            level = sum(week) / len(week) if week else 1.0
            base = sum(past) / len(past) if past else 1.0
            if abs(level / base - 1.0) < _PREMISE:
                return drawn

    def worn(
        self,
        pet: Resident,
        prop: str,
        *,
        days: int = HISTORY_DAYS,
        factor: Callable[[int], float] = lambda _back: 1.0,
        worn: Callable[[int], bool] = lambda _back: True,
    ) -> None:
        """A tracker's or water bowl's series; ``factor(back)`` times its usual."""
        observed = load().properties[prop]
        series = f"{pet.id}.{observed.noun}"
        self._series[series] = Series(series, pet.id, prop, observed.unit)
        drawn = self.levels(prop, days, factor)
        for back in range(days - 1, -1, -1):
            if worn(back):
                row = self._spread(series, self.day(back), drawn[back], _HOURS[prop])
                self._rows.append(row)
                self.totals.setdefault(series, {})[row.date] = row.total

    def _spread(self, series: str, day: str, total: float, hours: tuple[int, int]) -> DayRow:
        whole = day_interval(day, self.zones)
        count = whole.length_ms // SLOT_MS
        used = [slot for slot in range(count) if hours[0] * 4 <= slot < hours[1] * 4]
        heard = [whole.start_ms + (slot + 1) * SLOT_MS <= self.now_ms for slot in range(count)]
        each = round(total / len(used))
        sums = tuple(each if hours[0] * 4 <= slot < hours[1] * 4 and heard[slot] else 0 for slot in range(count))
        return DayRow(
            series, day, whole.start_ms, whole.end_ms, sum(map(bool, sums)), sums,
            tuple(SLOT_MS if one else 0 for one in heard),
        )  # fmt: skip

    def eats(
        self,
        pet: Resident,
        *,
        days: int = HISTORY_DAYS,
        factor: Callable[[int], float] = lambda _back: 1.0,
        silent: tuple[int, int] | None = None,
        share: str = "",
    ) -> None:
        """A bowl's meals and its day rows; between the instants of ``silent`` it was not heard.

        ``share`` names the pets of a shared bowl: then the series is the set's, no pet's own.
        """
        whose = share or pet.id
        series, device = f"{whose}.intake", f"bowl-{whose.replace('+', '-')}"
        self._series[series] = Series(series, whose, "intake", "mg")
        drawn = self.levels("intake", days, factor)
        times = [(self.rng.randint(6, 8), self.rng.randint(0, 59)), (self.rng.randint(16, 19), self.rng.randint(0, 59))]
        for back in range(days - 1, -1, -1):
            day = self.day(back)
            whole = day_interval(day, self.zones)
            count = whole.length_ms // SLOT_MS
            sums, meals = [0] * count, 0
            for hour, minute in times:
                start = self.at(day, hour, minute)
                mg = round(drawn[back] / len(times))
                if start + 240_000 > self.now_ms or (silent and silent[0] <= start < silent[1]):
                    continue
                self._frame(
                    device, "meal", start, (0, 240_000, mg, 0), end_ms=start + 240_000, amount=mg, unit="mg"
                )  # fmt: skip
                sums[(start - whole.start_ms) // SLOT_MS] += mg
                meals += 1
            starts = [whole.start_ms + slot * SLOT_MS for slot in range(count)]
            covered = tuple(
                SLOT_MS if s + SLOT_MS <= self.now_ms and not (silent and silent[0] <= s < silent[1]) else 0
                for s in starts
            )
            if any(covered):
                self._rows.append(DayRow(series, day, whole.start_ms, whole.end_ms, meals, tuple(sums), covered))
                self.totals.setdefault(series, {})[day] = sum(sums)

    # -- what people write down -----------------------------------------------------------------------

    def log(self, pet: Resident, what: str, back: int, *, hour: int = 12, every: str = "") -> int:
        """A log entry of the pet; its instant."""
        at_ms = self.at(self.day(back), hour)
        when = f"{self.day(back)}T{hour:02d}:00"
        args = {"pet": pet.id, "what": what, "at": when} | ({"every": every} if every else {})
        self._commands.append(("log", args))
        ref = f"log:{pet.id}-{at_ms}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
        shown = f"{shown_day(self.day(back))} {self.day(back)[:4]}"
        lasts = f" (for {every})" if every else ""
        self.documents.append(Document(ref, "log", "Owner's log", f"{pet.name}, {shown}: {what}{lasts}."))
        self.events[f"log|{pet.id}|{what}"] = ref
        self.dates[f"log|{pet.id}|{what}"] = at_ms
        return at_ms

    def note(self, pet: Resident, text: str, back: int) -> None:
        """A vet's note, word for word."""
        self._commands.append(("note", {"pet": pet.id, "at": self.day(back), "text": text}))
        shown = f"{shown_day(self.day(back))} {self.day(back)[:4]}"
        number = sum(document.kind == "note" for document in self.documents) + 1
        self.documents.append(
            Document(f"note-{number}", "note", f"Vet note, {pet.name}", f"{pet.name}, {shown}: {text}")
        )

    def book(self, title: str, paragraphs: list[str]) -> None:
        """A guide of the household's own, one chapter."""
        text = f"# {title}\n\n## 1. What owners ask\n\n" + "\n\n".join(paragraphs) + "\n"
        self._commands.append(("passages", {"source": f"{title.lower().replace(' ', '_')}.md", "text": text}))
        self.documents.append(Document(f"guide-{title}", "guide", title, "\n\n".join(paragraphs)))

    def mark(self, *, edge: str | None = None, hypothesis: str | None = None) -> None:
        """The owner's "that's wrong"."""
        self._marks.append((edge, hypothesis))

    # -- closing -------------------------------------------------------------------------------------

    def household(self) -> Household:
        words = {"food_bowl": "bowl", "water_bowl": "water bowl", "tracker": "collar"}
        known = {pet.id: pet for pet in self.pets}
        bound = sorted(self.devices)
        named = {
            device: Device(device, kind, f"{' and '.join(known[p].name for p in pets.split('+'))}'s {words[kind]}")
            for device, kind, pets, _, _ in bound
        }
        living = sorted({pet for _, _, pets, _, _ in bound for pet in pets.split("+")} | {self.pet.id, self.other.id})
        return Household(
            zones=self.zones,
            pets=tuple(
                Pet(known[p].id, known[p].name, known[p].species, known[p].breed, "2020-04-11", known[p].sex)
                for p in living
            ),
            devices=tuple(named[key] for key in sorted(named)),
            bindings=tuple(
                Binding(device, frozenset(pets.split("+")), start, end) for device, _, pets, start, end in bound
            ),
            places=(Place("lodge", self.place, "boarding kennel"),),
            people=(Person("vet", "Dr. Lee", "vet", self.phone),),
            foods=tuple(sorted((Food(f.id, f.name, code=f.code) for f in self.foods), key=lambda food: food.id)),
            country=self.country,
        )

    def write(self) -> Path:
        """The database of all that was told; also writes out the documents that follow from it."""
        path = self.folder / f"{self.name}.db"
        shutil.copyfile(template(self.folder), path)
        household = self.household()
        with Database(path, clock_source="simulation") as database:
            with database.transaction() as tx:
                tx.save_household(household, valid_from_ms=0)
                for series in self._series.values():
                    tx.save_series(series)
                for row in self._rows:
                    tx.save_day(row)
                tx.add_frames(self._frames)
                for name, args in self._commands:
                    run_command(tx, name, args, now_ms=self.now_ms)
                refresh_facts(tx, load())
            with database.transaction() as tx:
                for edge, hypothesis in self._marks:
                    ref = None if edge is None else RecordRef(edge)
                    tx.add_wall(
                        edge=ref, hypothesis=hypothesis, reason="the owner says so", marked_ms=self.now_ms - DAY_MS
                    )
        self._guide_documents()
        self._figure_documents()
        self._household_document(household)
        return path

    def _guide_documents(self) -> None:
        chapters: dict[str, list[str]] = {}
        for record in starter_guide().records:
            chapter = record.ref.key.partition("#")[2].partition(".")[0]
            chapters.setdefault(chapter, []).append(record.text)
        for chapter, texts in chapters.items():
            self.documents.append(
                Document(f"guide-{chapter}", "guide", f"Care guide, ch. {chapter}", "\n\n".join(texts))
            )

    def _figure_documents(self) -> None:
        for pet in self.pets:
            series = [name for name in self.totals if pet.id in name.partition(".")[0].split("+")]
            weeks = -(-max((len(self.totals[name]) for name in series), default=0) // 7)
            for week in range(weeks):
                days = dates_between(self.day(7 * week + 6), self.day(7 * week))
                lines = [text for name in series if (text := self.figures(name, days))]
                if lines:
                    title = f"{pet.name}, {shown_day(days[0])} to {shown_day(days[-1])} {days[-1][:4]}"
                    self.documents.append(Document(f"week-{pet.id}-{week}", "figures", title, "\n".join(lines)))

    def figures(self, series: str, days: tuple[str, ...]) -> str:
        """The sentence of a figure sheet: a series' days as an owner would write them."""
        known = self.totals[series]
        told = [f"{shown_day(day)} {self.amount(series, known[day])}" for day in days if day in known]
        if not told:
            return ""
        owner = load().properties[self._series[series].property].owner
        whose = " and ".join(pet.name for pet in self.pets if pet.id in series.partition(".")[0].split("+"))
        return f"{whose}, {owner}, {shown_day(days[0])} to {shown_day(days[-1])} {days[-1][:4]}: {', '.join(told)}."

    def amount(self, series: str, total: int) -> str:
        """A day's figure as the sheets show it."""
        if self._series[series].unit == "mg":
            return f"{total / 1000:.0f} g"
        return f"{total / 1000:.0f} s" if total < 600_000 else f"{total / 60_000:.0f} min"

    def _household_document(self, household: Household) -> None:
        known = {pet.id: pet.name for pet in household.pets}
        lines = [f"{pet.name}: {pet.species}, {pet.breed}, {pet.sex}." for pet in household.pets]
        for binding in household.bindings:
            since = (
                "" if binding.valid_from_ms == 0 else f" from {shown_day(local_day(binding.valid_from_ms, self.zones))}"
            )
            whose = " and ".join(known[one] for one in sorted(binding.pets))
            lines.append(f"{household.device(binding.device).name} ({binding.device}) serves {whose}{since}.")
        lines += [f"{place.name} is a {place.kind}." for place in household.places]
        self.documents.append(Document("household", "log", "Household", "\n".join(lines)))

    # -- facts ----------------------------------------------------------------------------------------

    def spans(self, document_kind: str, words: str, *, within: str = "") -> tuple[Span, ...]:
        """Where texts of a kind state these words; ``within`` narrows to documents so named."""
        found = []
        for document in self.documents:
            if document.kind != document_kind or not document.id.startswith(within):
                continue
            start = document.text.lower().find(words.lower())
            while start >= 0:
                found.append(Span(document.id, start, start + len(words)))
                start = document.text.lower().find(words.lower(), start + 1)
        return tuple(found)

    def figure_fact(self, pet: Resident, prop: str) -> Fact:
        """The pet's asked week of a property."""
        series = f"{pet.id}.{load().properties[prop].noun}"
        days = dates_between(self.day(6), self.day(0))
        line = self.figures(series, days)
        records = tuple(f"day:{series}/{day}" for day in days if day in self.totals[series])
        return Fact(f"figures of {series}", records, "", self.spans("figures", line, within=f"week-{pet.id}-0"))

    def fed_fact(self, pet: Resident, made: Made) -> Fact:
        at_ms, ref = self.dates[f"ate|{pet.id}|{made.id}"], self.events[f"ate|{pet.id}|{made.id}"]
        edge = f"edge:pet:{pet.id}|ate|food:{made.id}|{at_ms}"
        (document,) = (d for d in self.documents if d.id == f"food-{ref[6:].partition('/')[0]}-{at_ms}")
        return Fact(f"{pet.id} ate {made.id}", (ref,), edge, (Span(document.id, 0, len(document.text)),))

    def label_fact(self, made: Made, words: str, source: str, relation: str = "contains") -> Fact:
        edge = f"edge:food:{made.id}|{relation}|{source}|-"
        return Fact(f"{made.id} lists {words}", (), edge, self.spans("label", words, within=f"label-{made.code}"))

    def said_fact(self, sentence: str, edge: str) -> Fact:
        """A sentence of a guide."""
        return Fact(sentence, (), edge, self.spans("guide", sentence))

    def logged_fact(self, pet: Resident, what: str, edge: str = "") -> Fact:
        ref = self.events[f"log|{pet.id}|{what}"]
        (document,) = (d for d in self.documents if d.id == ref)
        return Fact(f"{pet.id} {what}", (ref,), edge, (Span(ref, 0, len(document.text)),))
