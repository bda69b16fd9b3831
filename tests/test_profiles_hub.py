"""Other makers' devices in the hub: whose a row is, heard twice, read again, asked about, refused."""

from __future__ import annotations

import asyncio
import contextlib
import json

import paho.mqtt.client as paho
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion

from gateway.__main__ import main
from gateway.ask.ask import ask
from gateway.ask.records import open_record
from gateway.commands import run_command
from gateway.errors import ConfigError, ImportRefused
from gateway.links.clock import SystemClock
from gateway.links.heard import move_heard
from gateway.links.hubclock import ClockSet
from gateway.links.identity import nearest, of_weight
from gateway.links.inbox import Inbox
from gateway.links.ingest import CommitRule, Ingest
from gateway.links.mqtt import MqttLink, MqttSettings
from gateway.links.profiled import source_id
from gateway.links.profileread import read_profile
from gateway.links.profileset import ProfileSet, load_profiles, shipped
from gateway.links.reprocess import due_families, reprocess
from gateway.model import Binding, Device, Household, RawFrame, RecordRef
from gateway.store.database import Database
from gateway.store.export import export
from gateway.store.pages import PAGE_BYTES
from gateway.store.verify import verify
from gateway.store.writer import Writer
from gateway.web.views import front_page
from tests.brokers import Mosquitto
from tests.fuzz_profiles import fuzz_profiles
from tests.profiled import (
    ALL,
    AQARA,
    AQARA_STATE,
    DAY,
    GRAIN_END,
    GRAIN_START,
    HOME,
    HOUR,
    MINUTE,
    PETKIT,
    PETKIT_VISIT,
    PETKIT_WEIGHT,
    PETLIBRO,
    ROLLUPS,
    RUUVI,
    SUREPET,
    SUREPET_LINE,
    T1,
    T2,
    T3,
    THEENGS,
    advert,
    as_json,
    changed,
    counters,
    day,
    hear,
    home_at,
    letters,
    mqtt,
    one_of,
    radio,
    rows,
)
from tests.test_profiles_wire import scale_samples
from tests.test_store_damage import SECTOR_BYTES, page_of, zero_sector


@pytest.fixture
def database(tmp_path):
    with home_at(tmp_path / "hub.db") as opened:
        yield opened


def command(database, name: str, at_ms: int = T1, **args: str) -> str:
    with database.transaction() as tx:
        return run_command(tx, name, args, now_ms=at_ms).text


def edited(profile_id: str, *changes: tuple[str, str]) -> ProfileSet:
    """The shipped profiles with one of them edited, as an owner would."""
    text = shipped()[profile_id].read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    mine = read_profile(text, source=profile_id)
    return ProfileSet([mine, *(one for one in ALL.profiles if one.id != profile_id)])


# --- heard twice ---------------------------------------------------------------------------------


def test_the_same_message_through_two_gateways_is_one_event_with_the_best_signal(database):
    """Field report 14."""
    far, near = THEENGS, THEENGS.replace("TheengsGateway", "hall")
    hear(database, mqtt(far, changed(RUUVI, rssi=-80), T1), mqtt(near, changed(RUUVI, rssi=-52), T1 + 400))
    hear(database, mqtt(far, changed(RUUVI, rssi=-90), T1 + 900))
    (row,) = rows(database)
    with database.snapshot() as reader:
        origin = reader.origin(row.ref)
    assert (origin.signal, origin.via) == (-52, near)
    assert counters(database)["records_known"] == 2


def test_an_advertisement_heard_by_two_radios_is_one_event_with_the_best_signal(database):
    heard = [radio(advert("40 00 09 02 5d 09", rssi=rssi), T1 + at) for at, rssi in ((0, -90), (300, -50), (700, None))]
    hear(database, *heard)
    (row,) = rows(database)
    with database.snapshot() as reader:
        assert reader.origin(row.ref).signal == -50


def test_the_own_radio_and_a_gateway_hear_one_tag_once(database):
    """RuuviTag, data format 5: the same seq is the same measurement, whichever way it came."""
    from gateway.links import advertisement as adv  # noqa: PLC0415

    data = bytes.fromhex("05 12fc 5394 c37c 0004 fffc 040c ac36 42 00cd cbb8334c884f".replace(" ", ""))
    packed = adv.pack(
        adv.advertisement("CB:B8:33:4C:88:4F", rssi=-40, name=None, manufacturer={0x0499: data}, service={})
    )
    hear(database, mqtt(THEENGS, RUUVI, T1), radio(packed, T1 + 100))
    (row,) = rows(database)
    assert (row.device, row.amount) == ("cbb8334c884f", 297_450)
    with database.snapshot() as reader:
        assert (reader.origin(row.ref).signal, reader.origin(row.ref).profile) == (-40, "theengs-ruuvi")
    later = packed.replace(b"\x00\xcd", b"\x00\xce").replace(b"\x42\x00", b"\x45\x00")
    hear(database, radio(later, T1 + MINUTE))
    assert [row.amount for row in rows(database) if row.kind == "movement"] == [3]


