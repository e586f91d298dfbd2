"""Optimal composition of mechanisms that differ, with bounds from both sides.

Mechanisms that are (ε₁, δ₁)-, …, (ε_k, δ_k)-private, all fixed in advance, are together
(ε, δ)-private for every ε ≥ 0 with

    δ = 1 − Π (1 − δᵢ) · (1 − δ_pure),   δ_pure = E[(1 − e^(ε − L))₊],   L = Σ ± εᵢ,

where the signs are independent and + has probability e^εᵢ/(1 + e^εᵢ); no smaller δ is true of all
such mechanisms (Murtagh and Vadhan, 2016, Theorem 1.5).  To compute it exactly is #P-hard.  For a
few mechanisms, or few kinds of them, all values of L are enumerated; for many, the law of L is put
on a grid, which bounds δ from both sides (`tacit.book.loss_law`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, cosh, gcd, lcm, log, log1p, sqrt, tanh
from typing import NamedTuple, Protocol, TypeAlias

from tacit.book.loss_law import LossGroup, OnGrid, Window, blocks, cell_by_cell, enumerated, group
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
from tacit.numerics.binomial import decimal, own_digits, tail
from tacit.numerics.certified import SLACKS, rounded_down, rounded_up
from tacit.privacy import Privacy

Part: TypeAlias = Privacy | Number | tuple[Number, Number]
"""One mechanism: a Privacy, an ε, or a pair (ε, δ); ε may be 0."""

Parts: TypeAlias = Iterable[Part] | Mapping[Part, int]
"""All mechanisms one by one, or each kind with how many there are of it."""

Pure = Sequence[tuple[Fraction, int]]
"""(ε, how many), each ε once and greater than 0."""

_LEAST, _LARGEST = Fraction(1, 10**30), 1000  # of each ε that is not 0
_MOST = 10**9  # mechanisms
_CLOSE = Fraction(1, 10**13)  # relative, to the ε that a search looks for
_WIDTH = 9  # of the window, in standard deviations on either side of what matters
_MOST_CELLS = 1 << 17  # of the window
_WORK = 1e10  # multiplications that a convolution may take: a few seconds


class Between(NamedTuple):
    """A number that lies between these two; `at_most` is the one to promise."""

    at_most: float
    at_least: float


@own_digits
def mixed_optimal_delta(parts: Parts, epsilon: Number) -> Between:
    """The δ with which mechanisms that differ are (ε, δ)-private together.

    ``parts`` lists an ε, a pair (ε, δ) or a `Privacy` for each mechanism, or maps each kind to how
    many there are.  All of them must be fixed in advance: the theorem does not cover amounts that
    depend on earlier answers, so no budget uses it.

    Privacy: ``at_most`` is never below the true δ, nor ``at_least`` above it.

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

    ``parts`` are as for `mixed_optimal_delta`, and fixed in advance.

    Privacy: ``at_most`` is never below the true ε, nor ``at_least`` above it.

    >>> at_most, at_least = mixed_optimal_epsilon({"0.1": 50, ("0.02", "1e-9"): 1000}, "1e-5")
    >>> round(at_most, 3), at_most - at_least < 1e-9
    (4.096, True)
    """
    read, delta = mixture(parts), chance_or_zero(delta, "delta")
    plain = read.plain
    if total_delta(Decimal(0), plain) > delta:
        raise ConditionNotMet(
            f"delta = {as_given(delta)} is too small: the δ of these {read.count} mechanisms "
            f"alone come to {as_given(total_delta(Decimal(0), plain))}",
            advice="use a larger delta, or fewer mechanisms",
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
    """How many more mechanisms of one kind can join these, so that all are (ε, δ)-private together.

    Privacy: that many are safe.  Where the grid cannot decide, more might be.

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
        if read.epsilon + more * each <= epsilon:  # no loss is above ε
            return total_delta(Decimal(0), with_more) <= delta
        return _upper(laws(more), with_more, epsilon) <= delta

    if not fits(0):
        raise ConditionNotMet(
            f"the {read.count} mechanisms in parts alone need more than "
            f"(epsilon = {as_given(epsilon)}, delta = {as_given(delta)})",
            advice="use a larger epsilon or delta, or fewer mechanisms",
        )
    return _largest(fits, most)


