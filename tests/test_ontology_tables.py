"""The packaged vocabulary: complete, consistent, read-only, and read once."""

from __future__ import annotations

import pytest

from gateway.model import Vertex
from gateway.ontology.load import load


def test_the_ontology_is_read_once_and_cannot_be_changed():
    assert load() is load()
    with pytest.raises(TypeError):
        load().reliability["bowl"] = 1.0


@pytest.mark.parametrize("relation", ["tolerates", "ruled_out", "base_rate[dog]", "hydrolysed_from", "fat_of"])
def test_negative_and_hearsay_relations_are_never_walkable(relation):
    assert not load().walkable(relation)


@pytest.mark.parametrize("relation", ["ate", "contains", "may_contain", "may_cause[dog]", "has_sign[cat]", "indicates"])
def test_the_causal_chain_is_walkable(relation):
    assert load().walkable(relation)


def test_the_schema_takes_an_edge_only_between_the_kinds_and_with_the_host_it_declares():
    ontology = load()
    max_, dog = Vertex("pet:max"), Vertex("species:dog")
    chicken, allergy = Vertex("species:chicken"), Vertex("condition:food_allergy")
    assert ontology.accepts(max_, "of_species", dog)
    assert not ontology.accepts(dog, "of_species", max_)
    assert ontology.accepts(chicken, "may_cause[dog]", allergy)
    assert not ontology.accepts(chicken, "may_cause", allergy)
    assert not ontology.accepts(max_, "of_species[dog]", dog)


def test_stored_events_and_documents_may_be_cited_but_never_crossed():
    ontology = load()
    for name in ("event:x", "day:x", "passage:x", "note:x", "label:x", "nonsense:x"):
        assert not ontology.crossable(Vertex(name))
    assert ontology.crossable(Vertex("food:acme"))


def test_every_property_names_the_device_that_would_have_known():
    ontology = load()
    for observed in ontology.properties.values():
        word = ontology.device_kinds[observed.captured_by[0]].word
        assert word.startswith(("a ", "your "))
    assert ontology.properties["water"].captured_by == ("water_bowl",)
    assert ontology.properties["heart_rate"].captured_by == ("hr_tracker",)


def test_series_nouns_are_the_fixed_ones():
    ontology = load()
    assert ontology.series_id("max", "scratch") == "max.scratching"
    assert ontology.series_id("max", "shake") == "max.shaking"
    assert ontology.series_id("max", "intake") == "max.intake"
    assert ontology.property_of_noun("scratching").id == "scratch"


def test_a_rise_and_a_fall_indicate_different_signs():
    ontology = load()
    assert ontology.sign_of("scratch", "up") == "sign:itch"
    assert ontology.sign_of("scratch", "down") is None
    assert (ontology.sign_of("intake", "up"), ontology.sign_of("intake", "down")) == (
        "sign:appetite_gain",
        "sign:appetite_loss",
    )


def test_itching_lists_the_rivals_a_vet_asks_first():
    rivals = {rival.id for rival in load().signs["itch"].rivals}
    assert {"fleas", "season", "ears", "skin_infection", "bath", "bedding"} <= rivals


def test_every_reliability_is_a_belief_below_certainty():
    assert all(0.0 < value < 1.0 for value in load().reliability.values())
