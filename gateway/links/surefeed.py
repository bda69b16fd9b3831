"""Reads a SureFeed history (CSV of the surepet-telemetry-dashboard): visits become meals.

The whole file is read and checked before anything is stored; a file that is not what it
claims is refused with line, field and what was expected. Of its rows only ``feeding`` is
taken: context 1 is what left the bowl at a visit, 5 food that was added, 6 the feeder's own
(a new zero). Other categories are counted and left out; adding the synthetic water rows to
the food is the trap of this file. Storing the same file twice changes nothing.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.errors import HouseholdError, ImportRefused
from gateway.links.payloads import eaten_too_fast
from gateway.links.rollups import Rollups
from gateway.measure.days import local_day
from gateway.model import Binding, Device, Household, Pet, RecordRef, ZonePeriod, stable_id
from gateway.store.transaction import Transaction
from gateway.stored import DatedFrame

__all__ = ["SureFeed", "SureFeedStored", "read_surefeed", "store_surefeed"]

_FIELDS = (
    "recordedAt",
    "subjectId",
    "subjectName",
    "category",
    "action",
    "quantity",
    "unit",
    "occurredAt",
    "durationSeconds",
    "deviceId",
    "deviceName",
    "context",
    "sourceEndpoint",
    "attribution",
)
_LEFT_OUT = ("hydration", "ambient", "access")
"""Synthetic water in this file's family, and the cat flap: no food."""
_VISIT, _ADDED, _SYSTEM = "1", "5", "6"
_SPECIES = ("cat", "dog")
_LONGEST_S = 86_400
_MOST_G = 10_000  # no bowl of a home holds 10 kg
_ALWAYS_MS = 0
"""The feeder's pets are bound from 1970 on, so that an older export of it fits in later."""


@dataclass(frozen=True, slots=True)
class SureFeed:
    """A history as read: who, which feeders, what happened, and what was left out."""

    source: str
    zone: str
    pets: tuple[Pet, ...]
    devices: tuple[Device, ...]
    bindings: tuple[Binding, ...]
    frames: tuple[DatedFrame, ...]
    left_out: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SureFeedStored:
    """What storing did: new and known events, days that changed, and the local days covered."""

    new: int
    known: int
    days_changed: int
    first_date: str | None
    last_date: str | None


class _Row:
    """One line with its place, for errors that name it."""

    def __init__(self, source: str, line: int, values: dict[str, str]) -> None:
        self.source = source
        self.line = line
        self._values = values

    def refuse(self, field: str, expected: str) -> ImportRefused:
        found = self._values[field]
        return ImportRefused(self.source, f"must be {expected}, is {found!r}", line=self.line, field=field)

    def text(self, field: str) -> str:
        return self._values[field].strip()

    def number(self, field: str, *, most: int, unit: str) -> float:
        expected = f"a number of {unit}, 0 to {most}"
        try:
            value = float(self.text(field))
        except ValueError:
            raise self.refuse(field, expected) from None
        if not (math.isfinite(value) and 0 <= value <= most):
            raise self.refuse(field, expected)
        return value

    def instant_ms(self, field: str) -> int:
        expected = "an instant with its offset, like 2026-06-19T01:51:21+00:00"
        try:
            at = datetime.fromisoformat(self.text(field))
        except ValueError:
            raise self.refuse(field, expected) from None
        if at.tzinfo is None or not 2000 <= at.year <= 2100:
            raise self.refuse(field, expected)
        return round(at.timestamp() * 1000)

    def one_of(self, field: str, allowed: tuple[str, ...]) -> str:
        value = self.text(field)
        if value not in allowed:
            raise self.refuse(field, f"one of {', '.join(allowed)}")
        return value


def _rows(data: bytes, source: str) -> list[_Row]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ImportRefused(source, f"must be UTF-8 text, byte {problem.start} is not") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[_Row] = []
    try:
        header = tuple(next(reader, []))
        if header != _FIELDS:
            raise ImportRefused(
                source, f"the columns must be {', '.join(_FIELDS)}, are {', '.join(header)!r:.200}", line=1
            )
        for values in reader:
            if len(values) != len(_FIELDS):
                raise ImportRefused(
                    source, f"a line must have {len(_FIELDS)} values, has {len(values)}", line=reader.line_num
                )
            rows.append(_Row(source, reader.line_num, dict(zip(_FIELDS, values, strict=True))))
    except csv.Error as problem:
        raise ImportRefused(source, f"must be CSV: {problem}", line=reader.line_num) from None
    return rows


def _pet(row: _Row) -> Pet:
    species, dash, _ = row.text("subjectId").partition("-")
    if not dash or species not in _SPECIES:
        raise row.refuse("subjectId", "cat-<name> or dog-<name>")
    name = row.text("subjectName")
    if not 1 <= len(name) <= 80:
        raise row.refuse("subjectName", "a name of 1 to 80 characters")
    return Pet(id=stable_id(name), name=name, species=species)


