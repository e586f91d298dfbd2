"""A column's codes bit by bit: one bitmap for each bit of the codes.

Such bitmaps (O'Neil and Quass, *Improved query performance with variant indexes*, 1997) answer what
was never asked before.  The leading bits decide for nearly all slots whether a code lies in an
interval, and only the few others are looked up.  The sum of the codes of some slots is the sum of
2^i times how many of these slots have bit i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.layout import WORD, BitWords, Codes

LEADING = 12
"""Bits that are tried before codes are: of evenly spread codes they leave one in 2 000 open."""

_AT_ONCE = 1 << 15  # words that are compared at once
_SUMMED = 1 << 16  # and added up
_BUILD = 1 << 20  # codes whose bits are taken at once


@dataclass(frozen=True, slots=True)
class BitSlices:
    """The bits from some place upwards: ``bits[0]`` is the lowest of them, ``shift`` its place."""

    bits: NDArray[np.uint64]  # bits × words
    shift: int
    known: BitWords | None  # slots whose code is that of a value; None if all are

    @property
    def count(self) -> int:
        """How many bitmaps it takes."""
        return len(self.bits) + (self.known is not None)

    def between(
        self, low: int, high: int, top: int, start: int, stop: int
    ) -> tuple[BitWords, BitWords]:
        """The slots whose codes lie in an interval for sure, and those for which it is still open.

        ``top`` is the greatest code of a value; an interval up to there has no upper end.
        """
        sure, still = np.zeros(stop - start, dtype=WORD), np.zeros(stop - start, dtype=WORD)
        for at in range(start, stop, _AT_ONCE):
            end = min(at + _AT_ONCE, stop)
            part = slice(at - start, end - start)
            _decide(self, (low, None if high == top else high), (at, end), sure[part], still[part])
            if high == top and self.known is not None:
                sure[part] &= self.known[at:end]
        return sure, still


def sliced(codes: Codes, null: int, shift: int = 0) -> BitSlices:
    """The bits of codes from ``shift`` on; ``null`` is the greatest code, which means NULL."""
    places = range(shift, null.bit_length())
    octets = codes.astype(codes.dtype.newbyteorder("<"), copy=False).view(np.uint8)
    octets = octets.reshape(len(codes), codes.itemsize)
    bits = np.empty((len(places), len(codes) // 64), dtype=WORD)
    for start in range(0, len(codes), _BUILD):
        slots, words = slice(start, start + _BUILD), slice(start // 64, (start + _BUILD) // 64)
        octet = np.empty(0, np.uint8)
        for row, place in enumerate(places):
            if not row or not place % 8:
                octet = np.ascontiguousarray(octets[slots, place // 8])
            found = np.packbits(octet & np.uint8(1 << place % 8), bitorder="little")
            bits[row, words] = found.view(WORD)
    known = np.packbits(codes != codes.dtype.type(null), bitorder="little").view(WORD)
    everything = bool((known == ~np.uint64(0)).all())
    return BitSlices(bits, shift, None if everything else known)


def leading(codes: Codes, null: int) -> BitSlices:
    """The leading bits of codes, for ranges."""
    return sliced(codes, null, max(null.bit_length() - LEADING, 0))


# Whether codes lie in an interval


def _decide(
    slices: BitSlices,
    ends: tuple[int, int | None],
    words: tuple[int, int],
    sure: BitWords,
    still: BitWords,
) -> None:
    """Bit by bit from the first: who has been like both ends so far, like one, or lies between.

    Without an upper end only the lower one counts.
    """
    low, high = ends
    start, stop = words
    both = _LikeBound(np.full(stop - start, ~np.uint64(0), dtype=WORD))
    sides: list[tuple[_LikeBound, int, bool]] = [] if high is not None else [(both, low, True)]
    lowest = max(len(slices.bits) - LEADING, 0)
    for row in range(len(slices.bits) - 1, lowest - 1, -1):
        bits, place = slices.bits[row, start:stop], slices.shift + row
        if not sides:
            assert high is not None
            if low >> place & 1 == high >> place & 1:
                both.keep(bits, bool(low >> place & 1))
            else:
                above = _LikeBound(both.alike & bits)
                both.keep(bits, False)
                sides = [(both, low, True), (above, high, False)]
            continue
        for side, bound, lower in sides:
            side.compare(bits, bool(bound >> place & 1), sure, lower=lower)
    rest = (1 << slices.shift + lowest) - 1
    for side, bound, lower in sides:
        whole = bound & rest == (0 if lower else rest)  # all codes that begin so are meant
        np.bitwise_or(sure if whole else still, side.alike, out=sure if whole else still)
    if not sides:
        assert high is not None
        whole = low & rest == 0 and high & rest == rest
        np.bitwise_or(sure if whole else still, both.alike, out=sure if whole else still)


class _LikeBound:
    """The slots whose codes are so far like one bound, or like both."""

    __slots__ = ("_spare", "alike")

    def __init__(self, alike: BitWords) -> None:
        self.alike = alike
        self._spare = np.empty_like(alike)

    def keep(self, bits: BitWords, wanted: bool) -> None:
        """Keep those that have a bit, or those that do not."""
        np.bitwise_and(self.alike, bits, out=self._spare)
        if wanted:
            self.alike, self._spare = self._spare, self.alike
        else:
            np.bitwise_xor(self.alike, self._spare, out=self.alike)

    def compare(self, bits: BitWords, wanted: bool, inside: BitWords, *, lower: bool) -> None:
        """The same; those that differ lie inside if they are above a lower bound, or below."""
        np.bitwise_and(self.alike, bits, out=self._spare)
        having, lacking = self._spare, self.alike
        if not (lower and wanted):
            np.bitwise_xor(lacking, having, out=lacking)
        if wanted:
            self.alike, self._spare = having, lacking
        if lower != wanted:  # what differs from the bound is on its inner side
            np.bitwise_or(inside, lacking if wanted else having, out=inside)


# Sums


def sum_of_codes(
    slices: BitSlices, matching: Callable[[int, int], BitWords], start: int, stop: int
) -> tuple[int, int]:
    """The sum of the codes of matching slots, those of NULL left out, and how many there are."""
    total = many = 0
    for at in range(start, stop, _SUMMED):
        end = min(at + _SUMMED, stop)
        words = matching(at, end)
        if slices.known is not None:
            words = words & slices.known[at:end]
        if kernel.compiled is not None:
            many += int(np.add.reduce(np.bitwise_count(words)))
            counts = kernel.compiled.ones_in_each(words, slices.bits, slices.bits.shape[1], at)
            total += sum(ones << slices.shift + row for row, ones in enumerate(counts))
            continue
        both, ones = np.empty_like(words), np.empty(len(words), np.uint8)
        many += int(np.add.reduce(np.bitwise_count(words, out=ones)))
        lower = np.empty_like(ones)
        for row, bits in enumerate(slices.bits):
            np.bitwise_and(words, bits[at:end], out=both)
            if row % 2 == 0 and row + 1 < len(slices.bits):
                np.bitwise_count(both, out=lower)
                continue
            np.bitwise_count(both, out=ones)
            if row % 2:  # two bits at once: 64 + 2 · 64 fit into a byte
                ones += ones
                ones += lower
            total += int(np.add.reduce(ones)) << (slices.shift + row - row % 2)
    return total, many
