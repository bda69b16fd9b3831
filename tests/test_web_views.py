"""What the pages say, without a browser: records, headlines, trends, drawings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.wire import KINDS
from gateway.ask.records import heading, open_record, record_text, support
from gateway.dialogue import EvidenceClass
from gateway.errors import UnknownRecord
from gateway.graph.belief import fold
from gateway.measure.days import add_days, day_interval
from gateway.model import Evidence, Mass, PetStatus, RecordRef, Series
from gateway.ontology.load import load
from gateway.store import Database, Snapshot
from gateway.web.answers import Sentence
from gateway.web.chart import ChartLink, draw_chart, read_chain
from gateway.web.draw import draw_trend
from gateway.web.headline import headline
from gateway.web.learning import read_learning
from gateway.web.together import read_together
from gateway.web.trend import TREND_DAYS, Point, Trend, read_trend
from gateway.web.views import front_page, near_lines
from tests.web_home import (
    ATE,
    CAUSES,
    CONTAINS,
    FOOD_SET_REF,
    LABEL,
    LABEL_REF,
    LOG_REF,
    NOTE_REF,
    NOW_MS,
    PASSAGE_REF,
    SHOWS,
    SIGN,
    TODAY,
    WHOLE_LABEL_REF,
    ZONES,
    at,
    day_row,
    fill,
    household,
    meal,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    where = tmp_path_factory.mktemp("views") / "home.db"
    fill(where)
    return where


@pytest.fixture
def reader(path):
    with Snapshot(path) as snapshot:
        yield snapshot


@pytest.fixture
def fresh(tmp_path):
    """A household without any record, open for writing."""
    with Database(tmp_path / "fresh.db") as database:
        with database.transaction() as tx:
            tx.save_household(household("Peanut"), valid_from_ms=0)
        yield database


def opened(reader, text: str):
    return open_record(reader, RecordRef(text))


# --- records --------------------------------------------------------------------------------------


def test_an_event_is_shown_with_every_value_it_carried(reader):
    record = opened(reader, "event:bowl-max/3/12")
    assert record.title == "Visit to the bowl, 205 g, Mon Jul 13 2026, 07:10"
    assert record.source == "Max's bowl"
    assert record.lines == (
        "Device: Max's bowl",
        "Pet: Max",
        "When: Mon Jul 13 2026, 07:10 to 07:14",
        "Time from: the device's running time, placed by the hub when it was heard",
        "Lasted: 240 s",
        "Left the bowl: 205 g",
        "Quality: clean",
        "Reached the hub: Mon Jul 13 2026, 07:14",
        "Record number: start 3, number 12",
    )


def test_an_event_that_does_not_count_says_why(reader):
    assert (
        "Not counted: 48 g left the bowl in 70 s; not counted as eaten" in opened(reader, "event:bowl-max/3/901").lines
    )


def test_an_event_without_a_known_time_names_the_bracket(reader):
    lines = opened(reader, "event:bowl-max/3/902").lines
    assert "Time from: not known exactly; it lies between Sat Jul 11 2026, 12:00 and Sat Jul 11 2026, 15:00" in lines


def test_an_event_of_a_shared_device_names_all_who_may_have_been_there(fresh):
    with fresh.transaction() as tx:
        tx.bind("bowl-max", frozenset({"max", "luna"}), valid_from_ms=at("2026-07-01", 0))
        tx.add_frames([meal(7, TODAY, 8, 50)])
    with fresh.snapshot() as reader:
        assert "Pet: one of Luna or Max; the device is shared" in opened(reader, "event:bowl-max/3/7").lines


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_a_device_sends_can_be_opened(fresh, kind):
    """Each wire kind with values of its own shape; no field is left out or crashes the page."""
    values = tuple("x" if field.unit == "text" else max(field.low, 1) if field.high > 0 else 0 for field in kind.fields)
    with fresh.transaction() as tx:
        tx.add_frames([replace(meal(7, TODAY, 8, 50), kind=kind.name, fields=values, amount=None, unit=None)])
    with fresh.snapshot() as reader:
        lines = opened(reader, "event:bowl-max/3/7").lines
    named = [field for field in kind.fields if field.name != "began_ms"]
    assert len(lines) == 6 + len(named)


def test_an_imported_row_of_another_shape_shows_its_figure_and_values(fresh):
    with fresh.transaction() as tx:
        odd = replace(meal(7, TODAY, 8, 50), boot=None, seq=None, dating="import", fields=(1, 2, 3, 4, 5))
        tx.add_frames([odd])
    with fresh.snapshot() as reader:
        lines = opened(reader, "event:bowl-max/3/7").lines
    assert "Amount: 50 g" in lines
    assert "As imported: 5" in lines


def test_a_day_of_meals_opens_the_meals_it_was_counted_from(reader):
    record = opened(reader, "day:max.intake/2026-07-13")
    assert [part.text for part in record.parts] == ["event:bowl-max/3/12", "event:bowl-max/3/13"]
    assert heading(reader, record.parts[0]).startswith("Visit to the bowl, 205 g")


def test_a_day_of_movement_is_shown_by_the_hour(reader):
    record = opened(reader, "day:max.scratching/2026-07-08")
    hours = [line for line in record.lines if ", heard 60 min" in line]
    assert len(hours) == 24
    assert record.source == "Max's tracker"


@pytest.mark.parametrize(("date", "hours"), [("2026-03-08", 23), ("2026-11-01", 25)])
def test_a_day_with_a_clock_change_has_as_many_hours_as_it_lasted(fresh, date, hours):
    with fresh.transaction() as tx:
        tx.save_series(Series("max.scratching", "max", "scratch", "ms"))
        tx.save_day(day_row("max.scratching", date, 90_000))
    with fresh.snapshot() as reader:
        lines = opened(reader, f"day:max.scratching/{date}").lines
    assert sum(", heard 60 min" in line for line in lines) == hours
    assert f"Heard: {hours} h of {hours} h" in lines


def test_a_day_that_changed_later_says_so(fresh):
    with fresh.transaction() as tx:
        tx.save_series(Series("max.scratching", "max", "scratch", "ms"))
        for total in (90_000, 120_000, 150_000):
            tx.save_day(day_row("max.scratching", "2026-07-01", total))
    with fresh.snapshot() as reader:
        assert any(
            line.startswith("Restated: 2 times") for line in opened(reader, "day:max.scratching/2026-07-01").lines
        )


def test_a_cited_ingredient_is_marked_in_the_whole_label(reader):
    record = open_record(reader, LABEL_REF)
    assert record.lines[0] == LABEL
    (line, start, end) = record.marks[0]
    assert (line, LABEL[start:end]) == (0, "chicken meal")
    assert "Rice, [chicken meal], peas" in record_text(record)[3]
    assert open_record(reader, WHOLE_LABEL_REF).marks == ()


@given(text=st.text("ab\n", max_size=40), span=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_marks_cover_exactly_the_cited_characters(text, span):
    from gateway.ask.records import _line_marks  # noqa: PLC0415

    start, end = min(span), min(max(span), len(text))
    lines = text.split("\n")
    marked = "".join(lines[line][first:last] for line, first, last in _line_marks(text, (start, end)))
    assert marked == text[start:end].replace("\n", "")


def test_a_passage_shows_its_chapter_its_source_and_who_reviewed_it(reader):
    record = open_record(reader, PASSAGE_REF)
    assert record.title == "Care guide, ch. 7: Food and itching"
    assert record.source == "Care guide (scentwalk's own, 2026-11)"
    assert "Reviewed by: not yet reviewed by a vet" in record.lines


def test_a_link_is_shown_with_its_time_its_standing_and_its_records(reader):
    record = open_record(reader, ATE.ref)
    assert record.title == "Max ate Acme Chicken & Rice"
    assert record.lines[:2] == ("Holds: from Sun Jul 5 2026, 08:10", "Standing: well supported: 2 sources")
    assert set(record.parts) == {FOOD_SET_REF, LOG_REF}
    assert open_record(reader, CAUSES.ref).title == "In a dog, chicken may cause a food allergy"


@pytest.mark.parametrize(
    ("masses", "words"),
    [
        ((), "nothing stored supports it"),
        ((Mass(0.9),), "one source"),
        ((Mass(0.9), Mass(0.9)), "well supported: 2 sources"),
        ((Mass(0.3), Mass(0.3)), "2 weak sources"),
        ((Mass(0.0, 0.9),), "contradicted by what is stored"),
        ((Mass(0.9), Mass(0.0, 0.9)), "your records disagree"),
    ],
)
def test_how_well_a_link_stands_is_said_in_words(masses, words):
    proofs = [Evidence(ATE.ref, FOOD_SET_REF, mass, f"witness-{i}", 0.95) for i, mass in enumerate(masses)]
    assert support(fold(ATE, proofs)) == words
    assert support(fold(ATE, proofs, marked_wrong=True)) == "marked wrong by you"


@pytest.mark.parametrize(
    "text", ["event:a/1/1", "day:max.scratching/1999-01-01", "day:x", "label:a@b#1-2", "note:x", "edge:x"]
)
def test_a_reference_to_nothing_is_an_error_that_names_it(reader, text):
    with pytest.raises(UnknownRecord, match=r"found none") as refused:
        opened(reader, text)
    assert refused.value.ref == text


def test_no_word_of_the_machinery_reaches_an_owner(reader):
    refs = (
        ATE.ref,
        CONTAINS.ref,
        SHOWS.ref,
        SIGN.ref,
        LABEL_REF,
        NOTE_REF,
        FOOD_SET_REF,
        RecordRef("day:max.intake/2026-07-13"),
    )
    said = " ".join(
        line for ref in refs for line in (open_record(reader, ref).title, *open_record(reader, ref).lines)
    ).lower()
    assert not {word for word in ("baseline", "belief", "plausib", "mass ", "vertex", "none", "null") if word in said}


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Call: ASPCA 888-426-4435 (may charge); Pet Poison Helpline 855-764-7661.", ["8884264435", "8557647661"]),
        ("Your vet 555-0100.", ["5550100"]),
        ("Animal PoisonLine 01202 509000", ["01202509000"]),
        ("Seen Jul 14, 17:10, 205 g; weight 31.4 kg on Jun 30, 2026", []),
        ("Dial 145", []),
    ],
)
def test_under_alarm_every_phone_number_is_one_tap(text, numbers):
    pieces = Sentence(kind="triage", text=text).pieces
    assert [number for _, number in pieces if number] == numbers
    assert "".join(part for part, _ in pieces) == text
    assert Sentence(kind="caution", text=text).pieces == ((text, ""),)


# --- what did not join ----------------------------------------------------------------------------


def test_what_did_not_join_is_said_in_the_homes_words_and_without_masses(reader):
    told = (
        ("condition:flea_allergy", "rank 13, walk mass 0.0177, but its cheapest connection costs 0.0182", ()),
        ("food also changed Jul 5", "nothing new in it is linked to scratching in your sources", (LOG_REF,)),
    )
    near = near_lines(reader, told)
    assert near[0] == ("flea allergy", "near the question, too weakly joined to be part of the answer", ())
    assert near[1] == told[1]


def test_a_rival_called_like_a_kind_of_thing_keeps_its_name(reader):
    told = ("visitor", "nothing in your sources links it to the sign", (LOG_REF,))
    assert near_lines(reader, (told,)) == (told,)


# --- headlines ------------------------------------------------------------------------------------


def said(database, findings: dict[str, dict[str, object]], *, pet: str = "max") -> str:
    """The headline after one pass with these findings, noun -> (verdict, facts)."""
    with database.transaction() as tx:
        for noun, facts in findings.items():
            prop = load().property_of_noun(noun)
            tx.save_series(Series(f"{pet}.{noun}", pet, prop.id, prop.unit))
            told = {"days_used": 7, "days_expected": 7, "reason": None} | facts
            tx.save_finding(
                f"{pet}.{noun}", as_of="2026-07-13", window="P7D", verdict=str(told.pop("verdict")), facts=told
            )
        tx.set_learned("2026-07-13", done_ms=NOW_MS)
    with database.snapshot() as reader:
        home = reader.household()
        return headline(reader, home, home.pet(pet), now_ms=NOW_MS).text


def test_a_week_as_usual_is_never_more_than_nothing_outside_it(fresh):
    text = said(fresh, {"intake": {"verdict": "usual"}, "scratching": {"verdict": "usual"}})
    assert text == "Nothing the bowl and tracker measure is outside Max's usual (Jul 7\N{EN DASH}13, 7 of 7 days)."


def test_what_moved_leads_and_what_did_not_follows(fresh):
    text = said(
        fresh,
        {
            "intake": {"verdict": "down", "change": -0.052},
            "scratching": {"verdict": "up", "change": 0.402},
            "activity": {"verdict": "usual", "change": 0.01},
        },
    )
    assert text == (
        "Max: scratching (up 40 %) is above his usual and food taken from the bowl (down 5 %) is below his usual "
        "(Jul 7\N{EN DASH}13, 7 of 7 days). Activity is as usual."
    )


def test_a_week_that_cannot_tell_says_so_for_that_series(fresh):
    text = said(fresh, {"intake": {"verdict": "usual"}, "restless": {"verdict": "cannot_tell", "reason": "not_heard"}})
    assert text.endswith("One week can't tell for night restlessness.")


def test_refills_and_batteries_say_nothing_about_a_pet(fresh):
    assert "refill" not in said(fresh, {"intake": {"verdict": "usual"}, "refill": {"verdict": "up"}})


def test_a_short_history_says_how_far_it_has_come_and_when_it_is_enough(fresh):
    with fresh.transaction() as tx:
        tx.save_series(Series("max.intake", "max", "intake", "mg"))
        for back in range(1, 10):
            tx.save_day(day_row("max.intake", add_days(TODAY, -back), 400_000))
    text = said(fresh, {"intake": {"verdict": "cannot_tell", "reason": "too_few_days"}})
    assert text == (
        "Too early to know Max's usual: 9 of 28 days recorded. First comparison Aug 1, if the devices are heard every day."
    )


def nine_days(database) -> None:
    with database.transaction() as tx:
        tx.save_series(Series("max.intake", "max", "intake", "mg"))
        tx.save_series(Series("max.refill", "max", "refill", "mg"))
        for back in range(1, 10):
            tx.save_day(day_row("max.intake", add_days(TODAY, -back), 400_000 + back * 1_000))


def test_the_learning_view_says_what_is_there_and_when_it_is_enough(fresh):
    nine_days(fresh)
    with fresh.snapshot() as reader:
        page = read_learning(reader, "max", now_ms=NOW_MS)
    assert page is not None
    assert [line.name for line in page.lines] == ["Food taken from the bowl"]  # a refill says nothing about a pet
    line = page.lines[0]
    assert (line.recorded, line.needed, line.href) == (9, 28, "/series/max.intake")
    assert line.held == "401 to 409 g on 9 full days, middle 405 g."
    assert line.comes == "First comparison Aug 2, a firm one Aug 9."


def test_the_learning_view_names_the_watch_that_needs_no_history_and_what_is_not_on_file(fresh):
    nine_days(fresh)
    with fresh.snapshot() as reader:
        page = read_learning(reader, "max", now_ms=NOW_MS)
        odd = read_learning(reader, "odd", now_ms=NOW_MS)
    assert page is not None
    assert page.watched[0].startswith("After 24 hours without a meal from the bowl, with the bowl heard throughout,")
    assert [form for _, form in page.helps] == ["/log", "/food", "/log"]
    assert odd is not None
    assert odd.watched == ()  # no bowl, nothing to watch
    assert odd.lines == ()


def test_a_series_that_can_be_compared_says_so_on_the_learning_view(reader):
    page = read_learning(reader, "max", now_ms=NOW_MS)
    assert page is not None
    line = next(line for line in page.lines if line.name == "Scratching")
    assert (line.recorded, line.comes) == (line.needed, "Can be compared now.")


def test_nobody_learns_of_a_pet_that_is_not_here(fresh):
    with fresh.transaction() as tx:
        tx.set_status("max", PetStatus.DIED, valid_from_ms=1)
    with fresh.snapshot() as reader:
        assert read_learning(reader, "max", now_ms=NOW_MS) is None
        assert read_learning(reader, "nobody", now_ms=NOW_MS) is None


@pytest.mark.parametrize("status", [PetStatus.DIED, PetStatus.GONE, PetStatus.AWAY])
def test_a_pet_that_is_not_here_gets_no_usual(fresh, status):
    with fresh.transaction() as tx:
        tx.set_status("max", status, valid_from_ms=1)
    text = said(fresh, {"intake": {"verdict": "down"}})
    assert "usual" not in text


def test_the_blind_spots_are_part_of_every_headline(reader):
    home = reader.household()
    said = {pet.id: headline(reader, home, pet, now_ms=NOW_MS).blind for pet in home.pets}
    assert said["max"] == "The bowl and tracker can't see vomiting, limping, urine or pain."
    assert said["luna"] == "The bowl can't see vomiting, limping, urine or pain."
    assert said["odd"] == "No device is bound to this pet."


# --- trends ---------------------------------------------------------------------------------------


def test_a_trend_holds_ninety_days_and_what_was_not_recorded_is_a_gap(reader):
    trend = read_trend(reader, "max.scratching", now_ms=NOW_MS)
    assert trend is not None
    assert len(trend.points) == TREND_DAYS
    assert trend.points[-1].date == TODAY
    missing = [point for point in trend.points if point.note == "not recorded"]
    assert [point.date for point in missing] == ["2026-06-02", "2026-06-03", "2026-06-04"]
    assert all(point.value is None for point in missing)


def test_today_is_not_drawn_before_it_is_over(reader):
    trend = read_trend(reader, "max.scratching", now_ms=NOW_MS)
    assert trend is not None
    assert trend.points[-1].value is None
    assert trend.points[-1].note == "not over yet"


def test_a_day_heard_in_part_is_set_out_per_whole_day_and_one_hardly_heard_is_a_gap(fresh):
    with fresh.transaction() as tx:
        tx.save_series(Series("max.scratching", "max", "scratch", "ms"))
        tx.save_day(day_row("max.scratching", "2026-07-10", 60_000, share=0.75, awake=(0, 24)))
        tx.save_day(day_row("max.scratching", "2026-07-11", 60_000, share=0.5, awake=(0, 24)))
    with fresh.snapshot() as reader:
        trend = read_trend(reader, "max.scratching", now_ms=NOW_MS)
    assert trend is not None
    days = {point.date: point for point in trend.points}
    assert days["2026-07-10"].value == pytest.approx(80_000, rel=0.01)
    assert days["2026-07-11"].value is None
    assert days["2026-07-11"].note == "heard too little of the day"


def test_no_usual_range_is_drawn_from_a_short_history(reader):
    trend = read_trend(reader, "luna.intake", now_ms=NOW_MS)
    assert trend is not None
    assert trend.median is None
    assert trend.band is None
    assert not any(point.far for point in trend.points)


def test_days_beyond_three_spreads_are_marked(reader):
    trend = read_trend(reader, "max.scratching", now_ms=NOW_MS)
    assert trend is not None
    assert "2026-05-15" in {point.date for point in trend.points if point.far}  # the day made twice as high


def test_what_happened_is_numbered_by_time_and_opens_its_record(reader):
    trend = read_trend(reader, "max.scratching", now_ms=NOW_MS)
    assert trend is not None
    assert [(moment.number, moment.date, moment.ref) for moment in trend.moments] == [
        (1, "2026-06-01", LOG_REF),
        (2, "2026-07-05", FOOD_SET_REF),
    ]


def test_another_pets_events_are_not_drawn(reader):
    trend = read_trend(reader, "luna.intake", now_ms=NOW_MS)
    assert trend is not None
    assert trend.moments == ()


def a_trend(values: list[float | None], unit: str, *, level: bool = False) -> Trend:
    first = add_days(TODAY, 1 - len(values))
    points = tuple(
        Point(add_days(first, place), value, 1.0, "" if value is not None else "not recorded", far=False, ref=None)
        for place, value in enumerate(values)
    )
    return Trend("t", "p", "n", unit, level, points, None, None, (), "")


amounts = st.one_of(st.none(), st.floats(0, 1e9, allow_nan=False))


@given(st.lists(amounts, min_size=2, max_size=90), st.sampled_from(["ms", "mg", "count", "permille"]), st.booleans())
def test_whatever_was_measured_is_drawn_inside_its_frame_and_gaps_stay_empty(values, unit, level):
    drawing = draw_trend(a_trend(values, unit, level=level), width=328, height=230)
    numbers = [tuple(map(float, pair.split())) for line in drawing.lines for pair in line[1:].split("L")]
    for x, y in (*numbers, *drawing.lone):
        assert drawing.left - 0.1 <= x <= drawing.right + 0.1
        assert drawing.top - 0.1 <= y <= drawing.bottom + 0.1
    assert len(numbers) + len(drawing.lone) == sum(value is not None for value in values)
    assert len(drawing.y_ticks) <= 6
    assert all(drawing.top - 0.1 <= tick.at <= drawing.bottom + 0.1 for tick in drawing.y_ticks)


def test_a_line_is_broken_where_days_are_missing():
    drawing = draw_trend(a_trend([1e5, 2e5, None, 3e5, 1e5, None, 2e5], "ms"), width=700, height=250)
    assert len(drawing.lines) == 2
    assert len(drawing.lone) == 1
    assert len(drawing.gaps) == 2


def test_a_shared_bowls_series_names_all_its_pets_and_opens_their_meals(fresh):
    with fresh.transaction() as tx:
        tx.bind("bowl-max", frozenset({"max", "luna"}), valid_from_ms=at("2026-07-01", 0))
        tx.add_frames([meal(7, "2026-07-13", 8, 50)])
        tx.save_series(Series("luna+max.intake", "luna+max", "intake", "mg"))
        tx.save_day(day_row("luna+max.intake", "2026-07-13", 50_000))
    with fresh.snapshot() as reader:
        record = opened(reader, "day:luna+max.intake/2026-07-13")
        trend = read_trend(reader, "luna+max.intake", now_ms=NOW_MS)
        cards = {card.name: [link.text for link in card.trends] for card in front_page(reader, now_ms=NOW_MS).pets}
    assert record.title == "Luna and Max: food taken from the bowl, Jul 13 2026"
    assert (record.source, [part.text for part in record.parts]) == ("Max's bowl", ["event:bowl-max/3/7"])
    assert trend is not None
    assert trend.pet == "Luna and Max"
    assert cards["Luna"] == cards["Max"] == ["food taken from the bowl (Luna and Max together)"]
    assert cards["Peanut"] == []


# --- an answer's links ------------------------------------------------------------------------------


def test_the_chain_is_read_with_class_and_standing(reader):
    links = read_chain(reader, (ATE.ref, CONTAINS.ref, CAUSES.ref, RecordRef("edge:gone|x|y|-")))
    assert [(link.sentence, link.evidence_class) for link in links] == [
        ("Max ate Acme Chicken & Rice", EvidenceClass.MEASURED),
        ("Acme Chicken & Rice contains chicken", EvidenceClass.REFERENCE),
        ("In a dog, chicken may cause a food allergy", EvidenceClass.REFERENCE),
    ]


def a_link(tail: str, head: str) -> ChartLink:
    ref = RecordRef(f"edge:food:{tail}|r|food:{head}|-")
    return ChartLink(ref, tail, "leads to", head, tail * 9, head * 9, "", "one source", None, 0.5, marked_wrong=False)


pairs = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), min_size=1, max_size=14)


@given(pairs, st.sampled_from([(640.0, 3), (328.0, 2)]))
def test_no_box_covers_another_whatever_the_links_are(pairs, size):
    """Cycles and self-loops too: two series that move together point at each other."""
    width, columns = size
    chart = draw_chart(tuple(a_link(tail, head) for tail, head in pairs), width=width, columns=columns)
    assert len(chart.wires) == len(pairs)
    for place, box in enumerate(chart.boxes):
        assert box.x >= 0
        assert box.x + box.width <= chart.width
        assert box.y + box.height <= chart.height
        for other in chart.boxes[place + 1 :]:
            beside = box.x + box.width <= other.x or other.x + other.width <= box.x
            above = box.y + box.height <= other.y or other.y + other.height <= box.y
            assert beside or above


def test_a_chain_reads_downwards_from_the_pet_to_the_sign():
    chart = draw_chart(tuple(a_link(a, b) for a, b in ("ab", "bc", "cd", "ad")), width=328, columns=2)
    rows = [box.y for box in chart.boxes]
    assert rows == sorted(rows)
    assert len(set(rows)) == 4


def test_a_better_supported_link_is_drawn_thicker():
    weak, strong = a_link("a", "b"), replace(a_link("b", "c"), belief=0.95)
    chart = draw_chart((weak, strong), width=328, columns=2)
    assert chart.wires[0].stroke < chart.wires[1].stroke


def test_day_rows_of_this_home_lie_on_local_midnights():
    row = day_row("max.scratching", "2026-07-08", 1000)
    assert (row.start_ms, row.end_ms) == (
        day_interval("2026-07-08", ZONES).start_ms,
        day_interval("2026-07-08", ZONES).end_ms,
    )


def test_what_belongs_together_names_each_thing_once_and_a_pet_first(reader):
    groups = read_together(reader, now_ms=NOW_MS)
    things = [thing for group in groups for thing in group.things]
    assert len(things) == len(set(things))
    assert groups[0].things[0] in {"Luna", "Max", "Odd"}
    assert all(len(group.things) > 1 and not any(":" in thing for thing in group.things) for group in groups)


def test_nothing_belongs_together_where_nothing_is_on_file(fresh):
    with fresh.snapshot() as reader:
        assert all(len(group.things) > 1 for group in read_together(reader, now_ms=NOW_MS))
