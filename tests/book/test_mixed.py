"""Mechanisms that differ: plain addition, and Theorem 3.20's proof."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import expm1, log, sqrt, tanh

import mpmath
import pytest

from tacit.book.composition import Part, advanced_epsilon, mixed_advanced, mixed_basic
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import exact
from tacit.privacy import Privacy

Parts = Sequence[tuple[Fraction, Fraction]]


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def true_mixed_delta(parts: Parts, epsilon: Fraction) -> mpmath.mpf:
    """1 − Π (1 − δᵢ)(1 − Σ over all signs of (P − e^ε P′)₊)."""
    with mpmath.workdps(60):
        law = [(mpmath.mpf(1), mpmath.mpf(1))]
        for each, _ in parts:
            high = 1 / (1 + mpmath.exp(-real(each)))
            low = 1 / (1 + mpmath.exp(real(each)))
            law = [
                (p * here, q * there) for p, q in law for here, there in ((high, low), (low, high))
            ]
        growth = mpmath.exp(real(epsilon))
        pure = mpmath.fsum(p - growth * q for p, q in law if p > growth * q)
        private = mpmath.fprod(1 - real(leak) for _, leak in parts)
        return 1 - private * (1 - pure)


def _random_parts(source, most=10):
    digits = source.choice([1, 2, 5, 9])

    def part():
        each = source.choice([10 ** source.uniform(-3, 0.7), source.uniform(0, 1), 0])
        leak = source.choice([0, 0, "1e-6", "0.01", "1e-12"])
        return Fraction(str(round(each, digits))), Fraction(leak)

    return [part() for _ in range(source.randint(1, most))]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("form", ["book", "tanh"])
def test_theorem_3_20_holds_against_all_outcomes(seed, form):
    source = random.Random(seed)
    parts = _random_parts(source)
    epsilon, delta = mixed_advanced(parts, source.choice(["0.3", "1e-2", "1e-6"]), form=form)
    assert true_mixed_delta(parts, exact(epsilon, "epsilon")) <= delta


@pytest.mark.parametrize("seed", range(10))
def test_addition_holds_against_all_outcomes_and_is_met_by_some(seed):
    parts = _random_parts(random.Random(seed))
    epsilon, delta = mixed_basic(parts)
    assert true_mixed_delta(parts, epsilon) <= delta
    pure = [(each, Fraction(0)) for each, _ in parts if each]
    if pure:  # no ε below the sum will do with δ = 0
        assert true_mixed_delta(pure, mixed_basic(pure)[0] * Fraction(999, 1000)) > 0


def test_theorem_3_20_with_equal_parts_is_the_theorem_itself():
    for form in ("book", "tanh"):
        epsilon, delta = mixed_advanced({("0.1", "1e-9"): 100}, "1e-6", form=form)
        assert epsilon == pytest.approx(advanced_epsilon(100, "0.1", "1e-6", form=form), rel=1e-12)
        assert delta == Fraction("1.1e-6")


@pytest.mark.parametrize("form", ["book", "tanh"])
def test_theorem_3_20_is_its_formula_rounded_up(form):
    parts = [0.1, 0.25, 0.25, 0, 1e-9, 0.7]
    mean = sum(x * (expm1(x) if form == "book" else tanh(x / 2)) for x in parts)
    wanted = sqrt(2 * log(1e5) * sum(x * x for x in parts)) + mean
    found = mixed_advanced(parts, "1e-5", form=form)[0]
    assert wanted < found < wanted * (1 + 1e-12)


def test_addition_is_exact():
    parts: list[Part] = [Privacy("1/3", "1e-9"), ("1/7", 0), "1/21", 0.1, (0, "1e-3")]
    assert mixed_basic(parts) == (Fraction(11, 21) + Fraction(1, 10), Fraction("0.001000001"))


def test_zero_is_a_valid_amount():
    assert mixed_basic([0]) == (Fraction(0), Fraction(0))
    assert mixed_advanced([0, (0, "1e-9")], "1e-6") == (0.0, Fraction("1.001e-6"))


def test_the_order_and_the_way_of_writing_do_not_matter():
    listed: list[Part] = [Privacy("0.1", "1e-9"), 0.25, ("1/3", 0), 0.25, Privacy(0.1, 1e-9)]
    counted: dict[Part, int] = {(0.25, 0): 2, "1/3": 1, (Fraction(1, 10), "1e-9"): 2}
    assert mixed_basic(listed) == mixed_basic(counted) == mixed_basic(iter(listed[::-1]))
    assert mixed_advanced(listed, "1e-6") == mixed_advanced(counted, "1e-6")


@pytest.mark.parametrize("parts", [[], {}, 7, "0.1", None, iter([])])
def test_what_is_no_list_of_mechanisms_is_refused(parts):
    with pytest.raises(BadParameter, match=r"^parts = "):
        mixed_basic(parts)


@pytest.mark.parametrize(
    "part", [-1, float("nan"), "x", None, (1,), (1, 2, 3), (1, -0.1), (1, 1), 1001, "1e-31", True]
)
def test_a_bad_mechanism_is_named(part):
    calls = [
        lambda: mixed_basic([1, part]),
        lambda: mixed_advanced([part], "1e-6"),
    ]
    for call in calls:
        with pytest.raises(BadParameter, match=r"^parts = "):
            call()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: mixed_advanced([1], 0), "delta_prime"),
        (lambda: mixed_advanced([1], "1e-6", form="x"), "form"),  # type: ignore[arg-type]
        (lambda: mixed_basic({1: 0}), "parts"),
        (lambda: mixed_basic({1: 10**9 + 1}), "parts"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(BadParameter, match=f"^{named} = "):
        call()


def test_what_promises_nothing_is_refused():
    with pytest.raises(ConditionNotMet, match="promises nothing"):
        mixed_basic({(1, "0.1"): 10})
    with pytest.raises(ConditionNotMet, match="promises nothing"):
        mixed_advanced({(1, "0.1"): 9}, "0.1")
