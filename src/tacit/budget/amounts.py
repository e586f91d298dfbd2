"""Amounts of an accountant's currency, exactly: (ε, δ), or ρ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from tacit.privacy import show

_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}

_CURRENCIES = ({"epsilon", "delta"}, {"rho"})

_MOST_BITS = 2048
_GRID_BITS = 1024


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of a currency: every unit with its exact value.

    >>> print(Amount.of(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)))
    ε = 0.5, δ = 1e-09
    >>> Amount.of(rho=Fraction(1, 8)) + Amount.of(rho=Fraction(1, 8))
    Amount(rho='1/4')
    """

    values: tuple[tuple[str, Fraction], ...]

    @classmethod
    def of(cls, **values: Fraction) -> Amount:
        """An amount from its units, in their order: ``epsilon, delta`` or ``rho``."""
        return cls(tuple(values.items()))

    @property
    def epsilon(self) -> Fraction:
        """The ε of an amount in (ε, δ)."""
        return self["epsilon"]

    @property
    def delta(self) -> Fraction:
        """The δ of an amount in (ε, δ)."""
        return self["delta"]

    @property
    def rho(self) -> Fraction:
        """The ρ of an amount in zCDP."""
        return self["rho"]

    def __getitem__(self, unit: str) -> Fraction:
        return dict(self.values)[unit]

    def __add__(self, other: Amount) -> Amount:
        return Amount(tuple((unit, value + other[unit]) for unit, value in self.values))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(tuple((unit, value - other[unit]) for unit, value in self.values))

    def fits_in(self, other: Amount) -> bool:
        """Whether no unit exceeds the other's."""
        return all(value <= other[unit] for unit, value in self.values)

    def zero(self) -> Amount:
        """Nothing, in the same currency."""
        return Amount(tuple((unit, Fraction(0)) for unit, _ in self.values))

    def share_of(self, whole: Amount) -> Fraction:
        """How much of the whole this is: the largest fraction over the units that are promised."""
        ratios = [value / whole[unit] for unit, value in self.values if whole[unit]]
        return max(ratios, default=Fraction(0))

    def as_json(self) -> dict[str, str]:
        """Every value as "numerator/denominator"."""
        return {unit: str(value) for unit, value in self.values}

    def as_text(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.as_json(), separators=(",", ":"))

    @classmethod
    def from_json(cls, values: dict[str, str]) -> Amount:
        """The inverse of ``as_json``; the units in their own order, whatever order they come in."""
        if set(values) not in _CURRENCIES:
            raise ValueError("not an amount")
        return cls(tuple((unit, Fraction(values[unit])) for unit in _SIGNS if unit in values))

    @classmethod
    def from_text(cls, text: str) -> Amount:
        """The inverse of ``as_text``."""
        return cls.from_json(json.loads(text))

    def __repr__(self) -> str:
        return f"Amount({', '.join(f'{unit}={str(value)!r}' for unit, value in self.values)})"

    def __str__(self) -> str:
        said = ((_SIGNS[unit], in_full(value)) for unit, value in self.values)
        return ", ".join(f"{sign} {'' if text[0] == '≈' else '= '}{text}" for sign, text in said)


def in_full(value: Fraction) -> str:
    """A number in as few characters as say exactly what it is; "≈" if fifteen digits do not.

    >>> in_full(Fraction(1, 4)), in_full(Fraction(1, 11)), in_full(Fraction(2, 10**6))
    ('0.25', '1/11', '2e-06')
    """
    for digits in range(4, 16):
        text = show(value, digits)
        if Fraction(text) == value:
            return text
    if value.numerator.bit_length() + value.denominator.bit_length() <= 64:
        return str(value)
    return f"≈ {show(value, 15)}"


def bounded(amount: Amount, total: Amount) -> Amount:
    """The amount, rounded up by less than 2^(−1024) if the exact sum would grow too long.

    Exact sums of fractions with ever new denominators get longer with every charge, and so
    would the time a charge takes.  A denominator that the total already has, or that leaves the
    sum's denominator within 2048 bits, is kept as it is; any other amount is rounded up, in
    favour of privacy.  So no total ever needs more than 3072 bits below the point.
    """
    return Amount(
        tuple((unit, _bounded(value, total[unit].denominator)) for unit, value in amount.values)
    )


def _bounded(value: Fraction, denominator: int) -> Fraction:
    together = lcm(value.denominator, denominator)
    if together == denominator or together.bit_length() <= _MOST_BITS:
        return value
    return Fraction(-(-(value.numerator << _GRID_BITS) // value.denominator), 1 << _GRID_BITS)
