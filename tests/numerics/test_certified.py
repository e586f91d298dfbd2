"""Certified bounds against 1000-bit arithmetic of an independent library."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.numerics import certified

rationals = st.fractions(min_value=0, max_value=2000, max_denominator=10**9)
bits = st.sampled_from([1, 8, 16, 64, 200])


def _truth(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def _contains(bounds: tuple[Fraction, Fraction], truth: mpmath.mpf) -> bool:
    low, high = bounds
    return bool(low.numerator <= truth * low.denominator) and bool(
        high.numerator >= truth * high.denominator
    )


@given(rationals, bits)
def test_exp_minus_holds_the_truth_and_is_tight(gamma, bits):
    with mpmath.workprec(5000):
        truth = mpmath.exp(-_truth(gamma)) * mpmath.mpf(2) ** bits
        low, high = certified.exp_minus(gamma, bits)
        assert low <= truth <= high
        assert high - low <= 2


@given(rationals, bits, st.booleans())
def test_exp_holds_the_truth_and_is_tight(x, bits, negative):
    x = -x if negative else x
    with mpmath.workprec(8000):
        low, high = certified.exp(x, bits)
        assert _contains((low, high), mpmath.exp(_truth(x)))
        assert (high - low) * 2**bits <= 4 * low


@given(rationals.filter(lambda x: x > 0), bits)
def test_ln_holds_the_truth_and_is_tight(x, bits):
    with mpmath.workprec(1000):
        low, high = certified.ln(x, bits)
        assert _contains((low, high), mpmath.log(_truth(x)))
        assert (high - low) * 2**bits <= 1


@given(rationals, bits)
def test_sqrt_holds_the_truth_and_is_tight(x, bits):
    low, high = certified.sqrt(x, bits)
    assert low * low <= x <= high * high
    assert (high - low) * 2**bits <= 1


@given(rationals, st.integers(1, 20))
def test_rounding_goes_the_promised_way(x, digits):
    down, up = certified.round_down(x, digits), certified.round_up(x, digits)
    assert down <= x <= up
    assert up - down <= x * Fraction(10) ** (1 - digits)


def test_exact_squares_have_exact_roots():
    assert certified.sqrt(Fraction(9, 4)) == (Fraction(3, 2), Fraction(3, 2))


@pytest.mark.parametrize("gamma", [10**6, 10**12])
def test_far_tail_is_settled_without_work(gamma):
    assert certified.exp_minus(Fraction(gamma), 64) == (0, 1)
