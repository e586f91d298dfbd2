"""Optimal composition of mechanisms that differ, within an error that is stated.

(ε₁, δ₁), …, (ε_k, δ_k), fixed in advance, are together (ε, δ)-private for every ε ≥ 0 with

    δ = 1 − Π (1 − δᵢ) · (1 − δ_pure),   δ_pure = E[(1 − e^(ε − L))₊],   L = Σ ± εᵢ,

where the signs are independent and + has probability e^εᵢ/(1 + e^εᵢ); no smaller δ is true of all
such mechanisms (Murtagh and Vadhan, 2016, Theorem 1.5).  To compute it exactly is #P-hard.  A few
mechanisms, or few kinds of them, are enumerated; of many, the law of L is put on a grid, which
bounds δ from both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from tacit.book.loss_law import Bell, LossLaw, loss_law, loss_laws
from tacit.book.optimal import optimal_delta, plain_truth, total_delta
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import (
    Number,
    as_given,
    chance_or_zero,
    exact,
    small_probability,
    spending_or_zero,
    whole,
)
from tacit.numerics.binomial import decimal, own_digits
from tacit.numerics.certified import SLACKS, rounded_down, rounded_up
from tacit.privacy import Privacy

# Mechanisms that differ: the list (ε₁, δ₁), …, (ε_k, δ_k), read exactly, equal ones together.


Part: TypeAlias = Privacy | Number | tuple[Number, Number]
"""One mechanism: a Privacy, an ε, or a pair (ε, δ); ε = 0 is allowed."""

Parts: TypeAlias = Iterable[Part] | Mapping[Part, int]
"""All of them, one by one, or each kind with how many there are of it."""

_LEAST, _LARGEST = Fraction(1, 10**30), 1000
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class Mixture:
    """How many there are of each kind."""

    kinds: tuple[tuple[Fraction, Fraction, int], ...]  # (ε, δ, how many), no two kinds alike

    @property
    def count(self) -> int:
        """k, all of them."""
        return sum(many for _, _, many in self.kinds)

    @property
    def epsilon(self) -> Fraction:
        """Σ εᵢ."""
        return sum((many * epsilon for epsilon, _, many in self.kinds), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """Σ δᵢ."""
        return sum((many * delta for _, delta, many in self.kinds), Fraction(0))

    @property
    def pure(self) -> tuple[tuple[Fraction, int], ...]:
        """(ε, how many) of what loses anything beside its δ, the largest ε first."""
        counts: dict[Fraction, int] = {}
        for epsilon, _, many in self.kinds:
            if epsilon:
                counts[epsilon] = counts.get(epsilon, 0) + many
        return tuple(sorted(counts.items(), reverse=True))

    @property
    @own_digits
    def plain(self) -> Decimal:
        """1 − Π (1 − δᵢ): the chance that one of them tells the plain truth."""
        total = Decimal(0)
        for _, delta, many in self.kinds:
            if delta:
                total += (1 - total) * plain_truth(many, delta)
        return total


def mixture(parts: Parts, name: str = "parts") -> Mixture:
    """Read a list of mechanisms."""
    if isinstance(parts, Mapping):
        given: Iterable[tuple[object, object]] = parts.items()
    elif isinstance(parts, Iterable) and not isinstance(parts, str | bytes | bytearray):
        given = ((part, 1) for part in parts)
    else:
        raise BadParameter(
            name, as_given(parts), "give a list of ε, of pairs (ε, δ) or of Privacy(epsilon, delta)"
        )
    counts: dict[tuple[Fraction, Fraction], int] = {}
    for part, many in given:
        kind = read_part(part, name)
        counts[kind] = counts.get(kind, 0) + whole(many, name)
    if not counts:
        raise BadParameter(name, "an empty list", "give at least one mechanism")
    read = Mixture(tuple((*kind, many) for kind, many in counts.items()))
    if read.count > _MOST:
        raise BadParameter(name, f"a list of {read.count}", "at most 10**9 mechanisms can be mixed")
    return read


def read_part(part: object, name: str) -> tuple[Fraction, Fraction]:
    """(ε, δ) of one mechanism."""
    if isinstance(part, Privacy):
        given: tuple[object, object] = part.epsilon, part.delta
    elif isinstance(part, tuple | list):
        if len(part) != 2:
            raise BadParameter(name, as_given(part), "a mechanism is an ε or a pair (ε, δ)")
        given = part[0], part[1]
    else:
        given = part, 0
    epsilon, delta = exact(given[0], name), small_probability(given[1], name)
    if epsilon and not _LEAST <= epsilon <= _LARGEST:
        raise BadParameter(name, as_given(given[0]), "each ε is 0, or lies between 1e-30 and 1000")
    if delta and not Fraction(1, 10**400) <= delta <= 1 - Fraction(1, 10**12):
        raise BadParameter(name, as_given(given[1]), "each δ is 0, or between 1e-400 and 1 - 1e-12")
    return epsilon, delta


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
    read, epsilon = mixture(parts), spending_or_zero(epsilon, "epsilon")
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
    read, delta = mixture(parts), chance_or_zero(delta, "delta")
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
    read, delta = mixture(parts), chance_or_zero(delta, "delta")
    epsilon = spending_or_zero(epsilon, "epsilon")
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
