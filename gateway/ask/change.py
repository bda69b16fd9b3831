"""Is it up, down, as usual, or can't it be told: the first half of every question of change.

Says the verdict in the asker's word first, then the figure it stands on. "Cannot tell" is
not empty: what was seen, why no more can be said, what would settle it and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.figures import Figure, also_text, change_text, cite_of, compare_window
from gateway.ask.wording import day, first_upper, joined, percent, possessive
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import add_days
from gateway.model import Unclear, Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet, Window
    from gateway.ontology.vocabulary import Property

__all__ = ["as_usual", "figure_claim", "how_clearly", "name_unclear", "not_captured", "say_verdict", "verdict_words"]

_WIDER_DAYS = (14, 28, 90)
_ASKED = {"up": Verdict.UP, "down": Verdict.DOWN, "same": Verdict.USUAL}
_WAY = {Verdict.UP: "up", Verdict.DOWN: "down"}


def not_captured(scene: Scene, draft: Draft, pet: Pet, observed: Property) -> bool:
    """Say that nothing here records the property, and what would; False where something does."""
    if scene.devices_of(pet.id, observed) or observed.evidence_class == "RECORDED":
        return False
    kind = scene.ontology.device_kinds[observed.captured_by[0]]
    draft.say(
        NoticeKind.SHORT,
        f"{pet.name}'s {observed.owner} is not recorded here, so whether it changed can't be told",
        slot=observed.id,
        device=kind.id,
    )
    draft.say(NoticeKind.ABSENCE, f"{first_upper(kind.word)} would capture it", slot=observed.id, device=kind.id)
    if scene.reader.first_date(scene.ontology.series_id(pet.id, observed.id)) is not None:
        draft.say(NoticeKind.ABSENCE, "It was recorded earlier, but no such device serves the pet now")
    return True


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


def figure_claim(scene: Scene, draft: Draft, figure: Figure, *, opening: str = "", rank: int = 0) -> str | None:
    """The figure as a claim citing the days on both sides; None where no day was recorded.

    ``opening`` names the series or pet first, where the figure is not the one asked about.
    """
    refs = figure.refs
    if not refs:
        return None
    text = change_text(figure, year_of=scene.today)
    if opening:
        text = f"{opening}: {text}"
    if figure.measured.unit == "kcal":
        text = f"{text}; counted as energy, because the food changed"
    return draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        first_upper(text),
        cite=cite_of(scene, figure.devices) or "device",
        refs=refs,
        values=figure.values(),
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
        rank=rank,
    )


def say_verdict(scene: Scene, draft: Draft, figure: Figure, asked: str | None) -> bool:
    """Short answer and figure. Returns whether the asked change is really there.

    Parameters
    ----------
    asked : str or None
        ``up``, ``down``, ``same`` or None where the question names no direction.
    """
    owner, name = figure.observed.owner, figure.pet.name
    wanted = _ASKED.get(asked or "")
    if figure.verdict is Verdict.CANNOT_TELL:
        name_unclear(scene, draft, figure)
        return False
    there = wanted is None or figure.verdict is wanted
    if there and figure.verdict is not Verdict.USUAL:
        more = "more" if figure.verdict is Verdict.UP else "less"
        clear = how_clearly(figure)
        opening = (
            f"{first_upper(owner)} is {clear} {_WAY[figure.verdict]}" if wanted is None else f"Yes, {clear} {more}"
        )
        draft.say(NoticeKind.SHORT, opening)
    elif there:
        lead = "Yes: " if asked == "same" else ""
        draft.say(NoticeKind.SHORT, f"{lead}{name}'s {owner} is as usual")
    elif figure.verdict is Verdict.USUAL:
        claimed = "changed" if asked == "same" else str(asked)
        draft.say(NoticeKind.PREMISE, f"No: {name}'s {owner} is not {claimed}; it is as usual", slot=figure.observed.id)
    else:
        draft.say(NoticeKind.PREMISE, f"No: {name}'s {owner} is {_WAY[figure.verdict]}, not {_not(asked)}")
    figure_claim(scene, draft, figure)
    return there


def _not(asked: str | None) -> str:
    return {"up": "up", "down": "down", "same": "as usual"}.get(asked or "", "as usual")


def name_unclear(scene: Scene, draft: Draft, figure: Figure) -> None:
    """The answer where it cannot be told: what was seen, why not, and what would settle it."""
    comparison, name, owner = figure.measured.comparison, figure.pet.name, figure.observed.owner
    reason = comparison.reason
    if reason is Unclear.TOO_FEW_DAYS:
        missing = comparison.baseline_needed - len(comparison.baseline_days)
        when = add_days(scene.today, max(missing, 1))
        draft.say(
            NoticeKind.SHORT,
            f"Too early to know {possessive(figure.pet)} usual: {len(comparison.baseline_days)} days recorded before "
            f"this week, {comparison.baseline_needed} needed. First comparison {day(when, year_of=scene.today)}",
            slot=figure.observed.id,
        )
        return
    if reason is Unclear.NOT_HEARD:
        draft.say(
            NoticeKind.SHORT,
            f"I can't tell: {name}'s {owner} was recorded on only {len(comparison.days_used)} of "
            f"{comparison.days_expected} days. What was not heard isn't zero",
            slot=figure.observed.id,
        )
    elif reason is Unclear.NOT_COMPARABLE:
        draft.say(NoticeKind.SHORT, f"Not comparable: {comparison.detail}", slot=figure.observed.id)
    elif reason is Unclear.WHOSE_UNKNOWN:
        draft.say(NoticeKind.SHORT, f"I can't tell whose it was: {comparison.detail}", slot=figure.observed.id)
    else:
        seen = (
            "" if comparison.change is None else f", but {percent(comparison.change)} {_seen(comparison.change)} usual"
        )
        draft.say(
            NoticeKind.SHORT,
            f"Not clear{seen}: {possessive(figure.pet)} days vary too much for this window to show it",
            slot=figure.observed.id,
        )
    figure_claim(scene, draft, figure)
    if comparison.smallest_visible is not None:
        draft.say(
            NoticeKind.ABSENCE, f"This window would have shown a change of about {percent(comparison.smallest_visible)}"
        )
    _wider(scene, draft, figure)


def _seen(change: float) -> str:
    return "above" if change > 0 else "below"


def _wider(scene: Scene, draft: Draft, figure: Figure) -> None:
    """The next wider window that can tell, if one can."""
    for days in _WIDER_DAYS:
        if days <= len(figure.measured.comparison.days_used):
            continue
        window = scene.window(f"P{days}D", add_days(scene.today, 1 - days), scene.today)
        wider = compare_window(scene, figure.pet, figure.observed, window)
        if wider is not None and wider.verdict is not Verdict.CANNOT_TELL:
            draft.say(NoticeKind.ABSENCE, f"Over the last {days} days it is {verdict_words(wider)}")
            figure_claim(scene, draft, wider, rank=5)
            return


def as_usual(scene: Scene, draft: Draft, pet: Pet, window: Window, *, except_for: str, names: tuple[str, ...]) -> None:
    """What else the pet's devices say of the same days: as usual in one sentence, changes in their own.

    ``names`` are property ids in the order to tell; the one asked about is left out.
    """
    usual: list[Figure] = []
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
            _also_changed(scene, draft, figure)
    if not usual:
        return
    words = [figure.observed.words[0] if figure.observed.words else figure.observed.owner for figure in usual]
    devices = tuple(dict.fromkeys(device for figure in usual for device in figure.devices))
    draft.claim(
        "as_usual",
        EvidenceClass.MEASURED,
        f"{first_upper(joined(words))} {'is' if len(words) == 1 else 'are'} as usual",
        cite=cite_of(scene, devices),
        refs=tuple(ref for figure in usual for ref in figure.refs),
        values=tuple(value for figure in usual for value in _prefixed(figure)),
        window=window,
        about=(f"pet:{pet.id}", *(f"series:{figure.series}" for figure in usual)),
        rank=2,
    )


def _also_changed(scene: Scene, draft: Draft, figure: Figure) -> None:
    """Another series of the same days that changed too, in half a sentence."""
    draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        first_upper(also_text(figure)),
        cite=cite_of(scene, figure.devices),
        refs=figure.refs,
        values=figure.values(),
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
        rank=3,
    )


def _prefixed(figure: Figure) -> tuple[Quantity, ...]:
    return tuple(Quantity(f"{figure.series}.{q.name}", q.value, q.unit) for q in figure.values())
