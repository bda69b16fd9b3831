"""Grams of two foods are not comparable, energy is: the premise "less since the new food".

Says what each food's days held, what its label gives per gram, and what a change of water in
the food means where drinking is not recorded. Labels are quoted with their record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.figures import cite_of, likely_text, total_of
from gateway.ask.said import Said, say, verbatim
from gateway.ask.wording import amount, day, day_range, fixed, usual_of
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import add_days, local_day
from gateway.model import Verdict

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.figures import Figure, Total
    from gateway.ask.scene import Scene
    from gateway.stored import Feeding

__all__ = ["same_energy"]

_LOOK_BACK_DAYS = 28
_WET_BELOW_KCAL_PER_KG, _DRY_FROM_KCAL_PER_KG = 1500.0, 2800.0
"""Canned food holds some 80 in 100 water and 700 to 1,300 kcal/kg, dry food below 14 in 100
and 3,000 or more (FEDIAF Nutritional Guidelines 2024, definitions of moist and dry)."""
_CLEARLY = 0.10


def same_energy(scene: Scene, draft: Draft, figure: Figure, asked: str | None) -> bool:
    """Answer the premise where the grams changed as asked and the energy did not.

    Returns whether it did; nothing is said where it did not.
    """
    if figure.measured.unit != "kcal" or figure.verdict is not Verdict.USUAL or asked not in ("up", "down"):
        return False
    periods = scene.reader.feedings(scene.home, figure.pet.id)
    if len(periods) < 2 or periods[-1].start_ms > scene.now_ms:
        return False
    before, since = periods[-2], periods[-1]
    totals = (_grams(scene, figure, before, since.start_ms), _grams(scene, figure, since, None))
    if totals[0] is None or totals[1] is None:
        return False
    change = (totals[1].aggregate.per_day or 0.0) / (totals[0].aggregate.per_day or 1.0) - 1.0
    if abs(change) < _CLEARLY or (change < 0) is not (asked == "down"):
        return False
    premise = (
        "No, not less: fewer grams of a richer food, but about the same energy"
        if asked == "down"
        else "No, not more: more grams of a leaner food, but about the same energy"
    )
    draft.say(NoticeKind.PREMISE, premise, slot="energy")
    draft.paragraph()
    changed = day(local_day(since.start_ms, scene.zones), year_of=scene.today)
    openings = (say("Before {day}", day=changed), say("Since then"))
    for total, period, opening in zip(totals, (before, since), openings, strict=True):
        assert total is not None
        _period(scene, draft, total, period, opening)
    _as_energy(scene, draft, figure)
    _water(scene, draft, figure, before, since)
    draft.paragraph()
    draft.say(
        NoticeKind.CAUTION,
        say(
            "Grams of two foods can't be compared; energy can. Treats aren't counted. Weigh {pet} in two weeks; if "
            "{pet.his} weight is falling, call your vet",
            pet=figure.pet,
        ),
    )
    return True


def _grams(scene: Scene, figure: Figure, period: Feeding, end_ms: int | None) -> Total | None:
    """The full days of one food, at most four weeks of them, without the day of the change."""
    first = add_days(local_day(period.start_ms, scene.zones), 1)
    last = scene.today if end_ms is None else add_days(local_day(end_ms, scene.zones), -1)
    if first > last:
        return None
    total = total_of(
        scene, figure.pet, figure.observed, scene.window("FED", max(first, add_days(last, 1 - _LOOK_BACK_DAYS)), last)
    )
    return None if total is None or not total.aggregate.per_day else total


def _period(scene: Scene, draft: Draft, total: Total, period: Feeding, opening: Said) -> None:
    grams = total.aggregate.per_day or 0.0
    draft.claim(
        "per_day",
        EvidenceClass.MEASURED,
        say(
            "{opening}: {amount} of {food} a day",
            opening=opening,
            amount=amount(grams, "mg"),
            food=verbatim(period.name),
        ),
        cite=cite_of(scene, total.devices),
        refs=(*(row.ref for row in total.rows if row.date in total.aggregate.full_days), period.ref),
        values=(
            Quantity("per_day", round(grams, 3), "mg/day"),
            Quantity("days", len(total.aggregate.full_days), "days"),
        ),
        window=total.window,
        about=(f"pet:{total.pet.id}", f"food:{period.food}"),
    )
    label = scene.reader.label_of(period.code)
    if label is not None and period.kcal_per_kg is not None:
        draft.claim(
            "energy",
            EvidenceClass.REFERENCE,
            say("{food}: {energy} kcal a gram", food=verbatim(period.name), energy=_energy(period.kcal_per_kg)),
            cite="product data",
            refs=(label,),
            values=(Quantity("energy", period.kcal_per_kg, "kcal/kg"),),
            about=(f"food:{period.food}",),
        )


def _energy(kcal_per_kg: float) -> Said:
    return fixed(kcal_per_kg / 1000, 2)


def _as_energy(scene: Scene, draft: Draft, figure: Figure) -> None:
    found = figure.measured.comparison
    dates = day_range(figure.window.first_date, figure.window.last_date, year_of=scene.today)
    draft.claim(
        "comparison",
        EvidenceClass.MEASURED,
        say(
            "As energy {now} a day against {pet.his} usual {usual}{likely}, {dates}",
            now=amount(found.now or 0.0, "kcal"),
            pet=figure.pet,
            usual=usual_of(found.usual or 0.0, found.now or 0.0, "kcal"),
            likely=likely_text(found.interval),
            dates=dates,
        ),
        cite=cite_of(scene, figure.devices, figure),
        refs=figure.refs,
        values=figure.values(),
        window=figure.window,
        about=(f"pet:{figure.pet.id}", f"series:{figure.series}"),
    )


def _water(scene: Scene, draft: Draft, figure: Figure, before: Feeding, since: Feeding) -> None:
    """From wet to dry: what the guide says of drinking, and who would record it."""
    if before.kcal_per_kg is None or since.kcal_per_kg is None:
        return
    if not (before.kcal_per_kg < _WET_BELOW_KCAL_PER_KG and since.kcal_per_kg >= _DRY_FROM_KCAL_PER_KG):
        return
    observed = scene.ontology.properties["water"]
    if scene.devices_of(figure.pet.id, observed):
        return
    kind = scene.ontology.device_kinds[observed.captured_by[0]]
    draft.say(
        NoticeKind.ABSENCE,
        say(
            "What did change is the water in the food. {pet}'s drinking isn't recorded; {device.a} would show it",
            pet=figure.pet,
            device=kind,
        ),
        slot="water",
        device=kind.id,
    )
