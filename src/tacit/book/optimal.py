"""Optimal composition of k equal mechanisms (Kairouz, Oh and Viswanath, 2015).

No (ε₀, δ₀)-private mechanism composes worse than randomised response that gives the plain truth
with probability δ₀.  Hence k such mechanisms are together (ε, δ)-private, for every ε ≥ 0, with

    δ = 1 − (1 − δ₀)^k (1 − δ_pure),
    δ_pure = Σ_j C(k, j) e^(jε₀) / (1 + e^ε₀)^k · (1 − e^(ε − (2j−k)ε₀))₊,

and no smaller δ is true of all such mechanisms.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import inf, log1p, sqrt, tanh

from tacit.errors import ConditionNotMet
from tacit.numbers import (
    Number,
    as_given,
    chance_or_zero,
    exact,
    mechanisms,
    spending,
    spending_or_zero,
)
from tacit.numerics.binomial import DeltaTail, decimal, digits_for, own_digits, tail
from tacit.numerics.certified import SLACKS, rounded_down, rounded_up
from tacit.numerics.searching import corner_search

__all__ = ["optimal_delta", "optimal_each", "optimal_epsilon", "two_point_delta"]


def optimal_delta(
    k: int, epsilon_each: Number, epsilon: Number, *, delta_each: Number = 0
) -> float:
    """The δ with which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: never below the true δ.  Accuracy: above it by a part in 10¹² at most for k ≤ 10⁶; a
    positive δ below the range of floats becomes 2.2e-308.

    >>> round(optimal_delta(30, 1, 22, delta_each="0.001"), 5)
    0.04925
    >>> optimal_delta(10, 1, 10)   # basic composition: no δ is needed
    0.0
    """
    k, epsilon = mechanisms(k), spending_or_zero(epsilon, "epsilon")
    each = spending(epsilon_each, "epsilon_each")
    plain = plain_truth(k, chance_or_zero(delta_each, "delta_each"))
    return total_delta(tail(k, each, each, epsilon).delta, plain)


def two_point_delta(k: int, up: Number, down: Number, epsilon: Number) -> float:
    """The δ of k mechanisms whose loss ln(P/P′) lies in [−down, up], for neighbours in one order.

    Such a loss is dominated by that of the pair of two-point distributions that attains both
    limits.  The result is the larger one of P against P′ and P′ against P.

    Privacy and Accuracy: as for `optimal_delta`, which is the case up = down.

    >>> two_point_delta(3, 1, 1, 2) == optimal_delta(3, 1, 2)
    True
    >>> two_point_delta(3, 1, "1/2", 2) < optimal_delta(3, 1, 2)
    True
    """
    k, epsilon = mechanisms(k), spending_or_zero(epsilon, "epsilon")
    up, down = spending(up, "up"), spending(down, "down")
    one, other = tail(k, up, down, epsilon), tail(k, down, up, epsilon)
    return min(rounded_up(max(one.delta, other.delta)), 1.0)


# The theorem solved for ε and for ε₀.
#
# Both searches run over s = ε/ε₀ in floats and only propose: a result is returned if its δ, rounded
# up, does not exceed the δ that was given.


@own_digits
def optimal_epsilon(
    k: int, epsilon_each: Number, delta: Number, *, delta_each: Number = 0
) -> float:
    """The least ε with which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: rounded up; `optimal_delta` at the result is at most `delta`.  It is 0 if δ alone
    suffices.

    >>> round(optimal_epsilon(30, 1, "0.06", delta_each="0.001"), 4)
    21.7096
    """
    k, each = mechanisms(k), spending(epsilon_each, "epsilon_each")
    delta, plain, aim = _aim(k, delta, delta_each)
    if aim == 0:
        return rounded_up(k * each)
    at = lru_cache(lambda s: tail(k, each, each, s * each))
    size = float(each)
    bell = k * tanh(size / 2) + sqrt(-2 * k * float(aim.ln()))  # if the loss were Gaussian

    def newton(s: Fraction, found: DeltaTail) -> float:  # δ is a straight line in e^ε
        over = (1 - float(aim / found.delta)) / found.by_epsilon if found.by_epsilon else inf
        return float(s) + log1p(over) / size if -1 < over < inf else inf

    s = corner_search(at, newton, k, aim, Fraction(0), bell)

    def fits(epsilon: Fraction) -> bool:
        return total_delta(tail(k, each, each, epsilon).delta, plain) <= delta

    for tried in (s * slack * each for slack in SLACKS if s * slack < k):
        # At the place itself, which is the proof; and at the result, so that a check confirms it.
        if fits(tried) and fits(exact(rounded_up(tried), "epsilon")):
            return rounded_up(tried)
    return rounded_up(k * each)


@own_digits
def optimal_each(k: int, epsilon: Number, delta: Number, *, delta_each: Number = 0) -> float:
    """What each of k mechanisms may spend, so that together they are (ε, δ)-private.

    Privacy: rounded down; `optimal_delta` at the result is at most `delta`.

    >>> round(1 / optimal_each(10_000, 1, 1.2664165549094176e-14), 4)  # Ex 3.7, δ = e⁻³²
    715.5106
    """
    k, epsilon = mechanisms(k), spending(epsilon, "epsilon")
    delta, plain, aim = _aim(k, delta, delta_each)
    if aim == 0:
        return rounded_down(epsilon / k)
    at = lru_cache(lambda s: tail(k, epsilon / s, epsilon / s, epsilon))
    size = float(epsilon)
    z = sqrt(-2 * float(aim.ln()))
    bell = sqrt(k) * (sqrt(z * z + 2 * size) + z) / 2  # ε over the ε₀ of a Gaussian loss
    one = ((1 + aim) / (1 - aim)).ln()  # a single mechanism may spend at most ε + this
    low = epsilon / (epsilon + Fraction(one) + Fraction(1, 10**20))

    def newton(s: Fraction, found: DeltaTail) -> float:  # −ln(1 − δ) is nearly straight
        here, there = float(found.delta), float(aim)
        rise = float(aim / found.delta) - 1
        if 1e-9 < here < 1:
            rise = log1p((there - here) / (1 - there)) * (1 - here) / here
        each = float(epsilon / s) + (rise / found.by_each if found.by_each else inf)
        return size / each if 0 < each < inf else inf

    s = corner_search(at, newton, k, aim, low, bell)

    def fits(each: Fraction) -> bool:
        return total_delta(tail(k, each, each, epsilon).delta, plain) <= delta

    for tried in (epsilon / (s * slack) for slack in SLACKS if s * slack < k):
        if fits(tried) and fits(exact(rounded_down(tried), "epsilon_each")):
            return rounded_down(tried)
    return rounded_down(epsilon / k)


def _aim(k: int, delta: Number, delta_each: Number) -> tuple[Fraction, Decimal, Decimal]:
    """δ, the chance of a plain truth, and what is left for δ_pure."""
    total = chance_or_zero(delta, "delta")
    plain = plain_truth(k, chance_or_zero(delta_each, "delta_each"))
    if total_delta(Decimal(0), plain) > total:
        raise ConditionNotMet(
            f"delta = {as_given(total)} is too small: {k} mechanisms with delta_each = "
            f"{delta_each} already need {as_given(total_delta(Decimal(0), plain))}",
            advice="use a larger delta, or fewer mechanisms",
        )
    return total, plain, max((decimal(total) - plain) / (1 - plain), Decimal(0))


# The share of δ that goes to plain truths.


@own_digits
def total_delta(pure: Decimal, plain: Decimal) -> float:
    """1 − (1 − plain)(1 − pure), rounded up, computed without cancellation."""
    return min(rounded_up(plain + (1 - plain) * pure), 1.0)


@own_digits
def plain_truth(k: int, delta_each: Fraction) -> Decimal:
    """1 − (1 − δ₀)^k: the chance that one of k mechanisms gives the plain truth."""
    if k * delta_each < Fraction(1, 10**30):  # 1 − (1 − δ₀)^k ≤ kδ₀, and equal to 30 digits
        return decimal(k * delta_each)
    with localcontext(digits_for(Fraction(1), delta_each)):
        return 1 - (1 - decimal(delta_each)) ** k
