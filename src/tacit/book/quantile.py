"""A quantile of values from a declared, ordered domain: the exponential mechanism over its gaps.

A value y of the domain is a τ-quantile of n values if at most τn of them are less and at most
(1 − τ)n are more.  How far it is from one is counted in ranks:

    d(y) = max(0, #{x < y} − τn, τn − #{x ≤ y}),

and y is drawn with probability proportional to e^(−ε d(y)/(2Δ)) (McSherry and Talwar 2007).  With
n = #{x < y} + #{x ≥ y}, #{x < y} − τn = (1 − τ)·#{x < y} − τ·#{x ≥ y}, and likewise for the other
side: one more value changes either by no more than Δ = max(τ, 1 − τ).

(The score |(1 − τ)·#{x < y} − τ·#{x > y}| has the same sensitivity, and is 0 at a quantile only
where no value is met twice: of values of which 55 % are 0 it would hardly ever draw the median 0.)

The least and the greatest value cannot be told: they are one person's.  In their place stands the
k-th from below or above, for which τn above is k, and n − k; one more value changes d by at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tacit.book.coins import WIDEST_NOISE, Coins, given_coins
from tacit.draws.scalar import WeightedChoice
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, positive, probability, whole
from tacit.numerics import certified
from tacit.privacy import Cost

__all__ = ["QuantileMechanism"]

MOST_VALUES = 1 << 63
_LEVELS = 64  # of −ln(probability): beyond them a domain of 2^63 values weighs less than the best
_DEFAULT_BETA = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class QuantileMechanism:
    """The τ-quantile of values from a domain of so many; or the least or greatest, as told above.

    ``end`` is 0 for a quantile, −1 for the least value and +1 for the greatest; then ``share`` is
    not used.

    Privacy: (ε, 0), if a person adds or removes at most ``max_rows`` values.  Its loss lies in an
    interval of length ε, which contains 0.
    Accuracy: `error`.

    >>> QuantileMechanism(Fraction(1, 2), 1000, epsilon=1).error()
    10
    >>> QuantileMechanism(Fraction(0), 1000, epsilon=1, end=-1).rank
    21
    """

    share: Fraction
    domain_size: int
    epsilon: Fraction
    max_rows: int
    end: int

    def __init__(
        self,
        share: Number,
        domain_size: int,
        *,
        epsilon: Number,
        max_rows: int = 1,
        end: int = 0,
    ) -> None:
        tau = exact(share, "share")
        if not 0 <= tau <= 1:
            raise BadParameter("share", as_given(share), "it must be between 0 and 1")
        if end not in (-1, 0, 1):
            raise BadParameter("end", as_given(end), "it must be -1, 0 or 1")
        if tau in (0, 1) and not end:
            raise BadParameter(
                "share", as_given(share), "for the least or greatest value, give end"
            )
        object.__setattr__(self, "share", tau)
        object.__setattr__(self, "domain_size", whole(domain_size, "domain_size"))
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "max_rows", whole(max_rows, "max_rows"))
        object.__setattr__(self, "end", end)
        if self.domain_size > MOST_VALUES:
            raise BadParameter(
                "domain_size",
                as_given(domain_size),
                "it must be at most 2^63: declare narrower bounds",
            )
        if 1 / self.rate > WIDEST_NOISE:
            raise BadParameter(
                "epsilon", as_given(epsilon), "noise would be wider than 2^200 ranks"
            )

    @property
    def cost(self) -> Cost:
        """(ε, 0), with a bounded range."""
        return Cost.bounded_range(self.epsilon)

    @property
    def unit(self) -> int:
        """Ranks are counted in so many parts, so that τn is whole."""
        return 1 if self.end else self.share.denominator

    @property
    def rate(self) -> Fraction:
        """How much less likely a value is that is further off by a part of a rank: ε/(2Δ)."""
        above = self.share.numerator
        most = 1 if self.end else max(above, self.unit - above)
        return self.epsilon / (2 * most * self.max_rows)

    def error(self, beta: Number = _DEFAULT_BETA) -> int:
        """By how many ranks what is drawn may be off, except with probability β.

        Accuracy: one that is further than t ranks off, or further than the nearest plus t if the
        k-th is asked for and there are fewer than k, has at most e^(−rate·t) times the chance of
        the best, and there are at most ``domain_size`` of them.
        """
        return ceil(
            _logarithm(self.domain_size / probability(beta, "beta")) / self.rate / self.unit
        )

    @property
    def rank(self) -> int:
        """For an end, k: with 95 % it is not beyond the end, and at most 2k values are further."""
        return self.error() + 1

    def draw(self, places: NDArray[np.int64], coins: Coins) -> int:
        """The place in the domain of what is drawn; given are the places of all values, sorted.

        Exact: the places that are at most d off are an interval of the domain, which grows with d.
        Those between one level and the next are chosen with a probability that is proportional to
        their number times e^(−rate·level), then one of them, which is taken with probability
        e^(−rate·(d − level)), or else all is done again: with probability at least 1/(e + 1).
        """
        given_coins(coins)
        rate = self.rate
        ranks = _Ranks(places, self)
        levels = _levels(rate)
        intervals = [(1, 0), *(ranks.within(ranks.nearest + level) for level in levels)]
        intervals.append((0, self.domain_size - 1))
        starts = [0, *(level + 1 for level in levels)]
        sizes = [
            (after[1] - after[0]) - (before[1] - before[0]) for before, after in pairwise(intervals)
        ]
        gammas = [rate * start for start in starts]
        choice = WeightedChoice(sizes, gammas)
        while True:
            level = choice.draw(coins)
            place = _between(intervals[level], intervals[level + 1], coins.below(sizes[level]))
            above = ranks.off(place) - ranks.nearest - starts[level]
            if coins.bernoulli_exp_steps(above, rate):
                return place


@lru_cache(maxsize=64)
def _logarithm(x: Fraction) -> Fraction:
    return certified.ln(x)[1]


@lru_cache(maxsize=64)
def _levels(rate: Fraction) -> list[int]:
    """Distances at which the chance has fallen by e, e², ..., each once."""
    return sorted({ceil(at / rate) for at in range(_LEVELS)})


def _between(inner: tuple[int, int], outer: tuple[int, int], at: int) -> int:
    """The at-th place of an interval that is not in another inside it."""
    if inner[1] < inner[0]:  # which is empty
        return outer[0] + at
    left = inner[0] - outer[0]
    return outer[0] + at if at < left else inner[1] + 1 + at - left


class _Ranks:
    """How far places are from the quantile of some values, in parts of a rank."""

    def __init__(self, places: Sequence[int] | NDArray[np.int64], asked: QuantileMechanism) -> None:
        self._places = np.asarray(places)
        self._unit, self._last = asked.unit, asked.domain_size - 1
        values = len(self._places)
        below = {
            0: asked.share * values,
            -1: Fraction(asked.rank),
            1: Fraction(values - asked.rank),
        }
        self._target = int(below[asked.end] * self._unit)

    @cached_property
    def nearest(self) -> int:
        """How far the nearest is: 0, unless there are fewer values than the rank that is asked."""
        most = len(self._places) * self._unit
        return max(0, self._target - most, -self._target)

    def off(self, place: int) -> int:
        """How far a place is from the quantile."""
        less = int(np.searchsorted(self._places, place, "left"))
        up_to = int(np.searchsorted(self._places, place, "right"))
        return max(0, less * self._unit - self._target, self._target - up_to * self._unit)

    def within(self, off: int) -> tuple[int, int]:
        """The first and the last place that are at most so far off.

        The first is the r-th value, for the least r with r ≥ target − off; the last is the one
        after r values, for the largest r with r ≤ target + off.
        """
        first = -(-(self._target - off) // self._unit)
        last = (self._target + off) // self._unit
        low = 0 if first <= 0 else int(self._places[first - 1])
        high = self._last if last >= len(self._places) else int(self._places[last])
        return low, high
