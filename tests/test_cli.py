"""The command line as an owner uses it: real processes, real files, real errors."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import pytest

HANG_GUARD_S = 300


def scentwalk(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "gateway", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        check=False,
        **options,
    )


@pytest.fixture(scope="module")
def cats(shared_dir, tmp_path_factory):
    """Two real cats' feeders, imported."""
    database = tmp_path_factory.mktemp("cats") / "home.db"
    file = shared_dir / "data" / "surefeed" / "demo_events.csv"
    done = scentwalk("import", "surefeed", file, "--zone", "America/Los_Angeles", "--db", database)
    assert done.returncode == 0, done.stderr
    return database


def answer_of(database, question, *more):
    done = scentwalk("ask", question, "--json", "--db", database, *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_the_same_history_twice_changes_nothing(cats, shared_dir):
    before = answer_of(cats, "Who ate more last week?")
    file = shared_dir / "data" / "surefeed" / "demo_events.csv"
    again = scentwalk("import", "surefeed", file, "--zone", "America/Los_Angeles", "--db", cats)
    assert again.returncode == 0
    assert "0 new rows" in again.stdout
    assert answer_of(cats, "Who ate more last week?") == before


def test_a_real_cats_day_is_its_visits_in_the_local_day(cats):
    answer = answer_of(cats, "How much did Joule eat on July 3?")
    claim = next(claim for claim in answer["claims"] if claim["kind"] == "visits")
    with sqlite3.connect(cats) as db:
        total, visits = db.execute(
            "SELECT sum(amount), count(*) FROM frame WHERE device = 'feeder-joule' AND kind = 'meal' "
            "AND set_aside IS NULL AND start_ms >= ? AND start_ms < ?",
            (1783062000000, 1783148400000),  # 2026-07-03 00:00 to 24:00 in Los Angeles
        ).fetchone()
    assert (claim["values"]["total"]["v"], claim["values"]["visits"]["v"]) == (total, visits)
    assert "from the bowl" in answer["text"][0]


def test_what_left_the_bowl_too_fast_is_set_aside_in_plain_words(cats):
    text = " ".join(answer_of(cats, "How much did Pascal eat on July 2?")["text"])
    assert "48 g left the bowl in 70 s; not counted as eaten" in text
    assert text.count("not counted as eaten") == 4


def test_every_citation_of_an_answer_opens(cats):
    answer = answer_of(cats, "How much did Pascal eat on July 2?")
    refs = sorted({ref for claim in answer["claims"] for ref in claim["refs"]})
    for ref in refs[:: max(1, len(refs) // 6)]:
        opened = scentwalk("record", ref, "--db", cats)
        assert opened.returncode == 0, opened.stderr


def test_asked_as_of_an_instant_the_answer_stands_there(cats):
    early = answer_of(cats, "How much did Joule eat today?", "--now", "2026-07-03T19:00:00Z")
    assert early["as_of"] == "2026-07-03T19:00:00.000Z"
    assert "Jul 3" in early["text"][0]


def test_the_frame_is_printed_as_json(cats):
    done = scentwalk("ask", "Is Pascal eating more than usual this week?", "--frame", "--json", "--db", cats)
    frame = json.loads(done.stdout)
    assert (frame["intent"], frame["pets"], frame["metric"], frame["window"]) == ("trend", ["pascal"], "intake", "P7D")


def test_explain_shows_the_reading(cats):
    done = scentwalk("ask", "Is Pascal eating more than usual this week?", "--explain", "--db", cats)
    assert "intent trend" in done.stdout


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "?" * 100_000,
        "\u0420\u0430\u0441\u0441\u043a\u0430\u0436\u0438",
        "\U0001f408\U0001f408",
        "\u202egniht",
    ],
)
def test_a_question_that_cannot_be_read_gets_a_polite_sentence(cats, question):
    answer = answer_of(cats, question)
    assert answer["claims"] == []
    assert "You can ask" in " ".join(answer["text"])


def test_danger_comes_first_whatever_is_stored(cats):
    answer = answer_of(cats, "Joule chewed on a lily, is that bad?")
    assert answer["notices"][0]["kind"] == "triage"
    assert "Call now" in answer["text"][0]


# --- files that are not what they claim ------------------------------------------------------------


def test_a_wrong_history_is_refused_whole_naming_line_and_field(tmp_path, shared_dir):
    lines = (shared_dir / "data" / "surefeed" / "demo_events.csv").read_text().splitlines()
    lines[40] = lines[40].replace(",g,", ",stone,")
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join(lines))
    done = scentwalk("import", "surefeed", bad, "--zone", "America/Los_Angeles", "--db", tmp_path / "home.db")
    assert done.returncode == 2
    assert "line 41" in done.stderr
    assert "unit" in done.stderr
    with sqlite3.connect(tmp_path / "home.db") as db:
        assert db.execute("SELECT count(*) FROM frame").fetchone() == (0,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zone = 1", "zone"),
        ('zone = "Mars/Olympus"', "IANA"),
        ('zone = "Europe/Berlin"\n[[pet]]\nname = "Max"', "species"),
        ('zone = "Europe/Berlin"\n[[dog]]\nname = "Max"', "dog"),
        ('zone = "Europe/Berlin"\n[[device]]\nid = "b"\nkind = "toaster"', "food_bowl"),
        ("zone = ", "TOML"),
    ],
)
def test_a_wrong_household_is_refused_naming_what_must_hold(tmp_path, text, expected):
    file = tmp_path / "home.toml"
    file.write_text(text)
    done = scentwalk("household", "import", file, "--db", tmp_path / "home.db")
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "home.db"
    file.write_bytes(b"this is a letter, not a database" * 100)
    before = file.read_bytes()
    for arguments in (("ask", "How is Max?"), ("log", "--pet", "max", "--what", "bath", "--at", "2026-07-01")):
        done = scentwalk(*arguments, "--db", file)
        assert done.returncode == 2
        assert str(file) in done.stderr
        assert "Traceback" not in done.stderr
    assert file.read_bytes() == before


