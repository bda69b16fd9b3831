"""Since when, this week against last, which pets, and how a pet is altogether."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.blame import ended_by, say_happened
from gateway.ask.change import as_usual, figure_claim, figure_seen, if_seen, not_captured, say_verdict
from gateway.ask.figures import cite_of, compare_window, total_of
from gateway.ask.floors import say_floors
from gateway.ask.lookups import last_weights
from gateway.ask.said import Said, say, verbatim
from gateway.ask.settle import ask_again, pick_bag, recorded_since, told_from
from gateway.ask.signs import say_signs
from gateway.ask.sources import cite, class_of, dated_by
from gateway.ask.wording import amount, day, day_range, joined, per_day, percent
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import add_days, dates_between, local_day
from gateway.measure.onset import onset
from gateway.measure.outlook import ids_with, outlook
from gateway.model import Unclear, Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure, Total
    from gateway.ask.scene import Scene
    from gateway.dialogue import Question
    from gateway.model import Pet, Window

__all__ = ["compare_periods", "food_since", "overview", "select_pets", "since_when", "trend", "whole_week_before"]

_ALL = ("intake", "water", "activity", "rest", "restless", "scratch", "shake")
"""The measured properties an overview goes through, in the order it tells them."""
_ALIKE = 0.10
"""Two means within a tenth of each other are not worth calling different."""
_UNSEEN = "vomiting, limping, urine or pain"


def trend(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "is it more than usual?" without asking why."""
    observed = scene.ontology.properties[str(question.metric)]
    if observed.id in ("intake", "meals"):
        say_floors(scene, draft, pet)
    figure = figure_seen(scene, draft, pet, observed, window)
    if figure is None:
        return
    say_verdict(scene, draft, figure, question.direction)
    if observed.caveat:
        draft.say(NoticeKind.CAUTION, observed.caveat)
    if observed.id == "rest" and figure.observed.night_only:
        _restless_too(scene, draft, pet, window)
    if figure.verdict is Verdict.CANNOT_TELL or figure.measured.unit == "kcal":
        return
    if observed.id == "intake":
        draft.say(NoticeKind.CAUTION, "Treats and other bowls aren't counted")
        _treats(scene, draft, pet, window)
    if figure.verdict is Verdict.USUAL:
        if_seen(draft, figure)
        if observed.id == "intake":
            last_weights(scene, draft, pet)


def _restless_too(scene: Scene, draft: Draft, pet: Pet, window: Window) -> None:
    """Beside how long a pet lay still at night, how restless it was: what an owner means by sleeping well."""
    observed = scene.ontology.properties["restless"]
    figure = compare_window(scene, pet, observed, window) if scene.devices_of(pet.id, observed) else None
    if figure is not None and figure.measured.comparison.now is not None:
        opening = (
            say("{series!u}, not clear", series=observed)
            if figure.verdict is Verdict.CANNOT_TELL
            else say("{series!u}", series=observed)
        )
        figure_claim(scene, draft, figure, opening=opening)


def _treats(scene: Scene, draft: Draft, pet: Pet, window: Window) -> None:
    """Treats people wrote down in the window: they are not in the bowl's figures."""
    inside = window.interval
    logged = [
        entry
        for entry in scene.reader.texts(("log",), until_ms=scene.now_ms, pet=pet.id)
        if entry.object == "treat" and inside.start_ms <= (entry.at_ms or 0) < inside.end_ms
    ]
    if logged:
        last = day(local_day(logged[-1].at_ms or 0, scene.zones), year_of=scene.today)
        draft.claim(
            "treats_logged",
            EvidenceClass.RECORDED,
            say("1 treat logged, last on {when}", when=last)
            if len(logged) == 1
            else say("{count} treats logged, last on {when}", count=len(logged), when=last),
            cite="owner's log",
            refs=tuple(entry.ref for entry in logged),
            values=(Quantity("treats", len(logged), "count"),),
            window=window,
            about=(f"pet:{pet.id}",),
        )


