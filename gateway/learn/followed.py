"""Event to series, on Mondays: whether a series changed after a food, a medicine, a visit, a stay.

Each event is held beside each of its pet's series once, when 28 days after it have closed: no
second look, so a year of Mondays errs no more often than one. What was found is a stored row;
edges follow from the rows alone. One switch is one observation: its belief is capped low, and
other events near it stay listed with it. Never a cause.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gateway.learn.notices import says_something
from gateway.learn.words import day_words
from gateway.measure.baseline import LEAST_HISTORY
from gateway.measure.correlate import benjamini_hochberg
from gateway.measure.days import add_days, day_interval, local_day
from gateway.measure.followed import AFTER_DAYS, DatedEvent, Followed, event_belief, followed_by
from gateway.measure.series import comparable, grid_of
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.stored import FollowedRow, TextRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway.measure.grid import DayGrid
    from gateway.model import Household, Series
    from gateway.ontology.vocabulary import Ontology
    from gateway.store import Transaction

__all__ = ["FOLLOWED_METHOD", "follow_pass"]

FOLLOWED_METHOD = "before-after-1"
_STARTS = frozenset({"ate", "takes", "treated_with", "visited_by", "was_at"})
_ENDS = frozenset({"ate", "takes", "treated_with"})
"""A visit's end is no event of its own; the end of a food is the other witness of its start."""
_SPEAKS_BY_END = frozenset({"takes", "treated_with"})
"""What a medicine held down may rise once it is over. A food that was left is not what came after."""
_BEFORE_DAYS = 56
_LATEST_DAYS = 120
"""An event entered later than this is not held beside anything any more."""
_Q_WRITE = 0.05
_KINDS = frozenset({"duration", "mass", "count"})


@dataclass(frozen=True, slots=True)
class _Event:
    """A dated beginning or end of one of a pet's periods; ``id`` is the edge with its side."""

    id: str
    date: str
    side: str
    edge: Edge

    @property
    def dated(self) -> DatedEvent:
        return DatedEvent(self.id, self.date)


def follow_pass(tx: Transaction, home: Household, ontology: Ontology, as_of: str) -> None:
    """Hold what became due beside the pets' series, then make the edges those of all rows."""
    events = _events(tx, home, as_of)
    done = {(row.event, row.series) for row in tx.followed(until=as_of)}
    for series in tx.all_series():
        observed = ontology.properties[series.property]
        began = tx.first_date(series.id)
        if began is None or not says_something(observed) or observed.kind not in _KINDS:
            continue
        known = events.get(series.pet, ())
        oldest = max(add_days(as_of, -_LATEST_DAYS), add_days(began, LEAST_HISTORY))
        due = [
            one
            for one in known
            if oldest <= one.date <= add_days(as_of, 1 - AFTER_DAYS) and (one.id, series.id) not in done
        ]
        if not due:
            continue
        _hold(tx, home, ontology, series, due=due, known=known, as_of=as_of)
    _write_edges(tx, home, ontology, {one.id: one for found in events.values() for one in found}, as_of)


def _events(tx: Transaction, home: Household, as_of: str) -> dict[str, tuple[_Event, ...]]:
    """Dated beginnings and ends up to ``as_of``, by pet, in order of date and id."""
    until_ms = day_interval(as_of, home.zones).end_ms
    found: dict[str, list[_Event]] = defaultdict(list)
    for edge in tx.edges(from_ms=-(2**62), to_ms=until_ms - 1):
        if edge.relation not in _STARTS or edge.tail.type != "pet":
            continue
        sides = (("start", edge.valid_from_ms), ("end", edge.valid_to_ms if edge.relation in _ENDS else None))
        for side, at_ms in sides:
            if at_ms is not None and 0 < at_ms < until_ms:
                date = local_day(at_ms, home.zones)
                found[edge.tail.name.partition(":")[2]].append(_Event(f"{edge.ref}#{side}", date, side, edge))
    return {pet: tuple(sorted(events, key=lambda one: (one.date, one.id))) for pet, events in found.items()}


def _hold(
    tx: Transaction,
    home: Household,
    ontology: Ontology,
    series: Series,
    *,
    due: list[_Event],
    known: Iterable[_Event],
    as_of: str,
) -> None:
    """Compare the series before and after each event that is due, and keep what came out."""
    observed = ontology.properties[series.property]
    first = max(add_days(due[0].date, -_BEFORE_DAYS), tx.first_date(series.id) or as_of)
    rows = tx.days(series.id, first, as_of)
    grid, breaks = comparable(
        grid_of(
            rows,
            first,
            as_of,
            zones=home.zones,
            now_ms=day_interval(as_of, home.zones).end_ms,
            unit=series.unit,
            kind=observed.kind,
            night_only=observed.night_only,
        ),
        tx.feedings(home, series.pet) if series.property == "intake" else (),
        home.zones,
    )
    others = tuple(one.dated for one in known)
    for event in due:
        last = add_days(event.date, AFTER_DAYS - 1)
        if any(add_days(event.date, -_BEFORE_DAYS) < start.date <= last for start in breaks):
            continue  # grams of two foods
        found = followed_by(_until(grid, last), event.dated, others=others)
        if found is not None:
            tx.save_followed(FollowedRow(event.id, series.id, as_of, _facts(found)))


def _until(grid: DayGrid, last: str) -> DayGrid:
    stop = int(np.searchsorted(np.array(grid.dates, dtype="U10"), last, side="right"))
    return replace(
        grid,
        dates=grid.dates[:stop],
        total=grid.total[:stop],
        covered_ms=grid.covered_ms[:stop],
        span_ms=grid.span_ms[:stop],
    )


