"""The adjacency arrays and the walk: oracles, walls, certificates, bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import BeliefError, GraphError, NotConverged
from gateway.graph.adjacency import (
    BELIEF_STEPS,
    Names,
    build,
    from_arrays,
    in_view,
)
from gateway.graph.changes import updated
from gateway.graph.communities import communities, communities_within
from gateway.graph.packed import Packed, pack, unpack
from gateway.graph.system import make_system
from gateway.graph.walk import Ranking, walk
from gateway.model import Edge, Interval, Link, RecordRef, Vertex


def link(tail, head, belief, *, relation="ate", start=None, refuted=False, wrong=False):
    edge = Edge(Vertex(tail), relation, Vertex(head), start)
    return Link(edge, belief, 1.0, 0.0, refuted, (), wrong)


def everything(_edge):
    return True


def names_of(count):
    return Names.of(f"v:{i:07d}" for i in range(count))


HOUSE = (
    link("pet:max", "food:acme", 0.97),
    link("food:acme", "species:chicken", 0.9, relation="contains"),
    link("species:chicken", "condition:food_allergy", 0.6, relation="may_cause[dog]"),
    link("condition:food_allergy", "sign:itch", 0.7, relation="has_sign[dog]"),
    link("pet:max", "breed:retriever", 1.0, relation="of_breed"),
    link("breed:retriever", "condition:food_allergy", 0.4, relation="prone_to[dog]"),
    link("pet:max", "series:max.scratching", 1.0, relation="has_series"),
    link("series:max.scratching", "sign:itch", 0.95, relation="indicates"),
    link("pet:max", "species:beef", 0.2, relation="ate", refuted=True),
    link("species:beef", "condition:food_allergy", 0.5, relation="may_cause[dog]"),
)


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 14))
    m = draw(st.integers(0, 30)) if n > 1 else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tails = rng.integers(0, n, m)
    heads = (tails + rng.integers(1, max(2, n), m)) % n
    belief = rng.random(m) * (rng.random(m) < 0.8)
    keep = tails != heads
    seeds = frozenset(rng.choice(n, size=draw(st.integers(1, min(3, n))), replace=False).tolist())
    return from_arrays(names_of(n), tails[keep], heads[keep], belief[keep]), seeds


def dense_walk(graph, seeds, restart, hub):
    """The equation of the contract as it stands, by a dense solve."""
    n, pairs = graph.vertex_count, graph.pairs()
    w = np.zeros((n, n))
    w[pairs.tails, pairs.heads] = w[pairs.heads, pairs.tails] = pairs.belief
    strength = w.sum(1)
    damp = np.where(strength > 0, np.where(strength > 0, strength, 1.0) ** -hub, 0.0)
    h = damp[:, None] * w * damp
    d = h.sum(0)
    p = np.where(d > 0, h / np.where(d > 0, d, 1.0), np.eye(n))
    s = np.zeros(n)
    s[sorted(seeds)] = 1 / len(seeds)
    return np.linalg.solve(np.eye(n) - (1 - restart) * p, restart * s)


@given(graphs(), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.05, 0.15, 0.5]))
@settings(max_examples=150, deadline=None)
def test_the_walk_is_the_dense_solution_within_its_own_certificate(made, hub, restart):
    graph, seeds = made
    ranking = walk(graph, seeds, restart=restart, hub_exponent=hub)
    off = np.abs(ranking.mass - dense_walk(graph, seeds, restart, hub)).sum()
    assert off <= ranking.error + 1e-12
    assert ranking.error <= 1e-9
    assert ranking.mass.sum() == pytest.approx(1.0, abs=2e-9)


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_without_hub_damping_the_walk_is_igraphs_pagerank_with_refuted_edges_deleted(made):
    graph, seeds = made
    pairs = graph.pairs()
    seeds -= walk(graph, seeds).walled_in  # igraph spreads a stuck walk over everything
    if not seeds:
        return
    peer = igraph.Graph(n=graph.vertex_count, edges=list(zip(pairs.tails.tolist(), pairs.heads.tolist(), strict=True)))
    reset = [1.0 if v in seeds else 0.0 for v in range(graph.vertex_count)]
    wanted = peer.personalized_pagerank(reset=reset, damping=0.85, weights=pairs.belief.tolist(), directed=False)
    assert walk(graph, seeds, hub_exponent=0.0).mass == pytest.approx(wanted, abs=1e-7)


def test_a_refuted_edge_carries_exactly_no_mass():
    graph = build(HOUSE, everything)
    beef, allergy = graph.id_of("species:beef"), graph.id_of("condition:food_allergy")
    assert graph.entry_between(graph.id_of("pet:max"), beef) is None
    only = build([one for one in HOUSE if one.edge.tail.name != "species:beef"], everything)
    ranking = walk(only, frozenset({only.id_of("pet:max")}))
    assert ranking.mass[only.id_of("species:beef")] == 0.0
    assert graph.entry_between(beef, allergy) is not None


@pytest.mark.parametrize(
    "wall", [{"belief": 0.0}, {"refuted": True}, {"marked_wrong": True}], ids=["unknown", "refuted", "marked wrong"]
)
def test_a_wall_of_any_kind_is_absent_from_the_matrix(wall):
    chain = [dataclasses.replace(link("a:a", "b:b", 0.9), **wall), link("b:b", "c:c", 0.9)]
    graph = build(chain, everything)
    assert graph.pair_count == 1
    mass = walk(graph, frozenset({graph.id_of("a:a")})).mass
    assert mass.tolist() == [1.0, 0.0, 0.0]


def test_the_household_view_decides_by_relation_what_the_walk_may_cross():
    links = [link("pet:max", "species:beef", 1.0, relation="tolerates"), link("pet:max", "food:acme", 1.0)]
    graph = build(links, lambda edge: edge.relation != "tolerates")
    mass = walk(graph, frozenset({graph.id_of("pet:max")})).mass
    assert mass[graph.id_of("species:beef")] == 0.0
    assert mass[graph.id_of("food:acme")] > 0.3


def test_parallel_periods_count_once_with_the_highest_belief():
    periods = [link("pet:max", "food:acme", belief, start=start) for start, belief in ((1, 0.5), (2, 0.8), (3, 0.8))]
    graph = build([*periods, link("pet:max", "food:other", 0.8)], everything)
    assert graph.pair_count == 2
    mass = walk(graph, frozenset({graph.id_of("pet:max")})).mass
    assert mass[graph.id_of("food:acme")] == pytest.approx(mass[graph.id_of("food:other")], abs=1e-12)
    entry = graph.entry_of(periods[1].edge.ref)
    assert graph.edges[entry] == periods[1].edge.ref  # the first of the most believed
    assert graph.entry_of(periods[0].edge.ref) == graph.entry_of(periods[2].edge.ref) == entry


def test_an_edge_that_is_walled_is_not_found_though_another_period_is_live():
    live, walled = link("pet:max", "food:acme", 0.9, start=1), link("pet:max", "food:acme", 0.9, start=2, wrong=True)
    graph = build([live, walled], everything)
    assert graph.entry_of(live.edge.ref) == 0
    assert graph.entry_of(walled.edge.ref) is None
    with pytest.raises(GraphError, match="day:max"):
        graph.entry_of(RecordRef("day:max.scratching/2026-07-08"))


def test_walled_in_seeds_keep_their_mass_and_are_named():
    graph = build([link("a:a", "b:b", 0.9), link("c:c", "d:d", 0.9, refuted=True)], everything)
    a, c = graph.id_of("a:a"), graph.id_of("c:c")
    ranking = walk(graph, frozenset({a, c}))
    assert ranking.walled_in == {c}
    assert ranking.mass[c] == 0.5
    assert walk(graph, frozenset({c})).mass[c] == 1.0


def test_an_empty_graph_gives_an_empty_ranking_and_a_seed_in_it_an_error():
    graph = build([], everything)
    ranking = walk(graph, frozenset())
    assert (ranking.mass.size, ranking.top(5), ranking.mass_at(40)) == (0, (), 0.0)
    with pytest.raises(GraphError, match="is 0"):
        walk(graph, frozenset({0}))


def test_what_no_seed_reaches_has_exactly_no_mass():
    graph = build([link("a:a", "b:b", 0.9), link("c:c", "d:d", 0.9)], everything)
    ranking = walk(graph, frozenset({graph.id_of("a:a")}))
    assert ranking.mass[graph.id_of("c:c")] == ranking.mass[graph.id_of("d:d")] == 0.0
    assert len(ranking.top(4)) == 2  # a vertex without mass is in no top


def test_a_pet_with_fifty_thousand_neighbours_is_walked_to_its_certificate():
    n = 50_000
    graph = from_arrays(names_of(n + 1), np.zeros(n, dtype=int), np.arange(1, n + 1), np.full(n, 0.9))
    ranking = walk(graph, frozenset({0}))
    assert ranking.error <= 1e-9
    # a star: pi_0 = r + (1 - r)(1 - pi_0), the rest shared alike
    assert ranking.mass[0] == pytest.approx(1 / 1.85, abs=1e-9)
    assert np.ptp(ranking.mass[1:]) <= 1e-15


@pytest.mark.parametrize("belief", [-0.1, 1.5, float("nan"), float("inf")])
def test_a_belief_outside_zero_to_one_is_refused_naming_edge_and_value(belief):
    with pytest.raises(BeliefError, match=rf"{belief!r}.*edge:a:a\|ate\|b:b"):
        build([link("a:a", "b:b", belief)], everything)
    with pytest.raises(BeliefError, match=rf"{belief!r}.*edge 0 \(0 to 1\)"):
        from_arrays(names_of(2), np.array([0]), np.array([1]), np.array([belief]))


def test_an_edge_to_a_vertex_that_is_gone_is_refused_by_name():
    with pytest.raises(GraphError, match=r"edge:a:a\|ate\|b:b.* needs b:b"):
        build([link("a:a", "b:b", 0.5)], everything, vertices=[Vertex("a:a")])
    with pytest.raises(GraphError, match=r"edge 0 \(0 to 7\)"):
        from_arrays(names_of(2), np.array([0]), np.array([7]), np.array([0.5]))


def test_an_edge_from_a_vertex_to_itself_is_refused():
    with pytest.raises(GraphError, match=r"a:a\|ate\|a:a"):
        build([link("a:a", "a:a", 0.5)], everything)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"restart": 0.0}, "restart"),
        ({"restart": 1.0}, "restart"),
        ({"restart": float("nan")}, "restart"),
        ({"hub_exponent": -0.5}, "hub exponent"),
        ({"tol": 0.0}, "tol"),
        ({"seeds": frozenset()}, "at least one"),
        ({"seeds": frozenset({99})}, "is 99"),
        ({"seeds": frozenset({-1})}, "is -1"),
        ({"seeds": {0: 0.7}}, "frozenset of vertex ids, are a dict"),
        ({"seeds": [0, 1]}, "are a list"),
    ],
)
def test_what_is_not_a_walk_is_refused_with_its_value(wrong, message):
    graph = build(HOUSE, everything)
    seeds = wrong.pop("seeds", frozenset({0}))
    with pytest.raises(GraphError, match=message):
        walk(graph, seeds, **wrong)


def test_a_tolerance_that_float64_cannot_prove_is_an_error_with_its_numbers():
    graph = build(HOUSE, everything)
    with pytest.raises(NotConverged) as raised:
        walk(graph, frozenset({0, 3}), tol=1e-30)
    assert raised.value.tol == 1e-30
    assert raised.value.residual > 1e-30
    assert raised.value.iterations > 0


def test_only_walk_makes_a_ranking_and_nobody_changes_one():
    with pytest.raises(GraphError, match="must come from walk"):
        Ranking(np.ones(1), frozenset({0}), frozenset(), 0.15, 0.5, 0.0, 0, 0)
    ranking = walk(build(HOUSE, everything), frozenset({0}))
    with pytest.raises(ValueError, match="read-only"):
        ranking.mass[0] = 1.0
    with pytest.raises(GraphError):
        dataclasses.replace(ranking, mass=np.ones(3))


def test_the_arrays_of_a_graph_are_read_only():
    graph = build(HOUSE, everything)
    for array in (graph.order, graph.place, graph.indptr, graph.columns, graph.belief, graph.names.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_top_orders_by_mass_and_equals_by_name():
    graph = build([link("pet:max", f"food:{c}", 0.5) for c in "dbca"], everything)
    ranking = walk(graph, frozenset({graph.id_of("pet:max")}))
    assert [graph.names[v] for v in ranking.top(3)] == ["pet:max", "food:a", "food:b"]
    assert ranking.mass_at(40) == ranking.mass[graph.id_of("food:d")]


@given(graphs(), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_a_certified_top_set_is_the_true_top_set(made, count):
    graph, seeds = made
    early = walk(graph, seeds, top=count)
    exact = dense_walk(graph, seeds, 0.15, 0.5)
    if early.certified_top and count < graph.vertex_count:
        inside = np.argsort(-early.mass, kind="stable")[:count]
        outside = np.setdiff1d(np.arange(graph.vertex_count), inside)
        assert exact[inside].min() > exact[outside].max()
    assert np.abs(early.mass - exact).sum() <= early.error + 1e-12


def eventful(events, hubs=60, seed=3):
    """A graph of events that each join three of a few hubs (some two, some one), as a home's do."""
    rng = np.random.default_rng(seed)
    ends = np.array([rng.choice(hubs, 3, replace=False) for _ in range(events)])
    tails = np.repeat(hubs + np.arange(events), 3)
    belief = rng.random(3 * events) * (rng.random(3 * events) < 0.95)
    return from_arrays(names_of(hubs + events), tails, ends.ravel(), belief)


