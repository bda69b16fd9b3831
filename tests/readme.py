"""Writes into README.md the answer that the demo prints; the tests compare with the same text.

``make readme`` plays `food_switch` through real processes and rewrites the block between the
markers. Nothing else of the file is touched.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
HANG_GUARD_S = 600
_BLOCK = re.compile(r"(<!-- answer[^\n]*-->\n```text\n)(.*?)(```\n<!-- end -->)", re.DOTALL)
_ASKED = re.compile(r"^Played .* Asked: .*\n\n", re.MULTILINE)


def printed_answer(database: Path) -> str:
    """What ``scentwalk demo --once`` prints behind its progress lines; plays into ``database``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "demo", "--once", "--db", str(database), "--mqtt-port", str(port)],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = _ASKED.search(done.stdout)
    assert found is not None, f"the demo must say what it asked, printed {done.stdout!r}"
    return done.stdout[found.end() :]


def block(text: str) -> str:
    """What a README holds between its markers."""
    found = _BLOCK.search(text)
    assert found is not None, "README.md must hold a text block between <!-- answer ... --> and <!-- end -->"
    return found[2]


def with_block(text: str, answer: str) -> str:
    """The README with this answer between its markers."""
    block(text)
    return _BLOCK.sub(lambda found: f"{found[1]}{answer}{found[3]}", text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        answer = printed_answer(Path(folder) / "home.db")
    before = README.read_text("utf-8")
    after = with_block(before, answer)
    if after != before:
        README.write_text(after, "utf-8")
    print("README.md holds this answer already" if after == before else "README.md holds the new answer now")


if __name__ == "__main__":
    main()
