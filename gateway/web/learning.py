"""What is known of a pet while its history is short: a snapshot in, words and links out.

Nothing here is called usual: it lists what each series has held so far, when it can first be
compared, what is watched already, and what an owner could add today. Once a series can be
compared its line says so, and the page has no more to tell than the trends do.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from urllib.parse import quote

from gateway.ask.figures import Total, compare_window, total_of
from gateway.ask.scene import Scene
from gateway.ask.wording import amount, day, first_upper, usual_of
from gateway.learn.floors import meal_watch
from gateway.measure.days import add_days
from gateway.measure.outlook import outlook
from gateway.model import Pet, PetStatus, Unclear
from gateway.ontology.vocabulary import Property
from gateway.store.reads import Reader

__all__ = ["LearningPage", "SoFar", "read_learning"]

_SHOWN_DAYS = 28
_LEAST_DAYS = 3
"""Full days from which a range and a middle are said."""
_HOUR_MS = 3_600_000
_SILENT = frozenset({PetStatus.DIED, PetStatus.GONE, PetStatus.AWAY})


@dataclass(frozen=True, slots=True)
class SoFar:
    """One series: its words, where its days are, and what can be said of it.

    ``held`` is the range of its full days or why there is none yet; ``comes`` when it can be
    compared; ``recorded`` of ``needed`` days.
    """

    name: str
    href: str
    recorded: int
    needed: int
    held: str
    comes: str


@dataclass(frozen=True, slots=True)
class LearningPage:
    """A pet's page of beginnings. ``watched`` speaks from the first hour, ``helps`` is for the owner."""

    name: str
    lines: tuple[SoFar, ...]
    watched: tuple[str, ...]
    helps: tuple[tuple[str, str], ...]


def read_learning(reader: Reader, pet_id: str, *, now_ms: int) -> LearningPage | None:
    """The page of this pet, or None where it does not live here.

    Parameters
    ----------
    now_ms : int
        Nothing of a later instant is read.
    """
    scene = Scene.at(reader, now_ms)
    found = [pet for pet in scene.home.pets if pet.id == pet_id and pet.status not in _SILENT]
    if not found:
        return None
    pet = found[0]
    told = [
        line
        for series in reader.all_series()
        if series.pet == pet.id and series.property in scene.ontology.properties
        if (line := _so_far(scene, pet, scene.ontology.properties[series.property])) is not None
    ]
    return LearningPage(
        name=pet.name, lines=tuple(told), watched=_watched(scene, pet), helps=_helps(reader, scene, pet)
    )


def _so_far(scene: Scene, pet: Pet, observed: Property) -> SoFar | None:
    """A series that says something of the pet; None for refills and batteries."""
    if observed.sign_up is None and observed.sign_down is None:
        return None
    figure = compare_window(scene, pet, observed, scene.week())
    total = total_of(scene, pet, observed, scene.window("SO_FAR", add_days(scene.today, -_SHOWN_DAYS), scene.today))
    if figure is None or total is None:
        return None
    comparison, window = figure.measured.comparison, figure.window
    needed = comparison.baseline_needed + comparison.days_expected
    early = comparison.reason is Unclear.TOO_FEW_DAYS
    when = outlook(figure.measured.grid, comparison, window.first_date, window.last_date)
    if early and when.tell_on is not None:
        comes = f"First comparison {day(when.tell_on)}"
        comes += f", a firm one {day(when.firm_on)}." if when.firm_on is not None else "."
    else:
        comes = "Can be compared now." if not early else "Not enough was heard to name a day."
    return SoFar(
        name=first_upper(observed.owner),
        href=f"/series/{quote(scene.ontology.series_id(pet.id, observed.id), safe='')}",
        recorded=min(int(figure.measured.grid.usable().sum()), needed) if early else needed,
        needed=needed,
        held=_held(total),
        comes=comes,
    )


def _held(total: Total) -> str:
    """The range and middle of the full days: "52 to 66 g on 8 full days, middle 59 g"."""
    full = [row.total for row in total.rows if row.date in total.aggregate.full_days]
    word = "night" if total.observed.night_only else "day"
    if len(full) < _LEAST_DAYS:
        return f"{len(full)} full {word}{'' if len(full) == 1 else 's'} so far."
    unit = total.observed.unit
    if usual_of(min(full), max(full), unit) == usual_of(max(full), max(full), unit):
        return f"{amount(max(full), unit)} on each of {len(full)} full {word}s."
    return (
        f"{usual_of(min(full), max(full), unit)} to {amount(max(full), unit)} on {len(full)} full {word}s, "
        f"middle {amount(median(full), unit)}."
    )


def _watched(scene: Scene, pet: Pet) -> tuple[str, ...]:
    """What needs no history, by the devices this pet has."""
    kinds = {device.kind for device in scene.home.devices if pet.id in scene.home.bindings_at(device.id, scene.now_ms)}
    lines = []
    if "food_bowl" in kinds:
        hours = meal_watch(pet, scene.today) // _HOUR_MS
        lines.append(f"After {hours} hours without a meal from the bowl, with the bowl heard throughout, you are told.")
        lines.append("After 6 hours in which the bowl is not heard, you are told that it can't be watched.")
    return tuple(lines)


def _helps(reader: Reader, scene: Scene, pet: Pet) -> tuple[tuple[str, str], ...]:
    """(words, form) of what is not on file and would be asked for first."""
    logged = {entry.object for entry in reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)}
    labels = {food.code for food in scene.home.foods if pet.id in food.pets and food.code is not None}
    missing = []
    if "weight" not in logged:
        missing.append((f"{pet.name}'s weight", "/log"))
    if not labels:
        missing.append(("The food, with the list of ingredients on its bag", "/food"))
    if "flea_treatment" not in logged:
        missing.append(("The last flea or tick treatment", "/log"))
    return tuple(missing)
