"""What a question says, computed once: what the decision list, the window and the direction look at.

In: a ``Linked`` question, whose it is and what it measures. Out: yes-or-no properties. Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.ask.direction import is_part_of
from gateway.ask.linking import Linked, MetricHit
from gateway.ask.subjects import Who

__all__ = ["FOODLIKE", "LEVELS", "Facts"]

FOODLIKE = ("intake", "meals", "meal_time", "eat_rate")
"""Properties whose words also describe foods and mealtimes."""

LEVELS = frozenset({"weight", "heart_rate", "battery", "temperature"})
"""Properties with a value now."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at, computed once."""

    linked: Linked
    who: Who
    metric: MetricHit | None
    yes_no: bool
    subject_food: bool
    subject_med: bool
    thing: bool
    devices: tuple[str, ...]
    compared_pets: int

    def has(self, *cues: str) -> bool:
        return self.linked.has(*cues)

    def starts(self, *cues: str, within: int = 4) -> bool:
        return self.linked.starts(*cues, within=within)

    def mentions(self, *kinds: str) -> bool:
        return bool(self.linked.targets(*kinds))

    @property
    def measured(self) -> str | None:
        return None if self.metric is None else self.metric.property

    @property
    def moved(self) -> bool:
        """Whether a direction is spoken of, strong or weak."""
        hit = self.metric
        if hit is not None and hit.direction is not None:
            return True
        return any(
            not way.startswith("weak") and (hit is None or not is_part_of(hit, first, last, way))
            for first, last, way in self.linked.directions
        )

    @property
    def wh(self) -> bool:
        verb = self.linked.word(self.linked.opens_at) in self.linked.language.words["aux"]
        amount = self.starts("how_much", within=1 if verb else 3)  # "has the amount he eats gone down?" asks whether
        return amount or self.starts("why", "when", "who", "which", "since_when", within=3)

    @property
    def what(self) -> bool:
        """Whether the sentence opens with "what"."""
        opens = (token.text for token in self.linked.tokens[self.linked.opens_at :] if token.text[0].isalpha())
        openers = self.linked.language.words["openers"]
        return next((word for word in opens if word not in openers), "") in self.linked.language.words["what"]

    @property
    def against_food(self) -> bool:
        """Whether one food of the home is held against another: "does he scratch less on Harbor than on Acme"."""
        than = any(token.text in self.linked.language.words["than"] for token in self.linked.tokens)
        return than and self.moved and len(self.linked.targets("own_food")) == 2

    @property
    def windows(self) -> int:
        return sum(1 for span in self.linked.times if span.label not in {"NOW", "NEXT", "NIGHT"})
