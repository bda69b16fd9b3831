"""Carries an uptime on that began again at 0 within its boot: a counter of 32 bits, after 49.7 days.

Wire 1 asks a device to do this itself (`firmware_bridge.steady` does). One that does not would have
every later record dated 49.7 days too early. Within a boot, later numbers were made later; so an
uptime that falls by more than half of a counter's range while the numbers rise began again. What is
stored is the uptime carried on, and a message that comes again is carried on to the same.

Not seen: a device that was silent for more than 24.8 days before or while it began again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from firmware_bridge import wire
from gateway.links.dating import BootClock
from gateway.links.payloads import WRAP_MS, Reading, objected, read_payload
from gateway.model import Frame

__all__ = ["carried_on", "may_have_wrapped"]

_HALF_MS = WRAP_MS // 2
_DAY_MS = 86_400_000


def may_have_wrapped(reading: Reading, clock: BootClock) -> bool:
    """Whether this message's uptimes lie so far behind what its boot told before that they may have begun again."""
    if not clock.anchors or clock.anchors[-1][0] < _HALF_MS or reading.header is None:
        return False
    if reading.sent_ms is not None:
        return reading.sent_ms < clock.anchors[-1][0] - _HALF_MS
    return any(frame.uptime_ms < clock.anchors[-1][0] - _HALF_MS for frame in reading.frames)


def _least(uptime_ms: int, *, from_ms: int) -> int:
    """The uptime with the fewest turns of the counter that lies at ``from_ms`` or after."""
    return uptime_ms + max(0, -(-(from_ms - uptime_ms) // WRAP_MS)) * WRAP_MS


def _moved(frame: Frame, uptime_ms: int) -> Frame:
    """The record at this uptime; a meal's beginning as long before it as it says, by the same counter."""
    values = frame.values
    if frame.kind == wire.MEAL:
        began_ms = uptime_ms - (frame.uptime_ms - int(values[0])) % WRAP_MS
        values = (began_ms, *values[1:]) if began_ms >= 0 else values
    return replace(frame, uptime_ms=uptime_ms, values=values)


def _runs_ahead(sent_ms: int, reading: Reading, clock: BootClock) -> bool:
    """Whether a message sent then would have arrived long before: it bounded the whole boot wrongly."""
    offset_ms = clock.offset_at(clock.anchors[-1][0])
    return offset_ms is not None and sent_ms + offset_ms > reading.raw.received_ms + _DAY_MS


def carried_on(reading: Reading, clock: BootClock, before: Callable[[int], int | None]) -> Reading:
    """The message with its uptimes carried on, where `may_have_wrapped`; as it is, where that cannot be.

    Parameters
    ----------
    clock : BootClock
        What was known of the boot before.
    before : callable
        The stored uptime (ms) of the boot's record with that number, else of the nearest lower
        number; None where nothing is stored.
    """
    # A record from before the turn lies after its message's own uptime.
    told = read_payload(reading.raw, retained=reading.retained, wraps=True) if reading.letters else reading
    header = told.header
    assert header is not None
    frames: list[Frame] = []
    last_ms: int | None = None
    for frame in sorted(told.frames, key=lambda one: one.seq):
        known_ms = before(frame.seq) if last_ms is None else last_ms
        if known_ms is None:
            known_ms = clock.anchors[-1][0] if told.sent_ms is not None else 0
        last_ms = _least(frame.uptime_ms, from_ms=known_ms - _HALF_MS)
        frames.append(_moved(frame, last_ms))
    sent_ms = header.sent_uptime_ms
    if sent_ms is not None and last_ms is not None:
        # The earliest that can be: too early bounds the boot's clock loosely, too late would bound it wrongly.
        sent_ms = _least(sent_ms, from_ms=last_ms)
        if _runs_ahead(sent_ms, reading, clock):
            return reading
    letters = [*told.letters, *(letter for frame in frames if (letter := objected(told.raw, frame, sent_ms=sent_ms)))]
    objected_to = {letter.seq for letter in letters}
    return replace(
        told,
        frames=tuple(frame for frame in frames if frame.seq not in objected_to),
        letters=tuple(letters),
        header=header._replace(sent_uptime_ms=sent_ms),
    )
