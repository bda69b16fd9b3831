"""Which sentence asks, where several were said ("My son fed them on Saturday. How much did Bella eat?").

In: a ``Linked`` text. Out: the same text with only that sentence's cues, measured words and
directions, so that what was told before or after decides nothing; names and things of the
whole text stay. Danger is looked for in all of it, elsewhere. Never drops a word of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gateway.ask.linking import Linked, opening

__all__ = ["asking_sentence", "is_told", "is_yes_no", "without_the_asker"]

_ENDS = frozenset(".?!;\n")
_PARTS = frozenset({",", ":", "-", "\N{EN DASH}", "\N{EM DASH}"})
"""Marks that part two clauses only where the second one asks."""
_WH = ("why", "how_much", "when", "who", "which", "since_when", "how_long", "any_pet", "can")
_CONTENT = frozenset({"own_food", "own_med", "med", "ing", "food", "device", "cond", "topic", "body", "src", "place"})
_SAYS_ENOUGH = ("overview", "need_vet", "tell_vet", "notice", "switch_back", "before", "device_any", "correction")
"""Cue classes that are a question of their own, with nothing measured and nothing named."""


_NOT_MEASURED = ("overview", "tell_vet", "notice", "device_any")
"""Of those, what asks about no one measurement told before it."""


_VAGUE = frozenset({"NOW", "RECENT", "NEXT"})
"""Windows that mean something only in the sentence that asks."""


def asking_sentence(linked: Linked) -> Linked | None:
    """The text narrowed to the last sentence that asks and has something to ask about.

    None where one sentence stands alone, where none asks, or where the one that asks says
    nothing by itself ("... Why?"): then the whole text is the question.
    """
    sentences = tuple(_sentences(linked))
    if len(sentences) < 2:
        return None
    for first, last in reversed(sentences):
        if first != sentences[0][0] and _hands_on(linked, first, last):
            continue
        starts_at = opening(linked.tokens, linked.cues, first, last)
        if _asks(linked, first, last, starts_at):
            return _narrowed(linked, first, last, starts_at) if _has_content(linked, first, last) else None
    return None


def is_yes_no(linked: Linked) -> bool:
    """Whether the sentence opens with a verb, or is a question with no question word."""
    asks_which = linked.starts("why", "how_much", "when", "who", "which", "since_when", within=4)
    if linked.has("yes_or_no") and not asks_which and linked.word(linked.opens_at) not in linked.language.words["what"]:
        return True
    rest = linked.tokens[linked.opens_at : linked.asked[1]]
    if rest and any(first == linked.opens_at for first, _ in linked.cues.get("whether", ())) and linked.opens_at:
        return True
    words = [token.text for token in rest if token.text[0].isalpha()]
    if words and words[-1] in linked.language.words["what"]:  # "he weighs what?"
        return False
    while words and words[0] in linked.language.words["openers"]:
        words = words[1:]
    if words and words[0] in linked.language.words["aux"]:
        return True
    if words and words[0] in linked.language.words["what"]:
        return False
    return any(token.text == "?" for token in rest) and not asks_which


def is_told(linked: Linked, at: int) -> bool:
    """Whether the sentence that holds token ``at`` tells something, and neither asks nor bids.

    "Luna is wobbling, what do I do?" tells: it does not open as a question. Where one only ends
    as a question ("Max's wound healed?"), it tells if what is to be done is asked.
    """
    words = linked.language.words
    for first, last in _sentences(linked):
        if not first <= at < last:
            continue
        starts_at = opening(linked.tokens, linked.cues, first, last)
        ends_asking = linked.word(last - 1) == "?"
        if linked.word(starts_at) in words["bids"] or linked.word(starts_at) in words["what"]:
            return False
        if _opens(linked, starts_at) and (linked.language.id != "es" or ends_asking):
            return False
        return not ends_asking or linked.has("already", "need_vet")
    return False


def _sentences(linked: Linked) -> Iterator[tuple[int, int]]:
    """Token ranges between sentence marks, the closing mark included; a mark within a date parts nothing.

    A comma, colon or dash parts what was told from what is asked: "she feels lighter, has she lost weight?".
    """
    dated = {i for span in linked.times for i in range(span.first, span.last)}
    first = 0
    for index, token in enumerate(linked.tokens):
        marked = token.text in _PARTS or _joins_a_question(linked, first, index)
        parts = marked and index not in dated and _tells_and_asks(linked, first, index)
        if parts or (token.text in _ENDS and index not in dated):
            if any(linked.tokens[i].text[0].isalnum() for i in range(first, index)):
                yield first, index + 1
            first = index + 1
    if any(linked.tokens[i].text[0].isalnum() for i in range(first, len(linked.tokens))):
        yield first, len(linked.tokens)


_CLAUSE = 3
"""Words that a clause before "so how much ..." has at least."""


def _joins_a_question(linked: Linked, first: int, index: int) -> bool:
    """Whether "so", "and" or "but" leads from what was told to a question word, without a comma."""
    if linked.word(index) not in linked.language.words["joiners"] or index - first < _CLAUSE:
        return False
    asks = ("why", "how_much", "when", "since_when", "how_long")
    ends = {b for cue in asks for a, b in linked.cues.get(cue, ()) if a == index + 1}
    verbs = linked.language.words["aux"]
    return any(linked.word(b) in verbs or linked.word(b) in _ENDS or linked.word(b - 1).endswith("'s") for b in ends)


def _tells_and_asks(linked: Linked, first: int, mark: int) -> bool:
    """Whether a clause ends at a mark, and after it a question opens that says what it is about.

    "When he gets Acme, does he itch?" is one question: its first clause is a condition of the second.
    """
    clause = next((i for i in range(first, mark) if linked.tokens[i].text[0].isalnum()), mark)
    condition = linked.word(clause) in linked.language.words["conditions"] and _names_something(linked, first, mark)
    dated = sum(
        first <= span.first and span.last <= mark and span.label not in _VAGUE | {"NIGHT"} for span in linked.times
    )
    if clause == mark or condition or dated > 1:  # "This week against last week: how much did he eat?"
        return False
    if _asks_something(linked, first, mark) and not _names_something(linked, first, mark):
        return False  # "From which date, precisely, has he been eating less?"
    if linked.word(mark + 1) in linked.language.words["tellers"] and _opens(
        linked, opening(linked.tokens, linked.cues, first, mark)
    ):
        return _names_something(linked, first, mark)  # "What does he weigh, my mum needs it for the vet"
    last = next((i for i in range(mark + 1, len(linked.tokens)) if linked.word(i) in _ENDS), len(linked.tokens))
    opens = opening(linked.tokens, linked.cues, mark + 1, last)
    while linked.word(opens) in linked.language.words["openers"]:  # "..., so what did Bella eat?"
        opens += 1
    if _goes_on(linked, first, mark, opens):
        return False
    led = opens > mark + 1  # ", you think that's from the prednisone?"
    whether = any(a == opens for a, _ in linked.cues.get("whether", ()))  # ", and I'm wondering if it is the food."
    asks = _opens(linked, opens) or (led and (whether or linked.word(last) == "?"))
    return asks and (led or not _relative(linked, opens)) and _has_content(linked, opens, last)


def _goes_on(linked: Linked, first: int, mark: int, opens: int) -> bool:
    """Whether what follows a mark belongs to the clause before it, as a German comma stands before each of them.

    "Ist Lachs in dem, was er frisst?", "Könnte Acme der Grund sein, warum er sich kratzt?"
    """
    words = linked.language.words
    if linked.word(opens) in words["what"] and linked.word(mark - 1) in words["relative_heads"]:
        return True
    starts_at = opening(linked.tokens, linked.cues, first, mark)
    blames = any(first <= a and b <= mark for name in _BLAMES for a, b in linked.cues.get(name, ()))
    reason = any(a == opens for a, _ in linked.cues.get("why", ()))
    asks = linked.word(starts_at) in words["aux"] or any(first <= a < mark for a, _ in linked.cues.get("whether", ()))
    return reason and blames and asks and linked.word(mark) == ","


_BLAMES = ("cause", "present_cause")


def _asks_something(linked: Linked, first: int, last: int) -> bool:
    cues = ("since_when", "when", "how_long", "how_much", "which")
    aside = {i for span in linked.cues.get("wrapper", ()) for i in range(*span)}  # "you tell me: ..."
    spans = (span for cue in cues for span in linked.cues.get(cue, ()) if not aside.issuperset(range(*span)))
    return any(first <= a and b <= last for a, b in spans)


def _relative(linked: Linked, index: int) -> bool:
    """Whether a "who", "which" or "when" goes on with the clause before it: no verb of a question follows."""
    ends = {
        name: [last for first, last in linked.cues.get(name, ()) if first == index] for name in ("who", "which", "when")
    }
    if max((*ends["who"], *ends["which"]), default=0) == index + 1:
        return True  # ", which is how it goes"
    end, aux = max((end for found in ends.values() for end in found), default=0), linked.language.words["aux"]
    return bool(end) and not any(linked.word(i) in aux for i in range(index, end + 2))


_AROUND = 3
"""Words beside "when was it" where nothing more is asked ("so when was it, please?")."""


def _hands_on(linked: Linked, first: int, last: int) -> bool:
    """Whether it is only "What do I tell her?", "When was it?", after somebody was said to ask something."""
    words = sum(linked.tokens[i].text[0].isalnum() for i in range(first, last))
    handed = any(first <= a and b <= last and words - (b - a) <= _AROUND for a, b in linked.cues.get("hand_on", ()))
    return handed and any(b <= first for _, b in linked.cues.get("asked_by", ()))


def _asks(linked: Linked, first: int, last: int, starts_at: int) -> bool:
    passed_on = any(first <= a and b <= last for a, b in linked.cues.get("asked_by", ()))
    whether = starts_at > first and any(a == starts_at for a, _ in linked.cues.get("whether", ()))
    return linked.word(last - 1) == "?" or passed_on or whether or _opens(linked, starts_at)


def _opens(linked: Linked, index: int) -> bool:
    """Whether a question begins at a token: with a verb, or with a question word."""
    if linked.word(index) in linked.language.words["what"]:
        return True
    if linked.word(index) in linked.language.words["aux"] and _verb_asks(linked, index):
        return True
    return any(first == index for cue in _WH for first, _ in linked.cues.get(cue, ()))


def _verb_asks(linked: Linked, index: int) -> bool:
    """Whether a verb in front asks: in Spanish it tells as well ("..., come más que nunca").

    There the mark decides, and where nothing is marked, whether a question word stood before.
    """
    if linked.language.id != "es":
        return True
    end = next((i for i in range(index, len(linked.tokens)) if linked.word(i) in _ENDS), -1)
    marked = any(token.text == "?" for token in linked.tokens)
    before = any(first < index for cue in _ASKS_FIRST for first, _ in linked.cues.get(cue, ()))
    return linked.word(end) == "?" if marked else not before


_ASKS_FIRST = ("why", "how_much", "when", "since_when", "how_long", "who")


def _names_something(linked: Linked, first: int, last: int) -> bool:
    """Whether something is measured or named between two tokens."""
    spans = [(hit.first, hit.last) for hit in linked.metrics]
    spans += [span for span, mention in zip(linked.spans, linked.mentions, strict=True) if mention.kind in _CONTENT]
    return any(first <= a and b <= last for a, b in spans)


def _has_content(linked: Linked, first: int, last: int) -> bool:
    def inside(span: tuple[int, int]) -> bool:
        return first <= span[0] and span[1] <= last

    if _names_something(linked, first, last):
        return True
    asks = ("why", "since_when", *(("when", "how_long", "how_much") if _points_back(linked, first, last) else ()))
    told = linked.metrics or linked.targets("own_food", "own_med", "med")
    if told and any(inside(span) for cue in asks for span in linked.cues.get(cue, ())):
        return True  # "... What's behind it?", "... When did that start?": what was told is what is asked about
    return any(inside(span) for cue in _SAYS_ENOUGH for span in linked.cues.get(cue, ()))


def _points_back(linked: Linked, first: int, last: int) -> bool:
    """Whether a sentence speaks of what was told by a pronoun, its start or the last of it ("when did it begin")."""
    spans = (
        span for cue in ("pronoun_n", "claimword", "start", "last", "exactly") for span in linked.cues.get(cue, ())
    )
    return any(first <= a and b <= last for a, b in spans)


def _narrowed(linked: Linked, first: int, last: int, starts_at: int) -> Linked:
    cues = {
        name: kept
        for name, spans in linked.cues.items()
        if (kept := tuple(span for span in spans if first <= span[0] and span[1] <= last))
    }
    kept_too = _WHOSE if _names_something(linked, first, last) else (*_WHOSE, *_BEGAN)
    cues |= {name: linked.cues[name] for name in kept_too if name in linked.cues}
    metrics = tuple(hit for hit in linked.metrics if first <= hit.first and hit.last <= last)
    if all(hit.faint for hit in metrics) and any(not hit.faint for hit in linked.metrics):
        metrics = ()  # "he paces all night, what makes him go on so?"
    points = "why" in cues or "cause" in cues or not any(name in cues for name in _NOT_MEASURED)
    told = linked.metrics if points else ()
    directions = tuple(way for way in linked.directions if first <= way[0] and way[1] <= last)
    firm = any(not way.startswith("weak_") for _, _, way in directions)
    times = tuple(span for span in linked.times if first <= span.first and span.last <= last)
    mentions = [
        (span, mention)
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
        if mention.kind != "src" or not linked.metrics or (first <= span[0] and span[1] <= last)
    ]  # who is told the figure is no source of it: "How much did he eat? I keep a diary."
    return replace(
        linked,
        spans=tuple(span for span, _ in mentions),
        mentions=tuple(mention for _, mention in mentions),
        cues=cues,
        metrics=metrics or told,
        directions=directions if metrics or firm else linked.directions,
        times=times or tuple(span for span in linked.times if not metrics or span.label not in _VAGUE),
        opens_at=starts_at,
        asked=(first, last),
    )


_WHOSE = ("pronoun_m", "pronoun_f", "all_pets", "both", "new_food", "old_food", "current_food")
"""Cue classes that say who or what is meant, wherever they stand."""

_BEGAN = ("start", "switch_verb")
"""What was told of a beginning, where "when was it?" says nothing more."""


def without_the_asker(linked: Linked) -> Linked:
    """Without the vet or the place that only passes the question on ("the vet's receptionist asks for ...")."""
    spans = linked.cues.get("asked_by", ())
    kept = tuple(
        (span, mention)
        for span, mention in zip(linked.spans, linked.mentions, strict=True)
        if mention.kind not in {"src", "place"} or not any(a <= span[0] and span[1] <= b for a, b in spans)
    )
    if len(kept) == len(linked.mentions):
        return linked
    return replace(linked, mentions=tuple(m for _, m in kept), spans=tuple(span for span, _ in kept))
