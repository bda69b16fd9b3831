"""A trend as a drawing: numbers in, coordinates out. Pure; the template writes the SVG.

All coordinates are in the drawing's own units, y downwards. Days without a value leave a
hole in the line; the far days and the events are links, everything else is background that
the table under the drawing says in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from gateway.ask.wording import amount, day
from gateway.model import RecordRef
from gateway.web.trend import Trend

__all__ = ["Drawing", "Mark", "Tick", "draw_trend"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 26.0, 26.0
_HEADROOM = 1.08
_MOST_TICKS = 4

_STEPS_MS = tuple(
    1000 * seconds
    for seconds in (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600)
)
"""Durations are read in halves and quarters of minutes and hours, not in tens."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on an axis and where it stands."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A point or line that opens a record."""

    x: float
    y: float
    label: str
    ref: RecordRef
    text: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything an SVG needs; ``lines`` are path data, one for each run without a gap."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    lines: tuple[str, ...]
    lone: tuple[tuple[float, float], ...]
    band: tuple[float, float] | None
    median: float | None
    far: tuple[Mark, ...]
    moments: tuple[Mark, ...]
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    gaps: tuple[tuple[float, float], ...]


def _step(span: float, unit: str) -> float:
    """The smallest readable step that needs at most four ticks for ``span``."""
    if unit == "ms":
        for step in _STEPS_MS:
            if span / step <= _MOST_TICKS:
                return float(step)
    size = 1.0 if unit in {"count", "permille"} else 1e-3
    while True:
        for factor in (1, 2, 5):
            if span / (size * factor) <= _MOST_TICKS:
                return size * factor
        size *= 10


def _bounds(trend: Trend) -> tuple[float, float]:
    """Lowest and highest value shown; sums start at zero, levels near their lowest."""
    values = [point.value for point in trend.points if point.value is not None]
    values += list(trend.band or ())
    if not values:
        return 0.0, 1.0
    top = max(values)
    low = min(values) if trend.level else 0.0
    return (low, top) if top > low else (low * 0.9, top * 1.1 + 1.0)


def _runs(trend: Trend) -> list[list[tuple[int, float]]]:
    """Day number and value of each run of days without a gap."""
    runs: list[list[tuple[int, float]]] = [[]]
    for place, point in enumerate(trend.points):
        if point.value is None:
            runs.append([])
        else:
            runs[-1].append((place, point.value))
    return [run for run in runs if run]


def _gaps(trend: Trend) -> list[tuple[int, int]]:
    """First and last day number of each run of days that are not drawn."""
    found: list[tuple[int, int]] = []
    for place, point in enumerate(trend.points):
        if point.value is not None:
            continue
        if found and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


def draw_trend(trend: Trend, *, width: float, height: float) -> Drawing:
    """Lay a trend out on ``width`` by ``height``.

    Parameters
    ----------
    trend : Trend
        At least two points.
    width, height : float
        The drawing's size; the axis labels are inside it.
    """
    days = len(trend.points)
    low, high = _bounds(trend)
    step = _step(high - low, trend.unit)
    floor = low - low % step
    ceiling = floor + (high - floor) * _HEADROOM
    inner_w, inner_h = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def x_of(place: float) -> float:
        return round(_LEFT + inner_w * place / (days - 1), 1)

    def y_of(value: float) -> float:
        return round(_TOP + inner_h * (1 - (value - floor) / (ceiling - floor)), 1)

    places = {point.date: place for place, point in enumerate(trend.points)}
    runs = _runs(trend)
    ticks = [floor + number * step for number in range(_MOST_TICKS + 2) if floor + number * step <= ceiling]
    half = inner_w / (days - 1) / 2
    return Drawing(
        width=width,
        height=height,
        left=_LEFT,
        right=width - _RIGHT,
        top=_TOP,
        bottom=height - _BOTTOM,
        lines=tuple(
            "M" + "L".join(f"{x_of(place)} {y_of(value)}" for place, value in run) for run in runs if len(run) > 1
        ),
        lone=tuple((x_of(run[0][0]), y_of(run[0][1])) for run in runs if len(run) == 1),
        band=None if trend.band is None else (y_of(trend.band[1]), y_of(trend.band[0])),
        median=None if trend.median is None else y_of(trend.median),
        far=tuple(
            Mark(
                x_of(places[point.date]),
                y_of(point.value),
                f"{day(point.date)}: {amount(point.value, trend.unit)}",
                point.ref,
            )
            for point in trend.points
            if point.far and point.value is not None and point.ref is not None
        ),
        moments=tuple(
            Mark(x_of(places[moment.date]), _TOP - 12, moment.text, moment.ref, str(moment.number))
            for moment in trend.moments
            if moment.date in places
        ),
        y_ticks=tuple(Tick(y_of(value), amount(value, trend.unit)) for value in ticks),
        x_ticks=tuple(
            Tick(x_of(place), day(point.date))
            for place, point in enumerate(trend.points)
            if date.fromisoformat(point.date).day == 1
        ),
        gaps=tuple(
            (max(_LEFT, x_of(first) - half), min(width - _RIGHT, x_of(last) + half) - max(_LEFT, x_of(first) - half))
            for first, last in _gaps(trend)
        ),
    )
