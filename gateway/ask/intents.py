"""The ordered decision list: what is asked, from cue classes and what was linked.

In: a ``Linked`` question. Out: the first rule that holds, by name. A rule is a name, an
intent and a condition; order is the only priority. No score, no threshold; safety stands
before this list (``question.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.ask import meds
from gateway.ask.direction import against_past, spoken_direction
from gateway.ask.facts_said import FOODLIKE, LEVELS, Facts
from gateway.ontology import load as tables

__all__ = ["RULES", "Rule", "decide"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the list: the intent that holds where ``when`` does."""

    name: str
    intent: str
    when: Callable[[Facts], bool]


def _measured(f: Facts) -> bool:
    return f.metric is not None


def _is_causal(f: Facts) -> bool:
    about = f.subject_food or f.subject_med or f.thing or f.mentions("place", "cond") or bool(f.linked.events)
    about = about or f.has("current_food", "new_food") or (f.has("food_noun") and f.measured not in FOODLIKE)
    blames = f.has("cause") or (f.yes_no and f.has("why"))
    asks_why = f.starts("why", "when", within=2) and not (f.yes_no and about)  # "could Acme account for ..."
    return _measured(f) and (f.has("line_up") or (blames and about)) and not asks_why


def _said_up_or_down(f: Facts) -> bool:
    """Whether a change is said beside what is measured: "can it make him drink more", not "... make him thirsty"."""
    return any(not way.startswith("weak_") for _, _, way in f.linked.directions)


def _blames_food(f: Facts) -> bool:
    """Whether a food is blamed for something that nothing here measures ("upsetting his stomach")."""
    return (
        f.measured is None and f.subject_food and f.has("cause") and f.who.named and f.yes_no and not f.has("contain")
    )


def _asks_food(f: Facts) -> bool:
    eaten = f.mentions("ing", "food", "own_food") or bool(f.linked.toxins)
    asked = f.yes_no or f.starts("can", "how_much", within=4) or f.has("eat_ask") or _judged_last(f)
    told = f.starts("why", within=2) and f.moved  # "why does he eat less since we give him Acme"
    return eaten and f.has("can") and asked and not told


def _asks_before(f: Facts) -> bool:
    """Whether it is what changed before; "... What changed?" after a told change asks why."""
    if not f.has("before"):
        return False
    says = any(
        reading.target == "before"
        for index in range(len(f.linked.tokens))
        for _, readings in f.linked.language.times.joints.at(f.linked.tokens, index)
        for reading in readings
    )
    return says or (f.metric is None and not f.has("why"))


def _judged_last(f: Facts) -> bool:
    """Whether the last word asks for a judgement: "carrots for Max, allowed?"."""
    said = [token.text for token in f.linked.tokens if token.text[0].isalnum()]
    return bool(said) and said[-1] in f.linked.language.words["closing"]


def _asks_contents(f: Facts) -> bool:
    named = f.mentions("own_food", "ing", "food") or f.has("current_food", "new_food", "old_food")
    named = named or (f.who.named and f.has("food_noun")) or _in_the_bowl(f)
    lasting = f.has("since_when") or (f.has("how_long") and f.who.named)
    contain = f.has("contain") or (_stands_in(f) and (f.subject_food or (f.yes_no and _about_food(f))))
    moved = f.metric is not None and f.metric.direction is not None
    dated = any(span.label not in {"NOW", "NEXT", "NIGHT", "RECENT", "TODAY"} for span in f.linked.times)
    return named and contain and f.measured in {None, "intake"} and not (dated or lasting or moved)


def _asks_when(f: Facts) -> bool:
    return f.starts("when", "how_long", within=3)


def _about_food(f: Facts) -> bool:
    """Whether what the pet eats is spoken of: "has what he eats now got salmon in?"."""
    return f.has("food_noun", "current_food", "new_food", "old_food") or f.measured in {"intake", "meals"}


def _in_the_bowl(f: Facts) -> bool:
    """Whether it is "what's in Luna's bowl"."""
    return f.what and f.who.named and f.has("device_food_bowl") and not f.has("device_water_bowl", "device_ask")


