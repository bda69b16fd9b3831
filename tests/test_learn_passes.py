"""Facts and passes over constructed databases: the same records give the same rows, in any order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gateway.graph.belief import fold_all
from gateway.learn import catch_up, refresh_facts
from gateway.learn.followed import follow_pass
from gateway.learn.notices import NOTICE_WINDOW, false_per_year
from gateway.learn.passes import learn_day
from gateway.learn.slow import SLOW_WINDOWS, slow_pass
from gateway.measure.days import add_days, day_interval
from gateway.measure.outlook import ids_with
from gateway.measure.series import compare_rows
from gateway.model import Binding, Device, Household, PetStatus, Verdict
from gateway.ontology.load import load
from gateway.store import Database
from tests.learn_home import (
    LUNA,
    MAX,
    ONTOLOGY,
    ZONES,
    at,
    day_row,
    food_set,
    home,
    log,
    noisy,
    opened,
    save_days,
    series_of,
)

FIRST = "2026-03-02"  # a Monday


def learn(database, until, *, most=None):
    """Catch up as of one in the morning after ``until``; the days learned."""
    with database.transaction() as tx:
        return catch_up(tx, ONTOLOGY, now_ms=at(add_days(until, 1), 1), most=most)


def rows_of(database):
    """Everything the passes wrote, without when they ran."""
    with database.snapshot() as reader:
        db = reader._db
        return {
            table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
            for table in ("finding", "correlation", "followed")
        } | {
            "learned": db.execute("SELECT as_of FROM learned ORDER BY 1").fetchall(),
            "edges": [(piece.edge.text, piece.record.text, piece.mass, piece.witness) for piece in reader.evidence()],
            "texts": db.execute(
                "SELECT r.ref, t.text FROM text_record t JOIN record r ON r.id = t.record ORDER BY 1"
            ).fetchall(),
        }


# --- facts ------------------------------------------------------------------------------------

FRAMES = [
    food_set("bowl-max", 1, at("2026-03-02", 8), "2222", "Harbor Fish"),
    food_set("bowl-max", 2, at("2026-05-04", 8), "1111", "Acme Chicken"),
    food_set("bowl-luna", 1, at("2026-03-02", 9), "3333", "Coast"),
    food_set("bowl-max", 3, at("2026-06-01", 8), "2222", "Harbor Fish"),
]
LOGS = [
    log(MAX, at("2026-04-01", 9), "flea treatment", "flea_treatment", until_ms=at("2026-05-01", 9)),
    log(LUNA, at("2026-05-09", 9), "visitor with a dog", "visitor"),
    log(MAX, at("2026-05-12", 9), "apoquel", "medicine", until_ms=at("2026-05-20", 9)),
]


def graph_after(path, order, *, again=False):
    database = opened(path, LUNA, MAX)
    with database:
        for write in order:
            with database.transaction() as tx:
                write(tx)
        for _ in range(2 if again else 1):
            with database.transaction() as tx:
                refresh_facts(tx, ONTOLOGY)
        with database.snapshot() as reader:
            edges = reader.edges(from_ms=-(2**62), to_ms=2**62)
            return edges, reader.evidence(), dict(reader.vertex_labels())


def writes():
    series = series_of(MAX, "scratch")

    def days(tx):
        tx.save_series(series)
        for number in range(3):
            tx.save_day(day_row(series.id, add_days(FIRST, number), 90_000))

    return [
        *((lambda tx, frame=frame: tx.add_frames([frame])) for frame in FRAMES),
        *((lambda tx, entry=entry: tx.save_text(entry)) for entry in LOGS),
        days,
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_facts_are_those_of_the_records_whatever_order_they_came_in(tmp_path, seed):
    order = writes()
    straight = graph_after(tmp_path / "straight.db", order, again=True)
    random.Random(seed).shuffle(order)
    assert graph_after(tmp_path / "shuffled.db", order) == straight
    assert straight[0]


def test_refreshing_between_records_ends_where_one_refresh_of_all_does(tmp_path):
    steps = [step for write in writes() for step in (write, lambda tx: refresh_facts(tx, ONTOLOGY))]
    assert graph_after(tmp_path / "steps.db", steps) == graph_after(tmp_path / "all.db", writes())


def test_what_no_longer_follows_disappears(tmp_path):
    with opened(tmp_path / "home.db", LUNA, MAX) as database, database.transaction() as tx:
        tx.add_frames(FRAMES)
        refresh_facts(tx, ONTOLOGY)
        ate = [edge for edge in tx.edges(from_ms=0, to_ms=2**62) if edge.relation == "ate"]
        tx.bind("bowl-luna", frozenset({"max"}), valid_from_ms=at(FIRST, 0))
        refresh_facts(tx, ONTOLOGY)
        now = [edge for edge in tx.edges(from_ms=0, to_ms=2**62) if edge.relation == "ate"]
    assert {edge.tail.name for edge in ate} == {"pet:luna", "pet:max"}
    assert {edge.tail.name for edge in now} == {"pet:max"}


def test_a_shared_bowl_makes_each_pets_meal_half_believed(tmp_path):
    with opened(tmp_path / "home.db", LUNA, MAX, shared=True) as database, database.transaction() as tx:
        tx.add_frames([food_set("bowl", 1, at("2026-03-02", 8), "2222", "Harbor Fish")])
        facts = refresh_facts(tx, ONTOLOGY)
        ate = [piece for piece in facts.evidence if "|ate|" in piece.edge.text]
    assert [piece.mass.true for piece in ate] == [0.45, 0.45]


# --- the daily pass ---------------------------------------------------------------------------


def scratching(database, days=100, *, seed=1, pet=MAX):
    save_days(database, series_of(pet, "scratch"), FIRST, noisy(seed, days, level=90_000))


def test_every_closed_day_is_learned_once_in_date_order(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        scratching(database, 40)
        last = add_days(FIRST, 39)
        learned = learn(database, last)
        assert learned == tuple(add_days(FIRST, number) for number in range(40))
        before = rows_of(database)
        assert learn(database, last) == ()
        assert rows_of(database) == before


def test_the_open_day_is_not_learned(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        scratching(database, 10)
        with database.transaction() as tx:
            learned = catch_up(tx, ONTOLOGY, now_ms=day_interval(add_days(FIRST, 5), ZONES).end_ms - 1)
        assert learned[-1] == add_days(FIRST, 4)


def test_day_by_day_and_all_at_once_give_the_same_rows(tmp_path):
    last = add_days(FIRST, 69)
    found = []
    for name, step in (("daily", 1), ("once", None)):
        with opened(tmp_path / f"{name}.db", MAX, LUNA) as database:
            scratching(database, 70)
            scratching(database, 70, seed=2, pet=LUNA)
            while learn(database, last, most=step):
                pass
            found.append(rows_of(database))
    assert found[0] == found[1]


def test_a_restated_day_is_learned_again_with_all_that_came_after(tmp_path):
    last, late = add_days(FIRST, 69), add_days(FIRST, 66)
    with opened(tmp_path / "late.db", MAX) as database:
        scratching(database, 70)
        learn(database, last)
        assert learn(database, last) == ()
        with database.transaction() as tx:
            tx.save_day(day_row("max.scratching", late, 400_000))
            assert tx.restated_from() == late
        assert learn(database, last) == tuple(add_days(late, number) for number in range(4))
        restated = rows_of(database)
        assert learn(database, last) == ()
    with opened(tmp_path / "never.db", MAX) as database:
        scratching(database, 70)
        with database.transaction() as tx:
            tx.save_day(day_row("max.scratching", late, 400_000))
        learn(database, last)
        assert rows_of(database) == restated


def test_days_before_a_series_began_are_learned_again_without_it(tmp_path):
    """A late record of the bowl's first weeks, months before the tracker was bought."""
    with opened(tmp_path / "home.db", MAX, LUNA) as database:
        scratching(database, 40)
        save_days(database, series_of(LUNA, "scratch"), add_days(FIRST, 30), noisy(4, 10, level=100_000))
        assert len(learn(database, add_days(FIRST, 39))) == 40
        with database.transaction() as tx:
            tx.save_day(day_row("max.scratching", add_days(FIRST, 2), 1.0))
        assert learn(database, add_days(FIRST, 39))[0] == add_days(FIRST, 2)
        assert {row[0] for row in rows_of(database)["finding"] if row[1] < add_days(FIRST, 30)} == {"max.scratching"}


