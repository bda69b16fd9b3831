"""How owners put the questions: two halves that share no sentence.

Faults are looked for with `DEVELOPMENT` alone; `PUBLISHED` is what the table is asked with.
None of it was copied from the recogniser's tables; both were written by other hands and stand in
``tests/data/owners_*.json``, a list of sentences a kind. ``{name}``, ``{he}``, ``{him}``, ``{his}``,
``{self}``, ``{food}``, ``{thing}``, ``{other}`` and ``{day}`` are filled in from the household.
"""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["DEVELOPMENT", "PUBLISHED"]

_DATA = Path(__file__).resolve().parents[1] / "data"


def _half(name: str) -> dict[str, tuple[str, ...]]:
    table = json.loads((_DATA / f"owners_{name}.json").read_text("utf-8"))
    return {kind: tuple(sentences) for kind, sentences in table.items()}


DEVELOPMENT = _half("development")
PUBLISHED = _half("published")
