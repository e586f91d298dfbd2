"""Synthetic rows, ready to be audited: what is chosen and measured, each beside a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import ClassVar

import numpy as np
from tests.audit.laws.listed import Law, clipped, drawn_orders, order_law, told_of

from tacit.audit.black_boxes import system_coins
from tacit.audit.exhibits import Chances, Listed, Pair, moved
from tacit.audit.variants import Steps
from tacit.book.synthetic import SyntheticMechanism
from tacit.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class ListedColumnTree(Listed):
    """The tree over three columns of two values: which pairs form it, and what is counted of them.

    Given is how many rows each of the 8 combinations has.  The columns' own counts are public here,
    4 of each value, so that independent columns would have 2 rows in every cell of a pair.  Told
    is which two pairs were drawn, in order, and of each the noisy count of its cell (0, 0): that is
    all that a row (0, 0, 0) changes, and by symmetry other rows lose no more.
    """

    one_pair: bool = False  # each pair has the noise that would do if there were no other

    PAIRS: ClassVar[tuple[tuple[int, int], ...]] = tuple(combinations(range(3), 2))
    EXPECTED: ClassVar[int] = 2
    FAR: ClassVar[int] = 3  # counts beyond 0 and this lose the same, where the true ones are not

    @property
    def mechanism(self) -> SyntheticMechanism:
        """Its draws and pairs cost what is claimed, and its single columns something beside it."""
        singles = 3 / SyntheticMechanism((2,) * 3, Fraction(1)).single_scale
        return SyntheticMechanism((2,) * 3, self.claimed.epsilon / (1 - singles))

    @property
    def _rate(self) -> Fraction:
        return self.mechanism.tree_chooser.rate

    @property
    def _scale(self) -> Fraction:
        return self.mechanism.pair_scale / (2 if self.one_pair else 1)

    def _counts(self, answers: Sequence[int], pair: tuple[int, int]) -> list[int]:
        rows = list(zip(product((0, 1), repeat=3), answers, strict=True))
        return [
            sum(count for row, count in rows if (row[pair[0]], row[pair[1]]) == cell)
            for cell in product((0, 1), repeat=2)
        ]

    def _scores(self, answers: Sequence[int]) -> list[int]:
        return [
            sum(abs(count - self.EXPECTED) for count in self._counts(answers, pair))
            for pair in self.PAIRS
        ]

    def neighbours(self) -> Iterable[Pair]:
        """A row (0, 0, 0) more, beside rows (0, 0, 1), (0, 1, 0) and (1, 1, 1)."""
        tables = ((0, a, b, 0, 0, 0, 0, c) for a, b, c in product(range(3), repeat=3))
        return moved(tables, [(1, *[0] * 7)])

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: two pairs, and then their noisy counts of (0, 0)."""
        coins = system_coins()
        drawn = drawn_orders(self._scores(answers), 2, self._rate, size, coins)
        first = np.array([self._counts(answers, pair)[0] for pair in self.PAIRS], np.int64)
        noise = coins.laplaces(self._scale, 2 * size).reshape(size, 2)
        return np.column_stack([drawn, np.clip(first[drawn] + noise, 0, self.FAR)])

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Every order of two pairs (any two form a tree), times every two noisy counts."""
        counts = [self._counts(answers, pair)[0] for pair in self.PAIRS]
        told = [clipped(count, self._scale, 0, self.FAR) for count in counts]
        return {
            (one, other, *here, *there): drawn * a * b
            for (one, other), drawn in order_law(self._scores(answers), 2, self._rate).items()
            for here, a in told[one].items()
            for there, b in told[other].items()
        }


@dataclass(frozen=True, kw_only=True)
class ListedRound(Listed):
    """A round of synthetic rows over four columns of two values, each a marginal of its own.

    Given is how many rows each of the 16 combinations has.  The model is one row, (0, 1, 1, 1).
    """

    one_way: bool = False  # chosen as if a person could only raise scores

    _ROW: ClassVar[tuple[int, ...]] = (0, 1, 1, 1)

    @property
    def mechanism(self) -> SyntheticMechanism:
        """With one round, which costs what is claimed."""
        of_a_round = SyntheticMechanism((2,) * 4, Fraction(1), 1, 1, ((0,),)).round_epsilon
        return SyntheticMechanism(
            (2,) * 4, self.claimed.epsilon / of_a_round, 1, 1, ((0,), (1,), (2,), (3,))
        )

    def _marginals(self, answers: Sequence[int]) -> list[list[int]]:
        rows = list(zip(product((0, 1), repeat=4), answers, strict=True))
        return [
            [sum(count for row, count in rows if row[column] == value) for value in (0, 1)]
            for column in range(4)
        ]

    def _scores(self, answers: Sequence[int]) -> list[int]:
        return [
            sum(abs(count - (value == held)) for value, count in enumerate(counts))
            for counts, held in zip(self._marginals(answers), self._ROW, strict=True)
        ]

    @property
    def _rate(self) -> Fraction:
        return self.mechanism.round_chooser.rate * (2 if self.one_way else 1)

    def neighbours(self) -> Iterable[Pair]:
        """A row more, of five kinds, beside none, one or two others."""
        kinds = combinations_with_replacement((0, 3, 7, 9, 15, 16), 2)  # 16 is no row
        tables = [[sum(each == at for each in rows) for at in range(16)] for rows in kinds]
        return moved(tables, [[at == place for at in range(16)] for place in (0, 1, 7, 8, 15)])

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: which column was chosen, and its two noisy counts."""
        coins = system_coins()
        chosen = drawn_orders(self._scores(answers), 1, self._rate, size, coins)[:, 0]
        noise = coins.laplaces(self.mechanism.round_scale, 2 * size).reshape(size, 2)
        counts = np.array(self._marginals(answers), np.int64)[chosen] + noise
        return np.column_stack([chosen, counts])

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Which column was chosen, and whether each noisy count is 1, or less, or more.

        Noise has the same loss at all numbers beyond both true counts, so that nothing is lost
        sight of where these are at most 2.
        """
        counts, scale = self._marginals(answers), self.mechanism.round_scale
        chosen = order_law(self._scores(answers), 1, self._rate)
        law: Law = {}
        for (column,), drawn in chosen.items():
            for told, chance in told_of(counts[column], scale, 1).items():
                law[column, *told] = drawn * chance
        found: Chances = law  # type: ignore[assignment]  # keys of a Mapping are invariant
        return found


def listed_column_tree(claimed: Privacy, *, one_pair: bool = False) -> ListedColumnTree:
    """On a pair in which a row raises one score and lowers the other two."""
    return ListedColumnTree(
        name=f"synthetic rows, their tree{', noise for one pair' * one_pair}",
        claimed=claimed,
        private=not one_pair,
        pair=((0, 2, *[0] * 6), (1, 2, *[0] * 6)),
        why="a person is in every pair" if one_pair else "",
        one_pair=one_pair,
    )


def listed_round(claimed: Privacy, *, one_way: bool = False) -> ListedRound:
    """A round, or its sibling."""
    return ListedRound(
        name="synthetic rows, scores taken for counts" if one_way else "synthetic rows, a round",
        claimed=claimed,
        private=not one_way,
        pair=((0,) * 16, (1, *[0] * 15)),
        why="a person may lower a score" if one_way else "",
        one_way=one_way,
    )
