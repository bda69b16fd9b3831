"""Stores what was heard: messages in, durable rows out, then the acknowledgement, then the mark.

One batch is one transaction: frames, dead letters, counters, day rows and marks stand or
fall together, and only when they stand is anything acknowledged. A message that comes again
changes nothing but a counter. A message that cannot be stored never holds up another: it
becomes a dead letter.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from firmware_bridge import wire
from gateway.errors import PayloadError, RowsRefused, StoreError
from gateway.links import advertisement
from gateway.links.clock import Clock
from gateway.links.heard import DEVICE_FORGOTTEN, move_heard, store_heard
from gateway.links.hubclock import HubClock, put_right, received_anew
from gateway.links.inbox import Delivery, Inbox
from gateway.links.payloads import Reading, dead_letter, read_payload
from gateway.links.placing import Touched, place
from gateway.links.profiled import ReplyMessage
from gateway.links.profileset import ProfileSet
from gateway.links.rollups import Rollups
from gateway.store.transaction import Transaction
from gateway.store.writer import Writer
from gateway.stored import DeadLetter

__all__ = ["CommitRule", "Ingest", "Links", "MarkLink", "NoLink", "Outcome", "marks_to_tell", "store_readings"]

Result = TypeVar("Result")

COUNTERS = (
    "messages",  # heard, whatever became of them
    "records_stored",
    "records_known",  # stored before: redelivered, or heard twice
    "dead_letters",
    "retained_events",  # on an event topic, where nothing should be retained
    "records_unbound",  # of a device that serves no pet yet: stored, in no series
    "dropped_by_device",  # a device's ring overflowed before it was heard
    "records_redated",
    "profile_ignored",  # on a topic a profile listens to, but of some other device
    "profile_unchanged",  # of a profile's device, with nothing new in it
    "profile_overlaps",  # more than one profile would have read it; the more exact one did
    "strangers_refused",  # of a sender nobody entered, while 256 others such are remembered
    "samples_set_aside",  # of a load cell's stream: nonsense between its neighbours
)
"""Every counter kept in the database, each with a line on the page."""


@dataclass(frozen=True, slots=True)
class CommitRule:
    """When a batch is committed (CONTRACTS, Commit). Seconds are steady seconds.

    At once on an urgent record; when ``many`` wait and ``quiet_s`` brought no new one, or as
    many as `enough`; else ``longest_s`` after the first.
    """

    window: int
    many: int = 16
    quiet_s: float = 0.005
    longest_s: float = 5.0
    most: int = 100
    """Beyond this a larger batch saves nothing, and keeps its senders waiting."""

    @property
    def enough(self) -> int:
        """How many close a batch: half of the window, so that the broker sends the other half meanwhile."""
        return min(self.most, (self.window + 1) // 2)

    def wait_s(self, *, count: int, urgent: bool, first_s: float, last_s: float, now_s: float) -> float | None:
        """How much longer to wait for more; 0 or less = commit now, None = nothing waits."""
        if count == 0:
            return None
        if urgent or count >= self.enough:
            return 0.0
        due_s = first_s + self.longest_s
        if count >= self.many:
            due_s = min(due_s, last_s + self.quiet_s)
        return due_s - now_s


class MarkLink(Protocol):
    """What ingest asks of a link after a commit."""

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        """Tell the sender that these are stored."""

    def publish_marks(self, marks: dict[str, dict[int, int]]) -> None:
        """Tell these devices up to which record everything is stored."""


class NoLink:
    """Where nobody is told of a commit: what the radio hears asks for no acknowledgement."""

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        """Nothing to acknowledge."""

    def publish_marks(self, marks: dict[str, dict[int, int]]) -> None:
        """Nobody to tell."""


class Links:
    """Several links as one: each is told of every commit and picks out what is its own.

    A device may hand over on either way, so its mark goes out on both.
    """

    def __init__(self, *links: MarkLink) -> None:
        self._links = links

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        stored = tuple(deliveries)
        for link in self._links:
            link.acknowledge(stored)

    def publish_marks(self, marks: dict[str, dict[int, int]]) -> None:
        for link in self._links:
            link.publish_marks(marks)


@dataclass(slots=True)
class Outcome:
    """What one transaction did: marks by device, what was counted, and the touched time."""

    counted: Counter[str] = field(default_factory=Counter)
    marks: dict[str, dict[int, int]] = field(default_factory=dict)
    touched: Touched = field(default_factory=Touched)
    facts_changed: bool = False
    """Whether a record came that edges follow from (a food chosen at the bowl)."""
    replies: tuple[ReplyMessage, ...] = ()
    """What other makers' devices wait to be answered."""


