"""CRC-32 of rows: column values in, the number stored beside them out.

A CRC (polynomial 0xEDB88320, as in zlib and ISO 3309) finds every burst of up to 32 rotten
bits and all but one in 4.3e9 of the longer ones. It says nothing about who wrote the row.
"""

from __future__ import annotations

from zlib import crc32

from gateway.store.blobs import as_json

__all__ = ["CHECKED", "row_crc"]

CHECKED = {
    "frame": (
        "SELECT r.ref, t.device, t.boot, t.seq, t.kind, t.uptime_ms, t.received_ms, t.start_ms, t.end_ms, t.dating, "
        "t.earliest_ms, t.latest_ms, t.amount, t.unit, t.object, t.fields, t.set_aside, t.crc, t.record "
        "FROM frame t LEFT JOIN record r ON r.id = t.record"
    ),
    "dead_letter": (
        "SELECT t.transport, t.device, t.boot, t.seq, t.received_ms, t.reason, t.detail, t.raw, t.whole, t.crc, t.id "
        "FROM dead_letter t"
    ),
    "heard": (
        "SELECT t.profile, t.version, t.transport, t.via, t.source, t.key, t.first_ms, t.received_ms, t.signal, t.raw, "
        "t.crc, t.id FROM heard t"
    ),
    "day": (
        "SELECT t.series, t.date, t.start_ms, t.end_ms, t.n, t.total, t.covered_ms, t.sums, t.covered, t.set_aside, "
        "t.late, t.crc, t.record FROM day t"
    ),
    "sealed_day": (
        "SELECT r.ref, t.n, t.sums, t.covered, t.set_aside, t.late, t.crc, t.record "
        "FROM sealed_day t LEFT JOIN record r ON r.id = t.record"
    ),
    "text_record": (
        "SELECT r.ref, t.document, t.pet, t.at_ms, t.until_ms, t.kind, t.object, t.title, t.text, t.facts, "
        "t.crc, t.record FROM text_record t LEFT JOIN record r ON r.id = t.record"
    ),
}
"""Per table: its checked columns in order, then the stored CRC, then the row id. A row that is
cited carries its reference too, so that content under another row's reference is found."""


def row_crc(values: tuple[object, ...]) -> int:
    """CRC-32 of a row's values in column order (None, int, float, str, bytes).

    Everything but bytes is taken as one JSON array, ``[length]`` standing for bytes; these
    follow in their order.
    """
    blobs: tuple[bytes, ...] = ()
    try:
        text = as_json(values)
    except TypeError:  # bytes are no JSON; most rows have none, and looking for them takes as long again
        blobs = tuple(value for value in values if isinstance(value, bytes))
        text = as_json(tuple([len(value)] if isinstance(value, bytes) else value for value in values))
    crc = crc32(text.encode("utf-8", "surrogatepass"))
    for blob in blobs:
        crc = crc32(blob, crc)
    return crc
