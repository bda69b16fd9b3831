"""Where the records disagree: both sides word for word, and no yes or no.

Two ways a thing can be disputed: evidence for and against one and the same link (Dempster's
K above one half), and a note that says so beside one that says the opposite. Nothing here
weighs one writer against another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.said import known, say, verbatim
from gateway.ask.sources import cite, class_of, quoted
from gateway.dialogue import NoticeKind
from gateway.graph.belief import DISAGREEMENT

if TYPE_CHECKING:
    from gateway.ask.answer import Draft
    from gateway.ask.scene import Scene
    from gateway.model import Evidence, Link

__all__ = ["Sides", "say_disagreements", "say_sides", "sides_of"]

_FOR = frozenset({"diagnosed_with"})
_AGAINST = frozenset({"tolerates", "ruled_out"})


@dataclass(frozen=True, slots=True)
class Sides:
    """What is on file for and against one thing, oldest first."""

    against: tuple[Evidence, ...]
    supporting: tuple[Evidence, ...]

    @property
    def disputed(self) -> bool:
        return bool(self.against) and bool(self.supporting)


def sides_of(scene: Scene, pet: str, things: frozenset[str]) -> Sides:
    """Notes that say the pet has it, or reacts to it, and notes that say it does not.

    ``things`` are vertex names: a condition, the species of a food.
    """
    supporting: list[Evidence] = []
    against: list[Evidence] = []
    for link in scene.links_of(pet):
        edge = link.edge
        if edge.head.name not in things or link.marked_wrong:
            continue
        for piece in link.evidence:
            if piece.record.kind not in ("note", "log"):
                continue
            says_so = edge.relation in _FOR
            if piece.mass.true > 0.0 and (says_so or edge.relation in _AGAINST):
                (supporting if says_so else against).append(piece)
    return Sides(_dated(scene, against), _dated(scene, supporting))


def _dated(scene: Scene, pieces: list[Evidence]) -> tuple[Evidence, ...]:
    def when(piece: Evidence) -> tuple[int, str]:
        record = scene.reader.text_record(piece.record)
        return (0 if record is None else record.at_ms or 0, piece.record.text)

    return tuple(sorted({(piece.record, piece.span): piece for piece in pieces}.values(), key=when))


def say_sides(scene: Scene, draft: Draft, sides: Sides, *, about: tuple[str, ...]) -> None:
    """Both sides, each quoted from its own record."""
    for opening, pieces in (("For", sides.supporting), ("Against", sides.against)):
        for piece in pieces:
            draft.claim(
                "note_for" if opening == "For" else "note_against",
                class_of(piece.record),
                say('{opening}: "{text}"', opening=opening, text=quoted(scene, piece)),
                cite=cite(scene, piece.record),
                refs=(piece.record,),
                about=about,
            )


def say_disagreements(scene: Scene, draft: Draft, used: tuple[Link, ...]) -> None:
    """For each link an answer stands on whose evidence is in conflict: say so, and quote what speaks against it."""
    for link in used:
        if link.conflict <= DISAGREEMENT:
            continue
        names = scene.reader.vertex_labels()
        tail, head = (known(names.get(v.name, v.name.partition(":")[2])) for v in (link.edge.tail, link.edge.head))
        text = say("Your records disagree about {one} and {other}", one=tail, other=head)
        draft.say(NoticeKind.CAUTION, text, slot="disagreement")
        for piece in link.evidence:
            words = quoted(scene, piece)
            if not words or piece.mass.false <= piece.mass.true:
                continue  # what speaks for it stands in the chain already
            draft.claim(
                "note_against",
                class_of(piece.record),
                say('{opening}: "{text}"', opening="Against", text=verbatim(words)),
                cite=cite(scene, piece.record),
                refs=(piece.record,),
                about=(link.edge.tail.name, link.edge.head.name),
            )
