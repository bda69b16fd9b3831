"""What follows from records without any statistics: who ate what when, who was treated.

Reads the household, the bowl's food changes, the log and the series; writes edges and their
evidence. Everything is derived again from the records as a whole, so the same records give
the same graph whatever order they came in, and what no longer follows disappears.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex, stable_id
from gateway.ontology.load import things
from gateway.stored import Document, TextRecord

if TYPE_CHECKING:
    from gateway.model import Device, Household, Person, Pet, Place, Series
    from gateway.ontology.vocabulary import LogKind, Ontology
    from gateway.store import Transaction

__all__ = ["DERIVED_RELATIONS", "Facts", "binding_ref", "refresh_facts"]

DERIVED_RELATIONS = (
    "ate",
    "captures",
    "has_series",
    "indicates",
    "of_breed",
    "of_kind",
    "of_species",
    "takes",
    "treated_with",
    "uses_device",
    "visited_by",
    "was_at",
)
"""Relations this room owns: each refresh makes them exactly what the records say."""

_STATED = Mass(0.95)
"""An owner's plain statement about the household, before the owner's own reliability."""
_SCANNED = Mass(0.9)
"""A food picked or scanned at the bowl: the wrong bag is picked now and then."""
_SEEN = Mass(0.9)
"""A meal at the bowl that holds the food."""
_DEFINED = Mass(1.0)
"""What the hub itself defines: which sign a measured series shows."""
_ANY_MEDICINE = frozenset({"med:medicine", "med:supplement"})
"""Words that say that something was given, and not what."""
_HUB_READING = "How this hub reads its devices"


def _sha8(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(slots=True)
class Facts:
    """What a refresh found: records to store first, then edges, then their evidence."""

    records: list[TextRecord] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    edges: dict[str, Edge] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def edge(self, edge: Edge, record: RecordRef, mass: Mass, *, witness: str, reliability: float) -> None:
        """An edge with one reason for it; a second reason for the same edge is added."""
        self.edges[edge.ref.text] = edge
        self.evidence.append(Evidence(edge.ref, record, mass, witness, reliability))


def refresh_facts(tx: Transaction, ontology: Ontology) -> Facts:
    """Derive every edge of `DERIVED_RELATIONS` again and make the store hold exactly these."""
    home = tx.household()
    facts = Facts()
    _household_facts(facts, home, ontology)
    _series_facts(facts, tx, home, ontology)
    _food_facts(facts, tx, home, ontology)
    _log_facts(facts, tx.texts(("log",), until_ms=2**62), home, ontology)
    _noted_facts(facts, tx)
    for document in facts.documents:
        tx.save_document(document, added_ms=0)
    for record in facts.records:
        tx.save_text(record)
    for name, label in facts.names.items():
        tx.name_vertex(name, label)
    tx.replace_edges(DERIVED_RELATIONS, tuple(facts.edges.values()), tuple(facts.evidence))
    return facts


# --- household ----------------------------------------------------------------------------


def _household_facts(facts: Facts, home: Household, ontology: Ontology) -> None:
    owner = ontology.reliability["owner_log"]
    for pet in home.pets:
        record = _pet_record(pet)
        facts.records.append(record)
        vertex = Vertex(f"pet:{pet.id}")
        facts.names[vertex.name] = pet.name
        kinds = [("of_species", Vertex(f"species:{stable_id(pet.species)}"), pet.species)]
        if pet.breed is not None:
            kinds.append(("of_breed", Vertex(f"breed:{stable_id(pet.breed)}"), pet.breed))
        for relation, head, label in kinds:
            facts.names[head.name] = label
            facts.edge(Edge(vertex, relation, head), record.ref, _STATED, witness="owner", reliability=owner)
    for place in home.places:
        record = _place_record(place)
        facts.records.append(record)
        vertex, kind = Vertex(f"place:{place.id}"), Vertex(f"place:{stable_id(place.kind)}")
        facts.names |= {vertex.name: place.name, kind.name: place.kind}
        facts.edge(Edge(vertex, "of_kind", kind), record.ref, _STATED, witness="owner", reliability=owner)
    facts.records.extend(_person_record(person) for person in home.people)
    for binding in home.bindings:
        device = home.device(binding.device)
        facts.names[f"device:{device.id}"] = device.name
        for pet_id in sorted(binding.pets):
            record = _binding_record(device, home.pet(pet_id), binding.valid_from_ms, binding.valid_to_ms)
            facts.records.append(record)
            edge = Edge(
                Vertex(f"pet:{pet_id}"),
                "uses_device",
                Vertex(f"device:{device.id}"),
                binding.valid_from_ms,
                binding.valid_to_ms,
            )
            mass = Mass(_STATED.true / len(binding.pets))
            facts.edge(edge, record.ref, mass, witness="owner", reliability=owner)


def _pet_record(pet: Pet) -> TextRecord:
    parts = [pet.species, pet.breed, None if pet.born is None else f"born {pet.born}", pet.sex]
    if pet.neutered is not None:
        parts.append("neutered" if pet.neutered else "not neutered")
    text = f"{pet.name}: {', '.join(part for part in parts if part)}"
    return _entered("pet", pet.id, pet.name, text, pet=pet.id)


def _place_record(place: Place) -> TextRecord:
    return _entered("place", place.id, place.name, f"{place.name}: {place.kind}")


def _person_record(person: Person) -> TextRecord:
    text = f"{person.name}: {person.role}{'' if person.phone is None else f', {person.phone}'}"
    return _entered("person", person.id, person.name, text)


def _entered(what: str, own_id: str, name: str, text: str, *, pet: str | None = None) -> TextRecord:
    """What the owner entered of the household; its reference holds the text, so that a change is another record."""
    ref = RecordRef(f"log:{what}-{own_id}@{_sha8(text)}")
    return TextRecord(ref, "household", f"{name}, as entered by the owner", text, pet=pet)


def binding_ref(device: str, pet: str, from_ms: int) -> RecordRef:
    """The reference of the hub's own text about a binding."""
    return RecordRef(f"log:binding-{device}-{pet}@{from_ms}")


