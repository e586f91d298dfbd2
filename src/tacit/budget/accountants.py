"""How costs add up: two accountants that stay true however adaptively they are used.

Analysts see every answer before they decide what to ask next, how much to spend on it and
whether to open another stream while the first is running.  The theorems of section 3.5.2 fix
the amounts in advance, so they do not cover this; what does is named at each accountant below.
All of them need a stream's full cost to be charged when it is opened, and none of them allows
the privacy loss that happened to be realised to be charged instead of the one that was promised.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Protocol

from tacit.book.zcdp import rho_of_epsilon, rho_of_range, zcdp_epsilon, zcdp_rho
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import Number, as_given, exact, in_full, no_more_than
from tacit.numerics import certified
from tacit.privacy import Cost, Privacy

Ratio = tuple[int, int]
"""A fraction's numerator and denominator, in lowest terms."""

_EPSILON_DELTA = ("epsilon", "delta")
_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
_MOST_BITS = 2048  # of a total's denominator, beyond which amounts are rounded up
_GRID_BITS = 1024
_SMALL = "1e-300"  # where ε = 0 would do, which ``Privacy`` does not write


# Amounts of an accountant's currency, exactly: (ε, δ), or ρ ---------------------------------------


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of a currency: every unit with its exact value.

    ``ratios`` are the numerators and denominators in lowest terms: every charge adds and compares
    some, and as whole numbers they take a third of the time that ``Fraction`` takes.

    >>> print(Amount.of(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)))
    ε = 0.5, δ = 1e-09
    >>> Amount.of(rho=Fraction(1, 8)) + Amount.of(rho=Fraction(1, 8))
    Amount(rho='1/4')
    """

    units: tuple[str, ...]
    ratios: tuple[Ratio, ...]

    @classmethod
    def of(cls, **values: Fraction) -> Amount:
        """An amount from its units, in their order: ``epsilon, delta`` or ``rho``."""
        return cls(tuple(values), tuple([number.as_integer_ratio() for number in values.values()]))

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        """The value of every unit."""
        return tuple([Fraction(*ratio) for ratio in self.ratios])

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
        return Fraction(*self.ratios[self.units.index(unit)])

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.units, tuple(map(_sum, self.ratios, other.ratios_in(self.units))))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.units, tuple(map(_difference, self.ratios, other.ratios_in(self.units))))

    def fits_in(self, other: Amount) -> bool:
        """Whether no unit exceeds the other's."""
        most = other.ratios_in(self.units)
        for (top, bottom), (most_top, most_bottom) in zip(self.ratios, most, strict=True):
            if top * most_bottom > most_top * bottom:
                return False
        return True

    @property
    def negative(self) -> bool:
        """Whether some unit is below 0."""
        least, _ = min(self.ratios)
        return least < 0

    def beside(self, other: Amount) -> Iterable[tuple[Fraction, Fraction]]:
        """The numbers of both, unit by unit; two currencies never mix."""
        other.ratios_in(self.units)
        return zip(self.numbers, other.numbers, strict=True)

    def ratios_in(self, units: tuple[str, ...]) -> tuple[Ratio, ...]:
        """The ratios, if this is the currency: ``ValueError`` if it is not."""
        if self.units != units:
            raise ValueError("amounts of different currencies")
        return self.ratios

    def zero(self) -> Amount:
        """The amount 0 in the same currency."""
        return Amount(self.units, ((0, 1),) * len(self.units))

    def share_of(self, whole: Amount) -> Fraction:
        """How much of the whole this is: the largest fraction over the units that are promised."""
        return max((a / b for a, b in self.beside(whole) if b), default=Fraction(0))

    def as_json(self) -> dict[str, str]:
        """Every value as "numerator/denominator"."""
        return dict(zip(self.units, map(_spelt, self.ratios), strict=True))

    def as_text(self) -> str:
        """The amount as one line of JSON: as ``json.dumps`` writes it, at a third of its time."""
        return "{" + ", ".join(map(_said, self.units, self.ratios)) + "}"

    @classmethod
    def from_json(cls, values: dict[str, str]) -> Amount:
        """The inverse of ``as_json``; the units in their own order, whatever order they come in."""
        units = ("rho",) if "rho" in values else _EPSILON_DELTA
        if set(values) != set(units):
            raise ValueError("not an amount")
        return cls(units, tuple([_ratio(values[unit]) for unit in units]))

    @classmethod
    def from_text(cls, text: str) -> Amount:
        """The inverse of ``as_text``."""
        return _read(text)

    def __repr__(self) -> str:
        return f"Amount({', '.join(f'{unit}={text!r}' for unit, text in self.as_json().items())})"

    def __str__(self) -> str:
        said = ((_SIGNS[unit], in_full(number)) for unit, number in self.values)
        return ", ".join(f"{sign} {'' if text[0] == '≈' else '= '}{text}" for sign, text in said)


@lru_cache(maxsize=256)  # a share's limit is the same at every charge, and amounts never change
def _read(text: str) -> Amount:
    return Amount.from_json(json.loads(text))


