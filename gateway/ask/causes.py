"""Typed, dated candidates: which recorded change could reach the sign, by which links.

A range query over relation paths and dates. It returns ids and chains, no scores: numbers
and dates only select. What changed without a path, or at the wrong time, comes back as a
near-miss with its reason; what did not change, or is not on file, as the state of its slot.
The patterns are those of CONTRACTS, Explaining a change, 2 and 3. tests/scenarios.py holds a
home for every one of them and for what only looks like one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.ask.said import Said, known, say, verbatim
from gateway.graph.adjacency import is_live
from gateway.model import Chain, NearMiss

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gateway.ask.onfile import Known
    from gateway.model import Interval, Link, Vertex

__all__ = ["LAG_MS", "Candidates", "Slot", "find_candidates", "hypothesis"]

DAY_MS = 86_400_000
LAG_MS = 21 * DAY_MS
"""A cause precedes its effect by at most this: nine in ten food flares come within 14 days
(Olivry and Mueller 2019), a lapsed flea treatment within three weeks."""
_SLACK_MS = 3 * DAY_MS
_TOLERATED_MS = 28 * DAY_MS
"""Eaten this long before the sign began, without it: not what is new."""
_RENEWED_MS = 3 * DAY_MS
_DENIED = 0.5
"""Belief above which "tolerates" or "was ruled out" stands in a chain's way, as for a wall."""

_SLOTS = ("food", "medicine", "parasite", "place", "visitor", "device")


@dataclass(frozen=True, slots=True)
class Slot:
    """What is on file about one kind of possible cause.

    ``state`` is ``changed``, ``unchanged`` (since ``since_ms``) or ``not_recorded``;
    ``what`` names the thing in force, ``links`` the edges that say so.
    """

    name: str
    state: str
    since_ms: int | None
    what: str | None
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chains in the order of their change, near-misses, slots, and chains the owner's marks took away."""

    chains: tuple[Chain, ...]
    near_misses: tuple[NearMiss, ...]
    slots: tuple[Slot, ...]
    walled: tuple[Chain, ...]


@dataclass(slots=True)
class _Paths:
    """The links by tail and relation, for one pet's species."""

    host: str
    names: Mapping[str, str]
    known: Known
    out: dict[str, dict[str, list[Link]]] = field(default_factory=dict)

    def of(self, tail: Vertex | str, *relations: str) -> Iterator[Link]:
        """Links leaving a vertex by these relations; a host-specific one only for this host."""
        name = str(tail)
        if name not in self.out:
            self.out[name] = {}
            for link in self.known.leaving(name):
                self.out[name].setdefault(link.edge.relation, []).append(link)
        for relation in relations:
            yield from self.out[name].get(relation, ())
            yield from self.out[name].get(f"{relation}[{self.host}]", ())

    def name(self, vertex: Vertex) -> str:
        return self.names.get(vertex.name, vertex.name.partition(":")[2].replace("_", " "))


