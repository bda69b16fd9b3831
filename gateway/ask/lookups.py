"""What is on file: notes, the log, weights, devices, and where a claim came from.

Quotes are verbatim. An empty slot is said as such; a record that is missing is never taken
for something that did not happen. Where two records contradict each other, both stand there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.answer import EXPLAINED_WORDS
from gateway.ask.battery import battery_at
from gateway.ask.blame import exposures, say_exposures
from gateway.ask.causes import hypothesis
from gateway.ask.change import figure_claim
from gateway.ask.dated import entries_of
from gateway.ask.disagree import say_sides, sides_of
from gateway.ask.explain import inquire, sign_behind
from gateway.ask.facts import ADD
from gateway.ask.figures import compare_window
from gateway.ask.labelled import sources_on
from gateway.ask.said import Said, say, verbatim, worded
from gateway.ask.settle import log_day, look_at, note_it
from gateway.ask.sources import (
    asked_words,
    cite,
    class_of,
    medicines_in,
    mentions,
    quote,
    say_logged,
    stays_at,
    subject_words,
)
from gateway.ask.wording import amount, clock_time, count_word, day, first_lower, joined, listed
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import local_day
from gateway.model import Verdict, Vertex
from gateway.ontology.wordings import wordings

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Answer, Claim, Question
    from gateway.model import Device, Pet, RecordRef
    from gateway.stored import TextRecord

__all__ = [
    "correction",
    "devices",
    "exposure_start",
    "last_weights",
    "provenance",
    "records",
]

_SHOWN = 3
_ONLY_A_TRIAL = "Only a diet trial run by your vet can tell; don't test it at home"
_SILENT_MS = 6 * 3_600_000
"""A device unheard for six hours is said to be silent (hard floor of cases/days.md)."""


def _when(scene: Scene, at_ms: int) -> Said:
    return day(local_day(at_ms, scene.zones), year_of=scene.today)


def records(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...]) -> None:
    """Answer "what did the vet say?", "is it on file?": notes and log entries, word for word."""
    for pet in pets:
        if "cond:allergy" in question.subjects and _allergy(scene, question, draft, pet):
            return
    found = _entries(scene, question, pets)
    if not found:
        _none_on_file(scene, question, draft)
        return
    inside = _in_time(question, found)
    if not inside:
        draft.say(NoticeKind.SHORT, "Nothing of it is on file for that time; the latest entry follows", slot="record")
        _say_entries(scene, draft, found[-1:])
        return
    found = inside
    shown = found[-1:] if question.window_label == "LAST" else found[-_SHOWN:]
    count = len(found)
    draft.say(NoticeKind.SHORT, _on_file(count, len(shown)))
    _say_entries(scene, draft, shown)


def _say_entries(scene: Scene, draft: Draft, shown: list[TextRecord]) -> None:
    """Notes and entries word for word, latest first."""
    for entry in reversed(shown):
        draft.claim(
            "record",
            class_of(entry.ref),
            quote(entry.text),
            cite=cite(scene, entry.ref),
            refs=(entry.ref,),
            about=() if entry.pet is None else (f"pet:{entry.pet}",),
        )


def _on_file(count: int, shown: int) -> Said:
    if count == 1:
        return say("On file: 1 entry")
    if shown == count:
        return say("On file: {count} entries", count=count)
    if shown == 1:
        return say("On file: {count} entries, the latest one here", count=count)
    return say("On file: {count} entries, the latest {shown} here", count=count, shown=count_word(shown))


def _entries(scene: Scene, question: Question, pets: tuple[Pet, ...]) -> list[TextRecord]:
    """The notes and log entries that speak of what was asked, oldest first."""
    asked = subject_words(scene, question)
    kinds = ("note",) if "src:vet" in question.subjects else ("note", "log")
    found: dict[RecordRef, TextRecord] = {}
    for pet in pets or (None,):
        for entry in scene.reader.texts(kinds, until_ms=scene.now_ms, pet=None if pet is None else pet.id):
            about = not asked or any(mentions(f"{entry.title} {entry.text}", words) for words in asked)
            about = about or _gives(scene, entry, question.subjects) or stays_at(scene, entry, question.subjects)
            if about and (pet is None or entry.pet in (None, pet.id)):
                found[entry.ref] = entry
    return list(found.values())


def _in_time(question: Question, found: list[TextRecord]) -> list[TextRecord]:
    """Those of the time asked about; all of them, where none is."""
    if question.window is None:
        return found
    inside = question.window.interval
    return [e for e in found if e.at_ms is not None and inside.start_ms <= e.at_ms < inside.end_ms]


def _gives(scene: Scene, entry: TextRecord, subjects: tuple[str, ...]) -> bool:
    """Whether an entry is of the medicines asked about: of any, where a medicine as such is."""
    wanted = {subject for subject in subjects if subject.startswith("med:")}
    if not wanted:
        return False
    if wanted & {"med:medicine"}:
        kind = scene.ontology.log_kinds.get(entry.object or "")
        return (kind is not None and kind.relation == "takes") or bool(medicines_in(entry.text) - {"med:medicine"})
    return bool(medicines_in(entry.text) & wanted)


def _none_on_file(scene: Scene, question: Question, draft: Draft) -> None:
    what = joined(asked_words(scene, question), last="or")
    source = "vet note" if "src:vet" in question.subjects else "note or log entry"
    none = (
        say("No {source} about {what} is on file", source=source, what=what)
        if what
        else say("No {source} is on file", source=source)
    )
    if any(subject.startswith("cond:") for subject in question.subjects):
        none = say("No record here says yes or no. {none}", none=none)
    draft.say(NoticeKind.SHORT, none, slot="record", device="people")
    if "cond:allergy" in question.subjects:
        draft.say(NoticeKind.CAUTION, "That is not a test result")
        draft.say(NoticeKind.NEXT, _ONLY_A_TRIAL, slot="test")
        return
    draft.say(NoticeKind.ABSENCE, "What nobody wrote down leaves no trace here", slot="record")
    if "src:vet" in question.subjects:
        note_it(draft, "record")
    else:
        log_day(draft, "record")


def _allergy(scene: Scene, question: Question, draft: Draft, pet: Pet) -> bool:
    """Answer "is he allergic?" where notes say something for it or against it."""
    foods = {s.partition(":")[2] for s in question.subjects if s.startswith(("ing:", "food:"))}
    things = {f"species:{food}" for food in foods} | {f"group:{food}" for food in foods}
    sides = sides_of(scene, pet.id, frozenset(things | {"condition:food_allergy"}))
    if not sides.supporting and not sides.against:
        return False
    if sides.disputed:
        opening = "Your records disagree, so there is no yes or no here"
    elif sides.supporting:
        opening = "There is no yes or no here: a note says so, and no note says that it was tested"
    else:
        opening = "No note says so, and one speaks against it; that is not a test result"
    draft.say(NoticeKind.SHORT, opening, slot="disagreement" if sides.disputed else "test")
    draft.paragraph()
    say_sides(scene, draft, sides, about=(f"pet:{pet.id}", *sorted(things)))
    _own_itch(scene, draft, pet)
    draft.paragraph()
    if sides.disputed:
        draft.say(
            NoticeKind.NEXT,
            "Show your vet both notes; the hub can't weigh one against the other. Until then, don't test it at home",
        )
    else:
        draft.say(NoticeKind.NEXT, _ONLY_A_TRIAL, slot="test")
    return True


def _own_itch(scene: Scene, draft: Draft, pet: Pet) -> None:
    """The pet's own scratching of this week beside the notes, where a tracker records it."""
    observed = scene.ontology.properties["scratch"]
    figure = compare_window(scene, pet, observed, scene.week()) if scene.devices_of(pet.id, observed) else None
    if figure is None or figure.verdict is Verdict.CANNOT_TELL:
        draft.say(
            NoticeKind.ABSENCE,
            say("{pet}'s scratching is not recorded well enough to add to that", pet=pet),
            slot="scratch",
            device="tracker",
        )
        return
    figure_claim(scene, draft, figure, opening=say("{series!u}", series=observed))
    there = sign_behind(scene, figure, "up")
    if there is None:
        return
    slots = inquire(scene, figure, way=there[0], sign=there[1]).candidates.slots
    say_exposures(
        scene, draft, pet, tuple(link for slot in slots if slot.state == "changed" for link in slot.links[-1:])
    )


