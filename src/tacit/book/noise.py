"""Families of noise, as values: the law of each, and how it is drawn on the grid.

A stream draws one threshold noise ρ for each group of tops and compares each question with fresh
noise ν; the `Recipe` sets their scales.  A recipe's promise rests on three properties of its
family, for noise of scale b:

- a shift by x, in any direction that the proof uses, multiplies the probability of ρ by at least
  e^(−x/b) (Laplace noise: both directions; one-sided noise: to the right only);
- the tail G(x) = Pr[ν ≥ x] is at most e^(y/b) G(x + y) for every y ≥ 0;
- both are log-concave, which makes the half-gap easy to compute.

To add a family, write how it is drawn (`GridNoise`) and its law (`NoiseFamily`), prove these
properties, and list it in `FAMILIES`: recipes, mechanisms, plans and half-gaps need nothing else.
The word of a family is stored in budget files and never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import one_of
from tacit.numerics import certified

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]

__all__ = ["FAMILIES", "ONE_SIDED", "TWO_SIDED", "GridNoise", "NoiseFamily", "family_of"]


# How noise is drawn, in grid steps -------------------------------------------------------------


class GridNoise(ABC):
    """Noise of one family and one scale, in whole grid steps."""

    __slots__ = ("scale",)

    def __init__(self, scale: Fraction) -> None:
        self.scale = scale

    @abstractmethod
    def draw(self, coins: Coins) -> int:
        """One draw."""

    @abstractmethod
    def reaches(self, distance: int, coins: Coins) -> bool:
        """Whether fresh noise is at least `distance` steps."""

    @abstractmethod
    def reach(self, distances: Steps, coins: Coins) -> NDArray[np.bool_]:
        """The same for many distances, with independent noise for each."""

    def excess(self, distance: int, coins: Coins) -> int | None:
        """How far noise that reached this distance exceeds it; None if that may not be released."""
        return None


class LaplaceSteps(GridNoise):
    """Discrete Laplace noise, as in the book and in Lyu, Su and Li (2017).

    Theorem 3.23 holds unchanged on the grid: its proof shifts by Δ and 2Δ, which are whole numbers
    of steps.
    """

    __slots__ = ()

    def draw(self, coins: Coins) -> int:
        """A Laplace draw."""
        return coins.laplace(self.scale)

    def reaches(self, distance: int, coins: Coins) -> bool:
        """A Laplace draw, compared."""
        return coins.laplace(self.scale) >= distance

    def reach(self, distances: Steps, coins: Coins) -> NDArray[np.bool_]:
        """Laplace draws, compared."""
        return coins.laplaces(self.scale, len(distances)) >= distances


class GeometricSteps(GridNoise):
    """One-sided noise: never negative, and memoryless (`tacit.book.one_sided`)."""

    __slots__ = ("_rate",)

    def __init__(self, scale: Fraction) -> None:
        super().__init__(scale)
        self._rate = 1 / scale  # the tail falls by e^(−rate) a step

    def draw(self, coins: Coins) -> int:
        """A geometric draw."""
        return coins.geometric(self.scale)

    def reaches(self, distance: int, coins: Coins) -> bool:
        """One exact coin: no noise is ever added to the value."""
        return coins.bernoulli_exp_steps(distance, self._rate)

    def reach(self, distances: Steps, coins: Coins) -> NDArray[np.bool_]:
        """One exact coin for each."""
        return coins.bernoulli_exps(distances, self._rate)

    def excess(self, distance: int, coins: Coins) -> int:
        """ν is memoryless: once it has reached a distance, its excess has the law of a fresh ν."""
        return max(-distance, 0) + coins.geometric(self.scale)


# The law, from which half-gaps are computed ----------------------------------------------------


@dataclass(frozen=True)
class NoiseFamily(ABC):
    """A family of noise; its laws are those of the continuous noise of scale 1."""

    word: str  # as it is stored
    title: str  # the name of a recipe that spends all of its ε with this noise
    both_sides: bool  # whether it can be negative
    tells_gap: bool  # whether a ⊤ comes with its distance above the noisy threshold

    def __str__(self) -> str:
        return self.word

    @abstractmethod
    def on_grid(self, scale: Fraction) -> GridNoise:
        """Noise of this scale, in grid steps."""

    @abstractmethod
    def density(self, x: Floats) -> Floats:
        """The density at x, for values x that the noise can take."""

    @abstractmethod
    def log_below(self, x: Floats) -> tuple[Floats, Floats]:
        """The logarithm of Pr[ν < x], and its slope."""

    @abstractmethod
    def log_above(self, x: Floats) -> tuple[Floats, Floats]:
        """The logarithm of Pr[ν ≥ x], and minus its slope."""

    @abstractmethod
    def reaching(self, distance: int, rho: Fraction, nu: Fraction, bits: int) -> certified.Bounds:
        """Bounds on Pr[ν ≥ distance + ρ] on the grid, for scales of ρ and ν in steps.

        They converge as ``bits`` grow.
        """


class _TwoSided(NoiseFamily):
    def on_grid(self, scale: Fraction) -> GridNoise:
        return LaplaceSteps(scale)

    def density(self, x: Floats) -> Floats:
        found: Floats = np.exp(-np.abs(x)) / 2
        return found

    def log_below(self, x: Floats) -> tuple[Floats, Floats]:
        half = np.exp(-np.abs(x)) / 2
        return np.where(x >= 0, np.log1p(-half), x - log(2)), np.where(x >= 0, half / (1 - half), 1)

    def log_above(self, x: Floats) -> tuple[Floats, Floats]:
        return self.log_below(-x)

    def reaching(self, distance: int, rho: Fraction, nu: Fraction, bits: int) -> certified.Bounds:
        # ν − ρ is symmetric, so that Pr[ν − ρ ≥ d] = 1 − Pr[ν − ρ ≥ 1 − d].
        if distance < 1:
            low, high = self.reaching(1 - distance, rho, nu, bits)
            return 1 - high, 1 - low
        return _laplace_tail(distance, max(rho, nu), min(rho, nu), bits)


class _OneSided(NoiseFamily):
    def on_grid(self, scale: Fraction) -> GridNoise:
        return GeometricSteps(scale)

    def density(self, x: Floats) -> Floats:
        found: Floats = np.exp(-np.abs(x))
        return found

    def log_below(self, x: Floats) -> tuple[Floats, Floats]:
        positive = np.maximum(x, 1e-300)
        outside, inside = np.exp(-positive), -np.expm1(-positive)
        # Each of the two forms is accurate where it is used: among 10²⁰ questions, 10⁻²⁰ matters.
        logarithm = np.where(outside < 0.5, np.log1p(-np.minimum(outside, 0.5)), np.log(inside))
        never = x <= 0
        return np.where(never, -inf, logarithm), np.where(never, 0, outside / inside)

    def log_above(self, x: Floats) -> tuple[Floats, Floats]:
        return -np.maximum(x, 0), (x > 0).astype(np.float64)

    def reaching(self, distance: int, rho: Fraction, nu: Fraction, bits: int) -> certified.Bounds:
        # With p = e^(−1/ρ) and r = e^(−1/ν), the sum of (1−p)p^k r^max(d+k, 0) over k ≥ 0 is
        #     r^d (1−p)/(1−pr)  for d ≥ 0,   and   1 − p^(−d) p(1−r)/(1−pr)  for d ≤ 0.
        # The first falls in p and rises in r; the last fraction rises in p and falls in r.
        (p, p_up), (r, r_up) = _power(1, rho, bits), _power(1, nu, bits)
        if distance >= 0:
            low, high = _power(distance, nu, bits)
            return low * (1 - p_up) / (1 - p_up * r), high * (1 - p) / (1 - p * r_up)
        low, high = _power(-distance, rho, bits)
        return (
            1 - high * p_up * (1 - r) / (1 - p_up * r),
            1 - low * p * (1 - r_up) / (1 - p * r_up),
        )


def _power(steps: int, scale: Fraction, bits: int) -> certified.Bounds:
    """Bounds on e^(−steps/scale), 2^(−bits) apart or hardly more."""
    low, high = certified.exp_minus(steps / scale, bits)
    return Fraction(low, 1 << bits), min(Fraction(high, 1 << bits), Fraction(1))


def _laplace_tail(distance: int, wide: Fraction, narrow: Fraction, bits: int) -> certified.Bounds:
    """Bounds on Pr[the sum of two independent Laplace draws ≥ d], for d ≥ 1.

    With p = e^(−1/wide) and r = e^(−1/narrow), summing one draw's tail over the other's law gives

        (p^(d+1) (1−r)² (1+r) − r^(d+1) (1−p)² (1+p)) / ((1+p) (1+r) (1−pr) (p−r)),

    and its limit p^d (1 + p + 2p² + d(1−p²)) / (1+p)³ for p = r.
    """
    (p, p_up), (far, far_up) = _power(1, wide, bits), _power(distance, wide, bits)
    if wide == narrow:
        least = 1 + p + 2 * p**2 + distance * (1 - p_up**2)
        most = 1 + p_up + 2 * p_up**2 + distance * (1 - p**2)
        return far * least / (1 + p_up) ** 3, far_up * most / (1 + p) ** 3
    (r, r_up), (near, near_up) = _power(1, narrow, bits), _power(distance, narrow, bits)
    least = p * far * (1 - r_up) ** 2 * (1 + r) - r_up * near_up * (1 - p) ** 2 * (1 + p_up)
    most = p_up * far_up * (1 - r) ** 2 * (1 + r_up) - r * near * (1 - p_up) ** 2 * (1 + p)
    if least <= 0 or p <= r_up or p_up * r_up == 1:  # not enough bits to tell anything
        # One of the two must make up half of the distance.
        half = _power(-(-distance // 2), wide, bits)[1]
        return Fraction(0), min(2 * half, Fraction(1))
    return (
        least / ((1 + p_up) * (1 + r_up) * (1 - p * r) * (p_up - r)),
        min(most / ((1 + p) * (1 + r) * (1 - p_up * r_up) * (p - r_up)), Fraction(1)),
    )


TWO_SIDED: NoiseFamily = _TwoSided("two-sided", "Lyu Alg 7", both_sides=True, tells_gap=False)
"""Laplace noise."""

ONE_SIDED: NoiseFamily = _OneSided("one-sided", "one-sided", both_sides=False, tells_gap=True)
"""Exponential noise, geometric on the grid."""

FAMILIES = {family.word: family for family in (TWO_SIDED, ONE_SIDED)}
"""Every family, by its word."""


def family_of(noise: str | NoiseFamily) -> NoiseFamily:
    """A family, given as a value or by its word.

    >>> family_of("one-sided") is family_of(ONE_SIDED) is ONE_SIDED
    True
    """
    if isinstance(noise, NoiseFamily):
        return noise
    return FAMILIES[one_of(noise, "noise", tuple(FAMILIES))]
