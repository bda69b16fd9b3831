"""When an answer is conservative, and what it then says before anything else.

In: a linked question and the safety tables. Out: ``Danger`` (what was named, in which order
the answer comes) and ``Triage``, the fixed sentences with their phone numbers. Three orders:
A contact or unclear, call first; B plainly asked ahead, or about a label, answer first; C on
file and over 14 days ago, the record first. In doubt, A. Never a drug, dose, ration or
diagnosis, never a word of reassurance; nothing is asked before the numbers stand there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.ask.asked import is_told
from gateway.ask.linking import Linked
from gateway.ask.poisons import poisons_meant
from gateway.ask.said import Said, known, say, verbatim
from gateway.ask.subjects import Who
from gateway.ask.whose import medicine_of_another
from gateway.ask.wording import first_upper, joined, listed
from gateway.dialogue import Question
from gateway.model import Household
from gateway.ontology.hazards import Hazards, PoisonLine, SignHit

__all__ = ["FOR_THE_PHONE", "Danger", "Triage", "danger_in", "emergency_numbers", "intent_of", "order_of", "triage"]

OLD_RECORD_MS = 14 * 24 * 3_600_000
"""Order C holds for what is on file and longer ago than this."""

FOR_THE_PHONE = ("species", "breed", "age", "sex", "last_weight", "last_meal", "medicines", "not_seen")
"""What the answer fills in under "For the phone", in this order; nothing else of own data."""

_KEPT = frozenset({"record_lookup", "reference", "ingredient_lookup", "correction", "provenance", "vet_summary"})
"""Intents a red sign's name does not change: the answer is conservative all the same."""

_ANALYTIC = frozenset({
    "explain_change", "cause_check", "trend", "quantity", "onset", "compare_pets", "compare_periods", "select_pets",
    "normal_check", "enough", "event_when", "event_check", "before_change", "record_lookup", "reference", "med_safety",
})  # fmt: skip
"""Intents that stay what they are where only an amber sign is named."""


_TOLD = frozenset({"statement", "told", "quantity", "check", "need_vet", "overview"})
"""Rules by which a sign is told ("she hasn't eaten for a day") rather than asked about."""


@dataclass(frozen=True, slots=True)
class Danger:
    """What a question names that makes its answer conservative, or amber.

    ``order`` is "A", "B" or "amber"; ``unknown`` are the words of an object nobody knows;
    ``carrier`` = a food that may carry a poison was eaten; ``contact`` = it was touched.
    """

    order: str
    toxins: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    carrier: bool = False
    overdose: bool = False
    contact: bool = False

    def conservative(self, intent: str) -> bool:
        """Whether the whole answer is; amber alone only where nothing else was asked."""
        return self.order != "amber" or intent == "triage"


@dataclass(frozen=True, slots=True)
class Triage:
    """The fixed content, in the order it is read.

    ``first`` opens the answer; ``phones`` follow; then ``first_aid``, ``instructions``,
    ``asks`` ("did you mean ...?") and ``review``. ``slots`` are to be filled from the records
    under "For the phone".
    """

    order: str
    first: tuple[str, ...]
    phones: tuple[str, ...]
    first_aid: tuple[str, ...]
    instructions: tuple[str, ...]
    asks: tuple[str, ...]
    slots: tuple[str, ...]
    review: str


# --- finding danger -------------------------------------------------------------------------