def last_weights(scene: Scene, draft: Draft, pet: Pet, *, opening: str = "") -> tuple[TextRecord, ...]:
    """The last two weights people wrote down, latest first; ``opening`` is said before them, if there are any."""
    entries = [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.object == "weight" and entry.pet == pet.id and entry.at_ms is not None
    ]
    if entries and opening:
        draft.say(NoticeKind.SHORT, opening, slot="body_condition")
        draft.paragraph()
    for entry in reversed(entries[-2:]):
        words = say("{text!u} on {when}", text=verbatim(entry.text), when=_when(scene, entry.at_ms or 0))
        say_logged(draft, entry, words, pet=pet.id)
    return tuple(reversed(entries))


def exposure_start(scene: Scene, question: Question, pet: Pet) -> str | None:
    """The local day what is asked about (a medicine, a food, a visitor, a bath) last began for the pet, or None."""
    asked = question.subjects or ("food:current",)
    starts = [link.edge.valid_from_ms for link in exposures(scene, pet, asked) if link.edge.valid_from_ms is not None]
    starts += [entry.at_ms for entry in entries_of(scene, pet, asked) if entry.at_ms is not None]
    return None if not starts else local_day(max(starts), scene.zones)


# --- devices -----------------------------------------------------------------------------------------


def devices(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "does it still work?", "how much battery?": last heard, last battery, what it sent."""
    wanted = {s.partition(":")[2] for s in question.subjects if s.startswith("device:")}
    mine = set(question.pets)
    chosen = [
        device
        for device in scene.home.devices
        if (device.id in wanted if wanted else not mine or mine & scene.home.bindings_at(device.id, scene.now_ms))
    ]
    if not chosen:
        draft.say(NoticeKind.SHORT, "No such device is set up here", slot="device")
        draft.say(NoticeKind.NEXT, ADD, slot="device")
        return
    for device in chosen:
        _one_device(scene, draft, device)


def _one_device(scene: Scene, draft: Draft, device: Device) -> None:
    last = scene.reader.last_frame(device.id, before_ms=scene.now_ms + 1)
    if last is None:
        draft.say(NoticeKind.SHORT, say("{device}: never heard", device=device), slot="device", device=device.kind)
        look_at(scene, draft, device.kind)
        return
    heard = say("{day}, {clock}", day=_when(scene, last.end_ms), clock=clock_time(scene.local(last.end_ms)))
    silent = scene.now_ms - last.end_ms > _SILENT_MS
    draft.say(
        NoticeKind.SHORT,
        say(
            "{device}: silent since {when}. What it did not send is not recorded, which isn't zero",
            device=device,
            when=heard,
        )
        if silent
        else say("{device}: last heard {when}", device=device, when=heard),
        slot="device" if silent else None,
        device=device.kind if silent else None,
    )
    if silent:
        look_at(scene, draft, device.kind)
    word = scene.ontology.device_kinds[device.kind].cite
    draft.claim(
        "last_heard",
        EvidenceClass.MEASURED,
        say("Last record {when}", when=heard),
        cite=word,
        refs=(last.ref,),
        about=(f"device:{device.id}",),
    )
    battery = battery_at(scene.reader, device.id, at_ms=scene.now_ms)
    if battery is None:
        return
    level = battery.permille
    draft.claim(
        "battery",
        EvidenceClass.MEASURED,
        say("Battery not known: it says 0 %, {when}, and did not fall to it", when=_when(scene, battery.at_ms))
        if level is None
        else say("Battery {level}, {when}", level=amount(level, "permille"), when=_when(scene, battery.at_ms)),
        cite=word,
        refs=(battery.ref,),
        values=() if level is None else (Quantity("battery", level, "permille"),),
        about=(f"device:{device.id}",),
    )


# --- about the answer itself -------------------------------------------------------------------------


def provenance(scene: Scene, question: Question, draft: Draft, earlier: Answer | None) -> None:
    """Answer "how do you know?": what each part of the answer before stands on, the hub's own part first."""
    told = earlier is None or not earlier.claims
    if told and not set(question.subjects) - {"food:current", "food:previous"}:
        draft.say(NoticeKind.SHORT, "There is no answer before this one to account for", slot="answer")
        draft.say(
            NoticeKind.NEXT,
            "Ask this below an answer on the page. At the command line each question stands alone: open a source "
            "with scentwalk record",
        )
        return
    if earlier is None or told:
        sources_on(scene, question, draft)
        return
    own = any(claim.evidence_class is EvidenceClass.CONNECTION for claim in earlier.claims)
    foreign = earlier.language != question.language  # its words are said again as they were: in quotation marks
    draft.words = EXPLAINED_WORDS
    draft.say(
        NoticeKind.SHORT,
        "I don't; that line is mine, and it is the weakest part"
        if own
        else "Every figure and quote opens its record; nothing in that answer was added to them",
    )
    draft.paragraph()
    for opening, kinds in _STANDS_ON:
        for claims in _alike([claim for claim in earlier.claims if claim.kind in kinds]):
            _again(scene, draft, claims, opening, foreign=foreign)
    rest = [c for c in earlier.claims if c.evidence_class in _CITED and not any(c.kind in k for _, k in _STANDS_ON)]
    for claim in rest:
        _again(scene, draft, (claim,), "On record", foreign=foreign)
    draft.paragraph()
    if own:
        draft.say(NoticeKind.CAUTION, "Mine: joining them by their dates. One change is one observation, not a proof")
    not_on_file = worded(say("Not on file: {what}", what=verbatim("")), wordings(earlier.language))
    for notice in earlier.notices:
        if notice.kind is NoticeKind.ABSENCE and notice.text.startswith(not_on_file) and own:
            was = _quoted(notice.text) if foreign else first_lower(verbatim(notice.text))
            against = say("Against it: {what}", what=was)
            draft.say(NoticeKind.ABSENCE, against, slot=notice.slot)
    draft.say(NoticeKind.NEXT, "Wrong somewhere? Mark the link; you can undo it")


_CITED = frozenset({EvidenceClass.MEASURED, EvidenceClass.RECORDED, EvidenceClass.REFERENCE})
_STANDS_ON: tuple[tuple[str, frozenset[str]], ...] = (
    ("Measured", frozenset({"comparison", "as_usual", "per_day", "total", "visits", "so_far", "today_so_far"})),
    ("On record", frozenset({"food_change", "medicine_change", "parasite_change", "place_change", "visitor_change"})),
    ("From the label", frozenset({"label_lists", "label_lists_none"})),
    ("From a source", frozenset({"may_cause", "has_sign", "base_rate", "treats", "prevents", "side_effect"})),
)


def _alike(claims: list[Claim]) -> list[tuple[Claim, ...]]:
    """Claims of one class with the same citation word, together: they open the same kind of record."""
    grouped: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        grouped.setdefault((claim.evidence_class.value, claim.cite), []).append(claim)
    return [tuple(group) for group in grouped.values()]


def _quoted(text: str) -> Said:
    return say('"{text}"', text=verbatim(text))


def _again(scene: Scene, draft: Draft, claims: tuple[Claim, ...], opening: str, *, foreign: bool) -> None:
    first, told = claims[0], [_brief(scene, claim, foreign=foreign) for claim in claims]
    between = "; " if all(text[:1].islower() for text in told) else ". "
    draft.claim(
        first.kind,
        first.evidence_class,
        say("{opening}: {text}", opening=opening, text=listed(told, between=between)),
        cite=verbatim(first.cite),
        refs=tuple(ref for claim in claims for ref in claim.refs),
        values=tuple(
            Quantity(value.name if len(claims) == 1 else f"{claim.id}.{value.name}", value.value, value.unit)
            for claim in claims
            for value in claim.values
        ),
        window=first.window,
        about=tuple(dict.fromkeys(name for claim in claims for name in claim.about)),
    )


def _brief(scene: Scene, claim: Claim, *, foreign: bool) -> Said:
    """A claim said again in short: a comparison by its days, the rest as it was."""
    days = {value.name: value.value for value in claim.values}
    series = next((name for name in claim.about if name.startswith("series:")), None)
    if claim.kind == "comparison" and "usual_days" in days and series is not None:
        observed = scene.ontology.property_of_noun(series.rpartition(".")[2])
        return say(
            "{series}, {days} days against {earlier} earlier ones",
            series=observed,
            days=verbatim(str(days["days"])),
            earlier=verbatim(str(days["usual_days"])),
        )
    if foreign:
        return _quoted(claim.text)
    lowered = claim.kind in ("as_usual", "label_lists", "label_lists_none")
    return first_lower(verbatim(claim.text)) if lowered else verbatim(claim.text)


def correction(draft: Draft, earlier: Answer | None) -> None:
    """Answer "that's wrong": how to mark it, and what a mark does and never does."""
    draft.say(NoticeKind.SHORT, "You can mark a link or a supposed cause as wrong; no answer will use it any more")
    names = _hypotheses(earlier)
    for name in names[:_SHOWN]:
        command = verbatim(f'scentwalk wrong "{name}" --reason "..."')
        draft.say(NoticeKind.NEXT, say("To mark it: {command}", command=command), slot="hypothesis")
    if earlier is not None and earlier.chain and not names:
        links = verbatim(", ".join(ref.text for ref in earlier.chain[:_SHOWN]))
        draft.say(NoticeKind.NEXT, say("The links of the last answer: {links}", links=links), slot="link")
    draft.say(
        NoticeKind.CAUTION,
        "A mark can be undone, is shown with every answer it changes, and never touches measured values, "
        "a note's words or anything about safety",
    )


def _hypotheses(earlier: Answer | None) -> list[str]:
    """The suppositions of the answer before, by the name a mark uses."""
    if earlier is None:
        return []
    found: list[str] = []
    for claim in earlier.claims:
        if claim.evidence_class is EvidenceClass.CONNECTION and len(claim.about) > 2:
            pet, sign, *causes = (Vertex(name) for name in claim.about)
            found.extend(hypothesis(cause, pet, sign) for cause in causes)
    return found