def pagerank_of_igraph(graph, seeds):
    pairs = graph.pairs()
    peer = igraph.Graph(n=graph.vertex_count, edges=np.column_stack((pairs.tails, pairs.heads)))
    reset = [float(v in seeds) for v in range(graph.vertex_count)]
    return peer.personalized_pagerank(reset=reset, damping=0.85, weights=pairs.belief.tolist(), directed=False)


def test_a_walk_whose_events_are_folded_is_the_walk():
    graph = eventful(9000)
    assert make_system(graph, 0.0, 0.15).fold.vertices > 8192
    assert make_system(eventful(500), 0.0, 0.15).fold.vertices == 0
    changed = [  # rows in the midst of the folded ones grow, shrink and come to an end
        link("v:0000100", "v:0000001", 0.9),
        link("v:0000101", "v:0000102", 0.9),
        link("w:new", "v:0000003", 0.4),
    ]
    ends = graph.pairs()
    gone = [(graph.names[int(ends.tails[i])], graph.names[int(ends.heads[i])]) for i in range(40)]
    for one in (graph, updated(graph, changed, everything, pairs=gone)):
        for seeds in (frozenset({0, 5000}), frozenset({9059}), frozenset({100, 101})):
            ranking = walk(one, seeds, hub_exponent=0.0)
            assert np.abs(ranking.mass - pagerank_of_igraph(one, seeds)).sum() <= 1e-6
            assert ranking.error <= 1e-9