def test_a_retained_event_and_three_restarts_are_one_feeding(database):
    """Field report 3, for a topic of another maker."""
    for _ in range(3):
        hear(database, mqtt(PETLIBRO, GRAIN_END, T1 + DAY), retained=True)
    assert len(rows(database)) == 1
    assert counters(database)["retained_events"] == 3


def test_a_retained_live_value_is_no_event(database):
    assert hear(database, mqtt(THEENGS, RUUVI, T1), retained=True).replies == ()
    assert rows(database) == []


# --- whose ---------------------------------------------------------------------------------------


def test_a_visit_that_fits_two_pets_is_of_both_and_moves_neithers_series(database):
    """Field report 10, at another maker's litter box: 5.1 kg, pets of 5.1 and 5.2 kg."""
    for pet, kg in (("luna", "5.2"), ("max", "5.1")):
        command(database, "log", pet=pet, what=f"weight {kg} kg", at="2026-07-20", at_ms=T3)
    hear(
        database,
        mqtt(PETKIT, changed(PETKIT_VISIT, content={**json.loads(PETKIT_VISIT)["content"], "pet_weight": 5100}), T3),
    )
    (row,) = rows(database)
    with database.snapshot() as reader:
        assert reader.household().bindings_at(row.device, row.start_ms) == {"luna", "max"}
        assert [series.pet for series in reader.all_series() if series.property == "litter"] == ["luna+max"]


def test_a_visit_that_fits_one_pet_by_its_weight_is_that_pets(database):
    for pet, kg in (("luna", "2.1"), ("max", "5.1")):
        command(database, "log", pet=pet, what=f"weight {kg} kg", at="2026-07-20", at_ms=T3)
    hear(database, mqtt(PETKIT, PETKIT_WEIGHT, T3), mqtt(PETKIT, PETKIT_VISIT, T3))
    assert {row.device for row in rows(database)} == {"petkit-hall-luna"}
    assert day(database, "luna.litter", "2026-07-22").n == 1
    assert day(database, "max.litter", "2026-07-22") is None


def test_weights_and_signals_name_a_set_of_pets():
    assert of_weight(5_100_000, {"a": 5_200_000, "b": 5_100_000, "c": 3_000_000}) == {"a", "b"}
    assert of_weight(5_100_000, {"a": 3_000_000, "b": None}) == {"b"}
    assert of_weight(9_000_000, {"a": 3_000_000}) == frozenset()
    assert nearest({"a": -50, "b": -57, "c": -80}) == {"a"}
    assert nearest({"a": -50, "b": -55}) == {"a", "b"}
    assert nearest({}) == frozenset()


def test_a_tag_bound_once_is_known_at_every_feeder(database):
    hear(database, mqtt(SUREPET, SUREPET_LINE, T2))
    (row,) = rows(database)
    assert row.device.startswith("surefeed-0013a2-")
    with database.snapshot() as reader:
        assert reader.household().bindings_at(row.device, row.start_ms) == frozenset()
    command(database, "bind", device=row.device, pets="max", at="2021-01-01", at_ms=T2)
    hear(database, mqtt(SUREPET.replace("0013a2", "0013b7"), SUREPET_LINE, T2))
    other = next(one for one in rows(database) if one.device != row.device)
    with database.snapshot() as reader:
        assert reader.household().bindings_at(other.device, other.start_ms) == {"max"}


def test_what_one_pet_does_at_a_feeder_shows_that_it_works_for_the_other(database):
    """Coverage is the device's: a cat that did not come for a day was not unheard."""
    lines = [SUREPET_LINE, SUREPET_LINE.replace(b"14 cd 5b 07", b"15 cd 5b 07")]
    stamps = (b"b8 c8 42 54", b"b8 d8 42 54", b"b8 e8 42 54")  # 12:34, 13:34, 14:34
    for n, (line, stamp) in enumerate(zip((lines[0], lines[1], lines[1]), stamps, strict=True)):
        told = line.replace(stamps[0], stamp).replace(b"ca 00", f"{0xCA + n:02x} 00".encode())
        hear(database, mqtt(SUREPET, told, T2 + 4 * HOUR))
    first = rows(database)[0].device
    command(database, "bind", device=first, pets="musli", at="2020-12-31", at_ms=T2)
    assert day(database, "musli.meals", "2021-01-01").covered_ms == pytest.approx(2 * HOUR, abs=MINUTE)