_IN = frozenset({"in", "im", "en"})


def _stands_in(f: Facts) -> bool:
    """Whether a thing is asked for in something: "Is beef in Luna's food?"."""
    mentions = zip(f.linked.spans, f.linked.mentions, strict=True)
    return any(m.kind in {"ing", "food"} and f.linked.word(last) in _IN for (_, last), m in mentions)


def _gets_thing(f: Facts) -> bool:
    """Whether it is "does she still get any grain?", "what foods have fish?": what labels say."""
    gets = f.has("given", "eat_ask", "getting") and f.yes_no and f.measured in {None, "intake", "meals"}
    past = any(token.text in f.linked.language.words["past_aux"] for token in f.linked.tokens)
    now = f.windows == 0 and not f.has("can", "why", "cause", "missed")
    foods = f.has("fact_food") and f.measured in {None, "intake"} and not f.has("most")
    return f.mentions("ing") and now and not past and ((f.who.named and gets) or foods)


def _asks_device(f: Facts) -> bool:
    if f.measured == "battery":
        return True
    noun = f.has("device_food_bowl", "device_tracker", "device_water_bowl", "device_scale", "device_hub")
    about = bool(f.devices) or f.has("device_any") or noun
    blamed = f.has("cause") and (f.subject_food or f.subject_med)
    fares = f.metric is not None and f.moved and (blamed or f.has("why", "how_much"))  # "why's he leaving food in it"
    asked = (f.has("device_ask") and not fares) or (
        f.yes_no
        and f.measured is None
        and not f.has("why", "cause")
        and not _stands_in(f)
        and not (f.has("contain") and f.thing)
    )
    return about and asked and f.measured in {None, "intake", "refill", "water", "weight", "meals"}


def _asks_onset(f: Facts) -> bool:
    about = _measured(f) or f.subject_food or f.subject_med or f.has("new_food")
    lasting = f.has("how_long") and f.starts("how_long") and _perfect(f)
    first = f.moved and any(token.text == "first" for token in f.linked.tokens)
    turned = f.moved and not f.has("most", "last")
    gone = f.metric is not None and f.metric.direction is not None and not f.has("last")
    switched = f.subject_food and f.has("start", "switch_verb", "getting") and not f.has("last", "most")
    begun = f.has("when") and (f.has("start") or first or gone or turned or switched) and f.starts("when", within=3)
    return about and (f.has("since_when") or lasting or (begun and not f.has("due")))


def _perfect(f: Facts) -> bool:
    """Whether it is "how long has ... been", not "how long did": the state still lasts."""
    aside = {i for first, last in f.linked.cues.get("wrapper", ()) for i in range(first, last)}
    first, last = f.linked.asked
    still = {f.linked.word(i) for i in range(first, last) if i not in aside}  # "wie lange frisst er schon ..."
    if f.metric is not None and f.metric.first >= first:  # "how long has he been eating less than he normally does"
        last = f.metric.last
    aside |= {i for i in range(len(f.linked.tokens)) if not first <= i < last}
    words = {token.text for i, token in enumerate(f.linked.tokens) if i not in aside}  # "how long did you say ..."
    closed = f.linked.language.words
    return bool(still & closed["lasting"]) and not words & closed["past"]


def _around(f: Facts) -> bool:
    return any(span.around for span in f.linked.times)


def _several_windows(f: Facts) -> bool:
    around = _around(f) and not f.has("start")
    begun = f.starts("when", within=2) and f.has("start")  # "when did it start, this week or before?"
    return (
        _measured(f)
        and not (f.starts("why", within=2) or begun)
        and (
            (f.windows >= 2 and f.has("periods", "most", "compare"))
            or around
            or f.against_food
            or (f.windows == 1 and f.moved and against_past(f.linked))
        )
    )


def _selects(f: Facts) -> bool:
    asks = f.starts("which", "any_pet", "who", within=3) or (f.yes_no and f.has("any_pet"))
    any_of_them = f.starts("any_pet", within=3)
    own_past = f.has("usual", "normal") or (f.moved and (any_of_them or not f.has("most"))) or f.measured == "restless"
    return _measured(f) and asks and own_past and f.compared_pets < 2 and not f.mentions("pet")