def test_vertices_without_a_pair_cost_a_walk_nothing_and_change_no_bit_of_it():
    tails, heads, belief = random_arrays(400, 1200)
    few = from_arrays(names_of(400), tails, heads, belief)
    many = from_arrays(names_of(5000), tails, heads, belief)
    assert len(make_system(many, 0.5, 0.15).lift) == len(make_system(few, 0.5, 0.15).lift)
    for seeds in (frozenset({0, 7}), frozenset({3, 399})):
        ours, theirs = walk(many, seeds), walk(few, seeds)
        assert ours.mass[:400].tobytes() == theirs.mass.tobytes()
        assert not ours.mass[400:].any()
    alone = walk(many, frozenset({0, 4999}))
    assert alone.walled_in == {4999}
    assert alone.mass[4999] == 0.5
    assert alone.mass[:400].sum() == pytest.approx(0.5, abs=1e-9)
    # one that lost its pairs stands among the others, and is as alone
    gone = [(few.names[int(t)], few.names[int(h)]) for t, h in zip(*few.pairs()[:2], strict=True) if 5 in (t, h)]
    lost = updated(few, [], everything, pairs=gone)
    assert walk(lost, frozenset({0, 5})).walled_in == {5}
    assert walk(lost, frozenset({0})).mass[5] == 0.0


