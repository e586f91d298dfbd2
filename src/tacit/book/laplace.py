"""One noisy number: the Laplace mechanism on the grid, and the error bar of its noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, exp, floor, log, log1p
from typing import TYPE_CHECKING

from tacit.privacy import Number, Privacy, positive, probability

if TYPE_CHECKING:
    from tacit.book.coins import Coins


def error_steps(noise_scale: Fraction, beta: Number) -> int:
    """The least m with Pr[|noise| > m] ≤ β, for discrete Laplace noise of this scale, in steps.

    Noise of scale b exceeds m with probability 2q^(m+1)/(1+q), where q = e^(−1/b).
    """
    allowed, b = float(probability(beta, "beta")), float(noise_scale)
    steps = b * (log(2 / allowed) - log1p(exp(-1 / b))) - 1
    return max(ceil(steps * (1 + 1e-12)), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A noisy number with its error bar.

    >>> print(Estimate(value=Fraction(1204), noise_scale=Fraction(20), privacy=Privacy("1/20")))
    1 204 ± 60 (95 %)
    """

    value: Fraction
    noise_scale: Fraction = field(repr=False)  # in grid steps
    privacy: Privacy
    grid: Fraction = field(default=Fraction(1), repr=False)

    def error(self, beta: Number = "1/20") -> Fraction:
        """How far the value may be off, except with probability β."""
        return error_steps(self.noise_scale, beta) * self.grid

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{spaced(self.value)} ± {spaced(self.error())} (95 %)"


def laplace_mechanism(
    steps: int, *, sensitivity: Fraction, grid: Fraction, epsilon: Number, coins: Coins
) -> Estimate:
    """A true value, in grid steps, with discrete Laplace noise of scale Δ/ε.

    Privacy: (ε, 0), if no person changes the value by more than Δ (Theorem 3.6 of the book, on
    the grid).
    """
    privacy = Privacy(epsilon)
    scale = positive(sensitivity, "sensitivity") / privacy.epsilon / grid
    return Estimate(
        value=(steps + coins.laplace(scale)) * grid, noise_scale=scale, privacy=privacy, grid=grid
    )


def spaced(number: Fraction) -> str:
    """Thousands apart, as in 1 204.5."""
    if number.denominator == 1:
        return f"{number.numerator:,}".replace(",", " ")
    whole = floor(abs(number))
    decimals = f"{float(abs(number) - whole):.6g}".removeprefix("0")
    return ("-" if number < 0 else "") + f"{whole:,}".replace(",", " ") + decimals
