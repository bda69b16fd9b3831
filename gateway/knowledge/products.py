"""Product files in the shape of Open Pet Food Facts: JSON, JSONL or CSV in, products out.

Understood: one product (bare, or the API's ``{"code", "product"}``), a search result
(``{"products": [...]}``), a list, one object a line, and the export's table (tab or comma).
A file is refused whole where a product lacks what it must have, naming line, field and
expectation. Nobody's data is shipped; the source of each label is kept with it.
Format: Open Food Facts, "data fields" and API v2 (code, product_name, brands,
ingredients_text, nutriments with energy-kcal_100g).
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.errors import ImportRefused
from gateway.knowledge.labels import read_label
from gateway.model import Food, Vertex, stable_id
from gateway.stored import Document, Learned

__all__ = ["KnownFoods", "Product", "read_products"]

_KJ_PER_KCAL = 4.184
"""Thermochemical calorie (ISO 31-4)."""

_MOST_KCAL_PER_100G = 900.0
"""Pure fat: no food holds more (Regulation 1169/2011, annex XIV: 9 kcal/g)."""

_MOST_FIELD = 1_000_000
"""Characters of one CSV field; an ingredient list is a thousandth of it."""

_CODE = re.compile(r"[0-9A-Za-z_-]{1,40}\Z")
_LANGUAGES = ("en", "de", "es", "fr")


@dataclass(frozen=True, slots=True)
class Product:
    """One product. ``label`` is its ingredient list as written, or None; energy in kcal per kg."""

    code: str
    name: str
    brand: str
    label: str | None
    kcal_per_kg: float | None
    source: str

    def learn(self, food: Vertex) -> Learned:
        """What the product says about a food of the household."""
        facts = [("brand", self.brand)] if self.brand else []
        if self.kcal_per_kg is not None:
            facts.append(("kcal_per_kg", f"{self.kcal_per_kg:g}"))
        if self.label is None:
            document = Document(f"product:{self.code}", "product", self.name, self.source, self.code, tuple(facts))
            return Learned(document, ())
        learned = read_label(self.code, self.label, title=self.name, source=self.source, food=food)
        read = learned.document
        if read is None:
            return learned
        named = {name for name, _ in facts}
        kept = tuple(fact for fact in read.facts if fact[0] not in named)
        return replace(learned, document=replace(read, facts=(*kept, *facts)))


class KnownFoods:
    """The household's foods by code and by name: `Household.food_of` for a whole catalogue, each food
    looked at once instead of once a product. Of several the one with the least id is meant.
    """

    def __init__(self, foods: Iterable[Food]) -> None:
        self._by_code: dict[str, dict[str, Food]] = {}
        self._by_name: dict[str, dict[str, Food]] = {}
        self._foods: dict[str, Food] = {}
        for food in foods:
            self.add(food)

    def add(self, food: Food) -> None:
        """A food that is new, or has another code or name now."""
        before = self._foods.get(food.id)
        if before is not None:
            for index, key in self._keys(before):
                index[key].pop(food.id, None)
        self._foods[food.id] = food
        for index, key in self._keys(food):
            index.setdefault(key, {})[food.id] = food

    def of(self, code: str, name: str) -> Food | None:
        """The food behind a code, else the one of that name, or None."""
        found = (code and self._by_code.get(code)) or (name and self._by_name.get(stable_id(name))) or {}
        return found[min(found)] if found else None

    def _keys(self, food: Food) -> Iterator[tuple[dict[str, dict[str, Food]], str]]:
        if food.code:
            yield self._by_code, food.code
        for name in {food.id, stable_id(food.name)}:
            yield self._by_name, name


def read_products(text: str, *, source: str) -> tuple[Product, ...]:
    """Read a product file.

    Parameters
    ----------
    text : str
        The file's content.
    source : str
        The file's name: stands in messages and with each label.

    Raises
    ------
    ImportRefused
        If it is none of the shapes above, or a product has no code or name, or a figure that
        cannot be. Nothing of the file is kept then.
    """
    rows = list(_rows(text.removeprefix("\ufeff"), source))
    if not rows:
        raise ImportRefused(source, "must hold at least one product, holds none")
    products: dict[str, Product] = {}
    for line, row in rows:
        product = _product(row, source, line)
        products[product.code] = product
    return tuple(products.values())


def _rows(text: str, source: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """The products as mappings with their line, whatever the file's shape."""
    start = text.lstrip()[:1]
    if not start:
        raise ImportRefused(source, "must be a product file (JSON, JSONL or CSV), found nothing but white space")
    if start not in "{[":
        yield from _table(text, source)
        return
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as broken:
        if start == "[" or "\n" not in text.strip():
            raise ImportRefused(source, f"must be JSON: {broken.msg}", line=broken.lineno) from broken
        yield from _lines(text, source)
        return
    except RecursionError as deep:
        raise ImportRefused(source, "must be JSON of products, is nested too deeply to be one") from deep
    for row in _unwrapped(whole):
        yield None, _mapping(row, source, None)


