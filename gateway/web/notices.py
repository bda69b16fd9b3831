"""What the hub says unasked, as the front page shows it: floors first, then plain sentences.

Red and amber are hard floors alone, in the words they were stored with, with the numbers to
call and the answers that quiet them. A statistical notice is a sentence with a link, never a
colour. Nothing here is ever green.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from gateway.ask.records import heading, when
from gateway.ask.restated import changed_text
from gateway.ask.wording import day, first_upper, percent, percent_range, possessive
from gateway.learn.notices import NOTICE_WINDOW, QUIET_DAYS, answers_to
from gateway.learn.slow import SLOW_WINDOWS
from gateway.measure.alarms import FloorKind
from gateway.measure.days import HOUR_MS, add_days, local_day
from gateway.model import Household, Pet, PetStatus, RecordRef
from gateway.ontology.load import load
from gateway.store.reads import Reader
from gateway.stored import FloorNotice

__all__ = [
    "OF_DEVICES",
    "NoticeCard",
    "Said",
    "changed_words",
    "forgotten_words",
    "notice_cards",
    "said_of",
    "standing_floors",
]

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ANSWERS = {
    "ate_elsewhere": "{name} ate elsewhere",
    "not_at_home": "{name} is not at home",
    "seen": "I have seen this",
}
OF_DEVICES = frozenset({FloorKind.UNWATCHED.value, FloorKind.BATTERY.value})
"""Floors about a device: no reason to call anybody, and none to say nothing of the week."""
_SILENT = frozenset({PetStatus.DIED, PetStatus.GONE, PetStatus.AWAY})


@dataclass(frozen=True, slots=True)
class NoticeCard:
    """A floor that stands: its sentence, whom to call as (name, number as written, digits),
    the records it stands on as (title, reference), and the answers as (word, button).

    ``answered`` says when it was seen; such a card has no buttons.
    """

    id: str
    urgency: str
    text: str
    since: str
    phones: tuple[tuple[str, str, str], ...]
    sources: tuple[tuple[str, RecordRef], ...]
    answers: tuple[tuple[str, str], ...]
    answered: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence about a series, and the series' page where it has one."""

    text: str
    href: str | None


def standing_floors(reader: Reader) -> tuple[FloorNotice, ...]:
    """Floors that hold and are unanswered or only seen, red first, answered ones last."""
    open_now = [notice for notice in reader.floor_notices(open_only=True) if notice.answer in (None, "seen")]
    return tuple(sorted(open_now, key=lambda notice: notice.answer is not None))  # stable: red stays first


def notice_cards(reader: Reader, home: Household) -> tuple[NoticeCard, ...]:
    """The floors that stand, ready to show."""
    people = [person for person in home.people if person.phone and person.is_called]
    phones = tuple((person.name, str(person.phone), re.sub(r"\D", "", str(person.phone))) for person in people)
    return tuple(
        NoticeCard(
            id=notice.id,
            urgency=notice.urgency,
            text=notice.text,
            since=when(notice.since_ms, home),
            phones=() if notice.kind in OF_DEVICES else phones,
            sources=tuple((heading(reader, ref), ref) for ref in notice.refs),
            answers=()
            if notice.answer is not None
            else tuple(
                (word, _ANSWERS[word].format(name=home.pet(notice.pet).name)) for word in answers_to(notice.kind)
            ),
            answered=None if notice.answered_ms is None else when(notice.answered_ms, home),
        )
        for notice in standing_floors(reader)
    )


def said_of(reader: Reader, home: Household, pet: Pet, *, now_ms: int) -> tuple[Said, ...]:
    """Statistical notices of the last week and slow changes of the last pass, one sentence each, after
    what late records made of verdicts the owner was told.
    """
    told = _told_otherwise(reader, home, pet, now_ms=now_ms)
    learned = reader.learned_until()
    if learned is None or pet.status in _SILENT:
        return told
    as_of = min(learned, local_day(now_ms, home.zones))
    ontology = load()
    latest: dict[tuple[str, bool], str] = {}
    windows = (NOTICE_WINDOW, *SLOW_WINDOWS)
    for series, _, window, verdict, facts in reader.findings_between(windows, add_days(as_of, 1 - QUIET_DAYS), as_of):
        owner, _, noun = series.partition(".")
        if owner != pet.id:
            continue
        name = ontology.property_of_noun(noun).owner
        slow = window != NOTICE_WINDOW
        say = _slowly(name, verdict, facts, as_of) if slow else _shifted(name, verdict, facts, pet)
        latest[series, slow] = say  # by day: the last one stands
    return told + tuple(
        Said(text, f"/series/{quote(series, safe='')}" if reader.first_date(series) is not None else None)
        for (series, _), text in sorted(latest.items())
    )


def changed_words(reader: Reader, answer: int) -> tuple[str, ...]:
    """The sentences about verdicts of a stored answer that late records made another word."""
    home = reader.household()
    return tuple(changed_text(told, home, load()) for told in reader.changed_verdicts(answer=answer))


def forgotten_words(reader: Reader, answer: int) -> tuple[str, ...]:
    """What a stored answer cites of sources that were forgotten since, a sentence a source."""
    zones = reader.household().zones
    counted: dict[tuple[int, str], int] = defaultdict(int)
    for grave in reader.forgotten_of(answer):
        counted[grave.forgotten_ms, grave.what] += 1
    return tuple(
        f"On {day(local_day(at_ms, zones))} you had {what} forgotten. "
        f"{count} of the records this answer stands on {'is' if count == 1 else 'are'} gone with it; "
        "the answer stands as it was said."
        for (at_ms, what), count in sorted(counted.items())
    )


def _told_otherwise(reader: Reader, home: Household, pet: Pet, *, now_ms: int) -> tuple[Said, ...]:
    """Verdicts about this pet that became another word lately, each leading to its answer."""
    found: dict[str, str] = {}
    for told in reader.changed_verdicts(since_ms=now_ms - QUIET_DAYS * 24 * HOUR_MS):
        if told.series.partition(".")[0] == pet.id:  # asked twice, told of once, with the newest answer
            found.setdefault(changed_text(told, home, load()), f"/answer/{told.answer}")
    return tuple(Said(text, href) for text, href in found.items())


def _shifted(name: str, verdict: str, facts: dict[str, object], pet: Pet) -> str:
    way, change = ("above" if verdict == "up" else "below"), float(str(facts["change"]))
    began = day(str(facts["began"]))
    return (
        f"{first_upper(name)} has been {way} {possessive(pet)} usual since about {began} ({verdict} {percent(change)})."
    )


def _slowly(name: str, verdict: str, facts: dict[str, object], as_of: str) -> str:
    since = date.fromisoformat(str(facts["since"]))
    month = _MONTHS[since.month - 1]
    if since.year != date.fromisoformat(as_of).year:
        month = f"{month} {since.year}"
    low, high = facts["interval"] if isinstance(facts["interval"], list) else (0.0, 0.0)
    season = "" if facts["season_known"] else " No earlier year is on record, so it may be the season."
    return (
        f"{first_upper(name)}: slowly {verdict} since about {month} ({percent(float(str(facts['change'])))}, likely "
        f"{percent_range((float(low), float(high)))}).{season}"
    )