def _meet(holds: Callable[[Fraction], bool], high: Fraction) -> Fraction:
    """About the least ε from which on something holds; it holds at `high` and not at 0."""
    low = Fraction(0)
    while high - low > high * _CLOSE:
        middle = Fraction(float(low + high) / 2)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits, if all smaller ones fit; 0 always does."""
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


# The list (ε₁, δ₁), …, (ε_k, δ_k), read exactly, with equal mechanisms counted together.


@dataclass(frozen=True, slots=True)
class Mixture:
    """How many mechanisms there are of each kind."""

    kinds: tuple[tuple[Fraction, Fraction, int], ...]  # (ε, δ, how many), no two kinds alike

    @property
    def count(self) -> int:
        """k, the number of all mechanisms."""
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
        """(ε, how many), for every ε greater than 0, the largest first."""
        counts: dict[Fraction, int] = {}
        for epsilon, _, many in self.kinds:
            if epsilon:
                counts[epsilon] = counts.get(epsilon, 0) + many
        return tuple(sorted(counts.items(), reverse=True))

    @property
    @own_digits
    def plain(self) -> Decimal:
        """1 − Π (1 − δᵢ): the chance that one of them gives the plain truth."""
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
            name, as_given(parts), "give a list of ε, pairs (ε, δ) or Privacy(epsilon, delta)"
        )
    counts: dict[tuple[Fraction, Fraction], int] = {}
    for part, many in given:
        kind = read_part(part, name)
        counts[kind] = counts.get(kind, 0) + whole(many, name)
    if not counts:
        raise BadParameter(name, "an empty list", "give at least one mechanism")
    read = Mixture(tuple((*kind, many) for kind, many in counts.items()))
    if read.count > _MOST:
        raise BadParameter(name, f"a list of {read.count}", "give at most 10**9 mechanisms")
    return read


def read_part(part: object, name: str) -> tuple[Fraction, Fraction]:
    """(ε, δ) of one mechanism."""
    if isinstance(part, Privacy):
        given: tuple[object, object] = part.epsilon, part.delta
    elif isinstance(part, tuple | list):
        if len(part) != 2:
            raise BadParameter(name, as_given(part), "give an ε or a pair (ε, δ) for each")
        given = part[0], part[1]
    else:
        given = part, 0
    epsilon, delta = exact(given[0], name), small_probability(given[1], name)
    if epsilon and not _LEAST <= epsilon <= _LARGEST:
        raise BadParameter(name, as_given(given[0]), "each ε must be 0 or in [1e-30, 1000]")
    if delta and not Fraction(1, 10**400) <= delta <= 1 - Fraction(1, 10**12):
        raise BadParameter(name, as_given(given[1]), "each δ must be 0 or in [1e-400, 1 - 1e-12]")
    return epsilon, delta


# The law of L: of mechanisms of one kind, enumerated, or on a grid.


class LossLaw(Protocol):
    """Bounds on δ_pure as a function of ε."""

    def upper(self, epsilon: Fraction) -> Decimal | float:
        """An upper bound."""

    def lower(self, epsilon: Fraction) -> Decimal | float:
        """A lower bound."""


def loss_law(pure: Pure, low: Fraction, high: Fraction) -> LossLaw:
    """The law of the loss, for ε from `low` to `high`."""
    return loss_laws(pure, Fraction(0), 0, low, high)(0)


def loss_laws(
    pure: Pure, each: Fraction, most: int, low: Fraction, high: Fraction
) -> Callable[[int], LossLaw]:
    """The laws of these and `more` of one kind, as a function of `more`, up to `most`."""

    @lru_cache(maxsize=1)
    def base() -> Window:
        groups = [group(*one) for one in pure]
        everything = [*groups, group(each, most)] if each and most else groups
        step, below, above = fineness(everything, low, high)
        return Window.empty(step, below, above).plus(blocks(groups, step))

    def law(more: int) -> LossLaw:
        counts = dict(pure)
        if each and more:
            counts[each] = counts.get(each, 0) + more
        if len(counts) <= 1:
            return _Alone(*next(iter(counts.items()), (Fraction(1), 0)))
        largest = sum((many * one for one, many in counts.items()), Fraction(0))
        few = enumerated(sorted(counts.items()))
        if few is None:
            extra = blocks([group(each, more)], base().step) if each and more else []
            return _Bounded(OnGrid.of(base().plus(extra)), largest)
        return _Bounded(few, largest)

    return law


@dataclass(frozen=True, slots=True)
class _Alone:
    """The law of mechanisms of one kind, or of none."""

    each: Fraction
    many: int

    def upper(self, epsilon: Fraction) -> Decimal:
        return tail(self.many, self.each, self.each, epsilon).delta if self.many else Decimal(0)

    def lower(self, epsilon: Fraction) -> Decimal:
        found = self.upper(epsilon)
        safe = found > Decimal("1e-250")  # where `tail` states its accuracy
        return found * (1 - Decimal("1e-12") * (1 + self.many // 10**6)) if safe else Decimal(0)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A law with the knowledge that no loss exceeds the sum of all ε."""

    law: LossLaw
    largest: Fraction

    def upper(self, epsilon: Fraction) -> Decimal | float:
        return self.law.upper(epsilon) if epsilon < self.largest else 0.0

    def lower(self, epsilon: Fraction) -> Decimal | float:
        return self.law.lower(epsilon) if epsilon < self.largest else 0.0


