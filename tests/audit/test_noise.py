"""Every probability of every law against 40 digits, within the error it states."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.audit import brute

from tacit.audit.law import NO_NOISE, Laplace, NegativeOneSidedNoise, OneSidedNoise

SCALES = [Fraction(1, 300), Fraction(1, 3), Fraction(22, 7), Fraction(20), Fraction(10**6), 2**50]
X = np.array([-100_000, -1025, -512, -3, -1, 0, 1, 2, 511, 512, 513, 4000, 100_000])


@pytest.mark.parametrize("law", [Laplace, OneSidedNoise, NegativeOneSidedNoise])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laws(law, scale):
    noise = law(Fraction(scale))
    with mpmath.workdps(60):
        for given, truth in (
            (noise.mass(X), [brute.mass(noise, int(x)) for x in X]),
            (noise.reaches(X), [brute.reaches(noise, int(x)) for x in X]),
            (noise.below(X), [_below(noise, int(x)) for x in X]),
        ):
            for mantissa, exponent, true in zip(given.mantissa, given.exponent, truth, strict=True):
                got = mpmath.ldexp(mpmath.mpf(float(mantissa)), int(exponent))
                assert got == true if true == 0 else abs(got / true - 1) <= given.relative_error
            assert given.relative_error < 2e-15


def _below(noise, x: int) -> mpmath.mpf:
    """Pr[ν < x] = Pr[−ν ≥ 1 − x], from the law of −ν."""
    mirrored = {
        Laplace: Laplace,
        OneSidedNoise: NegativeOneSidedNoise,
        NegativeOneSidedNoise: OneSidedNoise,
    }
    return brute.reaches(mirrored[type(noise)](noise.scale), 1 - x)


def test_no_noise():
    x = np.array([-1, 0, 1])
    assert NO_NOISE.mass(x).floats().tolist() == [0, 1, 0]
    assert NO_NOISE.below(x).floats().tolist() == [0, 0, 1]
    assert NO_NOISE.reaches(x).floats().tolist() == [1, 1, 0]
