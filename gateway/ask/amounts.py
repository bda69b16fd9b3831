"""How much, when, and who more: figures of a window, told as they are stored.

"From the bowl", never "ate"; what was set aside is said with its reason; a day that was not
heard is named and never counted as zero. No figure here is compared with a baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.change import not_captured
from gateway.ask.figures import (
    Total,
    by_night,
    cite_of,
    compare_window,
    days_of,
    is_night_label,
    rate_of,
    span_of,
    total_of,
)
from gateway.ask.floors import say_floors
from gateway.ask.latest import row_words, say_latest
from gateway.ask.said import Said, elsewhere, said, say
from gateway.ask.settle import look_at
from gateway.ask.weighed import logged_level
from gateway.ask.wording import (
    amount,
    clock_time,
    day,
    day_range,
    did,
    done_of,
    joined,
    listed,
    per_day,
    usual_of,
    whose,
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

__all__ = ["Part", "compare_pets", "events_in", "part_of", "quantity"]

_HEARD_WELL = 0.9
"""From this share of a window on, silence is not worth a sentence."""
_LISTED = 4
_DUSK_HOUR, _DAWN_HOUR = 21, 7
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


def _dates(scene: Scene, window: Window) -> Said:
    """The window in words: "today (Jul 14) by 18:00", "on Jul 3", "Jul 8-14"."""
    first = day(window.first_date, year_of=scene.today)
    start, end = scene.local(window.interval.start_ms), scene.local(window.interval.end_ms)
    if window.label == "TODAY":
        return say("today ({day}) by {clock}", day=first, clock=clock_time(end))
    if window.label in ("LAST_NIGHT", "THIS_MORNING") or window.label.startswith("NIGHT:2"):
        until = day(local_day(window.interval.end_ms, scene.zones))
        clocks = {"begin": clock_time(start), "end": clock_time(end)}
        if first == until:
            return say("on {day}, {begin} to {end}", day=first, **clocks)
        return say("from {first} {begin} to {last} {end}", first=first, last=until, **clocks)
    if is_night_label(window.label) and window.first_date < window.last_date:
        return say("at night, {dates}", dates=day_range(window.first_date, window.last_date, year_of=scene.today))
    if window.first_date == window.last_date:
        return say("on {day}", day=first)
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
            say(
                "Nothing was recorded of {pet}'s {series} {dates}; that is not zero",
                pet=pet,
                series=observed,
                dates=dates,
            ),
            slot=observed.id,
            device=observed.captured_by[0],
        )
        look_at(scene, draft, observed.captured_by[0])
        _own_eyes(scene, draft, pet, observed.captured_by[0])
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
    if total is not None and len(total.aggregate.full_days) > 1 and not is_night_label(window.label):
        _daily_claim(scene, draft, total, asked.cite)
    _set_aside(asked)
    _uncovered(asked, part, total)
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)


def _each_night(scene: Scene, draft: Draft, pet: Pet, observed: Property, window: Window) -> bool:
    """For nights: what one night held on average, never the sum of days; whether it could be said."""
    at_night, nights = by_night(scene, observed, window, kinds=("duration", "count", "mass"))
    if not at_night.night_only or nights.first_date == nights.last_date:
        return False
    total = total_of(scene, pet, at_night, nights)
    if total is None or total.aggregate.per_day is None:
        return False
    _daily_claim(scene, draft, total, cite_of(scene, total.devices), pet=pet)
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)
    return True


def _own_eyes(scene: Scene, draft: Draft, pet: Pet | None, kind: str) -> None:
    """Where a device heard nothing: that the owner's own eyes count."""
    if pet is not None:
        device = scene.ontology.device_kinds[kind]
        own = say("What you saw of {pet} yourself counts, whatever the {device} says", pet=pet, device=device)
        draft.say(NoticeKind.CAUTION, own)


def _short(pet: Pet, observed: Property, total: int, dates: Said) -> Said:
    figure = amount(total, observed.unit)
    if observed.of_device:
        return say("{figure} {series.from} of {pet} {dates}", figure=figure, series=observed, pet=pet, dates=dates)
    what = done_of(observed, total) if observed.unit == "count" else did(observed, figure)
    return say("{pet} {did} {dates}", pet=pet, did=what, dates=dates)


def _daily_claim(scene: Scene, draft: Draft, total: Total, cite: str, *, pet: Pet | None = None) -> None:
    found = total.aggregate
    if found.per_day is None:
        return
    rate, days = per_day(found.per_day, found.unit), len(found.full_days)
    text = say("{rate} on {count} full days", rate=rate, count=days)
    if total.observed.night_only:
        text = say("{rate} a night on {count} nights", rate=amount(found.per_day, found.unit), count=days)
    if pet is not None:
        much = did(total.observed, amount(found.per_day, found.unit))
        text = say("{pet} {did} a night on {count} nights", pet=pet, did=much, count=days)
    if pet is not None and total.observed.of_device:
        rate = amount(found.per_day, found.unit)
        text = say(
            "{rate} {series.from} of {pet} a night on {count} nights",
            rate=rate,
            series=total.observed,
            pet=pet,
            count=days,
        )
    if found.least is not None and found.most is not None:
        least, most = amount(found.least, found.unit), amount(found.most, found.unit)
        text = say("{text}, {least} to {most}", text=text, least=least, most=most)
    if pet is not None:  # nothing before it says which nights
        dates = day_range(total.window.first_date, total.window.last_date, year_of=scene.today)
        text = say("{text}, {dates}", text=text, dates=dates)
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
        rank=1 if pet is None else 0,
    )


