"""The words of a text column by codes that are in no order, and their order once it is needed.

To count who has a word, only its code must be found.  So a column of millions of words is not
sorted while it is read, but when a question first compares texts by their order, or when words are
looked up again and again.  Neither can fail on a word: they are sorted and compared as bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tacit.tables.packed_words import PackedWords, sorted_places

_AT_ONCE = 1 << 18  # words that are compared together, which stay in the cache
_SCANS = 1  # how often all words are looked at to find one, before they are sorted

Places = NDArray[np.unsignedinteger]


class UnsortedWords(PackedWords):
    """Words by code."""

    def __init__(self, texts: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        super().__init__(texts, ends)
        self._in_order: InOrder | None = None
        self._scans = 0

    @property
    def in_order(self) -> InOrder:
        """The same words in their order.  They are sorted the first time."""
        if self._in_order is None:
            kind = np.uint32 if len(self) < 2**32 else np.uint64
            self._in_order = InOrder(self, sorted_places(self).astype(kind))
        return self._in_order

    def code(self, word: str) -> int | None:
        """The code of a word, or None if it is not there."""
        if self._in_order is None and self._scans < _SCANS:
            self._scans += 1
            return self._scanned(word.encode())
        place = bisect_left(self.in_order, word)
        if place < len(self) and self.in_order[place] == word:
            return int(self.in_order.codes[place])
        return None

    def between(self, low: str | None, high: str | None) -> Places:
        """The codes of the words from ``low`` to ``high``, or from or to where there are any."""
        first = 0 if low is None else bisect_left(self.in_order, low)
        last = len(self) if high is None else bisect_right(self.in_order, high)
        return self.in_order.codes[first:last]

    def _scanned(self, sought: bytes) -> int | None:
        for at in range(0, len(self), _AT_ONCE):
            ends = self.ends[at : at + _AT_ONCE]
            sizes = np.diff(ends, prepend=self.ends[at - 1] if at else 0)
            left = np.flatnonzero(sizes == len(sought))
            for back, octet in enumerate(reversed(sought), start=1):  # words differ at their ends
                left = left[self.texts[ends[left] - back] == octet]
            if len(left):
                return at + int(left[0])
        return None


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
