"""Known vulnerabilities of a lock, through pip-audit.

Usage: ``audit.py LOCK``. Three outcomes a package: "clean" (looked up, nothing known), "VULNERABLE" with the advisory,
and "not audited" (the service could not be reached or does not know it), which is never
taken for clean. Exit 1 only where something vulnerable was found.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE_S = 180


def audited(lock: Path) -> dict[str, dict[str, Any]]:
    """Package name -> pip-audit's finding; empty where the service could not be reached."""
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [*command, "--timeout", "10", "--format", "json", "--requirement", str(lock)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return {found["name"]: found for found in json.loads(done.stdout)["dependencies"]}
    except subprocess.TimeoutExpired:
        print(f"pip-audit gave no answer in {PATIENCE_S} s", file=sys.stderr)
    except json.JSONDecodeError:
        print(f"pip-audit could not reach its service: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return {}


def main(lock: Path) -> int:
    """Print one line a package and a count; 1 where a vulnerability is known."""
    names = re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    findings = audited(lock)
    counts = {"clean": 0, "VULNERABLE": 0, "not audited": 0}
    for name in names:
        found = findings.get(name, {})
        advisories = [advisory["id"] for advisory in found.get("vulns", ())]
        word = "VULNERABLE" if advisories else "clean" if "vulns" in found else "not audited"
        counts[word] += 1
        print(f"  {name:<26} {word} {' '.join(advisories)}".rstrip())
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["VULNERABLE"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
