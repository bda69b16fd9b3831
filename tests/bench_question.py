"""Prints what question reading costs and how often it is right: ``python -m tests.bench_question``."""

from __future__ import annotations

import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.ask.question import read_question
from gateway.ontology.kept import KeptAliases, KeptLexicon, rows_of
from gateway.ontology.recognise import Alias, Lexicon, Reading
from gateway.store import Database, Snapshot, initialise
from tests.ask_home import ACME, HARBOR, SWITCHED, household, made
from tests.question_home import DATA, HOME, NOW_MS, differences, home_of, rows


def accuracy() -> None:
    shared = Path(__file__).resolve().parents[2] / "shared" / "cases"
    if shared.is_dir():
        cases = rows(shared / "questions.jsonl")
        wrong = differences(cases, home_of(shared / "household.toml"))
        print(f"cases/questions.jsonl: {len(cases) - len(wrong)} of {len(cases)} frames with all fields right")
    own = rows(DATA / "questions_own.jsonl")
    wrong = differences(own, HOME)
    print(f"own second set: {len(own) - len(wrong)} of {len(own)} frames with all fields right")


def speed() -> None:
    texts = [row["text"] for row in rows(DATA / "questions_own.jsonl")]
    read_question(texts[0], household=HOME, now_ms=NOW_MS)
    spent = []
    for text in texts * 3:
        begun = time.process_time()
        read_question(text, household=HOME, now_ms=NOW_MS)
        spent.append((time.process_time() - begun) * 1000)
    spent.sort()
    print(f"frame: median {spent[len(spent) // 2]:.2f} ms, p95 {spent[int(len(spent) * 0.95)]:.2f} ms of CPU")


YEAR_QUESTIONS = (
    "Why is Max scratching more this week?", "How much did Luna eat yesterday?", "Is Bella eating less?",
    "Since when has Max been scratching like this?", "Who eats more, Max or Bella?", "How is Max?",
    "How active was Luna this week compared with last week?", "Which of my pets ate below their usual this week?",
    "What's in Acme Chicken & Rice?", "Max ate chocolate", "Could the new kibble be what makes Max itch?",
    "What should I tell the vet about Max?", "Did Max eat today?", "When was Bella's last meal?",
)  # fmt: skip


def whole_answers() -> None:
    """Question to complete answer, in a warm process, on three pets' year of days."""
    pets = ("max", "bella", "luna")
    devices = [f"{kind}-{pet}" for pet in pets for kind in ("bowl", "tracker")]
    with TemporaryDirectory() as folder, made(Path(folder), household(*pets, devices=devices, foods=SWITCHED)) as home:
        for code, name in ((ACME, "Acme Chicken & Rice"), (HARBOR, "Harbor Whitefish")):
            home.product(code, name)
        home.feed("bowl-max", "2025-07-20", HARBOR, "Harbor Whitefish")
        home.feed("bowl-max", "2026-07-05", ACME, "Acme Chicken & Rice", hour=17)
        for pet in pets:
            for name, level in (
                ("scratch", 99_000),
                ("activity", 5_400_000),
                ("rest", 44_000_000),
                ("restless", 900_000),
            ):
                home.worn(pet, name, level, days=365)
            home.eats(pet, 300, days=365)
        home.learn()
        home.ask(YEAR_QUESTIONS[0])
        spent = []
        for text in YEAR_QUESTIONS * 5:
            begun = time.process_time()
            home.ask(text)
            spent.append((time.process_time() - begun) * 1000)
    spent.sort()
    print(
        f"answer on a year-old home of three: median {spent[len(spent) // 2]:.0f} ms, "
        f"p95 {spent[int(len(spent) * 0.95)]:.0f} ms of CPU (goal 150)"
    )


def kept_aliases() -> None:
    """50,000 aliases as rows of one table: the file they fill, and what reading a text from it costs."""
    draw = random.Random(7)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 9))) for _ in range(20_000)]
    names = sorted({" ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(50_000)})
    lexicon = Lexicon(Alias(name, Reading("ing", f"ing:{i}"), "noun") for i, name in enumerate(names))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "hub.db"
        initialise(path, clock_source="system")
        empty = path.stat().st_size
        with Database(path) as database, database.transaction() as tx:
            tx.save_aliases(rows_of({"ing": lexicon}, {}), key="bench")
        filled = path.stat().st_size
        texts = [" and then ".join(draw.choices(names, k=20)) for _ in range(500)]
        with Snapshot(path) as reader:
            begun = time.process_time()
            found = 0
            for text in texts:  # as after a restart: nothing is remembered from the text before
                found += len(KeptLexicon("ing", KeptAliases(reader.aliases_beginning, reader.aliases_in)).find(text))
            took = time.process_time() - begun
    size = (filled - empty) / 2**20
    print(
        f"kept aliases: {len(names):,} ({len(lexicon):,} forms) fill {size:.1f} MiB (goal 15); "
        f"{found / took:,.0f} linked mentions a second read from the table (goal 10,000)"
    )


def recogniser() -> None:
    draw = random.Random(7)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 9))) for _ in range(20_000)]
    names = [" ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(50_000)]
    lexicon = Lexicon(Alias(name, Reading("ing", f"ing:{i}")) for i, name in enumerate(names))
    text = " and then ".join(draw.choices(names, k=20_000))
    begun = time.process_time()
    found = lexicon.find(text)
    took = time.process_time() - begun
    print(f"recogniser: {len(found) / took:,.0f} linked mentions a second with {len(names):,} aliases")


if __name__ == "__main__":
    accuracy()
    speed()
    recogniser()
    kept_aliases()
    whole_answers()
