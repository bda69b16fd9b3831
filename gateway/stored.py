"""The values the store keeps and gives back, one class a kind of row.

Same rules as in ``gateway.model``: frozen, instants in integer ms UTC, quantities in stored
units. What a row is cited by is its ``ref``.
"""

from __future__ import annotations

from dataclasses import dataclass

from firmware_bridge import wire
from gateway.model import Edge, Evidence, RecordRef

__all__ = [
    "EVENT_FIELDS",
    "AdjacencySnapshot",
    "BootRow",
    "DatedFrame",
    "DayRow",
    "DeadLetter",
    "Document",
    "Doomed",
    "EdgeRow",
    "EventField",
    "Feeding",
    "FloorNotice",
    "FollowedRow",
    "HeardRow",
    "Learned",
    "Origin",
    "Reach",
    "SourceRow",
    "TextRecord",
    "ToldVerdict",
    "Tombstone",
]


@dataclass(frozen=True, slots=True)
class DatedFrame:
    """A device's record with its place in time: what the store keeps of it.

    ``kind`` is the wire kind's name; ``fields`` are its values in wire order. ``dating`` says
    where the time comes from (``wall``, ``offset``, ``bracket``, ``import``, ``corrected`` where
    the device's clock was set later and its records moved with it); a bracketed
    frame lies somewhere in ``[earliest_ms, latest_ms]``. ``amount`` in ``unit`` and
    ``object`` are the kind's main figure and what it was about. ``boot`` and ``seq`` are None
    for imported rows, whose ``ref`` is made from the source's own key. ``sealed`` rows are kept
    for those who cite them, but already stand in their sealed day: they never count again.
    """

    ref: RecordRef
    device: str
    boot: int | None
    seq: int | None
    kind: str
    uptime_ms: int | None
    received_ms: int
    start_ms: int
    end_ms: int
    dating: str
    fields: tuple[int | str, ...]
    earliest_ms: int | None = None
    latest_ms: int | None = None
    amount: int | None = None
    unit: str | None = None
    object: str | None = None
    set_aside: str | None = None
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class BootRow:
    """What is known of one boot's clock: ``anchors`` are (uptime, received - uptime) bounds in
    ms, ascending; ``wall`` is (uptime, wall - uptime) as the device last told it.
    """

    device: str
    boot: int
    anchors: tuple[tuple[int, int], ...]
    wall: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Bytes that could not be read, kept with the reason (a short stable word) and a detail.

    ``boot`` and ``seq`` are known where the header could be read: then they count in the mark. ``whole`` is
    the message ``raw`` is a part of, where nothing else keeps it. ``read_by`` says which profile in which
    version has read it since; it is no dead letter any more.
    """

    transport: str
    device: str
    boot: int | None
    seq: int | None
    received_ms: int
    reason: str
    detail: str
    raw: bytes
    whole: bytes | None = None
    read_by: str | None = None


@dataclass(frozen=True, slots=True)
class DayRow:
    """One series on one local day ``[start_ms, end_ms)``, in 15-minute slots of elapsed time
    since local midnight (92 to 108 of them): ``sums`` in the series' unit, ``covered`` in ms.

    ``revision`` rises whenever a later event changed the row. ``late`` is None while the raw
    rows behind it are kept; once they were purged the day is sealed, and ``late`` counts the
    records that came afterwards and were added to its sealed sums.
    """

    series: str
    date: str
    start_ms: int
    end_ms: int
    n: int
    sums: tuple[int, ...]
    covered: tuple[int, ...]
    set_aside: str | None = None
    revision: int = 0
    late: int | None = None

    @property
    def ref(self) -> RecordRef:
        return RecordRef(f"day:{self.series}/{self.date}")

    @property
    def total(self) -> int:
        return sum(self.sums)

    @property
    def covered_ms(self) -> int:
        return sum(self.covered)


@dataclass(frozen=True, slots=True)
class TextRecord:
    """A stored text that can be cited: a passage, a label span, a note, a log entry.

    ``facts`` are further named values as (name, value) pairs, shown with the record.
    """

    ref: RecordRef
    kind: str
    title: str
    text: str
    document: str | None = None
    pet: str | None = None
    at_ms: int | None = None
    until_ms: int | None = None
    object: str | None = None
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A book, label or note file: the witness behind its passages."""

    id: str
    kind: str
    title: str
    source: str
    code: str | None = None
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """An edge with the number of its row and all its evidence."""

    row: int
    edge: Edge
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class AdjacencySnapshot:
    """The compact graph of all timeless edges, as the graph room packs it.

    ``view`` says which edges and things the graph was allowed to cross.
    """

    view: str
    arrays: bytes
    names: bytes


