"""Is it up, down, as usual, or can't it be told: the first half of every question of change.

Says the verdict in the asker's word first, then the figure it stands on. "Cannot tell" is
not empty: what was seen and how often it was so before, why no more can be said, what would
settle it and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.energy import same_energy
from gateway.ask.figures import Figure, also_text, change_text, cite_of, compare_window, is_night_label
from gateway.ask.gaps import say_gap
from gateway.ask.said import Part, Said, elsewhere, is_or_are, say, verbatim
from gateway.ask.settle import ask_again, hear_it
from gateway.ask.thin import say_thin
from gateway.ask.weighed import say_weighings
from gateway.ask.wording import day, day_range, first_upper, joined, listed, per_day, percent
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import add_days
from gateway.measure.outlook import outlook
from gateway.model import Unclear, Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Device, Pet, Window
    from gateway.ontology.vocabulary import Property

__all__ = [
    "as_usual",
    "figure_claim",
    "figure_seen",
    "how_clearly",
    "if_seen",
    "name_unclear",
    "not_captured",
    "nothing_yet",
    "say_verdict",
    "verdict_words",
    "yes",
]

_WIDER_DAYS = (14, 28, 90)
_WEEK_DAYS = 7
_HEARD = 0.9
"""From this share of a day on it counts as a full one."""
_RANKED_FROM = 8
"""From this many own past windows on, "3 of his last 12 comparable weeks" says something."""
_ASKED = {"up": Verdict.UP, "down": Verdict.DOWN, "same": Verdict.USUAL}
_WAY = {Verdict.UP: "up", Verdict.DOWN: "down"}


def not_captured(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> bool:
    """Say that nothing here records the property of this pet alone, and what would; False where something does."""
    if observed.evidence_class == "RECORDED" or _shared(scene, draft, pet, observed):
        return observed.evidence_class != "RECORDED"
    if scene.devices_of(pet.id, observed):
        return False
    kind = scene.ontology.device_kinds[observed.captured_by[0]]
    draft.say(
        NoticeKind.SHORT,
        say("{pet}'s {series.is} not recorded here, so that can't be told", pet=pet, series=observed),
        slot=observed.id,
        device=kind.id,
    )
    would = say("{device.a!u} would capture it", device=kind)
    draft.say(NoticeKind.ABSENCE, would, slot=observed.id, device=kind.id)
    if scene.reader.first_date(scene.ontology.series_id(pet.id, observed.id)) is not None:
        draft.say(NoticeKind.ABSENCE, "It was recorded earlier, but no such device serves the pet now")
    return True


def figure_seen(scene: Scene, draft: Draft, pet: Pet, observed: Property, window: Window) -> Figure | None:
    """The window against the pet's usual; None, with the reason said, where nothing records it or has yet."""
    if observed.id == "weight" and say_weighings(scene, draft, pet):
        return None  # readings, not days: what they are is said, and a fall is watched by its own floor
    if not_captured(scene, draft, pet, observed):
        return None
    figure = compare_window(scene, pet, observed, window)
    if figure is None:
        draft.say(NoticeKind.SHORT, nothing_yet(pet, observed), slot=observed.id)
        hear_it(scene, draft, pet, observed)
    return figure


def nothing_yet(pet: Pet, observed: Property) -> Said:
    """That a property of a pet has no record at all yet."""
    return say("Nothing of {pet}'s {series} has been recorded yet", pet=pet, series=observed)


