"""Puts records in time and stores them: readings in, new and moved rows out.

What a batch teaches about a boot's clock is taken in first, then its records are dated, then
rows that were dated with less knowledge are moved: an offset that turned out late, a device
clock that was set, a bracket that got narrower.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from firmware_bridge import wire
from gateway.links.dating import CLOCK_KNOWN_MS, DRIFT_PER_MS, BootClock, Dated, Heard, is_plausible_wall
from gateway.links.payloads import Reading, as_frame, dated_frame, dead_letter, frame_ref, heard_ms
from gateway.links.unwrapping import carried_on, may_have_wrapped
from gateway.store.transaction import Transaction
from gateway.stored import BootRow, DatedFrame, DeadLetter

__all__ = ["Placed", "Touched", "move_received", "place"]

_NOTICEABLE_MS = 1_000
"""A better offset moves stored rows only where they are off by more: radio jitter is not news."""


@dataclass(slots=True)
class Touched:
    """Per device, the spans of time whose rows changed, ``(from_ms, to_ms)``."""

    spans: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, frame: DatedFrame) -> None:
        """Everything this row may weigh on."""
        self.spans[frame.device].append((frame.start_ms, max(frame.end_ms, heard_ms(frame))))


@dataclass(frozen=True, slots=True)
class Placed:
    """What placing did: the rows that are new, how many old ones moved, the time they touch, and the
    records that are none: unreadable, or under a number that another one has.
    """

    new: tuple[DatedFrame, ...]
    redated: int
    touched: Touched
    letters: tuple[DeadLetter, ...] = ()
    unreadable: tuple[DeadLetter, ...] = ()
    heard: int = 0
    """Records that were read, new or not."""


_AHEAD_MS = 86_400_000
_UNHEARD = BootClock()


def _date(clock: BootClock, uptime_ms: int, *, received_ms: int, wall_offset_ms: int | None = None) -> Dated | None:
    """The instant of a record, or None: no clock known, or one that puts it days after its arrival."""
    dated = clock.date(uptime_ms, wall_offset_ms=wall_offset_ms)
    if dated is not None and received_ms >= CLOCK_KNOWN_MS and dated.at_ms > received_ms + _AHEAD_MS:
        return None
    return dated


def _wall_offset(header: wire.Message, *, received_ms: int) -> int | None:
    wall_ms, sent_ms = header.wall_ms, header.sent_uptime_ms
    if wall_ms is None or sent_ms is None or not is_plausible_wall(wall_ms, now_ms=received_ms):
        return None
    return int(wall_ms - sent_ms)


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The clocks of a device's boots, the rows that what was learned moves, and whether it
    may narrow the bracket of another boot.
    """

    of_boot: dict[int, BootClock]
    moved: tuple[DatedFrame, ...]
    narrowing: bool

    def of(self, boot: int) -> BootClock:
        return self.of_boot.get(boot, _UNHEARD)


def _carried_on(tx: Transaction, device: str, readings: list[Reading], clocks: dict[int, BootClock]) -> list[Reading]:
    """The messages, those of a boot whose uptime began again carried on."""
    found = []
    for reading in readings:
        header = reading.header
        clock = _UNHEARD if header is None else clocks.get(header.boot, _UNHEARD)
        if header is None or not may_have_wrapped(reading, clock):
            found.append(reading)
        else:
            found.append(carried_on(reading, clock, partial(tx.uptime_up_to, device, header.boot)))
    return found


def _learn(tx: Transaction, device: str, readings: list[Reading], clocks: dict[int, BootClock]) -> _Clocks:
    """Take in what a batch says about the clocks of one device's boots, of which ``clocks`` is known."""
    heard: dict[int, list[Heard]] = defaultdict(list)
    for reading in readings:
        header = reading.header
        if header is not None and header.sent_uptime_ms is not None and not reading.retained:
            heard[header.boot].append(Heard(header.sent_uptime_ms, reading.raw.received_ms, header.wall_ms))
    moved: list[DatedFrame] = []
    narrowing = False
    for boot, messages in sorted(heard.items()):
        before = clocks.get(boot, _UNHEARD)
        after = before.learn(messages)
        if after == before:
            # What was heard while the hub's own clock stood days behind could not be dated by it.
            narrowing = narrowing or tx.has_bracketed(device, boot)
            continue
        clocks[boot] = after
        tx.save_boot(BootRow(device, boot, after.anchors, after.wall))
        set_by_ms = before.set_by_ms(after)
        tightened = after.wall is None and _tightened(before, after)
        if set_by_ms:
            moved += (_shifted(row, set_by_ms) for row in tx.frames_of_boot(device, boot, datings=("wall",)))
        elif tightened:
            moved += _redated(tx.frames_of_boot(device, boot, datings=("offset",)), after)
        narrowing = narrowing or not before.known or tightened or set_by_ms != 0 or tx.has_bracketed(device, boot)
    return _Clocks(clocks, tuple(moved), narrowing)


