"""Mechanisms that differ: the list (ε₁, δ₁), …, (ε_k, δ_k), read exactly, equal ones together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from tacit.book.composing.binomial_term import own_digits
from tacit.book.composing.optimal import plain_truth
from tacit.errors import BadParameter
from tacit.privacy import Number, Privacy, as_given, exact, small_probability, whole

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
