"""The laws that are drawn in bulk, as certified cumulative probabilities, in integers only.

A law on the indexes 0..n is given by its n inner boundaries: ``law(bits)`` lists, for
k = 1..n, integers (low, high) with low ≤ 2^bits · Pr[index < k] ≤ high.  Bounds close in on the
truth as ``bits`` grows.  With q = e^(−rate), rate > 0 rational, q is transcendental (Lindemann),
so are the boundaries below, and none ever coincides with a fraction of a power of two: enough
bits settle every comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.draws.keystream import KeyStream
from tacit.numerics import certified
from tacit.numerics.certified import Units

Cumulative = Callable[[int], list[Units]]

_GUARD_BITS = 32


def powers(rate: Fraction, count: int, bits: int) -> list[Units]:
    """Bounds of 2^bits · e^(−rate·k) for k = 0..count−1, each from the one before."""
    work = bits + _GUARD_BITS + count.bit_length()
    ratio_low, ratio_high = certified.exp_minus(rate, work)
    low = high = 1 << work
    bounds = []
    for _ in range(count):
        bounds.append((low >> work - bits, -(-high >> work - bits)))
        low, high = low * ratio_low >> work, min(-(-high * ratio_high >> work), high)
    return bounds


def floors(law: Cumulative, bits: int) -> list[int]:
    """Integers f_k with f_k ≤ 2^bits · boundary_k ≤ f_k + 1, beyond doubt."""
    extra = _GUARD_BITS
    while True:
        bounds = law(bits + extra)
        result = [low >> extra for low, _ in bounds]
        if all(high <= floor + 1 << extra for floor, (_, high) in zip(result, bounds, strict=True)):
            return result
        extra *= 2


def truncated_geometric(rate: Fraction, count: int) -> Cumulative:
    """Pr[index = k] ∝ e^(−rate·k) on 0..count−1: boundaries (1 − q^k)/(1 − q^count)."""

    def law(bits: int) -> list[Units]:
        work = bits + _GUARD_BITS + (rate.denominator // rate.numerator).bit_length()
        one = 1 << work
        *inner, (last_low, last_high) = powers(rate, count + 1, work)
        return [
            ((one - high << bits) // (one - last_low), -((low - one << bits) // (one - last_high)))
            for low, high in inner[1:]
        ]

    return law


def geometric(rate: Fraction, cut: int) -> Cumulative:
    """Pr[index = k] ∝ e^(−rate·k) for k < cut; index = cut stands for all that lies beyond."""

    def law(bits: int) -> list[Units]:
        one = 1 << bits
        return [(one - high, one - low) for low, high in powers(rate, cut + 1, bits)[1:]]

    return law


def signed_geometric(rate: Fraction, cut: int, sign_rate: Fraction) -> Cumulative:
    """A geometric size and an independent sign, negative with probability 1/(1 + e^sign_rate).

    Index cut + 1 + h stands for the size h with a plus, cut − h for the size h with a minus;
    the indexes 0 and 2·cut + 1 stand for all sizes from ``cut`` on.
    """

    def law(bits: int) -> list[Units]:
        work = bits + _GUARD_BITS
        one = 1 << work
        low_q, high_q = certified.exp_minus(sign_rate, work)
        minus_low, minus_high = (
            (low_q << work) // (one + low_q),
            -((-high_q << work) // (one + high_q)),
        )
        sizes = powers(rate, cut + 1, work)
        shift = work + _GUARD_BITS
        minus = [(low * minus_low >> shift, -(-high * minus_high >> shift)) for low, high in sizes]
        plus = [
            (
                (one << work) - high * (one - minus_low) >> shift,
                -(low * (one - minus_high) - (one << work) >> shift),
            )
            for low, high in sizes[1:]
        ]
        return minus[::-1] + plus

    return law


# Draws from a law in bulk, by the inverse of its distribution function.
#
# One uniform number U decides one index: the number of boundaries below U.  Its leading word
# points into a table; a word whose whole cell [w, w+1)/2^b lies between two boundaries is settled
# there.  A word whose cell holds a boundary is extended, as the same number, to a longer word and
# searched among certified boundaries; a longer word that meets a boundary is extended again, with
# sharper bounds, until it is settled.  No probability is rounded, whatever the word sizes are.


_MORE_BITS = 64
_OPEN = np.iinfo(np.int64).min  # stands in the table where the leading word does not settle


class WordBounds(NamedTuple):
    """How many leading bits are looked up, and how many are searched; tests use few."""

    first: int = 16
    second: int = 48


WORDS = WordBounds()


class InverseTable:
    """A law prepared for drawing: ``values[index]`` for a random index.

    ``tails`` are indexes that stand for everything beyond ``values[index]``.  Such a law is
    geometric, hence memoryless: a fresh draw is added to what was reached.
    """

    def __init__(
        self,
        law: Cumulative,
        values: Sequence[int],
        tails: Sequence[int] = (),
        words: WordBounds = WORDS,
    ) -> None:
        self._law = lru_cache(maxsize=4)(law)
        self._values = np.array(values, np.int64)
        self._is_tail = np.isin(np.arange(len(values)), tails)
        self._words, self._extra_bits = words, words.second - words.first
        self._floors = np.array(floors(law, words.second), np.int64)
        starts = np.arange((1 << words.first) + 1) << self._extra_bits
        index = np.searchsorted(self._floors, starts)
        settled = (index[:-1] == index[1:]) & ~self._is_tail[index[:-1]]
        self._table = np.where(settled, self._values[index[:-1]], _OPEN)

    def draw(self, stream: KeyStream, out: NDArray[np.int64]) -> None:
        """Overwrite a contiguous array with independent draws."""
        words = np.empty(out.size, np.uint16)
        stream.fill(words)
        first = words.astype(np.int64)
        if self._words.first < 16:
            first >>= 16 - self._words.first
        np.take(self._table, first, out=out, mode="clip")  # "clip" writes without a copy
        open_places = np.flatnonzero(out == _OPEN)
        if open_places.size:
            out[open_places] = self._settle(stream, first[open_places])

    def _settle(self, stream: KeyStream, first: NDArray[np.int64]) -> NDArray[np.int64]:
        more = np.empty(first.size, np.uint32)
        stream.fill(more)
        words = first << self._extra_bits | more >> (32 - self._extra_bits)
        index = np.searchsorted(self._floors, words)
        ties = np.take(self._floors, index, mode="clip") == words
        for place in np.flatnonzero(ties):
            index[place] = self._settle_tie(stream, int(words[place]))
        values = self._values[index]
        for place in np.flatnonzero(self._is_tail[index]):
            values[place] = self._beyond(stream, int(values[place]))
        return values

    def _settle_tie(self, stream: KeyStream, word: int) -> int:
        """The index of a number U whose leading bits are `word`, which meet a boundary."""
        bits = self._words.second
        while True:
            word = word << _MORE_BITS | stream.bits(_MORE_BITS)
            bits += _MORE_BITS
            bounds = self._law(bits)
            surely_below = sum(high <= word for _, high in bounds)  # boundary ≤ word/2^bits ≤ U
            perhaps_below = sum(low <= word for low, _ in bounds)  # else U < (word+1)/2^bits ≤ it
            if surely_below == perhaps_below:
                return surely_below

    def _beyond(self, stream: KeyStream, reached: int) -> int:
        """At least `reached` in size, with the same sign: ~x is the mirror image of x."""
        fresh = np.empty(1, np.int64)
        self.draw(stream, fresh)
        size = int(fresh[0])
        size = size if size >= 0 else ~size
        return reached + size if reached >= 0 else reached - size
