"""Geometric and discrete Laplace noise for one scale, prepared once and drawn often.

A geometric number of a large scale splits into independent digits: y = 2^j · H + L, where H is
geometric with scale/2^j and L, in 0..2^j−1, has probability proportional to e^(−L/scale), because
e^(−y/scale) is the product of a function of H and one of L.  L splits again in the same way.  So
one table for H and one for each group of about nine bits of L serve every scale.

A discrete Laplace number is y or −1−y, that is y or its bitwise complement ~y, the latter with
probability 1/(1 + e^(1/scale)); the sign is drawn together with H.  Complement goes through the
digits: ~(2^j·H + L) = ~(2^j·H) xor L.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.book.noise import laws
from tacit.book.noise.inverse import WORDS, InverseTable, Words
from tacit.book.noise.keystream import KeyStream, forget_in_child
from tacit.privacy import whole
from tacit.uncopyable import Uncopyable

_BLOCK = 1 << 14
_SMALLEST_POOL, _LARGEST_POOL = 1 << 8, 1 << 14


class Shape(NamedTuple):
    """How a scale is cut into tables; any shape gives the same law, tests use tiny ones."""

    top_scale: int = 32  # the scale of H is below this
    digit_bits: int = 9  # of L, in one table
    cut: int = 17  # H beyond 17 times its scale, one in e^17, is drawn in several goes
    words: Words = WORDS


SHAPE = Shape()


class Noise:
    """The tables for one scale.  They hold no secret and are shared by all coins."""

    def __init__(self, scale: Fraction, *, two_sided: bool, shape: Shape = SHAPE) -> None:
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
def noise(scale: Fraction, two_sided: bool) -> Noise:
    """The tables for a scale, kept while they are in use."""
    return Noise(scale, two_sided=two_sided)


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
