"""Searching the sorted words of a text column for a LIKE pattern.

Words that begin alike are next to each other, so a pattern's beginning is found by bisection.  To
find a piece of text anywhere, all words stand in one string of bytes and are compared at once; byte
255, which UTF-8 never has, keeps them apart.  Only words that pass both are matched one by one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.tables.language.functions import like

_FEW = 1000  # words that are sooner matched one by one than searched together
_BLOCK = 1 << 18  # bytes compared at once, which stay in the cache
_APART = b"\xff"

Places = NDArray[np.int64]


class WordSearch:
    """The words of one column, in their order."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._text: tuple[NDArray[np.uint8], Places] | None = None

    def like(self, pattern: str) -> range | Places:
        """The places of the words that match a pattern, in order."""
        first, last = self._beginning(re.split("[%_]", pattern, maxsplit=1)[0])
        if pattern.endswith("%") and not set(pattern[:-1]) & set("%_"):
            return range(first, last)
        found: range | Places = range(first, last)
        piece = max(re.split("[%_]", pattern), key=len)
        if len(found) > _FEW and piece:
            found = self._holding(piece)
            found = found[np.searchsorted(found, first) : np.searchsorted(found, last)]
            if pattern == f"%{piece}%":
                return found
        matches = like(pattern)
        return np.array([place for place in found if matches(self._words[place])], np.int64)

    def _beginning(self, text: str) -> tuple[int, int]:
        """The words that begin with a text: from the first place, and up to before the second."""
        size = len(text)

        def start(word: str) -> str:
            return word[:size]

        return (
            bisect_left(self._words, text, key=start),
            bisect_right(self._words, text, key=start),
        )

    def _holding(self, piece: str) -> Places:
        """The places of the words that have a text somewhere in them."""
        text, starts = self._joined()
        sought = np.frombuffer(_bytes(piece), np.uint8)
        size = len(sought)
        begins = np.zeros(len(text), np.bool_)  # whether the piece stands at this byte
        for start in range(0, len(text) - size + 1, _BLOCK):
            part = text[start : start + _BLOCK + size - 1]
            many = len(part) - size + 1
            alike = np.equal(part[:many], sought[0], out=begins[start : start + many])
            for place in range(1, size):
                alike &= part[place : place + many] == sought[place]
        return np.flatnonzero(np.logical_or.reduceat(begins, starts))

    def _joined(self) -> tuple[NDArray[np.uint8], Places]:
        """All words, and where each begins.  Kept, since a column is rarely searched only once."""
        if self._text is None:
            encoded = [_bytes(word) for word in self._words]
            sizes = np.fromiter(map(len, encoded), np.int64, len(encoded)) + len(_APART)
            text = np.frombuffer(_APART.join([*encoded, b""]), np.uint8)
            self._text = text, np.cumsum(sizes) - sizes
        return self._text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
