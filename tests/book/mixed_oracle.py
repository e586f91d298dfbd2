"""Optimal composition of mechanisms that differ, by its definition: all 2^k outcomes, 60 digits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import mpmath

Parts = Sequence[tuple[Fraction, Fraction]]


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def true_mixed_delta(parts: Parts, epsilon: Fraction) -> mpmath.mpf:
    """1 − Π (1 − δᵢ)(1 − Σ over all signs of (P − e^ε P′)₊)."""
    with mpmath.workdps(60):
        law = [(mpmath.mpf(1), mpmath.mpf(1))]
        for each, _ in parts:
            high = 1 / (1 + mpmath.exp(-real(each)))
            low = 1 / (1 + mpmath.exp(real(each)))
            law = [
                (p * here, q * there) for p, q in law for here, there in ((high, low), (low, high))
            ]
        growth = mpmath.exp(real(epsilon))
        pure = mpmath.fsum(p - growth * q for p, q in law if p > growth * q)
        private = mpmath.fprod(1 - real(leak) for _, leak in parts)
        return 1 - private * (1 - pure)
