"""Every multiset of m atoms, in blocks, with its score.

The atoms are halved again and again.  A multiset of m atoms is one of j from the first half and
one of m − j from the second, and its answers are the sum of theirs; so long blocks come from
short tables by outer sums, which numpy does at hundreds of millions of numbers a second.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # int32, int64, or Python integers where 64 bits would not do
Counts = tuple[tuple[int, int], ...]
"""A multiset: pairs (atom, how often), each atom at most once, in any order."""

_TABLE = 1 << 13  # columns of a table that is kept
_BLOCK = 1 << 15  # columns of a block: its working set stays within the cache
_TABLE_CELLS, _BLOCK_CELLS = 1 << 20, 1 << 22  # with many queries fewer columns
_KEPT_TABLES = 128


@dataclass(frozen=True, repr=False, eq=False)  # sums are scaled by the number of people
class Table:
    """Some multisets: a column of sums for each, and which it is."""

    sums: Array
    counts: Callable[[int], Counts]  # of column i


class Enumeration:
    """All multisets of `rows` atoms.

    ``column(atom, times)`` gives what `times` copies of an atom contribute, an array with a
    column for each number in `times`.
    """

    def __init__(
        self, atoms: int, rows: int, column: Callable[[int, npt.NDArray[np.int64]], Array]
    ) -> None:
        self._atoms = atoms
        self._rows = rows
        self._column = column
        self._table = lru_cache(maxsize=_KEPT_TABLES)(self._make_table)
        height = max(1, len(column(0, np.zeros(1, np.int64))))
        self._longest_table = min(_TABLE, _TABLE_CELLS // height)
        self._longest_block = min(_BLOCK, _BLOCK_CELLS // height)

    def pairs(self) -> Iterator[tuple[Table, Table]]:
        """Pairs of tables: every multiset is a column of one plus a column of the other, once."""
        if self._short(0, self._atoms, self._rows):
            yield self._table(0, self._atoms, self._rows), self._table(0, 0, 0)
        else:
            yield from self._halves(0, self._atoms, self._rows)

    def _short(self, first: int, last: int, total: int) -> bool:
        return last - first <= 2 or comb(last - first + total - 1, total) <= self._longest_table

    def _halves(self, first: int, last: int, total: int) -> Iterator[tuple[Table, Table]]:
        middle = (first + last) // 2
        for j in range(total + 1):
            for head in self._tables(first, middle, j):
                for tail in self._tables(middle, last, total - j):
                    yield from _blocks(head, tail, self._longest_block)

    def _tables(self, first: int, last: int, total: int) -> Iterator[Table]:
        """All multisets of `total` among these atoms, in tables of at most a block's length."""
        if self._short(first, last, total):
            yield self._table(first, last, total)
        else:
            for head, tail in self._halves(first, last, total):
                yield _outer_sum(head, tail)

    def _make_table(self, first: int, last: int, total: int) -> Table:
        if not total:
            return Table(self._column(0, np.zeros(1, np.int64)), lambda _: ())
        if last == first + 1:
            return Table(self._column(first, np.array([total])), lambda _: ((first, total),))
        if last == first + 2:
            times = np.arange(total + 1)
            sums = self._column(first, times) + self._column(first + 1, total - times)
            return Table(sums, lambda i: ((first, i), (first + 1, total - i)))
        return _join([_outer_sum(*pair) for pair in self._halves(first, last, total)])


def _blocks(head: Table, tail: Table, longest: int) -> Iterator[tuple[Table, Table]]:
    """The pair in pieces of a block's length, the wide table last: numpy runs along it."""
    narrow, wide = sorted((head, tail), key=lambda table: table.sums.shape[1])
    step = max(1, longest // wide.sums.shape[1])
    for start in range(0, narrow.sums.shape[1], step):
        yield _slice(narrow, start, start + step), wide


def _slice(table: Table, start: int, stop: int) -> Table:
    if start == 0 and stop >= table.sums.shape[1]:
        return table
    return Table(table.sums[:, start:stop], lambda i: table.counts(start + i))


def _outer_sum(head: Table, tail: Table) -> Table:
    width = tail.sums.shape[1]
    sums = (head.sums[:, :, None] + tail.sums[:, None, :]).reshape(head.sums.shape[0], -1)
    return Table(sums, lambda i: head.counts(i // width) + tail.counts(i % width))


def _join(tables: Sequence[Table]) -> Table:
    starts = [0, *accumulate(table.sums.shape[1] for table in tables)]

    def counts(i: int) -> Counts:
        place = bisect_right(starts, i) - 1
        return tables[place].counts(i - starts[place])

    return Table(np.concatenate([table.sums for table in tables], axis=1), counts)
