"""Opens a citation: a reference and a snapshot in, the stored thing itself out, as words.

Whatever an answer cites is shown as it is stored, in an owner's units and words: a device's
event with every value it carried, a day with the events it was counted from, a label or
guide passage whole with the cited part marked, a note verbatim, a link of the graph with
everything that supports it. Nothing is interpreted here, and nothing is left out because
it looks bad. The page and ``scentwalk record`` show the same `Record`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firmware_bridge.wire import BATTERY_UNKNOWN, KINDS, TEMPERATURE_MOVED, TOO_FAST, UNSETTLED, ZERO_DOUBTFUL
from gateway.ask.graves import grave_of
from gateway.ask.sources import written_by
from gateway.ask.wording import amount, clock_time, day, first_upper, joined
from gateway.errors import UnknownRecord
from gateway.graph.belief import DISAGREEMENT, fold
from gateway.measure.days import HOUR_MS, SLOT_MS, local_clock
from gateway.model import Device, Edge, Household, Interval, Link, Record, RecordRef
from gateway.ontology.load import load
from gateway.ontology.vocabulary import Property
from gateway.store.reads import Reader
from gateway.stored import EVENT_FIELDS, DatedFrame, DayRow, TextRecord

__all__ = [
    "day_figure",
    "device_words",
    "heading",
    "link_sentence",
    "open_record",
    "period",
    "pets_words",
    "record_text",
    "relation_words",
    "stored_link",
    "support",
    "vertex_words",
    "when",
]

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_EVENT_WORDS = {
    "hello": "Start-up report",
    "beat": "Sign of life",
    "meal": "Visit to the bowl",
    "refill": "Refill",
    "food_set": "Food chosen for the bowl",
    "motion": "Movement",
    "weight": "Weight",
    "temperature": "Temperature",
    "tare": "Zero pressed",
    "mark_request": "Receipt asked for",
    "plateau": "Raw weight",
    "litter": "Visit to the litter box",
    "dispensed": "Portions from the feeder",
    "dispensing": "Feeder started",
    "movement": "Movements",
    "state": "State told",
}

_FIELD_WORDS = {
    "removed": "left the bowl",
    "added": "put into the bowl",
    "lasted": "lasted",
    "low": "gently active",
    "mid": "active",
    "high": "very active",
    "shake": "shaking the head",
    "scratch": "scratching",
    "rest": "lying still",
    "restless": "restless",
    "worn": "worn",
    "code": "product code",
    "text": "name given",
    "detector": "detector version",
    "lowest_seq": "oldest record it still held",
    "dropped": "records it had to drop",
    "slots": "records it can hold",
    "moves": "times moved",
}

_QUALITY_WORDS = (
    (UNSETTLED, "the reading had not settled"),
    (TEMPERATURE_MOVED, "the temperature moved"),
    (ZERO_DOUBTFUL, "the zero was doubtful"),
    (TOO_FAST, "it fell faster than a pet eats"),
)

_STATE_WORDS = {
    "worn": {0: "no", 1: "yes", 2: "not a thing one wears, or not known"},
    "charging": {0: "no", 1: "yes"},
    "used": {0: "no", 1: "yes", 2: "not known"},
}

_DATING_WORDS = {
    "wall": "the device's own clock",
    "offset": "the device's running time, placed by the hub when it was heard",
    "import": "the imported file",
    "corrected": "the device's own clock, put right once it was set",
    "received": "when it reached the hub; the device tells no time",
    "doubtful": "the device's own clock, which showed a time that never was",
}

_LISTED_KINDS = ("meal", "refill", "weight", "litter", "dispensed")
"""Kinds listed one by one under a day; a day of movement has hundreds and is shown by the hour."""

_SHOWN_AS_MARK = {("label", "from"), ("label", "to")}

_WELL_SUPPORTED = 0.9
"""Belief from which two or more witnesses are called "well supported": a tracker (0.8) and a
guide (0.6) that agree reach 0.92, two passages of hearsay do not."""

_LATEST_MS = 2**62
"""Later than any instant: the walls that stand now."""

_RAW_SHOWN = 400
_FIELDS = {**EVENT_FIELDS, **{kind.name: kind.fields for kind in KINDS.values()}}
_KIND_NAMES = {kind.code: kind.name for kind in KINDS.values()}


def when(at_ms: int, home: Household) -> str:
    """An instant on the home's wall: "Wed Jul 8 2026, 07:10"."""
    local = local_clock(at_ms, home.zones)
    return f"{_WEEKDAYS[local.weekday()]} {day(local.date().isoformat())} {local.year}, {clock_time(local)}"


