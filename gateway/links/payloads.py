"""Reads what a device sent: raw bytes in, checked records and dead letters out. Pure.

`firmware_bridge.wire` checks the bytes; here stands what only the hub can object to (a topic
that names no device, a record from after its own message, an uptime of decades), and how a
record, once dated, becomes the row the store keeps. Nothing is dropped: what cannot be read
comes back as a `DeadLetter` with its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from firmware_bridge import wire
from gateway.links.dating import UPTIME_MAX_MS, Dated
from gateway.links.decode import unpack_message
from gateway.model import Frame, RawFrame, RecordRef
from gateway.stored import DatedFrame, DeadLetter

if TYPE_CHECKING:
    from gateway.links.profileset import Claim

__all__ = [
    "WRAP_MS",
    "Reading",
    "as_frame",
    "dated_frame",
    "dead_letter",
    "eaten_too_fast",
    "frame_ref",
    "heard_ms",
    "objected",
    "read_payload",
]

URGENT_KINDS = frozenset({wire.MEAL, wire.MARK_REQUEST})
"""Committed at once (CONTRACTS, Commit): what an owner waits for, what a device waits for."""
WRAP_MS = 1 << 32
"""Where an uptime of 32 bits begins again at 0: after 49.7 days."""
_RAW_LIMIT_BYTES = 262_144
"""Kept of an unreadable message: all that Wire 1 allows sixteen times over, not a full SD card."""
_FALL_MG = 25_000
_FALL_MG_PER_MS = 0.25
"""25 g or more faster than 0.25 g/s is no cat's meal: of 793 real visits the quickest large
one that nobody doubts ran at 0.22 g/s, those of an emptied bowl at up to 3.9 g/s."""
_HEAVIEST_MG = 160_000_000
"""160 kg: the heaviest dog on record weighed 155.6 kg (Zorba, 1989)."""
_MAIN = {
    wire.BEAT: ("battery", "permille"),
    wire.MEAL: ("removed", "mg"),
    wire.REFILL: ("added", "mg"),
    wire.WEIGHT: ("weight", "mg"),
    wire.TEMPERATURE: ("temperature", "mK"),
    wire.PLATEAU: ("weight", "mg"),
}
"""The main figure of a kind: its field and the unit it is stored in."""
_INDEX = {code: {field.name: at for at, field in enumerate(kind.fields)} for code, kind in wire.KINDS.items()}
_CODE = {kind.name: code for code, kind in wire.KINDS.items()}
_ROWS: dict[int, tuple[str, int | None, str | None]] = {
    code: (kind.name, _INDEX[code][_MAIN[code][0]], _MAIN[code][1]) if code in _MAIN else (kind.name, None, None)
    for code, kind in wire.KINDS.items()
}
"""What a row is called, where in a record its main figure stands, and that figure's unit."""
_JUDGED = frozenset({wire.WEIGHT, wire.MEAL})
"""The kinds that `_set_aside` may keep from counting."""


_is_device_id = lru_cache(maxsize=1024)(wire.is_device_id)


@dataclass(frozen=True, slots=True)
class Reading:
    """One message as read. ``header`` is None where nobody can say which records it held.

    ``lowest_held`` is what the last hello in it said; ``urgent`` asks for a commit at once;
    ``retained`` says that the broker had kept it: it is no live message. ``claim`` says which profile
    reads it: another maker's message, opened where what is known of its sender is at hand.
    """

    raw: RawFrame
    header: wire.Message | None
    frames: tuple[Frame, ...]
    letters: tuple[DeadLetter, ...]
    urgent: bool = False
    lowest_held: int | None = None
    retained: bool = False
    claim: Claim | None = None

    @property
    def sent_ms(self) -> int | None:
        """Uptime of the records' own boot at sending, or None."""
        return None if self.header is None else self.header.sent_uptime_ms

    @property
    def wall_ms(self) -> int | None:
        """What the device's own clock showed at sending, or None."""
        return None if self.header is None else self.header.wall_ms


def frame_ref(device: str, boot: int, seq: int) -> RecordRef:
    """The reference a record is cited by: ``event:<device>/<boot>/<seq>``."""
    return RecordRef(f"event:{device}/{boot}/{seq}")


def _field(code: int, values: tuple[int | str, ...], name: str) -> int:
    return int(values[_INDEX[code][name]])


