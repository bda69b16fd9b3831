"""Which reply an intent gets: one table, no cascade.

Each reply fills its intent's typed slots from the snapshot and says what is there, what is
not, and which device or record would have known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from gateway.ask import (
    advice,
    amounts,
    blame,
    facts,
    labelled,
    latest,
    lineup,
    logged,
    lookups,
    medlog,
    periods,
    purchases,
    signs,
    twodays,
)
from gateway.ask.answer import EXPLAINED_WORDS
from gateway.ask.explain import explain_change
from gateway.ask.safety import emergency_numbers
from gateway.ask.said import Said, say, verbatim
from gateway.ask.settle import log_day
from gateway.ask.times import Calendar, window_of
from gateway.ask.weighed import logged_level
from gateway.ask.wording import joined, listed
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import add_days, local_day
from gateway.model import PetStatus
from gateway.ontology.load import hazards

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Answer, Question
    from gateway.model import Pet, Window

__all__ = ["CAN_ASK", "reply"]

CAN_ASK = (
    "why something changed, how much or how often, since when, whether it is more than usual, "
    "who more, what is in a food, what is on file, or whether a device still works"
)
_UNREADABLE = {
    "empty": "No question arrived",
    "too_long": "That is longer than I read (500 characters)",
    "unreadable": "I can't read that",
    "highest": "Which day or night stands highest is not worked out here; the figure of one you name is",
}
_SUBJECT_AFTER = frozenset({"is", "does", "did", "has", "was", "will", "can", "should", "do", "ist", "hat", "kann"})
"""Auxiliaries a pet's name follows in a question ("Why is Rex scratching?")."""
_MOST_PETS = 4
_LONGEST_DAY_MS = 25 * 3_600_000
"""A day on which the clocks go back."""
_ADDED_UP = frozenset({"duration", "mass", "count"})
"""Kinds of property whose slots add up to what a day held."""
_AROUND_DAYS = 28


@dataclass(frozen=True, slots=True)
class _Turn:
    """One question being answered."""

    scene: Scene
    question: Question
    draft: Draft
    earlier: Answer | None

    def window(self) -> Window:
        """The question's window; symbolic ones are resolved by stored events, else the week."""
        question, scene = self.question, self.scene
        if question.window is not None:
            return question.window
        if question.window_label == "SINCE:food_change":
            changed = self._last_food_change()
            if changed is not None:
                return scene.window("SINCE:food_change", min(changed, scene.today), scene.today)
        return scene.week()

    def _last_food_change(self) -> str | None:
        for pet_id in self.question.pets:
            feedings = self.scene.reader.feedings(self.scene.home, pet_id)
            if len(feedings) > 1 and feedings[-1].start_ms <= self.scene.now_ms:
                return local_day(feedings[-1].start_ms, self.scene.zones)
        return None

    def pets(self) -> tuple[Pet, ...]:
        return self.scene.pets(self.question.pets)


def reply(scene: Scene, question: Question, draft: Draft, *, earlier: Answer | None) -> None:
    """Write the reply to a question that names no danger."""
    turn = _Turn(scene, question, draft, earlier)
    stranger = _stranger(turn)
    if stranger is not None:
        everyone: list[str] = [verbatim(pet.name) for pet in scene.home.pets] or ["nobody yet"]
        text = say("No pet called {name} lives here; known: {names}", name=verbatim(stranger), names=joined(everyone))
        draft.say(NoticeKind.CLARIFY, text, slot="pet")
        return
    if question.pets == ("?",) or question.answer_class == "clarify":
        _clarify(turn)
        return
    if any(pet.status in (PetStatus.DIED, PetStatus.GONE) for pet in turn.pets()) and question.metric is not None:
        gone = next(pet for pet in turn.pets() if pet.status in (PetStatus.DIED, PetStatus.GONE))
        text = say("{pet}'s records are kept, and nothing is compared with a usual any more", pet=gone)
        draft.say(NoticeKind.SHORT, text)
        return
    for said, meant in question.corrections:
        draft.say(
            NoticeKind.CLARIFY, say('"{heard}" is read as "{meant}"', heard=verbatim(said), meant=verbatim(meant))
        )
    if not _from_the_log(turn):
        _REPLIES.get(question.intent, _refuse)(turn)
    if not draft.claims and len(draft.notices) == len(question.corrections):
        draft.say(NoticeKind.SHORT, "That can't be told from what is recorded here", slot="record")
        draft.say(NoticeKind.NEXT, say("You can ask {what}", what=CAN_ASK))


