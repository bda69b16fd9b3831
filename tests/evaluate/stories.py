"""Kinds of households, each told from its hidden cause: what really happened, and what is on file.

A kind writes into a `Home` and returns a `Story`: what changed, by what, and the chain of facts
that a whole answer joins. Season, pain and luck leave no record: there the right answer names
no cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.evaluate.cases import Fact
from tests.evaluate.draws import BOOKS, DOG_TRIGGERS
from tests.evaluate.home import HISTORY_DAYS, Home, Made, Resident

__all__ = ["KINDS", "RIVALS", "Cause", "Story"]

FLEA_SENTENCE = "Flea treatment prevents flea allergy and flea infestation in dogs and cats while it lasts"
FLEA_SIGN = "Flea allergy in dogs and cats shows as itching"
_INFESTED = "edge:condition:flea_infestation|has_sign[{host}]|sign:itch|-"
FLEA_CAUSE = "Fleas may cause flea allergy in dogs and cats."
KENNEL_SENTENCE = "Boarding kennels can carry fleas and kennel cough."
VISITOR_SENTENCE = "Visiting dogs can carry fleas and kennel cough."
SIDE_EFFECTS = {  # medicine vertex: (property, hosts, log words, the sentence, sign)
    "med:antibiotic": (
        "intake", ("dog", "cat"), ("antibiotic", "amoxicillin tablet", "Clavamox"),
        "Antibiotics can have the side effect of loose stools, vomiting or poor appetite in dogs and cats.",
        "sign:appetite_loss",
    ),
    "med:pain_relief": (
        "intake", ("dog", "cat"), ("Metacam", "meloxicam drops", "Rimadyl tablet"),
        "Pain relief can have the side effect of vomiting, loose stools or poor appetite in dogs and cats.",
        "sign:appetite_loss",
    ),
    "med:apoquel": (
        "intake", ("dog",), ("Apoquel tablet", "Apoquel"),
        "Apoquel can have the side effect of vomiting, loose stools or poor appetite in dogs.", "sign:appetite_loss",
    ),
    "med:prednisolone": (
        "restless", ("dog",), ("prednisolone tablet", "prednisone"),
        "Steroids can have the side effect of thirst, increased appetite and restlessness in dogs.",
        "sign:restlessness",
    ),
    "med:vaccine": (
        "activity", ("dog", "cat"), ("vaccination", "rabies booster"),
        "Vaccination can have the side effect of less active days in dogs and cats.", "sign:lethargy",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """A true cause: its vertex, what an owner calls it, and its facts once the home is written.

    ``also`` are links that are as true and not asked for: fleas make an allergy, an infestation, or both.
    """

    vertex: str
    words: str
    facts: Callable[[], tuple[Fact, ...]]
    also: tuple[str, ...] = ()


@dataclass(slots=True)
class Story:
    """What really happened in one household.

    ``prop``/``way`` is the change asked about, ``verdict`` what a right comparison says of it.
    ``never`` are causes that must not be named, ``blamed`` (vertex, words) pairs an owner may
    suspect; ``foods`` what the pet ate, latest last; ``has`` what is on file beside the story.
    """

    home: Home
    prop: str = "scratch"
    way: str = "up"
    verdict: str = "up"
    causes: list[Cause] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    blamed: list[tuple[str, str]] = field(default_factory=list)
    foods: list[Made] = field(default_factory=list)
    onset: int = 6
    has: set[str] = field(default_factory=set)
    absent: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    trigger: tuple[str, str, str] = ("chicken", "Chicken", "species:chicken")
    disputed: str = ""
    silent_day: str = ""

    @property
    def pet(self) -> Resident:
        return self.home.pet


KINDS: dict[str, Callable[[Home], Story]] = {}
RIVALS: dict[str, Callable[[Home], Story]] = {}
"""Kinds with two candidates on file of which one is true: what belief and hub damping are for."""


def _kind(tell: Callable[[Home], Story]) -> Callable[[Home], Story]:
    KINDS[tell.__name__] = tell
    return tell


# --- what every household has ---------------------------------------------------------------------


def _step(story: Story, size: float) -> Callable[[int], float]:
    """The change: from the onset on the level is ``size`` times the usual one."""
    return lambda back: size if back <= story.onset else 1.0


def _size(story: Story) -> float:
    rng = story.home.rng
    return rng.uniform(0.55, 0.72) if story.way == "down" else rng.uniform(1.4, 1.8)


def _live(
    story: Story, *, size: float | None = None, days: int = HISTORY_DAYS, skip: tuple[str, ...] = (), eaten: float = 1.0
) -> None:
    """Bowl and tracker of the pet over its days, and some of the other pet's."""
    home = story.home
    rate = _size(story) if size is None else size
    home.device("food_bowl", story.pet.id)
    home.device("food_bowl", home.other.id)
    if "tracker" not in skip:
        home.device("tracker", story.pet.id)
        for prop in ("scratch", "activity", "rest", "restless"):
            factor = _step(story, rate) if prop == story.prop else (lambda _back: 1.0)
            home.worn(story.pet, prop, days=days, factor=factor)
    home.device("tracker", home.other.id)
    home.worn(home.other, "rest", days=40)
    if story.prop == "water" or "water" in story.has:
        home.device("water_bowl", story.pet.id)
        home.worn(story.pet, "water", days=days, factor=_step(story, rate) if story.prop == "water" else lambda _b: 1.0)
    if "bowl" not in skip:
        home.eats(story.pet, days=days, factor=_step(story, rate) if story.prop == "intake" else lambda _b: eaten)
    home.eats(home.other, days=30)
    for device, *_ in list(home.devices):
        home.beats(device)


