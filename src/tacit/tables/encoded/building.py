"""Columns that are built while chunks of their rows come by: numbers, and texts that are not long.

What is kept of a row is its code alone, in a type as narrow as the column's public ends allow; so
hardly more memory is needed than the column takes in the end.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, ranks_of_doubles, with_room
from tacit.tables.encoded.layout import Codes, narrowest
from tacit.tables.encoded.packed_words import PackedWords, put_in_order, sorted_places
from tacit.tables.sources.arrow_chunks import ChunkColumn

LONGEST_WORD = 256
"""Bytes of a word that is numbered as it comes: a chunk of longer ones would be large."""

_FIRST_WORDS = 1 << 10  # for so many there is room at first
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

    def held(self) -> EncodedColumn:
        """The column, still by row; to be called once."""
        rows = len(self._codes)
        if self._least is None:
            codes = with_room(rows, np.uint8)
            codes[:] = 0
            return EncodedColumn(codes, -1, 0)  # NULL has code 0
        top = self._most - self._least
        if top + 1 >= 2**64:  # no room for the code of NULL
            nulls = np.zeros(rows, np.bool_)
            for where, octets in self._nulls:
                nulls[where] = _bits(octets, where)
            return hold_numbers(self._codes.view(np.int64), nulls)
        self._offset(top)
        for where, octets in self._nulls:
            self._codes[where][_bits(octets, where)] = top + 1
        return EncodedColumn(self._codes, top, self._low + self._least)

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
    """Words, numbered as they come and put in order at the end; by the compiled loops alone."""

    def __init__(self, rows: int) -> None:
        self._codes = with_room(rows, np.uint32)  # numbers of words from 1 on; 0 is NULL
        self._count = 0
        self._ends = np.zeros(_FIRST_WORDS, np.int64)
        self._letters = np.zeros(8 * _FIRST_WORDS, np.uint8)
        self._table = np.zeros(2 * _FIRST_WORDS, np.uint64)
        # So that nobody can write words that are searched for at one place.  It changes no code.
        self._key = int.from_bytes(os.urandom(8))
        self.fits = True  # whether all words are short enough

    def take(self, at: int, given: ChunkColumn) -> None:
        """The rows from ``at`` on."""
        codes, views = self._codes[at : at + len(given.values)], given.values
        if given.nulls is not None:
            views = views[~given.nulls]
        self.fits = self.fits and int(views.view(np.uint32)[:, 0].max(initial=0)) <= LONGEST_WORD
        if not self.fits:
            return
        if given.nulls is None:
            self._number(views, given.texts, codes)
        else:
            found = np.empty(len(views), np.uint32)
            self._number(views, given.texts, found)
            codes[given.nulls], codes[~given.nulls] = 0, found

    def _number(self, views: NDArray[Any], texts: NDArray[np.uint8], codes: Codes) -> None:
        done, anew = 0, False
        while done < len(views):
            some, self._count = kernel.compiled.number_words(
                *(views[done:], texts, codes[done:]),
                *(self._table, self._ends, self._letters),
                *(self._count, self._key, anew),
            )
            done += some
            anew = done < len(views) and self._grow()

    def _grow(self) -> bool:
        """Room for more words; whether the table is empty now."""
        if self._count < len(self._ends):
            self._letters.resize(2 * len(self._letters), refcheck=False)
            return False
        self._ends.resize(2 * len(self._ends), refcheck=False)
        self._table = np.zeros(2 * len(self._table), np.uint64)
        return True

    def held(self) -> EncodedColumn:
        """The column, still by row; to be called once, if it fits."""
        count, ends = self._count, self._ends[: self._count].copy()
        words = PackedWords(self._letters[: int(ends[-1]) if count else 0], ends)
        del self._table
        order = sorted_places(words)
        ranks = np.empty(count + 1, np.uint32)
        ranks[0] = count  # NULL
        ranks[order + 1] = np.arange(count, dtype=np.uint32)
        given = self._codes
        if narrowest(count) is not np.uint32:
            self._codes = with_room(len(given), narrowest(count))
        for at in range(0, len(given), _SOME):
            self._codes[at : at + _SOME] = ranks[given[at : at + _SOME]]
        return EncodedColumn(self._codes, count - 1, None, _words=put_in_order(words, order))
