"""How likely one group of a stream answers every question right: an integral over ρ.

A group draws one threshold noise ρ and compares all its questions with T + s + ρ.  Given ρ the
answers are independent, so that

    Pr[all right] = ∫ f(z) · Pr[ν < z + low]^below · Pr[ν ≥ z − high]^tops dz

for questions `low` under and `high` above the shifted threshold.  Both tails of ν and the
density f of ρ are log-concave, for Laplace and for one-sided noise alike; so is the integral in
(low, high) (Prékopa), which is what makes the half-gap easy to find.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p

import numpy as np
from numpy.typing import NDArray

from tacit.book.recipe import Sides

Floats = NDArray[np.float64]

_TAIL = 40.0  # what ρ does beyond 40 of its scales has probability e^(−40)
_GRADED = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 7.0, 11.0, 17.0, 26.0, _TAIL])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True, slots=True)
class Group:
    """One ρ, and what is compared with it: `below` questions under T and `tops` above."""

    noise: Sides
    threshold_scale: float  # of ρ
    question_scale: float  # of ν
    below: float  # the average over the groups of a stream, hence not always whole
    tops: int

    def log_success(self, low: float, high: float) -> tuple[float, float, float]:
        """The log of Pr[every answer is right], and how fast it grows with `low` and `high`."""
        z, weight = self._nodes(low, high)
        log_below, slope_below = self._log_below((z + low) / self.question_scale)
        log_above, slope_above = self._log_above((z - high) / self.question_scale)
        log_right = self.below * log_below + self.tops * log_above
        failure = -float(weight @ np.expm1(log_right))  # exact where it is small
        largest = float(log_right.max())
        if largest == -inf:
            return -inf, 0.0, 0.0
        right = weight * np.exp(log_right - largest)
        mass = float(right.sum())
        return (
            log1p(-failure) if failure < 0.5 else log(mass) + largest,
            self.below * float(right @ slope_below) / mass / self.question_scale,
            self.tops * float(right @ slope_above) / mass / self.question_scale,
        )

    def _nodes(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Values of ρ to look at, and the probability that each stands for.

        Gauss–Legendre on panels that end at every kink and are graded where the integrand bends:
        at ρ = 0, where the questions below stop failing, and where the tops begin to.
        """
        rho, nu = self.threshold_scale, self.question_scale
        safe_low = nu * log(self.below + 1) - low
        cuts = [rho * _GRADED, safe_low + nu * _GRADED, safe_low - nu * _GRADED[:5]]
        cuts += [high + nu / self.tops * _GRADED, np.array([-low, rho * _TAIL])]
        if self.noise == "two-sided":
            safe_high = high - nu * log(self.tops)
            cuts += [safe_high - nu * _GRADED, safe_high + nu * _GRADED[:5], -rho * _GRADED]
        first = 0.0 if self.noise == "one-sided" else -rho * _TAIL
        edges = np.concatenate(cuts)
        edges = np.unique(edges[(edges >= first) & (edges <= rho * _TAIL)])  # no panel is empty
        half = (edges[1:, None] - edges[:-1, None]) / 2
        z = (edges[:-1, None] + half * (1 + _NODES)).ravel()
        density = np.exp(-np.abs(z) / rho) / (rho if self.noise == "one-sided" else 2 * rho)
        return z, (half * _WEIGHTS).ravel() * density

    def _log_below(self, x: Floats) -> tuple[Floats, Floats]:
        """The logarithm of Pr[ν < x] and its slope, for ν of scale 1."""
        if self.noise == "two-sided":
            return _log_laplace(x)
        positive = np.maximum(x, 1e-300)
        outside, inside = np.exp(-positive), -np.expm1(-positive)
        # Of two equal forms each is exact on its side: among 10²⁰ questions, 10⁻²⁰ matters.
        logarithm = np.where(outside < 0.5, np.log1p(-np.minimum(outside, 0.5)), np.log(inside))
        never = x <= 0
        return np.where(never, -inf, logarithm), np.where(never, 0, outside / inside)

    def _log_above(self, x: Floats) -> tuple[Floats, Floats]:
        """The logarithm of Pr[ν ≥ x] and minus its slope, for ν of scale 1."""
        if self.noise == "two-sided":
            return _log_laplace(-x)
        return -np.maximum(x, 0), (x > 0).astype(np.float64)


def _log_laplace(x: Floats) -> tuple[Floats, Floats]:
    half = np.exp(-np.abs(x)) / 2
    return np.where(x >= 0, np.log1p(-half), x - log(2)), np.where(x >= 0, half / (1 - half), 1)
