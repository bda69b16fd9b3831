"""What would settle what can't be told: an entry, a look at a device, more days, a longer stretch, a date.

Said after an opening that cannot tell and names its slot. Each is one step an owner can take, or the
day from which it can be told; nothing here decides whether it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.said import say
from gateway.ask.wording import day
from gateway.dialogue import NoticeKind
from gateway.measure.days import add_days

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet
    from gateway.ontology.vocabulary import Property

__all__ = [
    "ask_again",
    "hear_it",
    "log_day",
    "log_next",
    "look_at",
    "more_days",
    "note_it",
    "pick_bag",
    "recorded_since",
    "told_from",
]


def log_next(draft: Draft, slot: str) -> None:
    """Nobody wrote one down: the next one, with its day."""
    text = "Write the next one down with its day, on the page or with scentwalk log; then this can be told"
    draft.say(NoticeKind.NEXT, text, slot=slot)


def log_day(draft: Draft, slot: str) -> None:
    """It happened, and no record says when: whoever knows the day can write it down now."""
    text = "If you know the day, write it down, on the page or with scentwalk log; then this can be told"
    draft.say(NoticeKind.NEXT, text, slot=slot)


def note_it(draft: Draft, slot: str) -> None:
    """No note of the vet's is there: how one comes in."""
    text = "To add one: the vet's words on the page under Add a vet note, or with scentwalk note"
    draft.say(NoticeKind.NEXT, text, slot=slot)


def pick_bag(draft: Draft) -> None:
    """Which food, or since when, is not on file: what records it."""
    draft.say(NoticeKind.NEXT, "Picking the bag at the bowl, or a log entry, records it", slot="food")


def look_at(scene: Scene, draft: Draft, kind: str) -> None:
    """A device that should have heard something did not."""
    device = scene.ontology.device_kinds[kind]
    draft.say(NoticeKind.NEXT, say("Next: check the {device}'s battery and place", device=device))


def hear_it(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> None:
    """Nothing is recorded of a property: a look at the device that serves the pet, else an entry of somebody's."""
    devices = scene.devices_of(pet.id, observed)
    if devices:
        look_at(scene, draft, devices[0].kind)
    else:
        log_next(draft, observed.id)


def ask_again(draft: Draft, slot: str, *, days: int, wider: int | None) -> None:
    """The days vary too much for a window of ``days``: one of ``wider`` tells, else a week, else more days to come."""
    if wider is not None:
        text = say("Ask about the last {days} days: that is long enough to tell", days=wider)
        draft.say(NoticeKind.NEXT, text, slot=slot)
    elif days == 1:
        draft.say(NoticeKind.NEXT, "One day says little: ask about the whole week", slot=slot)
    else:
        draft.say(NoticeKind.NEXT, "Ask again in a week: each recorded day makes it clearer", slot=slot)


def told_from(scene: Scene, draft: Draft, slot: str, *, tell_on: str | None, needed: int) -> None:
    """Too few days before a time that is past: the day from which there are enough, else how many it takes."""
    if tell_on is not None:
        when = day(tell_on, year_of=scene.today)
        text = say("From {day} on there is enough to compare with: ask about a time after it", day=when)
    else:
        text = say("It takes {needed} recorded days before the time asked about", needed=needed)
    draft.say(NoticeKind.NEXT, text, slot=slot)


def recorded_since(scene: Scene, draft: Draft, pet: Pet, observed: Property, first: str) -> None:
    """A period was not recorded: since when there are records, where that is after its first day, else the device."""
    began = scene.reader.first_date(scene.ontology.series_id(pet.id, observed.id))
    if began is None or began <= first:
        hear_it(scene, draft, pet, observed)
        return
    text = say("Recorded since {day}: times from then on can be compared", day=day(began, year_of=scene.today))
    draft.say(NoticeKind.NEXT, text, slot=observed.id)


def more_days(scene: Scene, draft: Draft, slot: str, *, missing: int, needed: int, goes_on: bool) -> None:
    """Too few days with or without a thing: how many more it takes and, where it goes on, until when."""
    if goes_on:
        when = day(add_days(scene.today, missing), year_of=scene.today)
        text = say(
            "It takes {needed} recorded days: if it goes on, this can be told about {when}", needed=needed, when=when
        )
    elif missing == 1:
        text = say("It takes {needed} recorded days on each side; 1 more would do", needed=needed)
    else:
        text = say(
            "It takes {needed} recorded days on each side; {missing} more would do", needed=needed, missing=missing
        )
    draft.say(NoticeKind.NEXT, text, slot=slot)
