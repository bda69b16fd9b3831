"""Could it be this one? A named thing against a sign: what speaks for it, what against.

Never a yes: one change is one observation. The opening answers about the thing that was
asked about, then come the dates, the sources and whatever else changed in the same weeks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.absent import marked_wrong, rivals_not_on_file, walled
from gateway.ask.bought import say_not_given
from gateway.ask.causes import LAG_MS
from gateway.ask.chains import chain_claims, date_of
from gateway.ask.change import figure_claim, how_clearly, not_captured, nothing_yet, say_verdict
from gateway.ask.dated import EXPOSED, Dated, dated_in, entries_of, say_entry, short_words
from gateway.ask.disagree import say_disagreements
from gateway.ask.explain import Inquiry, cause_words, connection, inquire, sign_behind
from gateway.ask.figures import compare_window
from gateway.ask.said import Part, Said, elsewhere, is_or_are, known, said, say, verbatim, within
from gateway.ask.settle import hear_it, log_day, pick_bag
from gateway.ask.sources import cite, class_of, dated_by
from gateway.ask.wording import count_word, joined
from gateway.dialogue import NoticeKind
from gateway.model import Interval, Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Chain, Link, Pet, RecordRef, Window
    from gateway.stored import TextRecord

__all__ = [
    "before_change",
    "cause_check",
    "counted_words",
    "ended_by",
    "exposures",
    "say_exposures",
    "say_happened",
    "thing_words",
]

_DAY_MS = 86_400_000
_SHOWN = 4
_OPENING_WORDS = 25
_MOST = 6
"""Dated things told one by one; the earlier ones are counted."""
_BEGAN = {"visited_by": "came on", "treated_with": "was given on", "was_at": "began on", "uses_device": "was put on"}


def exposures(scene: Scene, pet: Pet, subjects: tuple[str, ...]) -> tuple[Link, ...]:
    """When the pet had, took or met the things asked about, oldest first.

    ``food:current`` is the food in the bowl now, ``food:previous`` the one before; an
    ingredient stands for every food whose label lists it or may hold it.
    """
    mine = [link for link in scene.links_of(pet.id) if link.edge.relation in EXPOSED and link.evidence]
    mine.sort(key=lambda link: (link.edge.valid_from_ms or 0, link.edge.head.name))
    ate = [link for link in mine if link.edge.relation == "ate"]
    wanted = set(subjects) | {
        f"food:{link.edge.head.name.partition(':')[2]}" for link in ate if _holds(scene, link, subjects)
    }
    if wanted & {"food:current", "event:food_change"} and ate:
        wanted.add(ate[-1].edge.head.name)
    if "food:previous" in wanted and len(ate) > 1:
        wanted.add(ate[-2].edge.head.name)
    kinds = [scene.ontology.log_kinds.get(name.partition(":")[2]) for name in wanted if name.startswith("event:")]
    wanted |= {kind.med for kind in kinds if kind is not None and kind.med is not None}
    met = {kind.relation for kind in kinds if kind is not None and kind.relation in ("visited_by", "was_at")}
    named = {f"place:{place.id}" for place in scene.home.places}
    unnamed = any(subject.startswith("place:") for subject in subjects)  # a stay without a place may be this one
    return tuple(
        link
        for link in mine
        if link.edge.head.name in wanted
        or link.edge.relation in met
        or (unnamed and link.edge.relation == "was_at" and link.edge.head.name not in named)
    )


def _holds(scene: Scene, ate: Link, subjects: tuple[str, ...]) -> bool:
    words = {subject.partition(":")[2] for subject in subjects if subject.startswith(("ing:", "food:"))}
    heads = {f"species:{word}" for word in words} | {f"group:{word}" for word in words}
    return any(
        link.edge.head.name in heads and link.edge.relation in ("contains", "may_contain")
        for link in scene.on_file.leaving(ate.edge.head.name)
    )


def thing_words(scene: Scene, subjects: tuple[str, ...], found: tuple[Link, ...]) -> Said:
    """What was asked about, in the household's own words."""
    names = scene.reader.vertex_labels()
    foods = {f"food:{food.id}": food.name for food in scene.home.foods}
    told = [link.edge.head.name for link in found if link.edge.relation != "visited_by"]
    told = told or [s for s in subjects if not s.startswith("event:")]
    words = [foods.get(name) or names.get(name) or name.partition(":")[2].replace("_", " ") for name in told]
    plain = [known({"current": "the current food", "previous": "the food before"}.get(word, word)) for word in words]
    events = [subject.partition(":")[2] for subject in subjects if subject.startswith("event:")]
    kinds = [scene.ontology.log_kinds[name] for name in events if name in scene.ontology.log_kinds]
    plain = plain or [elsewhere(f"the {kind.words[0]}", said(kind.words[0])) for kind in kinds] or [said("that")]
    return joined(list(dict.fromkeys(plain)), last="or")


