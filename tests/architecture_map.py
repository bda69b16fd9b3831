"""Writes the map of ARCHITECTURE.md: one line a file, from each module's own promise.

``make map`` rewrites what stands between the markers; nothing else of the file is touched.
The tests compare the files on the map with the files that exist.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PACKAGES = ("firmware_bridge", "gateway", "device_sim")
_MAP = re.compile(r"(<!-- map[^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)
_LINE = re.compile(r"^\| `([a-z0-9_/]+\.py)` \|", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=\.)\s")  # a promise may begin with its question


def modules(root: Path) -> tuple[Path, ...]:
    """Every module of the packages that does something, by path; an empty package file is none."""
    found = (path for package in PACKAGES for path in (root / package).rglob("*.py"))
    files = (path for path in found if path.name != "__init__.py")
    return tuple(sorted(files, key=lambda path: (path.parent, path.name)))


def promise(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    sentence = _SENTENCE_END.split(" ".join(text.split("\n\n")[0].split()))[0]
    assert sentence, f"{path} must open with its promise"
    return sentence.replace("``", "`").replace("|", "\\|")


def written(root: Path) -> str:
    """The whole map as Markdown: a table for each folder, its promise above it."""
    parts: list[str] = []
    folder = None
    for path in modules(root):
        if path.parent != folder:
            folder = path.parent
            about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
            lead = f"\n{' '.join(about.split(chr(10) * 2)[0].split())}\n" if about.strip(". \n") else ""
            parts.append(f"\n### {folder.relative_to(root).as_posix()}/\n{lead}\n| file | promise |\n|---|---|\n")
        parts.append(f"| `{path.relative_to(root).as_posix()}` | {promise(path)} |\n")
    return "".join(parts).lstrip("\n") + "\n"


def mapped(text: str) -> tuple[str, ...]:
    """The files a map names."""
    return tuple(_LINE.findall(_map_of(text)))


def _map_of(text: str) -> str:
    found = _MAP.search(text)
    assert found is not None, "ARCHITECTURE.md must hold a map between <!-- map ... --> and <!-- end -->"
    return found[2]


def main() -> None:
    before = ARCHITECTURE.read_text("utf-8")
    _map_of(before)
    after = _MAP.sub(lambda found: f"{found[1]}{written(ROOT)}{found[3]}", before)
    ARCHITECTURE.write_text(after, "utf-8")
    print(f"ARCHITECTURE.md maps {len(modules(ROOT))} files")


if __name__ == "__main__":
    main()
