"""One block: the questions between two draws of ρ, on a database and on its neighbour.

Closing a block gives the chance of its pattern on either side, and how far the log-ratio can go
if numbers were told beside the bits: the supremum over everything that could have been told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp, inf, isfinite, log
from typing import NamedTuple

import numpy as np

from tacit.audit.columns import Columns, Value
from tacit.audit.scaled import UNIT, Scaled, of_logarithm
from tacit.audit.told import comparison, gaps

_LOG_SPREAD = 60.0  # terms below e^(−60) of the sum do not count


class Chance(NamedTuple):
    """A probability mantissa · 2^exponent and how far it may be off, relatively."""

    mantissa: float
    exponent: int
    error: float

    def times(self, other: Chance) -> Chance:
        """Of two independent events."""
        mantissa, shift = frexp(self.mantissa * other.mantissa)
        exponent = self.exponent + other.exponent + shift
        return Chance(mantissa, exponent, self.error + other.error + UNIT)

    @property
    def logarithm(self) -> float:
        """Its natural logarithm; −∞ for 0."""
        return log(self.mantissa) + self.exponent * log(2) if self.mantissa else -inf

    def log_ratio(self, other: Chance) -> float:
        """ln(self/other), not both 0; equal sizes do not cost digits."""
        if not (self.mantissa and other.mantissa):
            return inf if self.mantissa else -inf
        return log(self.mantissa / other.mantissa) + (self.exponent - other.exponent) * log(2)


CERTAIN = Chance(0.5, 1, 0.0)


class Closed(NamedTuple):
    """A pattern's chances on both sides, and the range of ln P/P′ over all that could be told."""

    here: Chance
    there: Chance
    lowest: float
    highest: float
    error: float

    def times(self, other: Closed) -> Closed:
        """Blocks are independent: chances multiply and losses add."""
        here, there = self.here.times(other.here), self.there.times(other.there)
        error = self.error + other.error
        if not (here.mantissa and there.mantissa):
            return impossible(here, there, error)
        lowest, highest = self.lowest + other.lowest, self.highest + other.highest
        return Closed(here, there, lowest, highest, error)


def impossible(here: Chance, there: Chance, error: float) -> Closed:
    """A pattern that cannot come on one side, whatever is told; 0 if on neither: nothing counts."""
    ratio = inf if here.mantissa else -inf if there.mantissa else 0.0
    return Closed(here, there, ratio, ratio, error)


NOTHING_YET = Closed(CERTAIN, CERTAIN, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Side:
    """The factors of every question for one database."""

    columns: Columns
    answers: tuple[Value, ...]
    _bottoms: dict[Value, Scaled] = field(default_factory=dict)
    _tops: dict[Value, Scaled] = field(default_factory=dict)

    def bottom(self, index: int) -> Scaled:
        """The ⊥ factor of a question."""
        answer = self.answers[index]
        if answer not in self._bottoms:
            self._bottoms[answer] = self.columns.bottom(answer)
        return self._bottoms[answer]

    def top(self, index: int) -> Scaled:
        """The ⊤ factor of a question."""
        answer = self.answers[index]
        if answer not in self._tops:
            self._tops[answer] = self.columns.top(answer)
        return self._tops[answer]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The pattern so far: all factors multiplied, and the ⊥ factors alone if numbers are told."""

    product: Scaled
    bottoms: Scaled | None

    @classmethod
    def begin(cls, side: Side) -> Block:
        """A fresh ρ."""
        weights = side.columns.weights
        return cls(weights, None if side.columns.law.told == "bits" else weights)

    def with_bottom(self, side: Side, index: int) -> Block:
        """One more question, answered ⊥."""
        factor = side.bottom(index)
        return Block(
            self.product.times(factor), None if self.bottoms is None else self.bottoms.times(factor)
        )

    def with_top(self, side: Side, index: int) -> Block:
        """One more question, answered ⊤."""
        return Block(self.product.times(side.top(index)), self.bottoms)


def close(
    sides: tuple[Side, Side], blocks: tuple[Block, Block], tops: tuple[int, ...], questions: int
) -> Closed:
    """Sum over z, and find the worst that can be told; ``tops`` are the ⊤ of this block."""
    here, there = (
        chance(side, block.product, questions) for side, block in zip(sides, blocks, strict=True)
    )
    law = sides[0].columns.law
    error = of_logarithm(here.error) + of_logarithm(there.error)
    if not (here.mantissa and there.mantissa):
        return impossible(here, there, error)
    lowest = highest = here.log_ratio(there)
    if tops and law.told == "comparison":
        highest, above = comparison(sides, blocks, tops)
        fallen, below = comparison(sides[::-1], blocks[::-1], tops)
        lowest, error = -fallen, error + max(above, below)
    if tops and law.told == "gap":
        lowest, highest, more = gaps(sides, blocks, tops, questions)
        error += more
    if law.value_noise is not None:
        moved = sum(abs(float(sides[0].answers[i] - sides[1].answers[i])) for i in tops)
        lowest -= moved / float(law.value_noise.scale)
        highest += moved / float(law.value_noise.scale)
    size = max(abs(end) if isfinite(end) else 0.0 for end in (lowest, highest))  # ∞ is no rounding
    error += 16 * UNIT * (size + 2 + len(tops))
    return Closed(here, there, lowest, highest, error)


def chance(side: Side, product: Scaled, questions: int) -> Chance:
    """The sum of all columns, and how far it may be off: rounding, and what was cut off."""
    total = product[1:-1].total()
    mantissa, exponent = float(total.mantissa), int(total.exponent)
    cut_off = product[[0, -1]].total()
    error = total.relative_error
    if side.columns.law.continuous and mantissa:
        # A term is e^(sum of logarithms), each rounded; terms that count are not far below P.
        size = abs(log(mantissa) + exponent * log(2)) + _LOG_SPREAD
        error = (8 * size + 16 * (questions + 2)) * UNIT
    if cut_off.mantissa > 0:
        shift = int(cut_off.exponent) - exponent
        if not mantissa or shift > 1000:
            return Chance(mantissa, exponent, inf)
        error += float(np.ldexp(cut_off.mantissa / mantissa, max(shift, -1000)))
    return Chance(mantissa, exponent, error)
