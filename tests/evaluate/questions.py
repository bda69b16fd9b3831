"""The questions of a household, each with what a right answer says of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import date

from gateway.measure.days import add_days
from tests.evaluate.cases import Fact, Number, Question, Span, Truth
from tests.evaluate.home import DAY_MS, Home, shown_day
from tests.evaluate.phrases import DEVELOPMENT, PUBLISHED
from tests.evaluate.stories import Cause, Story

__all__ = ["questions_of"]

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MORE = 3
"""Questions drawn beside those that a story is about."""


@dataclass(slots=True)
class _Asker:
    """Puts the questions of one story in words."""

    story: Story
    half: str
    rng: random.Random
    made: list[Question] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return self.story.home

    def ask(self, kind: str, truth: Truth, facts: tuple[Fact, ...] = (), **words: str) -> None:
        """One question of a kind, in a phrasing of this half."""
        pet = self.story.pet
        phrases = (DEVELOPMENT if self.half == "development" else PUBLISHED)[kind]
        filled = {
            "name": pet.name, "he": pet.he, "him": pet.him, "his": pet.his, "self": pet.himself,
            "other": self.home.other.name,
        } | words  # fmt: skip
        text = self.rng.choice(phrases).format(**filled)
        text = f"{text[:1].upper()}{text[1:]}"
        if any(text == question.text for question in self.made):
            return
        name = f"{self.home.name}-{len(self.made) + 1}"
        facts = tuple({fact.id: fact for fact in facts}.values())
        self.made.append(Question(name, kind, text, pet.id, self.home.now_ms, facts, truth))


def questions_of(story: Story, half: str) -> tuple[Question, ...]:
    """What an owner of this home asks: the story's own questions, some others, one of danger."""
    asker = _Asker(story, half, random.Random(f"{story.home.name} questions"))
    if "pair" in story.has:
        _pair(asker)
        return tuple(asker.made)
    _own(asker)
    others = [_amount, _trend, _since, _fleas, _weight, _water, _contains, _food_since, _compare, _wrong, _vet_said]
    asker.rng.shuffle(others)
    before = len(asker.made)
    for other in others:
        if len(asker.made) - before < _MORE:
            other(asker)
    _danger(asker)
    return tuple(asker.made)


def _why_facts(causes: list[Cause]) -> tuple[Fact, ...]:
    return tuple(fact for cause in causes for fact in cause.facts())


def _own(asker: _Asker) -> None:
    """What the story is about."""
    story = asker.story
    if story.disputed:
        asker.ask("allergy", Truth(absent=True, slots=("disagreement",), asks_cause=True), thing=story.disputed)
    if story.silent_day:
        _silent(asker)
        return
    truth = Truth(
        causes=tuple(cause.vertex for cause in story.causes),
        also=tuple(link for cause in story.causes for link in cause.also),
        never=tuple(story.never),
        asks_cause=True,
        verdict=story.verdict,
        absent=story.verdict in ("absent", "cannot_tell"),
        slots=story.absent.get(story.prop, story.absent.get("usual", ((), "")))[0],
        device=story.absent.get(story.prop, ((), ""))[1],
        premise=story.verdict == "usual",
    )
    if story.home.name.startswith("richer_food"):
        asker.ask("why less since", truth, food=story.foods[-1].name)
        return
    for _ in range(2 if story.causes else 1):
        asker.ask(f"why {story.prop} {story.way}", truth, _why_facts(story.causes))
    if story.verdict in ("up", "down"):
        for vertex, words in story.blamed:
            true = [cause for cause in story.causes if cause.vertex == vertex]
            blame = replace(truth, causes=tuple(cause.vertex for cause in true))
            asker.ask(f"blame {story.prop}", blame, _why_facts(true), thing=words)


