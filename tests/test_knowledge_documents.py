"""Guides as files: PDF and EPUB become chapters and paragraphs; what cannot is refused in words."""

from __future__ import annotations

import contextlib
import io
import random
import zipfile
import zlib

import pytest
from pypdf import PdfReader, PdfWriter

from gateway.errors import ImportRefused
from gateway.knowledge.chapters import read_book
from gateway.knowledge.documents import read_document
from tests.frames import mutated

PAGES = (
    ("Itching has many causes. Fleas are the", "commonest of them.", "Ask when the last treatment was."),
    ("Chicken is a commonly reported food aller-", "gen of dogs."),
)


def pdf(pages, outline=()) -> bytes:
    """A PDF of these lines, one font, with an outline of (title, page)."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        content = f"BT /F1 12 Tf 50 700 Td {shown}ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects)} 0 R "
        objects.append((page + "/Resources << /Font << /F1 3 0 R >> >> >>").encode())
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table))
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(out.getvalue())))
    for title, page in outline:
        writer.add_outline_item(title=title, page_number=page)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def locked(data: bytes) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt("secret", algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
PACKAGE = (
    '<package><manifest><item id="b" href="two.xhtml"/><item id="a" href="one%20.xhtml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
)


def epub(**parts: str) -> bytes:
    made = {
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": PACKAGE,
        "OEBPS/one .xhtml": "<html><head><title>x</title></head><body><h1>Skin</h1><p>Fleas &amp; mites itch.</p>"
        "<script>alert(1)</script><p>See a vet if it &lt;bleeds&gt;.</p></body></html>",
        "OEBPS/two.xhtml": "<h1>Food</h1><h2>Allergy</h2><div><p>Beef comes first.</p><ul><li>Then dairy.</li></ul></div>",
        **parts,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in made.items():
            archive.writestr(path, text)
    return out.getvalue()


def test_a_pdf_with_an_outline_keeps_chapters_pages_and_paragraphs():
    book = read_book("g.pdf", read_document("g.pdf", pdf(PAGES, [("1. Skin", 0), ("2. Food", 1)])))
    read = [(p.chapter, p.paragraph, p.chapter_title, p.heading, p.text) for p in book.passages]
    assert read == [
        (1, 1, "Skin", "page 1", "Itching has many causes. Fleas are the commonest of them."),
        (1, 2, "Skin", "page 1", "Ask when the last treatment was."),
        (2, 1, "Food", "page 2", "Chicken is a commonly reported food allergen of dogs."),
    ]


def test_a_pdf_without_an_outline_is_cited_by_page():
    book = read_book("g.pdf", read_document("g.pdf", pdf(PAGES)))
    assert [(p.chapter, p.chapter_title) for p in book.passages] == [(1, "page 1"), (1, "page 1"), (2, "page 2")]


def test_an_epub_is_read_in_its_reading_order_without_scripts():
    book = read_book("g.epub", read_document("g.epub", epub()))
    read = [(p.chapter, p.paragraph, p.chapter_title, p.heading, p.text) for p in book.passages]
    assert read == [
        (1, 1, "Skin", "", "Fleas & mites itch."),
        (1, 2, "Skin", "", "See a vet if it <bleeds>."),
        (2, 1, "Food", "Allergy", "Beef comes first."),
        (2, 2, "Food", "Allergy", "Then dairy."),
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pdf([()]), "its 1 pages hold pictures only"),
        (locked(pdf(PAGES)), "opens without a password"),
        (b"%PDF-1.7 torn", "must be a whole PDF"),
        (epub(**{"OEBPS/two.xhtml": "<!DOCTYPE x [<!ENTITY a 'b'>]><p>&a;</p>"}), "no entities of its own"),
        (epub(**{"META-INF/container.xml": "<container/>"}), "names its package"),
        (epub(**{"OEBPS/one .xhtml": "", "OEBPS/two.xhtml": "<h1>Nothing</h1>"}), "must hold text"),
        (epub()[:300], "must be a whole EPUB"),
        (epub(**{"OEBPS/two.xhtml": "a" * 60_000_001}), "must unpack to at most 60000000 bytes"),
    ],
    ids=["scan", "locked", "torn", "entity", "no package", "no text", "cut", "bomb"],
)
def test_what_cannot_be_read_is_refused_in_words(data, words):
    with pytest.raises(ImportRefused, match=words):
        read_document("guide", data)


def test_a_heading_inside_a_documents_text_makes_no_chapter_of_its_own():
    text = read_document(
        "g.epub", epub(**{"OEBPS/two.xhtml": "<h1>Food</h1><p># not a chapter</p><p>--- nor this</p>"})
    )
    assert {p.chapter_title for p in read_book("g.epub", text).passages} == {"Skin", "Food"}


def _broken_inside(data: bytes) -> bytes:
    """An archive whose first packed bytes are no deflate stream."""
    at = data.index(b"container.xml") + len("container.xml")
    return data[:at] + b"\xff" * 20 + data[at + 20 :]


def _sharing(pages: int, size: int) -> bytes:
    """A PDF of many pages that all show one long stream."""
    stream = zlib.compress(b"BT (a) Tj ET " * (size // 13))
    kids = " ".join(f"{4 + at} 0 R" for at in range(pages))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
        *(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 3 0 R >>" for _ in range(pages)),
    ]
    out = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % (at, body) for at, body in enumerate(objects, start=1))
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n0\n%%%%EOF" % (len(objects) + 1)


@pytest.mark.parametrize(
    "data",
    [
        _broken_inside(epub()),
        epub(**{"OEBPS/two.xhtml": "<p>x</p><![x>"}),
        epub(**{"OEBPS/book.opf": PACKAGE.replace("</spine>", '<itemref idref="a"/>' * 2_001 + "</spine>")}),
        epub(**{"OEBPS/book.opf": PACKAGE.replace("two.xhtml", "../../../../etc/passwd")}),
        pdf(PAGES).replace(b"/Kids [", b"/Kids ]", 1),
    ],
    ids=["deflate", "section", "order", "climbs", "kids"],
)
def test_a_book_that_was_made_to_break_the_reader_is_refused_in_words(data):
    with pytest.raises(ImportRefused, match="a guide must"):
        read_document("guide", data)


def test_pages_that_share_one_long_stream_are_refused_by_what_they_unpack_to():
    with pytest.raises(ImportRefused, match="must unpack to at most"):
        read_document("guide.pdf", _sharing(70, 1_000_000))


@pytest.mark.parametrize("pattern", ["<a ", "<!--", "</", "<![CDATA[", "<a b='>", '<a b=">', "<?", "<!", "<script><"])
def test_markup_that_never_ends_is_read_in_one_go(pattern):
    """200 kB of `<a ` took longer than anybody waited: the parser looked for each end in all that follows."""
    text = read_document(
        "guide.epub", epub(**{"OEBPS/two.xhtml": "<p>before</p>" + pattern * (200_000 // len(pattern))})
    )
    assert "before" in text


def test_a_book_of_mutated_bytes_is_read_or_refused():
    rng = random.Random(20261201)
    whole = (pdf(PAGES, [("1. Skin", 0)]), epub())
    for number in range(300):
        with contextlib.suppress(ImportRefused):
            read_document("guide", mutated(rng, whole[number % 2]))
