"""What ``deploy/`` ships is started and read here, not only looked at.

A real mosquitto runs with the shipped configuration (port, paths and user put in), a real
client speaks MQTT 5 to it, systemd judges the unit, and the example configuration loads; the
four files must also agree with each other.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.config import Config, load

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
PATIENCE_S = 20.0
# Debian keeps servers in sbin, which is on root's PATH only.
SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def program(name: str) -> str:
    found = shutil.which(name, path=SEARCHED)
    assert found, f"the Debian package that brings {name} must be installed (make test installs it)"
    return found


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:.0f} s"
        time.sleep(0.01)


# --- the broker -----------------------------------------------------------------------------


def directives(path: Path) -> dict[str, str]:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


@dataclass
class Broker:
    """The shipped configuration, moved to a folder and a port of the test's own."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program("mosquitto"), "-c", str(self.folder / "mosquitto.conf")], stderr=log, stdout=log
            )
        until(self.answers, f"mosquitto must listen on {self.port}; {(self.folder / 'log').read_text()}")

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(PATIENCE_S)
            self.process = None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shipped = (DEPLOY / "mosquitto.conf").read_text(encoding="utf-8")
    moved = (
        shipped.replace("listener 1883 127.0.0.1", f"listener {port} 127.0.0.1")
        .replace("/etc/mosquitto/scentwalk.", f"{tmp_path}/scentwalk.")
        .replace("persistence_location /var/lib/mosquitto/", f"persistence_location {tmp_path}/")
    )
    assert moved.count(str(tmp_path)) == shipped.count("/etc/mosquitto/scentwalk.") + 1
    # As root, mosquitto becomes the user of that name, who may not enter the test's folder.
    (tmp_path / "mosquitto.conf").write_text(moved + ("user root\n" if os.geteuid() == 0 else ""))
    shutil.copy(DEPLOY / "mosquitto.acl", tmp_path / "scentwalk.acl")
    passwords = tmp_path / "scentwalk.passwd"
    passwords.touch(mode=0o600)
    for user in ("scentwalk", "bowl-max", "tracker-max"):
        subprocess.run([program("mosquitto_passwd"), "-b", str(passwords), user, f"secret of {user}"], check=True)
    ours = Broker(tmp_path, port)
    ours.start()
    yield ours
    ours.stop()


@dataclass
class Caller:
    """A paho client of MQTT 5 that remembers what it was told."""

    client: Client
    welcome: str = ""
    welcomes: queue.Queue[str] = field(default_factory=queue.Queue)
    granted: queue.Queue[int] = field(default_factory=queue.Queue)
    heard: queue.Queue[tuple[str, bytes]] = field(default_factory=queue.Queue)
    published: queue.Queue[str] = field(default_factory=queue.Queue)

    def publish(self, topic: str, payload: bytes) -> str:
        """The broker's own word about one message."""
        self.client.publish(topic, payload, qos=1)
        return self.published.get(timeout=PATIENCE_S)

    def subscribe(self, topic: str) -> int:
        self.client.subscribe(topic, qos=1)
        return self.granted.get(timeout=PATIENCE_S)


@pytest.fixture
def call(broker: Broker) -> Iterator[Callable[..., Caller]]:
    """Connect as a user; everybody is hung up at the end."""
    callers: list[Caller] = []

    def connect(user: str | None, password: str | None = None, *, name: str, keep: bool = False) -> Caller:
        client = Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=MQTTv5)
        if user is not None:
            client.username_pw_set(user, password if password is not None else f"secret of {user}")
        caller = Caller(client)

        def on_message(_client: Client, _userdata: object, message: MQTTMessage) -> None:
            caller.heard.put((message.topic, message.payload))

        client.on_connect = lambda _c, _u, _flags, reason, _p: caller.welcomes.put(str(reason))
        client.on_subscribe = lambda _c, _u, _mid, reasons, _p: caller.granted.put(reasons[0].value)
        client.on_publish = lambda _c, _u, _mid, reason, _p: caller.published.put(str(reason))
        client.on_message = on_message
        lasting = Properties(PacketTypes.CONNECT)
        lasting.SessionExpiryInterval = 3600 if keep else 0
        client.connect("127.0.0.1", broker.port, clean_start=not keep, properties=lasting)
        client.loop_start()
        callers.append(caller)
        caller.welcome = caller.welcomes.get(timeout=PATIENCE_S)
        return caller

    yield connect
    for caller in callers:
        caller.client.disconnect()
        caller.client.loop_stop()


