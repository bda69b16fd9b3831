"""Reads other people's devices: bytes and a profile in, dated rows and dead letters out. Pure.

Reading takes two steps. `open_message` needs nothing but the profile: which items a message holds,
whose they are and by what each is known when it comes again. `derive` needs what the profile
remembers of the sender (counters, merged state, the packet counter, a load cell's stream) and
gives rows and the new memory; nothing is changed in place, so that an item that cannot be read
leaves no trace but its dead letter.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from firmware_bridge import wire
from gateway.errors import PayloadError
from gateway.links.advertised import decode_advertisement
from gateway.links.codecs import decode, field_at, is_present, plain_text
from gateway.links.instants import date_row
from gateway.links.payloads import eaten_too_fast
from gateway.links.profile import EventRule, Profile, Template
from gateway.links.quantities import Quantity, holds, quantity
from gateway.links.streams import feed
from gateway.model import RecordRef, ZonePeriod
from gateway.stored import EVENT_FIELDS, DatedFrame

__all__ = [
    "Derived",
    "Item",
    "Message",
    "Opened",
    "ReplyMessage",
    "Trouble",
    "derive",
    "filled",
    "open_message",
    "source_id",
    "topic_names",
]

State = dict[str, Any]
_PLAIN_ID = re.compile(r"[a-z0-9_-]{1,40}\Z")
_KEPT_IN_REF = re.compile(r"[^A-Za-z0-9_.@+~-]+")
_REF_LONGEST = 60
_PACKET_MS = 4_000
"""BTHome: within four seconds an equal or older packet id is the same packet, heard again."""
_MAIN = {
    "meal": "removed",
    "refill": "added",
    "weight": "weight",
    "temperature": "temperature",
    "beat": "battery",
    "plateau": "weight",
    "litter": "lasted",
    "dispensed": "portions",
    "movement": "moves",
}
"""The main figure of a kind."""
_MOST_ITEMS = 5_000
"""A litter box's whole year is 1,500; each item costs the one writer half a millisecond."""
_HEAVIEST_MG = 160_000_000
_CLOCK_SET_MS = 60_000


@dataclass(frozen=True, slots=True)
class Message:
    """What was heard: ``via`` is its topic (or radio device), ``first_ms`` its first arrival."""

    transport: str
    via: str
    received_ms: int
    first_ms: int
    payload: bytes
    retained: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a message tells. ``key`` is None where nothing but its arrival names it."""

    source: str
    key: str | None
    fields: Any
    signal: int | None
    occurrence: int = 0


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a message, or an item of it, could not be read."""

    reason: str
    detail: str
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The items of a message; ``foreign`` counts those that are not of this profile's device."""

    items: tuple[Item, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    foreign: int = 0


@dataclass(frozen=True, slots=True)
class ReplyMessage:
    """What is published once a message is stored."""

    topic: str
    fields: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True, slots=True)
class Derived:
    """What an item makes: rows (whose device is still the sender), the new memory, and rows of
    before whose clock turns out to have been wrong, as (reference, by how many ms).
    """

    rows: tuple[DatedFrame, ...] = ()
    state: State = field(default_factory=dict)
    moved: tuple[tuple[str, int], ...] = ()
    again: bool = False
    rejected: int = 0


def source_id(text: str) -> str:
    """What a sender is called: its own word where that fits, else letters of it and a digest.

    One spelling of a name is one sender: composed (NFC), trimmed, lower case.
    """
    name = unicodedata.normalize("NFC", text).strip().lower()
    if _PLAIN_ID.match(name):
        return name
    packed = name.replace(":", "")
    if re.fullmatch(r"[0-9a-f]{12}", packed):  # a radio address, as our own radio writes it
        return packed
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    letters = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:24]
    return f"{letters}{'-' if letters else ''}{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def filled(template: Template, fields: Any) -> str:
    """A template with its fields put in.

    Raises
    ------
    PayloadError
        ``missing_field``: one of them is not there.
    """
    pieces = [template.texts[0]]
    for path, text in zip(template.paths, template.texts[1:], strict=True):
        found = plain_text(field_at(fields, path))
        if found is None or found == "":
            raise PayloadError("missing_field", f"{path} must be there, is absent")
        pieces += [found, text]
    return "".join(pieces)


