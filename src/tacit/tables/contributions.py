"""Adding up what each person contributes, from the bits of matching slots.

All sums are exact: 64-bit where they cannot overflow, Python's integers otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.columns import Held
from tacit.tables.layout import BLOCK, WORD, Layout, Words, unpack

Matching = Callable[[int, int], Words]
"""The matching bits of words start..stop; they may be kept somewhere, so nobody writes to them."""

SAFE = 2**62
"""Sums below this cannot overflow 64 bits."""


def bits_of(matching: Matching, start: int, stop: int) -> NDArray[np.bool_]:
    """The matching slots in a stretch of words."""
    return unpack(matching(start, stop))


def people_total(layout: Layout, matching: Matching) -> int:
    """How many people have at least one matching row."""
    total = _popcount(matching, 0, layout.one_row)
    if layout.one_row < layout.many_words:
        total += _people_within_words(layout, matching)
    if layout.many_words < layout.words:
        words = matching(layout.many_words, layout.words)
        firsts = layout.starts_between(layout.many_words, layout.words) // 64
        total += int(np.count_nonzero(np.bitwise_or.reduceat(words, firsts)))
    return total


def _popcount(matching: Matching, first: int, last: int) -> int:
    total = 0
    for start in range(first, last, BLOCK):
        words = matching(start, min(start + BLOCK, last))
        total += int(np.add.reduce(np.bitwise_count(words)))
    return total


def _people_within_words(layout: Layout, matching: Matching) -> int:
    """The carry of the layout's docstring: N is added, and what is set beyond N is counted."""
    first, last = layout.one_row, layout.many_words
    size = min(BLOCK, last - first)
    carried, counts = np.empty(size, dtype=WORD), np.empty(size, dtype=np.uint8)
    total = 0
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        words, carry = matching(start, stop), carried[: stop - start]
        inner = layout.inner[start - first : stop - first]
        np.bitwise_and(words, inner, out=carry)
        np.add(carry, inner, out=carry)
        np.bitwise_or(carry, words, out=carry)
        np.bitwise_or(carry, inner, out=carry)  # all of N is set now, and counted below
        total += int(np.add.reduce(np.bitwise_count(carry, out=counts[: stop - start])))
    return total - layout.inner_bits


def rows_total(layout: Layout, matching: Matching, most: int) -> int:
    """How many rows match, at most ``most`` of a person."""
    plain = layout.plain_until(most)  # nobody here has more rows than that
    total = _popcount(matching, 0, plain)
    for start, stop in layout.blocks(plain, layout.words):
        bits = bits_of(matching, start, stop).view(np.uint8)
        rows = np.add.reduceat(bits, layout.starts_between(start, stop), dtype=np.int64)
        total += int(np.minimum(rows, most).sum())
    return total


def sum_total(layout: Layout, matching: Matching, column: Held, low: int, high: int) -> int:
    """The sum of a column over matching rows, each person's part moved into [low, high]."""
    total = 0
    for start, stop in layout.blocks(0, layout.one_row):
        codes = column.codes[start * 64 : stop * 64]
        found = bits_of(matching, start, stop) & (codes != column.null)
        values = np.clip(column.values(codes[found]), low, high)
        total += exact_sum(values, max(abs(low), abs(high)))
    for start, stop in layout.blocks(layout.one_row, layout.words):
        codes = column.codes[start * 64 : stop * 64]
        found = bits_of(matching, start, stop) & (codes != column.null)
        starts = layout.starts_between(start, stop)
        values = wide(np.where(found, column.values(codes), 0), column.reach)
        sums = np.add.reduceat(values, starts)[np.logical_or.reduceat(found, starts)]
        total += exact_sum(np.clip(sums, low, high), max(abs(low), abs(high)))
    return total


def wide(values: NDArray[np.int64], largest: int) -> NDArray[Any]:
    """Values ready to be added up: as Python's integers if 64 bits might not do."""
    return values if largest * len(values) < SAFE else values.astype(object)


def exact_sum(values: NDArray[Any], largest: int) -> int:
    """The exact sum of values that are at most ``largest`` in size."""
    if largest * len(values) < SAFE:
        return int(values.sum())
    return sum(int(value) for value in values)
