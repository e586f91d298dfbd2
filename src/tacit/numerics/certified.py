"""Certified bounds on exp, ln and √ of rationals, and floats rounded to the safe side.

Every function of the first kind returns a pair (low, high) with low ≤ truth ≤ high, computed in
integers only, which converges as ``bits`` grows.  To decide a comparison, ask for more bits until
the answer is clear.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt

Bounds = tuple[Fraction, Fraction]
"""(low, high) with low ≤ truth ≤ high."""

Units = tuple[int, int]
"""The same in units of 2^(−bits), for some number of bits."""

_GUARD_BITS = 16
_LOG10_TWO = 1292913986  # times 2^(−32); good for numbers of up to 10^8 bits


def exp_minus(gamma: Fraction, bits: int) -> Units:
    """Integers (low, high) with low ≤ 2^bits · e^(−γ) ≤ high, for rational γ ≥ 0.

    >>> exp_minus(Fraction(1), 32)   # 2³² / e = 1580030168.703...
    (1580030168, 1580030169)
    """
    if gamma == 0:
        return 1 << bits, 1 << bits
    whole = gamma.numerator // gamma.denominator
    # Repeated rounding costs e^(−whole) at most about log2(whole) bits.
    work = bits + _GUARD_BITS + whole.bit_length()
    if whole > work:  # e^(−γ) < 2^(−γ) < 2^(−bits): only the last unit is in doubt
        return 0, 1
    low, high = _exp_minus_fraction(gamma - whole, work)
    unit_low, unit_high = _exp_minus_one(work)
    low = low * _power(unit_low, whole, work, up=False) >> work
    high = -(-high * _power(unit_high, whole, work, up=True) >> work)
    drop = work - bits
    return low >> drop, -(-high >> drop)


@lru_cache(maxsize=64)
def _exp_minus_one(bits: int) -> Units:
    return _exp_minus_fraction(Fraction(1), bits)


def _exp_minus_fraction(gamma: Fraction, bits: int) -> Units:
    """The same for 0 ≤ γ ≤ 1, by the alternating series of e^(−γ)."""
    numerator, denominator = gamma.numerator, gamma.denominator
    term = total = 1 << bits
    index = 0
    while term:
        index += 1
        term = term * numerator // (denominator * index)
        total += -term if index % 2 else term
    # A rounded-down term t_i is too small by less than 1/i·(error of t_{i−1}) + 1 < 2 units, and
    # the rest of the series after a zero term is below 2 units: two for each term, and the rest.
    slack = 2 * index + 2
    return max(total - slack, 0), total + slack


def _power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """base^exponent in fixed point, every product rounded the same way."""
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = _shift(result * base, bits, up)
        base = _shift(base * base, bits, up)
        exponent >>= 1
    return result


def _shift(product: int, bits: int, up: bool) -> int:
    return -(-product >> bits) if up else product >> bits


def exp(x: Fraction, bits: int = 80) -> Bounds:
    """Bounds on e^x for any rational x, with a relative width of about 2^(−bits)."""
    if x < 0:
        scale = bits + int(-x * 3 / 2) + 2  # e^x > 2^(−1.5·|x|): keep `bits` leading bits
        low, high = exp_minus(-x, scale)
        return Fraction(low, 1 << scale), Fraction(high, 1 << scale)
    if x == 0:
        return Fraction(1), Fraction(1)
    inverse_low, inverse_high = exp(-x, bits + 2)
    return 1 / inverse_high, 1 / inverse_low


def ln(x: Fraction, bits: int = 80) -> Bounds:
    """Bounds on ln x for rational x > 0, with an absolute width of about 2^(−bits)."""
    if x < 1:
        inverse_low, inverse_high = ln(1 / x, bits)
        return -inverse_high, -inverse_low
    twos = max((x.numerator // x.denominator).bit_length() - 1, 0)
    work = bits + _GUARD_BITS + twos.bit_length()
    low, high = _ln_near_one(x / (1 << twos), work)
    two_low, two_high = _ln_two(work)
    return (
        Fraction(low + twos * two_low, 1 << work),
        Fraction(high + twos * two_high, 1 << work),
    )


@lru_cache(maxsize=64)
def _ln_two(bits: int) -> Units:
    return _ln_near_one(Fraction(2), bits)


def _ln_near_one(x: Fraction, bits: int) -> Units:
    """2^bits · ln x for 1 ≤ x ≤ 2, by 2·artanh((x−1)/(x+1)); the argument is at most 1/3."""
    ratio = (x - 1) / (x + 1)
    low = _fixed(ratio, bits, up=False)
    high = _fixed(ratio, bits, up=True)
    low_square, high_square = low * low >> bits, -(-high * high >> bits)
    low_sum, high_sum, odd = 0, 0, 1
    while high > 1:
        low_sum += low // odd
        high_sum += -(-high // odd)
        low, high = low * low_square >> bits, -(-high * high_square >> bits)
        odd += 2
    # The rest is below high · (1 + 1/9 + 1/81 + ...) ≤ 2 units.
    return 2 * low_sum, 2 * (high_sum + 2)


def _fixed(x: Fraction, bits: int, *, up: bool) -> int:
    scaled = x.numerator << bits
    return -(-scaled // x.denominator) if up else scaled // x.denominator


def sqrt(x: Fraction, bits: int = 80) -> Bounds:
    """Bounds on √x for rational x ≥ 0, with an absolute width of at most 2^(−bits)."""
    root = isqrt((x.numerator << (2 * bits)) // x.denominator)
    exact = Fraction(root, 1 << bits)
    return (exact, exact) if exact * exact == x else (exact, Fraction(root + 1, 1 << bits))


def round_down(x: Fraction, digits: int = 15) -> Fraction:
    """The nearest number ≤ x with `digits` or one more significant decimal digits, for x ≥ 0."""
    return _round(x, digits, up=False)


def round_up(x: Fraction, digits: int = 15) -> Fraction:
    """The nearest number ≥ x with `digits` or one more significant decimal digits, for x ≥ 0."""
    return _round(x, digits, up=True)


def _round(x: Fraction, digits: int, *, up: bool) -> Fraction:
    if x == 0:
        return Fraction(0)
    # x ≥ 2^twos, so that x/unit has at least `digits` digits, and at most one more.
    twos = x.numerator.bit_length() - x.denominator.bit_length() - 1
    exponent = (twos * _LOG10_TWO >> 32) + 1 - digits
    unit = Fraction(10) ** exponent
    steps = x / unit
    whole = -(-steps.numerator // steps.denominator) if up else steps.numerator // steps.denominator
    return whole * unit


# Floats rounded to the safe side, for results that are not rational.
#
# A value is rounded by 2·10⁻¹³ of its size, a thousand times the rounding of a float.  So the
# result stays safe when it is printed, read back by its shortest decimal, or multiplied by a few
# floats.


MARGIN = 2e-13

SLACKS = [1 + Fraction(4**i, 10**14) for i in range(22)]
"""Factors by which a proposed result is moved until it is certified; the first usually suffice."""

SMALLEST = sys.float_info.min
"""To this, about 2.2e-308, a positive number below the normal range of floats is rounded up."""


def rounded_up(value: Fraction | Decimal) -> float:
    """A float above `value` ≥ 0; zero only for zero, and infinity beyond the range of floats.

    >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3), rounded_up(Fraction(0))
    (True, 0.0)
    """
    if value == 0:
        return 0.0
    return max(_to_float(value) * (1 + MARGIN), SMALLEST)


def rounded_down(value: Fraction | Decimal) -> float:
    """A float below `value` ≥ 0; beyond the range of floats, the largest finite one."""
    near = min(_to_float(value) * (1 - MARGIN), sys.float_info.max)
    return near if near >= SMALLEST else 0.0


def _to_float(value: Fraction | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