@dataclass(slots=True)
class _Search:
    """One search: the pet, its sign, when the sign began, and what was found so far."""

    paths: _Paths
    pet: Vertex
    sign: Vertex
    onset: Interval
    now_ms: int
    chains: list[Chain] = field(default_factory=list)
    walled: list[Chain] = field(default_factory=list)
    near: list[NearMiss] = field(default_factory=list)
    wrong: frozenset[str] = frozenset()
    denials: dict[str, Link] = field(default_factory=dict)

    def in_time(self, change_ms: int) -> bool:
        """0 <= onset - change <= 21 days, on the onset's interval, with at most 3 days' slack."""
        slack = min(_SLACK_MS, self.onset.length_ms)
        return self.onset.start_ms - slack - LAG_MS <= change_ms <= self.onset.end_ms + slack

    def add(
        self, path: Iterable[Link], *, cause: Vertex, slot: str, changed_ms: int, change: str, what: str = ""
    ) -> bool:
        """A whole path: a candidate, or what the owner's mark, a record or a refutation takes away.

        ``what`` names the change where a record denies it (the cause's own name if empty).
        False where the path is not there at all: a link of it is refuted or unknown.
        """
        links = tuple(path)
        if not all(_holds(link) for link in links):
            return False
        denial = next((found for link in links if (found := self._denial(link)) is not None), None)
        if denial is not None:
            self.near.append(self._denied(denial, links[0], what or known(self.paths.name(cause))))
            return True
        chain = Chain(
            cause=cause,
            slot=slot,
            links=tuple(link.edge.ref for link in links),
            changed_ms=changed_ms,
            change=change,
            instrument=slot == "device",
        )
        if any(link.marked_wrong for link in links) or hypothesis(cause, self.pet, self.sign) in self.wrong:
            self.walled.append(chain)
        else:
            self.chains.append(chain)
        return True

    def _denial(self, link: Link) -> Link | None:
        """What denies a link: its head, or, for a group on a label, every member that put it there."""
        edge = link.edge
        if edge.relation != "contains" or edge.head.type != "group":
            return self.denials.get(edge.head.name)
        held = [one for one in self.paths.of(edge.tail, "contains") if self._is_a(one.edge.head, edge.head)]
        named = {piece.record for one in held for piece in one.evidence}
        denied = [self.denials.get(one.edge.head.name) for one in held]
        by_members = bool(held) and all(denied) and all(piece.record in named for piece in link.evidence)
        return denied[0] if by_members else self.denials.get(edge.head.name)

    def _is_a(self, member: Vertex, group: Vertex) -> bool:
        return any(link.edge.head == group for link in self.paths.of(member, "is_a"))

    def _denied(self, denial: Link, exposure: Link, what: str) -> NearMiss:
        name = known(self.paths.name(denial.edge.head))
        reason = (
            say("{what} is recorded as tolerated", what=name)
            if denial.edge.relation == "tolerates"
            else say("{what} was ruled out", what=name)
        )
        return NearMiss(what=what, reason=reason, refs=(denial.edge.ref, exposure.edge.ref))


def hypothesis(cause: Vertex, pet: Vertex, sign: Vertex) -> str:
    """The stable name of "this cause makes this sign in this pet", for the owner's mark."""
    return f"{cause.name}>{sign.name}@{pet.name}"


def find_candidates(
    known: Known,
    *,
    pet: Vertex,
    sign: Vertex,
    host: str,
    onset: Interval,
    now_ms: int,
    names: Mapping[str, str],
    wrong_hypotheses: frozenset[str] = frozenset(),
) -> Candidates:
    """Match the typed, dated patterns from ``pet`` to ``sign``.

    Parameters
    ----------
    known : Known
        Everything stored about the household up to now, of any date: what was eaten long ago
        decides what is new.
    host : str
        The pet's species id: only ``[host]`` relations of this species are followed.
    onset : Interval
        When the sign began, as closely as the series tells.

    Returns
    -------
    Candidates
        Chains ordered by change, then cause.
    """
    paths = _Paths(host, names, known)
    search = _Search(paths, pet, sign, onset, now_ms, wrong=wrong_hypotheses, denials=_denials(paths, pet))
    _new_food(search)
    _new_medicine(search)
    _ended_treatment(search)
    _places_and_visitors(search)
    _new_device(search)
    return Candidates(
        chains=_sorted(search.chains),
        near_misses=tuple(dict.fromkeys(search.near)),
        slots=tuple(_slot(search, name) for name in _SLOTS),
        walled=_sorted(search.walled),
    )


def _sorted(chains: list[Chain]) -> tuple[Chain, ...]:
    unique = {chain.links: chain for chain in chains}
    return tuple(sorted(unique.values(), key=lambda chain: (chain.changed_ms, chain.cause.name, chain.links)))


