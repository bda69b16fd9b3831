"""Keeps the day rows: frames in, 15-minute sums and coverage out.

The frames are the truth. A slot of a day row is a function of the frames around it and of
the bindings, so it does not matter in which order, how late or how often they came, and
`Rollups.rebuild` gives the same rows from the frames alone. Where old frames were purged, the
day is sealed: its sealed sums stand, and only records that came later are added to them.

Coverage says when an event could have been seen; what is not covered is unknown, never zero.
A tracker covers what it was worn. A bowl covers the time between two records whose numbers
follow each other in one boot: what its ring delivered late was heard all the same, and where
a number is missing an event may be. A pet with two bowls is covered where both are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from firmware_bridge import wire
from gateway.errors import ConfigError
from gateway.links.placing import Touched
from gateway.measure.days import (
    NIGHT_END_HOUR,
    NIGHT_START_HOUR,
    SLOT_MS,
    dates_between,
    day_interval,
    local_day,
    slot_hours,
)
from gateway.measure.rollup import Sample, merge_intervals, split_over_slots
from gateway.model import Household, Interval, Series, ZonePeriod
from gateway.ontology.vocabulary import Ontology, Property
from gateway.store.transaction import Transaction
from gateway.stored import EVENT_FIELDS, DayRow, EventField

__all__ = ["BOWL_GAP_MS", "IMPORT_GAP_MS", "Rollups"]

BOWL_GAP_MS = 3_600_000
"""A bowl says something every few minutes; one that was silent for longer was not weighing."""
IMPORT_GAP_MS = 86_400_000
"""An imported history holds visits and refills, no beats: a feeder that reported within a
day is taken as having worked in between (the longest real pause of two cats is 17.8 h)."""
_COUNT = "count"
Gap = tuple[int, int]
_Heard = tuple[str, tuple[int | str, ...]]  # (device, fields) of one record


@dataclass(frozen=True, slots=True)
class _Measured:
    """A property and how a record adds to it: the sum of ``columns``, or 1 where there are none."""

    property: Property
    columns: tuple[int, ...]

    def total(self, records: Iterable[_Heard]) -> int:
        """What these records add up to."""
        if not self.columns:
            return sum(1 for _ in records)
        return sum(int(fields[at]) for _, fields in records for at in self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The properties that one wire kind of certain devices feeds; ``worn`` is the column of
    the coverage it carries itself, None where coverage comes from the sequence numbers.
    """

    kind: str
    device_kinds: tuple[str, ...]
    measured: tuple[_Measured, ...]
    worn: int | None


@dataclass(frozen=True, slots=True)
class _Part:
    """Slots ``first..last`` of one local day of one set of pets, from one source: what is
    recomputed at once. ``serving`` holds, per device, when it served exactly these pets.
    """

    source: _Source
    pets: frozenset[str]
    date: str
    day: Interval
    first: int
    last: int
    serving: Mapping[str, tuple[Interval, ...]]

    @property
    def start_ms(self) -> int:
        return self.day.start_ms + self.first * SLOT_MS

    @property
    def end_ms(self) -> int:
        return min(self.day.start_ms + (self.last + 1) * SLOT_MS, self.day.end_ms)

    @property
    def slots(self) -> range:
        return range(self.first, self.last + 1)

    def bound(self, start_ms: int, end_ms: int) -> Iterator[tuple[str, int, int]]:
        """(device, from, to) of every stretch of ``[start_ms, end_ms)`` a device served."""
        for device, stretches in self.serving.items():
            for stretch in stretches:
                low_ms, high_ms = max(start_ms, stretch.start_ms), min(end_ms, stretch.end_ms)
                if low_ms < high_ms:
                    yield device, low_ms, high_ms


@dataclass(frozen=True, slots=True)
class _Found:
    """What the frames of a part say of one property: ``n`` and ``set_aside`` of the whole day,
    ``sums`` (stored unit) and ``covered`` (ms) by slot.
    """

    n: int
    sums: Mapping[int, int]
    covered: Mapping[int, int]
    set_aside: str | None

    @property
    def is_empty(self) -> bool:
        return self.n == 0 and self.set_aside is None and not any(self.covered.values())


def _row_kind(observed: Property) -> str | None:
    """The kind of rows a property is summed from, or None."""
    return observed.event_kind if observed.wire_kind is None else wire.KINDS[observed.wire_kind].name


def _fields_of(kind: str) -> tuple[EventField, ...]:
    """The values of a kind of rows; those of Wire 1 first."""
    for declared in wire.KINDS.values():
        if declared.name == kind:
            return tuple(EventField(field.name, field.unit, field.unknown) for field in declared.fields)
    return EVENT_FIELDS[kind]


