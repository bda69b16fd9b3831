"""Slow change, on Mondays: what no single week shows, over 90, 180 and 365 days.

For weight, energy, water, activity and rest. A finding is kept under the span that shows it;
no row means that this pass saw none. It stands beside the weekly verdict, never instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.learn.floors import weighings
from gateway.measure.days import add_days, day_interval
from gateway.measure.series import comparable, grid_of, level_grid
from gateway.measure.slow import SPANS_DAYS, slow_change
from gateway.model import PetStatus, Series

if TYPE_CHECKING:
    from gateway.measure.grid import DayGrid
    from gateway.model import Household, Pet
    from gateway.ontology.vocabulary import Ontology
    from gateway.store import Transaction

__all__ = ["SLOW_PROPERTIES", "SLOW_WINDOWS", "slow_pass"]

SLOW_PROPERTIES = ("weight", "intake", "water", "activity", "rest")
SLOW_WINDOWS = tuple(f"P{days}D" for days in sorted(SPANS_DAYS))
_REACH_DAYS = 2 * max(SPANS_DAYS)
"""A year, and the year before it: were these months recorded then, the season is known."""
_LEAST_OF_RELEVANCE = 0.4
"""A slow change matters below what matters in a week: 2 % of weight, 6 % of energy, 10 % else."""


def slow_pass(tx: Transaction, home: Household, ontology: Ontology, as_of: str) -> None:
    """Look for slow change in every series that can have one, up to ``as_of``."""
    for pet in home.pets:
        if pet.status in (PetStatus.DIED, PetStatus.GONE):
            continue
        for name in SLOW_PROPERTIES:
            observed = ontology.properties[name]
            series = Series(ontology.series_id(pet.id, name), pet.id, name, observed.unit)
            grid = _grid(tx, home, pet, series, kind=observed.kind, as_of=as_of)
            if grid is None:
                continue
            found = slow_change(grid, as_of, least_change=_LEAST_OF_RELEVANCE * observed.relevance)
            if found is None:
                continue
            tx.save_series(series)
            tx.save_finding(
                series.id,
                as_of=as_of,
                window=f"P{found.span_days}D",
                verdict="up" if found.change > 0 else "down",
                facts={
                    "since": found.since,
                    "change": found.change,
                    "interval": list(found.interval),
                    "season_known": found.season_known,
                    "unit": grid.unit,
                },
            )


def _grid(tx: Transaction, home: Household, pet: Pet, series: Series, *, kind: str, as_of: str) -> DayGrid | None:
    """The series' days up to ``as_of``, made comparable; None where there are none."""
    oldest, end_ms = add_days(as_of, 1 - _REACH_DAYS), day_interval(as_of, home.zones).end_ms
    if kind == "level":
        readings = [
            (at_ms, value) for at_ms, value, _ in weighings(tx, home, pet, until_ms=end_ms - 1, reach_days=_REACH_DAYS)
        ]
        return level_grid(readings, oldest, as_of, zones=home.zones, unit=series.unit) if readings else None
    began = tx.first_date(series.id)
    if began is None or began > as_of:
        return None
    feedings = tx.feedings(home, pet.id) if series.property == "intake" else ()
    first = max(oldest, began)
    while True:
        rows = tx.days(series.id, first, as_of)
        grid = grid_of(rows, first, as_of, zones=home.zones, now_ms=end_ms, unit=series.unit, kind=kind)
        grid, breaks = comparable(grid, feedings, home.zones)
        later = [start.date for start in breaks if first < start.date <= as_of]
        if not later:
            return grid
        first = max(later)  # grams of another food are not the same series
