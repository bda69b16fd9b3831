"""Half a minute of the soak: hub, broker and device killed at random under load.

`make soak` kills a thousand times; see tests/soak_kill.py for what is counted.
"""

from __future__ import annotations

import pytest

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
