"""What only people see and write down: vomiting, limping, loose stools, coughs, seizures, weights by hand.

In goes a question about such a property; out come the log entries of the time asked about, counted
and opened one by one. A log holds what somebody saw and wrote down: a count of it is no rate, and
an empty one is no zero.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gateway.ask.blame import counted_words, say_exposures
from gateway.ask.causes import LAG_MS
from gateway.ask.dated import dated_in, say_entry
from gateway.ask.said import Said, said, say, verbatim
from gateway.ask.settle import log_day, log_next
from gateway.ask.sources import say_logged
from gateway.ask.weighed import last_weighing
from gateway.ask.wording import clock_time, day, day_range, number
from gateway.dialogue import NoticeKind
from gateway.measure.days import add_days, dates_between, local_day
from gateway.model import Interval

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Pet, Window
    from gateway.ontology.vocabulary import Property
    from gateway.stored import TextRecord

__all__ = ["SIGN_INTENTS", "is_written", "logged_sign", "say_signs", "signs_lately"]

SIGN_INTENTS = frozenset({
    "quantity", "event_check", "event_when", "normal_check", "trend", "compare_periods", "onset", "explain_change",
    "before_change", "enough",
})  # fmt: skip
_CHANGES = frozenset({"trend", "compare_periods", "normal_check", "onset", "explain_change", "before_change"})
_SHOWN = 4
_LOOK_BACK_DAYS = 30
_LATELY_MS = 14 * 86_400_000
_SIGNS = ("vomit", "stool", "cough", "limp", "seizure")
_FIGURE = re.compile(r"(\d+(?:[.,]\d+)?)\s*(kg|g|lb|lbs)?\b")
_ONLY_SEEN = "A log holds only what somebody saw and wrote down"


def is_written(scene: Scene, question: Question, pet: Pet, observed: Property) -> bool:
    """Whether the question is about something people write down, and its log is what answers it."""
    if question.intent not in SIGN_INTENTS:
        return False
    if observed.kind == "level":
        changes = question.intent in _CHANGES and len(_entries(scene, pet, observed)) > 0
        by_hand = observed.evidence_class == "RECORDED" or (
            observed.id == "weight" and last_weighing(scene, pet) is None
        )
        return changes and by_hand
    return observed.evidence_class == "RECORDED"


def logged_sign(
    scene: Scene, question: Question, draft: Draft, pet: Pet, observed: Property, *, window: Window, phone: Said
) -> None:
    """Answer from the log, by what is asked: how often, when last, since when, more than before, why.

    ``phone`` is the vet's number in brackets, or nothing.
    """
    entries = _entries(scene, pet, observed)
    if observed.kind == "level":
        _levels(scene, draft, pet, observed, entries)
        return
    if not entries:
        draft.say(
            NoticeKind.SHORT,
            say("No {series.is} logged for {pet}", series=observed, pet=pet),
            slot=observed.id,
            device="people",
        )
        draft.say(NoticeKind.ABSENCE, _ONLY_SEEN, slot=observed.id)
        log_next(draft, observed.id)
    elif question.intent == "event_when":
        _say(scene, draft, pet, entries[-1:], last=True)
    elif question.intent == "onset":
        _since(scene, draft, pet, observed, entries)
    elif question.intent in ("explain_change", "before_change"):
        _why(scene, draft, pet, observed, entries=entries, why=question.intent == "explain_change")
    else:
        _counted(scene, draft, pet, observed, entries=entries, window=window, changed=question.intent in _CHANGES)
    seen = observed.id in _SIGNS and question.intent in ("quantity", "event_check")
    if question.intent in _CHANGES or seen:
        draft.paragraph()
        draft.say(
            NoticeKind.CAUTION,
            say(
                "Call your vet{phone} today if it keeps coming, or if {pet.he} is weak, hides or won't eat",
                phone=phone,
                pet=pet,
            ),
        )


def signs_lately(scene: Scene, pet: Pet) -> bool:
    """Whether any sign is logged within the last two weeks."""
    since = scene.now_ms - _LATELY_MS
    return any(
        (entry.at_ms or 0) >= since
        for name in _SIGNS
        for entry in _entries(scene, pet, scene.ontology.properties[name])
    )


def say_signs(scene: Scene, draft: Draft, pet: Pet, window: Window | None) -> None:
    """Every sign logged in the window (in the last 30 days, where none is given), latest first."""
    start = scene.window("P30D", add_days(scene.today, 1 - _LOOK_BACK_DAYS), scene.today)
    inside = (start if window is None else window).interval
    found = [
        entry
        for name in _SIGNS
        for entry in _entries(scene, pet, scene.ontology.properties[name])
        if inside.start_ms <= (entry.at_ms or 0) < inside.end_ms
    ]
    found.sort(key=lambda entry: (entry.at_ms or 0, entry.ref.text))
    _say(scene, draft, pet, found[-_SHOWN:])
    if len(found) > _SHOWN:
        more = say("{count} more logged before these", count=len(found) - _SHOWN)
        draft.say(NoticeKind.ABSENCE, more, slot="record")


def _entries(scene: Scene, pet: Pet, observed: Property) -> list[TextRecord]:
    """The pet's dated log entries of the property, oldest first."""
    kinds = {kind.id for kind in scene.ontology.log_kinds.values() if kind.property == observed.id}
    return [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.object in kinds and entry.pet == pet.id and entry.at_ms is not None
    ]


