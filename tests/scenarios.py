"""The scenarios: kinds of homes in which a pet's sign began, each with its hidden truth.

A kind is a function that tells one pet's story into a `Home` and returns the true chains,
none where nothing on file is the cause. A world is a kind told in one seed's home, over which
distractors are laid: kinds without a cause, in slots the kind leaves alone (a lapsed treatment
is asked about beside a food that changed too late, a kennel nobody got fleas in...).
"""

from __future__ import annotations

import random
from functools import cache

from gateway.ask.causes import hypothesis
from gateway.model import Mass, Vertex
from tests.scenario_homes import DAY, Home, Interval, World
from tests.scenario_kinds import KINDS, cause, meets, own_series, stays, swap, takes
from tests.scenario_quiet import long_standing_food

_DISTRACTORS = 0.6  # chance that a slot the kind leaves alone gets a distractor


@cache
def drawn(name, seed) -> World:
    """One kind in one seed's home, with distractors in the slots it leaves alone."""
    kind, rng = KINDS[name], random.Random(f"{name} {seed} distractors")
    home = Home(seed, name)
    paths = kind.tell(home) or []
    taken = set(kind.slots)
    quiet_kinds = [other for other in KINDS.values() if not other.has_cause and other.slots]
    for other in rng.sample(quiet_kinds, len(quiet_kinds)):
        if not other.slots & taken and rng.random() < _DISTRACTORS:
            other.tell(home)
            taken |= other.slots
    if "food" not in taken:
        long_standing_food(home)
    return home.world(name, seed, paths)


# --- a cause: food ------------------------------------------------------------------------------------


@cause("food")
def new_ingredient(home):
    source = home.allergen()
    return home.by_food(home.switch(home.food(f"{source} meal", home.harmless())), source)


@cause("food")
def new_ingredient_beside_an_old_allergen(home):
    source = home.allergen()
    old = home.allergen(but=(source,))
    return home.by_food(home.switch(home.food(source, old), old=home.food(old)), source)


@cause("food")
def two_new_ingredients_in_one_food(home):
    first, second = home.rng.sample(home.town.allergens, 2)
    ate = home.switch(home.food(first, f"dried {second}"))
    return home.by_food(ate, first) + home.by_food(ate, second)


@cause("food")
def two_conditions_by_one_ingredient(home):
    source = home.town.allergens[1]
    paths = home.by_food(home.switch(home.food(source)), source)
    assert len(paths) == 2
    return paths


@cause("food")
def a_set_that_may_contain_it(home):
    ate = home.switch(home.food("poultry meal"), old=home.food(home.town.allergens[1]))
    return home.by_food(ate, home.town.poultry, "may_contain")


@cause("food")
def named_after_a_set_that_might_have_held_it(home):
    source = home.town.poultry
    return home.by_food(home.switch(home.food(source), old=home.food("poultry meal")), source)


@cause("food")
def a_group_the_book_speaks_of(home):
    home.book_of_group()
    return home.by_food(home.switch(home.food("shrimp")), "shellfish")


@cause("food")
def a_topper_beside_the_old_food(home):
    source = home.allergen()
    home.eats(home.food(home.harmless()), -200)
    return home.by_food(home.eats(home.food(source), home.day()), source)


@cause("food")
def changed_on_the_day_it_began(home):
    source = home.allergen()
    return home.by_food(home.switch(home.food(source), day=0.3), source)


@cause("food")
def changed_twenty_days_before(home):
    source = home.allergen()
    return home.by_food(home.switch(home.food(source), day=-20), source)


@cause("food")
def an_onset_known_to_the_week(home):
    source = home.allergen()
    home.onset = Interval(home.onset.start_ms, home.onset.start_ms + 6 * DAY)
    return home.by_food(home.switch(home.food(source), day=home.day(0, 4)), source)


@cause("food")
def a_shared_bowl(home):
    source = home.allergen()
    new, old, day = home.food(source), home.food(home.harmless()), home.day()
    for food, start, end in ((old, -200, day), (new, day, None)):
        home.eats(food, start, end, pet=home.town.others[0])
        until = None if end is None else home.at(end)
        ate = home.say(home.pet, "ate", food, home.at(start), until, by="bowl", mass=Mass(0.45))
    return home.by_food(ate, source)


@cause("food")
def a_label_of_many_vegetables(home):
    source = home.allergen()
    return home.by_food(home.switch(home.food(source, plants=30)), source)


@cause("food")
def a_source_hardly_believed(home):
    source = home.harmless()
    tail = f"species:{source}"
    home.say(tail, f"may_cause[{home.host}]", home.town.food_conditions[0], by="passage", mass=Mass(0.15))
    return home.by_food(home.switch(home.food(source), old=home.food(home.allergen())), source)


@cause("food")
def a_feeding_the_records_disagree_about(home):
    source = home.allergen()
    ate = home.switch(home.food(source))
    home.testify(ate, by="owner_log", mass=Mass(0.0, 0.5))
    return home.by_food(ate, source)


