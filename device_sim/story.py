"""Stories: a TOML file in, a frozen description of a household and what must be answered out.

A story says who lives here, what is fed when, what changes (the hidden effects), what the
owner writes down, what is asked, and which claims the answer must and must never hold.
Days count from the last one: 0 is the day of the question, -6 the first day of its week.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from zoneinfo import ZoneInfo

__all__ = [
    "Effect",
    "Fast",
    "Feeding",
    "Food",
    "Gap",
    "LogEntry",
    "Outage",
    "Pet",
    "Story",
    "StoryError",
    "Swap",
    "Wrong",
    "load_story",
    "story_names",
]


class StoryError(ValueError):
    """A scenario file says something that cannot be played; names the file and the field."""


@dataclass(frozen=True, slots=True)
class Pet:
    """A pet and its daily habits. ``meals`` are (local time, share of the day's energy)."""

    key: str
    name: str
    species: str
    breed: str
    born: date
    sex: str
    neutered: bool
    weight_g: int
    kcal: int
    meals: tuple[tuple[time, float], ...]
    bowl: bool
    tracker: bool

    @property
    def id(self) -> str:
        return "".join(letter if letter.isalnum() else "_" for letter in self.name.lower())


@dataclass(frozen=True, slots=True)
class Food:
    """A food with its label. ``ingredient`` is the one thing that tells it from the others."""

    key: str
    id: str
    name: str
    aliases: tuple[str, ...]
    brand: str
    code: str
    kcal_per_kg: int
    ingredients: str
    ingredient: str


@dataclass(frozen=True, slots=True)
class Feeding:
    """From this local day and time on the pet's bowl holds this food."""

    pet: str
    food: str
    day: int
    at: time


@dataclass(frozen=True, slots=True)
class Effect:
    """The hidden truth: from this day on a series of a pet runs at ``factor`` of its usual."""

    pet: str
    series: str
    factor: float
    day: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What the owner writes down, dated when it happened."""

    pet: str
    what: str
    day: int
    at: time
    every: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Whole local days ``[first, last]`` on which a device of a pet records nothing."""

    pet: str
    device: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Outage:
    """The hub is down from one local midnight to another; devices keep ``ring_hours`` of records."""

    first: int
    last: int
    ring_hours: int


@dataclass(frozen=True, slots=True)
class Swap:
    """A pet's tracker is replaced by another one at the start of this local day."""

    pet: str
    day: int


@dataclass(frozen=True, slots=True)
class Fast:
    """From this moment on the pet takes nothing from its bowl."""

    pet: str
    day: int
    at: time


@dataclass(frozen=True, slots=True)
class Wrong:
    """The owner marks "this food makes this sign in this pet" as wrong."""

    pet: str
    food: str
    sign: str
    reason: str
    day: int
    at: time


@dataclass(frozen=True, slots=True)
class Story:
    """One household over ``days`` local days, ending with the question.

    ``draws`` names the random streams: two stories with one name there live in one world.
    """

    name: str
    title: str
    seed: int
    days: int
    ends: datetime
    zone: str
    country: str
    question: str
    variant: str
    pets: tuple[Pet, ...]
    foods: tuple[Food, ...]
    feedings: tuple[Feeding, ...]
    effects: tuple[Effect, ...]
    log: tuple[LogEntry, ...]
    gaps: tuple[Gap, ...]
    swaps: tuple[Swap, ...]
    fasts: tuple[Fast, ...]
    wrongs: tuple[Wrong, ...]
    outage: Outage | None
    shared_bowl: bool
    draws: str
    guides: tuple[str, ...]
    vet_phone: str
    clinic_phone: str
    redraw: dict[str, Any] = field(default_factory=dict)
    expect: dict[str, Any] = field(default_factory=dict)

    @property
    def tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    @property
    def last_day(self) -> date:
        return self.ends.date()

    @property
    def end_ms(self) -> int:
        return int(self.ends.replace(tzinfo=self.tz).timestamp() * 1000)

    def date_of(self, day: int) -> date:
        """The local date of a story day; 0 is the day of the question."""
        return self.last_day + timedelta(days=day)

    def instant(self, day: int, at: time) -> int:
        """Integer ms UTC of a local time on a story day."""
        return int(datetime.combine(self.date_of(day), at, self.tz).timestamp() * 1000)

    @property
    def start_ms(self) -> int:
        return self.instant(1 - self.days, time())

    def pet(self, key: str) -> Pet:
        """The pet of that key."""
        return next(pet for pet in self.pets if pet.key == key)

    def food(self, key: str) -> Food:
        """The food of that key."""
        return next(food for food in self.foods if food.key == key)


_SCENARIOS = files(__package__) / "scenarios"


def story_names(*, folder: Traversable = _SCENARIOS) -> tuple[str, ...]:
    """The stories of a folder, by default those that come with the package."""
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_story(name: str, *, folder: Traversable = _SCENARIOS) -> Story:
    """Read a story as it is written; seed 0. ``folder`` holds it, by default the package's own.

    Raises
    ------
    StoryError
        No such story, or a field that cannot hold.
    """
    if name not in story_names(folder=folder):
        raise StoryError(f"a scenario must be one of {', '.join(story_names(folder=folder))}, is {name!r}")
    source = f"{name}.toml"
    try:
        told = tomllib.loads((folder / source).read_text("utf-8"))
        story = _read(name, told)
    except KeyError as missing:
        raise StoryError(f"{source} must give {missing.args[0]}") from None
    except (TypeError, tomllib.TOMLDecodeError) as problem:
        raise StoryError(f"{source} must be a story, but {problem}") from None
    _check(source, story)
    return story


def _read(name: str, told: dict[str, Any]) -> Story:
    pets = tuple(
        Pet(**{**pet, "meals": tuple((at, float(share)) for at, share in pet["meals"])}) for pet in told["pet"]
    )
    return Story(
        name=name,
        title=told["title"],
        seed=0,
        days=told["days"],
        ends=told["ends"],
        zone=told["zone"],
        country=told["country"],
        question=told["question"],
        variant=told.get("variant", "reactive"),
        pets=pets,
        foods=tuple(Food(**{**food, "aliases": tuple(food["aliases"])}) for food in told["food"]),
        feedings=tuple(Feeding(**row) for row in told["feeding"]),
        effects=tuple(Effect(**row) for row in told.get("effect", ())),
        log=tuple(LogEntry(**row) for row in told.get("log", ())),
        gaps=tuple(Gap(**row) for row in told.get("gap", ())),
        swaps=tuple(Swap(**row) for row in told.get("swap", ())),
        fasts=tuple(Fast(**row) for row in told.get("fast", ())),
        wrongs=tuple(Wrong(**row) for row in told.get("wrong", ())),
        outage=Outage(**told["outage"]) if "outage" in told else None,
        shared_bowl=told.get("shared_bowl", False),
        draws=told.get("draws", name),
        guides=tuple(told.get("guides", ())),
        vet_phone=told["vet_phone"],
        clinic_phone=told["clinic_phone"],
        redraw=told.get("redraw", {}),
        expect=told["expect"],
    )


def _check(source: str, story: Story) -> None:
    """What the loader promises the world: every key named exists, numbers lie where they can."""
    pets = {pet.key for pet in story.pets}
    foods = {food.key for food in story.foods}
    if "subject" not in pets:
        raise StoryError(f"{source} must have a pet of key 'subject', has {sorted(pets)}")
    if story.ends.tzinfo is not None:
        raise StoryError(f"{source}: ends must be a local time without zone, is {story.ends.isoformat()}")
    told: tuple[Feeding | Effect | LogEntry | Gap | Swap | Fast | Wrong, ...] = (
        *story.feedings,
        *story.effects,
        *story.log,
        *story.gaps,
        *story.swaps,
        *story.fasts,
        *story.wrongs,
    )
    if strangers := sorted({row.pet for row in told} - pets):
        raise StoryError(f"{source} must name pets of the story, names {strangers[0]!r}")
    named = {one.food for one in story.feedings} | {one.food for one in story.wrongs}
    if strangers := sorted(named - foods):
        raise StoryError(f"{source} must name foods of the story, names {strangers[0]!r}")
    if story.outage is not None and not 1 - story.days < story.outage.first < story.outage.last <= 0:
        raise StoryError(f"{source}: an outage must lie inside the story, lies {story.outage}")
    for pet in story.pets:
        if abs(sum(share for _, share in pet.meals) - 1.0) > 1e-9:
            raise StoryError(f"{source}: the meals of {pet.key} must share 1.0 of the day, share otherwise")
        first = [f for f in story.feedings if f.pet == pet.key and f.day <= 1 - story.days]
        if pet.bowl and not first:
            raise StoryError(f"{source}: {pet.key} must have a food from the first day on")
