"""Exact draws from e^(−rate·S(y)) by counting the candidates y within a slack.

Write q = e^(−rate).  Since q^S = Σ_{t ≥ S} (1−q) q^t, a candidate with weight q^S(y) is drawn by
drawing a slack t with probability proportional to q^t · count(t), where count(t) is the number
of candidates with S(y) ≤ t, and then one of those uniformly.  When S is a sum of several parts,
each part has a slack of its own.

There may be 10⁹ slacks.  So they are packed into boxes, and within a box count(t) is replaced by
a bound, such as the count at the box's far corner.  A box is drawn by its bound, a slack within
it by geometric steps from its near corner, and the slack is accepted with probability
count(t)/bound; otherwise all starts over.  What is accepted has exactly the law above, whatever
the boxes: they only decide how long it takes, and so floats may choose them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tacit.book.heartbeat import Heartbeat
from tacit.book.sampling.slack_boxes import Slack, envelope
from tacit.book.sampling.weighted_choice import WeightedChoice

if TYPE_CHECKING:
    from tacit.book.coins import Coins

_Candidate = TypeVar("_Candidate", covariant=True)


class SlackCounts(Protocol[_Candidate]):
    """A class of questions whose candidates can be counted, and drawn uniformly, by slack."""

    @property
    def slacks(self) -> int:
        """How many parts the score has."""

    @property
    def limit(self) -> int:
        """A slack from which on nothing is shut out."""

    def count(self, slack: Slack) -> int:
        """How many candidates have every part of the score within its slack."""

    def draw(self, slack: Slack, coins: Coins) -> _Candidate:
        """One of these, all equally likely."""


class SlackSearch(Generic[_Candidate]):
    """Draws a candidate y with probability proportional to e^(−rate·S(y)), exactly."""

    def __init__(
        self, candidates: SlackCounts[_Candidate], *, rate: Fraction, heartbeat: Heartbeat
    ) -> None:
        self._candidates = candidates
        self._heartbeat = heartbeat
        self._scale = 1 / rate
        self._boxes = envelope(candidates, rate=rate, heartbeat=heartbeat)
        self._choice = WeightedChoice(
            [box.bound for box in self._boxes], [rate * sum(box.near) for box in self._boxes]
        )

    def draw(self, coins: Coins) -> _Candidate:
        """One candidate; independent of all earlier draws."""
        while True:
            self._heartbeat.beat()
            box = self._boxes[self._choice.draw(coins)]
            slack = tuple(self._step(near, coins) for near in box.near)
            if any(step > far for step, far in zip(slack, box.far, strict=True)):
                continue
            if coins.below(box.bound) < self._candidates.count(slack):
                return self._candidates.draw(slack, coins)

    def _step(self, near: int, coins: Coins) -> int:
        """Beyond the limit nothing changes, so all slacks there are lumped into it."""
        return min(near + coins.geometric(self._scale), self._candidates.limit)
