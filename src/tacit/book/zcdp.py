"""Zero-concentrated differential privacy (zCDP): one number ρ that simply adds up.

Bun and Steinke (2016) define it and show that ρ adds up even if mechanisms are chosen
adaptively.  Canonne, Kamath and Steinke (2020) turn ρ into (ε, δ): for every order a > 1,

    δ = exp((a − 1)(aρ − ε)) / (a − 1) · (1 − 1/a)^a.

Every order is valid, so floats may look for the best one; the result for that order is then
computed with certified bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, log1p

from tacit.numbers import Number, chance, spending, spending_or_zero
from tacit.numerics import certified
from tacit.numerics.certified import SMALLEST, rounded_up

__all__ = ["rho_of_epsilon", "rho_of_range", "zcdp_delta", "zcdp_epsilon", "zcdp_rho"]


def rho_of_epsilon(epsilon: Number) -> Fraction:
    """An (ε, 0)-private mechanism is ρ-zCDP with ρ = ε²/2, exactly.

    >>> rho_of_epsilon("1/10")
    Fraction(1, 200)
    """
    return spending(epsilon, "epsilon") ** 2 / 2


def rho_of_range(length: Number) -> Fraction:
    """A loss confined to an interval of length L, wherever it lies, is ρ-zCDP with ρ = L²/8.

    (Dong, Durfee and Rogers 2020; Cesar and Rogers 2021.)  Let f(t) = ln E[e^(tX)] for the loss
    X = ln(P/Q) under Q: f(0) = f(1) = 0, and the Rényi divergence of order a is f(a)/(a − 1).
    f″(t) is a variance of X under another law on the same interval, hence at most L²/4.  So
    f(t) − (L²/8)·t(t − 1) is concave and 0 at 0 and 1, hence at most 0 at every a > 1.  For a
    mixture of such pairs with the same weights, over coins that are public or could be, the bound
    holds too, since e^((a−1)·divergence) is jointly convex.

    >>> rho_of_range(2) == rho_of_epsilon(1)   # the interval [−ε, ε]
    True
    """
    return spending(length, "length") ** 2 / 8


def zcdp_delta(rho: Number, epsilon: Number) -> float:
    """The δ with which ρ-zCDP gives (ε, δ)-privacy, rounded up.

    >>> zcdp_delta("1/200", 1) < 1e-20
    True
    """
    rho, epsilon = spending_or_zero(rho, "rho"), spending_or_zero(epsilon, "epsilon")
    if rho == 0:
        return 0.0
    r, e = float(rho), float(epsilon)
    b = _order(lambda b: r * (2 * b + 1) - log1p(1 / b) - e)
    exponent = b * ((b + 1) * rho - epsilon) - _saved(b)
    if exponent < -750:
        return SMALLEST
    return min(rounded_up(certified.exp(exponent)[1]), 1.0) if exponent < 0 else 1.0


def zcdp_epsilon(rho: Number, delta: Number) -> float:
    """The ε with which ρ-zCDP gives (ε, δ)-privacy, rounded up; 0 if δ alone suffices.

    >>> round(zcdp_epsilon("1/200", "1e-6"), 4)
    0.4299
    """
    rho, delta = spending_or_zero(rho, "rho"), chance(delta, "delta")
    if rho == 0:
        return 0.0
    r, target = float(rho), float(certified.ln(1 / delta)[1])
    b = _order(lambda b: r * b * b + log1p(b) - target)
    epsilon = (b + 1) * rho + (_log_inverse(delta, b) - _saved(b)) / b
    return rounded_up(max(epsilon, Fraction(0)))


def zcdp_rho(epsilon: Number, delta: Number) -> Fraction:
    """A ρ that suffices for (ε, δ)-privacy: the largest, rounded down to at least 15 digits.

    Privacy: decided in exact arithmetic; ρ-zCDP with this ρ is (ε, δ)-private.

    >>> round(float(zcdp_rho(1, "1e-6")), 5)
    0.02436
    """
    epsilon, delta = spending(epsilon, "epsilon"), chance(delta, "delta")
    e, target = float(epsilon), float(certified.ln(1 / delta)[1])
    b = _order(lambda b: b * (b / (2 * b + 1)) * (e + log1p(1 / b)) + log1p(b) - target)
    rho = (epsilon - (_log_inverse(delta, b) - _saved(b)) / b) / (b + 1)
    return certified.round_down(rho)


def _order(rising: Callable[[float], float]) -> Fraction:
    """A good order a, as b = a − 1: where the derivative, a rising function of b, is zero."""
    low, high = -700.0, 700.0  # of ln b
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(exp(middle)) > 0 else (middle, high)
    return certified.round_down(Fraction(exp(low)), 12)


def _saved(b: Fraction) -> Fraction:
    """A lower bound on ln(a − 1) − a ln(1 − 1/a) = b ln(1 + 1/b) + ln(1 + b)."""
    bits = _bits(b)
    return b * certified.ln(1 + 1 / b, bits)[0] + certified.ln(1 + b, bits)[0]


def _log_inverse(delta: Fraction, b: Fraction) -> Fraction:
    """An upper bound on ln(1/δ)."""
    return certified.ln(1 / delta, _bits(b))[1]


def _bits(b: Fraction) -> int:
    """80 bits, and as many more as are lost to a product with b or a division by it."""
    return 80 + int(b).bit_length() + int(1 / b).bit_length()