def open_message(profile: Profile, message: Message) -> Opened:
    """The items a message holds; never raises for its bytes."""
    try:
        outer, topic = _read(profile, message)
        found = [outer] if profile.items is None else _listed(outer, profile.items)
    except PayloadError as problem:
        return Opened(troubles=(Trouble(problem.reason, str(problem)),))
    items: list[Item] = []
    troubles: list[Trouble] = []
    foreign = 0
    for each in found:
        try:
            item = _item(profile, message, each, topic, outer)
        except PayloadError as problem:
            own = None if profile.items is None else json.dumps(each, ensure_ascii=False, default=str).encode()
            troubles.append(Trouble(problem.reason, str(problem), own))
            continue
        if item is None:
            foreign += 1
        else:
            items.append(item)
    return Opened(_told_apart(items) if profile.items is not None else tuple(items), tuple(troubles), foreign)


def _read(profile: Profile, message: Message) -> tuple[Any, dict[str, str]]:
    if profile.transport == "ble":
        return decode_advertisement(profile, message.payload), {}
    return decode(profile, message.payload), topic_names(profile, message.via) or {}


def topic_names(profile: Profile, topic: str) -> dict[str, str] | None:
    """The named levels of a topic that a profile takes, or None where it takes none such."""
    levels = topic.split("/")
    for wanted in profile.match.topics:
        parts = wanted.split("/")
        if len(parts) == len(levels) and all(
            part.startswith("{") or part == level for part, level in zip(parts, levels, strict=True)
        ):
            return {part[1:-1]: level for part, level in zip(parts, levels, strict=True) if part.startswith("{")}
    return None


def _listed(outer: Any, path: str) -> list[Any]:
    found = outer if path == "." else field_at(outer, path)
    if not isinstance(found, list):
        raise PayloadError("missing_field", f"{path} must be a list of items, is {type(found).__name__}")
    if len(found) > _MOST_ITEMS:
        raise PayloadError("too_many", f"{path} must hold at most {_MOST_ITEMS} items, holds {len(found)}")
    return found


def _item(profile: Profile, message: Message, each: Any, topic: dict[str, str], outer: Any) -> Item | None:
    """An item with its sender and key; None where it is not of this profile's device."""
    if not isinstance(each, dict):
        raise PayloadError("not_a_map", f"an item must be a map of named values, is {type(each).__name__}")
    fields = {**each, "topic": topic}
    if profile.items is not None and isinstance(outer, dict):
        fields["message"] = {name: value for name, value in outer.items() if not isinstance(value, list)}
    if not all(is_present(fields, path) for path in profile.match.require):
        return None
    source = message.via if profile.source is None else source_id(filled(profile.source, fields))
    signal = None if profile.signal is None else field_at(fields, profile.signal)
    return Item(
        source=source,
        key=_key(profile.keys, fields),
        fields=fields,
        signal=signal if isinstance(signal, int) and not isinstance(signal, bool) and -200 < signal < 50 else None,
    )


def _key(keys: tuple[Template, ...], fields: Any) -> str | None:
    for template in keys:
        try:
            return filled(template, fields)
        except PayloadError:
            if template is keys[-1]:
                raise
    return None


def _told_apart(items: list[Item]) -> tuple[Item, ...]:
    """Items of one list under one key are not the same: nobody lists a thing twice."""
    seen: dict[tuple[str, str | None], int] = {}
    found = []
    for item in items:
        at = seen.get((item.source, item.key), 0)
        seen[item.source, item.key] = at + 1
        key = item.key if item.key is None or at == 0 else f"{item.key}~{at + 1}"
        found.append(Item(item.source, key, item.fields, item.signal, at))
    return tuple(found)


# --- rows ----------------------------------------------------------------------------------------


def derive(
    profile: Profile, item: Item, message: Message, *, key: str, state: State, zones: tuple[ZonePeriod, ...]
) -> Derived:
    """What an item makes, given what the profile remembers of its sender.

    Parameters
    ----------
    key : str
        The item's own key, or one made of its arrival.
    state : dict
        As JSON; not changed.

    Raises
    ------
    PayloadError
        A value the item must have is missing or cannot be.
    """
    after = copy.deepcopy(state)
    if profile.packet_id is not None and not _fresh_packet(profile, item, message, after):
        return Derived(state=after, again=True)
    if profile.stream is not None:
        streamed = feed(profile.stream, item.fields, at_ms=message.first_ms, state=after)
        stems = [
            _row(
                profile,
                item,
                message,
                key=f"@{found.at_ms}",
                name=found.kind,
                kind=found.kind,
                values=found.values,
                start_ms=found.start_ms,
                end_ms=found.end_ms,
                dating="received",
            )
            for found in streamed.events
        ]
        return Derived(rows=tuple(stems), state=after, rejected=streamed.rejected)
    fields = _merged(profile, item.fields, after)
    rows = []
    for rule in profile.events:
        if holds(rule.when, fields):
            row = _ruled(profile, rule, item, fields, message, key=key, state=after, zones=zones)
            if row is not None:
                rows.append(row)
    moved = _clock_moved(profile, fields, rows, message, after)
    if moved:
        by_ms = moved[0][1]
        shifted = {ref for ref, _ in moved}
        rows = [row for row in rows if row.ref.text not in shifted or by_ms == 0]
    return Derived(rows=tuple(rows), state=after, moved=moved)


