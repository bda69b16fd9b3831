"""Purchases: read from a list, kept line by line, asked about, and never taken for a meal."""

from __future__ import annotations

import pytest

from gateway.ask.answer import answer_lines
from gateway.ask.records import open_record, record_text
from gateway.dialogue import EvidenceClass
from gateway.errors import ImportRefused
from gateway.knowledge.notes import log_kind_of
from gateway.knowledge.purchases import purchase_records, read_purchases
from gateway.ontology.wares import kind_named
from gateway.store import Snapshot
from tests.ask_home import ACME, HARBOR, SWITCHED, household, made, spoken_words, text_of
from tests.ask_situations import since
from tests.question_home import DATA, HOME, differences, rows

LIST = f"""Date,Product,Code,Quantity,Unit,Shop,Price,Points
2026-05-30,Harbor Whitefish 12 kg,{HARBOR},1,bag,Corner Shop,39.90,4
2026-06-14,Harbor Whitefish 12 kg,{HARBOR},2,bag,Corner Shop,79.80,8
2026-06-20,"Dental Sticks, large",,3,pack,,,
2026-07-03,Salmon Feast,4001,1,bag,Pet Barn,24.90,0
2026-07-04,,{ACME},1,,,,
2026-07-10,Salmon Feast,4001,1,bag,Pet Barn,24.90,0
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Max scratches more since Jul 8; the switch of Jul 5 is not at the bowl, only in the shop's list."""
    with made(
        tmp_path_factory.mktemp("bought"), household("max", devices=("bowl-max", "tracker-max"), foods=SWITCHED)
    ) as built:
        built.worn("max", "scratch", 99_000, factor=since("2026-07-08", 1.45))
        built.feed("bowl-max", "2026-04-01", HARBOR, "Harbor Whitefish")
        assert built.command("purchases", text=LIST, source="shop.csv") == "Read 6 purchases, 6 new."
        built.learn()
        yield built


def told(home, question, **more):
    answer = home.ask(question, **more)
    return [line for line in answer_lines(answer) if line]


def test_importing_twice_or_under_another_name_changes_nothing(home):
    assert home.command("purchases", text=LIST, source="again.csv") == "Read 6 purchases, 0 new."


def test_a_later_export_adds_only_its_new_lines_and_two_equal_lines_are_two_purchases():
    line = "2026-06-14,Harbor,1\n"
    once, twice = (read_purchases(f"date,product,quantity\n{line * n}", source="x") for n in (1, 2))
    refs = [[r.ref for r in purchase_records(p, file="x", days={"2026-06-14": 0})] for p in (once, twice)]
    assert refs[1][0] == refs[0][0]
    assert len(set(refs[1])) == 2


def test_a_citation_opens_the_line_as_it_was_written_with_its_file(home):
    claim = home.ask("When did we last buy dental sticks?").claims[0]
    with Snapshot(home.path) as reader:
        shown = "\n".join(record_text(open_record(reader, claim.refs[0]), []))
    for part in ('2026-06-20,"Dental Sticks, large",,3,pack,,,', "File: shop.csv", "Line: 4"):
        assert part in shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("date,product,quantity\n2026-13-01,Acme,1\n", "shop.csv, line 2: date: must be a date such as 2026-07-03"),
        ("date,product,quantity\n2026-07-01,Acme,two\n", "shop.csv, line 2: quantity: must be a number above 0"),
        ("date,product,quantity\n2026-07-01,A,1\n2026-07-01,,1\n", "shop.csv, line 3: product: must be given"),
        ("date,code,quantity\n2026-07-01,a b,1\n", "shop.csv, line 2: code: must be 1 to 64 of"),
        ("date,product\n2026-07-01,Acme\n", "shop.csv, line 1: quantity: must be a column"),
        ("date,product,quantity\n2026-07-01,Acme\n", "shop.csv, line 2: a line must have 3 values, has 2"),
        ('date,product,quantity\n2026-07-01,"Acme,1\n', "shop.csv, line 2: must be CSV"),
        ("date,product,quantity\n", "must hold at least one purchase"),
    ],
)
def test_a_wrong_line_refuses_the_whole_file_naming_line_and_field(text, says):
    with pytest.raises(ImportRefused) as refused:
        read_purchases(text, source="shop.csv")
    assert says in str(refused.value)


