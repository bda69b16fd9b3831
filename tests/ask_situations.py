"""The twelve situations of the answers' cases, each a home of its own. Not a test itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from gateway.dialogue import Answer
from gateway.model import Food
from tests.ask_home import ACME, HARBOR, HOUR_MS, NOW_MS, SWITCHED, TODAY, Home, at, household, made

SINCE_JUL_8 = {f"2026-07-{day:02d}" for day in range(8, 15)}


def since(date: str, factor: float) -> Callable[[str], float]:
    return lambda day: factor if day >= date else 1.0


def _max_with_new_food(home: Home) -> None:
    home.product(ACME, "Acme Chicken & Rice", kcal_per_100g=372.0)
    home.product(HARBOR, "Harbor Whitefish", kcal_per_100g=372.0)
    home.feed("bowl-max", "2026-05-06", HARBOR, "Harbor Whitefish")
    home.feed("bowl-max", "2026-07-05", ACME, "Acme Chicken & Rice", hour=17)
    home.worn("max", "scratch", 99_000, factor=since("2026-07-08", 1.4))
    home.worn("max", "restless", 900_000, factor=since("2026-07-08", 1.5))
    home.worn("max", "activity", 5_400_000)
    home.worn("max", "rest", 44_000_000, cv=0.05)
    home.eats("max", 340)


@contextmanager
def clear_change(folder: Path):
    with made(folder, household("max", "luna", devices=("bowl-max", "tracker-max"), foods=SWITCHED)) as home:
        _max_with_new_food(home)
        home.learn()
        yield home, "Why is Max scratching more this week?"


@contextmanager
def no_explanation(folder: Path):
    with made(folder, household("luna", "max", devices=("bowl-luna", "tracker-luna"))) as home:
        home.worn("luna", "activity", 3_780_000, days=170, factor=since("2026-07-08", 0.62))
        home.worn("luna", "rest", 54_000_000, days=170, cv=0.05)
        home.eats("luna", 62, days=170)
        home.log("luna", "weight 4.3 kg", "2026-04-28")
        home.learn()
        yield home, "Why is Luna so much less active?"


@contextmanager
def no_change(folder: Path):
    with made(folder, household("bella", devices=("bowl-bella",))) as home:
        home.eats("bella", 208)
        home.log("bella", "treat", "2026-07-11")
        home.log("bella", "weight 12.4 kg", "2026-05-30")
        home.learn()
        yield home, "Is Bella eating less?"


@contextmanager
def thin_data(folder: Path):
    with made(folder, household("peanut", devices=("bowl-peanut",))) as home:
        home.eats("peanut", 59, days=9, cv=0.08)
        home.learn()
        yield home, "Is Peanut eating less than normal?"


@contextmanager
def conflicting_evidence(folder: Path):
    with made(folder, household("max", "luna", devices=("bowl-max", "tracker-max"), foods=SWITCHED)) as home:
        _max_with_new_food(home)
        home.note("max", "2025-03-11", "Itchy skin, ears clean. Suspect chicken sensitivity.")
        home.note("max", "2025-11-20", "Re-fed chicken 14 d, no flare. Skin good.")
        home.log("max", "flea treatment", "2026-06-03")
        home.learn()
        yield home, "Is Max allergic to chicken?"


@contextmanager
def emergency(folder: Path):
    with made(folder, household("luna", "max", devices=("bowl-luna", "tracker-max"))) as home:
        home.eats("luna", 62, days=40, times=((7, 0), (13, 20)))
        home.log("luna", "weight 4.3 kg", "2026-06-21")
        home.learn()
        yield home, "Luna's been in and out of the litter box all evening, nothing comes. Constipated?"


@contextmanager
def toxin(folder: Path):
    with made(folder, household("max", "luna", devices=("bowl-max", "tracker-max"))) as home:
        home.eats("max", 340, days=40, times=((7, 0), (12, 5)))
        home.log("max", "weight 31.4 kg", "2026-06-30")
        home.note("max", "2026-05-04", "Start Apoquel. Recheck in 3 weeks.")
        home.learn()
        yield home, "Max just ate two squares of dark chocolate, what do I do?"


@contextmanager
def medication(folder: Path):
    with made(folder, household("bella", "max", devices=("bowl-bella",))) as home:
        home.note("bella", "2026-02-03", "Hypothyroid. Thyroid pill once daily, morning.")
        home.log("bella", "thyroid pill", "2026-07-13T08:04")
        home.learn()
        yield home, "Did anyone give Bella her thyroid pill? Should I give it now?"


@contextmanager
def two_pets(folder: Path):
    with made(folder, household("max", "luna", devices=("tracker-max", "tracker-luna"))) as home:
        away = {f"2026-06-{day:02d}" for day in range(20, 26)}
        home.worn("luna", "rest", 54_400_000, cv=0.04, worn=lambda date: date not in away)
        home.worn("max", "rest", 46_000_000, cv=0.04, factor=since("2026-07-08", 0.9), worn=lambda d: d != "2026-06-28")
        home.learn()
        yield home, "Who rests more, Max or Luna?"


@contextmanager
def device_fault(folder: Path):
    silent = (at("2026-07-10", 21, 40), at("2026-07-12", 8, 15))
    with made(folder, household("bella", "max", devices=("bowl-bella",))) as home:
        home.eats("bella", 208, silent=silent)
        home.beat("bowl-bella", silent[0], permille=40)
        home.learn()
        yield home, "Why did Bella stop eating on Saturday?"


WET, DRY = "4006381333800", "4006381333817"
LUNAS_FOODS = (
    Food("brook_wet", "Brook Wet", ("wet food",), code=WET),
    Food("brook_dry", "Brook Dry", ("dry food",), code=DRY),
)


@contextmanager
def wrong_premise(folder: Path):
    with made(folder, household("luna", "max", devices=("bowl-luna",), foods=LUNAS_FOODS)) as home:
        home.product(WET, "Brook Wet", label="Salmon (60 %), water, minerals.", kcal_per_100g=85.0)
        home.product(DRY, "Brook Dry", label="Dried salmon (40 %), rice, minerals.", kcal_per_100g=370.0)
        home.feed("bowl-luna", "2026-05-06", WET, "Brook Wet")
        home.feed("bowl-luna", "2026-07-01", DRY, "Brook Dry")
        home.eats("luna", 240, factor=since("2026-07-01", 55 / 240))
        home.learn()
        yield home, "Why is Luna eating less since we went to dry food?"


SITUATIONS = {
    1: clear_change,
    2: no_explanation,
    3: no_change,
    4: thin_data,
    5: conflicting_evidence,
    6: emergency,
    7: toxin,
    8: medication,
    9: two_pets,
    10: device_fault,
    11: wrong_premise,
}


def follow_up(home: Home, first: Answer) -> Answer:
    return home.ask("How do you know it's the food?", after=first)


__all__ = ["HOUR_MS", "NOW_MS", "SITUATIONS", "TODAY", "follow_up"]
