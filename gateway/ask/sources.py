"""Whose word a piece of evidence is: its class, its citation word, and the sentence it says.

And which records speak of a thing: its words stand in them next to each other, or they don't.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.said import Said, elsewhere, known, say, verbatim
from gateway.ask.wording import day
from gateway.dialogue import EvidenceClass, Quantity
from gateway.measure.days import local_day
from gateway.ontology.load import things
from gateway.ontology.recognise import fold_alias, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Evidence, Link, RecordRef
    from gateway.stored import TextRecord

__all__ = [
    "as_said",
    "asked_words",
    "cite",
    "class_of",
    "dated_by",
    "first_of",
    "medicines_in",
    "mentions",
    "quote",
    "quoted",
    "say_logged",
    "stays_at",
    "subject_words",
    "written_by",
]

_LONGEST_QUOTE = 300

_CLASS = {
    "event": EvidenceClass.MEASURED,
    "day": EvidenceClass.MEASURED,
    "log": EvidenceClass.RECORDED,
    "note": EvidenceClass.RECORDED,
    "label": EvidenceClass.REFERENCE,
    "passage": EvidenceClass.REFERENCE,
}


_WRITTEN_BY = {"label": "product data", "passage": "reference", "note": "vet note", "log": "owner's log"}


_OF_KIND = {"purchase": "purchase", "household": "household record"}


def class_of(ref: RecordRef) -> EvidenceClass:
    """The evidence class of a record, by its kind alone."""
    return _CLASS[ref.kind]


def cite(scene: Scene, ref: RecordRef) -> str:
    """The words inside the brackets for a record: "bowl", "owner's log, Jun 3", "care guide, ch. 7"."""
    if ref.kind == "event":
        frame = scene.reader.frame(ref)
        devices = {device.id: device for device in scene.home.devices}
        device = None if frame is None else devices.get(frame.device)
        return "device" if device is None else scene.ontology.device_kinds[device.kind].cite
    if ref.kind == "label":
        return "product data"
    record = scene.reader.text_record(ref)
    if record is None:
        return ref.kind
    if ref.kind == "passage":
        document = None if record.document is None else scene.reader.document(record.document)
        title = "source" if document is None else document.title
        chapter = ref.key.partition("#")[2].partition(".")[0]
        small = title.istitle() or title[1:].islower()
        named = known(f"{title[:1].lower()}{title[1:]}" if small else title)
        return say("{title}, ch. {chapter}", title=named, chapter=verbatim(chapter))
    word = written_by(record)
    if not record.at_ms:  # entered without a day, as a device is that was there from the first
        return word
    return say("{by}, {when}", by=word, when=day(local_day(record.at_ms, scene.zones), year_of=scene.today))


def written_by(record: TextRecord) -> str:
    """Who wrote a stored text: "vet note", "owner's log", "household record", "purchase", "product data"."""
    return _OF_KIND.get(record.kind) or _WRITTEN_BY[record.ref.kind]


def quoted(scene: Scene, evidence: Evidence) -> str:
    """The sentence a passage, label or note says, word for word; the whole text without a span."""
    record = scene.reader.text_record(evidence.record)
    if record is None:
        return ""
    whole = evidence.span is None or evidence.record.kind == "label"  # a label's record is the cited words alone
    text = record.text if whole or evidence.span is None else record.text[evidence.span[0] : evidence.span[1]]
    return verbatim(" ".join(text.split()).rstrip("."))


def first_of(link: Link, *kinds: str) -> Evidence | None:
    """The first supporting piece of these record kinds, in canonical order."""
    for piece in link.evidence:
        if piece.record.kind in kinds and piece.mass.true > 0.0:
            return piece
    return None


def dated_by(scene: Scene, link: Link) -> Evidence | None:
    """The piece of evidence that dates a link: the food's own record rather than a meal it was eaten in."""
    pieces = [piece for piece in link.evidence if piece.mass.true > 0.0]
    for piece in pieces:
        frame = scene.reader.frame(piece.record) if piece.record.kind == "event" else None
        if frame is not None and frame.kind == "food_set":
            return piece
    return next((piece for piece in pieces if piece.record.kind in ("event", "log", "note")), None)


def say_logged(draft: Draft, entry: TextRecord, words: Said, *, pet: str | None) -> None:
    """A log entry as a claim of the owner's log: ``words``, the instant it was written down for, about ``pet``."""
    draft.claim(
        "logged",
        EvidenceClass.RECORDED,
        words,
        cite="owner's log",
        refs=(entry.ref,),
        values=() if entry.at_ms is None else (Quantity("at", entry.at_ms, "ms"),),
        about=() if pet is None else (f"pet:{pet}",),
    )


def subject_words(scene: Scene, question: Question) -> tuple[tuple[str, ...], ...]:
    """Folded words of what was asked about, to find the records that mention it."""
    return tuple(words for _, words in _asked(scene, question))


def asked_words(scene: Scene, question: Question) -> tuple[Said, ...]:
    """What was asked about: in English by the vocabulary's words, elsewhere by the asker's own where they stand."""
    found = []
    for subject, words in _asked(scene, question):
        plain = " ".join(words)
        own = next((mention.text for mention in question.mentions if mention.target == subject), None)
        found.append(known(plain) if own is None else elsewhere(plain, verbatim(own)))
    return tuple(found)


def _asked(scene: Scene, question: Question) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each thing asked about with the folded words of its name; a source or an event has none."""
    names = scene.reader.vertex_labels()
    for subject in question.subjects:
        kind, _, name = subject.partition(":")
        if kind not in ("src", "event"):
            yield subject, fold_alias(names.get(subject, name.replace("_", " ")))


def mentions(text: str, words: tuple[str, ...]) -> bool:
    """Whether the words stand in the text next to each other; a plural s is no difference."""
    have = [token.text.rstrip("s") for token in tokens_of(text)]
    want = [word.rstrip("s") for word in words]
    return any(have[at : at + len(want)] == want for at in range(len(have) - len(want) + 1))


def as_said(text: str) -> Said:
    """A source's own sentence: in English as it is, elsewhere in quotation marks, for its language is its own."""
    return say("{quote}", quote=verbatim(text))


def medicines_in(text: str) -> set[str]:
    """The medicines a text names, whatever name it calls them by."""
    return {
        reading.target
        for match in things().lexicon.find(text)
        for reading in match.readings
        if reading.target.startswith("med:")
    }


def stays_at(scene: Scene, entry: TextRecord, subjects: Iterable[str]) -> bool:
    """Whether a log entry is of a stay that may have been at a place asked about: it names that one, or none."""
    kind = scene.ontology.log_kinds.get(entry.object or "")
    asked = {subject.partition(":")[2] for subject in subjects if subject.startswith("place:")}
    if kind is None or kind.relation != "was_at" or not asked:
        return False
    named = {place.id for place in scene.home.places if mentions(entry.title, fold_alias(place.name))}
    return not named or bool(named & asked)


def quote(text: str) -> Said:
    """A text word for word in quotation marks, on one line; a very long one cut where a word ends."""
    whole = " ".join(text.split())
    cut = whole if len(whole) <= _LONGEST_QUOTE else f"{whole[:_LONGEST_QUOTE].rsplit(' ', 1)[0]} ..."
    return say('"{text}"', text=verbatim(cut))