def store_readings(tx: Transaction, readings: tuple[Reading, ...], *, rollups: Rollups) -> Outcome:
    """Write what was read, in the caller's transaction, and say what that did.

    Order of messages and their repetition do not matter: the rows are the same. What a device
    sends that the owner had forgotten is a dead letter, record by record, and its mark moves on.
    """
    readings = _without_forgotten(tx, readings)
    outcome = Outcome()
    counted = outcome.counted
    counted.update(dict.fromkeys(COUNTERS, 0))
    counted["messages"] = len(readings)
    counted["retained_events"] = sum(reading.retained for reading in readings)
    placed = place(tx, readings)
    counted["dead_letters"] = tx.add_dead_letters((*placed.unreadable, *placed.letters))
    outcome.touched = placed.touched
    outcome.facts_changed = any(frame.kind == "food_set" for frame in placed.new)
    counted["records_known"] = placed.heard - len(placed.new) - len(placed.letters)
    counted["records_redated"] = placed.redated
    new = placed.new
    if any(reading.claim is not None for reading in readings):
        heard = store_heard(tx, readings)
        counted.update(heard.counted)
        counted["dead_letters"] += tx.add_dead_letters(heard.letters)
        for device, spans in heard.touched.spans.items():
            outcome.touched.spans[device] += spans
        outcome.replies = tuple(heard.replies)
        new += tuple(heard.new)
    tx.save_radio_counters(_radio_counters(readings))
    home = tx.household()
    counted["records_stored"] = len(new)
    counted["records_unbound"] = sum(not home.bindings_at(frame.device, frame.start_ms) for frame in new)
    rollups.refresh(tx, home, placed.touched)
    counted["dropped_by_device"] = _advance_marks(tx, readings, outcome.marks)
    for name, by in sorted(counted.items()):
        if by:
            tx.bump(name, by)
    return outcome


def _radio_counters(readings: tuple[Reading, ...]) -> dict[str, int]:
    """The highest counter of each device's encrypted advertisements: a lower one is a recording."""
    counters: dict[str, int] = {}
    for reading in readings:
        if reading.raw.transport == advertisement.TRANSPORT:
            with contextlib.suppress(PayloadError):  # its reading has a dead letter that says so
                counter = advertisement.unpack(reading.raw.payload).counter
                if counter is not None:
                    counters[reading.raw.device] = max(counter, counters.get(reading.raw.device, -1))
    return counters


def _advance_marks(tx: Transaction, readings: tuple[Reading, ...], marks: dict[str, dict[int, int]]) -> int:
    """Move the marks of every boot heard; returns how many records its device had dropped."""
    lowest: dict[tuple[str, int], int] = defaultdict(int)
    for reading in readings:
        if reading.header is not None:
            key = (reading.raw.device, reading.header.boot)
            lowest[key] = max(lowest[key], reading.lowest_held or 0)
    dropped = 0
    for (device, boot), held in sorted(lowest.items()):
        mark = tx.advance_mark(device, boot, first_seq=wire.FIRST_SEQ)
        missing = tx.skip_dropped(device, boot, mark=mark or 0, lowest_held=held)
        if missing:
            dropped += missing
            tx.advance_mark(device, boot, first_seq=wire.FIRST_SEQ)
    for device in sorted({device for device, _ in lowest}):
        heard = (boot for name, boot in lowest if name == device)
        marks[device] = marks_to_tell(tx.marks(device), heard)
    return dropped