def _fresh_packet(profile: Profile, item: Item, message: Message, state: State) -> bool:
    """BTHome's rule: within four seconds only a newer packet id is another packet."""
    number = field_at(item.fields, profile.packet_id or "")
    if not isinstance(number, int) or isinstance(number, bool):
        return True
    last = state.get("packet")
    if last is not None and message.first_ms - last[1] <= _PACKET_MS and not 0 < (number - last[0]) % 256 < 128:
        return False
    state["packet"] = [number, message.first_ms]
    return True


def _merged(profile: Profile, fields: Any, state: State) -> Any:
    """Of a sparse message: what it says, over what was said before; a null says nothing."""
    if profile.merge is None or not holds(profile.merge, fields):
        return fields
    passing = {path.partition(".")[0] for template in profile.keys for path in template.paths} | {
        clock.path.partition(".")[0] for rule in profile.events for clock in rule.clocks
    }
    known = state.setdefault("merged", {})
    wanted = _looked_at(profile)  # what no rule reads is not kept: a device may make up names without end
    for name, value in fields.items():
        text = plain_text(value)
        if text is not None and name not in passing and name in wanted:
            known[name] = value if isinstance(value, bool | int | str) else text
    return {**known, **{name: fields.get(name) for name in ("topic", "message", *passing)}}


@lru_cache(maxsize=256)
def _looked_at(profile: Profile) -> frozenset[str]:
    """The names at the top of a message that rules of a profile look at."""
    conditions = [rule.when for rule in profile.events] + [one for one in (profile.merge, profile.set_by) if one]
    paths = [path for condition in conditions for path, _ in condition.wanted]
    for rule in profile.events:
        paths += [path for _, value in rule.values for _, path in value.terms]
        paths += [*rule.keep, *(() if rule.about is None else (rule.about,))]
    return frozenset(path.partition(".")[0] for path in paths)


def _ruled(
    profile: Profile,
    rule: EventRule,
    item: Item,
    fields: Any,
    message: Message,
    *,
    key: str,
    state: State,
    zones: tuple[ZonePeriod, ...],
) -> DatedFrame | None:
    """The row of one rule, or None where there is no news or the device does not know."""
    counted = state.setdefault("counters", {})
    found: dict[str, Quantity] = {}
    specs = dict(rule.values)
    for each in EVENT_FIELDS[rule.kind]:
        if each.name in specs:
            value = quantity(specs[each.name], fields, each.unit, name=f"{rule.name}.{each.name}", counted=counted)
            found[each.name] = value if value.stored is not None else Quantity(each.unknown)
        else:
            found[each.name] = Quantity(each.unknown)
    if any(value.stored is None for value in found.values()):
        return None
    counters = [found[name].stored for name, value in rule.values if value.counter is not None]
    if counters and not any(counters):
        return None
    values: tuple[int | str, ...] = tuple(value.stored for value in found.values() if value.stored is not None)
    values += tuple(f"{path}={plain_text(field_at(fields, path))}" for path in rule.keep if is_present(fields, path))
    if rule.changed:
        before = state.setdefault("changed", {}).get(rule.name)
        state["changed"][rule.name] = list(values)
        if before == list(values):
            return None
    live = profile.replay != "history"
    dated = date_row(
        rule.clocks, fields, received_ms=message.received_ms, zones=zones, occurrence=item.occurrence, live=live
    )
    lasted_ms = found["lasted"].stored or 0 if "lasted" in found else 0
    if not 0 <= lasted_ms <= 86_400_000:
        raise PayloadError("bad_value", f"{rule.name} must last from 0 ms to a day, lasts {lasted_ms} ms")
    start_ms = dated.at_ms - lasted_ms if rule.at_end else dated.at_ms
    shift_ms = start_ms - dated.at_ms
    return _row(
        profile,
        item,
        message,
        key=key,
        name=rule.name,
        kind=rule.kind,
        values=values,
        start_ms=start_ms,
        end_ms=start_ms + lasted_ms,
        dating=dated.dating,
        earliest_ms=None if dated.earliest_ms is None else dated.earliest_ms + shift_ms,
        latest_ms=None if dated.latest_ms is None else dated.latest_ms + shift_ms,
        about=None if rule.about is None else plain_text(field_at(fields, rule.about)),
        aside="; ".join(value.aside for value in found.values() if value.aside) or None,
        timed="lasted" in specs,
    )