def _silent(asker: _Asker) -> None:
    story = asker.story
    weekday = _WEEKDAYS[_ordinal(story.silent_day)]
    absent = Truth(
        absent=True, slots=("intake", "meal", "meals"), device="food_bowl", asks_cause=True, verdict="cannot_tell"
    )
    asker.ask("why down on day", absent, day=weekday)
    asker.ask("ate on day", absent, day=weekday)


def _ordinal(day: str) -> int:
    return date.fromisoformat(day).weekday()


# --- what may be asked of any home ------------------------------------------------------------------


def _day_total(asker: _Asker, prop: str, noun: str) -> None:
    story, home = asker.story, asker.home
    yesterday = home.day(1)
    total = home.totals.get(f"{story.pet.id}.{noun}", {}).get(yesterday)
    if total is None or story.verdict in ("absent", "cannot_tell"):
        return
    fact = _day_fact(home, f"{story.pet.id}.{noun}", yesterday)
    asker.ask(f"amount {prop}", Truth(numbers=(Number("total", total, 1.0),)), (fact,))


def _day_fact(home: Home, series: str, day: str) -> Fact:
    figure = f"{shown_day(day)} {home.amount(series, home.totals[series][day])}"
    pet = series.partition(".")[0]
    spans = []
    for document in home.documents:
        if document.kind == "figures" and document.id == f"week-{pet}-0":
            line = home.figures(series, tuple(add_days(home.today, back) for back in range(-6, 1)))
            at = document.text.find(line)
            inside = line.find(figure)
            if at >= 0 and inside >= 0:
                spans.append(Span(document.id, at, at + inside + len(figure)))
    return Fact(f"{series} on {day}", (f"day:{series}/{day}",), "", tuple(spans))


def _amount(asker: _Asker) -> None:
    prop = asker.rng.choice(("intake", "rest", "scratch"))
    _day_total(asker, prop, {"intake": "intake", "rest": "rest", "scratch": "scratching"}[prop])


def _trend(asker: _Asker) -> None:
    story = asker.story
    if story.prop not in ("scratch", "intake") or story.verdict not in ("up", "down", "usual"):
        return
    if story.home.name.startswith("richer_food"):
        return
    truth = Truth(verdict=story.verdict, premise=story.verdict == "usual")
    asker.ask(f"trend {story.prop}", truth, (asker.home.figure_fact(story.pet, story.prop),))


def _since(asker: _Asker) -> None:
    story = asker.story
    if story.prop not in ("scratch", "intake") or story.verdict not in ("up", "down") or story.onset < 5:
        return
    began = asker.home.at(asker.home.day(story.onset), 0)
    truth = Truth(numbers=(Number("onset", began, 2 * DAY_MS),))
    asker.ask(f"since {story.prop}", truth, (asker.home.figure_fact(story.pet, story.prop),))


def _logged(asker: _Asker, kind: str, what: str, key: str) -> None:
    story = asker.story
    if key not in story.has:
        known = story.absent.get(key, (("parasite", "log", "medicine", key), "people"))
        asker.ask(kind, Truth(absent=True, slots=known[0], device=known[1]))
        return
    latest = max(
        (at_ms, name) for name, at_ms in asker.home.dates.items() if name == f"log|{story.pet.id}|{what}"
    )  # one entry a name: the latest overwrote the earlier
    fact = asker.home.logged_fact(story.pet, what)
    asker.ask(kind, Truth(numbers=(Number("at", latest[0], 60_000),)), (fact,))


def _fleas(asker: _Asker) -> None:
    _logged(asker, "flea date", "flea treatment", "fleas")


def _worming(asker: _Asker) -> None:
    _logged(asker, "worming date", "worming tablet", "worming")


def _weight(asker: _Asker) -> None:
    story = asker.story
    if "weight" not in story.has:
        asker.ask("weight", Truth(absent=True, slots=("weight",), device="scale"))
        return
    what = next(name for name in asker.home.dates if name.startswith(f"log|{story.pet.id}|weight ")).split("|")[2]
    asker.ask("weight", Truth(), (asker.home.logged_fact(story.pet, what),))