def marks_to_tell(marks: dict[int, int], heard: Iterable[int]) -> dict[int, int]:
    """The marks one message has room for: of the boots just heard, the earliest first, then of
    the newest.

    A device lets go of its oldest boot first, and sends again what it was not told: one that
    restarted a hundred times while the hub was away would else wait for ever for its first.
    """
    told = [boot for boot in sorted(heard) if boot in marks][: wire.MAX_MARK_BOOTS]
    told += [boot for boot in sorted(marks, reverse=True) if boot not in told][: wire.MAX_MARK_BOOTS - len(told)]
    return {boot: marks[boot] for boot in sorted(told)}


def _refused(delivery: Delivery, problem: RowsRefused, *, claimed: bool) -> Reading:
    """The reading of a message that the store refuses: a dead letter, so that it ends there."""
    if claimed:
        letter = dead_letter(
            delivery.raw, "refused_by_store", str(problem), boot=None, seq=None, payload=delivery.raw.payload
        )
        return Reading(delivery.raw, None, (), (letter,))
    read = read_payload(delivery.raw)
    return Reading(delivery.raw, read.header, (), _letters(read, "refused_by_store", str(problem)))


def _letters(read: Reading, reason: str, detail: str) -> tuple[DeadLetter, ...]:
    """A dead letter for every record of a message, the bytes with the first: a mark passes over them."""
    count = 0 if read.header is None else read.header.count
    first = 0 if read.header is None else read.header.first_seq
    return tuple(
        dead_letter(
            read.raw,
            reason,
            detail,
            boot=None if read.header is None else read.header.boot,
            seq=None if read.header is None else seq,
            payload=read.raw.payload if seq == first else b"",
        )
        for seq in range(first, first + max(count, 1))
    )