def _beside(story: Story, *, fleas: bool = True) -> None:
    """What else may be on file: each with a fair chance, none of it a cause."""
    home, rng = story.home, story.home.rng
    if fleas and rng.random() < 0.6:
        home.log(story.pet, "flea treatment", rng.randint(3, 18))
        story.has.add("fleas")
    if rng.random() < 0.6:
        home.log(story.pet, f"weight {rng.randint(38, 320) / 10} kg", rng.randint(4, 60))
        story.has.add("weight")
    if rng.random() < 0.4:
        home.log(story.pet, "worming tablet", rng.randint(30, 60))
        story.has.add("worming")
    if rng.random() < 0.3:
        story.has.add("water")
    if rng.random() < 0.3:
        home.log(home.other, "flea treatment", rng.randint(5, 25))
    if rng.random() < 0.4:
        home.note(
            story.pet,
            rng.choice(("Teeth clean, coat fine.", "Annual check. Heart and lungs clear.")),
            rng.randint(40, 65),
        )
        story.has.add("note")


def _old_food(story: Story, *listed: str) -> Made:
    """The food of long ago, holding nothing that any source speaks of unless told so."""
    made = story.home.food(*(listed or ("ostrich",)))
    story.home.feed(story.pet, made, HISTORY_DAYS - 1)
    story.foods.append(made)
    return made


def _trigger(story: Story) -> str:
    """Draws what a source blames for itching in this host, writing the source if it is not the guide's."""
    home, rng, host = story.home, story.home.rng, story.pet.species
    starter = rng.random() < 0.5
    pool = DOG_TRIGGERS["starter"][host] if starter else DOG_TRIGGERS["book"]
    story.trigger = rng.choice(pool)
    _, name, _ = story.trigger
    if starter:
        if name == "lamb":
            return "Soy, lamb, egg and maize are less commonly reported triggers in dogs with a diagnosed food allergy."
        return f"{name} is a commonly reported trigger in {host}s with a diagnosed food allergy."
    sentence = rng.choice(
        (
            f"{name} may cause food allergy in {host}s.",
            f"{name} is a reported trigger in {host}s with a diagnosed food allergy.",
            f"{name} can cause food allergy in dogs and cats.",
        )
    )
    other = rng.choice([one for one in DOG_TRIGGERS["book"] if one != story.trigger])
    others = "cat" if host == "dog" else "dog"
    home.book(
        rng.choice(BOOKS),
        [
            f"Owners of itchy {host}s ask first what is in the bowl. {sentence} A food diary helps.",
            f"{other[1]} may cause food allergy in {others}s. Only a diet trial can tell.",
            "Bedding, season and fleas come before food in most homes.",
        ],
    )
    return sentence


def _listed(story: Story, form: str = "") -> str:
    """The trigger as a label names it."""
    word = story.trigger[0]
    return f"{word} {form or story.home.rng.choice(('meal', 'protein', 'meat'))}"


def _food_cause(story: Story, made: Made, sentence: str, *, words: str, relation: str = "contains") -> Cause:
    home, pet, host = story.home, story.pet, story.pet.species
    source = story.trigger[2]

    def facts() -> tuple[Fact, ...]:
        sign = f"Food allergy in {host}s shows as itching"
        return (
            home.figure_fact(pet, "scratch"),
            home.fed_fact(pet, made),
            home.label_fact(made, words, source, relation),
            home.said_fact(sentence, f"edge:{source}|may_cause[{host}]|condition:food_allergy|-"),
            home.said_fact(sign, f"edge:condition:food_allergy|has_sign[{host}]|sign:itch|-"),
        )

    return Cause(f"food:{made.id}", made.name, facts)


