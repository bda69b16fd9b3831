"""`scentwalk profile check FILE` with sample messages: what a profile makes of them, in words.

In: a profile, the samples as an owner typed them; out: lines for a terminal and whether everything
was read. Nothing is kept, and no store is needed: without a home's zone, times are said in UTC.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gateway.ask.records import when
from gateway.ask.wording import amount
from gateway.errors import ConfigError, PayloadError
from gateway.links.advertisement import TRANSPORT, advertisement, pack
from gateway.links.profiled import Message, topic_names
from gateway.links.trial import Trial, try_message
from gateway.model import Household, ZonePeriod
from gateway.stored import EVENT_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.links.profile import Profile
    from gateway.stored import EventField

__all__ = ["tried_lines"]

_SPOKEN = frozenset({"mg", "ms", "permille", "mK"})
_APART_MS = 60_000
"""Samples are taken to come a minute apart."""
_RADIO = (
    'of a radio profile a sample must be JSON such as {"address": "CB:B8:33:4C:88:4F", "service": {"0000fcd2-0000-1000-'
    '8000-00805f9b34fb": "40025d09"}} or with "manufacturer": {"1177": "05..."}, bytes as hex'
)


def tried_lines(
    profile: Profile, samples: Sequence[bytes], *, topic: str | None, home: Household | None, now_ms: int
) -> tuple[tuple[str, ...], bool]:
    """(lines for the owner, whether every sample was read without trouble).

    Parameters
    ----------
    samples : sequence of bytes
        Payloads in the order they would come.
    topic : str or None
        Where they come; a radio profile has none.
    home : Household or None
        Whose wall clocks are meant.

    Raises
    ------
    ConfigError
        A sample cannot be one at all: no topic, a topic that the profile doesn't take, no advertisement.
    """
    known = home is not None and bool(home.zones)
    place = home if home is not None and known else Household(zones=(ZonePeriod("UTC", 0),))
    lines = [] if known else ["No home is entered, so its wall clock is taken to be UTC."]
    before: Trial | None = None
    is_read = True
    for number, payload in enumerate(samples, start=1):
        at_ms = now_ms + (number - 1 - len(samples)) * _APART_MS
        message = _message(profile, payload, topic=topic, at_ms=at_ms)
        tried = try_message(profile, message, zones=place.zones, before=before)
        before = tried
        is_read = is_read and not tried.troubles and tried.opened > 0
        many = "1 row" if len(tried.rows) == 1 else f"{len(tried.rows)} rows"
        lines.append(f"Message {number} on {message.via}, {len(payload)} bytes: {many}")
        lines += [f"  {line}" for line in _told(profile, tried, place)]
    return tuple(lines), is_read


def _told(profile: Profile, tried: Trial, home: Household) -> Iterator[str]:
    for row in tried.rows:
        yield f"{row.kind.replace('_', ' ').capitalize()}, {when(row.start_ms, home)} ({row.dating})"
        declared = EVENT_FIELDS[row.kind]
        yield from (f"  {one.name}: {_value(one, value)}" for one, value in zip(declared, row.fields, strict=False))
        yield from (f"  as sent: {value}" for value in row.fields[len(declared) :])
        yield f"  sender: {row.device}; reference: {row.ref.text}"
        if row.set_aside is not None:
            yield f"  not counted: {row.set_aside}"
    for reason, detail in tried.troubles:
        yield f"Could not be read ({reason}): {detail}"
    if tried.foreign:
        yield f"{tried.foreign} of another device: what match.require names is missing ({_required(profile)})"
    if tried.silent:
        yield (
            f"{tried.silent} read without a row: no [[event]] is about it, a counter needs a message before it, or "
            "nothing changed; give the message before with a --payload of its own"
        )
    if not (tried.opened or tried.foreign or tried.troubles):
        yield "It holds no item"


def _value(one: EventField, value: int | str) -> str:
    if value == one.unknown:
        return "not known"
    if isinstance(value, int) and one.unit in _SPOKEN:
        return amount(value, one.unit)
    return f"{value} {one.unit}"


def _required(profile: Profile) -> str:
    return ", ".join(profile.match.require) or "nothing"


def _message(profile: Profile, payload: bytes, *, topic: str | None, at_ms: int) -> Message:
    if profile.transport == "ble":
        return _heard(payload, at_ms)
    if topic is None:
        raise ConfigError(f"a sample must be given --topic, such as {profile.match.topics[0]}")
    if topic_names(profile, topic) is None:
        taken = ", ".join(profile.match.topics)
        raise ConfigError(f"--topic must be one that the profile takes ({taken}), is {topic!r}")
    return Message("mqtt", topic, at_ms, at_ms, payload)


def _heard(payload: bytes, at_ms: int) -> Message:
    try:
        told = json.loads(payload)
        heard = advertisement(
            told["address"],
            rssi=told.get("rssi"),
            name=told.get("name"),
            manufacturer={int(key): bytes.fromhex(text) for key, text in told.get("manufacturer", {}).items()},
            service={key: bytes.fromhex(text) for key, text in told.get("service", {}).items()},
        )
    except PayloadError as problem:
        raise ConfigError(f"{_RADIO}; {problem}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ConfigError(f"{_RADIO}; is {payload[:60]!r} ({type(problem).__name__}: {problem})") from None
    return Message(TRANSPORT, heard.address.replace(":", "").lower(), at_ms, at_ms, pack(heard))
