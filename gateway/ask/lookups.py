"""What is on file: notes, the log, labels, guides, devices, and where a claim came from.

Quotes are verbatim. An empty slot is said as such; a record that is missing is never taken
for something that did not happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.sources import cite, class_of, first_of, quoted
from gateway.ask.wording import amount, clock_time, day, first_upper, joined
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import local_day
from gateway.ontology.recognise import fold_alias, tokens_of

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Answer, Claim, Question
    from gateway.model import Device, Food, Link, Pet
    from gateway.stored import TextRecord

__all__ = [
    "correction",
    "devices",
    "exposure_start",
    "ingredients",
    "logged",
    "medicine",
    "provenance",
    "records",
    "sources_on",
]

_SHOWN = 3
_LONGEST_QUOTE = 300
_SILENT_MS = 6 * 3_600_000
"""A device unheard for six hours is said to be silent (hard floor of cases/days.md)."""


def _when(scene: Scene, at_ms: int) -> str:
    return day(local_day(at_ms, scene.zones), year_of=scene.today)


def _subject_words(scene: Scene, question: Question) -> tuple[tuple[str, ...], ...]:
    """Folded words of what was asked about, to find the records that mention it."""
    names = scene.reader.vertex_labels()
    found = []
    for subject in question.subjects:
        kind, _, name = subject.partition(":")
        if kind in ("src", "event"):
            continue
        found.append(fold_alias(names.get(subject, name.replace("_", " "))))
    return tuple(found)


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    """Whether the words stand in the text next to each other; a plural s is no difference."""
    have = [token.text.rstrip("s") for token in tokens_of(text)]
    want = [word.rstrip("s") for word in words]
    return any(have[at : at + len(want)] == want for at in range(len(have) - len(want) + 1))


def _quote(text: str) -> str:
    whole = " ".join(text.split())
    return f'"{whole}"' if len(whole) <= _LONGEST_QUOTE else f'"{whole[:_LONGEST_QUOTE].rsplit(" ", 1)[0]} ..."'


def records(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...]) -> None:
    """Answer "what did the vet say?", "is it on file?": notes and log entries, word for word."""
    asked = _subject_words(scene, question)
    vet_only = "src:vet" in question.subjects
    kinds = ("note",) if vet_only else ("note", "log")
    found: list[TextRecord] = []
    for pet in pets or (None,):
        for entry in scene.reader.texts(kinds, until_ms=scene.now_ms, pet=None if pet is None else pet.id):
            about = not asked or any(_mentions(f"{entry.title} {entry.text}", words) for words in asked)
            if about and (pet is None or entry.pet in (None, pet.id)):
                found.append(entry)
    if question.window is not None:
        inside = question.window.interval
        found = [entry for entry in found if entry.at_ms is not None and inside.start_ms <= entry.at_ms < inside.end_ms]
    if not found:
        what = joined([" ".join(words) for words in asked], last="or")
        source = "vet note" if vet_only else "note or log entry"
        draft.say(NoticeKind.SHORT, f"No {source}{f' about {what}' if what else ''} is on file", slot="record")
        if "cond:allergy" in question.subjects:
            draft.say(NoticeKind.CAUTION, "That is not a test result")
        return
    shown = found[-1:] if question.window_label == "LAST" else found[-_SHOWN:]
    draft.say(NoticeKind.SHORT, f"On file: {len(found)} {'entry' if len(found) == 1 else 'entries'}")
    for entry in reversed(shown):
        draft.claim(
            "record",
            class_of(entry.ref),
            f"{first_upper(_when(scene, entry.at_ms)) + ': ' if entry.at_ms is not None else ''}{_quote(entry.text)}",
            cite=cite(scene, entry.ref),
            refs=(entry.ref,),
            about=() if entry.pet is None else (f"pet:{entry.pet}",),
        )


def logged(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...]) -> None:
    """Answer "did anybody give it?", "when was the last one?" from the log alone."""
    asked = _subject_words(scene, question)
    label = joined([" ".join(words) for words in asked], last="or") or "such entry"
    for pet in pets:
        found = [
            entry
            for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
            if entry.at_ms is not None
            and any(_mentions(f"{entry.title} {entry.object or ''}", words) for words in asked)
        ]
        if question.window is not None:
            inside = question.window.interval
            now = [entry for entry in found if entry.at_ms is not None and inside.start_ms <= entry.at_ms]
            if not now:
                draft.say(
                    NoticeKind.SHORT,
                    f"No {label} is logged for {pet.name} then. It may have been given without logging; "
                    "ask everyone at home before giving one",
                    slot="medicine",
                )
        elif not found:
            draft.say(NoticeKind.SHORT, f"No {label} is logged for {pet.name}", slot="record")
        for entry in found[-1:]:
            assert entry.at_ms is not None
            draft.claim(
                "logged",
                EvidenceClass.RECORDED,
                f"Last logged: {first_upper(entry.title)}, {_when(scene, entry.at_ms)}, "
                f"{clock_time(scene.local(entry.at_ms))}",
                cite="owner's log",
                refs=(entry.ref,),
                about=(f"pet:{pet.id}",),
            )


def medicine(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...]) -> None:
    """Answer "when is it due?": the schedule as written, the last entry, and never a dose."""
    logged(scene, question, draft, pets)
    for pet in pets:
        for entry in scene.reader.texts(("schedule", "note"), until_ms=scene.now_ms, pet=pet.id)[-1:]:
            if any(_mentions(entry.text, words) for words in _subject_words(scene, question)):
                draft.claim(
                    "schedule",
                    EvidenceClass.RECORDED,
                    f"On file it reads {_quote(entry.text)}",
                    cite=cite(scene, entry.ref),
                    refs=(entry.ref,),
                    about=(f"pet:{pet.id}",),
                )
    if question.answer_class == "conservative":
        draft.say(NoticeKind.CAUTION, "Don't give two to catch up. Ask your vet whether to give a late one")


def exposure_start(scene: Scene, question: Question, pet: Pet) -> str | None:
    """The local day the medicine or food asked about last began for the pet, or None."""
    names = set(question.subjects)
    starts = [
        link.edge.valid_from_ms
        for link in scene.links()
        if link.edge.tail.name == f"pet:{pet.id}"
        and (link.edge.head.name in names or (not names and link.edge.relation == "ate"))
        and link.edge.valid_from_ms is not None
        and link.evidence
    ]
    return None if not starts else local_day(max(starts), scene.zones)


# --- labels and guides -------------------------------------------------------------------------------


def ingredients(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "what's in it?", "does it contain ...?", "which of ours is free from ...?"."""
    foods = [s for s in question.subjects if s.startswith("food:")]
    wanted = [s for s in question.subjects if s.startswith("ing:")]
    known = {f"food:{food.id}": food for food in scene.home.foods}
    links = scene.links()
    for name in foods or list(known):
        food = known.get(name)
        label = None if food is None or food.code is None else scene.reader.label_of(food.code)
        if food is None or label is None:
            title = name.partition(":")[2].replace("_", " ") if food is None else food.name
            draft.say(
                NoticeKind.ABSENCE, f"The label of {title} is not on file; paste it and it can be read", slot="label"
            )
            continue
        if not wanted:
            record = scene.reader.text_record(label)
            text = "" if record is None else record.text
            draft.claim(
                "label", EvidenceClass.REFERENCE, f"{food.name}: {_quote(text)}", cite="product data", refs=(label,),
                about=(name,),
            )  # fmt: skip
        for ingredient in wanted:
            _one_ingredient(scene, draft, links, food, ingredient)
    if not draft.claims and not draft.notices:
        draft.say(NoticeKind.SHORT, "No food with a label is on file", slot="label")


