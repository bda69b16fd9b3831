"""A bowl's entry point: load cell -> scale -> ring -> MQTT. Device only; the logic is elsewhere.

``import firmware_bridge.bowl; firmware_bridge.bowl.main()`` in the board's ``main.py``. Its
settings are one JSON file, ``device.json``: see docs/maker.md.
"""

from random import getrandbits

from firmware_bridge.board import WallClock, button, good_boot, join, load_cell, watchdog
from firmware_bridge.flash import keep, kept
from firmware_bridge.node import FIRMWARE, Node, read_settings, trust_of
from firmware_bridge.scale import Scale
from firmware_bridge.steady import SteadyClock
from firmware_bridge.uplink import Uplink

SETTINGS = {
    "device": str,
    "ssid": str,
    "password": str,
    "broker": str,
    "port": int,
    "dout": int,
    "sck": int,
    "zero_counts": int,
    "mg_per_1000_counts": int,
}
DETECTOR = 1
KEEP_MS = 900_000
WAIT_MS = 1_000
"""No wait for the broker is longer: ten readings are missed by then."""
ASK_TIME_MS = 3_600_000


class Bowl:
    """One bowl, stepped by its main loop.

    Parameters
    ----------
    settings : dict
        As ``SETTINGS``; ``user``, ``secret``, ``slots``, ``noise_mg``, ``least_mg``, ``fastest_mg_s``, ``button``
        may be there too.
    folder : str
        Where ring, boot counter and the scale's state are kept.
    uptime_ms, steady_ms : callable
        Milliseconds since this boot, for dating; and for waits. One clock on a device.
    wall_ms : callable
        UTC ms, or None.
    """

    def __init__(self, settings, folder: str, *, uptime_ms, steady_ms, wall_ms, feed) -> None:  # type: ignore[no-untyped-def]
        self._folder = folder
        self._uptime = uptime_ms
        self.cell = load_cell(settings)
        self._pressed = button(settings)
        self._down = False
        self.scale = Scale(
            noise_mg=settings.get("noise_mg", 1_000),
            least_mg=settings.get("least_mg", 1_000),
            fastest_mg_s=settings.get("fastest_mg_s", 8_000),
        )
        state = kept(folder + "scale")
        if state is not None:
            self._take_up(state)
        self._kept_ms = uptime_ms()
        self.node = Node(
            folder,
            slots=settings.get("slots", 512),
            record_bytes=64,
            message_bytes=settings.get("message_bytes", 1_024),
            uptime_ms=uptime_ms,
            feed=feed,
            good=good_boot,
        )
        self.uplink = Uplink(
            settings["device"],
            self.node.outbox,
            settings["broker"],
            settings["port"],
            steady_ms=steady_ms,
            stamp=lambda: (uptime_ms(), wall_ms()),
            getrandbits=getrandbits,
            hello=("scentbowl-1", FIRMWARE, DETECTOR),
            user=settings.get("user"),
            password=settings.get("secret"),
            wait_ms=WAIT_MS,
        )
        self.uplink.say_hello()

    def _take_up(self, state: bytes) -> None:
        """Go on where the last boot was; nothing is tared, whatever stands there."""
        try:
            self.scale.restore(state)
        except ValueError:  # of another release: it learns anew
            return
        self.scale.reboot(self._uptime())

    def step(self) -> None:
        """A reading where one waits, then what is due to the hub."""
        events: tuple = ()  # type: ignore[type-arg]
        if self.cell.ready():
            mg = self.cell.read()
            if mg is not None:
                self.node.sensed()
                events = self.scale.feed(self._uptime(), mg)
        down = self._pressed()
        if down and not self._down:  # once a press, however long
            events = events + self.scale.tare(self._uptime())
        self._down = down
        if events:
            self.node.put(events)
        if events or self._uptime() - self._kept_ms >= KEEP_MS:
            self._kept_ms = self._uptime()
            keep(self._folder + "scale", self.scale.save())
        self.node.step()
        self.uplink.step(0 if self.cell.ready() else 20)


def main(folder: str = "") -> None:
    """Run for ever."""
    settings = read_settings(folder + "device.json", SETTINGS)
    feed = watchdog()
    clock = SteadyClock()
    wall = WallClock()
    join(settings)
    bowl = Bowl(settings, folder, uptime_ms=clock, steady_ms=clock, wall_ms=wall, feed=feed)
    trust = trust_of(settings, folder)
    if trust is not None:
        trust.secure(bowl.uplink)
    asked_ms = -ASK_TIME_MS
    while True:
        bowl.step()
        if clock() - asked_ms >= ASK_TIME_MS:
            asked_ms = clock()
            wall.ask()
