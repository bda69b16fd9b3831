"""Reads an owner's question, deterministically: text in, a typed ``Question`` out.

Fold (500 characters), link against the ontology and the household's names, read the window,
read cue classes, ordered decision list with safety first, slots, capability check. No score
anywhere; a tie goes to the reading its place in the sentence allows, then the owner is asked.
Never reads a clock or a database, never raises for a text, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway.ask import capability, safety
from gateway.ask.asked import asking_sentence, is_yes_no, without_the_asker
from gateway.ask.direction import direction_of
from gateway.ask.facts_said import FOODLIKE, Facts
from gateway.ask.intents import decide
from gateway.ask.linking import Linked, MetricHit, Reader, link, reader_for
from gateway.ask.subjects import Who, devices_in, new_or_old_food, own_foods_in, treated_for, who_is_asked
from gateway.ask.times import Calendar
from gateway.ask.window import window_asked
from gateway.dialogue import Question
from gateway.model import Household
from gateway.ontology.recognise import Alias

__all__ = ["CAP", "frame_json", "read_question"]

CAP = 500
"""Characters read. A longer text is answered with a plain sentence, unless it names danger."""

SAFETY_CAP = 4000
"""Characters of a longer text in which toxins and emergency signs are still looked for."""

_MONTH_FIRST = frozenset({"US"})
"""Countries that write 7/3 for July 3."""

_PET_INTENTS = frozenset({
    "explain_change", "cause_check", "onset", "trend", "quantity", "event_check", "event_when", "compare_periods",
    "enough", "too_heavy", "need_vet", "before_change", "vet_summary", "normal_check",
})  # fmt: skip
"""Intents that are about a pet: where none is named, the owner is asked which."""

_THING_INTENTS = frozenset(
    {"ingredient_lookup", "reference", "provenance", "correction", "device_status", "why_notice"}
)
"""Intents about a thing: "it" is that thing, no pet."""

_NO_METRIC = frozenset({
    "food_ok", "ingredient_lookup", "med_timing", "med_safety", "reference", "provenance", "correction", "overview",
    "out_of_scope", "need_vet", "vet_summary", "switch_back", "why_notice", "exposure", "triage",
})  # fmt: skip

_SUBJECT_KINDS: Mapping[str, tuple[str, ...]] = {
    "explain_change": ("own_food", "own_med", "place"),
    "cause_check": ("own_food", "own_med", "med", "place", "cond", "ing", "food", "food_word"),
    "onset": ("own_food", "own_med", "med", "food_word"),
    "trend": ("own_food",),
    "event_check": ("device", "place", "own_med", "med"),
    "event_when": ("device", "own_med", "med"),
    "quantity": ("device",),
    "compare_periods": ("own_food", "own_med", "med"),
    "food_ok": ("own_food", "ing", "food", "host", "tox"),
    "ingredient_lookup": ("own_food", "ing", "food", "tox", "food_word"),
    "normal_check": ("host",),
    "record_lookup": ("body", "src", "cond", "ing_allergy", "place", "own_med", "med"),
    "purchases": ("own_food", "own_med", "med", "ing", "food", "food_word"),
    "device_status": ("device",),
    "med_timing": ("own_med", "med"),
    "med_safety": ("own_med", "med", "host", "tox"),
    "reference": ("topic", "host"),
    "provenance": ("ing", "own_food", "food_word"),
    "correction": ("own_food", "ing", "food_word", "own_med", "med", "place"),
    "switch_back": ("own_food", "food_word"),
    "need_vet": ("src",),
    "vet_summary": ("src",),
    "exposure": ("tox", "sign", "own_med_contact"),
    "triage": ("sign", "tox"),
}

_EVENT_INTENTS = frozenset(
    {"explain_change", "trend", "cause_check", "compare_periods", "quantity", "event_when", "event_check"}
)

_HOME_EVENTS = frozenset({"event:visitor", "event:fireworks"})
"""What happens to everybody at home, under whose name ever it was written down."""


def read_question(
    text: str,
    *,
    household: Household,
    now_ms: int,
    last_pet: str | None = None,
    earlier: Question | None = None,
    language: str | None = None,
    extra: tuple[Alias, ...] = (),
) -> Question:
    """Read one question.

    Parameters
    ----------
    text : str
        As typed; anything at all.
    household : Household
        Names, zones, devices and bindings at ``now_ms``.
    now_ms : int
        The asker's now, ms UTC.
    last_pet : str, optional
        The pet id a pronoun means.
    earlier : Question, optional
        The question before: what "that" and "it" measure ("when did that start?").
    language : str, optional
        Hint (``en``, ``es``, ``de``) where the words do not tell.
    extra : tuple of Alias
        Ingredient names of the knowledge room, read as kind "ing".

    Returns
    -------
    Question
        ``rule`` names the line that fired; ``safety`` is "A" or "B" (red, in that order of
        the answer), "amber" or None. A text that cannot be read has intent ``out_of_scope``.
    """
    reader = reader_for(household, extra)
    calendar = Calendar(now_ms, household.zones, month_first=household.country in _MONTH_FIRST)
    if len(text) > CAP:
        return _too_long(text, reader, calendar)
    linked = without_the_asker(treated_for(link(text, reader, calendar, hint=language)))
    linked = _with_the_medicine_before(linked, earlier)
    if not any(token.text[0].isalpha() for token in linked.tokens):
        return _unread(text, "empty" if not text.strip() else "unreadable")
    who = who_is_asked(linked, household, last_pet)
    facts = _carried_on(_facts(linked, who, household, now_ms), earlier)
    danger = safety.danger_in(linked, facts.who, reader.hazards)
    facts, rule, intent = _decided(facts, household, now_ms)
    if danger is None and earlier is not None and _asks_the_same(facts, earlier):
        facts, rule, intent = _as_before(facts, earlier), "the_same", earlier.intent
    if danger is not None:
        rule, intent = safety.intent_of(danger, linked, rule, intent)
    general = intent == "pet_advice"
    return _fill(facts, reader, calendar, rule=rule, intent="out_of_scope" if general else intent,
                 danger=danger, general=general)  # fmt: skip


def _decided(facts: Facts, household: Household, now_ms: int) -> tuple[Facts, str, str]:
    """The reading of the sentence that asks; of the whole text where that sentence alone says nothing."""
    asked = asking_sentence(facts.linked)
    if asked is not None:
        narrow = _facts(asked, facts.who, household, now_ms)
        rule, intent = decide(narrow)
        if intent not in {"out_of_scope", "pet_advice"}:
            return narrow, rule, intent
    return facts, *decide(facts)


def _too_long(text: str, reader: Reader, calendar: Calendar) -> Question:
    linked = link(text[:SAFETY_CAP], reader, calendar)
    who = who_is_asked(linked, reader.household, None)
    danger = safety.danger_in(linked, who, reader.hazards)
    if danger is None:
        return _unread(text, "too_long", linked.language.id)
    rule, intent = safety.intent_of(danger, linked, "too_long", "out_of_scope")
    facts = _facts(linked, who, reader.household, calendar.now_ms)
    return _fill(facts, reader, calendar, rule=rule, intent=intent, danger=danger, general=False)


def _unread(text: str, rule: str, language: str = "en") -> Question:
    return Question(
        text=text[:CAP],
        intent="out_of_scope",
        pets=(),
        metric=None,
        direction=None,
        window=None,
        window_label=None,
        subjects=(),
        answer_class="refuse",
        rule=rule,
        language=language,
    )


# --- facts ----------------------------------------------------------------------------------


def _facts(linked: Linked, who: Who, household: Household, now_ms: int) -> Facts:
    return Facts(
        linked=linked,
        who=who,
        metric=_metric(linked),
        yes_no=is_yes_no(linked),
        subject_food=bool(linked.targets("own_food")),
        subject_med=bool(linked.targets("own_med", "med")),
        thing=bool(linked.targets("ing", "food")),
        devices=devices_in(linked, household, who.pets, now_ms),
        compared_pets=len(linked.targets("pet")),
    )


def _metric(linked: Linked) -> MetricHit | None:
    """What is measured: the first measured word, eating last.

    Eating words also describe foods and mealtimes ("lick more after dinner", "pets that eat
    the same food itch"), so any other measured word goes before them.
    """
    hits = [hit for hit in linked.metrics if not _is_device_word(linked, hit)]
    hits = [hit for hit in hits if not hit.faint] or ([] if linked.targets("own_med", "med") else hits)
    hits = _as_eaten(linked, hits)
    other = [hit for hit in hits if hit.property not in FOODLIKE]
    if len(linked.targets("pet")) > 1:  # "who's the lazier one, going by rest?"
        other = [hit for hit in other if hit.direction is None] or other
    if other:
        same = [hit for hit in other if hit.direction is not None and hit.property == other[0].property]
        return same[-1] if len({hit.direction for hit in same}) > 1 else next(iter(same), other[0])
    moved = [hit for hit in hits if hit.direction is not None]
    if len({hit.direction for hit in moved}) > 1:  # "he used to leave food and now he eats it all"
        return moved[-1]
    special = [hit for hit in hits if hit.property in {"meals", "meal_time", "eat_rate"} or hit.direction is not None]
    return next(iter(special or hits), None)


_PARTICLES = frozenset({"up", "down", "off", "away"})
"""Words of a verb of haste ("wolf down"), where they say no direction."""

_BY_MEAL = ("how_often", "ingest_how_often")


def _as_eaten(linked: Linked, hits: list[MetricHit]) -> list[MetricHit]:
    """The hits, an amount of food where a verb of haste or a meal only says what was eaten.

    "What did she wolf down", "he scoffs more", "he only nibbled at his meals".
    """
    firm = [(first, way) for first, _, way in linked.directions if not way.startswith("weak_")]
    sized = [way for first, way in firm if linked.word(first) not in _PARTICLES]
    hasty = any(token.text in linked.language.words["hurry"] for token in linked.tokens)
    ate = any(hit.property == "intake" for hit in hits) and not linked.has(*_BY_MEAL)
    taken = ate or any(hit.property == "water" for hit in hits)
    filled = taken and linked.has("why")  # "why has he eaten less since it was put in his bowl"
    had = ate or (linked.has("how_much") and not linked.has(*_BY_MEAL, "when", "last"))
    found = []
    for hit in hits:
        rushed = hit.property == "eat_rate" and hit.direction == "up" and not hasty
        if rushed and (sized or linked.has("how_much")):
            found.append(
                replace(hit, property="intake", direction=next((w for w in sized if w in {"up", "down"}), None))
            )
        elif hit.property == "meals" and had:  # "what did he have for his meals"
            found.append(replace(hit, property="intake"))
        elif not (hit.property == "refill" and filled):
            found.append(hit)
    return found


_ASKS_ON = ("why", "when", "since_when", "how_long", "still", "normal", "who", "which")


def _carried_on(facts: Facts, earlier: Question | None) -> Facts:
    """What a follow-up leaves unsaid: "when did that start?", "why?" mean what was asked before.

    Only where nothing is measured, no thing and no other pet is named, and at most eight words
    are said; a text with a subject of its own stands alone.
    """
    words = sum(token.text[0].isalpha() for token in facts.linked.tokens)
    own = facts.metric is not None or facts.thing or facts.subject_food or facts.subject_med or facts.who.named
    if earlier is None or earlier.metric is None or own or words > 8 or facts.mentions("src", "cond", "topic"):
        return facts
    then = facts.has("how_much") and facts.windows > 0 and words <= 5  # "and how much yesterday?"
    points = facts.has("claimword", "pronoun_n") or words <= 2 or then
    asks = then or facts.has(*_ASKS_ON)
    if not (points and asks) or facts.has("why_not_think", "provenance", "correction", "before"):
        return facts
    hit = MetricHit(0, 0, earlier.metric, earlier.direction)
    who = facts.who if facts.who.pets and facts.who.pets != ("?",) else replace(facts.who, pets=earlier.pets)
    return replace(facts, metric=hit, who=who)


_AGAIN = frozenset({"quantity", "trend", "event_check", "explain_change", "onset"})
"""Questions that may be asked again of another day or pet by naming that alone."""
_FEW = 4
"""Words of such a follow-up ("and what about yesterday?")."""


def _asks_the_same(facts: Facts, earlier: Question) -> bool:
    """Whether only another day or pet is said: "and today?", "and Luna?" ask what was asked before."""
    linked = facts.linked
    aside = linked.language.words["openers"] | linked.language.words["what"] | {"about", "ist", "mit"}
    words = [t.text for t in linked.tokens if t.text[0].isalnum() and t.text not in aside]
    named = bool(linked.targets("pet")) or any(span.window is not None for span in linked.times)
    other = facts.metric is not None or facts.thing or facts.subject_food or facts.subject_med
    asks = facts.has("why", "when", "since_when", "how_much", "who", "which", "cause", "overview", "still", "normal")
    places = {i for span in (*linked.spans, *((s.first, s.last) for s in linked.times)) for i in range(*span)}
    covered = all(i in places or t.text in aside or not t.text[0].isalnum() for i, t in enumerate(linked.tokens))
    asked = earlier.intent in _AGAIN and earlier.metric is not None
    return asked and named and covered and not (other or asks) and len(words) <= _FEW


def _as_before(facts: Facts, earlier: Question) -> Facts:
    """The facts, with what the question before measured and, where none is named, its pets."""
    hit = MetricHit(0, 0, str(earlier.metric), earlier.direction)
    who = facts.who if facts.linked.targets("pet") else replace(facts.who, pets=earlier.pets)
    return replace(facts, metric=hit, who=who)


def _with_the_medicine_before(linked: Linked, earlier: Question | None) -> Linked:
    """The medicine, and whose it is, of the question before: what "should I give it now?" and
    "did anybody give it to him?" leave unsaid.
    """
    own = linked.targets("own_med", "med", "pet", "own_food", "food", "ing") or linked.toxins or linked.metrics
    points = linked.has("give_now") or (linked.has("given") and linked.has("pronoun_n"))
    if earlier is None or own or not points:
        return linked
    carried = tuple(m for m in earlier.mentions if m.kind in {"own_med", "med", "pet"})
    if not any(m.kind != "pet" for m in carried):
        return linked
    after, end = len(linked.tokens), len(linked.text)
    carried = tuple(replace(mention, start=end, end=end) for mention in carried)
    spans = (*linked.spans, *((after, after) for _ in carried))
    return replace(linked, mentions=(*linked.mentions, *carried), spans=spans)


def _is_device_word(linked: Linked, hit: MetricHit) -> bool:
    """Whether "litter box" or "water bowl" names a device, not what it measures, in a device question."""
    return hit.property == "litter" and linked.has("device_ask")


# --- slots ----------------------------------------------------------------------------------


def _fill(
    facts: Facts,
    reader: Reader,
    calendar: Calendar,
    *,
    rule: str,
    intent: str,
    danger: safety.Danger | None,
    general: bool,
) -> Question:
    linked, household = facts.linked, reader.household
    metric = None if intent in _NO_METRIC else facts.measured
    if intent == "event_when" and metric == "intake":
        metric = None if rule == "when_changed" and _switched(facts) else "meals"
    if intent == "quantity" and metric == "intake" and linked.has("how_often"):
        metric = "meals"
    if intent == "quantity" and metric == "eat_rate" and facts.metric is not None and facts.metric.direction:
        metric = "intake"  # "how much did she scoff"
    if intent == "onset" and metric in {"intake", "refill"} and (facts.subject_food or _begins_new(facts)):
        metric = None
    if intent == "too_heavy":
        metric = "weight"
    if intent == "purchases" and metric in FOODLIKE:
        metric = None
    if intent == "device_status" and metric not in {"battery", None} and not _shows_reading(facts):
        metric = None
    if intent == "record_lookup" and metric not in {None, "intake"}:
        metric = None
    subjects = () if rule == "bought_new" else _subjects(facts, household, intent, danger)
    pets = _pets(facts, household, intent, subjects)
    label, window = window_asked(facts, calendar, intent, metric, subjects)
    direction = direction_of(facts, intent, metric)
    conservative = danger is not None and danger.conservative(intent)
    answer_class = (
        "conservative"
        if conservative or rule == "med_missed"
        else capability.answer_class(
            intent,
            pets=pets,
            metric=metric,
            subjects=subjects,
            household=household,
            now_ms=calendar.now_ms,
            general=general,
            miscounted=facts.who.miscounted,
            known_food=bool(subjects) or bool(linked.targets("harmless", "own_food")),
        )
    )
    return Question(
        text=linked.text if len(linked.text) <= CAP else linked.text[:CAP],
        intent=intent,
        pets=pets,
        metric=metric,
        direction=direction,
        window=window,
        window_label=label,
        subjects=subjects,
        answer_class=answer_class,
        rule=rule,
        safety=danger.order if danger is not None else None,
        mentions=linked.mentions,
        unmatched=danger.unknown if danger is not None and danger.unknown else linked.unmatched,
        candidates=facts.who.candidates if pets == ("?",) else (),
        corrections=(*linked.corrections, *linked.near_misses),
        language=linked.language.id,
    )


def _switched(facts: Facts) -> bool:
    """Whether it is the change of food whose day is asked for ("when did we switch Max's food")."""
    return facts.has("switch_verb") or any(name == "food_change" for _, _, name in facts.linked.events)


def _shows_reading(facts: Facts) -> bool:
    """Whether "It shows 0 g all day": the device question is about what it measured."""
    return facts.measured == "intake" and any(token.text[0].isdigit() for token in facts.linked.tokens)


def _subjects(facts: Facts, household: Household, intent: str, danger: safety.Danger | None) -> tuple[str, ...]:
    """The things the intent's schema has a place for, sorted."""
    kinds = _SUBJECT_KINDS.get(intent, ())
    linked = facts.linked
    found = set(linked.targets(*(kind for kind in kinds if kind not in {"food_word", "host", "device"})))
    if intent == "event_check" and "food:treat" in linked.targets("food"):
        found.add("food:treat")
    if "device" in kinds and (intent == "device_status" or not facts.who.pets):
        found.update(facts.devices)
    if "host" in kinds and not facts.who.named:
        found.update(facts.who.hosts)
    if "tox" in kinds and danger is not None:
        found.update(danger.toxins)
    if "sign" in kinds and danger is not None:
        found.update(danger.signs)
    if "own_med_contact" in kinds and danger is not None and not danger.toxins:
        found.update(linked.targets("own_med", "med"))
    if "ing_allergy" in kinds and ("cond:allergy" in found or "topic:food_allergy" in linked.targets("topic")):
        found.update(linked.targets("ing"))
    spoken = not linked.events or linked.has("new_food", "old_food")
    found -= _only_new(linked)
    if intent == "onset":  # "how long has he been on the new food", not what began since it
        spoken = _begins_new(facts)
    holds = intent == "ingredient_lookup" and linked.has("new_food")  # "is there chicken in the new dry food"
    other = linked.targets("own_food") if holds else linked.targets("own_food", "food", "ing")
    if "food_word" in kinds and spoken and not found & set(other):
        found.update(new_or_old_food(linked, household, facts.who.pets))
    if intent == "ingredient_lookup" and not found and linked.has("device_food_bowl"):
        found.add("food:current")
    if intent == "ingredient_lookup" and linked.has("old_food") and not linked.targets("own_food"):
        found.update(new_or_old_food(linked, household, facts.who.pets))
    if danger is not None and intent in {"exposure", "food_ok"}:
        found.update(linked.targets("food") if danger.carrier else ())
    if intent in {"exposure", "triage"} or (danger is not None and intent in {"food_ok", "med_safety"}):
        found = {target for target in found if danger is None or not _shadowed(target, danger)}
    if intent == "food_ok" and len([target for target in found if target.startswith(("food:", "ing:"))]) > 1:
        found.discard("food:treat")  # "a carrot as a snack"
    if len([target for target in found if target.startswith("med:")]) > 1:
        found.discard("med:medicine")
    if intent == "record_lookup" and found & {"med:vaccine"}:
        found.discard("src:vet")
    if "food_word" in kinds and not found and intent == "cause_check" and linked.has("food_noun") and not linked.events:
        found.add("food:current")
    if intent == "record_lookup" and "topic:food_allergy" in linked.targets("topic"):
        found = {"cond:allergy", *(target for target in found if target != "cond:diagnosis")}
    if intent == "reference" and "cond:allergy" in linked.targets("cond"):
        found.add("topic:food_allergy")
    events = {f"event:{span.event}" for span in linked.times if span.event}
    events |= {f"event:{name}" for _, _, name in linked.events}
    if intent == "event_when" and not events and facts.measured in {None, "intake"} and _switched(facts):
        events.add("event:food_change")
    if events and intent in _EVENT_INTENTS:
        told = any(target.startswith(("food:", "med:")) for target in found)
        found.update(() if told else events)
    return tuple(sorted(found))


def _begins_new(facts: Facts) -> bool:
    """Whether it is since when the new food is given: nothing else is measured, and nothing moved."""
    return facts.has("new_food") and facts.measured in {None, "intake"} and not facts.moved


def _only_new(linked: Linked) -> set[str]:
    """Kinds of food said only inside "the new dry food": the food of the home is meant, not the kind."""
    named = [(m.target, span) for m, span in zip(linked.mentions, linked.spans, strict=True) if m.kind == "food"]
    spans = (*linked.cues.get("new_food", ()), *linked.cues.get("old_food", ()))
    apart = {target for target, (first, last) in named if not any(a <= first and last <= b for a, b in spans)}
    return {target for target, _ in named} - apart


def _shadowed(target: str, danger: safety.Danger) -> bool:
    """An ingredient or general medicine word that only repeats the toxin ("med:medicine")."""
    return target == "med:medicine" and bool(danger.toxins)


def _pets(facts: Facts, household: Household, intent: str, subjects: tuple[str, ...]) -> tuple[str, ...]:
    who = facts.who
    everyone = tuple(sorted(pet.id for pet in household.pets))
    if intent == "overview" and not who.pets:
        return everyone
    if intent in {"select_pets", "compare_pets"}:
        if who.pets and who.pets != ("?",) and len(who.pets) > 1:
            return who.pets
        if who.pets == ("?",) and len(who.candidates) > 1 and not who.pronoun:
            return who.candidates
        asked = [pet.id for pet in household.pets if f"species:{pet.species}" in who.hosts]
        return tuple(sorted(asked)) or everyone
    if who.pets and (who.named or intent not in _THING_INTENTS):
        return who.pets
    if subjects and set(subjects) <= _HOME_EVENTS and intent in {"event_when", "event_check"}:
        return everyone
    eaters = {pet for food in own_foods_in(facts.linked, household) for pet in food.pets}
    if intent in _PET_INTENTS and len(eaters) == 1:
        return tuple(eaters)
    about_thing = any(subject.startswith(("device:", "breed:", "species:")) for subject in subjects)
    if intent in _PET_INTENTS and not about_thing and not (intent == "normal_check" and who.hosts):
        return everyone if len(everyone) == 1 else ("?",)
    if intent == "exposure" and (who.hosts or who.pronoun):
        return everyone if len(everyone) == 1 else ("?",)
    return ()


# --- frame ----------------------------------------------------------------------------------


def frame_json(question: Question) -> dict[str, object]:
    """The Frame JSON of CONTRACTS: exactly the fields of the cases, ``id`` left out."""
    return {
        "text": question.text,
        "intent": question.intent,
        "pets": list(question.pets),
        "metric": question.metric,
        "dir": question.direction,
        "window": question.window_label,
        "subj": list(question.subjects),
        "answer_class": question.answer_class,
    }
