"""Half a minute of the soak: hub, broker and device killed at random under load.

`make soak` kills a thousand times; see tests/soak_kill.py for what is counted.
"""

from __future__ import annotations

import asyncio

import pytest

from tests import kill_ble
from tests.soak_kill import VICTIMS, soak


@pytest.mark.timeout(280)
def test_killing_hub_broker_and_device_under_load_loses_and_doubles_nothing(tmp_path):
    report = soak(tmp_path, kills=1_000, seed=7, longest_s=30)
    print(report.table())
    assert report.failures == ()
    assert report.taken > 0
    kills = sum(report.kills.values())
    assert kills >= len(VICTIMS)
    assert sum(report.under_way.values()) * 3 >= kills, "a third of the kills must find records under way"


@pytest.mark.timeout(280)
def test_killing_the_hub_while_a_tracker_hands_over_loses_and_doubles_nothing(tmp_path):
    report = asyncio.run(kill_ble.soak(tmp_path, kills=2, seed=7))
    print(report.line())
    assert report.failures == ()
    assert report.under_way > 0
    assert report.taken > 0
