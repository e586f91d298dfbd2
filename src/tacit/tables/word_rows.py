"""Words as rows of 64-bit lanes, by which they are told apart while they are numbered.

A word of at most 12 bytes is a row of two lanes, as it comes from DuckDB: its length in four bytes,
then its own bytes and zeros.  A longer one is a lane with its length, and as many lanes as its own
bytes need.  Rows of one width are a class of words; two words are equal if and only if their rows
are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.tables.arrow_chunks import INLINE
from tacit.tables.packed_words import PackedWords

Rows = NDArray[np.uint64]  # words × lanes

LONGEST = 64
"""Bytes of a word that may be a row."""

_SOME = 1 << 17  # words that are handled at once
_LENGTH = np.uint64(2**32 - 1)


def sizes_of(rows: Rows) -> Rows:
    """The bytes of each word; also of views, which begin like rows."""
    return rows[:, 0] & _LENGTH


def class_of(size: int) -> int:
    """The number of the class of words of so many bytes."""
    return 0 if size <= INLINE else (size + 7) // 8 - 1


def laid_out(views: Rows, texts: NDArray[np.uint8], number: int) -> Rows:
    """Rows of longer words, all of one class, whose views say where they begin in ``texts``.

    Behind the last word there must be room for another.
    """
    lanes = number + 1
    sizes = sizes_of(views)
    starts = (views[:, 1] >> np.uint64(32)).astype(np.int64)
    places = np.arange(8 * lanes)
    octets = texts[starts[:, np.newaxis] + places]
    octets[places >= sizes.astype(np.int64)[:, np.newaxis]] = 0
    rows = np.empty((len(views), lanes + 1), np.uint64)
    rows[:, 0] = sizes
    rows[:, 1:] = octets.view(np.uint64)
    return rows


def row_of(word: bytes) -> NDArray[np.uint64]:
    """The row of one word."""
    number, size = class_of(len(word)), len(word)
    head = 8 if number else 4
    row = size.to_bytes(head, "little") + word
    return np.frombuffer(row.ljust(8 * (number + 2), b"\0"), np.uint64)


def packed_rows(classes: Mapping[int, Rows]) -> PackedWords:
    """The words of all classes, one class after the other."""
    ends, at = np.empty(sum(map(len, classes.values())), np.int64), 0
    for rows in classes.values():
        ends[at : at + len(rows)] = sizes_of(rows)
        at += len(rows)
    np.cumsum(ends, out=ends)
    texts, at = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8), 0
    for number, rows in classes.items():
        for first in range(0, len(rows), _SOME):
            octets = _octets(rows[first : first + _SOME], 8 if number else 4)
            texts[at : at + len(octets)] = octets
            at += len(octets)
    return PackedWords(texts, ends)


def _octets(rows: Rows, skipped: int) -> NDArray[np.uint8]:
    """The bytes of words, one after the other; before them, each row has others."""
    sizes = sizes_of(rows).astype(np.uint8)[:, np.newaxis]
    places = np.arange(8 * rows.shape[1], dtype=np.uint8) - np.uint8(skipped)  # those wrap around
    return np.compress((places < sizes).ravel(), rows.view(np.uint8).ravel())