def _shared(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> bool:
    """Say that the pet's own share is not known where every such device serves others too, with what all took."""
    devices = scene.devices_of(pet.id, observed)
    if not devices or any(scene.alone(pet.id, device) for device in devices):
        return False
    device = devices[0]
    sharing = sorted(scene.home.bindings_at(device.id, scene.now_ms))
    names = joined([verbatim(scene.home.pet(one).name) for one in sharing])
    kind = scene.ontology.device_kinds[device.kind]
    draft.say(
        NoticeKind.SHORT,
        say(
            "I can't tell {pet}'s share: {names} use one {device}, which doesn't know whose visit it was",
            pet=pet,
            names=names,
            device=kind,
        ),
        slot="whose",
        device=device.kind,
    )
    draft.paragraph()
    _all_of_them(scene, draft, sharing, observed, device)
    apart = say("A {device} for each, or one that tells them apart, would record it", device=kind)
    draft.say(NoticeKind.NEXT, apart, slot="whose")
    return True


def _all_of_them(scene: Scene, draft: Draft, sharing: list[str], observed: Property, device: Device) -> None:
    """The household's total at a shared device over the week: full days only."""
    series = scene.ontology.series_id("+".join(sharing), observed.id)
    week = scene.week()
    rows = [row for row in scene.reader.days(series, week.first_date, week.last_date) if row.date < scene.today]
    full = [row for row in rows if row.covered_ms >= _HEARD * (row.end_ms - row.start_ms)]
    if not full:
        return
    mean = sum(row.total for row in full) / len(full)
    draft.claim(
        "shared_total",
        EvidenceClass.MEASURED,
        say(
            "All together {rate} on {count} full days, {dates}",
            rate=per_day(mean, observed.unit),
            count=len(full),
            dates=day_range(full[0].date, full[-1].date, year_of=scene.today),
        ),
        cite=scene.ontology.device_kinds[device.kind].cite,
        refs=tuple(row.ref for row in full),
        values=(Quantity("per_day", round(mean, 3), f"{observed.unit}/day"), Quantity("days", len(full), "days")),
        window=week,
        about=tuple(f"pet:{one}" for one in sharing),
    )


def how_clearly(figure: Figure) -> str:
    """Say "clearly", or "slightly" where the change is real but all of it below what matters."""
    interval = figure.measured.comparison.interval
    bound = figure.observed.relevance
    small = interval is not None and -bound <= interval[0] and interval[1] <= bound
    return "slightly" if small else "clearly"


def verdict_words(figure: Figure) -> str:
    """The verdict as one bare phrase: "clearly up", "as usual"."""
    if figure.verdict in _WAY:
        return _moved(figure, up=figure.verdict is Verdict.UP)
    return "as usual" if figure.verdict is Verdict.USUAL else "not clear"


def _moved(figure: Figure, *, up: bool) -> Said:
    how = how_clearly(figure)
    return say("{how} up", how=how) if up else say("{how} down", how=how)


def figure_claim(
    scene: Scene, draft: Draft, figure: Figure, *, opening: str = "", rank: int = 0, ranked: bool = False
) -> str | None:
    """The figure as a claim citing the days on both sides; None where no day was recorded.

    ``opening`` names the series or pet first, where the figure is not the one asked about;
    ``ranked`` adds how often it was so in the pet's own past.
    """
    refs, values = figure.refs, figure.values()
    if not refs:
        return None
    told = change_text(figure, year_of=scene.today)
    text = [say("{opening}: {text}", opening=opening, text=told) if opening else told]
    if figure.measured.unit == "kcal":
        text.append(say("counted as energy, because the food changed"))
    if ranked and (often := _how_often(figure)):
        text.append(often)
        refs, values = (*refs, *figure.past_refs), (*values, *figure.rank())
    if not opening and (visible := _visible(figure)):
        text.append(visible)
    return draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        first_upper(listed(text)),
        cite=cite_of(scene, figure.devices, figure) or "device",
        refs=refs,
        values=values,
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
        rank=rank,
    )


def _how_often(figure: Figure) -> Said | None:
    """How the window stands among the pet's own past ones: "3 of his last 26 weeks were as high"."""
    comparison = figure.measured.comparison
    if comparison.rank is None or comparison.rank_of is None or comparison.change is None:
        return None
    if comparison.rank_of < _RANKED_FROM:
        return None
    high = comparison.change > 0
    alike = comparison.rank_of - comparison.rank if high else comparison.rank
    word = "weeks" if comparison.days_expected == _WEEK_DAYS else "stretches"
    if alike == 0:
        past: dict[str, Part] = {"pet": figure.pet, "count": comparison.rank_of, "stretches": word}
        if high:
            return say("higher than all of {pet.his} last {count} comparable {stretches}", **past)
        return say("lower than all of {pet.his} last {count} comparable {stretches}", **past)
    return _alike(figure.pet, alike, comparison.rank_of, word, high=high)


def _alike(pet: Pet, alike: int, count: int, word: str, *, high: bool) -> Said:
    past: dict[str, Part] = {"alike": alike, "pet": pet, "count": count, "stretches": word}
    if alike == 1 and high:
        return say("{alike} of {pet.his} last {count} comparable {stretches} was as high", **past)
    if alike == 1:
        return say("{alike} of {pet.his} last {count} comparable {stretches} was as low", **past)
    if high:
        return say("{alike} of {pet.his} last {count} comparable {stretches} were as high", **past)
    return say("{alike} of {pet.his} last {count} comparable {stretches} were as low", **past)


def _visible(figure: Figure) -> Said | None:
    """The smallest change that would have shown, where none did."""
    comparison = figure.measured.comparison
    if comparison.smallest_visible is None or figure.verdict in _WAY:
        return None
    size = percent(comparison.smallest_visible)
    if comparison.days_expected == _WEEK_DAYS:
        return say("one week would show a change above about {size}", size=size)
    return say("that time would show a change above about {size}", size=size)


