"""Columns as narrow codes, one for every slot.

Codes are small unsigned integers in the order of the values, so every atom is a set of code
intervals.  The code after the greatest one stands for NULL, and for slots that hold no row.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.layout import Codes, RowSlots, narrowest, some_rows
from tacit.tables.encoded.words import WordSearch
from tacit.tables.language.functions import holds_of
from tacit.tables.language.tree import Among, Computed, IsNull, Like, Range, SameOrder
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import Schema

_HUGE = 1 << 22  # bytes of an array from which on numpy asks for huge pages

CodeIntervals = tuple[tuple[int, int], ...]
"""Disjoint, sorted intervals of codes, both ends included."""

CodeTable = NDArray[np.bool_]
"""For every code, and that of NULL, whether it is meant."""

CodeSet = CodeIntervals | CodeTable


@dataclass(slots=True)
class EncodedColumn:
    """A column in memory: its codes by slot, and how values map to codes."""

    codes: Codes
    top: int  # the greatest code of a value; -1 if there is none
    base: int | None  # the value of code 0, if codes are simply offsets
    read_words: Callable[[], Sequence[Any]] | None = None
    _words: Sequence[Any] | None = None
    _search: WordSearch | None = None

    @property
    def null(self) -> int:
        """The code of NULL."""
        return self.top + 1

    @property
    def words(self) -> Sequence[Any]:
        """The distinct values by code, if the column has a list of them.  Read when needed."""
        if self._words is None:
            assert self.read_words is not None
            self._words = self.read_words()
        return self._words

    @property
    def reach(self) -> int:
        """A bound on the size of the column's numbers."""
        if self.top < 0:
            return 0
        if self.base is not None:
            return max(abs(self.base), abs(self.base + self.top))
        return max(abs(int(self.words[0])), abs(int(self.words[-1])))

    def interval(self, low: Code | None, high: Code | None) -> CodeIntervals:
        """The codes of values from low to high."""
        first, last = 0, self.top
        if self.base is not None:
            if isinstance(low, int):
                first = max(low - self.base, 0)
            if isinstance(high, int):
                last = min(high - self.base, self.top)
        else:
            if low is not None:
                first = bisect_left(self.words, low)
            if high is not None:
                last = bisect_right(self.words, high) - 1
        return ((first, last),) if first <= last else ()

    def intervals(self, atom: Range | IsNull, wanted: bool) -> CodeIntervals:
        """The codes for which an atom is TRUE (if wanted) or FALSE (if not)."""
        if isinstance(atom, Range):
            true = self.interval(atom.low, atom.high)
            return true if wanted else self._gaps(true)
        if wanted:
            return ((self.null, self.null),)
        return ((0, self.top),) if self.top >= 0 else ()

    def codes_of(self, atom: Among | Like | Computed, wanted: bool) -> CodeSet:
        """The same for an atom that is tried on the words."""
        if isinstance(atom, Among):
            found = self._among(atom.values)
        elif isinstance(atom, Like):
            found = self._like(atom.pattern)
        else:  # a function of text, since dates are not held as words
            holds = np.fromiter(map(holds_of(atom, "text"), self.words), np.bool_, len(self.words))
            found = np.append(holds, False)
        if wanted:
            return found
        if isinstance(found, tuple):
            return self._gaps(found)
        others: CodeTable = ~found
        others[self.null] = False
        return others

    def _like(self, pattern: str) -> CodeSet:
        if self._search is None:
            self._search = WordSearch(self.words)
        found = self._search.like(pattern)
        if isinstance(found, range):
            return ((found.start, found.stop - 1),) if found else ()
        return self._table(found)

    def _table(self, codes: NDArray[Any]) -> CodeTable:
        table = np.zeros(self.null + 1, dtype=np.bool_)
        table[codes] = True
        return table

    def _among(self, values: Iterable[Code]) -> CodeSet:
        pieces = sorted(piece for value in values for piece in self.interval(value, value))
        intervals = merged(iter(pieces))
        if len(intervals) <= 3 or self.null >= 2**22:
            return intervals
        table = np.zeros(self.null + 1, dtype=np.bool_)
        for low, high in intervals:
            table[low : high + 1] = True
        return table

    def _gaps(self, intervals: CodeIntervals) -> CodeIntervals:
        """The codes of all other values."""
        gaps, start = [], 0
        for low, high in intervals:
            if start < low:
                gaps.append((start, low - 1))
            start = high + 1
        if start <= self.top:
            gaps.append((start, self.top))
        return tuple(gaps)

    def values(self, codes: Codes) -> NDArray[np.int64]:
        """The values of codes, for a column of numbers.  For the code of NULL it means nothing."""
        if self.base is not None:  # modulo 2^64, so that extreme integers come out right
            offset = np.uint64(self.base % 2**64)
            return (codes.astype(np.uint64) + offset).view(np.int64)
        listed = np.append(np.array(self.words, dtype=np.int64), 0)
        return listed[codes]

    def distinct(self, slots: NDArray[np.int64]) -> NDArray[Any]:
        """The distinct values at these slots in order: whole numbers, or text as objects."""
        codes = np.unique(self.codes[slots])
        if self.base is not None:
            return self.values(codes)
        words = sorted(self.words[code] for code in codes)
        return np.array(words, dtype=np.int64 if words and isinstance(words[0], int) else object)

    def finder(self, meant: NDArray[Any]) -> Callable[[Codes], NDArray[np.bool_]]:
        """Whether codes are of one of these distinct values, which are in order."""
        if self.base is None:  # the list of all values is as long as that of people
            listed = set(meant.tolist())
            table = np.fromiter((word in listed for word in self.words), np.bool_, self.top + 1)
            table = np.append(table, False)
            return lambda codes: table[codes]
        if not len(meant):
            return lambda codes: np.zeros(len(codes), np.bool_)

        def is_meant(codes: Codes) -> NDArray[np.bool_]:
            values = self.values(codes)
            at = np.minimum(np.searchsorted(meant, values), len(meant) - 1)
            found: NDArray[np.bool_] = meant[at] == values
            return found

        return is_meant

    def test(self, meant: CodeSet, slots: slice | NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these slots have one of these codes."""
        codes = self.codes[slots]
        if isinstance(meant, np.ndarray):
            looked_up: NDArray[np.bool_] = meant[codes]
            return looked_up
        if len(meant) == 1:
            return _between(codes, *meant[0])
        found = np.zeros(len(codes), dtype=np.bool_)
        for low, high in meant:
            found |= _between(codes, low, high)
        return found


def _between(codes: Codes, low: int, high: int) -> NDArray[np.bool_]:
    if low == high:
        equal: NDArray[np.bool_] = codes == codes.dtype.type(low)
        return equal
    if low == 0:
        return codes <= codes.dtype.type(high)
    # One comparison does both: below low, the difference wraps around to a large number.
    return (codes - codes.dtype.type(low)) <= codes.dtype.type(high - low)


def merged(pieces: Iterator[tuple[int, int]]) -> CodeIntervals:
    """Sorted pieces, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for low, high in pieces:
        if joined and joined[-1][1] + 1 == low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return tuple(joined)


def is_dense(codes: Codes) -> bool:
    """Whether a table of all codes up to the greatest is small beside the rows."""
    return len(codes) > 0 and int(codes.max()) < 8 * len(codes)


def numbered(codes: Codes) -> NDArray[np.int64]:
    """Codes renumbered 0, 1, 2, ... without gaps."""
    if is_dense(codes):  # a table is faster than sorting
        present = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
        present[codes] = True
        table = np.cumsum(present) - 1
        found: NDArray[np.int64] = table[codes]
        return found
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def hold_numbers(values: NDArray[np.int64], nulls: NDArray[np.bool_]) -> EncodedColumn:
    """A number column as codes, still by row."""
    present = values[~nulls] if nulls.any() else values
    if not len(present):
        return EncodedColumn(np.zeros(len(values), dtype=np.uint8), -1, 0)  # NULL has code 0
    base, top = int(present.min()), int(present.max()) - int(present.min())
    if top + 1 >= 2**64:  # no room for the code of NULL: list the values instead
        words, inverse = np.unique(values, return_inverse=True)
        codes = np.where(nulls, len(words), inverse).astype(narrowest(len(words)))
        return EncodedColumn(codes, len(words) - 1, None, _words=words.tolist())
    offsets = values.view(np.uint64) - np.uint64(base % 2**64)
    offsets[nulls] = top + 1
    return EncodedColumn(offsets.astype(narrowest(top + 1), copy=False), top, base)


def ranks_of_doubles(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ranks of doubles among all doubles; see ``rank_of_double``."""
    bits = np.ascontiguousarray(numbers).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & np.int64(2**63 - 1)))


def with_room(rows: int, kind: Any) -> NDArray[Any]:
    """An array for codes by row, with room behind it for slots that hold no row.

    Of a large array numpy asks for huge pages.  On a virtual machine whose host has to find them
    first, they take four times as long to be filled as small ones (400 MB: 0.83 s, against 0.20 s),
    and codes, which are read in order, are not read faster from them; so the system chooses.
    """
    slots = -(-rows // 64) * 64
    size = slots * np.dtype(kind).itemsize
    if size < _HUGE or os.name != "posix":
        return np.empty(slots, dtype=kind)[:rows]
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE), kind)[:rows]


def _by_slot(codes: Codes, slots: int) -> Codes:
    """Codes with such room behind them: where they are if they have it, or else copied."""
    whole = codes.base
    if isinstance(whole, np.ndarray) and whole.shape == (slots,) and whole.dtype == codes.dtype:
        first = whole[: len(codes)]
        if (first.ctypes.data, first.strides) == (codes.ctypes.data, codes.strides):
            return whole
    copied = np.empty(slots, dtype=codes.dtype)
    copied[: len(codes)] = codes
    return copied


def placed(held: EncodedColumn, slots: int, slot_of_row: RowSlots | None) -> EncodedColumn:
    """The column by slot; slots without a row get the code of NULL."""
    if slot_of_row is None:
        codes = _by_slot(held.codes, slots)
        codes[len(held.codes) :] = held.null
    else:
        codes = np.full(slots, held.null, dtype=held.codes.dtype)
        for at in some_rows(len(slot_of_row)):  # numpy widens indices: not all at once
            codes[slot_of_row[at]] = held.codes[at]
    return replace(held, codes=codes)


def hold_words(
    codes: NDArray[np.int64],
    nulls: NDArray[np.bool_],
    count: int,
    read: Callable[[], Sequence[str]],
) -> EncodedColumn:
    """A text column whose distinct values were numbered in order, still by row."""
    kept = np.where(nulls, count, codes).astype(narrowest(count))
    return EncodedColumn(kept, count - 1, None, read)


def comparison(
    schema: Schema, tree: SameOrder, left: EncodedColumn, right: EncodedColumn
) -> Callable[[Codes, Codes], NDArray[np.bool_]]:
    """A comparison of the codes of two columns; where one is NULL, the result means nothing."""
    compare = np.equal if tree.equal else np.less_equal
    if schema.column(tree.left).type == "text":
        every = sorted({*left.words, *right.words})
        rank = {word: place for place, word in enumerate(every)}
        first, second = (
            np.array([*(rank[word] for word in held.words), 0], dtype=np.int64)
            for held in (left, right)
        )
        return lambda a, b: compare(first[a], second[b])
    # x steps of one grid against y steps of the other: a common grid makes both whole numbers.
    steps = [schema.column(name).step for name in (tree.left, tree.right)]
    scales = [(step * steps[0].denominator * steps[1].denominator).numerator for step in steps]
    factors = [scale // gcd(*scales) for scale in scales]

    def scaled(held: EncodedColumn, codes: Codes, factor: int) -> NDArray[Any]:
        values = held.values(codes)
        return values * factor if held.reach * factor < 2**63 else values.astype(object) * factor

    return lambda a, b: compare(scaled(left, a, factors[0]), scaled(right, b, factors[1])).astype(
        np.bool_
    )