def test_semicolons_and_decimal_commas_are_read_as_a_spreadsheet_writes_them():
    (one,) = read_purchases("Datum;date;product;quantity;unit\nMi;2026-07-01;Acme;2,5;kg\n", source="x")
    assert (one.quantity, one.unit, one.product) == ("2.5", "kg", "Acme")


def test_a_purchase_in_the_future_is_refused(home):
    with pytest.raises(ImportRefused, match="line 2: date: must not lie in the future"):
        home.command("purchases", text="date,product,quantity\n2026-08-01,Acme,1\n", source="x.csv")


def test_one_purchase_is_written_down_by_itself_and_once(home):
    said = {"product": "Cat Litter", "at": "2026-03-01", "quantity": "2", "unit": "bags"}
    assert home.command("bought", **said).startswith("Kept: bought 2 bags of Cat Litter on 2026-03-01.")
    assert home.command("bought", **said).startswith("That purchase was kept already")


@pytest.mark.parametrize(
    ("question", "opening", "line"),
    [
        (
            "When did we last buy Harbor?",
            "Jun 14: Harbor Whitefish 12 kg.",
            "Harbor Whitefish 12 kg, 2 bag, bought on Jun 14 at Corner Shop for 79.80 [purchase].",
        ),
        ("When did we last buy Acme?", "Jul 4: Acme Chicken & Rice.", "Acme Chicken & Rice, bought on Jul 4"),
        (
            "What food did we buy in June?",
            "Jun 14: Harbor Whitefish 12 kg.",
            "Harbor Whitefish 12 kg, 2 bag",
        ),
        (
            "What did we buy in June?",
            "Two purchases are on file, Jun 1\N{EN DASH}30.",
            "Dental Sticks, large, 3",
        ),
        ("When did we last buy treats?", "Jun 20: Dental Sticks, large.", "Dental Sticks, large, 3"),
        ("How many bags of Harbor have we bought?", "Two purchases are on file, 3 bag in all.", "bought on May 30"),
        ("Did I order Purina in May?", "I can't tell: no purchase named purina is on file, May 1", "Salmon Feast, 1"),
        ("Wann haben wir zuletzt Acme gekauft?", "4. Juli: Acme Chicken & Rice.", "gekauft am 4. Juli"),
    ],
)
def test_what_was_bought_is_answered_from_its_lines(home, question, opening, line):
    lines = told(home, question)
    assert lines[0].startswith(opening), lines
    assert line in "\n".join(lines), lines
    claims = home.ask(question).claims
    assert {claim.evidence_class for claim in claims} == {EvidenceClass.RECORDED}
    assert all(ref.text.startswith("log:purchase-") for claim in claims for ref in claim.refs)


KINDS_LIST = """date,product,quantity,kind
2026-05-02,Frontline Spot On Dog,1,
2026-05-20,Parasite-Ex 3,1,flea treatment
2026-06-01,Cat litter clumping 10 l,2,
2026-06-02,Cat litter scoop,1,
2026-06-10,Apoquel 16 mg,1,
2026-06-11,Ocean Feast Cat Food,6,
2026-06-20,Salmon Treats,1,
2026-06-25,Cosy Corner,1,Zubeh\u00f6r
2026-07-01,Meadow Mix,1,
2026-07-02,Advantage 40,1,
"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A dog and a cat; what was bought is named by the file, by its name, or by nobody."""
    with made(
        tmp_path_factory.mktemp("kinds"), household("max", "luna", devices=("bowl-max",), foods=SWITCHED)
    ) as built:
        assert built.command("purchases", text=KINDS_LIST, source="shop.csv") == "Read 10 purchases, 10 new."
        built.command("purchases", text=f"date,code,quantity\n2026-06-14,{HARBOR},2\n", source="more.csv")
        built.feed("bowl-max", "2026-04-01", HARBOR, "Harbor Whitefish")
        built.learn()
        yield built


