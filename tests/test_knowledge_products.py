"""Product files in Open Pet Food Facts' shape: read in every form, refused whole when wrong."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ImportRefused
from gateway.knowledge.products import read_products
from gateway.model import Vertex

ROW = {
    "code": "4006381333931",
    "product_name": "Acme Chicken & Rice",
    "brands": "Acme",
    "ingredients_text": "Chicken meal (26 %), brown rice",
    "nutriments": {"energy-kcal_100g": 375},
}
FOOD = Vertex("food:acme")


def read(text):
    return read_products(text, source="file.json")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROW),
        json.dumps([ROW]),
        json.dumps({"products": [ROW], "count": 1}),
        json.dumps({"code": ROW["code"], "product": {k: v for k, v in ROW.items() if k != "code"}, "status": 1}),
        json.dumps(ROW) + "\n" + json.dumps({**ROW, "code": "2"}),
        "\ufeff" + json.dumps(ROW, indent=2),
        "code\tproduct_name\tbrands\tingredients_text\tenergy-kcal_100g\n4006381333931\tAcme Chicken & Rice\tAcme\tChicken meal (26 %), brown rice\t375\n",
        'code,product_name,brands,ingredients_text,energy-kcal_100g\n4006381333931,Acme Chicken & Rice,Acme,"Chicken meal (26 %), brown rice",375\n',
    ],
)
def test_one_product_reads_the_same_from_every_shape(text):
    product = read(text)[0]
    assert (product.code, product.name, product.brand) == (ROW["code"], ROW["product_name"], "Acme")
    assert product.label == ROW["ingredients_text"]
    assert product.kcal_per_kg == 3750.0


def test_a_product_teaches_its_label_and_energy():
    learned = read(json.dumps(ROW))[0].learn(FOOD)
    assert ("food:acme", "contains", "species:chicken") in {
        (e.tail.name, e.relation, e.head.name) for e in learned.edges
    }
    assert dict(learned.document.facts)["kcal_per_kg"] == "3750"
    assert learned.document.source == "file.json"


def test_a_product_without_label_is_known_by_name_and_energy_alone():
    learned = read(json.dumps({**ROW, "ingredients_text": ""}))[0].learn(FOOD)
    assert learned.edges == ()
    assert dict(learned.document.facts)["kcal_per_kg"] == "3750"


def test_the_label_of_the_products_own_language_is_taken_first():
    row = {**ROW, "ingredients_text": None, "ingredients_text_en": "beef", "ingredients_text_de": "Huhn", "lc": "de"}
    assert read(json.dumps(row))[0].label == "Huhn"


def test_kilojoules_become_kilocalories():
    assert read(json.dumps({**ROW, "nutriments": {"energy_100g": 1569}}))[0].kcal_per_kg == pytest.approx(3750, abs=1)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        (json.dumps({**ROW, "code": ""}), None, "code", "product code"),
        (json.dumps({**ROW, "product_name": None}), None, "product_name", "is empty"),
        (json.dumps({**ROW, "ingredients_text": ["chicken"]}), None, "ingredients_text", "must be text"),
        (json.dumps({**ROW, "nutriments": {"energy-kcal_100g": 37500}}), None, "energy-kcal_100g", "900"),
        (json.dumps({**ROW, "nutriments": {"energy-kcal_100g": "much"}}), None, "energy-kcal_100g", "a number"),
        (json.dumps(ROW) + "\n{broken\n", 2, None, "one JSON product"),
        (json.dumps(ROW) + "\n" + json.dumps({**ROW, "code": None}), 2, "code", "product code"),
        ("name,brand\nAcme,x\n", 1, "code", "header"),
        ("code,product_name\n1,Acme,too,many\n", 2, None, "fields"),
        ("", None, None, "white space"),
        ("[]", None, None, "at least one product"),
        ("[1]", None, None, "JSON object"),
        ("[" * 100_000, None, None, "JSON"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_whole_naming_line_field_and_expectation(text, line, field, words):
    with pytest.raises(ImportRefused, match=words) as refused:
        read(text)
    assert (refused.value.source, refused.value.field) == ("file.json", field)
    if line is not None:
        assert refused.value.line == line


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_by_name(text):
    with suppress(ImportRefused):
        assert read(text)
