"""Releases, ready to be audited: small ones whose outcomes can be listed with their exact chances.

Each stands beside a sibling with a mistake that is easy to make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np
from tests.audit.laws.again_law import listed_again
from tests.audit.laws.listed import clipped, drawn_orders, exp_minus, one_more, order_law, told_of
from tests.audit.laws.priced_law import listed_priced
from tests.audit.laws.query_laws import (
    listed_moments,
    listed_quantile,
    listed_query,
    listed_share,
)
from tests.audit.laws.synthetic_laws import listed_column_tree, listed_round

from tacit.audit.black_boxes import system_coins
from tacit.audit.exhibits import Chances, Listed, Pair, moved
from tacit.audit.variants import Steps
from tacit.book.one_sided import prepare
from tacit.book.range_tree import RangeTree
from tacit.book.small_db import Prefixes, certifying
from tacit.book.top import TopMechanism
from tacit.book.watching import Watch, watch
from tacit.numbers import Number
from tacit.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class ListedTree(Listed):
    """The range tree over four values in two levels; given is how many rows each value has."""

    root: bool = False  # measured as well, and not paid for

    _TREE: ClassVar[RangeTree] = RangeTree(values=4, branching=2, levels=2)

    def _nodes(self, answers: Sequence[int]) -> list[int]:
        levels = self._TREE.nodes(np.array(answers, np.int64))
        found = [int(count) for level in levels for count in level]
        return [sum(answers), *found] if self.root else found

    def neighbours(self) -> Iterable[Pair]:
        """A row more of any value."""
        return one_more(product(range(2), repeat=4))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the nodes' noisy counts."""
        nodes = self._nodes(answers)
        noise = system_coins().laplaces(self._TREE.scale(self.claimed.epsilon), size * len(nodes))
        return noise.reshape(size, len(nodes)) + np.array(nodes, np.int64)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Whether each noisy count is 2, or less, or more.

        Noise has the same loss at all numbers beyond both true counts, so that nothing is lost
        sight of where these are at most 3.
        """
        law = told_of(self._nodes(answers), self._TREE.scale(self.claimed.epsilon), 2)
        found: Chances = law  # type: ignore[assignment]  # keys of a Mapping are invariant
        return found


@dataclass(frozen=True, kw_only=True)
class ListedTop(Listed):
    """The two largest of a few counts, in order; given are the counts."""

    _PLACES: ClassVar[int] = 2

    @property
    def _rate(self) -> Fraction:
        return TopMechanism(self._PLACES, self.claimed).rate

    def neighbours(self) -> Iterable[Pair]:
        """All ways in which a person may raise three counts."""
        return moved(product(range(3), repeat=3), product((0, 1), repeat=3))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the places of those that were drawn."""
        return drawn_orders(answers, self._PLACES, self._rate, size, system_coins())

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Every order that can come."""
        found: Chances = order_law(answers, self._PLACES, self._rate)  # type: ignore[assignment]
        return found


@dataclass(frozen=True, kw_only=True)
class ListedWatch(Listed):
    """Two counts watched for two surprises, with guesses of 0; given are the counts.

    Told is the side of each, and how far the value is from the threshold: 0, 1, or more.
    """

    shared: bool = False  # one threshold noise for both sides

    _T: ClassVar[int] = 1
    _FAR: ClassVar[int] = 2  # gaps from here on lose the same, where counts are at most T + 1

    @property
    def _scales(self) -> tuple[Fraction, Fraction]:
        """Of ρ and ν."""
        recipe = watch(2, self.claimed.epsilon, questions=2).mechanism.recipe
        return recipe.threshold_scale, recipe.question_scale

    def watch(self) -> Watch:
        """The mechanism itself, with the threshold of this law."""
        recipe = watch(2, self.claimed.epsilon, questions=2).mechanism.recipe
        return Watch(prepare(recipe, threshold=self._T))

    def neighbours(self) -> Iterable[Pair]:
        """A person more in the first, the second, or both counts."""
        return moved(product((-3, -1, 0, 2), repeat=2), ((1, 0), (0, 1), (1, 1)))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: for each count its side, and then its gap."""
        coins, (r, b) = system_coins(), self._scales
        up = coins.geometrics(r, size)
        down = up if self.shared else coins.geometrics(r, size)
        told = []
        for value in answers:
            rises = value + coins.geometrics(b, size) - (self._T + up)
            falls = -value + coins.geometrics(b, size) - (self._T + down)
            side = np.where(rises >= 0, 1, np.where(falls >= 0, -1, 0))
            gap = np.where(side == 1, rises, np.where(side == -1, falls, 0))
            told += [side, np.minimum(gap, self._FAR)]
        return np.column_stack(told)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Every side and gap of both counts: a sum over ρ₊ and one over ρ₋ for each."""
        kinds = [(0, 0), *((side, gap) for side in (1, -1) for gap in range(self._FAR + 1))]
        law = {}
        for told in product(kinds, repeat=len(answers)):
            asked = list(zip(answers, told, strict=True))
            up = [(value, gap if side == 1 else None) for value, (side, gap) in asked]
            down = [(-value, gap if side else None) for value, (side, gap) in asked if side != 1]
            chance = self._both(up, down)
            law[told] = chance
        found: Chances = law  # type: ignore[assignment]  # keys of a Mapping are invariant
        return found

    def _both(
        self, up: Sequence[tuple[int, int | None]], down: Sequence[tuple[int, int | None]]
    ) -> Fraction:
        if self.shared:
            return self._over_noise([*up, *down])
        return self._over_noise(up) * self._over_noise(down)

    def _over_noise(self, asked: Sequence[tuple[int, int | None]]) -> Fraction:
        """The chance of what was told about some values that share ρ.

        Where ρ is at least ``start`` nothing is above without ν, and each chance is a polynomial in
        x = q^ρ, of degree 1; so their product is one, whose mean is a sum of geometric series.
        """
        r, b = self._scales
        p, q = exp_minus(1 / r), exp_minus(1 / b)
        start = max([value - self._T for value, _ in asked], default=0)
        start, found = max(start, 0), Fraction(0)
        for noise in range(start):
            chance = (1 - p) * p**noise
            for value, gap in asked:
                chance *= self._of_one(self._T + noise - value, gap, q)
            found += chance
        product_of_all = [Fraction(1)]
        for value, gap in asked:
            power = q ** (self._T + start - value)  # of ν that reaches, at ρ = start
            if gap is None:
                constant, slope = Fraction(1), -power
            else:
                constant, slope = Fraction(0), power * q**gap * (1 if gap == self._FAR else 1 - q)
            lower, higher = [*product_of_all, Fraction(0)], [Fraction(0), *product_of_all]
            product_of_all = [
                constant * low + slope * high for low, high in zip(lower, higher, strict=True)
            ]
        begun = p**start
        return found + sum(
            coefficient * begun * (1 - p) / (1 - p * q**degree)
            for degree, coefficient in enumerate(product_of_all)
        )

    def _of_one(self, missing: int, gap: int | None, q: Fraction) -> Fraction:
        """⊥ if there is no gap; else ν is exactly so much more than is missing, or at least."""
        if gap is None:
            return 1 - q ** max(missing, 0)
        if gap == self._FAR:
            return q ** max(missing + gap, 0)
        return (1 - q) * q ** (missing + gap) if missing + gap >= 0 else Fraction(0)


@dataclass(frozen=True, kw_only=True)
class ListedCertified(Listed):
    """SmallDB with a certificate: two rows for the prefixes of 1, 2 and 3, and how far they err.

    Given is how many people have each value.  Half of ε pays for the rows and half for the
    certificate.  Told are the rows, and the certificate in half people, all beyond 0 and 8 as one.
    """

    whole_steps: bool = False  # as if a person changed the score by one step, not by one person

    ROWS: ClassVar[int] = 2
    CLASS: ClassVar[Prefixes] = Prefixes(3)
    _FAR: ClassVar[int] = 8  # certificates beyond it lose the same, where nobody's score is larger

    @property
    def _scale(self) -> Fraction:
        half = self.claimed.epsilon / 2
        scale = certifying(self.CLASS, rows=self.ROWS, epsilon=half).scale
        return scale / self.ROWS if self.whole_steps else scale

    @property
    def _rate(self) -> Fraction:
        return self.claimed.epsilon / 4 / self.ROWS

    def _candidates(self, answers: Sequence[int]) -> dict[tuple[int, ...], tuple[int, Fraction]]:
        """All databases of two rows, each with its score in steps and its chance."""
        x = np.repeat(np.arange(1, 4), answers)
        every = list(combinations_with_replacement((1, 2, 3), self.ROWS))
        scores = [self.CLASS.score(x, np.array(y, np.int64)) for y in every]
        law = order_law([-score for score in scores], 1, self._rate)
        return {
            y: (score, law[(at,)]) for at, (y, score) in enumerate(zip(every, scores, strict=True))
        }

    def neighbours(self) -> Iterable[Pair]:
        """A person more, of four at most: no score is beyond what is told apart."""
        tables = product(range(4), repeat=3)
        return one_more(table for table in tables if sum(table) < 4)

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: the rows, and the certificate."""
        coins, listed = system_coins(), self._candidates(answers)
        scores = np.array([score for score, _ in listed.values()], np.int64)
        drawn = drawn_orders((-scores).tolist(), 1, self._rate, size, coins)[:, 0]
        measured = np.clip(scores[drawn] + coins.laplaces(self._scale, size), -1, self._FAR)
        return np.column_stack([np.array(list(listed), np.int64)[drawn], measured])

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """The chance of each two rows, times that of each certificate."""
        return {
            (*rows, *told): chance * each
            for rows, (score, chance) in self._candidates(answers).items()
            for told, each in clipped(score, self._scale, -1, self._FAR).items()
        }


