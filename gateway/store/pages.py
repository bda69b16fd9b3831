"""Reads SQLite's file format without SQLite: what is left of a damaged file.

A database file and its WAL in, rows out. A page or a cell that cannot be decoded is passed
over and counted; nothing here stops at damage, and nothing is ever written. Source:
https://www.sqlite.org/fileformat2.html (sections 1.3 to 1.6, 2.1 and 4).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PAGE_BYTES", "Leaf", "Page", "PageFile", "Row", "Value"]

Value = int | float | str | bytes | None
PAGE_BYTES = 4096
"""The page size of every database this program makes; it has no reserved bytes at a page's end."""

_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 0x02, 0x05, 0x0A, 0x0D
_LEAVES = (_INDEX_LEAF, _TABLE_LEAF)
_INTERIORS = (_INDEX_INTERIOR, _TABLE_INTERIOR)
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)  # bytes of an integer, by serial type
_LEAST_ROWID, _GREATEST_ROWID = -(2**63), 2**63 - 1
_MOST_PAYLOAD = 1_000_000_000  # SQLITE_MAX_LENGTH


class _Damaged(Exception):  # never leaves this module: a cell or page that breaks the format
    """Bytes that cannot be what the format says stands here."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record as stored: ``rowid`` is None in an index or a table without row ids."""

    rowid: int | None
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A leaf page that no readable tree leads to: its rows, and whether they have row ids."""

    number: int
    is_table: bool
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf page of a table: how many rows it says it holds, with ids in ``(above, last]``."""

    number: int
    count: int
    above: int
    last: int


