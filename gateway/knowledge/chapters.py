"""A document's shape: bytes of Markdown or plain text in, chapters and paragraphs out.

Chapters carry the number they print, or are counted where they print none; paragraphs are
counted within their chapter from 1, so ``passage:<sha8>#7.3`` is the third paragraph of
chapter 7. Text is kept as written but for its line breaks. Bytes that are no text are
refused whole, naming the line; nothing written in a document is ever followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.errors import ImportRefused

__all__ = ["Book", "Passage", "decode_text", "read_book"]

MOST_BYTES = 20_000_000
"""A guide of this size is a library: about forty thick books."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(.{1,300}?)[ \t]*#*\Z")
_SPELLED = re.compile(
    r"(?:chapter|kapitel|cap[ií]tulo)[ \t]+(\d{1,3})\b[ \t]*[.:\u2013-]?[ \t]*(.{0,200})\Z", re.IGNORECASE
)
_NUMBERED = re.compile(r"(\d{1,3})[.)][ \t]+(\S.{0,120})\Z")
_BULLET = re.compile(r"[-*\u2022][ \t]+")
_FACT = re.compile(r"([a-z_]{1,40}):[ \t]*(.{1,500})\Z")
_SOURCE = re.compile(r"sources?:[ \t]*(.+)\Z", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Passage:
    """One paragraph: chapter and paragraph number, the headings over it, its text and source."""

    chapter: int
    paragraph: int
    chapter_title: str
    heading: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Book:
    """A document taken apart. ``facts`` are its front matter's lines in order."""

    title: str
    text: str
    facts: tuple[tuple[str, str], ...]
    passages: tuple[Passage, ...]

    def fact(self, name: str) -> str | None:
        """A line of the front matter, or None."""
        return next((value for key, value in self.facts if key == name), None)


def decode_text(name: str, data: bytes, *, what: str) -> str:
    """The bytes as text.

    Raises
    ------
    ImportRefused
        If they are empty, too many, a PDF, an archive, or no UTF-8: names what was expected.
    """
    expected = f"{what} must be UTF-8 text (Markdown or plain)"
    if len(data) > MOST_BYTES:
        raise ImportRefused(name, f"{what} must have at most {MOST_BYTES} bytes, has {len(data)}")
    if data.startswith(b"%PDF"):
        raise ImportRefused(name, f"{expected}, found a PDF; save its text as a .txt or .md file")
    if data.startswith(b"PK\x03\x04"):
        raise ImportRefused(
            name, f"{expected}, found a ZIP archive (EPUB or DOCX); save its text as a .txt or .md file"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        line = data.count(b"\n", 0, broken.start) + 1
        raise ImportRefused(name, f"{expected}, found byte 0x{data[broken.start]:02x}", line=line) from broken
    control = _CONTROL.search(text)
    if control:
        line = text.count("\n", 0, control.start()) + 1
        raise ImportRefused(name, f"{expected}, found control character 0x{ord(control[0]):02x}", line=line)
    if not text.strip():
        raise ImportRefused(name, f"{expected}, found nothing but white space")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_book(name: str, text: str) -> Book:
    """Take a text apart into chapters and paragraphs. Linear in its length."""
    lines = text.split("\n")
    facts, body = _front_matter(lines)
    headings = _headings(lines, body)
    title = dict(facts).get("title") or _title(headings) or name
    chapter_level = _chapter_level(headings)
    numbers = _numbers([h for h in headings.values() if h[0] == chapter_level])
    passages: list[Passage] = []
    chapter, chapter_title, below, paragraph = 0, "", "", 0
    for at, block in _blocks(lines, body, headings):
        if at in headings:
            level, _, words = headings[at]
            if level == chapter_level:
                chapter, chapter_title, below, paragraph = next(numbers), words, "", 0
            elif level > chapter_level:
                below = words
            continue
        body_text, source = _without_source(block)
        if body_text:
            paragraph += 1
            passages.append(Passage(chapter, paragraph, chapter_title, below, body_text, source))
    return Book(title, text, facts, tuple(passages))


def _front_matter(lines: list[str]) -> tuple[tuple[tuple[str, str], ...], int]:
    if not lines or lines[0].strip() != "---":
        return (), 0
    facts: list[tuple[str, str]] = []
    for at in range(1, min(len(lines), 60)):
        if lines[at].strip() == "---":
            return tuple(facts), at + 1
        fact = _FACT.match(lines[at].strip())
        if fact:
            facts.append((fact[1], fact[2].strip()))
    return (), 0


def _headings(lines: list[str], body: int) -> dict[int, tuple[int, int | None, str]]:
    """Line number -> (level, printed number, words)."""
    found: dict[int, tuple[int, int | None, str]] = {}
    markdown = any(_HEADING.match(line) for line in lines[body:])
    for at in range(body, len(lines)):
        line = lines[at].strip()
        heading = _HEADING.match(line)
        if heading:
            found[at] = (len(heading[1]), *_number_of(heading[2]))
        elif not markdown:
            alone = (at == 0 or not lines[at - 1].strip()) and (at + 1 == len(lines) or not lines[at + 1].strip())
            spelled = _SPELLED.match(line) or (_NUMBERED.match(line) if alone and not line.endswith(".") else None)
            if spelled:
                found[at] = (1, int(spelled[1]), spelled[2].strip())
    return found


def _number_of(words: str) -> tuple[int | None, str]:
    numbered = _SPELLED.match(words) or _NUMBERED.match(words)
    return (int(numbered[1]), numbered[2].strip()) if numbered else (None, words)


def _title(headings: dict[int, tuple[int, int | None, str]]) -> str:
    level, number, words = next(iter(headings.values()), (0, None, ""))
    alone = sum(1 for h in headings.values() if h[0] == level) == 1
    return words if alone and number is None and len(headings) > 1 else ""


def _chapter_level(headings: dict[int, tuple[int, int | None, str]]) -> int:
    """The highest level that occurs twice or prints a number; a single one over all is the title."""
    levels = sorted({h[0] for h in headings.values()})
    for level in levels:
        of_level = [h for h in headings.values() if h[0] == level]
        if len(of_level) > 1 or any(number is not None for _, number, _ in of_level):
            return level
    return levels[-1] if levels else 1


def _numbers(chapters: list[tuple[int, int | None, str]]) -> Iterator[int]:
    """The printed numbers where every chapter prints its own, else a count from 1."""
    printed = [number for _, number, _ in chapters]
    told = [number for number in printed if number is not None]
    if len(told) == len(printed) and len(set(told)) == len(told):
        return iter(told)
    return iter(range(1, len(chapters) + 1))


def _blocks(
    lines: list[str], body: int, headings: dict[int, tuple[int, int | None, str]]
) -> Iterator[tuple[int, list[str]]]:
    """Headings and paragraphs in order, as (first line, lines); a bullet begins a paragraph."""
    block: list[str] = []
    start = body
    for at in range(body, len(lines)):
        line = lines[at].strip()
        bullet = _BULLET.match(line)
        if block and (not line or at in headings or bullet):
            yield start, block
            block = []
        if at in headings:
            yield at, []
        elif line:
            if not block:
                start = at
            block.append(line[bullet.end() :] if bullet else line)
    if block:
        yield start, block


def _without_source(block: list[str]) -> tuple[str, str]:
    source = ""
    kept: list[str] = []
    for line in block:
        cited = _SOURCE.match(line) if kept else None
        if cited:
            source = cited[1].strip()
        else:
            kept.append(line)
    return " ".join(" ".join(kept).split()), source
