"""The law of a sum of privacy losses: enumerated, or on a grid, with bounds from both sides.

No ε-private mechanism composes worse than randomised response, whose loss is ε with probability
p = e^ε/(1 + e^ε) and −ε otherwise (Kairouz, Oh and Viswanath).  So for mechanisms that differ
(Murtagh and Vadhan, 2016)

    δ(ε) = E[(1 − e^(ε − L))₊],   L = Σ ± εᵢ, with independent signs,

and n equal mechanisms have a binomial number of losses +ε.  All numbers here are positive and are
computed by products and sums alone; `roundings` counts these, so that every result is right up to
a factor of 1 ± 2 · roundings · 2⁻⁵³.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from itertools import product
from math import e, exp, expm1, floor, inf, lcm, prod, sqrt

import numpy as np
import numpy.typing as npt

from tacit.numerics.binomial import digits_for, pair, probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDING = 2.0**-53

UNDERFLOW = 1e-280
"""More than underflow can hide, here as in `tacit.numerics.binomial`."""

_MOST_ATOMS = 1 << 18
_CHUNK = 1 << 16


# A few mechanisms, or few kinds of them: every value of L, with its probability.


@dataclass(frozen=True, slots=True)
class LossGroup:
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


def group(each: Fraction, many: int) -> LossGroup:
    """The law of n equal mechanisms, except for probabilities that underflow."""
    if many == 1:
        less = exp(-float(each))  # relative error: one rounding, and ε times that of ε
        return LossGroup(each, 1, 0, np.array([less, 1.0]) / (1 + less), 6 + 2 * int(each))
    with localcontext(digits_for(many * 2 * each, each)):
        of = pair(each, each)
        anchor = min(many, int((many + 1) * of.high))
        start, odds = float(probability(many, anchor, of)), float(of.odds)
    above = _walk(many, anchor, many - anchor, odds)
    below = _walk(many, many - anchor, anchor, 1 / odds)
    chances = start * np.concatenate((below[::-1], [1.0], above))
    # A ratio and its product have an error of four roundings, the start one of 10⁻¹⁴.
    return LossGroup(each, many, anchor - len(below), chances, 5 * len(chances) + 100)


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
    """Every possible sum of the losses of a few groups."""

    losses: Floats
    chances: Floats
    blur: float  # a bound on the rounding error of a loss minus ε
    roundings: int

    def upper(self, epsilon: Fraction) -> float:
        """An upper bound on δ(ε)."""
        return self._sum(epsilon, self.blur) * (1 + 2 * self.roundings * ROUNDING) + UNDERFLOW

    def lower(self, epsilon: Fraction) -> float:
        """A lower bound on δ(ε)."""
        total = self._sum(epsilon, -self.blur) * (1 - 2 * self.roundings * ROUNDING)
        return max(total - UNDERFLOW, 0.0)

    def _sum(self, epsilon: Fraction, blur: float) -> float:
        over = self.losses - float(epsilon) + blur
        return float(-(self.chances @ np.expm1(-np.maximum(over, 0.0))))


def enumerated(pure: Sequence[tuple[Fraction, int]]) -> Enumerated | None:
    """All sums of the losses of (ε, how many); None if there are too many."""
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


# Many mechanisms that differ: the law on a grid.
#
# δ(ε) = E[(1 − e^(ε − L))₊] is the mean of functions that are convex in e^(−L).  So if an atom
# between two grid points is split between them such that E[e^(−L)] stays the same, δ can only grow
# (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, 2022: forgetting which of the two it was gives
# the atom back).  This is closer than rounding every εᵢ up, as Murtagh and Vadhan do: the error is
# proportional to the square of the grid's step, and `OnGrid` bounds it.


_BLOCK_ATOMS = 4  # mechanisms are split in pairs: as fast as one by one, and half the error


@dataclass(frozen=True, slots=True)
class LossBlock:
    """The law of a few groups together, on the grid."""

    cells: list[int]
    chances: Floats
    centre: int  # the cell of its mean
    split: bool  # whether any atom lay between two cells
    roundings: int

    @property
    def square(self) -> float:
        """E[x²], x counted in cells from the centre."""
        return float(self.chances @ (np.array(self.cells, dtype=np.float64) - self.centre) ** 2)

    def log_moment(self, tilt: float) -> float:
        """About ln E[e^(tilt·x)], x counted in cells from the centre; at least 0."""
        away = np.array(self.cells, dtype=np.float64) - self.centre
        peak = float((tilt * away).max())
        return max(peak + float(np.log(self.chances @ np.exp(tilt * away - peak))), 0.0)


def blocks(groups: Sequence[LossGroup], step: Fraction) -> list[LossBlock]:
    """The groups on the grid, single mechanisms in pairs, the widest law first."""
    found, waiting = [], []
    for one in sorted(groups, key=lambda one: -len(one.chances)):
        waiting.append(one)
        if prod(len(other.chances) for other in waiting) >= _BLOCK_ATOMS:
            found.append(_block(waiting, step))
            waiting = []
    return [*found, _block(waiting, step)] if waiting else found


def _block(groups: Sequence[LossGroup], step: Fraction) -> LossBlock:
    h, sizes = float(step), [one.each / step for one in groups]
    whole = lcm(*(size.denominator for size in sizes))
    units = [size.numerator * (whole // size.denominator) for size in sizes]
    cells: dict[int, float] = {}
    split, mean, count = False, 0.0, 0
    for atoms in product(*(zip(one.signs, one.chances.tolist(), strict=True) for one in groups)):
        place = sum(sign * unit for (sign, _), unit in zip(atoms, units, strict=True))
        low, part = divmod(place, whole)
        chance = prod(chance for _, chance in atoms)
        mean, count = mean + place / whole * chance, count + 1
        down = 1.0
        if part:  # each weight from its own difference, so that neither loses digits
            split, x = True, part / whole * h
            up, down = expm1(-x), exp(-x) * expm1((part - whole) / whole * h)
            cells[low + 1] = cells.get(low + 1, 0.0) + chance * (up / expm1(-h))
            down /= expm1(-h)
        cells[low] = cells.get(low, 0.0) + chance * down
    places = sorted(cells)
    roundings = sum(one.roundings + 1 for one in groups) + 2 * count + 16
    chances = np.array([cells[place] for place in places])
    return LossBlock(places, chances, round(mean), split, roundings)


# The law of a sum of blocks, within a window of the grid.
#
# Only sums near the mean, which moves from block to block, are kept.  What rises above the window
# counts in full towards δ.  What falls below it matters only if it rises again, which Chernoff's
# bound shows to be unlikely.  Everything else is a sum of products of positive floats.


_TILTS = (0.5, 1.0, 1.5, 2.5)


@dataclass(frozen=True, slots=True)
class Window:
    """The law of a sum of blocks, from `below` cells below the sum of their centres upwards."""

    step: Fraction
    below: int
    chances: Floats
    parts: tuple[LossBlock, ...] = ()
    bottom: int = 0  # the cell of the first chance
    splits: int = 0  # how many blocks were split between cells
    risen: float = 0.0  # the chance that a sum rose above the window
    fell: float = 0.0  # the chance that it fell below
    roundings: int = 0

    @classmethod
    def empty(cls, step: Fraction, below: int, above: int) -> Window:
        """The law of no blocks: the loss is 0."""
        chances = np.zeros(below + above + 1)
        chances[below] = 1.0
        return cls(step, below, chances, bottom=-below, roundings=len(chances) + 16)

    def plus(self, parts: Sequence[LossBlock]) -> Window:
        """The law with more blocks."""
        law, risen, fell, roundings = self.chances, self.risen, self.fell, self.roundings
        for part in parts:
            places = [cell - part.centre for cell in part.cells]
            terms, add = places[-1] - places[0] + 1, _add_kernel
            if cell_by_cell(len(places), terms):
                terms, add = len(places), _add_cells
            law, up, down = add(law, places, part.chances)
            risen, fell = risen + up, fell + down
            roundings += part.roundings + terms + 2
        return Window(
            self.step,
            self.below,
            law,
            parts=(*self.parts, *parts),
            bottom=self.bottom + sum(part.centre for part in parts),
            splits=self.splits + sum(part.split for part in parts),
            risen=risen,
            fell=fell,
            roundings=roundings,
        )

    @property
    def slack(self) -> float:
        """All relative rounding errors together."""
        return 2 * self.roundings * ROUNDING

    def tilts(self) -> list[tuple[float, float]]:
        """Pairs (tilt, Σ log moments) for Chernoff's bound on what fell below."""
        spread = sum(part.square for part in self.parts)
        tilts = [factor * self.below / max(spread, 1.0) for factor in _TILTS]
        return [(tilt, sum(part.log_moment(tilt) for part in self.parts)) for tilt in tilts]