def _new_food(story: Story, sentence: str, *, back: int, words: str = "", relation: str = "contains") -> Made:
    """A switch to a food that holds the trigger; a true cause."""
    words = words or _listed(story)
    made = story.home.food(words)
    story.home.feed(story.pet, made, back)
    story.foods.append(made)
    story.causes.append(_food_cause(story, made, sentence, words=words, relation=relation))
    story.blamed.append((f"food:{made.id}", made.name))
    return made


def _before(story: Story, least: int = 1, most: int = 11) -> int:
    """Days back of a change that came before the onset."""
    return story.onset + story.home.rng.randint(least, most)


# --- food -----------------------------------------------------------------------------------------


@_kind
def food(home: Home) -> Story:
    story = Story(home, onset=home.rng.randint(6, 8))
    sentence = _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story)
    _new_food(story, sentence, back=_before(story))
    return story


@_kind
def food_beside_much_else(home: Home) -> Story:
    """The other pet changed food too, a harmless log entry, an old note."""
    story = Story(home, onset=6)
    sentence = _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story)
    made = _new_food(story, sentence, back=_before(story))
    theirs = home.food(_listed(story))
    home.feed(home.other, theirs, _before(story))
    home.log(story.pet, "new bedding", story.onset + 30)
    home.log(story.pet, "treat", 3)
    story.never.append(f"food:{theirs.id}")
    assert made is not theirs
    return story


@_kind
def food_by_a_set(home: Home) -> Story:
    """The label names poultry, no species: chicken may be in it."""
    story = Story(home)
    host = story.pet.species
    _beside(story)
    _live(story)
    _old_food(story)
    sentence = f"Chicken is a commonly reported trigger in {host}s with a diagnosed food allergy."
    _new_food(story, sentence, back=_before(story), words="poultry meal", relation="may_contain")
    return story


@_kind
def harmless_switch(home: Home) -> Story:
    """A new food that no source speaks of; what is behind it (season) is on no record."""
    story = Story(home)
    _beside(story)
    _live(story)
    _old_food(story)
    made = home.food("kangaroo meal")
    home.feed(story.pet, made, _before(story))
    story.foods.append(made)
    story.never.append(f"food:{made.id}")
    story.blamed.append((f"food:{made.id}", made.name))
    return story


@_kind
def in_both_foods(home: Home) -> Story:
    """A switch between two foods that both hold the trigger."""
    story = Story(home)
    _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story, _listed(story))
    made = home.food(_listed(story))
    home.feed(story.pet, made, _before(story))
    story.foods.append(made)
    story.never.append(f"food:{made.id}")
    story.blamed.append((f"food:{made.id}", made.name))
    return story


@_kind
def switched_too_late(home: Home) -> Story:
    """The food changed days after the scratching had begun."""
    story = Story(home, onset=7)
    _trigger(story)
    _beside(story)
    _live(story, size=home.rng.uniform(1.6, 1.9))
    _old_food(story)
    made = home.food(_listed(story))
    home.feed(story.pet, made, 1)
    story.foods.append(made)
    story.never.append(f"food:{made.id}")
    story.blamed.append((f"food:{made.id}", made.name))
    return story


@_kind
def long_standing(home: Home) -> Story:
    """The trigger has been in the bowl all along."""
    story = Story(home)
    _trigger(story)
    _beside(story)
    _live(story)
    made = _old_food(story, _listed(story))
    story.never.append(f"food:{made.id}")
    story.blamed.append((f"food:{made.id}", made.name))
    return story


@_kind
def another_pets_food(home: Home) -> Story:
    story = Story(home)
    _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story)
    made = home.food(_listed(story))
    home.feed(home.other, made, _before(story))
    story.never.append(f"food:{made.id}")
    return story


# --- medicine, parasites, places, devices ------------------------------------------------------------


@_kind
def side_effect(home: Home) -> Story:
    rng = home.rng
    fits = [med for med, (_, hosts, *_rest) in SIDE_EFFECTS.items() if home.pet.species in hosts]
    med = rng.choice(fits)
    prop, _, words, sentence, sign = SIDE_EFFECTS[med]
    story = Story(home, prop=prop, way="down" if prop in ("intake", "activity") else "up")
    story.verdict = story.way
    _beside(story)
    _live(story)
    _old_food(story)
    what = rng.choice(words)
    at_ms = home.log(story.pet, what, _before(story, 1, 6))
    _by_medicine(story, med, what, at_ms, sentence, sign=sign)
    return story


