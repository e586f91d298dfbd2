"""The laws that are drawn in bulk, as certified cumulative probabilities, in integers only.

A law on the indexes 0..n is given by its n inner boundaries: ``law(bits)`` lists, for
k = 1..n, integers (low, high) with low ≤ 2^bits · Pr[index < k] ≤ high.  Bounds close in on the
truth as ``bits`` grows.  With q = e^(−rate), rate > 0 rational, q is transcendental (Lindemann),
so are the boundaries below, and none ever coincides with a fraction of a power of two: enough
bits settle every comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tacit import certified
from tacit.certified import Units

Law = Callable[[int], list[Units]]

_GUARD_BITS = 32


def powers(rate: Fraction, count: int, bits: int) -> list[Units]:
    """Bounds of 2^bits · e^(−rate·k) for k = 0..count−1, each from the one before."""
    work = bits + _GUARD_BITS + count.bit_length()
    ratio_low, ratio_high = certified.exp_minus(rate, work)
    low = high = 1 << work
    bounds = []
    for _ in range(count):
        bounds.append((low >> work - bits, -(-high >> work - bits)))
        low, high = low * ratio_low >> work, min(-(-high * ratio_high >> work), high)
    return bounds


def floors(law: Law, bits: int) -> list[int]:
    """Integers f_k with f_k ≤ 2^bits · boundary_k ≤ f_k + 1, beyond doubt."""
    extra = _GUARD_BITS
    while True:
        bounds = law(bits + extra)
        result = [low >> extra for low, _ in bounds]
        if all(high <= floor + 1 << extra for floor, (_, high) in zip(result, bounds, strict=True)):
            return result
        extra *= 2


def truncated_geometric(rate: Fraction, count: int) -> Law:
    """Pr[index = k] ∝ e^(−rate·k) on 0..count−1: boundaries (1 − q^k)/(1 − q^count)."""

    def law(bits: int) -> list[Units]:
        work = bits + _GUARD_BITS + (rate.denominator // rate.numerator).bit_length()
        one = 1 << work
        *inner, (last_low, last_high) = powers(rate, count + 1, work)
        return [
            ((one - high << bits) // (one - last_low), -((low - one << bits) // (one - last_high)))
            for low, high in inner[1:]
        ]

    return law


def geometric(rate: Fraction, cut: int) -> Law:
    """Pr[index = k] ∝ e^(−rate·k) for k < cut; index = cut stands for all that lies beyond."""

    def law(bits: int) -> list[Units]:
        one = 1 << bits
        return [(one - high, one - low) for low, high in powers(rate, cut + 1, bits)[1:]]

    return law


def signed_geometric(rate: Fraction, cut: int, sign_rate: Fraction) -> Law:
    """A geometric size and an independent sign, negative with probability 1/(1 + e^sign_rate).

    Index cut + 1 + h stands for the size h with a plus, cut − h for the size h with a minus;
    the indexes 0 and 2·cut + 1 stand for all sizes from ``cut`` on.
    """

    def law(bits: int) -> list[Units]:
        work = bits + _GUARD_BITS
        one = 1 << work
        low_q, high_q = certified.exp_minus(sign_rate, work)
        minus_low, minus_high = (
            (low_q << work) // (one + low_q),
            -((-high_q << work) // (one + high_q)),
        )
        sizes = powers(rate, cut + 1, work)
        shift = work + _GUARD_BITS
        minus = [(low * minus_low >> shift, -(-high * minus_high >> shift)) for low, high in sizes]
        plus = [
            (
                (one << work) - high * (one - minus_low) >> shift,
                -(low * (one - minus_high) - (one << work) >> shift),
            )
            for low, high in sizes[1:]
        ]
        return minus[::-1] + plus

    return law
