"""Whose a row is: the device behind a sender, and the pet at a shared device.

A sender is known by what does not change: a serial number, a key, and while it lasts a radio
address. One address more is a new device only if nothing proves otherwise, and where another
one fell silent just then the owner is asked once whether it was replaced. At a shared device a
pet is known by its tag, its weight, its name or the wearable nearest to it; what fits several
pets is of that set of pets, and moves none of their own series.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

from gateway.errors import PayloadError
from gateway.links.ble_identity import resolves
from gateway.links.codecs import field_at, plain_text
from gateway.links.profile import Identity, Profile, Value
from gateway.links.profiled import Item, source_id
from gateway.links.quantities import number_of, stored
from gateway.measure.rollup import mass_mg
from gateway.model import Device, Household, stable_id
from gateway.store.transaction import Transaction
from gateway.stored import SourceRow

__all__ = ["Identities", "nearest", "of_weight"]

ASK_AFTER_MS = 900_000
"""A quarter of an hour of silence: what a wearable that only walked off seldom lasts."""
_FOLLOWED_MS = 3_600_000
"""An address that changes is followed by the next at once; an hour later it is somebody else's."""
_ALWAYS_MS = 0
_WEIGHED_MS = 120 * 86_400_000
"""A pet's last weight says who it is for four months; a kitten's own visits renew it."""
_TOLERANCE = 0.05
_TOLERANCE_MG = 150_000
"""A litter box weighs a cat that will not stand still to 150 g or 5 %."""
_NEARER_DB = 6
"""Half the distance in the open; less apart, two wearables are equally near."""
_MOST_STRANGERS = 256
"""Senders that are nobody's, remembered at once: a street has some dozens, a flood of forged names has no end."""
_STRANGER_MS = 86_400_000
"""Where there is no room, one that was silent for a day makes some."""
_MOST_TAGS = 32
_LOGGED = re.compile(r"(\d{1,3}(?:[.,]\d{1,3})?)\s*(kg|lb|oz|g)\b", re.IGNORECASE)
_ADDRESS = re.compile(r"[0-9a-f]{12}\Z")


def of_weight(weight_mg: int, weights: Mapping[str, int | None]) -> frozenset[str]:
    """The pets a weighing can be of: those whose last weight it fits, and those never weighed.

    Empty where it fits nobody.
    """
    return frozenset(
        pet
        for pet, last_mg in weights.items()
        if last_mg is None or abs(weight_mg - last_mg) <= max(_TOLERANCE_MG, _TOLERANCE * last_mg)
    )


def nearest(signals: Mapping[str, int]) -> frozenset[str]:
    """Of wearables by signal (dBm) the nearest, with those within 6 dB of it."""
    best = max(signals.values(), default=0)
    return frozenset(name for name, signal in signals.items() if best - signal < _NEARER_DB)


