"""The licence of every package of a lock, from the package's own metadata.

Usage: ``licences.py LOCK...``. The first lock is what an owner runs: each of its packages
must state a licence that may ship beside Apache-2.0. The others (tests, checks) are listed
only; "not stated" is printed as such.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, files, metadata
from pathlib import Path

# Permissive, or copyleft by file: none asks anything of the hub's own source.
RUNTIME_MAY = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|PSF|Python Software Foundation|ISC|MPL|EPL|EDL|Zlib|CC0|Unlicense|Public Domain)",
    re.IGNORECASE,
)
COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public)", re.IGNORECASE)


def pinned(lock: Path) -> list[tuple[str, str]]:
    """(name, version) of every pin of a lock, in order."""
    return re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)


def licence(name: str) -> str | None:
    """The licence as the installed package states it: SPDX, else classifiers, else the field."""
    said = metadata(name)
    if said["License-Expression"]:
        return str(said["License-Expression"])
    classifiers = [c.rpartition(" :: ")[2] for c in said.get_all("Classifier") or () if c.startswith("License ::")]
    named = [c for c in classifiers if c != "OSI Approved"]
    if named:
        return ", ".join(named)
    lines = str(said["License"] or "").strip().splitlines()
    if not lines:
        texts = [
            path for path in files(name) or () if path.parent.suffix == ".dist-info" and "LICEN" in path.name.upper()
        ]
        lines = texts[0].read_text(encoding="utf-8").strip().splitlines() if texts else []
    return lines[0][:60] if lines else None


def main(locks: list[str]) -> int:
    """Print one line a package; 1 where a licence is missing or unfit."""
    seen: set[str] = set()
    faults: list[str] = []
    for position, lock in enumerate(locks):
        print(f"\n{lock}")
        for name, version in pinned(Path(lock)):
            if name in seen:
                continue
            seen.add(name)
            try:
                found = licence(name)
            except PackageNotFoundError:
                faults.append(f"{name} must be installed to be read, was not found")
                continue
            print(f"  {name:<26} {version:<14} {found or 'not stated'}")
            shipped = position == 0
            if shipped and (found is None or COPYLEFT.search(found) or not RUNTIME_MAY.search(found)):
                faults.append(f"{name} must have a permissive licence to be shipped, has {found or 'none stated'}")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
