"""What the laws of small releases are made of, as lists of outcomes with their exact chances.

Noise and draws are computed as fractions, from e^(−x) to 256 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.audit.exhibits import Pair, moved
from tacit.audit.variants import Steps
from tacit.book.coins import Coins
from tacit.numerics import certified

Law = dict[tuple[int, ...], Fraction]

_BITS = 256  # of e^(−x), so that the listed chances are exact beyond any float


@lru_cache(maxsize=4096)
def exp_minus(x: Fraction) -> Fraction:
    """e^(−x), but for less than 2^(−256)."""
    return Fraction(certified.exp_minus(x, _BITS)[0], 1 << _BITS)


# Neighbours ---------------------------------------------------------------------------------------


def one_more(values: Iterable[Sequence[int]]) -> Iterator[Pair]:
    """Each of some vectors of counts beside those with one more in a place."""
    for here in values:
        size = len(here)
        yield from moved([here], [[at == place for at in range(size)] for place in range(size)])


# Noisy counts -------------------------------------------------------------------------------------


def reaches(distance: int, scale: Fraction) -> Fraction:
    """The chance that discrete Laplace noise is at least so much."""
    q = exp_minus(1 / scale)
    return q**distance / (1 + q) if distance > 0 else 1 - q ** (1 - distance) / (1 + q)


def clipped(count: int, scale: Fraction, low: int, high: int, unit: int = 1) -> Law:
    """The chance of each noisy count, where all up to ``low`` are one outcome, and from ``high``.

    Of ``unit`` neighbouring numbers each time, one outcome is made.  The largest losses are not
    lost sight of where both true counts are whole numbers of units above ``low``, up to ``high``.
    """
    at_least = {told: reaches(told * unit - count, scale) for told in range(low + 1, high + 1)}
    at_least[low] = Fraction(1)
    return {
        (told,): at_least[told] - at_least.get(told + 1, Fraction(0))
        for told in range(low, high + 1)
    }


def together(laws: Sequence[Law]) -> Law:
    """The law of what is told independently, one after another."""
    found: Law = {(): Fraction(1)}
    for law in laws:
        found = {
            (*before, *told): chance * each
            for before, chance in found.items()
            for told, each in law.items()
        }
    return found


def told_of(counts: Sequence[int], scale: Fraction, middle: int) -> Law:
    """The chance of each way in which noisy counts are less than a number, equal to it, or more."""
    return together([clipped(count - middle, scale, -1, 1) for count in counts])


# The exponential mechanism ------------------------------------------------------------------------


def order_law(scores: Sequence[int], places: int, rate: Fraction) -> Law:
    """The chance of each order in which so many are drawn, each ∝ e^(rate·score) of those left."""
    highest = max(scores)
    weights = [exp_minus((highest - score) * rate) for score in scores]
    law: Law = {(): Fraction(1)}
    for _ in range(places):
        law = {
            (*drawn, place): chance * weight / total
            for drawn, chance in law.items()
            if (total := sum(weights) - sum(weights[each] for each in drawn))
            for place, weight in enumerate(weights)
            if place not in drawn
        }
    return law


def drawn_orders(
    scores: Sequence[int], places: int, rate: Fraction, size: int, coins: Coins
) -> Steps:
    """``size`` independent draws of such an order."""
    values = np.array(scores, np.int64)
    left = np.ones((size, len(values)), np.bool_)
    drawn = np.empty((size, places), np.int64)
    for place in range(places):
        short = np.where(left, values, values.min()).max(axis=1)
        waiting = np.arange(size)
        while len(waiting):
            tried = coins.belows(len(values), len(waiting))
            taken = left[waiting, tried]
            off = np.where(taken, short[waiting] - values[tried], 0)
            taken &= coins.bernoulli_exps(off, rate)
            drawn[waiting[taken], place] = tried[taken]
            waiting = waiting[~taken]
        left[np.arange(size), drawn[:, place]] = False
    return drawn