class PageFile:
    """A database file with its WAL laid over it, up to the last whole commit.

    Parameters
    ----------
    path : Path
        The database file; ``path-wal`` is read where it exists.

    Attributes
    ----------
    unreadable : int
        Pages and cells that were met and could not be decoded.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._newer = _committed_pages(path.with_name(path.name + "-wal"))
        held = -(-os.fstat(self._descriptor).st_size // PAGE_BYTES)
        self.page_count = max([held, *self._newer])
        self._reached: set[int] = set()
        self.unreadable = 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def trees(self) -> dict[str, int]:
        """Name to root page of every table and index the schema still tells of."""
        found = {}
        for row in self.rows(1):
            if len(row.values) == 5 and row.values[0] in ("table", "index"):
                _, name, _, root, _ = row.values
                if isinstance(name, str) and isinstance(root, int):
                    found[name] = root
        return found

    def rows(self, root: int) -> Iterator[Row]:
        """The rows of the tree below a root page, as far as it can be followed."""
        for number, kind, cells in self._tree(root):
            if kind != _TABLE_INTERIOR:
                yield from self._decoded(number, kind, cells)

    def leaves(self, root: int) -> Iterator[Leaf]:
        """The leaf pages of a table with row ids, in their order, with the row ids they may hold.

        Cells are counted, not read. A page that cannot be followed is counted as unreadable.
        """
        waiting: list[tuple[int, int, int]] = [(root, _LEAST_ROWID, _GREATEST_ROWID)]
        while waiting:
            number, above, last = waiting.pop()
            if number in self._reached or not 1 <= number <= self.page_count:
                self.unreadable += 1
                continue
            self._reached.add(number)
            try:
                kind, cells, children = self._open(number)
                keys = self._keys(number, cells) if kind == _TABLE_INTERIOR else []
            except (_Damaged, IndexError):
                self.unreadable += 1
                continue
            if kind == _TABLE_LEAF:
                yield Leaf(number, len(cells), above, last)
            bounds = [above, *keys, last]
            waiting += [(child, bounds[at], bounds[at + 1]) for at, child in enumerate(children)][::-1]

    def _keys(self, number: int, cells: list[int]) -> list[int]:
        """The greatest row id below each child of an interior page but the last."""
        page = self._page(number)
        found = (_varint(page, at + 4)[0] for at in cells)
        return [key - (1 << 64) if key >> 63 else key for key in found]

    def leaf_rows(self, leaf: Leaf) -> Iterator[Row]:
        """The rows of one leaf, as far as they can be decoded."""
        kind, cells, _ = self._open(leaf.number)
        yield from self._decoded(leaf.number, kind, cells)

    def skip(self, root: int) -> None:
        """Follow a tree without reading its rows, so that its pages are no orphans."""
        for _ in self._tree(root):
            pass

    def _tree(self, root: int) -> Iterator[tuple[int, int, list[int]]]:
        """(number, kind, offsets of the cells) of each page of a tree."""
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number in self._reached or not 1 <= number <= self.page_count:
                self.unreadable += 1
                continue
            self._reached.add(number)
            try:
                kind, cells, children = self._open(number)
            except _Damaged:
                self.unreadable += 1
                continue
            waiting += reversed(children)
            yield number, kind, cells

    def orphans(self) -> Iterator[Page]:
        """Leaf pages that no tree read so far led to and that are not free, with their rows."""
        free = self._free_pages()
        for number in range(2, self.page_count + 1):
            if number in self._reached or number in free:
                continue
            try:
                kind, cells, _ = self._open(number)
            except _Damaged:
                continue
            if kind in _LEAVES:
                rows = tuple(self._decoded(number, kind, cells))
                if rows:
                    yield Page(number, kind == _TABLE_LEAF, rows)

    # -- pages -------------------------------------------------------------------------------------

    def _page(self, number: int) -> bytes:
        page = self._newer.get(number)
        if page is None:
            try:
                page = os.pread(self._descriptor, PAGE_BYTES, (number - 1) * PAGE_BYTES)
            except OSError:  # a sector the card no longer gives; the next page may well be readable
                page = b""
        if len(page) != PAGE_BYTES:
            raise _Damaged
        return page

    def _open(self, number: int) -> tuple[int, list[int], list[int]]:
        """(kind, offsets of the cells, child pages) of a b-tree page."""
        page = self._page(number)
        start = 100 if number == 1 else 0
        kind, count = page[start], int.from_bytes(page[start + 3 : start + 5], "big")
        if kind not in _LEAVES and kind not in _INTERIORS:
            raise _Damaged
        pointers = start + (12 if kind in _INTERIORS else 8)
        if pointers + 2 * count > PAGE_BYTES:
            raise _Damaged
        cells = list(struct.unpack_from(f">{count}H", page, pointers))
        children = []
        if kind in _INTERIORS:
            children = [int.from_bytes(page[at : at + 4], "big") for at in cells]
            children.append(int.from_bytes(page[start + 8 : start + 12], "big"))
        return kind, cells, children

    def _decoded(self, number: int, kind: int, cells: list[int]) -> Iterator[Row]:
        page = self._page(number)
        for at in cells:
            try:
                yield self._cell(page, kind, at)
            except (_Damaged, IndexError, struct.error, UnicodeDecodeError):
                self.unreadable += 1

    def _cell(self, page: bytes, kind: int, at: int) -> Row:
        if kind == _INDEX_INTERIOR:
            at += 4
        size, at = _varint(page, at)
        rowid = None
        if kind == _TABLE_LEAF:
            unsigned, at = _varint(page, at)
            rowid = unsigned - (1 << 64) if unsigned >> 63 else unsigned
        return Row(rowid, _record(self._payload(page, at, size, is_table=kind == _TABLE_LEAF)))

    def _payload(self, page: bytes, at: int, size: int, *, is_table: bool) -> bytes:
        """A cell's payload with what it keeps on overflow pages (section 1.6)."""
        if not 0 < size <= min(_MOST_PAYLOAD, self.page_count * PAGE_BYTES):
            raise _Damaged
        most = PAGE_BYTES - 35 if is_table else (PAGE_BYTES - 12) * 64 // 255 - 23
        here = size
        if size > most:
            least = (PAGE_BYTES - 12) * 32 // 255 - 23
            here = least + (size - least) % (PAGE_BYTES - 4)
            here = here if here <= most else least
        parts = [page[at : at + here]]
        follow = int.from_bytes(page[at + here : at + here + 4], "big") if here < size else 0
        left = size - here
        while left > 0:
            if not 2 <= follow <= self.page_count:
                raise _Damaged
            more = self._page(follow)
            parts.append(more[4 : 4 + left])
            follow, left = int.from_bytes(more[:4], "big"), left - (PAGE_BYTES - 4)
        payload = b"".join(parts)
        if len(payload) != size:
            raise _Damaged
        return payload

    def _free_pages(self) -> set[int]:
        """Pages on the free list: what stands there was deleted (section 1.5)."""
        free: set[int] = set()
        try:
            trunk = int.from_bytes(self._page(1)[32:36], "big")
            while 2 <= trunk <= self.page_count and trunk not in free:
                free.add(trunk)
                page = self._page(trunk)
                trunk, count = struct.unpack_from(">II", page)
                free.update(struct.unpack_from(f">{min(count, PAGE_BYTES // 4 - 2)}I", page, 8))
        except _Damaged:
            self.unreadable += 1
        return free


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, offset behind it) of a big-endian varint of 1 to 9 bytes, unsigned."""
    value = 0
    for step in range(8):
        byte = data[at + step]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + step + 1
    return value << 8 | data[at + 8], at + 9


def _record(payload: bytes) -> tuple[Value, ...]:
    """The values of a record (section 2.1)."""
    header_bytes, at = _varint(payload, 0)
    if header_bytes > len(payload):
        raise _Damaged
    values: list[Value] = []
    body = header_bytes
    while at < header_bytes:
        serial = payload[at]
        at += 1
        if serial >= 0x80:  # a long text; all else has a serial type of one byte
            serial, at = _varint(payload, at - 1)
        width = _WIDTHS[serial] if serial < 7 else 0
        if width:
            values.append(int.from_bytes(_bytes(payload, body, body + width), "big", signed=True))
            body += width
        else:
            value, body = _value(payload, serial, body)
            values.append(value)
    if at != header_bytes or body != len(payload):
        raise _Damaged
    return tuple(values)


def _value(payload: bytes, serial: int, at: int) -> tuple[Value, int]:
    """(value, offset behind it) of one column that is no stored integer."""
    if serial == 0:
        return None, at
    if serial in (8, 9):
        return serial - 8, at
    if serial == 7:
        return struct.unpack(">d", _bytes(payload, at, at + 8))[0], at + 8
    if serial < 12:
        raise _Damaged
    end = at + (serial - 12) // 2
    found = _bytes(payload, at, end)
    return (found.decode("utf-8") if serial % 2 else found), end


def _bytes(payload: bytes, at: int, end: int) -> bytes:
    if end > len(payload):
        raise _Damaged
    return payload[at:end]


def _committed_pages(wal: Path) -> dict[int, bytes]:
    """Page number to newest content of a WAL's whole commits (section 4); empty without one."""
    try:
        log = wal.read_bytes()
    except OSError:
        return {}
    if len(log) < 32 or log[:4] not in (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"):
        return {}
    order = ">" if log[3] & 1 else "<"
    check = _checksum(log[:24], order, (0, 0))
    if struct.unpack_from(">II", log, 24) != check or int.from_bytes(log[8:12], "big") != PAGE_BYTES:
        return {}
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    pages = 0
    for at in range(32, len(log) - PAGE_BYTES - 23, PAGE_BYTES + 24):
        number, size_after, *_ = struct.unpack_from(">II", log, at)
        page = log[at + 24 : at + 24 + PAGE_BYTES]
        check = _checksum(log[at : at + 8] + page, order, check)
        if log[at + 8 : at + 16] != log[16:24] or struct.unpack_from(">II", log, at + 16) != check:
            break
        pending[number] = page
        if size_after:
            committed.update(pending)
            pending, pages = {}, size_after
    return {number: page for number, page in committed.items() if number <= pages}


def _checksum(data: bytes, order: str, start: tuple[int, int]) -> tuple[int, int]:
    """The WAL's running checksum (section 4.2) over a multiple of 8 bytes."""
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