def test_a_walk_over_more_reds_than_blas_adds_up_in_one_thread_is_the_walk():
    graph = from_arrays(names_of(30_000), *random_arrays(30_000, 90_000))
    assert graph.reds > 2 * 8192
    for seeds in (frozenset({0, 29_999}), frozenset({17})):
        ranking = walk(graph, seeds, hub_exponent=0.0)
        assert np.abs(ranking.mass - pagerank_of_igraph(graph, seeds)).sum() <= 1e-6
        assert ranking.error <= 1e-9


@given(graphs(), st.sampled_from([0.0, 0.5]))
@settings(max_examples=40, deadline=None)
def test_the_folded_system_is_the_system(made, hub):
    graph, _ = made
    plain, folded = make_system(graph, hub, 0.15), make_system(graph, hub, 0.15, fold_least=0)
    y = np.random.default_rng(graph.pair_count).random(len(plain.lift))
    out = [np.full(len(plain.lift), np.nan) for _ in range(2)]
    for system, into in zip((plain, folded), out, strict=True):
        product = system.product(y.copy(), into)
        product()
        once = into[: graph.reds].copy()
        product()  # what the first call left in the scratch changes nothing
        assert into[: graph.reds].tobytes() == once.tobytes()
    reds, scratch = graph.reds, np.full(len(plain.lift), np.nan)
    assert out[1][:reds] == pytest.approx(out[0][:reds], rel=1e-12, abs=1e-12)
    for system in (plain, folded):
        fresh = system.residual(np.zeros(reds), y.copy(), scratch)
        assert out[0][:reds] == pytest.approx(fresh, rel=1e-12, abs=1e-12)


