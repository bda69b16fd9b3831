"""The true answer of a played story, for the test that checks the hub's; nobody else reads it.

Numbers come from the hidden series as they were emitted: ``truth +- 0.10`` in an expectation
becomes the value with that tolerance (a fraction for ``change``, a share of the value where
it ends in ``%``).
"""

from __future__ import annotations

import json
import re
from datetime import time
from typing import Any

from device_sim.household import World
from device_sim.story import Story, StoryError

__all__ = ["change_of", "names_of", "truth_json", "usual_of"]

_WEEK_DAYS = 7
_BASELINE_DAYS = 28
_TOLERANCE = re.compile(r"truth \+- ([0-9.]+)( %)?\Z")


def _window_and_before(world: World, pet: str, series: str) -> tuple[float, float]:
    """The week's sum, and what the same quarter hours held on average on the days before.

    Days before: the 28 that end a week ago, without those on which an effect already worked.
    Slots after the question, and those that a ring dropped, are in neither.
    """
    story = world.story
    sums = world.slots[pet, series]
    lost = world.lost[pet, "food_bowl" if series == "intake" else "tracker"]
    last = story.days - 1
    now_slot = (story.end_ms - story.instant(0, time())) // 900_000
    started = [effect.day + last for effect in story.effects if effect.pet == pet and effect.series == series]
    first_changed = min([*started, last - _WEEK_DAYS + 1])
    before = [day for day in range(last - _WEEK_DAYS - _BASELINE_DAYS + 1, first_changed) if day >= 0]
    usual: dict[int, float] = {}
    for day in before:
        for slot in range(100):
            usual[slot] = usual.get(slot, 0.0) + sums.get((day, slot), 0.0) / len(before)
    now = expected = 0.0
    for day in range(last - _WEEK_DAYS + 1, last + 1):
        for slot in range(now_slot if day == last else 100):
            if (day, slot) not in lost:
                now += sums.get((day, slot), 0.0)
                expected += usual.get(slot, 0.0)
    return now, expected


def change_of(world: World, pet: str, series: str) -> float:
    """The change of the week against the days before, like hours with like: 0.40 = +40 %."""
    now, expected = _window_and_before(world, pet, series)
    if expected == 0.0:
        raise StoryError(f"{world.story.name}: {pet}.{series} must have days before the week, has none")
    return now / expected - 1.0


def usual_of(world: World, pet: str, series: str) -> float:
    """What a whole usual day held: ms, or kcal for intake."""
    story = world.story
    sums = world.slots[pet, series]
    last = story.days - 1
    days = range(max(0, last - _WEEK_DAYS - _BASELINE_DAYS + 1), last - _WEEK_DAYS + 1)
    return sum(sums.get((day, slot), 0.0) for day in days for slot in range(100)) / len(days)


def names_of(story: Story) -> dict[str, str]:
    """What the braces of a story stand for in this cast."""
    names = {food.key: food.id for food in story.foods}
    after = [food for food in story.foods if food.key == "after"]
    names["ingredient"] = after[0].ingredient if after else ""
    names["subject"] = story.pet("subject").name
    names["subject_id"] = story.pet("subject").id
    return names


def _cause(story: Story) -> dict[str, Any] | None:
    """The switch that the story's effects follow; None where there is none."""
    switches = [one for one in story.feedings if one.pet == "subject" and one.day > 1 - story.days]
    if not switches or not story.effects or story.variant != "reactive":
        return None
    food = story.food(switches[-1].food)
    if food.ingredient in story.food("before").ingredients.lower():
        return None  # in both foods: it explains nothing
    return {
        "food": f"food:{food.id}",
        "code": food.code,
        "name": food.name,
        "ingredient": food.ingredient,
        "date": story.date_of(switches[-1].day).isoformat(),
        "changed_ms": story.instant(switches[-1].day, switches[-1].at),
        "onset": story.date_of(min(effect.day for effect in story.effects)).isoformat(),
    }


def _filled(world: World, claim: dict[str, Any]) -> dict[str, Any]:
    """An expectation with names and numbers of this world."""
    names = names_of(world.story)
    filled: dict[str, Any] = {}
    for key, value in claim.items():
        if key == "when":
            continue
        if isinstance(value, str) and value.startswith("truth"):
            filled[key] = _number(world, claim, key, value)
        elif isinstance(value, str):
            filled[key] = value.format(**names)
        else:
            filled[key] = value
    return filled


def _number(world: World, claim: dict[str, Any], key: str, text: str) -> dict[str, Any] | str:
    story = world.story
    if key == "date":
        cause = _cause(story)
        if cause is None:
            raise StoryError(f"{story.name}: a date can be expected only where there is a cause")
        return str(cause["date"])
    found = _TOLERANCE.match(text)
    if found is None:
        raise StoryError(f"{story.name}: {key} must read 'truth +- NUMBER' or 'truth +- NUMBER %', reads {text!r}")
    value = {"change": change_of, "usual": usual_of}[key](world, "subject", claim["series"])
    width = float(found[1])
    return {"value": value, "plus_minus": abs(value) * width / 100 if found[2] else width}


def truth_json(world: World) -> str:
    """Everything the test of a story needs to know, as JSON text."""
    story = world.story
    expect = story.expect

    def wanted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [_filled(world, row) for row in rows if row.get("when", story.variant) == story.variant]

    truth = {
        "schema": 1,
        "story": story.name,
        "seed": story.seed,
        "variant": story.variant,
        "question": story.question.format(**names_of(story)),
        "now_ms": story.end_ms,
        "zone": story.zone,
        "pets": {pet.key: {"id": pet.id, "name": pet.name, "breed": pet.breed} for pet in story.pets},
        "foods": {food.key: {"id": food.id, "name": food.name, "code": food.code} for food in story.foods},
        "cause": _cause(story),
        "changes": {
            f"{pet}.{series}": change_of(world, pet, series)
            for pet, series in sorted(world.slots)
            if story.days > 2 * _WEEK_DAYS
        },
        "expect": {
            "first": expect["first"],
            "missing": expect.get("missing", []),
            "claims": wanted(expect.get("claim", [])),
            "never": wanted(expect.get("never", [])),
        },
    }
    return json.dumps(truth, ensure_ascii=False, indent=2) + "\n"