def say_verdict(scene: Scene, draft: Draft, figure: Figure, asked: str | None) -> bool:
    """Short answer and figure. Returns whether the asked change is really there.

    Parameters
    ----------
    asked : str or None
        ``up``, ``down``, ``same`` or None where the question names no direction.
    """
    wanted = _ASKED.get(asked or "")
    if figure.verdict is Verdict.CANNOT_TELL:
        name_unclear(scene, draft, figure, asked=asked)
        return False
    if same_energy(scene, draft, figure, asked):
        return False
    there = wanted is None or figure.verdict is wanted
    draft.say(*_opening(figure, asked, there=there), slot=None if there else figure.observed.id)
    draft.paragraph()
    figure_claim(scene, draft, figure, ranked=figure.verdict in _WAY)
    return there


def _opening(figure: Figure, asked: str | None, *, there: bool) -> tuple[NoticeKind, str]:
    pet, series, verdict, how = figure.pet, figure.observed, figure.verdict, how_clearly(figure)
    if there and verdict is not Verdict.USUAL:
        if asked is None and figure.window.label == "LAST_NIGHT":
            return NoticeKind.SHORT, _last_night(figure, how)
        if asked is None and verdict is Verdict.UP:
            return NoticeKind.SHORT, say("{series.is!u} {how} up", series=series, how=how)
        if asked is None:
            return NoticeKind.SHORT, say("{series.is!u} {how} down", series=series, how=how)
        return NoticeKind.SHORT, yes(figure, up=verdict is Verdict.UP)
    if there:
        usual = (
            say("{pet}'s {series} last night was as usual", pet=pet, series=series)
            if figure.window.label == "LAST_NIGHT"
            else say("{pet}'s {series.is} as usual", pet=pet, series=series)
        )
        return NoticeKind.SHORT, say("Yes: {what}", what=usual) if asked == "same" else usual
    if verdict is Verdict.USUAL and asked == "up":
        return NoticeKind.PREMISE, say("No rise shows in {what}", what=_what(figure))
    if verdict is Verdict.USUAL:
        return NoticeKind.PREMISE, say("No drop shows in {what}", what=_what(figure))
    return NoticeKind.PREMISE, _other_way(figure, how, asked)


def _last_night(figure: Figure, how: str) -> Said:
    parts: dict[str, Part] = {"pet": figure.pet, "series": figure.observed, "how": how}
    if figure.verdict is Verdict.UP:
        return say("{pet}'s {series} last night was {how} up", **parts)
    return say("{pet}'s {series} last night was {how} down", **parts)


def yes(figure: Figure, *, up: bool) -> Said:
    """That it is there as asked: "Yes, clearly more"."""
    how = how_clearly(figure)
    return say("Yes, {how} more", how=how) if up else say("Yes, {how} less", how=how)


def _other_way(figure: Figure, how: str, asked: str | None) -> Said:
    """That it changed, but not as asked: "No: Max's rest is clearly up, not down"."""
    parts: dict[str, Part] = {"pet": figure.pet, "series": figure.observed, "how": how}
    up = figure.verdict is Verdict.UP
    if asked == "same" and up:
        return say("No: {pet}'s {series.is} {how} up, not as usual", **parts)
    if asked == "same":
        return say("No: {pet}'s {series.is} {how} down, not as usual", **parts)
    if up:
        return say("No: {pet}'s {series.is} {how} up, not down", **parts)
    return say("No: {pet}'s {series.is} {how} down, not up", **parts)


def _what(figure: Figure) -> Said:
    """What is measured, as seen by the device: "what leaves Bella's bowl", "Max's scratching"."""
    if figure.observed.of_device == "from the bowl":
        return say("what leaves {pet}'s bowl", pet=figure.pet)
    return say("{pet}'s {series}", pet=figure.pet, series=figure.observed)


def if_seen(draft: Draft, figure: Figure) -> None:
    """What the owner sees counts for more than any figure here."""
    draft.paragraph()
    text = say("If {pet} looks different to you, trust that: no figure here says how {pet} feels", pet=figure.pet)
    draft.say(NoticeKind.CAUTION, text)


# --- cannot tell -------------------------------------------------------------------------------------


