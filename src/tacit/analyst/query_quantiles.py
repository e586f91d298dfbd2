"""Several quantiles of the same values from one tree of noisy counts.

Each quantile can be drawn by itself, for its own share of ε; its error grows with their number.
A tree of counts has them all for the sum of their shares, with an error that grows with the size of
the domain instead: so it pays from some number of quantiles on, and public numbers say from which.

(Drawing them recursively, each from the values between two that were drawn before (Kaplan, Schnapp
and Stemmer 2022), divides ε by the depth alone.  Its privacy holds: of the parts of one level a
value is in one.  Its accuracy needs values that differ: if 55 % are 0, the median is 0, and what is
left above it is not half of all, so that the upper quartile would be one of 77.5 %.  Breaking ties
at random mends that, and costs as much as a domain that is larger by that randomness; it then errs
more than each by itself for few quantiles, and more than a tree for many.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.histogram import sum_error
from tacit.book.range_tree import MOST_VALUES, RangeTree, best_tree, rising
from tacit.errors import BadParameter
from tacit.numbers import Number, probability
from tacit.tables.language.aggregate_kinds import Ranked

if TYPE_CHECKING:
    from tacit.analyst.query_plan import QueryPlan
    from tacit.book.coins import Coins
    from tacit.tables.language.selected import Select

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """The τ-quantile of values from a domain of so many, from a tree that others share.

    Privacy: (ε, 0) for the tree and all that is read from it, if a person adds or removes at most
    ``max_rows`` values: each value is in one node of each of its levels.
    Accuracy: `error`.
    """

    end: ClassVar[int] = 0

    share: Fraction
    domain_size: int
    epsilon: Fraction
    max_rows: int

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or not 1 <= self.domain_size <= MOST_VALUES:
            raise BadParameter("share", str(self.share), "it must lie between 0 and 1")
        self.tree.scale(self.epsilon, self.max_rows)  # which refuses noise that is too wide

    @property
    def tree(self) -> RangeTree:
        """The shape of the tree."""
        return best_tree(self.domain_size)

    def error(self, beta: Number = "1/20") -> int:
        """By how many ranks what is told may be off, except with probability β.

        Accuracy: all N prefixes are within e of the truth but with probability β, and so they are
        once they are made to rise (`rising`).  The first value at which they reach τ of the last
        has #{x ≤ y} ≥ τ(n − e) − e and #{x < y} < τ(n + e) + e: it is at most (1 + τ)e ranks
        off.  Floats move what is reached by less than one.
        """
        tree = self.tree
        each = probability(beta, "beta") / self.domain_size
        scale = tree.scale(self.epsilon, self.max_rows)
        return ceil((1 + self.share) * sum_error(scale, tree.worst_prefix, each)) + 1

    def measure(self, places: NDArray[np.int64], coins: Coins) -> Floats:
        """How many values there are up to each, with noise; given are the places of all values."""
        counts = np.bincount(places, minlength=self.domain_size).astype(np.int64)
        tree = self.tree
        noisy = tree.measure(
            counts, epsilon=self.epsilon, coins=coins, rows_per_person=self.max_rows
        )
        return rising(np.rint(tree.prefixes(noisy)).astype(np.int64))[1:]

    def read(self, up_to: Floats) -> int:
        """The place of the quantile, from what was measured."""
        goal = float(self.share) * float(up_to[-1])
        return min(int(np.searchsorted(up_to, goal)), self.domain_size - 1)


def groups(select: Select) -> list[tuple[int, ...]]:
    """The places of quantiles of one column over the same rows, two or more together."""
    found: dict[object, list[int]] = {}
    for place, column in enumerate(select.columns):
        if isinstance(column.kind, Ranked) and not column.kind.end:
            found.setdefault((column.kind.column, column.question), []).append(place)
    return [tuple(places) for places in found.values() if len(places) > 1]


def even_out(select: Select, places: Sequence[int], shares: list[Fraction]) -> None:
    """Divide what a group has so that each errs alike: by the sensitivity of its ranks."""
    total = sum((shares[place] for place in places), Fraction(0))
    kinds = [select.columns[place].kind for place in places]
    moved = [max(kind.share, 1 - kind.share) for kind in kinds if isinstance(kind, Ranked)]
    for place, each in zip(places, moved, strict=True):
        shares[place] = total * each / sum(moved)


def that_share_trees(plan: QueryPlan) -> tuple[tuple[int, ...], ...]:
    """The groups that err less from a tree; public numbers alone decide."""
    found = []
    for places in groups(plan.select):
        tree = tree_error(plan, places)
        if tree is not None and tree < max(plan.alone(place).error() for place in places):
            found.append(places)
    return tuple(found)


def tree_error(plan: QueryPlan, places: Sequence[int]) -> int | None:
    """By how many ranks a group would be off from a tree; None if there is none of that size."""
    try:
        return max(tree_of(plan, places, place).error() for place in places)
    except BadParameter:  # too many values, or noise that is too wide
        return None


def tree_of(plan: QueryPlan, places: Sequence[int], place: int) -> QuantileTree:
    """What one of a group is read from.

    Privacy: a person counts in at most ``max_cells`` cells, each with a tree of its own.
    """
    column, kind = plan.select.columns[place], plan.select.columns[place].kind
    assert isinstance(kind, Ranked)
    size = plan.select.schema.column(kind.column).domain_size or 0
    if size * plan.select.rows > MOST_VALUES:
        raise BadParameter(
            "values", size, f"all trees of counts together may have at most {MOST_VALUES}"
        )
    epsilon = sum((plan.shares[each] for each in places), Fraction(0)) / plan.max_cells
    return QuantileTree(kind.share, size, epsilon, column.most)