def _clocks(tx: Transaction, device: str, *, only: tuple[int, ...] | None = None) -> dict[int, BootClock]:
    return {row.boot: BootClock(row.anchors, row.wall) for row in tx.boots(device, only=only)}


def _tightened(before: BootClock, after: BootClock) -> bool:
    """Whether rows dated by the earlier bounds are now known to be noticeably late."""
    held = set(before.anchors)
    for told_ms, bound_ms in after.anchors:
        if (told_ms, bound_ms) not in held:  # what is new is little, what was held is much
            for uptime_ms, offset_ms in before.anchors:
                now_ms = bound_ms + abs(uptime_ms - told_ms) // DRIFT_PER_MS
                if offset_ms - now_ms > _NOTICEABLE_MS:
                    return after.known
    return False


def _shifted(row: DatedFrame, by_ms: int) -> DatedFrame:
    return replace(row, start_ms=row.start_ms + by_ms, end_ms=row.end_ms + by_ms, dating="corrected")


def _again(row: DatedFrame, dated: Dated) -> DatedFrame:
    fresh = dated_frame(as_frame(row), dated, received_ms=row.received_ms)
    return replace(fresh, set_aside=row.set_aside)


def _redated(rows: tuple[DatedFrame, ...], clock: BootClock) -> list[DatedFrame]:
    moved = []
    for row in rows:
        assert row.uptime_ms is not None
        dated = _date(clock, row.uptime_ms, received_ms=row.received_ms)
        if dated is not None and abs(heard_ms(row) - dated.at_ms) > _NOTICEABLE_MS:
            moved.append(_again(row, dated))
    return moved


def _bracketed(tx: Transaction, device: str, clocks: _Clocks, *, now_ms: int) -> list[DatedFrame]:
    """Rows of boots nobody heard live, each with the narrowest bracket that is now known.

    ``now_ms`` is when this batch arrived: a row that its boot's clock puts after its own arrival
    came while the hub's clock was behind, and is dated as soon as that clock has caught up.

    The boot began after the last thing known of an earlier one, and its last record was made
    before the next known boot began (else before it arrived here); inside the boot records
    keep their distances. A restart usually follows at once, so the late end is taken.
    """
    boots: dict[int, list[DatedFrame]] = defaultdict(list)
    for row in tx.bracketed_frames(device):
        assert row.boot is not None
        boots[row.boot].append(row)
    moved = []
    for boot, rows in sorted(boots.items()):
        clock = clocks.of(boot)
        last_ms = max(as_frame(row).uptime_ms for row in rows)
        starts = [
            began
            for later, known in clocks.of_boot.items()
            if later > boot and (began := known.started_ms()) is not None
        ]
        bounds = [at_ms for at_ms in (*starts, *(row.received_ms for row in rows)) if at_ms >= CLOCK_KNOWN_MS]
        latest_ms = min(bounds, default=None)
        before_ms = tx.newest_before_boot(device, boot)
        for row in rows:
            uptime_ms = as_frame(row).uptime_ms
            dated = _date(clock, uptime_ms, received_ms=max(row.received_ms, now_ms))
            if dated is None and latest_ms is None:  # came while the hub itself did not know the time
                dated = Dated(row.received_ms, "bracket")
            elif dated is None and latest_ms is not None:
                end_ms = latest_ms - (last_ms - uptime_ms)
                start_ms = None if before_ms is None else min(before_ms + uptime_ms, end_ms)
                dated = Dated(end_ms, "bracket", start_ms, end_ms)
            assert dated is not None
            fresh = _again(row, dated)
            if fresh != row:
                moved.append(fresh)
    return moved


def _dated(readings: list[Reading], clocks: _Clocks) -> Iterator[DatedFrame]:
    """The rows of one device's records, dated by what is known now."""
    for reading in readings:
        header, at_ms = reading.header, reading.raw.received_ms
        assert header is not None
        clock, told_ms = clocks.of(header.boot), _wall_offset(header, received_ms=at_ms)
        for frame in reading.frames:
            dated = _date(clock, frame.uptime_ms, received_ms=at_ms, wall_offset_ms=told_ms)
            if dated is None:  # narrowed afterwards, once its neighbours are known
                dated = Dated(at_ms, "bracket", None, at_ms if at_ms >= CLOCK_KNOWN_MS else None)
            yield dated_frame(frame, dated, received_ms=at_ms)


