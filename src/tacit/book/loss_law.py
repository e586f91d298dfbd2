"""Which law of the loss serves: of one kind, of few, or on a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, cosh, gcd, lcm, log, log1p, sqrt, tanh
from typing import Protocol

from tacit.book.loss_grid import LossGroup, OnGrid, Window, blocks, cell_by_cell, enumerated, group
from tacit.numerics.binomial import tail

# How fine the grid of a loss is, and how wide its window: as fine as a few seconds allow.
#
# Any grid and any window give true bounds; good ones give close ones.  So this may be guessed.


Pure = Sequence[tuple[Fraction, int]]
"""(ε, how many), each ε once and greater than 0."""

_WIDTH = 9  # standard deviations on either side of what matters
_MOST_CELLS = 1 << 17
_WORK = 1e10  # products that a convolution may take: a few seconds


@dataclass(frozen=True, slots=True)
class Bell:
    """About the mean and the deviation of a loss."""

    mean: float
    deviation: float
    squares: float  # Σ εᵢ²

    @classmethod
    def of(cls, pure: Pure) -> Bell:
        """If every sign is drawn by itself."""
        sizes = [(float(each), many) for each, many in pure]
        mean = sum(many * x * tanh(x / 2) for x, many in sizes)
        variance = sum(many * (x / cosh(min(x / 2, 300))) ** 2 for x, many in sizes)
        return cls(mean, sqrt(variance), sum(many * x * x for x, many in sizes))

    def around(self, delta: float) -> tuple[Fraction, Fraction]:
        """Between which ε this δ is met."""
        high = self.mean + sqrt(-2 * self.squares * log(delta))  # Theorem 3.20
        low = self.mean - 2 * self.deviation - 1
        if delta > 0.3:
            low += log1p(-min(delta, 1 - 1e-12)) - 7 * self.deviation
        return Fraction(max(low, 0.0)), Fraction(high)


def fineness(
    groups: Sequence[LossGroup], low: Fraction, high: Fraction
) -> tuple[Fraction, int, int]:
    """The grid's step, and how many cells it has below and above the mean."""
    pure = [(one.each, one.many) for one in groups]
    bell, largest = Bell.of(pure), float(sum(many * each for each, many in pure))
    below = max(bell.mean - float(low), 0.0) + _WIDTH * bell.deviation
    above = max(float(high) - bell.mean, 0.0) + _WIDTH * bell.deviation
    below, above = min(below, bell.mean + largest), min(above, largest - bell.mean)
    below = max(below, largest / 10**6)  # large ε are nearly certain losses
    finest = Fraction((below + above) / _MOST_CELLS)
    step = _common_step([each for each, _ in pure], finest)  # nothing lies between its cells
    if step is None or _work(groups, step, 1) * (below + above) / float(step) > _WORK:
        step = finest
        while _work(groups, step, 2) * (below + above) / float(step) > _WORK:
            step *= 2
    room = 2 * len(groups) + 2  # for what is rounded to cells
    return step, ceil(below / float(step)) + room, ceil(above / float(step)) + room


def _work(groups: Sequence[LossGroup], step: Fraction, split: int) -> float:
    """About how many products each cell of the window takes; the widest law takes none."""
    work, h = [], float(step)
    for one in groups:
        width = int(2 * len(one.chances) * float(one.each) / h) + 2
        cells = min(split * len(one.chances), width)
        work.append(6 * cells if cell_by_cell(cells, width) else width)
    return sum(work) - max(work) + 1


def _common_step(sizes: Sequence[Fraction], least: Fraction) -> Fraction | None:
    """The largest number of which all sizes are multiples, unless it is less than `least`."""
    common = sizes[0]
    for size in sizes:
        whole = lcm(common.denominator, size.denominator)
        parts = (
            common.numerator * (whole // common.denominator),
            size.numerator * (whole // size.denominator),
        )
        common = Fraction(gcd(*parts), whole)
        if common < least:
            return None
    return common


class LossLaw(Protocol):
    """δ_pure as a function of ε, from both sides."""

    def upper(self, epsilon: Fraction) -> Decimal | float:
        """An upper bound."""

    def lower(self, epsilon: Fraction) -> Decimal | float:
        """A lower bound."""


@dataclass(frozen=True, slots=True)
class _Alone:
    """Of one kind, or of none."""

    each: Fraction
    many: int

    def upper(self, epsilon: Fraction) -> Decimal:
        return tail(self.many, self.each, self.each, epsilon).delta if self.many else Decimal(0)

    def lower(self, epsilon: Fraction) -> Decimal:
        found = self.upper(epsilon)
        safe = found > Decimal("1e-250")  # where `tail` states its accuracy
        return found * (1 - Decimal("1e-12") * (1 + self.many // 10**6)) if safe else Decimal(0)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """No loss exceeds the sum of all ε."""

    law: LossLaw
    largest: Fraction

    def upper(self, epsilon: Fraction) -> Decimal | float:
        return self.law.upper(epsilon) if epsilon < self.largest else 0.0

    def lower(self, epsilon: Fraction) -> Decimal | float:
        return self.law.lower(epsilon) if epsilon < self.largest else 0.0


def loss_law(pure: Pure, low: Fraction, high: Fraction) -> LossLaw:
    """The law of the loss, to be asked about ε from `low` to `high`."""
    return loss_laws(pure, Fraction(0), 0, low, high)(0)


def loss_laws(
    pure: Pure, each: Fraction, most: int, low: Fraction, high: Fraction
) -> Callable[[int], LossLaw]:
    """The laws with so many more of one kind beside them, up to `most`."""

    @lru_cache(maxsize=1)
    def base() -> Window:
        groups = [group(*one) for one in pure]
        everything = [*groups, group(each, most)] if each and most else groups
        step, below, above = fineness(everything, low, high)
        return Window.empty(step, below, above).plus(blocks(groups, step))

    def law(more: int) -> LossLaw:
        counts = dict(pure)
        if each and more:
            counts[each] = counts.get(each, 0) + more
        if len(counts) <= 1:
            return _Alone(*next(iter(counts.items()), (Fraction(1), 0)))
        largest = sum((many * one for one, many in counts.items()), Fraction(0))
        few = enumerated(sorted(counts.items()))
        if few is None:
            extra = blocks([group(each, more)], base().step) if each and more else []
            return _Bounded(OnGrid.of(base().plus(extra)), largest)
        return _Bounded(few, largest)

    return law
