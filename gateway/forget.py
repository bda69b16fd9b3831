"""Forgets a device, a document or a pet: what is left is what a home without it would hold.

A name and a transaction in, sentences out. Its rows go, what they had a part in is made anew
from what is left: days of other devices, derived edges; passes that read it are forgotten, and
learn runs them again as after a late record. What answers said of it stays as it was said.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.errors import ImportRefused
from gateway.learn import binding_ref, is_pass_day, refresh_facts
from gateway.links.rollups import Rollups
from gateway.measure.days import day_interval, local_day
from gateway.ontology.load import load
from gateway.stored import Doomed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.model import Household
    from gateway.store import Transaction
    from gateway.store.reads import Reader
    from gateway.stored import Reach

__all__ = ["KINDS", "can_forget", "forget", "would_forget"]

KINDS = ("device", "document", "pet")
_LISTED = 12
_ALWAYS_MS = 2**62


@dataclass(frozen=True, slots=True)
class _Plan:
    """What forgetting one source does: what goes, which days are made anew (by set of pets), the
    first local day it had a part in, and what the owner should know.
    """

    what: str
    doomed: Doomed
    days: dict[frozenset[str], set[str]] = field(default_factory=dict)
    series: tuple[str, ...] = ()
    first: str | None = None
    code: str | None = None
    notes: tuple[str, ...] = ()


def can_forget(reader: Reader, kind: str) -> tuple[tuple[str, str], ...]:
    """(id, words) of everything of a kind that can be forgotten, by id."""
    home = reader.household()
    if kind == "pet":
        return tuple((pet.id, f"{pet.name}, {pet.species}") for pet in home.pets)
    if kind == "document":
        return tuple((one.id, f"{one.title} ({one.source})") for one in reader.documents() if one.kind != "hub")
    named = {device.id: device.name for device in home.devices}
    heard = {*reader.heard_devices(), *(source.device for source in reader.sources()), *reader.unread_devices()}
    return tuple(sorted((named | dict.fromkeys(heard - named.keys(), "heard, serves no pet")).items()))


def would_forget(reader: Reader, kind: str, name: str) -> tuple[str, ...]:
    """What would go, in sentences. Changes nothing.

    Raises
    ------
    ImportRefused
        Nothing of that kind has that id.
    """
    plan = _plan(reader, kind, name)
    return (f"Forgetting {plan.what} takes:", *_counted(reader.reach(plan.doomed)), *plan.notes)


def forget(tx: Transaction, kind: str, name: str, *, now_ms: int) -> str:
    """Take a source out of everything, in the caller's transaction; returns what was done, in sentences.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    name : str
        Its id; of a pet also its name.
    now_ms : int
        What tombstones give as the date.

    Raises
    ------
    ImportRefused
        Nothing of that kind has that id.
    """
    plan = _plan(tx, kind, name)
    reach, lonely = tx.reach(plan.doomed), tx.lonely_vertices()
    tx.forget_rows(plan.doomed, what=plan.what, at_ms=now_ms)
    if plan.code is not None:
        tx.forget_product(plan.code)
    home = tx.household()
    Rollups(load()).recompute(tx, home, plan.days)
    tx.drop_empty_days(plan.doomed.days, what=plan.what, at_ms=now_ms)
    tx.drop_series(plan.series)
    _forget_passes(tx, home, plan, now_ms)
    refresh_facts(tx, load())
    tx.sweep(lonely, what=plan.what, at_ms=now_ms)
    return "\n".join((f"Forgot {plan.what}. With it went:", *_counted(reach), *plan.notes))


def _forget_passes(tx: Transaction, home: Household, plan: _Plan, now_ms: int) -> None:
    """Passes from the first day it had a part in run again, as they do after a late record."""
    firsts = [first for first in (plan.first, tx.restated_from()) if first is not None]
    if not firsts or not home.zones:
        return
    first = min(firsts)
    if any(map(is_pass_day, tx.learned_since(first))):
        tx.drop_passes(first_ms=day_interval(first, home.zones).start_ms, what=plan.what, at_ms=now_ms)
    tx.forget_learned(first)


def _counted(reach: Reach) -> tuple[str, ...]:
    days = f"  {reach.days} daily sums, made anew where another device measured too"
    answers = f"  {reach.answers} stored answers cite it: they stay as they were said, and say that it was forgotten"
    return (
        f"  {reach.events} events, {reach.texts} texts, {reach.dead_letters} messages that could not be read",
        days,
        f"  {reach.evidence} pieces of evidence, {reach.edges} links that stand on nothing else",
        answers,
        "Backups that were made before still hold it.",
    )


# --- what it reaches ------------------------------------------------------------------------------


def _plan(reader: Reader, kind: str, name: str) -> _Plan:
    plans = {"device": _device_plan, "document": _document_plan, "pet": _pet_plan}
    if kind not in plans:
        raise ImportRefused("command", f"must be one of {', '.join(KINDS)}, is {kind!r}", field="kind")
    return plans[kind](reader, name)


def _unknown(reader: Reader, kind: str, name: str) -> ImportRefused:
    known = [f"{one} ({words})" for one, words in can_forget(reader, kind)]
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    listed = ", ".join(known[:_LISTED]) + more or "there is none"
    since = reader.forgotten().get(name) if kind == "device" else None
    before = "" if since is None else ", which was forgotten before"
    return ImportRefused("command", f"must be a {kind} on file ({listed}), is {name!r}{before}", field=kind)


def _device_plan(reader: Reader, name: str) -> _Plan:
    if name not in {one for one, _ in can_forget(reader, "device")}:
        raise _unknown(reader, "device", name)
    home, ontology = reader.household(), load()
    devices = (name, *(part for part, _ in reader.parts(name)))
    kinds = {device.id: device.kind for device in home.devices}
    days: dict[frozenset[str], set[str]] = defaultdict(set)
    rows: dict[int, bool] = {}
    reached: set[str] = set()
    for binding in home.bindings:
        if binding.device not in devices:
            continue
        end_ms = _ALWAYS_MS if binding.valid_to_ms is None else binding.valid_to_ms
        for series in reader.all_series():
            of_kind = kinds[binding.device] in ontology.properties[series.property].captured_by
            if frozenset(series.pet.split("+")) == binding.pets and of_kind:
                for record, date, sealed in reader.days_within(series.id, binding.valid_from_ms, end_ms):
                    rows[record] = sealed
                    days[binding.pets].add(date)
                    reached.add(series.id)
    words = next((f"{one.name} ({name})" for one in home.devices if one.id == name), name)
    sealed_rows = tuple(sorted(record for record, sealed in rows.items() if sealed))
    notes = [
        (
            f"What {name} sends from now on is kept apart unread, as device_forgotten, until `scentwalk device bind` "
            "or a household file names it again."
        )
    ]
    if sealed_rows:
        notes.append(
            f"{len(sealed_rows)} of the daily sums are all that is left of their days; where another device measured "
            "too they cannot be told apart, and go whole."
        )
    return _Plan(
        what=f"the device {words}",
        doomed=Doomed(
            devices=devices,
            senders=reader.senders_of(devices),
            texts=tuple(
                binding_ref(one.device, pet, one.valid_from_ms).text
                for one in home.bindings
                if one.device in devices
                for pet in sorted(one.pets)
            ),
            days=tuple(sorted(rows)),
            sealed=sealed_rows,
        ),
        days=dict(days),
        series=tuple(sorted(reached)),
        first=_first_of_device(reader, home, devices, days.values()),
        notes=tuple(notes),
    )


def _first_of_device(reader: Reader, home: Household, devices: tuple[str, ...], days: Iterable[set[str]]) -> str | None:
    """The first day these devices had a part in; None where they served nobody."""
    if not home.zones or all(binding.device not in devices for binding in home.bindings):
        return None
    spans = [span for device in devices if (span := reader.span_of_device(device)) is not None]
    dates = [date for found in days for date in found] + [local_day(start_ms, home.zones) for start_ms, _ in spans]
    return min(dates, default=None)


def _document_plan(reader: Reader, name: str) -> _Plan:
    document = reader.document(name)
    if document is None or document.kind == "hub":
        raise _unknown(reader, "document", name)
    home = reader.household()
    instants = [at_ms for at_ms in reader.dated_links_of(name) if at_ms > 0]
    if document.code is not None and reader.energy_of(document.code) is not None:  # grams of a food became energy
        told = reader.frames_of_kinds(("food_set",), start_ms=-_ALWAYS_MS, end_ms=_ALWAYS_MS)
        instants += [frame.start_ms for frame in told if frame.fields[0] == document.code]
    return _Plan(
        what=f"the document {document.title} ({name})",
        doomed=Doomed(documents=(name,)),
        first=local_day(min(instants), home.zones) if instants and home.zones else None,
        code=document.code,
    )


def _pet_plan(reader: Reader, name: str) -> _Plan:
    home = reader.household()
    pet = next((one for one in home.pets if one.id == name or one.name.casefold() == name.casefold()), None)
    if pet is None:
        raise _unknown(reader, "pet", name)
    series = tuple(one.id for one in reader.all_series() if pet.id in one.pet.split("+"))
    firsts = [first for one in series if (first := reader.first_date(one)) is not None]
    notes = []
    for device in home.devices:
        served = {one.pets for one in home.bindings if one.device == device.id and pet.id in one.pets}
        others = sorted({other for pets in served for other in pets} - {pet.id})
        if others:
            notes.append(
                f"{device.id} served {pet.name} together with {', '.join(others)}: what it measured then is nobody's "
                f"own. From now on: scentwalk device bind {device.id} --pets {','.join(others)}"
            )
        elif served:
            notes.append(
                f"{device.id} stays with its events, which count for nobody. To take them too: "
                f"scentwalk forget device {device.id}"
            )
    return _Plan(
        what=f"the pet {pet.name} ({pet.id})",
        doomed=Doomed(documents=reader.notes_of(pet.id), pets=(pet.id,), series=series),
        series=series,
        first=min(firsts, default=None),
        notes=tuple(notes),
    )