def releases(epsilon: Number = "1/10") -> tuple[Listed, ...]:
    """Tacit's releases, each after a sibling that breaks its promise."""
    claimed = Privacy(epsilon)
    return (
        _range_tree(claimed, root=True),
        _range_tree(claimed),
        _top(claimed, both_ways=True),
        _top(claimed),
        _top(Privacy(epsilon, "1e-6")),
        listed_column_tree(claimed, one_pair=True),
        listed_column_tree(claimed),
        listed_round(claimed, one_way=True),
        listed_round(claimed),
        listed_query(claimed, chosen=False),
        listed_query(claimed),
        listed_moments(claimed, whole=True),
        listed_moments(claimed),
        listed_moments(claimed, squares=True, off_centre=True),
        listed_moments(claimed, squares=True),
        listed_share(claimed, disjoint=False),
        listed_share(claimed),
        listed_share(claimed, disjoint=False, halves=True),
        listed_quantile(claimed, one_way=True),
        listed_quantile(claimed),
        _watch(claimed, shared=True),
        _watch(claimed),
        _certified(claimed, whole_steps=True),
        _certified(claimed),
        listed_priced(claimed, by_direction=True),
        listed_priced(claimed),
        listed_again(claimed, renewed=True),
        listed_again(claimed),
    )