def danger_in(linked: Linked, who: Who, hazards: Hazards) -> Danger | None:
    """What the question names that is dangerous, or None.

    A linked toxin, emergency sign or medicine made for people, whatever the verb; a contact
    with a thing no vocabulary knows; a pet's own medicine in excess; peanut butter eaten.
    """
    toxins = poisons_meant(linked, hazards)
    named = tuple(hit for hit in linked.signs if not hazards.signs[hit.sign].told)
    net = _alarming(linked, who, hazards)
    red = tuple(hit.sign for hit in named if hazards.signs[hit.sign].urgency == "red")
    red = red or tuple(hit.sign for hit in net if hazards.signs[hit.sign].urgency == "red")
    if _same_bite(linked):
        red = tuple(sign for sign in red if sign != "sign:trauma")
    amber = tuple(hit.sign for hit in named if hazards.signs[hit.sign].urgency == "amber")
    if not red and not amber:
        amber = tuple(hit.sign for hit in net if hazards.signs[hit.sign].urgency == "amber")
    contact = _touched(linked)
    carrier = "food:peanut_butter" in linked.targets("food") and contact and not _asked_ahead(linked)
    overdose = _overdose(linked, hazards)
    borrowed = medicine_of_another(linked, who, hazards) if not toxins else None
    toxins = (borrowed,) if borrowed is not None else toxins
    if overdose and linked.targets("own_med", "med"):  # "double dose" of a medicine that has a name
        toxins = tuple(target for target in toxins if target != "med:human")
    unknown = () if toxins or red else _unknown_object(linked, hazards.words["not_the_thing"]["askers"])
    if toxins:  # what was swallowed has a name
        red = tuple(sign for sign in red if sign != "sign:swallowed_object")
    if toxins or red or carrier or overdose or unknown:
        ahead = not red and not unknown and not overdose and not carrier and _asked_ahead(linked)
        order = "B" if ahead else "A"
        return Danger(order, toxins, red + amber, unknown, carrier, overdose, contact or bool(unknown))
    if amber and who.pets:
        return Danger("amber", signs=amber)
    return None


def _alarming(linked: Linked, who: Who, hazards: Hazards) -> tuple[SignHit, ...]:
    """Words that alarm, of a pet, in a sentence that asks nothing: told of and read by nothing else."""
    animal = who.pets or who.hosts or who.pronoun
    if not animal or linked.has("correction", "notice") or linked.targets("device"):
        return ()
    told = (hit for hit in linked.signs if hazards.signs[hit.sign].told)
    return tuple(hit for hit in told if any(is_told(linked, at) for at in hit.tokens))


def _same_bite(linked: Linked) -> bool:
    """Whether the accident is the snake's or insect's bite that is named already."""
    bites = {i for hit in linked.signs if hit.sign == "sign:bite" for i in hit.tokens}
    return any(bites.intersection(hit.tokens) for hit in linked.signs if hit.sign == "sign:trauma")


def _touched(linked: Linked) -> bool:
    return linked.has("contact", "already")


def _asked_ahead(linked: Linked) -> bool:
    """Plainly asked before anything happened: opens with can, is, how much, or ends in "ok?"; nothing eaten yet."""
    if linked.has("already"):
        return False
    return linked.starts("ahead", "contain", within=3) or (_judged_last(linked) and not linked.has("contact"))


def _judged_last(linked: Linked) -> bool:
    """Whether the question's last word asks for a judgement: "grapes for Max ok?"."""
    ends = [index for index, token in enumerate(linked.tokens) if token.text == "?"]
    return bool(ends) and linked.word(ends[-1] - 1) in linked.language.words["closing"]


def _overdose(linked: Linked, hazards: Hazards) -> bool:
    """A pet's own medicine swallowed by itself, or given twice or by the boxful."""
    meds = [
        span
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
        if mention.kind in {"med", "own_med"} and mention.target != "med:vaccine"
    ]
    dated = linked.has("last") and linked.starts(
        "when", "how_long", within=3
    )  # "how long ago was he given his last ..."
    for first, end in meds if not dated else ():
        lead = linked.cues.get("contact_unknown", ())
        near = any(last <= first and first - last <= _reach(linked, last, first, hazards) for _, last in lead)
        if near or _swallowed_before(linked, first, end):
            return True
    words = {token.text for token in linked.tokens}
    doubled = bool(words & _TWICE) or "two doses" in linked.text.lower()
    return bool(meds) and doubled and linked.has("given", "missed") and not linked.has("how_often", "due")


_TWICE = frozenset({"twice", "double", "doppelt", "doppelte", "doppelten", "zweimal", "doble"})


