"""Adding up what each person contributes, from the bits of matching slots.

Sums are made in 64 bits where they cannot overflow, and in Python's integers otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.columns import EncodedColumn
from tacit.tables.encoded.layout import BLOCK, WORD, BitWords, Codes, Layout, unpack
from tacit.tables.engine.bit_slices import BitSlices, sum_of_codes

Matching = Callable[[int, int], BitWords]
"""The matching bits of words start..stop.  They may be part of a bitmap: do not write to them."""

SAFE = 2**62
"""Sums below this cannot overflow 64 bits."""


def bits_of(matching: Matching, start: int, stop: int) -> NDArray[np.bool_]:
    """The matching slots from one word to another."""
    return unpack(matching(start, stop))


def people_total(layout: Layout, matching: Matching) -> int:
    """How many people have at least one matching row."""
    if layout.words <= BLOCK and layout.many_words == layout.words:
        return _people_of_one_block(layout, matching(0, layout.words))
    total = _popcount(matching, 0, layout.one_row)
    if layout.one_row < layout.many_words:
        total += _people_within_words(layout, matching)
    if layout.many_words < layout.words:
        words = matching(layout.many_words, layout.words)
        firsts = layout.starts_between(layout.many_words, layout.words) // 64
        total += int(np.count_nonzero(np.bitwise_or.reduceat(words, firsts)))
    return total


def _people_of_one_block(layout: Layout, words: BitWords) -> int:
    """The same for a small table, such as a shard, without anybody of more than 64 rows."""
    first = layout.one_row
    if first == layout.words:
        return int(np.add.reduce(np.bitwise_count(words)))
    counts, several = np.empty(layout.words, dtype=np.uint8), words[first:]
    np.bitwise_count(words[:first], out=counts[:first])
    carry = several & layout.inner
    _carry(several, layout.inner, carry)
    np.bitwise_count(carry, out=counts[first:])
    return int(np.add.reduce(counts)) - layout.inner_bits


def _carry(words: BitWords, inner: BitWords, carry: BitWords) -> None:
    """From words & inner to the last bits of people with a match, and all bits of N."""
    np.add(carry, inner, out=carry)
    np.bitwise_or(carry, words, out=carry)
    np.bitwise_or(carry, inner, out=carry)


def _popcount(matching: Matching, first: int, last: int) -> int:
    total = 0
    for start in range(first, last, BLOCK):
        words = matching(start, min(start + BLOCK, last))
        total += int(np.add.reduce(np.bitwise_count(words)))
    return total


def _people_within_words(layout: Layout, matching: Matching) -> int:
    """People with a match, found by the carry that `layout` describes.

    All bits of N are set at the end, and their number is subtracted.
    """
    first, last = layout.one_row, layout.many_words
    size = min(BLOCK, last - first)
    carried, counts = np.empty(size, dtype=WORD), np.empty(size, dtype=np.uint8)
    total = 0
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        words, carry = matching(start, stop), carried[: stop - start]
        inner = layout.inner[start - first : stop - first]
        np.bitwise_and(words, inner, out=carry)
        _carry(words, inner, carry)
        total += int(np.add.reduce(np.bitwise_count(carry, out=counts[: stop - start])))
    return total - layout.inner_bits


def rows_total(layout: Layout, matching: Matching, most: int) -> int:
    """How many rows match, counting at most ``most`` rows of each person."""
    plain = layout.plain_until(most)  # nobody before this word has more rows
    total = _popcount(matching, 0, plain)
    for start, stop in layout.blocks(plain, layout.words):
        bits = bits_of(matching, start, stop).view(np.uint8)
        rows = np.add.reduceat(bits, layout.starts_between(start, stop), dtype=np.int64)
        total += int(np.minimum(rows, most).sum())
    return total


def sum_total(
    layout: Layout,
    matching: Matching,
    column: EncodedColumn,
    low: int,
    high: int,
    slices: BitSlices | None = None,
) -> int:
    """The sum of a column over matching rows, with each person's part clamped to [low, high].

    ``slices`` are all bits of its codes, if they are kept.
    """
    total = added = 0
    free = _free_until(layout, column, low, high)
    if slices is not None and column.base is not None:
        offsets, many = sum_of_codes(slices, matching, 0, free)
        total, added = offsets + column.base * many, free
    single = max(free, layout.one_row)  # up to here rows count for themselves
    for start, stop in layout.blocks(added, single):
        codes = column.codes[start * 64 : stop * 64]
        found = bits_of(matching, start, stop) & (codes != column.null)
        if column.base is not None and column.top * len(codes) < SAFE:
            total += _sum_of_codes(column, codes, found, low, high)
            continue
        values = np.clip(column.values(codes[found]), low, high)
        total += exact_sum(values, max(abs(low), abs(high)))
    for start, stop in layout.blocks(single, layout.words):
        codes = column.codes[start * 64 : stop * 64]
        found = bits_of(matching, start, stop) & (codes != column.null)
        starts = layout.starts_between(start, stop)
        values = wide(np.where(found, column.values(codes), 0), column.reach)
        sums = np.add.reduceat(values, starts)[np.logical_or.reduceat(found, starts)]
        total += exact_sum(np.clip(sums, low, high), max(abs(low), abs(high)))
    return total


def _free_until(layout: Layout, column: EncodedColumn, low: int, high: int) -> int:
    """The word up to which nobody has so many rows that clamping could change their part."""
    if column.top < 0 or column.base is None:
        return 0
    least, most = column.base, column.base + column.top
    fits = [
        size
        for size in layout.sizes.tolist()
        if low <= min(least, least * size) and max(most, most * size) <= high
    ]
    return layout.plain_until(max(fits)) if fits else 0


def _sum_of_codes(
    column: EncodedColumn, codes: Codes, found: NDArray[np.bool_], low: int, high: int
) -> int:
    """The sum of the values of found codes, each clamped to [low, high]; codes are offsets.

    All codes are multiplied with 0 or 1: that is several times as fast as to pick the found ones,
    and a narrow code needs no widening before the sum.
    """
    assert column.base is not None
    least, most = (min(max(end - column.base, 0), column.top) for end in (low, high))
    count = int(np.count_nonzero(found))
    if most < column.top:
        codes = np.minimum(codes, codes.dtype.type(most))
    if least > 0:
        codes = np.maximum(codes, codes.dtype.type(least))
    offsets = int((codes * found.view(np.uint8)).sum(dtype=np.uint64))
    # If [low, high] does not meet the column's range, all codes are alike now, as are the values.
    shift = min(max(column.base + least, low), high) - (column.base + least)
    return offsets + (column.base + shift) * count


def wide(values: NDArray[np.int64], largest: int) -> NDArray[Any]:
    """Values to be added up, as Python's integers if 64 bits might not be enough."""
    return values if largest * len(values) < SAFE else values.astype(object)


def exact_sum(values: NDArray[Any], largest: int) -> int:
    """The exact sum of values that are at most ``largest`` in size."""
    if largest * len(values) < SAFE:
        return int(values.sum())
    return sum(int(value) for value in values)
