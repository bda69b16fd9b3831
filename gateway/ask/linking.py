"""Links a folded question to the household, the vocabulary and the safety tables.

In: the text, the household, the ontology. Out: ``Linked``: mentions with the readings passed
over and why, cue classes by place, measured words, time spans, toxins, signs. A name that is
also a word (Peanut, Lily, Bella's) is decided by its place in the sentence, in a stated
order, never by a score. Never reads a clock or a database.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

from gateway.ask.cues import Spans, blamed, by_cue, outside_measured, outside_names
from gateway.ask.eaten import is_object_of
from gateway.ask.spelled import respelled, spelled_out
from gateway.ask.times import Calendar, TimeSpan, read_times, window_of
from gateway.dialogue import Mention
from gateway.measure.days import add_days
from gateway.model import Household
from gateway.ontology import load as tables
from gateway.ontology.frames import FrameHit
from gateway.ontology.hazards import SignHit
from gateway.ontology.kept import KeptAliases, KeptLexicon, KeptWords
from gateway.ontology.language import Language
from gateway.ontology.recognise import Alias, Lexicon, Match, Reading, Recogniser, Token, fold_alias, tokens_of
from gateway.ontology.spelling import Neighbours

__all__ = ["Linked", "MetricHit", "Reader", "language_of", "link", "opening", "reader_for"]

_LIMIT_WORDS = frozenset({"max", "min"})


@dataclass(frozen=True, slots=True)
class MetricHit:
    """A measured word: tokens ``[first, last)``, the property, and its own direction if any.

    ``faint`` words ("not herself") mean the property only where nothing else is measured.
    """

    first: int
    last: int
    property: str
    direction: str | None
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Linked:
    """A question as linked: nothing is decided yet beyond what each word is.

    ``opens_at`` is the first token after what only leads up to a question ("do you know ..."),
    ``asked`` the tokens of the sentence that asks.
    """

    text: str
    tokens: tuple[Token, ...]
    language: Language
    mentions: tuple[Mention, ...]
    spans: tuple[tuple[int, int], ...]
    cues: Spans
    metrics: tuple[MetricHit, ...]
    directions: tuple[tuple[int, int, str], ...]
    times: tuple[TimeSpan, ...]
    events: tuple[tuple[int, int, str], ...]
    toxins: tuple[tuple[int, int, str], ...]
    signs: tuple[SignHit, ...]
    near_misses: tuple[tuple[str, str], ...]
    corrections: tuple[tuple[str, str], ...]
    unmatched: tuple[str, ...]
    opens_at: int = 0
    asked: tuple[int, int] = (0, 0)

    def has(self, *cues: str) -> bool:
        """Whether any of the cue classes occurs."""
        return any(cue in self.cues for cue in cues)

    def starts(self, *cues: str, within: int = 3) -> bool:
        """Whether any of the cue classes begins within the first words, politeness not counted."""
        spans = [span for cue in cues for span in self.cues.get(cue, ())]
        if "when" in cues and self._ends_with_when():  # "her last meal was when?"
            return True
        return any(first - self.opens_at < within and last > self.opens_at for first, last in spans)

    def _ends_with_when(self) -> bool:
        aside = {i for cue in ("exactly", "wrapper") for span in self.cues.get(cue, ()) for i in range(*span)}
        said = (i for i in range(*self.asked) if self.tokens[i].text[0].isalnum() and i not in aside)
        ends = max((i + 1 for i in said), default=0)
        asks = self.language.words["what"] | {"which"}
        spans = [(first, last) for first, last in self.cues.get("when", ()) if last == ends]
        return any(last - first == 1 or any(self.word(i) in asks for i in range(first, last)) for first, last in spans)

    def targets(self, *kinds: str) -> tuple[str, ...]:
        """Targets of the mentions of these kinds, sorted, once each."""
        return tuple(sorted({m.target for m in self.mentions if m.kind in kinds}))

    def word(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""


class Reader:
    """The lexicons of one household, built once.

    Parameters
    ----------
    household : Household
    extra : iterable of Alias
        Ingredient and product names from the knowledge room; their readings join ours. Where
        aliases are kept as rows, those names are among them.
    """

    def __init__(self, household: Household, extra: Iterable[Alias] = ()) -> None:
        self.household = household
        self.hazards = tables.hazards()
        self.languages = tables.languages()
        self.things = tables.things()
        self.names = Lexicon(_household_aliases(household))
        rows = tables.kept()
        self.extra: Recogniser = Lexicon(extra) if rows is None else KeptLexicon("ingredient", rows)
        self.words = {
            name: frozenset[str]().union(*(language.words[name] for language in self.languages))
            for name in self.languages[0].words
        }
        self.spelling = {word: meant for language in self.languages for word, meant in language.spelling.items()}
        self.markers = frozenset[str]().union(*(language.markers for language in self.languages))
        self.known = _known_words(self, rows)
        self.near_names = Neighbours((pet.name.casefold() for pet in household.pets), two=False)

    @cached_property
    def measured(self) -> frozenset[str]:
        """Every measured word and weekday of every language."""
        words = (part for one in self.languages for part in (one.metrics.phrases(), one.times.weekdays))
        return frozenset[str]().union(*words)


def _known_words(reader: Reader, rows: KeptAliases | None) -> Container[str]:
    """Words of the household and of every vocabulary: none of them is a misspelling."""
    own = reader.names.words()
    if rows is not None:
        lists = (f"known.{language.id}" for language in reader.languages)
        return KeptWords(rows, (*lists, "known.thing", "known.hazard", "known.ingredient"), own)
    words = {name: frozenset(known) for name, known in tables.vocabulary_words().items()}
    return own.union(*words.values(), (word for form in reader.extra.phrases() for word in form.split(" ")))


def _household_aliases(household: Household) -> Iterable[Alias]:
    for pet in household.pets:
        for name in (pet.name, *pet.aliases):
            yield Alias(name, Reading("pet", pet.id), "name")
    for device in household.devices:
        if device.name and device.name != device.id:
            for name in (device.name, *device.aliases):
                yield Alias(name, Reading("device", f"device:{device.id}"), "name")
    for place in household.places:
        for name in (place.name, *place.aliases):
            yield Alias(name, Reading("place", f"place:{place.id}"))
            yield Alias(name.replace("'", "").replace("\u2019", ""), Reading("place", f"place:{place.id}"))
        for word in fold_alias(place.kind):
            if len(word) > 3:
                yield Alias(f"the {word}", Reading("place", f"place:{place.id}"))
                yield Alias(word, Reading("place", f"place:{place.id}"))
    for person in household.people:
        yield Alias(person.name, Reading("person", f"person:{person.id}"), "name")
    for kind, rows in (("own_food", household.foods), ("own_med", household.medicines)):
        prefix = "food" if kind == "own_food" else "med"
        for row in rows:
            for name in (row.name, *row.aliases):
                yield Alias(name, Reading(kind, f"{prefix}:{row.id}"), "name")


def reader_for(household: Household, extra: tuple[Alias, ...] = ()) -> Reader:
    """The household's reader; the same household gets the same one."""
    return _reader(household, extra, tables.kept())


