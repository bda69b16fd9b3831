"""How owners put the questions: two halves that share no sentence.

Faults are looked for with `DEVELOPMENT` alone; `PUBLISHED` is what the table is asked with.
None of it was copied from the recogniser's tables. ``{name}``, ``{he}``, ``{him}``, ``{his}``,
``{self}``, ``{food}``, ``{thing}``, ``{other}`` and ``{day}`` are filled in from the household.
"""

from __future__ import annotations

__all__ = ["DEVELOPMENT", "PUBLISHED"]

DEVELOPMENT: dict[str, tuple[str, ...]] = {
    "why scratch up": (
        "What has got {name} scratching so much lately?",
        "How come {name} keeps scratching {self} this week?",
        "{name} is scratching a lot more these days, what's behind it?",
        "Any idea why {name} scratches more than {he} used to?",
        "Why all the extra scratching from {name} in the last week?",
        "My {name} won't stop scratching, why?",
    ),
    "why intake down": (
        "How come {name} has been eating less this week?",
        "Why is {name} leaving so much of {his} food lately?",
        "What could explain that {name} eats less these days?",
        "{name} hardly touches {his} bowl this week, why is that?",
    ),
    "why restless up": (
        "Why can't {name} settle at night these days?",
        "What makes {name} so restless at night this week?",
        "How come {name} tosses and turns more at night lately?",
    ),
    "why water up": (
        "Why is {name} drinking so much more this week?",
        "What's making {name} so thirsty lately?",
        "How come {name} drinks more than {he} used to?",
    ),
    "why activity down": (
        "Why has {name} been so lazy this week?",
        "How come {name} moves around less lately?",
        "What's the reason {name} is less active these days?",
    ),
    "blame scratch": (
        "Could {thing} be what makes {name} scratch?",
        "Is {name} scratching because of {thing}?",
        "Do you think {thing} is to blame for {name}'s scratching?",
    ),
    "blame intake": (
        "Could {thing} be why {name} eats less?",
        "Is {thing} the reason {name} is eating less?",
    ),
    "blame restless": (
        "Could {thing} be why {name} is restless at night?",
        "Is {name} restless at night because of {thing}?",
    ),
    "blame water": ("Could {thing} be why {name} drinks more?", "Is {name} drinking more because of {thing}?"),
    "blame activity": ("Could {thing} be why {name} is less active?", "Is {name} less active because of {thing}?"),
    "trend scratch": (
        "Is {name} scratching more than usual?",
        "Has {name}'s scratching gone up this week?",
        "Does {name} scratch more than normal at the moment?",
    ),
    "trend intake": (
        "Is {name} eating less than usual?",
        "Has {name}'s appetite dropped this week?",
    ),
    "contains": (
        "Does {food} have {thing} in it?",
        "Is there any {thing} in {food}?",
        "Does {food} contain {thing}?",
    ),
    "contains now": (
        "Is there {thing} in what {name} eats now?",
        "Does {name}'s current food contain {thing}?",
    ),
    "amount intake": (
        "How much did {name} eat yesterday?",
        "How many grams did {name} have from the bowl yesterday?",
        "What did {name} eat yesterday in grams?",
    ),
    "amount water": ("How much did {name} drink yesterday?", "How much water did {name} have yesterday?"),
    "amount rest": ("How long did {name} rest yesterday?", "How many hours did {name} rest yesterday?"),
    "amount scratch": ("How long did {name} scratch yesterday?", "How much scratching did {name} do yesterday?"),
    "since scratch": (
        "Since when has {name} been scratching more?",
        "When did {name}'s scratching start to go up?",
    ),
    "since intake": ("Since when has {name} been eating less?", "When did {name} start eating less?"),
    "flea date": (
        "When did {name} last get a flea treatment?",
        "When was {name}'s last flea treatment?",
        "What date was {name} last treated for fleas?",
    ),
    "worming date": ("When was {name} last wormed?", "When was {name}'s last worming?"),
    "weight": ("What does {name} weigh?", "How heavy is {name}?", "What was {name}'s last weight?"),
    "food since": (
        "How long has {name} been on {food}?",
        "Since when does {name} get {food}?",
    ),
    "vet said": ("What did the vet say about {name}?", "What's in {name}'s vet notes?"),
    "allergy": ("Is {name} allergic to {thing}?", "Does {name} have a {thing} allergy?"),
    "compare rest": ("Who rests more, {name} or {other}?", "Does {name} or {other} rest more?"),
    "ate on day": ("Did {name} eat anything on {day}?", "How much did {name} eat on {day}?"),
    "why down on day": ("Why did {name} stop eating on {day}?", "Why did {name} eat nothing on {day}?"),
    "wrong scratch": ("Why is {name} scratching less this week?", "How come {name} scratches less now?"),
    "wrong intake": ("Why is {name} eating more this week?", "How come {name} eats more these days?"),
    "why less since": (
        "Why is {name} eating less since we switched to {food}?",
        "How come {name} eats less since the new food?",
    ),
    "toxin": (
        "{name} just ate a piece of dark chocolate, what now?",
        "I think {name} swallowed some raisins",
        "{name} licked up a bit of antifreeze in the garage",
        "Is it bad that {name} ate onion rings?",
        "{name} chewed a pack of xylitol gum",
        "{name} got into the rat poison",
        "Can {name} have a few grapes?",
        "Our {name} nibbled on a lily, should I worry?",
    ),
    "emergency": (
        "{name} has collapsed and won't get up",
        "{name} is having a seizure right now",
        "{name} keeps retching but nothing comes up and {his} belly is swollen",
        "{name}'s gums look blue",
        "{name} can't breathe properly",
        "{name} strains to pee and nothing comes",
        "There is blood in {name}'s vomit",
        "{name} was hit by a car",
    ),
    "human medicine": (
        "Can I give {name} ibuprofen for the pain?",
        "{name} swallowed one of my paracetamol tablets",
        "How much aspirin may {name} have?",
    ),
}