def _from_the_log(turn: _Turn) -> bool:
    """Answer what only people write down from their log; False where something else answers it."""
    scene, question = turn.scene, turn.question
    observed = scene.ontology.properties.get(question.metric or "")
    pets = turn.pets()
    if observed is None or not pets or not all(signs.is_written(scene, question, pet, observed) for pet in pets):
        return False
    window, phone = turn.window(), advice.vet_phone(scene)
    _each_pet(
        turn,
        lambda pet: signs.logged_sign(scene, question, turn.draft, pet, observed, window=window, phone=phone),
    )
    return True


def _stranger(turn: _Turn) -> str | None:
    """A name nobody here bears, standing where a pet's name would: after "is", "has", or with 's.

    The reader found no pet by name, and the word is written with a capital inside the sentence.
    """
    question = turn.question
    if not question.unmatched or any(mention.kind == "pet" for mention in question.mentions):
        return None
    words = re.findall(r"[^\W\d_]+(?:['\N{RIGHT SINGLE QUOTATION MARK}]s)?", question.text)
    for before, word in pairwise(words):
        bare = re.split(r"['\N{RIGHT SINGLE QUOTATION MARK}]", word)[0]
        named = bare[:1].isupper() and not bare.isupper() and bare.casefold() in question.unmatched
        if named and (before.casefold() in _SUBJECT_AFTER or word != bare):
            return bare
    return None


def _clarify(turn: _Turn) -> None:
    """Ask back, naming the candidates; nothing is guessed."""
    known = {pet.id: pet.name for pet in turn.scene.home.pets}
    names = [known.get(one, one) for one in turn.question.candidates] or [known[one] for one in sorted(known)]
    if not names:
        turn.draft.say(NoticeKind.CLARIFY, "No pet is set up here yet; import a household first", slot="pet")
        return
    which = say("Which pet do you mean: {names}?", names=joined([verbatim(name) for name in names], last="or"))
    turn.draft.say(NoticeKind.CLARIFY, which, slot="pet")


def _refuse(turn: _Turn) -> None:
    """A question that cannot be read, or is not about this home: say so, and what can be asked."""
    opening = _UNREADABLE.get(turn.question.rule, "That is not something the records of this home can answer")
    if turn.question.answer_class == "GENERAL":
        _general(turn)
        return
    about = _meant(turn) if turn.question.rule == "nothing_linked" else ()
    if about:
        turn.draft.say(
            NoticeKind.CLARIFY, say("This is about {what}, but I can't read what is asked", what=joined(about))
        )
        phones = emergency_numbers(hazards(), turn.scene.home)
        turn.draft.say(
            NoticeKind.TRIAGE,
            say(
                "If a pet is hurt, unwell or swallowed something, call a vet or an emergency clinic now: {phones}",
                phones=listed(phones),
            )
            if phones
            else say("If a pet is hurt, unwell or swallowed something, call a vet or an emergency clinic now"),
        )
    else:
        turn.draft.say(NoticeKind.SHORT, opening)
    turn.draft.say(NoticeKind.NEXT, say("You can ask {what}", what=CAN_ASK))


def _meant(turn: _Turn) -> tuple[str, ...]:
    """The pets and things of this home that a question names, as they are called here or as they were said."""
    names = {pet.id: pet.name for pet in turn.scene.home.pets}
    said = (m for m in turn.question.mentions if m.kind in {"pet", "own_food", "own_med", "device", "place"})
    return tuple(dict.fromkeys(names.get(mention.target, mention.text) for mention in said))


def _general(turn: _Turn) -> None:
    """Advice no record holds: labelled as such, without a number, a drug or a reassurance."""
    pets = turn.pets()
    turn.draft.say(NoticeKind.SHORT, "No record of this home can answer that", slot="source")
    turn.draft.claim(
        "general",
        EvidenceClass.GENERAL,
        say(
            "General knowledge, not from {pet}'s records: it depends on the animals, the home and the people in it; "
            "where health is concerned, ask your vet",
            pet=pets[0],
        )
        if len(pets) == 1
        else say(
            "General knowledge, not from your pets' records: it depends on the animals, the home and the people in "
            "it; where health is concerned, ask your vet"
        ),
    )


