"""The values every room speaks. Frozen, checked when they are made, free of I/O.

Instants are integer milliseconds UTC (``_ms``). A local day is an ISO date string of the
home's zone. Stored quantities are integers in mg, ms, mK, permille or counts; grams,
kilograms and minutes exist only in wording. Sources: W3C SOSA (Series, Observation),
Shafer 1976 (Mass), CONTRACTS of this project (RecordRef, Answer).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Binding",
    "Chain",
    "Comparison",
    "Device",
    "Edge",
    "Event",
    "Evidence",
    "Food",
    "Frame",
    "Household",
    "Interval",
    "Link",
    "Mass",
    "NearMiss",
    "Person",
    "Pet",
    "PetStatus",
    "Place",
    "RawFrame",
    "Record",
    "RecordRef",
    "Series",
    "Unclear",
    "Verdict",
    "Vertex",
    "Window",
    "ZonePeriod",
    "stable_id",
]

_ID = re.compile(r"[a-z0-9_-]{1,64}\Z")
_REF_KINDS = frozenset({"event", "day", "label", "passage", "note", "log", "edge"})
_CALLED = ("vet", "clinic", "emergency", "tierarzt", "tierärzt", "klinik", "notdienst", "clínica", "urgencias")
"""What the role of somebody to call says, in the languages questions are asked in ("veterinario" holds "vet")."""


def _must_be_id(value: str, what: str) -> None:
    if not _ID.match(value):
        raise ValueError(f"{what} must be 1 to 64 of a-z 0-9 _ -, is {value!r}")


def stable_id(text: str) -> str:
    """A stable ASCII id of a name: NFKD, letters and digits kept, the rest underscores.

    "Acme Chicken & Rice" -> acme_chicken_rice. A name without any ASCII letter or digit
    gets an id from its own NFC bytes, so that both spellings of it are one thing.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:48]
    return words or f"x{hashlib.sha256(unicodedata.normalize('NFC', text).encode()).hexdigest()[:12]}"


# --- time ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Half-open span of time ``[start_ms, end_ms)``, integer ms UTC."""

    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        if self.end_ms < self.start_ms:
            raise ValueError(f"an interval must not end before it starts: {self.start_ms} .. {self.end_ms}")

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True)
class Window:
    """What a question's time words mean: a label and its half-open interval.

    ``label`` is the Frame JSON word (``P7D``, ``YESTERDAY``, ``SINCE:2026-07-13``...);
    ``first_date``/``last_date`` are the local days the interval touches.
    """

    label: str
    interval: Interval
    first_date: str
    last_date: str


@dataclass(frozen=True, slots=True)
class ZonePeriod:
    """The home's IANA zone from ``valid_from_ms`` on."""

    zone: str
    valid_from_ms: int


# --- household ----------------------------------------------------------------------------


class PetStatus(StrEnum):
    """Where a pet stands; ``away`` means not recorded, never zero."""

    HOME = "home"
    AWAY = "away"
    SECOND_HOME = "second_home"
    AFTER_SURGERY = "after_surgery"
    PREGNANT = "pregnant"
    GONE = "gone"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Pet:
    """A pet of the household. ``born`` is an ISO date or None; ids are stable ASCII."""

    id: str
    name: str
    species: str
    breed: str | None = None
    born: str | None = None
    sex: str | None = None
    neutered: bool | None = None
    status: PetStatus = PetStatus.HOME
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _must_be_id(self.id, "a pet's id")


@dataclass(frozen=True, slots=True)
class Device:
    """A bowl, tracker, scale... ``kind`` is an id of the ontology's device kinds."""

    id: str
    kind: str
    name: str
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _must_be_id(self.id, "a device's id")


@dataclass(frozen=True, slots=True)
class Binding:
    """Which pets a device serves during ``[valid_from_ms, valid_to_ms)``; None = still.

    More than one pet means identity is a set: it never moves a single pet's baseline.
    """

    device: str
    pets: frozenset[str]
    valid_from_ms: int
    valid_to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A kennel, second home or yard; ``kind`` is an id of the ontology's place kinds."""

    id: str
    name: str
    kind: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Person:
    """A vet, clinic or household member; ``phone`` is shown as stored."""

    id: str
    name: str
    role: str
    phone: str | None = None

    @property
    def is_called(self) -> bool:
        """Whether this is whom an emergency is for: a vet or a clinic, by the role's words."""
        return any(word in self.role.lower() for word in _CALLED)