def _by_medicine(
    story: Story, med: str, what: str, at_ms: int, sentence: str, *, sign: str = "sign:appetite_loss"
) -> None:
    """A medicine's side effect as a true cause."""
    home, pet, prop, host = story.home, story.pet, story.prop, story.pet.species
    relation = "treated_with" if med == "med:vaccine" else "takes"

    def facts() -> tuple[Fact, ...]:
        return (
            home.figure_fact(pet, prop),
            home.logged_fact(pet, what, f"edge:pet:{pet.id}|{relation}|{med}|{at_ms}"),
            home.said_fact(sentence, f"edge:{med}|side_effect[{host}]|{sign}|-"),
        )

    story.causes.append(Cause(med, f"the {what}", facts))
    story.blamed.append((med, f"the {what}"))


def _lapse(story: Story, *, true: bool = True) -> None:
    """A flea treatment that ran out before the onset; a true cause unless told otherwise."""
    home, pet, host = story.home, story.pet, story.pet.species
    back = _before(story, 1, 10) + 30
    at_ms = home.log(pet, "flea treatment", back)

    def facts() -> tuple[Fact, ...]:
        return (
            home.figure_fact(pet, "scratch"),
            home.logged_fact(pet, "flea treatment", f"edge:pet:{pet.id}|treated_with|med:flea_treatment|{at_ms}"),
            home.said_fact(FLEA_SENTENCE, f"edge:med:flea_treatment|prevents[{host}]|condition:flea_allergy|-"),
            home.said_fact(FLEA_SIGN, f"edge:condition:flea_allergy|has_sign[{host}]|sign:itch|-"),
        )

    story.has.add("fleas")
    if true:
        also = (f"edge:med:flea_treatment|prevents[{host}]|condition:flea_infestation|-", _INFESTED.format(host=host))
        story.causes.append(Cause("med:flea_treatment", "the flea treatment running out", facts, also))


@_kind
def lapsed_protection(home: Home) -> Story:
    story = Story(home)
    _beside(story, fleas=False)
    _live(story)
    _old_food(story)
    _lapse(story)
    return story


@_kind
def renewed_protection(home: Home) -> Story:
    """A treatment that ran out and was renewed the same day."""
    story = Story(home)
    _beside(story, fleas=False)
    _live(story)
    _old_food(story)
    back = _before(story, 2, 9)
    home.log(story.pet, "flea treatment", back + 30)
    home.log(story.pet, "flea treatment", back)
    story.has.add("fleas")
    story.never.append("med:flea_treatment")
    return story


def _stay(story: Story, *, agent: str = "flea", sentence: str = KENNEL_SENTENCE) -> None:
    """A stay at the boarding kennel before the onset; a true cause by what was met there, none without an agent."""
    home, pet, host = story.home, story.pet, story.pet.species
    what = home.rng.choice((f"boarding at {home.place}", f"kennel stay at {home.place}", f"boarded at {home.place}"))
    at_ms = home.log(pet, what, _before(story, 3, 9), every="3d")

    if not agent:
        return
    condition, causing, showing = _ITCHING[agent]

    def facts() -> tuple[Fact, ...]:
        return (
            home.figure_fact(pet, "scratch"),
            home.logged_fact(pet, what, f"edge:pet:{pet.id}|was_at|place:lodge|{at_ms}"),
            home.said_fact(sentence, f"edge:place:boarding_kennel|has_agent|agent:{agent}|-"),
            home.said_fact(causing, f"edge:agent:{agent}|may_cause[{host}]|condition:{condition}|-"),
            home.said_fact(showing, f"edge:condition:{condition}|has_sign[{host}]|sign:itch|-"),
        )

    infested = f"edge:agent:flea|may_cause[{host}]|condition:flea_infestation|-", _INFESTED.format(host=host)
    also = infested if agent == "flea" else ()
    story.causes.append(Cause("place:lodge", f"the stay at {home.place}", facts, also))
    story.blamed.append(("place:lodge", f"the stay at {home.place}"))


@_kind
def kennel(home: Home) -> Story:
    story = Story(home)
    _beside(story)
    _live(story)
    _old_food(story)
    _stay(story)
    return story