def _each_pet(turn: _Turn, tell: Callable[[Pet], None]) -> None:
    """One paragraph a pet, its name first where there are several, each with its own words."""
    pets = turn.pets()
    turn.draft.words *= max(1, min(len(pets), _MOST_PETS))
    for pet in pets[:_MOST_PETS]:
        if len(pets) > 1:
            turn.draft.paragraph()
            turn.draft.say(NoticeKind.SHORT, verbatim(f"{pet.name}:"))
        tell(pet)


def _explain(turn: _Turn) -> None:
    window = turn.window()
    turn.draft.words = EXPLAINED_WORDS
    _each_pet(turn, lambda pet: explain_change(turn.scene, turn.question, turn.draft, pet, window))


def _trend(turn: _Turn) -> None:
    window = turn.window()
    _each_pet(turn, lambda pet: periods.trend(turn.scene, turn.question, turn.draft, pet, window))


def _quantity(turn: _Turn) -> None:
    window = turn.window()
    _each_pet(turn, lambda pet: amounts.quantity(turn.scene, turn.question, turn.draft, pet, window))


def _onset(turn: _Turn) -> None:
    foods = [subject for subject in turn.question.subjects if subject.startswith("food:")]
    window = turn.window()
    for pet in turn.pets()[:_MOST_PETS]:
        if turn.question.metric is None and foods:
            periods.food_since(turn.scene, turn.draft, pet, foods[0])
        elif turn.question.metric is not None:
            periods.since_when(turn.scene, turn.question, turn.draft, pet, window)
        else:
            _thing_since(turn, pet)


def _med_timing(turn: _Turn) -> None:
    if not turn.pets() and turn.question.answer_class == "conservative":
        medlog.never_twice(turn.scene, turn.draft)  # whoever was forgotten: that comes before asking which
    _each_pet(turn, lambda pet: medlog.timing(turn.scene, turn.question, turn.draft, pet))
    if not turn.pets():
        _clarify(turn)


def _thing_since(turn: _Turn, pet: Pet) -> None:
    """Since when a pet has a medicine or goes to a place: from the record that dates it."""
    found = blame.exposures(turn.scene, pet, turn.question.subjects)
    if found:
        blame.say_exposures(turn.scene, turn.draft, pet, found)
        return
    turn.draft.say(NoticeKind.SHORT, "Since when is not on file", slot="exposure", device="people")
    turn.draft.say(NoticeKind.ABSENCE, "What nobody wrote down leaves no trace here", slot="exposure")
    log_day(turn.draft, "exposure")


def _cause(turn: _Turn) -> None:
    """Judge X where it is blamed, count days where they should line up, go pet by pet for "the others"."""
    scene, question, draft = turn.scene, turn.question, turn.draft
    draft.words = EXPLAINED_WORDS
    if question.metric is not None and question.direction is None and len(question.pets) > 1:
        lineup.others_on_it(scene, question, draft, turn.pets(), turn.window())
    elif question.metric is not None and question.direction is None:
        _each_pet(turn, lambda pet: lineup.lines_up(scene, question, draft, pet))
    else:
        window = turn.window()
        _each_pet(turn, lambda pet: blame.cause_check(scene, question, draft, pet, window))


def _before(turn: _Turn) -> None:
    window = turn.window()
    turn.draft.words = EXPLAINED_WORDS
    _each_pet(turn, lambda pet: blame.before_change(turn.scene, turn.question, turn.draft, pet, window))


def _is_logged_event(turn: _Turn) -> bool:
    subjects = set(turn.question.subjects)
    return turn.question.metric is None and bool(subjects) and subjects <= logged.LOGGED_EVENTS


def _looked_up(turn: _Turn) -> None:
    if turn.question.rule == "log_words":
        logged.said_in_log(turn.scene, turn.question, turn.draft)
        return
    said = facts.household_fact if turn.question.rule.startswith("fact_") else lookups.records
    said(turn.scene, turn.question, turn.draft, turn.pets())


def _event_kind(turn: _Turn) -> str:
    return "refill" if turn.question.metric == "refill" else "meal"


