"""How likely ⊤ is at a true value: the exact law of one comparison, and its curve.

A question with the true value q is ⊤ iff q + ν ≥ T + s + ρ, where the threshold T and the public
shift s are rounded up to the grid together.  Only public numbers are needed, so that this costs
nothing and can be looked at before a threshold is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import ceil, floor, log10

from tacit.arguments import instance
from tacit.book.coins import clamped
from tacit.book.sparse_vector import SparseVector
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, probability, show

__all__ = ["ChanceAbove", "chance_above", "least_value"]

_CLOSE = Fraction(1, 1 << 50)  # how close the bounds are, as a part of Pr[⊤] and of Pr[⊥]
_NEVER = Fraction(1, 1 << 200)  # below this, a probability is only known to be so small
_UNIT = 1 << 260  # the bounds are whole multiples of one over this
_FIRST_BITS = 128


@dataclass(frozen=True, slots=True)
class ChanceAbove:
    """A probability between two fractions that are almost equal.

    >>> print(ChanceAbove(Fraction(1, 4), Fraction(1, 4)))
    25 %
    >>> print(ChanceAbove(1 - Fraction(2, 10**6), 1 - Fraction(2, 10**6)))
    99.99980 %
    """

    low: Fraction
    high: Fraction

    def __float__(self) -> float:
        return float((self.low + self.high) / 2)

    def __str__(self) -> str:
        percent = 50 * (self.low + self.high)
        rest = 100 - percent
        if not 0 < rest < 1:
            return f"{show(percent)} %"
        if rest < Fraction(1, 10**12):
            return f"all but {show(rest)} %"
        return f"{float(percent):.{1 - floor(log10(rest))}f} %"


def chance_above(
    mechanism: SparseVector, value: Number, *, threshold: Number | None = None
) -> ChanceAbove:
    """Pr[⊤] for the first question of a stream, or of a group, if its true value is this one.

    Later questions meet a ρ that earlier answers say something about: after many ⊥ it tends to be
    larger, and ⊤ is rarer.  The value must lie on the grid, as the values of questions do.
    """
    instance(mechanism, "mechanism", SparseVector, "give what one_sided.prepare(...) returns")
    steps = exact(value, "value") / mechanism.grid
    if steps.denominator != 1:
        allowed = f"it must be a whole multiple of grid {mechanism.grid}"
        raise BadParameter("value", as_given(value), allowed)
    limit = mechanism.threshold_in_steps(threshold)
    return _at_distance(mechanism, limit - clamped(steps.numerator))


def least_value(
    mechanism: SparseVector, chance: Number, *, threshold: Number | None = None
) -> Fraction:
    """The least value on the grid at which a first question is ⊤ with this probability or more."""
    instance(mechanism, "mechanism", SparseVector, "give what one_sided.prepare(...) returns")
    wanted, limit = probability(chance, "chance"), mechanism.threshold_in_steps(threshold)

    def enough(distance: int) -> bool:
        return _at_distance(mechanism, distance).low >= wanted

    reach = next(1 << power for power in count() if enough(-(1 << power)))
    near, far = -reach, next(1 << power for power in count() if not enough(1 << power))
    while far - near > 1:  # enough at the first, and not at the second
        middle = (near + far) // 2
        near, far = (middle, far) if enough(middle) else (near, middle)
    return (limit - near) * mechanism.grid


def _at_distance(mechanism: SparseVector, distance: int) -> ChanceAbove:
    """Pr[ν − ρ ≥ distance], with as many bits as it takes."""
    family, (rho, nu) = mechanism.recipe.family, mechanism.noise_scales
    for bits in (_FIRST_BITS << step for step in count()):
        low, high = family.reaching(distance, rho, nu, bits)
        least, most = max(floor(low * _UNIT), 0), min(ceil(high * _UNIT), _UNIT)
        low, high = Fraction(least, _UNIT), Fraction(most, _UNIT)
        rarer = min(low, 1 - high)  # of ⊤ and ⊥
        if high - low <= _CLOSE * rarer or min(high, 1 - low) < _NEVER:
            return ChanceAbove(low, high)
    raise AssertionError("unreachable: the bounds converge")