def cell_by_cell(cells: int, width: int) -> bool:
    """Whether a block's cells are added one by one; in a long kernel each is six times as fast."""
    return cells <= 16 or 6 * cells <= width


def _add_cells(law: Floats, places: list[int], chances: Floats) -> tuple[Floats, float, float]:
    """The law after one more block, and what rose above the window and fell below it."""
    after, size, risen, fell = np.zeros_like(law), len(law), 0.0, 0.0
    for place, chance in zip(places, chances.tolist(), strict=True):
        shift = max(-size, min(place, size))
        if shift >= 0:
            after[shift:] += chance * law[: size - shift]
            risen += chance * float(law[size - shift :].sum())
        else:
            after[:shift] += chance * law[-shift:]
            fell += chance * float(law[:-shift].sum())
    return after, risen, fell


def _add_kernel(law: Floats, places: list[int], chances: Floats) -> tuple[Floats, float, float]:
    """The same for a block of many cells."""
    kernel = np.zeros(places[-1] - places[0] + 1)
    kernel[np.array(places) - places[0]] = chances
    used = np.flatnonzero(law)
    whole = np.convolve(law[used[0] : used[-1] + 1], kernel)  # plain sums of products
    start = -places[0] - int(used[0])  # where the window's bottom is in `whole`
    low, high = max(start, 0), max(min(start + len(law), len(whole)), 0)
    after = np.zeros_like(law)
    if low < high:
        after[low - start : high - start] = whole[low:high]
    return after, float(whole[high:].sum()), float(whole[:low].sum())