def name_unclear(scene: Scene, draft: Draft, figure: Figure, *, asked: str | None = None) -> None:
    """The answer where it cannot be told: what was seen, why not, and what would settle it."""
    comparison = figure.measured.comparison
    reason = comparison.reason
    if reason is Unclear.TOO_FEW_DAYS:
        say_thin(scene, draft, figure)
        return
    if reason is Unclear.NOT_HEARD:
        say_gap(scene, draft, figure, asked=asked)
        return
    if reason is Unclear.NOT_COMPARABLE:
        changed = say("the measuring changed")
        why = elsewhere(comparison.detail, changed) if comparison.detail else changed
        draft.say(NoticeKind.SHORT, say("I can't tell: not comparable, {why}", why=why), slot=figure.observed.id)
    elif reason is Unclear.WHOSE_UNKNOWN:
        text = say(
            "I can't tell whose it was: part of {pet}'s {series} may be another pet's",
            pet=figure.pet,
            series=figure.observed,
        )
        draft.say(NoticeKind.SHORT, text, slot="whose")
        kind = scene.ontology.device_kinds[figure.observed.captured_by[0]]
        apart = say("A {device} for each, or one that tells them apart, would record it", device=kind)
        draft.say(NoticeKind.NEXT, apart, slot="whose")
    else:
        text = say(
            "Not clear{seen}: {pet.his} days vary too much for this window to show it",
            seen=_seen(comparison.change),
            pet=figure.pet,
        )
        draft.say(NoticeKind.SHORT, text, slot=figure.observed.id)
    draft.paragraph()
    figure_claim(scene, draft, figure, ranked=True)
    told = outlook(figure.measured.grid, comparison, figure.window.first_date, figure.window.last_date)
    wider = _wider(scene, draft, figure)
    if told.tell_on is not None and told.tell_on > scene.today:
        when = day(told.tell_on, year_of=scene.today)
        text = say("If this goes on, it can be told about {when}", when=when)
        draft.say(NoticeKind.ABSENCE, text, slot=figure.observed.id)
    elif reason is not Unclear.WHOSE_UNKNOWN:
        ask_again(draft, figure.observed.id, days=comparison.days_expected, wider=wider)


def _seen(change: float | None) -> Said:
    if change is None:
        return verbatim("")
    size = percent(change)
    return say(", but {size} above usual", size=size) if change > 0 else say(", but {size} below usual", size=size)


def _wider(scene: Scene, draft: Draft, figure: Figure) -> int | None:
    """Tell the next wider window that can tell, if one can; how many days it has."""
    for days in _WIDER_DAYS:
        if days <= figure.measured.comparison.days_expected:
            continue
        label = f"NIGHT:P{days}D" if is_night_label(figure.window.label) else f"P{days}D"
        window = scene.window(label, add_days(scene.today, 1 - days), scene.today)
        wider = compare_window(scene, figure.pet, figure.observed, window)
        if wider is not None and wider.verdict is not Verdict.CANNOT_TELL:
            opening = say("Over the last {days} days it is {verdict}", days=days, verdict=verdict_words(wider))
            figure_claim(scene, draft, wider, opening=opening, rank=5)
            return days
    return None


# --- beside what was asked ---------------------------------------------------------------------------


def as_usual(
    scene: Scene,
    draft: Draft,
    pet: Pet,
    window: Window,
    *,
    except_for: str,
    names: tuple[str, ...],
    beside: Verdict = Verdict.USUAL,
    rank: int = 2,
) -> None:
    """What else the pet's devices say of the same days: as usual in one sentence, changes in their own.

    ``names`` are property ids in the order to tell; the one asked about is left out, and
    ``beside`` is its verdict.
    """
    usual: list[Figure] = []
    if is_night_label(window.label):  # what else was measured is told of the whole days
        window = scene.window(f"{window.first_date}/{window.last_date}", window.first_date, window.last_date)
    for name in names:
        observed = scene.ontology.properties[name]
        if name == except_for or not scene.devices_of(pet.id, observed):
            continue
        figure = compare_window(scene, pet, observed, window)
        if figure is None:
            continue
        if figure.verdict is Verdict.USUAL:
            usual.append(figure)
        elif figure.verdict in _WAY:
            _also_changed(scene, draft, figure, rank + 1, beside=beside)
    if not usual:
        return
    words = [say("{series.word}", series=figure.observed) for figure in usual]
    devices = tuple(dict.fromkeys(device for figure in usual for device in figure.devices))
    draft.claim(
        "as_usual",
        EvidenceClass.MEASURED,
        _as_usual_text(words),
        cite=cite_of(scene, devices, *usual),
        refs=tuple(ref for figure in usual for ref in figure.refs),
        values=tuple(value for figure in usual for value in _prefixed(figure)),
        window=window,
        about=(f"pet:{pet.id}", *(f"series:{figure.series}" for figure in usual)),
        rank=rank,
    )


def _as_usual_text(words: list[Said]) -> Said:
    if is_or_are(words) == "is":
        return say("{what!u} is as usual", what=joined(words))
    return say("{what!u} are as usual", what=joined(words))


def _also_changed(scene: Scene, draft: Draft, figure: Figure, rank: int, *, beside: Verdict) -> None:
    """Another series of the same days that changed too, in half a sentence."""
    draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        first_upper(also_text(figure, beside=beside)),
        cite=cite_of(scene, figure.devices, figure),
        refs=figure.refs,
        values=figure.values(),
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
        rank=rank,
    )


def _prefixed(figure: Figure) -> tuple[Quantity, ...]:
    return tuple(Quantity(f"{figure.series}.{q.name}", q.value, q.unit) for q in figure.values())
