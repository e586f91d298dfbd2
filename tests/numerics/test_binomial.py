"""The binomial law against mpmath, and its forms against each other."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import log, log1p

import mpmath
import numpy as np
import pytest

from tacit.numerics.binomial import (
    FallingTail,
    about_tails,
    log_binomial,
    pair,
    probability,
    stirling_error,
    tail,
)


@pytest.mark.parametrize(
    ("n", "k"),
    [(5, 2), (1, 0), (300, 150), (601, 300), (603, 301), (10**6, 5000), (2**62 + 400, 400),
     (2**62 + 10**6, 10**6), (10**9, 5 * 10**8), (2**62, 3)],
)  # fmt: skip
def test_log_binomial_is_above_and_close(n: int, k: int) -> None:
    with mpmath.workdps(60):
        logs = [mpmath.loggamma(part + 1) for part in (n, k, n - k)]
        truth = Fraction(str(logs[0] - logs[1] - logs[2]))
    slack = Fraction(1, 10**30)  # mpmath's own rounding
    assert truth - slack <= log_binomial(n, k) <= truth + Fraction(1, 10**15)


@pytest.mark.parametrize("n", [1, 2, 10, 15, 16, 17, 100, 10**6, 10**12])
def test_stirling_s_error(n):
    with mpmath.workdps(60):
        lead = (n + mpmath.mpf(1) / 2) * mpmath.log(n) - n + mpmath.log(2 * mpmath.pi) / 2
        truth = float(mpmath.loggamma(n + 1) - lead)
    assert stirling_error(n) == pytest.approx(truth, abs=1e-15, rel=1e-12)


def _mass(n: int, j: int, p: mpmath.mpf) -> mpmath.mpf:
    logs = mpmath.loggamma(n + 1) - mpmath.loggamma(j + 1) - mpmath.loggamma(n - j + 1)
    return mpmath.exp(logs + j * mpmath.log(p) + (n - j) * mpmath.log1p(-p))


@pytest.mark.parametrize(
    ("k", "j", "up", "down"),
    [
        (1, 1, "1", "1"),
        (5, 3, "1/10", "1/10"),
        (10**4, 5100, "1/100", "1/50"),
        (9, 9, "3", "1/9"),
        (10**9, 500_000_000, "1e-5", "1e-5"),
        (700, 1, "1/2", "2"),
    ],
)
def test_one_probability(k, j, up, down):
    losses = pair(Fraction(up), Fraction(down))
    with mpmath.workdps(60):
        a, b = (mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator for x in (up, down))
        p = -mpmath.expm1(-b) / -mpmath.expm1(-a - b)
        truth = _mass(k, j, p)
        found = mpmath.mpf(str(probability(k, j, losses)))
        assert abs(found / truth - 1) < 1e-14


@pytest.mark.parametrize(
    ("hits", "runs", "p"),
    [
        *[(1, 1, 0.5), (1, 30, 0.001), (12, 30, 0.4), (12, 30, 0.1), (30, 30, 0.9)],
        *[(400, 10**4, 0.03), (10**5, 10**7, 0.0099), (5 * 10**6, 10**7, 0.5)],
    ],
)
def test_a_plain_tail(hits, runs, p):
    with mpmath.workdps(40):
        chance = mpmath.mpf(p)
        last = min(runs, hits + int(60 * (runs * p * (1 - p)) ** 0.5) + 200)
        term = _mass(runs, hits, chance)
        truth, odds = term, chance / (1 - chance)
        for j in range(hits, last):
            term *= odds * (runs - j) / (j + 1)
            truth += term
            if term < truth * mpmath.mpf("1e-25"):
                break
    found = FallingTail(hits, runs).at(log(p), log1p(-p) if p < 1 else -np.inf)
    assert found == pytest.approx(float(truth), rel=1e-11)


@pytest.mark.parametrize("k", [2, 7, 200, 10**5])
def test_what_proposes_agrees_with_what_decides(k):
    epsilon = Fraction(1)
    ups = [Fraction(x) / int(k**0.5 + 1) for x in ("1/4", "1/2", "1")]
    shares = [Fraction(1), Fraction(1, 2), Fraction(4, 5)]
    downs = [up * share for up, share in zip(ups, shares, strict=True)]
    found = about_tails(k, np.array(ups, float), np.array(downs, float), float(epsilon))
    for about, up, down in zip(found, ups, downs, strict=True):
        delta = tail(k, up, down, epsilon).delta
        assert about == pytest.approx(float(delta), rel=1e-6, abs=1e-300)
        assert isinstance(delta, Decimal)