def _start(link: Link) -> int:
    return -(2**62) if link.edge.valid_from_ms is None else link.edge.valid_from_ms


# --- pet -ate(starts)-> food -> species -may_cause[host]-> condition -has_sign[host]-> sign --------


def _new_food(search: _Search) -> None:
    meals = [ate for ate in sorted(search.paths.of(search.pet, "ate"), key=_start) if _holds(ate)]
    believed = [ate for ate in meals if is_live(ate)]
    for ate in meals:
        changed, food = _start(ate), search.paths.name(ate.edge.head)
        first = not any(_start(other) < changed for other in believed)
        if first and changed <= search.onset.start_ms - _TOLERATED_MS:
            continue  # the first food on file, long before: nothing changed
        if not search.in_time(changed):
            if changed > search.onset.start_ms - LAG_MS:
                search.near.append(_mistimed(search, _changed_to(food), changed, ate))
            continue
        listed = list(search.paths.of(ate.edge.head, "contains", "may_contain"))
        reached = [_by_source(search, ate, held, believed) for held in listed]
        if any(reached):
            continue
        reason = (
            "nothing new on its label is linked to the sign in your sources"
            if listed
            else "its label is not on file, so what is in it is not known"
        )
        search.near.append(NearMiss(what=_changed_to(food), reason=reason, refs=(ate.edge.ref,)))


def _changed_to(food: str) -> Said:
    return say("food changed to {food}", food=verbatim(food))


def _by_source(search: _Search, ate: Link, held: Link, believed: list[Link]) -> bool:
    """One source on the new label; whether it reaches the sign by anything but an old habit."""
    source, food = held.edge.head, search.paths.name(ate.edge.head)
    tails = list(_causal_tails(search, source))
    earlier = _eaten_before(search, ate, held, believed)
    if earlier is None:
        added = [
            search.add(
                (ate, held, *tail),
                cause=ate.edge.head,
                slot="food",
                changed_ms=_start(ate),
                change="started",
                what=_changed_to(food),
            )
            for tail in tails
        ]
        return any(added)
    if tails:
        search.near.append(
            NearMiss(
                what=say("{what} in {food}", what=known(search.paths.name(source)), food=verbatim(food)),
                reason=say("in both foods: {old} held it too", old=verbatim(search.paths.name(earlier.edge.head))),
                refs=(held.edge.ref, earlier.edge.ref),
            )
        )
    return False


def _eaten_before(search: _Search, ate: Link, held: Link, believed: list[Link]) -> Link | None:
    """An earlier feeding that held the source without the sign: then it is not what is new.

    What the old food only may have held is new in a food that names it, and not new in one
    that may hold it too.
    """
    relations = ("contains",) if held.edge.relation == "contains" else ("contains", "may_contain")
    for other in believed:
        if _start(other) >= _start(ate) or _shown_then(search, other, _start(ate)):
            continue
        if any(_holds(old) and old.edge.head == held.edge.head for old in search.paths.of(other.edge.head, *relations)):
            return other
    return None


def _shown_then(search: _Search, earlier: Link, changed_ms: int) -> bool:
    """Whether the sign came with an earlier feeding, which had ended long before this change."""
    ended_ms = earlier.edge.valid_to_ms
    if ended_ms is None or ended_ms > changed_ms - _TOLERATED_MS:
        return False
    return any(
        shown.edge.head == search.sign and is_live(shown) and 0 <= _start(shown) - _start(earlier) <= LAG_MS
        for shown in search.paths.of(search.pet, "exhibits")
    )


def _holds(link: Link) -> bool:
    return link.belief > 0.0 and not link.refuted