@pytest.mark.parametrize(
    ("question", "opening", "also"),
    [
        ("When did I buy flea treatment?", "May 20: Parasite-Ex 3.", "Kind not on file. Advantage 40"),
        ("When did we last buy litter?", "Jun 1: Cat litter clumping 10 l.", "Kind not on file. Advantage 40"),
        ("when did we last buy treats", "Jun 20: Salmon Treats.", "Meadow Mix"),
        ("When did we last buy food for Max?", "Jun 14: Harbor Whitefish.", "Kind not on file. Advantage 40"),
        (
            "When did we last buy food for Luna?",
            "Jun 11: Ocean Feast Cat Food.",
            "Whom it was bought for is not on file",
        ),
        ("When did we last buy medicine?", "Jun 10: Apoquel 16 mg.", "Meadow Mix"),
        ("Did we buy flea treatment in June?", "I can't tell: no purchase known to be flea treatment is on file", ""),
        (
            "Did we buy flea treatment in July?",
            "I can't tell: no purchase known to be flea treatment",
            "Kind not on file. Advantage 40",
        ),
        ("When did we last buy a wormer?", "I can't tell: no purchase known to be wormer is on file", "Meadow Mix"),
        ("How much medicine did we buy in May?", "Two purchases are on file, May 1\N{EN DASH}31.", "Parasite-Ex 3"),
        ("Wann haben wir zuletzt Katzenstreu gekauft?", "1. Juni: Cat litter clumping 10 l.", "Art nicht eingetragen"),
        (
            "\u00bfCu\u00e1ndo compramos arena por \u00faltima vez?",
            "1 de junio: Cat litter clumping 10 l.",
            "Tipo no anotado",
        ),
    ],
)
def test_a_kind_of_thing_is_what_the_list_or_its_name_says_and_never_guessed(kinds, question, opening, also):
    lines = told(kinds, question)
    assert lines[0].startswith(opening), lines
    assert also in "\n".join(lines), lines
    claims = kinds.ask(question).claims
    assert claims
    assert all(claim.evidence_class is EvidenceClass.RECORDED and claim.refs for claim in claims)
    assert "Cosy Corner" not in "\n".join(lines)
    assert "scoop" not in "\n".join(lines)


def test_a_kind_that_nobody_knows_refuses_the_file_and_another_languages_word_is_one():
    (one,) = read_purchases("date,product,quantity,kind\n2026-07-01,Meadow Mix,1,Trockenfutter\n", source="x")
    assert one.kind == "food"
    with pytest.raises(ImportRefused, match="line 2: kind: must be one of food, treat, medicine, flea treatment"):
        read_purchases("date,product,quantity,kind\n2026-07-01,Meadow Mix,1,stuff\n", source="x")


def test_a_list_without_kinds_keeps_the_references_it_had():
    plain, empty = (read_purchases(f"date,product,quantity{more}\n2026-07-01,Acme,1{end}\n", source="x")
                    for more, end in (("", ""), (",kind", ",")))  # fmt: skip
    refs = [purchase_records(read, file="x", days={"2026-07-01": 0})[0].ref for read in (plain, empty)]
    assert refs[0] == refs[1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Bravecto 250 mg", "flea_treatment"), ("Milbemax worming tablets", "wormer"), ("Apoquel 16 mg", "medicine"),
        ("Hundefutter Ente", "food"), ("Katzenstreu 20 l", "litter"), ("Dental Sticks, large", "treat"),
        ("glucosamine chews", "supplement"), ("toy mouse", "toy"), ("Cat litter tray", "equipment"), ("flea comb", "equipment"),
        ("pill pockets", "treat"), ("flea shampoo", "flea_treatment"),
        ("Salmon Feast", None), ("Advantage 40", None), ("Revolution", None), ("Joint tablets", None),
        ("treats and toys", None), ("", None),
    ],
)  # fmt: skip
def test_a_name_says_a_kind_only_where_it_leaves_no_doubt(name, kind):
    assert kind_named(name) == kind


def test_anything_new_before_it_began_is_what_came_for_the_first_time_in_the_weeks_before(home):
    why = home.ask("Why is Max scratching more this week?")
    answer = home.ask("Did we buy anything new before it began?", after=why)
    text = text_of(answer)
    assert text.startswith("Yes, for the first time on file, Jun 15"), text
    assert "Salmon Feast on Jul 3 and Acme Chicken & Rice on Jul 4, and one more" in text
    assert "No record says that Max was given" in text
    assert "not thereby the cause" in text
    assert text_of(home.ask("Did we buy anything new before the scratching began?")) == text
    assert "Harbor" not in text  # bought again, not for the first time


def test_a_purchase_is_a_near_miss_of_a_change_and_never_its_cause(home):
    answer = home.ask("Why is Max scratching more this week?")
    text = text_of(answer)
    assert "nothing on file explains it" in text
    assert "Salmon Feast was bought on Jul 3, but no record says that he was given it [purchase]" in text
    assert not [claim for claim in answer.claims if claim.evidence_class is EvidenceClass.CONNECTION]
    assert answer.chain == ()
    assert [miss.what for miss in answer.near_misses] == [
        "Dental Sticks, large was bought on Jun 20",
        "Salmon Feast was bought on Jul 3",
        "Acme Chicken & Rice was bought on Jul 4",
    ]
    assert spoken_words(answer) <= 160


