"""A load cell that only says its number: samples in, meals, refills and weights out. Pure.

The firmware's own `firmware_bridge.scale` does the weighing, so that another maker's scale and
our bowl find the same meals. What it remembers travels in the profile's state, so that a
restarted hub, or one that derives old samples again, finds them too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firmware_bridge import wire
from firmware_bridge.scale import Scale
from firmware_bridge.weigh import Platform
from gateway.errors import PayloadError
from gateway.links.codecs import field_at
from gateway.links.profile import Stream
from gateway.links.quantities import number_of, stored

__all__ = ["StreamEvent", "Streamed", "feed"]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """What the samples turned out to be: a kind of row, its values, when it was and when it was known."""

    kind: str
    values: tuple[int, ...]
    start_ms: int
    end_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Streamed:
    """The events a sample closed, and how many samples the scale set aside because of it."""

    events: tuple[StreamEvent, ...]
    rejected: int


def feed(stream: Stream, fields: Any, *, at_ms: int, state: dict[str, Any]) -> Streamed:
    """Take one sample in; ``state`` is changed in place.

    Raises
    ------
    PayloadError
        The sample is no number.
    """
    ((_, path),) = stream.value.terms
    number = number_of(field_at(fields, path), path) * stream.value.scale
    make: Callable[..., Scale | Platform] = Scale if stream.to == "bowl" else Platform
    made = make(**dict(stream.options))
    if "scale" in state:
        try:
            made.restore(base64.b64decode(state["scale"]))
        except ValueError as problem:
            raise PayloadError("bad_state", f"the scale's memory must be its own: {problem}") from None
    before = made.rejected
    found = made.feed(at_ms, stored(number, stream.value, "mg", path))
    state["scale"] = base64.b64encode(made.save()).decode()
    return Streamed(tuple(_event(*each) for each in found), made.rejected - before)


def _event(code: int, at_ms: int, values: tuple[int, ...]) -> StreamEvent:
    kind = wire.KINDS[code].name
    if code == wire.MEAL:  # stored like every meal of another maker: where it began is its own time
        began_ms, lasted_ms, *rest = values
        return StreamEvent(kind, (0, lasted_ms, *rest), began_ms, began_ms + lasted_ms, at_ms)
    return StreamEvent(kind, tuple(values), at_ms, at_ms, at_ms)