@_kind
def another_collar(home: Home) -> Story:
    """The tracker was swapped; the new one reads higher, the pet does as ever."""
    story = Story(home, prop=home.rng.choice(("scratch", "restless")))
    _beside(story)
    _live(story)
    _old_food(story)
    pet = story.pet
    old = next(d for d in home.devices if d[0] == f"tracker-{pet.id}")
    at_ms = home.at(home.day(story.onset), 1)
    home.devices[home.devices.index(old)] = (*old[:3], 0, at_ms)
    new = home.device("tracker", pet.id, name=f"tracker2-{pet.id}", from_ms=at_ms)
    home.beats(new)

    def facts() -> tuple[Fact, ...]:
        (span,) = home.spans("log", f"({new}) serves {pet.name}", within="household")
        record = f"log:binding-{new}-{pet.id}@{at_ms}"
        swapped = Fact(
            f"{pet.id} wears {new}", (record,), f"edge:pet:{pet.id}|uses_device|device:{new}|{at_ms}", (span,)
        )
        return (home.figure_fact(pet, story.prop), swapped)

    story.causes.append(Cause(f"device:{new}", "the new collar", facts))
    return story


# --- two causes, refuted causes, contradictions -------------------------------------------------------


@_kind
def food_and_lapse(home: Home) -> Story:
    story = Story(home)
    sentence = _trigger(story)
    _beside(story, fleas=False)
    _live(story)
    _old_food(story)
    _new_food(story, sentence, back=_before(story))
    _lapse(story)
    return story


@_kind
def food_and_kennel(home: Home) -> Story:
    story = Story(home)
    sentence = _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story)
    _new_food(story, sentence, back=_before(story))
    _stay(story)
    return story


@_kind
def marked_wrong(home: Home) -> Story:
    """The owner said it is not the food; nothing else changed."""
    story = Story(home)
    _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story)
    made = home.food(_listed(story))
    home.feed(story.pet, made, _before(story))
    story.foods.append(made)
    home.mark(hypothesis=f"food:{made.id}>sign:itch@pet:{story.pet.id}")
    story.never.append(f"food:{made.id}")
    story.blamed.append((f"food:{made.id}", made.name))
    return story


@_kind
def tolerated(home: Home) -> Story:
    """A vet's trial found that the new food's trigger is tolerated."""
    story = Story(home)
    _trigger(story)
    _beside(story)
    _live(story)
    _old_food(story)
    made = home.food(_listed(story))
    home.feed(story.pet, made, _before(story))
    story.foods.append(made)
    home.note(story.pet, f"Re-fed {story.trigger[0]} 14 d, no flare. Skin good.", 66)
    story.has.add("note")
    story.never.append(f"food:{made.id}")
    story.blamed.append((f"food:{made.id}", made.name))
    return story


@_kind
def ruled_out_beside_a_lapse(home: Home) -> Story:
    """Food allergy was ruled out; the flea treatment ran out in the same weeks."""
    story = Story(home)
    _trigger(story)
    _beside(story, fleas=False)
    _live(story)
    _old_food(story)
    made = home.food(_listed(story))
    home.feed(story.pet, made, _before(story))
    story.foods.append(made)
    home.note(story.pet, "Diet trial done, food allergy ruled out.", 60)
    story.has.add("note")
    story.never.append(f"food:{made.id}")
    _lapse(story)
    return story


@_kind
def contradiction(home: Home) -> Story:
    """Two notes disagree about one food."""
    story = Story(home, verdict="usual")
    _trigger(story)
    _beside(story)
    _live(story, size=1.0)
    _old_food(story)
    word = story.trigger[0]
    home.note(story.pet, f"Itchy skin, ears clean. Suspect {word} sensitivity.", 180)
    home.note(story.pet, f"Re-fed {word} 14 d, no flare. Skin good.", 90)
    story.disputed = word
    story.has.add("note")
    return story


# --- nothing there ------------------------------------------------------------------------------------


@_kind
def season(home: Home) -> Story:
    """Pollen, which nobody writes down: the change is there, no cause is on file."""
    story = Story(home)
    _beside(story)
    _live(story)
    _old_food(story)
    return story


@_kind
def pain(home: Home) -> Story:
    """Less activity for a reason no record holds."""
    story = Story(home, prop="activity", way="down", verdict="down")
    _beside(story)
    _live(story)
    _old_food(story)
    return story


@_kind
def nothing(home: Home) -> Story:
    """Nothing changed, whatever the owner asks."""
    story = Story(home, prop=home.rng.choice(("scratch", "intake")), verdict="usual")
    story.way = "down" if story.prop == "intake" else "up"
    _beside(story)
    _live(story, size=1.0)
    made = _old_food(story)
    story.never.append(f"food:{made.id}")
    return story


