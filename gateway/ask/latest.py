"""When last: the latest row of a pet or a device that shows what was asked about, with its record.

Of what is stored as rows (visits to a bowl or a litter box, refills, portions) the row itself is
named; of what is stored as sums (scratching, rest) the quarter of an hour. Whose row it was is what
its device served then, not what it serves now. Nothing recorded is never "it did not happen".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.figures import cite_of
from gateway.ask.said import Said, elsewhere, say, verbatim
from gateway.ask.settle import log_day, look_at
from gateway.ask.wording import amount, clock_time, day
from gateway.dialogue import EvidenceClass, NoticeKind, Quantity
from gateway.measure.days import SLOT_MS, add_days, local_day

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Pet
    from gateway.ontology.vocabulary import Property
    from gateway.stored import DatedFrame

__all__ = ["last_event", "row_words", "say_latest"]

_DAY_MS = 86_400_000
_REACHES_MS = (7 * _DAY_MS, 400 * _DAY_MS)
"""How far back a row is looked for: a week holds nearly every last one, 400 days are what is kept."""
_REACH_DAYS = 400
_ROWS = {
    "intake": ("meal", "visit to the bowl"),
    "meals": ("meal", "visit to the bowl"),
    "meal_time": ("meal", "visit to the bowl"),
    "eat_rate": ("meal", "visit to the bowl"),
    "water": ("meal", "visit to the water bowl"),
    "refill": ("refill", "refill"),
    "litter": ("litter", "visit to the litter box"),
    "portions": ("dispensed", "feeding"),
}
"""Of a property: the kind of its rows, and what one of them is."""
_NOT_USED = 0


def row_words(observed: Property) -> str:
    """What one row of a property is: "visit to the litter box"."""
    return _ROWS[observed.id][1]


def last_event(scene: Scene, draft: Draft, observed: Property, *, pet: Pet | None, device: str | None) -> None:
    """Answer "when last?" for a pet or a named device.

    Parameters
    ----------
    observed : Property
        What was asked about; of one that is kept as rows the last row is told, else the last quarter
        of an hour that held any.
    pet, device
        Whose, and at which; None for any.
    """
    if observed.id not in _ROWS:
        if pet is not None:
            _last_slot(scene, draft, observed, pet)
        return
    last = _latest(scene, observed, pet=pet, device=device)
    if last is None:
        _none(scene, draft, observed, pet, say("No {row} is recorded", row=row_words(observed)))
        return
    opening = say("The last {row} was on {when}", row=row_words(observed), when=_when(scene, last.start_ms))
    _row_claim(scene, draft, observed, last, opening)
    if pet is not None and len(scene.home.bindings_at(last.device, last.start_ms)) > 1:
        kind = scene.ontology.device_kinds[scene.home.device(last.device).kind]
        draft.say(NoticeKind.CAUTION, say("That {device} is shared, so whose visit it was is not known", device=kind))
    if observed.id == "litter":
        draft.say(NoticeKind.CAUTION, "A visit is recorded, not what was left there")


def _when(scene: Scene, at_ms: int) -> Said:
    date = day(local_day(at_ms, scene.zones), year_of=scene.today)
    return say("{day}, {clock}", day=date, clock=clock_time(scene.local(at_ms)))


def _none(scene: Scene, draft: Draft, observed: Property, pet: Pet | None, opening: str) -> None:
    """Nothing is recorded: which device would have known, or that it is no proof."""
    kind = scene.ontology.device_kinds[observed.captured_by[0]]
    draft.say(NoticeKind.SHORT, opening, slot=observed.id, device=kind.id)
    if pet is not None and not scene.devices_of(pet.id, observed):
        would = say("{device.a!u} would record it", device=kind)
        draft.say(NoticeKind.ABSENCE, would, slot=observed.id, device=kind.id)
    else:
        draft.say(NoticeKind.ABSENCE, "That doesn't prove there was none", slot=observed.id)
        able = [device.id for device in scene.home.devices if device.kind in observed.captured_by]
        if any(scene.reader.last_frame(device, before_ms=scene.now_ms) is not None for device in able):
            log_day(draft, observed.id)  # it is heard: what it did not see somebody may have seen
        else:
            look_at(scene, draft, kind.id)


def _latest(scene: Scene, observed: Property, *, pet: Pet | None, device: str | None) -> DatedFrame | None:
    """The latest row of a property at a named device, or at any that then served the pet."""
    kind = _ROWS[observed.id][0]
    if pet is None or device is not None:
        able = [
            found.id
            for found in scene.home.devices
            if found.kind in observed.captured_by and (device is None or found.id == device)
        ]
        frames = [scene.reader.last_frame(one, before_ms=scene.now_ms, kind=kind) for one in able]
        return max((frame for frame in frames if frame is not None), key=lambda f: (f.start_ms, f.ref), default=None)
    for reach_ms in _REACHES_MS:
        events = scene.reader.events(
            scene.home, (kind,), start_ms=scene.now_ms - reach_ms, end_ms=scene.now_ms, pet=pet.id
        )
        for event in reversed(events):
            if event.device is not None and scene.home.device(event.device).kind in observed.captured_by:
                return scene.reader.frame(event.ref)
    return None


def say_latest(scene: Scene, draft: Draft, observed: Property, *, pet: Pet | None, device: str | None) -> None:
    """The latest such row as a claim, where there is one."""
    last = _latest(scene, observed, pet=pet, device=device)
    if last is None:
        return
    opening = say("Last {row} {when}", row=row_words(observed), when=_when(scene, last.start_ms))
    _row_claim(scene, draft, observed, last, opening)


def _row_claim(scene: Scene, draft: Draft, observed: Property, last: DatedFrame, opening: str) -> None:
    """A row's amount behind an opening, with its record."""
    kind = _ROWS[observed.id][0]
    figure = say(", {figure}", figure=amount(last.amount, last.unit or "mg")) if last.amount else ""
    unused = ", not used" if kind == "litter" and last.fields[1] == _NOT_USED else ""
    aside = verbatim("") if last.set_aside is None else _reason(last.set_aside)
    draft.claim(
        f"last_{kind}",
        EvidenceClass.MEASURED,
        say("{opening}{figure}{unused}{aside}", opening=opening, figure=figure, unused=unused, aside=aside),
        cite=cite_of(scene, (scene.home.device(last.device),)),
        refs=(last.ref,),
        values=() if last.amount is None else (Quantity("amount", last.amount, last.unit or "mg"),),
        about=(f"device:{last.device}",),
    )


