"""What the theorems of composition take: numbers read exactly, and of a moderate size.

The limits are far outside anything that promises privacy.  They keep every intermediate value
within the range for which the error margins are argued.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.errors import BadParameter
from tacit.privacy import as_given, exact, positive, probability, small_probability, whole


def mechanisms(k: object) -> int:
    """How many mechanisms are composed: optimal composition sums some ten times √k terms."""
    number = whole(k, "k")
    if number > 10**12:
        raise BadParameter("k", number, "at most 10**12 mechanisms can be composed")
    return number


def spending(value: object, name: str) -> Fraction:
    """An ε, a ρ or a bound of a loss: greater than 0."""
    number = positive(value, name)
    if not Fraction(1, 10**200) <= number <= 10**200:
        raise BadParameter(name, as_given(number), "it must lie between 1e-200 and 1e200")
    return number


def spending_or_nought(value: object, name: str) -> Fraction:
    """The same, or 0."""
    return Fraction(0) if exact(value, name) == 0 else spending(value, name)


def chance(value: object, name: str) -> Fraction:
    """A δ strictly between 0 and 1."""
    number = probability(value, name)
    if not Fraction(1, 10**400) <= number <= 1 - Fraction(1, 10**12):
        raise BadParameter(name, as_given(number), "it must lie between 1e-400 and 1 - 1e-12")
    return number


def chance_or_nought(value: object, name: str) -> Fraction:
    """The same, or 0."""
    return Fraction(0) if small_probability(value, name) == 0 else chance(value, name)
