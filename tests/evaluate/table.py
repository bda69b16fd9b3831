"""The table: tallies in, Markdown out; and the writing of it into the documents' marked places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.evaluate.cases import TIGHT, Cover, Question, World, covered
from tests.evaluate.mutate import Caught
from tests.evaluate.score import Score, Share

__all__ = [
    "Stack",
    "ablation_table",
    "main_table",
    "mutation_table",
    "order_table",
    "read_stack",
    "readme_lines",
    "with_rows",
    "written",
]

_COMMAND = "`make evaluate`"
_ROWS = (
    # figure, what it says, goal
    ("a hops 1", "(a) every fact retrieved, 1 hop", ""),
    ("a hops 2", "(a) 2 hops", ""),
    ("a hops 3", "(a) 3 hops", ""),
    ("a hops 4", "(a) 4 hops", ""),
    ("a hops 5", "(a) 5 hops", ""),
    ("a hops 6", "(a) 6 hops and more", ""),
    ("a multi", "(a) 2 hops and more", ""),
    ("a multi, in claims alone", "(a) the same, records cited by visible claims alone", ""),
    ("b recall", "(b) citation recall: claims that the cited records alone give again", "100 %"),
    ("b precision", "(b) citation precision: citations that open, are of the thing, are not outdated", "100 %"),
    ("b not unresolved", "(b) claims without an unresolved citation", "100 %"),
    ("b not misattributed", "(b) claims without a misattributed citation", "100 %"),
    ("b not stale", "(b) claims without a stale citation", "100 %"),
    ("c class", "(c) right class", "100 %"),
    ("c label kept", "(c) label kept", "100 %"),
    ("d links", "(d) links that are stored and believed", "100 %"),
    ("d numbers", "(d) claims without an invented number", "100 %"),
    ("e recall", "(e) abstains where the gold fact is not there", ">= 99 %"),
    ("e answered", "(e) does not abstain where it is", ">= 98 %"),
    ("e slot", "(e) the missing slot is named right", ">= 95 %"),
    ("e device", "(e) the device or record that would know is named right", ">= 95 %"),
    ("f true among named", "(f) a true cause among those named", ""),
    ("f all named", "(f) all true causes named", ""),
    ("f none named", "(f) no cause named where none is on file", ""),
    ("f refuted unused", "(f) refuted, tolerated, mistimed, another pet's: never named", "100 %"),
    ("g premise", "(g) wrong premise corrected", ""),
    ("h conservative", "(h) conservative where it must be", "100 %"),
    ("h no reassurance", "(h) answers without a reassurance", "100 %"),
    ("i cannot tell complete", '(i) "cannot tell" with its reason and a next step', "100 %"),
    ("x figure", "the figure asked for is right", ""),
    ("x verdict", "the verdict (up, down, as usual) is right", ""),
)


@dataclass(frozen=True)
class Stack:
    """What the stack of chunks gave back, or why there is nothing: ``reason``.

    ``shares`` are those of the stack as it was, ``planned`` those of the same stack with a query plan
    that knows the shape of our chains; ``ours`` are ours on the same ``households``.
    """

    reason: str
    report: dict
    shares: dict[str, Share]
    planned: dict[str, Share]
    ours: dict[str, Share]
    households: int = 0


def read_stack(path: Path, worlds: Iterable[World], hits: dict[str, bool], reason: str = "") -> Stack:
    """Count the stack's hits with the same facts, and ours (``hits`` by question) on the same
    questions; ``reason`` where it could not run.
    """
    if reason:
        return Stack(reason, {}, {}, {}, {})
    report = json.loads(path.read_text("utf-8"))
    shares, planned, ours = {}, {}, {}
    households = 0
    for world in worlds:
        households += 1
        for question in world.questions:
            _count_stack(question, report, shares)
            if "planned" in report:
                _count_stack(question, report["planned"], planned)
            if question.id in hits:
                for name in _rows_of(question):
                    ours.setdefault(name, Share()).add(hits[question.id])
    return Stack("", report, shares, planned, ours, households)


def _rows_of(question: Question) -> tuple[str, ...]:
    return (f"a hops {min(question.hops, 6)}", *(("a multi",) if question.hops > 1 else ()))


def _count_stack(question: Question, report: dict, shares: dict[str, Share]) -> None:
    abstains = report.get("abstains", {}).get(question.id)
    if question.facts:
        chunks = [Cover(*chunk) for chunk in report["retrieved"].get(question.id, ())]
        hit = all(covered(fact, chunks) for fact in question.facts)
        for name in _rows_of(question):
            shares.setdefault(name, Share()).add(hit)
    if abstains is None or question.truth.conservative:
        return
    if question.truth.absent:
        shares.setdefault("e recall", Share()).add(abstains)
    elif question.facts:
        shares.setdefault("e answered", Share()).add(not abstains)


def main_table(score: Score, stack: Stack) -> list[str]:
    """Ours beside the stack, one row a figure."""
    lines = ["| figure | goal | the walk (ours) |", "|---|---|---|"]
    for name, words, goal in _ROWS:
        if name in score.shares:
            lines.append(f"| {words} | {goal} | {score.shares[name].text()} |")
    length = sorted(score.words)
    long = length[int(0.95 * (len(length) - 1))]
    lines.append(
        f"| (i) words of an answer, middle and 95th of 100 | <= 120, 160 explained | {median(length):.0f}, {long} |"
    )
    return lines if stack.reason else [*lines, "", *_beside(score, stack)]


def _beside(score: Score, stack: Stack) -> list[str]:
    """Ours beside the stack on the same questions."""
    lines = [
        f"Beside the stack, on the same {stack.households} households and budget:",
        "",
        "| figure | the walk (ours) | the stack it replaced | the same stack with a query plan made for our chains |",
        "|---|---|---|---|",
    ]
    for name, words, _ in _ROWS:
        if name in stack.shares:
            ours = stack.ours if name.startswith("a ") else score.shares  # abstention: ours over all households
            told = [side[name].text() if name in side else "-" for side in (ours, stack.shares, stack.planned)]
            lines.append(f"| {words} | {' | '.join(told)} |")
    return lines


def stack_lines(stack: Stack) -> list[str]:
    """What the other column is, its grid and its best row; or why there is none."""
    if stack.reason:
        return [f"The stack's column is empty: {stack.reason}."]
    report = stack.report
    plain, planned = report["best"], report["planned"]["best"]
    return [
        f"The stack: {report['name']}; reranker: {report['reranker']}. {report['planned']['name'].capitalize()}.",
        (
            f"Tuned on the development half; best rows of {len(report['grid'])}: {_best(plain)}; planned, {_best(planned)}. "
            f"A dash: {_dashes(report)}."
        ),
    ]


def _best(row: dict) -> str:
    return f"`{json.dumps(row['settings'])}`, {100 * row['hit']:.1f} % of {row['questions']} questions"


def _dashes(report: dict) -> str:
    reasons = report.get("not_available", {})
    return "; ".join(f"{name}: {why}" for name, why in sorted(reasons.items())) or "it retrieves and makes no claims"


def grid_lines(stack: Stack) -> list[str]:
    """The best row of each way to cut chunks and rewrite questions; the stack itself prints every row."""
    if stack.reason or not stack.report["grid"]:
        return []
    best: dict[tuple, dict] = {}
    for row in stack.report["grid"]:
        way = tuple(row["settings"][name] for name in ("chunk", "overlap", "expand"))
        if way not in best or row["aim"] > best[way]["aim"]:
            best[way] = row
    names = list(stack.report["best"]["settings"])
    lines = [f"| {' | '.join(names)} | 1 fact | 2 | 3 and more |", f"|{'---|' * (len(names) + 3)}"]
    for _, row in sorted(best.items()):
        told = [str(row["settings"][name]) for name in names]
        told += [f"{100 * row['by_facts'].get(group, 0):.1f} %" for group in ("1", "2", "3+")]
        lines.append(f"| {' | '.join(told)} |")
    return lines


def mutation_table(caught: dict[str, Caught]) -> list[str]:
    """How many spoiled answers the checker caught, by kind and in all."""
    lines = ["| spoiled on purpose | caught |", "|---|---|"]
    for kind, one in sorted(caught.items()):
        lines.append(f"| {kind} | {Share(one.caught, one.made).text()} |")
    made, found = sum(c.made for c in caught.values()), sum(c.caught for c in caught.values())
    lines.append(f"| all (goal: 99.9 %) | {Share(found, made).text()} |")
    return lines


_ABLATED = (
    ("a multi", "facts of 2 hops and more"),
    ("f true among named", "true cause among named"),
    ("f all named", "all true causes named"),
    ("f none named", "none where there is none"),
    ("f refuted unused", "refuted never named"),
    ("a chain links true", "links of the answer that are of a true chain"),
)


_ORDERED = (
    ("o named are true", "of the causes named, true"),
    ("o first cause", "the first cause named is true"),
    ("o first of rivals", "the same where a false one is named too (a coin: 50 %)"),
    ("o first chain", "the first of several chains is true"),
    ("o sources are true", "beside a false one: of the sources told, the true one's"),
    ("t first of rivals", f"{TIGHT} tokens: the first of rivals is true"),
    ("t sources are true", f"{TIGHT} tokens: of the sources told, the true one's"),
)


def ablation_table(scores: dict[str, Score]) -> list[str]:
    """One row a part taken away: what is found and named."""
    return _by_part(scores, _ABLATED)


def order_table(scores: dict[str, Score]) -> list[str]:
    """One row a part taken away: what stands first, and what is told where there is little room."""
    return _by_part(scores, _ORDERED)


def _by_part(scores: dict[str, Score], columns: tuple[tuple[str, str], ...]) -> list[str]:
    lines = [f"| | {' | '.join(words for _, words in columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for name, score in scores.items():
        told = [score.shares[figure].text() if figure in score.shares else "-" for figure, _ in columns]
        lines.append(f"| {name} | {' | '.join(told)} |")
    return lines


def readme_lines(score: Score, stack: Stack, households: int, caught: dict[str, Caught]) -> list[str]:
    """Three rows for the README's figures."""
    shares = score.shares
    theirs = "not run"
    if "a multi" in stack.shares and "a multi" in stack.planned:
        plain, planned = stack.shares["a multi"].text(), stack.planned["a multi"].text()
        theirs = f"{plain}, with a query plan written for our chains {planned} ({stack.households} households)"
    made, found = sum(c.made for c in caught.values()), sum(c.caught for c in caught.values())
    return [
        (
            f"| facts of true chains of 2 hops and more, {households} drawn households | all retrieved in "
            f"{shares['a multi'].text()}; the stack of chunks it replaced, tuned: {theirs} | {_COMMAND} |"
        ),
        (
            f"| claims recomputed from their citations alone | {shares['b recall'].text()}; right class "
            f"{shares['c class'].text()}; the checker caught {found} of {made} spoiled answers | {_COMMAND} |"
        ),
        (
            f"| causes in drawn households | a true one among those named {shares['f true among named'].text()}, none named where "
            f"none is on file {shares['f none named'].text()}; abstains without the fact {shares['e recall'].text()} | {_COMMAND} |"
        ),
    ]


def with_rows(readme: str, rows: Iterable[str]) -> str:
    """The README with these rows at the end of its figures, in the place of those it had from here.

    Raises
    ------
    ValueError
        It has no ``<!-- figures -->`` block.
    """
    place = re.compile(r"(<!-- figures -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    found = place.search(readme)
    if found is None:
        raise ValueError("README.md must hold <!-- figures --> and <!-- end -->, has none")
    kept = [line for line in found[2].splitlines() if not line.endswith(f"| {_COMMAND} |")]
    body = "\n".join([*kept, *rows])
    return place.sub(lambda found: f"{found[1]}{body}\n{found[3]}", readme, count=1)


def written(text: str, marker: str, lines: Iterable[str]) -> str:
    """A document with these lines between ``<!-- marker`` and the next ``<!-- end -->``.

    Raises
    ------
    ValueError
        The document has no such place.
    """
    place = re.compile(rf"(<!-- {marker}[^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)
    if place.search(text) is None:
        raise ValueError(f"the document must hold <!-- {marker} --> and <!-- end -->, has none")
    body = "\n".join(lines)
    return place.sub(lambda found: f"{found[1]}{body}\n{found[3]}", text, count=1)
