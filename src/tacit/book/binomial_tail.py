"""The numerics of optimal composition: a weighted binomial tail, never too small.

δ(ε) = Σ_j Bin(k, p)(j) · (1 − e^(ε − L_j))₊ with the losses L_j = j·up − (k − j)·down.

Every term is positive, so nothing cancels.  One probability is computed with 50 digits
(Stirling's formula in the form of Loader, 2000); the others follow from it by the ratio of
neighbours, from the largest outwards, in floats, and a geometric series closes the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import factorial, floor, inf, log, sqrt

import numpy as np
import numpy.typing as npt

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
_ROUNDING = 2.0**-53
_LARGEST_CHUNK = 1 << 18
_CLOSED = 2.0**-50
_TINY = Decimal("1e-290")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tail:
    """δ at one ε: an upper bound, and approximately its logarithm and that one's slopes."""

    delta: Decimal
    log: float = -inf
    by_epsilon: float = -inf
    """d ln δ / dε."""
    by_each: float = inf
    """d ln δ / dε₀, for up = down = ε₀."""


NOTHING = Tail(Decimal(0))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two outcomes with losses up and −down: their probabilities under the first hypothesis."""

    high: Decimal
    low: Decimal

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, up: Fraction, down: Fraction) -> _Pair:
        smallest = min(up, down)
        lost = len(str(smallest.denominator)) - len(str(smallest.numerator))
        with localcontext(_context(up + down, extra=max(lost, 0) + 1)):
            less_up, less_down = (-_decimal(up)).exp(), (-_decimal(down)).exp()
            whole = 1 - less_up * less_down
            return cls((1 - less_down) / whole, less_down * (1 - less_up) / whole)


def _context(largest: Fraction, extra: int = 0) -> Context:
    """50 digits after the point of the largest exponent that will occur."""
    digits = 50 + extra + len(str(floor(largest)))
    return Context(prec=min(digits, MAX_PREC), Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def tail(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> Tail:
    """δ(ε) ≥ 0 of k pairs with losses in {up, −down}, rounded up by a few parts in 10¹³."""
    step = up + down
    first = floor((epsilon + k * down) / step) + 1  # the first j with L_j > ε
    if first > k:
        return NOTHING
    pair = _Pair.of(up, down)
    anchor = max(first, min(k, int((k + 1) * float(pair.high))))
    weigh, unit = _weights((first * step - k * down - epsilon) / step, step)
    odds = pair.high / pair.low if pair.low else Decimal("inf")
    above = _walk(k, anchor, k - anchor, float(odds), lambda d: weigh(anchor - first + d))
    below = _walk(
        k, k - anchor, anchor - first, float(1 / odds), lambda d: weigh(anchor - first - d)
    )
    start = float(weigh(np.array([float(anchor - first)]))[0])
    weighted = start + above.weighted + below.weighted
    # A term d steps from the anchor has taken part in 4d roundings (a division, the odds' own,
    # two products), plus those of its weight and of the sum: fewer than 200.
    drift = (above.drift + below.drift) / weighted
    error = _ROUNDING * (5 * drift + 300)
    with localcontext(_context(Fraction(k) * step)):
        largest = _probability(k, anchor, pair) * unit
        # What underflowed beside the anchor's term, all of it together, is below 1e-290.
        delta = largest * (Decimal(weighted) * (1 + Decimal(error)) + _TINY)
        # dδ/dε = −Σ Bin(j) e^(−t_j); and by Σ_{j≥m} (j − kp) Bin(j) = m (1 − p) Bin(m),
        # dδ/dε₀ = m Bin(m) (1 − p + p e^(−t_m)) for m = first, q = 1 − p.
        relative = weighted * float(unit)
        mass = 1 + above.mass + below.mass
        edge = 1 - float(weigh(np.zeros(1))[0]) * float(unit) * float(pair.high)
        return Tail(
            min(delta, Decimal(1)),
            float(delta.ln()),
            -max(mass - relative, 0.0) / relative,
            first * below.last * edge / relative,
        )


def _weights(over: Fraction, step: Fraction) -> tuple[Callable[[Floats], Floats], Decimal]:
    """1 − e^(−t) for t = step·(over + n), as a function of n, in units of the second result."""
    start = float(over)
    if step < Fraction(1, 10**30):  # 1 − e^(−t) ≤ t, and equal to 18 digits for all k ≤ 10¹²
        return (lambda n: start + n), _decimal(step)
    scale = _float(step)
    return (lambda n: -np.expm1(-scale * (start + n))), Decimal(1)


def _float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return inf


@dataclass(frozen=True, slots=True)
class _Side:
    mass: float = 0.0
    weighted: float = 0.0
    drift: float = 0.0
    last: float = 1.0


def _walk(k: int, start: int, steps: int, odds: float, weigh: Callable[[Floats], Floats]) -> _Side:
    """Sums over d = 1..steps of Bin(start + d)/Bin(start), alone, weighted, and weighted by d."""
    mass = weighted = drift = 0.0
    last, done = 1.0, 0
    while done < steps:
        ratio = (k - start - done) / (start + done + 1) * odds
        size = min(steps - done, _chunk(k, start + done, ratio))
        distance = np.arange(done, done + size, dtype=np.float64)
        ratios = (k - start - distance) / (start + distance + 1) * odds
        ratios[0] *= last
        terms = np.cumprod(ratios)
        distance += 1
        products = terms * weigh(distance)
        mass += float(terms.sum())
        weighted += float(products.sum())
        drift += float(products @ distance)
        last, done = float(terms[-1]), done + size
        ratio = (k - start - done) / (start + done + 1) * odds
        if done < steps and ratio < 1:
            # Ratios fall; and a weight d steps on is at most (1 + d) times this one, being
            # concave: what is left is at most this product times Σ (1 + d) ratio^d over d ≥ 1.
            rest = float(products[-1]) * (1 / (1 - ratio) ** 2 - 1)
            if rest <= _CLOSED * weighted:
                return _Side(mass, weighted + rest, drift, 0.0)
    return _Side(mass, weighted, drift, last)


def _chunk(k: int, here: int, ratio: float) -> int:
    """How many terms will do: nine standard deviations, or e^(−45) where the decline is steep."""
    size = 9 * sqrt(here * (k - here) / k)
    if ratio < 1:
        size = min(size, 45 / max(-log(ratio), 1e-9) if ratio > 0 else 1)
    return int(min(size + 32, _LARGEST_CHUNK))


def _probability(k: int, j: int, pair: _Pair) -> Decimal:
    """Bin(k, p)(j) for 1 ≤ j ≤ k, to about 15 digits."""
    if j == k:
        return (k * pair.high.ln()).exp()
    rest = k - j
    exponent = j * (k * pair.high / j).ln() + rest * (k * pair.low / rest).ln()
    stirling = _stirling_error(k) - _stirling_error(j) - _stirling_error(rest)
    return (exponent + Decimal(stirling)).exp() * (k / (2 * _PI * j * rest)).sqrt()


@lru_cache(maxsize=1024)
def _stirling_error(n: int) -> float:
    """What Stirling's formula lacks: ln n! − ln(√(2πn) (n/e)^n), with an absolute error below 10⁻¹⁵."""
    if n <= 15:
        with localcontext(Context(prec=40)):
            return float((Decimal(factorial(n)) / (2 * _PI * n).sqrt() / Decimal(n) ** n).ln() + n)
    square = n * n  # the first term left out is below 1.1e-16 at n = 16
    return (
        1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square
    ) / n
