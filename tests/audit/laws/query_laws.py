"""What `Table.query` releases, ready to be audited: each beside a sibling with a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from typing import ClassVar

import numpy as np
from tests.audit.laws.listed import Law, clipped, exp_minus, one_more, together, told_of

from tacit.audit.black_boxes import system_coins
from tacit.audit.exhibits import Chances, Listed, Pair
from tacit.audit.variants import Steps
from tacit.book.quantile import QuantileMechanism
from tacit.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class ListedShare(Listed):
    """How many people are inside and how many are not, for a percentage or a ratio.

    Given is how many people have rows inside only, rows outside only, and rows of both kinds.
    """

    disjoint: bool = True  # whoever has rows of both kinds is inside, and not outside too
    halves: bool = False  # each count has half of ε, as in a ratio of any two

    def _counts(self, answers: Sequence[int]) -> tuple[int, int]:
        inside, outside, both = answers
        return inside + both, outside + (0 if self.disjoint else both)

    @property
    def scale(self) -> Fraction:
        """Of the noise of each count."""
        return (2 if self.halves else 1) / self.claimed.epsilon

    def neighbours(self) -> Iterable[Pair]:
        """A person more of any kind."""
        return one_more(product(range(2), repeat=3))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the two noisy counts."""
        noise = system_coins().laplaces(self.scale, 2 * size).reshape(size, 2)
        return noise + np.array(self._counts(answers), np.int64)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Whether each noisy count is 2, or less, or more.

        Noise has the same loss at all numbers beyond both true counts, so that nothing is lost
        sight of where these are at most 3.
        """
        law = told_of(self._counts(answers), self.scale, 2)
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

    def neighbours(self) -> Iterable[Pair]:
        """A person more, with any value."""
        return one_more(product(range(3), repeat=self._SIZE))

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


def listed_share(claimed: Privacy, *, disjoint: bool = True, halves: bool = False) -> ListedShare:
    """A percentage, or its sibling; or a ratio of two counts that may overlap."""
    percentage = "percentage" if disjoint else "percentage, its parts not disjoint"
    return ListedShare(
        name="ratio of two counts" if halves else percentage,
        claimed=claimed,
        private=disjoint or halves,
        pair=((1, 1, 0), (1, 1, 1)),
        why="" if disjoint or halves else "a person counts in both",
        disjoint=disjoint,
        halves=halves,
    )


@dataclass(frozen=True, kw_only=True)
class ListedQuery(Listed):
    """How many people each of two cells has, where everybody counts in one cell, chosen at random.

    Given is how many people are in the first cell alone, in the second alone, and in both.
    """

    chosen: bool = True  # whether somebody in both counts in one of them only

    def _counts(self, answers: Sequence[int]) -> dict[tuple[int, int], Fraction]:
        """What the cells may count, and how likely that is."""
        first, second, both = answers
        if not self.chosen:
            return {(first + both, second + both): Fraction(1)}
        return {
            (first + here, second + both - here): Fraction(comb(both, here), 2**both)
            for here in range(both + 1)
        }

    def neighbours(self) -> Iterable[Pair]:
        """A person more of any kind."""
        return one_more(product(range(2), repeat=3))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the two noisy counts."""
        first, second, both = answers
        coins = system_coins()
        here = there = np.full(size, both, np.int64)
        if self.chosen:
            here = coins.belows(2, size * both).reshape(size, both).sum(axis=1)
            there = both - here
        noise = coins.laplaces(1 / self.claimed.epsilon, 2 * size).reshape(size, 2)
        return np.stack([first + here, second + there], axis=1) + noise

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Whether each noisy count is 2, or less, or more.

        Noise has the same loss at all numbers beyond both true counts, so that nothing is lost
        sight of where these are at most 3.
        """
        scale = 1 / self.claimed.epsilon
        law: Law = {}
        for counts, likely in self._counts(answers).items():
            for told, chance in told_of(counts, scale, 2).items():
                law[told] = law.get(told, Fraction(0)) + likely * chance
        found: Chances = law  # type: ignore[assignment]  # keys of a Mapping are invariant
        return found


def listed_query(claimed: Privacy, *, chosen: bool = True) -> ListedQuery:
    """Counts of two cells, or their sibling."""
    return ListedQuery(
        name="query of two cells" if chosen else "query of two cells, nothing chosen",
        claimed=claimed,
        private=chosen,
        pair=((1, 1, 0), (2, 1, 0) if chosen else (1, 1, 1)),
        why="" if chosen else "a person counts in both",
        chosen=chosen,
    )


@dataclass(frozen=True, kw_only=True)
class ListedMoments(Listed):
    """What a mean or a variance of values from 0 to 2 is made of; given is how many have each.

    With y = −2, 0 or 2 the distance from the middle, in half steps, and w = 2 the width of the
    bounds, told are the noisy number of values and Σ y, and for a variance Σ (2y² − w²).
    """

    squares: bool = False  # a variance
    whole: bool = False  # each number has all of ε
    off_centre: bool = False  # Σ 2y² is told, with noise for Σ (2y² − w²)

    WIDTH: ClassVar[int] = 2
    MOST: ClassVar[int] = 3  # people, so that nothing beyond is lost sight of

    @property
    def scales(self) -> list[Fraction]:
        """Of the noise of each number: a person changes them by 1, w and w²."""
        w, several = self.WIDTH, 3 if self.squares else 2
        each = self.claimed.epsilon / (1 if self.whole else several)
        return [reach / each for reach in (1, w, w**2)[:several]]

    def _numbers(self, answers: Sequence[int]) -> list[int]:
        w = self.WIDTH
        away = [(count, 2 * value - w) for value, count in enumerate(answers)]
        middle = 0 if self.off_centre else w**2
        found = [
            sum(answers),
            sum(count * y for count, y in away),
            sum(count * (2 * y**2 - middle) for count, y in away),
        ]
        return found[: len(self.scales)]

    @property
    def told_in(self) -> tuple[tuple[int, ...], ...]:
        """In which units each number is told, and the least and the greatest that is told."""
        most, squares = self.MOST, self.MOST * (2 if self.off_centre else 1)
        return (1, 2, 4), (-1, -most - 1, -most - 1), (most, most, squares)

    def neighbours(self) -> Iterable[Pair]:
        """A person more, with any value."""
        tables = product(range(3), repeat=3)
        return one_more(table for table in tables if sum(table) < self.MOST)

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the two or three noisy numbers."""
        coins, numbers = system_coins(), self._numbers(answers)
        told = [
            np.clip((number + coins.laplaces(scale, size)) // unit, low, high)
            for number, scale, unit, low, high in zip(
                numbers, self.scales, *self.told_in, strict=False
            )
        ]
        return np.column_stack(told)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """All noisy numbers, in units that a person changes them by or more."""
        law = together(
            [
                clipped(number, scale, low, high, unit)
                for number, scale, unit, low, high in zip(
                    self._numbers(answers), self.scales, *self.told_in, strict=False
                )
            ]
        )
        found: Chances = law  # type: ignore[assignment]  # keys of a Mapping are invariant
        return found


def listed_moments(
    claimed: Privacy, *, squares: bool = False, whole: bool = False, off_centre: bool = False
) -> ListedMoments:
    """A mean or a variance, or a sibling, where somebody with the greatest value is added."""
    mistake = ", each part with all of ε" * whole + ", squares off centre" * off_centre
    off = "a square may be twice as far from 0" if off_centre else ""
    return ListedMoments(
        name=("variance" if squares else "mean") + mistake,
        claimed=claimed,
        private=not mistake,
        pair=((1, 0, 0), (1, 0, 1)),
        why="a person changes both" if whole else off,
        squares=squares,
        whole=whole,
        off_centre=off_centre,
    )