def _from_to(start_ms: int, end_ms: int, home: Household) -> str:
    """Two instants as "Wed Jul 8 2026, 07:10 to 07:14"."""
    if end_ms - start_ms < 60_000:
        return when(start_ms, home)
    first, last = local_clock(start_ms, home.zones), local_clock(end_ms, home.zones)
    ends = clock_time(last) if first.date() == last.date() else when(end_ms, home)
    return f"{when(start_ms, home)} to {ends}"


def device_words(device_id: str, home: Household) -> str:
    """What an owner calls a device: its own name, else its kind and id."""
    for device in home.devices:
        if device.id == device_id:
            return device.name or f"{_plain(device)} {device.id}"
    return device_id


def _plain(device: Device) -> str:
    kind = load().device_kinds.get(device.kind)
    return device.kind.replace("_", " ") if kind is None else kind.plain


def vertex_words(name: str, home: Household, labels: Mapping[str, str]) -> str:
    """What an owner calls a vertex: the household's name, the stored label, else its id."""
    kind, _, key = name.partition(":")
    named: Sequence[tuple[str, str]] = {
        "pet": tuple((pet.id, pet.name) for pet in home.pets),
        "device": tuple((device.id, device.name) for device in home.devices),
        "food": tuple((food.id, food.name) for food in home.foods),
        "med": tuple((food.id, food.name) for food in home.medicines),
        "place": tuple((place.id, place.name) for place in home.places),
        "person": tuple((person.id, person.name) for person in home.people),
    }.get(kind, ())
    for known, words in named:
        if known == key and words:
            return words
    if name in labels:
        return labels[name]
    ontology = load()
    if kind == "sign" and key in ontology.signs:
        return ontology.signs[key].word
    if kind == "series":
        pet, _, noun = key.partition(".")
        return f"{pets_words(pet, home)}: {_noun_words(noun)}"
    return key.replace("_", " ")


def pets_words(pets: str, home: Household) -> str:
    """Whose a series is: a pet's name, or all names of a shared device's (``luna+max``)."""
    return joined([vertex_words(f"pet:{pet}", home, {}) for pet in pets.split("+")])


def _noun_words(noun: str) -> str:
    observed = _property(noun)
    return noun.replace("_", " ") if observed is None else observed.owner


def _property(noun: str) -> Property | None:
    try:
        return load().property_of_noun(noun)
    except KeyError:
        return None


# --- events -----------------------------------------------------------------------------------


def _value(name: str, value: int | str, unit: str) -> str:
    if isinstance(value, str):
        return value or "none given"
    if name in _STATE_WORDS and unit == "state":
        return _STATE_WORDS[name].get(value, str(value))
    if name == "quality":
        spoiled = [words for bit, words in _QUALITY_WORDS if value & bit]
        return joined(spoiled) if spoiled else "clean"
    if name == "battery" and value == BATTERY_UNKNOWN:
        return "not known"
    if unit in {"mg", "ms", "permille", "mK"}:
        return amount(value, unit)
    return f"{value:,}"


