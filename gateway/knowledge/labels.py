"""A pasted label in, edges with receipts out: what is in the food, what may be, what is not.

``read_label`` joins upward only: product lists ingredient, ingredient derived from species,
species is a group; and, for the household's walk, food contains or may contain species. Every
join cites the record and the character span it was read from. A label that names no species
("poultry meal") becomes one ``may_contain`` edge per member of the set, true = 1 / size before
the label's reliability. Fat, oil and hydrolysed forms keep relations of their own and are
never joined as "contains". A negated word ("no chicken", "chicken-free") makes no edge. Text
is data: nothing written on a label is ever followed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.knowledge.labeltext import Item, LabelText, find_phrase, scan_label
from gateway.knowledge.tables import phrases
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.ontology.ingredients import Form, Ingredients, Role, Term, fold_words, load_ingredients
from gateway.ontology.load import load
from gateway.stored import Document, Learned, TextRecord

__all__ = ["Declared", "LabelReading", "energy_of", "parse_label", "read_label", "sha8"]

# "May contain traces" is a warning about the line, not a recipe: far below any declared set.
_TRACE_MASS = 0.05
# Percentages on labels are rounded to whole numbers: sums agree within half a point each.
_ROUNDING = 0.6
# An entry of more words is prose; a bare "liver" inside it names no ingredient.
_LONGEST_PART_ENTRY = 5
# Entries one negation is followed over; "no added X, Y, Z or W" lists stay below it.
_LONGEST_DENIAL = 12
# Pure fat: no food holds more energy.
_MOST_KCAL_PER_KG = 9000.0
_ENERGY = re.compile(
    r"(?P<number>\d{1,4}(?:[ ,.]\d{1,3})?)\s{0,2}kcal(?:\s{0,2}ME)?\s{0,2}"
    r"(?:/|per|pro|por)\s{0,2}(?P<per>1\s?kg|kg|100\s?g)",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,2}[,.]\d{3}")
_CONNECTIVES = frozenset({"de", "del", "of", "from", "von", "d", "la", "le"})
_MARKS = frozenset({Role.FORM, Role.PART, Role.NEUTRAL_PART})
_CLAUSE_ENDS = frozenset({"but", "only", "aber", "pero", "mais", "sondern"})


@dataclass(frozen=True, slots=True)
class Declared:
    """One source as a label declares it. ``start``/``end`` are the span in the label's text.

    ``of_set`` holds where the words name a group; ``in_list`` which list the item stands in; ``trace``
    marks a cross-contact warning.
    """

    source: str
    form: Form
    part: str | None
    start: int
    end: int
    percent: float | None
    in_list: int
    of_set: bool = False
    trace: bool = False

    @property
    def ingredient(self) -> str:
        """The ingredient's stable name: source, part, form."""
        words = [self.source]
        if self.part is not None:
            words.append(self.part)
        if self.form is not Form.PLAIN:
            words.append(self.form.value)
        return "_".join(words)


@dataclass(frozen=True, slots=True)
class LabelReading:
    """A label understood: what it declares, what it denies, and what was not understood."""

    text: str
    declared: tuple[Declared, ...]
    denied: tuple[tuple[str, int, int], ...]
    unread: tuple[tuple[int, int], ...]
    list_titles: tuple[str, ...]
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Inherited:
    """What an item passes down to the entries in its bracket."""

    forms: frozenset[Form] = frozenset()
    entries: tuple[Declared, ...] = ()
    denied: bool = False
    trace: bool = False


@dataclass(slots=True)
class _Scope:
    """A cue that reaches over the following entries of its sentence (or list level)."""

    sentence: int = -1
    denied: bool = False
    trace: bool = False


def sha8(text: str) -> str:
    """The first eight hex digits of the text's SHA-256: which edition a citation means."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


# --- reading ----------------------------------------------------------------------------------


def parse_label(text: str, ingredients: Ingredients | None = None) -> LabelReading:
    """Read a label's text. Linear in its length; never raises on any text."""
    known = load_ingredients() if ingredients is None else ingredients
    label = scan_label(text)
    reader = _Reader(label, known)
    for index in range(len(label.items)):
        reader.read(index)
    reader.settle_sets()
    words = [word for word, _, _ in fold_words(text)]
    hosts = {host for host in ("dog", "cat") if find_phrase(words, phrases("labels.toml", "host", host))}
    return LabelReading(
        text,
        tuple(found for entries in reader.declared for found in entries),
        tuple(reader.denied),
        tuple(reader.unread),
        label.titles,
        frozenset(hosts),
    )


