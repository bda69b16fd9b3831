"""An answer's links as a drawing and as a list: the same facts twice, words first.

A vertex stands one row below everything that leads to it, so a chain reads downwards from
the pet to the sign. Stroke width is how well a link is supported, its dash is what it
stands on, a cross means that the owner marked it wrong. Pure layout; no number is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.ask.records import link_sentence, relation_words, stored_link, support, vertex_words
from gateway.dialogue import EvidenceClass
from gateway.model import Link, RecordRef
from gateway.store.reads import Reader

__all__ = ["Box", "Chart", "ChartLink", "Wire", "draw_chart", "read_chain"]

_CLASS_OF_RECORD = {
    "event": EvidenceClass.MEASURED,
    "day": EvidenceClass.MEASURED,
    "note": EvidenceClass.RECORDED,
    "log": EvidenceClass.RECORDED,
    "label": EvidenceClass.REFERENCE,
    "passage": EvidenceClass.REFERENCE,
}
_LEADING = (EvidenceClass.MEASURED, EvidenceClass.RECORDED, EvidenceClass.REFERENCE)
"""Own data leads: a link that a device and a book both support is drawn as measured."""

_BOX_HEIGHT, _ROW_GAP, _MARGIN, _LANE = 44.0, 58.0, 10.0, 22.0
_LANE_ROOM = 90.0
"""How far beyond the widest box the side lane may stand: room for the word on the line into it."""
_CHARACTER = 7.4
"""Width of a character at the drawing's 14 px, as measured on the widest common system font."""
_MOST_LINES = 2
_LEAST_STROKE, _STROKE_OF_BELIEF = 1.2, 3.6


@dataclass(frozen=True, slots=True)
class ChartLink:
    """One link in words: what it says, how well it stands, where its record is."""

    ref: RecordRef
    tail: str
    relation: str
    head: str
    tail_words: str
    head_words: str
    sentence: str
    standing: str
    evidence_class: EvidenceClass | None
    belief: float
    marked_wrong: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A vertex, drawn."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wire:
    """A link, drawn: path data, stroke width, class, and where its word and its cross stand."""

    path: str
    stroke: float
    dash: str
    word: str
    x: float
    y: float
    crossed: bool
    ref: RecordRef
    sentence: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A whole drawing."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]


def _class_of(link: Link) -> EvidenceClass | None:
    found = {_CLASS_OF_RECORD[piece.record.kind] for piece in link.evidence if piece.record.kind in _CLASS_OF_RECORD}
    return next((leading for leading in _LEADING if leading in found), None)


def read_chain(reader: Reader, chain: Iterable[RecordRef]) -> tuple[ChartLink, ...]:
    """The stored links of an answer's chain as they stand now, in the chain's order.

    A link that is no longer stored (its source was deleted) is left out.
    """
    home, labels = reader.household(), reader.vertex_labels()
    walls = frozenset(edge for _, edge, _, _, _ in reader.walls(at_ms=2**62) if edge is not None)
    found = []
    for ref in chain:
        link = stored_link(reader, ref, walls=walls)
        if link is None:
            continue
        edge = link.edge
        tail, head = (vertex_words(vertex.name, home, labels) for vertex in (edge.tail, edge.head))
        found.append(
            ChartLink(
                ref=ref,
                tail=edge.tail.name,
                relation=relation_words(edge.relation),
                head=edge.head.name,
                tail_words=tail,
                head_words=head,
                sentence=link_sentence(tail, edge.relation, head),
                standing=support(link),
                evidence_class=_class_of(link),
                belief=link.belief,
                marked_wrong=link.marked_wrong,
            )
        )
    return tuple(found)


def _layers(links: tuple[ChartLink, ...]) -> dict[str, int]:
    """Each vertex's row: one below the lowest that leads to it (longest path).

    Rounds are bounded by the number of vertices, so a cycle (two series that move together)
    ends there instead of running away.
    """
    names = list(dict.fromkeys(name for link in links for name in (link.tail, link.head)))
    row = dict.fromkeys(names, 0)
    for _ in names:
        moved = False
        for link in links:
            wanted = row[link.tail] + 1
            if row[link.head] < wanted < len(names):
                row[link.head], moved = wanted, True
        if not moved:
            break
    used = {level: place for place, level in enumerate(sorted(set(row.values())))}
    return {name: used[level] for name, level in row.items()}