def test_what_the_bowl_or_the_log_says_was_given_is_no_near_miss(tmp_path):
    with made(tmp_path, household("max", devices=("bowl-max", "tracker-max"), foods=SWITCHED)) as built:
        built.worn("max", "scratch", 99_000, factor=since("2026-07-08", 1.45))
        built.command("purchases", text=LIST, source="shop.csv")
        built.feed("bowl-max", "2026-04-01", HARBOR, "Harbor Whitefish")
        built.feed("bowl-max", "2026-07-05", ACME, "Acme Chicken & Rice")
        built.log("max", "treat: Dental Sticks, large", "2026-06-21")
        built.learn()
        answer = built.ask("Why is Max scratching more this week?")
        bought = [miss.what for miss in answer.near_misses if "bought" in miss.what]
    assert bought == ["Salmon Feast was bought on Jul 3"]


def test_without_purchases_that_is_said_with_how_to_add_them(tmp_path):
    with made(tmp_path, household("max")) as built:
        text = text_of(built.ask("What did we buy last week?"))
    assert text.startswith("No purchase is on file.")
    assert "scentwalk import purchases FILE.csv" in text


def test_purchase_questions_become_frames_in_three_languages():
    assert differences(rows(DATA / "questions_purchases.jsonl"), HOME) == []


# --- medicines: what is on file of a schedule, and what was given -------------------------------------


@pytest.fixture(scope="module")
def pills(tmp_path_factory):
    with made(tmp_path_factory.mktemp("pills"), household("bella", "max")) as built:
        built.note("bella", "2026-02-03", "Hypothyroid. Start thyroid pill (levothyroxine): once daily, morning.")
        built.log("bella", "levothyroxine", "2026-07-13T08:04")
        built.log("bella", "forgot thyroid pill", "2026-07-14T09:00")
        built.learn()
        yield built


@pytest.mark.parametrize(
    "question",
    [
        "Did anyone give Bella her thyroid pill?",
        "Should I give Bella her thyroid pill now?",
        "Did Bella get her pill?",
        "Did anyone give Bella her thyroid pill? Should I give it now?",
    ],
)
def test_a_pill_is_answered_from_log_and_schedule_and_a_forgotten_one_is_not_a_given_one(pills, question):
    text = text_of(pills.ask(question))
    assert text.startswith("I can't tell: no "), text
    for part in (
        "Last logged: Levothyroxine, Jul 13, 08:04 [owner's log]",
        'The schedule reads "Start thyroid pill (levothyroxine): once daily, morning." [vet note, Feb 3]',
        "Don't give two to catch up; your vet (555-0100)",
    ):
        assert part in text, text
    assert "Last logged: Forgot" not in text


def test_should_i_give_it_now_takes_the_medicine_and_the_pet_of_the_question_before(pills):
    before = pills.ask("Did anyone give Bella her thyroid pill?")
    text = text_of(pills.ask("Should I give it now?", after=before))
    assert text == text_of(before)
    assert 'Noted, not as given: "forgot thyroid pill", today, 09:00' in text


def test_should_i_give_a_persons_medicine_stays_conservative(pills):
    before = pills.ask("Did anyone give Bella her thyroid pill?")
    answer = pills.ask("Should I give her ibuprofen now?", after=before)
    assert answer.question.answer_class == "conservative"


def test_a_medicine_known_only_to_the_household_is_logged_as_given():
    assert log_kind_of("gave Zorblin", medicines=("Zorblin",)) == "medicine"
    assert log_kind_of("forgot Zorblin", medicines=("Zorblin",)) is None
    assert log_kind_of("gave Zorblin") is None


# --- the last visit to the bowl ------------------------------------------------------------------------


def test_when_a_pet_ate_last_is_said_once(tmp_path):
    with made(tmp_path, household("max", devices=("bowl-max",))) as built:
        built.eats("max", 340, days=2)
        built.learn()
        text = text_of(built.ask("When did Max last eat?"))
    assert text.count("Jul 14, 17:10") == 1
    assert text.startswith("The last visit to the bowl was on Jul 14, 17:10, 1")
    assert " g [bowl]." in text