@given(graphs(), st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=40, deadline=None)
def test_a_residual_is_divided_by_a_positive_definite_part_of_the_system(made, hub):
    graph, _ = made
    for fold_least in (0, 8192):
        system = make_system(graph, hub, 0.15, fold_least=fold_least, smooth_least=0, smooth_share=0)
        assert system.smoothed
        reds, full = graph.reds, len(system.lift)
        given, guessed = np.zeros(reds), np.empty(reds)
        guess, dense, exact = system.nearer(given, guessed), np.empty((reds, reds)), np.empty((reds, reds))
        for red in range(reds):
            given[:] = 0.0
            given[red] = 1.0
            guess()
            dense[:, red] = guessed
            out = np.empty(full)
            system.product(np.append(given, np.zeros(full - reds)), out)()
            exact[:, red] = -out[:reds]
        root = np.sqrt(system.near)
        assert dense == pytest.approx(dense.T, rel=1e-12, abs=1e-300)
        assert (np.linalg.eigvalsh(dense / np.outer(root, root)) > 0.0).all()
        # so a descent by it is one of conjugate gradient: what it leaves of the system is positive definite too
        assert (np.linalg.eigvalsh(exact * np.outer(root, root)) > 0.0).all()


def catalogue(products, parts=400, seed=4):
    """Products that each list some parts, and a little home of parts that know each other."""
    rng = np.random.default_rng(seed)
    lists = np.unique(
        np.stack((np.repeat(np.arange(products), 12), (parts * rng.random(12 * products) ** 2).astype(int))), axis=1
    )
    near = rng.integers(0, parts, (2, 600))
    near = near[:, near[0] != near[1]]
    tails, heads = np.append(parts + lists[0], near[0]), np.append(lists[1], near[1])
    return from_arrays(names_of(parts + products), tails, heads, rng.uniform(0.2, 1.0, len(tails)))