@cause("food")
def eaten_before_with_the_same_sign(home):
    source = home.allergen()
    home.eats(home.food(source), -260, -200)
    home.say(home.pet, "exhibits", home.sign, home.at(-240), home.at(-239), by="vet_note")
    day = home.day()
    home.eats(home.food(home.harmless()), -200, day)
    return home.by_food(home.eats(home.food(source), day), source)


@cause("food")
def a_harmless_switch_after_it(home):
    source = home.allergen()
    day = home.day(-13, -5)
    home.eats(home.food(home.harmless()), -200, day)
    ate = home.eats(home.food(source), day, day + 3)
    home.eats(home.food(home.harmless()), day + 3)
    return home.by_food(ate, source)


@cause("food")
def an_earlier_feeding_marked_wrong(home):
    source = home.allergen()
    home.walls.add(home.eats(home.food(source), -200, -100).ref)
    home.eats(home.food(home.harmless()), -100, -6)
    return home.by_food(home.eats(home.food(source), -6), source)


@cause("food")
def what_the_other_pet_always_ate(home):
    source = home.allergen()
    food = home.food(source)
    home.eats(food, -300, pet=home.town.others[0])
    return home.by_food(home.switch(food), source)


@cause("food")
def one_of_two_is_tolerated(home):
    fine, source = home.rng.sample(home.town.allergens, 2)
    home.say(home.pet, "tolerates", f"species:{fine}", home.at(-90), by="vet_note")
    return home.by_food(home.switch(home.food(fine, source)), source)


@cause("food")
def one_of_two_conditions_was_ruled_out(home):
    source = home.town.allergens[1]
    home.say(home.pet, "ruled_out", home.town.food_conditions[1], home.at(-40), by="vet_note")
    paths = home.by_food(home.switch(home.food(source)), source)
    return [path for path in paths if path[1][-2].head.name == home.town.food_conditions[0]]


@cause("food")
def what_is_tolerated_by_another_pet(home):
    source = home.allergen()
    home.say(home.town.others[1], "tolerates", f"species:{source}", home.at(-90), by="vet_note")
    return home.by_food(home.switch(home.food(source)), source)


@cause("food")
def a_set_where_the_old_food_had_another(home):
    ate = home.switch(home.food("meat and animal derivatives"), old=home.food(home.town.harmless[1]))
    sources = [s for s in home.town.allergens if f"edge:{ate.head}|may_contain|species:{s}|-" in home.edges]
    return [path for source in sources for path in home.by_food(ate, source, "may_contain")]


# --- a cause: medicine and protection -----------------------------------------------------------------


def _side_effect(home, taken):
    return [(taken.head.name, (taken, home.known(taken.head.name, f"side_effect[{home.host}]", home.sign)))]


def _lapse(home, given, relation, condition):
    kept = home.known(given.head.name, f"{relation}[{home.host}]", condition)
    return [(given.head.name, (given, kept, home.shows(condition)))]


@cause("medicine")
def a_medicine_with_that_side_effect(home):
    return _side_effect(home, takes(home, "med:harsh", home.day()))


@cause("medicine")
def a_medicine_taken_up_again_after_a_year(home):
    takes(home, "med:harsh", -360, -330)
    return _side_effect(home, takes(home, "med:harsh", home.day()))


@cause("medicine")
def a_short_course_before_it(home):
    day = home.day(-8, -3)
    return _side_effect(home, takes(home, "med:harsh", day, day + 2))


@cause("parasite")
def a_collar_with_that_side_effect(home):
    return _side_effect(home, takes(home, "med:collar", home.day(), 60, relation="treated_with"))


@cause("medicine")
def a_medicine_that_was_stopped(home):
    return _lapse(home, takes(home, "med:remedy", -90, home.day()), "treats", home.town.diseases[0])


@cause("medicine")
def replaced_by_one_that_does_not_help(home):
    day = home.day()
    takes(home, "med:mild", day)
    return _lapse(home, takes(home, "med:remedy", -90, day), "treats", home.town.diseases[0])


@cause("parasite")
def protection_ran_out(home):
    given = takes(home, "med:spot_on", -40, home.day(-12, -2), relation="treated_with")
    return _lapse(home, given, "prevents", home.town.parasitic)


@cause("parasite")
def protection_renewed_too_late(home):
    given = takes(home, "med:spot_on", -45, -15, relation="treated_with")
    takes(home, "med:spot_on", -6, 24, relation="treated_with")
    return _lapse(home, given, "prevents", home.town.parasitic)


@cause("parasite")
def protection_ran_out_a_day_beyond_the_three_weeks(home):
    given = takes(home, "med:spot_on", -52, -21.9, relation="treated_with")
    return _lapse(home, given, "prevents", home.town.parasitic)


