"""The composition root: opens the database, hands the clock down, runs the named tasks.

One TaskGroup holds everything that waits: the link, ingest, learn, the page. SIGTERM or
Ctrl-C ends them all; what was stored is durable, what was not was never acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import uvicorn

from gateway.ask.adjacency import is_due, rewritten
from gateway.ask.answer import answer_json
from gateway.ask.ask import Conversation, ask
from gateway.ask.restated import late_records, told_verdicts, verdict_now
from gateway.commands import begin_command, keep_aliases, rederive, run_command
from gateway.errors import ConfigError, DatabaseBusy, HouseholdError, PortBusy, StoreError
from gateway.knowledge.apart import end_reading
from gateway.learn import catch_up, refresh_facts, watch_floors
from gateway.links.ble_identity import RadioKey, may_hand_over
from gateway.links.clock import Clock, SystemClock
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest, Links, NoLink
from gateway.links.loopback import close_door, open_door, read_door, send_command
from gateway.links.mqtt import MqttLink, MqttSettings
from gateway.links.profileset import ProfileSet, load_profiles
from gateway.links.rollups import Rollups
from gateway.measure.days import add_days, day_interval, local_day
from gateway.ontology.load import load as load_ontology
from gateway.store import Database, Snapshot
from gateway.store.backup import restore
from gateway.store.room import BALLAST_BYTES
from gateway.store.writer import Writer
from gateway.web import LOOPBACK_HOSTS, Done, Services, create_app

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.dialogue import Answer
    from gateway.links.ble import BleLink
    from gateway.store import Transaction

__all__ = ["Gateway", "compare_again", "listening_socket", "mqtt_settings", "run_command_anywhere", "serve"]

Result = TypeVar("Result")
_LEARN_AFTER_MS = 60_000
"""A day is learned a minute after its midnight: the last records of it are then in."""
_WATCH_EVERY_MS = 900_000
"""Hard floors are looked at every quarter of an hour of the home's clock, and after commits."""
_WATCH_PAUSE_S = 1.0
"""After commits at most once in so many real seconds: a device that empties its ring makes many."""
_DAY_MS = 86_400_000
_SAMPLES_MS = 30 * _DAY_MS
"""Bare samples of a scale, of which no row was made, are kept a month: one a second is 10 MB a day."""
_PURGED_AT_ONCE = 2_000
"""Raw rows let go in one transaction: ingest waits for it no longer than for a commit."""
_COMPARED_AT_ONCE = 20
"""Verdicts compared again in one transaction: some ten milliseconds each on a small board."""
_REBUILT_AT_ONCE = 7
"""Days made again in one transaction: about 50 ms of ingest's time on a small board."""
_PAGE_ENDS_S = 2
_GRAPH_LEASE_S = 3600.0
"""Longer than the first compact graph of a million edges takes on the slowest board."""
_REMEMBERED = 200
"""Answers whose conversation is remembered; an older one starts anew."""


class _Stopped(Exception):  # not an error: how the TaskGroup is told to end
    """Raised inside the TaskGroup to end it."""


