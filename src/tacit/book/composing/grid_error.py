"""How far the δ of a loss on a grid is from the truth, at most.

Let L = Σ L_m be the true loss and L + Z that on the grid: Z = Σ Z_m over the n blocks that were
split.  Given all L_m these are independent, E[e^(−Z_m)] = 1, and Z_m lies in an interval of length
h around 0.  What the grid adds to δ(ε) is E[D(L)],

    D(l) = E[(1 − e^(ε − l − Z))₊ | L = l] − (1 − e^(ε − l))₊.

(1 − e^(ε − l))₊ is a straight line in e^(−l) but for its corner at l = ε, so D is small unless Z
reaches over the corner.  Let d = |l − ε|.

- If l < ε, D(l) = E[(1 − e^(d − Z))₊] ≤ E[(Z − d)₊].
- If l > ε, D(l) = E[(e^(−d − Z) − 1)₊] = E′[(e^(−d) − e^Z)₊] ≤ E′[(−Z − d)₊], under the law that
  has the density e^(−Z).

Either is E[(W − d)₊] for a sum W of n independent terms in intervals of length h.  The mean of each
is at most e^h h²/8: as a function of where between its two cells an atom lay, it is 0 at both ends
and bends by at most h/(1 − e^(−h)) ≤ e^h.  Let μ = n e^h h²/8, v = n h²/4 ≥ Var W, y = d − μ.  By
Cauchy and Schwarz; and by Hoeffding's lemma, E[e^(s(W − μ))] ≤ e^(s²v/2), with x₊ ≤ e^(sx − 1)/s at
s = y/v,

    E[(W − d)₊] ≤ b(d) = min{ (√(v + y²) − y)/2,  v/(e·y) · e^(−y²/(2v)) if y > 0 },

which falls with d.  The law of L is not known, but that of L + Z is.  With t = μ + h√n, |Z| ≤ t has
a probability of at least 1 − 2e^(−2) > 0.729 whatever L is (Hoeffding), and then
|L − ε| ≥ |L + Z − ε| − t.  Therefore

    E[D(L)] ≤ E[b(|L − ε|)] ≤ E[b((|L + Z − ε| − t)₊)] / 0.729,

which is of the order of h² n times the density of the loss at ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import e, exp, floor, inf, sqrt

import numpy as np

from tacit.book.composing.loss_atoms import UNDERFLOWN, Floats
from tacit.book.composing.loss_window import Window

_LIKELY = 0.729
_OUTWARD = 1 + 1e-8  # for all that is rounded on the way


@dataclass(frozen=True, slots=True)
class OnGrid:
    """δ(ε) of a law on a grid, from both sides."""

    law: Window
    tilts: list[tuple[float, float]]

    @classmethod
    def of(cls, law: Window) -> OnGrid:
        """Both bounds of this law."""
        return cls(law, law.tilts())

    def upper(self, epsilon: Fraction) -> float:
        """An upper bound of δ(ε)."""
        total = self._sum(epsilon) + self.law.risen
        return total * (1 + self.law.slack) + self._fallen(epsilon) + UNDERFLOWN

    def lower(self, epsilon: Fraction) -> float:
        """A lower bound of δ(ε)."""
        total = self._sum(epsilon) * (1 - self.law.slack)
        return max(total - self._added(epsilon) - UNDERFLOWN, 0.0)

    def _sum(self, epsilon: Fraction) -> float:
        law = self.law
        first = floor(epsilon / law.step) + 1  # the first cell whose loss exceeds ε
        skip = first - law.bottom
        chances = law.chances[max(skip, 0) :]
        cells = float(first - epsilon / law.step) + max(-skip, 0) + np.arange(len(chances))
        return float(-(chances @ np.expm1(-float(law.step) * cells)))

    def _fallen(self, epsilon: Fraction) -> float:
        """A bound of the chance that a sum fell below the window and still comes to exceed ε."""
        away = float(epsilon / self.law.step - self.law.bottom)
        least = min(moment - tilt * away for tilt, moment in self.tilts)
        return min(exp(min(least + 1e-6, 0.0)), self.law.fell * (1 + self.law.slack))

    def _added(self, epsilon: Fraction) -> float:
        """What the grid may have added: E[b((|L + Z − ε| − t)₊)] / 0.729."""
        law, h, n = self.law, float(self.law.step), self.law.splits
        if not n:
            return 0.0
        if h > 1:  # too coarse to tell
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