@lru_cache(maxsize=8)
def _reader(household: Household, extra: tuple[Alias, ...], _rows: KeptAliases | None) -> Reader:
    return Reader(household, extra)


def language_of(tokens: Sequence[Token], languages: Sequence[Language], hint: str | None = None) -> Language:
    """The language with the most function words; a tie goes to the hint, then to the language
    that knows more of the words, then to table order.
    """
    counts = {language.id: sum(token.text in language.markers for token in tokens) for language in languages}
    known = {language.id: sum(token.text in language.known for token in tokens) for language in languages}
    ordered = sorted(languages, key=lambda language: (-counts[language.id], language.id != hint, -known[language.id]))
    return ordered[0]


def link(text: str, reader: Reader, calendar: Calendar, *, hint: str | None = None) -> Linked:
    """Link a question (already cut to its length limit)."""
    tokens = spelled_out(tokens_of(text), reader)
    language = language_of(tokens, reader.languages, hint)
    near, corrected, corrections = respelled(tokens, reader, language)
    times = _with_the_other_period(read_times(corrected, language.times, calendar), corrected, language, calendar)
    frames = language.frames.find(text, corrected)
    cues = by_cue(language.cues.every_in(text, corrected), frames)
    chosen = _things_in(text, corrected, reader, cues, articles=language.words["articles"])
    cues = outside_names(cues, chosen)
    meals = [(m.first, m.last) for m in language.metrics.find_in(text, corrected) if m.last - m.first > 1]
    chosen = tuple((m, r) for m, r in chosen if r.kind not in {"food", "ing"} or not _inside(m, meals))
    covered = {index for match, _ in chosen for index in range(match.first, match.last)}
    times = _with_since_a_food(times, corrected, language, cues=cues, chosen=chosen)
    events = _events_in(text, corrected, language)
    blocked = {i for first, last, _ in events for i in range(first, last)}
    blocked |= {i for span in times if span.event for i in range(span.first, span.last)}
    free = tuple(span for span in cues.get("cause", ()) if not blocked.issuperset(range(*span)))
    free = tuple(sorted({*free, *blamed(corrected, chosen, language.words["blames"])}))
    cues = {**cues, "cause": free}  # the "change" of "food change" causes nothing
    blocked |= {i for match, reading in chosen if _is_solid(reading) for i in range(match.first, match.last)}
    blocked |= {i for first, last in cues.get("idiom", ()) for i in range(first, last)}
    metrics = _metrics_in(text, corrected, language, frames, blocked)
    spent = blocked | {i for hit in metrics for i in range(hit.first, hit.last)}
    directions = _directions_in(text, corrected, language, frames, blocked)
    cues = outside_measured(cues, metrics)
    seen = partial(_danger_words, text, reader, language=language, cues=cues, chosen=chosen)
    toxins, signs = seen(tokens)
    near_misses: tuple[tuple[str, str], ...] = ()
    if near != tokens and (careful := seen(near)) != (toxins, signs):
        near_misses = tuple((a.text, b.text) for a, b in zip(tokens, near, strict=True) if a.text != b.text)
        toxins, signs = careful
    poisons = {i for first, last, _ in toxins for i in range(first, last)}
    chosen = tuple((m, r) for m, r in chosen if r.kind not in _HIDDEN or m.first not in poisons)
    used = covered | {i for spans in cues.values() for a, b in spans for i in range(a, b)}
    used |= {i for span in times for i in range(span.first, span.last)} | spent
    unmatched = tuple(
        token.text
        for index, token in enumerate(tokens)
        if index not in used and token.text[0].isalpha() and token.text not in reader.known
    )
    return Linked(
        text=text,
        tokens=corrected,
        language=language,
        mentions=tuple(_mention(match, reading) for match, reading in chosen),
        spans=tuple((match.first, match.last) for match, _ in chosen),
        cues=cues,
        metrics=metrics,
        directions=directions,
        times=times,
        events=events,
        toxins=toxins,
        signs=signs,
        near_misses=near_misses,
        corrections=corrections,
        unmatched=unmatched,
        opens_at=opening(corrected, cues, 0, len(corrected)),
        asked=(0, len(corrected)),
    )


