"""Optimal composition by the sum of its definition, in 100 digits: the reference of the tests."""

from __future__ import annotations

from fractions import Fraction

import mpmath


def true_delta(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The larger of both directions of Σ_j Bin(k, p)(j) (1 − e^(ε − L_j))₊."""
    there = _direction(k, up, down, epsilon)
    return there if up == down else max(there, _direction(k, down, up, epsilon))


def _direction(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> mpmath.mpf:
    first = (epsilon + k * down) // (up + down) + 1
    if first > k:
        return mpmath.mpf(0)
    # 1 − e^(−t) loses as many digits as t has zeros.
    lost = len(str(int(1 / min(up, down, first * up - (k - first) * down - epsilon))))
    with mpmath.workdps(100 + 2 * lost):
        a, b, e = (mpmath.mpf(x.numerator) / x.denominator for x in (up, down, epsilon))
        q = (1 - mpmath.exp(-b)) / (mpmath.exp(a) - mpmath.exp(-b))
        p, not_p = q * mpmath.exp(a), (1 - q) * mpmath.exp(-b)
        start = max(first, min(k, int((k + 1) * p)))
        odds, shrink = p / not_p, mpmath.exp(-a - b)
        term = _probability(k, start, p, not_p)
        left = mpmath.exp(e - start * a + (k - start) * b)  # e^(ε − L_j)
        total = mpmath.mpf(0)
        j, here, rest = start, term, left
        while j <= k:
            total += here * (1 - rest)
            if here < total * 1e-40 and j > start + 1:
                break
            j, here, rest = j + 1, here * (k - j) / (j + 1) * odds, rest * shrink
        j, here, rest = start, term, left
        while j > first:
            j, here, rest = j - 1, here * j / (k - j + 1) / odds, rest / shrink
            total += here * (1 - rest)
            if here < total * 1e-40:
                break
        return total


def _probability(k: int, j: int, p: mpmath.mpf, not_p: mpmath.mpf) -> mpmath.mpf:
    choose = mpmath.loggamma(k + 1) - mpmath.loggamma(j + 1) - mpmath.loggamma(k - j + 1)
    return mpmath.exp(choose + j * mpmath.log(p) + (k - j) * mpmath.log(not_p))
