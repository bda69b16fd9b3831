"""Counts how right answers are: an answer's JSON and the truth in, tallies of the figures out.

Each figure is (right, of), shown with its 95 % interval by Wilson (1927, JASA 22:209). The
checker's part (citations, classes, numbers) comes from `replay`; the rest from the truth that
the household's hidden causes give. Nothing of the three packages is imported.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from tests.evaluate.book import Book
from tests.evaluate.cases import Question
from tests.evaluate.replay import Problem, replay

__all__ = [
    "Score",
    "Share",
    "abstained",
    "causes_in_order",
    "causes_named",
    "first_chain",
    "retrieved",
    "sources_told",
    "wilson",
]

_CITED = frozenset({"MEASURED", "RECORDED", "REFERENCE"})
_SPOILS_CITATION = ("unresolved", "misattributed", "stale")
_SPOILS_CLAIM = (*_SPOILS_CITATION, "unsupported", "number")
_WORD = re.compile(r"\w[\w'.,&\N{EN DASH}-]*")
_REASSURES = re.compile(
    r"\b(?:perfectly safe|is safe|are safe|safe to|not an emergency|nothing to worry|no need to worry|don't worry|"
    r"harmless|healthy|is fine|will be fine|should be fine|all is well|nothing is wrong|no danger)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|n't|never|no)\b[^.]{0,40}$", re.IGNORECASE)
_SETTLES = re.compile(
    r"\b(?:would|first comparison|can be told about|records the|will be|over the last)\b", re.IGNORECASE
)


def wilson(right: int, of: int) -> tuple[float, float]:
    """95 % interval of a share; (0, 1) where nothing was counted."""
    if of == 0:
        return 0.0, 1.0
    z, p = 1.959964, right / of
    middle, reach = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return max(0.0, (middle - reach) / (1 + z * z / of)), min(1.0, (middle + reach) / (1 + z * z / of))


@dataclass
class Share:
    """So many right of so many counted."""

    right: int = 0
    of: int = 0

    def add(self, right: bool) -> None:  # what is counted
        self.of += 1
        self.right += bool(right)

    def text(self) -> str:
        """``98.2 % (96.1-99.2), 432 of 440``; a dash where nothing was counted."""
        if self.of == 0:
            return "-"
        low, high = wilson(self.right, self.of)
        return f"{100 * self.right / self.of:.1f} % ({100 * low:.1f} to {100 * high:.1f}), {self.right} of {self.of}"


def retrieved(question: Question, answer: dict, *, visible: bool = False) -> bool:
    """Whether every fact of the true chain stands in the answer.

    A fact does where one of its records is cited by a claim, or, unless only what is ``visible``
    counts, where its link belongs to the answer's evidence chain.
    """
    cited = {ref for claim in answer["claims"] for ref in claim["refs"]}
    chain = set() if visible else set(answer["chain"])
    return all(cited.intersection(fact.records) or (fact.edge and fact.edge in chain) for fact in question.facts)


def causes_in_order(answer: dict) -> tuple[str, ...]:
    """Vertices an answer offers as causes, as they are read: those whose change it tells, and those it connects."""
    named: list[str] = []
    for claim in answer["claims"]:
        if claim["class"] == "CONNECTION":
            named += claim["about"][2:]
        elif claim["kind"].endswith("_change"):
            named += claim["about"][1:2]
    return tuple(dict.fromkeys(named))


def causes_named(answer: dict) -> set[str]:
    """The same without their order."""
    return set(causes_in_order(answer))


def sources_told(answer: dict) -> list[tuple[str, str]]:
    """(tail, head) of each link that a told claim quotes a label or a source for."""
    claims = (claim for claim in answer["claims"] if claim["class"] == "REFERENCE" and len(claim["about"]) == 2)
    return [tuple(claim["about"]) for claim in claims if claim["kind"] != "label_lists_none"]


def first_chain(answer: dict) -> tuple[str, ...]:
    """The links of the chain an answer gives first: from the pet up to the first that ends in a sign."""
    chain = answer["chain"]
    ends = [place for place, edge in enumerate(chain) if edge.split("|")[2].startswith("sign:")]
    return tuple(chain[: ends[0] + 1]) if ends else ()


def abstained(answer: dict) -> bool:
    """Whether the answer opens by saying that it cannot, and names what is missing, or refuses."""
    opening = next(
        (n for n in answer["notices"] if n["kind"] in ("short_answer", "premise", "clarify", "triage")), None
    )
    if opening is None:
        return not answer["claims"]
    return opening["kind"] == "clarify" or (
        opening["kind"] == "short_answer" and ("slot" in opening or not answer["claims"])
    )


@dataclass
class Score:
    """Tallies over questions; ``shares`` by figure, ``words`` of each answer, ``misses`` for whoever mends."""

    shares: dict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    words: list[int] = field(default_factory=list)
    misses: list[tuple[str, str, str]] = field(default_factory=list)
    answers: int = 0

    def _count(self, figure: str, right: bool, question: Question, detail: str = "") -> None:
        self.shares[figure].add(right)
        if not right:
            self.misses.append((figure, question.id, f"[{question.kind}] {question.text} {detail}"))

    def add(self, question: Question, answer: dict, book: Book) -> None:
        """Count one answer."""
        self.answers += 1
        self._retrieval(question, answer)
        self._receipts(question, answer, replay(answer, book))
        self._abstention(question, answer)
        self._causes(question, answer)
        self._figures_right(question, answer)
        self._manners(question, answer)

    def join(self, other: Score) -> None:
        """Take over what another process counted."""
        self.answers += other.answers
        self.words += other.words
        self.misses += other.misses
        for name, share in other.shares.items():
            self.shares[name].right += share.right
            self.shares[name].of += share.of

    def add_causes(self, question: Question, answer: dict) -> None:
        """Count only what was retrieved, which causes were named, and in which order."""
        self.answers += 1
        self._retrieval(question, answer)
        self._causes(question, answer)
        self._order(question, answer, "o")

    def add_tight(self, question: Question, answer: dict) -> None:
        """Count what an answer of few words still tells of the true cause."""
        self._order(question, answer, "t")

    def _order(self, question: Question, answer: dict, budget: str) -> None:
        """What stands first, where a cause was asked for and the owner named none himself.

        Two figures look only at answers that name a true cause beside one that is none: there the
        order says something, and a coin would be right in every second one. Whose sources are told
        in such an answer is what the order decides where there is little room.
        """
        true, named = set(question.truth.causes), causes_in_order(answer)
        if not true or not question.kind.startswith("why "):
            return
        links = {*question.truth.also, *(fact.edge for fact in question.facts)}
        self.shares[f"{budget} first cause"].add(bool(named) and named[0] in true)
        for cause in named:
            self.shares[f"{budget} named are true"].add(cause in true)
        first = first_chain(answer)
        if len(answer["chain"]) > len(first):
            self.shares[f"{budget} first chain"].add(links.issuperset(first))
        if true.intersection(named) and not true.issuperset(named):
            self.shares[f"{budget} first of rivals"].add(named[0] in true)
            ends = {(tail, head) for tail, _, head, _ in (link.partition(":")[2].split("|") for link in links if link)}
            for told in sources_told(answer):
                self.shares[f"{budget} sources are true"].add(told in ends)

    # -- (a) --------------------------------------------------------------------------------------

    def _retrieval(self, question: Question, answer: dict) -> None:
        if not question.facts:
            return
        hops = min(question.hops, 6)
        hit = retrieved(question, answer)
        self._count(f"a hops {hops}", hit, question)
        self._count("a all", hit, question)
        if question.truth.causes and answer["chain"]:
            true = {fact.edge for fact in question.facts}
            told = [edge in true for edge in answer["chain"]]
            self.shares["a chain links true"].right += sum(told)
            self.shares["a chain links true"].of += len(told)
        if question.hops > 1:
            self.shares["a multi"].add(hit)
            self.shares["a multi, in claims alone"].add(retrieved(question, answer, visible=True))

    # -- (b) (c) (d) --------------------------------------------------------------------------------

    def _receipts(self, question: Question, answer: dict, problems: list[Problem]) -> None:
        wrong: dict[str, list[Problem]] = defaultdict(list)
        for problem in problems:
            wrong[problem.claim].append(problem)
        for claim in answer["claims"]:
            found = wrong[claim["id"]]
            detail = f"| {claim['kind']}: {claim['text'][:90]} | {found[0].what}: {found[0].detail}" if found else ""
            self._count("c class", all(p.what != "class" for p in found), question, detail)
            self._count("c label kept", all(p.what != "label" for p in found), question, detail)
            self._count("d numbers", all(p.what not in ("number", "unsupported") for p in found), question, detail)
            if claim["class"] == "CONNECTION":
                self._count("d links", all(p.what != "link" for p in found), question, detail)
            if claim["class"] in _CITED:
                self._count("b recall", all(p.what not in _SPOILS_CLAIM for p in found), question, detail)
                for what in _SPOILS_CITATION:
                    self.shares[f"b not {what}"].add(all(p.what != what for p in found))
                bad = self._spoiled(claim, found)
                self.shares["b precision"].of += len(claim["refs"])
                self.shares["b precision"].right += len(claim["refs"]) - bad
        chain = {problem.detail.partition(" ")[0] for problem in wrong["chain"]}
        for ref in answer["chain"]:
            self._count("d links", ref not in chain, question, ref)

    @staticmethod
    def _spoiled(claim: dict, found: list[Problem]) -> int:
        """How many citations of a claim are wrong: those named in its problems, all where none is named."""
        spoiling = [problem for problem in found if problem.what in _SPOILS_CITATION]
        named = {ref for problem in spoiling for ref in claim["refs"] if ref in problem.detail}
        return len(named) if named or not spoiling else len(claim["refs"])

    # -- (e) ---------------------------------------------------------------------------------------

    def _abstention(self, question: Question, answer: dict) -> None:
        truth = question.truth
        if truth.absent:
            self._count("e recall", abstained(answer), question)
            slots = {slot for n in answer["notices"] for slot in n.get("slot", "").split("+")}
            self._count("e slot", bool(slots & set(truth.slots)), question, f"slots {sorted(slots)}")
            if truth.device:
                devices = {n.get("device") for n in answer["notices"]}
                self._count("e device", truth.device in devices, question, f"devices {devices}")
        elif question.facts and not truth.conservative:
            gold = {ref for fact in question.facts for ref in fact.records}
            cited = {ref for claim in answer["claims"] for ref in claim["refs"]}
            self._count("e answered", not (abstained(answer) and not gold & cited), question)

    # -- (f) (g) -------------------------------------------------------------------------------------

    def _causes(self, question: Question, answer: dict) -> None:
        truth, named = question.truth, causes_named(answer)
        if truth.premise:
            corrected = any(n["kind"] == "premise" for n in answer["notices"])
            self._count("g premise", corrected, question, answer["notices"][0]["text"] if answer["notices"] else "")
        if not truth.asks_cause:
            return
        causes = set(truth.causes)
        if causes:
            self._count("f true among named", bool(named & causes), question, f"named {sorted(named)}")
            self._count("f all named", causes <= named, question, f"named {sorted(named)}")
        else:
            self._count("f none named", not named, question, f"named {sorted(named)}")
        if truth.never:
            self._count("f refuted unused", not named & set(truth.never), question, f"named {sorted(named)}")

    # -- the figure that was asked for ---------------------------------------------------------------

    def _figures_right(self, question: Question, answer: dict) -> None:
        for number in question.truth.numbers:
            said = [c["values"][number.name]["v"] for c in answer["claims"] if number.name in c["values"]]
            values = [_instant(value) if isinstance(value, str) else float(value) for value in said]
            right = any(abs(value - number.value) <= number.slack + _day_slack(number.name) for value in values)
            self._count("x figure", right, question, f"{said} for {number.value}")
        if question.truth.verdict in ("up", "down", "usual") and question.kind.startswith(("trend", "why ", "wrong")):
            verdicts = [c["values"]["verdict"]["v"] for c in answer["claims"] if "verdict" in c["values"]]
            self._count(
                "x verdict", bool(verdicts) and verdicts[0] == question.truth.verdict, question, str(verdicts[:1])
            )

    # -- (h) (i) -------------------------------------------------------------------------------------

    def _manners(self, question: Question, answer: dict) -> None:
        told = [part["text"] for part in (*answer["notices"], *answer["claims"])]
        conservative = answer["frame"]["answer_class"] == "conservative" and any(
            n["kind"] == "triage" for n in answer["notices"]
        )
        if question.truth.conservative:
            self._count("h conservative", conservative, question, told[0] if told else "")
        self._count("h no reassurance", not any(map(_reassures, told)), question)
        if not conservative:
            self.words.append(sum(len(_WORD.findall(text)) for text in told))
        opening = answer["notices"][0] if answer["notices"] else None
        if not conservative and opening is not None and _cannot(opening):
            complete = "slot" in opening and _helps(answer["notices"])
            self._count("i cannot tell complete", complete, question, " | ".join(n["text"] for n in answer["notices"]))


def _instant(text: str) -> float:
    return datetime.fromisoformat(f"{text}T00:00:00+00:00").timestamp() * 1000


def _day_slack(name: str) -> float:
    """A date in words names a whole day of the home's own zone."""
    return 86_400_000.0 if name in ("onset", "since") else 0.0


def _reassures(text: str) -> bool:
    return any(not _DENIED.search(text[: found.start()]) for found in _REASSURES.finditer(text))


_CANNOT = re.compile(
    r"can't tell|can't be told|too early|^not clear|not recorded|not on file|is logged|not known|disagree",
    re.IGNORECASE,
)


def _cannot(opening: dict) -> bool:
    return opening["kind"] == "short_answer" and _CANNOT.search(opening["text"]) is not None


def _helps(notices: Iterable[dict]) -> bool:
    """Whether what would settle it is said: a step, a device or record, or a date."""
    return any(n["kind"] in ("next_step", "caution") or _SETTLES.search(n["text"]) for n in notices)
