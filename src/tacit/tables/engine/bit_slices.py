"""A column's codes bit by bit: one bitmap for each bit of the codes.

The sum of the codes of some slots is the sum of 2^i times how many of these slots have bit i
(O'Neil and Quass, *Improved query performance with variant indexes*, 1997).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.encoded.layout import WORD, BitWords, Codes

_SUMMED = 1 << 16  # words that are added up at once
_BUILD = 1 << 20  # codes whose bits are taken at once


@dataclass(frozen=True, slots=True)
class BitSlices:
    """The bits of codes from the lowest upwards."""

    bits: NDArray[np.uint64]  # bits × words
    known: BitWords | None  # slots whose code is that of a value; None if all are

    @property
    def count(self) -> int:
        """How many bitmaps it takes."""
        return len(self.bits) + (self.known is not None)


def sliced(codes: Codes, null: int) -> BitSlices:
    """The bits of codes; ``null`` is the greatest code, which means NULL."""
    octets = codes.astype(codes.dtype.newbyteorder("<"), copy=False).view(np.uint8)
    octets = octets.reshape(len(codes), codes.itemsize)
    bits = np.empty((null.bit_length(), len(codes) // 64), dtype=WORD)
    for start in range(0, len(codes), _BUILD):
        slots, words = slice(start, start + _BUILD), slice(start // 64, (start + _BUILD) // 64)
        octet = np.empty(0, np.uint8)
        for place in range(len(bits)):
            if not place % 8:
                octet = np.ascontiguousarray(octets[slots, place // 8])
            found = np.packbits(octet & np.uint8(1 << place % 8), bitorder="little")
            bits[place, words] = found.view(WORD)
    known = np.packbits(codes != codes.dtype.type(null), bitorder="little").view(WORD)
    everything = bool((known == ~np.uint64(0)).all())
    return BitSlices(bits, None if everything else known)


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
            total += sum(ones << row for row, ones in enumerate(counts))
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
            total += int(np.add.reduce(ones)) << (row - row % 2)
    return total, many