# How much the grid adds to δ, at most.
#
# Let L = Σ L_m be the true loss and L + Z the loss on the grid, where Z = Σ Z_m over the n blocks
# that were split.  Given all L_m, the Z_m are independent, E[e^(−Z_m)] = 1, and Z_m lies in an
# interval of length h around 0.  The grid adds E[D(L)] to δ(ε), where
#
#     D(l) = E[(1 − e^(ε − l − Z))₊ | L = l] − (1 − e^(ε − l))₊.
#
# (1 − e^(ε − l))₊ is a straight line in e^(−l) except for its corner at l = ε, so D is small unless
# Z reaches beyond the corner.  Let d = |l − ε|.
#
# - If l < ε, D(l) = E[(1 − e^(d − Z))₊] ≤ E[(Z − d)₊].
# - If l > ε, D(l) = E[(e^(−d − Z) − 1)₊] = E′[(e^(−d) − e^Z)₊] ≤ E′[(−Z − d)₊], with the mean E′
#   under the law with density e^(−Z).
#
# Both have the form E[(W − d)₊] for a sum W of n independent terms in intervals of length h.  The
# mean of each term is at most e^h h²/8: as a function of where the atom lay between its two cells,
# it is 0 at both ends and bends by at most h/(1 − e^(−h)) ≤ e^h.  Let μ = n e^h h²/8,
# v = n h²/4 ≥ Var W and y = d − μ.  By the inequality of Cauchy and Schwarz; and by Hoeffding's
# lemma, E[e^(s(W − μ))] ≤ e^(s²v/2), with x₊ ≤ e^(sx − 1)/s at s = y/v,
#
#     E[(W − d)₊] ≤ b(d) = min{ (√(v + y²) − y)/2,  v/(e·y) · e^(−y²/(2v)) if y > 0 },
#
# which decreases in d.  The law of L is not known, but that of L + Z is.  With t = μ + h√n, |Z| ≤ t
# has a probability of at least 1 − 2e^(−2) > 0.729 whatever L is (Hoeffding), and then |L − ε| ≥
# |L + Z − ε| − t.  Therefore
#
#     E[D(L)] ≤ E[b(|L − ε|)] ≤ E[b((|L + Z − ε| − t)₊)] / 0.729,
#
# which is of the order of h² n times the density of the loss at ε.


