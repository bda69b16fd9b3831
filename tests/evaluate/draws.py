"""What is redrawn for each household: names, breeds, brands, ingredients, places, zones, dates."""

from __future__ import annotations

import random

__all__ = [
    "BOOKS",
    "BRANDS",
    "BREEDS",
    "DOG_TRIGGERS",
    "FILLERS",
    "LINES",
    "NAMES",
    "PLACES",
    "SEX",
    "ZONES",
    "date_between",
]

NAMES = (
    "Max", "Luna", "Milo", "Bella", "Rex", "Nala", "Otis", "Cleo", "Bruno", "Daisy", "Rufus", "Willow", "Koda", "Zelda",
    "Finn", "Maple", "Odin", "Pepper", "Ziggy", "Hazel", "Loki", "Poppy", "Tango", "Misty", "Archie", "Freya", "Boris",
    "Juno", "Gus", "Tilly", "Hugo", "Skye", "Moose", "Roxy", "Dexter", "Ivy", "Samson", "Pixie", "Winston", "Ollie",
    "Peanut", "Ginger", "Biscuit", "Kira", "Balu", "Emma", "Sammy", "Nero", "Mia", "Theo", "Wanda", "Percy", "Greta",
    "Oskar", "Lotte", "Fritz", "Simba", "Tess", "Arlo", "Blue",
)  # fmt: skip
SEX = {"male": ("he", "him", "his", "himself"), "female": ("she", "her", "her", "herself")}
BREEDS = {
    "dog": (
        "golden retriever", "labrador retriever", "beagle", "border collie", "dachshund", "german shepherd", "boxer",
        "cocker spaniel", "greyhound", "jack russell terrier", "poodle", "rottweiler",
    ),
    "cat": ("domestic shorthair", "maine coon", "siamese", "ragdoll", "british shorthair", "bengal"),
}  # fmt: skip
BRANDS = (
    "Brook", "Harbor", "Northfield", "Tallgrass", "Acorn", "Kestrel", "Lowland", "Fenwick", "Marlow", "Sunmere",
    "Oakline", "Riverby", "Thistle", "Copper Hill", "Bluebarn", "Elmgate", "Halden", "Wexcombe", "Pinecrest", "Vale",
)  # fmt: skip
LINES = (
    "Adult", "Country Recipe", "Original", "Complete", "Daily Care", "Gold", "Active", "Natural", "Classic", "Supper",
)  # fmt: skip
FILLERS = (
    "sweet potato", "beet pulp", "sunflower oil", "linseed", "apple", "pumpkin", "spinach", "cranberries", "tapioca",
    "chicory root", "seaweed", "carrots", "brewer's yeast", "psyllium", "rosemary", "parsley", "blueberries",
)  # fmt: skip
DOG_TRIGGERS = {  # as a label names it, as a guide names it, the vertex the two meet in
    "starter": {
        "dog": (("chicken", "Chicken", "species:chicken"), ("beef", "Beef", "species:beef"),
                ("lamb", "lamb", "species:lamb")),
        "cat": (("chicken", "Chicken", "species:chicken"), ("beef", "Beef", "species:beef")),
    },
    "book": (("duck", "Duck", "species:duck"), ("turkey", "Turkey", "species:turkey"),
             ("venison", "Venison", "species:venison"), ("rabbit", "Rabbit", "species:rabbit"),
             ("salmon", "Salmon", "species:salmon"), ("tuna", "Tuna", "species:tuna"),
             ("herring", "Herring", "species:herring"), ("goat", "Goat", "species:goat")),
}  # fmt: skip
BOOKS = ("Skin and food", "The itchy pet", "Feeding well", "Home vet", "A year with pets")
PLACES = ("Fern Lodge", "Paws Inn", "Bella's", "Maple Farm", "Hillside Kennels", "The Hayloft", "Cedar Yard")
ZONES = (
    ("America/New_York", "US"),
    ("America/Los_Angeles", "US"),
    ("Europe/Berlin", "DE"),
    ("Australia/Sydney", "AU"),
    ("Europe/London", "GB"),
)


def date_between(rng: random.Random, first: int, last: int) -> int:
    """A whole number of days between two, both included."""
    return rng.randint(first, last)
