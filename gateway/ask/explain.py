"""Why did it change? Typed, dated candidates first; the walk ranks and the tree connects.

Every step of a chain is said with its own source and class; what joins them is the hub's own
and is worded "may". Rivals are named side by side, the one whose chain is believed further first,
never as "most likely". Where nothing on file changed, that is said slot by slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.absent import (
    given_too,
    near_misses,
    next_steps,
    nothing_on_file,
    rivals_not_on_file,
    slot_words,
    walled,
)
from gateway.ask.bought import say_not_given
from gateway.ask.causes import LAG_MS, Candidates, find_candidates
from gateway.ask.chains import chain_claims, date_of
from gateway.ask.change import as_usual, figure_claim, figure_seen, if_seen, say_verdict, yes
from gateway.ask.connect import Connected, connect
from gateway.ask.disagree import say_disagreements
from gateway.ask.said import Said, known, say, verbatim, within
from gateway.ask.wording import count_word, first_lower, joined
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import day_interval
from gateway.measure.onset import onset
from gateway.model import Interval, Verdict, Vertex, stable_id

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Chain, Link, Pet, Window

__all__ = ["Inquiry", "began_in", "cause_words", "connection", "explain_change", "inquire", "sign_behind"]

_BESIDE = ("intake", "activity", "rest", "restless", "scratch", "shake")
"""What else an owner wants to know was as usual, in the order it is told."""
_OPENING_WORDS = 25
_WAY = {Verdict.UP: "up", Verdict.DOWN: "down"}


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One search for causes: the sign, when it began, what was found and how it connects."""

    sign: Vertex
    way: str
    began: Interval
    candidates: Candidates
    connected: Connected

    def used(self) -> tuple[Link, ...]:
        """Every link of the chains that made it into the answer, once, in the order told."""
        refs = dict.fromkeys(ref for chain in self.connected.chains for ref in chain.links)
        return tuple(self.connected.links[ref] for ref in refs)


def sign_behind(scene: Scene, figure: Figure, asked: str | None) -> tuple[str, Vertex] | None:
    """(way, sign) where the change asked about is really there and shows a sign, else None."""
    way = asked or _WAY.get(figure.verdict)
    if way is None or _WAY.get(figure.verdict) != way:
        return None
    sign = scene.ontology.sign_of(figure.observed.id, way)
    return None if sign is None else (way, Vertex(sign))


def inquire(scene: Scene, figure: Figure, *, way: str, sign: Vertex) -> Inquiry:
    """Search, walk and assemble for one figure's change."""
    pet = Vertex(f"pet:{figure.pet.id}")
    began = began_in(figure, scene)
    candidates = find_candidates(
        scene.on_file,
        pet=pet,
        sign=sign,
        host=stable_id(figure.pet.species),
        onset=began,
        now_ms=scene.now_ms,
        names=scene.reader.vertex_labels(),
        wrong_hypotheses=scene.wrong_hypotheses(),
    )
    view = Interval(began.start_ms - LAG_MS, scene.now_ms)
    connected = connect(scene, scene.on_file, candidates.chains, pet=pet, sign=sign, view=view)
    return Inquiry(sign, way, began, candidates, connected)


def began_in(figure: Figure, scene: Scene) -> Interval:
    """When the change began, as an interval of instants; the window itself where no step shows."""
    window = figure.window
    found = onset(figure.measured.grid, window.first_date, window.last_date, verdict=figure.verdict)
    first, last = (window.first_date, window.last_date) if found is None else (found.earliest, found.latest)
    return Interval(day_interval(first, scene.zones).start_ms, day_interval(last, scene.zones).end_ms)