# --- could it be? ------------------------------------------------------------------------------------


def cause_check(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "could X be what makes it?" for one pet, one property and the things named."""
    found, entries = exposures(scene, pet, question.subjects), entries_of(scene, pet, question.subjects)
    thing = thing_words(scene, question.subjects, found)
    if question.metric is None:
        _unmeasured(scene, draft, pet, found, thing)
        return
    observed = scene.ontology.properties[question.metric]
    if not_captured(scene, draft, pet, observed):
        _say_asked(scene, draft, pet, found, entries)
        return
    figure = compare_window(scene, pet, observed, window)
    if figure is None:
        if observed.evidence_class == "RECORDED" and not scene.devices_of(pet.id, observed):
            _unmeasured(scene, draft, pet, found, thing)
            return
        draft.say(NoticeKind.SHORT, nothing_yet(pet, observed), slot=observed.id)
        hear_it(scene, draft, pet, observed)
        return
    there = sign_behind(scene, figure, question.direction)
    if there is None:
        _nothing_to_blame(scene, draft, figure, question.direction, thing)
        _say_asked(scene, draft, pet, found, entries)
        return
    asked = _Asked(thing, question.subjects, found, entries)
    _judge(scene, draft, figure, inquire(scene, figure, way=there[0], sign=there[1]), asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is blamed: in words, with its exposures, and the log entries no link stands for."""

    thing: Said
    subjects: tuple[str, ...]
    found: tuple[Link, ...]
    entries: tuple[TextRecord, ...]


def _say_asked(scene: Scene, draft: Draft, pet: Pet, found: tuple[Link, ...], entries: tuple[TextRecord, ...]) -> None:
    say_exposures(scene, draft, pet, found)
    for entry in entries[-_SHOWN:]:
        say_entry(scene, draft, entry)


def _unmeasured(scene: Scene, draft: Draft, pet: Pet, found: tuple[Link, ...], thing: Said) -> None:
    draft.say(
        NoticeKind.SHORT,
        say("I can't tell: no device here measures that, and nothing on file links it to {thing}", thing=thing),
        slot="sign",
        device="people",
    )
    draft.paragraph()
    say_exposures(scene, draft, pet, found)
    draft.say(NoticeKind.NEXT, say("Log each time you see it; then dates can be held against {thing}", thing=thing))


def _nothing_to_blame(scene: Scene, draft: Draft, figure: Figure, asked: str | None, thing: Said) -> None:
    """The change is not there, or cannot be told: then nothing has to have caused it."""
    if figure.verdict is Verdict.CANNOT_TELL:
        text = say(
            "I can't tell that of {thing}: whether {pet}'s {series} changed at all is not clear",
            thing=thing,
            pet=figure.pet,
            series=figure.observed,
        )
        draft.say(NoticeKind.SHORT, text, slot=figure.observed.id)
        draft.paragraph()
        say_verdict(scene, draft, figure, asked)
        draft.paragraph()
        return
    way = {"up": "rise", "down": "drop"}.get(asked or "", "change")
    draft.say(
        NoticeKind.PREMISE,
        say(
            "No {way} shows in {pet}'s {series}, so there is nothing here to blame on {thing}",
            way=way,
            pet=figure.pet,
            series=figure.observed,
            thing=thing,
        ),
        slot=figure.observed.id,
    )
    draft.paragraph()
    figure_claim(scene, draft, figure)


def _judge(scene: Scene, draft: Draft, figure: Figure, inquiry: Inquiry, asked: _Asked) -> None:
    pet, heads = figure.pet, {link.edge.head.name for link in asked.found}
    connected = inquiry.connected
    mine = [chains for chains in connected.by_cause() if chains[0].cause.name in heads]
    others = [chains for chains in connected.by_cause() if chains[0].cause.name not in heads]
    blocked = [chain for chain in inquiry.candidates.walled if chain.cause.name in heads]
    draft.near_misses.extend((*inquiry.candidates.near_misses, *connected.near_misses))
    draft.chain.extend(connected.edges)
    draft.explain.extend(connected.account)
    opening = _opening(scene, figure, inquiry, asked, mine=mine, blocked=blocked)
    if mine or blocked or asked.found or asked.entries:
        draft.say(NoticeKind.SHORT, opening)
    else:
        draft.say(NoticeKind.SHORT, opening, slot="exposure", device="people")
        log_day(draft, "exposure")
    draft.paragraph()
    if not mine:
        _say_asked(scene, draft, pet, asked.found, asked.entries)
    measured = figure_claim(scene, draft, figure)
    parts = [] if measured is None else [measured]
    for number, chains in enumerate(mine, start=1):
        parts.extend(chain_claims(scene, draft, chains, connected.links, rank=number, context=len(mine) + 2))
    for number, chains in enumerate(others, start=len(mine) + 3):
        chain_claims(scene, draft, chains, connected.links, rank=number, context=len(mine) + len(others) + 3)
    say_disagreements(scene, draft, inquiry.used())
    draft.paragraph()
    if mine:
        connection(draft, inquiry, parts, pet=pet, causes=tuple(mine))
    if others:
        named = joined([cause_words(scene, chains[0]) for chains in others])
        lead = "Against it alone, in the same weeks" if mine else "What your sources do link to it, in the same weeks"
        draft.say(NoticeKind.ABSENCE, say("{lead}: {what}", lead=lead, what=named), slot="rival")
    walled(scene, draft, inquiry.candidates)
    told = frozenset(chain.slot for chain in connected.chains)
    rivals_not_on_file(scene, draft, pet, inquiry.sign, told=told)
    if mine:
        draft.say(NoticeKind.CAUTION, "One change is one observation. Ask your vet before changing anything to test it")


def _opening(
    scene: Scene,
    figure: Figure,
    inquiry: Inquiry,
    asked: _Asked,
    *,
    mine: list[tuple[Chain, ...]],
    blocked: list[Chain],
) -> Said:
    """What is said of the thing asked about first: it may, it does not fit, it is not on file, it was marked wrong."""
    thing, of = asked.thing, say("{pet.his} {series}", pet=figure.pet, series=figure.observed)
    if mine:
        return _it_may(scene, figure, mine[0][0], up=inquiry.way == "up")
    rose = _rose(figure, up=inquiry.way == "up")
    if blocked:
        return say("You marked the link to {thing} wrong, so it is left out; {rose}", thing=thing, rose=rose)
    if not asked.found and not asked.entries:
        return _not_on_file(figure.pet, thing, rose, asked.subjects)
    when, reason = _unlinked(scene, inquiry, asked)
    told = elsewhere(reason.replace("the sign", of), reason)
    if when is not None:
        return say("{what!u} {when}, {reason}", what=thing, when=when, reason=told)
    return say("{what!u} doesn't fit: {reason}; {rose}", what=thing, reason=told, rose=rose)


def _rose(figure: Figure, *, up: bool) -> Said:
    parts: dict[str, Part] = {"pet": figure.pet, "series": figure.observed, "how": how_clearly(figure)}
    if up:
        return say("{pet.his} {series} is {how} up", **parts)
    return say("{pet.his} {series} is {how} down", **parts)


def _it_may(scene: Scene, figure: Figure, chain: Chain, *, up: bool) -> Said:
    """The named thing came before: "It may: the food on Jul 5 came before his scratching rose"."""
    parts: dict[str, Part] = {
        "change": cause_words(scene, chain),
        "pet": figure.pet,
        "series": figure.observed,
        "moved": "rose" if up else "fell",
    }
    if chain.slot in ("food", "place"):
        return say("It may: {change} came before {pet.his} {series} {moved}. That is no proof", **parts)
    return say("It may: {change}, and then {pet.his} {series} {moved}. That is no proof", **parts)


def _not_on_file(pet: Pet, thing: Said, rose: Said, subjects: tuple[str, ...]) -> Said:
    if any(subject.startswith("place:") for subject in subjects):
        return say(
            "I can't tell: nothing on file says when {pet} was at {thing}; {rose}", pet=pet, thing=thing, rose=rose
        )
    if not thing.startswith("the "):
        return say("I can't tell: nothing on file says when {pet} had {thing}; {rose}", pet=pet, thing=thing, rose=rose)
    bare = thing.removeprefix("the ")
    what = elsewhere(bare, thing)
    if is_or_are([bare]) == "is":
        return say("I can't tell: no {what} is on file for {pet}; {rose}", what=what, pet=pet, rose=rose)
    return say("I can't tell: no {what} are on file for {pet}; {rose}", what=what, pet=pet, rose=rose)


def _unlinked(scene: Scene, inquiry: Inquiry, asked: _Asked) -> tuple[Said | None, Said]:
    """(when it began, if in time; why it is no candidate) for a thing without a chain to the sign."""
    since, until = inquiry.began.start_ms - LAG_MS, inquiry.began.end_ms
    moments: list[tuple[int, str, RecordRef]] = [
        (link.edge.valid_from_ms, _BEGAN.get(link.edge.relation, "began on"), link.edge.ref)
        for link in asked.found
        if link.edge.valid_from_ms is not None
    ]
    moments += [(entry.at_ms, "was on", entry.ref) for entry in asked.entries if entry.at_ms is not None]
    refs = {ref for _, _, ref in moments}
    near = next((_line(miss.reason) for miss in inquiry.candidates.near_misses if refs & set(miss.refs)), None)
    in_time = [moment for moment in moments if since <= moment[0] <= until]
    if in_time:
        at_ms, began, _ = max(in_time)
        plain = near is None or near.startswith("nothing")
        reason = said("nothing in your sources links it to the sign") if near is None else near
        if not plain:
            return None, reason
        when = say("{began} {day}, in time", began=began, day=date_of(scene, at_ms))
        return when, say("but {reason}, which is no proof against it", reason=reason)
    if near is not None:
        return None, near
    if moments:
        at_ms, began, _ = min(moments) if min(moments)[0] > until else max(moments)
        if at_ms > until:
            return None, say("it {began} {day}, after the sign began", began=began, day=date_of(scene, at_ms))
        before = say(
            "it {began} {day}, more than three weeks before the sign began", began=began, day=date_of(scene, at_ms)
        )
        return None, before
    return None, said("nothing on file links the two, and that is no proof against it")


def _line(reason: str) -> Said:
    return reason if isinstance(reason, Said) else said(reason)


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
            say("{what!u} {span}", what=known(name), span=_span(scene, link)),
            cite=cite(scene, piece.record),
            refs=(piece.record, *ended_by(scene, link)),
            about=(f"pet:{pet.id}", link.edge.head.name),
        )