def test_a_walk_through_a_catalogue_is_the_walk():
    graph = catalogue(3000)
    assert make_system(graph, 0.0, 0.15).smoothed
    assert not make_system(catalogue(300), 0.0, 0.15).smoothed  # too few
    assert not make_system(from_arrays(names_of(20_000), *random_arrays(20_000, 60_000)), 0.0, 0.15).smoothed
    for seeds in (frozenset({0, 399}), frozenset({3399})):
        ranking = walk(graph, seeds, hub_exponent=0.0)
        assert np.abs(ranking.mass - pagerank_of_igraph(graph, seeds)).sum() <= 1e-6
        assert ranking.error <= 1e-9


def random_arrays(n, m, seed=5):
    rng = np.random.default_rng(seed)
    tails = rng.integers(0, n, m)
    return tails, (tails + 1 + rng.integers(0, n - 1, m)) % n, rng.random(m)


def test_a_certified_top_set_stops_earlier_than_the_tolerance_would():
    graph = from_arrays(names_of(2000), *random_arrays(2000, 6000))
    full, early = walk(graph, frozenset({3})), walk(graph, frozenset({3}), top=5)
    assert early.certified_top == 5
    assert early.iterations < full.iterations
    assert set(early.top(5)) == set(full.top(5))


def test_no_two_black_vertices_are_adjacent_and_every_pair_is_kept_once():
    tails, heads, belief = random_arrays(500, 2000)
    graph = from_arrays(names_of(500), tails, heads, belief)
    pairs = graph.pairs()
    place_of_both = np.maximum(graph.place[pairs.tails], graph.place[pairs.heads])
    assert (np.minimum(graph.place[pairs.tails], graph.place[pairs.heads]) < graph.reds).all()
    assert (place_of_both < graph.vertex_count).all()
    wanted = {}
    for tail, head, value in zip(tails.tolist(), heads.tolist(), belief.tolist(), strict=True):
        key = (min(tail, head), max(tail, head))
        wanted[key] = max(wanted.get(key, 0.0), round(value * BELIEF_STEPS) / BELIEF_STEPS)
    got = {
        (min(t, h), max(t, h)): b
        for t, h, b in zip(pairs.tails.tolist(), pairs.heads.tolist(), pairs.belief.tolist(), strict=True)
    }
    assert got == pytest.approx(wanted, abs=1e-12)
    for (one, other), value in got.items():
        entry = graph.entry_between(one, other)
        assert entry == graph.entry_between(other, one)
        assert graph.belief[entry] == value


def test_pairs_within_are_the_pairs_of_both_ends_inside():
    graph = from_arrays(names_of(60), *random_arrays(60, 200))
    inside = set(range(5, 35))
    pairs = graph.pairs()
    wanted = {(t, h) for t, h in zip(pairs.tails.tolist(), pairs.heads.tolist(), strict=True) if {t, h} <= inside}
    got = graph.pairs_within(inside)
    assert set(zip(got.tails.tolist(), got.heads.tolist(), strict=True)) == wanted
    assert (graph.belief[got.entries] == got.belief).all()
    with pytest.raises(GraphError, match="is 60"):
        graph.pairs_within([60])


def test_a_packed_graph_comes_back_bit_for_bit():
    for graph in (
        build(HOUSE, everything),
        build([], everything),
        from_arrays(names_of(300), *random_arrays(300, 900)),
    ):
        packed = pack(graph)
        back = unpack(packed, edges=graph.edges, parallels=graph.parallels)
        assert pack(back) == packed
        assert list(back.names) == list(graph.names)
        for name in ("order", "place", "indptr", "columns", "belief"):
            assert (getattr(back, name) == getattr(graph, name)).all()
        if graph.vertex_count:
            assert walk(back, frozenset({0})).mass.tobytes() == walk(graph, frozenset({0})).mass.tobytes()


