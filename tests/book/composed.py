"""Optimal composition with 60 digits, by the sum of its definition: the reference of the tests."""

from __future__ import annotations

from fractions import Fraction

import mpmath

DIGITS = 60


def true_delta(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The larger of both directions of Σ_j Bin(k, p)(j) (1 − e^(ε − L_j))₊."""
    return max(_direction(k, up, down, epsilon), _direction(k, down, up, epsilon))


def _direction(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> mpmath.mpf:
    with mpmath.workdps(DIGITS + 40):
        a, b, e = (mpmath.mpf(x.numerator) / x.denominator for x in (up, down, epsilon))
        q = -mpmath.expm1(-b) / (mpmath.exp(a) - mpmath.exp(-b))
        p, not_p = q * mpmath.exp(a), (1 - q) * mpmath.exp(-b)
        first = (epsilon + k * down) // (up + down) + 1
        if first > k:
            return mpmath.mpf(0)
        start = max(first, min(k, int((k + 1) * p)))
        odds = p / not_p
        total = mpmath.mpf(0)
        for direction in (1, -1):
            j, term = start, _probability(k, start, p, not_p)
            if direction < 0:
                term, j = term * j / (k - j + 1) / odds, j - 1
            while first <= j <= k:
                loss = j * a - (k - j) * b
                part = term * -mpmath.expm1(e - loss)
                total += part
                if part < total * mpmath.mpf(10) ** -(DIGITS - 10) and j != first:
                    break
                if direction > 0:
                    term, j = term * (k - j) / (j + 1) * odds, j + 1
                else:
                    term, j = term * j / (k - j + 1) / odds, j - 1
        return +total


def _probability(k: int, j: int, p: mpmath.mpf, not_p: mpmath.mpf) -> mpmath.mpf:
    choose = mpmath.loggamma(k + 1) - mpmath.loggamma(j + 1) - mpmath.loggamma(k - j + 1)
    return mpmath.exp(choose + j * mpmath.log(p) + (k - j) * mpmath.log(not_p))