def test_the_broker_accepts_mqtt_5_from_the_hub_and_refuses_strangers(call: Callable[..., Caller]) -> None:
    assert call("scentwalk", name="hub").welcome == "Success"
    assert call(None, name="nobody").welcome == "Not authorized"
    assert call("scentwalk", "guessed", name="thief").welcome == "Not authorized"


def test_a_device_is_heard_in_its_own_name_only(call: Callable[..., Caller]) -> None:
    hub = call("scentwalk", name="hub")
    assert hub.subscribe("scentwalk/1/+/up") == 1
    bowl = call("bowl-max", name="bowl-max")
    assert bowl.publish("scentwalk/1/tracker-max/up", b"not mine") == "Not authorized"
    assert bowl.publish("scentwalk/1/bowl-max/mark", b"a mark of my own") == "Not authorized"
    assert bowl.publish("scentwalk/1/bowl-max/up", b"mine") == "Success"
    assert hub.heard.get(timeout=PATIENCE_S) == ("scentwalk/1/bowl-max/up", b"mine")
    assert hub.heard.empty()


def test_a_device_hears_its_own_mark(call: Callable[..., Caller]) -> None:
    hub, bowl, tracker = (call(user, name=user) for user in ("scentwalk", "bowl-max", "tracker-max"))
    assert bowl.subscribe("scentwalk/1/bowl-max/mark") == 1
    # mosquitto grants a subscription it will not serve: what counts is what arrives.
    tracker.subscribe("scentwalk/1/bowl-max/mark")
    assert hub.publish("scentwalk/1/bowl-max/mark", b"17") == "Success"
    assert bowl.heard.get(timeout=PATIENCE_S) == ("scentwalk/1/bowl-max/mark", b"17")
    assert tracker.publish("scentwalk/1/tracker-max/up", b"still here") in {"Success", "No matching subscribers"}
    assert tracker.heard.empty()


def test_an_oversize_frame_reaches_the_hub_which_keeps_it_as_a_dead_letter(call: Callable[..., Caller]) -> None:
    hub = call("scentwalk", name="hub")
    hub.subscribe("scentwalk/1/+/up")
    frame = b"\xc1" * 200_000
    assert call("bowl-max", name="bowl-max").publish("scentwalk/1/bowl-max/up", frame) == "Success"
    assert hub.heard.get(timeout=PATIENCE_S)[1] == frame


def test_a_queue_longer_than_the_default_waits_whole_and_survives_a_power_cut(
    broker: Broker, call: Callable[..., Caller]
) -> None:
    sent, saved_every = 1_500, int(directives(DEPLOY / "mosquitto.conf")["autosave_interval"])
    hub = call("scentwalk", name="hub", keep=True)
    hub.subscribe("scentwalk/1/+/up")
    hub.client.disconnect()
    hub.client.loop_stop()
    bowl = call("bowl-max", name="bowl-max")
    for number in range(sent):
        assert bowl.publish("scentwalk/1/bowl-max/up", str(number).encode()) == "Success"
    broker.stop(signal.SIGKILL)
    broker.start()
    again = call("scentwalk", name="hub", keep=True)
    heard = [int(again.heard.get(timeout=PATIENCE_S)[1]) for _ in range(sent - saved_every)]
    assert heard == list(range(sent - saved_every))


# --- the configuration ----------------------------------------------------------------------


