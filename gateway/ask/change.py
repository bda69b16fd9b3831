"""Is it up, down, as usual, or can't it be told: the first half of every question of change.

Says the verdict in the asker's word first, then the figure it stands on. "Cannot tell" is
not empty: what was seen and how often it was so before, why no more can be said, what would
settle it and when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.ask.energy import same_energy
from gateway.ask.figures import Figure, also_text, change_text, cite_of, compare_window, is_night_label
from gateway.ask.gaps import say_gap
from gateway.ask.said import being, is_or_are
from gateway.ask.thin import say_thin
from gateway.ask.weighed import say_weighings
from gateway.ask.wording import day, day_range, first_upper, joined, per_day, percent, possessive
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
    "say_verdict",
    "verdict_words",
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
        f"{pet.name}'s {being(observed.owner)} not recorded here, so whether it changed can't be told",
        slot=observed.id,
        device=kind.id,
    )
    draft.say(NoticeKind.ABSENCE, f"{first_upper(kind.word)} would capture it", slot=observed.id, device=kind.id)
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
        draft.say(NoticeKind.SHORT, f"Nothing of {pet.name}'s {observed.owner} has been recorded yet", slot=observed.id)
    return figure


def _shared(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> bool:
    """Say that the pet's own share is not known where every such device serves others too, with what all took."""
    devices = scene.devices_of(pet.id, observed)
    if not devices or any(scene.alone(pet.id, device) for device in devices):
        return False
    device = devices[0]
    sharing = sorted(scene.home.bindings_at(device.id, scene.now_ms))
    names = joined([scene.home.pet(one).name for one in sharing])
    plain = scene.ontology.device_kinds[device.kind].plain
    draft.say(
        NoticeKind.SHORT,
        f"I can't tell {pet.name}'s share: {names} use one {plain}, which doesn't know whose visit it was",
        slot="whose",
        device=device.kind,
    )
    draft.paragraph()
    _all_of_them(scene, draft, sharing, observed, device)
    draft.say(NoticeKind.NEXT, f"A {plain} for each, or one that tells them apart, would record it", slot="whose")
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
        f"All together {per_day(mean, observed.unit)} on {len(full)} full days, "
        f"{day_range(full[0].date, full[-1].date, year_of=scene.today)}",
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
        return f"{how_clearly(figure)} {_WAY[figure.verdict]}"
    return "as usual" if figure.verdict is Verdict.USUAL else "not clear"


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
    text = change_text(figure, year_of=scene.today)
    if opening:
        text = f"{opening}: {text}"
    if figure.measured.unit == "kcal":
        text = f"{text}; counted as energy, because the food changed"
    if ranked and (often := _how_often(figure)):
        text = f"{text}; {often}"
        refs, values = (*refs, *figure.past_refs), (*values, *figure.rank())
    if not opening and (visible := _visible(figure)):
        text = f"{text}; {visible}"
    return draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        first_upper(text),
        cite=cite_of(scene, figure.devices, figure) or "device",
        refs=refs,
        values=values,
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
        rank=rank,
    )


def _how_often(figure: Figure) -> str:
    """How the window stands among the pet's own past ones: "3 of his last 26 weeks were as high"."""
    comparison = figure.measured.comparison
    if comparison.rank is None or comparison.rank_of is None or comparison.change is None:
        return ""
    if comparison.rank_of < _RANKED_FROM:
        return ""
    high = comparison.change > 0
    alike = comparison.rank_of - comparison.rank if high else comparison.rank
    word = "weeks" if comparison.days_expected == _WEEK_DAYS else "stretches"
    past = f"{possessive(figure.pet)} last {comparison.rank_of} comparable {word}"
    if alike == 0:
        return f"{'higher' if high else 'lower'} than all of {past}"
    return f"{alike} of {past} {'was' if alike == 1 else 'were'} as {'high' if high else 'low'}"


def _visible(figure: Figure) -> str:
    """The smallest change that would have shown, where none did."""
    comparison = figure.measured.comparison
    if comparison.smallest_visible is None or figure.verdict in _WAY:
        return ""
    length = "one week" if comparison.days_expected == _WEEK_DAYS else "that time"
    return f"{length} would show a change above about {percent(comparison.smallest_visible)}"


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
    owner, name, verdict = figure.observed.owner, figure.pet.name, figure.verdict
    if there and verdict is not Verdict.USUAL:
        clear = how_clearly(figure)
        if asked is None and figure.window.label == "LAST_NIGHT":
            return NoticeKind.SHORT, f"{name}'s {owner} last night was {clear} {_WAY[verdict]}"
        if asked is None:
            return NoticeKind.SHORT, f"{first_upper(being(owner))} {clear} {_WAY[verdict]}"
        return NoticeKind.SHORT, f"Yes, {clear} {'more' if verdict is Verdict.UP else 'less'}"
    if there:
        lead = "Yes: " if asked == "same" else ""
        if figure.window.label == "LAST_NIGHT":
            return NoticeKind.SHORT, f"{lead}{name}'s {owner} last night was as usual"
        return NoticeKind.SHORT, f"{lead}{name}'s {being(owner)} as usual"
    if verdict is Verdict.USUAL:
        return NoticeKind.PREMISE, f"No {'rise' if asked == 'up' else 'drop'} shows in {_what(figure)}"
    against = "as usual" if asked == "same" else str(asked)
    return (
        NoticeKind.PREMISE,
        f"No: {name}'s {being(owner)} {how_clearly(figure)} {_WAY[verdict]}, not {against}",
    )


