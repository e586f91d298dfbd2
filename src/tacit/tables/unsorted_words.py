"""The words of a text column by codes that are in no order, and their order once it is needed.

To count who has a word, only its code must be found.  So a column of millions of words is neither
packed nor sorted while it is read, but when a question first compares texts by their order, or when
words are looked up again and again.  Neither can fail on a word: they are sorted and compared as
bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tacit.tables.packed_words import PackedWords, sorted_places
from tacit.tables.word_rows import LONGEST, Rows, class_of, packed_rows, row_of

_SCANS = 1  # how often all words are looked at to find one, before they are sorted

Places = NDArray[np.unsignedinteger]


class UnsortedWords(Sequence[str]):
    """Words by code, class by class."""

    def __init__(self, classes: Mapping[int, Rows]) -> None:
        self._classes = dict(sorted(classes.items()))
        self._count = sum(map(len, classes.values()))
        self._packed: PackedWords | None = None
        self._in_order: InOrder | None = None
        self._scans = 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self.packed[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.packed)

    @property
    def packed(self) -> PackedWords:
        """The same words as they are kept elsewhere; from then on, here too."""
        if self._packed is None:
            self._packed = packed_rows(self._classes)
            self._classes.clear()
        return self._packed

    @property
    def in_order(self) -> InOrder:
        """The same words in their order.  They are sorted the first time."""
        if self._in_order is None:
            kind = np.uint32 if len(self) < 2**32 else np.uint64
            self._in_order = InOrder(self.packed, sorted_places(self.packed).astype(kind))
        return self._in_order

    @property
    def nbytes(self) -> int:
        """What they take."""
        held = sum(rows.nbytes for rows in self._classes.values())
        held += 0 if self._packed is None else self._packed.nbytes
        return held + (0 if self._in_order is None else self._in_order.codes.nbytes)

    def code(self, word: str) -> int | None:
        """The code of a word, or None if it is not there."""
        if self._packed is None and self._scans < _SCANS:
            self._scans += 1
            return self._scanned(word.encode())
        place = bisect_left(self.in_order, word)
        if place < len(self) and self.in_order[place] == word:
            return int(self.in_order.codes[place])
        return None

    def _scanned(self, sought: bytes) -> int | None:
        number = class_of(len(sought))
        rows = self._classes.get(number)
        if rows is None or len(sought) > LONGEST:
            return None
        row = row_of(sought)
        left = np.flatnonzero(rows[:, 0] == row[0])
        for lane in range(1, len(row)):
            left = left[rows[left, lane] == row[lane]]
        before = sum(len(each) for other, each in self._classes.items() if other < number)
        return before + int(left[0]) if len(left) else None


class InOrder(Sequence[str]):
    """Words in their order, and the code of each."""

    def __init__(self, words: PackedWords, codes: Places) -> None:
        self.words = words
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self.words[int(code)] for code in self.codes[place]]
        return self.words[int(self.codes[place])]