@cause("parasite")
def renewed_with_what_guards_against_something_else(home):
    given = takes(home, "med:spot_on", -40, -9, relation="treated_with")
    takes(home, "med:wormer", -9, 80, relation="treated_with")
    return _lapse(home, given, "prevents", home.town.parasitic)


@cause("parasite")
def a_renewal_the_owner_took_back(home):
    given = takes(home, "med:spot_on", -38, -8, relation="treated_with")
    home.walls.add(takes(home, "med:spot_on", -8, 22, relation="treated_with").ref)
    return _lapse(home, given, "prevents", home.town.parasitic)


@cause("parasite")
def only_the_other_pet_was_treated_again(home):
    given = takes(home, "med:spot_on", -38, -8, relation="treated_with")
    home.say(home.town.others[0], "treated_with", "med:spot_on", home.at(-8), home.at(22))
    return _lapse(home, given, "prevents", home.town.parasitic)


# --- a cause: places, visitors, devices ---------------------------------------------------------------


@cause("place")
def a_stay_at_a_kennel(home):
    day = home.day(-12, -4)
    stay = stays(home, "place:kennel", day, day + 2)
    return home.by_agent(stay, home.known("place:kennel", "has_agent", "agent:flea"))


@cause("place")
def a_long_stay_that_ended_before_it(home):
    stay = stays(home, "place:kennel", -34, home.day(-10, -2))
    return home.by_agent(stay, home.known("place:kennel", "has_agent", "agent:flea"))


@cause("place")
def a_place_all_pets_went_to(home):
    day = home.day(-9, -3)
    for pet in home.town.others:
        stays(home, "place:daycare", day, day + 1, pet=pet)
    stay = stays(home, "place:daycare", day, day + 1)
    return home.by_agent(stay, home.known("place:daycare", "has_agent", "agent:flea"))


@cause("place")
def a_place_by_its_kind(home):
    stay = stays(home, "place:farm", -6, -5)
    of_kind = home.known("place:farm", "of_kind", "place:boarding_kennel")
    carries = home.known("place:boarding_kennel", "has_agent", "agent:mite")
    return [("place:farm", (stay, of_kind, carries, *tail)) for tail in home.tails("agent:mite")]


@cause("place")
def a_place_with_two_agents(home):
    carries = home.known("place:kennel", "has_agent", "agent:flea")
    mites = home.say("place:kennel", "has_agent", "agent:mite")
    stay = stays(home, "place:kennel", -6, -4)
    return home.by_agent(stay, carries) + home.by_agent(stay, mites)


@cause("visitor")
def a_dog_that_visited(home):
    visit = meets(home, "visitor:dog", home.day())
    return home.by_agent(visit, home.known("visitor:dog", "has_agent", "agent:flea"))


@cause("visitor")
def a_visitor_all_pets_met(home):
    day = home.day()
    for pet in home.town.others:
        meets(home, "visitor:dog", day, pet=pet)
    return home.by_agent(meets(home, "visitor:dog", day), home.known("visitor:dog", "has_agent", "agent:flea"))


def _by_device(home, uses):
    series = own_series(home)
    captures = next(e for e in home.edges.values() if e.ref.key.startswith(f"{uses.head}|captures|{series}|"))
    return [(uses.head.name, (uses, captures, home.known(series, "indicates", home.sign)))]


@cause("device")
def another_device_measures_it(home):
    return _by_device(home, swap(home, home.day()))


# --- rivals -------------------------------------------------------------------------------------------


@cause("food", "parasite")
def food_and_lapsed_protection(home):
    return new_ingredient(home) + protection_ran_out(home)


@cause("food", "place")
def food_and_a_kennel(home):
    return new_ingredient(home) + a_stay_at_a_kennel(home)


@cause("food")
def two_foods_in_one_week(home):
    first, second = home.rng.sample(home.town.allergens, 2)
    home.eats(home.food(home.harmless()), -200, -7)
    one, other = home.eats(home.food(first), -7, -3), home.eats(home.food(second), -3)
    return home.by_food(one, first) + home.by_food(other, second)


@cause("food", "medicine")
def food_and_a_medicine(home):
    return new_ingredient(home) + a_medicine_with_that_side_effect(home)


@cause("food", "device")
def food_and_a_new_device(home):
    return new_ingredient(home) + another_device_measures_it(home)


@cause("food", "visitor", "medicine")
def three_changes(home):
    return new_ingredient(home) + a_dog_that_visited(home) + a_medicine_that_was_stopped(home)


@cause("place", "visitor")
def a_kennel_and_a_visitor_by_one_agent(home):
    return a_stay_at_a_kennel(home) + a_dog_that_visited(home)


@cause("food", "medicine")
def one_of_two_is_marked_wrong(home):
    taken = takes(home, "med:harsh", home.day())
    home.wrong.add(hypothesis(taken.head, Vertex(home.pet), Vertex(home.sign)))
    return new_ingredient(home)
