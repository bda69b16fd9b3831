"""The household file: who lives here, which devices serve them, what they eat.

TOML in, one `Household` and the food periods an owner states out. Everything is checked
before anything is stored; a refusal names the table, the field, what must hold and what was
found. Unknown keys are refused, so that a misspelt one is never silently lost.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.errors import ImportRefused
from gateway.measure.days import day_interval
from gateway.model import (
    Binding,
    Device,
    Food,
    Household,
    Person,
    Pet,
    PetStatus,
    Place,
    RecordRef,
    ZonePeriod,
    stable_id,
)
from gateway.ontology.load import load
from gateway.stored import TextRecord

__all__ = ["HouseholdFile", "read_household"]

_TOP = frozenset({"zone", "country", "pet", "device", "place", "person", "food", "medicine", "series"})
_KEYS: dict[str, frozenset[str]] = {
    "pet": frozenset({"id", "name", "species", "breed", "born", "sex", "neutered", "status", "aliases"}),
    "device": frozenset({"id", "name", "kind", "pets", "since", "aliases"}),
    "place": frozenset({"id", "name", "kind", "aliases"}),
    "person": frozenset({"id", "name", "role", "phone"}),
    "food": frozenset({"id", "name", "code", "aliases", "from", "to", "pets"}),
    "medicine": frozenset({"id", "name", "code", "aliases"}),
}


@dataclass(frozen=True, slots=True)
class HouseholdFile:
    """What the file says: the household, and food periods as the owner states them."""

    household: Household
    stated: tuple[TextRecord, ...]


def _shown(value: object) -> str:
    """A value for a message: short, whatever a file may hold."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list of other things"
    if isinstance(value, int) and value.bit_length() > 64:  # TOML has no such numbers, Python's reader does
        return f"an integer of {value.bit_length()} bits"
    return repr(value)[:80]