def _reason(stored: str) -> Said:
    """Why a row does not count: as it was stored in English, else that its record says so."""
    return say(" ({reason})", reason=elsewhere(stored, say("not counted; its record says why")))


def _last_slot(scene: Scene, draft: Draft, observed: Property, pet: Pet) -> None:
    """The latest quarter of an hour in which a series held anything."""
    series = scene.ontology.series_id(pet.id, observed.id)
    rows = scene.reader.days(series, add_days(scene.today, -_REACH_DAYS), scene.today)
    for row in reversed(rows):
        held = [n for n, total in enumerate(row.sums) if total and row.start_ms + n * SLOT_MS < scene.now_ms]
        if not held:
            continue
        from_ms = row.start_ms + held[-1] * SLOT_MS
        until_ms = min(from_ms + SLOT_MS, scene.now_ms)
        when = say("{begin} to {end}", begin=_when(scene, from_ms), end=clock_time(scene.local(until_ms)))
        draft.claim(
            "last_slot",
            EvidenceClass.MEASURED,
            say(
                "{series.is!u} last recorded {when}: {figure}",
                series=observed,
                when=when,
                figure=amount(row.sums[held[-1]], observed.unit),
            ),
            cite=cite_of(scene, scene.devices_of(pet.id, observed)),
            refs=(row.ref,),
            values=(
                Quantity("amount", row.sums[held[-1]], observed.unit),
                Quantity("from", from_ms, "ms"),
                Quantity("to", until_ms, "ms"),
            ),
            about=(f"pet:{pet.id}", f"series:{series}"),
        )
        return
    _none(scene, draft, observed, pet, say("{series!u}: none recorded of {pet}", series=observed, pet=pet))
