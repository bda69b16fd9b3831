"""BTHome v2: service data of an advertisement in, what it measures out. Pure.

The format (bthome.io/format): one byte of device information, an address where bit 1 says so,
then objects, each an id and its value in little-endian, ids ascending. Where bit 0 is set the
objects are AES-CCM encrypted under the device's own key and followed by a counter and a 4-byte
check (bthome.io/encryption). An id that is not in the table ends the reading: nobody knows how
long its value is. Never: a guess at a value, a clock, a stored counter; who hears the
advertisement holds `BtHome.counter` against the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import PayloadError

__all__ = ["SERVICE_UUID", "BtHome", "Measured", "PacketRule", "opened", "parse"]

SERVICE_UUID = "0000fcd2-0000-1000-8000-00805f9b34fb"
_ENCRYPTED, _ADDRESS, _SLEEPY = 1, 2, 4
_VERSION = 2
_COUNTER_BYTES = _CHECK_BYTES = 4
_PACKET_ID = 0x00


@dataclass(frozen=True, slots=True)
class _Object:
    """One line of the format's table. ``size`` 0 = a length byte follows the id."""

    name: str
    unit: str
    size: int
    shape: str = "unsigned"
    factor: float = 1
    decimals: int = 0


def _table() -> dict[int, _Object]:
    """Read the table below: id, name, unit (- for none), bytes, shape, factor."""
    found = {}
    for line in _OBJECTS.strip().splitlines():
        ids, name, unit, size, shape, factor = line.split()
        decimals = len(factor.partition(".")[2])
        made = _Object(name, "" if unit == "-" else unit, int(size), shape, float(factor), decimals)
        for one in ids.split(","):
            first, _, last = one.partition("-")
            found.update(dict.fromkeys(range(int(first, 16), int(last or first, 16) + 1), made))
    return found


_OBJECTS = """
00 packet_id - 1 unsigned 1
01 battery % 1 unsigned 1
02 temperature C 2 signed 0.01
03 humidity % 2 unsigned 0.01
04 pressure hPa 3 unsigned 0.01
05 illuminance lx 3 unsigned 0.01
06 mass kg 2 unsigned 0.01
07 mass lb 2 unsigned 0.01
08 dew_point C 2 signed 0.01
09 count - 1 unsigned 1
0a energy kWh 3 unsigned 0.001
0b power W 3 unsigned 0.01
0c voltage V 2 unsigned 0.001
0d pm25 ug/m3 2 unsigned 1
0e pm10 ug/m3 2 unsigned 1
0f generic - 1 binary 1
10 power_on - 1 binary 1
11 opening - 1 binary 1
12 co2 ppm 2 unsigned 1
13 tvoc ug/m3 2 unsigned 1
14 moisture % 2 unsigned 0.01
15 battery_low - 1 binary 1
16 battery_charging - 1 binary 1
17 carbon_monoxide - 1 binary 1
18 cold - 1 binary 1
19 connectivity - 1 binary 1
1a door - 1 binary 1
1b garage_door - 1 binary 1
1c gas_detected - 1 binary 1
1d heat - 1 binary 1
1e light - 1 binary 1
1f lock - 1 binary 1
20 moisture_detected - 1 binary 1
21 motion - 1 binary 1
22 moving - 1 binary 1
23 occupancy - 1 binary 1
24 plug - 1 binary 1
25 presence - 1 binary 1
26 problem - 1 binary 1
27 running - 1 binary 1
28 safety - 1 binary 1
29 smoke - 1 binary 1
2a sound - 1 binary 1
2b tamper - 1 binary 1
2c vibration - 1 binary 1
2d window - 1 binary 1
2e humidity % 1 unsigned 1
2f moisture % 1 unsigned 1
3a button - 1 unsigned 1
3b command - 0 command 1
3c dimmer - 2 raw 1
3d count - 2 unsigned 1
3e count - 4 unsigned 1
3f rotation deg 2 signed 0.1
40 distance mm 2 unsigned 1
41 distance m 2 unsigned 0.1
42 duration s 3 unsigned 0.001
43 current A 2 unsigned 0.001
44 speed m/s 2 unsigned 0.01
45 temperature C 2 signed 0.1
46 uv_index - 1 unsigned 0.1
47 volume L 2 unsigned 0.1
48 volume mL 2 unsigned 1
49 volume_flow_rate m3/h 2 unsigned 0.001
4a voltage V 2 unsigned 0.1
4b gas m3 3 unsigned 0.001
4c gas m3 4 unsigned 0.001
4d energy kWh 4 unsigned 0.001
4e volume L 4 unsigned 0.001
4f water L 4 unsigned 0.001
50 timestamp s 4 unsigned 1
51 acceleration m/s2 2 unsigned 0.001
52 gyroscope deg/s 2 unsigned 0.001
53 text - 0 text 1
54 raw - 0 raw 1
55 volume_storage L 4 unsigned 0.001
56 conductivity uS/cm 2 unsigned 1
57 temperature C 1 signed 1
58 temperature C 1 signed 0.35
59 count - 1 signed 1
5a count - 2 signed 1
5b count - 4 signed 1
5c power W 4 signed 0.01
5d current A 2 signed 0.001
5e direction deg 2 unsigned 0.01
5f precipitation mm 2 unsigned 0.1
60 channel - 1 unsigned 1
61 rotational_speed rpm 2 unsigned 1
62 speed m/s 4 signed 0.000001
63 acceleration m/s2 4 signed 0.000001
64 light_level - 1 unsigned 1
65 settings_revision - 1 unsigned 1
f0 device_type - 2 unsigned 1
f1 firmware - 4 version 1
f2 firmware - 3 version 1
"""
_TABLE = _table()


