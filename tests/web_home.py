"""A home for the page's tests: a real database, the callables a gateway hands in, a real server.

Run as a program it serves that home, for looking at: ``python -m tests.web_home DB PORT``.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn

from gateway.commands import run_command
from gateway.measure.days import add_days, day_interval, instant_of
from gateway.model import (
    Binding,
    Device,
    Edge,
    Evidence,
    Food,
    Household,
    Mass,
    Pet,
    RecordRef,
    Series,
    Vertex,
    ZonePeriod,
)
from gateway.store import Database, Snapshot
from gateway.stored import DatedFrame, DayRow, DeadLetter, Document, Learned, TextRecord
from gateway.web import Done, Services, create_app

ZONES = (ZonePeriod("America/New_York", 0),)
TODAY = "2026-07-14"
NOW_MS = instant_of(TODAY, 18 * 60, ZONES).at_ms
HOSTILE = '<script>alert("x")</script>'
TOKEN = "t" * 43
LABEL = "Rice, chicken meal, peas, salmon oil, salt"
SLOT_MS = 900_000


def at(day: str, hour: int, minute: int = 0) -> int:
    return instant_of(day, hour * 60 + minute, ZONES).at_ms


# --- a home to show ---------------------------------------------------------------------------


def household(third: str) -> Household:
    return Household(
        zones=ZONES,
        pets=(
            Pet("luna", "Luna", "cat", born="2020-05-20", sex="female"),
            Pet("max", "Max", "dog", "golden retriever", "2021-03-02", "male"),
            Pet("odd", third, "dog"),
        ),
        devices=(
            Device("bowl-luna", "food_bowl", "Luna's bowl"),
            Device("bowl-max", "food_bowl", "Max's bowl"),
            Device("tracker-max", "tracker", "Max's tracker"),
        ),
        bindings=(
            Binding("bowl-luna", frozenset({"luna"}), 0),
            Binding("bowl-max", frozenset({"max"}), 0),
            Binding("tracker-max", frozenset({"max"}), 0),
        ),
        foods=(
            Food("acme_chicken", "Acme Chicken & Rice", code="4006381333931"),
            Food("harbor_fish", "Harbor Whitefish"),
        ),
        country="US",
    )


def day_row(series: str, date: str, total: int, *, share: float = 1.0, awake: tuple[int, int] = (7, 22)) -> DayRow:
    whole = day_interval(date, ZONES)
    slots = whole.length_ms // SLOT_MS
    heard = round(slots * share)
    used = [i for i in range(heard) if awake[0] * 4 <= i < awake[1] * 4]
    sums = [0] * slots
    for place in used:
        sums[place] = total // max(1, len(used))
    covered = tuple(SLOT_MS if i < heard else 0 for i in range(slots))
    return DayRow(series, date, whole.start_ms, whole.end_ms, len(used), tuple(sums), covered)


def meal(seq: int, day: str, hour: int, grams: int, *, device: str = "bowl-max") -> DatedFrame:
    start = at(day, hour, 10)
    return DatedFrame(
        ref=RecordRef(f"event:{device}/3/{seq}"),
        device=device,
        boot=3,
        seq=seq,
        kind="meal",
        uptime_ms=seq * 1000,
        received_ms=start + 260_000,
        start_ms=start,
        end_ms=start + 240_000,
        dating="offset",
        fields=(seq * 1000 - 240_000, 240_000, grams * 1000, 0),
        amount=grams * 1000,
        unit="mg",
    )


def other_frames() -> tuple[DatedFrame, ...]:
    food = replace(
        meal(900, "2026-07-05", 8, 0),
        kind="food_set",
        fields=("4006381333931", "Acme Chicken & Rice"),
        amount=None,
        unit=None,
        object="acme_chicken",
    )
    hello = replace(
        meal(1, "2026-04-14", 9, 0),
        ref=RecordRef("event:tracker-max/1/1"),
        device="tracker-max",
        boot=1,
        kind="hello",
        fields=("scentwalk-tracker", "1.2.0", 4, 4096, 1, 17),
        amount=None,
        unit=None,
    )
    beat = replace(
        hello,
        ref=RecordRef("event:tracker-max/1/2"),
        seq=2,
        kind="beat",
        start_ms=at(TODAY, 17, 55),
        end_ms=at(TODAY, 17, 55),
        received_ms=at(TODAY, 17, 55),
        fields=(640, 1, 0),
    )
    fast = replace(meal(901, "2026-07-12", 13, 48), set_aside="48 g left the bowl in 70 s; not counted as eaten")
    unsure = replace(
        meal(902, "2026-07-11", 13, 31),
        dating="bracket",
        earliest_ms=at("2026-07-11", 12),
        latest_ms=at("2026-07-11", 15),
    )
    return food, hello, beat, fast, unsure


ATE = Edge(Vertex("pet:max"), "ate", Vertex("food:acme_chicken"), at("2026-07-05", 8, 10))
CONTAINS = Edge(Vertex("food:acme_chicken"), "contains", Vertex("species:chicken"))
CAUSES = Edge(Vertex("species:chicken"), "may_cause[dog]", Vertex("condition:food_allergy"))
SIGN = Edge(Vertex("condition:food_allergy"), "has_sign[dog]", Vertex("sign:itch"))
SHOWS = Edge(Vertex("pet:max"), "exhibits", Vertex("sign:itch"), at("2026-07-08", 0))
LABEL_REF = RecordRef("label:4006381333931@1a2b3c4d#6-18")
WHOLE_LABEL_REF = RecordRef(f"label:4006381333931@1a2b3c4d#0-{len(LABEL)}")
LABEL_DOCUMENT = "label:4006381333931@1a2b3c4d"
PASSAGE_REF = RecordRef("passage:9f8e7d6c#7.3")
NOTE_REF = RecordRef("note:clinic@2025-03-11")
LOG_REF = RecordRef("log:max@2026-06-01")
FOOD_SET_REF = RecordRef("event:bowl-max/3/900")


def learned() -> Learned:
    texts = (
        TextRecord(WHOLE_LABEL_REF, "label", "Acme Chicken & Rice, label", LABEL, LABEL_DOCUMENT),
        TextRecord(
            LABEL_REF, "label", "4006381333931", LABEL[6:18], LABEL_DOCUMENT, facts=(("from", "6"), ("to", "18"))
        ),
        TextRecord(
            PASSAGE_REF,
            "passage",
            "Care guide, ch. 7: Food and itching",
            "Chicken is among the commonest reported food allergens of dogs, after beef and dairy.\n"
            "In studies, 9 to 40 of 100 itchy dogs had a food cause: usually it was not.",
            "9f8e7d6c",
            facts=(("reviewed_by", "not yet reviewed by a vet"),),
        ),
        TextRecord(
            NOTE_REF,
            "note",
            "Vet note, Mar 11 2025",
            f"Suspect chicken sensitivity. {HOSTILE}",
            pet="max",
            at_ms=at("2025-03-11", 9),
        ),
        TextRecord(
            LOG_REF,
            "log",
            "Flea treatment",
            "flea treatment",
            pet="max",
            at_ms=at("2026-06-01", 9),
            until_ms=at("2026-07-01", 9),
            object="flea_treatment",
        ),
    )
    proofs = (
        Evidence(ATE.ref, FOOD_SET_REF, Mass(0.9), "device:bowl-max", 0.95),
        Evidence(ATE.ref, LOG_REF, Mass(0.9), "owner", 0.85),
        Evidence(CONTAINS.ref, LABEL_REF, Mass(0.95), "label", 0.95, (6, 18)),
        Evidence(CAUSES.ref, PASSAGE_REF, Mass(0.5), "guide", 0.6),
        Evidence(SIGN.ref, PASSAGE_REF, Mass(0.5), "guide", 0.6),
        Evidence(SHOWS.ref, RecordRef("day:max.scratching/2026-07-08"), Mass(0.8), "device:tracker-max", 0.8),
    )
    return Learned(
        document=Document("9f8e7d6c", "guide", "Care guide", "scentwalk's own, 2026-11"),
        records=texts,
        edges=(ATE, CONTAINS, CAUSES, SIGN, SHOWS),
        evidence=proofs,
        labels=(("species:chicken", "chicken"), ("condition:food_allergy", "a food allergy")),
    )


def answer_body() -> dict[str, object]:
    def claim(number: int, kind: str, cls: str, text: str, cite: str, *refs: RecordRef, **more: object):
        told = {
            "id": f"c{number}",
            "kind": kind,
            "class": cls,
            "text": text,
            "cite": cite,
            "values": {},
            "window": None,
        }
        return told | {"refs": [ref.text for ref in refs], "about": [], "joins": []} | more

    days = tuple(RecordRef(f"day:max.scratching/{add_days('2026-06-10', i)}") for i in range(35))
    return {
        "schema": 1,
        "as_of": "2026-07-14T22:00:00.000Z",
        "zone": "America/New_York",
        "question": "Why is Max scratching more this week?",
        "frame": {},
        "claims": [
            claim(
                1,
                "change",
                "MEASURED",
                "139 s a day against his usual 99: up 40 % (likely 29 to 52 %), Jul 8\N{EN DASH}14, worn 7 of 7 days.",
                "tracker",
                *days,
                window={"label": "P7D", "from": "", "to": "", "first_date": "2026-07-08", "last_date": TODAY},
            ),
            claim(
                2,
                "switch",
                "MEASURED",
                "Acme Chicken & Rice replaced Harbor Whitefish on Jul 5.",
                "bowl",
                FOOD_SET_REF,
            ),
            claim(3, "label", "REFERENCE", "Its label lists chicken meal.", "product data", LABEL_REF),
            claim(
                4,
                "known",
                "REFERENCE",
                "Chicken is a commonly reported trigger in dogs with a diagnosed food allergy; in studies, 9 to 40 of 100 itchy dogs had a food cause.",
                "care guide, ch. 7",
                PASSAGE_REF,
            ),
            claim(
                5,
                "note",
                "RECORDED",
                f"\N{LEFT DOUBLE QUOTATION MARK}Suspect chicken sensitivity. {HOSTILE}\N{RIGHT DOUBLE QUOTATION MARK}.",
                "vet note, Mar 11 2025",
                NOTE_REF,
            ),
            claim(
                6,
                "connection",
                "CONNECTION",
                "Put together by the hub: the food may have to do with it; a pattern, not a diagnosis.",
                "",
                joins=["c1", "c2", "c3"],
                about=["pet:max", "sign:itch", "food:acme_chicken"],
            ),
            claim(7, "general", "GENERAL", "Itching has many causes.", ""),
        ],
        "notices": [
            {
                "kind": "short_answer",
                "text": "Yes, clearly more; the closest recorded change is his new food on Jul 5. Whether that is the cause the records can't show.",
            },
            {"kind": "caution", "text": "Not on file: ears, any earlier July."},
            {
                "kind": "next_step",
                "text": "Next: log the last flea treatment, look at skin and ears, ask your vet before changing food again; sooner if skin is raw or he stops eating.",
            },
        ],
        "chain": [edge.ref.text for edge in (ATE, CONTAINS, CAUSES, SIGN, SHOWS)],
        "near_misses": [
            {"what": "Flea treatment ran out Jul 1", "reason": "renewed within 3 days", "refs": [LOG_REF.text]}
        ],
        "budget": {"used": 230, "limit": 600, "cut": ["c9"]},
        "layout": ["n1", "-", "c1", "c2", "c3", "c4", "c5", "-", "c6", "c7", "n2", "-", "n3"],
        "text": [],
    }


def fill(path: Path, *, third: str = HOSTILE) -> None:
    """A database with Max's story, 90 days of series, dead letters, a stranger and one answer."""
    chance = random.Random(7)
    series = (
        Series("max.scratching", "max", "scratch", "ms"),
        Series("max.activity", "max", "activity", "ms"),
        Series("max.intake", "max", "intake", "mg"),
        Series("max.restless", "max", "restless", "ms"),
        Series("luna.intake", "luna", "intake", "mg"),
    )
    levels = {"scratching": 99_000, "activity": 5_400_000, "intake": 410_000, "restless": 900_000}
    with Database(path, clock_source="simulation") as database, database.transaction() as tx:
        tx.save_household(household(third), valid_from_ms=0)
        tx.add_frames(meal(10 + i, add_days(TODAY, -(i // 2)), 7 + 10 * (i % 2), 205) for i in range(1, 20))
        tx.add_frames(other_frames())
        tx.add_frames([replace(meal(5, "2026-07-13", 8, 20, device="bowl-new"), ref=RecordRef("event:bowl-new/1/5"))])
        for one in series:
            tx.save_series(one)
            noun = one.id.partition(".")[2]
            awake = (0, 7) if noun == "restless" else (7, 22)
            first = 13 if one.pet == "luna" else 89 if noun == "scratching" else 35
            for back in range(first, -1, -1):
                date = add_days(TODAY, -back)
                if back in {40, 41, 42}:
                    continue
                raised = 1.4 if noun == "scratching" and back < 7 else 1.0
                total = round(levels[noun] * raised * chance.gauss(1, 0.12))
                if noun == "scratching" and back == 60:
                    total *= 2
                tx.save_day(day_row(one.id, date, total, share=0.75 if back == 0 else 1.0, awake=awake))
        tx.save_document(
            Document(LABEL_DOCUMENT, "label", "Acme Chicken & Rice", "typed in", "4006381333931"), added_ms=NOW_MS
        )
        tx.save_learned(learned(), added_ms=NOW_MS)
        tx.add_dead_letters(
            [DeadLetter("mqtt", "tracker-max", None, None, NOW_MS, "not_msgpack", HOSTILE, b"\xff" * 80)]
        )
        tx.bump("dead_letters")
        tx.bump("records_known", 12)
        facts = {"days_expected": 7, "days_used": 7, "reason": None}
        for name, verdict in (
            ("scratching", "up"),
            ("activity", "usual"),
            ("intake", "usual"),
            ("restless", "cannot_tell"),
        ):
            tx.save_finding(f"max.{name}", as_of=add_days(TODAY, -1), window="P7D", verdict=verdict, facts=facts)
        tx.save_finding(
            "luna.intake",
            as_of=add_days(TODAY, -1),
            window="P7D",
            verdict="cannot_tell",
            facts=facts | {"reason": "too_few_days"},
        )
        tx.set_learned(add_days(TODAY, -1), done_ms=NOW_MS)
        body = answer_body()
        refs = {RecordRef(ref) for row in body["claims"] for ref in row["refs"]}
        tx.save_answer(asked_ms=NOW_MS, question=body["question"], body=json.dumps(body), cites=tuple(sorted(refs)))


# --- what a gateway hands in -------------------------------------------------------------------


class Home:
    """The callables of `Services` over one real database; ``heard`` lists what reached them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[tuple[str, object]] = []

    def ask(self, text: str, *, after: int | None) -> tuple[int, None]:
        self.heard.append(("ask", (text, after)))
        body = json.dumps(answer_body() | {"question": text})
        with Database(self.path) as database, database.transaction() as tx:
            return tx.save_answer(asked_ms=NOW_MS, question=text, body=body, cites=()), None

    def command(self, name: str, args: Mapping[str, str]) -> Done:
        self.heard.append((name, dict(args)))
        with Database(self.path) as database, database.transaction() as tx:
            return run_command(tx, name, args, now_ms=NOW_MS)

    def services(self, token_file: Path | None = None) -> Services:
        return Services(
            snapshot=lambda: Snapshot(self.path),
            ask=self.ask,
            now_ms=lambda: NOW_MS,
            command=self.command,
            banner=lambda: "A simulated household: nothing here is a real pet.",
            version="0.1.0",
            token_file=token_file,
        )


@contextmanager
def served(services: Services) -> Iterator[str]:
    """A real uvicorn on a free loopback port; gives the page's address."""
    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(uvicorn.Config(create_app(services), log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        if not ready.wait(timeout=20):
            raise TimeoutError("the page must be up within 20 s")
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)


if __name__ == "__main__":
    fill(Path(sys.argv[1]), third="Peanut")
    uvicorn.run(create_app(Home(Path(sys.argv[1])).services()), host="127.0.0.1", port=int(sys.argv[2]))
