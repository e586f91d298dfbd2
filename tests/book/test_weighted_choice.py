from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.book.exact_coins import exact_law

from tacit.draws.scalar import WeightedChoice, _bounds

gammas = st.fractions(min_value=0, max_value=10**6, max_denominator=10**6)


def _probabilities(weights, rates):
    with mpmath.workdps(60):
        parts = [
            weight * mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
            for weight, rate in zip(weights, rates, strict=True)
        ]
        return [part / mpmath.fsum(parts) for part in parts]


@given(st.integers(1, 10**300), gammas, st.sampled_from([1, 8, 64, 200]))
def test_bounds_hold_the_truth_and_are_tight(weight, gamma, bits):
    low, high, exponent = _bounds(weight, gamma, bits)
    with mpmath.workdps(500):
        truth = weight * mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)
        assert low <= truth / mpmath.mpf(2) ** exponent <= high
    assert (high - low) << bits <= high


@pytest.mark.parametrize(
    ("weights", "rates"),
    [
        ([1, 2, 3], [0, 0, 0]),
        ([5, 0, 7, 1], [0, 0, "1/3", "2"]),
        ([10**30, 10**60, 1], [50, 120, 0]),
        ([3, 1], ["1/7", "1000"]),
    ],
)
def test_the_law_is_exact_whatever_the_first_bits_leave_open(weights, rates):
    rates = [Fraction(rate) for rate in rates]
    # One bit at first, so that the very same number must be extended again and again.
    choice = WeightedChoice(weights, rates, first_bits=1)
    law, left = exact_law(choice.draw, depth=5)
    assert left < 0.001
    for index, truth in enumerate(_probabilities(weights, rates)):
        decided = law.get(index, Fraction(0))
        assert float(decided) <= float(truth) + 1e-15
        assert float(truth) <= float(decided + left) + 1e-15


def test_one_weight_needs_no_luck():
    law, left = exact_law(WeightedChoice([0, 4, 0], [Fraction(0)] * 3).draw, depth=0)
    assert left == 1  # it draws one word, and
    law, left = exact_law(WeightedChoice([0, 4], [Fraction(3)] * 2, first_bits=1).draw)
    assert law == {1: 1}
    assert left == 0
