"""Turns bytes into named fields, as a profile's codec says. Pure.

JSON, MessagePack, lines of hex, packed bytes, a bare number, BTHome: whatever a device speaks,
out comes a tree of maps, lists, texts, numbers (never a binary float) and truth values. What
cannot be read is a `PayloadError` with its reason; no bytes raise anything else.
"""

from __future__ import annotations

import json
import math
import re
import struct
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import msgpack

from gateway.errors import PayloadError
from gateway.links.profile import Layout, Profile

__all__ = ["MAX_BYTES", "REASONS", "decode", "field_at", "is_present", "packed_fields", "plain_text"]

MAX_BYTES = 262_144
"""A message of a home's device is a few hundred bytes; a whole year of a litter box some 100 KiB."""
REASONS = ("too_long", "not_json", "not_msgpack", "not_hex", "not_text", "not_a_number", "wrong_length", "wrong_word")
_DEPTH = 32
_DIGITS = 30
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,2})?\Z")

Fields = dict[str, Any]


def decode(profile: Profile, payload: bytes) -> Any:
    """The tree of fields in a message.

    Raises
    ------
    PayloadError
        The bytes are not what the profile's codec reads.
    """
    if len(payload) > MAX_BYTES:
        raise PayloadError("too_long", f"a message must be at most {MAX_BYTES} bytes, is {len(payload)}")
    match profile.codec:
        case "json":
            return _json(payload)
        case "msgpack":
            return _msgpack(payload)
        case "hex":
            return _hex(payload, profile.layout)
        case "struct":
            return packed_fields(payload, profile.layout)
        case _:
            return {"value": _number(payload)}


def _tree(found: Any, depth: int = 0) -> Any:
    """The same tree of nothing but maps with text keys, lists, texts, whole and decimal numbers,
    truth values and None; text in its composed form (NFC).
    """
    if depth > _DEPTH:
        raise PayloadError("not_json", f"a message must nest at most {_DEPTH} deep")
    if found is None or isinstance(found, bool | int):
        return found
    if isinstance(found, str):
        return unicodedata.normalize("NFC", _whole(found))
    if isinstance(found, float):
        return Decimal(repr(found)) if math.isfinite(found) else None
    if isinstance(found, Decimal):
        return found if found.is_finite() and abs(found.adjusted()) <= _DIGITS else None
    if isinstance(found, dict):
        return {_whole(str(key)): _tree(value, depth + 1) for key, value in found.items()}
    if isinstance(found, list):
        return [_tree(value, depth + 1) for value in found]
    if isinstance(found, bytes):
        return found.hex()
    return None  # a MessagePack extension: nothing a row is made of


