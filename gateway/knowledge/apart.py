"""A guide's file is read in a process of its own: bytes in, its text or a refusal out.

A file may be made to break its reader, or be a heavy one: pypdf takes hundreds of MiB and minutes
for some. A hub that did so itself would hold up what it's told by devices meanwhile. The child reads
one file from its standard input, with a bound on memory and time that the system keeps, and tells
in one line of JSON, below which the text stands. Never: a second file at the same time, or a file's
name as an argument.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from gateway.errors import ImportRefused
from gateway.knowledge.chapters import MOST_BYTES
from gateway.knowledge.documents import read_document

__all__ = ["end_reading", "read_apart"]

_LONGEST_S = 180
"""A PDF of 17 MB with 1,000 pages takes 15 s of a desk's processor, and four times that of a Raspberry Pi 4."""
_MOST_MEMORY = 256 * 2**20
"""That PDF takes 139 MiB of address space; the hub's 100 and this stay below the 400 of its unit (deploy/)."""
_HOUSE = Path(__file__).resolve().parents[2]
"""Where the child finds this package. Not where the hub was started: a ``json.py`` may lie there."""
_ONE_AT_A_TIME = threading.Lock()
_CHILDREN: list[subprocess.Popen[bytes]] = []


def read_apart(name: str, data: bytes | BinaryIO, *, what: str = "a guide", longest_s: int = _LONGEST_S) -> str:
    """The text of a guide's file, as `gateway.knowledge.documents.read_document` gives it.

    Parameters
    ----------
    name : str
        The file's name, for refusals.
    data : bytes or binary file
        Markdown, plain text, a PDF or an EPUB. A file is read once its turn has come: forty uploads at
        once would else fill the hub's memory to be told to wait.
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
        asked = json.dumps({"name": name, "what": what}).encode() + b"\n"
        asked += data if isinstance(data, bytes) else data.read()
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "gateway.knowledge.apart", str(longest_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(_HOUSE)},
        ) as child:
            _CHILDREN.append(child)
            try:
                told, complaint = child.communicate(asked, timeout=longest_s)
            finally:
                _CHILDREN.remove(child)
                child.kill()
    except OSError as problem:  # no memory, no process left
        raise ImportRefused(name, f"{what} must have a process of its own to be read in: {problem}") from problem
    except subprocess.TimeoutExpired:
        raise ImportRefused(name, f"{what} must be readable within {longest_s} s, takes longer") from None
    finally:
        _ONE_AT_A_TIME.release()
    if child.returncode != 0:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2] or f"signal {-child.returncode}"
        bounds = f"{_MOST_MEMORY >> 20} MiB and {longest_s} s"
        raise ImportRefused(name, f"{what} must be readable in {bounds}; its reader ended with: {last}")
    return _told(name, told, what)


def end_reading() -> None:
    """End the child that reads now, if one does: a hub that is told to end does not wait for it."""
    for child in tuple(_CHILDREN):
        child.kill()


def _told(name: str, said: bytes, what: str) -> str:
    """The text a child told, or its refusal; a child that was talked into telling something else is refused."""
    head, _, text = said.partition(b"\n")
    try:
        told = json.loads(head)
        problem, line = told["problem"], told["line"]
        kept = text.decode()
    except (ValueError, LookupError, TypeError):
        raise ImportRefused(name, f"{what} must be told as text by its reader, which said something else") from None
    if problem is None:
        return kept
    raise ImportRefused(name, str(problem), line=line if isinstance(line, int) else None)


def _child(longest_s: int) -> None:
    """Read the file on standard input within bounds; tell its text or why not."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (longest_s, longest_s))
    asked = json.loads(sys.stdin.buffer.readline())
    text, problem, line = b"", None, None
    try:
        text = read_document(asked["name"], sys.stdin.buffer.read(), what=asked["what"]).encode(errors="replace")
        if len(text) > MOST_BYTES:  # the hub would hold all of it
            text, problem = b"", f"{asked['what']} must hold at most {MOST_BYTES} bytes of text, holds more"
    except ImportRefused as refusal:
        line = refusal.line
        where = refusal.source if line is None else f"{refusal.source}, line {line}"
        problem = str(refusal).removeprefix(f"{where}: ")
    sys.stdout.buffer.write(json.dumps({"problem": problem, "line": line}).encode() + b"\n" + text)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _child(int(sys.argv[1]))