def test_a_packed_edge_takes_at_most_thirteen_bytes():
    graph = from_arrays(names_of(20_000), *random_arrays(20_000, 100_000))
    packed = pack(graph)
    assert (len(packed.arrays) + len(packed.names)) / graph.pair_count <= 13


def test_a_belief_just_above_nothing_stays_an_edge_when_packed():
    graph = from_arrays(names_of(2), np.array([0]), np.array([1]), np.array([1e-12]))
    assert unpack(pack(graph)).belief.tolist() == [1 / BELIEF_STEPS]


def test_blobs_that_are_not_a_graph_are_refused():
    arrays, names = pack(build(HOUSE, everything))
    header = struct.calcsize("<4sIIIB15x")
    short_names = names[:-1]
    with pytest.raises(GraphError, match="begin with"):
        unpack(Packed(b"XXXX" + arrays[4:], names))
    with pytest.raises(GraphError, match="must have"):
        unpack(Packed(arrays[:-1], names))
    with pytest.raises(GraphError, match="complete"):
        unpack(Packed(arrays, short_names))
    with pytest.raises(GraphError, match="above 0"):
        unpack(Packed(arrays[:-2] + b"\0\0", names))
    with pytest.raises(GraphError, match="each of its"):
        unpack(Packed(arrays[:header] + arrays[header + 4 : header + 8] + arrays[header + 4 :], names))
    column = header + 8 * len(build(HOUSE, everything).names) + 4
    with pytest.raises(GraphError, match="red vertices"):
        unpack(Packed(arrays[:column] + b"\xff\xff" + arrays[column + 2 :], names))


def test_names_must_ascend_and_are_found_by_bisection():
    names = Names.of(["a:é", "a:ê", "b:x", "b:日本"])
    assert [names.find(name) for name in names] == [0, 1, 2, 3]
    assert names.find("b:missing") is None
    assert names[1:3] == ["a:ê", "b:x"]
    with pytest.raises(GraphError, match="ascend"):
        Names.of(["b:x", "a:x"])
    with pytest.raises(IndexError):
        names[4]


def test_an_edge_is_in_view_if_valid_at_any_time_of_the_window():
    edge = Edge(Vertex("a:a"), "ate", Vertex("b:b"), 10, 20)
    assert [in_view(edge, Interval(a, b)) for a, b in ((0, 10), (0, 11), (19, 30), (20, 30), (10, 10), (9, 9))] == [
        False, True, True, False, True, False,
    ]  # fmt: skip
    assert in_view(Edge(Vertex("a:a"), "ate", Vertex("b:b")), Interval(-5, -5))


def test_changed_links_replace_their_pairs_and_give_the_rebuilt_walk():
    changes = (
        link("pet:max", "food:acme", 0.97, wrong=True),
        link("pet:max", "food:new", 0.9),
        link("food:new", "species:chicken", 0.5, relation="may_contain"),
        link("species:chicken", "condition:food_allergy", 0.2, relation="may_cause[dog]"),
    )
    changed = {frozenset((one.edge.tail, one.edge.head)) for one in changes}
    rest = [one for one in HOUSE if frozenset((one.edge.tail, one.edge.head)) not in changed]
    graph, rebuilt = updated(build(HOUSE, everything), changes, everything), build([*rest, *changes], everything)
    assert list(graph.names) == list(rebuilt.names)
    assert sorted(map(str, graph.edges)) == sorted(map(str, rebuilt.edges))
    seeds = frozenset({graph.id_of("pet:max"), graph.id_of("sign:itch")})
    assert walk(graph, seeds).mass == pytest.approx(walk(rebuilt, seeds).mass, abs=1e-9)
    assert graph.entry_of(changes[0].edge.ref) is None
    for entry, ref in enumerate(graph.edges):
        assert graph.entry_of(ref) == entry