def _device(row: _Row) -> Device:
    try:
        return Device(id=row.text("deviceId"), kind="food_bowl", name=row.text("deviceName") or row.text("deviceId"))
    except ValueError:
        raise row.refuse("deviceId", "1 to 64 of a-z 0-9 _ -") from None


def _frame(row: _Row, device: str) -> DatedFrame:
    context = row.one_of("context", (_VISIT, _ADDED, _SYSTEM))
    row.one_of("unit", ("g",))
    amount_mg = round(1000 * row.number("quantity", most=_MOST_G, unit="g"))
    lasted_ms = round(1000 * row.number("durationSeconds", most=_LONGEST_S, unit="seconds"))
    start_ms = row.instant_ms("occurredAt")
    kind, set_aside = "tare", None
    fields: tuple[int, ...] = ()
    if context == _VISIT:
        kind, fields = "meal", (0, lasted_ms, amount_mg, 0)
        set_aside = eaten_too_fast(amount_mg, lasted_ms)
    elif context == _ADDED:
        kind, fields = "refill", (amount_mg,)
    return DatedFrame(
        ref=RecordRef(f"event:{device}/surefeed/{row.text('occurredAt')}.{context}"),
        device=device,
        boot=None,
        seq=None,
        kind=kind,
        uptime_ms=None,
        received_ms=row.instant_ms("recordedAt"),
        start_ms=start_ms,
        end_ms=start_ms + lasted_ms,
        dating="import",
        fields=fields,
        amount=amount_mg,
        unit="mg",
        set_aside=set_aside,
    )


def read_surefeed(data: bytes, *, source: str, zone: str) -> SureFeed:
    """Read and check a whole file.

    Parameters
    ----------
    data : bytes
        The file's content.
    source : str
        Its name, for errors.
    zone : str
        The IANA zone of the home it was recorded in.

    Raises
    ------
    ImportRefused
        Naming line, field and what was expected; nothing of the file is to be stored.
    HouseholdError
        ``zone`` names no IANA zone.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise HouseholdError(f"the zone must be an IANA name like America/Los_Angeles, is {zone!r}") from None
    pets: dict[str, Pet] = {}
    devices: dict[str, Device] = {}
    served: dict[str, set[str]] = {}
    frames: dict[RecordRef, DatedFrame] = {}
    left_out: Counter[str] = Counter()
    for row in _rows(data, source):
        category = row.one_of("category", ("feeding", *_LEFT_OUT))
        if category != "feeding":
            left_out[category] += 1
            continue
        pet, device = _pet(row), _device(row)
        if pets.setdefault(pet.id, pet) != pet:
            raise row.refuse(
                "subjectName", f"another name: {pet.id} is also {pets[pet.id].species} {pets[pet.id].name!r}"
            )
        devices.setdefault(device.id, device)
        served.setdefault(device.id, set()).add(pet.id)
        frame = _frame(row, device.id)
        if frames.setdefault(frame.ref, frame) != frame:
            raise row.refuse("occurredAt", "unique for a feeder and context; an earlier line says otherwise")
    if not frames:
        raise ImportRefused(source, "must hold at least one feeding row, holds none")
    return SureFeed(
        source=source,
        zone=zone,
        pets=tuple(pets[name] for name in sorted(pets)),
        devices=tuple(devices[name] for name in sorted(devices)),
        bindings=tuple(Binding(name, frozenset(served[name]), _ALWAYS_MS) for name in sorted(served)),
        frames=tuple(sorted(frames.values(), key=lambda frame: (frame.start_ms, frame.ref))),
        left_out=tuple(sorted(left_out.items())),
    )


def store_surefeed(tx: Transaction, history: SureFeed, *, rollups: Rollups) -> SureFeedStored:
    """Store a history in the caller's transaction; what is known already stays as it is.

    Raises
    ------
    HouseholdError
        The home already has another zone: its days would be cut elsewhere.
    """
    home = tx.household()
    if home.zones and home.zones[-1].zone != history.zone:
        raise HouseholdError(f"the zone must be this home's, {home.zones[-1].zone}, is {history.zone}")
    known_pets = {pet.id for pet in home.pets}
    known_devices = {device.id for device in home.devices}
    tx.save_household(
        Household(
            zones=() if home.zones else (ZonePeriod(history.zone, _ALWAYS_MS),),
            pets=tuple(pet for pet in history.pets if pet.id not in known_pets),
            devices=tuple(device for device in history.devices if device.id not in known_devices),
            bindings=tuple(binding for binding in history.bindings if binding.device not in known_devices),
        ),
        valid_from_ms=_ALWAYS_MS,
    )
    new = tx.add_frames(history.frames)
    home = tx.household()
    changed = rollups.rebuild(tx, home, tuple(device.id for device in history.devices)) if new else 0
    if new:
        tx.bump("records_stored", len(new))
        for category, count in history.left_out:
            tx.bump(f"import_left_out_{category}", count)
    return SureFeedStored(
        new=len(new),
        known=len(history.frames) - len(new),
        days_changed=changed,
        first_date=local_day(history.frames[0].start_ms, home.zones),
        last_date=local_day(history.frames[-1].start_ms, home.zones),
    )
