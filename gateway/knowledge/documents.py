"""Guides as files: bytes of Markdown, plain text, PDF or EPUB in, one Markdown text out.

A PDF becomes a chapter for each entry of its outline (or for each page where it has none),
with its page over every paragraph; an EPUB one for each heading of its reading order. So a
citation opens chapter, page and paragraph. A scan without text, a file behind a password, an
archive that unpacks to more than it should: refused in a sentence that says what must hold.
Markup is read by a parser that knows no entities of its own; nothing is fetched or run.
"""

from __future__ import annotations

import io
import lzma
import re
import struct
import zipfile
import zlib
from html.parser import HTMLParser
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from gateway.errors import ImportRefused
from gateway.knowledge.chapters import MOST_BYTES, decode_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pypdf import PdfReader

__all__ = ["read_document"]

_MOST_PAGES = 5_000
_MOST_PARTS = 2_000
_MOST_UNPACKED = 60_000_000
"""An EPUB's text and markup, unpacked; a thick illustrated guide has a tenth of it."""
_BROKEN_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError),  # a seek before the beginning, a method nobody knows
    AssertionError,  # `html.parser`, of a marked section that nobody knows
)
"""What `zipfile` and `html.parser` raise for bytes that are no book."""
_BROKEN_PDF = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError),
    *(ValueError, struct.error, zlib.error),
)
"""What pypdf raises for a tree of objects that is none, beside its own errors."""
_LEAST_LETTERS = 20
"""A PDF with fewer letters than this in all its pages is a scan."""
_HYPHEN = re.compile(r"(\w)-\n(?=[^\W\d_])")
_BARE = re.compile(r"<(?=[^<>]*(?:<|\Z))")
"""A tag that never closes: `html.parser` looks for its end to the end of the text, once for each."""
_MARK = re.compile(r"^[ \t]*(?:#{1,6}|-{3,})[ \t]*", re.MULTILINE)


def read_document(name: str, data: bytes, *, what: str = "a guide") -> str:
    """The text of a guide's file, with its chapters as Markdown headings.

    Raises
    ------
    ImportRefused
        The bytes are too many, or no text can be read from them: says what must hold and what
        was found.
    """
    if len(data) > MOST_BYTES:
        raise ImportRefused(name, f"{what} must have at most {MOST_BYTES} bytes, has {len(data)}")
    if data.startswith(b"%PDF"):
        return _pdf(name, data, what)
    if data.startswith(b"PK\x03\x04"):
        return _epub(name, data, what)
    return decode_text(name, data, what=what)


# --- PDF ------------------------------------------------------------------------------------------


def _pdf(name: str, data: bytes, what: str) -> str:
    from pypdf import PdfReader  # noqa: PLC0415  # wanted by this kind of file alone
    from pypdf.errors import PyPdfError  # noqa: PLC0415

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ImportRefused(name, f"{what} must be a PDF that opens without a password, this one asks for it")
        count = len(reader.pages)
        if count > _MOST_PAGES:
            raise ImportRefused(name, f"{what} must have at most {_MOST_PAGES} pages, has {count}")
        budget = _MOST_UNPACKED
        for page in reader.pages:  # five thousand pages may show one and the same long stream
            contents = page.get_contents()
            budget -= 0 if contents is None else len(contents.get_data())
            if budget < 0:
                raise ImportRefused(name, f"{what} must unpack to at most {_MOST_UNPACKED} bytes, unpacks to more")
        pages = [_MARK.sub("", page.extract_text() or "") for page in reader.pages]
        chapters = _outline(reader)
    except (PyPdfError, *_BROKEN_PDF) as broken:
        raise ImportRefused(name, f"{what} must be a whole PDF, reading it failed: {broken}") from broken
    if sum(letter.isalpha() for page in pages for letter in page) < _LEAST_LETTERS:
        found = f"its {count} pages hold pictures only; run text recognition (OCR) over it first"
        raise ImportRefused(name, f"{what} must hold text, {found}")
    lines = [_title("" if reader.metadata is None else str(reader.metadata.title or ""))]
    for number, text in enumerate(pages, start=1):
        lines += [f"# {heading}" for heading in chapters.get(number, ())]
        lines.append(f"## page {number}" if chapters else f"# {number}. page {number}")
        lines.append("\n\n".join(_paragraphs(text)))
    return "\n\n".join(line for line in lines if line)


def _title(title: str) -> str:
    words = " ".join(title.split())[:300]
    return f"---\ntitle: {words}\n---" if words else ""


def _outline(reader: PdfReader) -> Mapping[int, list[str]]:
    """Page number, from 1 -> titles of the outline's first level that begin there."""
    found: dict[int, list[str]] = {}
    for entry in reader.outline:
        if isinstance(entry, list):
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0 and entry.title:
            found.setdefault(page + 1, []).append(" ".join(str(entry.title).split())[:200])
    return found


