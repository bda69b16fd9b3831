"""Households to ask "why did it change?" in, drawn from a seed, of the size real ones have.

A `Town` is what stays the same for a seed: four pets with breeds, devices and series, what
books say of some forty conditions, what the other pets ate and where they went. A `Home` is a
town with one pet's own story on top; the scenarios tell it. Labels are texts and go through
the product's own label reader; every other edge has evidence of its witness, folded by the
product's own rule. Species, conditions and dates are drawn, the hidden truth with them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property

from gateway.graph.belief import fold_all
from gateway.knowledge.labels import read_label
from gateway.model import Edge, Evidence, Interval, Link, Mass, RecordRef, Vertex
from gateway.ontology.ingredients import load_ingredients
from gateway.ontology.load import load

DAY = 86_400_000
_FIRST_ONSET = 20_600  # days since 1970: spring 2026
_MASS = {"owner_log": 0.95, "vet_note": 0.9, "bowl": 0.9, "tracker": 0.9, "passage": 0.8, "hub": 1.0}
_REF = {"owner_log": "log", "vet_note": "note", "bowl": "event", "tracker": "day", "passage": "passage", "hub": "log"}

ASKED = (("scratch", "up"), ("shake", "up"), ("restless", "up"), ("intake", "down"), ("activity", "down"))
"""What is asked about: a property and its direction."""

_POULTRY = ("chicken", "turkey", "duck", "goose")
_FISH = ("salmon", "cod", "herring", "mackerel", "tuna", "sardine")
_MEAT = ("beef", "lamb", "pork", "venison", "rabbit", "egg")
_CONDITIONS = 40
_BREEDS = 12


class Ledger:
    """Edges and the evidence under them, as they are said."""

    def __init__(self):
        self.edges: dict[str, Edge] = {}
        self.evidence: dict[RecordRef, list[Evidence]] = defaultdict(list)
        self.names: dict[str, str] = {}

    def say(self, tail, relation, head, start=None, end=None, *, by="owner_log", mass=None, witness=None):
        """One witness says an edge; the edge."""
        edge = Edge(Vertex(tail), relation, Vertex(head), start, end)
        return self.testify(edge, by=by, mass=Mass(_MASS[by]) if mass is None else mass, witness=witness)

    def testify(self, edge, *, by, mass, witness=None):
        """Evidence of a witness on an edge, whatever it says."""
        pieces = self.evidence[edge.ref]
        record = RecordRef(f"{_REF[by]}:{by}-{len(self.edges)}-{len(pieces)}")
        reliability = load().reliability[by]
        pieces.append(Evidence(edge.ref, record, mass, witness or by, reliability))
        self.edges[edge.ref.text] = edge
        return edge

    def label(self, food, phrases):
        """What the label of a food says, read as the product reads it."""
        code = f"40{sum(ord(letter) for letter in food):05d}{len(self.edges):06d}"
        learned = read_label(code, ", ".join(phrases), title=food, source="made up", food=Vertex(food))
        for edge in learned.edges:
            self.edges[edge.ref.text] = edge
        for piece in learned.evidence:
            self.evidence[piece.edge].append(piece)

    def holding(self, food, source, relation="contains"):
        """The edge from a food to what its label names; it must have been read so."""
        for kind in ("species", "group"):
            edge = Edge(Vertex(food), relation, Vertex(f"{kind}:{source}"))
            if edge.ref.text in self.edges:
                return edge
        raise AssertionError(f"the label of {food} must be read as {relation} {source}, is not")


def _drawn(rng, items, count):
    return rng.sample(list(items), min(count, len(items)))


class Town(Ledger):
    """What a seed's household shares over all its scenarios. Made once, never changed."""

    def __init__(self, seed):
        super().__init__()
        self.rng = rng = random.Random(f"town {seed}")
        self.host, self.other_host = ("dog", "cat") if seed % 4 else ("cat", "dog")
        self.property, direction = ASKED[seed % len(ASKED)]
        self.sign = load().sign_of(self.property, direction)
        self.pet, *self.others = (f"pet:{name}" for name in _drawn(rng, ("max", "luna", "milo", "bella", "rex"), 4))
        start = (_FIRST_ONSET + rng.randrange(400)) * DAY
        self.onset = Interval(start, start + rng.randint(1, 3) * DAY)
        self.now_ms = start + 9 * DAY + rng.randrange(DAY // 2)
        self.observed = load().properties[self.property]
        self._things()
        self._books()
        self._animals()
        self._elsewhere()

    def at(self, days):
        """So many days from the start of the onset, at some hour of it."""
        return self.onset.start_ms + int(days * DAY)

    def _things(self):
        rng, known = self.rng, load_ingredients()
        poultry, fish, meat = (_drawn(rng, names, len(names)) for names in (_POULTRY, _FISH, _MEAT))
        self.poultry, self.sibling = poultry[0], poultry[1]
        self.allergens = [poultry[0], fish[0], *meat[:3]]
        self.harmless = [poultry[1], *fish[1:3], *meat[3:]]
        self.plants = sorted(name for name, source in known.sources.items() if source.kind == "plant")
        self.food_conditions = ["condition:food_allergy", "condition:food_intolerance"]
        self.parasitic = "condition:flea_allergy"
        self.diseases = ["condition:atopic_dermatitis", "condition:hypothyroidism", "condition:skin_infection"]
        self.neutral = [f"condition:other_{number}" for number in range(_CONDITIONS)]
        self.breeds = [f"breed:breed_{number}" for number in range(_BREEDS)]
        self.breed = self.breeds[0]

    def _books(self):
        """Which source causes which condition, which shows as which sign; the asked sign by design."""
        rng, host, other = self.rng, self.host, self.other_host
        signs = [f"sign:{name}" for name in load().signs if f"sign:{name}" != self.sign]
        for condition in (*self.food_conditions, self.parasitic, *self.diseases):
            self.book(condition, f"has_sign[{host}]", self.sign)
            self.book(condition, f"has_sign[{other}]", self.sign)
            self.book(condition, f"has_sign[{host}]", rng.choice(signs))
        self.book(self.food_conditions[0], f"base_rate[{host}]", self.sign)
        for condition in self.neutral:
            for sign in _drawn(rng, signs, rng.randint(2, 5)):
                self.book(condition, f"has_sign[{host}]", sign)
            self.book(condition, f"has_sign[{other}]", self.sign)
            self.book(condition, f"base_rate[{host}]", self.sign)  # how often, said of nothing that shows so
        for number, source in enumerate(self.allergens):
            self.book(f"species:{source}", f"may_cause[{host}]", self.food_conditions[0])
            if number == 1:
                self.book(f"species:{source}", f"may_cause[{host}]", self.food_conditions[1])
        for source in (*self.harmless, *_drawn(rng, self.plants, 10)):
            self.book(f"species:{source}", f"may_cause[{host}]", rng.choice(self.neutral))
            self.book(f"species:{source}", f"may_cause[{other}]", self.food_conditions[0])
        for breed in self.breeds:
            for condition in _drawn(rng, (*self.neutral, *self.diseases), rng.choice((4, 8, 20))):
                self.book(breed, f"prone_to[{host}]", condition)
        self._books_on_care()

    def _books_on_care(self):
        host = self.host
        for agent in ("agent:flea", "agent:mite"):
            self.book(agent, f"may_cause[{host}]", self.parasitic)
        for agent in ("agent:worm", "agent:germ"):
            self.book(agent, f"may_cause[{host}]", self.neutral[0])
        for med in ("med:spot_on", "med:flea_tablet"):
            self.book(med, f"prevents[{host}]", self.parasitic)
        for med in ("med:remedy", "med:other_remedy"):
            self.book(med, f"treats[{host}]", self.diseases[0])
        self.book("med:wormer", f"prevents[{host}]", self.neutral[0])
        self.book("med:mild", f"treats[{host}]", self.neutral[1])
        self.book("med:mild", f"side_effect[{self.other_host}]", self.sign)
        for med in ("med:harsh", "med:collar"):
            self.book(med, f"side_effect[{host}]", self.sign)
        for place in ("place:kennel", "place:daycare"):
            self.say(place, "has_agent", "agent:flea")
        self.say("place:farm", "of_kind", "place:boarding_kennel", by="hub")
        self.book("place:boarding_kennel", "has_agent", "agent:mite")
        self.say("place:clinic", "has_agent", "agent:germ")
        self.book("visitor:dog", "has_agent", "agent:flea")

    def book(self, tail, relation, head):
        """One to three passages of one or two books."""
        for _ in range(self.rng.randint(1, 3)):
            edge = self.say(tail, relation, head, by="passage", witness=f"document:{self.rng.randrange(2)}")
        return edge

    def _animals(self):
        """Breeds, devices, series and old notes; the asked pet's breed is prone to what shows the sign."""
        rng, ontology = self.rng, load()
        for pet in (self.pet, *self.others):
            name = pet.partition(":")[2]
            self.say(pet, "of_species", f"species:{self.host}")
            self.say(pet, "of_breed", self.breed if pet == self.pet else rng.choice(self.breeds))
            for device in ("tracker", "bowl"):
                self.say(pet, "uses_device", f"device:{device}-{name}", self.at(-400), None)
            for observed in ontology.properties.values():
                signs = [sign for sign in (observed.sign_up, observed.sign_down) if sign is not None]
                if signs and {"tracker", "food_bowl"} & set(observed.captured_by):
                    device = "tracker" if "tracker" in observed.captured_by else "bowl"
                    series = f"series:{name}.{observed.noun}"
                    self.say(pet, "has_series", series, by="tracker")
                    self.say(f"device:{device}-{name}", "captures", series, by="tracker")
                    for sign in signs:
                        self.say(series, "indicates", sign, by="hub")
        for disease in self.diseases[:2]:
            self.book(self.breed, f"prone_to[{self.host}]", disease)
        self.say(self.pet, "diagnosed_with", self.neutral[2], self.at(-500), None, by="vet_note")
        self.say(self.pet, "exhibits", self.sign, self.at(-800), self.at(-799), by="vet_note")

    def _elsewhere(self):
        """What the other pets do: the very changes that would explain the sign, but in them."""
        rng = self.rng
        for pet in self.others:
            old, new = (f"food:theirs_{pet.partition(':')[2]}_{number}" for number in range(2))
            day = rng.uniform(-12, -2)
            self.label(old, [*_drawn(rng, self.harmless, 1), *self.fillers(rng.randint(9, 16))])
            self.label(new, [*_drawn(rng, self.allergens, 2), *self.fillers(rng.randint(9, 22))])
            self.say(pet, "ate", old, self.at(-300), self.at(day), by="bowl")
            self.say(pet, "ate", new, self.at(day), None, by="bowl")
            self.say(pet, "takes", rng.choice(("med:harsh", "med:remedy")), self.at(-60), self.at(day))
            self.say(pet, "was_at", "place:kennel", self.at(day), self.at(day + 1))
            self.say(pet, "visited_by", "visitor:dog", self.at(day), self.at(day + 0.5))

    def fillers(self, count):
        return [name.replace("_", " ") for name in _drawn(self.rng, self.plants, count)]

    @cached_property
    def folded(self) -> dict[str, Link]:
        return {link.edge.ref.text: link for link in fold_all(self.edges.values(), self.evidence)}


@cache
def town(seed) -> Town:
    return Town(seed)


@dataclass(frozen=True)
class World:
    """What the hub knows when it is asked, and what only the scenario knows.

    ``truth`` is a tuple of (cause, chain of edge references); empty where nothing on file is
    the cause. ``wrong`` are hypotheses the owner marked.
    """

    kind: str
    seed: int
    links: tuple[Link, ...]
    pet: Vertex
    sign: Vertex
    host: str
    other_host: str
    onset: Interval
    now_ms: int
    wrong: frozenset[str]
    truth: tuple[tuple[str, tuple[RecordRef, ...]], ...]

    @property
    def causes(self) -> frozenset[str]:
        return frozenset(cause for cause, _ in self.truth)


class Home(Ledger):
    """One pet's own story over a town: what it ate and took, where it was, what was marked."""

    def __init__(self, seed, story):
        super().__init__()
        self.town = town(seed)
        self.rng = random.Random(f"{story} {seed}")
        self.pet, self.sign, self.host = self.town.pet, self.town.sign, self.town.host
        self.onset, self.at = self.town.onset, self.town.at
        self.walls: set[RecordRef] = set()
        self.wrong: set[str] = set()
        self._foods = 0

    def day(self, first=-13.0, last=-0.5):
        """A day of the weeks before the sign began."""
        return self.rng.uniform(first, last)

    def after(self, days):
        """Days from the onset's start to so many days after its end and the slack it is given."""
        return (self.onset.length_ms + min(3 * DAY, self.onset.length_ms)) / DAY + days

    def allergen(self, *, but=()):
        return self.rng.choice([source for source in self.town.allergens if source not in but])

    def harmless(self, *, but=()):
        return self.rng.choice([source for source in self.town.harmless if source not in but])

    def food(self, *phrases, plants=None):
        """A food whose label lists these among its vegetables; its vertex name."""
        self._foods += 1
        name = f"food:food_{self._foods}"
        if phrases:
            count = self.rng.randint(8, 18) if plants is None else plants
            fillers = [plant.replace("_", " ") for plant in _drawn(self.rng, self.town.plants, count)]
            self.label(name, [*phrases, *fillers])
        return name

    def eats(self, food, start, end=None, *, pet=None):
        """A feeding between two days counted from the onset."""
        until = None if end is None else self.at(end)
        return self.say(pet or self.pet, "ate", food, self.at(start), until, by="bowl", witness="device:bowl")

    def switch(self, new, *, day=None, old=None):
        """From a long-standing food to a new one; the edge of the new feeding."""
        day = self.day() if day is None else day
        old = self.food(self.harmless()) if old is None else old
        self.eats(old, -self.rng.uniform(90, 300), day)
        return self.eats(new, day)

    def known(self, tail, relation, head):
        """An edge of the books."""
        return self.town.edges[Edge(Vertex(tail), relation, Vertex(head)).ref.text]

    def book_of_group(self):
        """A book that speaks of shellfish, and names none."""
        group = "group:shellfish"
        self.say(group, f"may_cause[{self.host}]", self.town.food_conditions[0], by="passage", witness="document:0")

    def series_of(self, pet):
        return sorted(e.head.name for e in self.town.edges.values() if (e.tail.name, e.relation) == (pet, "has_series"))

    def indicates(self, series):
        """Whether the series is one of those that show the sign."""
        return Edge(Vertex(series), "indicates", Vertex(self.sign)).ref.text in self.town.edges

    def tails(self, source):
        """From a source or agent to the sign, by every condition the books join them with."""
        found = []
        for condition in (*self.town.food_conditions, self.town.parasitic):
            ref = Edge(Vertex(source), f"may_cause[{self.host}]", Vertex(condition)).ref.text
            cause = self.edges.get(ref) or self.town.edges.get(ref)
            if cause is not None:
                found.append((cause, self.shows(condition)))
        return found

    def shows(self, condition):
        return self.known(condition, f"has_sign[{self.host}]", self.sign)

    def by_food(self, ate, source, relation="contains"):
        """The true chains of a feeding by one source on its label."""
        held = self.holding(ate.head.name, source, relation)
        return [(ate.head.name, (ate, held, *tail)) for tail in self.tails(held.head.name)]

    def by_agent(self, exposure, *carries):
        """The true chains of a stay or visit by what it carries."""
        return [
            (exposure.head.name, (exposure, *carries, *tail))
            for carried in carries[-1:]
            for tail in self.tails(carried.head.name)
        ]

    def world(self, kind, seed, paths) -> World:
        """Everything folded, with the truth as references."""
        home = self.town
        changed = {ref: home.edges.get(ref, edge) for ref, edge in self.edges.items()}
        evidence = {
            edge.ref: [*home.evidence.get(edge.ref, ()), *self.evidence.get(edge.ref, ())] for edge in changed.values()
        }
        walled = {ref.text: home.edges[ref.text] for ref in self.walls if ref.text in home.edges}
        own = fold_all({**walled, **changed}.values(), {**home.evidence, **evidence}, frozenset(self.walls))
        links = {**home.folded, **{link.edge.ref.text: link for link in own}}
        return World(
            kind=kind,
            seed=seed,
            links=tuple(links[ref] for ref in sorted(links)),
            pet=Vertex(self.pet),
            sign=Vertex(self.sign),
            host=self.host,
            other_host=home.other_host,
            onset=self.onset,
            now_ms=home.now_ms,
            wrong=frozenset(self.wrong),
            truth=tuple((cause, tuple(edge.ref for edge in path)) for cause, path in paths),
        )
