"""The optimal theorem solved for ε and for ε₀.

Both searches run over s = ε/ε₀ and only propose: an answer is returned when the rounded-up δ at
it does not exceed what was asked for.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf, log1p, sqrt, tanh

from tacit.book.composing.binomial_tail import Tail, tail
from tacit.book.composing.binomial_term import decimal, own_digits
from tacit.book.composing.corner_search import corner_search
from tacit.book.composing.optimal import plain_truth, total_delta
from tacit.book.composing.outward import SLACKS, rounded_down, rounded_up
from tacit.book.composing.parameters import chance_or_nought, mechanisms, spending
from tacit.errors import ConditionNotMet
from tacit.privacy import Number, as_given, exact


@own_digits
def optimal_epsilon(
    k: int, epsilon_each: Number, delta: Number, *, delta_each: Number = 0
) -> float:
    """The least ε with which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: rounded up; `optimal_delta` there is at most `delta`.  It is 0 if ε = 0 will do.

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

    def newton(s: Fraction, found: Tail) -> float:  # δ is a straight line in e^ε
        over = (1 - float(aim / found.delta)) / found.by_epsilon if found.by_epsilon else inf
        return float(s) + log1p(over) / size if -1 < over < inf else inf

    s = corner_search(at, newton, k, aim, Fraction(0), bell)

    def fits(epsilon: Fraction) -> bool:
        return total_delta(tail(k, each, each, epsilon).delta, plain) <= delta

    for tried in (s * slack * each for slack in SLACKS if s * slack < k):
        # At the place itself, which is true; and at the answer, so that others find it so.
        if fits(tried) and fits(exact(rounded_up(tried), "epsilon")):
            return rounded_up(tried)
    return rounded_up(k * each)


@own_digits
def optimal_each(k: int, epsilon: Number, delta: Number, *, delta_each: Number = 0) -> float:
    """What each of k mechanisms may spend, so that together they are (ε, δ)-private.

    Privacy: rounded down; `optimal_delta` there is at most `delta`.

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
    one = ((1 + aim) / (1 - aim)).ln()  # one mechanism alone may spend no more than ε + this
    low = epsilon / (epsilon + Fraction(one) + Fraction(1, 10**20))

    def newton(s: Fraction, found: Tail) -> float:  # −ln(1 − δ) is nearly straight
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
    """δ, what goes to plain truths, and what they leave for δ_pure."""
    total = chance_or_nought(delta, "delta")
    plain = plain_truth(k, chance_or_nought(delta_each, "delta_each"))
    if total_delta(Decimal(0), plain) > total:
        raise ConditionNotMet(
            f"delta = {as_given(total)} is too small: {k} mechanisms with delta_each = "
            f"{delta_each} already come to {as_given(total_delta(Decimal(0), plain))}"
        )
    return total, plain, max((decimal(total) - plain) / (1 - plain), Decimal(0))