def _compares(f: Facts) -> bool:
    if not _measured(f):
        return False
    if f.compared_pets >= 2:
        return (f.has("who", "which", "compare", "most") or _beside_a_pet(f)) and not f.has("usual")
    return f.starts("who", "which", within=3) and f.has("most") and not f.mentions("pet")


def _beside_a_pet(f: Facts) -> bool:
    """Whether one pet is held against another: "does he rest as much as Luna"."""
    mentions = zip(f.linked.spans, f.linked.mentions, strict=True)
    leads = f.linked.language.words["against_pet"]
    return any(m.kind == "pet" and f.linked.word(first - 1) in leads for (first, _), m in mentions)


def _asks_trend(f: Facts) -> bool:
    statement = not f.wh and (f.yes_no or not f.starts("how_much", within=2))
    return _measured(f) and statement and (f.moved or f.has("still"))


def _asks_normal(f: Facts) -> bool:
    modal = any(token.text in f.linked.language.words["modal"] for token in f.linked.tokens)
    if _measured(f) and bool(f.who.hosts) and modal and f.starts("how_much", within=2):
        return True
    if _measured(f) and f.yes_no and _well_said(f) and f.who.pets and not f.thing:
        return True
    if not _measured(f) or not f.has("normal"):
        return False
    return f.yes_no or f.starts("how_much", within=2) or bool(f.who.hosts)


def _well_said(f: Facts) -> bool:
    """Whether "ok", "fine" is said of something, not to open the question."""
    return any(first >= f.linked.opens_at for first, _ in f.linked.cues.get("well", ()))


def _asks_need(f: Facts) -> bool:
    """Whether it is what a pet of the home should have: "how much should Max eat", "how much exercise does he need"."""
    words = f.linked.language.words
    needs = any(token.text in words.get("needs", ()) for token in f.linked.tokens)
    other = f.thing or f.subject_food or f.subject_med or f.who.hosts or f.moved
    asked = f.measured in {"intake", "water", "activity", "rest"} and f.starts("how_much", within=2)
    return asked and needs and bool(f.who.pets) and not other and f.windows == 0


def _names_vet(f: Facts) -> bool:
    return "src:vet" in f.linked.targets("src")


def _for_a_form(f: Facts) -> bool:
    """Whether one figure or date is asked for, whoever is to hear it: "I must tell the vet how long ..., how long?"."""
    return _measured(f) and f.has("how_long", "when", "since_when", "how_often") and not f.has("pet_advice")


def _looks_up(f: Facts) -> bool:
    if _names_vet(f) and f.measured in {None, "weight"} and f.has("record", "last", "when", "how_much"):
        return not _for_a_form(f)
    if f.has("age") and f.who.named:
        return True
    if "topic:food_allergy" in f.linked.targets("topic") and f.who.named and f.thing and f.yes_no and not _measured(f):
        return True  # "does he react to tuna"
    if "cond:allergy" in f.linked.targets("cond") and f.who.named and f.thing and not f.moved:
        return True  # "before I feed him, tell me if he has a duck allergy"
    if f.mentions("cond") and f.who.pets and f.measured is None and (f.yes_no or f.has("record", "how_much", "which")):
        return True
    dated = f.subject_med and f.has("last") and f.has("when")  # "I've got the diary open, when did I last worm him?"
    if f.mentions("src") and f.has("record", "last", "how_much") and not dated:
        return True
    if "med:vaccine" in f.linked.targets("med", "own_med") and not f.has("due"):
        return True
    stayed = f.mentions("place") and f.has("stayed") and not f.yes_no and not (_measured(f) and f.has("cause"))
    return stayed or (f.has("record") and f.mentions("cond", "body") and bool(f.who.pets) and not _measured(f))


def _is_reference(f: Facts) -> bool:
    if f.mentions("topic"):
        return not f.mentions("pet") or f.measured is None
    general = bool(f.who.hosts) or f.mentions("cond", "ing", "food")
    if f.mentions("cond") and f.who.hosts and not f.who.named:
        return True
    normal = _measured(f) and f.has("normal")
    return f.has("most_of") and general and not (f.who.named or normal or f.has("can"))


