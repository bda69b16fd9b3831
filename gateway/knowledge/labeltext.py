"""The shape of an ingredient list: pasted text in, items with spans, nesting and percentages out.

Nothing here knows an ingredient. The scanner walks the text once with its own stack, so a
label nested 100,000 deep costs what its length costs. It knows the separators of real labels
(commas that are decimals or broken thousands are none), round, square and curly brackets,
missing and surplus ones, colon groups, lists for two bag sizes, one ingredient a line, and
where a list ends (analysis, additives, feeding). Never drops a character silently: what lies
outside the lists is simply no item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.knowledge.tables import phrases
from gateway.ontology.ingredients import fold_words

__all__ = ["Item", "LabelText", "find_phrase", "scan_label"]

_OPEN = "([{\uff08"
_CLOSE = ")]}\uff09"
_SEPARATORS = ",;\u2022\u00b7|*\uff0c\u3001"
_PERCENT = re.compile(r"(\d{1,3}(?:[.,]\d{1,3})?)\s{0,2}[%\u066a\uff05]")
_THOUSANDS = re.compile(r"\s{0,2}\d{3}(?!\d)\s{0,2}(?:mg|g|kg|iu|ie|ui|i\.u\.|\u00b5g|mcg|kcal|cfu)", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S{1,200}|\b[\w-]{1,64}\.(?:com|org|net|eu|de|co\.uk)\b|\b[\w.-]{1,64}@[\w.-]{1,64}"
)
_HEADING_TAIL = re.compile(r"[^,;.:()\[\]\n]{0,40}(?:[(\[][^()\[\]\n]{0,60}[)\]])?[^,;.:()\[\]\n]{0,20}(?P<mark>[:\n])")
_END_TAIL = re.compile(r"\s{0,3}(?:[(\[][^()\[\]\n]{0,60}[)\]])?\s{0,3}(?:/\s?kg|per kg)?\s{0,3}[:\n]")
# No entry is longer than this; beyond it, prose is cut at a space so that work stays linear.
_LONGEST_ENTRY = 400
# A longer bracket lists ingredients; looking at each once more would cost depth x length.
_MOST_QUALIFIERS = 4
# A full stop after these ends no sentence.
_ABBREVIATIONS = frozenset(
    {
        "incl",
        "min",
        "mind",
        "max",
        "approx",
        "ca",
        "ssp",
        "var",
        "spp",
        "sp",
        "eg",
        "e",
        "g",
        "i",
        "u",
        "a",
        "inkl",
        "no",
        "nr",
    }
)


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a list. ``segments`` are the spans of its own text, outside its brackets.

    ``parent`` is the index of the item it stands under; ``closed`` holds when its bracket or
    colon group ends where it should; ``percent`` is the number as printed.
    """

    segments: tuple[tuple[int, int], ...]
    parent: int | None
    in_list: int
    sentence: int
    opens_sentence: bool
    percent: float | None
    closed: bool

    @property
    def start(self) -> int:
        return self.segments[0][0]

    @property
    def end(self) -> int:
        return self.segments[-1][1]


@dataclass(frozen=True, slots=True)
class LabelText:
    """A label taken apart. ``titles`` names each list (empty where the label does not)."""

    text: str
    items: tuple[Item, ...]
    titles: tuple[str, ...]

    def own(self, item: Item) -> str:
        """The item's own words, its segments joined by one space."""
        return " ".join(self.text[start:end] for start, end in item.segments)

    def original(self, item: Item, start: int, end: int) -> tuple[int, int]:
        """The span in the label of a span of ``own(item)``."""
        return self._place(item, start), self._place(item, end - 1) + 1

    def _place(self, item: Item, position: int) -> int:
        for begin, stop in item.segments:
            if position <= stop - begin:
                return begin + position
            position -= stop - begin + 1
        return item.end - 1


def scan_label(text: str) -> LabelText:
    """Take a pasted label apart. Linear in its length; never raises on any text."""
    spans = _lists(text)
    builder = _Builder(text)
    for number, (_, start, end) in enumerate(spans):
        builder.scan(number, start, end)
    return LabelText(text, builder.finished(), tuple(title for title, _, _ in spans))


