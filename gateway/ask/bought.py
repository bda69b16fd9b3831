"""What was bought, as people wrote it down, and what no record says of it: that a pet was given it.

In: the purchases on file. Out: purchases with the food of the home they are, by code or name,
and, for a change that is being explained, those that came into the house before it and are in
nobody's records since. A purchase is a witness of its own: the thing was at home from that day
on. It is never a meal, so it is never a cause and no link of the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.causes import LAG_MS
from gateway.ask.said import say, verbatim
from gateway.ask.wording import day
from gateway.dialogue import EvidenceClass, Quantity
from gateway.measure.days import local_day
from gateway.model import NearMiss, stable_id
from gateway.ontology.recognise import tokens_of
from gateway.ontology.wares import host_named, kind_named

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Food, Interval, Pet
    from gateway.stored import TextRecord

__all__ = [
    "Bought",
    "bought_on_file",
    "could_be_for",
    "fed_with",
    "first_bought",
    "given_on_file",
    "not_given",
    "say_not_given",
    "say_purchase",
    "stands_in",
]

_PACK = frozenset(
    {"g", "kg", "mg", "l", "ml", "oz", "lb", "lbs", "x", "bag", "bags", "pack", "packs", "pouch", "pouches"}
    | {"tin", "tins", "can", "cans", "box", "boxes", "count", "ct", "pcs"}
)
_NEAR = 6
"""Near-misses kept with an answer; an owner who bought more new things reads the latest."""


@dataclass(frozen=True, slots=True)
class Bought:
    """One purchase. ``key`` is the same for every purchase of the product; ``food`` is the home's own. ``kind`` is
    what the file says it is, else what the home's foods and medicines or its own name leave no doubt about, else None.
    """

    record: TextRecord
    name: str
    key: str
    date: str
    at_ms: int
    food: Food | None
    kind: str | None = None

    def fact(self, name: str) -> str:
        """A value of the line by its column, or nothing."""
        return dict(self.record.facts).get(name, "")

    @property
    def words(self) -> tuple[str, ...]:
        """The product's name folded, without the size of the pack."""
        return _plain(self.name)


def _plain(name: str) -> tuple[str, ...]:
    words = [token.text for token in tokens_of(name) if any(mark.isalnum() for mark in token.text)]
    return tuple(word for word in words if word not in _PACK and not any(mark.isdigit() for mark in word))


def stands_in(text: str, words: tuple[str, ...]) -> bool:
    """Whether a product's words stand in a text next to each other, whatever marks and sizes stand between."""
    have = _plain(text)
    return bool(words) and any(have[at : at + len(words)] == words for at in range(len(have) - len(words) + 1))


def bought_on_file(scene: Scene) -> tuple[Bought, ...]:
    """Every purchase up to now, oldest first."""
    records = scene.reader.texts(("purchase",), until_ms=scene.now_ms)
    names: dict[str, str] = {}
    for record in records:
        facts = dict(record.facts)
        if facts.get("code") and facts.get("product"):
            names.setdefault(facts["code"], facts["product"])
    labels = scene.reader.vertex_labels() if records else {}
    found = []
    for record in records:
        facts = dict(record.facts)
        code = facts.get("code", "")
        labelled = labels.get(f"product:{code}", "").removesuffix(" (label)")
        product = facts.get("product") or names.get(code) or labelled
        food = _food_of(scene, code, product)
        name = product or (food.name if food is not None else f"product {code}")
        key = f"food:{food.id}" if food is not None else " ".join(_plain(name)) or code
        at_ms = record.at_ms or 0
        kind = facts.get("kind") or _kind_of(scene, food, product)
        found.append(Bought(record, name, key, local_day(at_ms, scene.zones), at_ms, food, kind))
    return tuple(found)


def _kind_of(scene: Scene, food: Food | None, product: str) -> str | None:
    """What a purchase surely is: a food of the home, what its name says, a medicine of the home; else None."""
    if food is not None:
        return "food"
    named = kind_named(product)
    if named is not None:
        return named
    known = (name for medicine in scene.home.medicines for name in (medicine.name, *medicine.aliases))
    return "medicine" if any(stands_in(product, _plain(name)) for name in known) else None


def could_be_for(scene: Scene, one: Bought, pets: frozenset[str]) -> bool:
    """Whether nothing on file says that a purchase was for others than these pets (none named: everybody)."""
    if not pets:
        return True
    given = fed_with(scene, one)
    if given:
        return bool(pets & given)
    host = host_named(one.name)
    return host is None or host in {pet.species for pet in scene.home.pets if pet.id in pets}


