"""How far bowl and collar can be trusted, counted on simulated sensors; each beside a peer.

    python tests/calibrate_devices.py             a day or two of each animal (minutes)
    python tests/calibrate_devices.py --scale .2  a fifth of that
    python tests/calibrate_devices.py --seed 7    other animals

The sensors are simulated (``device_sim.physics``), the firmware is the one that runs on devices.
Figures hold for that world: no animal wore this collar.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from firmware_bridge import wire
from firmware_bridge.motion import Motion
from tests.device_worlds import (
    SIGNS,
    BowlScore,
    SignScore,
    Stretch,
    bowl_samples,
    by_band_power,
    by_motion,
    by_moving_median,
    by_scale,
    collar_samples,
)

PUBLISHED = """\
For context, detectors on real dogs: scratching sensitivity .77 to .87, specificity .997
(Griffies 2018; Chambers 2021). Those are animals; the figures above are a simulation's, made by
the people who made the detector, and say only that it does what it was built for."""


def bowls(scale: float, first: int) -> None:
    """Meals found, their error, meals that were none; beside the moving median."""
    print("Bowls: 10 samples/s, noise 1 g peak to peak, drift 5-10 g a day, nonsense, leaning, machines, washing")
    head = ("", "meals", "recall", "err p50", "err p95", "false/day")
    print(f"{head[0]:<26}" + "".join(f"{word:>11}" for word in head[1:]))
    for species, visits, hours in (("cat", 10, 10.0), ("dog", 8, 10.0)):
        ours, peer = BowlScore(), BowlScore()
        for seed in range(first, first + max(1, round(10 * scale))):
            truth, samples = bowl_samples(species, seed, visits=visits, hours=hours)
            days = (samples[-1][0] - samples[0][0]) / 86_400_000
            ours.add(truth, by_scale(samples), days=days)
            peer.add(truth, by_moving_median(samples), days=days)
        for name, score in ((f"{species}, scale.py", ours), (f"{species}, moving median", peer)):
            print(
                f"{name:<26}{score.played:>11}{score.found / score.played:>11.3f}"
                f"{score.quantile_mg(0.5):>8.0f} mg{score.quantile_mg(0.95):>8.0f} mg{score.false / score.days:>11.2f}"
            )
        ratio = ours.quantile_mg(0.95) / peer.quantile_mg(0.95)
        print(f"{species}: error at p95, ratio to the moving median {ratio:.3f}\n")


def collars(scale: float, first: int) -> None:
    """Seconds and bouts of scratching and shaking; beside the power of a band."""
    print("Collars: 25 samples/s; walk, trot on a loose collar, play, a toy shaken, meals, licking")
    head = ("", "bouts", "found", "sensitivity", "specificity", "said/played")
    print(f"{head[0]:<26}" + "".join(f"{word:>13}" for word in head[1:]))
    scores = {(who, sign): SignScore() for sign in SIGNS for who in ("motion.py", "band power")}
    taken_for: Counter[tuple[str, str]] = Counter()
    for seed in range(first, first + max(1, round(40 * scale))):
        played, samples = collar_samples(seed, minutes=30)
        heard = list(samples)
        said = {"motion.py": by_motion(heard), "band power": by_band_power(heard)}
        for (who, sign), score in scores.items():
            truth = [(start, to) for what, start, to in played if what == sign]
            score.add(truth, said[who][sign], total_ms=heard[-1][0])
        for sign in SIGNS:
            for start, to in said["motion.py"][sign]:
                middle = (start + to) // 2
                what = next((name for name, a, b in played if a <= middle < b), "?")
                if what != sign:
                    taken_for[what, sign] += 1
    for (who, sign), s in scores.items():
        print(
            f"{sign + ', ' + who:<26}{s.bouts:>13}{s.bouts_found / s.bouts:>13.3f}{s.seconds_found / s.seconds:>13.3f}"
            f"{1 - s.false_seconds / s.other_seconds:>13.4f}{s.said_ms / s.played_ms:>13.2f}"
        )
    for sign in SIGNS:
        ours, peer = scores["motion.py", sign], scores["band power", sign]
        wrong = (ours.false_seconds / ours.other_seconds) / max(1e-9, peer.false_seconds / peer.other_seconds)
        print(f"{sign}: seconds said wrongly, ratio to the power of a band {wrong:.4f}")
    print("taken for it: " + ", ".join(f"{what} for {sign} {n}" for (what, sign), n in taken_for.most_common()))
    print(PUBLISHED + "\n")


def worn_and_rest() -> None:
    """An hour of rest with turns, half an hour of walks, two hours on a table: what the records add up to."""
    lived = [Stretch("rest", 600_000), Stretch("turn", 4_000)] * 6 + [
        Stretch("walk", 60_000),
        Stretch("trot", 60_000),
    ] * 15
    lived += [Stretch("off", 7_200_000), Stretch("walk", 120_000)]
    played, samples = collar_samples(1, minutes=0, stretches=lived)
    motion = Motion()
    sums = [0] * 9
    for sample in samples:
        for kind, _, values in motion.feed(*sample):
            assert kind == wire.MOTION
            sums = [a + b for a, b in zip(sums, values, strict=True)]
    truth = Counter[str]()
    for what, start, to in played:
        truth[what] += to - start
    print("Worn and rest, min: said (played)")
    for name, said, real in (
        ("rest", sums[6], truth["rest"] + truth["turn"]),
        ("restless", sums[7], truth["turn"]),
        ("activity", sums[3] + sums[4] + sums[5], truth["walk"] + truth["trot"]),
        ("worn", sums[8], sum(truth.values()) - truth["off"]),
    ):
        print(f"  {name:<10}{said / 60_000:>8.1f} ({real / 60_000:.1f})")


def main() -> int:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs")
    parser.add_argument("--seed", type=int, default=0, help="the worlds from this one on; 1000 apart none is the same")
    options = parser.parse_args()
    bowls(options.scale, 1_000 * options.seed)
    collars(options.scale, 1_000 * options.seed)
    worn_and_rest()
    return 0


if __name__ == "__main__":
    sys.exit(main())
