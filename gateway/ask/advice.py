"""What only people can judge: a vet or not, enough, too heavy, going back, what to tell the vet.

None of these has its answer in a record. Each says what the records hold towards it, what no
device can see, and who can judge; never a reassurance, a ration, a drug or a diagnosis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.blame import exposures, say_exposures
from gateway.ask.change import figure_claim, figure_seen, say_verdict, verdict_words
from gateway.ask.facts import age_months
from gateway.ask.figures import compare_window
from gateway.ask.floors import say_floors
from gateway.ask.lookups import last_weights
from gateway.ask.said import Said, known, said, say, verbatim
from gateway.ask.signs import say_signs, signs_lately
from gateway.ask.sources import as_said, cite, mentions
from gateway.ask.weighed import logged_level
from gateway.ask.wording import joined, listed
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.measure.days import add_days
from gateway.model import Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Pet, Window

__all__ = ["enough", "need_vet", "signalment", "switch_back", "too_heavy", "vet_phone", "vet_summary", "why_notice"]

_MEASURED = ("intake", "water", "activity", "rest", "restless", "scratch", "shake")
_UNSEEN = "vomiting, limping, urine or pain"
_CHANGED = (Verdict.UP, Verdict.DOWN)
_LISTED = 4
_LOOK_BACK_DAYS = 90
_DAY_MS = 86_400_000
_SEXES = {
    (True, "male"): "neutered male",
    (True, "female"): "neutered female",
    (False, "male"): "not neutered, male",
    (False, "female"): "not neutered, female",
    (None, "male"): "male",
    (None, "female"): "female",
}


def vet_phone(scene: Scene) -> Said:
    """The vet's number as stored, in brackets, or nothing."""
    phones = [person.phone for person in scene.home.people if "vet" in person.role and person.phone]
    vet = [person.phone for person in scene.home.people if person.role == "vet" and person.phone]
    return verbatim(f" ({(vet or phones)[0]})") if vet or phones else verbatim("")


def _figures(scene: Scene, pet: Pet, window: Window) -> list[Figure]:
    """Every measured property of the pet that has a figure for the window."""
    found = []
    for name in _MEASURED:
        observed = scene.ontology.properties[name]
        figure = compare_window(scene, pet, observed, window) if scene.devices_of(pet.id, observed) else None
        if figure is not None:
            found.append(figure)
    return found


def need_vet(scene: Scene, draft: Draft, pet: Pet, window: Window, *, judged: str = "") -> None:
    """Answer "does he need a vet?": what changed, what can't be seen, when to call.

    ``judged`` is said before, where what is asked about is seen by no device ("is he in pain?").
    """
    figures = _figures(scene, pet, window)
    say_floors(scene, draft, pet)
    if judged:
        draft.say(NoticeKind.SHORT, judged, slot="unseen")
    changed = [figure for figure in figures if figure.verdict in _CHANGED]
    if changed:
        opening = said("That is for a vet to say; a clear change is a reason to call this week")
    elif signs_lately(scene, pet):
        opening = said("That is for a vet to say; what is logged of late is a reason to call this week")
    elif figures:
        opening = said("I can't decide that. The devices show no clear change, which rules nothing out")
    else:
        opening = say("I can't decide that, and nothing of {pet} is recorded here", pet=pet)
    draft.say(NoticeKind.SHORT, opening, slot=None if figures else "device", device=None if figures else "tracker")
    draft.paragraph()
    for figure in changed:
        figure_claim(scene, draft, figure, opening=say("{series!u}", series=figure.observed))
    say_signs(scene, draft, pet, None)
    draft.paragraph()
    draft.say(NoticeKind.ABSENCE, say("No device here sees {what}", what=_UNSEEN), slot="unseen")
    draft.say(
        NoticeKind.CAUTION,
        say(
            "Call today if {pet.he} is weak, hides, breathes oddly, has eaten nothing for a day or keeps vomiting; "
            "when you are unsure, call anyway{phone}",
            pet=pet,
            phone=vet_phone(scene),
        ),
    )


