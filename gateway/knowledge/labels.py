"""A pasted label in, edges with receipts out: what is in the food, what may be, what is not.

``read_label`` joins upward only: product lists ingredient, ingredient derived from species,
species is a group; and, for the household's walk, food contains or may contain species. Every
join cites the record and the character span it was read from. A label that names no species
("poultry meal") becomes one ``may_contain`` edge per member of the set, true = 1 / size before
the label's reliability. Fat, oil and hydrolysed forms keep relations of their own and are
never joined as "contains". A negated word ("no chicken", "chicken-free") makes no edge.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from gateway.knowledge.labelreading import Declared, LabelReading, parse_label
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.ontology.ingredients import Form, Ingredients, load_ingredients
from gateway.ontology.load import load
from gateway.stored import Document, Learned, TextRecord

__all__ = ["energy_of", "read_label", "sha8"]

# "May contain traces" is a warning about the line, not a recipe: far below any declared set.
_TRACE_MASS = 0.05
# Pure fat: no food holds more energy.
_MOST_KCAL_PER_KG = 9000.0
_ENERGY = re.compile(
    r"(?P<number>\d{1,4}(?:[ ,.]\d{1,3})?)\s{0,2}kcal(?:\s{0,2}ME)?\s{0,2}"
    r"(?:/|per|pro|por)\s{0,2}(?P<per>1\s?kg|kg|100\s?g)",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,2}[,.]\d{3}")


def sha8(text: str) -> str:
    """The first eight hex digits of the text's SHA-256: which edition a citation means."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def read_label(
    code: str,
    text: str,
    *,
    title: str,
    source: str,
    food: Vertex | None = None,
    ingredients: Ingredients | None = None,
) -> Learned:
    """What a label says, as records, edges and evidence.

    Parameters
    ----------
    code : str
        The product's code (barcode), part of every citation.
    text : str
        The ingredient list exactly as pasted or imported.
    title, source : str
        Shown with the record: the product's name, and where its text came from.
    food : Vertex | None
        The household's food this label belongs to; without one only product edges are made.
    """
    known = load_ingredients() if ingredients is None else ingredients
    reading = parse_label(text, known)
    return _Joins(code, text, known, reading, food).learned(title, source)


def energy_of(text: str) -> float | None:
    """Energy in kcal per kg, where the label prints it (``3,750 kcal/kg``, ``375 kcal/100 g``)."""
    found = _ENERGY.search(text)
    if found is None:
        return None
    digits = found["number"].replace(" ", "")
    if _GROUPED.fullmatch(digits):
        digits = digits.replace(",", "").replace(".", "")
    kcal = float(digits.replace(",", ".")) * (10.0 if found["per"].startswith("100") else 1.0)
    return kcal if 0.0 < kcal <= _MOST_KCAL_PER_KG else None


