"""Dempster-Shafer: the vectors of cases/belief.md, a power-set oracle, and properties."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BeliefError
from gateway.graph.adjacency import canonical_dump
from gateway.graph.belief import (
    DISAGREEMENT,
    VACUOUS,
    combine,
    combine_all,
    discount,
    fold,
    fold_all,
    is_refuted,
    member_mass,
    pignistic,
)
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex

ATE = Edge(Vertex("pet:max"), "ate", Vertex("food:acme"), 1_751_673_600_000, None)


def heard(record, mass, witness, reliability, edge=ATE, *, span=None):
    return Evidence(edge.ref, RecordRef(record), mass, witness, reliability, span)


@st.composite
def masses(draw, most=1.0):
    true = draw(st.floats(0.0, most))
    return Mass(true, draw(st.floats(0.0, 1.0)) * (most - true))


def powerset_dempster(*given_masses):
    """The rule as Shafer states it, over the subsets of {t, f}, without our closed form."""
    t, f, both = frozenset("t"), frozenset("f"), frozenset("tf")
    total = {both: 1.0}
    for mass in given_masses:
        other = {t: mass.true, f: mass.false, both: 1.0 - mass.true - mass.false}
        joint = {}
        for (a, x), (b, y) in itertools.product(total.items(), other.items()):
            joint[a & b] = joint.get(a & b, 0.0) + x * y
        total = joint  # unnormalised: the empty set carries K to the end
    conflict = total.pop(frozenset(), 0.0)
    return total.get(t, 0.0) / (1 - conflict), total.get(f, 0.0) / (1 - conflict), conflict


@pytest.mark.parametrize(
    ("given_masses", "true", "false", "ignorance", "conflict"),
    [
        ((Mass(0.6), Mass(0.7)), 22 / 25, 0, 3 / 25, 0),
        ((Mass(0.8), Mass(0, 0.5)), 2 / 3, 1 / 6, 1 / 6, 0.4),
        ((Mass(0.9), Mass(0, 0.9)), 9 / 19, 9 / 19, 1 / 19, 0.81),
        ((Mass(0.99), Mass(0, 0.99)), 99 / 199, 99 / 199, 1 / 199, 0.9801),
        ((Mass(0.6, 0.1), Mass(0.5, 0.2)), 63 / 83, 11 / 83, 9 / 83, 0.17),
        ((Mass(0.7, 0.1), Mass(0.2, 0.6)), 4 / 7, 5 / 14, 1 / 14, 0.44),
        ((Mass(0.6),) * 5, 3093 / 3125, 0, 32 / 3125, 0),
        ((Mass(0.6), Mass(0.6), Mass(0, 0.6)), 21 / 31, 6 / 31, 4 / 31, 0.504),
        ((discount(Mass(0.95), 0.9), discount(Mass(0, 0.6), 0.7)), 171 / 221, 21 / 221, 29 / 221, 0.3591),
    ],
)
def test_every_vector_of_the_case_file_holds_to_1e_12(given_masses, true, false, ignorance, conflict):
    for order in itertools.permutations(given_masses[:4]):
        got = combine_all((*order, *given_masses[4:]))
        assert got.mass.true == pytest.approx(true, abs=1e-12)
        assert got.mass.false == pytest.approx(false, abs=1e-12)
        assert got.mass.ignorance == pytest.approx(ignorance, abs=1e-12)
        assert got.conflict == pytest.approx(conflict, abs=1e-12)


def test_the_case_file_holds_no_vector_that_is_not_tested_above(shared_dir):
    rows = re.findall(r"^\| (?!input|---)(.*?) \|", (shared_dir / "cases" / "belief.md").read_text(), re.MULTILINE)
    assert len(rows) == 10  # nine above and total conflict below


def test_the_pignistic_value_of_the_case_file_holds():
    assert pignistic(combine(Mass(0.6, 0.1), Mass(0.5, 0.2)).mass) == pytest.approx(0.813253, abs=5e-7)


def test_total_conflict_is_an_error_that_names_k_and_the_edge():
    with pytest.raises(BeliefError, match="K = 1"):
        combine(Mass(1.0), Mass(0.0, 1.0))
    evidence = [heard("note:a", Mass(1.0), "a", 1.0), heard("note:b", Mass(0.0, 1.0), "b", 1.0)]
    with pytest.raises(BeliefError, match=r"edge:pet:max\|ate\|food:acme.*K = 1"):
        fold(ATE, evidence)


@given(st.lists(masses(0.999), max_size=5))
def test_the_closed_form_is_the_power_set_rule(many):
    got = combine_all(many)
    true, false, conflict = powerset_dempster(*many)
    assert got.mass.true == pytest.approx(true, abs=1e-9)
    assert got.mass.false == pytest.approx(false, abs=1e-9)
    assert got.conflict == pytest.approx(conflict, abs=1e-12)


@given(masses(0.999), masses(0.999), masses(0.999))
def test_the_rule_is_commutative_and_associative_and_ignorance_is_neutral(a, b, c):
    assert combine(a, b).mass.true == pytest.approx(combine(b, a).mass.true, abs=1e-12)
    left, right = combine(combine(a, b).mass, c).mass, combine(a, combine(b, c).mass).mass
    assert left.true == pytest.approx(right.true, abs=1e-9)
    assert left.false == pytest.approx(right.false, abs=1e-9)
    alone = combine(a, VACUOUS)
    assert alone.conflict == 0.0
    assert (alone.mass.true, alone.mass.false) == pytest.approx((a.true, a.false), abs=1e-12)


@given(masses(0.999), masses(0.999))
def test_belief_never_exceeds_betp_nor_betp_plausibility_and_masses_sum_to_one(a, b):
    mass = combine(a, b).mass
    assert mass.true <= pignistic(mass) + 1e-12
    assert pignistic(mass) <= 1.0 - mass.false + 1e-12
    assert mass.true + mass.false + mass.ignorance == pytest.approx(1.0, abs=1e-12)


@given(masses(), st.floats(0, 1), st.floats(0, 1))
def test_discounting_is_monotone_in_the_reliability(mass, one, other):
    low, high = sorted((one, other))
    assert discount(mass, low).true <= discount(mass, high).true
    assert discount(mass, low).ignorance >= discount(mass, high).ignorance - 1e-15
    assert discount(mass, 1.0) == mass
    assert discount(mass, 0.0) == VACUOUS


@pytest.mark.parametrize("reliability", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_reliability_outside_zero_to_one_is_refused_with_its_value(reliability):
    with pytest.raises(BeliefError, match=re.escape(repr(reliability))):
        discount(Mass(0.5), reliability)


@given(masses(0.99), st.floats(0, 0.99))
def test_more_support_never_lowers_belief(mass, support):
    assert combine(mass, Mass(support)).mass.true >= mass.true - 1e-12


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40), st.floats(0.05, 0.95))
def test_one_witness_however_often_heard_never_passes_its_reliability(supports, reliability):
    beliefs = [
        fold(
            ATE, [heard(f"event:bowl-max/3/{i}", Mass(s), "bowl-max", reliability) for i, s in enumerate(supports[:k])]
        ).belief
        for k in range(1, len(supports) + 1)
    ]
    assert all(belief <= reliability + 1e-12 for belief in beliefs)
    assert all(later >= earlier - 1e-12 for earlier, later in itertools.pairwise(beliefs))


def test_a_thousand_meals_of_one_bowl_are_one_witness_and_a_receipt_is_a_second():
    bowl = [heard(f"event:bowl-max/3/{i}", Mass(1.0), "bowl-max", 0.95) for i in range(1000)]
    assert fold(ATE, bowl).belief == pytest.approx(0.95, abs=1e-12)
    receipt = heard("log:receipt-1", Mass(1.0), "purchase", 0.8)
    assert fold(ATE, [*bowl, receipt]).belief == pytest.approx(1 - 0.05 * 0.2, abs=1e-12)


def test_a_witness_that_contradicts_itself_keeps_its_conflict_and_is_not_an_error():
    link = fold(ATE, [heard("log:1", Mass(1.0), "owner", 0.85), heard("log:2", Mass(0, 1.0), "owner", 0.85)])
    assert link.conflict == pytest.approx(0.85**2, abs=1e-12)
    assert link.conflict > DISAGREEMENT
    assert link.belief == pytest.approx(1 - link.plausibility, abs=1e-12)
    assert not link.refuted


def test_conflict_between_and_within_witnesses_adds_up_as_lost_agreement():
    inner = [heard("log:1", Mass(0.5), "owner", 1.0), heard("log:2", Mass(0, 0.5), "owner", 1.0)]
    pooled = combine(Mass(0.5), Mass(0, 0.5))
    between = combine(pooled.mass, Mass(0.4)).conflict
    link = fold(ATE, [*inner, heard("note:1", Mass(0.4), "vet", 1.0)])
    assert link.conflict == pytest.approx(1 - (1 - pooled.conflict) * (1 - between), abs=1e-12)


@pytest.mark.parametrize(
    ("mass", "refuted"),
    [
        (Mass(0.0, 0.51), True),
        (Mass(0.0, 0.5), False),
        (VACUOUS, False),
        (Mass(0.49, 0.51), True),
        (Mass(0.45, 0.45), False),
    ],
)
def test_refuted_needs_falsehood_above_one_half_and_above_truth(mass, refuted):
    assert is_refuted(mass) is refuted
    assert fold(ATE, [heard("note:1", mass, "vet", 1.0)]).refuted is refuted


def test_an_edge_without_evidence_is_unknown_and_not_refuted():
    link = fold(ATE, [])
    assert (link.belief, link.plausibility, link.conflict, link.refuted) == (0.0, 1.0, 0.0, False)


def test_a_named_set_shares_the_reliability_among_its_members():
    may = Edge(Vertex("food:acme"), "may_contain", Vertex("species:chicken"))
    link = fold(may, [heard("label:1@aa#0-12", member_mass(4), "label:1", 0.95, may, span=(0, 12))])
    assert link.belief == pytest.approx(0.95 / 4, abs=1e-12)
    assert link.plausibility == 1.0
    assert link.evidence[0].span == (0, 12)
    with pytest.raises(BeliefError, match="at least one member, has 0"):
        member_mass(0)


def test_the_owners_wall_moves_no_mass_and_its_undo_restores_the_same_bytes():
    evidence = [heard("event:bowl-max/3/1", Mass(1.0), "bowl-max", 0.95), heard("log:r", Mass(1.0), "purchase", 0.8)]
    before = canonical_dump([fold(ATE, evidence)])
    walled = fold(ATE, evidence, marked_wrong=True)
    assert walled.marked_wrong
    assert not walled.refuted
    assert walled.belief == fold(ATE, evidence).belief
    assert canonical_dump([walled]) != before
    assert canonical_dump([fold(ATE, evidence)]) == before


def test_evidence_of_another_edge_is_refused():
    other = Edge(Vertex("pet:bella"), "ate", Vertex("food:acme"))
    with pytest.raises(BeliefError, match="pet:bella"):
        fold(ATE, [heard("event:b/1/1", Mass(0.5), "bowl", 0.9, other)])


def household(seed):
    """Evidence of five sources about a dozen edges, drawn once."""
    rng = random.Random(seed)
    edges = [Edge(Vertex(f"food:f{i % 4}"), "contains", Vertex(f"species:s{i % 3}"), i // 6 or None) for i in range(12)]
    evidence = [
        heard(
            f"note:{source}-{i}", Mass(rng.uniform(0, 0.5), rng.uniform(0, 0.4)), source, rng.choice((0.6, 0.9)), edge
        )
        for i, edge in enumerate(edges)
        for source in ("label", "vet", "guide", "bowl", "owner")
        if rng.random() < 0.7
    ]
    return edges, evidence


def dump_of(edges, evidence):
    by_edge = {}
    for piece in evidence:
        by_edge.setdefault(piece.edge, []).append(piece)
    return canonical_dump(fold_all(edges, by_edge))


def test_any_order_of_the_evidence_gives_the_same_bytes():
    edges, evidence = household(1)
    wanted = dump_of(edges, evidence)
    rng = random.Random(2)
    for _ in range(20):
        rng.shuffle(edges)
        rng.shuffle(evidence)
        assert dump_of(edges, evidence + evidence[:3]) == wanted


def test_deleting_any_subset_of_sources_leaves_what_a_rebuild_without_them_gives():
    edges, evidence = household(3)
    sources = sorted({piece.witness for piece in evidence})
    for size in range(len(sources) + 1):
        for gone in itertools.combinations(sources, size):
            left = [piece for piece in evidence if piece.witness not in gone]
            rebuilt = dump_of(sorted(edges, key=lambda e: e.ref.text), list(reversed(left)))
            assert dump_of(edges, left) == rebuilt
            assert not any(f'"{source}"'.encode() in rebuilt for source in gone)


def test_two_periods_of_one_fact_stay_two_edges():
    early = Edge(ATE.tail, "ate", ATE.head, 1, 2)
    late = Edge(ATE.tail, "ate", ATE.head, 5, None)
    links = fold_all(
        [late, early], {early.ref: [heard("log:1", Mass(0.5), "owner", 0.8, early)]}, frozenset({late.ref})
    )
    assert [link.edge for link in links] == [early, late]
    assert [link.belief for link in links] == [0.4, 0.0]
    assert [link.marked_wrong for link in links] == [False, True]