def find_phrase(words: Sequence[str], known: Mapping[str, tuple[tuple[str, ...], ...]]) -> list[tuple[int, int]]:
    """Where phrases stand among words: (first, past) index pairs, the longest at a place."""
    found: list[tuple[int, int]] = []
    past = 0
    for at, word in enumerate(words):
        if at < past:
            continue
        for phrase in known.get(word, ()):
            if tuple(words[at : at + len(phrase)]) == phrase:
                past = at + len(phrase)
                found.append((at, past))
                break
    return found


# --- lists and headings ---------------------------------------------------------------------


def _lists(text: str) -> tuple[tuple[str, int, int], ...]:
    """The lists of a label as (title, start, end). Without a heading, one list from the start."""
    marks = sorted(_headings(text))
    lists: list[tuple[str, int, int]] = []
    for index, (at, begins, after, title) in enumerate(marks):
        if begins:
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            lists.append((title, after, max(after, end)))
        elif not lists and index == 0:
            lists.append(("", 0, at))
    if not marks:
        return (("", 0, len(text)),)
    return tuple((title, start, end) for title, start, end in lists if text[start:end].strip())


def _headings(text: str) -> list[tuple[int, bool, int, str]]:
    """Every heading as (start, whether a list begins, where its content begins, title)."""
    words = list(fold_words(text))
    folded = [word for word, _, _ in words]
    found: list[tuple[int, bool, int, str]] = []
    for first, past in find_phrase(folded, phrases("labels.toml", "headings", "begin")):
        start, end = words[first][1], words[past - 1][2]
        tail = _HEADING_TAIL.match(text, end)
        if tail:
            found.append((start, True, tail.end(), text[end : tail.start("mark")].strip(" ()[]")))
        elif first == 0 and past < len(words):
            found.append((start, True, end, ""))
    for first, past in find_phrase(folded, phrases("labels.toml", "headings", "end")):
        start, end = words[first][1], words[past - 1][2]
        if _at_boundary(text, start) and _END_TAIL.match(text, end):
            found.append((start, False, end, ""))
    bare = phrases("labels.toml", "headings", "end_bare")
    # "Made in a kitchen that handles nuts" is a warning, "Made in Germany" the end.
    found.extend(
        (words[first][1], False, words[past - 1][2], "")
        for first, past in find_phrase(folded, bare)
        if folded[past : past + 1] not in (["a"], ["an"], ["our"])
    )
    return found


def _at_boundary(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start]
    stripped = before.rstrip(" \t*")
    return not stripped or stripped[-1] in ".\n;)]:%"


# --- the scanner ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An item being read."""

    parent: int | None
    in_list: int
    sentence: int
    opens_sentence: bool
    segments: list[tuple[int, int]] = field(default_factory=list)
    percent: float | None = None
    closed: bool = True
    length: int = 0


@dataclass(slots=True)
class _Level:
    """A level of the stack: the base, a bracket or a colon group."""

    kind: str
    parent: int | None
    current: int | None = None
    born: int = 0


