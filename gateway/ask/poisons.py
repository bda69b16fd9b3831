"""Which poisons a sentence really means: a poison's word may be a name, a colour or an address.

In: a ``Linked`` question and the word lists ``not_the_thing`` of the safety tables. Out: the
poisons that are meant. "Our cat is called Lily", "Grape Street", "a chocolate labrador", "I
took my tablets" mean none; "found my sock and swallowed it" means one. In doubt it is meant.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.ask.linking import Linked
from gateway.ontology.hazards import Hazards

__all__ = ["is_the_askers", "poisons_meant"]

_BEFORE = 6
"""Words before "called" in which the one who is called so stands."""

_ASKER_WITHIN = 5
"""Words from "I took" to what was taken."""

_GONE_WITHIN = 6
"""Words from a thing to "is gone"."""

_MARKS = frozenset(".?!;:,\n()")

Words = Mapping[str, frozenset[str]]
Span = tuple[int, int]


def poisons_meant(linked: Linked, hazards: Hazards) -> tuple[str, ...]:
    """Ids of the poisons and people's medicines a sentence means, sorted, once each."""
    words = hazards.words["not_the_thing"]
    named = {(first, last, target) for first, last, target in linked.toxins}
    meant = {target for first, last, target in named if not _is_other(linked, (first, last), target, hazards)}
    taken = _taken_up(linked, words)
    gone = _gone_and_guilty(linked, words)
    for match in hazards.substances_in(linked.text, linked.tokens) if taken is not None or gone else ():
        for reading in match.readings:
            context = hazards.toxins[reading.target].context
            own = any(a <= match.first < b for a, b in linked.spans if _is_own(linked, a))
            eaten = taken is not None and match.last <= taken and context in {"contact", "swallow"}
            missing = gone and context != "statement" and _is_gone(linked, match.last, words)
            if (eaten or missing) and not own:
                meant.add(reading.target)
    return tuple(sorted(meant))


def _is_own(linked: Linked, first: int) -> bool:
    kinds = {"pet", "own_food", "own_med", "place", "device", "person"}
    return any(
        span[0] == first and mention.kind in kinds for span, mention in zip(linked.spans, linked.mentions, strict=True)
    )


# --- what is no substance --------------------------------------------------------------------


def _is_other(linked: Linked, span: Span, target: str, hazards: Hazards) -> bool:
    """Whether a poison's word is a name, an address, a colour, a coat, the asker's own, or a toy's filling."""
    words = hazards.words["not_the_thing"]
    first, last = span
    if _is_name(linked, first, last, words):
        return True
    if is_the_askers(linked, span, hazards) or _is_the_pets(linked, span, words):
        return True
    if target in _DRINKS and _wished_for(linked, first, words):
        return True
    if _in_mouth_before(linked, first):
        return False
    after, lead = linked.word(last), linked.word(first - 1)
    if after in words["addresses"] or after in words["colours"]:
        return not linked.starts("ahead", within=3) or not linked.has("eat_ask")
    if lead == "of" and linked.word(first - 2) in words["of_colour"]:
        return True
    if after in words["coats"] and target in {"tox:chocolate", "tox:caffeine"}:
        return True
    filling = "stuffing" in {linked.word(i) for i in range(first, last)}
    return filling and any(token.text in words["stuffed"] for token in linked.tokens)


_DRINKS = frozenset({"tox:caffeine", "tox:alcohol"})


def _wished_for(linked: Linked, first: int, words: Words) -> bool:
    """Whether the asker makes or wants a drink: "I could murder a coffee"; not where a pet had any."""
    reach = range(max(0, first - _ASKER_WITHIN), first)
    verbs = [i for i in reach if linked.word(i) in words["fancies"]]
    asker = verbs and {linked.word(i) for i in range(max(0, verbs[0] - 2), verbs[0])} & words["askers"]
    return bool(asker) and not linked.has("swallow", "contact") and not linked.starts("ahead", within=1)


def _is_the_pets(linked: Linked, span: Span, words: Words) -> bool:
    """Whether it is a kind of medicine that pets have too, and its own: "did he get his painkillers"."""
    first, last = span
    said = " ".join(linked.word(index) for index in range(first, last))
    own = linked.word(first - 1) in words["possessive"]
    own = own or any(b == first and m.kind == "pet" for (_, b), m in zip(linked.spans, linked.mentions, strict=True))
    return said in words["class_meds"] and own and not linked.has("contact_unknown")