def _without_forgotten(tx: Transaction, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """The readings, those of devices that the owner had forgotten turned into dead letters."""
    forgotten = tx.forgotten()
    if not forgotten:
        return readings
    said = "a device must be one of the home, was forgotten by the owner; to hear it again: scentwalk device bind"
    return tuple(
        replace(reading, frames=(), letters=_letters(reading, DEVICE_FORGOTTEN, said))
        if reading.claim is None and reading.raw.device in forgotten
        else reading
        for reading in readings
    )


class Ingest:
    """The task that turns deliveries into rows. `run` it beside the link.

    Parameters
    ----------
    inbox : Inbox
        Where the link puts messages.
    link : MarkLink
        Told after every commit.
    writer : Writer
        The one writer.
    rollups : Rollups
        Keeps the day rows of touched time.
    clock : Clock
        For waits, and to notice that the hub's own clock was set.
    rule : CommitRule
        ``window`` is the link's in-flight window.
    facts_changed : callable, optional
        Called after a commit that stored a record edges follow from.
    committed : callable, optional
        Called after every commit.
    profiles : ProfileSet, optional
        Reads other makers' messages by these instead of Wire 1. Such a task runs beside the one of
        Wire 1, with an inbox and a connection of its own: no flood of theirs delays ours.
    replies : callable, optional
        Told after every commit what such devices wait to be answered.

    Attributes
    ----------
    failed_commits : int
        Times the store could not write; each batch was tried again, nothing was acknowledged.
    trouble : str
        Why it could not, last; empty while it can.
    """

    _AGAIN_S = 1.0

    def __init__(
        self,
        *,
        inbox: Inbox,
        link: MarkLink,
        writer: Writer,
        rollups: Rollups,
        clock: Clock,
        rule: CommitRule,
        facts_changed: Callable[[], None] | None = None,
        committed: Callable[[], None] | None = None,
        profiles: ProfileSet | None = None,
        replies: Callable[[Sequence[ReplyMessage]], None] | None = None,
    ) -> None:
        self._inbox = inbox
        self._link = link
        self._writer = writer
        self._rollups = rollups
        self._clock = clock
        self._hub_clock = HubClock(clock)
        self._rule = rule
        self._facts_changed = facts_changed
        self._committed = committed
        self._profiles = profiles
        self._replies = replies
        self.failed_commits = 0
        self.trouble = ""

    def use(self, profiles: ProfileSet) -> None:
        """Read other makers' messages by these from now on."""
        self._profiles = profiles

    async def run(self) -> None:
        """Publish the marks of the database, then store what comes until cancelled."""
        if self._profiles is None:
            self._link.publish_marks(await self._writer.run(lambda tx: tx.all_marks()))
        since = await self._writer.run(lambda tx: tx.last_record())
        while True:
            deliveries, readings = await self._gather()
            if was_set := self._hub_clock.look():  # before anything more is dated by it
                right = put_right if self._profiles is None else move_heard
                await self._patiently(partial(right, was_set=was_set, since_record=since, rollups=self._rollups))
                readings = [received_anew(reading, was_set) for reading in readings]
            await self._commit(deliveries, readings)

    async def _gather(self) -> tuple[list[Delivery], list[Reading]]:
        """The next batch, as the rule closes it."""
        deliveries: list[Delivery] = []
        readings: list[Reading] = []
        urgent = False
        first_s = last_s = 0.0
        while True:
            now_s = self._clock.steady_s()
            wait_s = self._rule.wait_s(
                count=len(deliveries), urgent=urgent, first_s=first_s, last_s=last_s, now_s=now_s
            )
            if wait_s is not None and wait_s <= 0:
                return deliveries, readings
            # What waits beyond the window (mosquitto 2.0 sends more than it was told) costs no further commit.
            more = await self._inbox.take(timeout_s=wait_s, enough=self._rule.enough - len(deliveries))
            if more:
                last_s = self._clock.steady_s()
                first_s = first_s if deliveries else last_s
                deliveries += more
                read = read_payload if self._profiles is None else self._profiles.read
                readings += (read(delivery.raw, retained=delivery.retained) for delivery in more)
                urgent = urgent or any(reading.urgent for reading in readings[-len(more) :])

    async def _commit(self, deliveries: list[Delivery], readings: list[Reading]) -> None:
        """Store a batch whole; where the store refuses a row, one message at a time."""
        try:
            await self._store(deliveries, readings)
        except RowsRefused:
            for delivery, reading in zip(deliveries, readings, strict=True):
                try:
                    await self._store([delivery], [reading])
                except RowsRefused as problem:
                    await self._store([delivery], [_refused(delivery, problem, claimed=self._profiles is not None)])

    async def _store(self, deliveries: list[Delivery], readings: list[Reading]) -> None:
        """Store, acknowledge, publish the marks. A store that cannot write is tried again:
        nothing more is taken from the inbox meanwhile, so the broker keeps the rest.
        """
        write = partial(
            store_readings,
            readings=tuple(readings),
            rollups=self._rollups,
        )
        outcome = await self._patiently(write)
        self._link.acknowledge(deliveries)
        self._link.publish_marks(outcome.marks)
        if outcome.replies and self._replies is not None:
            self._replies(outcome.replies)
        if outcome.facts_changed and self._facts_changed is not None:
            self._facts_changed()
        if self._committed is not None:
            self._committed()

    async def _patiently(self, write: Callable[[Transaction], Result]) -> Result:
        """The result of ``write``, tried again for as long as the store cannot write."""
        while True:
            try:
                result = await self._writer.run(write)
            except RowsRefused:
                raise
            except StoreError as problem:
                self.failed_commits += 1
                self.trouble = str(problem)
                await asyncio.sleep(self._AGAIN_S)
            else:
                self.trouble = ""
                return result
