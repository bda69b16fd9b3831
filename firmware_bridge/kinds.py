"""Wire 1 as data: what a device can say, in which unit, within which bounds, on which topic.

Tables and names only; ``pack`` writes by them, ``wire`` reads by them. Pure, and the same
file runs on CPython and MicroPython.
"""

from collections import namedtuple

VERSION = 1
MAX_MESSAGE_BYTES = 16_384  # the embedded broker drops a publisher above 20,480
HEADER_BYTES = 48  # the longest head; what a sender keeps free beside the records
MAX_RECORDS = 64
MAX_DEPTH = 4
MAX_MARK_BOOTS = 64
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

# One line a kind: code, name: field unit low high [the one value outside that is allowed].
# A meal's amounts are signed: a bowl that stands at -11.59 g before and -18.09 g after is
# not clamped. Kept as text, read when first asked: as tuples it took a tenth of 64 kB.
_TABLE = """
1 hello: model text 1 32, firmware text 1 32, detector version 0 4294967295, slots count 1 4294967295, \
lowest_seq seq 0 4294967295, dropped count 0 4294967295
2 beat: battery permille 0 1000 65535, worn state 0 2, charging state 0 1
3 meal: began_ms uptime_ms 0 9007199254740991, lasted ms 0 86400000, removed mg -2147483647 2147483647, \
quality flags 0 15
4 refill: added mg -2147483647 2147483647
5 food_set: code text 0 32, text text 0 200
6 motion: lasted ms 0 86400000, scratch ms 0 86400000, shake ms 0 86400000, low ms 0 86400000, \
mid ms 0 86400000, high ms 0 86400000, rest ms 0 86400000, restless ms 0 86400000, worn ms 0 86400000
7 weight: weight mg -2147483647 2147483647
8 temperature: temperature mK 0 1000000
9 tare:
10 mark_request:
11 plateau: weight mg -2147483647 2147483647, quality flags 0 15
"""
CODES = range(1, 12)
_read: dict[int, Kind] = {}


def _read_field(words: list[str]) -> Field:
    return Field(words[0], words[1], int(words[2]), int(words[3]), int(words[4]) if len(words) > 4 else None)


def find_kind(code: int) -> Kind | None:
    """What a record of that code holds; None where no kind has it."""
    if code not in CODES:
        return None
    if code not in _read:
        at = _TABLE.index(f"\n{code} ") + 1
        head, fields = _TABLE[at : _TABLE.index("\n", at)].split(":")
        read = tuple(_read_field(field.split()) for field in fields.split(",") if field)
        _read[code] = Kind(code, head.split()[1], read)
    return _read[code]


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