def test_a_database_of_a_later_release_is_refused_and_left_alone(tmp_path, cats):
    file = tmp_path / "home.db"
    with sqlite3.connect(cats) as source, sqlite3.connect(file) as target:
        source.backup(target)
        target.execute("PRAGMA user_version = 999")
    before = file.read_bytes()
    done = scentwalk("ask", "How is Joule?", "--db", file)
    assert done.returncode == 2
    assert "999" in done.stderr
    assert file.read_bytes() == before


def test_no_database_at_all_is_said(tmp_path):
    done = scentwalk("ask", "How is Max?", "--db", tmp_path / "none.db")
    assert done.returncode == 2
    assert "none.db" in done.stderr
    assert not (tmp_path / "none.db").exists()


def test_a_home_without_a_zone_names_the_command_that_enters_one(tmp_path):
    done = scentwalk("log", "--pet", "max", "--what", "bath", "--at", "2026-07-01", "--db", tmp_path / "home.db")
    assert done.returncode == 2
    asked = scentwalk("ask", "How is Max?", "--db", tmp_path / "home.db")
    assert asked.returncode == 2
    assert "household import" in asked.stderr


def test_an_unknown_record_is_said(cats):
    done = scentwalk("record", "day:nobody.intake/2026-07-01", "--db", cats)
    assert done.returncode == 2
    assert "day:nobody.intake/2026-07-01" in done.stderr


# --- a home of one's own -----------------------------------------------------------------------------

HOME = """
zone = "America/New_York"
country = "US"
[[pet]]
id = "max"
name = "Max"
species = "dog"
breed = "golden retriever"
[[device]]
id = "bowl-max"
name = "kitchen bowl"
kind = "food_bowl"
pets = ["max"]
[[person]]
name = "Dr. Hill"
role = "vet"
phone = "555-0100"
"""
PRODUCT = {
    "code": "4006381333931",
    "product_name": "Acme Chicken & Rice",
    "brands": "Acme",
    "ingredients_text": "Brown rice, chicken meal (26 %), oats, sunflower oil.",
    "nutriments": {"energy-kcal_100g": 372},
}


@pytest.fixture
def home(tmp_path):
    file = tmp_path / "home.toml"
    file.write_text(HOME)
    database = tmp_path / "home.db"
    assert scentwalk("household", "import", file, "--db", database).returncode == 0
    return database


