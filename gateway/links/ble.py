"""The Bluetooth link: advertisements to the inbox, trackers that hand over, a radio that is watched.

One radio, one connection at a time, each ended whatever happens. Nothing that the radio does or
fails to do ends the hub or touches MQTT: a failure is a state with a sentence, and is tried
again. A radio that hears nothing proves nothing about a pet: what was not heard is not
recorded, never "inactive". Messages are acknowledged as over MQTT: after the commit, by the
mark, which is written to the device.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.errors import PayloadError, RadioError
from gateway.links import advertisement, bthome
from gateway.links.advertisement import Advertisement
from gateway.links.ble_handover import TRANSPORT, Handover
from gateway.links.ble_identity import RadioKey, identify
from gateway.links.ble_radio import Caller, Radio
from gateway.links.ble_watch import Step, Watch
from gateway.links.clock import Clock
from gateway.links.inbox import Delivery, Inbox
from gateway.model import RawFrame

__all__ = ["COUNTERS", "BleLink", "RadioState", "Standing"]

_log = logging.getLogger(__name__)

COUNTERS = (
    "advertisements",  # heard
    "advertisements_ignored",  # of devices that nothing here reads
    "advertisements_unreadable",  # what no device can have sent, or encrypted under no known key
    "advertisements_replayed",  # encrypted, with a counter that was there before
    "advertisements_dropped",  # the hub did not keep up
    "handovers",  # connections that ended as they should
    "handovers_broken",  # connections that broke; taken up again from the mark
    "handovers_refused",  # of a device that may not hand over by Bluetooth; its records stay with it
    "messages_handed_over",
    "parts_broken",  # notified messages with a part missing; sent again
    "notifications_dropped",  # more notified at once than is held; sent again
    "connections_unclosed",  # BlueZ did not confirm that a connection ended
    "radio_restarts",  # scans stopped and started because nothing was heard
    "radio_power_cycles",  # the adapter switched off and on
    "radio_failures",  # what the adapter or BlueZ refused
)
"""Every counter of the radio since the hub started, each with a line on the page."""

_POWER_PAUSE_S = 1.0
_AGAIN_FIRST_S, _AGAIN_MOST_S = 5.0, 60.0
_CALLERS = 64
"""Addresses remembered: a street full of forged ones fills no memory."""
_REFUSED_SHOWN = 8
"""Names of refused devices that are remembered: a name costs a liar nothing."""
_STARTS_AGAIN_S = 10.0


class Standing(StrEnum):
    """How the radio stands."""

    STARTING = "starting"
    LISTENING = "listening"
    QUIET = "quiet"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class RadioState:
    """For the page. ``since_ms`` is when it came to stand so; for quiet and degraded, when it last heard."""

    adapter: str
    standing: Standing = Standing.STARTING
    since_ms: int | None = None
    trouble: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    """What devices called themselves that were not let hand over, the latest last."""

    @property
    def banner(self) -> str | None:
        """A sentence for the top of the page where the owner should know, else None."""
        if self.standing is not Standing.DEGRADED:
            return None
        why = f" ({self.trouble})" if self.trouble else ""
        return (
            f"The Bluetooth radio {self.adapter} hears nothing, although it was restarted{why}. "
            "What its devices did meanwhile is not recorded."
        )


@dataclass(slots=True)
class _Called:
    """A device of our service: how to reach it, from when on, how often that failed, and what it
    said when it last had nothing left.
    """

    caller: Caller
    done: bytes = b""
    not_before_s: float = 0.0
    failures: int = 0
    proven: bool = False

    @property
    def waiting(self) -> bool:
        return self.caller.waiting and self.caller.said != self.done


class BleLink:
    """The hub's Bluetooth. `run` it in a task; everything else from the same loop.

    Parameters
    ----------
    adapter : str
        ``hci0``, or ``only``.
    radio : Radio
    clock : Clock
    inbox : Inbox
        Where trackers' messages go.
    heard : Inbox
        Where advertisements go.
    admits : callable
        Whether a device of this id may hand over by Bluetooth. Anybody in range may call himself
        anything: nothing is read of others, and nothing is written to them.
    wanted : callable
        Whether anything reads this advertisement; all others are counted and forgotten.
    keys : callable
        The keys of known wearables, asked for with every advertisement.
    counters : mapping
        Device to the last counter of its encrypted advertisements, from the database.
    """

    def __init__(
        self,
        adapter: str,
        *,
        radio: Radio,
        clock: Clock,
        inbox: Inbox,
        heard: Inbox,
        admits: Callable[[str], bool],
        wanted: Callable[[Advertisement], bool],
        keys: Callable[[], tuple[RadioKey, ...]],
        counters: Mapping[str, int],
    ) -> None:
        self._wanted_adapter = adapter
        self._adapter = ""
        self._radio = radio
        self._clock = clock
        self._inbox = inbox
        self._heard = heard
        self._admits = admits
        self._refused: dict[str, None] = {}
        self._wanted = wanted
        self._keys = keys
        self._last_counters = dict(counters)
        self._count: Counter[str] = Counter()
        self._watch = Watch(clock.steady_s())
        self._standing = Standing.STARTING
        self._since_ms: int | None = None
        self._trouble = ""
        self._callers: dict[str, _Called] = {}
        self._called = asyncio.Event()
        self._marks: dict[str, dict[int, int]] = {}
        self._handover: Handover | None = None
        self._handovers = 0

    @property
    def state(self) -> RadioState:
        """How the radio stands now."""
        counted = dict.fromkeys(COUNTERS, 0) | self._count
        counted["advertisements_unreadable"] += self._radio.unreadable
        counted["connections_unclosed"] += self._radio.unclosed
        adapter = self._adapter or self._wanted_adapter
        return RadioState(adapter, self._standing, self._since_ms, self._trouble, counted, tuple(self._refused))

    async def run(self) -> None:
        """Listen and take over until cancelled; begin again after anything that was not foreseen."""
        while True:
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._listen(), name="ble-listen")
                    tasks.create_task(self._take_over(), name="ble-handover")
            except* Exception as problems:  # noqa: BLE001 (a fault of the radio must never end the hub)
                self._fail(f"{problems.exceptions[0]!r}")
                self._stand(Standing.DEGRADED)
                _log.exception("the Bluetooth link failed and begins again")
            await self._clock.sleep_s(_STARTS_AGAIN_S)

    # -- after a commit ----------------------------------------------------------------------------

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        """What has been stored: the connected device's window moves on."""
        handover = self._handover
        if handover is None:
            return
        own = sum(d.raw.transport == TRANSPORT and d.generation == handover.number for d in deliveries)
        if own:
            handover.acknowledged(own)

    def publish_marks(self, marks: dict[str, dict[int, int]]) -> None:
        """Keep these devices' marks (boot to seq); the connected one is told now, others when they connect."""
        self._marks.update(marks)
        if self._handover is not None and self._handover.device in marks:
            self._handover.mark_moved()

    # -- listening ---------------------------------------------------------------------------------

    def _stand(self, standing: Standing) -> None:
        if standing is not self._standing:
            self._standing = standing
            self._since_ms = self._clock.now_ms()

    def _fail(self, why: str) -> None:
        self._count["radio_failures"] += 1
        self._trouble = why
        _log.warning("Bluetooth: %s", why)

    async def _listen(self) -> None:
        """Scan, look every ten seconds whether anything was heard, and do what the watch says."""
        self._watch = Watch(self._clock.steady_s())
        try:
            await self._start()
            while True:
                await self._clock.sleep_s(Watch.LOOK_S)
                step = self._watch.step(self._clock.steady_s())
                if self._watch.quiet_s is not None and self._standing is not Standing.DEGRADED:
                    self._stand(Standing.QUIET)
                if step is not None:
                    await self._do(step)
        finally:
            with contextlib.suppress(RadioError):  # ends either way, and a new scan may start
                await self._radio.hush()

    async def _start(self) -> None:
        try:
            self._adapter = await self._radio.choose(self._wanted_adapter)
            await self._radio.listen(self._adapter, self._on_advertisement)
        except RadioError as problem:
            self._fail(str(problem))
            self._watch.failed(self._clock.steady_s())

    async def _stop(self) -> None:
        try:
            await self._radio.hush()
        except RadioError as problem:
            self._fail(str(problem))

    async def _do(self, step: Step) -> None:
        if step is Step.DEGRADE:
            self._stand(Standing.DEGRADED)
            _log.error("the Bluetooth radio %s hears nothing, whatever was tried", self._adapter)
            return
        await self._stop()
        if step is Step.POWER_CYCLE and self._adapter:
            self._count["radio_power_cycles"] += 1
            try:
                await self._radio.set_powered(self._adapter, False)
                await self._clock.sleep_s(_POWER_PAUSE_S)
                await self._radio.set_powered(self._adapter, True)
            except RadioError as problem:
                self._fail(str(problem))
        else:
            self._count["radio_restarts"] += 1
        await self._start()

    def _on_heard(self) -> None:
        self._watch.heard(self._clock.steady_s())
        if self._standing is not Standing.LISTENING:
            self._trouble = ""
            self._stand(Standing.LISTENING)

    def _on_advertisement(self, heard: Advertisement, caller: Caller | None) -> None:
        self._on_heard()
        self._count["advertisements"] += 1
        if caller is not None:
            self._note(caller)
            return
        device, opened = self._opened(heard)
        if opened is None:
            return
        if not self._wanted(opened):
            self._count["advertisements_ignored"] += 1
            return
        raw = RawFrame(advertisement.TRANSPORT, device, self._clock.now_ms(), advertisement.pack(opened))
        if not self._heard.offer(Delivery(raw, 0, 0, 0)):
            self._count["advertisements_dropped"] += 1
        elif opened.counter is not None:
            self._last_counters[device] = opened.counter

    def _opened(self, heard: Advertisement) -> tuple[str, Advertisement | None]:
        """(whose it is, what it says); nothing where a key must open it and does not, or it was played back."""
        data = heard.service_data(bthome.SERVICE_UUID)
        key = identify(heard.address, data, self._keys())
        device = heard.device if key is None else key.device
        if data is None or key is None or key.bthome is None:
            return device, heard
        try:
            plain, counter = bthome.opened(data, address=heard.address, key=key.bthome)
        except PayloadError:
            self._count["advertisements_unreadable"] += 1
            return device, None
        if counter <= self._last_counters.get(device, -1):
            self._count["advertisements_replayed"] += 1
            return device, None
        service = {uuid: plain if uuid == bthome.SERVICE_UUID else value for uuid, value in heard.service}
        return device, advertisement.advertisement(
            heard.address,
            rssi=heard.rssi,
            name=heard.name,
            manufacturer=dict(heard.manufacturer),
            service=service,
            counter=counter,
        )

    # -- handing over ------------------------------------------------------------------------------

    def _note(self, caller: Caller) -> None:
        """A device of our own was heard; remembered only where it has something."""
        known = self._callers.get(caller.address)
        if known is not None:
            known.caller = caller
        elif caller.waiting:
            if len(self._callers) >= _CALLERS:
                strangers = (address for address, called in self._callers.items() if not called.proven)
                self._callers.pop(next(strangers, next(iter(self._callers))))
            self._callers[caller.address] = _Called(caller)
        if caller.waiting:
            self._called.set()

    def _next_called(self) -> _Called | None:
        """Who is connected to next: who has something and is due, one that handed over before first."""
        now_s = self._clock.steady_s()
        due = [called for called in self._callers.values() if called.waiting and called.not_before_s <= now_s]
        return min(due, key=lambda called: (not called.proven, called.failures, called.not_before_s), default=None)

    async def _take_over(self) -> None:
        while True:
            called = self._next_called()
            if called is not None:
                await self._connect(called)
                continue
            self._called.clear()
            heard = asyncio.ensure_future(self._called.wait())
            again = asyncio.ensure_future(self._clock.sleep_s(_AGAIN_FIRST_S))
            try:
                await asyncio.wait((heard, again), return_when=asyncio.FIRST_COMPLETED)
            finally:
                heard.cancel()
                again.cancel()
            if heard.done() and self._next_called() is None:  # it is not due yet
                await self._clock.sleep_s(1.0)

    def _refuse(self, device: str) -> None:
        self._count["handovers_refused"] += 1
        self._refused.pop(device, None)
        self._refused[device] = None
        if len(self._refused) > _REFUSED_SHOWN:
            self._refused.pop(next(iter(self._refused)))

    async def _connect(self, called: _Called) -> None:
        """One handover. A device that says that it has something and hands over nothing waits longer each time."""
        self._handovers += 1
        taken = 0
        said = called.caller.said
        try:
            async with self._radio.connected(self._adapter, called.caller) as link:
                handover = Handover(
                    link,
                    number=self._handovers,
                    inbox=self._inbox,
                    clock=self._clock,
                    admits=self._admits,
                    marks=lambda device: self._marks.get(device, {}),
                    count=self._count,
                )
                self._handover = handover
                try:
                    await handover.run()
                finally:
                    taken = handover.taken
                    self._handover = None
            broken = False
            if handover.refused:
                self._refuse(handover.device)
            else:
                self._count["handovers"] += 1
        except RadioError as problem:
            self._count["handovers_broken"] += 1
            broken = True
            _log.info("a handover broke and is taken up again from the mark: %s", problem)
        if taken:
            self._on_heard()
        called.failures = 0 if taken else called.failures + 1
        called.proven = called.proven or taken > 0
        wait_s = min(_AGAIN_MOST_S, _AGAIN_FIRST_S * 2 ** max(0, called.failures - 1)) if broken or not taken else 0.0
        called.not_before_s = self._clock.steady_s() + wait_s
        called.done = called.done if broken else said