def enough(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "is he drinking enough?": against the pet's own usual, which is no ration."""
    observed = scene.ontology.properties[str(question.metric)]
    figure = figure_seen(scene, draft, pet, observed, window)
    if figure is None:
        return
    if figure.verdict is Verdict.CANNOT_TELL:
        say_verdict(scene, draft, figure, None)
    else:
        draft.say(
            NoticeKind.SHORT,
            say(
                "What is enough no record says; against {pet.his} own past it is {verdict}",
                pet=pet,
                verdict=verdict_words(figure),
            ),
            slot="ration",
        )
        draft.paragraph()
        figure_claim(scene, draft, figure)
    draft.paragraph()
    if observed.id == "intake":
        last_weights(scene, draft, pet)
        draft.say(NoticeKind.CAUTION, "Treats and other bowls aren't counted. Weight over weeks says more than grams")
    if observed.id == "water":
        draft.say(NoticeKind.CAUTION, "Water in food and other bowls isn't counted")
    much = say("How much {pet.he} should get is your vet's to say{phone}", pet=pet, phone=vet_phone(scene))
    draft.say(NoticeKind.CAUTION, much)


def too_heavy(scene: Scene, draft: Draft, pet: Pet) -> None:
    """Answer "is she too heavy?": the weights on file, and whose hands can tell."""
    weights = last_weights(scene, draft, pet, opening="A weight alone can't say that; your vet's hands on the ribs can")
    if not weights:
        logged_level(scene, draft, pet, scene.ontology.properties["weight"])
    draft.say(NoticeKind.ABSENCE, "No body condition score is on file", slot="body_condition", device="people")
    draft.say(NoticeKind.NEXT, "Weigh on the same scale once a week, and ask your vet for a body condition score")


# --- for the vet -------------------------------------------------------------------------------------


def vet_summary(scene: Scene, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "what do I tell the vet?": who, what changed when, what was given, what nobody saw."""
    draft.say(NoticeKind.SHORT, say("For the vet: {pet}, {who}", pet=pet, who=signalment(scene, pet)))
    draft.paragraph()
    figures = _figures(scene, pet, window)
    changed = [figure for figure in figures if figure.verdict in _CHANGED]
    for figure in changed:
        figure_claim(scene, draft, figure, opening=say("{series!u}", series=figure.observed))
    steady = [figure for figure in figures if figure.verdict is Verdict.USUAL]
    if steady:
        words = joined([say("{series.word}", series=figure.observed) for figure in steady])
        draft.claim(
            "as_usual",
            EvidenceClass.MEASURED,
            say("{what!u} as usual", what=words),
            cite=listed(
                tuple(
                    dict.fromkeys(scene.ontology.device_kinds[d.kind].cite for figure in steady for d in figure.devices)
                )
            ),
            refs=tuple(ref for figure in steady for ref in figure.refs),
            window=window,
            about=(f"pet:{pet.id}", *(f"series:{figure.series}" for figure in steady)),
        )
    draft.paragraph()
    say_signs(scene, draft, pet, scene.window("P90D", add_days(scene.today, 1 - _LOOK_BACK_DAYS), scene.today))
    _recent_exposures(scene, draft, pet)
    last_weights(scene, draft, pet)
    draft.paragraph()
    unseen = say("Not seen by any device: {what}. Say what you saw yourself", what=_UNSEEN)
    draft.say(NoticeKind.ABSENCE, unseen, slot="unseen")


def _recent_exposures(scene: Scene, draft: Draft, pet: Pet) -> None:
    """Dated foods, medicines, treatments, trips and visitors of the last three months, latest first."""
    since = scene.now_ms - _LOOK_BACK_DAYS * _DAY_MS
    recent = [
        link
        for link in scene.links_of(pet.id)
        if link.edge.relation in ("ate", "takes", "treated_with", "was_at", "visited_by")
        and (link.edge.valid_from_ms or 0) >= since
        and link.evidence
        and not link.marked_wrong
    ]
    recent.sort(key=lambda link: (-(link.edge.valid_from_ms or 0), link.edge.head.name))
    say_exposures(scene, draft, pet, tuple(recent[:_LISTED]))
    if not recent:
        draft.say(NoticeKind.ABSENCE, "No new food, medicine, treatment or trip is on file since then", slot="exposure")


def signalment(scene: Scene, pet: Pet) -> Said:
    """Species, breed, age and sex as entered: "golden retriever, dog, 5 years, neutered male"."""
    parts: list[str] = [known(pet.breed or pet.species)]
    if pet.breed is not None and pet.species not in pet.breed:
        parts.append(known(pet.species))
    months = age_months(pet, scene.today)
    if months is not None:
        parts.append(say("{count} years", count=months // 12) if months >= 24 else say("{count} months", count=months))
    sex = {"male": "male", "female": "female", "m": "male", "f": "female"}.get(pet.sex or "")
    if sex is not None:
        parts.append(_SEXES[(pet.neutered, sex)])
    return listed(parts, between=", ")


# --- switching back, and notices ---------------------------------------------------------------------


def switch_back(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...]) -> None:
    """Answer "what if I switch back?": a second observation, the vet's to plan."""
    draft.say(
        NoticeKind.SHORT,
        "No record can say what would happen. Going back is one more change; plan it with your vet",
        slot="trial",
    )
    draft.paragraph()
    for pet in pets:
        found = exposures(scene, pet, question.subjects or ("food:previous",))
        say_exposures(scene, draft, pet, found[-1:])
    _trial_words(scene, draft)
    draft.paragraph()
    draft.say(
        NoticeKind.NEXT,
        "If it is done, pick the bag at the bowl that day: what rises and falls with it would be a second observation",
    )


def _trial_words(scene: Scene, draft: Draft) -> None:
    """What the guide says of food and trials, word for word."""
    for entry in scene.reader.texts(("passage",), until_ms=scene.now_ms):
        if mentions(entry.text, ("elimination", "diet")):
            draft.claim(
                "trial",
                EvidenceClass.REFERENCE,
                as_said(" ".join(entry.text.split()).rstrip(".")),
                cite=cite(scene, entry.ref),
                refs=(entry.ref,),
                about=("topic:elimination_diet",),
            )
            return


def why_notice(scene: Scene, draft: Draft) -> None:
    """Answer "why this notice?": the limits that stand, else the daily findings that left a pet's usual."""
    stands = sum(say_floors(scene, draft, pet) for pet in scene.home.pets)
    if stands:
        return
    yesterday = add_days(scene.today, -1)
    known = {series.id: series for series in scene.reader.all_series()}
    told = [
        (series, verdict)
        for series, _, verdict, _ in scene.reader.findings(as_of=yesterday)
        if verdict in {word.value for word in _CHANGED} and series in known
    ]
    if not told:
        draft.say(
            NoticeKind.SHORT, "No notice is on file: no daily finding stands outside a pet's usual", slot="notice"
        )
        return
    draft.say(NoticeKind.SHORT, "A notice says that a week left a pet's usual; these do at the last closed day")
    draft.paragraph()
    window = scene.window("P7D", add_days(yesterday, -6), yesterday)
    for series, _ in told[:_LISTED]:
        pet = next((one for one in scene.home.pets if one.id == known[series].pet), None)
        if pet is None:
            continue
        observed = scene.ontology.properties[known[series].property]
        figure = compare_window(scene, pet, observed, window)
        if figure is not None:
            figure_claim(scene, draft, figure, opening=say("{pet}, {series}", pet=pet, series=observed))
    draft.say(NoticeKind.CAUTION, "Once in a while a week stands out by chance; one that lasts is worth a call")
