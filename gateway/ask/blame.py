"""Could it be this one? A named thing against a sign: what speaks for it, what against.

Never a yes: one change is one observation. The opening answers about the thing that was
asked about, then come the dates, the sources and whatever else changed in the same weeks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.absent import marked_wrong, rivals_not_on_file, walled
from gateway.ask.bought import say_not_given
from gateway.ask.chains import chain_claims, date_of
from gateway.ask.change import figure_claim, how_clearly, not_captured, say_verdict
from gateway.ask.disagree import say_disagreements
from gateway.ask.explain import Inquiry, cause_words, connection, inquire, sign_behind
from gateway.ask.figures import compare_window
from gateway.ask.sources import cite, class_of, dated_by
from gateway.ask.wording import first_upper, joined, possessive
from gateway.dialogue import NoticeKind
from gateway.model import Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Chain, Link, Pet, RecordRef, Window

__all__ = ["before_change", "cause_check", "exposures", "say_exposures", "thing_words"]

_DAY_MS = 86_400_000
_SHOWN = 4
_EXPOSED = frozenset({"ate", "takes", "treated_with", "was_at", "visited_by", "uses_device"})


def exposures(scene: Scene, pet: Pet, subjects: tuple[str, ...]) -> tuple[Link, ...]:
    """When the pet had, took or met the things asked about, oldest first.

    ``food:current`` is the food in the bowl now, ``food:previous`` the one before; an
    ingredient stands for every food whose label lists it or may hold it.
    """
    mine = [link for link in scene.links_of(pet.id) if link.edge.relation in _EXPOSED and link.evidence]
    mine.sort(key=lambda link: (link.edge.valid_from_ms or 0, link.edge.head.name))
    ate = [link for link in mine if link.edge.relation == "ate"]
    wanted = set(subjects) | {
        f"food:{link.edge.head.name.partition(':')[2]}" for link in ate if _holds(scene, link, subjects)
    }
    if wanted & {"food:current", "event:food_change"} and ate:
        wanted.add(ate[-1].edge.head.name)
    if "food:previous" in wanted and len(ate) > 1:
        wanted.add(ate[-2].edge.head.name)
    if "event:flea_treatment" in wanted:
        wanted.add("med:flea_treatment")
    return tuple(link for link in mine if link.edge.head.name in wanted)


def _holds(scene: Scene, ate: Link, subjects: tuple[str, ...]) -> bool:
    words = {subject.partition(":")[2] for subject in subjects if subject.startswith(("ing:", "food:"))}
    heads = {f"species:{word}" for word in words} | {f"group:{word}" for word in words}
    return any(
        link.edge.head.name in heads and link.edge.relation in ("contains", "may_contain")
        for link in scene.on_file.leaving(ate.edge.head.name)
    )


def thing_words(scene: Scene, subjects: tuple[str, ...], found: tuple[Link, ...]) -> str:
    """What was asked about, in the household's own words."""
    names = scene.reader.vertex_labels()
    known = {f"food:{food.id}": food.name for food in scene.home.foods}
    told = [link.edge.head.name for link in found] or [s for s in subjects if not s.startswith("event:")]
    words = [known.get(name) or names.get(name) or name.partition(":")[2].replace("_", " ") for name in told]
    plain = [{"current": "the current food", "previous": "the food before"}.get(word, word) for word in words]
    return joined(list(dict.fromkeys(plain)), last="or") or "that"


# --- could it be? ------------------------------------------------------------------------------------


