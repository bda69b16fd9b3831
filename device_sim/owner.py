"""What the owner of a simulated household would enter: written as files the hub can import.

``household.toml`` (who lives here, devices, foods, phone numbers), ``products/CODE.json``
(labels in Open Pet Food Facts' shape), ``passages/*.md`` (guides, distractors among them) and
``log.jsonl`` (dated entries, one JSON object a line: pet, what, at, every); ``marks.jsonl``
(what the owner marked wrong) only where a story has it. Nothing of the hidden truth is in them.
"""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from device_sim.household import World
from device_sim.story import Food, Story

__all__ = ["household_toml", "log_lines", "mark_lines", "product_json", "write_owner_files"]

_GUIDES = files(__package__) / "guides"


def _table(name: str, rows: dict[str, object]) -> str:
    """One TOML table. JSON's strings, numbers, lists of strings and booleans are TOML's too."""
    lines = [f"[[{name}]]"]
    for key, value in rows.items():
        if value is None:
            continue
        told = value if key in ("born", "since") else json.dumps(value, ensure_ascii=False)
        lines.append(f"{key} = {told}")
    return "\n".join(lines)


def household_toml(world: World) -> str:
    """The household file of ``scentwalk household import``."""
    story = world.story
    head = f'zone = "{story.zone}"\ncountry = "{story.country}"'
    tables = [
        _table(
            "pet",
            {
                "id": pet.id,
                "name": pet.name,
                "species": pet.species,
                "breed": pet.breed,
                "born": pet.born.isoformat(),
                "sex": pet.sex,
                "neutered": pet.neutered,
            },
        )
        for pet in story.pets
    ]
    tables += [
        _table(
            "device",
            {
                "id": device.id,
                "name": device.name,
                "kind": device.kind,
                "pets": [story.pet(key).id for key in device.pets],
                "since": None if device.since is None else story.date_of(device.since).isoformat(),
            },
        )
        for device in world.devices
    ]
    tables += [
        _table("food", {"id": food.id, "name": food.name, "code": food.code, "aliases": list(food.aliases)})
        for food in story.foods
    ]
    tables.append(_table("person", {"id": "vet", "name": "Dr. Hill", "role": "vet", "phone": story.vet_phone}))
    tables.append(
        _table(
            "person", {"id": "clinic", "name": "Night clinic", "role": "emergency clinic", "phone": story.clinic_phone}
        )
    )
    return "\n\n".join((head, *tables)) + "\n"


def product_json(food: Food) -> str:
    """A product as Open Pet Food Facts gives it: code, names, label text, energy per 100 g."""
    product = {
        "code": food.code,
        "product_name": food.name,
        "brands": food.brand,
        "ingredients_text": food.ingredients,
        "nutriments": {"energy-kcal_100g": food.kcal_per_kg / 10},
    }
    return json.dumps(product, ensure_ascii=False, indent=2) + "\n"


def log_lines(story: Story) -> str:
    """The owner's log, oldest first; ``at`` carries the home's offset."""
    lines = []
    for entry in sorted(story.log, key=lambda one: (one.day, one.at, one.pet, one.what)):
        at = datetime.combine(story.date_of(entry.day), entry.at, story.tz)
        line = {"pet": story.pet(entry.pet).id, "what": entry.what, "at": at.isoformat(timespec="minutes")}
        if entry.every is not None:
            line["every"] = entry.every
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return "".join(lines)


def mark_lines(story: Story) -> str:
    """What the owner marked as wrong, one JSON object a line: hypothesis, reason, at."""
    lines = []
    for wrong in story.wrongs:
        at = datetime.combine(story.date_of(wrong.day), wrong.at, story.tz)
        hypothesis = f"food:{story.food(wrong.food).id}>{wrong.sign}@pet:{story.pet(wrong.pet).id}"
        line = {"hypothesis": hypothesis, "reason": wrong.reason, "at": at.isoformat(timespec="minutes")}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return "".join(lines)


def write_owner_files(world: World, folder: Path) -> None:
    """Write everything into ``folder``, which is made where it does not exist."""
    story = world.story
    (folder / "products").mkdir(parents=True, exist_ok=True)
    (folder / "passages").mkdir(exist_ok=True)
    (folder / "household.toml").write_text(household_toml(world), "utf-8")
    for food in story.foods:
        (folder / "products" / f"{food.code}.json").write_text(product_json(food), "utf-8")
    for guide in story.guides:
        text = (_GUIDES / f"{guide}.md").read_text("utf-8")
        (folder / "passages" / f"{guide}.md").write_text(text, "utf-8")
    (folder / "log.jsonl").write_text(log_lines(story), "utf-8")
    if story.wrongs:
        (folder / "marks.jsonl").write_text(mark_lines(story), "utf-8")
