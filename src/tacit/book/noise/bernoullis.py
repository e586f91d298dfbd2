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

import numpy as np
from numpy.typing import NDArray

from tacit.book.noise import laws, scalar
from tacit.book.noise.keystream import KeyStream

WORD_BITS = 31  # the product of two entries fits into 62 bits
_DIGIT_BITS = 13
_BLOCK = 1 << 14
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
