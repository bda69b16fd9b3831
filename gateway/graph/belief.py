"""How far an edge is believed: stored evidence in, one `Link` an edge out.

Dempster-Shafer masses on the frame {true, false}; what is left is ignorance. All evidence
of one witness (a device, a document) is pooled first and can never say more than that
witness's reliability; different witnesses are then combined by Dempster's rule. A belief is
always recomputed from the evidence that is stored, never patched, and evidence is sorted
before it is folded, so the same evidence gives the same bytes in whatever order it came.

The owner's "that's wrong" is not evidence: it is a wall on the `Link`, and no mass moves.

Sources: Shafer, A Mathematical Theory of Evidence (1976); Zadeh (1984) for the paradox that
makes K worth keeping; Denoeux, Artificial Intelligence 172 (2008) for why dependent pieces
of evidence must not be combined as if they were independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.errors import BeliefError
from gateway.model import Edge, Evidence, Link, Mass, RecordRef

__all__ = [
    "DISAGREEMENT",
    "VACUOUS",
    "Combined",
    "combine",
    "combine_all",
    "discount",
    "edge_order",
    "evidence_order",
    "fold",
    "fold_all",
    "is_refuted",
    "member_mass",
    "pignistic",
]

VACUOUS = Mass(0.0, 0.0)
"""Total ignorance: the neutral element of Dempster's rule. Unknown, not refuted."""

DISAGREEMENT = 0.5
"""K above which an answer that uses the edge must say that the records disagree."""


@dataclass(frozen=True, slots=True)
class Combined:
    """A mass and the conflict K in [0, 1) that was normalised away to get it."""

    mass: Mass
    conflict: float


def pignistic(mass: Mass) -> float:
    """BetP = true + ignorance / 2, between belief and plausibility (Smets 1994)."""
    return mass.true + mass.ignorance / 2.0


def is_refuted(mass: Mass) -> bool:
    """Whether belief in falsehood is above both one half and the belief in truth."""
    return mass.false > 0.5 and mass.false > mass.true


def discount(mass: Mass, reliability: float) -> Mass:
    """Shafer's discounting: t -> a t, f -> a f, the rest becomes ignorance.

    Parameters
    ----------
    mass : Mass
    reliability : float
        a in [0, 1]; 1 changes nothing, 0 leaves total ignorance.

    Raises
    ------
    BeliefError
        The reliability lies outside [0, 1] or is not a number.
    """
    if not 0.0 <= reliability <= 1.0:
        raise BeliefError(f"a reliability must lie in [0, 1], is {reliability!r}")
    return Mass(reliability * mass.true, reliability * mass.false)


def combine(first: Mass, second: Mass) -> Combined:
    """Dempster's rule for two independent witnesses on {true, false}.

    With K = t1 f2 + f1 t2: t = (t1 t2 + t1 u2 + u1 t2) / (1 - K), f likewise, and
    u = u1 u2 / (1 - K). Commutative and associative; the vacuous mass is neutral.

    Raises
    ------
    BeliefError
        K = 1: one is certain of truth, the other of falsehood, and nothing is left to
        normalise.
    """
    t1, f1, u1 = first.true, first.false, first.ignorance
    t2, f2, u2 = second.true, second.false, second.ignorance
    conflict = t1 * f2 + f1 * t2
    # The sum of the agreeing products is 1 - K without the cancellation of subtracting.
    true = t1 * t2 + t1 * u2 + u1 * t2
    false = f1 * f2 + f1 * u2 + u1 * f2
    agreed = true + false + u1 * u2
    if agreed <= 0.0:
        raise BeliefError(
            "two witnesses must leave something to agree on (K < 1); "
            f"found total conflict, K = {conflict:g}, between {first} and {second}"
        )
    true, false = true / agreed, false / agreed
    excess = true + false
    if excess > 1.0:  # by one rounding at most: a mass must not exceed its frame
        true, false = true / excess, false / excess
    return Combined(Mass(min(1.0, true), min(1.0, false)), min(1.0, conflict))


def combine_all(masses: Iterable[Mass]) -> Combined:
    """Dempster's rule over any number of witnesses; K is that of the whole combination.

    1 - K multiplies along the fold, so K does not depend on how the fold is bracketed.
    None at all leaves `VACUOUS` and K = 0.
    """
    mass, agreement = VACUOUS, 1.0
    for each in masses:
        step = combine(mass, each)
        mass = step.mass
        agreement *= 1.0 - step.conflict
    return Combined(mass, 1.0 - agreement)


