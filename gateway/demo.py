"""The demo: an embedded broker, a simulated household and the hub, on this machine only.

The broker and the simulator are child processes; they meet the gateway only over MQTT, a
pipe and files. The simulator publishes six simulated hours, waits until the hub has marked
every record, then says ``advance``; the hub's clock is stepped by that word alone.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.app import Gateway, listening_socket
from gateway.commands import run_command
from gateway.config import Config, Mqtt, Web
from gateway.dialogue import Answer
from gateway.errors import ConfigError, ScentwalkError
from gateway.links.broker import EmbeddedBroker
from gateway.links.clock import SteppedClock
from gateway.store import Database

__all__ = ["DemoOptions", "play_demo"]

_LEAVE_S = 2.0
_LONGEST_LINE_S = 120.0
"""Hang guard for one simulated step; a step takes well under a second."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to play and where: ports on 127.0.0.1, a new database file, how to show the answer.

    ``database`` None plays into a folder that is removed afterwards.
    """

    scenario: str
    seed: int
    once: bool
    database: Path | None
    web_port: int
    mqtt_port: int
    truth: Path | None
    budget: int
    show: Callable[[Answer], None]
    say: Callable[[str], None]


async def play_demo(options: DemoOptions) -> Answer:
    """Play a story through the real path, show the answer, and (unless ``once``) keep serving.

    Raises
    ------
    PortBusy
        A port is taken; the message names the option that chooses another.
    ConfigError
        The database file exists already, or the scenario does not.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scentwalk-")))
        path = folder / "home.db" if options.database is None else options.database
        if path.exists():
            raise ConfigError(f"--db must name a new file, because a story starts from nothing; {path} exists")
        listener = None
        if not options.once:
            listener = listening_socket("127.0.0.1", options.web_port, option="--web-port")
            stack.callback(listener.close)
            options.say(f"The page will fill at http://127.0.0.1:{options.web_port} while the story is played")
        options.say(f"Starting an MQTT broker of its own on 127.0.0.1:{options.mqtt_port}")
        broker = EmbeddedBroker(options.mqtt_port)
        await asyncio.to_thread(broker.start)
        stack.callback(broker.stop)
        options.say(f"Simulating the household of the story {options.scenario!r} (seed {options.seed})")
        (folder / "owner").mkdir()
        simulator = await _start_simulator(options, folder / "owner")
        try:
            start_ms = await _first_instant(simulator)
            database = stack.enter_context(Database(path, clock_source="simulation"))
            clock = SteppedClock(start_ms)
            _enter_as_an_owner_would(database, folder / "owner", start_ms)
            config = Config(
                mqtt=Mqtt(port=options.mqtt_port, protocol=311, inflight=100),
                web=Web(port=options.web_port),
                answer=replace(Config().answer, token_budget=options.budget),
            )
            gateway = Gateway(config, clock, database, banner="Simulated household: none of this is a real pet")
            story = _Story(options, gateway, clock, simulator)
            await gateway.run(listener=listener, also={"story": story.play()})
        finally:
            await _end(simulator)
        if story.answer is None:
            raise ScentwalkError("the story was ended before its last instant; no answer was given")
        return story.answer


async def _start_simulator(options: DemoOptions, owner: Path) -> asyncio.subprocess.Process:
    arguments = [
        "--scenario", options.scenario,
        "--seed", str(options.seed),
        "--broker-port", str(options.mqtt_port),
        "--owner-dir", str(owner),
    ]  # fmt: skip
    if options.truth is not None:
        arguments += ["--truth", str(options.truth)]
    if not options.once:
        arguments.append("--live")
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "device_sim", *arguments, stdout=asyncio.subprocess.PIPE
    )


async def _line(simulator: asyncio.subprocess.Process) -> list[str]:
    """The simulator's next line, split; an error where it ended or fell silent."""
    assert simulator.stdout is not None
    try:
        line = await asyncio.wait_for(simulator.stdout.readline(), _LONGEST_LINE_S)
    except TimeoutError:
        raise ScentwalkError(f"the simulator must speak within {_LONGEST_LINE_S:g} s, it did not") from None
    if not line:
        code = await simulator.wait()
        raise ScentwalkError(f"the simulator must run to the story's end, it ended with status {code}")
    return line.decode("ascii", "replace").split()


async def _first_instant(simulator: asyncio.subprocess.Process) -> int:
    words = await _line(simulator)
    if len(words) != 2 or words[0] != "start":
        raise ScentwalkError(f"the simulator must begin with 'start MS', said {' '.join(words)!r}")
    return int(words[1])


def _enter_as_an_owner_would(database: Database, owner: Path, now_ms: int) -> None:
    """Household, labels, guides and log, through the same commands an owner uses."""
    with database.transaction() as tx:
        for command, files in (
            ("household", sorted(owner.glob("household.toml"))),
            ("product", sorted(owner.glob("products/*.json"))),
            ("passages", sorted(owner.glob("passages/*.md"))),
            ("loglines", sorted(owner.glob("log.jsonl"))),
            ("marklines", sorted(owner.glob("marks.jsonl"))),
        ):
            for file in files:
                run_command(tx, command, {"text": file.read_text("utf-8"), "source": file.name}, now_ms=now_ms)


class _Story:
    """Steps the hub's clock by the simulator's words, asks the story's question at the end."""

    def __init__(
        self, options: DemoOptions, gateway: Gateway, clock: SteppedClock, simulator: asyncio.subprocess.Process
    ) -> None:
        self._options = options
        self._gateway = gateway
        self._clock = clock
        self._simulator = simulator
        self.answer: Answer | None = None

    async def play(self) -> None:
        """Until the story's last instant; then answer, and go on at 1x or end."""
        question = "Why is Max scratching more this week?"
        days = 0
        while True:
            words = await _line(self._simulator)
            if words[0] == "ask":
                question = " ".join(words[1:])
                continue
            if words[0] not in ("advance", "end") or len(words) != 2:
                raise ScentwalkError(f"the simulator must say 'advance MS' or 'end MS', said {' '.join(words)!r}")
            self._clock.advance(int(words[1]) - self._clock.now_ms())
            days += 1
            if words[0] == "end":
                break
        await self._gateway.watch_now()
        await self._gateway.learn_now()
        self._options.say(f"Played {days} steps of six hours. Asked: {question}\n")
        number, answer = await asyncio.to_thread(self._gateway.ask, question)
        self.answer = answer
        self._options.show(answer)
        if self._options.once:
            self._gateway.stop()
            return
        self._clock.release()
        self._options.say(
            f"\nThe page is at http://127.0.0.1:{self._options.web_port} (this answer: /answer/{number}). Ctrl-C ends."
        )


async def _end(simulator: asyncio.subprocess.Process) -> None:
    """End the child we started, by its own handle."""
    if simulator.returncode is None:
        simulator.terminate()
        try:
            await asyncio.wait_for(simulator.wait(), _LEAVE_S)
        except TimeoutError:
            simulator.kill()
            await simulator.wait()
