"""Rows as packed bits: columns, cells of rows, and how many rows lie in the corners of a cell.

A point p of a class brings two sets of rows: those that say yes (`above`) and those that say no
(`below`).  For real-valued questions and a margin a row may say neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
Counts = NDArray[np.int32]
Indices = NDArray[np.intp]

_FEW_WORDS = 12
_STRIP_WORDS = 1 << 16  # words that are combined at once: half a megabyte stays in the cache


def pack(rows_by_columns: NDArray[np.bool_]) -> Bits:
    """One line of 64-bit words for every column; the bits past the last row are 0."""
    rows, columns = rows_by_columns.shape
    padded = np.zeros((columns, -(-rows // 64) * 64), dtype=np.bool_)
    padded[:, :rows] = rows_by_columns.T
    return np.packbits(padded, axis=1).view(np.uint64)


def count(bits: Bits) -> Counts:
    """How many bits are set along the last axis."""
    words = np.bitwise_count(bits)
    if 0 < bits.shape[-1] <= _FEW_WORDS:  # numpy's own sums are slow along a short axis
        counts: Counts = words[..., 0].astype(np.int32)
        for word in range(1, bits.shape[-1]):
            counts += words[..., word]
        return counts
    sums: Counts = np.einsum("...w->...", words.astype(np.int32))
    return sums


def count_pairs(first: Bits, second: Bits) -> Counts:
    """How many bits each line of `first` shares with each line of `second`."""
    counts = np.empty((len(first), len(second)), dtype=np.int32)
    step = max(_STRIP_WORDS // max(second.size, 1), 1)
    for start in range(0, len(first), step):
        strip = slice(start, start + step)
        if first is second:  # symmetric: what lies below the diagonal is known already
            counts[strip, start:] = count(first[strip, None] & second[None, start:])
            counts[start:, strip] = counts[strip, start:].T
        else:
            counts[strip] = count(first[strip, None] & second[None])
    return counts


@dataclass(frozen=True)
class Columns:
    """The two sides of every point; ``below`` is None when a row that is not above is below."""

    above: Bits
    below: Bits | None = None

    def __len__(self) -> int:
        return len(self.above)

    def take(self, index: Indices) -> Columns:
        """Some of the columns."""
        return Columns(self.above[index], None if self.below is None else self.below[index])


@dataclass(frozen=True)
class Cell:
    """Some rows, and for all pairs of columns how many of these rows lie in each corner.

    ``pairs`` holds above × above and, if there are rows that are neither above nor below, also
    above × below and below × below.  It is None where the table would be too large.
    """

    rows: Bits
    size: int
    pairs: tuple[Counts, ...] | None

    @classmethod
    def of(cls, rows: Bits, columns: Columns, *, with_pairs: bool) -> Cell:
        """Count afresh."""
        size = int(count(rows))
        if not with_pairs:
            return cls(rows, size, None)
        above = columns.above & rows
        both = count_pairs(above, above)
        if columns.below is None:
            return cls(rows, size, (both,))
        below = columns.below & rows
        return cls(rows, size, (both, count_pairs(above, below), count_pairs(below, below)))

    def split(self, cut: Columns, chosen: Columns, rest: Indices) -> list[Cell]:
        """The rows above and below the one column of `cut`, counted on the `chosen` columns.

        When below is the complement of above, so are the counts, and one count gives both
        halves: ``rest`` says which columns of this cell's own table were chosen.
        """
        top = self.rows & cut.above[0]
        upper = Cell.of(top, chosen, with_pairs=self.pairs is not None)
        if cut.below is not None:
            bottom = self.rows & cut.below[0]
            return [upper, Cell.of(bottom, chosen, with_pairs=self.pairs is not None)]
        remaining = None
        if self.pairs is not None and upper.pairs is not None:
            remaining = (self.pairs[0][np.ix_(rest, rest)] - upper.pairs[0],)
        return [upper, Cell(self.rows & ~top, self.size - upper.size, remaining)]

    def sides(self, columns: Columns) -> Counts:
        """For each column, the rows on the smaller of its two sides."""
        above = count(columns.above & self.rows)
        below = self.size - above if columns.below is None else count(columns.below & self.rows)
        return np.minimum(above, below)

    def corners(self) -> Counts:
        """For each pair of columns, the rows in the least of its four corners."""
        assert self.pairs is not None
        if len(self.pairs) == 3:
            both, mixed, neither = self.pairs
        else:
            both = self.pairs[0]
            above = np.diagonal(both)
            mixed = above[:, None] - both
            neither = self.size - above - mixed
        least: Counts = np.minimum(np.minimum(both, neither), np.minimum(mixed, mixed.T))
        return least