def _swallowed_before(linked: Linked, first: int, end: int) -> bool:
    """Whether a German participle follows its object: "hat die Wurmtabletten aufgefressen".

    "Seit der Wurmtablette hat er weniger gefressen" and "hat die Tablette nicht gefressen" are none.
    """
    words = linked.language.words
    if linked.language.id != "de" or any(linked.word(i) in words["no_object"] for i in range(first - 3, first)):
        return False
    eaten = set(linked.cues.get("swallow", ())) & set(linked.cues.get("contact", ()))
    told = is_told(linked, end - 1)
    verbs = {verb for verb, _ in (*linked.cues.get("contact_unknown", ()), *(eaten if told else ()))}
    verbs |= {i for i in range(end, end + 3) if told and linked.word(i) in words["swallowed"]}
    denied = {i for a, b in linked.cues.get("negation", ()) for i in range(a, b)}
    denied |= {i for a, b, _ in linked.directions for i in range(a, b)}
    return any(0 <= verb - end <= 2 and not denied & set(range(end, verb)) for verb in verbs)


def _reach(linked: Linked, verb_end: int, first: int, hazards: Hazards) -> int:
    """Words from "ate" to the medicine; more where it was the whole box of it."""
    whole = any(linked.word(index) in hazards.words["whose"]["whole"] for index in range(verb_end, first))
    return 10 if whole else 4


def _unknown_object(linked: Linked, askers: frozenset[str]) -> tuple[str, ...]:
    """The words of an object of contact that is no known food, portion word or toy.

    "Bella ate a blorp" -> ("blorp",). A phrase with any known thing in it is known; adverbs
    and comparisons ("ate really fast", "ate less than usual") are no objects.
    """
    words = linked.language.words
    known = _known_places(linked)
    for verb, start in linked.cues.get("contact_unknown", ()):
        if linked.word(verb - 1) in askers:  # "we drank Rioja in the garden"
            continue
        index = start
        phrase: list[int] = []
        while index < len(linked.tokens) and len(phrase) < 6:
            word = linked.word(index)
            if not (word[0].isalpha() or word[0].isdigit()) or (phrase and word in words["object_ends"]):
                break
            phrase.append(index)
            index += 1
        pointed = bool(phrase) and linked.word(phrase[0]) in words["determiners"]
        heads = [i for i in phrase if linked.word(i) not in words["determiners"] and linked.word(i)[0].isalpha()]
        heads = [i for i in heads if linked.word(i) not in words["manner"] and not _is_unit(linked, i)]
        if not heads or linked.word(phrase[0]) in words["object_ends"]:
            continue
        if linked.word(heads[0]) in words["vague"] and len(heads) > 1:  # "something in the park"
            return tuple(linked.word(i) for i in heads[:1])
        if any(i in known and linked.word(i) not in words["vague"] for i in heads):
            continue
        if pointed or not linked.word(heads[0]).endswith("ly"):
            return tuple(linked.word(i) for i in heads)
    return _unknown_before(linked)


_UNITS = frozenset({"ml", "cl", "l", "g", "kg", "mg", "oz", "lb", "lbs", "litre", "litres", "liters", "gram", "grams"})


def _is_unit(linked: Linked, index: int) -> bool:
    """Whether a word is the unit of the number before it: "drank 300 ml"."""
    return linked.word(index) in _UNITS and linked.word(index - 1)[:1].isdigit()


def _unknown_before(linked: Linked) -> tuple[str, ...]:
    """The same where the object stands before its participle: "Max hat einen Blorp gefressen" -> ("blorp",).

    Only words that nothing knows, behind an article: what is said there else is a food or a time.
    """
    if linked.language.id != "de":
        return ()
    for verb, _ in linked.cues.get("contact", ()):
        first = verb
        while first > 0 and verb - first < 3 and linked.word(first - 1) in linked.unmatched:
            first -= 1
        if first < verb and first > 0 and linked.word(first - 1) in linked.language.words["determiners"]:
            return tuple(linked.word(index) for index in range(first, verb))
    return ()