def _device_subject(turn: _Turn) -> str | None:
    named = [s.partition(":")[2] for s in turn.question.subjects if s.startswith("device:")]
    return named[0] if len(named) == 1 else None


def _measured_event(turn: _Turn) -> bool:
    """Whether the event asked about is one that a bowl records (a meal, a refill)."""
    return turn.question.metric in ("intake", "meals", "meal_time", "eat_rate", "refill")


def _event_when(turn: _Turn) -> None:
    scene, question, draft = turn.scene, turn.question, turn.draft
    if _is_logged_event(turn):
        logged.logged_event(scene, question, draft)
        return
    observed = scene.ontology.properties.get(question.metric or "")
    written = any(s.startswith(("med:", "event:")) for s in question.subjects)
    if written or observed is None or observed.captured_by == ("people",):
        _each_pet(turn, lambda pet: medlog.last_logged(scene, question, draft, pet))
    elif observed.kind == "level":
        _each_pet(turn, lambda pet: logged_level(scene, draft, pet, observed))
    elif _within_a_day(question.window) and _measured_event(turn):
        _rows(turn, "when")
    elif len(turn.pets()) > 1:
        _each_pet(turn, lambda pet: latest.last_event(scene, draft, observed, pet=pet, device=_device_subject(turn)))
    else:
        pet = turn.pets()[0] if turn.pets() else None
        latest.last_event(scene, draft, observed, pet=pet, device=_device_subject(turn))


def _event_check(turn: _Turn) -> None:
    if _is_logged_event(turn):
        logged.logged_event(turn.scene, turn.question, turn.draft)
        return
    if not _measured_event(turn):
        if turn.question.metric is None:
            _each_pet(turn, lambda pet: medlog.given(turn.scene, turn.question, turn.draft, pet))
        else:
            _quantity(turn)
        return
    _rows(turn, "whether")


def _within_a_day(window: Window | None) -> bool:
    """Whether a window is a day, a night or a part of one: then "when?" is told of all that was in it."""
    return window is not None and window.interval.length_ms <= _LONGEST_DAY_MS


def _rows(turn: _Turn, asked: str) -> None:
    """The visits or refills in the window, of each pet by name where there are several."""
    kind, window, device = _event_kind(turn), turn.window(), _device_subject(turn)

    def tell(pet: Pet | None) -> None:
        amounts.events_in(turn.scene, turn.draft, kind, window, pet=pet, device=device, asked=asked)

    if turn.pets():
        _each_pet(turn, tell)
    else:
        tell(None)


def _compare_pets(turn: _Turn) -> None:
    window = turn.question.window or turn.scene.window("P30D", add_days(turn.scene.today, -29), turn.scene.today)
    amounts.compare_pets(turn.scene, turn.question, turn.draft, turn.pets(), window)


def _two_windows(turn: _Turn, label: str) -> tuple[Window, Window]:
    """The later and the earlier window of a label such as ``P30D|PREV_MONTH``."""
    later, calendar = turn.window(), Calendar(turn.scene.now_ms, turn.scene.zones)
    earlier = window_of(label.partition("|")[2], calendar) if "|" in label else None
    return later, periods.whole_week_before(turn.scene, later) if earlier is None else earlier


def _compare_periods(turn: _Turn) -> None:
    scene, label = turn.scene, turn.question.window_label or ""
    for pet in turn.pets()[:_MOST_PETS]:
        if not label.startswith("AROUND:"):
            windows = _two_windows(turn, label)
            observed = scene.ontology.properties[str(turn.question.metric)]
            if twodays.are_two_days(windows) and observed.kind in _ADDED_UP and not observed.night_only:
                twodays.two_days(scene, turn.draft, pet, observed, windows)
                continue
            periods.compare_periods(scene, turn.question, turn.draft, pet, windows)
            continue
        changed = lookups.exposure_start(scene, turn.question, pet)
        if changed is None:
            turn.draft.say(
                NoticeKind.SHORT,
                "I can't tell: when that began is not on file, so before and after can't be cut",
                slot="exposure",
                device="people",
            )
            log_day(turn.draft, "exposure")
            continue
        last = min(add_days(changed, _AROUND_DAYS), scene.today)
        windows = (
            scene.window("AFTER", min(add_days(changed, 1), last), last),
            scene.window("BEFORE", add_days(changed, -_AROUND_DAYS), add_days(changed, -1)),
        )
        periods.compare_periods(scene, turn.question, turn.draft, pet, windows, began=changed)