def _range_tree(claimed: Privacy, *, root: bool = False) -> ListedTree:
    return ListedTree(
        name="range tree, its root unpaid" if root else "range tree",
        claimed=claimed,
        private=not root,
        pair=((1, 1, 0, 0), (2, 1, 0, 0)),
        why="a level too many" if root else "",
        root=root,
    )


def _top(claimed: Privacy, *, both_ways: bool = False) -> ListedTop:
    name, high = "top 2, δ > 0" if claimed.delta else "top 2", int(both_ways)
    return ListedTop(
        name="top 2, both directions" if both_ways else name,
        claimed=claimed,
        private=not both_ways,
        pair=((high, high, *[0] * 10), (0, 0, *[1] * 10)),
        why="for counts that move one way" if both_ways else "",
    )


def _watch(claimed: Privacy, *, shared: bool = False) -> ListedWatch:
    return ListedWatch(
        name="watched model, one noise for both sides" if shared else "watched model",
        claimed=claimed,
        private=not shared,
        pair=((2, -2), (1, -1)) if shared else ((0, 0), (1, 1)),
        why="shifting it for one side is wrong for the other" if shared else "",
        shared=shared,
    )


def _certified(claimed: Privacy, *, whole_steps: bool = False) -> ListedCertified:
    wrong = "SmallDB, its certificate's steps taken for people"
    return ListedCertified(
        name=wrong if whole_steps else "SmallDB with a certificate",
        claimed=claimed,
        private=not whole_steps,
        pair=((3, 0, 0), (3, 0, 1)),
        why="a person changes a score by m steps" if whole_steps else "",
        whole_steps=whole_steps,
    )