def _binding_record(device: Device, pet: Pet, from_ms: int, to_ms: int | None) -> TextRecord:
    text = f"{device.name} ({device.id}) serves {pet.name}"
    return TextRecord(
        ref=binding_ref(device.id, pet.id, from_ms),
        kind="household",
        title=f"{device.name}, as set up by the owner",
        text=text,
        pet=pet.id,
        at_ms=from_ms,
        until_ms=to_ms,
    )


# --- series and signs ---------------------------------------------------------------------


def _series_facts(facts: Facts, tx: Transaction, home: Household, ontology: Ontology) -> None:
    hub = _hub_document(facts, ontology)
    for series in tx.all_series():
        first = tx.first_date(series.id)
        if first is None or "+" in series.pet:
            continue
        observed = ontology.properties[series.property]
        vertex = Vertex(f"series:{series.id}")
        facts.names[vertex.name] = f"{home.pet(series.pet).name}'s {observed.owner}"
        day = RecordRef(f"day:{series.id}/{first}")
        for device in _capturing(home, series, ontology):
            trust = ontology.reliability[ontology.device_kinds[device.kind].witness]
            facts.edge(
                Edge(Vertex(f"pet:{series.pet}"), "has_series", vertex),
                day,
                _SEEN,
                witness=f"device:{device.id}",
                reliability=trust,
            )
            facts.edge(
                Edge(Vertex(f"device:{device.id}"), "captures", vertex),
                day,
                _SEEN,
                witness=f"device:{device.id}",
                reliability=trust,
            )
        for sign in dict.fromkeys(s for s in (observed.sign_up, observed.sign_down) if s is not None):
            facts.names[sign] = ontology.signs[sign.partition(":")[2]].word
            facts.edge(
                Edge(vertex, "indicates", Vertex(sign)),
                hub[series.property],
                _DEFINED,
                witness="hub",
                reliability=ontology.reliability["tracker"],
            )


def _capturing(home: Household, series: Series, ontology: Ontology) -> tuple[Device, ...]:
    """Devices that ever served this pet alone and capture the property."""
    kinds = ontology.properties[series.property].captured_by
    served = {binding.device for binding in home.bindings if binding.pets == frozenset({series.pet})}
    return tuple(device for device in home.devices if device.id in served and device.kind in kinds)


def _hub_document(facts: Facts, ontology: Ontology) -> dict[str, RecordRef]:
    """The hub's own reading of its series as a citable text; property id -> its paragraph."""
    lines = {}
    for observed in ontology.properties.values():
        signs = [
            f"{way} of it is read as {ontology.signs[sign.partition(':')[2]].word}"
            for way, sign in (("a rise", observed.sign_up), ("a fall", observed.sign_down))
            if sign is not None
        ]
        if signs:
            lines[observed.id] = f"{observed.owner[:1].upper()}{observed.owner[1:]}: {'; '.join(signs)}."
    version = _sha8("\n".join(lines.values()))
    facts.documents.append(Document(id=version, kind="hub", title=_HUB_READING, source="scentwalk"))
    refs = {}
    for number, (property_id, text) in enumerate(lines.items(), start=1):
        refs[property_id] = RecordRef(f"passage:{version}#1.{number}")
        facts.records.append(
            TextRecord(ref=refs[property_id], kind="hub", title=_HUB_READING, text=text, document=version)
        )
    return refs


