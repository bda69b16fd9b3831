"""The scenarios without a cause: what looks like one, by date, pet, species, form or record, and is none.

They are asked about by themselves, and laid as distractors over the others.
"""

from __future__ import annotations

from gateway.ask.causes import hypothesis
from gateway.model import Vertex
from tests.scenario_kinds import DENIED, meets, own_series, quiet, stays, swap, takes

# --- no cause: food -----------------------------------------------------------------------------------


@quiet()
def nothing_changed(home):
    """Only what the town holds and the distractors."""


@quiet("food")
def long_standing_food(home):
    home.eats(home.food(home.allergen(), home.harmless()), -home.rng.uniform(60, 400))


@quiet("food")
def the_same_ingredient_in_both_foods(home):
    source = home.allergen()
    home.switch(home.food(source, home.harmless()), old=home.food(f"{source} meal"))


@quiet("food")
def the_same_set_in_both_foods(home):
    home.switch(home.food("poultry meal"), old=home.food("poultry meal", home.town.harmless[1]))


@quiet("food")
def a_set_that_may_hold_what_the_old_food_held(home):
    home.switch(home.food("poultry meal"), old=home.food(home.town.poultry))


@quiet("food")
def an_ingredient_of_years_ago_without_the_sign(home):
    source = home.allergen()
    home.eats(home.food(source), -400, -120)
    day = home.day()
    home.eats(home.food(home.harmless()), -120, day)
    home.eats(home.food(source), day)


@quiet("food")
def the_same_food_opened_again(home):
    food = home.food(home.allergen())
    home.eats(food, -200, -8)
    home.eats(food, -8)


@quiet("food")
def a_food_changed_after_it_began(home):
    home.switch(home.food(home.allergen()), day=home.after(0.4))


@quiet("food")
def a_food_changed_weeks_before(home):
    home.switch(home.food(home.allergen()), day=home.day(-55, -25.5))


@quiet("food")
def a_food_without_any_link(home):
    home.switch(home.food(home.harmless()), old=home.food(home.allergen()))


@quiet("food")
def a_food_without_a_label(home):
    home.switch(home.food(), old=home.food(home.allergen()))


@quiet("food")
def a_hydrolysed_form(home):
    home.switch(home.food(f"hydrolysed {home.allergen()} protein", home.harmless()))


@quiet("food")
def only_the_fat(home):
    home.switch(home.food(f"{home.rng.choice(home.town.allergens[2:])} fat", home.harmless()))


@quiet("food")
def a_sibling_in_its_group(home):
    home.switch(home.food(home.town.sibling), old=home.food(home.town.harmless[2]))


@quiet("food")
def a_group_that_was_in_the_old_food_too(home):
    home.book_of_group()
    home.switch(home.food("shrimp"), old=home.food("mussel"))


@quiet("food")
def what_only_the_books_on_the_other_species_say(home):
    source = home.harmless()
    home.say(f"species:{source}", f"may_cause[{home.town.other_host}]", home.town.food_conditions[1], by="passage")
    home.switch(home.food(source), old=home.food(home.allergen()))


@quiet("food")
def an_ingredient_a_second_record_refutes(home):
    source = home.allergen()
    new = home.food(source)
    home.testify(home.holding(new, source), by="vet_note", mass=DENIED, witness="maker")
    home.testify(home.holding(new, source), by="vet_note", mass=DENIED, witness="laboratory")
    home.switch(new)


@quiet("food")
def a_feeding_that_was_denied(home):
    ate = home.switch(home.food(home.allergen()))
    for witness in ("owner", "sitter"):
        home.testify(ate, by="vet_note", mass=DENIED, witness=witness)


@quiet("food")
def an_unsupported_edge(home):
    """An edge whose every evidence is gone: unknown, not true."""
    source = home.harmless()
    edge = home.say(f"species:{source}", f"may_cause[{home.host}]", home.town.food_conditions[0], by="passage")
    home.evidence[edge.ref].clear()
    home.switch(home.food(source), old=home.food(home.allergen()))


@quiet("food")
def a_denied_link_of_the_books(home):
    source = home.harmless()
    tail, relation = f"species:{source}", f"may_cause[{home.host}]"
    home.say(tail, relation, home.town.food_conditions[0], by="passage", mass=DENIED)
    home.say(tail, relation, home.town.food_conditions[0], by="vet_note", mass=DENIED)
    home.switch(home.food(source), old=home.food(home.allergen()))


@quiet("food")
def an_ingredient_the_owner_marked_wrong(home):
    source = home.allergen()
    new = home.food(source)
    home.walls.add(home.holding(new, source).ref)
    home.switch(new)


@quiet("food")
def a_hypothesis_the_owner_marked_wrong(home):
    ate = home.switch(home.food(home.allergen()))
    home.wrong.add(hypothesis(ate.head, Vertex(home.pet), Vertex(home.sign)))


@quiet("food")
def an_ingredient_that_is_tolerated(home):
    source = home.allergen()
    home.say(home.pet, "tolerates", f"species:{source}", home.at(-90), by="vet_note")
    home.switch(home.food(source), old=home.food(home.harmless()))


