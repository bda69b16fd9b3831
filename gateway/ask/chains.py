"""The claims of one cause: its dated change, its label, and what sources say of each link.

Every sentence has its own source and class; nothing here joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.said import Said, known, say, verbatim
from gateway.ask.sources import as_said, cite, class_of, dated_by, first_of, quoted
from gateway.ask.wording import day
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.graph.adjacency import is_live
from gateway.measure.days import local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Chain, Link, RecordRef

__all__ = ["chain_claims", "date_of"]


def date_of(scene: Scene, at_ms: int) -> Said:
    """An instant's local day in words."""
    return day(local_day(at_ms, scene.zones), year_of=scene.today)


def chain_claims(
    scene: Scene,
    draft: Draft,
    chains: tuple[Chain, ...],
    links: dict[RecordRef, Link],
    *,
    rank: int,
    context: int,
    changed: int | None = None,
) -> list[str]:
    """Each link of one cause's chains with its own source, own data first, imported knowledge last.

    A cause may have several chains (two new ingredients): its exposure is said once, every
    ingredient that reaches the sign is named. What carries the chain is admitted together
    at ``rank``; how the sign looks, and how often the cause is behind it, is context at
    ``context``. Among rivals the dated change itself stands at ``changed``, so that none of them
    is dropped for want of words. Returns the ids of what carries it, the change first.
    """
    paths = [tuple(links[ref] for ref in chain.links) for chain in chains]
    said = [_exposure_claim(scene, draft, chains[0], paths[0][0], rank if changed is None else changed)]
    if chains[0].slot == "food":
        for along in paths:
            said.extend(_label_claims(scene, draft, along, rank))
    for along in paths:
        said.extend(_knowledge_claims(scene, draft, along, rank=rank))
    for along in paths:
        _sign_claim(scene, draft, along[-1], rank=context)
    return list(dict.fromkeys(claim for claim in said if claim is not None))


def _knowledge_claims(scene: Scene, draft: Draft, along: tuple[Link, ...], *, rank: int) -> list[str | None]:
    """What sources say of a chain's later links, but for how the sign itself looks."""
    passed = ("contains", "may_contain", "has_sign", "captures", "indicates")
    return [
        _source_claim(scene, draft, link, rank)
        for link in along[1:]
        if link.edge.relation.partition("[")[0] not in passed
    ]


def _sign_claim(scene: Scene, draft: Draft, shows: Link, *, rank: int) -> None:
    """How often the cause is behind the sign, else how the sign looks."""
    if shows.edge.relation.startswith("has_sign") and _base_rate(scene, draft, shows, rank) is None:
        _source_claim(scene, draft, shows, rank)


def _exposure_claim(scene: Scene, draft: Draft, chain: Chain, link: Link, rank: int) -> str | None:
    """The dated change itself: the food switched, the treatment ran out, the visit began."""
    piece = dated_by(scene, link)
    if piece is None:
        return None
    refs: tuple[RecordRef, ...] = (piece.record,)
    names = scene.reader.vertex_labels()
    name = names.get(link.edge.head.name, link.edge.head.name)
    when = date_of(scene, chain.changed_ms)
    if chain.slot == "food":
        before = [
            period
            for period in scene.reader.feedings(scene.home, link.edge.tail.name.partition(":")[2])
            if period.start_ms < chain.changed_ms
        ]
        text = (
            say("{what} replaced {old} on {when}", what=verbatim(name), old=verbatim(before[-1].name), when=when)
            if before
            else say("{what} began on {when}", what=verbatim(name), when=when)
        )
        refs = (*refs, *((before[-1].ref,) if before else ()))
    elif chain.change == "ended":
        given = date_of(scene, link.edge.valid_from_ms or chain.changed_ms)
        text = say("{what!u} given {given} ran out on {when}", what=known(name), given=given, when=when)
    elif chain.instrument:
        text = say("{what!u} has been in use since {when}", what=known(name), when=when)
    else:
        text = say("{what!u} on {when}", what=known(name), when=when)
    return draft.claim(
        f"{chain.slot}_change",
        class_of(piece.record),
        text,
        cite=cite(scene, piece.record),
        refs=refs,
        about=(link.edge.tail.name, link.edge.head.name),
        rank=rank,
    )


def _label_claims(scene: Scene, draft: Draft, along: tuple[Link, ...], rank: int) -> list[str | None]:
    """What the new label lists that reaches the sign, and that the old one lists none of it."""
    ate, held = along[0], along[1]
    piece = first_of(held, "label")
    if piece is None:
        return []
    species = scene.reader.vertex_labels().get(held.edge.head.name, held.edge.head.name.partition(":")[2])
    may = held.edge.relation == "may_contain"
    words = quoted(scene, piece).lower()
    text = say("Its label lists {words}", words=verbatim(words))
    if may and species not in words:
        text = say("{text}, which may contain {what}", text=text, what=known(species))
    found: list[str | None] = [
        draft.claim(
            "label_lists",
            EvidenceClass.REFERENCE,
            text,
            cite="product data",
            refs=(piece.record,),
            about=(held.edge.tail.name, held.edge.head.name),
            rank=rank,
        )
    ]
    before = [
        period
        for period in scene.reader.feedings(scene.home, ate.edge.tail.name.partition(":")[2])
        if period.start_ms < (ate.edge.valid_from_ms or 0) and period.food != ate.edge.head.name.partition(":")[2]
    ]
    if not before:
        return found
    label = scene.reader.label_of(before[-1].code)
    if label is None:
        text = say(
            "The label of {food} is not on file, so whether it is new can't be told", food=verbatim(before[-1].name)
        )
        draft.say(NoticeKind.ABSENCE, text)
        return found
    found.append(
        draft.claim(
            "label_lists_none",
            EvidenceClass.REFERENCE,
            say("The old label lists no {what}", what=known(species)),
            cite="product data",
            refs=(label,),
            about=(f"food:{before[-1].food}", held.edge.head.name),
            rank=rank,
        )
    )
    return found


def _source_claim(scene: Scene, draft: Draft, link: Link, rank: int) -> str | None:
    """What the source says of this link, word for word."""
    piece = first_of(link, "passage", "note", "label", "log")
    if piece is None or not (text := quoted(scene, piece)):
        return None
    said = next((claim for claim in draft.claims if claim.text == text), None)
    if said is not None:
        return said.id
    return draft.claim(
        link.edge.relation.partition("[")[0],
        class_of(piece.record),
        as_said(text) if piece.record.kind != "note" else say('"{text}"', text=text),
        cite=cite(scene, piece.record),
        refs=(piece.record,),
        about=(link.edge.tail.name, link.edge.head.name),
        rank=rank,
    )


def _base_rate(scene: Scene, draft: Draft, shows: Link, rank: int) -> str | None:
    """How often the condition is behind the sign at all, where a source says so."""
    host = shows.edge.relation.partition("[")[2].rstrip("]")
    for link in scene.on_file.leaving(shows.edge.tail.name):
        said = is_live(link) or link.refuted or link.marked_wrong
        if said and link.edge.relation == f"base_rate[{host}]" and link.edge.head == shows.edge.head:
            return _source_claim(scene, draft, link, rank)
    return None
