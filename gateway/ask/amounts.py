"""How much, when, and who more: figures of a window, told as they are stored.

"From the bowl", never "ate"; what was set aside is said with its reason; a day that was not
heard is named and never counted as zero. No figure here is compared with a baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.change import not_captured
from gateway.ask.figures import Total, by_night, cite_of, compare_window, is_night_label, total_of
from gateway.ask.floors import say_floors
from gateway.ask.latest import row_words, say_latest
from gateway.ask.said import being
from gateway.ask.weighed import last_weighing, say_weighings
from gateway.ask.wording import (
    amount,
    clock_time,
    day,
    day_range,
    done,
    first_upper,
    joined,
    per_day,
    possessive,
    usual_of,
)
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import SLOT_MS, dates_between, local_day
from gateway.model import RecordRef, Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Event, Pet, Window
    from gateway.ontology.vocabulary import Property
    from gateway.stored import TextRecord

__all__ = ["Part", "compare_pets", "events_in", "logged_level", "part_of", "quantity"]

_HEARD_WELL = 0.9
"""From this share of a window on, silence is not worth a sentence."""
_LISTED = 4
"""Set-aside events named one by one; more are counted."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One pet's property in one window, and where its answer is being written."""

    scene: Scene
    draft: Draft
    pet: Pet
    observed: Property
    window: Window

    @property
    def series(self) -> str:
        return self.scene.ontology.series_id(self.pet.id, self.observed.id)

    @property
    def cite(self) -> str:
        return cite_of(self.scene, self.scene.devices_of(self.pet.id, self.observed))

    def visits(self) -> tuple[Event, ...]:
        """The pet's visits in the window at a bowl that captures the property."""
        return tuple(
            event
            for event in self.scene.reader.events(
                self.scene.home,
                ("meal",),
                start_ms=self.window.interval.start_ms,
                end_ms=self.window.interval.end_ms,
                pet=self.pet.id,
            )
            if event.device is not None and self.scene.home.device(event.device).kind in self.observed.captured_by
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What a series held inside an interval that need not be whole days."""

    total: int
    covered_ms: int
    refs: tuple[RecordRef, ...]


def part_of(scene: Scene, series: str, window: Window) -> Part:
    """Sum of the 15-minute slots that start inside the window's interval."""
    total = covered = 0
    refs = []
    for row in scene.reader.days(series, window.first_date, window.last_date):
        first = max(0, -((row.start_ms - window.interval.start_ms) // SLOT_MS))
        stop = max(0, -((row.start_ms - window.interval.end_ms) // SLOT_MS))
        if first < stop:
            total += sum(row.sums[first:stop])
            covered += sum(row.covered[first:stop])
            refs.append(row.ref)
    return Part(total, covered, tuple(refs))


def _dates(scene: Scene, window: Window) -> str:
    """The window in words: "today (Jul 14) by 18:00", "on Jul 3", "Jul 8-14"."""
    first = day(window.first_date, year_of=scene.today)
    start, end = scene.local(window.interval.start_ms), scene.local(window.interval.end_ms)
    if window.label == "TODAY":
        return f"today ({first}) by {clock_time(end)}"
    if window.label in ("LAST_NIGHT", "THIS_MORNING") or window.label.startswith("NIGHT:2"):
        until = day(local_day(window.interval.end_ms, scene.zones))
        return f"from {first} {clock_time(start)} to {until} {clock_time(end)}"
    if window.first_date == window.last_date:
        return f"on {first}"
    return day_range(window.first_date, window.last_date, year_of=scene.today)


def quantity(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "how much?" for one pet, property and window."""
    observed = scene.ontology.properties[str(question.metric)]
    if observed.evidence_class == "RECORDED" or observed.kind == "level":
        logged_level(scene, draft, pet, observed)
        return
    if not_captured(scene, draft, pet, observed):
        return
    if (
        is_night_label(window.label)
        and window.first_date < window.last_date
        and _each_night(scene, draft, pet, observed, window)
    ):
        return
    asked = _Asked(scene, draft, pet, observed, window)
    part = part_of(scene, asked.series, window)
    dates = _dates(scene, window)
    if part.covered_ms == 0 and part.total == 0:
        draft.say(
            NoticeKind.SHORT,
            f"Nothing was recorded of {pet.name}'s {observed.owner} {dates}; that is not zero",
            slot=observed.id,
            device=observed.captured_by[0],
        )
        _look_at(scene, draft, pet, observed.captured_by[0])
        return
    total = total_of(scene, pet, observed, window)
    opening = _short(pet, observed, part.total, dates)
    if not _visits_claim(asked, part, opening):
        draft.claim(
            "total",
            EvidenceClass.MEASURED,
            opening,
            cite=asked.cite,
            refs=part.refs,
            values=(Quantity("total", part.total, observed.unit), Quantity("covered", part.covered_ms, "ms")),
            window=window,
            about=(f"pet:{pet.id}", f"series:{asked.series}"),
        )
    if total is not None and len(total.aggregate.full_days) > 1:
        _daily_claim(draft, total, asked.cite)
    _set_aside(asked)
    _uncovered(asked, part, total)
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)


def _each_night(scene: Scene, draft: Draft, pet: Pet, observed: Property, window: Window) -> bool:
    """For nights: what one night held on average, never the sum of days; whether it could be said."""
    at_night, nights = by_night(scene, observed, window)
    if not at_night.night_only or nights.first_date == nights.last_date:
        return False
    total = total_of(scene, pet, at_night, nights)
    if total is None or total.aggregate.per_day is None:
        return False
    _daily_claim(draft, total, cite_of(scene, total.devices), opening=f"{pet.name} {observed.verb} ")
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)
    return True


def _look_at(scene: Scene, draft: Draft, pet: Pet | None, kind: str) -> None:
    """What to do about a device that heard nothing, and that the owner's own eyes count."""
    plain = scene.ontology.device_kinds[kind].plain
    draft.say(NoticeKind.NEXT, f"Next: check the {plain}'s battery and place")
    if pet is not None:
        draft.say(NoticeKind.CAUTION, f"What you saw of {pet.name} yourself counts, whatever the {plain} says")


def _short(pet: Pet, observed: Property, total: int, dates: str) -> str:
    figure = amount(total, observed.unit)
    if observed.of_device:
        return f"{figure} {observed.of_device} of {pet.name} {dates}"
    if observed.unit == "count":
        return f"{pet.name} {done(observed.verb, observed.words[0], total)} {dates}"
    return f"{pet.name} {observed.verb} {figure} {dates}"


def _daily_claim(draft: Draft, total: Total, cite: str, *, opening: str = "") -> None:
    found = total.aggregate
    if found.per_day is None:
        return
    each = per_day(found.per_day, found.unit)
    text = f"{opening}{each} on {len(found.full_days)} full days"
    if total.observed.night_only:
        text = f"{opening}{amount(found.per_day, found.unit)} a night on {len(found.full_days)} nights"
    if found.least is not None and found.most is not None:
        text = f"{text}, {amount(found.least, found.unit)} to {amount(found.most, found.unit)}"
    draft.claim(
        "per_day",
        EvidenceClass.MEASURED,
        text,
        cite=cite,
        refs=total.full_refs,
        values=(
            Quantity("per_day", round(found.per_day, 3), f"{found.unit}/day"),
            Quantity("days", len(found.full_days), "days"),
            *(Quantity(n, v, found.unit) for n, v in (("least", found.least), ("most", found.most)) if v is not None),
        ),
        window=total.window,
        about=(f"pet:{total.pet.id}",),
        rank=0 if opening else 1,
    )


def _visits_claim(asked: _Asked, part: Part, opening: str) -> bool:
    """For food and water: the opening with the visits behind the sum, which are the records to open."""
    if asked.observed.wire_kind != 3 or asked.observed.unit != "mg":
        return False
    visits = [event for event in asked.visits() if event.set_aside is None]
    if not visits:
        return False
    each = f"{len(visits)} visits, {amount(part.total / len(visits), 'mg')} each on average"
    asked.draft.claim(
        "visits",
        EvidenceClass.MEASURED,
        f"{opening}, in {'1 visit' if len(visits) == 1 else each}",
        cite=asked.cite,
        refs=(*part.refs, *(event.ref for event in visits)),
        values=(Quantity("total", part.total, "mg"), Quantity("visits", len(visits), "count")),
        window=asked.window,
        about=(f"pet:{asked.pet.id}", f"series:{asked.series}"),
    )
    return True


def _set_aside(asked: _Asked) -> None:
    """Events that do not count, each with its reason."""
    if asked.observed.unit != "mg":
        return
    scene = asked.scene
    aside = [event for event in asked.visits() if event.set_aside is not None]
    if not aside:
        return
    named = [
        f"{day(local_day(event.start_ms, scene.zones))} {clock_time(scene.local(event.start_ms))}: {event.set_aside}"
        for event in aside[:_LISTED]
    ]
    more = "" if len(aside) <= _LISTED else f"; {len(aside) - _LISTED} more"
    asked.draft.claim(
        "set_aside",
        EvidenceClass.MEASURED,
        f"Set aside, {'; '.join(named)}{more}",
        cite=asked.cite,
        refs=tuple(event.ref for event in aside),
        values=(Quantity("set_aside", sum(event.amount or 0 for event in aside), "mg"),),
        window=asked.window,
        about=(f"pet:{asked.pet.id}",),
    )


def _uncovered(asked: _Asked, part: Part, total: Total | None) -> None:
    """Say what part of the window was not heard, where it matters."""
    window, scene, slot = asked.window, asked.scene, asked.observed.id
    if asked.observed.night_only or window.interval.length_ms == 0:
        return
    aside = set() if total is None else set(total.aggregate.set_aside_days)
    stored = set() if total is None else {row.date for row in total.rows}
    last = min(window.last_date, scene.today)
    missing = sorted(aside | (set(dates_between(window.first_date, last)) - stored))
    share = part.covered_ms / window.interval.length_ms
    if missing and window.first_date != window.last_date:
        named = joined([day(date, year_of=scene.today) for date in missing[:_LISTED]])
        more = "" if len(missing) <= _LISTED else f" and {len(missing) - _LISTED} more"
        asked.draft.say(NoticeKind.ABSENCE, f"Not heard enough on {named}{more}; those days are not zero", slot=slot)
    elif share < _HEARD_WELL:
        asked.draft.say(NoticeKind.ABSENCE, f"The device was heard for {round(100 * share)} % of that time", slot=slot)


def logged_level(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> None:
    """What people logged last of a property, or what a device weighed since."""
    entries = [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.pet == pet.id and _logs(scene, entry, observed)
    ]
    weighed = last_weighing(scene, pet) if observed.id == "weight" else None
    if weighed is not None and (not entries or weighed.start_ms > (entries[-1].at_ms or 0)):
        say_weighings(scene, draft, pet)
        return
    if not entries:
        kind = scene.ontology.device_kinds[observed.captured_by[0]]
        draft.say(
            NoticeKind.SHORT,
            f"{pet.name}'s {being(observed.owner)} not on file",
            slot=observed.id,
            device=kind.id,
        )
        word = kind.word if kind.id != "people" else "your log"
        draft.say(NoticeKind.ABSENCE, f"{first_upper(word)} would record it", slot=observed.id, device=kind.id)
        return
    last = entries[-1]
    assert last.at_ms is not None
    when = day(local_day(last.at_ms, scene.zones), year_of=scene.today)
    draft.claim(
        "logged",
        EvidenceClass.RECORDED,
        f"{first_upper(last.text)} on {when}, the last on file",
        cite="owner's log",
        refs=(last.ref,),
        about=(f"pet:{pet.id}",),
    )


def _logs(scene: Scene, entry: TextRecord, observed: Property) -> bool:
    kind = scene.ontology.log_kinds.get(entry.object or "")
    return kind is not None and kind.property == observed.id


def compare_pets(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...], window: Window) -> None:
    """Answer "who more?": each pet's daily mean over the same days, or for whom it can't be said."""
    observed = scene.ontology.properties[str(question.metric)]
    told: list[tuple[Pet, Total]] = []
    missing = []
    for pet in pets:
        total = None if not scene.devices_of(pet.id, observed) else total_of(scene, pet, observed, window)
        if total is None or total.aggregate.per_day is None:
            missing.append(pet)
        else:
            told.append((pet, total))
    kind = scene.ontology.device_kinds[observed.captured_by[0]]
    if missing:
        names = joined([f"{pet.name}'s" for pet in missing])
        draft.say(
            NoticeKind.SHORT if len(told) < 2 else NoticeKind.ABSENCE,
            f"{names} {being(observed.owner)} not recorded for these days, so they can't be compared; "
            f"{kind.word} would capture it",
            slot=observed.id,
            device=kind.id,
        )
    if len(told) > 1:
        order = sorted(told, key=lambda pair: (-(pair[1].aggregate.per_day or 0.0), pair[0].id))
        first, second = order[0], order[1]
        dates = day_range(window.first_date, window.last_date, year_of=scene.today)
        figures = [per_day(total.aggregate.per_day or 0.0, observed.unit) for _, total in order]
        lead = (
            f"About the same: {first[0].name} and {second[0].name}"
            if figures[0] == figures[1]
            else f"{first[0].name}: {figures[0]} against {second[0].name}'s "
            + usual_of(second[1].aggregate.per_day or 0.0, first[1].aggregate.per_day or 0.0, observed.unit)
        )
        source = f" {observed.of_device}" if observed.of_device else ""
        draft.say(NoticeKind.SHORT, f"{lead}{source}, {dates}")
        draft.paragraph()
    for pet, total in told:
        found = total.aggregate
        days = f"{len(found.full_days)} of {found.days_expected} days"
        summed = observed.unit == "mg" and found.total is not None
        in_all = f", {amount(found.total or 0.0, observed.unit)} in all" if summed else ""
        draft.claim(
            "per_day",
            EvidenceClass.MEASURED,
            f"{pet.name}: {per_day(found.per_day or 0.0, observed.unit)} over {days}{in_all}",
            cite=cite_of(scene, total.devices),
            refs=total.refs,
            values=(
                Quantity("per_day", round(found.per_day or 0.0, 3), f"{observed.unit}/day"),
                Quantity("total", found.total or 0.0, observed.unit),
                Quantity("days", len(found.full_days), "days"),
            ),
            window=window,
            about=(f"pet:{pet.id}", f"series:{scene.ontology.series_id(pet.id, observed.id)}"),
        )
        _set_aside(_Asked(scene, draft, pet, observed, window))
    _each_own_past(scene, draft, observed, tuple(pet for pet, _ in told))
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)
    if len({pet.species for pet, _ in told}) > 1:
        draft.say(NoticeKind.CAUTION, "Different species differ anyway, so the gap says nothing about either")


def _each_own_past(scene: Scene, draft: Draft, observed: Property, pets: tuple[Pet, ...]) -> None:
    """What tells more than a comparison of two animals: each of them against its own past."""
    draft.paragraph()
    for pet in pets:
        figure = compare_window(scene, pet, observed, scene.week())
        if figure is None or figure.verdict is Verdict.CANNOT_TELL:
            continue
        dates = day_range(figure.window.first_date, figure.window.last_date, year_of=scene.today)
        found, unit = figure.measured.comparison, figure.measured.unit
        gap = abs((found.now or 0.0) - (found.usual or 0.0))
        side = {Verdict.UP: "above", Verdict.DOWN: "below"}.get(figure.verdict)
        own = f"{amount(gap, unit)} a day {side} {possessive(pet)} usual" if side else f"as {possessive(pet)} usual"
        draft.claim(
            "comparison",
            EvidenceClass.MEASURED,
            f"Against {possessive(pet)} own past {pet.name} is {own}, {dates}",
            cite=cite_of(scene, figure.devices, figure),
            refs=figure.refs,
            values=(*figure.values(), Quantity("gap", round(gap, 3), f"{unit}/day")),
            window=figure.window,
            about=(f"pet:{pet.id}", f"series:{figure.series}"),
            rank=2,
        )
    draft.paragraph()


_MEAL_FLOORS = frozenset({"no_meal"})


def _lifted(scene: Scene, draft: Draft, window: Window, *, device: str | None) -> None:
    """What left a bowl too fast to have been eaten: the one trace an emptying leaves."""
    aside = [
        event
        for event in scene.reader.events(
            scene.home, ("meal",), start_ms=window.interval.start_ms, end_ms=window.interval.end_ms
        )
        if event.set_aside is not None and device is not None and event.device == device
    ]
    if aside:
        draft.claim(
            "set_aside",
            EvidenceClass.MEASURED,
            "; ".join(f"{clock_time(scene.local(event.start_ms))}: {event.set_aside}" for event in aside[:_LISTED]),
            cite=cite_of(scene, (scene.home.device(str(device)),)),
            refs=tuple(event.ref for event in aside),
            values=(Quantity("set_aside", sum(event.amount or 0 for event in aside), "mg"),),
            window=window,
            about=(f"device:{device}",),
        )


def events_in(scene: Scene, draft: Draft, kind: str, window: Window, *, pet: Pet | None, device: str | None) -> None:
    """Answer "has it happened?" within a window: yes with the records, or what was heard instead."""
    observed = scene.ontology.properties["refill" if kind == "refill" else "meals"]
    found = [
        event
        for event in scene.reader.events(
            scene.home,
            (kind,),
            start_ms=window.interval.start_ms,
            end_ms=window.interval.end_ms,
            pet=None if pet is None else pet.id,
        )
        if (device is None or event.device == device) and event.set_aside is None
    ]
    if kind == "meal" and pet is not None and say_floors(scene, draft, pet, kinds=_MEAL_FLOORS):
        say_latest(scene, draft, observed, pet=pet, device=device)
        return
    dates = _dates(scene, window)
    word = row_words(observed)
    if not found:
        what = "refill or emptying" if kind == "refill" else word
        draft.say(
            NoticeKind.SHORT,
            f"I can't tell: no {what} was recorded {dates}, which doesn't prove there was none",
            slot=kind,
            device="food_bowl",
        )
        draft.paragraph()
        _lifted(scene, draft, window, device=device)
        say_latest(scene, draft, observed, pet=pet, device=device)
        _look_at(scene, draft, pet, "food_bowl")
        return
    shared = any(len(event.pets) > 1 for event in found)
    draft.say(
        NoticeKind.SHORT, f"Yes: {len(found)} {word if len(found) == 1 else word.replace('visit', 'visits')} {dates}"
    )
    total = sum(event.amount or 0 for event in found)
    times = joined([clock_time(scene.local(event.start_ms)) for event in found[-_LISTED:]])
    draft.claim(
        f"{kind}s",
        EvidenceClass.MEASURED,
        f"At {times}, {amount(total, 'mg')} in all",
        cite=cite_of(scene, tuple(dict.fromkeys(scene.home.device(str(event.device)) for event in found))),
        refs=tuple(event.ref for event in found),
        values=(Quantity("count", len(found), "count"), Quantity("total", total, "mg")),
        window=window,
        about=() if pet is None else (f"pet:{pet.id}",),
    )
    if shared:
        draft.say(NoticeKind.CAUTION, "That bowl is shared, so whose visit it was is not known")
