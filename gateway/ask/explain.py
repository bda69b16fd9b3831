"""Why did it change? Typed, dated candidates first; the walk ranks and the tree connects.

Every step of a chain is said with its own source and class; what joins them is the hub's own
and is worded "may". Rivals are named side by side, in the order of the walk, never as "most
likely". Where nothing on file changed, that is said slot by slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.causes import LAG_MS, Candidates, find_candidates
from gateway.ask.chains import chain_claims, date_of
from gateway.ask.change import as_usual, figure_claim, how_clearly, not_captured, say_verdict
from gateway.ask.connect import Connected, connect
from gateway.ask.figures import compare_window
from gateway.ask.wording import first_upper, joined, possessive
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import day_interval
from gateway.measure.onset import onset
from gateway.model import Interval, Verdict, Vertex, stable_id

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Chain, NearMiss, Pet, Window

__all__ = ["explain_change"]

_BESIDE = ("intake", "activity", "rest", "restless", "scratch", "shake")
"""What else an owner wants to know was as usual, in the order it is told."""
_AWAY = {"sign:itch": "look at skin and ears", "sign:ear_trouble": "look into the ears"}
_FRESH_DAYS = 90
_NEAR_SHOWN = 2
_RIVALS_TOLD = 4


def explain_change(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "why is it up (or down)?" for one pet and one property."""
    observed = scene.ontology.properties[str(question.metric)]
    if not_captured(scene, draft, pet, observed):
        return
    figure = compare_window(scene, pet, observed, window)
    if figure is None:
        draft.say(NoticeKind.SHORT, f"Nothing of {pet.name}'s {observed.owner} has been recorded yet", slot=observed.id)
        return
    way = question.direction or {Verdict.UP: "up", Verdict.DOWN: "down"}.get(figure.verdict)
    sign = None if way is None else scene.ontology.sign_of(observed.id, way)
    if sign is None or figure.verdict is not {"up": Verdict.UP, "down": Verdict.DOWN}.get(str(way)):
        say_verdict(scene, draft, figure, question.direction)
        as_usual(scene, draft, pet, window, except_for=observed.id, names=_BESIDE)
        _if_seen(draft, figure)
        return
    _explain(scene, draft, figure, way=str(way), sign=Vertex(sign))


def _if_seen(draft: Draft, figure: Figure) -> None:
    draft.paragraph()
    draft.say(
        NoticeKind.CAUTION,
        f"If {figure.pet.name} looks different to you, trust that: this says nothing about how {figure.pet.name} feels",
    )


def _began(figure: Figure, scene: Scene) -> Interval:
    """When the change began, as an interval of instants; the window itself where no step shows."""
    found = onset(figure.measured.grid, figure.window.first_date, figure.window.last_date)
    first, last = (
        (figure.window.first_date, figure.window.last_date) if found is None else (found.earliest, found.latest)
    )
    return Interval(day_interval(first, scene.zones).start_ms, day_interval(last, scene.zones).end_ms)


def _explain(scene: Scene, draft: Draft, figure: Figure, *, way: str, sign: Vertex) -> None:
    pet = figure.pet
    links = scene.links()
    began = _began(figure, scene)
    candidates = find_candidates(
        links,
        pet=Vertex(f"pet:{pet.id}"),
        sign=sign,
        host=stable_id(pet.species),
        onset=began,
        now_ms=scene.now_ms,
        names=scene.reader.vertex_labels(),
        wrong_hypotheses=scene.wrong_hypotheses(),
    )
    view = Interval(began.start_ms - LAG_MS, scene.now_ms)
    connected = connect(scene, links, candidates.chains, pet=Vertex(f"pet:{pet.id}"), sign=sign, view=view)
    draft.near_misses.extend((*candidates.near_misses, *connected.near_misses))
    draft.chain.extend(connected.edges)
    draft.explain.extend(connected.account)
    draft.say(NoticeKind.SHORT, _short(scene, figure, connected, way))
    draft.paragraph()
    measured = figure_claim(scene, draft, figure)
    as_usual(scene, draft, pet, figure.window, except_for=figure.observed.id, names=_BESIDE)
    parts: list[str] = [] if measured is None else [measured]
    for number, chains in enumerate(connected.by_cause()):
        parts.extend(chain_claims(scene, draft, chains, connected.links, rank=1 if number == 0 else 4 + number))
    draft.paragraph()
    if connected.chains:
        _join(draft, connected, parts, pet=Vertex(f"pet:{pet.id}"), sign=sign)
    else:
        _nothing_on_file(scene, draft, candidates)
    _walled(draft, candidates)
    _not_on_file(scene, draft, pet, sign, connected.chains)
    draft.paragraph()
    _next(scene, draft, pet, sign, connected.chains)