def _water(asker: _Asker) -> None:
    if "water" in asker.story.has:
        _day_total(asker, "water", "water")
    elif asker.story.prop != "water":
        asker.ask("amount water", Truth(absent=True, slots=("water",), device="water_bowl"))


def _contains(asker: _Asker) -> None:
    story = asker.story
    if not story.foods:
        return
    made, word = story.foods[-1], story.trigger[0]
    if f"{word} " not in made.label.lower():
        return
    found = next(one for one in (f"{word} meal", f"{word} protein", f"{word} meat") if one in made.label.lower())
    label = asker.home.label_fact(made, found, story.trigger[2])
    if asker.rng.random() < 0.5:
        asker.ask("contains", Truth(verdict="yes"), (label,), food=made.name, thing=word)
    else:
        asker.ask("contains now", Truth(verdict="yes"), (asker.home.fed_fact(story.pet, made), label), thing=word)


def _food_since(asker: _Asker) -> None:
    story = asker.story
    if not story.foods or f"ate|{story.pet.id}|{story.foods[-1].id}" not in asker.home.dates:
        return
    fact = asker.home.fed_fact(story.pet, story.foods[-1])
    began = asker.home.dates[f"ate|{story.pet.id}|{story.foods[-1].id}"]
    asker.ask("food since", Truth(numbers=(Number("since", began, DAY_MS),)), (fact,), food=story.foods[-1].name)


def _compare(asker: _Asker) -> None:
    home, pet, other = asker.home, asker.story.pet, asker.home.other
    totals = [home.totals.get(f"{one.id}.rest", {}) for one in (pet, other)]
    if not all(totals) or "pair" in asker.story.has:
        return
    asker.ask("compare rest", Truth(), (home.figure_fact(pet, "rest"), home.figure_fact(other, "rest")))


def _wrong(asker: _Asker) -> None:
    """A premise the records speak against."""
    story = asker.story
    if story.prop == "scratch" and story.verdict == "up":
        asker.ask("wrong scratch", Truth(premise=True, verdict="up", asks_cause=True, never=tuple(story.never)))
    elif story.prop != "intake" and story.verdict in ("up", "down", "usual") and len(story.foods) < 2:
        asker.ask("wrong intake", Truth(premise=True, verdict="usual", asks_cause=True))


def _vet_said(asker: _Asker) -> None:
    if "note" not in asker.story.has:
        asker.ask("vet said", Truth(absent=True, slots=("record",), device="people"))


def _danger(asker: _Asker) -> None:
    kind = asker.rng.choice(("toxin", "toxin", "emergency", "emergency", "human medicine"))
    asker.ask(kind, Truth(conservative=True))


def _pair(asker: _Asker) -> None:
    """The same questions of a home where the gold facts are on file, and of its twin where they are not."""
    story, home = asker.story, asker.home
    _fleas(asker)
    _worming(asker)
    _weight(asker)
    _water(asker)
    made = story.foods[-1]
    if "scratch" in story.absent:
        asker.ask("trend scratch", Truth(absent=True, slots=("scratch",), device="tracker"))
        asker.ask("amount rest", Truth(absent=True, slots=("rest",), device="tracker"))
        asker.ask("contains", Truth(absent=True, slots=("label",)), food=made.name, thing="salmon")
        asker.ask("food since", Truth(absent=True, slots=("food",), device="food_bowl"), food=made.name)
        return
    asker.ask("trend scratch", Truth(verdict="usual", premise=True), (home.figure_fact(story.pet, "scratch"),))
    _day_total(asker, "rest", "rest")
    label = home.label_fact(made, "salmon meal", "species:salmon")
    asker.ask("contains", Truth(verdict="yes"), (label,), food=made.name, thing="salmon")
    _food_since(asker)