def explain_change(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "why is it up (or down)?" for one pet and one property."""
    observed = scene.ontology.properties[str(question.metric)]
    figure = figure_seen(scene, draft, pet, observed, window)
    if figure is None:
        return
    found = sign_behind(scene, figure, question.direction)
    if found is None:
        say_verdict(scene, draft, figure, question.direction)
        if any(notice.slot in ("energy", "gap") for notice in draft.notices):
            return
        if figure.verdict is not Verdict.CANNOT_TELL:
            as_usual(scene, draft, pet, window, except_for=observed.id, names=_BESIDE, beside=figure.verdict)
        if_seen(draft, figure)
        return
    _explain(scene, draft, figure, inquire(scene, figure, way=found[0], sign=found[1]))


def _explain(scene: Scene, draft: Draft, figure: Figure, inquiry: Inquiry) -> None:
    pet, connected = figure.pet, inquiry.connected
    draft.near_misses.extend((*inquiry.candidates.near_misses, *connected.near_misses))
    draft.chain.extend(connected.edges)
    draft.explain.extend(connected.account)
    draft.say(NoticeKind.SHORT, _short(scene, figure, connected, inquiry.way))
    draft.paragraph()
    measured = figure_claim(scene, draft, figure, ranked=not connected.chains)
    causes = connected.by_cause()
    as_usual(
        scene,
        draft,
        pet,
        figure.window,
        except_for=figure.observed.id,
        names=_BESIDE,
        beside=figure.verdict,
        rank=len(causes) + 4,
    )
    parts: list[str] = [] if measured is None else [measured]
    changed = None if len(causes) == 1 else 1  # rivals: every dated change first, then each one's sources
    for number, chains in enumerate(causes, start=1 if changed is None else 2):
        told = chain_claims(
            scene, draft, chains, connected.links, rank=number, context=len(causes) + 3, changed=changed
        )
        parts.extend(told if changed is None else told[:1])
    say_disagreements(scene, draft, inquiry.used())
    draft.paragraph()
    if connected.chains:
        connection(draft, inquiry, parts, pet=pet, causes=causes)
        if len(causes) == 1:  # beside rivals there are no words left for what is no cause
            near_misses(scene, draft, given_too(inquiry.candidates))
    else:
        nothing_on_file(scene, draft, inquiry.candidates, since_ms=inquiry.began.start_ms - LAG_MS)
    say_not_given(scene, draft, pet, inquiry.began, rank=len(causes) + 5 if causes else 0, shown=1 if causes else 2)
    walled(scene, draft, inquiry.candidates)
    rivals_not_on_file(scene, draft, pet, inquiry.sign, told=_told(inquiry))
    draft.paragraph()
    next_steps(scene, draft, pet, inquiry.sign, connected.chains)


def _told(inquiry: Inquiry) -> frozenset[str]:
    """Slots the answer speaks of anyway: a cause's, and those said to hold no change."""
    if inquiry.connected.chains:
        return frozenset(chain.slot for chain in inquiry.connected.chains)
    return frozenset(slot.name for slot in inquiry.candidates.slots if slot.state != "changed")


def _short(scene: Scene, figure: Figure, connected: Connected, way: str) -> Said:
    there = yes(figure, up=way == "up")
    if not connected.chains:
        return say("{yes}, and nothing on file explains it", yes=there)
    causes = [chains[0] for chains in connected.by_cause()]
    if len(causes) > 1:
        opening = say("{yes}. {count!u} things changed before it", yes=there, count=count_word(len(causes)))
        named = joined([cause_words(scene, chain) for chain in causes])
        return within(
            _OPENING_WORDS,
            say("{opening}: {named}. The records do not say which", opening=opening, named=named),
            say("{opening}; the records do not say which", opening=opening),
        )
    chain = causes[0]
    closest = _closest(scene, figure.pet, chain)
    if chain.instrument:
        return say(
            "{yes}; the closest recorded change is {change}, which changes the measuring itself",
            yes=there,
            change=closest,
        )
    return say(
        "{yes}; the closest recorded change is {change}. Whether that is the cause the records can't show",
        yes=there,
        change=closest,
    )


def _closest(scene: Scene, pet: Pet, chain: Chain) -> Said:
    """The one candidate as the end of a sentence: "his new food on Jul 5"."""
    when = date_of(scene, chain.changed_ms)
    if chain.slot == "food":
        return say("{pet.his} new food on {when}", pet=pet, when=when)
    if chain.slot == "device":
        return say("a change of {pet.his} device on {when}", pet=pet, when=when)
    if chain.slot == "place":
        return cause_words(scene, chain)
    return say("that {cause}", cause=cause_words(scene, chain))


def cause_words(scene: Scene, chain: Chain) -> Said:
    """A candidate in a few words with its date: "the food on Jul 5"."""
    name = scene.reader.vertex_labels().get(chain.cause.name, chain.cause.name.partition(":")[2].replace("_", " "))
    when = date_of(scene, chain.changed_ms)
    if chain.slot == "food":
        return say("the food on {when}", when=when)
    if chain.slot == "place":
        return say("the stay at {place} on {when}", place=verbatim(name), when=when)
    if chain.change == "ended":
        return say("{what} ran out on {when}", what=first_lower(known(name)), when=when)
    return say("{what} began on {when}", what=first_lower(known(name)), when=when)


def connection(
    draft: Draft, inquiry: Inquiry, parts: list[str], *, pet: Pet, causes: tuple[tuple[Chain, ...], ...]
) -> None:
    """The hub's own connection: "may", all sides named, a pattern, not a diagnosis."""
    if len(parts) < 2:
        return
    named = joined([slot_words(chains[0]) for chains in causes], last="or")
    what: str = named if len(causes) == 1 else "either change" if len(causes) == 2 else "any of these changes"
    text = (
        say("Put together by the hub: the change of device may be all there is to it, not a change in the pet")
        if all(chain.instrument for chains in causes for chain in chains)
        else say("Put together by the hub: {what} may have to do with it; a pattern, not a diagnosis", what=what)
    )
    draft.claim(
        "connection",
        EvidenceClass.CONNECTION,
        text,
        joins=tuple(dict.fromkeys(parts)),
        about=(f"pet:{pet.id}", inquiry.sign.name, *(chains[0].cause.name for chains in causes)),
    )