def _visits_claim(asked: _Asked, part: Part, opening: Said) -> bool:
    """For food and water: the opening with the visits behind the sum, which are the records to open."""
    if asked.observed.wire_kind != 3 or asked.observed.unit != "mg":
        return False
    visits = [event for event in asked.visits() if event.set_aside is None]
    if not visits:
        return False
    each = say(
        "{opening}, in {count} visits, {each} each on average",
        opening=opening,
        count=len(visits),
        each=amount(part.total / len(visits), "mg"),
    )
    asked.draft.claim(
        "visits",
        EvidenceClass.MEASURED,
        say("{opening}, in 1 visit", opening=opening) if len(visits) == 1 else each,
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
        say(
            "{day} {clock}: {reason}",
            day=day(local_day(event.start_ms, scene.zones)),
            clock=clock_time(scene.local(event.start_ms)),
            reason=_reason(event),
        )
        for event in aside[:_LISTED]
    ]
    more = [] if len(aside) <= _LISTED else [say("{count} more", count=len(aside) - _LISTED)]
    asked.draft.claim(
        "set_aside",
        EvidenceClass.MEASURED,
        say("Set aside, {named}", named=listed((*named, *more))),
        cite=asked.cite,
        refs=tuple(event.ref for event in aside),
        values=(Quantity("set_aside", sum(event.amount or 0 for event in aside), "mg"),),
        window=asked.window,
        about=(f"pet:{asked.pet.id}",),
    )


def _reason(event: Event) -> Said:
    """Why an event does not count: as it was stored in English, else that its record says so."""
    return elsewhere(event.set_aside or "", say("not counted; its record says why"))


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
        more = "" if len(missing) <= _LISTED else say(" and {count} more", count=len(missing) - _LISTED)
        text = say("Not heard enough on {named}{more}; those days are not zero", named=named, more=more)
        asked.draft.say(NoticeKind.ABSENCE, text, slot=slot)
    elif share < _HEARD_WELL:
        text = say("The device was heard for {share} % of that time", share=round(100 * share))
        asked.draft.say(NoticeKind.ABSENCE, text, slot=slot)


def compare_pets(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...], window: Window) -> None:
    """Answer "who more?": each pet's mean over the same days or nights, or for whom it can't be said."""
    asked = scene.ontology.properties[str(question.metric)]
    observed, window = by_night(scene, asked, window)
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
        names = joined([whose(pet) for pet in missing])
        draft.say(
            NoticeKind.SHORT if len(told) < 2 else NoticeKind.ABSENCE,
            say(
                "{names} {series.is} not recorded for these days, so they can't be compared; {device.a} would capture "
                "it",
                names=names,
                series=observed,
                device=kind,
            ),
            slot=observed.id,
            device=kind.id,
        )
    if len(told) > 1:
        draft.say(NoticeKind.SHORT, _who_more(scene, observed, told, window))
        draft.paragraph()
    for pet, total in told:
        _mean_of(scene, draft, pet, total)
        _set_aside(_Asked(scene, draft, pet, observed, window))
    _each_own_past(scene, draft, asked, tuple(pet for pet, _ in told))
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)
    if len({pet.species for pet, _ in told}) > 1:
        draft.say(NoticeKind.CAUTION, "Different species differ anyway, so the gap says nothing about either")


def _who_more(scene: Scene, observed: Property, told: list[tuple[Pet, Total]], window: Window) -> Said:
    """The two with most, side by side."""
    order = sorted(told, key=lambda pair: (-(pair[1].aggregate.per_day or 0.0), pair[0].id))
    first, second = order[0], order[1]
    dates = span_of(observed, window, year_of=scene.today)
    figures = [rate_of(total) for _, total in order]
    lead = (
        say("About the same: {one} and {other}", one=first[0], other=second[0])
        if figures[0] == figures[1]
        else say(
            "{one}: {figure} against {other}'s {less}",
            one=first[0],
            figure=figures[0],
            other=second[0],
            less=usual_of(second[1].aggregate.per_day or 0.0, first[1].aggregate.per_day or 0.0, observed.unit),
        )
    )
    if observed.of_device:
        return say("{lead} {series.from}, {dates}", lead=lead, series=observed, dates=dates)
    return say("{lead}, {dates}", lead=lead, dates=dates)


