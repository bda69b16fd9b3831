"""The daily pass: for every closed local day, in date order, each series against its past.

Keyed by ``as_of`` (the day that closed), never run by a timer: what is due follows from the
stored days and the instant handed in, so a hub that was off catches up and gets the same
rows. A day that changed after its pass is learned again, with all that came after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.learn.correlations import correlate_pass, is_pass_day
from gateway.learn.followed import follow_pass
from gateway.learn.notices import false_per_year, half_usual_finding, says_something, shift_finding
from gateway.learn.slow import slow_pass
from gateway.measure.days import add_days, day_interval, local_day
from gateway.measure.series import compare_rows
from gateway.model import PetStatus, stable_id

if TYPE_CHECKING:
    from gateway.measure.series import Measured
    from gateway.model import Household, Series
    from gateway.ontology.vocabulary import Ontology
    from gateway.store import Transaction

__all__ = ["HISTORY_DAYS", "catch_up", "learn_day"]

HISTORY_DAYS = 120
"""Days read for a weekly finding: 56 of baseline, 7 of lag, 7 of window, and room for gaps."""
WINDOW_DAYS = 7
_RESTING = frozenset({PetStatus.DIED, PetStatus.GONE})
_MEASURED_KINDS = frozenset({"duration", "mass", "count"})


def catch_up(tx: Transaction, ontology: Ontology, *, now_ms: int, most: int | None = None) -> tuple[str, ...]:
    """Learn every local day that has closed by ``now_ms`` and was not learned, in date order.

    Parameters
    ----------
    most : int, optional
        Stop after this many days: a long catch-up is then many short transactions.

    Returns
    -------
    tuple of str
        The days learned now, as ISO dates; empty when nothing is due.
    """
    home = tx.household()
    if not home.zones:
        return ()
    restated = tx.restated_from()
    if restated is not None:  # baselines and "third in a row" of later passes held that day
        tx.forget_learned(restated)
    newest = add_days(local_day(now_ms, home.zones), -1)
    done = tx.learned_until()
    first = tx.first_day() if done is None else add_days(done, 1)
    learned: list[str] = []
    while first is not None and first <= newest and (most is None or len(learned) < most):
        learn_day(tx, home, ontology, first)
        if is_pass_day(first):
            correlate_pass(tx, home, ontology, first)
            slow_pass(tx, home, ontology, first)
            follow_pass(tx, home, ontology, first)
        tx.set_learned(first, done_ms=now_ms)
        learned.append(first)
        first = add_days(first, 1)
    return tuple(learned)


def learn_day(tx: Transaction, home: Household, ontology: Ontology, as_of: str) -> None:
    """Compare the seven days that end with ``as_of`` with the days before, for every series; keep
    the notices that stand, and the floor that needs two whole days.
    """
    species = {pet.id: stable_id(pet.species) for pet in home.pets if pet.status not in _RESTING}
    watched = [
        (series, ontology.properties[series.property])
        for series in tx.all_series()
        if series.pet in species
        and ontology.properties[series.property].kind in _MEASURED_KINDS
        and (tx.first_date(series.id) or as_of) <= as_of  # of a device that came later nothing is known yet
    ]
    rate = false_per_year(sum(says_something(observed) for _, observed in watched))
    for series, observed in watched:
        found = _weekly(tx, home, ontology, series, as_of)
        comparison = found.comparison
        tx.save_finding(
            series.id,
            as_of=as_of,
            window="P7D",
            verdict=comparison.verdict,
            facts={
                "reason": comparison.reason,
                "now": comparison.now,
                "usual": comparison.usual,
                "change": comparison.change,
                "interval": comparison.interval,
                "smallest_visible": comparison.smallest_visible,
                "days_used": len(comparison.days_used),
                "days_expected": comparison.days_expected,
                "baseline_days": len(comparison.baseline_days),
                "unit": found.unit,
            },
        )
        if says_something(observed):
            shift_finding(tx, series.id, found, as_of, rate=rate, relevance=observed.relevance)
        if series.property == "intake" and species[series.pet] == "cat":
            half_usual_finding(tx, series.id, found, as_of, zones=home.zones)


def _weekly(tx: Transaction, home: Household, ontology: Ontology, series: Series, as_of: str) -> Measured:
    observed = ontology.properties[series.property]
    history_from = max(add_days(as_of, -HISTORY_DAYS), tx.first_date(series.id) or as_of)
    return compare_rows(
        tx.days(series.id, history_from, as_of),
        add_days(as_of, 1 - WINDOW_DAYS),
        as_of,
        history_from=history_from,
        zones=home.zones,
        now_ms=day_interval(as_of, home.zones).end_ms,
        unit=series.unit,
        kind=observed.kind,
        night_only=observed.night_only,
        relevance=observed.relevance,
        feedings=tx.feedings(home, series.pet) if series.property == "intake" else (),
    )