@dataclass(frozen=True, slots=True)
class Food:
    """A food or medicine the household knows: ``code`` is the product code of a stored label.

    ``pets`` are those it is given to (empty = not said); ``first_date``/``last_date`` are the
    local days between which the owner said it was given (None = open on that side).
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    code: str | None = None
    pets: frozenset[str] = frozenset()
    first_date: str | None = None
    last_date: str | None = None


@dataclass(frozen=True, slots=True)
class Household:
    """Everything named at home at one instant. Tuples are ordered by id."""

    zones: tuple[ZonePeriod, ...]
    pets: tuple[Pet, ...] = ()
    devices: tuple[Device, ...] = ()
    bindings: tuple[Binding, ...] = ()
    places: tuple[Place, ...] = ()
    people: tuple[Person, ...] = ()
    foods: tuple[Food, ...] = ()
    medicines: tuple[Food, ...] = ()
    country: str | None = None

    def pet(self, pet_id: str) -> Pet:
        """The pet of that id; KeyError where there is none."""
        for pet in self.pets:
            if pet.id == pet_id:
                return pet
        raise KeyError(pet_id)

    def device(self, device_id: str) -> Device:
        """The device of that id; KeyError where there is none."""
        for device in self.devices:
            if device.id == device_id:
                return device
        raise KeyError(device_id)

    def food_of(self, code: str, text: str) -> Food | None:
        """The food behind a scanned code, else behind the text picked at the bowl, or None."""
        for food in self.foods:
            if code and food.code == code:
                return food
        named = stable_id(text) if text else ""
        for food in self.foods:
            if named and named in (food.id, stable_id(food.name)):
                return food
        return None

    def bindings_at(self, device_id: str, at_ms: int) -> frozenset[str]:
        """The set of pets the device served at that instant; empty = unbound."""
        for binding in self.bindings:
            begun = binding.device == device_id and binding.valid_from_ms <= at_ms
            if begun and (binding.valid_to_ms is None or at_ms < binding.valid_to_ms):
                return binding.pets
        return frozenset()


# --- records and events -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class RecordRef:
    """``kind:natural-key``, what every citation is; never a row id.

    Kinds: event, day, label, passage, note, log, edge. Examples:
    ``event:bowl-max/3/1042``, ``day:max.scratching/2026-07-08``,
    ``label:4006381333931@1a2b3c4d#14-26``, ``passage:9f8e7d6c#7.3``.
    """

    text: str

    def __post_init__(self) -> None:
        kind, colon, key = self.text.partition(":")
        if not colon or kind not in _REF_KINDS or not key:
            raise ValueError(
                "a record reference must be kind:key with kind one of "
                f"{', '.join(sorted(_REF_KINDS))}, is {self.text!r}"
            )

    @property
    def kind(self) -> str:
        return self.text.partition(":")[0]

    @property
    def key(self) -> str:
        return self.text.partition(":")[2]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Record:
    """A stored record opened for a reader: what a citation shows.

    ``lines`` is the content in order, one fact a line; ``marks`` are (line, from, to)
    character spans to emphasise (the ingredient in a label); ``parts`` are references of
    the records this one was computed from (a day's events).
    """

    ref: RecordRef
    title: str
    source: str
    at_ms: int | None
    lines: tuple[str, ...]
    marks: tuple[tuple[int, int, int], ...] = ()
    parts: tuple[RecordRef, ...] = ()


@dataclass(frozen=True, slots=True)
class RawFrame:
    """What a link heard, before anybody has looked into it."""

    transport: str
    device: str
    received_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """One Wire 1 record. ``values`` are integers in the kind's declared units (text only in
    hello and food_set); its key is (device, boot, seq).
    """

    device: str
    boot: int
    seq: int
    kind: int
    uptime_ms: int
    values: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """A SOSA observable property of one pet: id ``<pet>.<property noun>``."""

    id: str
    pet: str
    property: str
    unit: str


@dataclass(frozen=True, slots=True)
class Event:
    """A dated occurrence as stored: a meal, a refill, a food change, a log entry.

    ``pets`` is a set; more than one means "one of these". ``amount`` is in ``unit``
    (mg, count, ms) or None; ``object`` names what it was about (a food code, a medicine);
    ``set_aside`` is the reason why it does not count, or None.
    """

    ref: RecordRef
    kind: str
    device: str | None
    pets: frozenset[str]
    start_ms: int
    end_ms: int
    amount: int | None = None
    unit: str | None = None
    object: str | None = None
    text: str | None = None
    set_aside: str | None = None


# --- graph --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Vertex:
    """A named thing: ``type:stable-name`` (``pet:max``, ``ing:chicken_meal``)."""

    name: str

    def __post_init__(self) -> None:
        kind, colon, rest = self.name.partition(":")
        if not kind or not colon or not rest:
            raise ValueError(f"a vertex must be named type:name, is {self.name!r}")

    @property
    def type(self) -> str:
        return self.name.partition(":")[0]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A typed relation during ``[valid_from_ms, valid_to_ms)``; None = open on that side.

    Two periods of the same fact are two edges. ``ref`` is the edge's own record.
    """

    tail: Vertex
    relation: str
    head: Vertex
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None

    @property
    def ref(self) -> RecordRef:
        start = "-" if self.valid_from_ms is None else str(self.valid_from_ms)
        return RecordRef(f"edge:{self.tail}|{self.relation}|{self.head}|{start}")


