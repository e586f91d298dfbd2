"""Ranges of codes as the compiled loops take them, with the codes' leading bits if they are kept.

Half or a quarter of the bytes of wide codes, their leading 16 bits, decide for nearly all slots
whether a code lies in a range; only those whose leading bits are those of an end are looked up.
Without the compiled loops, `bit_slices` do the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.layout import Codes

SIXTEEN = 16
"""Leading bits, and how many bitmaps they take as much memory as."""

_NULL = 2**SIXTEEN - 1
_BUILD = 1 << 17  # codes whose leading bits are taken at once


@dataclass(frozen=True, slots=True)
class LeadingCodes:
    """Codes without their lowest ``shift`` bits; NULL has a code of its own, the greatest."""

    codes: NDArray[np.uint16]
    shift: int

    @property
    def count(self) -> int:
        """How many bitmaps they take as much memory as."""
        return SIXTEEN


def leading_codes(codes: Codes, null: int) -> LeadingCodes:
    """The leading bits of codes; ``null`` is the greatest code, which means NULL."""
    shift = max((null - 1).bit_length() - SIXTEEN, 0)
    shift += (null - 1) >> shift == _NULL
    found = np.empty(len(codes), dtype=np.uint16)
    for at in range(0, len(codes), _BUILD):
        some = codes[at : at + _BUILD]
        found[at : at + _BUILD] = some >> codes.dtype.type(shift)
        found[at : at + _BUILD][some == codes.dtype.type(null)] = _NULL
    return LeadingCodes(found, shift)


CodeRange = tuple[Any, ...]
"""A range as the compiled loops take it (kernel/module.c)."""


def code_range(
    codes: Codes, low: int, high: int, top: int, leading: LeadingCodes | None
) -> CodeRange:
    """The codes from low to high; ``top`` is the greatest code of a value."""
    if leading is None:
        return codes, codes.itemsize, low, high
    shift, rest = leading.shift, (1 << leading.shift) - 1
    first, last = low >> shift, high >> shift
    sure_first = first + (low & rest != 0)  # else all codes that begin so are inside
    sure_last = last - (high != top and high & rest != rest)
    if sure_first > sure_last:
        sure_first, sure_last = 1, 0
    return codes, codes.itemsize, low, high, leading.codes, first, last, sure_first, sure_last
