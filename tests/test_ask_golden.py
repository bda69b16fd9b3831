"""The twelve situations of the answers' cases: what each answer holds, and what it never holds."""

from __future__ import annotations

import re
import sqlite3
from statistics import fmean

import pytest

from gateway.ask.answer import EXPLAINED_WORDS, PLAIN_WORDS, answer_json
from gateway.dialogue import EvidenceClass, NoticeKind
from gateway.model import Edge, Evidence, Mass, RecordRef, Vertex
from gateway.store import Snapshot
from gateway.store.blobs import unpack_sums
from tests.ask_home import spoken_words, text_of
from tests.ask_situations import SITUATIONS, clear_change, follow_up

EXPLAINED = {1, 2, 10, 11, 12}
NEVER_SAID = (
    "baseline", "belief", "p-value", "likely cause", "most likely", "healthy", "nothing to worry", "not an emergency",
    " slept", " sleeping", "he ate", "she ate", "probably", "conflict k", "is safe", "are safe",
)  # fmt: skip
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module", params=[*SITUATIONS, 12])
def told(request, tmp_path_factory):
    """(number, question, answer, path) of one situation; 12 continues 1."""
    number = request.param
    with SITUATIONS[1 if number == 12 else number](tmp_path_factory.mktemp(f"situation{number}")) as (home, question):
        answer = home.ask(question)
        if number == 12:
            answer = follow_up(home, answer)
        yield number, question, answer, home.path


@pytest.fixture(scope="module")
def told_by(tmp_path_factory):
    """Ask situation ``n`` once: (text, answer)."""
    known = {}

    def ask(number):
        if number not in known:
            folder = tmp_path_factory.mktemp(f"by{number}")
            with SITUATIONS[1 if number == 12 else number](folder) as (home, question):
                answer = home.ask(question)
                answer = follow_up(home, answer) if number == 12 else answer
                known[number] = (text_of(answer), answer)
        return known[number]

    return ask


def says(text, *parts):
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} must stand in:\n{text}"


# --- what holds of every answer ---------------------------------------------------------------


def test_an_answer_opens_in_at_most_25_words_and_stays_short(told):
    number, _, answer, _ = told
    assert len(answer.notices[0].text.split()) <= 25
    limit = EXPLAINED_WORDS if number in EXPLAINED else PLAIN_WORDS
    assert spoken_words(answer) <= limit, text_of(answer)
    assert answer.budget[2] == (), "nothing of these answers may have been cut"


def test_an_owner_never_reads_a_term_of_art_or_a_reassurance(told):
    text = text_of(told[2]).lower()
    assert [word for word in NEVER_SAID if word in text] == []


def test_every_citation_of_an_answer_is_stored(told):
    with Snapshot(told[3]) as reader:
        stored = {ref.text for claim in told[2].claims for ref in claim.refs if reader.is_stored(ref)}
    assert {ref.text for claim in told[2].claims for ref in claim.refs} <= stored


def test_a_class_keeps_its_rules(told):
    for claim in told[2].claims:
        if claim.evidence_class is EvidenceClass.REFERENCE:
            assert not re.search(r"\b(Max|Luna|Bella|Peanut)\b", claim.text)
        if claim.evidence_class is EvidenceClass.CONNECTION:
            assert " may " in claim.text
            assert set(claim.joins) <= {other.id for other in told[2].claims}


def numbers_of(claim):
    """The figures a claim's values stand for, in every unit they may be worded in."""
    shown = set()
    for quantity in claim.values:
        if not isinstance(quantity.value, int | float):
            shown.update(_NUMBER.findall(str(quantity.value)))
            continue
        for scale in (1, 1e3, 1e6, 6e4, 3.6e6, 10, 0.01):
            scaled = abs(quantity.value) / scale
            shown.update({f"{scaled:,.{digits}f}" for digits in (0, 1, 2)})
    return {number.rstrip("0").rstrip(".") if "." in number else number for number in shown} | shown