@_kind
def thin(home: Home) -> Story:
    """A pet of a few days: too early for a usual."""
    story = Story(home, prop=home.rng.choice(("scratch", "intake")), verdict="cannot_tell", onset=-1)
    story.way = "down" if story.prop == "intake" else "up"
    _live(story, size=1.0, days=home.rng.randint(8, 15))
    story.absent["usual"] = ((story.prop,), "")
    return story


@_kind
def silent_bowl(home: Home) -> Story:
    """The bowl was off for a day and a half; the owner thinks the pet did not eat."""
    story = Story(home, prop="intake", way="down", verdict="cannot_tell", onset=-1)
    home.device("food_bowl", story.pet.id)
    home.device("tracker", story.pet.id)
    home.device("tracker", home.other.id)
    home.device("food_bowl", home.other.id)
    for prop in ("scratch", "rest"):
        home.worn(story.pet, prop)
    home.worn(home.other, "rest", days=40)
    back = home.rng.randint(2, 4)
    start, end = home.at(home.day(back + 1), 21, 40), home.at(home.day(back - 1), 8, 15)
    home.eats(story.pet, silent=(start, end))
    home.eats(home.other, days=30)
    for device, *_ in list(home.devices):
        home.beats(device)
    _beside(story)
    _old_food(story)
    story.silent_day = home.day(back)
    return story


@_kind
def no_tracker(home: Home) -> Story:
    story = Story(home, verdict="absent")
    _beside(story)
    _live(story, skip=("tracker",))
    _old_food(story)
    story.absent["scratch"] = (("scratch",), "tracker")
    return story


@_kind
def shared_bowl(home: Home) -> Story:
    story = Story(home, prop="intake", way="down", verdict="absent")
    both = "+".join(sorted((story.pet.id, home.other.id)))
    home.device("food_bowl", both)
    home.device("tracker", story.pet.id)
    home.device("tracker", home.other.id)
    for prop in ("scratch", "rest"):
        home.worn(story.pet, prop)
    home.worn(home.other, "rest", days=40)
    home.eats(story.pet, share=both)
    for device, *_ in list(home.devices):
        home.beats(device)
    _beside(story)
    story.absent["intake"] = (("whose", "intake"), "food_bowl")
    return story


@_kind
def richer_food(home: Home) -> Story:
    """Fewer grams of a richer food: about the same energy."""
    story = Story(home, prop="intake", way="down", verdict="usual", onset=home.rng.randint(12, 16))
    rng = home.rng
    poor, rich = rng.uniform(80, 95), rng.uniform(340, 390)
    _beside(story)
    _live(story, size=poor / rich)
    lean = home.food("ostrich", kcal=round(poor))
    home.feed(story.pet, lean, HISTORY_DAYS - 1)
    made = home.food("dried ostrich", kcal=round(rich))
    home.feed(story.pet, made, story.onset, hour=1)
    story.foods += [lean, made]
    return story


# --- rivals of unequal evidence -----------------------------------------------------------------------

# Each hidden cause is drawn first, by what is known of its frequency; then the records are drawn from it.
# A record is right as often as its kind is, so the better one of two is the true one more often, not always.

FOUND_IN_100 = {  # of 100 animals with a diagnosed food allergy (Mueller, Olivry & Prelaud 2016)
    "dog": {"beef": 34, "chicken": 15, "wheat": 13, "soy": 6, "lamb": 5, "egg": 4},
    "cat": {"beef": 18, "chicken": 5, "lamb": 3},
}
_COMMON = {"dog": ("beef", "chicken", "wheat"), "cat": ("beef", "chicken")}  # as the shipped guide has it
_LESS = {"dog": ("soy", "lamb", "egg"), "cat": ("lamb",)}
_LESS_COMMON = {
    "dog": "Soy, lamb, egg and maize are less commonly reported triggers in dogs with a diagnosed food allergy.",
    "cat": "Lamb is a less commonly reported trigger in cats with a diagnosed food allergy.",
}
_FOWL = 7
"""Species that "poultry" may be: chicken, turkey, duck, goose, quail, pheasant, guinea fowl."""
_BOOK_IS_RIGHT = 0.8
_LEAFLET = (
    "Furosemide can have the side effect of vomiting, loose stools, thirst, poor appetite, restlessness, itching, "
    "coughing, weight loss, limping and seizures in dogs and cats."
)
_LEAFLET_SIGNS, _ANTIBIOTIC_SIGNS = 10, 3
_CARRIED = "Boarding kennels can carry fleas, ticks, mange mites, ear mites, worms and kennel cough."
_CARRIED_AGENTS = 6
_ITCHING = {  # agents of those six that the shipped guide joins to itching: (condition, the two sentences)
    "flea": ("flea_allergy", FLEA_CAUSE, FLEA_SIGN),
    "mange_mite": (
        "mange",
        "Mange mites may cause mange in dogs and cats.",
        "Mange in dogs and cats shows as itching",
    ),
}