def _known_places(linked: Linked) -> frozenset[int]:
    """Token places that are a linked thing, a measured word, a time or a comparison."""
    known = {i for first, last in linked.spans for i in range(first, last)}
    known |= {i for hit in linked.metrics for i in range(hit.first, hit.last)}
    known |= {i for span in linked.times for i in range(span.first, span.last)}
    known |= {i for first, last, _ in linked.directions for i in range(first, last)}
    for cue in ("most", "usual", "all_pets", "current_food", "new_food", "old_food", "normal"):
        known |= {i for first, last in linked.cues.get(cue, ()) for i in range(first, last)}
    return frozenset(known)


def intent_of(danger: Danger, linked: Linked, rule: str, decided: str) -> tuple[str, str]:
    """(rule, intent) where something dangerous is named; ``rule`` and ``decided`` are the list's own."""
    if danger.order == "amber":
        told = rule in _TOLD and not linked.has("why", "how_much")
        return ("amber", decided) if decided in _ANALYTIC and not told else ("amber", "triage")
    substance = bool(danger.toxins) or danger.carrier or danger.overdose or bool(danger.unknown)
    if substance and decided == "record_lookup" and not linked.has("already"):
        return "danger_on_file", decided
    if substance and danger.order == "B":
        if decided == "ingredient_lookup":
            return "danger_on_label", decided
        medicines = danger.toxins and all(target.startswith("med:") for target in danger.toxins)
        return ("human_medicine", "med_safety") if medicines else ("toxin_asked_ahead", "food_ok")
    if substance and (danger.contact or not danger.signs):
        return "exposure", "exposure"
    return ("red_sign", decided) if decided in _KEPT and not danger.contact else ("red_sign", "triage")


def order_of(danger_order: str, *, on_file_ms: int | None, now_ms: int) -> str:
    """C where the contact is on file and over 14 days ago, else the question's own order."""
    if on_file_ms is not None and now_ms - on_file_ms > OLD_RECORD_MS and danger_order != "amber":
        return "C"
    return danger_order


# --- the fixed words ------------------------------------------------------------------------

_PLURAL = {"dog": "dogs", "cat": "cats", "bird": "birds", "rabbit": "rabbits"}


def triage(
    question: Question, hazards: Hazards, household: Household, *, order: str | None = None, recorded: str = ""
) -> Triage:
    """The conservative content of a question whose ``safety`` is set.

    Parameters
    ----------
    question : Question
        With ``safety`` "A", "B" or "amber".
    order : str, optional
        "C" where ``order_of`` found the contact on file; ``recorded`` is then that record's
        sentence, which comes first.
    """
    order = order or question.safety or "A"
    pet = _pet_name(question, household)
    signs = [hazards.signs[s] for s in question.subjects if s in hazards.signs]
    toxins = [hazards.toxins[t] for t in question.subjects if t in hazards.toxins]
    red = [sign for sign in signs if sign.urgency == "red"]
    contact = order in {"A", "C"} and question.intent != "triage"
    first: list[str] = [recorded] if order == "C" and recorded else []
    first += [
        say(
            "{sign} can be an emergency. Call a vet or an emergency clinic now; don't wait for this page.",
            sign=sign.word,
        )
        for sign in red
    ]
    if order == "B":
        first += [_asked_ahead_line(toxin.name, toxin.species, question, household) for toxin in toxins]
        first.append(say("If {pet} has had any, call now.", pet=pet))
    elif order == "amber" or (signs and not red and not toxins):
        first += [
            say(
                "{sign} is a reason to call your vet today; now, if {pet} is also weak, vomiting, breathing oddly or"
                " getting worse.",
                sign=sign.word,
                pet=pet,
            )
            for sign in signs
        ]
    elif contact or toxins:
        first.append(
            "Call now. Don't wait for signs." if order == "A" else say("If {pet} has had any again, call now.", pet=pet)
        )
    unknown = question.unmatched if order == "A" and not question.subjects else ()
    if unknown:
        what = verbatim(" ".join(unknown))
        first.append(say("I don't know what {what} is; treat it as possibly poisonous.", what=what))
    instructions: list[str] = []
    if (contact or toxins) and order != "amber":
        instructions = [
            say("Don't make {pet} vomit unless a vet or the poison line tells you.", pet=pet),
            "No milk, oil, salt, charcoal or peroxide unless told.",
            "Take the packet or plant.",
            say("Have ready: what, how much, when, {pet}'s weight.", pet=pet),
        ]
    return Triage(
        order=order,
        first=tuple(first),
        phones=_phones(hazards, household, poison=bool(toxins) or contact),
        first_aid=_first_aid(hazards, question, [sign.first_aid for sign in red], skin=any(t.skin for t in toxins)),
        instructions=tuple(instructions),
        asks=tuple(
            say('Did you mean "{meant}" by "{heard}"?', meant=verbatim(meant), heard=verbatim(heard))
            for heard, meant in question.corrections
        ),
        slots=FOR_THE_PHONE,
        review=say("Safety tables {version}: {by}.", version=verbatim(hazards.version), by=hazards.reviewed_by),
    )


