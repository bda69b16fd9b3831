"""One advertisement as a value, and as the canonical bytes that are kept of it. Pure.

The radio makes one of what it heard, and refuses what no advertisement can be; `pack` gives the
bytes that travel as a `RawFrame` and stay with every row derived from them, `unpack` the value
again. The same advertisement always gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgpack

from gateway.errors import PayloadError

__all__ = ["TRANSPORT", "Advertisement", "advertisement", "pack", "unpack"]

TRANSPORT = "ble_adv"
"""`RawFrame.transport` of an advertisement; what a tracker hands over comes as ``ble``."""
_ADDRESS = re.compile(r"([0-9A-F]{2}:){5}[0-9A-F]{2}\Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_NAME_BYTES = 248  # Core Specification: the longest device name
_DATA_BYTES = 1_650  # the longest advertisement of Bluetooth 5
_KEYS = ("a", "r", "n", "m", "s", "c")


@dataclass(frozen=True, slots=True)
class Advertisement:
    """What was heard of one device at one moment.

    ``rssi`` is the strength in dBm, None where nobody knows; ``manufacturer`` is by company id,
    ``service`` by full UUID, both sorted. ``counter`` is that of an encrypted BTHome one: its
    service data stand here decrypted.
    """

    address: str
    rssi: int | None
    name: str | None
    manufacturer: tuple[tuple[int, bytes], ...]
    service: tuple[tuple[str, bytes], ...]
    counter: int | None = None

    @property
    def device(self) -> str:
        """The address as a device id: 12 hex digits, lower case."""
        return self.address.replace(":", "").lower()

    def service_data(self, uuid: str) -> bytes | None:
        """The data of a service, or None."""
        return next((data for name, data in self.service if name == uuid), None)


def advertisement(
    address: str,
    *,
    rssi: int | None,
    name: str | None,
    manufacturer: Mapping[int, bytes],
    service: Mapping[str, bytes],
    counter: int | None = None,
) -> Advertisement:
    """The value of what a radio says it heard.

    Raises
    ------
    PayloadError
        ``not_an_advertisement``: no address, no company id, no UUID, or longer than any can be.
    """
    problem = None
    if not _ADDRESS.match(address):
        problem = f"its address must be six bytes in hex, is {address[:40]!r}"
    elif sum(map(len, manufacturer.values())) + sum(map(len, service.values())) > _DATA_BYTES:
        problem = f"its data must be at most {_DATA_BYTES} bytes, are more"
    elif not all(0 <= company <= 0xFFFF for company in manufacturer):
        problem = "a company id must be 0 to 65535, is not"
    elif not all(_UUID.match(uuid) for uuid in service):
        problem = "a service must be named by a UUID of 36 characters, is not"
    if problem is not None:
        raise PayloadError("not_an_advertisement", f"an advertisement is no good: {problem}")
    if name is not None:
        name = name.encode("utf-8", "replace")[:_NAME_BYTES].decode("utf-8", "ignore")
    strength = None if rssi is None or not -127 < rssi <= 20 else rssi
    sent = tuple(sorted((company, bytes(data)) for company, data in manufacturer.items()))
    served = tuple(sorted((uuid, bytes(data)) for uuid, data in service.items()))
    return Advertisement(address, strength, name, sent, served, counter)


def pack(heard: Advertisement) -> bytes:
    """The canonical bytes."""
    values = (heard.address, heard.rssi, heard.name, dict(heard.manufacturer), dict(heard.service), heard.counter)
    packed: bytes = msgpack.packb(dict(zip(_KEYS, values, strict=True)))
    return packed


def unpack(payload: bytes) -> Advertisement:
    """The advertisement behind its canonical bytes.

    Raises
    ------
    PayloadError
        ``not_an_advertisement``.
    """
    try:
        found = msgpack.unpackb(payload, strict_map_key=False)
    except (ValueError, TypeError):  # every error of msgpack's own is a ValueError; a map as a key is a TypeError
        found = None
    if not isinstance(found, dict) or tuple(found) != _KEYS or not _is_typed(found):
        raise PayloadError("not_an_advertisement", "an advertisement must be a map of a, r, n, m, s and c, is not")
    return advertisement(
        found["a"],
        rssi=found["r"],
        name=found["n"],
        manufacturer=found["m"],
        service=found["s"],
        counter=found["c"],
    )


def _is_whole(value: object) -> bool:
    return value is None or type(value) is int


def _is_typed(found: Mapping[str, object]) -> bool:
    """Whether every value has its type; what it says is checked after."""
    sent, served = found["m"], found["s"]
    return (
        isinstance(found["a"], str)
        and _is_whole(found["r"])
        and _is_whole(found["c"])
        and (found["n"] is None or isinstance(found["n"], str))
        and isinstance(sent, dict)
        and all(type(company) is int and isinstance(data, bytes) for company, data in sent.items())
        and isinstance(served, dict)
        and all(isinstance(uuid, str) and isinstance(data, bytes) for uuid, data in served.items())
    )
