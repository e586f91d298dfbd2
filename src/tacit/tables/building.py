"""Columns that are built while chunks of their rows come by: numbers, and texts with few bytes.

What is kept of a row is its code alone, in a type as narrow as the column's public ends allow; so
hardly more memory is needed than the column takes in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.arrow_chunks import INLINE, ChunkColumn
from tacit.tables.columns import Held, hold_numbers, ranks_of_doubles, with_room
from tacit.tables.lane_table import LaneTable
from tacit.tables.layout import Codes, narrowest
from tacit.tables.packed_words import put_in_order, sorted_places
from tacit.tables.unsorted_words import UnsortedWords
from tacit.tables.word_rows import LONGEST, Rows, class_of, laid_out

_LARGEST = 23  # a table has at first at most so many bits: places for half as many words
_CLASS = 28  # the bits of a code while it is built that say which word of its class it is
_SOME = 1 << 17  # rows or words that are handled at once


class NumberColumn:
    """Numbers between two ends, given as offsets from ``low`` in an unsigned type, or as int64."""

    def __init__(self, rows: int, kind: type[np.unsignedinteger[Any]], low: int) -> None:
        self._wide = kind is np.uint64  # then they come as they are
        self._low = 0 if self._wide else low
        self._codes: Codes = with_room(rows, kind)
        self._nulls: list[tuple[slice, NDArray[np.uint8]]] = []
        self._least: int | None = None
        self._most = 0

    def take(self, at: int, given: ChunkColumn) -> None:
        """The rows from ``at`` on."""
        where = slice(at, at + len(given.values))
        real = given.values.dtype == np.float64
        part = self._numbers[where]
        part[:] = ranks_of_doubles(given.values) if real else given.values
        if given.nulls is not None:
            self._nulls.append((where, np.packbits(given.nulls)))
            part = part[~given.nulls]
        if len(part):
            least, most = int(part.min()), int(part.max())
            self._most = most if self._least is None else max(self._most, most)
            self._least = least if self._least is None else min(self._least, least)

    def held(self) -> Held:
        """The column, still by row; to be called once."""
        rows = len(self._codes)
        if self._least is None:
            codes = with_room(rows, np.uint8)
            codes[:] = 0
            return Held(codes, -1, 0)  # NULL has code 0
        top = self._most - self._least
        if top + 1 >= 2**64:  # no room for the code of NULL
            nulls = np.zeros(rows, np.bool_)
            for where, octets in self._nulls:
                nulls[where] = _bits(octets, where)
            return hold_numbers(self._codes.view(np.int64), nulls)
        self._offset(top)
        for where, octets in self._nulls:
            self._codes[where][_bits(octets, where)] = top + 1
        return Held(self._codes, top, self._low + self._least)

    @property
    def _numbers(self) -> NDArray[Any]:
        return self._codes.view(np.int64) if self._wide else self._codes

    def _offset(self, top: int) -> None:
        """Turn numbers into offsets from the least of them; where NULL, they wrap around."""
        assert self._least is not None
        given, kind = self._codes, narrowest(top + 1)
        least = given.dtype.type(self._least % 2**64)
        if given.dtype != kind:
            self._codes = with_room(len(given), kind)
        elif not least:
            return
        for at in range(0, len(given), _SOME):
            some = slice(at, at + _SOME)
            np.subtract(given[some], least, out=self._codes[some], casting="unsafe")


def _bits(octets: NDArray[np.uint8], where: slice) -> NDArray[np.bool_]:
    return np.unpackbits(octets, count=where.stop - where.start).view(np.bool_)


class TextColumn:
    """Words, numbered as they come.

    While it is built, a code is the number of a word in its class; the class is in the leading
    bits, and 0 is NULL.
    """

    def __init__(self, rows: int) -> None:
        self._codes = with_room(rows, np.uint32)
        self._bits = min(max(rows.bit_length() - 1, 4), _LARGEST)
        self._classes: dict[int, LaneTable] = {}
        self.fits = True  # whether all words are short enough, and not too many
        self.most_words = 1 << _CLASS

    @property
    def count(self) -> int:
        """How many different words there are so far."""
        return sum(table.count for table in self._classes.values())

    def take(self, at: int, given: ChunkColumn) -> None:
        """The rows from ``at`` on."""
        if not self.fits:
            return
        codes = self._codes[at : at + len(given.values)]
        views, nulls = given.values, given.nulls
        if nulls is not None:
            codes[nulls] = 0
            there = np.flatnonzero(~nulls)
            found = np.zeros(len(there), np.uint32)
            self._number(views[there], given.texts, found)
            codes[there] = found
        else:
            self._number(views, given.texts, codes)

    def _number(self, views: Rows, texts: NDArray[np.uint8], codes: Codes) -> None:
        sizes = views.view(np.uint32)[:, 0]
        longest = int(sizes.max(initial=0))
        if longest <= INLINE:
            codes[:] = self._coded(0, views)
            return
        if longest > LONGEST:
            self.fits = False
            return
        padded = np.concatenate([texts, np.zeros(LONGEST, np.uint8)])
        numbers = np.array([class_of(size) for size in range(longest + 1)])[sizes]
        for number in np.unique(numbers).tolist():
            these = np.flatnonzero(numbers == number)
            rows = laid_out(views[these], padded, number) if number else views[these]
            codes[these] = self._coded(number, rows)

    def _coded(self, number: int, rows: Rows) -> Codes:
        """The codes of words of one class."""
        table = self._classes.get(number)
        if table is None:
            bits = self._bits if number == 0 else 4
            table = self._classes[number] = LaneTable(rows.shape[1], bits)
        if table.count + len(rows) >= self.most_words:
            self.fits = False
            return np.zeros(len(rows), np.uint32)
        found = table.codes(rows)
        return found | np.uint32(number << _CLASS) if number else found

    def held(self, in_order: bool = True) -> Held:
        """The column, still by row; to be called once, if it fits.

        Unless it must be ``in_order``, its codes are in the order in which its words first came.
        """
        classes = {number: table.end() for number, table in self._classes.items()}
        self._classes.clear()
        words, begins = UnsortedWords(classes), _begins(classes)
        if not in_order:
            self._renumber(begins, len(words), None)
            return Held(self._codes, len(words) - 1, None, _words=words)
        order = sorted_places(words.packed)
        ranks = np.empty(len(words) + 1, np.uint32)
        ranks[0] = len(words)  # NULL
        ranks[order + 1] = np.arange(len(words), dtype=np.uint32)
        self._renumber(begins, len(words), ranks)
        return Held(self._codes, len(words) - 1, None, _words=put_in_order(words.packed, order))

    def _renumber(
        self, begins: NDArray[np.uint32], count: int, new: NDArray[np.uint32] | None
    ) -> None:
        """Turn what codes are while the column is built into those that it keeps."""
        given = self._codes
        if narrowest(count) is not np.uint32:
            self._codes = with_room(len(given), narrowest(count))
        for at in range(0, len(given), _SOME):
            codes, kept = given[at : at + _SOME], self._codes[at : at + _SOME]
            if len(begins) > 1:
                codes = begins[codes >> np.uint32(_CLASS)] + (codes & np.uint32((1 << _CLASS) - 1))
            if new is not None:
                kept[:] = new[codes]
                continue
            nulls = np.flatnonzero(codes == 0)
            np.subtract(codes, np.uint32(1), out=kept, casting="unsafe")
            kept[nulls] = count


def _begins(classes: Mapping[int, Rows]) -> NDArray[np.uint32]:
    """How many words come before those of each class."""
    begins, before = np.zeros(max(classes, default=0) + 1, np.uint32), 0
    for number, rows in sorted(classes.items()):
        begins[number] = before
        before += len(rows)
    return begins
