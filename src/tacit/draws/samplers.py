"""Coins in bulk, in integers only: Bernoulli(p), and Bernoulli(e^(−n·rate)) for an array of n.

A word of key stream is the beginning of a uniform number U in [0, 1).  Nearly always it settles
the coin by itself; otherwise the same U is extended until certified bounds settle it.

For e^(−n·rate) the bits of n fall into digits, n = d₀ + 2^s·d₁ + ..., and the probability is the
product of one table entry per digit.  With entries a ≤ 2^31·p ≤ a + 1 and products rounded down,
the product P of m entries has P ≤ 2^31·e^(−n·rate) ≤ P + 3m − 2 (``docs/exactness.md``).  A 31-bit
word below P is a success, one from P + 3m − 2 on a failure; only about one in 2^29 is in between.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.draws import laws, scalar
from tacit.draws.keystream import KeyStream, forget_in_child
from tacit.draws.laws import WORDS, InverseTable, WordBounds
from tacit.numbers import whole
from tacit.support import Uncopyable

WORD_BITS = 31  # the product of two entries fits into 62 bits
_DIGIT_BITS = 13
_FARTHEST = (1 << 63) - 1  # what an array may hold


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


def _words(stream: KeyStream, size: int, bits: int) -> NDArray[np.uint32]:
    words = np.empty(size, np.uint32)
    stream.fill(words)
    words >>= 32 - bits
    return words


class ExpCoins:
    """The tables for one rate.  They hold no secret and are shared by all coins."""

    def __init__(
        self, rate: Fraction, *, word_bits: int = WORD_BITS, digit_bits: int = _DIGIT_BITS
    ) -> None:
        self._rate, self._word_bits = rate, word_bits
        # From 32/rate on every product is 0, since e^(−32) < 2^(−31).  Where that is farther than
        # the tables reach, `flip` goes without them.
        self._cut = min(-(-32 * rate.denominator // rate.numerator), _FARTHEST)
        places = -(-self._cut.bit_length() // digit_bits)
        self._digit_bits = -(-self._cut.bit_length() // places)
        self._tables = [self._table(place * self._digit_bits) for place in range(places)]
        self._lists = [table.tolist() for table in self._tables]  # quicker one at a time
        self._slack = 3 * places - 2

    def _table(self, shift: int) -> NDArray[np.int64]:
        rate, count = self._rate * (1 << shift), 1 << self._digit_bits
        entries = laws.floors(lambda bits: laws.powers(rate, count, bits), self._word_bits)
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
        """True with probability e^(−max(steps, 0) · rate): one draw, by the same tables."""
        if steps <= self._cut:
            digits = steps if steps > 0 else 0
        elif steps <= _FARTHEST:
            digits = self._cut
        else:
            return scalar.is_below(stream, scalar.exp_minus(steps * self._rate))
        mask = (1 << self._digit_bits) - 1
        product = self._lists[0][digits & mask]
        for entries in self._lists[1:]:
            digits >>= self._digit_bits
            product = product * entries[digits & mask] >> self._word_bits
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
        mask = (1 << self._digit_bits) - 1
        first, *others = self._tables
        products = np.take(first, digits & mask)
        entries = np.empty_like(products)
        for table in others:
            digits >>= self._digit_bits
            np.take(table, digits & mask, out=entries, mode="clip")
            products *= entries
            products >>= self._word_bits
        return products


@lru_cache(maxsize=16)
def exp_coins(rate: Fraction) -> ExpCoins:
    """The tables for a rate, kept while they are in use."""
    return ExpCoins(rate)


# Geometric and discrete Laplace noise for one scale, prepared once and drawn often.
#
# A geometric number of a large scale splits into independent digits: y = 2^j · H + L, where H is
# geometric with scale/2^j and L, in 0..2^j−1, has probability proportional to e^(−L/scale), because
# e^(−y/scale) is the product of a function of H and one of L.  L splits again in the same way.  So
# one table for H and one for each group of about nine bits of L serve every scale.
#
# A discrete Laplace number is y or −1−y, that is y or its bitwise complement ~y, the latter with
# probability 1/(1 + e^(1/scale)); the sign is drawn together with H.  Complement goes through the
# digits: ~(2^j·H + L) = ~(2^j·H) xor L.


_BLOCK = 1 << 14
_SMALLEST_POOL, _LARGEST_POOL = 1 << 8, 1 << 14


class DigitShape(NamedTuple):
    """How a scale is cut into tables; any shape gives the same law, tests use tiny ones."""

    top_scale: int = 32  # the scale of H is below this
    digit_bits: int = 9  # of L, in one table
    cut: int = 17  # H beyond 17 times its scale, one in e^17, is drawn in several goes
    words: WordBounds = WORDS


SHAPE = DigitShape()


class PreparedNoise:
    """The tables for one scale.  They hold no secret and are shared by all coins."""

    def __init__(self, scale: Fraction, *, two_sided: bool, shape: DigitShape = SHAPE) -> None:
        low_bits = int(scale / shape.top_scale).bit_length()
        rate = Fraction(1 << low_bits) / scale
        reach = int(shape.cut / rate) + 1
        sizes = [size << low_bits for size in range(reach + 1)]
        if two_sided:
            law = laws.signed_geometric(rate, reach, 1 / scale)
            values = [~size for size in reversed(sizes)] + sizes
            tails = [0, len(values) - 1]
        else:
            law, values, tails = laws.geometric(rate, reach), sizes, [reach]
        self._tables = [InverseTable(law, values, tails, shape.words)]
        for start in range(0, low_bits, shape.digit_bits):
            count = 1 << min(shape.digit_bits, low_bits - start)
            law = laws.truncated_geometric(Fraction(1 << start) / scale, count)
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
    """The tables for a scale, kept while they are in use."""
    return PreparedNoise(scale, two_sided=two_sided)


class Sampler(Uncopyable):
    """Noise of one scale: one number from a pool, or an array of them."""

    def __init__(self, stream: KeyStream, scale: Fraction, *, two_sided: bool) -> None:
        self._stream, self._scale, self._two_sided = stream, scale, two_sided
        self._noise = noise(scale, two_sided)
        self._pool: list[int] = []
        self._pool_size = _SMALLEST_POOL
        forget_in_child(self)

    def draw(self) -> int:
        """One number.  Taking it from the pool is atomic, and the pool forgets it."""
        try:
            return self._pool.pop()
        except IndexError:
            return self._refill()

    def draws(self, size: int) -> NDArray[np.int64]:
        """An array of fresh, independent numbers."""
        return self._noise.draws(self._stream, whole(size, "size", at_least=0))

    def _refill(self) -> int:
        fresh: list[int] = self.draws(self._pool_size).tolist()
        self._pool_size = min(4 * self._pool_size, _LARGEST_POOL)  # whoever draws much waits less
        last = fresh.pop()  # ours before another thread can take it
        self._pool += fresh
        return last

    def forget(self) -> None:
        """Drop what was drawn in advance: a forked child must not share it."""
        self._pool.clear()

    def __repr__(self) -> str:
        return f"Sampler(scale='{self._scale}', two_sided={self._two_sided})"