def since_when(scene: Scene, question: Question, draft: Draft, pet: Pet, window: Window) -> None:
    """Answer "since when?": the day the series took its present level, as an interval of days."""
    observed = scene.ontology.properties[str(question.metric)]
    if not_captured(scene, draft, pet, observed):
        return
    figure = compare_window(scene, pet, observed, window)
    found = (
        None
        if figure is None
        else onset(figure.measured.grid, window.first_date, window.last_date, verdict=figure.verdict)
    )
    if figure is None or found is None:
        none = say("No day stands out on which {pet}'s {series} changed", pet=pet, series=observed)
        draft.say(NoticeKind.SHORT, none, slot=observed.id)
        if figure is not None:
            figure_claim(scene, draft, figure)
        return
    best, first, last = (day(date, year_of=scene.today) for date in (found.best, found.earliest, found.latest))
    draft.say(
        NoticeKind.SHORT,
        say("Since about {day}", day=best)
        if found.earliest == found.latest
        else say("Since about {day}, likely between {first} and {last}", day=best, first=first, last=last),
    )
    size = percent(found.change)
    draft.claim(
        "onset",
        EvidenceClass.MEASURED,
        say("{series!u} went up by {size} then and has stayed there", series=observed, size=size)
        if found.change > 0
        else say("{series!u} went down by {size} then and has stayed there", series=observed, size=size),
        cite=cite_of(scene, figure.devices),
        refs=(*figure.refs, *figure.past_refs),
        values=(
            Quantity("onset", found.best, "date"),
            Quantity("earliest", found.earliest, "date"),
            Quantity("latest", found.latest, "date"),
            Quantity("change", round(found.change, 6), "fraction"),
        ),
        window=window,
        about=(f"pet:{pet.id}", f"series:{figure.series}"),
    )


def food_since(scene: Scene, draft: Draft, pet: Pet, food: str) -> None:
    """Answer "how long has he been on it?" from the bowl's food records or the owner's word."""
    edges = [link for link in scene.links_of(pet.id) if link.edge.relation == "ate" and link.edge.head.name == food]
    if not edges or edges[-1].edge.valid_from_ms is None or not edges[-1].evidence:
        draft.say(NoticeKind.SHORT, "Since when is not on file", slot="food", device="food_bowl")
        pick_bag(draft)
        return
    link = edges[-1]
    began = local_day(edges[-1].edge.valid_from_ms or 0, scene.zones)
    name = scene.reader.vertex_labels().get(food, food)
    ended = link.edge.valid_to_ms
    span = say("since {day}", day=day(began, year_of=scene.today))
    if ended is not None and ended <= scene.now_ms:
        last = day(local_day(ended, scene.zones), year_of=scene.today)
        span = say("from {first} to {last}", first=day(began, year_of=scene.today), last=last)
    piece = dated_by(scene, link) or link.evidence[0]
    draft.claim(
        "food_since",
        class_of(piece.record),
        say("{what} {span}", what=verbatim(name), span=span),
        cite=cite(scene, piece.record),
        refs=(piece.record, *ended_by(scene, link)),
        values=(Quantity("since", began, "date"),),
        about=(f"pet:{pet.id}", food),
    )


def compare_periods(
    scene: Scene,
    question: Question,
    draft: Draft,
    pet: Pet,
    windows: tuple[Window, Window],
    *,
    began: str | None = None,
) -> None:
    """Answer "this week versus last" and "has it helped?": both periods' daily means, each with its days.

    ``began`` is the day the medicine or food in question began: the days before it against
    the days after.
    """
    observed = scene.ontology.properties[str(question.metric)]
    if not_captured(scene, draft, pet, observed):
        return
    totals = [total_of(scene, pet, observed, window) for window in windows]
    known = [total for total in totals if total is not None and total.aggregate.per_day is not None]
    if len(known) < len(windows):
        draft.say(
            NoticeKind.SHORT,
            "I can't tell: one of the two periods was not recorded, so they can't be compared",
            slot=observed.id,
        )
        blank = [w for w, total in zip(windows, totals, strict=True) if total not in known]
        recorded_since(scene, draft, pet, observed, min(window.first_date for window in blank))
    else:
        draft.say(NoticeKind.SHORT, _against(scene, question, known[0], known[1], began))
    draft.paragraph()
    for total in known:
        _period_claim(scene, draft, total)
    figure = compare_window(scene, pet, observed, windows[0])
    if figure is not None and figure.verdict is not Verdict.CANNOT_TELL:
        figure_claim(scene, draft, figure, rank=1)
    if began is not None and known:
        draft.say(
            NoticeKind.CAUTION, "Before and after are not cause and effect; whatever else changed then counts too"
        )


