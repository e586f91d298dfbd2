"""Optimal composition of mechanisms that differ, within an error that is stated.

(ε₁, δ₁), …, (ε_k, δ_k), fixed in advance, are together (ε, δ)-private for every ε ≥ 0 with

    δ = 1 − Π (1 − δᵢ) · (1 − δ_pure),   δ_pure = E[(1 − e^(ε − L))₊],   L = Σ ± εᵢ,

where the signs are independent and + has probability e^εᵢ/(1 + e^εᵢ); no smaller δ is true of all
such mechanisms (Murtagh and Vadhan, 2016, Theorem 1.5).  To compute it exactly is #P-hard.  A few
mechanisms, or few kinds of them, are enumerated; of many, the law of L is put on a grid, which
bounds δ from both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from tacit.book.composing.binomial_term import decimal, own_digits
from tacit.book.composing.grid_fineness import Bell
from tacit.book.composing.loss_law import LossLaw, loss_law, loss_laws
from tacit.book.composing.mixed_parts import Part, Parts, mixture, read_part
from tacit.book.composing.optimal import optimal_delta, plain_truth, total_delta
from tacit.book.composing.outward import SLACKS, rounded_down, rounded_up
from tacit.book.composing.parameters import chance_or_nought, spending_or_nought
from tacit.errors import ConditionNotMet
from tacit.privacy import Number, as_given, exact

_CLOSE = Fraction(1, 10**13)


class Between(NamedTuple):
    """A number that is known to lie between two: promise `at_most`."""

    at_most: float
    at_least: float


@own_digits
def mixed_optimal_delta(parts: Parts, epsilon: Number) -> Between:
    """The δ with which mechanisms that differ are (ε, δ)-private together.

    ``parts`` are ε's, pairs (ε, δ) or `Privacy` values, one for each mechanism, or a mapping from
    them to how many there are.  All of them must be fixed in advance: amounts that depend on
    earlier answers are beyond this theorem, and no budget uses it.

    Privacy: ``at_most`` is never below the truth, nor ``at_least`` above it.

    >>> at_most, at_least = mixed_optimal_delta([1, "1/2", ("1/4", "1e-9"), 0], 1)
    >>> round(at_most, 9), at_most - at_least < 1e-12
    (0.17904989, True)
    """
    read, epsilon = mixture(parts), spending_or_nought(epsilon, "epsilon")
    law = loss_law(read.pure, epsilon, epsilon)
    return Between(_upper(law, read.plain, epsilon), _lower(law, read.plain, epsilon))


@own_digits
def mixed_optimal_epsilon(parts: Parts, delta: Number) -> Between:
    """The least ε with which mechanisms that differ are (ε, δ)-private together.

    ``parts`` as for `mixed_optimal_delta`, and fixed in advance as there.

    Privacy: ``at_most`` is never below the truth, nor ``at_least`` above it.

    >>> at_most, at_least = mixed_optimal_epsilon({"0.1": 50, ("0.02", "1e-9"): 1000}, "1e-5")
    >>> round(at_most, 3), at_most - at_least < 1e-9
    (4.096, True)
    """
    read, delta = mixture(parts), chance_or_nought(delta, "delta")
    plain = read.plain
    if total_delta(Decimal(0), plain) > delta:
        raise ConditionNotMet(
            f"delta = {as_given(delta)} is too small: the δ of these {read.count} mechanisms "
            f"already come to {as_given(total_delta(Decimal(0), plain))}"
        )
    aim = float((decimal(delta) - plain) / (1 - plain))
    whole = Between(rounded_up(read.epsilon), rounded_down(read.epsilon))
    if aim <= 0 or not read.pure:
        return whole
    law = loss_law(read.pure, *Bell.of(read.pure).around(aim))

    def fits(epsilon: Fraction) -> bool:
        return _upper(law, plain, epsilon) <= delta

    def fails(epsilon: Fraction) -> bool:
        return _lower(law, plain, epsilon) > delta

    if fits(Fraction(0)):
        return Between(0.0, 0.0)
    place = _meet(fits, read.epsilon)
    tried = (place * slack for slack in SLACKS if place * slack < read.epsilon)
    found = next(
        (rounded_up(x) for x in tried if fits(x) and fits(exact(rounded_up(x), "epsilon"))),
        whole.at_most,
    )
    least = _meet(lambda x: not fails(x), min(exact(found, "epsilon"), read.epsilon))
    return Between(
        found, rounded_down(least * (1 - _CLOSE)) if fails(least * (1 - _CLOSE)) else 0.0
    )


@own_digits
def mixed_optimal_more(parts: Parts, part: Part, epsilon: Number, delta: Number) -> int:
    """How many more mechanisms of one kind fit beside these, all together (ε, δ)-private.

    Privacy: that many do fit.  Where the grid cannot tell, it may be fewer than would.

    >>> mixed_optimal_more({"0.1": 20}, "0.05", 2, "1e-6")
    12
    """
    read, delta = mixture(parts), chance_or_nought(delta, "delta")
    epsilon = spending_or_nought(epsilon, "epsilon")
    each, leak = read_part(part, "part")

    def alone(more: int) -> bool:
        if not each:
            return total_delta(Decimal(0), plain_truth(more, leak)) <= delta
        return optimal_delta(more, each, epsilon, delta_each=leak) <= delta

    most, plain = _largest(alone, 10**9 - read.count), read.plain
    laws = loss_laws(read.pure, each, most, epsilon, epsilon)

    def fits(more: int) -> bool:
        with_more = plain + (1 - plain) * (plain_truth(more, leak) if more else 0)
        return _upper(laws(more), with_more, epsilon) <= delta

    if not fits(0):
        raise ConditionNotMet(
            f"the {read.count} mechanisms in parts alone need more than "
            f"(epsilon = {as_given(epsilon)}, delta = {as_given(delta)})"
        )
    return _largest(fits, most)


def _meet(holds: Callable[[Fraction], bool], high: Fraction) -> Fraction:
    """About the least ε from which on something holds, as it does at `high` and not at 0."""
    low = Fraction(0)
    while high - low > high * _CLOSE:
        middle = Fraction(float(low + high) / 2)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits, if smaller ones do; 0 always does."""
    low, step = 0, 1
    while low + step <= most and fits(low + step):
        low, step = low + step, 2 * step
    high = min(low + step, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _upper(law: LossLaw, plain: Decimal, epsilon: Fraction) -> float:
    return total_delta(Decimal(law.upper(epsilon)), plain)


def _lower(law: LossLaw, plain: Decimal, epsilon: Fraction) -> float:
    return rounded_down(plain + (1 - plain) * min(Decimal(law.lower(epsilon)), Decimal(1)))