class Identities:
    """Decides within one transaction; `save` writes what was learned of the senders.

    Parameters
    ----------
    tx : Transaction
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.home: Household = tx.household()
        self._sources: dict[str, SourceRow] = {}
        self._changed: set[str] = set()
        self._strangers: int | None = None

    # -- senders ---------------------------------------------------------------------------------

    def admits(self, profile: Profile, source: str, *, at_ms: int) -> bool:
        """Whether a sender is known, of the household, or one of the strangers there is room for."""
        if source in self._sources or self._tx.source(source) is not None or self._is_ours(profile, source):
            return True
        if self._strangers is None:
            self._strangers = self._tx.count_strangers()
        if self._strangers >= _MOST_STRANGERS:
            self._strangers -= self._tx.forget_strangers(before_ms=at_ms - _STRANGER_MS)
        return self._strangers < _MOST_STRANGERS

    def _is_ours(self, profile: Profile, source: str) -> bool:
        proven = self._proven(profile, source)
        return any(device.id == proven for device in self.home.devices)

    def heard(self, profile: Profile, source: str, *, at_ms: int) -> SourceRow:
        """The sender, known from now on.

        Raises
        ------
        PayloadError
            ``id_taken``: it calls itself what a device calls itself that speaks Wire 1.
        """
        row = self._sources.get(source) or self._tx.source(source)
        if row is None:
            if self._tx.marks(source):
                raise PayloadError(
                    "id_taken", f"{source} must be a name of its own, is that of a device of another kind"
                )
            if self._strangers is not None and not self._is_ours(profile, source):
                self._strangers += 1
            row = SourceRow(source, profile.id, profile.device_kind, self._proven(profile, source), at_ms, at_ms)
        else:
            row = replace(row, last_ms=max(row.last_ms, at_ms), first_ms=min(row.first_ms, at_ms))
        if profile.radio:
            row = self._asked(profile, row, at_ms)
        self._sources[source] = row
        self._changed.add(source)
        return row

    def save(self) -> None:
        """Write what was learned of the senders."""
        for name in sorted(self._changed):
            self._tx.save_source(self._sources[name])
        self._changed.clear()

    def _proven(self, profile: Profile, source: str) -> str:
        """The device an address proves to be by its key, else the sender's own name."""
        if profile.radio and _ADDRESS.match(source):
            address = ":".join(source[at : at + 2] for at in range(0, 12, 2)).upper()
            for device, irk, _ in self._tx.radio_keys():
                if irk is not None and resolves(address, irk):
                    return device
        return source

    def _asked(self, profile: Profile, row: SourceRow, at_ms: int) -> SourceRow:
        """The row with the one question it raises, or without the one that answered itself.

        A sender that is nobody's yet may be the new address of one that fell silent before it
        was first heard. The same device is asked about once: a further address that comes after
        the last candidate fell silent is taken for that candidate's.
        """
        if row.answered_ms is not None or row.device != row.id or self._serves(row.id, at_ms):
            return replace(row, replaces=None) if row.replaces and row.answered_ms is None else row
        if row.replaces is not None:
            old = self._last_heard(row.replaces)
            return replace(row, replaces=None) if old is not None and old > row.first_ms else row
        for other in self._others(profile, row):
            followed = 0 < row.first_ms - other.last_ms <= _FOLLOWED_MS
            if other.replaces is not None and other.answered_ms is None and followed:
                return replace(row, device=other.device)
            silent = other.last_ms < row.first_ms and at_ms - other.last_ms >= ASK_AFTER_MS
            if silent and self._serves(other.device, at_ms) and not self._is_asked_about(other.device):
                return replace(row, replaces=other.device)
        return row

    def _others(self, profile: Profile, row: SourceRow) -> list[SourceRow]:
        """Other senders of the same model, those with an open question first, then the last heard."""
        stored_rows = {one.id: one for one in self._tx.sources()} | self._sources
        others = [one for one in stored_rows.values() if one.profile == profile.id and one.id != row.id]
        return sorted(others, key=lambda one: (one.replaces is None, -one.last_ms, one.id))

    def _is_asked_about(self, device: str) -> bool:
        stored_rows = {one.id: one for one in self._tx.sources()} | self._sources
        return any(one.replaces == device and one.answered_ms is None for one in stored_rows.values())

    def _last_heard(self, device: str) -> int | None:
        stored_rows = {one.id: one for one in self._tx.sources()} | self._sources
        return max((one.last_ms for one in stored_rows.values() if one.device == device), default=None)

    def _serves(self, device: str, at_ms: int) -> frozenset[str]:
        return self.home.bindings_at(device, at_ms)

    # -- pets at a shared device ------------------------------------------------------------------

    def device_of(self, profile: Profile, item: Item, source: SourceRow, *, at_ms: int) -> str:
        """The device whose row this is: the sender's own, or its part for one pet or fewer pets."""
        rule = profile.identity
        found = None if rule is None else field_at(item.fields, rule.path)
        if rule is None or found is None:
            return source.device
        match rule.by:
            case "tag":
                return self._tagged(source, plain_text(found) or "")
            case "name":
                pets = self._named(plain_text(found) or "")
            case "nearness":
                pets = self._near(found, at_ms)
            case _:
                pets = self._weighed(rule, found, source, at_ms)
        served = self._serves(source.device, at_ms)
        if not pets or pets == served or (served and not pets <= served):
            return source.device
        return self._part_of(source, pets)

    def _tagged(self, source: SourceRow, tag: str) -> str:
        if not tag:
            return source.device
        shown = "".join(letter for letter in tag[:60] if letter.isprintable())
        mark = f"tag:{tag[:60]}"
        for device, known in self._tx.parts(source.device):
            if known == mark:
                return device
        pets = next((found for one in self._tx.parts_marked(mark) if (found := self._now_serves(one))), frozenset())
        if len(self._tx.parts(source.device)) >= _MOST_TAGS:
            return self._new_part(source, "further tags", "further", "further tags", ())
        ending = re.sub(r"[^a-z0-9]+", "", tag.lower())[-6:] or "x"
        return self._new_part(source, mark, f"{ending}-{sha256(mark.encode()).hexdigest()[:4]}", f"tag {shown}", pets)

    def _now_serves(self, device: str) -> frozenset[str]:
        return self.home.bindings_at(device, 2**61)

    def _named(self, name: str) -> frozenset[str]:
        wanted = stable_id(name)
        return frozenset(
            pet.id for pet in self.home.pets if name and wanted in {stable_id(one) for one in (pet.name, *pet.aliases)}
        )

    def _near(self, found: Any, at_ms: int) -> frozenset[str]:
        """The pets that wear the nearest wearables of a map from address to signal."""
        signals = {}
        for name, signal in found.items() if isinstance(found, dict) else ():
            known = self._sources.get(source_id(name)) or self._tx.source(source_id(name))
            if known is not None and isinstance(signal, int) and not isinstance(signal, bool):
                signals[known.device] = signal
        return frozenset(pet for device in nearest(signals) for pet in self._serves(device, at_ms))

    def _weighed(self, rule: Identity, found: Any, source: SourceRow, at_ms: int) -> frozenset[str]:
        served = self._serves(source.device, at_ms)
        if len(served) < 2:
            return served
        try:
            weight_mg = stored(number_of(found, rule.path), _mass(rule.unit), "mg", rule.path)
        except PayloadError:
            return served
        return of_weight(weight_mg, {pet: self._last_weight(pet, at_ms) for pet in served}) if weight_mg > 0 else served

    def _last_weight(self, pet: str, at_ms: int) -> int | None:
        """What a pet weighed last, by a device that knew it or as people wrote it down; mg."""
        from_ms = at_ms - _WEIGHED_MS
        found = [
            (row.start_ms, row.amount)
            for row in self._tx.frames_of_kinds(("weight",), start_ms=from_ms, end_ms=at_ms)
            if row.set_aside is None and row.amount and self._serves(row.device, row.start_ms) == {pet}
        ]
        for logged_ms, text, _ in self._tx.logged(pet, "weight", from_ms=from_ms, until_ms=at_ms):
            read = _LOGGED.search(text)
            mg = None if read is None else mass_mg(float(read[1].replace(",", ".")), read[2].lower())
            if mg is not None:
                found.append((logged_ms, mg))
        return max(found, default=(0, None))[1]

    def _part_of(self, source: SourceRow, pets: frozenset[str]) -> str:
        mark = f"pets:{'+'.join(sorted(pets))}"
        for device, known in self._tx.parts(source.device):
            if known == mark:
                return device
        names = " or ".join(pet.name for pet in self.home.pets if pet.id in pets)
        return self._new_part(source, mark, "-".join(sorted(pets)), names, pets)

    def _new_part(self, source: SourceRow, mark: str, ending: str, words: str, pets: Iterable[str]) -> str:
        """Enter a part as a device of its own, of the same kind; it serves these pets from ever on."""
        whole = next((one for one in self.home.devices if one.id == source.device), None)
        if whole is None:
            whole = Device(source.device, source.kind, source.device)
        part = f"{source.device[:40]}-{ending}"
        known = next((one for one in self.home.devices if one.id == part), None)
        if len(part) > 64 or (known is not None and known.kind != whole.kind):
            part = f"{source.device[:40]}-{sha256(mark.encode()).hexdigest()[:8]}"
        elif known is not None:  # the household has its copy, the list of parts has none: a file that was saved
            self._tx.save_part(part, source.device, mark)
            return part
        entered = Household(zones=(), devices=(whole, Device(part, whole.kind, f"{whole.name} ({words})")))
        self._tx.save_household(entered, valid_from_ms=_ALWAYS_MS)
        self._tx.save_part(part, source.device, mark)
        if pets:
            self._tx.bind(part, frozenset(pets), valid_from_ms=_ALWAYS_MS)
        self.home = self._tx.household()
        return part


def _mass(unit: str) -> Value:
    return Value(((1, "weight"),), unit, Decimal(1))