def _against(scene: Scene, question: Question, later: Total, earlier: Total, began: str | None) -> Said:
    """The later period against the earlier one in a sentence, in the asker's word."""
    now, before = later.aggregate.per_day or 0.0, earlier.aggregate.per_day or 0.0
    change = 0.0 if before <= 0.0 else now / before - 1.0
    same = abs(change) < _ALIKE
    when: str = (
        "than in the days before" if began is None else say("than before {day}", day=day(began, year_of=scene.today))
    )
    size = (
        say("{size} more {when}", size=percent(change), when=when)
        if change > 0
        else say("{size} less {when}", size=percent(change), when=when)
    )
    if same and (began is None or question.direction not in ("up", "down")):
        return say("About the same: {size}", size=size)
    if began is None or question.direction is None or ((change < 0) is (question.direction == "down") and not same):
        return say("{series!u} is {size}", series=later.observed, size=size)
    if question.direction == "down":
        return say("No drop shows: {size}", size=size)
    return say("No rise shows: {size}", size=size)


def _period_claim(scene: Scene, draft: Draft, total: Total) -> None:
    found, window, count = total.aggregate, total.window, len(total.aggregate.full_days)
    dates = day_range(window.first_date, window.last_date, year_of=scene.today)
    rate = per_day(found.per_day or 0.0, found.unit)
    if total.observed.night_only:
        nightly = amount(found.per_day or 0.0, found.unit)
        text = say("{rate} a night on {count} nights", rate=nightly, count=count)
        text = say("{rate} a night on 1 night", rate=nightly) if count == 1 else text
        text = say("{opening}: {text}", opening=dates, text=text)
    elif count == 1:
        text = say("{dates}: {rate} over 1 full day", dates=dates, rate=rate)
    else:
        text = say("{dates}: {rate} over {count} full days", dates=dates, rate=rate, count=count)
    draft.claim(
        "per_day",
        EvidenceClass.MEASURED,
        text,
        cite=cite_of(scene, total.devices),
        refs=total.full_refs,
        values=(
            Quantity("per_day", round(found.per_day or 0.0, 3), f"{found.unit}/day"),
            Quantity("days", len(found.full_days), "days"),
        ),
        window=window,
        about=(f"pet:{total.pet.id}",),
    )


def select_pets(scene: Scene, question: Question, draft: Draft, pets: tuple[Pet, ...], window: Window) -> None:
    """Answer "which of my pets?": a range query that yields pets, each with its figure."""
    observed = scene.ontology.properties[str(question.metric)]
    wanted = {"up": (Verdict.UP,), "down": (Verdict.DOWN,)}.get(question.direction or "", (Verdict.UP, Verdict.DOWN))
    figures: list[Figure] = []
    missing, unclear = [], []
    for pet in pets:
        figure = compare_window(scene, pet, observed, window) if scene.devices_of(pet.id, observed) else None
        if figure is None:
            missing.append(verbatim(pet.name))
        elif figure.verdict is Verdict.CANNOT_TELL:
            unclear.append(verbatim(pet.name))
        else:
            figures.append(figure)
    compared = {figure.pet.id: figure.measured.comparison for figure in figures}
    ids = {pet for verdict in wanted for pet in ids_with(verdict, compared)}
    chosen = [figure for figure in figures if figure.pet.id in ids]
    names = joined([verbatim(figure.pet.name) for figure in chosen])
    blind = bool(missing or unclear) and not chosen
    none = "None of those that can be told" if blind else "None"
    draft.say(NoticeKind.SHORT, names or none, slot=observed.id if blind else None)
    for figure in chosen or figures:
        figure_claim(scene, draft, figure, opening=verbatim(figure.pet.name))
    if unclear:
        draft.say(NoticeKind.ABSENCE, say("Not clear for {names}", names=joined(unclear)), slot=observed.id)
        if blind:
            ask_again(draft, observed.id, days=len(dates_between(window.first_date, window.last_date)), wider=None)
    if missing:
        kind = scene.ontology.device_kinds[observed.captured_by[0]]
        draft.say(
            NoticeKind.ABSENCE,
            say("Not recorded for {names}; {device.a} would capture it", names=joined(missing), device=kind),
            slot=observed.id,
            device=kind.id,
        )