def test_what_an_owner_writes_down_is_recorded_and_found(home, tmp_path):
    product = tmp_path / "acme.json"
    product.write_text(json.dumps(PRODUCT))
    for _ in range(2):
        assert scentwalk("import", "product", product, "--db", home).returncode == 0
        logged = scentwalk(
            *("log", "--pet", "max", "--what", "flea treatment", "--at", "2026-06-03", "--every", "30d", "--db", home)
        )
        assert logged.returncode == 0, logged.stderr
    label = answer_of(home, "What's in Acme Chicken & Rice?")
    assert "chicken meal" in " ".join(label["text"])
    assert label["claims"][0]["class"] == "REFERENCE"
    found = answer_of(home, "When was Max's last flea treatment?")
    assert found["claims"][0]["class"] == "RECORDED"
    with sqlite3.connect(home) as db:
        assert db.execute("SELECT count(*) FROM text_record WHERE object = 'flea_treatment'").fetchone() == (1,)
        until = db.execute("SELECT until_ms - at_ms FROM text_record WHERE object = 'flea_treatment'").fetchone()[0]
    assert until == 30 * 86_400_000


def test_a_toxin_question_has_the_homes_own_numbers(home):
    text = answer_of(home, "Max just ate two squares of dark chocolate, what do I do?")["text"]
    assert "888-426-4435" in text[0]
    assert "555-0100" in text[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--pet", "rex", "--what", "bath", "--at", "2026-07-01"), "Max"),
        (("--pet", "max", "--what", "bath", "--at", "yesterday"), "2026-07-03"),
        (("--pet", "max", "--what", "bath", "--at", "2026-07-01", "--every", "now and then"), "30d"),
        (("--pet", "max", "--what", " ", "--at", "2026-07-01"), "what"),
        (("--pet", "max", "--what", "bath", "--at", "2999-01-01"), "future"),
    ],
)
def test_a_log_entry_that_cannot_hold_is_refused(home, arguments, expected):
    done = scentwalk("log", *arguments, "--db", home)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mark_can_be_made_and_undone(home, tmp_path):
    product = tmp_path / "acme.json"
    product.write_text(json.dumps(PRODUCT))
    assert scentwalk("import", "product", product, "--db", home).returncode == 0
    with sqlite3.connect(home) as db:
        ref = db.execute("SELECT ref FROM record WHERE ref LIKE 'edge:%|contains|species:chicken|%'").fetchone()[0]
    marked = scentwalk("wrong", ref, "--reason", "old label", "--db", home)
    assert marked.returncode == 0, marked.stderr
    assert scentwalk("undo", "1", "--db", home).returncode == 0
    assert scentwalk("undo", "1", "--db", home).returncode == 2
    assert scentwalk("wrong", "edge:a:b|c|d:e|-", "--reason", "no", "--db", home).returncode == 2


def test_a_new_tracker_takes_over_from_the_one_worn_before(home):
    for device, since in (("tracker-1", "2026-06-01"), ("tracker-2", "2026-07-08")):
        bound = scentwalk(
            *("device", "bind", device, "--pets", "max", "--kind", "tracker", "--at", since, "--db", home)
        )
        assert bound.returncode == 0, bound.stderr
    with sqlite3.connect(home) as db:
        rows = db.execute("SELECT device, valid_from_ms, valid_to_ms FROM binding WHERE device LIKE 'tracker%'")
        periods = {device: (start, end) for device, start, end in rows}
    assert periods["tracker-1"][1] == periods["tracker-2"][0]
    assert periods["tracker-2"][1] is None


def test_a_backup_is_sound_and_a_restore_gives_back_what_was_there(home, tmp_path):
    backup = tmp_path / "backup.db"
    assert scentwalk("backup", backup, "--db", home).returncode == 0
    assert scentwalk("check", "--db", backup).returncode == 0
    logged = scentwalk("log", "--pet", "max", "--what", "bath", "--at", "2026-07-01", "--db", home)
    assert logged.returncode == 0, logged.stderr
    restored = scentwalk("restore", backup, "--db", home)
    assert restored.returncode == 0, restored.stderr
    with sqlite3.connect(home) as db:
        assert db.execute("SELECT count(*) FROM text_record WHERE object = 'bath'").fetchone() == (0,)
        assert db.execute("SELECT name FROM pet").fetchall() == [("Max",)]


def test_an_export_holds_every_event_and_day(cats, tmp_path):
    done = scentwalk("export", tmp_path / "out", "--format", "jsonl", "--db", cats)
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "out").rglob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    with sqlite3.connect(cats) as db:
        (events,) = db.execute("SELECT count(*) FROM frame").fetchone()
        (days,) = db.execute("SELECT count(*) FROM day").fetchone()
    assert len(rows) == events + days
