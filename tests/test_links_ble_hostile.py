"""Devices and hubs that lie: mutated GATT values are read or refused, and nobody else waits for them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from firmware_bridge import parts, wire
from gateway.errors import RadioError
from gateway.links.ble_handover import _device_of
from gateway.links.ble_identity import may_hand_over
from gateway.links.payloads import read_payload
from gateway.model import Device, RawFrame
from gateway.ontology.load import load
from gateway.web.radio import radio_page
from tests.ble_home import HOME, home
from tests.fake_bluez import FakeBluez
from tests.frames import mutated, whole_messages
from tests.radio_world import HandClock, TrackerPeer
from tests.test_links_ble import bluez, bus  # noqa: F401 - fixtures


def values(times: int, seed: int = 20261130) -> None:
    """Both halves of a handover, fed with mutated values; only their own refusals come out."""
    rng = random.Random(seed)
    messages = whole_messages()
    tracker = TrackerPeer(HandClock())
    tracker.opened()
    joiner = parts.Joiner(wire.MAX_MESSAGE_BYTES)
    mark = wire.pack_mark({1: 5, 2: 7})
    for number in range(times):
        if number % 500 == 0:
            tracker.measure(40)
        message = messages[number % len(messages)]
        piece = mutated(rng, parts.pack_piece(1, 0, len(message), 9, message[: parts.PIECE_BYTES]))
        told = parts.unpack_piece(piece)
        assert told is None or len(told[4]) <= len(piece)
        try:
            assert wire.is_device_id(_device_of(mutated(rng, tracker.uplink.identity)))
        except RadioError as refused:
            assert "must say Wire 1" in str(refused)  # noqa: PT017 - any other error ends the test
        index = rng.randrange(parts.part_count(len(message), 185))
        joined = joiner.feed(mutated(rng, parts.cut_part(message, index, 185)))
        if joined is not None:
            assert len(joined) <= wire.MAX_MESSAGE_BYTES
            read_payload(RawFrame("ble", "tracker-max", 0, joined))
        tracker.uplink.wrote_mark(mutated(rng, parts.cut_part(mark, 0, 185)))
        answer = tracker.uplink.asked(mutated(rng, parts.pack_ask(rng.randrange(4), 0)))
        assert len(answer) <= parts.ATTRIBUTE_BYTES
    assert tracker.uplink.bad_asks
    assert joiner.broken


def test_five_thousand_mutated_gatt_values_are_read_or_refused_on_both_sides():
    values(5_000)


@pytest.mark.soak
def test_a_hundred_thousand_mutated_gatt_values_are_read_or_refused_on_both_sides():
    values(100_000)


class Liar(TrackerPeer):
    """A device whose every value is bent."""

    rng = random.Random(7)
    told = 0

    def read(self, uuid: str) -> bytes:
        value = super().read(uuid)
        self.told += 1
        return mutated(self.rng, value)[:512] if self.rng.random() < 0.5 else value

    def notifications(self) -> list[tuple[str, bytes]]:
        return [(uuid, mutated(self.rng, part)[:182]) for uuid, part in super().notifications()]


async def lied_to(bluez: FakeBluez, folder, *, told: int, patience_s: float = 60.0) -> None:  # noqa: F811
    """A liar among others: an honest tracker's records arrive, and the radio goes on."""
    async with home(bluez, folder) as hub:
        hub.patience_s = patience_s
        liar, honest = Liar(hub.clock, device="liar"), TrackerPeer(hub.clock)

        def both_heard() -> bool:
            if liar.outbox.held < 500:
                liar.measure(100)
            if not honest.outbox.held and honest.outbox.next_seq < 300:
                honest.measure(30)
            bluez.advertise("C0:FF:EE:00:00:66", service=liar.service_data(), peer=liar)
            bluez.advertise("C0:FF:EE:00:00:01", service=honest.service_data(), peer=honest)
            return liar.told >= told and honest.outbox.next_seq >= 300 and honest.outbox.held == 0

        await hub.until(both_heard, "the honest one must be heard whatever the other says")
        assert hub.stored() == sorted((1, seq) for seq in honest.taken)
        assert hub.counted("handovers_broken") > 0
        assert hub.link.state.standing == "listening"


async def test_a_lying_device_never_keeps_an_honest_one_from_handing_over(bluez, tmp_path):  # noqa: F811
    await lied_to(bluez, tmp_path, told=120)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_device_that_lies_ten_thousand_times_never_keeps_an_honest_one_out(bluez, tmp_path):  # noqa: F811
    await lied_to(bluez, tmp_path, told=10_000, patience_s=800.0)


async def test_a_device_that_may_not_hand_over_is_named_and_keeps_its_records(bluez, tmp_path):  # noqa: F811
    """Whoever was in radio range could call himself the kitchen bowl, and feed it."""
    async with home(bluez, tmp_path, admits=lambda device: device == "tracker-max") as hub:
        forged, honest = TrackerPeer(hub.clock, device="bowl-max"), TrackerPeer(hub.clock)
        forged.measure(30)
        honest.measure(30)

        def both_heard() -> bool:
            bluez.advertise("C0:FF:EE:00:00:66", service=forged.service_data(), peer=forged)
            bluez.advertise("C0:FF:EE:00:00:01", service=honest.service_data(), peer=honest)
            return hub.counted("handovers_refused") > 0 and honest.outbox.held == 0

        await hub.until(both_heard, "the honest one must be heard, the other refused")
        assert hub.stored("bowl-max") == []
        assert forged.outbox.held >= 30
        assert hub.link.state.refused == ("bowl-max",)
        assert "bowl-max" in radio_page(hub.link.state, HOME).refused
        assert hub.stored() == sorted((1, seq) for seq in honest.taken)


def test_only_a_households_wearables_hand_over_unless_an_owner_lists_others():
    home_of_two = replace(HOME, devices=(*HOME.devices, Device("bowl-max", "food_bowl", "bowl")))
    assert may_hand_over(home_of_two, load(), listed=None) == {"tracker-max"}
    assert may_hand_over(home_of_two, load(), listed=()) == frozenset()
    assert may_hand_over(home_of_two, load(), listed=("bowl-max",)) == {"bowl-max"}