# --- where the question begins ----------------------------------------------------------------


def opening(tokens: Sequence[Token], cues: Spans, first: int, last: int) -> int:
    """The first token of ``[first, last)`` that does not only lead up to the question ("ok so do you know")."""
    at = first
    while at < last:
        if not tokens[at].text[0].isalnum():
            at += 1
            continue
        ends = [end for begin, end in cues.get("wrapper", ()) if begin == at and end <= last]
        if not ends:
            break
        at = max(ends)
    return at if at < last else first


def _inside(match: Match, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a mention is only part of a longer measured phrase (the "tea" of "had her tea")."""
    return any(a <= match.first and match.last <= b and b - a > match.last - match.first for a, b in spans)


def _the_day_before(
    times: tuple[TimeSpan, ...], tokens: Sequence[Token], language: Language, calendar: Calendar
) -> TimeSpan | None:
    """The day before another ("yesterday compared to the day before"), where the words end there."""
    texts = [token.text for token in tokens]
    for phrase in sorted(language.words["day_before"]):
        words = phrase.split(" ")
        for at in range(1, len(texts) - len(words) + 1):
            end = at + len(words)
            ended = end >= len(texts) or not texts[end][0].isalpha()
            taken = any(span.first < end and at < span.last for span in times)
            named = [span.window for span in times if span.window is not None and span.last <= at]
            if texts[at:end] != words or not ended or taken or not named or named[0].first_date != named[0].last_date:
                continue
            label = add_days(named[0].first_date, -1)
            return TimeSpan(at, end, label, window_of(label, calendar))
    return None


_OTHER_PERIOD = {"P7D": "PREV_WEEK", "P30D": "PREV_MONTH"}


def _with_the_other_period(
    times: tuple[TimeSpan, ...], tokens: Sequence[Token], language: Language, calendar: Calendar
) -> tuple[TimeSpan, ...]:
    """The spans, and the period that "this week vs last" leaves half unsaid."""
    words = language.words
    before = _the_day_before(times, tokens, language, calendar)
    if before is not None:
        return tuple(sorted((*times, before), key=lambda found: found.first))
    for span in times:
        other = _OTHER_PERIOD.get(span.label)
        index = span.last
        if other is None or index >= len(tokens) or tokens[index].text not in words["then_leads"]:
            continue
        index += 1
        while index < len(tokens) and tokens[index].text in words["articles"] | words["then_leads"]:
            index += 1  # "comparado con la anterior"
        ended = index + 1 >= len(tokens) or not tokens[index + 1].text[0].isalpha()
        if index < len(tokens) and tokens[index].text in words["then_last"] and ended:
            more = TimeSpan(span.last, index + 1, other, window_of(other, calendar))
            return tuple(sorted((*times, more), key=lambda found: found.first))
    return times


_SINCE_WORDS = 5
"""Words from "since" to a food's name: "since we have her on Acme"."""


def _with_since_a_food(
    times: tuple[TimeSpan, ...],
    tokens: Sequence[Token],
    language: Language,
    *,
    cues: Spans,
    chosen: Sequence[tuple[Match, Reading]],
) -> tuple[TimeSpan, ...]:
    """The spans, and "since she gets Acme": since that food began, which the records know."""
    taken = {i for span in times for i in range(span.first, span.last)}
    taken |= {i for first, last in cues.get("since_when", ()) for i in range(first, last)}
    for match, reading in chosen:
        if reading.kind != "own_food":
            continue
        for index in range(max(0, match.first - _SINCE_WORDS), match.first):
            found = language.times.joints.at(tokens, index) if index not in taken else ()
            if any(one.target == "since" for _, readings in found for one in readings):
                since = TimeSpan(index, match.last, "SINCE:food_change", None, "food_change")
                return tuple(sorted((*times, since), key=lambda span: span.first))
    return times


# --- mentions -------------------------------------------------------------------------------

_HIDDEN = frozenset({"ing", "food", "med", "harmless"})
"""Kinds of mention that a toxin's longer name hides ("macadamia nuts", "dog flea drops")."""

_ORDER = ("pet", "own_food", "own_med", "device", "place", "person")
_THING_ORDER = ("topic", "med", "src", "cond", "ing", "food", "breed", "species_plural", "species", "body", "harmless")


def _is_solid(reading: Reading) -> bool:
    """Whether a mention's words may not also be read as a measured word ("chicken kibble")."""
    return reading.kind in {"pet", "own_food", "own_med", "device", "place", "person", "topic", "med", "ing", "food"}


def _things_in(
    text: str, tokens: Sequence[Token], reader: Reader, cues: Spans, *, articles: frozenset[str]
) -> tuple[tuple[Match, Reading], ...]:
    """Longest matches over all lexicons, each with the one reading its place allows."""
    found: list[tuple[Match, Reading]] = []
    index = 0
    while index < len(tokens):
        hits: dict[int, set[Reading]] = {}
        for lexicon in (reader.names, reader.extra, reader.things.lexicon):
            for count, readings in lexicon.at(tokens, index):
                hits.setdefault(count, set()).update(readings)
        step = 1
        for count in sorted(hits, reverse=True):
            place = (index, count)
            chosen = _choose(reader, tokens, place, hits[count], cues=cues, before=found, articles=articles)
            if chosen is not None:
                start, end = tokens[index].start, tokens[index + count - 1].end
                others = tuple(sorted(hits[count] - {chosen}))
                found.append((Match(start, end, text[start:end], index, index + count, (chosen, *others)), chosen))
                step = count
                break
        index += step
    return tuple(found)


def _choose(
    reader: Reader,
    tokens: Sequence[Token],
    place: tuple[int, int],
    readings: set[Reading],
    *,
    cues: Spans,
    before: Sequence[tuple[Match, Reading]],
    articles: frozenset[str],
) -> Reading | None:
    """One reading by place in the sentence: the stated order of preference.

    ``articles`` are the language's own: "a peanut" is a nut in English and the pet in Spanish.

    1. "Max 10 kg" is a limit. 2. A place's name after at, to, from, unless a thing of the pet
    follows ("at Bella's bowl"). 3. A pet's name that is also a thing is the thing after an
    article, or as what another pet eats. 4. An animal that is also eaten is the animal after an
    article. 5. Household before vocabulary, in ``_ORDER``.
    """
    index, count = place
    word = tokens[index].text
    lead = tokens[index - 1].text if index else ""
    following = tokens[index + count].text if index + count < len(tokens) else ""
    by_kind = {kind: sorted(r for r in readings if r.kind == kind) for kind in {r.kind for r in readings}}
    if "pet" in by_kind and word in _LIMIT_WORDS and following[:1].isdigit():
        by_kind.pop("pet")
    if "pet" in by_kind and "place" in by_kind:
        after = index + count + (following in reader.words["lasts"])
        owned = after < len(tokens) and tokens[after].text in reader.words["owned"]
        at_place = lead in reader.words["place_leads"] and not owned
        by_kind.pop("pet" if at_place else "place")
    things = any(kind in by_kind for kind in _THING_ORDER if kind != "harmless")
    things = things or any(True for _ in reader.hazards.substances.at(tokens[index : index + count], 0))
    if "pet" in by_kind and things:
        other_pet = any(reading.kind == "pet" for _, reading in before)
        eaten = other_pet and any(last == index for name in ("eat_ask", "contact") for _, last in cues.get(name, ()))
        owner = count == 1 and word.endswith("'s")  # "the cause of Ginger's itching"
        article = lead in articles and not _no_article(reader, tokens, place)
        if not owner and (article or eaten or _judged_for(tokens, index + count, cues)):
            by_kind.pop("pet")
    if "ing" in by_kind and by_kind.keys() & {"species", "species_plural"}:  # "a rabbit" lives, "rabbit" is eaten
        pointed = any(last == index for name in ("definite", "kind_of", "both") for _, last in cues.get(name, ()))
        lives = "species_plural" in by_kind or (pointed and lead != "any" and not _is_condition(reader, tokens, place))
        by_kind.pop("ing" if lives else "species")
    for kind in (*_ORDER, *_THING_ORDER):
        if kind in by_kind:
            return by_kind[kind][0]
    return min((r for rows in by_kind.values() for r in rows), default=None)


def _is_condition(reader: Reader, tokens: Sequence[Token], place: tuple[int, int]) -> bool:
    """Whether a condition follows: "a rabbit allergy"."""
    after = place[0] + place[1]
    found = reader.things.lexicon.at(tokens, after) if after < len(tokens) else ()
    return any(reading.kind == "cond" for _, readings in found for reading in readings)


def _no_article(reader: Reader, tokens: Sequence[Token], place: tuple[int, int]) -> bool:
    """Whether the word before a pet's name is none: "the weight of Peanut", "my Ivy", "how much Biscuit ate"."""
    index = place[0]
    lead, before = tokens[index - 1].text, tokens[index - 2].text if index > 1 else ""
    if lead == "of":
        return before not in reader.words["object_links"]
    return lead in {"my", "our"} or (lead in {"that", "much"} and _goes_on_alone(reader, tokens, place))


def _goes_on_alone(reader: Reader, tokens: Sequence[Token], place: tuple[int, int]) -> bool:
    """Whether words follow a pet's name, and no other pet is named and no "he" said before: it is who is meant."""
    index, count = place
    after = index + count
    others = (at for at in range(len(tokens)) if not index <= at < after)
    named = any(
        reading.kind == "pet" for at in others for _, readings in reader.names.at(tokens, at) for reading in readings
    )
    pronoun = any(token.text in reader.words["pet_before"] for token in tokens[:index])
    return after < len(tokens) and tokens[after].text[0].isalpha() and not named and not pronoun


def _judged_for(tokens: Sequence[Token], end: int, cues: Spans) -> bool:
    """Whether "... ok for", "... toxic to" follows: then the word before is a thing, no pet."""
    tails = {"for", "to", "fur", "para"}
    return any(
        first in {end, end + 1} and any(i < len(tokens) and tokens[i].text in tails for i in (last - 1, last))
        for first, last in cues.get("can", ())
    )


def _mention(match: Match, reading: Reading) -> Mention:
    passed = tuple((r.target, "another reading fits its place better") for r in match.readings if r != reading)
    return Mention(match.start, match.end, match.text, reading.target, reading.kind, passed)


def _hosts(household: Household, chosen: Sequence[tuple[Match, Reading]]) -> frozenset[str]:
    """Species a sign may be about: of the pets and species named, else of every pet here."""
    named = {pet.species for pet in household.pets for _, r in chosen if r.kind == "pet" and r.target == pet.id}
    named |= {r.target.partition(":")[2] for _, r in chosen if r.kind in {"species", "species_plural"}}
    return frozenset(named) or frozenset(pet.species for pet in household.pets)


# --- cues, measured words, directions -------------------------------------------------------


def _metrics_in(
    text: str, tokens: Sequence[Token], language: Language, frames: Sequence[FrameHit], blocked: set[int]
) -> tuple[MetricHit, ...]:
    """Measured words in text order; a frame ("hasn't touched her food") hides the words inside it."""
    hits = [_metric_hit(hit.first, hit.last, hit.target) for hit in frames if hit.kind == "metric"]
    hits = [hit for hit in hits if not blocked.issuperset(range(hit.first, hit.last))]  # "bring up what he ate"
    hits = [hit for hit in hits if not any(_encloses(other, hit) for other in hits)]
    taken = blocked | {i for hit in hits if not hit.faint for i in range(hit.first, hit.last)}
    for match in language.metrics.find_in(text, tokens):
        if not taken.intersection(range(match.first, match.last)):
            hits += [_metric_hit(match.first, match.last, reading.target) for reading in match.readings]
    return tuple(sorted(hits, key=lambda hit: hit.first))


def _metric_hit(first: int, last: int, target: str) -> MetricHit:
    name, _, way = target.removeprefix("?").partition(":")
    return MetricHit(first, last, name, way or None, faint=target.startswith("?"))


def _encloses(other: MetricHit, hit: MetricHit) -> bool:
    return other.first <= hit.first and hit.last <= other.last and other.last - other.first > hit.last - hit.first


_NAMED_EVENTS = frozenset({"food_change", "visitor", "fireworks", "bath", "surgery"})
"""Events that are asked about by themselves; of the others the words also name a medicine, a place or the vet."""


def _events_in(text: str, tokens: Sequence[Token], language: Language) -> tuple[tuple[int, int, str], ...]:
    """Stored events named on their own: "the food switch", "the visitor"."""
    found = language.times.events.find_in(text, tokens)
    return tuple((m.first, m.last, m.readings[0].target) for m in found if m.readings[0].target in _NAMED_EVENTS)


def _directions_in(
    text: str, tokens: Sequence[Token], language: Language, frames: Sequence[FrameHit], spent: set[int]
) -> tuple[tuple[int, int, str], ...]:
    """Direction words outside names and events; a longer phrase hides those inside it.

    "ignore" phrases hide theirs as well and say nothing themselves ("how often", "wake up").
    """
    named: dict[tuple[int, int], set[str]] = {}
    for match in language.directions.every_in(text, tokens):
        named.setdefault((match.first, match.last), set()).update(reading.target for reading in match.readings)
    for hit in frames:
        if hit.kind == "dir":
            named.setdefault((hit.first, hit.last), set()).add(hit.target)
    found = []
    for (first, last), names in sorted(named.items()):
        longer = any(a <= first and last <= b and b - a > last - first for a, b in named)
        if longer or "ignore" in names or spent.intersection(range(first, last)):
            continue
        for name in ("same", "up", "down", "worse", "better"):
            if name in names:
                strength = "weak_" if f"weak_{name}" in names else ""
                found.append((first, last, strength + name))
    return tuple(found)


# --- danger ---------------------------------------------------------------------------------


_Danger = tuple[tuple[tuple[int, int, str], ...], tuple[SignHit, ...]]


def _danger_words(
    text: str,
    reader: Reader,
    tokens: Sequence[Token],
    *,
    language: Language,
    cues: Spans,
    chosen: Sequence[tuple[Match, Reading]],
) -> _Danger:
    """Toxins and emergency signs named; an ingredient that is only a toxin's other name makes no host."""
    toxins = _toxins_in(text, tokens, reader, language=language, cues=cues, chosen=chosen)
    poisons = {i for first, last, _ in toxins for i in range(first, last)}
    kept = tuple((m, r) for m, r in chosen if r.kind not in _HIDDEN or m.first not in poisons)
    return toxins, reader.hazards.signs_in(text, tokens, hosts=_hosts(reader.household, kept))


def _toxins_in(
    text: str,
    tokens: Sequence[Token],
    reader: Reader,
    *,
    language: Language,
    cues: Spans,
    chosen: Sequence[tuple[Match, Reading]],
) -> tuple[tuple[int, int, str], ...]:
    """Toxins, carriers and people's medicines that the sentence really names.

    A household's own name for a pet, food, medicine or place hides a toxin word inside it, and
    so does a thing that is called by it (a coffee table);
    everyday words (a battery, a string, salt) count only as what was eaten or touched.
    """
    own = [(m, r) for m, r in chosen if r.kind in {"pet", "own_food", "own_med", "place", "device"}]
    longer = [(m, r) for m, r in chosen if r.target == "food:peanut_butter"]
    found = []
    for match in reader.hazards.substances_in(text, tokens):
        span = (match.first, match.last)
        if any(m.first <= span[0] and span[1] <= m.last for m, _ in (*own, *longer)):
            continue
        if any(first <= span[0] and span[1] <= last for first, last in cues.get("no_substance", ())):
            continue  # "on the coffee table"
        for reading in match.readings:
            context = reader.hazards.toxins[reading.target].context
            names = {"swallow": ("swallow",), "contact": ("swallow", "contact", "eat_ask")}.get(context, ())
            if names and not is_object_of(
                cues, names, tokens, span, language=language, links=reader.words["object_links"]
            ):
                continue
            found.append((*span, reading.target))
    return tuple(found)
