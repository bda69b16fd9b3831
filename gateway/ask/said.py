"""Words of an answer that can be said in another language: English text that knows what it was made of.

In: an English template with its typed parts. Out: `Said`, a str in English, which `worded` says in another
language from that language's table. A template the table lacks has no wording there, and nobody
guesses one: whoever shows the answer then shows all of it in English. Nothing is translated from text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter
from typing import Self

from gateway.model import Device, Pet
from gateway.ontology.vocabulary import DeviceKind, Property
from gateway.ontology.wordings import Wordings

__all__ = [
    "Part",
    "Said",
    "being",
    "elsewhere",
    "is_or_are",
    "known",
    "own_words",
    "said",
    "say",
    "verbatim",
    "within",
    "worded",
]

Part = str | int | Pet | Property | DeviceKind | Device
"""What may stand in a template's place: words, a count, or a thing that has words of its own."""

_FORMATTER = Formatter()


class Said(str):
    """English words, and how they are said in another language."""

    __slots__ = ("_render",)
    _render: Callable[[Wordings], str]

    def __new__(cls, english: str, render: Callable[[Wordings], str]) -> Self:
        made = super().__new__(cls, english)
        made._render = render
        return made

    def in_words_of(self, table: Wordings) -> str:
        """The same in the table's language.

        Raises
        ------
        Unworded
            The table lacks a line of it.
        """
        return self._render(table)


def say(template: str, /, **parts: Part) -> Said:
    """A sentence, or a piece of one, by its English template.

    Parameters
    ----------
    template : str
        With places as ``{name}`` or ``{name.form}``: a pet's ``his`` and ``he``, a measured series' ``is``; in
        another language whatever forms its table gives. ``!u`` raises the place's first letter.
    parts : Part
        By name. A plain str is a line of its own; what nobody may translate is `verbatim`.
    """
    return Said(_filled(template, parts, None), lambda table: _filled(table.line(template), parts, table))


def verbatim(text: str) -> Said:
    """Names, quotes, codes and clock times: the same in every language."""
    return Said(text, lambda _: text)


def said(line: str) -> Said:
    """A whole line by its English text, where it is no template in the code but comes from a table of it."""
    return Said(line, lambda table: table.line(line))


def known(text: str) -> Said:
    """A word of the vocabulary or, where the table has none, the text as somebody entered it (a breed)."""
    return Said(text, lambda table: table.lines.get(text, text))


def own_words(text: str) -> Said:
    """What somebody wrote down, inside a sentence: a vocabulary word in the language, else in quotation marks."""
    quoted = say('"{text}"', text=verbatim(text))
    return Said(text, lambda table: table.lines.get(text) or table.lines.get(text.lower()) or worded(quoted, table))


def elsewhere(english: str, other: Said) -> Said:
    """English as it was stored, in other languages what ``other`` says: a notice keeps the words it was raised with."""
    return Said(english, lambda table: worded(other, table))


def within(words: int, long: str, short: str) -> Said:
    """The long sentence where it has at most so many words, else the short one; judged in each language."""
    english = long if len(long.split()) <= words else short

    def render(table: Wordings) -> str:
        told = worded(long, table)
        return told if len(told.split()) <= words else worded(short, table)

    return Said(english, render)


def worded(text: str, table: Wordings | None) -> str:
    """A text in the table's language, or in English where there is no table.

    Raises
    ------
    Unworded
        The table lacks a line of it.
    """
    if table is None:
        return str(text)
    if isinstance(text, Said):
        return text.in_words_of(table)
    return table.line(text) if text else ""


def _filled(template: str, parts: dict[str, Part], table: Wordings | None) -> str:
    made = []
    for literal, place, _, conversion in _FORMATTER.parse(template):
        made.append(literal)
        if place is not None:
            name, _, form = place.partition(".")
            text = _form(parts[name], form, table)
            made.append(f"{text[:1].upper()}{text[1:]}" if conversion == "u" else text)
    return "".join(made)


def _form(part: Part, form: str, table: Wordings | None) -> str:
    if isinstance(part, Pet):
        return _pet(part, form, table)
    if isinstance(part, Property):
        return _property(part, form) if table is None else table.form("series", part.id, form or "name")
    if isinstance(part, DeviceKind):
        return _device(part, form) if table is None else table.form("device", part.id, form or "plain")
    if isinstance(part, Device):
        return part.name
    return worded(part, table) if isinstance(part, str) else str(part)


def _property(observed: Property, form: str) -> str:
    return {
        "": observed.owner,
        "is": being(observed.owner),
        "word": (observed.words or (observed.owner,))[0],
        "from": observed.of_device,
    }[form]


def _device(kind: DeviceKind, form: str) -> str:
    return {"": kind.plain, "a": kind.word, "cite": kind.cite}[form]


def _pet(pet: Pet, form: str, table: Wordings | None) -> str:
    """A pet's name, or its pronoun by the sex on file: "his", "ihr", "Max's" where none is."""
    if not form:
        return pet.name
    if table is None:
        return {"his": _his, "he": _he}[form](pet)
    sex = {"male": "male", "m": "male", "female": "female", "f": "female"}.get(pet.sex or "", "unknown")
    return table.form("pet", sex, form).replace("{name}", pet.name)


# --- English grammar ----------------------------------------------------------------------------------


def _his(pet: Pet) -> str:
    """Say "his" or "her" where the sex is on file, else "Max's"."""
    if pet.sex in ("male", "m"):
        return "his"
    if pet.sex in ("female", "f"):
        return "her"
    return f"{pet.name}'s" if not pet.name.endswith("s") else f"{pet.name}'"


def _he(pet: Pet) -> str:
    return {"male": "he", "m": "he", "female": "she", "f": "she"}.get(pet.sex or "", pet.name)


def is_or_are(names: Sequence[str]) -> str:
    """The verb behind these names: "rest is", "meals are", "breaths a minute asleep are"."""
    if len(names) != 1:
        return "are"
    words = names[0].split()
    return "are" if any(word.endswith("s") and not word.endswith("ss") for word in (words[0], words[-1])) else "is"


def being(name: str) -> str:
    """The name with its verb: "rest is", "meals are"."""
    return f"{name} {is_or_are([name])}"
