"""What a refusal says: the number as it was given, and a limit that is itself allowed."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.book import accuracy, recipes
from tacit.book.coins import Coins
from tacit.book.composition import corollary_each, corollary_limit, optimal_delta, optimal_epsilon
from tacit.book.half_gap import half_gap, success_probability
from tacit.book.shattering import shatters, vc_dimension
from tacit.book.small_db import check_parameters
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import as_given, show_limit
from tacit.privacy import Privacy

HAIR = Fraction(1, 10**12)


def _corollary(epsilon):
    return corollary_each(1, epsilon, "1e-6")


def _numeric(epsilon):
    return recipes.book(3, Privacy(epsilon, "1e-6"), numeric=True)


def _theorem(epsilon):
    return accuracy.sparse(beta=0.05, epsilon=epsilon, questions=9, at_most=1, delta="1e-6")


def _numeric_theorem(epsilon):
    common: dict[str, Any] = {"beta": 0.05, "questions": 9, "at_most": 3, "delta": "1e-6"}
    return accuracy.numeric_sparse(epsilon=epsilon, **common)


@pytest.mark.parametrize("asked", [_corollary, _numeric, _theorem, _numeric_theorem])
def test_a_refusal_names_a_limit_that_is_allowed(asked):
    """Just above the true limit, wherever it is, and at the limit as it is shown."""
    low, high = Fraction(15), Fraction(40)
    while high - low > HAIR:
        middle = (low + high) / 2
        try:
            asked(middle)
            low = middle
        except ConditionNotMet:
            high = middle
    above = Fraction(f"{float(high + HAIR):.12f}")
    with pytest.raises(ConditionNotMet) as refused:
        asked(above)
    numbers = [Fraction(text) for text in re.findall(r"\b\d+\.\d+\b", str(refused.value))]
    assert above in numbers  # as it was given
    shown = max(number for number in numbers if number < low + HAIR)
    assert low - shown < low / 1000
    asked(shown)


@pytest.mark.parametrize("number", ["19.2876", "0.00123456", "99999.9", "12345678", "1e-500"])
def test_a_limit_is_rounded_to_the_allowed_side(number):
    shown = Fraction(show_limit(Fraction(number)))
    assert Fraction(number) * Fraction(999, 1000) < shown <= Fraction(number)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: corollary_limit(1, 0.9999999999999), "delta_prime = 0.9999999999999 "),
        (lambda: half_gap(recipes.book(1, Privacy(1)), 9, 0.50001), "beta = 0.50001 "),
        (lambda: Coins().bernoulli("1.00001"), "p = 1.00001 "),
        (lambda: check_parameters(rows=1, epsilon=10**12 + 1), "epsilon = 1000000000001 "),
        (
            lambda: accuracy.sparse(beta=0.05, epsilon=1, questions=9, at_most=1, delta="0.999001"),
            "delta = 0.999001 ",
        ),
    ],
)
def test_a_number_is_shown_as_it_was_given(call, shown):
    with pytest.raises(BadParameter) as refused:
        call()
    assert str(refused.value).startswith(shown)


def test_a_delta_that_is_too_small_is_shown_apart_from_what_is_needed():
    with pytest.raises(ConditionNotMet) as refused:
        optimal_epsilon(10, 1, "9.9999549e-6", delta_each="1e-6")
    given, needed = re.findall(r"delta = (\S+) .* need (\S+);", str(refused.value))[0]
    assert float(given) == 9.9999549e-6 < float(needed)


def test_numbers_as_given():
    assert as_given(Fraction(1, 3)) == "1/3"
    assert as_given("1e-9") == "'1e-9'"
    assert as_given(Fraction(10**5000)) == "1e+5000"
    assert as_given(True) == "True"
    assert len(as_given("x" * 1000)) == 60


# Numbers of any size ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: optimal_delta(10**5000, 1, 1),
        lambda: Privacy(-Fraction(10**5000)),
        lambda: Privacy(Fraction(10**5000)),
        lambda: Privacy("1" * 3000 + "e4000"),
        lambda: Privacy(1, Fraction(1, 10**5000)),
        lambda: recipes.book(10**5000, Privacy(1)),
    ],
)
def test_numbers_too_long_to_print_are_refused_in_words(call):
    with pytest.raises(BadParameter, match="is not allowed"):
        call()


ONE_TOP = recipes.book(1, Privacy(1))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: half_gap(recipes.book(1, Privacy("1e-320")), 9, 0.05), "epsilon = 1e-320"),
        (lambda: half_gap(recipes.book(1, Privacy("1e400")), 9, 0.05), "epsilon"),
        (lambda: half_gap(ONE_TOP.shifted("1e400"), 9, 0.05), "shift"),
        (lambda: half_gap(ONE_TOP, 10**400, 0.05), "questions"),
        (lambda: success_probability(ONE_TOP, 9, "1e400"), "alpha"),
        (lambda: success_probability(ONE_TOP, 9, 1, "-1e400"), "shift"),
        (
            lambda: recipes.spend(
                "one-sided", 4, Privacy("1e400", "1e-6"), monotone=True, groups=2
            ),
            "epsilon",
        ),
        (lambda: shatters(np.zeros((3, 0)), [0]), "points = 0 is .* the matrix has no columns"),
        (lambda: shatters(np.zeros((3, 1)), [10**5000]), "points"),
    ],
)
def test_numbers_beyond_what_can_be_computed_are_refused_by_name(call, named):
    with pytest.raises(BadParameter, match=f"^{named}"):
        call()


@pytest.mark.parametrize("epsilon", ["1e-99", "1e-6", "1e6", "1e99"])
def test_a_half_gap_scales_with_epsilon_as_far_as_it_is_computed(epsilon):
    scaled = half_gap(recipes.book(1, Privacy(epsilon)), 9, 0.05) * float(Fraction(epsilon))
    assert scaled == pytest.approx(half_gap(ONE_TOP, 9, 0.05), rel=1e-6)


def test_questions_are_read_like_any_number():
    assert half_gap(ONE_TOP, "9", 0.05) == half_gap(ONE_TOP, 9, 0.05)  # type: ignore[arg-type]


def test_a_search_may_be_given_any_time():
    assert vc_dimension([[0, 1], [1, 0]], seconds="1e400").exact


def test_the_longest_numbers_can_be_shown():
    for privacy in (Privacy("1e4000"), Privacy("1e-4000", "1e-4000")):
        assert eval(repr(privacy)) == privacy
        assert "e" in str(privacy)
    error = BadParameter("k", 10**5000, "less")
    assert str(error) == "k = a number of thousands of digits is not allowed: less"