WORN = Household(
    zones=(), devices=(Device("cbb8334c884f", "tracker", "Luna's tag"),),
    bindings=(Binding("cbb8334c884f", frozenset({"luna"}), 0),),
)  # fmt: skip


def tag(number: int, seq: int) -> bytes:
    return changed(RUUVI, id=f"CB:B8:33:4C:88:{number:02X}", seq=seq)


def open_questions(database) -> list[tuple[str, str | None]]:
    with database.snapshot() as reader:
        return [(one.id, one.replaces) for one in reader.sources() if one.replaces is not None]


def test_a_new_address_raises_one_question_and_never_a_second_pet(database, capsys):
    """Field report 12, without a key."""
    with database.transaction() as tx:
        tx.save_household(WORN, valid_from_ms=0)
    hear(database, mqtt(THEENGS, tag(0x4F, 1), T1))
    for n in range(4):
        hear(database, mqtt(THEENGS, tag(0x50, n), T1 + MINUTE + n * 10 * MINUTE))
    assert open_questions(database) == [("cbb8334c8850", "cbb8334c884f")]
    for n in range(3):  # it changes its address again before anybody has answered
        hear(database, mqtt(THEENGS, tag(0x51, n), T1 + HOUR + n * 10 * MINUTE))
    assert open_questions(database) == [("cbb8334c8850", "cbb8334c884f")]
    with database.snapshot() as reader:
        assert len(reader.household().pets) == len(HOME.pets)
        (asked,) = front_page(reader, now_ms=T1 + 2 * HOUR).questions
    assert asked.text.endswith("Is it a replacement of it?")
    assert (asked.device, asked.old) == ("cbb8334c8850", "cbb8334c884f")
    capsys.readouterr()
    assert main(["device", "list", "--db", str(database.path)]) == 0
    assert "Is cbb8334c8850 a replacement of cbb8334c884f?" in capsys.readouterr().out
    before = {row.ref.text for row in rows(database)}
    said = command(database, "replace", device="cbb8334c8850", old="cbb8334c884f")
    assert said == "cbb8334c8850 is cbb8334c884f from now on; 7 records it had sent are cbb8334c884f's too."
    hear(database, mqtt(THEENGS, tag(0x51, 9), T1 + 2 * HOUR))
    assert {row.device for row in rows(database)} == {"cbb8334c884f"}
    assert before < {row.ref.text for row in rows(database)}
    assert open_questions(database) == []


def test_a_question_answers_itself_where_the_old_one_speaks_again(database):
    with database.transaction() as tx:
        tx.save_household(WORN, valid_from_ms=0)
    hear(database, mqtt(THEENGS, tag(0x4F, 1), T1))
    hear(database, mqtt(THEENGS, tag(0x50, 1), T1 + MINUTE), mqtt(THEENGS, tag(0x50, 2), T1 + 20 * MINUTE))
    assert len(open_questions(database)) == 1
    hear(database, mqtt(THEENGS, tag(0x4F, 2), T1 + 30 * MINUTE), mqtt(THEENGS, tag(0x50, 3), T1 + 31 * MINUTE))
    assert open_questions(database) == []


def test_a_sender_that_is_another_one_is_asked_about_no_more(database):
    with database.transaction() as tx:
        tx.save_household(WORN, valid_from_ms=0)
    hear(database, mqtt(THEENGS, tag(0x4F, 1), T1))
    hear(database, mqtt(THEENGS, tag(0x50, 1), T1 + MINUTE), mqtt(THEENGS, tag(0x50, 2), T1 + 20 * MINUTE))
    command(database, "bind", device="cbb8334c8850", pets="max")
    hear(database, mqtt(THEENGS, tag(0x50, 3), T1 + 40 * MINUTE))
    assert open_questions(database) == []


def test_an_address_that_fits_a_known_key_is_the_same_wearable(database):
    """Field report 12, with a key: the Core Specification's own example of a resolvable address."""
    command(database, "key", device="tag-luna", irk="ec0234a357c8ad05341010a60a397d9b")
    hear(database, mqtt(THEENGS, changed(RUUVI, id="70:81:94:0D:FB:AA"), T1))
    assert [row.device for row in rows(database)] == ["tag-luna"]
    assert rows(database)[0].ref.text.startswith("event:7081940dfbaa/")


def test_one_spelling_of_a_sender_is_one_sender():
    assert source_id("Küche ") == source_id("Ku\u0308che")
    assert source_id("A-1") != source_id("A.1")
    assert source_id("CB:B8:33:4C:88:4F") == "cbb8334c884f"
    for name in ("", "🐈", "x" * 300, "a/b#+", "Мурка"):
        Device(source_id(name), "tracker", "any id is a device's id")


