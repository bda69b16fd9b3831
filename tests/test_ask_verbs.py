"""A sentence about one series has the verb its name asks for."""

from __future__ import annotations

import pytest

from gateway.ask.said import being, is_or_are
from gateway.ontology.load import load

PLURAL = {
    "meals",
    "portions from the feeder",
    "litter box visits",
    "loose stools",
    "seizures",
    "breaths a minute asleep",
}


@pytest.mark.parametrize("owner", sorted(observed.owner for observed in load().properties.values()))
def test_every_name_of_a_series_takes_its_own_verb(owner):
    assert being(owner) == f"{owner} {'are' if owner in PLURAL else 'is'}"


def test_several_names_are():
    assert is_or_are(["rest", "scratching"]) == "are"
