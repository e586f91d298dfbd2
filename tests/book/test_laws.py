"""Certified cumulative probabilities against 2000-bit arithmetic of an independent library."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.draws import samplers

rates = st.one_of(
    st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=10**6),
    st.integers(1, 2**60).map(lambda n: Fraction(1, n)),
    st.integers(1, 2000).map(Fraction),
)


def _q(rate):
    return mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)


def _check(law, truths, bits):
    bounds = law(bits)
    assert len(bounds) == len(truths)
    for (low, high), truth in zip(bounds, truths, strict=True):
        assert low <= truth * 2**bits <= high
        assert high - low <= 3
    for floor, truth in zip(samplers.floors(law, bits), truths, strict=True):
        assert floor <= truth * 2**bits <= floor + 1


@settings(max_examples=40, deadline=None)
@given(rates, st.integers(1, 20), st.sampled_from([3, 16, 48, 200]))
def test_boundaries_enclose_the_truth(rate, count, bits):
    with mpmath.workprec(1500):
        q = _q(rate)
        truncated = [(1 - q**k) / (1 - q**count) for k in range(1, count)]
        _check(samplers.truncated_geometric(rate, count), truncated, bits)
        _check(samplers.geometric(rate, count), [1 - q**k for k in range(1, count + 1)], bits)


@settings(max_examples=40, deadline=None)
@given(rates, rates, st.integers(1, 20), st.sampled_from([3, 16, 48, 200]))
def test_signed_boundaries_enclose_the_truth(rate, sign_rate, cut, bits):
    with mpmath.workprec(1500):
        q, sign = _q(rate), _q(sign_rate)
        minus = sign / (1 + sign)
        truths = [minus * q**size for size in range(cut, -1, -1)]
        truths += [1 - (1 - minus) * q**size for size in range(1, cut + 1)]
        _check(samplers.signed_geometric(rate, cut, sign_rate), truths, bits)


def test_floors_ask_for_more_bits_until_they_are_sure():
    asked = []

    def close_to_an_integer(bits):
        """The number 5/8 + 2^(−90), with bounds that are off by a unit."""
        asked.append(bits)
        truth = Fraction(5, 8) + Fraction(1, 2**90)
        return [(int(truth * 2**bits) - 1, int(truth * 2**bits) + 2)]

    assert samplers.floors(close_to_an_integer, 3) == [5]
    assert len(asked) > 1


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1, 2**60)])
def test_powers_start_at_one_exactly(rate):
    assert samplers.powers(rate, 3, 40)[0] == (2**40, 2**40)
