"""What `Table.query` releases, ready to be audited: each beside a sibling with a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tacit.audit.black_boxes import system_coins
from tacit.audit.release_laws import Chances, Listed, exp_minus, told_of
from tacit.audit.variants import Steps
from tacit.book.quantile import QuantileMechanism
from tacit.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class ListedShare(Listed):
    """How many people are inside and how many are not, each count with noise for the whole ε.

    Given is how many people have rows inside only, rows outside only, and rows of both kinds.
    """

    disjoint: bool = True  # whoever has rows of both kinds is inside, and not outside too

    def _counts(self, answers: Sequence[int]) -> tuple[int, int]:
        inside, outside, both = answers
        return inside + both, outside + (0 if self.disjoint else both)

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the two noisy counts."""
        noise = system_coins().laplaces(1 / self.claimed.epsilon, 2 * size).reshape(size, 2)
        return noise + np.array(self._counts(answers), np.int64)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Whether each noisy count is 2, or less, or more.

        Noise has the same loss at all numbers beyond both true counts, so that nothing is lost
        sight of where these are at most 3.
        """
        law = told_of(self._counts(answers), 1 / self.claimed.epsilon, 2)
        found: Chances = law  # type: ignore[assignment]  # keys of a Mapping are invariant
        return found


@dataclass(frozen=True, kw_only=True)
class ListedQuantile(Listed):
    """The median of values from 0 to 3; given is how many people have each."""

    one_way: bool = False  # drawn as if a person could only raise all scores

    _SIZE: ClassVar[int] = 4

    @property
    def mechanism(self) -> QuantileMechanism:
        """What draws it, with twice the ε if it is taken for a count."""
        epsilon = self.claimed.epsilon * (2 if self.one_way else 1)
        return QuantileMechanism(Fraction(1, 2), self._SIZE, epsilon=epsilon)

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes."""
        coins, drawn = system_coins(), self.mechanism
        places = np.repeat(np.arange(self._SIZE), answers)
        return np.array([[drawn.draw(places, coins)] for _ in range(size)], np.int64)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Each value, by how many of the others are on the wrong side."""
        values, rate = sum(answers), self.mechanism.rate * 2
        weights = []
        for place in range(self._SIZE):
            less, up_to = sum(answers[:place]), sum(answers[: place + 1])
            off = max(Fraction(0), less - Fraction(values, 2), Fraction(values, 2) - up_to)
            weights.append(exp_minus(rate * off))
        return {(place,): weight / sum(weights) for place, weight in enumerate(weights)}


def listed_quantile(claimed: Privacy, *, one_way: bool = False) -> ListedQuantile:
    """A median, or its sibling."""
    return ListedQuantile(
        name="median, its scores taken for counts" if one_way else "median",
        claimed=claimed,
        private=not one_way,
        pair=((0, 2, 0, 3), (0, 3, 0, 3)),
        why="a person may lower a score" if one_way else "",
        one_way=one_way,
    )


def listed_share(claimed: Privacy, *, disjoint: bool = True) -> ListedShare:
    """A percentage, or its sibling."""
    return ListedShare(
        name="percentage" if disjoint else "percentage, its parts not disjoint",
        claimed=claimed,
        private=disjoint,
        pair=((1, 1, 0), (1, 1, 1)),
        why="" if disjoint else "a person counts in both",
        disjoint=disjoint,
    )