def _facts(found: Followed) -> dict[str, object]:
    return {
        "date": found.event.date,
        "delay": found.delay_days,
        "change": found.change,
        "p": found.p,
        "before": found.days_before,
        "after": found.days_after,
        "rivals": [[rival.id, rival.date] for rival in found.rivals],
    }


# --- edges --------------------------------------------------------------------------------------


def _write_edges(tx: Transaction, home: Household, ontology: Ontology, events: dict[str, _Event], as_of: str) -> None:
    """Edges of what stands after Benjamini-Hochberg over everything ever held beside a series."""
    rows = [row for row in tx.followed(until=as_of) if row.event in events]
    q = dict(zip([(row.event, row.series) for row in rows], _q_values(rows), strict=True))
    groups: dict[tuple[str, str], list[FollowedRow]] = defaultdict(list)
    for row in rows:
        groups[events[row.event].edge.head.name, row.series].append(row)
    hub, labels = ontology.reliability["hub"], tx.vertex_labels()
    edges, evidence = [], []
    for (vertex, series), group in sorted(groups.items()):
        seen = sorted(group, key=lambda row: (str(row.facts["date"]), row.event))
        found = [row for row in seen if q[row.event, row.series] <= _Q_WRITE]
        leading = [row for row in found if _leads(events[row.event])]
        if not leading:
            continue
        told = found[found.index(leading[0]) :]
        belief = event_belief(tuple(_observation(row, found=True) for row in told))
        start = events[leading[0].event]
        begins_ms = day_interval(start.date, home.zones).start_ms
        edge = Edge(Vertex(vertex), "followed_by", Vertex(f"series:{series}"), begins_ms)
        record = _record(edge, told, events, labels, pet=start.edge.tail.name.partition(":")[2], at_ms=begins_ms)
        tx.drop_outdated(record)
        tx.save_text(record)
        edges.append(edge)
        # The hub's reliability scales the mass: together they give exactly the capped belief.
        evidence.append(Evidence(edge.ref, record.ref, Mass(min(1.0, belief / hub)), "hub", hub))
    tx.replace_edges(("followed_by",), edges, evidence)


def _q_values(rows: list[FollowedRow]) -> list[float]:
    """The q-value of each row; the end of one food and the start of the next are one test, not two."""
    tests = sorted({(row.series, str(row.facts["date"]), float(str(row.facts["p"]))) for row in rows})
    if not tests:
        return []
    q = dict(zip(tests, benjamini_hochberg(np.array([p for _, _, p in tests])), strict=True))
    return [float(q[row.series, str(row.facts["date"]), float(str(row.facts["p"]))]) for row in rows]


def _leads(event: _Event) -> bool:
    return event.side == "start" or event.edge.relation in _SPEAKS_BY_END


def _observation(row: FollowedRow, *, found: bool) -> Followed:
    facts = row.facts
    return Followed(
        event=DatedEvent(row.event, str(facts["date"])),
        found=found,
        delay_days=int(str(facts["delay"])),
        change=float(str(facts["change"])),
        p=float(str(facts["p"])),
        days_before=int(str(facts["before"])),
        days_after=int(str(facts["after"])),
        rivals=(),
    )


def _record(
    edge: Edge,
    rows: list[FollowedRow],
    events: dict[str, _Event],
    labels: Mapping[str, str],
    *,
    pet: str,
    at_ms: int,
) -> TextRecord:
    """What the edge stands on, in words and as figures."""
    name = labels.get(edge.tail.name, edge.tail.name.partition(":")[2].replace("_", " "))
    series = labels.get(edge.head.name, edge.head.name.partition(":")[2])
    lines, facts = [], [("method", FOLLOWED_METHOD)]
    for number, row in enumerate(rows, start=1):
        seen, event = _observation(row, found=True), events[row.event]
        verb = "began" if event.side == "start" else "ended"
        way = "up" if seen.change > 0 else "down"
        lines.append(
            f"{name} {verb} on {day_words(event.date)}; from {day_words(add_days(event.date, seen.delay_days))} on "
            f"{series} was {way} by {abs(seen.change) * 100:.0f} % ({seen.days_after} days after it against "
            f"{seen.days_before} before, p {seen.p:.2g})"
        )
        facts += [
            (f"{key}_{number}", f"{row.facts[key]}") for key in ("date", "delay", "change", "p", "before", "after")
        ]
        rivals = _rivals(row, edge.tail.name, events, labels)
        if rivals:
            lines.append(f"Within 21 days of it also: {', '.join(rivals)}")
            facts.append((f"rivals_{number}", ", ".join(rivals)))
    lines.append("One switch is one observation; what came after is not thereby caused by it")
    key = hashlib.sha256(f"{edge.tail}|{edge.head}".encode()).hexdigest()[:8]
    return TextRecord(
        ref=RecordRef(f"log:followed-{key}@{events[rows[0].event].date}"),
        kind="followed",
        title="A series before and after an event, as computed by the hub",
        text=". ".join(lines) + ".",
        pet=pet,
        at_ms=at_ms,
        facts=tuple(facts),
    )


def _rivals(row: FollowedRow, vertex: str, events: dict[str, _Event], labels: Mapping[str, str]) -> list[str]:
    """Other things' events near this one, in words with their dates."""
    told: dict[str, None] = {}
    listed = row.facts["rivals"]
    for rival, _ in listed if isinstance(listed, list) else ():
        event = events.get(str(rival))
        if event is not None and event.edge.head.name != vertex:
            head = event.edge.head.name
            name = labels.get(head, head.partition(":")[2].replace("_", " "))
            told[f"{name} {'began' if event.side == 'start' else 'ended'} on {day_words(event.date)}"] = None
    return list(told)
