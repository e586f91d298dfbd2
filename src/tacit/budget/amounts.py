"""Amounts of an accountant's currency, exactly: (ε, δ), or ρ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm

from tacit.privacy import show

_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}

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

    units: tuple[str, ...]
    numbers: tuple[Fraction, ...]

    @classmethod
    def of(cls, **values: Fraction) -> Amount:
        """An amount from its units, in their order: ``epsilon, delta`` or ``rho``."""
        return cls(tuple(values), tuple(values.values()))

    @property
    def values(self) -> tuple[tuple[str, Fraction], ...]:
        """Every unit with its number."""
        return tuple(zip(self.units, self.numbers, strict=True))

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
        return self.numbers[self.units.index(unit)]

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.units, tuple([a + b for a, b in self.beside(other)]))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.units, tuple([a - b for a, b in self.beside(other)]))

    def fits_in(self, other: Amount) -> bool:
        """Whether no unit exceeds the other's."""
        return all(a <= b for a, b in self.beside(other))

    def beside(self, other: Amount) -> Iterable[tuple[Fraction, Fraction]]:
        """The numbers of both, unit by unit; two currencies never mix."""
        if self.units != other.units:
            raise ValueError("amounts of different currencies")
        return zip(self.numbers, other.numbers, strict=True)

    def zero(self) -> Amount:
        """Nothing, in the same currency."""
        return Amount(self.units, (Fraction(0),) * len(self.units))

    def share_of(self, whole: Amount) -> Fraction:
        """How much of the whole this is: the largest fraction over the units that are promised."""
        return max((a / b for a, b in self.beside(whole) if b), default=Fraction(0))

    def as_json(self) -> dict[str, str]:
        """Every value as "numerator/denominator"."""
        return {unit: str(number) for unit, number in self.values}

    def as_text(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.as_json())

    @classmethod
    def from_json(cls, values: dict[str, str]) -> Amount:
        """The inverse of ``as_json``; the units in their own order, whatever order they come in."""
        units = ("rho",) if "rho" in values else ("epsilon", "delta")
        if set(values) != set(units):
            raise ValueError("not an amount")
        return cls(units, tuple([_fraction(values[unit]) for unit in units]))

    @classmethod
    def from_text(cls, text: str) -> Amount:
        """The inverse of ``as_text``."""
        return _read(text)

    def __repr__(self) -> str:
        return f"Amount({', '.join(f'{unit}={text!r}' for unit, text in self.as_json().items())})"

    def __str__(self) -> str:
        said = ((_SIGNS[unit], in_full(number)) for unit, number in self.values)
        return ", ".join(f"{sign} {'' if text[0] == '≈' else '= '}{text}" for sign, text in said)


@lru_cache(maxsize=256)  # a pot's limit is the same at every charge, and amounts never change
def _read(text: str) -> Amount:
    return Amount.from_json(json.loads(text))


def _fraction(text: str) -> Fraction:
    """What ``str`` wrote, ten times as fast as ``Fraction(text)`` would read it."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or 1))


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
    both = amount.beside(total)
    return Amount(amount.units, tuple([_bounded(new, old.denominator) for new, old in both]))


def _bounded(value: Fraction, denominator: int) -> Fraction:
    together = lcm(value.denominator, denominator)
    if together == denominator or together.bit_length() <= _MOST_BITS:
        return value
    return Fraction(-(-(value.numerator << _GRID_BITS) // value.denominator), 1 << _GRID_BITS)
