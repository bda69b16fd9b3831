"""Whole stories through real processes: simulator, broker, gateway, answer, record."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.stories import breaches, play

STORIES = ("food_switch", "nothing_changed", "no_tracker")
REDRAWN = (1, 2, 3, 4, 5)


@pytest.mark.story
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [0, *REDRAWN])
@pytest.mark.parametrize("story", STORIES)
def test_the_answer_keeps_the_storys_truth(story, seed, tmp_path):
    played = play(story, seed, tmp_path)
    assert breaches(played) == [], "\n".join(played.answer["text"])
    _every_citation_opens(played)
    _asking_again_gives_the_same_bytes(played)


def _run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def _every_citation_opens(played):
    cited = {claim["refs"][0] for claim in played.answer["claims"] if claim["refs"]}
    for ref in sorted(cited):
        opened = _run("record", ref, "--db", str(played.database))
        assert opened.returncode == 0, opened.stderr
        assert opened.stdout.strip()


def _asking_again_gives_the_same_bytes(played):
    question = played.answer["question"]
    first, second = (_run("ask", question, "--json", "--db", str(played.database)) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    again = json.loads(first.stdout)
    assert again["claims"] == played.answer["claims"]
