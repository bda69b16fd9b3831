"""What every device of ours does beside measuring: settings, boot number, ring, beats, a watchdog.

``read_settings`` reads the one file of wiring and names a device has. ``Node`` holds the ring on
flash and says a beat every five minutes; whatever carries the records (``uplink``, ``gatt``)
works on its outbox. The watchdog is fed by progress alone: a sensor that stopped answering
restarts the device, a hub that is away does not.
"""

import json

from firmware_bridge.flash import FileSlots, next_boot
from firmware_bridge.kinds import BATTERY_UNKNOWN, BEAT, WORN_UNKNOWN
from firmware_bridge.outbox import Outbox

BEAT_MS = 300_000
FIRMWARE = "0.1.0"
PATIENCE_MS = 30_000
"""So long without a reading of the sensor, and the watchdog is fed no more."""


def read_settings(path: str, needed: dict[str, type]) -> dict[str, object]:
    """The settings of a device: a JSON object.

    Parameters
    ----------
    path : str
    needed : dict of str to type
        Keys that must be there, each with the type of its value.

    Raises
    ------
    ValueError
        Names the file, the key and what it must be.
    """
    with open(path) as file:
        try:
            told = json.load(file)
        except ValueError as broken:
            raise ValueError(f"{path} must be JSON: {broken}") from None
    if not isinstance(told, dict):
        raise ValueError(f"{path} must be one object, is {type(told).__name__}")  # noqa: TRY004 - a file's content is a value
    for key, kind in needed.items():
        if not isinstance(told.get(key), kind):
            raise ValueError(f"{path}: {key} must be {kind.__name__}, is {told.get(key)!r}")  # noqa: TRY004
    return told


def trust_of(settings, folder: str):  # type: ignore[no-untyped-def]
    """What the broker is checked against, a ``tls.Trust``; None where the link is in the clear.

    ``authority`` names a PEM file in ``folder``; ``broker_name`` is what the broker's certificate bears
    where that is not ``broker``.
    """
    pem = settings.get("authority")
    if pem is None:
        return None
    from firmware_bridge.tls import Trust, authority  # noqa: PLC0415 - a device in the clear does not pay for it

    with open(folder + pem, "rb") as file:
        return Trust(authority(file.read()), settings.get("broker_name", settings["broker"]))


class Node:
    """Ring, boot and beats of one device.

    Parameters
    ----------
    folder : str
        Where ring and boot counter live, with its slash.
    slots, record_bytes, message_bytes : int
        Size of the ring and of what is made of it.
    uptime_ms : callable
        Milliseconds since this boot.
    feed : callable
        Feeds the watchdog.
    good : callable
        Called once, with the hub's first mark: this firmware works, do not roll it back.

    Attributes
    ----------
    outbox : Outbox
    battery, worn, charging : int
        What beats say; set by the device.
    """

    def __init__(  # type: ignore[no-untyped-def]  # callables: no typing there
        self, folder: str, *, slots: int, record_bytes: int, message_bytes: int, uptime_ms, feed, good
    ) -> None:
        ring = FileSlots(folder + "ring", slots, record_bytes)
        self._slots = ring
        boot = next_boot(folder + "boot", at_least=ring.newest_boot + 1)
        self.outbox = Outbox(ring, boot, message_bytes)  # type: ignore[arg-type]  # another with its methods
        self._uptime = uptime_ms
        self._feed = feed
        self._good = good
        self._held = self.outbox.held
        self._beat_ms = 0
        self._sensed_ms = uptime_ms()
        self.battery, self.worn, self.charging = BATTERY_UNKNOWN, WORN_UNKNOWN, 0

    def put(self, events: tuple[tuple[int, int, tuple[int, ...]], ...]) -> None:
        """Keep what was measured: (kind, uptime, values) each."""
        for kind, at_ms, values in events:
            self.outbox.put(kind, at_ms, values)

    def sensed(self) -> None:
        """The sensor answered: that is progress."""
        self._sensed_ms = self._uptime()

    def step(self) -> None:
        """A beat where it is due; the watchdog where there is progress; ``good`` with the first mark."""
        now = self._uptime()
        if now >= self._beat_ms:
            self._beat_ms = now - now % BEAT_MS + BEAT_MS
            self.outbox.put(BEAT, now, (self.battery, self.worn, self.charging))
        if now - self._sensed_ms < PATIENCE_MS:
            self._feed()
        if self._good is not None and self.outbox.held < self._held:
            good, self._good = self._good, None
            good()
        self._held = self.outbox.held

    def close(self) -> None:
        """Close the ring's file."""
        self._slots.close()
