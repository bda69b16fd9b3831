"""A peer for the ingest bench: thingsboard-gateway, fed by the same publisher, in front of a stand-in for its platform.

The gateway lives in an environment of its own (its MQTT client overwrites paho's files); nothing of
it is imported here. It sends nothing before its platform has told it the session's limits
(the call ``getSessionLimits`` on ``v1/devices/me/rpc/request/+``), which a plain broker never does;
so a plain broker with `Platform` beside it is what it is given: the calls answered, telemetry
acknowledged by the broker at QoS 1 and counted. Everything on loopback, in a folder of its own.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

__all__ = ["FIELDS", "TOPIC", "Peer", "Platform", "Rate", "broker", "measure"]

TOPIC = "peer/tracker"
PACE = "pace"
_TOKEN = "token"
_NOWHERE = "http://127.0.0.1:9"
"""It asks its maker for updates at each start; what is measured here asks nobody."""
FIELDS = ("lasted", "scratch", "shake", "low", "mid", "high", "rest", "restless", "worn")
_WAIT_S = 20


def broker(port: int, folder: Path) -> str:
    """A mosquitto configuration of nothing but defaults, and what the platform lets a gateway see: on a
    plain broker it would hear its own calls as calls of the platform, and answer them itself.
    """
    seen = "read v1/devices/me/rpc/response/+", "read v1/devices/me/attributes/response/+"
    told = "v1/devices/me/rpc/request/+", "v1/devices/me/attributes/request/+", "v1/devices/me/attributes"
    told += "v1/devices/me/telemetry", "v1/gateway/connect", "v1/gateway/attributes", "v1/gateway/telemetry"
    rights = ["topic readwrite #", f"user {_TOKEN}", *(f"topic {name}" for name in seen)]
    (folder / "acl").write_text("\n".join([*rights, *(f"topic write {name}" for name in told), ""]))
    return f"listener {port} 127.0.0.1\nallow_anonymous true\nacl_file {folder}/acl\nuser root\n"


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows per second from the first that reached the platform to the last, and CPU us a row of the gateway."""

    rows: float
    cpu_us: float


