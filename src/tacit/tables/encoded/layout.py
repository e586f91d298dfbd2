"""Where the rows of a table are in memory: each has a slot, a bit position in every bitmap.

The rows of one person are next to each other and, if there are at most 64 of them, within one word;
people are sorted by how many rows they have.  Then one addition per word finds how many people have
at least one bit set in M.  Let N be all bits but the last one of each person.  Adding N to M & N
carries into a person's last bit exactly if one of their earlier bits was set, and that last bit,
which is 0 in both numbers, stops the carry.  So the last bits of ((M & N) + N) | M say who has a
match.  A person with more than 64 rows gets whole words, which are combined at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BitWords = NDArray[np.uint64]

Codes = NDArray[np.unsignedinteger[Any]]
"""Small numbers that are not negative, in a type as narrow as `narrowest` says."""

RowSlots = NDArray[Any]
"""The slot of every row."""

BLOCK = 1 << 15
"""Words that are handled at once: 256 KB, small enough to stay in the cache."""

SOME_ROWS = 1 << 17
"""Rows that are placed at once."""

WORD = np.dtype("<u8")  # bit i of a word is slot i, so that a carry moves to the next slot


def narrowest(greatest: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds a number."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if greatest <= np.iinfo(kind).max:
            return kind
    return np.uint64


@dataclass(frozen=True, slots=True)
class Layout:
    """The slots of a table."""

    words: int
    one_row: int  # words before this one hold people with one row each
    many_words: int  # words from this one on belong to people with more than 64 rows
    filled: BitWords  # slots that hold a row
    inner: BitWords  # N above, for the words from one_row to many_words
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
        """First slots of the people from one word to another, counted from the first word."""
        low, high = np.searchsorted(self.starts, (first * 64, last * 64))
        return self.starts[low:high] - first * 64

    def people(self) -> NDArray[np.int64]:
        """For each slot a number that stands for its person."""
        begins = np.ones(self.slots, dtype=np.int64)
        if self.one_row < self.words:
            begins[self.one_row * 64 :] = 0
            begins[self.starts] = 1
        return np.cumsum(begins)

    def people_before(self, word: int) -> int:
        """How many people with several rows come before a word."""
        return int(np.searchsorted(self.starts, word * 64))

    def blocks(self, first: int, last: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
        """Blocks of words that split no person; those with many words are all in the last block."""
        for start in range(first, min(last, self.many_words), size):
            yield start, min(start + size, last, self.many_words)
        if last > max(first, self.many_words):
            yield max(first, self.many_words), last


def every_row(rows: int) -> Layout:
    """The layout if each row is a person: slots are rows."""
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


def by_person(people: Codes | NDArray[np.int64]) -> tuple[Layout, RowSlots]:
    """The layout for rows of these people, and the slot of every row.

    People are numbers from 0 in any order; not each of them need occur.
    """
    rows = len(people)
    counts, nth = _nth_rows(people, int(people.max()) + 1 if rows else 0)
    first_slot, sizes, ends, starts = _first_slots(counts)
    word = ends[-1] if ends else 0
    one_row = ends[0] if sizes[:1] == [1] else 0
    small = [end for size, end in zip(sizes, ends, strict=True) if size <= 64]
    many_words = small[-1] if small else 0
    slot_of_row: RowSlots = np.empty(rows, np.uint32 if word * 64 <= 2**32 else np.int64)
    first_slot = first_slot.astype(slot_of_row.dtype)
    for at in some_rows(rows):
        np.add(
            first_slot.take(people[at], mode="clip"), nth[at], out=slot_of_row[at], casting="unsafe"
        )
    alike = [_patterns(size, len(whose)) for size, whose in zip(sizes, starts, strict=True)]
    within = [inner for size, (_, inner) in zip(sizes, alike, strict=True) if 1 < size <= 64]
    inner = np.concatenate([np.zeros(0, WORD), *within])
    layout = Layout(
        words=word,
        one_row=one_row,
        many_words=many_words,
        filled=np.concatenate([np.zeros(0, WORD), *(filled for filled, _ in alike)]),
        inner=inner,
        inner_bits=int(np.bitwise_count(inner).sum(dtype=np.int64)),
        starts=np.concatenate([np.zeros(0, np.int64), *starts[sizes[:1] == [1] :]]),
        sizes=np.array(sizes, dtype=np.int64),
        size_ends=np.array(ends, dtype=np.int64),
    )
    return layout, slot_of_row


def some_rows(rows: int, many: int | None = None) -> Iterator[slice]:
    """All rows in blocks that stay in the cache, or of so many."""
    step = SOME_ROWS if many is None else many
    return (slice(at, min(at + step, rows)) for at in range(0, rows, step))


def _nth_rows(people: Codes | NDArray[np.int64], many: int) -> tuple[Codes, Codes]:
    """How many rows each of so many people has, and how many of theirs come before each row.

    Few people have more rows than fit into a byte, and a table of bytes stays in the cache.  If
    somebody has, a number begins again at 0, and then all together are fewer than there are rows.
    """
    seen: Codes
    nth: Codes
    kinds: tuple[type[np.unsignedinteger[Any]], ...] = (np.uint8, np.uint32, np.uint64)
    for kind in kinds:
        seen, nth = np.zeros(many, kind), np.empty(len(people), kind)
        for at in some_rows(len(people)):
            _count_on(people[at], seen, nth[at])
        if int(seen.sum(dtype=np.int64)) == len(people):
            break
    return seen, nth


def _count_on(people: Codes | NDArray[np.int64], seen: Codes, nth: Codes) -> None:
    """Count the rows of a block; those of people who come several times in it are sorted."""
    at = people.astype(np.int64)
    nth[:] = seen.take(at, mode="clip")  # which is quicker, and changes nothing here
    np.add.at(seen, at, seen.dtype.type(1))
    often = np.flatnonzero(seen.take(at, mode="clip") - nth != 1)
    if not len(often):
        return
    which = often[np.argsort(people[often], kind="stable")]
    whose = people[which]
    begins = np.flatnonzero(np.append(True, whose[1:] != whose[:-1]))
    before = np.repeat(begins, np.diff(np.append(begins, len(whose))))
    nth[which] += (np.arange(len(whose)) - before).astype(nth.dtype)


def _first_slots(
    counts: Codes,
) -> tuple[NDArray[np.int64], list[int], list[int], list[NDArray[np.int64]]]:
    """Where each person begins; the sizes of people that occur; the word where each size ends.

    At last, where the people of each size begin, in order.
    """
    first_slot = np.zeros(len(counts), dtype=np.int64)
    narrow = counts.astype(narrowest(int(counts.max(initial=0))), copy=False)
    by_size = np.argsort(narrow, kind="stable")
    in_order = narrow[by_size]
    nobody = int(np.searchsorted(in_order, in_order.dtype.type(1)))  # those who do not occur
    by_size, in_order = by_size[nobody:], in_order[nobody:]
    begins = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1])[: len(in_order)])
    sizes: list[int] = in_order[begins].tolist()
    ends, starts, word = [], [], 0
    for size, start, stop in zip(sizes, begins, [*begins[1:], len(by_size)], strict=False):
        members = by_size[start:stop]
        per_word, words_each = max(64 // size, 1), -(-size // 64)
        words = -(-len(members) // per_word) * words_each
        in_word = np.arange(per_word) * size
        begin = np.add.outer(np.arange(word, word + words, words_each) * 64, in_word).ravel()
        starts.append(begin[: len(members)])
        first_slot[members] = starts[-1]
        word += words
        ends.append(word)
    return first_slot, sizes, ends, starts


def _patterns(size: int, people: int) -> tuple[BitWords, BitWords]:
    """The words of so many people of one size: slots that are filled, and all but last slots.

    All words are alike, but the last one may hold fewer people.
    """
    if size > 64:  # each has words of their own
        each = np.full(-(-size // 64), ~np.uint64(0), dtype=WORD)
        if size % 64:
            each[-1] = (1 << size % 64) - 1
        return np.tile(each, people), np.zeros(0, WORD)
    per_word = 64 // size
    words, rest = -(-people // per_word), people % per_word or per_word
    filled, inner = np.empty(words, dtype=WORD), np.empty(words, dtype=WORD)
    for many, place in ((per_word, slice(None)), (rest, slice(-1, None))):
        filled[place] = (1 << many * size) - 1
        inner[place] = 2**64 - 1 - sum(1 << nth * size + size - 1 for nth in range(many))
    return filled, inner


def pack(bits: NDArray[np.bool_]) -> BitWords:
    """Bits as words; their number must be a multiple of 64."""
    return np.packbits(bits, bitorder="little").view(WORD)


def unpack(words: BitWords) -> NDArray[np.bool_]:
    """Words as bits."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)