def _mean_of(scene: Scene, draft: Draft, pet: Pet, total: Total) -> None:
    """One pet's daily mean, with the days or nights it stands on."""
    found = total.aggregate
    days = days_of(total)
    summed = total.observed.unit == "mg" and found.total is not None
    in_all = say(", {amount} in all", amount=amount(found.total or 0.0, total.observed.unit)) if summed else ""
    draft.claim(
        "per_day",
        EvidenceClass.MEASURED,
        say(
            "{pet}: {rate} over {days}{in_all}",
            pet=pet,
            rate=rate_of(total),
            days=days,
            in_all=in_all,
        ),
        cite=cite_of(scene, total.devices),
        refs=total.refs,
        values=(
            Quantity("per_day", round(found.per_day or 0.0, 3), f"{total.observed.unit}/day"),
            Quantity("total", found.total or 0.0, total.observed.unit),
            Quantity("days", len(found.full_days), "days"),
        ),
        window=total.window,
        about=(f"pet:{pet.id}", f"series:{scene.ontology.series_id(pet.id, total.observed.id)}"),
    )


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
        rate = per_day(gap, unit)
        own = {
            Verdict.UP: say("{rate} above {pet.his} usual", rate=rate, pet=pet),
            Verdict.DOWN: say("{rate} below {pet.his} usual", rate=rate, pet=pet),
        }.get(figure.verdict, say("as {pet.his} usual", pet=pet))
        draft.claim(
            "comparison",
            EvidenceClass.MEASURED,
            say("Against {pet.his} own past {pet} is {own}, {dates}", pet=pet, own=own, dates=dates),
            cite=cite_of(scene, figure.devices, figure),
            refs=figure.refs,
            values=(*figure.values(), Quantity("gap", round(gap, 6), f"{unit}/day")),
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
            listed(
                [
                    say("{when}: {what}", when=clock_time(scene.local(event.start_ms)), what=_reason(event))
                    for event in aside[:_LISTED]
                ]
            ),
            cite=cite_of(scene, (scene.home.device(str(device)),)),
            refs=tuple(event.ref for event in aside),
            values=(Quantity("set_aside", sum(event.amount or 0 for event in aside), "mg"),),
            window=window,
            about=(f"device:{device}",),
        )


def _at_that_time(scene: Scene, event: Event, window: Window) -> bool:
    """Whether an event lies in the hours asked about: of nights, those from 21:00 to 07:00."""
    hour = scene.local(event.start_ms).hour
    return not is_night_label(window.label) or hour >= _DUSK_HOUR or hour < _DAWN_HOUR


def _how_many(count: int, word: str, dates: Said, asked: str) -> Said:
    """So many visits or refills; with a "yes" where it was asked whether."""
    rows = elsewhere(word.replace("visit", "visits").replace("refill", "refills"), said(word))
    parts: dict[str, str | int] = {"count": count, "row": word, "rows": rows, "dates": dates}
    if asked == "when":
        return say("1 {row} {dates}", **parts) if count == 1 else say("{count} {rows} {dates}", **parts)
    return say("Yes: 1 {row} {dates}", **parts) if count == 1 else say("Yes: {count} {rows} {dates}", **parts)


def events_in(
    scene: Scene,
    draft: Draft,
    kind: str,
    window: Window,
    *,
    pet: Pet | None,
    device: str | None,
    asked: str = "whether",
) -> None:
    """Answer "has it happened?" within a window, or "when?" where ``asked`` is "when".

    With the records, and a "yes" only to "whether"; where there are none, what was heard instead.
    """
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
        if (device is None or event.device == device)
        and event.set_aside is None
        and _at_that_time(scene, event, window)
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
            say(
                "I can't tell: no {what} was recorded {dates}, which doesn't prove there was none",
                what=what,
                dates=dates,
            ),
            slot=kind,
            device="food_bowl",
        )
        draft.paragraph()
        _lifted(scene, draft, window, device=device)
        say_latest(scene, draft, observed, pet=pet, device=device)
        look_at(scene, draft, "food_bowl")
        _own_eyes(scene, draft, pet, "food_bowl")
        return
    shared = any(len(event.pets) > 1 for event in found)
    draft.say(NoticeKind.SHORT, _how_many(len(found), word, dates, asked))
    total = sum(event.amount or 0 for event in found)
    times = joined([clock_time(scene.local(event.start_ms)) for event in found[-_LISTED:]])
    draft.claim(
        f"{kind}s",
        EvidenceClass.MEASURED,
        say("At {times}, {amount} in all", times=times, amount=amount(total, "mg"))
        if len(found) > 1
        else say("At {times}, {amount}", times=times, amount=amount(total, "mg")),
        cite=cite_of(scene, tuple(dict.fromkeys(scene.home.device(str(event.device)) for event in found))),
        refs=tuple(event.ref for event in found),
        values=(Quantity("count", len(found), "count"), Quantity("total", total, "mg")),
        window=window,
        about=() if pet is None else (f"pet:{pet.id}",),
    )
    if shared:
        draft.say(NoticeKind.CAUTION, "That bowl is shared, so whose visit it was is not known")
