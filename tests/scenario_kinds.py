"""How a scenario is told: its registration, and what every story may say of its pet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.model import Mass

DENIED = Mass(0.0, 0.95)


@dataclass(frozen=True)
class Kind:
    name: str
    slots: frozenset[str]
    tell: Callable
    has_cause: bool


KINDS: dict[str, Kind] = {}


def _kind(*slots, has_cause):
    def register(tell):
        KINDS[tell.__name__] = Kind(tell.__name__, frozenset(slots), tell, has_cause)
        return tell

    return register


def cause(*slots):
    return _kind(*slots, has_cause=True)


def quiet(*slots):
    return _kind(*slots, has_cause=False)


# --- what a story may say of its pet ---------------------------------------------------------------------


def takes(home, med, start, end=None, *, relation="takes"):
    return home.say(home.pet, relation, med, home.at(start), None if end is None else home.at(end))


def stays(home, place, start, end=None, *, pet=None):
    return home.say(pet or home.pet, "was_at", place, home.at(start), None if end is None else home.at(end))


def meets(home, visitor, start, *, pet=None):
    return home.say(pet or home.pet, "visited_by", visitor, home.at(start), home.at(start + 0.4))


def own_series(home):
    """The series the question is about."""
    return f"series:{home.pet.partition(':')[2]}.{home.town.observed.noun}"


def swap(home, day):
    """A device that measures the asked series replaces another; the edge of the new one."""
    series = own_series(home)
    home.say("device:new", "captures", series, by="tracker")
    return home.say(home.pet, "uses_device", "device:new", home.at(day), None)
