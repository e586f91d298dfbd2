"""Floats that err on the safe side, for answers that are not rational.

A true value is rounded away by 2·10⁻¹³ of itself.  That is a thousand times a float's own
rounding, so the answer stays safe when it is printed, read back by its shortest decimal, or
multiplied by a few more floats.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction

MARGIN = 2e-13
SLACKS = [1 + Fraction(4**i, 10**14) for i in range(22)]
"""Factors by which a proposed answer steps back until it is certified; the first ones will do."""
SMALLEST = sys.float_info.min
"""What a positive number below a float's normal range is rounded up to: about 2.2e-308."""


def rounded_up(value: Fraction | Decimal) -> float:
    """A float above `value` ≥ 0; nought only for nought, infinity beyond a float's range.

    >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3), rounded_up(Fraction(0))
    (True, 0.0)
    """
    if value == 0:
        return 0.0
    return max(_to_float(value) * (1 + MARGIN), SMALLEST)


def rounded_down(value: Fraction | Decimal) -> float:
    """A float below `value` ≥ 0; the largest finite float beyond a float's range."""
    near = min(_to_float(value) * (1 - MARGIN), sys.float_info.max)
    return near if near >= SMALLEST else 0.0


def _to_float(value: Fraction | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