def test_every_number_of_a_measured_claim_is_a_value_of_it_or_a_date(told):
    for claim in told[2].claims:
        if claim.evidence_class is not EvidenceClass.MEASURED or not claim.values:
            continue
        bare = re.sub(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d+(\N{EN DASH}\d+)?", "", claim.text)
        bare = re.sub(r"\d\d:\d\d", "", bare)
        days = {str(len(claim.refs)), "7", "14", "28", "30", "90"}
        missing = [n for n in _NUMBER.findall(bare) if n not in numbers_of(claim) | days]
        assert missing == [], f"{missing} of {claim.text!r} are not among {claim.values}"


def test_what_is_missing_names_its_slot(told):
    for notice in told[2].notices:
        if notice.kind is NoticeKind.ABSENCE and (
            "not on file" in notice.text.lower() or "not recorded" in notice.text
        ):
            assert notice.slot, notice.text


def test_at_most_one_device_is_suggested(told):
    suggested = {n.device for n in told[2].notices if n.device not in (None, "people")}
    assert len(suggested) <= 1


# --- recomputing from the cited rows ----------------------------------------------------------


def _day_total(connection, ref):
    series, _, date = RecordRef(ref).key.rpartition("/")
    row = connection.execute("SELECT sums FROM day WHERE series = ? AND date = ?", (series, date)).fetchone()
    return sum(unpack_sums(row[0]))


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_comparison_can_be_recomputed_from_the_days_it_cites(number, told_by, tmp_path):
    """Whole days of the window: their mean is ``now``; the usual lies within their spread."""
    with SITUATIONS[number](tmp_path) as (home, question):
        answer = home.ask(question)
        connection = sqlite3.connect(home.path)
        checked = 0
        for claim in answer.claims:
            values = {quantity.name: quantity.value for quantity in claim.values}
            if claim.kind != "comparison" or "now" not in values or "restless" in "".join(claim.about):
                continue
            first = claim.window.first_date
            before = [_day_total(connection, r.text) for r in claim.refs if r.text.rpartition("/")[2] < first]
            inside = {r.text.rpartition("/")[2]: r for r in claim.refs if r.text.rpartition("/")[2] >= first}
            whole = [_day_total(connection, ref.text) for date, ref in inside.items() if date < "2026-07-14"]
            scale = 3720 / 1e6 if any(q.unit == "kcal/day" for q in claim.values) else 1.0
            assert fmean(whole) * scale == pytest.approx(values["now"], rel=0.06)
            assert fmean(before) * scale == pytest.approx(values["usual"], rel=0.06)
            assert values["change"] == pytest.approx(values["now"] / values["usual"] - 1.0, abs=1e-5)
            checked += 1
        connection.close()
        assert checked >= 1


def test_a_total_is_the_sum_of_its_events(tmp_path):
    with SITUATIONS[3](tmp_path) as (home, _):
        answer = home.ask("How much did Bella eat on Jul 12?")
        visits = next(claim for claim in answer.claims if claim.kind == "visits")
        connection = sqlite3.connect(home.path)
        events = [ref.text for ref in visits.refs if ref.kind == "event"]
        marks = ", ".join("?" for _ in events)
        told = connection.execute(
            f"SELECT sum(f.amount) FROM frame f JOIN record r ON r.id = f.record WHERE r.ref IN ({marks})", events
        ).fetchone()[0]
        connection.close()
        assert {q.name: q.value for q in visits.values}["total"] == told > 0


# --- the twelve -------------------------------------------------------------------------------


def test_1_a_clear_change_names_the_closest_recorded_change_and_no_cause(told_by):
    text, answer = told_by(1)
    says(
        text, "Yes, clearly more; the closest recorded change is his new food on Jul 5",
        "the records can't show", "against his usual", "worn 7 of 7 days [tracker]",
        "Acme Chicken & Rice replaced Harbor Whitefish on Jul 5 [bowl]", "lists chicken meal [product data]",
        "old label lists no chicken [product data]", "commonly reported trigger", "9 to 40 of 100 itchy dogs",
        "a pattern, not a diagnosis", "Not on file: flea treatment", "log the last flea treatment",
    )  # fmt: skip
    kinds = [claim.evidence_class for claim in answer.claims]
    assert kinds == sorted(kinds, key=["MEASURED", "RECORDED", "REFERENCE", "CONNECTION"].index)
    missing = next(notice for notice in answer.notices if notice.text.startswith("Not on file"))
    assert {"parasite", "season", "ears"} <= set(missing.slot.split("+"))


def test_2_a_change_nothing_explains_says_so_and_names_what_is_not_on_file(told_by):
    text, answer = told_by(2)
    says(
        text, "Yes, clearly less, and nothing on file explains it", "lower than all of her last 23 comparable weeks",
        "as usual [bowl; tracker]", "In the 21 days before, no food change", "Weight 4.3 kg on Apr 28 [owner's log]",
        "worth a call to your vet this week",
    )  # fmt: skip
    assert not any(claim.evidence_class is EvidenceClass.CONNECTION for claim in answer.claims)
    slots = {part for notice in answer.notices for part in (notice.slot or "").split("+")}
    assert {"food", "medicine", "parasite", "place", "visitor", "device"} <= slots


def test_3_no_change_is_said_first_with_the_change_that_would_have_shown(told_by):
    text, answer = told_by(3)
    says(
        text, "against her usual", "one week would show a change above about", "Treats and other bowls aren't counted",
        "1 treat logged, last on Jul 11 [owner's log]", "trust that", "Weight 12.4 kg on May 30 [owner's log]",
    )  # fmt: skip
    assert answer.notices[0].text == "No drop shows in what leaves Bella's bowl"


def test_4_thin_data_says_what_is_there_and_when_it_can_be_told(told_by):
    text, _ = told_by(4)
    says(
        text, "Too early to know his usual: 9 days recorded. First comparison Aug 2, a firm one Aug 9",
        "on his 8 full days, middle", "by 18:00; by that hour it was", "last meal 17:10 [bowl]", "log his weight",
        "Call your vet if Peanut is weak or refuses food",
    )  # fmt: skip


def test_5_two_notes_that_contradict_each_other_are_quoted_and_no_yes_or_no_is_given(told_by):
    text, answer = told_by(5)
    says(
        text, "Your records disagree, so there is no yes or no here",
        'For: "Suspect chicken sensitivity" [vet note, Mar 11 2025]',
        'Against: "Re-fed chicken 14 d, no flare" [vet note, Nov 20 2025]', "Flea treatment from Jun 3 to Jul 3",
        "Acme Chicken & Rice since Jul 5 [bowl]", "Show your vet both notes", "don't test it at home",
    )  # fmt: skip
    assert not re.match(r"(Yes|No)\b", answer.notices[0].text)


def test_6_an_emergency_gives_the_numbers_first_and_no_verdict(told_by):
    text, answer = told_by(6)
    head = text.split("\n")[0]
    says(head, "can be an emergency", "Call a vet or an emergency clinic now", "555-0100", "555-0199")
    says(
        text, "Nothing by mouth", "For the phone: Luna", "4.3 kg on Jun 21 [owner's log]",
        "Last meal seen Jul 14, 13:20", "No medicine is on file, which isn't proof of none", "No litter box is connected",
    )  # fmt: skip
    assert "usual" not in text
    assert answer.notices[0].kind is NoticeKind.TRIAGE


def test_7_a_toxin_gives_the_lines_first_and_no_threshold(told_by):
    text, _ = told_by(7)
    says(text.split("\n")[0], "Call now", "888-426-4435", "855-764-7661", "may charge", "555-0100")
    says(
        text, "Don't make Max vomit", "Have ready: what, how much, when", "31.4 kg on Jun 30 [owner's log]",
        "Last meal seen Jul 14, 12:05", "Apoquel [vet note, May 4]", "Nothing the devices record can rule out harm",
    )  # fmt: skip
    assert not re.search(r"mg/kg|\bmg\b|too much|harmless", text)


def test_8_an_empty_medicine_log_is_never_not_given(told_by):
    text, answer = told_by(8)
    says(
        text, "I can't tell: no thyroid pill is logged today", "leaves no trace",
        "Thyroid pill, Jul 13, 08:04 [owner's log]", '"Thyroid pill once daily, morning." [vet note, Feb 3]',
        "Ask everyone", "Don't give two to catch up", "555-0100", "call now", "log it here",
    )  # fmt: skip
    assert any(notice.slot == "medicine" for notice in answer.notices)


def test_9_two_pets_are_compared_and_each_with_its_own_past(told_by):
    text, _ = told_by(9)
    says(
        text, "Luna: 15.", "against Max's 12.5", "Jun 15\N{EN DASH}Jul 14", "over 23 of 30 days [tracker]",
        "over 28 of 30 days [tracker]", "the tracker can't tell sleep", "Different species differ anyway",
        "Against her own past Luna is as her usual", "below his usual, Jul 8\N{EN DASH}14 [tracker]",
    )  # fmt: skip


def test_10_a_silent_bowl_is_no_missed_meal(told_by):
    text, answer = told_by(10)
    says(
        text, "I can't tell that she did: her bowl wasn't heard from Fri Jul 10 21:40 to Sun Jul 12 08:15",
        "That gap isn't zero", "Battery was 4 %", "Since then", "within her usual, Jul 13\N{EN DASH}14 [bowl]",
        "check the bowl's battery", "If you saw Bella refuse food for a day yourself, that counts",
    )  # fmt: skip
    assert answer.notices[0].slot == "intake"
    assert answer.notices[0].device == "food_bowl"


def test_11_fewer_grams_of_a_richer_food_are_not_less(told_by):
    text, answer = told_by(11)
    says(
        text, "No, not less: fewer grams of a richer food, but about the same energy", "g of Brook Wet a day [bowl]",
        "0.85 kcal a gram [product data]", "g of Brook Dry a day [bowl]", "3.70 kcal a gram [product data]",
        "kcal a day against her usual", "Luna's drinking isn't recorded; a water bowl would show it",
        "Grams of two foods can't be compared", "Weigh Luna in two weeks",
    )  # fmt: skip
    assert answer.notices[0].kind is NoticeKind.PREMISE
    assert any(notice.slot == "water" and notice.device == "water_bowl" for notice in answer.notices)


def test_12_a_follow_up_owns_the_hubs_part_and_says_what_each_other_part_stands_on(told_by):
    text, answer = told_by(12)
    says(
        text, "I don't; that line is mine, and it is the weakest part", "Measured: scratching, 7 days against",
        "earlier ones", "On record: Acme Chicken & Rice replaced", "From the label: its label lists chicken meal",
        "From a source: Chicken is a commonly reported trigger", "One change is one observation",
        "Against it: not on file: flea treatment", "Mark the link; you can undo it",
    )  # fmt: skip
    assert not any(claim.evidence_class is EvidenceClass.CONNECTION for claim in answer.claims)


# --- marks, conflict, rivals ------------------------------------------------------------------


def test_a_mark_takes_the_cause_out_and_says_how_to_undo_it(tmp_path):
    with clear_change(tmp_path) as (home, question):
        home.command("wrong", hypothesis="food:acme_chicken>sign:itch@pet:max", reason="ate it before")
        text = text_of(home.ask(question))
        says(text, "nothing on file explains it", "you marked it wrong: the food", "scentwalk undo 1")
        home.command("undo", number="1")
        says(text_of(home.ask(question)), "the closest recorded change is his new food")


def test_a_mark_never_touches_what_is_read_to_a_vet_on_the_phone(tmp_path):
    with SITUATIONS[7](tmp_path) as (home, question):
        before = text_of(home.ask(question))
        with Snapshot(home.path) as reader:
            edges = [e.ref.text for e in reader.edges(from_ms=-(2**62), to_ms=2**62) if e.relation == "takes"]
        home.command("wrong", ref=edges[0], reason="not any more")
        assert text_of(home.ask(question)) == before


def test_two_rivals_stand_side_by_side_and_none_is_the_likely_one(tmp_path):
    with clear_change(tmp_path) as (home, question):
        home.log("max", "flea treatment", "2026-06-03")
        home.learn()
        answer = home.ask(question)
        text = text_of(answer)
        says(
            text,
            "Two things changed before it; the records do not say which",
            "ran out on Jul 3",
            "replaced Harbor Whitefish on Jul 5",
        )
        assert spoken_words(answer) <= EXPLAINED_WORDS
        assert len(answer.notices[0].text.split()) <= 25
        kinds = {claim.kind for claim in answer.claims}
        assert {"food_change", "parasite_change", "connection"} <= kinds


def test_evidence_in_conflict_on_a_used_link_is_said_with_both_sides(tmp_path):
    edge = Edge(Vertex("species:chicken"), "may_cause[dog]", Vertex("condition:food_allergy"))
    with clear_change(tmp_path) as (home, question):
        home.note("max", "2025-11-20", "Chicken is overrated as a trigger.")
        with home.writing() as tx:
            note = tx.texts(("note",), until_ms=2**62)[0].ref
            passage = tx.texts(("passage",), until_ms=2**62)[0].ref
            tx.save_evidence(Evidence(edge.ref, passage, Mass(0.95), "book", 0.95))
            tx.save_evidence(Evidence(edge.ref, note, Mass(0.0, 0.9), "vet", 0.9))
        answer = home.ask(question)
        assert any("may_cause" in ref.key for ref in answer.chain)
        says(text_of(answer), "Your records disagree about chicken", 'Against: "Chicken is overrated as a trigger"')
        assert any(notice.slot == "disagreement" for notice in answer.notices)


def test_what_changed_but_is_known_to_be_tolerated_is_named_beside_the_cause(tmp_path):
    with SITUATIONS[5](tmp_path) as (home, _):
        answer = home.ask("Why is Max scratching more this week?")
        says(text_of(answer), "that flea treatment ran out on Jul 3", "recorded as tolerated")
        assert any(notice.slot == "near_miss" for notice in answer.notices)
        assert spoken_words(answer) <= EXPLAINED_WORDS


@pytest.mark.parametrize("silent_pet", ["Rex", "Otto"])
def test_a_name_nobody_here_bears_is_said_not_guessed(silent_pet, tmp_path):
    with SITUATIONS[3](tmp_path) as (home, _):
        text = text_of(home.ask(f"Why is {silent_pet} scratching?"))
        assert text == f"No pet called {silent_pet} lives here; known: Bella."


def test_an_answer_is_the_same_json_twice(tmp_path):
    with clear_change(tmp_path) as (home, question):
        assert answer_json(home.ask(question)) == answer_json(home.ask(question))


# --- receipts: a figure cites all it is computed from ------------------------------------------


def test_rivals_are_all_named_with_their_dates_however_long_their_sources_are(tmp_path):
    """A kennel and a food: the food's long source once took its date and the connection with it."""
    with clear_change(tmp_path) as (home, question):
        home.log("max", "boarding at Bella's", "2026-07-02", every="3d")
        home.learn()
        answer = home.ask(question)
    told = [claim.kind for claim in answer.claims if claim.kind.endswith("_change")]
    assert set(told) == {"food_change", "place_change"}
    (connection,) = (claim for claim in answer.claims if claim.evidence_class is EvidenceClass.CONNECTION)
    assert set(connection.about[2:]) == {"food:acme_chicken", "place:bellas"}


def test_a_switch_cites_the_records_that_set_the_foods_and_no_meal(tmp_path):
    with clear_change(tmp_path) as (home, question), Snapshot(home.path) as reader:
        (change,) = (claim for claim in home.ask(question).claims if claim.kind == "food_change")
        assert [reader.frame(ref).kind for ref in change.refs] == ["food_set", "food_set"]


def test_what_a_pet_eats_now_is_looked_up_in_its_own_bowl(tmp_path):
    with clear_change(tmp_path) as (home, _):
        answer = home.ask("Is there chicken in what Max eats now?")
    says(text_of(answer), "Yes, by its label", "Acme Chicken & Rice")
    assert "Harbor" not in text_of(answer)
