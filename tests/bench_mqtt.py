"""CPU a message of our MQTT reader beside paho's, from one mosquitto in the same run; no storing.

Run ``python tests/bench_mqtt.py [MESSAGES]``. Each way subscribes at QoS 1, hands every message over by
the same inbox and acknowledges what was taken together: our link; paho with a thread of its own; paho on
the event loop (``loop_read``, ``manual_ack``); and that once more with what it receives buffered, so that
the socket is not read three times a message. By turns, three rounds. Not a test.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from firmware_bridge import wire
from gateway.links.clock import SystemClock
from gateway.links.inbox import Delivery, Inbox
from gateway.links.mqtt import MqttLink, MqttSettings
from gateway.model import RawFrame
from tests.brokers import Mosquitto

WINDOW = 1_000
PAYLOAD = b"z" * 90


def publish(port: int, messages: int) -> None:
    """Publish at QoS 1 as fast as the broker takes it."""
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="publisher", protocol=paho.MQTTv5)
    client.max_inflight_messages_set(100)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for _ in range(messages):
        last = client.publish(wire.up_topic("bowl"), PAYLOAD, qos=1)
    last.wait_for_publish()
    client.disconnect()
    client.loop_stop()


class OnLoop(paho.Client):
    """paho without its thread: read when the event loop says so; what comes at once is kept where asked."""

    def __init__(self, client_id: str, inbox: Inbox, *, buffered: bool) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=paho.MQTTv5, manual_ack=True)
        self._buffered, self._kept, self._at = buffered, b"", 0
        self._inbox, self._clock = inbox, SystemClock()
        self.on_message = self._hand_over
        self.max_inflight_messages_set(WINDOW)

    def _hand_over(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        raw = RawFrame("mqtt", message.topic, self._clock.now_ms(), message.payload)
        self._inbox.put(Delivery(raw, 1, message.mid, message.qos, message.retain))

    def _sock_recv(self, bufsize: int) -> bytes:
        if not self._buffered:
            return super()._sock_recv(bufsize)
        if self._at == len(self._kept):
            self._kept, self._at = super()._sock_recv(262_144), 0
        found = self._kept[self._at : self._at + bufsize]
        self._at += len(found)
        return found

    def readable(self) -> None:
        """The socket has something: read until nothing whole is left of what came."""
        while self.loop_read() == MQTTErrorCode.MQTT_ERR_SUCCESS and self._at < len(self._kept):
            pass


async def through_link(port: int, messages: int, round_number: int) -> float:
    """Us of CPU a message of `MqttLink`."""
    inbox = Inbox(capacity=4 * WINDOW)
    settings = MqttSettings("127.0.0.1", port, client_id=f"link{round_number}", inflight=WINDOW)
    link = MqttLink(settings, inbox=inbox, clock=SystemClock())
    task = asyncio.create_task(link.run())
    while not link.state.connected:  # noqa: ASYNC110 (a state to look at, no event)
        await asyncio.sleep(0.01)
    spent = await taken(port, messages, inbox, link.acknowledge)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return spent


async def through_paho(port: int, messages: int, round_number: int, *, buffered: bool) -> float:
    """Us of CPU a message of paho on the event loop."""
    inbox = Inbox(capacity=2 * messages)
    client = OnLoop(f"loop{buffered}{round_number}".lower(), inbox, buffered=buffered)
    client.connect("127.0.0.1", port)
    loop, reading = asyncio.get_running_loop(), client.socket()
    loop.add_reader(reading, client.readable)
    await asyncio.sleep(0.2)
    client.subscribe(wire.UP_FILTER, 1)
    await asyncio.sleep(0.2)

    def acknowledge(stored: tuple[Delivery, ...]) -> None:
        for one in stored:
            client.ack(one.packet_id, one.qos)

    spent = await taken(port, messages, inbox, acknowledge)
    loop.remove_reader(reading)
    client.disconnect()
    return spent


async def taken(port: int, messages: int, inbox: Inbox, acknowledge) -> float:
    """Us of CPU a message until all have come by the inbox and been acknowledged."""
    heard = 0
    with publisher(port, messages):
        begun = time.process_time()
        while heard < messages:
            more = await inbox.take(timeout_s=30, enough=100)
            assert more, heard
            heard += len(more)
            acknowledge(more)
        return (time.process_time() - begun) / messages * 1e6


def threaded(port: int, messages: int, round_number: int) -> float:
    """Us of CPU a message of paho in a thread of its own, acknowledging by itself."""
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"bare{round_number}", protocol=paho.MQTTv5)
    heard = []
    client.on_message = lambda *_: heard.append(None)
    client.connect("127.0.0.1", port)
    client.subscribe(wire.UP_FILTER, 1)
    client.loop_start()
    time.sleep(0.3)
    with publisher(port, messages):
        begun = time.process_time()
        while len(heard) < messages:
            time.sleep(0.05)
        spent = (time.process_time() - begun) / messages * 1e6
    client.disconnect()
    client.loop_stop()
    return spent


def publisher(port: int, messages: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "publish", str(port), str(messages)])


def main() -> None:
    """Print one line a round."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    limits = (f"max_inflight_messages {WINDOW}", "max_queued_messages 0", "set_tcp_nodelay true", "persistence false")
    with tempfile.TemporaryDirectory() as name, Mosquitto(Path(name) / "broker", *limits) as broker:
        for number in range(3):
            ours = asyncio.run(through_link(broker.port, messages, number))
            bare = threaded(broker.port, messages, number)
            plain = asyncio.run(through_paho(broker.port, messages, number, buffered=False))
            kept = asyncio.run(through_paho(broker.port, messages, number, buffered=True))
            print(
                f"us of CPU a message: our link {ours:.1f}; paho with its thread {bare:.1f}, on the loop {plain:.1f}, "
                f"on the loop with a buffer {kept:.1f} ({kept / ours:.1f} times ours)",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["publish"]:
        publish(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