def test_the_example_configuration_loads_and_differs_from_the_defaults_only_where_it_says_so() -> None:
    ours, default = load(DEPLOY / "scentwalk.toml"), Config()
    assert (ours.web, ours.log, ours.answer, ours.retention) == (
        default.web,
        default.log,
        default.answer,
        default.retention,
    )
    assert (ours.mqtt.host, ours.mqtt.port, ours.mqtt.protocol) == ("127.0.0.1", 1883, 5)
    assert ours.mqtt.password_file == DEPLOY / "mqtt-password"


def test_configuration_broker_and_unit_agree() -> None:
    ours, broker, unit = load(DEPLOY / "scentwalk.toml"), directives(DEPLOY / "mosquitto.conf"), service()
    assert broker["listener"] == f"{ours.mqtt.port} {ours.mqtt.host}"
    assert int(broker["max_inflight_messages"]) >= ours.mqtt.inflight
    assert f"user {ours.mqtt.username}" in (DEPLOY / "mosquitto.acl").read_text(encoding="utf-8").splitlines()
    state = Path("/var/lib") / unit["Service"]["StateDirectory"][0]
    assert ours.database.path.parent == state
    assert unit["Service"]["WorkingDirectory"] == [str(state)]
    assert unit["Service"]["ExecStart"][0].endswith("scentwalk serve --config /etc/scentwalk/scentwalk.toml")


# --- the unit -------------------------------------------------------------------------------

# What keeps a hub that was taken over from taking more; a line lost here is a door left open.
HELD = {
    "User": "scentwalk",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateDevices": "yes",
    "PrivateTmp": "yes",
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "IPAddressDeny": "any",
    "IPAddressAllow": "localhost",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "MemoryDenyWriteExecute": "yes",
    "SystemCallArchitectures": "native",
    "Restart": "on-failure",
}


def service() -> dict[str, dict[str, list[str]]]:
    """The unit by section and key, read as strictly as systemd's own grammar is."""
    sections: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] | None = None
    for number, line in enumerate((DEPLOY / "scentwalk.service").read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line[0] in "#;":
            continue
        if heading := re.fullmatch(r"\[(Unit|Service|Install)\]", line):
            assert heading[1] not in sections, f"line {number}: [{heading[1]}] must stand once"
            current = sections.setdefault(heading[1], {})
            continue
        setting = re.fullmatch(r"([A-Z][A-Za-z]*)=(\S.*|)", line)
        assert setting, f"line {number}: a line must be Key=value without blanks around '=', is {line!r}"
        assert current is not None, f"line {number}: a setting must stand in a section"
        current.setdefault(setting[1], []).append(setting[2])
    return sections


def test_the_unit_has_three_sections_and_holds_its_doors_shut() -> None:
    unit = service()
    assert list(unit) == ["Unit", "Service", "Install"]
    assert {key: unit["Service"].get(key) for key in HELD} == {key: [value] for key, value in HELD.items()}
    assert unit["Unit"]["Wants"] == ["mosquitto.service"]


@pytest.fixture
def placed_unit(tmp_path: Path) -> Path:
    """The unit with a program that exists here; systemd's tools refuse one that does not."""
    if shutil.which("systemd-analyze", path=SEARCHED) is None:
        pytest.skip("systemd-analyze is absent here; the unit was parsed by the test above only")
    text = (DEPLOY / "scentwalk.service").read_text(encoding="utf-8")
    unit = tmp_path / "scentwalk.service"
    unit.write_text(text.replace("/opt/scentwalk/.venv/bin/scentwalk", sys.executable))
    return unit


def test_systemd_finds_nothing_wrong_with_the_unit(placed_unit: Path) -> None:
    judged = subprocess.run(
        [program("systemd-analyze"), "verify", "--man=no", str(placed_unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (judged.returncode, judged.stdout, judged.stderr) == (0, "", "")


def test_systemd_rates_the_exposure_of_the_unit_below_two_of_ten(placed_unit: Path) -> None:
    judged = subprocess.run(
        [program("systemd-analyze"), "security", "--offline=true", "--threshold=20", str(placed_unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-2_000:]
