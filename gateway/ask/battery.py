"""What a device's battery stands at, as answers and pages say it: records in, one reading out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.measure.battery import BatteryReading, believed_level

if TYPE_CHECKING:
    from gateway.model import RecordRef
    from gateway.store.reads import Reader

__all__ = ["BatteryNow", "battery_at"]

_REACH_MS = 14 * 86_400_000
_FULL_PERMILLE = 1_000


@dataclass(frozen=True, slots=True)
class BatteryNow:
    """The last reading: instant, its record, and the charge (permille), None where it says 0 and
    nothing led there: then nobody knows.
    """

    at_ms: int
    ref: RecordRef
    permille: int | None


def battery_at(reader: Reader, device: str, *, at_ms: int) -> BatteryNow | None:
    """What the device last told of its battery by an instant; None where it told nothing of it."""
    beat = reader.last_frame(device, before_ms=at_ms + 1, kind="beat")
    level = None if beat is None else beat.fields[0]
    if beat is None or not isinstance(level, int) or level > _FULL_PERMILLE:  # 65535 = not known
        return None
    if level > 0:
        return BatteryNow(beat.start_ms, beat.ref, level)
    told = reader.battery_levels(device, until_ms=at_ms, reach_ms=_REACH_MS)
    readings = tuple(BatteryReading(when, level, charging) for when, level, charging, _ in told)
    return BatteryNow(beat.start_ms, beat.ref, believed_level(readings))