def is_the_askers(linked: Linked, span: Span, hazards: Hazards) -> bool:
    """Whether the asker took it ("I took my tablets and fed Max"), or reads on it ("on my tablet")."""
    words = hazards.words["not_the_thing"]
    return _taken_by_the_asker(linked, span[0], words) or _on_a_screen(linked, span, words)


def _in_mouth_before(linked: Linked, first: int) -> bool:
    """Whether something was eaten or licked earlier in the clause: then it may be this."""
    ends = [end for name in ("swallow", "contact_unknown") for _, end in linked.cues.get(name, ()) if end <= first]
    return any(not any(linked.word(i) in _MARKS for i in range(end, first)) for end in ends)


def _is_name(linked: Linked, first: int, last: int, words: Words) -> bool:
    """Whether it is what somebody, or a place, is called."""
    lead = linked.word(first - 1)
    before = [linked.word(i).removesuffix("'s") for i in range(max(0, first - 1 - _BEFORE), first)]
    if lead in words["called"] or (lead in {"is", "to", "as", "name"} and set(before) & {"name", "rename", "renamed"}):
        beings = any(word in words["beings"] or word in {"name", "rename", "renamed"} for word in before)
        live = _animals_in(linked, max(0, first - 1 - _BEFORE), first)
        return (beings or live) and not any(word in words["substances"] for word in before)
    if not _is_capital(linked, first):
        return False
    social = any(token.text in words["social"] for token in linked.tokens[:first])
    met = lead in words["meets"] or lead == "," or _is_capital(linked, first - 1)
    known = lead in words["kin"] or (social and met) or linked.word(last) in words["does"]
    return known and not _in_mouth_before(linked, first)


def _animals_in(linked: Linked, first: int, last: int) -> bool:
    kinds = {"pet", "species", "species_plural", "breed", "person", "place"}
    return any(
        first <= span[0] < last and mention.kind in kinds
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
    )


def _is_capital(linked: Linked, index: int) -> bool:
    """Whether a word is written as a name: a capital within a sentence that is not all capitals, nor German."""
    if index <= 0 or linked.language.id == "de" or linked.word(index - 1) in _MARKS - {","}:
        return False
    start = linked.tokens[index].start
    return linked.text[start].isupper() and not linked.text.isupper()


def _taken_by_the_asker(linked: Linked, first: int, words: Words) -> bool:
    """Whether the asker took it: "I took my tablets and fed Max"; not where it lay about, or a pet had any."""
    reach = range(max(0, first - _ASKER_WITHIN), first)
    verbs = [i for i in reach if linked.word(i) in words["consumes"]]
    if not verbs or not {linked.word(i) for i in range(max(0, verbs[0] - 2), verbs[0])} & words["askers"]:
        return False
    if any(token.text in words["on_the_loose"] for token in linked.tokens):
        return False
    own = set(range(max(0, verbs[0] - 1), first + 1))
    others = (span for cue in ("swallow", "contact") for span in linked.cues.get(cue, ()))
    return all(own & set(range(*span)) for span in others)


def _on_a_screen(linked: Linked, span: Span, words: Words) -> bool:
    """Whether "my tablet" is one to read on."""
    first, last = span
    if linked.word(last - 1) not in {"tablet", "tablets"}:
        return False
    if _in_mouth_before(linked, first) or linked.has("swallow", "already"):
        return False
    reach = {linked.word(index) for index in range(first - 1, last - 1)}
    led = bool(reach & (words["screen_kinds"] | {"on", "auf", "en"})) or linked.word(last) in words["fails"]
    return led and any(token.text in words["screens"] for token in linked.tokens)


# --- what is meant though it stands elsewhere --------------------------------------------------


def _taken_up(linked: Linked, words: Words) -> int | None:
    """The place of a verb of eating whose object stands before it: "found a sock and swallowed it", "was eaten by"."""
    for first, last in linked.cues.get("swallow", ()):
        if first and linked.word(last) in words["taken_up"] | words["eaten_by"]:
            return first
    return None


def _gone_and_guilty(linked: Linked, words: Words) -> bool:
    said = {token.text for token in linked.tokens}
    return bool(said & words["guilt"]) and bool(said & words["gone"])


def _is_gone(linked: Linked, last: int, words: Words) -> bool:
    return any(linked.word(i) in words["gone"] for i in range(last, last + _GONE_WITHIN))