def _select_pets(turn: _Turn) -> None:
    periods.select_pets(turn.scene, turn.question, turn.draft, turn.pets(), turn.window())


_JUDGED: dict[str, Callable[[Pet], Said]] = {
    "well": lambda pet: say(
        "No record can say whether {pet} is well or will be; this is what the devices measured", pet=pet
    ),
    "better": lambda pet: say("No record can say whether {pet} is better; this is what the devices measured", pet=pet),
    "feels": lambda pet: say("How {pet} feels no record can say; this is what the devices measured", pet=pet),
    "in_pain": lambda pet: say("No device here sees pain, so no record can say whether {pet} is in any", pet=pet),
}
"""What is said first where a judgement is asked for, by the rule that read it."""


def _judged(turn: _Turn, pet: Pet) -> str:
    words = _JUDGED.get(turn.question.rule)
    return "" if words is None else words(pet)


def _overview(turn: _Turn) -> None:
    asked = turn.question.window_label not in (None, "RECENT")
    window = turn.window() if asked else turn.scene.week()
    _each_pet(
        turn,
        lambda pet: periods.overview(turn.scene, turn.draft, pet, window, judged=_judged(turn, pet), happened=asked),
    )
    if turn.question.rule in _JUDGED:
        text = say(
            "What you see yourself counts for more; when in doubt, call your vet{phone}",
            phone=advice.vet_phone(turn.scene),
        )
        turn.draft.say(NoticeKind.CAUTION, text)


def _need_vet(turn: _Turn) -> None:
    window = turn.window()
    _each_pet(turn, lambda pet: advice.need_vet(turn.scene, turn.draft, pet, window, judged=_judged(turn, pet)))


def _enough(turn: _Turn) -> None:
    window = turn.window()
    _each_pet(turn, lambda pet: advice.enough(turn.scene, turn.question, turn.draft, pet, window))


def _vet_summary(turn: _Turn) -> None:
    window = turn.window()
    turn.draft.words = EXPLAINED_WORDS
    _each_pet(turn, lambda pet: advice.vet_summary(turn.scene, turn.draft, pet, window))


_REPLIES: dict[str, Callable[[_Turn], None]] = {
    "explain_change": _explain,
    "cause_check": _cause,
    "before_change": _before,
    "trend": _trend,
    "quantity": _quantity,
    "onset": _onset,
    "event_when": _event_when,
    "event_check": _event_check,
    "compare_pets": _compare_pets,
    "compare_periods": _compare_periods,
    "select_pets": _select_pets,
    "overview": _overview,
    "need_vet": _need_vet,
    "enough": _enough,
    "too_heavy": lambda turn: _each_pet(turn, lambda pet: advice.too_heavy(turn.scene, turn.draft, pet)),
    "vet_summary": _vet_summary,
    "switch_back": lambda turn: advice.switch_back(turn.scene, turn.question, turn.draft, turn.pets()),
    "why_notice": lambda turn: advice.why_notice(turn.scene, turn.draft),
    "record_lookup": _looked_up,
    "purchases": lambda turn: purchases.purchases(turn.scene, turn.question, turn.draft, earlier=turn.earlier),
    "ingredient_lookup": lambda turn: labelled.ingredients(turn.scene, turn.question, turn.draft),
    "food_ok": lambda turn: labelled.food_ok(turn.scene, turn.question, turn.draft),
    "reference": lambda turn: labelled.sources_on(turn.scene, turn.question, turn.draft),
    "normal_check": lambda turn: _trend(turn) if turn.question.pets else labelled.normal_of(
        turn.scene, turn.question, turn.draft
    ),
    "med_safety": lambda turn: labelled.medicine_words(turn.scene, turn.question, turn.draft),
    "med_timing": _med_timing,
    "device_status": lambda turn: lookups.devices(turn.scene, turn.question, turn.draft),
    "provenance": lambda turn: lookups.provenance(turn.scene, turn.question, turn.draft, turn.earlier),
    "correction": lambda turn: lookups.correction(turn.draft, turn.earlier),
}  # fmt: skip
