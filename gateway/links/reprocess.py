"""Derives rows again from the bytes they came from, after a profile changed.

The messages of a profile are heard once more, in the order they came, by what the profile says
now; among them those that could not be read before and can be now, which then are dead letters no more.
A row that is still there keeps its reference, and so whatever cites it; one that changed
restates its days and the answers that cite it, as a late record does; one that is no longer
read goes, unless somebody cites it: then it stays, not counted. Doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.errors import PayloadError
from gateway.links.heard import DEVICE_FORGOTTEN, HeardOutcome, Listener, touch
from gateway.links.placing import Touched
from gateway.links.profiled import Message
from gateway.links.profileset import Claim, ProfileSet
from gateway.links.rollups import Rollups
from gateway.links.trial import try_message
from gateway.model import RawFrame, RecordRef
from gateway.store.retention import CITING
from gateway.store.transaction import Transaction
from gateway.stored import DatedFrame, DeadLetter, HeardRow

__all__ = ["Reprocessed", "due_families", "reprocess"]

_VIA = 200
"""Characters of a topic that a dead letter keeps."""
_REACH_MS = 86_400_000
"""A row just after what was purged may be made from samples before it: no visit lasts a day."""


@dataclass(frozen=True, slots=True)
class Reprocessed:
    """What deriving again did: messages read, rows now, and of these new, changed and gone ones;
    ``kept`` rows are no longer read, but cited. ``days`` counts day rows that changed, ``letters`` dead letters
    that were read.
    """

    messages: int = 0
    rows: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    kept: int = 0
    days: int = 0
    letters: int = 0

    def words(self, name: str) -> str:
        """One line for the owner."""
        was = "" if not self.letters else f" {self.letters} that could not be read before could be now."
        return (
            f"{name}: {self.messages} messages read again, {self.rows} rows: {self.new} new, {self.changed} changed, "
            f"{self.gone} gone, {self.kept} no longer read but cited; {self.days} days restated.{was}"
        )


def due_families(tx: Transaction, profiles: ProfileSet, *, everything: bool) -> tuple[str, ...]:
    """The families of profiles with messages that another version of a profile read (or with any), and
    those that can read a dead letter now.
    """
    due = {claim.profile.family for claim, _ in _readable(tx, profiles).values()}
    for profile_id, version, _ in tx.heard_versions():
        profile = profiles.get(profile_id)
        if profile is not None and (everything or profile.version != version):
            due.add(profile.family)
    return tuple(sorted(due))


def reprocess(tx: Transaction, profiles: ProfileSet, family: str, *, rollups: Rollups) -> Reprocessed:
    """Derive every row of one family of profiles again, in the caller's transaction."""
    return _Again(tx, profiles, family).done(rollups)


_Place = tuple[str, int]
"""Where and when a message came: its topic as a dead letter names it, ms UTC."""


def _readable(tx: Transaction, profiles: ProfileSet) -> dict[_Place, tuple[Claim, Message]]:
    """The messages with dead letters of which a profile reads more now than there are letters for."""
    letters: dict[_Place, list[DeadLetter]] = {}
    for _, letter in tx.unread_letters():
        if letter.reason != DEVICE_FORGOTTEN:
            letters.setdefault((letter.device, letter.received_ms), []).append(letter)
    zones, found = tx.household().zones, {}
    for place, those in letters.items():
        for raw in _bytes_of(tx, profiles, those):
            claim = _claimed(profiles, those[0], raw)
            if claim is None or claim.profile.stream is not None:
                # Of bare samples equal ones were kept once: a meal made of the rest would be a guess.
                continue
            message = Message(those[0].transport, place[0], place[1], place[1], raw)
            tried = try_message(claim.profile, message, zones=zones)
            if tried.opened and len(tried.troubles) < len(those):
                found[place] = (claim, message)
    return found