# The grid: how fine it is, and how wide its window, as far as a few seconds allow.
#
# Every grid and window give true bounds, and good ones give close bounds.  So floats may choose.


@dataclass(frozen=True, slots=True)
class Bell:
    """Approximately the mean and the standard deviation of a loss."""

    mean: float
    deviation: float
    squares: float  # Σ εᵢ²

    @classmethod
    def of(cls, pure: Pure) -> Bell:
        """For signs that are drawn independently."""
        sizes = [(float(each), many) for each, many in pure]
        mean = sum(many * x * tanh(x / 2) for x, many in sizes)
        variance = sum(many * (x / cosh(min(x / 2, 300))) ** 2 for x, many in sizes)
        return cls(mean, sqrt(variance), sum(many * x * x for x, many in sizes))

    def around(self, delta: float) -> tuple[Fraction, Fraction]:
        """Two ε between which δ falls to this value."""
        high = self.mean + sqrt(-2 * self.squares * log(delta))  # Theorem 3.20
        low = self.mean - 2 * self.deviation - 1
        if delta > 0.3:
            low += log1p(-min(delta, 1 - 1e-12)) - 7 * self.deviation
        return Fraction(max(low, 0.0)), Fraction(high)


def fineness(
    groups: Sequence[LossGroup], low: Fraction, high: Fraction
) -> tuple[Fraction, int, int]:
    """The grid's step, and how many cells it has below and above the mean."""
    pure = [(one.each, one.many) for one in groups]
    bell, largest = Bell.of(pure), float(sum(many * each for each, many in pure))
    below = max(bell.mean - float(low), 0.0) + _WIDTH * bell.deviation
    above = max(float(high) - bell.mean, 0.0) + _WIDTH * bell.deviation
    below, above = min(below, bell.mean + largest), min(above, largest - bell.mean)
    below = max(below, largest / 10**6)  # with large ε the loss is nearly certain
    finest = Fraction((below + above) / _MOST_CELLS)
    step = _common_step([each for each, _ in pure], finest)  # then nothing lies between cells
    if step is None or _work(groups, step, 1) * (below + above) / float(step) > _WORK:
        step = finest
        while _work(groups, step, 2) * (below + above) / float(step) > _WORK:
            step *= 2
    room = 2 * len(groups) + 2  # for rounding to cells
    return step, ceil(below / float(step)) + room, ceil(above / float(step)) + room


def _work(groups: Sequence[LossGroup], step: Fraction, split: int) -> float:
    """About how many multiplications each cell of the window takes; the widest law takes none."""
    work, h = [], float(step)
    for one in groups:
        width = int(2 * len(one.chances) * float(one.each) / h) + 2
        cells = min(split * len(one.chances), width)
        work.append(6 * cells if cell_by_cell(cells, width) else width)
    return sum(work) - max(work) + 1


def _common_step(sizes: Sequence[Fraction], least: Fraction) -> Fraction | None:
    """The largest number of which all sizes are multiples; None if it is less than `least`."""
    common = sizes[0]
    for size in sizes:
        whole = lcm(common.denominator, size.denominator)
        parts = (
            common.numerator * (whole // common.denominator),
            size.numerator * (whole // size.denominator),
        )
        common = Fraction(gcd(*parts), whole)
        if common < least:
            return None
    return common