def ended_by(scene: Scene, link: Link) -> tuple[RecordRef, ...]:
    """The record of the food that took a food's place: what dates the end of its days."""
    ended, pet = link.edge.valid_to_ms, link.edge.tail.name.partition(":")[2]
    if link.edge.relation != "ate" or ended is None or ended > scene.now_ms:
        return ()
    return tuple(fed.ref for fed in scene.reader.feedings(scene.home, pet) if fed.start_ms == ended)


def _span(scene: Scene, link: Link) -> Said:
    start, end = link.edge.valid_from_ms, link.edge.valid_to_ms
    if start is None:
        return verbatim("") if end is None else say("until {day}", day=date_of(scene, end))
    if end is None and link.edge.relation == "was_at":
        return say("from {day}", day=date_of(scene, start))
    if (end is None or end > scene.now_ms) and link.edge.relation != "visited_by":
        return say("since {day}", day=date_of(scene, start))
    if end is None or end - start <= _DAY_MS:
        return say("on {day}", day=date_of(scene, start))
    return say("from {first} to {last}", first=date_of(scene, start), last=date_of(scene, end))


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
    if observed is None:
        _changes_lately(scene, draft, pet)
        return
    if figure is None or there is None:
        if figure is None:
            text = say("Nothing of that has been recorded of {pet} yet", pet=pet)
            draft.say(NoticeKind.SHORT, text, slot="series")
            if observed is not None:
                hear_it(scene, draft, pet, observed)
        else:
            say_verdict(scene, draft, figure, question.direction)
        return
    _changes_before(scene, draft, figure, inquire(scene, figure, way=there[0], sign=there[1]))


