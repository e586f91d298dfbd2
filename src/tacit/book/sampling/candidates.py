"""What a finite release can choose from: candidates in blocks, each with its score.

Candidates are multisets of m atoms, given by how often each atom occurs.  With answers F/d, data
histogram a and n rows, the score in units of 1/(m·d) is the integer max_f |m Σ F·a − n Σ F·z|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import comb, prod
from typing import Protocol

import numpy as np

from tacit.book.sampling.compression import Integers, LinearQueries
from tacit.book.sampling.enumeration import Array, Counts, Enumeration, Table

_ROOT = 16  # weights are bounded by 2^(whole numbers/16)
_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Block:
    """Some candidates: their scores, bounds of their weights, and which they are."""

    levels: Array
    doublings: Array | None  # weight ≤ 2^doublings; None: every weight is 1
    counts: Callable[[int], Counts]


class Candidates(Protocol):
    """A finite range with a measure that ignores the data."""

    @property
    def most_doublings(self) -> int:
        """No candidate weighs more than 2^most_doublings."""

    def blocks(self) -> Iterator[Block]:
        """Every candidate, always in the same order."""

    def weight(self, counts: Counts) -> int:
        """A candidate's weight."""


class EveryMultiset:
    """All multisets of m atoms.

    Weighted 1 each, or, if `faithful`, by how many multisets of universe elements each stands
    for: ∏ C(w + z − 1, z), for z copies of an atom of w elements.
    """

    def __init__(self, queries: LinearQueries, x: Integers, rows: int, *, faithful: bool) -> None:
        self._sizes = queries.sizes if faithful else None
        self._rows = rows
        self._target, self._step = scaled(queries, x, rows)
        self._doublings = cache(_doublings)
        self._enumeration = Enumeration(queries.atoms, rows, self._column)

    @property
    def most_doublings(self) -> int:
        """Rounding up costs each of at most m atoms a sixteenth."""
        if self._sizes is None:
            return 0
        everything = comb(sum(self._sizes) + self._rows - 1, self._rows)
        return everything.bit_length() + self._rows // _ROOT + 2

    def blocks(self) -> Iterator[Block]:
        """All of them, once."""
        for head, tail in self._enumeration.pairs():
            yield self._block(head, tail)

    def weight(self, counts: Counts) -> int:
        """1, or the number of multisets of universe elements."""
        if self._sizes is None:
            return 1
        return prod(comb(self._sizes[atom] + z - 1, z) for atom, z in counts)

    def _block(self, head: Table, tail: Table) -> Block:
        queries, width = len(self._target), tail.sums.shape[1]
        missing = self._target[:, None] - head.sums[:queries]
        levels = largest_difference(missing, tail.sums[:queries])
        doublings = None
        if self._sizes is not None:
            parts = np.add.outer(head.sums[queries], tail.sums[queries]).ravel()
            doublings = -(-parts // _ROOT)
        return Block(levels, doublings, lambda i: head.counts(i // width) + tail.counts(i % width))

    def _column(self, atom: int, times: Integers) -> Array:
        sums: Array = self._step[:, atom, None] * times.astype(self._step.dtype)
        if self._sizes is None:
            return sums
        size = self._sizes[atom]
        return np.vstack([sums, [self._doublings(size, int(z)) for z in times]])


def _doublings(size: int, times: int) -> int:
    """The least u such that C(w + z − 1, z) < 2^(u/16), but 0 for one way only."""
    ways = comb(size + times - 1, times)
    return (ways**_ROOT).bit_length() if ways > 1 else 0


def largest_difference(heads: Array, tails: Array) -> Array:
    """The largest |heads[f, i] − tails[f, j]| over all rows f, for all i and j in order."""
    largest: Array
    rows, columns = heads.shape[0], heads.shape[1] * tails.shape[1]
    if not rows:
        return np.zeros(columns, np.int64)
    if rows * columns <= _AT_ONCE:
        differences = heads[:, :, None] - tails[:, None, :]
        largest = np.abs(differences, out=differences).max(axis=0)
        return largest.ravel()
    largest = np.abs(np.subtract.outer(heads[0], tails[0]))
    scratch = np.empty_like(largest)
    for head, tail in zip(heads[1:], tails[1:], strict=True):
        np.subtract.outer(head, tail, out=scratch)
        np.maximum(largest, np.abs(scratch, out=scratch), out=largest)
    return largest.ravel()


def scaled(queries: LinearQueries, x: Integers, rows: int) -> tuple[Array, Array]:
    """(target, step): a candidate's score is max |target − Σ over its rows of step|.

    In a type of number that cannot overflow.
    """
    people = int(x.sum())
    largest = rows * people * queries.denominator
    kind = np.int32 if largest < 1 << 30 else np.int64 if largest < 1 << 62 else object
    answers: Array = queries.answers.astype(kind)
    return rows * (answers @ x.astype(kind)), people * answers
