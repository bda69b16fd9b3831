"""What is not there: slots without a change, rivals nobody wrote down, links marked wrong.

Absence is structural: each sentence names the empty slots, so that whoever reads the answer
by machine finds them too. What is on file of the standing rivals is said with its record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.said import Said, elsewhere, own_words, say, verbatim
from gateway.ask.wording import day, joined, listed
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.causes import Candidates
    from gateway.ask.scene import Scene
    from gateway.model import Chain, Link, NearMiss, Pet, Vertex
    from gateway.ontology.vocabulary import Rival
    from gateway.stored import TextRecord

__all__ = [
    "given_too",
    "marked_wrong",
    "near_misses",
    "next_steps",
    "nothing_on_file",
    "rivals_not_on_file",
    "slot_words",
    "walled",
]

_FRESH_DAYS = 90
"""A log entry older than a season no longer speaks for today."""
_NEAR_SHOWN = 2
_RIVALS_TOLD = 3
_DAY_MS = 86_400_000
_LOOK = {"sign:itch": "look at skin and ears", "sign:ear_trouble": "look into the ears"}
_SLOT_WORDS = {
    "food": "food change",
    "medicine": "medicine",
    "parasite": "flea treatment",
    "visitor": "visitor",
    "place": "trip",
    "device": "device change",
}


def slot_words(chain: Chain) -> str:
    """A cause by its slot: "the food", "the lapsed treatment"."""
    return {
        "food": "the food",
        "parasite": "the lapsed treatment",
        "medicine": "the medicine",
        "place": "the stay",
        "visitor": "the visitor",
        "device": "the device",
    }[chain.slot]


def near_misses(scene: Scene, draft: Draft, misses: tuple[NearMiss, ...]) -> None:
    """What changed too and did not join: without a path, at the wrong time, or known to be tolerated."""
    for miss in misses[:_NEAR_SHOWN]:
        when = _on(scene, miss)
        text = (
            say("{what!u}: {reason}", what=miss.what, reason=miss.reason)
            if when is None
            else say("{what!u} on {when}: {reason}", what=miss.what, when=when, reason=miss.reason)
        )
        draft.say(NoticeKind.ABSENCE, text, slot="near_miss")


def given_too(candidates: Candidates) -> tuple[NearMiss, ...]:
    """The first near-miss that is a food or a medicine: what an owner would ask about next."""
    relations = ("ate", "takes", "treated_with")
    given = [m for m in candidates.near_misses if any(ref.key.split("|")[1:2][0] in relations for ref in m.refs)]
    return tuple(given[:1])


def nothing_on_file(scene: Scene, draft: Draft, candidates: Candidates, *, since_ms: int) -> None:
    """Absence, slot by slot: changed without a link, unchanged since when, or not recorded since ``since_ms``."""
    near_misses(scene, draft, candidates.near_misses)
    still = [slot for slot in candidates.slots if slot.state == "unchanged" and slot.name == "food"]
    for slot in still:
        if slot.since_ms is not None:
            since = day(local_day(slot.since_ms, scene.zones), year_of=scene.today)
            text = say("Food unchanged since {since} ({food})", since=since, food=verbatim(slot.what or ""))
            draft.say(NoticeKind.ABSENCE, text, slot="food")
    quiet = [
        slot.name
        for slot in candidates.slots
        if slot.state != "changed" and slot not in still and (slot.since_ms is None or slot.since_ms < since_ms)
    ]
    if quiet:
        words = joined([_SLOT_WORDS[name] for name in quiet], last="or")
        text = say("In the 21 days before, no {what} is on file", what=words)
        draft.say(NoticeKind.ABSENCE, text, slot="+".join(quiet))


def _on(scene: Scene, miss: NearMiss) -> Said | None:
    """The date of a near-miss, read from its edge's own reference; none where several edges meet in it."""
    began = miss.refs[0].key.rpartition("|")[2] if len(miss.refs) == 1 and miss.refs[0].kind == "edge" else "-"
    if not began.lstrip("-").isdecimal():
        return None
    return day(local_day(int(began), scene.zones), year_of=scene.today)


def walled(scene: Scene, draft: Draft, candidates: Candidates) -> None:
    """What the owner's own mark took out of this answer, and how to take the mark back."""
    if not candidates.walled:
        return
    named = joined(list(dict.fromkeys(slot_words(chain) for chain in candidates.walled)))
    marks = _marks_on(scene, candidates.walled)
    text = say("Left out because you marked it wrong: {what}. {undo}", what=named, undo=marks)
    draft.say(NoticeKind.CAUTION, text, slot="marked_wrong")


def _marks_on(scene: Scene, chains: tuple[Chain, ...]) -> Said:
    edges = {ref.text for chain in chains for ref in chain.links}
    causes = {chain.cause.name for chain in chains}
    numbers = [
        number
        for number, edge, hypothesis, _, _ in scene.reader.walls(at_ms=scene.now_ms)
        if edge in edges or (hypothesis is not None and hypothesis.partition(">")[0] in causes)
    ]
    return _undo_words(numbers)


