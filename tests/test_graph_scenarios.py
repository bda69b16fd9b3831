"""What an answer names in homes of every kind: the whole cause, its rivals, and nothing else."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gateway.ask.causes import find_candidates
from gateway.ask.onfile import Given
from gateway.graph.belief import fold
from gateway.model import Edge, Evidence, Interval, Link, Mass, RecordRef, Vertex
from tests.scenario_answers import VARIANTS, Tally, answered, candidates
from tests.scenario_homes import DAY
from tests.scenario_kinds import KINDS
from tests.scenarios import drawn

SEEDS = (0, 1)
BROKEN_BY = {
    "time off": ("a_food_changed_weeks_before", "a_food_changed_after_it_began", "a_kennel_long_ago"),
    "polarity off": ("a_hydrolysed_form", "only_the_fat", "an_ingredient_that_is_tolerated"),
    "own pet off": ("only_the_other_pets_food_changed", "only_the_other_pet_was_at_the_kennel"),
    "own species off": ("what_only_the_books_on_the_other_species_say", "a_medicine_without_that_effect"),
    "refuted walls off": ("a_feeding_that_was_denied", "a_denied_link_of_the_books", "an_unsupported_edge"),
    "up-only off": ("a_sibling_in_its_group",),
    "novelty off": ("the_same_ingredient_in_both_foods", "the_same_food_opened_again", "a_prescription_renewed"),
    "candidates off: walk, tree": ("nothing_changed", "long_standing_food"),
    "candidates off: walk alone": ("nothing_changed", "long_standing_food"),
}


def test_there_are_kinds_enough_with_and_without_a_cause():
    without = [kind for kind in KINDS.values() if not kind.has_cause]
    assert len(KINDS) >= 100
    assert len(without) >= 50


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_true_causes_are_named_each_with_its_whole_chain(kind, seed):
    world = drawn(kind, seed)
    assert bool(world.truth) == KINDS[kind].has_cause
    named = answered(world)
    assert set(named.causes) == world.causes
    for _, chain in world.truth:
        assert named.edges.issuperset(chain)


@pytest.mark.parametrize(("variant", "kind"), [(v, k) for v, kinds in BROKEN_BY.items() for k in kinds])
def test_each_rule_keeps_out_what_would_be_named_without_it(variant, kind):
    without = [VARIANTS[variant](drawn(kind, seed)) for seed in SEEDS]
    assert any(set(named.causes) - drawn(kind, seed).causes for seed, named in zip(SEEDS, without, strict=True))


def test_a_tree_without_candidates_cuts_an_edge_of_nearly_every_chain():
    tally = Tally()
    for kind in ("new_ingredient", "a_stay_at_a_kennel", "protection_ran_out", "two_new_ingredients_in_one_food"):
        for seed in SEEDS:
            tally.add(drawn(kind, seed), VARIANTS["candidates off: walk, tree"](drawn(kind, seed)))
    assert tally.whole <= 0.1 * tally.chains


@pytest.mark.parametrize("kind", ["three_changes", "food_and_a_kennel"])
def test_the_order_of_the_records_does_not_matter(kind):
    world = drawn(kind, 1)
    shuffled = list(world.links)
    random.Random(1).shuffle(shuffled)
    assert answered(replace(world, links=tuple(shuffled))) == answered(world)


# --- what stands in a chain's way, and how it is said -------------------------------------------------

PET, SIGN = Vertex("pet:max"), Vertex("sign:itch")
ONSET = Interval(100 * DAY, 101 * DAY)
BOOKS = (
    ("species:chicken", "may_cause[dog]", "condition:food_allergy"),
    ("condition:food_allergy", "has_sign[dog]", "sign:itch"),
    ("place:kennel", "has_agent", "agent:flea"),
    ("agent:flea", "may_cause[dog]", "condition:flea_allergy"),
    ("condition:flea_allergy", "has_sign[dog]", "sign:itch"),
    ("device:new", "captures", "series:max.scratching"),
    ("series:max.scratching", "indicates", "sign:itch"),
    ("pet:max", "has_series", "series:max.scratching"),
)
SWITCH = (
    ("pet:max", "ate", "food:old", 20, 97),
    ("pet:max", "ate", "food:new", 97),
    ("food:old", "contains", "species:fish"),
    ("food:new", "contains", "species:chicken"),
)


def link(tail, relation, head, *days, belief=0.9):
    edge = Edge(Vertex(tail), relation, Vertex(head), *(day * DAY for day in days))
    return fold(edge, (Evidence(edge.ref, RecordRef("log:x"), Mass(belief), "owner", 1.0),))


def found(*said):
    links = [each if isinstance(each, Link) else link(*each) for each in (*BOOKS, *said)]
    return find_candidates(Given(links), pet=PET, sign=SIGN, host="dog", onset=ONSET, now_ms=106 * DAY, names={})


def reasons(candidates_found):
    return {(miss.what, miss.reason) for miss in candidates_found.near_misses}


def test_what_is_recorded_as_tolerated_is_a_near_miss_that_says_so():
    seen = found(*SWITCH, ("pet:max", "tolerates", "species:chicken", 50))
    assert seen.chains == ()
    assert reasons(seen) == {("food changed to new", "chicken is recorded as tolerated")}
    assert {ref.key.split("|")[1] for ref in seen.near_misses[0].refs} == {"tolerates", "ate"}


def test_what_was_ruled_out_is_a_near_miss_that_says_so():
    seen = found(*SWITCH, ("pet:max", "ruled_out", "condition:food_allergy", 50))
    assert seen.chains == ()
    assert reasons(seen) == {("food changed to new", "food allergy was ruled out")}


def test_a_condition_both_ruled_out_and_diagnosed_stays_a_candidate():
    disputed = (
        ("pet:max", "ruled_out", "condition:food_allergy", 50),
        ("pet:max", "diagnosed_with", "condition:food_allergy", 60),
    )
    assert len(found(*SWITCH, *disputed).chains) == 1


def test_what_was_suspected_and_then_ruled_out_is_ruled_out():
    suspected = link("pet:max", "diagnosed_with", "condition:food_allergy", 40, belief=0.3)
    settled = found(*SWITCH, suspected, ("pet:max", "ruled_out", "condition:food_allergy", 60))
    assert settled.chains == ()
    assert reasons(settled) == {("food changed to new", "food allergy was ruled out")}


def test_a_suspicion_after_the_denial_leaves_it_open():
    again = link("pet:max", "diagnosed_with", "condition:food_allergy", 70, belief=0.3)
    assert len(found(*SWITCH, again, ("pet:max", "ruled_out", "condition:food_allergy", 60)).chains) == 1


def test_an_earlier_diagnosis_as_sure_as_the_denial_leaves_it_open():
    sure = ("pet:max", "diagnosed_with", "condition:food_allergy", 40)
    assert len(found(*SWITCH, sure, ("pet:max", "ruled_out", "condition:food_allergy", 60)).chains) == 1


def test_a_doubtful_denial_does_not_take_a_candidate_away():
    doubtful = link("pet:max", "tolerates", "species:chicken", 50, belief=0.4)
    assert len(found(*SWITCH, doubtful).chains) == 1


def test_a_stay_that_began_too_long_ago_counts_by_the_day_it_was_left():
    (chain,) = found(("pet:max", "was_at", "place:kennel", 60, 95)).chains
    assert (chain.changed_ms, chain.change) == (95 * DAY, "left")


def test_a_stay_that_still_goes_on_is_no_change():
    assert found(("pet:max", "was_at", "place:kennel", 60)).chains == ()


def test_the_first_device_that_measures_a_series_replaced_none():
    bowl = (("pet:max", "uses_device", "device:bowl", 0), ("device:bowl", "captures", "series:max.intake"))
    tracker = ("pet:max", "uses_device", "device:new", 98)
    assert found(*bowl, tracker).chains == ()
    old = (("pet:max", "uses_device", "device:old", 0, 98), ("device:old", "captures", "series:max.scratching"))
    assert [chain.cause.name for chain in found(*bowl, *old, tracker).chains] == ["device:new"]


def test_a_world_holds_the_traps_of_its_own_pets_house():
    world = drawn("nothing_changed", 1)
    others = [one for one in world.links if one.edge.relation == "ate" and one.edge.tail != world.pet]
    assert len(world.links) > 800
    assert len(others) >= 6
    assert any("[cat]" in one.edge.relation for one in world.links)
    assert any(one.edge.relation == "prone_to[dog]" and one.belief > 0 for one in world.links)
    assert candidates(world).chains == ()