class _Builder:
    """One pass over one list after another; items keep their order of appearance."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._items: list[_Open] = []
        self._levels: list[_Level] = [_Level("", None)]
        self._segment: int | None = None
        self._list = 0
        self._sentence = 0
        self._fresh = True

    def scan(self, number: int, start: int, end: int) -> None:
        """Read one list; brackets left open at its end are marked on their items."""
        text = self._text
        self._restart(number)
        addresses = {m.start(): m.end() for m in _ADDRESS.finditer(text, start, end)}
        by_line = not any(c in ",;" for c in text[start:end]) and text.count("\n", start, end) >= 2
        at = start
        while at < end:
            character = text[at]
            if at in addresses:
                self._separate(at)
                at = addresses[at]
                continue
            if character in _OPEN:
                self._open(at)
            elif character in _CLOSE:
                self._close(at)
            elif character == ":" and not text[at - 1 : at].isdigit():
                self._colon(at)
            elif character in _SEPARATORS:
                if not self._is_number_comma(at):
                    self._separate(at, group_ends=character == ";", sentence=character == ";")
            elif character == "." and self._ends_sentence(at, end):
                self._separate(at, group_ends=True, sentence=True)
            elif character == "\n" and (by_line or text[at + 1 : at + 2] == "\n"):
                self._separate(at)
            elif self._segment is None and not character.isspace():
                self._begin(at)
            elif self._segment is not None and at - self._segment > _LONGEST_ENTRY and character.isspace():
                self._separate(at)
            at += 1
        self._flush(end)
        for level in self._levels:
            if level.kind == "(" and level.parent is not None:
                self._items[level.parent].closed = False

    def finished(self) -> tuple[Item, ...]:
        """Items with text, frozen; parents point at the kept ones."""
        kept: dict[int, int] = {}
        items: list[Item] = []
        for index, item in enumerate(self._items):
            if not item.segments:
                continue
            parent = item.parent
            while parent is not None and parent not in kept:
                parent = self._items[parent].parent
            kept[index] = len(items)
            items.append(
                Item(
                    tuple(item.segments),
                    None if parent is None else kept[parent],
                    item.in_list,
                    item.sentence,
                    item.opens_sentence,
                    item.percent,
                    item.closed,
                )
            )
        return tuple(items)

    def _restart(self, number: int) -> None:
        self._list, self._levels, self._segment = number, [_Level("", None)], None
        self._sentence += 1
        self._fresh = True

    def _begin(self, at: int) -> None:
        level = self._levels[-1]
        if level.current is None or self._items[level.current].length > _LONGEST_ENTRY:
            level.current = len(self._items)
            self._items.append(_Open(level.parent, self._list, self._sentence, self._fresh))
            self._fresh = False
        self._segment = at

    def _flush(self, at: int) -> None:
        """End the running segment: trim it, read its percentage."""
        if self._segment is None:
            return
        level = self._levels[-1]
        start, end = self._segment, at
        while end > start and (self._text[end - 1].isspace() or self._text[end - 1] in "-\u2013."):
            end -= 1
        self._segment = None
        if level.current is None or end == start:
            return
        item = self._items[level.current]
        item.segments.append((start, end))
        item.length += end - start
        percent = _PERCENT.search(self._text, start, end)
        if percent and item.percent is None:
            item.percent = float(percent[1].replace(",", "."))

    def _separate(self, at: int, *, group_ends: bool = False, sentence: bool = False) -> None:
        self._flush(at)
        if group_ends and self._levels[-1].kind == ":":
            self._levels.pop()
        self._levels[-1].current = None
        if sentence:
            self._sentence += 1
            self._fresh = True

    def _open(self, at: int) -> None:
        self._flush(at)
        level = self._levels[-1]
        parent = level.parent if level.current is None else level.current
        self._levels.append(_Level("(", parent, born=len(self._items)))

    def _close(self, at: int) -> None:
        self._flush(at)
        if not any(level.kind == "(" for level in self._levels[-2:]):
            return
        while self._levels[-1].kind == ":":
            self._levels.pop()
        closed = self._levels.pop()
        if closed.parent is not None:
            self._take_qualifier(closed.parent, closed.born)

    def _take_qualifier(self, parent: int, born: int) -> None:
        """Entries of qualifiers and a percentage, alone in a bracket, speak about its parent."""
        if len(self._items) - born > _MOST_QUALIFIERS:
            return
        known = phrases("labels.toml", "qualifiers", "words")
        for item in self._items[born:]:
            words = [w for start, end in item.segments for w, _, _ in fold_words(self._text[start:end])]
            if item.parent != parent or item.percent is None or any(w not in known for w in words):
                continue
            if self._items[parent].percent is None:
                self._items[parent].percent = item.percent
            item.segments.clear()

    def _colon(self, at: int) -> None:
        """What stands before a colon heads the entries after it, up to ; or . or the next colon."""
        self._flush(at)
        level = self._levels[-1]
        if level.current is None or not self._items[level.current].segments:
            return
        head = level.current
        level.current = None
        if level.kind == ":":
            self._levels.pop()
            self._items[head].parent = self._levels[-1].parent
        self._levels[-1].current = head
        self._levels.append(_Level(":", head, born=len(self._items)))

    def _is_number_comma(self, at: int) -> bool:
        """``12,5 %`` and ``2, 000mg``: a comma inside a number."""
        text = self._text
        if text[at] != "," or not text[at - 1 : at].isdigit():
            return False
        return text[at + 1 : at + 2].isdigit() or bool(_THOUSANDS.match(text, at + 1))

    def _ends_sentence(self, at: int, end: int) -> bool:
        text = self._text
        if text[at + 1 : at + 2].isdigit() and text[at - 1 : at].isdigit():
            return False
        if at + 1 < end and not text[at + 1].isspace():
            return False
        begin = at
        while begin > 0 and at - begin < 8 and text[begin - 1].isalpha():
            begin -= 1
        return text[begin:at].casefold() not in _ABBREVIATIONS