def dead_letter(
    raw: RawFrame, reason: str, detail: str, *, boot: int | None, seq: int | None, payload: bytes
) -> DeadLetter:
    """What could not be read, with its bytes (cut at 256 KiB, which the detail then says)."""
    if len(payload) > _RAW_LIMIT_BYTES:
        detail = f"{detail}; the first {_RAW_LIMIT_BYTES} of {len(payload)} bytes are kept"
    return DeadLetter(
        transport=raw.transport,
        device=raw.device,
        boot=boot,
        seq=seq,
        received_ms=raw.received_ms,
        reason=reason,
        detail=detail,
        raw=payload[:_RAW_LIMIT_BYTES],
    )


def _objection(
    kind: int, uptime_ms: int, values: tuple[int | str, ...], *, latest_ms: int, wraps: bool = False
) -> str | None:
    """What cannot be about a record whose fields are each within bounds, or None."""
    wrapped = wraps and uptime_ms < WRAP_MS and uptime_ms - latest_ms > WRAP_MS // 2
    if uptime_ms > UPTIME_MAX_MS or (uptime_ms > latest_ms and not wrapped):
        return f"its uptime must be at most {latest_ms} ms (when it was sent), is {uptime_ms} ms"
    if kind == wire.MEAL:
        began_ms = _field(wire.MEAL, values, "began_ms")
        if wraps and began_ms < WRAP_MS:
            began_ms = uptime_ms - (uptime_ms - began_ms) % WRAP_MS
        if not began_ms <= uptime_ms <= began_ms + 2 * wire.DAY_MS:
            return f"a meal must have begun within two days before {uptime_ms} ms, began at {began_ms} ms"
    return None


def _out_of_range(raw: RawFrame, boot: int, seq: int, objection: str) -> DeadLetter:
    detail = f"record {seq} of boot {boot}: {objection}"
    return dead_letter(raw, "out_of_range", detail, boot=boot, seq=seq, payload=raw.payload)


def objected(raw: RawFrame, frame: Frame, *, sent_ms: int | None) -> DeadLetter | None:
    """The dead letter of a record that cannot be, sent at that uptime (ms) or unknown; None where it can."""
    latest_ms = UPTIME_MAX_MS if sent_ms is None else sent_ms
    objection = _objection(frame.kind, frame.uptime_ms, frame.values, latest_ms=latest_ms)
    return None if objection is None else _out_of_range(raw, frame.boot, frame.seq, objection)


def read_payload(raw: RawFrame, *, retained: bool = False, wraps: bool = False) -> Reading:
    """Read one message; never raises for its bytes.

    Where the header can be read every record of the message is either a frame or a dead
    letter with its seq, so that the mark moves over it; else there is one dead letter for the
    whole message and the mark waits.

    ``wraps`` says that the device's uptime began again at 0 after 32 bits: a record may then lie
    that far after its own message (`gateway.links.unwrapping`).
    """
    if not _is_device_id(raw.device):
        detail = f"a device id must be 1 to 32 of a-z 0-9 _ -, is {raw.device!r}"
        letter = dead_letter(raw, "bad_device_id", detail, boot=None, seq=None, payload=raw.payload)
        return Reading(raw, None, (), (letter,), retained=retained)
    try:
        message = unpack_message(raw.payload)
    except wire.WireError as problem:
        letter = dead_letter(raw, problem.reason, str(problem), boot=None, seq=None, payload=raw.payload)
        return Reading(raw, None, (), (letter,), retained=retained)
    device, boot, sent_ms = raw.device, message.boot, message.sent_uptime_ms
    latest_ms = UPTIME_MAX_MS if sent_ms is None else sent_ms
    letters = [
        dead_letter(
            raw,
            fault.reason,
            f"record {fault.seq} of boot {boot} could not be read",
            boot=boot,
            seq=fault.seq,
            payload=fault.raw,
        )
        for fault in message.faults
    ]
    frames: list[Frame] = []
    urgent, lowest_held = False, None
    for seq, kind, uptime_ms, values in message.records:
        objection = _objection(kind, uptime_ms, values, latest_ms=latest_ms, wraps=wraps)
        if objection is not None:
            letters.append(_out_of_range(raw, boot, seq, objection))
            continue
        frames.append(Frame(device, boot, seq, kind, uptime_ms, values))
        if kind in URGENT_KINDS:
            urgent = True
        elif kind == wire.HELLO:
            lowest_held = _lowest_held(seq, values)
    return Reading(raw, message, tuple(frames), tuple(letters), urgent, lowest_held, retained)