def _short(scene: Scene, figure: Figure, connected: Connected, way: str) -> str:
    more, clear = ("more" if way == "up" else "less"), how_clearly(figure)
    if not connected.chains:
        return f"Yes, {clear} {more}, and nothing on file explains it"
    causes = [chains[0] for chains in connected.by_cause()]
    if len(causes) > 1:
        named = joined([_cause_words(scene, chain) for chain in causes])
        count = first_upper(_count(len(causes)))
        return f"Yes, {clear} {more}. {count} things changed before it: {named}. The records do not say which"
    chain = causes[0]
    his = possessive(figure.pet)
    closest = {
        "food": f"{his} new food on {date_of(scene, chain.changed_ms)}",
        "device": f"a change of {his} device on {date_of(scene, chain.changed_ms)}",
    }.get(chain.slot, _cause_words(scene, chain))
    doubt = (
        "which changes the measuring itself" if chain.instrument else "Whether that is the cause the records can't show"
    )
    joiner = ", " if chain.instrument else ". "
    return f"Yes, {clear} {more}; the closest recorded change is {closest}{joiner}{doubt}"


def _count(number: int) -> str:
    return {2: "two", 3: "three", 4: "four"}.get(number, str(number))


def _cause_words(scene: Scene, chain: Chain) -> str:
    name = scene.reader.vertex_labels().get(chain.cause.name, chain.cause.name.partition(":")[2].replace("_", " "))
    when = date_of(scene, chain.changed_ms)
    if chain.slot == "food":
        return f"the food on {when}"
    verb = "ran out" if chain.change == "ended" else "began"
    return (
        f"{name[:1].lower()}{name[1:]} {verb} on {when}" if chain.slot != "place" else f"the stay at {name} on {when}"
    )


def _join(draft: Draft, connected: Connected, parts: list[str], *, pet: Vertex, sign: Vertex) -> None:
    """The hub's own connection: "may", all sides named, a pattern, not a diagnosis."""
    if len(parts) < 2:
        return
    instrument = all(chain.instrument for chain in connected.chains)
    what = joined([_connection_words(chains[0]) for chains in connected.by_cause()], last="or")
    text = (
        "Put together by the hub: the change of device may be all there is to it, not a change in the pet"
        if instrument
        else f"Put together by the hub: {what} may have to do with it; a pattern, not a diagnosis"
    )
    causes = tuple(chains[0].cause.name for chains in connected.by_cause())
    draft.claim(
        "connection",
        EvidenceClass.CONNECTION,
        text,
        joins=tuple(dict.fromkeys(parts)),
        about=(pet.name, sign.name, *causes),
        rank=1,
    )


def _connection_words(chain: Chain) -> str:
    return {
        "food": "the food",
        "parasite": "the lapsed treatment",
        "medicine": "the medicine",
        "place": "the stay",
        "visitor": "the visitor",
        "device": "the device",
    }[chain.slot]


# --- what is not there -------------------------------------------------------------------------------