def move_received(tx: Transaction, *, by_ms: int, since_record: int, from_ms: int, to_ms: int) -> Placed:
    """Move what the hub's own clock dated wrong: nothing new, only moved rows.

    Parameters
    ----------
    by_ms : int
        By how much the clock was set.
    since_record : int
        Rows written after this one were received by the wrong clock.
    from_ms, to_ms : int
        When they were received, by the clock as it was before: so were the bounds of boots.
    """
    touched, moved = Touched(), 0
    received = tx.frames_after(since_record)
    tx.set_received([replace(row, received_ms=row.received_ms + by_ms) for row in received])
    for device in sorted({row.device for row in received}):
        clocks = {}
        for row in tx.boots(device):
            before = BootClock(row.anchors, row.wall)
            after = clocks[row.boot] = before.moved(by_ms, from_ms=from_ms, to_ms=to_ms)
            if after != before:
                tx.save_boot(BootRow(device, row.boot, after.anchors, after.wall))
                again = _redated(tx.frames_of_boot(device, row.boot, datings=("offset",)), after)
                _move(tx, again, touched)
                moved += len(again)
        narrowed = _bracketed(tx, device, _Clocks(clocks, (), narrowing=True), now_ms=to_ms + by_ms)
        _move(tx, narrowed, touched)
        moved += len(narrowed)
    return Placed((), moved, touched)


def place(tx: Transaction, readings: tuple[Reading, ...]) -> Placed:
    """Date and store every record of a batch; rows stored before stay as they are.

    A retained message is no live one: it may be weeks old, and teaches nothing about clocks.
    """
    touched = Touched()
    new: list[DatedFrame] = []
    letters: list[DeadLetter] = []
    redated = heard = 0
    by_device: dict[str, list[Reading]] = defaultdict(list)
    unreadable: list[DeadLetter] = []
    for reading in readings:
        if reading.header is None:
            unreadable += reading.letters
        else:
            by_device[reading.raw.device].append(reading)
    for device, raw in sorted(by_device.items()):
        spoken = {reading.header.boot for reading in raw if reading.header is not None}
        known_clocks = _clocks(tx, device, only=tuple(sorted(spoken)))  # a device may have had a thousand boots
        told = _carried_on(tx, device, raw, known_clocks)
        unreadable += (letter for reading in told for letter in reading.letters)
        own = [reading for reading in told if reading.frames]
        heard += sum(len(reading.frames) for reading in own)
        if not own:
            continue
        clocks = _learn(tx, device, own, known_clocks)
        _move(tx, clocks.moved, touched)
        dated = list(_dated(own, clocks))
        stored = tx.add_frames(dated)
        known = {row.ref for row in stored}
        new += stored
        if len(stored) < len(dated):
            letters += _taken(tx, own)
        for row in stored:
            touched.add(row)
        redated += len(clocks.moved)
        unheard = any(row.dating == "bracket" and not clocks.of(row.boot or 0).known for row in stored)
        if unheard or clocks.narrowing:
            clocks = replace(clocks, of_boot=_clocks(tx, device))
            narrowed = _bracketed(tx, device, clocks, now_ms=max(reading.raw.received_ms for reading in own))
            _move(tx, narrowed, touched)
            redated += sum(row.ref not in known for row in narrowed)
    return Placed(tuple(new), redated, touched, tuple(letters), tuple(unreadable), heard)


def _taken(tx: Transaction, readings: list[Reading]) -> Iterator[DeadLetter]:
    """Records whose number another record has: of a device that was reset and counts from 1 again,
    or of two devices under one name. A hello may be made anew under its number.
    """
    refs = (frame_ref(frame.device, frame.boot, frame.seq).text for reading in readings for frame in reading.frames)
    stored = tx.frame_contents(tuple(dict.fromkeys(refs)))
    for reading in readings:
        for frame in reading.frames:
            held = stored.get(frame_ref(frame.device, frame.boot, frame.seq).text)
            kind = wire.KINDS[frame.kind].name
            if held is None or "hello" in (held[0], kind) or held == (kind, frame.uptime_ms, frame.values):
                continue
            yield dead_letter(
                reading.raw,
                "number_taken",
                f"record {frame.seq} of boot {frame.boot} must be the one that is stored, is another: the device "
                "counts from the beginning again, or two devices use this name",
                boot=frame.boot,
                seq=frame.seq,
                payload=wire.pack_record(frame.kind, frame.uptime_ms, frame.values),
            )


def _move(tx: Transaction, rows: Iterable[DatedFrame], touched: Touched) -> None:
    """Write the rows' new times; both the old and the new place are touched."""
    moved = tuple(rows)
    for row in moved:
        before = tx.frame(row.ref)
        if before is not None:
            touched.add(before)
        touched.add(row)
    tx.redate_frames(moved)
