"""Redraws a story: other names, breeds, brands, ingredients, dates and onset by seed.

Seed 0 is the story as it is written. Every other seed keeps its plot and changes everything
that a reader of the answer could have learnt by heart. Every fifth seed draws an ingredient
that nobody reacts to: the right answer then names no cause.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from random import Random

from device_sim.story import Feeding, Food, Pet, Story

__all__ = ["ean13", "redraw"]

_DOGS = (
    ("labrador retriever", 29_000, 1180),
    ("beagle", 12_400, 640),
    ("border collie", 18_500, 900),
    ("german shepherd", 34_000, 1330),
    ("poodle", 7_800, 430),
    ("boxer", 28_000, 1150),
    ("cocker spaniel", 13_200, 680),
)
_CATS = (
    ("domestic shorthair", 4_300, 240),
    ("maine coon", 6_400, 310),
    ("siamese", 3_900, 225),
    ("british shorthair", 5_000, 260),
)
# No name is a word of the ontology (Peanut, Lily, Ginger would be traps of another kind).
_NAMES = (
    "Bruno",
    "Nala",
    "Otto",
    "Kira",
    "Rex",
    "Mila",
    "Bodo",
    "Tessa",
    "Finn",
    "Ida",
    "Zorro",
    "Greta",
    "Milo",
    "Yuki",
)
_BRANDS = (
    "Acme",
    "Harbor",
    "Northfield",
    "Meadow & Co",
    "Old Mill",
    "Juniper",
    "Bluestone",
    "Kestrel",
    "Farrow",
    "Tallow Hill",
)
_LINES = ("Daily", "Classic", "Homestead", "Trail", "Gentle", "Select")
# What the guide names as reported triggers in dogs (Mueller, Olivry & Prelaud 2016): key, label words, word in a name.
_REACTIVE = (
    ("chicken", "chicken meal (26 %)", "Chicken"),
    ("beef", "dried beef (24 %)", "Beef"),
    ("lamb", "lamb meal (25 %)", "Lamb"),
)
# Bases that the guide names nowhere.
_BASES = (
    ("whitefish", "whitefish meal (27 %)", "Whitefish"),
    ("salmon", "salmon meal (26 %)", "Salmon"),
    ("venison", "dried venison (22 %)", "Venison"),
    ("duck", "dried duck (24 %)", "Duck"),
)
_INERT = (
    ("quinoa", "quinoa (12 %)", "Quinoa"),
    ("kelp", "kelp (3 %)", "Kelp"),
    ("millet", "millet (14 %)", "Millet"),
)
_REST = ("brown rice", "oats", "sunflower oil", "beet pulp", "flaxseed", "carrots", "minerals", "vitamins")


def ean13(twelve: int) -> str:
    """A product code: twelve digits and the check digit of GS1."""
    digits = f"{twelve:012d}"
    total = sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


def redraw(story: Story, seed: int) -> Story:
    """The story under another seed; the same seed gives the same story."""
    if seed == 0:
        return story
    rng = Random(f"{story.draws}/{seed}/cast")
    changes = story.redraw
    low, high = changes.get("end_days", (-30, 90))
    shift = rng.randint(low, high)
    hour, minute = rng.choice((16, 19, 20, 21)), rng.choice((0, 15, 30))  # never while the subject is at the bowl
    ends = (story.ends + timedelta(days=shift)).replace(hour=hour, minute=minute)
    inert = bool(changes.get("ingredient")) and seed % 5 == 0
    names = list(_NAMES)
    rng.shuffle(names)
    pets = tuple(_pet(pet, names.pop(), rng) for pet in story.pets)
    foods = _foods(story, rng, inert=inert)
    feedings, effects, swaps = story.feedings, story.effects, story.swaps
    if "onset_days" in changes:
        first, last = changes["onset_days"]
        onset = rng.randint(first, last)
        lag = rng.randint(*changes["lag_days"])
        at = ends.replace(hour=rng.randint(7, 18), minute=rng.randint(0, 59)).time()
        effects = tuple(replace(effect, day=onset) for effect in effects)
        feedings = tuple(_moved(feeding, onset - lag, at) for feeding in feedings)
        swaps = tuple(replace(swap, day=onset) for swap in swaps)
    return replace(
        story,
        seed=seed,
        ends=ends,
        variant="inert" if inert else story.variant,
        pets=pets,
        foods=foods,
        feedings=feedings,
        effects=effects,
        swaps=swaps,
    )


def _moved(feeding: Feeding, day: int, at: time) -> Feeding:
    """The subject's switch moves with the onset; other pets' feedings stay where they are."""
    if feeding.pet != "subject" or feeding.food != "after":
        return feeding
    return replace(feeding, day=day, at=at)


def _pet(pet: Pet, name: str, rng: Random) -> Pet:
    breed, weight_g, kcal = rng.choice(_DOGS if pet.species == "dog" else _CATS)
    born = pet.born + timedelta(days=rng.randint(-900, 500))
    return replace(
        pet,
        name=name,
        breed=breed,
        born=born,
        sex=rng.choice(("male", "female")),
        weight_g=weight_g + rng.randint(-5, 5) * weight_g // 100,
        kcal=kcal,
    )


def _foods(story: Story, rng: Random, *, inert: bool) -> tuple[Food, ...]:
    """New brands and labels. Before: a base nobody reacts to. After: one thing is new in it.

    A story may keep its foods (``redraw.foods = "keep"``), or have the trigger in both
    (``"same_allergen"``).
    """
    plan = story.redraw.get("foods", "switch")
    if plan == "keep":
        return story.foods
    brands = list(_BRANDS)
    rng.shuffle(brands)
    bases = list(_BASES)
    rng.shuffle(bases)
    triggers = list(_REACTIVE)
    rng.shuffle(triggers)
    base = bases[0]
    drawn = []
    for food in story.foods:
        brand = brands.pop()
        if food.key == "before":
            drawn.append(_food(food, brand, base, (base, triggers[0]) if plan == "same_allergen" else (base,), rng))
        elif food.key == "after" and inert:
            news = rng.choice(_INERT)
            drawn.append(_food(food, brand, news, (base, news), rng))
        elif food.key == "after":
            drawn.append(_food(food, brand, triggers[0], (triggers[0],), rng))
        elif food.key == "other_after":
            # The other pet's new food holds another trigger: a trap, it is not the subject's.
            drawn.append(_food(food, brand, triggers[1], (triggers[1],), rng))
        else:
            drawn.append(_food(food, brand, bases[1], (bases[1],), rng))
    return tuple(drawn)


def _food(
    food: Food, brand: str, named: tuple[str, str, str], holds: tuple[tuple[str, str, str], ...], rng: Random
) -> Food:
    name = f"{brand} {rng.choice(_LINES)} {named[2]}"
    identity = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
    label = ", ".join((*(words for _, words, _ in holds), *_REST))
    return replace(
        food,
        id=identity,
        name=name,
        aliases=(brand,),
        brand=brand,
        code=ean13(rng.randrange(200_000_000_000, 299_999_999_999)),
        kcal_per_kg=rng.randint(3_450, 3_950),
        ingredients=label[:1].upper() + label[1:] + ".",
        ingredient=named[0],
    )
