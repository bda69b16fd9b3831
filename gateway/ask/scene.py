"""The home as one question sees it: a snapshot, the instant asked, and who lives here.

Everything an answer needs is read through a `Scene`; it holds no result and decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Self

from gateway.ask.onfile import OnFile
from gateway.errors import HouseholdError
from gateway.measure.days import add_days, day_interval, local_clock, local_day
from gateway.model import Interval, Window
from gateway.ontology.ingredients import Role, load_ingredients
from gateway.ontology.kept import AliasRow, rows_of
from gateway.ontology.load import kept, load, things, vocabulary_lexicons, vocabulary_words
from gateway.ontology.recognise import Alias, Lexicon, Reading

if TYPE_CHECKING:
    from datetime import datetime

    from gateway.model import Device, Food, Household, Link, Pet, ZonePeriod
    from gateway.ontology.vocabulary import Ontology, Property
    from gateway.store.reads import Reader

__all__ = ["Scene", "alias_rows", "ingredient_aliases"]

_BEGINNING_MS = -(2**62)
"""Before every instant that is stored."""


@cache
def ingredient_aliases() -> tuple[Alias, ...]:
    """Every source of the ingredient tables under its names, read once.

    Words that already name a thing of the vocabulary (peanut butter is a food of its own) keep
    that reading alone.
    """
    named = {form for form, _ in things().lexicon.forms()}
    found = {
        Alias(" ".join(words), Reading("ing", f"ing:{name}"), "noun")
        for words, (role, name) in load_ingredients().aliases.items()
        if role in (Role.SOURCE, Role.GROUP) and " ".join(words) not in named
    }
    return tuple(sorted(found, key=lambda alias: (alias.text, alias.reading.target)))


def alias_rows() -> tuple[AliasRow, ...]:
    """Every alias and known word of the vocabulary and of the ingredient tables, as rows to keep."""
    ingredients = Lexicon(ingredient_aliases())
    words = {**vocabulary_words(), "known.ingredient": ingredients.words()}
    return rows_of({**vocabulary_lexicons(), "ingredient": ingredients}, words)


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot at one instant.

    ``today`` is the local ISO date of ``now_ms``; ``on_file`` the links as they stood then.
    """

    reader: Reader
    ontology: Ontology
    home: Household
    now_ms: int
    today: str
    on_file: OnFile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_file", OnFile(self.reader, self.now_ms))

    @classmethod
    def at(cls, reader: Reader, now_ms: int) -> Self:
        """Read the household as it stood at ``now_ms``.

        Raises
        ------
        HouseholdError
            No zone is stored, so no local day can be cut.
        """
        home = reader.household(now_ms)
        if not home.zones:
            raise HouseholdError(
                "the home must have a time zone before days can be cut; found none. "
                "Enter one with: scentwalk household import FILE.toml"
            )
        return cls(reader, load(), _with_food_periods(reader, home, now_ms), now_ms, local_day(now_ms, home.zones))

    @property
    def zones(self) -> tuple[ZonePeriod, ...]:
        return self.home.zones

    def local(self, at_ms: int) -> datetime:
        """What the home's wall clock showed."""
        return local_clock(at_ms, self.zones)

    def window(self, label: str, first: str, last: str) -> Window:
        """Whole local days ``first`` .. ``last``, cut off at now."""
        start = day_interval(first, self.zones).start_ms
        end = min(day_interval(last, self.zones).end_ms, self.now_ms)
        return Window(label, Interval(start, max(start, end)), first, last)

    def week(self) -> Window:
        """The last seven local days up to now: "this week"."""
        return self.window("P7D", add_days(self.today, -6), self.today)

    def devices_of(self, pet_id: str, observed: Property) -> tuple[Device, ...]:
        """Devices that serve the pet now (alone or shared) and capture the property."""
        return tuple(
            device
            for device in self.home.devices
            if device.kind in observed.captured_by and pet_id in self.home.bindings_at(device.id, self.now_ms)
        )

    def alone(self, pet_id: str, device: Device) -> bool:
        """Whether the device serves this pet and no other."""
        return self.home.bindings_at(device.id, self.now_ms) == frozenset({pet_id})

    def pets(self, ids: tuple[str, ...]) -> tuple[Pet, ...]:
        """The pets of these ids, in the order asked."""
        return tuple(self.home.pet(pet_id) for pet_id in ids)

    def links_of(self, pet_id: str) -> tuple[Link, ...]:
        """Every link that leaves a pet."""
        return self.on_file.leaving(f"pet:{pet_id}")

    def ingredients(self) -> tuple[Alias, ...]:
        """The names of ingredients a question may use, as aliases of kind "ing"; none where they are kept as rows."""
        return ingredient_aliases() if kept() is None else ()

    def wrong_hypotheses(self) -> frozenset[str]:
        """The "cause makes sign in pet" names the owner has marked wrong."""
        return frozenset(name for _, _, name, _, _ in self.reader.walls(at_ms=self.now_ms) if name is not None)


def _with_food_periods(reader: Reader, home: Household, now_ms: int) -> Household:
    """The household with each food's latest period: who is given it, since and until which day.

    From the bowls' food records and from what the owner stated; "the new food" is read from it.
    """
    periods: dict[str, list[tuple[int, int | None, str]]] = defaultdict(list)
    for pet in home.pets:
        for held in reader.feedings(home, pet.id):
            if held.start_ms <= now_ms:
                periods[held.food].append((held.start_ms, held.end_ms, pet.id))
    for entry in reader.texts(("log",), until_ms=now_ms):
        food = home.food_of("", entry.title) if entry.object == "food_change" else None
        if food is not None and entry.pet is not None:
            periods[food.id].append((entry.at_ms or _BEGINNING_MS, entry.until_ms, entry.pet))
    given = {food.id: _dated(food, periods[food.id], home, now_ms) for food in home.foods if food.id in periods}
    return replace(home, foods=tuple(given.get(food.id, food) for food in home.foods)) if given else home


def _dated(food: Food, periods: list[tuple[int, int | None, str]], home: Household, now_ms: int) -> Food:
    start_ms, end_ms, _ = max(periods, key=lambda period: period[0])
    return replace(
        food,
        pets=frozenset(pet for _, _, pet in periods),
        first_date=None if start_ms == _BEGINNING_MS else local_day(start_ms, home.zones),
        last_date=None if end_ms is None or end_ms > now_ms else local_day(end_ms, home.zones),
    )
