"""The household of the question cases, and an evaluator that compares frames field by field."""

from __future__ import annotations

import json
import tomllib
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from gateway.ask.question import frame_json, read_question
from gateway.model import Binding, Device, Food, Household, Pet, Place, ZonePeriod

FIELDS = ("intent", "pets", "metric", "dir", "window", "subj", "answer_class")
DATA = Path(__file__).parent / "data"
ZONE = "America/New_York"
NOW_MS = int(datetime(2026, 7, 14, 18, tzinfo=ZoneInfo(ZONE)).timestamp() * 1000)

# The same facts as cases/household.toml, so that a plain clone can run the second set.
HOME = Household(
    zones=(ZonePeriod(ZONE, 0),),
    country="US",
    pets=(
        Pet("bella", "Bella", "dog", "beagle", "2019-08-11"),
        Pet("luna", "Luna", "cat", "domestic shorthair", "2020-05-20"),
        Pet("max", "Max", "dog", "golden retriever", "2021-03-02"),
        Pet("peanut", "Peanut", "dog", "chihuahua", "2022-01-15"),
    ),
    devices=(
        Device("bowl_hall", "food_bowl", ""),
        Device("bowl_kitchen", "food_bowl", "kitchen bowl"),
        Device("bowl_peanut", "food_bowl", ""),
        Device("bowl_window", "food_bowl", ""),
        Device("tracker_luna", "tracker", ""),
        Device("tracker_max", "tracker", ""),
    ),
    bindings=tuple(
        Binding(device, frozenset({pet}), 0)
        for device, pet in (
            ("bowl_kitchen", "max"),
            ("bowl_hall", "bella"),
            ("bowl_window", "luna"),
            ("bowl_peanut", "peanut"),
            ("tracker_max", "max"),
            ("tracker_luna", "luna"),
        )
    ),
    places=(Place("bellas", "Bella's", "boarding kennel"),),
    foods=(
        Food(
            "acme_chicken",
            "Acme Chicken & Rice",
            ("Acme", "the Acme food", "the chicken one", "the new kibble", "the new chicken kibble"),
            pets=frozenset({"max"}),
            first_date="2026-07-05",
        ),
        Food(
            "harbor_fish",
            "Harbor Whitefish",
            ("Harbor", "the fish one"),
            pets=frozenset({"max"}),
            last_date="2026-07-05",
        ),
    ),
)


def home_of(path: Path) -> Household:
    """A household file of the cases, as its import would store it."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return Household(
        zones=(ZonePeriod(table["zone"], 0),),
        country=table["country"],
        pets=tuple(
            sorted(
                (Pet(p["id"], p["name"], p["species"], p["breed"], str(p["born"])) for p in table["pet"]),
                key=lambda pet: pet.id,
            )
        ),
        devices=tuple(
            sorted((Device(d["id"], d["kind"], d.get("name", "")) for d in table["device"]), key=lambda d: d.id)
        ),
        bindings=tuple(Binding(d["id"], frozenset(d["pets"]), 0) for d in table["device"]),
        places=tuple(Place(p["id"], p["name"], p["kind"]) for p in table["place"]),
        foods=tuple(
            Food(
                f["id"],
                f["name"],
                tuple(f["aliases"]),
                pets=frozenset(f["pets"]),
                first_date=str(f["from"]) if "from" in f else None,
                last_date=str(f["to"]) if "to" in f else None,
            )
            for f in table["food"]
        ),
    )


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def differences(cases: list[dict], home: Household) -> list[str]:
    """One line for each question whose frame differs, naming the fields."""
    found = []
    for case in cases:
        before = read_question(case["before"], household=home, now_ms=NOW_MS) if "before" in case else None
        read = read_question(case["text"], household=home, now_ms=NOW_MS, last_pet=case.get("last_pet"), earlier=before)
        frame = frame_json(read)
        wrong = [
            f"{name}: {case[name]!r} expected, {frame[name]!r} read" for name in FIELDS if case[name] != frame[name]
        ]
        if wrong:
            found.append(f"{case['id']} {case['text']!r}: {'; '.join(wrong)}")
    return found
