"""Hard floors over stored records: from the first hour, on the clock handed in, until answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.app import Gateway
from gateway.commands import run_command
from gateway.config import Config
from gateway.errors import ImportRefused
from gateway.learn import catch_up, refresh_facts, watch_floors
from gateway.learn.floors import usual_meal_ends
from gateway.links.clock import SteppedClock
from gateway.measure.days import add_days
from gateway.model import PetStatus, RecordRef
from tests.learn_home import (
    DAY,
    HOUR,
    LUNA,
    MAX,
    MINUTE,
    ONTOLOGY,
    at,
    bowl_says,
    day_row,
    food_set,
    log,
    opened,
    save_days,
    series_of,
    store,
)

LAST_MEAL = at("2026-07-10", 19)
FIRST = at("2026-07-09", 8)


def watch(database, now_ms):
    with database.transaction() as tx:
        raised = watch_floors(tx, ONTOLOGY, now_ms=now_ms)
        return raised, tx.floor_notices(open_only=True)


def answer(database, notice, word, now_ms):
    with database.transaction() as tx:
        return run_command(tx, "answer_notice", {"notice": notice.id, "answer": word}, now_ms=now_ms)


def fasting(path, pet=LUNA, *, hours: float = 90, meals=(LAST_MEAL,), **said):
    database = opened(path, pet)
    store(database, bowl_says(f"bowl-{pet.id}", FIRST, FIRST + int(hours * HOUR), meals=meals, **said))
    return database


# --- case 16 of days.md -----------------------------------------------------------------------


def test_an_adult_cat_is_told_of_24_hours_after_its_last_meal_on_day_three_of_ownership(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        assert watch(database, at("2026-07-11", 19) - 1) == ((), ())
        raised, standing = watch(database, at("2026-07-11", 19))
        (notice,) = raised
        assert standing == raised
    assert (notice.kind, notice.urgency, notice.since_ms, notice.raised_ms) == (
        "no_meal",
        "amber",
        at("2026-07-11", 19),
        at("2026-07-11", 19),
    )
    assert notice.text == (
        "No meal from Luna's bowl since Jul 10, 19:00 (24 hours, the bowl heard throughout) is a reason to call your "
        "vet today; now, if Luna is also weak, vomiting, breathing oddly or getting worse."
    )
    kinds = {ref.kind for ref in notice.refs}
    assert len(notice.refs) == 2  # the last meal, and what the bowl said last
    assert kinds == {"event"}


def test_a_floor_that_stands_is_one_notice_however_often_it_is_looked_at(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        for hour in range(24, 40, 3):
            watch(database, LAST_MEAL + hour * HOUR)
        with database.snapshot() as reader:
            (notice,) = reader.floor_notices(open_only=False)
        assert (notice.since_ms, notice.ended_ms) == (LAST_MEAL + DAY, None)


def test_a_floor_speaks_at_the_instant_it_was_reached_even_if_looked_at_hours_later(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        (notice,) = watch(database, LAST_MEAL + 29 * HOUR)[0]
        assert (notice.since_ms, notice.raised_ms) == (LAST_MEAL + DAY, LAST_MEAL + 29 * HOUR)


def test_a_meal_ends_the_notice_and_a_meal_that_arrives_late_ends_it_too(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        watch(database, LAST_MEAL + DAY)
        with database.transaction() as tx:
            late = tx.last_counted("bowl-luna", "meal", before_ms=2**62)
            ref = RecordRef("event:bowl-luna/7/1")
            tx.add_frames([replace(late, ref=ref, boot=7, seq=1, start_ms=LAST_MEAL + 2 * HOUR)])
        assert watch(database, LAST_MEAL + DAY + HOUR) == ((), ())
        (again,) = watch(database, LAST_MEAL + DAY + 2 * HOUR)[0]
        assert "since Jul 10, 21:00" in again.text


@pytest.mark.parametrize(
    ("pet", "hours", "urgency"),
    [
        (replace(LUNA, born="2026-04-01"), 12, "red"),
        (replace(LUNA, born="2026-05-01"), 6, "red"),
        (replace(MAX, breed="Long-haired Chihuahua"), 12, "red"),
        (replace(MAX, breed="Toy Poodle"), 12, "red"),
        (replace(LUNA, species="rabbit"), 12, "red"),
        (replace(LUNA, born=None), 24, "amber"),
        (MAX, 24, "amber"),
    ],
)
def test_young_small_and_frail_pets_are_told_of_sooner_and_red(tmp_path, pet, hours, urgency):
    with fasting(tmp_path / "home.db", pet) as database:
        assert watch(database, LAST_MEAL + hours * HOUR - 1)[1] == ()
        ((notice,), _) = watch(database, LAST_MEAL + hours * HOUR)
        assert (notice.urgency, notice.since_ms) == (urgency, LAST_MEAL + hours * HOUR)
        if urgency == "red":
            assert notice.text.endswith(
                "can be an emergency. Call a vet or an emergency clinic now; don't wait for this page."
            )


def test_a_new_bowl_that_never_saw_a_meal_is_watched_from_its_first_hour(tmp_path):
    with fasting(tmp_path / "home.db", meals=()) as database:
        assert watch(database, FIRST + DAY - 1)[1] == ()
        ((notice,), _) = watch(database, FIRST + DAY)
        assert "since Jul 9, 08:00, when the bowl was first heard" in notice.text


def test_an_unheard_stretch_proves_nothing_and_the_watch_begins_anew_after_it(tmp_path):
    silent = (at("2026-07-11", 1), at("2026-07-11", 4))
    with fasting(tmp_path / "home.db", hours=80, silent=(silent,)) as database:
        assert watch(database, LAST_MEAL + DAY)[1] == ()
        ((notice,), _) = watch(database, silent[1] + DAY + 15 * MINUTE)
        assert "since it was heard again Jul 11, 04:" in notice.text
        assert notice.since_ms >= silent[1] + DAY


def test_a_floor_that_was_reached_still_stands_when_the_bowl_falls_silent(tmp_path):
    with fasting(tmp_path / "home.db", hours=62) as database:  # silent from Jul 11 22:00 on
        watch(database, LAST_MEAL + DAY)
        standing = watch(database, LAST_MEAL + 40 * HOUR)[1]
    assert [notice.kind for notice in standing] == ["no_meal", "unwatched"]


def test_food_that_left_too_fast_is_no_meal(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        with database.transaction() as tx:
            meal = tx.last_counted("bowl-luna", "meal", before_ms=2**62)
            tx.add_frames(
                [
                    replace(
                        meal,
                        ref=RecordRef("event:bowl-luna/7/1"),
                        boot=7,
                        seq=1,
                        start_ms=LAST_MEAL + 5 * HOUR,
                        set_aside="48 g left the bowl in 70 s; not counted as eaten",
                    )
                ]
            )
        assert len(watch(database, LAST_MEAL + DAY)[1]) == 1


# --- whose bowl, and who is here --------------------------------------------------------------


@pytest.mark.parametrize("status", [PetStatus.AWAY, PetStatus.GONE, PetStatus.DIED, PetStatus.SECOND_HOME])
def test_a_pet_that_is_not_here_raises_no_alarm(tmp_path, status):
    with fasting(tmp_path / "home.db") as database:
        with database.transaction() as tx:
            tx.set_status("luna", status, valid_from_ms=LAST_MEAL + HOUR)
        assert watch(database, LAST_MEAL + 30 * HOUR) == ((), ())


def test_a_pet_that_came_home_is_watched_from_then_on(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        with database.transaction() as tx:
            tx.set_status("luna", PetStatus.AWAY, valid_from_ms=LAST_MEAL + HOUR)
            tx.set_status("luna", PetStatus.HOME, valid_from_ms=LAST_MEAL + 10 * HOUR)
            tx.set_status("luna", PetStatus.AFTER_SURGERY, valid_from_ms=LAST_MEAL + 12 * HOUR)
        assert watch(database, LAST_MEAL + 30 * HOUR)[1] == ()
        ((notice,), _) = watch(database, LAST_MEAL + 34 * HOUR)
        assert "since Luna came home Jul 11, 05:00" in notice.text


def test_a_meal_at_a_shared_bowl_may_be_either_pets(tmp_path):
    with opened(tmp_path / "home.db", LUNA, MAX, shared=True) as database:
        store(database, bowl_says("bowl", FIRST, FIRST + 60 * HOUR, meals=(LAST_MEAL,)))
        assert watch(database, LAST_MEAL + DAY - 1)[1] == ()
        texts = [notice.text for notice in watch(database, LAST_MEAL + DAY)[1]]
    assert [text.partition(" since")[0] for text in texts] == [
        "No meal from the bowl that Luna shares with Max",
        "No meal from the bowl that Max shares with Luna",
    ]


# --- answers ----------------------------------------------------------------------------------


def test_eaten_elsewhere_counts_as_a_meal(tmp_path):
    with fasting(tmp_path / "home.db", hours=90) as database:
        ((notice,), _) = watch(database, LAST_MEAL + DAY)
        answered_ms = LAST_MEAL + 25 * HOUR
        answer(database, notice, "ate_elsewhere", answered_ms)
        assert watch(database, answered_ms + DAY - 1)[1] == ()
        ((again,), _) = watch(database, answered_ms + DAY)
        assert again.since_ms == answered_ms + DAY
        assert "since your answer of Jul 11, 20:00" in again.text


def test_seen_keeps_it_standing_and_says_it_again_when_the_time_is_up_again(tmp_path):
    with fasting(tmp_path / "home.db", hours=90) as database:
        ((notice,), _) = watch(database, LAST_MEAL + DAY)
        answered_ms = LAST_MEAL + 25 * HOUR
        answer(database, notice, "seen", answered_ms)
        (standing,) = watch(database, answered_ms + HOUR)[1]
        assert (standing.id, standing.answer) == (notice.id, "seen")
        ((again,), (open_now,)) = watch(database, answered_ms + DAY)
        assert (again.answer, open_now.id) == (None, again.id)


def test_not_at_home_holds_until_the_bowl_records_a_meal(tmp_path):
    back = LAST_MEAL + 40 * HOUR
    with fasting(tmp_path / "home.db", hours=120, meals=(LAST_MEAL, back)) as database:
        ((notice,), _) = watch(database, LAST_MEAL + DAY)
        answer(database, notice, "not_at_home", LAST_MEAL + 25 * HOUR)
        for hour in (26, 39, 40, 63):
            assert watch(database, LAST_MEAL + hour * HOUR)[1] == ()
        assert len(watch(database, back + DAY)[1]) == 1


def test_an_answer_must_fit_its_notice_and_comes_once(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        ((notice,), _) = watch(database, LAST_MEAL + DAY)
        for wrong in ("fine", "", "ate elsewhere"):
            with pytest.raises(ImportRefused, match="answer: must be"):
                answer(database, notice, wrong, LAST_MEAL + DAY)
        with pytest.raises(ImportRefused, match="must be the id of a notice"):
            answer(database, replace(notice, id="luna.no_meal@1"), "seen", LAST_MEAL + DAY)
        assert answer(database, notice, "seen", LAST_MEAL + DAY).text == "Kept for Luna: seen."
        with pytest.raises(ImportRefused, match="was answered: seen"):
            answer(database, notice, "not_at_home", LAST_MEAL + DAY)


# --- insulin ----------------------------------------------------------------------------------


def test_usual_meals_are_times_of_day_that_most_days_share():
    days = [f"2026-07-{day:02d}" for day in range(1, 11)]
    meals = tuple((day, minute + number) for number, day in enumerate(days) for minute in (420, 1080))
    stray = (("2026-07-03", 780), ("2026-07-05", 800))
    assert usual_meal_ends((*meals, *stray)) == (429 + 60, 1089 + 60)
    assert usual_meal_ends(meals[:12]) == ()  # six days are no habit


def test_on_insulin_the_first_missed_usual_meal_is_red(tmp_path):
    days = [add_days("2026-07-01", number) for number in range(10)]
    meals = tuple(at(day, hour) for day in days for hour in (7, 19))
    first = at("2026-07-01", 0)
    with opened(tmp_path / "home.db", LUNA) as database:
        store(database, bowl_says("bowl-luna", first, first + 12 * DAY, meals=meals))
        with database.transaction() as tx:
            tx.save_text(log(LUNA, at("2026-06-01", 8), "insulin, twice a day", "medicine"))
            refresh_facts(tx, ONTOLOGY)
        assert watch(database, at("2026-07-11", 8) - 1)[1] == ()
        ((notice,), _) = watch(database, at("2026-07-11", 8))
    assert (notice.urgency, notice.since_ms) == ("red", at("2026-07-11", 8))
    assert "(a usual meal missed, on insulin, the bowl heard throughout) can be an emergency" in notice.text


# --- the other floors -------------------------------------------------------------------------


def test_a_silent_bowl_says_that_nobody_watches_and_is_silent_again_once_heard(tmp_path):
    last = FIRST + 10 * HOUR
    with fasting(tmp_path / "home.db", hours=10, meals=()) as database:
        assert watch(database, last + 6 * HOUR - 1)[1] == ()
        ((notice,), _) = watch(database, last + 6 * HOUR)
        assert (notice.kind, notice.device, notice.urgency) == ("unwatched", "bowl-luna", "amber")
        assert notice.text == "I can't watch Luna at the moment: the bowl bowl-luna was last heard Jul 9, 18:00."
        with pytest.raises(ImportRefused, match="must be one of not_at_home, seen"):
            answer(database, notice, "ate_elsewhere", last + 7 * HOUR)
        store(database, bowl_says("bowl-luna", last + 8 * HOUR, last + 9 * HOUR, boot=2))
        assert watch(database, last + 9 * HOUR)[1] == ()


def test_a_silent_tracker_carries_no_floor(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as database:
        with database.transaction() as tx:
            frame = food_set("tracker-luna", 1, FIRST, "", "")
            tx.add_frames([replace(frame, kind="hello", fields=("m", "f", 1, 1, 1, 0))])
        assert watch(database, FIRST + 3 * DAY)[1] == ()


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([("2026-06-20", "4.30 kg"), ("2026-07-10", "4.05 kg")], True),  # 5.8 % in three weeks
        ([("2026-06-20", "4.30 kg"), ("2026-07-10", "4.15 kg")], False),
        ([("2026-01-10", "4.30 kg"), ("2026-07-10", "3.80 kg")], True),  # 11.6 % in all
        ([("2026-01-10", "4.30 kg"), ("2026-07-10", "4.00 kg")], False),
        ([("2026-06-20", "9.5 lb"), ("2026-07-10", "4.31 kg")], False),  # the same in two units
        ([("2026-06-20", "4.3"), ("2026-07-10", "3.1 kg")], False),  # a number without a unit is no weight
    ],
)
def test_weight_down_five_percent_in_a_month_or_ten_in_all_is_amber(tmp_path, weights, told):
    with opened(tmp_path / "home.db", LUNA) as database:
        with database.transaction() as tx:
            for day, text in weights:
                tx.save_text(log(LUNA, at(day, 9), f"weight {text}", "weight"))
        standing = watch(database, at("2026-07-11", 9))[1]
    assert [notice.kind for notice in standing] == (["weight_loss"] if told else [])
    if told:
        assert "Weight down from 4.30 kg on" in standing[0].text
        assert all(ref.kind == "log" for ref in standing[0].refs)


def test_a_weight_that_was_seen_is_the_new_reference(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as database:
        for day, text in (("2026-06-20", "4.30 kg"), ("2026-07-10", "4.05 kg")):
            with database.transaction() as tx:
                tx.save_text(log(LUNA, at(day, 9), f"weight {text}", "weight"))
        ((notice,), _) = watch(database, at("2026-07-10", 10))
        answer(database, notice, "seen", at("2026-07-10", 11))
        (standing,) = watch(database, at("2026-07-10", 12))[1]
        assert (standing.id, standing.answer) == (notice.id, "seen")
        with database.transaction() as tx:
            tx.save_text(log(LUNA, at("2026-07-20", 9), "weight 3.80 kg", "weight"))
        ((again,), _) = watch(database, at("2026-07-20", 10))
        assert "from 4.05 kg on Jul 10 to 3.80 kg on Jul 20" in again.text


@pytest.mark.parametrize(
    ("pet", "last_two", "told"),
    [(LUNA, (80, 90), True), (LUNA, (80, 120), False), (MAX, (80, 90), False), (LUNA, (130, 60), False)],
)
def test_a_cat_below_half_of_its_usual_on_two_whole_days_is_amber(tmp_path, pet, last_two, told):
    with opened(tmp_path / "home.db", pet) as database:
        intake = [g * 1000 for g in (*([200, 210, 190] * 4), *last_two)]
        save_days(database, series_of(pet, "intake"), "2026-07-01", intake)
        with database.transaction() as tx:
            catch_up(tx, ONTOLOGY, now_ms=at("2026-07-15", 1))
        standing = watch(database, at("2026-07-15", 1))[1]
    assert [notice.kind for notice in standing] == (["half_usual"] if told else [])
    if told:
        assert standing[0].since_ms == at("2026-07-15", 0)
        assert "less than half of the usual from the bowl on Jul 13 and Jul 14 (at most 45 % of it)" in standing[0].text
        assert [ref.text for ref in standing[0].refs] == ["day:luna.intake/2026-07-13", "day:luna.intake/2026-07-14"]


def test_a_day_that_was_not_heard_whole_is_not_half_of_anything(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as database:
        save_days(database, series_of(LUNA, "intake"), "2026-07-01", [200_000.0] * 13)
        with database.transaction() as tx:
            for day in ("2026-07-14", "2026-07-15"):
                tx.save_day(day_row("luna.intake", day, 60_000, share=0.7))
            catch_up(tx, ONTOLOGY, now_ms=at("2026-07-16", 1))
        assert watch(database, at("2026-07-16", 1))[1] == ()


# --- on the hub's one clock -------------------------------------------------------------------


async def told_by_the_hub(database, clock, move):
    """What stands once the hub's own task has seen the clock move; nobody calls it."""
    gateway = Gateway(Config(), clock, database)
    task = asyncio.create_task(gateway._watch())
    try:
        await gateway.watch_now()
        await move(gateway)
        for _ in range(500):
            with database.snapshot() as reader:
                standing = reader.floor_notices(open_only=True)
            if standing:
                return standing
            await asyncio.sleep(0.02)
        return ()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        gateway.writer.close()


async def test_the_hub_says_it_when_its_clock_reaches_the_hour(tmp_path):
    with fasting(tmp_path / "home.db") as database:
        clock = SteppedClock(LAST_MEAL + DAY - 15 * MINUTE)

        async def a_quarter_passes(_):
            clock.advance(15 * MINUTE)

        (notice,) = await told_by_the_hub(database, clock, a_quarter_passes)
    assert (notice.since_ms, notice.raised_ms) == (at("2026-07-11", 19), at("2026-07-11", 19))


async def test_the_hub_looks_again_after_a_commit(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as database:
        with database.transaction() as tx:
            tx.save_text(log(LUNA, at("2026-06-20", 9), "weight 4.30 kg", "weight"))
        clock = SteppedClock(at("2026-07-10", 9))

        async def weigh(gateway):  # by the hub's one writer, whose thread may be looking just now
            entry = log(LUNA, at("2026-07-10", 8), "weight 4.00 kg", "weight")
            await gateway.writer.run(lambda tx: tx.save_text(entry))
            gateway._committed.set()

        (notice,) = await told_by_the_hub(database, clock, weigh)
    assert notice.kind == "weight_loss"
