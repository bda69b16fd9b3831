"""The Monday pass: which series of the household move together, pass by stored pass.

Each pass is a row; "third in a row" is computed from the rows, never counted up, so a
replay gives the same edges. An edge's record keeps what it stands on: days, lag, r and its
interval, q, method, data hash, passes in a row. Belief comes from how long it stands.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from gateway.measure.correlate import Association, Pass, SeriesDays, associations, belief_of, standing
from gateway.measure.days import add_days, dates_between, day_interval
from gateway.measure.series import grid_of
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.stored import TextRecord

if TYPE_CHECKING:
    from gateway.model import Household
    from gateway.ontology.vocabulary import Ontology
    from gateway.store import Transaction

__all__ = ["correlate_pass", "is_pass_day"]

_REACH_DAYS = 365
_MONDAY = 0
_NEVER = "9999-12-31"
_KINDS = frozenset({"duration", "mass", "count"})


def is_pass_day(as_of: str) -> bool:
    """Whether the closed day is one on which correlations are computed."""
    return date.fromisoformat(as_of).weekday() == _MONDAY


def correlate_pass(tx: Transaction, home: Household, ontology: Ontology, as_of: str) -> None:
    """Correlate every pair over the year that ends with ``as_of`` and write what stands."""
    series = _series_days(tx, home, ontology, as_of)
    found = associations(series)
    for one in found:
        a, b = sorted((one.tail, one.head))
        tx.save_correlation(a, b, as_of=as_of, passed=one.found, facts=_facts(one, a))
    trust = ontology.reliability["hub"]
    edges, evidence = [], []
    for one in found:
        kept = _edge(tx, home, one, as_of, trust)
        if kept is not None:
            record, edge, mass = kept
            tx.drop_outdated(record)
            tx.save_text(record)
            edges.append(edge)
            evidence.append(Evidence(edge.ref, record.ref, mass, "hub", trust))
    tx.replace_edges(("correlates_with",), edges, evidence)


def _series_days(tx: Transaction, home: Household, ontology: Ontology, as_of: str) -> SeriesDays:
    """Daily totals of every single pet's measured series; a day that was not heard enough is nan."""
    first = max(add_days(as_of, 1 - _REACH_DAYS), tx.first_day() or as_of)
    dates = dates_between(first, as_of)
    kept = [
        series
        for series in tx.all_series()
        if ontology.properties[series.property].kind in _KINDS
        and "+" not in series.pet
        and (tx.first_date(series.id) or _NEVER) <= as_of  # one that began later was not there: a replay is the same
    ]
    values = np.full((len(kept), len(dates)), np.nan)
    for row, series in enumerate(kept):
        observed = ontology.properties[series.property]
        grid = grid_of(
            tx.days(series.id, first, as_of),
            first,
            as_of,
            zones=home.zones,
            now_ms=day_interval(as_of, home.zones).end_ms,
            unit=series.unit,
            kind=observed.kind,
            night_only=observed.night_only,
        )
        good = grid.usable()
        values[row, good] = grid.day_totals()[good]
    return SeriesDays(
        ids=tuple(series.id for series in kept),
        pets=tuple(series.pet for series in kept),
        properties=tuple(series.property for series in kept),
        values=values,
        first_weekday=date.fromisoformat(first).weekday(),
    )


def _facts(one: Association, first: str) -> dict[str, object]:
    return {
        "lag": one.lag if one.tail == first else -one.lag,
        "r": one.r,
        "interval": list(one.interval),
        "n": one.n,
        "p": one.p,
        "q": one.q,
        "negligible": one.negligible,
        "method": one.method,
        "data": one.data_hash,
    }


def _edge(
    tx: Transaction, home: Household, one: Association, as_of: str, hub: float
) -> tuple[TextRecord, Edge, Mass] | None:
    """The edge that stands after this pass with its record, or None."""
    a, b = sorted((one.tail, one.head))
    passes = tuple(
        Pass(day, q=float(str(facts["q"])), lag=int(str(facts["lag"])), r=float(str(facts["r"])))
        for day, _, facts in tx.correlations(a, b, until=as_of)
    )
    stands = standing(passes)
    if not stands.written:
        return None
    since = passes[-stands.in_a_row].as_of if stands.in_a_row else as_of
    low, high = one.interval
    text = (
        f"{one.tail} and {one.head} moved together over {one.n} common days up to {as_of}: r {one.r:+.2f} "
        f"({low:+.2f} to {high:+.2f}), {one.head} {one.lag} days later, q {one.q:.3g}, "
        f"{stands.in_a_row} passes in a row"
    )
    record = TextRecord(
        ref=RecordRef(f"log:correlation-{a}~{b}@{as_of}"),
        kind="correlation",
        title="Two series that move together, as computed by the hub",
        text=text,
        at_ms=day_interval(as_of, home.zones).end_ms,
        facts=(("method", one.method), ("data", one.data_hash)),
    )
    edge = Edge(
        Vertex(f"series:{one.tail}"),
        "correlates_with",
        Vertex(f"series:{one.head}"),
        day_interval(since, home.zones).start_ms,
    )
    # The hub's reliability scales the mass: together they give exactly the capped table's belief.
    return record, edge, Mass(min(1.0, belief_of(stands.in_a_row) / hub))