class _Joins:
    """Collects edges and the evidence under them; one label is one witness."""

    def __init__(self, code: str, text: str, known: Ingredients, reading: LabelReading, food: Vertex | None) -> None:
        self._key = f"{code}@{sha8(text)}"
        self._code, self._text, self._known, self._reading, self._food = code, text, known, reading, food
        self._product = Vertex(f"product:{code}")
        self._reliability = load().reliability["label"]
        self._whole = RecordRef(f"label:{self._key}#0-{len(text)}")
        self._records: dict[RecordRef, TextRecord] = {}
        self._edges: dict[Edge, None] = {}
        self._evidence: dict[tuple[RecordRef, RecordRef], Evidence] = {}

    def learned(self, title: str, source: str) -> Learned:
        document = Document(f"label:{self._key}", "product", title, source, self._code, self._facts())
        self._records[self._whole] = TextRecord(
            self._whole, "label", title, self._text, document.id, object=self._code, facts=self._unread()
        )
        if self._food is not None:
            self._join(Edge(self._food, "labelled_as", self._product), self._whole, (0, len(self._text)), 1.0)
        for found in self._reading.declared:
            self._list(found, title, document.id)
        if self._food is not None:
            self._household(self._food)
        # The label as a whole comes first: it is what a reader opens.
        whole, *spans = self._records.values()
        records = (whole, *sorted(spans, key=lambda record: record.ref))
        return Learned(document, records, tuple(sorted(self._edges, key=_edge_key)), tuple(self._evidence.values()))

    def _facts(self) -> tuple[tuple[str, str], ...]:
        reading = self._reading
        facts = [("lists", str(len(reading.list_titles)))]
        facts += [("list", name) for name in reading.list_titles if name]
        facts += [("for", host) for host in sorted(reading.hosts)]
        energy = energy_of(self._text)
        if energy is not None:
            facts.append(("kcal_per_kg", f"{energy:g}"))
        return tuple(facts)

    def _unread(self) -> tuple[tuple[str, str], ...]:
        """Entries nothing was linked to, kept with their span."""
        return tuple(("unlinked", f"{start}-{end} {self._text[start:end]}") for start, end in self._reading.unread)

    def _list(self, found: Declared, title: str, document: str) -> None:
        """Product lists ingredient, ingredient from species, species up to its groups."""
        if found.trace:
            return
        record = self._cite(found, title, document)
        span = (found.start, found.end)
        ingredient = Vertex(f"ing:{found.ingredient}")
        self._join(Edge(self._product, "lists", ingredient), record, span, 1.0)
        top = self._vertex(found.source)
        if not found.of_set or self._known.groups[found.source].named:
            self._join(Edge(ingredient, found.form.relation, top), record, span, 1.0)
            self._join_upward(found.source, record, span)

    def _join_upward(self, name: str, record: RecordRef, span: tuple[int, int]) -> None:
        for below, above in _upward(self._known, name):
            self._join(Edge(self._vertex(below), "is_a", self._vertex(above)), record, span, 1.0)

    def _household(self, food: Vertex) -> None:
        """Food contains species; food may contain each member of an unnamed set."""
        plain = [d for d in self._reading.declared if d.form in {Form.PLAIN, Form.MEAL}]
        everywhere = len(self._reading.list_titles)
        certain = {
            d.source
            for d in plain
            if not d.trace
            and not d.of_set
            and {e.in_list for e in plain if e.source == d.source} == set(range(everywhere))
        }
        for found in self._reading.declared:
            record = RecordRef(f"label:{self._key}#{found.start}-{found.end}")
            span = (found.start, found.end)
            for name, mass in self._may(found, certain, everywhere):
                if found.trace:
                    self._cite(found, self._code, f"label:{self._key}")
                relation = "contains" if mass == 1.0 else "may_contain"
                self._join(Edge(food, relation, self._vertex(name)), record, span, mass)
                self._join_upward(name, record, span)
                if mass == 1.0:
                    self._contains_groups(food, name, record, span)

    def _contains_groups(self, food: Vertex, name: str, record: RecordRef, span: tuple[int, int]) -> None:
        """What contains salmon contains fish: the join runs upward, never down."""
        for group in self._known.ancestors(name):
            if self._known.groups[group].named:
                self._join(Edge(food, "contains", self._vertex(group)), record, span, 1.0)

    def _may(self, found: Declared, certain: set[str], lists: int) -> Iterable[tuple[str, float]]:
        """The species one entry speaks of, each with its mass before discounting."""
        unnamed_fat = found.of_set and found.form is Form.FAT
        if found.form not in {Form.PLAIN, Form.MEAL} and not unnamed_fat:
            return ()
        if found.trace:
            names = self._known.groups[found.source].members if found.of_set else (found.source,)
            return tuple((name, _TRACE_MASS) for name in names if name not in certain)
        if found.source in certain:
            return ((found.source, 1.0),)
        if not found.of_set:
            in_lists = {d.in_list for d in self._reading.declared if d.source == found.source}
            return ((found.source, len(in_lists) / lists),)
        group = self._known.groups[found.source]
        named = ((group.id, 1.0),) if group.named and not unnamed_fat else ()
        return (*named, *((m, 1.0 / len(group.members)) for m in group.members if m not in certain))

    def _cite(self, found: Declared, title: str, document: str) -> RecordRef:
        ref = RecordRef(f"label:{self._key}#{found.start}-{found.end}")
        if ref not in self._records:
            facts = [("from", str(found.start)), ("to", str(found.end))]
            if found.percent is not None:
                facts.append(("percent", f"{found.percent:g}"))
            text = self._text[found.start : found.end]
            self._records[ref] = TextRecord(ref, "label", title, text, document, object=self._code, facts=tuple(facts))
        return ref

    def _join(self, edge: Edge, record: RecordRef, span: tuple[int, int], mass: float) -> None:
        self._edges[edge] = None
        witness = f"label:{self._code}"
        evidence = Evidence(edge.ref, record, Mass(mass), witness, self._reliability, span)
        self._evidence.setdefault((edge.ref, record), evidence)

    def _vertex(self, name: str) -> Vertex:
        return Vertex(f"group:{name}" if name in self._known.groups else f"species:{name}")


def _upward(known: Ingredients, name: str) -> tuple[tuple[str, str], ...]:
    """The is_a pairs above a source or group."""
    chain = (name, *known.ancestors(name))
    return tuple((below, above) for below in chain for above in known.parents(below))


def _edge_key(edge: Edge) -> tuple[str, str, str]:
    return (edge.tail.name, edge.relation, edge.head.name)
