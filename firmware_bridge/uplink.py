"""The publishing loop: outbox to broker, the hub's marks back, until everything is marked.

Shared by devices and the simulator. One call of ``step`` does what is due and waits at most
as long as it is told: connects (with back-off), publishes within a window of unacknowledged
messages, hears the retained mark, frees what it covers, goes back to the mark after 3 s
without progress or after a reconnect. It never raises for a lost link; ``trouble`` says what
happened last.
"""

from firmware_bridge.kinds import LINK_OFFLINE, LINK_ONLINE, MARK_REQUEST, link_topic, mark_topic, up_topic
from firmware_bridge.mqtt import Backoff, Client, MQTTError, Will
from firmware_bridge.msgpack import WireError
from firmware_bridge.outbox import Outbox
from firmware_bridge.pack import Marks, pack_head
from firmware_bridge.steady import pause_ms

WINDOW = 10
"""Messages on their way at once: half of what brokers allow by default (mosquitto: 20)."""


LISTEN_MS = 300
"""So long a new connection waits for the retained mark before it sends: a device that was
off and finds a full ring would else send again what the hub has had for days."""


class Uplink:
    """Brings one device's outbox to the hub.

    Parameters
    ----------
    device : str
        The device id, which is also its MQTT client id.
    outbox : Outbox
    host, port : str, int
        The broker.
    steady_ms : callable
        Milliseconds that only go forward; for waits, never for dating.
    stamp : callable
        Returns (uptime_ms, wall_ms or None) for ``u`` and ``w`` at the moment of sending.
    getrandbits : callable
        Random source of the back-off.
    hello : tuple
        (model, firmware, detector version).
    user, password, keepalive_s, wait_ms
        As for ``mqtt.Client``.

    Attributes
    ----------
    connects, go_backs, bad_marks : int
        Counters, for the page and the tests.
    trouble : str
        The last thing that went wrong; empty while all is well.
    """

    def __init__(  # type: ignore[no-untyped-def]  # callables: no typing there
        self,
        device: str,
        outbox: Outbox,
        host: str,
        port: int,
        *,
        steady_ms,
        stamp,
        getrandbits,
        hello: tuple[str, str, int],
        user: str | None = None,
        password: str | None = None,
        keepalive_s: int = 30,
        wait_ms: int = 5_000,
    ) -> None:
        self.outbox = outbox
        self._up = up_topic(device)
        self._mark = mark_topic(device)
        self._link = link_topic(device)
        self._now = steady_ms
        self._stamp = stamp
        self._hello = hello
        self._backoff = Backoff(getrandbits)
        self._again_ms = self._now()
        self._listen_until_ms = self._again_ms
        self.client = Client(
            host,
            port,
            device,
            steady_ms,
            user=user,
            password=password,
            keepalive_s=keepalive_s,
            wait_ms=wait_ms,
            will=Will(self._link, LINK_OFFLINE, True),
        )
        self.connects = 0
        self.go_backs = 0
        self.bad_marks = 0
        self.trouble = ""

    @property
    def drained(self) -> bool:
        """Whether the hub has confirmed everything that was put in."""
        return self.outbox.held == 0

    def request_mark(self) -> None:
        """Ask the hub to commit at once: before a sleep, or at the end of a simulated step."""
        self.outbox.put(MARK_REQUEST, self._stamp()[0], ())

    def say_hello(self) -> None:
        """Put a hello; the first thing of a boot, and again after records were dropped."""
        model, firmware, detector = self._hello
        self.outbox.put_hello(self._stamp()[0], model, firmware, detector)

    def step(self, wait_ms: int = 0) -> bool:
        """Do what is due, wait at most ``wait_ms`` for the hub; whether anything moved.

        Two other waits can come on top, each bounded by the client: connecting, and room to
        write.
        """
        try:
            if not self.client.connected:
                return self._connect(wait_ms)
            sent = self._publish()
            return self._hear(0 if sent else wait_ms) or sent
        except MQTTError as gone:
            self.client.close()
            self.trouble = str(gone)
            self._again_ms = self._now() + self._backoff.next_ms()
            return False

    def stop(self) -> None:
        """Say ``offline`` and leave; what is held stays in the outbox."""
        try:
            if self.client.connected:
                self.client.publish(self._link, LINK_OFFLINE, qos=0, retain=True)
                self.client.disconnect()
        except MQTTError as gone:
            self.trouble = str(gone)

    def _connect(self, wait_ms: int) -> bool:
        left = self._again_ms - self._now()
        if left > wait_ms:
            pause_ms(wait_ms)
            return False
        pause_ms(max(0, left))
        self.client.connect()
        self.client.subscribe(self._mark)
        self.client.publish(self._link, LINK_ONLINE, qos=1, retain=True)
        self.connects += 1
        self.outbox.rewind()
        self._listen_until_ms = self._now() + LISTEN_MS
        return True

    def _publish(self) -> bool:
        now = self._now()
        if now < self._listen_until_ms:
            return False
        if self.outbox.go_back(now):
            self.go_backs += 1
        if self.outbox.hello_due:
            self.say_hello()
        moved = False
        while len(self.client.unacked) < WINDOW:
            run = self.outbox.take(now)
            if run is None:
                break
            uptime_ms, wall_ms = self._stamp()
            sent_ms = uptime_ms if run.boot == self.outbox.boot else None
            head = pack_head(run.boot, run.first_seq, run.count, sent_ms, wall_ms)
            self.client.publish(self._up, head, run.body)
            moved = True
        return moved

    def _hear(self, wait_ms: int) -> bool:
        waiting = len(self.client.unacked)
        incoming = self.client.step(wait_ms)
        if incoming is None:
            return len(self.client.unacked) != waiting
        if incoming.topic != self._mark:
            return False
        try:
            marks = Marks(incoming.payload)
        except WireError as bad:
            self.bad_marks += 1
            self.trouble = str(bad)
            return False
        self._listen_until_ms = self._now()
        if self.outbox.release(marks, self._now()):
            self._backoff.reset()  # only progress counts: a broker without a hub stays slow
            self.trouble = ""
        return True
