"""What a profile says of a model of device: frozen values, no I/O. `read_profile` makes them.

A profile is data: which messages are the device's, how their bytes become named fields, which
rows these make, what dates them, by what a message is known when it comes again, what is
answered, and whose the rows are. Code knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

__all__ = [
    "CODECS",
    "REPLAYS",
    "UNITS",
    "Clock",
    "Condition",
    "Counter",
    "EventRule",
    "Identity",
    "Layout",
    "Match",
    "Profile",
    "Reply",
    "Stream",
    "Template",
    "Value",
]

CODECS = ("json", "msgpack", "hex", "struct", "float", "bthome")
REPLAYS = ("live", "state", "events", "history")
"""What a message that comes late or again means: ``live`` is true when it is sent and never again;
``state`` says how things stand; ``events`` are kept by the device and sent until they are heard;
``history`` tells everything again each time."""


UNITS: dict[str, dict[str, tuple[Decimal, Decimal]]] = {
    "mg": {
        "mg": (Decimal(1), Decimal(0)),
        "g": (Decimal(1000), Decimal(0)),
        "kg": (Decimal(1_000_000), Decimal(0)),
        "lb": (Decimal("453592.37"), Decimal(0)),
        "oz": (Decimal("28349.523125"), Decimal(0)),
        "ml": (Decimal(1000), Decimal(0)),
    },
    "ms": {
        "ms": (Decimal(1), Decimal(0)),
        "s": (Decimal(1000), Decimal(0)),
        "min": (Decimal(60_000), Decimal(0)),
        "h": (Decimal(3_600_000), Decimal(0)),
    },
    "permille": {"permille": (Decimal(1), Decimal(0)), "percent": (Decimal(10), Decimal(0))},
    "mK": {
        "C": (Decimal(1000), Decimal(273_150)),
        "K": (Decimal(1000), Decimal(0)),
        "F": (Decimal(5000) / 9, Decimal(5000) / 9 * Decimal("459.67")),
    },
    "count": {"count": (Decimal(1), Decimal(0))},
    "state": {"state": (Decimal(1), Decimal(0))},
    "flags": {"flags": (Decimal(1), Decimal(0))},
}
"""Stored unit -> unit of the device -> (factor, then addend). A pound is 453.59237 g (1959), a
millilitre one of water."""


@dataclass(frozen=True, slots=True)
class Template:
    """Text with ``{path}`` in it: alternating literal texts and paths, a text first."""

    texts: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def only_path(self) -> str | None:
        """The path of a template that is nothing but one."""
        return self.paths[0] if self.texts == ("", "") else None


@dataclass(frozen=True, slots=True)
class Condition:
    """Which messages a rule is for: each path must hold one of its texts (``*``: anything)."""

    wanted: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Counter:
    """A value that only counts up: its increase is taken.

    ``modulus``: it wraps at so many. ``day``: it starts at 0 each day of the device's. ``total``:
    it never should fall; up to ``jitter`` below its highest is no reset, and one reading that
    is back up afterwards was a misread.
    """

    kind: str
    modulus: int | None = None
    jitter: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """Where one value of a row comes from.

    ``terms`` are added up, each with its sign; then ``scale``, then ``unit`` into the stored one.
    ``unknown`` are the texts by which the device says that it does not know; outside
    ``[low, high]`` (in ``unit``) the row is kept and not counted. ``words`` translate texts.
    """

    terms: tuple[tuple[int, str], ...]
    unit: str
    scale: Decimal = Decimal(1)
    unknown: frozenset[str] = frozenset()
    low: Decimal | None = None
    high: Decimal | None = None
    words: tuple[tuple[str, int], ...] = ()
    counter: Counter | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """What dates a row: ``epoch`` (in ``unit`` since 1970), ``local`` (the home's wall, no zone) or
    ``parts`` (the home's wall as year, month ... below ``path``; two-digit years count from 2000).
    """

    kind: str
    path: str
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class EventRule:
    """One row a message makes. ``clocks`` are tried in order, the arrival is the last resort;
    ``at_end`` says that they tell when it ended. ``changed`` makes a row only of a change.
    """

    name: str
    kind: str
    when: Condition = field(default_factory=Condition)
    values: tuple[tuple[str, Value], ...] = ()
    clocks: tuple[Clock, ...] = ()
    at_end: bool = False
    about: str | None = None
    keep: tuple[str, ...] = ()
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How bytes become fields: ``words`` of a line of hex, then (name, type) of bytes in order.

    ``bits`` split a number into named runs of bits, the lowest first, found below ``<name>_parts``.
    """

    words: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    little: bool = True
    bits: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """Whose messages these are: topics (each level a text or a ``{name}``), or an advertisement's
    service (full UUID) or manufacturer id; and ``require``: paths that must be there.
    """

    topics: tuple[str, ...] = ()
    service: str | None = None
    manufacturer: int | None = None
    require: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose a row of a shared device is: by ``tag``, ``weight``, ``name`` or ``nearness``, told at ``path``."""

    by: str
    path: str
    unit: str = "g"


@dataclass(frozen=True, slots=True)
class Reply:
    """What is published once a message is stored: a topic, and a map of texts and numbers."""

    when: Condition
    topic: Template
    fields: tuple[tuple[str, Template | int], ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """Bare samples of a load cell that `firmware_bridge.scale` turns into plateaus, meals and refills
    (``bowl``) or weights (``platform``), with its options by name.
    """

    to: str
    value: Value
    options: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A model of device. See docs/profiles.md for what an owner writes.

    The first of ``keys`` that can be filled is what a message is known by; within ``within_ms`` of
    its first arrival the same key is the same message (None: for ever). ``packet_id`` is the path
    of a counter with BTHome's rule instead. ``family`` names the space of keys, shared by profiles of one device.
    """

    id: str
    version: int
    name: str
    device_kind: str
    transport: str
    codec: str
    replay: str
    match: Match
    source: Template | None
    radio: bool
    family: str
    keys: tuple[Template, ...]
    within_ms: int | None
    packet_id: str | None
    signal: str | None
    items: str | None
    layout: Layout
    merge: Condition | None
    set_by: Condition | None
    identity: Identity | None
    reply: Reply | None
    events: tuple[EventRule, ...]
    stream: Stream | None