def _within(entries: list[TextRecord], span: Interval) -> list[TextRecord]:
    return [entry for entry in entries if span.start_ms <= (entry.at_ms or 0) < span.end_ms]


def _times(count: int) -> Said:
    if count in (1, 2):
        return said("once" if count == 1 else "twice")
    return say("{count} times", count=count)


def _counted(
    scene: Scene,
    draft: Draft,
    pet: Pet,
    observed: Property,
    *,
    entries: list[TextRecord],
    window: Window,
    changed: bool,
) -> None:
    inside = _within(entries, window.interval)
    dates = _dates(scene, window)
    if inside:
        often = _times(len(inside))
        opening = say("{series.is!u} logged {often} {dates}", series=observed, often=often, dates=dates)
    else:
        opening = say("No {series.is} logged {dates}", series=observed, dates=dates)
    if changed:
        days = len(dates_between(window.first_date, window.last_date))
        first = add_days(window.first_date, -days)
        before = len(_within(entries, scene.window("BEFORE", first, add_days(window.first_date, -1)).interval))
        often = _times(before) if before else said("not once")
        opening = (
            say("{opening}, {often} in the day before", opening=opening, often=often)
            if days == 1
            else say("{opening}, {often} in the {days} days before", opening=opening, often=often, days=days)
        )
    draft.say(NoticeKind.SHORT, opening, slot=None if inside else observed.id)
    if not inside:
        log_day(draft, observed.id)
    _say(scene, draft, pet, inside[-_SHOWN:] or entries[-1:], last=not inside)
    if len(inside) > _SHOWN:
        more = say("{count} more before these", count=len(inside) - _SHOWN)
        draft.say(NoticeKind.ABSENCE, more, slot="record")
    draft.say(NoticeKind.CAUTION, _ONLY_SEEN)


def _dates(scene: Scene, window: Window) -> Said:
    if window.first_date == window.last_date == scene.today:
        return say("today ({day})", day=day(window.first_date))
    if window.first_date == window.last_date:
        return say("on {day}", day=day(window.first_date, year_of=scene.today))
    return day_range(window.first_date, window.last_date, year_of=scene.today)


def _say(scene: Scene, draft: Draft, pet: Pet, entries: list[TextRecord], *, last: bool = False) -> None:
    """Entries latest first, each in its own words with its day and hour."""
    for entry in reversed(entries):
        at_ms = entry.at_ms or 0
        date = day(local_day(at_ms, scene.zones), year_of=scene.today)
        when = say("{day}, {clock}", day=date, clock=clock_time(scene.local(at_ms)))
        words = verbatim(" ".join(entry.text.split()))
        told = (
            say("{text!u} on {when}, the last on file", text=words, when=when)
            if last
            else say("{text!u} on {when}", text=words, when=when)
        )
        say_logged(draft, entry, told, pet=pet.id)


