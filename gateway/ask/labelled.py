"""What labels and books say: what is in a food, which is free from it, may a pet have it.

Labels and guides are quoted, never extended: "may contain" counts as not free, a food
without a stored label is not known, and what no source speaks of is neither harmless nor
harmful. Marks of the owner are said where they would have changed the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.absent import marked_wrong
from gateway.ask.blame import exposures, say_exposures
from gateway.ask.facts import fed_now
from gateway.ask.said import Said, known, said, say, verbatim
from gateway.ask.settle import pick_bag
from gateway.ask.sources import as_said, cite, first_of, mentions, quote, quoted, subject_words
from gateway.ask.wording import joined
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.graph.belief import edge_order
from gateway.model import Food
from gateway.ontology.ingredients import Role, load_ingredients
from gateway.ontology.load import things
from gateway.ontology.recognise import tokens_of

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Link, Pet, RecordRef
    from gateway.stored import TextRecord

__all__ = ["food_ok", "ingredients", "medicine_words", "normal_of", "sources_on"]

_SHOWN = 3
_FREE = frozenset({"free", "without", "no", "frei", "ohne", "sin", "libre"})
"""How English, German and Spanish ask for what is not in a food."""
_WHICH = frozenset({"which", "welche", "welches", "cual", "cuales"})
_JOINS = frozenset({"contains", "may_contain", "lists"})
_FROM = frozenset({"derived_from", "fat_of", "hydrolysed_from", "is_a"})
_SOURCED = ("may_cause", "side_effect", "treats", "prevents", "prone_to", "has_sign", "base_rate")
"""What sources say by links, in the order it is told: causes before signs, signs before how often."""
_SENTENCES = 4


@dataclass(frozen=True, slots=True)
class _Held:
    """What one label says of one ingredient: the link that names it, or the label's own words, or neither.

    ``known`` where the tables know what the ingredient is, so that what the label does not list is not there.
    """

    ingredient: str
    link: Link | None
    maybe: bool
    words: str | None = None
    known: bool = True

    @property
    def listed(self) -> bool:
        return self.words is not None or (self.link is not None and not self.maybe)

    @property
    def absent(self) -> bool:
        return self.link is None and self.words is None


def _plain(ingredient: str) -> Said:
    return known(ingredient.partition(":")[2].replace("_", " "))


def _label_of(scene: Scene, food: Food) -> RecordRef | None:
    return None if food.code is None else scene.reader.label_of(food.code)


def ingredients(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "what's in it?", "does he get ...?", "which of ours is free from ...?"."""
    named = [s for s in question.subjects if s.startswith("food:")]
    wanted = [s for s in question.subjects if s.startswith(("ing:", "tox:"))]
    known = {f"food:{food.id}": food for food in scene.home.foods}
    words = {t.text for t in tokens_of(question.text)}
    which, free = bool(_WHICH & words), bool(_FREE & words)
    eaters = () if which else scene.pets(question.pets)
    if eaters and set(named) <= {"food:current"}:
        for pet in eaters:
            if len(eaters) > 1:
                draft.paragraph()
                draft.say(NoticeKind.SHORT, verbatim(f"{pet.name}:"))
            _given_now(scene, draft, pet, wanted, free=free)
        return
    foods = [known[name] for name in (named or sorted(known)) if name in known]
    foods += [food for name in named if name in ("food:current", "food:previous") for food in _in_bowls(scene, name)]
    labelled, unread = _by_label(scene, foods)
    if not labelled:
        _no_label(draft, unread)
        return
    if not wanted:
        _whole_labels(scene, draft, labelled)
    elif named and (eaters or len(labelled) == 1):
        _contains(scene, draft, labelled, wanted, free=free)
        for pet in eaters:
            say_exposures(scene, draft, pet, exposures(scene, pet, tuple(f"food:{food.id}" for food in labelled))[-1:])
    else:  # several foods, of nobody named: a bare yes or no would be true of one of them alone
        _which(scene, draft, labelled, wanted, free=free)
    _not_read(draft, unread)