def _row(
    profile: Profile,
    item: Item,
    message: Message,
    *,
    key: str,
    name: str,
    kind: str,
    values: tuple[int | str, ...],
    start_ms: int,
    end_ms: int,
    dating: str,
    earliest_ms: int | None = None,
    latest_ms: int | None = None,
    about: str | None = None,
    aside: str | None = None,
    timed: bool = False,
) -> DatedFrame:
    fields = EVENT_FIELDS[kind]
    amount, unit = None, None
    for at, each in enumerate(fields):
        if each.name == _MAIN.get(kind) and not (
            each.unknown is not None and kind == "beat" and values[at] == each.unknown
        ):
            amount, unit = int(values[at]), each.unit
    return DatedFrame(
        ref=RecordRef(f"event:{item.source}/{profile.family}/{_in_ref(key)}.{name}"),
        device=item.source,
        boot=None,
        seq=None,
        kind=kind,
        uptime_ms=None,
        received_ms=message.received_ms,
        start_ms=start_ms,
        end_ms=end_ms,
        dating=dating,
        fields=values,
        earliest_ms=earliest_ms,
        latest_ms=latest_ms,
        amount=amount,
        unit=unit,
        object=None if about is None else about[:80],
        set_aside=aside or _aside(kind, values, timed=timed),
    )


def _in_ref(key: str) -> str:
    """A key as it stands in a reference: short, and without anything a path could trip over."""
    plain = _KEPT_IN_REF.sub("-", key)
    if plain == key and len(key) <= _REF_LONGEST:
        return key
    return f"{plain[:32]}~{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _aside(kind: str, values: tuple[int | str, ...], *, timed: bool) -> str | None:
    """Why a row is kept but never counted. Only what is ``timed`` can be too fast: a device that does not
    tell how long a meal took is not one that saw it take no time.
    """
    if kind == "weight" and not 0 < int(values[0]) <= _HEAVIEST_MG:
        return f"{int(values[0]) / 1e6:.6g} kg is no pet's weight; not counted"
    if kind == "meal":
        removed_mg, lasted_ms = int(values[2]), int(values[1])
        if removed_mg < 0:
            return f"the bowl gained {-removed_mg / 1000:.3g} g during a visit; not counted as eaten"
        if int(values[3]) & wire.TOO_FAST:
            return f"{round(removed_mg / 1000)} g left the bowl in {round(lasted_ms / 1000)} s; not counted as eaten"
        return eaten_too_fast(removed_mg, lasted_ms) if timed else None
    return None


def _clock_moved(
    profile: Profile, fields: Any, rows: list[DatedFrame], message: Message, state: State
) -> tuple[tuple[str, int], ...]:
    """Rows that were dated by a device's clock before it was set, with how far they move.

    The device says when its clock is set (``clock.set_by``). Before, each row tells how far its
    clock was behind the hub's; the least of it is what the way took and the clock's own error.
    The first row after tells what the way takes alone.
    """
    if profile.set_by is None:
        return ()
    clock = state.setdefault("clock", {"rows": [], "behind_ms": None, "set": False})
    told = [row for row in rows if row.dating == "wall"]
    if not told:
        if holds(profile.set_by, fields):
            clock["set"] = True
        return ()
    behind_ms = min(message.received_ms - row.end_ms for row in told)
    if clock["set"]:
        before_ms, refs = clock["behind_ms"], clock["rows"]
        state["clock"] = {"rows": [row.ref.text for row in told], "behind_ms": behind_ms, "set": False}
        by_ms = 0 if before_ms is None else before_ms - behind_ms
        return tuple((ref, by_ms) for ref in refs) if abs(by_ms) > _CLOCK_SET_MS else ()
    clock["rows"] = [*clock["rows"], *(row.ref.text for row in told)][-_MOST_MOVED:]
    clock["behind_ms"] = behind_ms if clock["behind_ms"] is None else min(clock["behind_ms"], behind_ms)
    if holds(profile.set_by, fields):
        clock["set"] = True
    return ()


_MOST_MOVED = 200
"""Rows of one device between two settings of its clock that are put right; a feeder sets it each day."""
