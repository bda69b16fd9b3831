"""A tracker's entry point: accelerometer -> motion -> ring -> Bluetooth, or Wi-Fi. Device only; the logic is elsewhere.

Away from home it keeps on measuring; what its ring holds is handed over when a hub, or a
``bridge``, comes near. Its settings are one JSON file, ``device.json``: see docs/maker.md.
"""

from random import getrandbits

from firmware_bridge.board import WallClock, accelerometer, battery, good_boot, join, watchdog
from firmware_bridge.kinds import NOT_WORN, WORN
from firmware_bridge.motion import DETECTOR, Motion
from firmware_bridge.node import FIRMWARE, Node, read_settings, trust_of
from firmware_bridge.steady import SteadyClock, pause_ms

SETTINGS = {"device": str, "sda": int, "scl": int}
OVER_WIFI = {"ssid": str, "password": str, "broker": str, "port": int}
"""Needed too where ``carry`` is ``"wifi"``; without it records go over Bluetooth."""
HELLO = ("scenttag-1", FIRMWARE, DETECTOR)
WAIT_MS = 1_000
"""No wait for the broker is longer: the sensor's queue holds 1.28 s."""
LOOK_MS = 200
"""Five readings wait by then; the sensor's queue holds 32."""


class Tracker:
    """One collar, stepped by its main loop.

    Parameters
    ----------
    settings : dict
        As ``SETTINGS``; ``slots`` and the pin ``battery`` may be there too.
    folder : str
        Where ring and boot counter are kept.
    uptime_ms : callable
        Milliseconds since this boot.
    feed : callable
        Feeds the watchdog.
    """

    def __init__(self, settings, folder: str, *, uptime_ms, feed) -> None:  # type: ignore[no-untyped-def]
        self._uptime = uptime_ms
        self.sensor = accelerometer(settings)
        self._charge = battery(settings)
        self.motion = Motion()
        self.node = Node(
            folder,
            slots=settings.get("slots", 2_700),  # seven days
            record_bytes=64,
            message_bytes=settings.get("message_bytes", 1_024),
            uptime_ms=uptime_ms,
            feed=feed,
            good=good_boot,
        )

    def step(self) -> None:
        """The readings that wait; a record where a span is over."""
        for _ in range(self.sensor.waiting()):
            x, y, z = self.sensor.read()
            self.node.sensed()
            events = self.motion.feed(self._uptime(), x, y, z)
            if events:
                self.node.put(events)
        self.node.battery = self._charge()
        self.node.worn = WORN if self.motion.worn else NOT_WORN
        self.node.step()


def by_wifi(tracker: Tracker, settings, *, uptime_ms, steady_ms, wall_ms):  # type: ignore[no-untyped-def]
    """What carries its records over MQTT."""
    from firmware_bridge.uplink import Uplink  # noqa: PLC0415 - one of two ways; the other stays out of RAM

    return Uplink(
        settings["device"],
        tracker.node.outbox,
        settings["broker"],
        settings["port"],
        steady_ms=steady_ms,
        stamp=lambda: (uptime_ms(), wall_ms()),
        getrandbits=getrandbits,
        hello=HELLO,
        user=settings.get("user"),
        password=settings.get("secret"),
        wait_ms=WAIT_MS,
    )


def by_bluetooth(tracker: Tracker, settings, *, uptime_ms, steady_ms, wall_ms):  # type: ignore[no-untyped-def]
    """What carries its records over Bluetooth."""
    from bluetooth import BLE  # type: ignore[import-not-found]  # noqa: PLC0415

    from firmware_bridge.gatt import GattUplink  # noqa: PLC0415
    from firmware_bridge.peripheral import Peripheral  # noqa: PLC0415

    uplink = GattUplink(
        settings["device"],
        tracker.node.outbox,
        steady_ms=steady_ms,
        stamp=lambda: (uptime_ms(), wall_ms()),
        hello=HELLO,
    )
    uplink.say_hello()
    return Peripheral(BLE(), uplink)


def main(folder: str = "") -> None:
    """Run for ever."""
    path = folder + "device.json"
    settings = read_settings(path, SETTINGS)
    wifi = settings.get("carry") == "wifi"
    feed = watchdog()
    clock, wall = SteadyClock(), WallClock()
    tracker = Tracker(settings, folder, uptime_ms=clock, feed=feed)
    if wifi:
        read_settings(path, OVER_WIFI)
        join(settings)
        wall.ask()
        carrier = by_wifi(tracker, settings, uptime_ms=clock, steady_ms=clock, wall_ms=wall)
        carrier.say_hello()
        trust = trust_of(settings, folder)
        if trust is not None:
            trust.secure(carrier)
    else:
        carrier = by_bluetooth(tracker, settings, uptime_ms=clock, steady_ms=clock, wall_ms=wall)
    while True:
        tracker.step()
        carrier.step()
        pause_ms(LOOK_MS)
