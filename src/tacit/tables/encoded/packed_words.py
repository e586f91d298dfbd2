"""The sorted words of a text column as one string of bytes.

A Python string costs some fifty bytes beside its text, and a list of millions of them seconds.  So
the words stay packed, and the few that a search looks at are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 1 << 18  # words that are handled together, which stay in the cache


class PackedWords(Sequence[str]):
    """Words in UTF-8, one after the other, and where each of them ends."""

    def __init__(self, texts: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.texts = texts
        self.ends = ends

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """What they take."""
        return self.texts.nbytes + self.ends.nbytes

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The bytes of each word."""
        return np.diff(self.ends, prepend=0)

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


def sorted_places(words: PackedWords) -> NDArray[np.int64]:
    """The places of different words, in the order of the words: by their bytes, so by code point.

    They are sorted by eight bytes, then those that are alike by the next eight, and so on.
    """
    sizes, at = words.sizes, 0
    lane = _lane(words, sizes, None, at)
    order = np.argsort(lane)
    lane = lane[order]
    alike, group = _alike(lane, np.zeros(len(lane), np.int8))
    while len(alike):
        # A word that ends comes before those that go on, and one that ends sooner before it.
        left = np.minimum(sizes[order[alike]] - at, 9)
        by = np.lexsort((left, group))
        order[alike] = order[alike][by]
        on = left[by] > 8
        alike, group, at = alike[on], group[by][on], at + 8
        lane = _lane(words, sizes, order[alike], at)
        by = np.lexsort((lane, group))
        order[alike] = order[alike][by]
        some, group = _alike(lane[by], group[by])
        alike = alike[some]
    return order


def _alike(
    lane: NDArray[np.uint64], group: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the lane and the group are those of a neighbour, and new groups of such places."""
    same = np.zeros(len(lane) + 1, np.bool_)  # as the one before it
    same[1:-1] = (lane[1:] == lane[:-1]) & (group[1:] == group[:-1])
    places = np.flatnonzero(same[:-1] | same[1:])
    return places, np.cumsum(~same, dtype=np.int64)[places]


def _lane(
    words: PackedWords, sizes: NDArray[np.int64], some: NDArray[np.int64] | None, at: int
) -> NDArray[np.uint64]:
    """Eight bytes of some words, or of all, from byte ``at`` on, as numbers in their order."""
    count, last = len(sizes) if some is None else len(some), len(words.texts) - 1
    lanes, places = np.zeros(count, np.uint64), np.arange(at, at + 8)
    for start in range(0, count if last >= 0 else 0, _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        which = here if some is None else some[here]
        size = sizes[which, np.newaxis]
        octets = words.texts[np.minimum(words.ends[which, np.newaxis] - size + places, last)]
        octets[places >= size] = 0
        lanes[here] = octets.view(">u8")[:, 0]
    return lanes


def put_in_order(words: PackedWords, order: NDArray[np.integer[Any]]) -> PackedWords:
    """The words in another order."""
    sizes = words.sizes[order]
    ends = np.cumsum(sizes)
    texts, moved = np.empty(len(words.texts), np.uint8), words.ends[order] - ends
    for at in range(0, len(order), _AT_ONCE):
        last = min(at + _AT_ONCE, len(order)) - 1
        here = slice(int(ends[at] - sizes[at]), int(ends[last]))
        places = np.repeat(moved[at : last + 1], sizes[at : last + 1])
        places += np.arange(here.start, here.stop)
        texts[here] = words.texts[places]
    return PackedWords(texts, ends)
