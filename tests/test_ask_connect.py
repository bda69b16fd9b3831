"""Rivals side by side: which stands first, and what may not change that."""

from __future__ import annotations

import random

import pytest

from gateway.ask.connect import connect
from gateway.ask.onfile import Given
from gateway.graph.belief import fold
from gateway.model import Chain, Edge, Evidence, Interval, Mass, RecordRef, Vertex
from tests.scenario_answers import scene

PET, SIGN, DAY = Vertex("pet:max"), Vertex("sign:itch"), 86_400_000
VIEW = Interval(0, 100 * DAY)
SHOWS = ("condition:food_allergy", "has_sign[dog]", "sign:itch", 0.9)


def link(tail, relation, head, belief):
    edge = Edge(Vertex(tail), relation, Vertex(head))
    return fold(edge, (Evidence(edge.ref, RecordRef("log:x"), Mass(belief), "owner", 1.0),))


def by_food(food, species, *, label=0.9, source=0.5):
    """A food with one ingredient that a source joins to the sign: its links, and its chain."""
    steps = (
        ("pet:max", "ate", f"food:{food}", 0.9),
        (f"food:{food}", "may_contain" if label < 0.5 else "contains", f"species:{species}", label),
        (f"species:{species}", "may_cause[dog]", "condition:food_allergy", source),
        SHOWS,
    )
    return given(steps, f"food:{food}")


def by_medicine(med, *, beside=()):
    """A medicine whose leaflet lists the sign, and others beside it."""
    steps = (("pet:max", "takes", f"med:{med}", 0.9), (f"med:{med}", "side_effect[dog]", "sign:itch", 0.5))
    links, chain = given(steps, f"med:{med}")
    return [*links, *(link(f"med:{med}", "side_effect[dog]", f"sign:{sign}", 0.5) for sign in beside)], chain


def given(steps, cause):
    links = [link(*step) for step in steps]
    refs = tuple(one.edge.ref for one in links)
    return links, Chain(Vertex(cause), cause.partition(":")[0], refs, 50 * DAY, "started")


def connected(*told, more=()):
    """The answer to some causes, the same whichever came first."""
    links = list({one.edge.ref: one for links, _ in told for one in (*links, *more)}.values())
    chains = [chain for _, chain in told]
    random.Random(len(links)).shuffle(chains)
    found = connect(scene(), Given(links), tuple(chains), pet=PET, sign=SIGN, view=VIEW)
    again = connect(scene(), Given(links[::-1]), tuple(chains[::-1]), pet=PET, sign=SIGN, view=VIEW)
    assert (found.chains, found.edges) == (again.chains, again.edges)
    return found


def order(*told, more=()):
    return [chains[0].cause.name for chains in connected(*told, more=more).by_cause()]


@pytest.mark.parametrize(("sure", "doubtful"), [("a", "b"), ("b", "a")])
def test_of_two_foods_the_one_that_better_sources_blame_stands_first(sure, doubtful):
    assert order(by_food(doubtful, "pork", source=0.2), by_food(sure, "beef", source=0.5))[0] == f"food:{sure}"


@pytest.mark.parametrize(("named", "perhaps"), [("a", "b"), ("b", "a")])
def test_a_food_that_names_it_stands_before_one_that_only_may_hold_it(named, perhaps):
    assert order(by_food(perhaps, "duck", label=0.14), by_food(named, "chicken"))[0] == f"food:{named}"


def test_harmless_ingredients_on_a_label_change_nothing():
    rivals = by_food("a", "pork", source=0.2), by_food("b", "beef", source=0.5)
    for food in "ab":
        greens = [link(f"food:{food}", "contains", f"species:green{n}", 0.9) for n in range(9)]
        assert order(*rivals, more=greens) == ["food:b", "food:a"]


@pytest.mark.parametrize(("plain", "long"), [("a", "b"), ("b", "a")])
def test_of_equal_sources_the_leaflet_that_lists_everything_comes_last(plain, long):
    everything = by_medicine(long, beside=[f"s{n}" for n in range(9)])
    assert order(everything, by_medicine(plain, beside=("s0",))) == [f"med:{plain}", f"med:{long}"]


def test_equal_rivals_stand_by_name():
    assert order(by_medicine("b"), by_medicine("a")) == ["med:a", "med:b"]


def test_of_one_cause_the_chain_that_is_believed_most_stands_first_and_stays_with_it():
    links, weak = by_food("a", "beef", source=0.2)
    more, strong = by_food("a", "wheat", source=0.6)
    found = connected((links, weak), (more, strong), by_food("b", "lamb", source=0.4))
    assert [chain.links[1].key.split("|")[2] for chain in found.chains] == [
        "species:wheat",
        "species:beef",
        "species:lamb",
    ]
    assert found.edges[:4] == strong.links


def test_the_account_says_how_far_each_is_believed():
    found = connected(by_food("a", "pork", source=0.2), by_food("b", "beef", source=0.5))
    listed = [line for line in found.account if line.startswith("chain:")]
    assert [line.split()[1] for line in listed] == ["food:b", "food:a"]
    assert "believed 0.36" in listed[0]