def _asks_overview(f: Facts) -> bool:
    return f.measured is None and f.has("overview") and (bool(f.who.pets) or f.has("away") or not f.linked.unmatched)


def _provenance(f: Facts) -> bool:
    if f.has("why_not_think"):
        return True
    if f.metric is not None and f.metric.last <= f.linked.asked[0] and f.has("why"):
        return False  # "she scratches like mad. Where does that come from?": what was told, not what the hub said
    spans = {name: set(f.linked.cues.get(name, ())) for name in ("provenance", "why")}
    if _measured(f) and spans["provenance"] and spans["provenance"] <= spans["why"]:
        return False  # "Woher kommt das viele Kratzen?": the same words ask for the cause of what is measured
    asks = f.has("provenance") and (f.has("claimword", "current_food", "claim") or f.starts("provenance", within=3))
    return asks and not (_measured(f) and f.has("cause") and f.yes_no)


def _needs_vet(f: Facts) -> bool:
    """Whether a vet is asked for; the "sick" of "been sick" is what happened."""
    spans = f.linked.cues.get("need_vet", ())
    within = f.metric is not None and all(f.metric.first <= a and b <= f.metric.last for a, b in spans)
    return bool(spans) and not within and not f.has("record") and not f.starts("when", within=2)


def _asks_highest(f: Facts) -> bool:
    """Whether it is "on which day did he scratch the most": nothing here ranks days, and the last one is no answer."""
    ranked = any(token.text in f.linked.language.words["superlatives"] for token in f.linked.tokens)
    return _measured(f) and ranked and f.starts("when", within=3) and not f.has("last")


def _noun_alone(f: Facts) -> bool:
    """Whether it is "Peanut's weight?", "Luna sleep last night?": a measured noun, no verb, no direction."""
    words = f.linked.language.words
    said = f.linked.tokens[f.linked.opens_at : f.linked.asked[1]]  # "could you tell me Peanut's weight?"
    return _noun(f) and not f.moved and not any(token.text in words["aux"] for token in said)


def _noun(f: Facts) -> bool:
    """Whether what is measured is said by its noun ("weight", not "weighed")."""
    words = f.linked.language.words
    return (
        f.metric is not None
        and " ".join(token.text for token in f.linked.tokens[f.metric.first : f.metric.last]) in words["nouns"]
    )


def _asks_well(f: Facts) -> bool:
    """Whether it is "Is Max ok?", with nothing measured and no thing asked about."""
    nothing = f.measured is None and not f.thing and not f.subject_food and not f.subject_med
    return nothing and _well_said(f) and f.yes_no and f.who.named and len(f.linked.tokens) <= 7


def _asks_what_is_it(f: Facts) -> bool:
    """Whether it is "what's the matter with Max?": a pet by name, and nothing that is measured or named beside it."""
    other = f.subject_food or f.subject_med or f.thing or f.mentions("body", "place", "src") or bool(f.linked.events)
    return f.measured is None and f.what and f.has("why") and f.who.named and not (other or f.linked.unmatched)


def _fares(f: Facts) -> bool:
    """Whether it is how a pet fares: "is Max still off", "did Max get worse after the new food"."""
    judged = any(way in {"better", "worse"} for _, _, way in f.linked.directions)
    return f.has("still") or (judged and any(span.around or span.event for span in f.linked.times))


def _asks_state(f: Facts) -> bool:
    """Whether it is "is Luna hungry": what a pet feels now, which a bowl does not tell."""
    if f.metric is None or f.moved or f.windows or not f.yes_no or f.has("still", "usual", "normal", "why", "cause"):
        return False
    said = " ".join(token.text for token in f.linked.tokens[f.metric.first : f.metric.last])
    return said in f.linked.language.words.get("states", ())


def _feels(f: Facts) -> bool:
    return f.measured is None and f.has("feels") and f.who.named and not f.has("cause", "can")