def _bytes_of(tx: Transaction, profiles: ProfileSet, letters: list[DeadLetter]) -> tuple[bytes, ...]:
    """The whole messages that letters of one place and instant are of."""
    kept = tuple(letter.whole for letter in letters if letter.whole is not None)
    if kept:
        return kept
    claim = _claimed(profiles, letters[0], letters[0].raw)
    if claim is None or claim.profile.items is None:
        return (letters[0].raw,)
    same = (row for row in tx.heard_at(claim.family, letters[0].received_ms) if row.via[:_VIA] == letters[0].device)
    return tuple(row.raw for row in same if row.raw is not None) or (letters[0].raw,)


def _claimed(profiles: ProfileSet, letter: DeadLetter, raw: bytes) -> Claim | None:
    try:
        return profiles.claim(RawFrame(letter.transport, letter.device, letter.received_ms, raw))
    except PayloadError:
        return None  # bytes that are no advertisement


class _Again:
    """One family, read once more."""

    def __init__(self, tx: Transaction, profiles: ProfileSet, family: str) -> None:
        self._tx = tx
        self._profiles = profiles
        self._ids = profiles.family(family)
        self._family = family
        self._before: dict[str, DatedFrame] = {}
        self._links: dict[str, int] = {}
        self._items: dict[int, HeardRow] = {}
        self._messages: list[HeardRow] = []
        for profile_id in self._ids:
            self._before |= tx.derived_frames(profile_id)
            self._links |= tx.links_of(profile_id)
            self._items |= {row.id: row for row in tx.heard_items(profile_id)}
            self._messages += tx.heard_messages(profile_id)
        self._messages.sort(key=lambda row: (row.first_ms, row.id))
        held = {(row.via[:_VIA], row.first_ms, row.raw) for row in self._messages}
        self._letters = tuple(
            (claim, message)
            for claim, message in _readable(tx, profiles).values()
            if claim.profile.id in self._ids and (message.via, message.first_ms, message.payload) not in held
        )
        purged_ms = tx.heard_purged_ms(self._ids)
        self._settled_ms = purged_ms + _REACH_MS if purged_ms else 0
        self._bytes = {row.id: row.raw for row in self._messages}
        self._touched = Touched()
        self._places: set[_Place] = set()

    def done(self, rollups: Rollups) -> Reprocessed:
        for profile_id in self._ids:
            self._tx.forget_heard(profile_id, self._family)
        listener = Listener(self._tx, devices={ref: frame.device for ref, frame in self._before.items()})
        for row, letter in self._in_order():
            if letter is not None:
                refused = listener.outcome.counted["strangers_refused"]
                listener.hear(*letter, was_unread=True)
                if listener.outcome.counted["strangers_refused"] == refused:
                    self._places.add((letter[1].via, letter[1].received_ms))
            elif row is not None:
                claim = self._claim(row)
                if claim is None:
                    self._unread(row, listener)
                else:
                    message = Message(row.transport, row.via, row.received_ms, row.first_ms, row.raw or b"")
                    listener.hear(claim, message)
                    self._places.add((row.via[:_VIA], row.received_ms))
        outcome = listener.finish()
        letters = self._letters_read(outcome)
        for row in self._messages:  # bytes stay, whether or not a version makes something of them
            self._stored_again(row)
        self._keep_signals()
        changed = self._rewrite(listener.rows)
        gone, kept = self._drop(listener.rows)
        for device, spans in outcome.touched.spans.items():
            self._touched.spans[device] += spans
        days = rollups.refresh(self._tx, self._tx.household(), self._touched)
        rows, new = len(listener.rows), len(outcome.new)
        return Reprocessed(len(self._messages) + len(self._letters), rows, new, changed, gone, kept, days, letters)

    def _in_order(self) -> Iterator[tuple[HeardRow | None, tuple[Claim, Message] | None]]:
        """What was heard and what is a dead letter until now, as it came."""
        heard = [((row.first_ms, 0, row.id), row, None) for row in self._messages]
        letters = [((each[1].first_ms, 1, number), None, each) for number, each in enumerate(self._letters)]
        for _, row, letter in sorted([*heard, *letters], key=lambda one: one[0]):
            yield row, letter

    def _letters_read(self, outcome: HeardOutcome) -> int:
        """Mark the dead letters of messages that were read and gave no such letter again."""
        again = {(letter.device, letter.received_ms, letter.raw) for letter in outcome.letters}
        read: dict[str, list[int]] = {}
        for number, letter in self._tx.unread_letters():
            place = (letter.device, letter.received_ms)
            if place in self._places and (*place, letter.raw) not in again:
                claim = _claimed(self._profiles, letter, letter.raw)
                if claim is not None and claim.profile.id in self._ids:
                    read.setdefault(f"{claim.profile.id}, version {claim.profile.version}", []).append(number)
        for by, numbers in read.items():
            self._tx.letters_read(numbers, read_by=by)
        total = sum(map(len, read.values()))
        if total:
            self._tx.bump("dead_letters_read", total)
        return total

    def _unread(self, row: HeardRow, listener: Listener) -> None:
        """A message that no enabled profile takes any more stays as it was read."""
        mine = {number for number, item in self._items.items() if row.id in (number, item.within)}
        for ref, number in self._links.items():
            if number in mine:
                listener.rows[ref] = self._before[ref]
                self._tx.add_derived([(self._before[ref], self._stored_again(self._items[number]))])

    def _claim(self, row: HeardRow) -> Claim | None:
        """Who reads a stored message now. Its profile may have been told other topics since."""
        claim = self._profiles.claim(RawFrame(row.transport, row.via, row.received_ms, row.raw or b""))
        return claim if claim is not None and claim.profile.id in self._ids else None

    def _keep_signals(self) -> None:
        """The best signal was heard with a copy whose bytes nobody kept."""
        for old in self._items.values():
            if old.signal is None:
                continue
            fresh = self._tx.heard_again(old.source, self._ids, old.key, since_ms=old.first_ms)
            same = fresh is not None and fresh.first_ms == old.first_ms
            if fresh is not None and same and (fresh.signal is None or old.signal > fresh.signal):
                self._tx.set_heard(replace(fresh, signal=old.signal, via=old.via))

    def _is_final(self, row: DatedFrame) -> bool:
        """Whether a row stays as it is: its day is sealed, or what it was made from may be gone."""
        return row.sealed or row.end_ms < self._settled_ms

    def _rewrite(self, rows: dict[str, DatedFrame]) -> int:
        """Give rows that are still there what they say now."""
        changed = []
        for ref, row in rows.items():
            before = self._before.get(ref)
            if before is not None and not self._is_final(before) and row != before:
                touch(self._tx, self._touched, before)
                changed.append(row)
        self._tx.rewrite_frames(changed)
        for row in changed:
            touch(self._tx, self._touched, row)
        return len(changed)

    def _drop(self, rows: dict[str, DatedFrame]) -> tuple[int, int]:
        """Let rows go that are no longer read; (gone, kept because they are cited or sealed)."""
        lost = [frame for ref, frame in self._before.items() if ref not in rows]
        final = [frame for frame in lost if self._is_final(frame)]
        doubted = [frame for frame in lost if not self._is_final(frame)]
        for frame in doubted:
            touch(self._tx, self._touched, frame)
        cited = set(self._tx.drop_frames((frame.ref for frame in doubted), citing=CITING))
        unread = [frame for frame in doubted if frame.ref.text in cited]
        kept = final + unread
        aside = [replace(frame, set_aside="its profile no longer reads this; not counted") for frame in unread]
        self._tx.rewrite_frames(frame for frame in aside if frame != self._before[frame.ref.text])
        for frame in kept:
            self._tx.add_derived([(frame, self._heard_of(frame.ref))])
        return len(doubted) - len(unread), len(unread)

    def _heard_of(self, ref: RecordRef) -> int:
        """The message a row was made from, kept for its sake."""
        return self._stored_again(self._items[self._links[ref.text]])

    def _stored_again(self, old: HeardRow) -> int:
        known = self._tx.heard_again(old.source, (old.profile,), old.key, since_ms=old.first_ms)
        if known is not None and known.first_ms == old.first_ms:
            return known.id
        raw = self._bytes.get(old.id)
        within = None
        if old.within is not None:
            within = self._stored_again(self._items[old.within])
        profile = self._profiles.get(old.profile)
        version = old.version if profile is None else profile.version
        return self._tx.add_heard(replace(old, version=version, raw=raw, within=within))
