"""Stores what other people's devices said: claimed messages in, rows and what they came from out.

In the transaction of the batch: each message is opened by its profile, what was heard before is
recognised (the best signal is kept), the rest becomes rows with their bytes beside them. What
cannot be read is a dead letter and costs its neighbours nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.errors import PayloadError
from gateway.links.codecs import field_at
from gateway.links.hubclock import ClockSet
from gateway.links.identity import Identities
from gateway.links.payloads import Reading, dead_letter
from gateway.links.placing import Touched
from gateway.links.profile import Profile
from gateway.links.profiled import Item, Message, Opened, ReplyMessage, derive, filled, open_message
from gateway.links.profileset import Claim
from gateway.links.quantities import holds
from gateway.links.rollups import IMPORT_GAP_MS, Rollups
from gateway.model import RawFrame, RecordRef
from gateway.store.transaction import Transaction
from gateway.stored import DatedFrame, DeadLetter, HeardRow, SourceRow

__all__ = ["DEVICE_FORGOTTEN", "HeardOutcome", "Listener", "move_heard", "reply_of", "store_heard", "touch"]

State = dict[str, Any]
DEVICE_FORGOTTEN = "device_forgotten"
"""Why a dead letter is one: the owner had its device forgotten."""
_PACKET_WITHIN_MS = 4_000
_TOPIC_LONGEST = 1_000
_NO_TOPIC = re.compile(r"[+#\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
"""A broker may end the connection of whoever publishes to a topic with one of these (MQTT 5.0, 1.5.4)."""


@dataclass(slots=True)
class HeardOutcome:
    """What storing did: new rows, counters, what is to be answered, the touched time."""

    new: list[DatedFrame] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    replies: list[ReplyMessage] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    touched: Touched = field(default_factory=Touched)


def store_heard(tx: Transaction, readings: Iterable[Reading]) -> HeardOutcome:
    """Store every claimed reading of a batch, in the caller's transaction."""
    listener = Listener(tx)
    for reading in readings:
        if reading.claim is not None:
            raw = reading.raw
            message = Message(
                raw.transport, raw.device, raw.received_ms, raw.received_ms, raw.payload, retained=reading.retained
            )
            listener.hear(reading.claim, message)
    return listener.finish()


def move_heard(tx: Transaction, *, was_set: ClockSet, since_record: int, rollups: Rollups) -> int:
    """Move what a wrong clock of the hub dated by its arrival, and restate its days; returns how many
    rows. The names of messages and rows stay: they hold the arrival as it seemed.
    """
    touched, moved = Touched(), 0
    for row in tx.heard_between(was_set.from_ms, was_set.to_ms, since_record=since_record):
        tx.set_heard(replace(row, received_ms=row.received_ms + was_set.by_ms))
        for frame in tx.frames_from(row.id):
            by_ms = was_set.by_ms if frame.dating == "received" else 0
            fresh = replace(
                frame,
                received_ms=frame.received_ms + was_set.by_ms,
                start_ms=frame.start_ms + by_ms,
                end_ms=frame.end_ms + by_ms,
            )
            touch(tx, touched, frame)
            tx.rewrite_frames((fresh,))
            touch(tx, touched, fresh)
            moved += 1
    rollups.refresh(tx, tx.household(), touched)
    if moved:
        tx.bump("records_redated", moved)
    return moved


