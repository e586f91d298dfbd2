"""Scaled numbers against exact fractions: the error bound must hold, whatever the sizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.numerics.scaled import Scaled, log_ratio

entries = st.tuples(
    st.floats(0.5, 1, exclude_max=True), st.integers(-9000, 9000), st.integers(0, 4)
).map(lambda t: (t[0] if t[2] else 0.0, t[1]))
arrays = st.lists(entries, min_size=1, max_size=40)


def _scaled(values: list[tuple[float, int]]) -> Scaled:
    return Scaled(np.array([m for m, _ in values]), np.array([e for _, e in values]))


def _exact(values: Scaled) -> list[Dyadic]:
    level = values.level()
    return [
        Dyadic(int(m * 2**53), int(e) - 53)
        for m, e in zip(level.mantissa.ravel().tolist(), level.exponent.ravel(), strict=True)
    ]


class Dyadic(NamedTuple):
    """value · 2^shift, exactly; fractions would spend their time on common divisors."""

    value: int
    shift: int

    def times(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.value * other.value, self.shift + other.shift)

    def plus(self, other: Dyadic) -> Dyadic:
        low = min(self.shift, other.shift)
        return Dyadic(
            (self.value << (self.shift - low)) + (other.value << (other.shift - low)), low
        )

    def is_within(self, truth: Dyadic, error: float) -> bool:
        allowed = Fraction(error)
        difference = self.plus(Dyadic(-truth.value, truth.shift))
        low = min(difference.shift, truth.shift)
        off = abs(difference.value) << (difference.shift - low)
        size = truth.value << (truth.shift - low)
        return off * allowed.denominator <= size * allowed.numerator


ZERO = Dyadic(0, 0)


def _within(result: Scaled, truth: list[Dyadic]) -> None:
    for got, true in zip(_exact(result), truth, strict=True):
        assert got.is_within(true, result.relative_error)


@given(arrays, st.data())
def test_products_and_sums(values, data):
    others = data.draw(st.lists(entries, min_size=len(values), max_size=len(values)))
    one, other = _scaled(values), _scaled(others)
    truth = list(zip(_exact(one), _exact(other), strict=True))
    _within(one.times(other), [a.times(b) for a, b in truth])
    _within(one.plus(other), [a.plus(b) for a, b in truth])


@given(arrays)
def test_totals_and_running_sums(values):
    scaled, truth = _scaled(values), _exact(_scaled(values))
    sums = list(accumulate(truth, Dyadic.plus))
    _within(scaled.total(), sums[-1:])
    _within(scaled.running(), sums)


@given(arrays, st.integers(0, 60))
def test_powers(values, count):
    scaled = _scaled(values)
    truth = [Dyadic(value**count, shift * count) for value, shift in _exact(scaled)]
    _within(scaled.to_the(count), truth)


def test_many_products_do_not_underflow():
    tiny = Scaled.of(np.array([0.5000001, 0.75]))
    product = Scaled.of(np.ones(2))
    for _ in range(5000):
        product = product.times(tiny)
    _within(product, [Dyadic(value**5000, 5000 * shift) for value, shift in _exact(tiny)])


def test_a_zero_does_not_decide_the_size_of_a_sum():
    zero = Scaled(np.array([0.0, 0.5]), np.array([9000, -9000]))
    _within(zero.total(), [Dyadic(1, -9001)])
    _within(zero.running(), [ZERO, Dyadic(1, -9001)])


@pytest.mark.parametrize("exponent", [1, 0, -1000, -70_000])
def test_logarithms_of_any_size(exponent):
    scaled = Scaled(np.array([0.5, 0.0]), np.array([exponent, 0]))
    size, nothing = scaled.logarithm().tolist()
    assert size == pytest.approx((exponent - 1) * np.log(2), rel=1e-14, abs=1e-15)
    assert nothing == -np.inf


def test_ratios_keep_their_digits_and_know_infinity():
    one = Scaled(np.array([0.5, 0.5, 0.0, 0.0]), np.array([-8000, 1, 0, 0]))
    other = Scaled(np.array([0.75, 0.0, 0.5, 0.0]), np.array([-8000, 0, 0, 0]))
    ratios = log_ratio(one, other)
    assert ratios[0] == pytest.approx(np.log(2 / 3), rel=1e-15)
    assert ratios[1] == np.inf
    assert ratios[2] == -np.inf
    assert np.isnan(ratios[3])
