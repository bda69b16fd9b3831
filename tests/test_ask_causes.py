"""The typed, dated patterns: what may be offered as a cause, and what may not."""

from __future__ import annotations

import pytest

from gateway.ask.causes import DAY_MS, find_candidates, hypothesis
from gateway.ask.onfile import Given
from gateway.graph.belief import fold
from gateway.model import Edge, Evidence, Interval, Mass, RecordRef, Vertex

PET, SIGN = Vertex("pet:max"), Vertex("sign:itch")
ONSET_DAY = 100
ONSET = Interval(ONSET_DAY * DAY_MS, (ONSET_DAY + 1) * DAY_MS)
BELIEVED = Mass(0.9)
NOW = (ONSET_DAY + 6) * DAY_MS


def link(tail, relation, head, start_day=None, end_day=None, *, mass=BELIEVED, wrong=False):
    def at(day):
        return None if day is None else int(day * DAY_MS)

    edge = Edge(Vertex(tail), relation, Vertex(head), at(start_day), at(end_day))
    evidence = Evidence(edge.ref, RecordRef("log:x"), mass, "owner", 0.9)
    return fold(edge, (evidence,), marked_wrong=wrong)


def knowledge(host="dog"):
    return [
        link("species:chicken", f"may_cause[{host}]", "condition:food_allergy"),
        link("condition:food_allergy", f"has_sign[{host}]", "sign:itch"),
        link("med:flea_treatment", f"prevents[{host}]", "condition:flea_allergy"),
        link("condition:flea_allergy", f"has_sign[{host}]", "sign:itch"),
        link("med:steroid", f"side_effect[{host}]", "sign:itch"),
    ]


def food_switch(day=97, *, old=("species:fish",), new=("species:chicken",), relation="contains", **new_link):
    return [
        link("pet:max", "ate", "food:old", 20, day),
        link("pet:max", "ate", "food:new", day, None),
        *(link("food:old", "contains", species) for species in old),
        *(link("food:new", relation, species, **new_link) for species in new),
    ]


def search(links, **options):
    return find_candidates(Given(links), pet=PET, sign=SIGN, host="dog", onset=ONSET, now_ms=NOW, names={}, **options)


def causes(found):
    return [chain.cause.name for chain in found.chains]


def test_a_new_ingredient_linked_to_the_sign_is_a_candidate_with_its_whole_path():
    found = search([*food_switch(), *knowledge()])
    assert causes(found) == ["food:new"]
    assert [ref.key.split("|")[1] for ref in found.chains[0].links] == [
        "ate",
        "contains",
        "may_cause[dog]",
        "has_sign[dog]",
    ]
    assert found.chains[0].changed_ms == 97 * DAY_MS


def test_an_ingredient_of_both_foods_is_no_candidate_and_is_said_to_be_in_both():
    found = search([*food_switch(old=("species:chicken", "species:fish")), *knowledge()])
    assert causes(found) == []
    assert any("in both foods" in miss.reason for miss in found.near_misses)


def test_what_was_eaten_long_before_without_the_sign_is_not_new_when_it_comes_back():
    earlier = [link("pet:max", "ate", "food:first", 1, 20), link("food:first", "contains", "species:chicken")]
    assert causes(search([*earlier, *food_switch(), *knowledge()])) == []


@pytest.mark.parametrize("day", [104, 60])
def test_a_change_after_the_sign_began_or_long_before_is_no_candidate(day):
    found = search([*food_switch(day), *knowledge()])
    assert causes(found) == []


def test_a_change_after_the_sign_began_is_named_as_a_near_miss():
    found = search([*food_switch(104), *knowledge()])
    assert [miss.reason for miss in found.near_misses] == ["it changed after the sign began"]


def test_the_first_food_on_file_is_never_offered_when_it_is_long_standing():
    links = [link("pet:max", "ate", "food:only", 20), link("food:only", "contains", "species:chicken"), *knowledge()]
    found = search(links)
    assert causes(found) == []
    assert found.near_misses == ()
    assert next(slot for slot in found.slots if slot.name == "food").state == "unchanged"


def test_what_a_source_says_of_cats_is_not_followed_for_a_dog():
    assert causes(search([*food_switch(), *knowledge("cat")])) == []


def test_a_refuted_edge_breaks_the_chain():
    refuted = food_switch(mass=Mass(0.0, 0.9))
    assert causes(search([*refuted, *knowledge()])) == []


def test_an_edge_marked_wrong_takes_the_chain_away_and_keeps_it_to_be_named():
    found = search([*food_switch(wrong=True), *knowledge()])
    assert causes(found) == []
    assert [chain.cause.name for chain in found.walled] == ["food:new"]


def test_a_hypothesis_marked_wrong_takes_the_chain_away_too():
    wrong = frozenset({hypothesis(Vertex("food:new"), PET, SIGN)})
    found = search([*food_switch(), *knowledge()], wrong_hypotheses=wrong)
    assert causes(found) == []
    assert [chain.cause.name for chain in found.walled] == ["food:new"]


