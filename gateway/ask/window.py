"""Which window a question asks about, of the time expressions it holds.

In: the facts of a question and its intent. Out: a label and an interval, as the frame holds
them. The first firm expression wins over "now" and "lately"; a comparison has two; where
nothing is said the intent's own default holds. Never reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from gateway.ask.facts_said import LEVELS
from gateway.ask.times import Calendar, TimeSpan, whole_month, window_of
from gateway.measure.days import add_days
from gateway.model import Window

if TYPE_CHECKING:
    from gateway.ask.facts_said import Facts

__all__ = ["window_asked"]

_DEFAULT_WINDOW: Mapping[str, str] = {
    "trend": "RECENT", "select_pets": "RECENT", "event_when": "LAST", "overview": "RECENT", "enough": "RECENT",
    "too_heavy": "NOW",
}  # fmt: skip

_UNDATED = frozenset({
    "exposure", "triage", "food_ok", "ingredient_lookup", "reference", "provenance", "correction", "med_safety",
    "out_of_scope", "need_vet", "vet_summary", "switch_back", "why_notice",
})  # fmt: skip
"""Intents whose answer does not depend on a window."""


def window_asked(
    facts: Facts, calendar: Calendar, intent: str, metric: str | None, subjects: tuple[str, ...]
) -> tuple[str | None, Window | None]:
    """The question's window label, and its interval where it has one.

    ``metric`` and ``subjects`` are those of the frame; a symbolic label ("SINCE:food_change") has no interval.
    """
    if intent in _UNDATED:
        return None, None
    spans = [span for span in facts.linked.times if _dates(span, facts)]
    if intent == "compare_periods":
        return _two_windows(spans, subjects, calendar)
    night = any(span.label == "NIGHT" for span in spans)
    dated = [span for span in spans if span.label not in {"NIGHT", "NEXT"} and not span.around]
    if intent == "onset":  # "how long has he been on it now"
        dated = [span for span in dated if span.label not in {"NOW", "RECENT"}]
    if intent == "overview":  # "did he get worse after the food change" looks at the time since
        dated += [TimeSpan(s.first, s.last, f"SINCE:{s.event}", None, s.event) for s in spans if s.around and s.event]
    if intent == "event_when":  # "how long is it since the last flea treatment" asks for that date
        dated = [span for span in dated if span.event is None]
    if intent == "trend":  # "is he calmer now" is of these days
        dated = [span for span in dated if span.label != "NOW"]
    if intent in _HABITS and not _past_or_perfect(facts):  # "he scratches all day": each day, not today
        dated = [span for span in dated if not span.habit]
    if intent in {"explain_change", "cause_check"}:  # "far more than last month": what it is held against
        dated = [span for span in dated if not (_held_against(span, facts) or _of_the_owner(span, facts))]
    asks_next = facts.has("due") or facts.linked.starts("when", within=1)
    if intent == "med_timing" and not dated and asks_next and not facts.linked.starts("how_much", within=2):
        return "NEXT", None
    chosen = _strongest(_widened(dated) if intent in _HABITS else dated)
    if chosen is not None:
        if night and metric != "restless" and chosen.label.startswith("P"):
            label = f"NIGHT:{chosen.label}"
            return label, window_of(label, calendar)
        return chosen.label, chosen.window
    if night and intent != "onset":
        return "NIGHT", window_of("NIGHT", calendar)
    by_month = intent == "purchases" or (intent == "record_lookup" and facts.has("fact_food"))
    language = facts.linked.language
    leads = None if by_month else language.words["month_leads"]
    told = by_month or (intent in _MONTHLY and metric is not None)
    month = whole_month(facts.linked.tokens, language.times, calendar, leads=leads) if told else None
    if month is not None:
        return month.label, month
    default = _default_label(facts, intent, metric, subjects)
    return default, None if default is None else window_of(default, calendar)


_HABITS = frozenset({"explain_change", "cause_check", "trend", "onset"})
"""Intents about how it goes these days, unless their verb says that it is over."""


def _past_or_perfect(facts: Facts) -> bool:
    words = facts.linked.language.words
    first, last = facts.linked.asked
    over = words["past_aux"] | words["lasting"]
    return any(facts.linked.word(i).removesuffix("n't") in over for i in range(first, last))


def _dates(span: TimeSpan, facts: Facts) -> bool:
    """Whether a time expression stands outside the measured word ("night restlessness")."""
    return (
        span.label != "NIGHT"
        or span.last - span.first > 1
        or all(not (hit.first <= span.first and span.last <= hit.last) for hit in facts.linked.metrics)
    )


_MONTHLY = frozenset({"quantity", "trend", "event_check", "event_when", "explain_change", "compare_pets"})
"""Intents in which "in June" is that month."""

_THAN = 4
"""Words between "than" and the time it leads to ("than she did a few weeks ago")."""


def _held_against(span: TimeSpan, facts: Facts) -> bool:
    """Whether a time is only what a change is held against: "than last month", "than she did a few weeks ago"."""
    than = facts.linked.language.words["than"] - facts.linked.language.words["since_too"]
    measured = {i for hit in facts.linked.metrics for i in range(hit.first, hit.last)}
    usual = (place for cue in ("usual", "normal") for place in facts.linked.cues.get(cue, ()))
    measured |= {
        i for place in usual for i in range(*place) if facts.linked.word(place[0]) not in than
    }  # "than usual this week"
    for i in range(span.first - 1, max(-1, span.first - 2 - _THAN), -1):
        if facts.linked.word(i) in than and i not in measured:
            return not any(other.first <= j < other.last for other in facts.linked.times for j in range(i, span.first))
        if i in measured:
            return False
    return False


def _of_the_owner(span: TimeSpan, facts: Facts) -> bool:
    """Whether a time is of what the owner did: "he is itching again and I gave him flea drops last month"."""
    hit, tellers = facts.metric, facts.linked.language.words["tellers"]
    return (
        hit is not None
        and hit.last <= span.first
        and any(facts.linked.word(i) in tellers for i in range(hit.last, span.first))
    )


def _widened(spans: list[TimeSpan]) -> list[TimeSpan]:
    """Without a night or day that a later "all week" takes in: "twice last night, and it's been like this all week"."""
    weeks = [span for span in spans if span.label in {"P7D", "P14D", "P30D"}]
    single = {"LAST_NIGHT", "TODAY", "YESTERDAY", "THIS_MORNING", "TONIGHT"}
    return [span for span in spans if span.label not in single or not any(week.first > span.first for week in weeks)]


def _strongest(spans: list[TimeSpan]) -> TimeSpan | None:
    """The first expression that is no mere "now" or "lately"; else the first."""
    firm = [span for span in spans if span.label not in {"NOW", "RECENT"}]
    return next(iter(firm or spans), None)


_PARTNER = {"PREV_WEEK": "P7D", "PREV_MONTH": "P30D", "YESTERDAY": "TODAY"}


def _two_windows(
    spans: list[TimeSpan], subjects: tuple[str, ...], calendar: Calendar
) -> tuple[str | None, Window | None]:
    """``P7D|PREV_WEEK``: the later window first; its interval is the later one's."""
    dated = [(span.window, span.label) for span in spans if span.window is not None and span.label != "NIGHT"]
    if len(dated) >= 2:
        (window, later), (_, earlier) = sorted(dated[:2], key=lambda pair: -pair[0].interval.end_ms)
        if later == earlier:  # "last week ... the week before": the days before those
            days = date.fromisoformat(window.last_date) - date.fromisoformat(window.first_date)
            last = add_days(window.first_date, -1)
            earlier = f"{add_days(last, -days.days)}/{last}"
        return f"{later}|{earlier}", window
    for span in spans:
        if span.around:
            return span.label, None
    if len(dated) == 1 and dated[0][1] in _PARTNER:
        partner = _PARTNER[dated[0][1]]
        return f"{partner}|{dated[0][1]}", window_of(partner, calendar)
    if any(subject.startswith("med:") for subject in subjects):
        return "AROUND:med", None
    if any(subject.startswith("food:") for subject in subjects):
        return "AROUND:food_change", None
    return (spans[0].label, spans[0].window) if spans else (None, None)


_MEAL_WINDOW = {"morning_meal": "THIS_MORNING", "evening_meal": "TODAY"}
"""Where a meal is named and no day. Dinner is given in the afternoon as well."""


def _default_label(facts: Facts, intent: str, metric: str | None, subjects: tuple[str, ...]) -> str | None:
    linked = facts.linked
    if intent == "event_check":
        closed = linked.language.words
        meals = [part for t in linked.tokens for words, part in _MEAL_WINDOW.items() if t.text in closed[words]]
        food = metric in {"intake", "meals", "water"} or any(subject.startswith("med:") for subject in subjects)
        return meals[0] if meals else "TODAY" if food else None
    if intent in {"record_lookup", "device_status"} and linked.has("last"):
        return "LAST"
    if intent == "purchases" and (linked.has("last") or linked.starts("when", within=2)):
        return "LAST"
    if intent == "device_status" and metric == "battery":
        return "NOW"
    if intent == "quantity" and metric in LEVELS:
        return "NOW"
    if intent == "normal_check" and facts.who.pets and not facts.who.hosts:
        return "RECENT"
    if intent == "overview" and linked.has("away"):
        return None
    return _DEFAULT_WINDOW.get(intent)
