"""A guide's file is read in a process of its own: bytes in, its text or a refusal out.

A file may be made to break its reader, or be a heavy one: pypdf takes hundreds of MiB and minutes
for some. A hub that did so itself would hold up what it's told by devices meanwhile. The child reads
one file from its standard input, with a bound on memory and time that the system keeps, and tells
in one line of JSON. Never: a second file at the same time, or a file's name as an argument.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading

from gateway.errors import ImportRefused
from gateway.knowledge.documents import read_document

__all__ = ["read_apart"]

_LONGEST_S = 180
"""A PDF of 17 MB with 1,000 pages takes 15 s of a desk's processor, and four times that of a Raspberry Pi 4."""
_MOST_MEMORY = 256 * 2**20
"""That PDF takes 139 MiB of address space; the hub's 100 and this stay below the 400 of its unit (deploy/)."""
_ONE_AT_A_TIME = threading.Lock()


def read_apart(name: str, data: bytes, *, what: str = "a guide", longest_s: int = _LONGEST_S) -> str:
    """The text of a guide's file, as `gateway.knowledge.documents.read_document` gives it.

    Parameters
    ----------
    name : str
        The file's name, for refusals.
    data : bytes
        Markdown, plain text, a PDF or an EPUB.
    longest_s : int
        Seconds after which the child is ended.

    Raises
    ------
    ImportRefused
        As there; or it took too long or too much memory, or another file is being read.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise ImportRefused(name, f"{what} must wait for the one that is being read now; send it again in a minute")
    try:
        child = subprocess.run(
            [sys.executable, "-m", "gateway.knowledge.apart", str(longest_s)],
            input=json.dumps({"name": name, "what": what}).encode() + b"\n" + data,
            capture_output=True,
            timeout=longest_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ImportRefused(name, f"{what} must be readable within {longest_s} s, takes longer") from None
    finally:
        _ONE_AT_A_TIME.release()
    if child.returncode != 0:
        last = child.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"status {child.returncode}"
        bounds = f"{_MOST_MEMORY >> 20} MiB and {longest_s} s"
        raise ImportRefused(name, f"{what} must be readable in {bounds}; its reader ended with: {last}")
    told = json.loads(child.stdout)
    if told["problem"] is None:
        return str(told["text"])
    raise ImportRefused(name, told["problem"], line=told["line"])


def _child(longest_s: int) -> None:
    """Read the file on standard input within bounds; tell its text or why not."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (longest_s, longest_s))
    asked = json.loads(sys.stdin.buffer.readline())
    text, problem, line = "", None, None
    try:
        text = read_document(asked["name"], sys.stdin.buffer.read(), what=asked["what"])
    except ImportRefused as refusal:
        line = refusal.line
        where = refusal.source if line is None else f"{refusal.source}, line {line}"
        problem = str(refusal).removeprefix(f"{where}: ")
    json.dump({"text": text, "problem": problem, "line": line}, sys.stdout)


if __name__ == "__main__":
    _child(int(sys.argv[1]))