def _field_lines(frame: DatedFrame) -> list[str]:
    """Every value the device sent, named. Imported rows may carry other fields: their main figure."""
    declared = _FIELDS.get(frame.kind, ())
    more = frame.fields[len(declared) :]
    if len(declared) > len(frame.fields) or not all(isinstance(value, str) for value in more):
        figure = [] if frame.amount is None or frame.unit is None else [f"Amount: {amount(frame.amount, frame.unit)}"]
        return figure + [f"As imported: {value}" for value in frame.fields]
    return [
        f"{first_upper(_FIELD_WORDS.get(field.name, field.name.replace('_', ' ')))}: "
        + _value(field.name, value, field.unit)
        for field, value in zip(declared, frame.fields, strict=False)
        if field.name not in ("began", "began_ms")  # said as the event's own time
        and (field.name != "lasted" or value)  # 0: the device does not tell how long
    ] + [f"As sent: {value}" for value in more]


def _dating(frame: DatedFrame, home: Household) -> str:
    if frame.dating == "bracket" and frame.earliest_ms is not None and frame.latest_ms is not None:
        return (
            "Time from: not known exactly; it lies between "
            f"{when(frame.earliest_ms, home)} and {when(frame.latest_ms, home)}"
        )
    return f"Time from: {_DATING_WORDS.get(frame.dating, frame.dating)}"


def _whose(device_id: str, at_ms: int, home: Household) -> str:
    pets = sorted(home.bindings_at(device_id, at_ms))
    names = [vertex_words(f"pet:{pet}", home, {}) for pet in pets]
    if not names:
        return "Pet: none was bound to this device then"
    if len(names) == 1:
        return f"Pet: {names[0]}"
    return f"Pet: one of {joined(names, last='or')}; the device is shared"


def _event_heading(frame: DatedFrame, home: Household) -> str:
    words = _EVENT_WORDS.get(frame.kind, frame.kind.replace("_", " ").capitalize())
    if frame.kind == "food_set" and frame.object:
        code, text = str(frame.fields[0]), str(frame.fields[1])
        food = home.food_of(code, text)
        figure = f": {(text or code) if food is None else food.name}"
    elif frame.amount is not None and frame.unit is not None:
        figure = f", {amount(frame.amount, frame.unit)}"
    else:
        figure = ""
    return f"{words}{figure}, {when(frame.start_ms, home)}"


def _origin_lines(reader: Reader, ref: RecordRef) -> list[str]:
    """Of a row of another maker's device: who read it, the way it came, and its own bytes."""
    origin = reader.origin(ref)
    if origin is None:
        return []
    told = origin.raw.decode("utf-8", "replace")
    shown = told if told.isprintable() and "\ufffd" not in told else origin.raw.hex(" ")
    more = "" if len(shown) <= _RAW_SHOWN else f" ... ({len(origin.raw)} bytes)"
    signal = "" if origin.signal is None else f", signal {origin.signal} dBm"
    return [
        f"Read by: profile {origin.profile}, version {origin.version}",
        f"Came by: {origin.via}{signal}",
        f"As it was sent: {shown[:_RAW_SHOWN]}{more}",
    ]


def _open_event(reader: Reader, ref: RecordRef) -> Record:
    frame = reader.frame(ref)
    if frame is None:
        raise UnknownRecord(ref.text)
    home = reader.household()
    lines = [
        f"Device: {device_words(frame.device, home)}",
        _whose(frame.device, frame.start_ms, home),
        f"When: {_from_to(frame.start_ms, frame.end_ms, home)}",
        _dating(frame, home),
        *_field_lines(frame),
    ]
    if frame.set_aside is not None:
        lines.append(f"Not counted: {frame.set_aside}")
    lines.append(f"Reached the hub: {when(frame.received_ms, home)}")
    if frame.boot is not None:
        lines.append(f"Record number: start {frame.boot}, number {frame.seq}")
    lines += _origin_lines(reader, ref)
    return Record(
        ref=ref,
        title=_event_heading(frame, home),
        source=device_words(frame.device, home),
        at_ms=frame.start_ms,
        lines=tuple(lines),
    )


# --- days -------------------------------------------------------------------------------------


def day_figure(row: DayRow, observed: Property | None) -> float | None:
    """The day's figure in the series' unit: the sum, or a level's mean over its readings."""
    if row.covered_ms == 0 and row.n == 0:
        return None
    if observed is not None and observed.kind in {"level", "rate"}:
        read = [value for value, heard in zip(row.sums, row.covered, strict=True) if heard > 0]
        return sum(read) / len(read) if read else None
    return float(row.total)