_LIKELY = 0.729
_OUTWARD = 1 + 1e-8  # for the roundings on the way


@dataclass(frozen=True, slots=True)
class OnGrid:
    """Bounds on the δ(ε) of a law on a grid."""

    law: Window
    tilts: list[tuple[float, float]]

    @classmethod
    def of(cls, law: Window) -> OnGrid:
        """The bounds that this law gives."""
        return cls(law, law.tilts())

    def upper(self, epsilon: Fraction) -> float:
        """An upper bound on δ(ε)."""
        total = self._sum(epsilon) + self.law.risen
        return total * (1 + self.law.slack) + self._fallen(epsilon) + UNDERFLOW

    def lower(self, epsilon: Fraction) -> float:
        """A lower bound on δ(ε)."""
        total = self._sum(epsilon) * (1 - self.law.slack)
        return max(total - self._added(epsilon) - UNDERFLOW, 0.0)

    def _sum(self, epsilon: Fraction) -> float:
        law = self.law
        first = floor(epsilon / law.step) + 1  # the first cell whose loss exceeds ε
        skip = first - law.bottom
        chances = law.chances[max(skip, 0) :]
        cells = float(first - epsilon / law.step) + max(-skip, 0) + np.arange(len(chances))
        return float(-(chances @ np.expm1(-float(law.step) * cells)))

    def _fallen(self, epsilon: Fraction) -> float:
        """A bound on the chance that a sum fell below the window and still exceeds ε in the end."""
        away = float(epsilon / self.law.step - self.law.bottom)
        least = min(moment - tilt * away for tilt, moment in self.tilts)
        return min(exp(min(least + 1e-6, 0.0)), self.law.fell * (1 + self.law.slack))

    def _added(self, epsilon: Fraction) -> float:
        """A bound on what the grid added: E[b((|L + Z − ε| − t)₊)] / 0.729."""
        law, h, n = self.law, float(self.law.step), self.law.splits
        if not n:
            return 0.0
        if h > 1:  # too coarse for any bound
            return inf
        drift = n * exp(h) * h * h / 8

        def bound(away: Floats) -> Floats:  # b((d − t)₊)
            return _past(np.maximum(away - drift - h * sqrt(n), 0.0) - drift, n * h * h / 4)

        away = np.abs(np.arange(len(law.chances)) - float(epsilon / law.step - law.bottom)) * h
        half_way = (epsilon + law.bottom * law.step) / 2
        most, far = (float(x) for x in bound(np.array([0.0, float(epsilon - half_way)])))
        # A sum that fell below the window ends above the middle between it and ε, or far from ε.
        lost = most * (law.risen + self._fallen(half_way)) + far * min(law.fell, 1.0)
        return (float(law.chances @ bound(away)) + lost) * _OUTWARD * (1 + law.slack) / _LIKELY


def _past(y: Floats, v: float) -> Floats:
    """The bound b as a function of y = d − μ."""
    root = np.sqrt(v + y * y)
    near = np.where(y > 0, v / (root + np.abs(y)), root - y) / 2
    positive = np.maximum(y, 1e-300)
    far = v / (e * positive) * np.exp(-y * y / (2 * v))
    return np.where(y > 0, np.minimum(near, far), near)