def _columns(observed: Property, kind: str) -> tuple[int, ...]:
    """Where the ontology's ``wire_field`` stands in a record: ``low + mid + high``, ``count``."""
    names = [name.strip() for name in str(observed.wire_field).split("+")]
    if names == [_COUNT]:
        return ()
    found = []
    declared = _fields_of(kind)
    for name in names:
        for at, each in enumerate(declared):
            if name in (each.name, f"{each.name}_{each.unit}") or (name == each.unit and len(declared) == 1):
                found.append(at)
    if len(found) != len(names):
        fields = ", ".join(each.name for each in declared)
        raise ConfigError(
            f"series.toml, property.{observed.id}: wire field must name fields of {kind} ({fields}), "
            f"is {observed.wire_field!r}"
        )
    return tuple(found)


def _sources(ontology: Ontology) -> tuple[_Source, ...]:
    grouped: dict[tuple[str, tuple[str, ...]], list[_Measured]] = defaultdict(list)
    for observed in ontology.properties.values():
        summed = observed.kind in ("duration", "mass", "count")  # a level or a rate adds up to nothing
        kind = _row_kind(observed)
        if kind is not None and summed:
            grouped[kind, observed.captured_by].append(_Measured(observed, _columns(observed, kind)))
    return tuple(
        _Source(
            kind=kind,
            device_kinds=device_kinds,
            measured=tuple(measured),
            worn=next((at for at, each in enumerate(_fields_of(kind)) if each.name == "worn"), None),
        )
        for (kind, device_kinds), measured in grouped.items()
    )


def _bound(home: Household, device: str, pets: frozenset[str], within: Interval) -> tuple[Interval, ...]:
    """When, inside ``within``, the device served exactly these pets."""
    found = []
    for binding in home.bindings:
        if binding.device == device and binding.pets == pets:
            start_ms = max(binding.valid_from_ms, within.start_ms)
            end_ms = within.end_ms if binding.valid_to_ms is None else min(binding.valid_to_ms, within.end_ms)
            if start_ms < end_ms:
                found.append(Interval(start_ms, end_ms))
    return merge_intervals(found)


def _within(earliest_ms: int | None, latest_ms: int | None, day: Interval) -> bool:
    if earliest_ms is None or latest_ms is None:
        return False
    return day.start_ms <= earliest_ms and latest_ms < day.end_ms