def _hour_lines(row: DayRow, unit: str, home: Household) -> list[str]:
    """One line per hour with something heard: what was counted and for how long it was heard."""
    lines = []
    slots_an_hour = HOUR_MS // SLOT_MS
    for first in range(0, len(row.sums), slots_an_hour):
        heard = sum(row.covered[first : first + slots_an_hour])
        counted = sum(row.sums[first : first + slots_an_hour])
        if heard == 0 and counted == 0:
            continue
        begins = local_clock(row.start_ms + first * SLOT_MS, home.zones)
        lines.append(f"{clock_time(begins)}: {amount(counted, unit)}, heard {round(heard / 60_000)} min")
    return lines


def _parts_of_day(reader: Reader, row: DayRow, pet: str, wire_kind: str | None, home: Household) -> list[DatedFrame]:
    if wire_kind not in _LISTED_KINDS:
        return []
    frames = reader.frames_of_kinds((wire_kind,), start_ms=row.start_ms, end_ms=row.end_ms)
    return [frame for frame in frames if set(pet.split("+")) <= home.bindings_at(frame.device, frame.start_ms)]


def _devices_of(pet: str, observed: Property | None, interval: Interval, home: Household) -> list[str]:
    kinds = () if observed is None else observed.captured_by
    named = {
        binding.device
        for binding in home.bindings
        if set(pet.split("+")) <= binding.pets
        and binding.valid_from_ms < interval.end_ms
        and (binding.valid_to_ms is None or binding.valid_to_ms > interval.start_ms)
        and any(device.id == binding.device and device.kind in kinds for device in home.devices)
    }
    return [device_words(device, home) for device in sorted(named)]


def _day_parts(ref: RecordRef) -> tuple[str, str, str, str]:
    """(series, pet, noun, date) of ``day:<pet>.<noun>/<date>``."""
    series, _, date = ref.key.rpartition("/")
    pet, _, noun = series.partition(".")
    return series, pet, noun, date


def _day_heading(ref: RecordRef, home: Household) -> str:
    _, pet, noun, date = _day_parts(ref)
    return f"{pets_words(pet, home)}: {_noun_words(noun)}, {day(date)} {date[:4]}"


def _open_day(reader: Reader, ref: RecordRef) -> Record:
    series, pet, noun, date = _day_parts(ref)
    row = reader.day(series, date)
    if row is None:
        raise UnknownRecord(ref.text)
    home, observed = reader.household(), _property(noun)
    unit = next((known.unit for known in reader.all_series() if known.id == series), "count")
    figure = day_figure(row, observed)
    length = row.end_ms - row.start_ms
    lines = [
        "Recorded: nothing" if figure is None else f"Recorded: {amount(figure, unit)}",
        f"Heard: {amount(row.covered_ms, 'ms')} of {amount(length, 'ms')}",
    ]
    if row.set_aside is not None:
        lines.append(f"Not counted: {row.set_aside}")
    if row.revision:
        lines.append(f"Restated: {row.revision} times, as records of that day came in later")
    wire_kind = None if observed is None else observed.event_kind
    if observed is not None and observed.wire_kind is not None:
        wire_kind = _KIND_NAMES.get(observed.wire_kind)
    parts = _parts_of_day(reader, row, pet, wire_kind, home)
    if not parts:
        lines.extend(_hour_lines(row, unit, home))
    devices = _devices_of(pet, observed, Interval(row.start_ms, row.end_ms), home)
    return Record(
        ref=ref,
        title=_day_heading(ref, home),
        source=joined(devices) or "no device on file",
        at_ms=row.start_ms,
        lines=tuple(lines),
        parts=tuple(frame.ref for frame in parts),
    )


# --- texts ------------------------------------------------------------------------------------