def _changes_before(scene: Scene, draft: Draft, figure: Figure, inquiry: Inquiry) -> None:
    span = Interval(inquiry.began.start_ms - LAG_MS, scene.now_ms)
    moved = dated_in(scene, figure.pet, span)
    before = [one for one in moved if one.at_ms <= inquiry.began.end_ms]
    after = [one for one in moved if one.at_ms > inquiry.began.end_ms]
    draft.near_misses.extend(inquiry.candidates.near_misses)
    draft.chain.extend(inquiry.connected.edges)
    named = say("{what} in the three weeks before it", what=counted_words(scene, before))
    bare = say("{what} in the three weeks before it", what=_bare_count(before))
    opening = elsewhere(named, within(_OPENING_WORDS, named, bare))
    draft.say(
        NoticeKind.SHORT,
        say("{opening}. Since it began: {what}", opening=opening, what=_named(scene, after)) if after else opening,
    )
    draft.paragraph()
    _say_dated(scene, draft, figure.pet, moved)
    draft.paragraph()
    figure_claim(scene, draft, figure)
    say_not_given(scene, draft, figure.pet, inquiry.began, rank=0, shown=2)
    quiet = [slot.name for slot in inquiry.candidates.slots if slot.state == "not_recorded"]
    if quiet:
        words = joined([_SLOTS[name] for name in quiet], last="or")
        draft.say(NoticeKind.ABSENCE, say("Nothing at all is on file about {what}", what=words), slot="+".join(quiet))
    if moved:
        draft.say(NoticeKind.CAUTION, "What came before is not thereby the cause")


