"""A random part of a range that is too large to enumerate, drawn before the data is looked at.

The exponential mechanism over any range that ignores the data is exactly ε-private.  What is
lost is accuracy, and ``reach`` says how much can be lost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import comb, prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit import certified
from tacit.book.sampling.candidates import Block, scaled
from tacit.book.sampling.compression import Integers, LinearQueries
from tacit.book.sampling.enumeration import Counts

if TYPE_CHECKING:
    from tacit.book.coins import Coins

_CHUNK, _CHUNK_CELLS = 1 << 12, 1 << 22


def draw_sub_range(atoms: int, rows: int, size: int, coins: Coins) -> Integers:
    """`size` independent uniform multisets of `rows` atoms: a row of atoms each.

    Pólya's urn: the (i+1)-th row is one of the K atoms or a copy of one of the i rows before it,
    each with probability 1/(K + i).  Every multiset is then equally likely.
    """
    drawn = np.empty((size, rows), np.int64)
    for i in range(rows):
        ball = _uniform(atoms + i, size, coins)
        copied = ball >= atoms
        drawn[~copied, i] = ball[~copied]
        drawn[copied, i] = drawn[copied, ball[copied] - atoms]
    return drawn


def _uniform(bound: int, size: int, coins: Coins) -> Integers:
    """Independent uniform integers in 0..bound−1, for a bound of at most 2^63."""
    drop = np.uint64(64 - max((bound - 1).bit_length(), 1))
    kept: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
    while len(kept) < size:
        needed = 2 * (size - len(kept)) + 16  # at least every second word is kept, on average
        words = coins.below(1 << 64 * needed).to_bytes(8 * needed, "little")
        tries = np.frombuffer(words, "<u8") >> drop
        kept = np.concatenate([kept, tries[tries < bound]])
    return kept[:size].astype(np.int64)


class DrawnMultisets:
    """The candidates of a sub-range, scored against the data."""

    def __init__(self, queries: LinearQueries, x: Integers, drawn: Integers) -> None:
        self._drawn = drawn
        self._target, self._step = scaled(queries, x, drawn.shape[1])

    def blocks(self) -> Iterator[Block]:
        """All of them, in the order in which they were drawn."""
        length = max(1, min(_CHUNK, _CHUNK_CELLS // max(1, len(self._target))))
        for start in range(0, len(self._drawn), length):
            chunk = self._drawn[start : start + length]
            misses = np.repeat(self._target[:, None], len(chunk), axis=1)
            for atoms in chunk.T:
                misses -= self._step[:, atoms]
            levels = np.abs(misses).max(axis=0, initial=0)
            yield Block(levels, partial(_counts, chunk))


def _counts(drawn: Integers, i: int) -> Counts:
    return tuple(Counter(drawn[i].tolist()).items())


def reach(elements: int, rows: int, size: int, beta: Fraction) -> int:
    """The least j such that a sub-range comes within j rows of a given candidate, except for β.

    Accuracy: let y* be any candidate that ignores the coins, such as the best one of the whole
    range.  The C(K+j−1, j) candidates that share m − j given rows with y* differ from it by at
    most j/m in every answer.  Each draw is one of them with probability p = C(K+j−1, j) /
    C(K+m−1, m), and none of M draws is with probability (1−p)^M ≤ e^(−pM).  So except with
    probability β some candidate of the sub-range errs at most j/m more than y*.
    """
    _, needed = certified.ln(1 / beta)

    def too_few(shared: int) -> bool:
        near, everything = _share_of_neighbours(elements, rows, shared)
        return size * near < needed * everything

    # p falls with the rows that are shared.  The most that can be are found by doubling, then by
    # halves: far from the answer the numbers would be huge.
    most = 1
    while most <= rows and not too_few(most):
        most *= 2
    return rows - bisect_left(range(1, min(most, rows + 1)), True, key=too_few)


def _share_of_neighbours(elements: int, rows: int, shared: int) -> tuple[int, int]:
    """P = C(K+j−1, j)/C(K+m−1, m) for j = m − shared, as two integers in this ratio."""
    j = rows - shared
    if elements <= shared:
        return comb(elements + j - 1, elements - 1), comb(elements + rows - 1, elements - 1)
    top = elements - 1  # the ratio is the product of i/(K−1+i) for i = j+1, ..., m
    return prod(range(j + 1, rows + 1)), prod(range(top + j + 1, top + rows + 1))
