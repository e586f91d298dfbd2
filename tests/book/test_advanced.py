"""Theorem 3.20 and Corollary 3.21 against 50 digits, and where the corollary fails."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.book.composition import (
    advanced_each,
    advanced_epsilon,
    advanced_total,
    corollary_each,
    corollary_limit,
    optimal_delta,
    optimal_each,
)
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import exact
from tacit.privacy import Privacy

counts = st.integers(1, 10**9)
deltas = st.one_of(st.floats(1e-300, 1e-3), st.floats(1e-3, 0.999999))
forms = st.sampled_from(["book", "tanh"])


def _mpf(x: object) -> mpmath.mpf:
    number = exact(x, "x")
    return mpmath.mpf(number.numerator) / number.denominator


def _theorem(k: int, each: object, delta: object, form: str) -> mpmath.mpf:
    e = _mpf(each)
    drift = mpmath.expm1(e) if form == "book" else mpmath.tanh(e / 2)
    return mpmath.sqrt(2 * k * mpmath.log(1 / _mpf(delta))) * e + k * e * drift


@given(counts, st.floats(1e-9, 100), deltas, forms)
@settings(deadline=None)
def test_the_total_is_just_above_the_formula(k, each, delta, form):
    with mpmath.workdps(80):
        got, truth = advanced_epsilon(k, each, delta, form=form), _theorem(k, each, delta, form)
        assert 1e-13 < _mpf(got) / truth - 1 < 1e-12


@given(counts, st.floats(1e-6, 1e6), deltas, forms)
@settings(deadline=None)
def test_the_inverse_is_just_below_the_root(k, epsilon, delta, form):
    with mpmath.workdps(80):
        each = exact(advanced_each(k, epsilon, delta, form=form), "each")
        assert _theorem(k, each, delta, form) <= _mpf(epsilon)
        assert _theorem(k, each * (1 + Fraction(1, 10**11)), delta, form) > _mpf(epsilon)


@given(counts, st.floats(1e-9, 700), deltas)
@settings(deadline=None)
def test_the_tanh_form_is_never_larger(k, each, delta):
    assert advanced_epsilon(k, each, delta, form="tanh") <= advanced_epsilon(k, each, delta)


def test_example_3_7_as_printed_and_as_it_is():
    with mpmath.workdps(30):
        delta = Fraction(mpmath.nstr(mpmath.exp(-32), 20))
    assert advanced_epsilon(10_000, "1/801", delta) == pytest.approx(1.01435, abs=5e-6)
    assert 1 / advanced_each(10_000, 1, delta) == pytest.approx(812.32, abs=5e-3)
    assert 1 / advanced_each(10_000, 1, delta, form="tanh") == pytest.approx(806.20, abs=5e-3)


def test_an_enormous_epsilon_is_infinite_by_the_book_and_not_by_tanh():
    assert advanced_epsilon(1, 1000, "1e-6") == float("inf")
    assert advanced_epsilon(1, 1000, "1e-6", form="tanh") == pytest.approx(1000 * 6.2565, rel=1e-4)
    with pytest.raises(ConditionNotMet, match="promises nothing"):
        advanced_total(1, Privacy(1000), "1e-6")


def test_the_total_adds_the_deltas_exactly():
    total = advanced_total(100, Privacy("1/100", "1e-9"), "1e-6", "tanh")
    assert total.delta == Fraction(11, 10**7)
    assert total.epsilon == exact(advanced_epsilon(100, "1/100", "1e-6", form="tanh"), "epsilon")


def test_a_total_delta_of_one_is_refused():
    with pytest.raises(ConditionNotMet, match="promises nothing"):
        advanced_total(100, Privacy("1/100", "1/100"), "1e-6")


@given(counts, deltas)
@settings(deadline=None)
def test_the_limit_is_just_below_its_formula(k, delta):
    with mpmath.workdps(80):
        log = mpmath.log(1 / _mpf(delta))
        truth = 2 * mpmath.sqrt(2 * k * log) * mpmath.log1p(mpmath.sqrt(2 * log / k))
        assert 0 <= 1 - _mpf(corollary_limit(k, delta)) / truth < 1e-13


@given(counts, deltas, st.fractions(Fraction(1, 10**6), 1))
@settings(deadline=None)
def test_the_corollary_is_just_below_its_formula_and_implied_by_the_theorem(k, delta, share):
    epsilon = corollary_limit(k, delta) * share
    each = corollary_each(k, epsilon, delta)
    with mpmath.workdps(80):
        truth = _mpf(epsilon) / (2 * mpmath.sqrt(2 * k * mpmath.log(1 / _mpf(delta))))
        assert 0 <= 1 - _mpf(each) / truth < 1e-13
        assert _theorem(k, each, delta, "book") <= _mpf(epsilon)


@given(counts, deltas)
@settings(deadline=None)
def test_the_corollary_refuses_what_the_theorem_does_not_imply(k, delta):
    epsilon = corollary_limit(k, delta) * (1 + Fraction(1, 10**12))
    with pytest.raises(ConditionNotMet, match="does not cover"):
        corollary_each(k, epsilon, delta)
    with mpmath.workdps(80):
        each = epsilon / Fraction(
            mpmath.nstr(2 * mpmath.sqrt(2 * k * mpmath.log(1 / _mpf(delta))), 60)
        )
        assert _theorem(k, each, delta, "book") > _mpf(epsilon)


def test_limits_to_check():
    assert float(corollary_limit(1, "1e-6")) == pytest.approx(19.3, abs=0.05)
    assert float(corollary_limit(100, "1e-6")) == pytest.approx(44.4, abs=0.05)


def test_the_printed_corollary_is_false_for_delta_near_one():
    """E2: with ε′ < 1 it would allow an ε₀ at which randomised response breaks the promise."""
    k, epsilon, delta = 1, 0.999, 0.999
    with mpmath.workdps(30):
        printed = _mpf(epsilon) / (2 * mpmath.sqrt(2 * k * mpmath.log(1 / _mpf(delta))))
        e, e_total = mpmath.exp(printed), mpmath.exp(_mpf(epsilon))
        assert (e - e_total) / (1 + e) > delta + 9e-4  # its exact δ, by hand
    assert optimal_delta(k, float(printed), epsilon) > delta + 9e-4
    with pytest.raises(ConditionNotMet, match=r"at most 0\.0039"):
        corollary_each(k, epsilon, delta)


@given(st.integers(1, 10**5), st.floats(1e-3, 10), st.floats(1e-15, 0.5))
@settings(max_examples=50, deadline=None)
def test_what_each_may_spend_grows_from_corollary_to_optimal(k, epsilon, delta):
    book, tanh = advanced_each(k, epsilon, delta), advanced_each(k, epsilon, delta, form="tanh")
    if epsilon <= corollary_limit(k, delta):
        assert float(corollary_each(k, epsilon, delta)) <= book * (1 + 1e-12)
    assert book <= tanh * (1 + 1e-12)
    assert tanh <= optimal_each(k, epsilon, delta) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: advanced_epsilon(0, 1, "1e-6"), "k"),
        (lambda: advanced_epsilon(1, -1, "1e-6"), "epsilon_each"),
        (lambda: advanced_epsilon(1, 1, 0), "delta_prime"),
        (lambda: advanced_epsilon(1, 1, 1), "delta_prime"),
        (lambda: advanced_epsilon(1, 1, "1e-6", form="sinh"), "form"),  # type: ignore[arg-type]
        (lambda: advanced_each(1, 1, "1e-6", form="sinh"), "form"),  # type: ignore[arg-type]
        (lambda: advanced_each(1, float("inf"), "1e-6"), "epsilon"),
        (lambda: corollary_each(1, "0", "1e-6"), "epsilon"),
        (lambda: corollary_limit("two", "1e-6"), "k"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_named(call, parameter):
    with pytest.raises(BadParameter, match=f"^{parameter} = "):
        call()