def _asks_switch(f: Facts) -> bool:
    """Whether it is when a food was changed."""
    changed = f.has("switch_verb") and (f.subject_food or f.has("food_noun", "current_food"))
    return f.starts("when", within=3) and (bool(f.linked.events) or changed)


def _told(f: Facts) -> bool:
    """Whether a change for the worse is told, not asked ("Luna isn't eating"): whether so, and why."""
    if f.metric is None or not f.who.pets or f.yes_no or f.wh or f.what or f.has("how_much", "compare"):
        return False
    worse = tables.load().properties[f.metric.property].worse
    said = spoken_direction(f.linked, f.metric)
    if worse not in {"up", "down"}:  # either way is a change to be explained, as with weight
        return said in {"up", "down"}
    if worse == "down" and said == "up" and f.has("usual"):  # "she ate a lot more than she usually does yesterday"
        return True
    lasting = _has_verb(f) or any(span.label.startswith("SINCE:") for span in f.linked.times)
    return said == worse or (said is None and worse == "up" and lasting)


def _has_verb(f: Facts) -> bool:
    return any(token.text in f.linked.language.words["aux"] for token in f.linked.tokens)


def _states(f: Facts) -> bool:
    """Whether something is told that is no change for the worse; it is read as asking whether so."""
    asks = f.yes_no or f.wh or f.what or f.has("how_much", "asked_by")
    return _measured(f) and _has_verb(f) and f.who.named and not asks


def _bought(f: Facts) -> bool:
    """Whether it is asked what was bought, not whether to buy it, nor what came since."""
    modal = any(token.text in f.linked.language.words["modal"] for token in f.linked.tokens[:4])
    nouns = f.linked.cues.get("food_noun", ())
    bare = f.metric is None or (f.metric.first, f.metric.last) in nouns
    return f.has("buy") and not modal and not f.moved and not f.has("why") and (bare or _bought_new(f))


def _bought_new(f: Facts) -> bool:
    """Whether it is "anything new?": no product is named, and no day or amount is asked for."""
    asked = f.has("buy") and f.has("buy_new") and f.starts("buy", within=6) and not f.moved
    return asked and not f.subject_food and not f.starts("when", "how_much", "why", within=3)


def _denies(f: Facts) -> bool:
    """Whether it is "No, Max didn't eat Harbor": a no, a comma and another negation, of a thing on file."""
    if f.linked.word(1) != "," or not (f.subject_food or f.subject_med) or f.wh:
        return False
    spans = f.linked.cues.get("negation", ())
    return any(first == 0 for first, _ in spans) and any(first > 1 for first, _ in spans)


def _asks_too_heavy(f: Facts) -> bool:
    return f.has("heavy") and f.yes_no and f.measured in {None, "weight", "intake"} and not _is_causal(f)


def _requests(f: Facts) -> bool:
    """Whether something is wanted that the hub does not do ("Can you order more food?")."""
    asks = f.has("how_much", "why", "when", "which", "who", "compare", "overview", "tell_vet", "record", "need_vet")
    asks = asks or (f.has("cause") and _measured(f))
    return f.starts("request", within=1) and not asks


_FACTS = ("vet", "clinic", "age", "breed", "neutered", "sex", "wears", "devices", "wet_dry", "food", "pets")
"""What the household's own record says, in the order it is looked for; ``fact_...`` names the cue and the rule."""
_OF_A_PET = frozenset({"age", "breed", "neutered", "sex"})


def _fact(name: str) -> Callable[[Facts], bool]:
    """Whether a fact of the household is asked for, and nothing that is measured, moved or blamed."""

    def asked(f: Facts) -> bool:
        free = f.measured is None or (name in {"food", "wet_dry", "wears", "devices"} and f.measured == "intake")
        about = (bool(f.who.pets) or name not in _OF_A_PET) and not f.mentions("ing")
        other = f.has("why", "cause", "contain", "need_vet", "tell_vet", "buy", "most", "can")
        other = other or (f.has("record") and name not in {"vet", "clinic"})
        if name == "wears":
            return f.has("fact_wears") and f.has("fact_devices") and about
        other = other or f.has("device_ask")
        return f.has(f"fact_{name}") and free and about and not other and not f.moved and not f.starts("when", within=2)

    return asked


