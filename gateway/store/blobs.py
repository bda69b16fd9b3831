"""Slot blobs of a day row: little-endian int64 sums and int32 milliseconds, and JSON texts.

Unpacked slots are kept for a while: every daily pass reads the same past again.
"""

from __future__ import annotations

import json
import sys
from array import array
from functools import lru_cache
from json import encoder

__all__ = [
    "as_json",
    "pack_covered",
    "pack_list",
    "pack_pairs",
    "pack_sums",
    "unpack_covered",
    "unpack_fields",
    "unpack_pairs",
    "unpack_sums",
    "unpack_texts",
]

_slow = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_make = getattr(encoder, "c_make_encoder", None)
_chunks = _make and _make(None, _slow.default, encoder.encode_basestring, None, ":", ",", False, False, True)
"""What ``JSONEncoder.encode`` makes anew at every call, which takes longer than a short list."""


def as_json(values: tuple[object, ...]) -> str:
    """``json.dumps`` of an array without spaces and without escapes that UTF-8 does not need.

    Raises
    ------
    TypeError
        A value has no JSON (bytes).
    """
    return "".join(_chunks(values, 0)) if _chunks else _slow.encode(values)


def pack_sums(values: tuple[int, ...]) -> bytes:
    """int64 little-endian, 8 bytes a slot."""
    return _bytes(array("q", values))


@lru_cache(maxsize=4096)
def unpack_sums(blob: bytes) -> tuple[int, ...]:
    """The inverse of `pack_sums`."""
    return _values("q", blob)


def pack_covered(values: tuple[int, ...]) -> bytes:
    """int32 little-endian, 4 bytes a slot; a slot holds at most 900,000 ms."""
    return _bytes(array("i", values))


@lru_cache(maxsize=4096)
def unpack_covered(blob: bytes) -> tuple[int, ...]:
    """The inverse of `pack_covered`."""
    return _values("i", blob)


def pack_list(values: tuple[object, ...]) -> str:
    """A JSON array without spaces, stable for equal values."""
    return as_json(values)


def pack_pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    """A JSON array of [name, text] in the order given; a name may stand more than once."""
    return as_json(pairs)


def unpack_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The inverse of `pack_pairs`."""
    return tuple((str(name), str(value)) for name, value in json.loads(text))


def unpack_texts(text: str) -> tuple[str, ...]:
    """A JSON array of texts."""
    if text == "[]":  # of nearly every food: a large home reads ten thousand for each question
        return ()
    return tuple(str(value) for value in json.loads(text))


def unpack_fields(text: str) -> tuple[int | str, ...]:
    """A frame's values: a JSON array of integers and texts."""
    return tuple(json.loads(text))


def _bytes(values: array[int]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _values(code: str, blob: bytes) -> tuple[int, ...]:
    values: array[int] = array(code, blob)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(values)
