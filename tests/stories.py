"""Plays a story through real processes and holds the answer against the simulator's truth.

The hub sees only what an owner and the devices give it; the truth goes to a file that only
this module reads. Nothing of the three packages is imported here.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HANG_GUARD_S = 600
_NOUNS = {"scratch": "scratching", "shake": "shaking"}
_FIRST = {
    "up": re.compile(r"^Yes\b"),
    "down": re.compile(r"^Yes\b"),
    "not_up": re.compile(r"^(No\b|Not clear|I can't tell)"),
    "not_recorded": re.compile(r"not recorded"),
    "too_early": re.compile(r"^Too early"),
    "cannot_tell": re.compile(r"^(I can't tell|Not clear|Not comparable)"),
    "not_down": re.compile(r"^No\b"),
    "not_eating": re.compile(r"^(No meal|Nothing|Luna|No\b)|24 h"),
    "whose_unknown": re.compile(r"whose|share"),
}


@dataclass(frozen=True)
class Played:
    answer: dict[str, Any]
    truth: dict[str, Any]
    database: Path
    spoken: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def play(story: str, seed: int, folder: Path) -> Played:
    """The whole way: simulator, broker, gateway, answer."""
    database, truth = folder / "home.db", folder / "truth.json"
    command = [
        *(sys.executable, "-m", "gateway", "demo", "--scenario", story, "--seed", str(seed), "--once", "--json"),
        *("--db", str(database), "--truth", str(truth), "--mqtt-port", str(free_port())),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_GUARD_S, check=False)
    assert done.returncode == 0, done.stderr
    return Played(json.loads(done.stdout), json.loads(truth.read_text()), database, done.stderr)


def breaches(played: Played) -> list[str]:
    """Everything in which the answer does not keep the story's expectations, one line each."""
    answer, expect = played.answer, played.truth["expect"]
    found = []
    opening = answer["notices"][0]["text"] if answer["notices"] else ""
    if not _FIRST[expect["first"]].search(opening):
        found.append(f"first must be {expect['first']}, the answer opens {opening!r}")
    found += [
        f"must name as missing: {missing}"
        for missing in expect["missing"]
        if not any(_names(notice, missing) for notice in answer["notices"])
    ]
    for wanted in expect.get("claims", []):
        alike = [claim for claim in answer["claims"] if _matches(claim, wanted)]
        if not alike:
            found.append(f"no claim like {wanted}")
        elif not any(_figures_hold(claim, wanted) for claim in alike):
            figures = [{name: value["v"] for name, value in claim["values"].items()} for claim in alike]
            found.append(f"figures of {wanted} are not {figures}")
    for never in expect.get("never", []):
        if "passage" in never:
            found += [f"cites {never['passage']}: {claim['text']}" for claim in _citing(answer, never["passage"])]
        elif bad := [claim for claim in answer["claims"] if _matches(claim, never)]:
            found.append(f"must never hold {never}, holds {bad[0]['text']!r}")
    return found + _structure(answer)


def _names(notice: dict[str, Any], missing: dict[str, str]) -> bool:
    slots = notice.get("slot", "").split("+")
    return missing["slot"] in slots and ("device" not in missing or notice.get("device") == missing["device"])


def _cites(claim: dict[str, Any], kind: str) -> bool:
    """Whether a claim stands on records of this kind and no other; energy, counted from grams, also on what
    was in the bowl and what its label says.
    """
    kinds = {ref.partition(":")[0] for ref in claim["refs"]}
    energy = kind == "day" and any(name.endswith(".intake") for name in claim["about"])
    return kind in kinds and kinds <= {kind, *(("event", "label") if energy else ())}


def _matches(claim: dict[str, Any], wanted: dict[str, Any]) -> bool:
    about = claim["about"]
    checks = {
        "kind": lambda value: claim["kind"] == value,
        "class": lambda value: claim["class"] == value,
        "series": lambda value: any(name.endswith(f".{_NOUNS.get(value, value)}") for name in about),
        "window": lambda value: claim["window"] is not None and claim["window"]["label"] == value,
        "ref": lambda value: _cites(claim, value),
        "verdict": lambda value: value in _verdicts(claim),
        "head": lambda value: value in about,
        "tail": lambda value: value in about,
    }
    return all(checks[name](value) for name, value in wanted.items() if name in checks)


def _verdicts(claim: dict[str, Any]) -> set[str]:
    """The verdict words a claim carries, one a series."""
    return {value["v"] for name, value in claim["values"].items() if name.rpartition(".")[2] == "verdict"}


def _figures_hold(claim: dict[str, Any], wanted: dict[str, Any]) -> bool:
    values = {name.rpartition(".")[2]: value["v"] for name, value in claim["values"].items()}
    for name in ("change", "usual", "now"):
        truth = wanted.get(name)
        if isinstance(truth, dict) and abs(values.get(name, 1e99) - truth["value"]) > truth["plus_minus"]:
            return False
    if "date" in wanted:
        day = int(wanted["date"][8:])
        return re.search(rf"\b{day}\b", claim["text"]) is not None
    return True


def _citing(answer: dict[str, Any], guide: str) -> list[dict[str, Any]]:
    """Claims that cite one of the simulator's distractor guides."""
    text = (Path(__file__).parents[1] / "device_sim" / "guides" / f"{guide}.md").read_text("utf-8")
    own = f"passage:{hashlib.sha256(text.encode()).hexdigest()[:8]}#"
    return [claim for claim in answer["claims"] if any(ref.startswith(own) for ref in claim["refs"])]


def _structure(answer: dict[str, Any]) -> list[str]:
    """What holds of every answer, whatever the story."""
    found = []
    ids = {claim["id"] for claim in answer["claims"]}
    for claim in answer["claims"]:
        cites = claim["class"] in ("MEASURED", "RECORDED", "REFERENCE")
        if cites != bool(claim["refs"]):
            found.append(f"{claim['class']} claim {claim['id']} cites {len(claim['refs'])} records")
        if claim["class"] == "CONNECTION" and (" may " not in claim["text"] or not set(claim["joins"]) <= ids):
            found.append(f"a connection must say may and join claims of this answer: {claim['text']!r}")
        if claim["class"] == "REFERENCE" and re.search(r"\b(Max|Luna)\b", claim["text"]):
            found.append(f"a REFERENCE must not name a pet: {claim['text']!r}")
    spoken = " ".join(answer["text"])
    banned = ("baseline", "likely cause", "healthy", "nothing to worry", "p-value")
    found += [f"an owner must not read {word!r}" for word in banned if word in spoken.lower()]
    short = answer["notices"][0]["text"].split() if answer["notices"] else []
    if len(short) > 25:
        found.append(f"the short answer must be at most 25 words, has {len(short)}")
    return found
