"""Where rows stand: people packed into 64-bit words, so that people are counted by the word.

Each row has a slot, a bit position in every bitmap.  The rows of one person are neighbours and,
up to 64 of them, lie within one word; people are sorted by how many rows they have.  Then the
number of people with at least one bit set in M is found by one addition per word: with N the
bits that are not the last row of a person, adding N to M & N carries into a person's last bit
exactly if one of the earlier bits was set, and the last bit of a person, which is 0 in both
numbers, stops the carry.  So the last bits of ((M & N) + N) | M say who has a match.
A person with more than 64 rows gets whole words, which are combined at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

BLOCK = 1 << 15
"""Words handled at once: 256 KB, small enough to stay in the cache."""

WORD = np.dtype("<u8")  # bit i of a word is slot i: the carry must run from slot to slot


@dataclass(frozen=True, slots=True)
class Layout:
    """The slots of a table."""

    words: int
    one_row: int  # words before this one hold people with one row each
    many_words: int  # words from this one on belong to people with more than 64 rows
    filled: Words  # slots that hold a row
    inner: Words  # N above, for the words from one_row to many_words
    inner_bits: int
    starts: NDArray[np.int64]  # first slots of people with several rows, in order
    sizes: NDArray[np.int64]  # the sizes of people that occur ...
    size_ends: NDArray[np.int64]  # ... and the word where people of each size end

    @property
    def slots(self) -> int:
        """How many bit positions there are."""
        return self.words * 64

    def plain_until(self, most: int) -> int:
        """People with at most this many rows fill the words before this one."""
        place = int(np.searchsorted(self.sizes, most, side="right"))
        return int(self.size_ends[place - 1]) if place else 0

    def starts_between(self, first: int, last: int) -> NDArray[np.int64]:
        """First slots of the people in a stretch of words, counted from its beginning."""
        low, high = np.searchsorted(self.starts, (first * 64, last * 64))
        return self.starts[low:high] - first * 64

    def people_before(self, word: int) -> int:
        """How many people with several rows stand before a word."""
        return int(np.searchsorted(self.starts, word * 64))

    def blocks(self, first: int, last: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
        """Stretches of words that split nobody; people with many words stay in one piece."""
        for start in range(first, min(last, self.many_words), size):
            yield start, min(start + size, last, self.many_words)
        if last > max(first, self.many_words):
            yield max(first, self.many_words), last


def every_row(rows: int) -> Layout:
    """Each row is a person: slots are rows."""
    words = -(-rows // 64)
    filled = np.zeros(words * 64, dtype=np.bool_)
    filled[:rows] = True
    return Layout(
        words=words,
        one_row=words,
        many_words=words,
        filled=pack(filled),
        inner=np.zeros(0, dtype=WORD),
        inner_bits=0,
        starts=np.zeros(0, dtype=np.int64),
        sizes=np.ones(1, dtype=np.int64),
        size_ends=np.array([words]),
    )


def by_person(people: NDArray[np.int64]) -> tuple[Layout, NDArray[np.int64]]:
    """The layout for rows of these people, and the slot of every row.

    People are numbered 0, 1, 2, ... in any order; each number occurs.
    """
    counts = np.bincount(people)
    first_slot = np.zeros(len(counts), dtype=np.int64)
    by_size = np.argsort(counts, kind="stable")
    different, begins = np.unique(counts[by_size], return_index=True)
    sizes: list[int] = different.tolist()
    ends, word = [], 0
    for size, start, stop in zip(sizes, begins, [*begins[1:], len(counts)], strict=False):
        members = by_size[start:stop]
        per_word, words_each = max(64 // size, 1), -(-size // 64)
        nth = np.arange(len(members))
        first_slot[members] = (word + nth // per_word * words_each) * 64 + nth % per_word * size
        word += -(-len(members) // per_word) * words_each
        ends.append(word)
    one_row = ends[0] if sizes[:1] == [1] else 0
    small = [end for size, end in zip(sizes, ends, strict=True) if size <= 64]
    many_words = small[-1] if small else 0
    slot_of_row = first_slot[people] + _rank(people, counts)
    filled = np.zeros(word * 64, dtype=np.bool_)
    filled[slot_of_row] = True
    inner = np.ones((many_words - one_row) * 64, dtype=np.bool_)
    several = (counts > 1) & (counts <= 64)
    inner[(first_slot + counts - 1)[several] - one_row * 64] = False
    packed = pack(inner)
    layout = Layout(
        words=word,
        one_row=one_row,
        many_words=many_words,
        filled=pack(filled),
        inner=packed,
        inner_bits=int(np.bitwise_count(packed).sum(dtype=np.int64)),
        starts=np.sort(first_slot[counts > 1]),
        sizes=np.array(sizes, dtype=np.int64),
        size_ends=np.array(ends, dtype=np.int64),
    )
    return layout, slot_of_row


def _rank(people: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of its person's rows each row is: 0, 1, 2, ..."""
    # Sorting (person, row) packed into one number is several times quicker than an argsort;
    # it fits, since neither number reaches 2^31 before memory does.
    rows = len(people)
    shift = max(rows, 1).bit_length()
    order = np.sort((people << shift) | np.arange(rows)) & ((1 << shift) - 1)
    firsts = np.cumsum(counts) - counts
    rank = np.empty(rows, dtype=np.int64)
    rank[order] = np.arange(rows) - np.repeat(firsts, counts)
    return rank


def pack(bits: NDArray[np.bool_]) -> Words:
    """Bits as words; their number must be a multiple of 64."""
    return np.packbits(bits, bitorder="little").view(WORD)


def unpack(words: Words) -> NDArray[np.bool_]:
    """Words as bits."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)
