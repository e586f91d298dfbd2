"""The closing remarks: each number against its own definition, and what the book says of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import expm1, log, log1p, sqrt

import pytest

from tacit.book.composition import advanced_epsilon, optimal_epsilon
from tacit.book.remarks import queries_within, search_price
from tacit.errors import BadParameter

ASKED = {"epsilon": 1, "delta": "1e-9", "beta": "0.05"}


def failure(k: int, error: int, epsilon_each: float) -> float:
    """With which probability one of k values of discrete Laplace noise exceeds the error."""
    q = 2.718281828459045**-epsilon_each
    return -expm1(k * log1p(-2 * q ** (error + 1) / (1 + q)))


@pytest.mark.parametrize("by", ["basic", "advanced", "optimal"])
@pytest.mark.parametrize("error", [3, 100, 1000])
def test_so_many_queries_stay_within_the_error_and_the_promise(by: str, error: int) -> None:
    k = queries_within(error, by=by, **ASKED)  # type: ignore[arg-type]
    total = {
        "basic": lambda each: k * each,
        "advanced": lambda each: advanced_epsilon(k, each, "1e-9"),
        "optimal": lambda each: optimal_epsilon(k, each, "1e-9"),
    }[by]
    if k == 0:
        assert error == 3  # one query would have to be off by ln(20)/ε₀
        return
    each = log(k / 0.05) / error  # the least ε₀ that suffices
    assert failure(k, error, each) <= 0.05
    assert total(each) <= 1 + 1e-9
    more = k + 1 + k // 100
    at_least = log(more / 0.05) / error
    k = more  # which `total` uses
    assert total(at_least) > 1


def test_noise_below_n_allows_close_to_n_squared_queries_and_below_root_n_close_to_n() -> None:
    for share, exponent, power in ((10, 1, 2), (1, 0.5, 1)):
        shares = [
            queries_within(Fraction(round(n**exponent), share), **ASKED) / n**power  # type: ignore[arg-type]
            for n in (10**4, 10**6, 10**8)
        ]
        # Only by logarithms, while n grows a hundredfold.
        assert all(1 / 12 < later / earlier < 1 for earlier, later in pairwise(shares))
    # By addition alone, noise o(n) would not even allow n queries.
    assert queries_within(10**5, **ASKED, by="basic") < 10**6  # type: ignore[arg-type]


def test_finding_the_large_queries_costs_a_constant_and_the_logarithm_of_k() -> None:
    asked = {"epsilon": "1/2", "at_most": 10, "beta": "0.05"}
    for delta, constant in ((0, 9), ("1e-9", (sqrt(512) + 1) / sqrt(8))):
        for questions in (10**5, 10**8):  # fewer need the clause of E7
            price = search_price(questions=questions, delta=delta, **asked)  # type: ignore[arg-type]
            logs = log(questions) + log(4 * 10 / 0.05)
            assert float(price.ratio) == pytest.approx(constant * logs / log(10 / 0.05), rel=0.04)
    known = search_price(questions=10, **asked).known  # type: ignore[arg-type]
    assert float(known) == pytest.approx(10 / 0.5 * log(10 / 0.05))


def test_a_value_within_alpha_of_known_queries_fails_no_more_often_than_beta() -> None:
    price = search_price(epsilon=1, questions=100, at_most=20, beta="0.01")
    assert failure(20, int(price.known), 1 / 20) <= 0.01
    assert failure(20, int(price.known * Fraction(95, 100)), 1 / 20) > 0.01


def test_no_more_are_counted_than_can_be_composed() -> None:
    asked = {"epsilon": 10**6, "delta": "1e-9", "beta": "0.05"}
    for by in ("basic", "advanced"):
        assert queries_within(10**12, by=by, **asked) == 10**12  # type: ignore[arg-type]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(BadParameter, match="by"):
        queries_within(3, by="Rogers", **ASKED)  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="beta"):
        queries_within(3, epsilon=1, delta="1e-9", beta=2)
