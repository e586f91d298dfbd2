"""The sorted words of a text column as one string of bytes, and a word's code from its hash.

A Python string costs some fifty bytes beside its text, and a list of millions of them seconds.  So
the words stay packed, and the few that a search looks at are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 1 << 18  # rows that are looked up together, which stay in the cache
_SPARE = 64  # places behind the table, so that few searches must wrap around

Marks = NDArray[np.uint64]


class PackedWords(Sequence[str]):
    """Words in UTF-8, one after the other, and where each of them ends."""

    def __init__(self, texts: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.texts = texts
        self.ends = ends

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(place)
        start = int(self.ends[place - 1]) if place else 0
        return self.texts[start : int(self.ends[place])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        texts, start = self.texts.tobytes(), 0
        for end in self.ends.tolist():
            yield texts[start:end].decode()
            start = end


def packed(words: Sequence[str]) -> PackedWords:
    """Words as they are kept here."""
    if isinstance(words, PackedWords):
        return words
    texts = [word.encode() for word in words]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return PackedWords(np.frombuffer(b"".join(texts), dtype=np.uint8), ends)


def codes_by_mark(marks: Marks, rows: Marks) -> NDArray[np.uint32] | None:
    """For each row the place of its mark among the marks; None if two marks are equal.

    Each row's mark must be among them.  A table with a place for each mark, found by its leading
    bits, or else the next that is free.
    """
    in_order = np.sort(marks)
    if bool((in_order[1:] == in_order[:-1]).any()):
        return None
    count = len(marks)
    shift = np.uint64(64 - max((2 * count).bit_length(), 4))
    size = (1 << (64 - int(shift))) + _SPARE
    table = np.full(size, count, np.uint32)
    waiting, place = np.arange(count, dtype=np.uint32), (marks >> shift).astype(np.int64)
    while len(waiting):
        free = table[place] == count
        table[place[free]] = waiting[free]  # of several, one has it
        without = table[place] != waiting
        waiting, place = waiting[without], (place[without] + 1) % size
    return _looked_up(table, np.append(marks, np.uint64(0)), rows, shift)


def _looked_up(
    table: NDArray[np.uint32], marks: Marks, rows: Marks, shift: np.uint64
) -> NDArray[np.uint32]:
    found = np.empty(len(rows), np.uint32)
    for start in range(0, len(rows), _AT_ONCE):
        asked = rows[start : start + _AT_ONCE]
        place = (asked >> shift).astype(np.int64)
        here = table[place]
        wrong = np.flatnonzero(marks[here] != asked)
        while len(wrong):
            place[wrong] = (place[wrong] + 1) % len(table)
            here[wrong] = table[place[wrong]]
            wrong = wrong[marks[here[wrong]] != asked[wrong]]
        found[start : start + _AT_ONCE] = here
    return found
