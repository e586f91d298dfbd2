"""The law of a privacy loss as a list of atoms: few mechanisms, or few kinds of them, exactly.

No ε-private mechanism composes worse than randomised response, whose loss is ε with probability
p = e^ε/(1 + e^ε) and −ε otherwise (Kairouz, Oh and Viswanath).  So for mechanisms that differ
(Murtagh and Vadhan, 2016)

    δ(ε) = E[(1 − e^(ε − L))₊],   L = Σ ± εᵢ, with independent signs.

n equal mechanisms have a binomial number of losses +ε.  Every number here is positive and is made
by products and sums alone; `roundings` counts them, so that all of it is right but for a factor
1 ± 2 · roundings · 2⁻⁵³.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from math import exp, prod

import numpy as np
import numpy.typing as npt

from tacit.book.composing.binomial_term import digits_for, pair, probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDING = 2.0**-53
UNDERFLOWN = 1e-280
"""More than all that underflow can hide, here as in `binomial_tail`."""

_MOST_ATOMS = 1 << 18
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Group:
    """n equal mechanisms: the loss is (2j − n)ε with probability chances[j − first]."""

    each: Fraction
    many: int
    first: int
    chances: Floats
    roundings: int

    @property
    def signs(self) -> list[int]:
        """The 2j − n, from the lowest loss to the highest."""
        low = 2 * self.first - self.many
        return list(range(low, low + 2 * len(self.chances), 2))


def group(each: Fraction, many: int) -> Group:
    """The law of n equal mechanisms; what is left out underflows."""
    if many == 1:
        less = exp(-float(each))  # right but for a rounding, and ε's own of ε
        return Group(each, 1, 0, np.array([less, 1.0]) / (1 + less), 6 + 2 * int(each))
    with localcontext(digits_for(many * 2 * each, each)):
        of = pair(each, each)
        anchor = min(many, int((many + 1) * of.high))
        start, odds = float(probability(many, anchor, of)), float(of.odds)
    above = _walk(many, anchor, many - anchor, odds)
    below = _walk(many, many - anchor, anchor, 1 / odds)
    chances = start * np.concatenate((below[::-1], [1.0], above))
    # A ratio and its product are right but for four roundings, the start but for 10⁻¹⁴.
    return Group(each, many, anchor - len(below), chances, 5 * len(chances) + 100)


def _walk(many: int, start: int, steps: int, odds: float) -> Floats:
    """Bin(start + d)/Bin(start) for d = 1, 2, ... as far as floats reach."""
    chunks, last, done = [], 1.0, 0
    while done < steps and last > 1e-305:
        distance = np.arange(done, min(done + _CHUNK, steps), dtype=np.float64)
        ratios = (many - start - distance) / (start + distance + 1) * odds
        chunks.append(last * np.cumprod(ratios))
        last, done = float(chunks[-1][-1]), done + len(distance)
    terms = np.concatenate(chunks) if chunks else np.zeros(0)
    return terms[: int(np.searchsorted(-terms, -1e-305))]


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Every sum that the losses of a few groups can come to."""

    losses: Floats
    chances: Floats
    blur: float  # how far off a loss, less ε, may be for its own rounding
    roundings: int

    def upper(self, epsilon: Fraction) -> float:
        """An upper bound of δ(ε)."""
        return self._sum(epsilon, self.blur) * (1 + 2 * self.roundings * ROUNDING) + UNDERFLOWN

    def lower(self, epsilon: Fraction) -> float:
        """A lower bound of δ(ε)."""
        total = self._sum(epsilon, -self.blur) * (1 - 2 * self.roundings * ROUNDING)
        return max(total - UNDERFLOWN, 0.0)

    def _sum(self, epsilon: Fraction, blur: float) -> float:
        over = self.losses - float(epsilon) + blur
        return float(-(self.chances @ np.expm1(-np.maximum(over, 0.0))))


def enumerated(pure: Sequence[tuple[Fraction, int]]) -> Enumerated | None:
    """All sums of the losses of (ε, how many), if there are not too many."""
    if prod(min(many, _MOST_ATOMS) + 1 for _, many in pure) > _MOST_ATOMS:
        return None
    groups = [group(*one) for one in pure]
    losses, chances = np.zeros(1), np.ones(1)
    for one in groups:
        steps = np.array(one.signs, dtype=np.float64) * float(one.each)
        losses = (losses[:, None] + steps).ravel()
        chances = (chances[:, None] * one.chances).ravel()
    largest = float(sum(many * each for each, many in pure))
    # Each loss is a sum of products, and ε, at most the largest loss, is rounded once.
    blur = 2 * ROUNDING * (3 * len(groups) + 4) * largest
    roundings = sum(one.roundings + 2 for one in groups) + len(losses) + 4
    return Enumerated(losses, chances, blur, roundings)