# --- food ---------------------------------------------------------------------------------


def _food_facts(facts: Facts, tx: Transaction, home: Household, ontology: Ontology) -> None:
    """``ate`` = the meals between two ``food_set`` records of one bowl."""
    trust = ontology.reliability["bowl"]
    for device in home.devices:
        changes = tx.frames((device.id,), start_ms=-(2**62), end_ms=2**62, kinds=("food_set",))
        if not changes:
            continue
        for change, following in pairwise((*changes, None)):
            assert change is not None
            end_ms = None if following is None else following.start_ms
            pets = home.bindings_at(device.id, change.start_ms)
            if not pets:
                continue
            code, text = str(change.fields[0]), str(change.fields[1])
            food = home.food_of(code, text)
            vertex = Vertex(f"food:{stable_id(text or code) if food is None else food.id}")
            facts.names[vertex.name] = (text or f"food {code}") if food is None else food.name
            meal = tx.first_frame(device.id, "meal", from_ms=change.start_ms, to_ms=end_ms)
            for pet_id in sorted(pets):
                edge = Edge(Vertex(f"pet:{pet_id}"), "ate", vertex, change.start_ms, end_ms)
                for frame, mass in ((change, _SCANNED), (meal, _SEEN)):
                    if frame is not None:
                        part = Mass(mass.true / len(pets))
                        facts.edge(edge, frame.ref, part, witness=f"device:{device.id}", reliability=trust)


# --- the log ------------------------------------------------------------------------------


def _log_facts(facts: Facts, logs: tuple[TextRecord, ...], home: Household, ontology: Ontology) -> None:
    """Treatments, medicines, visitors and trips that people wrote down."""
    owner = ontology.reliability["owner_log"]
    for entry in logs:
        kind = ontology.log_kinds.get(entry.object or "")
        if kind is None or kind.relation is None or (entry.at_ms is None and entry.until_ms is None):
            continue
        head = _log_head(entry, kind, home)
        facts.names.setdefault(head.name, entry.title)
        for pet in home.pets if entry.pet is None else (home.pet(entry.pet),):
            edge = Edge(Vertex(f"pet:{pet.id}"), kind.relation, head, entry.at_ms, entry.until_ms)
            facts.edge(edge, entry.ref, _STATED, witness="owner", reliability=owner)


def _noted_facts(facts: Facts, tx: Transaction) -> None:
    """What a vet's note says of medicines: read once, when the note was kept, and kept with it."""
    for piece in tx.evidence():
        if piece.record.kind != "note":
            continue
        edge = tx.edge(piece.edge)
        if edge is not None and edge.relation in DERIVED_RELATIONS:
            facts.edges[edge.ref.text] = edge
            facts.evidence.append(piece)


def _medicine_named(title: str) -> str | None:
    """The medicine the vocabulary knows an entry's words by ("Metacam" is pain relief), or None.

    Sources speak of medicines by these names; a word such as "tablet" names none.
    """
    for match in things().lexicon.find(title):
        for reading in match.readings:
            if reading.kind == "med" and reading.target not in _ANY_MEDICINE:
                return reading.target
    return None


def _log_head(entry: TextRecord, kind: LogKind, home: Household) -> Vertex:
    """What a log entry is about: the kind's own medicine, a named thing of the house, or its words."""
    if kind.med is not None:
        return Vertex(kind.med)
    named = stable_id(entry.title)
    if kind.relation in ("takes", "treated_with"):
        known = [
            medicine.id for medicine in home.medicines if medicine.id in named or stable_id(medicine.name) in named
        ]
        return Vertex(f"med:{known[0]}" if known else _medicine_named(entry.title) or f"med:{named}")
    if kind.relation == "was_at":
        known = [place.id for place in home.places if place.id in named or stable_id(place.name) in named]
        return Vertex(f"place:{known[0] if known else named}")
    if kind.relation == "ate":
        known = [food.id for food in home.foods if food.id in named or stable_id(food.name) in named]
        return Vertex(f"food:{known[0] if known else named}")
    return Vertex(f"visitor:{named}")
