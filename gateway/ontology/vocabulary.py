"""The ontology's types: what kinds of things, relations, measurements and signs there are.

In: nothing; these are values that ``gateway.ontology.load`` fills from the packaged TOML
files. Out: frozen dataclasses, looked up by id. Never: I/O, a clock, a household's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gateway.model import Vertex

__all__ = [
    "DEFAULT_RELEVANCE",
    "DeviceKind",
    "LogKind",
    "Ontology",
    "Property",
    "Relation",
    "Rival",
    "Sign",
    "VertexKind",
]

DEFAULT_RELEVANCE = 0.25
"""The change (fraction of usual) an owner would not care about, unless a series says otherwise."""


@dataclass(frozen=True, slots=True)
class VertexKind:
    """A kind of vertex; ``walk`` = the household walk may cross it, else it may only be cited."""

    id: str
    word: str
    walk: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed relation. ``host`` relations are written ``name[species]`` on an edge.

    ``walkable`` is False for negative and hearsay relations: the matrix never holds them.
    """

    id: str
    tails: tuple[str, ...]
    heads: tuple[str, ...]
    walkable: bool
    negative: bool
    host: bool
    dated: bool
    words: str


@dataclass(frozen=True, slots=True)
class Property:
    """An observable property of a pet (SOSA), and what its rise or fall indicates.

    ``relevance`` is a fraction of usual; ``worse`` is "up", "down" or "both"; ``captured_by``
    names device kinds, the first being the one to suggest; ``log`` = people may count it too;
    ``wire_kind``/``wire_field`` say which Wire 1 record it is derived from, ``event_kind`` which row
    of another maker's device, that Wire 1 has not.
    """

    id: str
    noun: str
    unit: str
    kind: str
    owner: str
    words: tuple[str, ...]
    verb: str
    captured_by: tuple[str, ...]
    worse: str
    relevance: float
    night_only: bool
    log: bool
    evidence_class: str
    wire_kind: int | None
    wire_field: str | None
    event_kind: str | None
    sign_up: str | None
    sign_down: str | None
    caveat: str
    of_device: str


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of device: the owner's word with its article, what it captures and cannot see.

    A ``wearable`` is worn one at a time: a new one on the same pet takes over from the old.

    ``cite`` is the word inside citation brackets; ``witness`` the key of ``reliability``.
    """

    id: str
    word: str
    plain: str
    cite: str
    words: tuple[str, ...]
    witness: str
    cannot_see: tuple[str, ...]
    captures: tuple[str, ...]
    floor: bool
    wearable: bool


@dataclass(frozen=True, slots=True)
class Rival:
    """A standing rival of a sign: what a vet asks first. ``slot`` is where it would be on file.

    ``log`` is the log kind that would settle it, or None where no log entry can.
    """

    id: str
    text: str
    short: str
    slot: str
    log: str | None


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign an owner sees. ``urgency`` is "red", "amber" or None for the bare sign."""

    id: str
    word: str
    phrase: str
    words: tuple[str, ...]
    urgency: str | None
    rivals: tuple[Rival, ...]


@dataclass(frozen=True, slots=True)
class LogKind:
    """Something people write down. ``med`` and ``prevents`` are vertex names; ``days`` is how
    long it lasts where the entry gives no interval (None = an instant).
    """

    id: str
    words: tuple[str, ...]
    relation: str | None
    property: str | None
    med: str | None
    prevents: tuple[str, ...]
    slot: str | None
    days: int | None


@dataclass(frozen=True, slots=True)
class Ontology:
    """The whole schema. Mappings are read-only and in file order."""

    vertex_kinds: Mapping[str, VertexKind]
    relations: Mapping[str, Relation]
    properties: Mapping[str, Property]
    device_kinds: Mapping[str, DeviceKind]
    signs: Mapping[str, Sign]
    log_kinds: Mapping[str, LogKind]
    reliability: Mapping[str, float]

    def __post_init__(self) -> None:
        for name in ("vertex_kinds", "relations", "properties", "device_kinds", "signs", "log_kinds", "reliability"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def walkable(self, relation: str) -> bool:
        """Whether the walk may cross an edge of this relation (``may_cause[dog]`` included).

        Raises
        ------
        KeyError
            If the relation is in no table.
        """
        return self.relations[relation.partition("[")[0]].walkable

    def crossable(self, vertex: Vertex) -> bool:
        """Whether the household walk may cross the vertex; unknown kinds may only be cited."""
        kind = self.vertex_kinds.get(vertex.type)
        return kind is not None and kind.walk

    def accepts(self, tail: Vertex, relation: str, head: Vertex) -> bool:
        """Whether the schema allows this edge, host brackets included."""
        name, bracket, _ = relation.partition("[")
        known = self.relations.get(name)
        if known is None or known.host != bool(bracket):
            return False
        return tail.type in known.tails and head.type in known.heads

    def property_of_noun(self, noun: str) -> Property:
        """The property behind a series noun (``scratching`` -> scratch); KeyError if none."""
        for observed in self.properties.values():
            if observed.noun == noun:
                return observed
        raise KeyError(noun)

    def series_id(self, pet: str, property_id: str) -> str:
        """``<pet>.<noun>``, the id of one pet's series."""
        return f"{pet}.{self.properties[property_id].noun}"

    def sign_of(self, property_id: str, direction: str) -> str | None:
        """The sign vertex a rise (``up``) or fall (``down``) of a property indicates."""
        observed = self.properties[property_id]
        return {"up": observed.sign_up, "down": observed.sign_down}.get(direction)
