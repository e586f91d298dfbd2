"""One block: the questions between two draws of ρ, on a database and on its neighbour.

Closing a block gives the chance of its pattern on either side, and how far the log-ratio can go
if numbers were released with the bits: the supremum over everything that could have been released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, frexp, inf, isfinite, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.audit.columns import Places, SumColumns
from tacit.audit.law import Laplace, StreamLaw
from tacit.numerics.scaled import UNIT, Scaled, log_ratio, of_logarithm


class Chance(NamedTuple):
    """A probability mantissa · 2^exponent and how far it may be off, relatively."""

    mantissa: float
    exponent: int
    error: float

    def times(self, other: Chance) -> Chance:
        """The chance of two independent events together."""
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


class Closed(NamedTuple):
    """A pattern's chances on both sides, and the range of ln P/P′ over all possible releases."""

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
    """A pattern that is impossible on one side, whatever is released; 0 if it is so on both."""
    ratio = inf if here.mantissa else -inf if there.mantissa else 0.0
    return Closed(here, there, ratio, ratio, error)


@dataclass(slots=True)
class Side:
    """The factors of every question for one database."""

    columns: SumColumns
    answers: tuple[int, ...]
    _bottoms: dict[int, Scaled] = field(default_factory=dict)
    _tops: dict[int, Scaled] = field(default_factory=dict)

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
class PatternBlock:
    """The pattern so far: the product of all factors, and of ⊥ alone if numbers are released."""

    product: Scaled
    bottoms: Scaled | None

    @classmethod
    def begin(cls, side: Side) -> PatternBlock:
        """Begin with a fresh ρ."""
        weights = side.columns.weights
        return cls(weights, None if side.columns.law.told == "bits" else weights)

    def with_bottom(self, side: Side, index: int) -> PatternBlock:
        """One more question, answered ⊥."""
        factor = side.bottom(index)
        return PatternBlock(
            self.product.times(factor), None if self.bottoms is None else self.bottoms.times(factor)
        )

    def with_top(self, side: Side, index: int) -> PatternBlock:
        """One more question, answered ⊤."""
        return PatternBlock(self.product.times(side.top(index)), self.bottoms)


def close(
    sides: tuple[Side, Side],
    blocks: tuple[PatternBlock, PatternBlock],
    tops: tuple[int, ...],
    questions: int,
) -> Closed:
    """Sum over z, and find the worst that can be released; ``tops`` are the ⊤ of this block."""
    here, there = (chance(block.product) for block in blocks)
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
    size = max(
        abs(end) if isfinite(end) else 0.0 for end in (lowest, highest)
    )  # ∞ has no rounding error
    error += 16 * UNIT * (size + 2 + len(tops))
    return Closed(here, there, lowest, highest, error)


def chance(product: Scaled) -> Chance:
    """The sum of all columns, and how far it may be off: rounding, and what was cut off."""
    total = product[1:-1].total()
    mantissa, exponent = float(total.mantissa), int(total.exponent)
    cut_off = product[[0, -1]].total()
    error = total.relative_error
    if cut_off.mantissa > 0:
        shift = int(cut_off.exponent) - exponent
        if not mantissa or shift > 1000:
            return Chance(mantissa, exponent, inf)
        error += float(np.ldexp(cut_off.mantissa / mantissa, max(shift, -1000)))
    return Chance(mantissa, exponent, error)


# The worst that can be released with the bits: gaps, or the numbers compared ----------------------


def comparison(
    sides: tuple[Side, ...], blocks: tuple[PatternBlock, ...], tops: tuple[int, ...]
) -> tuple[float, float]:
    """The supremum of ln P/P′ if q + ν is released for each ⊤, and its error.

    With numbers y ≥ T + z released, P = ∏_⊤ Pr[ν = yᵢ − qᵢ] · Σ_{z ≤ min y − T} Pr[ρ = z] ∏_⊥ …: a
    partial sum, up to t = min y.  For each t, the ⊤ that has it is fixed there and the others
    take whatever y ≥ t is worst.
    """
    columns = sides[0].columns
    assert isinstance(columns.law.question_noise, Laplace)
    scale = float(columns.law.question_noise.scale)
    answers = [[float(side.answers[index] - columns.threshold) for side in sides] for index in tops]
    terms = [block.bottoms[1:-1] for block in blocks if block.bottoms is not None]
    sums = [part.running()[columns.ends - 1] for part in terms]
    t = columns.z[columns.ends].astype(np.float64)
    largest = float(_worst_released(t, log_ratio(sums[0], sums[1]), answers, scale).max())
    error = sum(
        _sum_error(sums[side], block.bottoms[0]) + _sum_error(sums[side][-1:], block.bottoms[-1])
        for side, block in enumerate(blocks)
        if block.bottoms is not None
    )
    return largest, error


