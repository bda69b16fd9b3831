"""Field reports 8, 9, 10 and 11 of the shared cases, as far as links and store decide them.

Reports 1, 2, 3 and 6 stand in test_links_ingest and test_links_mqtt, 4, 5 and 15 in the tests
of the store.
"""

from __future__ import annotations

import unicodedata

import msgpack
import pytest

from firmware_bridge import wire
from gateway.links.ingest import store_readings
from gateway.links.payloads import read_payload
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, RawFrame, ZonePeriod, stable_id
from gateway.ontology.load import load
from gateway.store.database import Database

NOON = 1_783_526_400_000  # 2026-07-08 12:00 in New York
MINUTE = 60_000
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("luna", "Luna", "cat"), Pet("max", "Max", "dog")),
    devices=(Device("bowl-max", "food_bowl", "Max's bowl"), Device("scale", "scale", "hall scale")),
    bindings=(Binding("bowl-max", frozenset({"max"}), 0), Binding("scale", frozenset({"luna", "max"}), 0)),
)
ROLLUPS = Rollups(load())


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "hub.db") as opened:
        with opened.transaction() as tx:
            tx.save_household(HOME, valid_from_ms=0)
        yield opened


def hear(database: Database, device: str, payload: bytes):
    with database.transaction() as tx:
        return store_readings(tx, (read_payload(RawFrame("mqtt", device, NOON, payload)),), rollups=ROLLUPS)


def message(*records: bytes) -> bytes:
    return wire.pack_message(1, 1, list(records), 60 * MINUTE, NOON)


def rows(database: Database, device: str):
    with database.snapshot() as reader:
        return reader.frames((device,), start_ms=0, end_ms=2**60)


def test_4200_on_a_channel_in_kg_is_kept_and_no_weight(database):
    """Field report 8: 4.2, 4200, 4.21. In mg the wire itself has no room for 4,200 kg."""
    told = [[wire.WEIGHT, n * MINUTE, mg] for n, mg in enumerate((4_200_000, 4_200_000_000, 4_210_000), start=1)]
    payload = msgpack.packb({"v": 1, "b": 1, "s": 1, "n": 3, "u": 60 * MINUTE, "w": NOON, "r": told})
    outcome = hear(database, "scale", payload)
    assert outcome.marks == {"scale": {1: 3}}
    assert [row.amount for row in rows(database, "scale")] == [4_200_000, 4_210_000]
    with database.snapshot() as reader:
        (letter,) = reader.dead_letters(limit=9)
    assert (letter.seq, letter.reason) == (2, "out_of_range")


@pytest.mark.parametrize(("mg", "said"), [(420_000_000, "420 kg"), (0, "0 kg"), (-3_000_000, "-3 kg")])
def test_a_weight_that_no_pet_has_is_set_aside_with_its_reason(database, mg, said):
    hear(database, "scale", message(wire.pack_record(wire.WEIGHT, MINUTE, (mg,))))
    (row,) = rows(database, "scale")
    assert (row.amount, row.set_aside) == (mg, f"{said} is no pet's weight; not counted")


def test_a_bowl_that_stands_below_zero_is_not_clamped(database):
    """Field report 9: -11.59 g before, -18.09 g after: 6.50 g were taken."""
    plateaus = [wire.pack_record(wire.PLATEAU, n * MINUTE, (mg, 0)) for n, mg in ((1, -11_590), (3, -18_090))]
    meal = wire.pack_record(wire.MEAL, 3 * MINUTE, (MINUTE, 2 * MINUTE, -11_590 + 18_090, 0))
    hear(database, "bowl-max", message(plateaus[0], meal, plateaus[1]))
    assert [row.amount for row in rows(database, "bowl-max") if row.kind == "plateau"] == [-11_590, -18_090]
    with database.snapshot() as reader:
        assert (day := reader.day("max.intake", "2026-07-08")) is not None
        assert day.total == 6_500


def test_a_visit_without_identity_is_of_both_pets_and_moves_neithers_series(database):
    """Field report 10: 5.1 kg, pets of 5.1 and 5.2 kg."""
    hear(database, "scale", message(wire.pack_record(wire.WEIGHT, MINUTE, (5_100_000,))))
    with database.snapshot() as reader:
        (event,) = reader.events(HOME, ("weight",), start_ms=0, end_ms=2**60)
        assert event.pets == frozenset({"luna", "max"})
        assert not {series.pet for series in reader.all_series()} & {"luna", "max"}


@pytest.mark.parametrize("name", ["Müsli 🐈 O'Malley/#+", "Мурка"])
def test_a_name_in_any_spelling_of_its_letters_is_one_id_that_fits_a_topic(name):
    """Field report 11."""
    ids = {stable_id(unicodedata.normalize(form, name)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    (only,) = ids
    assert only.isascii()
    assert wire.is_device_id(only)
    assert not set("/#+") & set(wire.up_topic(only).removeprefix("scentwalk/1/").removesuffix("/up"))