def _since(scene: Scene, draft: Draft, pet: Pet, observed: Property, entries: list[TextRecord]) -> None:
    """The first of the entries of the last 30 days, or the last one there is."""
    recent = [e for e in entries if (e.at_ms or 0) >= scene.now_ms - _LOOK_BACK_DAYS * 86_400_000] or entries[-1:]
    first = day(local_day(recent[0].at_ms or 0, scene.zones), year_of=scene.today)
    opening = say(
        "{series!u} first logged on {day}, {often} up to now", series=observed, day=first, often=_times(len(recent))
    )
    draft.say(NoticeKind.SHORT, opening)
    _say(scene, draft, pet, recent[-_SHOWN:])
    draft.say(NoticeKind.CAUTION, _ONLY_SEEN)


def _why(scene: Scene, draft: Draft, pet: Pet, observed: Property, *, entries: list[TextRecord], why: bool) -> None:
    """What is dated in the three weeks before the first of the late entries; no cause is named from a log alone."""
    recent = [e for e in entries if (e.at_ms or 0) >= scene.now_ms - _LOOK_BACK_DAYS * 86_400_000] or entries[-1:]
    began = recent[0].at_ms or 0
    own = {entry.ref for entry in entries}
    before = [
        one
        for one in dated_in(scene, pet, Interval(began - LAG_MS, began))
        if one.entry is None or one.entry.ref not in own
    ]
    opening = say(
        "I can't tell why: no device here sees {series}; it is logged {often}, what is dated before it follows",
        series=observed,
        often=_times(len(recent)),
    )
    if not why:
        opening = say(
            "{what} in the three weeks before {series} was first logged",
            what=counted_words(scene, before),
            series=observed,
        )
    draft.say(NoticeKind.SHORT, opening, slot=observed.id if why else None, device="people" if why else None)
    draft.paragraph()
    _say(scene, draft, pet, recent[-_SHOWN:])
    draft.paragraph()
    if not before:
        draft.say(NoticeKind.ABSENCE, "In the three weeks before it nothing dated is on file", slot="record")
    for one in before[-_SHOWN:]:
        say_exposures(scene, draft, pet, one.links)
        if one.entry is not None:
            say_entry(scene, draft, one.entry)
    if before:
        draft.say(NoticeKind.CAUTION, "What came before is not thereby the cause")


def _levels(scene: Scene, draft: Draft, pet: Pet, observed: Property, entries: list[TextRecord]) -> None:
    """The last two readings people wrote down, and what lies between them where both can be read."""
    told = entries[-2:]
    figures = [_FIGURE.search(entry.text) for entry in told]
    when = [day(local_day(entry.at_ms or 0, scene.zones), year_of=scene.today) for entry in told]
    compared = False
    if len(told) < 2:
        opening = say("One {series} alone is on file, so whether it changed can't be told", series=observed)
    elif figures[0] is None or figures[1] is None or figures[0][2] != figures[1][2]:
        opening = said("What is on file can't be compared as it is written")
    else:
        compared = True
        first, second = (float(found[1].replace(",", ".")) for found in figures if found is not None)
        opening = _lies_between(second - first, figures[0][2], when)
    draft.say(NoticeKind.SHORT, opening, slot=None if compared else observed.id)
    if len(told) < 2:
        log_next(draft, observed.id)
    elif not compared:
        draft.say(NoticeKind.NEXT, "Write it down as a figure with its unit, such as weight 31.4 kg", slot=observed.id)
    _say(scene, draft, pet, told)
    if observed.id == "weight":
        draft.say(NoticeKind.CAUTION, "Two weights say little about a trend: weigh on the same scale once a week")


def _lies_between(gap: float, unit: str | None, when: list[Said]) -> Said:
    """How much the later reading is above or below the earlier one."""
    first, second = when
    if gap == 0:
        return say("The same on {second} as on {first}, as logged", second=second, first=first)
    size = say("{figure} {unit}", figure=number(abs(gap), 2), unit=verbatim(unit)) if unit else number(abs(gap), 2)
    if gap > 0:
        return say("{size} more on {second} than on {first}, as logged", size=size, second=second, first=first)
    return say("{size} less on {second} than on {first}, as logged", size=size, second=second, first=first)