def _ratio(text: str) -> Ratio:
    """What ``_spelt`` wrote, ten times as fast as ``Fraction(text)`` would read it."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or 1)).as_integer_ratio()


def _spelt(ratio: Ratio) -> str:
    """As ``str`` spells a ``Fraction``."""
    top, bottom = ratio
    return f"{top}/{bottom}" if bottom != 1 else f"{top}"


def _said(unit: str, ratio: Ratio) -> str:
    return f'"{unit}": "{_spelt(ratio)}"'


def _sum(a: Ratio, b: Ratio) -> Ratio:
    """Exactly, in lowest terms (Knuth, The Art of Computer Programming, 4.5.1)."""
    (top, bottom), (b_top, b_bottom) = a, b
    if not b_top:  # as most δ are
        return a
    common = gcd(bottom, b_bottom)
    top = top * (b_bottom // common) + b_top * (bottom // common)
    more = gcd(top, common)  # nothing else can divide both
    return top // more, bottom // common * (b_bottom // more)


def _difference(a: Ratio, b: Ratio) -> Ratio:
    top, bottom = b
    return _sum(a, (-top, bottom))


def bounded(amount: Amount, total: Amount) -> Amount:
    """The amount, rounded up by less than 2^(−1024) if the exact sum would grow too long.

    Exact sums of fractions with ever new denominators get longer with every charge, and so
    would the time a charge takes.  A denominator that the total already has, or that leaves the
    sum's denominator within 2048 bits, is kept as it is; any other amount is rounded up, in
    favour of privacy.  So no total ever needs more than 3072 bits below the point.
    """
    ratios = map(_bounded, amount.ratios, total.ratios_in(amount.units))
    return Amount(amount.units, tuple(ratios))


def _bounded(value: Ratio, total: Ratio) -> Ratio:
    (top, bottom), (_, denominator) = value, total
    if not denominator % bottom or lcm(bottom, denominator).bit_length() <= _MOST_BITS:
        return value
    return Fraction(-(-(top << _GRID_BITS) // bottom), 1 << _GRID_BITS).as_integer_ratio()


# Accountants --------------------------------------------------------------------------------------


class Accountant(Protocol):
    """Turns promises and costs into amounts of one currency."""

    @property
    def name(self) -> str:
        """How it is called in ``Budget.create(accountant=...)``."""
        ...

    @property
    def because(self) -> str:
        """The theorems that make it sound."""
        ...

    def limit(self, promise: Privacy) -> Amount:
        """What may be spent in all, so that the promise holds."""
        ...

    def charge(self, cost: Cost) -> Amount:
        """What a mechanism costs."""
        ...

    def share(
        self,
        promise: Privacy,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> Amount:
        """A part of the limit, from what the steward wrote."""
        ...

    def spent_privacy(self, spent: Amount, promise: Privacy) -> Privacy | None:
        """What has been promised so far by what was spent; None for nothing."""
        ...

    def largest_cost(self, left: Amount) -> Privacy | None:
        """The largest single cost that still fits; None for nothing."""
        ...


class SumAccountant:
    """Adds up (ε, δ): charges (Σεᵢ, Σδᵢ) and stops before either passes the promise.

    *Privacy.* For pure costs and for (ε, δ), amounts chosen adaptively: Rogers, Roth, Ullman
    and Vadhan 2016 ("Privacy odometers and filters"; basic composition is a valid filter).
    Interleaved interactive streams: pure, Vadhan and Wang 2021; (ε, δ), Lyu 2022 and Vadhan and
    Zhang 2023; streams opened adaptively while others run, Haney, Shoemate, Tian, Vadhan,
    Vyrros, Xu and Zhang 2023 (every valid filter extends to concurrent composition).
    """

    name = "sum"
    because = (
        "basic composition is a valid privacy filter (Rogers, Roth, Ullman, Vadhan 2016), and "
        "every valid (ε, δ) filter extends to interleaved streams (Haney et al. 2023)"
    )

    def limit(self, promise: Privacy) -> Amount:
        """The promise itself."""
        return Amount.of(epsilon=promise.epsilon, delta=promise.delta)

    def charge(self, cost: Cost) -> Amount:
        """The cost's (ε, δ)."""
        promise = cost.privacy
        ratios = promise.epsilon.as_integer_ratio(), promise.delta.as_integer_ratio()
        return Amount(_EPSILON_DELTA, ratios)

    def share(
        self,
        promise: Privacy,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> Amount:
        """(ε, δ) as written; δ = 0 unless said."""
        if rho is not None:
            exact(rho, "rho")
            raise BadParameter(
                "rho", rho, "this budget adds up (ε, δ): share it by epsilon and delta"
            )
        return Amount.of(
            epsilon=_part(epsilon, "epsilon"), delta=_part(0 if delta is None else delta, "delta")
        )

    def spent_privacy(self, spent: Amount, promise: Privacy) -> Privacy | None:
        """The sums themselves."""
        return Privacy(spent.epsilon, spent.delta) if spent.epsilon else None

    def largest_cost(self, left: Amount) -> Privacy | None:
        """Whatever is left."""
        return Privacy(left.epsilon, left.delta) if left.epsilon > 0 else None


class ZcdpAccountant:
    """Adds up ρ: pure parts cost ε₀²/2 or ε₀²/8 each, and ρ is promised as one (ε, δ).

    *Privacy.* An ε₀-private mechanism is ε₀²/2-zCDP (Bun and Steinke 2016, Proposition 1.4), and
    one whose loss has a bounded range of length ε₀ is ε₀²/8-zCDP (`tacit.book.zcdp.rho_of_range`);
    an interactive one too, because it is a randomised response that somebody else works on
    (Vadhan and Wang 2021; Lyu 2022).  zCDP is a bound on the Rényi divergence of every order,
    and a sum within a limit is a valid filter at each order when amounts are chosen adaptively
    (Feldman and Zrnic 2021; Lécuyer 2021), also for interleaved streams opened adaptively
    (Haney et al. 2023, for Rényi divergence of fixed order).  The limit is the largest ρ whose
    conversion (theory: δ = min over a > 1 of exp((a−1)(aρ−ε))/(a−1) · (1−1/a)^a; Canonne,
    Kamath and Steinke 2020) keeps to the promise, rounded down.

    A cost without parts is refused: (ε, δ) with δ > 0 bounds no Rényi divergence.
    """

    name = "zcdp"
    because = (
        "a sum of ρ within a limit is a valid Rényi filter (Feldman, Zrnic 2021; Lécuyer 2021), "
        "and Rényi filters extend to interleaved streams (Haney et al. 2023)"
    )

    def limit(self, promise: Privacy) -> Amount:
        """The largest ρ that keeps to the promise; it needs δ > 0."""
        if promise.delta == 0:
            raise BadParameter(
                "delta", 0, "zCDP cannot promise that: give delta > 0, or use accountant='sum'"
            )
        return Amount.of(rho=zcdp_rho(promise.epsilon, promise.delta))

    def charge(self, cost: Cost) -> Amount:
        """Σ ε₀²/2 over the parts, and Σ ε₀²/8 over the ranges."""
        if not cost.pieces:
            raise ConditionNotMet(
                f"a cost of {cost.privacy} that is not made of pure parts has no ρ: a zCDP budget "
                "cannot account for it; use a recipe with pure parts, or a budget that adds up "
                "(ε, δ)"
            )
        parts = sum((n * rho_of_epsilon(each) for n, each in cost.parts), Fraction(0))
        return Amount.of(rho=parts + sum(n * rho_of_range(each) for n, each in cost.ranges))

    def share(
        self,
        promise: Privacy,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> Amount:
        """ρ as written, or the ρ that keeps to (ε, δ); δ is the budget's unless said."""
        if rho is not None:
            if epsilon is not None or delta is not None:
                raise BadParameter("rho", rho, "give either rho or epsilon and delta")
            return Amount.of(rho=_part(rho, "rho"))
        part = _part(epsilon, "epsilon")
        if part == 0:
            return Amount.of(rho=Fraction(0))
        return self.limit(Privacy(part, promise.delta if delta is None else delta))

    def spent_privacy(self, spent: Amount, promise: Privacy) -> Privacy | None:
        """The ε that ρ comes to at the budget's δ, rounded up."""
        if spent.rho == 0:
            return None
        return Privacy(zcdp_epsilon(spent.rho, promise.delta) or _SMALL, promise.delta)

    def largest_cost(self, left: Amount) -> Privacy | None:
        """One pure mechanism with ε²/2 within what is left, rounded down."""
        if left.rho <= 0:
            return None
        bits = 64 + left.rho.denominator.bit_length()
        return Privacy(certified.round_down(certified.sqrt(2 * left.rho, bits)[0]))


ACCOUNTANTS: dict[str, Accountant] = {"sum": SumAccountant(), "zcdp": ZcdpAccountant()}


def accountant_named(name: str) -> Accountant:
    """The accountant of that name."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        raise BadParameter("accountant", as_given(name), f"it is one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]


def what_fits(accountant: Accountant, left: Amount) -> str:
    """A sentence: the largest single cost that still fits."""
    largest = accountant.largest_cost(left)
    if largest is None:
        return "Nothing fits any more."
    delta = f", δ = {no_more_than(largest.delta)}" if largest.delta else ""
    return f"A cost of at most ε = {no_more_than(largest.epsilon)}{delta} would fit."


def _part(value: Number | None, name: str) -> Fraction:
    """A number that is at least 0; a share may be taken back to nothing."""
    if value is None:
        raise BadParameter(name, None, "say how much", "as in budget.share('ana', epsilon=0.1)")
    number = exact(value, name)
    if number < 0:
        raise BadParameter(name, value, "it must be at least 0")
    return number
