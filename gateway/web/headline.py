"""One sentence per pet: what the week's findings say, and what no device can see.

It speaks only of what was measured and never of how the pet is: nothing outside the usual
is not health, so there is no green here, no tick, and the blind spots are part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.ask.said import is_or_are
from gateway.ask.wording import day, day_range, first_upper, joined, percent, possessive
from gateway.measure.days import add_days, local_day
from gateway.model import Household, Pet, PetStatus, Verdict
from gateway.ontology.load import load
from gateway.ontology.vocabulary import Property
from gateway.store.reads import Reader
from gateway.web.notices import OF_DEVICES, standing_floors

__all__ = ["BASELINE_DAYS", "Headline", "headline"]

WINDOW_DAYS = 7
BASELINE_DAYS = 21
"""Covered days before a seven-day window: the least history (CONTRACTS, Verdict)."""

_KEPT = {
    PetStatus.DIED: "{name} died. The records are kept; nothing is compared any more.",
    PetStatus.GONE: "{name} no longer lives here. The records are kept; nothing is compared any more.",
    PetStatus.AWAY: "{name} is away: these days count as not recorded, never as zero.",
}


@dataclass(frozen=True, slots=True)
class Headline:
    """The sentence, what it leaves open, and how far the history has come while it is short."""

    text: str
    blind: str
    learned_days: int | None = None
    first_comparison: str | None = None


@dataclass(frozen=True, slots=True)
class _Week:
    """One series' finding, as far as the headline needs it."""

    observed: Property
    verdict: Verdict
    reason: str | None
    days_used: int
    days_expected: int
    change: float | None = None


def _weeks(reader: Reader, pet: Pet, as_of: str) -> tuple[_Week, ...]:
    ontology = load()
    found = []
    for series, window, verdict, facts in reader.findings(as_of=as_of):
        owner, _, noun = series.partition(".")
        if owner != pet.id or window != "P7D":
            continue
        observed = ontology.property_of_noun(noun)
        if observed.sign_up is None and observed.sign_down is None:
            continue  # refills and batteries say nothing about the pet
        found.append(
            _Week(
                observed=observed,
                verdict=Verdict(verdict),
                reason=None if facts.get("reason") is None else str(facts["reason"]),
                days_used=int(str(facts["days_used"])),
                days_expected=int(str(facts["days_expected"])),
                change=None if facts.get("change") is None else float(str(facts["change"])),
            )
        )
    return tuple(found)


def _blind(home: Household, pet: Pet) -> str:
    kinds = {
        device.kind
        for device in home.devices
        for binding in home.bindings
        if binding.device == device.id and pet.id in binding.pets and binding.valid_to_ms is None
    }
    if not kinds:
        return "No device is bound to this pet."
    known = load().device_kinds
    names = sorted(known[kind].plain if kind in known else kind.replace("_", " ") for kind in kinds)
    unseen = ["vomiting", "limping", *(() if "litter_box" in kinds else ("urine",)), "pain"]
    return f"The {joined(names)} can't see {joined(unseen, last='or')}."


def _devices(weeks: tuple[_Week, ...]) -> str:
    ontology = load()
    kinds = dict.fromkeys(week.observed.captured_by[0] for week in weeks)
    return joined([ontology.device_kinds[kind].plain for kind in kinds])


def _heard(weeks: tuple[_Week, ...], as_of: str) -> str:
    days = day_range(add_days(as_of, 1 - WINDOW_DAYS), as_of)
    least, most = min(week.days_used for week in weeks), max(week.days_used for week in weeks)
    used = f"{most}" if least == most else f"{least} to {most}"
    return f"{days}, {used} of {weeks[0].days_expected} days"


def _owners(weeks: tuple[_Week, ...]) -> list[str]:
    return [week.observed.owner for week in weeks]


def _names(weeks: tuple[_Week, ...]) -> str:
    return joined(_owners(weeks))