def _given_now(scene: Scene, draft: Draft, pet: Pet, wanted: list[str], *, free: bool) -> None:
    """One pet's food of now: what its label says of the things asked about, or the whole of it."""
    held = fed_now(scene, pet)
    if not held:
        text = say("What {pet} gets now is not on file", pet=pet)
        draft.say(NoticeKind.SHORT, text, slot="food", device="food_bowl")
        pick_bag(draft)
        return
    known = {f"food:{food.id}": food for food in scene.home.foods}
    names = scene.reader.vertex_labels()
    heads = [link.edge.head.name for link in held]
    foods = [known.get(head) or Food(head.partition(":")[2], names.get(head, head)) for head in heads]
    labelled, unread = _by_label(scene, foods)
    if not labelled:
        _no_label(draft, unread)
        say_exposures(scene, draft, pet, held)
        return
    if wanted:
        _contains(scene, draft, labelled, wanted, free=free)
    else:
        _whole_labels(scene, draft, labelled)
    say_exposures(scene, draft, pet, held)
    _not_read(draft, unread)


def _by_label(scene: Scene, foods: list[Food]) -> tuple[list[Food], list[Food]]:
    """(those whose label is on file, the others)."""
    labelled = [food for food in foods if _label_of(scene, food) is not None]
    return labelled, [food for food in foods if food not in labelled]


def _no_label(draft: Draft, unread: list[Food]) -> None:
    text = say(
        "The label of {food} is not on file, so what is in it is not known",
        food=_named(unread) if unread else said("that food"),
    )
    draft.say(NoticeKind.SHORT, text, slot="label")
    draft.say(NoticeKind.NEXT, "Paste the list of ingredients and it can be read", slot="label")


def _named(foods: list[Food]) -> Said:
    return joined([verbatim(food.name) for food in foods])


def _not_read(draft: Draft, unread: list[Food]) -> None:
    if unread:
        text = say("The label of {food} is not on file, so it can't be told", food=_named(unread))
        draft.say(NoticeKind.ABSENCE, text, slot="label")


def _in_bowls(scene: Scene, name: str) -> list[Food]:
    """The foods the bowls hold now, or held before."""
    found = {}
    for pet in scene.home.pets:
        periods = scene.reader.feedings(scene.home, pet.id)
        chosen = periods[-1:] if name == "food:current" else periods[-2:-1]
        for period in chosen:
            food = scene.home.food_of(period.code, period.name)
            if food is not None:
                found[food.id] = food
    return [found[key] for key in sorted(found)]


def _whole_labels(scene: Scene, draft: Draft, foods: list[Food]) -> None:
    for food in foods:
        label = _label_of(scene, food)
        record = None if label is None else scene.reader.text_record(label)
        if label is None or record is None:
            continue
        draft.claim(
            "label",
            EvidenceClass.REFERENCE,
            say("{food}: {quote}", food=verbatim(food.name), quote=quote(record.text)),
            cite="product data",
            refs=(label,),
            about=(f"food:{food.id}",),
        )


def _contains(scene: Scene, draft: Draft, foods: list[Food], wanted: list[str], *, free: bool) -> None:
    """One food and one thing: yes by its words, maybe, or not on the label; said as asked ("free from")."""
    held = [(food, _held(scene, food, thing)) for food in foods for thing in wanted]
    listed = [one for _, one in held if one.listed]
    maybe = [one for _, one in held if one.link is not None and one.maybe]
    its = said("its label") if len(foods) == 1 else said("their labels")
    what = joined([_plain(thing) for thing in wanted], last="or")
    there = joined(list(dict.fromkeys(_plain(one.ingredient) for one in listed)))
    if free and listed:
        opening = say("Not free from {what}, by {label}", what=there, label=its)
    elif listed and len(wanted) > 1:
        opening = say("By {label}: {what}", label=its, what=there)
    elif listed:
        opening = say("Yes, by {label}", label=its)
    elif maybe:
        named = joined([_plain(one.ingredient) for one in maybe])
        opening = say("It may: the label names a group that {what} belongs to", what=named)
    elif not all(one.known for _, one in held):
        opening = (
            say("Not by that word: {label} names no {what}, which is no proof", label=its, what=what)
            if len(foods) == 1
            else say("Not by that word: {label} name no {what}, which is no proof", label=its, what=what)
        )
    elif free:
        opening = say("Free from {what}, by {label}", what=what, label=its)
    else:
        opening = say("No, by {label}", label=its)
    draft.say(NoticeKind.SHORT, opening)
    for food, one in held:
        _claim(scene, draft, food, one)
    if not listed:
        draft.say(NoticeKind.CAUTION, "A label names what the maker put in, not traces")


