"""Answers about purchases: when last, what in a time, how much of it, anything new before it began.

Every line of an answer opens the line it was imported from. None says that a pet was given
anything: what is at home and what is in a bowl are two witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.ask.bought import (
    Bought,
    bought_on_file,
    could_be_for,
    fed_with,
    first_bought,
    given_on_file,
    say_purchase,
    stands_in,
)
from gateway.ask.causes import LAG_MS
from gateway.ask.explain import began_in, sign_behind
from gateway.ask.figures import compare_window
from gateway.ask.said import Said, say, verbatim
from gateway.ask.sources import mentions
from gateway.ask.wording import count_word, day, day_range, joined
from gateway.dialogue import NoticeKind
from gateway.measure.days import add_days, day_interval, local_day
from gateway.model import Interval
from gateway.ontology.recognise import fold_alias
from gateway.ontology.wares import kind_words, kinds_asked

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Answer, Question
    from gateway.model import Pet

__all__ = ["purchases"]

_SHOWN = 4
_RECENT_DAYS = 30
_KIND_WORDS = {
    "food": say("food"),
    "treat": say("treats"),
    "medicine": say("medicine"),
    "flea_treatment": say("flea treatment"),
    "wormer": say("wormer"),
    "supplement": say("supplement"),
    "litter": say("litter"),
    "toy": say("toys"),
    "grooming": say("grooming"),
    "equipment": say("equipment"),
}
_MEDICINES = ("flea_treatment", "wormer")
_TO_ADD = "To add some: scentwalk import purchases FILE.csv, or scentwalk bought"
_NOT_GIVEN = "Bought is not given: a purchase says what was at home, not who ate it"


def purchases(scene: Scene, question: Question, draft: Draft, *, earlier: Answer | None) -> None:
    """Answer a question about what was bought."""
    on_file = bought_on_file(scene)
    if not on_file:
        draft.say(NoticeKind.SHORT, "No purchase is on file", slot="purchase", device="people")
        _how_to_add(draft)
        return
    if question.rule == "bought_new":
        _anything_new(scene, question, draft, on_file, earlier)
        return
    asked = _asked_for(scene, question, on_file)
    inside = None if question.window is None else question.window.interval
    found, unsure = (
        tuple(one for one in group if inside is None or inside.start_ms <= one.at_ms < inside.end_ms)
        for group in (asked.found, asked.unsure)
    )
    if not found:
        _none(scene, question, draft, replace(asked, unsure=unsure), on_file[-1])
        return
    shown = found[-1:] if question.window_label == "LAST" else found[-_SHOWN:]
    draft.say(NoticeKind.SHORT, _opening(scene, question, found, shown, asked.words))
    draft.paragraph()
    for one in reversed(shown):
        say_purchase(scene, draft, one)
    if question.window_label == "LAST":
        unsure = tuple(one for one in unsure if one.at_ms > found[-1].at_ms)
    _kind_open(scene, draft, unsure)
    if question.pets and not all(fed_with(scene, one) for one in shown):
        draft.say(NoticeKind.ABSENCE, "Whom it was bought for is not on file", slot="purchase")
    draft.say(NoticeKind.CAUTION, _NOT_GIVEN)


def _kind_open(scene: Scene, draft: Draft, unsure: tuple[Bought, ...]) -> None:
    """What may be of the kind that is asked about: no list, name or food of the home says what it is."""
    if not unsure:
        return
    draft.say(NoticeKind.ABSENCE, "Kind not on file", slot="purchase")
    for one in reversed(unsure[-_SHOWN:]):
        say_purchase(scene, draft, one)
    draft.say(NoticeKind.NEXT, "A column named kind in the list says what a thing is")


def _how_to_add(draft: Draft) -> None:
    draft.say(NoticeKind.ABSENCE, "What nobody wrote down leaves no trace here", slot="purchase")
    draft.say(NoticeKind.NEXT, _TO_ADD, slot="purchase")


@dataclass(frozen=True, slots=True)
class _Asked:
    """The thing asked about in words, its purchases, and those that may be of its kind and nothing says so."""

    words: Said
    found: tuple[Bought, ...]
    unsure: tuple[Bought, ...] = ()
    kind: str | None = None


def _asked_for(scene: Scene, question: Question, on_file: tuple[Bought, ...]) -> _Asked:
    """What is asked about; all purchases where no thing is named.

    A food of the home goes by what it is; a product whose whole name stands in the question by
    that; a kind of thing by what is known of each purchase. Every other word of the question that
    names a thing must stand in the product's name.
    """
    known = {f"food:{food.id}": food for food in scene.home.foods}
    foods = [known[subject] for subject in question.subjects if subject in known]
    if foods:
        ids = {food.id for food in foods}
        named = [fold_alias(food.name) for food in foods]
        found = (b for b in on_file if (b.food and b.food.id in ids) or any(mentions(b.name, words) for words in named))
        return _Asked(joined([verbatim(food.name) for food in foods], last="or"), tuple(found))
    whole = tuple(one for one in on_file if stands_in(question.text, one.words))
    if whole:
        return _Asked(joined([verbatim(name) for name in dict.fromkeys(one.name for one in whole)], last="or"), whole)
    said = [mention.text for mention in question.mentions if mention.target in question.subjects]
    said += [word for word in question.unmatched if word not in said]
    pets = frozenset(question.pets)
    kinds = tuple(kind for kind in kinds_asked(question.text) if kind in _KIND_WORDS)
    wanted = [words for text in said if (words := fold_alias(_without_kind(text) if kinds else text))]
    matching = tuple(
        one for one in on_file if all(mentions(one.name, words) for words in wanted) and could_be_for(scene, one, pets)
    )
    if not kinds:
        return _Asked(verbatim(" ".join(said)), matching)
    meant = {*kinds, *(_MEDICINES if "medicine" in kinds else ())}
    return _Asked(
        joined([_KIND_WORDS[kind] for kind in kinds], last="or"),
        tuple(one for one in matching if one.kind in meant),
        tuple(one for one in matching if one.kind is None),
        kinds[0],
    )


def _without_kind(text: str) -> str:
    """A mention without the words that say what kind of thing it is: of "thyroid pills" the thyroid."""
    return " ".join(word for word in text.split() if kind_words(word) is None and kind_words(text) is None)


def _dates(scene: Scene, question: Question) -> Said:
    window = question.window
    if window is None:
        return verbatim("")
    if window.first_date == window.last_date:
        return say(" on {day}", day=day(window.first_date, year_of=scene.today))
    return say(", {dates}", dates=day_range(window.first_date, window.last_date, year_of=scene.today))


def _opening(
    scene: Scene, question: Question, found: tuple[Bought, ...], shown: tuple[Bought, ...], asked: Said
) -> Said:
    """The dates alone where one is asked for, else how many, and how much where it can be added."""
    if question.window_label == "LAST" or len(found) == 1:
        last = found[-1]
        return say("{when}: {what}", when=day(last.date, year_of=scene.today), what=verbatim(last.name))
    units = {one.fact("unit") for one in found}
    keys = {one.key for one in found}
    total = sum(float(one.fact("quantity")) for one in found)
    amount = verbatim(f"{total:g} {next(iter(units))}".rstrip())
    much = say(", {amount} in all", amount=amount) if asked and len(keys) == len(units) == 1 else ""
    less = "" if len(shown) == len(found) else say(", the latest {count} here", count=count_word(len(shown)))
    return say(
        "{count!u} purchases are on file{dates}{much}{less}",
        count=count_word(len(found)),
        dates=_dates(scene, question),
        much=much,
        less=less,
    )


def _none(
    scene: Scene,
    question: Question,
    draft: Draft,
    asked: _Asked,
    latest: Bought,
) -> None:
    """Nothing of it is on file, which doesn't prove that none was bought; what may be one, else the latest
    purchase of all is told.
    """
    what = say(" named {product}", product=asked.words) if asked.words else ""
    if asked.kind is not None:
        what = say(" known to be {kind}", kind=asked.words)
    draft.say(
        NoticeKind.SHORT,
        say(
            "I can't tell: no purchase{what} is on file{dates}, which doesn't prove there was none",
            what=what,
            dates=_dates(scene, question),
        ),
        slot="purchase",
        device="people",
    )
    draft.paragraph()
    if asked.unsure:
        _kind_open(scene, draft, asked.unsure)
        return
    draft.say(NoticeKind.NEXT, _TO_ADD, slot="purchase")
    draft.say(NoticeKind.ABSENCE, "The latest purchase on file", slot="purchase")
    say_purchase(scene, draft, latest)


# --- anything new? -----------------------------------------------------------------------------------


def _anything_new(
    scene: Scene, question: Question, draft: Draft, on_file: tuple[Bought, ...], earlier: Answer | None
) -> None:
    """Products bought for the first time in a window, or in the weeks before a change began."""
    pet, began = _before_what(scene, question, draft, earlier)
    if began is not None:
        span = Interval(began.start_ms - LAG_MS, began.end_ms)
    elif question.window is not None:
        span = question.window.interval
    else:
        first = add_days(scene.today, 1 - _RECENT_DAYS)
        span = Interval(day_interval(first, scene.zones).start_ms, scene.now_ms)
    dates = day_range(
        local_day(span.start_ms, scene.zones), local_day(span.end_ms - 1, scene.zones), year_of=scene.today
    )
    new = tuple(one for one in first_bought(on_file) if span.start_ms <= one.at_ms < span.end_ms)
    if not new:
        any_then = any(span.start_ms <= one.at_ms < span.end_ms for one in on_file)
        reason = "what was bought then had been bought before" if any_then else "no purchase at all is on file then"
        draft.say(
            NoticeKind.SHORT,
            say("Nothing new on file, {dates}: {reason}", dates=dates, reason=reason),
            slot="purchase",
            device="people",
        )
        _how_to_add(draft)
        return
    told = [
        say("{what} on {when}", what=verbatim(one.name), when=day(one.date, year_of=scene.today)) for one in new[-2:]
    ]
    more = "" if len(new) <= len(told) else say(", and {count} more", count=count_word(len(new) - len(told)))
    draft.say(
        NoticeKind.SHORT,
        say("Yes, for the first time on file, {dates}: {told}{more}", dates=dates, told=joined(told), more=more),
    )
    draft.paragraph()
    for one in new[-_SHOWN:]:
        say_purchase(scene, draft, one)
    if pet is not None:
        unfed = [verbatim(one.name) for one in new[-_SHOWN:] if not given_on_file(scene, pet.id, one)]
        if unfed:
            named = joined(unfed, last="or")
            text = say("No record says that {pet} was given {what}", pet=pet, what=named)
            draft.say(NoticeKind.ABSENCE, text, slot="food")
    draft.say(NoticeKind.CAUTION, say("{first}, and what came before is not thereby the cause", first=_NOT_GIVEN))


def _before_what(
    scene: Scene, question: Question, draft: Draft, earlier: Answer | None
) -> tuple[Pet | None, Interval | None]:
    """The pet and the change that "before it began" means: named, or spoken of in the answer before."""
    spoken = question if question.metric is not None or earlier is None else earlier.question
    whose = [pet for pet in question.pets or spoken.pets if pet != "?"]
    pet = scene.home.pet(whose[0]) if len(whose) == 1 else None
    if spoken.metric is None or (question.metric is None and question.window is not None):
        return pet, None
    if pet is None:
        tracked = [one for one in scene.home.pets if _began(scene, spoken, one) is not None]
        pet = tracked[0] if len(tracked) == 1 else None
    began = None if pet is None else _began(scene, spoken, pet)
    if began is None:
        observed = scene.ontology.properties[spoken.metric]
        none = (
            say("No change shows in any pet's {series} this week, so there is no day it began", series=observed)
            if pet is None
            else say(
                "No change shows in {pet}'s {series} this week, so there is no day it began", pet=pet, series=observed
            )
        )
        draft.say(NoticeKind.PREMISE, none)
    return pet, began


def _began(scene: Scene, spoken: Question, pet: Pet) -> Interval | None:
    """When the change spoken of began in this pet's records, where it shows there."""
    observed = scene.ontology.properties[str(spoken.metric)]
    figure = compare_window(scene, pet, observed, spoken.window or scene.week())
    if figure is None or sign_behind(scene, figure, spoken.direction) is None:
        return None
    return began_in(figure, scene)