# --- read again ----------------------------------------------------------------------------------


def again(database, profiles: ProfileSet, *, everything: bool = False):
    with database.transaction() as tx:
        return [
            reprocess(tx, profiles, family, rollups=ROLLUPS)
            for family in due_families(tx, profiles, everything=everything)
        ]


def everything_heard() -> list[RawFrame]:
    """Messages of many families, some of them twice, some of them bad."""
    states = [changed(AQARA_STATE, portions_per_day=n, weight_per_day=10 * n) for n in (1, 2, 2, 4)]
    return [
        *(mqtt(AQARA, state, T1 + n * HOUR) for n, state in enumerate(states)),
        mqtt(PETLIBRO, GRAIN_START, T1), mqtt(PETLIBRO, GRAIN_END, T1 + 4500), mqtt(PETLIBRO, GRAIN_END, T1 + 9000),
        mqtt(PETLIBRO, as_json({"cmd": "ATTR_PUSH_EVENT", "ts": T1, "electricQuantity": 80}), T1),
        mqtt(PETKIT, PETKIT_WEIGHT, T3), mqtt(PETKIT, PETKIT_VISIT, T3), mqtt(PETKIT, b"{", T3),
        mqtt(SUREPET, SUREPET_LINE, T2),
        *(mqtt(THEENGS, changed(RUUVI, seq=n, mov=n % 255), T1 + n * 1000) for n in range(240, 260)),
        *scale_samples((300, 30), *((300 - 0.4 * n, 2) for n in range(60)), (276, 60)),
        *(radio(advert(f"40 00 {n:02x} 02 5d 09"), T1 + n * 5000) for n in range(9)),
    ]  # fmt: skip


def test_deriving_again_changes_nothing_and_twice_neither(database):
    for raw in everything_heard():
        hear(database, raw)
    before = {row.ref.text: row for row in rows(database)}
    assert len(before) > 50
    for _ in range(2):
        for done in again(database, ALL, everything=True):
            assert (done.new, done.changed, done.gone, done.kept, done.days) == (0, 0, 0, 0, 0)
        assert {row.ref.text: row for row in rows(database)} == before
    assert again(database, ALL) == []
    assert verify(database.path).is_sound


