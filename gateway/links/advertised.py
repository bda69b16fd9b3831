"""Fields of a radio advertisement: what the radio heard in, named values out. Pure.

`gateway.links.advertisement` says what is kept of an advertisement, `gateway.links.bthome` reads
BTHome; here both become the tree of fields that a profile's rules look into.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gateway.errors import PayloadError
from gateway.links.advertisement import Advertisement, unpack
from gateway.links.bthome import parse
from gateway.links.codecs import packed_fields
from gateway.links.profile import Match, Profile

__all__ = ["carried", "decode_advertisement"]


def carried(advertisement: Advertisement, match: Match) -> bytes | None:
    """The bytes a profile's matcher points at, or None where the advertisement carries none such."""
    if match.manufacturer is not None:
        return dict(advertisement.manufacturer).get(match.manufacturer)
    return dict(advertisement.service).get(match.service or "")


def decode_advertisement(profile: Profile, payload: bytes) -> dict[str, Any]:
    """The fields of an advertisement, with ``address``, ``name`` and ``rssi``.

    Raises
    ------
    PayloadError
        It is none, carries nothing for this profile, or what it carries cannot be read.
    """
    advertisement = unpack(payload)
    data = carried(advertisement, profile.match)
    if data is None:
        raise PayloadError("not_carried", "an advertisement must carry what the profile matches, does not")
    fields = _bthome(data, advertisement.address) if profile.codec == "bthome" else packed_fields(data, profile.layout)
    return {**fields, "address": advertisement.address, "name": advertisement.name or "", "rssi": advertisement.rssi}


def _bthome(data: bytes, address: str) -> dict[str, Any]:
    """Values by their names; the second of a name is ``name_2``, as two batteries are."""
    found = parse(data, address=address)
    fields: dict[str, Any] = {"packet_id": found.packet_id}
    for measured in found.measured:
        name, again = measured.name, 1
        while name in fields:
            again += 1
            name = f"{measured.name}_{again}"
        value = measured.value
        fields[name] = (
            Decimal(repr(value)) if isinstance(value, float) else value.hex() if isinstance(value, bytes) else value
        )
    return fields