@dataclass(frozen=True, slots=True)
class _Row:
    """One table of the file, with its name for messages: ``pet 2 (max)``."""

    source: str
    where: str
    values: Mapping[str, Any]

    def refuse(self, field: str, problem: str) -> ImportRefused:
        return ImportRefused(self.source, f"{problem}", field=f"{self.where}.{field}")

    def text(self, field: str, *, needed: bool = False) -> str | None:
        value = self.values.get(field)
        if value is None and not needed:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.refuse(field, f"must be text, is {_shown(value)}")
        return value.strip()

    def must(self, field: str) -> str:
        value = self.text(field, needed=True)
        assert value is not None
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.values.get(field, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.refuse(field, f"must be a list of texts, is {_shown(value)}")
        return tuple(value)

    def day(self, field: str) -> str | None:
        value = self.values.get(field)
        if value is None:
            return None
        if isinstance(value, datetime) or not isinstance(value, date):
            raise self.refuse(field, f"must be a date such as 2026-07-05, is {_shown(value)}")
        return value.isoformat()

    def named(self, name: str) -> str:
        """The id given, or one made from the name."""
        given = self.text("id")
        return stable_id(name) if given is None else given


def read_household(text: str, *, source: str) -> HouseholdFile:
    """Read a household TOML text.

    Raises
    ------
    ImportRefused
        Not TOML, a key nobody knows, a missing field, a device kind or zone that does not
        exist, or a name of a pet that is not in the file.
    """
    try:
        told = tomllib.loads(text)
    except ValueError as problem:  # also a number of thousands of digits, which is no TOMLDecodeError
        raise ImportRefused(source, f"must be TOML, but {problem}") from None
    except RecursionError:
        raise ImportRefused(source, "must be tables of plain values, is nested deeply") from None
    if unknown := sorted(set(told) - _TOP):
        raise ImportRefused(source, f"must be one of {', '.join(sorted(_TOP))}", field=unknown[0])
    zone = _zone(told, source)
    zones = (ZonePeriod(zone, 0),)
    rows = {name: tuple(_rows(told, name, source)) for name in _KEYS}
    pets = tuple(_pet(row) for row in rows["pet"])
    known = {pet.id for pet in pets}
    devices, bindings = _devices(rows["device"], known, zones)
    try:
        household = Household(
            zones=zones,
            pets=_unique(pets, rows["pet"]),
            devices=_unique(devices, rows["device"]),
            bindings=bindings,
            places=tuple(
                Place(row.named(name := row.must("name")), name, row.text("kind") or "place", row.texts("aliases"))
                for row in rows["place"]
            ),
            people=tuple(
                Person(row.named(name := row.must("name")), name, row.text("role") or "person", row.text("phone"))
                for row in rows["person"]
            ),
            foods=tuple(_food(row) for row in rows["food"]),
            medicines=tuple(_food(row) for row in rows["medicine"]),
            country=_Row(source, "file", told).text("country"),
        )
    except ValueError as problem:
        raise ImportRefused(source, str(problem)) from None
    stated = [record for row in rows["food"] for record in _stated(row, known, zones)]
    return HouseholdFile(household, tuple(stated))


def _zone(told: Mapping[str, Any], source: str) -> str:
    zone = _Row(source, "file", told).must("zone")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise ImportRefused(source, f"must be an IANA zone such as Europe/Berlin, is {zone!r}", field="zone") from None
    return zone


def _rows(told: Mapping[str, Any], name: str, source: str) -> Iterable[_Row]:
    tables = told.get(name, [])
    if not isinstance(tables, list):
        raise ImportRefused(source, f"must be written as [[{name}]]", field=name)
    for number, values in enumerate(tables, start=1):
        if not isinstance(values, dict):
            raise ImportRefused(source, f"must be a table, is {_shown(values)}", field=f"{name} {number}")
        label = values.get("id") or values.get("name") or ""
        row = _Row(source, f"{name} {number}" + (f" ({label})" if label else ""), values)
        if unknown := sorted(set(values) - _KEYS[name]):
            raise row.refuse(unknown[0], f"must be one of {', '.join(sorted(_KEYS[name]))}")
        yield row


def _unique(things: tuple[Any, ...], rows: tuple[_Row, ...]) -> tuple[Any, ...]:
    seen: set[str] = set()
    for thing, row in zip(things, rows, strict=True):
        if thing.id in seen:
            raise row.refuse("id", f"must be unique, {thing.id!r} stands twice")
        seen.add(thing.id)
    return things


def _pet(row: _Row) -> Pet:
    name = row.must("name")
    neutered = row.values.get("neutered")
    if neutered is not None and not isinstance(neutered, bool):
        raise row.refuse("neutered", f"must be true or false, is {_shown(neutered)}")
    status = row.text("status") or "home"
    if status not in set(PetStatus):
        raise row.refuse("status", f"must be one of {', '.join(PetStatus)}, is {status!r}")
    try:
        return Pet(
            id=row.named(name),
            name=name,
            species=row.must("species").lower(),
            breed=row.text("breed"),
            born=row.day("born"),
            sex=row.text("sex"),
            neutered=neutered,
            status=PetStatus(status),
            aliases=row.texts("aliases"),
        )
    except ValueError as problem:
        raise row.refuse("id", str(problem)) from None


def _devices(
    rows: tuple[_Row, ...], known: set[str], zones: tuple[ZonePeriod, ...]
) -> tuple[tuple[Device, ...], tuple[Binding, ...]]:
    kinds = load().device_kinds
    devices, bindings = [], []
    for row in rows:
        kind = row.must("kind")
        if kind not in kinds:
            raise row.refuse("kind", f"must be one of {', '.join(kinds)}, is {kind!r}")
        device_id = row.must("id")
        try:
            devices.append(Device(device_id, kind, row.text("name") or device_id, row.texts("aliases")))
        except ValueError as problem:
            raise row.refuse("id", str(problem)) from None
        pets = row.texts("pets")
        if strangers := sorted(set(pets) - known):
            raise row.refuse("pets", f"must name pets of this file, names {strangers[0]!r}")
        since = row.day("since")
        if pets:
            start_ms = 0 if since is None else day_interval(since, zones).start_ms
            bindings.append(Binding(device_id, frozenset(pets), start_ms))
    worn = {device.id: device.kind for device in devices if kinds[device.kind].wearable}
    return tuple(devices), tuple(_handed_over(binding, bindings, worn) for binding in bindings)


def _handed_over(binding: Binding, bindings: list[Binding], worn: Mapping[str, str]) -> Binding:
    """A wearable's binding ends where another of its kind takes over the same pet."""
    kind = worn.get(binding.device)
    later = [
        other.valid_from_ms
        for other in bindings
        if kind is not None
        and worn.get(other.device) == kind
        and other.pets == binding.pets
        and other.valid_from_ms > binding.valid_from_ms
    ]
    return replace(binding, valid_to_ms=min(later)) if later else binding


def _food(row: _Row) -> Food:
    name = row.must("name")
    return Food(row.named(name), name, row.texts("aliases"), row.text("code"))


def _stated(row: _Row, known: set[str], zones: tuple[ZonePeriod, ...]) -> Iterable[TextRecord]:
    """A food's period as the owner states it, one record a pet; nothing where no pet is named."""
    name = row.must("name")
    first, last = row.day("from"), row.day("to")
    pets = row.texts("pets")
    if strangers := sorted(set(pets) - known):
        raise row.refuse("pets", f"must name pets of this file, names {strangers[0]!r}")
    if first is not None and last is not None and last < first:
        raise row.refuse("to", f"must not come before from ({first}), is {last}")
    if first is None and last is None:
        return
    for pet in pets:
        period = f"from {first}" if last is None else f"until {last}" if first is None else f"{first} to {last}"
        yield TextRecord(
            ref=RecordRef(f"log:food-{row.named(name)}-{pet}@{first or ''}..{last or ''}"),
            kind="log",
            title=name,
            text=f"{name}, {period}, as entered by the owner",
            pet=pet,
            at_ms=None if first is None else day_interval(first, zones).start_ms,
            until_ms=None if last is None else day_interval(last, zones).start_ms,
            object="food_change",
        )