def _denials(paths: _Paths, pet: Vertex) -> dict[str, Link]:
    """What is on file as tolerated or ruled out, by vertex name.

    A condition that is also diagnosed, as surely or since then, is none of these: there the records
    disagree. A suspicion that a later and surer record ruled out is settled.
    """
    found: dict[str, Link] = {}
    for link in paths.of(pet, "tolerates", "ruled_out"):
        diagnosed = (one for one in paths.of(pet, "diagnosed_with") if one.edge.head == link.edge.head)
        disputed = any(is_live(one) and (one.belief >= link.belief or _start(one) > _start(link)) for one in diagnosed)
        if is_live(link) and link.belief > _DENIED and not disputed:
            found[link.edge.head.name] = link
    return found


def _mistimed(search: _Search, what: str, changed_ms: int, link: Link) -> NearMiss:
    after = changed_ms > search.onset.end_ms
    reason = "it changed after the sign began" if after else "it changed more than 21 days before the sign began"
    return NearMiss(what=what, reason=reason, refs=(link.edge.ref,))


def _causal_tails(search: _Search, source: Vertex) -> Iterator[tuple[Link, Link]]:
    for cause in search.paths.of(source, "may_cause"):
        for shows in search.paths.of(cause.edge.head, "has_sign"):
            if shows.edge.head == search.sign:
                yield cause, shows


# --- pet -takes(starts)-> medicine -side_effect[host]-> sign ------------------------------------------


def _new_medicine(search: _Search) -> None:
    given = _given(search)
    for takes in given:
        changed = _start(takes)
        if not search.in_time(changed) or _continued(takes, given):
            continue
        for effect in search.paths.of(takes.edge.head, "side_effect"):
            if effect.edge.head == search.sign:
                search.add(
                    (takes, effect), cause=takes.edge.head, slot="medicine", changed_ms=changed, change="started"
                )


def _given(search: _Search) -> list[Link]:
    return sorted(search.paths.of(search.pet, "takes", "treated_with"), key=_start)


def _continued(takes: Link, given: list[Link]) -> bool:
    """Whether the same medicine was being given already, or had been until a few days before."""
    return any(
        other.edge.head == takes.edge.head
        and is_live(other)
        and _start(other) < _start(takes)
        and (other.edge.valid_to_ms is None or other.edge.valid_to_ms >= _start(takes) - _RENEWED_MS)
        for other in given
    )


# --- pet -takes|treated_with(ends)-> medicine -treats|prevents[host]-> condition -has_sign-> sign -------


def _ended_treatment(search: _Search) -> None:
    given = _given(search)
    for treatment in given:
        ended = treatment.edge.valid_to_ms
        if ended is None or ended > search.now_ms:
            continue
        slot = "parasite" if treatment.edge.relation == "treated_with" else "medicine"
        what = say("{what} ran out", what=known(search.paths.name(treatment.edge.head)))
        paths = [
            (treatment, keeps, shows)
            for keeps in search.paths.of(treatment.edge.head, "treats", "prevents")
            if not _renewed(search, keeps, treatment, given, ended)
            for shows in search.paths.of(keeps.edge.head, "has_sign")
            if shows.edge.head == search.sign
        ]
        if not search.in_time(ended):
            if paths and ended > search.onset.start_ms - LAG_MS:
                search.near.append(_mistimed(search, what, ended, treatment))
            continue
        for path in paths:
            cause = treatment.edge.head
            search.add(path, cause=cause, slot=slot, changed_ms=ended, change="ended", what=what)


def _renewed(search: _Search, keeps: Link, treatment: Link, given: list[Link], ended_ms: int) -> bool:
    """Whether the same medicine, or another one against the same condition, took over."""
    return any(
        other is not treatment
        and is_live(other)
        and _start(other) <= ended_ms + _RENEWED_MS
        and (other.edge.valid_to_ms is None or other.edge.valid_to_ms > ended_ms)
        and (other.edge.head == treatment.edge.head or _guards(search, other.edge.head, keeps.edge.head))
        for other in given
    )


def _guards(search: _Search, medicine: Vertex, condition: Vertex) -> bool:
    return any(
        link.edge.head == condition and is_live(link) for link in search.paths.of(medicine, "treats", "prevents")
    )