def _changes_lately(scene: Scene, draft: Draft, pet: Pet) -> None:
    """What is on file of the last three weeks, where no measured change is asked about."""
    moved = dated_in(scene, pet, Interval(scene.now_ms - LAG_MS, scene.now_ms))
    draft.say(NoticeKind.SHORT, say("{what} in the last three weeks", what=counted_words(scene, list(moved))))
    draft.paragraph()
    _say_dated(scene, draft, pet, moved)


def say_happened(scene: Scene, draft: Draft, pet: Pet, span: Interval) -> None:
    """What is dated in a span, named and opened."""
    moved = dated_in(scene, pet, Interval(span.start_ms, max(span.start_ms, span.end_ms - 1)))
    draft.say(NoticeKind.SHORT, counted_words(scene, list(moved)).rstrip(","))
    _say_dated(scene, draft, pet, moved)
    draft.paragraph()


def counted_words(scene: Scene, moved: list[Dated]) -> Said:
    """How many dated things are on file, named where they are few: "Two things are on file, X and Y,"."""
    if not moved:
        return said("Nothing is on file")
    count = _bare_count(moved)
    return say("{count}, {what},", count=count, what=_named(scene, moved)) if len(moved) <= _SHOWN else count


def _bare_count(moved: list[Dated]) -> Said:
    if len(moved) < 2:
        return said("One thing is on file") if moved else said("Nothing is on file")
    return say("{count!u} things are on file", count=count_word(len(moved)))


def _named(scene: Scene, moved: list[Dated]) -> Said:
    if len(moved) > _SHOWN:
        return say("{count} things", count=count_word(len(moved)))
    return joined([short_words(scene, one) for one in moved])


def _say_dated(scene: Scene, draft: Draft, pet: Pet, moved: tuple[Dated, ...]) -> None:
    if len(moved) > _MOST:
        latest = say("The latest {count} of them here", count=count_word(_MOST))
        draft.say(NoticeKind.ABSENCE, latest, slot="record")
    for one in moved[-_MOST:]:
        say_exposures(scene, draft, pet, one.links)
        if one.entry is not None:
            say_entry(scene, draft, one.entry)


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
        text = say("What {pet} was given before is not on file", pet=pet)
        draft.say(NoticeKind.SHORT, text, slot="food", device="food_bowl")
        pick_bag(draft)
        return
    names = scene.reader.vertex_labels()
    name = names.get(ate[-1].edge.head.name, ate[-1].edge.head.name.partition(":")[2])
    draft.say(NoticeKind.SHORT, verbatim(name))
    say_exposures(scene, draft, pet, tuple(ate[-1:]))