def _treat_given(f: Facts) -> bool:
    return "food:treat" in f.linked.targets("food") and f.has("given") and f.yes_no


def _happened(f: Facts) -> bool:
    """Whether something people write down is asked about by itself: a visitor, a bath, fireworks."""
    return f.measured is None and any(name != "food_change" for _, _, name in f.linked.events)


RULES: tuple[Rule, ...] = (
    Rule("request", "out_of_scope", _requests),
    Rule(
        "correction", "correction", lambda f: (f.has("correction") and not f.has("helped", "yes_or_no")) or _denies(f)
    ),
    Rule("why_notice", "why_notice", lambda f: f.has("notice") and f.has("why", "when", "how_much", "record")),
    Rule("provenance", "provenance", _provenance),
    Rule("bought_new", "purchases", lambda f: _bought(f) and _bought_new(f)),
    Rule("bought", "purchases", lambda f: _bought(f) and not (f.has("contain") and f.mentions("ing"))),
    Rule("vet_summary", "vet_summary", lambda f: f.has("tell_vet") and not (f.has("vets_words") or _for_a_form(f))),
    Rule(
        "switch_back",
        "switch_back",
        lambda f: (
            f.has("switch_back")
            and (f.subject_food or f.has("old_food") or any(token.text == "back" for token in f.linked.tokens))
            and f.measured in {None, "intake"}
            and not f.has("usual")
        ),
    ),
    Rule(
        "fact_birthday", "record_lookup", lambda f: f.has("fact_birthday") and bool(f.who.pets) and f.measured is None
    ),
    *(Rule(f"fact_{name}", "record_lookup", _fact(name)) for name in _FACTS),
    Rule("in_pain", "need_vet", lambda f: _needs_vet(f) and f.has("in_pain")),
    Rule("need_vet", "need_vet", _needs_vet),
    Rule("device", "device_status", _asks_device),
    Rule(
        "med_missed", "med_timing", lambda f: f.subject_med and f.has("missed") and not (_measured(f) or _asks_when(f))
    ),
    Rule(
        "med_helped",
        "compare_periods",
        lambda f: f.subject_med and _measured(f) and meds.helps(f) and not f.starts("why", "when", within=2),
    ),
    Rule("med_now", "event_check", meds.give_now),
    Rule(
        "med_can",
        "med_safety",
        lambda f: (
            f.subject_med
            and f.starts("can", within=2)
            and not f.starts("when", within=1)
            and f.has("side_effect", "cause")
            and not ((f.has("present_cause") or (f.who.named and _said_up_or_down(f))) and _is_causal(f))
        ),
    ),
    Rule("med_general", "med_safety", meds.med_in_general),
    Rule("med_causes", "cause_check", lambda f: f.subject_med and f.who.named and _is_causal(f)),
    Rule(
        "med_onset", "onset", lambda f: f.subject_med and _asks_onset(f) and not (meds.since_given(f) or f.has("last"))
    ),
    Rule("vaccine_due", "med_timing", lambda f: f.subject_med and f.has("due") and not f.has("last")),
    Rule("med_next", "med_timing", meds.asks_next),
    Rule("look_up", "record_lookup", _looks_up),
    Rule("med_last", "event_when", meds.asks_last_given),
    Rule("med_given", "event_check", meds.given),
    Rule("med_safety", "med_safety", lambda f: meds.is_med_safety(f) and f.measured in {None, "intake"}),
    Rule("med_record", "record_lookup", lambda f: f.subject_med and not _measured(f) and bool(f.who.pets)),
    Rule("before_change", "before_change", _asks_before),
    Rule("overview", "overview", _asks_overview),
    Rule("well", "overview", _asks_well),
    Rule("feels", "overview", _feels),
    Rule("too_heavy", "too_heavy", _asks_too_heavy),
    Rule("enough", "enough", lambda f: f.has("enough") and _measured(f) and not f.starts("why", within=2)),
    Rule("needs", "enough", _asks_need),
    Rule("state", "out_of_scope", _asks_state),
    Rule("cause", "cause_check", _is_causal),
    Rule("cause_unmeasured", "cause_check", _blames_food),
    Rule("contents", "ingredient_lookup", lambda f: _asks_contents(f) and not f.starts("can", within=1)),
    Rule("gets", "ingredient_lookup", _gets_thing),
    Rule("periods", "compare_periods", _several_windows),
    Rule("food_ok", "food_ok", lambda f: _asks_food(f) and f.measured in {None, "intake", "water", "lick"}),
    Rule("reference", "reference", _is_reference),
    Rule("onset", "onset", _asks_onset),
    Rule("explain", "explain_change", lambda f: _measured(f) and (f.has("why") or (f.has("what_is_it") and f.moved))),
    Rule("select", "select_pets", _selects),
    Rule("compare", "compare_pets", _compares),
    Rule("begun_after", "cause_check", lambda f: _measured(f) and f.has("start") and _around(f)),
    Rule("visit", "event_check", lambda f: f.mentions("place") and f.yes_no and not _measured(f)),
    Rule("when_changed", "event_when", _asks_switch),
    Rule("how_long_there", "event_when", lambda f: _happened(f) and f.has("how_long")),
    Rule("happened", "event_check", lambda f: _happened(f) and f.yes_no and not f.moved and not f.has("can", "cause")),
    Rule("highest", "out_of_scope", _asks_highest),
    Rule("when", "event_when", lambda f: _measured(f) and f.starts("when", within=3)),
    Rule("treat_given", "event_check", _treat_given),
    Rule("is_it_normal", "normal_check", lambda f: _asks_normal(f) and f.yes_no and f.starts("normal", within=1)),
    Rule("normal", "normal_check", lambda f: _asks_normal(f) and not f.moved and not f.has("still")),
    Rule("told", "explain_change", _told),
    Rule("what_moves", "explain_change", lambda f: _measured(f) and f.what and f.moved and not f.has("still")),
    Rule("trend", "trend", _asks_trend),
    Rule("normal_host", "normal_check", lambda f: _asks_normal(f) and (bool(f.who.hosts) or f.yes_no)),
    Rule("noun_alone", "quantity", lambda f: _noun_alone(f) and f.yes_no),
    Rule("level", "quantity", lambda f: _noun(f) and f.yes_no and f.measured in LEVELS),
    Rule("check", "event_check", lambda f: _measured(f) and f.yes_no),
    Rule(
        "of_host", "normal_check", lambda f: _measured(f) and bool(f.who.hosts) and not f.who.pets and f.has("how_much")
    ),
    Rule("statement", "trend", _states),
    Rule(
        "quantity",
        "quantity",
        lambda f: _measured(f) and (f.measured != "activity" or f.has("how_much") or bool(f.who.pets)),
    ),
    Rule("contents_pair", "ingredient_lookup", lambda f: f.subject_food and f.mentions("ing") and not f.who.named),
    Rule("contents_of", "ingredient_lookup", lambda f: f.subject_food and f.has("contain", "how_much", "which")),
    Rule("better", "overview", lambda f: f.measured is None and _fares(f) and f.who.named and f.yes_no),
    Rule("weeks_compared", "overview", lambda f: f.measured is None and f.has("compare") and f.windows > 1),
    Rule("what_is_it", "overview", _asks_what_is_it),
    Rule("side_by_side", "overview", lambda f: f.compared_pets >= 2 and f.has("compare")),
    Rule("advice", "pet_advice", lambda f: f.has("pet_advice")),
    Rule("only_pet", "overview", lambda f: f.who.named and sum(t.text[0].isalpha() for t in f.linked.tokens) == 1),
    Rule("tell_about", "overview", lambda f: f.who.named and f.has("most_of") and not _measured(f)),
    Rule("about_a_pet", "pet_advice", lambda f: f.who.named and f.starts("can", within=1)),
)


def decide(facts: Facts) -> tuple[str, str]:
    """(rule, intent) of the first line that holds; nothing holding is out of scope."""
    for rule in RULES:
        if rule.when(facts):
            return rule.name, rule.intent
    return "nothing_linked", "out_of_scope"