def overview(scene: Scene, draft: Draft, pet: Pet, window: Window, *, judged: str = "", happened: bool = False) -> None:
    """Answer "how is he?", "what happened last week?": what the devices measure, never how the pet is.

    ``happened`` tells first what is dated in the window; ``judged`` is said before, where a
    judgement is asked for that no record holds ("will he be fine?").
    """
    say_floors(scene, draft, pet)
    if judged:
        draft.say(NoticeKind.SHORT, judged, slot="unseen")
        draft.paragraph()
    if happened:
        say_happened(scene, draft, pet, window.interval)
    figures = [
        figure
        for name in _ALL
        if scene.devices_of(pet.id, scene.ontology.properties[name])
        for figure in (compare_window(scene, pet, scene.ontology.properties[name], window),)
        if figure is not None
    ]
    if not figures:
        text = say("Nothing is recorded of {pet} yet", pet=pet)
        draft.say(NoticeKind.SHORT, text, slot="device", device="tracker")
        kind = scene.ontology.device_kinds["tracker"]
        draft.say(NoticeKind.ABSENCE, say("{device.a!u} would capture it", device=kind), slot="device", device=kind.id)
        say_signs(scene, draft, pet, window)
        return
    changed = [figure for figure in figures if figure.verdict in (Verdict.UP, Verdict.DOWN)]
    unclear = [figure for figure in figures if figure.verdict is Verdict.CANNOT_TELL]
    dates = day_range(window.first_date, window.last_date, year_of=scene.today)
    if changed:
        named = joined([_moved(figure) for figure in changed])
        draft.say(NoticeKind.SHORT, say("{what!u} ({dates})", what=named, dates=dates))
    elif len(unclear) < len(figures):
        text = say("Nothing the devices measure is outside {pet}'s usual ({dates})", pet=pet, dates=dates)
        draft.say(NoticeKind.SHORT, text)
    elif all(figure.measured.comparison.reason is Unclear.TOO_FEW_DAYS for figure in unclear):
        draft.say(NoticeKind.SHORT, say("Too early to say what is usual for {pet}", pet=pet), slot="usual")
        _first_told(scene, draft, unclear)
    else:
        text = say("Nothing clear can be said against {pet}'s usual ({dates})", pet=pet, dates=dates)
        draft.say(NoticeKind.SHORT, text, slot="usual")
        ask_again(draft, "usual", days=len(dates_between(window.first_date, window.last_date)), wider=None)
    for figure in changed:
        figure_claim(scene, draft, figure, opening=say("{series}", series=figure.observed))
    as_usual(scene, draft, pet, window, except_for="", names=tuple(f.observed.id for f in figures if f not in changed))
    if unclear:
        named = joined([say("{series}", series=figure.observed) for figure in unclear])
        draft.say(NoticeKind.ABSENCE, say("Not clear: {what}", what=named))
    say_signs(scene, draft, pet, window)
    draft.paragraph()
    draft.say(NoticeKind.CAUTION, say("No device here sees {what}", what=_UNSEEN))


def _first_told(scene: Scene, draft: Draft, figures: list[Figure]) -> None:
    """The first day on which one of these can be compared, where it is ahead; else from when on it could be."""
    found = [
        outlook(f.measured.grid, f.measured.comparison, f.window.first_date, f.window.last_date).tell_on
        for f in figures
    ]
    days = sorted(one for one in found if one is not None)
    if days and days[0] > scene.today:
        when = day(days[0], year_of=scene.today)
        draft.say(NoticeKind.NEXT, say("First comparison {day}", day=when), slot="usual")
        return
    needed = figures[0].measured.comparison.baseline_needed
    told_from(scene, draft, "usual", tell_on=days[0] if days else None, needed=needed)


def _moved(figure: Figure) -> Said:
    if figure.verdict is Verdict.UP:
        return say("{series.is} up", series=figure.observed)
    return say("{series.is} down", series=figure.observed)


def whole_week_before(scene: Scene, window: Window) -> Window:
    """The seven days before a window: what "last week" is against "this week"."""
    last = add_days(window.first_date, -1)
    return scene.window("PREV_WEEK", add_days(last, -6), last)