@quiet("food", "ruled_out")
def a_condition_that_was_ruled_out(home):
    for condition in home.town.food_conditions:
        home.say(home.pet, "ruled_out", condition, home.at(3), by="vet_note")
    home.switch(home.food(home.allergen()), old=home.food(home.harmless()))


@quiet("food")
def only_the_other_pets_food_changed(home):
    old, new = home.food(home.harmless()), home.food(home.allergen())
    home.eats(old, -200, -6, pet=home.town.others[0])
    home.eats(new, -6, pet=home.town.others[0])
    home.eats(old, -250)


# --- no cause: medicine and protection ----------------------------------------------------------------


@quiet("parasite")
def protection_renewed_in_time(home):
    for start in (-65, -35, -5):
        takes(home, "med:spot_on", start, start + 30, relation="treated_with")


@quiet("parasite")
def protection_changed_to_another_brand(home):
    takes(home, "med:spot_on", -37, -7, relation="treated_with")
    takes(home, "med:flea_tablet", -8, 22, relation="treated_with")


@quiet("parasite")
def protection_still_lasting(home):
    takes(home, "med:spot_on", -10, 20, relation="treated_with")


@quiet("parasite")
def protection_that_ran_out_after_it_began(home):
    takes(home, "med:spot_on", -25, home.after(0.3), relation="treated_with")


@quiet("parasite")
def protection_that_ran_out_long_before(home):
    takes(home, "med:spot_on", -90, -60, relation="treated_with")


@quiet("parasite")
def a_worming_that_ran_out(home):
    takes(home, "med:wormer", -97, -7, relation="treated_with")


@quiet("parasite")
def a_collar_worn_and_renewed_for_years(home):
    for start in (-250, -130, -10):
        takes(home, "med:collar", start, start + 121, relation="treated_with")


@quiet("medicine")
def a_medicine_without_that_effect(home):
    takes(home, "med:mild", home.day())


@quiet("medicine")
def a_medicine_taken_for_long(home):
    takes(home, "med:harsh", -200)


@quiet("medicine")
def a_prescription_renewed(home):
    for start in (-68, -38, -8):
        takes(home, "med:harsh", start, start + 30)


@quiet("medicine")
def a_medicine_begun_after_it(home):
    takes(home, "med:harsh", home.after(0.2))


@quiet("medicine")
def a_medicine_changed_to_another_brand(home):
    takes(home, "med:remedy", -90, -9)
    takes(home, "med:other_remedy", -9)


@quiet("medicine")
def a_medicine_stopped_after_it_began(home):
    takes(home, "med:remedy", -60, home.after(0.2))


@quiet("medicine")
def only_the_other_pets_medicine_stopped(home):
    home.say(home.town.others[1], "takes", "med:remedy", home.at(-80), home.at(-5))


# --- no cause: places, visitors, devices, and what is always so ---------------------------------------


@quiet("place")
def a_place_that_carries_nothing(home):
    stays(home, "place:park", home.day(), -0.2)


@quiet("place")
def a_place_that_carries_something_else(home):
    stays(home, "place:clinic", -5, -4.8)


@quiet("place")
def a_kennel_after_it_began(home):
    stays(home, "place:kennel", home.after(0.1), home.after(0.9))


@quiet("place")
def a_kennel_long_ago(home):
    stays(home, "place:kennel", -90, -80)


@quiet("place")
def only_the_other_pet_was_at_the_kennel(home):
    stays(home, "place:daycare", -8, -6, pet=home.town.others[0])


@quiet("visitor")
def a_visitor_who_carries_nothing(home):
    meets(home, "visitor:aunt", home.day())


@quiet("visitor")
def a_dog_that_visited_after_it_began(home):
    meets(home, "visitor:dog", home.after(0.4))


@quiet("visitor")
def a_dog_that_visited_long_ago(home):
    meets(home, "visitor:dog", -70)


@quiet("device")
def a_new_device_for_something_else(home):
    series = own_series(home)
    other = next(s for s in home.series_of(home.pet) if s != series and not home.indicates(s))
    home.say("device:new", "captures", other, by="tracker")
    home.say(home.pet, "uses_device", "device:new", home.at(-6), None)


@quiet("device")
def the_other_pets_device_was_changed(home):
    other = home.town.others[0]
    home.say("device:new", "captures", next(iter(home.series_of(other))), by="tracker")
    home.say(other, "uses_device", "device:new", home.at(-6), None)


@quiet("device")
def a_device_changed_after_it_began(home):
    swap(home, home.after(0.4))


@quiet("history")
def a_breed_that_is_prone_to_it(home):
    home.say(home.town.breed, f"prone_to[{home.host}]", home.town.diseases[2], by="passage")


@quiet("history")
def a_diagnosis_of_old(home):
    home.say(home.pet, "diagnosed_with", home.town.diseases[1], home.at(-300), None, by="vet_note")


@quiet("history")
def a_series_that_moves_together(home):
    one, other = home.series_of(home.pet)[:2]
    home.say(one, "correlates_with", other, home.at(-20), None, by="hub")