def _span(ref: RecordRef) -> tuple[int, int] | None:
    """The character span a label's reference names (``#14-26``)."""
    first, dash, last = ref.key.rpartition("#")[2].partition("-")
    return (int(first), int(last)) if dash and first.isdecimal() and last.isdecimal() else None


def _whole_label(reader: Reader, stored: TextRecord) -> TextRecord:
    """The whole label that a cited span was cut from; the record itself where it is whole.

    A label is kept once as a whole (``#0-<length>``) and once for each cited span, under the
    same document.
    """
    texts = () if stored.document is None else reader.texts_of(stored.document)
    return max((text for text in texts if text.ref.kind == "label"), key=lambda text: len(text.text), default=stored)


def _line_marks(text: str, span: tuple[int, int]) -> tuple[tuple[int, int, int], ...]:
    """A span of the whole text as (line, from, to), one a line it touches."""
    marks, at = [], 0
    for number, line in enumerate(text.split("\n")):
        start, end = max(span[0] - at, 0), min(span[1] - at, len(line))
        if start < end:
            marks.append((number, start, end))
        at += len(line) + 1
    return tuple(marks)


def _open_text(reader: Reader, ref: RecordRef) -> Record:
    stored = reader.text_record(ref)
    if stored is None:
        raise UnknownRecord(ref.text)
    home = reader.household()
    document = None if stored.document is None else reader.document(stored.document)
    shown, span = stored, None
    if ref.kind == "label":
        shown, span = _whole_label(reader, stored), _span(ref)
    marks = () if span is None or span == (0, len(shown.text)) else _line_marks(shown.text, span)
    lines = [*shown.text.split("\n"), *_text_facts(stored, home)]
    if document is not None:
        lines.extend(f"{_fact_name(name)}: {value}" for name, value in document.facts)
    return Record(
        ref=ref,
        title=shown.title,
        source=written_by(stored) if document is None else f"{document.title} ({document.source})",
        at_ms=stored.at_ms,
        lines=tuple(lines),
        marks=marks,
    )


def _text_facts(stored: TextRecord, home: Household) -> list[str]:
    lines = []
    if stored.pet is not None:
        lines.append(f"Pet: {vertex_words(f'pet:{stored.pet}', home, {})}")
    if stored.at_ms is not None:
        lines.append(f"Dated: {when(stored.at_ms, home)}")
    if stored.until_ms is not None:
        lines.append(f"Holds until: {when(stored.until_ms, home)}")
    spoken = [(name, value) for name, value in stored.facts if (stored.ref.kind, name) not in _SHOWN_AS_MARK]
    return lines + [f"{_fact_name(name)}: {value}" for name, value in spoken]


def _fact_name(name: str) -> str:
    return name.replace("_", " ").capitalize()


# --- links of the graph -----------------------------------------------------------------------


def relation_words(relation: str) -> str:
    """A relation as an owner reads it, without its host: "lists", "may cause"."""
    name = relation.partition("[")[0]
    known = load().relations.get(name)
    return name.replace("_", " ") if known is None else known.words


def link_sentence(tail: str, relation: str, head: str) -> str:
    """A link in words: "Max ate Acme", "In a dog, chicken may cause a food allergy"."""
    host = relation.partition("[")[2].removesuffix("]")
    words = f"{tail} {relation_words(relation)} {head}"
    return f"In a {host}, {words}" if host else first_upper(words)


def stored_link(reader: Reader, ref: RecordRef, *, walls: frozenset[str]) -> Link | None:
    """An edge folded from its stored evidence, or None where it is not stored (any more)."""
    edge = reader.edge(ref)
    return None if edge is None else fold(edge, reader.evidence_about(ref), marked_wrong=ref.text in walls)


def support(link: Link) -> str:
    """How well a link stands, in an owner's words; never a number."""
    if link.marked_wrong:
        return "marked wrong by you"
    if link.refuted:
        return "contradicted by what is stored"
    if link.conflict > DISAGREEMENT:
        return "your records disagree"
    witnesses = len({piece.witness for piece in link.evidence})
    if witnesses == 0:
        return "nothing stored supports it"
    if witnesses == 1:
        return "one source"
    return f"well supported: {witnesses} sources" if link.belief >= _WELL_SUPPORTED else f"{witnesses} weak sources"