def _paragraphs(text: str) -> Iterator[str]:
    """Lines of a page joined: a paragraph ends at an empty line, or at a short line that ends a sentence."""
    lines = [line.strip() for line in _HYPHEN.sub(r"\1", text).split("\n")]
    widest = max((len(line) for line in lines), default=0)
    block: list[str] = []
    for line in lines:
        if line:
            block.append(line)
        ended = line.endswith((".", "!", "?", ":")) and len(line) < 0.8 * widest
        if block and (not line or ended):
            yield " ".join(block)
            block = []
    if block:
        yield " ".join(block)


# --- EPUB -----------------------------------------------------------------------------------------


def _epub(name: str, data: bytes, what: str) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _opened_epub(name, archive, what)
    except _BROKEN_ZIP as broken:
        raise ImportRefused(name, f"{what} must be a whole EPUB, reading it failed: {broken}") from broken


def _opened_epub(name: str, archive: zipfile.ZipFile, what: str) -> str:
    parts = archive.infolist()
    if len(parts) > _MOST_PARTS:
        raise ImportRefused(name, f"{what} must have at most {_MOST_PARTS} parts, has {len(parts)}")
    budget = [_MOST_UNPACKED]

    def text_of(path: str) -> str:
        return _part(name, archive, path, budget, what)

    container = _Tags.of(text_of("META-INF/container.xml"))
    package_path = next((found.get("full-path", "") for tag, found in container if tag == "rootfile"), "")
    if not package_path:
        raise ImportRefused(name, f"{what} must be an EPUB that names its package, found none (a DOCX is no EPUB)")
    package = _Tags.of(text_of(package_path))
    files = {found.get("id", ""): found.get("href", "") for tag, found in package if tag == "item"}
    order = [files.get(found.get("idref", ""), "") for tag, found in package if tag == "itemref"]
    if len(order) > _MOST_PARTS:
        raise ImportRefused(name, f"{what} must have at most {_MOST_PARTS} parts in reading order, has {len(order)}")
    lines: list[str] = []
    for href in order:
        if href:
            path = str(PurePosixPath(package_path).parent / unquote(href.partition("#")[0]))
            lines += _Prose.of(text_of(path))
    if not any(not line.startswith("#") for line in lines):
        raise ImportRefused(name, f"{what} must hold text, none of its {len(order)} parts does")
    return "\n\n".join(lines)


def _part(name: str, archive: zipfile.ZipFile, path: str, budget: list[int], what: str) -> str:
    """One part as text, counted against what the whole may unpack to."""
    try:
        with archive.open(path) as part:
            raw = part.read(budget[0] + 1)
    except KeyError:
        raise ImportRefused(name, f"{what} must hold its part {path}, it is missing") from None
    budget[0] -= len(raw)
    if budget[0] < 0:
        raise ImportRefused(name, f"{what} must unpack to at most {_MOST_UNPACKED} bytes, unpacks to more")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ImportRefused(
            name, f"{what} must be readable text, its part {path} is not UTF-8 (is the book copy-protected?)"
        ) from None
    if "<!ENTITY" in text:
        raise ImportRefused(name, f"{what} must define no entities of its own, its part {path} does")
    return _BARE.sub("&lt;", _without_comments(text))


def _without_comments(text: str) -> str:
    """Markup without its comments; one that never ends takes the rest."""
    kept, at = [], 0
    while (begins := text.find("<!--", at)) >= 0:
        kept.append(text[at:begins])
        ends = text.find("-->", begins)
        if ends < 0:
            return "".join(kept)
        at = ends + 3
    return "".join([*kept, text[at:]])


class _Tags(HTMLParser):
    """Every tag of a small file with its attributes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    @classmethod
    def of(cls, text: str) -> list[tuple[str, dict[str, str]]]:
        parser = cls()
        parser.feed(text)
        parser.close()
        return parser.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag under its name without a prefix."""
        self.found.append((tag.rpartition(":")[2], {key: value or "" for key, value in attrs}))


_BLOCKS = frozenset({"p", "li", "blockquote", "div", "dd", "dt", "td", "th", "section", "br", "tr", "pre"})
_HEADINGS = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "### "}
_SKIPPED = frozenset({"script", "style", "head", "nav", "svg"})


class _Prose(HTMLParser):
    """A part's headings and paragraphs as Markdown lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._words: list[str] = []
        self._lead = ""
        self._skipped = 0

    @classmethod
    def of(cls, text: str) -> list[str]:
        parser = cls()
        parser.feed(text)
        parser.close()
        parser.end_line()
        return parser.lines

    def end_line(self) -> None:
        """Close the paragraph or heading that is open."""
        line = _MARK.sub("", " ".join("".join(self._words).split()))
        if line:
            self.lines.append(self._lead + line)
        self._words.clear()
        self._lead = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a heading, a paragraph or something that is no prose."""
        del attrs
        self._skipped += tag in _SKIPPED
        if tag in _HEADINGS or tag in _BLOCKS:
            self.end_line()
            self._lead = _HEADINGS.get(tag, "")

    def handle_endtag(self, tag: str) -> None:
        """Close it."""
        self._skipped -= tag in _SKIPPED and self._skipped > 0
        if tag in _HEADINGS or tag in _BLOCKS:
            self.end_line()

    def handle_data(self, data: str) -> None:
        """Words, where they are prose."""
        if not self._skipped:
            self._words.append(data)