def listening_socket(host: str, port: int, *, option: str) -> socket.socket:
    """A bound TCP socket for the page.

    Raises
    ------
    PortBusy
        Another program listens there; the message names port and option.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise PortBusy(port, purpose="the page", option=option) from None
    return listener


def mqtt_settings(config: Config) -> MqttSettings:
    """The link's settings from the configuration, the password read from its own file.

    Raises
    ------
    ConfigError
        The password file cannot be read, or the link refuses a value.
    """
    mqtt, password = config.mqtt, None
    try:
        if mqtt.password_file is not None:
            password = mqtt.password_file.read_text(encoding="utf-8-sig").rstrip("\r\n")
        return MqttSettings(
            host=mqtt.host,
            port=mqtt.port,
            protocol=mqtt.protocol,
            client_id=mqtt.client_id,
            inflight=mqtt.inflight,
            keepalive_s=mqtt.keepalive_s,
            username=mqtt.username,
            password=password,
            tls_ca=mqtt.tls_ca,
        )
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"mqtt.password_file must be readable, but {mqtt.password_file}: {problem}") from None
    except ValueError as problem:  # what a link refuses beyond what the configuration does
        raise ConfigError(str(problem)) from None


class Gateway:
    """A hub in one process. Make it inside a running event loop, then `run` it.

    Parameters
    ----------
    config : Config
    clock : Clock
        The one clock, handed to everything that asks for time.
    database : Database
        Open for writing; stays the caller's to close.
    banner : str or None
        A sentence for the top of every page ("simulated data").

    Attributes
    ----------
    failed_watches : int
        Times the hard floors could not be looked at because the store could not write; each time
        they were looked at again.
    """

    def __init__(self, config: Config, clock: Clock, database: Database, *, banner: str | None = None) -> None:
        self.config = config
        self.clock = clock
        self.database = database
        self.writer = Writer(database)
        self._banner = banner
        self._ontology = load_ontology()
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self._committed = asyncio.Event()
        self.failed_watches = 0
        self._conversations: dict[int, Conversation] = {}
        inbox = Inbox(capacity=4 * config.mqtt.inflight)
        self.profiles = load_profiles(enabled=config.profiles.enabled, folder=config.profiles.path)
        self.heard_inbox = Inbox(capacity=4 * config.mqtt.inflight)
        self._radio_keys: tuple[RadioKey, ...] = ()
        self._trackers: frozenset[str] = frozenset()
        self.radio = None if config.ble.adapter is None else self._bluetooth(config.ble.adapter, inbox)
        self.link = MqttLink(mqtt_settings(config), inbox=inbox, clock=clock)
        self._links = Links(self.link) if self.radio is None else Links(self.link, self.radio)
        self._ingest = Ingest(
            inbox=inbox,
            link=self._links,
            writer=self.writer,
            rollups=Rollups(self._ontology),
            clock=clock,
            rule=CommitRule(window=config.mqtt.inflight),
            facts_changed=self._changed.set,
            committed=self._committed.set,
        )
        self.heard_link = self._heard_link()
        self._heard_ingest = Ingest(
            inbox=self.heard_inbox,
            link=self.heard_link or NoLink(),
            writer=self.writer,
            rollups=Rollups(self._ontology),
            clock=clock,
            rule=CommitRule(window=config.mqtt.inflight),
            committed=self._committed.set,
            profiles=self.profiles,
            replies=None if self.heard_link is None else self.heard_link.publish_replies,
        )

    def _heard_link(self) -> MqttLink | None:
        """The connection that hears other makers' devices; None where no profile has a topic.

        It is a session of its own, so that their flood never holds up Wire 1.
        """
        if not self.profiles.topics:
            return None
        settings = mqtt_settings(self.config)
        own = replace(settings, client_id=f"{settings.client_id[:30]}-p", filters=self.profiles.topics)
        return MqttLink(own, inbox=self.heard_inbox, clock=self.clock)

    def _bluetooth(self, adapter: str, inbox: Inbox) -> BleLink:
        """The radio's link. bleak takes time and memory to load, so only where an adapter is named."""
        from gateway.links.ble import BleLink  # noqa: PLC0415
        from gateway.links.ble_radio import Radio  # noqa: PLC0415

        with self.database.snapshot() as reader:
            counters = reader.radio_counters()
        self._load_radio_keys()
        return BleLink(
            adapter,
            radio=Radio(),
            clock=self.clock,
            inbox=inbox,
            heard=self.heard_inbox,
            admits=lambda device: device in self._trackers,
            wanted=lambda heard: self.profiles.wants(heard),  # noqa: PLW0108  # the profiles as they are then
            keys=lambda: self._radio_keys,
            counters=counters,
        )

    def _load_radio_keys(self) -> None:
        """The keys by which a device is known, and who may hand over; also after each command."""
        with self.database.snapshot() as reader:
            known, home = reader.radio_keys(), reader.household()
        self._trackers = may_hand_over(home, self._ontology, listed=self.config.ble.trackers)
        self._radio_keys = tuple(RadioKey(device, irk, key) for device, irk, key in known)

    def stop(self) -> None:
        """Let `run` return. Safe to call twice, and from a signal handler of this loop."""
        self._stop.set()

    async def run(
        self, *, listener: socket.socket | None, also: Mapping[str, Coroutine[Any, Any, None]] | None = None
    ) -> None:
        """Run until `stop`, SIGTERM or SIGINT; raises what a task raised.

        Parameters
        ----------
        listener : socket or None
            Where the page listens; None runs without one.
        also : mapping of task name to coroutine
            Further tasks of the same group; when one of them fails, everything ends.
        """
        await self._must_have_a_zone()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.link.run(), name="mqtt")
                group.create_task(self._ingest.run(), name="ingest")
                if self.profiles.profiles:
                    group.create_task(self._heard_ingest.run(), name="heard")
                if self.heard_link is not None:
                    group.create_task(self.heard_link.run(), name="mqtt-heard")
                if self.radio is not None:
                    group.create_task(self.radio.run(), name="ble")
                group.create_task(self.writer.run(keep_aliases), name="names")
                group.create_task(self._learn(), name="learn")
                group.create_task(self._watch(), name="floors")
                if listener is not None:
                    group.create_task(self._serve_page(listener), name="page")
                for name, coroutine in (also or {}).items():
                    group.create_task(coroutine, name=name)
                group.create_task(self._wait_for_stop(), name="stop")
        except* _Stopped:
            pass
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.remove_signal_handler(number)
            self.writer.close()

    async def rebuild_if_due(self) -> None:
        """After a damaged file was saved: its rows are there, what follows from them is made again,
        some days at a time, so that the hub serves and records meanwhile.
        """
        rollups = Rollups(self._ontology)

        def next_days(tx: Transaction) -> bool:
            due = tx.meta("rebuild_due")
            if due in (None, "0"):
                return False
            rest = rollups.rebuild_from(tx, tx.household(), first=None if due == "1" else due, most=_REBUILT_AT_ONCE)
            tx.set_meta("rebuild_due", "0" if rest is None else rest)
            return rest is not None

        while await self.writer.run(next_days):
            pass

    async def _wait_for_stop(self) -> None:
        await self._stop.wait()
        raise _Stopped

    async def _must_have_a_zone(self) -> None:
        home = await self.writer.run(lambda tx: tx.household())
        if not home.zones:
            raise HouseholdError(
                "the home must have a time zone before the hub starts, found none. "
                "Enter the household with: scentwalk household import FILE.toml"
            )

    # -- learn -----------------------------------------------------------------------------------

    async def learn_now(self) -> None:
        """Learn every closed day, one transaction a day, and derive the facts again."""
        now_ms = self.clock.now_ms()
        while await self.writer.run(partial(catch_up, ontology=self._ontology, now_ms=now_ms, most=1)):
            pass
        await self.writer.run(partial(refresh_facts, ontology=self._ontology))
        while await self.writer.run(partial(compare_again, now_ms=now_ms)) == _COMPARED_AT_ONCE:
            pass

    async def keep_to_retention(self) -> None:
        """Let raw rows and dead letters older than the configuration says go; sums and cited rows stay."""
        now_ms = self.clock.now_ms()
        raw_ms = now_ms - self.config.retention.raw_days * _DAY_MS
        letters_ms = now_ms - self.config.retention.dead_letter_days * _DAY_MS
        while (
            await self.writer.run(lambda tx: tx.purge(before_ms=raw_ms, most=_PURGED_AT_ONCE))
        ).rows >= _PURGED_AT_ONCE:
            pass
        await self.writer.run(lambda tx: tx.purge_dead_letters(before_ms=letters_ms))
        samples_ms = now_ms - _SAMPLES_MS
        kept = [(None, raw_ms), *((one.id, samples_ms) for one in self.profiles.profiles if one.stream is not None)]
        for profile, until_ms in kept:
            purge = partial(_purge_heard, before_ms=until_ms, profile=profile)
            while await self.writer.run(purge) >= _PURGED_AT_ONCE:
                pass

    async def keep_graph(self) -> None:
        """Write the compact graph of a large home again where it is due.

        It is made beside the writer, from a snapshot; the writer has two short turns. A hub
        that is told to stop meanwhile does not wait for it.
        """
        with Snapshot(self.database.path, lease_s=_GRAPH_LEASE_S) as reader:
            if not is_due(reader, self._ontology):
                return
        epoch = await self.writer.run(lambda tx: tx.begin_adjacency())
        with Snapshot(self.database.path, lease_s=_GRAPH_LEASE_S) as reader:
            making = asyncio.ensure_future(asyncio.to_thread(rewritten, reader, self._ontology))
            try:
                made = await asyncio.shield(making)
            except asyncio.CancelledError:
                reader.expire()
                await asyncio.wait({making})
                making.exception()  # the end it was just given
                raise
        await self.writer.run(lambda tx: tx.save_adjacency(made, epoch=epoch))

    async def _learn(self) -> None:
        await self.rebuild_if_due()
        while True:
            self._changed.clear()
            await self.learn_now()
            await self.keep_graph()
            await self.keep_to_retention()
            home = await self.writer.run(lambda tx: tx.household())
            tomorrow = add_days(local_day(self.clock.now_ms(), home.zones), 1)
            due_ms = day_interval(tomorrow, home.zones).start_ms + _LEARN_AFTER_MS
            midnight = asyncio.ensure_future(self.clock.sleep_until(due_ms))
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((midnight, changed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                midnight.cancel()
                changed.cancel()

    # -- hard floors -----------------------------------------------------------------------------

    async def watch_now(self) -> None:
        """Look at every hard floor as of now; where a learned day was restated, have it learned again."""
        now_ms = self.clock.now_ms()

        def watch(tx: Transaction) -> bool:
            watch_floors(tx, self._ontology, now_ms=now_ms)
            return tx.restated_from() is not None or bool(tx.due_verdicts(most=1))

        if await self.writer.run(watch):
            self._changed.set()

    async def _watch(self) -> None:
        while True:
            self._committed.clear()
            # Taken before looking: a clock that is moved meanwhile must wake this task again.
            due_ms = (self.clock.now_ms() // _WATCH_EVERY_MS + 1) * _WATCH_EVERY_MS
            try:
                await self.watch_now()
            except StoreError:  # a full disk must not end the watch: it is tried again below
                self.failed_watches += 1
            quarter = asyncio.ensure_future(self.clock.sleep_until(due_ms))
            committed = asyncio.ensure_future(self._commit_after_a_pause())
            try:
                await asyncio.wait((quarter, committed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                quarter.cancel()
                committed.cancel()

    async def _commit_after_a_pause(self) -> None:
        await asyncio.sleep(_WATCH_PAUSE_S)
        await self._committed.wait()

    # -- the page --------------------------------------------------------------------------------

    async def _serve_page(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        door = open_door(self.database.path, host=host, port=port, token=secrets.token_hex(32))
        services = Services(
            snapshot=self.database.snapshot,
            ask=self.ask,
            now_ms=self.clock.now_ms,
            command=self.command,
            banner=self._banners,
            version=version("scentwalk"),
            token_file=door.token_file,
            radio=lambda: None if self.radio is None else self.radio.state,
            hosts=LOOPBACK_HOSTS | {self.config.web.host},
        )
        server = uvicorn.Server(
            uvicorn.Config(
                create_app(services),
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=_PAGE_ENDS_S,
                server_header=False,
            )
        )
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]  # this loop handles signals
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            end_reading()
            await serving
            close_door(self.database.path)

    def _banners(self) -> str | None:
        """What stands on top of every page: simulated data, a damaged file, a full disk."""
        radio = None if self.radio is None else self.radio.state.banner
        links = (self.link,) if self.heard_link is None else (self.link, self.heard_link)
        found = (
            *(text for text in (self._banner, radio) if text is not None),
            *self.database.alarms(),
            *self.profiles.troubles,
            *dict.fromkeys(line for link in links for line in link.state.alarms),
        )
        return " ".join(found) or None

    def _in_writer(self, write: Callable[[Transaction], Result]) -> Result:
        """Run a write from a worker thread of the page and wait for it."""
        return asyncio.run_coroutine_threadsafe(self.writer.run(write), self._loop).result()

    def ask(self, text: str, *, after: int | None = None) -> tuple[int, Answer]:
        """Answer a question and keep the answer. Called from a worker thread of the page."""
        now_ms = self.clock.now_ms()
        earlier = None if after is None else self._conversations.get(after)
        with self.database.snapshot() as reader:
            answer = ask(text, reader, now_ms=now_ms, budget=self.config.answer.token_budget, conversation=earlier)
            seen = reader.revisions(ref for claim in answer.claims for ref in claim.refs)
        number = self._in_writer(
            lambda tx: tx.save_answer(
                asked_ms=now_ms,
                question=text,
                body=json.dumps(answer_json(answer), ensure_ascii=False),
                cites=tuple(ref for claim in answer.claims for ref in claim.refs),
                told=told_verdicts(answer),
                seen=seen,
            )
        )
        self._conversations[number] = Conversation.after(answer)
        while len(self._conversations) > _REMEMBERED:
            self._conversations.pop(next(iter(self._conversations)))
        return number, answer

    def _restore(self, source: Path) -> Done:
        """Make the database what a backup says, between two transactions."""
        alone = self.writer.run_alone(partial(restore, source))
        asyncio.run_coroutine_threadsafe(alone, self._loop).result()
        marks = self._in_writer(lambda tx: tx.all_marks())
        self._loop.call_soon_threadsafe(self._links.publish_marks, marks)
        self._loop.call_soon_threadsafe(self._changed.set)
        return Done(f"Restored from {source}.")

    def _reprocess(self, *, everything: bool) -> Done:
        """Read the profiles anew, use them from now on, and derive again what other versions read."""
        fresh = load_profiles(enabled=self.config.profiles.enabled, folder=self.config.profiles.path)
        topics_changed = fresh.topics != self.profiles.topics
        self.profiles = fresh
        self._loop.call_soon_threadsafe(self._heard_ingest.use, fresh)
        done = rederive(self._in_writer, fresh, everything=everything)
        more = " The profiles listen to other topics now: restart the hub to hear them." if topics_changed else ""
        self._loop.call_soon_threadsafe(self._changed.set)
        return Done(done.text + more)

    def command(self, name: str, args: Mapping[str, str]) -> Done:
        """Run a write by name. Called from a worker thread of the page."""
        if name == "restore":
            return self._restore(Path(args.get("file", "")))
        if name == "reprocess":
            return self._reprocess(everything=args.get("all") == "yes")
        begun = begin_command(name, args)
        done = self._in_writer(lambda tx: begun(tx, self.clock.now_ms()))
        if self.radio is not None:
            self._load_radio_keys()
        self._conversations = {} if name == "forget" else self._conversations  # they may speak of what is gone
        self._loop.call_soon_threadsafe(self._changed.set)
        self._loop.call_soon_threadsafe(self._committed.set)
        return done


def _purge_heard(tx: Transaction, *, before_ms: int, profile: str | None) -> int:
    return tx.purge_heard(before_ms=before_ms, most=_PURGED_AT_ONCE, profile=profile)


def compare_again(tx: Transaction, *, now_ms: int) -> int:
    """Compare told verdicts once more behind which a day changed, so that whoever asked is told of
    another word; returns how many were, at most a score at once.
    """
    due = tx.due_verdicts(most=_COMPARED_AT_ONCE)
    for told in due:
        found = verdict_now(tx, told)
        late = 0 if found in (None, told.word) else late_records(tx, told, received_after_ms=told.told_ms)
        tx.settle_verdict(told, None if found is None else found.value, late=late, at_ms=now_ms)
    return len(due)


async def serve(config: Config, path: Path, *, web_port: int | None, say: Callable[[str], None]) -> None:
    """Run the hub on the system's clock until SIGTERM or Ctrl-C.

    Raises
    ------
    PortBusy, DatabaseBusy, HouseholdError
        What must hold before a hub can start, and what was found.
    """
    logging.basicConfig(level=config.log.level.upper(), format="%(levelname)s %(name)s: %(message)s")
    port = config.web.port if web_port is None else web_port
    with ExitStack() as stack:
        listener = stack.enter_context(listening_socket(config.web.host, port, option="--web-port"))
        database = stack.enter_context(Database(path, ballast_bytes=BALLAST_BYTES))
        gateway = Gateway(config, SystemClock(), database)
        host, bound = listener.getsockname()[:2]
        say(f"The page is at http://{host}:{bound}. Ctrl-C ends.")
        await gateway.run(listener=listener)


def run_command_anywhere(
    path: Path, command: str, args: Mapping[str, str], *, profiles: Callable[[], ProfileSet] | None = None
) -> tuple[str, str | None]:
    """Run a write: here where nobody holds the file, else in the gateway that does.

    Parameters
    ----------
    path : Path
        The database.
    command : str
    args : mapping of str to str
    profiles : callable, optional
        What ``reprocess`` reads by, where it runs here; a gateway reads its own configuration's.

    Returns
    -------
    tuple of str and str or None
        What was done, and the record to look at.
    """
    try:
        database = Database(path, clock_source="import" if command == "surefeed" else "system")
    except DatabaseBusy:
        return send_command(read_door(path), command, dict(args))
    with database:
        if command == "restore":
            restore(Path(args.get("file", "")), database)
            return f"Restored from {args.get('file', '')}.", None
        ontology = load_ontology()
        if command == "reprocess" and profiles is not None:
            done = rederive(partial(_in_transaction, database), profiles(), everything=args.get("all") == "yes")
        else:
            with database.transaction() as tx:
                done = run_command(tx, command, args, now_ms=SystemClock().now_ms())
        with database.transaction() as tx:
            refresh_facts(tx, ontology)
        with database.transaction() as tx:
            imported = tx.meta("clock_source") != "system"
            now_ms = tx.newest_ms() if imported else SystemClock().now_ms()
            if now_ms is not None:
                catch_up(tx, ontology, now_ms=now_ms)
                while compare_again(tx, now_ms=now_ms) == _COMPARED_AT_ONCE:
                    pass
    return done.text, None if done.opens is None else done.opens.text


def _in_transaction(database: Database, write: Callable[[Transaction], Result]) -> Result:
    with database.transaction() as tx:
        return write(tx)