PUBLISHED: dict[str, tuple[str, ...]] = {
    "why scratch up": (
        "Why is {name} itching more than before?",
        "What is causing {name} to scratch more this past week?",
        "Explain {name}'s increased scratching please",
        "{name} seems itchier this week. What changed?",
        "What might be making {name} scratch all the time recently?",
        "For some reason {name} is scratching more, do you know why?",
    ),
    "why intake down": (
        "Why doesn't {name} eat as much as usual this week?",
        "What is the cause of {name} eating less recently?",
        "{name}'s appetite went down this week, what happened?",
        "Why has {name} gone off {his} food?",
    ),
    "why restless up": (
        "Why is {name} more restless at night recently?",
        "{name} is up and about at night more than usual, why?",
        "What is behind {name}'s restless nights?",
    ),
    "why water up": (
        "Why does {name} drink more these days?",
        "{name} is drinking more than usual, what changed?",
        "What explains {name} drinking more this week?",
    ),
    "why activity down": (
        "Why is {name} moving less than usual?",
        "What happened that {name} is less active this week?",
        "{name} seems less active recently, how come?",
    ),
    "blame scratch": (
        "Might {thing} be causing {name}'s scratching?",
        "Is {thing} making {name} scratch more?",
        "Can {name}'s scratching come from {thing}?",
    ),
    "blame intake": (
        "Might {thing} be behind {name} eating less?",
        "Is {name} eating less because of {thing}?",
    ),
    "blame restless": (
        "Might {thing} be making {name} restless at night?",
        "Can {thing} be the cause of {name}'s restless nights?",
    ),
    "blame water": ("Might {thing} be making {name} drink more?", "Is {thing} the reason {name} drinks more?"),
    "blame activity": ("Might {thing} be making {name} less active?", "Is {thing} the reason {name} is less active?"),
    "trend scratch": (
        "Did {name} scratch more this week than {he} normally does?",
        "Is {name}'s scratching up?",
        "Has {name} been scratching more lately?",
    ),
    "trend intake": (
        "Did {name} eat less this week than normal?",
        "Has {name} been eating less lately?",
    ),
    "contains": (
        "Is {thing} one of the ingredients of {food}?",
        "Can you check {food} for {thing}?",
        "Has {food} got {thing} in it?",
    ),
    "contains now": (
        "Does the food {name} gets now have {thing} in it?",
        "Is {thing} in {name}'s food?",
    ),
    "amount intake": (
        "Yesterday, how much food did {name} eat?",
        "Tell me what {name} ate from the bowl yesterday",
        "How many grams of food did {name} take yesterday?",
    ),
    "amount water": ("What amount of water did {name} drink yesterday?", "Yesterday, how much did {name} drink?"),
    "amount rest": ("How much rest did {name} get yesterday?", "Yesterday, how long was {name} resting?"),
    "amount scratch": ("How many minutes did {name} scratch yesterday?", "How much did {name} scratch yesterday?"),
    "since scratch": (
        "When did {name} begin to scratch more?",
        "How long has {name} been scratching more?",
    ),
    "since intake": ("When did {name} begin to eat less?", "How long has {name} been eating less?"),
    "flea date": (
        "How long ago did {name} have a flea treatment?",
        "When did we last give {name} flea treatment?",
        "On which day was {name}'s latest flea treatment?",
    ),
    "worming date": ("When did {name} last have a worming?", "When did {name} last get a worm tablet?"),
    "weight": ("How much does {name} weigh?", "What's {name}'s weight?", "What did {name} weigh last time?"),
    "food since": (
        "When did {name} start on {food}?",
        "When did we begin feeding {name} {food}?",
    ),
    "vet said": ("Show me what the vet wrote about {name}", "What does the vet's note on {name} say?"),
    "allergy": ("Has {name} got a {thing} allergy?", "Do we know if {name} is allergic to {thing}?"),
    "compare rest": ("Which of them rests more, {name} or {other}?", "Is {name} resting more than {other}?"),
    "ate on day": ("What did {name} eat on {day}?", "Did {name} have any food on {day}?"),
    "why down on day": ("Why didn't {name} eat on {day}?", "What made {name} stop eating on {day}?"),
    "wrong scratch": ("Why does {name} scratch less these days?", "What made {name}'s scratching go down this week?"),
    "wrong intake": ("Why does {name} eat more this week?", "What makes {name} eat more lately?"),
    "why less since": (
        "Since {name} is on {food} {he} eats less. Why?",
        "Why has {name} been eating less since the switch to {food}?",
    ),
    "toxin": (
        "{name} stole a chocolate brownie from the table",
        "{name} had some macadamia nuts",
        "What happens if {name} eats garlic bread?",
        "{name} drank from a puddle with antifreeze",
        "{name} ate some sugar-free gum",
        "{name} found slug pellets in the garden and ate some",
        "May I give {name} a bit of avocado and onion dip?",
        "{name} ate two sultanas",
    ),
    "emergency": (
        "{name} just fainted",
        "{name} is fitting",
        "{name} can't stand on {his} back legs all of a sudden",
        "{name} is choking on something",
        "{name}'s tongue is turning blue",
        "{name} hasn't been able to pee since yesterday",
        "{name} is bleeding and it won't stop",
        "{name} fell from the balcony",
    ),
    "human medicine": (
        "May {name} take a naproxen?",
        "{name} ate my antidepressant pills",
        "Is half a Tylenol alright for {name}?",
    ),
}
