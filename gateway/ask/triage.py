"""The conservative answer: numbers first, then what to do, then the facts for the phone.

Own data appears only as "For the phone": no verdict, no "usual", no reassurance, and what no
device can see is named. Nothing is asked before the numbers stand there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.advice import signalment
from gateway.ask.safety import Triage, order_of
from gateway.ask.safety import triage as fixed_words
from gateway.ask.said import known, say, verbatim
from gateway.ask.sources import cite
from gateway.ask.wording import amount, clock_time, day, first_upper, joined, listed
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import local_day
from gateway.model import RecordRef
from gateway.ontology.load import hazards

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Pet

__all__ = ["is_urgent", "say_amber", "triage"]

_NEVER_CUT = 1000
"""Words: what is read to a vet on the phone is never shortened."""
_NO_LINE = "your vet or the nearest emergency clinic; no number of theirs is on file"


def is_urgent(question: Question) -> bool:
    """Whether the conservative answer is the whole answer."""
    return question.safety in ("A", "B") or (question.safety == "amber" and question.intent == "triage")


def _content(scene: Scene, question: Question) -> Triage:
    tables = hazards()
    on_file = _contact_on_file(scene, question)
    order = order_of(question.safety or "A", on_file_ms=None if on_file is None else on_file[1], now_ms=scene.now_ms)
    recorded = "" if on_file is None else on_file[0]
    return fixed_words(question, tables, scene.home, order=order, recorded=recorded)


def _contact_on_file(scene: Scene, question: Question) -> tuple[str, int] | None:
    """A logged contact with the very thing asked about, where the question is about the record."""
    if question.intent != "record_lookup":
        return None
    names = {subject.partition(":")[2] for subject in question.subjects if subject.startswith("tox:")}
    for entry in reversed(scene.reader.texts(("log", "note"), until_ms=scene.now_ms)):
        if entry.at_ms is not None and any(name in entry.text.lower() for name in names):
            when = day(local_day(entry.at_ms, scene.zones))
            return say('On file, {when}: "{text}"', when=when, text=verbatim(entry.text)), entry.at_ms
    return None


def triage(scene: Scene, question: Question, draft: Draft) -> None:
    """Write the conservative answer whole."""
    content = _content(scene, question)
    draft.words = _NEVER_CUT
    for line in content.first:
        draft.say(NoticeKind.TRIAGE, line)
    draft.say(NoticeKind.TRIAGE, say("Call: {phones}", phones=listed(content.phones) or _NO_LINE))
    draft.paragraph()
    for line in (*content.first_aid, *content.instructions):
        draft.say(NoticeKind.TRIAGE, line)
    draft.paragraph()
    for pet in scene.pets(tuple(one for one in question.pets if one != "?"))[:1]:
        _for_the_phone(scene, draft, pet)
    draft.paragraph()
    for line in content.asks:
        draft.say(NoticeKind.CLARIFY, line)
    draft.say(NoticeKind.CAUTION, content.review)


def say_amber(scene: Scene, question: Question, draft: Draft) -> None:
    """The amber sentence before an ordinary answer."""
    content = _content(scene, question)
    for line in content.first:
        draft.say(NoticeKind.TRIAGE, line)
    if content.phones:
        draft.say(NoticeKind.TRIAGE, say("Call: {phones}", phones=listed(content.phones)))
    draft.paragraph()


# --- for the phone -----------------------------------------------------------------------------------


def _for_the_phone(scene: Scene, draft: Draft, pet: Pet) -> None:
    """Species, breed, age, sex; last weight; last meal seen; recorded medicines; what nothing sees."""
    draft.say(NoticeKind.TRIAGE, say("For the phone: {pet}, {who}", pet=pet, who=signalment(scene, pet)))
    _last_weight(scene, draft, pet)
    _last_meal(scene, draft, pet)
    _medicines(scene, draft, pet)
    kinds = {device.kind for device in scene.home.devices if pet.id in scene.home.bindings_at(device.id, scene.now_ms)}
    if "litter_box" not in kinds and pet.species == "cat":
        draft.say(NoticeKind.ABSENCE, "No litter box is connected, so nothing here shows whether urine was passed")
    draft.say(NoticeKind.ABSENCE, "Nothing the devices record can rule out harm")


def _last_weight(scene: Scene, draft: Draft, pet: Pet) -> None:
    entries = [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.object == "weight" and entry.pet == pet.id and entry.at_ms is not None
    ]
    if not entries:
        draft.say(NoticeKind.ABSENCE, "No weight is on file")
        return
    last = entries[-1]
    when = day(local_day(last.at_ms or 0, scene.zones), year_of=scene.today)
    draft.claim(
        "last_weight",
        EvidenceClass.RECORDED,
        say("{text!u} on {when}", text=verbatim(last.text), when=when),
        cite="owner's log",
        refs=(last.ref,),
        about=(f"pet:{pet.id}",),
    )


def _last_meal(scene: Scene, draft: Draft, pet: Pet) -> None:
    seen = [
        frame
        for device in scene.home.devices
        if device.kind == "food_bowl" and scene.alone(pet.id, device)
        for frame in (scene.reader.last_frame(device.id, before_ms=scene.now_ms, kind="meal"),)
        if frame is not None and frame.set_aside is None
    ]
    if not seen:
        draft.say(NoticeKind.ABSENCE, "No meal was seen at a bowl")
        return
    last = max(seen, key=lambda frame: (frame.start_ms, frame.ref))
    when, clock = (
        day(local_day(last.start_ms, scene.zones), year_of=scene.today),
        clock_time(scene.local(last.start_ms)),
    )
    draft.claim(
        "last_meal",
        EvidenceClass.MEASURED,
        say("Last meal seen {when}, {clock}", when=when, clock=clock)
        if last.amount is None
        else say("Last meal seen {when}, {clock}, {figure}", when=when, clock=clock, figure=amount(last.amount, "mg")),
        cite="bowl",
        refs=(last.ref,),
        about=(f"pet:{pet.id}",),
    )


def _medicines(scene: Scene, draft: Draft, pet: Pet) -> None:
    names = scene.reader.vertex_labels()
    running = [
        link
        for link in scene.links_of(pet.id)
        if link.edge.relation in ("takes", "treated_with")
        and (link.edge.valid_to_ms is None or link.edge.valid_to_ms > scene.now_ms)
        and link.evidence
    ]
    if not running:
        draft.say(NoticeKind.ABSENCE, "No medicine is on file, which isn't proof of none")
        return
    refs: list[RecordRef] = [piece.record for link in running for piece in link.evidence[:1]]
    named = joined([known(names.get(link.edge.head.name, link.edge.head.name.partition(":")[2])) for link in running])
    draft.claim(
        "medicines",
        EvidenceClass.RECORDED,
        say("On file: {what}", what=first_upper(named)),
        cite=cite(scene, refs[0]),
        refs=refs,
        about=(f"pet:{pet.id}",),
    )
