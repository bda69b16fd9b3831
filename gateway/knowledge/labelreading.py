"""What a label declares: items in, sources with form, part, percentage and span out.

Each entry of the scanned list is read once, parents before children: its negations and
warnings, the sources and groups it names, and the forms that go with each of them. A form may
stand on either side of its source, in its bracket, or over the whole bracket ("oils and fats
(salmon)"). A group whose bracket names all its members is no open set any more. Nothing here
makes an edge, and nothing written on a label is ever followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.knowledge.labeltext import Item, LabelText, find_phrase, scan_label
from gateway.knowledge.tables import phrases
from gateway.ontology.ingredients import Form, Ingredients, Role, Term, fold_words, load_ingredients

__all__ = ["Declared", "LabelReading", "parse_label"]

# Percentages on labels are rounded to whole numbers: sums agree within half a point each.
_ROUNDING = 0.6
# An entry of more words is prose; a bare "liver" inside it names no ingredient.
_LONGEST_PART_ENTRY = 5
# Entries one negation is followed over; "no added X, Y, Z or W" lists stay below it.
_LONGEST_DENIAL = 12
_CONNECTIVES = frozenset({"de", "del", "of", "from", "von", "d", "la", "le"})
_MARKS = frozenset({Role.FORM, Role.PART, Role.NEUTRAL_PART})
_ADDITIONS = frozenset({"with", "mit", "con", "avec"})
_CLAUSE_ENDS = frozenset({"but", "only", "aber", "pero", "mais", "sondern", "just", "nur", "solo", "instead", "rather"})
_NO_MEAT = frozenset({"egg", "dairy", "goat_milk"})
_MILKED = frozenset({"beef", "goat", "lamb", "water_buffalo", "yak", "camel"})
_ALSO_FOODS = frozenset({"mais"})
"""French "but" is German maize: it ends a clause only within its own entry."""


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
    vegan: bool = False


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
        # A denial holds up to this entry, a cross-contact warning to the end of this sentence.
        self._denied_until = -1
        self._trace_sentence = -1
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
        terms += self._german_game(words, above)
        self._open_words.append(bool(find_phrase(folded, phrases("labels.toml", "open_set", "words"))))
        denied = self._denied_spans(index, words, above)
        trace = above.trace or self._is_trace(index, folded)
        live: list[Term] = []
        for term in terms:
            imitated = self._is_imitated(term, words, above)
            if not imitated and not any(start <= term.start < end for start, end in denied):
                live.append(term)
            elif term.role in {Role.SOURCE, Role.GROUP}:
                self.denied.append((term.id, *self._label.original(item, term.start, term.end)))
        entries = self._entries(item, own, live, above)
        if entries and self._says_whose(index, entries, above):
            entries = []
        if item.parent is not None and not entries and self._is_cut(own, live):
            self._cut_parent(item.parent)
        if trace:
            entries = [replace(entry, trace=True) for entry in entries]
        self.declared.append(entries)
        passes = bool(denied) and not live and not self._heads_what_is_in(item, terms)
        vegan = above.vegan or bool(find_phrase(folded, phrases("labels.toml", "negation", "vegan")))
        below = self._passed_down(live, entries, above, denied=passes, trace=trace)
        self._passes.append(replace(below, vegan=vegan and not entries))
        if not terms and any(len(word) > 1 for word in folded):
            self.unread.append((item.start, item.end))

    def _heads_what_is_in(self, item: Item, terms: Sequence[Term]) -> bool:
        """Whether a denial has named what it denies before a colon: "no chicken: salmon, rice" holds salmon,
        "free from: salmon" does not.
        """
        names = any(term.role in {Role.SOURCE, Role.GROUP} for term in terms)
        return names and self._label.text[item.end :][:4].lstrip().startswith(":")

    def _german_game(self, words: Sequence[tuple[str, int, int]], above: _Inherited) -> tuple[Term, ...]:
        """German "Wild" is game where meat is being named ("Fleisch (4 % Wild)"); elsewhere it is an English word."""
        if words and words[-1][0] == "wild" and any(entry.source == "meat" for entry in above.entries):
            return (Term(*words[-1][1:], Role.GROUP, "game"),)
        return ()

    def _is_imitated(self, term: Term, words: Sequence[tuple[str, int, int]], above: _Inherited) -> bool:
        """Whether an animal's word stands after "vegan" or under it, or after "vegetarian" (eggs and milk stay)."""
        if term.role in {Role.SOURCE, Role.GROUP}:
            if self._known.kind_of(term.id) != "animal":
                return False
        elif term.role is not Role.PART:
            return False
        diets = ("vegan",) if term.id in _NO_MEAT else ("vegan", "vegetarian")
        said = [word for word, start, _ in words if start < term.start]
        return above.vegan or any(find_phrase(said, phrases("labels.toml", "negation", diet)) for diet in diets)

    def _is_cut(self, own: str, terms: Sequence[Term]) -> bool:
        short = sum(1 for _ in fold_words(own)) <= _LONGEST_PART_ENTRY
        return short and any(t.role is Role.FORM and t.id == Form.HYDROLYSED for t in terms)

    def _says_whose(self, index: int, entries: Sequence[Declared], above: _Inherited) -> bool:
        """A bracket that only names an animal says whose milk or egg it is: "yoghurt (goat)", "egg (hen)"."""
        items = self._label.items
        alone = index + 1 == len(items) or items[index + 1].parent != items[index].parent
        if not alone or items[index].parent != index - 1 or len(entries) != 1 or len(above.entries) != 1:
            return False
        animal, product = entries[0].source, above.entries[0].source
        if product == "dairy" and animal == "goat":
            self.declared[index - 1] = [replace(above.entries[0], source="goat_milk")]
        lays = "poultry" in {animal, *self._known.ancestors(animal)}
        return (product == "dairy" and animal in _MILKED) or (product == "egg" and lays)

    def _cut_parent(self, parent: int) -> None:
        """A bracket that only says "hydrolysed" speaks about the entry before it."""
        self.declared[parent] = [replace(entry, form=Form.HYDROLYSED) for entry in self.declared[parent]]

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
        folded = [word for word, _, _ in words]
        end = words[-1][2] if words else 0
        if above.denied or index <= self._denied_until:
            return [(0, end)]
        spans: list[tuple[int, int]] = []
        for first, past in find_phrase(folded, phrases("labels.toml", "negation", "before")):
            if self._is_number_sign(words, first):
                continue
            stop = next((words[i][1] for i in range(past, len(words)) if folded[i] in _CLAUSE_ENDS), end)
            spans.append((words[first][1], stop))
            if stop == end:
                self._denied_until = max(self._denied_until, self._last_denied(index, first))
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
        if self._trace_sentence == item.sentence:
            return True
        if find_phrase(folded, phrases("labels.toml", "trace", "before")):
            self._trace_sentence = item.sentence
            return True
        return False

    def _last_denied(self, index: int, first: int) -> int:
        """The last entry a negation goes on to: "no beef, chicken or dairy" denies three.

        It goes on to the entry that joins with "or" or "and", or, where it opens its sentence,
        to the sentence's end; never past an entry with a percentage or one that says "with".
        """
        items = self._label.items
        item = items[index]
        last = index
        for at in range(index + 1, min(len(items), index + 1 + _LONGEST_DENIAL)):
            later = items[at]
            folded = [word for word, _, _ in fold_words(self._label.own(later))]
            if later.sentence != item.sentence or later.parent != item.parent:
                break
            if later.percent is not None or len(folded) > _LONGEST_PART_ENTRY + 1:
                return index
            if (_CLAUSE_ENDS - _ALSO_FOODS) & set(folded):
                return last
            if _ADDITIONS & set(folded[:1]):
                return last if item.opens_sentence and first == 0 else index
            last = at
            if self._joins & set(folded):
                return at
        return last if item.opens_sentence and first == 0 else index

    # --- sources and forms ----------------------------------------------------------------

    def _entries(self, item: Item, own: str, terms: Sequence[Term], above: _Inherited) -> list[Declared]:
        """The sources of one item's own text, with their forms."""
        all_named = [t for t in terms if t.role in {Role.SOURCE, Role.GROUP}]
        named = self._without_generic(all_named, is_open=self._open_words[-1])
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
                own_forms = {t.id for t in terms if t.role is Role.FORM}
                cut = Form.HYDROLYSED in above.forms or Form.HYDROLYSED in own_forms
                form = Form.HYDROLYSED if cut else Form.PLAIN
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

    def _without_generic(self, named: list[Term], *, is_open: bool) -> list[Term]:
        """Drop "meat" beside a named source, and a group's word beside its own member
        ("whole grain corn"), unless the words say that there are others ("including").
        """
        sources = [t for t in named if t.role is Role.SOURCE]
        kept: list[Term] = []
        for term in named:
            generic = term.role is Role.GROUP and term.bare and len(named) > 1 and term.id == "meat"
            member = any(term.id in self._known.ancestors(s.id) for s in sources)
            repeats = term.role is Role.GROUP and member and not is_open
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
