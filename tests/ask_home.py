"""Homes made for one question each: written through the writer's own API, asked through `ask`.

Asked at Tue 2026-07-14 18:00 in New York, as the cases are. Day rows and frames agree: a bowl's
row is the sum of its meals. Not a test itself.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path

from gateway.ask.answer import answer_lines, words_in
from gateway.ask.ask import Conversation, ask
from gateway.commands import run_command
from gateway.dialogue import Answer
from gateway.knowledge.passages import starter_guide
from gateway.learn import refresh_facts
from gateway.measure.days import SLOT_MS, add_days, dates_between, day_interval, instant_of
from gateway.model import Binding, Device, Food, Household, Person, Pet, Place, RecordRef, Series, ZonePeriod
from gateway.ontology.load import load
from gateway.store import Database, Snapshot
from gateway.stored import DatedFrame, DayRow

ZONES = (ZonePeriod("America/New_York", 0),)
TODAY = "2026-07-14"
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
AWAKE, NIGHT, ALL_DAY = (7, 22), (0, 7), (0, 24)
_HOURS = {"scratch": AWAKE, "shake": AWAKE, "activity": AWAKE, "rest": ALL_DAY, "restless": NIGHT}
_UNITS = {"weight": "mg", "intake": "mg", "water": "mg"}

PETS = {
    "max": Pet("max", "Max", "dog", "golden retriever", "2021-03-02", "male", neutered=True),
    "bella": Pet("bella", "Bella", "dog", "beagle", "2019-08-11", "female", neutered=True),
    "luna": Pet("luna", "Luna", "cat", "domestic shorthair", "2020-05-20", "female", neutered=True),
    "peanut": Pet("peanut", "Peanut", "dog", "chihuahua", "2022-01-15", "male"),
}
ACME, HARBOR = "4006381333931", "4006381333900"
LABELS = {
    ACME: "Brown rice, chicken meal (26 %), oats, sunflower oil, beet pulp, minerals, vitamins.",
    HARBOR: "Whitefish meal (27 %), brown rice, oats, sunflower oil, beet pulp, minerals, vitamins.",
}


def at(date: str, hour: int, minute: int = 0) -> int:
    return instant_of(date, hour * 60 + minute, ZONES).at_ms


NOW_MS = at(TODAY, 18)


def household(*pets: str, devices: Iterable[str] = (), foods: tuple[Food, ...] = ()) -> Household:
    """The named pets with the named devices: ``bowl-max``, ``tracker-luna``, ``water-max``, ``scale-max``."""
    kinds = {"bowl": "food_bowl", "tracker": "tracker", "water": "water_bowl", "scale": "scale"}
    words = {"bowl": "bowl", "tracker": "collar", "water": "water bowl", "scale": "scale"}
    made = tuple(
        Device(name, kinds[name.partition("-")[0]], f"{PETS[pet].name}'s {words[name.partition('-')[0]]}")
        for name in sorted(devices)
        for pet in (name.partition("-")[2],)
    )
    return Household(
        zones=ZONES,
        pets=tuple(PETS[pet] for pet in sorted(pets)),
        devices=made,
        bindings=tuple(Binding(device.id, frozenset({device.id.partition("-")[2]}), 0) for device in made),
        places=(Place("bellas", "Bella's", "boarding kennel"),),
        people=(Person("clinic", "Night clinic", "vet clinic", "555-0199"), Person("vet", "Dr. Wu", "vet", "555-0100")),
        foods=foods,
        country="US",
    )


SWITCHED = (
    Food("acme_chicken", "Acme Chicken & Rice", ("Acme", "the new chicken kibble", "the new kibble"), code=ACME),
    Food("harbor_fish", "Harbor Whitefish", ("Harbor",), code=HARBOR),
)


class Home:
    """One open database being filled; `ask` reads a snapshot of it, as the command line does."""

    def __init__(self, path: Path, home: Household, *, now_ms: int = NOW_MS) -> None:
        self.path, self.home, self.now_ms = path, home, now_ms
        self._database = Database(path, clock_source="simulation")
        self._seq = 0
        with self._database.transaction() as tx:
            tx.save_household(home, valid_from_ms=0)
            tx.save_learned(starter_guide(), added_ms=0)

    def close(self) -> None:
        self._database.close()

    # -- what devices record ---------------------------------------------------------------------

    def frame(self, device: str, kind: str, start_ms: int, fields: tuple[int | str, ...], **more: object) -> DatedFrame:
        self._seq += 1
        values: dict[str, object] = {
            "ref": RecordRef(f"event:{device}/1/{self._seq}"), "device": device, "boot": 1, "seq": self._seq,
            "kind": kind, "uptime_ms": self._seq, "received_ms": start_ms, "start_ms": start_ms, "end_ms": start_ms,
            "dating": "offset", "fields": fields,
        }  # fmt: skip
        made = DatedFrame(**(values | more))  # type: ignore[arg-type]
        with self._database.transaction() as tx:
            tx.add_frames([made])
        return made

    def beat(self, device: str, when_ms: int, *, permille: int = 700) -> None:
        self.frame(device, "beat", when_ms, (permille, 1, 0))

    def feed(self, device: str, date: str, code: str, name: str, hour: int = 0) -> None:
        self.frame(device, "food_set", at(date, hour, 5), (code, name), object=code)

    def save(self, series: str, prop: str, unit: str, rows: Iterable[DayRow]) -> None:
        with self._database.transaction() as tx:
            tx.save_series(Series(series, series.partition(".")[0], prop, unit))
            for row in rows:
                tx.save_day(row)

    def worn(
        self,
        pet: str,
        prop: str,
        usual_ms: float,
        *,
        days: int = 70,
        cv: float = 0.12,
        factor: Callable[[str], float] = lambda _date: 1.0,
        worn: Callable[[str], bool] = lambda _date: True,
    ) -> None:
        """A tracker's series over the last ``days`` days, ``factor(date)`` times its usual."""
        noun = load().properties[prop].noun
        chance = random.Random(f"{pet}.{prop}")
        rows = []
        for date in dates_between(add_days(TODAY, 1 - days), TODAY):
            total = usual_ms * factor(date) * chance.gauss(1.0, cv)
            if worn(date):
                rows.append(self._spread(f"{pet}.{noun}", date, max(total, 0.0), _HOURS.get(prop, AWAKE)))
        self.save(f"{pet}.{noun}", prop, "ms", rows)

    def _spread(self, series: str, date: str, total: float, hours: tuple[int, int]) -> DayRow:
        whole = day_interval(date, ZONES)
        count = whole.length_ms // SLOT_MS
        used = [slot for slot in range(count) if hours[0] * 4 <= slot < hours[1] * 4]
        heard = [whole.start_ms + (slot + 1) * SLOT_MS <= self.now_ms for slot in range(count)]
        sums = tuple(round(total / len(used)) if slot in used and heard[slot] else 0 for slot in range(count))
        covered = tuple(SLOT_MS if one else 0 for one in heard)
        return DayRow(series, date, whole.start_ms, whole.end_ms, sum(map(bool, sums)), sums, covered)

    def eats(
        self,
        pet: str,
        grams: float,
        *,
        days: int = 70,
        cv: float = 0.06,
        factor: Callable[[str], float] = lambda _date: 1.0,
        silent: tuple[int, int] | None = None,
        times: tuple[tuple[int, int], ...] = ((7, 15), (17, 10)),
    ) -> None:
        """A bowl's meals and its day rows; between the instants of ``silent`` it was not heard."""
        chance = random.Random(f"{pet}.intake")
        rows, device = [], f"bowl-{pet}"
        for date in dates_between(add_days(TODAY, 1 - days), TODAY):
            whole = day_interval(date, ZONES)
            count = whole.length_ms // SLOT_MS
            sums, meals = [0] * count, 0
            for hour, minute in times:
                mg = round(1000 * grams / len(times) * factor(date) * chance.gauss(1.0, cv))
                start = at(date, hour, minute)
                if start > self.now_ms or (silent and silent[0] <= start < silent[1]) or mg <= 0:
                    continue
                self.frame(
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
                rows.append(
                    DayRow(f"{pet}.intake", date, whole.start_ms, whole.end_ms, meals, tuple(sums), covered)
                )  # fmt: skip
        self.save(f"{pet}.intake", "intake", "mg", rows)

    # -- what people write down -------------------------------------------------------------------

    def command(self, name: str, **args: str) -> str:
        with self._database.transaction() as tx:
            return run_command(tx, name, args, now_ms=self.now_ms).text

    def log(self, pet: str, what: str, when: str, **more: str) -> None:
        self.command("log", pet=pet, what=what, at=when, **more)

    def note(self, pet: str, when: str, text: str) -> None:
        self.command("note", pet=pet, at=when, text=text)

    def product(self, code: str, name: str, *, label: str | None = None, kcal_per_100g: float = 372.0) -> None:
        text = LABELS[code] if label is None else label
        self.command(
            "product",
            source="product.json",
            text=_json(
                code=code, product_name=name, ingredients_text=text, nutriments={"energy-kcal_100g": kcal_per_100g}
            ),
        )

    def learn(self) -> None:
        with self._database.transaction() as tx:
            refresh_facts(tx, load())

    def writing(self):
        """A transaction of the writer, for what no command writes."""
        return self._database.transaction()

    # -- asking -----------------------------------------------------------------------------------

    def ask(self, text: str, *, after: Answer | None = None, now_ms: int | None = None) -> Answer:
        with Snapshot(self.path) as reader:
            conversation = None if after is None else Conversation.after(after)
            return ask(text, reader, now_ms=now_ms or self.now_ms, conversation=conversation)


def _json(**fields: object) -> str:
    return json.dumps({"products": [fields]})


@contextmanager
def made(path: Path, home: Household, **options: int):
    built = Home(path / "home.db", home, **options)
    try:
        yield built
    finally:
        built.close()


def text_of(answer: Answer) -> str:
    return "\n".join(answer_lines(answer))


def spoken_words(answer: Answer) -> int:
    """Words an owner reads, citations not counted."""
    return sum(words_in(part.text) for part in (*answer.notices, *answer.claims))