@dataclass(frozen=True, slots=True)
class Learned:
    """What reading one document yields: what to store, in one value."""

    document: Document | None
    records: tuple[TextRecord, ...]
    edges: tuple[Edge, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Feeding:
    """A period during which a bowl held one food; ``kcal_per_kg`` where its label says so.

    ``food`` is the household's food id (or the scanned code's own id); ``ref`` is the record
    that began it; ``end_ms`` is None while it lasts.
    """

    food: str
    name: str
    code: str
    start_ms: int
    end_ms: int | None
    kcal_per_kg: float | None
    ref: RecordRef
    device: str


@dataclass(frozen=True, slots=True)
class FloorNotice:
    """A hard floor that was reached, as said and as answered.

    ``kind`` is an `alarms.FloorKind`; ``basis`` is what the floor is counted from (a meal, an
    answer, a run of days): while it stays the same the notice is the same one. ``since_ms`` is
    when the floor was reached, ``raised_ms`` when the hub could first say so; ``refs`` are the
    records it stands on. ``answer`` is ate_elsewhere, not_at_home or seen, None until somebody
    answers; ``ended_ms`` is when the floor no longer held.
    """

    id: str
    pet: str
    kind: str
    urgency: str
    basis: str
    since_ms: int
    raised_ms: int
    text: str
    refs: tuple[RecordRef, ...]
    device: str | None = None
    answer: str | None = None
    answered_ms: int | None = None
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FollowedRow:
    """One event beside one series, as computed once its days were closed.

    ``event`` is the edge's reference with ``#start`` or ``#end``; ``as_of`` the pass that
    computed it; ``facts`` hold date, delay, change, p, days before and after, and rivals.
    """

    event: str
    series: str
    as_of: str
    facts: dict[str, object]


@dataclass(frozen=True, slots=True)
class HeardRow:
    """A message of another maker's device, byte for byte.

    ``via`` is the topic (or radio address) it came by, ``source`` what says it is one thing,
    ``key`` what it is known by when it comes again. ``first_ms`` is its first arrival by the hub's
    clock as it stood then and never changes; ``received_ms`` moves when that clock was wrong.
    ``signal`` is the best one heard, dBm. An item of a longer message has no ``raw`` of its own
    and stands ``within`` the row that holds it.
    """

    id: int
    profile: str
    version: int
    transport: str
    via: str
    source: str
    key: str
    first_ms: int
    received_ms: int
    signal: int | None
    within: int | None
    raw: bytes | None


@dataclass(frozen=True, slots=True)
class Origin:
    """From which message a row was made: who read it (profile and version), the way it came, its bytes."""

    profile: str
    version: int
    transport: str
    via: str
    source: str
    signal: int | None
    raw: bytes


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A sender as heard: a serial number, a radio address.

    ``device`` is whose rows it makes: its own, or the device it turned out to be.
    ``replaces`` names the device the owner is asked about, until ``answered_ms``.
    """

    id: str
    profile: str
    kind: str
    device: str
    first_ms: int
    last_ms: int
    replaces: str | None = None
    answered_ms: int | None = None


@dataclass(frozen=True, slots=True)
class EventField:
    """One value of a kind of row; ``unknown`` is stored where the device does not say it, None
    where the row makes no sense without it.
    """

    name: str
    unit: str
    unknown: int | None = None


EVENT_FIELDS: dict[str, tuple[EventField, ...]] = {
    "meal": (
        EventField("began", "ms", 0),
        EventField("lasted", "ms", 0),
        EventField("removed", "mg"),
        EventField("quality", "flags", 0),
    ),
    "refill": (EventField("added", "mg"),),
    "weight": (EventField("weight", "mg"),),
    "temperature": (EventField("temperature", "mK"),),
    "beat": (
        EventField("battery", "permille", wire.BATTERY_UNKNOWN),
        EventField("worn", "state", wire.WORN_UNKNOWN),
        EventField("charging", "state", 0),
    ),
    "tare": (),
    "plateau": (EventField("weight", "mg"), EventField("quality", "flags", 0)),
    "litter": (EventField("lasted", "ms", 0), EventField("used", "state", 2)),
    "dispensed": (EventField("portions", "count"),),
    "dispensing": (EventField("portions", "count"),),
    "movement": (EventField("moves", "count"),),
    "state": (),
}
"""The kinds of rows a profile may make, with their values in stored order; those of Wire 1 as there."""


@dataclass(frozen=True, slots=True)
class ToldVerdict:
    """The verdict a stored answer gave of a series over the days ``first_date`` .. ``last_date``.

    ``since_date`` is the first day it was compared with, ``until_ms`` the end of the window,
    ``told_ms`` the instant the answer speaks for; ``word`` as told, ``now_word`` as it is on the
    rows of today, None where that is the same. ``late`` counts the records that arrived since.
    """

    claim: str
    series: str
    since_date: str
    first_date: str
    last_date: str
    until_ms: int
    told_ms: int
    word: str
    answer: int = 0
    now_word: str | None = None
    late: int = 0
    changed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Doomed:
    """What forgetting one source reaches.

    ``devices`` are ids of devices (one with its parts) and ``senders`` what they were heard as;
    ``documents`` are ids; ``pets`` the ids and ``series`` the series of whom nothing stays;
    ``texts`` are references of texts the hub wrote about it; ``days`` are record rows of days
    that are made anew without it, ``sealed`` those of them that are sums alone.
    """

    devices: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    pets: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    days: tuple[int, ...] = ()
    sealed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """What would go with a source, in rows; ``answers`` cite some of it, and stay."""

    events: int
    dead_letters: int
    days: int
    texts: int
    evidence: int
    edges: int
    answers: int


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What a cited record belonged to, and when the owner had it forgotten."""

    ref: RecordRef
    what: str
    forgotten_ms: int
