"""The few words learn writes itself: instants on the home's wall, and how urgent a sign is.

The urgent sentences are the fixed ones of the safety tables: never softened, never reassuring.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from gateway.measure.alarms import Urgency
from gateway.measure.days import local_clock

if TYPE_CHECKING:
    from gateway.model import Pet, ZonePeriod

__all__ = ["day_words", "kilograms", "urgent", "when_words"]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day_words(iso: str) -> str:
    """An ISO date as "Jul 8"."""
    day = date.fromisoformat(iso)
    return f"{_MONTHS[day.month - 1]} {day.day}"


def when_words(at_ms: int, zones: tuple[ZonePeriod, ...]) -> str:
    """An instant as the home's wall clock showed it: "Jul 10, 19:00"."""
    local = local_clock(at_ms, zones)
    return f"{_MONTHS[local.month - 1]} {local.day}, {local.hour:02d}:{local.minute:02d}"


def kilograms(mg: float) -> str:
    """A weight as "4.31 kg"."""
    return f"{mg / 1e6:.2f} kg"


def urgent(urgency: Urgency, sign: str, pet: Pet) -> str:
    """The sentence of that urgency about a sign, which begins it."""
    if urgency is Urgency.RED:
        return f"{sign} can be an emergency. Call a vet or an emergency clinic now; don't wait for this page."
    return (
        f"{sign} is a reason to call your vet today; now, if {pet.name} is also weak, vomiting, breathing oddly or "
        "getting worse."
    )
