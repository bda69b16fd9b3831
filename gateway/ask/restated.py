"""Words of earlier answers that late records changed: a stored verdict in, the verdict now out.

An answer stands as it was given. Where a day behind one of its verdicts changed since, the
comparison is run once more over the same window, as of the same instant, on the rows as they
are now; only a changed word is told, and with what it changed. Reads, never writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.ask.figures import compare_window
from gateway.ask.scene import Scene
from gateway.ask.wording import count_word, day, day_range
from gateway.measure.days import day_interval, local_day
from gateway.model import Interval, Verdict, Window
from gateway.stored import ToldVerdict

if TYPE_CHECKING:
    from gateway.dialogue import Answer
    from gateway.model import Household
    from gateway.ontology.vocabulary import Ontology
    from gateway.store.reads import Reader

__all__ = ["changed_text", "late_records", "told_verdicts", "verdict_now"]

_WORDS = {Verdict.UP: "up", Verdict.DOWN: "down", Verdict.USUAL: "as usual", Verdict.CANNOT_TELL: "can't be told"}
_SERIES = "series:"


def told_verdicts(answer: Answer) -> tuple[ToldVerdict, ...]:
    """Every verdict a measured claim of the answer stands on, with the days it was read from."""
    found = []
    for claim in answer.claims:
        if claim.window is None:
            continue
        words = {quantity.name: str(quantity.value) for quantity in claim.values}
        for series in (name.removeprefix(_SERIES) for name in claim.about if name.startswith(_SERIES)):
            word = words.get("verdict", words.get(f"{series}.verdict"))
            days = [ref.text for ref in claim.refs if ref.text.startswith(f"day:{series}/")]
            if word is not None and days:
                found.append(
                    ToldVerdict(
                        claim=claim.id,
                        series=series,
                        since_date=min(text.rpartition("/")[2] for text in days),
                        first_date=claim.window.first_date,
                        last_date=claim.window.last_date,
                        until_ms=claim.window.interval.end_ms,
                        told_ms=answer.as_of_ms,
                        word=word,
                    )
                )
    return tuple(found)


def verdict_now(reader: Reader, told: ToldVerdict) -> Verdict | None:
    """What the same comparison says on the rows as they are now; None where it can't be made again."""
    scene = Scene.at(reader, told.told_ms)
    owner, observed = told.series.partition(".")[0], scene.ontology.property_of_noun(told.series.partition(".")[2])
    pets = [pet for pet in scene.home.pets if pet.id == owner]
    if not pets:
        return None
    start_ms = day_interval(told.first_date, scene.zones).start_ms
    span = Interval(start_ms, max(start_ms, told.until_ms))
    if local_day(max(told.until_ms - 1, start_ms), scene.zones) > told.last_date:  # nights end the morning after
        observed = replace(observed, night_only=True)
    figure = compare_window(scene, pets[0], observed, Window("told", span, told.first_date, told.last_date))
    return None if figure is None else figure.verdict


def late_records(reader: Reader, told: ToldVerdict, *, received_after_ms: int) -> int:
    """How many records of the days behind a verdict arrived after it was told."""
    scene = Scene.at(reader, told.told_ms)
    owner, observed = told.series.partition(".")[0], scene.ontology.property_of_noun(told.series.partition(".")[2])
    return reader.count_late(
        tuple(device.id for device in scene.devices_of(owner, observed)),
        start_ms=day_interval(told.since_date, scene.zones).start_ms,
        end_ms=told.until_ms,
        received_after_ms=received_after_ms,
    )


def changed_text(told: ToldVerdict, home: Household, ontology: Ontology) -> str:
    """The sentence for whoever asked: what they were told, when, and what it is now."""
    owner, _, noun = told.series.partition(".")
    observed, today = ontology.property_of_noun(noun), local_day(told.told_ms, home.zones)
    window = day_range(told.first_date, told.last_date, year_of=today)
    because = (
        f"with {count_word(told.late)} late record{'s' if told.late != 1 else ''}"
        if told.late
        else "with what was put right since"
    )
    return (
        f"{home.pet(owner).name}'s {observed.owner}, {window}: on {day(today)} you were told "
        f'"{_WORDS[Verdict(told.word)]}"; {because} it is "{_WORDS[Verdict(told.now_word or told.word)]}".'
    )
