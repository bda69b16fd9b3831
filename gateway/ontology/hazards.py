"""Toxins, emergency signs, medicines for people, poison lines: the safety tables' types.

In: ``safety.toml`` through ``gateway.ontology.load``. Out: frozen values and two lexicons.
Says nothing of doses, and judges nothing: a question reader asks what is named in a text.
Until a vet has signed the tables, ``reviewed_by`` says so and every answer repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.ontology.figures import said_of_no_animal
from gateway.ontology.heat import BodyHeat
from gateway.ontology.recognise import Match, Recogniser, Token

__all__ = ["EmergencySign", "Hazards", "Pattern", "PoisonLine", "SignHit", "Toxin"]

MEASURED_HEAT = "sign:temperature"
"""The sign of a body temperature that is said as a number."""


@dataclass(frozen=True, slots=True)
class Toxin:
    """A thing listed as poisonous or dangerous to swallow.

    ``id`` is the frame's subject (``tox:grape``, ``med:ibuprofen``); ``species`` are those it
    is listed for; ``context`` is "any", "contact" (the word is ordinary unless eaten or
    touched), "swallow" (only when swallowed or chewed) or "statement" (not in "is X toxic?").
    """

    id: str
    name: str
    species: tuple[str, ...]
    context: str
    skin: bool
    medicine: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """Groups of alternatives that must all stand within ``within`` words of each other."""

    sign: str
    language: str
    groups: tuple[int, ...]
    within: int
    species: str | None


@dataclass(frozen=True, slots=True)
class EmergencySign:
    """A red or amber sign. ``word`` begins "{word} can be an emergency".

    ``told`` signs are words that alarm where somebody tells them, and are ordinary in a question.
    """

    id: str
    word: str
    urgency: str
    first_aid: str | None
    told: bool = False


@dataclass(frozen=True, slots=True)
class SignHit:
    """A sign found in a text, and the token indices that said so."""

    sign: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PoisonLine:
    """A poison line as published at ``date``; ``charge`` = it may charge a fee."""

    country: str
    name: str
    short: str
    phone: str
    charge: bool
    date: str
    note: str


@dataclass(frozen=True, slots=True)
class Hazards:
    """The safety tables of one release.

    ``substances`` finds readings of kind "tox" (targets are toxin ids); ``signals`` finds the
    alternatives of sign groups (target: group number) and exceptions (kind "never", target:
    sign id). ``patterns`` are keyed by their first group.
    ``near`` maps each word that could be misspelt to the language it belongs to. ``words`` are
    the lists of the structures (``said_of``: ``figures.py``; ``not_the_thing`` and ``whose``:
    read by the question reader), ``heat`` the limits of a body's temperature.
    """

    version: str
    date: str
    reviewed_by: str
    toxins: Mapping[str, Toxin]
    signs: Mapping[str, EmergencySign]
    patterns: Mapping[int, Pattern]
    substances: Recogniser
    signals: Recogniser
    lines: tuple[PoisonLine, ...]
    unlisted: tuple[str, ...]
    first_aid: Mapping[str, str]
    near: Mapping[str, frozenset[str]]
    words: Mapping[str, Mapping[str, frozenset[str]]]
    heat: BodyHeat

    def lines_for(self, country: str | None) -> tuple[PoisonLine, ...]:
        """The home country's lines; every line where the country is unknown or has none listed."""
        code = {"GB": "UK"}.get(country or "", country)
        mine = tuple(line for line in self.lines if line.country == code)
        return mine or self.lines

    def signs_in(self, text: str, tokens: Sequence[Token], *, hosts: frozenset[str]) -> tuple[SignHit, ...]:
        """Emergency signs whose pattern stands in the tokens, for any of the host species.

        Linear in the tokens times the number of pattern groups; every group's first
        occurrence near another's decides, none is weighed.
        """
        figurative = said_of_no_animal(text, tokens, self.words["said_of"])
        where: dict[int, list[tuple[int, int]]] = {}
        barred: dict[str, list[tuple[int, int]]] = {}
        for match in self.signals.every_in(text, _plain(tokens)):
            if not figurative.isdisjoint(range(match.first, match.last)):
                continue  # "the hub is not responding"
            for reading in match.readings:
                if reading.kind == "never":
                    barred.setdefault(reading.target, []).append((match.first, match.last))
                else:
                    where.setdefault(int(reading.target), []).append((match.first, match.last))
        found: dict[str, SignHit] = {}
        for first_group in sorted(where):
            pattern = self.patterns.get(first_group)
            if (
                pattern is None
                or pattern.sign in found
                or (pattern.species is not None and pattern.species not in hosts)
            ):
                continue
            spans = _within(pattern, where, barred.get(pattern.sign, ()))
            if spans is not None:
                found[pattern.sign] = SignHit(pattern.sign, tuple(sorted({i for a, b in spans for i in range(a, b)})))
        measured = self.heat.alarming(tokens)
        if measured is not None:
            found[MEASURED_HEAT] = SignHit(MEASURED_HEAT, tuple(sorted(measured)))
        return tuple(found[sign] for sign in sorted(found))

    def substances_in(self, text: str, tokens: Sequence[Token]) -> tuple[Match, ...]:
        """Toxins, carriers and medicines for people named in the tokens, longest first."""
        return self.substances.find_in(text, _plain(tokens))


def _plain(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Tokens without apostrophes: people in a hurry leave them out ("cant breathe")."""
    return tuple(
        Token(token.text.replace("'", ""), token.start, token.end) if "'" in token.text else token for token in tokens
    )


def _within(
    pattern: Pattern, where: Mapping[int, Sequence[tuple[int, int]]], barred: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...] | None:
    """Spans, one a group, that lie close together and not inside an exception; None if none."""
    lists = []
    for group in pattern.groups:
        spans = [s for s in where.get(group, ()) if not any(a <= s[0] and s[1] <= b for a, b in barred)]
        if not spans:
            return None
        lists.append(spans)
    for anchor in lists[0]:
        chosen = [anchor]
        for spans in lists[1:]:
            near = next((s for s in spans if _gap(anchor, s) <= pattern.within and s != anchor), None)
            if near is None:
                break
            chosen.append(near)
        else:
            return tuple(chosen)
    return None


def _gap(one: tuple[int, int], other: tuple[int, int]) -> int:
    """Words between two spans; 0 where they touch or overlap."""
    return max(other[0] - one[1], one[0] - other[1], 0)