def _food_of(scene: Scene, code: str, product: str) -> Food | None:
    """The food of the home that was bought: its code, its name, or its name with a pack's size."""
    known = scene.home.food_of(code, product)
    plain = _plain(product)
    if known is not None or not plain:
        return known
    return next((food for food in scene.home.foods if plain in {_plain(n) for n in (food.name, *food.aliases)}), None)


def fed_with(scene: Scene, one: Bought) -> frozenset[str]:
    """The pets that the household or a bowl's record says are given this food; none where nothing says so."""
    if one.food is None:
        return frozenset()
    food = f"food:{one.food.id}"
    eaters = {
        pet.id
        for pet in scene.home.pets
        if any(link.edge.relation == "ate" and link.edge.head.name == food for link in scene.links_of(pet.id))
    }
    return one.food.pets | eaters


def first_bought(purchases: tuple[Bought, ...]) -> tuple[Bought, ...]:
    """The first purchase on file of each product, oldest first."""
    first: dict[str, Bought] = {}
    for one in purchases:
        first.setdefault(one.key, one)
    return tuple(first.values())


def given_on_file(scene: Scene, pet_id: str, one: Bought) -> bool:
    """Whether anything on file says that this pet was given it: the bowl's food, or a log entry."""
    names = {f"food:{stable_id(one.name)}", one.key}
    names |= {f"food:{stable_id(one.fact('code'))}"} if one.fact("code") else set()
    labels = scene.reader.vertex_labels()
    for link in scene.links_of(pet_id):
        head = link.edge.head.name
        if link.edge.relation == "ate" and (head in names or _plain(labels.get(head, "")) == one.words):
            return True
    logs = scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet_id)
    return any(stands_in(f"{entry.title} {entry.text}", one.words) for entry in logs)


def not_given(scene: Scene, pet: Pet, began: Interval) -> tuple[Bought, ...]:
    """First purchases of the weeks before a change of which no record says that anybody was given them.

    Another pet's food is none of these, nor one that the household gives to others.
    """
    from_ms = began.start_ms - LAG_MS
    return tuple(
        one
        for one in first_bought(bought_on_file(scene))
        if from_ms <= one.at_ms < began.end_ms
        and (one.food is None or not one.food.pets or pet.id in one.food.pets)
        and not any(given_on_file(scene, anybody.id, one) for anybody in scene.home.pets)
    )


def say_not_given(scene: Scene, draft: Draft, pet: Pet, began: Interval, *, rank: int, shown: int) -> None:
    """Near-misses of a change: bought before it, and no record says that the pet was given it."""
    found = not_given(scene, pet, began)[-_NEAR:]
    for one in found:
        name, when = verbatim(one.name), day(one.date, year_of=scene.today)
        what = say("{what} was bought on {when}", what=name, when=when)
        reason = say("no record says that {pet} was given it", pet=pet)
        draft.near_misses.append(NearMiss(what, reason, (one.record.ref,)))
        if one in found[-shown:]:
            draft.claim(
                "bought",
                EvidenceClass.RECORDED,
                say("{what}, but no record says that {pet.he} was given it", what=what, pet=pet),
                cite="purchase",
                refs=(one.record.ref,),
                values=(Quantity("at", one.at_ms, "ms"),),
                rank=rank,
            )


def say_purchase(scene: Scene, draft: Draft, one: Bought) -> None:
    """One purchase as a claim that opens its line."""
    quantity, unit = one.fact("quantity"), one.fact("unit")
    many = f", {quantity} {unit}".rstrip() if unit or quantity != "1" else ""
    shop = say(" at {shop}", shop=verbatim(one.fact("shop"))) if one.fact("shop") else ""
    price = say(" for {price}", price=verbatim(one.fact("price"))) if one.fact("price") else ""
    draft.claim(
        "purchase",
        EvidenceClass.RECORDED,
        say(
            "{what}{many}, bought on {when}{shop}{price}",
            what=verbatim(one.name),
            many=verbatim(many),
            when=day(one.date, year_of=scene.today),
            shop=shop,
            price=price,
        ),
        cite="purchase",
        refs=(one.record.ref,),
        values=(Quantity("at", one.at_ms, "ms"), Quantity("quantity", float(quantity), unit or "count")),
    )