@dataclass(frozen=True, slots=True)
class Mass:
    """Dempster-Shafer mass on {true, false}; the rest is ignorance (Shafer 1976).

    Bel = true, Pl = 1 - false.
    """

    true: float
    false: float = 0.0

    def __post_init__(self) -> None:
        t, f = self.true, self.false
        if not (0.0 <= t <= 1.0 and 0.0 <= f <= 1.0 and t + f <= 1.0 + 1e-12):
            raise ValueError(f"masses must be >= 0 and sum to at most 1, are true {t!r}, false {f!r}")

    @property
    def ignorance(self) -> float:
        return max(0.0, 1.0 - self.true - self.false)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One stored reason to believe (or not) an edge: record, mass, and whose word it is.

    All evidence of one ``witness`` (a device, a document) saturates at ``reliability``.
    ``span`` is the character range of the record's text that says so, where it is text.
    """

    edge: RecordRef
    record: RecordRef
    mass: Mass
    witness: str
    reliability: float
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An edge with its combined belief: what the walk may cross.

    ``conflict`` is Dempster's K; ``refuted`` holds for belief in falsehood above both 0.5
    and the belief in truth; ``marked_wrong`` is the owner's wall, which is no mass.
    """

    edge: Edge
    belief: float
    plausibility: float
    conflict: float
    refuted: bool
    evidence: tuple[Evidence, ...]
    marked_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """A typed, dated candidate: why ``cause`` could reach ``sign``. Ids only, no numbers.

    ``links`` run from the pet to the sign in order; ``slot`` is food, medicine, parasite,
    place, visitor or device; ``changed_ms`` is when the exposure started or ended;
    ``instrument`` marks a measurement rival (a collar refit).
    """

    cause: Vertex
    slot: str
    links: tuple[RecordRef, ...]
    changed_ms: int
    change: str
    instrument: bool = False


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Something that almost joined, and the reason it did not."""

    what: str
    reason: str
    refs: tuple[RecordRef, ...] = ()


# --- measuring ----------------------------------------------------------------------------


class Verdict(StrEnum):
    """The four words of a comparison."""

    UP = "up"
    DOWN = "down"
    USUAL = "usual"
    CANNOT_TELL = "cannot_tell"


class Unclear(StrEnum):
    """Why a comparison cannot tell."""

    TOO_FEW_DAYS = "too_few_days"
    NOT_HEARD = "not_heard"
    TOO_VARIABLE = "too_variable"
    WHOSE_UNKNOWN = "whose_unknown"
    NOT_COMPARABLE = "not_comparable"
    BAD_DATA = "bad_data"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A window against the pet's own past. Rates are per 24 h in the series' unit.

    ``change`` and ``interval`` (90 %) are fractions of usual (0.40 = +40 %);
    ``smallest_visible`` is the change one such window would show at 80 % power;
    ``rank`` of ``rank_of``: how many of the pet's own past windows lie below, and of how
    many. Absent numbers are None and the reason says why; never a guess.
    """

    verdict: Verdict
    reason: Unclear | None
    now: float | None
    usual: float | None
    change: float | None
    interval: tuple[float, float] | None
    smallest_visible: float | None
    rank: int | None
    rank_of: int | None
    days_used: tuple[str, ...]
    days_expected: int
    baseline_days: tuple[str, ...]
    baseline_needed: int
    coverage: float
    set_aside_days: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    detail: str = ""
