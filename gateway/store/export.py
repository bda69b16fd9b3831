"""Writes what was measured as files for other programs: CSV, JSON lines or Parquet.

``FOLDER/events/hub=HUB/date=2026-07-08/part-0.csv`` and the same for ``days``: the layout that
DuckDB, Spark and pyarrow read as one table, so that the exports of many hubs in one folder are
a fleet. The partition columns stand in the path alone. Every file is whole before it has its name.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import IO, TYPE_CHECKING

from gateway.errors import StoreError
from gateway.store.blobs import pack_list
from gateway.store.files import beside

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.store.reads import Reader
    from gateway.stored import DatedFrame, DayRow

__all__ = ["FORMATS", "export"]

Cell = int | str | None

FORMATS = ("csv", "jsonl", "parquet")
_HUB = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_EVENT_COLUMNS = {
    "ref": "TEXT",
    "device": "TEXT",
    "boot": "INTEGER",
    "seq": "INTEGER",
    "kind": "TEXT",
    "pets": "TEXT",
    "received_ms": "INTEGER",
    "start_ms": "INTEGER",
    "end_ms": "INTEGER",
    "dating": "TEXT",
    "earliest_ms": "INTEGER",
    "latest_ms": "INTEGER",
    "amount": "INTEGER",
    "unit": "TEXT",
    "object": "TEXT",
    "fields": "TEXT",
    "set_aside": "TEXT",
}
_DAY_COLUMNS = {
    "ref": "TEXT",
    "series": "TEXT",
    "unit": "TEXT",
    "start_ms": "INTEGER",
    "end_ms": "INTEGER",
    "n": "INTEGER",
    "total": "INTEGER",
    "covered_ms": "INTEGER",
    "sums": "TEXT",
    "covered": "TEXT",
    "set_aside": "TEXT",
    "revision": "INTEGER",
    "late": "INTEGER",
}
"""Instants are ms UTC, amounts in ``unit``; ``pets`` are the ids the device served, joined by
``+``; ``fields``, ``sums`` and ``covered`` are JSON arrays (the latter per quarter hour)."""


def export(reader: Reader, folder: Path, *, kind: str, hub: str, date_of: Callable[[int], str]) -> tuple[Path, ...]:
    """Write every event and every day row; files of an earlier export of this hub are replaced.

    Parameters
    ----------
    reader : Reader
        An open snapshot; give it a lease of minutes.
    folder : Path
        Made if it is absent.
    kind : str
        ``csv``, ``jsonl`` or ``parquet``.
    hub : str
        The hub's name in the paths: 1 to 64 of letters, digits, ``.``, ``_``, ``-``.
    date_of : callable
        The local date of an instant, ms UTC.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    StoreError
        The kind or the hub's name cannot be used, the Parquet extra is not installed, or a
        file cannot be written.
    """
    if not _HUB.match(hub):
        raise StoreError(f"a hub's name must be 1 to 64 letters, digits, '.', '_' or '-', is {hub!r}")
    if kind not in FORMATS:
        raise StoreError(f"an export's format must be one of {', '.join(FORMATS)}, is {kind!r}")
    write = _parquet_writer() if kind == "parquet" else {"csv": _write_csv, "jsonl": _write_jsonl}[kind]
    tables: tuple[tuple[str, dict[str, str], Iterator[tuple[str, dict[str, Cell]]]], ...] = (
        ("events", _EVENT_COLUMNS, _events(reader, date_of)),
        ("days", _DAY_COLUMNS, _days(reader)),
    )
    written = []
    try:
        for name, columns, rows in tables:
            parts: Counter[str] = Counter()
            for date, group in groupby(rows, key=lambda dated: dated[0]):
                # A home that moved westwards lives an evening twice: its date comes again.
                target = folder / name / f"hub={hub}" / f"date={date}" / f"part-{parts[date]}.{kind}"
                parts[date] += 1
                target.parent.mkdir(parents=True, exist_ok=True)
                part = beside(target, ".part")
                with part.open("wb") as file:
                    write(file, columns, (row for _, row in group))
                part.replace(target)
                written.append(target)
    except OSError as problem:
        raise StoreError(f"an export must be writable, but {problem.filename or folder}: {problem.strerror}") from None
    return tuple(written)


def _events(reader: Reader, date_of: Callable[[int], str]) -> Iterator[tuple[str, dict[str, Cell]]]:
    home = reader.household()
    for frame in reader.every_frame():
        yield date_of(frame.start_ms), _event(frame, home.bindings_at(frame.device, frame.start_ms))


def _event(frame: DatedFrame, pets: frozenset[str]) -> dict[str, Cell]:
    derived = {"ref": frame.ref.text, "pets": "+".join(sorted(pets)), "fields": pack_list(frame.fields)}
    return {name: derived.get(name, getattr(frame, name, None)) for name in _EVENT_COLUMNS}


def _days(reader: Reader) -> Iterator[tuple[str, dict[str, Cell]]]:
    units = {series.id: series.unit for series in reader.all_series()}
    for day in reader.every_day():
        yield day.date, _day(day, units[day.series])


def _day(day: DayRow, unit: str) -> dict[str, Cell]:
    derived = {"ref": day.ref.text, "unit": unit, "sums": pack_list(day.sums), "covered": pack_list(day.covered)}
    return {name: derived.get(name, getattr(day, name, None)) for name in _DAY_COLUMNS}


def _write_csv(file: IO[bytes], columns: dict[str, str], rows: Iterable[dict[str, Cell]]) -> None:
    """RFC 4180, UTF-8; an absent value is an empty field."""
    lines = csv.writer(_Text(file))
    lines.writerow(columns)
    lines.writerows(tuple(row.values()) for row in rows)


def _write_jsonl(file: IO[bytes], _columns: dict[str, str], rows: Iterable[dict[str, Cell]]) -> None:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


class _Text:
    """What ``csv`` writes to: UTF-8 into a binary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _parquet_writer() -> Callable[[IO[bytes], dict[str, str], Iterable[dict[str, Cell]]], None]:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an optional extra, wanted by this format alone
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise StoreError(
            "an export as parquet must have pyarrow, which is not installed; install it with: "
            "pip install 'scentwalk[export]'"
        ) from None
    types = {"INTEGER": pa.int64(), "TEXT": pa.string()}

    def write(file: IO[bytes], columns: dict[str, str], rows: Iterable[dict[str, Cell]]) -> None:
        schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
        parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)

    return write
