"""Optimal composition of k equal mechanisms (Kairouz, Oh and Viswanath, 2015).

No (ε₀, δ₀)-private mechanism composes worse than randomised response that, with probability
δ₀, tells the plain truth.  Hence k of them are (ε, δ)-private together, for every ε ≥ 0, with

    δ = 1 − (1 − δ₀)^k (1 − δ_pure),
    δ_pure = Σ_j C(k, j) e^(jε₀) / (1 + e^ε₀)^k · (1 − e^(ε − (2j−k)ε₀))₊,

and no smaller δ is true of all such mechanisms.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from tacit.book.composing.binomial_tail import tail
from tacit.book.composing.binomial_term import decimal, digits_for, own_digits
from tacit.book.composing.outward import rounded_up
from tacit.book.composing.parameters import (
    chance_or_nought,
    mechanisms,
    spending,
    spending_or_nought,
)
from tacit.privacy import Number


def optimal_delta(
    k: int, epsilon_each: Number, epsilon: Number, *, delta_each: Number = 0
) -> float:
    """The δ with which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: never below the truth.  Accuracy: above it by less than 10⁻¹² of it for k ≤ 10⁶; a
    positive δ below a float's range comes out as 2.2e-308.

    >>> round(optimal_delta(30, 1, 22, delta_each="0.001"), 5)
    0.04925
    >>> optimal_delta(10, 1, 10)   # basic composition: nothing is left over
    0.0
    """
    k, epsilon = mechanisms(k), spending_or_nought(epsilon, "epsilon")
    each = spending(epsilon_each, "epsilon_each")
    plain = plain_truth(k, chance_or_nought(delta_each, "delta_each"))
    return total_delta(tail(k, each, each, epsilon).delta, plain)


def two_point_delta(k: int, up: Number, down: Number, epsilon: Number) -> float:
    """The same for k mechanisms whose loss ln(P/P′) lies in [−down, up], neighbours in one order.

    A loss within such limits is dominated by the pair of two-point distributions that attains
    them.  The result is the larger of both directions, P against P′ and P′ against P.

    Privacy and Accuracy: as `optimal_delta`, which is the case up = down.

    >>> two_point_delta(3, 1, 1, 2) == optimal_delta(3, 1, 2)
    True
    >>> two_point_delta(3, 1, "1/2", 2) < optimal_delta(3, 1, 2)
    True
    """
    k, epsilon = mechanisms(k), spending_or_nought(epsilon, "epsilon")
    up, down = spending(up, "up"), spending(down, "down")
    one, other = tail(k, up, down, epsilon), tail(k, down, up, epsilon)
    return min(rounded_up(max(one.delta, other.delta)), 1.0)


@own_digits
def total_delta(pure: Decimal, plain: Decimal) -> float:
    """1 − (1 − plain)(1 − pure), rounded up, as a sum that cannot cancel."""
    return min(rounded_up(plain + (1 - plain) * pure), 1.0)


@own_digits
def plain_truth(k: int, delta_each: Fraction) -> Decimal:
    """1 − (1 − δ₀)^k: the chance that one of k mechanisms tells the plain truth."""
    if k * delta_each < Fraction(1, 10**30):  # 1 − (1 − δ₀)^k ≤ kδ₀, and equal to 30 digits
        return decimal(k * delta_each)
    with localcontext(digits_for(Fraction(1), delta_each)):
        return 1 - (1 - decimal(delta_each)) ** k
