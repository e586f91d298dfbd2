"""Tails of the binomial law, in decimals with stated errors, and rounding away from the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, wraps
from math import factorial, floor, inf, log, sqrt
from sys import float_info
from typing import ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

# One binomial probability to full precision, for a pair of two-point distributions.
#
# Stirling's formula with its error term (Loader, 2000), in decimals of 50 digits and more, whose
# exp and ln are correctly rounded: the exponent is a small difference of large numbers.


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def digits_for(largest: Fraction, smallest: Fraction = Fraction(1)) -> Context:
    """A context with 50 digits to spare beside numbers as large and as small as these."""
    bits = max(int(largest).bit_length(), 0) + max(int(1 / smallest).bit_length(), 0)
    return Context(prec=52 + bits * 31 // 100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


P = ParamSpec("P")
T = TypeVar("T")


def own_digits(function: Callable[P, T]) -> Callable[P, T]:
    """Run with decimals of 50 digits, whatever the caller has set for decimals of his own."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with localcontext(digits_for(Fraction(1))):
            return function(*args, **kwargs)

    return run


def decimal(x: Fraction) -> Decimal:
    """The fraction, rounded to the digits of the context."""
    return Decimal(x.numerator) / Decimal(x.denominator)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two outcomes, of loss `up` and −`down`: their probabilities under the first hypothesis."""

    high: Decimal
    low: Decimal

    @property
    def odds(self) -> Decimal:
        """How much likelier the high loss is than the low one."""
        return self.high / self.low if self.low else Decimal("inf")


@lru_cache(maxsize=64)
def pair(up: Fraction, down: Fraction) -> Pair:
    """The two-point distributions whose losses are exactly `up` and −`down`.

    With Q's probabilities q and 1 − q, P's are q e^up and (1 − q) e^(−down), and both add to 1.
    """
    with localcontext(digits_for(up + down, min(up, down))):
        less_up, less_down = (-decimal(up)).exp(), (-decimal(down)).exp()
        whole = 1 - less_up * less_down
        return Pair((1 - less_down) / whole, less_down * (1 - less_up) / whole)


def probability(k: int, j: int, of: Pair) -> Decimal:
    """Bin(k, p)(j) for 1 ≤ j ≤ k, with a relative error below 10⁻¹⁴."""
    if j == k:
        return (k * of.high.ln()).exp()
    rest = k - j
    exponent = j * (k * of.high / j).ln() + rest * (k * of.low / rest).ln()
    stirling = _stirling_error(k) - _stirling_error(j) - _stirling_error(rest)
    return (exponent + Decimal(stirling)).exp() * (k / (2 * PI * j * rest)).sqrt()


@lru_cache(maxsize=1024)
def _stirling_error(n: int) -> float:
    """What Stirling's formula lacks: ln n! − ln(√(2πn) (n/e)^n), off by less than 10⁻¹⁵."""
    if n <= 15:
        with localcontext(Context(prec=50)):
            return float((factorial(n) / (2 * PI * n).sqrt() / Decimal(n) ** n).ln() + n)
    square = n * n  # the first term left out, 691/(360360 n¹¹), is below 1.1e-16 from n = 16 on
    return (
        1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square
    ) / n


# The numerics of optimal composition: a weighted binomial tail, never too small.
#
# δ(ε) = Σ_j Bin(k, p)(j) · (1 − e^(ε − L_j))₊ with the losses L_j = j·up − (k − j)·down.
#
# Every term is positive, so nothing cancels.  One probability, the largest, is computed with 50
# digits; the others follow from it by the ratio of neighbours, outwards, in floats relative to
# it, so that nothing overflows; and a geometric series closes the sum.


Floats = npt.NDArray[np.float64]
Weight = Callable[[Floats], Floats]

_ROUNDING = 2.0**-53
_UNDERFLOWN = Decimal("1e-280")
"""More than all that underflow can hide: 10¹² terms below 10⁻³⁰⁷, with weights up to 10¹²."""
_LARGEST_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Tail:
    """δ at one ε: an upper bound; and approximately its slopes, relative to δ."""

    delta: Decimal
    by_epsilon: float = 0.0
    """−d ln δ / dε."""
    by_each: float = 0.0
    """d ln δ / dε₀, if up = down = ε₀."""

    @property
    def log(self) -> float:
        """About ln δ."""
        return float(self.delta.ln()) if self.delta else -inf