def member_mass(size: int) -> Mass:
    """Mass of one member when a label names only a set ("poultry meal").

    A set of ``size`` members says 1 / size for each and nothing against any; the reader of
    the label (its reliability) scales that, giving reliability / size. The edge it supports
    is a ``may_contain``, worded "may" whatever the belief.
    """
    if size < 1:
        raise BeliefError(f"a named set must have at least one member, has {size}")
    return Mass(1.0 / size)


def evidence_order(evidence: Evidence) -> tuple[str, str, tuple[int, int], float, float, float]:
    """Sort key of evidence: witness, record, span, then the numbers."""
    mass = evidence.mass
    span = evidence.span if evidence.span is not None else (-1, -1)
    return (evidence.witness, evidence.record.text, span, mass.true, mass.false, evidence.reliability)


def edge_order(edge: Edge) -> tuple[str, str, str, float, float]:
    """Sort key of edges: stable names, then the period; an open start comes first."""
    start = float("-inf") if edge.valid_from_ms is None else float(edge.valid_from_ms)
    end = float("inf") if edge.valid_to_ms is None else float(edge.valid_to_ms)
    return (edge.tail.name, edge.relation, edge.head.name, start, end)


def _pool(pieces: list[Evidence]) -> Combined:
    """What one witness says, all its records together: saturated at its reliability.

    Every piece is discounted before pooling, so that a record which is sure of itself can
    be outvoted by the same witness's other records (a sure mass of 1 never could). What is
    committed after pooling, true + false, is scaled back to the reliability where repeats
    carried it above. The witness's reliability is the highest stated with its pieces.
    """
    pooled = combine_all(discount(piece.mass, piece.reliability) for piece in pieces)
    ceiling = max(piece.reliability for piece in pieces)
    committed = pooled.mass.true + pooled.mass.false
    if committed <= ceiling:
        return pooled
    scale = ceiling / committed
    return Combined(Mass(pooled.mass.true * scale, pooled.mass.false * scale), pooled.conflict)


def fold(edge: Edge, evidence: Iterable[Evidence], *, marked_wrong: bool = False) -> Link:
    """Combine everything stored about one edge into what the walk may cross.

    Parameters
    ----------
    edge : Edge
    evidence : iterable of Evidence
        In any order; the same piece given twice counts once. Empty means unknown.
    marked_wrong : bool
        The owner's wall. It changes no number, so lifting it restores the same bytes.

    Returns
    -------
    Link
        Belief, plausibility, and K over all pieces, with the evidence in canonical order.

    Raises
    ------
    BeliefError
        Evidence of another edge, a reliability outside [0, 1], or total conflict.
    """
    ordered = tuple(sorted(set(evidence), key=evidence_order))
    by_witness: dict[str, list[Evidence]] = {}
    for piece in ordered:
        if piece.edge != edge.ref:
            raise BeliefError(f"evidence must be about the edge it is folded into, {edge.ref}; is about {piece.edge}")
        by_witness.setdefault(piece.witness, []).append(piece)
    try:
        pooled = [_pool(pieces) for pieces in by_witness.values()]
        between = combine_all(each.mass for each in pooled)
    except BeliefError as error:
        raise BeliefError(f"{edge.ref}: {error}") from error
    agreement = 1.0 - between.conflict
    for each in pooled:
        agreement *= 1.0 - each.conflict
    return Link(
        edge=edge,
        belief=between.mass.true,
        plausibility=1.0 - between.mass.false,
        conflict=1.0 - agreement,
        refuted=is_refuted(between.mass),
        evidence=ordered,
        marked_wrong=marked_wrong,
    )


def fold_all(
    edges: Iterable[Edge],
    evidence: Mapping[RecordRef, Iterable[Evidence]],
    walls: frozenset[RecordRef] = frozenset(),
) -> tuple[Link, ...]:
    """Fold every edge, in the order of stable names.

    ``evidence`` is keyed by the edge's reference; an edge without any is unknown, belief 0.
    ``walls`` are the edges the owner marked wrong.
    """
    return tuple(
        fold(edge, evidence.get(edge.ref, ()), marked_wrong=edge.ref in walls) for edge in sorted(edges, key=edge_order)
    )