def _compared(pet: Pet, weeks: tuple[_Week, ...], as_of: str) -> str:
    """The sentence where at least one series could be compared."""
    clear = tuple(week for week in weeks if week.verdict is not Verdict.CANNOT_TELL)
    sides = []
    for verdict, word in ((Verdict.UP, "above"), (Verdict.DOWN, "below")):
        moved = tuple(week for week in clear if week.verdict is verdict)
        if moved:
            sides.append(
                f"{joined([_sized(week) for week in moved])} {is_or_are(_owners(moved))} {word} {possessive(pet)} usual"
            )
    if sides:
        same = tuple(week for week in clear if week.verdict is Verdict.USUAL)
        rest = f" {first_upper(_names(same))} {is_or_are(_owners(same))} as usual." if same else ""
        text = f"{pet.name}: {joined(sides)} ({_heard(clear, as_of)}).{rest}"
    else:
        whose = f"{pet.name}'s"
        text = f"Nothing the {_devices(clear)} {_verb(clear)} is outside {whose} usual ({_heard(clear, as_of)})."
    unclear = tuple(week for week in weeks if week.verdict is Verdict.CANNOT_TELL)
    return f"{text} One week can't tell for {_names(unclear)}." if unclear else text


def _sized(week: _Week) -> str:
    """The series with how far it moved: "scratching (up 40 %)"; five percent is no forty."""
    if week.change is None:
        return week.observed.owner
    return f"{week.observed.owner} ({week.verdict} {percent(week.change)})"


def _verb(weeks: tuple[_Week, ...]) -> str:
    return "measures" if len({week.observed.captured_by[0] for week in weeks}) == 1 else "measure"


def _first_day(reader: Reader, pet: Pet) -> str | None:
    days = [
        first
        for series in reader.all_series()
        if series.pet == pet.id and (first := reader.first_date(series.id)) is not None
    ]
    return min(days, default=None)


def _learning(reader: Reader, pet: Pet, as_of: str, blind: str) -> Headline:
    """The sentence while the history is too short, with the day the first comparison comes."""
    first = _first_day(reader, pet)
    if first is None:
        return Headline(text=f"Nothing is recorded of {pet.name} yet.", blind=blind)
    needed = BASELINE_DAYS + WINDOW_DAYS
    recorded = sum(1 for number in range(needed) if _recorded(reader, pet, add_days(as_of, -number)))
    comes = add_days(first, needed - 1)
    return Headline(
        text=f"Too early to know {pet.name}'s usual: {recorded} of {needed} days recorded. "
        f"First comparison {day(comes)}, if the devices are heard every day.",
        blind=blind,
        learned_days=recorded,
        first_comparison=comes,
    )


def _recorded(reader: Reader, pet: Pet, date: str) -> bool:
    return any(
        row is not None and row.covered_ms > 0
        for series in reader.all_series()
        if series.pet == pet.id
        for row in (reader.day(series.id, date),)
    )


def headline(reader: Reader, home: Household, pet: Pet, *, now_ms: int) -> Headline:
    """The pet's one sentence, from the last closed day that was learned.

    Parameters
    ----------
    now_ms : int
        Nothing is said of a day after it.
    """
    blind = _blind(home, pet)
    if pet.status in _KEPT:
        return Headline(text=_KEPT[pet.status].format(name=pet.name), blind="")
    if any(floor.pet == pet.id and floor.kind not in OF_DEVICES for floor in standing_floors(reader)):
        return Headline(
            text=f"{pet.name}: read the notice above first. The week is not summed up beside it.", blind=blind
        )
    learned = reader.learned_until()
    as_of = None if learned is None else min(learned, local_day(now_ms, home.zones))
    weeks = () if as_of is None else _weeks(reader, pet, as_of)
    if as_of is None or not weeks:
        return Headline(text=f"Nothing of {pet.name} has been compared yet.", blind=blind)
    if any(week.verdict is not Verdict.CANNOT_TELL for week in weeks):
        return Headline(text=_compared(pet, weeks, as_of), blind=blind)
    if all(week.reason == "too_few_days" for week in weeks):
        return _learning(reader, pet, as_of, blind)
    used = first_upper(_heard(weeks, as_of))
    return Headline(text=f"This week can't be compared with {pet.name}'s usual ({used}).", blind=blind)