@dataclass(frozen=True, slots=True)
class Measured:
    """One object: ``raw`` is the integer on the air (None for text and bytes), ``value`` it in ``unit``."""

    object_id: int
    name: str
    unit: str
    value: int | float | str | bytes
    raw: int | None


@dataclass(frozen=True, slots=True)
class BtHome:
    """What one advertisement says. ``counter`` is that of an encrypted one, else None.

    ``sleepy``: the device speaks when something happens, so its silence says nothing.
    """

    packet_id: int | None
    counter: int | None
    sleepy: bool
    measured: tuple[Measured, ...]


def _split(service_data: bytes) -> tuple[int, bytes, bytes]:
    """(device information, its own address or nothing, the rest)."""
    if not service_data:
        raise PayloadError("cut_short", "BTHome service data must have 1 byte or more, has none")
    info = service_data[0]
    if info >> 5 != _VERSION:
        raise PayloadError("unknown_version", f"BTHome must be version {_VERSION}, is {info >> 5}")
    at = 7 if info & _ADDRESS else 1
    if len(service_data) < at:
        raise PayloadError("cut_short", f"an address must follow in 6 bytes, {len(service_data) - 1} do")
    return info, service_data[1:at], service_data[at:]


def _decrypted(info: int, own: bytes, sealed: bytes, *, address: str, key: bytes | None) -> tuple[bytes, int]:
    """(objects, counter) of an encrypted advertisement."""
    if key is None:
        raise PayloadError("no_key", f"the device {address} encrypts: its 16-byte key must be known, is not")
    tail = _COUNTER_BYTES + _CHECK_BYTES
    if len(sealed) < tail:
        raise PayloadError("cut_short", f"counter and check must follow in {tail} bytes, {len(sealed)} do")
    counter = sealed[-tail:-_CHECK_BYTES]
    mac = own[::-1] if own else bytes.fromhex(address.replace(":", ""))
    nonce = mac + b"\xd2\xfc" + bytes((info,)) + counter
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # 7 MiB that a home without keys never needs
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM  # noqa: PLC0415

    try:
        plain = AESCCM(key, tag_length=_CHECK_BYTES).decrypt(nonce, sealed[:-tail] + sealed[-_CHECK_BYTES:], None)
    except InvalidTag:
        raise PayloadError("wrong_key", f"the advertisement of {address} must fit its key, does not") from None
    return plain, int.from_bytes(counter, "little")


