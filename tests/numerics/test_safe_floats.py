from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.numbers import exact
from tacit.numerics.certified import rounded_down, rounded_up


@given(st.fractions(min_value=Fraction(1, 10**290), max_value=10**290))
def test_rounding_keeps_its_margin_even_when_read_back(value):
    up, down = rounded_up(value), rounded_down(value)
    margin = Fraction(1, 10**13)
    assert exact(down, "down") < value * (1 - margin) < value * (1 + margin) < exact(up, "up")
    assert up < value * (1 + 5 * margin)


@pytest.mark.parametrize("value", [Fraction(1, 10**400), Decimal("1e-400"), Decimal("1e-320")])
def test_what_is_below_all_floats(value):
    assert (rounded_down(value), rounded_up(value)) == (0.0, sys.float_info.min)


def test_what_is_above_all_floats():
    assert rounded_up(Fraction(10) ** 400) == float("inf")
    assert rounded_down(Fraction(10) ** 400) == sys.float_info.max
    assert rounded_up(Decimal("1e400")) == float("inf")


def test_zero_stays_zero():
    assert rounded_up(Fraction(0)) == rounded_down(Decimal(0)) == 0.0
