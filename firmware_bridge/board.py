"""The board: pins, buses, Wi-Fi, the time of day, the watchdog. Device only.

With ``peripheral`` the one place that imports what only a board has; everything is handed on as
plain objects and callables.
"""

from time import gmtime, time

import network  # type: ignore[import-not-found]  # MicroPython's own, as all of these
import ntptime  # type: ignore[import-not-found]
from machine import ADC, I2C, WDT, Pin, disable_irq, enable_irq  # type: ignore[import-not-found]

from firmware_bridge.hx711 import Hx711
from firmware_bridge.kinds import BATTERY_UNKNOWN
from firmware_bridge.lis3dh import Lis3dh
from firmware_bridge.steady import pause_ms

_CURVE = ((4_200, 1000), (3_950, 750), (3_750, 400), (3_600, 100), (3_300, 0))
_EPOCH_S = 946_684_800 if gmtime(0)[0] == 2000 else 0  # some ports count from 2000
_WATCHDOG_MS = 60_000
_JOIN_TRIES = 100


def load_cell(settings: dict[str, object]) -> Hx711:
    """The converter at the pins ``dout`` and ``sck``."""
    return Hx711(
        Pin(settings["dout"], Pin.IN),
        Pin(settings["sck"], Pin.OUT, value=0),
        zero_counts=settings["zero_counts"],  # type: ignore[arg-type]  # read_settings has checked it
        mg_per_1000_counts=settings["mg_per_1000_counts"],  # type: ignore[arg-type]
        quiet=disable_irq,
        loud=enable_irq,
    )


def accelerometer(settings: dict[str, object]) -> Lis3dh:
    """The sensor on the bus of the pins ``sda`` and ``scl``."""
    return Lis3dh(I2C(0, sda=Pin(settings["sda"]), scl=Pin(settings["scl"]), freq=400_000))


def button(settings: dict[str, object]):  # type: ignore[no-untyped-def]
    """Whether the tare button is pressed, as a callable; never, where no pin is set."""
    number = settings.get("button", -1)
    if number == -1:
        return lambda: False
    pin = Pin(number, Pin.IN, Pin.PULL_UP)
    return lambda: not pin.value()


def battery(settings: dict[str, object]):  # type: ignore[no-untyped-def]
    """The charge in permille, as a callable: of a lithium cell at the pin ``battery``, behind a divider by two."""
    number = settings.get("battery", -1)
    if number == -1:
        return lambda: BATTERY_UNKNOWN
    adc = ADC(Pin(number))
    return lambda: charge(2 * adc.read_uv() // 1000)


def charge(mv: int) -> int:
    """Permille of a lithium cell at rest, from its mV: straight lines between five points of its curve."""
    for (high_mv, high), (low_mv, low) in zip(_CURVE, _CURVE[1:]):  # noqa: B905, RUF007 - MicroPython has neither
        if mv >= low_mv:
            return min(1000, low + (mv - low_mv) * (high - low) // (high_mv - low_mv))
    return 0


def watchdog() -> object:
    """What feeds the watchdog that is started herewith."""
    return WDT(timeout=_WATCHDOG_MS).feed


def good_boot() -> None:
    """The firmware has reached its hub: an update is not rolled back."""
    try:
        from esp32 import Partition  # type: ignore[import-not-found]  # noqa: PLC0415 - only an ESP32 has it
    except ImportError:
        return
    Partition.mark_app_valid_cancel_rollback()


def join(settings: dict[str, object]) -> None:
    """Join the Wi-Fi named in the settings; the chip itself comes back after a loss. Waits at most 10 s."""
    station = network.WLAN(network.STA_IF)
    station.active(True)
    if not station.isconnected():
        station.connect(settings["ssid"], settings["password"])
    for _ in range(_JOIN_TRIES):
        if station.isconnected():
            return
        pause_ms(100)


class WallClock:
    """The time of day where a time server told it; call it for UTC ms or None."""

    def __init__(self) -> None:
        self._known = False

    def ask(self) -> bool:
        """Ask the time server once; whether the time is known."""
        try:
            ntptime.settime()
        except OSError:  # no network, no answer: asked again later
            return self._known
        self._known = True
        return True

    def __call__(self) -> int | None:
        if not self._known:
            return None
        return (int(time()) + _EPOCH_S) * 1000