def _one_ingredient(scene: Scene, draft: Draft, links: tuple[Link, ...], food: Food, ingredient: str) -> None:
    """Whether one food's label lists one ingredient, may hold it, or lists none of it."""
    name, word = f"food:{food.id}", ingredient.partition(":")[2]
    sources = {f"species:{word}", f"group:{word}"}
    products = {
        link.edge.head.name for link in links if link.edge.tail.name == name and link.edge.relation == "labelled_as"
    }
    found = [
        link
        for link in links
        if (link.edge.tail.name == name and link.edge.head.name in sources)
        or (link.edge.tail.name in products and link.edge.head.name == ingredient)
    ]
    piece = first_of(found[0], "label") if found else None
    label = None if food.code is None else scene.reader.label_of(food.code)
    plain = word.replace("_", " ")
    if piece is not None:
        may = f", which may contain {plain}" if found[0].edge.relation == "may_contain" else ""
        kind, text, ref = "label_lists", f'{food.name}: its label lists "{quoted(scene, piece)}"{may}', piece.record
    elif label is not None:
        kind, text, ref = "label_lists_none", f"{food.name}: its label lists no {plain}", label
    else:
        return
    draft.claim(kind, EvidenceClass.REFERENCE, text, cite="product data", refs=(ref,), about=(name, ingredient))


