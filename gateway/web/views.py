"""What the pages say, as frozen values: a snapshot in, words and links out, no markup.

Each function reads one snapshot and answers one page's question. Templates only lay out
what stands here, so everything a page claims can be tested without a browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from firmware_bridge.wire import KINDS
from gateway.ask.battery import BatteryNow, battery_at
from gateway.ask.records import device_words, heading, open_record, period, pets_words, vertex_words, when
from gateway.ask.wording import amount, day
from gateway.model import Device, Household, Pet, PetStatus, Record, RecordRef
from gateway.ontology.load import load
from gateway.store.reads import Reader
from gateway.stored import EVENT_FIELDS
from gateway.web.headline import Headline, headline
from gateway.web.notices import NoticeCard, Said, notice_cards, said_of

__all__ = [
    "CounterLine",
    "DayLinks",
    "DeviceLine",
    "DevicePage",
    "FrontPage",
    "LinkTo",
    "MarkLine",
    "PetCard",
    "RecordPage",
    "Replacement",
    "Sources",
    "dead_letter_lines",
    "device_page",
    "front_page",
    "hypothesis_words",
    "link_to",
    "mark_lines",
    "near_lines",
    "record_href",
    "record_page",
    "sources",
]

_LATEST_MS = 2**62
_DEVICE_EVENTS = 30
"""A device's page shows its latest events, not a day's three hundred movement reports."""
_RECENT_ANSWERS = 5
_DEVICE_LOOKBACK_MS = 90 * 86_400_000
_QUIET_KINDS = frozenset({"motion", "beat", "mark_request", "movement"})
_KINDS = dict.fromkeys((*(kind.name for kind in KINDS.values()), *EVENT_FIELDS))
_EVENT_KINDS = tuple(name for name in _KINDS if name not in _QUIET_KINDS)
_RAW_BYTES_SHOWN = 48

_EXAMPLES = (
    ("scratch", "Why is {name} scratching more this week?"),
    ("intake", "Is {name} eating less than usual?"),
    ("meals", "When did {name} last eat?"),
    ("rest", "How much did {name} rest this week?"),
)

_COUNTER_WORDS = {
    "messages": "messages heard",
    "dead_letters": "records that could not be read",
    "dead_letters_read": "records that could not be read until their profile was mended",
    "records_stored": "records stored",
    "records_known": "records that came again and were stored once",
    "records_redated": "records placed in time anew once their device's clock was known",
    "records_unbound": "records of a device that was bound to no pet",
    "dropped_by_device": "records a device had to drop before the hub heard them",
    "retained_events": "messages left over from before the hub started",
    "profile_ignored": "messages of devices that nobody asked for",
    "profile_unchanged": "messages of other makers' devices that said nothing new",
    "profile_overlaps": "messages that more than one profile would have read",
    "strangers_refused": "messages of unknown senders that were not kept: 256 others are remembered already",
    "samples_set_aside": "readings of a scale that made no sense between their neighbours",
}


@dataclass(frozen=True, slots=True)
class LinkTo:
    """Words and where they lead."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """A device as listed: what it is, whose, when it was last heard, how full its battery was."""

    name: str
    href: str
    kind: str
    pets: str
    heard: str
    battery: str | None


@dataclass(frozen=True, slots=True)
class CounterLine:
    """One counter of the gateway; everything dropped or set aside has such a line."""

    words: str
    value: int
    href: str | None = None


@dataclass(frozen=True, slots=True)
class PetCard:
    """A pet's headline, what was noticed beside it, and the ways on from it."""

    name: str
    about: str
    learning: str
    headline: Headline
    said: tuple[Said, ...]
    trends: tuple[LinkTo, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """The question whether a sender is a known device under another address; ``pets`` are the answers "no, of ..."."""

    text: str
    device: str
    old: str
    pets: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FrontPage:
    """The first page: what must be told, question box, pets, devices, what was counted and asked before."""

    notices: tuple[NoticeCard, ...]
    examples: tuple[str, ...]
    pets: tuple[PetCard, ...]
    devices: tuple[DeviceLine, ...]
    counters: tuple[CounterLine, ...]
    recent: tuple[LinkTo, ...]
    as_of: str
    questions: tuple[Replacement, ...] = ()


@dataclass(frozen=True, slots=True)
class DevicePage:
    """Everything known of one device."""

    line: DeviceLine
    facts: tuple[tuple[str, str], ...]
    events: tuple[LinkTo, ...]
    cannot_see: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordPage:
    """A record with its marked part split out, and its parts as titled links."""

    record: Record
    lines: tuple[tuple[tuple[str, bool], ...], ...]
    parts: tuple[LinkTo, ...]
    wall: int | None


def record_href(ref: RecordRef) -> str:
    """The page of a record: ``#``, ``|`` and whatever else a path cannot hold are escaped."""
    return f"/record/{quote(ref.text, safe='/:')}"


def link_to(reader: Reader, ref: RecordRef) -> LinkTo:
    """A record's title, leading to its page."""
    return LinkTo(text=heading(reader, ref), href=record_href(ref))


# --- front page -------------------------------------------------------------------------------


def front_page(reader: Reader, *, now_ms: int) -> FrontPage:
    """The first page as of ``now_ms``."""
    home = reader.household()
    listed = {device.id for device in home.devices}
    strangers = tuple(Device(id=name, kind="unknown", name="") for name in reader.heard_devices() if name not in listed)
    return FrontPage(
        notices=notice_cards(reader, home),
        examples=_examples(reader, home),
        pets=tuple(_pet_card(reader, home, pet, now_ms=now_ms) for pet in home.pets),
        devices=tuple(_device_line(reader, home, device, now_ms=now_ms) for device in (*home.devices, *strangers)),
        counters=_counters(reader),
        recent=tuple(
            LinkTo(text=question, href=f"/answer/{number}")
            for number, _, question in reader.answers(limit=_RECENT_ANSWERS)
        ),
        as_of=when(now_ms, home),
        questions=_device_questions(reader, home),
    )


def _device_questions(reader: Reader, home: Household) -> tuple[Replacement, ...]:
    """Senders that may be a known device under another address: one question a device."""
    pets = tuple((pet.id, pet.name) for pet in home.pets if pet.status not in (PetStatus.DIED, PetStatus.GONE))
    return tuple(
        Replacement(
            f"A sender called {sender.id} was first heard {when(sender.first_ms, home)}, after "
            f"{device_words(sender.replaces, home)} fell silent. Is it a replacement of it?",
            sender.id,
            sender.replaces,
            pets,
        )
        for sender in reader.sources()
        if sender.replaces is not None
    )


def _examples(reader: Reader, home: Household) -> tuple[str, ...]:
    """Questions this home has the records for: one a property, about the pet that has it."""
    names = {pet.id: pet.name for pet in home.pets}
    found = {series.property: names[series.pet] for series in reader.all_series() if series.pet in names}
    return tuple(text.format(name=found[name]) for name, text in _EXAMPLES if name in found)


def _pet_card(reader: Reader, home: Household, pet: Pet, *, now_ms: int) -> PetCard:
    ontology = load()
    about = pet.breed or pet.species
    if pet.born is not None:
        about += f", born {day(pet.born)} {pet.born[:4]}"
    trends = tuple(
        LinkTo(
            text=ontology.properties[series.property].owner
            + ("" if series.pet == pet.id else f" ({pets_words(series.pet, home)} together)"),
            href=f"/series/{quote(series.id, safe='')}",
        )
        for series in reader.all_series()
        if pet.id in series.pet.split("+") and series.property in ontology.properties
        if reader.first_date(series.id) is not None  # a weight has readings, no days to draw
    )
    return PetCard(
        name=pet.name,
        about=about,
        learning=f"/learning/{quote(pet.id, safe='')}",
        headline=headline(reader, home, pet, now_ms=now_ms),
        said=said_of(reader, home, pet, now_ms=now_ms),
        trends=trends,
    )


def _counters(reader: Reader) -> tuple[CounterLine, ...]:
    stored = dict(reader.counters())
    waiting = sum(letter.read_by is None for letter in reader.dead_letters(limit=1))
    unread = max(stored.pop("dead_letters", 0) - stored.get("dead_letters_read", 0), waiting)
    return (
        CounterLine(words=_COUNTER_WORDS["dead_letters"], value=unread, href="/deadletters"),
        *(
            CounterLine(words=_COUNTER_WORDS.get(name, name.replace("_", " ").replace(".", ": ")), value=value)
            for name, value in sorted(stored.items())
        ),
    )


# --- devices ----------------------------------------------------------------------------------


def _kind_words(device: Device) -> str:
    kind = load().device_kinds.get(device.kind)
    return device.kind.replace("_", " ") if kind is None else kind.plain


def _device_line(reader: Reader, home: Household, device: Device, *, now_ms: int) -> DeviceLine:
    last = reader.last_frame(device.id, before_ms=now_ms + 1)
    battery = battery_at(reader, device.id, at_ms=now_ms)
    pets = sorted(home.bindings_at(device.id, now_ms))
    known = any(listed.id == device.id for listed in home.devices)
    return DeviceLine(
        name=device.name or device.id,
        href=f"/device/{quote(device.id, safe='')}",
        kind=_kind_words(device) if known else "not set up yet",
        pets=" or ".join(vertex_words(f"pet:{pet}", home, {}) for pet in pets) or "no pet",
        heard="never heard" if last is None else f"last heard {when(last.end_ms, home)}",
        battery=None if battery is None else _battery_words(battery),
    )


def _battery_words(battery: BatteryNow) -> str:
    return "battery not known" if battery.permille is None else f"battery {amount(battery.permille, 'permille')}"


def device_page(reader: Reader, device_id: str, *, now_ms: int) -> DevicePage | None:
    """A device's page, or None where it was neither set up nor ever heard."""
    home = reader.household()
    known = [device for device in home.devices if device.id == device_id]
    if not known and device_id not in reader.heard_devices():
        return None
    device = known[0] if known else Device(id=device_id, kind="unknown", name="")
    frames = reader.frames((device_id,), start_ms=now_ms - _DEVICE_LOOKBACK_MS, end_ms=now_ms + 1, kinds=_EVENT_KINDS)
    kind = load().device_kinds.get(device.kind)
    return DevicePage(
        line=_device_line(reader, home, device, now_ms=now_ms),
        facts=_device_facts(reader, home, device_id, now_ms=now_ms),
        events=tuple(link_to(reader, frame.ref) for frame in reversed(frames[-_DEVICE_EVENTS:])),
        cannot_see=() if kind is None else kind.cannot_see,
    )


def _device_facts(reader: Reader, home: Household, device_id: str, *, now_ms: int) -> tuple[tuple[str, str], ...]:
    facts: list[tuple[str, str]] = []
    hello = reader.last_frame(device_id, before_ms=now_ms + 1, kind="hello")
    if hello is not None:
        model, firmware, detector, _, _, dropped = hello.fields
        facts += [
            ("Model", str(model)),
            ("Firmware", f"{firmware}, detector {detector}"),
            ("Dropped before the hub heard them", f"{dropped} records"),
            ("Last started", when(hello.start_ms, home)),
        ]
    facts += [
        (f"Received without a gap, start {boot}", f"up to record {seq}")
        for boot, seq in list(reader.marks(device_id).items())[-3:]
    ]
    facts += [
        (
            f"Bound to {' or '.join(vertex_words(f'pet:{pet}', home, {}) for pet in sorted(binding.pets))}",
            period(binding.valid_from_ms or None, binding.valid_to_ms, home),
        )
        for binding in home.bindings
        if binding.device == device_id
    ]
    return tuple(facts)


def dead_letter_lines(reader: Reader, *, limit: int) -> tuple[tuple[str, str, str, str, str], ...]:
    """(when and from whom, reason, detail, first bytes as hex, which profile read it since or nothing) of the
    latest unreadable messages; those read since come last.
    """
    home = reader.household()
    lines = []
    for letter in reader.dead_letters(limit=limit):
        shown = letter.raw[:_RAW_BYTES_SHOWN].hex(" ")
        more = len(letter.raw) - _RAW_BYTES_SHOWN
        lines.append(
            (
                f"{when(letter.received_ms, home)}, {device_words(letter.device, home)} over {letter.transport}",
                letter.reason.replace("_", " "),
                letter.detail,
                f"{shown} and {more:,} bytes more" if more > 0 else shown,
                letter.read_by or "",
            )
        )
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class MarkLine:
    """An open "that's wrong": what it is about, why, since when, and its link where it is one."""

    number: int
    text: str
    href: str | None
    reason: str
    since: str


def hypothesis_words(name: str, home: Household, labels: Mapping[str, str]) -> str:
    """The owner's words for ``cause>sign@pet`` as `gateway.ask.causes.hypothesis` names it."""
    cause, _, rest = name.partition(">")
    sign, _, pet = rest.rpartition("@")
    words = [vertex_words(vertex, home, labels) for vertex in (cause, sign, pet)]
    return f"{words[0]} as the reason for {words[1]} in {words[2]}"


def mark_lines(reader: Reader) -> tuple[MarkLine, ...]:
    """Every mark of the owner's that stands, newest first."""
    home, labels = reader.household(), reader.vertex_labels()
    return tuple(
        MarkLine(
            number=number,
            text=hypothesis_words(name or "", home, labels) if edge is None else heading(reader, RecordRef(edge)),
            href=None if edge is None else record_href(RecordRef(edge)),
            reason=reason,
            since=when(marked_ms, home),
        )
        for number, edge, name, reason, marked_ms in reversed(reader.walls(at_ms=_LATEST_MS))
    )


NearLine = tuple[str, str, tuple[RecordRef, ...]]


def near_lines(reader: Reader, near_misses: tuple[NearLine, ...]) -> tuple[NearLine, ...]:
    """What came close and did not join, in an owner's words: (what, why not, records).

    A thing of the graph is named as the home names it, and its masses and costs stay with
    ``--explain`` and the JSON: no owner weighs them.
    """
    home, labels, kinds = reader.household(), reader.vertex_labels(), load().vertex_kinds
    return tuple(
        (vertex_words(what, home, labels), "near the question, too weakly joined to be part of the answer", refs)
        if ":" in what and what.partition(":")[0] in kinds
        else (what, reason, refs)
        for what, reason, refs in near_misses
    )


# --- what a sentence stands on ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DayLinks:
    """The days of one series that a claim cites: those it speaks of, and those it compares with."""

    series: LinkTo
    days: tuple[LinkTo, ...]
    compared: tuple[LinkTo, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """A claim's records: single ones by title, days of a series as one line each."""

    single: tuple[LinkTo, ...]
    series: tuple[DayLinks, ...]


def sources(reader: Reader, refs: tuple[RecordRef, ...], window: tuple[str, str] | None) -> Sources:
    """Every record of a claim as links; a comparison cites some sixty days a series."""
    home = reader.household()
    by_series: dict[str, list[RecordRef]] = {}
    for ref in refs:
        if ref.kind == "day":
            by_series.setdefault(ref.key.rpartition("/")[0], []).append(ref)
    lines = []
    for series, cited in by_series.items():
        days = [(ref.key.rpartition("/")[2], ref) for ref in sorted(cited)]
        inside = [date for date, _ in days if window is None or window[0] <= date <= window[1]]
        links = {date: LinkTo(day(date), record_href(ref)) for date, ref in days}
        lines.append(
            DayLinks(
                series=LinkTo(vertex_words(f"series:{series}", home, {}), f"/series/{quote(series, safe='')}"),
                days=tuple(links[date] for date in inside),
                compared=tuple(link for date, link in links.items() if date not in inside),
            )
        )
    single = tuple(link_to(reader, ref) for ref in refs if ref.kind != "day")
    return Sources(single=single, series=tuple(lines))


# --- records ----------------------------------------------------------------------------------


def _split(line: str, marks: list[tuple[int, int]]) -> tuple[tuple[str, bool], ...]:
    """A line as (text, marked) pieces."""
    pieces, at = [], 0
    for start, end in sorted(marks):
        pieces += [(line[at:start], False), (line[start:end], True)]
        at = end
    pieces.append((line[at:], False))
    return tuple(piece for piece in pieces if piece[0])


def record_page(reader: Reader, ref: RecordRef) -> RecordPage:
    """A record's page.

    Raises
    ------
    UnknownRecord
        Nothing is stored under the reference.
    """
    record = open_record(reader, ref)
    walls = [number for number, edge, _, _, _ in reader.walls(at_ms=_LATEST_MS) if edge == ref.text]
    return RecordPage(
        record=record,
        lines=tuple(
            _split(line, [(start, end) for at, start, end in record.marks if at == number])
            for number, line in enumerate(record.lines)
        ),
        parts=tuple(link_to(reader, part) for part in record.parts),
        wall=walls[0] if walls else None,
    )
