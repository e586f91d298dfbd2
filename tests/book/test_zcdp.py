"""zCDP and its conversion, against 50 digits and another library."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.book.composition import (
    optimal_delta,
    rho_of_epsilon,
    rho_of_range,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from tacit.errors import BadParameter
from tacit.numbers import exact

rhos = st.floats(1e-6, 100)
epsilons = st.floats(1e-3, 300)
deltas = st.one_of(st.floats(1e-250, 1e-3), st.floats(1e-3, 0.999))


def _mpf(x: object) -> mpmath.mpf:
    number = exact(x, "x")
    return mpmath.mpf(number.numerator) / number.denominator


def _log_delta(b: mpmath.mpf, rho: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """The conversion as it is printed, at order a = 1 + b."""
    a = 1 + b
    return (a - 1) * (a * rho - epsilon) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)


def _best_log_delta(rho: object, epsilon: object) -> mpmath.mpf:
    """Its least value over all orders, by golden section on ln b."""
    r, e = _mpf(rho), _mpf(epsilon)
    low, high, golden = -40.0, 60.0, (5**0.5 - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = (_log_delta(mpmath.exp(x), r, e) for x in (left, right))
    for _ in range(70):  # to 2e-13 in ln b, and the square of that in the value
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _log_delta(mpmath.exp(left), r, e)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _log_delta(mpmath.exp(right), r, e)
    return min(at_left, at_right)


@given(rhos, epsilons)
@settings(max_examples=40, deadline=None)
def test_delta_is_just_above_the_least_over_all_orders(rho, epsilon):
    with mpmath.workdps(40):
        truth, got = mpmath.exp(_best_log_delta(rho, epsilon)), zcdp_delta(rho, epsilon)
        if truth < 1e-300:
            assert got >= truth
        elif truth >= 1:
            assert got == 1
        else:
            assert got == 1 or 1e-13 < _mpf(got) / truth - 1 < 1e-12


@given(rhos, deltas)
@settings(max_examples=40, deadline=None)
def test_epsilon_is_safe_and_tight(rho, delta):
    with mpmath.workdps(40):
        goal, epsilon = mpmath.log(_mpf(delta)), exact(zcdp_epsilon(rho, delta), "epsilon")
        assert _best_log_delta(rho, epsilon) <= goal
        if epsilon > 0:
            assert _best_log_delta(rho, epsilon * (1 - Fraction(1, 10**11))) > goal


@given(epsilons, deltas)
@settings(max_examples=40, deadline=None)
def test_rho_is_safe_and_tight(epsilon, delta):
    with mpmath.workdps(40):
        goal, rho = mpmath.log(_mpf(delta)), zcdp_rho(epsilon, delta)
        assert _best_log_delta(rho, epsilon) <= goal
        assert _best_log_delta(rho * (1 + Fraction(1, 10**12)), epsilon) > goal


def test_rho_is_a_short_rational():
    rho = zcdp_rho(1, "1e-6")
    assert isinstance(rho, Fraction)
    assert rho == Fraction(repr(float(rho)))


@given(st.integers(1, 10**5), st.floats(1e-3, 1), st.floats(0.01, 50))
@settings(max_examples=40, deadline=None)
def test_equal_parts_compose_at_least_as_well_by_the_optimal_theorem(k, each, epsilon):
    best = optimal_delta(k, each, epsilon)
    assert best <= zcdp_delta(k * rho_of_epsilon(each), epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(("rho", "epsilon"), [(0.005, 1), (0.1, 3), (2, 20), (1e-4, 0.1)])
def test_dp_accounting_agrees(rho, epsilon):
    orders = 1 + np.exp(np.linspace(-3, 9, 60_001))
    theirs, _ = rdp_privacy_accountant.compute_delta(orders, orders * rho, epsilon)
    assert zcdp_delta(rho, epsilon) == pytest.approx(theirs, rel=1e-6)
    back, _ = rdp_privacy_accountant.compute_epsilon(orders, orders * rho, theirs)
    assert zcdp_epsilon(rho, theirs) == pytest.approx(back, rel=1e-6)


def test_rho_of_pure_parts_is_exact():
    assert rho_of_epsilon("1/11") == Fraction(1, 242)
    assert rho_of_range("3/2") == Fraction(9, 32)
    assert rho_of_range(2) == rho_of_epsilon(1)


def test_nothing_spent_is_nothing_lost():
    assert zcdp_delta(0, 0) == zcdp_epsilon(0, "1e-9") == 0


def test_a_loss_in_a_range_is_as_concentrated_as_stated():
    """Rényi divergence of the two-point pair with losses up and −down is at most a·L²/8."""
    with mpmath.workdps(40):
        for up, down in [(1.0, 1.0), (0.9, 0.1), (0.1, 0.9), (2.0, 1.0)]:
            q = -mpmath.expm1(-down) / (mpmath.exp(up) - mpmath.exp(-down))
            p = q * mpmath.exp(up)
            for a in (1.01, 1.5, 2, 5, 50, 1000):
                inner = p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)
                assert mpmath.log(inner) / (a - 1) <= a * _mpf(rho_of_range(up + down))


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: rho_of_epsilon(0), "epsilon"),
        (lambda: rho_of_range(-1), "length"),
        (lambda: zcdp_delta(-1, 1), "rho"),
        (lambda: zcdp_delta(1, -1), "epsilon"),
        (lambda: zcdp_epsilon(1, 0), "delta"),
        (lambda: zcdp_rho(0, "1e-6"), "epsilon"),
        (lambda: zcdp_rho(1, 1), "delta"),
    ],
)
def test_bad_input_is_named(call, parameter):
    with pytest.raises(BadParameter, match=f"^{parameter} = "):
        call()
