"""What is left of a citation whose source the owner had forgotten: a tombstone in, words out.

Never a word of what the record said: whose it was, and since when it is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.ask.wording import day
from gateway.measure.days import local_day
from gateway.model import Record

if TYPE_CHECKING:
    from gateway.model import RecordRef
    from gateway.store.reads import Reader

__all__ = ["grave_of"]


def grave_of(reader: Reader, ref: RecordRef) -> Record | None:
    """The record that stands for one that was forgotten; None where it is stored, or never was."""
    grave = None if reader.knows(ref) else reader.tombstone(ref)
    if grave is None:
        return None
    date = local_day(grave.forgotten_ms, reader.household().zones)
    return Record(
        ref=ref,
        title=f"Forgotten on {day(date)} {date[:4]}: {grave.what}",
        source=grave.what,
        at_ms=grave.forgotten_ms,
        lines=(
            f"You had {grave.what} forgotten on {day(date)} {date[:4]}.",
            "What this record said is not kept. Answers that cite it stay as they were said.",
        ),
    )
