"""Which law of the loss serves: of one kind, of few, or on a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from tacit.book.composing.binomial_tail import tail
from tacit.book.composing.grid_error import OnGrid
from tacit.book.composing.grid_fineness import Pure, fineness
from tacit.book.composing.loss_atoms import enumerated, group
from tacit.book.composing.loss_grid import blocks
from tacit.book.composing.loss_window import Window


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
