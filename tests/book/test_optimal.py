"""Optimal composition against 60 digits, exact fractions, brute force and another library."""

from __future__ import annotations

import math
import random
from decimal import Context, Inexact, Rounded, Subnormal, localcontext
from fractions import Fraction
from itertools import product

import mpmath
import pytest
from dp_accounting.pld import accountant, privacy_loss_distribution
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.composed import true_delta

from tacit.book.composition import (
    advanced_epsilon,
    optimal_delta,
    optimal_each,
    optimal_epsilon,
    two_point_delta,
)
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import exact
from tacit.numerics import binomial as binomial_term

SMALLEST = 2.2250738585072014e-308


def _read_back(value: float) -> mpmath.mpf:
    """As everybody else will read the float: by its shortest decimal."""
    number = exact(value, "value")
    return mpmath.mpf(number.numerator) / number.denominator


def _check_delta(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> None:
    with mpmath.workdps(60):
        got, truth = two_point_delta(k, up, down, epsilon), true_delta(k, up, down, epsilon)
        if truth == 0 or got == 0:
            assert got == truth == 0
        elif truth < 1e-300:
            assert got >= truth
        elif got == 1:
            assert truth > 1 - 1e-11
        else:
            # Far inside the 9 digits (7 below 1e-15) that are required; and never too small,
            # as the float and as its shortest decimal.
            assert 1e-13 < _read_back(got) / truth - 1 < 1e-12
            assert mpmath.mpf(got) > truth


def _random_case(source: random.Random, most: float) -> tuple[int, Fraction, Fraction, Fraction]:
    k = int(10 ** source.uniform(0, most))
    up = 10 ** source.uniform(-9, 3)
    down = up * source.choice([1, 1, 10 ** source.uniform(-2, 2)])
    mean = k * up * math.tanh(up / 2)
    spread = math.sqrt(k) * up / math.cosh(min(up / 2, 300))
    wanted = source.choice([mean + spread * source.uniform(-8, 40), source.random() * k * up])
    epsilon = min(max(wanted, 0.0), k * up * source.choice([1, 1 - 1e-9, 0.7]))
    return k, exact(up, "up"), exact(down, "down"), exact(epsilon, "epsilon")


@pytest.mark.parametrize("seed", range(120))
def test_delta_has_its_digits_and_is_never_too_small(seed):
    _check_delta(*_random_case(random.Random(seed), most=4))


@pytest.mark.parametrize("seed", range(8))
def test_delta_has_its_digits_for_a_million_mechanisms(seed):
    source = random.Random(seed)
    _check_delta(10**6, *_random_case(source, most=6)[1:])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_delta_has_its_digits_on_many_more_cases(seed):
    _check_delta(*_random_case(random.Random(seed), most=6))


@pytest.mark.parametrize(
    ("k", "each", "epsilon"),
    [
        (1, "1e-9", "0"),
        (1, "1e3", "999.999999999"),
        (1, "1e3", "0"),
        (10, "1000", "7000"),
        (10**6, "1e-9", "1e-5"),
        (10**6, "1e-200", "0"),
        (10**6, "1e-40", "1e-36"),
        (1000, "50", "49000"),
        (10**6, "20", "19999600"),
        (10**6, "1e-3", "37.5"),  # δ about 1e-300
        (10**6, "1e-3", "999.999"),  # δ below every float
        (10**6, "0.5", "122459"),  # δ about 1/2
        (10**6, "0.5", "1"),  # δ is 1 to all digits
        (3, "1", "2.9999999999999999999"),
    ],
)
def test_delta_at_the_extremes(k, each, epsilon):
    each, epsilon = exact(each, "each"), exact(epsilon, "epsilon")
    _check_delta(k, each, each, epsilon)


def test_a_delta_below_all_floats_is_rounded_up_but_never_to_zero():
    assert optimal_delta(10**6, "1e-3", "999.999") == SMALLEST


def test_delta_is_zero_exactly_from_the_sum_on():
    assert optimal_delta(11, "1/11", 1) == 0
    assert optimal_delta(11, "1/11", "0.99999999999999999999") > 0
    assert optimal_delta(10**6, 1000, 10**9) == 0
    assert two_point_delta(5, "1/5", 3, 15) == 0 < two_point_delta(5, "1/5", 3, "14.9999999")


@pytest.mark.parametrize("k", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("growth", [Fraction(1), Fraction(3, 2), Fraction(5), Fraction(29, 2)])
def test_delta_agrees_with_exact_fractions(k, growth):
    """Randomised response at e^ε₀ = 2: convolve exact probabilities, then sum (P − e^ε Q)₊."""
    law = {0: (Fraction(1), Fraction(1))}
    for _ in range(k):
        after: dict[int, tuple[Fraction, Fraction]] = {}
        for high, (p, q) in law.items():
            for step, factor in ((1, Fraction(2, 3)), (0, Fraction(1, 3))):
                before = after.get(high + step, (Fraction(0), Fraction(0)))
                after[high + step] = (before[0] + p * factor, before[1] + q * (1 - factor))
        law = after
    truth = sum(max(p - growth * q, Fraction(0)) for p, q in law.values())
    with mpmath.workdps(60):
        each, epsilon = (Fraction(mpmath.nstr(mpmath.log(x), 50)) for x in (2, growth))
    got = optimal_delta(k, each, epsilon)
    assert truth <= Fraction(got)
    assert got == pytest.approx(float(truth), rel=1e-12)


@pytest.mark.parametrize(("up", "down"), [(1.0, 1.0), (0.7, 0.2), (0.2, 0.7), (3.0, 0.01)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.1])
def test_two_points_agree_with_all_outcomes(up, down, epsilon):
    """Every one of 2^k outcomes, both directions, from the likelihoods alone."""
    k = 6
    q = -math.expm1(-down) / (math.exp(up) - math.exp(-down))
    pair = [(q * math.exp(up), q), ((1 - q) * math.exp(-down), 1 - q)]
    there = back = 0.0
    for outcome in product(pair, repeat=k):
        first, second = math.prod(p for p, _ in outcome), math.prod(q for _, q in outcome)
        there += max(first - math.exp(epsilon) * second, 0)
        back += max(second - math.exp(epsilon) * first, 0)
    assert two_point_delta(k, up, down, epsilon) == pytest.approx(max(there, back), rel=1e-11)


def test_an_asymmetric_loss_composes_better_than_its_larger_side_says():
    assert two_point_delta(200, "0.02", "0.01", "1") < optimal_delta(200, "0.02", 1) / 10
    assert two_point_delta(200, "0.02", "0.01", 1) == two_point_delta(200, "0.01", "0.02", 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(22, 0.04925), (20, 0.08614)])
def test_thirty_leaky_mechanisms(epsilon, delta):
    assert optimal_delta(30, 1, epsilon, delta_each="0.001") == pytest.approx(delta, abs=5e-6)


@pytest.mark.parametrize(("delta", "epsilon"), [("0.06", 21.7096), ("0.1", 19.8174)])
def test_thirty_leaky_mechanisms_the_other_way(delta, epsilon):
    got = optimal_epsilon(30, 1, delta, delta_each="0.001")
    assert got == pytest.approx(epsilon, abs=5e-5)


@pytest.mark.parametrize("delta_each", ["1e-3", "0.4", "1e-12", "1e-300"])
@pytest.mark.parametrize("k", [1, 1000, 10**6])
def test_plain_truths_are_added_as_the_theorem_says(k, delta_each):
    with mpmath.workdps(700):
        pure = true_delta(k, Fraction(1, 100), Fraction(1, 100), Fraction(1, 2))
        leak = mpmath.mpf(delta_each)
        truth = 1 - (1 - leak) ** k * (1 - pure)
        got = optimal_delta(k, "0.01", "0.5", delta_each=delta_each)
        assert got == 1 or 0 < mpmath.mpf(got) / truth - 1 < 1e-12
        if got == 1:
            assert truth > 1 - 1e-12


@pytest.mark.parametrize("seed", range(60))
def test_epsilon_is_certified_and_tight(seed):
    source = random.Random(seed)
    k, each = int(10 ** source.uniform(0, 3.5)), exact(10 ** source.uniform(-4, 1.3), "each")
    delta = exact(10 ** -source.uniform(0.05, source.choice([3, 30, 290])), "delta")
    got = exact(optimal_epsilon(k, each, delta), "epsilon")
    assert true_delta(k, each, each, got) <= delta.numerator / mpmath.mpf(delta.denominator)
    less = got * (1 - Fraction(1, 10**11))
    if got > 0 and less < k * each * (1 - Fraction(1, 10**11)):
        assert optimal_delta(k, each, less) > delta
    assert got <= k * each * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("seed", range(60))
def test_each_is_certified_and_tight(seed):
    source = random.Random(seed)
    k, epsilon = int(10 ** source.uniform(0, 3.5)), exact(10 ** source.uniform(-3, 3), "epsilon")
    delta = exact(10 ** -source.uniform(0.05, source.choice([3, 30, 290])), "delta")
    got = exact(optimal_each(k, epsilon, delta), "each")
    assert true_delta(k, got, got, epsilon) <= delta.numerator / mpmath.mpf(delta.denominator)
    more = got * (1 + Fraction(1, 10**11))
    if more > epsilon / k * (1 + Fraction(1, 10**10)):
        assert optimal_delta(k, more, epsilon) > delta
    assert got >= epsilon / k * (1 - Fraction(1, 10**12))


@given(
    k=st.integers(1, 10**6),
    epsilon=st.floats(1e-3, 50),
    delta=st.floats(1e-12, 0.9),
    leak=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_both_inverses_keep_delta_also_with_plain_truths(k, epsilon, delta, leak):
    delta_each = leak * delta / k * 0.9
    each = optimal_each(k, epsilon, delta, delta_each=delta_each)
    assert optimal_delta(k, each, epsilon, delta_each=delta_each) <= delta
    total = optimal_epsilon(k, each, delta, delta_each=delta_each)
    assert optimal_delta(k, each, total, delta_each=delta_each) <= delta
    assert total <= epsilon + 1e-9 * max(epsilon, 1)


def test_the_callers_own_decimals_do_not_matter():
    def answers() -> tuple[float, ...]:
        return (
            optimal_delta(1000, "0.01", 1, delta_each="1e-9"),
            two_point_delta(1000, "0.02", "0.01", 1),
            optimal_epsilon(1000, "0.0123", "1e-5", delta_each="1e-9"),
            optimal_each(1000, 1, "1e-5", delta_each="1e-9"),
        )

    usual = answers()
    with localcontext(Context(prec=3, Emax=9, Emin=-9, traps=[Inexact, Rounded, Subnormal])):
        binomial_term.pair.cache_clear()
        assert answers() == usual


def test_one_mechanism_has_a_closed_form():
    """δ = (e^ε₀ − e^ε)/(1 + e^ε₀), so ε₀ = ln((e^ε + δ)/(1 − δ))."""
    for epsilon, delta in [(1, 1e-9), (1, 0.9), (0.001, 1e-3), (30, 0.5)]:
        want = math.log((math.exp(epsilon) + delta) / (1 - delta))
        assert optimal_each(1, epsilon, delta) == pytest.approx(want, rel=1e-11)


def test_example_3_7_optimally():
    delta = Fraction(mpmath.nstr(mpmath.exp(-32), 15))
    assert 1 / optimal_each(10_000, 1, delta) == pytest.approx(715.5105, abs=1e-3)
    assert optimal_delta(10_000, Fraction(100, 71552), 1) < delta
    assert optimal_delta(10_000, Fraction(10, 7155), 1) > delta


def test_without_delta_it_is_the_sum():
    assert optimal_epsilon(11, "1/11", 0) == pytest.approx(1, rel=1e-12)
    assert optimal_epsilon(11, "1/11", 0) >= 1 >= 11 * optimal_each(11, 1, 0)


def test_epsilon_is_zero_when_delta_covers_everything():
    assert optimal_epsilon(4, "0.01", "0.9") == 0


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.3])
@pytest.mark.parametrize(("k", "each", "leak"), [(5, 1, 0), (60, 0.25, 0), (400, 0.05, 1e-13)])
def test_dp_accounting_agrees(k, each, leak, delta):
    """It answers with the next corner of the curve, a multiple of 2ε₀ below k ε₀."""
    theirs = accountant.advanced_composition(DifferentialPrivacyParameters(each, leak), k, delta)
    ours = optimal_epsilon(k, each, delta, delta_each=leak)
    assert max(theirs - 2 * each, 0) - 1e-9 <= ours <= theirs + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_dp_accounting_agrees_on_the_curve(epsilon):
    parameters = DifferentialPrivacyParameters(0.125, 1e-6)
    one = privacy_loss_distribution.from_privacy_parameters(
        parameters, value_discretization_interval=0.125
    )
    theirs = one.self_compose(100).get_delta_for_epsilon(epsilon)
    assert optimal_delta(100, 0.125, epsilon, delta_each=1e-6) == pytest.approx(theirs, rel=1e-6)