def _rival(tell: Callable[[Home], Story]) -> Callable[[Home], Story]:
    RIVALS[tell.__name__] = tell
    return tell


def _drawn(story: Story, weights: dict[str, float]) -> str:
    """The hidden cause: one of the keys, by its weight."""
    return story.home.rng.choices(list(weights), list(weights.values()))[0]


def _fed(story: Story, *listed: str, back: int) -> Made:
    """Another food put into the bowl; whether it is a cause is not said."""
    made = story.home.food(*listed)
    story.home.feed(story.pet, made, back)
    story.foods.append(made)
    return made


def _by_food(
    story: Story, made: Made, what: str, *, words: str, sentence: str = "", relation: str = "contains"
) -> None:
    """The food as the true cause, by one ingredient of its label."""
    story.trigger = (what, what.capitalize(), f"species:{what}")
    host = story.pet.species
    common = f"{what.capitalize()} is a commonly reported trigger in {host}s with a diagnosed food allergy."
    said = sentence or (common if what in _COMMON[host] else _LESS_COMMON[host])
    story.causes.append(_food_cause(story, made, said, words=words, relation=relation))
    story.blamed.append((f"food:{made.id}", made.name))


def _common_and_less(story: Story) -> tuple[list[str], str]:
    """A common trigger of this host and a less common one, in any order, and which of them this pet cannot take."""
    home, host = story.home, story.pet.species
    if host == "cat":  # the shipped guide names lamb for dogs alone
        home.book("Skin and food", [f"What is in the bowl is asked first. {_LESS_COMMON[host]}"])
    both = [home.rng.choice(_COMMON[host]), home.rng.choice(_LESS[host])]
    true = _drawn(story, {what: FOUND_IN_100[host][what] for what in both})
    return home.rng.sample(both, 2), true


def _turns(story: Story) -> tuple[int, int]:
    """Days back of two changes in time, the earlier one first."""
    return _before(story, 11, 17), _before(story, 2, 8)


@_rival
def two_new_foods(home: Home) -> Story:
    """Two foods in turn, each with another trigger; which one the pet cannot take goes by the study's figures."""
    story = Story(home)
    both, true = _common_and_less(story)
    _beside(story)
    _live(story)
    _old_food(story)
    for what, back in zip(both, _turns(story), strict=True):
        made = _fed(story, f"{what} protein", back=back)
        if what == true:
            _by_food(story, made, what, words=f"{what} protein")
    return story


@_rival
def two_triggers_in_one_food(home: Home) -> Story:
    """One new food with both: the cause is the same, which chain is true is not."""
    story = Story(home)
    both, true = _common_and_less(story)
    _beside(story)
    _live(story)
    _old_food(story)
    made = _fed(story, *(f"{what} protein" for what in both), back=_before(story))
    _by_food(story, made, true, words=f"{true} protein")
    return story


@_rival
def named_or_perhaps(home: Home) -> Story:
    """A food whose poultry may be chicken, then one that names it: the pet cannot take chicken."""
    story = Story(home)
    perhaps = home.rng.randrange(_FOWL) == 0
    _beside(story)
    _live(story)
    _old_food(story)
    backs = _turns(story)
    first, second = _fed(story, "poultry meal", back=backs[0]), _fed(story, "chicken meal", back=backs[1])
    if perhaps:
        _by_food(story, first, "chicken", words="poultry meal", relation="may_contain")
    _by_food(story, second, "chicken", words="chicken meal")
    return story


@_rival
def books_disagree(home: Home) -> Story:
    """Three books on one meat, each right four times in five; a food with it, and a flea treatment run out.

    Where the meat is a trigger it was the food, else it was the fleas. Drawn again where no book speaks
    against, or none for it: then nothing is contradicted.
    """
    story = Story(home)
    rng, host = home.rng, story.pet.species
    meat = rng.choice(("duck", "turkey", "venison", "rabbit", "goat"))
    claims = f"{meat.capitalize()} is a trigger in {host}s with a diagnosed food allergy."
    denies = f"{meat.capitalize()} does not cause food allergy in {host}s."
    while True:
        trigger = rng.random() < 0.5
        votes = [(rng.random() < _BOOK_IS_RIGHT) == trigger for _ in range(3)]
        if 0 < sum(votes) < len(votes):
            break
    for title, vote in zip(rng.sample(BOOKS, 3), votes, strict=True):
        home.book(title, [f"Owners ask what is in the bowl. {claims if vote else denies} Ask your vet."])
    _beside(story, fleas=False)
    _live(story)
    _old_food(story)
    made = _fed(story, f"{meat} meal", back=_before(story))
    if trigger:
        _by_food(story, made, meat, words=f"{meat} meal", sentence=claims)
    _lapse(story, true=not trigger)
    return story


