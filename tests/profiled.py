"""The payloads of the shared wire cases, one per family, and a home that hears them. Not a test."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.links import advertisement
from gateway.links.ingest import Outcome, store_readings
from gateway.links.profile import Profile
from gateway.links.profileset import ProfileSet, check_file, load_profiles, shipped
from gateway.links.rollups import Rollups
from gateway.model import Binding, Device, Household, Pet, RawFrame, ZonePeriod
from gateway.ontology.load import load
from gateway.store.database import Database

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
HOME = Household(
    zones=(ZonePeriod("America/New_York", 0),),
    pets=(Pet("luna", "Luna", "cat"), Pet("max", "Max", "cat"), Pet("musli", "Müsli 🐈 O'Malley", "cat")),
    devices=(
        Device("petkit-hall", "litter_box", "hall box"),
        Device("aqara-feeder", "feeder", "feeder"),
        Device("plaf203-af01", "feeder", "PetLibro"),
        Device("scale", "scale", "kitchen scale"),
        Device("kitchen-bowl", "food_bowl", "kitchen bowl"),
    ),
    bindings=(
        Binding("petkit-hall", frozenset({"luna", "max"}), 0),
        Binding("aqara-feeder", frozenset({"max"}), 0),
        Binding("plaf203-af01", frozenset({"max"}), 0),
        Binding("kitchen-bowl", frozenset({"luna"}), 0),
    ),
)
ROLLUPS = Rollups(load())
ALL = load_profiles(enabled=("all",), folder=None)

# 1 PetLibro
T1 = 1_786_354_620_000  # 2026-08-10 04:17 in New York
PETLIBRO = "dl/PLAF203/AF01/device/event/post"
GRAIN_START = (
    b'{"cmd":"GRAIN_OUTPUT_EVENT","msgId":"manual-feed-1","finished":false,"type":2,"actualGrainNum":0,'
    b'"expectGrainNum":1,"execTime":1786354620000,"execStep":"GRAIN_START","ts":1786354620000}'
)
GRAIN_END = (
    b'{"cmd":"GRAIN_OUTPUT_EVENT","msgId":"manual-feed-1","finished":true,"type":2,"actualGrainNum":1,'
    b'"expectGrainNum":1,"execTime":1786354620000,"execStep":"GRAIN_END","ts":1786354624000}'
)
# 2 SurePet
T2 = 1_609_524_001_000
SUREPET = "pethublocal/messages/0013a2"
SUREPET_LINE = (
    b"5fef6320 0020 126 29 18 00 ca 00 b8 c8 42 54 14 cd 5b 07 00 e1 01 01 0b 00 02 79 fb ff ff 8c fb ff ff "
    b"d0 00 00 00 d1 00 00 00 07 00 25 01 00 00"
)
# 3 PetKit
T3 = 1_784_736_160_000
PETKIT = "petkit/hall/event"
PETKIT_WEIGHT = b'{"event_type":"9","event_id":"4_10000001_1784736135","content":{"pet_weight":2128,"mark":1784736135}}'
PETKIT_VISIT = (
    b'{"event_type":"10","event_id":"4_10000001_1784736135",'
    b'"content":{"time_in":1784736141,"time_out":1784736158,"is_shit":1,"pet_weight":2128}}'
)
# 4 Aqara
AQARA = "zigbee2mqtt/Feeder"
AQARA_STATE = (
    b'{"feeding_source":"schedule","feeding_size":1,"portions_per_day":4,"weight_per_day":40,"portion_weight":10,'
    b'"error":false}'
)
# 5 ESPHome
ESPHOME = "kitchen/sensor/bowl_weight/state"
# 6 BTHome
ADDRESS = "CB:B8:33:4C:88:4F"
UUID = "0000fcd2-0000-1000-8000-00805f9b34fb"
# 7 Theengs
THEENGS = "home/TheengsGateway/BTtoMQTT/CBB8334C884F"
RUUVI = (
    b'{"id":"CB:B8:33:4C:88:4F","rssi":-61,"model_id":"RuuviTag_RAWv2","tempc":24.3,"accx":0.0039,"accz":1.016,'
    b'"volt":2.977,"mov":66,"seq":205}'
)
# 8 histories
LITTER_ROBOT = "litterrobot/LR4-1/history"
PETS = "surepet/home/pets"


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def changed(payload: bytes, **values: object) -> bytes:
    """A JSON payload with some of its values changed (None takes a key away)."""
    fields = json.loads(payload) | values
    return as_json({name: value for name, value in fields.items() if value is not None})


def advert(data: str, *, address: str = ADDRESS, rssi: int | None = -60) -> bytes:
    """A BTHome advertisement."""
    return advertisement.pack(
        advertisement.advertisement(address, rssi=rssi, name=None, manufacturer={}, service={UUID: bytes.fromhex(data)})
    )


def mqtt(topic: str, payload: bytes, received_ms: int) -> RawFrame:
    return RawFrame("mqtt", topic, received_ms, payload)


def radio(payload: bytes, received_ms: int, *, device: str = "cbb8334c884f") -> RawFrame:
    return RawFrame(advertisement.TRANSPORT, device, received_ms, payload)


def home_at(path: Path) -> Database:
    database = Database(path)
    with database.transaction() as tx:
        tx.save_household(HOME, valid_from_ms=0)
    return database


def hear(database: Database, *raws: RawFrame, profiles: ProfileSet = ALL, retained: bool = False) -> Outcome:
    """Store messages as one batch, through the hub's own ingest."""
    readings = tuple(profiles.read(raw, retained=retained) for raw in raws)
    with database.transaction() as tx:
        return store_readings(tx, readings, rollups=ROLLUPS)


def rows(database: Database, *devices: str):
    """Every stored row (of some devices), by time."""
    with database.snapshot() as reader:
        return [row for row in reader.every_frame() if not devices or row.device in devices]


def letters(database: Database, *, limit: int = 999):
    with database.snapshot() as reader:
        return reader.dead_letters(limit=limit)


def counters(database: Database) -> dict[str, int]:
    with database.snapshot() as reader:
        return dict(reader.counters())


def day(database: Database, series: str, date: str):
    with database.snapshot() as reader:
        return reader.day(series, date)


def one_of(profile_id: str) -> Profile:
    return check_file(shipped()[profile_id])
