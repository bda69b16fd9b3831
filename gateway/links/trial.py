"""Tries a profile on a message without keeping anything: bytes in, the rows it would make or why not.

What stands in the store is not asked: a counter's first reading, a state that stays as it was and an
item heard before make no row here as there, and the first two are told. `profile check` shows it
to an owner; `reprocess` asks it whether a message that could not be read can be now.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from gateway.errors import PayloadError
from gateway.links.heard import reply_of
from gateway.links.profile import Profile
from gateway.links.profiled import Item, Message, State, derive, open_message
from gateway.model import ZonePeriod
from gateway.stored import DatedFrame

__all__ = ["Trial", "try_message"]


@dataclass(slots=True)
class Trial:
    """What a profile makes of messages, one after another.

    Attributes
    ----------
    rows : list of DatedFrame
        As they would be stored; the device is the sender.
    troubles : list of (reason, detail)
        What could not be read.
    opened : int
        Items of this profile's device.
    foreign : int
        Items that lack what the profile asks for, and so are another device's.
    silent : int
        Items that were read and made no row: nothing new, or no rule is about them.
    """

    rows: list[DatedFrame] = field(default_factory=list)
    troubles: list[tuple[str, str]] = field(default_factory=list)
    opened: int = 0
    foreign: int = 0
    silent: int = 0
    states: dict[str, State] = field(default_factory=dict)


def try_message(
    profile: Profile, message: Message, *, zones: tuple[ZonePeriod, ...], before: Trial | None = None
) -> Trial:
    """What the profile makes of a message, after those of ``before``.

    Parameters
    ----------
    zones : tuple of ZonePeriod
        For clocks that say no zone.
    before : Trial, optional
        What was told of earlier messages, which this one goes on from: counters and states.
    """
    tried = Trial() if before is None else Trial(states=dict(before.states))
    opened = open_message(profile, message)
    tried.foreign = opened.foreign
    tried.troubles += [(trouble.reason, trouble.detail) for trouble in opened.troubles]
    for item in opened.items:
        tried.opened += 1
        try:
            reply_of(profile, item, message)
            made = derive(
                profile, item, message, key=_key(item, message), state=tried.states.get(item.source, {}), zones=zones
            )
        except PayloadError as problem:
            tried.troubles.append((problem.reason, str(problem)))
            continue
        tried.states[item.source] = made.state
        tried.rows += made.rows
        tried.silent += not made.rows
    return tried


def _key(item: Item, message: Message) -> str:
    return item.key or f"@{message.first_ms}.{hashlib.sha256(message.payload).hexdigest()[:6]}"