def _what(figure: Figure) -> str:
    """What is measured, as seen by the device: "what leaves Bella's bowl", "Max's scratching"."""
    if figure.observed.of_device == "from the bowl":
        return f"what leaves {figure.pet.name}'s bowl"
    return f"{figure.pet.name}'s {figure.observed.owner}"


def if_seen(draft: Draft, figure: Figure) -> None:
    """What the owner sees counts for more than any figure here."""
    draft.paragraph()
    name = figure.pet.name
    draft.say(NoticeKind.CAUTION, f"If {name} looks different to you, trust that: no figure here says how {name} feels")


# --- cannot tell -------------------------------------------------------------------------------------


def name_unclear(scene: Scene, draft: Draft, figure: Figure, *, asked: str | None = None) -> None:
    """The answer where it cannot be told: what was seen, why not, and what would settle it."""
    comparison, name, owner = figure.measured.comparison, figure.pet.name, figure.observed.owner
    reason = comparison.reason
    if reason is Unclear.TOO_FEW_DAYS:
        say_thin(scene, draft, figure)
        return
    if reason is Unclear.NOT_HEARD:
        say_gap(scene, draft, figure, asked=asked)
        return
    if reason is Unclear.NOT_COMPARABLE:
        why = comparison.detail or "the measuring changed"
        draft.say(NoticeKind.SHORT, f"I can't tell: not comparable, {why}", slot=figure.observed.id)
    elif reason is Unclear.WHOSE_UNKNOWN:
        draft.say(
            NoticeKind.SHORT, f"I can't tell whose it was: part of {name}'s {owner} may be another pet's", slot="whose"
        )
    else:
        seen = (
            "" if comparison.change is None else f", but {percent(comparison.change)} {_seen(comparison.change)} usual"
        )
        draft.say(
            NoticeKind.SHORT,
            f"Not clear{seen}: {possessive(figure.pet)} days vary too much for this window to show it",
            slot=figure.observed.id,
        )
    draft.paragraph()
    figure_claim(scene, draft, figure, ranked=True)
    told = outlook(figure.measured.grid, comparison, figure.window.first_date, figure.window.last_date)
    _wider(scene, draft, figure)
    if told.tell_on is not None and told.tell_on > scene.today and reason is Unclear.TOO_VARIABLE:
        when = day(told.tell_on, year_of=scene.today)
        draft.say(NoticeKind.ABSENCE, f"If this goes on, it can be told about {when}", slot=figure.observed.id)


def _seen(change: float) -> str:
    return "above" if change > 0 else "below"


def _wider(scene: Scene, draft: Draft, figure: Figure) -> None:
    """The next wider window that can tell, if one can."""
    for days in _WIDER_DAYS:
        if days <= figure.measured.comparison.days_expected:
            continue
        window = scene.window(f"P{days}D", add_days(scene.today, 1 - days), scene.today)
        wider = compare_window(scene, figure.pet, figure.observed, window)
        if wider is not None and wider.verdict is not Verdict.CANNOT_TELL:
            figure_claim(scene, draft, wider, opening=f"Over the last {days} days it is {verdict_words(wider)}", rank=5)
            return


# --- beside what was asked ---------------------------------------------------------------------------


def as_usual(
    scene: Scene,
    draft: Draft,
    pet: Pet,
    window: Window,
    *,
    except_for: str,
    names: tuple[str, ...],
    rank: int = 2,
) -> None:
    """What else the pet's devices say of the same days: as usual in one sentence, changes in their own.

    ``names`` are property ids in the order to tell; the one asked about is left out.
    """
    usual: list[Figure] = []
    if is_night_label(window.label):  # what else was measured is told of the whole days
        window = replace(window, label=f"{window.first_date}/{window.last_date}")
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
            _also_changed(scene, draft, figure, rank + 1)
    if not usual:
        return
    words = [figure.observed.words[0] if figure.observed.words else figure.observed.owner for figure in usual]
    devices = tuple(dict.fromkeys(device for figure in usual for device in figure.devices))
    draft.claim(
        "as_usual",
        EvidenceClass.MEASURED,
        f"{first_upper(joined(words))} {is_or_are(words)} as usual",
        cite=cite_of(scene, devices, *usual),
        refs=tuple(ref for figure in usual for ref in figure.refs),
        values=tuple(value for figure in usual for value in _prefixed(figure)),
        window=window,
        about=(f"pet:{pet.id}", *(f"series:{figure.series}" for figure in usual)),
        rank=rank,
    )


def _also_changed(scene: Scene, draft: Draft, figure: Figure, rank: int) -> None:
    """Another series of the same days that changed too, in half a sentence."""
    draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        first_upper(also_text(figure)),
        cite=cite_of(scene, figure.devices, figure),
        refs=figure.refs,
        values=figure.values(),
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
        rank=rank,
    )


def _prefixed(figure: Figure) -> tuple[Quantity, ...]:
    return tuple(Quantity(f"{figure.series}.{q.name}", q.value, q.unit) for q in figure.values())