def _which(scene: Scene, draft: Draft, foods: list[Food], wanted: list[str], *, free: bool) -> None:
    """Which of the household's foods are free from it, or hold it; "may contain" is not free."""
    held = {food.id: [_held(scene, food, thing) for thing in wanted] for food in foods}
    clear = [food for food in foods if all(one.absent for one in held[food.id])]
    rest = [food for food in foods if food not in clear]
    what = joined([_plain(thing) for thing in wanted], last="or")
    if free:
        none = say("None of those with a label is free from {what}", what=what)
        opening = say("By their labels: {foods}", foods=_named(clear)) if clear else none
    else:
        none = say("None of those with a label lists {what}", what=what)
        opening = say("By their labels: {foods}", foods=_named(rest)) if rest else none
    draft.say(NoticeKind.SHORT, opening)
    draft.paragraph()
    for food in clear:
        _lists_none(scene, draft, food, wanted)
    for food in rest:
        for one in held[food.id]:
            if not one.absent:
                _claim(scene, draft, food, one)
    draft.say(NoticeKind.CAUTION, '"May contain" counts as not free here. A label names what was put in, not traces')


def _held(scene: Scene, food: Food, ingredient: str) -> _Held:
    """How a food's label reaches an ingredient: it contains it, may contain it, or lists a form of it."""
    names = _meant(ingredient)
    goals = {ingredient, *(f"{kind}:{name}" for name in names for kind in ("species", "group"))}
    own = _believed(scene, f"food:{food.id}")
    products = {link.edge.head.name for link in own if link.edge.relation == "labelled_as"}
    first = [*own, *(link for name in sorted(products) for link in _believed(scene, name))]
    found = [
        (link.edge.relation == "may_contain", link)
        for link in first
        if link.edge.relation in _JOINS and goals & _above(scene, link.edge.head.name)
    ]
    found.sort(key=lambda pair: (pair[0], first_of(pair[1], "label") is None, pair[1].edge.ref))
    if found:
        return _Held(ingredient, found[0][1], found[0][0])
    return _Held(ingredient, None, maybe=False, words=_on_label(scene, food, ingredient), known=bool(names))


def _meant(ingredient: str) -> tuple[str, ...]:
    """What the ingredient tables call it ("grain" is cereal, "corn" is maize); none where they don't know it."""
    word = ingredient.partition(":")[2]
    table = load_ingredients()
    if word in table.sources or word in table.groups:
        return (word,)
    role, name = table.aliases.get(tuple(word.split("_")), (None, ""))
    return (name,) if role in (Role.SOURCE, Role.GROUP) else ()


def _on_label(scene: Scene, food: Food, ingredient: str) -> str | None:
    """The label's own words for it, where they stand there and the tables made nothing of them."""
    label = _label_of(scene, food)
    record = None if label is None else scene.reader.text_record(label)
    if record is None:
        return None
    forms = {tuple(form.split(" ")) for form, rs in things().lexicon.forms() for r in rs if r.target == ingredient}
    have = tokens_of(record.text)
    for form in sorted({tuple(_plain(ingredient).split(" ")), *forms}, key=lambda words: (-len(words), words)):
        for at in range(len(have) - len(form) + 1):
            if tuple(token.text for token in have[at : at + len(form)]) == form:
                return record.text[have[at].start : have[at + len(form) - 1].end]
    return None


def _believed(scene: Scene, tail: str) -> list[Link]:
    return [link for link in scene.on_file.leaving(tail) if link.evidence and link.belief > 0.0]


def _above(scene: Scene, name: str) -> set[str]:
    """A thing and everything it comes from or belongs to."""
    reached, todo = {name}, [name]
    while todo:
        for link in _believed(scene, todo.pop()):
            if link.edge.relation in _FROM and link.edge.head.name not in reached:
                reached.add(link.edge.head.name)
                todo.append(link.edge.head.name)
    return reached