def _whole(text: str) -> str:
    """A text, or a name, that can be written down again."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise PayloadError("not_text", "text must be Unicode, holds half of a pair")
    return text


def _no_constant(word: str) -> None:
    """NaN and the infinities are no JSON; where a device sends them, it does not know."""


def _json(payload: bytes) -> Any:
    try:
        found = json.loads(payload.decode("utf-8"), parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, InvalidOperation, RecursionError) as problem:
        raise PayloadError("not_json", f"a message must be JSON in UTF-8, but {str(problem)[:200]}") from None
    return _tree(found)


def _msgpack(payload: bytes) -> Any:
    try:
        found = msgpack.unpackb(payload, strict_map_key=False)
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:  # a map as a key is a TypeError
        raise PayloadError("not_msgpack", f"a message must be MessagePack, but {str(problem)[:200]}") from None
    return _tree(found)


def _number(payload: bytes) -> Decimal:
    text = payload[:80].decode("utf-8", "replace").strip()
    if len(payload) > 80 or not _NUMBER.match(text):
        raise PayloadError("not_a_number", f"a message must be one number such as 36.5, is {text!r}")
    return Decimal(text)


# --- bytes ---------------------------------------------------------------------------------------


def _hex(payload: bytes, layout: Layout) -> Fields:
    """The words of a line, then the rest of it as bytes: ``5fef6320 126 29 18 00 ca ...``."""
    try:
        words = payload.decode("ascii").split()
    except UnicodeDecodeError:
        raise PayloadError("not_hex", "a message must be hex in ASCII") from None
    if len(words) < len(layout.words):
        raise PayloadError("wrong_length", f"a line must have at least {len(layout.words)} words, has {len(words)}")
    fields: Fields = {}
    size = None
    for (name, kind), word in zip(layout.words, words, strict=False):
        if kind.startswith("="):
            if word != kind[1:]:
                raise PayloadError("wrong_word", f"{name} must be {kind[1:]}, is {word[:40]!r}")
        elif kind != "skip":
            if len(word) > 16 or not re.fullmatch(r"[0-9a-fA-F]+", word):
                raise PayloadError("not_hex", f"{name} must be hex, is {word[:40]!r}")
            fields[name] = int(word, 16)
            size = fields[name] if kind == "size" else size
    try:
        body = bytes.fromhex("".join(words[len(layout.words) :]))
    except ValueError:
        raise PayloadError("not_hex", "what follows the words must be pairs of hex digits") from None
    if size is not None and size != len(body):
        raise PayloadError("wrong_length", f"{size} bytes must follow, {len(body)} do")
    return fields | packed_fields(body, layout)


def _fdxb(raw: bytes) -> str:
    """A pet's chip, ISO 11784: country, dot, twelve digits of the national code."""
    number = int.from_bytes(raw[:6], "little")
    return f"{number >> 38:03d}.{number & ((1 << 38) - 1):012d}"


def _length(kind: str) -> int:
    name, _, size = kind.partition(":")
    if name in ("bytes", "skip"):
        return int(size)
    return 7 if name == "fdxb" else int(name[1:]) // 8


def packed_fields(body: bytes, layout: Layout) -> Fields:
    """Fields of packed bytes; further bytes may follow (a later firmware says more)."""
    needed = sum(_length(kind) for _, kind in layout.parts)
    if len(body) < needed:
        raise PayloadError("wrong_length", f"a message must hold {needed} bytes, holds {len(body)}")
    order: Literal["little", "big"] = "little" if layout.little else "big"
    fields: Fields = {}
    at = 0
    for name, kind in layout.parts:
        raw = body[at : at + _length(kind)]
        at += len(raw)
        if kind.startswith("skip"):
            continue
        if kind == "fdxb":
            fields[name] = _fdxb(raw)
        elif kind.startswith("bytes"):
            fields[name] = raw.hex()
        elif kind == "f32":
            (number,) = struct.unpack("<f" if layout.little else ">f", raw)
            fields[name] = _tree(number)
        else:
            fields[name] = int.from_bytes(raw, order, signed=kind[0] == "i")
    for name, runs in layout.bits:
        left = fields.get(name)
        split = {}
        for run, size in runs:
            split[run] = left & ((1 << size) - 1) if isinstance(left, int) else None
            left = left >> size if isinstance(left, int) else None
        fields[f"{name}_parts"] = split
    return fields


# --- fields --------------------------------------------------------------------------------------


def field_at(fields: Any, path: str) -> Any:
    """What stands at a path (``content.pet_weight``, ``rows.0.at``), None where nothing does."""
    found = fields
    for name in path.split("."):
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 6:
            found = found[int(name)] if int(name) < len(found) else None
        else:
            return None
    return found


def is_present(fields: Any, path: str) -> bool:
    """Whether anything stands at a path."""
    return field_at(fields, path) is not None


def plain_text(value: Any) -> str | None:
    """A scalar as the text it is compared and named by: trimmed, ``true``, ``12.5``; None for others."""
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        whole = value == value.to_integral_value()
        return str(int(value)) if whole else f"{value.normalize():f}"
    return str(value).strip() if isinstance(value, str) else str(value)