class Rollups:
    """Recomputes the slots that frames have touched.

    Parameters
    ----------
    ontology : Ontology
        Which property a wire record feeds, and from which kinds of device.
    """

    def __init__(self, ontology: Ontology) -> None:
        self._sources = _sources(ontology)
        self._ontology = ontology

    def refresh(self, tx: Transaction, home: Household, touched: Touched) -> int:
        """Bring the day rows around touched time up to date; returns how many changed.

        A device that serves no pet has no series; binding it later calls `rebuild`.
        """
        if not home.zones:
            return 0
        kinds = {device.id: device.kind for device in home.devices}
        wanted: dict[tuple[_Source, frozenset[str], str], tuple[int, int]] = {}
        for device, spans in sorted(touched.spans.items()):
            for source in self._sources:
                if kinds.get(device) not in source.device_kinds:
                    continue
                reach_ms = 0 if source.worn is not None else BOWL_GAP_MS
                reached = merge_intervals(Interval(at - reach_ms, to + reach_ms) for at, to in spans)
                for span in reached:
                    for date, lowest, highest in _slots(home, span):
                        for pets in _served(home, device, date):
                            key = (source, pets, date)
                            low, high = wanted.get(key, (lowest, highest))
                            wanted[key] = (min(low, lowest), max(high, highest))
        parts = sorted(wanted.items(), key=lambda item: (item[0][2], sorted(item[0][1]), item[0][0].kind))
        return tx.save_days(
            [
                day
                for (source, pets, date), (first, last) in parts
                for day in self._recompute(tx, home, _part(home, source, pets, date, first=first, last=last))
            ]
        )

    def rebuild(self, tx: Transaction, home: Household, devices: tuple[str, ...] | None = None) -> int:
        """Make every day row what the frames say; returns how many changed.

        Parameters
        ----------
        devices : tuple of str, optional
            Only days these devices said something about; None = all devices.
        """
        names = tuple(device.id for device in home.devices) if devices is None else devices
        span = self._span(tx, home, names)
        return 0 if span is None else self._rebuild(tx, home, dates_between(*span))

    def recompute(self, tx: Transaction, home: Household, days: Mapping[frozenset[str], Iterable[str]]) -> int:
        """Make these local days of these sets of pets what the frames say; returns how many rows changed."""
        changed = 0
        for pets, dates in sorted(days.items(), key=lambda one: sorted(one[0])):
            for date in sorted(set(dates)):
                last = (day_interval(date, home.zones).length_ms - 1) // SLOT_MS
                parts = [_part(home, source, pets, date, first=0, last=last) for source in self._sources]
                changed += tx.save_days([day for part in parts for day in self._recompute(tx, home, part)])
        return changed

    def rebuild_from(self, tx: Transaction, home: Household, *, first: str | None, most: int) -> str | None:
        """Rebuild at most so many days from the ISO date ``first`` on (None = from the beginning);
        returns the date to go on with, None at the end.
        """
        span = self._span(tx, home, tuple(device.id for device in home.devices))
        if span is None:
            return None
        dates = dates_between(max(first or span[0], span[0]), span[1])
        self._rebuild(tx, home, dates[:most])
        return dates[most] if len(dates) > most else None

    def _span(self, tx: Transaction, home: Household, devices: tuple[str, ...]) -> tuple[str, str] | None:
        """The first and last local day these devices said something about."""
        spans = [span for name in devices if (span := tx.span_of_device(name)) is not None]
        if not spans or not home.zones:
            return None
        first = local_day(min(start for start, _ in spans) - BOWL_GAP_MS, home.zones)
        return first, local_day(max(end for _, end in spans) + BOWL_GAP_MS, home.zones)

    def _rebuild(self, tx: Transaction, home: Household, dates: tuple[str, ...]) -> int:
        kept = {series.pet: frozenset(series.pet.split("+")) for series in tx.all_series()}
        everyone = {binding.pets for binding in home.bindings} | set(kept.values())
        changed = 0
        for date in dates:
            whole = day_interval(date, home.zones)
            last_slot = (whole.length_ms - 1) // SLOT_MS
            parts = [
                _part(home, source, pets, date, first=0, last=last_slot)
                for source in self._sources
                for pets in sorted(everyone, key=sorted)
            ]
            changed += tx.save_days([day for part in parts for day in self._recompute(tx, home, part)])
        return changed

    def _series(self, part: _Part, measured: _Measured) -> Series:
        """The series of a pet, or of a set of pets (``luna+max.intake``): never one pet's share."""
        owner, observed = "+".join(sorted(part.pets)), measured.property
        return Series(self._ontology.series_id(owner, observed.id), owner, observed.id, observed.unit)

    def _recompute(self, tx: Transaction, home: Household, part: _Part) -> list[DayRow]:
        """Recompute the slots of one part; returns the day rows that changed, to be saved."""
        size = -(-part.day.length_ms // SLOT_MS)
        all_series = [self._series(part, measured) for measured in part.source.measured]
        if not part.serving and tx.first_date(all_series[0].id) is None:
            return []  # these pets never had such a device
        rows = tx.days_of(tuple(series.id for series in all_series), part.date)
        if len(part.slots) < size and any(len(row.sums) != size for row in rows.values()):
            # The home's zones may have been told anew: every slot lies elsewhere.
            return self._recompute(tx, home, replace(part, first=0, last=size - 1))
        frames = _frames(tx, part)
        covered = _covered(tx, part, frames, sealed=any(row.late is not None for row in rows.values()))
        tally = _Tally(tx, part)
        changed: list[DayRow] = []
        for measured, series in zip(part.source.measured, all_series, strict=True):
            counted, runs = _counted(part.date, home.zones, night_only=measured.property.night_only)
            before = rows.get(series.id)
            found = _Found(
                n=tally.count(runs),
                sums={at: measured.total(frames.get(at, ())) if counted[at] else 0 for at in part.slots},
                covered={at: covered[at] if counted[at] else 0 for at in part.slots},
                set_aside=tally.set_aside,
            )
            if before is None:
                if not found.is_empty:
                    tx.save_series(series)
                    changed.append(_new_day(series.id, part, found, size))
                continue
            if before.late is None:
                day = _new_day(series.id, part, found, size) if len(before.sums) != size else _with_slots(before, found)
            else:
                base = tx.sealed_day(before)
                if base is None or len(base.sums) != size:
                    continue  # the zones were told anew: it stays as it was cut
                day = _with_late(base, before, found)
            if day != before:
                changed.append(day)
        return changed


class _Tally:
    """Counts what starts in a part's day, asking the database once for each set of stretches."""

    def __init__(self, tx: Transaction, part: _Part) -> None:
        self._tx = tx
        self._part = part
        self._found: dict[tuple[Gap, ...], int] = {}
        whole = (part.day.start_ms, part.day.end_ms)
        self._found[whole,], aside = self._ask((whole,))
        self.set_aside = _reasons(tx, part) if aside else None

    def count(self, runs: tuple[Gap, ...]) -> int:
        """How many records of the day count, in the stretches that count."""
        if runs not in self._found:
            self._found[runs], _ = self._ask(runs)
        return self._found[runs]

    def _ask(self, runs: tuple[Gap, ...]) -> tuple[int, int]:
        part, counting, aside = self._part, 0, 0
        for start_ms, end_ms in runs:
            for device, low_ms, high_ms in part.bound(start_ms, end_ms):
                more, more_aside = self._tx.count_frames(
                    device,
                    part.source.kind,
                    start_ms=low_ms,
                    end_ms=high_ms,
                    day_start_ms=part.day.start_ms,
                    day_end_ms=part.day.end_ms,
                )
                counting, aside = counting + more, aside + more_aside
        return counting, aside


def _new_day(series: str, part: _Part, found: _Found, size: int) -> DayRow:
    """A day row of nothing but what was found."""
    nothing = (0,) * size
    return DayRow(
        series=series,
        date=part.date,
        start_ms=part.day.start_ms,
        end_ms=part.day.end_ms,
        n=found.n,
        sums=_put(nothing, found.sums),
        covered=_put(nothing, found.covered),
        set_aside=found.set_aside,
    )


def _with_slots(day: DayRow, found: _Found) -> DayRow:
    """A day row with what was found in its place."""
    return replace(
        day,
        n=found.n,
        sums=_put(day.sums, found.sums),
        covered=_put(day.covered, found.covered),
        set_aside=found.set_aside,
    )


def _put(slots: tuple[int, ...], values: Mapping[int, int]) -> tuple[int, ...]:
    """The slots with these values in their places."""
    changed = list(slots)
    for at, value in values.items():
        changed[at] = value
    return tuple(changed)


def _with_late(base: DayRow, day: DayRow, late: _Found) -> DayRow:
    """A sealed day with what came after its sealing: ``base`` is the sealed part, ``day`` the
    row as it stands, ``late`` the late records of some slots.
    """
    length_ms = day.end_ms - day.start_ms
    covered = {
        at: min(base.covered[at] + more_ms, SLOT_MS, length_ms - at * SLOT_MS) for at, more_ms in late.covered.items()
    }
    return replace(
        day,
        n=base.n + late.n,
        sums=_put(day.sums, {at: base.sums[at] + value for at, value in late.sums.items()}),
        covered=_put(day.covered, covered),
        set_aside="; ".join(text for text in (base.set_aside, late.set_aside) if text) or None,
        late=(base.late or 0) + late.n,
    )


def _part(home: Household, source: _Source, pets: frozenset[str], date: str, *, first: int, last: int) -> _Part:
    day = day_interval(date, home.zones)
    serving = {
        device.id: bound
        for device in home.devices
        if device.kind in source.device_kinds and (bound := _bound(home, device.id, pets, day))
    }
    return _Part(source, pets, date, day, first, last, serving)


@lru_cache(maxsize=1024)
def _counted(date: str, zones: tuple[ZonePeriod, ...], *, night_only: bool) -> tuple[tuple[bool, ...], tuple[Gap, ...]]:
    """Which slots of a day count, and the stretches of time they make."""
    day = day_interval(date, zones)
    flags = tuple(
        not night_only or hour >= NIGHT_START_HOUR or hour < NIGHT_END_HOUR for hour in slot_hours(date, zones)
    )
    runs: list[Gap] = []
    for at, counts in enumerate(flags):
        if counts:
            start_ms = day.start_ms + at * SLOT_MS
            end_ms = min(start_ms + SLOT_MS, day.end_ms)
            if runs and runs[-1][1] == start_ms:
                start_ms = runs.pop()[0]
            runs.append((start_ms, end_ms))
    return flags, tuple(runs)


def _slots(home: Household, span: Interval) -> list[tuple[str, int, int]]:
    """(date, first slot, last slot) of every day that a span touches, its end included."""
    found = []
    for date in dates_between(local_day(span.start_ms, home.zones), local_day(span.end_ms, home.zones)):
        day = day_interval(date, home.zones)
        last = (day.length_ms - 1) // SLOT_MS
        low = max(0, (span.start_ms - day.start_ms) // SLOT_MS)
        high = min(last, (span.end_ms - day.start_ms) // SLOT_MS)
        if day.length_ms > 0:
            found.append((date, low, high))
    return found


def _served(home: Household, device: str, date: str) -> set[frozenset[str]]:
    """Every set of pets the device served at some time of that day."""
    day = day_interval(date, home.zones)
    return {
        binding.pets
        for binding in home.bindings
        if binding.device == device
        and binding.valid_from_ms < day.end_ms
        and (binding.valid_to_ms is None or binding.valid_to_ms > day.start_ms)
    }


def _frames(tx: Transaction, part: _Part) -> dict[int, list[_Heard]]:
    """The records that count, by the slot they start in."""
    found: dict[int, list[_Heard]] = defaultdict(list)
    for device, low_ms, high_ms in part.bound(part.start_ms, part.end_ms):
        for start_ms, fields in tx.counting_frames(
            device,
            part.source.kind,
            start_ms=low_ms,
            end_ms=high_ms,
            day_start_ms=part.day.start_ms,
            day_end_ms=part.day.end_ms,
        ):
            found[(start_ms - part.day.start_ms) // SLOT_MS].append((device, fields))
    return found


def _covered(tx: Transaction, part: _Part, frames: Mapping[int, list[_Heard]], *, sealed: bool) -> dict[int, int]:
    """Covered ms by slot: per device, then the least of the devices that served in the slot.

    Of a sealed day, only what records add that came after its sealing.
    """
    of_device: dict[str, Mapping[int, int]] = {
        device: _between_records(tx, device, part, sealed=sealed)
        if part.source.worn is None
        else _worn(frames, device, part.source.worn)
        for device in part.serving
    }
    covered = dict.fromkeys(part.slots, 0)
    if not any(any(of_slot.values()) for of_slot in of_device.values()):
        return covered
    for at in part.slots:
        start_ms = part.day.start_ms + at * SLOT_MS
        end_ms = min(start_ms + SLOT_MS, part.day.end_ms)
        of_each = [of_device[device].get(at, 0) for device, _, _ in part.bound(start_ms, end_ms)]
        covered[at] = min([end_ms - start_ms, *of_each]) if of_each else 0
    return covered


def _worn(frames: Mapping[int, list[_Heard]], device: str, column: int) -> dict[int, int]:
    """Worn ms by slot, as the records of a tracker carry it."""
    return {
        at: sum(int(fields[column]) for heard, fields in records if heard == device) for at, records in frames.items()
    }


def _between_records(tx: Transaction, device: str, part: _Part, *, sealed: bool) -> dict[int, int]:
    """Covered ms by slot, from records whose numbers follow each other. Of a sealed day only
    where one of the two came after its sealing: what lies between others is in its sums.
    """
    heard: list[list[int]] = []  # [from, to] of stretches; what follows each other makes one
    last: tuple[int | None, int | None, int, bool] | None = None
    signs = tx.signs_of_life(
        device,
        from_ms=part.start_ms,
        to_ms=part.end_ms,
        reach_ms=BOWL_GAP_MS,
        import_reach_ms=IMPORT_GAP_MS,
    )
    for boot, seq, at_ms, earliest_ms, latest_ms, is_sealed in signs:
        if earliest_ms is not None and not _within(earliest_ms, latest_ms, part.day):
            last = None
            continue
        is_new = not sealed or (not is_sealed and at_ms < part.day.end_ms)
        if last is not None and last[0] == boot and (is_new or last[3]):
            follows = boot is None or (seq is not None and last[1] is not None and seq == last[1] + 1)
            longest_ms = IMPORT_GAP_MS if boot is None else BOWL_GAP_MS
            if follows and 0 < at_ms - last[2] <= longest_ms:
                if heard and heard[-1][1] == last[2]:
                    heard[-1][1] = at_ms
                else:
                    heard.append([last[2], at_ms])
        last = (boot, seq, at_ms, is_new)
    covered: dict[int, int] = defaultdict(int)
    for whole in merge_intervals(Interval(start_ms, end_ms) for start_ms, end_ms in heard):
        spread = Sample(device, whole.start_ms, whole.end_ms, whole.length_ms)
        for slot, covered_ms in split_over_slots(spread, part.day):
            covered[slot] += covered_ms
    return covered


def _reasons(tx: Transaction, part: _Part) -> str | None:
    """What was set aside that day, in order, or None."""
    found = sorted(
        reason
        for device, low_ms, high_ms in part.bound(part.day.start_ms, part.day.end_ms)
        for reason in tx.set_aside_reasons(device, part.source.kind, start_ms=low_ms, end_ms=high_ms)
    )
    return "; ".join(text for _, text in found) or None