class _Reader:
    """Goes through the items in order; what an item passes down is known before its children."""

    def __init__(self, label: LabelText, ingredients: Ingredients) -> None:
        self._label = label
        self._known = ingredients
        self._passes: list[_Inherited] = []
        self._scope = _Scope()
        self.declared: list[list[Declared]] = []
        self.denied: list[tuple[str, int, int]] = []
        self.unread: list[tuple[int, int]] = []
        self._open_words: list[bool] = []
        self._joins = frozenset(phrases("labels.toml", "negation", "joins"))

    def read(self, index: int) -> None:
        """Read one item; its parents have been read."""
        item = self._label.items[index]
        above = _Inherited() if item.parent is None else self._passes[item.parent]
        if item.parent is not None and not self._label.items[item.parent].closed:
            above = replace(above, forms=frozenset(), entries=())
        own = self._label.own(item)
        terms = self._known.find(own)
        words = list(fold_words(own))
        folded = [word for word, _, _ in words]
        self._open_words.append(bool(find_phrase(folded, phrases("labels.toml", "open_set", "words"))))
        denied = self._denied_spans(index, words, above)
        trace = above.trace or self._is_trace(index, folded)
        live: list[Term] = []
        for term in terms:
            if not any(start <= term.start < end for start, end in denied):
                live.append(term)
            elif term.role in {Role.SOURCE, Role.GROUP}:
                self.denied.append((term.id, *self._label.original(item, term.start, term.end)))
        entries = self._entries(item, own, live, above)
        if trace:
            entries = [replace(entry, trace=True) for entry in entries]
        self.declared.append(entries)
        self._passes.append(self._passed_down(live, entries, above, denied=bool(denied) and not live, trace=trace))
        if not terms and any(len(word) > 1 for word in folded):
            self.unread.append((item.start, item.end))

    def settle_sets(self) -> None:
        """Drop the "may contain" of a group whose bracket names its members in full."""
        children: dict[int, list[int]] = {}
        for index, item in enumerate(self._label.items):
            if item.parent is not None:
                children.setdefault(item.parent, []).append(index)
        for index, entries in enumerate(self.declared):
            sets = [entry for entry in entries if entry.of_set]
            if sets and self._label.items[index].closed:
                closed = {g.source for g in sets if self._is_closed(index, g.source, children.get(index, []))}
                self.declared[index] = [e for e in entries if not (e.of_set and e.source in closed)]

    # --- cues -----------------------------------------------------------------------------

    def _denied_spans(
        self, index: int, words: Sequence[tuple[str, int, int]], above: _Inherited
    ) -> list[tuple[int, int]]:
        """Spans of the item's own text under a negation."""
        item = self._label.items[index]
        folded = [word for word, _, _ in words]
        end = words[-1][2] if words else 0
        if above.denied or (self._scope.denied and self._scope.sentence == item.sentence):
            return [(0, end)]
        spans: list[tuple[int, int]] = []
        for first, past in find_phrase(folded, phrases("labels.toml", "negation", "before")):
            if self._is_number_sign(words, first):
                continue
            stop = next((words[i][1] for i in range(past, len(words)) if folded[i] in _CLAUSE_ENDS), end)
            spans.append((words[first][1], stop))
            if stop == end and self._reaches_on(index, first):
                self._scope = _Scope(item.sentence, denied=True)
        free = phrases("labels.toml", "negation", "after")
        not_free = phrases("labels.toml", "negation", "not_after")
        spans.extend(
            (0 if at == 1 else words[at - 1][1], words[at][2])
            for at in range(1, len(words))
            if folded[at] in free and not (at + 1 < len(words) and folded[at + 1] in not_free)
        )
        imitation = find_phrase(folded, phrases("labels.toml", "negation", "imitation"))
        if imitation:
            spans.append((words[imitation[0][0]][1], end))
        return spans

    def _is_number_sign(self, words: Sequence[tuple[str, int, int]], first: int) -> bool:
        return words[first][0] == "no" and first + 1 < len(words) and words[first + 1][1] - words[first][2] > 1

    def _is_trace(self, index: int, folded: list[str]) -> bool:
        item = self._label.items[index]
        if self._scope.trace and self._scope.sentence == item.sentence:
            return True
        if find_phrase(folded, phrases("labels.toml", "trace", "before")):
            self._scope = _Scope(item.sentence, trace=True)
            return True
        return False

    def _reaches_on(self, index: int, first: int) -> bool:
        """Whether a negation goes on over the next entries: "no beef, chicken or dairy".

        It does where it opens its sentence, or where a later entry of the sentence is joined
        by "or" or "and"; never past an entry that carries a percentage.
        """
        items = self._label.items
        item = items[index]
        joined = False
        for later in items[index + 1 : index + 1 + _LONGEST_DENIAL]:
            if later.sentence != item.sentence or later.parent != item.parent:
                break
            if later.percent is not None:
                return False
            folded = [word for word, _, _ in fold_words(self._label.own(later))]
            if len(folded) > _LONGEST_PART_ENTRY + 1:
                return False
            if self._joins & set(folded):
                joined = True
                break
        return joined or (item.opens_sentence and first == 0)

    # --- sources and forms ----------------------------------------------------------------

    def _entries(self, item: Item, own: str, terms: Sequence[Term], above: _Inherited) -> list[Declared]:
        """The sources of one item's own text, with their forms."""
        named = self._without_generic([t for t in terms if t.role in {Role.SOURCE, Role.GROUP}])
        parts = [t for t in terms if t.role in {Role.PART, Role.NEUTRAL_PART}]
        only_generic = all(t.role is Role.GROUP and t.id == "meat" and t.bare for t in named)
        if only_generic and (named or self._stands_for_animal(own, parts)):
            inherited = [e for e in above.entries if self._known.kind_of(e.source) == "animal"]
            spot = self._span(item, [*named, *parts])
            part = parts[0].id if parts else None
            if inherited:
                return [
                    replace(
                        e, part=part or e.part, start=spot[0], end=spot[1], percent=item.percent, in_list=item.in_list
                    )
                    for e in inherited
                ]
            if not named:
                form = Form.HYDROLYSED if Form.HYDROLYSED in above.forms else Form.PLAIN
                return [Declared("meat", form, part, *spot, item.percent, item.in_list, of_set=True)]
        forms = self._forms(own, terms, named, above)
        return [
            Declared(
                term.id,
                form,
                next((t.id for t in beside if t.role is not Role.FORM), None),
                *self._span(item, [term, *beside]),
                item.percent,
                item.in_list,
                of_set=term.role is Role.GROUP,
            )
            for term, form in zip(named, forms, strict=True)
            for beside in (self._beside(own, term, terms),)
        ]

    def _without_generic(self, named: list[Term]) -> list[Term]:
        """Drop "meat" beside a named source, and a group's word beside its own member."""
        sources = [t for t in named if t.role is Role.SOURCE]
        kept: list[Term] = []
        for term in named:
            generic = term.role is Role.GROUP and term.bare and len(named) > 1 and term.id == "meat"
            repeats = term.role is Role.GROUP and any(
                term.id in self._known.ancestors(s.id) and s.start < term.start for s in sources
            )
            if not generic and not repeats:
                kept.append(term)
        return kept

    def _stands_for_animal(self, own: str, parts: Sequence[Term]) -> bool:
        short = sum(1 for _ in fold_words(own)) <= _LONGEST_PART_ENTRY
        return short and any(t.role is Role.PART for t in parts)

    def _forms(self, own: str, terms: Sequence[Term], named: Sequence[Term], above: _Inherited) -> list[Form]:
        forms = [self._inherited_form(t.id, above) for t in named]
        for mark in terms:
            if mark.role is not Role.FORM:
                continue
            form = Form(mark.id)
            before = [i for i, t in enumerate(named) if t.start <= mark.start]
            after = [i for i, t in enumerate(named) if t.start > mark.start]
            forward = bool(after) and (not before or self._connects(own, mark, named[after[0]]))
            if form is Form.HYDROLYSED:
                reached = after or before
            elif form is Form.MEAL:
                reached = after[:1] if forward else before[-1:]
            else:
                reached = self._fat_reach(form, named, after if forward else before[::-1])
            for i in reached:
                if forms[i] in {Form.PLAIN, Form.MEAL}:
                    forms[i] = form
        return forms

    def _fat_reach(self, form: Form, named: Sequence[Term], order: Sequence[int]) -> list[int]:
        """The nearest source, and those joined to it that can have such a fat: fat of land
        animals, oil of fish and plants ("chicken and fish oil" is chicken and one oil).
        """
        reached: list[int] = []
        for i in order:
            if reached and not self._can_be(form, named[i].id):
                break
            reached.append(i)
        return reached

    def _can_be(self, form: Form, name: str) -> bool:
        swims = {"fish", "shellfish"} & {name, *self._known.ancestors(name)}
        if form is Form.FAT:
            return self._known.kind_of(name) == "animal" and not swims
        return self._known.kind_of(name) == "plant" or bool(swims)

    def _connects(self, own: str, mark: Term, source: Term) -> bool:
        between = [word for word, _, _ in fold_words(own[mark.end : source.start])]
        return bool(between) and all(word in _CONNECTIVES for word in between)

    def _inherited_form(self, name: str, above: _Inherited) -> Form:
        """A parent's form, where the parent names no other source ("oils and fats (salmon)")."""
        over = {e.source for e in above.entries}
        family = {name, *self._known.ancestors(name)}
        if over and not over & family and not any(name in self._members(e) for e in over):
            return Form.PLAIN
        for form in (Form.HYDROLYSED, Form.FAT, Form.OIL):
            if form in above.forms and (form is Form.HYDROLYSED or over or self._can_be(form, name)):
                return form
        return Form.PLAIN

    def _members(self, name: str) -> tuple[str, ...]:
        return self._known.groups[name].members if name in self._known.groups else ()

    def _beside(self, own: str, term: Term, terms: Sequence[Term]) -> list[Term]:
        """The form and part words that stand with a source: next to it, or one word away."""
        at = terms.index(term)
        beside: list[Term] = []
        for step in (-1, 1):
            edge = term
            i = at + step
            while 0 <= i < len(terms) and terms[i].role in _MARKS and self._is_near(own, edge, terms[i], step):
                beside.append(terms[i])
                edge = terms[i]
                i += step
        return beside

    def _is_near(self, own: str, edge: Term, mark: Term, step: int) -> bool:
        gap = own[mark.end : edge.start] if step < 0 else own[edge.end : mark.start]
        between = [word for word, _, _ in fold_words(gap)]
        if step < 0:
            return all(word in _CONNECTIVES for word in between)
        return len(between) <= 1 and not self._joins & set(between)

    def _span(self, item: Item, terms: Sequence[Term]) -> tuple[int, int]:
        start, end = min(t.start for t in terms), max(t.end for t in terms)
        return self._label.original(item, start, end)

    def _passed_down(
        self, terms: Sequence[Term], entries: Sequence[Declared], above: _Inherited, *, denied: bool, trace: bool
    ) -> _Inherited:
        forms = frozenset(Form(t.id) for t in terms if t.role is Role.FORM and t.id != Form.MEAL)
        if entries:
            return _Inherited(forms, tuple(entries), above.denied, trace)
        return _Inherited(forms | above.forms, above.entries, above.denied or denied, trace)

    # --- sets -----------------------------------------------------------------------------

    def _is_closed(self, index: int, group: str, children: Sequence[int]) -> bool:
        """Whether the bracket of a group names all of it.

        Without percentages naming is naming; with them, the named must add up to the whole
        ("poultry 40 % (chicken 30 %, turkey 10 %)"), else it is "4 % chicken and others".
        """
        naming = [i for i in children if any(self._belongs(e.source, group) for e in self.declared[i])]
        if not naming or self._open_words[index] or any(self._open_words[i] for i in children):
            return False
        items = self._label.items
        percents = [items[i].percent for i in naming]
        if all(percent is None for percent in percents):
            return True
        total = sum(percent for percent in percents if percent is not None)
        whole = items[index].percent
        return abs(total - 100.0) <= _ROUNDING or (whole is not None and abs(total - whole) <= _ROUNDING * len(naming))

    def _belongs(self, name: str, group: str) -> bool:
        if name == group:
            return False
        if group == "meat":
            return self._known.kind_of(name) == "animal"
        return group in self._known.ancestors(name) or name in self._members(group)


# --- edges ------------------------------------------------------------------------------------


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