def tail(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> Tail:
    """δ(ε), ε ≥ 0, of k pairs with losses up and −down: exactly 0, or above the truth.

    Accuracy: above it by at most a part in 10¹³ and √k parts in 10¹⁵, unless ε is so close below
    the largest loss that this alone makes δ less than 10⁻²⁶⁰.
    """
    step = up + down
    first = floor((epsilon + k * down) / step) + 1  # the first j with L_j > ε
    if first > k:
        return Tail(Decimal(0))
    losses = pair(up, down)
    anchor = max(first, min(k, int((k + 1) * float(losses.high))))  # where Bin(j) is largest
    weight, unit = _weights((first * step - k * down - epsilon) / step, step)
    rank = anchor - first
    with localcontext(digits_for(k * step)), np.errstate(all="ignore"):
        odds = losses.odds
        above = _walk(k, anchor, k - anchor, float(odds), lambda d: weight(rank + d))
        below = _walk(k, k - anchor, rank, float(1 / odds), lambda d: weight(rank - d))
        start, edge = (float(w) for w in weight(np.array([rank, 0.0])))
        weighted = start + above.weighted + below.weighted
        # A term d steps away has seen 4d roundings (a division, the odds' own, two products),
        # and in its weight and the sums fewer than 300.
        error = _ROUNDING * (5 * (above.drift + below.drift) / weighted + 300)
        delta = Decimal(weighted) * Decimal(1 + error) + _UNDERFLOWN
        delta *= probability(k, anchor, losses) * unit
        # dδ/dε = −Σ Bin(j) e^(−t_j); and since Σ_{j≥m} (j − kp) Bin(j) = m (1 − p) Bin(m),
        # dδ/dε₀ = m Bin(m) (1 − p + p e^(−t_m)) with m = first.
        scale = float(unit)
        mass = 1 + above.mass + below.mass - weighted * scale
        corner = first * below.last * (1 - edge * scale * float(losses.high))
        relative = max(weighted * scale, float_info.min)
        return Tail(min(delta, Decimal(1)), max(mass, 0.0) / relative, corner / relative)


def _weights(over: Fraction, step: Fraction) -> tuple[Weight, Decimal]:
    """1 − e^(−t) for t = step·(over + n), as a function of n, in units of the second result."""
    start = max(float(over), float_info.min)
    if step < Fraction(1, 10**30):  # 1 − e^(−t) ≤ t, and equal to 18 digits for all k ≤ 10¹²
        with localcontext(digits_for(step, step)):
            return (lambda n: start + n), decimal(step)
    scale = float(step)
    return (lambda n: -np.expm1(-scale * (start + n))), Decimal(1)


@dataclass(frozen=True, slots=True)
class _Side:
    """Sums of Bin(start + d)/Bin(start) over d ≥ 1: plain, weighted, and weighted times d."""

    mass: float = 0.0
    weighted: float = 0.0
    drift: float = 0.0
    last: float = 1.0
    """The ratio at the far end; nought if the sum was closed before it."""


def _walk(k: int, start: int, steps: int, odds: float, weight: Weight) -> _Side:
    """Add up the `steps` terms after `start`, or as many as count."""
    mass = weighted = drift = 0.0
    last, done = 1.0, 0
    while done < steps:
        size = min(steps - done, _chunk(k, start + done, odds))
        distance = np.arange(done, done + size, dtype=np.float64)
        ratios = (k - start - distance) / (start + distance + 1) * odds
        ratios[0] *= last
        terms = np.cumprod(ratios)
        distance += 1
        products = terms * weight(distance)
        mass += float(terms.sum())
        weighted += float(products.sum())
        drift += float((products * distance).sum())
        last, done = float(terms[-1]), done + size
        ratio = (k - start - done) / (start + done + 1) * odds
        if done < steps and ratio < 1:
            # Ratios only fall, and the weight, concave from 0 on, d steps on is at most 1 + d
            # times what it is here: Σ_{d≥1} (1 + d) ratio^d bounds what is left.
            rest = float(products[-1]) * (1 / (1 - ratio) ** 2 - 1)
            if rest <= weighted * 2.0**-50:
                return _Side(mass, weighted + rest, drift, 0.0)
    return _Side(mass, weighted, drift, last)


def _chunk(k: int, here: int, odds: float) -> int:
    """How many terms may do: nine standard deviations, or down to e^(−45) in a steep decline."""
    size = 9 * sqrt(here * (k - here) / k)
    decline = (k - here) / (here + 1) * odds
    if decline < 1:
        size = min(size, 45 / max(-log(max(decline, float_info.min)), 1e-9))
    return int(min(size + 32, _LARGEST_CHUNK))