def _claim(scene: Scene, draft: Draft, food: Food, one: _Held) -> None:
    """What the label says of it, in its own words."""
    label = _label_of(scene, food)
    if one.words is not None and label is not None:
        draft.claim(
            "label_lists",
            EvidenceClass.REFERENCE,
            say('{food}: its label lists "{words}"', food=verbatim(food.name), words=verbatim(one.words)),
            cite="product data",
            refs=(scene.reader.label_part(label, one.words) or label,),
            about=(f"food:{food.id}", one.ingredient),
        )
        return
    piece = None if one.link is None else first_of(one.link, "label")
    if one.link is None or piece is None:
        _lists_none(scene, draft, food, [one.ingredient])
        return
    text = say('{food}: its label lists "{words}"', food=verbatim(food.name), words=quoted(scene, piece))
    if one.maybe:
        text = say("{text}, which may contain {what}", text=text, what=_plain(one.ingredient))
    marked_wrong(scene, draft, (one.link,))
    draft.claim(
        "label_lists",
        EvidenceClass.REFERENCE,
        text,
        cite="product data",
        refs=(piece.record,),
        about=(f"food:{food.id}", one.ingredient),
    )


def _lists_none(scene: Scene, draft: Draft, food: Food, wanted: list[str]) -> None:
    label = _label_of(scene, food)
    if label is None:
        return
    draft.claim(
        "label_lists_none",
        EvidenceClass.REFERENCE,
        say(
            "{food}: its label lists no {what}",
            food=verbatim(food.name),
            what=joined([_plain(thing) for thing in wanted], last="or"),
        ),
        cite="product data",
        refs=(label,),
        about=(f"food:{food.id}", *wanted),
    )


# --- guides ------------------------------------------------------------------------------------------