@_rival
def suspected_then_ruled_out(home: Home) -> Story:
    """A vet first suspected a food allergy and later ruled it out by a trial; a food, and fleas.

    As trials go the vet's is right: it was the fleas.
    """
    story = Story(home)
    _trigger(story)
    _beside(story, fleas=False)
    _live(story)
    _old_food(story)
    made = _fed(story, _listed(story), back=_before(story))
    home.note(story.pet, "Itchy skin, ears clean. Suspect food allergy.", home.rng.randint(150, 220))
    home.note(story.pet, "Diet trial done, food allergy ruled out.", home.rng.randint(50, 66))
    story.has.add("note")
    story.never.append(f"food:{made.id}")
    _lapse(story)
    return story


@_rival
def leaflet_of_everything(home: Home) -> Story:
    """Two medicines begun in turn: one can do three things, the other's leaflet lists ten, each as likely as the next."""
    story = Story(home, prop="intake", way="down", verdict="down")
    rng = home.rng
    home.book("Home vet", [f"Read the leaflet. {_LEAFLET} Ask before stopping."])
    known = {
        "med:antibiotic": (rng.choice(SIDE_EFFECTS["med:antibiotic"][2]), SIDE_EFFECTS["med:antibiotic"][3]),
        "med:heart_med": ("furosemide tablet", _LEAFLET),
    }
    true = _drawn(story, {"med:antibiotic": 1 / _ANTIBIOTIC_SIGNS, "med:heart_med": 1 / _LEAFLET_SIGNS})
    _beside(story)
    _live(story)
    _old_food(story)
    backs = rng.sample((_before(story, 1, 6), _before(story, 7, 12)), 2)
    for (med, (what, sentence)), back in zip(known.items(), backs, strict=True):
        at_ms = home.log(story.pet, what, back)
        if med == true:
            _by_medicine(story, med, what, at_ms, sentence)
    return story


@_rival
def kennel_of_everything(home: Home) -> Story:
    """A food with a common trigger, and a stay at a kennel that a book says carries six things, one of which was met."""
    story = Story(home)
    meat = home.rng.choice(("beef", "chicken"))
    home.book("The itchy pet", [f"On kennels. {_CARRIED} Ask first."])
    true = _drawn(story, {"food": 1.0, **dict.fromkeys(_ITCHING, 1 / _CARRIED_AGENTS)})
    _beside(story)
    _live(story)
    _old_food(story)
    made = _fed(story, f"{meat} meal", back=_before(story, 3, 9))
    if true == "food":
        _by_food(story, made, meat, words=f"{meat} meal")
    _stay(story, agent="" if true == "food" else true, sentence=_CARRIED)
    return story


def whole(home: Home, *, removed: bool) -> Story:
    """Everything on file that the pair's questions ask for; in its twin each gold fact is gone."""
    story = Story(home, verdict="usual")
    rng = home.rng
    weight = f"weight {rng.randint(38, 320) / 10} kg"
    backs = [rng.randint(3, 18), rng.randint(30, 60), rng.randint(4, 60)]
    story.has = set() if removed else {"fleas", "weight", "worming", "water", "label"}
    made = home.food("ostrich", "salmon meal", label=not removed)
    story.trigger = ("salmon", "Salmon", "species:salmon")
    story.foods.append(made)
    _live(story, size=1.0, skip=("tracker",) if removed else ())
    if not removed:
        home.feed(story.pet, made, HISTORY_DAYS - 1)
        for what, back in zip(("flea treatment", "worming tablet", weight), backs, strict=True):
            home.log(story.pet, what, back)
    home.log(home.other, "flea treatment", rng.randint(5, 25))
    home.log(home.other, "weight 9.4 kg", rng.randint(5, 25))
    story.has.add("pair")
    if removed:
        story.absent |= {
            "fleas": (("parasite", "log", "medicine", "flea_treatment"), "people"),
            "worming": (("parasite", "log", "medicine", "worming"), "people"),
            "weight": (("weight",), "scale"),
            "water": (("water",), "water_bowl"),
            "scratch": (("scratch",), "tracker"),
            "rest": (("rest",), "tracker"),
            "label": (("label",), ""),
            "food": (("food",), "food_bowl"),
        }
    return story
