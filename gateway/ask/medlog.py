"""The medicine log and other things people write down: given or not, when last, when due.

An empty log is never "not given". Schedules are quoted, never computed with; no dose, and no
advice to give or leave out: who can say is the vet, whose number stands there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.advice import vet_phone
from gateway.ask.blame import exposures
from gateway.ask.said import Said, is_or_are, known, own_words, said, say, verbatim
from gateway.ask.settle import log_day, log_next
from gateway.ask.sources import cite, dated_by, mentions, quote, say_logged, stays_at, subject_words
from gateway.ask.wording import clock_time, day, joined
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import add_days, day_interval, local_day
from gateway.model import Interval
from gateway.ontology.load import things

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Pet
    from gateway.stored import TextRecord

__all__ = ["given", "last_logged", "never_twice", "timing"]

_ANY_MEDICINE = frozenset({"med:medicine"})
"""What "her pill" names: a medicine, whichever."""
_MEDICINE_KINDS = frozenset({"takes"})
_NOTED_DAYS = 3
"""How far back a note beside the log ("forgot the pill") still speaks for the question."""

_TODAY_LABELS = frozenset({"NOW", "TODAY", "THIS_MORNING", "THIS_EVENING", "NEXT"})


def _label(scene: Scene, question: Question) -> Said:
    """What was asked about in the asker's own words, else in ours."""
    bare = [m.text.removeprefix("the ") for m in question.mentions if m.target in question.subjects]
    asked = [verbatim(text) for text in bare]
    observed = scene.ontology.properties.get(question.metric or "")
    words = asked or [said(" ".join(words)) for words in subject_words(scene, question)]
    words = words or [say("{series}", series=observed) if observed is not None else said("such entry")]
    return joined(list(dict.fromkeys(words)), last="or")


def _is_medicine(question: Question) -> bool:
    return any(subject.startswith("med:") for subject in question.subjects)


def _entries(scene: Scene, question: Question, pet: Pet) -> list[TextRecord]:
    """The pet's log entries of the thing asked about, oldest first; of a medicine only those that say it was given."""
    found = _speaking_of(scene, question, pet)
    return [entry for entry in found if entry.object != "note"] if _is_medicine(question) else found


def _medicines_in(text: str) -> set[str]:
    """The medicines a log entry names, whatever name it calls them by."""
    return {reading.target for match in things().lexicon.find(text) for reading in match.readings}


def _speaking_of(scene: Scene, question: Question, pet: Pet) -> list[TextRecord]:
    """The pet's log entries that speak of the thing asked about: by its words or by what the entry is."""
    asked, subjects = subject_words(scene, question), set(question.subjects)
    kinds = scene.ontology.log_kinds
    found = []
    for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id):
        kind = kinds.get(entry.object or "")
        is_it = kind is not None and (kind.med in subjects or f"event:{kind.id}" in subjects)
        is_it = is_it or (kind is not None and f"food:{kind.id}" in subjects)
        if _is_medicine(question) and not is_it:
            any_of_them = bool(_ANY_MEDICINE & subjects) and kind is not None and kind.relation in _MEDICINE_KINDS
            is_it = any_of_them or bool(_medicines_in(entry.title) & (subjects - _ANY_MEDICINE))
        is_it = is_it or stays_at(scene, entry, subjects)
        if entry.at_ms is not None and (is_it or any(mentions(f"{entry.title} {entry.text}", w) for w in asked)):
            found.append(entry)
    return found


def _inside(scene: Scene, question: Question) -> Interval | None:
    """The span asked about; "now", "today" and parts of it are the whole local day."""
    if question.window_label in _TODAY_LABELS:
        return Interval(day_interval(scene.today, scene.zones).start_ms, scene.now_ms)
    return None if question.window is None else question.window.interval


