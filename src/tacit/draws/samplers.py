"""Coins and noise in bulk, in integers only.

A word of key stream is the beginning of a uniform number U in [0, 1).  Nearly always it decides a
draw by itself; otherwise more bits of the same U are drawn until certified bounds decide it.  No
probability is ever rounded (``docs/exactness.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.draws import scalar
from tacit.draws.keystream import KeyStream, forget_in_child
from tacit.numbers import whole
from tacit.numerics import certified
from tacit.numerics.certified import Units
from tacit.support import Uncopyable

Cumulative = Callable[[int], list[Units]]
"""A law: for a number of bits, bounds on its inner boundaries (see the last section)."""

WORD_BITS = 31  # the product of two entries fits into 62 bits
_DIGIT_BITS = 13  # of n, in one table of coins
_GUARD_BITS = 32  # beyond the bits that are asked for
_MORE_BITS = 64  # by which a uniform number is extended
_FARTHEST = (1 << 63) - 1  # what an array may hold
_OPEN = np.iinfo(np.int64).min  # in the table, where the leading word does not decide
_BLOCK = 1 << 14  # draws that stay in the cache
_SMALLEST_POOL, _LARGEST_POOL = 1 << 8, 1 << 14  # numbers drawn in advance


class WordBounds(NamedTuple):
    """How many leading bits are looked up, and how many are searched; tests use very few."""

    first: int = 16
    second: int = 48


WORDS = WordBounds()


class DigitShape(NamedTuple):
    """How a scale is divided into tables; every shape gives the same law.  Tests use tiny ones."""

    top_scale: int = 32  # the scale of H is below this
    digit_bits: int = 9  # of L, in one table
    cut: int = 17  # H beyond 17 times its scale (one in e^17) takes several draws
    words: WordBounds = WORDS


SHAPE = DigitShape()


# Coins: Bernoulli(p), and Bernoulli(e^(−n·rate)) for an array of n.
#
# For e^(−n·rate) the bits of n fall into digits, n = d₀ + 2^s·d₁ + ..., and the probability is the
# product of one table entry per digit.  With entries a ≤ 2^31·p ≤ a + 1 and products rounded down,
# the product P of m entries has P ≤ 2^31·e^(−n·rate) ≤ P + 3m − 2.  A 31-bit word below P is a
# success, one of at least P + 3m − 2 a failure; only about one in 2^29 lies in between.


def bernoullis(
    stream: KeyStream, p: Fraction, size: int, *, word_bits: int = 32
) -> NDArray[np.bool_]:
    """Independent draws, each True with probability p."""
    result = np.empty(size, np.bool_)
    bounds = scalar.rational(p)
    low, high = bounds(word_bits)
    for start in range(0, size, _BLOCK):
        block = result[start : start + _BLOCK]
        words = _words(stream, block.size, word_bits)
        np.less(words, low, out=block)
        if low < high:  # p is not a multiple of 2^(−word_bits)
            for place in np.flatnonzero(words == low):
                block[place] = scalar.is_below(stream, bounds, int(words[place]), word_bits)
    return result


def belows(stream: KeyStream, n: int, size: int) -> NDArray[np.int64]:
    """Independent uniform integers in 0..n−1: words of as many bits as n − 1 has, or once more."""
    found = np.empty(size, np.int64)
    shift = 64 - max((n - 1).bit_length(), 1)
    waiting = np.arange(size)
    while len(waiting):
        words = np.empty(len(waiting), np.uint64)
        stream.fill(words)
        drawn = (words >> np.uint64(shift)).astype(np.int64)
        found[waiting] = drawn
        waiting = waiting[drawn >= n]
    return found


def _words(stream: KeyStream, size: int, bits: int) -> NDArray[np.uint32]:
    words = np.empty(size, np.uint32)
    stream.fill(words)
    words >>= 32 - bits
    return words


class ExpCoins:
    """The tables for one rate.  They hold no secret, and all coins share them."""

    def __init__(
        self, rate: Fraction, *, word_bits: int = WORD_BITS, digit_bits: int = _DIGIT_BITS
    ) -> None:
        self._rate, self._word_bits = rate, word_bits
        # From 32/rate on every product is 0, since e^(−32) < 2^(−31).  If that is farther than the
        # tables reach, `flip` does without them.
        self._cut = min(-(-32 * rate.denominator // rate.numerator), _FARTHEST)
        places = -(-self._cut.bit_length() // digit_bits)
        self._digit_bits = -(-self._cut.bit_length() // places)
        self._tables = [self._table(place * self._digit_bits) for place in range(places)]
        # The same for single draws, which are faster with lists.
        self._first, *self._others = [table.tolist() for table in self._tables]
        self._mask = (1 << self._digit_bits) - 1
        self._slack = 3 * places - 2

    def _table(self, shift: int) -> NDArray[np.int64]:
        rate, count = self._rate * (1 << shift), 1 << self._digit_bits
        entries = floors(lambda bits: powers(rate, count, bits), self._word_bits)
        return np.array(entries, np.int64)

    def draws(self, stream: KeyStream, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Element i is True with probability e^(−max(steps[i], 0) · rate), independently."""
        result = np.empty(steps.shape, np.bool_)
        flat, flat_result = steps.reshape(-1), result.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            self._draw(stream, flat[block], flat_result[block])
        return result

    def _draw(self, stream: KeyStream, steps: NDArray[np.int64], out: NDArray[np.bool_]) -> None:
        products = self._products(steps)
        words = _words(stream, steps.size, self._word_bits)
        above = np.subtract(words, products, dtype=np.int64)
        np.less(above, 0, out=out)
        for place in np.flatnonzero(above.view(np.uint64) < self._slack):  # 0 ≤ above < slack
            bounds = scalar.exp_minus(int(steps[place]) * self._rate)
            out[place] = scalar.is_below(stream, bounds, int(words[place]), self._word_bits)

    def flip(self, stream: KeyStream, steps: int) -> bool:
        """True with probability e^(−max(steps, 0) · rate): one draw, from the same tables."""
        if steps <= self._cut:
            digits = steps if steps > 0 else 0
        elif steps <= _FARTHEST:
            digits = self._cut
        else:
            return scalar.is_below(stream, scalar.exp_minus(steps * self._rate))
        product = self._first[digits & self._mask]
        for entries in self._others:
            digits >>= self._digit_bits
            product = product * entries[digits & self._mask] >> self._word_bits
        word = stream.bits(self._word_bits)
        if word < product:
            return True
        if word >= product + self._slack:
            return False
        bounds = scalar.exp_minus(max(steps, 0) * self._rate)
        return scalar.is_below(stream, bounds, word, self._word_bits)

    def _products(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integers P with P ≤ 2^word_bits · e^(−n·rate) ≤ P + slack for n = max(steps, 0)."""
        digits = np.clip(steps, 0, self._cut)
        first, *others = self._tables
        products = np.take(first, digits & self._mask)
        entries = np.empty_like(products)
        for table in others:
            digits >>= self._digit_bits
            np.take(table, digits & self._mask, out=entries, mode="clip")
            products *= entries
            products >>= self._word_bits
        return products


@lru_cache(maxsize=16)
def exp_coins(rate: Fraction) -> ExpCoins:
    """The tables for a rate, kept for further use."""
    return ExpCoins(rate)


# Noise: geometric and discrete Laplace numbers of one scale, prepared once and drawn often.
#
# A geometric number of a large scale splits into independent digits: y = 2^j · H + L, where H is
# geometric with scale/2^j and L, in 0..2^j−1, has probability proportional to e^(−L/scale), because
# e^(−y/scale) is the product of a function of H and one of L.  L splits again in the same way.  So
# one table for H and one for each group of about nine bits of L suffice for every scale.
#
# A discrete Laplace number is y or −1−y, that is, y or its bitwise complement ~y, the latter with
# probability 1/(1 + e^(1/scale)); the sign is drawn together with H.  The complement passes through
# the digits: ~(2^j·H + L) = ~(2^j·H) xor L.


class PreparedNoise:
    """The tables for one scale.  They hold no secret, and all coins share them."""

    def __init__(self, scale: Fraction, *, two_sided: bool, shape: DigitShape = SHAPE) -> None:
        low_bits = int(scale / shape.top_scale).bit_length()
        rate = Fraction(1 << low_bits) / scale
        reach = int(shape.cut / rate) + 1
        sizes = [size << low_bits for size in range(reach + 1)]
        if two_sided:
            law = signed_geometric(rate, reach, 1 / scale)
            values = [~size for size in reversed(sizes)] + sizes
            tails = [0, len(values) - 1]
        else:
            law, values, tails = geometric(rate, reach), sizes, [reach]
        self._tables = [InverseTable(law, values, tails, shape.words)]
        for start in range(0, low_bits, shape.digit_bits):
            count = 1 << min(shape.digit_bits, low_bits - start)
            law = truncated_geometric(Fraction(1 << start) / scale, count)
            digits = [digit << start for digit in range(count)]
            self._tables.append(InverseTable(law, digits, words=shape.words))

    def draws(self, stream: KeyStream, size: int) -> NDArray[np.int64]:
        """Independent draws, in blocks that stay in the processor's cache."""
        result = np.empty(size, np.int64)
        digits = np.empty(min(size, _BLOCK), np.int64)
        top, *others = self._tables
        for start in range(0, size, _BLOCK):
            block = result[start : start + _BLOCK]
            top.draw(stream, block)
            for table in others:
                part = digits[: block.size]
                table.draw(stream, part)
                block ^= part
        return result


@lru_cache(maxsize=16)
def noise(scale: Fraction, two_sided: bool) -> PreparedNoise:
    """The tables for a scale, kept for further use."""
    return PreparedNoise(scale, two_sided=two_sided)


class Sampler(Uncopyable):
    """Noise of one scale: single numbers from a pool, or arrays."""

    def __init__(self, stream: KeyStream, scale: Fraction, *, two_sided: bool) -> None:
        self._stream, self._scale, self._two_sided = stream, scale, two_sided
        self._noise = noise(scale, two_sided)
        self._pool: list[int] = []
        self._pool_size = _SMALLEST_POOL
        forget_in_child(self)

    def draw(self) -> int:
        """One number.  Taking it out of the pool is atomic, so that it is used only once."""
        try:
            return self._pool.pop()
        except IndexError:
            return self._refill()

    def draws(self, size: int) -> NDArray[np.int64]:
        """An array of fresh, independent numbers."""
        return self._noise.draws(self._stream, whole(size, "size", at_least=0))

    def _refill(self) -> int:
        fresh: list[int] = self.draws(self._pool_size).tolist()
        self._pool_size = min(4 * self._pool_size, _LARGEST_POOL)  # more for more draws
        last = fresh.pop()  # before another thread can take it
        self._pool += fresh
        return last

    def forget(self) -> None:
        """Drop what was drawn in advance, which a forked child must not share."""
        self._pool.clear()

    def __repr__(self) -> str:
        return f"Sampler(scale='{self._scale}', two_sided={self._two_sided})"


# Draws from a law, by the inverse of its distribution function.
#
# A uniform number U gives one index: the number of boundaries below U.  The leading word of U is
# looked up in a table, which has the index if the whole cell [w, w+1)/2^b lies between two
# boundaries.  If the cell holds a boundary, U gets more bits, and the longer word is searched among
# certified boundaries; if it meets one of them, U gets more bits again, and the bounds are made
# tighter, until the index is certain.  No probability is rounded, whatever the word sizes are.


class InverseTable:
    """A law prepared for draws of ``values[index]`` with a random index.

    ``tails`` are indexes that stand for everything beyond ``values[index]``.  Such a law is
    geometric, hence memoryless, so that a fresh draw is added to the value that was reached.
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
        """The index of a number U whose leading bits `word` coincide with a boundary."""
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
        """A draw of at least the size of `reached`, with its sign; ~x is the mirror image of x."""
        fresh = np.empty(1, np.int64)
        self.draw(stream, fresh)
        size = int(fresh[0])
        size = size if size >= 0 else ~size
        return reached + size if reached >= 0 else reached - size


# The laws, as certified cumulative probabilities.
#
# A law on the indexes 0..n is given by its n inner boundaries: ``law(bits)`` lists, for k = 1..n,
# integers (low, high) with low ≤ 2^bits · Pr[index < k] ≤ high.  The bounds converge as ``bits``
# grows.  For rational rate > 0, q = e^(−rate) is transcendental (Lindemann), and so are the
# boundaries below.  None is a fraction with a power of two as its denominator, so that enough bits
# decide every comparison.


def powers(rate: Fraction, count: int, bits: int) -> list[Units]:
    """Bounds on 2^bits · e^(−rate·k) for k = 0..count−1, each from the one before."""
    work = bits + _GUARD_BITS + count.bit_length()
    ratio_low, ratio_high = certified.exp_minus(rate, work)
    low = high = 1 << work
    bounds = []
    for _ in range(count):
        bounds.append((low >> work - bits, -(-high >> work - bits)))
        low, high = low * ratio_low >> work, min(-(-high * ratio_high >> work), high)
    return bounds


def floors(law: Cumulative, bits: int) -> list[int]:
    """Integers f_k that certainly satisfy f_k ≤ 2^bits · boundary_k ≤ f_k + 1."""
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
    """Pr[index = k] ∝ e^(−rate·k) for k < cut; index = cut stands for everything from there on."""

    def law(bits: int) -> list[Units]:
        one = 1 << bits
        return [(one - high, one - low) for low, high in powers(rate, cut + 1, bits)[1:]]

    return law


def signed_geometric(rate: Fraction, cut: int, sign_rate: Fraction) -> Cumulative:
    """A geometric size and an independent sign, negative with probability 1/(1 + e^sign_rate).

    Index cut + 1 + h stands for the size h with a plus sign, cut − h for h with a minus sign; the
    indexes 0 and 2·cut + 1 stand for all sizes from ``cut`` on.
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
