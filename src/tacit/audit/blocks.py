"""One block: the questions between two draws of ρ, on a database and on its neighbour.

Closing a block gives the chance of its pattern on either side, and how far the log-ratio can go
if numbers were told beside the bits: the supremum over everything that could have been told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp, inf, log
from typing import NamedTuple

import numpy as np

from tacit.audit.columns import Columns, Value
from tacit.audit.noise import Laplace
from tacit.audit.scaled import UNIT, Scaled, log_ratio

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
        impossible = not (here.mantissa or there.mantissa)  # then the ranges mean nothing
        return Closed(
            here,
            there,
            0.0 if impossible else self.lowest + other.lowest,
            0.0 if impossible else self.highest + other.highest,
            self.error + other.error,
        )


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
    error = here.error + there.error
    if not (here.mantissa and there.mantissa):
        infinite = here.log_ratio(there) if here.mantissa or there.mantissa else 0.0
        return Closed(here, there, infinite, infinite, error)
    lowest = highest = here.log_ratio(there)
    if tops and law.told == "comparison":
        highest, above = _comparison(sides, blocks, tops)
        fallen, below = _comparison(sides[::-1], blocks[::-1], tops)
        lowest, error = -fallen, error + max(above, below)
    if tops and law.told == "gap":
        lowest, highest, more = _gaps(sides, blocks, tops)
        error += more
    if law.value_noise is not None:
        moved = sum(abs(float(sides[0].answers[i] - sides[1].answers[i])) for i in tops)
        lowest -= moved / float(law.value_noise.scale)
        highest += moved / float(law.value_noise.scale)
    error += 16 * UNIT * (max(-lowest, highest) + 2 + len(tops))
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


def _comparison(
    sides: tuple[Side, ...], blocks: tuple[Block, ...], tops: tuple[int, ...]
) -> tuple[float, float]:
    """The supremum of ln P/P′ if q + ν is told for each ⊤, and its error.

    With numbers y ≥ T + z told, P = ∏_⊤ Pr[ν = yᵢ − qᵢ] · Σ_{z ≤ min y − T} Pr[ρ = z] ∏_⊥ …: a
    partial sum, up to t = min y.  For each t, the ⊤ that has it is fixed there and the others
    take whatever y ≥ t is worst.
    """
    columns = sides[0].columns
    assert isinstance(columns.law.question_noise, Laplace)
    scale = float(columns.law.question_noise.scale)
    partial = [_partial_sums(block, columns) for block in blocks]
    ratios = log_ratio(partial[0], partial[1])
    t = float(columns.threshold) + columns.z[columns.ends].astype(np.float64)
    free = np.zeros_like(t)
    least_given_up = np.full_like(t, inf)
    for index in tops:
        q, other = (float(side.answers[index]) for side in sides)
        at_t = np.abs(t - other) - np.abs(t - q)
        best = np.full_like(t, q - other) if other < q else at_t  # falls or rises with y
        free += best
        least_given_up = np.minimum(least_given_up, best - at_t)
    error = sum(
        _sum_error(sums, block.bottoms[0])
        for sums, block in zip(partial, blocks, strict=True)
        if block.bottoms is not None
    )
    return float(np.nanmax(ratios + (free - least_given_up) / scale)), error


def _partial_sums(block: Block, columns: Columns) -> Scaled:
    assert block.bottoms is not None
    return block.bottoms[1:-1].running()[columns.ends - 1]


def _sum_error(sums: Scaled, cut_off: Scaled) -> float:
    """How far partial sums may be off, relatively, if that much is missing at their end."""
    missing = log_ratio(cut_off, sums)
    return sums.relative_error + float(np.exp(np.nanmax(missing, initial=-inf)))


def _gaps(
    sides: tuple[Side, Side], blocks: tuple[Block, Block], tops: tuple[int, ...]
) -> tuple[float, float, float]:
    """The range of ln P/P′ if the gap g = q + ν − T − z is told for each ⊤, and its error.

    ν = g + T + z − q must not be negative, and its law is then ∝ e^(−(g + T + z − q)/b).  So P is
    a sum over z ≥ z₀ = max(qᵢ − T − gᵢ) of terms that decay with z, times a constant e^(Σq/b);
    P′ is the same from z₀′ on.  Which pairs (z₀, z₀′) can occur follows from gᵢ ≥ 0.
    """
    columns = sides[0].columns
    first, threshold = int(columns.z[1]), int(columns.threshold)
    decay = columns.gap_decay().to_the(len(tops))
    sums: list[Scaled] = []
    error = 0.0
    furthest = max(int(answer) for side in sides for answer in side.answers) - threshold
    for block in blocks:
        assert block.bottoms is not None
        terms = block.bottoms.times(decay)
        sums.append(terms[1:-1].reversed().running().reversed())
        error += _sum_error(sums[-1][: max(furthest - first, 0) + 1], terms[-1])
    here = np.array([int(sides[0].answers[i]) - threshold for i in tops])
    moved = np.array([int(sides[1].answers[i]) - threshold for i in tops]) - here
    constant = -float(moved.sum()) / float(columns.law.question_noise.scale)
    starts = np.arange(min(first, int((here + moved).min())) - 1, int(here.max()) + 1)
    highest, lowest = -inf, inf
    for index in range(len(tops)):
        z = starts[starts <= here[index]]  # this ⊤ has the largest q − T − g
        reachable = (np.minimum(z[:, None], here) + moved).max(axis=1)
        for shift in range(int(moved[index]), int(moved.max()) + 1):
            allowed = z[z + shift <= reachable]
            if not len(allowed):
                continue
            ratios = log_ratio(
                sums[0][np.maximum(allowed - first, 0)],
                sums[1][np.maximum(allowed + shift - first, 0)],
            )
            ratios = ratios[~np.isnan(ratios)]
            if len(ratios):
                highest = max(highest, float(ratios.max()) + constant)
                lowest = min(lowest, float(ratios.min()) + constant)
    return lowest, highest, error