@given(
    k=st.integers(1, 10**5),
    each=st.floats(1e-4, 2),
    delta=st.floats(1e-12, 0.5),
    more=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_optimal_is_never_worse_than_the_book(k, each, delta, more):
    best = optimal_epsilon(k, each, delta)
    tanh = advanced_epsilon(k, each, delta, form="tanh")
    assert best <= min(tanh, k * each * (1 + 1e-12))
    assert optimal_delta(k, each, best * (1 + more)) <= optimal_delta(k, each, best)
    assert optimal_delta(k, each, best) <= optimal_delta(k + 1, each, best) * (1 + 1e-12)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0", "1e-4", "2.5e-3"])
def test_delta_has_its_digits_for_a_thousand_million(epsilon):
    each = Fraction(1, 10**8) if epsilon != "0" else Fraction(1, 10**5)
    with mpmath.workdps(60):
        truth = true_delta(10**9, each, each, exact(epsilon, "epsilon"))
        got = optimal_delta(10**9, each, epsilon)
        assert 0 < mpmath.mpf(got) / truth - 1 < 1e-10


def test_many_more_than_a_million():
    """A Gaussian limit: k = 10¹², ε₀ = 10⁻⁶ has mean 1/2 and deviation 1."""
    at_one = optimal_delta(10**12, "1e-6", 1)
    with mpmath.workdps(30):
        gauss = mpmath.ncdf(-0.5) - mpmath.e * mpmath.ncdf(-1.5)
        assert at_one == pytest.approx(float(gauss), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: optimal_delta(0, 1, 1), "k"),
        (lambda: optimal_delta(10**13, 1, 1), "k"),
        (lambda: optimal_delta(2.5, 1, 1), "k"),  # type: ignore[arg-type]
        (lambda: optimal_delta(1, 0, 1), "epsilon_each"),
        (lambda: optimal_delta(1, float("nan"), 1), "epsilon_each"),
        (lambda: optimal_delta(1, "1e-999", 1), "epsilon_each"),
        (lambda: optimal_delta(1, "1e999", 1), "epsilon_each"),
        (lambda: optimal_delta(1, 1, -1), "epsilon"),
        (lambda: optimal_delta(1, 1, float("inf")), "epsilon"),
        (lambda: optimal_delta(1, 1, 1, delta_each=1), "delta_each"),
        (lambda: optimal_epsilon(1, 1, 1), "delta"),
        (lambda: optimal_epsilon(1, 1, -0.1), "delta"),
        (lambda: optimal_each(1, 0, 0.1), "epsilon"),
        (lambda: two_point_delta(1, 1, 0, 1), "down"),
        (lambda: two_point_delta(1, -1, 1, 1), "up"),
    ],
)
def test_bad_input_is_named(call, parameter):
    with pytest.raises(BadParameter, match=f"^{parameter} = "):
        call()


@pytest.mark.parametrize("inverse", [optimal_epsilon, optimal_each])
def test_a_delta_that_plain_truths_use_up_is_refused(inverse):
    with pytest.raises(ConditionNotMet, match="too small"):
        inverse(100, 1, "1e-3", delta_each="1e-4")


def test_every_positive_answer_can_be_asked_about():
    smallest = optimal_delta(10**6, "1e-3", "999.999")
    assert optimal_epsilon(10**6, "1e-3", smallest) <= 999.999