class Platform:
    """What the gateway takes for ThingsBoard: answers its calls, counts the rows of its telemetry."""

    def __init__(self, port: int) -> None:
        self.rows = 0
        self.first_s = self.last_s = 0.0
        self.ready = threading.Event()
        self.moved = threading.Condition()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id="platform")
        self._client.on_message = self._on_message
        self._client.connect("127.0.0.1", port)
        self._client.subscribe(
            [("v1/devices/me/rpc/request/+", 1), ("v1/devices/me/attributes/request/+", 1), ("v1/gateway/#", 1)]
        )
        self._client.loop_start()

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        topic = message.topic
        if topic.startswith("v1/devices/me/rpc/request/"):
            limits = {"rateLimits": {}, "maxInflightMessages": 100, "maxPayloadSize": 65_536}
            self._client.publish(topic.replace("request", "response"), json.dumps(limits), qos=1)
            self.ready.set()
        elif topic.startswith("v1/devices/me/attributes/request/"):
            self._client.publish(topic.replace("request", "response"), "{}", qos=1)
        elif topic == "v1/gateway/telemetry":
            now_s = time.perf_counter()
            rows = sum(len(told) for told in json.loads(message.payload).values())
            with self.moved:
                self.first_s = self.first_s or now_s
                self.last_s = now_s
                self.rows += rows
                self.moved.notify_all()
            self._client.publish(PACE, str(self.rows))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class Peer:
    """A running thingsboard-gateway of that interpreter, with one MQTT connector on the same broker."""

    def __init__(self, python: Path, port: int, folder: Path, *, storage: str) -> None:
        self._python, self._folder = python, folder
        config = folder / "config"
        config.mkdir(parents=True)
        (folder / "logs").mkdir()
        gateway = {
            "thingsboard": {
                "host": "127.0.0.1",
                "port": port,
                "remoteShell": False,
                "remoteConfiguration": False,
                "statistics": {"enable": False},
                "minPackSendDelayMS": 1,
                "minPackSizeToSend": 500,
                "qos": 1,
                "security": {"type": "accessToken", "accessToken": _TOKEN},
            },
            "storage": {
                "type": storage,
                "read_records_count": 500,
                "max_records_count": 100_000,
                "data_file_path": f"{folder}/data.db",
                "messages_ttl_check_in_hours": 1,
                "messages_ttl_in_days": 7,
            },
            "grpc": {"enabled": False},
            "connectors": [{"type": "mqtt", "name": "peer", "configuration": "mqtt.json"}],
        }
        row = {key: {"type": "integer", "key": key, "value": f"${{{key}}}"} for key in FIELDS}
        connector = {
            "broker": {
                "host": "127.0.0.1",
                "port": port,
                "clientId": "peer",
                "version": 5,
                "maxMessageNumberPerWorker": 10,
                "maxNumberOfWorkers": 100,
                "security": {"type": "anonymous"},
            },
            "mapping": [
                {
                    "topicFilter": TOPIC,
                    "subscriptionQos": 1,
                    "converter": {
                        "type": "json",
                        "deviceInfo": {
                            "deviceNameExpressionSource": "constant",
                            "deviceNameExpression": "tracker",
                            "deviceProfileExpressionSource": "constant",
                            "deviceProfileExpression": "default",
                        },
                        "sendDataOnlyOnChange": False,
                        "timeout": 60_000,
                        "attributes": [],
                        "timeseries": list(row.values()),
                    },
                }
            ],
            "requestsMapping": {},
        }
        logs = {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"err": {"class": "logging.StreamHandler", "level": "WARNING"}},
            "root": {"level": "WARNING", "handlers": ["err"]},
        }
        for name, said in (("tb_gateway", gateway), ("mqtt", connector), ("logs", logs)):
            (config / f"{name}.json").write_text(json.dumps(said))

    def __enter__(self) -> Self:
        with (self._folder / "said.log").open("wb") as said:
            self._process = subprocess.Popen(
                [self._python, "-c", "from thingsboard_gateway.tb_gateway import main; main()"],
                cwd=self._folder,
                env={
                    "TB_GW_CONFIG_DIR": str(self._folder / "config"),
                    "PATH": "/usr/bin:/bin",
                    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), _NOWHERE),
                },
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        return self

    @property
    def cpu_s(self) -> float:
        """CPU seconds the process has used so far (Linux, clock ticks of 10 ms)."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    @property
    def said(self) -> str:
        """The last lines it printed."""
        return (self._folder / "said.log").read_text(errors="replace")[-2_000:]

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def measure(python: Path, port: int, folder: Path, *, storage: str, publisher, messages: int) -> Rate:
    """What the gateway brings to its platform of ``messages`` rows that ``publisher()`` sends to `TOPIC`.

    Raises
    ------
    RuntimeError
        It did not start, or stopped bringing rows; with what it printed.
    """
    with Platform(port) as platform, Peer(python, port, folder, storage=storage) as peer:
        if not platform.ready.wait(_WAIT_S):
            raise RuntimeError(f"thingsboard-gateway must ask for its limits within {_WAIT_S} s:\n{peer.said}")
        time.sleep(5)  # its connector subscribes after that
        cpu_s = peer.cpu_s
        with publisher():
            reached = -1
            while platform.rows < messages:
                if reached == platform.rows:
                    raise RuntimeError(f"{reached} of {messages} rows arrived, then none for {_WAIT_S} s:\n{peer.said}")
                reached = platform.rows
                with platform.moved:
                    platform.moved.wait_for(lambda: platform.rows >= messages, _WAIT_S)
        cpu_s = peer.cpu_s - cpu_s
    return Rate(platform.rows / (platform.last_s - platform.first_s), cpu_s / messages * 1e6)