def cause_check(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "could X be what makes it?" for one pet, one property and the things named."""
    found = exposures(scene, pet, question.subjects)
    thing = thing_words(scene, question.subjects, found)
    if question.metric is None:
        _unmeasured(scene, draft, pet, found, thing)
        return
    observed = scene.ontology.properties[question.metric]
    if not_captured(scene, draft, pet, observed):
        say_exposures(scene, draft, pet, found)
        return
    figure = compare_window(scene, pet, observed, window)
    if figure is None:
        draft.say(NoticeKind.SHORT, f"Nothing of {pet.name}'s {observed.owner} has been recorded yet", slot=observed.id)
        return
    there = sign_behind(scene, figure, question.direction)
    if there is None:
        _nothing_to_blame(scene, draft, figure, question.direction, thing)
        say_exposures(scene, draft, pet, found)
        return
    _judge(scene, draft, figure, inquire(scene, figure, way=there[0], sign=there[1]), found=found, thing=thing)


def _unmeasured(scene: Scene, draft: Draft, pet: Pet, found: tuple[Link, ...], thing: str) -> None:
    draft.say(
        NoticeKind.SHORT,
        f"I can't tell: no device here measures that, and nothing on file links it to {thing}",
        slot="sign",
        device="people",
    )
    draft.paragraph()
    say_exposures(scene, draft, pet, found)
    draft.say(NoticeKind.NEXT, f"Log each time you see it; then dates can be held against {thing}")


def _nothing_to_blame(scene: Scene, draft: Draft, figure: Figure, asked: str | None, thing: str) -> None:
    """The change is not there, or cannot be told: then nothing has to have caused it."""
    if figure.verdict is Verdict.CANNOT_TELL:
        say_verdict(scene, draft, figure, asked)
        return
    way = {"up": "rise", "down": "drop"}.get(asked or "", "change")
    draft.say(
        NoticeKind.PREMISE,
        f"No {way} shows in {figure.pet.name}'s {figure.observed.owner}, so there is nothing here to blame on {thing}",
        slot=figure.observed.id,
    )
    draft.paragraph()
    figure_claim(scene, draft, figure)


def _judge(
    scene: Scene, draft: Draft, figure: Figure, inquiry: Inquiry, *, found: tuple[Link, ...], thing: str
) -> None:
    pet, heads = figure.pet, {link.edge.head.name for link in found}
    connected = inquiry.connected
    mine = [chains for chains in connected.by_cause() if chains[0].cause.name in heads]
    others = [chains for chains in connected.by_cause() if chains[0].cause.name not in heads]
    blocked = [chain for chain in inquiry.candidates.walled if chain.cause.name in heads]
    draft.near_misses.extend((*inquiry.candidates.near_misses, *connected.near_misses))
    draft.chain.extend(connected.edges)
    draft.explain.extend(connected.account)
    draft.say(NoticeKind.SHORT, _opening(scene, figure, inquiry, mine=mine, blocked=blocked, found=found, thing=thing))
    draft.paragraph()
    measured = figure_claim(scene, draft, figure)
    parts = [] if measured is None else [measured]
    for number, chains in enumerate(mine, start=1):
        parts.extend(chain_claims(scene, draft, chains, connected.links, rank=number, context=len(mine) + 2))
    for number, chains in enumerate(others, start=len(mine) + 3):
        chain_claims(scene, draft, chains, connected.links, rank=number, context=len(mine) + len(others) + 3)
    if not mine:
        say_exposures(scene, draft, pet, found)
    say_disagreements(scene, draft, inquiry.used())
    draft.paragraph()
    if mine:
        connection(draft, inquiry, parts, pet=pet, causes=tuple(mine))
    if others:
        named = joined([cause_words(scene, chains[0]) for chains in others])
        draft.say(NoticeKind.ABSENCE, f"Against it alone, in the same weeks: {named}", slot="rival")
    walled(scene, draft, inquiry.candidates)
    told = frozenset(chain.slot for chain in connected.chains)
    rivals_not_on_file(scene, draft, pet, inquiry.sign, told=told)
    if mine:
        draft.say(NoticeKind.CAUTION, "One change is one observation. Ask your vet before changing anything to test it")


def _opening(
    scene: Scene,
    figure: Figure,
    inquiry: Inquiry,
    *,
    mine: list[tuple[Chain, ...]],
    blocked: list[Chain],
    found: tuple[Link, ...],
    thing: str,
) -> str:
    what = figure.observed.owner
    rose = f"{figure.pet.name}'s {what} is {how_clearly(figure)} {inquiry.way}"
    if mine:
        chain = mine[0][0]
        moved, his = ("rose" if inquiry.way == "up" else "fell"), possessive(figure.pet)
        what_changed = cause_words(scene, chain)
        if chain.slot in ("food", "place"):
            return f"It may: {what_changed} came before {his} {what} {moved}. That is no proof"
        return f"It may: {what_changed}, and then {his} {what} {moved}. That is no proof"
    if blocked:
        return f"{rose}, but you marked that link to {thing} wrong, so it is left out"
    if not found:
        return f"{rose}, but nothing on file says when {figure.pet.name} had {thing}"
    reason = next(
        (miss.reason for miss in inquiry.candidates.near_misses if found[-1].edge.ref in miss.refs),
        "nothing on file links the two, and that is no proof against it",
    )
    return f"{rose}; {thing} doesn't fit: {reason}"


def say_exposures(scene: Scene, draft: Draft, pet: Pet, found: tuple[Link, ...]) -> None:
    """When the pet had the thing, from the record that says so."""
    marked_wrong(scene, draft, found)
    names = scene.reader.vertex_labels()
    for link in found[-_SHOWN:]:
        if link.marked_wrong:
            continue
        piece = dated_by(scene, link) or link.evidence[0]
        name = names.get(link.edge.head.name, link.edge.head.name.partition(":")[2].replace("_", " "))
        draft.claim(
            "exposure",
            class_of(piece.record),
            f"{first_upper(name)} {_span(scene, link)}",
            cite=cite(scene, piece.record),
            refs=(piece.record, *_ended_by(scene, link)),
            about=(f"pet:{pet.id}", link.edge.head.name),
        )


def _ended_by(scene: Scene, link: Link) -> tuple[RecordRef, ...]:
    """The record of the food that took a food's place: what dates the end of its days."""
    ended, pet = link.edge.valid_to_ms, link.edge.tail.name.partition(":")[2]
    if link.edge.relation != "ate" or ended is None or ended > scene.now_ms:
        return ()
    return tuple(fed.ref for fed in scene.reader.feedings(scene.home, pet) if fed.start_ms == ended)


def _span(scene: Scene, link: Link) -> str:
    start, end = link.edge.valid_from_ms, link.edge.valid_to_ms
    if start is None:
        return "" if end is None else f"until {date_of(scene, end)}"
    if end is None or end > scene.now_ms:
        return f"since {date_of(scene, start)}"
    one_day = end - start <= _DAY_MS
    return f"on {date_of(scene, start)}" if one_day else f"from {date_of(scene, start)} to {date_of(scene, end)}"


# --- what changed before? ----------------------------------------------------------------------------


def before_change(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "what changed before then?": every dated change of the weeks before, linked or not."""
    observed = None if question.metric is None else scene.ontology.properties[question.metric]
    figure = None if observed is None else compare_window(scene, pet, observed, window)
    there = None if figure is None else sign_behind(scene, figure, question.direction)
    if question.metric == "intake" and there is None:
        _food_before(scene, draft, pet)
        return
    if observed is not None and not_captured(scene, draft, pet, observed):
        return
    if figure is None or there is None:
        if figure is None:
            draft.say(NoticeKind.SHORT, f"Nothing of that has been recorded of {pet.name} yet", slot="series")
        else:
            say_verdict(scene, draft, figure, question.direction)
        return
    _changes_before(scene, draft, figure, inquire(scene, figure, way=there[0], sign=there[1]))


def _changes_before(scene: Scene, draft: Draft, figure: Figure, inquiry: Inquiry) -> None:
    moved = [
        (slot.name, link) for slot in inquiry.candidates.slots if slot.state == "changed" for link in slot.links[-2:]
    ]
    count = len({name for name, _ in moved})
    draft.near_misses.extend(inquiry.candidates.near_misses)
    draft.chain.extend(inquiry.connected.edges)
    opening = (
        "In the three weeks before it, nothing on file changed"
        if not moved
        else f"{'One thing' if count == 1 else 'These'} changed in the three weeks before or since"
    )
    draft.say(NoticeKind.SHORT, opening)
    draft.paragraph()
    figure_claim(scene, draft, figure)
    say_exposures(scene, draft, figure.pet, tuple(link for _, link in moved))
    say_not_given(scene, draft, figure.pet, inquiry.began, rank=0, shown=2)
    quiet = [slot.name for slot in inquiry.candidates.slots if slot.state == "not_recorded"]
    if quiet:
        words = joined([_SLOTS[name] for name in quiet], last="or")
        draft.say(NoticeKind.ABSENCE, f"Nothing at all is on file about {words}", slot="+".join(quiet))
    if moved:
        draft.say(NoticeKind.CAUTION, "What came before is not thereby the cause")


_SLOTS = {
    "food": "food",
    "medicine": "medicines",
    "parasite": "flea treatments",
    "place": "trips",
    "visitor": "visitors",
    "device": "devices",
}


def _food_before(scene: Scene, draft: Draft, pet: Pet) -> None:
    """What the bowl held before the food of now."""
    ate = [
        link
        for link in exposures(scene, pet, ("food:current", "food:previous"))
        if link.edge.relation == "ate" and link.edge.valid_to_ms is not None and link.edge.valid_to_ms <= scene.now_ms
    ]
    if not ate:
        draft.say(NoticeKind.SHORT, f"What {pet.name} was given before is not on file", slot="food", device="food_bowl")
        draft.say(NoticeKind.ABSENCE, "Picking the bag at the bowl, or a log entry, records it", slot="food")
        return
    names = scene.reader.vertex_labels()
    draft.say(NoticeKind.SHORT, names.get(ate[-1].edge.head.name, ate[-1].edge.head.name.partition(":")[2]))
    say_exposures(scene, draft, pet, tuple(ate[-1:]))