# --- pet -> place or visitor -has_agent-> agent -may_cause[host]-> condition -> sign --------------------


def _places_and_visitors(search: _Search) -> None:
    for relation, slot in (("was_at", "place"), ("visited_by", "visitor")):
        for link in sorted(search.paths.of(search.pet, relation), key=_start):
            changed, what = _exposed_ms(search, link), known(search.paths.name(link.edge.head))
            if changed is None:
                continue
            kinds = [(), *((kind,) for kind in search.paths.of(link.edge.head, "of_kind"))]
            paths = [
                (link, *kind, carries, *tail)
                for kind in kinds
                for carries in search.paths.of(kind[0].edge.head if kind else link.edge.head, "has_agent")
                for tail in _causal_tails(search, carries.edge.head)
            ]
            for path in paths:
                change = "started" if changed == _start(link) else "left"
                search.add(path, cause=link.edge.head, slot=slot, changed_ms=changed, change=change)
            if not paths:
                search.near.append(
                    NearMiss(what=what, reason="nothing in your sources links it to the sign", refs=(link.edge.ref,))
                )


def _exposed_ms(search: _Search, link: Link) -> int | None:
    """When in the time that counts a stay or visit began or, for a stay, was left; else None.

    What is caught at a kennel may be caught on the last of forty days there.
    """
    began, left = _start(link), link.edge.valid_to_ms
    if search.in_time(began):
        return began
    if link.edge.relation != "was_at" or left is None or left > search.now_ms:
        return None
    return left if search.in_time(left) else None


# --- pet -uses_device(starts)-> device -captures-> own series -indicates-> sign: a measurement rival ---


def _new_device(search: _Search) -> None:
    own = {link.edge.head.name for link in search.paths.of(search.pet, "has_series")}
    used = sorted(search.paths.of(search.pet, "uses_device"), key=_start)
    for uses in used:
        changed = _start(uses)
        if not search.in_time(changed):
            continue
        before = [other for other in used if _start(other) < changed and is_live(other)]
        for captures in search.paths.of(uses.edge.head, "captures"):
            series = captures.edge.head
            if series.name not in own or not any(_measured(search, other.edge.head, series) for other in before):
                continue  # another pet's, or measured for the first time: no device was changed
            for shows in search.paths.of(captures.edge.head, "indicates"):
                if shows.edge.head == search.sign:
                    search.add(
                        (uses, captures, shows),
                        cause=uses.edge.head,
                        slot="device",
                        changed_ms=changed,
                        change="started",
                    )


def _measured(search: _Search, device: Vertex, series: Vertex) -> bool:
    """Whether a device captured the series; one of which nothing is on file may have."""
    captured = [link.edge.head for link in search.paths.of(device, "captures")]
    return series in captured or not captured


# --- what is on file, slot by slot ----------------------------------------------------------------------

_SLOT_RELATIONS = {
    "food": ("ate",),
    "medicine": ("takes",),
    "parasite": ("treated_with",),
    "place": ("was_at",),
    "visitor": ("visited_by",),
    "device": ("uses_device",),
}


def _slot(search: _Search, name: str) -> Slot:
    """The slot's state: a dated exposure that began or ended near the onset is a change."""
    links = sorted(search.paths.of(search.pet, *_SLOT_RELATIONS[name]), key=_start)
    known = [link for link in links if _start(link) <= search.now_ms]
    if not known:
        return Slot(name, "not_recorded", None, None, ())
    since = search.onset.start_ms - LAG_MS
    moved = [
        link
        for link in known
        if (_start(link) > since and link is not known[0])
        or (link.edge.valid_to_ms is not None and since < link.edge.valid_to_ms <= search.now_ms)
    ]
    latest = (moved or known)[-1]
    state = "changed" if moved else "unchanged"
    return Slot(name, state, _start(latest), search.paths.name(latest.edge.head), tuple(moved or known[-1:]))
