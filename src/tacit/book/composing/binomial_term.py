"""One binomial probability to full precision, for a pair of two-point distributions.

Stirling's formula with its error term (Loader, 2000), in decimals of 50 digits and more, whose
exp and ln are correctly rounded: the exponent is a small difference of large numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, wraps
from math import factorial
from typing import ParamSpec, TypeVar

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