def test_a_changed_profile_restates_days_and_answers_and_keeps_every_reference(database):
    for n, grams in enumerate((10, 20, 40)):
        state = changed(AQARA_STATE, portions_per_day=grams // 10, weight_per_day=grams)
        hear(database, mqtt(AQARA, state, T1 + n * HOUR))
    cited = next(row for row in rows(database) if row.kind == "dispensed")
    restated = RecordRef("day:max.portions/2026-08-10")
    with database.transaction() as tx:
        number = tx.save_answer(asked_ms=T1 + 2 * DAY, question="?", body="{}", cites=(cited.ref, restated), told=())
    mine = edited("aqara-c1", ("version = 1", "version = 2"), ('from = "portions_per_day"', 'from = "weight_per_day"'))
    (done,) = again(database, mine)
    assert (done.new, done.changed, done.gone, done.days) == (0, 2, 0, 1)
    assert day(database, "max.portions", "2026-08-10").total == 30
    with database.snapshot() as reader:
        assert set(reader.restated(number)) == {cited.ref, restated}
        assert reader.origin(cited.ref).version == 2
        assert reader.frame(cited.ref).amount == 10
    assert again(database, mine) == []


def test_a_row_no_longer_read_goes_unless_somebody_cites_it(database):
    hear(database, mqtt(PETLIBRO, GRAIN_START, T1), mqtt(PETLIBRO, GRAIN_END, T1 + 4500))
    hear(database, mqtt(PETLIBRO, changed(GRAIN_END, msgId="other"), T1 + 9000))
    cited = RecordRef("event:plaf203-af01/petlibro-plaf203/manual-feed-1.GRAIN_END.end")
    with database.transaction() as tx:
        tx.save_answer(asked_ms=T1 + DAY, question="?", body="{}", cites=(cited,), told=())
    mine = edited("petlibro-plaf203", ("version = 1", "version = 2"), ('execStep = "GRAIN_END"', 'execStep = "NEVER"'))
    (done,) = again(database, mine)
    assert (done.gone, done.kept) == (1, 1)
    with database.snapshot() as reader:
        assert reader.frame(cited).set_aside == "its profile no longer reads this; not counted"
        assert reader.origin(cited).raw == GRAIN_END
    assert day(database, "max.portions", "2026-08-10").total == 0
    (done,) = again(database, ALL)  # the change taken back
    assert {row.set_aside for row in rows(database)} == {None}
    assert day(database, "max.portions", "2026-08-10").total == 2


def test_a_restarted_hub_finds_the_meals_that_a_running_one_finds(tmp_path):
    """A scale's memory survives, sample by sample."""
    samples = list(scale_samples((300, 30), *((300 - 0.4 * n, 2) for n in range(60)), (276, 60)))
    with home_at(tmp_path / "one.db") as database:
        hear(database, *samples)
        right = rows(database)
    assert [row.kind for row in right] == ["meal"]
    with home_at(tmp_path / "two.db"):
        pass
    for start in range(0, len(samples), 17):
        with home_at(tmp_path / "two.db") as database:
            hear(database, *samples[start : start + 17])
            found = rows(database)
    assert found == right


def test_a_clock_of_the_hub_that_was_set_moves_what_its_arrival_had_dated(database):
    hear(database, mqtt(THEENGS, RUUVI, T1), mqtt(PETLIBRO, GRAIN_END, T1 + 4500))
    with database.transaction() as tx:
        moved = move_heard(tx, was_set=ClockSet(HOUR, T1 - HOUR, T1 + HOUR), since_record=0, rollups=ROLLUPS)
    assert moved == 2
    assert {row.kind: row.start_ms - T1 for row in rows(database)} == {"temperature": HOUR, "dispensed": 4000}
    assert verify(database.path).is_sound


# --- asked, opened, exported ----------------------------------------------------------------------


def test_a_claim_cites_such_a_row_and_the_record_shows_its_bytes_and_its_profile(database):
    hear(database, *scale_samples((300, 30), *((300 - 0.4 * n, 2) for n in range(60)), (276, 60)))
    with database.snapshot() as reader:
        answer = ask("When did Luna last eat?", reader, now_ms=T1 + HOUR)
        (ref,) = {ref for claim in answer.claims for ref in claim.refs if ref.kind == "event"}
        record = open_record(reader, ref)
    assert ref.text.startswith("event:kitchen-bowl/esphome-bowl/@")
    assert "Read by: profile esphome-bowl, version 1" in record.lines
    assert "Came by: kitchen/sensor/bowl_weight/state" in record.lines
    assert any(line.startswith("As it was sent: 276.00") for line in record.lines)


def test_litter_visits_are_asked_about_like_any_series(database):
    command(database, "bind", device="petkit-hall", pets="luna", at="2026-07-01", at_ms=T3)
    for n in range(3):
        content = {"time_in": T3 // 1000 + n * 3600, "time_out": T3 // 1000 + n * 3600 + 30, "is_shit": 0}
        visit = {"event_type": "10", "event_id": f"v{n}", "content": content}
        hear(database, mqtt(PETKIT, as_json(visit), T3 + n * HOUR + MINUTE))
    with database.snapshot() as reader:
        answer = ask("How often did Luna use the litter box today?", reader, now_ms=T3 + 3 * HOUR)
    assert any(ref.text == "day:luna.litter/2026-07-22" for claim in answer.claims for ref in claim.refs)


@pytest.mark.parametrize("question", ["How much does Luna weigh?", "Has Luna lost weight?"])
def test_a_weight_by_a_device_is_said_with_its_record(database, question):
    command(database, "bind", device="petkit-hall", pets="luna", at="2026-07-01", at_ms=T3)
    hear(database, mqtt(PETKIT, PETKIT_WEIGHT, T3))
    with database.snapshot() as reader:
        answer = ask(question, reader, now_ms=T3 + HOUR)
    (claim,) = answer.claims
    assert claim.text == "Luna weighed 2.13 kg on Jul 22, 12:02"
    assert [ref.text for ref in claim.refs] == ["event:petkit-hall/petkit-litter/4_10000001_1784736135.9.weight"]


def test_an_export_holds_such_rows(database, tmp_path):
    hear(database, mqtt(SUREPET, SUREPET_LINE, T2))
    with database.snapshot() as reader:
        written = export(reader, tmp_path / "out", kind="csv", hub="home", date_of=lambda _: "2021-01-01")
    text = "".join(path.read_text("utf-8") for path in written)
    assert "event:surefeed-0013a2/surepet-hub/202.1413662904.meal" in text


def test_4200_on_a_channel_in_kg_is_set_aside(database):
    """Field report 8, for a scale that only says a number: 4.2, 4200, 4.21."""
    platform = "hall/sensor/pet_weight/state"
    told = [(0, 5), (4.2, 8), (4200, 1), (4.21, 8), (0, 8)]
    levels = [kg for kg, count in told for _ in range(count)]
    hear(database, *(mqtt(platform, str(kg).encode(), T1 + 2000 * n) for n, kg in enumerate(levels)))
    weights = [row.amount for row in rows(database, "hall-scale") if row.set_aside is None]
    assert weights
    assert all(abs(mg - 4_200_000) <= 10_000 for mg in weights)
    assert counters(database)["samples_set_aside"] == 1


def test_a_damaged_file_keeps_rows_whose_bytes_are_lost(tmp_path):
    path = tmp_path / "hub.db"
    with home_at(path) as database:
        hear(database, *(mqtt(PETLIBRO, changed(GRAIN_END, msgId=f"m{n}"), T1 + n * MINUTE) for n in range(300)))
        hear(database, mqtt(SUREPET, SUREPET_LINE, T2))
        before = rows(database)
    zero_sector(path, (page_of(path, "heard", leaf=True) - 1) * PAGE_BYTES // SECTOR_BYTES)
    with Database(path) as database:
        assert database.salvage is not None
        assert rows(database) == before
        hear(database, mqtt(SUREPET, SUREPET_LINE.replace(b"ca 00", b"cb 00"), T2 + MINUTE))
        assert len({row.device for row in rows(database) if row.kind == "meal"}) == 1
        again(database, ALL, everything=True)
    assert verify(path).is_sound


def test_a_history_in_a_file_is_imported_once(tmp_path, capsys):
    path, file = tmp_path / "hub.db", tmp_path / "history.json"
    with home_at(path):
        pass
    told = [
        {"timestamp": "2026-07-04 23:50:00", "action": "Cat Detected"},
        {"timestamp": "?", "action": "Cat Detected"},
    ]
    file.write_bytes(as_json({"history": told}))
    command_line = ["import", "history", str(file), "--db", str(path), "--profile", "litter-robot", "--topic"]
    assert main([*command_line, "litterrobot/LR4/history"]) == 0
    assert "1 new records, 0 known already, 1 that could not be read were kept apart" in capsys.readouterr().out
    assert main([*command_line, "litterrobot/LR4/history"]) == 0
    assert "0 new records, 1 known already" in capsys.readouterr().out
    assert main([*command_line, "litterrobot/history"]) == 2
    assert "topic: must be a topic of litter-robot (litterrobot/{serial}/history)" in capsys.readouterr().err
    file.write_text("no json", "utf-8")
    assert main([*command_line, "litterrobot/LR4/history"]) == 2
    assert "history.json: must be what litter-robot reads, but a message must be JSON" in capsys.readouterr().err
    with Database(path) as database:
        assert [row.device for row in rows(database)] == ["litterrobot-lr4"]


def test_a_meal_whose_samples_are_gone_stays_as_it_is_when_all_is_derived_again(database):
    samples = list(scale_samples((300, 30), *((300 - 0.4 * n, 2) for n in range(60)), (276, 60)))
    hear(database, *samples)
    before = rows(database)
    with database.transaction() as tx:
        assert tx.purge_heard(before_ms=T1 + DAY, most=10_000, profile="esphome-bowl") > 100
    (done,) = again(database, ALL, everything=True)
    assert (done.new, done.changed, done.gone, done.kept, done.days) == (0, 0, 0, 0, 0)
    assert rows(database) == before
    assert day(database, "luna.intake", "2026-08-10").total == before[0].amount
    assert verify(database.path).is_sound


def test_old_messages_go_with_the_rows_they_made_and_a_copy_is_still_known(database):
    hear(database, mqtt(PETLIBRO, GRAIN_END, T1 + 4500), mqtt(THEENGS, RUUVI, T1 + 10 * DAY))
    hear(database, *(mqtt(THEENGS, changed(RUUVI, seq=900 + n), T1 + 11 * DAY + n * HOUR) for n in range(60)))
    with database.transaction() as tx:
        tx.purge(before_ms=T1 + 8 * DAY)
        assert tx.purge_heard(before_ms=T1 + 8 * DAY, most=100) == 1
    assert hear(database, mqtt(PETLIBRO, GRAIN_END, T1 + 12 * DAY)).counted["records_stored"] == 0
    assert day(database, "max.portions", "2026-08-10").total == 1
    assert verify(database.path).is_sound


# --- refused -------------------------------------------------------------------------------------

GOOD = """
id = "mine"
version = 1
name = "My scale"
device_kind = "scale"
transport = "mqtt"
codec = "json"
replay = "live"
[match]
topics = ["mine/{node}/weight"]
[source]
id = "{topic.node}"
[[event]]
kind = "weight"
values = { weight = { from = "kg", unit = "kg" } }
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('codec = "json"', 'codec = "xml"', "codec: must be one of json, msgpack"),
        ("version = 1", 'version = "1"', "version: must be an integer from 1 to 1000000, is '1'"),
        ('id = "mine"', "", "id: must be 1 to 32 of a-z, 0-9 and -, is absent"),
        ('replay = "live"', 'replay = "events"', "dedupe: must be a table with a key"),
        ('unit = "kg"', 'unit = "stone"', "event[0].values.weight.unit: must be one of mg, g, kg, lb, oz, ml, is 'stone'"),
        ('from = "kg"', "from = 7", "event[0].values.weight.from: must be a path"),
        ("weight = {", "height = {", "event[0].values.height: must be one of weight; this key is not known"),
        ('kind = "weight"', 'kind = "mood"', "event[0].kind: must be one of meal, refill"),
        ("mine/{node}/weight", "#", "(for a level that anything fits write {name}, not + or #)"),
        ("mine/{node}/weight", "mine/+/weight", "(for a level that anything fits write {name}, not + or #)"),
        ("mine/{node}/weight", "/mine/{node}/weight", "(a level between two / is empty)"),
        ("mine/{node}/weight", "mine/{Node}/weight", "(a {name} is a whole level, of a-z and _)"),
        ("mine/{node}/weight", "{a}/{b}", "(at least one level is a text)"),
        ("mine/{node}/weight", "scentwalk/1/{d}/up", "(scentwalk/ and $ are the hub's and the broker's own)"),
        ("{topic.node}", "{topic.nod}", "source: topic.NAME must be a level the topics name (node), is 'topic.nod'"),
        ('replay = "live"', 'replai = "live"', "this key is not known, is replay meant?"),
        ('unit = "kg"', 'unit = "kg", low = 9, high = 1', "event[0].values.weight.low: must be at most high, which is 1"),
        ("{topic.node}", "{topic.node", "source.id: must be a text in which {path} stands for a field"),
        ("[match]", "[matches]", "matches: must be one of id, version"),
        ('device_kind = "scale"', 'device_kind = "robot"', "device_kind: must be one of food_bowl"),
        ("version = 1", "version = ", "must be TOML, but"),
        ("[match]", '[reply]\ntopic = "mine/{topic.node}/weight"\n[match]', "reply: must be a table with a topic that"),
    ],
)  # fmt: skip
def test_a_bad_profile_is_refused_naming_file_key_expectation_and_finding(tmp_path, capsys, old, new, said):
    assert old in GOOD
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(old, new, 1), "utf-8")
    assert main(["profile", "check", str(path)]) == 2
    told = capsys.readouterr().err
    assert "mine.toml" in told
    assert said in told


def test_a_good_profile_is_said_to_be_good(tmp_path, capsys):
    (tmp_path / "mine.toml").write_text(GOOD, "utf-8")
    assert main(["profile", "check", str(tmp_path / "mine.toml")]) == 0
    assert "mine, version 1: My scale. Nothing is wrong with it." in capsys.readouterr().out


def test_a_level_of_the_topic_that_is_asked_for_in_the_message_is_doubted(tmp_path, capsys):
    (tmp_path / "mine.toml").write_text(GOOD.replace("{topic.node}", "{node}"), "utf-8")
    assert main(["profile", "check", str(tmp_path / "mine.toml")]) == 0
    told = capsys.readouterr().out
    assert "is it meant? source.id takes {node} from the message; the level of the topic is {topic.node}" in told


def test_a_device_bound_after_it_was_heard_says_how_to_take_in_what_it_sent(database):
    attic = PETKIT.replace("hall", "attic")
    hear(database, mqtt(attic, PETKIT_VISIT, T3))
    said = command(database, "bind", device="petkit-attic", pets="luna", at_ms=T3 + HOUR)
    assert "is no pet's; to take it in as well, bind it again with --at 2026-07-22T12:02." in said
    command(database, "bind", device="petkit-attic", pets="luna", at="2026-07-22T12:02", at_ms=T3 + HOUR)
    assert day(database, "luna.litter", "2026-07-22").n == 1
    again = command(database, "bind", device="petkit-attic", pets="max", at_ms=T3 + 2 * HOUR)
    assert "--at" not in again


def test_a_device_nobody_heard_needs_its_kind_and_is_told_which_there_are(database):
    with pytest.raises(ImportRefused, match=r"must be one of food_bowl, .*; is absent, and nothing was heard"):
        command(database, "bind", device="stranger", pets="luna")


def test_one_bad_profile_stops_no_other_and_is_told_on_every_page(tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD, "utf-8")
    (tmp_path / "worse.toml").write_text(GOOD.replace("json", "xml"), "utf-8")
    (tmp_path / "twin.toml").write_text(GOOD, "utf-8")
    found = load_profiles(enabled=("aqara-c1",), folder=tmp_path)
    assert {one.id for one in found.profiles} == {"aqara-c1", "mine"}
    assert len(found.troubles) == 2
    assert "worse.toml: codec: must be one of json" in found.troubles[1]
    with pytest.raises(ConfigError, match=r"profiles\.enabled must hold ids of"):
        load_profiles(enabled=("nobody",), folder=None)


def test_an_owners_profile_stands_in_place_of_the_shipped_one_of_its_id(tmp_path):
    text = shipped()["aqara-c1"].read_text("utf-8").replace("version = 1", "version = 7")
    (tmp_path / "aqara.toml").write_text(text, "utf-8")
    assert load_profiles(enabled=("all",), folder=tmp_path).get("aqara-c1").version == 7


def test_of_two_profiles_that_fit_the_more_exact_one_reads(database):
    wide = GOOD.replace("mine/{node}/weight", "{any}/sensor/{what}/state").replace("{topic.node}", "{topic.any}")
    wide = read_profile(wide, source="wide")
    both = ProfileSet([wide, *ALL.profiles])
    assert "+/sensor/bowl_weight/state" not in both.topics  # the wider filter covers it: heard once
    raw = next(iter(scale_samples((300, 2))))
    assert both.claim(raw).profile.id == "esphome-bowl"
    hear(database, raw, profiles=both)
    assert counters(database)["profile_overlaps"] == 1


def test_nobodys_message_and_no_advertisement_are_dead_letters(database):
    hear(database, mqtt("who/knows", b"1", T1), radio(b"\x00", T1))
    assert [letter.reason for letter in letters(database)][::-1][0] == "no_profile"
    assert len(letters(database)) == 2


# --- bytes ---------------------------------------------------------------------------------------


def test_mutated_payloads_never_crash_and_cost_no_good_neighbour(tmp_path):
    found = fuzz_profiles(5_000, seed=7, folder=tmp_path)
    assert found.messages == 5_000
    assert found.lost_neighbours == 0
    assert found.unexplained == 0
    assert found.letters > 1_000


@pytest.mark.soak
def test_a_hundred_thousand_mutated_payloads_never_crash_and_cost_no_good_neighbour(tmp_path):
    found = fuzz_profiles(100_000, seed=8, folder=tmp_path)
    assert (found.lost_neighbours, found.unexplained) == (0, 0)
    assert found.letters > 20_000


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(payload=st.binary(max_size=200), which=st.sampled_from(sorted(shipped())))
def test_any_bytes_are_read_or_refused_with_a_reason(payload, which):
    from gateway.errors import PayloadError  # noqa: PLC0415
    from gateway.links.profiled import Message, derive, open_message  # noqa: PLC0415

    profile = one_of(which)
    message = Message("mqtt", "a/b/c/d", T1, T1, payload)
    for item in open_message(profile, message).items:
        with contextlib.suppress(PayloadError):
            derive(profile, item, message, key="k", state={}, zones=HOME.zones)


# --- a real broker -------------------------------------------------------------------------------


async def _until(holds) -> None:
    for _ in range(2_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the awaited did not happen within 20 s")


async def test_a_device_is_answered_after_the_commit_over_a_real_broker(tmp_path, database):
    with Mosquitto(tmp_path / "broker") as broker:
        client = paho.Client(CallbackAPIVersion.VERSION2, client_id="feeder")
        answers: list[tuple[str, bytes]] = []
        client.on_message = lambda _c, _d, message: answers.append((message.topic, message.payload))
        client.connect("127.0.0.1", broker.port)
        client.subscribe("dl/#", qos=1)
        client.loop_start()
        inbox, clock, writer = Inbox(capacity=80), SystemClock(), Writer(database)
        link = MqttLink(
            MqttSettings("127.0.0.1", broker.port, client_id="hub-p", filters=ALL.topics), inbox=inbox, clock=clock
        )
        ingest = Ingest(
            inbox=inbox, link=link, writer=writer, rollups=ROLLUPS, clock=clock, rule=CommitRule(window=20),
            profiles=ALL, replies=link.publish_replies,
        )  # fmt: skip
        tasks = [asyncio.create_task(link.run()), asyncio.create_task(ingest.run())]
        try:
            await _until(lambda: link.state.connected or any(task.done() for task in tasks))
            client.publish(PETLIBRO, GRAIN_END, qos=1)
            client.publish("zigbee2mqtt/Lamp", b'{"state":"ON"}', qos=1)
            wanted = "dl/PLAF203/AF01/device/event/sub"
            await _until(lambda: any(topic == wanted for topic, _ in answers))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            writer.close()
            client.disconnect()
            client.loop_stop()
    assert link.state.ungranted == ()
    assert json.loads(next(payload for topic, payload in answers if topic == wanted)) == {
        "cmd": "GRAIN_OUTPUT_EVENT",
        "msgId": "manual-feed-1",
        "code": 0,
    }
    assert [row.kind for row in rows(database)] == ["dispensed"]
