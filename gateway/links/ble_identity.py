"""Whose advertisement is it: an address and the keys of known wearables in, one of them out. Pure.

Many wearables change their address every quarter of an hour. Two things prove that it is the
same one: a resolvable private address fits the device's identity key (IRK), or what it encrypts
fits its BTHome key. Without either a new address is a new device; who it might replace is asked
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firmware_bridge import wire
from gateway.errors import PayloadError
from gateway.links import bthome
from gateway.model import Household
from gateway.ontology.vocabulary import Ontology

__all__ = ["RadioKey", "identify", "may_hand_over", "resolves"]

KEY_BYTES = 16
_RESOLVABLE = 0b01


@dataclass(frozen=True, slots=True)
class RadioKey:
    """What proves that an advertisement is of ``device``, however it is addressed.

    ``irk`` is written as in pairing records, most significant byte first.
    """

    device: str
    irk: bytes | None = None
    bthome: bytes | None = None

    def __post_init__(self) -> None:
        if not wire.is_device_id(self.device):
            raise ValueError(f"a device id must be 1 to 32 of a-z 0-9 _ -, is {self.device!r}")
        for key in (self.irk, self.bthome):
            if key is not None and len(key) != KEY_BYTES:
                raise ValueError(f"a key must be {KEY_BYTES} bytes, is {len(key)}")


def resolves(address: str, irk: bytes) -> bool:
    """Whether a resolvable private address was made with this identity key.

    hash = AES-128(irk, 13 zero bytes and prand) modulo 2^24, where the address is prand and hash
    (Bluetooth Core Specification 5.4, Vol 3, Part H, 2.2.2). By chance one in 16,777,216 fits.
    """
    raw = bytes.fromhex(address.replace(":", ""))
    if raw[0] >> 6 != _RESOLVABLE:
        return False
    # One block of a keyed hash, as the specification says; nothing is kept secret by it.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415  # as in bthome

    encryptor = Cipher(algorithms.AES(irk), modes.ECB()).encryptor()  # noqa: S305
    return (encryptor.update(bytes(13) + raw[:3]) + encryptor.finalize())[-3:] == raw[3:]


def identify(address: str, service_data: bytes | None, keys: Iterable[RadioKey]) -> RadioKey | None:
    """The wearable that an advertisement proves to be, or None.

    Parameters
    ----------
    address : str
        ``AA:BB:CC:DD:EE:FF``.
    service_data : bytes or None
        Its BTHome service data.
    """
    for key in keys:
        if key.irk is not None and resolves(address, key.irk):
            return key
        if key.bthome is not None and service_data is not None:
            try:
                bthome.opened(service_data, address=address, key=key.bthome)
            except PayloadError:
                continue
            return key
    return None


def may_hand_over(home: Household, ontology: Ontology, *, listed: tuple[str, ...] | None) -> frozenset[str]:
    """The devices that may hand records over by Bluetooth: those an owner lists, else the household's
    wearables. A service without a key tells nobody who speaks: a bowl's name must not be enough.
    """
    if listed is not None:
        return frozenset(listed)
    kinds = ontology.device_kinds
    return frozenset(one.id for one in home.devices if one.kind in kinds and kinds[one.kind].wearable)