def given(scene: Scene, question: Question, draft: Draft, pet: Pet) -> None:
    """Answer "did anybody give it?" for one pet: what is logged, and what a log cannot show."""
    label, found, inside = _label(scene, question), _entries(scene, question, pet), _inside(scene, question)
    today = question.window_label in _TODAY_LABELS or (inside is None and _is_medicine(question))
    if today:
        inside = Interval(day_interval(scene.today, scene.zones).start_ms, scene.now_ms)
    now = [e for e in found if inside is not None and inside.start_ms <= (e.at_ms or 0) < inside.end_ms]
    when = " today" if today else "" if inside is None else " in that time"
    if now or (inside is None and found):
        asks_to_give = question.rule == "med_now"  # a yes here would be read as "give it"
        draft.say(NoticeKind.SHORT, "It is logged as given already" if asks_to_give else "Yes, as logged")
    else:
        gone = "a dose given without logging" if _is_medicine(question) else "what nobody logged"
        draft.say(
            NoticeKind.SHORT,
            say(
                "I can't tell: no {what} {be} logged{when} for {pet}, and {gone} leaves no trace",
                what=label,
                be=is_or_are([label]),
                when=when,
                pet=pet,
                gone=gone,
            ),
            slot="medicine" if _is_medicine(question) else "log",
            device="people",
        )
        if not _is_medicine(question):
            log_day(draft, "log")
    draft.paragraph()
    _last(scene, draft, pet, found)
    if _is_medicine(question):
        _noted_beside(scene, question, draft, pet)
    _schedule(scene, question, draft, pet)
    if _is_medicine(question):
        _before_giving(scene, draft, pet, logged=bool(now))


def _before_giving(scene: Scene, draft: Draft, pet: Pet, *, logged: bool) -> None:
    draft.paragraph()
    if logged:
        text = say("Don't give a second one; ask your vet{phone} first", phone=vet_phone(scene))
        draft.say(NoticeKind.CAUTION, text)
        return
    draft.say(NoticeKind.NEXT, "Ask everyone at home first")
    draft.say(
        NoticeKind.CAUTION,
        say(
            "Don't give two to catch up; your vet{phone} can say whether a late one is right. If {pet} may have had "
            "two, call now",
            phone=vet_phone(scene),
            pet=pet,
        ),
    )
    draft.say(NoticeKind.NEXT, "When it is given, log it here so that everyone sees it")


def _when(scene: Scene, entry: TextRecord) -> Said:
    date = local_day(entry.at_ms or 0, scene.zones)
    clock = clock_time(scene.local(entry.at_ms or 0))
    return say("{day}, {clock}", day="today" if date == scene.today else day(date, year_of=scene.today), clock=clock)


def _last(scene: Scene, draft: Draft, pet: Pet, found: list[TextRecord]) -> None:
    for entry in found[-1:]:
        what = say("Last logged: {what!u}, {when}", what=own_words(entry.title), when=_when(scene, entry))
        say_logged(draft, entry, what, pet=pet.id)


def _noted_beside(scene: Scene, question: Question, draft: Draft, pet: Pet) -> None:
    """What was noted of it lately without saying that it was given ("forgot the pill"), word for word."""
    since_ms = day_interval(add_days(scene.today, 1 - _NOTED_DAYS), scene.zones).start_ms
    noted = [entry for entry in _speaking_of(scene, question, pet) if entry.object == "note"]
    for entry in [entry for entry in noted if (entry.at_ms or 0) >= since_ms][-1:]:
        draft.claim(
            "noted",
            EvidenceClass.RECORDED,
            say("Noted, not as given: {quote}, {when}", quote=quote(entry.text), when=_when(scene, entry)),
            cite="owner's log",
            refs=(entry.ref,),
            values=(Quantity("at", entry.at_ms or 0, "ms"),),
            about=(f"pet:{pet.id}",),
        )