def _value(made: _Object, found: bytes) -> tuple[int | float | str | bytes | None, int | None]:
    """(value, raw) of one object; value None where it is none (text that is not UTF-8)."""
    match made.shape:
        case "text":
            try:
                return found.decode(), None
            except UnicodeDecodeError:
                return None, None
        case "raw" | "command":
            return found, None
        case "version":
            return ".".join(str(part) for part in reversed(found)), None
        case "binary":
            raw = found[0]
            return int(raw != 0), raw
        case _:
            raw = int.from_bytes(found, "little", signed=made.shape == "signed")
            return round(raw * made.factor, made.decimals) if made.decimals else raw, raw


def _objects(plain: bytes) -> tuple[Measured, ...]:
    measured = []
    at = 0
    while at < len(plain) and (made := _TABLE.get(plain[at])) is not None:
        code, at, size = plain[at], at + 1, made.size
        if size == 0:
            if at == len(plain):
                break
            # A command's length byte holds the bytes of its arguments in five bits; its own number comes on top.
            size = 1 + (plain[at] & 0x1F) if made.shape == "command" else plain[at]
            at += 1
        if at + size > len(plain):
            break
        value, raw = _value(made, plain[at : at + size]) if size else (None, None)
        if value is not None:
            measured.append(Measured(code, made.name, made.unit, value, raw))
        at += size
    return tuple(measured)


def opened(service_data: bytes, *, address: str, key: bytes) -> tuple[bytes, int]:
    """An encrypted advertisement as the plain one it holds, and its counter.

    Raises
    ------
    PayloadError
        As `parse`.
    """
    info, own, sealed = _split(service_data)
    if not info & _ENCRYPTED:
        raise PayloadError("plain_under_key", f"the device {address} has a key and must encrypt, did not")
    plain, counter = _decrypted(info, own, sealed, address=address, key=key)
    return bytes((info & ~_ENCRYPTED,)) + own + plain, counter


def parse(service_data: bytes, *, address: str, key: bytes | None = None) -> BtHome:
    """Read the service data of UUID 0xFCD2.

    Parameters
    ----------
    service_data : bytes
        From the device information byte on.
    address : str
        The sender, ``AA:BB:CC:DD:EE:FF``; a part of what an encrypted one is checked with.
    key : bytes, optional
        The device's 16-byte key. Where one is known, nothing unencrypted is read: anybody could
        send that in the device's name.

    Raises
    ------
    PayloadError
        ``cut_short``, ``unknown_version``, ``no_key``, ``wrong_key`` or ``plain_under_key``.
    """
    info, own, rest = _split(service_data)
    counter = None
    if info & _ENCRYPTED:
        rest, counter = _decrypted(info, own, rest, address=address, key=key)
    elif key is not None:
        raise PayloadError("plain_under_key", f"the device {address} has a key and must encrypt, did not")
    measured = _objects(rest)
    packet = next((one.raw for one in reversed(measured) if one.object_id == _PACKET_ID), None)
    return BtHome(packet, counter, bool(info & _SLEEPY), measured)


class PacketRule:
    """Which advertisements of one device are news: the same packet is sent several times.

    Within 4 s of the last one taken an equal or older packet id is a repetition; older means
    less than 64 ahead, modulo 256 (bthome.io/format, packet id). After 4 s any id is news.
    """

    WINDOW_MS = 4_000
    _AHEAD = 64

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    def accept(self, packet_id: int | None, at_ms: int) -> bool:
        """Whether an advertisement heard at ``at_ms`` is news; one without a packet id always is."""
        if packet_id is None:
            return True
        if self._last is not None:
            last_id, last_ms = self._last
            if at_ms - last_ms <= self.WINDOW_MS and not 0 < (packet_id - last_id) % 256 < self._AHEAD:
                return False
        self._last = (packet_id, at_ms)
        return True
