"""Wire 1 as data: what a device can say, in which unit, within which bounds, on which topic.

Tables and names only; ``pack`` writes by them, ``wire`` reads by them. Pure, and the same
file runs on CPython and MicroPython.
"""

from collections import namedtuple

from firmware_bridge.msgpack import U32_MAX

VERSION = 1
MAX_MESSAGE_BYTES = 16_384  # the embedded broker drops a publisher above 20,480
HEADER_BYTES = 48  # the longest head; what a sender keeps free beside the records
MAX_RECORDS = 64
MAX_DEPTH = 4
MAX_MARK_BOOTS = 64
I32_MAX = 0x7FFF_FFFF
MS_MAX = (1 << 53) - 1  # every instant stays exact in a double, wherever it is read again
DAY_MS = 86_400_000
FIRST_SEQ = 1  # a boot's first record; so a mark of 0 would mean nothing, and is never sent

HELLO, BEAT, MEAL, REFILL, FOOD_SET, MOTION = 1, 2, 3, 4, 5, 6
WEIGHT, TEMPERATURE, TARE, MARK_REQUEST, PLATEAU = 7, 8, 9, 10, 11

BATTERY_UNKNOWN = 65_535
NOT_WORN, WORN, WORN_UNKNOWN = 0, 1, 2  # a bowl says 2: it is not a thing one wears

# Quality of a weighing: 0 is clean, else the sum of what spoils it.
UNSETTLED, TEMPERATURE_MOVED, ZERO_DOUBTFUL, TOO_FAST = 1, 2, 4, 8

LINK_ONLINE = b"online"
LINK_OFFLINE = b"offline"

Field = namedtuple("Field", ("name", "unit", "low", "high", "unknown"))
"""One value of a kind. ``low`` and ``high`` are inclusive; for unit ``text`` they bound
the UTF-8 length in bytes. ``unknown`` is the one value outside them that is allowed."""

Kind = namedtuple("Kind", ("code", "name", "fields"))


def _ms(name: str) -> Field:
    return Field(name, "ms", 0, DAY_MS, None)


def _mg(name: str) -> Field:
    # Signed: a bowl that stands at -11.59 g before a meal and -18.09 g after it is not clamped.
    return Field(name, "mg", -I32_MAX, I32_MAX, None)


_QUALITY = Field("quality", "flags", 0, 15, None)

KINDS = {
    kind.code: kind
    for kind in (
        Kind(
            HELLO,
            "hello",
            (
                Field("model", "text", 1, 32, None),
                Field("firmware", "text", 1, 32, None),
                Field("detector", "version", 0, U32_MAX, None),
                Field("slots", "count", 1, U32_MAX, None),
                Field("lowest_seq", "seq", 0, U32_MAX, None),
                Field("dropped", "count", 0, U32_MAX, None),
            ),
        ),
        Kind(
            BEAT,
            "beat",
            (
                Field("battery", "permille", 0, 1000, BATTERY_UNKNOWN),
                Field("worn", "state", 0, 2, None),
                Field("charging", "state", 0, 1, None),
            ),
        ),
        Kind(
            MEAL,
            "meal",
            (Field("began_ms", "uptime_ms", 0, MS_MAX, None), _ms("lasted"), _mg("removed"), _QUALITY),
        ),
        Kind(REFILL, "refill", (_mg("added"),)),
        Kind(FOOD_SET, "food_set", (Field("code", "text", 0, 32, None), Field("text", "text", 0, 200, None))),
        Kind(
            MOTION,
            "motion",
            tuple(
                _ms(name) for name in ("lasted", "scratch", "shake", "low", "mid", "high", "rest", "restless", "worn")
            ),
        ),
        Kind(WEIGHT, "weight", (_mg("weight"),)),
        Kind(TEMPERATURE, "temperature", (Field("temperature", "mK", 0, 1_000_000, None),)),
        Kind(TARE, "tare", ()),
        Kind(MARK_REQUEST, "mark_request", ()),
        Kind(PLATEAU, "plateau", (_mg("weight"), _QUALITY)),
    )
}
"""Every kind by its code; what a record holds, in which unit and within which bounds."""


# --- topics -------------------------------------------------------------------------------

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_PREFIX = "scentwalk/1/"
UP_FILTER = _PREFIX + "+/up"


def is_device_id(text: str) -> bool:
    """Whether ``text`` may name a device: 1 to 32 of a-z 0-9 _ - (no MQTT wildcard fits)."""
    return 1 <= len(text) <= 32 and all(letter in _ID_LETTERS for letter in text)


def _topic(device: str, leaf: str) -> str:
    if not is_device_id(device):
        raise ValueError(f"a device id must be 1 to 32 of a-z 0-9 _ -, is {device!r}")
    return _PREFIX + device + "/" + leaf


def up_topic(device: str) -> str:
    """Where a device publishes its messages: QoS 1, never retained."""
    return _topic(device, "up")


def mark_topic(device: str) -> str:
    """Where the gateway retains what it has stored: boot -> last contiguous seq."""
    return _topic(device, "mark")


def link_topic(device: str) -> str:
    """Where a device retains ``online``, and its will ``offline``."""
    return _topic(device, "link")


def device_of(topic: str) -> str | None:
    """The device of a Wire 1 topic, or None where it is none."""
    parts = topic.split("/")
    shaped = len(parts) == 4 and parts[0] == "scentwalk" and parts[1] == "1" and parts[3] in ("up", "mark", "link")
    return parts[2] if shaped and is_device_id(parts[2]) else None