def food_ok(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "can he have it?": what sources say; without one, a careful no answer."""
    said = _sentences_naming(scene, question)
    own = _in_notes(scene, question)
    asked = _asked_words(scene, question)
    mine = [f for f in scene.home.foods if f"food:{f.id}" in question.subjects and _label_of(scene, f) is not None]
    if said or own or mine:
        text = say("No yes or no from here; this is what is on file about {what}", what=asked)
        draft.say(NoticeKind.SHORT, text, slot="vet")
    else:
        text = say("I can't say: no source on file says anything about {what}", what=asked)
        draft.say(NoticeKind.SHORT, text, slot="source")
    draft.paragraph()
    _whole_labels(scene, draft, mine)
    for entry in own[-_SHOWN:]:
        draft.claim(
            "record",
            EvidenceClass.RECORDED,
            quote(entry.text),
            cite=cite(scene, entry.ref),
            refs=(entry.ref,),
            about=() if entry.pet is None else (f"pet:{entry.pet}",),
        )
    for entry in said[:_SHOWN]:
        _passage(scene, draft, entry, question.subjects)
    draft.paragraph()
    draft.say(
        NoticeKind.CAUTION,
        "Ask your vet before giving something new, above all beside a diet or medicine"
        if said
        else "That does not make it harmless. Ask your vet before giving something new, above all beside a diet or "
        "medicine",
    )


def medicine_words(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer what medicines do beside: what sources say, and who alone can change one."""
    sources_on(scene, question, draft)
    draft.say(NoticeKind.CAUTION, "Ask the vet who gave it before you give, stop or change a medicine")


def normal_of(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "is that normal for a beagle?": sources, or that a pet is held against its own past only."""
    if _sentences_naming(scene, question):
        sources_on(scene, question, draft)
        return
    hosts: list[str] = [
        known(s.partition(":")[2].replace("_", " ")) for s in question.subjects if s.startswith(("breed:", "species:"))
    ] or ["pet"]
    draft.say(
        NoticeKind.SHORT,
        say("No source on file says what is normal for a {host}", host=joined(hosts, last="or")),
        slot="source",
    )
    draft.say(NoticeKind.NEXT, "Ask it of one of your pets: each is held against its own past")


def _asked_words(scene: Scene, question: Question) -> Said:
    of_it = [s for s in question.subjects if not s.startswith(("species:", "breed:", "src:"))]
    asked = [verbatim(mention.text) for mention in question.mentions if mention.target in of_it]
    words = asked or [said(" ".join(words)) for words in subject_words(scene, question)] or [said("that")]
    return joined(list(dict.fromkeys(words)), last="or")


def _forms(scene: Scene, question: Question) -> tuple[tuple[str, ...], ...]:
    """The words a thing goes by: as asked, as labelled, and by every name the tables give it."""
    subjects = {s for s in question.subjects if not s.startswith(("species:", "breed:", "src:"))}
    said = {tuple(t.text for t in tokens_of(m.text)) for m in question.mentions if m.target in subjects}
    named = {
        tuple(form.split(" ")) for form, readings in things().lexicon.forms() for r in readings if r.target in subjects
    }
    plain = {words for words in subject_words(scene, question) if words}
    return tuple(sorted(said | named | (plain if not said | named else set())))


def _sentences_naming(scene: Scene, question: Question) -> list[TextRecord]:
    """Guide passages that name the thing asked about, in the guide's own order; none of another species alone."""
    forms, hosts = _forms(scene, question), _hosts(scene, question)
    return [
        entry
        for entry in scene.reader.texts(("passage",), until_ms=scene.now_ms)
        if any(mentions(entry.text, form) for form in forms) and _speaks_of(entry.text, hosts)
    ]


def _hosts(scene: Scene, question: Question) -> frozenset[str]:
    """The species a question is about: those named, and those of the pets named."""
    named = {s.partition(":")[2] for s in question.subjects if s.startswith("species:")}
    return frozenset(named | {pet.species for pet in scene.home.pets if pet.id in question.pets})


def _speaks_of(text: str, hosts: frozenset[str]) -> bool:
    """Whether a passage is about one of these species, or about none in particular."""
    named = {
        reading.target.partition(":")[2]
        for match in things().lexicon.find(text)
        for reading in match.readings
        if reading.kind in ("species", "species_plural")
    }
    return not hosts or not named or bool(named & hosts)


def _in_notes(scene: Scene, question: Question) -> list[TextRecord]:
    """The pet's own notes that name the thing asked about."""
    forms = _forms(scene, question)
    return [
        entry
        for pet in question.pets
        for entry in scene.reader.texts(("note",), until_ms=scene.now_ms, pet=pet)
        if entry.pet == pet and any(mentions(entry.text, form) for form in forms)
    ]


def _passage(scene: Scene, draft: Draft, entry: TextRecord, about: tuple[str, ...]) -> None:
    text = " ".join(entry.text.split())
    if any(claim.refs == (entry.ref,) for claim in draft.claims):
        return
    draft.claim(
        "passage",
        EvidenceClass.REFERENCE,
        as_said(text.rstrip(".")),
        cite=cite(scene, entry.ref),
        refs=(entry.ref,),
        about=about,
    )


def _sourced(scene: Scene, names: set[str]) -> list[Link]:
    """What sources say of things of these names, whatever their kind: by relation, then stable name."""
    ends = [f"{kind}:{name}" for kind in scene.ontology.vertex_kinds for name in sorted(names)]
    found = {
        link.edge.ref: link
        for end in ends
        for link in (*scene.on_file.leaving(end), *scene.on_file.entering(end, _SOURCED))
        if link.edge.relation.partition("[")[0] in _SOURCED
    }
    links = sorted(found.values(), key=lambda link: edge_order(link.edge))
    links.sort(key=lambda link: _SOURCED.index(link.edge.relation.partition("[")[0]))
    return links


def sources_on(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer from books and guides: first what their links say of it, then passages that name it."""
    names, hosts = {subject.partition(":")[2] for subject in question.subjects}, _hosts(scene, question)
    walled = []
    for link in _sourced(scene, names - hosts):
        base, _, host = link.edge.relation.partition("[")
        if host and hosts and host.rstrip("]") not in hosts:
            continue
        if link.marked_wrong:
            walled.append(link)
            continue
        piece = first_of(link, "passage")
        text = "" if piece is None else quoted(scene, piece)
        if (
            piece is None
            or not text
            or len(draft.claims) >= _SHOWN
            or any(claim.text == text for claim in draft.claims)
        ):
            continue
        draft.claim(
            base,
            EvidenceClass.REFERENCE,
            as_said(text),
            cite=cite(scene, piece.record),
            refs=(piece.record,),
            about=(link.edge.tail.name, link.edge.head.name),
        )
    for entry in _sentences_naming(scene, question):
        if len(draft.claims) < _SENTENCES:
            _passage(scene, draft, entry, question.subjects)
    marked_wrong(scene, draft, tuple(walled))
    if not draft.claims:
        text = say("No source on file says anything about {what}", what=_asked_words(scene, question))
        draft.say(NoticeKind.SHORT, text, slot="source")
        draft.say(NoticeKind.CAUTION, "That does not make it harmless or harmful; your vet can say")