def _asked_ahead_line(name: str, species: tuple[str, ...], question: Question, household: Household) -> str:
    hosts = sorted(
        {pet.species for pet in household.pets if pet.id in question.pets}
        | {s.partition(":")[2] for s in question.subjects if s.startswith("species:")}
    )
    asked = [host for host in hosts if host not in species]
    of = _hosts(species)
    if question.intent == "ingredient_lookup":
        return say("{what} is listed as poisonous to {hosts}.", what=first_upper(known(name)), hosts=of)
    if asked and len(asked) == len(hosts):
        return say(
            "Don't give {what}: it is listed as poisonous to {hosts}; that {others} are not listed does not make it "
            "harmless.",
            what=known(name),
            hosts=of,
            others=_hosts(asked),
        )
    return say("Don't give {what}: it is listed as poisonous to {hosts}.", what=known(name), hosts=of)


def _hosts(species: Iterable[str]) -> Said:
    return joined([_PLURAL.get(one, known(one)) for one in species])


def _pet_name(question: Question, household: Household) -> str:
    names = [pet.name for pet in household.pets if pet.id in question.pets]
    return verbatim(names[0]) if len(names) == 1 else "your pet"


def emergency_numbers(hazards: Hazards, household: Household) -> tuple[str, ...]:
    """The poison lines and the household's own vets and clinics, as a conservative answer gives them."""
    return _phones(hazards, household, poison=True)


def _phones(hazards: Hazards, household: Household, *, poison: bool) -> tuple[str, ...]:
    """The numbers of the home's vets and clinics, after the poison lines where a poison is in question."""
    called = [person for person in household.people if person.phone and person.is_called]
    called.sort(key=lambda person: person.role != "vet")  # the vet, who knows the pet, before a clinic
    own = [verbatim(f"{person.name} {person.phone}") for person in called]
    lines = hazards.lines_for(household.country) if poison else ()
    at_home = household.country is not None and any(line.country == household.country for line in lines)
    told = [_line_text(line, with_country=not at_home) for line in lines]
    return (*told, *own) if poison else tuple(own)


def _line_text(line: PoisonLine, *, with_country: bool) -> str:
    country = verbatim(line.country) if with_country else ""
    notes = [note for note in (country, line.note, "may charge" if line.charge else "") if note]
    number = verbatim(f"{line.short} {line.phone}")
    return say("{number} ({notes})", number=number, notes=listed(notes, between=", ")) if notes else number


def _first_aid(hazards: Hazards, question: Question, names: list[str | None], *, skin: bool) -> tuple[str, ...]:
    wanted = [name for name in names if name is not None]
    if "sign:string" in question.subjects:
        wanted.append("string")
    if skin:
        wanted.append("skin")
    return tuple(hazards.first_aid[name] for name in dict.fromkeys(wanted))