def test_any_insertion_order_and_twenty_runs_give_the_same_bytes():
    links = list(HOUSE) + [link("pet:max", f"product:p{i}", 0.3 + i / 100, start=i % 3) for i in range(40)]
    seen = set()
    rng = random.Random(1)
    for _ in range(20):
        rng.shuffle(links)
        graph = build(links, everything)
        ranking = walk(graph, frozenset({graph.id_of("pet:max"), graph.id_of("sign:itch")}))
        seen.add((pack(graph), tuple(map(str, graph.edges)), ranking.mass.tobytes(), ranking.top(20)))
    assert len(seen) == 1


HASHED = """
import hashlib, json, sys
from gateway.graph.adjacency import build
from gateway.graph.assemble import assemble
from gateway.graph.communities import communities, communities_within
from gateway.graph.packed import pack
from gateway.graph.walk import walk
from gateway.model import Chain, Edge, Link, Vertex
rows = json.load(sys.stdin)
links = {Link(Edge(Vertex(t), r, Vertex(h), s), b, 1.0, 0.0, False, ()) for t, r, h, s, b in rows}
graph = build(links, lambda edge: True)
seeds = frozenset({graph.id_of("pet:max"), graph.id_of("sign:itch")})
ranking = walk(graph, seeds)
subgraph = assemble(graph, ranking, seeds)
parts = (*pack(graph), ranking.mass.tobytes(), repr(subgraph).encode(), communities(graph).label.tobytes())
print(hashlib.sha256(b"|".join(parts)).hexdigest())
"""


def test_the_hash_seed_of_the_process_changes_no_byte():
    rng = random.Random(4)
    rows = [(o.edge.tail.name, o.edge.relation, o.edge.head.name, None, o.belief) for o in HOUSE if not o.refuted]
    rows += [("food:acme", "lists", f"ing:i{i}", None, rng.uniform(0.3, 1)) for i in range(30)]
    rows += [(f"ing:i{i}", "derived_from", f"species:s{i % 7}", None, rng.uniform(0.3, 1)) for i in range(30)]
    digests = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", HASHED], input=json.dumps(rows), capture_output=True, text=True, check=True,
            env=environment, cwd=Path(__file__).resolve().parents[1],
        )  # fmt: skip
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == len(hashlib.sha256().hexdigest())


def test_communities_are_connected_deterministic_and_as_good_as_leidens():
    club = igraph.Graph.Famous("Zachary")
    ends = np.array(club.get_edgelist())
    graph = from_arrays(names_of(club.vcount()), ends[:, 0], ends[:, 1], np.ones(len(ends)))
    found = communities(graph)
    assert found.modularity >= club.community_leiden(objective_function="modularity").modularity - 0.01
    assert found.modularity == pytest.approx(club.modularity(found.label.tolist()), abs=1e-12)
    for smallest in set(found.label.tolist()):
        members = found.members(smallest)
        assert min(members) == smallest
        assert club.induced_subgraph(members).is_connected()


def test_communities_never_join_what_only_a_refuted_edge_joins():
    found = communities(build([link("a:a", "b:b", 0.9), link("b:b", "c:c", 0.9, refuted=True)], everything))
    assert found.label.tolist() == [0, 0, 2]
    assert communities(build([], everything)).label.size == 0


def test_communities_within_are_those_of_that_part_as_a_graph_of_its_own():
    links = [link("a:1", "a:2", 0.9), link("a:2", "a:3", 0.9), link("a:3", "b:1", 0.1), link("b:1", "b:2", 0.8)]
    whole = build([*links, link("b:2", "c:1", 0.9), link("c:1", "a:1", 0.9)], everything)
    part = [whole.id_of(name) for name in ("a:1", "a:2", "a:3", "b:1", "b:2")]
    alone = build(links, everything)
    found = [sorted(whole.names[vertex] for vertex in group) for group in communities_within(whole, part)]
    assert found == [["a:1", "a:2", "a:3"], ["b:1", "b:2"]]
    label = communities(alone).label.tolist()
    assert found == [
        [alone.names[i] for i, one in enumerate(label) if one == smallest] for smallest in sorted(set(label))
    ]
    assert communities_within(whole, ()) == ()