def test_the_same_day_written_again_restates_nothing(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        scratching(database, 30)
        learn(database, add_days(FIRST, 29))
        scratching(database, 30)
        with database.transaction() as tx:
            tx.save_day(day_row("max.scratching", add_days(FIRST, 30), 1.0))  # today is not learned yet
            assert tx.restated_from() is None


def test_of_a_pet_that_died_nothing_is_compared(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        scratching(database, 40)
        with database.transaction() as tx:
            tx.set_status("max", PetStatus.DIED, valid_from_ms=at(FIRST, 0))
        learn(database, add_days(FIRST, 39))
        assert rows_of(database)["finding"] == []


# --- statistical notices ----------------------------------------------------------------------


def notices(database, until):
    with database.snapshot() as reader:
        return [
            (series, as_of, verdict, facts)
            for series, as_of, _, verdict, facts in reader.findings_between((NOTICE_WINDOW,), FIRST, until)
        ]


def test_a_new_level_is_noticed_within_a_week_and_dated(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        totals = noisy(3, 100, level=90_000)
        totals[90:] *= 1.5
        save_days(database, series_of(MAX, "scratch"), FIRST, totals)
        learn(database, add_days(FIRST, 99))
        found = notices(database, add_days(FIRST, 99))
    assert found
    assert add_days(FIRST, 90) <= found[0][1] <= add_days(FIRST, 97)
    assert {verdict for _, _, verdict, _ in found} == {"up"}
    assert abs((np.datetime64(found[-1][3]["began"]) - np.datetime64(add_days(FIRST, 90))).astype(int)) <= 2
    assert 0.3 <= found[-1][3]["change"] <= 0.7


def test_a_change_that_would_not_matter_is_not_noticed(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        totals = noisy(3, 100, level=90_000, cv=0.02)
        totals[90:] *= 1.12  # six spreads, but half of what an owner would care about
        save_days(database, series_of(MAX, "scratch"), FIRST, totals)
        learn(database, add_days(FIRST, 99))
        assert notices(database, add_days(FIRST, 99)) == []


def test_notices_are_counted_by_the_household(tmp_path):
    assert [false_per_year(series) for series in (0, 1, 4, 8, 13)] == [1.0, 1.0, 1.0, 0.5, 4 / 13]
    with opened(tmp_path / "home.db", MAX, LUNA) as database:
        for number, (pet, name) in enumerate(
            (pet, name) for pet in (MAX, LUNA) for name in ("scratch", "activity", "rest", "shake")
        ):
            totals = noisy(50 + number, 130, level=90_000, cv=0.3)
            save_days(database, series_of(pet, name), FIRST, totals)
        with database.transaction() as tx:
            for number in range(75, 130, 3):
                learn_day(tx, home(MAX, LUNA), ONTOLOGY, add_days(FIRST, number))
        told = {series for series, _, _, _ in notices(database, add_days(FIRST, 129))}
    assert len(told) <= 1  # 4 a household-year: 0.6 expected in these 55 days


# --- slow change ------------------------------------------------------------------------------


def test_case_17_a_slow_loss_of_weight_is_said_by_day_150(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as database:
        rng = np.random.default_rng(1)
        with database.transaction() as tx:
            for week in range(22):
                kg = 4.5 * (1 - 0.089 * week * 7 / 365) * (1 + 0.01 * rng.standard_normal())
                tx.save_text(log(LUNA, at(add_days(FIRST, week * 7), 9), f"weight {kg:.3f} kg", "weight"))
            as_of = add_days(FIRST, 147)
            slow_pass(tx, home(LUNA), ONTOLOGY, as_of)
            ((series, _, window, verdict, facts),) = tx.findings_between(SLOW_WINDOWS, as_of, as_of)
    assert (series, verdict) == ("luna.weight", "down")
    assert window in SLOW_WINDOWS
    assert facts["interval"][0] < facts["change"] < facts["interval"][1] < 0
    assert not facts["season_known"]


def test_a_steady_fall_of_activity_is_slow_and_an_unchanged_one_is_not(tmp_path):
    days = 120
    with opened(tmp_path / "home.db", MAX, LUNA) as database:
        fall = noisy(5, days, level=3_000_000) * np.linspace(1.0, 0.65, days)
        save_days(database, series_of(MAX, "activity"), FIRST, fall)
        save_days(database, series_of(LUNA, "activity"), FIRST, noisy(6, days, level=3_000_000))
        as_of = add_days(FIRST, days - 1)
        with database.transaction() as tx:
            slow_pass(tx, home(MAX, LUNA), ONTOLOGY, as_of)
            found = tx.findings_between(SLOW_WINDOWS, as_of, as_of)
    assert [(series, verdict) for series, _, _, verdict, _ in found] == [("max.activity", "down")]


def test_grams_of_another_food_are_no_slow_change(tmp_path):
    with opened(tmp_path / "home.db", LUNA) as database:
        totals = np.concatenate((noisy(7, 60, level=240_000), noisy(8, 60, level=55_000)))
        save_days(database, series_of(LUNA, "intake"), FIRST, totals)
        with database.transaction() as tx:
            tx.add_frames([food_set("bowl-luna", 1, at(FIRST, 0), "1111", "Acme Chicken")])
            tx.add_frames([food_set("bowl-luna", 2, at(add_days(FIRST, 60), 0), "2222", "Harbor Fish")])
            as_of = add_days(FIRST, 119)
            slow_pass(tx, home(LUNA), ONTOLOGY, as_of)
            assert tx.findings_between(SLOW_WINDOWS, as_of, as_of) == ()


# --- event to series --------------------------------------------------------------------------

SWITCH = add_days(FIRST, 60)
BACK = add_days(FIRST, 102)


def switched(path, *, rise=1.5, undone=False, days=150, level=90_000):
    database = opened(path, MAX)
    totals = noisy(9, days, level=level, cv=0.2)
    totals[63 : 104 if undone else days] *= rise
    save_days(database, series_of(MAX, "scratch"), FIRST, totals)
    frames = [
        food_set("bowl-max", 1, at(FIRST, 6), "2222", "Harbor Fish"),
        food_set("bowl-max", 2, at(SWITCH, 8), "1111", "Acme Chicken"),
    ]
    if undone:
        frames.append(food_set("bowl-max", 3, at(BACK, 8), "2222", "Harbor Fish"))
    with database.transaction() as tx:
        tx.add_frames(frames)
        tx.save_text(log(MAX, at(add_days(SWITCH, -4), 9), "visitor with a dog", "visitor"))
        refresh_facts(tx, ONTOLOGY)
    return database


def followed(database, until):
    learn(database, until)
    with database.snapshot() as reader:
        edges = [edge for edge in reader.edges(from_ms=-(2**62), to_ms=2**62) if edge.relation == "followed_by"]
        evidence = {piece.edge: [piece] for piece in reader.evidence() if "|followed_by|" in piece.edge.text}
        texts = {piece.edge.text: reader.text_record(piece.record) for (piece,) in evidence.values()}
        return {link.edge: (link.belief, texts[link.edge.ref.text]) for link in fold_all(edges, evidence, frozenset())}


def test_a_series_that_rose_after_a_food_gets_an_edge_that_keeps_its_figures(tmp_path):
    with switched(tmp_path / "home.db") as database:
        early = followed(database, add_days(SWITCH, 26))  # not before 28 days have closed
        assert "food:acme" not in {edge.tail.name for edge in early}
        found = followed(database, add_days(SWITCH, 40))
    food = {edge.tail.name: (edge, belief, text) for edge, (belief, text) in found.items()}["food:acme"]
    edge, belief, text = food
    assert (edge.head.name, belief) == ("series:max.scratching", pytest.approx(0.30))
    assert load().accepts(edge.tail, edge.relation, edge.head)
    facts = dict(text.facts)
    assert {"method", "date_1", "delay_1", "change_1", "p_1", "before_1", "after_1", "rivals_1"} <= set(facts)
    assert 0.3 <= float(facts["change_1"]) <= 0.7
    assert "visitor with a dog began on Apr 27" in text.text
    assert "One switch is one observation" in text.text
    assert "cause" not in text.text.replace("caused by it", "")


def test_the_food_that_was_left_is_not_what_the_rise_followed(tmp_path):
    with switched(tmp_path / "home.db") as database:
        tails = {edge.tail.name for edge in followed(database, add_days(SWITCH, 40))}
    assert "food:harbor" not in tails


def test_switching_back_is_a_second_witness(tmp_path):
    with switched(tmp_path / "home.db", undone=True) as database:
        once = followed(database, add_days(SWITCH, 40))
        twice = followed(database, add_days(BACK, 40))
    belief = {edge.tail.name: belief for edge, (belief, _) in once.items()}
    again = {edge.tail.name: belief for edge, (belief, _) in twice.items()}
    assert belief["food:acme"] == pytest.approx(0.30)
    assert again["food:acme"] == pytest.approx(0.45)


def test_each_event_is_looked_at_once(tmp_path):
    with switched(tmp_path / "home.db") as database:
        learn(database, add_days(SWITCH, 40))
        first = rows_of(database)["followed"]
        learn(database, add_days(SWITCH, 80))
        assert rows_of(database)["followed"] == first
        assert first


def test_an_unchanged_series_gets_no_edge(tmp_path):
    with switched(tmp_path / "home.db", rise=1.0) as database:
        assert followed(database, add_days(SWITCH, 60)) == {}
        assert rows_of(database)["followed"]  # it was looked at, and the row says so


def test_a_pass_over_a_home_without_events_makes_no_edge(tmp_path):
    with opened(tmp_path / "home.db", MAX) as database:
        scratching(database, 60)
        with database.transaction() as tx:
            follow_pass(tx, home(MAX), ONTOLOGY, add_days(FIRST, 56))
            assert tx.followed(until="9999-12-31") == ()


# --- numbers select ids, and nothing else --------------------------------------------------------


def test_which_pets_eat_less_is_answered_with_ids_alone(tmp_path):
    with opened(tmp_path / "home.db", MAX, LUNA) as database:
        totals = noisy(11, 60, level=200_000, cv=0.08)
        save_days(database, series_of(LUNA, "intake"), FIRST, totals)
        totals = totals.copy()
        totals[53:] *= 0.6
        save_days(database, series_of(MAX, "intake"), FIRST, totals)
        last = add_days(FIRST, 59)
        with database.snapshot() as reader:
            compared = {
                pet.id: compare_rows(
                    reader.days(f"{pet.id}.intake", FIRST, last),
                    add_days(last, -6),
                    last,
                    history_from=FIRST,
                    zones=ZONES,
                    now_ms=day_interval(last, ZONES).end_ms,
                    unit="mg",
                    kind="mass",
                ).comparison
                for pet in (MAX, LUNA)
            }
    assert ids_with(Verdict.DOWN, compared) == frozenset({"max"})


def test_a_device_that_serves_two_pets_moves_neithers_notices(tmp_path):
    with Database(tmp_path / "home.db") as database:
        with database.transaction() as tx:
            tx.save_household(
                Household(
                    zones=ZONES,
                    pets=(LUNA, MAX),
                    devices=(Device("bowl", "food_bowl", "the bowl"),),
                    bindings=(Binding("bowl", frozenset({"luna", "max"}), 0),),
                ),
                valid_from_ms=0,
            )
        series = series_of(MAX, "intake")
        shared = type(series)("luna+max.intake", "luna+max", "intake", "mg")
        totals = noisy(12, 100, level=200_000)
        totals[90:] *= 0.3
        save_days(database, shared, FIRST, totals)
        learn(database, add_days(FIRST, 99))
        assert rows_of(database)["finding"] == []


@pytest.mark.parametrize(
    ("words", "medicine"),
    [
        ("Metacam", "med:pain_relief"),
        ("amoxicillin tablet", "med:antibiotic"),
        ("rabies booster", "med:vaccine"),
        ("half a white tablet", "med:half_a_white_tablet"),
    ],
)
def test_a_logged_medicine_is_the_one_that_sources_speak_of(tmp_path, words, medicine):
    kind = "vaccine" if "booster" in words else "medicine"
    with opened(tmp_path / "home.db", MAX) as database, database.transaction() as tx:
        tx.save_text(log(MAX, at(FIRST, 9), words, kind))
        refresh_facts(tx, ONTOLOGY)
        given = {e.head.name for e in tx.edges(from_ms=0, to_ms=2**62) if e.relation in ("takes", "treated_with")}
    assert given == {medicine}