def _edge_heading(edge: Edge, home: Household, labels: Mapping[str, str]) -> str:
    tail, head = (vertex_words(vertex.name, home, labels) for vertex in (edge.tail, edge.head))
    return link_sentence(tail, edge.relation, head)


def period(from_ms: int | None, to_ms: int | None, home: Household) -> str:
    """A stretch of time that may be open on either side: "from ... until ..."."""
    if from_ms is None and to_ms is None:
        return "at any time"
    begins = "" if from_ms is None else f"from {when(from_ms, home)}"
    ends = "" if to_ms is None else f"until {when(to_ms, home)}"
    return f"{begins} {ends}".strip()


def _open_edge(reader: Reader, ref: RecordRef) -> Record:
    home, labels = reader.household(), reader.vertex_labels()
    walls = reader.walls(at_ms=_LATEST_MS)
    link = stored_link(reader, ref, walls=frozenset(wall[1] for wall in walls if wall[1] is not None))
    if link is None:
        raise UnknownRecord(ref.text)
    lines = [f"Holds: {period(link.edge.valid_from_ms, link.edge.valid_to_ms, home)}", f"Standing: {support(link)}"]
    lines.extend(
        f"Marked wrong on {when(marked_ms, home)}: {reason or 'no reason given'}"
        for _, edge, _, reason, marked_ms in walls
        if edge == ref.text
    )
    return Record(
        ref=ref,
        title=_edge_heading(link.edge, home, labels),
        source="put together by the hub from the records below",
        at_ms=link.edge.valid_from_ms,
        lines=tuple(lines),
        parts=tuple(dict.fromkeys(piece.record for piece in link.evidence)),
    )


# --- the two doors ----------------------------------------------------------------------------

_OPENERS = {
    "event": _open_event,
    "day": _open_day,
    "label": _open_text,
    "passage": _open_text,
    "note": _open_text,
    "log": _open_text,
    "edge": _open_edge,
}


def open_record(reader: Reader, ref: RecordRef) -> Record:
    """The stored thing behind a citation, or what is left of one that was forgotten.

    Raises
    ------
    UnknownRecord
        Nothing is stored under the reference.
    """
    return grave_of(reader, ref) or _OPENERS[ref.kind](reader, ref)


def heading(reader: Reader, ref: RecordRef) -> str:
    """A record's title alone, for a list of links; its reference where it is not stored."""
    if (grave := grave_of(reader, ref)) is not None:
        return grave.title
    home = reader.household()
    if ref.kind == "event":
        frame = reader.frame(ref)
        return ref.text if frame is None else _event_heading(frame, home)
    if ref.kind == "day":
        return _day_heading(ref, home)
    if ref.kind == "edge":
        edge = reader.edge(ref)
        return ref.text if edge is None else _edge_heading(edge, home, reader.vertex_labels())
    stored = reader.text_record(ref)
    if stored is None or ref.kind != "label":
        return ref.text if stored is None else stored.title
    whole = _whole_label(reader, stored)
    return whole.title if stored == whole else f"{whole.title}: {stored.text}"


def record_text(record: Record, headings: Sequence[str] = ()) -> list[str]:
    """A record as plain lines for a terminal; the marked part stands in [square brackets].

    ``headings`` are the titles of its parts (see `heading`), in the same order.
    """
    lines = [record.title, f"From: {record.source}", ""]
    for number, line in enumerate(record.lines):
        shown = line
        for _, start, end in sorted((mark for mark in record.marks if mark[0] == number), reverse=True):
            shown = f"{shown[:start]}[{shown[start:end]}]{shown[end:]}"
        lines.append(shown)
    if record.parts:
        lines += ["", "Made from:"]
        titles = headings or tuple("" for _ in record.parts)
        lines += [f"  {part.text}  {title}".rstrip() for part, title in zip(record.parts, titles, strict=True)]
    return [*lines, "", record.ref.text]