def test_a_new_food_that_only_may_contain_the_species_is_a_candidate_of_that_relation():
    found = search([*food_switch(relation="may_contain"), *knowledge()])
    assert [ref.key.split("|")[1] for ref in found.chains[0].links][1] == "may_contain"


def test_a_new_food_without_a_link_is_a_near_miss_that_says_so():
    found = search([*food_switch(new=("species:quinoa",)), *knowledge()])
    assert causes(found) == []
    assert "nothing new on its label" in found.near_misses[0].reason


def test_a_new_food_whose_label_is_not_stored_is_said_to_be_unknown():
    found = search([*food_switch(new=()), *knowledge()])
    assert "not on file" in found.near_misses[0].reason


def test_a_treatment_that_ran_out_is_a_candidate_and_a_renewed_one_is_not():
    lapsed = link("pet:max", "treated_with", "med:flea_treatment", 65, 95)
    assert causes(search([lapsed, *knowledge()])) == ["med:flea_treatment"]
    renewed = link("pet:max", "treated_with", "med:flea_treatment", 97, 127)
    assert causes(search([lapsed, renewed, *knowledge()])) == []


def test_a_treatment_still_running_is_no_candidate():
    running = link("pet:max", "treated_with", "med:flea_treatment", 90, 120)
    assert causes(search([running, *knowledge()])) == []


def test_a_medicine_begun_before_the_sign_with_that_side_effect_is_a_candidate():
    assert causes(search([link("pet:max", "takes", "med:steroid", 98), *knowledge()])) == ["med:steroid"]


def test_another_pets_food_change_is_never_this_pets_cause():
    links = [
        link("pet:luna", "ate", "food:old", 20, 97),
        link("pet:luna", "ate", "food:new", 97),
        link("food:new", "contains", "species:chicken"),
        *knowledge(),
    ]
    found = search(links)
    assert causes(found) == []
    assert next(slot for slot in found.slots if slot.name == "food").state == "not_recorded"


def test_a_device_that_began_before_the_change_is_an_instrument_candidate():
    links = [
        link("pet:max", "uses_device", "device:old", 0, 98),
        link("pet:max", "uses_device", "device:new", 98),
        link("pet:max", "has_series", "series:max.scratching"),
        link("device:new", "captures", "series:max.scratching"),
        link("series:max.scratching", "indicates", "sign:itch"),
    ]
    found = search(links)
    assert causes(found) == ["device:new"]
    assert found.chains[0].instrument


def test_a_stay_at_a_place_that_carries_an_agent_is_a_candidate():
    links = [
        link("pet:max", "was_at", "place:kennel", 96, 98),
        link("place:kennel", "has_agent", "agent:flea"),
        link("agent:flea", "may_cause[dog]", "condition:flea_allergy"),
        *knowledge(),
    ]
    assert causes(search(links)) == ["place:kennel"]


def test_a_visitor_without_a_link_is_a_near_miss():
    found = search([link("pet:max", "visited_by", "visitor:aunt", 98), *knowledge()])
    assert causes(found) == []
    assert found.near_misses[0].reason == "nothing in your sources links it to the sign"


def test_two_changes_are_both_found_in_the_order_they_happened():
    lapsed = link("pet:max", "treated_with", "med:flea_treatment", 65, 95)
    assert causes(search([*food_switch(), lapsed, *knowledge()])) == ["med:flea_treatment", "food:new"]


def test_the_order_of_the_links_does_not_matter():
    links = [*food_switch(), link("pet:max", "treated_with", "med:flea_treatment", 65, 95), *knowledge()]
    assert search(links) == search(links[::-1])


def test_a_stay_at_a_place_whose_kind_carries_an_agent_is_a_candidate_too():
    links = [
        link("pet:max", "was_at", "place:bellas", 96, 98),
        link("place:bellas", "of_kind", "place:boarding_kennel"),
        link("place:boarding_kennel", "has_agent", "agent:flea"),
        link("agent:flea", "may_cause[dog]", "condition:flea_allergy"),
        *knowledge(),
    ]
    found = search(links)
    assert causes(found) == ["place:bellas"]
    assert len(found.chains[0].links) == 5


def test_a_group_that_only_a_tolerated_member_brings_onto_a_label_is_tolerated_too():
    knowledge_of_fish = [
        link("group:fish", "may_cause[dog]", "condition:food_allergy"),
        link("condition:food_allergy", "has_sign[dog]", "sign:itch"),
        link("species:tuna", "is_a", "group:fish"),
        link("pet:max", "tolerates", "species:tuna", 10),
    ]
    switched = food_switch(new=("species:tuna", "group:fish"), old=("species:beef",))
    assert causes(search([*switched, *knowledge_of_fish])) == []
    whole = food_switch(new=("group:fish",), old=("species:beef",))
    assert causes(search([*whole, *knowledge_of_fish])) == ["food:new"], "fish of no named kind is not what was tried"