def _schedule(scene: Scene, question: Question, draft: Draft, pet: Pet) -> None:
    """The schedule as the vet wrote it, word for word."""
    asked = subject_words(scene, question)
    texts = [
        entry
        for entry in scene.reader.texts(("schedule",), until_ms=scene.now_ms, pet=pet.id)
        if entry.object in question.subjects
        or any(mentions(entry.text, words) for words in asked)
        or _ANY_MEDICINE & set(question.subjects)
    ]
    latest = {entry.object: entry for entry in texts}  # one a medicine: what a later note says goes before
    for entry in latest.values():
        draft.claim(
            "schedule",
            EvidenceClass.RECORDED,
            say("The schedule reads {quote}", quote=quote(entry.text)),
            cite=cite(scene, entry.ref),
            refs=(entry.ref,),
            about=(f"pet:{pet.id}",),
        )


def last_logged(scene: Scene, question: Question, draft: Draft, pet: Pet) -> None:
    """Answer "when was the last one?" from the log, or from a dated exposure of the graph."""
    found = _entries(scene, question, pet)
    if found:
        _last(scene, draft, pet, found)
        draft.say(NoticeKind.CAUTION, "One given without logging would not show here")
        return
    taken = exposures(scene, pet, question.subjects)
    if taken and taken[-1].edge.valid_from_ms is not None:
        began = day(local_day(taken[-1].edge.valid_from_ms, scene.zones), year_of=scene.today)
        piece = dated_by(scene, taken[-1]) or taken[-1].evidence[0]
        names = scene.reader.vertex_labels()
        head = taken[-1].edge.head.name
        draft.say(NoticeKind.SHORT, say("On {day}", day=began))
        draft.claim(
            "exposure",
            _class_of(piece.record.kind),
            say("{what!u} since {day}", what=known(names.get(head, head.partition(":")[2])), day=began),
            cite=cite(scene, piece.record),
            refs=(piece.record,),
            about=(f"pet:{pet.id}", head),
        )
        return
    label = _label(scene, question)
    none = say("No {what} {be} logged for {pet}", what=label, be=is_or_are([label]), pet=pet)
    draft.say(NoticeKind.SHORT, none, slot="log", device="people")
    if question.metric is None:
        trace = "One given without logging leaves no trace; a log entry records the next"
        draft.say(NoticeKind.ABSENCE, trace, slot="log")
    else:
        draft.say(NoticeKind.ABSENCE, "What nobody wrote down leaves no trace here", slot="log")
        log_next(draft, "log")


def _class_of(kind: str) -> EvidenceClass:
    return EvidenceClass.MEASURED if kind == "event" else EvidenceClass.RECORDED


def never_twice(scene: Scene, draft: Draft) -> None:
    """What holds of every forgotten dose: not two of them, and who can say."""
    text = say(
        "Don't give two to catch up; your vet{phone} can say whether a late one is right", phone=vet_phone(scene)
    )
    draft.say(NoticeKind.SHORT, text, slot="schedule")


def timing(scene: Scene, question: Question, draft: Draft, pet: Pet) -> None:
    """Answer "when is it due?" and "I forgot it": the schedule as written and the last entry, no reckoning."""
    found, label = _entries(scene, question, pet), _label(scene, question)
    if question.answer_class == "conservative":
        never_twice(scene, draft)
    else:
        text = say("When {what} is due is for the schedule and your vet to say; here is what is on file", what=label)
        draft.say(NoticeKind.SHORT, text, slot="schedule")
    draft.paragraph()
    _schedule(scene, question, draft, pet)
    _last(scene, draft, pet, found)
    spoken = {claim.kind for claim in draft.claims}
    if not spoken & {"schedule"}:
        draft.say(NoticeKind.ABSENCE, "No schedule is on file", slot="schedule", device="people")
    if not found:
        draft.say(
            NoticeKind.ABSENCE,
            say(
                "No {what} {be} logged for {pet}. It may have been given without logging; ask everyone at home",
                what=label,
                be=is_or_are([label]),
                pet=pet,
            ),
            slot="medicine",
            device="people",
        )
