"""``python -m device_sim --scenario NAME --seed N --broker-port P``: play a story to a broker."""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path

from device_sim.cast import redraw
from device_sim.household import build_world
from device_sim.owner import write_owner_files
from device_sim.play import NotMarked, digest, play
from device_sim.story import Story, StoryError, load_story, story_names
from device_sim.truth import names_of, truth_json


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m device_sim", description="Play a simulated household.")
    parser.add_argument("--scenario", default="food_switch", help=f"one of {', '.join(story_names())}")
    parser.add_argument("--seed", type=int, default=0, help="0 = as written; others redraw names, dates, ingredient")
    parser.add_argument("--broker-port", type=int, default=1883, help="MQTT broker on 127.0.0.1")
    parser.add_argument("--owner-dir", type=Path, help="where to write what the owner would enter")
    parser.add_argument("--truth", type=Path, help="where to write the true answer (for tests only)")
    parser.add_argument("--days", type=int, help="a shorter story: only its last N days (14 or more)")
    parser.add_argument("--patience-ms", type=int, default=60_000, help="how long a step waits for the hub's marks")
    parser.add_argument("--live", action="store_true", help="go on at 1x after the last instant")
    parser.add_argument("--digest", action="store_true", help="print the SHA-256 of all messages and end")
    return parser


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Play; the exit status is 0, or 2 with one line on stderr."""
    options = _parser().parse_args(arguments)
    try:
        story = redraw(load_story(options.scenario), options.seed)
        if options.days is not None:
            story = _shortened(story, options.days)
        world = build_world(story)
        if options.digest:
            _say(digest(world))
            return 0
        if options.truth is not None:
            options.truth.write_text(truth_json(world), "utf-8")
        if options.owner_dir is not None:
            write_owner_files(world, options.owner_dir)
        _say(f"start {story.start_ms}")
        _say(f"ask {story.question.format(**names_of(story))}")
        play(world, port=options.broker_port, say=_say, live=options.live, patience_ms=options.patience_ms)
    except (StoryError, NotMarked, OSError) as problem:
        print(f"device_sim: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def _shortened(story: Story, days: int) -> Story:
    if not 14 <= days <= story.days:
        raise StoryError(f"--days must be 14 to {story.days}, is {days}")
    feedings = tuple(replace(one, day=max(one.day, 1 - days)) for one in story.feedings)
    return replace(story, days=days, feedings=feedings)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main())