class Listener:
    """Takes messages in one after another, within one transaction. `finish` writes what is remembered.

    Parameters
    ----------
    tx : Transaction
    devices : dict, optional
        Reference to device of rows derived before: they stay whose they were.
    """

    def __init__(self, tx: Transaction, *, devices: dict[str, str] | None = None) -> None:
        self._tx = tx
        self._devices = devices
        self.identities = Identities(tx)
        self._forgotten = tx.forgotten()
        self._states: dict[tuple[str, str], State] = {}
        self._dirty: set[tuple[str, str]] = set()
        self.outcome = HeardOutcome()
        self.rows: dict[str, DatedFrame] = {}

    def hear(self, claim: Claim, message: Message, *, was_unread: bool = False) -> None:
        """One message: its rows, its dead letters, its answer. A dead letter that is read after all is as
        new as any message, whatever else is derived again.
        """
        profile = claim.profile
        self.outcome.counted["profile_overlaps"] += claim.others
        if message.retained and profile.replay == "live":
            return  # how things stood once; that it came is counted
        opened = open_message(profile, message)
        self.outcome.counted["profile_ignored"] += opened.foreign
        letters = len(self.outcome.letters)
        self._refuse(message, opened)
        within: int | None = None
        for item in opened.items:
            new = self._devices is None or was_unread
            if new and not self.identities.admits(profile, item.source, at_ms=message.first_ms):
                self.outcome.counted["strangers_refused"] += 1
                continue
            try:
                reply = reply_of(profile, item, message)
                within = self._item(claim, item, message, within)
            except PayloadError as problem:
                letter = _letter(message, problem.reason, str(problem), _own_bytes(profile, item, message))
                self.outcome.letters.append(letter)
                continue
            if reply is not None:
                self.outcome.replies.append(reply)
        added = self.outcome.letters[letters:]
        if within is None and added and added[0].raw != message.payload:
            # Nothing else keeps the message these are parts of, and a mended profile reads messages.
            self.outcome.letters[letters] = replace(added[0], whole=message.payload)

    def _refuse(self, message: Message, opened: Opened) -> None:
        self.outcome.letters += [
            _letter(message, each.reason, each.detail, message.payload if each.raw is None else each.raw)
            for each in opened.troubles
        ]

    def _item(self, claim: Claim, item: Item, message: Message, within: int | None) -> int | None:
        """Store one item; returns the row that holds the message's bytes, once there is one."""
        profile = claim.profile
        if item.source in self._forgotten:
            raise PayloadError(
                DEVICE_FORGOTTEN, f"a sender must be one of the home, {item.source} was forgotten by the owner"
            )
        key = _key(profile, item, message)
        source = self.identities.heard(profile, item.source, at_ms=message.first_ms)
        known = self._known(claim, item, key, message)
        if known is not None:
            self._heard_again(known, item, message)
            return within
        state = self._state(item.source, profile.family)
        named = key if _names_for_good(profile, item) else f"{key}@{message.first_ms}"
        derived = derive(profile, item, message, key=named, state=state, zones=self.identities.home.zones)
        self.outcome.counted["samples_set_aside"] += derived.rejected
        if derived.again:
            self._heard_again(self._packet(claim, item, key, message), item, message)
            return within
        if not derived.rows and derived.state == state:
            self.outcome.counted["profile_unchanged"] += 1
            return within
        self._states[item.source, profile.family] = derived.state
        self._dirty.add((item.source, profile.family))
        number = self._tx.add_heard(
            HeardRow(
                id=0,
                profile=profile.id,
                version=profile.version,
                transport=message.transport,
                via=message.via,
                source=item.source,
                key=key,
                first_ms=message.first_ms,
                received_ms=message.received_ms,
                signal=item.signal,
                within=within,
                raw=message.payload if within is None else None,
            )
        )
        self._add(profile, item, source, derived.rows, number)
        self._move(derived.moved)
        return number if within is None else within

    def _state(self, source: str, family: str) -> State:
        if (source, family) not in self._states:
            self._states[source, family] = self._tx.profile_state(source, family)
        return self._states[source, family]

    # -- what was heard before -------------------------------------------------------------------

    def _known(self, claim: Claim, item: Item, key: str, message: Message) -> HeardRow | None:
        profile = claim.profile
        if profile.packet_id is not None and field_at(item.fields, profile.packet_id) is not None:
            return None  # the packet counter decides
        since_ms = 0
        if item.key is None:
            since_ms = message.first_ms
        elif profile.within_ms is not None:
            since_ms = message.first_ms - profile.within_ms
        return self._tx.heard_again(item.source, claim.family, key, since_ms=since_ms)

    def _packet(self, claim: Claim, item: Item, key: str, message: Message) -> HeardRow | None:
        return self._tx.heard_again(item.source, claim.family, key, since_ms=message.first_ms - _PACKET_WITHIN_MS)

    def _heard_again(self, known: HeardRow | None, item: Item, message: Message) -> None:
        """One event, however often it is heard; of several ways the one with the best signal is kept."""
        self.outcome.counted["records_known"] += 1
        if known is not None and item.signal is not None and (known.signal is None or item.signal > known.signal):
            self._tx.set_heard(replace(known, signal=item.signal, via=message.via))

    # -- rows ------------------------------------------------------------------------------------

    def _add(self, profile: Profile, item: Item, source: SourceRow, rows: tuple[DatedFrame, ...], number: int) -> None:
        owned = []
        for row in rows:
            device = None if self._devices is None else self._devices.get(row.ref.text)
            if device is None:
                device = self.identities.device_of(profile, item, source, at_ms=row.start_ms)
            owned.append(replace(row, device=device))
        new = self._tx.add_frames(owned)
        stored = self._tx.known_frames(tuple(row.ref.text for row in owned))
        self._tx.add_derived((row, number) for row in owned if row.ref.text in stored)
        self.rows |= {row.ref.text: row for row in owned}
        self.outcome.counted["records_known"] += len(owned) - len(new)
        self.outcome.new += new
        for row in new:
            touch(self._tx, self.outcome.touched, row)

    def _move(self, moved: tuple[tuple[str, int], ...]) -> None:
        """Put right what an unset clock of the device had dated."""
        for ref, by_ms in moved:
            row = self.rows.get(ref) or self._tx.frame(RecordRef(ref))
            if row is None or row.dating != "wall":
                continue
            touch(self._tx, self.outcome.touched, row)
            shifted = replace(row, start_ms=row.start_ms + by_ms, end_ms=row.end_ms + by_ms, dating="corrected")
            self._tx.redate_frames((shifted,))
            if ref in self.rows:
                self.rows[ref] = shifted
            touch(self._tx, self.outcome.touched, shifted)
            self.outcome.counted["records_redated"] += 1

    def finish(self) -> HeardOutcome:
        """Write what is remembered of senders, and say what all of it did."""
        for source, family in sorted(self._dirty):
            self._tx.save_profile_state(source, family, self._states[source, family])
        self._dirty.clear()
        self.identities.save()
        return self.outcome