def sources_on(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer from books and guides: sentences whose links touch what was asked, word for word."""
    names = {subject.partition(":")[2] for subject in question.subjects}
    hosts = {s.partition(":")[2] for s in question.subjects if s.startswith("species:")} | {
        pet.species for pet in scene.home.pets if pet.id in question.pets
    }
    said = 0
    for link in scene.links():
        base, _, host = link.edge.relation.partition("[")
        ends = {link.edge.tail.name.partition(":")[2], link.edge.head.name.partition(":")[2]}
        if base not in _SOURCED or not ends & names or (host and hosts and host.rstrip("]") not in hosts):
            continue
        piece = first_of(link, "passage")
        if piece is None or said >= _SHOWN:
            continue
        text = quoted(scene, piece)
        if text and all(claim.text != text for claim in draft.claims):
            draft.claim(
                base, EvidenceClass.REFERENCE, text, cite=cite(scene, piece.record), refs=(piece.record,),
                about=(link.edge.tail.name, link.edge.head.name),
            )  # fmt: skip
            said += 1
    if not said:
        asked = joined(sorted(name.replace("_", " ") for name in names - hosts), last="or") or "that"
        draft.say(NoticeKind.SHORT, f"No source on file says anything about {asked}", slot="source")
        draft.say(NoticeKind.CAUTION, "That does not make it harmless or harmful; your vet can say")


_SOURCED = frozenset({"may_cause", "has_sign", "base_rate", "treats", "prevents", "side_effect", "prone_to"})


# --- devices -----------------------------------------------------------------------------------------


def devices(scene: Scene, question: Question, draft: Draft) -> None:
    """Answer "does it still work?", "how much battery?": last heard, last battery, what it sent."""
    wanted = {s.partition(":")[2] for s in question.subjects if s.startswith("device:")}
    chosen = [device for device in scene.home.devices if not wanted or device.id in wanted]
    if not chosen:
        draft.say(NoticeKind.SHORT, "No such device is set up here", slot="device")
        return
    for device in chosen:
        _one_device(scene, draft, device)


def _one_device(scene: Scene, draft: Draft, device: Device) -> None:
    last = scene.reader.last_frame(device.id, before_ms=scene.now_ms + 1)
    if last is None:
        draft.say(NoticeKind.SHORT, f"{device.name}: never heard", slot="device", device=device.kind)
        return
    heard = f"{_when(scene, last.end_ms)}, {clock_time(scene.local(last.end_ms))}"
    silent = scene.now_ms - last.end_ms > _SILENT_MS
    draft.say(
        NoticeKind.SHORT,
        f"{device.name}: {'silent since' if silent else 'last heard'} {heard}"
        + (". What it did not send is not recorded, which isn't zero" if silent else ""),
    )
    word = scene.ontology.device_kinds[device.kind].cite
    draft.claim(
        "last_heard",
        EvidenceClass.MEASURED,
        f"Last record {heard}",
        cite=word,
        refs=(last.ref,),
        about=(f"device:{device.id}",),
    )
    beat = scene.reader.last_frame(device.id, before_ms=scene.now_ms + 1, kind="beat")
    if beat is not None and isinstance(beat.fields[0], int) and beat.fields[0] <= 1000:
        draft.claim(
            "battery",
            EvidenceClass.MEASURED,
            f"Battery {amount(beat.fields[0], 'permille')}, {_when(scene, beat.start_ms)}",
            cite=word,
            refs=(beat.ref,),
            values=(Quantity("battery", beat.fields[0], "permille"),),
            about=(f"device:{device.id}",),
        )


# --- about the answer itself -------------------------------------------------------------------------


def provenance(scene: Scene, question: Question, draft: Draft, earlier: Answer | None) -> None:
    """Answer "how do you know?": each claim of the answer before, by what it stands on."""
    if earlier is None or not earlier.claims:
        sources_on(scene, question, draft)
        return
    draft.say(NoticeKind.SHORT, "Each part stands on something of its own; joining them is mine, and the weakest part")
    for evidence_class, opening in _STANDS_ON:
        for claim in earlier.claims:
            if claim.evidence_class is evidence_class:
                _again(draft, claim, opening)
    if any(claim.evidence_class is EvidenceClass.CONNECTION for claim in earlier.claims):
        draft.say(NoticeKind.CAUTION, "Mine: joining them. One change is one observation, not a proof")
    draft.say(NoticeKind.NEXT, "Wrong somewhere? Mark the link; you can undo it")


_STANDS_ON = (
    (EvidenceClass.MEASURED, "Measured"),
    (EvidenceClass.RECORDED, "On record"),
    (EvidenceClass.REFERENCE, "From a source"),
)


def _again(draft: Draft, claim: Claim, opening: str) -> None:
    draft.claim(
        claim.kind,
        claim.evidence_class,
        f"{opening}: {claim.text}",
        cite=claim.cite,
        refs=claim.refs,
        values=claim.values,
        window=claim.window,
        about=claim.about,
    )


def correction(draft: Draft, earlier: Answer | None) -> None:
    """Answer "that's wrong": how to mark it, and what a mark does and never does."""
    draft.say(NoticeKind.SHORT, "You can mark a link or a supposed cause as wrong; no answer will use it any more")
    if earlier is not None and earlier.chain:
        draft.say(
            NoticeKind.NEXT, f"The links of the last answer: {', '.join(ref.text for ref in earlier.chain[:_SHOWN])}"
        )
    draft.say(
        NoticeKind.CAUTION,
        "A mark can be undone, is shown with every answer it changes, and never touches measured values, "
        "a note's words or anything about safety",
    )
