"""What goes wrong between a device and its hub: loss, copies, reordering, restarts, clocks, batteries, outages.

The firmware's own outbox runs under these faults; nothing of it is simulated. ``FaultyDevice``
takes the records of a story's device at their true instants and hands out messages; ``Air``
loses, doubles and delays them. Whatever befalls them, the true instant of every record taken
stays known, so that what a hub stored can be held against it. Seeded; the same seed gives the
same faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import time
from random import Random
from typing import Protocol, TypeVar

from device_sim.story import Pet, Story
from firmware_bridge import wire
from firmware_bridge.outbox import Outbox

__all__ = [
    "Air",
    "Battery",
    "FaultyDevice",
    "Radio",
    "Record",
    "WallClock",
    "hub_down",
    "in_step",
    "outage_ms",
    "overwritten",
    "records_nothing",
]

DAY_MS = 86_400_000


class Record(Protocol):
    """Something a device takes: the true instant (UTC ms), a Wire 1 kind and its values."""

    @property
    def at_ms(self) -> int: ...
    @property
    def kind(self) -> int: ...
    @property
    def values(self) -> tuple[int | str, ...]: ...


R = TypeVar("R", bound=Record)


# --- of a story -----------------------------------------------------------------------------


def outage_ms(story: Story) -> tuple[int, int]:
    """The instants between which nothing leaves the devices; an empty span where there is no outage."""
    if story.outage is None:
        return story.end_ms, story.end_ms
    return story.instant(story.outage.first, time()), story.instant(story.outage.last, time())


def hub_down(story: Story, at_ms: int) -> bool:
    """Whether the devices cannot reach the hub then."""
    from_ms, to_ms = outage_ms(story)
    return from_ms < at_ms < to_ms


def overwritten(story: Story, taken: Sequence[R], slots: int) -> tuple[R, ...]:
    """What a ring of ``slots`` had to drop while the hub was down: all but its newest records.

    Two of its slots hold the mark request of the end and the hello that tells of the drops.
    """
    if story.outage is None:
        return ()
    from_ms, to_ms = outage_ms(story)
    during = [one for one in taken if from_ms < one.at_ms <= to_ms]
    return tuple(during[: max(0, len(during) - (slots - 2))])


def records_nothing(story: Story, pet: Pet, device: str, day: int) -> bool:
    """Whether a device of a pet is off on that whole story day."""
    return any(gap.pet == pet.key and gap.device == device and gap.first <= day <= gap.last for gap in story.gaps)


# --- of the radio ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Radio:
    """Shares of messages that are lost, come twice, come late; late by up to ``late_ms``."""

    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    late_ms: int = 120_000
    least_ms: int = 40

    def __post_init__(self) -> None:
        if not all(0.0 <= share <= 1.0 for share in (self.lost, self.doubled, self.late)):
            raise ValueError(f"shares must lie in 0 to 1, are {self.lost}, {self.doubled}, {self.late}")


class Air:
    """Messages on their way, each way; those delayed are overtaken.

    Attributes
    ----------
    lost, doubled, delayed : int
        What it has done so far.
    """

    def __init__(self, radio: Radio, rng: Random) -> None:
        self._radio, self._rng = radio, rng
        self._flying: list[tuple[int, int, bytes]] = []
        self._count = 0
        self.lost = self.doubled = self.delayed = 0

    def send(self, payload: bytes, at_ms: int) -> None:
        """Put a message on its way."""
        if self._rng.random() < self._radio.lost:
            self.lost += 1
            return
        copies = 1
        if self._rng.random() < self._radio.doubled:
            self.doubled += 1
            copies = 2
        for _ in range(copies):
            takes_ms = self._radio.least_ms
            if self._rng.random() < self._radio.late:
                self.delayed += 1
                takes_ms += self._rng.randint(0, self._radio.late_ms)
            self._count += 1
            self._flying.append((at_ms + takes_ms, self._count, payload))

    def arrived(self, now_ms: int) -> Iterator[tuple[int, bytes]]:
        """(when, message) of all that is there by ``now_ms``, in the order of arrival."""
        self._flying.sort()
        while self._flying and self._flying[0][0] <= now_ms:
            at_ms, _, payload = self._flying.pop(0)
            yield at_ms, payload


# --- of clocks and batteries ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WallClock:
    """What a device believes the time to be: true time + error, from each instant on.

    ``errors`` are (from true UTC ms, error in ms, or None where it does not know the time),
    ascending. Before the first it does not know.
    """

    errors: tuple[tuple[int, int | None], ...] = ()

    def shows(self, at_ms: int) -> int | None:
        """What it shows at a true instant, or None."""
        error: int | None = None
        for from_ms, told in self.errors:
            if at_ms >= from_ms:
                error = told
        return None if error is None else at_ms + error


@dataclass(frozen=True, slots=True)
class Battery:
    """Full at an instant, empty ``lasts_ms`` later; flat until it is charged, at given instants."""

    full_ms: int
    lasts_ms: int
    charged_ms: tuple[int, ...] = ()

    def permille(self, at_ms: int) -> int:
        """The charge; 0 is flat."""
        full_ms = max((self.full_ms, *(one for one in self.charged_ms if one <= at_ms)))
        return max(0, 1000 - 1000 * (at_ms - full_ms) // self.lasts_ms)


@dataclass(slots=True)
class FaultyDevice:
    """A device that restarts, whose crystal runs wrong and whose battery goes flat, and its outbox.

    Parameters
    ----------
    taken : sequence of Record
        What it would record, at true instants; ``MEAL`` begins ``values[0]`` ms after ``origin_ms``.
    origin_ms : int
        The true instant of its first start.
    outbox : callable
        Makes the outbox of a boot from its number: over the same slots where they outlive a
        power cut, over fresh ones where they do not.
    restarts_ms : tuple of int
        True instants at which power fails for a moment.
    skew_ppm : float
        How much faster than time its uptime runs.
    battery : Battery, optional
        Where given, the charge in its beats, and the time in which it is off.
    hello : tuple
        (model, firmware, detector).

    Attributes
    ----------
    truth : dict
        (boot, seq) -> true instant, of every record that reached the ring.
    missed : int
        Records it did not take: the battery was flat.
    """

    taken: Sequence[Record]
    origin_ms: int
    outbox: Callable[[int], Outbox]
    restarts_ms: tuple[int, ...] = ()
    skew_ppm: float = 0.0
    wall: WallClock = field(default_factory=WallClock)
    battery: Battery | None = None
    hello: tuple[str, str, int] = ("simulated", "1", 1)
    truth: dict[tuple[int, int], int] = field(default_factory=dict)
    missed: int = 0
    boot: int = 0
    _ring: Outbox | None = None
    _started_ms: int = 0
    _at: int = 0
    _restarted: int = 0
    _off: bool = False

    @property
    def ring(self) -> Outbox:
        """The outbox of this boot."""
        assert self._ring is not None
        return self._ring

    def uptime(self, at_ms: int) -> int:
        """What its crystal has counted since this boot; never below 0."""
        return max(0, round((at_ms - self._started_ms) * (1 + self.skew_ppm * 1e-6)))

    def flat(self, at_ms: int) -> bool:
        """Whether it is off for want of charge."""
        return self.battery is not None and self.battery.permille(at_ms) == 0

    def take_until(self, now_ms: int) -> None:
        """Live until ``now_ms``: start, restart, take what is taken."""
        if self._ring is None:
            self._start(self.origin_ms)
        while self._at < len(self.taken) and self.taken[self._at].at_ms <= now_ms:
            one = self.taken[self._at]
            self._at += 1
            if self.flat(one.at_ms):
                self.missed += 1
                self._off = True
                continue
            if self._off:
                self._off = False
                self._start(one.at_ms - 1_000)
            self._restart_until(one.at_ms)
            seq = self.ring.put(one.kind, self.uptime(one.at_ms), self._values(one))
            self.truth[self.boot, seq] = one.at_ms
        self._restart_until(now_ms)

    def send(self, air: Air, at_ms: int) -> None:
        """Hand all that is due to the air; nothing from a flat battery until its next start."""
        if self._off or self.flat(at_ms):
            return
        self.ring.go_back(at_ms)
        if self.ring.hello_due:
            self._say_hello(at_ms)
        while (run := self.ring.take(at_ms)) is not None:
            sent_ms = self.uptime(at_ms) if run.boot == self.boot else None
            head = wire.pack_head(run.boot, run.first_seq, run.count, sent_ms, self.wall.shows(at_ms))
            air.send(head + run.body, at_ms)

    def hear(self, marks: dict[int, int], at_ms: int) -> None:
        """A mark of the hub came through."""
        if not (self._off or self.flat(at_ms)):
            self.ring.release(marks, at_ms)

    def request_mark(self, at_ms: int) -> None:
        """Ask the hub to commit now."""
        seq = self.ring.put(wire.MARK_REQUEST, self.uptime(at_ms), ())
        self.truth[self.boot, seq] = at_ms

    def _restart_until(self, now_ms: int) -> None:
        while self._restarted < len(self.restarts_ms) and self.restarts_ms[self._restarted] <= now_ms:
            at_ms = self.restarts_ms[self._restarted]
            self._restarted += 1
            if not self.flat(at_ms):
                self._start(at_ms)

    def _start(self, at_ms: int) -> None:
        self.boot += 1
        self._started_ms = at_ms
        self._ring = self.outbox(self.boot)
        self._say_hello(at_ms)

    def _say_hello(self, at_ms: int) -> None:
        self.truth[self.boot, self.ring.put_hello(self.uptime(at_ms), *self.hello)] = at_ms

    def _values(self, one: Record) -> tuple[int | str, ...]:
        if one.kind == wire.MEAL:
            began_ms, lasted_ms, *rest = one.values
            began = self.uptime(self.origin_ms + int(began_ms))  # one that began before this boot begins with it
            return began, min(int(lasted_ms), self.uptime(one.at_ms) - began), *rest
        if one.kind == wire.BEAT and self.battery is not None:
            return self.battery.permille(one.at_ms), *one.values[1:]
        return one.values


def in_step(device: FaultyDevice, instants: Iterable[int], up: Air, hear: Callable[[int, bytes], None]) -> None:
    """Let a device live through instants: it takes, sends, and ``hear(arrived_ms, payload)`` is the hub."""
    for at_ms in instants:
        device.take_until(at_ms)
        device.send(up, at_ms)
        for arrived_ms, payload in up.arrived(at_ms):
            hear(arrived_ms, payload)
