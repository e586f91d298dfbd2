"""Blocks of a simple shape: some equal questions that stay ⊥, then some equal ones that are ⊤.

Equal factors are raised to a power, so that a thousand questions cost no more than one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from tacit.audit.blocks import Block, Closed, Side, close
from tacit.audit.columns import columns
from tacit.audit.law import Law
from tacit.audit.outcomes import tell
from tacit.audit.ratio import RELIABLY, slack
from tacit.audit.strict import logarithm
from tacit.audit.walk import Blocks, Sides

Step = int | Fraction
_REACH = 48.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How many ⊥ and ⊤, how far below the threshold they lie, and how they move."""

    bottoms: int
    tops: int
    bottom_distance: Step  # T − q, in grid steps
    top_distance: Step
    bottom_moves: Step  # q′ − q
    top_moves: Step
    times: int = 1  # so many such blocks, one after another

    @property
    def questions(self) -> int:
        """Of one block."""
        return self.bottoms + self.tops

    def sides(self, law: Law) -> Sides:
        """Two questions, ⊥ and ⊤, on either database; the threshold is 0."""
        here = (-self.bottom_distance, -self.top_distance)
        there = (here[0] + self.bottom_moves, here[1] + self.top_moves)
        shared = columns(law, 0, {*here, *there}, questions=self.questions, reach=_REACH)
        return Side(shared, here), Side(shared, there)

    def blocks(self, sides: Sides) -> Blocks:
        """All factors of one block."""
        return self._block(sides[0]), self._block(sides[1])

    def _block(self, side: Side) -> Block:
        fresh = Block.begin(side)
        bottoms = side.bottom(0).to_the(self.bottoms)
        product = fresh.product.times(bottoms).times(side.top(1).to_the(self.tops))
        return Block(product, None if fresh.bottoms is None else fresh.bottoms.times(bottoms))


def block_loss(law: Law, shape: Shape) -> Closed:
    """The chances and the loss of one block."""
    sides = shape.sides(law)
    return close(sides, shape.blocks(sides), (1,) * shape.tops, shape.questions)


def worst_loss(law: Law, shape: Shape) -> float:
    """The loss of all blocks; −∞ if the pattern cannot come at all."""
    closed = block_loss(law, shape)
    if not (closed.here.mantissa or closed.there.mantissa):
        return -inf
    return max(closed.highest, -closed.lowest) * shape.times


def sampled_bound(law: Law, shape: Shape, *, runs: int) -> float:
    """The lower bound to expect from counting the most telling outcomes of this pattern."""
    alone = shape.tops == 1 and shape.times == 1
    law = law if alone else law.bits_only()
    sides = shape.sides(law)
    if alone:
        told = tell(sides, shape.blocks(sides), (1,), shape.questions)
        here, there = told.here, told.there
    else:
        closed = close(sides, shape.blocks(sides), (1,) * shape.tops, shape.questions)
        here = np.array([exp(closed.here.logarithm * shape.times)])
        there = np.array([exp(closed.there.logarithm * shape.times)])
    return max(_best_bound(here, there, runs), _best_bound(there, here, runs))


def _best_bound(here: NDArray[np.float64], there: NDArray[np.float64], runs: int) -> float:
    order = np.argsort(logarithm(there) - np.maximum(logarithm(here), -1e3), kind="stable")
    p, other = np.cumsum(here[order]), np.cumsum(there[order])
    p, other = (np.clip(chances, 0.25 / runs, 1.0) for chances in (p, other))
    return float((np.log(p / other) - slack(p, other, 0.0, runs, RELIABLY)).max())