def _rows(links: tuple[ChartLink, ...], columns: int) -> list[list[str]]:
    """Vertices row by row, at most ``columns`` in one; a fuller layer goes on below."""
    layers = _layers(links)
    rows: list[list[str]] = []
    for level in range(max(layers.values(), default=-1) + 1):
        names = [name for name, at in layers.items() if at == level]
        rows += [names[start : start + columns] for start in range(0, len(names), columns)]
    return rows


def _wrapped(words: str, room: int) -> tuple[str, ...]:
    """The words in at most two lines of ``room`` characters; what is too long ends in an ellipsis."""
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], " ".join(lines[_MOST_LINES - 1 :])]
    return tuple(line if len(line) <= room else f"{line[: room - 1]}\N{HORIZONTAL ELLIPSIS}" for line in lines)


def _boxes(links: tuple[ChartLink, ...], width: float, columns: int) -> dict[str, tuple[Box, int]]:
    """Each vertex's box and the row it stands in."""
    words = {link.tail: link.tail_words for link in links} | {link.head: link.head_words for link in links}
    usable = width - 2 * (_MARGIN + _LANE)
    placed = {}
    for number, names in enumerate(_rows(links, columns)):
        slot = usable / len(names)
        for place, name in enumerate(names):
            lines = _wrapped(words[name], int((slot - 2 * _MARGIN) / _CHARACTER))
            box_width = min(slot - _MARGIN, max(len(line) for line in lines) * _CHARACTER + 28)
            centre = _MARGIN + _LANE + slot * (place + 0.5)
            top = _MARGIN + number * (_BOX_HEIGHT + _ROW_GAP)
            placed[name] = (Box(round(centre - box_width / 2, 1), top, round(box_width, 1), _BOX_HEIGHT, lines), number)
    return placed


def _downward(tail: Box, head: Box) -> tuple[str, float, float]:
    """From the foot of one box to the top of the next, as a gentle S."""
    x1, y1 = tail.x + tail.width / 2, tail.y + tail.height
    x2, y2 = head.x + head.width / 2, head.y - 5
    middle = (y1 + y2) / 2
    return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}", (x1 + x2) / 2, middle


def _around(tail: Box, head: Box, lane: float) -> tuple[str, float, float]:
    """Along a lane on the right, for a link that skips rows or goes up."""
    bend = 10.0
    y1, y2 = tail.y + tail.height / 2, head.y + head.height / 2
    way = bend if y2 > y1 else -bend
    path = (
        f"M{tail.x + tail.width:.1f} {y1:.1f}H{lane - bend:.1f}Q{lane:.1f} {y1:.1f} {lane:.1f} {y1 + way:.1f}"
        f"V{y2 - way:.1f}Q{lane:.1f} {y2:.1f} {lane - bend:.1f} {y2:.1f}H{head.x + head.width + 5:.1f}"
    )
    return path, (tail.x + tail.width + lane) / 2, y1


def _wire(link: ChartLink, placed: dict[str, tuple[Box, int]], lane: float) -> Wire:
    (tail, above), (head, below) = placed[link.tail], placed[link.head]
    path, x, y = _downward(tail, head) if below == above + 1 else _around(tail, head, lane)
    return Wire(
        path=path,
        stroke=round(_LEAST_STROKE + _STROKE_OF_BELIEF * link.belief, 1),
        dash="none" if link.evidence_class is None else link.evidence_class.lower(),
        word=link.relation,
        x=round(x, 1),
        y=round(y, 1),
        crossed=link.marked_wrong,
        ref=link.ref,
        sentence=f"{link.sentence} ({link.standing})",
    )


def draw_chart(links: tuple[ChartLink, ...], *, width: float, columns: int) -> Chart:
    """Lay the links out on ``width``, with at most ``columns`` vertices side by side."""
    placed = _boxes(links, width, columns)
    rows = max((row for _, row in placed.values()), default=-1) + 1
    widest = max((box.x + box.width for box, _ in placed.values()), default=0.0)
    lane = min(width - _MARGIN, widest + _LANE_ROOM)
    return Chart(
        width=width,
        height=2 * _MARGIN + rows * _BOX_HEIGHT + max(0, rows - 1) * _ROW_GAP,
        boxes=tuple(box for box, _ in placed.values()),
        wires=tuple(_wire(link, placed, lane) for link in links),
    )