def _lines(text: str, source: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as broken:
            raise ImportRefused(source, f"each line must be one JSON product: {broken.msg}", line=number) from broken
        except RecursionError as deep:
            raise ImportRefused(source, "must be a JSON product, is nested too deeply", line=number) from deep
        for one in _unwrapped(row):
            yield number, _mapping(one, source, number)


def _unwrapped(whole: object) -> list[Any]:
    if isinstance(whole, list):
        return whole
    if isinstance(whole, dict) and isinstance(whole.get("products"), list):
        return list(whole["products"])
    if isinstance(whole, dict) and isinstance(whole.get("product"), dict):
        return [{"code": whole.get("code"), **whole["product"]}]
    return [whole]


def _mapping(row: object, source: str, line: int | None) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise ImportRefused(source, f"a product must be a JSON object, is {type(row).__name__}", line=line)
    return row


def _table(text: str, source: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    header = text.split("\n", 1)[0]
    delimiter = "\t" if "\t" in header else ";" if header.count(";") > header.count(",") else ","
    names = [name.strip().strip('"') for name in header.rstrip("\r").split(delimiter)]
    for needed in ("code", "product_name"):
        if needed not in names:
            raise ImportRefused(
                source, f"a table's header must have the column, has {', '.join(names)[:120]}", line=1, field=needed
            )
    before = csv.field_size_limit(_MOST_FIELD)
    try:
        reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, restkey="", strict=True)
        for row in reader:
            if "" in row or None in row.values():
                found = sum(value is not None for value in row.values())
                raise ImportRefused(
                    source, f"a row must have {len(names)} fields as the header has, has {found}", line=reader.line_num
                )
            yield reader.line_num, row
    except csv.Error as broken:
        raise ImportRefused(source, f"must be a CSV table: {broken}") from broken
    finally:
        csv.field_size_limit(before)


def _product(row: Mapping[str, Any], source: str, line: int | None) -> Product:
    code = row.get("code", row.get("_id"))
    code = str(code) if isinstance(code, int) and not isinstance(code, bool) else code
    if not isinstance(code, str) or not _CODE.match(code.strip()):
        raise ImportRefused(source, f"must be a product code of digits, is {_shown(code)}", line=line, field="code")
    name = _first_text(row, "product_name", source, line) or _first_text(row, "generic_name", source, line)
    if not name:
        raise ImportRefused(source, "must be the product's name, is empty", line=line, field="product_name")
    return Product(
        code=code.strip(),
        name=name,
        brand=_text(row, "brands", source, line),
        label=_first_text(row, "ingredients_text", source, line) or None,
        kcal_per_kg=_energy(row, source, line),
        source=source,
    )


def _first_text(row: Mapping[str, Any], field: str, source: str, line: int | None) -> str:
    """The field, else in the product's own language, else in the first language we read."""
    own = row.get("lc") or row.get("lang")
    languages = (own, *_LANGUAGES) if isinstance(own, str) else _LANGUAGES
    for name in (field, *(f"{field}_{language}" for language in languages)):
        found = _text(row, name, source, line)
        if found:
            return found
    return ""


def _text(row: Mapping[str, Any], field: str, source: str, line: int | None) -> str:
    value = row.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ImportRefused(source, f"must be text, is {_shown(value)}", line=line, field=field)
    return value.strip()


def _energy(row: Mapping[str, Any], source: str, line: int | None) -> float | None:
    """Energy in kcal per kg, where the product gives it per 100 g, in kcal or kJ."""
    nutriments = row.get("nutriments")
    if nutriments is None:
        nutriments = row
    if not isinstance(nutriments, Mapping):
        raise ImportRefused(
            source, f"must be an object of figures, is {_shown(nutriments)}", line=line, field="nutriments"
        )
    for field, per_kcal in (("energy-kcal_100g", 1.0), ("energy-kj_100g", _KJ_PER_KCAL), ("energy_100g", _KJ_PER_KCAL)):
        value = nutriments.get(field)
        if value is None or value == "":
            continue
        kcal = _number(value, source, line, field) / per_kcal
        if not 0.0 <= kcal <= _MOST_KCAL_PER_100G:
            raise ImportRefused(
                source,
                f"must give 0 to {_MOST_KCAL_PER_100G:g} kcal per 100 g, gives {kcal:g}",
                line=line,
                field=field,
            )
        return round(kcal * 10.0, 3) if kcal > 0.0 else None
    return None


def _number(value: object, source: str, line: int | None, field: str) -> float:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ImportRefused(source, f"must be a number, is {_shown(value)}", line=line, field=field)
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