def _undo_words(numbers: list[int]) -> Said:
    return say("To undo: {commands}", commands=joined([verbatim(f"scentwalk undo {number}") for number in numbers]))


def marked_wrong(scene: Scene, draft: Draft, links: tuple[Link, ...]) -> None:
    """Say which of these links the owner marked wrong, where an answer would have used them."""
    refs = {link.edge.ref.text for link in links if link.marked_wrong}
    numbers = [number for number, edge, _, _, _ in scene.reader.walls(at_ms=scene.now_ms) if edge in refs]
    if numbers:
        draft.say(
            NoticeKind.CAUTION,
            say("Left out because you marked it wrong. {undo}", undo=_undo_words(numbers)),
            slot="marked_wrong",
        )


def rivals_not_on_file(
    scene: Scene, draft: Draft, pet: Pet, sign: Vertex, *, told: frozenset[str] = frozenset()
) -> None:
    """What a vet would ask first: what is on file of it, and what nobody wrote down.

    ``told`` are slots the answer has spoken of already.
    """
    logs = scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
    missing: dict[str, str] = {}
    for rival in scene.ontology.signs[sign.name.partition(":")[2]].rivals:
        if rival.slot in told or (rival.slot == "season" and _a_year_recorded(scene)):
            continue
        entries = [entry for entry in logs if rival.log is not None and entry.object == rival.log]
        if entries and _fresh(scene, entries[-1]):
            _on_file(scene, draft, entries[-1])
            continue
        missing[rival.id if rival.slot in ("vet", "none") else rival.slot] = rival.short
    named = dict(list(missing.items())[:_RIVALS_TOLD])
    if named:
        text = say("Not on file: {what}", what=listed(tuple(named.values()), between=", "))
        draft.say(NoticeKind.ABSENCE, text, slot="+".join(named))


def _fresh(scene: Scene, entry: TextRecord) -> bool:
    return (entry.at_ms or 0) >= scene.now_ms - _FRESH_DAYS * _DAY_MS


def _on_file(scene: Scene, draft: Draft, entry: TextRecord) -> None:
    if any(entry.ref in claim.refs for claim in draft.claims):
        return
    when = day(local_day(entry.at_ms or 0, scene.zones), year_of=scene.today)
    draft.claim(
        "rival_on_file",
        EvidenceClass.RECORDED,
        say("{what!u} on {when}", what=own_words(entry.title), when=when),
        cite="owner's log",
        refs=(entry.ref,),
        about=() if entry.pet is None else (f"pet:{entry.pet}",),
        rank=3,
    )


def _a_year_recorded(scene: Scene) -> bool:
    first = scene.reader.first_day()
    return first is not None and scene.today[:4] > first[:4] and scene.today[5:] >= first[5:]


def next_steps(scene: Scene, draft: Draft, pet: Pet, sign: Vertex, chains: tuple[Chain, ...]) -> None:
    """One paragraph of what helps: log, look, call."""
    rivals = scene.ontology.signs[sign.name.partition(":")[2]].rivals
    logged = {
        entry.object
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if _fresh(scene, entry)
    }
    to_log = [rival for rival in rivals if rival.log is not None and rival.log not in logged]
    steps: list[str] = [_to_log(to_log[0])] if to_log else []
    if sign.name in _LOOK:
        steps.append(_LOOK[sign.name])
    if len({chain.cause for chain in chains}) > 1:
        steps.clear()  # rivals take the words; what a vet would ask is named as not on file
    if any(chain.slot == "food" for chain in chains):
        steps.append("ask your vet before changing food")
    if chains and steps:
        what = listed(steps, between=", ")
        draft.say(NoticeKind.NEXT, say("Next: {steps}; sooner if {pet.he} seems unwell", steps=what, pet=pet))
        return
    if chains:
        lasts = say("A change that lasts is worth a call to your vet; sooner if {pet.he} seems unwell", pet=pet)
        draft.say(NoticeKind.NEXT, lasts)
        return
    if steps:
        draft.say(NoticeKind.NEXT, say("Next: {steps}", steps=joined(steps)))
    draft.say(
        NoticeKind.NEXT,
        say(
            "A change without a known reason is worth a call to your vet this week; today if {pet.he} seems unwell or "
            "stops eating",
            pet=pet,
        ),
    )


def _to_log(rival: Rival) -> Said:
    """What to write down: "log the last flea treatment", "log a weight"."""
    bare = rival.short.removeprefix("a recent ").removeprefix("a ")
    article = "a" if "weight" in rival.short else "the last"
    return elsewhere(f"log {article} {bare}", say("log: {what}", what=rival.short))