def _lowest_held(seq: int, values: tuple[int | str, ...]) -> int:
    """What a hello says is held at least: itself, or the record it was made to stand before.

    A greater number is nonsense, and would free what the device has not sent yet.
    """
    return min(_field(wire.HELLO, values, "lowest_seq"), seq + 1)


def eaten_too_fast(removed_mg: int, lasted_ms: int) -> str | None:
    """Why what left the bowl is not counted as eaten, or None where it is."""
    if removed_mg >= _FALL_MG and removed_mg > _FALL_MG_PER_MS * lasted_ms:
        return f"{round(removed_mg / 1000)} g left the bowl in {round(lasted_ms / 1000)} s; not counted as eaten"
    return None


def _set_aside(code: int, values: tuple[int | str, ...]) -> str | None:
    """Why a record is kept but never counted, or None where it is counted."""
    if code == wire.WEIGHT:
        weight_mg = _field(code, values, "weight")
        if 0 < weight_mg <= _HEAVIEST_MG:
            return None
        return f"{weight_mg / 1e6:.6g} kg is no pet's weight; not counted"
    if code != wire.MEAL:
        return None
    removed_mg, lasted_ms = _field(code, values, "removed"), _field(code, values, "lasted")
    if removed_mg < 0:
        return f"the bowl gained {round(-removed_mg / 1000)} g during a visit; not counted as eaten"
    if _field(code, values, "quality") & wire.TOO_FAST:
        return f"{round(removed_mg / 1000)} g left the bowl in {round(lasted_ms / 1000)} s; not counted as eaten"
    return None


def _extent(code: int, uptime_ms: int, values: tuple[int | str, ...]) -> tuple[int, int]:
    """Where an event begins and ends in uptime: a meal at its first bite, motion over its span."""
    if code == wire.MOTION:
        return uptime_ms - _field(code, values, "lasted"), uptime_ms
    if code == wire.MEAL:
        began_ms = _field(code, values, "began_ms")
        return began_ms, began_ms + _field(code, values, "lasted")
    return uptime_ms, uptime_ms


def dated_frame(frame: Frame, dated: Dated, *, received_ms: int) -> DatedFrame:
    """The row the store keeps of a record, from the instant of its uptime."""
    code, uptime_ms, values = frame.kind, frame.uptime_ms, frame.values
    at_ms, dating, earliest_ms, latest_ms = dated
    start_ms, end_ms = _extent(code, uptime_ms, values)
    kind, main, unit = _ROWS[code]
    amount = None if main is None else int(values[main])
    if code == wire.BEAT and amount == wire.BATTERY_UNKNOWN:
        amount, unit = None, None
    shift = start_ms - uptime_ms  # brackets are of the record; its event began this much earlier
    return DatedFrame(
        frame_ref(frame.device, frame.boot, frame.seq),
        frame.device,
        frame.boot,
        frame.seq,
        kind,
        uptime_ms,
        received_ms,
        start_ms + at_ms - uptime_ms,
        end_ms + at_ms - uptime_ms,
        dating,
        values,
        None if earliest_ms is None else earliest_ms + shift,
        None if latest_ms is None else latest_ms + shift,
        amount,
        unit,
        next((str(text) for text in values if text), None) if code == wire.FOOD_SET else None,
        _set_aside(code, values) if code in _JUDGED else None,
    )


def heard_ms(frame: DatedFrame) -> int:
    """When a stored record was made: its uptime as an instant (a meal ends before that)."""
    if frame.kind == "meal" and frame.uptime_ms is not None:
        return frame.start_ms + frame.uptime_ms - int(frame.fields[0])
    return frame.end_ms


def as_frame(row: DatedFrame) -> Frame:
    """The record behind a stored row, to be dated again. Imported rows have none."""
    assert row.boot is not None
    assert row.seq is not None
    assert row.uptime_ms is not None
    return Frame(row.device, row.boot, row.seq, _CODE[row.kind], row.uptime_ms, row.fields)