def reply_of(profile: Profile, item: Item, message: Message) -> ReplyMessage | None:
    """What the device waits for once this is stored, known before as after.

    Raises
    ------
    PayloadError
        What would be answered cannot be: a field is missing, or the topic is none of its device.
    """
    if profile.reply is None or message.retained or not holds(profile.reply.when, item.fields):
        return None
    fields = tuple(
        (name, value if isinstance(value, int) else filled(value, item.fields)) for name, value in profile.reply.fields
    )
    topic = filled(profile.reply.topic, item.fields)
    # A field stands for one level, never for several: what a device sends must not choose whom the hub talks to.
    as_many = topic.count("/") == sum(text.count("/") for text in profile.reply.topic.texts)
    if not as_many or len(topic) > _TOPIC_LONGEST or _NO_TOPIC.search(topic) or topic.startswith(("scentwalk/", "$")):
        raise PayloadError("bad_value", f"an answer must go to a topic of its device, not to {topic[:60]!r}")
    return ReplyMessage(topic, fields)


def _names_for_good(profile: Profile, item: Item) -> bool:
    """Whether a key names a thing for ever: not where counters come round, nor where the key is an arrival."""
    if item.key is None:
        return profile.packet_id is None or field_at(item.fields, profile.packet_id) is None
    return profile.within_ms is None


def _key(profile: Profile, item: Item, message: Message) -> str:
    """What an item is known by: its profile's key, its packet number, else its arrival and bytes."""
    if item.key is not None:
        return item.key
    if profile.packet_id is not None:
        number = field_at(item.fields, profile.packet_id)
        if isinstance(number, int) and not isinstance(number, bool):
            return str(number)
    digest = hashlib.sha256(message.payload).hexdigest()[:6]
    return f"@{message.first_ms}.{digest}{f'.{item.occurrence}' if item.occurrence else ''}"


def _own_bytes(profile: Profile, item: Item, message: Message) -> bytes:
    """The bytes of one item of a list, so that two bad ones are two dead letters."""
    if profile.items is None:
        return message.payload
    own = {name: value for name, value in item.fields.items() if name not in ("topic", "message")}
    return json.dumps(own, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def _letter(message: Message, reason: str, detail: str, payload: bytes) -> DeadLetter:
    raw = RawFrame(message.transport, message.via[:200], message.received_ms, message.payload)
    return dead_letter(raw, reason, detail, boot=None, seq=None, payload=payload)


def touch(tx: Transaction, touched: Touched, row: DatedFrame) -> None:
    """What a row weighs on: itself, and the quiet since the sign of life before it, of each part of its device."""
    whole = tx.whole_of(row.device) or row.device
    devices = (whole, *(device for device, _ in tx.parts(whole)))
    before_ms = tx.last_end_before(devices, before_ms=row.end_ms)
    start_ms = row.start_ms if before_ms is None else max(min(before_ms, row.start_ms), row.end_ms - IMPORT_GAP_MS)
    for device in devices:
        touched.spans[device].append((min(start_ms, row.start_ms), row.end_ms))