def _worst_released(
    t: NDArray[np.float64],
    ratios: NDArray[np.float64],
    answers: list[list[float]],
    scale: float,
) -> NDArray[np.float64]:
    """The largest ln P/P′ if the least number released is t, where the sums have these ratios."""
    free = np.zeros_like(t)
    least_given_up = np.full_like(t, inf)
    for q, other in answers:
        at_t = np.abs(t - other) - np.abs(t - q)
        best = np.full_like(t, q - other) if other < q else at_t  # falls or rises with y
        free += best
        least_given_up = np.minimum(least_given_up, best - at_t)
    impossible = np.isnan(ratios)  # on both sides
    return np.where(impossible, -inf, ratios) + (free - least_given_up) / scale


def _sum_error(sums: Scaled, cut_off: Scaled) -> float:
    """How far logarithms of sums may be off if that much is missing at their end."""
    missing = 0.0
    if cut_off.mantissa > 0 and len(sums.mantissa):
        missing = exp(min(float(log_ratio(cut_off, sums).max()), 700.0))
    return of_logarithm(sums.relative_error + missing)


def gaps(
    sides: tuple[Side, Side],
    blocks: tuple[PatternBlock, PatternBlock],
    tops: tuple[int, ...],
    questions: int,
) -> tuple[float, float, float]:
    """The range of ln P/P′ if the gap g = q + ν − T − z is released for each ⊤, and its error.

    ν = g + T + z − q must not be negative, and its law is then ∝ e^(−(g + T + z − q)/b).  So P is
    S(z₀) = Σ_{z ≥ z₀} Pr[ρ = z] e^(−mz/b) ∏_⊥ …, for m ⊤ and z₀ = max(qᵢ − T − gᵢ), times a
    constant e^(Σq/b); P′ is the same with S′(z₀′) and q′.
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
    ratios = [
        log_ratio(sums[0][np.maximum(z - first, 0)], sums[1][np.maximum(moved_z - first, 0)])
        for z, moved_z in gap_starts(here, moved, int(columns.bend))
    ]
    if columns.law.threshold_noise.left and questions == len(tops):
        ratios.append(_limits_of_gaps(columns.law, moved))
    losses = np.concatenate(ratios)
    losses = losses[~np.isnan(losses)] - float(moved.sum()) / float(
        columns.law.question_noise.scale
    )
    return float(losses.min()), float(losses.max()), error


def gap_starts(here: Places, moved: Places, bend: int) -> Iterator[tuple[Places, Places]]:
    """All pairs (z₀, z₀′) at which the gaps of a block can make its two sums begin.

    ``here`` are the qᵢ − T of its ⊤, ``moved`` the moves mᵢ = qᵢ′ − qᵢ, and ``bend`` is no larger
    than any q − T or q′ − T of the stream, nor than 0.

    gᵢ takes every value from 0 on, so aᵢ = qᵢ − T − gᵢ is any whole number ≤ qᵢ − T, and
    z₀ = max aᵢ, z₀′ = max(aᵢ + mᵢ).  If the i-th has the largest, aᵢ = z₀, then the others have
    aⱼ ≤ min(z₀, qⱼ − T): so z₀′ is at least z₀ + mᵢ, at most max(min(z₀, qⱼ − T) + mⱼ), and every
    whole number in between, as the aⱼ that decides it may go down in steps of 1.

    z₀ has no least value, but it is enough to go down to bend − max(mᵢ, 0).  There and below, both
    z₀ and z₀′ ≤ z₀ + max mᵢ are at most ``bend``, where ⊥ is impossible (ν ≥ 0 would have to be
    less than T + z − q ≤ 0).  So a sum over a block with a ⊥, or with a ρ that is never negative,
    has no term left of ``bend``: S(z₀) = S(bend), S′(z₀′) = S′(bend), the same ratio for all of
    them.  It is listed, since bend − max(mᵢ, 0) ≤ qᵢ − T for every i.  Without ⊥, and with a ρ
    that may be negative, see `_limits_of_gaps`.
    """
    lowest = bend - max(int(moved.max()), 0)
    for most, least_shift in zip(here.tolist(), moved.tolist(), strict=True):
        z = np.arange(lowest, most + 1)
        reachable = (np.minimum(z[:, None], here) + moved).max(axis=1)
        for shift in range(least_shift, int(moved.max()) + 1):
            allowed = z[z + shift <= reachable]
            yield allowed, allowed + shift


def _limits_of_gaps(law: StreamLaw, moved: Places) -> NDArray[np.float64]:
    """Where S(z₀)/S(z₀ + s) tends to as z₀ falls, for a block of ⊤ alone and a ρ with a left tail.

    S′ is S then.  Left of 0 its terms are ∝ x^z, x = e^(1/a − m/b), and S(z) = A + B x^z (or
    A − B z if x = 1): S(z)/S(z + s) is a Möbius function of x^z (of z), monotone on this side of
    its pole.  So its extremes for z₀ ≤ bend − max(mᵢ, 0) are its value there, which `gap_starts`
    lists, and its limit: x^(−s) if x < 1, and 1 otherwise.  Any s from min mᵢ to max mᵢ is
    reached, and the limit's logarithm is linear in s.
    """
    rate = len(moved) / law.question_noise.scale - 1 / law.threshold_noise.left
    falls = rate if rate > 0 else Fraction(0)
    return np.array([float(falls * int(shift)) for shift in (moved.min(), moved.max())])