def _nothing_on_file(scene: Scene, draft: Draft, candidates: Candidates) -> None:
    """Absence, slot by slot: unchanged since when, changed without a link, or not recorded."""
    for miss in candidates.near_misses[:_NEAR_SHOWN]:
        draft.say(NoticeKind.ABSENCE, f"{first_upper(miss.what)}{_on(scene, miss)}: {miss.reason}", slot="near_miss")
    unchanged = [slot for slot in candidates.slots if slot.state == "unchanged" and slot.since_ms is not None]
    for slot in unchanged:
        if slot.name == "food":
            draft.say(
                NoticeKind.ABSENCE,
                f"Food unchanged since {date_of(scene, slot.since_ms or 0)} ({slot.what})",
                slot="food",
            )
    missing = [
        _SLOT_WORDS[slot.name] for slot in candidates.slots if slot.state == "not_recorded" and slot.name in _SLOT_WORDS
    ]
    if missing:
        draft.say(
            NoticeKind.ABSENCE, f"Not on file in the 21 days before: {joined(missing, last='or')}", slot="exposure"
        )


def _on(scene: Scene, miss: NearMiss) -> str:
    """The date of a near-miss, read from its edge's own reference."""
    began = miss.refs[-1].key.rpartition("|")[2] if miss.refs and miss.refs[-1].kind == "edge" else "-"
    return "" if not began.lstrip("-").isdecimal() else f" on {date_of(scene, int(began))}"


_SLOT_WORDS = {
    "food": "a food change",
    "medicine": "a medicine",
    "parasite": "a flea or tick treatment",
    "place": "a trip",
    "visitor": "a visitor",
}


def _walled(draft: Draft, candidates: Candidates) -> None:
    """What the owner's own mark took out of this answer."""
    if not candidates.walled:
        return
    named = joined(list(dict.fromkeys(_connection_words(chain) for chain in candidates.walled)))
    draft.say(
        NoticeKind.CAUTION,
        f"Left out because you marked it wrong: {named}. You can undo that mark",
        slot="marked_wrong",
    )


def _not_on_file(scene: Scene, draft: Draft, pet: Pet, sign: Vertex, chains: tuple[Chain, ...]) -> None:
    """What a vet would ask first and nobody wrote down."""
    since = scene.now_ms - _FRESH_DAYS * 86_400_000
    logs = [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if (entry.at_ms or 0) >= since
    ]
    named = {chain.slot for chain in chains}
    missing: dict[str, str] = {}
    for rival in scene.ontology.signs[sign.name.partition(":")[2]].rivals:
        if rival.slot in named or (rival.slot == "season" and _a_year_recorded(scene)):
            continue
        if rival.log is not None and any(entry.object == rival.log for entry in logs):
            continue
        missing[rival.id if rival.slot in ("vet", "none") else rival.slot] = rival.short
    told = dict(list(missing.items())[:_RIVALS_TOLD])
    if told:
        draft.say(NoticeKind.ABSENCE, f"Not on file: {joined(list(told.values()), last='or')}", slot="+".join(told))


def _a_year_recorded(scene: Scene) -> bool:
    first = scene.reader.first_day()
    return first is not None and scene.today[:4] > first[:4] and scene.today[5:] >= first[5:]


def _next(scene: Scene, draft: Draft, pet: Pet, sign: Vertex, chains: tuple[Chain, ...]) -> None:
    """One paragraph of what helps: log, look, call."""
    steps = []
    rivals = scene.ontology.signs[sign.name.partition(":")[2]].rivals
    logged = {entry.object for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)}
    to_log = [rival.short for rival in rivals if rival.log is not None and rival.log not in logged]
    if to_log:
        steps.append(f"log the last {to_log[0]}")
    if sign.name in _AWAY:
        steps.append(_AWAY[sign.name])
    if any(chain.slot == "food" for chain in chains):
        steps.append("ask your vet before changing food again")
    told = f"Next: {joined(steps)}; sooner" if steps else "A change that lasts is worth a call to your vet; sooner"
    if not chains:
        draft.say(NoticeKind.NEXT, "A change without a known reason is worth a call to your vet this week")
        told = f"Next: {joined(steps)}. Call today" if steps else "Call today"
    draft.say(NoticeKind.NEXT, f"{told} if {pet.name} seems unwell or stops eating")
